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
//! Receives come from anybody, are posted in a ring and looked at in its order, which for each sender is the order of sending.
//! Who handles a record never waits: what cannot be handled yet stays with what comes behind it (`inbox`), answers go into a frame of
//! their own, and if the library cannot send it at once, it is kept until it can.
//!
//! # Beside the frames
//!
//! A short frame costs little time and much for each byte. So contiguous puts and gets from [`LONG`] on are messages of their own, from
//! and into the memory that they are for; and strided and accumulated bytes, answers too, are written into *long frames*
//! (`long_frames`) once they are more than [`BULK`]. A record in the ordinary frame announces either, and so keeps their place in
//! the order.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    ffi::{Comm, Request, Result},
    frame::{Frame, Kind},
    long_frames::{LongFrames, Use},
    longs::{Beside, Get, Longs, tag},
    memory::{Over, Segment},
    origins::{Origins, given_up},
    peer::{ACKNOWLEDGE, ASKED, Block, BlockKind, Op, Peer, Road},
    write::{Asking, Of, Piece, Written, announce, is_long, write},
};
use crate::comm::{Event, Token};

/// Bytes of a frame. Just below what UCX, and so most libraries, sends in one piece over TCP; measured with MPICH 4.0 over UCX
/// 1.13: 8,000 bytes 0.8 GB/s, 8,300 bytes 0.1.
pub(super) const FRAME: usize = 8_000;

/// Frames that can arrive before anybody looks.
const RING: usize = 32;

/// From here on contiguous bytes travel in a message of their own. Measured, as [`BULK`](super::peer::BULK): 64 KiB take some 60 µs
/// either way.
pub(super) const LONG: usize = 64 << 10;

/// Frames that one poll handles at most, so that its caller comes to look at what it waits for.
const BATCH: usize = 64;

/// Long answers that one poll handles at most.
const ANSWERS: usize = 8;

/// Long answers on their way here, from all peers together, and still more are asked for.
pub(super) const LONG_ANSWERS: usize = 12;

/// Frames kept for the next.
const KEPT: usize = 256;

/// Polls during which puts that nobody waits for are kept for company.
const PATIENT_POLLS: u32 = 16;

/// The token of what nobody waits for.
pub(super) const NOBODY: Token = Token(u64::MAX);

/// Frames are sent under this tag.
const FRAMES: i32 = 0;

/// What is sent, and by what.
#[derive(Debug)]
struct Sender {
    comm: Comm,
    sending: VecDeque<(Frame, Request)>,
    spare: Vec<Frame>,
}

impl Sender {
    fn frame(&mut self) -> Frame {
        self.spare.pop().unwrap_or_else(|| Frame::new(FRAME))
    }

    fn send(&mut self, mut frame: Frame, to: usize, acknowledged: u32, credit: bool) -> Result<()> {
        let (bytes, len) = frame.seal(acknowledged, credit);
        // SAFETY: the frame's memory is on the heap and stays as it is while the frame is in `sending`.
        let request = unsafe { self.comm.begin_send(bytes, len, to, FRAMES) }?;
        self.sending.push_back((frame, request));
        Ok(())
    }

    /// Takes frames back that have left. A target that takes none keeps those of others for a few looks only.
    fn reap(&mut self) -> Result<()> {
        const LOOKS: usize = 4;
        let mut looks = LOOKS.min(self.sending.len());
        while let Some((frame, mut request)) = self.sending.pop_front() {
            match request.test() {
                Ok(true) => self.keep(frame),
                other => {
                    self.sending.push_back((frame, request));
                    other?;
                    looks -= 1;
                    if looks == 0 {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn keep(&mut self, mut frame: Frame) {
        if self.spare.len() < KEPT {
            frame.clear();
            self.spare.push(frame);
        }
    }
}

/// See the module's essay.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) segment: Segment,
    pub(super) over: Over,
    sender: Sender,
    ring: Vec<(Frame, Request)>,
    head: usize,
    peers: HashMap<usize, Peer>,
    /// Peers that may have something to send.
    busy: VecDeque<usize>,
    pub(super) origins: Origins,
    pub(super) longs: Longs,
    pub(super) long_frames: LongFrames,
    /// Long answers asked for that have not come.
    long_asked: usize,
    /// Ranks whose requests wait.
    pub(super) delayed: VecDeque<usize>,
    pub(super) events: Vec<Event>,
    /// Somebody waits for what was submitted since the last poll; else, how many polls it was kept for company.
    urgent: bool,
    skipped: u32,
    /// Why the job must end, as a peer tells: who ended it, and why.
    pub(super) ended: Option<(usize, String)>,
    /// Grows with whatever is found: tells whether a look was worth it.
    pub(super) found: u64,
}

impl Net {
    pub(super) fn new(comm: Comm, segment: Segment, over: Over) -> Result<Self> {
        let mut ring = Vec::with_capacity(RING);
        for _ in 0..RING {
            let mut frame = Frame::new(FRAME);
            let request = receive(comm, &mut frame)?;
            ring.push((frame, request));
        }
        Ok(Net {
            segment,
            over,
            sender: Sender { comm, sending: VecDeque::new(), spare: Vec::new() },
            ring,
            head: 0,
            peers: HashMap::new(),
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

    /// An operation for a peer; it leaves at the next poll.
    pub(super) fn submit(&mut self, to: usize, op: Op) -> Result<()> {
        self.peer(to).queue.push_back(op);
        self.pump(to)
    }

    /// A peer that is listed as one that may have something to send.
    pub(super) fn peer(&mut self, rank: usize) -> &mut Peer {
        let peer = self.peers.entry(rank).or_default();
        if !peer.listed {
            peer.listed = true;
            self.busy.push_back(rank);
        }
        peer
    }

    /// How many operations wait for room, for one peer.
    pub(super) fn waiting(&self, to: usize) -> usize {
        self.peers.get(&to).map_or(0, |peer| peer.queue.len())
    }

    /// Writes queued operations into frames, as far as there is room and credit.
    fn pump(&mut self, to: usize) -> Result<()> {
        while let Some(peer) = self.peers.get_mut(&to)
            && let Some(mut op) = peer.queue.pop_front()
        {
            if op.is_get() && (peer.asked >= ASKED || self.long_asked >= LONG_ANSWERS) {
                peer.queue.push_front(op);
                break;
            }
            self.urgent |= !op.is_patient();
            let written = match (op.road(), &mut op) {
                (Road::Straight, Op::Block(block)) => self.write_straight(to, block)?,
                (Road::LongFrame, op) => self.write_beside(to, op)?,
                (_, op) => {
                    let frame = peer.requests.get_or_insert_with(|| self.sender.frame());
                    write(op, frame, Asking { bytes: &mut peer.asked, long: &mut self.long_asked })
                }
            };
            let Some(peer) = self.peers.get_mut(&to) else { break };
            match written {
                Written::All => match op {
                    Op::Put { token, .. } => self.events.push(Event::LocalDone(token)),
                    Op::PutSignal { token, .. } => peer.signals.push(token),
                    Op::Block(block) if !matches!(block.what, BlockKind::Get { .. }) => {
                        // While pieces leave, the last one tells.
                        let token = block.straight.map_or(Some(block.token), Arc::into_inner);
                        self.events.extend(token.map(Event::LocalDone));
                    }
                    Op::Long { put, offset, local, len, token } => {
                        let number = self.long_frames.next_number();
                        let kind = if put { Kind::PutLong } else { Kind::GetLong };
                        let frame = peer.requests.get_or_insert_with(|| self.sender.frame());
                        frame.push(kind, 0, &[offset as u64, len as u64, number], &[], 0);
                        if put && peer.has_credit() {
                            // Bytes that come before their announcement are copied once more.
                            send_requests(peer, &mut self.sender, &mut self.events, to)?;
                        }
                        // SAFETY: the caller's memory may be used until the completion is polled.
                        let request = unsafe {
                            match put {
                                true => self.sender.comm.begin_send(local, len, to, tag(number, Beside::Request))?,
                                false => self.sender.comm.begin_receive(local, len, Some(to), tag(number, Beside::Get))?,
                            }
                        };
                        match put {
                            true => self.longs.put(request, token),
                            false => self.longs.get(request, Get { token, piece_of: None, from: to, number, len }),
                        }
                    }
                    _ => {}
                },
                Written::Beside => {
                    // The target begins to receive, and this frame to leave, while the next one is written: at the next poll.
                    peer.queue.push_front(op);
                    self.urgent = true;
                    if peer.has_credit() {
                        send_requests(peer, &mut self.sender, &mut self.events, to)?;
                    }
                    break;
                }
                Written::Some | Written::NoRoom => {
                    peer.queue.push_front(op);
                    if !peer.has_credit() {
                        break;
                    }
                    send_requests(peer, &mut self.sender, &mut self.events, to)?;
                }
                Written::Later => {
                    peer.queue.push_front(op);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes bytes of an operation into a long frame, and its announcement into the frame.
    fn write_beside(&mut self, to: usize, op: &mut Op) -> Result<Written> {
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(Written::Later) };
        let frame = peer.requests.get_or_insert_with(|| self.sender.frame());
        if !frame.has_room(2, 0, 0) {
            return Ok(Written::NoRoom);
        }
        let Some(mut long) = self.long_frames.take(Use::Requests) else { return Ok(Written::Later) };
        // Nothing that asks goes there.
        let written = write(op, &mut long, Asking { bytes: &mut 0, long: &mut 0 });
        let announcement = self.long_frames.send(self.sender.comm, long, to, Use::Requests)?;
        frame.push(Kind::LongFrame, 0, &announcement, &[], 0);
        Ok(if matches!(written, Written::All) { Written::All } else { Written::Beside })
    }

    /// Sends bytes of a block from where they lie in the caller's memory, or lets them be received there.
    fn write_straight(&mut self, to: usize, block: &mut Block) -> Result<Written> {
        match block.what {
            BlockKind::Get { origin } if !self.origins.wants(origin) => {
                // What comes is thrown away, but must not be laid into the memory of who gave up.
                block.straight = None;
                return Ok(Written::Some);
            }
            BlockKind::Put | BlockKind::Accumulate { .. } if !self.longs.has_room() => return Ok(Written::Later),
            _ => {}
        }
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(Written::Later) };
        let frame = peer.requests.get_or_insert_with(|| self.sender.frame());
        let (comm, number) = (self.sender.comm, self.long_frames.next_number());
        let Some(Piece { local, len, of }) = announce(block, frame, number) else { return Ok(Written::NoRoom) };
        match of {
            Of::Put(whole) => {
                self.urgent = true;
                if peer.has_credit() {
                    send_requests(peer, &mut self.sender, &mut self.events, to)?;
                }
                // SAFETY: the caller's memory may be used until the completion is polled, which is when the last piece has left.
                let request = unsafe { comm.begin_send(local, len, to, tag(number, Beside::Request)) }?;
                self.longs.put_piece(request, whole);
            }
            Of::Get { token, origin } => {
                // SAFETY: as above; pieces do not overlap.
                let request = unsafe { comm.begin_receive(local, len, Some(to), tag(number, Beside::Get)) }?;
                self.origins.begin_piece(origin);
                peer.asked += len;
                self.long_asked += usize::from(is_long(len));
                self.longs.get(request, Get { token, piece_of: Some(origin), from: to, number, len });
            }
        }
        Ok(if block.at == block.len { Written::All } else { Written::Some })
    }

    /// Sends, receives, answers. Does nothing a few times if there is no `hurry` and what was submitted may wait for company.
    /// Tells whether it did anything.
    pub(super) fn poll(&mut self, hurry: bool) -> Result<bool> {
        if !hurry && !self.urgent && self.skipped < PATIENT_POLLS {
            self.skipped += 1;
            return Ok(false);
        }
        (self.urgent, self.skipped) = (false, 0);
        self.send()?;
        let before = self.found;
        for _ in 0..BATCH {
            let comm = self.sender.comm;
            let (frame, request) = &mut self.ring[self.head];
            let Some(arrived) = request.test_arrived()? else { break };
            let mut next = self.sender.frame();
            let again = receive(comm, &mut next)?;
            let frame = std::mem::replace(frame, next);
            *request = again;
            self.head = (self.head + 1) % RING;
            self.found += 1;
            self.arrived(arrived.from, frame, arrived.len)?;
            if let Some(peer) = self.peers.get_mut(&arrived.from) {
                send_answers(peer, &mut self.sender, arrived.from)?;
            }
            if !self.events.is_empty() {
                // Somebody may wait for just this.
                break;
            }
        }
        self.found += self.longs.look(self.sender.comm, &mut self.events)?;
        self.pieces_ended();
        for _ in 0..ANSWERS {
            let Some((from, frame, len)) = self.long_frames.came()? else { break };
            self.found += 1;
            self.long_answer(from, &frame, len)?;
            self.long_frames.read(frame);
        }
        self.resume_all()?;
        self.found += self.long_frames.reap()?;
        self.sender.reap()?;
        if self.found != before {
            self.send()?;
        }
        Ok(true)
    }

    /// Sends what is there for whom there is something.
    fn send(&mut self) -> Result<()> {
        for _ in 0..self.busy.len() {
            let Some(rank) = self.busy.pop_front() else { break };
            self.pump(rank)?;
            let Some(peer) = self.peers.get_mut(&rank) else { continue };
            if peer.requests.as_ref().is_some_and(|frame| !frame.is_empty()) && peer.has_credit() {
                send_requests(peer, &mut self.sender, &mut self.events, rank)?;
            }
            if peer.owed >= ACKNOWLEDGE {
                peer.answers.get_or_insert_with(|| self.sender.frame());
            }
            send_answers(peer, &mut self.sender, rank)?;
            let waits = !peer.queue.is_empty() || peer.requests.as_ref().is_some_and(|frame| !frame.is_empty());
            peer.listed = waits;
            if waits {
                self.busy.push_back(rank);
            }
        }
        Ok(())
    }

    /// Appends an answer for a peer.
    pub(super) fn answer(
        &mut self,
        to: usize,
        kind: Kind,
        words: &[u64],
        payload: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        self.peer(to);
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(()) };
        if peer.answers.as_ref().is_some_and(|frame| !frame.has_room(words.len(), 0, payload)) {
            send_answers(peer, &mut self.sender, to)?;
        }
        let frame = peer.answers.get_or_insert_with(|| self.sender.frame());
        fill(frame.push(kind, 0, words, &[], payload));
        Ok(())
    }

    pub(super) fn comm(&self) -> Comm {
        self.sender.comm
    }

    /// Sends an answer of so many bytes in a long frame. None if there is no such frame now.
    pub(super) fn answer_beside(
        &mut self,
        to: usize,
        kind: Kind,
        words: &[u64],
        payload: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Option<()>> {
        let Some(mut frame) = self.long_frames.take(Use::Answers) else { return Ok(None) };
        fill(frame.push(kind, 0, words, &[], payload));
        let announcement = self.long_frames.send(self.sender.comm, frame, to, Use::Answers)?;
        self.answer(to, Kind::LongFrame, &announcement, 0, |_| ())?;
        // Who asked begins to receive while the next answer is written.
        match self.peers.get_mut(&to) {
            Some(peer) => send_answers(peer, &mut self.sender, to).map(Some),
            None => Ok(Some(())),
        }
    }

    /// Frames that have not left.
    pub(super) fn crowd(&self) -> usize {
        self.sender.sending.len()
    }

    /// Gives a frame of the ordinary length back.
    pub(super) fn keep(&mut self, frame: Frame) {
        self.sender.keep(frame);
    }

    /// The peer has handled so many more of our frames.
    pub(super) fn acknowledged(&mut self, from: usize, frames: u32) {
        let peer = self.peer(from);
        peer.unacknowledged = peer.unacknowledged.saturating_sub(frames);
    }

    /// Bytes have come for an origin.
    pub(super) fn data_came(&mut self, from: usize, id: usize, at: usize, bytes: &[u8]) {
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
    pub(super) fn is_quiet(&self) -> bool {
        self.sender.sending.is_empty()
            && self.longs.is_empty()
            && self.long_frames.is_quiet()
            && self.peers.values().all(Peer::is_quiet)
    }

    /// Whether something has not left.
    pub(super) fn is_sending(&self) -> bool {
        !self.sender.sending.is_empty() || self.long_frames.is_sending()
    }

    /// Peers that have not acknowledged everything.
    pub(super) fn unquiet(&self) -> Vec<usize> {
        let owes = |peer: &Peer| peer.unacknowledged > 0 || !peer.queue.is_empty() || peer.requests.is_some();
        self.peers.iter().filter(|(_, peer)| owes(peer)).map(|(&rank, _)| rank).collect()
    }

    /// Gives up the transfers of a request that use memory of the caller. Each ends as failed where that memory can be let go; one that
    /// MPI is at work on ends when that does.
    pub(super) fn cancel(&mut self, token: Token) {
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
    pub(super) fn close(&mut self) {
        /// A receive that has begun ends when its sender goes on, or not.
        const LOOKS: usize = 100;
        for (frame, mut request) in self.ring.drain(..) {
            request.cancel();
            if !(0..LOOKS).any(|_| request.test().unwrap_or(false)) {
                std::mem::forget(frame);
            }
        }
        std::mem::forget(std::mem::take(&mut self.sender.sending));
        std::mem::forget(std::mem::take(&mut self.longs));
        if !self.long_frames.is_quiet() {
            std::mem::forget(std::mem::take(&mut self.long_frames));
        }
        self.peers.values_mut().for_each(|peer| std::mem::forget(std::mem::take(&mut peer.inbox)));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if !self.ring.is_empty() {
            self.close();
        }
    }
}

fn receive(comm: Comm, frame: &mut Frame) -> Result<Request> {
    let (bytes, len) = frame.buffer();
    // SAFETY: the frame's memory is on the heap and nobody's while the request is beside it in the ring.
    unsafe { comm.begin_receive(bytes, len, None, FRAMES) }
}

fn send_requests(peer: &mut Peer, sender: &mut Sender, events: &mut Vec<Event>, to: usize) -> Result<()> {
    events.extend(peer.signals.drain(..).map(Event::LocalDone));
    if let Some(frame) = peer.requests.take_if(|frame| !frame.is_empty()) {
        peer.unacknowledged += 1;
        sender.send(frame, to, std::mem::take(&mut peer.owed), true)?;
    }
    Ok(())
}

fn send_answers(peer: &mut Peer, sender: &mut Sender, to: usize) -> Result<()> {
    if let Some(frame) = peer.answers.take_if(|frame| !frame.is_empty() || peer.owed >= ACKNOWLEDGE) {
        sender.send(frame, to, std::mem::take(&mut peer.owed), false)?;
    }
    Ok(())
}
