//! What the layer asks of an adapter.

use std::{fmt, result, sync::Arc};

use crate::comm::{
    Atomic,
    am::wire::{Key, Result, Sleeper},
    start::devices::directory::Words,
};

/// One port of an adapter, driven by one thread at a time. No call blocks.
///
/// A work that was taken moves its bytes once, and its end is reported once, unless the port is closed before. Works end in any order.
pub(in crate::comm) trait RmaAdapter: Send + fmt::Debug + 'static {
    /// What the adapter can do. Constant.
    fn limits(&self) -> &RmaLimits;

    /// The address for peers.
    fn address(&self) -> Words;

    /// Enters a peer, once, before anything is begun with it. No connection is needed.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken): the address is of no use.
    fn meet(&mut self, peer: usize, at: &Words) -> Result<()>;

    /// Makes memory known to the adapter.
    ///
    /// # Safety
    /// It stays mapped until it is deregistered or the port is closed, and nobody holds Rust references to what may be written.
    ///
    /// # Errors
    /// What the adapter says, for people.
    unsafe fn register(&mut self, start: *mut u8, len: usize, access: RmaAccess) -> result::Result<RmaRegion, String>;

    /// Takes memory back. When it returns nothing reads or writes it through the adapter any more.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken): the adapter may use it still.
    fn deregister(&mut self, region: u64) -> Result<()>;

    /// Begins a write. False if the adapter is full: poll, and try again.
    ///
    /// # Safety
    /// The bytes `here` stay as they are until the end is reported, or during the call if the work is inline.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    unsafe fn write(&mut self, to: usize, work: &RmaWork) -> Result<bool>;

    /// Begins a read, likewise.
    ///
    /// # Safety
    /// The bytes `here` may be written, and nobody touches them, until the end is reported.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    unsafe fn read(&mut self, from: usize, work: &RmaWork) -> Result<bool>;

    /// Begins an atomic operation on a word of eight bytes, whose old value comes `here`. Adapters of [atomics](RmaLimits::atomics) can load, add,
    /// and, or, exclusive or, and compare and swap; a peer may be this rank.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    unsafe fn change(&mut self, _peer: usize, _work: &RmaWork, _atomic: Atomic) -> Result<bool> {
        unreachable!("an adapter without atomics is asked for none")
    }

    /// Begins what ends when all earlier writes to a peer are visible there. Only if the adapter [has marks](RmaLimits::marks).
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    fn mark(&mut self, peer: usize, id: u64) -> Result<bool>;

    /// Appends what has ended, a bounded number, and makes progress where that is manual.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    fn poll(&mut self, done: &mut Vec<RmaDone>) -> Result<()>;

    /// What ends a sleep, if the adapter can do that. Constant.
    fn sleeper(&self) -> Option<Arc<dyn Sleeper>> {
        None
    }

    /// Closes the port, perhaps again. Nothing is read, written or reported behind it: calls find the adapter full, and reports none.
    fn close(&mut self);
}

/// What registered memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum RmaAccess {
    /// Works of this rank.
    Local,
    /// Writes and reads of peers.
    Remote,
}

/// Memory that an adapter knows.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) struct RmaRegion {
    /// What peers name its first byte by, with the key.
    pub(in crate::comm) address: u64,
    pub(in crate::comm) key: Key,
    /// What the adapter knows it by.
    pub(in crate::comm) id: u64,
}

/// Bytes that go between here and a peer.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) struct RmaWork {
    pub(in crate::comm) here: *mut u8,
    pub(in crate::comm) len: usize,
    /// The region of `here`, if [`RmaLimits::local_regions`] asks for one and the work is not inline.
    pub(in crate::comm) local: Option<u64>,
    pub(in crate::comm) there: u64,
    pub(in crate::comm) key: Key,
    /// A write of at most [`RmaLimits::inline`] bytes whose end is not reported.
    pub(in crate::comm) inline: bool,
    /// Handed back when it ends.
    pub(in crate::comm) id: u64,
}

/// The end of a work.
#[derive(Clone, Debug)]
pub(in crate::comm) enum RmaDone {
    /// It has moved all its bytes, of which `len` were received.
    Ends { id: u64, len: usize },
    /// It moves no more bytes. Without an id: one whose end is not reported otherwise.
    Fails { id: Option<u64>, peer: Option<usize>, why: String },
}

/// What an adapter can do. An atomic operation comes behind earlier writes as a write does. Nothing else orders it.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) struct RmaLimits {
    /// Bytes of the longest inline write. None if zero.
    pub(in crate::comm) inline: usize,
    /// Bytes of the longest work.
    pub(in crate::comm) longest: usize,
    /// Bytes here and at a peer are to lie alike in units of this many bytes: other works are slow. At most 64.
    pub(in crate::comm) unit: usize,
    /// Memory of this rank is registered for the rank's own works.
    pub(in crate::comm) local_regions: bool,
    /// A write that has ended is visible only when a mark behind it has. If not, it is visible at once.
    pub(in crate::comm) marks: bool,
    /// A write comes behind an earlier write to the same bytes.
    pub(in crate::comm) put_put: bool,
    /// A read comes behind an earlier write to the same bytes.
    pub(in crate::comm) put_get: bool,
    /// The adapter changes words of eight bytes, also of this rank, and nothing else does.
    pub(in crate::comm) atomics: bool,
    /// A frame comes behind earlier writes.
    pub(in crate::comm) frame_behind_write: bool,
}
