//! Arrays in files: as NumPy writes them, whatever the distribution; several in a file, patches, sections, time steps.

#[path = "place/numpy.rs"]
mod numpy;
mod place;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use global_arrays::{
    FileElement,
    file::{FileReader, FileWriter},
    prelude::*,
};
use num_complex::Complex;

use crate::{
    numpy::{le, numpy, reference},
    place::{Place, everywhere},
};

#[test]
fn the_bytes_are_numpys() {
    let place = Place::new("bytes");
    let path = place.file("a.npy");
    everywhere(|job| {
        let a = GlobalArray::<i32, Ix2>::builder(job, [2, 3]).create()?;
        if job.rank() == 0 {
            a.put(.., &Array2::from_shape_fn((2, 3), |(i, j)| (3 * i + j) as i32))?;
        }
        a.save(&path)?;
        assert_eq!(fs::read(&path).unwrap(), reference());
        job.sync()
    });
    assert_eq!(place.names(), ["a.npy"]);
}

#[test]
fn both_orders_are_read() {
    let place = Place::new("orders");
    let (c, f, v2) = (place.file("c.npy"), place.file("f.npy"), place.file("v2.npy"));
    fs::write(&c, reference()).unwrap();
    fs::write(&f, numpy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", &le([0, 3, 1, 4, 2, 5]))).unwrap();
    let text = "{'shape': (2L, 3L,), \"fortran_order\": False, 'descr': '<i4'}\n";
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend(le(0..6));
    fs::write(&v2, bytes).unwrap();
    everywhere(|job| {
        for path in [&c, &f, &v2] {
            let a = GlobalArray::<i32, Ix2>::from_file(job, path)?;
            assert_eq!(a.get(..)?, Array2::from_shape_fn((2, 3), |(i, j)| (3 * i + j) as i32));
            let dynamic = GlobalArray::<i32, IxDyn>::from_file(job, path)?;
            assert_eq!(dynamic.shape(), [2, 3]);
        }
        Ok(())
    });
}

fn roundtrip<T: FileElement + PartialEq + std::fmt::Debug>(path: &Path, value: impl Fn(usize) -> T + Sync) {
    const SHAPE: [usize; 3] = [7, 11, 5];
    everywhere(|job| {
        let p = job.size();
        let cuts = vec![(0..p).map(|k| k * 2).collect(), vec![0], vec![0]];
        let mut arrays = [
            GlobalArray::<T, Ix3>::builder(job, SHAPE).create()?,
            GlobalArray::builder(job, SHAPE).order(Order::ColumnMajor).create()?,
            GlobalArray::builder(job, SHAPE).block_cyclic([2, 3, 2]).create()?,
            GlobalArray::builder(job, SHAPE).block_cyclic([3, 2, 1]).grid([1, p, 1]).create()?,
            GlobalArray::builder(job, SHAPE).tiled([2, 3, 2]).order(Order::ColumnMajor).create()?,
            GlobalArray::builder(job, SHAPE).tiled([3, 2, 1]).restrict([p - 1]).create()?,
            GlobalArray::builder(job, SHAPE).min_block([1, 11, 5]).create()?,
            GlobalArray::builder(job, SHAPE).irregular(cuts).create()?,
            GlobalArray::builder(job, SHAPE).ghosts([1, 0, 2]).create()?,
        ];
        let all = Array3::from_shape_fn(SHAPE, |(i, j, k)| value((i * SHAPE[1] + j) * SHAPE[2] + k));
        for k in 0..arrays.len() {
            if job.rank() == 0 {
                arrays[k].put(.., &all)?;
            }
            arrays[k].save(path)?;
            // A raw file does not know its shape.
            if path.extension().is_none_or(|ending| ending != "raw") {
                assert_eq!(GlobalArray::<T, Ix3>::from_file(job, path)?.get(..)?, all);
            }
            let next = (k + 1) % arrays.len();
            let b = &mut arrays[next];
            b.read(path)?;
            assert_eq!(b.get(..)?, all);
            job.sync()?;
        }
        Ok(())
    });
}

#[test]
fn every_distribution_returns_as_it_was() {
    let place = Place::new("roundtrip");
    roundtrip(&place.file("f64.npy"), |k| k as f64 + 0.5);
    roundtrip(&place.file("i64.raw"), |k| k as i64);
    roundtrip(&place.file("f32.vti"), |k| k as f32 + 0.5);
    roundtrip(&place.file("u2.h5"), |k| k as u16);
    roundtrip(&place.file("c8.zarr"), |k| Complex::new(k as f32, 0.5));
    roundtrip(&place.file("u8.npy"), |k| k as u8);
    roundtrip(&place.file("c16.npy"), |k| Complex::new(k as f64, -1.0));
}

#[test]
fn parts_larger_than_a_stage_and_empty_ones() {
    let place = Place::new("large");
    let path = place.file("large.npy");
    Launch::new()
        .ranks(2)
        .network("threads")
        .run(|job| -> Result<(), Error> {
            let a = GlobalArray::<f64, Ix2>::builder(job, [1, 1_700_001]).grid([1, 2]).create()?;
            if job.rank() == 0 {
                a.put(s![0, ..], &Array1::from_shape_fn(1_700_001, |i| i as f64))?;
            }
            a.save(&path)?;
            let b = GlobalArray::<f64, Ix2>::from_file(job, &path)?;
            assert!(b.get(s![0, ..])?.iter().enumerate().all(|(i, &x)| x == i as f64));
            let empty = GlobalArray::<f64, Ix2>::builder(job, [0, 4]).create()?;
            job.sync()?;
            empty.save(&path)?;
            assert_eq!(GlobalArray::<f64, Ix2>::from_file(job, &path)?.shape(), [0, 4]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn links_stay_and_names_may_be_long() {
    let place = Place::new("links");
    fs::create_dir(place.file("far")).unwrap();
    let [link, dangling] = ["link.npy", "dangling.npy"].map(|name| place.file(name));
    symlink("far/there.npy", place.file("near.npy")).unwrap();
    symlink("near.npy", &link).unwrap();
    symlink("far/new.npy", &dangling).unwrap();
    fs::write(place.file("far/there.npy"), "old").unwrap();
    let long = place.file(&format!("{}.npy", "n".repeat(251)));
    everywhere(|job| {
        let a = GlobalArray::<i32, Ix1>::builder(job, [5]).fill(3).create()?;
        for path in [&link, &dangling, &long] {
            a.save(path)?;
            assert_eq!(GlobalArray::<i32, Ix1>::from_file(job, path)?.sum()?, 15);
        }
        job.sync()
    });
    assert!(link.is_symlink() && dangling.is_symlink() && place.file("near.npy").is_symlink());
    assert_eq!(fs::read_dir(place.file("far")).unwrap().count(), 2);
    assert_eq!(place.names().len(), 5);
}

#[test]
fn a_new_file_has_the_mode_of_the_old_one() {
    let place = Place::new("mode");
    let [open, protected] = [("open.npy", 0o640), ("protected.npy", 0o444)].map(|(name, mode)| {
        let file = place.file(name);
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        file
    });
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        eprintln!("in part skipped: root may write what is protected");
    }
    everywhere(|job| {
        let a = GlobalArray::<i32, Ix1>::builder(job, [5]).fill(3).create()?;
        a.save(&open)?;
        if !is_root {
            let said = a.save(&protected).unwrap_err().to_string();
            assert!(said.contains("Permission denied"), "{said}");
        }
        job.sync()
    });
    assert_eq!(fs::metadata(&open).unwrap().permissions().mode() & 0o7777, 0o640);
    assert_eq!(fs::read(&protected).unwrap(), b"old");
    assert_eq!(place.names().len(), 2);
}

#[test]
fn a_bare_name_stands_in_the_current_directory() {
    let place = Place::new("bare");
    // The other tests name their files in full.
    std::env::set_current_dir(&place.0).unwrap();
    everywhere(|job| {
        let a = GlobalArray::<i32, Ix1>::builder(job, [5]).fill(3).create()?;
        a.save("bare.npy")?;
        assert_eq!(GlobalArray::<i32, Ix1>::from_file(job, place.file("bare.npy"))?.sum()?, 15);
        job.sync()
    });
    assert_eq!(place.names(), ["bare.npy"]);
    std::env::set_current_dir(std::env::temp_dir()).unwrap();
}

#[test]
fn a_collection_lists_frames_by_time_and_a_resumed_run_replaces_later_ones() {
    let place = Place::new("collection");
    let (path, other) = (place.file("frames.pvd"), place.file("other.pvd"));
    fs::write(&other, "<VTKFile type=\"PolyData\"/>").unwrap();
    everywhere(|job| {
        let points = GlobalArray2::<f64>::from_fn(job, [5, 7], |(i, j)| (10 * i + j) as f64)?;
        for time in [0.0, 0.5, 1.0, 0.75] {
            let file = FileWriter::new(&path).at_time(time).array("points", points.at(s![.., 0..3]));
            file.array("flow/pressure", points.at(s![.., 6])).array("velocity", points.at(s![.., 3..6])).save()?;
        }
        let text = fs::read_to_string(&path).unwrap();
        let listed: Vec<&str> = text.lines().filter(|line| line.starts_with("<DataSet")).collect();
        let entry = |(number, time)| format!("<DataSet timestep=\"{time}\" file=\"frames-000{number}.vtp\"/>");
        assert_eq!(listed, [(0, "0"), (1, "0.5"), (2, "0.75")].map(entry));
        let pressure = FileReader::open(job, place.file("frames-0002.vtp"))?.load::<f64, Ix1>("flow/pressure")?;
        assert_eq!(pressure.get(..)?.to_vec(), [6.0, 16.0, 26.0, 36.0, 46.0]);
        let text = fs::read(place.file("frames-0002.vtp")).unwrap();
        assert!(String::from_utf8_lossy(&text).contains("<PointData Scalars=\"flow/pressure\">"));
        let said = FileWriter::new(&other).at_time(0.0).array("u", &points).save().unwrap_err().to_string();
        assert!(said.contains("other.pvd") && said.contains("no collection"), "{said}");
        job.sync()
    });
    assert_eq!(place.names().len(), 5);
}

/// The formats that hold several arrays, of those that this build and this machine have.
const SEVERAL: &[&str] = &["vti", "zarr", "h5"];

#[test]
fn several_arrays_are_in_a_file_with_what_describes_them() {
    let place = Place::new("several");
    everywhere(|job| {
        let t = GlobalArray3::<f64>::from_fn(job, [3, 4, 5], |(i, j, k)| (100 * i + 10 * j + k) as f64)?;
        let v = GlobalArray4::<f32>::from_fn(job, [3, 4, 5, 3], |(i, j, k, c)| (i + 10 * j + 100 * k + 1000 * c) as f32)?;
        let n = GlobalArray3::<u16>::builder(job, [3, 4, 5]).block_cyclic([1, 2, 2]).fill(7).create()?;
        for ending in SEVERAL {
            let path = place.file(&format!("several.{ending}"));
            let file = FileWriter::new(&path).attribute("title", "Größe").attribute("time", 0.5);
            let file = file.array("t", &t).units("K").axes(["z", "y", "x"]).spacing(&[3.0, 2.0, 1.0]).origin(&[0.5, 0.0, -1.0]);
            file.array("v", &v).array("n", &n).save()?;
            let file = FileReader::open(job, &path)?;
            let found: Vec<_> =
                file.variables().filter(|v| !v.is_coordinate()).map(|v| (v.name(), v.descr(), v.shape())).collect();
            let expected = [("t", "<f8".to_owned(), t.shape()), ("v", "<f4".into(), v.shape()), ("n", "<u2".into(), n.shape())];
            for array in expected {
                assert!(found.contains(&array), "{ending}: {found:?}");
            }
            let described = file.variable("t").expect("t");
            assert_eq!((described.spacing(), described.origin()), (&[3.0, 2.0, 1.0][..], &[0.5, 0.0, -1.0][..]), "{ending}");
            assert_eq!(file.load::<f64, Ix3>("t")?.get(..)?, t.get(..)?, "{ending}");
            assert_eq!(file.load::<f32, Ix4>("v")?.get(..)?, v.get(..)?, "{ending}");
            assert_eq!(file.load::<u16, Ix3>("n")?.get(..)?, n.get(..)?, "{ending}");

            // Sections, into patches.
            let mut a = GlobalArray2::<f64>::builder(job, [6, 9]).fill(-1.0).block_cyclic([2, 2]).create()?;
            file.read_section("t", s![1, .., 1..4], a.at_mut(s![1..5, 2..;3]))?;
            let mut expected = Array2::from_elem((6, 9), -1.0);
            expected.slice_mut(s![1..5, 2..;3]).assign(&t.get(s![1, .., 1..4])?);
            assert_eq!(a.get(..)?, expected, "{ending}");
            for (said, words) in [
                (file.read("u", a.at_mut(..)), ["\"u\"", "\"t\""]),
                (file.read("n", a.at_mut(..)), ["<u2", "<f8"]),
                (file.read("t", a.at_mut(..)), ["[3, 4, 5]", "[6, 9]"]),
                (file.read_section("t", s![9, .., ..], a.at_mut(..)), ["[3, 4, 5]", "9"]),
                (file.read_section("t", s![.., .., ..;2], a.at_mut(..)), ["sections", "steps"]),
                (file.load::<f64, Ix2>("t").map(|_| ()), ["3 axes", "2"]),
            ] {
                let said = said.expect_err("a wrong call").to_string();
                assert!(words.iter().all(|word| said.contains(word)), "{ending}: {said}");
            }
            // It is a program's own mistake, and nothing is written.
            let twice = FileWriter::new(&path).array("t", &t).array("t", &t).save();
            assert!(twice.unwrap_err().to_string().contains("two arrays"));
            let few = FileWriter::new(&path).array("t", &t).axes(["x"]).save();
            assert!(few.unwrap_err().to_string().contains("3 axes"));
            assert!(FileWriter::new(&path).save().unwrap_err().to_string().contains("no array"));
            let outside = FileWriter::new(&path).array("t", t.at(s![7, .., ..])).save();
            assert!(outside.unwrap_err().to_string().contains("[3, 4, 5]"));
        }
        job.sync()
    });
    assert_eq!(place.names().len(), SEVERAL.len());
}

#[test]
fn patches_have_files_of_their_own() {
    let place = Place::new("patches");
    everywhere(|job| {
        let a = GlobalArray3::<i32>::from_fn(job, [5, 6, 7], |(i, j, k)| (100 * i + 10 * j + k) as i32)?;
        let path = place.file("patch.npy");
        a.at(s![1, ..;-2, 2..6]).save(&path)?;
        assert_eq!(GlobalArray2::<i32>::from_file(job, &path)?.get(..)?, a.get(s![1, ..;-2, 2..6])?);
        let m = GlobalArray2::<i32>::from_fn(job, [5, 8], |(i, j)| (10 * i + j) as i32)?;
        m.t().save(&path)?;
        assert_eq!(GlobalArray2::<i32>::from_file(job, &path)?.get(..)?, m.get(..)?.t());
        m.at(s![1..3, ..]).t().save(&path)?;
        let mut b = GlobalArray2::<i32>::builder(job, [20, 4]).fill(0).create()?;
        b.at_mut(s![..16;2, 1..3]).read(&path)?;
        assert_eq!(b.get(s![..16;2, 1..3])?, m.get(s![1..3, ..])?.t());
        assert_eq!(b.get(..)?.sum(), m.get(s![1..3, ..])?.sum());
        m.at(s![2..2, ..]).save(&path)?;
        assert_eq!(GlobalArray2::<i32>::from_file(job, &path)?.shape(), [0, 8]);
        m.at(s![2, 3]).save(&path)?;
        assert_eq!(GlobalArrayD::<i32>::from_file(job, &path)?.get(..)?.sum(), 23);
        job.sync()
    });
}

#[test]
fn a_long_write_tells_how_far_it_is() {
    let place = Place::new("progress");
    let path = place.file("long.npy");
    everywhere(|job| {
        let a = GlobalArray1::<f64>::builder(job, [1 << 20]).fill(1.0).create()?;
        let (mut seen, mut read) = (Vec::new(), Vec::new());
        FileWriter::new(&path).array("a", &a).progress(|progress| seen.push(progress)).save()?;
        let mut b = GlobalArray1::<f64>::builder(job, [1 << 20]).block_cyclic([5]).create()?;
        FileReader::open(job, &path)?.progress(|progress| read.push(progress)).read("", b.at_mut(..))?;
        for seen in [seen, read] {
            assert!(seen.is_sorted_by_key(|progress| progress.done));
            let last = seen.last().expect("a share");
            assert!(last.done == last.total && seen.len() > 1, "{last:?}");
            assert_eq!(job.all_reduce_one(last.total, ops::sum)?, 8 << 20);
        }
        job.sync()
    });
}

#[test]
fn steps_of_a_collection_go_on_from_a_time() {
    let place = Place::new("steps");
    everywhere(|job| {
        let path = place.file(&format!("run-{}.pvd", job.size()));
        let mut a = GlobalArray2::<f64>::builder(job, [4, 5]).create()?;
        for (time, value) in [(0.0, 1.0), (0.5, 2.0), (1.0, 3.0), (0.75, 4.0)] {
            a.fill(value)?;
            FileWriter::new(&path).at_time(time).array("a", &a).save()?;
        }
        let text = fs::read_to_string(&path).map_err(Error::other)?;
        let times: Vec<&str> =
            text.lines().filter_map(|line| line.split('"').nth(1).filter(|_| line.contains("timestep"))).collect();
        assert_eq!(times, ["0", "0.5", "0.75"]);
        // Steps that a user takes out of the text leave their files alone.
        if job.size() == 1 {
            let fewer: Vec<&str> = text.lines().filter(|line| !line.contains("\"0\"")).collect();
            fs::write(&path, fewer.join("\n")).map_err(Error::other)?;
            FileWriter::new(&path).at_time(2.0).array("a", &a).save()?;
            let text = fs::read_to_string(&path).map_err(Error::other)?;
            assert!(text.contains("run-1-0003.vti"), "{text}");
        }
        let last = place.file(&format!("run-{}-0002.vti", job.size()));
        assert_eq!(FileReader::open(job, &last)?.load::<f64, Ix3>("a")?.sum()?, 80.0);
        // VTK has three axes; those of one element may be missing.
        assert_eq!(GlobalArray2::<f64>::from_file(job, &last)?.get(..)?, a.get(..)?);
        let said = FileWriter::new(&path).array("a", &a).save().unwrap_err().to_string();
        assert!(said.contains("at_time"), "{said}");
        let said = FileWriter::new(place.file("a.npy")).at_time(1.0).array("a", &a).save().unwrap_err().to_string();
        assert!(said.contains(".pvd"), "{said}");
        let said = a.save(place.file("a.jpg")).unwrap_err().to_string();
        assert!(said.contains(".npy") && said.contains(".zarr"), "{said}");
        job.sync()
    });
}

#[test]
fn chunks_of_a_store_are_blocks() {
    let place = Place::new("chunks");
    everywhere(|job| {
        let path = place.file("a.zarr");
        let a = GlobalArray2::<f64>::builder(job, [700, 600]).grid([1, job.size()]).fill(job.size() as f64).create()?;
        FileWriter::new(&path).array("a", &a).save()?;
        let text = fs::read_to_string(path.join("a/zarr.json")).map_err(Error::other)?;
        let json: serde_json::Value = serde_json::from_str(&text).map_err(Error::other)?;
        assert_eq!(json["chunk_grid"]["configuration"]["chunk_shape"], serde_json::json!([700, 600 / job.size()]));
        assert_eq!(FileReader::open(job, &path)?.load::<f64, Ix2>("a")?.sum()?, (420_000 * job.size()) as f64);
        job.sync()
    });
}
