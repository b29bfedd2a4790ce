//! What a case tells the solver: the ground, its edges, its wells, and how it starts.

use serde::Deserialize;

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
    /// A leaky layer lies between the face and water outside.
    Leaky {
        /// Pressure head of that water at the height of the face [m].
        head: f64,
        /// Conductivity of the layer over its thickness [1/s].
        conductance: f64,
    },
}

/// The relative permeability of a face between two cells. Where the conductivities of the saturated ground differ, these
/// are resistances in series in any case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FacePermeability {
    /// That of the cell that the water comes from: heads stay monotone, the error is of first order in the spacing.
    #[default]
    Upstream,
    /// The mean of both cells: of second order. Sharp fronts need fine cells.
    Mean,
}

/// A flow problem. Every method is a pure function, so all ranks see the same problem without exchanging it.
pub(crate) trait Problem: Sync {
    /// The cells.
    fn grid(&self) -> &Grid;

    /// The kind of ground in a cell.
    fn medium(&self, cell: [usize; 3]) -> Medium;

    /// A number of it, for pictures.
    fn material(&self, _cell: [usize; 3]) -> usize {
        0
    }

    /// Hydraulic conductivity along `axis` of the saturated ground in a cell [m/s].
    fn conductivity(&self, axis: usize, cell: [usize; 3]) -> f64;

    /// What happens at the lower or upper face across `axis` of a cell at the edge, in a step that begins at `time` [s].
    fn boundary(&self, axis: usize, upper: bool, cell: [usize; 3], time: f64) -> Boundary;

    /// What wells put into a cell in a step that begins at `time` [m³/s]; negative if they take.
    fn source(&self, _cell: [usize; 3], _time: f64) -> f64 {
        0.0
    }

    /// Pressure head at time zero [m].
    fn initial_head(&self, cell: [usize; 3]) -> f64;

    /// Whether axis 0 is vertical: then water flows down it by its weight.
    fn weight(&self) -> bool;

    /// How the relative permeability of a face follows from its cells.
    fn face_permeability(&self) -> FacePermeability {
        FacePermeability::Upstream
    }

    /// Whether the equations are linear; their matrix is symmetric then.
    fn linear(&self) -> bool;
}
