//! Rows of whole arrays: 4096² of f64, matrix products, and updates of ghost cells.

use std::hint::black_box;

use global_arrays::prelude::*;

use crate::measure::Bench;

const ORDER: usize = 4096;

fn square(bench: &Bench<'_>, n: usize, value: f64) -> Result<GlobalArray<f64, Ix2>, Error> {
    GlobalArray::builder(bench.job, [n, n]).fill(value).create()
}

pub(crate) fn whole(bench: &Bench<'_>) -> Result<(), Error> {
    let bytes = (8 * ORDER * ORDER) as f64;
    let mut a = square(bench, ORDER, 1.0)?;
    let mut b = square(bench, ORDER, 2.0)?;
    let mut c = square(bench, ORDER, 3.0)?;
    let stat = bench.measure_together(|| a.fill(1.5))?;
    bench.row("fill", "4096^2", "GB/s", stat, bytes);
    let stat = bench.measure_together(|| a.scale(1.000_000_1))?;
    bench.row("scale", "4096^2", "GB/s", stat, 2.0 * bytes);
    let stat = bench.measure_together(|| b.assign(&a))?;
    bench.row("copy", "4096^2", "GB/s", stat, 2.0 * bytes);
    let stat = bench.measure_together(|| c.assign_sum(1.0, &a, 2.0, &b))?;
    bench.row("add", "4096^2", "GB/s", stat, 3.0 * bytes);
    let stat = bench.measure_together(|| {
        a.dot(&b).map(|sum| {
            black_box(sum);
        })
    })?;
    bench.row("dot", "4096^2", "GB/s", stat, 2.0 * bytes);
    let stat = bench.measure_together(|| a.sum().map(|sum| _ = black_box(sum)))?;
    bench.row("sum", "4096^2", "GB/s", stat, bytes);
    let stat = bench.measure_together(|| c.axpby(0.5, &a, 0.5))?;
    bench.row("axpby", "4096^2", "GB/s", stat, 3.0 * bytes);
    let stat = bench.measure_together(|| c.zip_with(&a, |c, a| 0.5 * c + a))?;
    bench.row("zip_with", "4096^2", "GB/s", stat, 3.0 * bytes);
    let stat = bench.measure_together(|| c.zip_with2(&a, &b, |c, a, b| 0.5 * c + a * b))?;
    bench.row("zip_with2", "4096^2", "GB/s", stat, 4.0 * bytes);
    Ok(())
}

pub(crate) fn transpose(bench: &Bench<'_>) -> Result<(), Error> {
    let bytes = (16 * ORDER * ORDER) as f64;
    let a = square(bench, ORDER, 1.0)?;
    let mut b = square(bench, ORDER, 2.0)?;
    let stat = bench.measure_together(|| b.assign(a.t()))?;
    bench.row("transpose", "4096^2", "GB/s", stat, bytes);
    let stat = bench.measure_together(|| b.at_mut(..).assign(a.at(..).t()))?;
    bench.row("copy_transposed", "4096^2", "GB/s", stat, bytes);
    Ok(())
}

pub(crate) fn matmul(bench: &Bench<'_>) -> Result<(), Error> {
    for n in [256, 1024, 2048] {
        let (a, b, mut c) = (square(bench, n, 1.0)?, square(bench, n, 2.0)?, square(bench, n, 0.0)?);
        let stat = bench.measure_together(|| c.matmul(1.0, &a, &b, 0.0))?;
        bench.row("matmul", &n.to_string(), "GFLOP/s", stat, 2.0 * (n as f64).powi(3));
        if c.load([n - 1, n / 2])? != 2.0 * n as f64 {
            return Err(Error::other(format!("the product of order {n} is wrong")));
        }
    }
    matvec(bench)
}

fn matvec(bench: &Bench<'_>) -> Result<(), Error> {
    const N: usize = 8192;
    let a = square(bench, N, 1.0)?;
    let x = GlobalArray1::<f64>::builder(bench.job, [N]).fill(2.0).create()?;
    let mut y = GlobalArray1::<f64>::zeros(bench.job, [N])?;
    let stat = bench.measure_together(|| y.matvec(1.0, &a, &x, 0.0))?;
    bench.row("matvec", "8192", "GB/s", stat, (8 * N * N) as f64);
    if y.load([N / 2])? != 2.0 * N as f64 {
        return Err(Error::other("the product of matrix and vector is wrong"));
    }
    Ok(())
}

/// Ghost cells of width 1, all boundaries periodic.
pub(crate) fn ghosts(bench: &Bench<'_>) -> Result<(), Error> {
    let extents = [(vec![64; 2], "64x64"), (vec![160; 3], "160x160x160")];
    for (extents, shape) in extents {
        let axes = extents.len();
        let mut a = GlobalArray::<f64, IxDyn>::builder(bench.job, IxDyn(&extents)).ghosts(vec![1; axes]).zeros().create()?;
        // Linear in the index, so that a cell tells where it comes from.
        a.map_indexed(|index, _| index.slice().iter().fold(0.0, |value, &i| 200.0 * value + i as f64))?;
        let stat = bench.measure_together(|| a.update_ghosts())?;
        bench.row("update_ghosts", shape, "us", stat, 1.0);
        let corner = bench.job.epoch(a.ghosts_mut(), |part| part.view().first().copied())?;
        let expected = a.periodic().get(vec![-1..0; axes])?.sum();
        if bench.job.rank() == 0 && corner != Some(expected) {
            return Err(Error::other(format!("the first ghost cell of {shape} is {corner:?}, not {expected}")));
        }
        bench.job.sync()?;
    }
    Ok(())
}
