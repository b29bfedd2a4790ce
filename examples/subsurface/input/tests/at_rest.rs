//! Ground in which no water moves, or hardly any: steps end all the same, and heads are those of rest.

use global_arrays::prelude::*;

use super::closed_forms::rows;
use super::pose;
use crate::cases::Case;
use crate::field::Team;
use crate::input::Posed;
use crate::march::{Progress, march};
use crate::newton::Newton;
use crate::problem::Problem;

/// A column of loam, 2 m high, with an initial state, sides and an end.
fn loam(initial: &str, sides: &str, end: &str) -> Posed {
    let text = format!(
        "[grid]\nz = {{ cells = 20, length = 2.0 }}\n[materials.loam]\nconductivity = 1e-4\n\
         van_genuchten = {{ alpha = 3.5, n = 2.0, residual = 0.05, saturated = 0.4 }}\n[ground]\nmaterial = \"loam\"\n\
         [initial]\n{initial}\n{sides}\n[time]\nend = {end}\n\
         [[observations]]\nname = \"low\"\nz = 0.5\n[[observations]]\nname = \"high\"\nz = 1.95\n"
    );
    pose("column", text).unwrap()
}

/// The heads at the end: pressure head and hydraulic head of both points [m].
fn last(posed: &Posed, ranks: usize) -> [f64; 4] {
    let rows = rows(posed, ranks, "");
    let row = rows.last().unwrap();
    [row[1], row[2], row[4], row[5]]
}

fn assert_near(found: [f64; 4], expected: [f64; 4], apart: f64) {
    let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= apart);
    assert!(near, "{found:?}, expected {expected:?}");
}

#[test]
fn hydrostatic_ground_in_a_closed_box_stays() {
    for ranks in [1, 2, 3] {
        assert_near(last(&loam("head = 1.03", "", "86400"), ranks), [0.53, 1.03, -0.92, 1.03], 1e-10);
    }
}

/// A closed box evens out, then nothing moves any more.
#[test]
fn a_closed_box_comes_to_rest() {
    let [low, head, _, high] = last(&loam("pressure_head = -0.5", "", "1e9"), 2);
    assert!((head - high).abs() < 1e-5 && low > -0.5, "{low} {head} {high}");
}

#[test]
fn a_column_drains_to_rest() {
    let table = "[[boundaries]]\nside = \"bottom\"\nhead = 0.5";
    for ranks in [1, 2, 3] {
        assert_near(last(&loam("pressure_head = -0.5", table, "1e9"), ranks), [0.0, 0.5, -1.45, 0.5], 1e-6);
    }
}

/// 10⁻²⁰ m/s for a day, into a confined aquifer whose head is ten meters.
#[test]
fn a_tiny_inflow_is_taken() {
    let text = "[grid]\nx = { cells = 20, length = 100.0 }\n[materials.a]\nconductivity = 1e-3\n\
                confined = { specific_storage = 1e-4 }\n[ground]\nmaterial = \"a\"\n[initial]\nhead = 10.0\n\
                [[boundaries]]\nside = \"x_min\"\ninflow = 1e-20\n[time]\nend = 86400\n\
                [[observations]]\nname = \"a\"\nx = 50.0\n";
    let rows = rows(&pose("aquifer", text.into()).unwrap(), 2, "");
    assert!(rows.iter().all(|row| (row[1] - 9.5).abs() < 1e-9), "{:?}", rows.last());
}

/// A column of sand or clay (Carsel & Parrish 1988) without a specific storage, with the water table inside.
fn hard(conductivity: f64, van_genuchten: &str, head: &str, sides: &str, end: &str) -> Posed {
    let text = format!(
        "[grid]\nz = {{ cells = 20, length = 2.0 }}\n[materials.a]\nconductivity = {conductivity}\n\
         van_genuchten = {{ {van_genuchten} }}\n[ground]\nmaterial = \"a\"\n[initial]\nhead = {head}\n{sides}\n\
         [time]\nend = {end}\n\
         [[observations]]\nname = \"low\"\nz = 0.5\n[[observations]]\nname = \"high\"\nz = 1.95\n"
    );
    pose("column", text).unwrap()
}

const SAND: (f64, &str) = (8.25e-5, "alpha = 14.5, n = 2.68, residual = 0.045, saturated = 0.43");
const CLAY: (f64, &str) = (5.56e-7, "alpha = 0.8, n = 1.09, residual = 0.068, saturated = 0.38");

/// Cells leave saturation, where they had no storage at all. What flows out at the bottom is the inflow at the top, and what storage
/// releases.
#[test]
fn a_water_table_falls_in_ground_without_specific_storage() {
    let layer = "[[boundaries]]\nside = \"bottom\"\nleaky = { head = 1.0, conductance = 1e-9 }\n\
                 [[boundaries]]\nside = \"top\"\ninflow = ";
    let base = "[[boundaries]]\nside = \"bottom\"\nhead = 0.5\n[[boundaries]]\nside = \"top\"\ninflow = ";
    for ranks in [1, 2, 3] {
        let [low, head, _, high] = last(&hard(SAND.0, SAND.1, "1.3", &format!("{layer}-1e-14"), "1e6"), ranks);
        assert!(head < 1.3 && head > 1.2 && low > 0.7 && (head - high).abs() < 1e-3, "{low} {head} {high}");
        let found = last(&hard(CLAY.0, CLAY.1, "0.8", &format!("{base}-1e-9"), "1e8"), ranks);
        assert!(found[1] < 0.5 && found[1] > 0.49 && found[3] < found[1], "{found:?}");
    }
}

/// Closed ground that is full takes no more water: an error, when it is full, and no heads without bounds.
#[test]
fn full_ground_ends_the_run() {
    let inflow = 1e-7;
    let rain = format!("[[boundaries]]\nside = \"top\"\ninflow = {inflow:e}");
    for (conductivity, van_genuchten) in [SAND, CLAY] {
        let posed = hard(conductivity, van_genuchten, "1.0", &rain, "1e8");
        let body = |job: &Job| {
            let mut team = Team::new(job, posed.grid().extents())?;
            let (mut newton, schedule) = (Newton::new(&team, &posed, 1e-8), posed.schedule());
            let mut progress = Progress::start(&team, &posed, &schedule)?;
            let error = march(&mut team, &mut newton, &posed, &schedule, &mut progress, &mut |_, _, _| Ok(())).unwrap_err();
            assert!(error.to_string().contains("fills with water"), "{error}");
            let layout = team.layout.clone();
            let water =
                |head: &dyn Fn(usize) -> f64| layout.cells().map(|(cell, n)| posed.medium(cell).at(head(n)).content).sum();
            let [taken, full] = team.sum([water(&|n| progress.head[n]), water(&|_| 1.0)])?;
            assert!(taken > 0.99 * full, "{taken} of {full} at {} s", progress.time);
            let highest = layout.rows().flatten().map(|n| progress.head[n].abs()).fold(0.0, f64::max);
            assert!(highest < 10.0, "{highest} m");
            Ok::<(), Error>(())
        };
        Launch::new().ranks(2).network("threads").run(body).unwrap();
    }
}
