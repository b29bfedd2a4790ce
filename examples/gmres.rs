//! GMRES with restarts: convection and diffusion, −u″ + 50 u′ = f on (0, 1) with u = 0 at both ends, by upwind differences, whose matrix is
//! not symmetric. (Y. Saad, M. H. Schultz, *GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems*,
//! SIAM J. Sci. Stat. Comput. 7, 1986.)

use global_arrays::prelude::*;

const N: usize = 100;
const SPEED: f64 = 50.0;
/// Vectors between two restarts.
const RESTART: usize = 30;
const TOLERANCE: f64 = 1e-10;

/// The entries of a row, times h².
fn row_of(i: usize) -> impl Iterator<Item = (usize, usize, f64)> {
    let flow = SPEED / (N + 1) as f64;
    let row = [(i > 0, i.wrapping_sub(1), -1.0 - flow), (true, i, 2.0 + flow), (i + 1 < N, i + 1, -1.0)];
    row.into_iter().filter(|&(is_inside, ..)| is_inside).map(move |(_, column, value)| (i, column, value))
}

/// Solves A x = b from what x is; returns how many products that took.
fn solve(a: &SparseMatrix<f64>, b: &GlobalArray1<f64>, x: &mut GlobalArray1<f64>) -> Result<usize, Error> {
    let goal = TOLERANCE * b.norm_frobenius()?;
    let mut basis = (0..=RESTART).map(|k| b.duplicate(&format!("v{k}"))).collect::<Result<Vec<_>, _>>()?;
    let mut products = 0;
    while products < 100 * RESTART {
        a.matvec(x, &mut basis[0])?;
        basis[0].axpby(1.0, b, -1.0)?;
        let norm = basis[0].norm_frobenius()?;
        if norm <= goal {
            return Ok(products);
        }
        basis[0].scale(1.0 / norm)?;
        // The Hessenberg matrix is made triangular by rotations as it grows; g is the right side, its last element the residual.
        let (mut h, mut rotations) = (Array2::<f64>::zeros((RESTART + 1, RESTART)), Vec::new());
        let mut g = vec![norm];
        while g[rotations.len()].abs() > goal && rotations.len() < RESTART {
            let k = rotations.len();
            let (known, next) = basis.split_at_mut(k + 1);
            a.matvec(&known[k], &mut next[0])?;
            products += 1;
            for (j, v) in known.iter().enumerate() {
                h[[j, k]] = next[0].dot(v)?;
                next[0].scaled_add(-h[[j, k]], v)?;
            }
            let norm = next[0].norm_frobenius()?;
            if norm > 0.0 {
                next[0].scale(1.0 / norm)?;
            }
            for (j, &(c, s)) in rotations.iter().enumerate() {
                let (upper, lower): (f64, f64) = (h[[j, k]], h[[j + 1, k]]);
                (h[[j, k]], h[[j + 1, k]]) = (c * upper + s * lower, c * lower - s * upper);
            }
            let length = h[[k, k]].hypot(norm);
            let (c, s) = (h[[k, k]] / length, norm / length);
            h[[k, k]] = length;
            rotations.push((c, s));
            g.push(-s * g[k]);
            g[k] *= c;
        }
        // Back substitution.
        for k in (0..rotations.len()).rev() {
            g[k] /= h[[k, k]];
            for j in 0..k {
                g[j] -= h[[j, k]] * g[k];
            }
            x.scaled_add(g[k], &basis[k])?;
        }
    }
    Err(Error::other(format!("no convergence after {products} products")))
}

fn main() -> Result<(), Error> {
    run(|job| {
        let own = (0..N).skip(job.rank()).step_by(job.size());
        let a = SparseMatrix::from_triplets(job, [N, N], own.flat_map(row_of))?;
        let exact = GlobalArray1::<f64>::from_fn(job, [N], |i| (0.05 * i as f64).sin() + i as f64 / N as f64)?;
        let (mut b, mut x) = (exact.duplicate("b")?, exact.duplicate("x")?);
        a.matvec(&exact, &mut b)?;
        x.zero()?;
        let products = solve(&a, &b, &mut x)?;

        let mut residual = b.duplicate("residual")?;
        a.matvec(&x, &mut residual)?;
        residual.axpby(1.0, &b, -1.0)?;
        let relative = residual.norm_frobenius()? / b.norm_frobenius()?;
        x.scaled_add(-1.0, &exact)?;
        let error = x.max_abs()?;
        if job.rank() == 0 {
            println!("{products} iterations, relative residual {relative:.1e}, largest error {error:.1e}");
        }
        let is_right = relative < 2.0 * TOLERANCE && error < 1e-6;
        if is_right { Ok(()) } else { Err(Error::other(format!("residual {relative:e}, error {error:e}"))) }
    })
}
