//! The force pass: accelerations and rates of density of the fluid, from the snapshot of a step.
//!
//! For particle i and its neighbours j, with r = r_i − r_j, v = v_i − v_j, F = −(1/r) dW/dr ≥ 0:
//!
//! * momentum   dv_i/dt = Σ m F (p_i/ρ_i² + p_j/ρ_j² + Π) r + g, with Monaghan's
//!   Π = −2αhc min(v·r, 0) / ((r² + 0.01h²)(ρ_i + ρ_j)); or, laminar, without Π and − Σ m F 2μ/(ρ_i ρ_j) v;
//! * mass       dρ_i/dt = −Σ m F (v·r + 2δhc (ρ_i − ρ_j − ρ₀ g·r/c²)/ρ_j): continuity and diffusion of what of the density is
//!   not hydrostatic.
//!
//! A lane of the vectors is a particle: eight that follow each other in a row of cells share the stretches where their
//! neighbours are. Each neighbour is loaded once for all lanes; there are no gathers, no list of pairs, no sum over lanes, and as
//! each lane adds term by term in the order of the cells, the width of the vectors does not matter. A pair is computed from both
//! sides with exactly opposite results, so momentum is conserved to rounding; that costs twice the arithmetic of a list of pairs
//! and none of its memory traffic.
//!
//! # Sources
//! * J. J. Monaghan, J. Comput. Phys. 110 (1994): free surfaces, Tait's equation, artificial viscosity.
//! * J. P. Morris, P. J. Fox & Y. Zhu, J. Comput. Phys. 136 (1997): laminar viscosity. Their r·∇W/(r² + 0.01h²) is F here.
//! * D. Molteni & A. Colagrossi, Comput. Phys. Commun. 180 (2009): diffusion of density; G. Fourtakas et al., Comput. Fluids 190
//!   (2019): without the hydrostatic part.

use global_arrays::Work;
use pulp::{Simd, WithSimd};

use crate::cells::{Cells, GHOST, Source};
use crate::particle::{Fluid, Particle, Viscosity};
use crate::wendland;

/// What the force pass finds for a particle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Derivatives<const D: usize> {
    /// dv/dt.
    pub(crate) acceleration: [f64; D],
    /// dρ/dt.
    pub(crate) rate: f64,
    /// −∇C = −Σ ∇W m/ρ₀: points away from where particles crowd. Zero where viscosity is artificial.
    pub(crate) spread: [f64; D],
}

/// Widest vectors, in f64.
const WIDEST: usize = 8;

/// Computes the derivatives of all own particles of the snapshot and hands each to `each` with the particle's number.
///
/// Returns what was computed. For a particle and an entry of a stretch around it, as counted in [`Sums::add`] with a fused operation as
/// two, a division and a root as one: 10 operations for each axis and 18 more; where viscosity is laminar 14 and 12. For a particle, with
/// [`Sums::finish`] and the integrator: 22 for each axis and 15. Each particle is read and written, and its entry read once: rows of
/// cells stay in the cache until the rows behind them are through.
pub(crate) fn pass<const D: usize>(fluid: &Fluid<D>, cells: &Cells<D>, each: impl FnMut(usize, Derivatives<D>)) -> Work {
    let arch = pulp::Arch::new();
    let (of_pair, [particles, pairs]) = match fluid.viscosity {
        Viscosity::Artificial(_) => (10 * D + 18, arch.dispatch(Pass::<D, _, false> { fluid, cells, each })),
        Viscosity::Laminar(_) => (14 * D + 12, arch.dispatch(Pass::<D, _, true> { fluid, cells, each })),
    };
    let bytes = particles * 2 * size_of::<Particle<D>>() + size_of_val(&cells.sources[..]);
    Work::flops((of_pair * pairs + (22 * D + 15) * particles) as f64) + Work::bytes(bytes as f64)
}

struct Pass<'a, const D: usize, E, const LAMINAR: bool> {
    fluid: &'a Fluid<D>,
    cells: &'a Cells<D>,
    each: E,
}

impl<const D: usize, E: FnMut(usize, Derivatives<D>), const LAMINAR: bool> WithSimd for Pass<'_, D, E, LAMINAR> {
    /// How many particles, and how many pairs of one and an entry.
    type Output = [usize; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> [usize; 2] {
        let (mut particles, mut pairs) = (0, 0);
        let width = size_of::<S::f64s>() / size_of::<f64>();
        let law = Law::<S, D>::new(simd, self.fluid);
        let cells = self.cells;
        for row in 0..cells.rows() {
            let entries = cells.row(row);
            for first in entries.clone().step_by(width) {
                let last = (first + width).min(entries.end) - 1;
                if cells.owner[first..=last].iter().all(|&owner| owner >= GHOST) {
                    continue;
                }
                let mut sums = Sums::of(simd, &cells.sources[first..=last]);
                cells.around(row, first, last, |stretch| {
                    pairs += (last + 1 - first) * stretch.len();
                    for source in &cells.sources[stretch] {
                        sums.add::<LAMINAR>(simd, &law, source);
                    }
                });
                let lanes = sums.finish::<LAMINAR>(simd, self.fluid);
                for (lane, &owner) in cells.owner[first..=last].iter().enumerate() {
                    if owner < GHOST {
                        particles += 1;
                        let derivatives = Derivatives {
                            acceleration: lanes.acceleration.map(|axis| axis[lane]),
                            rate: lanes.rate[lane],
                            spread: lanes.spread.map(|axis| axis[lane]),
                        };
                        (self.each)(owner as usize, derivatives);
                    }
                }
            }
        }
        [particles, pairs]
    }
}

/// Constants in all lanes.
struct Law<S: Simd, const D: usize> {
    zero: S::f64s,
    one: S::f64s,
    /// 1/(2h).
    slope: S::f64s,
    /// 0.01h².
    soft: S::f64s,
    /// ρ₀g/c².
    hydrostatic: [S::f64s; D],
}

impl<S: Simd, const D: usize> Law<S, D> {
    #[inline(always)]
    fn new(simd: S, fluid: &Fluid<D>) -> Self {
        let h = fluid.smoothing();
        let splat = |x: f64| simd.splat_f64s(x);
        Law {
            zero: splat(0.0),
            one: splat(1.0),
            slope: splat(0.5 / h),
            soft: splat(0.01 * h * h),
            hydrostatic: fluid.gravity.map(|g| splat(fluid.density * g / (fluid.sound * fluid.sound))),
        }
    }
}

/// Particles, one in each lane, and their sums so far.
struct Sums<S: Simd, const D: usize> {
    position: [S::f64s; D],
    velocity: [S::f64s; D],
    density: S::f64s,
    pressure: S::f64s,
    /// Σ w³ (…) r.
    push: [S::f64s; D],
    /// Σ w³ 2μ/ρ_j v.
    drag: [S::f64s; D],
    /// Σ w³ r.
    spread: [S::f64s; D],
    /// Σ w³ (v·r + diffusion).
    thinning: S::f64s,
}

/// The derivatives of the particles of all lanes.
struct Lanes<const D: usize> {
    acceleration: [[f64; WIDEST]; D],
    rate: [f64; WIDEST],
    spread: [[f64; WIDEST]; D],
}

impl<S: Simd, const D: usize> Sums<S, D> {
    #[inline(always)]
    fn of(simd: S, sources: &[Source<D>]) -> Self {
        let zero = simd.splat_f64s(0.0);
        // Lanes without a particle repeat the first; nobody reads them.
        let mut position = [[0.0; WIDEST]; D];
        let mut velocity = [[0.0; WIDEST]; D];
        let mut density = [1.0; WIDEST];
        let mut pressure = [0.0; WIDEST];
        for (lane, source) in sources.iter().enumerate() {
            for axis in 0..D {
                position[axis][lane] = source.position[axis];
                velocity[axis][lane] = source.velocity[axis];
            }
            density[lane] = source.density;
            pressure[lane] = source.pressure;
        }
        let load = |lanes: &[f64; WIDEST]| S::as_simd_f64s(lanes).0[0];
        Sums {
            position: std::array::from_fn(|axis| load(&position[axis])),
            velocity: std::array::from_fn(|axis| load(&velocity[axis])),
            density: load(&density),
            pressure: load(&pressure),
            push: [zero; D],
            drag: [zero; D],
            spread: [zero; D],
            thinning: zero,
        }
    }

    /// Adds what one neighbour does to all lanes.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn add<const LAMINAR: bool>(&mut self, simd: S, law: &Law<S, D>, source: &Source<D>) {
        let splat = |x: f64| simd.splat_f64s(x);
        let r: [_; D] = std::array::from_fn(|axis| simd.sub_f64s(self.position[axis], splat(source.position[axis])));
        let v: [_; D] = std::array::from_fn(|axis| simd.sub_f64s(self.velocity[axis], splat(source.velocity[axis])));
        let mut square = simd.mul_f64s(r[0], r[0]);
        let mut approach = simd.mul_f64s(v[0], r[0]);
        let mut hydrostatic = simd.mul_f64s(law.hydrostatic[0], r[0]);
        for axis in 1..D {
            square = simd.mul_add_f64s(r[axis], r[axis], square);
            approach = simd.mul_add_f64s(v[axis], r[axis], approach);
            hydrostatic = simd.mul_add_f64s(law.hydrostatic[axis], r[axis], hydrostatic);
        }
        let w = simd.negate_mul_add_f64s(simd.sqrt_f64s(square), law.slope, law.one);
        let w = simd.max_f64s(w, law.zero);
        let weight = simd.mul_f64s(simd.mul_f64s(w, w), w);

        let denser = simd.sub_f64s(simd.sub_f64s(self.density, splat(source.density)), hydrostatic);
        let thinning = simd.mul_add_f64s(splat(source.diffusion), denser, approach);
        self.thinning = simd.mul_add_f64s(weight, thinning, self.thinning);

        let mut stress = simd.add_f64s(self.pressure, splat(source.pressure));
        if LAMINAR {
            let friction = simd.mul_f64s(weight, splat(source.friction));
            for axis in 0..D {
                self.drag[axis] = simd.mul_add_f64s(friction, v[axis], self.drag[axis]);
                self.spread[axis] = simd.mul_add_f64s(weight, r[axis], self.spread[axis]);
            }
        } else {
            let closing = simd.mul_f64s(simd.min_f64s(approach, law.zero), splat(source.friction));
            let mean = simd.mul_f64s(simd.add_f64s(square, law.soft), simd.add_f64s(self.density, splat(source.density)));
            stress = simd.sub_f64s(stress, simd.div_f64s(closing, mean));
        }
        let push = simd.mul_f64s(weight, stress);
        for axis in 0..D {
            self.push[axis] = simd.mul_add_f64s(push, r[axis], self.push[axis]);
        }
    }

    /// The derivatives, lane by lane.
    #[inline(always)]
    fn finish<const LAMINAR: bool>(&self, simd: S, fluid: &Fluid<D>) -> Lanes<D> {
        let factor = simd.splat_f64s(fluid.mass() * wendland::gradient_factor::<D>(fluid.smoothing()));
        let store = |vector: S::f64s| {
            let mut lanes = [0.0; WIDEST];
            S::as_mut_simd_f64s(&mut lanes).0[0] = vector;
            lanes
        };
        let acceleration = std::array::from_fn(|axis| {
            let push = if LAMINAR {
                simd.sub_f64s(self.push[axis], simd.div_f64s(self.drag[axis], self.density))
            } else {
                self.push[axis]
            };
            store(simd.mul_add_f64s(factor, push, simd.splat_f64s(fluid.gravity[axis])))
        });
        let rate = store(simd.neg_f64s(simd.mul_f64s(factor, self.thinning)));
        let volume = simd.div_f64s(factor, simd.splat_f64s(fluid.density));
        let spread = self.spread.map(|sum| if LAMINAR { store(simd.mul_f64s(volume, sum)) } else { [0.0; WIDEST] });
        Lanes { acceleration, rate, spread }
    }
}
