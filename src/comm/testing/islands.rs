//! A network for tests: ranks share memory by twos or threes, and the adapter's atomic operations do not exclude the processors'.
//!
//! An atomic operation of the adapter reads the word, lets time pass and writes it: nothing else of the adapter comes between,
//! but a processor may. The adapter may have signals, and keep puts in order, or not. Islands with a [`post`](super::post) also
//! take strided blocks, and accumulates for their owners.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::post::{Act, Block, Desk, Post};
use crate::{
    comm::{
        Atomic, AtomicOp, Capabilities, Conduit, Event, Events, Full, Issued, Local, Mail, Native, Network, Operations, Remote,
        Scale, SignalWord, Token, apply_atomic,
        layers::{self, HARSH},
        node::{Fabric, Member, joined::Joined, loopback::Loopback},
    },
    index::Loops,
};

/// There is one adapter.
static ADAPTER: Mutex<()> = Mutex::new(());

#[derive(Debug)]
pub(crate) struct Islands {
    fabric: Arc<Fabric>,
    /// Does at once what it is asked for.
    ordered: Loopback,
    harsh: Arc<dyn Network>,
    capabilities: Capabilities,
    values: Mutex<Vec<Event>>,
    desk: Option<Desk>,
}

/// What the adapter can do beside atomic operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adapter {
    pub(crate) signals: bool,
    /// Puts arrive in their order; else in any, and none before a rank polls.
    pub(crate) ordered: bool,
    /// Ranks of an island.
    pub(crate) island: usize,
    /// Ranks are said to outnumber the cores; else they are said to have one each.
    pub(crate) crowded: bool,
}

impl Islands {
    /// The conduit of a rank whose machine is cut into islands.
    pub(crate) fn conduit(member: Member, adapter: Adapter) -> Arc<dyn Conduit> {
        let member = member.split(adapter.island, adapter.crowded);
        let islands = Islands::new(&member, adapter);
        Arc::new(Joined::new(member, Arc::new(islands)))
    }

    /// As [`conduit`](Self::conduit), with a post between all ranks.
    pub(crate) fn with_post(member: Member, post: Arc<Post>) -> Arc<dyn Conduit> {
        let adapter = Adapter { signals: false, ordered: false, island: 2, crowded: true };
        let member = member.split(adapter.island, adapter.crowded);
        let mut islands = Islands::new(&member, adapter);
        islands.capabilities.native.blocks = true;
        islands.capabilities.native.accumulate = true;
        islands.desk = Some(Desk::new(post, islands.fabric.clone(), member.topology().clone()));
        Arc::new(Joined::new(member, Arc::new(islands)))
    }

    fn new(member: &Member, adapter: Adapter) -> Self {
        let (fabric, topology) = (member.fabric().clone(), member.topology());
        let [ordered, gentle] = [(); 2].map(|()| Loopback::new(fabric.clone(), topology.clone()));
        let harsh = layers::stack(&HARSH, topology.rank(), Arc::new(gentle));
        let mut capabilities = harsh.capabilities().clone();
        capabilities.native = Native { signals: adapter.signals, ..Native::default() };
        capabilities.order.put_put = adapter.ordered;
        Islands { fabric, ordered, harsh, capabilities, values: Mutex::default(), desk: None }
    }

    fn take(&self, act: Act, place: Remote, loops: &Loops, local: *mut u8, token: Token) {
        let desk = self.desk.as_ref().expect("what is announced");
        desk.take(Block { act, place, loops: loops.clone(), local, token });
    }
}

impl Operations for Islands {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the promises are the same.
        unsafe {
            if self.capabilities.order.put_put { self.ordered.put(to, local, token) } else { self.harsh.put(to, local, token) }
        }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the promises are the same.
        unsafe { self.harsh.get(from, local, token) }
    }

    fn cancel(&self, token: Token) {
        self.harsh.cancel(token);
    }

    fn flush(&self, rank: usize, token: Token) {
        match &self.desk {
            Some(desk) => desk.flush(rank, token),
            None => self.harsh.flush(rank, token),
        }
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        self.harsh.mail(rank, mail)
    }

    fn poll(&self, events: &mut Events) {
        events.append(&mut self.values.lock().unwrap());
        if let Some(desk) = &self.desk {
            desk.poll(events).into_iter().for_each(|(rank, token)| self.harsh.flush(rank, token));
        }
        self.ordered.poll(events);
        self.harsh.poll(events);
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        let _alone = ADAPTER.lock().unwrap();
        // SAFETY: the promises are the same.
        unsafe { self.ordered.put_signal(to, local, signal, token) }
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        let Atomic { op, width, operand, comparand } = atomic;
        let _alone = ADAPTER.lock().unwrap();
        // SAFETY: all of the memory is mapped for the adapter; the caller vouches for the word.
        let word = unsafe { self.fabric.segment(word.rank).as_ptr().add(word.offset) };
        // SAFETY: as above; adding zero reads.
        let old = unsafe { apply_atomic(word, AtomicOp::Load, width, 0, 0) };
        std::thread::sleep(Duration::from_micros(50));
        let mut new = old;
        // SAFETY: a word of our own, little-endian as the machine that tests run on.
        unsafe { apply_atomic((&raw mut new).cast(), op, width, operand, comparand) };
        if op != AtomicOp::CompareSwap || new != old {
            // SAFETY: as for the load.
            unsafe { apply_atomic(word, AtomicOp::Swap, width, new, 0) };
        }
        self.values.lock().unwrap().push(Event::Value(token, old));
    }

    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        self.take(Act::Put, to, loops, local.cast_mut(), token);
        Issued::Pending
    }

    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        self.take(Act::Get, from, loops, local, token);
    }

    unsafe fn accumulate_block(
        &self,
        to: Remote,
        loops: &Loops,
        local: *const u8,
        scale: &Scale,
        lock: usize,
        token: Token,
    ) -> Issued {
        self.take(Act::Add { scale: *scale, lock }, to, loops, local.cast_mut(), token);
        Issued::Pending
    }
}

impl Network for Islands {
    fn attend(&self) -> bool {
        let is_busy = !self.values.lock().unwrap().is_empty() || self.desk.as_ref().is_some_and(|desk| !desk.is_idle());
        is_busy || self.ordered.attend() || self.harsh.attend()
    }

    fn arm(&self) -> bool {
        self.harsh.arm()
    }
}
