//! The transposition of a matrix on a disk, against `dd`, which copies as many bytes. Prints seconds, and how fast the transposition is beside
//! `dd`. For an array that is larger than memory, run it in a cgroup:
//!
//! ```sh
//! cargo bench -p global-arrays-benches --bench disk -- FOLDER [ORDER [RANKS [MEMORY_IN_MIB [ROUNDS]]]]
//! ```

use std::{fs, path::Path, process::Command, time::Instant};

use global_arrays::{file::DiskArray, prelude::*};

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let Some(folder) = words.first().map(Path::new) else {
        println!("give a folder on the disk, and the order of the matrix");
        return Ok(());
    };
    let number = |k: usize, default: usize| words.get(k).and_then(|word| word.parse().ok()).unwrap_or(default);
    let (order, ranks, memory, rounds) = (number(1, 16_384), number(2, 2), number(3, 64) << 20, number(4, 3));
    let [from, to, copy] = ["from.npy", "to.npy", "copy"].map(|name| folder.join(name));
    remove(&[&from, &to, &copy]);
    run_with(ranks, |job| {
        let a = DiskArray::<f64, Ix2>::create(job, &from, [order, order])?;
        for row in (job.rank()..order).step_by(job.size()) {
            a.put(s![row, ..], &Array1::from_shape_fn(order, |col| (row * order + col) as f64))?;
        }
        a.close()
    })?;
    for _ in 0..rounds {
        remove(&[&copy]);
        let dd = seconds(&from, || {
            dd(&[&format!("if={}", from.display()), &format!("of={}", copy.display()), "bs=4M", "conv=fsync"])
        })?;
        remove(&[&copy, &to]);
        let own = seconds(&from, || {
            run_with(ranks, |job| {
                let a = DiskArray::<f64, Ix2>::open_read_only(job, &from)?.with_memory(memory);
                let b = DiskArray::<f64, Ix2>::create(job, &to, [order, order])?;
                a.transpose_into(&b)?;
                b.close()
            })
        })?;
        println!("dd {dd:.2} s, transposition {own:.2} s, ratio {:.2}", dd / own);
    }
    run_with(1, |job| {
        let b = DiskArray::<f64, Ix2>::open_read_only(job, &to)?;
        for row in (0..order).step_by(1.max(order / 97)) {
            let found = b.get(s![row, ..])?;
            assert!(found.iter().enumerate().all(|(col, &x)| x == (col * order + row) as f64), "row {row}");
        }
        Ok(())
    })?;
    remove(&[&from, &to]);
    Ok(())
}

fn run_with(ranks: usize, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> Result<(), Error> {
    Launch::new().ranks(ranks).run(body)
}

/// Seconds of something that begins with nothing of a file in the cache.
fn seconds(file: &Path, body: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    dd(&[&format!("of={}", file.display()), "oflag=nocache", "count=0", "conv=notrunc"])?;
    let start = Instant::now();
    body()?;
    Ok(start.elapsed().as_secs_f64())
}

fn dd(words: &[&str]) -> Result<(), Error> {
    let done = Command::new("dd").args(words).arg("status=none").status().map_err(Error::other)?;
    if done.success() { Ok(()) } else { Err(Error::other(format!("dd {}: {done}", words.join(" ")))) }
}

fn remove(files: &[&Path]) {
    files.iter().for_each(|file| drop(fs::remove_file(file)));
}
