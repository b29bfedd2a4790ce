//! The part of a job that its groups share.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

#[cfg(feature = "rayon")]
use super::pool::Workers;
use super::{Scratch, counts::Counts, mail::Mail, members::Members, reclaim::LiveBlocks};
use crate::{
    comm::{Conduit, engine::Engine},
    error::{Error, Result},
    memory::heap::Heap,
};

/// Bytes of an accumulate lock, with a cache line for itself.
const WORD: usize = 64;
/// Bytes of the two of a rank.
const LOCKS: usize = 2 * WORD;

/// What all groups of a rank share: its engine, its heap, what it counts.
#[derive(Debug)]
pub(crate) struct JobState {
    pub(crate) engine: Arc<Engine>,
    heap: Mutex<Heap>,
    /// The scratch memory of groups that this rank made, by their ranks.
    groups: Mutex<HashMap<Members, LiveBlocks>>,
    /// Offset of the word that guards accumulates into a rank's memory by the processors of its node, for themselves and for what
    /// arrives; the same on every rank.
    pub(crate) accumulate_lock: usize,
    pub(crate) mail: Mail,
    pub(super) memory_limit: Option<u64>,
    /// What this rank did to whom, if the job counts it.
    pub(crate) counts: Option<Counts>,
    /// A thread of this rank is creating something: offsets and numbers are given in the same order on all ranks only if creations
    /// of a rank come one after the other.
    creating: AtomicBool,
    /// Done once a line has named what is slow for want of a library.
    #[cfg(feature = "faer")]
    told: std::sync::Once,
    /// The threads of this rank.
    #[cfg(feature = "rayon")]
    pub(super) workers: Workers,
}

impl JobState {
    /// Takes the first blocks of every segment: the words that guard accumulates, the mail, and the world's scratch memory, whose
    /// offset is the second answer.
    pub(crate) fn new(
        conduit: Arc<Conduit>,
        timeout: Option<f64>,
        memory_limit: Option<u64>,
        counted: bool,
        #[cfg_attr(not(feature = "rayon"), allow(unused_variables))] (threads, pinned): (usize, bool),
    ) -> Result<(Self, usize)> {
        let mut heap = Heap::new(conduit.segment_len(), conduit.capabilities().granule);
        let full = |asked: usize| {
            let heap = conduit.segment_len() as u64;
            move |available: usize| Error::HeapFull {
                operation: "start".into(),
                what: "the job".into(),
                asked: asked as u64,
                available: available as u64,
                heap,
            }
        };
        // The same calls on every rank, so the same offsets.
        let mut take = |bytes: usize| {
            let block = heap.find_low(bytes, heap.mark()).map_err(full(bytes))?;
            heap.take_low(block, bytes);
            Ok::<_, Error>(block)
        };
        let accumulate_lock = take(LOCKS)?;
        let mail = take(Mail::bytes())?;
        let scratch = take(Scratch::bytes(conduit.topology().size()))?;
        for range in heap.uncommitted(0..heap.low_end()) {
            conduit.commit(range.clone()).map_err(|e| Error::system("committing memory for the job", e))?;
            heap.set_committed(range);
        }
        let state = JobState {
            engine: Arc::new(Engine::new(conduit, timeout)),
            heap: Mutex::new(heap),
            groups: Mutex::default(),
            accumulate_lock,
            mail: Mail::new(mail),
            memory_limit,
            counts: counted.then(Counts::default),
            creating: AtomicBool::new(false),
            #[cfg(feature = "faer")]
            told: std::sync::Once::new(),
            #[cfg(feature = "rayon")]
            workers: Workers::new(threads, pinned),
        };
        Ok((state, scratch))
    }

    pub(crate) fn conduit(&self) -> &Conduit {
        self.engine.conduit()
    }

    /// Offset of the word that guards accumulates by the network. They are those of other groups, or of types that owners cannot
    /// add, so of other arrays; a word of their own keeps the two paths apart.
    pub(crate) fn remote_lock(&self) -> usize {
        self.accumulate_lock + WORD
    }

    /// The right to change what the heap holds; one thread of a rank at a time.
    pub(crate) fn creating(&self, operation: &'static str) -> Result<Creating<'_>> {
        // Acquire pairs with the Release of the thread that left.
        if self.creating.swap(true, Ordering::Acquire) {
            return Err(Error::Busy { operation: operation.into(), rank: self.engine.rank() });
        }
        Ok(Creating(&self.creating))
    }

    /// Prints a line if the calling rank is 0 and has printed none by this.
    #[cfg(feature = "faer")]
    pub(crate) fn say_once(&self, line: &str) {
        if self.engine.rank() == 0 {
            self.told.call_once(|| crate::comm::kit::say::say(line));
        }
    }

    /// What `pool` does by several threads.
    #[cfg(not(feature = "rayon"))]
    pub(crate) fn share<R: Send>(&self, count: usize, work: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
        (0..count).map(work).collect()
    }

    /// See `pool`.
    #[cfg(not(feature = "rayon"))]
    pub(crate) fn sharers(&self) -> usize {
        1
    }

    pub(crate) fn heap(&self) -> MutexGuard<'_, Heap> {
        self.heap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the scratch memory of groups of a list of ranks.
    pub(super) fn with_groups_of<R>(&self, ranks: &Members, work: impl FnOnce(&mut LiveBlocks) -> R) -> R {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        work(groups.entry(ranks.clone()).or_default())
    }
}

/// Arrays, groups and what belongs to them hold the state; transfers that were forgotten do not.
impl Drop for JobState {
    fn drop(&mut self) {
        self.conduit().let_go();
    }
}

/// Given back when dropped.
#[derive(Debug)]
pub(crate) struct Creating<'a>(&'a AtomicBool);

impl Drop for Creating<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
