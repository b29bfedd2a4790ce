//! What a job counts: exactly what each rank of a small program did to whom, the same on every network.
#![allow(clippy::single_range_in_vec_init, reason = "one range for each axis, of which there is one")]

use std::collections::{BTreeMap, BTreeSet};

use global_arrays::{FetchOp, Side, Tally, Traffic, prelude::*};

/// Elements that each rank owns of a vector.
const BLOCK: usize = 10;

/// What one rank must have done, by rank of the owner.
#[derive(Default)]
struct Expected(BTreeMap<usize, Traffic>);

impl Expected {
    fn add(&mut self, kind: fn(&mut Traffic) -> &mut Tally, owner: usize, bytes: u64) {
        let tally = kind(self.0.entry(owner).or_default());
        tally.operations += 1;
        tally.bytes += bytes;
    }

    fn put(&mut self, owner: usize, bytes: u64) {
        self.add(|traffic| &mut traffic.put, owner, bytes);
    }

    fn get(&mut self, owner: usize, bytes: u64) {
        self.add(|traffic| &mut traffic.get, owner, bytes);
    }

    fn accumulate(&mut self, owner: usize, bytes: u64) {
        self.add(|traffic| &mut traffic.accumulate, owner, bytes);
    }

    fn atomic(&mut self, owner: usize, bytes: u64) {
        self.add(|traffic| &mut traffic.atomic, owner, bytes);
    }

    fn signal(&mut self, owner: usize) {
        self.add(|traffic| &mut traffic.signal, owner, 4);
    }

    /// Compares with what the job counted, and starts again.
    fn check(&mut self, job: &Job, since: &global_arrays::Stats, what: &str) -> global_arrays::Stats {
        let now = job.stats().expect("a job that counts");
        let phase = now.since(since);
        let mut expected = std::mem::take(&mut self.0);
        assert_eq!(phase.local(), expected.remove(&job.rank()).unwrap_or_default(), "{what}: the own part");
        let counted: BTreeMap<usize, Traffic> = phase.peers().map(|(rank, &traffic)| (rank, traffic)).collect();
        assert_eq!(counted, expected, "{what}: rank {}", job.rank());
        assert_eq!(phase.distinct_peers(), expected.len(), "{what}");
        let node = |rank: usize| (0..).find(|&node| job.node_ranks(node).contains(&rank));
        let nodes: BTreeSet<_> = expected.keys().map(|&rank| node(rank)).collect();
        assert_eq!(phase.distinct_nodes(), nodes.len(), "{what}");
        now
    }
}

/// A job that counts, and one that does not.
pub(crate) fn jobs(network: &str, ranks: usize) -> Result<(), Error> {
    let launch = crate::runner::launch(network).ranks(ranks).memory(1 << 30);
    let hidden = [":unmapped", "+hidden", "simulated:"].iter().any(|word| network.contains(word));
    launch.clone().stats(true).run(|job| counted(job, hidden))?;
    // What is no patch of the array is found before it is counted.
    launch.clone().stats(true).run(crate::patches::beyond_all_bounds)?;
    launch.stats(false).run(|job| {
        assert_eq!(job.stats(), None);
        job.sync()
    })
}

/// Counts a small program; `hidden` if nobody sees anybody's memory.
fn counted(job: &Job, hidden: bool) -> Result<(), Error> {
    let (me, size) = (job.rank(), job.size());
    let next = (me + 1) % size;
    let mut expected = Expected::default();
    let start = job.stats().expect("a job that counts");

    // Creation, filling, collectives, agreements and epochs do not count.
    let mut a = GlobalArray::<f64, Ix1>::builder(job, [BLOCK * size]).zeros().create()?;
    let words = GlobalArray::<i32, Ix1>::builder(job, [BLOCK * size]).zeros().create()?;
    let wide = GlobalArray::<u64, Ix2>::builder(job, [8, 8]).block_cyclic([1, 1]).zeros().create()?;
    let (counter, locks, signal) = (Counter::new(job)?, Locks::with_count(job, size)?, Signal::new(job)?);
    a.owner_epoch(|mut part| part.fill(1.0))?;
    job.all_reduce_one(1.0, ops::sum)?;
    job.all_gather(&[me])?;
    job.sync()?;
    let mark = expected.check(job, &start, "collectives");

    // Patches: once for each owner.
    let at = BLOCK * next;
    a.get(s![at..at + BLOCK])?;
    expected.get(next, 80);
    a.get(..)?;
    (0..size).for_each(|owner| expected.get(owner, 80));
    a.get(s![at..at;1])?;
    let one = a.get(s![at + 3])?;
    expected.get(next, 8);
    a.put(s![at + 3], &one)?;
    expected.put(next, 8);
    let mut few = Array1::zeros(4);
    a.get_into(s![at..at + 8;2], &mut few)?;
    expected.get(next, 32);
    a.accumulate(s![at..at + 4], 0.5, &few)?;
    expected.accumulate(next, 32);
    a.accumulate(.., 1.0, &Array1::zeros(BLOCK * size))?;
    (0..size).for_each(|owner| expected.accumulate(owner, 80));
    wide.get(..)?;
    for owner in 0..size {
        let elements = wide.blocks(owner).map(|block| block.patch.len() as u64).sum::<u64>();
        if elements > 0 {
            expected.get(owner, 8 * elements);
        }
    }
    assert!(a.get(s![..=BLOCK * size]).is_err(), "what is refused does not count");
    let mark = expected.check(job, &mark, "patches");

    // The same while the rank computes.
    a.get_nb(s![at..at + 5])?.wait()?;
    expected.get(next, 40);
    a.put_nb(s![at..at + 4], few.clone())?.wait()?;
    expected.put(next, 32);
    a.accumulate_nb(s![at..at + 4], 1.0, few.clone())?.wait()?;
    expected.accumulate(next, 32);
    let mut lent = Array1::zeros(BLOCK);
    job.scope(|scope| {
        scope.get_into(&a, s![at..at + BLOCK], &mut lent)?;
        scope.put(&a, s![at..at + 4], &few)
    })?;
    expected.get(next, 80);
    expected.put(next, 32);
    let mark = expected.check(job, &mark, "transfers under way");

    // Elements and lists.
    a.store([at], 2.0)?;
    expected.put(next, 8);
    a.load([at])?;
    expected.get(next, 8);
    words.store([at], 7)?;
    expected.put(next, 4);
    words.load([at])?;
    expected.get(next, 4);
    words.fetch_op([at], FetchOp::Xor, 1)?;
    words.fetch_add([at], 1)?;
    expected.atomic(next, 4);
    expected.atomic(next, 4);
    wide.swap([0, 0], 9)?;
    expected.atomic(wide.owner([0, 0])?, 8);
    let list = [at, at + 5, BLOCK * me];
    let mut values = [0.0; 3];
    let mut listed = |add: fn(&mut Expected, usize, u64)| {
        if me == next {
            add(&mut expected, me, 24);
        } else {
            add(&mut expected, next, 16);
            add(&mut expected, me, 8);
        }
    };
    a.gather(&list, &mut values)?;
    listed(Expected::get);
    a.scatter(&list, &values)?;
    listed(Expected::put);
    a.scatter_accumulate(&list, 1.0, &values)?;
    listed(Expected::accumulate);
    words.scatter_op(&[at, at + 1], FetchOp::Add, &[1, 1])?;
    expected.atomic(next, 8);
    let mark = expected.check(job, &mark, "elements and lists");

    // Words of the job, and a group in another order.
    counter.fetch_add(1)?;
    expected.atomic(0, 8);
    locks.lock(me)?.unlock()?;
    expected.atomic(me, 8);
    expected.atomic(me, 8);
    signal.at(next, 0).notify()?;
    expected.signal(next);
    signal.wait_at_least(0, 1)?;
    let reverse: Vec<usize> = (0..size).rev().collect();
    let group = job.subgroup(&reverse)?;
    let b = GlobalArray::<f64, Ix1>::builder(&group, [size]).zeros().create()?;
    b.store([0], 1.0)?;
    expected.put(size - 1, 8);
    a.put_signal(s![at..at + 4], &few, signal.at(next, 0))?;
    expected.put(next, 32);
    expected.signal(next);
    signal.wait_at_least(0, 2)?;
    let mark = expected.check(job, &mark, "words and groups");

    // Whole arrays count by what is fetched: here one patch from each owner of what this rank owns of the other.
    let mut c = GlobalArray::<f64, Ix1>::builder(job, [BLOCK * size]).zeros().create()?;
    c.assign(a.at(s![..;-1]))?;
    expected.get(size - 1 - me, 80);
    let mark = expected.check(job, &mark, "whole arrays");

    // Ghost cells by the boxes of a halo, indices that come round by the boxes between the ends.
    let mut ring = GlobalArray::<f64, Ix1>::builder(job, [BLOCK * size]).ghosts([2]).zeros().create()?;
    let before = (me + size - 1) % size;
    ring.update_ghosts()?;
    ring.update_ghosts_nb()?.wait()?;
    job.epoch(ring.ghosts(), |_| ())?;
    for _ in 0..3 {
        expected.get(before, 16);
        expected.get(next, 16);
    }
    ring.update_ghosts_at(0, Side::High)?;
    expected.get(next, 16);
    let end = (BLOCK * size) as i64;
    let round = ring.periodic().get(-1..end + 1)?;
    expected.get(size - 1, 8);
    (0..size).for_each(|owner| expected.get(owner, 80));
    expected.get(0, 8);
    ring.periodic().accumulate(-1..1, 1.0, round.slice(s![..2]))?;
    expected.accumulate(size - 1, 8);
    expected.accumulate(0, 8);
    let mark = expected.check(job, &mark, "ghost cells and periodic patches");

    // A matrix of fewer rows than a square that is paired at once: what lies left of this rank's rows on the diagonal.
    let mut square = GlobalArray::<f64, Ix2>::builder(job, [100, 100]).grid([size, 1]).zeros().create()?;
    square.symmetrize()?;
    let rows = |owner: usize| square.blocks(owner).map(|block| block.patch.count()[0] as u64).sum::<u64>();
    for owner in (0..me).filter(|&owner| rows(owner) * rows(me) > 0) {
        expected.get(owner, 8 * rows(owner) * rows(me));
        expected.put(owner, 8 * rows(owner) * rows(me));
    }
    let mark = expected.check(job, &mark, "pairs");

    // Several threads of a rank, where they may call.
    let loads = || (0..25).try_for_each(|_| a.load([at]).map(|_| ())).expect("loads");
    if job.capabilities().threads {
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(loads))));
    } else {
        (0..4).for_each(|_| loads());
    }
    (0..100).for_each(|_| expected.get(next, 8));
    expected.check(job, &mark, "threads");

    let most = job.stats().expect("a job that counts").most_in_flight();
    let by_network = hidden || job.node_ranks(job.node()).len() < size;
    assert_eq!(most > 0, by_network, "{most} transfers in flight");
    job.sync()
}
