//! Factors and solutions against their definitions; also eigenvalues, with the feature `blas` by the LAPACK of the machine, with `faer` by that crate.

#[cfg(any(feature = "blas", feature = "faer"))]
mod eigenvalues;
mod factors;

use global_arrays::{
    linalg::{Field, MatrixError},
    prelude::*,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Runs a body on one to three ranks, with memory that is mapped and with memory that is not.
fn everywhere(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for network in ["threads", "threads:unmapped", "simulated:gemini"] {
        for ranks in 1..=3 {
            let run = Launch::new().ranks(ranks).network(network).run(&body);
            run.unwrap_or_else(|error| panic!("{ranks} ranks over {network}: {error}"));
        }
    }
}

/// An element that tests make and measure.
trait Sample: Field {
    const EPSILON: f64;
    fn of(re: f64, im: f64) -> Self;
    fn wide(real: Self::Real) -> f64;
}

macro_rules! samples {
    ($($t:ty, $real:ty, $of:expr;)*) => {$(
        impl Sample for $t {
            const EPSILON: f64 = <$real>::EPSILON as f64;

            fn of(re: f64, im: f64) -> Self {
                $of(re as $real, im as $real)
            }

            fn wide(real: $real) -> f64 {
                real.into()
            }
        }
    )*};
}

samples!(f32, f32, |re, _| re; f64, f64, |re, _| re; Complex32, f32, Complex::new; Complex64, f64, Complex::new;);

/// The same matrix on all ranks.
fn random<T: Sample>(rows: usize, columns: usize, seed: u64) -> Array2<T> {
    let mut random = Pcg64::seed_from_u64(seed);
    Array2::from_shape_simple_fn((rows, columns), || T::of(random.random_range(-1.0..1.0), random.random_range(-1.0..1.0)))
}

fn adjoint<T: Sample>(a: &Array2<T>) -> Array2<T> {
    a.t().mapv(T::conj)
}

fn hermitian<T: Sample>(order: usize, seed: u64) -> Array2<T> {
    let a = random::<T>(order, order, seed);
    &a + &adjoint(&a)
}

fn positive<T: Sample>(order: usize, seed: u64) -> Array2<T> {
    let a = random::<T>(order, order, seed);
    a.dot(&adjoint(&a)) + Array2::<T>::eye(order)
}

/// An array of blocks, and the same block-cyclic.
fn spread<T: Sample>(job: &Job, a: &Array2<T>) -> Result<[GlobalArray2<T>; 2], Error> {
    let shape = [a.nrows(), a.ncols()];
    let arrays = [
        GlobalArray2::builder(job, shape).zeros().name("a").create()?,
        GlobalArray2::builder(job, shape).block_cyclic([3, 2]).zeros().name("a").create()?,
    ];
    for array in &arrays {
        if job.rank() == job.size() - 1 {
            array.put(.., a)?;
        }
    }
    job.sync()?;
    Ok(arrays)
}

fn largest<T: Sample>(a: &Array2<T>) -> f64 {
    a.iter().fold(0.0, |most, x| T::wide(x.magnitude()).max(most))
}

/// The largest difference between matrices that should be equal, in units of rounding.
fn apart<T: Sample>(a: &Array2<T>, b: &Array2<T>) -> f64 {
    let scale = largest(a).max(largest(b)).max(f64::MIN_POSITIVE);
    let order = a.nrows().max(a.ncols()).max(1) as f64;
    let most = (a - b).iter().fold(0.0, |most: f64, x| {
        let difference = T::wide(x.magnitude());
        if difference.is_nan() { f64::INFINITY } else { difference.max(most) }
    });
    most / scale / T::EPSILON / order
}

/// Symmetric matrices that are hard for a method, by name.
fn hard(order: usize) -> Vec<(&'static str, Array2<f64>)> {
    let q = hermitian::<f64>(order, 9);
    let square = |f: &dyn Fn(usize, usize) -> f64| Array2::from_shape_fn((order, order), |(i, j)| f(i, j));
    vec![
        ("zero", Array2::zeros((order, order))),
        ("graded", square(&|i, j| q[[i, j]] * 10f64.powi(-((i + j) as i32) / 6))),
        ("clustered", Array2::eye(order) + &q * 1e-13),
        ("nearly singular", square(&|i, j| q[[i.min(order - 2), j.min(order - 2)]] + if i == j { 1e-13 } else { 0.0 })),
        ("huge", &q * 1e300),
        ("tiny", &q * 1e-300),
        ("denormal", &q * 1e-310),
        ("Hilbert", square(&|i, j| 1.0 / (i + j + 1) as f64)),
        // Wilkinson's W+: pairs of eigenvalues that are equal to the last bits.
        (
            "Wilkinson",
            Array2::from_shape_fn((order + 1, order + 1), |(i, j)| match i.abs_diff(j) {
                0 => i.abs_diff(order / 2) as f64,
                1 => 1.0,
                _ => 0.0,
            }),
        ),
        // The worst case of partial pivoting: the last column doubles with each step.
        (
            "growth",
            Array2::from_shape_fn((30, 30), |(i, j)| match i.cmp(&j) {
                std::cmp::Ordering::Less if j < 29 => 0.0,
                std::cmp::Ordering::Greater => -1.0,
                _ => 1.0,
            }),
        ),
    ]
}

/// What is wrong with array "a".
fn fault(found: Result<(), Error>) -> MatrixError {
    match found {
        Err(Error::Matrix { source, array, .. }) if array == "a" => source,
        other => panic!("{other:?}"),
    }
}

/// An error with all of these words.
fn says(found: Result<(), Error>, words: &[&str]) {
    let said = found.expect_err("a refusal").to_string();
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

/// Array "a", of order 5.
fn small(job: &Job, f: impl Fn(usize, usize) -> f64) -> Result<GlobalArray2<f64>, Error> {
    let a = GlobalArray2::builder(job, [5, 5]).block_cyclic([2, 2]).zeros().name("a").create()?;
    if job.rank() == 0 {
        a.put(.., &Array2::from_shape_fn((5, 5), |(i, j)| f(i, j)))?;
    }
    job.sync()?;
    Ok(a)
}

fn unit(i: usize, j: usize) -> f64 {
    f64::from(u8::from(i == j))
}

fn with_nan(i: usize, j: usize) -> f64 {
    if (i, j) == (3, 1) { f64::NAN } else { 1.0 }
}

fn askew(i: usize, j: usize) -> f64 {
    if (i, j) == (1, 4) { 2.0 } else { 1.0 }
}

fn singular(i: usize, j: usize) -> f64 {
    if i == 2 { 0.0 } else { unit(i, j) }
}
