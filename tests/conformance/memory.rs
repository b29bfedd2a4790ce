//! What arrays take and give back.

use global_arrays::prelude::*;

use crate::runner;

pub(crate) fn in_a_loop(job: &Job) -> Result<(), Error> {
    let before = job.memory();
    let mut committed = 0;
    for round in 0..200 {
        let a = GlobalArray::<f64, Ix2>::builder(job, [100, 50]).fill(f64::from(round)).create()?;
        let b = a.duplicate("the other")?;
        assert_eq!(a.load([99, 49])?, f64::from(round));
        job.barrier()?;
        if round % 2 == 0 {
            a.destroy()?;
            b.destroy()?;
        }
        if round == 20 {
            committed = job.memory().committed;
        }
    }
    assert_eq!(job.memory().committed, committed, "committed bytes after 20 rounds and after 200");
    drop(GlobalArray::<u8, Ix1>::builder(job, [1]).create()?);
    GlobalArray::<u8, Ix1>::builder(job, [1]).create()?.destroy()?;
    GlobalArray::<u8, Ix1>::builder(job, [1]).create()?.destroy()?;
    assert_eq!(job.memory().asked, before.asked);
    job.trim()?;
    assert!(job.memory().committed <= before.committed);
    job.sync()
}

/// One group, whose arrays are dropped and destroyed, the older one after the newer one was made: memory does not grow.
pub(crate) fn in_groups(job: &Job) -> Result<(), Error> {
    let group = job.split(job.rank() % 2)?;
    let new = |len: usize, value: u64| GlobalArray::<u64, Ix1>::builder(&group, [len]).fill(value).create();
    let mut last = new(5000, 0)?;
    let mut after_some = None;
    for round in 1..200 {
        let next = new(5000 + round as usize % 3 * 100, round)?;
        assert_eq!((last.load([4999])?, next.load([4999])?), (round - 1, round));
        group.barrier()?;
        let old = std::mem::replace(&mut last, next);
        if round % 2 == 0 {
            old.destroy()?;
        }
        if round == 20 {
            after_some = Some(job.memory().committed);
        }
    }
    assert_eq!(Some(job.memory().committed), after_some, "committed bytes after 20 rounds and after 200");
    job.sync()
}

/// Neighbours are pairs, so that each rank's segment holds blocks of two groups; they make and drop arrays in no order.
pub(crate) fn groups_that_overlap(job: &Job) -> Result<(), Error> {
    let mut random = 5_u64;
    let mut pairs = Vec::new();
    for low in 0..job.size() - 1 {
        let member = job.rank() == low || job.rank() == low + 1;
        pairs.push((if member { Some(job.subgroup(&[low, low + 1])?) } else { None }, Vec::new()));
    }
    for round in 0..40_u64 {
        for (number, (group, arrays)) in (0..).zip(&mut pairs) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (len, which) = ((random >> 33) as usize % 3000, (random >> 50) as usize);
            let Some(group) = group else { continue };
            let value = 1000 * number + round;
            arrays.push((value, GlobalArray::<u64, Ix1>::builder(&*group, [1 + len]).fill(value).create()?));
            if round % 5 > 1 {
                let (value, old) = arrays.swap_remove(which % arrays.len());
                assert!(old.get(..)?.iter().all(|&x| x == value), "array {value}");
                group.barrier()?;
                if which % 2 == 0 {
                    old.destroy()?;
                }
            }
        }
    }
    for (value, array) in pairs.iter().flat_map(|(_, arrays)| arrays) {
        assert!(array.get(..)?.iter().all(|x| x == value), "array {value}");
    }
    job.sync()
}

pub(crate) fn many_arrays(job: &Job) -> Result<(), Error> {
    let mut arrays = Vec::new();
    for k in 0..300_i64 {
        arrays.push(GlobalArray::<i64, Ix1>::builder(job, [17]).name(format!("array {k}")).fill(k).create()?);
    }
    for (k, a) in arrays.iter().enumerate() {
        a.accumulate(.., 1, &Array1::ones(17))?;
        assert!(a.load([k % 17])? > k as i64);
    }
    job.sync()?;
    for (k, a) in arrays.iter().enumerate() {
        assert_eq!(a.load([k % 17])?, k as i64 + job.size() as i64);
    }
    job.sync()
}

/// Ranks drop their handles at different times; once all have, later creations take the memory.
pub(crate) fn dropped(job: &Job) -> Result<(), Error> {
    let new = |len: usize| GlobalArray::<u64, Ix1>::builder(job, [len]).zeros().create();
    let before = job.memory().asked;
    let mut arrays = Vec::new();
    for _ in 0..100 {
        arrays.push(new(1000)?);
    }
    let full = job.memory().asked;
    assert!(full > before);
    // This rank keeps some that others drop.
    let mut k = 0;
    arrays.retain(|_| {
        k += 1;
        k % 7 == job.rank() % 7
    });
    for _ in 0..4 {
        new(1)?.destroy()?;
    }
    arrays.iter().try_for_each(|a| a.get(..).map(|all| assert_eq!(all.sum(), 0)))?;
    job.sync()?;
    arrays.clear();
    for _ in 0..4 {
        new(1)?.destroy()?;
    }
    assert_eq!(job.memory().asked, before);
    job.sync()
}

/// Puts whose handles were forgotten, one to each rank.
fn forgotten(job: &Job, array: &GlobalArray<u64, Ix1>, value: u64) -> Result<(), Error> {
    let part = array.len() / array.group().size();
    for member in 0..array.group().size() {
        std::mem::forget(array.put_nb(member * part..(member + 1) * part, Array1::from_elem(part, value + job.rank() as u64))?);
    }
    Ok(())
}

/// What a rank still puts into an array that is dropped or destroyed never lands in the next one, which lies where it lay.
pub(crate) fn used_again(job: &Job) -> Result<(), Error> {
    let group = job.split(job.rank() % 2)?;
    for round in 0..12_u64 {
        for group in [job, &group] as [&Group; 2] {
            let new = || GlobalArray::<u64, Ix1>::builder(group, [16 * group.size()]).fill(round).create();
            let old = new()?;
            forgotten(job, &old, 1000)?;
            if round % 2 == 0 {
                drop(old)
            } else {
                old.destroy()?
            }
            // The first creation frees what was dropped, the second one takes it.
            let next = [new()?, new()?];
            group.sync()?;
            for array in next {
                assert!(array.get(..)?.iter().all(|&x| x == round), "round {round}: {:?}", array.get(..)?);
                group.barrier()?;
                array.destroy()?;
            }
        }
    }
    job.sync()
}

/// The same where others know nothing of the next array: a rank makes it alone, in memory of an array of all that was destroyed, or
/// that went with its group and was freed by the next group of the same list.
pub(crate) fn of_groups_used_again(job: &Job) -> Result<(), Error> {
    let all: Vec<usize> = (0..job.size()).collect();
    let alone = job.subgroup(&[job.rank()])?;
    for round in 0..16_u64 {
        let group = job.subgroup(&all)?;
        let old = GlobalArray::<u64, Ix1>::builder(&group, [16 * job.size()]).zeros().create()?;
        forgotten(job, &old, 1000)?;
        let mut group = Some(group);
        if round % 2 == 0 {
            old.destroy()?;
        } else {
            drop((old, group.take()));
            group = Some(job.subgroup(&all)?);
        }
        let own = || GlobalArray::<u64, Ix1>::builder(&alone, [16]).fill(round).create();
        let own = [own()?, own()?, own()?, own()?];
        job.sync()?;
        for array in &own {
            assert!(array.get(..)?.iter().all(|&x| x == round), "round {round}: {:?}", array.get(..)?);
        }
        own.into_iter().try_for_each(GlobalArray::destroy)?;
        drop(group);
        job.sync()?;
    }
    Ok(())
}

/// Memory of dropped groups is free again, also of more groups than one creation can ask about.
pub(crate) fn of_many_groups(job: &Job) -> Result<(), Error> {
    const GROUPS: usize = 70;
    let all: Vec<usize> = (0..job.size()).collect();
    let before = job.memory().asked;
    let mut groups = vec![job.subgroup(&all)?];
    let of_one = job.memory().asked - before;
    for _ in 1..GROUPS {
        groups.push(job.subgroup(&all)?);
    }
    assert_eq!(job.memory().asked, before + GROUPS as u64 * of_one);
    drop(groups);
    let last = [job.subgroup(&all)?, job.subgroup(&all)?];
    assert_eq!(job.memory().asked, before + 2 * of_one);
    last.iter().try_for_each(|group| group.sync())
}

/// Arrays that share pages with freed ones keep their elements, and what was given back can be had again.
pub(crate) fn trimmed(job: &Job) -> Result<(), Error> {
    // Far less than a page, and more than one of the largest.
    for len in [5, 700, 20_000, 300_000] {
        let new = |value: u64| GlobalArray::<u64, Ix1>::builder(job, [len * job.size()]).fill(value).create();
        // The next rank's part.
        let next = (job.rank() + 1) % job.size() * len;
        let holds = |array: &GlobalArray<u64, Ix1>, value: u64, when: &str| {
            let part = array.get(next..next + len)?;
            assert!(part.iter().all(|&x| x == value), "array {value} of {len} elements, {when}");
            Ok::<(), Error>(())
        };
        let mut arrays: Vec<_> = (0..6).map(|k| new(k).map(Some)).collect::<Result<_, _>>()?;
        let all = |arrays: &[Option<GlobalArray<u64, Ix1>>], when: &str| {
            (0..).zip(arrays).try_for_each(|(k, array)| array.as_ref().map_or(Ok(()), |array| holds(array, k, when)))
        };
        for freed in [1, 4, 2] {
            arrays[freed].take().expect("freed once").destroy()?;
            let before = job.memory();
            job.trim()?;
            let after = job.memory();
            assert!(after.asked == before.asked && after.committed <= before.committed, "{before:?} {after:?}");
            job.barrier()?;
            all(&arrays, "after a neighbor was freed")?;
            job.barrier()?;
        }
        let more = [new(7)?, new(8)?, new(9)?];
        (7..).zip(&more).try_for_each(|(value, array)| holds(array, value, "in memory that was given back"))?;
        all(&arrays, "after others came")?;
        job.barrier()?;
    }
    job.sync()
}

/// The suite runs with a limit of 1 GiB for each machine.
pub(crate) fn limit(job: &Job) -> Result<(), Error> {
    let vast = 200_000_000 * runner::machines::of(job.size());
    let small = GlobalArray::<f64, Ix1>::builder(job, [1000]).fill(2.0).create()?;
    // Its pages stay: the refused array would use them.
    GlobalArray::<f64, Ix1>::builder(job, [100_000]).create()?.destroy()?;
    let before = job.memory();
    assert!(before.available < 1 << 30, "{}", before.available);
    for _ in 0..2 {
        let refusal = GlobalArray::<f64, Ix1>::builder(job, [vast]).name("vast").create().expect_err("beyond the limit");
        match &refusal {
            Error::OutOfMemory { asked, available, .. } => {
                // What the array takes on a machine, not what still lacks pages; machines may have ranks more than others.
                let each = 8 * vast as u64 / job.size() as u64;
                let ranks = (asked + each / 2) / each;
                assert!(ranks > 0 && asked.abs_diff(ranks * each) <= 8 * ranks, "{asked} bytes, of {each} for each rank");
                let machines = runner::machines::of(job.size());
                let of_one = job.size() / machines..=job.size().div_ceil(machines);
                assert!(of_one.contains(&(ranks as usize)), "{ranks} ranks of {}", job.size());
                assert!((500_000_000..=1 << 30).contains(available), "{available}");
            }
            other => panic!("{other}"),
        }
        let text = refusal.to_string();
        assert!(text.contains("vast") && text.contains("GA_MEMORY"), "{text}");
        assert_eq!(job.memory().committed, before.committed);
        assert_eq!(job.memory().asked, before.asked);
    }
    assert_eq!(small.get(..)?.sum(), 2000.0);
    let fits = GlobalArray::<f64, Ix1>::builder(job, [1_000_000]).fill(1.0).create()?;
    assert_eq!(fits.get(..)?.sum(), 1e6);
    job.sync()
}

/// More than 2^31 elements: every offset and count beyond 32 bits.
pub(crate) fn huge(network: &str) {
    const LEN: usize = (1 << 31) + 4096;
    let free = std::fs::read_to_string("/proc/meminfo").expect("the memory of the machine");
    let free: u64 =
        free.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    if !runner::long() && free < 8 << 20 {
        runner::skip("needs 8 GiB of available memory, or GA_TEST_LONG=1");
    }
    let body = |job: &Job| {
        let a = GlobalArray::<u8, Ix1>::builder(job, [LEN]).create()?;
        let places = [0, 1, LEN / 2 - 1, LEN / 2, (1 << 31) - 1, 1 << 31, LEN - 1];
        for (k, &at) in places.iter().enumerate().filter(|(k, _)| k % job.size() == job.rank()) {
            a.store([at], k as u8 + 1)?;
        }
        job.sync()?;
        places.iter().enumerate().try_for_each(|(k, &at)| a.load([at]).map(|x| assert_eq!(x, k as u8 + 1)))?;
        job.sync()?;
        // A patch over both owners whose end lies beyond 2^31.
        let (start, len) = (LEN / 2 - 70_000, 140_000);
        if job.rank() == 0 {
            a.put(s![start..start + len], &Array1::from_iter((0..len).map(|k| k as u8)))?;
            a.put(s![LEN - 3000..], &Array1::from_elem(3000, 9))?;
        }
        job.sync()?;
        assert!(a.get(s![start..start + len])?.iter().enumerate().all(|(k, &x)| x == k as u8));
        assert_eq!(a.get(s![-1..;-1])?.len() + a.get(s![(1_usize << 31)..])?.len(), 4097);
        assert!(a.get(s![LEN - 3000..])?.iter().all(|&x| x == 9));
        // A step of half the array.
        assert_eq!(a.get(s![0..;LEN - 1])?.to_vec(), [1, 9]);
        a.destroy()?;
        job.trim()?;
        assert!(job.memory().committed < 100 << 20);
        job.sync()
    };
    runner::launch(network).ranks(2).run(body).unwrap_or_else(|error: Error| panic!("{error}"));
}
