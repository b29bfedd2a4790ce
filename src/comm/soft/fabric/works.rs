//! Works of adapters that move memory.

use crate::comm::Atomic;

/// What a work does. `Write` and `Read` name memory here.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) enum Move {
    Write(*const u8),
    Read(*mut u8),
    /// Changes a word of eight bytes; the old value lands here.
    Change(Atomic, *mut u8),
}

/// The state of a work.
#[derive(Debug)]
pub(in crate::comm) enum Moved {
    NotYet,
    Well,
    Failed(String),
}

impl Moved {
    pub(super) fn of<T>(ended: Result<T, String>) -> Self {
        ended.map_or_else(Moved::Failed, |_| Moved::Well)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MovingWork {
    pub(super) what: Move,
    pub(super) to: usize,
    pub(super) key: Option<u64>,
    pub(super) there: u64,
    pub(super) len: usize,
    pub(super) number: u64,
    /// What an atomic operation has found, while the adapter holds its word.
    pub(super) old: Option<u64>,
}

// SAFETY: addresses, which the port's thread uses as the poster has promised.
unsafe impl Send for MovingWork {}
