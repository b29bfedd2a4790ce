//! What the tests of the kernels share: every machine, memory to compare, elements of every kind.

use bytemuck::{Pod, Zeroable};
use num_complex::Complex;

use crate::element::Additive;

/// Makes of each generic check one test for every machine: the portable one, and x86-64 on each of its levels.
macro_rules! on_every_machine {
    ($($check:ident),* $(,)?) => {
        mod portable {
            $(#[test] fn $check() { super::$check::<$crate::memory::kernels::portable::Portable>(); })*
        }
        #[cfg(not(any(not(target_arch = "x86_64"), miri, global_arrays_portable)))]
        mod sse2 { $crate::memory::kernels::testing::on_every_machine!(@level Sse2, $($check),*); }
        #[cfg(not(any(not(target_arch = "x86_64"), miri, global_arrays_portable)))]
        mod avx2 { $crate::memory::kernels::testing::on_every_machine!(@level Avx2, $($check),*); }
        #[cfg(not(any(not(target_arch = "x86_64"), miri, global_arrays_portable)))]
        mod avx512 { $crate::memory::kernels::testing::on_every_machine!(@level Avx512, $($check),*); }
    };
    (@level $level:ident, $($check:ident),*) => {
        use $crate::memory::kernels::x86_64::{X86_64, level::{Level, testing::on_level}};
        $(#[test] fn $check() { on_level(Level::$level, super::$check::<X86_64>); })*
    };
}
pub(super) use on_every_machine;

/// Bytes that differ from their neighbours, between two guards.
#[derive(Clone)]
pub(super) struct Memory {
    bytes: Vec<u8>,
    skip: usize,
    len: usize,
}

/// Bytes before and behind what a kernel is given, which it must leave alone.
pub(super) const GUARD: usize = 128;

impl Memory {
    /// `len` bytes between two guards, at `offset` from a cache line's boundary; `seed` makes them different from other memory.
    pub(super) fn new(len: usize, offset: usize, seed: usize) -> Self {
        let mut bytes = vec![0; len + 2 * GUARD + 64 + offset];
        let skip = bytes.as_ptr().addr().wrapping_neg() % 64 + offset;
        for (i, byte) in bytes[skip..].iter_mut().enumerate() {
            *byte = (i.wrapping_mul(167).wrapping_add(i >> 8) ^ seed.wrapping_mul(41)) as u8;
        }
        Memory { bytes, skip, len }
    }

    /// The address of what lies between the guards.
    pub(super) fn start(&mut self) -> *mut u8 {
        self.bytes[self.skip + GUARD..].as_mut_ptr()
    }

    /// What lies between the guards.
    pub(super) fn inside(&mut self) -> &mut [u8] {
        &mut self.bytes[self.skip + GUARD..][..self.len]
    }

    /// Writes elements, of any alignment, from the start.
    pub(super) fn set<T: Pod>(&mut self, values: &[T]) {
        self.inside()[..size_of_val(values)].copy_from_slice(bytemuck::cast_slice(values));
    }

    /// Everything, guards included, to be compared.
    pub(super) fn with_guards(&self) -> &[u8] {
        &self.bytes[self.skip..][..self.len + 2 * GUARD]
    }
}

/// An element of which the tests make as many as they want.
pub(super) trait Sample: Additive + PartialEq + std::fmt::Debug {
    /// The element of that number: not exactly representable sums and products where there are such.
    fn sample(number: usize) -> Self;

    /// A factor of that number.
    fn scale(number: usize) -> Self::Scale;
}

macro_rules! sample {
    ($($t:ty, $scale:ty: $number:ident => $value:expr);* $(;)?) => {$(
        impl Sample for $t {
            fn sample($number: usize) -> Self { $value }
            fn scale(number: usize) -> $scale { <$scale>::sample(number) }
        }
    )*};
}
sample! {
    u8, u8: number => number.wrapping_mul(31) as u8;
    i32, i32: number => number.wrapping_mul(0x9e37_79b9) as i32;
    i64, i64: number => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64;
    f32, f32: number => (number % 1009) as f32 * 0.1 - 3.7;
    f64, f64: number => (number % 1009) as f64 * 0.1 - 3.7;
    Complex<f64>, Complex<f64>: number => Complex::new(f64::sample(number), f64::sample(number + 17));
    Triple, i64: number => Triple([number as i64, number.wrapping_mul(77) as i64, !number as i64]);
}

/// A user's element of 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Triple(pub(super) [i64; 3]);

impl Additive for Triple {
    type Scale = i64;
    const ZERO: Self = Triple([0; 3]);

    fn plus(self, other: Self) -> Self {
        Triple(self.0.plus(other.0))
    }

    fn scaled(self, by: i64) -> Self {
        Triple(self.0.scaled(by))
    }
}
