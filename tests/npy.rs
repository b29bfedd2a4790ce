//! Arrays in `.npy` files: as numpy writes them, whatever the distribution; and files that are none.

use std::{
    fs,
    os::{
        fd::AsRawFd,
        unix::fs::{PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use global_arrays::{NpyElement, prelude::*};
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
        a.save_npy(&path)?;
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
            let a = GlobalArray::<i32, Ix2>::load_npy(job, path)?;
            assert_eq!(a.get(..)?, Array2::from_shape_fn((2, 3), |(i, j)| (3 * i + j) as i32));
            let dynamic = GlobalArray::<i32, IxDyn>::load_npy(job, path)?;
            assert_eq!(dynamic.shape(), [2, 3]);
        }
        Ok(())
    });
}

fn roundtrip<T: NpyElement + PartialEq + std::fmt::Debug>(path: &Path, value: impl Fn(usize) -> T + Sync) {
    const SHAPE: [usize; 3] = [7, 11, 5];
    everywhere(|job| {
        let p = job.size();
        let cuts = vec![(0..p).map(|k| k * 2).collect(), vec![0], vec![0]];
        let arrays = [
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
        for (k, a) in arrays.iter().enumerate() {
            if job.rank() == 0 {
                a.put(.., &all)?;
            }
            a.save_npy(path)?;
            assert_eq!(GlobalArray::<T, Ix3>::load_npy(job, path)?.get(..)?, all);
            let b = &arrays[(k + 1) % arrays.len()];
            b.read_npy(path)?;
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
            a.save_npy(&path)?;
            let b = GlobalArray::<f64, Ix2>::load_npy(job, &path)?;
            assert!(b.get(s![0, ..])?.iter().enumerate().all(|(i, &x)| x == i as f64));
            let empty = GlobalArray::<f64, Ix2>::builder(job, [0, 4]).create()?;
            job.sync()?;
            empty.save_npy(&path)?;
            assert_eq!(GlobalArray::<f64, Ix2>::load_npy(job, &path)?.shape(), [0, 4]);
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
        (place.file("missing.npy"), vec!["missing.npy", "load_npy", "No such file"]),
        (write("empty.npy", b""), vec!["begins with"]),
        (write("short.npy", &whole[..9]), vec!["9 bytes", "header"]),
        (write("cut.npy", &whole[..70]), vec!["70 bytes", "128"]),
        (write("truncated.npy", &whole[..whole.len() - 1]), vec!["23 bytes", "needs 24", "[2, 3]"]),
        (write("text.npy", b"not an array at all, but some text"), vec!["not an"]),
        (write("huge.npy", &numpy(&huge, &[])), vec!["more than"]),
        (
            write("type.npy", &numpy("{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }", &le(0..6))),
            vec!["'>i4'", "'<i4'"],
        ),
        (
            write("axes.npy", &numpy("{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }", &le(0..6))),
            vec!["[6]", "1 axes", "2"],
        ),
    ];
    everywhere(|job| {
        for (path, words) in &cases {
            let said = GlobalArray::<i32, Ix2>::load_npy(job, path).unwrap_err().to_string();
            for word in words {
                assert!(said.contains(word), "\"{said}\" does not say \"{word}\"");
            }
            assert!(said.contains(path.to_str().unwrap()));
        }
        let a = GlobalArray::<i32, Ix2>::builder(job, [3, 2]).create()?;
        let said = a.read_npy(write("shape.npy", &whole)).unwrap_err().to_string();
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
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("inside"), b"").unwrap();
    everywhere(|job| {
        let a = GlobalArray::<f64, Ix2>::builder(job, [9, 9]).zeros().create()?;
        for path in [&directory, &socket, &nowhere, &to_socket, &to_file, &descriptor, &around] {
            let said = a.save_npy(path).unwrap_err().to_string();
            assert!(said.contains("save_npy") && said.contains(path.to_str().unwrap()), "{said}");
        }
        // The group works on.
        job.sync()
    });
    let mut names = place.names();
    names.sort();
    assert_eq!(names, ["around.npy", "directory.npy", "held", "socket.npy", "to-file.npy", "to-socket.npy"]);
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
    let long = place.file(&"n".repeat(255));
    everywhere(|job| {
        let a = GlobalArray::<i32, Ix1>::builder(job, [5]).fill(3).create()?;
        for path in [&link, &dangling, &long] {
            a.save_npy(path)?;
            assert_eq!(GlobalArray::<i32, Ix1>::load_npy(job, path)?.sum()?, 15);
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
        a.save_npy(&open)?;
        if !is_root {
            let said = a.save_npy(&protected).unwrap_err().to_string();
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
        a.save_npy("bare.npy")?;
        assert_eq!(GlobalArray::<i32, Ix1>::load_npy(job, place.file("bare.npy"))?.sum()?, 15);
        job.sync()
    });
    assert_eq!(place.names(), ["bare.npy"]);
    std::env::set_current_dir(std::env::temp_dir()).unwrap();
}
