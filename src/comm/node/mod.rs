//! What the ranks of one node share, whatever network joins the nodes; and what their supervisors say to other machines.
//!
//! ```text
//!  | header | rank 0: control, inbox | rank 1 | ... | tables of the topology | segment of rank 0 | segment of rank 1 | ...
//! ```
//!
//! Segments are reserved by address and grow by committing.

mod access;
mod alive;
mod conduit;
mod control;
mod ending;
mod errands;
mod far;
mod held;
pub(super) mod helper;
mod inbox;
pub(crate) mod loopback;
mod member;
mod published;
mod supervision;
mod supervisor;
mod wait;

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    io,
    ptr::NonNull,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

pub(crate) use super::waist::note::{Note, What};
pub(crate) use alive::Held;
pub(crate) use alive::{Fate, Side};
pub(crate) use conduit::Conduit;
pub use ending::ended_by;
pub(crate) use errands::Errand;
pub(crate) use far::TOLD;
pub(crate) use held::HeldLetters;
pub(crate) use member::Member;
pub(crate) use published::PublishedWait;
pub(crate) use supervisor::{CALL_SHIFT, Supervisor};
pub(crate) use wait::Patience;

use self::{
    control::{JobControl, RankControl},
    helper::{Answers, RECENTLY},
    inbox::Inbox,
};
use super::{Spot, kit::mutex::Mutex};
use crate::{
    error::Error,
    memory::{
        children::Instead,
        mapping::{Mapping, MemoryFile},
    },
};
use rustix::fd::{OwnedFd, RawFd};

/// A refusal of [`Fabric::keep_from_children`].
pub(crate) fn keeping(error: io::Error) -> Error {
    Error::system("keeping the heap from children of this process", error)
}

const PAGE: usize = 4096;

/// The purpose of a ring of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Frames of active messages.
    Requests,
    Replies,
}

/// Rings of each rank.
const RINGS: usize = 2;

/// Bytes of a packet.
pub(crate) const PACKET: usize = 112;

/// The shared mapping of a node.
#[derive(Debug)]
pub(crate) struct Fabric {
    mapping: Mapping,
    ranks: usize,
    /// Entries of the tables of a topology.
    spots: usize,
    /// Offset of the first segment.
    first: usize,
    segment: usize,
    /// Lists of ranks that ranks of this process have, by their hashes.
    lists: Mutex<HashMap<u64, Weak<[usize]>>>,
    /// Ranks of this process that have no object left whose memory is here.
    empty_handed: AtomicUsize,
    /// What answers for each rank of this process.
    answers: Mutex<Vec<Weak<dyn Answers>>>,
}

/// The tables of the topology that it was made with.
impl AsRef<[Spot]> for Fabric {
    fn as_ref(&self) -> &[Spot] {
        self.tables()
    }
}

impl Fabric {
    /// Reserves address space for `ranks` segments of `heap` bytes each, or of the largest half, quarter ... that can be had.
    /// Segments begin at a multiple of the file's granule: no two ranks share a page.
    ///
    /// # Errors
    /// An error of the system, when not even a small heap can be mapped.
    pub(crate) fn new(ranks: usize, heap: usize, large_pages: bool) -> io::Result<Self> {
        Self::with_tables(ranks, heap, large_pages, &[])
    }

    /// As [`new`](Self::new), with tables of a topology for all ranks that attach.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub(crate) fn with_tables(ranks: usize, heap: usize, large_pages: bool, tables: &[Spot]) -> io::Result<Self> {
        /// Below this nothing useful fits.
        const LEAST: usize = 1 << 20;
        let mut file = MemoryFile::new(large_pages)?;
        let granule = file.granule();
        let spots = tables.len();
        let first = Self::first(ranks, granule, spots);
        let mut segment = heap.max(LEAST).next_multiple_of(granule);
        loop {
            let Some(len) = segment.checked_mul(ranks).and_then(|all| all.checked_add(first)) else {
                segment = (segment / 2).next_multiple_of(granule);
                continue;
            };
            file = match Mapping::reserve(file, len) {
                Ok(mapping) => {
                    if mapping.has_large_pages() {
                        // Of a few ranks only; thousands have small pages, and touch few of their control pages.
                        mapping.commit(0..first)?;
                    }
                    // SAFETY: `tables.len()` entries lie there, before the first segment, and nobody else has the mapping yet.
                    unsafe {
                        let to = mapping.base().add(Self::tables_start(ranks)).cast::<Spot>();
                        to.copy_from_nonoverlapping(NonNull::from(tables).cast(), spots);
                    }
                    return Ok(Fabric {
                        mapping,
                        ranks,
                        spots,
                        first,
                        segment,
                        lists: Mutex::default(),
                        empty_handed: AtomicUsize::new(0),
                        answers: Mutex::default(),
                    });
                }
                Err((_, error)) if segment / 2 < LEAST.max(granule) => return Err(error),
                Err((file, _)) => file,
            };
            segment = (segment / 2).next_multiple_of(granule);
        }
    }

    /// The same mapping in another process, from its file: all values are those of the process that made it.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn attach(file: OwnedFd, granule: usize, ranks: usize, spots: usize, segment: usize) -> io::Result<Self> {
        let first = Self::first(ranks, granule, spots);
        let len = segment.checked_mul(ranks).and_then(|all| all.checked_add(first)).ok_or(rustix::io::Errno::NOMEM)?;
        let mapping = Mapping::reserve(MemoryFile::opened(file, granule), len).map_err(|(_, error)| error)?;
        let (lists, empty_handed, answers) = (Mutex::default(), AtomicUsize::new(0), Mutex::default());
        Ok(Fabric { mapping, ranks, spots, first, segment, lists, empty_handed, answers })
    }

    /// Keeps the mapping from children of the calling process. That takes part in the job or supervises it, and starts no more
    /// ranks. In its place a child finds control pages of its own, in which the job is over, and segments that it cannot touch.
    /// Call it once in each process.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn keep_from_children(&self) -> io::Result<()> {
        let mark = |control: NonNull<u8>| {
            // SAFETY: the private pages begin where the header was; it holds atomics only, for which zeros are valid.
            unsafe { control.cast::<JobControl>().as_ref() }.inherit();
        };
        self.mapping.keep_from_children(Instead { private: self.first, mark })
    }

    /// The tables that the mapping was made with.
    fn tables(&self) -> &[Spot] {
        // SAFETY: `spots` entries lie there. The process that made the mapping wrote them before others attached, and nobody
        // changes them. In a child of a rank's process there are zeros instead.
        unsafe {
            let start = self.mapping.base().add(Self::tables_start(self.ranks)).cast::<Spot>();
            NonNull::slice_from_raw_parts(start, self.spots).as_ref()
        }
    }

    /// The one copy of a list of ranks that the ranks of this process share.
    fn one_copy(&self, list: &[usize]) -> Arc<[usize]> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(list);
        let known = self.lists.lock().get(&hash).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| **known == *list) {
            return known;
        }
        let copy: Arc<[usize]> = list.into();
        let mut lists = self.lists.lock();
        // Another rank may have come first.
        if let Some(known) = lists.get(&hash).and_then(Weak::upgrade).filter(|known| **known == *list) {
            return known;
        }
        lists.retain(|_, list| list.strong_count() > 0);
        lists.insert(hash, Arc::downgrade(&copy));
        copy
    }

    /// Lets waiting threads of this process answer for a rank that does not look itself.
    pub(crate) fn answered_by(&self, answers: &Arc<dyn Answers>) {
        self.answers.lock().push(Arc::downgrade(answers));
    }

    /// Answers for the ranks of this process that do not look themselves. Returns true if there was anything.
    ///
    /// Ranks that are threads may share a pool of threads. Then all threads of the pool may wait for one rank, whose own thread waits for the
    /// pool.
    fn answer_for_neglected(&self) -> bool {
        let Some(mut answers) = self.answers.try_lock().filter(|answers| answers.len() > 1) else { return false };
        // A rank may be the last to let go of its network, which is for its own thread: not while others wait for the lock.
        let mut ranks = Vec::with_capacity(answers.len());
        answers.retain(|answers| answers.upgrade().inspect(|rank| ranks.push(rank.clone())).is_some());
        drop(answers);
        ranks.iter().filter(|rank| rank.since_looked() >= RECENTLY && rank.answer_once()).count() > 0
    }

    /// The descriptor of the file, for others to attach to.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.mapping.descriptor()
    }

    /// Bytes that are committed at once.
    pub(crate) fn granule(&self) -> usize {
        self.mapping.granule()
    }

    /// Writes the token of the job, before others attach.
    pub(crate) fn set_token(&self, token: [u64; 2]) {
        let words = &self.header().token;
        words.iter().zip(token).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
    }

    /// The first bytes of the mapping of a job with a token.
    pub(crate) fn token_bytes([first, second]: [u64; 2]) -> [u8; 16] {
        let (first, second) = (first.to_ne_bytes(), second.to_ne_bytes());
        std::array::from_fn(|k| if k < 8 { first[k] } else { second[k - 8] })
    }

    /// Offset of the tables of a topology.
    fn tables_start(ranks: usize) -> usize {
        Self::header_bytes() + ranks * Self::rank_bytes()
    }

    /// Offset of the first segment.
    fn first(ranks: usize, granule: usize, spots: usize) -> usize {
        (Self::tables_start(ranks) + spots * size_of::<Spot>()).next_multiple_of(granule)
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    /// Bytes of address space of each segment.
    pub(crate) fn segment_len(&self) -> usize {
        self.segment
    }

    /// First byte of a rank's segment.
    pub(crate) fn segment(&self, rank: usize) -> NonNull<u8> {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        // SAFETY: control pages and all segments lie inside the mapping.
        unsafe { self.mapping.base().add(self.segment_start(rank)) }
    }

    /// Offset of a segment inside the mapping.
    fn segment_start(&self, rank: usize) -> usize {
        self.first + rank * self.segment
    }

    fn header(&self) -> &JobControl {
        // SAFETY: the mapping begins with a header; it holds atomics only, for which zeros are valid, and lives as long as self.
        unsafe { self.mapping.base().cast::<JobControl>().as_ref() }
    }

    /// Bytes that all ranks have committed.
    fn committed(&self) -> &AtomicU64 {
        &self.header().committed
    }

    /// The call that a rank is in, or was in last.
    pub(super) fn place(&self, rank: usize) -> [u64; 2] {
        self.control(rank).place.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// The text of a call that a rank has published.
    fn call(&self, rank: usize, published: u64) -> String {
        let place = (published & !control::TAG) as usize;
        let call = place.checked_sub(1).and_then(|place| self.control(rank).calls.get(place));
        call.and_then(|call| call.get(published)).unwrap_or_default()
    }

    /// The wait that a rank has published, and its number of looks. They are looks of this wait or of a later one.
    fn wait_words(&self, rank: usize) -> (u64, u64) {
        let control = self.control(rank);
        loop {
            let wait = control.wait.load(Ordering::Acquire);
            let looks = control.looks.load(Ordering::Acquire);
            // Taking a wait back counts as a look too: not as one of the wait that it ended.
            if control.wait.load(Ordering::Acquire) == wait {
                return (wait, looks);
            }
        }
    }

    /// Shows a wait of a rank, or none, as if the rank had published it.
    #[cfg(test)]
    pub(crate) fn show_wait(&self, rank: usize, wait: Option<PublishedWait>) {
        let word = wait.map_or(0, |wait| u64::from(wait.number) << 32 | (wait.awaited as u64 + 1));
        self.control(rank).wait.store(word, Ordering::Release);
        self.control(rank).looks.store(wait.map_or(0, |wait| wait.looks), Ordering::Release);
    }

    /// What the wait that a rank published last is for.
    fn object(&self, rank: usize) -> String {
        self.control(rank).object.get()
    }

    /// Returns true if a rank waits for the end of the job.
    fn has_ended(&self, rank: usize) -> bool {
        self.control(rank).ended.load(Ordering::Acquire) != 0
    }

    /// The number of ranks that wait for the end of the job.
    pub(super) fn ends(&self) -> usize {
        self.header().ended.load(Ordering::Acquire) as usize
    }

    /// The number of ranks that have published a wait and not taken it back.
    fn waits(&self) -> usize {
        self.header().waits.load(Ordering::Relaxed) as usize
    }

    fn control(&self, rank: usize) -> &RankControl {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let offset = Self::header_bytes() + rank * Self::rank_bytes();
        // SAFETY: the control page of every rank lies inside the mapping. It holds atomics only, for which zeros are valid, and
        // memory for a lock that says when it is one.
        unsafe { self.mapping.base().add(offset).cast::<RankControl>().as_ref() }
    }

    /// A ring of packets for a rank.
    fn ring(&self, rank: usize, what: Use) -> &Inbox {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let offset =
            Self::header_bytes() + rank * Self::rank_bytes() + size_of::<RankControl>() + what as usize * size_of::<Inbox>();
        // SAFETY: the rings of every rank lie inside the mapping behind its control page; zeros are an empty ring.
        unsafe { self.mapping.base().add(offset).cast::<Inbox>().as_ref() }
    }

    fn header_bytes() -> usize {
        size_of::<JobControl>().next_multiple_of(PAGE)
    }

    fn rank_bytes() -> usize {
        (size_of::<RankControl>() + RINGS * size_of::<Inbox>()).next_multiple_of(PAGE)
    }
}
