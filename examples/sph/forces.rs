//! The force pass: accelerations and rates of density of the fluid, from the snapshot of a step.
//!
//! For particle i and its neighbors j, with r = r_i − r_j, v = v_i − v_j, F = −(1/r) dW/dr ≥ 0:
//!
//! * momentum   dv_i/dt = Σ m F (p_i/ρ_i² + p_j/ρ_j² + Π) r + g, with Π = −(αhc/ρ₀) min(v·r, 0)/r²: Monaghan's, but for ρ₀ in place of the
//!   mean of two densities, and without his 0.01h² beside r²;
//! * mass       dρ_i/dt = −Σ m F (v·r + 2δhc (ρ_i − ρ_j − ρ₀ g·r/c²)/ρ_j): continuity and diffusion of what of the density is
//!   not hydrostatic.
//!
//! Walls of a tank damp only what moves towards them: of v·r in Π they take the components of v that they hold (see [`crate::tank`]). Past the others
//! water slips with skin friction, −Σ (m/ρ₀) |dW/dr| (c_f/2K) |u| u with u = v of these components; [`skin`] tells K. In continuity the whole
//! of v·r counts: with walls that move along with the fluid, particles sink into a bed under a flow that spreads.
//!
//! Where fluid fills all, these differ:
//!
//! * The viscosity is laminar: −Σ m F 2ν/ρ₀ v in place of Π.
//! * Particles are shifted to where there are fewer, by δu Δt with δu = −K ∇C, C = Σ W m/ρ₀ and K in proportion to hc. Else a flow with
//!   points of stagnation draws them out into threads.
//! * So a particle moves with v + δu, and its density and velocity change by δu·∇ρ and (δu·∇)v. Without the latter, vortices on
//!   40 x 40 particles are wrong by 2 % at Re = 100 and 3 % at Re = 400; with it by 0.7 % and 1.4 %.
//! * (δu·∇)v does not conserve momentum. Its mean over the neighbors is taken back: the term is Σ V w (e_i − e_j) / ∫w with
//!   e = (δu·∇)v of the pass before, which each particle carries. Pairs of fluid then give opposite results. The shifts are disorder
//!   on the scale of the kernel, so that mean is small. Walls have e = 0.
//! * Gradients are divided by the matrix Σ F **r** ⊗ **r**, which makes them exact in linear flows. With v·r alone the sum of
//!   the densities follows that of Σ W m, which grows when the first lattice breaks up: the mean pressure rises to ρU².
//! * Diffusion is 2δhc (ρ_i − ρ_j)/ρ₀, and conserves the sum of the densities but for what walls exchange.
//!
//! A lane of the vectors is a particle: eight that follow each other in a row of cells share the stretches where their
//! neighbors are. Each neighbor is loaded once for all lanes; there are no gathers, no list of pairs, no sum over lanes, and as
//! each lane adds term by term in the order of the cells, the width of the vectors does not matter. A pair is computed from both
//! sides with exactly opposite results, so momentum is conserved to rounding; that costs twice the arithmetic of a list of pairs
//! and none of its memory traffic.
//!
//! # Sources
//! * J. J. Monaghan, J. Comput. Phys. 110 (1994): free surfaces, Tait's equation, artificial viscosity.
//! * J. P. Morris, P. J. Fox & Y. Zhu, J. Comput. Phys. 136 (1997): laminar viscosity. Their r·∇W/(r² + 0.01h²) is F here.
//! * D. Molteni & A. Colagrossi, Comput. Phys. Commun. 180 (2009): diffusion of density; G. Fourtakas et al., Comput. Fluids 190
//!   (2019): without the hydrostatic part.
//! * M. Antuono, A. Colagrossi, S. Marrone & D. Molteni, Comput. Phys. Commun. 181 (2010): r² and ρ₀ in the viscosity. Theirs acts on
//!   particles that move apart too.
//! * S. J. Lind, R. Xu, P. K. Stansby & B. D. Rogers, J. Comput. Phys. 231 (2012): shifting by the gradient of concentration; A.
//!   Skillen et al., Comput. Meth. Appl. Mech. Eng. 265 (2013): in proportion to Δt, there with the local speed in place of c.
//! * P. N. Sun, A. Colagrossi, S. Marrone, M. Antuono & A.-M. Zhang, Comput. Meth. Appl. Mech. Eng. 348 (2019): what shifting does to density
//!   and velocity. That the mean over the neighbors is taken back is ours.
//! * P. W. Randles & L. D. Libersky, Comput. Meth. Appl. Mech. Eng. 139 (1996), section 3: the matrix.

use global_arrays::Work;
use pulp::{Simd, WithSimd};

use crate::cells::{Cells, GHOST, Source, held, is_wall};
use crate::particle::{Fluid, Particle, Viscosity};
use crate::wendland;

/// What the force pass finds for a particle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Derivatives<const D: usize> {
    /// dv/dt.
    pub(crate) acceleration: [f64; D],
    /// dρ/dt.
    pub(crate) rate: f64,
    /// δu, which moves the particle but is no part of its velocity. Zero under a free surface.
    pub(crate) shift: [f64; D],
    /// (δu·∇)v.
    pub(crate) carried: [f32; 2],
}

/// K over hc. A step of sound across h/4.4 shifts by 0.28 h² ∇C; from 0.5 on it is unstable.
const SPREADING: f64 = 1.25;

/// Widest vectors, in f64.
const WIDEST: usize = 8;

/// Computes the derivatives of all own particles of the snapshot and hands each to `each` with the particle's number.
///
/// Returns what was computed. For a particle and an entry of a stretch around it, as counted in [`Sums::add`] with a fused operation as
/// two: 8 operations for each axis and 31 more, as many for one of a wall; where viscosity is laminar 16 + 4D and 25. For a particle, with
/// [`Sums::finish`] and the integrator: 22 for each axis and 15, and about 100 for the matrix. Each particle is read and written, and its entry read once: rows of
/// cells stay in the cache until the rows behind them are through.
pub(crate) fn pass<const D: usize>(fluid: &Fluid<D>, cells: &Cells<D>, each: impl FnMut(usize, Derivatives<D>)) -> Work {
    let arch = pulp::Arch::new();
    let (of_pair, [particles, pairs]) = match fluid.viscosity {
        Viscosity::Artificial(_) => (8 * D + 31, arch.dispatch(Pass::<D, _, false> { fluid, cells, each })),
        Viscosity::Laminar(_) => ((16 + 4 * D) * D + 25, arch.dispatch(Pass::<D, _, true> { fluid, cells, each })),
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
                let mut sums = Sums::of::<LAMINAR>(simd, &cells.sources[first..=last]);
                cells.around(row, first, last, |stretch| {
                    pairs += (last + 1 - first) * stretch.len();
                    if LAMINAR || cells.all_fluid(&stretch) {
                        for source in &cells.sources[stretch] {
                            sums.add::<LAMINAR>(simd, &law, source);
                        }
                    } else {
                        for (source, &owner) in cells.sources[stretch.clone()].iter().zip(&cells.owner[stretch]) {
                            if is_wall(owner) {
                                sums.add_wall(simd, &law, source, held(owner));
                            } else {
                                sums.add::<LAMINAR>(simd, &law, source);
                            }
                        }
                    }
                });
                let lanes = sums.finish::<LAMINAR>(simd, self.fluid);
                for (lane, &owner) in cells.owner[first..=last].iter().enumerate() {
                    if owner < GHOST {
                        particles += 1;
                        let derivatives = Derivatives {
                            acceleration: lanes.acceleration.map(|axis| axis[lane]),
                            rate: lanes.rate[lane],
                            shift: lanes.shift.map(|axis| axis[lane]),
                            carried: std::array::from_fn(|axis| lanes.carried[axis][lane] as f32),
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
    half: S::f64s,
    /// 1/(8h²).
    scale: S::f64s,
    /// 10⁻¹²h², so that a particle is apart from itself.
    apart: S::f64s,
    /// αhc/ρ₀ over 4h², where viscosity is artificial.
    damping: S::f64s,
    /// 2ν/ρ₀, where viscosity is laminar.
    friction: S::f64s,
    /// 2δhc/ρ₀.
    diffusion: S::f64s,
    /// c_f/(2Kρ₀): see [`skin`]. And by 2h, the unit of distances.
    skin: S::f64s,
}

impl<S: Simd, const D: usize> Law<S, D> {
    #[inline(always)]
    fn new(simd: S, fluid: &Fluid<D>) -> Self {
        let h = fluid.smoothing();
        let splat = |x: f64| simd.splat_f64s(x);
        Law {
            zero: splat(0.0),
            half: splat(0.5),
            scale: splat(0.125 / (h * h)),
            apart: splat(1e-12 * h * h),
            damping: match fluid.viscosity {
                Viscosity::Artificial(alpha) => splat(0.25 * alpha * fluid.sound / (h * fluid.density)),
                Viscosity::Laminar(_) => splat(0.0),
            },
            friction: match fluid.viscosity {
                Viscosity::Artificial(_) => splat(0.0),
                Viscosity::Laminar(nu) => splat(2.0 * nu / fluid.density),
            },
            diffusion: splat(fluid.spreading() / fluid.density),
            skin: splat(2.0 * h * skin::<D>(fluid)),
        }
    }
}

/// What the skin friction of walls is multiplied by.
///
/// A wall resists what moves past it with τ = ½c_f ρu². Each of its particles takes a share that falls with the distance as |dW/dr|, so a particle
/// of fluid at height y over a flat wall gets −(c_f/2K) u² ∫|dW/dr| dV, the integral over the wall. K is the integral of that over y, which is
/// 2/π in a plane and 3/4 in space: then all together get τ.
fn skin<const D: usize>(fluid: &Fluid<D>) -> f64 {
    let all = if D == 2 { std::f64::consts::FRAC_2_PI } else { 0.75 };
    0.5 * fluid.friction / (all * fluid.density)
}

/// A neighbor as seen from the lanes.
struct Pair<S: Simd, const D: usize> {
    r: [S::f64s; D],
    v: [S::f64s; D],
    /// v·r.
    approach: S::f64s,
    /// ½q², with q = |r|/2h.
    square: S::f64s,
    /// 1/q.
    inverse: S::f64s,
    /// ½w.
    half: S::f64s,
    /// (½w)³.
    weight: S::f64s,
}

/// Particles, one in each lane, and their sums so far.
struct Sums<S: Simd, const D: usize> {
    position: [S::f64s; D],
    velocity: [S::f64s; D],
    /// Under a free surface without what is hydrostatic.
    density: S::f64s,
    pressure: S::f64s,
    /// Σ (½w)³ (…) r; and so the next.
    push: [S::f64s; D],
    /// Σ (½w)³ (v·r + diffusion); where fluid fills all, diffusion alone.
    thinning: S::f64s,
    full: Full<S, D>,
}

/// Sums that only a fluid that fills all has, with ½w in place of w.
struct Full<S: Simd, const D: usize> {
    carried: [S::f64s; D],
    /// Σ w³ 2ν/ρ₀ v.
    drag: [S::f64s; D],
    /// Σ w (e_i − e_j).
    mixing: [S::f64s; D],
    /// Σ w³ r.
    spread: [S::f64s; D],
    /// Σ w³ r ⊗ r.
    moments: [[S::f64s; D]; D],
    /// Σ w³ v ⊗ r, a row for each component of v.
    bending: [[S::f64s; D]; D],
    /// Σ w³ (ρ_i − ρ_j) r.
    slope: [S::f64s; D],
}

/// The derivatives of the particles of all lanes.
struct Lanes<const D: usize> {
    acceleration: [[f64; WIDEST]; D],
    rate: [f64; WIDEST],
    shift: [[f64; WIDEST]; D],
    carried: [[f64; WIDEST]; D],
}

impl<S: Simd, const D: usize> Sums<S, D> {
    #[inline(always)]
    fn of<const LAMINAR: bool>(simd: S, sources: &[Source<D>]) -> Self {
        let zero = simd.splat_f64s(0.0);
        // Lanes without a particle repeat the first; nobody reads them.
        let mut position = [[0.0; WIDEST]; D];
        let mut velocity = [[0.0; WIDEST]; D];
        let mut carried = [[0.0; WIDEST]; D];
        let mut density = [1.0; WIDEST];
        let mut pressure = [0.0; WIDEST];
        for (lane, source) in sources.iter().enumerate() {
            for axis in 0..D {
                position[axis][lane] = source.position[axis];
                velocity[axis][lane] = source.velocity[axis];
                if LAMINAR {
                    carried[axis][lane] = source.brings[axis];
                }
            }
            density[lane] = if LAMINAR { source.density } else { source.brings[0] };
            pressure[lane] = source.pressure;
        }
        let load = |lanes: &[f64; WIDEST]| S::as_simd_f64s(lanes).0[0];
        Sums {
            position: std::array::from_fn(|axis| load(&position[axis])),
            velocity: std::array::from_fn(|axis| load(&velocity[axis])),
            density: load(&density),
            pressure: load(&pressure),
            push: [zero; D],
            thinning: zero,
            full: Full {
                carried: std::array::from_fn(|axis| load(&carried[axis])),
                drag: [zero; D],
                mixing: [zero; D],
                spread: [zero; D],
                moments: [[zero; D]; D],
                bending: [[zero; D]; D],
                slope: [zero; D],
            },
        }
    }

    /// What a neighbor is to all lanes.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn pair(&self, simd: S, law: &Law<S, D>, source: &Source<D>) -> Pair<S, D> {
        let splat = |x: f64| simd.splat_f64s(x);
        let r: [_; D] = std::array::from_fn(|axis| simd.sub_f64s(self.position[axis], splat(source.position[axis])));
        let v: [_; D] = std::array::from_fn(|axis| simd.sub_f64s(self.velocity[axis], splat(source.velocity[axis])));
        let mut square = simd.mul_add_f64s(r[0], r[0], law.apart);
        let mut approach = simd.mul_f64s(v[0], r[0]);
        for axis in 1..D {
            square = simd.mul_add_f64s(r[axis], r[axis], square);
            approach = simd.mul_add_f64s(v[axis], r[axis], approach);
        }
        let square = simd.mul_f64s(square, law.scale);
        let inverse = wendland::inverse_root(simd, square);
        let half = simd.max_f64s(simd.negate_mul_add_f64s(square, inverse, law.half), law.zero);
        let weight = simd.mul_f64s(simd.mul_f64s(half, half), half);
        Pair { r, v, approach, square, inverse, half, weight }
    }

    /// Adds what one neighbor of fluid does to all lanes; where fluid fills all, also one of a wall.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn add<const LAMINAR: bool>(&mut self, simd: S, law: &Law<S, D>, source: &Source<D>) {
        let pair = self.pair(simd, law, source);
        let mut stress = simd.add_f64s(self.pressure, simd.splat_f64s(source.pressure));
        if LAMINAR {
            let denser = simd.sub_f64s(self.density, simd.splat_f64s(source.density));
            self.thinning = simd.mul_add_f64s(simd.mul_f64s(pair.weight, law.diffusion), denser, self.thinning);
            self.full.add(simd, law, source, &pair, denser);
        } else {
            let [excess, diffusion] = [0, 1].map(|k| simd.splat_f64s(source.brings[k]));
            let thinning = simd.mul_add_f64s(diffusion, simd.sub_f64s(self.density, excess), pair.approach);
            self.thinning = simd.mul_add_f64s(pair.weight, thinning, self.thinning);
            stress = Self::damp(simd, law, stress, &pair, pair.approach);
        }
        let push = simd.mul_f64s(pair.weight, stress);
        for axis in 0..D {
            self.push[axis] = simd.mul_add_f64s(push, pair.r[axis], self.push[axis]);
        }
    }

    /// Adds what one neighbor of a wall under a free surface does to all lanes. The wall damps components of the velocity that it holds;
    /// against the others acts skin friction.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn add_wall(&mut self, simd: S, law: &Law<S, D>, source: &Source<D>, held: [bool; D]) {
        let pair = self.pair(simd, law, source);
        self.thinning = simd.mul_add_f64s(pair.weight, pair.approach, self.thinning);
        let (mut closing, mut past) = (law.zero, law.zero);
        for axis in 0..D {
            if held[axis] {
                closing = simd.mul_add_f64s(pair.v[axis], pair.r[axis], closing);
            } else {
                past = simd.mul_add_f64s(pair.v[axis], pair.v[axis], past);
            }
        }
        let stress = simd.add_f64s(self.pressure, simd.splat_f64s(source.pressure));
        let stress = Self::damp(simd, law, stress, &pair, closing);
        let push = simd.mul_f64s(pair.weight, stress);
        let distance = simd.mul_f64s(simd.add_f64s(pair.square, pair.square), pair.inverse);
        let skin = simd.mul_f64s(simd.mul_f64s(pair.weight, distance), simd.mul_f64s(law.skin, simd.sqrt_f64s(past)));
        for axis in 0..D {
            self.push[axis] = simd.mul_add_f64s(push, pair.r[axis], self.push[axis]);
            if !held[axis] {
                self.push[axis] = simd.negate_mul_add_f64s(skin, pair.v[axis], self.push[axis]);
            }
        }
    }

    /// The stress with Π, for neighbors that come closer at `approach` = v·r.
    #[inline(always)]
    fn damp(simd: S, law: &Law<S, D>, stress: S::f64s, pair: &Pair<S, D>, approach: S::f64s) -> S::f64s {
        let closing = simd.mul_f64s(simd.min_f64s(approach, law.zero), law.damping);
        simd.negate_mul_add_f64s(closing, simd.mul_f64s(pair.inverse, pair.inverse), stress)
    }

    /// The derivatives, lane by lane.
    #[inline(always)]
    fn finish<const LAMINAR: bool>(&self, simd: S, fluid: &Fluid<D>) -> Lanes<D> {
        let factor = simd.splat_f64s(8.0 * fluid.mass() * wendland::gradient_factor::<D>(fluid.smoothing()));
        let store = |vector: S::f64s| {
            let mut lanes = [0.0; WIDEST];
            S::as_mut_simd_f64s(&mut lanes).0[0] = vector;
            lanes
        };
        let acceleration = std::array::from_fn(|axis| {
            let push = if LAMINAR { simd.sub_f64s(self.push[axis], self.full.drag[axis]) } else { self.push[axis] };
            store(simd.mul_add_f64s(factor, push, simd.splat_f64s(fluid.gravity[axis])))
        });
        let rate = store(simd.neg_f64s(simd.mul_f64s(factor, self.thinning)));
        let mut lanes = Lanes { acceleration, rate, shift: [[0.0; WIDEST]; D], carried: [[0.0; WIDEST]; D] };
        if LAMINAR {
            let vectors = |vectors: [S::f64s; D]| vectors.map(store);
            let (mixing, spread, slope) = (vectors(self.full.mixing), vectors(self.full.spread), vectors(self.full.slope));
            let (moments, bending) = (self.full.moments.map(vectors), self.full.bending.map(vectors));
            let density = store(self.density);
            for lane in 0..WIDEST {
                let vector = |axes: [[f64; WIDEST]; D]| axes.map(|axis| axis[lane]);
                let sums = [vector(mixing), vector(spread), vector(slope)];
                lanes.complete(fluid, lane, density[lane], sums, moments.map(vector), bending.map(vector));
            }
        }
        lanes
    }
}

impl<S: Simd, const D: usize> Full<S, D> {
    /// Adds what one neighbor does to all lanes.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn add(
        &mut self,
        simd: S,
        law: &Law<S, D>,
        source: &Source<D>,
        &Pair { r, v, half, weight, .. }: &Pair<S, D>,
        denser: S::f64s,
    ) {
        let friction = simd.mul_f64s(weight, law.friction);
        for axis in 0..D {
            let other = simd.splat_f64s(source.brings[axis]);
            self.mixing[axis] = simd.mul_add_f64s(half, simd.sub_f64s(self.carried[axis], other), self.mixing[axis]);
            self.drag[axis] = simd.mul_add_f64s(friction, v[axis], self.drag[axis]);
            let pull = simd.mul_f64s(weight, r[axis]);
            self.spread[axis] = simd.add_f64s(pull, self.spread[axis]);
            self.slope[axis] = simd.mul_add_f64s(pull, denser, self.slope[axis]);
            for other in 0..D {
                self.moments[other][axis] = simd.mul_add_f64s(pull, r[other], self.moments[other][axis]);
                self.bending[other][axis] = simd.mul_add_f64s(pull, v[other], self.bending[other][axis]);
            }
        }
    }
}

impl<const D: usize> Lanes<D> {
    /// Adds, where fluid fills all, what follows from the sums of one lane: the shift, and gradients that are exact in linear flows.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn complete(
        &mut self,
        fluid: &Fluid<D>,
        lane: usize,
        density: f64,
        [mixing, spread, slope]: [[f64; D]; 3],
        moments: [[f64; D]; D],
        bending: [[f64; D]; D],
    ) {
        let h = fluid.smoothing();
        let volume = fluid.mass() / fluid.density;
        let shift = spread.map(|sum| SPREADING * h * fluid.sound * volume * 8.0 * wendland::gradient_factor::<D>(h) * sum);
        let inverse = inverse(moments);
        let gradient = |sums: [f64; D]| inverse.map(|row| dot(row, sums));
        for axis in 0..D {
            let of_velocity = gradient(bending[axis]);
            self.rate[lane] -= density * of_velocity[axis];
            self.carried[axis][lane] = dot(shift, of_velocity);
            self.acceleration[axis][lane] += 2.0 * volume / wendland::cone::<D>(h) * mixing[axis];
            self.shift[axis][lane] = shift[axis];
        }
        self.rate[lane] += dot(shift, gradient(slope));
    }
}

#[inline(always)]
fn dot<const D: usize>(a: [f64; D], b: [f64; D]) -> f64 {
    (0..D).map(|axis| a[axis] * b[axis]).sum()
}

/// The inverse of a symmetric, positive definite matrix, by Gauss and Jordan. Such a matrix needs no pivots.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
fn inverse<const D: usize>(mut matrix: [[f64; D]; D]) -> [[f64; D]; D] {
    let mut inverse = [[0.0; D]; D];
    (0..D).for_each(|axis| inverse[axis][axis] = 1.0);
    for pivot in 0..D {
        let scale = 1.0 / matrix[pivot][pivot];
        let of_pivot = (matrix[pivot].map(|x| x * scale), inverse[pivot].map(|x| x * scale));
        (matrix[pivot], inverse[pivot]) = of_pivot;
        for row in (0..D).filter(|&row| row != pivot) {
            let times = matrix[row][pivot];
            for column in 0..D {
                matrix[row][column] -= times * of_pivot.0[column];
                inverse[row][column] -= times * of_pivot.1[column];
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_times_matrix_is_one() {
        let matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]];
        let inverse = inverse(matrix);
        // Symmetric matrices: a row of one is a column of it.
        for (i, row) in matrix.iter().enumerate() {
            for (j, column) in inverse.iter().enumerate() {
                approx::assert_abs_diff_eq!(dot(*row, *column), f64::from(i == j), epsilon = 1e-14);
            }
        }
    }
}
