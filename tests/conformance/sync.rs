//! Counters, locks, signals, fences.

use std::time::{Duration, Instant};

use global_arrays::prelude::*;

pub(crate) fn counters(job: &Job) -> Result<(), Error> {
    let counters = [Counter::new(job)?, Counter::with_owner(job, job.size() - 1)?];
    for counter in &counters {
        for round in 1..3 {
            let mut mine = Vec::new();
            while let Some(task) = counter.next_below(200)? {
                mine.push(task);
            }
            let sum = job.all_reduce_one(mine.iter().sum::<usize>(), ops::sum)?;
            let count = job.all_reduce_one(mine.len(), ops::sum)?;
            assert_eq!((sum, count), (199 * 100, 200), "round {round}");
            assert_eq!(counter.get()?, 200 + job.size());
            counter.reset(0)?;
        }
    }
    for counter in &counters {
        // Chunks and single numbers.
        let mut mine = 0;
        while let Some(chunk) = counter.next_chunk(100, 7)? {
            mine += chunk.len();
        }
        assert_eq!(job.all_reduce_one(mine, ops::sum)?, 100);
        for _ in 0..3 {
            assert_eq!(counter.next_chunk(10, 1 << 63)?, None);
        }
        job.sync()?;
        counter.reset(95)?;
        let mine = counter.below(100).collect::<Result<Vec<_>, _>>()?;
        assert_eq!(job.all_reduce_one(mine.iter().sum::<usize>(), ops::sum)?, (95..100).sum::<usize>());
        counter.reset(0)?;
    }
    assert!(Counter::with_owner(job, job.size()).is_err());
    job.sync()
}

/// A load and a store under the lock: an increment that is not atomic is lost if two are inside.
pub(crate) fn locks_exclude(job: &Job) -> Result<(), Error> {
    const TIMES: i64 = 40;
    let locks = Locks::with_count(job, 2 * job.size() + 1)?;
    let a = GlobalArray::<i64, Ix1>::builder(job, [locks.len()]).zeros().create()?;
    for k in 0..TIMES {
        let lock = [0, locks.len() - 1][k as usize % 2];
        let guard = locks.lock(lock)?;
        let value = a.load([lock])?;
        std::hint::spin_loop();
        a.store([lock], value + 1)?;
        if k % 3 == 0 { drop(guard) } else { guard.unlock()? }
    }
    job.sync()?;
    assert_eq!(a.load([0])? + a.load([locks.len() - 1])?, TIMES * job.size() as i64);
    assert!(locks.lock(locks.len()).is_err());
    job.sync()
}

/// What the holder of a lock put anywhere is there for the next holder, forgotten handles included.
pub(crate) fn locks_hand_over(job: &Job) -> Result<(), Error> {
    const TIMES: u64 = 30;
    let size = job.size();
    let locks = Locks::with_count(job, size)?;
    let a = GlobalArray::<u64, Ix1>::builder(job, [4 * size]).zeros().create()?;
    for round in 0..TIMES {
        let guard = locks.lock(size - 1)?;
        let seen = a.get(..)?;
        assert!(seen.iter().all(|&x| x == seen[0]), "round {round}: {seen}");
        // In single elements, that is in several transfers to each rank.
        for k in 0..4 * size {
            std::mem::forget(a.put_nb(k..k + 1, Array1::from_elem(1, seen[0] + 1))?);
        }
        if round % 2 == 0 { drop(guard) } else { guard.unlock()? }
    }
    job.sync()?;
    assert!(a.get(..)?.iter().all(|&x| x == TIMES * size as u64));
    job.sync()
}

/// A rank that holds its lock keeps nobody from another one.
pub(crate) fn locks_are_distinct(job: &Job) -> Result<(), Error> {
    let locks = Locks::with_count(job, 8 * job.size())?;
    let mine = locks.lock(job.rank())?;
    job.barrier()?;
    // All are inside at once.
    assert!(locks.try_lock((job.rank() + 1) % job.size())?.is_none());
    let second = locks.lock(job.size() + job.rank())?;
    job.barrier()?;
    second.unlock()?;
    mine.unlock()?;
    job.barrier()?;
    assert!(locks.try_lock(job.rank())?.is_some());
    job.sync()
}

/// Data go round a ring, each step told by a signal.
pub(crate) fn signals(job: &Job) -> Result<(), Error> {
    const ROUNDS: usize = 50;
    let (me, size) = (job.rank(), job.size());
    let n = 64;
    let a = GlobalArray::<u64, Ix2>::builder(job, [size, n]).min_block([1, n]).zeros().create()?;
    let (data, taken) = (Signal::new(job)?, Signal::with_count(job, 2)?);
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    let owner = |row: usize| a.owner([row, 0]);
    assert_eq!(owner(me)?, me, "one row for each rank");
    for round in 1..=ROUNDS {
        let value = (round * 100 + me) as u64;
        a.put_signal(s![next, ..], &Array1::from_elem(n, value), data.at(next, 0))?;
        data.wait_at_least(0, round)?;
        let expected = (round * 100 + before) as u64;
        assert!(a.get(s![me, ..])?.iter().all(|&x| x == expected), "round {round}");
        // The one before may write again.
        taken.at(before, 1).notify()?;
        taken.wait_at_least(1, round)?;
    }
    assert_eq!((data.count(0)?, taken.count(0)?, taken.count(1)?), (ROUNDS, 0, ROUNDS));
    assert!(data.at(0, 1).notify().is_err() && data.at(size, 0).notify().is_err() && data.wait_at_least(1, 0).is_err());
    job.sync()
}

/// Whatever a patch and the caller's view look like, its data are there before their signal, and elements of others too.
pub(crate) fn signals_of_patches(job: &Job) -> Result<(), Error> {
    const ROUNDS: usize = 10;
    /// Rows that one rank writes, and columns that one rank owns.
    const ROWS: usize = 8;
    const COLUMNS: usize = 6;
    const PUTS: usize = 7;
    let (me, size) = (job.rank(), job.size());
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    let a = GlobalArray::<u32, Ix2>::builder(job, [ROWS * size, COLUMNS * size]).grid([1, size]).zeros().create()?;
    let reverse: Vec<usize> = (0..size).rev().collect();
    let reverse = job.subgroup(&reverse)?;
    // A rank has another number in the second group.
    let (data, turned, taken) = (Signal::new(job)?, Signal::new(&reverse)?, Signal::new(job)?);
    let (own, theirs) = (COLUMNS * me, COLUMNS * next);
    assert_eq!(a.owner([0, own])?, me, "whole columns");
    for round in 1..=ROUNDS {
        let value = |(i, j): (usize, usize)| round as u32 * 10_000 + (i * COLUMNS * size + j) as u32;
        let rows = ROWS * me;
        let block = |i: usize, j: usize, counts: (usize, usize)| Array2::from_shape_fn(counts, |(k, l)| value((i + k, j + l)));
        let to = || if round % 2 == 0 { data.at(next, 0) } else { turned.at(size - 1 - next, 0) };
        // Whole rows of the member: one run there. In the caller's memory too, or columns of it.
        a.put_signal(s![rows..rows + 2, theirs..theirs + COLUMNS], &block(rows, theirs, (2, COLUMNS)), to())?;
        let columns = block(rows + 2, theirs, (2, COLUMNS)).reversed_axes().as_standard_layout().into_owned();
        a.put_signal(s![rows + 2..rows + 4, theirs..theirs + COLUMNS], columns.t(), to())?;
        // A column, and every other column from the last row to the first.
        a.put_signal(s![rows + 4..rows + 6, theirs], &block(rows + 4, theirs, (2, 1)).column(0), to())?;
        let some = block(rows + 4, theirs, (2, COLUMNS));
        a.put_signal(s![rows + 4..rows + 6;-1, theirs + 1..theirs + COLUMNS;2], some.slice(s![..;-1, 1..;2]), to())?;
        // A row of all members.
        a.put_signal(s![rows + 6, ..], &block(rows + 6, 0, (1, COLUMNS * size)).row(0), to())?;
        // One element, behind a put that nobody fenced; and none.
        let last = block(rows + 7, theirs, (1, COLUMNS));
        a.put(s![rows + 7, theirs..theirs + COLUMNS - 1], &last.row(0).slice(s![..COLUMNS - 1]))?;
        a.put_signal(s![rows + 7, theirs + COLUMNS - 1], &last.slice(s![0, COLUMNS - 1]), to())?;
        a.put_signal(s![rows..rows, theirs..theirs + COLUMNS], &Array2::zeros((0, COLUMNS)), to())?;

        let (rows, mine) = (ROWS * before, own..own + COLUMNS);
        let seen = |i: std::ops::Range<usize>, j: std::ops::Range<usize>, step: usize| -> Result<(), Error> {
            let there = a.get(s![i.clone(), j.clone();step as isize])?;
            let expected = Array2::from_shape_fn(there.dim(), |(k, l)| value((i.start + k, j.start + step * l)));
            assert_eq!(there, expected, "round {round}, rows from {}", i.start - rows);
            Ok(())
        };
        let patches: [(_, _, usize); PUTS] = [
            (0..2, mine.clone(), 1),
            (2..4, mine.clone(), 1),
            (4..6, own..own + 1, 1),
            (4..6, own + 1..own + COLUMNS, 2),
            (6..7, 0..COLUMNS * size, 1),
            (7..8, mine.clone(), 1),
            (0..0, mine, 1),
        ];
        let (signal, told) = if round % 2 == 0 { (&data, round / 2 - 1) } else { (&turned, round / 2) };
        for (count, (i, j, step)) in (1..).zip(patches) {
            signal.wait_at_least(0, told * PUTS + count)?;
            seen(rows + i.start..rows + i.end, j, step)?;
        }
        // The one before may write again.
        taken.at(before, 0).notify()?;
        taken.wait_at_least(0, round)?;
    }
    job.sync()?;
    assert_eq!((data.count(0)?, turned.count(0)?), (ROUNDS / 2 * PUTS, ROUNDS / 2 * PUTS));
    job.sync()
}

/// Any number of ranks may raise one signal.
pub(crate) fn signals_of_many(job: &Job) -> Result<(), Error> {
    const TIMES: usize = 40;
    let signal = Signal::with_count(job, 2)?;
    for _ in 0..TIMES {
        signal.at(0, 1).notify()?;
    }
    if job.rank() == 0 {
        signal.wait_at_least(1, TIMES * job.size())?;
    }
    job.sync()?;
    let expected = if job.rank() == 0 { TIMES * job.size() } else { 0 };
    assert_eq!((signal.count(0)?, signal.count(1)?), (0, expected));
    job.sync()
}

/// After a fence at the writer, a message outside the array is enough for the reader.
pub(crate) fn fences(job: &Job) -> Result<(), Error> {
    let a = GlobalArray::<i64, Ix1>::builder(job, [job.size() * 8]).min_block([8]).zeros().create()?;
    let flags = GlobalArray::<i64, Ix1>::builder(job, [job.size()]).zeros().create()?;
    let to = (job.rank() + 1) % job.size();
    for round in 1..20 {
        a.put(s![8 * to..8 * to + 8], &Array1::from_elem(8, round))?;
        if round % 2 == 0 {
            a.fence()?
        } else {
            job.fence(to)?
        }
        flags.store([to], round)?;
        // Without a fence, a store may never arrive.
        flags.fence()?;
        let deadline = Instant::now() + Duration::from_secs(20);
        while flags.load([job.rank()])? < round {
            assert!(Instant::now() < deadline, "the store never came");
            std::thread::yield_now();
        }
        assert!(a.get(s![8 * job.rank()..8 * job.rank() + 8])?.iter().all(|&x| x == round));
        job.barrier()?;
    }
    assert!(job.fence(job.size()).is_err());
    job.sync()
}
