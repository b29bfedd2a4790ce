//! Ghost cells: blocks padded by copies of the elements around them.
//!
//! A member of an array with ghost cells keeps its block with a margin, its *halo*, of `w` cells on both sides of each axis. In memory
//! this is one dense local array. It is longer than the block by `2w` on each axis, and each element of the block is shifted by `w`. So
//! a padded layout is the layout that it pads, with `w` added to each local index and `2w` to each extent ([`PaddedMap`]). Owners,
//! offsets, blocks and pieces follow as for any other layout. No index of the array names a ghost cell, and a member without elements
//! has no ghost cells.
//!
//! Arithmetic also determines the contents of a ghost cell after an update ([`Distribution::ghost_boxes`]). Cell `l` of an axis copies
//! index `start - w + l`. Beyond the array's edge this index is taken modulo the extent on a periodic axis; on an open axis the cell
//! copies nothing. A halo is cut into boxes in which the index is one progression. Each box is read from the *owners* of its elements,
//! never from another halo. So the width of a halo is not limited: it may be wider than the blocks around it, and wider than the array.

use ndarray::Dimension;

use super::axis_map::{AxisMap, BlockMap, BlockSizes, IrregularMap, Place, map};
use super::{Distribution, DistributionError, Layout};
use crate::index::Patch;

/// What lies beyond the edge of an array on one axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// The array's other end: index −1 is the last index.
    #[default]
    Periodic,
    /// Nothing: ghost cells there keep what the program writes into them.
    Open,
}

/// One of the two sides of a block on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before the first index.
    Low,
    /// After the last index.
    High,
}

/// Widths and boundaries of an array's ghost cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ghosts<D> {
    /// Cells on either side of a block, for each axis.
    pub widths: D,
    /// For each axis.
    pub boundaries: Vec<Boundary>,
    /// Whether updates fill cells that lie beyond the block on more than one axis.
    pub corners: bool,
}

/// The layout of the blocks, and what pads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Padded<D> {
    base: Base<D>,
    ghosts: Ghosts<D>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Base<D> {
    Block(BlockSizes<D>),
    Irregular(Vec<Vec<usize>>),
}

pub(super) struct PaddedMap<'a, D> {
    pub(super) extents: &'a D,
    pub(super) grid: &'a D,
    pub(super) padded: &'a Padded<D>,
}

impl<D: Dimension> PaddedMap<'_, D> {
    fn width(&self, axis: usize) -> usize {
        self.padded.ghosts.widths.slice()[axis]
    }

    /// A block that is not empty, padded.
    fn pad(&self, axis: usize, extent: usize) -> usize {
        if extent == 0 { 0 } else { extent + 2 * self.width(axis) }
    }
}

impl<D: Dimension> AxisMap for PaddedMap<'_, D> {
    fn place(&self, axis: usize, index: usize) -> Place {
        let &PaddedMap { extents, grid, padded } = self;
        let place = match &padded.base {
            Base::Block(sizes) => BlockMap { extents, grid, sizes }.place(axis, index),
            Base::Irregular(cuts) => IrregularMap { extents, cuts }.place(axis, index),
        };
        Place { local: place.local + self.width(axis), extent: self.pad(axis, place.extent), ..place }
    }

    fn extent(&self, axis: usize, coordinate: usize) -> usize {
        let (_, count) = self.block_at(axis, coordinate, 0);
        self.pad(axis, count)
    }

    fn block_at(&self, axis: usize, coordinate: usize, local: usize) -> (usize, usize) {
        let &PaddedMap { extents, grid, padded } = self;
        match &padded.base {
            Base::Block(sizes) => BlockMap { extents, grid, sizes }.block_at(axis, coordinate, local),
            Base::Irregular(cuts) => IrregularMap { extents, cuts }.block_at(axis, coordinate, local),
        }
    }

    fn local_step(&self, _axis: usize, _step: isize) -> Option<isize> {
        None
    }
}

impl<D: Dimension> Padded<D> {
    pub(super) fn kind(&self) -> &'static str {
        match &self.base {
            Base::Block(_) => "block",
            Base::Irregular(_) => "irregular",
        }
    }

    pub(super) fn block_shape(&self) -> Option<&[usize]> {
        match &self.base {
            Base::Block(sizes) => Some(sizes.block.slice()),
            Base::Irregular(_) => None,
        }
    }

    /// The numbers by which two such layouts can differ.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        let cuts = match &self.base {
            Base::Block(_) => &[][..],
            Base::Irregular(cuts) => cuts,
        };
        let boundaries = self.ghosts.boundaries.iter().map(|&boundary| boundary as usize);
        let ghosts = self.ghosts.widths.slice().iter().copied().chain(boundaries).chain([usize::from(self.ghosts.corners)]);
        ghosts.chain(cuts.iter().flatten().copied())
    }
}

/// A box of a halo, and the patch of the array that fills it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GhostBox<D> {
    /// The patch, inside the extents.
    pub(crate) patch: Patch<D>,
    /// Index of its first element within the padded part.
    pub(crate) local: D,
    /// On which axes it lies beyond the block, and where.
    pub(crate) sides: Vec<Option<Side>>,
}

/// A stretch of one axis of a padded block in which the index ascends by one.
#[derive(Clone, Copy)]
struct Stretch {
    local: usize,
    index: usize,
    count: usize,
    side: Option<Side>,
}

impl<D: Dimension> Distribution<D> {
    /// The same distribution with parts padded by ghost cells. Widths of zero change nothing.
    ///
    /// # Errors
    /// A block-cyclic, tiled or restricted distribution (add the ghost cells before the restriction); widths or boundaries for the
    /// wrong number of axes; too many elements with the padding.
    ///
    /// # Source
    /// Global Arrays: `NGA_Create_ghosts`, `NGA_Create_ghosts_irreg`.
    pub fn with_ghosts(self, ghosts: Ghosts<D>) -> Result<Self, DistributionError> {
        let expected = self.extents.ndim();
        for (what, given) in [("ghost widths", ghosts.widths.ndim()), ("boundaries", ghosts.boundaries.len())] {
            if given != expected {
                return Err(DistributionError::AxisCount { what, given, expected });
            }
        }
        if ghosts.widths.slice().iter().all(|&width| width == 0) {
            return Ok(self);
        }
        let padded = |(&n, &w): (&usize, &usize)| w.checked_mul(2).and_then(|margin| margin.checked_add(n));
        let product = self
            .extents
            .slice()
            .iter()
            .zip(ghosts.widths.slice())
            .map(padded)
            .try_fold(1_usize, |product, n| product.checked_mul(n?));
        if product.is_none_or(|product| isize::try_from(product).is_err()) {
            let extents = self.extents.slice().iter().zip(ghosts.widths.slice());
            return Err(DistributionError::TooLarge {
                extents: extents.map(|(n, w)| n.saturating_add(w.saturating_mul(2))).collect(),
            });
        }
        let base = match self.layout {
            Layout::Block(sizes) => Base::Block(sizes),
            Layout::Irregular(cuts) => Base::Irregular(cuts),
            Layout::Padded(padded) => padded.base,
            Layout::Cyclic(_) | Layout::Tiled(_) | Layout::TiledIrregular(_) => {
                return Err(DistributionError::GhostsOfManyBlocks);
            }
            Layout::Restricted(_) => return Err(DistributionError::GhostsOfRestricted),
        };
        Ok(Self { layout: Layout::Padded(Padded { base, ghosts }), slabs: None, ..self })
    }

    /// The ghost cells, if the array has any.
    #[inline]
    #[must_use]
    pub fn ghosts(&self) -> Option<&Ghosts<D>> {
        match self.layout.arithmetic() {
            Layout::Padded(padded) => Some(&padded.ghosts),
            _ => None,
        }
    }

    /// Ghost cells on either side of a block, for each axis.
    #[must_use]
    pub fn ghost_widths(&self) -> D {
        self.ghosts().map_or_else(|| D::zeros(self.extents.ndim()), |ghosts| ghosts.widths.clone())
    }

    /// The boxes of a member's halo that an update fills; together they cover each such cell once.
    pub(crate) fn ghost_boxes(&self, member: usize) -> Vec<GhostBox<D>> {
        let (Some(ghosts), Some(block)) = (self.ghosts(), self.blocks(member).next()) else { return Vec::new() };
        let axes = self.extents.ndim();
        let stretches: Vec<Vec<Stretch>> = (0..axes).map(|axis| self.stretches(ghosts, axis, &block.patch)).collect();
        let mut boxes = Vec::new();
        let mut at = vec![0; axes];
        loop {
            let chosen: Vec<Stretch> = at.iter().zip(&stretches).map(|(&at, axis)| axis[at]).collect();
            let beyond = chosen.iter().filter(|stretch| stretch.side.is_some()).count();
            if beyond == 1 || beyond > 1 && ghosts.corners {
                let of = |value: fn(&Stretch) -> usize| map(&self.extents, |axis| value(&chosen[axis]));
                boxes.push(GhostBox {
                    patch: Patch::block(of(|s| s.index), of(|s| s.count)),
                    local: of(|s| s.local),
                    sides: chosen.iter().map(|stretch| stretch.side).collect(),
                });
            }
            let Some(axis) = (0..axes).rev().find(|&axis| at[axis] + 1 < stretches[axis].len()) else { return boxes };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }

    /// What one axis of a padded block stands for, from its low end to its high end.
    fn stretches(&self, ghosts: &Ghosts<D>, axis: usize, block: &Patch<D>) -> Vec<Stretch> {
        let (start, count) = (block.start().slice()[axis], block.count().slice()[axis]);
        let (width, extent) = (ghosts.widths.slice()[axis], self.extents.slice()[axis]);
        let periodic = ghosts.boundaries[axis] == Boundary::Periodic;
        let mut stretches = Vec::new();
        let mut margin = |side, mut local: usize| {
            let end = local + width;
            while local < end {
                // Padded extents fit `isize`, and cell `width` is the block's first.
                let index = start as isize + local as isize - width as isize;
                let inside = index.rem_euclid(extent as isize) as usize;
                let outside = !periodic && inside as isize != index;
                let count = if outside && index < 0 { index.unsigned_abs() } else { extent - inside };
                let count = if outside && index > 0 { end - local } else { count.min(end - local) };
                if !outside {
                    stretches.push(Stretch { local, index: inside, count, side: Some(side) });
                }
                local += count;
            }
        };
        margin(Side::Low, 0);
        margin(Side::High, width + count);
        let low = stretches.iter().filter(|stretch| stretch.side == Some(Side::Low)).count();
        stretches.insert(low, Stretch { local: width, index: start, count, side: None });
        stretches
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ndarray::{Dim, Ix1, Ix2, Ix3, IxDyn};
    use proptest::prelude::*;

    use super::*;
    use crate::distribution::{Location, Order};

    #[derive(Clone, Debug)]
    struct Drawn {
        extents: Vec<usize>,
        cuts: Option<Vec<Vec<usize>>>,
        members: usize,
        order: Order,
        widths: Vec<usize>,
        boundaries: Vec<Boundary>,
        corners: bool,
        patch: Vec<(usize, usize, isize)>,
    }

    fn drawn(axes: usize, widest: usize) -> impl Strategy<Value = Drawn> {
        let list = |range: std::ops::Range<usize>| prop::collection::vec(range, axes);
        let boundary = prop_oneof![Just(Boundary::Periodic), Just(Boundary::Open)];
        let order = prop_oneof![Just(Order::RowMajor), Just(Order::ColumnMajor)];
        let cuts = prop::option::of(prop::collection::vec(prop::collection::vec(0..100_usize, 0..3), axes));
        let patch = prop::collection::vec((0..100_usize, 0..100_usize, -3..=3_isize), axes);
        let shape = (list(0..widest), cuts, 1..8_usize, order);
        let ghosts = (list(0..4), prop::collection::vec(boundary, axes), any::<bool>());
        (shape, ghosts, patch).prop_map(|((extents, cuts, members, order), (widths, boundaries, corners), patch)| Drawn {
            extents,
            cuts,
            members,
            order,
            widths,
            boundaries,
            corners,
            patch,
        })
    }

    fn dim<D: Dimension>(values: impl IntoIterator<Item = usize>) -> D {
        let values: Vec<usize> = values.into_iter().collect();
        let mut dim = D::zeros(values.len());
        dim.slice_mut().copy_from_slice(&values);
        dim
    }

    /// The distribution without ghost cells and with them.
    fn build<D: Dimension>(drawn: &Drawn) -> (Distribution<D>, Distribution<D>) {
        let extents: D = dim(drawn.extents.clone());
        let plain = match &drawn.cuts {
            None => Distribution::block(&extents, drawn.members, None, drawn.order),
            Some(cuts) => {
                let cuts: Vec<Vec<usize>> = cuts
                    .iter()
                    .zip(&drawn.extents)
                    .map(|(cuts, &n)| {
                        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (n + 1)).chain([0]).collect();
                        cuts.sort_unstable();
                        cuts
                    })
                    .collect();
                Distribution::irregular(
                    &extents,
                    &cuts,
                    cuts.iter().map(Vec::len).product::<usize>().max(drawn.members),
                    drawn.order,
                )
            }
        }
        .unwrap();
        let ghosts = Ghosts { widths: dim(drawn.widths.clone()), boundaries: drawn.boundaries.clone(), corners: drawn.corners };
        (plain.clone(), plain.with_ghosts(ghosts).unwrap())
    }

    fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
        let mut all = vec![vec![]];
        for &n in shape {
            all = all.into_iter().flat_map(|index| (0..n).map(move |i| [&index[..], &[i]].concat())).collect();
        }
        all
    }

    fn dot(index: &[usize], strides: &[usize]) -> usize {
        index.iter().zip(strides).map(|(i, s)| i.wrapping_mul(*s)).fold(0, usize::wrapping_add)
    }

    /// A padded part is the plain one in the middle of a larger array.
    fn check_places<D: Dimension>(drawn: &Drawn) {
        let (plain, padded) = build::<D>(drawn);
        let widths = &drawn.widths;
        for member in 0..plain.members() {
            let (shape, whole) = (plain.local_shape(member), padded.part_shape(member));
            assert_eq!(padded.local_shape(member), shape);
            assert_eq!((padded.local_len(member), padded.part_len(member)), (plain.local_len(member), whole.size()));
            assert!(padded.part_len(member) <= padded.max_part_len());
            let margins = whole.slice().iter().zip(shape.slice()).zip(widths);
            assert!(margins.map(|((whole, n), w)| (*whole, if *n == 0 { 0 } else { n + 2 * w })).all(|(a, b)| a == b));
        }
        for index in indices(&drawn.extents) {
            let (from, to) = (plain.locate(&dim(index.clone())), padded.locate(&dim(index.clone())));
            assert_eq!(from.member, to.member);
            let strides = padded.local_strides(to.member);
            let start = plain.blocks(from.member).next().unwrap().patch.start().clone();
            let local: Vec<usize> = (0..index.len()).map(|k| index[k] - start[k] + widths[k]).collect();
            assert_eq!(to.offset, dot(&local, strides.slice()), "{index:?} of {padded:?}");
            let single = padded.single(&dim(index.clone()), &dim(vec![1; index.len()])).unwrap();
            assert_eq!((single.location, single.strides), (to, strides));
        }
        for member in 0..padded.members() {
            let (blocks, expected): (Vec<_>, Vec<_>) = (padded.blocks(member).collect(), plain.blocks(member).collect());
            assert_eq!(blocks.len(), expected.len());
            for (block, expected) in blocks.iter().zip(&expected) {
                assert_eq!((&block.patch, &block.local_start), (&expected.patch, &expected.local_start));
                assert_eq!(block.offset, padded.locate(block.patch.start()).offset);
            }
        }
        let patch = patch_of::<D>(drawn);
        let mut covered = 0;
        for piece in padded.pieces(&patch) {
            for within in indices(piece.count.slice()) {
                let index = (0..within.len()).map(|k| {
                    let position = within[k] + piece.start[k];
                    patch.start()[k].wrapping_add_signed(position as isize * patch.step(k))
                });
                let offset = piece.offset.wrapping_add(dot(&within, piece.strides.slice()));
                assert_eq!(padded.locate(&dim(index)), Location { member: piece.member, offset });
                covered += 1;
            }
        }
        assert_eq!(covered, patch.len());
    }

    fn patch_of<D: Dimension>(drawn: &Drawn) -> Patch<D> {
        let axis = |(&n, &(first, count, step)): (&usize, &(usize, usize, isize))| {
            let step = if step == 0 { 1 } else { step };
            let first = first % n.max(1);
            let room =
                if step > 0 { n.saturating_sub(first).div_ceil(step.unsigned_abs()) } else { first / step.unsigned_abs() + 1 };
            (first, if n == 0 { 0 } else { count % (room + 1) }, step as usize)
        };
        let axes: Vec<_> = drawn.extents.iter().zip(&drawn.patch).map(axis).collect();
        let of = |value: fn(&(usize, usize, usize)) -> usize| dim(axes.iter().map(value));
        Patch::new(of(|a| a.0), of(|a| a.1), of(|a| a.2))
    }

    /// Each ghost cell, one by one: the element that its index stands for, if any.
    fn check_boxes<D: Dimension>(drawn: &Drawn) {
        let (_, padded) = build::<D>(drawn);
        for member in 0..padded.members() {
            let mut filled: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
            for ghosts in padded.ghost_boxes(member) {
                for within in indices(ghosts.patch.count().slice()) {
                    let add = |to: &D| within.iter().zip(to.slice()).map(|(a, b)| a + b).collect::<Vec<_>>();
                    let index = add(ghosts.patch.start());
                    let cell = add(&ghosts.local);
                    let shape = padded.local_shape(member);
                    for (axis, side) in ghosts.sides.iter().enumerate() {
                        let width = drawn.widths[axis];
                        let beyond = match cell[axis] {
                            low if low < width => Some(Side::Low),
                            inside if inside < width + shape[axis] => None,
                            _ => Some(Side::High),
                        };
                        assert_eq!(*side, beyond);
                    }
                    assert!(filled.insert(cell, index).is_none(), "a cell filled twice");
                }
            }
            let Some(block) = padded.blocks(member).next() else {
                assert!(filled.is_empty());
                continue;
            };
            for cell in indices(padded.part_shape(member).slice()) {
                let (mut beyond, mut nobody) = (0, false);
                let index: Vec<usize> = (0..cell.len())
                    .map(|axis| {
                        let (n, start, count) =
                            (drawn.extents[axis] as i64, block.patch.start()[axis] as i64, block.patch.count()[axis] as i64);
                        let index = start + cell[axis] as i64 - drawn.widths[axis] as i64;
                        beyond += usize::from(index < start || index >= start + count);
                        nobody |= drawn.boundaries[axis] == Boundary::Open && !(0..n).contains(&index);
                        index.rem_euclid(n) as usize
                    })
                    .collect();
                let expected = beyond == 1 || beyond > 1 && drawn.corners;
                let expected = (expected && !nobody).then_some(index);
                assert_eq!(filled.get(&cell), expected.as_ref(), "{cell:?} of member {member} of {padded:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn one_axis(drawn in drawn(1, 12)) {
            check_places::<Ix1>(&drawn);
            check_places::<IxDyn>(&drawn);
            check_boxes::<Ix1>(&drawn);
        }

        #[test]
        fn two_axes(drawn in drawn(2, 8)) {
            check_places::<Ix2>(&drawn);
            check_boxes::<Ix2>(&drawn);
        }

        #[test]
        fn three_axes(drawn in drawn(3, 5)) {
            check_places::<Ix3>(&drawn);
            check_boxes::<IxDyn>(&drawn);
        }
    }

    #[test]
    fn what_cannot_be_padded_is_said() {
        let ghosts = |widths: [usize; 2], axes: usize| Ghosts {
            widths: Dim(widths),
            boundaries: vec![Boundary::Open; axes],
            corners: true,
        };
        let plain = Distribution::block(&Dim([8, 8]), 4, None, Order::RowMajor).unwrap();
        assert_eq!(plain.clone().with_ghosts(ghosts([0, 0], 2)).unwrap(), plain);
        assert!(matches!(plain.clone().with_ghosts(ghosts([1, 1], 1)), Err(DistributionError::AxisCount { given: 1, .. })));
        assert!(matches!(plain.clone().with_ghosts(ghosts([usize::MAX / 4, 9], 2)), Err(DistributionError::TooLarge { .. })));
        let cyclic = Distribution::block_cyclic(&Dim([8, 8]), &[2, 2], 4, None, Order::RowMajor).unwrap();
        assert_eq!(cyclic.with_ghosts(ghosts([1, 1], 2)), Err(DistributionError::GhostsOfManyBlocks));
        let one = plain.clone().with_ghosts(ghosts([1, 1], 2)).unwrap();
        let all = [plain, one.clone(), one.clone().with_ghosts(ghosts([2, 1], 2)).unwrap()];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.fingerprint() == b.fingerprint(), i == j);
            }
        }
        let corners = Ghosts { corners: false, ..ghosts([1, 1], 2) };
        assert_ne!(one.clone().with_ghosts(corners).unwrap().fingerprint(), one.fingerprint());
    }
}
