//! A network for tests: ranks share memory by twos or threes, and the adapter's atomic operations do not exclude the processors'.
//!
//! The adapter reads the word, lets time pass and writes it: a processor may come between.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::post::{Act, Block, Desk, Post};
use crate::comm::{
    Atomic, AtomicOp, Capabilities, Conduit, Event, Events, Issued, Local, Nap, Native, Network, Operation, Remote, Slept,
    Strided, Token, apply_atomic,
    layers::{self, HARSH},
    node::{Fabric, Member, loopback::Loopback},
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
    /// Bytes of the words that others may change too.
    pub(crate) coherent: usize,
    /// Puts arrive in their order; else in any, and none before a rank polls.
    pub(crate) ordered: bool,
    /// Ranks of an island.
    pub(crate) island: usize,
    /// Ranks are said to outnumber the cores; else they are said to have one each.
    pub(crate) crowded: bool,
}

impl Islands {
    /// The conduit of a rank whose machine is cut into islands.
    pub(crate) fn conduit(member: Member, adapter: Adapter) -> Arc<Conduit> {
        let member = member.split(adapter.island, adapter.crowded);
        let islands = Islands::new(&member, adapter);
        Arc::new(Conduit::with_network(member, Arc::new(islands)))
    }

    /// As [`conduit`](Self::conduit), with a post between all ranks.
    pub(crate) fn with_post(member: Member, post: Arc<Post>) -> Arc<Conduit> {
        let adapter = Adapter { signals: false, coherent: 0, ordered: false, island: 2, crowded: true };
        let member = member.split(adapter.island, adapter.crowded);
        let mut islands = Islands::new(&member, adapter);
        islands.capabilities.native.blocks = true;
        islands.capabilities.native.accumulate = true;
        islands.desk = Some(Desk::new(post, islands.fabric.clone(), member.topology().clone()));
        Arc::new(Conduit::with_network(member, Arc::new(islands)))
    }

    fn new(member: &Member, adapter: Adapter) -> Self {
        let (fabric, topology) = (member.fabric().clone(), member.topology());
        let [ordered, gentle] = [(); 2].map(|()| Loopback::new(fabric.clone(), topology.clone()));
        let harsh = layers::stack(&HARSH, topology.rank(), Arc::new(gentle));
        let mut capabilities = harsh.capabilities().clone();
        capabilities.native = Native { signals: adapter.signals, coherent: adapter.coherent, ..Native::default() };
        capabilities.order.put_put = adapter.ordered;
        Islands { fabric, ordered, harsh, capabilities, values: Mutex::default(), desk: None }
    }

    fn take(&self, act: Act, place: Remote, Strided { loops, local }: Strided<'_>, token: Token) -> Issued {
        let desk = self.desk.as_ref().expect("what is announced");
        desk.take(Block { act, place, loops: loops.clone(), local, token });
        Issued::Pending
    }

    /// # Safety
    /// As [`Operation::Atomic`].
    unsafe fn atomic(&self, word: Remote, Atomic { op, width, operand, comparand }: Atomic, token: Token) {
        let _alone = ADAPTER.lock().unwrap();
        // SAFETY: all of the memory is mapped for the adapter; the caller vouches for the word.
        let word = unsafe { self.fabric.segment(word.rank).as_ptr().add(word.offset) };
        if width <= self.capabilities.native.coherent {
            // SAFETY: as above.
            let old = unsafe { apply_atomic(word, op, width, operand, comparand) };
            self.values.lock().unwrap().push(Event::Value(token, old));
            return;
        }
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
}

impl Network for Islands {
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

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // SAFETY: the promises are the same.
        unsafe {
            match *operation {
                Operation::PutSignal { .. } => {
                    let _alone = ADAPTER.lock().unwrap();
                    self.ordered.issue(operation, token)
                }
                Operation::PutBlock { to, block } => self.take(Act::Put, to, block, token),
                Operation::GetBlock { from, block } => self.take(Act::Get, from, block, token),
                Operation::Accumulate { to, block, scale, lock } => self.take(Act::Add { scale: *scale, lock }, to, block, token),
                Operation::Atomic { word, atomic } => {
                    self.atomic(word, atomic, token);
                    Issued::Pending
                }
                Operation::Flush { rank } if let Some(desk) = &self.desk => {
                    desk.flush(rank, token);
                    Issued::Pending
                }
                _ => self.harsh.issue(operation, token),
            }
        }
    }

    fn cancel(&self, token: Token) {
        self.harsh.cancel(token);
    }

    fn poll(&self, events: &mut Events) {
        events.append(&mut self.values.lock().unwrap());
        if let Some(desk) = &self.desk {
            for (rank, token) in desk.poll(events) {
                // SAFETY: a flush touches no memory of the caller.
                let _ = unsafe { self.harsh.issue(&Operation::Flush { rank }, token) };
            }
        }
        self.ordered.poll(events);
        self.harsh.poll(events);
    }

    fn attend(&self) -> bool {
        let is_busy = !self.values.lock().unwrap().is_empty() || self.desk.as_ref().is_some_and(|desk| !desk.is_idle());
        is_busy || self.ordered.attend() || self.harsh.attend()
    }

    fn nap(&self, nap: Nap<'_>) -> Slept {
        self.harsh.nap(nap)
    }
}
