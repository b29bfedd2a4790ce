//! The elements whose arithmetic vectors do: `f64` and `f32`.

use std::arch::asm;

use super::vector::Vector;
use crate::element::Number;

/// An element whose arithmetic vectors do.
pub(super) trait Scalar: Number {
    /// `self` in every lane.
    ///
    /// # Safety
    /// The processor has the feature of `V`.
    unsafe fn splat<V: Vector>(self) -> V;

    /// `x + y` in every lane.
    ///
    /// # Safety
    /// The processor has the feature of `V`.
    unsafe fn add_lanes<V: Vector>(x: V, y: V) -> V;

    /// `x + y` in every lane, `y` the vector that lies `AT` vectors beyond the address.
    ///
    /// # Safety
    /// As [`Vector::load`].
    unsafe fn add_from<V: Vector, const AT: usize>(x: V, y: *const u8) -> V;

    /// `x * y` in every lane, `y` the vector that lies `AT` vectors beyond the address.
    ///
    /// # Safety
    /// As [`Vector::load`].
    unsafe fn multiply_from<V: Vector, const AT: usize>(x: V, y: *const u8) -> V;

    /// Reads one element through a general register.
    ///
    /// # Safety
    /// As [`crate::memory::kernels::copy`] for the source. Any alignment.
    unsafe fn load(src: *const Self) -> Self;

    /// Writes one element through a general register.
    ///
    /// # Safety
    /// As [`crate::memory::kernels::copy`] for the destination. Any alignment.
    unsafe fn store(self, dst: *mut Self);
}

macro_rules! scalar {
    ($t:ident, $splat:ident, $add:ident, $multiply:ident, $add_from:ident, $multiply_from:ident, $bits:ident, $load:literal, $store:literal) => {
        impl Scalar for $t {
            #[inline(always)]
            unsafe fn splat<V: Vector>(self) -> V {
                // SAFETY: the feature is there, says the caller.
                unsafe { V::$splat(self) }
            }

            #[inline(always)]
            unsafe fn add_lanes<V: Vector>(x: V, y: V) -> V {
                // SAFETY: the feature is there, says the caller.
                unsafe { x.$add(y) }
            }

            #[inline(always)]
            unsafe fn add_from<V: Vector, const AT: usize>(x: V, y: *const u8) -> V {
                // SAFETY: passed on unchanged.
                unsafe { x.$add_from::<AT>(y) }
            }

            #[inline(always)]
            unsafe fn multiply_from<V: Vector, const AT: usize>(x: V, y: *const u8) -> V {
                // SAFETY: passed on unchanged.
                unsafe { x.$multiply_from::<AT>(y) }
            }

            #[inline(always)]
            unsafe fn load(src: *const Self) -> Self {
                let bits: $bits;
                // SAFETY: reads exactly the element's bytes, which the caller vouches for.
                unsafe { asm!($load, v = out(reg) bits, p = in(reg) src, options(nostack, preserves_flags, readonly)) };
                Self::from_bits(bits)
            }

            #[inline(always)]
            unsafe fn store(self, dst: *mut Self) {
                // SAFETY: writes exactly the element's bytes, which the caller vouches for.
                unsafe { asm!($store, v = in(reg) self.to_bits(), p = in(reg) dst, options(nostack, preserves_flags)) };
            }
        }
    };
}
scalar!(f64, splat_f64, add_f64, multiply_f64, add_from_f64, multiply_from_f64, u64, "mov {v}, [{p}]", "mov [{p}], {v}");
scalar!(f32, splat_f32, add_f32, multiply_f32, add_from_f32, multiply_from_f32, u32, "mov {v:e}, [{p}]", "mov [{p}], {v:e}");
