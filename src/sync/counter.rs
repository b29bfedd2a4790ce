//! A shared counter with fetch-and-add, the usual way to hand out tasks.

use std::ops::Range;

use super::{Group, SharedWords};
use crate::{calls::located, comm::AtomicOp, error::Result};

/// A 64-bit counter that all members of a group share, starting at 0.
///
/// Each call is one atomic operation at the member that owns the counter (ARMCI-Gemini §III-B3).
///
/// # Examples
/// ```
/// use global_arrays::{Counter, Launch, ops};
/// # fn main() -> Result<(), global_arrays::Error> {
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let tasks = Counter::new(job)?;
///     let mut mine = 0;
///     for task in tasks.below(100) {
///         mine += task?; // no other rank gets this number
///     }
///     assert_eq!(job.all_reduce_one(mine, ops::sum)?, 99 * 100 / 2);
///     job.sync()
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct Counter {
    words: SharedWords,
    owner: usize,
}

impl Counter {
    /// A counter that member 0 owns. Collective.
    ///
    /// # Errors
    /// Too little memory; members in different collectives; the end of the job.
    #[track_caller]
    pub fn new(group: impl AsRef<Group>) -> Result<Self> {
        Self::with_owner(group, 0)
    }

    /// A counter that member `owner` of the group owns. Spread several counters over the members to avoid contention at one.
    /// Collective.
    ///
    /// # Errors
    /// Same as [`new`](Self::new); an owner that is not a member.
    #[doc(alias = "held_by")]
    #[track_caller]
    pub fn with_owner(group: impl AsRef<Group>, owner: usize) -> Result<Self> {
        located(move || {
            let group = group.as_ref();
            if owner >= group.size() {
                return Err(crate::Error::argument("counter", format_args!("member {owner} of a group of {}", group.size())));
            }
            Ok(Counter { words: SharedWords::create(group, 1, "counter")?, owner })
        })
    }

    /// Adds `increment` and returns the old value. One-sided, atomic, wrapping.
    ///
    /// # Errors
    /// The end of the job.
    ///
    /// # Source
    /// GA: `NGA_Read_inc`.
    #[doc(alias = "read_increment")]
    #[inline(always)]
    #[track_caller]
    pub fn fetch_add(&self, increment: usize) -> Result<usize> {
        self.words.fetch_add(self.owner, 0, increment as u64).map(|old| old as usize)
    }

    /// Takes the next number; `None` if it is not below `limit`. Each number goes to exactly one caller. One-sided and atomic.
    ///
    /// # Errors
    /// The end of the job.
    #[inline(always)]
    #[track_caller]
    pub fn next_below(&self, limit: usize) -> Result<Option<usize>> {
        let next = self.fetch_add(1)?;
        Ok((next < limit).then_some(next))
    }

    /// Takes the next `len` numbers, or as many as are below `limit`; `None` if there are none. One-sided and atomic. Longer chunks make
    /// fewer calls; shorter ones spread uneven tasks better.
    ///
    /// # Errors
    /// The end of the job.
    ///
    /// # Panics
    /// If `len` is 0.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let tasks = Counter::new(job)?;
    ///     let mut mine = 0;
    ///     while let Some(chunk) = tasks.next_chunk(100, 8)? {
    ///         mine += chunk.len();
    ///     }
    ///     assert_eq!(job.all_reduce_one(mine, ops::sum)?, 100);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn next_chunk(&self, limit: usize, len: usize) -> Result<Option<Range<usize>>> {
        assert!(len > 0, "a chunk has at least one number");
        // No more than there are, so that the counter does not wrap.
        let len = len.min(limit.max(1));
        let start = self.fetch_add(len)?;
        Ok((start < limit).then(|| start..limit.min(start.saturating_add(len))))
    }

    /// The numbers that this rank takes, one by one, until none below `limit` is left; see [`next_below`](Self::next_below). A failure is
    /// the last item.
    pub fn below(&self, limit: usize) -> impl Iterator<Item = Result<usize>> + '_ {
        let mut failed = false;
        std::iter::from_fn(move || {
            let next = if failed { None } else { self.next_below(limit).transpose() };
            failed |= matches!(next, Some(Err(_)));
            next
        })
    }

    /// The current value. One-sided.
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn get(&self) -> Result<usize> {
        located(move || Ok(self.words.atomic(self.owner, 0, AtomicOp::Load, 0, 0)? as usize))
    }

    /// Sets the counter for the next round. Collective: all members must arrive before any can count again.
    ///
    /// # Errors
    /// Members in different collectives; the end of the job.
    #[track_caller]
    pub fn reset(&self, value: usize) -> Result<()> {
        located(move || {
            let group = self.words.group();
            group.barrier()?;
            if group.member() == self.owner {
                self.words.atomic(self.owner, 0, AtomicOp::Swap, value as u64, 0)?;
            }
            group.barrier()
        })
    }
}
