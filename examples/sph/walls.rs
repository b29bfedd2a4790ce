//! The wall pass: what the fluid in front of a wall makes the wall's particles be.
//!
//! Walls are layers of particles, at rest but for gates, that continue the lattice of the fluid, as deep as the kernel reaches. Before each force
//! pass they take, from the fluid f around them and weighted by the kernel,
//!
//! * the pressure p = Σ (p_f + ρ_f g·(r − r_f)) W / Σ W, which balances gravity at the wall, and the density that goes with it;
//! * where fluid fills all, the velocity −Σ v_f W / Σ W, so that it vanishes at the wall's face.
//!
//! Under a free surface walls have no velocity, and resist the fluid as [`crate::forces`] tells. They cannot pull: their pressure is at least
//! zero.
//!
//! # Source
//! S. Adami, X. Y. Hu & N. A. Adams: *A generalized wall boundary condition for smoothed particle hydrodynamics*, J. Comput. Phys.
//! 231 (2012), eqs. 22 to 27. There the wall's own velocity enters continuity, here the extrapolated one does.

use global_arrays::Work;
use pulp::{Simd, WithSimd};

use crate::cells::{Cells, is_wall};
use crate::particle::Fluid;

/// Widest vectors, in f64.
const WIDEST: usize = 8;

/// Sets the wall particles of the snapshot. `found` is scratch memory.
///
/// Returns what was computed: for a particle and an entry of fluid in a stretch around it, 8 operations for each axis and 13 more.
pub(crate) fn pass<const D: usize>(fluid: &Fluid<D>, cells: &mut Cells<D>, found: &mut Vec<(usize, Around<D>)>) -> Work {
    found.clear();
    let pairs = pulp::Arch::new().dispatch(Pass { fluid, cells, found });
    for (entry, around) in found.drain(..) {
        let wall = &mut cells.sources[entry];
        if around.weight == 0.0 {
            continue;
        }
        let mut pressure = around.pressure / around.weight;
        if fluid.free_surface {
            pressure = pressure.max(0.0);
        }
        wall.density = fluid.density_at(pressure);
        wall.pressure = pressure / (wall.density * wall.density);
        if !fluid.free_surface {
            wall.velocity = around.velocity.map(|sum| -sum / around.weight);
        }
    }
    Work::flops(((8 * D + 13) * pairs) as f64)
}

/// Sums over the fluid around a wall particle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<const D: usize> {
    /// Σ W, up to the kernel's normalisation; so are the others.
    weight: f64,
    pressure: f64,
    velocity: [f64; D],
}

struct Pass<'a, const D: usize> {
    fluid: &'a Fluid<D>,
    cells: &'a Cells<D>,
    found: &'a mut Vec<(usize, Around<D>)>,
}

impl<const D: usize> WithSimd for Pass<'_, D> {
    /// How many pairs of a wall's particle and one of fluid.
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> usize {
        let mut pairs = 0;
        let width = size_of::<S::f64s>() / size_of::<f64>();
        let cells = self.cells;
        for row in 0..cells.rows() {
            let entries = cells.row(row);
            for first in entries.clone().step_by(width) {
                let last = (first + width).min(entries.end) - 1;
                if cells.owner[first..=last].iter().any(|&owner| is_wall(owner)) {
                    pairs += (last + 1 - first) * self.visit(simd, row, first, last);
                }
            }
        }
        pairs
    }
}

impl<const D: usize> Pass<'_, D> {
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "an axis names the same component of several vectors")]
    /// Returns how many particles of fluid it saw.
    fn visit<S: Simd>(&mut self, simd: S, row: usize, first: usize, last: usize) -> usize {
        let (cells, fluid) = (self.cells, self.fluid);
        let splat = |x: f64| simd.splat_f64s(x);
        let (zero, one, slope) = (splat(0.0), splat(1.0), splat(0.5 / fluid.smoothing()));
        let (four, five) = (splat(4.0), splat(5.0));
        let mut position = [[0.0; WIDEST]; D];
        for (lane, source) in cells.sources[first..=last].iter().enumerate() {
            for axis in 0..D {
                position[axis][lane] = source.position[axis];
            }
        }
        let position: [S::f64s; D] = std::array::from_fn(|axis| S::as_simd_f64s(&position[axis]).0[0]);
        let (mut weight, mut pressure, mut velocity) = (zero, zero, [zero; D]);
        let mut seen = 0;
        cells.around(row, first, last, |stretch| {
            if !cells.any_fluid(&stretch) {
                return;
            }
            for (source, &owner) in cells.sources[stretch.clone()].iter().zip(&cells.owner[stretch]) {
                if is_wall(owner) {
                    continue;
                }
                seen += 1;
                let r: [_; D] = std::array::from_fn(|axis| simd.sub_f64s(position[axis], splat(source.position[axis])));
                let mut square = simd.mul_f64s(r[0], r[0]);
                let mut weighed = simd.mul_f64s(r[0], splat(source.density * fluid.gravity[0]));
                for axis in 1..D {
                    square = simd.mul_add_f64s(r[axis], r[axis], square);
                    weighed = simd.mul_add_f64s(r[axis], splat(source.density * fluid.gravity[axis]), weighed);
                }
                let w = simd.negate_mul_add_f64s(simd.sqrt_f64s(square), slope, one);
                let w = simd.max_f64s(w, zero);
                let square = simd.mul_f64s(w, w);
                // (1 − q/2)⁴ (2q + 1) with q = 2 (1 − w).
                let kernel = simd.mul_f64s(simd.mul_f64s(square, square), simd.negate_mul_add_f64s(four, w, five));
                weight = simd.add_f64s(weight, kernel);
                let here = simd.add_f64s(splat(source.pressure * (source.density * source.density)), weighed);
                pressure = simd.mul_add_f64s(kernel, here, pressure);
                for axis in 0..D {
                    velocity[axis] = simd.mul_add_f64s(kernel, splat(source.velocity[axis]), velocity[axis]);
                }
            }
        });
        if seen == 0 {
            return 0;
        }
        let store = |vector: S::f64s| {
            let mut lanes = [0.0; WIDEST];
            S::as_mut_simd_f64s(&mut lanes).0[0] = vector;
            lanes
        };
        let (weight, pressure, velocity) = (store(weight), store(pressure), velocity.map(store));
        for (lane, &owner) in cells.owner[first..=last].iter().enumerate() {
            if is_wall(owner) {
                let around = Around { weight: weight[lane], pressure: pressure[lane], velocity: velocity.map(|axis| axis[lane]) };
                self.found.push((first + lane, around));
            }
        }
        seen
    }
}
