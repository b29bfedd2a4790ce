//! The shipped problems against closed forms that are computed here, and on any number of ranks.

use std::f64::consts::PI;
use std::sync::Mutex;

use clap::Parser;
use global_arrays::prelude::*;

use super::{posed, posed_with};
use crate::cases::Case;
use crate::cli::Arguments;
use crate::field::Team;
use crate::grid::Grid;
use crate::input::Posed;
use crate::input::region::middle;
use crate::march::{Progress, march};
use crate::newton::Newton;
use crate::problem::Problem;

/// Times of output, each with the heads of all cells.
fn solve(posed: &Posed, ranks: usize) -> Vec<(f64, Array3<f64>)> {
    let outcome = Mutex::new(Vec::new());
    let body = |job: &Job| {
        let mut team = Team::new(job, posed.grid().extents())?;
        let mut newton = Newton::new(&team, posed, 1e-9);
        let schedule = posed.schedule();
        let mut progress = Progress::start(&team, posed, &schedule)?;
        march(&mut team, &mut newton, posed, &schedule, &mut progress, &mut |progress, _, heads| {
            if job.rank() == 0 && posed.frames().contains(&progress.time) {
                outcome.lock().unwrap().push((progress.time, heads.get(..)?));
            }
            Ok(())
        })?;
        job.sync()
    };
    Launch::new().ranks(ranks).network("threads").run(body).unwrap();
    outcome.into_inner().unwrap()
}

/// The rows of the output file.
pub(super) fn rows(posed: &Posed, ranks: usize, options: &str) -> Vec<Vec<f64>> {
    let line = format!("subsurface --problem none {options}");
    let arguments = Arguments::try_parse_from(line.split_whitespace()).unwrap();
    let outcome = Mutex::new(Vec::new());
    let body = |job: &Job| {
        if let Some(report) = crate::simulate(job, &arguments, posed)? {
            assert_eq!(report.failure(), None);
            *outcome.lock().unwrap() = report.verdict.rows;
        }
        Ok::<(), Error>(())
    };
    Launch::new().ranks(ranks).network("threads").run(body).unwrap();
    outcome.into_inner().unwrap()
}

/// Tracy's problem as shipped: side of the box, α, head of dry ground, K, θ_s − θ_r.
const SIDE: f64 = 10.0;
const ALPHA: f64 = 0.1;
const DRY: f64 = -10.0;
const CONDUCTIVITY: f64 = 1e-5;
const PORES: f64 = 0.3;

/// Tracy's pressure head after a time, with a conductivity: the specified-head problem in three dimensions (Tracy 2006).
fn tracy(conductivity: f64, time: f64, [z, x, y]: [f64; 3]) -> f64 {
    let dry = (ALPHA * DRY).exp();
    let beta = (0.25 * ALPHA * ALPHA + 2.0 * (PI / SIDE).powi(2)).sqrt();
    let c = ALPHA * PORES / conductivity;
    let term = |k: usize| {
        let lambda = PI * k as f64 / SIDE;
        let gamma = (beta * beta + lambda * lambda) / c;
        let sign = if k.is_multiple_of(2) { 1.0 } else { -1.0 };
        sign * lambda / gamma * (lambda * z).sin() * (-gamma * time).exp()
    };
    let series: f64 = (1..400).map(term).sum();
    let profile = (beta * z).sinh() / (beta * SIDE).sinh() + 2.0 / (SIDE * c) * series;
    let wetness = (1.0 - dry) * (PI * x / SIDE).sin() * (PI * y / SIDE).sin() * (0.5 * ALPHA * (SIDE - z)).exp() * profile;
    (dry + wetness).ln() / ALPHA
}

/// The largest error of the head in all cells at each time of output, against the closed form for a conductivity [m].
fn errors_of_tracy(grid: &Grid, solution: &[(f64, Array3<f64>)], conductivity: f64) -> Vec<f64> {
    let error = |time: f64, ((i, j, k), head): ((usize, usize, usize), &f64)| {
        (head - tracy(conductivity, time, middle(grid, [i, j, k]))).abs()
    };
    solution.iter().map(|(time, heads)| heads.indexed_iter().map(|cell| error(*time, cell)).fold(0.0, ops::max_nan)).collect()
}

/// The errors with a number of cells along each axis, against the closed form for K and for 1.1·K.
fn errors_with(cells: usize, accuracy: f64, face_permeability: &str) -> [Vec<f64>; 2] {
    let (cells, accuracy) = (format!("cells = {cells},"), format!("accuracy = {accuracy}"));
    let method = format!("face_permeability = \"{face_permeability}\"");
    let replaced = [("cells = 20,", &*cells), ("accuracy = 0.01", &accuracy), ("face_permeability = \"mean\"", &method)];
    let posed = posed("tracy", &replaced).unwrap();
    let solution = solve(&posed, 2);
    [1.0, 1.1].map(|factor| errors_of_tracy(posed.grid(), &solution, factor * CONDUCTIVITY))
}

/// With the mean permeability at faces the steady error is of second order. At 5000 s the front is a few cells wide; a
/// conductivity of 1.1 times the right one would be found out there.
#[test]
fn tracys_infiltration_is_that_of_the_closed_form() {
    let [coarse, _] = errors_with(10, 0.01, "mean");
    let [fine, wrong] = errors_with(20, 0.0025, "mean");
    assert_eq!(fine.len(), 3);
    for (error, bound) in fine.iter().zip([0.075, 0.042, 0.040]) {
        assert!(*error < bound, "{error} m, bound {bound} m");
    }
    assert!(wrong[0] > 0.2 && wrong[1] > 0.1, "{wrong:?}");
    let order = (coarse[2] / fine[2]).log2();
    assert!((1.6..2.3).contains(&order), "order {order}: {coarse:?} {fine:?}");
}

/// That of the upstream cell is of first order.
#[test]
fn tracys_infiltration_with_upstream_permeability() {
    let [coarse, fine] = [10, 20].map(|cells| errors_with(cells, 0.02, "upstream")[0][2]);
    assert!(fine < 0.073, "{fine} m");
    assert!((0.85..1.3).contains(&(coarse / fine).log2()), "{coarse} {fine}");
}

/// Hantush and Jacob's well function W(u, r/B) = ∫ exp(−y − (r/B)²/4y)/y dy from u on, by the trapezoidal rule in ln y.
fn well_function(u: f64, ratio: f64) -> f64 {
    let (first, last, steps) = (u.ln(), 60_f64.ln(), 20_000);
    let step = (last - first) / f64::from(steps);
    let value = |k: i32| {
        let y = (first + step * f64::from(k)).exp();
        (-y - 0.25 * ratio * ratio / y).exp()
    };
    step * ((1..steps).map(value).sum::<f64>() + 0.5 * (value(0) + value(steps)))
}

/// Known values: the exponential integral E₁(0.01) and E₁(1), and for u → 0 twice the Bessel function K₀(1).
#[test]
fn the_well_function_has_its_known_values() {
    for (u, ratio, known) in [(0.01, 0.0, 4.037929576538114), (1.0, 0.0, 0.219383934395520), (1e-6, 1.0, 0.842048876480)] {
        assert!((well_function(u, ratio) - known).abs() < 1e-6, "W({u}, {ratio}) = {}", well_function(u, ratio));
    }
}

/// The largest error of drawdown after the first minute [m], against a leakage factor B [m].
fn error_of_hantush(rows: &[Vec<f64>], leakage: f64) -> f64 {
    let (pumped, transmissivity, storativity) = (0.01, 1e-3, 1e-4);
    let error = |row: &Vec<f64>| {
        let at = |(radius, head): (f64, f64)| {
            let u = radius * radius * storativity / (4.0 * transmissivity * row[0]);
            let exact = pumped / (4.0 * PI * transmissivity) * well_function(u, radius / leakage);
            (head + exact).abs()
        };
        [5.0, 20.0, 100.0, 200.0].into_iter().zip([1, 4, 7, 10].map(|column| row[column])).map(at).fold(0.0, ops::max_nan)
    };
    rows.iter().filter(|row| row[0] > 60.0).map(error).fold(0.0, ops::max_nan)
}

/// Drawdown goes up to 6 m. A leakage factor of 190 m in place of 200 m would be found out.
#[test]
fn hantushs_leaky_aquifer_is_that_of_the_closed_form() {
    let rows = rows(&posed("hantush", &[]).unwrap(), 2, "");
    assert!(rows.iter().filter(|row| row[0] > 60.0).count() > 100);
    let [right, wrong] = [200.0, 190.0].map(|leakage| error_of_hantush(&rows, leakage));
    assert!(right < 0.025 && wrong > 0.05, "{right} m, {wrong} m");
}

/// The heads do not depend on the number of ranks, but for what the solvers leave.
#[test]
fn any_number_of_ranks_finds_the_same() {
    let fewer = ("cells = 129", "cells = 17");
    for (name, replaced, options, apart) in [
        ("tracy", &[("cells = 20", "cells = 6")][..], "--end-time 2000 --tolerance 1e-11", 1e-7),
        ("hantush", &[fewer][..], "--accuracy 0.2 --end-time 100 --tolerance 1e-11", 1e-6),
        // Steps of one length: whether a step grows hangs on its Newton iterations, and those on the last bits.
        (
            "dry_sand",
            &[("first_step = 1.0e-2", "longest_step = 20")][..],
            "--end-time 300 --first-step 20 --tolerance 1e-11",
            1e-5,
        ),
        // Long steps: BiCGStab turns to the coarse level.
        (
            "clay_lens",
            &[("cells = 160", "cells = 40"), ("cells = 60", "cells = 15")][..],
            "--end-time 3e6 --first-step 1e6 --tolerance 1e-11",
            1e-6,
        ),
    ] {
        let problem = posed_with(name, replaced, options).unwrap();
        let alone = rows(&problem, 1, options);
        for ranks in [2, 3, 5, 7] {
            let together = rows(&problem, ranks, options);
            assert_eq!(alone.len(), together.len(), "{name}, {ranks} ranks");
            for (a, b) in alone.iter().flatten().zip(together.iter().flatten()) {
                assert!((a - b).abs() <= apart * (1.0 + a.abs()), "{name}, {ranks} ranks: {a} and {b}");
            }
        }
    }
}

/// Behind a front in very dry sand, the rain q flows down under its own weight alone: k_r = q/K. The front has gone as deep
/// as what fell fills the pores.
#[test]
fn rain_on_dry_sand_fills_it_from_above() {
    let problem = posed("dry_sand", &[]).unwrap();
    let solution = solve(&problem, 2);
    let (time, heads) = &solution[1];
    assert_eq!(*time, 14_400.0);
    // Van Genuchten's formulae as he wrote them, with the sand's α and n.
    let (alpha, n, m) = (14.5, 2.68, 1.0 - 1.0 / 2.68);
    let saturation = |head: f64| (1.0 + (-alpha * head).powf(n)).powf(-m);
    let mobility = |s: f64| s.sqrt() * (1.0 - (1.0 - s.powf(1.0 / m)).powf(m)).powi(2);
    let content = |head: f64| 0.045 + 0.385 * saturation(head);
    let (mut dry, mut wet) = (-1.0_f64, -0.001);
    for _ in 0..60 {
        let head = 0.5 * (dry + wet);
        *(if mobility(saturation(head)) < 5e-6 / 8.25e-5 { &mut dry } else { &mut wet }) = head;
    }
    assert!((heads[[95, 0, 0]] - wet).abs() < 2e-4, "{} m and {wet} m", heads[[95, 0, 0]]);
    let gained: f64 = heads.iter().map(|&head| 0.01 * (content(head) - content(-100.0))).sum();
    assert!((gained - 0.072).abs() < 1e-8, "{gained} m of water");
    let middle = 0.5 * (content(wet) + content(-100.0));
    let dry_cells = heads.iter().filter(|&&head| content(head) < middle).count();
    let depth = 0.072 / (content(wet) - content(-100.0));
    assert!((1.0 - 0.01 * dry_cells as f64 - depth).abs() < 0.03, "{dry_cells} dry cells, front at {depth} m");
    assert_eq!(heads[[50, 0, 0]], -100.0);
}
