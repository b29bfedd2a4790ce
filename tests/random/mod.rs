//! Random numbers that a seed repeats, and random patches.
#![allow(dead_code, reason = "each suite uses what it needs")]

use global_arrays::index::Patch;
use ndarray::{Dimension, IxDyn, Slice};

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// One of `0..n`, `n` at least 1.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// One of `low..=high`.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// `count` indices from `start`, `step` apart: one axis of a patch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) start: usize,
    pub(crate) count: usize,
    pub(crate) step: isize,
}

impl Axis {
    /// Inside `low..high`; seldom empty.
    pub(crate) fn random(random: &mut Random, low: usize, high: usize) -> Self {
        let (a, b) = (random.between(low, high), random.between(low, high));
        let (low, high) = (a.min(b), a.max(b));
        if low == high {
            return Axis { start: low, count: 0, step: 1 };
        }
        let step = if random.chance(60) { 1 } else { random.between(1, 4) };
        let count = (high - low).div_ceil(step);
        if random.chance(75) {
            Axis { start: low, count, step: step as isize }
        } else {
            Axis { start: low + (count - 1) * step, count, step: -(step as isize) }
        }
    }

    /// The same for ndarray.
    pub(crate) fn slice(self) -> Slice {
        let Axis { start, count, step } = self;
        if count == 0 {
            return Slice::new(start as isize, Some(start as isize), 1);
        }
        let last = start as isize + (count as isize - 1) * step;
        Slice::new((start as isize).min(last), Some((start as isize).max(last) + 1), step)
    }
}

/// The patch of these axes, for the library.
pub(crate) fn patch<D: Dimension>(axes: &[Axis]) -> Patch<D> {
    let of = |f: &dyn Fn(&Axis) -> usize| {
        let mut d = D::zeros(axes.len());
        d.slice_mut().iter_mut().zip(axes).for_each(|(d, axis)| *d = f(axis));
        d
    };
    Patch::new(of(&|a| a.start), of(&|a| a.count), of(&|a| a.step as usize))
}

/// Its shape.
pub(crate) fn shape(axes: &[Axis]) -> IxDyn {
    IxDyn(&axes.iter().map(|axis| axis.count).collect::<Vec<_>>())
}
