//! Arithmetic for any element in safe Rust, piece by piece through private buffers.
//!
//! Both buffers of [`PIECE_BYTES`] stay in the first-level cache. The shared memory is read once and written once.

use std::mem::MaybeUninit;

use super::machine::Machine;
use crate::element::{Additive, Element, Number};

/// Private buffer of one operand: two of them and their shared counterparts fill half of a 32 KiB first-level cache.
const PIECE_BYTES: usize = 4096;

/// Bytes of partial sums in [`dot`]: two AVX-512 vectors, or eight of SSE2, which has sixteen registers.
pub(super) const DOT_LANES_BYTES: usize = 128;

/// Partial sums in [`dot`] for elements of `T`: element `i` is added to sum `i % lanes`.
pub(super) const fn dot_lanes<T>() -> usize {
    let lanes = DOT_LANES_BYTES / if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    if lanes == 0 { 1 } else { lanes }
}

/// Elements in a piece: a multiple of the lanes, at least one element however large.
const fn piece_elements<T>() -> usize {
    let lanes = dot_lanes::<T>();
    let elements = PIECE_BYTES / if size_of::<T>() == 0 { 1 } else { size_of::<T>() } / lanes * lanes;
    if elements == 0 { 1 } else { elements }
}

/// Private room for one piece. Elements above [`PIECE_BYTES`] are one to a piece and live in `large`.
struct Piece<T> {
    small: MaybeUninit<[u64; PIECE_BYTES / 8]>,
    large: MaybeUninit<T>,
}

impl<T: Element> Piece<T> {
    const IN_LARGE: bool = size_of::<T>() > PIECE_BYTES || align_of::<T>() > 8;
    const ELEMENTS: usize = if Self::IN_LARGE { 1 } else { piece_elements::<T>() };

    #[inline(always)]
    fn new() -> Self {
        Piece { small: MaybeUninit::uninit(), large: MaybeUninit::uninit() }
    }

    #[inline(always)]
    fn start(&mut self) -> *mut T {
        if Self::IN_LARGE { self.large.as_mut_ptr() } else { self.small.as_mut_ptr().cast() }
    }

    /// Reads `len` elements in and lends them.
    ///
    /// # Safety
    /// `src` is as for [`super::copy`], for `len` elements, `len <= Self::ELEMENTS`.
    #[inline(always)]
    unsafe fn read<M: Machine>(&mut self, src: *const T, len: usize) -> &mut [T] {
        let start = self.start();
        // SAFETY: the buffer is private, aligned for `T`, and has room for `ELEMENTS`; after the copy `len` elements are
        // initialised, and any bit pattern is a `T`.
        unsafe {
            M::copy(start.cast(), src.cast(), len * size_of::<T>());
            std::slice::from_raw_parts_mut(start, len)
        }
    }
}

/// Writes a private slice out.
///
/// # Safety
/// `dst` is as for [`super::copy`], for all of `values`.
#[inline(always)]
unsafe fn write<M: Machine, T: Element>(dst: *mut T, values: &[T]) {
    // SAFETY: the slice is private and readable for its length, `dst` as the caller says.
    unsafe { M::copy(dst.cast(), values.as_ptr().cast(), size_of_val(values)) }
}

/// The pieces of `len` elements: where each starts and how long it is.
fn pieces<T: Element>(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len).step_by(Piece::<T>::ELEMENTS).map(move |start| (start, Piece::<T>::ELEMENTS.min(len - start)))
}

/// [`super::accumulate`] for any element.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn accumulate<M: Machine, T: Additive>(dst: *mut T, src: *const T, len: usize, alpha: T::Scale) {
    let (mut ours, mut theirs) = (Piece::new(), Piece::new());
    for (start, len) in pieces::<T>(len) {
        let dst = dst.wrapping_add(start);
        // SAFETY: a part of what the caller vouches for, no longer than a piece.
        unsafe {
            let sums = ours.read::<M>(dst, len);
            for (sum, &value) in sums.iter_mut().zip(&*theirs.read::<M>(src.wrapping_add(start), len)) {
                *sum = sum.plus(value.scaled(alpha));
            }
            write::<M, T>(dst, sums);
        }
    }
}

/// [`super::fill`] for any element: one piece of copies, written again and again.
///
/// # Safety
/// As there.
pub(super) unsafe fn fill<M: Machine, T: Element>(dst: *mut T, len: usize, value: T) {
    let mut piece = Piece::<T>::new();
    let start = piece.start();
    for i in 0..Piece::<T>::ELEMENTS.min(len) {
        // SAFETY: the buffer is private, aligned, and has room for `ELEMENTS`.
        unsafe { start.add(i).write(value) };
    }
    for (offset, len) in pieces::<T>(len) {
        // SAFETY: the first `len` elements of the buffer have been written; `dst` is a part of what the caller vouches for.
        unsafe { write::<M, T>(dst.wrapping_add(offset), std::slice::from_raw_parts(start, len)) };
    }
}

/// [`super::scale`] for any element.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn scale<M: Machine, T: Additive>(dst: *mut T, len: usize, alpha: T::Scale) {
    let mut piece = Piece::new();
    for (start, len) in pieces::<T>(len) {
        let dst = dst.wrapping_add(start);
        // SAFETY: a part of what the caller vouches for, no longer than a piece.
        unsafe {
            let values = piece.read::<M>(dst, len);
            for value in values.iter_mut() {
                *value = value.scaled(alpha);
            }
            write::<M, T>(dst, values);
        }
    }
}

/// [`super::axpby`] for any element.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn axpby<M: Machine, T: Additive>(dst: *mut T, a: T::Scale, x: *const T, b: T::Scale, y: *const T, len: usize) {
    let (mut first, mut second) = (Piece::new(), Piece::new());
    for (start, len) in pieces::<T>(len) {
        // SAFETY: parts of what the caller vouches for, no longer than a piece; both are read before any of `dst` is written.
        unsafe {
            let values = first.read::<M>(x.wrapping_add(start), len);
            for (value, &other) in values.iter_mut().zip(&*second.read::<M>(y.wrapping_add(start), len)) {
                *value = value.scaled(a).plus(other.scaled(b));
            }
            write::<M, T>(dst.wrapping_add(start), values);
        }
    }
}

/// [`super::dot`] for any element, summed in [`dot_lanes`] lanes.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn dot<M: Machine, T: Number>(x: *const T, y: *const T, len: usize) -> T {
    let (mut first, mut second) = (Piece::new(), Piece::new());
    let mut lanes = [T::ZERO; DOT_LANES_BYTES];
    let lanes = &mut lanes[..dot_lanes::<T>()];
    for (start, len) in pieces::<T>(len) {
        // SAFETY: parts of what the caller vouches for, no longer than a piece.
        let (x, y) = unsafe { (first.read::<M>(x.wrapping_add(start), len), second.read::<M>(y.wrapping_add(start), len)) };
        for (x, y) in x.chunks(lanes.len()).zip(y.chunks(lanes.len())) {
            for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
                *lane = lane.plus(x.scaled(y));
            }
        }
    }
    sum_lanes(lanes)
}

/// The sum of the lanes, halves onto halves; an odd last lane is carried along.
pub(super) fn sum_lanes<T: Additive>(lanes: &mut [T]) -> T {
    let mut len = lanes.len();
    while len > 1 {
        let half = len.div_ceil(2);
        for i in 0..len - half {
            lanes[i] = lanes[i].plus(lanes[half + i]);
        }
        len = half;
    }
    lanes.first().copied().unwrap_or(T::ZERO)
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::{dot_lanes, sum_lanes};
    use crate::element::Number;
    use crate::memory::kernels::machine::Machine;
    use crate::memory::kernels::testing::{Memory, Sample, Triple, on_every_machine};

    /// Lengths around the vectors, the pieces and, for one type, the streaming threshold; with offsets of `dst`, `x` and `y`.
    fn cases<T>() -> impl Iterator<Item = (usize, [usize; 3])> {
        let short = (0..300).flat_map(|len| [(len, [0, 0, 0]), (len, [8, 0, 16]), (len, [len % 16, 5, 8])]);
        let long = [511, 513, 1025, 4096, 5003].into_iter().flat_map(|len| [(len, [0, 0, 0]), (len, [24, 8, 3])]);
        let large = [((8 << 20) / size_of::<T>() + 3, [8, 0, 24])].into_iter().filter(|_| size_of::<T>() == 8);
        short.chain(long).chain(large)
    }

    fn samples<T: Sample>(len: usize, first: usize) -> Vec<T> {
        (first..first + len).map(T::sample).collect()
    }

    /// `len` elements at an offset, and their values.
    fn memory<T: Sample>(len: usize, offset: usize, first: usize) -> (Memory, Vec<T>) {
        let (mut memory, values) = (Memory::new(len * size_of::<T>(), offset, first), samples(len, first));
        memory.set(&values);
        (memory, values)
    }

    /// Runs `kernel` on `dst`, `x`, `y` and compares every byte of `dst` with the formula.
    fn maps<T: Sample>(kernel: impl Fn(*mut T, *const T, *const T, usize), formula: impl Fn(T, T, T) -> T) {
        for (len, offsets) in cases::<T>() {
            let (mut dst, old) = memory::<T>(len, offsets[0], 5);
            let ((mut x, xs), (mut y, ys)) = (memory::<T>(len, offsets[1], 1000), memory::<T>(len, offsets[2], 2000));
            let mut expected = dst.clone();
            expected.set(&(0..len).map(|i| formula(old[i], xs[i], ys[i])).collect::<Vec<T>>());
            kernel(dst.start().cast(), x.start().cast(), y.start().cast(), len);
            assert!(dst.with_guards() == expected.with_guards(), "{len} elements, offsets {offsets:?}");
        }
    }

    fn maps_of<M: Machine, T: Sample>() {
        let (a, b, value) = (T::scale(3), T::scale(8), T::sample(8));
        // SAFETY: `maps` calls with buffers of `len` elements, apart from each other.
        unsafe {
            maps::<T>(|dst, x, _, len| M::accumulate(dst, x, len, a), |dst, x, _| dst.plus(x.scaled(a)));
            maps::<T>(|dst, _, _, len| M::fill(dst, len, value), |_, _, _| value);
            maps::<T>(|dst, _, _, len| M::scale(dst, len, a), |dst, _, _| dst.scaled(a));
            maps::<T>(|dst, x, y, len| M::axpby(dst, a, x, b, y, len), |_, x, y| x.scaled(a).plus(y.scaled(b)));
            maps::<T>(|dst, x, _, len| M::axpby(dst, a, dst, b, x, len), |dst, x, _| dst.scaled(a).plus(x.scaled(b)));
            maps::<T>(|dst, x, _, len| M::axpby(dst, a, x, b, dst, len), |dst, x, _| x.scaled(a).plus(dst.scaled(b)));
            maps::<T>(|dst, _, _, len| M::axpby(dst, a, dst, b, dst, len), |dst, _, _| dst.scaled(a).plus(dst.scaled(b)));
        }
    }

    fn dots_of<M: Machine, T: Sample + Number>() {
        for (len, offsets) in cases::<T>() {
            let ((mut x, xs), (mut y, ys)) = (memory::<T>(len, offsets[1], 1000), memory::<T>(len, offsets[2], 2000));
            let mut lanes = vec![T::ZERO; dot_lanes::<T>()];
            for i in 0..len {
                let lane = &mut lanes[i % dot_lanes::<T>()];
                *lane = lane.plus(xs[i].scaled(ys[i]));
            }
            // SAFETY: buffers of `len` elements.
            let sum = unsafe { M::dot::<T>(x.start().cast(), y.start().cast(), len) };
            assert_eq!(sum, sum_lanes(&mut lanes), "{len} elements, offsets {offsets:?}");
        }
    }

    fn f64s<M: Machine>() {
        maps_of::<M, f64>();
        dots_of::<M, f64>();
    }

    fn f32s<M: Machine>() {
        maps_of::<M, f32>();
        dots_of::<M, f32>();
    }

    fn integers<M: Machine>() {
        maps_of::<M, u8>();
        maps_of::<M, i32>();
        maps_of::<M, i64>();
        dots_of::<M, i32>();
    }

    fn complexes<M: Machine>() {
        maps_of::<M, Complex<f64>>();
        dots_of::<M, Complex<f64>>();
    }

    fn structs<M: Machine>() {
        maps_of::<M, Triple>();
    }

    fn elements_larger_than_a_piece<M: Machine>() {
        let mut memory = Memory::new(3 * 8000, 8, 1);
        let value = [7_u64; 1000];
        // SAFETY: three elements of this test's buffer.
        unsafe { M::fill(memory.start().cast::<[u64; 1000]>(), 3, value) };
        assert!(memory.inside() == bytemuck::bytes_of(&[value; 3]));
    }

    #[test]
    fn lanes_are_summed_whatever_their_number() {
        for len in 0..20 {
            assert_eq!(sum_lanes(&mut (0..len).collect::<Vec<i64>>()), len * (len - 1) / 2);
        }
    }

    on_every_machine!(f64s, f32s, integers, complexes, structs, elements_larger_than_a_piece);
}
