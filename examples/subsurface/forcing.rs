//! What acts on the cells of a rank from outside: wells, and the faces on the edge of the grid that water passes.
//!
//! It stays the same within a step. A problem may change it at the times that its schedule lists.

use crate::field::Layout;
use crate::medium::Medium;
use crate::problem::{Boundary, Problem};

/// A face on the edge of the grid that water passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    /// Its cell, in a bordered array.
    pub(crate) n: usize,
    pub(crate) kind: EdgeKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum EdgeKind {
    /// Head outside, conductance between it and the middle of the cell [m²/s], height of the face over that middle [m].
    Head { head: f64, conductance: f64, rise: f64 },
    /// A leaky layer before water outside.
    Leaky {
        /// Pressure head of that water at the face, at least that of the air if the ground may be unsaturated [m].
        head: f64,
        /// Resistance of the half cell where it is saturated, for each unit of area [s].
        half: f64,
        /// That of the layer [s].
        layer: f64,
        /// [m²]
        area: f64,
        /// Height of the face over the middle of the cell [m].
        rise: f64,
        /// The water outside does not reach the face: none comes in.
        is_dry: bool,
    },
    /// [m³/s].
    Inflow(f64),
}

impl EdgeKind {
    /// The head outside and the height of the face, added up as magnitudes [m].
    pub(crate) fn magnitude(self) -> f64 {
        match self {
            EdgeKind::Head { head, rise, .. } | EdgeKind::Leaky { head, rise, .. } => head.abs() + rise.abs(),
            EdgeKind::Inflow(_) => 0.0,
        }
    }
}

/// Wells and edges of this rank's cells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forcing {
    /// What wells put into each cell [m³/s], as a bordered array.
    pub(crate) sources: Vec<f64>,
    pub(crate) edges: Vec<Edge>,
}

impl Forcing {
    /// What acts in a step that begins at `time`.
    pub(crate) fn new(problem: &dyn Problem, layout: &Layout, time: f64) -> Forcing {
        let mut forcing = Forcing { sources: vec![0.0; layout.len()], edges: Vec::new() };
        for (cell, n) in layout.cells() {
            forcing.sources[n] = problem.source(cell, time);
            for (axis, upper) in (0..3).flat_map(|axis| [(axis, false), (axis, true)]) {
                if cell[axis] == if upper { layout.extents[axis] - 1 } else { 0 } {
                    let boundary = problem.boundary(axis, upper, cell, time);
                    forcing.edges.extend(kind(problem, axis, upper, cell, boundary).map(|kind| Edge { n, kind }));
                }
            }
        }
        forcing
    }
}

/// The flow that a boundary lets through the face of a cell; nothing if it is closed.
fn kind(problem: &dyn Problem, axis: usize, upper: bool, cell: [usize; 3], boundary: Boundary) -> Option<EdgeKind> {
    let area = problem.grid().area(axis, cell);
    let width = problem.grid().axes[axis].width(cell[axis]);
    // Resistance of the half cell between its middle and the face, for each unit of area.
    let half = 0.5 * width / problem.conductivity(axis, cell);
    let outwards = if upper { 0.5 } else { -0.5 };
    let rise = if axis == 0 { f64::from(u8::from(problem.weight())) * outwards * width } else { 0.0 };
    match boundary {
        Boundary::Closed => None,
        Boundary::Inflow(rate) => Some(EdgeKind::Inflow(rate * area)),
        Boundary::Head(head) => Some(EdgeKind::Head { head, conductance: area / half, rise }),
        Boundary::Leaky { head, conductance } => {
            // Confined ground is always saturated, whatever the head; its equations stay linear.
            let is_confined = matches!(problem.medium(cell), Medium::Confined { .. });
            let (is_dry, head) = (!is_confined && head < 0.0, if is_confined { head } else { head.max(0.0) });
            Some(EdgeKind::Leaky { head, half, layer: conductance.recip(), area, rise, is_dry })
        }
    }
}
