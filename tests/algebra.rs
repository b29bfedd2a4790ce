//! Whole-array and patch algebra against the same on a plain ndarray: every distribution, several numbers of ranks, with mapped
//! memory and without.

use std::fmt::Debug;

use global_arrays::{Builder, prelude::*};
use ndarray::Array;
use num_complex::Complex;

type Outcome = Result<(), Error>;

/// Runs a test body on every network with several numbers of ranks.
fn everywhere(body: impl Fn(&Job) -> Outcome + Sync) {
    for network in ["threads", "threads:unmapped"] {
        for ranks in [1, 2, 3, 5] {
            Launch::new()
                .ranks(ranks)
                .network(network)
                .heap(64 << 20)
                .run(&body)
                .unwrap_or_else(|error| panic!("{network} with {ranks} ranks: {error}"));
        }
    }
}

const LAYOUTS: usize = 10;

/// Distribution number `kind` of a matrix.
fn laid_out<'g, T: Number>(job: &'g Job, extents: [usize; 2], kind: usize) -> Builder<'g, T, Ix2> {
    let builder = GlobalArray::<T, Ix2>::builder(job, extents).name(format!("layout {kind}"));
    let cuts = |n: usize, blocks: usize| (0..blocks).map(|k| (k * k + k).min(n)).collect::<Vec<_>>();
    match kind {
        0 => builder,
        1 => builder.order(Order::ColumnMajor),
        2 => builder.block_cyclic([3, 2]),
        3 => builder.block_cyclic([1, 4]).order(Order::ColumnMajor),
        4 => builder.irregular(vec![vec![0], cuts(extents[1], job.size())]),
        5 => builder.tiled([3, 2]).restrict((0..job.size().div_ceil(2)).rev()),
        6 => builder.tiled([2, 5]).order(Order::ColumnMajor),
        7 => builder.tiled_irregular(vec![cuts(extents[0], 4), cuts(extents[1], 3)]).restrict(job.size() / 2..job.size()),
        // What is in the ghost cells is nobody's element.
        8 => builder.ghosts([1, 2]).fill(T::ONE.plus(T::ONE)),
        _ => builder.irregular(vec![cuts(extents[0], job.size()), vec![0]]).order(Order::ColumnMajor).ghosts([3, 0]).fill(T::ONE),
    }
}

/// A value for each index that no other index of a small matrix has.
fn value<T: Number>(i: usize, j: usize, seed: usize) -> T {
    let n = (17 * i + 3 * j + seed) % 29;
    (0..n).fold(T::ONE, |sum, _| sum.plus(T::ONE))
}

fn model<T: Number>(extents: [usize; 2], seed: usize) -> Array2<T> {
    Array2::from_shape_fn(extents, |(i, j)| value(i, j, seed))
}

fn made<T: Number>(job: &Job, extents: [usize; 2], kind: usize, seed: usize) -> Result<GlobalArray<T, Ix2>, Error> {
    let mut array = laid_out(job, extents, kind).create()?;
    array.map_indexed(|(i, j), _| value(i, j, seed))?;
    Ok(array)
}

#[track_caller]
fn same<T: Element + PartialEq + Debug, D: Dimension>(array: &GlobalArray<T, D>, model: &Array<T, D>) -> Outcome {
    let got = array.get(..)?;
    assert_eq!(got, model, "{}", array.summary());
    array.group().barrier()
}

fn elementwise<T: Number>(job: &Job, extents: [usize; 2]) -> Outcome {
    for kind in 0..LAYOUTS {
        let (two, three) = (T::ONE.plus(T::ONE), T::ONE.plus(T::ONE).plus(T::ONE));
        let mut a = made::<T>(job, extents, kind, 1)?;
        let mut m = model::<T>(extents, 1);
        same(&a, &m)?;
        a.scale(three)?;
        m.mapv_inplace(|x| x.scaled(three));
        same(&a, &m)?;
        a.add_constant(two)?;
        m.mapv_inplace(|x| x.plus(two));
        a.map(|x| x.scaled(x))?;
        m.mapv_inplace(|x| x.scaled(x));
        same(&a, &m)?;
        a.at_mut(s![1..;2, ..;-3]).scale(two)?;
        m.slice_mut(s![1..;2, ..;-3]).mapv_inplace(|x| x.scaled(two));
        a.at_mut(s![.., 1..]).fill(three)?;
        m.slice_mut(s![.., 1..]).fill(three);
        same(&a, &m)?;
        a.fill(two)?;
        same(&a, &Array2::from_elem(extents, two))?;
        a.zero()?;
        same(&a, &Array2::from_elem(extents, T::ZERO))?;
        for other in [kind, (kind + 1) % LAYOUTS, (kind + 3) % LAYOUTS] {
            let x = made::<T>(job, extents, other, 5)?;
            let y = made::<T>(job, extents, (other + kind) % LAYOUTS, 7)?;
            let (mx, my) = (model::<T>(extents, 5), model::<T>(extents, 7));
            let zip = |f: &dyn Fn(T, T) -> T| Array2::from_shape_fn(extents, |at| f(mx[at], my[at]));
            a.assign_sum(two, &x, three, &y)?;
            same(&a, &zip(&|x, y| two.scaled(x).plus(three.scaled(y))))?;
            a.assign_product(&x, &y)?;
            same(&a, &zip(&T::scaled))?;
            a.scaled_add(two, &x)?;
            same(&a, &zip(&|x, y| two.scaled(x).plus(x.scaled(y))))?;
            a.axpby(three, &y, two)?;
            let sum = |x: T, y: T| two.scaled(x).plus(x.scaled(y)).scaled(two).plus(y.scaled(three));
            same(&a, &zip(&sum))?;
            a.axpby(three, &y, T::ZERO)?;
            same(&a, &my.mapv(|y| y.scaled(three)))?;
            a.assign_map(&x, |x| x.plus(T::ONE))?;
            a.zip_with(&y, T::scaled)?;
            same(&a, &zip(&|x, y| x.plus(T::ONE).scaled(y)))?;
            a.zip_with2(&x, &y, |a, x, y| a.plus(x).scaled(y))?;
            same(&a, &zip(&|x, y| x.plus(T::ONE).scaled(y).plus(x).scaled(y)))?;
            a.assign(&x)?;
            same(&a, &mx)?;
            assert_eq!(x.dot(&y)?, mx.iter().zip(&my).fold(T::ZERO, |sum, (&x, &y)| sum.plus(x.scaled(y))));
        }
    }
    Ok(())
}

#[test]
fn elementwise_operations_are_ndarrays_for_f64() {
    everywhere(|job| elementwise::<f64>(job, [11, 13]));
}

#[test]
fn elementwise_operations_are_ndarrays_for_i64() {
    everywhere(|job| elementwise::<i64>(job, [7, 9]));
}

#[test]
fn elementwise_operations_are_ndarrays_for_complex() {
    everywhere(|job| elementwise::<Complex<f64>>(job, [6, 10]));
}

#[test]
fn parts_longer_than_a_buffer() {
    everywhere(|job| elementwise::<f64>(job, [41, 120]));
}

#[test]
fn nothing_at_all() {
    everywhere(|job| {
        for extents in [[0, 4], [4, 0], [0, 0]] {
            for kind in [0, 1, 2, 5] {
                let mut a = laid_out::<f64>(job, extents, kind).create()?;
                let b = laid_out::<f64>(job, extents, (kind + 1) % 3).create()?;
                a.fill(1.0)?;
                a.assign(&b)?;
                a.assign_sum(1.0, &b, 2.0, &b)?;
                a.at_mut(..).fill(2.0)?;
                a.set_diagonal(&[])?;
                assert_eq!((a.dot(&b)?, a.sum()?, a.norm_1()?, a.norm_infinity()?), (0.0, 0.0, 0.0, 0.0));
                assert_eq!(a.diagonal()?.len(), 0);
                let mut t = laid_out::<f64>(job, [extents[1], extents[0]], kind).create()?;
                t.assign(a.t())?;
                let mut text = Vec::new();
                a.write_to(&mut text)?;
                assert!(job.rank() > 0 || text.ends_with(b" =\n[[]]\n"));
            }
        }
        Ok(())
    });
}

#[test]
fn patches_are_copied_added_and_multiplied() {
    everywhere(|job| {
        let (from, to) = ([12, 17], [20, 15]);
        for kind in 0..LAYOUTS {
            for other in [(kind + 2) % LAYOUTS, (kind + 5) % LAYOUTS, (kind + 7) % LAYOUTS] {
                let x = made::<f64>(job, from, other, 2)?;
                let y = made::<f64>(job, to, (other + 1) % LAYOUTS, 3)?;
                let (mx, my) = (model::<f64>(from, 2), model::<f64>(to, 3));
                let mut a = made::<f64>(job, to, kind, 4)?;
                let mut m = model::<f64>(to, 4);
                a.at_mut(s![3..13, 2..10]).assign(x.at(s![1..11, 9..17]))?;
                m.slice_mut(s![3..13, 2..10]).assign(&mx.slice(s![1..11, 9..17]));
                same(&a, &m)?;
                a.at_mut(s![..12;2, ..;-3]).assign(x.at(s![2..8;-1, 1..15;3]))?;
                m.slice_mut(s![..12;2, ..;-3]).assign(&mx.slice(s![2..8;-1, 1..15;3]));
                same(&a, &m)?;
                a.at_mut(s![4, ..]).assign(x.at(s![7, 2..]))?;
                m.slice_mut(s![4, ..]).assign(&mx.slice(s![7, 2..]));
                same(&a, &m)?;
                a.at_mut(s![1..18, 2..14]).assign(x.t())?;
                m.slice_mut(s![1..18, 2..14]).assign(&mx.t());
                same(&a, &m)?;
                a.at_mut(s![..;4, 1..5;-1]).assign(x.at(s![8.., 3..13;2]).t())?;
                m.slice_mut(s![..;4, 1..5;-1]).assign(&mx.slice(s![8.., 3..13;2]).t());
                same(&a, &m)?;
                a.at_mut(s![2..6, 3..8]).assign_sum(2.0, x.at(s![..8;2, 10..15]), -1.0, y.at(s![5..9, 1..6]))?;
                let sum = &mx.slice(s![..8;2, 10..15]) * 2.0 - my.slice(s![5..9, 1..6]);
                m.slice_mut(s![2..6, 3..8]).assign(&sum);
                same(&a, &m)?;
                let dot = (&mx.slice(s![1..5, ..;2]) * &my.slice(s![..;5, 2..11])).sum();
                assert_eq!(x.at(s![1..5, ..;2]).dot(y.at(s![..;5, 2..11]))?, dot);
                a.at_mut(s![1..18, 2..14]).scaled_add(-0.5, x.t())?;
                m.slice_mut(s![1..18, 2..14]).scaled_add(-0.5, &mx.t());
                same(&a, &m)?;
                let dot = (&mx.slice(s![1..5, ..;2]).t() * &my.slice(s![2..11, ..;4])).sum();
                assert_eq!(x.at(s![1..5, ..;2]).t().dot(y.at(s![2..11, ..;4]))?, dot);
                a.at_mut(s![4, ..]).map(|x| 3.0 * x)?;
                m.slice_mut(s![4, ..]).mapv_inplace(|x| 3.0 * x);
                same(&a, &m)?;
            }
        }
        Ok(())
    });
}

/// A single index removes its axis, on either side.
#[test]
fn rows_columns_and_slabs_are_operands() {
    everywhere(|job| {
        let (from, to) = ([12, 9], [9, 14]);
        for kind in 0..LAYOUTS {
            let other = (kind + 3) % LAYOUTS;
            let x = made::<f64>(job, from, other, 2)?;
            let mx = model::<f64>(from, 2);
            let mut a = made::<f64>(job, to, kind, 4)?;
            let mut m = model::<f64>(to, 4);
            let mut v = GlobalArray1::<f64>::builder(job, [12]).block_cyclic([2]).create()?;
            // Columns, rows, and one as the other.
            v.assign(x.at(s![.., 3]))?;
            same(&v, &mx.column(3).to_owned())?;
            a.at_mut(s![4, 1..13]).assign(&v)?;
            m.slice_mut(s![4, 1..13]).assign(&mx.column(3));
            same(&a, &m)?;
            a.at_mut(s![..;-1, 7]).assign(x.at(s![8, ..]))?;
            m.slice_mut(s![..;-1, 7]).assign(&mx.row(8));
            same(&a, &m)?;
            a.at_mut(s![2, ..12]).scaled_add(2.0, x.at(s![.., 0]).t())?;
            m.slice_mut(s![2, ..12]).scaled_add(2.0, &mx.column(0));
            a.at_mut(s![3, ..12]).axpby(2.0, &v, -1.0)?;
            let sum = &mx.column(3) * 2.0 - m.slice(s![3, ..12]);
            m.slice_mut(s![3, ..12]).assign(&sum);
            a.at_mut(s![5, ..12]).zip_with2(x.at(s![.., 1]), &v, |a, x, v| a + x * v)?;
            let sum = &m.slice(s![5, ..12]) + &mx.column(1) * &mx.column(3);
            m.slice_mut(s![5, ..12]).assign(&sum);
            a.at_mut(s![0, 3]).fill(-2.0)?;
            m[[0, 3]] = -2.0;
            a.at_mut(s![.., 2]).map_indexed(|i, x| x + i as f64)?;
            m.column_mut(2).indexed_iter_mut().for_each(|(i, x)| *x += i as f64);
            same(&a, &m)?;
            assert_eq!(v.dot(a.at(s![4, 1..13]))?, mx.column(3).dot(&m.slice(s![4, 1..13])));
            // Reductions of what is left, with indices in it.
            assert_eq!(a.at(s![1..;3, 2..]).sum()?, m.slice(s![1..;3, 2..]).sum());
            assert_eq!(a.at(s![3, ..]).max_abs()?, m.row(3).iter().fold(0.0, |a: f64, b| a.max(b.abs())));
            assert_eq!(a.at(s![.., 4]).argmin()?, first_best(&m.column(4).to_owned(), f64::lt));
            assert_eq!(a.at(s![2..8, ..;-2]).argmax()?, first_best(&m.slice(s![2..8, ..;-2]).to_owned(), f64::gt));
            // Most numbers are there more than once: the first is another one if the axes are reversed.
            assert_eq!(a.t().argmin()?, first_best(&m.t().to_owned(), f64::lt));
            assert_eq!(a.at(s![2..8, ..;-2]).t().argmax()?, first_best(&m.slice(s![2..8, ..;-2]).t().to_owned(), f64::gt));
            let places = |index: (usize, usize), x: f64| [x, x * index.0 as f64, x * index.1 as f64];
            let plus = |a: [f64; 3], b| a.plus(b);
            let of_model = |m: ndarray::ArrayView2<'_, f64>| m.indexed_iter().fold([0.0; 3], |a, (i, &x)| a.plus(places(i, x)));
            assert_eq!(a.map_reduce_indexed([0.0; 3], places, plus)?, of_model(m.view()));
            let part = s![1..8;2, ..;-3];
            assert_eq!(a.at(part).map_reduce_indexed([0.0; 3], places, plus)?, of_model(m.slice(part)));
            assert_eq!(a.at(part).t().map_reduce_indexed([0.0; 3], places, plus)?, of_model(m.slice(part).t()));
            // Slabs of a cube: matrices, also as factors.
            let mut cube = GlobalArray3::<f64>::builder(job, [9, 4, 12]).tiled([2, 3, 5]).zeros().create()?;
            cube.at_mut(s![.., 2, ..]).assign(x.t())?;
            same(&v, &cube.get(s![3, 2, ..])?)?;
            let mut square = laid_out::<f64>(job, [9, 9], kind).create()?;
            square.matmul(1.0, cube.at(s![.., 2, ..]), cube.at(s![.., 2, ..]).t(), 0.0)?;
            same(&square, &mx.t().dot(&mx))?;
            let wrong = v.assign(cube.at(s![0, 0, ..4])).expect_err("another shape").to_string();
            assert!(wrong.contains("with shape [12]") && wrong.contains("with [4]"), "{wrong}");
            let outside = v.assign(cube.at(s![0, 4, ..])).expect_err("outside").to_string();
            assert!(outside.contains("assign"), "{outside}");
        }
        Ok(())
    });
}

#[test]
fn matrices_times_vectors() {
    everywhere(|job| {
        let extents = [14, 9];
        for kind in 0..LAYOUTS {
            let a = made::<f64>(job, extents, kind, 3)?;
            let m = model::<f64>(extents, 3);
            let x = GlobalArray1::<f64>::from_fn(job, [9], |i| i as f64 - 3.0)?;
            let z = GlobalArray1::<f64>::builder(job, [14]).block_cyclic([3]).fill(2.0).create()?;
            let (mx, mz) = (x.get(..)?, Array1::from_elem(14, 2.0));
            let mut y = GlobalArray1::<f64>::builder(job, [14]).fill(f64::NAN).create()?;
            y.matvec(2.0, &a, &x, 0.0)?;
            same(&y, &(m.dot(&mx) * 2.0))?;
            y.matvec(-1.0, &a, &x, 3.0)?;
            same(&y, &(m.dot(&mx) * 5.0))?;
            let mut w = GlobalArray1::<f64>::builder(job, [9]).tiled([2]).fill(1.0).create()?;
            w.matvec(1.0, a.t(), &z, 1.0)?;
            same(&w, &(m.t().dot(&mz) + 1.0))?;
            // Patches with steps, and rows of a matrix as vectors.
            let mut b = made::<f64>(job, [4, 14], (kind + 1) % LAYOUTS, 5)?;
            let mut mb = model::<f64>([4, 14], 5);
            b.at_mut(s![1, ..5]).matvec(1.0, a.at(s![2..12;2, ..;-3]), x.at(s![..;4]), -1.0)?;
            let product = m.slice(s![2..12;2, ..;-3]).dot(&mx.slice(s![..;4])) - mb.slice(s![1, ..5]);
            mb.slice_mut(s![1, ..5]).assign(&product);
            same(&b, &mb)?;
            w.matvec(1.0, a.at(s![..;-1, ..]).t(), b.at(s![3, ..]), 0.0)?;
            same(&w, &m.slice(s![..;-1, ..]).t().dot(&mb.row(3)))?;
            assert_eq!(a.trace()?, m.diag().sum());
            let wrong = y.matvec(1.0, &a, &z, 0.0).expect_err("other shapes").to_string();
            assert!(wrong.contains("14 x 9"), "{wrong}");
        }
        let none = GlobalArray2::<i64>::zeros(job, [0, 3])?;
        let mut y = GlobalArray1::<i64>::from_fn(job, [3], |i| i as i64)?;
        y.matvec(1, none.t(), &GlobalArray1::zeros(job, [0])?, 2)?;
        assert_eq!((y.get(..)?.to_vec(), none.trace()?), (vec![0, 2, 4], 0));
        Ok(())
    });
}

/// Arrays of numbers are added number by number, also by owners whose memory is not mapped.
#[test]
fn vectors_are_elements() {
    everywhere(|job| {
        let mut a = GlobalArray2::<[f64; 3]>::builder(job, [5, 6]).block_cyclic([2, 2]).zeros().create()?;
        let ones = Array2::from_elem([5, 6], [1.0, 2.0, 3.0]);
        a.accumulate(.., 0.5, &ones)?;
        a.accumulate(s![1..;2, ..;-2], 2.0, ones.slice(s![..2, ..3]))?;
        a.scatter_accumulate(&[[4, 5], [0, 0]], 1.0, &[[0.0, 0.0, 1.0]; 2])?;
        job.sync()?;
        let ranks = job.size() as f64;
        assert_eq!(a.load([1, 1])?, [2.5 * ranks, 5.0 * ranks, 7.5 * ranks]);
        assert_eq!(a.sum()?, [(15.0 + 12.0) * ranks, 2.0 * 27.0 * ranks, (3.0 * 27.0 + 2.0) * ranks]);
        job.sync()?;
        let x = GlobalArray2::<[f64; 3]>::builder(job, [5, 6]).fill([1.0; 3]).create()?;
        a.axpby(2.0, &x, 0.0)?;
        a.scale(1.5)?;
        // Beyond the buffers of an accumulate.
        let mut wide = GlobalArray1::<[f64; 10_000]>::builder(job, 3).create()?;
        wide.owner_epoch(|mut part| part.iter_mut().for_each(|x| x.fill(0.0)))?;
        wide.accumulate(1..3, 0.5, &Array1::from_elem(2, [1.0; 10_000]))?;
        job.sync()?;
        assert!(wide.get(2..3)?.iter().flatten().all(|&x| x == 0.5 * ranks));
        a.add_constant([0.0, 1.0, 2.0])?;
        assert_eq!(a.get([3, 3].map(|i| i..i + 1))?[[0, 0]], [3.0, 4.0, 5.0]);
        Ok(())
    });
}

#[test]
fn matrices_are_transposed() {
    everywhere(|job| {
        for extents in [[13, 8], [300, 270]] {
            let kinds = if extents[0] > 100 { 0..2 } else { 0..LAYOUTS };
            for kind in kinds.clone() {
                for other in kinds.clone() {
                    let a = made::<f64>(job, extents, kind, 6)?;
                    let mut t = laid_out::<f64>(job, [extents[1], extents[0]], other).create()?;
                    t.assign(a.t())?;
                    same(&t, &model::<f64>(extents, 6).reversed_axes())?;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn symmetric_and_antisymmetric_parts() {
    everywhere(|job| {
        // Squares of 64, and of 256 over a network, that are cut, whole and several.
        for n in [1, 5, 64, 65, 150, 300] {
            let kinds = if n > 200 { 5..7 } else { 0..LAYOUTS };
            for kind in kinds {
                let m = model::<f64>([n, n], 3);
                let mut a = made::<f64>(job, [n, n], kind, 3)?;
                a.symmetrize()?;
                same(&a, &((&m + &m.t()) / 2.0))?;
                let mut a = made::<f64>(job, [n, n], kind, 3)?;
                a.antisymmetrize()?;
                same(&a, &((&m - &m.t()) / 2.0))?;
            }
        }
        let mut a = made::<Complex<f64>>(job, [70, 70], 2, 1)?;
        a.map_indexed(|(i, j), x| x * Complex::new(i as f64, j as f64))?;
        let m = a.get(..)?;
        job.sync()?;
        a.symmetrize()?;
        same(&a, &((&m + &m.t()) / Complex::new(2.0, 0.0)))?;
        let mut nothing = laid_out::<f32>(job, [0, 0], 5).create()?;
        nothing.symmetrize()?;
        assert!(matches!(made::<f64>(job, [3, 4], 0, 0)?.symmetrize(), Err(Error::Mismatch { .. })));
        Ok(())
    });
}

/// The first element in row-major order that no other is better than; NaN is better than all.
fn first_best<D: Dimension>(m: &Array<f64, D>, better: fn(&f64, &f64) -> bool) -> Option<(f64, D::Pattern)> {
    let mut all = m.indexed_iter().map(|(index, &x)| (x, index));
    let first = all.next()?;
    let (value, index) =
        all.fold(first, |best, x| if !best.0.is_nan() && (x.0.is_nan() || better(&x.0, &best.0)) { x } else { best });
    Some((value, index))
}

#[test]
fn extremes_and_where_they_are() {
    everywhere(|job| {
        for extents in [[14, 9], [1, 1], [70, 80], [0, 3]] {
            for kind in 0..LAYOUTS {
                // Small whole numbers: most are there more than once.
                let mut a = made::<f64>(job, extents, kind, 8)?;
                let m = model::<f64>(extents, 8);
                assert_eq!(a.argmin()?, first_best(&m, f64::lt), "{}", a.summary());
                assert_eq!(a.argmax()?, first_best(&m, f64::gt), "{}", a.summary());
                a.fill(0.0)?;
                assert_eq!(a.argmax()?, m.first().map(|_| (0.0, (0, 0))));
                if extents[0] > 10 {
                    a.at_mut(s![9..;2, 3..;4]).fill(f64::NAN)?;
                    let found = a.argmin()?;
                    assert!(matches!(found, Some((x, (9, 3))) if x.is_nan()), "{found:?} of {}", a.summary());
                }
            }
        }
        let cube = GlobalArray::<u8, IxDyn>::builder(job, IxDyn(&[3, 4, 5])).tiled([2, 2, 2]).zeros().create()?;
        if job.rank() == 0 {
            cube.store(IxDyn(&[2, 0, 4]), 9)?;
            cube.store(IxDyn(&[2, 1, 0]), 9)?;
        }
        assert_eq!(cube.argmax()?, Some((9, IxDyn(&[2, 0, 4]))));
        Ok(())
    });
}

#[test]
fn norms_and_reductions() {
    everywhere(|job| {
        let extents = [14, 9];
        for kind in 0..LAYOUTS {
            let mut a = made::<f64>(job, extents, kind, 8)?;
            a.map(|x| if x as i64 % 3 == 0 { -x } else { x })?;
            let m = model::<f64>(extents, 8).mapv(|x| if x as i64 % 3 == 0 { -x } else { x });
            let abs = m.mapv(f64::abs);
            let largest = |sums: Array1<f64>| sums.into_iter().fold(0.0, f64::max);
            assert_eq!(a.norm_1()?, largest(abs.sum_axis(ndarray::Axis(0))));
            assert_eq!(a.norm_infinity()?, largest(abs.sum_axis(ndarray::Axis(1))));
            approx::assert_relative_eq!(a.norm_frobenius()?, (&m * &m).sum().sqrt(), max_relative = 1e-14);
            assert_eq!(a.max_abs()?, abs.iter().copied().fold(0.0, f64::max));
            assert_eq!(a.sum()?, m.sum());
            assert_eq!(a.reduce(f64::INFINITY, ops::min)?, m.iter().copied().fold(f64::INFINITY, f64::min));
            assert_eq!(a.map_reduce(0_u64, |x| u64::from(x < 0.0), ops::sum)?, m.iter().filter(|&&x| x < 0.0).count() as u64);
            a.at_mut(s![3, 4]).fill(f64::NAN)?;
            assert!(a.norm_1()?.is_nan() && a.norm_infinity()?.is_nan() && a.max_abs()?.is_nan());
        }
        let mut old = GlobalArray1::<f64>::builder(job, [50]).fill(f64::NAN).create()?;
        old.axpby(2.0, &GlobalArray1::from_fn(job, [50], |i| i as f64)?, 0.0)?;
        old.at_mut(s![3..;2]).axpby(2.0, GlobalArray1::from_fn(job, [50], |i| i as f64)?.at(s![3..;2]), 0.0)?;
        assert_eq!(old.sum()?, 49.0 * 50.0);
        let mut v = GlobalArray::<Complex<f64>, Ix1>::builder(job, [50]).block_cyclic([4]).create()?;
        v.fill(Complex::new(3.0, -4.0))?;
        assert_eq!((v.norm_1()?, v.norm_infinity()?), (250.0, 5.0));
        assert_eq!(v.dot(&v)?, Complex::new(-350.0, -1200.0));
        Ok(())
    });
}

#[test]
fn diagonals_rows_and_columns() {
    everywhere(|job| {
        for extents in [[9, 12], [12, 9], [5, 5]] {
            for kind in 0..LAYOUTS {
                let mut a = made::<i64>(job, extents, kind, 3)?;
                let mut m = model::<i64>(extents, 3);
                assert_eq!(a.diagonal()?, m.diag());
                let values: Vec<i64> = (0..m.diag().len() as i64).collect();
                a.set_diagonal(&values)?;
                m.diag_mut().assign(&Array1::from(values.clone()));
                a.add_diagonal(&values)?;
                a.shift_diagonal(-3)?;
                m.diag_mut().iter_mut().zip(&values).for_each(|(x, v)| *x += v - 3);
                same(&a, &m)?;
                let rows: Vec<i64> = (1..).take(extents[0]).collect();
                let columns: Vec<i64> = (-4..).take(extents[1]).collect();
                a.scale_rows(&rows)?;
                a.scale_cols(&columns)?;
                m.indexed_iter_mut().for_each(|((i, j), x)| *x *= rows[i] * columns[j]);
                same(&a, &m)?;
                assert!(matches!(a.scale_rows(&[1]), Err(Error::Shape { .. })));
                assert!(matches!(a.set_diagonal(&[]), Err(Error::Shape { .. })));
            }
        }
        Ok(())
    });
}

#[test]
fn more_axes() {
    everywhere(|job| {
        let extents = [5, 4, 6];
        let number = |(i, j, k): (usize, usize, usize)| (100 * i + 10 * j + k) as i32;
        let m = Array3::from_shape_fn(extents, number);
        let mut a = GlobalArray::<i32, Ix3>::builder(job, extents).create()?;
        a.map_indexed(|at, _| number(at))?;
        same(&a, &m)?;
        let mut b = GlobalArray::<i32, Ix3>::builder(job, extents).block_cyclic([2, 1, 3]).create()?;
        b.assign(&a)?;
        same(&b, &m)?;
        b.at_mut(s![1..4, ..;-1, 2..4]).assign(a.at(s![2.., .., ..4;2]))?;
        let mut n = m.clone();
        n.slice_mut(s![1..4, ..;-1, 2..4]).assign(&m.slice(s![2.., .., ..4;2]));
        same(&b, &n)?;
        let mut t =
            GlobalArray::<i32, Ix3>::builder(job, [6, 4, 5]).block_cyclic([2, 3, 2]).order(Order::ColumnMajor).create()?;
        t.assign(b.t())?;
        same(&t, &n.reversed_axes())?;
        let mut c = GlobalArray::<i32, IxDyn>::builder(job, IxDyn(&[3, 2, 2, 3])).fill(2).create()?;
        c.map_indexed(|at, x| x + at[3] as i32)?;
        assert_eq!(c.sum()?, 36 * 2 + 12 * 3);
        Ok(())
    });
}

#[test]
fn text_is_ndarrays() {
    everywhere(|job| {
        let check = |text: Vec<u8>, title: &str, model: String| {
            assert!(job.rank() > 0 || String::from_utf8(text).unwrap() == format!("{title} =\n{model}\n"), "{model}");
        };
        for extents in [[3, 4], [30, 12], [40, 5], [5, 200], [60, 70]] {
            let a = made::<f64>(job, extents, 2, 1)?;
            let mut text = Vec::new();
            a.write_to(&mut text)?;
            let [n, m] = extents;
            check(text, &format!("layout 2[0..{n}, 0..{m}]"), model::<f64>(extents, 1).to_string());
        }
        let mut a = GlobalArray::<i64, Ix3>::builder(job, [9, 8, 13]).name("cube").create()?;
        let number = |(i, j, k): (usize, usize, usize)| (i * j * k) as i64;
        a.map_indexed(|at, _| number(at))?;
        let m = Array3::from_shape_fn([9, 8, 13], number);
        let mut text = Vec::new();
        a.write_to(&mut text)?;
        check(text, "cube[0..9, 0..8, 0..13]", m.to_string());
        let mut text = Vec::new();
        a.at(s![..;2, 3..5, ..;-4]).write_to(&mut text)?;
        check(text, "cube[0..9;2, 3..5, 0..13;-4]", m.slice(s![..;2, 3..5, ..;-4]).to_string());
        let mut text = Vec::new();
        a.at(s![8, 3..5, ..]).t().write_to(&mut text)?;
        check(text, "cube[8, 3..5, 0..13].t()", m.slice(s![8, 3..5, ..]).t().to_string());
        let summary = a.to_string();
        assert!(summary.contains("i64 [9, 8, 13], 7488 bytes") && summary.contains("block on grid"), "{summary}");
        Ok(())
    });
}

#[test]
fn a_writer_that_fails_fails_all_members() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    everywhere(|job| {
        let a = made::<f64>(job, [3, 3], 0, 0)?;
        assert!(a.write_to(Full).is_err());
        same(&a, &model([3, 3], 0))
    });
}

#[test]
fn what_does_not_fit_is_an_error_and_changes_nothing() {
    everywhere(|job| {
        let mut a = made::<f64>(job, [4, 5], 0, 1)?;
        let b = made::<f64>(job, [5, 4], 0, 1)?;
        assert!(matches!(a.assign(&b), Err(Error::Mismatch { .. })));
        assert!(matches!(a.scaled_add(1.0, &b), Err(Error::Mismatch { .. })));
        assert!(matches!(a.dot(&b), Err(Error::Mismatch { .. })));
        assert!(matches!(a.assign_zip(&b, &b, |x, _| x), Err(Error::Mismatch { .. })));
        assert!(matches!(a.at_mut(s![..2, ..]).assign(b.at(s![..2, ..])), Err(Error::Mismatch { .. })));
        assert!(matches!(a.at_mut(s![..5, ..]).fill(0.0), Err(Error::Patch { .. })));
        let square = made::<f64>(job, [4, 4], 0, 1)?;
        assert!(matches!(a.assign(square.t()), Err(Error::Mismatch { .. })));
        same(&a, &model([4, 5], 1))?;
        Ok(())
    });
}

#[test]
fn members_in_different_operations_all_fail() {
    let outcome = Launch::new().ranks(3).network("threads").run(|job| {
        let mut a = made::<f64>(job, [4, 4], 0, 1)?;
        let outcome = if job.rank() == 1 { a.fill(0.0) } else { a.scale(2.0) };
        assert!(matches!(outcome, Err(Error::Disagreement { .. })), "{outcome:?}");
        outcome
    });
    assert!(outcome.is_err());
}
