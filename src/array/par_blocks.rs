//! The blocks of a rank's part as a parallel iterator, with the feature `rayon`.
//!
//! No block has an element of another one. The views that threads change at once come out of one exclusive borrow of the part by safe
//! divisions: a dense part is divided along each axis where blocks meet, and a tiled part is one tile after another.

use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, ShapeBuilder};
use rayon::{iter::IntoParallelIterator, vec::IntoIter};

use super::{OwnedPart, OwnedPartMut};
use crate::{distribution::Block, element::Element};

impl<T: Element, D: Dimension> OwnedPart<'_, T, D> {
    /// The blocks of this part and their elements, as a parallel iterator in the order of [`blocks`](Self::blocks). Run it in the rank's
    /// pool: `job.pool()?.install(..)`.
    ///
    /// With one block for each rank, as in the default distribution, it has one item. Then divide the [`view`](Self::view).
    pub fn par_blocks(&self) -> IntoIter<(Block<D>, ArrayView<'_, T, D>)> {
        let blocks: Vec<_> = self.blocks().map(|block| (block.clone(), self.block(&block))).collect();
        blocks.into_par_iter()
    }
}

impl<T: Element, D: Dimension> OwnedPartMut<'_, T, D> {
    /// The blocks of this part and their elements, as a parallel iterator in the order of [`blocks`](Self::blocks). Run it in the rank's
    /// pool.
    ///
    /// With one block for each rank, as in the default distribution, it has one item. Then divide the [`view_mut`](Self::view_mut).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// use rayon::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray2::<f64>::builder(job, [90, 70]).block_cyclic([16, 16]).create()?;
    ///     let pool = job.pool()?;
    ///     a.owner_epoch(|mut part| {
    ///         pool.install(|| part.par_blocks().for_each(|(block, mut x)| x.fill(block.patch.start()[1] as f64)));
    ///     })?;
    ///     assert_eq!(a.load([33, 69])?, 64.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    pub fn par_blocks(&mut self) -> IntoIter<(Block<D>, ArrayViewMut<'_, T, D>)> {
        let blocks: Vec<Block<D>> = self.blocks().collect();
        let views = if self.distribution().is_tiled() { self.tiles(&blocks) } else { self.rectangles(&blocks) };
        debug_assert!(
            blocks.len() == views.len() && blocks.iter().zip(&views).all(|(block, view)| view.raw_dim() == *block.patch.count())
        );
        blocks.into_iter().zip(views).collect::<Vec<_>>().into_par_iter()
    }

    /// The views of tiles, which lie one after another in memory, in any order.
    fn tiles(&mut self, blocks: &[Block<D>]) -> Vec<ArrayViewMut<'_, T, D>> {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.sort_by_key(|&at| blocks[at].offset);
        let (mut views, mut rest, mut taken) = (Vec::new(), &mut *self.elements, 0);
        for at in order {
            let Block { patch, offset, strides, .. } = &blocks[at];
            let (tile, behind) = std::mem::take(&mut rest)[offset - taken..].split_at_mut(patch.len());
            (rest, taken) = (behind, offset + patch.len());
            let view = ArrayViewMut::from_shape(patch.count().clone().strides(strides.clone()), tile);
            views.push((at, view.expect("a tile holds its shape")));
        }
        views.sort_by_key(|(at, _)| *at);
        views.into_iter().map(|(_, view)| view).collect()
    }

    /// The views of blocks of a dense part: some rows times some columns, and so on.
    fn rectangles(&mut self, blocks: &[Block<D>]) -> Vec<ArrayViewMut<'_, T, D>> {
        if blocks.is_empty() {
            return Vec::new();
        }
        let part = self.elements_mut();
        (0..part.ndim()).fold(vec![part], |views, axis| {
            let mut starts: Vec<usize> = blocks.iter().map(|block| block.local_start[axis]).collect();
            starts.sort_unstable();
            starts.dedup();
            views.into_iter().flat_map(|view| divide(view, Axis(axis), &starts)).collect()
        })
    }
}

/// A view in parts that start at these indices of an axis, the first of which is 0.
fn divide<'a, T, D: Dimension>(view: ArrayViewMut<'a, T, D>, axis: Axis, starts: &[usize]) -> Vec<ArrayViewMut<'a, T, D>> {
    let (mut parts, mut rest) = (Vec::new(), view);
    for lengths in starts.windows(2) {
        let (part, behind) = rest.split_at(axis, lengths[1] - lengths[0]);
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);
    parts
}
