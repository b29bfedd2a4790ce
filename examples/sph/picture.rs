//! A frame as a PNG picture: particles seen from the side, colored by speed.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::case::{Case, GRAVITY, Kind, PLATES_FORCE, PLATES_VISCOSITY, VORTEX_SPEED};
use crate::particle::Particle;

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

/// Draws a frame and returns the file's contents.
///
/// # Errors
/// What the drawing library has to say.
pub(crate) fn draw<const D: usize>(case: &Case<D>, particles: &[Particle<D>], time: f64) -> Result<Vec<u8>, String> {
    let spacing = case.fluid.spacing;
    let edge = if case.walls.is_empty() { 0.0 } else { case.fluid.support() };
    let inside = [case.inside[0], case.inside[1]].map(|cells| cells as f64 * spacing + 2.0 * edge);
    let scale = (f64::from(WIDTH) / inside[0]).min(f64::from(TALLEST - HEAD) / inside[1]);
    let size = (WIDTH, HEAD + (scale * inside[1]).ceil() as u32);
    let mut pixels = vec![255_u8; 3 * size.0 as usize * size.1 as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        paint(&area, case, particles, time, (scale, edge, size)).map_err(|error| format!("cannot draw a frame: {error}"))?;
    }
    Ok(png(&pixels, size))
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, plotters::coord::Shift>;
type Failure = Box<dyn std::error::Error>;

fn paint<const D: usize>(
    area: &Area<'_>,
    case: &Case<D>,
    particles: &[Particle<D>],
    time: f64,
    (scale, edge, size): (f64, f64, (u32, u32)),
) -> Result<(), Failure> {
    // A font inside the program: none of the system is asked for. Done again it is an error that means "already there".
    let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    let fastest = fastest(case);
    let place = |at: &[f64; D]| {
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
    let mut order: Vec<&Particle<D>> = particles.iter().collect();
    if D > 2 {
        order.sort_by(|a, b| a.position[D - 1].total_cmp(&b.position[D - 1]));
    }
    for particle in order {
        let speed = particle.velocity.iter().map(|v| v * v).sum::<f64>().sqrt();
        area.draw(&Circle::new(place(&particle.position), radius, colour(speed / fastest).filled()))?;
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

/// The picture as a PNG file. Written here because the drawing library's way to a file does not tell when the disk is full.
///
/// # Source
/// *Portable Network Graphics (PNG) Specification*, W3C.
fn png(pixels: &[u8], (width, height): (u32, u32)) -> Vec<u8> {
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::fast());
    let mut compressed = || {
        for row in pixels.chunks(3 * width as usize) {
            // Each row begins with its filter: none.
            rows.write_all(&[0])?;
            rows.write_all(row)?;
        }
        rows.try_finish()
    };
    compressed().expect("memory takes all that is written");
    let data = rows.finish().expect("memory takes all that is written");
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // Eight bits, true colour, and the only methods there are.
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    for (kind, data) in [(b"IHDR", &header), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        file.extend_from_slice(&(data.len() as u32).to_be_bytes());
        let mut sum = Crc::new();
        sum.update(kind);
        sum.update(data);
        file.extend_from_slice(kind);
        file.extend_from_slice(data);
        file.extend_from_slice(&sum.sum().to_be_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_picture() {
        let file = png(&[1, 2, 3], (1, 1));
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        // The chunk that ends every PNG file.
        assert!(file.ends_with(b"\0\0\0\0IEND\xaeB`\x82"));
        let length = u32::from_be_bytes(file[33..37].try_into().unwrap()) as usize;
        let mut row = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&file[41..41 + length]), &mut row).unwrap();
        assert_eq!(row, [0, 1, 2, 3]);
    }

    #[test]
    fn a_gate_rises_out_of_the_picture() {
        use crate::case::{Column, Kind, Water};
        let picture = |gate, time| {
            let column = Column { gate, ..Column::plain([0.5, 1.0], [2.0, 1.5]) };
            draw(&Case::column(Kind::DamBreak, 0.05, column, Water::default()), &[], time).unwrap()
        };
        assert!(picture(Some(2.0), 0.0) != picture(None, 0.0));
        assert!(picture(Some(2.0), 5.0) == picture(None, 5.0));
    }

    #[test]
    fn colours_run_from_end_to_end() {
        assert_eq!((colour(-1.0), colour(2.0)), (RGBColor(68, 1, 84), RGBColor(253, 231, 37)));
    }
}
