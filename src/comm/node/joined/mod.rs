//! A node and a network make the conduit of a job that has ranks on both sides.
//!
//! Ranks whose memory is mapped are reached through the node, the others through the network. This is the only place that chooses.
//!
//! # Waiting
//!
//! A rank that waits looks at what it waits for, at the node's inboxes, and at the network, in turn. It spins for as long as a sleep and a
//! wake-up would take. Then it sleeps in slices if ranks outnumber cores, or if the network wakes sleepers. Otherwise it spins on, as
//! MPI does, and answers at once what others ask of it.
//!
//! Where ranks outnumber cores, a network may let the rank sleep until something comes ([`Network::doze`]). A rank that shares memory with no other
//! sleeps there in long slices. One that does waits for its neighbors too, and nothing that they do ends that sleep. So it sleeps there in short
//! slices, and only while the network owes it an answer or it answers for others; else on its bell, and on a word as ever.

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering, fence},
    },
    time::Duration,
};

use super::{Member, commit};
use crate::{
    comm::{
        Atomic, Capabilities, Conduit, Connections, Events, Full, INHERITED, Issued, Local, Mail, Network, Operations,
        PublishedWait, Remote, Scale, SignalWord, Token, Topology, WaitWord,
    },
    index::Loops,
};

/// Looks at a word before the network is asked. They take as long as ranks of one node need that arrive together.
const LOOKS: usize = 300;

/// The time for which a waiting rank looks without a pause before it may sleep: a sleep and a wake-up take some 60 µs.
const PATIENCE: Duration = Duration::from_micros(50);
/// A sleeping rank wakes up after this long to look.
const SLICE: Duration = Duration::from_micros(50);
/// The most sleeps in a wait for whatever comes.
const SLICES: u32 = 10;
/// The longest sleep in the network. It goes on when another thread of the rank takes something out of the network, or changes a
/// word of the rank.
const DOZE: Duration = Duration::from_micros(500);

/// The longest wait for whatever comes, if it `sleeps` or spins. Nothing here shows what another thread of the rank has taken out
/// of the network. So the caller has to look for itself soon.
fn longest(limit: Duration, sleeps: bool) -> Duration {
    limit.min(if sleeps { SLICES * SLICE } else { SLICE })
}

/// A node and a network as one conduit.
#[derive(Debug)]
pub(crate) struct Joined<N: ?Sized> {
    node: Member,
    capabilities: Capabilities,
    network: Arc<N>,
    /// No other rank maps this rank's memory: what it waits for comes over the network, or from its own threads.
    is_alone: bool,
    /// This rank has come to its end, and has not published it.
    ends: AtomicBool,
}

impl<N: Network + ?Sized> Joined<N> {
    /// The node's topology says which memory is mapped.
    pub(crate) fn new(node: Member, network: Arc<N>) -> Self {
        let of_node = node.capabilities();
        let capabilities = Capabilities { granule: of_node.granule, crowded: of_node.crowded, ..network.capabilities().clone() };
        let is_alone = node.topology().is_hidden() || node.topology().ranks_here() == 1;
        Joined { node, capabilities, network, is_alone, ends: AtomicBool::new(false) }
    }

    fn is_mapped(&self, rank: usize) -> bool {
        self.topology().is_mapped(rank)
    }

    /// Returns true if this processor changes words of a rank that others may change too. Where processors and adapter do not
    /// exclude each other, the adapter changes all of them.
    fn is_for_processor(&self, rank: usize) -> bool {
        self.is_mapped(rank) && self.capabilities.native.coherent
    }

    /// Waits until `ready`, or until there is something to poll, or for `limit`. Where ranks share cores it sleeps between looks:
    /// in the network for `doze` if it can, else by `sleep`.
    fn wait_until(&self, limit: Duration, doze: Duration, ready: impl Fn() -> bool, sleep: impl Fn(Duration)) {
        let start = self.now();
        loop {
            if ready() || self.node.has_news() || self.network.attend() {
                return;
            }
            let waited = self.now().saturating_sub(start);
            if ready() || waited >= limit || self.over().load(Ordering::Relaxed) != 0 {
                return;
            }
            let crowded = self.capabilities.crowded;
            if waited > PATIENCE && crowded && !doze.is_zero() && self.network.doze(doze.min(limit - waited), &ready) {
                continue;
            }
            if waited > PATIENCE && self.network.arm() | crowded {
                // What came before the network was armed rings no bell.
                if self.network.attend() {
                    return;
                }
                sleep(SLICE);
            } else if crowded {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl<N: Network + ?Sized> Operations for Joined<N> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { if self.is_mapped(to.rank) { self.node.put(to, local, token) } else { self.network.put(to, local, token) } }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_mapped(from.rank) { self.node.get(from, local, token) } else { self.network.get(from, local, token) }
        }
    }

    fn ends_soon(&self, token: Token) -> bool {
        self.network.ends_soon(token)
    }

    fn cancel(&self, token: Token) {
        self.network.cancel(token);
    }

    fn flush(&self, rank: usize, token: Token) {
        if self.is_for_processor(rank) {
            self.node.flush(rank, token);
        } else {
            // Of a mapped rank, both: the network may have changed words of it.
            fence(Ordering::SeqCst);
            self.network.flush(rank, token);
        }
    }

    fn is_flushed(&self, rank: usize) -> bool {
        fence(Ordering::SeqCst);
        self.is_for_processor(rank) || self.network.is_flushed(rank)
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        if self.is_mapped(rank) { self.node.mail(rank, mail) } else { self.network.mail(rank, mail) }
    }

    fn poll(&self, events: &mut Events) {
        self.network.poll(events);
        self.node.poll(events);
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_for_processor(to.rank) {
                self.node.put_signal(to, local, signal, token)
            } else {
                self.network.put_signal(to, local, signal, token)
            }
        }
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_for_processor(word.rank) {
                self.node.atomic(word, atomic, token);
            } else {
                self.network.atomic(word, atomic, token);
            }
        }
    }

    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        // SAFETY: the caller's promise. Callers copy to memory that they see by themselves.
        unsafe { self.network.put_block(to, loops, local, token) }
    }

    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        // SAFETY: as for `put_block`.
        unsafe { self.network.get_block(from, loops, local, token) }
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
        // SAFETY: as for `put_block`.
        unsafe { self.network.accumulate_block(to, loops, local, scale, lock, token) }
    }
}

impl<N: Network + ?Sized> Conduit for Joined<N> {
    fn topology(&self) -> &Topology {
        self.node.topology()
    }

    fn segment(&self) -> NonNull<u8> {
        self.node.segment()
    }

    fn segment_len(&self) -> usize {
        self.node.segment_len()
    }

    fn mapped(&self, rank: usize) -> Option<NonNull<u8>> {
        if self.is_mapped(rank) { self.node.mapped(rank) } else { None }
    }

    fn one_copy(&self, list: &[usize]) -> Arc<[usize]> {
        self.node.one_copy(list)
    }

    fn commit(&self, range: Range<usize>) -> io::Result<()> {
        commit(&self.node, &*self.network, range)
    }

    fn release(&self, range: Range<usize>) -> io::Result<()> {
        self.network.shuts(range.clone())?;
        self.node.release(range)
    }

    fn committed(&self) -> u64 {
        self.node.committed()
    }

    fn connections(&self) -> Option<Connections> {
        // Those of a forked child are its parent's.
        if self.over().load(Ordering::Relaxed) == INHERITED { None } else { self.network.connections() }
    }

    fn let_go(&self) {
        self.node.let_go();
    }

    fn body_ended(&self) {
        if self.over().load(Ordering::Relaxed) != INHERITED {
            self.network.body_ended();
        }
    }

    fn drain(&self) {
        if self.over().load(Ordering::Relaxed) != INHERITED {
            self.network.drain();
        }
    }

    fn leave(&self) {
        if self.over().load(Ordering::Relaxed) == INHERITED {
            return;
        }
        let fabric = self.node.fabric();
        fabric.set_finished(self.topology().local(self.rank()));
        self.network.serve_until(&|| (0..fabric.ranks()).all(|rank| fabric.finished(rank)));
    }

    fn now(&self) -> Duration {
        self.node.now()
    }

    fn wait(&self, limit: Duration) {
        let sleeps = self.network.arm() | self.capabilities.crowded;
        // What neighbors send, and what an agent delivers, ends a sleep on the bell only.
        let doze = match self.is_alone {
            true => DOZE,
            false if self.capabilities.crowded && self.network.expects() => SLICE,
            false => Duration::ZERO,
        };
        self.wait_until(longest(limit, sleeps), doze, || false, |slice| self.node.wait(slice));
    }

    #[inline]
    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        for _ in 0..LOOKS {
            if word.load() != seen {
                return;
            }
        }
        let doze = if self.is_alone { DOZE } else { Duration::ZERO };
        self.wait_until(limit, doze, || word.load() != seen, |slice| word.sleep(seen, slice));
    }

    fn over(&self) -> &AtomicU32 {
        self.node.over()
    }

    fn over_cause(&self) -> String {
        self.node.over_cause()
    }

    fn end(&self, cause: &str) {
        self.node.end(cause);
        self.network.announce_end(self.rank(), cause);
    }

    fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        if self.topology().is_near(rank) { self.node.last_seen(rank) } else { self.node.supervisor().last_seen(rank) }
    }

    fn publish(&self, place: [u64; 2]) {
        self.node.publish(place);
    }

    fn name_call(&self, key: u64, text: &dyn Fn() -> String) -> u64 {
        self.node.name_call(key, text)
    }

    fn call(&self, rank: usize, published: u64) -> String {
        if self.topology().is_near(rank) { self.node.call(rank, published) } else { self.node.supervisor().call(rank) }
    }

    fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        let ends = self.ends.load(Ordering::Relaxed);
        let settled = if ends || awaited.is_some() { self.network.settled() } else { Some(false) };
        if ends && settled == Some(true) && self.ends.swap(false, Ordering::Relaxed) {
            self.node.publish_end();
        }
        // While that is unknown, what is published stays as it is, and counts no look.
        if awaited.is_none() || settled.is_some() {
            self.node.publish_wait(awaited.filter(|_| settled == Some(true)), object);
        }
    }

    /// To others it means that this rank does nothing more for them. So it may have to wait for a look that finds everything
    /// handled.
    fn publish_end(&self) {
        if self.over().load(Ordering::Relaxed) == INHERITED {
            return;
        }
        if self.network.settled() == Some(true) {
            self.node.publish_end();
        } else {
            self.ends.store(true, Ordering::Relaxed);
        }
    }

    fn has_ended(&self, rank: usize) -> bool {
        if self.topology().is_near(rank) { self.node.has_ended(rank) } else { self.node.supervisor().has_ended(rank) }
    }

    fn knows_ends(&self) -> bool {
        self.node.knows_ends() || self.node.supervisor().knows_ends()
    }

    fn have_others_ended(&self) -> bool {
        if !self.node.have_others_ended() {
            return false;
        }
        let (ended, question) = self.node.supervisor().have_others_ended();
        question.into_iter().for_each(|(rank, question)| self.network.send_note(rank, question));
        ended
    }

    fn published_wait(&self, rank: usize, hops: usize) -> Option<PublishedWait> {
        if self.topology().is_near(rank) {
            return self.node.published_wait(rank, hops);
        }
        let (wait, question) = self.node.supervisor().published_wait(rank, hops);
        question.into_iter().for_each(|question| self.network.send_note(rank, question));
        wait
    }

    fn published_object(&self, rank: usize) -> String {
        if self.topology().is_near(rank) {
            self.node.published_object(rank)
        } else {
            self.node.supervisor().published_object(rank)
        }
    }

    fn look_at_all(&self) -> Option<String> {
        let (notes, found) = self.node.supervisor().look_at_all(self.now());
        notes.into_iter().for_each(|(rank, note)| self.network.send_note(rank, note));
        found
    }
}

#[cfg(test)]
mod tests;
