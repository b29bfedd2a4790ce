//! Arrays in `.npy` files: as numpy writes them, whatever the distribution; and files that are none.

use std::{
    fs,
    os::{
        fd::AsRawFd,
        unix::fs::{PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use global_arrays::{
    FileElement,
    file::{Checkpoint, FileReader, FileWriter},
    prelude::*,
};
use num_complex::Complex;

/// A directory of its own that goes with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("global-arrays-npy-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn everywhere(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for network in ["threads", "threads:unmapped"] {
        for ranks in 1..=3 {
            let run = Launch::new().ranks(ranks).network(network).run(&body);
            run.unwrap_or_else(|error| panic!("{ranks} ranks over {network}: {error}"));
        }
    }
}

/// A file as `numpy.save` writes it, in format 1.0.
fn numpy(text: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(text.bytes());
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    bytes.extend(elements);
    bytes
}

/// `numpy.arange(6, dtype='<i4').reshape(2, 3)`.
fn reference() -> Vec<u8> {
    numpy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", &le(0..6))
}

fn le(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

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
fn what_is_no_such_file_is_an_error_on_all() {
    let place = Place::new("malformed");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(place.file(name), bytes).unwrap();
        place.file(name)
    };
    let whole = reference();
    let huge = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({0}, {0}), }}", u64::MAX);
    let cases = [
        (place.file("missing.npy"), vec!["missing.npy", "from_file", "No such file"]),
        (write("empty.npy", b""), vec!["begins with"]),
        (write("short.npy", &whole[..9]), vec!["9 bytes", "header"]),
        (write("cut.npy", &whole[..70]), vec!["70 bytes", "128"]),
        (write("truncated.npy", &whole[..whole.len() - 1]), vec!["23 bytes", "needs 24", "[2, 3]"]),
        (write("text.npy", b"not an array at all, but some text"), vec!["not an"]),
        (write("huge.npy", &numpy(&huge, &[])), vec!["more than"]),
        (
            write("type.npy", &numpy("{'descr': '<u4', 'fortran_order': False, 'shape': (2, 3), }", &le(0..6))),
            vec!["'<u4'", "'<i4'"],
        ),
        (
            write("axes.npy", &numpy("{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }", &le(0..6))),
            vec!["[6]", "1 axes", "2"],
        ),
    ];
    everywhere(|job| {
        for (path, words) in &cases {
            let said = GlobalArray::<i32, Ix2>::from_file(job, path).unwrap_err().to_string();
            for word in words {
                assert!(said.contains(word), "\"{said}\" does not say \"{word}\"");
            }
            assert!(said.contains(path.to_str().unwrap()));
        }
        let mut a = GlobalArray::<i32, Ix2>::builder(job, [3, 2]).create()?;
        let said = a.read(write("shape.npy", &whole)).unwrap_err().to_string();
        assert!(said.contains("[2, 3]") && said.contains("[3, 2]"), "{said}");
        job.sync()
    });
}

#[test]
fn a_save_that_fails_leaves_nothing_and_hangs_nobody() {
    let place = Place::new("failing");
    let [directory, socket, nowhere] = ["directory.npy", "socket.npy", "no/such/place.npy"].map(|name| place.file(name));
    // A path of any length, where a socket that is bound has 108 bytes.
    rustix::fs::mknodat(rustix::fs::CWD, &socket, rustix::fs::FileType::Socket, rustix::fs::Mode::RUSR, 0).unwrap();
    let [to_socket, to_file, around] = ["to-socket.npy", "to-file.npy", "around.npy"].map(|name| place.file(name));
    let held = fs::File::create(place.file("held")).unwrap();
    let descriptor = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd()));
    for (link, target) in [(&to_socket, &socket), (&to_file, &descriptor), (&around, &around)] {
        symlink(target, link).unwrap();
    }
    // As /dev/null; root may make one.
    let device = place.file("device.npy");
    let null = rustix::fs::makedev(1, 3);
    let made = rustix::fs::mknodat(rustix::fs::CWD, &device, rustix::fs::FileType::CharacterDevice, rustix::fs::Mode::RWXU, null);
    if let Err(error) = made {
        eprintln!("in part skipped: no device can be made: {error}");
        symlink(&socket, &device).unwrap();
    }
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("inside"), b"").unwrap();
    everywhere(|job| {
        let a = GlobalArray::<f64, Ix2>::builder(job, [9, 9]).zeros().create()?;
        for path in [&directory, &socket, &nowhere, &to_socket, &to_file, &descriptor, &around, &device] {
            let said = a.save(path).unwrap_err().to_string();
            assert!(said.contains("save") && said.contains(path.to_str().unwrap()), "{said}");
        }
        // The group works on.
        job.sync()
    });
    let mut names = place.names();
    names.sort();
    assert_eq!(names, ["around.npy", "device.npy", "directory.npy", "held", "socket.npy", "to-file.npy", "to-socket.npy"]);
    assert!(!fs::metadata(socket).unwrap().is_file(), "what is no file was replaced by one");
    assert!([to_socket, to_file, around].iter().all(|link| link.is_symlink()));
    assert_eq!(held.metadata().unwrap().len(), 0);
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

/// The state of a checkpoint, on any number of ranks.
fn checkpoint(place: &Place, ranks: usize) {
    Launch::new()
        .ranks(ranks)
        .network("threads")
        .run(|job| -> Result<(), Error> {
            let a = GlobalArray::<f64, Ix2>::from_fn(job, [30, 40], |(i, j)| (100 * i + j) as f64)?;
            let b = GlobalArray::<Complex<f32>, Ix1>::builder(job, [17]).fill(Complex::new(1.5, -2.0)).create()?;
            let values = vec![1.0, 2.5, -3.0];
            let saved = Checkpoint::new(place.file("c")).array("a", &a).array("b", &b).array("row", a.at(s![3, ..]));
            saved.value("values", &values).value("name", &"Größe".to_owned()).save()
        })
        .unwrap();
}

/// Reads all of a checkpoint.
fn restore(place: &Place, ranks: usize) -> Result<(), Error> {
    Launch::new().ranks(ranks).network("threads").run(|job| {
        let saved = Checkpoint::restore(job, place.file("c"))?.expect("a checkpoint");
        assert_eq!(saved.arrays().collect::<Vec<_>>(), ["a", "b", "row"]);
        let mut a = GlobalArray::<f64, Ix2>::builder(job, [30, 40]).block_cyclic([3, 7]).create()?;
        let mut b = GlobalArray::<Complex<f32>, Ix1>::builder(job, [17]).create()?;
        let mut row = GlobalArray::<f64, Ix2>::builder(job, [2, 40]).create()?;
        saved.read("a", a.at_mut(..))?;
        saved.read("b", b.at_mut(..))?;
        saved.read("row", row.at_mut(s![1, ..]))?;
        assert_eq!(a.get(..)?, Array2::from_shape_fn((30, 40), |(i, j)| (100 * i + j) as f64));
        assert!(b.get(..)?.iter().all(|value| *value == Complex::new(1.5, -2.0)));
        assert_eq!(row.get(s![1, 7])?.sum(), 307.0);
        assert_eq!(
            (saved.value::<Vec<f64>>("values")?, saved.value::<String>("name")?),
            (vec![1.0, 2.5, -3.0], "Größe".to_owned())
        );
        assert!(saved.value::<f64>("values").is_err());
        for said in [saved.value::<f64>("none").unwrap_err(), saved.read("none", a.at_mut(..)).unwrap_err()] {
            assert!(said.to_string().contains("\"none\""), "{said}");
        }
        let said = saved.read("b", row.at_mut(s![0, ..17])).unwrap_err().to_string();
        assert!(said.contains("<c8") && said.contains("<f8"), "{said}");
        job.sync()
    })
}

#[test]
fn checkpoints_are_restored_on_any_number_of_ranks_and_older_ones_go() {
    let place = Place::new("checkpoint");
    for (number, ranks) in [(1, 2), (2, 3), (3, 1)] {
        checkpoint(&place, ranks);
        let names: Vec<_> = fs::read_dir(place.file("c")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [format!("checkpoint-{number}").as_str()]);
        (1..=5).for_each(|ranks| restore(&place, ranks).unwrap());
    }
    // NumPy reads the arrays.
    assert!(fs::read(place.file("c/checkpoint-3/row.npy")).unwrap().starts_with(b"\x93NUMPY"));
    let none = Launch::new()
        .network("threads")
        .ranks(2)
        .run(|job| Ok::<_, Error>(Checkpoint::restore(job, place.file("none"))?.is_none()));
    assert!(none.unwrap());
}

#[test]
fn each_flipped_byte_of_a_checkpoint_is_found_and_its_file_is_named() {
    let place = Place::new("flipped");
    checkpoint(&place, 2);
    let long = std::env::var("GA_TEST_LONG").is_ok();
    for name in ["a.npy", "b.npy", "row.npy", "values", "checkpoint"] {
        let path = place.file("c/checkpoint-1").join(name);
        let whole = fs::read(&path).unwrap();
        let step = if long { 1 } else { whole.len() / 40 };
        for at in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, bytes).unwrap();
            let said = restore(&place, 2).expect_err("a flipped byte").to_string();
            assert!(said.contains(name), "{name}, byte {at}: {said}");
        }
        for len in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            let said = restore(&place, 2).expect_err("a truncated file").to_string();
            assert!(said.contains(name), "{name}, {len} bytes: {said}");
        }
        fs::write(&path, whole).unwrap();
    }
    restore(&place, 1).unwrap();
}

#[test]
fn a_checkpoint_that_fails_leaves_the_one_before() {
    let place = Place::new("failing-checkpoint");
    checkpoint(&place, 2);
    everywhere(|job| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [5]).fill(3.0).create()?;
        for (names, word) in [(["a", "a"], "twice"), (["a", "../b"], "../b"), (["", "b"], "\"\"")] {
            let saved = Checkpoint::new(place.file("c")).array(names[0], &a).array(names[1], &a).save();
            let said = saved.unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
        let said = Checkpoint::new("/dev/null").array("a", &a).save().unwrap_err().to_string();
        assert!(said.contains("/dev/null"), "{said}");
        assert!(Checkpoint::new(place.file("c")).value("a", &1).save().unwrap_err().to_string().contains("an array"));
        job.sync()
    });
    assert_eq!(fs::read_dir(place.file("c")).unwrap().count(), 1);
    restore(&place, 2).unwrap();
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

/// A file of each format, with bytes changed, removed or added at random, is read or refused; nothing panics or asks for absurd memory.
#[test]
fn mutated_files_are_read_or_refused() {
    let place = Place::new("mutated");
    let rounds = if std::env::var("GA_TEST_LONG").is_ok() { 100_000 } else { 500 };
    let body = |job: &Job| {
        let a = GlobalArray2::<f64>::from_fn(job, [3, 4], |(i, j)| (i + j) as f64)?;
        let x: Vec<f64> = (0..5).map(f64::from).collect();
        let points = GlobalArray2::<f64>::from_fn(job, [4, 3], |(i, j)| (i + j) as f64)?;
        a.save(place.file("whole.npy"))?;
        FileWriter::new(place.file("whole.vti")).attribute("t", 1.0).array("a", &a).save()?;
        FileWriter::new(place.file("whole.vtr")).coordinate("x", &x).array("a", &a).axes(["y", "x"]).save()?;
        FileWriter::new(place.file("whole.vtp")).array("points", &points).save()?;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for ending in ["npy", "vti", "vtr", "vtp"] {
            let whole = fs::read(place.file(&format!("whole.{ending}"))).map_err(Error::other)?;
            let path = place.file(&format!("mutated.{ending}"));
            let (mut read, mut refused) = (0, 0);
            for _ in 0..rounds {
                let mut bytes = whole.clone();
                for _ in 0..=random(3) {
                    let at = random(bytes.len());
                    match random(4) {
                        0 => bytes[at] = random(256) as u8,
                        1 => bytes[at] = b"0123456789\"<> -"[random(15)],
                        2 => bytes.truncate(at.max(1)),
                        _ => bytes.insert(at, b"9\"0 <"[random(5)]),
                    }
                }
                fs::write(&path, &bytes).map_err(Error::other)?;
                let outcome = FileReader::open(job, &path).and_then(|file| {
                    let names: Vec<String> = file.variables().map(|variable| variable.name().to_owned()).collect();
                    names.iter().try_for_each(|name| file.load::<f64, IxDyn>(name).map(drop))
                });
                *if outcome.is_ok() { &mut read } else { &mut refused } += 1;
            }
            assert!(read > 0 && refused > 0, "{ending}: {read} read, {refused} refused");
        }
        Ok::<(), Error>(())
    };
    Launch::new().ranks(1).network("threads").run(body).unwrap();
}

#[test]
fn what_is_not_ours_stays() {
    let place = Place::new("others");
    fs::create_dir(place.file("home.zarr")).unwrap();
    fs::write(place.file("home.zarr/precious.txt"), "precious").unwrap();
    fs::create_dir_all(place.file("c")).unwrap();
    fs::write(place.file("c/.checkpoint-7.part"), "a file of this name").unwrap();
    fs::create_dir(place.file("c/checkpoint-010")).unwrap();
    everywhere(|job| {
        let a = GlobalArray1::<f64>::builder(job, [6]).fill(1.0).create()?;
        let said = a.save(place.file("home.zarr")).unwrap_err().to_string();
        assert!(said.contains("other files"), "{said}");
        Checkpoint::new(place.file("c")).array("a", &a).save()?;
        Checkpoint::new(place.file("c")).array("a", &a).save()?;
        assert!(Checkpoint::restore(job, place.file("c"))?.is_some());
        job.sync()
    });
    assert_eq!(fs::read(place.file("home.zarr/precious.txt")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(place.file("c")).unwrap().count(), 3);
    assert_eq!(place.names().len(), 2);
}

#[test]
fn members_that_differ_are_told() {
    let place = Place::new("differ");
    let path = place.file("both.vti");
    // A group of which members disagree is no longer used.
    type Call<'a> = dyn Fn(&Job, &mut GlobalArray2<f64>) -> Result<(), Error> + Sync + 'a;
    let differs = |call: &Call<'_>| {
        let run = Launch::new().ranks(2).network("threads").run(|job| {
            let mut a = GlobalArray2::<f64>::builder(job, [4, 6]).fill(1.0).create()?;
            FileWriter::new(&path).array("u", &a).array("v", &a).save()?;
            call(job, &mut a)
        });
        let said = run.expect_err("members that differ").to_string();
        assert!(said.contains("do not agree"), "{said}");
    };
    differs(&|job, a| FileReader::open(job, &path)?.read(["u", "v"][job.rank()], a.at_mut(..)));
    differs(&|job, a| FileReader::open(job, &path)?.read_section("u", s![0, job.rank(), ..], a.at_mut(s![0, ..])));
    differs(&|job, a| a.save(place.file(["a.npy", "b.npy"][job.rank()])));
    differs(&|job, a| FileWriter::new(&path).array(["u", "v"][job.rank()], &*a).save());
    differs(&|job, a| {
        let file = FileWriter::new(place.file("a.pvd")).array("u", &*a);
        if job.rank() == 0 { file.at_time(0.0) } else { file }.save()
    });
    differs(&|job, a| Checkpoint::new(place.file(["c", "d"][job.rank()])).array("a", &*a).save());
    assert_eq!(place.names(), ["both.vti"]);
}

#[test]
fn what_formats_do_not_hold_is_said_before_anything_is_written() {
    let place = Place::new("refused");
    let pipe = place.file("pipe.npy");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    fs::write(place.file("elements.raw"), [0; 80]).unwrap();
    everywhere(|job| {
        let a = GlobalArray1::<f64>::builder(job, [10]).fill(1.0).create()?;
        let c = GlobalArray1::<Complex64>::builder(job, [10]).fill(Complex::new(1.0, 0.0)).create()?;
        let mut b = GlobalArray1::<f64>::builder(job, [10]).create()?;
        let file = |name: &str| FileWriter::new(place.file(name));
        let steps = file("run.pvd").array("a", &a);
        for (outcome, word) in [
            (file("a.xdmf").array("a/b", &a).array("a.b", &a).save(), "one name"),
            (file("a.xdmf").array("a", &a).array("c", &c).save(), "real numbers"),
            (steps.at_time(f64::NAN).save(), "numbers"),
            (file("a.npy").array("a", &a).chunks(&[5]).save(), ".zarr"),
            (GlobalArray1::<f64>::from_file(job, &pipe).map(drop), "regular file"),
            (FileReader::open(job, place.file("elements.raw"))?.read_section("", s![2..6], b.at_mut(..)), "raw"),
        ] {
            let said = outcome.expect_err("a refusal").to_string();
            assert!(said.contains(word), "{said}");
        }
        FileReader::open(job, place.file("elements.raw"))?.read("", b.at_mut(..))?;
        job.sync()
    });
    assert_eq!(place.names().len(), 2);
    // A program that panics in the middle.
    let panicked = std::panic::catch_unwind(|| {
        Launch::new().ranks(1).network("threads").run(|job| {
            let a = GlobalArray1::<f64>::builder(job, [10]).fill(1.0).create()?;
            FileWriter::new(place.file("a.npy")).array("a", &a).progress(|_| panic!("as a test")).save()
        })
    });
    assert!(panicked.is_err() || panicked.is_ok_and(|outcome: Result<(), Error>| outcome.is_err()));
    assert_eq!(place.names().len(), 2);
}

/// What was there stays, and what could not be written is gone.
#[test]
fn a_full_disk_leaves_what_was_there() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    let place = Place::new("full");
    if let Err(error) = mount("none", &place.0, "tmpfs", MountFlags::empty(), Some(c"size=2m")) {
        eprintln!("skipped: no tmpfs can be mounted here: {error}");
        return;
    }
    let run = std::panic::catch_unwind(|| {
        everywhere(|job| {
            let few = GlobalArray2::<f64>::from_fn(job, [10, 20], |(i, j)| (i + j) as f64)?;
            let many = GlobalArray2::<f64>::builder(job, [1 << 10, 1 << 10]).fill(1.0).create()?;
            for ending in ["npy", "raw", "vti", "h5", "zarr"] {
                let path = place.file(&format!("a.{ending}"));
                // The kernel gives the pages of files that were removed back a little later, seen on tmpfs only.
                let saved = (0..100).find(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    few.save(&path).is_ok()
                });
                assert!(saved.is_some(), "{ending}");
                let said = many.save(&path).expect_err("a full disk").to_string();
                assert!(said.contains("No space left") && said.contains(ending), "{said}");
                let mut there = GlobalArray2::<f64>::builder(job, [10, 20]).create()?;
                there.read(&path)?;
                assert_eq!(there.get(..)?, few.get(..)?, "{ending}");
            }
            let saved = (0..100).find(|_| Checkpoint::new(place.file("c")).array("a", &few).save().is_ok());
            assert!(saved.is_some());
            let said = Checkpoint::new(place.file("c")).array("a", &many).save().expect_err("a full disk").to_string();
            assert!(said.contains("No space left"), "{said}");
            let saved = Checkpoint::restore(job, place.file("c"))?.expect("the one before");
            let mut there = GlobalArray2::<f64>::builder(job, [10, 20]).create()?;
            saved.read("a", there.at_mut(..))?;
            assert_eq!(there.get(..)?, few.get(..)?);
            job.sync()
        });
    });
    let names = place.names();
    unmount(&place.0, UnmountFlags::DETACH).unwrap();
    run.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert_eq!(names.len(), 6, "{names:?}");
}
