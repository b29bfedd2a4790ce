//! Works and datagrams in virtual time: they travel by cables ([`Cables`]), and take effect when they have arrived.
//!
//! | on the cables | then |
//! |---|---|
//! | a work | its peer is asked; a write or a message lands |
//! | the word that it has arrived | its completion may be reported |
//! | what a read or an atomic brings back | it is carried out, and its completion may be reported |
//! | a datagram | it meets a receive, or is dropped |
//!
//! So the rules of a device apply when a work arrives. A work that is tried again does not travel again, and a sender learns of a refusal
//! at once.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    SharedFabric,
    pair::PairId,
    port::{DATAGRAM, datagram_key, deliver},
    traffic::{FabricState, Travelling},
};
use crate::comm::soft::{Adapters, Cables, Wish};

impl FabricState {
    fn rank(&self, port: u64) -> Option<u32> {
        self.ports.get(port)?.rank
    }

    /// The last `count` works that were posted to a pair leave.
    pub(super) fn sends(&mut self, of: PairId, count: usize) {
        let Some(from) = self.rank(of.port) else { return };
        let Some(pair) = self.pair(of) else { return };
        let (life, peer) = (pair.life, pair.path.peer);
        let lens: Vec<usize> = pair.lens(count).collect();
        let numbers = pair.leave(count);
        // A peer that is gone is as far as this one.
        let to = peer.and_then(|peer| self.rank(peer.port)).unwrap_or(from);
        for (number, bytes) in numbers.zip(lens) {
            let number = self.travelling.add(Travelling::Work { of, life, number });
            self.wishes.push(Wish::Sends { from, to, bytes, number });
        }
    }

    /// What a read or an atomic of a pair asks its peer for is on its way back.
    pub(super) fn returns(&mut self, of: PairId, by: PairId, at: usize) {
        let (Some(from), Some(to)) = (self.rank(by.port), self.rank(of.port)) else { return };
        let Some(pair) = self.pair(of) else { return };
        let (life, number, bytes) = (pair.life, pair.number_of(at), pair.works[at].work.local.len);
        let number = self.travelling.add(Travelling::Return { of, life, number });
        self.wishes.push(Wish::Returns { from, to, bytes, number });
    }

    /// A datagram leaves.
    ///
    /// # Safety
    /// `bytes` is readable for `len` bytes.
    pub(super) unsafe fn sends_datagram(&mut self, from: u64, to: u64, number: u32, key: u32, bytes: *const u8, len: usize) {
        let Some(by) = self.rank(from) else { return };
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, len) }.into();
        let target = self.rank(to).unwrap_or(by);
        let number = self.travelling.add(Travelling::Datagram { from, to, number, key, bytes });
        self.wishes.push(Wish::Sends { from: by, to: target, bytes: len, number });
    }

    /// Called after each change of a pair. Asks for a reminder if the pair has to try again later, and rings the ranks of both ends if there is
    /// something for them.
    pub(super) fn wish(&mut self, of: PairId, now: Duration) {
        let Some(rank) = self.rank(of.port) else { return };
        let Some(pair) = self.pair(of) else { return self.ring(of.port, rank) };
        let (due, peer) = (pair.due, pair.path.peer);
        if !pair.works.is_empty() && due > now && due != pair.reminded {
            pair.reminded = due;
            let number = self.travelling.add(Travelling::Again { of });
            self.wishes.push(Wish::Reminds { rank, at: due, number });
        }
        self.ring(of.port, rank);
        if let Some((peer, rank)) = peer.and_then(|peer| Some((peer, self.rank(peer.port)?))) {
            self.ring(peer.port, rank);
        }
    }

    fn ring(&mut self, port: u64, rank: u32) {
        let Some(port) = self.ports.get_mut(port) else { return };
        let (rings, touches) = (std::mem::take(&mut port.fresh), std::mem::take(&mut port.touched));
        if rings {
            self.wishes.push(Wish::Rings { rank });
        }
        if touches {
            self.wishes.push(Wish::Touches { rank });
        }
    }

    fn datagram_arrives(&mut self, from: u64, to: u64, number: u32, key: u32, bytes: &[u8]) {
        let Ok(target) = self.port(to) else { return };
        if (number, key) == (DATAGRAM, datagram_key(to)) {
            // SAFETY: the bytes are a copy of the datagram.
            unsafe { deliver(target, from, to, bytes.as_ptr(), bytes.len()) };
        }
        self.rank(to).into_iter().for_each(|rank| self.ring(to, rank));
    }
}

impl SharedFabric {
    /// Something happens to the fabric at a time, and a pair does what it can then.
    fn happens(&self, now: Duration, wishes: &mut Vec<Wish>, happens: impl FnOnce(&mut FabricState) -> Option<PairId>) {
        self.virtual_now.store(now.as_nanos() as u64, Ordering::Relaxed);
        let mut state = self.state.lock();
        if let Some(place) = happens(&mut state) {
            state = self.advance(state, place);
        }
        wishes.append(&mut state.wishes);
    }

    /// Has the cables do what follows from a call of a rank.
    pub(super) fn ask(&self, rank: usize) {
        let Some(cables) = &self.cables else { return };
        let wishes = std::mem::take(&mut self.state.lock().wishes);
        if !wishes.is_empty() {
            cables.ask(rank, &wishes);
        }
    }

    pub(super) fn cables(&self) -> Option<&Arc<dyn Cables>> {
        self.cables.as_ref()
    }
}

impl Adapters for SharedFabric {
    fn arrived(&self, now: Duration, number: u64, wishes: &mut Vec<Wish>) {
        self.happens(now, wishes, |state| match state.travelling.get(number)? {
            &Travelling::Work { of, life, .. } => {
                state.pair(of).filter(|pair| pair.life == life)?.has_arrived();
                Some(of)
            }
            &Travelling::Return { of, life, number: work } => {
                state.travelling.remove(number);
                state.pair(of).filter(|pair| pair.life == life)?.work(work)?.answered = true;
                Some(of)
            }
            Travelling::Datagram { .. } => {
                let Some(Travelling::Datagram { from, to, number, key, bytes }) = state.travelling.remove(number) else {
                    return None;
                };
                state.datagram_arrives(from, to, number, key, &bytes);
                None
            }
            Travelling::Again { .. } => None,
        });
    }

    fn answered(&self, now: Duration, number: u64, wishes: &mut Vec<Wish>) {
        self.happens(now, wishes, |state| match state.travelling.remove(number)? {
            Travelling::Work { of, life, number } => {
                let entry = state.pair(of).filter(|pair| pair.life == life)?.work(number)?;
                if !super::pair::is_answered(entry.work.kind) {
                    entry.answered = true;
                    state.port(of.port).ok()?.retire(of.number, None);
                }
                Some(of)
            }
            _ => None,
        });
    }

    fn is_time(&self, now: Duration, number: u64, wishes: &mut Vec<Wish>) {
        self.happens(now, wishes, |state| match state.travelling.remove(number)? {
            Travelling::Again { of } => Some(of),
            _ => None,
        });
    }
}
