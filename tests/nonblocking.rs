//! Transfers under way: handles may be waited for in any order, dropped or forgotten; a scope ends when all its transfers have.

use std::panic::{AssertUnwindSafe, catch_unwind};

use global_arrays::prelude::*;

const N: usize = 37;

/// Runs a body on one, two and three ranks, with and without mapped memory.
fn everywhere(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for network in ["threads", "threads:unmapped"] {
        for ranks in 1..=3 {
            let run = Launch::new().ranks(ranks).network(network).run(&body);
            run.unwrap_or_else(|error| panic!("{ranks} ranks over {network}: {error}"));
        }
    }
}

fn value(i: usize, j: usize) -> f64 {
    (i * N + j) as f64
}

fn numbered(job: &Job) -> Result<GlobalArray<f64, Ix2>, Error> {
    let a = GlobalArray::builder(job, [N, N]).block_cyclic([5, 7]).create()?;
    if job.rank() == 0 {
        a.put(.., &Array2::from_shape_fn((N, N), |(i, j)| value(i, j)))?;
    }
    job.sync()?;
    Ok(a)
}

#[test]
fn gets_are_waited_for_in_any_order() {
    everywhere(|job| {
        let a = numbered(job)?;
        let mut gets = (0..N).map(|i| a.get_nb(s![i, ..;-2])).collect::<Result<Vec<_>, _>>()?;
        for i in (0..N).rev() {
            let row = gets.remove(i).wait()?;
            assert_eq!(row.len(), N.div_ceil(2));
            assert!(row.iter().enumerate().all(|(k, &x)| x == value(i, N - 1 - 2 * k)));
        }
        let empty = a.get_nb(s![3..3, ..])?.wait()?;
        assert_eq!(empty.shape(), [0, N]);
        assert!(a.get_nb(s![.., N..N + 1]).is_err());
        Ok(())
    });
}

#[test]
fn puts_and_accumulates_own_their_arrays() {
    everywhere(|job| {
        let a = GlobalArray::<i64, Ix2>::builder(job, [N, N]).fill(1).create()?;
        let rows = (job.rank()..N).step_by(job.size());
        let puts = rows.map(|i| a.put_nb(s![i, ..], Array1::from_elem(N, i as i64))).collect::<Result<Vec<_>, _>>()?;
        for put in puts {
            put.wait()?;
        }
        job.sync()?;
        // Any strides: a transposed array.
        a.accumulate_nb(.., 2, Array2::from_shape_fn((N, N), |(i, _)| i as i64).reversed_axes())?.wait()?;
        job.sync()?;
        let ranks = job.size() as i64;
        let all = a.get(..)?;
        assert!(all.indexed_iter().all(|((i, j), &x)| x == i as i64 + 2 * ranks * j as i64));
        assert!(a.put_nb(s![0, ..], Array1::zeros(N + 1)).is_err());
        Ok(())
    });
}

#[test]
fn a_tested_transfer_completes() {
    everywhere(|job| {
        let a = numbered(job)?;
        let get = a.get_nb(..)?;
        let put = a.put_nb(s![0, 0..1], Array1::zeros(1))?;
        while !get.test()? || !put.test()? {}
        assert_eq!(get.wait()?[[N - 1, N - 1]], value(N - 1, N - 1));
        put.wait()
    });
}

#[test]
fn a_handle_dropped_or_forgotten_in_flight_harms_nobody() {
    everywhere(|job| {
        let a = GlobalArray::<i64, Ix2>::builder(job, [N, N]).zeros().create()?;
        for i in (job.rank()..N).step_by(job.size()) {
            let put = a.put_nb(s![i, ..], Array1::from_elem(N, i as i64))?;
            let get = a.get_nb(..)?;
            if i % 2 == 0 {
                drop((put, get));
            } else {
                std::mem::forget((put, get));
            }
        }
        job.sync()?;
        assert!(a.get(..)?.indexed_iter().all(|((i, _), &x)| x == i as i64));
        // Handles that outlive the array, and one that is dropped after its transfer is complete.
        let (get, put) = (a.get_nb(..)?, a.put_nb(s![0, ..], Array1::zeros(N))?);
        a.destroy()?;
        assert_eq!(get.wait()?[[N - 1, 0]], N as i64 - 1);
        drop(put);
        Ok(())
    });
}

#[test]
fn a_scope_completes_what_it_borrowed() {
    everywhere(|job| {
        let a = numbered(job)?;
        let mut rows = Array2::zeros((N, N));
        let columns = Array2::from_shape_fn((N, N), |(i, j)| -value(i, j));
        job.scope(|s| rows.rows_mut().into_iter().enumerate().try_for_each(|(i, row)| s.get_into(&a, s![i, ..], row)))?;
        assert!(rows.indexed_iter().all(|((i, j), &x)| x == value(i, j)));
        job.sync()?;
        let returned = job.scope(|s| {
            for j in (job.rank()..N).step_by(job.size()) {
                s.put(&a, s![.., j], columns.column(j))?;
            }
            Ok(5)
        })?;
        assert_eq!(returned, 5);
        job.sync()?;
        job.scope(|s| s.accumulate(&a, .., -1.0, &columns))?;
        job.sync()?;
        let times = job.size() as f64 - 1.0;
        assert!(a.get(..)?.indexed_iter().all(|((i, j), &x)| x == times * value(i, j)));
        Ok(())
    });
}

#[test]
fn a_scope_raises_its_signals_when_all_is_there() {
    everywhere(|job| {
        let (me, size) = (job.rank(), job.size());
        let a = GlobalArray::<u64, Ix2>::builder(job, [size, N]).min_block([1, N]).zeros().create()?;
        let signal = Signal::with_count(job, 2)?;
        let next = (me + 1) % size;
        let row = Array1::from_elem(N, me as u64 + 1);
        job.scope(|s| {
            s.put_signal(&a, s![next, ..], &row, signal.at(next, 1))?;
            assert!(s.put_signal(&a, s![next, ..], &row, signal.at(size, 0)).is_err());
            s.load(&a, [me, 0])
        })?;
        signal.wait_at_least(1, 1)?;
        let mut ends = [0; 2];
        job.scope(|s| s.gather(&a, &[[me, 0], [me, N - 1]], &mut ends))?;
        assert_eq!(ends, [(me + size - 1) % size + 1; 2].map(|value| value as u64));
        // What fails raises nothing.
        let failed = job.scope(|s| {
            s.put_signal(&a, s![next, ..], &row, signal.at(next, 0))?;
            Err::<(), _>(Error::other("the program's own"))
        });
        assert!(failed.is_err());
        job.sync()?;
        assert_eq!((signal.count(0)?, signal.count(1)?), (0, 1));
        job.sync()
    });
}

#[test]
fn a_scope_that_fails_or_unwinds_completes_all_the_same() {
    everywhere(|job| {
        let a = numbered(job)?;
        let mut first = Array2::zeros((N, N));
        let failed = job.scope(|s| {
            s.get_into(&a, .., &mut first)?;
            Err::<(), _>(Error::other("not today"))
        });
        assert!(failed.unwrap_err().to_string().contains("not today"));
        assert_eq!(first[[N - 1, N - 1]], value(N - 1, N - 1));

        let mut second = Array2::zeros((N, N));
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            job.scope(|s| -> Result<(), Error> {
                s.get_into(&a, .., &mut second)?;
                std::panic::resume_unwind(Box::new("a panic without words"))
            })
        }));
        assert!(unwound.is_err());
        assert_eq!(second[[N - 1, N - 1]], value(N - 1, N - 1));
        job.sync()
    });
}
