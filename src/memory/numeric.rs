//! Sums of elements whose type a message names by a code, [`Numeric`].
//!
//! The owner's handler adds with the kernels of processors, so the sums are the same bits on every path. Types of a program's own have no
//! code; only the program can add them.

use std::any::TypeId;

use num_complex::Complex;

use super::kernels::{self, Stride};
use crate::element::{Additive, Number, numbers_of};

/// The arithmetic of an element that a handler knows. Integers wrap, so their signs make no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Numeric {
    /// `i8`, `u8`.
    Integer8,
    /// `i16`, `u16`.
    Integer16,
    /// `i32`, `u32`.
    Integer32,
    /// `i64`, `u64`.
    Integer64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `Complex<f32>`.
    ComplexF32,
    /// `Complex<f64>`.
    ComplexF64,
}

/// What elements are multiplied by before they are added, and which type they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Their type.
    pub kind: Numeric,
    /// The factor, an element of that type in its first bytes.
    pub alpha: [u8; 16],
}

#[cfg_attr(not(any(feature = "mpi", test)), allow(dead_code, reason = "for networks with handlers at the target"))]
impl Numeric {
    const ALL: [Numeric; 8] = [
        Numeric::Integer8,
        Numeric::Integer16,
        Numeric::Integer32,
        Numeric::Integer64,
        Numeric::F32,
        Numeric::F64,
        Numeric::ComplexF32,
        Numeric::ComplexF64,
    ];

    /// Which of them a type is; a constant once the type is known. Asked by the type itself, not by a constant of its trait, which
    /// a program could set for types of another size.
    #[inline(always)]
    pub(crate) fn of<T: 'static>() -> Option<Numeric> {
        let this = TypeId::of::<T>();
        // No list and no loop: that would not be folded.
        if this == TypeId::of::<f64>() {
            Some(Numeric::F64)
        } else if this == TypeId::of::<f32>() {
            Some(Numeric::F32)
        } else if this == TypeId::of::<i64>() || this == TypeId::of::<u64>() {
            Some(Numeric::Integer64)
        } else if this == TypeId::of::<i32>() || this == TypeId::of::<u32>() {
            Some(Numeric::Integer32)
        } else if this == TypeId::of::<Complex<f64>>() {
            Some(Numeric::ComplexF64)
        } else if this == TypeId::of::<Complex<f32>>() {
            Some(Numeric::ComplexF32)
        } else if this == TypeId::of::<i16>() || this == TypeId::of::<u16>() {
            Some(Numeric::Integer16)
        } else if this == TypeId::of::<i8>() || this == TypeId::of::<u8>() {
            Some(Numeric::Integer8)
        } else if this == TypeId::of::<isize>() || this == TypeId::of::<usize>() {
            Some(if size_of::<usize>() == 8 { Numeric::Integer64 } else { Numeric::Integer32 })
        } else {
            None
        }
    }

    /// The kind whose number, `kind as u8`, came in a message.
    #[must_use]
    pub(crate) fn from_code(code: u8) -> Option<Numeric> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Bytes of an element.
    #[must_use]
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Numeric::Integer8 => 1,
            Numeric::Integer16 => 2,
            Numeric::Integer32 | Numeric::F32 => 4,
            Numeric::Integer64 | Numeric::F64 | Numeric::ComplexF32 => 8,
            Numeric::ComplexF64 => 16,
        }
    }
}

#[cfg_attr(not(any(feature = "mpi", test)), allow(dead_code, reason = "for networks with handlers at the target"))]
impl Scale {
    /// `None` for types that a handler cannot add: it knows numbers, and elements that are several of them.
    #[inline]
    pub(crate) fn of<T: Additive>(alpha: T::Scale) -> Option<Self> {
        let kind = numbers_of::<T>().and_then(|_| Numeric::of::<T::Scale>())?;
        let mut bytes = [0; 16];
        bytes[..size_of::<T::Scale>()].copy_from_slice(bytemuck::bytes_of(&alpha));
        Some(Scale { kind, alpha: bytes })
    }

    /// `memory += alpha * packed`: runs of `run` bytes at these offsets from `memory`, one after the other in `packed`. Atomic
    /// against nothing: whoever calls holds the owner's lock.
    ///
    /// # Safety
    /// `run` is a whole number of elements. Every run, and as many bytes of `packed` as all of them have, is mapped, the runs for
    /// writing, and stays so during the call; nobody holds a Rust reference to a run, nor an exclusive one to `packed`; no run
    /// overlaps `packed`. Any alignment.
    pub(crate) unsafe fn add<I: Iterator<Item = usize>>(&self, memory: *mut u8, offsets: I, run: usize, packed: *const u8) {
        let add = match self.kind {
            Numeric::Integer8 => Self::add_as::<u8, I>,
            Numeric::Integer16 => Self::add_as::<u16, I>,
            Numeric::Integer32 => Self::add_as::<u32, I>,
            Numeric::Integer64 => Self::add_as::<u64, I>,
            Numeric::F32 => Self::add_as::<f32, I>,
            Numeric::F64 => Self::add_as::<f64, I>,
            Numeric::ComplexF32 => Self::add_as::<Complex<f32>, I>,
            Numeric::ComplexF64 => Self::add_as::<Complex<f64>, I>,
        };
        // SAFETY: passed on unchanged, with the type that the kind names.
        unsafe { add(self, memory, offsets, run, packed) }
    }

    /// The same for runs placed on both sides as `levels` say, from `memory` and `packed`, outermost first.
    ///
    /// # Safety
    /// As [`add`](Self::add), and no two runs of `memory` overlap.
    pub(crate) unsafe fn add_strided(&self, memory: *mut u8, levels: &[Stride], run: usize, packed: *const u8) {
        let add = match self.kind {
            Numeric::Integer8 => Self::add_strided_as::<u8>,
            Numeric::Integer16 => Self::add_strided_as::<u16>,
            Numeric::Integer32 => Self::add_strided_as::<u32>,
            Numeric::Integer64 => Self::add_strided_as::<u64>,
            Numeric::F32 => Self::add_strided_as::<f32>,
            Numeric::F64 => Self::add_strided_as::<f64>,
            Numeric::ComplexF32 => Self::add_strided_as::<Complex<f32>>,
            Numeric::ComplexF64 => Self::add_strided_as::<Complex<f64>>,
        };
        // SAFETY: passed on unchanged, with the type that the kind names.
        unsafe { add(self, memory, levels, run, packed) }
    }

    /// # Safety
    /// As [`add_strided`](Self::add_strided), with elements of type `T`.
    unsafe fn add_strided_as<T: Number>(&self, memory: *mut u8, levels: &[Stride], run: usize, packed: *const u8) {
        let (to, from, alpha) = (memory.cast::<T>(), packed.cast::<T>(), self.alpha_as::<T>());
        // SAFETY: passed on unchanged; the kernel takes any alignment.
        unsafe { kernels::accumulate_strided(to, from, levels, run / size_of::<T>(), alpha) }
    }

    fn alpha_as<T: Number>(&self) -> T {
        bytemuck::pod_read_unaligned(&self.alpha[..size_of::<T>()])
    }

    /// # Safety
    /// As [`add`](Self::add), with elements of type `T`.
    unsafe fn add_as<T: Number, I: Iterator<Item = usize>>(&self, memory: *mut u8, offsets: I, run: usize, packed: *const u8) {
        let alpha: T = self.alpha_as();
        let mut from = packed;
        for offset in offsets {
            let to = memory.wrapping_add(offset).cast::<T>();
            // SAFETY: one of the runs, and the bytes that go with it; the kernel takes any alignment.
            unsafe { kernels::accumulate(to, from.cast::<T>(), run / size_of::<T>(), alpha) };
            from = from.wrapping_add(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of<T: Number>(sample: T) {
        let scale = Scale::of::<T>(sample).expect("a kind");
        assert_eq!(scale.kind.bytes(), size_of::<T>());
        assert_eq!(Numeric::from_code(scale.kind as u8), Some(scale.kind));
        // Two runs of three elements, not aligned, in the order of the packed ones.
        let three = size_of::<T>() * 3;
        let packed: Vec<T> = (0..6).map(|k| if k % 2 == 0 { T::ONE } else { sample }).collect();
        let mut memory = vec![0_u8; 1 + 3 * three];
        memory[1..=three].copy_from_slice(bytemuck::cast_slice(&packed[..3]));
        let offsets = [1 + 2 * three, 1];
        // SAFETY: the runs lie inside a buffer of this test.
        unsafe { scale.add(memory.as_mut_ptr(), offsets.into_iter(), three, packed.as_ptr().cast()) };
        let at = |memory: &[u8], k: usize| bytemuck::pod_read_unaligned::<T>(&memory[1 + k * size_of::<T>()..][..size_of::<T>()]);
        for k in 0..3 {
            assert_eq!(at(&memory, k), packed[k].plus(sample.scaled(packed[3 + k])));
            assert_eq!((at(&memory, 3 + k), at(&memory, 6 + k)), (T::ZERO, T::ZERO.plus(sample.scaled(packed[k]))));
        }
        // The same runs by their distance.
        let mut again = vec![0_u8; memory.len()];
        again[1..=three].copy_from_slice(bytemuck::cast_slice(&packed[..3]));
        let levels = [Stride { count: 2, dst: -2 * three as isize, src: three as isize }];
        // SAFETY: as before.
        unsafe { scale.add_strided(again.as_mut_ptr().wrapping_add(offsets[0]), &levels, three, packed.as_ptr().cast()) };
        assert_eq!(memory, again);
    }

    #[test]
    fn every_kind_adds_as_its_type_does() {
        kind_of(-100_i8);
        kind_of(200_u8);
        kind_of(-30_000_i16);
        kind_of(60_000_u16);
        kind_of(i32::MIN + 3);
        kind_of(u32::MAX - 1);
        kind_of(i64::MIN + 9);
        kind_of(u64::MAX / 3);
        kind_of(-7_isize);
        kind_of(usize::MAX / 5);
        kind_of(0.1_f32);
        kind_of(0.1_f64);
        kind_of(Complex::new(0.1_f32, -2.0));
        kind_of(Complex::new(0.1_f64, 3.0));
    }

    #[test]
    fn other_types_have_no_kind() {
        assert_eq!(Scale::of::<u128>(3), None);
        assert_eq!(Numeric::of::<[f64; 2]>(), None);
        assert_eq!(Scale::of::<[[f64; 2]; 3]>(0.1), Scale::of::<f64>(0.1));
        assert_eq!(Numeric::from_code(8), None);
    }
}
