//! What joins modelled adapters: messages that travel for as long as the model says, and times that come.
//!
//! Only adapters know what the bytes mean. A rank's call moves its clock. An arrival moves no clock: the adapters get its time.

use std::{fmt, time::Duration};

/// What adapters want of the cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Wish {
    /// A message leaves. [`Adapters::arrived`] and then [`Adapters::answered`] report it, by its number.
    Sends { from: u32, to: u32, bytes: usize, number: u64 },
    /// An adapter returns what it has read for another. It is reported as if sent, and leaves without a processor.
    Returns { from: u32, to: u32, bytes: usize, number: u64 },
    /// [`Adapters::is_time`] is to be called.
    Reminds { rank: u32, at: Duration, number: u64 },
    /// Something is there for the rank or its agent to take.
    Rings { rank: u32 },
    /// Memory of a rank may have changed.
    Touches { rank: u32 },
}

/// What takes long at the ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum SetupStep {
    /// An end is made.
    Prepares,
    /// It is joined to the other one, in two such steps.
    Connects,
}

/// Virtual time, as adapters see it.
pub(in crate::comm) trait Cables: Send + Sync + fmt::Debug {
    /// The time of a rank.
    fn now(&self, rank: usize) -> Duration;

    /// What follows from a call of a rank.
    fn ask(&self, rank: usize, wishes: &[Wish]);

    /// A rank has taken all that its adapter had to say.
    fn has_polled(&self, rank: usize);

    /// A rank has taken `messages` messages from its adapter, of `bytes` bytes in all.
    fn takes(&self, rank: usize, messages: usize, bytes: usize);

    /// A rank has made a step towards a connection.
    fn steps(&self, rank: usize, step: SetupStep);

    /// Rings a rank at a time, unless it was to be rung before that.
    fn ring_at(&self, rank: usize, at: Duration);

    /// Lets others run until a rank is rung, or for a while. False if the job is over.
    fn pass(&self, rank: usize) -> bool;
}

/// Adapters at the ends of cables. What follows is appended to the wishes.
pub(in crate::comm) trait Adapters: Send + Sync + fmt::Debug {
    /// All of a message has arrived.
    fn arrived(&self, now: Duration, number: u64, wishes: &mut Vec<Wish>);

    /// The sender's adapter knows that a message has arrived.
    fn answered(&self, now: Duration, number: u64, wishes: &mut Vec<Wish>);

    /// A time has come.
    fn is_time(&self, now: Duration, number: u64, wishes: &mut Vec<Wish>);
}
