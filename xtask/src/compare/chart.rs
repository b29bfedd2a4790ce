//! The picture: for each row our speed over the limit's and over the best peer's, on a logarithmic axis. Rows that have neither,
//! those inside a node under `mpirun`, stand in the table alone.

use super::goals::{Goal, Row};
use super::mpi::Place;
use super::results::Results;
use super::table::number;
use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};
use std::path::Path;

const WIDTH: u32 = 1200;
const LABELS: i32 = 290;
const RIGHT: i32 = 190;
/// Columns of figures, right of the axis.
const LIMIT_COLUMN: i32 = WIDTH as i32 - 100;
const PEER_COLUMN: i32 = WIDTH as i32 - 24;
const TOP: i32 = 96;
const BOTTOM: i32 = 40;
const LINE: i32 = 21;
const BETWEEN_GROUPS: i32 = 12;
/// Ratios outside are drawn at the edge; their figures stand in the columns.
const LOWEST: f64 = 0.05;
const HIGHEST: f64 = 1200.0;

const INK: RGBColor = RGBColor(40, 44, 52);
const FAINT: RGBColor = RGBColor(225, 228, 232);
const LIMIT: RGBColor = RGBColor(31, 105, 178);
const PEER: RGBColor = RGBColor(222, 122, 25);

/// Writes `compare.svg` and `compare.png`.
pub fn draw(results: &Results, folder: &Path) -> Result<()> {
    // Done again it is an error that means "already there".
    let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    let rows: Vec<&Row> = results.rows().filter(|row| !matches!(row.place, Place::Inside(_))).collect();
    let size = (WIDTH, height(&rows) as u32);
    let (svg, png) = (folder.join("compare.svg"), folder.join("compare.png"));
    paint(&SVGBackend::new(&svg, size).into_drawing_area(), results, &rows)
        .with_context(|| format!("cannot draw {}", svg.display()))?;
    paint(&BitMapBackend::new(&png, size).into_drawing_area(), results, &rows)
        .with_context(|| format!("cannot draw {}", png.display()))
}

fn height(rows: &[&Row]) -> i32 {
    let breaks = rows.windows(2).filter(|pair| pair[0].section() != pair[1].section()).count() as i32;
    TOP + LINE * rows.len() as i32 + BETWEEN_GROUPS * breaks + BOTTOM
}

/// Where a ratio stands on the axis.
fn across(ratio: f64) -> i32 {
    let span = f64::from(WIDTH as i32 - LABELS - RIGHT);
    let part = (ratio.clamp(LOWEST, HIGHEST) / LOWEST).log10() / (HIGHEST / LOWEST).log10();
    LABELS + (span * part).round() as i32
}

fn paint<B: DrawingBackend>(area: &DrawingArea<B, Shift>, results: &Results, rows: &[&Row]) -> Result<()>
where
    B::ErrorType: 'static,
{
    let all = || -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        area.fill(&WHITE)?;
        heading(area)?;
        axis(area, height(rows) - BOTTOM)?;
        let mut y = TOP + LINE / 2;
        for (k, row) in rows.iter().enumerate() {
            if k > 0 && rows[k - 1].section() != row.section() {
                let middle = y - LINE / 2 + BETWEEN_GROUPS / 2;
                area.draw(&PathElement::new([(20, middle), (WIDTH as i32 - 20, middle)], FAINT))?;
                y += BETWEEN_GROUPS;
            }
            line(area, results, row, y)?;
            y += LINE;
        }
        area.present()
    };
    all().map_err(|error| anyhow!("{error}"))
}

type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

fn text<B: DrawingBackend>(area: &DrawingArea<B, Shift>, what: &str, at: (i32, i32), size: i32, side: HPos) -> Drawn<B> {
    let style = ("sans-serif", size).into_font().color(&INK).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(what.to_owned(), at, style))
}

fn heading<B: DrawingBackend>(area: &DrawingArea<B, Shift>) -> Drawn<B> {
    text(area, "global-arrays: our speed over theirs (right of 1 we are faster)", (20, 24), 22, HPos::Left)?;
    area.draw(&Circle::new((28, 56), 5, LIMIT.filled()))?;
    text(area, "plain C, OpenBLAS (the limit)", (42, 56), 16, HPos::Left)?;
    area.draw(&diamond((298, 56), PEER))?;
    text(area, "best peer (MPI, Global Arrays, ScaLAPACK, HPC Challenge, LAMMPS, PySPH)", (312, 56), 16, HPos::Left)?;
    area.draw(&PathElement::new([(860, 48), (860, 64)], LIMIT.stroke_width(2)))?;
    text(area, "goal against the limit", (870, 56), 16, HPos::Left)?;
    text(area, "limit", (LIMIT_COLUMN, TOP - 16), 15, HPos::Right)?;
    text(area, "best peer", (PEER_COLUMN, TOP - 16), 15, HPos::Right)
}

fn axis<B: DrawingBackend>(area: &DrawingArea<B, Shift>, bottom: i32) -> Drawn<B> {
    for ratio in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0] {
        let x = across(ratio);
        let colour = if ratio == 1.0 { INK } else { FAINT };
        area.draw(&PathElement::new([(x, TOP - 6), (x, bottom)], colour))?;
        for y in [TOP - 16, bottom + 14] {
            text(area, &ratio.to_string(), (x, y), 14, HPos::Center)?;
        }
    }
    Ok(())
}

fn diamond((x, y): (i32, i32), colour: RGBColor) -> Polygon<(i32, i32)> {
    Polygon::new([(x - 6, y), (x, y - 6), (x + 6, y), (x, y + 6)], colour.filled())
}

fn line<B: DrawingBackend>(area: &DrawingArea<B, Shift>, results: &Results, row: &Row, y: i32) -> Drawn<B> {
    text(area, row.op, (20, y), 16, HPos::Left)?;
    let shape = match row.place {
        Place::Here | Place::Inside(_) => row.shape.to_owned(),
        Place::Between(library) => format!("{}, {}", row.shape, library.source().title()),
    };
    text(area, &shape, (LABELS - 16, y), 16, HPos::Right)?;
    let (left, right) = (across(LOWEST), across(HIGHEST));
    area.draw(&PathElement::new([(left, y), (right, y)], FAINT))?;
    for goal in row.goals {
        let least = match *goal {
            Goal::Limit(least) => least,
            Goal::LimitTime(most) => 1.0 / most,
            _ => continue,
        };
        let x = across(least);
        area.draw(&PathElement::new([(x, y - 8), (x, y + 8)], LIMIT.stroke_width(2)))?;
    }
    if let Some(ratio) = results.over_peer(row) {
        area.draw(&diamond((across(ratio), y), PEER))?;
        text(area, &number(ratio), (PEER_COLUMN, y), 15, HPos::Right)?;
    }
    if let Some(ratio) = results.over_limit(row) {
        area.draw(&Circle::new((across(ratio), y), 5, LIMIT.filled()))?;
        text(area, &number(ratio), (LIMIT_COLUMN, y), 15, HPos::Right)?;
    }
    Ok(())
}
