//! A rank's side of the network: what it sends, what comes, what it waits for.
//!
//! One thread of the rank at a time is in here, a caller's or the one that makes progress; so the library is never entered twice.
//!
//! ```text
//!   put, get ...  ->  queue of the peer  ->  frame being filled  --poll-->  MPI_Isend
//!   MPI_Irecv (a ring, from anybody)  ->  records in their order: copy, add, apply, answer  ->  frame of answers  ->  MPI_Isend
//! ```
//!
//! What is written one after the other without a poll between shares a frame: elements of a list, chunks of a patch. A poll sends
//! what is there. But puts and accumulates whose callers have all that they wait for may wait for company during [`PATIENT_POLLS`]
//! polls, if there is a thread that sends them should nobody poll again.
//!
//! Who handles a record never waits: what cannot be handled yet stays with what comes behind it (`inbox`), answers go into a frame of
//! their own, and if the library cannot send it at once, it is kept until it can.
//!
//! # Beside the frames
//!
//! A short frame costs little time and much for each byte. So contiguous puts and gets from [`LONG`] on are messages of their own, from
//! and into the memory that they are for. Strided and accumulated bytes travel in pieces once they are more than
//! [`BULK`](super::peer::BULK): from or into the caller's memory if it holds them packed, else written into *long frames*
//! (`long_frames`), as answers are. A record in the ordinary frame announces each, and so keeps their place in the order.

use std::collections::VecDeque;

use super::{
    ffi::{Comm, Result},
    frame::Frame,
    long_frames::LongFrames,
    longs::{Get, Longs},
    mail::Mail,
    memory::{Over, Segment},
    origins::{Origins, given_up},
    peer::{Op, PACKED, Peer, Peers},
    write::is_long,
};
use crate::comm::{Event, Token};

/// From here on contiguous bytes travel in a message of their own. Measured, as [`BULK`](super::peer::BULK): 64 KiB take some 60 µs
/// either way.
pub(in crate::comm) const LONG: usize = 64 << 10;

/// Frames that one poll handles at most, so that its caller comes to look at what it waits for.
const BATCH: usize = 64;

/// Long answers that one poll handles at most.
const ANSWERS: usize = 8;

/// Polls during which puts that nobody waits for are kept for company.
const PATIENT_POLLS: u32 = 16;

/// The token of what nobody waits for.
pub(in crate::comm) const NOBODY: Token = Token(u64::MAX);

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm) struct Net {
    pub(in crate::comm) segment: Segment,
    pub(in crate::comm) over: Over,
    pub(in crate::comm) mail: Mail,
    pub(in crate::comm) peers: Peers,
    /// Peers that may have something to send.
    pub(in crate::comm) busy: VecDeque<usize>,
    pub(in crate::comm) origins: Origins,
    pub(in crate::comm) longs: Longs,
    pub(in crate::comm) long_frames: LongFrames,
    /// Long answers asked for that have not come.
    pub(in crate::comm) long_asked: usize,
    /// Ranks whose requests wait.
    pub(in crate::comm) delayed: VecDeque<usize>,
    pub(in crate::comm) events: Vec<Event>,
    /// Somebody waits for what was submitted since the last poll; else, how many polls it was kept for company.
    pub(in crate::comm) urgent: bool,
    skipped: u32,
    /// Why the job must end, as a peer tells: who ended it, and why.
    pub(in crate::comm) ended: Option<(usize, String)>,
    /// Grows with whatever is found: tells whether a look was worth it.
    pub(in crate::comm) found: u64,
}

impl Net {
    pub(in crate::comm) fn new(comm: Comm, segment: Segment, over: Over) -> Result<Self> {
        Ok(Net {
            segment,
            over,
            mail: Mail::new(comm)?,
            peers: Peers::default(),
            busy: VecDeque::new(),
            origins: Origins::default(),
            longs: Longs::default(),
            long_frames: LongFrames::default(),
            long_asked: 0,
            delayed: VecDeque::new(),
            events: Vec::new(),
            urgent: false,
            skipped: 0,
            ended: None,
            found: 0,
        })
    }

    /// A peer that is listed as one that may have something to send.
    pub(in crate::comm) fn peer(&mut self, rank: usize) -> &mut Peer {
        let peer = self.peers.entry(rank).or_default();
        if !peer.listed {
            peer.listed = true;
            self.busy.push_back(rank);
        }
        peer
    }

    /// How many operations wait for room, for one peer.
    pub(in crate::comm) fn waiting(&self, to: usize) -> usize {
        self.peers.get(&to).map_or(0, |peer| peer.queue.len())
    }

    /// Sends, receives, answers. Does nothing a few times if there is no `hurry` and what was submitted may wait for company.
    /// If `waited`, ends when there is something for the caller. Tells whether it did anything.
    pub(in crate::comm) fn poll(&mut self, hurry: bool, waited: bool) -> Result<bool> {
        if !hurry && !self.urgent && self.skipped < PATIENT_POLLS {
            self.skipped += 1;
            return Ok(false);
        }
        (self.urgent, self.skipped) = (false, 0);
        self.send()?;
        let (before, known) = (self.found, self.events.len());
        self.mail.receive()?;
        for _ in 0..BATCH {
            let Some((frame, arrived)) = self.mail.came()? else { break };
            self.found += 1;
            self.arrived(arrived.from, frame, arrived.len)?;
            self.send_answers(arrived.from)?;
            if waited && self.events.len() > known {
                break;
            }
        }
        self.mail.receive_if_few()?;
        self.found += self.longs.look(self.mail.comm, &mut self.events)?;
        self.pieces_ended();
        while let Some(rank) = self.longs.late.pop() {
            self.peer(rank).busy = PACKED;
        }
        for _ in 0..ANSWERS {
            let Some((from, frame, len)) = self.long_frames.came()? else { break };
            self.found += 1;
            self.long_answer(from, &frame, len)?;
            self.long_frames.read(frame);
        }
        self.resume_all()?;
        self.found += self.long_frames.reap()?;
        self.mail.reap()?;
        if self.found != before {
            self.send()?;
        }
        Ok(true)
    }

    pub(in crate::comm) fn comm(&self) -> Comm {
        self.mail.comm
    }

    /// Frames that have not left.
    pub(in crate::comm) fn crowd(&self) -> usize {
        self.mail.leaving()
    }

    /// Gives a frame of the ordinary length back.
    pub(in crate::comm) fn keep(&mut self, frame: Frame) {
        self.mail.keep(frame);
    }

    /// The peer has handled so many more of our frames.
    pub(in crate::comm) fn acknowledged(&mut self, from: usize, frames: u32) {
        let peer = self.peer(from);
        peer.unacknowledged = peer.unacknowledged.saturating_sub(frames);
    }

    /// Bytes have come for an origin.
    pub(in crate::comm) fn data_came(&mut self, from: usize, id: usize, at: usize, bytes: &[u8]) {
        self.came(from, bytes.len());
        let event = self.origins.data_came(id, at, bytes);
        self.events.extend(event);
    }

    /// Pieces of blocks have come straight to where they belong.
    fn pieces_ended(&mut self) {
        while let Some(Get { piece_of, from, len, .. }) = self.longs.ended.pop() {
            self.came(from, len);
            let event = piece_of.and_then(|origin| self.origins.piece_ended(origin, len));
            self.events.extend(event);
        }
    }

    /// What was asked of a peer has come.
    fn came(&mut self, from: usize, len: usize) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.asked = peer.asked.saturating_sub(len);
        }
        self.long_asked = self.long_asked.saturating_sub(usize::from(is_long(len)));
    }

    /// Whether nothing is under way that another rank would miss.
    pub(in crate::comm) fn is_quiet(&self) -> bool {
        self.mail.leaving() == 0
            && self.longs.is_empty()
            && self.long_frames.is_quiet()
            && self.peers.values().all(Peer::is_quiet)
    }

    /// Whether something has not left.
    pub(in crate::comm) fn is_sending(&self) -> bool {
        self.mail.leaving() > 0 || self.long_frames.is_sending()
    }

    /// Peers that have not acknowledged everything.
    pub(in crate::comm) fn unquiet(&self) -> Vec<usize> {
        let owes = |peer: &Peer| peer.unacknowledged > 0 || !peer.queue.is_empty() || peer.requests.is_some();
        self.peers.iter().filter(|(_, peer)| owes(peer)).map(|(&rank, _)| rank).collect()
    }

    /// Gives up the transfers of a request that use memory of the caller. Each ends as failed where that memory can be let go; one that
    /// MPI is at work on ends when that does.
    pub(in crate::comm) fn cancel(&mut self, token: Token) {
        for peer in self.peers.values_mut() {
            let mut gone = 0;
            let mut without_bytes = false;
            peer.queue.retain(|op| {
                // The signal that belongs to the bytes just removed must not come without them.
                let lost = without_bytes && matches!(op, Op::PutSignal { token, .. } if *token == NOBODY);
                let given_up = op.token() == Some(token);
                without_bytes = given_up && matches!(op, Op::Put { .. } | Op::Long { put: true, .. });
                // Else the last of the pieces that leave tells.
                gone += usize::from(given_up && op.is_whole());
                !given_up && !lost
            });
            let signals = peer.signals.len();
            peer.signals.retain(|signal| *signal != token);
            gone += signals - peer.signals.len();
            self.events.extend((0..gone).map(|_| given_up(token)));
        }
        self.origins.cancel(token, &mut self.events);
        self.longs.cancel(token);
    }

    /// Takes the receives back. Nothing is asked of MPI any more, so what it may still use is given back to nobody.
    pub(in crate::comm) fn close(&mut self) {
        self.mail.close();
        std::mem::forget(std::mem::take(&mut self.longs));
        if !self.long_frames.is_quiet() {
            std::mem::forget(std::mem::take(&mut self.long_frames));
        }
        self.peers.values_mut().for_each(|peer| std::mem::forget(std::mem::take(&mut peer.inbox)));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if !self.mail.is_closed() {
            self.close();
        }
    }
}
