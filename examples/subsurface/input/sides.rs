//! What a problem file says of the sides of the grid.

use toml::Spanned;

use super::file::BoundaryTable;
use super::formula::Constants;
use super::heads::Head;
use super::quantity::{Forms, Value};
use super::region::{NAMES, Region, middle};
use super::source::Source;
use crate::grid::Grid;
use crate::problem::Boundary;

/// The sides by name: axis, and whether the upper end of it.
const SIDES: [(&str, usize, bool); 6] =
    [("bottom", 0, false), ("top", 0, true), ("x_min", 1, false), ("x_max", 1, true), ("y_min", 2, false), ("y_max", 2, true)];

/// A side or part of it.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    axis: usize,
    upper: bool,
    region: Region,
    condition: Condition,
}

#[derive(Debug, Clone)]
enum Condition {
    Closed,
    Head(Head),
    Inflow(Value),
    Leaky { head: Head, conductance: f64 },
}

impl Side {
    /// # Errors
    /// A side that does not exist, a region beyond it, not exactly one condition, a value that is not finite on some face.
    pub(crate) fn new(
        source: &Source,
        grid: &Grid,
        table: &Spanned<BoundaryTable>,
        constants: &Constants,
        has_weight: bool,
    ) -> Result<Side, String> {
        let BoundaryTable { side, x, y, z, .. } = table.get_ref();
        let Some(&(name, axis, upper)) = SIDES.iter().find(|(name, ..)| name == side.get_ref()) else {
            let names = SIDES.map(|(name, ..)| name).join(", ");
            return Err(source.at(side.span(), format!("side = \"{}\": the sides are {names}", side.get_ref())));
        };
        if let Some(extent) = [z, x, y][axis] {
            let what = format!("{} says nothing on the side {name}: it lies across that axis", NAMES[axis]);
            return Err(source.at(extent.span(), what));
        }
        let mut region = Region::new(source, grid, [x, y, z])?;
        let last = grid.axes[axis].cells() - 1;
        region.cells[axis] = if upper { last..last + 1 } else { 0..1 };
        let condition = Condition::new(source, table, constants, has_weight)?;
        let side = Side { axis, upper, region, condition };
        side.check(grid).map_err(|what| source.at(table.span(), format!("side = \"{name}\": {what}")))?;
        Ok(side)
    }

    /// Finds a face at which the value is no number.
    fn check(&self, grid: &Grid) -> Result<(), String> {
        for cell in self.region.iter() {
            let value = match self.at(grid, cell, 0.0) {
                Boundary::Closed => return Ok(()),
                Boundary::Head(value) | Boundary::Inflow(value) | Boundary::Leaky { head: value, .. } => value,
            };
            if !value.is_finite() {
                let [z, x, y] = self.face(grid, cell);
                return Err(format!("the value is {value} at x = {x}, y = {y}, z = {z} m"));
            }
        }
        Ok(())
    }

    /// The middle of the face of a cell.
    fn face(&self, grid: &Grid, cell: [usize; 3]) -> [f64; 3] {
        let mut place = middle(grid, cell);
        place[self.axis] = grid.axes[self.axis].faces[cell[self.axis] + usize::from(self.upper)];
        place
    }

    /// Whether the face of a cell belongs to this part.
    pub(crate) fn covers(&self, axis: usize, upper: bool, cell: [usize; 3]) -> bool {
        axis == self.axis && upper == self.upper && self.region.contains(cell)
    }

    /// What happens at the face of a cell, in a step that begins at `time`.
    pub(crate) fn at(&self, grid: &Grid, cell: [usize; 3], time: f64) -> Boundary {
        let place = self.face(grid, cell);
        match &self.condition {
            Condition::Closed => Boundary::Closed,
            Condition::Head(head) => Boundary::Head(head.pressure(place, time)),
            Condition::Inflow(value) => Boundary::Inflow(value.at(place, time)),
            Condition::Leaky { head, conductance } => {
                Boundary::Leaky { head: head.pressure(place, time), conductance: *conductance }
            }
        }
    }

    /// When it changes [s].
    pub(crate) fn changes(&self) -> Vec<f64> {
        match &self.condition {
            Condition::Closed => Vec::new(),
            Condition::Inflow(value) => value.changes().collect(),
            Condition::Head(head) | Condition::Leaky { head, .. } => head.changes().collect(),
        }
    }
}

impl Condition {
    fn new(
        source: &Source,
        table: &Spanned<BoundaryTable>,
        constants: &Constants,
        has_weight: bool,
    ) -> Result<Condition, String> {
        let BoundaryTable { closed, pressure_head, head, inflow, leaky, .. } = table.get_ref();
        let heads = |given| Head::new(source, given, Forms::Both, constants, has_weight);
        let given = [closed.is_some(), pressure_head.is_some(), head.is_some(), inflow.is_some(), leaky.is_some()];
        let condition = match (closed, inflow, leaky) {
            _ if given.iter().filter(|given| **given).count() != 1 => None,
            (Some(true), ..) => Some(Condition::Closed),
            (_, Some(inflow), _) => Some(Condition::Inflow(Value::new(source, "inflow", inflow, Forms::Both, constants)?)),
            (_, _, Some(leaky)) => {
                let conductance = source.positive("conductance", &leaky.conductance)?;
                heads([None, Some(&leaky.head)])?.map(|head| Condition::Leaky { head, conductance })
            }
            _ => heads([pressure_head.as_ref(), head.as_ref()])?.map(Condition::Head),
        };
        let needed = "a boundary needs one of `closed = true`, `pressure_head`, `head`, `inflow` and `leaky`";
        condition.ok_or_else(|| source.at(table.span(), needed))
    }
}
