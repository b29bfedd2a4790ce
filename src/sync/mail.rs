//! Mail: letters between ranks that share no memory of a group yet, in the creation of groups and of channels.
//!
//! Each rank has one ring, at a place that is the same on all of them. Letters name what they are for by a key; those that come early are kept.
//! A rank that waits, to send or to receive, takes its letters in: so no two wait for room at each other.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustc_hash::FxHashMap;

use crate::{
    comm::engine::{Engine, Label, Waiter, append::FarRing},
    error::Result,
    memory::ring::{Letter, Ring},
};

/// Slots of a ring, one for each letter.
const SLOTS: usize = 64;
/// The words of a letter.
type Words = [u64; 2];

/// The mail of a rank.
#[derive(Debug)]
pub(crate) struct Mail {
    /// Where each rank has its ring.
    offset: usize,
    /// The slots that were read.
    position: AtomicU64,
    post: Mutex<Post>,
}

#[derive(Debug, Default)]
struct Post {
    /// Letters that were taken in, by their keys.
    kept: FxHashMap<u64, VecDeque<(usize, Words)>>,
    /// The letter that was taken last.
    came: Vec<u64>,
    /// The rings that this rank has written to.
    far: FxHashMap<usize, FarRing>,
}

impl Mail {
    /// Bytes of a ring.
    pub(super) fn bytes() -> usize {
        Ring::bytes(SLOTS)
    }

    /// With empty rings.
    pub(super) fn new(offset: usize) -> Self {
        Mail { offset, position: AtomicU64::new(0), post: Mutex::default() }
    }

    /// Sends words to a rank. The waiter says so while its ring is full.
    ///
    /// # Errors
    /// What the waiter says; a failed transfer.
    pub(crate) fn send(&self, engine: &Engine, rank: usize, key: u64, [a, b]: Words, waiter: &dyn Waiter) -> Result<()> {
        let label = Label::new("(mail)", "creation");
        let words = [key, a, b];
        let letter = Letter { from: engine.rank(), words: &words, payload: &[] };
        engine.check(label.operation)?;
        engine.take_turns(waiter, || {
            let mut post = self.take_in(engine);
            let ring = post.far.entry(rank).or_insert_with(|| engine.ring_of_rank(rank, [self.offset, SLOTS]));
            // Members fail alike: not because of older puts of one.
            engine.append_beside(ring, &letter, &label).map(|sent| sent.then_some(())).transpose()
        })?
    }

    /// The sender and the words of the next letter with a key.
    ///
    /// # Errors
    /// What the waiter says.
    pub(crate) fn receive(&self, engine: &Engine, key: u64, waiter: &dyn Waiter) -> Result<(usize, Words)> {
        loop {
            let mut post = self.take_in(engine);
            let position = self.position.load(Ordering::Relaxed);
            if let Some(queue) = post.kept.get_mut(&key)
                && let Some(first) = queue.pop_front()
            {
                if queue.is_empty() {
                    post.kept.remove(&key);
                }
                return Ok(first);
            }
            drop(post);
            let segment = engine.own_segment();
            let (word, stamp) = segment.ring(self.offset, SLOTS).stamp(position);
            // Another thread of the rank may take it in.
            let is_taken = || self.position.load(Ordering::Relaxed) != position;
            engine.wait_word(word, waiter, |seen| seen == stamp || is_taken())?;
        }
    }

    /// Returns true if no letter is on its way into this rank's ring. Until then nobody knows whether the one that it waits for is among them.
    pub(crate) fn is_clear(&self, engine: &Engine) -> bool {
        engine.own_segment().ring(self.offset, SLOTS).is_clear(self.position.load(Ordering::Relaxed))
    }

    /// Takes in what is in the ring.
    fn take_in(&self, engine: &Engine) -> MutexGuard<'_, Post> {
        let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
        let segment = engine.own_segment();
        let (ring, mut position) = (segment.ring(self.offset, SLOTS), self.position.load(Ordering::Relaxed));
        let Post { kept, came, .. } = &mut *post;
        let before = position;
        while let Some(from) = ring.read(&mut position, came) {
            if let [key, a, b] = came[..] {
                kept.entry(key).or_default().push_back((from, [a, b]));
            }
        }
        if position != before {
            self.position.store(position, Ordering::Relaxed);
            ring.free(position);
        }
        post
    }
}
