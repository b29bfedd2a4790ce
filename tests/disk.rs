//! Arrays on disks: patches as in memory, sums of many ranks, copies, transpositions, and what fails.

#[path = "place/mounted.rs"]
mod mounted;
mod place;

use std::fs;

use global_arrays::{file::DiskArray, prelude::*};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::{
    mounted::Mounted,
    place::{Place, everywhere},
};

/// All ranks draw the same patches; one of them moves each.
fn follows_a_model(job: &Job, disk: &DiskArray<f64, Ix3>) -> Result<(), Error> {
    const SHAPE: [usize; 3] = [9, 7, 11];
    let mut model = Array3::<f64>::zeros(SHAPE);
    let mut random = Pcg64::seed_from_u64(7);
    for round in 0..60 {
        let mut axis = |k: usize| {
            let start = random.random_range(0..SHAPE[k]);
            let end = random.random_range(start..=SHAPE[k]) as isize;
            ndarray::Slice::new(start as isize, Some(end), [1, 1, 2, -1, -3][random.random_range(0..5)])
        };
        let patch = s![axis(0), axis(1), axis(2)];
        let turn = round % job.size() == job.rank();
        let shape = model.slice(patch).raw_dim();
        let values = Array3::from_shape_fn(shape, |(i, j, k)| (round + 100 * i + 10 * j + k) as f64);
        match round % 3 {
            0 => model.slice_mut(patch).assign(&values),
            _ => model.slice_mut(patch).scaled_add(0.5, &values),
        }
        match round % 3 {
            0 if turn => disk.put(patch, &values)?,
            1 if turn => disk.accumulate(patch, 0.5, &values)?,
            // A buffer in another order.
            2 if turn => disk.accumulate(patch, 0.5, values.reversed_axes().as_standard_layout().t())?,
            _ => {}
        }
        job.sync()?;
        assert_eq!(disk.get(..)?, model);
        assert_eq!(disk.get(patch)?, model.slice(patch));
        let (i, j) = (random.random_range(0..SHAPE[0]), random.random_range(0..SHAPE[1]));
        assert_eq!(disk.get(s![i, .., ..;2])?, model.slice(s![i, .., ..;2]));
        assert_eq!(disk.get(s![i, j, 3])?[[]], model[[i, j, 3]]);
        let mut column = Array1::zeros(SHAPE[0]);
        disk.get_into(s![.., j, 4], &mut column)?;
        assert_eq!(column, model.slice(s![.., j, 4]));
        job.sync()?;
    }
    let mut copy = GlobalArray::<f64, Ix2>::builder(job, [12, 9]).block_cyclic([2, 3]).zeros().create()?;
    disk.read(s![2, 1..7, 2..10], copy.at_mut(s![3..9, 1..]))?;
    assert_eq!(copy.get(s![3..9, 1..])?, model.slice(s![2, 1..7, 2..10]));
    disk.write(s![3, 1..7, 2..10], copy.at(s![3..9, 1..]))?;
    assert_eq!(disk.get(s![3, 1..7, 2..10])?, model.slice(s![2, 1..7, 2..10]));
    let whole = GlobalArray3::<f64>::from_fn(job, SHAPE, |(i, j, k)| (i * j + k) as f64)?;
    disk.write(.., &whole)?;
    assert_eq!(disk.get(..)?, whole.get(..)?);
    disk.sync()
}

#[test]
fn patches_follow_a_model() {
    let place = Place::new("model");
    everywhere(|job| {
        for name in ["a.npy", "a.raw", "a.vti", "a.h5", "a.zarr"] {
            let path = place.file(name);
            let disk = DiskArray::<f64, Ix3>::create(job, &path, [9, 7, 11])?;
            follows_a_model(job, &disk)?;
            let last = disk.get(..)?;
            disk.close()?;
            if name != "a.raw" {
                assert_eq!(DiskArray::<f64, Ix3>::open_read_only(job, &path)?.get(..)?, last);
                assert_eq!(GlobalArray::<f64, Ix3>::from_file(job, &path)?.get(..)?, last);
            }
            job.sync()?;
            if job.rank() == 0 {
                fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).unwrap();
            }
        }
        follows_a_model(job, &DiskArray::scratch(job, &place.0, [9, 7, 11])?)?;
        follows_a_model(job, &DiskArray::scratch_tiled(job, &place.0, [9, 7, 11], [4, 3, 2])?)
    });
    assert!(place.names().is_empty());
}

#[test]
fn sums_of_four_ranks_are_exact() {
    let place = Place::new("sums");
    for network in ["threads", "threads:unmapped"] {
        let run = Launch::new().ranks(4).network(network).run(|job| -> Result<(), Error> {
            let disk = DiskArray::<i64, Ix2>::scratch_tiled(job, &place.0, [64, 48], [16, 5])?;
            for round in 0..30 {
                let first = (round * 7 + job.rank()) % 16;
                disk.accumulate(s![first..first + 48, 3..40], 2, &Array2::ones((48, 37)))?;
                disk.accumulate(s![..;3, 1..;2], 1, &Array2::ones((22, 24)))?;
            }
            job.sync()?;
            assert_eq!(disk.get(..)?.sum(), 4 * 30 * (2 * 48 * 37 + 22 * 24));
            job.sync()
        });
        run.unwrap();
    }
}

#[test]
fn transposes_of_any_shape() {
    let place = Place::new("transpose");
    everywhere(|job| {
        for (shape, memory) in
            [([37, 53], 0), ([1, 5], 1 << 21), ([0, 4], 0), ([700, 600], (1 << 20) + 40_000), ([512, 1024], 5 << 20)]
        {
            let (rows, cols) = (shape[0], shape[1]);
            let [a, b] = ["a.npy", "b.npy"].map(|name| place.file(name));
            let from = DiskArray::<f64, Ix2>::create(job, &a, shape)?.with_memory(memory);
            let to = DiskArray::<f64, Ix2>::create(job, &b, [cols, rows])?;
            let tiled = DiskArray::<f64, Ix2>::scratch_tiled(job, &place.0, shape, [16, 24])?;
            let all = Array2::from_shape_fn(shape, |(i, j)| (i * cols + j) as f64);
            if job.rank() == 0 {
                from.put(.., &all)?;
            }
            from.transpose_into(&to)?;
            assert_eq!(to.get(..)?, all.t());
            to.transpose_into(&tiled)?;
            assert_eq!(tiled.get(..)?, all);
            assert!(from.transpose_into(&from).is_err());
            from.close()?;
            to.close()?;
            if job.rank() == 0 {
                [a, b].iter().for_each(|file| fs::remove_file(file).unwrap());
            }
            job.sync()?;
        }
        Ok(())
    });
}

fn says(result: Result<impl Sized, Error>, words: &[&str]) {
    let Err(error) = result else { panic!("no error that says {words:?}") };
    let said = error.to_string();
    assert!(words.iter().all(|word| said.contains(word)) && said.contains("disk.rs:"), "\"{said}\" does not say {words:?}");
}

#[test]
fn what_fails_says_why_on_all() {
    let place = Place::new("failing");
    everywhere(|job| {
        let path = place.file("a.npy");
        let disk = DiskArray::<f64, Ix2>::create(job, &path, [4, 6])?;
        says(disk.get(s![..5, ..]), &["get", "a.npy", "[4, 6]"]);
        says(disk.put(s![1, ..], &Array1::zeros(5)), &["put", "a.npy", "[6]", "[5]"]);
        says(disk.accumulate(s![9, ..], 1.0, &Array1::zeros(6)), &["accumulate", "a.npy"]);
        let a = GlobalArray2::<f64>::zeros(job, [4, 5])?;
        says(disk.write(.., &a), &["write", "a.npy", "[4, 5]", "[4, 6]"]);
        says(disk.write(s![..;2, ..5], &a), &["write", "steps"]);
        says(DiskArray::<f64, Ix2>::create(job, &path, [4, 6]), &["create", "a.npy", "exists"]);
        disk.close()?;
        let disk = DiskArray::<f64, Ix2>::open_read_only(job, &path)?;
        assert_eq!(disk.get(s![3, ..])?, Array1::<f64>::zeros(6));
        says(disk.put(.., &Array2::zeros((4, 6))), &["put", "reading only"]);
        says(disk.write(.., &a), &["write", "reading only"]);
        says(DiskArray::<f32, Ix2>::open(job, &path), &["a.npy", "'<f8'", "'<f4'"]);
        says(DiskArray::<f64, Ix3>::open(job, &path), &["a.npy", "2 axes", "3"]);
        says(DiskArray::<f64, Ix2>::open(job, place.file("none.npy")), &["open", "none.npy", "No such file"]);
        says(DiskArray::<f64, Ix2>::create(job, place.file("no/b.npy"), [2, 2]), &["create", "no/b.npy", "No such file"]);
        says(DiskArray::<f64, Ix2>::scratch(job, place.file("no"), [2, 2]), &["scratch", "No such file"]);
        says(DiskArray::<f64, Ix2>::scratch_tiled(job, &place.0, [2, 2], [2, 0]), &["scratch", "[2, 0]"]);
        says(DiskArray::<f64, Ix2>::create(job, place.file("b.txt"), [2, 2]), &["create", "b.txt"]);
        drop(disk);
        job.sync()?;
        if job.rank() == 0 {
            fs::remove_file(&path).unwrap();
        }
        job.sync()
    });
    assert!(place.names().is_empty());
}

#[test]
fn a_full_disk_is_found_at_the_creation() {
    let Some(place) = Mounted::new("full") else { return };
    everywhere(|job| {
        says(DiskArray::<f64, Ix1>::create(job, place.file("a.npy"), [1 << 20]), &["create", "No space left", "8388736", "free"]);
        says(DiskArray::<f64, Ix1>::scratch(job, &place.0, [1 << 20]), &["scratch", "No space left"]);
        DiskArray::<f64, Ix1>::scratch(job, &place.0, [1 << 10])?.put(.., &Array1::ones(1 << 10))
    });
    assert!(place.names().is_empty(), "{:?}", place.names());
}
