//! Restricted Hartree-Fock calculations of chains of hydrogen atoms, in the basis STO-3G.
//!
//! The matrices are global arrays. Tasks from a shared counter compute blocks of two-electron integrals and add their part of the
//! Fock matrix to it. Rank 0 finds eigenvalues and eigenvectors.

use std::f64::consts::PI;

use global_arrays::prelude::*;

/// Exponents and coefficients of the Gaussians that make up the function of a hydrogen atom.
const STO_3G: [(f64, f64); 3] = [(3.42525091, 0.15432897), (0.62391373, 0.53532814), (0.16885540, 0.44463454)];

/// Functions along each of the four edges of a task's block of integrals.
const BLOCK: usize = 3;

/// Weight of the old density in the next one.
const DAMPING: f64 = 0.3;
const TOLERANCE: f64 = 1e-9;
const ITERATIONS: usize = 100;

/// Sweeps of Jacobi's method at most.
const SWEEPS: usize = 50;

/// The product of two Gaussians, which is a Gaussian on the line between them.
struct Product {
    exponent: f64,
    center: f64,
    factor: f64,
    /// The matrix element of the kinetic energy, divided by the overlap.
    kinetic: f64,
}

/// The product of the functions of two atoms.
type Pair = [Product; 9];

fn pair(a: f64, b: f64) -> Pair {
    let norm = |exponent: f64| (2.0 * exponent / PI).powf(0.75);
    std::array::from_fn(|k| {
        let ((alpha, c), (beta, d)) = (STO_3G[k / 3], STO_3G[k % 3]);
        let exponent = alpha + beta;
        let reduced = alpha * beta / exponent;
        let decay = reduced * (a - b).powi(2);
        Product {
            exponent,
            center: (alpha * a + beta * b) / exponent,
            factor: c * d * norm(alpha) * norm(beta) * (-decay).exp(),
            kinetic: reduced * (3.0 - 2.0 * decay),
        }
    })
}

/// The integral of exp(-t x²) from 0 to 1. The standard library has no error function, so this is a series.
fn boys(t: f64) -> f64 {
    if t > 35.0 {
        return 0.5 * (PI / t).sqrt();
    }
    let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
    while term > 1e-16 * sum {
        k += 2.0;
        term *= 2.0 * t / k;
        sum += term;
    }
    (-t).exp() * sum
}

fn overlap(pair: &Pair) -> f64 {
    pair.iter().map(|g| g.factor * (PI / g.exponent).powf(1.5)).sum()
}

/// The kinetic energy of an electron, and its attraction to the nuclei.
fn core(pair: &Pair, nuclei: &[f64]) -> f64 {
    let attraction = |g: &Product| nuclei.iter().map(|c| boys(g.exponent * (g.center - c).powi(2))).sum::<f64>();
    let energy = |g: &Product| g.kinetic * (PI / g.exponent).powf(1.5) - 2.0 * PI / g.exponent * attraction(g);
    pair.iter().map(|g| g.factor * energy(g)).sum()
}

/// The repulsion of two electrons, (ij|kl).
fn repulsion(ij: &Pair, kl: &Pair) -> f64 {
    let mut sum = 0.0;
    for g in ij {
        for h in kl {
            let (p, q) = (g.exponent, h.exponent);
            let integral = boys(p * q / (p + q) * (g.center - h.center).powi(2)) / (p * q * (p + q).sqrt());
            sum += g.factor * h.factor * integral;
        }
    }
    2.0 * PI.powf(2.5) * sum
}

/// Adds the repulsion to the Fock matrix: F[i, j] += Σ D[k, l] ((ij|kl) - ½ (ik|jl)).
fn add_repulsion(
    pairs: &Array2<Pair>,
    density: &GlobalArray2<f64>,
    fock: &GlobalArray2<f64>,
    tasks: &Counter,
) -> Result<(), Error> {
    let n = pairs.nrows();
    let blocks = n.div_ceil(BLOCK);
    let range = |block: usize| block * BLOCK..n.min((block + 1) * BLOCK);
    for task in tasks.below(blocks.pow(4)) {
        let task = task?;
        let (i, j) = (range(task / blocks.pow(3)), range(task / blocks.pow(2) % blocks));
        let (k, l) = (range(task / blocks % blocks), range(task % blocks));
        let d_kl = density.get(s![k.clone(), l.clone()])?;
        let d_jl = density.get(s![j.clone(), l.clone()])?;
        let mut f_ij = Array2::zeros((i.len(), j.len()));
        let mut f_ik = Array2::zeros((i.len(), k.len()));
        for ((a, b), ij) in pairs.slice(s![i.clone(), j.clone()]).indexed_iter() {
            for ((c, d), kl) in pairs.slice(s![k.clone(), l.clone()]).indexed_iter() {
                let integral = repulsion(ij, kl);
                f_ij[[a, b]] += d_kl[[c, d]] * integral;
                f_ik[[a, c]] -= 0.5 * d_jl[[b, d]] * integral;
            }
        }
        fock.accumulate(s![i.clone(), j], 1.0, &f_ij)?;
        fock.accumulate(s![i, k], 1.0, &f_ik)?;
    }
    Ok(())
}

/// Eigenvalues of a symmetric matrix in ascending order, and eigenvectors as columns, by Jacobi's method.
fn jacobi(mut a: Array2<f64>) -> (Vec<f64>, Array2<f64>) {
    let rotate = |(x, y): (ArrayViewMut1<f64>, ArrayViewMut1<f64>), cos: f64, sin: f64| {
        for (x, y) in x.into_iter().zip(y) {
            (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
        }
    };
    let n = a.nrows();
    let mut vectors = Array2::eye(n);
    for _sweep in 0..SWEEPS {
        let off_diagonal: f64 = a.indexed_iter().filter(|((i, j), _)| i != j).map(|(_, x)| x * x).sum();
        if off_diagonal < 1e-24 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[[p, q]] != 0.0 {
                    let cot = (a[[q, q]] - a[[p, p]]) / (2.0 * a[[p, q]]);
                    let tan = cot.signum() / (cot.abs() + cot.hypot(1.0));
                    let cos = 1.0 / tan.hypot(1.0);
                    rotate(a.multi_slice_mut((s![.., p], s![.., q])), cos, tan * cos);
                    rotate(a.multi_slice_mut((s![p, ..], s![q, ..])), cos, tan * cos);
                    rotate(vectors.multi_slice_mut((s![.., p], s![.., q])), cos, tan * cos);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[[i, i]].total_cmp(&a[[j, j]]));
    (order.iter().map(|&i| a[[i, i]]).collect(), vectors.select(Axis(1), &order))
}

/// Eigenvalues of a symmetric matrix, and eigenvectors as columns of another. Rank 0 does the work. Collective.
fn diagonalize(job: &Job, matrix: &GlobalArray2<f64>, vectors: &GlobalArray2<f64>) -> Result<Vec<f64>, Error> {
    let values = job.from_member(0, || {
        let (values, columns) = jacobi(matrix.get(..)?);
        vectors.put(.., &columns).map(|()| values)
    })?;
    job.sync().map(|()| values)
}

/// The energy of a chain with nuclei at these places, and the number of iterations. Collective.
fn hartree_fock(job: &Job, nuclei: &[f64]) -> Result<(f64, usize), Error> {
    let n = nuclei.len();
    let occupied = n / 2;
    let pairs = Array2::from_shape_fn((n, n), |(i, j)| pair(nuclei[i], nuclei[j]));
    let between = (0..n).flat_map(|i| (0..i).map(move |j| 1.0 / (nuclei[i] - nuclei[j]).abs())).sum::<f64>();

    let s = GlobalArray2::from_fn(job, [n, n], |ij| overlap(&pairs[ij]))?;
    let h = GlobalArray2::from_fn(job, [n, n], |ij| core(&pairs[ij], nuclei))?;
    let matrix = || GlobalArray2::<f64>::zeros(job, [n, n]);
    let (mut fock, mut density, mut next, mut x) = (matrix()?, matrix()?, matrix()?, matrix()?);
    let (mut orbitals, vectors, mut work, mut transformed) = (matrix()?, matrix()?, matrix()?, matrix()?);
    let tasks = Counter::new(job)?;

    let eigenvalues = diagonalize(job, &s, &vectors)?;
    let factors: Vec<f64> = eigenvalues.iter().map(|value| 1.0 / value.sqrt()).collect();
    work.assign(&vectors)?;
    work.scale_cols(&factors)?;
    x.matmul(1.0, &work, vectors.t(), 0.0)?;

    for iteration in 1..=ITERATIONS {
        fock.assign(&h)?;
        tasks.reset(0)?;
        add_repulsion(&pairs, &density, &fock, &tasks)?;
        job.sync()?;
        let energy = 0.5 * (density.dot(&h)? + density.dot(&fock)?) + between;

        work.matmul(1.0, &fock, &x, 0.0)?;
        transformed.matmul(1.0, &x, &work, 0.0)?;
        diagonalize(job, &transformed, &vectors)?;
        orbitals.matmul(1.0, &x, &vectors, 0.0)?;
        next.matmul(2.0, orbitals.at(s![.., ..occupied]), orbitals.at(s![.., ..occupied]).t(), 0.0)?;

        work.assign_sum(1.0, &next, -1.0, &density)?;
        if work.max_abs()? < TOLERANCE {
            return Ok((energy, iteration));
        }
        let damping = if iteration == 1 { 0.0 } else { DAMPING }; // the first density is zero
        density.axpby(1.0 - damping, &next, damping)?;
    }
    Err(Error::other(format!("{ITERATIONS} iterations are not enough for {n} atoms")))
}

fn main() -> Result<(), Error> {
    run(|job| {
        for (atoms, distance) in [(2, 1.4), (10, 1.8)] {
            let nuclei: Vec<f64> = (0..atoms).map(|i| i as f64 * distance).collect();
            let (energy, iterations) = hartree_fock(job, &nuclei)?;
            if job.rank() == 0 {
                println!("H{atoms} at {distance} bohr: {energy:.10} hartree after {iterations} iterations");
            }
            // The energy of the molecule H2 in Szabo and Ostlund, Modern Quantum Chemistry.
            if atoms == 2 && !(-1.1168..-1.1166).contains(&energy) {
                return Err(Error::other(format!("the energy of H2 is {energy}, and not -1.1167")));
            }
        }
        Ok(())
    })
}
