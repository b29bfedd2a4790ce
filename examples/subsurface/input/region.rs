//! Boxes of cells, by coordinates.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use toml::Spanned;

use super::source::Source;
use crate::grid::{Axis, Grid};

/// The names of the axes of a [`Grid`], in its order.
pub(crate) const NAMES: [&str; 3] = ["z", "x", "y"];

/// Part of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Extent {
    /// The cell that holds this coordinate [m].
    At(f64),
    /// The cells whose middles are at or above the first coordinate and below the second [m].
    Between(f64, f64),
}

struct ExtentVisitor;

impl<'de> Visitor<'de> for ExtentVisitor {
    type Value = Extent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a coordinate, or a pair [from, to]")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Extent, E> {
        Ok(Extent::At(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Extent, E> {
        Ok(Extent::At(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Extent, A::Error> {
        let mut next = |place| numbers.next_element::<f64>()?.ok_or_else(|| A::Error::invalid_length(place, &ExtentVisitor));
        let (from, to) = (next(0)?, next(1)?);
        match numbers.next_element::<f64>()? {
            Some(_) => Err(A::Error::invalid_length(3, &self)),
            None => Ok(Extent::Between(from, to)),
        }
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtentVisitor)
    }
}

impl Extent {
    /// The cells of an axis that it means; none if it misses them.
    fn cells(self, axis: &Axis) -> Range<usize> {
        let count = axis.cells();
        match self {
            Extent::At(place) => holder(axis, place).map_or(0..0, |cell| cell..cell + 1),
            Extent::Between(from, to) => {
                let first = |bound: f64| (0..count).position(|cell| axis.centre(cell) >= bound).unwrap_or(count);
                first(from)..first(to)
            }
        }
    }
}

/// The cell that holds a coordinate: the lower one for a face between two.
pub(crate) fn holder(axis: &Axis, place: f64) -> Option<usize> {
    let [first, .., last] = axis.faces[..] else { return None };
    let inside = place >= first && place <= last;
    inside.then(|| axis.faces.partition_point(|&face| face < place).clamp(1, axis.cells()) - 1)
}

/// A box of cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Region {
    pub(crate) cells: [Range<usize>; 3],
}

impl Region {
    /// The box that `x`, `y` and `z` say; an axis that is left out is meant as a whole.
    ///
    /// # Errors
    /// A box without cells.
    pub(crate) fn new(source: &Source, grid: &Grid, [x, y, z]: [&Option<Spanned<Extent>>; 3]) -> Result<Region, String> {
        let extents = [z, x, y];
        let mut cells = grid.extents().map(|count| 0..count);
        for axis in 0..3 {
            let Some(extent) = extents[axis] else { continue };
            cells[axis] = extent.get_ref().cells(&grid.axes[axis]);
            if cells[axis].is_empty() {
                let (faces, name) = (&grid.axes[axis].faces, NAMES[axis]);
                let (first, last) = (faces[0], faces[faces.len() - 1]);
                let what = format!("{name}: no cell has its middle there; the grid reaches from {first} to {last} m");
                return Err(source.at(extent.span(), what));
            }
        }
        Ok(Region { cells })
    }

    pub(crate) fn contains(&self, cell: [usize; 3]) -> bool {
        (0..3).all(|axis| self.cells[axis].contains(&cell[axis]))
    }

    /// All its cells.
    pub(crate) fn iter(&self) -> impl Iterator<Item = [usize; 3]> + '_ {
        let [i, j, k] = &self.cells;
        i.clone().flat_map(move |i| j.clone().flat_map(move |j| k.clone().map(move |k| [i, j, k])))
    }
}

/// The middle of a cell, along the axes of the grid [m].
pub(crate) fn middle(grid: &Grid, cell: [usize; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| grid.axes[axis].centre(cell[axis]))
}
