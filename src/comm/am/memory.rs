//! The memory that records read and write: buffers of callers, and segments of the ranks that this one answers for.
//!
//! Others may write it meanwhile, so every access is atomic or a kernel's.

use std::{
    ptr::NonNull,
    sync::{Arc, atomic::AtomicU32},
};

use super::runs::Runs;
use crate::{
    comm::{AtomicOp, apply_atomic, node::Fabric},
    memory::kernels::{self, Stride},
};

/// The segments of the ranks that an endpoint answers for, which are consecutive ones of its machine.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    fabric: Arc<Fabric>,
    /// The endpoint's own, by its number on the machine.
    first: usize,
    count: usize,
}

impl Segments {
    pub(super) fn new(fabric: Arc<Fabric>, first: usize, count: usize) -> Self {
        Segments { fabric, first, count }
    }

    /// The number on the machine of the rank with a number here.
    pub(super) fn local(&self, number: u16) -> Option<usize> {
        (usize::from(number) < self.count).then(|| self.first + usize::from(number))
    }

    /// The segment of a rank, if the endpoint answers for it.
    pub(super) fn of(&self, number: u16) -> Option<Segment> {
        let local = self.local(number)?;
        Some(Segment { base: self.fabric.segment(local), len: self.fabric.segment_len() })
    }

    pub(super) fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }
}

/// The segment of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: an address; the conduit that holds it keeps the mapping, and every access is made for races.
unsafe impl Send for Segment {}

impl Segment {
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// First byte of a range, if it lies inside.
    pub(super) fn range(&self, offset: usize, len: usize) -> Option<*mut u8> {
        (offset <= self.len && len <= self.len - offset).then(|| self.base.as_ptr().wrapping_add(offset))
    }

    /// First byte of the first run, if all lie inside.
    pub(super) fn runs(&self, offset: usize, runs: &Runs) -> Option<*mut u8> {
        runs.lie_inside(offset, self.len).then(|| self.base.as_ptr().wrapping_add(offset))
    }

    /// Applies an atomic operation to a word, if it is one.
    pub(super) fn apply(&self, offset: usize, op: AtomicOp, width: usize, operand: u64, comparand: u64) -> Option<u64> {
        let word = self.range(offset, width).filter(|_| (width == 4 || width == 8) && offset.is_multiple_of(width))?;
        // SAFETY: aligned and inside the segment; the peer named a word of a committed block, and a hole would only be filled with
        // a page.
        Some(unsafe { apply_atomic(word, op, width, operand, comparand) })
    }
}

/// The job's flag that it is over, in memory that lives as long as the conduit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over(NonNull<AtomicU32>);

// SAFETY: an atomic; no holder of the value lives longer than the conduit that made it.
unsafe impl Send for Over {}

impl Over {
    pub(super) fn new(flag: &AtomicU32) -> Self {
        Over(NonNull::from(flag))
    }

    pub(super) fn get(&self) -> &AtomicU32 {
        // SAFETY: see the type.
        unsafe { self.0.as_ref() }
    }
}

/// Writes packed bytes into the runs that begin at `base`, from packed byte `at` on.
///
/// # Safety
/// All runs lie in writable memory that everybody accesses by atomics or kernels, or that nobody else touches.
pub(super) unsafe fn unpack(base: *mut u8, runs: &Runs, at: usize, bytes: &[u8]) {
    let run = runs.run();
    if bytes.is_empty() {
        return;
    }
    if !at.is_multiple_of(run) || !bytes.len().is_multiple_of(run) {
        let to = base.wrapping_offset(runs.start(at / run)).wrapping_add(at % run);
        // SAFETY: a part of one run; the caller's promise.
        return unsafe { kernels::copy(to, bytes.as_ptr(), bytes.len()) };
    }
    if runs.levels().is_empty() {
        // SAFETY: the whole run; the caller's promise. It may be a word that is waited on, which is written in one piece.
        return unsafe { kernels::write(base, bytes.as_ptr(), bytes.len()) };
    }
    runs.boxes(at / run, bytes.len() / run, |part| {
        let (levels, depth) = part.levels(run);
        let strides = levels.map(|(count, stride, packed)| Stride { count, dst: stride, src: packed });
        let from = bytes.as_ptr().wrapping_add(part.packed);
        // SAFETY: the boxes are the runs of the caller's promise, and as long in `bytes`.
        unsafe { kernels::copy_strided(base.wrapping_offset(part.at), from, &strides[..depth], run) }
    });
}

/// Reads packed bytes out of the runs that begin at `base`, from packed byte `at` on.
///
/// # Safety
/// All runs lie in readable memory.
pub(super) unsafe fn pack(base: *const u8, runs: &Runs, at: usize, bytes: &mut [u8]) {
    let run = runs.run();
    if bytes.is_empty() {
        return;
    }
    if !at.is_multiple_of(run) || !bytes.len().is_multiple_of(run) {
        let from = base.wrapping_offset(runs.start(at / run)).wrapping_add(at % run);
        // SAFETY: a part of one run; the caller's promise.
        return unsafe { kernels::copy(bytes.as_mut_ptr(), from, bytes.len()) };
    }
    if runs.levels().is_empty() {
        // SAFETY: the whole run; the caller's promise.
        return unsafe { kernels::read(bytes.as_mut_ptr(), base, bytes.len()) };
    }
    runs.boxes(at / run, bytes.len() / run, |part| {
        let (levels, depth) = part.levels(run);
        let strides = levels.map(|(count, stride, packed)| Stride { count, dst: packed, src: stride });
        let to = bytes.as_mut_ptr().wrapping_add(part.packed);
        // SAFETY: as in `unpack`.
        unsafe { kernels::copy_strided(to, base.wrapping_offset(part.at), &strides[..depth], run) }
    });
}
