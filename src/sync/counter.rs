//! A shared counter with fetch-and-add, the usual way to hand out tasks.

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
///     while let Some(_task) = tasks.next_below(100)? {
///         mine += 1; // task `_task` is mine alone
///     }
///     assert_eq!(job.all_reduce_one(mine, ops::sum)?, 100);
///     Ok::<(), global_arrays::Error>(())
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

    /// Adds `increment` and returns the old value. One-sided and atomic.
    ///
    /// # Errors
    /// The end of the job.
    ///
    /// # Source
    /// GA: `NGA_Read_inc`.
    #[doc(alias = "read_increment")]
    #[doc(alias = "NGA_Read_inc")]
    #[inline(always)]
    #[track_caller]
    pub fn fetch_add(&self, increment: u64) -> Result<u64> {
        self.words.fetch_add(self.owner, 0, increment)
    }

    /// Takes the next number; `None` if it is not below `limit`. Each number goes to exactly one caller. One-sided and atomic.
    ///
    /// # Errors
    /// The end of the job.
    #[inline(always)]
    #[track_caller]
    pub fn next_below(&self, limit: u64) -> Result<Option<u64>> {
        let next = self.fetch_add(1)?;
        Ok((next < limit).then_some(next))
    }

    /// The current value. One-sided.
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn get(&self) -> Result<u64> {
        located(move || self.words.atomic(self.owner, 0, AtomicOp::Load, 0, 0))
    }

    /// Sets the counter for the next round. Collective: all members must arrive before any can count again.
    ///
    /// # Errors
    /// Members in different collectives; the end of the job.
    #[track_caller]
    pub fn reset(&self, value: u64) -> Result<()> {
        located(move || {
            let group = self.words.group();
            group.barrier()?;
            if group.rank() == self.owner {
                self.words.atomic(self.owner, 0, AtomicOp::Swap, value, 0)?;
            }
            group.barrier()
        })
    }
}
