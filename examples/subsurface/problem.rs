//! What a case tells the solver: the ground, its edges, its wells, and how it starts.

use crate::grid::Grid;
use crate::medium::Medium;

/// What happens at a face on the edge of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Boundary {
    /// Nothing passes.
    Closed,
    /// The pressure head at the face [m].
    Head(f64),
    /// What flows in [m/s].
    Inflow(f64),
}

/// A flow problem. Every method is a pure function, so all ranks see the same problem without exchanging it.
pub(crate) trait Problem: Sync {
    /// The cells.
    fn grid(&self) -> &Grid;

    /// The kind of ground in a cell.
    fn medium(&self, cell: [usize; 3]) -> Medium;

    /// Hydraulic conductivity of the saturated ground in a cell [m/s].
    fn conductivity(&self, cell: [usize; 3]) -> f64;

    /// What happens at the lower or upper face across `axis` of a cell at the edge.
    fn boundary(&self, axis: usize, upper: bool, cell: [usize; 3]) -> Boundary;

    /// What wells put into a cell [m³/s]; negative if they take.
    fn source(&self, _cell: [usize; 3]) -> f64 {
        0.0
    }

    /// Pressure head at time zero [m].
    fn initial_head(&self) -> f64;

    /// Whether axis 0 is vertical: then water flows down it by its weight.
    fn weight(&self) -> bool;

    /// Whether the equations are linear; their matrix is symmetric then.
    fn linear(&self) -> bool;
}
