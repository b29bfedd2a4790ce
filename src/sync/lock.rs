//! Locks, distributed over the members.

use std::{cell::Cell, panic::Location};

use super::{Group, Op, SharedWords};
use crate::{
    calls::located,
    comm::{AtomicOp, engine::Waiter},
    error::{Error, Result},
};

const FREE: u64 = 0;
/// Locked. The holder's rank is added, so that a waiter can name the holder.
const HELD: u64 = 1;

/// A set of locks of a group. Lock `k` is stored at member `k mod size`. A lock excludes only holders of the same lock.
///
/// # Examples
/// ```
/// use global_arrays::{Launch, Locks};
/// # fn main() -> Result<(), global_arrays::Error> {
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let locks = Locks::with_count(job, 8)?;
///     let guard = locks.lock(3)?;
///     // read, change, write what lock 3 guards
///     guard.unlock()
/// })
/// # }
/// ```
#[doc(alias = "GA_Destroy_mutexes")]
#[derive(Debug)]
pub struct Locks {
    words: SharedWords,
    count: usize,
    /// Where the program created them, to name these locks in messages.
    made_at: &'static Location<'static>,
}

/// A held lock. Dropping it releases the lock. The next holder sees what this one wrote.
#[derive(Debug)]
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard<'a> {
    locks: &'a Locks,
    index: usize,
    held: bool,
}

struct Locking<'a> {
    locks: &'a Locks,
    index: usize,
    /// What its word held when it was last looked at.
    seen: Cell<u64>,
}

impl Locking<'_> {
    fn holder(&self) -> Option<usize> {
        self.seen.get().checked_sub(HELD).map(|rank| rank as usize)
    }
}

impl Waiter for Locking<'_> {
    fn operation(&self) -> String {
        self.locks.name(self.index)
    }
    fn missing(&self) -> String {
        self.holder().map_or("the lock".into(), |rank| format!("its release by rank {rank}"))
    }

    fn awaits(&self) -> Option<usize> {
        self.holder()
    }

    fn object(&self) -> String {
        let (name, rank) = (self.operation(), self.locks.words.group().inner.engine().rank());
        match self.holder() {
            Some(holder) if holder == rank => format!("{name}, which it holds itself"),
            Some(holder) => format!("{name}, which rank {holder} holds"),
            None => name,
        }
    }

    fn place(&self, rank: usize) -> String {
        self.locks.words.group().place(rank)
    }

    fn hopeless(&self) -> Option<Error> {
        // Only its holder can release it: another thread of this rank, if this rank holds it.
        let group = self.locks.words.group();
        let holder = self.holder().filter(|&holder| group.has_ended(holder))?;
        let (rank, operation) = (group.inner.engine().rank(), self.operation());
        Some(Error::Deadlock {
            rank,
            operation: operation.into(),
            cause: format!("rank {holder} has ended and did not release it"),
        })
    }
}

impl Locks {
    /// Creates one free lock, number 0. Collective.
    ///
    /// # Errors
    /// Too little memory; members in different collectives; the end of the job.
    #[track_caller]
    pub fn new(group: impl AsRef<Group>) -> Result<Self> {
        Self::with_count(group, 1)
    }

    /// Creates `count` free locks, numbered from 0. Collective.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    #[doc(alias = "GA_Create_mutexes")]
    #[track_caller]
    pub fn with_count(group: impl AsRef<Group>, count: usize) -> Result<Self> {
        let made_at = Location::caller();
        located(move || {
            let group = group.as_ref();
            Ok(Locks { words: SharedWords::create(group, count.div_ceil(group.size()), "locks")?, count, made_at })
        })
    }

    /// Which lock of which ones, for people.
    fn name(&self, lock: usize) -> String {
        format!("lock {lock} of {} (made at {}:{})", self.count, self.made_at.file(), self.made_at.line())
    }

    /// Number of locks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the set has no locks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn place(&self, lock: usize) -> (usize, usize) {
        let size = self.words.group().size();
        (lock % size, lock / size)
    }

    /// Waits until the lock is free, and takes it. One-sided; not fair and not recursive. Another thread of the same rank waits like
    /// another rank.
    ///
    /// # Errors
    /// A lock that does not exist; a holder that has ended; a deadlock; the end of the job.
    #[doc(alias = "GA_Lock")]
    #[track_caller]
    pub fn lock(&self, lock: usize) -> Result<LockGuard<'_>> {
        located(move || {
            let engine = self.words.group().inner.engine();
            let waiter = Locking { locks: self, index: lock, seen: Cell::new(FREE) };
            let take = || {
                let seen = self.take(lock);
                waiter.seen.set(*seen.as_ref().unwrap_or(&FREE));
                // An error ends the wait too.
                (!seen.as_ref().is_ok_and(|&seen| seen != FREE)).then(|| seen.map(|_| ()))
            };
            engine.take_turns(&waiter, take)??;
            Ok(LockGuard { locks: self, index: lock, held: true })
        })
    }

    /// Takes the lock if it is free; otherwise returns `None`. One-sided.
    ///
    /// # Errors
    /// A lock that does not exist; the end of the job.
    #[track_caller]
    pub fn try_lock(&self, lock: usize) -> Result<Option<LockGuard<'_>>> {
        located(move || {
            // Made only when taken: a guard that is dropped releases the lock, whoever holds it.
            Ok((self.take(lock)? == FREE).then(|| LockGuard { locks: self, index: lock, held: true }))
        })
    }

    /// Takes the lock if its word, which is the answer, was free.
    fn take(&self, lock: usize) -> Result<u64> {
        if lock >= self.count {
            return Err(Error::argument("lock", format_args!("lock {lock} of {}", self.count)));
        }
        let (member, index) = self.place(lock);
        let what = || format!("could not learn whether it holds {}", self.name(lock));
        self.words.atomic_on_lock(member, index, AtomicOp::CompareSwap, (self.holder(), FREE), &what)
    }

    /// What a lock's word is while this rank holds it.
    fn holder(&self) -> u64 {
        HELD + self.words.group().inner.engine().rank() as u64
    }

    fn release(&self, lock: usize) -> Result<()> {
        let fenced = self.words.group().fence_all(Op::Sync);
        let (member, index) = self.place(lock);
        let what = || format!("could not give back {}", self.name(lock));
        let old = self.words.atomic_on_lock(member, index, AtomicOp::CompareSwap, (FREE, self.holder()), &what)?;
        if old != self.holder() {
            self.words.group().inner.engine().conduit().end(&format!("{}: its word was {old}", what()));
        }
        fenced
    }
}

impl LockGuard<'_> {
    /// Fences everything that this rank wrote, then releases the lock. One-sided.
    ///
    /// # Errors
    /// A transfer that failed; the end of the job.
    #[doc(alias = "GA_Unlock")]
    #[track_caller]
    pub fn unlock(mut self) -> Result<()> {
        located(|| {
            self.held = false;
            self.locks.release(self.index)
        })
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
