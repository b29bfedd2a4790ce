//! Rain on the middle of a box of loam whose conductivity varies at random, above a water table: three dimensions, so that a
//! block has neighbors on all sides. The shape is that of STOMP's runs in ARMCI-ODCM §IV-D, wide and 15 cells high.
//!
//! The logarithm of the conductivity is normally distributed with deviation [`DEVIATION`] at the points of a lattice, and linear
//! between them. It is a pure function of place and seed: no rank exchanges it, and a finer grid sees the same ground.
//!
//! There is no reference. What is compared is the water: at the end one rank reads all heads, adds up how much water the box has
//! gained, and compares with what came in over all steps.

use std::f64::consts::TAU;

use global_arrays::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Case, Check, Curve, Verdict};
use crate::cli::{Arguments, Cells};
use crate::grid::{Axis, Grid};
use crate::march::{Marched, Schedule};
use crate::medium::Medium;
use crate::problem::{Boundary, Problem};

/// Height, width, depth [m].
const SIZE: [f64; 3] = [3.0, 16.0, 16.0];
const CELLS: [usize; 3] = [15, 32, 32];
/// Distance of the lattice's points along each axis [m].
const CORRELATION: [f64; 3] = [0.5, 2.0, 2.0];
/// Of the natural logarithm of the conductivity.
const DEVIATION: f64 = 1.0;
/// Its median [m/s].
const CONDUCTIVITY: f64 = 5e-6;
const LOAM: Medium = Medium::VanGenuchten { alpha: 4.0, m: 0.375, residual: 0.08, saturated: 0.43, specific_storage: 0.0 };
/// Pressure head everywhere at time zero [m].
const INITIAL_HEAD: f64 = -1.5;
/// On the middle half of the width and of the depth [m/s]: 5 cm a day.
const RAIN: f64 = 5.787e-7;
/// [s]
const END_TIME: f64 = 2.0 * 86_400.0;
const FIRST_STEP: f64 = 10.0;

#[derive(Debug)]
pub(crate) struct Heterogeneous {
    grid: Grid,
    seed: u64,
    end_time: f64,
    first_step: f64,
    shortest_step: f64,
    accuracy: Option<f64>,
    tolerance: f64,
}

impl Heterogeneous {
    /// # Errors
    /// Not three numbers of cells.
    pub(crate) fn new(arguments: &Arguments) -> Result<Heterogeneous, String> {
        let cells = match arguments.cells.as_ref().map(|Cells(cells)| cells.as_slice()) {
            None => CELLS,
            Some(&[up, width, depth]) => [up, width, depth],
            Some(_) => return Err("heterogeneous needs three numbers of cells: up x across x across".into()),
        };
        let axis = |axis: usize| Axis::uniform(cells[axis], SIZE[axis]);
        let end_time = arguments.end_time.unwrap_or(END_TIME);
        Ok(Heterogeneous {
            grid: Grid { axes: [axis(0), axis(1), axis(2)] },
            seed: arguments.seed.unwrap_or(7),
            end_time,
            first_step: arguments.first_step.unwrap_or(FIRST_STEP).min(end_time),
            shortest_step: arguments.shortest_step(),
            accuracy: arguments.accuracy,
            tolerance: arguments.tolerance,
        })
    }

    /// The normally distributed number at a point of the lattice (Box and Muller).
    fn normal(&self, point: [u64; 3]) -> f64 {
        let place = (point[0] << 42) | (point[1] << 21) | point[2];
        // Both numbers are stirred, so that neighboring states give unlike streams.
        let stir = |x: u64| x.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Pcg64Mcg::seed_from_u64(stir(place) ^ stir(stir(self.seed)));
        let (a, b): (f64, f64) = (random.random(), random.random());
        (-2.0 * (1.0 - a).ln()).sqrt() * (TAU * b).cos()
    }
}

impl Problem for Heterogeneous {
    fn grid(&self) -> &Grid {
        &self.grid
    }

    fn medium(&self, _cell: [usize; 3]) -> Medium {
        LOAM
    }

    fn conductivity(&self, _axis: usize, cell: [usize; 3]) -> f64 {
        let place: [f64; 3] = std::array::from_fn(|axis| self.grid.axes[axis].centre(cell[axis]) / CORRELATION[axis]);
        let mut logarithm = 0.0;
        for corner in 0..8_u64 {
            let offsets = [corner & 1, corner >> 1 & 1, corner >> 2];
            let weight: f64 =
                (0..3).map(|axis| if offsets[axis] == 1 { place[axis].fract() } else { 1.0 - place[axis].fract() }).product();
            logarithm += weight * self.normal(std::array::from_fn(|axis| place[axis] as u64 + offsets[axis]));
        }
        CONDUCTIVITY * (DEVIATION * logarithm).exp()
    }

    fn boundary(&self, axis: usize, upper: bool, cell: [usize; 3], _time: f64) -> Boundary {
        let middle = |axis: usize| (0.25..0.75).contains(&(self.grid.axes[axis].centre(cell[axis]) / SIZE[axis]));
        match (axis, upper) {
            (0, false) => Boundary::Head(0.0),
            (0, true) if middle(1) && middle(2) => Boundary::Inflow(RAIN),
            _ => Boundary::Closed,
        }
    }

    fn initial_head(&self, _cell: [usize; 3]) -> f64 {
        INITIAL_HEAD
    }

    fn weight(&self) -> bool {
        true
    }

    fn linear(&self) -> bool {
        false
    }
}

impl Case for Heterogeneous {
    fn name(&self) -> String {
        "heterogeneous".into()
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            first_step: self.first_step,
            shortest_step: self.shortest_step,
            longest_step: f64::INFINITY,
            accuracy: self.accuracy,
            times: vec![self.end_time],
        }
    }

    /// All heads at the end [m].
    fn observe(&self, time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<Vec<f64>, Error> {
        if time < self.end_time {
            return Ok(Vec::new());
        }
        Ok(heads.get(..)?.into_iter().collect())
    }

    fn judge(&self, history: &[(f64, Vec<f64>)], marched: &Marched) -> Verdict {
        let [up, width, depth] = self.grid.extents();
        let heads = history.last().map_or(&[][..], |(_, heads)| heads.as_slice());
        let first = LOAM.at(INITIAL_HEAD).content;
        // All cells are alike.
        let volume = self.grid.volume([0; 3]);
        let gained: f64 = heads.iter().map(|&head| volume * (LOAM.at(head).content - first)).sum();
        let column = |j: usize, k: usize| {
            let head = move |i: usize| heads.get((i * width + j) * depth + k).copied().unwrap_or(f64::NAN);
            (0..up).map(move |i| (self.grid.axes[0].centre(i), head(i)))
        };
        let curve = |name: &str, j, k| Curve {
            name: name.into(),
            points: column(j, k).map(|(height, head)| (head, height)).collect(),
            dots: false,
        };
        Verdict {
            checks: vec![Check {
                key: "max_error",
                what: "water in the box against what came in",
                error: (gained - marched.inflow_volume).abs() / marched.moved,
                tolerance: self.tolerance + 1e-12,
                unit: "of what moved",
            }],
            figures: vec![("water_gained", gained)],
            columns: ["z_m", "head_under_rain_m", "head_at_edge_m"].map(String::from).to_vec(),
            rows: column(width / 2, depth / 2).zip(column(0, 0)).map(|((z, middle), (_, edge))| vec![z, middle, edge]).collect(),
            title: "Rain on the middle of a box of random conductivity".into(),
            axes: ("pressure head [m]", "height [m]"),
            curves: vec![curve("under the rain", width / 2, depth / 2), curve("at the edge", 0, 0)],
        }
    }
}
