//! Element types.
//!
//! An [`Element`] is plain data: no padding, every bit pattern valid, no references. So another process can write it at any time without
//! breaking a Rust invariant, and a new array can have meaningless but initialized contents. Integers wrap, as in a network adapter.

use std::any::TypeId;

use num_complex::Complex;

/// Plain data that a [`GlobalArray`](crate::GlobalArray) can hold.
///
/// Implemented for every `Pod` type: integers, floats, `Complex`, arrays of these, and user structs that derive `Pod`.
pub trait Element: bytemuck::Pod + Send + Sync {}

impl<T: bytemuck::Pod + Send + Sync> Element for T {}

/// The arithmetic that the vectorized kernels support; all other types use the generic loop.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    F32,
    F64,
    Other,
}

/// An element with the arithmetic of accumulate and of the array algebra.
///
/// Integer arithmetic wraps.
pub trait Accumulate: Element + PartialEq + std::fmt::Debug {
    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;
    #[doc(hidden)]
    const SCALAR: Scalar = Scalar::Other;
    /// `self + other`, wrapping for integers.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `self * other`, wrapping for integers.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// The magnitude as `f64`, for norms.
    fn magnitude(self) -> f64;
}

macro_rules! accumulate_integer {
    ($($t:ty),*) => {$(
        impl Accumulate for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            #[inline]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline]
            fn magnitude(self) -> f64 { (self as f64).abs() }
        }
    )*};
}
accumulate_integer!(i8, u8, i16, u16, i32, u32, i64, u64, i128, u128, isize, usize);

macro_rules! accumulate_float {
    ($($t:ty, $s:ident);*) => {$(
        impl Accumulate for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const SCALAR: Scalar = Scalar::$s;
            #[inline]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline]
            fn times(self, other: Self) -> Self { self * other }
            #[inline]
            fn magnitude(self) -> f64 { f64::from(self.abs()) }
        }
        impl Accumulate for Complex<$t> {
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            #[inline]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline]
            fn times(self, other: Self) -> Self { self * other }
            #[inline]
            fn magnitude(self) -> f64 { f64::from(self.norm()) }
        }
    )*};
}
accumulate_float!(f32, F32; f64, F64);

/// An integer element that supports read-and-increment, fetch-op, swap and compare-and-swap.
///
/// Sealed: the widths are those that processors and network adapters support.
pub trait AtomicInteger: Accumulate + Eq + Ord + sealed::Sealed {
    #[doc(hidden)]
    fn to_bits(self) -> u64;
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! atomic_integer {
    ($($t:ty, $u:ty);*) => {$(
        impl sealed::Sealed for $t {}
        impl AtomicInteger for $t {
            #[inline]
            fn to_bits(self) -> u64 { self as $u as u64 }
            #[inline]
            fn from_bits(bits: u64) -> Self { bits as $u as $t }
        }
    )*};
}
atomic_integer!(i32, u32; u32, u32; i64, u64; u64, u64; isize, usize; usize, usize);

/// Whether a type is one of the [`AtomicInteger`]s; a constant once the type is known.
#[inline(always)]
pub(crate) fn has_atomics<T: 'static>() -> bool {
    let this = TypeId::of::<T>();
    // No list and no loop: that would not be folded.
    this == TypeId::of::<i32>()
        || this == TypeId::of::<u32>()
        || this == TypeId::of::<i64>()
        || this == TypeId::of::<u64>()
        || this == TypeId::of::<isize>()
        || this == TypeId::of::<usize>()
}
