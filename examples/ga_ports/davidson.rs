//! Davidson's method: the lowest eigenvalues of a large sparse symmetric matrix, whose diagonal says most about its eigenvectors.
//!
//! The matrix is the Hamiltonian of a ring of spins in a transverse field h, H = -Σ σˣ σˣ - h Σ σᶻ, in the basis of the 2ⁿ states in which
//! every spin is up or down. The number of a row is a state: its bits are the spins. The field is on the diagonal. Each pair of neighbors
//! makes an element in the row, where the state is that has both turned over. The exact eigenvalues are known.
//!
//! # Source
//! E. R. Davidson, *The iterative calculation of a few of the lowest eigenvalues and corresponding eigenvectors of large real-symmetric
//! matrices*, J. Comput. Phys. 17, 1975. The eigenvalues: P. Pfeuty, *The one-dimensional Ising model with a transverse field*,
//! Ann. Phys. 57, 1970.

mod jacobi;

use std::f64::consts::PI;
use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;
use program::command_line::{self, Start};
use serde_json::json;

/// How many eigenvalues are computed.
const STATES: usize = 2;
/// Vectors of the basis, at most, before it starts again from the best approximations.
const LARGEST_BASIS: usize = 12;
const ITERATIONS: usize = 200;
/// The norm of a residual at the end.
const TOLERANCE: f64 = 1e-8;
/// In place of differences between the diagonal and an eigenvalue that are smaller.
const LEAST_DIVISOR: f64 = 1e-3;

/// Computes the two lowest energies of a ring of spins in a transverse field by Davidson's method, and compares them with the exact ones.
#[derive(Debug, Clone, Parser)]
#[command(name = "davidson")]
struct Arguments {
    #[command(flatten)]
    start: Start,
    /// Spins in the ring; the matrix has two to this power rows
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=30))]
    spins: u32,
    /// The field, in units of the coupling
    #[arg(long, default_value_t = 1.5)]
    field: f64,
}

impl Arguments {
    /// An element of the diagonal.
    fn diagonal(&self, state: usize) -> f64 {
        -self.field * (f64::from(self.spins) - 2.0 * f64::from(state.count_ones()))
    }

    /// The elements of a row.
    fn row(&self, state: usize) -> impl Iterator<Item = (usize, usize, f64)> {
        let turned = (0..self.spins).map(move |i| (state, state ^ (1 << i) ^ (1 << ((i + 1) % self.spins)), -1.0));
        turned.chain([(state, state, self.diagonal(state))])
    }

    /// The lowest energies with an even and with an odd number of spins against the field.
    fn exact(&self) -> [f64; STATES] {
        let (n, h) = (f64::from(self.spins), self.field);
        let half = |k: f64| (1.0 + h * h - 2.0 * h * k.cos()).sqrt();
        let even: f64 = (0..self.spins).map(|j| half(PI * (2.0 * f64::from(j) + 1.0) / n)).sum();
        let odd: f64 = (1..self.spins).map(|j| half(2.0 * PI * f64::from(j) / n)).sum();
        [-even, h - 1.0 - odd]
    }
}

/// Makes a vector orthogonal to those of an orthonormal basis, and 1 long. Returns false if nothing is left of it.
fn orthonormalize(vector: &mut GlobalArray1<f64>, basis: &[GlobalArray1<f64>]) -> Result<bool, Error> {
    let before = vector.norm_frobenius()?;
    // What rounding has left after the first time is gone after the second.
    for v in basis.iter().chain(basis) {
        let along = vector.dot(v)?;
        vector.scaled_add(-along, v)?;
    }
    let norm = vector.norm_frobenius()?;
    let is_new = norm > 1e-10 * before;
    vector.scale(if is_new { 1.0 / norm } else { 0.0 })?;
    Ok(is_new)
}

/// `Σ vectors[k] coefficients[k]`.
fn combination<'c>(
    vectors: &[GlobalArray1<f64>],
    coefficients: impl IntoIterator<Item = &'c f64>,
) -> Result<GlobalArray1<f64>, Error> {
    let mut sum = vectors[0].duplicate("combination")?;
    sum.zero()?;
    vectors.iter().zip(coefficients).try_for_each(|(v, &c)| sum.scaled_add(c, v))?;
    Ok(sum)
}

/// The lowest eigenvalues, and the number of iterations, from approximate eigenvectors on. Collective.
fn davidson(
    a: &SparseMatrix<f64>,
    diagonal: &GlobalArray1<f64>,
    mut guesses: Vec<GlobalArray1<f64>>,
) -> Result<(Vec<f64>, usize), Error> {
    let (mut basis, mut products, mut projected) = (Vec::new(), Vec::new(), Array2::<f64>::zeros((LARGEST_BASIS, LARGEST_BASIS)));
    for iteration in 1..=ITERATIONS {
        for mut vector in guesses.drain(..) {
            if orthonormalize(&mut vector, &basis)? {
                let mut product = vector.duplicate("product")?;
                a.matvec(&vector, &mut product)?;
                basis.push(vector);
                products.push(product);
                let last = basis.len() - 1;
                for (k, v) in basis.iter().enumerate() {
                    projected[[k, last]] = v.dot(&products[last])?;
                    projected[[last, k]] = projected[[k, last]];
                }
            }
        }
        let (values, vectors) = jacobi::eigh(projected.slice(s![..basis.len(), ..basis.len()]).to_owned());
        let starts_again = basis.len() + STATES > LARGEST_BASIS;
        let mut is_converged = true;
        for (&value, coefficients) in values.iter().zip(vectors.columns()).take(STATES) {
            let mut residual = combination(&products, coefficients)?;
            let vector = combination(&basis, coefficients)?;
            residual.scaled_add(-value, &vector)?;
            if starts_again {
                guesses.push(vector);
            }
            if residual.norm_frobenius()? > TOLERANCE {
                is_converged = false;
                // The inverse of the diagonal stands for that of the matrix.
                residual
                    .zip_with(diagonal, |r, d| r / if (d - value).abs() < LEAST_DIVISOR { LEAST_DIVISOR } else { d - value })?;
                guesses.push(residual);
            }
        }
        if is_converged {
            return Ok((values[..STATES].to_vec(), iteration));
        }
        if starts_again {
            basis.clear();
            products.clear();
        }
    }
    Err(Error::other(format!("{ITERATIONS} iterations are not enough")))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("davidson", || arguments.start.launch().run(|job| rank_main(job, &arguments)))
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments) -> Result<(), Error> {
    arguments.start.needs_computing(job, "davidson", true).map_err(Error::other)?;
    let n = 1_usize << arguments.spins;
    let diagonal = GlobalArray1::<f64>::from_fn(job, [n], |state| arguments.diagonal(state))?;
    let own = diagonal.own_blocks().flat_map(|block| block.patch.range(0));
    let a = SparseMatrix::from_triplets(job, [n, n], own.flat_map(|state| arguments.row(state)))?;
    // The state in which all spins follow the field, and one in which a single one does not: no element connects even and odd numbers.
    let unit = |k| GlobalArray1::<f64>::from_fn(job, [n], |state| if state == k { 1.0 } else { 0.0 });
    let (values, iterations) = davidson(&a, &diagonal, (0..STATES).map(unit).collect::<Result<_, _>>()?)?;

    let exact = arguments.exact();
    let error = values.iter().zip(exact).map(|(value, exact)| (value - exact).abs()).fold(0.0, f64::max);
    let passed = error < 1e-10 * exact[0].abs();
    let people =
        format!("{n} rows, {} elements: {values:.10?} after {iterations} iterations, largest error {error:.1e}", a.nnz());
    arguments.start.report(
        job,
        people,
        &json!({ "values": values, "iterations": iterations, "error": error, "passed": passed }),
    )?;
    if passed { Ok(()) } else { Err(Error::other(format!("the exact eigenvalues are {exact:?}"))) }
}
