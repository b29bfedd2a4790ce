//! The picture of a scaling study: time beside the ideal, efficiency, and what the time is spent on.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use super::measure::Row;
use super::output::{KINDS, efficiency, shares};

const SIZE: (u32, u32) = (1320, 440);
const INK: RGBColor = RGBColor(40, 44, 52);
const FAINT: RGBColor = RGBColor(225, 228, 232);
const BLUE: RGBColor = RGBColor(31, 105, 178);
/// Computing, then kinds of calls.
const COLOURS: [RGBColor; 8] = [
    RGBColor(190, 200, 210),
    BLUE,
    RGBColor(222, 122, 25),
    RGBColor(30, 140, 90),
    RGBColor(170, 60, 130),
    RGBColor(120, 90, 60),
    RGBColor(90, 170, 200),
    RGBColor(110, 110, 110),
];

type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// # Errors
/// The file cannot be written.
pub fn draw(file: &Path, title: &str, rows: &[Row]) -> Result<()> {
    // A font inside the program: none of the system is asked for. Done again it is an error that means "already there".
    let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    let mut text = String::new();
    paint(&mut text, title, rows).map_err(|error| anyhow!("cannot draw {}: {error}", file.display()))?;
    std::fs::write(file, text).map_err(|error| anyhow!("cannot write {}: {error}", file.display()))
}

type Failure = Box<dyn std::error::Error>;

fn paint(text: &mut String, title: &str, rows: &[Row]) -> Result<(), Failure> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(title, ("sans-serif", 18).into_font().color(&INK))?;
    let panels = area.split_evenly((1, 3));
    time(&panels[0], rows)?;
    efficiencies(&panels[1], rows)?;
    spent(&panels[2], rows)?;
    area.present()?;
    Ok(())
}

/// From the first to the last, with some room.
fn ranks(rows: &[Row]) -> std::ops::Range<f64> {
    let (first, last) = (rows[0].ranks as f64, rows[rows.len() - 1].ranks as f64);
    first / 1.3..last.max(2.0 * first) * 1.3
}

/// Without the digits that come of rounding.
fn seconds(seconds: &f64) -> String {
    format!("{seconds:.2e}").parse().map_or_else(|_| String::new(), |rounded: f64| rounded.to_string())
}

/// Whole numbers of ranks.
fn whole(ranks: &f64) -> String {
    format!("{ranks:.0}")
}

fn time(panel: &Panel<'_>, rows: &[Row]) -> Result<(), Failure> {
    let ideal = |row: &Row| rows[0].seconds * rows[0].ranks as f64 / row.ranks as f64;
    let all = rows.iter().flat_map(|row| [row.seconds, ideal(row)]);
    let (least, most) = all.fold((f64::MAX, f64::MIN), |(least, most), seconds| (least.min(seconds), most.max(seconds)));
    let mut chart = ChartBuilder::on(panel)
        .caption("virtual time", ("sans-serif", 14).into_font().color(&INK))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(ranks(rows).log_scale().base(2.0), (least / 1.5..most * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .x_desc("ranks")
        .y_desc("seconds")
        .x_label_formatter(&whole)
        .y_label_formatter(&seconds)
        .draw()?;
    let measured: Vec<(f64, f64)> = rows.iter().map(|row| (row.ranks as f64, row.seconds)).collect();
    let line = LineSeries::new(rows.iter().map(|row| (row.ranks as f64, ideal(row))), COLOURS[7]);
    chart.draw_series(line)?.label("ideal").legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], COLOURS[7]));
    chart.draw_series(LineSeries::new(measured.clone(), BLUE.stroke_width(2)))?;
    let dots = measured.into_iter().map(|point| Circle::new(point, 4, BLUE.filled()));
    chart.draw_series(dots)?.label("this program").legend(|(x, y)| Circle::new((x + 8, y), 4, BLUE.filled()));
    let corner = SeriesLabelPosition::LowerLeft;
    chart.configure_series_labels().position(corner).background_style(WHITE.mix(0.8)).border_style(FAINT).draw()?;
    Ok(())
}

fn efficiencies(panel: &Panel<'_>, rows: &[Row]) -> Result<(), Failure> {
    let points: Vec<(f64, f64)> =
        rows.iter().enumerate().map(|(at, row)| (row.ranks as f64, 100.0 * efficiency(rows, at))).collect();
    let most = points.iter().fold(100.0_f64, |most, point| most.max(point.1));
    let mut chart = ChartBuilder::on(panel)
        .caption("efficiency", ("sans-serif", 14).into_font().color(&INK))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(ranks(rows).log_scale().base(2.0), 0.0..1.05 * most)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .x_desc("ranks")
        .y_desc("%")
        .x_label_formatter(&whole)
        .draw()?;
    chart.draw_series(LineSeries::new(points.clone(), BLUE.stroke_width(2)))?;
    chart.draw_series(points.into_iter().map(|point| Circle::new(point, 4, BLUE.filled())))?;
    Ok(())
}

/// A bar for each number of ranks, of computing and the kinds of calls, one on the other.
fn spent(panel: &Panel<'_>, rows: &[Row]) -> Result<(), Failure> {
    let (kinds, shares) = shares(rows, KINDS);
    let count = rows.len() as f64;
    let (bars, legend) = panel.split_horizontally(270);
    let mut chart = ChartBuilder::on(&bars)
        .caption("spent on", ("sans-serif", 14).into_font().color(&INK))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(46)
        .build_cartesian_2d(0.0..count, 0.0..100.0)?;
    let name =
        |x: &f64| rows.get(x.floor() as usize).filter(|_| x.fract() != 0.0).map_or(String::new(), |row| row.ranks.to_string());
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .x_desc("ranks")
        .y_desc("% of the time")
        .x_labels(0)
        .x_label_formatter(&name)
        .draw()?;
    for (at, row) in rows.iter().enumerate() {
        let parts = std::iter::once(row.computing / row.seconds.max(f64::MIN_POSITIVE)).chain(shares[at].iter().copied());
        let mut from = 0.0;
        for (part, colour) in parts.zip(COLOURS) {
            let to = from + 100.0 * part;
            let corners = [(at as f64 + 0.1, from), (at as f64 + 0.9, to)];
            chart.draw_series([Rectangle::new(corners, colour.filled())])?;
            from = to;
        }
    }
    // The number of ranks below each bar.
    let width = f64::from(bars.dim_in_pixel().0 - 46 - 16);
    let bottom = bars.dim_in_pixel().1 as i32 - 40;
    let style = ("sans-serif", 12).into_font().color(&INK).pos(plotters::style::text_anchor::Pos::new(
        plotters::style::text_anchor::HPos::Center,
        plotters::style::text_anchor::VPos::Top,
    ));
    for (at, row) in rows.iter().enumerate() {
        let x = 54 + (width * (at as f64 + 0.5) / count) as i32;
        bars.draw(&Text::new(row.ranks.to_string(), (x, bottom), style.clone()))?;
    }
    for (at, (name, colour)) in std::iter::once("computing")
        .chain(kinds.iter().map(String::as_str))
        .zip(COLOURS)
        .enumerate()
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        let y = 40 + 22 * (kinds.len() - at) as i32;
        legend.draw(&Rectangle::new([(0, y), (14, y + 14)], colour.filled()))?;
        legend.draw(&Text::new(name.to_owned(), (20, y), ("sans-serif", 13).into_font().color(&INK)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        assert_eq!([0.009_000_000_000_000_001, 20.0, 0.000_3].map(|at| seconds(&at)), ["0.009", "20", "0.0003"]);
    }
}
