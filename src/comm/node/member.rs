//! One rank's view of its machine: the memory that it has mapped, and the bell that wakes it.
//!
//! Groups that have members elsewhere put and get here.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    ptr::NonNull,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Fabric, Patience, Supervisor};
use crate::comm::{
    Capabilities, Event, Events, Issued, Local, Native, Operation, Ordering as Order, Progress, Remote, Token, Topology,
    WaitWord, kit::mutex::Mutex,
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
    /// Threads of this process that act for no rank but their own: those of ranks, and the thread that waits for them to end. `None` if no
    /// thread may act for another's rank.
    threads: Option<usize>,
    /// What was done at once and is still to be reported.
    done: Mutex<VecDeque<Event>>,
}

impl Member {
    /// A rank in a process that has `threads` threads when the program starts none; `None` if threads of the program never act for it.
    pub(crate) fn new(fabric: Arc<Fabric>, topology: Topology, cores: usize, threads: Option<usize>) -> Self {
        let capabilities = Capabilities {
            order: Order { put_put: true, put_get: true },
            granule: fabric.mapping.granule(),
            progress: Progress::Hardware,
            native: Native { coherent: 8, signals: true, ..Native::default() },
            crowded: fabric.ranks() > cores,
            ..Capabilities::default()
        };
        let patience = Patience::new(fabric.ranks(), cores);
        let own = topology.local(topology.rank());
        let (start, done) = (Instant::now(), Mutex::default());
        let supervisor = Arc::new(Supervisor::new(fabric.clone(), topology.clone(), start));
        Member { fabric, topology, own, capabilities, patience, start, supervisor, threads, done }
    }

    pub(crate) fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The rank's number on the machine.
    pub(super) fn own(&self) -> usize {
        self.own
    }

    pub(super) fn threads(&self) -> Option<usize> {
        self.threads
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
        !self.done.lock().is_empty()
    }

    /// A range of this rank's segment; its last piece may reach beyond the end.
    fn in_mapping(&self, range: Range<usize>) -> Range<usize> {
        let start = self.fabric.segment_start(self.own);
        start + range.start..start + range.end.min(self.fabric.segment_len())
    }

    /// Writes to the segment of a rank of this machine.
    ///
    /// # Safety
    /// As [`Operation`] says.
    #[inline]
    pub(super) unsafe fn put(&self, to: Remote, local: Local) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.write(self.topology.local(to.rank), to.offset, local) };
        Issued::Complete
    }

    /// Reads from the segment of a rank of this machine.
    ///
    /// # Safety
    /// As [`Operation`] says.
    #[inline]
    pub(super) unsafe fn get(&self, from: Remote, local: Local) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.fabric.read(self.topology.local(from.rank), from.offset, local) };
        Issued::Complete
    }

    /// Carries out an operation on a rank of this machine.
    ///
    /// # Safety
    /// As [`Operation`] says.
    #[inline]
    pub(super) unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let (issued, event) = unsafe { self.fabric.carry_out(&self.topology, operation, token) };
        if let Some(event) = event {
            self.done.lock().push_back(event);
        }
        issued
    }

    pub(super) fn poll(&self, events: &mut Events) {
        // If two threads of a rank poll at once, the second has nothing to do.
        let Some(mut done) = self.done.try_lock() else { return };
        events.extend(done.drain(..));
    }

    pub(super) fn segment(&self) -> NonNull<u8> {
        self.fabric.segment(self.own)
    }

    /// First byte of the segment of a rank of this machine.
    pub(super) fn mapped(&self, rank: usize) -> NonNull<u8> {
        self.fabric.segment(self.topology.local(rank))
    }

    pub(super) fn commit(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.in_mapping(range);
        self.fabric.mapping.commit(range.clone())?;
        self.fabric.committed().fetch_add(range.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn release(&self, range: Range<usize>) -> io::Result<()> {
        let range = self.in_mapping(range);
        self.fabric.mapping.release(range.clone())?;
        self.fabric.committed().fetch_sub(range.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits for the bell, at most `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        let control = self.fabric.control(self.own);
        let seen = control.bell.load();
        if !self.has_news() {
            self.patience.wait(&control.bell, seen, limit);
        }
    }

    #[inline]
    pub(super) fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration) {
        if word.load() == seen {
            self.patience.wait(word, seen, limit);
        }
    }
}
