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

use global_arrays::simulation::Work;
use pulp::{Simd, WithSimd};

use crate::cells::Cells;
use crate::pair::{Kernel, Lanes, dispatch, groups, store};
use crate::particle::Fluid;

/// Sets the wall particles of the snapshot. `found` is scratch memory.
///
/// Returns what was computed: for a particle and an entry of fluid in a stretch around it, 7 operations for each axis and 21 more.
pub(crate) fn pass<const D: usize>(fluid: &Fluid<D>, cells: &mut Cells<D>, found: &mut Vec<(usize, Around<D>)>) -> Work {
    found.clear();
    let pairs = dispatch(Pass { fluid, cells, found });
    for (entry, around) in found.drain(..) {
        let wall = &mut cells.walls.sources[entry];
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
    Work::flops(((7 * D + 21) * pairs) as f64)
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
    fn with_simd<S: Simd>(self, simd: S) -> usize {
        let mut pairs = 0;
        let Pass { fluid, cells, found } = self;
        let kernel = Kernel::new(simd);
        let gravity = fluid.gravity.map(|g| g * fluid.unit());
        for row in 0..cells.rows() {
            for group in groups::<S>(cells.row(&cells.walls, row..row + 1)) {
                let lanes = Lanes::of(simd, &cells.walls.sources[group.clone()]);
                let columns = cells.columns(&cells.walls, row, &group);
                let zero = kernel.zero;
                let (mut weight, mut pressure, mut velocity) = (zero, zero, [zero; D]);
                for other in cells.around(row) {
                    let stretch = cells.stretch(&cells.fluid, other, &columns);
                    pairs += group.len() * stretch.len();
                    for source in &cells.fluid.sources[stretch] {
                        let r = lanes.apart(simd, &Lanes::splat(simd, source));
                        let [_, _, half] = kernel.at(simd, r);
                        // w⁴ (5 − 4w), over 16.
                        let square = simd.mul_f64s(half, half);
                        let rest = simd.negate_mul_add_f64s(simd.splat_f64s(8.0), half, simd.splat_f64s(5.0));
                        let share = simd.mul_f64s(simd.mul_f64s(square, square), rest);
                        weight = simd.add_f64s(weight, share);
                        let mut here = simd.splat_f64s(source.pressure * (source.density * source.density));
                        for (r, gravity) in r.into_iter().zip(gravity) {
                            here = simd.mul_add_f64s(r, simd.splat_f64s(source.density * gravity), here);
                        }
                        pressure = simd.mul_add_f64s(share, here, pressure);
                        for (sum, v) in velocity.iter_mut().zip(source.velocity) {
                            *sum = simd.mul_add_f64s(share, simd.splat_f64s(v), *sum);
                        }
                    }
                }
                let (weight, pressure) = (store(simd, weight), store(simd, pressure));
                let velocity = velocity.map(|axis| store(simd, axis));
                for (lane, entry) in group.enumerate().filter(|&(lane, _)| weight[lane] > 0.0) {
                    let velocity = velocity.map(|axis| axis[lane]);
                    found.push((entry, Around { weight: weight[lane], pressure: pressure[lane], velocity }));
                }
            }
        }
        pairs
    }
}
