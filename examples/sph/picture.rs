//! A frame as a PNG picture: particles seen from the side, colored by speed.

use ndarray::{Array2, ArrayView1};
use plotters::prelude::*;
use program::plot::{Bitmap, bitmap};

use crate::case::{Case, GRAVITY, Kind, PLATES_FORCE, PLATES_VISCOSITY, VORTEX_SPEED};

/// Pixels across, and most up and down.
const WIDTH: u32 = 1280;
const TALLEST: u32 = 960;
/// Pixels for title and scale.
const HEAD: u32 = 48;

/// Dark to bright, even to readers who see few colours: from Matplotlib's published table *viridis*, in steps of an eighth.
const COLOURS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// Draws a frame, from rows of position and velocity, and returns the file's contents.
///
/// # Errors
/// What the drawing library has to say.
pub(crate) fn draw<const D: usize>(case: &Case<D>, particles: &Array2<f64>, time: f64) -> Result<Vec<u8>, String> {
    let spacing = case.fluid.spacing;
    let edge = if case.walls.is_empty() { 0.0 } else { case.fluid.support() };
    let inside = [case.inside[0], case.inside[1]].map(|cells| cells as f64 * spacing + 2.0 * edge);
    let scale = (f64::from(WIDTH) / inside[0]).min(f64::from(TALLEST - HEAD) / inside[1]);
    let size = (WIDTH, HEAD + (scale * inside[1]).ceil() as u32);
    bitmap(size, |area| paint(area, case, particles, time, (scale, edge, size)))
        .map_err(|error| format!("cannot draw a frame: {error}"))
}

type Failure = Box<dyn std::error::Error>;

fn paint<const D: usize>(
    area: &Bitmap<'_>,
    case: &Case<D>,
    particles: &Array2<f64>,
    time: f64,
    (scale, edge, size): (f64, f64, (u32, u32)),
) -> Result<(), Failure> {
    let fastest = fastest(case);
    let place = |at: &[f64]| {
        let across = (at[0] + edge) * scale;
        (across as i32, size.1 as i32 - 1 - ((at[1] + edge) * scale) as i32)
    };
    let radius = (0.5 * scale * case.fluid.spacing).round() as i32;
    let grey = RGBColor(190, 190, 190);
    // The walls in front of and behind the water would hide it.
    for wall in case.walls.iter().filter(|wall| {
        D < 3 || wall.position[D - 1] > 0.0 && wall.position[D - 1] < case.inside[D - 1] as f64 * case.fluid.spacing
    }) {
        area.draw(&Circle::new(place(&wall.at(time)), radius, grey.filled()))?;
    }
    let mut order: Vec<ArrayView1<'_, f64>> = particles.rows().into_iter().collect();
    order.sort_by(|a, b| a[2].total_cmp(&b[2]));
    for particle in order {
        let speed = (3..6).map(|axis| particle[axis] * particle[axis]).sum::<f64>().sqrt();
        area.draw(&Circle::new(place(&[particle[0], particle[1]]), radius, colour(speed / fastest).filled()))?;
    }
    area.draw(&Rectangle::new([(0, 0), (size.0 as i32, HEAD as i32)], WHITE.filled()))?;
    let ink = ("sans-serif", 20).into_font().color(&RGBColor(40, 44, 52));
    area.draw(&Text::new(format!("t = {time:.4} s"), (16, 14), ink.clone()))?;
    area.draw(&Text::new("speed in m/s   0", (size.0 as i32 - 470, 14), ink.clone()))?;
    for k in 0..200 {
        let x = size.0 as i32 - 310 + k;
        area.draw(&Rectangle::new([(x, 14), (x + 1, 34)], colour(f64::from(k) / 200.0).filled()))?;
    }
    area.draw(&Text::new(format!("{fastest:.3}"), (size.0 as i32 - 96, 14), ink))?;
    area.present()?;
    Ok(())
}

/// The speed at the bright end of the scale, the same in all frames.
fn fastest<const D: usize>(case: &Case<D>) -> f64 {
    let fall = (2.0 * GRAVITY * case.column_height()).sqrt();
    match case.kind {
        Kind::DamBreak => fall,
        Kind::Hydrostatic => 0.02 * fall,
        Kind::TaylorGreen => VORTEX_SPEED,
        Kind::Poiseuille => PLATES_FORCE * case.column_height().powi(2) / (8.0 * PLATES_VISCOSITY),
    }
}

fn colour(share: f64) -> RGBColor {
    let at = share.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let below = (at as usize).min(COLOURS.len() - 2);
    let mix = |k: usize| {
        let (a, b) = (f64::from(COLOURS[below][k]), f64::from(COLOURS[below + 1][k]));
        (a + (b - a) * (at - below as f64)).round() as u8
    };
    RGBColor(mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_rises_out_of_the_picture() {
        use crate::case::{Column, Kind, Water};
        let picture = |gate, time| {
            let column = Column { gate, ..Column::plain([0.5, 1.0], [2.0, 1.5]) };
            draw(&Case::column(Kind::DamBreak, 0.05, column, Water::default()), &Array2::zeros((0, 6)), time).unwrap()
        };
        assert!(picture(Some(2.0), 0.0) != picture(None, 0.0));
        assert!(picture(Some(2.0), 5.0) == picture(None, 5.0));
    }

    #[test]
    fn colours_run_from_end_to_end() {
        assert_eq!((colour(-1.0), colour(2.0)), (RGBColor(68, 1, 84), RGBColor(253, 231, 37)));
    }
}
