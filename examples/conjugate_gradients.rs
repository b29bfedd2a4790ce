//! Conjugate gradients: Poisson's equation on the unit square, −Δu = 2x(1 − x) + 2y(1 − y) with u = 0 on the boundary, whose solution is
//! x(1 − x) y(1 − y), which five-point differences have without an error. (M. R. Hestenes, E. Stiefel, *Methods of conjugate gradients for solving linear systems*, J. Research NBS 49, 1952.)
//!
//! The matrix is that of five-point differences; each rank gives the rows that it owns.

use global_arrays::prelude::*;

/// Points inside, along each side.
const N: usize = 100;
const H: f64 = 1.0 / (N + 1) as f64;
const TOLERANCE: f64 = 1e-10;

/// The entries of the row of a point, times h².
fn row_of(point: usize) -> impl Iterator<Item = (usize, usize, f64)> {
    let (i, j) = (point / N, point % N);
    let neighbors =
        [(i > 0, point.wrapping_sub(N)), (j > 0, point.wrapping_sub(1)), (j + 1 < N, point + 1), (i + 1 < N, point + N)];
    let inside = neighbors.into_iter().filter(|&(is_inside, _)| is_inside).map(move |(_, other)| (point, other, -1.0));
    inside.chain([(point, point, 4.0)])
}

/// x(1 − x) and y(1 − y) at a point.
fn arcs(point: usize) -> [f64; 2] {
    [point / N, point % N].map(|k| (k + 1) as f64 * H * (1.0 - (k + 1) as f64 * H))
}

/// Solves A x = b from x = 0 on; returns how many iterations that took.
fn solve(a: &SparseMatrix<f64>, b: &GlobalArray1<f64>, x: &mut GlobalArray1<f64>) -> Result<usize, Error> {
    let (mut r, mut p, mut q) = (b.duplicate("r")?, b.duplicate("p")?, b.duplicate("q")?);
    x.zero()?;
    r.assign(b)?;
    p.assign(b)?;
    let mut rho = r.dot(&r)?;
    let goal = TOLERANCE * TOLERANCE * rho;
    for iteration in 1..=10 * N {
        a.matvec(&p, &mut q)?;
        let alpha = rho / p.dot(&q)?;
        x.scaled_add(alpha, &p)?;
        r.scaled_add(-alpha, &q)?;
        let before = std::mem::replace(&mut rho, r.dot(&r)?);
        if rho <= goal {
            return Ok(iteration);
        }
        p.axpby(1.0, &r, rho / before)?;
    }
    Err(Error::other(format!("no convergence: the residual is {:e}", rho.sqrt())))
}

fn main() -> Result<(), Error> {
    run(|job| {
        let n = N * N;
        let b = GlobalArray1::<f64>::from_fn(job, [n], |point| 2.0 * H * H * arcs(point).iter().sum::<f64>())?;
        let own = b.own_blocks().flat_map(|block| block.patch.range(0));
        let a = SparseMatrix::from_triplets(job, [n, n], own.flat_map(row_of))?;
        let (mut x, mut residual) = (b.duplicate("x")?, b.duplicate("residual")?);
        let iterations = solve(&a, &b, &mut x)?;

        a.matvec(&x, &mut residual)?;
        residual.axpby(1.0, &b, -1.0)?;
        let relative = residual.norm_frobenius()? / b.norm_frobenius()?;
        let mut error = GlobalArray1::<f64>::from_fn(job, [n], |point| arcs(point).iter().product())?;
        error.scaled_add(-1.0, &x)?;
        let error = error.max_abs()?;
        if job.rank() == 0 {
            println!("{iterations} iterations, relative residual {relative:.1e}, largest error {error:.1e}");
        }
        let is_right = relative < 2.0 * TOLERANCE && error < 1e-9;
        if is_right { Ok(()) } else { Err(Error::other(format!("residual {relative:e}, error {error:e}"))) }
    })
}
