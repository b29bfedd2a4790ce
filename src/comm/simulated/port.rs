//! The network of a rank.

use std::sync::Arc;

use super::{
    flight::{Flight, FlightKind},
    world::World,
};
use crate::comm::{
    Capabilities, Events, Issued, LeaveStep, Local, Native, Network, Operation, Ordering, Progress, Remote, SignalWord, Token,
    soft::Adapter,
};

const LONGEST: usize = 1 << 30;

/// The network of a rank.
#[derive(Debug)]
pub(super) struct Port {
    world: Arc<World>,
    rank: usize,
    /// Puts of up to this many bytes are copied with the call.
    copied: usize,
    capabilities: Capabilities,
}

impl Port {
    pub(super) fn new(world: Arc<World>, rank: usize, adapter: &Adapter) -> Self {
        let mut capabilities =
            Capabilities { progress: Progress::Hardware, threads: false, crowded: true, ..Capabilities::default() };
        capabilities.window = adapter.window;
        capabilities.longest_transfer = LONGEST;
        capabilities.order = Ordering { put_put: adapter.ordered, put_get: adapter.ordered };
        // A processor carries out what a message says.
        let driven = adapter.driven.is_some();
        let append = driven && adapter.ordered;
        capabilities.native = Native { signals: adapter.signals, blocks: driven, append, ..Native::default() };
        Port { world, rank, copied: adapter.copied, capabilities }
    }

    /// Issues an operation whose local memory is used until its end.
    fn issue_lent(&self, flight: Flight) -> Issued {
        self.world.issue(self.rank, flight);
        Issued::Pending
    }

    /// Issues an operation whose bytes are copied, with the token for its report: it is over with the call, if there is room for it.
    fn issue_copied(&self, token: Token, flight: impl FnOnce(Token) -> Flight) -> Issued {
        let is_at_once = self.world.has_room(self.rank);
        self.world.issue(self.rank, flight(if is_at_once { Token::NOBODY } else { token }));
        if is_at_once { Issued::Complete } else { Issued::Pending }
    }

    /// A put, with a signal or without.
    ///
    /// # Safety
    /// As [`Operation::PutSignal`].
    unsafe fn put_anyhow(&self, to: Remote, local: Local, signal: Option<SignalWord>, token: Token) -> Issued {
        if !self.world.is_here(self.rank) {
            self.world.refuse(self.rank, token);
            return Issued::Pending;
        }
        if local.len > self.copied {
            // SAFETY: the caller's promise.
            return self.issue_lent(unsafe { Flight::lent(FlightKind::Put(signal), self.rank, to, local, token) });
        }
        // SAFETY: the caller's promise.
        self.issue_copied(token, |token| unsafe { Flight::copied(self.rank, to, local, signal, token) })
    }
}

impl Network for Port {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.put_anyhow(to, local, None, token) }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        if !self.world.is_here(self.rank) {
            self.world.refuse(self.rank, token);
            return Issued::Pending;
        }
        // SAFETY: the caller's promise.
        self.issue_lent(unsafe { Flight::lent(FlightKind::Get, self.rank, from, local, token) })
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        let rank = self.rank;
        if !self.world.is_here(rank) {
            self.world.refuse(rank, token);
            return Issued::Pending;
        }
        // SAFETY: the caller's promise; a put only reads the buffer.
        unsafe {
            match *operation {
                Operation::PutSignal { to, local, signal } => self.put_anyhow(to, local, Some(signal), token),
                Operation::PutBlock { to, block } => {
                    self.issue_lent(Flight::block(FlightKind::Put(None), rank, to, block, token))
                }
                Operation::GetBlock { from, block } => self.issue_lent(Flight::block(FlightKind::Get, rank, from, block, token)),
                // Of a rank of this node, whose processors add.
                Operation::Accumulate { to, block, scale, lock } => {
                    self.issue_copied(token, |token| Flight::sum(rank, to, block, scale, lock, token))
                }
                Operation::Atomic { word, atomic } => self.issue_lent(Flight::atomic(rank, word, atomic, token)),
                Operation::Flush { rank: to } => {
                    self.world.flush(rank, to, token);
                    Issued::Pending
                }
                Operation::Append { ring, letter } => self.issue_lent(Flight::letter(rank, ring, &letter, token)),
            }
        }
    }

    fn cancel(&self, token: Token) {
        self.world.cancel(self.rank, token);
    }

    fn poll(&self, events: &mut Events) {
        self.world.poll(self.rank, events);
    }

    fn attend(&self) -> bool {
        false
    }

    fn settled(&self) -> Option<bool> {
        Some(self.world.is_settled(self.rank))
    }

    fn leave(&self, step: LeaveStep<'_>) {
        if let LeaveStep::BodyEnded = step {
            self.world.let_go(self.rank);
        }
    }
}
