//! Point-to-point notification: data first, then the signal.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Group, SharedWords};
use crate::{
    calls::located,
    comm::engine::{Engine, Label, Waiter},
    error::{Error, Result},
};

/// Counts at each member. Other ranks raise a count, and the member waits for it.
///
/// With [`GlobalArray::put_signal`](crate::GlobalArray::put_signal) the data are visible before the signal. Any number of ranks may
/// raise the same signal. To identify the sender, use one signal per sender.
///
/// # Limits
/// A member must look at its signal, with [`wait_at_least`](Self::wait_at_least) or [`count`](Self::count), before others have raised it
/// 2³² times more. The count then has no other limit than a `usize`; if it does not look, the count misses a multiple of 2³².
///
/// # Examples
/// ```
/// use global_arrays::prelude::*;
/// # fn main() -> Result<(), Error> {
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let a = GlobalArray::<f64, Ix1>::builder(job, [job.size()]).zeros().create()?;
///     let signal = Signal::new(job)?;
///     let next = (job.rank() + 1) % job.size();
///     a.put_signal([next..next + 1], &Array1::from_elem(1, 7.0), signal.at(next, 0))?;
///     signal.wait_at_least(0, 1)?;
///     assert_eq!(a.load([job.rank()])?, 7.0);
///     job.sync()
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct Signal {
    words: SharedWords,
    /// Of each signal of this member, the count when it was last looked at.
    looked: Box<[AtomicUsize]>,
}

/// One signal of one member; returned by [`Signal::at`].
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is raised before `notify`"]
pub struct SignalTarget<'a> {
    signal: &'a Signal,
    member: usize,
    index: usize,
}

impl SignalTarget<'_> {
    /// Adds one to the signal. Everything that this rank put to the member before is visible there before the signal. One-sided.
    ///
    /// # Errors
    /// A member or signal that does not exist; a transfer that failed; the end of the job.
    #[track_caller]
    pub fn notify(self) -> Result<()> {
        located(move || {
            self.check("notify")?;
            self.signal.words.group().inner.engine().check("notify")?;
            self.signal.words.raise(self.member, self.index)
        })
    }

    /// Makes everything that this rank put visible, to whatever member.
    pub(crate) fn fence(self) -> Result<()> {
        let label = Label::new("(all arrays)", "put_signal");
        self.signal.words.group().inner.engine().fence(None, &label)
    }

    /// The byte of its word in the segment of a rank of the job of `engine`, if it is a signal of that rank.
    pub(crate) fn word_of(self, engine: &Engine, rank: usize) -> Option<usize> {
        let words = &self.signal.words;
        let inner = &words.group().inner;
        (std::ptr::eq(inner.engine(), engine) && inner.rank_of(self.member) == rank).then(|| words.byte(self.index))
    }

    /// Counts it as raised, by an operation that carries data too.
    pub(crate) fn count(self) {
        self.signal.words.count_signal(self.member);
    }

    /// Whether there are such a member and such a signal.
    pub(crate) fn check(self, operation: &'static str) -> Result<()> {
        self.signal.check(self.index)?;
        let size = self.signal.words.group().size();
        if self.member < size {
            return Ok(());
        }
        Err(Error::argument(operation, format_args!("member {} of a group of {size}", self.member)))
    }
}

struct Waiting<'a>(&'a Signal, usize, usize);

impl Waiter for Waiting<'_> {
    fn operation(&self) -> String {
        format!("signal {} (at {}, waiting for {})", self.1, self.0.total(self.1), self.2)
    }
    fn missing(&self) -> String {
        "whoever raises it".into()
    }

    fn object(&self) -> String {
        format!("signal {} to reach {}", self.1, self.2)
    }

    fn awaits_anybody(&self) -> bool {
        true
    }

    fn hopeless(&self) -> Option<Error> {
        let group = self.0.words.group();
        group.is_left_alone().then(|| Error::Deadlock {
            rank: group.inner.engine().rank(),
            operation: self.operation().into(),
            cause: "all other ranks have ended".into(),
        })
    }

    fn place(&self, rank: usize) -> String {
        self.0.words.group().place(rank)
    }
}

impl Signal {
    /// Creates one signal at each member, with count 0. Collective.
    ///
    /// # Errors
    /// Too little memory; members in different collectives; the end of the job.
    #[track_caller]
    pub fn new(group: impl AsRef<Group>) -> Result<Self> {
        Self::with_count(group, 1)
    }

    /// Creates `count` signals at each member, numbered from 0. Collective.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    #[track_caller]
    pub fn with_count(group: impl AsRef<Group>, count: usize) -> Result<Self> {
        located(move || {
            let words = SharedWords::create(group.as_ref(), count, "signal")?;
            Ok(Signal { words, looked: (0..count).map(|_| AtomicUsize::new(0)).collect() })
        })
    }

    /// Signal `index` of a member, as the target of [`GlobalArray::put_signal`](crate::GlobalArray::put_signal) or
    /// [`notify`](SignalTarget::notify).
    pub fn at(&self, member: usize, index: usize) -> SignalTarget<'_> {
        SignalTarget { signal: self, member, index }
    }

    /// Waits until signal `index` of this rank has been raised at least `count` times in total. Then everything that the senders put
    /// here before is visible. Not collective.
    ///
    /// # Errors
    /// A signal that does not exist; all other ranks have ended, so none of them can raise it; a deadlock; the end of the job.
    #[track_caller]
    pub fn wait_at_least(&self, index: usize, count: usize) -> Result<()> {
        located(move || {
            self.check(index)?;
            let engine = self.words.group().inner.engine();
            engine.check("signal")?;
            engine.wait_word(self.words.own_word(index), &Waiting(self, index, count), |_| self.total(index) >= count)
        })
    }

    /// The number of times that signal `index` of this rank has been raised. Local.
    ///
    /// # Errors
    /// A signal that does not exist; the end of the job.
    #[track_caller]
    pub fn count(&self, index: usize) -> Result<usize> {
        located(move || {
            self.check(index)?;
            let engine = self.words.group().inner.engine();
            engine.check("signal")?;
            engine.progress();
            Ok(self.total(index))
        })
    }

    /// The count of a signal of this rank. The word holds its low half and only grows, so it is as little ahead of the last look as can be.
    fn total(&self, index: usize) -> usize {
        // Acquire: another thread's look came before this load of the word, which is then no older than that look's.
        let before = self.looked[index].load(Ordering::Acquire);
        let more = self.words.own_word(index).load().wrapping_sub(before as u32);
        if more == 0 {
            return before;
        }
        let now = before + more as usize;
        self.looked[index].fetch_max(now, Ordering::AcqRel).max(now)
    }

    fn check(&self, index: usize) -> Result<()> {
        let count = self.looked.len();
        if index < count { Ok(()) } else { Err(Error::argument("signal", format_args!("signal {index} of {count}"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Launch;

    /// Counts on both sides of 2³¹ and of 2³², and some that 32 bits could not tell from a past one.
    #[test]
    fn a_count_is_exact_however_large() {
        let ended = Launch::new().ranks(2).network("threads").run(|job| {
            let signal = Signal::with_count(job, 2)?;
            if job.rank() == 1 {
                return Ok(());
            }
            let mut total = 0;
            for more in [0, 1, u32::MAX >> 1, 1, u32::MAX, 5, 3_000_000_000, u32::MAX, u32::MAX, 1 << 31] {
                signal.words.own_word(1).add(more);
                total += more as usize;
                signal.wait_at_least(1, total)?;
                signal.wait_at_least(1, 0)?;
                assert_eq!((signal.count(0)?, signal.count(1)?), (0, total));
            }
            // Nobody is left who could raise it.
            signal.wait_at_least(0, 3_000_000_000)
        });
        let error = ended.expect_err("a count that was not reached").to_string();
        assert!(error.contains("at 0, waiting for 3000000000") && error.contains("all other ranks have ended"), "{error}");
    }
}
