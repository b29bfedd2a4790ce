//! The force pass: accelerations and rates of density of the fluid, from the snapshot of a step.
//!
//! For particle i and its neighbors j, with r = r_i − r_j, v = v_i − v_j, F = −(1/r) dW/dr ≥ 0:
//!
//! * momentum   dv_i/dt = Σ m F (p_i/ρ_i² + p_j/ρ_j² + Π) r + g, with Π = −(αhc/ρ₀) min(v·r, 0)/r²: Monaghan's, but for ρ₀ in place of the
//!   mean of two densities, and without his 0.01h² beside r²;
//! * mass       dρ_i/dt = −Σ m F (v·r + 2δhc (ρ_i − ρ_j − ρ₀ g·r/c²)/ρ₀): continuity and diffusion of what of the density is
//!   not hydrostatic.
//!
//! Walls of a tank damp only what moves towards them: of v·r in Π they take the components of v that they hold (see [`crate::tank`]). Past the others
//! water slips with skin friction, −Σ (m/ρ₀) |dW/dr| (c_f/2K) |u| u with u = v of these components; [`skin`] tells K. In continuity the whole
//! of v·r counts: with walls that move along with the fluid, particles sink into a bed under a flow that spreads. Walls take no part in the
//! diffusion.
//!
//! Where fluid fills all, other laws hold: see [`crate::filled`].
//!
//! # Pairs and sums
//! A pair of fluid in two groups of lanes (see [`crate::pair`]) is computed once, by whichever of the groups comes first in memory. A group of
//! eight is turned against itself: pairs within it are computed once too, but for those half way apart. In shorter vectors, where turning takes
//! long, they are computed from both sides. What the neighbor does to the lanes is summed in registers. What the lanes do to the neighbor is summed
//! in memory, in vectors of the neighbor that keep the lanes apart. Only a layer of rows and the next have such vectors, with eight lanes 192 bytes
//! for each particle: in a plane they stay in the cache. Groups are visited in the order of memory: when one is visited, all before it have left
//! their sums there, so after the visit its particles have all of theirs.
//!
//! A sum of floating-point numbers depends on its order. Here the order depends on where groups begin, so on who owns what. Therefore no sum
//! begins at zero. It begins at 3·2^k, with k so great that sums of stable flows stay between 2·2^k and 4·2^k. The numbers there are equally far apart:
//! each term is rounded to a multiple of that distance, and multiples are summed without errors. So sums are the same in any order, and the two
//! pushes of a pair are opposite to the last bit. [`Beginning`] tells the distance. (Only a term exactly midway between two multiples would be rounded
//! as the sum that it meets asks for. A term is a product of two numbers with at least forty significant bits each, and its last bits lie far
//! below half the distance: a tie is too unlikely to matter. In meters, distances on a lattice could be short in binary.)
//!
//! # Sources
//! * J. J. Monaghan, J. Comput. Phys. 110 (1994): free surfaces, Tait's equation, artificial viscosity.
//! * D. Molteni & A. Colagrossi, Comput. Phys. Commun. 180 (2009): diffusion of density; G. Fourtakas et al., Comput. Fluids 190
//!   (2019): without the hydrostatic part.
//! * M. Antuono, A. Colagrossi, S. Marrone & D. Molteni, Comput. Phys. Commun. 181 (2010): r² and ρ₀ in the viscosity. Theirs acts on
//!   particles that move apart too.
//! * J. Demmel & H. D. Nguyen, *Fast reproducible floating-point summation*, IEEE ARITH 21 (2013): rounding to a distance by adding to
//!   a large number.

use std::ops::Range;

use global_arrays::simulation::Work;
use pulp::{Simd, WithSimd};

use crate::cells::{Cells, Source};
use crate::filled;
use crate::pair::{Across, Kernel, Lanes, Pair, WIDEST, dispatch, groups, store, turns};
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

/// The derivatives of a group of particles, one in each lane.
pub(crate) struct Found<const D: usize> {
    pub(crate) acceleration: [[f64; WIDEST]; D],
    pub(crate) rate: [f64; WIDEST],
    pub(crate) shift: [[f64; WIDEST]; D],
    pub(crate) carried: [[f64; WIDEST]; 2],
}

impl<const D: usize> Found<D> {
    #[inline(always)]
    pub(crate) fn of(&self, lane: usize) -> Derivatives<D> {
        Derivatives {
            acceleration: std::array::from_fn(|axis| self.acceleration[axis][lane]),
            rate: self.rate[lane],
            shift: std::array::from_fn(|axis| self.shift[axis][lane]),
            carried: [0, 1].map(|axis| self.carried[axis][lane] as f32),
        }
    }
}

/// Computes the derivatives of all own particles of the snapshot, group by group, and calls `each` for each particle: with its number, the
/// derivatives of its group, and its lane in the group.
///
/// Returns what was computed. A fused operation counts as two, one of integers as one. For a particle and an entry of a stretch around it there are
/// 10 operations for each axis and 27 more if both are updated, 8 and 24 if only one is, 11 and 28 for one of a wall. For a particle there are 39 for
/// each axis and 23 more: for its sums of eight lanes, the integrator and (4 for each axis) its cell. Where fluid fills all see [`filled::Pass`].
/// Each particle is read and written, and its entry read once: rows of cells stay in the cache until the rows behind them are through.
pub(crate) fn pass<const D: usize>(fluid: &Fluid<D>, cells: &Cells<D>, each: impl FnMut(usize, &Found<D>, usize)) -> Work {
    let [particles, operations] = match fluid.viscosity {
        Viscosity::Artificial(alpha) => dispatch(Pass { fluid, alpha, cells, each }),
        Viscosity::Laminar(viscosity) => dispatch(filled::Pass { fluid, viscosity, cells, each }),
    };
    let bytes = particles * 2 * size_of::<Particle<D>>() + size_of_val(&cells.fluid.sources[..]);
    Work::flops(operations as f64) + Work::bytes(bytes as f64)
}

/// The pass over a fluid with a free surface, of this artificial viscosity.
struct Pass<'a, const D: usize, E> {
    fluid: &'a Fluid<D>,
    alpha: f64,
    cells: &'a Cells<D>,
    each: E,
}

impl<const D: usize, E: FnMut(usize, &Found<D>, usize)> WithSimd for Pass<'_, D, E> {
    /// How many particles, and how many floating-point operations for them.
    type Output = [usize; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [usize; 2] {
        let Pass { fluid, alpha, cells, each } = self;
        let begin = Beginning::new(fluid, alpha);
        let mut sweep = Sweep {
            fluid,
            cells,
            kernel: Kernel::new(simd),
            law: Law::new(simd, fluid),
            across: Across::new(simd),
            begin,
            handed: Handed::new(begin.sums(simd)),
            each,
            particles: 0,
            operations: 0,
        };
        let height = cells.rows_of_layer();
        for layer in (0..cells.rows()).step_by(height) {
            let (rows, after) = (layer..layer + height, layer + height..(layer + 2 * height).min(cells.rows()));
            sweep.handed.go_on(cells.row(&cells.fluid, rows.clone()), cells.row(&cells.fluid, after));
            for row in rows {
                for group in groups::<S>(cells.row(&cells.fluid, row..row + 1)) {
                    sweep.visit(simd, row, &group);
                }
            }
        }
        [sweep.particles, sweep.operations + (39 * D + 23) * sweep.particles]
    }
}

/// A pass on its way.
struct Sweep<'a, S: Simd, const D: usize, E> {
    fluid: &'a Fluid<D>,
    cells: &'a Cells<D>,
    kernel: Kernel<S>,
    law: Law<S>,
    across: Across<S>,
    begin: Beginning,
    handed: Handed<S, D>,
    each: E,
    particles: usize,
    operations: usize,
}

impl<S: Simd, const D: usize, E: FnMut(usize, &Found<D>, usize)> Sweep<'_, S, D, E> {
    /// Computes the pairs of a group that is in a row with what is behind it, unless there can be no own particle among them.
    #[inline(always)]
    fn visit(&mut self, simd: S, row: usize, group: &Range<usize>) {
        let cells = self.cells;
        let sources = &cells.fluid.sources;
        let columns = cells.columns(&cells.fluid, row, group);
        let in_row = group.end..cells.stretch(&cells.fluid, row, &columns).end;
        let behind = || cells.around(row).filter(|&other| other > row);
        if !cells.may_have_own(row, &columns) && !behind().any(|other| cells.may_have_own(other, &columns)) {
            self.handed.reset(group);
            return;
        }
        let lanes = Lanes::of(simd, &sources[group.clone()]);
        let mut lanes = Group { kernel: self.kernel, law: self.law, lanes, sums: self.begin.sums(simd) };
        let mut pairs = in_row.len();
        lanes.add_both(simd, &sources[in_row.clone()], self.handed.to(&in_row));
        for other in behind() {
            let stretch = cells.stretch(&cells.fluid, other, &columns);
            pairs += stretch.len();
            lanes.add_both(simd, &sources[stretch.clone()], self.handed.to(&stretch));
        }
        self.operations += (10 * D + 27) * group.len() * pairs;
        if group.clone().any(|entry| cells.own(entry).is_some()) {
            self.operations += lanes.add_each_other(simd, &sources[group.clone()]);
            let mut walls = 0;
            for other in cells.around(row) {
                let stretch = cells.stretch(&cells.walls, other, &columns);
                walls += stretch.len();
                lanes.add_walls(simd, &cells.walls.sources[stretch.clone()], &cells.held[stretch]);
            }
            self.operations += (11 * D + 28) * group.len() * walls;
            let found = self.finish(simd, &lanes.sums, group);
            for (lane, entry) in group.clone().enumerate() {
                if let Some(particle) = cells.own(entry) {
                    self.particles += 1;
                    (self.each)(particle, &found, lane);
                }
            }
        }
        self.handed.reset(group);
    }

    /// The derivatives of the particles of a group, from their lanes of `sums` and from what came to each from groups before.
    ///
    /// Exact up to the last products: these are differences and sums of multiples of one distance.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn finish(&mut self, simd: S, sums: &Sums<S, D>, group: &Range<usize>) -> Found<D> {
        let (fluid, across) = (self.fluid, self.across);
        let begin = self.begin.sums::<S, D>(simd);
        let before = self.handed.to(group);
        let factor = 8.0 * fluid.mass() * fluid.unit() * wendland::gradient_factor::<D>(fluid.smoothing());
        let mut acceleration = [[0.0; WIDEST]; D];
        let mut handed = [simd.splat_f64s(0.0); WIDEST];
        for axis in 0..D {
            for (handed, before) in handed.iter_mut().zip(before.iter()) {
                *handed = simd.sub_f64s(before.push[axis], begin.push[axis]);
            }
            let push = simd.add_f64s(simd.sub_f64s(sums.push[axis], begin.push[axis]), across.sum(simd, handed));
            let gravity = simd.splat_f64s(fluid.gravity[axis]);
            acceleration[axis] = store(simd, simd.mul_add_f64s(push, simd.splat_f64s(factor), gravity));
        }
        for (handed, before) in handed.iter_mut().zip(before.iter()) {
            *handed = simd.sub_f64s(before.thinning, begin.thinning);
        }
        let thinning = simd.add_f64s(simd.sub_f64s(sums.thinning, begin.thinning), across.sum(simd, handed));
        let rate = store(simd, simd.mul_f64s(thinning, simd.splat_f64s(-factor / fluid.velocity_scale())));
        Found { acceleration, rate, shift: [[0.0; WIDEST]; D], carried: [[0.0; WIDEST]; 2] }
    }
}

/// Constants in all lanes.
#[derive(Debug, Clone, Copy)]
struct Law<S: Simd> {
    /// c_f/(2Kρ₀) · 2h/unit, see [`skin`]: the distance is q, in units of 2h, and the unit of pairs multiplies all sums at the end. Divided by the
    /// square of the scale of velocities.
    skin: S::f64s,
}

impl<S: Simd> Law<S> {
    #[inline(always)]
    fn new<const D: usize>(simd: S, fluid: &Fluid<D>) -> Self {
        let units = fluid.unit() * fluid.velocity_scale().powi(2);
        Law { skin: simd.splat_f64s(2.0 * fluid.smoothing() / units * skin::<D>(fluid)) }
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

/// Sums of particles, one in each lane; or of one particle, what came from each lane.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))] // A vector that lies in two cache lines takes twice as long.
struct Sums<S: Simd, const D: usize> {
    /// Σ (½w)³ (p_i/ρ_i² + p_j/ρ_j² + Π) r, and of walls skin friction; r over the unit of pairs.
    push: [S::f64s; D],
    /// Σ (½w)³ (v·r + diffusion), v and r in the units of pairs.
    thinning: S::f64s,
}

/// What groups did to particles behind them: to those of a layer of rows and of the next.
///
/// When a group was visited its sums are set to where sums begin, while they are still in the nearest cache.
struct Handed<S: Simd, const D: usize> {
    begin: Sums<S, D>,
    here: Vec<Sums<S, D>>,
    next: Vec<Sums<S, D>>,
    /// The first entries of the layer and of the next.
    first: [usize; 2],
}

impl<S: Simd, const D: usize> Handed<S, D> {
    fn new(begin: Sums<S, D>) -> Self {
        Handed { begin, here: Vec::new(), next: Vec::new(), first: [0; 2] }
    }

    /// Goes on to the next layer, of which these are the entries, and those of the layer after it.
    #[inline(always)]
    fn go_on(&mut self, layer: Range<usize>, after: Range<usize>) {
        std::mem::swap(&mut self.here, &mut self.next);
        // Nothing was handed to the first layer before.
        self.here.resize(layer.len(), self.begin);
        self.next.resize(after.len(), self.begin);
        self.first = [layer.start, after.start];
    }

    /// Sets the sums of a group, which was visited, to where sums begin.
    #[inline(always)]
    fn reset(&mut self, group: &Range<usize>) {
        let begin = self.begin;
        self.to(group).fill(begin);
    }

    /// The sums of a stretch of one of the layers.
    #[inline(always)]
    fn to(&mut self, stretch: &Range<usize>) -> &mut [Sums<S, D>] {
        let [here, next] = self.first;
        if stretch.start < next {
            &mut self.here[stretch.start - here..stretch.end - here]
        } else {
            &mut self.next[stretch.start - next..stretch.end - next]
        }
    }
}

/// A group of particles, one in each lane.
struct Group<S: Simd, const D: usize> {
    // By value: behind a reference they would be loaded again for each pair.
    kernel: Kernel<S>,
    law: Law<S>,
    lanes: Lanes<S, D>,
    sums: Sums<S, D>,
}

impl<S: Simd, const D: usize> Group<S, D> {
    /// Adds what the lanes do to each other; `sources` are theirs. Returns the number of operations.
    ///
    /// If lanes can be turned, each particle meets those of the lanes up to half way around: a pair is computed once, but for those just
    /// half way apart. Else each meets all.
    #[inline(always)]
    fn add_each_other(&mut self, simd: S, sources: &[Source<D>]) -> usize {
        let (both, one) = (10 * D + 27, 8 * D + 24);
        if !turns::<S>() {
            for source in sources {
                self.meet(simd, &Lanes::splat(simd, source)).act(simd, &mut self.sums);
            }
            return sources.len() * sources.len() * one;
        }
        let half = WIDEST / 2;
        for by in 1..=half {
            let met = self.meet(simd, &self.lanes.turned(simd, by));
            met.act(simd, &mut self.sums);
            if by < half {
                met.turned_back(simd, by).act_back(simd, &mut self.sums);
            }
        }
        sources.len() * ((half - 1) * both + one)
    }

    /// Adds what neighbors of fluid do to the lanes, and to the neighbors what the lanes do.
    #[inline(always)]
    fn add_both(&mut self, simd: S, sources: &[Source<D>], theirs: &mut [Sums<S, D>]) {
        for (source, theirs) in sources.iter().zip(theirs) {
            let met = self.meet(simd, &Lanes::splat(simd, source));
            met.act(simd, &mut self.sums);
            met.act_back(simd, theirs);
        }
    }

    /// Computes the pairs with a neighbor of fluid.
    #[inline(always)]
    fn meet(&self, simd: S, neighbor: &Lanes<S, D>) -> Met<S, D> {
        let pair = self.lanes.pair(simd, &self.kernel, neighbor);
        let diffusion = simd.sub_f64s(self.lanes.brings[0], neighbor.brings[0]);
        Met {
            r: pair.r,
            weight: pair.weight,
            gain: simd.add_f64s(pair.approach, diffusion),
            loss: simd.sub_f64s(pair.approach, diffusion),
            push: self.push(simd, neighbor, &pair, pair.approach),
        }
    }

    /// Adds what neighbors of walls do to the lanes. A wall damps components of the velocity that it holds; against the others acts skin
    /// friction.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    fn add_walls(&mut self, simd: S, sources: &[Source<D>], held: &[[bool; D]]) {
        for (source, held) in sources.iter().zip(held) {
            let wall = Lanes::splat(simd, source);
            let pair = self.lanes.pair(simd, &self.kernel, &wall);
            let sums = &mut self.sums;
            sums.thinning = simd.mul_add_f64s(pair.weight, pair.approach, sums.thinning);
            let (mut closing, mut past) = (self.kernel.zero, self.kernel.zero);
            for axis in 0..D {
                if held[axis] {
                    closing = simd.mul_add_f64s(pair.v[axis], pair.r[axis], closing);
                } else {
                    past = simd.mul_add_f64s(pair.v[axis], pair.v[axis], past);
                }
            }
            let push = self.push(simd, &wall, &pair, closing);
            let distance = simd.mul_f64s(simd.add_f64s(pair.square, pair.square), pair.inverse);
            let skin = simd.mul_f64s(simd.mul_f64s(pair.weight, distance), simd.mul_f64s(self.law.skin, simd.sqrt_f64s(past)));
            for axis in 0..D {
                let sum = &mut self.sums.push[axis];
                *sum = simd.mul_add_f64s(push, pair.r[axis], *sum);
                if !held[axis] {
                    *sum = simd.negate_mul_add_f64s(skin, pair.v[axis], *sum);
                }
            }
        }
    }

    /// (½w)³ (p_i/ρ_i² + p_j/ρ_j² + Π), for neighbors that come closer at `approach`, v·r. With the units of pairs, Π is −min(v·r, 0)/q².
    #[inline(always)]
    fn push(&self, simd: S, neighbor: &Lanes<S, D>, pair: &Pair<S, D>, approach: S::f64s) -> S::f64s {
        let pressures = simd.add_f64s(self.lanes.pressure, neighbor.pressure);
        let closing = simd.min_f64s(approach, self.kernel.zero);
        let stress = simd.negate_mul_add_f64s(closing, simd.mul_f64s(pair.inverse, pair.inverse), pressures);
        simd.mul_f64s(pair.weight, stress)
    }
}

/// What pairs of fluid add to sums.
struct Met<S: Simd, const D: usize> {
    r: [S::f64s; D],
    weight: S::f64s,
    gain: S::f64s,
    loss: S::f64s,
    push: S::f64s,
}

impl<S: Simd, const D: usize> Met<S, D> {
    /// To the sums of the lanes.
    #[inline(always)]
    fn act(&self, simd: S, sums: &mut Sums<S, D>) {
        sums.thinning = simd.mul_add_f64s(self.weight, self.gain, sums.thinning);
        for (sum, r) in sums.push.iter_mut().zip(self.r) {
            *sum = simd.mul_add_f64s(self.push, r, *sum);
        }
    }

    /// To those of the neighbors.
    #[inline(always)]
    fn act_back(&self, simd: S, sums: &mut Sums<S, D>) {
        sums.thinning = simd.mul_add_f64s(self.weight, self.loss, sums.thinning);
        for (sum, r) in sums.push.iter_mut().zip(self.r) {
            *sum = simd.negate_mul_add_f64s(self.push, r, *sum);
        }
    }

    /// Brings what turned lanes get back to where they came from.
    #[inline(always)]
    fn turned_back(&self, simd: S, by: usize) -> Self {
        let turn = |vector| simd.rotate_right_f64s(vector, by);
        Met {
            r: self.r.map(turn),
            weight: turn(self.weight),
            gain: turn(self.gain),
            loss: turn(self.loss),
            push: turn(self.push),
        }
    }
}

/// Where sums begin.
///
/// On both sides at least c²h/ρ₀ is left for pushes, and ch for thinning, in the units of pairs. Neighbors that are all on one side, a quarter
/// denser than at rest, push 6 % of that in a plane and 13 % in space; damping stays below αv/4c of it, so α is provided for. Who is pushed by as
/// much as is left gains c or more in a step of the advised length, and the run ends as blown up; with much shorter steps only the equality of bits
/// would be lost. The distance of the numbers is 2⁻⁵¹ of what is left: some 10⁻¹⁴ c²/h in accelerations, 10⁻⁹ of gravity in a column as high as a
/// thousand particles.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    push: f64,
    thinning: f64,
}

impl Beginning {
    fn new<const D: usize>(fluid: &Fluid<D>, alpha: f64) -> Self {
        // 3·2^k, with 2^k at least so much.
        let begin = |left: f64| 3.0 * (left / fluid.unit()).log2().ceil().exp2();
        let (h, c) = (fluid.smoothing(), fluid.sound);
        Beginning { push: begin((1.0 + alpha) * c * c * h / fluid.density), thinning: begin(fluid.velocity_scale() * c * h) }
    }

    #[inline(always)]
    fn sums<S: Simd, const D: usize>(self, simd: S) -> Sums<S, D> {
        Sums { push: [simd.splat_f64s(self.push); D], thinning: simd.splat_f64s(self.thinning) }
    }
}

#[cfg(test)]
mod tests;
