//! The plan of a strided transfer between two memories.

/// A strided transfer as nested loops over contiguous runs of bytes.
///
/// The two memories are called *remote* (the owner's) and *local* (the user's buffer). Offsets are in bytes from the element
/// at the first position of the patch in each. The plan has as few and as long runs as the two layouts allow: axes of one
/// element are dropped, axes that are contiguous in both memories are merged, and the innermost level becomes the run if
/// it has no gaps in either memory.
#[derive(Clone, Debug)]
pub struct Loops {
    run: usize,
    depth: usize,
    inline: [Level; Loops::INLINE],
    /// All levels, when there are more than fit inline; else empty, which allocates nothing.
    spilled: Vec<Level>,
}

/// One loop: `count` steps of `remote` and `local` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Number of steps.
    pub count: usize,
    /// Bytes from one step to the next in the owner's memory.
    pub remote: isize,
    /// Bytes from one step to the next in the user's buffer.
    pub local: isize,
}

impl Loops {
    const INLINE: usize = 8;

    /// Plans the transfer of `counts` elements with these strides, in elements of `element_bytes` bytes.
    ///
    /// # Panics
    /// If the three lists differ in length.
    #[inline]
    #[must_use]
    pub fn new(counts: &[usize], remote_strides: &[isize], local_strides: &[isize], element_bytes: usize) -> Self {
        assert_eq!(counts.len(), remote_strides.len(), "counts and remote strides differ in their number of axes");
        assert_eq!(counts.len(), local_strides.len(), "counts and local strides differ in their number of axes");
        let bytes = element_bytes as isize;
        let mut loops = Self { run: element_bytes, depth: 0, inline: [Level::default(); Self::INLINE], spilled: Vec::new() };
        if counts.contains(&0) {
            // One level of no steps.
            loops.depth = 1;
            return loops;
        }
        if counts.len() > Self::INLINE {
            loops.spilled = vec![Level::default(); counts.len()];
        }
        let levels = if loops.spilled.is_empty() { &mut loops.inline[..] } else { &mut loops.spilled[..] };
        let mut depth = 0;
        for ((&count, &remote), &local) in counts.iter().zip(remote_strides).zip(local_strides) {
            if count != 1 {
                insert(levels, depth, Level { count, remote: remote * bytes, local: local * bytes });
                depth += 1;
            }
        }
        depth = coalesce(levels, depth);
        if depth > 0 {
            let inner = levels[depth - 1];
            if inner.remote == bytes && inner.local == bytes {
                loops.run = inner.count * element_bytes;
                depth -= 1;
            }
        }
        loops.spilled.truncate(depth);
        loops.depth = depth;
        loops
    }

    /// The bytes of a transfer that is one run, with the last axis innermost in both memories. A plan costs several times more than to see that
    /// none is needed. `None` does not say that it is not one run: the axes may be in another order.
    #[inline]
    #[must_use]
    pub fn one_run(counts: &[usize], remote_strides: &[isize], local_strides: &[isize], element_bytes: usize) -> Option<usize> {
        let mut len = 1;
        for ((&count, &remote), &local) in counts.iter().zip(remote_strides).zip(local_strides).rev() {
            if count != 1 && (count == 0 || remote != len as isize || local != len as isize) {
                return None;
            }
            len *= count;
        }
        Some(len * element_bytes)
    }

    /// Bytes of one contiguous run.
    #[inline]
    #[must_use]
    pub fn run(&self) -> usize {
        self.run
    }

    /// The loops around the run, outermost first.
    #[inline]
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        if self.spilled.is_empty() { &self.inline[..self.depth] } else { &self.spilled }
    }

    /// Number of contiguous runs; 0 when there is nothing to transfer.
    #[inline]
    #[must_use]
    pub fn runs(&self) -> usize {
        self.levels().iter().map(|level| level.count).product()
    }

    /// Calls `f` with the byte offsets of each run in the remote and the local memory, in ascending remote order where strides
    /// are positive.
    #[inline]
    pub fn for_each_run(&self, mut f: impl FnMut(isize, isize)) {
        walk(self.levels(), 0, 0, &mut f);
    }
}

/// The two innermost levels are plain loops, so that recursion costs something only once for many runs.
fn walk<F: FnMut(isize, isize)>(levels: &[Level], mut remote: isize, mut local: isize, f: &mut F) {
    match levels {
        [] => f(remote, local),
        [inner] => row(inner, remote, local, f),
        [outer, inner] => {
            for _ in 0..outer.count {
                row(inner, remote, local, f);
                (remote, local) = (remote + outer.remote, local + outer.local);
            }
        }
        [outer, inner @ ..] => {
            for _ in 0..outer.count {
                walk(inner, remote, local, f);
                (remote, local) = (remote + outer.remote, local + outer.local);
            }
        }
    }
}

#[inline(always)]
fn row<F: FnMut(isize, isize)>(level: &Level, mut remote: isize, mut local: isize, f: &mut F) {
    for _ in 0..level.count {
        f(remote, local);
        (remote, local) = (remote + level.remote, local + level.local);
    }
}

/// Keeps `levels[..depth]` in descending order of strides, the remote one first: the owner's memory is read in its own order.
#[inline]
fn insert(levels: &mut [Level], depth: usize, level: Level) {
    let key = |level: &Level| (level.remote.unsigned_abs(), level.local.unsigned_abs());
    let mut place = depth;
    while place > 0 && key(&levels[place - 1]) < key(&level) {
        levels[place] = levels[place - 1];
        place -= 1;
    }
    levels[place] = level;
}

/// Joins an outer level whose step is the whole length of the next inner one in both memories. Answers the new depth.
#[inline]
fn coalesce(levels: &mut [Level], depth: usize) -> usize {
    let mut kept = 0;
    for next in 0..depth {
        let inner = levels[next];
        if kept > 0 {
            let outer = levels[kept - 1];
            let whole = inner.count as isize;
            if outer.remote == inner.remote * whole && outer.local == inner.local * whole {
                levels[kept - 1] = Level { count: outer.count * inner.count, ..inner };
                continue;
            }
        }
        levels[kept] = inner;
        kept += 1;
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every byte's pair of offsets, element by element.
    fn naive(counts: &[usize], remote: &[isize], local: &[isize], bytes: usize) -> Vec<(isize, isize)> {
        let mut pairs = vec![(0, 0)];
        for ((&count, &r), &l) in counts.iter().zip(remote).zip(local) {
            let (r, l) = (r * bytes as isize, l * bytes as isize);
            let steps = 0..count as isize;
            pairs = pairs.iter().flat_map(|&(a, b)| steps.clone().map(move |i| (a + i * r, b + i * l))).collect();
        }
        let each = 0..bytes as isize;
        let mut pairs: Vec<_> = pairs.iter().flat_map(|&(r, l)| each.clone().map(move |i| (r + i, l + i))).collect();
        pairs.sort_unstable();
        pairs
    }

    fn planned(loops: &Loops) -> Vec<(isize, isize)> {
        let mut pairs = Vec::new();
        let mut runs = 0;
        loops.for_each_run(|remote, local| {
            runs += 1;
            pairs.extend((0..loops.run() as isize).map(|i| (remote + i, local + i)));
        });
        assert_eq!(runs, loops.runs());
        pairs.sort_unstable();
        pairs
    }

    /// Strides of a dense array with these extents whose axes lie in memory in the given order.
    fn strides(extents: &[usize], order: &[usize], signs: &[bool]) -> Vec<isize> {
        let mut strides = vec![0; extents.len()];
        let mut stride = 1;
        for &axis in order {
            strides[axis] = if signs[axis] { -stride } else { stride };
            stride *= extents[axis] as isize;
        }
        strides
    }

    fn check(axes: usize, widest: usize) -> impl Strategy<Value = (Vec<usize>, Vec<isize>, Vec<isize>, usize)> {
        let counts = prop::collection::vec(prop_oneof![1 => Just(0), 6 => Just(1), 24 => 2..=widest], axes);
        let order = || Just((0..axes).collect::<Vec<_>>()).prop_shuffle();
        let signs = || prop_oneof![Just(vec![false; axes]), prop::collection::vec(any::<bool>(), axes)];
        let gaps = || prop_oneof![Just(vec![0; axes]), prop::collection::vec(0..2_usize, axes)];
        (counts, order(), order(), signs(), signs(), gaps(), gaps(), 1..9_usize).prop_map(|(counts, o, p, s, t, g, h, bytes)| {
            let widen = |gaps: &[usize]| counts.iter().zip(gaps).map(|(n, gap)| (n + gap).max(1)).collect::<Vec<_>>();
            let (remote, local) = (strides(&widen(&g), &o, &s), strides(&widen(&h), &p, &t));
            (counts, remote, local, bytes)
        })
    }

    proptest! {
        #[test]
        fn moves_what_the_elements_are(plan in (0..6_usize).prop_flat_map(|axes| check(axes, 4))) {
            let (counts, remote, local, bytes) = plan;
            let loops = Loops::new(&counts, &remote, &local, bytes);
            prop_assert_eq!(planned(&loops), naive(&counts, &remote, &local, bytes));
            prop_assert!(loops.levels().windows(2).all(|pair| pair[0].remote.abs() >= pair[1].remote.abs()));
            let one = Loops::one_run(&counts, &remote, &local, bytes);
            prop_assert!(one.is_none_or(|len| (loops.run(), loops.runs()) == (len, 1)), "{one:?}");
        }

        #[test]
        fn any_number_of_axes(plan in check(11, 2)) {
            let (counts, remote, local, bytes) = plan;
            let loops = Loops::new(&counts, &remote, &local, bytes);
            prop_assert_eq!(planned(&loops), naive(&counts, &remote, &local, bytes));
        }
    }

    #[test]
    fn contiguous_memory_is_one_run() {
        let loops = Loops::new(&[3, 4, 5], &[20, 5, 1], &[20, 5, 1], 8);
        assert_eq!((loops.run(), loops.runs(), loops.levels()), (480, 1, &[][..]));
        let one = |counts: &[usize], remote: &[isize], local: &[isize]| Loops::one_run(counts, remote, local, 8);
        assert_eq!(one(&[3, 4, 5], &[20, 5, 1], &[20, 5, 1]), Some(480));
        assert_eq!(one(&[1, 4, 1, 5], &[99, 5, -7, 1], &[0, 5, 3, 1]), Some(160));
        assert_eq!([one(&[], &[], &[]), one(&[1, 1], &[9, 9], &[-4, 0])], [Some(8); 2]);
        for (counts, remote, local) in [
            ([3, 5], [6, 1], [5, 1]),
            ([3, 5], [5, 1], [6, 1]),
            ([3, 5], [1, 3], [1, 3]),
            ([0, 5], [5, 1], [5, 1]),
            ([3, 0], [1, 1], [1, 1]),
        ] {
            assert_eq!(one(&counts, &remote, &local), None, "{counts:?} {remote:?} {local:?}");
        }
        let ten = [2; 10];
        let dense: Vec<isize> = (0..10).rev().map(|axis| 1 << axis).collect();
        assert_eq!(Loops::new(&ten, &dense, &dense, 8).run(), 8 << 10);
    }

    #[test]
    fn rows_of_a_wider_array() {
        let loops = Loops::new(&[3, 1, 5], &[100, 7, 1], &[5, 99, 1], 8);
        assert_eq!((loops.run(), loops.levels()), (40, &[Level { count: 3, remote: 800, local: 40 }][..]));
    }

    #[test]
    fn a_transpose_has_a_run_for_each_element() {
        let loops = Loops::new(&[3, 5], &[1, 3], &[5, 1], 8);
        let levels = [Level { count: 5, remote: 24, local: 8 }, Level { count: 3, remote: 8, local: 40 }];
        assert_eq!((loops.run(), loops.runs(), loops.levels()), (8, 15, &levels[..]));
    }

    #[test]
    fn nothing_is_no_run() {
        assert_eq!(Loops::new(&[3, 0], &[1, 3], &[5, 1], 8).runs(), 0);
        assert_eq!(Loops::new(&[0; 9], &[1; 9], &[1; 9], 8).runs(), 0);
        assert_eq!(Loops::new(&[], &[], &[], 8).runs(), 1);
    }
}
