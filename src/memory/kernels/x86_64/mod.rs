//! The kernels in x86-64 assembly, for SSE2, AVX2 and AVX-512, whichever the processor has.

mod small;

use std::arch::asm;

use super::machine::Machine;

/// Assembly, with the widest vectors that the processor has.
pub(super) enum X86_64 {}

impl Machine for X86_64 {
    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: passed on, with the length that each asks for.
        unsafe {
            if len <= small::SMALL_BYTES {
                small::copy(dst, src, len);
            } else {
                copy_long(dst, src, len);
            }
        }
    }
}

/// # Safety
/// As [`super::copy`].
unsafe fn copy_long(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: reads and writes `len` bytes forwards; Rust's calling conventions keep the direction flag clear.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") dst => _, inout("rsi") src => _, options(nostack, preserves_flags));
    }
}
