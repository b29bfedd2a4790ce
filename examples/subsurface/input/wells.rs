//! The wells of a problem file.

use toml::Spanned;

use super::file::WellTable;
use super::formula::Constants;
use super::ground::Ground;
use super::quantity::{Forms, Value};
use super::region::Region;
use super::source::Source;
use crate::grid::Grid;

/// A well. Its cells share the rate in proportion to their volume and their conductivity along x.
#[derive(Debug, Clone)]
pub(crate) struct Well {
    region: Region,
    /// [m³/s]
    rate: Value,
    /// Sum of the products of volume and conductivity.
    total: f64,
}

impl Well {
    /// # Errors
    /// A box without cells, a rate that is none.
    pub(crate) fn new(
        source: &Source,
        grid: &Grid,
        ground: &Ground,
        table: &Spanned<WellTable>,
        constants: &Constants,
    ) -> Result<Well, String> {
        let WellTable { x, y, z, rate } = table.get_ref();
        let region = Region::new(source, grid, [x, y, z])?;
        let rate = Value::new(source, "rate", rate, Forms::Schedule, constants)?;
        let total = region.iter().map(|cell| share(grid, ground, cell)).sum();
        Ok(Well { region, rate, total })
    }

    /// What it puts into a cell, in a step that begins at `time` [m³/s].
    pub(crate) fn source(&self, grid: &Grid, ground: &Ground, cell: [usize; 3], time: f64) -> f64 {
        if !self.region.contains(cell) {
            return 0.0;
        }
        self.rate.at([0.0; 3], time) * (share(grid, ground, cell) / self.total)
    }

    /// When its rate changes [s].
    pub(crate) fn changes(&self) -> impl Iterator<Item = f64> + '_ {
        self.rate.changes()
    }
}

fn share(grid: &Grid, ground: &Ground, cell: [usize; 3]) -> f64 {
    grid.volume(cell) * ground.material(cell).conductivity[1]
}
