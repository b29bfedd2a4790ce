//! Ghost cells that come by channels: each rank sends the cells at the edges of its block to the ranks beside it, and waits for theirs.
//!
//! So nobody waits for a rank that is not beside it, and a message is one operation of the network. An epoch makes all ranks meet before it
//! asks for the cells, and once more when it ends.

use std::ops::Range;

use global_arrays::{
    channel::{Channels, Inlet, Outlet, from, to},
    epoch::GhostPartMut,
    index::Patch,
    prelude::*,
};
use ndarray::{ArrayView3, ArrayViewMut3, s};

/// A box of a padded block.
type Cells = [Range<usize>; 3];

/// The channels to and from the blocks around this rank's, with the cells of the padded block that they take or bring.
pub(crate) struct Halo {
    leaving: Vec<(Outlet<f64>, Cells)>,
    coming: Vec<(Inlet<f64>, Cells)>,
    skips: bool,
}

impl Halo {
    /// For `depth` cells around the blocks of arrays that are distributed as this one. Collective.
    pub(crate) fn new(job: &Job, array: &GlobalArray<f64, Ix3>, depth: usize) -> Result<Self, Error> {
        let counts = (0..job.size()).flat_map(|rank| array.blocks(rank)).map(|block| block.patch.count().into_pattern());
        if let Some(least) = counts.map(|(i, j, k)| i.min(j).min(k)).min().filter(|&least| least < depth) {
            let why = format!("a block is {least} cells wide, and would send {depth} of them");
            return Err(Error::other(format!("--way channels --depth {depth}: {why}")));
        }
        let (mut outlets, mut inlets, mut leave, mut come) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for block in array.own_blocks() {
            for (number, step) in around(depth) {
                let along = [0, 1, 2].map(|axis| Along::new(array, &block.patch, axis, step[axis], depth));
                let [Some(i), Some(j), Some(k)] = along else { continue };
                let owner = array.owner((i.index, j.index, k.index))?;
                let leaves = [i.leaves, j.leaves, k.leaves];
                // What that rank sends here, it sends in the opposite direction.
                outlets.push(to(owner, number, leaves.iter().map(Range::len).product()));
                inlets.push(from(owner, LAST - number));
                leave.push(leaves);
                come.push([i.comes, j.comes, k.comes]);
            }
        }
        let (outlets, inlets) = Channels::new(job).hollow().open(outlets, inlets)?;
        let (leaving, coming) = (outlets.into_iter().zip(leave).collect(), inlets.into_iter().zip(come).collect());
        Ok(Halo { leaving, coming, skips: job.simulation().skips() })
    }

    /// Fills the ghost cells of the padded block `part`, unless nothing is computed.
    pub(crate) fn exchange(&mut self, part: &mut GhostPartMut<'_, f64, Ix3>) -> Result<(), Error> {
        for (out, [i, j, k]) in &mut self.leaving {
            let shape = (i.len(), j.len(), k.len());
            out.fill(shape.0 * shape.1 * shape.2, |slot| {
                if !self.skips {
                    let mut slot = ArrayViewMut3::from_shape(shape, slot).expect("as long as its shape says");
                    slot.assign(&part.view().slice(s![i.clone(), j.clone(), k.clone()]));
                }
            })?;
        }
        for (inlet, [i, j, k]) in &mut self.coming {
            let came = inlet.wait()?;
            if !self.skips {
                let came = ArrayView3::from_shape((i.len(), j.len(), k.len()), &came).expect("as long as its shape says");
                part.view_mut().slice_mut(s![i.clone(), j.clone(), k.clone()]).assign(&came);
            }
        }
        Ok(())
    }
}

/// The number of the last block around a block.
const LAST: u64 = 26;

/// The blocks around a block from which `depth` sweeps read: each is a step away, by −1, 0 or 1 along each axis, and the opposite of step `n` is
/// step `LAST - n`. A single sweep reads from those along one axis.
fn around(depth: usize) -> impl Iterator<Item = (u64, [isize; 3])> {
    let steps = (0..=LAST).map(|number| (number, [number / 9, number / 3 % 3, number % 3].map(|digit| digit as isize - 1)));
    steps.filter(move |(_, step)| (1..=if depth > 1 { 3 } else { 1 }).contains(&step.iter().filter(|&&step| step != 0).count()))
}

/// One axis of an exchange with a block around.
struct Along {
    /// A cell of that block.
    index: usize,
    /// Of the padded block.
    leaves: Range<usize>,
    comes: Range<usize>,
}

impl Along {
    /// `None` beyond an open boundary.
    fn new(array: &GlobalArray<f64, Ix3>, block: &Patch<Ix3>, axis: usize, step: isize, depth: usize) -> Option<Self> {
        let ghosts = array.distribution().ghosts().expect("an array with ghost cells");
        let (start, extent) = (block.start()[axis], array.shape()[axis]);
        let (first, end) = (ghosts.widths[axis], ghosts.widths[axis] + block.count()[axis]);
        let (index, leaves, comes) = match step {
            -1 => (start as isize - 1, first..first + depth, first - depth..first),
            0 => (start as isize, first..end, first..end),
            _ => ((start + block.count()[axis]) as isize, end - depth..end, end..end + depth),
        };
        let inside = (0..extent as isize).contains(&index) || ghosts.boundaries[axis] == Boundary::Periodic;
        inside.then(|| Along { index: index.rem_euclid(extent as isize) as usize, leaves, comes })
    }
}
