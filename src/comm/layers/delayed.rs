//! Most puts are visible only when their target is flushed, or much later: a missing fence shows.

use std::{
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use super::step;
use crate::{
    comm::{
        Capabilities, Cause, Event, Events, Issued, Local, Native, Network, Operation, Ordering, Remote, Token, kit::mutex::Mutex,
    },
    memory::kernels,
};

/// One put in this many goes at once; the others wait for a flush.
const PROMPT: u64 = 4;

/// Or for this many polls of their rank: a tenth of a second in a wait, and some tenths where its looks are rare.
const LINGER: u64 = 1000;

/// A rank that waits looks more often than it would poll: looks count as one poll in this time.
const LOOK: Duration = Duration::from_micros(100);

/// The most puts of a rank that wait for a flush; a further one makes room. It bounds the memory of a program that never fences.
const MOST: usize = 256;

/// A put that is complete for its caller and has not gone to its target.
#[derive(Debug)]
struct Late {
    to: Remote,
    bytes: Vec<u8>,
    /// The poll at which it became complete for its caller.
    since: u64,
}

#[derive(Debug)]
struct DelayedQueue {
    done: Events,
    late: Vec<Late>,
    /// The bytes of late puts that have gone to the network below, until it has read them all.
    going: Vec<Vec<u8>>,
    unread: usize,
    /// A late put failed: the next flush does.
    lost: Option<Cause>,
    polls: u64,
    polled: Instant,
    state: u64,
}

/// A layer that keeps most puts back until a flush.
#[derive(Debug)]
pub(crate) struct Delayed {
    below: Arc<dyn Network>,
    capabilities: Capabilities,
    queue: Mutex<DelayedQueue>,
}

impl Delayed {
    pub(crate) fn new(below: Arc<dyn Network>, seed: u64) -> Self {
        // Other optional operations write, and would overtake a late put to the same place.
        let native = Native { coherent: below.capabilities().native.coherent, ..Native::default() };
        let capabilities = Capabilities { order: Ordering::default(), native, ..below.capabilities().clone() };
        let (done, late, going) = (Vec::new(), Vec::new(), Vec::new());
        let queue = DelayedQueue { done, late, going, unread: 0, lost: None, polls: 0, polled: Instant::now(), state: seed };
        Delayed { below, capabilities, queue: Mutex::new(queue) }
    }

    /// Sends late puts to their targets.
    fn land(&self, queue: &mut DelayedQueue, which: impl Fn(&Late) -> bool) {
        for Late { to, bytes, .. } in queue.late.extract_if(.., |late| which(late)) {
            let local = Local { ptr: bytes.as_ptr().cast_mut(), len: bytes.len() };
            // SAFETY: a put only reads the bytes, which stay in `going` until it has, and a network that still reads when a job
            // ends outlives its layers or stops first; the caller that put them promised that the target is committed, and it
            // stays so until this rank's next fence.
            let issued = unsafe { self.below.put(to, local, Token::LATE) };
            queue.unread += usize::from(issued == Issued::Pending);
            // They share a token, so what is complete now may be an earlier one.
            queue.going.push(bytes);
        }
        if queue.unread == 0 {
            queue.going.clear();
        }
    }

    /// Counts one more poll, or look, and sends what is old.
    fn tick(&self, queue: &mut DelayedQueue) {
        queue.polls += 1;
        queue.polled = Instant::now();
        let now = queue.polls;
        self.land(queue, |late| now - late.since > LINGER);
    }

    fn lock(&self) -> MutexGuard<'_, DelayedQueue> {
        self.queue.lock()
    }
}

impl Network for Delayed {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        let mut queue = self.lock();
        if step(&mut queue.state).is_multiple_of(PROMPT) {
            drop(queue);
            // SAFETY: the caller's promise.
            return unsafe { self.below.put(to, local, token) };
        }
        let mut bytes = vec![0; local.len];
        // SAFETY: the caller promises that the memory is readable; the copy is as long as it and apart from it.
        unsafe { kernels::copy(bytes.as_mut_ptr(), local.ptr, local.len) };
        if queue.late.len() >= MOST {
            let oldest = queue.late[0].since;
            self.land(&mut queue, |late| late.since == oldest);
        }
        let since = queue.polls;
        queue.late.push(Late { to, bytes, since });
        queue.done.push(Event::LocalDone(token));
        Issued::Pending
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.below.get(from, local, token) }
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // Callers flush before an atomic operation.
        if let Operation::Flush { rank } = *operation {
            let mut queue = self.lock();
            if let Some(cause) = queue.lost.take() {
                queue.done.push(Event::Failed(token, cause));
                return Issued::Pending;
            }
            self.land(&mut queue, |late| late.to.rank == rank);
        }
        // SAFETY: the caller's promise.
        unsafe { self.below.issue(operation, token) }
    }

    fn cancel(&self, token: Token) {
        self.below.cancel(token);
    }

    fn poll(&self, events: &mut Events) {
        let mut queue = self.lock();
        self.tick(&mut queue);
        events.append(&mut queue.done);
        drop(queue);
        let first = events.len();
        self.below.poll(events);
        let is_ours = |event: &Event| matches!(event, Event::LocalDone(Token::LATE) | Event::Failed(Token::LATE, _));
        if !events[first..].iter().any(is_ours) {
            return;
        }
        let mut queue = self.lock();
        for event in events.extract_if(first.., |event| is_ours(event)) {
            queue.unread -= 1;
            if let Event::Failed(_, cause) = event {
                queue.lost = Some(cause);
            }
        }
        if queue.unread == 0 {
            queue.going.clear();
        }
    }

    /// What it is drained of does not count late puts: those were not fenced, so nobody may wait for them.
    fn below(&self) -> Option<&dyn Network> {
        Some(&*self.below)
    }

    fn attend(&self) -> bool {
        let mut queue = self.lock();
        if queue.polled.elapsed() >= LOOK {
            self.tick(&mut queue);
        }
        let has_news = !queue.done.is_empty();
        drop(queue);
        has_news || self.below.attend()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::comm::{
        Topology,
        node::{Fabric, loopback::Loopback},
    };

    #[test]
    fn what_has_landed_is_not_kept() {
        let fabric = Arc::new(Fabric::new(1, 1 << 20, false).unwrap());
        let delayed = Delayed::new(Arc::new(Loopback::new(fabric, Topology::one_machine(0, 1))), 1);
        let bytes = [7; 64];
        for _ in 0..40 {
            let local = Local { ptr: bytes.as_ptr().cast_mut(), len: bytes.len() };
            // SAFETY: the bytes live longer than the network; the segment lies in the memory file, which gets a page when it is written.
            let _ = unsafe { delayed.put(Remote { rank: 0, offset: 0 }, local, Token(5)) };
        }
        assert!(!delayed.lock().late.is_empty(), "most puts are late");
        // SAFETY: a flush touches no memory of the caller.
        let _ = unsafe { delayed.issue(&Operation::Flush { rank: 0 }, Token(6)) };
        assert!(delayed.lock().late.is_empty() && delayed.lock().going.is_empty());
    }
}
