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

/// The widest vectors of the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(in crate::memory::kernels) enum Level {
    /// 16 bytes; every x86-64.
    Sse2,
    /// 32 bytes.
    Avx2,
    /// 64 bytes.
    Avx512,
}

impl Level {
    /// Asks the standard library, which asks the processor once and then reads one static: a nanosecond at most.
    #[inline(always)]
    pub(super) fn of_processor() -> Self {
        #[cfg(test)]
        if let Some(level) = testing::forced() {
            return level;
        }
        if std::is_x86_feature_detected!("avx512dq") {
            Self::Avx512
        } else if std::is_x86_feature_detected!("avx2") {
            Self::Avx2
        } else {
            Self::Sse2
        }
    }
}

/// Runs a kernel on the widest vectors of the processor: one question for a contiguous operation or a whole plane of runs.
///
/// # Safety
/// What the kernel says of its fields.
#[inline]
pub(super) unsafe fn on_widest<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: passed on unchanged, to code for a feature that has been seen.
    unsafe {
        match Level::of_processor() {
            Level::Avx512 => on_avx512(kernel),
            Level::Avx2 => on_avx2(kernel),
            Level::Sse2 => on_sse2(kernel),
        }
    }
}

/// # Safety
/// As [`on_widest`]; the processor has AVX-512F and AVX-512DQ, which implies it.
#[target_feature(enable = "avx512f,avx512dq")]
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
#[inline]
pub(super) unsafe fn on_sse2<K: Kernel>(kernel: K) -> K::Output {
    // SAFETY: passed on unchanged; every x86-64 has SSE2.
    unsafe { kernel.run::<Sse2>() }
}

/// Tests try every width that the processor has, not only the widest.
#[cfg(test)]
pub(in crate::memory::kernels) mod testing {
    use std::cell::Cell;

    use super::Level;

    thread_local!(static FORCED: Cell<Option<Level>> = const { Cell::new(None) });

    /// The level that this thread is to use.
    pub(super) fn forced() -> Option<Level> {
        FORCED.get()
    }

    /// Runs `check` as on a processor of that level; not at all where this one has less, which it says.
    pub(in crate::memory::kernels) fn on_level(level: Level, check: impl FnOnce()) {
        if level > Level::of_processor() {
            return eprintln!("skipped: this processor has {:?} at most", Level::of_processor());
        }
        FORCED.set(Some(level));
        check();
        FORCED.set(None);
    }
}
