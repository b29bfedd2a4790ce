//! Nothing happens before a thread polls, and then in any order that the network's few promises allow.

use std::sync::{Arc, MutexGuard};

use super::step;
use crate::comm::{
    Capabilities, Cause, Event, Events, Issued, Local, Native, Network, Operation, Ordering, Progress, Remote, Token,
    kit::mutex::Mutex,
};

/// What waits for a poll.
#[derive(Debug)]
enum Postponed {
    Put(Remote, Local),
    Get(Remote, Local),
    Atomic(Operation<'static>),
}

#[derive(Debug, Default)]
struct ScrambledQueue {
    transfers: Vec<(Postponed, Token)>,
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
    queue: Mutex<ScrambledQueue>,
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
        let queue = Mutex::new(ScrambledQueue { state: seed, ..ScrambledQueue::default() });
        Scrambled { below, capabilities, queue }
    }

    fn lock(&self) -> MutexGuard<'_, ScrambledQueue> {
        self.queue.lock()
    }
}

impl Network for Scrambled {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        self.lock().transfers.push((Postponed::Put(to, local), token));
        Issued::Pending
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        self.lock().transfers.push((Postponed::Get(from, local), token));
        Issued::Pending
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        match *operation {
            Operation::Atomic { word, atomic } => {
                self.lock().transfers.push((Postponed::Atomic(Operation::Atomic { word, atomic }), token));
            }
            Operation::Flush { rank } => self.lock().flushes.push((Operation::Flush { rank }, token)),
            _ => unreachable!("nothing else is announced"),
        }
        Issued::Pending
    }

    fn cancel(&self, token: Token) {
        let mut queue = self.lock();
        let ScrambledQueue { transfers, ended, .. } = &mut *queue;
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
            let (postponed, token) = queue.transfers.swap_remove(at);
            // The network below reports the completion under the same token.
            // SAFETY: the promises of our caller are those that the network below asks for.
            let issued = unsafe {
                match &postponed {
                    Postponed::Put(to, local) => self.below.put(*to, *local, token),
                    Postponed::Get(from, local) => self.below.get(*from, *local, token),
                    Postponed::Atomic(operation) => self.below.issue(operation, token),
                }
            };
            issued.report(token, events);
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
