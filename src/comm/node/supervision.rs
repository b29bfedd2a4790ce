//! What a rank publishes about itself, and finds out about others.
//!
//! It reads the control pages of its machine, and asks the [`Supervisor`](super::Supervisor) about other machines.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{
    Fabric, PublishedWait,
    control::{CALLS, RankControl, TAG},
    member::Member,
};
use crate::comm::{Announcement, Conduit, kit::process};

/// What a rank has published.
#[derive(Debug)]
pub(super) struct Shown {
    /// The calls whose texts the control page holds.
    calls: [AtomicU64; CALLS],
    /// This rank has come to its end, and has not published it.
    ends: AtomicBool,
}

impl Default for Shown {
    fn default() -> Self {
        Shown { calls: [const { AtomicU64::new(0) }; CALLS], ends: AtomicBool::new(false) }
    }
}

/// A rank's supervision of others, and its words for theirs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supervision<'c> {
    conduit: &'c Conduit,
    member: &'c Member,
    shown: &'c Shown,
}

impl<'c> Supervision<'c> {
    pub(super) fn new(conduit: &'c Conduit, member: &'c Member, shown: &'c Shown) -> Self {
        Supervision { conduit, member, shown }
    }

    fn fabric(&self) -> &'c Arc<Fabric> {
        self.member.fabric()
    }

    fn own(&self) -> &'c RankControl {
        self.fabric().control(self.member.own())
    }

    /// The number of a rank on this machine.
    fn near(&self, rank: usize) -> Option<usize> {
        let topology = self.member.topology();
        topology.is_near(rank).then(|| topology.local(rank))
    }

    /// What a rank was last seen in: the two words that it published by [`publish`](Self::publish). `None` of a rank of another machine that was
    /// never asked, see [`published_wait`](Self::published_wait).
    pub(crate) fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        match self.near(rank) {
            Some(local) => Some(self.fabric().place(local)),
            None => self.member.supervisor().last_seen(rank),
        }
    }

    /// Publishes where this rank is, for messages about missing ranks. Called on entering every collective: a few stores.
    #[inline]
    pub(crate) fn publish(&self, place: [u64; 2]) {
        for (to, word) in self.own().place.iter().zip(place) {
            to.store(word, Ordering::Relaxed);
        }
    }

    /// Remembers the text of a call under a number that tells calls apart, for [`call`](Self::call). Returns what to publish for
    /// it: 0 for none, else at most 32 bits. Cheap if the text is known; the texts of a few calls are.
    #[inline]
    pub(crate) fn name_call(&self, key: u64, text: &dyn Fn() -> String) -> u64 {
        let slot = (key >> (u64::BITS - CALLS.ilog2())) as usize;
        let published = (key & TAG) | (slot as u64 + 1);
        if self.shown.calls[slot].load(Ordering::Relaxed) != key {
            self.own().calls[slot].set(published, &text());
            self.shown.calls[slot].store(key, Ordering::Relaxed);
        }
        published
    }

    /// The text that a rank has published for a call, if it still has it.
    pub(crate) fn call(&self, rank: usize, published: u64) -> String {
        match self.near(rank) {
            Some(local) => self.fabric().call(local, published),
            None => self.member.supervisor().call(rank),
        }
    }

    /// Publishes that this rank waits for the orderly end of the job from now on. Called once, before [`publish`](Self::publish) says so.
    ///
    /// To others it means that this rank does nothing more for them. So it may have to wait for a look that finds everything
    /// handled.
    pub(crate) fn publish_end(&self) {
        if self.conduit.is_inherited() {
            return;
        }
        let _inside = self.conduit.inside();
        if self.settled() == Some(true) {
            self.set_ended();
        } else {
            self.shown.ends.store(true, Ordering::Relaxed);
        }
    }

    fn set_ended(&self) {
        // Release pairs with the Acquire in `has_ended`: what was done before is seen with it.
        self.own().ended.store(1, Ordering::Release);
        self.fabric().header().ended.fetch_add(1, Ordering::Release);
    }

    fn settled(&self) -> Option<bool> {
        self.conduit.network().map_or(Some(true), |network| network.settled())
    }

    /// Returns true if a rank has called [`publish_end`](Self::publish_end), and all that it had put or sent was handled.
    pub(crate) fn has_ended(&self, rank: usize) -> bool {
        match self.near(rank) {
            Some(local) => self.fabric().has_ended(local),
            None => self.member.supervisor().has_ended(rank),
        }
    }

    /// Returns true if any rank is known to have ended, as [`has_ended`](Self::has_ended) says.
    pub(crate) fn knows_ends(&self) -> bool {
        self.fabric().ends() > 0 || self.member.supervisor().knows_ends()
    }

    /// Returns true if all other ranks are known to have ended. Asks other machines if all of this one's have.
    pub(crate) fn have_others_ended(&self) -> bool {
        // This rank may be one of those that have.
        let own = usize::from(self.fabric().has_ended(self.member.own()));
        if self.fabric().ends() + 1 < self.fabric().ranks() + own {
            return false;
        }
        let (ended, question) = self.member.supervisor().have_others_ended();
        question.into_iter().for_each(|(rank, question)| self.conduit.tell(Announcement::Note(rank, question)));
        ended
    }

    /// Tells the others that this rank looked again and still waits for an act of rank `awaited`; without one, that it does not
    /// wait for certain. `object` is what it waits for, for people: a lock or a signal; empty in a collective. Called by waits that
    /// have lasted, some times a second, and at the end of such a wait.
    ///
    /// Ranks that wait for each other in a cycle are ended for that. So a wait is not published while a thread that the library does not know
    /// may act for the rank, nor before all that the rank has put or sent was handled.
    pub(crate) fn publish_wait(&self, awaited: Option<usize>, object: &str) {
        let _inside = self.conduit.inside();
        let ends = self.shown.ends.load(Ordering::Relaxed);
        let settled = if ends || awaited.is_some() { self.settled() } else { Some(false) };
        if ends && settled == Some(true) && self.shown.ends.swap(false, Ordering::Relaxed) {
            self.set_ended();
        }
        // While that is unknown, what is published stays as it is, and counts no look.
        if awaited.is_none() || settled.is_some() {
            self.set_wait(awaited.filter(|_| settled == Some(true)), object);
        }
    }

    fn set_wait(&self, awaited: Option<usize>, object: &str) {
        let control = self.own();
        // Another thread of the rank may do what the awaited one waits for.
        let are_known = |known| process::threads().is_ok_and(|threads| threads <= known);
        let awaited = awaited.filter(|_| self.member.threads().is_none_or(are_known));
        let word = control.wait.load(Ordering::Relaxed);
        if awaited.is_some() && PublishedWait::word_after(word, awaited) != word {
            control.object.set(object);
        }
        // Release pairs with the Acquire in `published_wait`: what was done before this wait is seen with it.
        let publish = |last: u64| Some(PublishedWait::word_after(last, awaited)).filter(|&next| next != last);
        // Threads of the rank may come here together: each counts the change that it made.
        match control.wait.fetch_update(Ordering::Release, Ordering::Relaxed, publish) {
            Ok(last) if !PublishedWait::is_wait(last) => self.fabric().header().waits.fetch_add(1, Ordering::Relaxed),
            Ok(_) if awaited.is_none() => self.fabric().header().waits.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        control.looks.fetch_add(1, Ordering::Release);
    }

    /// What a rank has published by [`publish_wait`](Self::publish_wait) and not taken back. A rank of another machine is asked at once if
    /// `hops` is 0. Otherwise it is `hops` ranks behind one that is asked, in a chain of waits, and is asked itself only if no rank
    /// reports its wait.
    pub(crate) fn published_wait(&self, rank: usize, hops: usize) -> Option<PublishedWait> {
        if let Some(local) = self.near(rank) {
            let at = self.conduit.time_of_looks();
            let (wait, looks) = self.fabric().wait_words(local);
            return PublishedWait::of_words(wait, looks, self.member.topology().size(), at);
        }
        let (wait, question) = self.member.supervisor().published_wait(rank, hops);
        question.into_iter().for_each(|question| self.conduit.tell(Announcement::Note(rank, question)));
        wait
    }

    /// The object of the wait that a rank published last, cut if it is long. Empty where it is not known.
    pub(crate) fn published_object(&self, rank: usize) -> String {
        match self.near(rank) {
            Some(local) => self.fabric().object(local),
            None => self.member.supervisor().published_object(rank),
        }
    }

    /// Takes part in finding out whether all ranks of the job wait for good. A rank that waits calls it some times a second.
    /// Returns what the ranks wait for, if they do; only one of them gets it.
    pub(crate) fn look_at_all(&self) -> Option<String> {
        let (notes, found) = self.member.supervisor().look_at_all(self.conduit.time_of_looks());
        notes.into_iter().for_each(|(rank, note)| self.conduit.tell(Announcement::Note(rank, note)));
        found
    }
}
