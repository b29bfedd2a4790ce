//! A well in a confined aquifer of infinite extent, pumped at a constant rate from time zero.
//!
//! ```text
//! S·∂h/∂t = T·∇²h − Q·δ(x, y)          drawdown  s(r, t) = Q/(4πT)·W(u),   u = r²·S/(4·T·t)
//! ```
//!
//! with the well function W = E₁ (C. V. Theis, Trans. Am. Geophys. Union 16, 1935). The grid is two-dimensional: a square whose
//! cells are fine around the well and grow outwards, closed at ±[`HALF_WIDTH`], where a day's pumping is not felt (u = 29,
//! W < 10⁻¹³). The well takes its water from the middle cell.
//!
//! Drawdown is read at each radius of the reference in two directions, along an axis and along the diagonal, so that a grid that
//! prefers a direction is found out; between cells by a cubic polynomial in ln r, along which drawdown is smooth.

use std::f64::consts::{PI, SQRT_2};
use std::path::Path;

use global_arrays::prelude::*;

use super::{Case, Check, Curve, Verdict, beside, read};
use crate::cli::{Arguments, Cells};
use crate::grid::{Axis, Grid};
use crate::march::{Marched, Schedule};
use crate::medium::Medium;
use crate::problem::{Boundary, Problem};

/// Q [m³/s].
const PUMPED: f64 = 0.01;
/// T [m²/s].
const TRANSMISSIVITY: f64 = 1e-3;
/// S.
const STORATIVITY: f64 = 1e-4;
/// Distance from the well to the edge of the grid [m].
const HALF_WIDTH: f64 = 1e4;
/// Distance within which cells are alike [m].
const CORE: f64 = 1.0;
/// u at the edge from which on it is not felt: W < 5·10⁻⁶.
const UNFELT: f64 = 10.0;
/// Cells along each side unless asked for.
const CELLS: usize = 129;
const FIRST_STEP: f64 = 0.05;
/// Default largest error of a step [m].
const ACCURACY: f64 = 4e-3;
/// The unit of drawdown, Q/(4πT) [m].
const UNIT: f64 = PUMPED / (4.0 * PI * TRANSMISSIVITY);

/// A row of the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    radius: f64,
    time: f64,
    drawdown: f64,
}

#[derive(Debug)]
pub(crate) struct Theis {
    grid: Grid,
    reference: Vec<Point>,
    radii: Vec<f64>,
    first_step: f64,
    shortest_step: f64,
    accuracy: f64,
}

impl Theis {
    /// # Errors
    /// A number of cells that has no middle; a reference that cannot be read or is for another aquifer.
    pub(crate) fn new(arguments: &Arguments) -> Result<Theis, String> {
        let cells = match arguments.cells.as_ref().map(|Cells(cells)| cells.as_slice()) {
            None => CELLS,
            Some(&[cells]) if cells % 2 == 1 && cells >= 17 => cells,
            Some(_) => return Err("theis needs one odd number of cells, 17 or more: the well is in the middle one".into()),
        };
        let file = arguments.reference.clone().unwrap_or_else(|| beside("theis.csv"));
        let axis = Axis::graded(cells, HALF_WIDTH, CORE);
        let reference = parse(&file, &read(&file)?)?;
        // Interpolation takes two cells within the smallest radius.
        let (nearest, farthest) = (axis.centre(cells / 2 + 2), 0.1 * HALF_WIDTH);
        if let Some(point) = reference.iter().find(|point| point.radius / SQRT_2 < nearest || point.radius > farthest) {
            let reach = nearest * SQRT_2;
            return Err(format!("a grid of {cells} cells resolves radii of {reach:.3} to {farthest} m, not {} m", point.radius));
        }
        let mut radii: Vec<f64> = reference.iter().map(|point| point.radius).collect();
        radii.sort_by(f64::total_cmp);
        radii.dedup();
        Ok(Theis {
            grid: Grid { axes: [Axis::uniform(1, 1.0), axis.clone(), axis] },
            reference,
            radii,
            first_step: arguments.first_step.unwrap_or(FIRST_STEP),
            shortest_step: arguments.shortest_step(),
            accuracy: arguments.accuracy.unwrap_or(ACCURACY),
        })
    }

    fn axis(&self) -> &Axis {
        &self.grid.axes[1]
    }

    /// The cells of the middle row (or of the diagonal) around `radius`, and the weights of their drawdowns.
    fn stencil(&self, radius: f64, diagonal: bool) -> ([[usize; 3]; 4], [f64; 4]) {
        let axis = self.axis();
        let middle = axis.cells() / 2;
        let distance = |cell: usize| axis.centre(cell) * if diagonal { SQRT_2 } else { 1.0 };
        let behind = (middle + 1..axis.cells() - 1).find(|&cell| distance(cell) >= radius).unwrap_or(axis.cells() - 2);
        let first = (behind - 2).max(middle + 1);
        let logs: [f64; 4] = std::array::from_fn(|k| distance(first + k).ln());
        let weights =
            std::array::from_fn(|k| (0..4).filter(|&j| j != k).map(|j| (radius.ln() - logs[j]) / (logs[k] - logs[j])).product());
        (std::array::from_fn(|k| [0, if diagonal { first + k } else { middle }, first + k]), weights)
    }

    /// The bound on the error of W: second order in the grid's spacing of ln r, first order in the steps' of ln t.
    ///
    /// Around a steady well, differences instead of derivatives over cells that grow by a factor e^δ miss the fraction δ²/8 of
    /// the drawdown, and W goes up to 14.5 here: 1.8·δ². Measured are 1.6 to 2.0. Backward Euler is late by half a step, and
    /// ∂W/∂ln t is at most 1 in size; a step is √(2·accuracy/unit) of the time that has gone by.
    fn tolerance(&self) -> f64 {
        let spacing = 2.0 * (HALF_WIDTH / CORE).asinh() / self.axis().cells() as f64;
        let step = (2.0 * self.accuracy / UNIT).sqrt();
        2.2 * spacing * spacing + 0.5 * step
    }
}

/// The rows of a reference in CSV, with columns `r_m`, `t_s`, `u` and `s_m` and comments behind `#`.
fn parse(file: &Path, text: &str) -> Result<Vec<Point>, String> {
    let failed = |what: String| format!("{}: {what}", file.display());
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| failed(error.to_string()))?.clone();
    let column =
        |name: &str| headers.iter().position(|header| header == name).ok_or_else(|| failed(format!("there is no column {name}")));
    let columns = [column("r_m")?, column("t_s")?, column("u")?, column("s_m")?];
    let mut points = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| failed(error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |column: usize| record[column].parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0);
        let [Some(radius), Some(time), Some(u), Some(drawdown)] = columns.map(number) else {
            return Err(failed(format!("line {line}: numbers above 0 are expected")));
        };
        if (radius * radius * STORATIVITY / (4.0 * TRANSMISSIVITY * time * u) - 1.0).abs() > 1e-6 {
            return Err(failed(format!("line {line}: u belongs to another aquifer than T = 1e-3 m²/s, S = 1e-4")));
        }
        if HALF_WIDTH * HALF_WIDTH * STORATIVITY / (4.0 * TRANSMISSIVITY * time) < UNFELT {
            return Err(failed(format!("line {line}: after {time} s the edges of the grid are felt")));
        }
        points.push(Point { radius, time, drawdown });
    }
    if points.is_empty() { Err(failed("there are no rows".into())) } else { Ok(points) }
}

impl Problem for Theis {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn medium(&self, _cell: [usize; 3]) -> Medium {
        // One meter thick: S_s = S and K = T.
        Medium::Confined { specific_storage: STORATIVITY }
    }

    fn conductivity(&self, _axis: usize, _cell: [usize; 3]) -> f64 {
        TRANSMISSIVITY
    }

    fn boundary(&self, _axis: usize, _upper: bool, _cell: [usize; 3], _time: f64) -> Boundary {
        Boundary::Closed
    }

    fn source(&self, cell: [usize; 3], _time: f64) -> f64 {
        let middle = self.axis().cells() / 2;
        if cell == [0, middle, middle] { -PUMPED } else { 0.0 }
    }

    fn initial_head(&self, _cell: [usize; 3]) -> f64 {
        0.0
    }

    fn weight(&self) -> bool {
        false
    }

    fn linear(&self) -> bool {
        true
    }
}

impl Case for Theis {
    fn name(&self) -> String {
        "theis".into()
    }

    fn schedule(&self) -> Schedule {
        let mut times: Vec<f64> = self.reference.iter().map(|point| point.time).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        Schedule {
            first_step: self.first_step,
            shortest_step: self.shortest_step,
            longest_step: f64::INFINITY,
            accuracy: Some(self.accuracy),
            times,
        }
    }

    fn observed(&self) -> Vec<String> {
        let along = |line| self.radii.iter().map(move |radius| format!("{radius} m along {line}"));
        along("the axis").chain(along("the diagonal")).collect()
    }

    /// Drawdown at each radius along the axis, then at each along the diagonal [m].
    fn observe(&self, _time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<Vec<f64>, Error> {
        let mut drawdowns = Vec::new();
        for diagonal in [false, true] {
            for &radius in &self.radii {
                let (cells, weights) = self.stencil(radius, diagonal);
                let mut near = [0.0; 4];
                heads.gather(&cells, &mut near)?;
                drawdowns.push(-near.iter().zip(weights).map(|(head, weight)| head * weight).sum::<f64>());
            }
        }
        Ok(drawdowns)
    }

    fn judge(&self, history: &[(f64, Vec<f64>)], _marched: &Marched) -> Verdict {
        let mut rows = Vec::new();
        let (mut largest, mut relative) = (0.0_f64, 0.0_f64);
        for point in &self.reference {
            let place = self.radii.iter().position(|&radius| radius == point.radius);
            let seen = history.iter().find(|(time, _)| *time == point.time);
            // Every time of the reference is one of the schedule's, every radius one of the radii; else it has not passed.
            let [axis, diagonal] = match (place, seen) {
                (Some(place), Some((_, drawdowns))) => [drawdowns[place], drawdowns[place + self.radii.len()]],
                _ => [f64::NAN; 2],
            };
            rows.push(vec![point.radius, point.time, point.drawdown, axis, diagonal]);
            for computed in [axis, diagonal] {
                let error = (computed - point.drawdown).abs();
                largest = ops::max_nan(largest, error);
                if point.drawdown >= 0.1 * UNIT {
                    relative = ops::max_nan(relative, error / point.drawdown);
                }
            }
        }
        let curve = |place: usize, radius: f64| Curve {
            name: format!("r = {radius} m"),
            points: history.iter().filter(|(t, _)| *t >= 1.0).map(|(t, seen)| (t.log10(), -seen[place])).collect(),
            dots: false,
        };
        let mut curves: Vec<Curve> = self.radii.iter().enumerate().map(|(place, &radius)| curve(place, radius)).collect();
        curves.push(Curve {
            name: "Theis".into(),
            points: self.reference.iter().map(|point| (point.time.log10(), -point.drawdown)).collect(),
            dots: true,
        });
        Verdict {
            checks: vec![Check {
                key: "max_error",
                what: "drawdown against Theis",
                error: largest,
                tolerance: UNIT * self.tolerance(),
                unit: "m",
            }],
            figures: vec![("max_relative_error", relative), ("max_error_of_well_function", largest / UNIT)],
            columns: ["r_m", "t_s", "reference_m", "axis_m", "diagonal_m"].map(String::from).to_vec(),
            rows,
            title: "Drawdown around a well in a confined aquifer".into(),
            axes: ("log10 of time [s]", "change of head [m]"),
            curves,
        }
    }
}
