//! Single elements: load, store, atomic operations, lists.

use std::fmt::Debug;

use bytemuck::{Pod, Zeroable};
use global_arrays::{AtomicInteger, FetchOp, prelude::*};
use num_complex::Complex;

use crate::random::Random;

/// What a user's program would keep of a particle.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Particle {
    pub(crate) place: [f64; 3],
    pub(crate) charge: f32,
    pub(crate) kind: u32,
}

pub(crate) fn every_type(job: &Job) -> Result<(), Error> {
    fn holds<T: Element + PartialEq + Debug>(job: &Job, value: impl Fn(usize) -> T) -> Result<(), Error> {
        let n = 29;
        let a = GlobalArray::<T, Ix1>::builder(job, [n]).fill(value(1000)).create()?;
        assert_eq!(a.load([n - 1])?, value(1000));
        job.sync()?;
        for k in (0..n).filter(|k| k % job.size() == job.rank()) {
            a.store([n - 1 - k], value(k))?;
            assert_eq!(a.load([n - 1 - k])?, value(k), "a rank reads its own store");
        }
        job.sync()?;
        assert_eq!(a.get(..)?.to_vec(), (0..n).rev().map(&value).collect::<Vec<_>>());
        let patch = a.get(s![3..20;4])?;
        job.sync()?;
        if job.rank() == 0 {
            a.put(s![4..21;4], &patch)?;
        }
        job.sync()?;
        assert_eq!(a.load([8])?, value(n - 1 - 7));
        job.sync()
    }
    holds(job, |k| k as u8)?;
    holds(job, |k| k as i16 - 5)?;
    holds(job, |k| k as u32)?;
    holds(job, |k| k as f32 / 3.0)?;
    holds(job, |k| k as f64 / 3.0)?;
    holds(job, |k| k as i128 - 7)?;
    holds(job, |k| Complex::new(k as f64, -1.0))?;
    holds(job, |k| Complex::new(k as f32, 2.5))?;
    holds(job, |k| [k as u8, 1, 2])?;
    holds(job, |k| Particle { place: [k as f64, 0.5, -1.0], charge: 1.5, kind: k as u32 })?;
    // The arithmetic of complex numbers.
    let a = GlobalArray::<Complex<f64>, Ix1>::builder(job, [9]).fill(Complex::new(1.0, 0.0)).create()?;
    a.accumulate(.., Complex::i(), &Array1::from_elem(9, Complex::new(0.0, 2.0)))?;
    job.sync()?;
    assert_eq!(a.load([8])?, Complex::new(1.0 - 2.0 * job.size() as f64, 0.0));
    job.sync()
}

pub(crate) fn atomics(job: &Job) -> Result<(), Error> {
    fn one_type<T: AtomicInteger>(job: &Job, of: impl Fn(i64) -> T) -> Result<(), Error> {
        let a = GlobalArray::<T, Ix1>::builder(job, [4 * job.size()]).fill(of(10)).create()?;
        // An element of the next rank, used by this one alone.
        let at = [4 * ((job.rank() + 1) % job.size()) + 1];
        let mut value = of(10);
        let mut becomes = |old: T, new: T| {
            assert_eq!(old, value, "the value before");
            value = new;
            a.load(at).map(|now| assert_eq!(now, new))
        };
        becomes(a.fetch_add(at, of(5))?, of(15))?;
        becomes(a.fetch_op(at, FetchOp::Add, of(-4))?, of(11))?;
        becomes(a.fetch_op(at, FetchOp::And, of(0b1110))?, of(0b1010))?;
        becomes(a.fetch_op(at, FetchOp::Or, of(0b0101))?, of(0b1111))?;
        becomes(a.fetch_op(at, FetchOp::Xor, of(0b0011))?, of(0b1100))?;
        becomes(a.fetch_op(at, FetchOp::Min, of(7))?, of(7))?;
        becomes(a.fetch_op(at, FetchOp::Min, of(9))?, of(7))?;
        becomes(a.fetch_op(at, FetchOp::Max, of(9))?, of(9))?;
        becomes(a.fetch_op(at, FetchOp::Max, of(-1))?, of(9).max(of(-1)))?;
        becomes(a.swap(at, of(-3))?, of(-3))?;
        becomes(a.fetch_op(at, FetchOp::Min, of(2))?, of(-3).min(of(2)))?;
        becomes(a.swap(at, of(20))?, of(20))?;
        assert_eq!(a.compare_exchange(at, of(19), of(1))?, Err(of(20)));
        assert_eq!(a.load(at)?, of(20));
        assert_eq!(a.compare_exchange(at, of(20), of(1))?, Ok(of(20)));
        assert_eq!(a.load(at)?, of(1));
        job.sync()?;
        let touched = a.get(..)?.iter().filter(|&&value| value != of(10)).count();
        assert_eq!(touched, job.size(), "neighbours of the elements that were changed");
        job.sync()
    }
    one_type(job, |x| x as i32)?;
    one_type(job, |x| x as u32)?;
    one_type(job, |x| x)?;
    one_type(job, |x| x as u64)
}

pub(crate) fn atomics_of_all_ranks(job: &Job) -> Result<(), Error> {
    fn one_type<T: AtomicInteger>(job: &Job, of: impl Fn(u64) -> T) -> Result<(), Error> {
        const TIMES: u64 = 60;
        let a = GlobalArray::<T, Ix1>::builder(job, [7]).zeros().create()?;
        let (rank, size) = (job.rank() as u64, job.size() as u64);
        let mut seen = Vec::new();
        for k in 0..TIMES {
            seen.push(a.fetch_add([6], of(1))?);
            a.fetch_op([1], FetchOp::Max, of(k * size + rank))?;
            a.fetch_op([2], FetchOp::Or, of(1 << rank))?;
            a.fetch_op([3], FetchOp::Xor, of(1 << rank))?;
            // Add one by compare-and-swap.
            let mut old = a.load([4])?;
            while let Err(now) = a.compare_exchange([4], old, old.plus(of(1)))? {
                old = now;
            }
        }
        job.sync()?;
        assert!(seen.is_sorted() && seen.windows(2).all(|pair| pair[0] != pair[1]));
        let mut all = job.all_gather(&seen)?;
        all.sort_unstable();
        assert_eq!(all, (0..TIMES * size).map(&of).collect::<Vec<_>>(), "each number once");
        let expected = [0, TIMES * size - 1, (1 << size) - 1, 0, TIMES * size, 0, TIMES * size].map(of);
        assert_eq!(a.get(..)?.to_vec(), expected);
        job.sync()
    }
    one_type(job, |x| x as i32)?;
    one_type(job, |x| x as u32)?;
    one_type(job, |x| x as i64)?;
    one_type(job, |x| x)
}

pub(crate) fn lists(job: &Job) -> Result<(), Error> {
    let (rows, columns) = (17, 23);
    let a = GlobalArray::<f64, Ix2>::builder(job, [rows, columns]).block_cyclic([3, 4]).fill(-1.0).create()?;
    let value = |[i, j]: [usize; 2]| (i * columns + j) as f64;
    // Every element is written by one rank, in a scattered order.
    let all: Vec<[usize; 2]> =
        (0..rows * columns).map(|k| (k * 101) % (rows * columns)).map(|k| [k / columns, k % columns]).collect();
    let mine: Vec<[usize; 2]> = all.iter().copied().skip(job.rank()).step_by(job.size()).collect();
    let values: Vec<f64> = mine.iter().map(|&at| value(at)).collect();
    a.scatter(&mine, &values)?;
    job.sync()?;
    let mut random = Random::new(job.rank() as u64);
    let wanted: Vec<[usize; 2]> = (0..500).map(|_| [random.below(rows), random.below(columns)]).collect();
    let mut got = vec![0.0; wanted.len()];
    a.gather(&wanted, &mut got)?;
    assert!(wanted.iter().zip(&got).all(|(&at, &got)| got == value(at)));
    a.gather::<[usize; 2]>(&[], &mut [])?;
    a.scatter::<[usize; 2]>(&[], &[])?;
    job.sync()
}

pub(crate) fn lists_accumulate(job: &Job) -> Result<(), Error> {
    let n = 40;
    let a = GlobalArray::<f64, Ix1>::builder(job, [n]).block_cyclic([3]).zeros().create()?;
    let mut random = Random::new(99 + job.rank() as u64);
    let mut mine = vec![0.0; n];
    for _ in 0..3 {
        // More than two batches, with equal subscripts in each.
        let places: Vec<usize> = (0..300).map(|_| random.below(n)).collect();
        let values: Vec<f64> = (0..300).map(f64::from).collect();
        a.scatter_accumulate(&places, 2.0, &values)?;
        places.iter().zip(&values).for_each(|(&at, value)| mine[at] += 2.0 * value);
    }
    a.scatter_accumulate::<usize>(&[], 2.0, &[])?;
    assert!(a.scatter_accumulate(&[0, n], 1.0, &[1.0, 1.0]).is_err(), "nothing is added when a subscript is wrong");
    let late = [[0; 200].as_slice(), &[n]].concat();
    assert!(a.scatter_accumulate(&late, 1.0, &[1.0; 201]).is_err(), "nor in an earlier batch");
    job.sync()?;
    job.all_reduce(&mut mine, ops::sum)?;
    assert_eq!(a.get(..)?.to_vec(), mine);
    job.sync()
}

pub(crate) fn lists_of_atomics(job: &Job) -> Result<(), Error> {
    fn one_type<T: AtomicInteger>(job: &Job, of: impl Fn(i64) -> T) -> Result<(), Error> {
        let n = 40;
        let a = GlobalArray::<T, Ix1>::builder(job, [n]).block_cyclic([3]).zeros().create()?;
        // Everybody's lists, longer than what is under way at once, with equal subscripts.
        let places = |rank: usize| (0..300).map(move |k| (k * k + rank) % n);
        let mine: Vec<usize> = places(job.rank()).collect();
        a.scatter_op(&mine, FetchOp::Add, &vec![of(3); mine.len()])?;
        a.scatter_op::<usize>(&[], FetchOp::Add, &[])?;
        assert!(a.scatter_op(&[n], FetchOp::Add, &[of(1)]).is_err(), "a subscript outside");
        assert!(a.scatter_op(&[0, 1], FetchOp::Add, &[of(1)]).is_err(), "lists of different lengths");
        job.sync()?;
        let times: Vec<i64> =
            (0..n).map(|at| (0..job.size()).flat_map(places).filter(|&place| place == at).count() as i64).collect();
        assert_eq!(a.get(..)?.to_vec(), times.iter().map(|&times| of(3 * times)).collect::<Vec<_>>());
        job.sync()?;
        // Done twice, exclusive or leaves nothing behind; the least and the greatest are those of all.
        let values: Vec<T> = mine.iter().map(|&at| of(at as i64 - 7)).collect();
        a.scatter_op(&mine, FetchOp::Xor, &values)?;
        a.scatter_op(&mine, FetchOp::Xor, &values)?;
        job.sync()?;
        assert_eq!(a.get(..)?.to_vec(), times.iter().map(|&times| of(3 * times)).collect::<Vec<_>>());
        job.sync()?;
        a.scatter_op(&[job.rank(), n - 1], FetchOp::Min, &[of(-5), of(-5)])?;
        job.sync()?;
        let least = |at: usize| of(3 * times[at]).min(of(-5));
        assert_eq!((a.load([job.rank()])?, a.load([n - 1])?), (least(job.rank()), least(n - 1)));
        job.sync()
    }
    one_type(job, |x| x as i32)?;
    one_type(job, |x| x as u32)?;
    one_type(job, |x| x)?;
    one_type(job, |x| x as u64)
}

/// Accesses that race: an element that is loaded is old or new, of a patch each byte is.
pub(crate) fn racing(job: &Job) -> Result<(), Error> {
    const ROUNDS: u8 = 60;
    let a = GlobalArray::<u64, Ix1>::builder(job, [24]).zeros().create()?;
    let whole = |round: u8| u64::from_ne_bytes([round; 8]);
    for round in 0..ROUNDS {
        if job.rank() == 0 {
            (0..4).try_for_each(|at| a.store([6 * at], whole(round)))?;
            a.put(s![1..6], &Array1::from_elem(5, whole(round)))?;
            a.put(s![13..24;2], &Array1::from_elem(6, whole(round)))?;
        } else {
            for at in 0..4 {
                let x = a.load([6 * at])?;
                assert!(x == whole(x as u8) && (x as u8) < ROUNDS, "torn: {x:x}");
            }
            let bytes = a.get(..)?.iter().flat_map(|x| x.to_ne_bytes()).max();
            assert!(bytes < Some(ROUNDS), "neither old nor new: {bytes:?}");
        }
    }
    job.sync()?;
    assert_eq!((a.load([18])?, a.load([5])?, a.load([23])?), (whole(ROUNDS - 1), whole(ROUNDS - 1), whole(ROUNDS - 1)));
    job.sync()
}
