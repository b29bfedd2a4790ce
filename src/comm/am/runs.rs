//! Runs of a strided block in one memory, and the same runs one behind the other in a frame. Integer arithmetic, no memory.
//!
//! A block may be cut between any two runs, so every frame is full. A range of runs is a few full boxes: on each level, the rest of the
//! first row, whole rows, the beginning of the last one.

use super::frame::MOST_LEVELS;
use crate::index::Loops;

/// Runs of equal length at regular distances in one memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    run: usize,
    levels: [(usize, isize); MOST_LEVELS],
    depth: usize,
}

/// A box of runs: where its first run is in the block's memory and in the packed one, and its levels, outermost first.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunBox<'a> {
    pub(super) at: isize,
    pub(super) packed: usize,
    /// Count and stride of the outermost level, then those inside it.
    outer: Option<(usize, isize)>,
    inner: &'a [(usize, isize)],
}

impl RunBox<'_> {
    /// Count, stride in the block's memory, stride in the packed one, outermost first.
    pub(super) fn levels(&self, run: usize) -> ([(usize, isize, isize); MOST_LEVELS], usize) {
        let mut levels = [(0, 0, 0); MOST_LEVELS];
        let depth = self.inner.len() + usize::from(self.outer.is_some());
        let mut packed = run as isize;
        for (to, &(count, stride)) in levels[..depth].iter_mut().rev().zip(self.inner.iter().rev().chain(&self.outer)) {
            *to = (count, stride, packed);
            packed *= count as isize;
        }
        (levels, depth)
    }
}

impl Runs {
    /// The two sides of a transfer, the owner's and the caller's. None if there are too many levels for a record.
    pub(super) fn both(loops: &Loops) -> Option<(Runs, Runs)> {
        let depth = loops.levels().len();
        if depth > MOST_LEVELS {
            return None;
        }
        let mut sides = [Runs { run: loops.run(), levels: [(0, 0); MOST_LEVELS], depth }; 2];
        for (at, level) in loops.levels().iter().enumerate() {
            sides[0].levels[at] = (level.count, level.remote);
            sides[1].levels[at] = (level.count, level.local);
        }
        Some((sides[0], sides[1]))
    }

    /// One run.
    pub(super) fn one(run: usize) -> Self {
        Runs { run, levels: [(0, 0); MOST_LEVELS], depth: 0 }
    }

    /// What a record says. None if it cannot be: too many levels, or empty ones.
    pub(super) fn of_record(run: usize, levels: impl Iterator<Item = (usize, isize)>) -> Option<Self> {
        let mut runs = Runs::one(run);
        for level in levels {
            *runs.levels.get_mut(runs.depth)? = level;
            runs.depth += 1;
        }
        (run > 0 && runs.levels().iter().all(|level| level.0 > 0)).then_some(runs)
    }

    /// Returns true if there is only one run.
    pub(super) fn is_one(&self) -> bool {
        self.depth == 0
    }

    /// Returns true if they follow one another without a gap, in their order.
    pub(super) fn is_packed(&self) -> bool {
        let mut next = self.run as isize;
        self.levels().iter().rev().all(|&(count, stride)| {
            let follows = stride == next;
            next = next.saturating_mul(count as isize);
            follows
        })
    }

    pub(super) fn run(&self) -> usize {
        self.run
    }

    pub(super) fn levels(&self) -> &[(usize, isize)] {
        &self.levels[..self.depth]
    }

    /// The number of runs. None if it overflows.
    pub(super) fn count(&self) -> Option<usize> {
        self.levels().iter().try_fold(1_usize, |all, level| all.checked_mul(level.0))
    }

    /// Where run `index` begins.
    pub(super) fn start(&self, mut index: usize) -> isize {
        let mut at = 0;
        for &(count, stride) in self.levels().iter().rev() {
            at += (index % count) as isize * stride;
            index /= count;
        }
        at
    }

    /// Bytes of all runs.
    pub(super) fn bytes(&self) -> Option<usize> {
        self.count()?.checked_mul(self.run)
    }

    /// The number of packed bytes from `at` on that go into `room` bytes: whole runs where they fit, else a part of one run that
    /// is a multiple of `unit`. None if not even that has room.
    pub(super) fn piece(&self, at: usize, rest: usize, room: usize, unit: usize) -> Option<usize> {
        let within = at % self.run;
        let len = if within == 0 && self.run <= room && self.depth > 0 {
            room / self.run * self.run
        } else {
            (self.run - within).min(room / unit * unit)
        };
        Some(len.min(rest)).filter(|&len| len > 0)
    }

    /// Returns true if packed bytes are whole runs, or a part of one.
    pub(super) fn is_part(&self, at: usize, len: usize) -> bool {
        let run = self.run;
        len == 0 || run > 0 && (at.is_multiple_of(run) && len.is_multiple_of(run) || at % run + len <= run)
    }

    /// Returns true if all runs lie in `0..len` when the first begins at `at`. Nothing that arrived is touched before this check.
    pub(super) fn lie_inside(&self, at: usize, len: usize) -> bool {
        let (mut low, mut high) = (at as i128, at as i128 + self.run as i128);
        for &(count, stride) in self.levels() {
            let reach = (count as i128 - 1) * stride as i128;
            if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
        }
        low >= 0 && high <= len as i128
    }

    /// The boxes of `count` runs from run `first` on.
    pub(super) fn boxes(&self, first: usize, count: usize, mut each: impl FnMut(&RunBox<'_>)) {
        if count > 0 {
            self.cut(0, first, count, 0, 0, &mut each);
        }
    }

    fn cut(&self, depth: usize, first: usize, count: usize, at: isize, packed: usize, each: &mut impl FnMut(&RunBox<'_>)) {
        let levels = &self.levels()[depth..];
        let Some((&(_, stride), inner)) = levels.split_first() else {
            return each(&RunBox { at, packed, outer: None, inner: levels });
        };
        let row: usize = inner.iter().map(|level| level.0).product();
        let (mut first, mut count, mut at, mut packed) = (first % row, count, at + (first / row) as isize * stride, packed);
        if first > 0 {
            let head = count.min(row - first);
            self.cut(depth + 1, first, head, at, packed, each);
            (first, count, at, packed) = (0, count - head, at + stride, packed + head * self.run);
        }
        let rows = count / row;
        if rows > 0 {
            each(&RunBox { at, packed, outer: Some((rows, stride)), inner });
            (count, at, packed) = (count - rows * row, at + rows as isize * stride, packed + rows * row * self.run);
        }
        if count > 0 {
            self.cut(depth + 1, first, count, at, packed, each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(levels: &[(usize, isize)], at: isize, all: &mut Vec<isize>) {
        match levels {
            [] => all.push(at),
            [(count, stride), inner @ ..] => (0..*count).for_each(|k| walk(inner, at + k as isize * stride, all)),
        }
    }

    #[test]
    fn packed_runs_follow_one_another() {
        let runs = |levels: &[(usize, isize)]| Runs::of_record(8, levels.iter().copied()).unwrap().is_packed();
        assert!(runs(&[]) && runs(&[(3, 8)]) && runs(&[(2, 24), (3, 8)]));
        assert!(!runs(&[(3, 16)]) && !runs(&[(3, -8)]) && !runs(&[(2, 32), (3, 8)]) && !runs(&[(3, 8), (2, 24)]));
    }

    #[test]
    fn boxes_are_the_runs_of_the_range() {
        let runs = Runs::of_record(3, [(4, 1000), (3, -100), (5, 7)].into_iter()).unwrap();
        let mut all = Vec::new();
        walk(runs.levels(), 0, &mut all);
        for first in 0..all.len() {
            for count in 0..=all.len() - first {
                let mut got = Vec::new();
                runs.boxes(first, count, |part| {
                    let (levels, depth) = part.levels(3);
                    assert_eq!(part.packed, got.len() * 3);
                    let sides = |pick: fn(&(usize, isize, isize)) -> isize| {
                        let mut all = Vec::new();
                        let levels: Vec<_> = levels[..depth].iter().map(|level| (level.0, pick(level))).collect();
                        walk(&levels, 0, &mut all);
                        all
                    };
                    let packed: Vec<_> = (0..).step_by(3).take(sides(|l| l.1).len()).collect();
                    assert_eq!(sides(|level| level.2), packed);
                    got.extend(sides(|level| level.1).into_iter().map(|at| at + part.at));
                });
                assert_eq!(got, all[first..first + count]);
            }
        }
    }

    #[test]
    fn what_lies_outside_is_seen() {
        let runs = Runs::of_record(8, [(3, -16), (2, 100)].into_iter()).unwrap();
        assert!(runs.lie_inside(32, 140) && !runs.lie_inside(31, 140) && !runs.lie_inside(32, 139));
        let huge = Runs::of_record(8, [(usize::MAX, isize::MAX), (usize::MAX, isize::MAX)].into_iter());
        assert!(huge.is_some_and(|huge| huge.count().is_none() && !huge.lie_inside(0, usize::MAX)));
        assert!(Runs::of_record(8, [(0, 1)].into_iter()).is_none());
        assert!(Runs::of_record(8, std::iter::repeat_n((2, 1), 9)).is_none());
    }
}
