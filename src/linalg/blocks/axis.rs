//! One axis of the block-cyclic distribution: which process owns an index, and under which local number.
//!
//! Blocks of `block` indices are dealt to `processes` in turn, block 0 to process 0 (ScaLAPACK's map with source
//! process 0), as [`Distribution::block_cyclic`](crate::distribution::Distribution::block_cyclic) has them. A factorization asks
//! what that need not know: how many of the indices below a global one are a process's own. Rows and columns of the matrix have one `Axis` each.

use std::ops::Range;

/// The indices `0..extent` in blocks dealt to processes in turn, seen by process `me`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linalg) struct Axis {
    /// Number of indices.
    pub(in crate::linalg) extent: usize,
    /// Indices in a block.
    pub(in crate::linalg) block: usize,
    /// Number of processes along this axis.
    pub(in crate::linalg) processes: usize,
    /// This process, below `processes`.
    pub(in crate::linalg) me: usize,
}

impl Axis {
    /// The same seen by another process.
    pub(in crate::linalg) fn of(&self, me: usize) -> Self {
        Axis { me, ..*self }
    }

    /// The process that owns `global`.
    pub(in crate::linalg) fn owner(&self, global: usize) -> usize {
        global / self.block % self.processes
    }

    /// True if this process owns `global`.
    pub(in crate::linalg) fn mine(&self, global: usize) -> bool {
        self.owner(global) == self.me
    }

    /// How many of the indices below `global` this process owns: the local number of the first own index at or after
    /// `global`. `first_local(extent)` is the local extent (ScaLAPACK's `NUMROC`).
    pub(in crate::linalg) fn first_local(&self, global: usize) -> usize {
        let (blocks, rest) = (global / self.block, global % self.block);
        let (rounds, turn) = (blocks / self.processes, blocks % self.processes);
        rounds * self.block
            + match turn.cmp(&self.me) {
                std::cmp::Ordering::Greater => self.block,
                std::cmp::Ordering::Equal => rest,
                std::cmp::Ordering::Less => 0,
            }
    }

    /// Number of indices that this process owns.
    pub(in crate::linalg) fn local_extent(&self) -> usize {
        self.first_local(self.extent)
    }

    /// The global index of local number `local`.
    pub(in crate::linalg) fn global(&self, local: usize) -> usize {
        (local / self.block * self.processes + self.me) * self.block + local % self.block
    }

    /// The own blocks, each with the local number of its first index.
    pub(in crate::linalg) fn blocks(&self) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
        self.adjacent(self.block)
    }

    /// The own indices in the longest ranges, each with the local number of the first.
    pub(in crate::linalg) fn pieces(&self) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
        self.adjacent(if self.processes == 1 { self.extent.max(1) } else { self.block })
    }

    fn adjacent(self, most: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
        (0..self.local_extent()).step_by(most).map(move |local| {
            let start = self.global(local);
            (start..start + most.min(self.local_extent() - local), local)
        })
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Dim;

    use super::*;
    use crate::distribution::{Distribution, Order};

    /// Every index has exactly one owner, and the three maps agree with a walk over the indices, and with the distribution of the parts.
    #[test]
    fn maps_agree_with_a_walk() {
        for (extent, block, processes) in [(0, 3, 2), (1, 4, 3), (10, 3, 1), (10, 3, 2), (17, 2, 3), (24, 4, 3), (5, 8, 4)] {
            let axes: Vec<Axis> = (0..processes).map(|me| Axis { extent, block, processes, me }).collect();
            let parts =
                Distribution::block_cyclic(&Dim([extent]), &[block], processes, Some(&[processes]), Order::RowMajor).unwrap();
            let mut seen = vec![0; processes];
            for global in 0..extent {
                let owner = axes[0].owner(global);
                for axis in &axes {
                    assert_eq!(axis.first_local(global), seen[axis.me], "{axis:?} {global}");
                    assert_eq!(axis.mine(global), axis.me == owner);
                }
                assert_eq!(axes[owner].global(seen[owner]), global);
                let place = parts.locate(&Dim([global]));
                assert_eq!((place.member, place.offset), (owner, seen[owner]));
                seen[owner] += 1;
            }
            for axis in &axes {
                assert_eq!(axis.local_extent(), seen[axis.me], "{axis:?}");
            }
        }
    }
}
