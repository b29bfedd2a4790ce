//! What the engine drives.

use std::{io, ops::Range, ptr::NonNull, sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use crate::comm::{Connections, Events, Operations, Topology, WaitWord};

/// The value of [`Conduit::over`] in a process that was forked by a rank: the job is its parent's. Nothing that a network shares
/// with the parent may be touched, and nobody touches this process's memory for the job: transfers under way are the parent's.
pub(crate) const INHERITED: u32 = 3;

/// A wait of a rank that has lasted, as others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublishedWait {
    /// The rank that has to act before it can end; the waiting rank itself if any rank, or another of its threads, may do what it
    /// waits for.
    pub awaited: usize,
    /// Tells the waits of a rank apart.
    pub number: u32,
    /// Grows with every look that did not find what is waited for.
    pub looks: u64,
    /// It was so at this time or later, by the clock of the rank that reads it.
    pub at: Duration,
}

/// The half of a wait's word that names the awaited rank.
const AWAITED: u64 = u32::MAX as u64;

impl PublishedWait {
    /// From the words in which a rank publishes it: its number in the upper half of the first, the awaited rank plus one in the lower one.
    pub(crate) fn of_words(wait: u64, looks: u64, ranks: usize, at: Duration) -> Option<Self> {
        let awaited = ((wait & AWAITED) as usize).checked_sub(1).filter(|&awaited| awaited < ranks)?;
        Some(PublishedWait { awaited, number: (wait >> 32) as u32, looks, at })
    }

    /// The word of a wait behind one that was published before; the same if it is the same wait. Without an awaited rank, it is over.
    pub(crate) fn word_after(last: u64, awaited: Option<usize>) -> u64 {
        let code = awaited.map_or(0, |rank| rank as u64 + 1);
        if code == last & AWAITED { last } else { (last >> 32).wrapping_add(1) << 32 | code }
    }

    /// Returns true if a word names a wait.
    pub(crate) fn is_wait(word: u64) -> bool {
        word & AWAITED != 0
    }
}

/// What the engine drives: operations, where ranks and their memory are, waiting, supervision.
///
/// The essay of [`comm`](crate::comm) says what an implementer may assume and must keep.
pub(crate) trait Conduit: Operations {
    /// Where the ranks of the job are. Constant for the life of the conduit.
    fn topology(&self) -> &Topology;

    /// The calling rank, `0..size`.
    fn rank(&self) -> usize {
        self.topology().rank()
    }

    /// Number of ranks.
    fn size(&self) -> usize {
        self.topology().size()
    }

    /// First byte of the caller's own segment.
    fn segment(&self) -> NonNull<u8>;

    /// Bytes reserved for each segment; the same on every rank. Only committed ranges may be touched.
    fn segment_len(&self) -> usize;

    /// First byte of a rank's segment where loads and stores reach it, the caller's own included. The arrays then load and store by
    /// themselves. Either each rank can map the ranks of its node and no others, or no rank can map any, itself included. So
    /// mapping is symmetric: if one member can map the whole group, every member can, and the group does not use the network. Over
    /// other groups atomic operations, by the rule of [`Native::coherent`](crate::comm::Native::coherent), and accumulates that the
    /// conduit does not do itself ([`Native::accumulate`](crate::comm::Native::accumulate)) take `put`, `get` and `atomic` to every
    /// member, the caller itself included. Segments of consecutive ranks that are mapped lie `segment_len` bytes apart.
    fn mapped(&self, rank: usize) -> Option<NonNull<u8>>;

    /// A list of ranks, of which the ranks of a process keep one copy together.
    fn one_copy(&self, list: &[usize]) -> Arc<[usize]>;

    /// Makes a range of the caller's segment usable by everyone: pages, registration. Contents that it had stay.
    ///
    /// # Errors
    /// What the system says.
    fn commit(&self, range: Range<usize>) -> io::Result<()>;

    /// Gives a committed range back.
    ///
    /// # Errors
    /// What the system says.
    fn release(&self, range: Range<usize>) -> io::Result<()>;

    /// Bytes that all ranks of the caller's machine have committed and not released.
    fn committed(&self) -> u64;

    /// The connections of this rank, if the network between nodes has any.
    fn connections(&self) -> Option<Connections> {
        None
    }

    /// No object of this rank is left whose memory is in a segment; the rank may still hold transfers. Called once.
    fn let_go(&self) {}

    /// The body of this rank ended, well or not. Called once; what outlives the body may still call.
    fn body_ended(&self) {}

    /// The body of this rank returned well: returns when all that the rank sent was handled, or the job is over. It sends nothing more by
    /// itself.
    fn drain(&self) {}

    /// Behind [`drain`](Self::drain): returns when no other rank of the machine needs this one. Collective.
    fn leave(&self) {}

    /// Time since the conduit started.
    fn now(&self) -> Duration;

    /// A clock that the caller reads without moving it, and its number: ranks whose numbers are equal read the same clock.
    fn stamp(&self) -> (usize, Duration) {
        let time = clock_gettime(ClockId::Monotonic);
        (self.topology().machine(self.rank()), Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    /// The rank has carried out `flops` floating-point operations, with `bytes` bytes from and to memory. Where time is virtual,
    /// it passes.
    fn compute(&self, _flops: f64, _bytes: f64) {}

    /// Returns true if programs are to leave out what they compute, and arrays may go without contents.
    fn skips(&self) -> bool {
        false
    }

    /// Says whether what the caller has created at a range of its own and of others' segments has contents. If it has none, and the conduit
    /// [`skips`](Self::skips), the caller's puts and gets there take their time but move nothing.
    fn set_contents(&self, _range: Range<usize>, _has: bool) {}

    /// Polls for a wait that only a report can end. If nothing came, a conduit may look at the clock, wait and poll again, as the wait would do
    /// next. It sets `first` to the time of the first look that found nothing, and returns after a report, at the end of the job, or from the
    /// first look on that is at least `most` later.
    fn poll_patiently(&self, events: &mut Events, _first: &mut Option<Duration>, _most: Duration) {
        self.poll(events);
    }

    /// Returns when `poll` may have something to say, after `limit` at the latest. May return early.
    fn wait(&self, limit: Duration);

    /// Lets others go before the caller looks again at what changes without a word to it: as [`wait`](Self::wait), but time passes.
    fn pause(&self, limit: Duration) {
        self.wait(limit);
    }

    /// Returns when the word differs from `seen`, when `poll` may have something to say, or after `limit`. May return early.
    /// The word lies in the caller's own segment or in mapped memory.
    fn wait_on(&self, word: &WaitWord, seen: u32, limit: Duration);

    /// Non-zero once the job is over for this rank, because it ended or was ended; [`INHERITED`] in a child that the rank's process
    /// forked. Read on every operation.
    fn over(&self) -> &std::sync::atomic::AtomicU32;

    /// Why the job is over, for people.
    fn over_cause(&self) -> String;

    /// Ends the job for all ranks because of what this one did, `cause` without its number; the first cause stays.
    fn end(&self, cause: &str);

    /// What a rank was last seen in: the two words that it published by [`Conduit::publish`]. Of a rank of another machine, what it answered
    /// last; `None` if it was never asked, see [`Conduit::published_wait`].
    fn last_seen(&self, rank: usize) -> Option<[u64; 2]>;

    /// Publishes where this rank is, for messages about missing ranks. Called on entering every collective: a few stores.
    fn publish(&self, place: [u64; 2]);

    /// Remembers the text of a call under a number that tells calls apart, for [`call`](Self::call). Returns what to publish for
    /// it: 0 for none, else at most 32 bits. Cheap if the text is known; the texts of a few calls are.
    fn name_call(&self, key: u64, text: &dyn Fn() -> String) -> u64;

    /// The text that a rank has published for a call, if it still has it; of a rank of another machine, that of its last answer.
    fn call(&self, rank: usize, published: u64) -> String;

    /// Publishes that this rank waits for the orderly end of the job from now on. Called once, before [`publish`](Self::publish) says so.
    fn publish_end(&self);

    /// Returns true if a rank has called [`publish_end`](Self::publish_end), and all that it had put or sent was handled. Of a
    /// rank of another machine, what it answered last.
    fn has_ended(&self, rank: usize) -> bool;

    /// Returns true if any rank is known to have ended, as [`has_ended`](Self::has_ended) says.
    fn knows_ends(&self) -> bool;

    /// Returns true if all other ranks are known to have ended. Asks other machines if all of this one's have.
    fn have_others_ended(&self) -> bool;

    /// Tells the others that this rank looked again and still waits for an act of rank `awaited`; without one, that it does not
    /// wait for certain. `object` is what it waits for, for people: a lock or a signal; empty in a collective. Called by waits that
    /// have lasted, some times a second, and at the end of such a wait.
    ///
    /// Ranks that wait for each other in a cycle are ended for that, so a conduit does not publish a wait while a thread that it
    /// did not start may act for the rank, nor before all that the rank has put or sent was handled.
    fn publish_wait(&self, awaited: Option<usize>, object: &str);

    /// What a rank has published by [`Conduit::publish_wait`] and not taken back. Of a rank of another machine, what it answered
    /// last, or what others told of it. It is asked at once if `hops` is 0. Otherwise it is `hops` ranks behind one that is
    /// asked, in a chain of waits, and is asked itself only if no rank reports its wait.
    fn published_wait(&self, rank: usize, hops: usize) -> Option<PublishedWait>;

    /// The object of the wait that a rank published last, cut if it is long. Empty where it is not known.
    fn published_object(&self, rank: usize) -> String;

    /// Takes part in finding out whether all ranks of the job wait for good. A rank that waits calls it some times a second.
    /// Returns what the ranks wait for, if they do; only one of them gets it.
    fn look_at_all(&self) -> Option<String>;
}
