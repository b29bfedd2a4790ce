//! Which member owns each element, and where the element lies in the owner's part. Pure integer arithmetic.
//!
//! # The model
//!
//! A *member* is an index within the group of the array, `0..members`. Each axis is cut into blocks, which are dealt to the *coordinates*
//! of a process grid. Members are numbered in row-major order of their coordinates; members beyond the grid own nothing. A member owns
//! the elements whose index on every axis belongs to its coordinate there. It stores them in one *local part*. This is a dense array in
//! row- or column-major [`Order`]: on each axis the blocks follow each other without gaps. Or it is tiled: each block is a separate dense
//! array (`tiles.rs`). The [tutorial](crate::guide::tutorial::ownership) has pictures.
//!
//! Five layouts differ only in the arithmetic of one axis (the private trait `AxisMap`) and in whether blocks are tiles:
//!
//! | layout | coordinate of index `i` | local index |
//! |---|---|---|
//! | block | `i / b` | `i % b` |
//! | block-cyclic | `(i / b) % p` | `(i / b / p) * b + i % b` |
//! | irregular | that of the last cut ≤ `i` | `i - cut` |
//! | tiled | as block-cyclic | as block-cyclic |
//! | tiled-irregular | `k % p`, where cut `k` is the last cut ≤ `i` | the lengths of tiles `k - p`, `k - 2p`, … plus `i - cut` |
//!
//! Block-cyclic is ScaLAPACK's map on a row-major process grid with the first block at process 0 (`INDXG2P`, `INDXG2L`). You can pass the
//! local part to ScaLAPACK and ELPA ([`GlobalArray::scalapack`](crate::GlobalArray::scalapack)). Any layout can be
//! [restricted](Distribution::restricted) to some members.
//!
//! Blocks, regular or irregular, may be padded by ghost cells (`halo.rs`). Functions about a part's *memory*
//! ([`Distribution::part_shape`], strides, offsets) include this margin; functions about its *elements* ([`Distribution::local_shape`])
//! do not.
//!
//! # How to add a layout
//!
//! A product of axes needs one more implementation of `AxisMap` and one more line in the private enum `Layout` (`layout.rs`). Only
//! `locate.rs`, `local.rs` and `pieces.rs` compute local offsets from local indices, and members from positions.
//!
//! # Cost
//!
//! Every operation on a single element calls [`Distribution::locate`] or [`Distribution::single`]. So divisions are multiplications by a
//! reciprocal (`reciprocal.rs`), or one division serves all axes (`slabs.rs`); the layout is one predictable branch; and numbers for each
//! axis have the array's own dimension type: no allocation, and constant loop bounds up to six axes. Tiled and restricted arrays pay some
//! nanoseconds for a call.
//!
//! # Guarantees
//!
//! Construction checks everything: the number of elements fits `isize`, blocks and grids are not zero, cuts ascend. After that no method
//! fails on an index inside the extents. Only debug builds check for indices outside, because [`IntoPatch`](crate::index::IntoPatch)
//! already has.

mod axis_map;
mod build;
mod error;
mod grid;
mod halo;
mod layout;
mod local;
mod locate;
mod pieces;
mod reciprocal;
mod restricted;
mod slabs;
mod tiles;

#[cfg(test)]
mod model;

use ndarray::Dimension;

pub use error::DistributionError;
pub(crate) use halo::GhostBox;
pub use halo::{Boundary, Ghosts, Side};
use layout::Layout;
pub use local::{Block, Blocks};
pub use locate::{Location, Single};
pub use pieces::{Piece, Pieces};
use slabs::Slabs;
use tiles::TileEdges;

/// How the elements of a member's part are ordered in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last axis is contiguous, as in C.
    #[default]
    RowMajor,
    /// The first axis is contiguous, as in Fortran.
    ColumnMajor,
}

/// Which member owns each element of an array, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution<D> {
    extents: D,
    /// Coordinates on each axis; their product is at most `members`.
    grid: D,
    members: usize,
    order: Order,
    layout: Layout<D>,
    /// Where only the slowest axis is cut.
    slabs: Option<Slabs<D>>,
}

impl<D: Dimension> Distribution<D> {
    /// Elements along each axis of the whole array.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.extents.slice()
    }

    #[inline]
    pub(crate) fn extents(&self) -> &D {
        &self.extents
    }

    /// Number of members, including those that own nothing.
    #[inline]
    #[must_use]
    pub fn members(&self) -> usize {
        self.members
    }

    /// The process grid. Members at or beyond its product own nothing.
    #[doc(alias("GA_Get_proc_grid", "GA_Nblock"))]
    #[inline]
    #[must_use]
    pub fn grid(&self) -> &[usize] {
        self.grid.slice()
    }

    /// Edges of one block or tile; `None` if blocks differ. ScaLAPACK's `MB` and `NB`.
    #[doc(alias = "GA_Get_block_info")]
    #[must_use]
    pub fn block_shape(&self) -> Option<&[usize]> {
        match self.layout.arithmetic() {
            Layout::Block(sizes) => Some(sizes.block.slice()),
            Layout::Cyclic(sizes) | Layout::Tiled(sizes) => Some(sizes.block.slice()),
            Layout::Irregular(_) | Layout::TiledIrregular(_) | Layout::Restricted(_) => None,
            Layout::Padded(padded) => padded.block_shape(),
        }
    }

    /// `block`, `block-cyclic`, `irregular`, `tiled` or `tiled-irregular`.
    #[doc(alias = "GA_Uses_proc_grid")]
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.layout.arithmetic() {
            Layout::Block(_) => "block",
            Layout::Cyclic(_) => "block-cyclic",
            Layout::Tiled(_) => "tiled",
            Layout::TiledIrregular(_) => "tiled-irregular",
            Layout::Irregular(_) | Layout::Restricted(_) => "irregular",
            Layout::Padded(padded) => padded.kind(),
        }
    }

    /// Whether each block is contiguous in memory, so that a part of several blocks is not one dense array.
    #[inline]
    #[must_use]
    pub fn is_tiled(&self) -> bool {
        matches!(self.layout.arithmetic(), Layout::Tiled(_) | Layout::TiledIrregular(_))
    }

    /// The memory order of local parts.
    #[inline]
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// The ghost cells, if the array has any.
    #[doc(alias = "GA_Has_ghosts")]
    #[inline]
    #[must_use]
    pub fn ghosts(&self) -> Option<&Ghosts<D>> {
        match self.layout.arithmetic() {
            Layout::Padded(padded) => Some(&padded.ghosts),
            _ => None,
        }
    }

    /// The members that may own elements, in the order of their positions in the process grid; `None` if these are all members.
    pub fn owners(&self) -> Option<impl Iterator<Item = usize> + '_> {
        match &self.layout {
            Layout::Restricted(restricted) => Some(restricted.owners.iter()),
            _ => None,
        }
    }

    /// A number that is equal for equal distributions, and almost certainly different otherwise.
    #[doc(alias = "GA_Compare_distr")]
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut state = 0;
        let mut mix = |number: usize| state = scramble(state ^ number as u64);
        mix(self.extents.ndim());
        mix(self.members);
        mix(self.order as usize);
        for number in self.extents.slice().iter().chain(self.grid.slice()) {
            mix(*number);
        }
        match self.layout.arithmetic() {
            Layout::Block(_) | Layout::Restricted(_) => mix(1),
            Layout::Cyclic(sizes) => {
                mix(2);
                sizes.block.slice().iter().for_each(|&block| mix(block));
            }
            Layout::Irregular(cuts) => {
                mix(3);
                cuts.iter().flatten().for_each(|&cut| mix(cut));
            }
            Layout::Tiled(sizes) => {
                mix(4);
                sizes.block.slice().iter().for_each(|&block| mix(block));
            }
            Layout::TiledIrregular(edges) => {
                mix(5);
                edges.iter().flat_map(TileEdges::starts).for_each(|&start| mix(start));
            }
            Layout::Padded(padded) => {
                mix(7);
                padded.numbers().for_each(&mut mix);
            }
        }
        if let Layout::Restricted(restricted) = &self.layout {
            mix(6);
            restricted.owners.iter().for_each(mix);
        }
        state
    }
}

/// One step of the SplitMix64 generator: every bit of the input reaches every bit of the answer.
fn scramble(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use ndarray::Dim;

    use super::*;

    #[test]
    fn fingerprints_differ_where_distributions_do() {
        let extents = Dim([12, 10]);
        let all = [
            Distribution::block_with_grid(&extents, &[2, 2], Order::RowMajor).unwrap(),
            Distribution::block_with_grid(&extents, &[2, 2], Order::ColumnMajor).unwrap(),
            Distribution::block_with_grid(&extents, &[4, 1], Order::RowMajor).unwrap(),
            Distribution::block_with_grid(&Dim([10, 12]), &[2, 2], Order::RowMajor).unwrap(),
            Distribution::block_cyclic(&extents, &[6, 5], 4, None, Order::RowMajor).unwrap(),
            Distribution::block_cyclic(&extents, &[5, 6], 4, None, Order::RowMajor).unwrap(),
            Distribution::block_cyclic(&extents, &[6, 5], 5, Some(&[2, 2]), Order::RowMajor).unwrap(),
            Distribution::irregular(&extents, &[vec![0, 6], vec![0, 5]], 4, Order::RowMajor).unwrap(),
            Distribution::irregular(&extents, &[vec![0, 6], vec![0, 4]], 4, Order::RowMajor).unwrap(),
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.fingerprint() == b.fingerprint(), i == j, "{a:?} and {b:?}");
            }
        }
    }
}
