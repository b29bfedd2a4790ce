//! The network of a rank: what it is asked for becomes messages.

use std::{sync::Arc, time::Duration};

use super::{
    flight::{Flight, Kind},
    world::World,
};
use crate::comm::{
    Atomic, Capabilities, Events, Full, Issued, Local, Mail, Native, Network, Operations, Ordering, Progress, Remote, Scale,
    SignalWord, Token, soft::Adapter,
};
use crate::index::Loops;

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
        capabilities.native = Native { signals: adapter.signals, blocks: adapter.driven.is_some(), ..Native::default() };
        Port { world, rank, copied: adapter.copied, capabilities }
    }

    /// Issues an operation of the rank; from elsewhere it fails.
    fn issue(&self, token: Token, flight: impl FnOnce() -> Flight) {
        if self.world.is_here(self.rank) {
            self.world.issue(self.rank, flight());
        } else {
            self.world.refuse(self.rank, token);
        }
    }

    /// Returns true if an operation whose bytes are copied is over with the call, and the token for its report.
    fn answers(&self, token: Token) -> (bool, Token) {
        let is_at_once = self.world.is_here(self.rank) && self.world.has_room(self.rank);
        (is_at_once, if is_at_once { Token::NOBODY } else { token })
    }

    /// A put, with a signal or without.
    ///
    /// # Safety
    /// As [`Operations::put_signal`].
    unsafe fn put_anyhow(&self, to: Remote, local: Local, signal: Option<SignalWord>, token: Token) -> Issued {
        let rank = self.rank;
        if local.len > self.copied {
            // SAFETY: the caller's promise.
            self.issue(token, || unsafe { Flight::lent(Kind::Put(signal), rank, to, local, token) });
            return Issued::Pending;
        }
        let (is_at_once, answer) = self.answers(token);
        // SAFETY: the caller's promise.
        self.issue(token, || unsafe { Flight::copied(rank, to, local, signal, answer) });
        if is_at_once { Issued::Complete } else { Issued::Pending }
    }
}

impl Operations for Port {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.put_anyhow(to, local, None, token) }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        self.issue(token, || unsafe { Flight::lent(Kind::Get, self.rank, from, local, token) });
        Issued::Pending
    }

    fn cancel(&self, token: Token) {
        self.world.cancel(self.rank, token);
    }

    fn flush(&self, rank: usize, token: Token) {
        if self.world.is_here(self.rank) {
            self.world.flush(self.rank, rank, token);
        } else {
            self.world.refuse(self.rank, token);
        }
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        // SAFETY: the caller's promise.
        self.issue(token, || unsafe { Flight::atomic(self.rank, word, atomic, token) });
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        if !self.world.is_here(self.rank) {
            return Err(Full);
        }
        self.world.issue(self.rank, Flight::mail(self.rank, rank, mail));
        Ok(())
    }

    fn poll(&self, events: &mut Events) {
        self.world.poll(self.rank, events);
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.put_anyhow(to, local, Some(signal), token) }
    }

    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        // SAFETY: the caller's promise; a put only reads the buffer.
        self.issue(token, || unsafe { Flight::block(Kind::Put(None), self.rank, to, loops, local.cast_mut(), token) });
        Issued::Pending
    }

    /// Of a rank of this node, whose processors add.
    unsafe fn accumulate_block(
        &self,
        to: Remote,
        loops: &Loops,
        local: *const u8,
        scale: &Scale,
        lock: usize,
        token: Token,
    ) -> Issued {
        let (is_at_once, answer) = self.answers(token);
        // SAFETY: the caller's promise.
        self.issue(token, || unsafe { Flight::sum(self.rank, to, loops, local, scale, lock, answer) });
        if is_at_once { Issued::Complete } else { Issued::Pending }
    }

    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        // SAFETY: the caller's promise.
        self.issue(token, || unsafe { Flight::block(Kind::Get, self.rank, from, loops, local, token) });
    }
}

impl Network for Port {
    fn attend(&self) -> bool {
        false
    }

    fn poll_patiently(&self, events: &mut Events, first: &mut Option<Duration>, most: Duration) {
        self.world.poll_patiently(self.rank, events, first, most);
    }

    fn settled(&self) -> Option<bool> {
        Some(self.world.is_settled(self.rank))
    }

    fn body_ended(&self) {
        self.world.let_go(self.rank);
    }
}
