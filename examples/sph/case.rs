//! The four flows: where fluid and walls are at first, and what fluid it is.
//!
//! Fluid fills a block of a lattice with its corner in the origin; the particle in cell (i, j, k) is number i + n_x (j + n_y k) and
//! stands in the middle of its cell, in vortices a little beside it. Walls continue the lattice.

use std::f64::consts::PI;

use crate::closed_forms::vortex_velocity;
use crate::particle::{Fluid, Particle, Viscosity};
use crate::tank::{self, Block, Wall};

/// α of the artificial viscosity, also of the motion towards walls. Monaghan (1994) takes 0.01 to 0.1 for free surfaces. With 0.02 the energy of a
/// column of 800 particles grew by 8·10⁻⁴ where its front met a wall, with this by 2·10⁻⁵ (before pairs were computed once).
const ALPHA: f64 = 0.05;

/// δ of the density diffusion under a free surface (Molteni & Colagrossi 2009).
const DELTA: f64 = 0.1;

/// The same where fluid fills all. Shifting keeps particles in order there, so less is needed. At Re = 400 vortices on 40 x 40
/// particles lose 1.0 % too much speed with 0.1, and 0.5 % with this.
const FULL_DELTA: f64 = 0.05;

/// The skin friction coefficient of a smooth bed: a turbulent boundary layer has 0.003 to 0.006 at Reynolds numbers of 10⁵ to 10⁷.
const FRICTION: f64 = 0.005;

/// m/s².
pub(crate) const GRAVITY: f64 = 9.81;

/// How columns of water are modeled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Water {
    /// The skin friction coefficient of walls, 2τ/(ρu²); none: water sticks to them.
    pub(crate) friction: Option<f64>,
    /// Speed of sound over that of free fall from the column's height.
    pub(crate) sound: f64,
    /// Kinematic, in m²/s, not below that of [`ALPHA`], with which the method damps if nothing is said.
    pub(crate) viscosity: Option<f64>,
}

impl Default for Water {
    fn default() -> Self {
        // Ten times the fastest flow keeps the density within 1 to 2 % (Monaghan 1994).
        Water { friction: Some(FRICTION), sound: 10.0, viscosity: None }
    }
}

/// What flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A column of water collapses into a tank
    DamBreak,
    /// Water at rest in a tank
    Hydrostatic,
    /// Decaying vortices in a periodic square
    TaylorGreen,
    /// Flow between plates starts up
    Poiseuille,
}

/// A flow in `D` dimensions.
#[derive(Debug, Clone)]
pub(crate) struct Case<const D: usize> {
    pub(crate) kind: Kind,
    pub(crate) fluid: Fluid<D>,
    /// Particles of fluid along each axis.
    pub(crate) counts: [usize; D],
    /// Cells of the lattice inside the walls along each axis.
    pub(crate) inside: [usize; D],
    pub(crate) period: [Option<f64>; D],
    pub(crate) walls: Vec<Wall<D>>,
    /// Speed at which the gate in front of the column rises, in m/s, if there is one.
    pub(crate) gate: Option<f64>,
    pub(crate) obstacles: Vec<Block<D>>,
}

/// A column of water and the tank that it stands in, all lengths in meters.
#[derive(Debug, Clone)]
pub(crate) struct Column<const D: usize> {
    pub(crate) extent: [f64; D],
    pub(crate) tank: [f64; D],
    /// Speed at which a gate rises, in m/s, if there is one.
    pub(crate) gate: Option<f64>,
    pub(crate) obstacles: Vec<Block<D>>,
}

/// Smoothing length over spacing under a free surface, 28 neighbors in two dimensions. With 1.3 a square lattice at rest turns
/// into a hexagonal one, at speeds of a hundredth of free fall.
const SURFACE_SMOOTHING: f64 = 1.5;

/// The same where fluid fills all, 50 neighbors: where the flow is smooth, the error is that of the kernel's sums. Vortices on
/// 40 x 40 particles are wrong by 15 % of the first speed with 1.5, by 0.3 % with 2.
const FULL_SMOOTHING: f64 = 2.0;

/// Taylor-Green: where the lattice stands, in spacings. Particles on points of stagnation would stay there, and others would pile up
/// on the lines between them by symmetry. With this offset no column or row is nearer than an eighth of a spacing to such a line,
/// whatever the number of particles.
const VORTEX_OFFSET: [f64; 2] = [0.125, 0.375];

/// Taylor-Green: speed and side of the square.
pub(crate) const VORTEX_SPEED: f64 = 1.0;

/// Poiseuille: kinematic viscosity and body force of Morris et al., for water in SI units.
pub(crate) const PLATES_VISCOSITY: f64 = 1e-6;
/// m/s².
pub(crate) const PLATES_FORCE: f64 = 1e-4;

impl<const D: usize> Column<D> {
    /// Without gate and obstacles.
    #[cfg(test)]
    pub(crate) fn plain(extent: [f64; D], tank: [f64; D]) -> Self {
        Column { extent, tank, gate: None, obstacles: Vec::new() }
    }
}

impl<const D: usize> Case<D> {
    /// A column of water; in a hydrostatic case it is as wide as the tank.
    pub(crate) fn column(kind: Kind, spacing: f64, column: Column<D>, water: Water) -> Self {
        let Column { extent, tank, gate, obstacles } = column;
        let counts = extent.map(|length| (length / spacing).round() as usize);
        let mut inside: [usize; D] = std::array::from_fn(|axis| ((tank[axis] / spacing).round() as usize).max(counts[axis]));
        if kind == Kind::Hydrostatic {
            inside[0] = counts[0];
        }
        let height = counts[1] as f64 * spacing;
        let mut gravity = [0.0; D];
        gravity[1] = -GRAVITY;
        let alpha = water.viscosity.map_or(ALPHA, |nu| ALPHA * nu / damping(D, spacing, height, water.sound));
        let fluid = Fluid {
            spacing,
            smoothing: SURFACE_SMOOTHING,
            density: 1000.0,
            sound: water.sound * (2.0 * GRAVITY * height).sqrt(),
            viscosity: Viscosity::Artificial(alpha),
            diffusion: DELTA,
            gravity,
            free_surface: true,
            friction: water.friction.unwrap_or(0.0),
        };
        let mut closed = [(true, true); D];
        closed[1] = (true, false);
        let slip = water.friction.is_some();
        let mut walls = tank::walls(spacing, tank::layers(&fluid), inside, closed, slip);
        walls.extend(gate.into_iter().flat_map(|lift| tank::gate(&fluid, counts, lift)));
        // To whole cells, as all lengths.
        let whole = |x: f64| (x / spacing).round() * spacing;
        let obstacles: Vec<_> =
            obstacles.iter().map(|block| Block { low: block.low.map(whole), high: block.high.map(whole) }).collect();
        let length = inside.map(|cells| cells as f64 * spacing);
        walls.extend(obstacles.iter().flat_map(|&block| tank::obstacle(spacing, block, length, slip)));
        Case { kind, fluid, counts, inside, period: [None; D], walls, gate, obstacles }
    }

    /// What a particle is at first.
    pub(crate) fn particle(&self, id: u64) -> Particle<D> {
        let mut rest = id as usize;
        let position: [f64; D] = std::array::from_fn(|axis| {
            let cell = rest % self.counts[axis];
            rest /= self.counts[axis];
            let offset = if self.kind == Kind::TaylorGreen { VORTEX_OFFSET[axis % 2] } else { 0.0 };
            (cell as f64 + 0.5 + offset) * self.fluid.spacing
        });
        let fluid = &self.fluid;
        let (mut velocity, mut pressure) = ([0.0; D], 0.0);
        match self.kind {
            Kind::DamBreak | Kind::Hydrostatic => pressure = fluid.density * GRAVITY * (self.column_height() - position[1]),
            Kind::TaylorGreen => {
                let k = 2.0 * PI / self.column_width();
                let (x, y) = (k * position[0], k * position[1]);
                let exact = vortex_velocity(self.laminar(), self.column_width(), &position, 0.0);
                (velocity[0], velocity[1]) = (VORTEX_SPEED * exact[0], VORTEX_SPEED * exact[1]);
                pressure -= 0.25 * fluid.density * VORTEX_SPEED * VORTEX_SPEED * ((2.0 * x).cos() + (2.0 * y).cos());
            }
            Kind::Poiseuille => {}
        }
        Particle {
            position,
            velocity,
            density: fluid.density_at(pressure),
            acceleration: [0.0; D],
            rate: 0.0,
            carried: [0.0; 2],
            id: id as u32,
        }
    }

    /// Whether a column has friction at the bed, no more damping than the method needs, and sound as fast as by default.
    pub(crate) fn is_plain_water(&self) -> bool {
        let usual = Water::default().sound * (2.0 * GRAVITY * self.column_height()).sqrt();
        self.fluid.viscosity == Viscosity::Artificial(ALPHA)
            && self.fluid.friction == FRICTION
            && self.fluid.sound >= 0.999 * usual
    }

    /// Particles of fluid.
    pub(crate) fn particles(&self) -> u64 {
        self.counts.iter().map(|&count| count as u64).product()
    }

    /// Numbers of the particles that a rank begins with, out of so many ranks.
    pub(crate) fn share(&self, rank: usize, ranks: usize) -> std::ops::Range<u64> {
        share(self.particles(), rank, ranks)
    }

    /// a, in meters.
    pub(crate) fn column_width(&self) -> f64 {
        self.counts[0] as f64 * self.fluid.spacing
    }

    /// H, in meters.
    pub(crate) fn column_height(&self) -> f64 {
        self.counts[1] as f64 * self.fluid.spacing
    }

    /// How long a run is if nothing else is said, in seconds: until the front is seven columns away, the column has come to rest,
    /// the vortices have lost half their speed, or the flow has seen the plates.
    pub(crate) fn end_time(&self) -> f64 {
        match self.kind {
            Kind::DamBreak => 5.35 * (self.column_width() / (2.0 * GRAVITY)).sqrt(),
            Kind::Hydrostatic => 10.0 * (2.0 * self.column_height() / GRAVITY).sqrt(),
            Kind::TaylorGreen => 0.01 * self.column_width().powi(2) / self.laminar(),
            Kind::Poiseuille => 0.225 * (self.column_height() / 1e-3).powi(2),
        }
    }

    /// ν of a laminar flow, else zero.
    pub(crate) fn laminar(&self) -> f64 {
        match self.fluid.viscosity {
            Viscosity::Laminar(nu) => nu,
            Viscosity::Artificial(_) => 0.0,
        }
    }

    /// Puts a particle that went through a face of the tank or of an obstacle back on it, without the velocity that brought it
    /// there. Side walls have no upper end.
    pub(crate) fn keep_inside(&self, particle: &mut Particle<D>) {
        for axis in 0..D {
            if particle.position[axis] < 0.0 {
                particle.stop(axis, 0.0, 1.0);
            } else if axis != 1 && particle.position[axis] > self.length(axis) {
                particle.stop(axis, self.length(axis), -1.0);
            }
        }
        let place = particle.position;
        for block in self.obstacles.iter().filter(|block| block.holds(&place)) {
            let tank = std::array::from_fn(|axis| self.length(axis));
            if let Some((axis, face)) = block.nearest_face(&place, &tank) {
                particle.stop(axis, face, if face == block.low[axis] { -1.0 } else { 1.0 });
            }
        }
    }

    /// Inside the walls along an axis, in meters.
    pub(crate) fn length(&self, axis: usize) -> f64 {
        self.inside[axis] as f64 * self.fluid.spacing
    }

    /// Whether a wall may be within the kernel's reach.
    #[inline(always)]
    pub(crate) fn beside_wall(&self, position: &[f64; D]) -> bool {
        let reach = self.fluid.support();
        let of_tank = (0..D).any(|axis| {
            let open = self.walls.is_empty() || self.period[axis].is_some();
            !open && (position[axis] < reach || position[axis] > self.length(axis) - reach)
        });
        // A gate is as thick as the kernel reaches.
        let ahead = position[0] - self.column_width();
        let of_gate = self.gate.is_some() && -reach < ahead && ahead < 2.0 * reach;
        let of_obstacle = |block: &Block<D>| {
            let inside = |axis| block.low[axis] - reach < position[axis] && position[axis] < block.high[axis] + reach;
            (0..D).all(inside)
        };
        of_tank || of_gate || self.obstacles.iter().any(of_obstacle)
    }

    /// A particle that is outside by more than the kernel reaches will not come back.
    pub(crate) fn lost(&self, position: &[f64; D]) -> bool {
        let margin = self.fluid.support();
        (0..D).any(|axis| {
            let length = self.inside[axis] as f64 * self.fluid.spacing;
            let open = self.walls.is_empty() || (axis == 1 && self.fluid.free_surface);
            position[axis] < -margin || (!open && position[axis] > length + margin)
        })
    }
}

impl Case<2> {
    /// The case, if its periods are as long as the kernel needs: twice its reach. Ghosts come from within that distance, so from one period away
    /// at most.
    ///
    /// # Errors
    /// A shorter period, with what is needed.
    pub(crate) fn wide_enough(self) -> Result<Self, String> {
        let Fluid { spacing, .. } = self.fluid;
        let least = (2.0 * self.fluid.support() / spacing).round() as usize;
        match (0..2).find(|&axis| self.period[axis].is_some() && self.counts[axis] < least) {
            None => Ok(self),
            Some(axis) => Err(format!(
                "the period of {} m has room for {} particles, {spacing} m apart: at least {least} are needed, twice as many as the kernel \
                 reaches; give a longer period by --column-width or a smaller --spacing",
                self.period[axis].unwrap_or_default(),
                self.counts[axis]
            )),
        }
    }

    /// Vortices of a square of this side at a Reynolds number.
    pub(crate) fn taylor_green(spacing: f64, side: f64, reynolds: f64) -> Self {
        let count = (side / spacing).round() as usize;
        let sound = 10.0 * VORTEX_SPEED;
        let fluid = Fluid {
            spacing: side / count.max(1) as f64,
            smoothing: FULL_SMOOTHING,
            density: 1.0,
            sound,
            viscosity: Viscosity::Laminar(VORTEX_SPEED * side / reynolds),
            diffusion: FULL_DELTA,
            gravity: [0.0; 2],
            free_surface: false,
            friction: 0.0,
        };
        Case {
            kind: Kind::TaylorGreen,
            fluid,
            counts: [count; 2],
            inside: [count; 2],
            period: [Some(side); 2],
            walls: Vec::new(),
            gate: None,
            obstacles: Vec::new(),
        }
    }

    /// Plates at a distance of `gap` meters, periodic along them.
    pub(crate) fn poiseuille(spacing: f64, length: f64, gap: f64) -> Self {
        let across = (gap / spacing).round() as usize;
        let spacing = gap / across.max(1) as f64;
        let counts = [(length / spacing).round() as usize, across];
        let fastest = PLATES_FORCE * gap * gap / (8.0 * PLATES_VISCOSITY);
        let fluid = Fluid {
            spacing,
            smoothing: FULL_SMOOTHING,
            density: 1000.0,
            sound: 10.0 * fastest,
            viscosity: Viscosity::Laminar(PLATES_VISCOSITY),
            diffusion: FULL_DELTA,
            gravity: [PLATES_FORCE, 0.0],
            free_surface: false,
            friction: 0.0,
        };
        // Along the period, as many images as ghosts have.
        let layers = tank::layers(&fluid);
        let mut walls = tank::walls(spacing, 2 * layers, counts, [(true, true); 2], false);
        let height = (counts[1] as f64 + layers as f64) * spacing;
        walls.retain(|Wall { position: wall, .. }| {
            (wall[1] < 0.0 || wall[1] > gap) && wall[1] > -(layers as f64) * spacing && wall[1] < height
        });
        let period = [Some(counts[0] as f64 * spacing), None];
        let (gate, obstacles) = (None, Vec::new());
        Case { kind: Kind::Poiseuille, fluid, counts, inside: counts, period, walls, gate, obstacles }
    }
}

/// The part of a rank, out of so many ranks, of `count` numbers.
pub(crate) fn share(count: u64, rank: usize, ranks: usize) -> std::ops::Range<u64> {
    let first = |rank: usize| (u128::from(count) * rank as u128 / ranks as u128) as u64;
    first(rank)..first(rank + 1)
}

/// The kinematic viscosity of [`ALPHA`] in `dimensions` dimensions, for a column of this height and a speed of sound of so many times that
/// of free fall from it, in m²/s: αhc/(4(D + 2)).
///
/// # Source
/// J. J. Monaghan, Rep. Prog. Phys. 68 (2005), section 5. His viscosity is twice that, because in his form it also acts
/// between particles that move apart.
pub(crate) fn damping(dimensions: usize, spacing: f64, height: f64, sound: f64) -> f64 {
    let sound = sound * (2.0 * GRAVITY * height).sqrt();
    ALPHA * SURFACE_SMOOTHING * spacing * sound / (4.0 * (dimensions as f64 + 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tank_is_open_above() {
        let case = Case::column(Kind::DamBreak, 0.1, Column::plain([1.0, 2.0], [3.0, 2.5]), Water::default());
        assert_eq!((case.counts, case.inside, case.particles()), ([10, 20], [30, 25], 200));
        // Three layers below and beside.
        assert_eq!(case.walls.len(), 36 * 28 - 30 * 25);
        assert!(case.walls.iter().all(|wall| wall.position[1] < 2.5));
        approx::assert_relative_eq!(case.particle(199).position[..], [0.95, 1.95]);
        assert!(case.lost(&[3.4, 0.0]) && !case.lost(&[1.0, 9.0]) && case.lost(&[1.0, -1.0]));
    }

    #[test]
    fn water_is_as_asked_for() {
        let case = |water| Case::column(Kind::DamBreak, 0.1, Column::plain([1.0, 2.0], [3.0, 2.5]), water);
        let thin = case(Water::default());
        assert_eq!(thin.fluid.viscosity, Viscosity::Artificial(ALPHA));
        let other = case(Water { friction: None, sound: 20.0, viscosity: Some(1.0) });
        assert!(other.walls.iter().all(|wall| wall.held == [true; 2]) && thin.walls.iter().all(|wall| wall.held.contains(&true)));
        assert_eq!(other.fluid.sound, 2.0 * thin.fluid.sound);
        let Viscosity::Artificial(alpha) = other.fluid.viscosity else { panic!("{other:?}") };
        approx::assert_relative_eq!(alpha * other.fluid.smoothing() * other.fluid.sound / 16.0, 1.0, max_relative = 1e-12);
    }

    #[test]
    fn plates_are_periodic_with_images() {
        let case = Case::poiseuille(5e-5, 4e-4, 1e-3);
        assert_eq!(case.counts, [8, 20]);
        assert_eq!(case.walls.len(), 2 * 4 * (8 + 16));
    }
}
