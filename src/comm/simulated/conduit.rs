//! One simulated rank as the engine sees it.
//!
//! Memory, and what ranks publish about themselves, are a machine's, whose memory is hidden. Time is virtual, and every wait goes through
//! the world, which lets others run.

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use super::{
    idle::READING,
    world::{World, why_not_here},
};
use crate::{
    comm::{
        Atomic, Capabilities, Conduit, Connections, Events, Full, Issued, Local, Mail, Network, Operations, PublishedWait,
        Remote, Scale, SignalWord, Token, Topology, WaitWord,
        node::{Member, commit},
        soft::{Picos, Processor},
        start::settings::Computing,
    },
    index::Loops,
};

/// The word that [`Conduit::over`] gives to a caller without the turn.
static NOT_HERE: AtomicU32 = AtomicU32::new(2);

/// One simulated rank as the engine sees it.
#[derive(Debug)]
pub(super) struct Simulated {
    world: Arc<World>,
    node: Member,
    rank: usize,
    capabilities: Capabilities,
    network: Arc<dyn Network>,
    processor: Processor,
    /// The network is code of its own.
    is_wired: bool,
    computing: Computing,
    /// Processor time of the thread at the end of the last call, in nanoseconds, where computing is measured.
    last: AtomicU64,
    /// What looking at that time takes.
    looking: u64,
    /// This rank has come to its end, and has not published it.
    ends: AtomicBool,
    /// A call was refused while the rank unwound.
    refused: AtomicBool,
}

/// A rank is in a call. The call itself takes no measured time.
struct Inside<'r>(&'r Simulated);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if let Computing::Measured(_) = self.0.computing
            && self.0.is_here()
        {
            self.0.last.store(processor_time(), Ordering::Relaxed);
        }
        if self.0.is_wired && self.0.is_here() {
            self.0.world.leave(self.0.rank, self.0.network.is_behind());
        }
    }
}

/// Processor time of the calling thread, in nanoseconds.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The least that lies between two looks at that time, which is none of the program's.
fn looking() -> u64 {
    let between = |_| {
        let before = processor_time();
        processor_time() - before
    };
    (0..32).map(between).min().unwrap_or(0)
}

impl Simulated {
    /// A rank whose turn it is.
    pub(super) fn new(
        world: Arc<World>,
        node: Member,
        network: Arc<dyn Network>,
        is_wired: bool,
        processor: Processor,
        computing: Computing,
    ) -> Self {
        let capabilities = Capabilities { granule: node.capabilities().granule, ..network.capabilities().clone() };
        let last = AtomicU64::new(processor_time());
        let (rank, [ends, refused]) = (node.topology().rank(), [const { AtomicBool::new(false) }; 2]);
        let looking = if let Computing::Measured(_) = computing { looking() } else { 0 };
        Simulated { world, rank, node, capabilities, network, is_wired, processor, computing, last, looking, ends, refused }
    }

    /// To be called first in whatever takes virtual time, or asks for it: the time since the last call was spent computing.
    fn inside(&self) -> Inside<'_> {
        if self.refused.load(Ordering::Relaxed) && self.is_here() && self.over().load(Ordering::Relaxed) == 0 {
            self.end("went on after it had panicked: what it would have given back while it unwound, a lock perhaps, is lost");
        }
        if let Computing::Measured(factor) = self.computing
            && self.is_here()
        {
            let nanos = processor_time().saturating_sub(self.last.load(Ordering::Relaxed) + self.looking);
            self.world.spend(self.rank, Picos::of_seconds(1e-9 * nanos as f64 * factor));
        }
        if self.is_wired && self.is_here() {
            self.world.enter(self.rank);
        }
        Inside(self)
    }

    /// Returns true if the caller is this rank. Another thread has no place in virtual time. A rank that unwinds must not wait.
    fn is_here(&self) -> bool {
        self.world.is_here(self.rank)
    }
}

impl Operations for Simulated {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        let _inside = self.inside();
        // SAFETY: the caller's promise.
        unsafe { self.network.put(to, local, token) }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        let _inside = self.inside();
        // SAFETY: the caller's promise.
        unsafe { self.network.get(from, local, token) }
    }

    fn cancel(&self, token: Token) {
        self.network.cancel(token);
    }

    fn flush(&self, rank: usize, token: Token) {
        let _inside = self.inside();
        self.network.flush(rank, token);
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        let _inside = self.inside();
        // SAFETY: the caller's promise.
        unsafe { self.network.atomic(word, atomic, token) }
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        let _inside = self.inside();
        self.network.mail(rank, mail)
    }

    fn poll(&self, events: &mut Events) {
        let _inside = self.inside();
        self.network.poll(events);
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        let _inside = self.inside();
        // SAFETY: the caller's promise.
        unsafe { self.network.put_signal(to, local, signal, token) }
    }

    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        let _inside = self.inside();
        // SAFETY: the caller's promise.
        unsafe { self.network.put_block(to, loops, local, token) }
    }

    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        let _inside = self.inside();
        // SAFETY: the caller's promise.
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
        let _inside = self.inside();
        // SAFETY: the caller's promise.
        unsafe { self.network.accumulate_block(to, loops, local, scale, lock, token) }
    }

    fn is_flushed(&self, rank: usize) -> bool {
        self.network.is_flushed(rank)
    }
}

impl Conduit for Simulated {
    fn topology(&self) -> &Topology {
        self.node.topology()
    }

    fn segment(&self) -> NonNull<u8> {
        self.node.segment()
    }

    fn segment_len(&self) -> usize {
        self.node.segment_len()
    }

    fn mapped(&self, _rank: usize) -> Option<NonNull<u8>> {
        None
    }

    fn one_copy(&self, list: &[usize]) -> Arc<[usize]> {
        self.node.one_copy(list)
    }

    fn commit(&self, range: Range<usize>) -> io::Result<()> {
        let _inside = self.inside();
        commit(&self.node, &*self.network, range)
    }

    fn release(&self, range: Range<usize>) -> io::Result<()> {
        let _inside = self.inside();
        self.network.shuts(range.clone())?;
        self.node.release(range)
    }

    fn connections(&self) -> Option<Connections> {
        self.network.connections()
    }

    fn drain(&self) {
        let _inside = self.inside();
        self.network.drain();
    }

    fn leave(&self) {
        let _inside = self.inside();
        let fabric = self.node.fabric();
        fabric.set_finished(self.topology().local(self.rank));
        if (0..fabric.ranks()).all(|rank| fabric.finished(rank)) {
            self.world.wake_all();
        }
        self.network.serve_until(&|| (0..fabric.ranks()).all(|rank| fabric.finished(rank)));
    }

    fn committed(&self) -> u64 {
        self.node.committed()
    }

    fn let_go(&self) {
        self.node.let_go();
    }

    fn body_ended(&self) {
        self.network.body_ended();
    }

    fn now(&self) -> Duration {
        let _inside = self.inside();
        if self.is_here() {
            self.world.spend(self.rank, READING);
        }
        self.world.now(self.rank).duration()
    }

    fn stamp(&self) -> (usize, Duration) {
        (0, self.world.now(self.rank).duration())
    }

    fn compute(&self, flops: f64, bytes: f64) {
        if !matches!(self.computing, Computing::Declared | Computing::Skipped) || !self.is_here() {
            return;
        }
        let seconds = (flops / self.processor.flops).max(bytes / self.processor.memory);
        self.world.spend(self.rank, Picos::of_seconds(seconds));
    }

    fn skips(&self) -> bool {
        self.computing == Computing::Skipped
    }

    fn set_contents(&self, range: Range<usize>, has: bool) {
        if self.skips() {
            self.world.set_contents(self.rank, range, has);
        }
    }

    fn poll_patiently(&self, events: &mut Events, first: &mut Option<Duration>, most: Duration) {
        let _inside = self.inside();
        self.network.poll_patiently(events, first, most);
    }

    fn wait(&self, _limit: Duration) {
        let _inside = self.inside();
        if !self.network.attend() {
            self.world.sleep(self.rank, None);
        }
    }

    fn wait_on(&self, word: &WaitWord, seen: u32, _limit: Duration) {
        let _inside = self.inside();
        if !self.network.attend() {
            self.world.sleep(self.rank, Some((word, seen)));
        }
    }

    fn pause(&self, limit: Duration) {
        let _inside = self.inside();
        self.world.pause(self.rank, Picos::of_duration(limit));
    }

    fn over(&self) -> &AtomicU32 {
        let over = self.node.over();
        if over.load(Ordering::Relaxed) != 0 || self.is_here() {
            return over;
        }
        if std::thread::panicking() {
            self.refused.store(true, Ordering::Relaxed);
        }
        &NOT_HERE
    }

    fn over_cause(&self) -> String {
        if self.node.over().load(Ordering::Relaxed) != 0 { self.node.over_cause() } else { why_not_here().into() }
    }

    fn end(&self, cause: &str) {
        self.node.end(cause);
        self.world.wake_all();
    }

    fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        self.node.last_seen(rank)
    }

    fn publish(&self, place: [u64; 2]) {
        self.node.publish(place);
    }

    fn name_call(&self, key: u64, text: &dyn Fn() -> String) -> u64 {
        self.node.name_call(key, text)
    }

    fn call(&self, rank: usize, published: u64) -> String {
        self.node.call(rank, published)
    }

    /// Others take from it that this rank does nothing more for them. So it may have to wait for a look that finds everything handled.
    fn publish_end(&self) {
        self.ends.store(true, Ordering::Relaxed);
        self.publish_wait(None, "");
    }

    fn has_ended(&self, rank: usize) -> bool {
        self.node.has_ended(rank)
    }

    fn knows_ends(&self) -> bool {
        self.node.knows_ends()
    }

    fn have_others_ended(&self) -> bool {
        self.node.have_others_ended()
    }

    fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        let _inside = self.inside();
        let asks = awaited.is_some() || self.ends.load(Ordering::Relaxed);
        let settled = asks && self.network.settled() == Some(true);
        if settled && self.ends.swap(false, Ordering::Relaxed) {
            self.node.publish_end();
        }
        self.node.publish_wait(awaited.filter(|_| settled), object);
    }

    fn published_wait(&self, rank: usize, hops: usize) -> Option<PublishedWait> {
        self.node.published_wait(rank, hops).map(|wait| PublishedWait { at: self.world.now(self.rank).duration(), ..wait })
    }

    fn published_object(&self, rank: usize) -> String {
        self.node.published_object(rank)
    }

    fn look_at_all(&self) -> Option<String> {
        self.node.supervisor().look_at_all(self.world.now(self.rank).duration()).1
    }
}
