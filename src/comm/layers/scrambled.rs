//! Nothing happens before a thread polls, and then in any order that the network's promises allow, which are few.

use std::sync::{Arc, MutexGuard};

use super::step;
use crate::comm::{
    Atomic, Capabilities, Cause, Event, Events, Full, Issued, Local, Mail, Native, Network, Operations, Ordering, Progress,
    Remote, Token, kit::mutex::Mutex,
};

/// A transfer that waits for a poll.
#[derive(Debug)]
enum Waiting {
    Put { to: Remote, local: Local, token: Token },
    Get { from: Remote, local: Local, token: Token },
    Atomic { word: Remote, atomic: Atomic, token: Token },
}

impl Waiting {
    fn token(&self) -> Token {
        match *self {
            Waiting::Put { token, .. } | Waiting::Get { token, .. } | Waiting::Atomic { token, .. } => token,
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    transfers: Vec<Waiting>,
    flushes: Vec<(usize, Token)>,
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

// SAFETY: the raw pointers in the queue are those of `put` and `get`, whose callers promise that the memory may be used until the
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

impl Operations for Scrambled {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        self.lock().transfers.push(Waiting::Put { to, local, token });
        Issued::Pending
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        self.lock().transfers.push(Waiting::Get { from, local, token });
        Issued::Pending
    }

    fn flush(&self, rank: usize, token: Token) {
        self.lock().flushes.push((rank, token));
    }

    fn cancel(&self, token: Token) {
        let mut queue = self.lock();
        let Queue { transfers, ended, .. } = &mut *queue;
        let given_up = transfers.extract_if(.., |waiting| waiting.token() == token);
        ended.extend(given_up.map(|_| Event::Failed(token, Cause("it was given up".into()))));
        drop(queue);
        self.below.cancel(token);
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        self.lock().transfers.push(Waiting::Atomic { word, atomic, token });
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        self.below.mail(rank, mail)
    }

    fn poll(&self, events: &mut Events) {
        {
            let mut queue = self.lock();
            events.append(&mut queue.ended);
            while !queue.transfers.is_empty() {
                let at = step(&mut queue.state) as usize % queue.transfers.len();
                // The network below reports the completion under the same token.
                match queue.transfers.swap_remove(at) {
                    // SAFETY: the promises of our caller are those that the network below asks for.
                    Waiting::Put { to, local, token } => unsafe { self.below.put(to, local, token).report(token, events) },
                    // SAFETY: as above.
                    Waiting::Get { from, local, token } => unsafe { self.below.get(from, local, token).report(token, events) },
                    // SAFETY: as above.
                    Waiting::Atomic { word, atomic, token } => unsafe { self.below.atomic(word, atomic, token) },
                }
            }
            std::mem::take(&mut queue.flushes).into_iter().for_each(|(rank, token)| self.below.flush(rank, token));
        }
        self.below.poll(events);
    }
}

impl Network for Scrambled {
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
