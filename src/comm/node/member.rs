//! One rank's view of its machine's ranks: the conduit of jobs whose ranks are all mapped.
//!
//! Everything is mapped, so the arrays never call `put` and `get` here, but groups that have members elsewhere do, and the conformance
//! suite tests them.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Fabric, Patience, Supervisor,
    control::{CALLS, TAG},
};
use crate::comm::{
    Atomic, Capabilities, Conduit, Event, Events, Full, Issued, Local, Mail, Native, Network, Operations, Ordering as Order,
    Progress, PublishedWait, Remote, SignalWord, Token, Topology, WaitWord,
    kit::{mutex::Mutex, process},
};

/// One rank of a machine. Every rank in its calls is one of the machine, by its number in the job.
#[derive(Debug)]
pub(crate) struct Member {
    fabric: Arc<Fabric>,
    topology: Topology,
    /// The rank's number on the machine.
    own: usize,
    capabilities: Capabilities,
    patience: Patience,
    start: Instant,
    supervisor: Arc<Supervisor>,
    /// The calls whose texts the control page holds.
    calls: [AtomicU64; CALLS],
    /// Threads that the conduit knows of in this process: those of ranks, and the thread that waits for them to end.
    threads: usize,
    /// What was done at once and is still to be reported; its lock is also the right to read the inboxes.
    done: Mutex<VecDeque<Event>>,
}

/// Commits a range of a rank's segment, and makes it known to its network.
///
/// # Errors
/// An error of the system or of the network.
pub(crate) fn commit<N: Network + ?Sized>(node: &Member, network: &N, range: Range<usize>) -> io::Result<()> {
    node.commit(range.clone())?;
    if let Err(error) = network.opens(range.clone()) {
        // After the end of the job an adapter may have it, so it stays.
        if error.kind() != io::ErrorKind::Interrupted {
            node.release(range)?;
        }
        return Err(error);
    }
    Ok(())
}

impl Member {
    /// A rank in a process that has `threads` threads when the program starts none.
    pub(crate) fn new(fabric: Arc<Fabric>, topology: Topology, cores: usize, threads: usize) -> Self {
        let mut capabilities = Capabilities { window: usize::MAX, ..Capabilities::default() };
        capabilities.order = Order { put_put: true, put_get: true };
        capabilities.granule = fabric.mapping.granule();
        capabilities.progress = Progress::Hardware;
        capabilities.native = Native { coherent: true, signals: true, ..Native::default() };
        capabilities.crowded = fabric.ranks() > cores;
        let patience = Patience::new(fabric.ranks(), cores);
        let own = topology.local(topology.rank());
        let (start, done) = (Instant::now(), Mutex::default());
        let supervisor = Arc::new(Supervisor::new(fabric.clone(), topology.clone(), start));
        let calls = [const { AtomicU64::new(0) }; CALLS];
        Member { fabric, topology, own, capabilities, patience, start, supervisor, calls, threads, done }
    }

    pub(crate) fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    pub(crate) fn supervisor(&self) -> &Arc<Supervisor> {
        &self.supervisor
    }

    /// This member on a machine cut into nodes of at most `most` ranks. `crowded` is what its capabilities announce.
    #[cfg(test)]
    pub(crate) fn split(self, most: usize, crowded: bool) -> Self {
        let capabilities = Capabilities { crowded, ..self.capabilities };
        Member { topology: self.topology.with_ranks_per_node(most), capabilities, ..self }
    }

    /// Returns true if `poll` would report something.
    pub(crate) fn has_news(&self) -> bool {
        self.fabric.has_mail(self.own) || !self.done.lock().is_empty()
    }

    fn report(&self, event: Event) {
        self.done.lock().push_back(event);
    }

    /// A range of this rank's segment; its last piece may reach beyond the end.
    fn in_mapping(&self, range: Range<usize>) -> Range<usize> {
        let start = self.fabric.segment_start(self.own);
        start + range.start..start + range.end.min(self.segment_len())
    }
}

impl Operations for Member {
    fn cancel(&self, _: Token) {}

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, _token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.write(self.topology.local(to.rank), to.offset, local) };
        Issued::Complete
    }

    unsafe fn get(&self, from: Remote, local: Local, _token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.read(self.topology.local(from.rank), from.offset, local) };
        Issued::Complete
    }

    fn flush(&self, _rank: usize, token: Token) {
        std::sync::atomic::fence(Ordering::SeqCst);
        self.report(Event::RemoteDone(token));
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        self.fabric.mail(self.topology.local(rank), self.topology.rank(), mail)
    }

    fn poll(&self, events: &mut Events) {
        // If two threads of a rank poll at once, the second has nothing to do.
        let Some(mut done) = self.done.try_lock() else { return };
        events.extend(done.drain(..));
        while let Some((from, mail)) = self.fabric.take_mail(self.own) {
            events.push(Event::Mail(from, mail));
        }
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, _token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.write_signal(self.topology.local(to.rank), to.offset, local, signal) };
        Issued::Complete
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        // SAFETY: the caller's promise.
        let old = unsafe { self.fabric.apply(self.topology.local(word.rank), word.offset, atomic) };
        self.report(Event::Value(token, old));
    }
}

impl Conduit for Member {
    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn segment(&self) -> NonNull<u8> {
        self.fabric.segment(self.own)
    }

    fn segment_len(&self) -> usize {
        self.fabric.segment_len()
    }

    fn mapped(&self, rank: usize) -> Option<NonNull<u8>> {
        Some(self.fabric.segment(self.topology.local(rank)))
    }

    fn one_copy(&self, list: &[usize]) -> Arc<[usize]> {
        self.fabric.one_copy(list)
    }

    fn commit(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.in_mapping(range);
        self.fabric.mapping.commit(range.clone())?;
        self.fabric.committed().fetch_add(range.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.in_mapping(range);
        self.fabric.mapping.release(range.clone())?;
        self.fabric.committed().fetch_sub(range.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn committed(&self) -> u64 {
        self.fabric.committed().load(Ordering::Relaxed)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait(&self, limit: Duration) {
        let control = self.fabric.control(self.own);
        let seen = control.bell.load();
        if !self.has_news() {
            self.patience.wait(&control.bell, seen, limit);
        }
    }

    #[inline]
    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        if word.load() == seen {
            self.patience.wait(word, seen, limit);
        }
    }

    fn let_go(&self) {
        self.fabric.let_go();
    }

    fn over(&self) -> &AtomicU32 {
        self.fabric.over()
    }

    fn over_cause(&self) -> String {
        self.fabric.cause()
    }

    fn end(&self, cause: &str) {
        self.fabric.end(Some(self.topology.rank()), cause);
    }

    fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        Some(self.fabric.place(self.topology.local(rank)))
    }

    #[inline]
    fn publish(&self, place: [u64; 2]) {
        for (to, word) in self.fabric.control(self.own).place.iter().zip(place) {
            to.store(word, Ordering::Relaxed);
        }
    }

    #[inline]
    fn name_call(&self, key: u64, text: &dyn Fn() -> String) -> u64 {
        let slot = (key >> (u64::BITS - CALLS.ilog2())) as usize;
        let published = (key & TAG) | (slot as u64 + 1);
        if self.calls[slot].load(Ordering::Relaxed) != key {
            self.fabric.control(self.own).calls[slot].set(published, &text());
            self.calls[slot].store(key, Ordering::Relaxed);
        }
        published
    }

    fn call(&self, rank: usize, published: u64) -> String {
        self.fabric.call(self.topology.local(rank), published)
    }

    fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        let control = self.fabric.control(self.own);
        // Another thread of the rank may do what the awaited one waits for.
        let are_known = || process::threads().is_ok_and(|threads| threads <= self.threads);
        let awaited = awaited.filter(|_| self.threads == usize::MAX || are_known());
        let word = control.wait.load(Ordering::Relaxed);
        if awaited.is_some() && PublishedWait::word_after(word, awaited) != word {
            control.object.set(object);
        }
        // Release pairs with the Acquire in `published_wait`: what was done before this wait is seen with it.
        let publish = |last: u64| Some(PublishedWait::word_after(last, awaited)).filter(|&next| next != last);
        // Threads of the rank may come here together: each counts the change that it made.
        match control.wait.fetch_update(Ordering::Release, Ordering::Relaxed, publish) {
            Ok(last) if !PublishedWait::is_wait(last) => self.fabric.header().waits.fetch_add(1, Ordering::Relaxed),
            Ok(_) if awaited.is_none() => self.fabric.header().waits.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        control.looks.fetch_add(1, Ordering::Release);
    }

    fn publish_end(&self) {
        // Release pairs with the Acquire in `has_ended`: what was done before is seen with it.
        self.fabric.control(self.own).ended.store(1, Ordering::Release);
        self.fabric.header().ended.fetch_add(1, Ordering::Release);
    }

    fn has_ended(&self, rank: usize) -> bool {
        self.fabric.has_ended(self.topology.local(rank))
    }

    fn knows_ends(&self) -> bool {
        self.fabric.ends() > 0
    }

    fn have_others_ended(&self) -> bool {
        // This rank may be one of those that have.
        let own = usize::from(self.fabric.has_ended(self.own));
        self.fabric.ends() + 1 >= self.fabric.ranks() + own
    }

    fn published_wait(&self, rank: usize, _hops: usize) -> Option<PublishedWait> {
        let at = self.now();
        let (wait, looks) = self.fabric.wait_words(self.topology.local(rank));
        PublishedWait::of_words(wait, looks, self.topology.size(), at)
    }

    fn published_object(&self, rank: usize) -> String {
        self.fabric.object(self.topology.local(rank))
    }

    fn look_at_all(&self) -> Option<String> {
        self.supervisor.look_at_all(self.now()).1
    }
}
