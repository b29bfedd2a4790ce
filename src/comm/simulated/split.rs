//! The network of a rank on a machine with agents: between nodes the code of a network, inside a node the model's operations.
//!
//! These stand for loads and stores.

use std::{io, ops::Range, sync::Arc};

use super::{port::Port, world::World};
use crate::comm::{Awaited, Capabilities, Connections, Events, Issued, LeaveStep, Local, Network, Operation, Remote, Token};

/// The network of a rank on a machine with agents.
#[derive(Debug)]
pub(super) struct Split {
    world: Arc<World>,
    rank: usize,
    ranks_per_node: usize,
    near: Port,
    far: Arc<dyn Network>,
    capabilities: Capabilities,
}

impl Split {
    pub(super) fn new(world: Arc<World>, rank: usize, ranks_per_node: usize, near: Port, far: Arc<dyn Network>) -> Self {
        let capabilities = Capabilities { threads: false, crowded: true, ..far.capabilities().clone() };
        Split { world, rank, ranks_per_node, near, far, capabilities }
    }

    fn is_near(&self, rank: usize) -> bool {
        rank / self.ranks_per_node == self.rank / self.ranks_per_node
    }

    /// The network for operations on a rank. None if the caller has no place in virtual time: the operation fails.
    fn to(&self, rank: usize, token: Token) -> Option<&dyn Network> {
        if self.is_near(rank) {
            Some(&self.near)
        } else if self.is_here() {
            Some(&*self.far)
        } else {
            self.world.refuse(self.rank, token);
            None
        }
    }

    fn is_here(&self) -> bool {
        self.world.is_here(self.rank)
    }

    /// An error of a rank that is not where it may wait.
    fn elsewhere() -> io::Error {
        io::Error::new(io::ErrorKind::Interrupted, super::world::why_not_here())
    }
}

impl Network for Split {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        self.to(to.rank, token).map_or(Issued::Pending, |network| unsafe { network.put(to, local, token) })
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        self.to(from.rank, token).map_or(Issued::Pending, |network| unsafe { network.get(from, local, token) })
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // Words that belong to an adapter do so inside a node, too.
        let is_for_adapter =
            matches!(operation, Operation::Atomic { atomic, .. } if atomic.width > self.capabilities.native.coherent);
        let network = match is_for_adapter && self.is_here() {
            true => Some(&*self.far),
            false => self.to(operation.rank(), token),
        };
        // SAFETY: the caller's promise.
        network.map_or(Issued::Pending, |network| unsafe { network.issue(operation, token) })
    }

    fn cancel(&self, token: Token) {
        self.near.cancel(token);
        self.far.cancel(token);
    }

    fn poll(&self, events: &mut Events) {
        self.near.poll(events);
        if self.is_here() {
            self.far.poll(events);
            self.world.has_taken(self.rank);
            self.world.has_looked(self.rank);
        }
    }

    fn is_complete(&self, awaited: Awaited) -> bool {
        // As in `settled`: this may send something. A flush asks again.
        let Awaited::Puts(rank) = awaited else { return false };
        !self.is_near(rank) && self.is_here() && self.world.is_current(self.rank) && self.far.is_complete(awaited)
    }

    fn attend(&self) -> bool {
        if !self.is_here() {
            return false;
        }
        let found = self.far.attend();
        self.world.has_looked(self.rank);
        found
    }

    fn settled(&self) -> Option<bool> {
        // It may send something: not before all has happened that happens before.
        let may_ask = self.is_here() && self.world.is_current(self.rank) && self.near.settled() == Some(true);
        if may_ask { self.far.settled() } else { Some(false) }
    }

    fn is_behind(&self) -> bool {
        self.far.is_behind()
    }

    fn connections(&self) -> Option<Connections> {
        self.far.connections()
    }

    fn opens(&self, range: Range<usize>) -> io::Result<()> {
        if self.is_here() { self.far.opens(range) } else { Err(Split::elsewhere()) }
    }

    fn shuts(&self, range: Range<usize>) -> io::Result<()> {
        if self.is_here() { self.far.shuts(range) } else { Err(Split::elsewhere()) }
    }

    fn leave(&self, step: LeaveStep<'_>) {
        if let LeaveStep::BodyEnded = step {
            self.near.leave(step);
        }
        self.far.leave(step);
    }
}
