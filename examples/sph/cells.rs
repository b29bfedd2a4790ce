//! Particles in order of their cells: the snapshot of a time step that the force pass reads.
//!
//! Space is cut in *rows* along x, as high (and deep) as the kernel reaches, and each row in cells a quarter as long. So the
//! neighbors of particles that follow each other in a row stand in three stretches of memory in two dimensions, nine in three,
//! and the stretches are little longer than the kernel asks for.
//!
//! The order is (cell, identity), and cells are the same on all ranks. Each sum over neighbors therefore runs through the same
//! terms in the same order whoever owns the particle, and results do not depend on the number of ranks, to the last bit.

use global_arrays::Work;

use crate::particle::{Fluid, Particle, Viscosity};
use crate::tank::Wall;

/// Cells along x for each reach of the kernel. More would make shorter stretches out of more cells.
const FINE: usize = 4;

/// What neighbors see of a particle; one cache line in two dimensions.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Source<const D: usize> {
    pub(crate) position: [f64; D],
    pub(crate) velocity: [f64; D],
    pub(crate) density: f64,
    /// p/ρ².
    pub(crate) pressure: f64,
    /// Under a free surface what density diffusion asks for: ρ − ρ₀ g·r/c², of which differences diffuse, and 2δhc/ρ. Where fluid fills
    /// all, the particle's `carried`.
    pub(crate) brings: [f64; D],
}

impl<const D: usize> Source<D> {
    fn fluid(fluid: &Fluid<D>, particle: &Particle<D>) -> Self {
        let Particle { position, velocity, density, .. } = *particle;
        let volume = 1.0 / density;
        Source {
            position,
            velocity,
            density,
            pressure: fluid.pressure(density) * (volume * volume),
            brings: match fluid.viscosity {
                Viscosity::Artificial(_) => {
                    let hydrostatic: f64 = (0..D).map(|axis| fluid.gravity[axis] * position[axis]).sum();
                    let excess = density - fluid.density / (fluid.sound * fluid.sound) * hydrostatic;
                    Self::pair(excess, fluid.spreading() * volume)
                }
                Viscosity::Laminar(_) => Self::pair(f64::from(particle.carried[0]), f64::from(particle.carried[1])),
            },
        }
    }

    /// A wall particle before the fluid told it its pressure. Under a free surface it takes no part in the diffusion of density; where fluid
    /// fills all it does, with the density of the fluid in front of it, and shifts nothing.
    fn wall(fluid: &Fluid<D>, position: [f64; D]) -> Self {
        Source { position, velocity: [0.0; D], density: fluid.density, pressure: 0.0, brings: [0.0; D] }
    }

    #[inline(always)]
    fn pair(first: f64, second: f64) -> [f64; D] {
        let mut brings = [0.0; D];
        (brings[0], brings[1]) = (first, second);
        brings
    }
}

/// Whose an entry of the snapshot is: the number of an own particle, this, or above it a number for each kind of walls.
pub(crate) const GHOST: u32 = u32::MAX - 8;
/// The number of walls that hold nothing.
const WALL: u32 = GHOST + 1;

/// Whether it is a wall's.
#[inline(always)]
pub(crate) fn is_wall(owner: u32) -> bool {
    owner > GHOST
}

/// The number of walls that hold these components of the velocity.
fn wall<const D: usize>(held: [bool; D]) -> u32 {
    WALL + held.iter().rev().fold(0, |bits, &held| 2 * bits + u32::from(held))
}

/// The components of the velocity that a wall with this number holds.
#[inline(always)]
pub(crate) fn held<const D: usize>(owner: u32) -> [bool; D] {
    std::array::from_fn(|axis| (owner - WALL) >> axis & 1 == 1)
}

/// The snapshot. `start` and what is private serve to build it.
#[derive(Debug)]
pub(crate) struct Cells<const D: usize> {
    /// In order of their cells.
    pub(crate) sources: Vec<Source<D>>,
    /// Whose each is.
    pub(crate) owner: Vec<u32>,
    /// How many entries before each are of fluid, and one more.
    fluid_before: Vec<u32>,
    /// First cell of the grid along each axis; 0 is the cell right of the origin.
    first: [i64; D],
    extents: [usize; D],
    /// Where each cell begins in `sources`, and one more.
    start: Vec<u32>,
    /// Cell of each particle and wall, in the order that they came in.
    unsorted: Vec<u32>,
    /// Which particle or wall each entry is.
    order: Vec<u32>,
}

/// One over the edges of a cell.
fn densities<const D: usize>(fluid: &Fluid<D>) -> [f64; D] {
    std::array::from_fn(|axis| if axis == 0 { FINE as f64 } else { 1.0 } / fluid.support())
}

/// The integer below. The method of `f64` is a function of the C library, unless the processor is known to have an instruction for it.
#[inline(always)]
fn floor(x: f64) -> i64 {
    let near = x as i64;
    near - i64::from(near as f64 > x)
}

/// Out of the grid.
const NOWHERE: u32 = u32::MAX;

impl<const D: usize> Cells<D> {
    /// A snapshot of nothing.
    pub(crate) fn new() -> Self {
        Cells {
            sources: Vec::new(),
            owner: Vec::new(),
            fluid_before: Vec::new(),
            first: [0; D],
            extents: [0; D],
            start: Vec::new(),
            unsorted: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Takes the snapshot: `particles`, of which the first `own` are this rank's and the others ghosts, and of `walls`
    /// what is near own ones. Walls are numbered behind the fluid.
    ///
    /// Complete are the neighbors of own particles, and the fluid around the walls near them.
    ///
    /// Returns the bytes that pass: particles and walls are read to find their cells, and those in the grid once more to become entries; of
    /// each entry five numbers are written, and read, in sorting.
    pub(crate) fn build(
        &mut self,
        fluid: &Fluid<D>,
        particles: &[Particle<D>],
        own: usize,
        walls: &[Wall<D>],
        time: f64,
    ) -> Work {
        let support = fluid.support();
        let (mut low, mut high) = ([f64::INFINITY; D], [f64::NEG_INFINITY; D]);
        for particle in &particles[..own] {
            for axis in 0..D {
                let x = particle.position[axis];
                low[axis] = if x < low[axis] { x } else { low[axis] };
                high[axis] = if x > high[axis] { x } else { high[axis] };
            }
        }
        if own == 0 {
            (low, high) = ([0.0; D], [0.0; D]);
        }
        let scale = densities(fluid);
        let mut cells = 1;
        for axis in 0..D {
            // One more than twice the reach, for rounding.
            let margin = 2.001 * support;
            self.first[axis] = ((low[axis] - margin) * scale[axis]).floor() as i64;
            self.extents[axis] = (((high[axis] + margin) * scale[axis]).floor() as i64 - self.first[axis]) as usize + 1;
            cells *= self.extents[axis];
        }
        self.start.clear();
        self.start.resize(cells + 1, 0);
        self.unsorted.clear();
        let (first, extents, start) = (self.first, self.extents, &mut self.start);
        let mut count = |position: &[f64; D]| {
            let mut cell = 0;
            for axis in (0..D).rev() {
                let place = floor(position[axis] * scale[axis]) - first[axis];
                if place < 0 || place >= extents[axis] as i64 {
                    return NOWHERE;
                }
                cell = cell * extents[axis] + place as usize;
            }
            start[cell] += 1;
            cell as u32
        };
        self.unsorted.extend(particles.iter().map(|particle| count(&particle.position)));
        let near = |wall: &[f64; D]| (0..D).all(|axis| low[axis] - support <= wall[axis] && wall[axis] <= high[axis] + support);
        self.unsorted.extend(walls.iter().map(|wall| {
            let position = wall.at(time);
            if own > 0 && near(&position) { count(&position) } else { NOWHERE }
        }));
        self.sort(particles, walls.len());
        self.fill(fluid, particles, own, walls, time);
        let entries = self.sources.len();
        let read = size_of_val(particles) + size_of_val(walls) + entries * size_of::<Particle<D>>();
        Work::bytes((read + entries * (size_of::<Source<D>>() + 40) + 8 * self.start.len()) as f64)
    }

    /// Brings the numbers of all entries into the order (cell, identity).
    fn sort(&mut self, particles: &[Particle<D>], walls: usize) {
        let mut sum = 0;
        for start in &mut self.start {
            sum += *start;
            *start = sum;
        }
        self.order.clear();
        self.order.resize(sum as usize, 0);
        // Backwards, so that each cell begins where its count has run down to, and equal cells keep their order.
        for entry in (0..particles.len() + walls).rev() {
            let cell = self.unsorted[entry];
            if cell != NOWHERE {
                let place = &mut self.start[cell as usize];
                *place -= 1;
                self.order[*place as usize] = entry as u32;
            }
        }
        // Walls come behind the fluid in the list and in their numbers, so only fluid can stand in a wrong order.
        let fluid = particles.len() as u32;
        for k in 1..self.order.len() {
            let entry = self.order[k];
            if entry >= fluid {
                continue;
            }
            let (cell, id) = (self.unsorted[entry as usize], particles[entry as usize].id);
            let mut hole = k;
            while hole > 0 {
                let before = self.order[hole - 1];
                if self.unsorted[before as usize] != cell || particles[before as usize].id < id {
                    break;
                }
                self.order[hole] = before;
                hole -= 1;
            }
            self.order[hole] = entry;
        }
    }

    fn fill(&mut self, fluid: &Fluid<D>, particles: &[Particle<D>], own: usize, walls: &[Wall<D>], time: f64) {
        self.sources.clear();
        self.owner.clear();
        self.fluid_before.clear();
        // As much as it takes: what doubles as it grows takes up to twice that.
        let entries = self.order.len();
        self.sources.reserve_exact(entries);
        self.owner.reserve_exact(entries);
        self.fluid_before.reserve_exact(entries + 1);
        self.sources.extend(self.order.iter().map(|&entry| match particles.get(entry as usize) {
            Some(particle) => Source::fluid(fluid, particle),
            None => Source::wall(fluid, walls[entry as usize - particles.len()].at(time)),
        }));
        self.owner.extend(self.order.iter().map(|&entry| match entry as usize {
            k if k < own => entry,
            k if k < particles.len() => GHOST,
            k => wall(walls[k - particles.len()].held),
        }));
        let mut fluid_so_far = 0;
        self.fluid_before.extend(self.owner.iter().map(|&owner| {
            let before = fluid_so_far;
            fluid_so_far += u32::from(!is_wall(owner));
            before
        }));
        self.fluid_before.push(fluid_so_far);
    }

    /// Whether any entry of a stretch is of fluid.
    #[inline(always)]
    pub(crate) fn any_fluid(&self, stretch: &std::ops::Range<usize>) -> bool {
        self.fluid_before[stretch.end] > self.fluid_before[stretch.start]
    }

    /// Whether all entries of a stretch are of fluid.
    #[inline(always)]
    pub(crate) fn all_fluid(&self, stretch: &std::ops::Range<usize>) -> bool {
        (self.fluid_before[stretch.end] - self.fluid_before[stretch.start]) as usize == stretch.len()
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.extents[1..].iter().product()
    }

    /// The entries of a row.
    pub(crate) fn row(&self, row: usize) -> std::ops::Range<usize> {
        let length = self.extents[0];
        self.start[row * length] as usize..self.start[(row + 1) * length] as usize
    }

    /// Visits the stretches of entries that hold all neighbors of entries `first..=last` of `row`, in the order of memory.
    #[inline(always)]
    pub(crate) fn around(&self, row: usize, first: usize, last: usize, mut visit: impl FnMut(std::ops::Range<usize>)) {
        let length = self.extents[0];
        let column = |entry: usize| self.unsorted[self.order[entry] as usize] as usize - row * length;
        let (from, to) = (column(first).saturating_sub(FINE), (column(last) + FINE).min(length - 1));
        let (y, z) = (row % self.extents[1], row / self.extents[1]);
        let deep = if D > 2 { self.extents[2] } else { 1 };
        for z in z.saturating_sub(1)..(z + 2).min(deep) {
            for y in y.saturating_sub(1)..(y + 2).min(self.extents[1]) {
                let cells = (z * self.extents[1] + y) * length;
                visit(self.start[cells + from] as usize..self.start[cells + to + 1] as usize);
            }
        }
    }
}
