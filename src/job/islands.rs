//! Jobs in which some ranks share memory and others do not: what several roads could reach is reached by one of them only.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytemuck::{Pod, Zeroable};
use ndarray::{Array1, Ix1, s};

use super::{Job, Launch};
use crate::{
    Accumulate, Counter, Error, GlobalArray, Group, Locks, Signal,
    comm::islands::{Adapter, Islands},
    ops,
};

/// How long the ranks work at once: a processor's operations fall into the middle of many of the adapter's.
const TOGETHER: Duration = Duration::from_millis(100);

/// Four ranks on two islands.
fn on_islands(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    let launch = Launch::new().ranks(4).timeout(30.0);
    let adapter = Adapter { signals: false, ordered: false, island: 2, crowded: true };
    launch.run_over(|conduit| Arc::new(Islands::new(conduit, adapter)), body).unwrap();
}

/// Some ranks over every adapter, on islands of two, and on those of three that meet without a counter.
fn on_adapters(ranks: usize, body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for (signals, ordered) in [(false, false), (false, true), (true, false), (true, true)] {
        for (island, crowded) in [(2, true), (3, false)] {
            let adapter = Adapter { signals, ordered, island, crowded };
            let launch = Launch::new().ranks(ranks).timeout(30.0);
            launch.run_over(|conduit| Arc::new(Islands::new(conduit, adapter)), &body).unwrap();
        }
    }
}

/// Members of any order on any islands come to the same words, again and again.
#[test]
fn agreements_cross_islands() {
    for ranks in [1, 2, 3, 4, 5, 7] {
        on_adapters(ranks, |job| {
            // A leader in the middle, nodes torn apart in the order, nodes of one member.
            let scattered = job.split_ordered(0, (job.rank() * 3 % 7) as i64)?;
            let odd = job.split(u64::from(job.rank() % 3 == 0))?;
            let groups: [&Group; 3] = [job, &scattered, &odd];
            for round in 0..40_u64 {
                for group in groups {
                    let mine = 1 << group.rank();
                    let agreed = group.agree_values(crate::sync::Op::Barrier, 0, mine, mine, mine + round)?;
                    let all = (1 << group.size()) - 1;
                    assert_eq!((agreed.sum, agreed.union, agreed.max), (all, all, (1 << (group.size() - 1)) + round));
                }
            }
            job.sync()
        });
    }
}

/// Whoever left a barrier sees what every member had stored before it, on its island and, after a fence, elsewhere.
#[test]
fn barriers_wait_for_everybody() {
    on_adapters(7, |job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [7]).zeros().create()?;
        let order = job.split_ordered(0, -(job.rank() as i64))?;
        for round in 1..20 {
            if round as usize % 7 == job.rank() {
                std::thread::sleep(Duration::from_millis(1));
            }
            a.store([job.rank()], round)?;
            if round % 2 == 0 {
                job.sync()?
            } else {
                order.sync()?
            };
            assert_eq!(a.get(..)?.to_vec(), [round; 7]);
            job.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn collectives_cross_islands() {
    for ranks in [2, 3, 5, 7] {
        on_adapters(ranks, |job| {
            let scattered = job.split_ordered(0, (job.rank() * 3 % 7) as i64)?;
            for group in [job as &Group, &scattered] {
                for root in 0..group.size() {
                    let mut data = [0; 1000];
                    if group.rank() == root {
                        data = std::array::from_fn(|k| (k * ranks + root) as u64);
                    }
                    group.broadcast(root, &mut data)?;
                    assert!(data.iter().enumerate().all(|(k, &x)| x == (k * ranks + root) as u64), "root {root}");
                    let mut sums = [group.rank() as u64 + root as u64; 100];
                    group.all_reduce(&mut sums, ops::sum)?;
                    assert_eq!(sums, [((ranks - 1) * ranks / 2 + ranks * root) as u64; 100]);
                }
                let all = group.all_gather(&[group.rank(); 10])?;
                assert!(all.iter().enumerate().all(|(k, &member)| member == k / 10));
            }
            job.sync()
        });
    }
}

#[test]
fn data_come_before_their_signal() {
    on_adapters(4, |job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [4 * 512]).zeros().create()?;
        let signals = Signal::several(job, 2)?;
        let (next, before) = ((job.rank() + 1) % 4, (job.rank() + 3) % 4);
        for round in 1..=50_u32 {
            a.put_signal(s![512 * next..512 * (next + 1)], &Array1::from_elem(512, u64::from(round)), &signals, 0, next)?;
            signals.wait_at_least(0, round)?;
            let here = a.get(s![512 * job.rank()..512 * (job.rank() + 1)])?;
            assert!(here.iter().all(|&x| x == u64::from(round)), "{here}");
            // What came has been read.
            signals.notify(1, before)?;
            signals.wait_at_least(1, round)?;
        }
        // All raise the same one.
        job.sync()?;
        (0..25).try_for_each(|_| (0..4).try_for_each(|rank| signals.notify(1, rank)))?;
        signals.wait_at_least(1, 150)?;
        job.sync()?;
        assert_eq!(signals.count(1)?, 150);
        Ok(())
    });
}

/// Repeats a step on all ranks for some time; returns how often all of them together did it.
fn together(job: &Job, mut step: impl FnMut(usize) -> Result<(), Error>) -> Result<usize, Error> {
    job.sync()?;
    let (start, mut times) = (Instant::now(), 0);
    while start.elapsed() < TOGETHER {
        step(times)?;
        times += 1;
    }
    job.sync()?;
    job.all_reduce_one(times as u64, ops::sum).map(|times| times as usize)
}

#[test]
fn counters_lose_nothing() {
    on_islands(|job| {
        let counter = Counter::new(job)?;
        let times = together(job, |_| counter.fetch_add(1).map(|_| ()))?;
        assert_eq!(counter.get()?, times as u64);
        job.sync()
    });
}

#[test]
fn elements_lose_nothing() {
    on_islands(|job| {
        let a = GlobalArray::<i32, Ix1>::builder(job, [8]).zeros().create()?;
        let times = together(job, |_| a.read_increment([1], 1).map(|_| ()))?;
        assert_eq!(a.load([1])?, times as i32);
        together(job, |k| {
            if job.rank() > 0 {
                return a.read_increment([0], 0).map(|_| ());
            }
            a.store([0], k as i32)?;
            assert_eq!(a.load([0])?, k as i32, "a store that an atomic operation undid");
            Ok(())
        })?;
        job.sync()
    });
}

#[test]
fn locks_exclude() {
    on_islands(|job| {
        let locks = Locks::new(job, 1)?;
        let a = GlobalArray::<f64, Ix1>::builder(job, [4]).zeros().create()?;
        let times = together(job, |_| {
            let guard = locks.lock(0)?;
            a.store([3], a.load([3])? + 1.0)?;
            guard.unlock()
        })?;
        assert_eq!(a.load([3])?, times as f64);
        job.sync()
    });
}

/// A number that takes its time to be added: who adds beside the lock is seen.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
struct Slow(i64);

impl Accumulate for Slow {
    const ZERO: Self = Slow(0);
    const ONE: Self = Slow(1);
    fn plus(self, other: Self) -> Self {
        std::thread::sleep(Duration::from_micros(20));
        Slow(self.0 + other.0)
    }
    fn times(self, other: Self) -> Self {
        Slow(self.0 * other.0)
    }
    fn magnitude(self) -> f64 {
        self.0 as f64
    }
}

#[test]
fn accumulates_of_the_world_and_of_an_island_do_not_meet() {
    on_islands(|job| {
        let island = job.split(job.rank() as u64 / 2)?;
        let wide = GlobalArray::<i64, Ix1>::builder(job, [8]).zeros().create()?;
        let near = GlobalArray::<Slow, Ix1>::builder(&island, [4]).zeros().create()?;
        let (ones, slow) = (Array1::ones(8), Array1::from_elem(4, Slow::ONE));
        let mut mine = 0;
        let times = together(job, |_| {
            wide.accumulate(.., 1, &ones)?;
            wide.scatter_accumulate(&[7, 0, 7], 1, &[1, 1, 1])?;
            mine += 20;
            (0..20).try_for_each(|_| near.accumulate(.., Slow::ONE, &slow))
        })?;
        let all = times as i64;
        assert_eq!(wide.get(..)?.to_vec(), [2 * all, all, all, all, all, all, all, 3 * all]);
        let pair = island.all_reduce_one(mine, ops::sum)?;
        assert!(near.get(..)?.iter().all(|&sum| sum == Slow(pair)));
        job.sync()
    });
}

#[test]
fn a_rank_reads_what_it_scattered() {
    on_islands(|job| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [32]).zeros().create()?;
        let mine: Vec<usize> = (0..32).filter(|k| k % job.size() == job.rank()).collect();
        let values: Vec<f64> = mine.iter().map(|&k| k as f64 + 1.0).collect();
        a.scatter(&mine, &values)?;
        let mut got = vec![0.0; mine.len()];
        a.gather(&mine, &mut got)?;
        assert_eq!(got, values);
        for (&k, &value) in mine.iter().zip(&values) {
            assert_eq!(a.load([k])?, value);
        }
        job.sync()
    });
}
