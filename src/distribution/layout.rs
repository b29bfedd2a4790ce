//! The layouts, and their choice of arithmetic for each axis.

use ndarray::Dimension;

use super::Distribution;
use super::axis_map::{BlockSizes, CyclicSizes};
use super::halo::Padded;
use super::restricted::Owners;
use super::tiles::TileEdges;

/// Which arithmetic, and the numbers that it needs on each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout<D> {
    /// Each coordinate has at most one block, all blocks but the last are equal.
    Block(BlockSizes<D>),
    /// Equal blocks dealt round.
    Cyclic(CyclicSizes<D>),
    /// For each axis the first index of each block. An empty block has the first index of the next one.
    Irregular(Vec<Vec<usize>>),
    /// Equal tiles dealt round, each stored by itself.
    Tiled(CyclicSizes<D>),
    /// For each axis the edges of tiles that are dealt round, each stored by itself.
    TiledIrregular(Vec<TileEdges>),
    /// Blocks with ghost cells.
    Padded(Padded<D>),
    /// One of the others over some of the members.
    Restricted(Box<Restricted<D>>),
}

/// A layout over the places of a list of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Restricted<D> {
    pub(super) layout: Layout<D>,
    pub(super) owners: Owners,
}

impl<D> Layout<D> {
    /// The arithmetic, whatever the owners.
    #[inline]
    pub(super) fn arithmetic(&self) -> &Self {
        match self {
            Layout::Restricted(restricted) => &restricted.layout,
            layout => layout,
        }
    }
}

/// Evaluates `$body` with `$map` bound to the map of the distribution's layout: one branch, and the body compiled for each map.
macro_rules! with_map {
    ($distribution:expr, $map:ident => $body:expr) => {{
        use $crate::distribution::{halo::PaddedMap, layout::with_dense_map, tiles::{TiledIrregularMap, TiledMap}};
        let distribution = $distribution;
        let (extents, grid) = (&distribution.extents, &distribution.grid);
        let layout = distribution.layout.arithmetic();
        with_dense_map!(layout, (extents, grid), $map => $body, else match layout {
            Layout::Tiled(sizes) => {
                let $map = TiledMap { extents, grid, sizes };
                $body
            }
            Layout::TiledIrregular(edges) => {
                let $map = TiledIrregularMap { extents, grid, edges };
                $body
            }
            Layout::Padded(padded) => {
                let $map = PaddedMap { extents, grid, padded };
                $body
            }
            _ => unreachable!("a restricted distribution is over a plain one"),
        })
    }};
}
pub(super) use with_map;

/// The same for layouts whose parts are dense arrays of all members; `$other` for the rest.
macro_rules! with_dense_map {
    ($layout:expr, ($extents:expr, $grid:expr), $map:ident => $body:expr, else $other:expr) => {{
        use $crate::distribution::{
            axis_map::{BlockMap, CyclicMap, IrregularMap},
            layout::Layout,
        };
        match $layout {
            Layout::Block(sizes) => {
                let $map = BlockMap { extents: $extents, grid: $grid, sizes };
                $body
            }
            Layout::Cyclic(sizes) => {
                let $map = CyclicMap { extents: $extents, grid: $grid, sizes };
                $body
            }
            Layout::Irregular(cuts) => {
                let $map = IrregularMap { extents: $extents, cuts };
                $body
            }
            _ => $other,
        }
    }};
}
pub(super) use with_dense_map;

impl<D: Dimension> Distribution<D> {
    /// The coordinates of a member, if it has any.
    pub(super) fn coordinates(&self, member: usize) -> Option<D> {
        debug_assert!(member < self.members, "member {member} of {}", self.members);
        let mut rest = match &self.layout {
            Layout::Restricted(restricted) => restricted.owners.place_of(member)?,
            _ => member,
        };
        let mut coordinates = D::zeros(self.extents.ndim());
        for (slot, &grid) in coordinates.slice_mut().iter_mut().zip(self.grid.slice()).rev() {
            (rest, *slot) = (rest / grid, rest % grid);
        }
        (rest == 0).then_some(coordinates)
    }
}
