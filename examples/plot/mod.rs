//! A picture of curves and points, as SVG or PNG by the file's name.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

const SIZE: (u32, u32) = (960, 600);
const INK: RGBColor = RGBColor(40, 44, 52);
const FAINT: RGBColor = RGBColor(225, 228, 232);
/// Told apart by readers who see few colours, too.
const COLOURS: [RGBColor; 5] =
    [RGBColor(31, 105, 178), RGBColor(222, 122, 25), RGBColor(30, 140, 90), RGBColor(170, 60, 130), RGBColor(110, 110, 110)];

/// What is drawn for one name in the legend.
#[derive(Debug, Clone)]
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: Vec<(f64, f64)>,
    /// Dots for measurements, a line for what was computed.
    pub(crate) dots: bool,
}

/// Draws `series` over common axes.
///
/// # Errors
/// A file that cannot be written, or a name that ends neither in `.svg` nor in `.png`.
pub(crate) fn draw(file: &Path, title: &str, (x, y): (&str, &str), series: &[Series<'_>]) -> Result<(), String> {
    // A font inside the program: none of the system is asked for. Done again it is an error that means "already there".
    let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    let failed = |what: &dyn std::fmt::Display| format!("cannot draw {}: {what}", file.display());
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => paint(&SVGBackend::new(file, SIZE).into_drawing_area(), title, (x, y), series).map_err(|e| failed(&e)),
        Some("png") => paint(&BitMapBackend::new(file, SIZE).into_drawing_area(), title, (x, y), series).map_err(|e| failed(&e)),
        _ => Err(failed(&"its name must end in .svg or .png")),
    }
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
        .build_cartesian_2d(across, up)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(FAINT)
        .axis_style(INK)
        .label_style(("sans-serif", 15).into_font().color(&INK))
        .x_desc(x)
        .y_desc(y)
        .draw()?;
    for (series, colour) in series.iter().zip(COLOURS.into_iter().cycle()) {
        let points = series.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite());
        if series.dots {
            chart
                .draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))?
                .label(series.name)
                .legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
        } else {
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
                .label(series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        }
    }
    chart
        .configure_series_labels()
        .border_style(FAINT)
        .background_style(WHITE.mix(0.85))
        .label_font(("sans-serif", 15).into_font().color(&INK))
        .position(SeriesLabelPosition::UpperRight)
        .draw()?;
    area.present()
}

/// All values with some room at both ends.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return 0.0..1.0;
    }
    let room = if high > low { 0.04 * (high - low) } else { low.abs().max(1.0) * 0.04 };
    low - room..high + room
}
