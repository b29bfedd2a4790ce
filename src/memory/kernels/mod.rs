//! Copy and arithmetic on memory that other ranks may write at the same time.
//!
//! # What this rests on
//!
//! A plain Rust access to memory that another thread or process may write is a data race, and `ptr::copy` is a plain access. Rust has no
//! racing `memcpy` (its RFC 3301 is open), so each target has one of two implementations of [`Machine`]:
//!
//! * `portable`: loops over relaxed atomics, as wide as the alignment of both sides allows. Used on every target but x86-64, under Miri,
//!   and with `--cfg global_arrays_portable`, for ThreadSanitizer: a sanitizer sees atomics, not assembly.
//! * [`x86_64`]: inline assembly. The compiler knows only the operands of an assembly block, so the block has to behave as *something*
//!   that Rust could have said. Ours stand for relaxed atomic accesses, one to each byte touched, in no order:
//!   1. no block touches a byte outside the ranges that the caller vouches for;
//!   2. a block that writes memory is never marked `nomem`, `readonly` or `pure`, one that reads is never `nomem` or `pure`: the compiler
//!      neither repeats, drops nor merges them, and keeps no shared byte in a register across one that writes;
//!   3. bytes reach Rust code only through output registers, as they are or as the operand of one arithmetic instruction, in vectors and
//!      integers for which every bit pattern is valid: a value is read once and then private;
//!   4. x86-64 keeps ordinary stores in program order, so a later release store publishes them. Streaming stores are outside that order;
//!      a kernel that uses them executes `sfence` before it returns.
//!
//! Left open: the memory model does not define races of two *threads* with atomics of different sizes on the same bytes, and bulk kernels
//! do that against [`load`] and [`store`]. No compiler exploits it, hardware defines it. Another process is not part of this program's
//! execution, so between processes the question does not arise.
//!
//! For each byte, a racing read sees the old or the new value. An element of 1, 2, 4 or 8 bytes, aligned to its size, is not torn by
//! [`load`] and [`store`], nor by [`read`] and [`write`](fn@write) if it is all that they move.
//!
//! # Results are the same on every machine
//!
//! `alpha * x` is rounded before it is added, never fused, and [`dot`] sums in a fixed number of lanes. So all versions give the same
//! bits, but for the payload of a NaN.

mod arithmetic;
mod element;
mod machine;
#[cfg(any(test, not(target_arch = "x86_64"), miri, global_arrays_portable))]
mod portable;
mod strided;
#[cfg(test)]
mod testing;
mod transpose;
#[cfg(not(any(not(target_arch = "x86_64"), miri, global_arrays_portable)))]
mod x86_64;

use crate::element::{Additive, Element, Number, numbers_of};
pub(crate) use element::{load, read, store, write};
use machine::{Machine, Transpose};
#[cfg(any(not(target_arch = "x86_64"), miri, global_arrays_portable))]
use portable::Portable as Native;
pub(crate) use strided::Stride;
#[cfg(not(any(not(target_arch = "x86_64"), miri, global_arrays_portable)))]
use x86_64::X86_64 as Native;

/// Asks the processor for the line of an address that will be read soon. Any address: it is a hint.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    Native::prefetch::<false>(address.cast());
}

/// As [`prefetch`], for an address that will be written.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(address: *const T) {
    Native::prefetch::<true>(address.cast());
}

/// Copies `len` bytes.
///
/// # Safety
/// Both ranges are mapped, `dst` for writing, and stay so during the call; they do not overlap; nobody holds a Rust reference to
/// `dst`, nor an exclusive one to `src`, that the caller does not speak for. Any alignment.
#[inline(always)]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise is word for word what `Machine::copy` asks.
    unsafe { Native::copy(dst, src, len) }
}

/// Copies runs of `run` bytes, placed on either side as `levels` say, outermost first.
///
/// # Safety
/// As [`copy`], for every run; no run written overlaps another run written or read. Any alignment, any sign of the strides.
pub(crate) unsafe fn copy_strided(dst: *mut u8, src: *const u8, levels: &[Stride], run: usize) {
    // SAFETY: passed on unchanged.
    unsafe { strided::copy::<Native>(dst, src, levels, run) }
}

/// `dst[i] += alpha * src[i]`. Atomic against nothing: the caller holds the lock that keeps other accumulates out.
///
/// # Safety
/// As [`copy`], for `len` elements. Any alignment.
#[inline]
pub(crate) unsafe fn accumulate<T: Additive>(dst: *mut T, src: *const T, len: usize, alpha: T::Scale) {
    // SAFETY: passed on, the same bytes.
    unsafe {
        match numbers_of::<T>() {
            Some(each) => Native::accumulate::<T::Scale>(dst.cast(), src.cast(), each * len, alpha),
            None => Native::accumulate(dst, src, len, alpha),
        }
    }
}

/// [`accumulate`] on runs of `run_elements` elements, placed as `levels` (strides in bytes) say, outermost first.
///
/// # Safety
/// As [`copy_strided`], with runs of `run_elements * size_of::<T>()` bytes. Any alignment.
pub(crate) unsafe fn accumulate_strided<T: Additive>(
    dst: *mut T,
    src: *const T,
    levels: &[Stride],
    run_elements: usize,
    alpha: T::Scale,
) {
    // SAFETY: passed on, the same bytes.
    unsafe {
        match numbers_of::<T>() {
            Some(each) => {
                strided::accumulate::<Native, T::Scale>(dst.cast(), src.cast(), levels, each * run_elements, alpha);
            }
            None => strided::accumulate::<Native, T>(dst, src, levels, run_elements, alpha),
        }
    }
}

/// `dst[i] = value`.
///
/// # Safety
/// `dst` is mapped for writing for `len` elements and stays so during the call; nobody holds a Rust reference to it that the caller
/// does not speak for. Any alignment.
pub(crate) unsafe fn fill<T: Element>(dst: *mut T, len: usize, value: T) {
    // SAFETY: passed on unchanged.
    unsafe { Native::fill(dst, len, value) }
}

/// `dst[i] *= alpha`.
///
/// # Safety
/// As [`fill`].
pub(crate) unsafe fn scale<T: Additive>(dst: *mut T, len: usize, alpha: T::Scale) {
    // SAFETY: passed on, the same bytes.
    unsafe {
        match numbers_of::<T>() {
            Some(each) => Native::scale::<T::Scale>(dst.cast(), each * len, alpha),
            None => Native::scale(dst, len, alpha),
        }
    }
}

/// `dst[i] = a * x[i] + b * y[i]`. `x` and `y` may each be `dst` itself.
///
/// # Safety
/// As [`copy`] for `x` and `y`, `len` elements, save that either may begin exactly where `dst` does. Any alignment.
pub(crate) unsafe fn axpby<T: Additive>(dst: *mut T, a: T::Scale, x: *const T, b: T::Scale, y: *const T, len: usize) {
    // SAFETY: passed on, the same bytes.
    unsafe {
        match numbers_of::<T>() {
            Some(each) => Native::axpby::<T::Scale>(dst.cast(), a, x.cast(), b, y.cast(), each * len),
            None => Native::axpby(dst, a, x, b, y, len),
        }
    }
}

/// The sum of `x[i] * y[i]`, without conjugation.
///
/// # Safety
/// As [`copy`] for sources `x` and `y`, `len` elements, which may overlap. Any alignment.
pub(crate) unsafe fn dot<T: Number>(x: *const T, y: *const T, len: usize) -> T {
    // SAFETY: passed on unchanged.
    unsafe { Native::dot(x, y, len) }
}

/// Transposes: element `(i, j)` of `src`, which has `rows` rows of `cols` elements, becomes element `(j, i)` of `dst`.
///
/// Row strides are in bytes.
///
/// # Safety
/// As [`copy`] for every element of both sides; no element written overlaps another written or read. Any alignment.
pub(crate) unsafe fn copy_transposed(
    dst: *mut u8,
    dst_row_stride: isize,
    src: *const u8,
    src_row_stride: isize,
    rows: usize,
    cols: usize,
    element_bytes: usize,
) {
    // SAFETY: passed on unchanged.
    unsafe { Native::copy_transposed(Transpose { dst, dst_row_stride, src, src_row_stride, rows, cols }, element_bytes) }
}
