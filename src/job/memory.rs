//! Memory of a job: how much is requested (`sync::memory`), committed and left.

use super::Job;
use crate::calls::located;
use crate::error::{Error, Result};

/// Bytes of this rank and its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Used by arrays and other objects in this rank's segment.
    pub asked: u64,
    /// Backed by pages in this rank's segment; freed arrays keep theirs until [`Job::trim`].
    pub committed: u64,
    /// Bytes that the machine's ranks can still commit together.
    pub available: u64,
}

impl Job {
    /// The memory that this rank has requested and committed, and what its machine has left. Local.
    #[doc(alias("GA_Memory_avail", "GA_Inquire_memory"))]
    #[must_use]
    pub fn memory(&self) -> Memory {
        let available = self.inner.left().bytes;
        let heap = self.inner.heap();
        Memory { asked: heap.used() as u64, committed: heap.committed() as u64, available }
    }

    /// Returns unused pages of this rank to the system. Local.
    ///
    /// # Errors
    /// A system error; another thread of the rank that is creating something.
    #[track_caller]
    pub fn trim(&self) -> Result<()> {
        located(move || {
            let _creating = self.inner.creating("trim")?;
            let mut heap = self.inner.heap();
            for range in heap.trim() {
                self.inner.conduit().release(range).map_err(|e| Error::system("giving memory back", e))?;
            }
            Ok(())
        })
    }
}
