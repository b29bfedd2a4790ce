//! Leaky layers below a column that may be unsaturated.

use super::closed_forms::rows;
use super::pose;

/// Height of the cells, conductivity and α of the ground, conductance of the layer.
const HEIGHT: f64 = 0.5;
const CONDUCTIVITY: f64 = 1e-5;
const ALPHA: f64 = 0.5;
const CONDUCTANCE: f64 = 3e-6;

/// Pressure head in the lowest cell in the end [m], and the water content of all four [m], with a head outside.
fn lowest(method: &str, initial: &str, outside: f64, inflow: f64) -> [f64; 2] {
    let points: String =
        (0..4).map(|cell| format!("[[observations]]\nname = \"p{cell}\"\nz = {}\n", HEIGHT * (f64::from(cell) + 0.5))).collect();
    let text = format!(
        "face_permeability = \"{method}\"\n[grid]\nz = {{ cells = 4, length = 2.0 }}\n[materials.soil]\n\
         conductivity = {CONDUCTIVITY:e}\ngardner = {{ alpha = {ALPHA}, residual = 0.05, saturated = 0.4 }}\n\
         [ground]\nmaterial = \"soil\"\n[initial]\n{initial}\n[time]\nend = 1e10\n\
         [[boundaries]]\nside = \"top\"\ninflow = {inflow:e}\n\
         [[boundaries]]\nside = \"bottom\"\nleaky = {{ head = {outside}, conductance = {CONDUCTANCE:e} }}\n{points}"
    );
    let rows = rows(&pose("column", text).unwrap(), 2, "");
    let row = rows.last().unwrap();
    [row[1], HEIGHT * [3, 6, 9, 12].iter().map(|&column| row[column]).sum::<f64>()]
}

/// What flows in, with the half cell and the layer in series: k_r is that of the half cell alone.
fn in_series(mobility: f64, outside: f64, head: f64) -> f64 {
    (outside - head - 0.5 * HEIGHT) / (0.5 * HEIGHT / (CONDUCTIVITY * mobility) + 1.0 / CONDUCTANCE)
}

#[test]
fn flow_through_a_leaky_layer_is_that_of_resistances_in_series() {
    let mobility = |head: f64| (ALPHA * head.min(0.0)).exp();
    for (method, outside, inflow) in
        [("upstream", 0.05, -2e-7), ("mean", 0.05, -2e-7), ("upstream", 0.02, 1e-7), ("mean", 0.02, 1e-7)]
    {
        let [head, _] = lowest(method, "pressure_head = -0.3", outside, inflow);
        assert!(head < 0.0, "{head}");
        let of_cell = mobility(head);
        let upstream = if inflow < 0.0 { 1.0 } else { of_cell };
        let mobility = if method == "mean" { 0.5 * (1.0 + of_cell) } else { upstream };
        let flow = in_series(mobility, outside, head);
        assert!((flow + inflow).abs() < 1e-5 * inflow.abs(), "{method}: {flow:e} m/s and {inflow:e} m/s through the top");
    }
}

/// Water outside that does not reach the face cannot come in.
#[test]
fn a_dry_outside_gives_no_water() {
    let [_, content] = lowest("upstream", "pressure_head = -3.0", -1.0, 0.0);
    let before = 2.0 * (0.05 + 0.35 * (-3.0 * ALPHA).exp());
    assert!((content - before).abs() < 1e-9, "{content} m and {before} m of water");
}

/// Saturated ground seeps through the layer until its pressure at the bottom is that of the air, not that far below.
#[test]
fn water_seeps_out_against_the_air() {
    let [head, _] = lowest("upstream", "head = 3.0", -1.0, 0.0);
    assert!((head + 0.5 * HEIGHT).abs() < 1e-6, "{head} m");
}
