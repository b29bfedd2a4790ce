//! Heads of a problem file: of pressure, or hydraulic (pressure head and height together).

use toml::Spanned;

use super::file::InitialTable;
use super::formula::Constants;
use super::quantity::{Forms, Quantity, Value};
use super::region::{Region, middle};
use super::source::Source;
use crate::grid::Grid;

/// A head as a function of place and time.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    value: Value,
    /// The value is the hydraulic head, and height counts.
    is_hydraulic: bool,
}

impl Head {
    /// From `pressure_head` or `head`, whichever is given; nothing if neither or both are.
    ///
    /// # Errors
    /// What is wrong with the value.
    pub(crate) fn new(
        source: &Source,
        [pressure_head, head]: [Option<&Spanned<Quantity>>; 2],
        forms: Forms,
        constants: &Constants,
        has_weight: bool,
    ) -> Result<Option<Head>, String> {
        let value = |key, quantity| Value::new(source, key, quantity, forms, constants);
        match (pressure_head, head) {
            (Some(quantity), None) => Ok(Some(Head { value: value("pressure_head", quantity)?, is_hydraulic: false })),
            (None, Some(quantity)) => Ok(Some(Head { value: value("head", quantity)?, is_hydraulic: has_weight })),
            _ => Ok(None),
        }
    }

    /// The pressure head at a place, in a step that begins at `time` [m].
    pub(crate) fn pressure(&self, place: [f64; 3], time: f64) -> f64 {
        self.value.at(place, time) - if self.is_hydraulic { place[0] } else { 0.0 }
    }

    /// When it changes [s].
    pub(crate) fn changes(&self) -> impl Iterator<Item = f64> + '_ {
        self.value.changes()
    }
}

/// The heads at time zero.
#[derive(Debug, Clone)]
pub(crate) struct Initial {
    default: Head,
    /// Later ones override earlier ones.
    regions: Vec<(Region, Head)>,
}

impl Initial {
    /// # Errors
    /// A table without exactly one head; what is wrong with values and regions.
    pub(crate) fn new(
        source: &Source,
        grid: &Grid,
        table: &Spanned<InitialTable>,
        constants: &Constants,
        has_weight: bool,
    ) -> Result<Initial, String> {
        let head = |pressure_head: &Option<_>, head: &Option<_>, span| {
            let given = [pressure_head.as_ref(), head.as_ref()];
            let needed = || source.at(span, "initial: one of `pressure_head` and `head` is needed");
            Head::new(source, given, Forms::Formula, constants, has_weight)?.ok_or_else(needed)
        };
        let InitialTable { pressure_head, head: hydraulic, regions: tables } = table.get_ref();
        let default = head(pressure_head, hydraulic, table.span())?;
        let mut regions = Vec::new();
        let place = |pressure_head: &Option<Spanned<Quantity>>, head: &Option<Spanned<Quantity>>| match (pressure_head, head) {
            (Some(quantity), _) => ("pressure_head", quantity.span()),
            (None, Some(quantity)) => ("head", quantity.span()),
            (None, None) => ("initial", table.span()),
        };
        // Where each stands in the file.
        let mut places = vec![place(pressure_head, hydraulic)];
        for table in tables {
            let region = table.get_ref();
            let cells = Region::new(source, grid, [&region.x, &region.y, &region.z])?;
            regions.push((cells, head(&region.pressure_head, &region.head, table.span())?));
            places.push(place(&region.pressure_head, &region.head));
        }
        let initial = Initial { default, regions };
        let Some((value, [z, x, y], number)) = initial.not_finite(grid) else { return Ok(initial) };
        let (key, span) = places.swap_remove(number);
        Err(source.at(span, format!("initial: {key}: the value is {value} at x = {x}, y = {y}, z = {z} m")))
    }

    /// A cell whose head is no number: the value, the middle of the cell, and which of the heads it has, from the default on.
    fn not_finite(&self, grid: &Grid) -> Option<(f64, [f64; 3], usize)> {
        let mut heads = std::iter::once(&self.default).chain(self.regions.iter().map(|(_, head)| head));
        if heads.all(|head| matches!(head.value, Value::Number(_))) {
            return None;
        }
        let cells = Region { cells: grid.extents().map(|count| 0..count) };
        let bad = cells.iter().map(|cell| (self.pressure(grid, cell), cell)).find(|(value, _)| !value.is_finite());
        bad.map(|(value, cell)| {
            let number = self.regions.iter().rposition(|(region, _)| region.contains(cell));
            (value, middle(grid, cell), number.map_or(0, |number| number + 1))
        })
    }

    /// Pressure head of a cell [m].
    pub(crate) fn pressure(&self, grid: &Grid, cell: [usize; 3]) -> f64 {
        let head = self.regions.iter().rev().find(|(region, _)| region.contains(cell)).map_or(&self.default, |(_, head)| head);
        head.pressure(middle(grid, cell), 0.0)
    }
}
