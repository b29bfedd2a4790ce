//! Forces of the pairs in one list: one atom against eight at a time.
//!
//! A [`Row`](crate::list::Row) of the list is an atom i, an image of the box, and the clusters that have an atom within reach of
//! it. Coordinates and force of i stay in registers while the row's clusters pass by; each cluster costs three loads of
//! positions, three loads and stores of forces (Newton's third law: what acts on i acts on j with the other sign), one
//! division and some twenty other vector operations for eight pairs. Pairs beyond the cut-off are computed and masked: about
//! three of four, which is cheaper than to gather those that are not.
//!
//! Energy and virial are computed only where somebody asks for them.
//!
//! # Source
//! S. Páll, B. Hess, *A flexible algorithm for calculating pair interactions on SIMD architectures*, Computer Physics
//! Communications 184 (2013): clusters of atoms in place of atoms in the list. Their 4 × 4 became 1 × 8 for vectors of eight
//! and the short cut-off of this fluid, where few pairs of two whole clusters interact.

use global_arrays::simulation::Work;
use pulp::{Simd, WithSimd};

use crate::cluster::{Cluster, Lanes, WIDTH};
use crate::list::List;
use crate::potential::{self, Potential};

/// Energy and virial of some pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) energy: f64,
    /// Σ r·F over the pairs.
    pub(crate) virial: f64,
}

/// Adds the forces of all pairs in `list` to `forces`; returns their energy and virial if `sums`, else zeros.
///
/// `positions`, `kinds` and `forces` are those of all slots; only what the list names is looked at. Kinds are not looked at where there is
/// only one.
///
/// # Panics
/// If the list names a cluster that is not there.
pub(crate) fn add_forces(
    list: &List,
    potential: &Potential,
    (positions, kinds): (&[Cluster], &[Lanes]),
    forces: &mut [Cluster],
    sums: bool,
) -> Sums {
    macro_rules! kernel {
        ($sums:literal, $bent:literal, $mixed:literal) => {
            pulp::Arch::new().dispatch(Kernel::<$sums, $bent, $mixed> { list, potential, positions, kinds, forces })
        };
    }
    // One kernel for each case, so that none pays for what it does not need.
    match (sums, potential.is_bent(), potential.is_mixed()) {
        (false, false, false) => kernel!(false, false, false),
        (false, true, false) => kernel!(false, true, false),
        (true, false, false) => kernel!(true, false, false),
        (true, true, false) => kernel!(true, true, false),
        (false, false, true) => kernel!(false, false, true),
        (false, true, true) => kernel!(false, true, true),
        (true, false, true) => kernel!(true, false, true),
        (true, true, true) => kernel!(true, true, true),
    }
}

/// What [`add_forces`] computes for a list.
///
/// Counted in the code below, with a fused operation as two, a division and a root as one: 27 operations for a pair, 4 more where the
/// force is bent, 8 more with sums (11 where it is bent); and 27 for a row, whose three sums go over the lanes. For each kind of atom but the
/// first, a comparison and the choice of each constant. Of memory it reads the list; the clusters of a task stay in the cache.
pub(crate) fn work(list: &List, potential: &Potential, sums: bool) -> Work {
    let bent = potential.is_bent();
    let (of_bend, of_sums, constants) = match (bent, sums) {
        (false, false) => (0, 0, 3),
        (false, true) => (0, 8, 4),
        (true, false) => (4, 0, 4),
        (true, true) => (4, 11, 6),
    };
    let pair = 27 + of_bend + of_sums + (potential.kinds() - 1) * (1 + constants);
    let pairs = WIDTH * list.vectors();
    let bytes = size_of_val(&list.rows[..]) + size_of_val(&list.clusters[..]);
    Work::flops((pair * pairs + 27 * list.rows.len()) as f64) + Work::bytes(bytes as f64)
}

struct Kernel<'a, const SUMS: bool, const BENT: bool, const MIXED: bool> {
    list: &'a List,
    potential: &'a Potential,
    positions: &'a [Cluster],
    kinds: &'a [Lanes],
    forces: &'a mut [Cluster],
}

/// The number of each lane.
const LANE: Lanes = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

impl<const SUMS: bool, const BENT: bool, const MIXED: bool> WithSimd for Kernel<'_, SUMS, BENT, MIXED> {
    type Output = Sums;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Sums {
        let Kernel { list, potential, positions, kinds, forces } = self;
        let pair = Pair::<S, SUMS, BENT>::new(simd);
        let only = Law::of(simd, &potential.laws(0)[0]);
        let mut totals = Totals { energy: simd.splat_f64s(0.0), virial: simd.splat_f64s(0.0) };
        let (lane, _) = S::as_simd_f64s(&LANE);
        // The forces on the atoms of the present cluster as rows leave them: added to memory with the next cluster, because
        // a vector load right after eight single stores would wait for them.
        let mut own = Cluster::ZERO;
        let mut present = usize::MAX;
        let mut start = 0;
        for row in &list.rows {
            let (cluster, atom) = (row.atom as usize / WIDTH, row.atom as usize % WIDTH);
            if cluster != present {
                if present != usize::MAX {
                    add(&mut forces[present], &own);
                }
                own = Cluster::ZERO;
                present = cluster;
            }
            let home = positions[cluster].atom(atom);
            let laws = potential.laws(if MIXED { kinds[cluster][atom] as usize } else { 0 });
            let i: [S::f64s; 3] = std::array::from_fn(|d| simd.splat_f64s(home[d] - list.images[row.image as usize][d]));
            let mut force = [simd.splat_f64s(0.0); 3];
            if row.itself {
                let above = simd.splat_f64s(atom as f64);
                let j = &positions[cluster];
                for (v, &lane) in lane.iter().enumerate() {
                    let later = simd.less_than_f64s(above, lane);
                    let law = if MIXED { Law::choose(simd, laws, &kinds[cluster], v) } else { only };
                    pair.add(&law, i, j, v, Some(later), &mut force, &mut forces[cluster], &mut totals);
                }
            }
            for &j in &list.clusters[start..row.end as usize] {
                let number = j as usize;
                let (j, to) = (&positions[number], &mut forces[number]);
                for v in 0..WIDTH / S::F64_LANES {
                    let law = if MIXED { Law::choose(simd, laws, &kinds[number], v) } else { only };
                    pair.add(&law, i, j, v, None, &mut force, to, &mut totals);
                }
            }
            start = row.end as usize;
            for (own, force) in own.0.iter_mut().zip(force) {
                own[atom] += simd.reduce_sum_f64s(force);
            }
        }
        if present != usize::MAX {
            add(&mut forces[present], &own);
        }
        Sums { energy: simd.reduce_sum_f64s(totals.energy), virial: simd.reduce_sum_f64s(totals.virial) }
    }
}

#[inline(always)]
fn add(to: &mut Cluster, from: &Cluster) {
    for (to, from) in to.0.as_flattened_mut().iter_mut().zip(from.0.as_flattened()) {
        *to += from;
    }
}

struct Totals<S: Simd> {
    energy: S::f64s,
    virial: S::f64s,
}

/// The constants of the potential between an atom and each atom of a vector. Those that a kernel does not use cost it nothing.
#[derive(Clone, Copy)]
struct Law<S: Simd> {
    repulsion: S::f64s,
    attraction: S::f64s,
    cutoff: S::f64s,
    cutoff_squared: S::f64s,
    energy_shift: S::f64s,
    force_shift: S::f64s,
}

impl<S: Simd> Law<S> {
    /// The same for all atoms of the vector.
    #[inline(always)]
    fn of(simd: S, law: &potential::Law) -> Self {
        Law {
            repulsion: simd.splat_f64s(law.repulsion),
            attraction: simd.splat_f64s(law.attraction),
            cutoff: simd.splat_f64s(law.cutoff),
            cutoff_squared: simd.splat_f64s(law.cutoff * law.cutoff),
            energy_shift: simd.splat_f64s(law.energy_shift),
            force_shift: simd.splat_f64s(law.force_shift),
        }
    }

    /// For each atom of vector `v` of a cluster the one of its kind. There are few kinds: a selection for each is cheaper than a gather.
    #[inline(always)]
    fn choose(simd: S, laws: &[potential::Law], kinds: &Lanes, v: usize) -> Self {
        let kinds = S::as_simd_f64s(kinds).0[v];
        let mut chosen = Law::of(simd, &laws[0]);
        // No closure and no iterator's: they would be compiled without the vectors of their caller.
        for kind in 1..laws.len() {
            let (is_it, law) = (simd.equal_f64s(kinds, simd.splat_f64s(kind as f64)), Law::of(simd, &laws[kind]));
            chosen = Law {
                repulsion: simd.select_f64s(is_it, law.repulsion, chosen.repulsion),
                attraction: simd.select_f64s(is_it, law.attraction, chosen.attraction),
                cutoff: simd.select_f64s(is_it, law.cutoff, chosen.cutoff),
                cutoff_squared: simd.select_f64s(is_it, law.cutoff_squared, chosen.cutoff_squared),
                energy_shift: simd.select_f64s(is_it, law.energy_shift, chosen.energy_shift),
                force_shift: simd.select_f64s(is_it, law.force_shift, chosen.force_shift),
            };
        }
        chosen
    }
}

/// Constants in registers.
struct Pair<S: Simd, const SUMS: bool, const BENT: bool> {
    simd: S,
    zero: S::f64s,
    one: S::f64s,
    twelfth: S::f64s,
    sixth: S::f64s,
}

impl<S: Simd, const SUMS: bool, const BENT: bool> Pair<S, SUMS, BENT> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        let splat = |value| simd.splat_f64s(value);
        Pair { simd, zero: splat(0.0), one: splat(1.0), twelfth: splat(1.0 / 12.0), sixth: splat(1.0 / 6.0) }
    }

    /// Atom `i` with vector `v` of cluster `j`, as far as `allowed`: adds to the force on i, takes from those on j.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // all of them registers
    fn add(
        &self,
        law: &Law<S>,
        i: [S::f64s; 3],
        j: &Cluster,
        v: usize,
        allowed: Option<S::m64s>,
        force: &mut [S::f64s; 3],
        to: &mut Cluster,
        totals: &mut Totals<S>,
    ) {
        let s = self.simd;
        let mut d = i;
        for (d, j) in d.iter_mut().zip(&j.0) {
            *d = s.sub_f64s(*d, S::as_simd_f64s(j).0[v]);
        }
        let squared = s.mul_add_f64s(d[2], d[2], s.mul_add_f64s(d[1], d[1], s.mul_f64s(d[0], d[0])));
        let mut near = s.less_than_f64s(squared, law.cutoff_squared);
        if let Some(allowed) = allowed {
            near = s.and_m64s(near, allowed);
        }
        let inverse = if BENT { s.div_f64s(self.one, s.sqrt_f64s(squared)) } else { self.zero };
        let inverse_squared = if BENT { s.mul_f64s(inverse, inverse) } else { s.div_f64s(self.one, squared) };
        let sixth = s.mul_f64s(s.mul_f64s(inverse_squared, inverse_squared), inverse_squared);
        // F / r, so that F is this times d.
        let mut pull = s.mul_f64s(s.mul_f64s(s.mul_add_f64s(law.repulsion, sixth, law.attraction), sixth), inverse_squared);
        if BENT {
            pull = s.mul_add_f64s(law.force_shift, inverse, pull);
        }
        let pull = s.select_f64s(near, pull, self.zero);
        if SUMS {
            // The energy has a twelfth of the force's repulsion and a sixth of its attraction.
            let repulsion = s.mul_f64s(s.mul_f64s(law.repulsion, self.twelfth), sixth);
            let mut energy = s.mul_f64s(sixth, s.mul_add_f64s(law.attraction, self.sixth, repulsion));
            energy = s.sub_f64s(energy, law.energy_shift);
            if BENT {
                let r = s.mul_f64s(squared, inverse);
                energy = s.sub_f64s(energy, s.mul_f64s(s.sub_f64s(r, law.cutoff), law.force_shift));
            }
            totals.energy = s.add_f64s(totals.energy, s.select_f64s(near, energy, self.zero));
            // Masked lanes have no pull; those of empty places have a square that is large, not infinite.
            totals.virial = s.mul_add_f64s(pull, squared, totals.virial);
        }
        for (axis, d) in d.into_iter().enumerate() {
            let to = &mut S::as_mut_simd_f64s(&mut to.0[axis]).0[v];
            force[axis] = s.mul_add_f64s(pull, d, force[axis]);
            *to = s.sub_f64s(*to, s.mul_f64s(pull, d));
        }
    }
}
