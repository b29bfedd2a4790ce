//! Particles in order of their cells: the snapshot of a time step that the wall pass and the force pass read.
//!
//! Space is cut in *rows* along x, as high (and deep) as the kernel reaches, and each row in cells a quarter as long. So the
//! neighbors of particles that follow each other in a row stand in three stretches of memory in two dimensions, nine in three,
//! and the stretches are little longer than the kernel asks for. Fluid and walls are sorted apart, into the same cells.
//!
//! The order is (cell, identity), and cells are the same on all ranks.

use std::ops::Range;

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
    /// Under a free surface first of all 2δhc (ρ/ρ₀ − g·r/c²), of which differences diffuse. Where fluid fills all, the particle's `carried`.
    pub(crate) brings: [f64; D],
}

impl<const D: usize> Source<D> {
    fn fluid(fluid: &Fluid<D>, particle: &Particle<D>) -> Self {
        let Particle { position, velocity, density, .. } = *particle;
        let volume = 1.0 / density;
        let mut brings = [0.0; D];
        (brings[0], brings[1]) = match fluid.viscosity {
            Viscosity::Artificial(_) => {
                let height: f64 = (0..D).map(|axis| fluid.gravity[axis] * position[axis]).sum();
                (fluid.spreading() * (density / fluid.density - height / (fluid.sound * fluid.sound)), 0.0)
            }
            Viscosity::Laminar(_) => (f64::from(particle.carried[0]), f64::from(particle.carried[1])),
        };
        Source { position, velocity, density, pressure: fluid.pressure(density) * (volume * volume), brings }
    }

    /// A wall particle before the fluid told it its pressure. Under a free surface it takes no part in the diffusion of density; where fluid
    /// fills all it does, with the density of the fluid in front of it, and shifts nothing.
    fn wall(fluid: &Fluid<D>, position: [f64; D]) -> Self {
        Source { position, velocity: [0.0; D], density: fluid.density, pressure: 0.0, brings: [0.0; D] }
    }
}

/// The owner of a particle that another rank owns.
pub(crate) const GHOST: u32 = u32::MAX;

/// The grid of cells, in rows.
#[derive(Debug, Clone, Copy)]
struct Grid<const D: usize> {
    /// First cell along each axis; 0 is the cell right of the origin.
    first: [i64; D],
    extents: [usize; D],
    /// One over the edges of a cell.
    scale: [f64; D],
}

/// Out of the grid.
const NOWHERE: u32 = u32::MAX;

impl<const D: usize> Grid<D> {
    /// The grid that reaches twice as far as the kernel beyond a box.
    fn around(fluid: &Fluid<D>, low: &[f64; D], high: &[f64; D]) -> Self {
        let support = fluid.support();
        let mut grid = Grid { first: [0; D], extents: [0; D], scale: [1.0 / support; D] };
        grid.scale[0] = FINE as f64 / support;
        for axis in 0..D {
            // One more than twice the reach, for rounding.
            let margin = 2.001 * support;
            grid.first[axis] = floor((low[axis] - margin) * grid.scale[axis]);
            grid.extents[axis] = (floor((high[axis] + margin) * grid.scale[axis]) - grid.first[axis]) as usize + 1;
        }
        grid
    }

    #[inline(always)]
    fn cell(&self, position: &[f64; D]) -> u32 {
        let mut cell = 0;
        for axis in (0..D).rev() {
            let place = floor(position[axis] * self.scale[axis]) - self.first[axis];
            if place < 0 || place >= self.extents[axis] as i64 {
                return NOWHERE;
            }
            cell = cell * self.extents[axis] + place as usize;
        }
        cell as u32
    }
}

/// The integer below. The method of `f64` is a function of the C library, unless the processor is known to have an instruction for it.
#[inline(always)]
fn floor(x: f64) -> i64 {
    let near = x as i64;
    near - i64::from(near as f64 > x)
}

/// Particles of fluid, or of walls, in order of their cells.
#[derive(Debug, Default)]
pub(crate) struct Sorted<const D: usize> {
    pub(crate) sources: Vec<Source<D>>,
    /// Which particle each is, as numbered before they were sorted.
    order: Vec<u32>,
    /// Where each cell begins in `sources`, and one more.
    start: Vec<u32>,
    /// Cell of each particle, as they were numbered before.
    cell: Vec<u32>,
}

impl<const D: usize> Sorted<D> {
    /// Sorts so many particles, of which the cells are given; `id` tells which of two in a cell comes first.
    fn sort(&mut self, cells: usize, given: impl Iterator<Item = u32>, id: impl Fn(u32) -> u32) {
        self.start.clear();
        self.start.resize(cells + 1, 0);
        self.cell.clear();
        let start = &mut self.start;
        self.cell.extend(given.inspect(|&cell| {
            if cell != NOWHERE {
                start[cell as usize] += 1;
            }
        }));
        let mut sum = 0;
        for start in &mut self.start {
            sum += *start;
            *start = sum;
        }
        self.order.clear();
        self.order.resize(sum as usize, 0);
        // Backwards, so that each cell begins where its count has run down to, and equal cells keep their order.
        for (entry, &cell) in self.cell.iter().enumerate().rev() {
            if cell != NOWHERE {
                let place = &mut self.start[cell as usize];
                *place -= 1;
                self.order[*place as usize] = entry as u32;
            }
        }
        for k in 1..self.order.len() {
            let entry = self.order[k];
            let mut hole = k;
            while hole > 0 {
                let before = self.order[hole - 1];
                if self.cell[before as usize] != self.cell[entry as usize] || id(before) <= id(entry) {
                    break;
                }
                self.order[hole] = before;
                hole -= 1;
            }
            self.order[hole] = entry;
        }
    }

    /// Replaces the sources by those that `of` makes of particles.
    fn fill(&mut self, of: impl Fn(usize) -> Source<D>) {
        self.sources.clear();
        // As much as it takes: what doubles as it grows takes up to twice that.
        self.sources.reserve_exact(self.order.len());
        self.sources.extend(self.order.iter().map(|&entry| of(entry as usize)));
    }
}

/// The snapshot.
#[derive(Debug)]
pub(crate) struct Cells<const D: usize> {
    pub(crate) fluid: Sorted<D>,
    /// What is near own particles.
    pub(crate) walls: Sorted<D>,
    /// Of each entry of fluid: the number of an own particle, or [`GHOST`].
    pub(crate) owner: Vec<u32>,
    /// How many entries of fluid before each are own, and one more.
    own_before: Vec<u32>,
    /// Which components of the velocity each entry of walls holds.
    pub(crate) held: Vec<[bool; D]>,
    grid: Grid<D>,
}

impl<const D: usize> Cells<D> {
    /// A snapshot of nothing.
    pub(crate) fn new() -> Self {
        Cells {
            fluid: Sorted::default(),
            walls: Sorted::default(),
            owner: Vec::new(),
            own_before: Vec::new(),
            held: Vec::new(),
            grid: Grid { first: [0; D], extents: [0; D], scale: [0.0; D] },
        }
    }

    /// Takes the snapshot: `particles`, of which the first `own` are this rank's and the others ghosts, and of `walls`
    /// what is near own ones.
    ///
    /// Complete are the neighbors of own particles, and the fluid around the walls near them.
    ///
    /// Returns the bytes that pass: particles and walls are read to find their cells, and those in the grid once more to become entries; of
    /// each entry four numbers are written, and read, in sorting.
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
        let grid = Grid::around(fluid, &low, &high);
        self.grid = grid;
        let cells = grid.extents.iter().product();
        let near = |wall: &[f64; D]| (0..D).all(|axis| low[axis] - support <= wall[axis] && wall[axis] <= high[axis] + support);

        let places = particles.iter().map(|particle| grid.cell(&particle.position));
        self.fluid.sort(cells, places, |entry| particles[entry as usize].id);
        self.fluid.fill(|entry| Source::fluid(fluid, &particles[entry]));
        let places = walls.iter().map(|wall| {
            let position = wall.at(time);
            if own > 0 && near(&position) { grid.cell(&position) } else { NOWHERE }
        });
        self.walls.sort(cells, places, |entry| entry);
        self.walls.fill(|entry| Source::wall(fluid, walls[entry].at(time)));

        self.owner.clear();
        self.owner.extend(self.fluid.order.iter().map(|&entry| if (entry as usize) < own { entry } else { GHOST }));
        let mut so_far = 0;
        self.own_before.clear();
        self.own_before.extend(self.owner.iter().map(|&owner| {
            let before = so_far;
            so_far += u32::from(owner != GHOST);
            before
        }));
        self.own_before.push(so_far);
        self.held.clear();
        self.held.extend(self.walls.order.iter().map(|&entry| walls[entry as usize].held));

        let entries = self.fluid.sources.len() + self.walls.sources.len();
        let read = size_of_val(particles) + size_of_val(walls) + entries * size_of::<Particle<D>>();
        Work::bytes((read + entries * (size_of::<Source<D>>() + 32) + 16 * cells) as f64)
    }

    /// Whether an own particle is in a stretch of fluid.
    #[inline(always)]
    pub(crate) fn any_own(&self, stretch: &Range<usize>) -> bool {
        self.own_before[stretch.end] > self.own_before[stretch.start]
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.grid.extents[1..].iter().product()
    }

    /// Rows of a layer: those at one place along the last axis follow each other.
    pub(crate) fn rows_of_layer(&self) -> usize {
        self.grid.extents[1..D - 1].iter().product()
    }

    /// The columns that the kernel reaches from entries that follow each other in a row.
    #[inline(always)]
    pub(crate) fn columns(&self, of: &Sorted<D>, row: usize, entries: &Range<usize>) -> Range<usize> {
        let length = self.grid.extents[0];
        let column = |entry: usize| of.cell[of.order[entry] as usize] as usize - row * length;
        column(entries.start).saturating_sub(FINE)..(column(entries.end - 1) + FINE + 1).min(length)
    }

    /// All entries of rows that follow each other.
    #[inline(always)]
    pub(crate) fn row(&self, of: &Sorted<D>, rows: Range<usize>) -> Range<usize> {
        let length = self.grid.extents[0];
        of.start[rows.start * length] as usize..of.start[rows.end * length] as usize
    }

    /// The entries of a row in some columns.
    #[inline(always)]
    pub(crate) fn stretch(&self, of: &Sorted<D>, row: usize, columns: &Range<usize>) -> Range<usize> {
        let cells = row * self.grid.extents[0];
        of.start[cells + columns.start] as usize..of.start[cells + columns.end] as usize
    }

    /// The rows that the kernel reaches from a row, itself among them, in the order of memory.
    #[inline(always)]
    pub(crate) fn around(&self, row: usize) -> impl Iterator<Item = usize> {
        let high = self.grid.extents[1];
        let deep = if D > 2 { self.grid.extents[2] } else { 1 };
        let (y, z) = (row % high, row / high);
        let rows = y.saturating_sub(1)..(y + 2).min(high);
        (z.saturating_sub(1)..(z + 2).min(deep)).flat_map(move |z| rows.clone().map(move |y| z * high + y))
    }
}
