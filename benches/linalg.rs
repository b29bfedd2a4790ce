//! Eigenvalues, factors and solutions on two ranks of two cores, beside NumPy on two threads and ScaLAPACK on two ranks. Prints seconds, the medians of some
//! rounds in which all take turns, and how much longer the others take.
//!
//! With the feature `faer` instead of `blas`, and `GA_BLAS=none`, faer computes what LAPACK would.
//!
//! ```sh
//! GA_PYTHON=python3 GA_SOLVERS="mpirun -n 2 --bind-to core $PWD/target/peers/solvers.openmpi" \
//!     cargo bench -p global-arrays-benches --features blas --bench linalg -- [ORDER [ROUNDS]] [NAME...]
//! ```
//!
//! With names only those calls are measured. Cholesky and LU have the product of the BLAS, or of the crate with `GA_BLAS=none`.

use std::{env, process::Command, sync::Mutex, time::Instant};

use global_arrays::{
    linalg::{Blocking, Spectrum},
    prelude::*,
};

/// Right-hand sides.
const RIGHT: usize = 64;

/// Prints a line for each call, with its seconds; the second of two runs.
const PYTHON: &str = r#"
import sys, time, numpy
n, right = int(sys.argv[1]), int(sys.argv[2])
i, j = numpy.indices((n, n))
h = numpy.cos(1.0 * i * j) + numpy.cos(1.0 * i + j)
s = h / n + 3 * numpy.eye(n)
a = numpy.sin(1.0 * i * n + 3.0 * j * j) + numpy.eye(n)
b = numpy.ones((n, right))
def seconds(f):
    f()
    start = time.perf_counter()
    f()
    return time.perf_counter() - start
print("eigh", seconds(lambda: numpy.linalg.eigh(h)))
print("svd", seconds(lambda: numpy.linalg.svd(a)))
print("cholesky", seconds(lambda: numpy.linalg.cholesky(s)))
print("lu+solve", seconds(lambda: numpy.linalg.solve(a, b)))
"#;

fn main() -> Result<(), Error> {
    let (words, names): (Vec<String>, Vec<String>) =
        env::args().skip(1).filter(|word| !word.starts_with('-')).partition(|word| word.parse::<usize>().is_ok());
    let words: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let (order, rounds) = (*words.first().unwrap_or(&1000), *words.get(1).unwrap_or(&3));
    let mut all: Vec<[Figures; 3]> = Vec::new();
    for _ in 0..rounds {
        all.push([ours(order, &names)?, numpy(order), scalapack(order)]);
    }
    println!("{:<16}{:>10}{:>10}{:>8}{:>12}{:>8}", format!("order {order}"), "ours", "NumPy", "ratio", "ScaLAPACK", "ratio");
    for (name, _) in &all[0][0] {
        let of = |who: usize| {
            let mut found: Vec<f64> =
                all.iter().filter_map(|round| Some(round[who].iter().find(|(of, _)| of == name)?.1)).collect();
            found.sort_by(f64::total_cmp);
            found.get(found.len() / 2).copied()
        };
        let own = of(0).unwrap_or(f64::NAN);
        let beside = |who: usize, width: usize| match of(who) {
            Some(seconds) => format!("{seconds:>width$.4}{:>8.2}", seconds / own),
            None => " ".repeat(width + 8),
        };
        println!("{name:<16}{own:>10.4}{}{}", beside(1, 10), beside(2, 12));
    }
    Ok(())
}

/// Names and seconds.
type Figures = Vec<(String, f64)>;

fn ours(order: usize, names: &[String]) -> Result<Figures, Error> {
    let figures = Launch::new().ranks(2).run(|job| {
        let n = order as f64;
        let h = GlobalArray2::from_fn(job, [order, order], |(i, j)| ((i * j) as f64).cos() + ((i + j) as f64).cos())?;
        let s = GlobalArray2::from_fn(job, [order, order], |(i, j)| {
            (((i * j) as f64).cos() + ((i + j) as f64).cos()) / n + if i == j { 3.0 } else { 0.0 }
        })?;
        let a = GlobalArray2::from_fn(job, [order, order], |(i, j)| {
            (i as f64 * n + (3 * j * j) as f64).sin() + if i == j { 1.0 } else { 0.0 }
        })?;
        let b = GlobalArray2::<f64>::builder(job, [order, RIGHT]).fill(1.0).create()?;
        let figures = Mutex::new(Vec::new());
        // The second of two calls, each with what `make` makes beforehand.
        fn time<M>(
            (job, names, figures): (&Job, &[String], &Mutex<Figures>),
            name: &str,
            make: impl Fn() -> Result<M, Error>,
            run: impl Fn(M) -> Result<(), Error>,
        ) -> Result<(), Error> {
            if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
                return Ok(());
            }
            run(make()?)?;
            let made = make()?;
            job.sync()?;
            let begin = Instant::now();
            run(made)?;
            let seconds = job.all_reduce_one(begin.elapsed().as_secs_f64(), ops::max)?;
            figures.lock().expect("one thread").push((name.to_owned(), seconds));
            Ok(())
        }
        let of = (job, names, &figures);
        // In the blocks of ScaLAPACK.
        let blocks = |a: &GlobalArray2<f64>| {
            let Blocking { edge, grid } = Blocking::new(order, job.size());
            let mut made = GlobalArray2::<f64>::builder(job, [order, order])
                .block_cyclic([edge; 2])
                .grid(grid)
                .order(Order::ColumnMajor)
                .create()?;
            made.assign(a)?;
            Ok(made)
        };
        let nothing = || Ok(());
        time(of, "eigh", nothing, |()| h.eigh().map(drop))?;
        time(of, "lowest tenth", nothing, |()| h.eigh_of(Spectrum::Lowest(order / 10)).map(drop))?;
        time(of, "svd", nothing, |()| a.svd().map(drop))?;
        time(of, "cholesky", || blocks(&s), |s| s.into_cholesky().map(drop))?;
        time(of, "of a copy", nothing, |()| s.cholesky().map(drop))?;
        time(of, "lu", || blocks(&a), |a| a.into_lu().map(drop))?;
        time(of, "lu of a copy", nothing, |()| a.lu().map(drop))?;
        let lu = || a.lu();
        time(of, "solve", lu, |lu| lu.solve(&b).map(drop))?;
        time(of, "lu+solve", || blocks(&a), |a| a.into_lu()?.solve(&b).map(drop))?;
        Ok::<_, Error>(figures.into_inner().expect("one thread"))
    })?;
    Ok(figures)
}

fn numpy(order: usize) -> Figures {
    let Some(python) = env::var_os("GA_PYTHON") else { return Vec::new() };
    lines(Command::new(python).args(["-c", PYTHON, &order.to_string(), &RIGHT.to_string()]).env("OPENBLAS_NUM_THREADS", "2"))
}

fn scalapack(order: usize) -> Figures {
    let Some(words) = env::var("GA_SOLVERS").ok().filter(|words| !words.is_empty()) else { return Vec::new() };
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    lines(command.args(words).args([order.to_string(), RIGHT.to_string()]).env("OPENBLAS_NUM_THREADS", "1"))
}

/// Names and seconds that a program prints.
fn lines(command: &mut Command) -> Figures {
    let out = command.env_remove("OPENBLAS_CORETYPE").env_remove("OPENBLAS_L2_SIZE").output().expect("the program");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let line = |line: &str| line.rsplit_once(' ').and_then(|(name, seconds)| Some((name.to_owned(), seconds.parse().ok()?)));
    String::from_utf8_lossy(&out.stdout).lines().filter_map(line).collect()
}
