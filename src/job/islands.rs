//! Jobs in which some ranks share memory and others do not: what several roads could reach is reached by one of them only.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytemuck::{Pod, Zeroable};
use ndarray::{Array1, Ix1};

use super::{Job, Launch};
use crate::{Accumulate, Counter, Error, GlobalArray, Locks, comm::islands::Islands, ops};

/// How long the ranks work at once: a processor's operations fall into the middle of many of the adapter's.
const TOGETHER: Duration = Duration::from_millis(100);

/// Four ranks on two islands.
fn on_islands(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    let launch = Launch::new().ranks(4).timeout(30.0);
    launch.run_over(|conduit| Arc::new(Islands::new(conduit)), body).unwrap();
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
