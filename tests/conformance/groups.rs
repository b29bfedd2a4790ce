//! Groups of some ranks, in an order of their own.

use global_arrays::{channel, prelude::*};

pub(crate) fn split(job: &Job) -> Result<(), Error> {
    let color = job.rank() % 3;
    let group = job.split(color)?;
    let expected: Vec<usize> = (0..job.size()).filter(|rank| rank % 3 == job.rank() % 3).collect();
    assert_eq!(group.ranks().collect::<Vec<_>>(), expected);
    assert_eq!(group.all_gather(&[job.rank() as u64])?, expected.iter().map(|&rank| rank as u64).collect::<Vec<_>>());
    // A group of a group, and of one.
    let alone = group.split(group.member())?;
    assert_eq!((alone.size(), alone.member()), (1, 0));
    assert_eq!(alone.all_reduce_one(5_i32, ops::sum)?, 5);
    alone.sync()?;
    group.sync()?;
    job.sync()
}

/// Groups are alike: channels, counters and arrays of the members on a node, and of the first of each node.
pub(crate) fn of_nodes(job: &Job) -> Result<(), Error> {
    let (node, leaders) = (job.node_group()?, job.leader_group()?);
    let here = (0..job.size()).filter(|&rank| job.node_of(rank) == job.node());
    assert!(node.ranks().eq(here));
    assert_eq!(leaders.is_some(), node.member() == 0);
    for group in [Some(&node), leaders.as_ref()].into_iter().flatten() {
        let (own, size) = (group.member(), group.size());
        let counter = Counter::new(group)?;
        counter.fetch_add(1)?;
        group.sync()?;
        assert_eq!(counter.get()?, size);
        let mut a = GlobalArray1::<u64>::builder(group, [3 * size]).create()?;
        a.fill(2)?;
        assert_eq!(a.sum()?, 6 * size as u64);
        let [right, left] = [own + 1, own + size - 1].map(|member| member % size);
        let (mut outlets, mut inlets) = group.channels([channel::to::<usize>(right, 0, 1)], [channel::from::<usize>(left, 0)])?;
        outlets[0].put(&[own])?;
        assert_eq!(*inlets[0].wait()?, [left]);
        group.sync()?;
    }
    assert_eq!(leaders.map_or(job.nodes(), |leaders| leaders.size()), job.nodes());
    job.sync()
}

pub(crate) fn another_order(job: &Job) -> Result<(), Error> {
    let backwards: Vec<usize> = (0..job.size()).rev().collect();
    let group = job.subgroup(&backwards)?;
    assert_eq!(group.member(), job.size() - 1 - job.rank());
    let mut data = [job.rank() as u64];
    group.broadcast(0, &mut data)?;
    assert_eq!(data[0], job.size() as u64 - 1, "member 0 is the last rank");
    let ranks = group.all_gather(&[job.rank() as u64])?;
    assert!(ranks.iter().rev().copied().eq(0..job.size() as u64));
    // Part of the ranks, in another order, while the others do something else.
    if job.size() >= 3 && job.rank() < 3 {
        let three = job.subgroup(&[1, 2, 0])?;
        assert_eq!(three.all_gather(&[job.rank() as u8])?, [1, 2, 0]);
    }
    // The same list twice makes two groups.
    let again = job.subgroup(&backwards)?;
    again.sync()?;
    group.sync()?;
    let size = job.size();
    let refused = [(0..0, 1), (0..size + 1, 1), (0..size, 0), (job.rank() + 1..size, 1), (0..size, size + job.rank())];
    for (range, stride) in refused.into_iter().take(if job.rank() > 0 { 5 } else { 4 }) {
        assert!(job.subgroup_range(range.clone(), stride).is_err(), "{range:?} in steps of {stride}");
    }
    let alone = job.subgroup_range(job.rank()..size, size + 1)?;
    assert_eq!(alone.ranks().collect::<Vec<_>>(), [job.rank()]);
    // Every second one of a group in another order, and in one that is no range.
    if group.member().is_multiple_of(2) {
        let half = group.subgroup_range(0..size, 2)?;
        assert!(half.ranks().eq(backwards.iter().copied().step_by(2)));
        assert_eq!(half.all_gather(&[job.rank()])?, half.ranks().collect::<Vec<_>>());
    }
    assert!(
        job.subgroup(&[]).is_err() && job.subgroup(&[job.size()]).is_err() && job.subgroup(&[job.rank(), job.rank()]).is_err()
    );
    job.sync()
}

pub(crate) fn places(job: &Job) -> Result<(), Error> {
    let odd = job.subgroup_range(job.rank() % 2..job.size(), 2)?;
    for group in [job.as_ref(), &odd] {
        assert_eq!(group.member_of(job.rank()), Some(group.member()));
        assert!(
            group
                .ranks()
                .enumerate()
                .all(|(member, rank)| group.rank_of(member) == rank && group.member_of(rank) == Some(member))
        );
        assert_eq!(group.node_of(group.member()), job.node());
        let nodes = group.all_gather(&[job.node()])?;
        assert!(nodes.iter().enumerate().all(|(member, &node)| group.node_of(member) == node));
        assert_eq!(group.nodes(), nodes.into_iter().collect::<std::collections::HashSet<_>>().len());
        assert!(group.fence(group.size()).is_err());
        group.fence(0)?;
    }
    assert_eq!(odd.member_of((job.rank() + 1) % 2), None);
    job.sync()
}

pub(crate) fn arrays(job: &Job) -> Result<(), Error> {
    let world = GlobalArray::<i64, Ix1>::builder(job, [20]).zeros().create()?;
    let group = job.split(job.rank() % 2)?;
    let a = GlobalArray::<i64, Ix2>::builder(&group, [8, 10]).name("half").zeros().create()?;
    let tasks = Counter::new(&group)?;
    let locks = Locks::with_count(&group, 3)?;
    while let Some(task) = tasks.next_below(80)? {
        let guard = locks.lock(task % 3)?;
        a.accumulate(s![task / 10, ..], 1, &Array1::ones(10))?;
        guard.unlock()?;
        world.accumulate(.., 1, &Array1::ones(20))?;
    }
    group.sync()?;
    assert!(a.get(..)?.iter().all(|&x| x == 10));
    job.sync()?;
    let groups = if job.size() > 1 { 2 } else { 1 };
    assert!(world.get(..)?.iter().all(|&x| x == 80 * groups));
    group.sync()?;
    // A world array made after one of a group.
    let late = GlobalArray::<i64, Ix1>::builder(job, [64]).fill(3).create()?;
    a.put(.., &Array2::zeros([8, 10]))?;
    job.sync()?;
    assert_eq!(late.get(..)?.sum(), 192);
    a.destroy()?;
    job.sync()
}

/// The locks of accumulates are the ranks', whatever their numbers in a group.
pub(crate) fn lists_in_groups_of_opposite_orders(job: &Job) -> Result<(), Error> {
    let n = 1024;
    // Enough for two to meet; each element is a transfer where memory is not mapped.
    let rounds = if job.capabilities().window == usize::MAX { 1000 } else { 5 };
    let backwards: Vec<usize> = (0..job.size()).rev().collect();
    let group = job.subgroup(&backwards)?;
    let world = GlobalArray::<u64, Ix1>::builder(job, [n]).zeros().create()?;
    let other = GlobalArray::<u64, Ix1>::builder(&group, [n]).zeros().create()?;
    let subscripts: Vec<[usize; 1]> = (0..600).map(|k| [k * 37 % n]).collect();
    let mine = if job.rank().is_multiple_of(2) { &world } else { &other };
    job.sync()?;
    for _ in 0..rounds {
        mine.scatter_accumulate(&subscripts, 1, &[1; 600])?;
    }
    job.sync()?;
    let sum = world.get(..)?.sum() + other.get(..)?.sum();
    assert_eq!(sum, 600 * rounds * job.size() as u64);
    job.sync()
}

/// Groups and what was made on them come and go; memory does not grow, and a member that leaves first harms nobody.
pub(crate) fn in_a_loop(job: &Job) -> Result<(), Error> {
    let mut after_some = 0;
    for round in 0..60_u64 {
        let group = job.split((job.rank() + round as usize) % 2)?;
        let a = GlobalArray::<u64, Ix1>::builder(&group, [100_000]).fill(round).create()?;
        assert_eq!(a.get(..)?.sum(), 100_000 * round);
        group.barrier()?;
        let all = group.all_gather(&[round; 40])?;
        drop((a, group));
        assert!(all.iter().all(|&x| x == round));
        if round == 10 {
            after_some = job.memory().asked;
        }
    }
    // Rank 0 leaves one group and makes the next while others are still in the first.
    for _ in 0..60 {
        for other in 1..job.size() {
            if [0, other].contains(&job.rank()) {
                let pair = job.subgroup(&[0, other])?;
                pair.barrier()?;
                assert_eq!(pair.all_gather(&[job.rank()])?, [0, other]);
                pair.barrier()?;
            }
        }
    }
    job.sync()?;
    let after_all = job.memory().asked;
    let pairs = 300_000 * (job.size() as u64 - 1);
    assert!(after_all <= after_some + pairs, "{after_some} bytes after 10 rounds, {after_all} after 60");
    Ok(())
}

/// Groups of groups of groups, in orders of their own, with arrays and counters on each depth, used in turn.
pub(crate) fn three_deep(job: &Job) -> Result<(), Error> {
    let backwards = |group: &Group| -(group.member() as isize);
    let first = job.split_ordered(job.rank() % 2, backwards(job))?;
    let second = first.split_ordered(first.member() * 2 / first.size(), backwards(&first))?;
    let third = second.split_ordered(second.member() % 2, 0)?;
    let groups: [&Group; 4] = [job.as_ref(), &first, &second, &third];
    let same_parity: Vec<usize> = (0..job.size()).rev().filter(|rank| rank % 2 == job.rank() % 2).collect();
    assert_eq!(first.ranks().collect::<Vec<_>>(), same_parity);
    let half = same_parity.iter().enumerate().filter(|(at, _)| at * 2 / first.size() == first.member() * 2 / first.size());
    assert!(second.ranks().eq(half.map(|(_, &rank)| rank).rev()), "{:?}", second.ranks());
    assert!(third.ranks().eq(second.ranks().enumerate().filter(|(at, _)| at % 2 == second.member() % 2).map(|(_, rank)| rank)));
    // Each depth in turn, from the smallest group outwards and back.
    let made = |group: &Group| GlobalArray::<u64, Ix2>::builder(group, [6, 7]).tiled([2, 3]).zeros().create();
    let arrays = [made(groups[3])?, made(groups[0])?, made(groups[2])?, made(groups[1])?];
    let counters = [Counter::new(&third)?, Counter::new(job)?, Counter::new(&second)?, Counter::new(&first)?];
    for round in 0..3_u64 {
        for ((array, counter), group) in arrays.iter().zip(&counters).zip([3, 0, 2, 1].map(|depth| groups[depth])) {
            while counter.next_below((round as usize + 1) * 12)?.is_some() {
                array.accumulate(s![1..5, ..], 1, &Array2::ones([4, 7]))?;
            }
            group.sync()?;
            // Each member may draw one ticket too many in each round.
            let added = array.load([1, 1])?;
            assert!(added <= 12 * (round + 1) && (round > 0 || added == 12), "{added} of {} members", group.size());
            assert_eq!(group.all_reduce_one(array.load([4, 6])?, ops::min)?, group.all_reduce_one(added, ops::max)?);
        }
        job.barrier()?;
    }
    // A group of one has arrays and collectives of its own, and a group of its own.
    let alone = third.split_ordered(third.member(), 5)?.subgroup(&[0])?;
    let mut own = GlobalArray::<i32, Ix1>::builder(&alone, [5]).restrict([0]).fill(job.rank() as i32).create()?;
    own.owner_epoch(|mut part| part.iter_mut().for_each(|x| *x += 1))?;
    assert_eq!(own.sum()?, 5 * (job.rank() as i32 + 1));
    // Some of a group, of whom each makes the same list, while the others wait in a collective of the parent.
    if first.size() > 2 && first.member() != 1 {
        let list: Vec<usize> = (0..first.size()).filter(|&member| member != 1).collect();
        let some = first.subgroup(&list)?;
        assert_eq!(some.all_reduce_one(1_u64, ops::sum)?, first.size() as u64 - 1);
    }
    first.sync()?;
    assert!(third.subgroup(&[third.size()]).is_err());
    job.sync()
}

/// Start, a group of every second rank, arrays of both, end: nothing of it may take each rank a time that grows as their number.
pub(crate) fn of_many_ranks(launch: &Launch) {
    let run = launch.run(|job| {
        let (rank, size) = (job.rank(), job.size());
        let a = GlobalArray::<u64, Ix1>::builder(job, [size]).zeros().create()?;
        a.store([(rank + 1) % size], rank as u64)?;
        if rank.is_multiple_of(2) {
            let even = job.subgroup_range(0..size, 2)?;
            let b = GlobalArray::<u64, Ix1>::builder(&even, [even.size()]).fill(1).create()?;
            assert_eq!(b.sum()?, even.size() as u64);
        }
        job.sync()?;
        assert_eq!(a.load([rank])?, ((rank + size - 1) % size) as u64);
        job.sync()
    });
    run.unwrap_or_else(|error: Error| panic!("{error}"));
}

/// Each rank looks at some of the others at a time, and finds the one that matters.
pub(crate) fn deadlock_among_many(network: &str, ranks: usize) {
    let (holds, waits) = (1, ranks - 2);
    let run = Launch::new().network(network).ranks(ranks).heap(1 << 20).run(|job| {
        let locks = Locks::new(job)?;
        let held = if job.rank() == holds { Some(locks.lock(0)?) } else { None };
        job.barrier()?;
        if job.rank() == waits {
            locks.lock(0)?.unlock()?;
        }
        job.barrier()?;
        held.map_or(Ok(()), |held| held.unlock())
    });
    let said = run.map_err(|error: Error| error.to_string()).expect_err("a deadlock");
    let who = [
        format!("rank {waits} waits for lock 0"),
        format!("which rank {holds} holds"),
        format!("rank {holds} waits for rank {waits}"),
    ];
    assert!(who.iter().all(|words| said.contains(words)), "{said}");
}
