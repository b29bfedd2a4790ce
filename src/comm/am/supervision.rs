//! What the active messages do for supervisors.
//!
//! A caller that holds stripes must not wait for the endpoint, whose handler may wait for them. So notes are queued for the next thread
//! that looks at the network.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    Am,
    endpoint::Endpoint,
    frame::RecordKind,
    peer::Op,
    route::Route,
    wire::{self, Result, Wire},
};
use crate::comm::{
    Token,
    kit::say::say,
    node::{Note, What},
};

impl<W: Wire> Am<W> {
    /// Takes the notes that wait.
    #[cold]
    pub(super) fn take_notes(&self, endpoint: &mut Endpoint<W>) {
        // Before they are taken: one that comes now is taken now, or next time.
        self.has_notes.store(false, Ordering::Relaxed);
        let notes = std::mem::take(&mut *self.notes.lock());
        if self.leaves.load(Ordering::Relaxed) {
            // Nothing would acknowledge them: this rank has asked for the last acknowledgements.
            return;
        }
        for (rank, note) in notes {
            if note.what == What::Ask {
                let to = endpoint.routes.find(rank).to;
                endpoint.beats.asks(to, self.topology.machine(rank));
            }
            let route = endpoint.routes.find(rank);
            let submitted = endpoint.submit(route, Op::Note(Box::new(note)));
            self.report(submitted);
        }
    }

    /// Tells the other machines that the job is over, one rank of each node, and sees the words on their way. Ranks of this machine see
    /// it in its memory.
    pub(in crate::comm) fn tell_end(&self, culprit: usize, cause: &str) {
        /// Words that cannot leave are lost: the launcher ends the others.
        const LIMIT: Duration = Duration::from_millis(200);
        /// What fits into any frame.
        const LONGEST_CAUSE: usize = wire::LEAST_FRAME - 64;
        let silent = self.is_alone() || self.is_closed() || self.fabric.is_inherited();
        if silent || self.announced.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut endpoint = self.endpoint();
        let cause = &cause.as_bytes()[..cause.len().min(LONGEST_CAUSE)];
        let lost = self.fabric.has_lost().then(|| self.topology.machine(culprit));
        let is_there = |&leader: &usize| !self.topology.is_near(leader) && Some(self.topology.machine(leader)) != lost;
        for leader in self.topology.leaders().into_iter().filter(is_there) {
            let words = [culprit as u64, u64::from(self.fabric.has_lost())];
            let said = endpoint.answer(leader, RecordKind::End, &words, cause.len(), |to| to.copy_from_slice(cause));
            if said.is_err() {
                return;
            }
        }
        let start = Instant::now();
        while endpoint.poll(true, false).is_ok() && endpoint.crowd() > 0 && start.elapsed() < LIMIT {
            std::thread::yield_now();
        }
    }

    /// Returns true if all was handled that this rank has put, signaled or mailed, and its caller knows all that has come. None
    /// while another thread of the rank is in the endpoint, which may wait for stripes that the caller holds.
    pub(super) fn is_settled(&self) -> Option<bool> {
        if self.is_closed() || self.fabric.is_inherited() {
            return Some(false);
        }
        let settled = self.try_endpoint()?.settle();
        let is_settled = matches!(settled, Ok(true));
        self.report(settled.map(drop));
        Some(is_settled)
    }

    /// Sends a note when the endpoint is looked at next.
    pub(super) fn queue_note(&self, rank: usize, note: Note) {
        if !self.leaves.load(Ordering::Relaxed) {
            self.notes.lock().push((rank, note));
            self.has_notes.store(true, Ordering::Relaxed);
        }
    }

    /// Asks silent machines whether they are there, `elapsed` after it last did so. Returns false if another thread is in the
    /// endpoint.
    pub(super) fn beat_once(&self, elapsed: Duration) -> bool {
        if self.is_closed() || self.fabric.over().load(Ordering::Relaxed) != 0 {
            return true;
        }
        let Some(mut endpoint) = self.try_endpoint() else { return false };
        // Checked with the endpoint held: a rank that leaves asks for the last acknowledgements there.
        if self.leaves.load(Ordering::Relaxed) {
            return true;
        }
        let beat = endpoint.beat(elapsed);
        drop(endpoint);
        if let Ok(Some(rank)) = beat {
            let cause = format!(
                "and its machine have not answered for {} s: the machine is down, stopped, or cut off from the network (GA_SILENCE)",
                self.silence.as_secs_f64()
            );
            if self.fabric.end_with_lost(rank, &cause) {
                say(format_args!("rank {rank} {cause}"));
                self.tell_end(rank, &cause);
            }
        }
        self.report(beat.map(drop));
        true
    }
}

impl<W: Wire> Endpoint<W> {
    /// Returns true if all was handled that this rank has put, signaled or mailed, and its caller knows all that has come. Asks
    /// the peers that have not said so.
    pub(super) fn settle(&mut self) -> Result<bool> {
        let mut list = std::mem::take(&mut self.unsettled);
        let mut asked = Ok(());
        list.retain(|&to| {
            let peer = self.peers.meet(to);
            peer.unsettled = peer.handled != peer.sent;
            let (keep, is_asked) = (peer.unsettled, peer.flushes.back() == Some(&peer.sent));
            if keep && !is_asked {
                let origin = self.origins.value(Token::SETTLED, false);
                let flush = Op::Small { kind: RecordKind::Flush, aux: 0, words: [origin, 0, 0, 0, 0] };
                asked = std::mem::replace(&mut asked, Ok(())).and(self.submit(Route::endpoint(to), flush));
            }
            keep
        });
        self.unsettled.append(&mut list);
        asked.map(|()| self.unsettled.is_empty() && self.events.is_empty())
    }

    /// A flush of a peer is answered: all that was submitted before it was handled.
    pub(super) fn flushed(&mut self, from: usize) {
        let peer = self.peers.meet(from);
        peer.handled = peer.flushes.pop_front().unwrap_or(peer.handled);
    }

    /// Does one more beat, `elapsed` after the last one. Returns a rank whose machine does not answer any more.
    pub(super) fn beat(&mut self, elapsed: Duration) -> Result<Option<usize>> {
        for (rank, _) in self.peers.iter().skip(self.met).filter(|(rank, _)| !self.topology.is_near(*rank)) {
            self.beats.meets(rank, self.topology.machine(rank));
        }
        self.met = self.peers.len();
        for (rank, peer) in self.peers.iter_mut() {
            if std::mem::take(&mut peer.heard) {
                self.beats.hears(self.topology.machine(rank));
            }
        }
        let beat = self.beats.beat(elapsed);
        for rank in beat.ask {
            self.submit(Route::endpoint(rank), Op::Note(Box::new(Note::bare(What::Beat))))?;
        }
        // The rank that was asked first may be stopped by a debugger, and others of its machine not.
        for rank in beat.doubted {
            for other in self.topology.ranks_of_machine(self.topology.machine(rank)).into_iter().take(2) {
                self.submit(Route::endpoint(other), Op::Note(Box::new(Note::bare(What::Beat))))?;
            }
        }
        Ok(beat.lost)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    };

    use super::*;
    use crate::comm::{
        Announcement, Conduit, Network,
        node::helper::Answers,
        testing::apart::{Machines, Slow},
    };

    /// Nothing answers a wave, so nobody says that it was handled.
    #[test]
    fn a_note_that_waits_does_not_keep_a_rank_from_its_end() {
        let machines = Machines::new(&[0, 1], Slow::Nothing);
        let (done, ends) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let other = done.clone();
        let (_member, peer) = machines.network(1);
        let peer = std::thread::spawn(move || {
            while !other.load(Ordering::Relaxed) {
                peer.answer();
            }
        });
        let (member, am) = machines.network(0);
        std::thread::spawn(move || {
            let _member = member;
            am.tell(Announcement::Note(1, Note::bare(What::Wave)));
            ends.0.send(am.settle())
        });
        assert_eq!(ends.1.recv_timeout(Duration::from_secs(10)), Ok(true));
        done.store(true, Ordering::Relaxed);
        peer.join().expect("no panic");
    }

    #[test]
    fn a_wait_is_taken_back_even_while_another_thread_looks() {
        let machines = Machines::new(&[0, 1], Slow::Nothing);
        let (member, am) = machines.network(0);
        let conduit = Conduit::with_network(member, am.clone());
        let rank = conduit.supervision();
        rank.publish_wait(Some(1), "a lock");
        let wait = rank.published_wait(0, 0).expect("all was handled");
        {
            let _endpoint = am.endpoint();
            // It is not known that all was handled, so the end is published later.
            rank.publish_end();
            rank.publish_wait(Some(1), "a lock");
            assert_eq!(rank.published_wait(0, 0).map(|wait| wait.looks), Some(wait.looks));
            rank.publish_wait(None, "");
            assert_eq!((rank.published_wait(0, 0), rank.has_ended(0)), (None, false));
        }
        rank.publish_wait(Some(1), "a lock");
        assert!(rank.has_ended(0) && rank.published_wait(0, 0).is_some_and(|next| next.number != wait.number));
    }
}
