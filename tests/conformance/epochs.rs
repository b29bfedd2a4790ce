//! Local access: owner epochs, read epochs, several arrays at once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use global_arrays::prelude::*;

pub(crate) fn owner(job: &Job) -> Result<(), Error> {
    for round in 0..4_u64 {
        let builder = GlobalArray::<u64, Ix2>::builder(job, [11, 14]).zeros();
        let mut a = match round {
            0 => builder.block_cyclic([3, 4]),
            1 => builder.tiled([4, 3]),
            2 => builder.tiled_irregular(vec![vec![0, 1, 7], vec![0, 5, 5, 6]]).order(Order::ColumnMajor),
            _ => builder.restrict((0..job.size()).rev().step_by(2)),
        }
        .create()?;
        // What is under way before the epoch is complete in it.
        let at = job.rank() % 11;
        a.put(s![at, ..], &Array1::from_elem(14, 7))?;
        let sevens = a.owner_epoch(|mut part| {
            let sevens = part.iter().filter(|&&x| x == 7).count();
            for block in part.blocks() {
                let start = [block.patch.start()[0], block.patch.start()[1]];
                for ((i, j), x) in part.block_mut(&block).indexed_iter_mut() {
                    *x = round * 1000 + ((start[0] + i) * 14 + start[1] + j) as u64;
                }
            }
            sevens as u64
        })?;
        assert_eq!(job.all_reduce_one(sevens, ops::sum)?, 14 * job.size().min(11) as u64);
        let expected = Array2::from_shape_fn([11, 14], |(i, j)| round * 1000 + (i * 14 + j) as u64);
        assert_eq!(a.get(..)?, expected);
        job.sync()?;
    }
    Ok(())
}

/// An epoch completes what any rank put before, and its end what any rank put elsewhere meanwhile, forgotten handles included.
pub(crate) fn fences(job: &Job) -> Result<(), Error> {
    const WIDTH: usize = 8;
    let (me, size) = (job.rank(), job.size());
    let new = || GlobalArray::<u64, Ix2>::builder(job, [size, WIDTH * size]).min_block([1, WIDTH * size]).zeros().create();
    let (mut a, mut b) = (new()?, new()?);
    let c = new()?;
    // A strip of each rank's row.
    let put = |array: &GlobalArray<u64, Ix2>, value: u64| {
        (0..size).try_for_each(|row| {
            let pending = array.put_nb(s![row, WIDTH * me..WIDTH * (me + 1)], Array1::from_elem(WIDTH, value))?;
            std::mem::forget(pending);
            Ok::<(), Error>(())
        })
    };
    for round in 1..=12 {
        put(&a, round)?;
        put(&b, round)?;
        let begun = match round % 3 {
            0 => a.owner_epoch(|part| put(&c, round).map(|()| part.iter().all(|&x| x == round)))?,
            1 => a.read_epoch(|part, _| put(&c, round).map(|()| part.iter().all(|&x| x == round)))?,
            _ => job.epoch((a.owned_mut(), b.owned()), |(a, b)| {
                put(&c, round).map(|()| a.iter().chain(b.iter()).all(|&x| x == round))
            })?,
        };
        assert!(begun?, "round {round}: a part without what was put before the epoch");
        assert!(c.get(s![me, ..])?.iter().all(|&x| x == round), "round {round}: what was put in an epoch came after it");
    }
    job.sync()
}

pub(crate) fn access(job: &Job) -> Result<(), Error> {
    let a = GlobalArray::<u64, Ix2>::builder(job, [11, 14]).block_cyclic([3, 4]).create()?;
    for round in 0..3_u64 {
        job.sync()?;
        // SAFETY: between two syncs every rank touches its own part only, by this value.
        let mut part = unsafe { a.access()? };
        for block in part.blocks() {
            let start = [block.patch.start()[0], block.patch.start()[1]];
            for ((i, j), x) in part.block_mut(&block).indexed_iter_mut() {
                *x = round * 1000 + ((start[0] + i) * 14 + start[1] + j) as u64;
            }
        }
        job.sync()?;
        assert_eq!(a.get(..)?, Array2::from_shape_fn([11, 14], |(i, j)| round * 1000 + (i * 14 + j) as u64));
    }
    job.sync()
}

pub(crate) fn read(job: &Job) -> Result<(), Error> {
    let n = 50;
    let mut a = GlobalArray::<i64, Ix1>::builder(job, [n]).create()?;
    if job.rank() == 0 {
        a.put(.., &Array1::from_iter(0..n as i64))?;
    }
    let total = a.read_epoch(|part, reader| {
        let mine: i64 = part.iter().sum();
        let all = reader.get(..).expect("a read inside the array").sum();
        let mut some = Array1::zeros(n / 2);
        reader.get_into(s![..;2], &mut some).expect("a read inside the array");
        assert_eq!(some.sum(), (0..n as i64).step_by(2).sum::<i64>());
        (mine, all)
    })?;
    assert_eq!(total.1, (n * (n - 1) / 2) as i64);
    assert_eq!(job.all_reduce_one(total.0, ops::sum)?, total.1);
    Ok(())
}

pub(crate) fn several(job: &Job) -> Result<(), Error> {
    let new = |value: f64| GlobalArray::<f64, Ix1>::builder(job, [33]).fill(value).create();
    let (mut x, mut v, mut f) = (new(1.0)?, new(0.0)?, new(2.0)?);
    for _ in 0..10 {
        let sum: f64 = job.epoch((x.owned_mut(), v.owned_mut(), f.owned()), |(mut x, mut v, f)| {
            for ((x, v), f) in x.iter_mut().zip(v.iter_mut()).zip(f.iter()) {
                *v += f;
                *x += *v;
            }
            x.iter().sum()
        })?;
        assert!(sum >= 0.0);
    }
    assert!(v.get(..)?.iter().all(|&v| v == 20.0));
    assert!(x.get(..)?.iter().all(|&x| x == 1.0 + 110.0));
    job.sync()
}

/// The parts of all members are the array, each element once, and the local view is what the distribution says.
pub(crate) fn cover(job: &Job) -> Result<(), Error> {
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let mut a = GlobalArray::<u64, Ix2>::builder(job, [10, 9]).block_cyclic([2, 2]).order(order).create()?;
        let model = Array2::from_shape_fn([10, 9], |(i, j)| (i * 9 + j) as u64);
        if job.rank() == 0 {
            a.put(.., &model)?;
        }
        let count = a.read_epoch(|part, _| {
            let view = part.view();
            for block in part.blocks() {
                let (start, count, local) = (block.patch.start(), block.patch.count(), &block.local_start);
                assert_eq!(part.block(&block), model.slice(s![start[0]..start[0] + count[0], start[1]..start[1] + count[1]]));
                for i in 0..count[0] {
                    for j in 0..count[1] {
                        assert_eq!(view[[local[0] + i, local[1] + j]], model[[start[0] + i, start[1] + j]]);
                    }
                }
            }
            part.len() as u64
        })?;
        assert_eq!(job.all_reduce_one(count, ops::sum)?, 90);
    }
    Ok(())
}

/// Every distribution, each element once and under its own index.
pub(crate) fn by_index(job: &Job) -> Result<(), Error> {
    let extents = [10, 9];
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let cuts = vec![vec![0, 1, 6, 7], vec![0, 4, 4, 5]];
        let builder = || GlobalArray2::<usize>::builder(job, extents).order(order);
        let layouts = [
            builder(),
            builder().block_cyclic([2, 2]),
            builder().tiled([3, 2]),
            builder().tiled_irregular(cuts).restrict(job.size() / 2..job.size()),
            builder().ghosts([2, 1]),
        ];
        for layout in layouts {
            let mut a = layout.fill(usize::MAX).create()?;
            a.owner_epoch(|mut part| part.indexed_iter_mut().for_each(|((i, j), x)| *x = 9 * i + j))?;
            assert_eq!(a.get(..)?, Array2::from_shape_fn(extents, |(i, j)| 9 * i + j), "{}", a.summary());
            let seen = a.read_epoch(|part, _| {
                assert!(part.indexed_iter().all(|((i, j), &x)| x == 9 * i + j));
                part.indexed_iter().count()
            })?;
            assert_eq!(
                seen,
                a.own_blocks().map(|block| block.patch.ranges().map(|range| range.len()).product::<usize>()).sum::<usize>()
            );
            assert_eq!(job.all_reduce_one(seen, ops::sum)?, 90);
        }
    }
    job.sync()
}

pub(crate) fn constructors(job: &Job) -> Result<(), Error> {
    let last = job.size() - 1;
    let mut a = GlobalArray3::<i64>::from_fn(job, [3, 4, 5], |(i, j, k)| (100 * i + 10 * j + k) as i64)?;
    let model = Array3::from_shape_fn([3, 4, 5], |(i, j, k)| (100 * i + 10 * j + k) as i64);
    let copy = GlobalArray::from_member(job, last, || Ok::<_, Error>(model.clone()))?;
    assert_eq!((a.get(..)?, copy.get(..)?, copy.shape()), (model.clone(), model.clone(), &[3, 4, 5][..]));
    assert_eq!(a.get_on(last, s![.., 2, ..;-2])?, (job.rank() == last).then(|| model.slice(s![.., 2, ..;-2]).to_owned()));
    a.fill(0)?; // after all have read
    assert_eq!(GlobalArray1::<[f32; 2]>::zeros(job, 7)?.sum()?, [0.0; 2]);
    assert_eq!(GlobalArray2::<u8>::from_fn(job, [0, 3], |_| 1)?.sum()?, 0);
    assert!(a.get_on(job.size(), ..).is_err() && a.get_on(0, s![3.., ..4, ..]).is_ok());
    let failed = GlobalArray1::<f64>::from_member(job, 0, || Err(Error::other("no file")));
    assert!(failed.expect_err("a failure").to_string().contains("no file"));
    job.sync()
}

/// An epoch is of the arrays of its group.
pub(crate) fn of_groups(job: &Job) -> Result<(), Error> {
    let half = job.split(job.rank() % 2)?;
    let mut near = GlobalArray1::<usize>::from_fn(&half, [20], |i| i)?;
    let mut wide = GlobalArray1::<usize>::from_fn(job, [20], |i| i)?;
    let sum = half.epoch(near.owned_mut(), |mut part| {
        part.iter_mut().for_each(|x| *x += 1);
        part.iter().sum::<usize>()
    })?;
    assert_eq!(half.all_reduce_one(sum, ops::sum)?, 210);
    if job.size() > 1 {
        let error = half.epoch((near.owned(), wide.owned_mut()), |_| ()).expect_err("an array of another group").to_string();
        assert!(error.contains("the same ranks"), "{error}");
        assert!(job.epoch(near.owned(), |_| ()).is_err());
    }
    // Nothing began: the arrays are as they were.
    assert_eq!((near.load(19)?, wide.load(19)?), (20, 19));
    job.sync()
}

/// A tile is one run of its owner's memory, and the part as a whole is refused as a dense array.
pub(crate) fn tiles(job: &Job) -> Result<(), Error> {
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let cuts = vec![vec![0, 1, 6, 7], vec![0, 4, 4, 5]];
        let builder = GlobalArray::<u64, Ix2>::builder(job, [10, 9]).order(order);
        for builder in [builder.clone().tiled([3, 2]), builder.tiled_irregular(cuts).restrict(job.size() / 2..job.size())] {
            let mut a = builder.create()?;
            let model = Array2::from_shape_fn([10, 9], |(i, j)| (i * 9 + j) as u64);
            if job.rank() == 0 {
                a.put(.., &model)?;
            }
            let count = a.owner_epoch(|mut part| {
                for block in part.blocks() {
                    let (start, count) = (block.patch.start(), block.patch.count());
                    let tile = model.slice(s![start[0]..start[0] + count[0], start[1]..start[1] + count[1]]);
                    assert_eq!(part.block(&block), tile);
                    let run = &part.as_slice().expect("no ghost cells")[block.offset..block.offset + block.patch.len()];
                    let in_memory = if order == Order::RowMajor { tile } else { tile.reversed_axes() };
                    assert!(in_memory.iter().eq(run), "{block:?}");
                    part.block_mut(&block).mapv_inplace(|x| x + 1);
                }
                assert!(catch_unwind(AssertUnwindSafe(|| part.view().len())).is_err());
                assert!(catch_unwind(AssertUnwindSafe(|| part.view_mut().len())).is_err());
                assert!(catch_unwind(AssertUnwindSafe(|| part.leading_dimension())).is_err());
                part.len() as u64
            })?;
            assert_eq!(job.all_reduce_one(count, ops::sum)?, 90);
            assert_eq!(a.get(..)?, model + 1);
            job.sync()?;
        }
    }
    Ok(())
}

/// Frozen arrays are read as in a read epoch, through a shared reference, and can be written again.
pub(crate) fn frozen(job: &Job) -> Result<(), Error> {
    for (extents, on_nodes) in [([7, 5], false), ([7, 5], true), ([1, 9], true), ([0, 3], false)] {
        let made = GlobalArray2::<i64>::from_fn(job, extents, |(i, j)| (10 * i + j) as i64)?;
        let a = if on_nodes { made.freeze_on_nodes()? } else { made.freeze()? };
        let model = Array2::from_shape_fn(extents, |(i, j)| (10 * i + j) as i64);
        assert_eq!(a.get(s![..;-1, ..])?, model.slice(s![..;-1, ..]));
        assert_eq!(
            (a.cached(s![.., 1..])?, a.cached(s![.., 1..])?),
            (model.slice(s![.., 1..]).to_shared(), model.slice(s![.., 1..]).to_shared())
        );
        a.own().blocks().try_for_each(|block| a.get(block.patch.clone()).map(|got| assert_eq!(a.own().block(&block), got)))?;
        let mut t = GlobalArray2::<i64>::zeros(job, [extents[1], extents[0]])?;
        t.assign(a.t())?;
        assert_eq!(t.get(..)?, model.t());
        let mut a = a.thaw()?;
        a.add_constant(1)?;
        assert_eq!(a.sum()?, model.sum() + model.len() as i64);
    }
    job.sync()
}
