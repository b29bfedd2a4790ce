//! A network for tests that lists what it is asked for. Each rank is a node of its own.

use std::sync::{Arc, Mutex};

use super::{
    Atomic, Capabilities, Conduit, Events, Full, Issued, Local, Loops, Mail, Network, Remote, SignalWord, Token, joined::Joined,
    loopback::Loopback, node::Member,
};

/// What moves or completes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Put,
    Block,
    /// A put with a signal, of so many bytes.
    Signal(usize),
    Flush,
}

/// What the networks of a job were asked for, by rank.
#[derive(Debug)]
pub(crate) struct Lists(Vec<Mutex<Vec<Asked>>>);

impl Lists {
    pub(crate) fn new(ranks: usize) -> Arc<Self> {
        Arc::new(Lists((0..ranks).map(|_| Mutex::default()).collect()))
    }

    /// What a rank asked for since the last call.
    pub(crate) fn take(&self, rank: usize) -> Vec<Asked> {
        std::mem::take(&mut self.0[rank].lock().unwrap())
    }
}

#[derive(Debug)]
pub(crate) struct Watched {
    below: Loopback,
    capabilities: Capabilities,
    lists: Arc<Lists>,
    rank: usize,
}

impl Watched {
    /// The conduit of a rank over a network that announces what is left of its capabilities.
    pub(crate) fn conduit(member: Member, lists: Arc<Lists>, limit: impl Fn(&mut Capabilities)) -> Arc<dyn Conduit> {
        let member = member.split(1, true);
        let below = Loopback::new(member.fabric().clone(), member.topology().clone());
        let mut capabilities = below.capabilities().clone();
        limit(&mut capabilities);
        let watched = Watched { below, capabilities, lists, rank: member.topology().rank() };
        Arc::new(Joined::new(member, Arc::new(watched)))
    }

    fn note(&self, asked: Asked) {
        self.lists.0[self.rank].lock().unwrap().push(asked);
    }
}

impl Network for Watched {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        self.note(Asked::Put);
        // SAFETY: the promises are the same.
        unsafe { self.below.put(to, local, token) }
    }
    unsafe fn get(&self, from: Remote, local: Local, token: Token) {
        // SAFETY: the promises are the same.
        unsafe { self.below.get(from, local, token) }
    }
    fn flush(&self, rank: usize, token: Token) {
        self.note(Asked::Flush);
        self.below.flush(rank, token);
    }
    fn cancel(&self, token: Token) {
        self.below.cancel(token);
    }
    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        self.below.mail(rank, mail)
    }
    fn poll(&self, events: &mut Events) {
        self.below.poll(events);
    }
    fn attend(&self) -> bool {
        self.below.attend()
    }
    fn arm(&self) -> bool {
        self.below.arm()
    }
    fn shows_waits(&self) -> bool {
        self.below.shows_waits()
    }
    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        self.note(Asked::Signal(local.len));
        // SAFETY: the promises are the same.
        unsafe { self.below.put_signal(to, local, signal, token) }
    }
    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        // SAFETY: the promises are the same.
        unsafe { self.below.atomic(word, atomic, token) }
    }
    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        self.note(Asked::Block);
        // SAFETY: the promises are the same.
        unsafe { self.below.put_block(to, loops, local, token) }
    }
    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        // SAFETY: the promises are the same.
        unsafe { self.below.get_block(from, loops, local, token) }
    }
}
