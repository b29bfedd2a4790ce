//! Exposed memory as safe values: one member's part of one array.
//!
//! Any rank may write a [`Part`] at any moment; [`Segments`](super::segments::Segments) makes it. Its methods check bounds and go through
//! relaxed atomics or the kernels, so that races have defined results. Elements are plain data, so any bytes are a value. Only
//! [`Part::exclusive`] and [`Part::shared`] make slices. They are unsafe, and `array::epoch` proves that nobody else touches the part.

use std::{
    marker::PhantomData,
    ops::Range,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

use ndarray::Dimension;

use super::{
    atomic_op::{AtomicOp, apply_atomic},
    buffer::{Source, Target},
    kernels,
    plan::{contiguous, plan},
};
use crate::{
    element::{Additive, AtomicInteger, Element, Number},
    index::Loops,
};

/// Elements in a segment, written by anybody at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a, T> {
    base: *mut T,
    len: usize,
    life: PhantomData<&'a T>,
}

impl<'a, T: Element> Part<'a, T> {
    /// `len` elements from `base` on.
    ///
    /// # Safety
    /// `base` is aligned for `T`. All bytes of the elements lie in one exposed segment, which stays mapped for the life `'a`.
    #[inline(always)]
    pub(super) unsafe fn new(base: *mut T, len: usize) -> Self {
        Part { base, len, life: PhantomData }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// One element, not torn up to 8 bytes.
    #[inline(always)]
    pub(crate) fn load(&self, at: usize) -> T {
        self.check_element(at);
        // SAFETY: inside the part; relaxed atomics where the size allows.
        unsafe { kernels::load(self.base.add(at)) }
    }

    /// One element, not torn up to 8 bytes.
    #[inline(always)]
    pub(crate) fn store(&self, at: usize, value: T) {
        self.check_element(at);
        // SAFETY: inside the part; relaxed atomics where the size allows.
        unsafe { kernels::store(self.base.add(at), value) }
    }

    /// A place for [`Slot`]'s accesses, checked now.
    #[inline(always)]
    pub(crate) fn slot(&self, at: usize) -> Slot<'a, T> {
        self.check_element(at);
        Slot { address: self.base.wrapping_add(at), life: PhantomData }
    }

    /// The address of an element, for atomics on it.
    #[inline]
    pub(crate) fn address(&self, at: usize) -> *mut T {
        self.check_element(at);
        self.base.wrapping_add(at)
    }

    /// Copies elements into private memory.
    #[inline]
    pub(crate) fn read_slice(&self, at: usize, to: &mut [T]) {
        self.check(at, to.len());
        // SAFETY: both ranges were checked, and a part never overlaps what the caller borrows exclusively.
        unsafe { kernels::copy(to.as_mut_ptr().cast(), self.base.add(at).cast(), size_of_val(to)) }
    }

    /// Copies elements from private memory.
    #[inline]
    pub(crate) fn write_slice(&self, at: usize, from: &[T]) {
        self.check(at, from.len());
        // SAFETY: both ranges were checked; the source is borrowed, so it is not memory that ranks share.
        unsafe { kernels::copy(self.base.add(at).cast(), from.as_ptr().cast(), size_of_val(from)) }
    }

    /// Copies a strided block into a buffer; `strides` are the part's, in elements.
    #[inline]
    pub(crate) fn read<D: Dimension>(&self, at: usize, strides: &D, to: &Target<'_, T, D>) {
        let strides = bytemuck::cast_slice(strides.slice());
        self.check_strided(at, to.counts.slice(), strides);
        if let Some(len) = contiguous(to.counts.slice(), strides, to.strides()) {
            // SAFETY: as below, of one run.
            return unsafe { kernels::copy(to.first.cast(), self.base.add(at).cast(), len * size_of::<T>()) };
        }
        let loops = Loops::new(to.counts.slice(), strides, to.strides(), size_of::<T>());
        let (levels, run) = plan(&loops, true);
        // SAFETY: the part's side was checked, the buffer answers for its own side, which no part overlaps.
        unsafe { kernels::copy_strided(to.first.cast(), self.base.add(at).cast(), levels.slice(), run) }
    }

    /// Copies a buffer into a strided block.
    #[inline]
    pub(crate) fn write<D: Dimension>(&self, at: usize, strides: &D, from: &Source<'_, T, D>) {
        let strides = bytemuck::cast_slice(strides.slice());
        self.check_strided(at, from.counts.slice(), strides);
        if let Some(len) = contiguous(from.counts.slice(), strides, from.strides()) {
            // SAFETY: as in `read`.
            return unsafe { kernels::copy(self.base.add(at).cast(), from.first.cast(), len * size_of::<T>()) };
        }
        let loops = Loops::new(from.counts.slice(), strides, from.strides(), size_of::<T>());
        let (levels, run) = plan(&loops, false);
        // SAFETY: as in `read`.
        unsafe { kernels::copy_strided(self.base.add(at).cast(), from.first.cast(), levels.slice(), run) }
    }

    /// A strided block as what gets write: of ghost cells, which nobody else accesses and no transfer reads, so that it is as good as
    /// private memory.
    pub(crate) fn target<D: Dimension>(&self, at: usize, strides: &D, counts: &D) -> Target<'a, T, D> {
        self.check_strided(at, counts.slice(), bytemuck::cast_slice(strides.slice()));
        Target::at(self.base.wrapping_add(at), counts.clone(), strides.clone())
    }

    #[inline(always)]
    fn check_element(self, at: usize) {
        if at >= self.len {
            // By value: a message that refers to the part would keep it in memory.
            outside(at, 1, self.len);
        }
    }

    #[inline(always)]
    fn check(self, at: usize, len: usize) {
        if at > self.len || len > self.len - at {
            outside(at, len, self.len);
        }
    }

    /// The lowest and highest element of a strided block lie inside the part.
    #[inline]
    fn check_strided(&self, at: usize, counts: &[usize], strides: &[isize]) {
        // Saturating: patches of a user's own making may have any counts, and what wraps could land inside.
        let (mut low, mut high) = (at as isize, at as isize);
        for (&count, &stride) in counts.iter().zip(strides) {
            if count == 0 {
                return;
            }
            let reach = (count as isize).saturating_sub(1).saturating_mul(stride);
            if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
        }
        assert!(low >= 0 && (high as usize) < self.len, "elements {low} to {high} of {}", self.len);
    }

    /// The addresses of the part.
    #[inline(always)]
    pub(super) fn bytes(&self) -> Range<usize> {
        self.base as usize..self.base as usize + self.len * size_of::<T>()
    }

    /// Where the part begins.
    #[inline(always)]
    pub(super) fn start(&self) -> *mut u8 {
        self.base.cast()
    }

    /// A range of the part.
    pub(crate) fn slice(&self, range: Range<usize>) -> Part<'a, T> {
        self.check(range.start, range.len());
        Part { base: self.base.wrapping_add(range.start), len: range.len(), life: PhantomData }
    }

    /// Sets all elements.
    pub(crate) fn fill(&self, value: T) {
        // SAFETY: the whole part.
        unsafe { kernels::fill(self.base, self.len, value) }
    }

    /// Copies all elements of another part of the same length; the two must not overlap partly.
    pub(crate) fn copy_from(&self, from: &Part<'_, T>) {
        assert_eq!(self.len, from.len, "lengths of two parts");
        if self.base != from.base {
            // SAFETY: both whole parts, and different blocks of the heap never overlap.
            unsafe { kernels::copy(self.base.cast(), from.base.cast(), self.len * size_of::<T>()) }
        }
    }

    /// Copies a strided block of another part, `counts` elements; strides are in elements, each part's own. Where each side is
    /// contiguous along another axis, that is a transposition.
    ///
    /// # Panics
    /// If the parts overlap.
    pub(crate) fn copy_block<D: Dimension>(
        &self,
        (at, strides): (usize, &D),
        from: &Part<'_, T>,
        (from_at, from_strides): (usize, &D),
        counts: &D,
    ) {
        let (strides, from_strides) = (bytemuck::cast_slice(strides.slice()), bytemuck::cast_slice(from_strides.slice()));
        self.check_strided(at, counts.slice(), strides);
        from.check_strided(from_at, counts.slice(), from_strides);
        let (to_bytes, from_bytes) = (self.bytes(), from.bytes());
        assert!(to_bytes.end <= from_bytes.start || from_bytes.end <= to_bytes.start, "two parts overlap");
        let (dst, src) = (self.base.wrapping_add(at).cast::<u8>(), from.base.wrapping_add(from_at).cast::<u8>());
        let (loops, width) = (Loops::new(counts.slice(), strides, from_strides, size_of::<T>()), size_of::<T>());
        if let &[slow, fast] = loops.levels()
            && loops.run() == width
            && (slow.local, fast.remote) == (width as isize, width as isize)
        {
            // SAFETY: both sides were checked, and they do not overlap.
            unsafe { kernels::copy_transposed(dst, slow.remote, src, fast.local, fast.count, slow.count, width) }
            return;
        }
        let (levels, run) = plan(&loops, false);
        // SAFETY: as above.
        unsafe { kernels::copy_strided(dst, src, levels.slice(), run) }
    }

    /// The part as a slice that is written through this value only.
    ///
    /// # Safety
    /// Until the slice's life ends nobody else, in any process, reads or writes the part.
    pub(crate) unsafe fn exclusive(self) -> &'a mut [T] {
        // SAFETY: length and address are the part's, elements are plain data, the caller promises exclusion.
        unsafe { std::slice::from_raw_parts_mut(self.dangling_if_empty(), self.len) }
    }

    /// The part as a slice.
    ///
    /// # Safety
    /// Until the slice's life ends nobody, in any process, writes the part.
    pub(crate) unsafe fn shared(self) -> &'a [T] {
        // SAFETY: length and address are the part's, elements are plain data, the caller promises that nobody writes.
        unsafe { std::slice::from_raw_parts(self.dangling_if_empty(), self.len) }
    }

    fn dangling_if_empty(&self) -> *mut T {
        if self.len == 0 { NonNull::dangling().as_ptr() } else { self.base }
    }
}

/// One element of a part, known to lie inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<'a, T> {
    address: *mut T,
    life: PhantomData<&'a T>,
}

impl<T: Element> Slot<'_, T> {
    /// Asks the processor for the element's cache line.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        kernels::prefetch(self.address);
    }

    /// Asks for the line in order to write it.
    #[inline(always)]
    pub(crate) fn prefetch_to_write(self) {
        kernels::prefetch_to_write(self.address);
    }

    /// As [`Part::load`].
    #[inline(always)]
    pub(crate) fn load(self) -> T {
        // SAFETY: inside its part, checked by `Part::slot`, the only way to a slot.
        unsafe { kernels::load(self.address) }
    }

    /// As [`Part::store`].
    #[inline(always)]
    pub(crate) fn store(self, value: T) {
        // SAFETY: as in `load`.
        unsafe { kernels::store(self.address, value) }
    }
}

impl<T: Additive> Slot<'_, T> {
    /// Adds `alpha * value`. Whoever calls holds the owner's lock.
    #[inline(always)]
    pub(crate) fn add(self, alpha: T::Scale, value: T) {
        self.store(self.load().plus(value.scaled(alpha)));
    }
}

impl<T: AtomicInteger> Slot<'_, T> {
    /// Applies an atomic operation and returns the value before.
    #[inline(always)]
    pub(crate) fn apply(self, op: AtomicOp, operand: T, comparand: T) -> T {
        // SAFETY: inside its part, which is aligned for `T`; the types that have atomic operations are 4 or 8 bytes wide.
        let old = unsafe { apply_atomic(self.address.cast(), op, size_of::<T>(), operand.to_bits(), comparand.to_bits()) };
        T::from_bits(old)
    }
}

impl<T: Additive> Part<'_, T> {
    /// Adds `alpha` times a buffer to a strided block. Whoever calls holds the owner's lock.
    pub(crate) fn accumulate<D: Dimension>(&self, at: usize, strides: &D, alpha: T::Scale, from: &Source<'_, T, D>) {
        let strides = bytemuck::cast_slice(strides.slice());
        self.check_strided(at, from.counts.slice(), strides);
        if let Some(len) = contiguous(from.counts.slice(), strides, from.strides()) {
            // SAFETY: as in `write`.
            return unsafe { kernels::accumulate(self.base.add(at), from.first, len, alpha) };
        }
        let loops = Loops::new(from.counts.slice(), strides, from.strides(), size_of::<T>());
        let (levels, run) = plan(&loops, false);
        // SAFETY: as in `write`; a run is a whole number of elements.
        unsafe { kernels::accumulate_strided(self.base.add(at), from.first, levels.slice(), run / size_of::<T>().max(1), alpha) }
    }

    /// Multiplies all elements.
    pub(crate) fn scale(&self, alpha: T::Scale) {
        // SAFETY: the whole part.
        unsafe { kernels::scale(self.base, self.len, alpha) }
    }

    /// `self = a·x + b·y`; the parts are whole blocks, equal or apart.
    pub(crate) fn axpby(&self, a: T::Scale, x: &Part<'_, T>, b: T::Scale, y: &Part<'_, T>) {
        assert!(x.len == self.len && y.len == self.len, "lengths of three parts");
        // SAFETY: three whole parts of one length.
        unsafe { kernels::axpby(self.base, a, x.base, b, y.base, self.len) }
    }
}

impl<T: Number> Part<'_, T> {
    /// Σ xᵢyᵢ without conjugation, of as many elements from `at` on as there are private ones.
    pub(crate) fn dot_with(&self, at: usize, y: &[T]) -> T {
        self.check(at, y.len());
        // SAFETY: inside the part, and a private slice.
        unsafe { kernels::dot(self.base.add(at), y.as_ptr(), y.len()) }
    }

    /// Adds `alpha` times the elements from `at` on to private ones.
    pub(crate) fn add_scaled_to(&self, at: usize, alpha: T, y: &mut [T]) {
        self.check(at, y.len());
        // SAFETY: inside the part, and a private slice, which is borrowed exclusively.
        unsafe { kernels::accumulate(y.as_mut_ptr(), self.base.add(at), y.len(), alpha) }
    }

    /// Σ xᵢyᵢ without conjugation.
    pub(crate) fn dot(&self, y: &Part<'_, T>) -> T {
        assert_eq!(y.len, self.len, "lengths of two parts");
        // SAFETY: two whole parts of one length.
        unsafe { kernels::dot(self.base, y.base, self.len) }
    }
}

impl Part<'_, u64> {
    /// Adds to an element by the processor's atomic operation.
    #[inline]
    pub(crate) fn fetch_add(&self, at: usize, operand: u64) -> u64 {
        // SAFETY: inside the part, which is aligned; atomics may be shared with other processes.
        unsafe { AtomicU64::from_ptr(self.address(at)) }.fetch_add(operand, Ordering::AcqRel)
    }
}

#[cold]
#[track_caller]
fn outside(at: usize, len: usize, of: usize) -> ! {
    panic!("{len} elements at {at} of {of}")
}
