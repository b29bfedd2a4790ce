//! Ground in which no water moves, or hardly any: steps end all the same, and heads are those of rest.

use super::closed_forms::rows;
use super::pose;
use crate::input::Posed;

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
