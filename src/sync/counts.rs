//! What a rank did to the memory of others, in operations (`array::counted`) and bytes.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// How an operation is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Get,
    Accumulate,
    Atomic,
    Signal,
    Message,
}

/// Operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// The number of operations.
    pub operations: u64,
    /// Bytes of the elements or words that they moved or changed.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn plus(self, other: Tally) -> Tally {
        Tally { operations: self.operations + other.operations, bytes: self.bytes + other.bytes }
    }

    /// The difference to an `earlier` tally.
    pub(crate) fn since(self, earlier: Tally) -> Tally {
        Tally { operations: self.operations.saturating_sub(earlier.operations), bytes: self.bytes.saturating_sub(earlier.bytes) }
    }
}

/// Operations of one rank on the memory of all others, of one other rank, or on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// Patches, lists and elements written.
    pub put: Tally,
    /// Patches, lists and elements read.
    pub get: Tally,
    /// Patches and lists added to.
    pub accumulate: Tally,
    /// Integer atomics, counters, locks.
    pub atomic: Tally,
    /// Signals raised.
    pub signal: Tally,
    /// Active messages and letters of mailboxes sent.
    pub message: Tally,
}

impl Traffic {
    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.kinds().into_iter().fold(Tally::default(), Tally::plus)
    }

    pub(crate) fn kinds(&self) -> [Tally; 6] {
        [self.put, self.get, self.accumulate, self.atomic, self.signal, self.message]
    }

    fn of([put, get, accumulate, atomic, signal, message]: [Tally; 6]) -> Self {
        Traffic { put, get, accumulate, atomic, signal, message }
    }

    pub(crate) fn zip(&self, other: &Traffic, combine: impl Fn(Tally, Tally) -> Tally) -> Self {
        let (a, b) = (self.kinds(), other.kinds());
        Self::of(std::array::from_fn(|k| combine(a[k], b[k])))
    }

    fn kind(&mut self, kind: Kind) -> &mut Tally {
        match kind {
            Kind::Put => &mut self.put,
            Kind::Get => &mut self.get,
            Kind::Accumulate => &mut self.accumulate,
            Kind::Atomic => &mut self.atomic,
            Kind::Signal => &mut self.signal,
            Kind::Message => &mut self.message,
        }
    }
}

/// Where a rank counts; any of its threads does.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<usize, Traffic>>);

impl Counts {
    pub(crate) fn add(&self, kind: Kind, rank: usize, bytes: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = counts.entry(rank).or_default().kind(kind);
        *tally = tally.plus(Tally { operations: 1, bytes });
    }

    /// A copy of what was counted, by rank.
    pub(crate) fn by_rank(&self) -> BTreeMap<usize, Traffic> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
