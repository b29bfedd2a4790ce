//! Eight atoms side by side, the unit of everything that is fast here.
//!
//! Atoms are kept in the order of [`order`](crate::order), so eight neighbours in memory are neighbours in space: a *cluster*.
//! Its coordinates lie component by component, each component one vector of AVX-512 and one cache line. What a global array
//! holds of positions, velocities and forces is this layout, cluster after cluster, as plain `f64`.
//!
//! The number of atoms need not be a multiple of eight. The lanes left over in the last cluster are *empty*: number 0, at
//! rest, and at [`NOWHERE`], farther away than any cut-off, so that no kernel has to know of them.

use bytemuck::{Pod, Zeroable};

/// Atoms of a cluster.
pub(crate) const WIDTH: usize = 8;

/// Numbers of one quantity (positions, velocities or forces) in a cluster.
pub(crate) const NUMBERS: usize = 3 * WIDTH;

/// Where empty lanes are. Its square is finite, its distance from the box beyond every cut-off.
pub(crate) const NOWHERE: f64 = 1e100;

/// One vector of eight numbers.
pub(crate) type Lanes = [f64; WIDTH];

/// One vector quantity of eight atoms: `[component][atom]`.
#[derive(Debug, Clone, Copy, PartialEq, Zeroable, Pod)]
#[repr(C, align(64))]
pub(crate) struct Cluster(pub(crate) [Lanes; 3]);

impl Cluster {
    /// All components zero.
    pub(crate) const ZERO: Cluster = Cluster([[0.0; WIDTH]; 3]);
    /// Eight empty places.
    pub(crate) const EMPTY: Cluster = Cluster([[NOWHERE; WIDTH]; 3]);

    /// The vector of one atom.
    pub(crate) fn atom(&self, lane: usize) -> [f64; 3] {
        self.0.map(|component| component[lane])
    }

    /// Sets the vector of one atom.
    pub(crate) fn set(&mut self, lane: usize, value: [f64; 3]) {
        for (component, value) in self.0.iter_mut().zip(value) {
            component[lane] = value;
        }
    }
}

/// What a global array holds, as clusters; the numbers must begin and end with one.
pub(crate) fn numbers(clusters: &[Cluster]) -> &[f64] {
    bytemuck::cast_slice(clusters)
}

/// The same, to be written.
pub(crate) fn numbers_mut(clusters: &mut [Cluster]) -> &mut [f64] {
    bytemuck::cast_slice_mut(clusters)
}
