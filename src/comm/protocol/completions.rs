//! Which works of a connection ask for a completion, and which works a completion ends.
//!
//! Works complete in order, so a completion ends all works before it. It costs more than a short work, so most short works in a row are
//! *silent*: they ask for none. A *mark*, which the driver posts behind silent works when it wants their end, asks for one. Works that the
//! driver keeps have *handles*. The completion of a work without one lets no handle go.
//!
//! ```text
//!  event                                  | silent  | and
//!  ---------------------------------------+---------+-----------------------------------------------------
//!  a work is posted that may be silent:   |         |
//!    others are open, SILENT in a row not | + 1     | asks for nothing
//!    else                                 | 0       | asks for a completion
//!  any other work with a handle is posted | 0       | asks for a completion
//!  a work without a handle is posted      |         | asks for a completion
//!  the end of silent works is wanted:     |         |
//!         no mark is under way            | 0       | a mark is to be posted
//!         one is under way                |         | nothing
//!  work n is reported                     |         | all up to n are completed; if n has a handle, these are let go
//!  the connection is over                 | 0       | all are completed, and no mark is under way
//! ```

/// The most works in a row that ask for nothing.
const SILENT: u32 = 15;

/// The works of a connection, over all connections with a peer. `H` is what the driver knows a work by.
#[derive(Debug)]
pub(in crate::comm) struct Completions<H> {
    /// Works that were posted, and those of them that are known to be completed: up to the last one that was reported.
    posted: u64,
    completed: u64,
    /// The works at the end that ask for nothing, and the handle of the last.
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

    /// A work is about to be posted that may be silent. Returns true if it asks for nothing.
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

    /// A work with a handle is about to be posted that asks for a completion.
    #[inline]
    pub(in crate::comm) fn asks(&mut self) {
        self.silent = 0;
    }

    /// A work was posted. Returns its number.
    #[inline]
    pub(in crate::comm) fn posts(&mut self) -> u64 {
        self.posted += 1;
        self.posted
    }

    /// The end of the silent works is wanted. Returns true if a mark is to be posted behind the [last](Self::last) of them.
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

    /// The work with this number is reported, and so the end of all before it.
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
    #[derive(Clone, Copy)]
    struct Work {
        number: u64,
        asks: bool,
        what: What,
    }

    #[derive(Clone, Copy)]
    enum What {
        Handle(u64),
        Aside,
        Mark,
    }

    /// A driver, its adapter, and the handles that were not let go, oldest first.
    #[derive(Default)]
    struct Driver {
        completions: Completions<u64>,
        works: VecDeque<Work>,
        handles: VecDeque<u64>,
        posted: u64,
    }

    impl Driver {
        /// Posts a work. Returns true if it asks for a completion.
        fn post(&mut self, may_be_silent: bool) -> bool {
            self.posted += 1;
            let handle = self.posted;
            let asks = !may_be_silent || !self.completions.is_silent(handle);
            if !may_be_silent {
                self.completions.asks();
            }
            self.handles.push_back(handle);
            self.works.push_back(Work { number: self.completions.posts(), asks, what: What::Handle(handle) });
            asks
        }

        fn post_aside(&mut self) {
            self.works.push_back(Work { number: self.completions.posts(), asks: true, what: What::Aside });
        }

        fn mark(&mut self) -> bool {
            let wants = self.completions.wants_mark();
            if wants {
                self.completions.marks();
                self.works.push_back(Work { number: self.completions.posted, asks: true, what: What::Mark });
            }
            wants
        }

        /// The adapter does works up to the first one that asks, which it reports.
        fn report(&mut self) {
            let asks = self.works.iter().position(|work| work.asks);
            let Some(Work { number, what, .. }) = self.works.drain(..asks.map_or(0, |at| at + 1)).next_back() else { return };
            let done = match what {
                What::Handle(handle) => handle,
                What::Aside => 0,
                What::Mark => {
                    let mark = self.completions.mark_ends().expect("a mark is under way");
                    assert_eq!(mark.number, number);
                    mark.last
                }
            };
            self.handles.retain(|&handle| handle > done);
            self.completions.completes(number);
        }

        /// The connection is over: the driver lets go of all.
        fn is_over(&mut self) {
            self.works.clear();
            self.handles.clear();
            self.completions.is_over();
        }
    }

    /// In whatever order works and marks are posted and reported: when marks have been posted until none is wanted, all handles
    /// are let go. At most [`SILENT`] works in a row ask for nothing.
    #[test]
    fn every_handle_is_let_go() {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let mut driver = Driver::default();
            let (mut left, mut in_a_row) = (random.below(120), 0);
            loop {
                match random.below(16) {
                    0 => {
                        in_a_row = if driver.mark() { 0 } else { in_a_row };
                    }
                    1 => driver.post_aside(),
                    2 if random.one_in(8) => {
                        driver.is_over();
                        in_a_row = 0;
                    }
                    3..12 if left > 0 => {
                        left -= 1;
                        let asks = driver.post(!random.one_in(20));
                        in_a_row = if asks { 0 } else { in_a_row + 1 };
                        assert!(in_a_row <= SILENT, "seed {seed}: {in_a_row} works ask for nothing");
                    }
                    _ => driver.report(),
                }
                assert!(driver.handles.is_empty() || driver.completions.is_open(), "seed {seed}: a handle is forgotten");
                if left == 0 && !driver.works.iter().any(|work| work.asks) && !driver.mark() {
                    break;
                }
            }
            assert!(driver.handles.is_empty(), "seed {seed}: {:?} stay", driver.handles);
            assert!(!driver.completions.is_open(), "seed {seed}: {:?}", driver.completions);
        }
    }

    #[test]
    fn a_work_without_a_handle_leaves_silent_works_silent() {
        let mut driver = Driver::default();
        assert_eq!([true, true, true].map(|silent| driver.post(silent)), [true, false, false]);
        driver.post_aside();
        driver.report();
        driver.report();
        assert_eq!(driver.handles, [2, 3]);
        assert!(driver.completions.is_open() && driver.mark());
        driver.report();
        assert!(driver.handles.is_empty() && !driver.completions.is_open());
    }

    /// After three short works in a row, of which the last two are silent.
    fn three_short_works() -> Completions<u64> {
        let mut completions = Completions::default();
        for work in 0..3 {
            completions.is_silent(work);
            completions.posts();
        }
        completions
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
        let mut completions = three_short_works();
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
        let mut completions = three_short_works();
        assert!(completions.wants_mark());
        completions.marks();
        completions.is_over();
        assert!(!completions.is_open());
        assert_eq!((completions.wants_mark(), completions.mark_ends()), (false, None));
        assert!(!completions.is_silent(9), "the first of the next connection asks");
    }
}
