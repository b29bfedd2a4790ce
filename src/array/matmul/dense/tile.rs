//! The inner loop: a few rows of packed A times a few columns of packed B, summed in vector registers.
#![allow(unsafe_code)]

use crate::element::Number;

/// Rows times columns of the largest tile: 48 × 8 of `f32` with AVX-512.
pub(super) const LARGEST: usize = 48 * 8;

/// An inner loop and its size of tile.
#[derive(Debug)]
pub(in crate::array::matmul) struct Kernel<R: 'static> {
    /// Elements of a vector.
    pub(super) lanes: usize,
    /// Rows of a whole tile, a number of vectors.
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// For a tile of one vector of rows, of two and so on.
    run: &'static [Run<R>],
}

/// Packed rows, packed columns, the tile, elements between its columns, and whether to add to it.
type Run<R> = unsafe fn(&[R], &[R], *mut R, isize, bool);

/// An inner loop, behind whether this machine has what it needs.
pub(in crate::array::matmul) type Candidate<R> = (fn() -> bool, Kernel<R>);

/// A float with inner loops.
pub(in crate::array::matmul) trait Real: Number {
    /// From the slowest to the fastest, those that this machine can run.
    fn kernels() -> &'static [Candidate<Self>];
}

/// The fastest inner loop that this machine can run.
pub(super) fn best<R: Real>() -> &'static Kernel<R> {
    let usable = |(has, kernel): &'static Candidate<R>| has().then_some(kernel);
    R::kernels().iter().rev().find_map(usable).expect("the portable inner loop runs everywhere")
}

impl<R: Real> Kernel<R> {
    /// Puts the product of packed A, `rows` by some depth, and packed B, that depth by `columns`, into a tile whose columns are
    /// contiguous and `stride` apart; or adds it.
    ///
    /// # Panics
    /// If `rows` is not a multiple of the lanes up to that of a whole tile, or the depths differ.
    ///
    /// # Safety
    /// The elements of the tile, `rows` of each of `columns` columns, are valid for reads and writes and nobody else's. The kernel
    /// is one that [`best`] may return on this machine.
    #[inline]
    pub(super) unsafe fn tile(&self, rows: usize, a: &[R], b: &[R], c: *mut R, stride: isize, add: bool) {
        let vectors = rows / self.lanes;
        assert!(rows == vectors * self.lanes && a.len() * self.columns == b.len() * rows, "{rows} rows, {} {}", a.len(), b.len());
        // SAFETY: the loop at this place is that for so many vectors, and the depths are equal; the rest is the caller's.
        unsafe { self.run[vectors - 1](a, b, c, stride, add) }
    }
}

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks for the line of an address.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch<const HINT: i32, R>(address: *const R) {
    // SAFETY: a hint, which no address makes fail.
    unsafe { std::arch::x86_64::_mm_prefetch::<HINT>(address.cast()) };
}

/// Asks for some elements, to be in the second cache when they are read.
#[inline(always)]
pub(super) fn prefetch<R>(elements: &[R]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(elements)).step_by(LINE) {
        fetch::<{ std::arch::x86_64::_MM_HINT_T1 }, u8>(elements.as_ptr().cast::<u8>().wrapping_add(line));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = elements;
}

/// An inner loop of some vectors by some columns.
macro_rules! inner_loop {
    ($name:ident, $features:literal, $t:ty, $lanes:literal x $columns:literal,
     $zero:ident, $load:ident, $step:ident, $add:ident, $store:ident) => {
        /// # Safety
        /// As [`Kernel::tile`], with `VECTORS` times the lanes for `rows`; the machine has the features.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        unsafe fn $name<const VECTORS: usize>(a: &[$t], b: &[$t], c: *mut $t, stride: isize, add: bool) {
            use std::arch::x86_64::*;
            // C is read behind the loop: by then it is in the first cache.
            for j in 0..$columns {
                for i in 0..VECTORS {
                    fetch::<{ _MM_HINT_T0 }, $t>(c.wrapping_offset(j * stride).wrapping_add(i * $lanes));
                }
            }
            let mut sums = [[$zero(); VECTORS]; $columns];
            for (a, b) in a.chunks_exact($lanes * VECTORS).zip(b.as_chunks::<$columns>().0) {
                let mut column = [$zero(); VECTORS];
                for (i, vector) in column.iter_mut().enumerate() {
                    // SAFETY: `a` has as many elements as all vectors of a column.
                    *vector = unsafe { $load(a.as_ptr().add(i * $lanes)) };
                }
                for (sums, factor) in sums.iter_mut().zip(b) {
                    $step(sums, &column, factor);
                }
            }
            for (j, sums) in sums.iter().enumerate() {
                for (i, &sum) in sums.iter().enumerate() {
                    // SAFETY: a vector of elements of the tile, which the caller vouches for.
                    unsafe {
                        let c = c.offset(j as isize * stride).add(i * $lanes);
                        $store(c, if add { $add($load(c), sum) } else { sum });
                    }
                }
            }
        }
    };
}

/// Adds a column of A times an element of B to the sums of a column of C.
///
/// With three vectors all sixteen registers are taken, and the compiler would spill: it keeps two factors at once.
macro_rules! step_avx2 {
    ($name:ident, $t:ty, $vector:ident, $broadcast:literal, $multiply_add:literal, $splat:ident, $intrinsic:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        fn $name<const VECTORS: usize>(
            sums: &mut [std::arch::x86_64::$vector; VECTORS],
            column: &[std::arch::x86_64::$vector; VECTORS],
            factor: &$t,
        ) {
            use std::arch::x86_64::*;
            if let ([s0, s1, s2], &[c0, c1, c2]) = (&mut sums[..], &column[..]) {
                // SAFETY: reads one element behind a reference, changes nothing but the registers named.
                unsafe {
                    std::arch::asm!(
                        concat!($broadcast, " {factor}, [{from}]"),
                        concat!($multiply_add, " {s0}, {c0}, {factor}"),
                        concat!($multiply_add, " {s1}, {c1}, {factor}"),
                        concat!($multiply_add, " {s2}, {c2}, {factor}"),
                        from = in(reg) factor,
                        factor = out(ymm_reg) _,
                        s0 = inout(ymm_reg) *s0, s1 = inout(ymm_reg) *s1, s2 = inout(ymm_reg) *s2,
                        c0 = in(ymm_reg) c0, c1 = in(ymm_reg) c1, c2 = in(ymm_reg) c2,
                        options(readonly, nostack),
                    );
                }
            } else {
                let factor = $splat(*factor);
                for (sum, &vector) in sums.iter_mut().zip(column) {
                    *sum = $intrinsic(vector, factor, *sum);
                }
            }
        }
    };
}
step_avx2!(step_f64_avx2, f64, __m256d, "vbroadcastsd", "vfmadd231pd", _mm256_set1_pd, _mm256_fmadd_pd);
step_avx2!(step_f32_avx2, f32, __m256, "vbroadcastss", "vfmadd231ps", _mm256_set1_ps, _mm256_fmadd_ps);

macro_rules! step_avx512 {
    ($name:ident, $t:ty, $vector:ident, $splat:ident, $multiply_add:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn $name<const VECTORS: usize>(
            sums: &mut [std::arch::x86_64::$vector; VECTORS],
            column: &[std::arch::x86_64::$vector; VECTORS],
            factor: &$t,
        ) {
            use std::arch::x86_64::*;
            let factor = $splat(*factor);
            for (sum, &vector) in sums.iter_mut().zip(column) {
                *sum = $multiply_add(vector, factor, *sum);
            }
        }
    };
}
step_avx512!(step_f64_avx512, f64, __m512d, _mm512_set1_pd, _mm512_fmadd_pd);
step_avx512!(step_f32_avx512, f32, __m512, _mm512_set1_ps, _mm512_fmadd_ps);

inner_loop!(f64_avx2, "avx2,fma", f64, 4 x 4,
    _mm256_setzero_pd, _mm256_loadu_pd, step_f64_avx2, _mm256_add_pd, _mm256_storeu_pd);
inner_loop!(f32_avx2, "avx2,fma", f32, 8 x 4,
    _mm256_setzero_ps, _mm256_loadu_ps, step_f32_avx2, _mm256_add_ps, _mm256_storeu_ps);
inner_loop!(f64_avx512, "avx512f", f64, 8 x 8,
    _mm512_setzero_pd, _mm512_loadu_pd, step_f64_avx512, _mm512_add_pd, _mm512_storeu_pd);
inner_loop!(f32_avx512, "avx512f", f32, 16 x 8,
    _mm512_setzero_ps, _mm512_loadu_ps, step_f32_avx512, _mm512_add_ps, _mm512_storeu_ps);

/// Rows and columns of a tile without vector intrinsics: the compiler's own vectors of any machine.
const PORTABLE: usize = 4;

/// # Safety
/// Same as [`Kernel::tile`].
unsafe fn portable<R: Real>(a: &[R], b: &[R], c: *mut R, stride: isize, add: bool) {
    let mut sums = [[R::ZERO; PORTABLE]; PORTABLE];
    for (a, b) in a.as_chunks::<PORTABLE>().0.iter().zip(b.as_chunks::<PORTABLE>().0) {
        for (sums, &factor) in sums.iter_mut().zip(b) {
            for (sum, &value) in sums.iter_mut().zip(a) {
                *sum = sum.plus(value.scaled(factor));
            }
        }
    }
    for (j, sums) in sums.iter().enumerate() {
        for (i, &sum) in sums.iter().enumerate() {
            // SAFETY: an element of the tile, which the caller vouches for.
            unsafe {
                let c = c.offset(j as isize * stride).add(i);
                *c = if add { (*c).plus(sum) } else { sum };
            }
        }
    }
}

macro_rules! kernels {
    ($t:ty, $lanes_avx2:literal, $avx2:ident, $lanes_avx512:literal, $avx512:ident) => {
        impl Real for $t {
            fn kernels() -> &'static [Candidate<Self>] {
                &[
                    (|| true, Kernel { lanes: PORTABLE, rows: PORTABLE, columns: PORTABLE, run: &[portable::<$t>] }),
                    // 12 registers of sums, 3 of a column and 1 of a factor, of 16.
                    #[cfg(target_arch = "x86_64")]
                    (
                        || std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
                        Kernel {
                            lanes: $lanes_avx2,
                            rows: 3 * $lanes_avx2,
                            columns: 4,
                            run: &[$avx2::<1>, $avx2::<2>, $avx2::<3>],
                        },
                    ),
                    // 24 registers of sums, 3 of a column and 1 of a factor, of 32.
                    #[cfg(target_arch = "x86_64")]
                    (
                        || std::is_x86_feature_detected!("avx512f"),
                        Kernel {
                            lanes: $lanes_avx512,
                            rows: 3 * $lanes_avx512,
                            columns: 8,
                            run: &[$avx512::<1>, $avx512::<2>, $avx512::<3>],
                        },
                    ),
                ]
            }
        }
    };
}
kernels!(f64, 4, f64_avx2, 8, f64_avx512);
kernels!(f32, 8, f32_avx2, 16, f32_avx512);
