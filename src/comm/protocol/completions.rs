//! Which works of a connection ask for a completion, and which works a completion is the end of.
//!
//! Works of a connection complete in their order, so a completion is the end of all works before it. A completion costs more than a short work.
//! So of short works in a row most are *silent*: the first asks for a completion, for nothing else is open then, and of those behind it every
//! [`SILENT`]+1-st. Who wants to know the end of the last ones posts a *mark* behind them, which asks. One mark is under way at a time; works that
//! became silent behind it have the next one.
//!
//! ```text
//!  event                                  | silent  | and
//!  ---------------------------------------+---------+-----------------------------------------------------
//!  a work is posted that may be silent:   |         |
//!    others are open, SILENT in a row not | + 1     | asks for nothing
//!    else                                 | 0       | asks for a completion
//!  any other work is posted               | 0       | asks for a completion
//!  somebody asks for the end of silent    | 0       | a mark, if none is under way
//!  works                                  |         |
//!  work n is reported                     |         | all up to n are completed
//!  the connection is over                 | 0       | all are completed, and no mark is under way
//! ```

/// Works in a row that ask for nothing.
const SILENT: u32 = 15;

/// The works of a connection, over all connections with a peer. `H` is what the driver knows a work by.
#[derive(Clone, Debug)]
pub(in crate::comm) struct Completions<H> {
    /// Works that were posted, and those of them that are known to be completed: up to the last one that was reported.
    posted: u64,
    completed: u64,
    /// So many at the end ask for nothing, the last of them by its handle.
    silent: u32,
    last: Option<H>,
    /// The mark that is under way: the last silent work before it.
    mark: Option<Mark<H>>,
}

/// The end of silent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) struct Mark<H> {
    /// The last of them.
    pub(in crate::comm) last: H,
    /// The number of the mark among the works that were posted.
    pub(in crate::comm) number: u64,
}

impl<H> Default for Completions<H> {
    fn default() -> Self {
        Completions { posted: 0, completed: 0, silent: 0, last: None, mark: None }
    }
}

impl<H: Copy> Completions<H> {
    /// Works may be under way.
    pub(in crate::comm) fn is_open(&self) -> bool {
        self.completed < self.posted || self.silent > 0
    }

    /// A work is about to be posted that may be silent. Whether it asks for nothing.
    #[inline]
    pub(in crate::comm) fn is_silent(&mut self, work: H) -> bool {
        let is_silent = self.is_open() && self.silent < SILENT;
        if is_silent {
            (self.silent, self.last) = (self.silent + 1, Some(work));
        } else {
            self.silent = 0;
        }
        is_silent
    }

    /// A work is about to be posted that asks for a completion.
    #[inline]
    pub(in crate::comm) fn asks(&mut self) {
        self.silent = 0;
    }

    /// A work was posted. Its number.
    #[inline]
    pub(in crate::comm) fn posts(&mut self) -> u64 {
        self.posted += 1;
        self.posted
    }

    /// The end of the silent works is wanted: whether a mark is to be posted behind the [last](Self::last) of them.
    pub(in crate::comm) fn wants_mark(&mut self) -> bool {
        let wants = self.silent > 0 && self.mark.is_none();
        if wants {
            self.silent = 0;
        }
        wants
    }

    /// The last silent work.
    pub(in crate::comm) fn last(&self) -> Option<H> {
        self.last
    }

    /// A mark was posted.
    pub(in crate::comm) fn marks(&mut self) {
        let number = self.posts();
        self.mark = self.last.map(|last| Mark { last, number });
    }

    /// The mark that was under way is reported.
    pub(in crate::comm) fn mark_ends(&mut self) -> Option<Mark<H>> {
        self.mark.take()
    }

    /// The work of a number is reported, and so the end of all before it.
    #[inline]
    pub(in crate::comm) fn completes(&mut self, number: u64) {
        self.completed = self.completed.max(number);
    }

    /// The connection is over, and nothing of it is reported any more.
    pub(in crate::comm) fn is_over(&mut self) {
        (self.completed, self.silent, self.mark) = (self.posted, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::comm::protocol::simulation::{Random, SEEDS};

    /// A work that the adapter has.
    struct Work {
        number: u64,
        asks: bool,
        is_mark: bool,
    }

    fn post(completions: &mut Completions<u64>, works: &mut VecDeque<Work>, may_be_silent: bool) -> bool {
        let handle = completions.posted + 1;
        let asks = if may_be_silent {
            !completions.is_silent(handle)
        } else {
            completions.asks();
            true
        };
        let number = completions.posts();
        assert_eq!(number, handle);
        works.push_back(Work { number, asks, is_mark: false });
        asks
    }

    fn mark(completions: &mut Completions<u64>, works: &mut VecDeque<Work>) -> bool {
        let wants = completions.wants_mark();
        if wants {
            completions.marks();
            works.push_back(Work { number: completions.posted, asks: true, is_mark: true });
        }
        wants
    }

    /// In whatever order works and marks are posted and reported: when marks have been posted until none is wanted, the end of all works is known.
    /// Never do more than [`SILENT`] works in a row ask for nothing.
    #[test]
    fn the_end_of_every_work_becomes_known() {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let (mut completions, mut works) = (Completions::default(), VecDeque::new());
            let mut done = 0;
            let (mut left, mut in_a_row) = (random.below(120), 0);
            loop {
                if left > 0 && !random.one_in(4) {
                    left -= 1;
                    let asks = post(&mut completions, &mut works, !random.one_in(20));
                    in_a_row = if asks { 0 } else { in_a_row + 1 };
                    assert!(in_a_row <= SILENT, "seed {seed}: {in_a_row} works ask for nothing");
                    continue;
                }
                if random.one_in(6) && mark(&mut completions, &mut works) {
                    in_a_row = 0;
                    continue;
                }
                // The adapter does some, and reports the first that asks.
                while let Some(Work { number, asks, is_mark }) = works.pop_front() {
                    done = number;
                    if is_mark {
                        let mark = completions.mark_ends().expect("a mark is under way");
                        assert!(mark.number == number && mark.last < number, "seed {seed}");
                    }
                    if asks {
                        completions.completes(number);
                        break;
                    }
                }
                assert!(completions.completed <= done, "seed {seed}: {} of {done} reported", completions.completed);
                if left == 0 && works.is_empty() && !mark(&mut completions, &mut works) {
                    break;
                }
            }
            assert!(!completions.is_open(), "seed {seed}: {completions:?}");
        }
    }

    #[test]
    fn the_first_and_every_sixteenth_short_work_asks() {
        let mut completions = Completions::<u64>::default();
        let mut asks = Vec::new();
        for work in 0..40 {
            asks.extend((!completions.is_silent(work)).then_some(work));
            completions.posts();
        }
        assert_eq!(asks, [0, 16, 32]);
    }

    #[test]
    fn a_work_alone_asks_and_needs_no_mark() {
        let mut completions = Completions::default();
        for work in 0..3_u64 {
            assert!(!completions.is_silent(work));
            let number = completions.posts();
            assert!(!completions.wants_mark() && completions.is_open());
            completions.completes(number);
            assert!(!completions.is_open());
        }
    }

    #[test]
    fn works_behind_a_mark_have_the_next_one() {
        let mut completions = Completions::default();
        for work in 0..3_u64 {
            completions.is_silent(work);
            completions.posts();
        }
        assert!(completions.wants_mark());
        completions.marks();
        completions.is_silent(3);
        completions.posts();
        assert!(!completions.wants_mark(), "one is under way");
        assert_eq!(completions.mark_ends(), Some(Mark { last: 2, number: 4 }));
        completions.completes(4);
        assert!(completions.is_open());
        assert!(completions.wants_mark());
        assert_eq!(completions.last(), Some(3));
    }

    #[test]
    fn nothing_is_open_when_a_connection_is_over() {
        let mut completions = Completions::default();
        for work in 0..3_u64 {
            completions.is_silent(work);
            completions.posts();
        }
        assert!(completions.wants_mark());
        completions.marks();
        completions.is_over();
        assert!(!completions.is_open());
        assert_eq!((completions.wants_mark(), completions.mark_ends()), (false, None));
        assert!(!completions.is_silent(9), "the first of the next connection asks");
    }
}
