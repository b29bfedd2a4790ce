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
//! what is there. Receives come from anybody, are posted in a ring and looked at in its order, which for each sender is the order
//! of sending. Who handles a record never waits: answers go into a frame of their own, and if the library cannot send it at once,
//! it is kept until it can.

use std::collections::{HashMap, VecDeque};

use super::{
    ffi::{Comm, Request, Result},
    frame::{Frame, Kind},
    memory::{Over, Segment, pack, unpack},
    peer::{ACKNOWLEDGE, ASKED, Block, BlockKind, Op, Peer},
    runs::Runs,
};
use crate::comm::{Event, SignalOp, Token};

/// Bytes of a frame. Just below what UCX, and so most libraries, sends in one piece over TCP; measured with MPICH 4.0 over UCX
/// 1.13: 8,000 bytes 0.8 GB/s, 8,300 bytes 0.1.
pub(super) const FRAME: usize = 8_000;

/// Frames that can arrive before anybody looks.
const RING: usize = 32;

/// From here on contiguous bytes travel in a message of their own.
pub(super) const LONG: usize = 128 << 10;

/// Frames that one poll handles at most, so that its caller comes to look at what it waits for.
const BATCH: usize = 64;

/// Frames are sent under this tag.
const FRAMES: i32 = 0;

/// What an origin waits for.
#[derive(Debug)]
enum Origin {
    /// A value: of an atomic operation, or a flush if it is not wanted.
    Value { token: Token, wanted: bool },
    /// Bytes.
    Data { token: Token, base: *mut u8, runs: Box<Runs>, rest: usize },
}

/// A message beside the frames.
#[derive(Debug)]
struct Long {
    request: Request,
    then: Then,
}

/// What its completion means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// The caller's memory is free, or filled.
    Local(Token),
    /// The peer's bytes are here: tell it.
    Tell { peer: usize, number: u64 },
    /// The peer has what it asked for, or will see for itself.
    Nothing,
}

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

    /// Takes frames back that have left.
    fn reap(&mut self) -> Result<()> {
        while let Some((_, request)) = self.sending.front_mut() {
            if !request.test()? {
                break;
            }
            if let Some((mut frame, _)) = self.sending.pop_front() {
                frame.clear();
                self.spare.push(frame);
            }
        }
        Ok(())
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
    origins: Vec<Option<Origin>>,
    free: Vec<u64>,
    longs: Vec<Long>,
    number: u64,
    pub(super) events: Vec<Event>,
    /// Why the job must end, as a peer tells: who ended it, and why.
    pub(super) ended: Option<(usize, String)>,
    /// Grows with whatever is found: tells whether a look was worth it.
    pub(super) found: u64,
}

// SAFETY: the pointers in `origins` are those of `get`, whose callers promise that the memory may be used until the completion is
// polled, by whichever thread polls.
unsafe impl Send for Net {}

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
            origins: Vec::new(),
            free: Vec::new(),
            longs: Vec::new(),
            number: 0,
            events: Vec::new(),
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
    fn peer(&mut self, rank: usize) -> &mut Peer {
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

    fn origin(&mut self, origin: Origin) -> u64 {
        match self.free.pop() {
            Some(id) => {
                self.origins[id as usize] = Some(origin);
                id
            }
            None => {
                self.origins.push(Some(origin));
                self.origins.len() as u64 - 1
            }
        }
    }

    /// Names what waits for a value.
    pub(super) fn value_origin(&mut self, token: Token, wanted: bool) -> u64 {
        self.origin(Origin::Value { token, wanted })
    }

    /// Names what waits for bytes.
    pub(super) fn data_origin(&mut self, token: Token, base: *mut u8, runs: Runs, len: usize) -> u64 {
        self.origin(Origin::Data { token, base, runs: Box::new(runs), rest: len })
    }

    /// Writes queued operations into frames, as far as there is room and credit.
    fn pump(&mut self, to: usize) -> Result<()> {
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(()) };
        while let Some(mut op) = peer.queue.pop_front() {
            if peer.must_wait(&op) || (matches!(op, Op::Get { .. }) || is_get(&op)) && peer.asked >= ASKED * FRAME {
                peer.queue.push_front(op);
                break;
            }
            let frame = peer.requests.get_or_insert_with(|| self.sender.frame());
            match write(&mut op, frame, &mut peer.asked) {
                Written::All => match op {
                    Op::Put { token, .. } => self.events.push(Event::LocalDone(token)),
                    Op::PutSignal { token, .. } => peer.signals.push(token),
                    Op::Block(block) if !matches!(block.what, BlockKind::Get { .. }) => {
                        self.events.push(Event::LocalDone(block.token));
                    }
                    Op::Long { put, offset, local, len, token } => {
                        self.number += 1;
                        let number = self.number;
                        let kind = if put { Kind::PutLong } else { Kind::GetLong };
                        frame.push(kind, 0, &[offset as u64, len as u64, number], &[], 0);
                        // SAFETY: the caller's memory may be used until the completion is polled.
                        let request = unsafe {
                            match put {
                                true => self.sender.comm.begin_send(local, len, to, tag(number, put))?,
                                false => self.sender.comm.begin_receive(local, len, Some(to), tag(number, put))?,
                            }
                        };
                        self.longs.push(Long { request, then: Then::Local(token) });
                        if put {
                            (peer.long, peer.long_of) = (peer.long + 1, Some(token));
                        }
                    }
                    _ => {}
                },
                Written::Some | Written::NoRoom => {
                    peer.queue.push_front(op);
                    if !peer.has_credit() {
                        break;
                    }
                    send_requests(peer, &mut self.sender, &mut self.events, to)?;
                }
                Written::AskedEnough => {
                    peer.queue.push_front(op);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Receives, answers, sends.
    pub(super) fn poll(&mut self) -> Result<()> {
        for _ in 0..BATCH {
            let (frame, request) = &mut self.ring[self.head];
            let Some(arrived) = request.test_arrived()? else { break };
            let mut frame = std::mem::replace(frame, Frame::new(0));
            self.found += 1;
            let handled = self.handle(arrived.from, &frame, arrived.len);
            let request = receive(self.sender.comm, &mut frame);
            self.ring[self.head] = (frame, request?);
            self.head = (self.head + 1) % RING;
            handled?;
        }
        let mut at = 0;
        while at < self.longs.len() {
            if !self.longs[at].request.test()? {
                at += 1;
                continue;
            }
            self.found += 1;
            match self.longs.swap_remove(at).then {
                Then::Local(token) => self.events.push(Event::LocalDone(token)),
                Then::Tell { peer, number } => self.answer(peer, Kind::LongDone, &[number], 0, |_| ())?,
                Then::Nothing => {}
            }
        }
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
        self.sender.reap()
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

    /// A message beside the frames that a peer asked for.
    pub(super) fn begin_long(&mut self, request: Request, then: Then) {
        self.longs.push(Long { request, then });
    }

    pub(super) fn comm(&self) -> Comm {
        self.sender.comm
    }

    /// A frame of requests was handled; how many of ours the peer has handled.
    pub(super) fn account(&mut self, from: usize, acknowledged: u32, credit: bool) {
        let peer = self.peer(from);
        peer.unacknowledged = peer.unacknowledged.saturating_sub(acknowledged);
        peer.owed += u32::from(credit);
    }

    /// A value has come for an origin.
    pub(super) fn value_came(&mut self, id: usize, value: u64) {
        if let Some(Some(Origin::Value { token, wanted })) = self.origins.get(id) {
            let event = if *wanted { Event::Value(*token, value) } else { Event::RemoteDone(*token) };
            self.events.push(event);
            self.release(id);
        }
    }

    /// Bytes have come for an origin.
    pub(super) fn data_came(&mut self, from: usize, id: usize, at: usize, bytes: &[u8]) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.asked = peer.asked.saturating_sub(bytes.len());
        }
        let Some(Some(Origin::Data { token, base, runs, rest })) = self.origins.get_mut(id) else { return };
        let all = runs.bytes().unwrap_or(0);
        if bytes.len() > *rest || at > all || bytes.len() > all - at {
            return;
        }
        // SAFETY: the runs are the caller's memory until its completion is polled; the range was just checked.
        unsafe { unpack(*base, runs, at, bytes) };
        *rest -= bytes.len();
        if *rest == 0 {
            self.events.push(Event::LocalDone(*token));
            self.release(id);
        }
    }

    fn release(&mut self, id: usize) {
        self.origins[id] = None;
        self.free.push(id as u64);
    }

    /// A long put is complete at its target.
    pub(super) fn long_done(&mut self, from: usize) {
        let peer = self.peer(from);
        peer.long = peer.long.saturating_sub(1);
    }

    /// Whether nothing is under way that another rank would miss.
    pub(super) fn is_quiet(&self) -> bool {
        self.sender.sending.is_empty() && self.longs.is_empty() && self.peers.values().all(Peer::is_quiet)
    }

    /// Whether something has not left.
    pub(super) fn is_sending(&self) -> bool {
        !self.sender.sending.is_empty()
    }

    /// Peers that have not acknowledged everything.
    pub(super) fn unquiet(&self) -> Vec<usize> {
        self.peers.iter().filter(|(_, peer)| peer.unacknowledged > 0).map(|(&rank, _)| rank).collect()
    }

    /// Takes the receives back. Nothing comes any more.
    pub(super) fn close(&mut self) {
        self.ring.drain(..).for_each(|(_, request)| request.cancel());
    }
}

fn receive(comm: Comm, frame: &mut Frame) -> Result<Request> {
    let (bytes, len) = frame.buffer();
    // SAFETY: the frame's memory is on the heap and nobody's while the request is beside it in the ring.
    unsafe { comm.begin_receive(bytes, len, None, FRAMES) }
}

/// Puts have even tags and gets odd ones, so that messages of the two directions never meet.
pub(super) fn tag(number: u64, put: bool) -> i32 {
    2 + (number % 16_000) as i32 * 2 + i32::from(!put)
}

fn is_get(op: &Op) -> bool {
    matches!(op, Op::Block(block) if matches!(block.what, BlockKind::Get { .. }))
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

/// How much of an operation found room in a frame.
enum Written {
    All,
    Some,
    NoRoom,
    /// The rest is asked for when something has come.
    AskedEnough,
}

/// Writes what fits of an operation into a frame.
fn write(op: &mut Op, frame: &mut Frame, asked: &mut usize) -> Written {
    match op {
        Op::Small { kind, aux, words, .. } => {
            if !frame.has_room(words.len(), 0, 0) {
                return Written::NoRoom;
            }
            frame.push(*kind, *aux, words, &[], 0);
            Written::All
        }
        Op::Message { words, bytes } => {
            if !frame.has_room(words.len(), 0, bytes.len()) {
                return Written::NoRoom;
            }
            frame.push(Kind::Message, 0, words, &[], bytes.len()).copy_from_slice(bytes);
            Written::All
        }
        Op::Long { .. } if !frame.has_room(3, 0, 0) => Written::NoRoom,
        Op::Long { .. } => Written::All,
        Op::Put { offset, local, len, at, .. } => {
            let room = frame.room(1, 0);
            if room == 0 || room < MINIMUM.min(*len - *at) {
                return Written::NoRoom;
            }
            let part = room.min(*len - *at);
            let to = frame.push(Kind::Put, 0, &[(*offset + *at) as u64], &[], part);
            // SAFETY: the caller's memory is readable until its completion is polled.
            unsafe { pack(local.wrapping_add(*at), &Runs::one(part), 0, to) };
            *at += part;
            if at == len { Written::All } else { Written::Some }
        }
        Op::PutSignal { offset, local, len, signal, .. } => {
            // A record's words and its payload, or not even its words.
            if !frame.has_room(3, 0, *len) {
                return Written::NoRoom;
            }
            let words = [*offset as u64, signal.offset as u64, u64::from(signal.value)];
            let to = frame.push(Kind::PutSignal, u8::from(signal.op == SignalOp::Add), &words, &[], *len);
            if *len > 0 {
                // SAFETY: as above.
                unsafe { pack(*local, &Runs::one(*len), 0, to) };
            }
            Written::All
        }
        Op::Get { offset, len, at, origin, .. } => {
            while *at < *len {
                if *asked >= ASKED * FRAME {
                    return Written::AskedEnough;
                }
                if !frame.has_room(4, 0, 0) {
                    return Written::NoRoom;
                }
                let part = (*len - *at).min(Frame::room_when_empty(FRAME, 2, 0));
                frame.push(Kind::Get, 0, &[(*offset + *at) as u64, part as u64, *at as u64, *origin], &[], 0);
                *asked += part;
                *at += part;
            }
            Written::All
        }
        Op::Block(block) => write_block(block, frame, asked),
    }
}

/// Bytes for which a put does not begin in a frame that is nearly full.
const MINIMUM: usize = 256;

fn write_block(block: &mut Block, frame: &mut Frame, asked: &mut usize) -> Written {
    let (levels, there) = (block.there.levels(), &block.there);
    let run = there.run() as u64;
    while block.at < block.len {
        let (at, rest) = (block.at, block.len - block.at);
        match block.what {
            BlockKind::Get { origin } => {
                if *asked >= ASKED * FRAME {
                    return Written::AskedEnough;
                }
                if !frame.has_room(5, levels.len(), 0) {
                    return Written::NoRoom;
                }
                let Some(part) = there.piece(at, rest, Frame::room_when_empty(FRAME, 2, 0), 1) else { return Written::NoRoom };
                let words = [block.offset as u64, run, at as u64, part as u64, origin];
                frame.push(Kind::GetBlock, 0, &words, levels, 0);
                *asked += part;
                block.at += part;
            }
            BlockKind::Put => {
                let Some(part) = there.piece(at, rest, frame.room(3, levels.len()), 1) else { return Written::NoRoom };
                let to = frame.push(Kind::PutBlock, 0, &[block.offset as u64, run, at as u64], levels, part);
                // SAFETY: the caller's memory is readable until its completion is polled.
                unsafe { pack(block.local, &block.here, at, to) };
                block.at += part;
            }
            BlockKind::Accumulate { lock, numbers, alpha } => {
                let Some(part) = there.piece(at, rest, frame.room(6, levels.len()), NUMBER) else { return Written::NoRoom };
                let words = [block.offset as u64, run, at as u64, lock as u64, alpha[0], alpha[1]];
                let to = frame.push(Kind::Accumulate, numbers, &words, levels, part);
                // SAFETY: as above.
                unsafe { pack(block.local, &block.here, at, to) };
                block.at += part;
            }
        }
    }
    Written::All
}

/// Bytes of the longest number that is added: a piece of a run holds whole ones.
const NUMBER: usize = 16;
