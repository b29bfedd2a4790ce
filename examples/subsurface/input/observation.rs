//! Observation points of a problem file.

use toml::Spanned;

use super::file::ObservationTable;
use super::region::{NAMES, holder};
use super::source::Source;
use crate::grid::{Axis, Grid};

/// A point whose head is recorded: interpolated linearly along each axis between the middles of cells, and constant beyond the
/// outermost middles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    pub(crate) name: String,
    /// Along the axes of the grid [m].
    pub(crate) place: [f64; 3],
    /// The cell that holds the point.
    pub(crate) cell: [usize; 3],
    /// The cells between whose middles it lies.
    pub(crate) cells: [[usize; 3]; 8],
    pub(crate) weights: [f64; 8],
}

impl Observation {
    /// # Errors
    /// A name that is empty or that one of the others has; a point outside the grid; a coordinate that is left out along an axis
    /// of several cells.
    pub(crate) fn new(
        source: &Source,
        grid: &Grid,
        table: &Spanned<ObservationTable>,
        others: &[Observation],
    ) -> Result<Observation, String> {
        let ObservationTable { name, x, y, z } = table.get_ref();
        if name.get_ref().trim().is_empty() || others.iter().any(|other| other.name == *name.get_ref()) {
            let what = format!("name = \"{}\": each observation needs a name of its own", name.get_ref());
            return Err(source.at(name.span(), what));
        }
        let (mut place, mut cell, mut pairs) = ([0.0; 3], [0; 3], [([0; 2], 0.0); 3]);
        for (axis, given) in [z, x, y].into_iter().enumerate() {
            let (along, label) = (&grid.axes[axis], NAMES[axis]);
            place[axis] = match given {
                Some(number) => *number.get_ref(),
                None if along.cells() == 1 => along.centre(0),
                None => {
                    let what = format!("observation {}: {label} is missing", name.get_ref());
                    return Err(source.at(table.span(), what));
                }
            };
            let outside = || {
                let span = given.as_ref().map_or(table.span(), Spanned::span);
                source.at(span, format!("{label} = {}: the point lies outside the grid", place[axis]))
            };
            cell[axis] = holder(along, place[axis]).ok_or_else(outside)?;
            pairs[axis] = between(along, place[axis]);
        }
        let bit = |corner: usize, axis: usize| corner >> axis & 1;
        let cells = std::array::from_fn(|corner| std::array::from_fn(|axis| pairs[axis].0[bit(corner, axis)]));
        let weight = |corner: usize, axis: usize| if bit(corner, axis) == 1 { pairs[axis].1 } else { 1.0 - pairs[axis].1 };
        let weights = std::array::from_fn(|corner| (0..3).map(|axis| weight(corner, axis)).product());
        Ok(Observation { name: name.get_ref().clone(), place, cell, cells, weights })
    }
}

/// The two cells whose middles are around a coordinate, and the weight of the second.
fn between(axis: &Axis, place: f64) -> ([usize; 2], f64) {
    let behind = (0..axis.cells()).position(|cell| axis.centre(cell) > place);
    match behind {
        Some(0) => ([0, 0], 0.0),
        None => ([axis.cells() - 1; 2], 0.0),
        Some(cell) => {
            let (low, high) = (axis.centre(cell - 1), axis.centre(cell));
            ([cell - 1, cell], (place - low) / (high - low))
        }
    }
}
