//! Levels of strides: walked down to one level, which a [`Machine`] does at a time.

use super::machine::Machine;
use crate::element::Accumulate;

/// One level of a strided transfer: how often, and how far apart on either side, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stride {
    /// Number of steps; 0 makes the whole transfer empty.
    pub(crate) count: usize,
    /// Bytes from one step to the next at the destination.
    pub(crate) dst: isize,
    /// Bytes from one step to the next at the source.
    pub(crate) src: isize,
}

/// [`super::copy_strided`] on machine `M`.
///
/// # Safety
/// As there.
pub(super) unsafe fn copy<M: Machine>(dst: *mut u8, src: *const u8, levels: &[Stride], run: usize) {
    let (levels, run) = join_contiguous(levels, run);
    // SAFETY: joining levels changes the words, not the bytes that the caller vouches for; `walk` calls with the run's first bytes.
    unsafe {
        walk(dst, src, levels, &|dst, src, plane| match plane {
            None => M::copy(dst, src, run),
            Some(stride) => M::copy_plane(dst, src, stride, run),
        });
    }
}

/// [`super::accumulate_strided`] on machine `M`.
///
/// # Safety
/// As there.
pub(super) unsafe fn accumulate<M: Machine, T: Accumulate>(
    dst: *mut T,
    src: *const T,
    levels: &[Stride],
    run_elements: usize,
    alpha: T,
) {
    let (levels, run) = join_contiguous(levels, run_elements * size_of::<T>());
    let run_elements = run / size_of::<T>().max(1);
    // SAFETY: as in `copy`.
    unsafe {
        walk(dst.cast(), src.cast(), levels, &|dst, src, plane| match plane {
            None => M::accumulate(dst.cast::<T>(), src.cast::<T>(), run_elements, alpha),
            Some(stride) => M::accumulate_plane(dst.cast::<T>(), src.cast::<T>(), stride, run_elements, alpha),
        });
    }
}

/// Makes the run longer by the innermost levels that only continue it on both sides, and drops levels of one step.
fn join_contiguous(mut levels: &[Stride], mut run: usize) -> (&[Stride], usize) {
    while let [outer @ .., last] = levels {
        let continues = usize::try_from(last.dst) == Ok(run) && last.dst == last.src;
        if last.count != 1 && !continues {
            break;
        }
        run *= last.count;
        levels = outer;
    }
    (levels, run)
}

/// Calls `plane` for every combination of the outer levels, with the innermost level, or with `None` where there is no level.
///
/// # Safety
/// `plane` may be called on `dst`, `src` moved by any combination of steps of the outer levels.
unsafe fn walk<F>(mut dst: *mut u8, mut src: *const u8, levels: &[Stride], plane: &F)
where
    F: Fn(*mut u8, *const u8, Option<Stride>),
{
    match *levels {
        [] => plane(dst, src, None),
        [last] => plane(dst, src, Some(last)),
        [outer, ref inner @ ..] => {
            for _ in 0..outer.count {
                // SAFETY: one of the combinations that the caller vouches for.
                unsafe { walk(dst, src, inner, plane) };
                dst = dst.wrapping_offset(outer.dst);
                src = src.wrapping_offset(outer.src);
            }
        }
    }
}
