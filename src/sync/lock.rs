//! Locks: really distinct ones, spread over the members.

use super::{Group, Op, SharedWords};
use crate::{
    comm::{AtomicOp, engine::Waiter},
    error::{Error, Result},
};

const FREE: u64 = 0;
/// Locked; the holder's rank is added, so that a waiter can say who has it.
const HELD: u64 = 1;
/// How long to let others go before looking at a lock again: its release wakes nobody.
const TURN: std::time::Duration = std::time::Duration::from_micros(20);

/// `n` locks of a group. Lock `k` lives at member `k mod size`; holding one excludes holders of the same one only.
///
/// # Examples
/// ```
/// use global_arrays::{Launch, Locks};
/// # fn main() -> Result<(), global_arrays::Error> {
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let locks = Locks::new(job, 8)?;
///     let guard = locks.lock(3)?;
///     // read, change, write what lock 3 guards
///     guard.unlock()
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct Locks {
    words: SharedWords,
    count: usize,
}

/// A held lock; released when dropped. What its holder wrote is visible to the next holder.
#[derive(Debug)]
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard<'a> {
    locks: &'a Locks,
    index: usize,
    held: bool,
}

struct Locking<'a>(&'a Locks, usize);

impl Waiter for Locking<'_> {
    fn operation(&self) -> String {
        format!("lock {}", self.1)
    }
    fn missing(&self) -> String {
        let (member, index) = self.0.place(self.1);
        match self.0.words.atomic(member, index, AtomicOp::Load, 0, 0) {
            Ok(FREE) | Err(_) => "the lock".into(),
            Ok(word) => format!("its release by rank {}", word - HELD),
        }
    }

    fn hopeless(&self) -> Option<String> {
        self.0.words.group().alone()
    }
}

impl Locks {
    /// Makes `count` free locks. Collective.
    ///
    /// # Errors
    /// Memory; members in different collectives; the end of the job.
    pub fn new(group: impl AsRef<Group>, count: usize) -> Result<Self> {
        let group = group.as_ref();
        Ok(Locks { words: SharedWords::create(group, count.div_ceil(group.size()), "locks")?, count })
    }

    /// Number of locks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn place(&self, lock: usize) -> (usize, usize) {
        let size = self.words.group().size();
        (lock % size, lock / size)
    }

    /// Waits until the lock is free and takes it. One-sided; not fair, and not to be taken twice by one rank.
    ///
    /// # Errors
    /// A lock that does not exist; the end of the job.
    pub fn lock(&self, lock: usize) -> Result<LockGuard<'_>> {
        let engine = self.words.group().inner.engine();
        let mut failed = None;
        engine
            .look_every(TURN, &Locking(self, lock), || match self.try_lock(lock) {
                Ok(Some(guard)) => Some(Some(guard)),
                Ok(None) => None,
                Err(error) => {
                    failed = Some(error);
                    Some(None)
                }
            })?
            .ok_or_else(|| failed.unwrap_or_else(|| engine.over("lock")))
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// A lock that does not exist; the end of the job.
    pub fn try_lock(&self, lock: usize) -> Result<Option<LockGuard<'_>>> {
        if lock >= self.count {
            return Err(Error::argument("lock", format_args!("lock {lock} of {}", self.count)));
        }
        let (member, index) = self.place(lock);
        let holder = HELD + self.words.group().inner.engine().rank() as u64;
        let what = || format!("could not learn whether it holds lock {lock}");
        let old = self.words.atomic_on_lock(member, index, AtomicOp::CompareSwap, (holder, FREE), &what)?;
        // Made only when taken: a guard that is dropped releases the lock, whoever holds it.
        Ok((old == FREE).then(|| LockGuard { locks: self, index: lock, held: true }))
    }

    fn release(&self, lock: usize) -> Result<()> {
        let fenced = self.words.group().fence_all(Op::Sync);
        let (member, index) = self.place(lock);
        let what = || format!("could not give back lock {lock}");
        self.words.atomic_on_lock(member, index, AtomicOp::Swap, (FREE, 0), &what)?;
        fenced
    }
}

impl LockGuard<'_> {
    /// Releases the lock after a fence of everything that this rank wrote.
    ///
    /// # Errors
    /// A transfer that failed; the end of the job.
    pub fn unlock(mut self) -> Result<()> {
        self.held = false;
        self.locks.release(self.index)
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        if self.held {
            // A transfer that failed is told by the next fence of who cares; a job that is over needs no lock.
            let _ = self.locks.release(self.index);
        }
    }
}
