//! A strided transfer in the kernels' words: its levels, from where to where, and the length of a run.

use super::kernels;
use crate::index::{Level, Loops};

/// The number of elements, if a block has no gaps in either memory: the commonest long transfer needs no plan.
#[inline(always)]
pub(super) fn contiguous(counts: &[usize], part: &[isize], buffer: &[isize]) -> Option<usize> {
    let mut len = 1;
    for axis in (0..counts.len()).rev() {
        let count = counts[axis];
        if count != 1 {
            if part[axis] != len as isize || buffer[axis] != len as isize {
                return None;
            }
            len *= count;
        }
    }
    Some(len)
}

/// Levels on the stack; `Loops` has eight at most before it goes to the heap.
pub(super) struct Levels {
    inline: [kernels::Stride; 8],
    len: usize,
    heap: Vec<kernels::Stride>,
}

impl Levels {
    #[inline]
    pub(super) fn slice(&self) -> &[kernels::Stride] {
        if self.heap.is_empty() { &self.inline[..self.len] } else { &self.heap }
    }
}

/// The loops of a transfer in the kernels' words; the destination is the view if `to_view`, else the part.
#[inline]
pub(super) fn plan(loops: &Loops, to_view: bool) -> (Levels, usize) {
    let stride = |level: &Level| {
        let (dst, src) = if to_view { (level.local, level.remote) } else { (level.remote, level.local) };
        kernels::Stride { count: level.count, dst, src }
    };
    let mut levels =
        Levels { inline: [kernels::Stride { count: 0, dst: 0, src: 0 }; 8], len: loops.levels().len(), heap: Vec::new() };
    if loops.runs() == 0 {
        // Nothing to move: one level that runs no times.
        levels.len = 1;
    } else if levels.len <= levels.inline.len() {
        for (to, level) in levels.inline.iter_mut().zip(loops.levels()) {
            *to = stride(level);
        }
    } else {
        levels.heap = loops.levels().iter().map(stride).collect();
    }
    (levels, loops.run())
}
