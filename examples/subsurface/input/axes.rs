//! The grid of a problem file.

use toml::Spanned;

use super::file::{AxisTable, GridTable};
use super::source::Source;
use crate::cli::MOST_CELLS;
use crate::grid::{Axis, Grid};

/// The grid; an axis that is left out has one cell of a metre.
///
/// # Errors
/// An axis that no combination of keys describes; too many cells.
pub(crate) fn grid(source: &Source, table: &GridTable) -> Result<Grid, String> {
    let axis = |table: &Option<Spanned<AxisTable>>| table.as_ref().map_or(Ok(Axis::uniform(1, 1.0)), |table| axis(source, table));
    let grid = Grid { axes: [axis(&table.z)?, axis(&table.x)?, axis(&table.y)?] };
    let total = grid.extents().iter().try_fold(1_usize, |product, &cells| product.checked_mul(cells));
    match total {
        Some(..=MOST_CELLS) => Ok(grid),
        _ => Err(source.whole(format!("the grid has more than {MOST_CELLS} cells"))),
    }
}

/// One axis.
fn axis(source: &Source, table: &Spanned<AxisTable>) -> Result<Axis, String> {
    let failed = |what: &str| source.at(table.span(), format!("grid: {what}"));
    let AxisTable { cells, length, start, ratio, half_width, core, faces } = table.get_ref();
    let axis = match (cells, length, half_width, core, faces) {
        (None, None, None, None, Some(faces)) if start.is_none() && ratio.is_none() => Axis { faces: faces.clone() },
        (Some(cells), Some(length), None, None, None) => {
            let ratio = ratio.as_ref().map_or(Ok(1.0), |ratio| source.positive("ratio", ratio))?;
            let start = start.as_ref().map_or(Ok(0.0), |start| source.finite("start", start))?;
            Axis::geometric(count(source, cells)?, start, source.positive("length", length)?, ratio)
        }
        (Some(cells), None, Some(half_width), Some(core), None) if start.is_none() && ratio.is_none() => {
            let core = source.positive("core", core)?;
            Axis::graded(count(source, cells)?, source.positive("half_width", half_width)?, core)
        }
        _ => {
            return Err(failed(
                "an axis takes `cells` and `length` (with `start` and `ratio`), or `cells`, `half_width` and `core`, or `faces`",
            ));
        }
    };
    let ascends = axis.faces.windows(2).all(|pair| pair[0] < pair[1]) && axis.faces.iter().all(|face| face.is_finite());
    if axis.faces.len() >= 2 && ascends { Ok(axis) } else { Err(failed("an axis needs two faces or more, which ascend")) }
}

fn count(source: &Source, cells: &Spanned<usize>) -> Result<usize, String> {
    match *cells.get_ref() {
        count @ 1..=MOST_CELLS => Ok(count),
        count => Err(source.at(cells.span(), format!("cells = {count}: between 1 and {MOST_CELLS} are allowed"))),
    }
}
