//! Point-to-point notification: data first, then the signal.

use super::{Group, SharedWords};
use crate::{
    comm::engine::Waiter,
    error::{Error, Result},
};

/// A count at each member that others raise and the member waits on.
///
/// With [`GlobalArray::put_signal`](crate::GlobalArray::put_signal) the data are visible before the signal. Any number of ranks may
/// raise the same signal; who must know which of them did makes one for each sender.
#[derive(Debug)]
pub struct Signal {
    words: SharedWords,
    count: usize,
}

struct Waiting<'a>(&'a Signal, usize, u32);

impl Waiter for Waiting<'_> {
    fn operation(&self) -> String {
        format!("signal {} (at {}, waiting for {})", self.1, self.0.words.own_word(self.1).load(), self.2)
    }
    fn missing(&self) -> String {
        "whoever raises it".into()
    }

    fn awaits_anybody(&self) -> bool {
        true
    }

    fn hopeless(&self) -> Option<Error> {
        let group = self.0.words.group();
        group.is_left_alone().then(|| Error::Deadlock {
            rank: group.inner.engine().rank(),
            operation: self.operation(),
            cause: "all other ranks have ended".into(),
        })
    }

    fn place(&self, rank: usize) -> String {
        self.0.words.group().place(rank)
    }
}

impl Signal {
    /// One signal at each member, at 0. Collective.
    ///
    /// # Errors
    /// Memory; members in different collectives; the end of the job.
    pub fn new(group: impl AsRef<Group>) -> Result<Self> {
        Self::several(group, 1)
    }

    /// `count` signals at each member, numbered from 0. Collective.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn several(group: impl AsRef<Group>, count: usize) -> Result<Self> {
        Ok(Signal { words: SharedWords::create(group.as_ref(), count, "signal")?, count })
    }

    /// Adds one to signal `index` of a member, after everything that this rank put there. One-sided.
    ///
    /// # Errors
    /// A member or signal that does not exist; a transfer that failed; the end of the job.
    pub fn notify(&self, index: usize, member: usize) -> Result<()> {
        let group = self.words.group();
        self.check(index)?;
        if member >= group.size() {
            return Err(Error::argument("notify", format_args!("member {member} of a group of {}", group.size())));
        }
        group.inner.engine().check("notify")?;
        self.words.raise(member, index)
    }

    /// Waits until signal `index` of this rank was raised `count` times in all. What the senders put before is visible.
    ///
    /// # Errors
    /// A signal that does not exist; all other ranks have ended, so that none of them can raise it; ranks that wait for each other;
    /// the end of the job.
    pub fn wait_at_least(&self, index: usize, count: u32) -> Result<()> {
        self.check(index)?;
        let engine = self.words.group().inner.engine();
        engine.check("signal")?;
        // Counts wrap: "at least" means less than half the circle ahead.
        let reached = |value: u32| value.wrapping_sub(count) as i32 >= 0;
        engine.wait_word(self.words.own_word(index), &Waiting(self, index, count), reached)
    }

    /// How often signal `index` of this rank was raised.
    ///
    /// # Errors
    /// A signal that does not exist; the end of the job.
    pub fn count(&self, index: usize) -> Result<u32> {
        self.check(index)?;
        let engine = self.words.group().inner.engine();
        engine.check("signal")?;
        engine.progress();
        Ok(self.words.own_word(index).load())
    }

    fn check(&self, index: usize) -> Result<()> {
        if index < self.count { Ok(()) } else { Err(Error::argument("signal", format_args!("signal {index} of {}", self.count))) }
    }
}
