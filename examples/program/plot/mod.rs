//! A picture of curves and points, as SVG or PNG by the file's name. It is drawn in memory and written whole.

mod png;

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::{file_names, whole_file};

const SIZE: (u32, u32) = (960, 600);
const INK: RGBColor = RGBColor(40, 44, 52);
const FAINT: RGBColor = RGBColor(225, 228, 232);
/// Told apart by readers who see few colours, too.
const COLOURS: [RGBColor; 5] =
    [RGBColor(31, 105, 178), RGBColor(222, 122, 25), RGBColor(30, 140, 90), RGBColor(170, 60, 130), RGBColor(110, 110, 110)];

/// What is drawn for one name in the legend.
#[derive(Debug, Clone)]
pub struct Series<'a> {
    /// Its line in the legend.
    pub name: &'a str,
    /// Abscissa and ordinate of each.
    pub points: Vec<(f64, f64)>,
    /// Dots for measurements, a line for what was computed.
    pub dots: bool,
}

/// What can be told of a picture's file before anything is computed.
///
/// # Errors
/// A name that ends neither in `.svg` nor in `.png`; a file that cannot be written.
pub fn check(file: &Path) -> Result<(), String> {
    if !matches!(ending(file), Some("svg" | "png")) {
        return Err(format!("cannot draw {}: its name must end in .svg or .png", file.display()));
    }
    file_names::check(&[("--plot", Some(file))], &[])
}

/// Draws `series` over common axes. Those of one name have one color, and one line in the legend.
///
/// # Errors
/// As [`check`]; a file that cannot be written, and then what stood there is left.
pub fn draw(file: &Path, title: &str, (x, y): (&str, &str), series: &[Series<'_>]) -> Result<(), String> {
    check(file)?;
    let failed = |what: &dyn std::fmt::Display| format!("cannot draw {}: {what}", file.display());
    if ending(file) == Some("svg") {
        let mut text = String::new();
        take_font();
        paint(&SVGBackend::with_string(&mut text, SIZE).into_drawing_area(), title, (x, y), series).map_err(|e| failed(&e))?;
        return whole_file::write(file, text.as_bytes());
    }
    whole_file::write(file, &bitmap(SIZE, |area| paint(area, title, (x, y), series)).map_err(|e| failed(&e))?)
}

/// Where a picture of pixels is painted.
pub type Bitmap<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

/// A PNG file of what `paint` puts on white.
///
/// # Errors
/// Those of `paint`.
pub fn bitmap<E>(size: (u32, u32), paint: impl FnOnce(&Bitmap<'_>) -> Result<(), E>) -> Result<Vec<u8>, E> {
    take_font();
    let mut pixels = vec![255; 3 * size.0 as usize * size.1 as usize];
    paint(&BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area())?;
    Ok(png::encode(&pixels, size))
}

/// Takes a font inside the program: none of the system is asked for. Done again it is an error that means "already there".
fn take_font() {
    let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
}

fn ending(file: &Path) -> Option<&str> {
    file.extension().and_then(|extension| extension.to_str())
}

fn paint<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    title: &str,
    (x, y): (&str, &str),
    series: &[Series<'_>],
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    area.fill(&WHITE)?;
    let points = || series.iter().flat_map(|series| &series.points).filter(|(x, y)| x.is_finite() && y.is_finite());
    let (across, up) = (range(points().map(|point| point.0)), range(points().map(|point| point.1)));
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 22).into_font().color(&INK))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(76)
        .build_cartesian_2d(across.clone(), up.clone())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .axis_style(INK)
        .label_style(("sans-serif", 15).into_font().color(&INK))
        .x_desc(x)
        .y_desc(y)
        .draw()?;
    let mut names: Vec<&str> = Vec::new();
    for series in series {
        let known = names.iter().position(|name| *name == series.name);
        let colour = COLOURS[known.unwrap_or(names.len()) % COLOURS.len()];
        if known.is_none() {
            names.push(series.name);
        }
        let points = series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
        if series.dots {
            let drawn = chart.draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?;
            if known.is_none() {
                drawn.label(series.name).legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
            }
        } else {
            let drawn = chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            if known.is_none() {
                let line = move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2));
                drawn.label(series.name).legend(line);
            }
        }
    }
    let legend = empty_corner(series, (across, up));
    chart
        .configure_series_labels()
        .border_style(FAINT)
        .background_style(WHITE.mix(0.85))
        .label_font(("sans-serif", 15).into_font().color(&INK))
        .position(legend)
        .draw()?;
    area.present()
}

/// Where the legend hides nothing of what is drawn; if it does so everywhere, where it usually is.
fn empty_corner(series: &[Series<'_>], (across, up): (Range<f64>, Range<f64>)) -> SeriesLabelPosition {
    /// What a legend takes of the width and of the height, about.
    const TAKES: (f64, f64) = (0.2, 0.2);
    /// Places that are looked at between two points of a line.
    const BETWEEN: usize = 20;
    let place = |(x, y): (f64, f64)| ((x - across.start) / (across.end - across.start), (y - up.start) / (up.end - up.start));
    let mut drawn: Vec<(f64, f64)> = Vec::new();
    for series in series {
        let points: Vec<(f64, f64)> = series.points.iter().map(|point| place(*point)).collect();
        drawn.extend(&points);
        for pair in points.windows(2).filter(|_| !series.dots) {
            let on_the_way = |k: usize| {
                let share = k as f64 / BETWEEN as f64;
                (pair[0].0 + share * (pair[1].0 - pair[0].0), pair[0].1 + share * (pair[1].1 - pair[0].1))
            };
            drawn.extend((1..BETWEEN).map(on_the_way));
        }
    }
    let hidden = |right: bool, upper: bool| {
        let inside =
            |(x, y): &(f64, f64)| (if right { 1.0 - x } else { *x }) < TAKES.0 && (if upper { 1.0 - y } else { *y }) < TAKES.1;
        drawn.iter().filter(|point| inside(point)).count()
    };
    let corners = [
        (hidden(true, true), SeriesLabelPosition::UpperRight),
        (hidden(false, true), SeriesLabelPosition::UpperLeft),
        (hidden(true, false), SeriesLabelPosition::LowerRight),
        (hidden(false, false), SeriesLabelPosition::LowerLeft),
    ];
    corners.into_iter().find(|corner| corner.0 == 0).map_or(SeriesLabelPosition::UpperRight, |corner| corner.1)
}

/// All values with some room at both ends.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return 0.0..1.0;
    }
    let room = if high > low { 0.04 * (high - low) } else { low.abs().max(1.0) * 0.04 };
    low - room..high + room
}
