//! Channels: every message once, in order, whole; ends that do not fit.

use global_arrays::{
    channel,
    channel::{Channels, Inlet, Outlet, from, to},
    prelude::*,
};
use ndarray::Axis;

/// Element `k` of message `number` of the channel from a member to another with a tag.
fn element(from: usize, to: usize, tag: u64, number: usize, k: usize) -> u64 {
    (((from * 64 + to) as u64 * 64 + tag) << 32) + (number as u64 * 1009) + k as u64
}

fn message(from: usize, to: usize, tag: u64, number: usize, len: usize) -> Vec<u64> {
    (0..len).map(|k| element(from, to, tag, number, k)).collect()
}

/// More laps than a word can tell apart, each length, one to three slots; a single rank has a channel with itself.
pub(crate) fn ring(job: &Job) -> Result<(), Error> {
    const MOST: usize = 9;
    let (me, size) = (job.rank(), job.size());
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    for slots in 1..4 {
        let ([mut out], [mut inlet]) = Channels::new(job).slots(slots).open([to(right, 7, MOST)], [from(left, 7)])?;
        assert_eq!((out.member(), out.tag()), (right, 7));
        assert_eq!((inlet.member(), inlet.tag()), (left, 7));
        for number in 0..70 {
            let len = number % (MOST + 1);
            out.put(&message(me, right, 7, number, len))?;
            let arrived = inlet.wait()?;
            assert_eq!(*arrived, message(left, me, 7, number, len), "message {number} with {slots} slots");
            assert_eq!(arrived.view().len(), len);
        }
        let error = out.put(&[0; MOST + 1]).expect_err("too long").to_string();
        assert!(error.contains("channel 7 to rank") && error.contains("10 elements, and it takes up to 9"), "{error}");
    }
    job.sync()
}

/// A message is the elements of a view in the order of its indices.
pub(crate) fn views(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    let ([mut out], [mut inlet]) = job.channels([to(right, 0, 5000)], [from(left, 0)])?;
    let of = |rank: usize| Array3::from_shape_fn((10, 20, 25), |(i, j, k)| element(rank, 0, 0, 100 * i + j, k));
    let (mine, theirs) = (of(me), of(left));
    let mut expect = |expected: ArrayViewD<'_, u64>| {
        let arrived = inlet.wait()?;
        assert!(arrived.iter().eq(&expected), "{:?}", expected.shape());
        Ok::<(), Error>(())
    };
    out.put(&mine)?;
    expect(theirs.view().into_dyn())?;
    out.put(mine.slice(s![2..5, .., 3]))?;
    expect(theirs.slice(s![2..5, .., 3]).into_dyn())?;
    out.put(mine.slice(s![..;-2, 1..;3, ..;-1]))?;
    expect(theirs.slice(s![..;-2, 1..;3, ..;-1]).into_dyn())?;
    out.put(mine.index_axis(Axis(2), 4).t())?;
    expect(theirs.index_axis(Axis(2), 4).t().into_dyn())?;
    out.put(mine.slice(s![3..3, .., ..]))?;
    expect(theirs.slice(s![3..3, .., ..]).into_dyn())?;
    out.put(ndarray::aview0(&mine[[1, 2, 3]]))?;
    expect(ndarray::aview0(&theirs[[1, 2, 3]]).into_dyn())?;
    job.sync()
}

/// Several channels between each two members, read in another order than they were written; what is full, and what is not there yet.
pub(crate) fn several(job: &Job) -> Result<(), Error> {
    const TAGS: u64 = 3;
    let (me, size) = (job.rank(), job.size());
    let pairs = || (0..size).flat_map(|other| (0..TAGS).map(move |tag| (other, tag)));
    let most = |tag: u64| [0, 5, 3000][tag as usize];
    let outlets = pairs().map(|(other, tag)| to(other, tag, most(tag))).collect::<Vec<_>>();
    let inlets = pairs().map(|(other, tag)| from(other, tag)).rev().collect::<Vec<_>>();
    let (mut outlets, mut inlets) = job.channels(outlets, inlets)?;
    for round in 0..3 {
        for out in &mut outlets {
            for number in 2 * round..2 * round + 2 {
                assert!(out.is_ready()?);
                let data = message(me, out.member(), out.tag(), number, most(out.tag()));
                if number % 2 == 0 { out.put(&data)? } else { assert!(out.try_put(&data)?) }
            }
            if size > 1 {
                continue;
            }
            assert!(!out.is_ready()? && !out.try_put(&Array1::zeros(0))?);
        }
        for inlet in &mut inlets {
            for number in 2 * round..2 * round + 2 {
                let expected = message(inlet.member(), me, inlet.tag(), number, most(inlet.tag()));
                if number % 2 == 0 {
                    assert_eq!(*inlet.wait()?, expected);
                } else {
                    while inlet.try_wait()?.is_none_or(|arrived| {
                        assert_eq!(*arrived, expected);
                        false
                    }) {}
                }
            }
        }
        // All slots are given back.
        job.sync()?;
        assert!(inlets.iter_mut().all(|inlet| inlet.try_wait().unwrap().is_none()));
        while !outlets.iter_mut().all(|out| out.is_ready().unwrap()) {}
        job.sync()?;
    }
    Ok(())
}

/// Messages written where they are read; guards that are forgotten.
pub(crate) fn in_place(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    let ([mut out], [mut inlet]) = Channels::new(job).slots(1).open([to(right, 1, 300)], [from(left, 1)])?;
    for number in 0..40 {
        let len = [300, 0, 1, 17][number % 4];
        let written = out.fill(len, |slot| {
            assert_eq!(slot.len(), len);
            slot.copy_from_slice(&message(me, right, 1, number, len));
            number
        })?;
        assert_eq!(written, number);
        let arrived = inlet.wait()?;
        assert_eq!(*arrived, message(left, me, 1, number, len));
        if number % 3 == 0 {
            std::mem::forget(arrived);
            // The next look gives it back.
            job.sync()?;
            assert!(inlet.try_wait()?.is_none());
            job.sync()?;
        }
    }
    // What panics sends nothing.
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| out.fill(3, |_| std::panic::panic_any(()))));
    assert!(caught.is_err());
    job.sync()?;
    assert!(inlet.try_wait()?.is_none());
    job.sync()?;
    out.put(&[5, 6])?;
    assert_eq!(*inlet.wait()?, [5, 6]);
    job.sync()
}

/// Each member sends to each; whoever receives takes what comes first.
pub(crate) fn any(job: &Job) -> Result<(), Error> {
    const MESSAGES: usize = 20;
    let (me, size) = (job.rank(), job.size());
    let sent = |to: usize, number: usize| message(me, to, 0, number, number % 5);
    let (mut outlets, mut inlets) = job.channels(
        (0..size).map(|other| to(other, 0, 4)).collect::<Vec<_>>(),
        (0..size).map(|other| from(other, 0)).collect::<Vec<_>>(),
    )?;
    // In rounds: a message to everybody, then those of all, whoever comes first.
    for number in 0..MESSAGES {
        outlets.iter_mut().enumerate().try_for_each(|(other, out)| out.put(&sent(other, number)))?;
        let mut left: Vec<&mut Inlet<u64>> = inlets.iter_mut().collect();
        while !left.is_empty() {
            let first = channel::wait_any(&mut left)?;
            let inlet = left.swap_remove(first);
            let other = inlet.member();
            assert_eq!(*inlet.wait()?, message(other, me, 0, number, number % 5));
        }
    }
    // Without rounds. Nobody waits: a rank that waits may still have a message that found no slot, and another rank may wait for that one.
    let (mut put, mut read) = (vec![MESSAGES; size], vec![MESSAGES; size]);
    while put.iter().chain(&read).any(|&count| count < 2 * MESSAGES) {
        for (other, out) in outlets.iter_mut().enumerate() {
            while put[other] < 2 * MESSAGES && out.try_put(&sent(other, put[other]))? {
                put[other] += 1;
            }
        }
        for (other, inlet) in inlets.iter_mut().enumerate() {
            if let Some(arrived) = inlet.try_wait()? {
                assert_eq!(*arrived, message(other, me, 0, read[other], read[other] % 5));
                read[other] += 1;
            }
        }
    }
    assert!(channel::wait_any::<u64, Inlet<u64>>(&mut []).is_err());
    job.sync()
}

/// The receiver also sees what the sender put before, into whatever array.
pub(crate) fn behind_puts(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    let a = GlobalArray::<u64, Ix2>::builder(job, [size, 2000]).grid([size, 1]).zeros().create()?;
    let ([mut out, mut back], [mut inlet, mut read]) =
        job.channels([to(right, 0, 1), to(left, 1, 0)], [from(left, 0), from(right, 1)])?;
    for round in 1..20 {
        a.put(s![right, ..], &Array1::from_elem(2000, round))?;
        a.store([right, 999], round + 1)?;
        out.put(&[round])?;
        assert_eq!(*inlet.wait()?, [round]);
        let own = a.get(s![me, ..])?;
        assert!(own.iter().enumerate().all(|(k, &value)| value == round + u64::from(k == 999)), "round {round}: {own}");
        back.put(&[0; 0])?;
        assert!(read.wait()?.is_empty());
    }
    job.sync()
}

/// Members of a group have numbers of their own.
pub(crate) fn of_groups(job: &Job) -> Result<(), Error> {
    let backwards: Vec<usize> = (0..job.size()).rev().filter(|rank| rank % 2 == job.rank() % 2).collect();
    let group = job.subgroup(&backwards)?;
    let (me, size) = (group.member(), group.size());
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    let ([mut out], [mut inlet]) = group.channels([to(right, 3, 2)], [from(left, 3)])?;
    for round in 0..5 {
        out.put(&[job.rank(), round])?;
        assert_eq!(*inlet.wait()?, [backwards[left], round]);
    }
    group.sync()?;
    job.sync()
}

/// Ends without a partner are named on every member, and so are ends that cannot be; the group is as good as before.
pub(crate) fn refusals(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let refused = |outlets: Vec<channel::OutletEnd<u8>>, inlets: Vec<channel::InletEnd<u8>>| {
        job.channels(outlets, inlets).expect_err("no such channels").to_string()
    };
    let last = size - 1;
    let error = refused(
        if me == 0 { vec![to(last, 4, 1), to(last, 5, 1)] } else { vec![] },
        if me == last { vec![from(0, 5)] } else { vec![] },
    );
    assert!(error.contains(&format!("to({last}, 4) of member 0 has no from(0, 4) at member {last}")), "{error}");
    assert!(!error.contains("5)"), "{error}");
    let error = refused(vec![], vec![from(me, 1)]);
    assert!(error.contains("from(0, 1) of member 0 has no to(0, 1) at member 0"), "{error}");
    let error = refused(if me == 0 { vec![to(size, 0, 1)] } else { vec![] }, vec![]);
    let expected = if me == 0 { format!("to({size}, 0) in a group of {size}") } else { "their errors say which".to_owned() };
    assert!(error.contains(&expected), "{error}");
    let error = refused(vec![to(me, 0, 1), to(me, 0, 1)], vec![from(me, 0), from(me, 0)]);
    assert!(error.contains(&format!("to({me}, 0) twice")), "{error}");
    let error = refused(vec![to(me, 0, usize::MAX)], vec![from(me, 0)]);
    assert!(error.contains("elements; up to 268435455 are possible"), "{error}");
    let error = Channels::new(job).slots(0).open([to::<u8>(me, 0, 1)], [from(me, 0)]).expect_err("no slots").to_string();
    assert!(error.contains("0 slots"), "{error}");
    let vast = Channels::new(job).slots(u32::MAX).open([to::<f64>(me, 0, 200_000_000)], [from(me, 0)]).expect_err("no room");
    assert!(vast.to_string().contains("channels with "), "{vast}");
    let (_, _): ([Outlet<u8>; 0], [Inlet<u8>; 0]) = job.channels([], [])?;
    job.sync()
}

/// Channels that are dropped with messages in them, and what takes their memory; no more memory is used in the end than in the beginning.
pub(crate) fn come_and_go(job: &Job) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    let mut used = Vec::new();
    for round in 0..12_u64 {
        let ([mut out], [mut inlet]) = job.channels([to(right, round, 2000)], [from(left, round)])?;
        for _ in 0..2 {
            out.put(&vec![round; 2000])?;
        }
        if me % 2 == 0 {
            assert_eq!(*inlet.wait()?, [round; 2000]);
        }
        drop((out, inlet));
        let a = GlobalArray::<u64, Ix1>::builder(job, [4000 * size]).fill(77).create()?;
        job.sync()?;
        assert_eq!(a.get(s![4000 * me..4000 * (me + 1)])?, Array1::from_elem(4000, 77));
        a.destroy()?;
        used.push(job.memory().committed);
    }
    assert_eq!(used[4], used[11], "{used:?}");
    job.sync()
}
