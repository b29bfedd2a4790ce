//! Kaczmarz's method: Laplace's equation in a cube, by projections on the planes of single equations.
//!
//! Each equation aᵢ x = bᵢ is a plane, and a projection moves x to the nearest point of it, along aᵢ. A rank has a copy of the unknowns of
//! its equations, and projects it on one plane after the other. After such a sweep an unknown becomes the mean over the ranks that have it. The
//! method converges with any number of ranks.
//!
//! On the sides u is x² + y² - 2z². This polynomial solves the equation, and that of second differences too, without an error.
//!
//! # Source
//! S. Kaczmarz, *Angenäherte Auflösung von Systemen linearer Gleichungen*, Bull. Int. Acad. Pol. Sci. A 35, 1937. The means: D. Gordon, R.
//! Gordon, *Component-averaged row projections*, SIAM J. Sci. Comput. 27, 2005.

use std::process::ExitCode;

use clap::Parser;
use global_arrays::prelude::*;
use program::command_line::{self, Start, positive};
use serde_json::json;

/// A projection goes this many times as far as to the plane.
const RELAXATION: f64 = 1.5;
const SWEEPS: usize = 100_000;
/// Between checks of the residual.
const CHECK_EVERY: usize = 10;
/// The norm of the residual at the end, divided by that of b.
const TOLERANCE: f64 = 1e-8;

/// Solves Laplace's equation in a cube by projections on the planes of single equations, and compares with the exact solution.
#[derive(Debug, Clone, Parser)]
#[command(name = "kaczmarz")]
struct Arguments {
    #[command(flatten)]
    start: Start,
    /// Points inside the cube, along each axis
    #[arg(long, value_parser = positive, default_value_t = 10)]
    n: usize,
}

impl Arguments {
    /// A point, counted from 1; the sides are at 0 and n + 1.
    fn point(&self, unknown: usize) -> [usize; 3] {
        [unknown / self.n.pow(2), unknown / self.n % self.n, unknown % self.n].map(|k| k + 1)
    }

    fn neighbors(&self, point: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
        (0..6).map(move |k| {
            let mut neighbor = point;
            neighbor[k / 2] = point[k / 2] + 2 * (k % 2) - 1;
            neighbor
        })
    }

    /// The number of a point, unless it is on a side.
    fn unknown(&self, point: [usize; 3]) -> Option<usize> {
        let is_inside = point.iter().all(|k| (1..=self.n).contains(k));
        is_inside.then(|| point.iter().fold(0, |number, k| number * self.n + k - 1))
    }

    fn exact(&self, point: [usize; 3]) -> f64 {
        let [x, y, z] = point.map(|k| k as f64 / (self.n + 1) as f64);
        x * x + y * y - 2.0 * z * z
    }

    /// The elements of a row.
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, usize, f64)> {
        let others = self.neighbors(self.point(i)).filter_map(move |point| Some((i, self.unknown(point)?, -1.0)));
        others.chain([(i, i, 6.0)])
    }

    /// What neighbors on sides add to the right-hand side.
    fn right_side(&self, i: usize) -> f64 {
        self.neighbors(self.point(i)).filter(|&point| self.unknown(point).is_none()).map(|point| self.exact(point)).sum()
    }
}

/// An equation, its unknowns by their places in the rank's copy.
struct Equation {
    coefficients: Vec<(usize, f64)>,
    right_side: f64,
    norm_squared: f64,
}

impl Equation {
    fn residual(&self, x: &[f64]) -> f64 {
        self.right_side - self.coefficients.iter().map(|&(place, a)| a * x[place]).sum::<f64>()
    }

    fn project(&self, x: &mut [f64]) {
        let step = RELAXATION * self.residual(x) / self.norm_squared;
        self.coefficients.iter().for_each(|&(place, a)| x[place] += step * a);
    }
}

/// Solves A x = b from what x is; returns how many sweeps that took. Collective.
fn solve(a: &SparseMatrix<f64>, b: &GlobalArray1<f64>, x: &mut GlobalArray1<f64>) -> Result<usize, Error> {
    let mut unknowns: Vec<usize> = a.rows().flat_map(|(_, columns, _)| columns.iter().copied()).collect();
    unknowns.sort_unstable();
    unknowns.dedup();
    let plan = x.gather_plan(&unknowns)?;
    let equation = |(row, columns, values): (usize, &[usize], &[f64])| {
        let place = |column| unknowns.binary_search(column).expect("a column of this row is in the list");
        let coefficients = columns.iter().map(place).zip(values.iter().copied()).collect();
        Ok(Equation { coefficients, right_side: b.load(row)?, norm_squared: values.iter().map(|a| a * a).sum() })
    };
    let equations: Vec<Equation> = a.rows().map(equation).collect::<Result<_, Error>>()?;

    // How many ranks have an unknown.
    let mut ranks = x.duplicate("ranks")?;
    ranks.zero()?;
    plan.add(&ranks, &vec![1.0; unknowns.len()])?;
    let goal = TOLERANCE * b.norm_frobenius()?;
    let mut copy = vec![0.0; unknowns.len()];
    for sweep in 0..=SWEEPS {
        plan.fetch(x, &mut copy)?;
        if sweep % CHECK_EVERY == 0 {
            let own: f64 = equations.iter().map(|equation| equation.residual(&copy).powi(2)).sum();
            let norm = a.group().all_reduce_one(own, ops::sum)?.sqrt();
            if norm <= goal {
                return Ok(sweep);
            }
        }
        equations.iter().for_each(|equation| equation.project(&mut copy));
        x.zero()?;
        plan.add(x, &copy)?;
        x.zip_with(&ranks, |sum, ranks| sum / ranks)?;
    }
    Err(Error::other(format!("{SWEEPS} sweeps are not enough")))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("kaczmarz", || arguments.start.launch().run(|job| rank_main(job, &arguments)))
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments) -> Result<(), Error> {
    arguments.start.needs_computing(job, "kaczmarz", true).map_err(Error::other)?;
    let n = arguments.n.pow(3);
    let b = GlobalArray1::<f64>::from_fn(job, [n], |i| arguments.right_side(i))?;
    let own = b.own_blocks().flat_map(|block| block.patch.range(0));
    let a = SparseMatrix::from_triplets(job, [n, n], own.flat_map(|i| arguments.row(i)))?;
    let mut x = GlobalArray1::<f64>::zeros(job, [n])?;
    let sweeps = solve(&a, &b, &mut x)?;

    let mut error = GlobalArray1::<f64>::from_fn(job, [n], |i| arguments.exact(arguments.point(i)))?;
    error.scaled_add(-1.0, &x)?;
    let error = error.max_abs()?;
    let passed = error < 1e-6;
    let people = format!("{n} equations: {sweeps} sweeps, largest error {error:.1e}");
    arguments.start.report(job, people, &json!({ "sweeps": sweeps, "error": error, "passed": passed }))?;
    if passed { Ok(()) } else { Err(Error::other(format!("an unknown is wrong by {error:e}"))) }
}
