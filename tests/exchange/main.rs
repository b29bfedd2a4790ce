//! Files of ours in NumPy, h5py, xarray, zarr-python and PyVista, and theirs in ours: equal bits, as `exchange.py` beside this file checks.
//!
//! `GA_TEST_PYTHON` names a Python that has them; `cargo xtask test` makes one. Without it the test says that it is skipped.

// Other suites use all of it.
#[expect(dead_code)]
#[path = "../place/mod.rs"]
mod place;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use global_arrays::{
    FileElement,
    file::{Compression, FileReader, FileWriter},
    prelude::*,
};

use crate::place::Place;

const SHAPE: [usize; 3] = [3, 4, 5];

/// What an element of a number is.
trait Pattern: FileElement + PartialEq + std::fmt::Debug {
    const NAME: &'static str;
    fn of(n: usize) -> Self;
}

macro_rules! pattern {
    ($($t:ty, $name:literal, $of:expr);* $(;)?) => {$(
        impl Pattern for $t {
            const NAME: &'static str = $name;
            fn of(n: usize) -> Self {
                let of: fn(usize) -> $t = $of;
                of(n * 7 % 101)
            }
        }
    )*};
}
pattern!(i8, "i1", |n| n as i8; u8, "u1", |n| n as u8; i16, "i2", |n| n as i16; u16, "u2", |n| n as u16; i32, "i4", |n| n as i32;
    u32, "u4", |n| n as u32; i64, "i8", |n| n as i64; u64, "u8", |n| n as u64; f32, "f4", |n| n as f32 / 8.0; f64, "f8", |n| n as f64 / 8.0;
    Complex32, "c8", |n| Complex::new(n as f32 / 8.0, n as f32 + 0.5); Complex64, "c16", |n| Complex::new(n as f64 / 8.0, n as f64 + 0.5));

/// Calls a macro for each type.
macro_rules! of_all {
    ($f:ident, $($arguments:expr),*) => {{
        of_all!(@real $f, $($arguments),*);
        $f::<Complex32>($($arguments),*)?;
        $f::<Complex64>($($arguments),*)?;
    }};
    (@real $f:ident, $($arguments:expr),*) => {{
        $f::<i8>($($arguments),*)?;
        $f::<u8>($($arguments),*)?;
        $f::<i16>($($arguments),*)?;
        $f::<u16>($($arguments),*)?;
        $f::<i32>($($arguments),*)?;
        $f::<u32>($($arguments),*)?;
        $f::<i64>($($arguments),*)?;
        $f::<u64>($($arguments),*)?;
        $f::<f32>($($arguments),*)?;
        $f::<f64>($($arguments),*)?;
    }};
}

fn array<T: Pattern>(job: &Job) -> Result<GlobalArray3<T>, Error> {
    let a = GlobalArray3::<T>::builder(job, SHAPE).name(T::NAME).block_cyclic([1, 2, 2]).create()?;
    if job.rank() == 0 {
        a.put(.., &expected())?;
    }
    job.sync()?;
    Ok(a)
}

fn expected<T: Pattern>() -> Array3<T> {
    Array3::from_shape_fn(SHAPE, |(i, j, k)| T::of((i * SHAPE[1] + j) * SHAPE[2] + k))
}

fn save_alone<T: Pattern>(job: &Job, folder: &Path) -> Result<(), Error> {
    array::<T>(job)?.save(folder.join(format!("{}.npy", T::NAME)))
}

/// An array of each type.
struct Kinds {
    i1: GlobalArray3<i8>,
    u1: GlobalArray3<u8>,
    i2: GlobalArray3<i16>,
    u2: GlobalArray3<u16>,
    i4: GlobalArray3<i32>,
    u4: GlobalArray3<u32>,
    i8: GlobalArray3<i64>,
    u8: GlobalArray3<u64>,
    f4: GlobalArray3<f32>,
    f8: GlobalArray3<f64>,
    c8: GlobalArray3<Complex32>,
    c16: GlobalArray3<Complex64>,
}

fn kinds(job: &Job) -> Result<Kinds, Error> {
    Ok(Kinds {
        i1: array(job)?,
        u1: array(job)?,
        i2: array(job)?,
        u2: array(job)?,
        i4: array(job)?,
        u4: array(job)?,
        i8: array(job)?,
        u8: array(job)?,
        f4: array(job)?,
        f8: array(job)?,
        c8: array(job)?,
        c16: array(job)?,
    })
}

impl Kinds {
    fn write<'a>(&'a self, file: FileWriter<'a>, group: &str, has_complex: bool) -> Result<(), Error> {
        let name = |kind: &str| format!("{group}{kind}");
        let file = file.array(&name("i1"), &self.i1).array(&name("u1"), &self.u1).array(&name("i2"), &self.i2);
        let file = file.array(&name("u2"), &self.u2).array(&name("i4"), &self.i4).array(&name("u4"), &self.u4);
        let file = file.array(&name("i8"), &self.i8).array(&name("u8"), &self.u8).array(&name("f4"), &self.f4);
        let file = file.array(&name("f8"), &self.f8);
        if has_complex { file.array(&name("c8"), &self.c8).array(&name("c16"), &self.c16) } else { file }.save()
    }
}

fn described<'a>(path: &Path, u: &'a GlobalArray3<f64>) -> FileWriter<'a> {
    let file = FileWriter::new(path).attribute("title", "described").array("u", u).axes(["z", "y", "x"]).units("K");
    file.spacing(&[3.0, 2.0, 1.0]).origin(&[0.5, 0.0, -1.0]).attribute("note", "Größe").attribute("level", 3_i64)
}

fn ours(job: &Job, folder: &Path) -> Result<(), Error> {
    of_all!(save_alone, job, folder);
    let all = kinds(job)?;
    for (name, has_complex) in [("kinds.h5", true), ("kinds.zarr", true)] {
        all.write(FileWriter::new(folder.join(name)).attribute("title", "kinds"), "kinds/", has_complex)?;
    }
    all.write(FileWriter::new(folder.join("kinds.vti")), "", false)?;
    let u = array::<f64>(job)?;
    for name in ["described.h5", "described.zarr", "described.vti"] {
        described(&folder.join(name), &u).save()?;
    }
    described(&folder.join("zstd.zarr"), &u).chunks(&[2, 2, 3]).compression(Compression::Zstd(3)).save()?;
    described(&folder.join("gzip.zarr"), &u).chunks(&[3, 4, 5]).compression(Compression::Gzip(5)).save()?;
    let x: Vec<f64> = (0..6).map(|k| f64::from(k * k)).collect();
    FileWriter::new(folder.join("cells.vtr")).coordinate("x", &x).array("u", &u).axes(["z", "y", "x"]).save()?;
    let points = GlobalArray2::from_fn(job, [6, 3], |(i, k)| f64::of(3 * i + k))?;
    let mass = GlobalArray1::from_fn(job, [6], f32::of)?;
    FileWriter::new(folder.join("points.vtp")).array("points", &points).array("mass", &mass).save()?;
    described(&folder.join("image.xdmf"), &u).save()?;
    let mut a = GlobalArray2::<f64>::builder(job, [4, 5]).create()?;
    for (time, value) in [(0.0, 1.0), (0.5, 2.0), (1.0, 3.0), (0.75, 4.0)] {
        a.fill(value)?;
        for name in ["steps.pvd", "steps.h5", "steps.zarr"] {
            FileWriter::new(folder.join(name)).at_time(time).array("u", &a).axes(["y", "x"]).save()?;
        }
    }
    job.sync()
}

fn check<T: Pattern>(file: &FileReader<'_>, name: &str) -> Result<(), Error> {
    assert_eq!(file.load::<T, Ix3>(name)?.get(..)?, expected::<T>(), "{file:?} {name}");
    Ok(())
}

fn check_alone<T: Pattern>(job: &Job, folder: &Path) -> Result<(), Error> {
    for order in ["c", "f", "big"] {
        check::<T>(&FileReader::open(job, folder.join(format!("{order}-{}.npy", T::NAME)))?, "")?;
    }
    Ok(())
}

fn check_in<T: Pattern>(file: &FileReader<'_>, groups: &[&str]) -> Result<(), Error> {
    groups.iter().try_for_each(|group| check::<T>(file, &format!("{group}/{}", T::NAME)))
}

fn theirs(job: &Job, folder: &Path) -> Result<(), Error> {
    of_all!(check_alone, job, folder);
    of_all!(check_in, &FileReader::open(job, folder.join("theirs.h5"))?, &["contiguous", "big", "chunked", "gzip"]);
    of_all!(check_in, &FileReader::open(job, folder.join("theirs.zarr"))?, &["none", "zstd", "gzip"]);
    for name in ["theirs.nc", "xarray-2.zarr", "xarray-3.zarr", "theirs.vti"] {
        let file = FileReader::open(job, folder.join(name))?;
        check::<f64>(&file, "u")?;
        if name != "theirs.vti" {
            let u = file.variable("u").expect("u");
            assert_eq!((u.axes().join(" "), u.units()), ("z y x".to_owned(), Some("K")), "{name}");
        }
    }
    job.sync()
}

fn python(python: &Path, what: &str, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("exchange/exchange.py");
    let output = Command::new(python).arg(script).arg(what).arg(folder).output().expect("GA_TEST_PYTHON");
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn ours_are_theirs_and_theirs_are_ours() {
    let Some(interpreter) = env::var_os("GA_TEST_PYTHON").map(PathBuf::from) else {
        eprintln!("skipped: GA_TEST_PYTHON names no Python");
        return;
    };
    for ranks in [1, 3] {
        let place = Place::new(&format!("exchange-{ranks}"));
        let folder = &place.0;
        Launch::new().ranks(ranks).network("threads").run(|job| ours(job, folder)).expect("our files");
        python(&interpreter, "check", folder);
        if ranks == 1 {
            python(&interpreter, "write", folder);
            Launch::new().ranks(1).network("threads").run(|job| theirs(job, folder)).expect("their files");
            Launch::new().ranks(3).network("threads").run(|job| theirs(job, folder)).expect("their files");
        }
    }
}
