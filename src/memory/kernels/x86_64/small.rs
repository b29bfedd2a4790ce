//! Copies of up to 64 bytes: two or four overlapping moves, no loop, nothing beyond SSE2.
//!
//! All loads come before all stores, so that each byte is read once. A constant length leaves a single block.

use std::arch::asm;

/// The longest copy that [`copy`] does.
pub(super) const SMALL_BYTES: usize = 64;

/// Copies `len` bytes, at most [`SMALL_BYTES`].
///
/// # Safety
/// As [`crate::memory::kernels::copy`], and `len <= SMALL_BYTES`.
#[inline(always)]
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: each arm touches the first and the last bytes of both ranges, of a unit that `len` has been compared with: nothing
    // outside, nothing missed.
    unsafe {
        if len == 8 {
            copy_8(dst, src);
        } else if len >= 16 {
            if len == 16 {
                copy_16(dst, src);
            } else if len <= 32 {
                copy_16_to_32(dst, src, len);
            } else {
                copy_32_to_64(dst, src, len);
            }
        } else if len >= 8 {
            copy_8_to_16(dst, src, len);
        } else if len >= 4 {
            copy_4_to_8(dst, src, len);
        } else if len > 0 {
            copy_1_to_3(dst, src, len);
        }
    }
}

/// # Safety
/// As [`copy`] with `len == 8`.
#[inline(always)]
pub(super) unsafe fn copy_8(dst: *mut u8, src: *const u8) {
    // SAFETY: reads and writes exactly 8 bytes.
    unsafe {
        asm!("mov {t}, [{s}]", "mov [{d}], {t}",
            s = in(reg) src, d = in(reg) dst, t = out(reg) _, options(nostack, preserves_flags));
    }
}

/// # Safety
/// As [`copy`] with `len == 16`.
#[inline(always)]
pub(super) unsafe fn copy_16(dst: *mut u8, src: *const u8) {
    // SAFETY: reads and writes exactly 16 bytes.
    unsafe {
        asm!("movups {t}, [{s}]", "movups [{d}], {t}",
            s = in(reg) src, d = in(reg) dst, t = out(xmm_reg) _, options(nostack, preserves_flags));
    }
}

/// # Safety
/// As [`copy`] with `16 <= len <= 32`.
#[inline(always)]
unsafe fn copy_16_to_32(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the first and the last 16 bytes.
    unsafe {
        asm!("movups {t}, [{s}]", "movups {u}, [{s} + {n} - 16]",
            "movups [{d}], {t}", "movups [{d} + {n} - 16], {u}",
            s = in(reg) src, d = in(reg) dst, n = in(reg) len, t = out(xmm_reg) _, u = out(xmm_reg) _,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// As [`copy`] with `32 <= len <= 64`.
#[inline(always)]
unsafe fn copy_32_to_64(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the first and the last 32 bytes.
    unsafe {
        asm!("movups {t}, [{s}]", "movups {u}, [{s} + 16]", "movups {v}, [{s} + {n} - 32]", "movups {w}, [{s} + {n} - 16]",
            "movups [{d}], {t}", "movups [{d} + 16], {u}", "movups [{d} + {n} - 32], {v}", "movups [{d} + {n} - 16], {w}",
            s = in(reg) src, d = in(reg) dst, n = in(reg) len,
            t = out(xmm_reg) _, u = out(xmm_reg) _, v = out(xmm_reg) _, w = out(xmm_reg) _,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// As [`copy`] with `8 <= len <= 16`.
#[inline(always)]
unsafe fn copy_8_to_16(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the first and the last 8 bytes.
    unsafe {
        asm!("mov {t}, [{s}]", "mov {u}, [{s} + {n} - 8]", "mov [{d}], {t}", "mov [{d} + {n} - 8], {u}",
            s = in(reg) src, d = in(reg) dst, n = in(reg) len, t = out(reg) _, u = out(reg) _,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// As [`copy`] with `4 <= len <= 8`.
#[inline(always)]
unsafe fn copy_4_to_8(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the first and the last 4 bytes.
    unsafe {
        asm!("mov {t:e}, [{s}]", "mov {u:e}, [{s} + {n} - 4]", "mov [{d}], {t:e}", "mov [{d} + {n} - 4], {u:e}",
            s = in(reg) src, d = in(reg) dst, n = in(reg) len, t = out(reg) _, u = out(reg) _,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// As [`copy`] with `1 <= len <= 3`.
#[inline(always)]
unsafe fn copy_1_to_3(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the first, the middle (`len / 2`) and the last byte; two of them are the same when `len < 3`.
    unsafe {
        asm!("movzx {t:e}, byte ptr [{s}]", "movzx {u:e}, byte ptr [{s} + {m}]", "movzx {v:e}, byte ptr [{s} + {n} - 1]",
            "mov [{d}], {t:l}", "mov [{d} + {m}], {u:l}", "mov [{d} + {n} - 1], {v:l}",
            s = in(reg) src, d = in(reg) dst, m = in(reg) len / 2, n = in(reg) len,
            t = out(reg) _, u = out(reg) _, v = out(reg) _,
            options(nostack, preserves_flags));
    }
}

/// Copies 64 to 128 bytes: worth a call, not worth asking which vectors there are.
///
/// # Safety
/// As [`crate::memory::kernels::copy`] with `64 <= len <= 128`.
#[inline(always)]
pub(super) unsafe fn copy_64_to_128(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the first and the last 64 bytes.
    unsafe {
        asm!("movups {a}, [{s}]", "movups {b}, [{s} + 16]", "movups {c}, [{s} + 32]", "movups {d}, [{s} + 48]",
            "movups {e}, [{s} + {n} - 64]", "movups {f}, [{s} + {n} - 48]", "movups {g}, [{s} + {n} - 32]", "movups {h}, [{s} + {n} - 16]",
            "movups [{t}], {a}", "movups [{t} + 16], {b}", "movups [{t} + 32], {c}", "movups [{t} + 48], {d}",
            "movups [{t} + {n} - 64], {e}", "movups [{t} + {n} - 48], {f}", "movups [{t} + {n} - 32], {g}", "movups [{t} + {n} - 16], {h}",
            s = in(reg) src, t = in(reg) dst, n = in(reg) len,
            a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
            e = out(xmm_reg) _, f = out(xmm_reg) _, g = out(xmm_reg) _, h = out(xmm_reg) _,
            options(nostack, preserves_flags));
    }
}
