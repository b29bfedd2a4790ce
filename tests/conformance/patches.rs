//! Get, put and accumulate of patches, compared with the same on a plain array that every rank keeps.

use global_arrays::{
    index::{IntoPatch, Patch},
    prelude::*,
};
use ndarray::{Array, ArrayView, ArrayViewMut, Ix4, Ix5, Slice};

use crate::random::{Axis, Random, patch, shape};

pub(crate) fn one_axis(job: &Job) -> Result<(), Error> {
    every_layout::<Ix1>(job, &[37])?;
    every_layout::<Ix1>(job, &[1])?;
    every_layout::<Ix1>(job, &[0])
}

pub(crate) fn two_axes(job: &Job) -> Result<(), Error> {
    every_layout::<Ix2>(job, &[13, 11])?;
    every_layout::<Ix2>(job, &[1, 9])?;
    every_layout::<Ix2>(job, &[4, 0])
}

pub(crate) fn three_axes(job: &Job) -> Result<(), Error> {
    every_layout::<Ix3>(job, &[5, 8, 6])
}

pub(crate) fn four_axes(job: &Job) -> Result<(), Error> {
    every_layout::<Ix4>(job, &[4, 3, 5, 4])
}

pub(crate) fn five_axes(job: &Job) -> Result<(), Error> {
    every_layout::<Ix5>(job, &[3, 4, 2, 3, 3])
}

pub(crate) fn six_axes(job: &Job) -> Result<(), Error> {
    every_layout::<Ix6>(job, &[2, 3, 2, 3, 2, 3])
}

pub(crate) fn seven_axes(job: &Job) -> Result<(), Error> {
    every_layout::<IxDyn>(job, &[2, 3, 2, 2, 2, 3, 2])
}

/// Every operation takes an array of 64 axes, and no array has more: a patch keeps a bit for each axis.
pub(crate) fn most_axes(job: &Job) -> Result<(), Error> {
    const MOST: usize = 64;
    let shape = |axes: usize| {
        let mut extents = vec![1; axes];
        (extents[0], extents[axes - 1]) = (3, 5);
        IxDyn(&extents)
    };
    let array = |axes| GlobalArray::<i64, IxDyn>::builder(job, shape(axes)).name("many axes");
    let a = array(MOST).zeros().create()?;
    let numbers = Array::from_shape_fn(shape(MOST), |at| (10 * at[0] + at[MOST - 1]) as i64);
    let last: Vec<usize> = (0..MOST).map(|axis| numbers.shape()[axis] - 1).collect();
    if job.rank() == 0 {
        a.put(.., &numbers)?;
        a.accumulate(.., 2, &numbers)?;
    }
    job.sync()?;
    assert_eq!(a.get(..)?, &numbers * 3);
    assert_eq!(a.load(IxDyn(&last))?, 3 * 24);
    job.sync()?;
    if job.rank() == job.size() - 1 {
        a.store(IxDyn(&last), 7)?;
    }
    job.sync()?;
    assert_eq!((a.get_nb(..)?.wait()?[IxDyn(&last)], a.sum()?), (7, 3 * 180 - 3 * 24 + 7));

    let ones = |axes: usize| vec![1; axes];
    let cuts = |axes: usize| vec![vec![0]; axes];
    let builders = |axes: usize| {
        [
            array(axes),
            array(axes).grid(ones(axes)),
            array(axes).min_block(ones(axes)),
            array(axes).block_cyclic(ones(axes)),
            array(axes).irregular(cuts(axes)),
            array(axes).tiled(ones(axes)),
            array(axes).tiled_irregular(cuts(axes)),
            array(axes).restrict([0]),
            array(axes).ghosts(ones(axes)).corners(false),
        ]
    };
    for builder in builders(MOST + 1) {
        let refused = builder.create().expect_err("an array that no patch can name").to_string();
        let words = ["\"many axes\"", "65 axes", "64"];
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    }
    // Nothing is left behind, and nobody has gone ahead.
    assert_eq!(array(2).fill(1).create()?.sum()?, 15);
    job.sync()
}

fn every_layout<D: Dimension>(job: &Job, extents: &[usize]) -> Result<(), Error> {
    let mut random = Random::new(extents.iter().fold(17, |seed, &n| seed * 31 + n as u64));
    let mut dimension = D::zeros(extents.len());
    dimension.slice_mut().copy_from_slice(extents);
    let plain = || GlobalArray::<i64, D>::builder(job, dimension.clone());
    let block: Vec<usize> = extents.iter().map(|&n| random.between(1, n.max(1))).collect();
    let mut cuts: Vec<Vec<usize>> = extents.iter().map(|_| vec![0]).collect();
    let mut inner: Vec<usize> = (1..job.size()).map(|_| random.between(0, extents[0])).collect();
    inner.sort_unstable();
    cuts[0].extend(inner);
    let tiles: Vec<Vec<usize>> = extents.iter().map(|&n| vec![0, n / 3, n / 3, n - n / 4]).collect();
    // Every second member, from the last.
    let some = || (0..job.size()).rev().step_by(2);
    for array in [
        plain(),
        plain().order(Order::ColumnMajor).name("columns"),
        plain().block_cyclic(&block),
        plain().block_cyclic(vec![1; extents.len()]).order(Order::ColumnMajor),
        plain().irregular(cuts.clone()),
        plain().tiled(&block),
        plain().tiled(vec![2; extents.len()]).order(Order::ColumnMajor),
        plain().tiled_irregular(tiles.clone()),
        plain().restrict(some()),
        plain().block_cyclic(&block).restrict(job.size() / 2..job.size()),
        plain().tiled_irregular(tiles).order(Order::ColumnMajor).restrict(some()),
        plain().ghosts(vec![1; extents.len()]),
        plain().irregular(cuts.clone()).order(Order::ColumnMajor).ghosts(vec![2; extents.len()]),
        plain().ghosts(vec![1; extents.len()]).restrict(some()),
    ] {
        let array = array.zeros().create()?;
        by_turns(job, &array, &mut random)?;
        array.destroy()?;
    }
    Ok(())
}

/// Each rank in turn does something; all know what and follow it in a model.
fn by_turns<D: Dimension>(job: &Job, array: &GlobalArray<i64, D>, random: &mut Random) -> Result<(), Error> {
    let mut model = ArrayD::<i64>::zeros(array.shape());
    for turn in 0..2 * job.size() {
        for _ in 0..3 {
            let axes: Vec<Axis> = if random.chance(10) {
                whole(array.shape())
            } else {
                array.shape().iter().map(|&n| Axis::random(random, 0, n)).collect()
            };
            let mut buffer = Strided::new(shape(&axes).slice(), random);
            let (what, first) = (random.below(3), random.below(1000) as i64);
            buffer.view_mut().iter_mut().enumerate().for_each(|(k, value)| *value = first + k as i64);
            let mut target = model.slice_each_axis_mut(|axis| axes[axis.axis.index()].slice());
            if what == 0 {
                target.assign(&buffer.view());
            } else if what == 1 {
                target.zip_mut_with(&buffer.view(), |a, &b| *a += 3 * b);
            }
            if turn % job.size() != job.rank() {
                continue;
            }
            match what {
                0 => array.put(patch::<D>(&axes), buffer.typed::<D>())?,
                1 => array.accumulate(patch::<D>(&axes), 3, buffer.typed::<D>())?,
                _ => {
                    buffer.base.fill(OUTSIDE);
                    array.get_into(patch::<D>(&axes), buffer.typed_mut::<D>())?;
                    assert_eq!(buffer.view(), target, "get_into of {axes:?} of {array:?}");
                    let touched = buffer.base.iter().filter(|&&value| value != OUTSIDE).count();
                    assert_eq!(touched, target.len(), "elements of the buffer that changed");
                    assert_eq!(array.get(patch::<D>(&axes))?.into_dyn(), target, "get of {axes:?} of {array:?}");
                }
            }
        }
        job.sync()?;
        assert_eq!(array.get(..)?.into_dyn(), model, "after turn {turn} of {array:?}");
        job.sync()?;
    }
    Ok(())
}

fn whole(extents: &[usize]) -> Vec<Axis> {
    extents.iter().map(|&count| Axis { start: 0, count, step: 1 }).collect()
}

/// What lies between the elements of a strided view.
const OUTSIDE: i64 = i64::MIN;

/// A view with gaps, reversed axes and axes in another order, and the memory that it stands in.
struct Strided {
    base: ArrayD<i64>,
    slices: Vec<Slice>,
    /// Axis of the memory for each axis of the view.
    axes: Vec<usize>,
}

impl Strided {
    fn new(shape: &[usize], random: &mut Random) -> Self {
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        if random.chance(40) {
            axes.reverse();
        }
        let (mut lens, mut slices) = (vec![0; shape.len()], vec![Slice::from(..); shape.len()]);
        for (&axis, &count) in axes.iter().zip(shape) {
            let step = if random.chance(60) { 1 } else { random.between(1, 3) };
            lens[axis] = count * step;
            slices[axis].step = if random.chance(20) { -(step as isize) } else { step as isize };
        }
        Strided { base: ArrayD::from_elem(lens, OUTSIDE), slices, axes }
    }

    fn view(&self) -> ArrayView<'_, i64, IxDyn> {
        self.base.slice_each_axis(|axis| self.slices[axis.axis.index()]).permuted_axes(&self.axes[..])
    }

    fn view_mut(&mut self) -> ArrayViewMut<'_, i64, IxDyn> {
        self.base.slice_each_axis_mut(|axis| self.slices[axis.axis.index()]).permuted_axes(&self.axes[..])
    }

    fn typed<D: Dimension>(&self) -> ArrayView<'_, i64, D> {
        self.view().into_dimensionality().expect("as many axes")
    }

    fn typed_mut<D: Dimension>(&mut self) -> ArrayViewMut<'_, i64, D> {
        self.view_mut().into_dimensionality().expect("as many axes")
    }
}

pub(crate) fn named_as_in_ndarray(job: &Job) -> Result<(), Error> {
    let a = GlobalArray::<i64, Ix2>::builder(job, [9, 12]).block_cyclic([2, 5]).create()?;
    let model = Array::from_shape_fn([9, 12], |(i, j)| 100 * i as i64 + j as i64);
    if job.rank() == job.size() - 1 {
        a.put(.., &model)?;
    }
    job.sync()?;
    assert_eq!(a.get(s![2..5, ..])?, model.slice(s![2..5, ..]));
    assert_eq!(a.get(s![-3.., 1..;3])?, model.slice(s![-3.., 1..;3]));
    assert_eq!(a.get(s![..;-2, ..;-1])?, model.slice(s![..;-2, ..;-1]));
    assert_eq!(a.get(s![4, ..])?, model.slice(s![4, ..]));
    assert_eq!(a.get(s![.., -1])?, model.slice(s![.., -1]));
    assert_eq!(a.get(s![3, 7])?.into_scalar(), 307);
    assert_eq!(a.get((1..4, 2..=6))?, model.slice(s![1..4, 2..=6]));
    assert_eq!(a.get([0..9, 4..5])?, model.slice(s![0..9, 4..5]));
    assert_eq!(a.get(s![5..5, ..])?.shape(), [0, 12]);
    // A column into a row of a larger buffer.
    let mut buffer = Array2::<i64>::zeros([3, 9]);
    a.get_into(s![.., 3], buffer.row_mut(1))?;
    assert_eq!(buffer.row(1), model.column(3));
    assert_eq!(buffer.row(0).sum() + buffer.row(2).sum(), 0);
    job.sync()
}

pub(crate) fn refusals(job: &Job) -> Result<(), Error> {
    let a = GlobalArray::<f64, Ix2>::builder(job, [6, 4]).name("refusing").fill(1.0).create()?;
    let refused = |error: Result<(), Error>, words: &[&str]| {
        let text = error.expect_err("a refusal").to_string();
        words.iter().chain(&["refusing"]).for_each(|word| assert!(text.contains(word), "{word:?} is not in {text:?}"));
    };
    let buffer = Array2::<f64>::zeros([2, 2]);
    refused(a.put(s![5..7, 0..2], &buffer), &["put", "[6, 4]", "7"]);
    refused(a.put(s![0..3, 0..2], &buffer), &["put", "[3, 2]", "[2, 2]"]);
    refused(a.accumulate((0..2, 3..5), 1.0, &buffer), &["accumulate", "[6, 4]", "5"]);
    refused(a.get(s![0, 4]).map(|_| ()), &["get", "[6, 4]", "4"]);
    refused(a.load([6, 0]).map(|_| ()), &["load", "[6, 0]", "[6, 4]"]);
    refused(a.store([0, 4], 2.0), &["store", "[0, 4]"]);
    refused(a.scatter(&[[0, 0], [9, 9]], &[1.0]), &["scatter", "2", "1"]);
    refused(a.gather(&[[0, 9]], &mut [0.0]), &["gather", "[0, 9]"]);
    assert!((..).into_patch(&ndarray::Dim([6, 4])).is_ok());
    job.sync()?;
    assert_eq!(a.get(..)?.sum(), 24.0);
    job.sync()
}

/// Small whole numbers in `f64`: sums are exact in every order.
pub(crate) fn accumulates_add_up(job: &Job) -> Result<(), Error> {
    let n = 150;
    let a = GlobalArray::<f64, Ix2>::builder(job, [n, n]).block_cyclic([32, 40]).zeros().create()?;
    let ones = Array2::<f64>::ones([n, n]);
    let mut random = Random::new(5 + job.rank() as u64);
    let mut mine = Array2::<f64>::zeros([n, n]);
    for _ in 0..6 {
        let axes = [Axis::random(&mut random, 0, n), Axis::random(&mut random, 0, n)];
        let part = ones.slice(s![..axes[0].count, ..axes[1].count]);
        a.accumulate(patch::<Ix2>(&axes), 2.0, part)?;
        mine.slice_each_axis_mut(|axis| axes[axis.axis.index()].slice()).map_inplace(|x| *x += 2.0);
    }
    a.accumulate(.., 1.0, &ones)?;
    mine += 1.0;
    job.sync()?;
    let mut all = mine.into_raw_vec_and_offset().0;
    job.all_reduce(&mut all, ops::sum)?;
    assert_eq!(a.get(..)?.into_raw_vec_and_offset().0, all);
    job.sync()
}

/// Short ones in a row, as fast as they go: where connections break meanwhile, none may be lost or come twice.
pub(crate) fn many_accumulates(job: &Job) -> Result<(), Error> {
    // Long enough for links to be cut meanwhile.
    let rounds = if crate::runner::long() { 3000 } else { 300 };
    let n = 64 * job.size();
    let a = GlobalArray::<i64, Ix1>::builder(job, [n]).zeros().create()?;
    let ones = Array1::<i64>::ones(64);
    let mut last = Array1::<i64>::zeros(n);
    for round in 0..rounds {
        let from = 64 * (round % job.size());
        a.accumulate(from..from + 64, 1, &ones)?;
        if round % 10 == 9 {
            let now = a.get(..)?;
            assert!(now.iter().zip(&last).all(|(now, last)| now >= last), "a sum that was there is gone");
            last = now;
        }
    }
    job.sync()?;
    let of_block = |block| (0..rounds).filter(|round| round % job.size() == block).count() * job.size();
    assert!(a.get(..)?.indexed_iter().all(|(at, &sum)| sum == of_block(at / 64) as i64));
    job.sync()
}

/// Longer than a chunk, a stripe of the accumulate lock and a buffer of the pipeline.
pub(crate) fn long_patches(job: &Job) -> Result<(), Error> {
    let n = 300_000;
    let a = GlobalArray::<f64, Ix1>::builder(job, [n]).zeros().create()?;
    let data = Array1::from_shape_fn(n, |k| k as f64);
    if job.rank() == 0 {
        a.put(.., &data)?;
    }
    job.sync()?;
    a.accumulate(.., 1.0, &data)?;
    job.sync()?;
    let factor = 1.0 + job.size() as f64;
    let got = a.get(..)?;
    assert!(got.iter().zip(&data).all(|(a, b)| *a == factor * b));
    assert_eq!(a.get(s![..;-3])?, got.slice(s![..;-3]));
    job.sync()
}

/// Blocks of several pieces, from and into memory of the caller that holds them packed, and such that does not.
pub(crate) fn long_blocks(job: &Job) -> Result<(), Error> {
    let (rows, columns) = (700, 260);
    let a = GlobalArray::<f64, Ix2>::builder(job, [job.size() * rows, columns]).grid([job.size(), 1]).zeros().create()?;
    let first = (job.rank() + 1) % job.size() * rows;
    let patch = s![first..first + rows, 3..columns - 1];
    let value = |[i, j]: [usize; 2]| (job.rank() * 1_000_000 + i * 1000 + j) as f64;
    let packed = Array2::from_shape_fn([rows, columns - 4], |(i, j)| value([i, j]));
    let mut wide = Array2::from_elem([rows, columns], -1.0);
    wide.slice_mut(s![.., 2..columns - 2]).assign(&packed);

    a.put(patch, &packed)?;
    assert_eq!(a.get(patch)?, packed);
    a.accumulate(patch, 2.0, wide.slice(s![.., 2..columns - 2]))?;
    a.accumulate(patch, -1.0, &packed)?;
    job.fence((job.rank() + 1) % job.size())?;
    let mut into = Array2::from_elem([rows, columns], -1.0);
    a.get_into(patch, into.slice_mut(s![.., 2..columns - 2]))?;
    wide.slice_mut(s![.., 2..columns - 2]).map_inplace(|x| *x *= 2.0);
    assert_eq!(into, wide);
    a.put(patch, into.slice(s![.., 2..columns - 2]))?;
    assert_eq!(a.get(patch)?, &packed * 2.0);
    job.sync()?;
    // Whole rows: one run at the owner too.
    let row = s![first..first + rows, ..];
    let before = a.get(row)?;
    let ones = Array2::ones([rows, columns]);
    a.accumulate(row, 0.5, &ones)?;
    assert_eq!(a.get(row)?, before + 0.5);
    job.sync()
}

/// A patch that is larger than any array is refused, also where its bytes overflow.
pub(crate) fn beyond_all_bounds(job: &Job) -> Result<(), Error> {
    let a = GlobalArray::<u8, Ix2>::builder(job, [2 * job.size(), 1 << 20]).zeros().create()?;
    // Times the stride of a row this is 2^64.
    let rows = (1 << 44) + 1;
    let one = Array2::<u8>::ones([1, 1]);
    let many = one.broadcast([rows, 1]).expect("one element as often as wanted");
    let beyond = Patch::block(Ix2(0, 0), Ix2(rows, 1));
    assert!(a.put(&beyond, many).is_err() && a.accumulate(&beyond, 1, many).is_err());
    job.sync()?;
    assert!(a.get(..)?.iter().all(|&x| x == 0));
    job.sync()
}
