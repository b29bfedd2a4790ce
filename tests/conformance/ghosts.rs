//! Ghost cells and periodic patches, against the index that each cell stands for.

use std::ops::Range;

use global_arrays::{Boundary, Builder, Side, prelude::*};
use ndarray::{ArrayView, IntoDimension};

/// What a ghost cell holds that was never filled.
const UNFILLED: i64 = -77;

fn value(index: impl IntoIterator<Item = usize>) -> i64 {
    index.into_iter().fold(1, |value, i| 37 * value + i as i64)
}

/// Elements by their index, ghost cells unfilled.
fn reset<D: Dimension>(job: &Job, array: &mut GlobalArray<i64, D>) -> Result<(), Error> {
    job.epoch(array.ghosts_mut(), |mut part| {
        part.view_mut().fill(UNFILLED);
        assert!(part.interior().iter().all(|&x| x == UNFILLED));
        part.interior_mut().fill(0);
    })?;
    array.map_indexed(|index, _| value(index.into_dimension().slice().iter().copied()))
}

/// Each cell of this rank's part, after an update of the ghost cells that `wanted` chooses by where they lie beyond the block.
fn check<D: Dimension>(array: &GlobalArray<i64, D>, view: ArrayView<'_, i64, D>, wanted: impl Fn(&[Option<Side>]) -> bool) {
    let me = array.group().member();
    let Some(block) = array.blocks(me).next() else {
        assert!(view.is_empty());
        return;
    };
    let ghosts = array.distribution().ghosts().expect("an array with ghost cells");
    assert_eq!(view.raw_dim(), array.distribution().part_shape(me));
    for (cell, &got) in view.indexed_iter() {
        let cell = cell.into_dimension();
        let (mut sides, mut nobody, mut index) = (Vec::new(), false, Vec::new());
        for axis in 0..cell.ndim() {
            let (start, count) = (block.patch.start()[axis] as i64, block.patch.count()[axis] as i64);
            let (n, i) = (array.shape()[axis] as i64, start + cell[axis] as i64 - ghosts.widths[axis] as i64);
            let after = (i >= start + count).then_some(Side::High);
            sides.push(if i < start { Some(Side::Low) } else { after });
            nobody |= ghosts.boundaries[axis] == Boundary::Open && !(0..n).contains(&i);
            index.push(i.rem_euclid(n) as usize);
        }
        let beyond = sides.iter().flatten().count();
        let filled = beyond == 0 || !nobody && (beyond == 1 || ghosts.corners) && wanted(&sides);
        assert_eq!(got, if filled { value(index) } else { UNFILLED }, "cell {cell:?} of {}", array.summary());
    }
}

/// Calls `f` for arrays of several shapes, distributions, widths and boundaries: blocks narrower than the halo, members without
/// elements, halos wider than the array.
fn each(job: &Job, mut f: impl FnMut(GlobalArray<i64, Ix2>) -> Result<(), Error>) -> Result<(), Error> {
    use Boundary::{Open, Periodic};
    let builder = |extents: [usize; 2]| GlobalArray::<i64, Ix2>::builder(job, extents);
    let cuts = |n: usize| (0..job.size()).map(|k| (k * k).min(n)).collect::<Vec<_>>();
    let layouts =
        [builder([9, 8]), builder([8, 5]).order(Order::ColumnMajor), builder([5, 11]).irregular(vec![cuts(5), vec![0]])];
    let ghosts = [([1, 1], [Periodic; 2], true), ([2, 3], [Open, Periodic], true), ([7, 13], [Periodic; 2], true)];
    let more = [([1, 2], [Open; 2], true), ([2, 1], [Periodic; 2], false), ([0, 2], [Periodic, Open], true)];
    for layout in layouts {
        for (widths, boundaries, corners) in ghosts.into_iter().chain(more) {
            f(layout.clone().ghosts(widths).boundaries(boundaries).corners(corners).create()?)?;
        }
    }
    // More members than elements.
    f(builder([2, 1]).ghosts([1, 1]).create()?)
}

pub(crate) fn updates(job: &Job) -> Result<(), Error> {
    each(job, |mut a| {
        reset(job, &mut a)?;
        a.update_ghosts()?;
        let seen = job.epoch(a.ghosts_mut(), |part| part.view().to_owned())?;
        check(&a, seen.view(), |_| true);
        // The elements are what they were, and what is written after an update is not in it.
        a.fill(5)?;
        let seen = job.epoch(a.ghosts_mut(), |part| (part.view().to_owned(), part.interior().to_owned()))?;
        assert!(seen.1.iter().all(|&x| x == 5));
        a.update_ghosts()?;
        let all_five = job.epoch(a.ghosts_mut(), |part| part.view().iter().all(|&x| x == 5 || x == UNFILLED))?;
        assert!(all_five);
        Ok(())
    })
}

pub(crate) fn by_side(job: &Job) -> Result<(), Error> {
    each(job, |mut a| {
        for axis in 0..2 {
            for side in [Side::Low, Side::High] {
                reset(job, &mut a)?;
                a.update_ghosts_at(axis, side)?;
                let seen = job.epoch(a.ghosts_mut(), |part| part.view().to_owned())?;
                check(&a, seen.view(), |sides| sides[axis] == Some(side));
            }
        }
        assert!(matches!(a.update_ghosts_at(2, Side::Low), Err(Error::Argument { .. })));
        Ok(())
    })
}

pub(crate) fn non_blocking(job: &Job) -> Result<(), Error> {
    each(job, |mut a| {
        reset(job, &mut a)?;
        let update = a.update_ghosts_nb()?;
        while !update.test()? {}
        update.wait()?;
        let seen = job.epoch(a.ghosts_mut(), |part| part.view().to_owned())?;
        check(&a, seen.view(), |_| true);
        // A handle that is dropped or forgotten leaves the elements alone, and the array usable.
        drop(a.update_ghosts_nb()?);
        std::mem::forget(a.update_ghosts_nb()?);
        a.update_ghosts()?;
        let seen = job.epoch(a.ghosts_mut(), |part| part.view().to_owned())?;
        check(&a, seen.view(), |_| true);
        Ok(())
    })
}

/// An epoch of ghosts sees what was put before it, everywhere, and what the owner writes beyond an open boundary.
/// The neighbors of elements are those of the whole array, and what lies beyond its edge is the program's.
pub(crate) fn cells(job: &Job) -> Result<(), Error> {
    each(job, |mut a| {
        reset(job, &mut a)?;
        let (shape, periodic) = ([a.shape()[0], a.shape()[1]], {
            let ghosts = a.distribution().ghosts().expect("ghost cells");
            [0, 1].map(|axis| ghosts.boundaries[axis] == Boundary::Periodic)
        });
        let (widths, summary) = (a.distribution().ghost_widths(), a.summary());
        // Beyond the low edge of the columns and the high edge of the rows.
        job.epoch(a.ghosts_mut(), |mut part| {
            for (axis, side, value) in [(1, Side::Low, -1), (0, Side::High, -2)] {
                if !periodic[axis] {
                    part.beyond_mut(axis, side).fill(value);
                }
            }
        })?;
        job.epoch(a.ghosts(), |part| {
            let cells = part.cells();
            for ((i, j), &x) in part.indexed_iter() {
                assert_eq!((x, cells.near((i, j), [0, 0])), (value([i, j]), x));
                for (axis, sign) in [(0, 1), (0, -1), (1, 1), (1, -1)] {
                    let far = sign * widths[axis] as isize;
                    let mut offset = [0, 0];
                    offset[axis] = far;
                    let got = cells.near((i, j), offset);
                    let mut index = [i as isize, j as isize];
                    index[axis] += far;
                    let n = shape[axis] as isize;
                    let inside = (0..n).contains(&index[axis]);
                    index[axis] = index[axis].rem_euclid(n);
                    let expected = match (inside || periodic[axis], axis, sign) {
                        (true, ..) => value(index.map(|i| i as usize)),
                        (false, 1, -1) => -1,
                        (false, 0, 1) => -2,
                        _ => UNFILLED,
                    };
                    assert_eq!(got, expected, "{offset:?} from {:?} of {summary}", (i, j));
                }
            }
        })
    })
}

pub(crate) fn epochs(job: &Job) -> Result<(), Error> {
    each(job, |mut a| {
        reset(job, &mut a)?;
        let seen = job.epoch(a.ghosts(), |part| {
            assert_eq!(part.widths(), part.distribution().ghost_widths());
            (part.view().to_owned(), part.interior().iter().sum::<i64>())
        })?;
        check(&a, seen.0.view(), |_| true);
        assert_eq!(job.all_reduce_one(seen.1, ops::sum)?, a.sum()?);
        Ok(())
    })?;
    let new = || GlobalArray::<i64, Ix1>::builder(job, [12]).ghosts([2]).fill(1).boundaries([Boundary::Open]);
    let (mut x, mut y) = (new().create()?, new().create()?);
    for step in 0..5 {
        let at = step % 12;
        if job.rank() == at % job.size() {
            x.put(at..at + 1, &Array1::from_elem(1, 100))?;
        }
        job.epoch((x.ghosts(), y.owned_mut()), |(x, mut y)| {
            let x = x.view();
            // Ghost cells are no elements: there is no slice, and what walks elements passes them over.
            assert!(y.as_slice().is_none() && y.as_mut_slice().is_none());
            y.fill(7);
            assert!(y.iter().eq(std::iter::repeat_n(&7, y.len())));
            y.view_mut().indexed_iter_mut().for_each(|(i, y)| *y = (0..5).map(|k| x[i + k]).sum());
        })?;
        let mut model: Vec<i64> = x.get(..)?.to_vec();
        model.splice(0..0, [1, 1]);
        model.extend([1, 1]);
        let expected: Vec<i64> = model.windows(5).map(|window| window.iter().sum()).collect();
        assert_eq!(y.get(..)?.to_vec(), expected);
        job.sync()?;
        x.map(|x| x + 1)?;
    }
    // Without ghost cells the same claims give the elements.
    let mut plain = GlobalArray::<i64, Ix1>::builder(job, [9]).block_cyclic([2]).fill(3).create()?;
    plain.update_ghosts()?;
    let sum = job.epoch(plain.ghosts(), |part| part.view().sum())?;
    assert_eq!(job.all_reduce_one(sum, ops::sum)?, 27);
    // Of tiles too, block by block.
    let mut tiles = GlobalArray::<i64, Ix2>::builder(job, [5, 7]).tiled([2, 3]).fill(2).create()?;
    tiles.update_ghosts()?;
    tiles.update_ghosts_nb()?.wait()?;
    let sum = job.epoch(tiles.ghosts(), |part| part.blocks().map(|tile| part.block(&tile).sum()).sum::<i64>())?;
    assert_eq!(job.all_reduce_one(sum, ops::sum)?, 70);
    Ok(())
}

pub(crate) fn more_axes(job: &Job) -> Result<(), Error> {
    let mut a = GlobalArray::<i64, Ix3>::builder(job, [5, 3, 4]).ghosts([1, 2, 3]).create()?;
    reset(job, &mut a)?;
    a.update_ghosts()?;
    let seen = job.epoch(a.ghosts_mut(), |part| part.view().to_owned())?;
    check(&a, seen.view(), |_| true);
    let boundaries = [Boundary::Periodic, Boundary::Open, Boundary::Periodic, Boundary::Open];
    let builder: Builder<'_, i64, IxDyn> = GlobalArray::builder(job, IxDyn(&[4, 3, 2, 3])).order(Order::ColumnMajor);
    let mut a = builder.ghosts([1; 4]).boundaries(boundaries).create()?;
    reset(job, &mut a)?;
    let seen = job.epoch(a.ghosts(), |part| part.view().to_owned())?;
    check(&a, seen.view(), |_| true);
    let mut copy = a.duplicate("copy")?;
    copy.assign(&a)?;
    let seen = job.epoch(copy.ghosts(), |part| part.interior().to_owned())?;
    assert_eq!(job.all_reduce_one(seen.sum(), ops::sum)?, a.sum()?);
    Ok(())
}

/// What is wrong is said, and an owner's slice of a padded part is refused, which ends the job.
pub(crate) fn refusals(job: &Job) -> Result<(), Error> {
    let builder = || GlobalArray::<i64, Ix2>::builder(job, [6, 6]);
    let cyclic = builder().block_cyclic([2, 2]).ghosts([1, 1]).create();
    assert!(cyclic.is_err_and(|error| error.to_string().contains("block-cyclic")));
    let axes = builder().ghosts([1]).create();
    assert!(axes.is_err_and(|error| error.to_string().contains("ghost widths for 1 axes, the array has 2")));
    let large = builder().ghosts([usize::MAX / 2, 1]).create();
    assert!(large.is_err_and(|error| matches!(error, Error::Distribution { .. })));
    let bare = [builder().corners(false).create(), builder().boundaries([Boundary::Open; 2]).create()];
    assert!(bare.iter().all(|made| made.as_ref().is_err_and(|error| error.to_string().contains("give their widths"))));
    let a = builder().ghosts([1, 1]).create()?;
    assert!(a.get(s![0..7, ..]).is_err());
    assert!(a.summary().to_string().contains("ghost cells [1, 1]"));
    let periodic = a.periodic();
    assert!(matches!(periodic.get(0..1), Err(Error::Patch { .. })));
    assert!(matches!(periodic.put([0..1, 0..2], &Array2::zeros((1, 1))), Err(Error::Shape { .. })));
    // However often a range goes round, what does not fit is said before anything is moved.
    let ages = [i64::MIN..i64::MAX, i64::MIN..i64::MAX];
    assert!(matches!(periodic.put(ages.clone(), &Array2::zeros((1, 1))), Err(Error::Shape { .. })));
    assert!(matches!(periodic.get(ages), Err(Error::Argument { .. })));
    assert_eq!(periodic.get([0..i64::MAX, 4..4])?.len(), 0);
    let none = GlobalArray::<i64, Ix1>::builder(job, [0]).create()?;
    assert_eq!(none.periodic().get(3..3)?.len(), 0);
    assert!(matches!(none.periodic().get(0..1), Err(Error::Patch { .. })));
    job.sync()
}

pub(crate) fn periodic_patches(job: &Job) -> Result<(), Error> {
    let (rows, columns) = (7_i64, 5_i64);
    let mut a = GlobalArray::<i64, Ix2>::builder(job, [7, 5]).block_cyclic([2, 2]).create()?;
    a.map_indexed(|(i, j), _| value([i, j]))?;
    let wrapped = |i: i64, n: i64| i.rem_euclid(n) as usize;
    let ranges: [[Range<i64>; 2]; 6] =
        [[0..7, 0..5], [-2..3, 4..6], [5..9, -7..-3], [-100..-90, 40..44], [-3..18, -1..11], [2..2, 0..5]];
    for [r, c] in ranges.clone() {
        let got = a.periodic().get([r.clone(), c.clone()])?;
        let (height, width) = ((r.end - r.start) as usize, (c.end - c.start) as usize);
        let expected = Array2::from_shape_fn((height, width), |(i, j)| {
            value([wrapped(r.start + i as i64, rows), wrapped(c.start + j as i64, columns)])
        });
        assert_eq!(got, expected, "{r:?} {c:?}");
    }
    // Every rank in turn puts and accumulates; all follow it in a model.
    let mut model = a.get(..)?;
    job.sync()?;
    for turn in 0..3 * job.size() {
        let [r, c] = ranges[turn % ranges.len()].clone();
        let shape = ((r.end - r.start) as usize, (c.end - c.start) as usize);
        let values = Array2::from_shape_fn(shape, |(i, j)| value([turn, i, j]));
        let meets_once = shape.0 <= 7 && shape.1 <= 5;
        if job.rank() == turn % job.size() {
            if meets_once {
                a.periodic().put([r.clone(), c.clone()], &values)?;
            }
            // Strides of the caller's own.
            let flipped = values.slice(s![..;-1, ..]);
            a.periodic().accumulate([r.clone(), c.clone()], 2, flipped)?;
        }
        let at = |i: usize, j: usize| [wrapped(r.start + i as i64, rows), wrapped(c.start + j as i64, columns)];
        if meets_once {
            values.indexed_iter().for_each(|((i, j), &x)| model[at(i, j)] = x);
        }
        values.indexed_iter().for_each(|((i, j), &x)| model[at(shape.0 - 1 - i, j)] += 2 * x);
        job.sync()?;
        assert_eq!(a.get(..)?, model);
        job.sync()?;
    }
    Ok(())
}
