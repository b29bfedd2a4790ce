//! Nothing happens before a thread polls, and then in any order that the network's few promises allow.

use std::sync::{Arc, MutexGuard};

use super::step;
use crate::comm::{
    Capabilities, Cause, Event, Events, Issued, Native, Network, Operation, Ordering, Progress, Token, kit::mutex::Mutex,
};

#[derive(Debug, Default)]
struct Queue {
    transfers: Vec<(Operation<'static>, Token)>,
    flushes: Vec<(Operation<'static>, Token)>,
    /// Transfers that were given up.
    ended: Events,
    state: u64,
}

/// A layer that changes the order of what happens.
#[derive(Debug)]
pub(crate) struct Scrambled {
    below: Arc<dyn Network>,
    capabilities: Capabilities,
    queue: Mutex<Queue>,
}

// SAFETY: the raw pointers in the queue are those of puts and gets, whose callers promise that the memory may be used until the
// completion is polled, by whichever thread polls.
unsafe impl Send for Scrambled {}
// SAFETY: as above; the queue is behind a mutex.
unsafe impl Sync for Scrambled {}

impl Scrambled {
    pub(crate) fn new(below: Arc<dyn Network>, seed: u64) -> Self {
        let order = Ordering::default();
        let native = Native { coherent: below.capabilities().native.coherent, ..Native::default() };
        let capabilities = Capabilities { order, native, progress: Progress::Caller, ..below.capabilities().clone() };
        let queue = Mutex::new(Queue { state: seed, ..Queue::default() });
        Scrambled { below, capabilities, queue }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

impl Network for Scrambled {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        let mut queue = self.lock();
        match *operation {
            Operation::Put { to, local } => queue.transfers.push((Operation::Put { to, local }, token)),
            Operation::Get { from, local } => queue.transfers.push((Operation::Get { from, local }, token)),
            Operation::Atomic { word, atomic } => queue.transfers.push((Operation::Atomic { word, atomic }, token)),
            Operation::Flush { rank } => queue.flushes.push((Operation::Flush { rank }, token)),
            // Mail; nothing else is announced.
            _ => {
                drop(queue);
                // SAFETY: the caller's promise.
                return unsafe { self.below.issue(operation, token) };
            }
        }
        Issued::Pending
    }

    fn cancel(&self, token: Token) {
        let mut queue = self.lock();
        let Queue { transfers, ended, .. } = &mut *queue;
        let given_up = transfers.extract_if(.., |&mut (_, of)| of == token);
        ended.extend(given_up.map(|_| Event::Failed(token, Cause("it was given up".into()))));
        drop(queue);
        self.below.cancel(token);
    }

    fn poll(&self, events: &mut Events) {
        let mut queue = self.lock();
        events.append(&mut queue.ended);
        while !queue.transfers.is_empty() {
            let at = step(&mut queue.state) as usize % queue.transfers.len();
            let (operation, token) = queue.transfers.swap_remove(at);
            // The network below reports the completion under the same token.
            // SAFETY: the promises of our caller are those that the network below asks for.
            unsafe { self.below.issue(&operation, token) }.report(token, events);
        }
        for (flush, token) in std::mem::take(&mut queue.flushes) {
            // SAFETY: a flush touches no memory of the caller.
            unsafe { self.below.issue(&flush, token) }.report(token, events);
        }
        drop(queue);
        self.below.poll(events);
    }

    fn below(&self) -> Option<&dyn Network> {
        Some(&*self.below)
    }

    fn attend(&self) -> bool {
        let is_idle = {
            let queue = self.lock();
            queue.transfers.is_empty() && queue.flushes.is_empty() && queue.ended.is_empty()
        };
        !is_idle || self.below.attend()
    }
}
