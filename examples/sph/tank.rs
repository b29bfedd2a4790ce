//! Tanks of water: a box that is open above, a gate that holds the column back, and obstacles, all made of particles that
//! continue the lattice of the fluid, as deep as the kernel reaches.

use crate::particle::Fluid;

/// A particle of a wall.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wall<const D: usize> {
    /// Where it is at first.
    pub(crate) position: [f64; D],
    /// Components of the velocity that the wall resists by the viscosity. Past the others water slips, with skin friction.
    pub(crate) held: [bool; D],
    /// Speed at which it rises, in m/s, if it is part of a gate.
    pub(crate) lift: f64,
}

impl<const D: usize> Wall<D> {
    /// Where it is at a time.
    #[inline(always)]
    pub(crate) fn at(&self, time: f64) -> [f64; D] {
        let mut position = self.position;
        position[1] += self.lift * time;
        position
    }
}

/// A box, in meters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Block<const D: usize> {
    pub(crate) low: [f64; D],
    pub(crate) high: [f64; D],
}

impl<const D: usize> Block<D> {
    /// Whether a point is inside.
    #[inline(always)]
    pub(crate) fn holds(&self, point: &[f64; D]) -> bool {
        (0..D).all(|axis| self.low[axis] < point[axis] && point[axis] < self.high[axis])
    }

    /// Whether two boxes have more in common than a face.
    pub(crate) fn meets(&self, other: &Block<D>) -> bool {
        (0..D).all(|axis| self.low[axis] < other.high[axis] && other.low[axis] < self.high[axis])
    }

    /// The face that is nearest to a point inside, out of those that do not lie on a wall of the tank: its axis, and where it is.
    #[inline(always)]
    pub(crate) fn nearest_face(&self, point: &[f64; D], tank: &[f64; D]) -> Option<(usize, f64)> {
        let mut nearest = None;
        let mut least = f64::INFINITY;
        for axis in 0..D {
            let (low, high) = (self.low[axis], self.high[axis]);
            let faces = [(low, low > 0.0), (high, axis == 1 || high < tank[axis])];
            for (face, _) in faces.into_iter().filter(|face| face.1) {
                let depth = (point[axis] - face).abs();
                if depth < least {
                    (nearest, least) = (Some((axis, face)), depth);
                }
            }
        }
        nearest
    }
}

/// Layers of wall particles: as many as the kernel sees.
pub(crate) fn layers<const D: usize>(fluid: &Fluid<D>) -> usize {
    // Not one more for rounding.
    (fluid.support() / fluid.spacing - 1e-9).ceil() as usize
}

/// The cells of the lattice around a box of `inside` cells, on the sides that are closed. Walls that `slip` hold what moves towards them.
pub(crate) fn walls<const D: usize>(
    spacing: f64,
    layers: usize,
    inside: [usize; D],
    closed: [(bool, bool); D],
    slip: bool,
) -> Vec<Wall<D>> {
    let first: [usize; D] = closed.map(|(low, _)| if low { layers } else { 0 });
    let shape: [usize; D] = std::array::from_fn(|axis| first[axis] + inside[axis] + if closed[axis].1 { layers } else { 0 });
    let mut walls = Vec::new();
    for cell in cells(shape) {
        let outside: [bool; D] = std::array::from_fn(|axis| !(first[axis]..first[axis] + inside[axis]).contains(&cell[axis]));
        if outside.contains(&true) {
            let position = std::array::from_fn(|axis| (cell[axis] as f64 - first[axis] as f64 + 0.5) * spacing);
            walls.push(Wall { position, held: if slip { outside } else { [true; D] }, lift: 0.0 });
        }
    }
    walls
}

/// A gate in front of a column of so many cells, which rises at `lift`: as thick as the kernel reaches, higher than the column by as
/// much, on the bed at first. It does not hold what moves along it.
pub(crate) fn gate<const D: usize>(fluid: &Fluid<D>, column: [usize; D], lift: f64) -> impl Iterator<Item = Wall<D>> {
    let mut shape = column;
    (shape[0], shape[1]) = (layers(fluid), column[1] + layers(fluid));
    let held = std::array::from_fn(|axis| axis == 0);
    cells(shape).map(move |mut cell| {
        cell[0] += column[0];
        Wall { position: middle(cell, fluid.spacing), held, lift }
    })
}

/// An obstacle, to whole cells: the lattice inside of it.
pub(crate) fn obstacle<const D: usize>(
    spacing: f64,
    block: Block<D>,
    tank: [f64; D],
    slip: bool,
) -> impl Iterator<Item = Wall<D>> {
    let first: [usize; D] = block.low.map(|low| (low / spacing).round() as usize);
    let shape: [usize; D] =
        std::array::from_fn(|axis| ((block.high[axis] / spacing).round() as usize).saturating_sub(first[axis]));
    cells(shape).map(move |cell| {
        let position = middle(std::array::from_fn(|axis: usize| cell[axis] + first[axis]), spacing);
        let face = block.nearest_face(&position, &tank);
        let held = std::array::from_fn(|axis| !slip || face.is_none_or(|face| face.0 == axis));
        Wall { position, held, lift: 0.0 }
    })
}

/// The middle of a cell.
fn middle<const D: usize>(cell: [usize; D], spacing: f64) -> [f64; D] {
    cell.map(|place| (place as f64 + 0.5) * spacing)
}

/// All cells of a block of a lattice, the first axis running fastest.
fn cells<const D: usize>(shape: [usize; D]) -> impl Iterator<Item = [usize; D]> {
    (0..shape.iter().product()).map(move |number: usize| {
        let mut rest = number;
        std::array::from_fn(|axis| {
            let cell = rest % shape[axis];
            rest /= shape[axis];
            cell
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Column, Kind, Water};
    use crate::cells::{Cells, Places};
    use crate::forces;
    use crate::particle::Particle;

    fn case(gate: Option<f64>, obstacles: Vec<Block<2>>) -> Case<2> {
        let column = Column { extent: [1.0, 2.0], tank: [3.0, 2.5], gate, obstacles };
        Case::column(Kind::DamBreak, 0.1, column, Water::default())
    }

    #[test]
    fn a_gate_rises_in_front_of_the_column() {
        let case = case(Some(2.0), Vec::new());
        let gate: Vec<_> = case.walls.iter().filter(|wall| wall.lift > 0.0).collect();
        assert_eq!(gate.len(), 3 * 23);
        assert!(gate.iter().all(|wall| wall.lift == 2.0 && wall.held == [true, false]));
        approx::assert_relative_eq!(gate[0].at(0.0)[..], [1.05, 0.05], max_relative = 1e-12);
        approx::assert_relative_eq!(gate[0].at(0.5)[..], [1.05, 1.05], max_relative = 1e-12);
    }

    #[test]
    fn obstacles_hold_what_moves_towards_their_faces() {
        let block = Block { low: [2.0, 0.0], high: [2.5, 0.4] };
        let case = case(None, vec![block]);
        let inside: Vec<_> = case.walls.iter().filter(|wall| block.holds(&wall.position)).collect();
        assert_eq!(inside.len(), 5 * 4);
        let held = |at: [f64; 2]| {
            let wall = inside.iter().find(|wall| (0..2).all(|axis| (wall.position[axis] - at[axis]).abs() < 1e-9));
            wall.map(|wall| wall.held).unwrap()
        };
        assert_eq!(held([2.05, 0.05]), [true, false]);
        assert_eq!(held([2.25, 0.35]), [false, true]);
        // The lower face lies on the bed.
        assert_eq!(held([2.05, 0.15]), [true, false]);
        let mut particle = case.particle(0);
        (particle.position, particle.velocity) = ([2.01, 0.2], [3.0, 1.0]);
        case.keep_inside(&mut particle);
        assert_eq!((particle.position, particle.velocity), ([2.0, 0.2], [0.0, 1.0]));
    }

    /// The force of a bed on uniform flow over it, for each square meter of bed, over ½ρu².
    fn friction<const D: usize>(spacing: f64, extent: [f64; D]) -> f64 {
        let case = Case::column(Kind::DamBreak, spacing, Column::plain(extent, extent), Water::default());
        let still = |id| Particle { density: case.fluid.density, ..case.particle(id) };
        let mut particles: Vec<_> = (0..case.particles()).map(still).collect();
        particles.iter_mut().for_each(|particle| particle.velocity[0] = 1.5);
        let mut cells = Cells::new();
        let all = particles.len();
        let mut places = Places::new(&case.fluid);
        places.note_rest(&particles, 0, &[]);
        let _ = cells.build(&case.fluid, &particles, all, &places, &case.walls, 0.0);
        // Far from the walls at the ends and beside: those resist too.
        let middle = |k: usize| {
            (0..D).filter(|&axis| axis != 1).all(|axis| (particles[k].position[axis] / extent[axis] - 0.5).abs() < 0.1)
        };
        let (mut force, mut bed) = (0.0, 0.0);
        let _ = forces::pass(&case.fluid, &cells, |k, found, lane| {
            if middle(k) {
                force -= case.fluid.mass() * found.acceleration[0][lane];
                bed += if particles[k].position[1] < spacing { spacing.powi(D as i32 - 1) } else { 0.0 };
            }
        });
        force / bed / (0.5 * case.fluid.density * 1.5 * 1.5)
    }

    #[test]
    fn beds_resist_by_their_skin_friction() {
        // Sums over a lattice are lower than the integral by some percent.
        approx::assert_relative_eq!(friction(0.05, [2.0, 0.5]), 0.005, max_relative = 0.1);
        approx::assert_relative_eq!(friction(0.05, [1.0, 0.4, 1.0]), 0.005, max_relative = 0.1);
    }
}
