//! Memory that is needed soon.
//!
//! Thousands of ranks fit into no cache, and each resumes now and then. Which ones are next, the queue of events knows a little before.

/// Lines of a stack that a rank returns through: from where it suspends itself to its program.
const FRAMES: usize = 32;

const LINE: usize = 64;

/// Brings a value nearer to the processor. A hint, which may do nothing.
pub(in crate::comm) fn prefetch<T>(value: *const T) {
    let first = value.addr() / LINE * LINE;
    for at in (first..value.addr() + size_of::<T>()).step_by(LINE) {
        line(at);
    }
}

/// Brings the frames of a suspended rank nearer, of which this is an address in the lowest.
pub(super) fn prefetch_frames(lowest: usize) {
    (0..FRAMES).for_each(|count| line(lowest + count * LINE));
}

#[cfg(target_arch = "x86_64")]
fn line(at: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint may name any address; it neither reads nor fails.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(at)) };
}

#[cfg(not(target_arch = "x86_64"))]
fn line(_at: usize) {}
