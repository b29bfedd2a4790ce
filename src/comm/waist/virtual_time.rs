//! Virtual time, in which ranks take turns.

use std::{ops::Range, sync::atomic::AtomicU32, time::Duration};

use crate::comm::{Events, WaitWord};

/// The time of a rank that takes turns with others, beside the network that makes time pass.
///
/// A [`Conduit`](crate::comm::node::Conduit) without one runs in real time.
pub(crate) trait VirtualTime: Send + Sync + std::fmt::Debug {
    /// A call begins that takes time, or asks for it. The time since the last call was spent computing.
    fn enter(&self);

    /// The call ends.
    fn leave(&self);

    /// The time of the rank. Reading it is free.
    fn now(&self) -> Duration;

    /// Time passes because the rank reads its clock.
    fn read(&self);

    /// The rank has carried out `flops` floating-point operations, with `bytes` bytes from and to memory: that time passes.
    fn compute(&self, flops: f64, bytes: f64);

    /// Returns true if programs are to leave out what they compute, and arrays may go without contents.
    fn skips(&self) -> bool;

    /// As [`Conduit::set_contents`](crate::comm::node::Conduit::set_contents).
    fn set_contents(&self, range: Range<usize>, has: bool);

    /// As [`Conduit::poll`](crate::comm::node::Conduit::poll) of a wait.
    fn poll(&self, events: &mut Events, first: &mut Option<Duration>, most: Duration);

    /// Returns when the network may have something to say, or the word differs from the value beside it. May return early.
    fn wait(&self, word: Option<(&WaitWord, u32)>);

    /// The time `limit` passes.
    fn pause(&self, limit: Duration);

    /// The word that [`Conduit::over`](crate::comm::node::Conduit::over) gives: the job's, or another for a caller that has no place in
    /// virtual time.
    fn over<'a>(&'a self, of_job: &'a AtomicU32) -> &'a AtomicU32;

    /// Why the job is over for a caller that has no place in virtual time, for people.
    fn over_cause(&self) -> String;

    /// Wakes all ranks: something changed that any of them may wait for.
    fn wake_all(&self);
}
