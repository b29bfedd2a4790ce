//! A network inside one machine: it reaches every rank through the shared mapping, at once.
//!
//! Jobs whose memory is hidden or cut into nodes use it, so that real networks' protocols run anywhere.

use std::sync::Arc;

use super::Fabric;
use crate::comm::{
    Capabilities, Events, Issued, Local, Nap, Native, Network, Operation, Ordering as Order, Progress, Remote, Slept, Token,
    Topology, kit::mutex::Mutex,
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
        capabilities.native = Native { coherent: 8, blocks: true, signals: true, ..Native::default() };
        Loopback { fabric, topology, capabilities, done: Mutex::default() }
    }

    /// This network with capabilities changed by `limit`.
    #[cfg(test)]
    pub(crate) fn limited(mut self, limit: impl Fn(&mut Capabilities)) -> Self {
        limit(&mut self.capabilities);
        self
    }
}

impl Network for Loopback {
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

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let (issued, event) = unsafe { self.fabric.carry_out(&self.topology, operation, token) };
        if let Some(event) = event {
            self.done.lock().push(event);
        }
        issued
    }

    /// Nothing is ever in flight.
    fn cancel(&self, _token: Token) {}

    fn poll(&self, events: &mut Events) {
        events.append(&mut self.done.lock());
    }

    fn attend(&self) -> bool {
        !self.done.lock().is_empty()
    }

    /// A sender of a message rings the bell, and signals wake. A put into a word that a thread waits on wakes nobody, nor does it
    /// over any network: the slices of a sleep see to that.
    fn nap(&self, _nap: Nap<'_>) -> Slept {
        Slept::Bell
    }
}
