//! A restricted Hartree-Fock calculation of beryllium atoms, each with 15 Gaussians.
//!
//! The matrices are global arrays. Tasks from a shared counter compute blocks of two-electron integrals, an atom for each of the four
//! indices, and add their part of the Fock matrix to it. No integral is kept. Rank 0 finds eigenvalues and eigenvectors.
//!
//! The calculation starts from the densities of single atoms, each the result of a calculation of its own.
//!
//! # Source
//! The atoms, the Gaussians, the screening, the level shift and the criterion of convergence are those of the example `scf` of Global Arrays. The
//! integrals are in S. F. Boys, *Electronic wave functions. I*, Proc. R. Soc. A 200, 1950; the level shift is V. R. Saunders, I. H. Hillier, *A
//! "level-shifting" method*, Int. J. Quantum Chem. 7, 1973.

mod jacobi;

use std::f64::consts::PI;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;
use program::command_line::{self, Start};
use serde_json::json;

/// Charge of a nucleus, electron pairs of an atom.
const CHARGE: f64 = 4.0;
const PAIRS: usize = 2;

/// Exponents of the Gaussians on a nucleus, and of those beside it, which together take the place of functions p.
const INNER: [f64; 9] = [1741.0, 262.1, 60.33, 17.62, 5.933, 2.185, 0.859, 0.1806, 0.05835];
const OUTER: f64 = 0.3;
/// Distance of the latter from the nucleus, in bohr.
const OFFSET: f64 = 1.6;
const FUNCTIONS: usize = INNER.len() + 6;

/// An integral is left out if Schwarz's inequality says that it is smaller.
const SMALLEST_INTEGRAL: f64 = 1e-6;

/// What is added to the energies of empty orbitals, in hartree, while an element between two orbitals is larger.
const SHIFT: f64 = 0.3;

/// The largest change of an element of the density at the end, of atoms and of the molecule.
const TOLERANCE_ATOM: f64 = 1e-8;
const TOLERANCE: f64 = 0.5e-3;
const ITERATIONS: usize = 50;

/// A row of four atoms, and what Global Arrays 5.8.2 prints for it.
const ROW: &str = include_str!("data/be.inpt");
const ROW_ENERGY: f64 = -58.20051070842;
const ROW_ITERATIONS: usize = 11;

/// Computes the Hartree-Fock energy of beryllium atoms; for the row of four atoms, compares it with that by Global Arrays.
#[derive(Debug, Clone, Parser)]
#[command(name = "scf")]
struct Arguments {
    #[command(flatten)]
    start: Start,
    /// Places of the atoms in bohr, as in data/be.inpt; by default the row of four atoms in that file
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
}

type Point = [f64; 3];

fn distance_squared(a: Point, b: Point) -> f64 {
    a.into_iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The product of two Gaussians, which is a Gaussian between them.
struct Product {
    exponent: f64,
    center: Point,
    factor: f64,
    /// The matrix element of the kinetic energy, divided by the overlap.
    kinetic: f64,
    /// The root of (ij|ij): no (ij|kl) is larger than the product of two bounds. Zero if none with this product matters.
    bound: f64,
}

impl Product {
    fn new((alpha, a): (f64, Point), (beta, b): (f64, Point)) -> Self {
        let norm = |exponent: f64| (2.0 * exponent / PI).powf(0.75);
        let exponent = alpha + beta;
        let reduced = alpha * beta / exponent;
        let decay = reduced * distance_squared(a, b);
        let center = std::array::from_fn(|k| (alpha * a[k] + beta * b[k]) / exponent);
        let (factor, kinetic) = (norm(alpha) * norm(beta) * (-decay).exp(), reduced * (3.0 - 2.0 * decay));
        let product = Product { exponent, center, factor, kinetic, bound: 0.0 };
        Product { bound: repulsion(&product, &product).sqrt(), ..product }
    }

    fn overlap(&self) -> f64 {
        self.factor * (PI / self.exponent).powf(1.5)
    }

    /// The kinetic energy of an electron, and its attraction to the nuclei.
    fn core(&self, nuclei: &[Point]) -> f64 {
        let attraction = nuclei.iter().map(|&c| CHARGE * boys(self.exponent * distance_squared(self.center, c))).sum::<f64>();
        self.kinetic * self.overlap() - self.factor * 2.0 * PI / self.exponent * attraction
    }
}

/// The integral of exp(-t x²) from 0 to 1. The standard library has no error function, so this is a series.
fn boys(t: f64) -> f64 {
    if t > 30.0 {
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

/// The repulsion of two electrons, (ij|kl).
fn repulsion(ij: &Product, kl: &Product) -> f64 {
    let (p, q) = (ij.exponent, kl.exponent);
    let t = p * q / (p + q) * distance_squared(ij.center, kl.center);
    2.0 * PI.powf(2.5) / (p * q * (p + q).sqrt()) * ij.factor * kl.factor * boys(t)
}

/// Adds the repulsion to the Fock matrix: F[i, j] += Σ D[k, l] ((ij|kl) - ½ (ik|jl)).
fn add_repulsion(
    products: &Array2<Product>,
    density: &GlobalArray2<f64>,
    fock: &GlobalArray2<f64>,
    tasks: &Counter,
) -> Result<(), Error> {
    let atoms = products.nrows() / FUNCTIONS;
    let of = |atom: usize| atom * FUNCTIONS..(atom + 1) * FUNCTIONS;
    for task in tasks.below(atoms.pow(4)) {
        let task = task?;
        let [i, j, k, l] = [3, 2, 1, 0].map(|digit| of(task / atoms.pow(digit) % atoms));
        let d_kl = density.get(s![k.clone(), l.clone()])?;
        let d_jl = density.get(s![j.clone(), l.clone()])?;
        let (mut f_ij, mut f_ik) = (Array2::zeros((FUNCTIONS, FUNCTIONS)), Array2::zeros((FUNCTIONS, FUNCTIONS)));
        let all_kl = products.slice(s![k.clone(), l]);
        for ((a, b), ij) in products.slice(s![i.clone(), j.clone()]).indexed_iter().filter(|(_, ij)| ij.bound > 0.0) {
            for ((c, d), kl) in all_kl.indexed_iter().filter(|(_, kl)| ij.bound * kl.bound >= SMALLEST_INTEGRAL) {
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

/// Eigenvalues of a symmetric matrix, and eigenvectors as columns of another. Rank 0 does the work. Collective.
fn diagonalize(job: &Job, matrix: &GlobalArray2<f64>, vectors: &GlobalArray2<f64>) -> Result<Vec<f64>, Error> {
    let values = job.from_member(0, || {
        let (values, columns) = jacobi::eigh(matrix.get(..)?);
        vectors.put(.., &columns).map(|()| values)
    })?;
    job.sync().map(|()| values)
}

/// The result of a calculation.
struct Converged {
    energy: f64,
    iterations: usize,
    density: GlobalArray2<f64>,
}

/// Iterates from this density on until no element of it changes by more than `tolerance`. Collective.
fn hartree_fock(job: &Job, nuclei: &[Point], guess: impl Fn((usize, usize)) -> f64, tolerance: f64) -> Result<Converged, Error> {
    let (n, occupied) = (nuclei.len() * FUNCTIONS, nuclei.len() * PAIRS);
    let gaussians: Vec<(f64, Point)> = nuclei.iter().flat_map(|&nucleus| gaussians(nucleus)).collect();
    let mut products = Array2::from_shape_fn((n, n), |(i, j)| Product::new(gaussians[i], gaussians[j]));
    let largest = products.iter().map(|product| product.bound).fold(0.0, f64::max);
    products.iter_mut().filter(|product| product.bound * largest < SMALLEST_INTEGRAL).for_each(|product| product.bound = 0.0);
    let pairs = nuclei.iter().enumerate().flat_map(|(k, &a)| nuclei[..k].iter().map(move |&b| distance_squared(a, b)));
    let between: f64 = pairs.map(|squared| CHARGE * CHARGE / squared.sqrt()).sum();

    let s = GlobalArray2::from_fn(job, [n, n], |ij| products[ij].overlap())?;
    let h = GlobalArray2::from_fn(job, [n, n], |ij| if products[ij].bound == 0.0 { 0.0 } else { products[ij].core(nuclei) })?;
    let mut density = GlobalArray2::from_fn(job, [n, n], guess)?;
    let matrix = || GlobalArray2::<f64>::zeros(job, [n, n]);
    let (mut fock, mut orbitals, mut next, mut work, vectors) = (matrix()?, matrix()?, matrix()?, matrix()?, matrix()?);
    let tasks = Counter::new(job)?;

    // The first orbitals only have to be orthonormal.
    let factors: Vec<f64> = diagonalize(job, &s, &vectors)?.iter().map(|value| 1.0 / value.sqrt()).collect();
    orbitals.assign(&vectors)?;
    orbitals.scale_cols(&factors)?;
    for iteration in 1..=ITERATIONS {
        fock.assign(&h)?;
        tasks.reset(0)?;
        add_repulsion(&products, &density, &fock, &tasks)?;
        job.sync()?;
        let energy = 0.5 * (density.dot(&h)? + density.dot(&fock)?) + between;

        // Between the orbitals of the last iteration, the Fock matrix is nearly diagonal.
        work.matmul(1.0, &fock, &orbitals, 0.0)?;
        next.matmul(1.0, orbitals.t(), &work, 0.0)?;
        let between_orbitals = next.map_reduce_indexed(0.0, |(i, j), f| if i == j { 0.0 } else { f.abs() }, f64::max)?;
        if iteration > 1 && between_orbitals > SHIFT {
            let shifts: Vec<f64> = (0..n).map(|i| if i < occupied { 0.0 } else { SHIFT }).collect();
            next.add_diagonal(&shifts)?;
        }
        diagonalize(job, &next, &vectors)?;
        work.assign(&orbitals)?;
        orbitals.matmul(1.0, &work, &vectors, 0.0)?;

        let filled = || orbitals.at(s![.., ..occupied]);
        next.matmul(2.0, filled(), filled().t(), 0.0)?;
        density.axpby(-1.0, &next, 1.0)?;
        let change = density.max_abs()?;
        density.assign(&next)?;
        if change < tolerance {
            return Ok(Converged { energy, iterations: iteration, density });
        }
    }
    Err(Error::other(format!("{ITERATIONS} iterations are not enough for {} atoms", nuclei.len())))
}

/// The Gaussians of an atom.
fn gaussians(nucleus: Point) -> impl Iterator<Item = (f64, Point)> {
    let beside = (0..6).map(move |k| {
        let mut center = nucleus;
        center[k / 2] += if k % 2 == 0 { OFFSET } else { -OFFSET };
        (OUTER, center)
    });
    INNER.into_iter().map(move |exponent| (exponent, nucleus)).chain(beside)
}

/// The places of the atoms in a file of the format XYZ, whose elements are ignored as by Global Arrays.
fn places(text: &str) -> Result<Vec<Point>, String> {
    let mut lines = text.lines();
    let count: usize = lines.next().and_then(|line| line.trim().parse().ok()).ok_or("line 1 is not the number of atoms")?;
    let place = |line: &str| {
        let numbers: Vec<f64> = line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
        <Point>::try_from(numbers).map_err(|_| format!("{line:?} is not an element and three coordinates"))
    };
    let places: Vec<Point> = lines.skip(1).take(count).map(place).collect::<Result<_, _>>()?;
    let is_whole = count > 0 && places.len() == count;
    if is_whole { Ok(places) } else { Err(format!("line 1 says {count} atoms, and there are {}", places.len())) }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("scf", || {
        let nuclei = match &arguments.input {
            None => places(ROW),
            Some(file) => fs::read_to_string(file)
                .map_err(|error| error.to_string())
                .and_then(|text| places(&text))
                .map_err(|what| format!("{}: {what}", file.display())),
        };
        let nuclei = nuclei.map_err(Error::other)?;
        arguments.start.launch().run(|job| rank_main(job, &arguments, &nuclei))
    })
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments, nuclei: &[Point]) -> Result<(), Error> {
    arguments.start.needs_computing(job, "scf", true).map_err(Error::other)?;
    let atom = hartree_fock(job, &[[0.0; 3]], |_| 0.0, TOLERANCE_ATOM)?;
    let block = atom.density.get(..)?;
    let guess = |(i, j)| if i / FUNCTIONS == j / FUNCTIONS { block[(i % FUNCTIONS, j % FUNCTIONS)] } else { 0.0 };
    let Converged { energy, iterations, .. } = hartree_fock(job, nuclei, guess, TOLERANCE)?;

    let is_row = arguments.input.is_none();
    let passed = !is_row || (iterations == ROW_ITERATIONS && (energy - ROW_ENERGY).abs() < 1e-8);
    let atoms = nuclei.len();
    let people = format!(
        "1 atom: {:.8} hartree\n{atoms} atoms: {energy:.8} hartree after {iterations} iterations, {:.8} for each atom",
        atom.energy,
        energy / atoms as f64
    );
    let of_atom = atom.energy;
    let report =
        json!({ "atoms": atoms, "energy": energy, "iterations": iterations, "energy_of_atom": of_atom, "passed": passed });
    arguments.start.report(job, people, &report)?;
    if passed {
        Ok(())
    } else {
        Err(Error::other(format!("Global Arrays finds {ROW_ENERGY} hartree in {ROW_ITERATIONS} iterations")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_is_wrong_with_it() {
        assert_eq!(places(ROW).unwrap()[3], [12.0, 0.0, 0.0]);
        assert_eq!(places("x").unwrap_err(), "line 1 is not the number of atoms");
        assert_eq!(places("2\n\n4 0 0 0\n").unwrap_err(), "line 1 says 2 atoms, and there are 1");
        assert_eq!(places("1\n\n4 0 zero 0\n").unwrap_err(), "\"4 0 zero 0\" is not an element and three coordinates");
        assert!(places("0\n\n").is_err());
    }
}
