//! A network inside one machine: it reaches every rank through the shared mapping, at once.
//!
//! It stands below every job of one machine whose memory is hidden, or cut into nodes, so that the protocols of real networks run
//! anywhere. The [`layers`](crate::comm::layers) make it as harsh as a network may be.

use std::sync::{
    Arc, MutexGuard,
    atomic::{Ordering, fence},
};

use super::Fabric;
use crate::{
    comm::{
        Atomic, Capabilities, Event, Events, Full, Issued, Local, Mail, Native, Network, Operations, Ordering as Order, Progress,
        Remote, SignalWord, Token, Topology, kit::mutex::Mutex,
    },
    index::Loops,
};

/// A network inside one machine.
#[derive(Debug)]
pub(crate) struct Loopback {
    fabric: Arc<Fabric>,
    topology: Topology,
    capabilities: Capabilities,
    done: Mutex<Events>,
}

impl Loopback {
    pub(crate) fn new(fabric: Arc<Fabric>, topology: Topology) -> Self {
        let mut capabilities = Capabilities { progress: Progress::Hardware, ..Capabilities::default() };
        capabilities.window = 16;
        capabilities.longest_transfer = 1 << 20;
        capabilities.order = Order { put_put: true, put_get: true };
        capabilities.native = Native { coherent: true, blocks: true, signals: true, ..Native::default() };
        Loopback { fabric, topology, capabilities, done: Mutex::default() }
    }

    /// This network with capabilities changed by `limit`.
    #[cfg(test)]
    pub(crate) fn limited(mut self, limit: impl Fn(&mut Capabilities)) -> Self {
        limit(&mut self.capabilities);
        self
    }

    fn done(&self) -> MutexGuard<'_, Events> {
        self.done.lock()
    }
}

impl Operations for Loopback {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, _token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.write(self.topology.local(to.rank), to.offset, local) };
        Issued::Complete
    }

    unsafe fn get(&self, from: Remote, local: Local, _token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.read(self.topology.local(from.rank), from.offset, local) };
        Issued::Complete
    }

    fn flush(&self, _rank: usize, token: Token) {
        fence(Ordering::SeqCst);
        self.done().push(Event::RemoteDone(token));
    }

    /// Nothing is ever in flight.
    fn cancel(&self, _token: Token) {}

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        self.fabric.mail(self.topology.local(rank), self.topology.rank(), mail)
    }

    fn poll(&self, events: &mut Events) {
        events.append(&mut self.done());
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, _token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.write_signal(self.topology.local(to.rank), to.offset, local, signal) };
        Issued::Complete
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        // SAFETY: the caller's promise.
        let old = unsafe { self.fabric.apply(self.topology.local(word.rank), word.offset, atomic) };
        self.done().push(Event::Value(token, old));
    }

    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, _token: Token) -> Issued {
        // SAFETY: the caller's promise; a put only reads the buffer.
        unsafe { self.fabric.copy_block(true, self.topology.local(to.rank), to.offset, loops, local.cast_mut()) };
        Issued::Complete
    }

    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.copy_block(false, self.topology.local(from.rank), from.offset, loops, local) };
        self.done().push(Event::LocalDone(token));
    }
}

impl Network for Loopback {
    fn attend(&self) -> bool {
        !self.done().is_empty()
    }

    /// A sender of a message rings the bell, and signals wake. A put into a word that a thread waits on wakes nobody, nor does it
    /// over any network: the slices of a sleep see to that.
    fn arm(&self) -> bool {
        true
    }
}
