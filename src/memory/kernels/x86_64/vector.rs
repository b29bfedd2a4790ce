//! One vector register, and the few things that the kernels do with it.
//!
//! Only the assembly in this file touches memory, an instruction at a time, so the loops of the kernels are Rust. Generic functions are
//! inlined into one function per width, which alone names the feature. The 16-byte vector exists twice: SSE instructions among AVX ones
//! are slow on many processors.

use std::arch::{asm, x86_64::*};

/// A vector of plain bytes.
pub(super) trait Vector: Copy {
    /// Bytes in the vector.
    const BYTES: usize;
    /// The 16-byte vector for what is left over.
    type Short: Vector;

    /// Reads the vector that lies `AT` vectors beyond `src`.
    ///
    /// # Safety
    /// The processor has the feature; as [`super::super::copy`] for the source. Any alignment.
    unsafe fn load<const AT: usize>(src: *const u8) -> Self;

    /// Writes the vector that lies `AT` vectors beyond `dst`.
    ///
    /// # Safety
    /// The processor has the feature; as [`super::super::copy`] for the destination. Any alignment.
    unsafe fn store<const AT: usize>(self, dst: *mut u8);

    /// [`store`](Vector::store) past the caches; ordered before later stores only by [`store_fence`].
    ///
    /// # Safety
    /// As [`store`](Vector::store), and `dst` is aligned to the vector.
    unsafe fn stream<const AT: usize>(self, dst: *mut u8);

    /// # Safety
    /// The processor has the feature; so for the five that follow.
    unsafe fn splat_f64(value: f64) -> Self;
    /// # Safety
    /// As above.
    unsafe fn add_f64(self, other: Self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn multiply_f64(self, other: Self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn splat_f32(value: f32) -> Self;
    /// # Safety
    /// As above.
    unsafe fn add_f32(self, other: Self) -> Self;
    /// # Safety
    /// As above.
    unsafe fn multiply_f32(self, other: Self) -> Self;

    /// `self` and the vector that lies `AT` vectors beyond `src`, by an instruction that reads it itself where one takes any alignment.
    ///
    /// # Safety
    /// As [`load`](Vector::load); so for the three that follow.
    #[inline(always)]
    unsafe fn add_from_f64<const AT: usize>(self, src: *const u8) -> Self {
        // SAFETY: the caller's promise is that of `load`.
        unsafe { self.add_f64(Self::load::<AT>(src)) }
    }

    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn multiply_from_f64<const AT: usize>(self, src: *const u8) -> Self {
        // SAFETY: the caller's promise is that of `load`.
        unsafe { self.multiply_f64(Self::load::<AT>(src)) }
    }

    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn add_from_f32<const AT: usize>(self, src: *const u8) -> Self {
        // SAFETY: the caller's promise is that of `load`.
        unsafe { self.add_f32(Self::load::<AT>(src)) }
    }

    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn multiply_from_f32<const AT: usize>(self, src: *const u8) -> Self {
        // SAFETY: the caller's promise is that of `load`.
        unsafe { self.multiply_f32(Self::load::<AT>(src)) }
    }
}

/// Orders streaming stores before everything that follows.
#[inline(always)]
pub(super) fn store_fence() {
    // SAFETY: touches no memory; every x86-64 has it.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) }
}

/// 16 bytes, by SSE2.
#[derive(Clone, Copy)]
pub(super) struct Sse2(__m128i);

/// 16 bytes, by AVX.
#[derive(Clone, Copy)]
pub(super) struct Avx128(__m128i);

/// 32 bytes, by AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(pub(super) __m256i);

/// 64 bytes, by AVX-512F.
#[derive(Clone, Copy)]
pub(super) struct Avx512(pub(super) __m512i);

macro_rules! vector {
    ($name:ident, $feature:literal, $bytes:literal, $short:ident, $register:ident, $load:literal, $stream:literal,
     $set_f64:ident $add_f64:ident $multiply_f64:ident $from_f64:ident $to_f64:ident,
     $set_f32:ident $add_f32:ident $multiply_f32:ident $from_f32:ident $to_f32:ident
     $(, $add_from_f64:literal $multiply_from_f64:literal $add_from_f32:literal $multiply_from_f32:literal)?) => {
        impl Vector for $name {
            const BYTES: usize = $bytes;
            type Short = $short;

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn load<const AT: usize>(src: *const u8) -> Self {
                let value;
                // SAFETY: reads exactly the vector's bytes, which the caller vouches for.
                unsafe {
                    asm!(concat!($load, " {v}, [{p} + {at}]"), v = out($register) value, p = in(reg) src,
                        at = const AT * $bytes, options(nostack, preserves_flags, readonly));
                }
                Self(value)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn store<const AT: usize>(self, dst: *mut u8) {
                // SAFETY: writes exactly the vector's bytes, which the caller vouches for.
                unsafe {
                    asm!(concat!($load, " [{p} + {at}], {v}"), v = in($register) self.0, p = in(reg) dst,
                        at = const AT * $bytes, options(nostack, preserves_flags));
                }
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn stream<const AT: usize>(self, dst: *mut u8) {
                // SAFETY: writes exactly the vector's bytes, which the caller vouches for, aligned.
                unsafe {
                    asm!(concat!($stream, " [{p} + {at}], {v}"), v = in($register) self.0, p = in(reg) dst,
                        at = const AT * $bytes, options(nostack, preserves_flags));
                }
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn splat_f64(value: f64) -> Self {
                Self($from_f64($set_f64(value)))
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn add_f64(self, other: Self) -> Self {
                Self($from_f64($add_f64($to_f64(self.0), $to_f64(other.0))))
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn multiply_f64(self, other: Self) -> Self {
                Self($from_f64($multiply_f64($to_f64(self.0), $to_f64(other.0))))
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn splat_f32(value: f32) -> Self {
                Self($from_f32($set_f32(value)))
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn add_f32(self, other: Self) -> Self {
                Self($from_f32($add_f32($to_f32(self.0), $to_f32(other.0))))
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn multiply_f32(self, other: Self) -> Self {
                Self($from_f32($multiply_f32($to_f32(self.0), $to_f32(other.0))))
            }

            $(
            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn add_from_f64<const AT: usize>(self, src: *const u8) -> Self {
                let value;
                // SAFETY: reads exactly the vector's bytes, which the caller vouches for.
                unsafe {
                    asm!(concat!($add_from_f64, " {v}, {x}, [{p} + {at}]"), v = lateout($register) value, x = in($register) self.0,
                        p = in(reg) src, at = const AT * $bytes, options(nostack, preserves_flags, readonly));
                }
                Self(value)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn multiply_from_f64<const AT: usize>(self, src: *const u8) -> Self {
                let value;
                // SAFETY: reads exactly the vector's bytes, which the caller vouches for.
                unsafe {
                    asm!(concat!($multiply_from_f64, " {v}, {x}, [{p} + {at}]"), v = lateout($register) value, x = in($register) self.0,
                        p = in(reg) src, at = const AT * $bytes, options(nostack, preserves_flags, readonly));
                }
                Self(value)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn add_from_f32<const AT: usize>(self, src: *const u8) -> Self {
                let value;
                // SAFETY: reads exactly the vector's bytes, which the caller vouches for.
                unsafe {
                    asm!(concat!($add_from_f32, " {v}, {x}, [{p} + {at}]"), v = lateout($register) value, x = in($register) self.0,
                        p = in(reg) src, at = const AT * $bytes, options(nostack, preserves_flags, readonly));
                }
                Self(value)
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn multiply_from_f32<const AT: usize>(self, src: *const u8) -> Self {
                let value;
                // SAFETY: reads exactly the vector's bytes, which the caller vouches for.
                unsafe {
                    asm!(concat!($multiply_from_f32, " {v}, {x}, [{p} + {at}]"), v = lateout($register) value, x = in($register) self.0,
                        p = in(reg) src, at = const AT * $bytes, options(nostack, preserves_flags, readonly));
                }
                Self(value)
            }
            )?
        }
    };
}
vector!(Sse2, "sse2", 16, Sse2, xmm_reg, "movups", "movntps",
    _mm_set1_pd _mm_add_pd _mm_mul_pd _mm_castpd_si128 _mm_castsi128_pd,
    _mm_set1_ps _mm_add_ps _mm_mul_ps _mm_castps_si128 _mm_castsi128_ps);
vector!(Avx128, "avx", 16, Avx128, xmm_reg, "vmovups", "vmovntps",
    _mm_set1_pd _mm_add_pd _mm_mul_pd _mm_castpd_si128 _mm_castsi128_pd,
    _mm_set1_ps _mm_add_ps _mm_mul_ps _mm_castps_si128 _mm_castsi128_ps,
    "vaddpd" "vmulpd" "vaddps" "vmulps");
vector!(Avx2, "avx2", 32, Avx128, ymm_reg, "vmovups", "vmovntps",
    _mm256_set1_pd _mm256_add_pd _mm256_mul_pd _mm256_castpd_si256 _mm256_castsi256_pd,
    _mm256_set1_ps _mm256_add_ps _mm256_mul_ps _mm256_castps_si256 _mm256_castsi256_ps,
    "vaddpd" "vmulpd" "vaddps" "vmulps");
vector!(Avx512, "avx512f", 64, Avx128, zmm_reg, "vmovups", "vmovntps",
    _mm512_set1_pd _mm512_add_pd _mm512_mul_pd _mm512_castpd_si512 _mm512_castsi512_pd,
    _mm512_set1_ps _mm512_add_ps _mm512_mul_ps _mm512_castps_si512 _mm512_castsi512_ps,
    "vaddpd" "vmulpd" "vaddps" "vmulps");
