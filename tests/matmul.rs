//! `matmul` is ndarray's `dot`, whatever the distributions, transposes, patches and element types.

use std::fmt::Debug;

use global_arrays::{algebra::Matmul, prelude::*};
use ndarray::{Array2, LinalgScalar};
use num_complex::Complex;

/// Small whole numbers: every product is exact, so that the order of summation does not matter.
trait Number: Matmul + LinalgScalar + Debug {
    fn number(value: i32) -> Self;
}

macro_rules! number {
    ($($t:ty: $value:ident => $number:expr),*) => {$(
        impl Number for $t {
            fn number($value: i32) -> Self { $number }
        }
    )*};
}
number!(
    f32: v => v as f32,
    f64: v => f64::from(v),
    i64: v => i64::from(v),
    Complex<f32>: v => Complex::new(v as f32, (v % 3) as f32),
    Complex<f64>: v => Complex::new(f64::from(v), f64::from(v % 3))
);

/// The same contents on every rank.
fn matrix<T: Number>([rows, columns]: [usize; 2], seed: usize) -> Array2<T> {
    Array2::from_shape_fn((rows, columns), |(i, j)| T::number(((i * 31 + j * 17 + i * j * 7 + seed) % 19) as i32 - 9))
}

#[derive(Clone, Copy, Debug)]
enum Layout {
    Block,
    ByColumns,
    Cyclic(usize, usize),
    Irregular,
    Tiled(usize, usize),
    Restricted,
    Ghosts,
}

const LAYOUTS: [Layout; 8] = [
    Layout::Block,
    Layout::ByColumns,
    Layout::Cyclic(1, 1),
    Layout::Cyclic(3, 4),
    Layout::Irregular,
    Layout::Tiled(4, 3),
    Layout::Restricted,
    Layout::Ghosts,
];

/// A global array with the contents of a local one, which its first member writes.
fn spread<T: Number>(group: &Group, layout: Layout, contents: &Array2<T>) -> Result<GlobalArray<T, Ix2>, Error> {
    let [rows, columns] = [contents.nrows(), contents.ncols()];
    let builder = GlobalArray::<T, Ix2>::builder(group, [rows, columns]);
    let array = match layout {
        Layout::Block => builder,
        Layout::ByColumns => builder.grid([1, group.size()]).order(Order::ColumnMajor),
        Layout::Cyclic(b0, b1) => builder.block_cyclic([b0, b1]).order(Order::ColumnMajor),
        Layout::Ghosts => builder.ghosts([2, 3]).fill(T::number(100)),
        Layout::Irregular => {
            let cuts = (0..group.size()).map(|member| if member == 0 { 0 } else { (rows / 3 + member).min(rows) }).collect();
            builder.irregular(vec![cuts, vec![0]])
        }
        Layout::Tiled(t0, t1) => builder.tiled([t0, t1]).order(Order::ColumnMajor),
        Layout::Restricted => {
            let cuts = vec![vec![0, rows / 4, rows / 2], vec![0, columns / 3]];
            builder.tiled_irregular(cuts).restrict((0..group.size()).rev().step_by(2))
        }
    }
    .create()?;
    if group.member() == 0 {
        array.put(.., contents)?;
    }
    Ok(array)
}

/// All three layouts, all transposes, several alpha and beta, in one job.
fn all<T: Number>(ranks: usize, network: &str, [m, n, k]: [usize; 3]) {
    let body = |job: &Job| -> Result<(), Error> {
        for (case, (layout_c, layout_a)) in LAYOUTS.iter().flat_map(|c| LAYOUTS.iter().map(move |a| (*c, *a))).enumerate() {
            let layout_b = LAYOUTS[(case * 3 + 1) % LAYOUTS.len()];
            let (transposed_a, transposed_b) = (case % 2 == 1, case / 2 % 2 == 1);
            let (alpha, beta) = [(1, 0), (1, 1), (-2, 3), (0, 2), (3, 0)][(case % 5) ^ usize::from(case % 5 < 4)];
            let (alpha, beta) = (T::number(alpha), T::number(beta));
            let local_a = matrix::<T>(if transposed_a { [k, m] } else { [m, k] }, 1);
            let local_b = matrix::<T>(if transposed_b { [n, k] } else { [k, n] }, 2);
            let local_c = matrix::<T>([m, n], 3);
            let a = spread(job, layout_a, &local_a)?;
            let b = spread(job, layout_b, &local_b)?;
            let mut c = spread(job, layout_c, &local_c)?;
            let factor_a = if transposed_a { a.t() } else { a.at(..) };
            let factor_b = if transposed_b { b.t().t().t() } else { b.at(..) };
            c.matmul(alpha, factor_a, factor_b, beta)?;
            let op = |array: &Array2<T>, transposed: bool| if transposed { array.t().to_owned() } else { array.clone() };
            let product = op(&local_a, transposed_a).dot(&op(&local_b, transposed_b));
            let expected = product.mapv(|x| alpha * x) + local_c.mapv(|x| beta * x);
            assert_eq!(
                c.get(..)?,
                expected,
                "{layout_c:?} {layout_a:?} {layout_b:?} {transposed_a} {transposed_b} {alpha:?} {beta:?}"
            );
            // Whoever is first must not free or change what others still compare.
            job.sync()?;
        }
        Ok(())
    };
    Launch::new().ranks(ranks).network(network).run(body).unwrap();
}

#[test]
fn every_layout_and_transpose_of_doubles() {
    for ranks in [1, 2, 3, 5] {
        all::<f64>(ranks, "threads", [23, 17, 29]);
    }
}

#[test]
fn every_layout_and_transpose_without_mapped_memory() {
    for ranks in [2, 3] {
        all::<f64>(ranks, "threads:unmapped", [11, 17, 13]);
    }
}

#[test]
fn every_element_type() {
    all::<f32>(3, "threads", [13, 9, 21]);
    all::<Complex<f32>>(3, "threads", [13, 9, 21]);
    all::<Complex<f64>>(2, "threads", [13, 9, 21]);
    all::<i64>(3, "threads", [13, 9, 21]);
    all::<i64>(2, "threads:unmapped", [5, 9, 7]);
}

#[test]
fn empty_axes_and_an_empty_sum() {
    for shape in [[0, 5, 3], [5, 0, 3], [5, 3, 0], [0, 0, 0], [1, 1, 1]] {
        all::<f64>(3, "threads", shape);
        all::<i64>(2, "threads", shape);
    }
}

#[test]
fn several_blocks_of_the_sum_add_up() {
    all::<f64>(2, "threads", [3, 2, 3000]);
    let body = |job: &Job| -> Result<(), Error> {
        // Deeper than one panel may be: 2 MiB elements along k.
        let k = 2_200_000;
        let a = GlobalArray::<f64, Ix2>::builder(job, [2, k]).fill(1.0).create()?;
        let mut c = GlobalArray::<f64, Ix2>::builder(job, [2, 2]).fill(5.0).create()?;
        c.matmul(2.0, &a, a.t(), 3.0)?;
        assert_eq!(c.get(..)?, Array2::from_elem((2, 2), 2.0 * k as f64 + 15.0));
        job.sync()
    };
    Launch::new().ranks(2).network("threads").run(body).unwrap();
}

#[test]
fn patches_with_offsets_and_steps() {
    for (ranks, network) in [(1, "threads"), (2, "threads"), (5, "threads"), (3, "threads:unmapped")] {
        let body = |job: &Job| -> Result<(), Error> {
            let (local_a, local_b) = (matrix::<f64>([20, 24], 4), matrix::<f64>([19, 26], 5));
            for (case, layout_c) in LAYOUTS.into_iter().enumerate() {
                let a = spread(job, LAYOUTS[(case + 1) % 5], &local_a)?;
                let b = spread(job, LAYOUTS[(case + 2) % 5], &local_b)?;
                let mut expected = matrix::<f64>([22, 25], 6);
                let mut c = spread(job, layout_c, &expected)?;

                let (of_c, of_a, of_b) = (s![3..14, 5..20], s![2..13, 1..18], s![1..18, 9..24]);
                c.at_mut(of_c).matmul(2.0, a.at(of_a), b.at(of_b), -1.0)?;
                let product = 2.0 * local_a.slice(of_a).dot(&local_b.slice(of_b));
                let old = expected.slice(of_c).to_owned();
                expected.slice_mut(of_c).assign(&(product - old));
                assert_eq!(c.get(..)?, expected, "{layout_c:?}");
                job.sync()?;

                let (of_c, of_a, of_b) = (s![..;-2, 1..;3], s![..;2, 2..13], s![..16;-2, 3..13]);
                let mut patch = expected.slice_mut(of_c);
                patch += &local_a.slice(of_a).t().dot(&local_b.slice(of_b).t());
                c.at_mut(of_c).matmul(1.0, a.at(of_a).t(), b.at(of_b).t(), 1.0)?;
                assert_eq!(c.get(..)?, expected, "{layout_c:?} with steps");
                job.sync()?;
            }
            Ok(())
        };
        Launch::new().ranks(ranks).network(network).run(body).unwrap();
    }
}

#[test]
fn what_does_not_go_together_is_an_error() {
    let body = |job: &Job| -> Result<(), Error> {
        let a = GlobalArray::<f64, Ix2>::builder(job, [4, 3]).name("a").zeros().create()?;
        let mut c = GlobalArray::<f64, Ix2>::builder(job, [4, 4]).name("c").zeros().create()?;
        let error = c.matmul(1.0, &a, &a, 0.0).unwrap_err();
        assert!(matches!(&error, Error::Mismatch { what, .. } if what.contains("4 x 3 of \"a\"")), "{error}");
        assert!(matches!(c.matmul(1.0, a.at(s![2..6, ..]), a.t(), 0.0), Err(Error::Patch { .. })));
        assert!(matches!(c.at_mut((0..9, 0..1)).matmul(1.0, &a, a.t(), 0.0), Err(Error::Patch { .. })));
        let alone = job.subgroup(&[job.rank()])?;
        let mine = GlobalArray::<f64, Ix2>::builder(&alone, [3, 4]).zeros().create()?;
        assert!(matches!(c.matmul(1.0, &a, &mine, 0.0), Err(Error::Mismatch { what, .. }) if what.contains("the same ranks")));
        c.matmul(1.0, &a, a.t(), 0.0)?;
        job.sync()
    };
    Launch::new().ranks(2).network("threads").run(body).unwrap();
}

#[test]
fn members_that_disagree_on_the_arguments_fail_alike() {
    let body = |job: &Job| -> Result<(), Error> {
        let a = GlobalArray::<f64, Ix2>::builder(job, [4, 4]).zeros().create()?;
        let mut c = GlobalArray::<f64, Ix2>::builder(job, [4, 4]).zeros().create()?;
        let alpha = job.rank() as f64;
        assert!(matches!(c.matmul(alpha, &a, &a, 0.0), Err(Error::Disagreement { .. })));
        Ok(())
    };
    // The group is unusable then, so that the job cannot end in order either.
    assert!(Launch::new().ranks(2).network("threads").run(body).is_err());
}
