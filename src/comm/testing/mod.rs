//! A network for tests of the engine: rank 0 of some, with a function as the other side.

pub(crate) mod apart;
pub(in crate::comm) mod clock;
#[cfg(not(loom))]
pub(in crate::comm) mod header;
pub(crate) mod islands;
pub(crate) mod post;
#[cfg(not(loom))]
pub(in crate::comm) mod stubbed;
pub(crate) mod watched;
#[cfg(not(loom))]
pub(in crate::comm) mod wires;

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Atomic, Awaited, Capabilities, Conduit, Event, Events, Issued, Local, Network, Operation, Remote, SignalWord, Token,
    Topology,
    engine::Engine,
    node::{Fabric, Member},
};

/// A call of the engine.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) enum Call {
    Put(Token),
    PutSignal { len: usize, signal: SignalWord, token: Token },
    Get(Token),
    Flush(Token),
    Append(usize, Token),
    Atomic { operand: u64, token: Token },
    Poll,
}

/// Answers a call. The poll itself reports the answer, or the next one does.
type Peer = Box<dyn Fn(Call) -> Option<Event> + Send + Sync>;

pub(in crate::comm) struct Fake {
    pub(super) capabilities: Capabilities,
    /// Its answer for all that was put, if it gives one.
    pub(super) visible: Option<Arc<AtomicBool>>,
    peer: Peer,
    queue: Mutex<Vec<Event>>,
}

impl Fake {
    pub(in crate::comm) fn new(peer: impl Fn(Call) -> Option<Event> + Send + Sync + 'static) -> Self {
        Fake { capabilities: Capabilities::default(), visible: None, peer: Box::new(peer), queue: Mutex::default() }
    }

    fn call(&self, call: Call) -> Issued {
        let answer = (self.peer)(call);
        self.queue.lock().unwrap().extend(answer);
        Issued::Pending
    }

    /// The engine of rank 0 of four over this network, by which even the rank itself is reached.
    pub(in crate::comm) fn engine(self, timeout: Option<f64>) -> Engine {
        const RANKS: usize = 4;
        let fabric = Arc::new(Fabric::new(RANKS, 1 << 20, false).expect("memory for some ranks"));
        let topology = Topology::one_machine(0, RANKS).with_hidden_memory();
        let member = Member::new(fabric, topology, RANKS, None);
        Engine::new(Arc::new(Conduit::with_network(member, Arc::new(self))), timeout)
    }
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

impl Network for Fake {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, _: Remote, _: Local, token: Token) -> Issued {
        self.call(Call::Put(token))
    }

    unsafe fn get(&self, _: Remote, _: Local, token: Token) -> Issued {
        self.call(Call::Get(token))
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        let call = match *operation {
            Operation::PutSignal { local, signal, .. } => Call::PutSignal { len: local.len, signal, token },
            Operation::Flush { .. } => Call::Flush(token),
            Operation::Atomic { atomic: Atomic { operand, .. }, .. } => Call::Atomic { operand, token },
            Operation::Append { letter, .. } => Call::Append(letter.packed(), token),
            _ => return Issued::Pending,
        };
        self.call(call)
    }

    fn cancel(&self, _: Token) {}

    fn poll(&self, events: &mut Events) {
        events.extend((self.peer)(Call::Poll));
        events.append(&mut self.queue.lock().unwrap());
    }

    fn attend(&self) -> bool {
        !self.queue.lock().unwrap().is_empty()
    }

    fn is_complete(&self, awaited: Awaited) -> bool {
        matches!(awaited, Awaited::Puts(_)) && self.visible.as_ref().is_some_and(|visible| visible.load(Ordering::SeqCst))
    }
}
