//! Particles in order of their cells: the snapshot of a time step that the wall pass and the force pass read.
//!
//! Space is cut in *rows* along x, as high (and deep) as the kernel reaches, and each row in cells a quarter as long. So the
//! neighbors of particles that follow each other in a row stand in three stretches of memory in two dimensions, nine in three,
//! and the stretches are little longer than the kernel asks for. Fluid and walls are sorted apart, into the same cells.
//!
//! The order is (cell, identity), and cells are the same on all ranks.

use std::ops::Range;

use global_arrays::simulation::Work;

use crate::particle::{Fluid, Particle, Viscosity};
use crate::tank::Wall;

/// Cells along x for each reach of the kernel. More would make shorter stretches out of more cells.
const FINE: usize = 4;

/// What neighbors see of a particle; one cache line in two dimensions.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Source<const D: usize> {
    /// In units of 2√2 h. In this unit the spacings of lattices are irrational, so differences of positions are not short in binary: see
    /// [`crate::forces`], on sums.
    pub(crate) position: [f64; D],
    /// Multiplied by [`Fluid::velocity_scale`].
    pub(crate) velocity: [f64; D],
    pub(crate) density: f64,
    /// p/ρ².
    pub(crate) pressure: f64,
    /// Under a free surface its first component is 2δhc (ρ/ρ₀ − g·r/c²), whose differences drive the diffusion, divided by the unit of lengths and
    /// multiplied by the scale of velocities. Where fluid fills all, the particle's `carried`.
    pub(crate) brings: [f64; D],
}

/// Constants to make sources with.
struct Units<'a, const D: usize> {
    fluid: &'a Fluid<D>,
    /// One over the unit of lengths.
    scale: f64,
    /// [`Fluid::velocity_scale`].
    velocity_scale: f64,
    /// 2δhc/ρ₀ and 2δhc g/c², multiplied by both.
    diffusion: f64,
    hydrostatic: [f64; D],
}

impl<'a, const D: usize> Units<'a, D> {
    fn of(fluid: &'a Fluid<D>) -> Self {
        let (scale, velocity_scale) = (1.0 / fluid.unit(), fluid.velocity_scale());
        let spreading = scale * velocity_scale * fluid.spreading();
        let hydrostatic = fluid.gravity.map(|g| spreading * g / (fluid.sound * fluid.sound));
        Units { fluid, scale, velocity_scale, diffusion: spreading / fluid.density, hydrostatic }
    }
}

impl<const D: usize> Source<D> {
    #[inline(always)]
    fn fluid(units: &Units<'_, D>, particle: &Particle<D>) -> Self {
        let Particle { position, velocity, density, .. } = *particle;
        let volume = 1.0 / density;
        let (mut scaled, mut brings, mut excess) = ([0.0; D], [0.0; D], units.diffusion * density);
        for axis in 0..D {
            scaled[axis] = units.scale * position[axis];
            excess -= units.hydrostatic[axis] * position[axis];
        }
        (brings[0], brings[1]) = match units.fluid.viscosity {
            Viscosity::Artificial(_) => (excess, 0.0),
            Viscosity::Laminar(_) => (f64::from(particle.carried[0]), f64::from(particle.carried[1])),
        };
        let pressure = units.fluid.pressure(density) * (volume * volume);
        let velocity = velocity.map(|v| units.velocity_scale * v);
        Source { position: scaled, velocity, density, pressure, brings }
    }

    /// A wall particle before the fluid told it its pressure. Under a free surface it takes no part in the diffusion of density; where fluid
    /// fills all it does, with the density of the fluid in front of it, and shifts nothing.
    #[inline(always)]
    fn wall(units: &Units<'_, D>, position: [f64; D]) -> Self {
        let position = position.map(|x| units.scale * x);
        Source { position, velocity: [0.0; D], density: units.fluid.density, pressure: 0.0, brings: [0.0; D] }
    }
}

/// Where a particle is: its cell in the grid of all space, of which 0 begins at the origin, and which of two in a cell comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place<const D: usize> {
    cell: [i32; D],
    id: u32,
}

/// A part of the grid, in rows.
#[derive(Debug, Clone, Copy)]
struct Grid<const D: usize> {
    first: [i32; D],
    extents: [usize; D],
}

/// Cells that the kernel reaches along an axis.
const fn reach(axis: usize) -> i32 {
    if axis == 0 { FINE as i32 } else { 1 }
}

/// Cells of the grid on each side of those that have own particles: twice as far as the kernel reaches, and one more for rounding.
const fn margin(axis: usize) -> usize {
    2 * reach(axis) as usize + 1
}

impl<const D: usize> Grid<D> {
    fn cells(&self) -> usize {
        self.extents.iter().product()
    }

    /// The number of a cell; the number of cells for what is not in the grid.
    #[inline(always)]
    fn cell(&self, place: &Place<D>) -> usize {
        let mut cell = 0;
        for axis in (0..D).rev() {
            let along = place.cell[axis].wrapping_sub(self.first[axis]) as u32 as usize;
            if along >= self.extents[axis] {
                return self.cells();
            }
            cell = cell * self.extents[axis] + along;
        }
        cell
    }
}

/// The cell of a position along an axis. Cell 0 begins at the origin.
///
/// On the border of two cells, the even one. So the cells of two particles on borders may be one farther apart than the kernel reaches; but
/// then the particles are as far apart as it reaches, and do nothing to each other.
#[inline(always)]
fn cell_at(x: f64, scale: f64) -> i32 {
    /// Numbers near this one are 1 apart, and end with 32 bits that are an integer of two's complement.
    const INTEGERS: f64 = (3_u64 << 51) as f64;
    // No sum of two cells overflows.
    ((x * scale).clamp(-5e8, 5e8) - 0.5 + INTEGERS).to_bits() as i32
}

/// Where particles are, by their numbers. The integrator notes it while it has them at hand.
#[derive(Debug)]
pub(crate) struct Places<const D: usize> {
    /// Cells for each meter.
    scale: [f64; D],
    of: Vec<Place<D>>,
}

impl<const D: usize> Places<D> {
    pub(crate) fn new(fluid: &Fluid<D>) -> Self {
        Places { scale: std::array::from_fn(|axis| f64::from(reach(axis)) / fluid.support()), of: Vec::new() }
    }

    #[inline(always)]
    fn at(&self, position: &[f64; D], id: u32) -> Place<D> {
        Place { cell: std::array::from_fn(|axis| cell_at(position[axis], self.scale[axis])), id }
    }

    /// Notes where a particle is now.
    #[inline(always)]
    pub(crate) fn note(&mut self, number: usize, particle: &Particle<D>) {
        self.of[number] = self.at(&particle.position, particle.id);
    }

    /// Notes all particles, of which the first `noted` are noted already, but for those whose numbers are in `changed`.
    pub(crate) fn note_rest(&mut self, particles: &[Particle<D>], noted: usize, changed: &[u32]) {
        let mut of = std::mem::take(&mut self.of);
        of.truncate(noted);
        of.reserve_exact(particles.len() - of.len());
        of.extend(particles[of.len()..].iter().map(|particle| self.at(&particle.position, particle.id)));
        self.of = of;
        for number in changed.iter().map(|&number| number as usize).filter(|&number| number < noted) {
            self.note(number, &particles[number]);
        }
    }
}

/// Particles of fluid, or of walls, in order of their cells.
#[derive(Debug, Default)]
pub(crate) struct Sorted<const D: usize> {
    pub(crate) sources: Vec<Source<D>>,
    /// Which particle each is, as numbered before they were sorted.
    order: Vec<u32>,
    /// Where each cell begins in `sources`, and one more.
    start: Vec<u32>,
    /// What particles are in order of, as they were numbered before: the cell in the grid in the upper half, the identity in the lower.
    keys: Vec<u64>,
}

impl<const D: usize> Sorted<D> {
    /// Sorts particles that are at these places.
    fn sort(&mut self, grid: &Grid<D>, places: &[Place<D>]) {
        // One more, for what is not in the grid.
        self.start.clear();
        self.start.resize(grid.cells() + 1, 0);
        self.keys.clear();
        self.keys.reserve_exact(places.len());
        self.keys.extend(places.iter().map(|place| {
            let cell = grid.cell(place);
            self.start[cell] += 1;
            (cell as u64) << 32 | u64::from(place.id)
        }));
        let mut sum = 0;
        for start in &mut self.start {
            sum += *start;
            *start = sum;
        }
        self.order.clear();
        self.order.resize(self.keys.len(), 0);
        // Backwards, so that each cell begins where its count has run down to, and equal cells keep their order.
        for (entry, key) in self.keys.iter().enumerate().rev() {
            let place = &mut self.start[(key >> 32) as usize];
            *place -= 1;
            self.order[*place as usize] = entry as u32;
        }
        self.order.truncate(self.start[grid.cells()] as usize);
        let mut last = 0;
        for k in 0..self.order.len() {
            let entry = self.order[k];
            let key = self.keys[entry as usize];
            if key >= last {
                last = key;
                continue;
            }
            let mut hole = k;
            while hole > 0 && self.keys[self.order[hole - 1] as usize] > key {
                self.order[hole] = self.order[hole - 1];
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
    /// How many particles are own ones.
    own: usize,
    /// Which components of the velocity each entry of walls holds.
    pub(crate) held: Vec<[bool; D]>,
    /// Walls that are near own particles, and where.
    near: Vec<u32>,
    near_places: Vec<Place<D>>,
    grid: Grid<D>,
}

impl<const D: usize> Cells<D> {
    /// A snapshot of nothing.
    pub(crate) fn new() -> Self {
        Cells {
            fluid: Sorted::default(),
            walls: Sorted::default(),
            own: 0,
            held: Vec::new(),
            near: Vec::new(),
            near_places: Vec::new(),
            grid: Grid { first: [0; D], extents: [0; D] },
        }
    }

    /// Takes the snapshot: `particles` at their `places`, of which the first `own` are this rank's and the others ghosts, and of `walls` what is
    /// near own ones.
    ///
    /// Complete are the neighbors of own particles, and the fluid around the walls near them.
    ///
    /// Returns the bytes that pass: places and walls are read to find their cells, and particles in the grid to become entries. In sorting, three
    /// short numbers of each entry are written and read, and one of each cell twice.
    pub(crate) fn build(
        &mut self,
        fluid: &Fluid<D>,
        particles: &[Particle<D>],
        own: usize,
        places: &Places<D>,
        walls: &[Wall<D>],
        time: f64,
    ) -> Work {
        debug_assert!(
            particles.iter().zip(&places.of).all(|(particle, place)| places.at(&particle.position, particle.id) == *place)
        );
        let (mut low, mut high) = ([i32::MAX; D], [i32::MIN; D]);
        for Place { cell, .. } in &places.of[..own] {
            for axis in 0..D {
                low[axis] = low[axis].min(cell[axis]);
                high[axis] = high[axis].max(cell[axis]);
            }
        }
        if own == 0 {
            (low, high) = ([0; D], [0; D]);
        }
        let near = |cell: [i32; D]| (0..D).all(|axis| (low[axis] - reach(axis)..=high[axis] + reach(axis)).contains(&cell[axis]));
        self.grid.first = std::array::from_fn(|axis| low[axis] - margin(axis) as i32);
        self.grid.extents = std::array::from_fn(|axis| (high[axis] - low[axis]) as usize + 2 * margin(axis) + 1);
        self.fluid.sort(&self.grid, &places.of);
        let units = Units::of(fluid);
        self.fluid.fill(|entry| Source::fluid(&units, &particles[entry]));

        self.near.clear();
        self.near_places.clear();
        for (k, wall) in walls.iter().enumerate() {
            let place = places.at(&wall.at(time), k as u32);
            if own > 0 && near(place.cell) {
                self.near.push(k as u32);
                self.near_places.push(place);
            }
        }
        self.walls.sort(&self.grid, &self.near_places);
        let near = &self.near;
        self.walls.fill(|entry| Source::wall(&units, walls[near[entry] as usize].at(time)));

        self.own = own;
        self.held.clear();
        self.held.extend(self.walls.order.iter().map(|&entry| walls[near[entry as usize] as usize].held));

        let entries = self.fluid.sources.len() + self.walls.sources.len();
        let read = size_of_val(&places.of[..]) + size_of_val(walls) + entries * size_of::<Particle<D>>();
        let sorting = 8 * (3 * entries + 2 * self.fluid.start.len());
        Work::bytes((read + entries * size_of::<Source<D>>() + sorting) as f64)
    }

    /// Puts this rank's particles, numbered as in the last snapshot, in the order of that, so that neighbors follow each other in memory. The
    /// snapshot is of no use then.
    pub(crate) fn arrange(&mut self, own: &mut [Particle<D>]) {
        let mut from = std::mem::take(&mut self.fluid.order);
        from.retain(|&particle| (particle as usize) < self.own);
        debug_assert_eq!(from.len(), own.len());
        // Each place gets its particle, its particle's place the one of that, and so on until the place of the first is reached.
        for start in 0..from.len() {
            let (mut place, first) = (start, own[start]);
            loop {
                let next = std::mem::replace(&mut from[place], place as u32) as usize;
                if next == start {
                    own[place] = first;
                    break;
                }
                own[place] = own[next];
                place = next;
            }
        }
        self.fluid.order = from;
    }

    /// The number of the particle of an entry of fluid, if it is an own one.
    #[inline(always)]
    pub(crate) fn own(&self, entry: usize) -> Option<usize> {
        let particle = self.fluid.order[entry] as usize;
        (particle < self.own).then_some(particle)
    }

    /// Whether own particles may be in these columns of a row. No if they are not in the smallest box of cells that has all own particles.
    #[inline(always)]
    pub(crate) fn may_have_own(&self, row: usize, columns: &Range<usize>) -> bool {
        let inside =
            |axis: usize, first: usize, last: usize| margin(axis) <= last && first < self.grid.extents[axis] - margin(axis);
        let high = self.grid.extents[1];
        let (y, z) = (row % high, row / high);
        self.own > 0 && inside(0, columns.start, columns.end - 1) && inside(1, y, y) && (D < 3 || inside(2, z, z))
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
        let column = |entry: usize| (of.keys[of.order[entry] as usize] >> 32) as usize - row * length;
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
