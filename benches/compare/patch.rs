//! Rows of elements, patches and lists in the other rank's block.

use std::hint::black_box;

use global_arrays::prelude::*;

use crate::{
    MIB,
    measure::{Bench, Pages, Subscripts},
};

pub(crate) fn size_name(bytes: usize) -> String {
    match bytes {
        _ if bytes >= MIB => format!("{}MiB", bytes / MIB),
        _ if bytes >= 1024 => format!("{}KiB", bytes / 1024),
        _ => format!("{bytes}B"),
    }
}

/// Single elements at random subscripts of the other rank's block.
pub(crate) fn elements(bench: &Bench<'_>) -> Result<(), Error> {
    for (shape, row_bits, column_bits) in [("4MiB", 9, 10), ("64MiB", 11, 12)] {
        let (rows, columns) = (1_usize << row_bits, 1_usize << column_bits);
        let a = GlobalArray::<f64, Ix2>::builder(bench.job, [2 * rows, columns]).grid([2, 1]).fill(1.0).create()?;
        bench.alone(|| {
            let each = |mut op: Box<dyn FnMut() -> Result<(), Error> + '_>, name: &str| -> Result<(), Error> {
                let stat = bench.measure_alone(&mut *op)?;
                bench.row(name, shape, "ns", stat, Subscripts::COUNT as f64);
                Ok(())
            };
            let pass = || Subscripts::new(row_bits, column_bits);
            each(
                Box::new(|| {
                    let mut subscripts = pass();
                    let mut sum = 0.0;
                    for _ in 0..Subscripts::COUNT {
                        let (i, j) = subscripts.next();
                        sum += a.load([rows + i, j])?;
                    }
                    black_box(sum);
                    Ok(())
                }),
                "load",
            )?;
            each(
                Box::new(|| {
                    let mut subscripts = pass();
                    for _ in 0..Subscripts::COUNT {
                        let (i, j) = subscripts.next();
                        a.store([rows + i, j], 2.0)?;
                    }
                    Ok(())
                }),
                "store",
            )?;
            let mut buffer = Array2::from_elem([1, 1], 3.0);
            each(
                Box::new(|| {
                    let mut subscripts = pass();
                    for _ in 0..Subscripts::COUNT {
                        let (i, j) = subscripts.next();
                        a.get_into(s![rows + i..rows + i + 1, j..j + 1], &mut buffer)?;
                        black_box(&mut buffer);
                    }
                    Ok(())
                }),
                "get_small",
            )?;
            let buffer = Array2::from_elem([1, 1], 3.0);
            each(
                Box::new(|| {
                    let mut subscripts = pass();
                    for _ in 0..Subscripts::COUNT {
                        let (i, j) = subscripts.next();
                        a.put(s![rows + i..rows + i + 1, j..j + 1], black_box(&buffer))?;
                    }
                    Ok(())
                }),
                "put_small",
            )
        })?;
        a.destroy()?;
    }
    Ok(())
}

/// Contiguous patches of a vector.
pub(crate) fn contiguous(bench: &Bench<'_>) -> Result<(), Error> {
    let n = 64 * MIB / 8;
    let a = GlobalArray::<f64, Ix1>::builder(bench.job, [2 * n]).fill(1.0).create()?;
    bench.alone(|| {
        let mut pages = Pages::new(n);
        for bytes in [4, 16, 64, 256, 1024, 4096, 16384, 65536].map(|kib| kib * 1024) {
            let (len, shape) = (bytes / 8, size_name(bytes));
            // The caller's view is made before: the peers get a pointer.
            let mut local = ndarray::ArrayViewMut1::from(&mut pages.slice()[..len]);
            let stat = bench.measure_alone(|| a.put(s![n..n + len], local.view()))?;
            bench.row("put", &shape, "GB/s", stat, bytes as f64);
            let stat = bench.measure_alone(|| a.get_into(s![n..n + len], local.view_mut()))?;
            bench.row("get", &shape, "GB/s", stat, bytes as f64);
            let stat = bench.measure_alone(|| a.accumulate(s![n..n + len], 0.5, local.view()))?;
            bench.row("accumulate", &shape, "GB/s", stat, bytes as f64);
        }
        Ok(())
    })
}

/// A quarter of each row of the other rank's block.
pub(crate) fn strided(bench: &Bench<'_>) -> Result<(), Error> {
    for bytes in [MIB, 16 * MIB] {
        for chunk in [16, 64, 256, 1024] {
            let (rows, columns) = (bytes / chunk, 4 * chunk / 8);
            let a = GlobalArray::<f64, Ix2>::builder(bench.job, [2 * rows, columns]).grid([2, 1]).fill(1.0).create()?;
            bench.alone(|| {
                let shape = format!("{}/{chunk}B", size_name(bytes));
                let mut pages = Pages::new(bytes / 8);
                let mut local = ndarray::ArrayViewMut2::from_shape([rows, chunk / 8], pages.slice()).map_err(Error::other)?;
                let patch = s![rows..2 * rows, chunk / 8..chunk / 4];
                let stat = bench.measure_alone(|| a.put(patch, local.view()))?;
                bench.row("put_strided", &shape, "GB/s", stat, bytes as f64);
                let stat = bench.measure_alone(|| a.get_into(patch, local.view_mut()))?;
                bench.row("get_strided", &shape, "GB/s", stat, bytes as f64);
                let stat = bench.measure_alone(|| a.accumulate(patch, 0.5, local.view()))?;
                bench.row("accumulate_strided", &shape, "GB/s", stat, bytes as f64);
                Ok(())
            })?;
            a.destroy()?;
        }
    }
    Ok(())
}

/// Random elements of a whole array, 100,000 in a list.
pub(crate) fn lists(bench: &Bench<'_>) -> Result<(), Error> {
    const LISTED: usize = 100_000;
    let n = 4096;
    let a = GlobalArray::<f64, Ix2>::builder(bench.job, [n, n]).fill(1.0).create()?;
    bench.alone(|| {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let subscripts: Vec<[usize; 2]> = (0..LISTED)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 33) as usize % (n * n);
                [at / n, at % n]
            })
            .collect();
        let mut values = vec![1.0; LISTED];
        let stat = bench.measure_alone(|| a.scatter(&subscripts, &values))?;
        bench.row("scatter", "1e5", "M/s", stat, LISTED as f64);
        let stat = bench.measure_alone(|| a.gather(&subscripts, &mut values))?;
        bench.row("gather", "1e5", "M/s", stat, LISTED as f64);
        let stat = bench.measure_alone(|| a.scatter_accumulate(&subscripts, 0.5, &values))?;
        bench.row("scatter_accumulate", "1e5", "M/s", stat, LISTED as f64);
        Ok(())
    })
}

/// 64 puts of one element each.
pub(crate) fn in_flight(bench: &Bench<'_>) -> Result<(), Error> {
    const IN_FLIGHT: usize = 64;
    let a = GlobalArray::<f64, Ix1>::builder(bench.job, [2 * IN_FLIGHT]).fill(1.0).create()?;
    bench.alone(|| {
        let local = Array1::from_elem(IN_FLIGHT, 1.0);
        let stat = bench.measure_alone(|| {
            bench.job.scope(|scope| {
                for k in 0..IN_FLIGHT {
                    scope.put(&a, s![IN_FLIGHT + k..IN_FLIGHT + k + 1], local.slice(s![k..k + 1]))?;
                }
                Ok(())
            })
        })?;
        bench.row("put_nb", "64x8B", "M/s", stat, IN_FLIGHT as f64);
        Ok(())
    })
}
