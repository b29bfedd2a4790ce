//! Files that are none, that cannot be written, or that belong to somebody else.

#[path = "place/mounted.rs"]
mod mounted;
#[path = "place/numpy.rs"]
mod numpy;
mod place;

use std::{
    fs,
    os::{fd::AsRawFd, unix::fs::symlink},
    path::PathBuf,
};

use global_arrays::{
    file::{Checkpoint, DiskArray, FileReader, FileWriter},
    prelude::*,
};

use crate::{
    mounted::Mounted,
    numpy::{le, numpy, reference},
    place::{Place, everywhere},
};

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
    let Some(place) = Mounted::new("full") else { return };
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
    assert_eq!(place.names().len(), 6, "{:?}", place.names());
}

#[test]
fn a_disk_that_cannot_be_written_is_read() {
    use rustix::mount::{MountFlags, mount_remount};
    let Some(place) = Mounted::new("read-only") else { return };
    let endings = ["npy", "raw", "vti", "h5", "zarr", "pvd"];
    let numbers = |job: &Job| GlobalArray2::<f64>::from_fn(job, [10, 20], |(i, j)| (i + j) as f64);
    let save = |path: &PathBuf, a: &GlobalArray2<f64>| match path.ends_with("a.pvd") {
        true => FileWriter::new(path).at_time(1.0).array("a", a).save(),
        false => a.save(path),
    };
    let checkpoint = |a: &GlobalArray2<f64>| Checkpoint::new(place.file("c")).array("a", a).save().map(drop);
    everywhere(|job| {
        let a = numbers(job)?;
        endings.iter().try_for_each(|ending| save(&place.file(&format!("a.{ending}")), &a))?;
        checkpoint(&a)
    });
    mount_remount(&place.0, MountFlags::RDONLY, "").unwrap();
    let names = place.names();
    everywhere(|job| {
        let a = numbers(job)?;
        let mut there = numbers(job)?;
        for ending in endings {
            let path = place.file(&format!("a.{ending}"));
            let said = save(&path, &a).expect_err(ending).to_string();
            assert!(said.contains("Read-only file system") && said.contains(path.to_str().unwrap()), "{said}");
            if ending != "pvd" {
                there.fill(0.0)?;
                there.read(&path)?;
                assert_eq!(there.get(..)?, a.get(..)?, "{ending}");
            }
        }
        let said = checkpoint(&a).expect_err("a read-only disk").to_string();
        assert!(said.contains("Read-only file system"), "{said}");
        Checkpoint::restore(job, place.file("c"))?.expect("one").read("a", there.at_mut(..))?;
        let said = DiskArray::<f64, Ix2>::open(job, place.file("a.npy")).expect_err("for writing").to_string();
        assert!(said.contains("Read-only file system"), "{said}");
        assert_eq!(DiskArray::<f64, Ix2>::open_read_only(job, place.file("a.npy"))?.get(s![3, 4])?[[]], 7.0);
        job.sync()
    });
    assert_eq!(place.names(), names);
}

/// Another program removes the folder while members write: an error on all members, or a file that went with its folder.
#[test]
fn a_folder_that_vanishes_is_told() {
    let place = Place::new("vanished");
    everywhere(|job| {
        let a = GlobalArray2::<f64>::builder(job, [1 << 10, 1 << 9]).fill(1.0).create()?;
        for ending in ["npy", "raw", "vti", "h5", "zarr", "pvd"] {
            let folder = place.file("folder");
            if job.rank() == 0 {
                fs::create_dir_all(&folder).map_err(Error::other)?;
            }
            job.sync()?;
            let path = folder.join(format!("a.{ending}"));
            let vanish = |_| drop(fs::remove_dir_all(&folder));
            let writer = FileWriter::new(&path).array("a", &a).progress(vanish);
            let writer = if ending == "pvd" { writer.at_time(0.0) } else { writer };
            let said = writer.save().expect_err(ending).to_string();
            assert!(said.contains("No such file or directory") && said.contains(path.to_str().unwrap()), "{said}");
            job.sync()?;
            let said = a.save(&path).expect_err(ending).to_string();
            assert!(said.contains(path.to_str().unwrap()), "{said}");
            job.sync()?;
        }
        // A checkpoint makes its folder anew.
        let folder = place.file("checkpoints");
        for _ in 0..2 {
            Checkpoint::new(&folder).array("a", &a).save()?;
            job.sync()?;
            if job.rank() == 0 {
                fs::remove_dir_all(&folder).map_err(Error::other)?;
            }
            job.sync()?;
        }
        Ok(())
    });
    assert!(place.names().is_empty(), "{:?}", place.names());
}
