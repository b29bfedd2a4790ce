//! Control pages: the place of each rank, and what ended the job. Atomics only, and a lock; zeros are the initial state.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::ending::INHERITED;
use crate::memory::word::WaitWord;

/// The job's part of the control pages.
#[repr(C, align(128))]
pub(super) struct JobControl {
    /// The job's token, which no other job has, where a launcher started the ranks. The first bytes of the mapping.
    pub(super) token: [AtomicU64; 2],
    pub(super) over: AtomicU32,
    /// The rank that ended the job, plus one.
    pub(super) culprit: AtomicU32,
    /// Not zero if the job ended because a machine does not answer.
    pub(super) lost: AtomicU32,
    /// The number of ranks that have published that they wait for the end of the job.
    pub(super) ended: AtomicU32,
    /// The number of ranks that have published a wait and not taken it back.
    pub(super) waits: AtomicU32,
    /// Bytes that the ranks have committed.
    pub(super) committed: AtomicU64,
    pub(super) cause: Text,
}

/// Why the job is over for a child of a rank.
const FORKED: &str = "this process was forked by a rank of it, and its handles are those of its parent";

impl JobControl {
    /// In a child of a process that takes part in the job, on a page of its own in the header's place.
    pub(super) fn inherit(&self) {
        self.cause.set(FORKED);
        self.over.store(INHERITED, Ordering::Release);
    }
}

/// The number of call texts that a rank keeps.
pub(super) const CALLS: usize = 8;

/// The bits that tell a published call from others that had the same place. The lowest bits of a published call are its place
/// plus one.
pub(super) const TAG: u64 = 0xffff_ff00;

/// The text of a call.
#[repr(C)]
pub(super) struct CallText {
    /// The number that was published for it.
    published: AtomicU64,
    text: Text<160>,
}

impl CallText {
    pub(super) fn set(&self, published: u64, text: &str) {
        self.published.store(0, Ordering::Release);
        self.text.set(text);
        self.published.store(published, Ordering::Release);
    }

    /// The text, if it is that of the call.
    pub(super) fn get(&self, published: u64) -> Option<String> {
        let is_it = || self.published.load(Ordering::Acquire) == published;
        is_it().then(|| self.text.get()).filter(|_| is_it())
    }
}

/// A rank's control page.
#[repr(C, align(128))]
pub(super) struct RankControl {
    /// Counts messages that arrived; waited on.
    pub(super) bell: WaitWord,
    /// The call that the rank is in, for messages about a missing rank.
    pub(super) place: [AtomicU64; 2],
    /// Texts of calls that the rank is in, or was in.
    pub(super) calls: [CallText; CALLS],
    /// A wait that has lasted: its number in the upper half, the awaited rank plus one in the lower one.
    pub(super) wait: AtomicU64,
    /// The number of looks in such waits that did not find what the rank waits for.
    pub(super) looks: AtomicU64,
    /// What the wait is for, for people. A reader that sees the wait sees its text, or that of a later one.
    pub(super) object: Text<256>,
    /// Set when it waits for the end of the job.
    pub(super) ended: AtomicU32,
    /// Set when its body returned well: an exit without that is no orderly end.
    pub(super) finished: AtomicU32,
    /// Its process, once that holds the locks below.
    pub(super) process: AtomicU32,
    /// Held while its process lives, for a neighbour on each side.
    pub(super) alive: [super::alive::Alive; 2],
    /// The rank's errand for its agent.
    pub(super) desk: Desk,
    /// Why the rank ended.
    pub(super) last_words: Text,
}

/// A rank's errand for its agent: see `errands`.
#[repr(C)]
pub(super) struct Desk {
    /// A thread that changes it is done with the other words.
    pub(super) state: AtomicU32,
    /// The number of errands that were brought to this rank.
    pub(super) brought: AtomicU32,
    pub(super) range: [AtomicU64; 2],
    pub(super) why: Text<400>,
}

/// A text that one side writes and others read; a torn read can only give wrong words, never undefined behaviour.
#[repr(C)]
pub(super) struct Text<const MOST: usize = 1000> {
    len: AtomicUsize,
    bytes: [AtomicU8; MOST],
}

impl<const MOST: usize> Text<MOST> {
    /// Longer texts are cut at a character.
    pub(super) fn set(&self, text: &str) {
        let mut end = text.len().min(self.bytes.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        for (to, &byte) in self.bytes.iter().zip(&text.as_bytes()[..end]) {
            to.store(byte, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `get`.
        self.len.store(end, Ordering::Release);
    }

    pub(super) fn get(&self) -> String {
        let len = self.len.load(Ordering::Acquire).min(self.bytes.len());
        let bytes: Vec<u8> = self.bytes[..len].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
