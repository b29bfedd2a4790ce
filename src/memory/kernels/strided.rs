//! Levels of strides: walked down to one level, which a [`Machine`] does at a time.

use super::machine::Machine;
use crate::element::Additive;

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
pub(super) unsafe fn accumulate<M: Machine, T: Additive>(
    dst: *mut T,
    src: *const T,
    levels: &[Stride],
    run_elements: usize,
    alpha: T::Scale,
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

#[cfg(test)]
mod tests {
    use super::{Stride, accumulate, copy};
    use crate::memory::kernels::machine::Machine;
    use crate::memory::kernels::testing::{Memory, Sample, Triple, on_every_machine};

    /// The offsets that the levels lead to, in the order in which a nest of loops would.
    fn offsets(levels: &[Stride]) -> Vec<(isize, isize)> {
        levels.iter().fold(vec![(0, 0)], |outer, level| {
            let steps = |(dst, src)| (0..level.count.cast_signed()).map(move |i| (dst + i * level.dst, src + i * level.src));
            outer.into_iter().flat_map(steps).collect()
        })
    }

    /// Where the runs lie in memory: how much, and where the first one begins, so that negative strides stay inside.
    fn extent(offsets: impl Iterator<Item = isize> + Clone, run: usize) -> (usize, usize) {
        let (lowest, highest) = (offsets.clone().min().unwrap_or(0).min(0), offsets.max().unwrap_or(0).max(0));
        ((highest - lowest).cast_unsigned() + run, lowest.unsigned_abs())
    }

    fn copies<M: Machine>(levels: &[Stride], run: usize, to: usize, from: usize) {
        let offsets = offsets(levels);
        let (dst_len, dst_first) = extent(offsets.iter().map(|o| o.0), run);
        let (src_len, src_first) = extent(offsets.iter().map(|o| o.1), run);
        let (mut dst, mut src) = (Memory::new(dst_len, to, 1), Memory::new(src_len, from, 2));
        let mut expected = dst.clone();
        for (d, s) in offsets {
            let (d, s) = (dst_first.wrapping_add_signed(d), src_first.wrapping_add_signed(s));
            expected.inside()[d..d + run].copy_from_slice(&src.inside()[s..s + run]);
        }
        // SAFETY: all runs lie within two buffers of this test; the callers' strides keep those of the destination apart.
        unsafe { copy::<M>(dst.start().add(dst_first), src.start().add(src_first), levels, run) };
        assert!(dst.with_guards() == expected.with_guards(), "{levels:?}, runs of {run}, offsets {to} and {from}");
    }

    fn every_run_length<M: Machine>() {
        for run in (0_usize..150).chain([255, 256, 257, 1000, 1024, 4095, 4096, 5000]) {
            let length = run.cast_signed();
            for (to, from) in [(0, 0), (8, 8), (3, 0), (0, 13)] {
                for (dst, src) in
                    [(4 * length + 8, length), (length, 2 * length + 3), (-length - 16, length), (length + 64, -length)]
                {
                    copies::<M>(&[Stride { count: 7, dst, src }], run, to, from);
                }
            }
        }
    }

    fn levels_of_any_number_and_sign<M: Machine>() {
        let level = |count, dst, src| Stride { count, dst, src };
        for run in [1_usize, 4, 8, 16, 24, 40, 100] {
            let r = run.cast_signed();
            copies::<M>(&[], run, 1, 2);
            copies::<M>(&[level(0, 5, 5)], run, 0, 0);
            copies::<M>(&[level(3, r * 40, r * 10), level(0, r, r)], run, 0, 0);
            copies::<M>(&[level(1, -99, 7), level(4, r, r)], run, 0, 0);
            copies::<M>(&[level(3, r * 40, r * 10), level(5, r * 2, r)], run, 8, 0);
            copies::<M>(&[level(3, r * 40, r * 10), level(5, r, r), level(1, 3, 3)], run, 5, 1);
            copies::<M>(&[level(2, -r * 200, r * 60), level(3, r * 40, -r * 20), level(5, -r * 2, r)], run, 0, 4);
            copies::<M>(&[level(2, r * 900, r), level(3, r * 300, 0), level(4, r * 30, r * 7), level(5, r * 2, r)], run, 0, 4);
        }
    }

    fn more_than_the_streaming_threshold<M: Machine>() {
        for run in [64_usize, 128, 1024, 8192] {
            let stride = Stride { count: (9 << 20) / run, dst: run.cast_signed() + 64, src: run.cast_signed() };
            copies::<M>(&[stride], run, 0, 0);
            copies::<M>(&[stride], run, 24, 0);
        }
    }

    fn accumulates<M: Machine, T: Sample>(levels: &[Stride], run: usize, offset: usize) {
        let offsets = offsets(levels);
        let (dst_len, dst_first) = extent(offsets.iter().map(|o| o.0), run * size_of::<T>());
        let (src_len, src_first) = extent(offsets.iter().map(|o| o.1), run * size_of::<T>());
        let (mut dst, mut src) = (Memory::new(dst_len, offset, 1), Memory::new(src_len, 16 - offset, 2));
        let samples = |bytes: usize, first| (0..bytes / size_of::<T>()).map(|i| T::sample(i + first)).collect::<Vec<T>>();
        dst.set(&samples(dst_len, 5));
        src.set(&samples(src_len, 1000));
        let mut expected = dst.clone();
        let alpha = T::scale(3);
        for (d, s) in offsets {
            for i in 0..run {
                let d = dst_first.wrapping_add_signed(d) + i * size_of::<T>();
                let s = src_first.wrapping_add_signed(s) + i * size_of::<T>();
                let old: T = bytemuck::pod_read_unaligned(&expected.inside()[d..d + size_of::<T>()]);
                let sum = old.plus(bytemuck::pod_read_unaligned::<T>(&src.inside()[s..s + size_of::<T>()]).scaled(alpha));
                expected.inside()[d..d + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&sum));
            }
        }
        // SAFETY: as in `copies`.
        unsafe {
            let (dst, src) = (dst.start().add(dst_first).cast::<T>(), src.start().add(src_first).cast::<T>());
            accumulate::<M, T>(dst, src, levels, run, alpha);
        }
        assert!(dst.with_guards() == expected.with_guards(), "{levels:?}, runs of {run}, offset {offset}");
    }

    fn accumulates_runs_of<M: Machine, T: Sample>() {
        let width = size_of::<T>().cast_signed();
        for run in (0_usize..40).chain([63, 64, 65, 127, 600]) {
            let r = run.cast_signed() * width;
            for offset in [0, 8, 3] {
                accumulates::<M, T>(&[], run, offset);
                accumulates::<M, T>(&[Stride { count: 5, dst: 2 * r + 3 * width, src: r }], run, offset);
                accumulates::<M, T>(&[Stride { count: 5, dst: r, src: -r - width }], run, offset);
            }
            let outer = Stride { count: 3, dst: -11 * r, src: 3 * width };
            accumulates::<M, T>(&[outer, Stride { count: 4, dst: 2 * r, src: r }], run, 0);
            accumulates::<M, T>(&[outer, Stride { count: 4, dst: r, src: r }], run, 0);
        }
    }

    fn accumulates_runs<M: Machine>() {
        accumulates_runs_of::<M, f64>();
        accumulates_runs_of::<M, f32>();
        accumulates_runs_of::<M, i32>();
        accumulates_runs_of::<M, Triple>();
    }

    on_every_machine!(every_run_length, levels_of_any_number_and_sign, more_than_the_streaming_threshold, accumulates_runs);
}
