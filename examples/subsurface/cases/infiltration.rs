//! Steady infiltration into a column of sand below loam, as in Amanzi's verification test "infiltration_1d", case 2a: the first
//! line of Table 3 of J. Vanderborght et al., *A set of analytical benchmarks to test numerical models of flow and transport in
//! soils*, Vadose Zone J. 4 (2005).
//!
//! The column is 2 m high; sand reaches up to 1.5 m. Half a centimeter of rain each day enters at the top, the pressure at the
//! bottom is that at which sand lets just so much pass by its own weight. From below upwards the pressure is constant to the
//! layers' boundary and falls in the loam towards that layer's own equilibrium.
//!
//! **Two references.** In the steady state the flux is q everywhere, so that dψ/dz = q/K(ψ) − 1, ψ given at the bottom: an
//! ordinary differential equation, integrated upwards here (its stable direction) by Runge and Kutta's fourth-order method with
//! [`PROFILE_STEPS`] steps. The solver's error against it falls with the first power of the spacing; the largest is next to the
//! layers' boundary. Amanzi's pressures come from 200 cells and a scheme of the same order, and carry the same error. Its
//! observation points lie on faces between cells; what it reports there is the mean of both cells' pressures, or (at 1.65 and
//! 1.90 m) that of one. So what is compared is how far a reported pressure lies outside the range of ours over half an Amanzi
//! cell to either side. With 200 cells the two programs agree to 10⁻⁴ Pa, which also settles that the sand is below.

use std::path::Path;

use global_arrays::prelude::*;

use super::{Case, Check, Curve, Verdict, beside, read};
use crate::cli::{Arguments, Cells};
use crate::grid::{Axis, Grid};
use crate::march::{Marched, Schedule};
use crate::medium::Medium;
use crate::problem::{Boundary, Problem};

/// [m]
const HEIGHT: f64 = 2.0;
/// Sand is below, loam above [m].
const LAYERS_MEET: f64 = 1.5;
const POROSITY: f64 = 0.43;
/// Density of water [kg/m³].
const DENSITY: f64 = 998.2;
/// Its viscosity [Pa·s].
const VISCOSITY: f64 = 1.002e-3;
/// [m/s²]
const GRAVITY: f64 = 9.80665;
/// Pressure of the air [Pa].
const ATMOSPHERE: f64 = 101_325.0;
/// At the bottom [Pa].
const BOTTOM_PRESSURE: f64 = 99_630.633_6;
/// Everywhere at time zero [Pa].
const INITIAL_PRESSURE: f64 = 81_747.0;
/// Rain [m/s]: 0.5 cm a day.
const RAIN: f64 = 5.787_037_04e-8;
/// Cells unless asked for; Amanzi has as many.
const CELLS: usize = 200;
/// Ten thousand years [s], as Amanzi.
const END_TIME: f64 = 3.155_76e11;
const FIRST_STEP: f64 = 10.0;
const PROFILE_STEPS: usize = 20_000;
/// The layers' boundary costs this error for each meter of spacing [Pa/m]; measured are 4300 (20 cells) to 4850 (400).
const ORDER_CONSTANT: f64 = 5200.0;
/// Spacing of Amanzi's cells [m].
const REFERENCE_SPACING: f64 = 0.01;
/// How far two programs with the same scheme on the same grid may lie apart [Pa]: what Amanzi's solver was asked for, a
/// relative residual of 10⁻⁶, times the pressure.
const SOLVERS_APART: f64 = 0.1;

/// The meters of water that weigh a pascal.
const METERS: f64 = 1.0 / (DENSITY * GRAVITY);

fn head(pressure: f64) -> f64 {
    (pressure - ATMOSPHERE) * METERS
}

fn pressure(head: f64) -> f64 {
    ATMOSPHERE + head / METERS
}

/// Sand's parameters, or loam's: α [1/Pa], m, residual saturation, permeability [m²].
fn ground(height: f64) -> (Medium, f64) {
    let (alpha, m, residual, permeability) = if height < LAYERS_MEET {
        (1.532_333e-3, 0.666_666_7, 0.104_651, 1.184_72e-11)
    } else {
        (4.086_22e-4, 0.375, 0.186_047, 5.9236e-13)
    };
    let medium = Medium::VanGenuchten {
        alpha: alpha / METERS,
        m,
        residual: POROSITY * residual,
        saturated: POROSITY,
        specific_storage: 0.0,
    };
    (medium, permeability / (METERS * VISCOSITY))
}

#[derive(Debug)]
pub(crate) struct Infiltration {
    grid: Grid,
    /// Heights [m] and pressures [Pa].
    reference: Vec<(f64, f64)>,
    end_time: f64,
    first_step: f64,
    shortest_step: f64,
    accuracy: Option<f64>,
}

impl Infiltration {
    /// # Errors
    /// A number of cells that cuts no face where the layers meet; a reference that cannot be read.
    pub(crate) fn new(arguments: &Arguments) -> Result<Infiltration, String> {
        let cells = match arguments.cells.as_ref().map(|Cells(cells)| cells.as_slice()) {
            None => CELLS,
            Some(&[cells]) if cells % 4 == 0 => cells,
            Some(_) => return Err("infiltration needs one number of cells that 4 divides: its layers meet at a face".into()),
        };
        let file = arguments.reference.clone().unwrap_or_else(|| beside("amanzi/infiltration_1d_2a.out"));
        Ok(Infiltration {
            grid: Grid { axes: [Axis::uniform(cells, HEIGHT), Axis::uniform(1, 1.0), Axis::uniform(1, 1.0)] },
            reference: parse(&file, &read(&file)?)?,
            end_time: arguments.end_time.unwrap_or(END_TIME),
            first_step: arguments.first_step.unwrap_or(FIRST_STEP),
            shortest_step: arguments.shortest_step(),
            accuracy: arguments.accuracy,
        })
    }
}

/// Amanzi's observations `Obs_<height in cm>`: those of the last time.
fn parse(file: &Path, text: &str) -> Result<Vec<(f64, f64)>, String> {
    let mut points: Vec<(f64, f64, f64)> = Vec::new();
    // Two lines of headings.
    for (line, text) in text.lines().enumerate().skip(2).filter(|(_, text)| !text.trim().is_empty()) {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let row = match fields[..] {
            [_, region, _, "aqueous pressure", time, value] => region
                .strip_prefix("Obs_")
                .and_then(|cm| Some((cm.parse::<f64>().ok()? / 100.0, time.parse().ok()?, value.parse().ok()?))),
            _ => None,
        };
        match row.filter(|&(height, time, value)| (0.0..=HEIGHT).contains(&height) && f64::is_finite(time + value)) {
            Some(row) => points.push(row),
            None => {
                return Err(format!(
                    "{}: line {}: not an observation of aqueous pressure at Obs_<height in cm> between 0 and 200",
                    file.display(),
                    line + 1
                ));
            }
        }
    }
    let last = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let points: Vec<(f64, f64)> = points.iter().filter(|point| point.1 == last).map(|point| (point.0, point.2)).collect();
    if points.is_empty() { Err(format!("{}: there are no observations", file.display())) } else { Ok(points) }
}

/// The steady pressure heads [m] at heights k·[`HEIGHT`]/[`PROFILE_STEPS`].
fn steady_profile() -> Vec<f64> {
    let step = HEIGHT / PROFILE_STEPS as f64;
    let mut profile = vec![head(BOTTOM_PRESSURE)];
    for k in 0..PROFILE_STEPS {
        let (medium, conductivity) = ground((k as f64 + 0.5) * step);
        let slope = |head: f64| RAIN / (conductivity * medium.at(head).mobility) - 1.0;
        let start = profile[k];
        let k1 = slope(start);
        let k2 = slope(start + 0.5 * step * k1);
        let k3 = slope(start + 0.5 * step * k2);
        let k4 = slope(start + step * k3);
        profile.push(start + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4));
    }
    profile
}

/// The value at `x` of the line through ascending points, of which there are at least two; beyond the ends it goes on straight.
fn along(points: &[(f64, f64)], x: f64) -> f64 {
    let behind = points.partition_point(|point| point.0 < x).clamp(1, points.len() - 1);
    let ((x0, y0), (x1, y1)) = (points[behind - 1], points[behind]);
    y0 + (y1 - y0) * (x - x0) / (x1 - x0)
}

impl Problem for Infiltration {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn medium(&self, cell: [usize; 3]) -> Medium {
        ground(self.grid.axes[0].centre(cell[0])).0
    }

    fn material(&self, cell: [usize; 3]) -> usize {
        usize::from(self.grid.axes[0].centre(cell[0]) >= LAYERS_MEET)
    }

    fn conductivity(&self, _axis: usize, cell: [usize; 3]) -> f64 {
        ground(self.grid.axes[0].centre(cell[0])).1
    }

    fn boundary(&self, axis: usize, upper: bool, _cell: [usize; 3], _time: f64) -> Boundary {
        match (axis, upper) {
            (0, false) => Boundary::Head(head(BOTTOM_PRESSURE)),
            (0, true) => Boundary::Inflow(RAIN),
            _ => Boundary::Closed,
        }
    }

    fn initial_head(&self, _cell: [usize; 3]) -> f64 {
        head(INITIAL_PRESSURE)
    }

    fn weight(&self) -> bool {
        true
    }

    fn linear(&self) -> bool {
        false
    }
}

impl Case for Infiltration {
    fn name(&self) -> String {
        "infiltration".into()
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            first_step: self.first_step.min(self.end_time),
            shortest_step: self.shortest_step,
            longest_step: f64::INFINITY,
            accuracy: self.accuracy,
            times: vec![self.end_time],
        }
    }

    /// The heads of the column from below, at the end [m].
    fn observe(&self, time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<Vec<f64>, Error> {
        if time < self.end_time {
            return Ok(Vec::new());
        }
        Ok(heads.get(s![.., 0, 0])?.to_vec())
    }

    fn judge(&self, history: &[(f64, Vec<f64>)], _marched: &Marched) -> Verdict {
        let axis = &self.grid.axes[0];
        let heads = history.last().map_or(&[][..], |(_, heads)| heads.as_slice());
        let ours: Vec<(f64, f64)> = heads.iter().enumerate().map(|(cell, &head)| (axis.centre(cell), pressure(head))).collect();
        let exact: Vec<(f64, f64)> = steady_profile()
            .iter()
            .enumerate()
            .map(|(k, &head)| (HEIGHT * k as f64 / PROFILE_STEPS as f64, pressure(head)))
            .collect();
        let worst = |errors: &mut dyn Iterator<Item = f64>| errors.fold(0.0, ops::max_nan);
        let at = |height: f64| along(&ours, height.clamp(0.5 * axis.width(0), HEIGHT - 0.5 * axis.width(0)));
        let outside = |&(height, value): &(f64, f64)| {
            let (a, b) = (at(height - 0.5 * REFERENCE_SPACING), at(height + 0.5 * REFERENCE_SPACING));
            // `max` would drop what is no number.
            if a.is_nan() || b.is_nan() { f64::NAN } else { (value - a.max(b)).max(a.min(b) - value).max(0.0) }
        };
        let spacing = HEIGHT / axis.cells() as f64;
        Verdict {
            checks: vec![
                Check {
                    key: "max_error",
                    what: "pressure against Amanzi",
                    error: worst(&mut self.reference.iter().map(outside)),
                    tolerance: SOLVERS_APART + (spacing - REFERENCE_SPACING).abs() * ORDER_CONSTANT,
                    unit: "Pa",
                },
                Check {
                    key: "profile_error",
                    what: "pressure against the exact profile",
                    error: worst(&mut ours.iter().map(|&(height, value)| (value - along(&exact, height)).abs())),
                    tolerance: spacing * ORDER_CONSTANT,
                    unit: "Pa",
                },
            ],
            figures: vec![(
                "max_error_at_points",
                worst(&mut self.reference.iter().map(|&(height, value)| (value - at(height)).abs())),
            )],
            columns: ["z_m", "reference_Pa", "computed_Pa", "exact_Pa"].map(String::from).to_vec(),
            rows: self.reference.iter().map(|&(z, value)| vec![z, value, at(z), along(&exact, z)]).collect(),
            title: "Steady infiltration into loam over sand".into(),
            axes: ("pressure [Pa]", "height [m]"),
            curves: vec![
                Curve { name: "computed".into(), points: ours.iter().map(|&(z, p)| (p, z)).collect(), dots: false },
                Curve { name: "Amanzi".into(), points: self.reference.iter().map(|&(z, p)| (p, z)).collect(), dots: true },
            ],
        }
    }
}
