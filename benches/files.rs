//! Files: an array of 1 GiB on two ranks beside `dd`, and beside `np.save`, h5py and zarr-python.
//!
//! ```text
//! GA_PYTHON=python3 cargo bench -p global-arrays-benches --features zarr --bench files -- [folder] [MiB]
//! ```
//!
//! Every write ends on the disk. Each figure is the median of five rounds in which all take turns. Reads are of files that the kernel has in memory.
//! Without a Python that has NumPy, h5py and zarr (`GA_PYTHON`) those columns are empty.

use std::{
    env, fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    time::Instant,
};

use global_arrays::{
    file::{DiskArray, FileReader, FileWriter},
    prelude::*,
};

const ROUNDS: usize = 5;
const COLUMNS: usize = 1 << 13;
/// Random patches of 4 KiB.
const PATCHES: usize = 2000;

/// What Python does for a line `format verb file rows`; it answers with seconds.
const PYTHON: &str = r#"
import sys, os, time, shutil, numpy as np, h5py, zarr
rng = np.random.default_rng(1)
data = None
def sync(path):
    for root, _, files in os.walk(path) if os.path.isdir(path) else [(".", None, [path])]:
        for name in files:
            f = os.open(os.path.join(root, name) if os.path.isdir(path) else path, os.O_RDONLY)
            os.fsync(f); os.close(f)
print("ready", flush=True)
for line in sys.stdin:
    kind, verb, path, rows = line.split()
    rows = int(rows)
    if data is None:
        data = np.ones((rows, 8192))
    begin = time.perf_counter()
    if verb == "write":
        if kind == "npy":
            np.save(path, data)
        elif kind == "h5":
            with h5py.File(path, "w") as f: f["u"] = data
        else:
            shutil.rmtree(path, ignore_errors=True)
            begin = time.perf_counter()
            z = zarr.create_array(path, shape=data.shape, chunks=(128, 8192), dtype="f8", compressors=None)
            z[:] = data
        sync(path)
    elif verb == "read":
        if kind == "npy": a = np.load(path)
        elif kind == "h5":
            with h5py.File(path) as f: a = f["u"][:]
        else: a = zarr.open_group(path, mode="r")["u"][:]
        assert a[-1, -1] == a[0, 0]
    else:
        file = h5py.File(path) if kind == "h5" else None
        u = file["u"] if file else zarr.open_group(path, mode="r")["u"]
        count = 2000 if kind == "h5" else 200
        corners = rng.integers(0, (rows - 16, 8192 - 32), (count, 2))
        begin = time.perf_counter()
        total = sum(u[i:i+16, j:j+32][0, 0] for i, j in corners)
        seconds = (time.perf_counter() - begin) / count
        print(seconds, flush=True)
        continue
    print(time.perf_counter() - begin, flush=True)
"#;

fn main() {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let folder = arguments.next().map_or_else(env::temp_dir, PathBuf::from).join(format!("ga-files-{}", std::process::id()));
    let rows = arguments.next().map_or(1024, |mib| mib.parse().expect("a number of MiB")) * (1 << 20) / (COLUMNS * 8);
    fs::create_dir_all(&folder).expect("a folder");
    let measured = measure(&folder, rows);
    fs::remove_dir_all(&folder).expect("the folder");
    if let Err(error) = measured {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// The formats of this build and this machine.
fn endings(job: &Job, folder: &Path) -> Result<Vec<&'static str>, Error> {
    let probe = GlobalArray1::<f64>::zeros(job, [4])?;
    let all = ["npy", "vti", "h5", "zarr"];
    Ok(all.into_iter().filter(|ending| probe.save(folder.join(format!("probe.{ending}"))).is_ok()).collect())
}

type Figures = Vec<(String, f64, Option<f64>)>;

fn measure(folder: &Path, rows: usize) -> Result<(), Error> {
    let python = Mutex::new(Python::start());
    let figures = Launch::new().ranks(2).run(|job| -> Result<Vec<(String, f64, f64)>, Error> {
        let mut figures: Figures = Vec::new();
        let endings = endings(job, folder)?;
        let builder = || GlobalArray2::<f64>::builder(job, [rows, COLUMNS]).fill(1.0);
        let a = builder().create()?;
        let cyclic = builder().block_cyclic([64, 1024]).create()?;
        let mut target = builder().create()?;
        let mut python = python.lock().expect("one thread");
        let file = |ending: &str| folder.join(format!("u.{ending}"));
        let only = |run: &mut dyn FnMut() -> f64| -> Result<f64, Error> {
            job.sync()?;
            let seconds = if job.rank() == 0 { run() } else { 0.0 };
            job.all_reduce_one(seconds, ops::max)
        };
        let timed = |run: &mut dyn FnMut() -> Result<(), Error>| -> Result<f64, Error> {
            job.sync()?;
            let begin = Instant::now();
            run()?;
            job.all_reduce_one(begin.elapsed().as_secs_f64(), ops::max)
        };
        for _ in 0..=ROUNDS {
            let mut put = |name: String, seconds: f64, other: Option<f64>| figures.push((name, seconds, other));
            put("dd write".into(), only(&mut || dd("/dev/zero", &folder.join("dd"), rows * COLUMNS * 8))?, None);
            put("dd read".into(), only(&mut || dd(&folder.join("dd").to_string_lossy(), Path::new("/dev/null"), 0))?, None);
            for ending in &endings {
                let path = file(ending);
                let mut peer =
                    |verb: &str, name: &Path| only(&mut || python.ask(ending, verb, name, rows)).map(|s| (s > 0.0).then_some(s));
                let theirs = folder.join(format!("p.{ending}"));
                let seconds = timed(&mut || FileWriter::new(&path).array("u", &a).save())?;
                put(format!("{ending} write"), seconds, peer("write", &theirs)?);
                let seconds = timed(&mut || FileWriter::new(&path).array("u", &cyclic).save())?;
                put(format!("{ending} write, block-cyclic"), seconds, None);
                let seconds = timed(&mut || FileReader::open(job, &path)?.read("u", target.at_mut(..)))?;
                put(format!("{ending} read"), seconds, peer("read", &path)?);
                if ["h5", "zarr"].contains(ending) {
                    let disk = DiskArray::<f64, Ix2>::open(job, &path)?;
                    let mut patch = Array2::zeros((16, 32));
                    let mut state = 88_172_645_463_325_252_u64 + job.rank() as u64;
                    let seconds = timed(&mut || {
                        for _ in 0..PATCHES {
                            state ^= state << 13;
                            state ^= state >> 7;
                            state ^= state << 17;
                            let (i, j) = (state as usize % (rows - 16), (state >> 32) as usize % (COLUMNS - 32));
                            disk.get_into(s![i..i + 16, j..j + 32], &mut patch)?;
                        }
                        Ok(())
                    })?;
                    put(format!("{ending} patch of 4 KiB"), seconds / PATCHES as f64, peer("patch", &path)?);
                }
            }
        }
        job.sync()?;
        Ok(figures.into_iter().map(|(name, seconds, other)| (name, seconds, other.unwrap_or(0.0))).collect())
    })?;
    print(&figures, rows);
    Ok(())
}

fn print(figures: &[(String, f64, f64)], rows: usize) {
    let mut names: Vec<&str> = figures.iter().map(|(name, ..)| name.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    // The first round warms up.
    let of = |name: &str| -> [f64; 2] {
        let all: Vec<_> = figures.iter().filter(|(of, ..)| of == name).skip(1).collect();
        [|figure: &&(String, f64, f64)| figure.1, |figure: &&(String, f64, f64)| figure.2].map(|part| {
            let mut values: Vec<f64> = all.iter().map(part).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        })
    };
    println!(
        "{:<28}{:>12}{:>12}{:>14}{:>12}",
        format!("{} MiB, 2 ranks", (rows * COLUMNS * 8) >> 20),
        "seconds",
        "of dd",
        "Python",
        "of Python"
    );
    for name in names {
        let [seconds, other] = of(name);
        let dd = of(if name.contains("read") { "dd read" } else { "dd write" })[0];
        let of_dd = if name.contains("patch") { String::new() } else { format!("{:.2}", dd / seconds) };
        let [python, ratio] =
            if other > 0.0 { [format!("{other:.6}"), format!("{:.2}", other / seconds)] } else { [String::new(), String::new()] };
        println!("{name:<28}{seconds:>12.6}{of_dd:>12}{python:>14}{ratio:>12}");
    }
}

/// Seconds of a copy by `dd`; a write ends on the disk.
fn dd(from: &str, to: &Path, bytes: usize) -> f64 {
    let mut command = Command::new("dd");
    command.args([format!("if={from}"), format!("of={}", to.display()), "bs=4M".into()]).stderr(Stdio::null());
    if bytes > 0 {
        command.args([format!("count={}", bytes >> 22), "conv=fsync".into()]);
    }
    let begin = Instant::now();
    assert!(command.status().expect("dd").success());
    begin.elapsed().as_secs_f64()
}

/// A Python that answers questions.
struct Python(Option<std::process::Child>);

impl Python {
    fn start() -> Self {
        let Some(name) = env::var_os("GA_PYTHON") else { return Python(None) };
        let child =
            Command::new(name).args(["-c", PYTHON]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("GA_PYTHON");
        let mut python = Python(Some(child));
        assert_eq!(python.line(), "ready", "the Python of GA_PYTHON needs numpy, h5py and zarr");
        python
    }

    fn line(&mut self) -> String {
        let out = self.0.as_mut().and_then(|child| child.stdout.as_mut()).expect("a pipe");
        let mut line = Vec::new();
        let mut byte = [0];
        while out.read(&mut byte).expect("an answer") == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text")
    }

    /// Seconds; none for what it does not do.
    fn ask(&mut self, ending: &str, verb: &str, path: &Path, rows: usize) -> f64 {
        if self.0.is_none() || ending == "vti" {
            return 0.0;
        }
        let input = self.0.as_mut().and_then(|child| child.stdin.as_mut()).expect("a pipe");
        writeln!(input, "{ending} {verb} {} {rows}", path.display()).expect("a question");
        self.line().parse().expect("seconds")
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
