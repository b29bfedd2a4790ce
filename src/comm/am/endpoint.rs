//! A rank's side of the active messages. One thread at a time works on it, a caller's or the helper's, so the wire is never entered twice.
//!
//! ```text
//!   put, get ...  ->  queue of the peer  ->  frame being filled  --poll-->  wire
//!   wire  ->  records in their order: copy, add, apply, answer  ->  frame of answers  ->  wire
//! ```
//!
//! Records written without a poll in between share a frame, which the next poll sends. Puts and accumulates whose callers wait for nothing
//! more may wait for company during [`PATIENT_POLLS`] polls, if a thread sends them should nobody poll again. Another rank waits for a
//! signal, so it leaves with all before it as soon as credit and bulk messages let it.
//!
//! # Bulk messages
//!
//! A frame costs little time to send, but much for each byte. So bulk messages carry long contiguous puts and gets, from and into
//! the memory that they are for. Many strided or accumulated bytes go in pieces: from or into the caller's memory if that holds
//! them packed, else in *long frames* (`long_frames`), as answers do. A record announces each message and keeps its place in the
//! order.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{
    bulk::{BulkMessages, Get, Then, was_late},
    frame::Frame,
    long_frames::FrameUse,
    memory::{Over, Segments},
    origins::{Origins, given_up},
    outbox::Outbox,
    peer::{Op, PACKED, Peer},
    regions::Reach,
    route::Routes,
    wire::{Arrival, BulkKind, Ended, Limits, Result, Tag, Wire},
};
use crate::comm::{
    Event, Token, Topology,
    kit::peers::Peers,
    node::{HeldLetters, Member, Note, Supervisor},
    protocol::beats::Beats,
};

/// Frames that one poll handles at most.
const BATCH: usize = 64;

/// Polls during which puts that nobody waits for are kept for company.
const PATIENT_POLLS: u32 = 16;

/// Polls that end before the wire is empty and do not look at what leaves and at bulk messages: each of those costs a call of the
/// wire, and the caller may have what it waits for.
const WITHOUT_LOOK: u32 = 8;

/// The end of a job.
#[derive(Debug)]
pub(super) struct End {
    pub(super) culprit: usize,
    /// The culprit cannot say a word any more.
    pub(super) lost: bool,
    pub(super) cause: String,
}

/// The state of a rank's side of the active messages.
#[derive(Debug)]
pub(super) struct Endpoint<W> {
    /// Where ranks are reached, and the memory of those that this one answers for.
    pub(super) routes: Routes,
    pub(super) segments: Segments,
    pub(super) over: Over,
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) topology: Topology,
    pub(super) wire: W,
    pub(super) limits: Limits,
    pub(super) outbox: Outbox,
    pub(super) peers: Peers<Peer>,
    /// Peers that may have something to send.
    pub(super) busy: VecDeque<usize>,
    pub(super) origins: Origins,
    pub(super) bulk: BulkMessages,
    pub(super) reach: Reach,
    /// Ranks whose inboxes are not empty, the one that has waited longest first.
    pub(super) delayed: VecDeque<usize>,
    pub(super) events: Vec<Event>,
    /// Letters for full rings, each with its sender and the sender's origin.
    pub(super) held: HeldLetters<(usize, u64)>,
    /// What supervisors have to know of ranks to answer others.
    pub(super) questions: Vec<(usize, Note)>,
    /// Peers that something was sent to, and that may not have said that it was handled.
    pub(super) unsettled: Vec<usize>,
    /// A caller waits for what was submitted since the last poll. Else `skipped` counts the polls for which it was kept for
    /// company.
    pub(super) urgent: bool,
    skipped: u32,
    /// The last poll ended before all was received.
    pub(super) has_more: bool,
    /// A signal has come since the poll began.
    pub(super) signaled: bool,
    /// Polls since what leaves, and bulk messages, were looked at.
    unlooked: u32,
    /// Why the job must end, as a peer reports.
    pub(super) ended: Option<End>,
    /// A thread answers others while the program computes.
    pub(super) answers_always: bool,
    /// The machines that still answer. `met` counts the peers that it knows.
    pub(super) beats: Beats,
    pub(super) met: usize,
    /// Grows with each find, which shows whether a look was worth it.
    pub(super) found: u64,
}

impl<W: Wire> Endpoint<W> {
    pub(super) fn new(wire: W, member: &Member, answers_always: bool, silence: Option<Duration>) -> Self {
        let (limits, topology, fabric) = (wire.limits(), member.topology(), member.fabric());
        let routes = Routes::new(topology, limits.by_agents);
        let answers_for = routes.answers_for;
        Endpoint {
            segments: Segments::new(fabric.clone(), topology.local(topology.rank()), answers_for),
            routes,
            over: Over::new(fabric.over()),
            supervisor: member.supervisor().clone(),
            topology: topology.clone(),
            limits,
            wire,
            outbox: Outbox::new(topology.rank()),
            peers: Peers::default(),
            busy: VecDeque::new(),
            origins: Origins::default(),
            bulk: BulkMessages::default(),
            reach: Reach::new(answers_for),
            delayed: VecDeque::new(),
            events: Vec::new(),
            held: HeldLetters::default(),
            questions: Vec::new(),
            unsettled: Vec::new(),
            urgent: false,
            skipped: 0,
            has_more: false,
            signaled: false,
            unlooked: 0,
            ended: None,
            answers_always,
            beats: Beats::new(silence),
            met: 0,
            found: 0,
        }
    }

    /// A peer that is listed as one that may have something to send.
    pub(super) fn peer(&mut self, rank: usize) -> &mut Peer {
        let peer = self.peers.meet(rank);
        if !peer.listed {
            peer.listed = true;
            self.busy.push_back(rank);
        }
        peer
    }

    /// Sends, receives, answers. Does nothing a few times if there is no `hurry` and what was submitted may wait for company. If
    /// `waited`, ends when there is something that the caller may wait for. Returns true if it did anything.
    pub(super) fn poll(&mut self, hurry: bool, waited: bool) -> Result<bool> {
        if !hurry && !self.urgent && self.skipped < PATIENT_POLLS {
            self.skipped += 1;
            return Ok(false);
        }
        (self.urgent, self.skipped) = (false, 0);
        self.send()?;
        let (before, known) = (self.found, self.events.len());
        (self.has_more, self.signaled) = (true, false);
        for _ in 0..BATCH {
            let Some(Arrival { from, frame, len }) = self.outbox.receive(&mut self.wire)? else {
                self.has_more = false;
                break;
            };
            self.found += 1;
            self.arrived(from, frame, len)?;
            self.send_answers(from)?;
            if waited && (self.signaled || self.events.len() > known) {
                break;
            }
        }
        self.unlooked += 1;
        if !self.has_more || self.unlooked >= WITHOUT_LOOK {
            self.unlooked = 0;
            self.look_at_bulk()?;
        }
        if self.limits.one_sided.is_some() {
            self.look_at_transfers()?;
            self.look_at_errands()?;
        }
        self.deliver_held()?;
        self.resume_all()?;
        if self.found != before {
            self.send()?;
        }
        self.has_more |= self.outbox.has_own();
        Ok(true)
    }

    /// Frames whose memory is not free.
    pub(super) fn crowd(&self) -> usize {
        self.wire.leaving() + self.outbox.len()
    }

    /// Returns true if something can only go on when what was sent before is done. The helper does not sleep through that.
    pub(super) fn lags(&self) -> bool {
        !self.busy.is_empty() || !self.reach.owing.is_empty() || self.outbox.len() > 0 || self.outbox.has_own()
    }

    /// Returns true if a look could do more than the last one.
    pub(super) fn is_behind(&mut self) -> bool {
        self.has_more || self.lags() || !self.held.is_empty() || self.has_arrivals()
    }

    /// Bulk messages that have ended.
    fn look_at_bulk(&mut self) -> Result<()> {
        let mut ended = std::mem::take(&mut self.bulk.ended);
        let mut looked = self.wire.ended(&mut ended);
        for Ended { id, len } in ended.drain(..) {
            self.found += 1;
            if let Some(then) = self.bulk.remove(id) {
                // Each is reported, whatever became of the others.
                looked = looked.and(self.bulk_ended(then, len));
            }
        }
        self.bulk.ended = ended;
        looked
    }

    fn bulk_ended(&mut self, then: Then, len: usize) -> Result<()> {
        match then {
            Then::Sent(token) => self.events.push(Event::LocalDone(token)),
            Then::PieceSent { whole, to, begun } => {
                if was_late(begun) {
                    self.peer(to).busy = PACKED;
                }
                self.events.extend(Arc::into_inner(whole).map(Event::LocalDone));
            }
            Then::WentStraight(whole) => self.events.extend(Arc::into_inner(whole).map(Event::LocalDone)),
            Then::CameStraight { origin, len, .. } => self.events.extend(self.origins.piece_ended(origin, len)),
            Then::Filled(Get { token, piece_of: None, .. }) => self.events.push(Event::LocalDone(token)),
            Then::GivenUp(Get { token, piece_of: None, .. }) => self.events.push(given_up(token)),
            Then::Filled(Get { piece_of: Some(origin), from, len, .. })
            | Then::GivenUp(Get { piece_of: Some(origin), from, len, .. }) => {
                self.came(from, len);
                let event = self.origins.piece_ended(origin, len);
                self.events.extend(event);
            }
            Then::Served => {}
            Then::FrameSent(frame, what) => self.bulk.frames.give(frame, what),
            Then::Answered { from, frame } => {
                self.long_answer(from, &frame, len)?;
                self.bulk.frames.give_answer(frame);
            }
            Then::Announced { from, message } => self.message_came(from, message, len),
        }
        Ok(())
    }

    /// Sends a long frame that was taken. Returns the words of its announcement.
    pub(super) fn send_long_frame(&mut self, mut frame: Frame, to: usize, what: FrameUse) -> Result<[u64; 2]> {
        let number = self.bulk.next_number();
        let kind = if what == FrameUse::Answers { BulkKind::Reply } else { BulkKind::Request };
        frame.seal(0, false);
        let len = frame.sealed().len();
        self.send_from_frame(frame, len, to, what, Tag { kind, number })?;
        Ok([len as u64, number])
    }

    /// Sends the first bytes of a long frame that was taken.
    pub(super) fn send_from_frame(&mut self, frame: Frame, len: usize, to: usize, what: FrameUse, tag: Tag) -> Result<()> {
        let bytes = frame.bytes()[..len].as_ptr();
        let id = self.bulk.add(Then::FrameSent(frame, what));
        // SAFETY: the frame's memory is on the heap and stays as it is while the table holds it.
        unsafe { self.wire.send_bulk(to, bytes, len, tag, id) }
    }

    /// Bytes have come for an origin.
    pub(super) fn data_came(&mut self, from: usize, id: usize, at: usize, bytes: &[u8]) {
        self.came(from, bytes.len());
        let event = self.origins.data_came(id as u64, at, bytes);
        self.events.extend(event);
    }

    /// What was asked of a peer has come.
    fn came(&mut self, from: usize, len: usize) {
        if let Some(peer) = self.peers.get_mut(from) {
            peer.asked = peer.asked.saturating_sub(len);
        }
        self.bulk.asked = self.bulk.asked.saturating_sub(usize::from(self.limits.is_long(len)));
    }

    /// Returns true if nothing is under way that another rank would miss.
    pub(super) fn is_quiet(&self) -> bool {
        self.crowd() == 0 && self.bulk.is_empty() && self.peers.iter().all(|(_, peer)| peer.is_quiet())
    }

    /// Returns true if this rank has asked for something that was not answered, or answers for others.
    pub(super) fn expects(&self) -> bool {
        self.routes.answers_for > 1 || !self.origins.is_empty() || !self.bulk.is_empty() || !self.reach.flushing.is_empty()
    }

    /// Peers that have not acknowledged everything.
    pub(super) fn unquiet(&self) -> Vec<usize> {
        let owes = |peer: &Peer| !peer.credit.is_quiet() || !peer.queue.is_empty() || peer.requests.is_some();
        self.peers.iter().filter(|(_, peer)| owes(peer)).map(|(rank, _)| rank).collect()
    }

    /// Gives up the transfers of a request that use memory of the caller. Each ends where that memory can be let go, as failed, or as done if its
    /// bytes went straight; one that MPI is at work on ends when that does.
    pub(super) fn cancel(&mut self, token: Token) -> Result<()> {
        for (_, peer) in self.peers.iter_mut() {
            let mut gone = 0;
            let mut without_bytes = false;
            peer.queue.retain(|(_, op)| {
                // The signal that belongs to the bytes just removed must not come without them.
                let lost = without_bytes && matches!(op, Op::PutSignal { token, .. } if *token == Token::NOBODY);
                let given_up = op.token() == Some(token);
                without_bytes = given_up && matches!(op, Op::Put { .. } | Op::Long { put: true, .. } | Op::Block(_));
                // Else the last piece that leaves reports the end.
                gone += usize::from(given_up && op.is_whole());
                !given_up && !lost
            });
            let signals = peer.signals.len();
            peer.signals.retain(|signal| *signal != token);
            gone += signals - peer.signals.len();
            self.events.extend((0..gone).map(|_| given_up(token)));
        }
        self.origins.cancel(token, &mut self.events);
        self.bulk.give_up(token).into_iter().for_each(|id| self.wire.cancel(id));
        // At once: a wire that does not work any more ends each look before this one.
        self.look_at_bulk()
    }

    /// Nothing is sent or received any more. What the wire may still use is given back to nobody.
    pub(super) fn close(&mut self) {
        self.wire.close();
        self.abandon();
    }
}

impl<W> Endpoint<W> {
    /// Forgets memory that bulk messages may still read or write.
    fn abandon(&mut self) {
        if self.bulk.is_empty() {
            return;
        }
        std::mem::forget(std::mem::take(&mut self.bulk.messages));
        self.peers.iter_mut().for_each(|(_, peer)| std::mem::forget(std::mem::take(&mut peer.inbox)));
    }
}

impl<W> Drop for Endpoint<W> {
    fn drop(&mut self) {
        self.abandon();
    }
}
