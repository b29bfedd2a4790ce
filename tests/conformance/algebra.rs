//! Operations on whole arrays and patches, over every network. Their rules are tested in `tests/algebra.rs`.

use global_arrays::{Builder, prelude::*};

const EXTENTS: [[usize; 2]; 4] = [[7, 5], [1, 9], [6, 6], [0, 3]];

/// Calls `f` with each group and shape, and with a function that lays out an array.
fn everywhere(job: &Job, f: impl Fn(&Group, [usize; 2]) -> Result<(), Error>) -> Result<(), Error> {
    let parity = job.split(job.rank() % 2)?;
    for group in [&**job, &parity] {
        EXTENTS.into_iter().try_for_each(|extents| f(group, extents))?;
    }
    job.sync()
}

const LAYOUTS: usize = 5;

/// Half of them: each is tried with some shape.
fn layouts(extents: [usize; 2]) -> impl Iterator<Item = usize> {
    (usize::from(extents[0] < 7)..LAYOUTS).step_by(2)
}

fn laid_out<T: Number>(group: &Group, extents: [usize; 2], layout: usize) -> Builder<'_, T, Ix2> {
    let builder = GlobalArray2::<T>::builder(group, extents);
    match layout {
        0 => builder,
        1 => builder.order(Order::ColumnMajor),
        2 => builder.block_cyclic([2, 3]),
        3 => builder.tiled([3, 2]).restrict((0..group.size().div_ceil(2)).rev()),
        _ => builder.ghosts([1, 2]),
    }
}

fn complex((i, j): (usize, usize)) -> Complex64 {
    Complex64::new((7 * i + j) as f64, i as f64 - 2.0 * j as f64)
}

pub(crate) fn unsynced(job: &Job) -> Result<(), Error> {
    everywhere(job, |group, extents| {
        let made = || GlobalArray2::<i64>::from_fn(group, extents, |(i, j)| (10 * i + j) as i64);
        let (mut a, mut b, model) = (made()?, made()?, made()?.get(..)?);
        let sum = group.unsynced(|| {
            a.scaled_add(2, &b)?;
            b.zip_with(&a, |b, a| a - b)?;
            // Others' elements: it syncs.
            a.at_mut(s![..;-1, ..]).assign(b.at(s![.., ..]))?;
            a.add_constant(1)?;
            a.sum()
        })?;
        let doubled = model.mapv(|x| 2 * x);
        assert_eq!(sum, doubled.sum() + doubled.len() as i64);
        assert_eq!(a.get(s![..;-1, ..])?, doubled + 1);
        group.sync()
    })
}

pub(crate) fn conjugates_and_norms(job: &Job) -> Result<(), Error> {
    everywhere(job, |group, extents @ [n, m]| {
        let model = Array2::from_shape_fn(extents, complex);
        let conjugate = model.t().mapv(|x| x.conj());
        for layout in layouts(extents) {
            let mut a = laid_out::<Complex64>(group, extents, layout).create()?;
            a.map_indexed(|at, _| complex(at))?;
            let mut h = laid_out::<Complex64>(group, [m, n], (layout + 1) % LAYOUTS).create()?;
            h.assign(a.h())?;
            assert_eq!(h.get(..)?, conjugate);
            h.zip_with(a.h(), |h, a| h - a)?;
            assert_eq!((h.max_abs()?, a.h().sum()?), (0.0, conjugate.sum()));
            h.assign(a.h().h().t())?;
            assert_eq!(h.get(..)?, model.t());
            // The squared norm, exactly: the numbers are small integers.
            assert_eq!(a.at(s![.., ..]).dot(a.at(s![.., ..]).h().t())?, model.iter().map(|x| x * x.conj()).sum());

            let mut product = laid_out::<Complex64>(group, [m, m], layout).create()?;
            product.matmul(Complex64::ONE, a.h(), &a, Complex64::ZERO)?;
            assert!((product.get(..)? - conjugate.dot(&model)).iter().all(|x| x.norm() < 1e-9));
            let mut x = GlobalArray1::<Complex64>::from_fn(group, [n], |i| complex((i, 1)))?;
            let mut y = GlobalArray1::<Complex64>::zeros(group, [m])?;
            y.matvec(Complex64::ONE, a.h(), &x, Complex64::ZERO)?;
            assert!((y.get(..)? - conjugate.dot(&x.get(..)?)).iter().all(|x| x.norm() < 1e-9));
            x.at_mut(..).zero()?;

            let part = model.slice(s![.., 1..]);
            let columns = part.axis_iter(Axis(1)).map(|lane| lane.iter().map(|x| x.norm()).sum::<f64>()).fold(0.0, f64::max);
            let rows = part.axis_iter(Axis(0)).map(|lane| lane.iter().map(|x| x.norm()).sum::<f64>()).fold(0.0, f64::max);
            let near = |x: f64, y: f64| assert!((x - y).abs() < 1e-9, "{x} {y}");
            near(a.at(s![.., 1..]).norm_1()?, columns);
            near(a.at(s![.., 1..]).norm_infinity()?, rows);
            near(a.at(s![.., 1..]).h().norm_1()?, rows);
            if n > 0 {
                near(a.at(s![n - 1, ..]).norm_1()?, model.row(n - 1).iter().map(|x| x.norm()).sum());
                near(a.at(s![n - 1, ..]).norm_infinity()?, a.at(s![n - 1, ..]).max_abs()?);
                // The type of the index is open when the compiler looks for the method.
                near(a.at(s![0, ..]).norm_1()?, model.row(0).iter().map(|x| x.norm()).sum());
            }
        }
        Ok(())
    })
}

pub(crate) fn sums_along_an_axis(job: &Job) -> Result<(), Error> {
    everywhere(job, |group, extents| {
        let model = Array2::from_shape_fn(extents, |(i, j)| (10 * i + j) as i64);
        for layout in layouts(extents) {
            let mut a = laid_out::<i64>(group, extents, layout).create()?;
            a.map_indexed(|(i, j), _| (10 * i + j) as i64)?;
            for axis in [Axis(0), Axis(1)] {
                assert_eq!(a.sum_axis(axis)?.get(..)?, model.sum_axis(axis), "{layout}");
            }
            assert!(a.sum_axis(Axis(2)).is_err());
        }
        let cube = GlobalArray3::<f64>::from_fn(group, [4, 3, 5], |(i, j, k)| (i * j + k) as f64)?;
        let model = Array3::from_shape_fn([4, 3, 5], |(i, j, k)| (i * j + k) as f64);
        for axis in (0..3).map(Axis) {
            assert_eq!(cube.sum_axis(axis)?.get(..)?, model.sum_axis(axis));
        }
        group.sync()
    })
}

pub(crate) fn reshaped(job: &Job) -> Result<(), Error> {
    everywhere(job, |group, extents @ [n, m]| {
        let model = Array2::from_shape_fn(extents, |(i, j)| (10 * i + j) as i64);
        for layout in layouts(extents) {
            let mut a = laid_out::<i64>(group, extents, layout).create()?;
            a.map_indexed(|(i, j), _| (10 * i + j) as i64)?;
            let mut list = GlobalArray1::<i64>::zeros(group, [n * m + 2])?;
            list.at_mut(s![1..=n * m]).assign_reshaped(&a)?;
            assert_eq!(list.get(s![1..=n * m])?.to_vec(), model.iter().copied().collect::<Vec<_>>());
            let mut turned = laid_out::<i64>(group, [m, n], (layout + 1) % LAYOUTS).create()?;
            turned.assign_reshaped(list.at(s![1..=n * m]))?;
            assert_eq!(turned.get(..)?, model.to_shape([m, n]).unwrap());
            turned.assign_reshaped(a.t())?;
            assert_eq!(turned.get(..)?, model.t());
            let mut cube = GlobalArray3::<i64>::zeros(group, [n, 1, m])?;
            cube.assign_reshaped(a.at(s![..;-1, ..]))?;
            assert_eq!(cube.get(s![.., 0, ..])?, model.slice(s![..;-1, ..]));
            assert!(list.assign_reshaped(&a).is_err());
        }
        Ok(())
    })
}

pub(crate) fn within(job: &Job) -> Result<(), Error> {
    everywhere(job, |group, extents @ [n, m]| {
        for layout in layouts(extents) {
            let mut a = laid_out::<i64>(group, extents, layout).create()?;
            a.map_indexed(|(i, j), _| (10 * i + j) as i64)?;
            let mut model = a.get(..)?;
            // Columns that lie between each other.
            let columns = m / 2;
            a.copy_within(s![.., ..2 * columns;2], s![.., 1..2 * columns;2])?;
            let even = model.slice(s![.., ..2 * columns;2]).to_owned();
            model.slice_mut(s![.., 1..2 * columns;2]).assign(&even);
            if n > 1 {
                a.copy_within(s![0, ..], s![n - 1, ..])?;
                let first = model.row(0).to_owned();
                model.row_mut(n - 1).assign(&first);
                assert!(a.copy_within(s![..n - 1, ..], s![1.., ..]).is_err());
            }
            a.copy_within(s![.., ..], s![.., ..])?;
            assert_eq!(a.get(..)?, model);
            group.sync()?;
        }
        Ok(())
    })
}

pub(crate) fn values(job: &Job) -> Result<(), Error> {
    everywhere(job, |group, extents @ [n, m]| {
        let k = n.min(m);
        for layout in layouts(extents) {
            let mut a = laid_out::<i64>(group, extents, layout).create()?;
            a.map_indexed(|(i, j), _| (10 * i + j) as i64)?;
            let mut model = a.get(..)?;
            let (mut rows, columns) = (Array1::from_iter((1..=n as i64).rev()), (0..m as i64).collect::<Vec<_>>());
            // A list that does not lie in its order.
            rows.invert_axis(Axis(0));
            let values = GlobalArray2::<i64>::from_fn(group, [n + 1, m], |(i, j)| if i < n { i as i64 + 1 } else { j as i64 })?;
            if layout % 2 == 0 {
                a.scale_rows(&rows)?;
                a.scale_cols(&columns)?;
                a.add_diagonal(&columns[..k])?;
            } else {
                if m > 0 {
                    a.scale_rows(values.at(s![..n, 0]))?;
                }
                a.scale_cols(values.at(s![n, ..]))?;
                a.add_diagonal(values.at(s![n, ..k]))?;
            }
            model.axis_iter_mut(Axis(0)).zip(&rows).for_each(|(mut row, factor)| row *= *factor);
            model.axis_iter_mut(Axis(1)).zip(&columns).for_each(|(mut column, factor)| column *= *factor);
            (0..k).for_each(|i| model[[i, i]] += columns[i]);
            assert_eq!(a.get(..)?, model, "{layout}");
            let mut diagonal = GlobalArray1::<i64>::zeros(group, [k])?;
            diagonal.assign_diagonal(&a)?;
            assert_eq!((diagonal.get(..)?, a.diagonal()?), (model.diag().to_owned(), model.diag().to_owned()));
            a.zero()?;
            a.set_diagonal(&diagonal)?;
            assert_eq!((a.trace()?, a.sum()?), (model.diag().sum(), model.diag().sum()));
            assert!(a.scale_rows(&vec![1; n + 1]).is_err() && a.scale_cols(values.at(s![n + 1, ..])).is_err());
        }
        group.sync()
    })
}
