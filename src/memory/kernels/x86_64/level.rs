//! Which vectors this processor has, and how a kernel written for any of them is compiled for each.

use super::vector::{Avx2, Avx512, Sse2, Vector};

/// A kernel for any vector: its operands are its fields.
pub(super) trait Kernel {
    /// What it computes.
    type Output;

    /// Runs on vectors `V`. Always inlined, so that it is compiled with the features of its caller.
    ///
    /// # Safety
    /// The processor has the feature of `V`; and what the kernel says of its fields.
    unsafe fn run<V: Vector>(self) -> Self::Output;
}

/// Runs a kernel on the widest vectors of the processor. The standard library asks the processor once and then reads one static: a
/// nanosecond at most, paid once for a contiguous operation or a whole plane of runs.
///
/// # Safety
/// What the kernel says of its fields.
#[inline]
pub(super) unsafe fn on_widest<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: passed on unchanged, to code for a feature that has been seen.
    unsafe {
        if std::is_x86_feature_detected!("avx512f") {
            on_avx512(kernel)
        } else if std::is_x86_feature_detected!("avx2") {
            on_avx2(kernel)
        } else {
            on_sse2(kernel)
        }
    }
}

/// # Safety
/// As [`on_widest`]; the processor has AVX-512F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn on_avx512<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: passed on unchanged.
    unsafe { kernel.run::<Avx512>() }
}

/// # Safety
/// As [`on_widest`]; the processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn on_avx2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: passed on unchanged.
    unsafe { kernel.run::<Avx2>() }
}

/// # Safety
/// As [`on_widest`].
pub(super) unsafe fn on_sse2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: passed on unchanged; every x86-64 has SSE2.
    unsafe { kernel.run::<Sse2>() }
}
