//! The grid of a problem file.

use toml::Spanned;

use super::file::{AxisTable, GridTable};
use super::source::Source;
use crate::cli::MOST_CELLS;
use crate::grid::{Axis, Grid};

/// Cells of an axis with a `ratio` may differ by this factor.
const MOST_GROWTH: f64 = 1e9;

/// The grid; an axis that is left out has one cell of a meter.
///
/// # Errors
/// An axis that no combination of keys describes; too many cells.
pub(crate) fn grid(source: &Source, table: &GridTable) -> Result<Grid, String> {
    let tables = [&table.z, &table.x, &table.y];
    // Before any faces are made.
    let total = tables.iter().try_fold(1_usize, |product, table| product.checked_mul(cells(table)));
    if !matches!(total, Some(..=MOST_CELLS)) {
        return Err(source.whole(format!("the grid has more than {MOST_CELLS} cells")));
    }
    let axis = |table: &Option<Spanned<AxisTable>>| table.as_ref().map_or(Ok(Axis::uniform(1, 1.0)), |table| axis(source, table));
    Ok(Grid { axes: [axis(tables[0])?, axis(tables[1])?, axis(tables[2])?] })
}

/// How many cells an axis asks for.
fn cells(table: &Option<Spanned<AxisTable>>) -> usize {
    let Some(AxisTable { cells, faces, .. }) = table.as_ref().map(Spanned::get_ref) else { return 1 };
    match (cells, faces) {
        (Some(cells), _) => *cells.get_ref(),
        (None, Some(faces)) => faces.len(),
        (None, None) => 1,
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
            let cells = count(source, cells)?;
            if (cells as f64 * ratio.ln()).abs() > MOST_GROWTH.ln() {
                return Err(failed(&format!("ratio = {ratio} over {cells} cells: they may differ by {MOST_GROWTH:e} at most")));
            }
            Axis::geometric(cells, start, source.positive("length", length)?, ratio)
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
