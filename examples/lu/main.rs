//! LU.

mod axis;
mod cli;
mod factor;
mod kernels;
mod market;
mod matrix;
mod panel;
mod report;
mod solve;
mod swaps;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use ndarray::{Array2, ShapeBuilder, s};

use crate::axis::Axis;
use crate::matrix::Matrix;
use crate::report::{Phases, Report};

fn main() -> ExitCode {
    match run(&cli::Arguments::parse()) {
        Ok(report) if report.passed() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("lu: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &cli::Arguments) -> Result<Report, String> {
    let seed = arguments.seed;
    let (matrix, name) = match (&arguments.matrix, arguments.n) {
        (Some(file), _) => {
            let sparse = market::read(file).map_err(|e| e.to_string())?;
            (Matrix::Read { sparse, seed }, file.display().to_string())
        }
        (None, order) => (Matrix::Generated { order: order.unwrap_or(1), seed }, format!("generated, seed {seed}")),
    };
    let ranks = arguments.ranks.unwrap_or(1);
    let grid = cli::Grid::choose(arguments.grid, ranks)?;
    let n = matrix.order();
    let block = arguments.block.min(n);
    let all = Axis { extent: n, block, processes: 1, me: 0 };
    let pad: usize = std::env::var("PAD").ok().and_then(|p| p.parse().ok()).unwrap_or(0);
    let mut store = Array2::<f64>::zeros((n + pad, n).f());
    let mut a = store.slice_mut(s![..n, ..]);
    matrix.fill(all, all, a.view_mut());
    let mut phases = Phases::default();
    let start = Instant::now();
    let pivots = factor::factor(a.view_mut(), block, &mut phases).map_err(|e| format!("{e:?}"))?;
    let factor = start.elapsed();
    let b: Vec<f64> = (0..n).map(|row| matrix.right_hand_side(row)).collect();
    let mut x = b.clone();
    let start = Instant::now();
    factor::solve(a.view(), &pivots, block, &mut x);
    let solve = start.elapsed();
    let (mut product, mut magnitudes) = (vec![0.0; n], vec![0.0; n]);
    matrix.multiply(all, all, &x, &mut product, &mut magnitudes);
    let residual = report::residual(&product, &magnitudes, &x, &b);
    let network = arguments.network.clone().unwrap_or("none".into());
    let report = Report { n, matrix: name, ranks, grid: (grid.rows, grid.columns), block, network, factor, solve, phases, residual };
    if arguments.json { println!("{}", report.json()) } else { println!("{report}") }
    Ok(report)
}
