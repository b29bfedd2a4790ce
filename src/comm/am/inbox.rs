//! Requests of others that cannot be handled yet, in their order.
//!
//! Records of one rank are handled one after the other. One whose bytes travel beside the frames is done when they have come, and one
//! that would need more memory for its answer than there is waits: then all that the same rank sent behind it waits here too, but
//! for further announcements, whose messages are received meanwhile. Credit bounds how much that can be. Frames of answers
//! never wait.

use std::{collections::VecDeque, ops::Range};

use super::{
    bulk::Then,
    endpoint::Endpoint,
    frame::{Frame, Held, Kind, Record},
    long_frames::{LONG_FRAME, Use},
    wire::{BulkId, BulkKind, Result, Tag, Wire},
};

/// Messages beside the frames that are received from one rank at a time.
const BESIDE: usize = 4;

/// What one other rank asks for.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    frames: VecDeque<Waiting>,
    beside: VecDeque<Message>,
}

/// A frame of requests and how many of its words are not handled.
#[derive(Debug)]
struct Waiting {
    frame: Frame,
    left: usize,
}

/// A message beside the frames: records or the payload of one into a long frame, or bytes straight into the segment.
#[derive(Debug)]
struct Message {
    id: BulkId,
    /// Its length, once it has come.
    len: Option<usize>,
    to: Target,
}

#[derive(Debug)]
enum Target {
    Frame(Frame),
    Payload(Frame, Held),
    Segment(Range<usize>),
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handled {
    Done,
    /// It is to be tried again.
    Later,
    /// It cannot be right.
    Wrong,
}

impl From<Option<()>> for Handled {
    fn from(done: Option<()>) -> Self {
        if done.is_some() { Handled::Done } else { Handled::Wrong }
    }
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.beside.is_empty()
    }

    /// A message beside the frames has come.
    pub(super) fn has_come(&mut self, id: BulkId, len: usize) {
        if let Some(message) = self.beside.iter_mut().find(|message| message.id == id) {
            message.len = Some(len);
        }
    }
}

impl<W: Wire> Endpoint<W> {
    /// A frame has come. The frame stays with the inbox, or is kept for another use.
    pub(super) fn arrived(&mut self, from: usize, frame: Frame, len: usize) -> Result<()> {
        let Some((acknowledged, is_request, records)) = frame.read(len) else {
            self.wrong(from, "a frame that ends too early");
            return Ok(());
        };
        if self.peer(from).credit.acknowledged(acknowledged).is_none() {
            self.wrong(from, &format!("an acknowledgement of {acknowledged} frames, more than there were"));
        }
        if is_request {
            let left = records.left();
            self.peer(from).inbox.frames.push_back(Waiting { frame, left });
            return self.resume(from);
        }
        for record in records {
            let handled = match record.kind {
                Kind::LongFrame => self.expect_answer(from, &record)?,
                _ => self.handle(from, &record)?,
            };
            if handled != Handled::Done {
                self.wrong(from, &format!("an answer that cannot be: {:?}", record.kind));
            }
        }
        self.wire.keep(frame);
        Ok(())
    }

    /// Handles what can be handled of a rank's requests.
    pub(super) fn resume(&mut self, from: usize) -> Result<()> {
        loop {
            if self.take_in(from)? && !self.delayed.is_empty() {
                // Who has waited longer for a frame comes first.
                break;
            }
            let Some(mut waiting) = self.peer(from).inbox.frames.pop_front() else { break };
            let mut records = waiting.frame.rest(waiting.left);
            let mut all = true;
            while let Some(record) = records.next() {
                match self.handle_in_turn(from, &record)? {
                    Handled::Done => {}
                    Handled::Later => {
                        all = false;
                        break;
                    }
                    // Nobody who runs this program sends such a thing; who waits for an answer must not wait forever.
                    Handled::Wrong => self.wrong(from, &format!("a request that cannot be: {:?}", record.kind)),
                }
                self.found += 1;
                waiting.left = records.left();
            }
            if !all {
                self.peer(from).inbox.frames.push_front(waiting);
                break;
            }
            self.wire.keep(waiting.frame);
            self.peer(from).credit.handled();
        }
        let peer = self.peer(from);
        if !peer.inbox.is_empty() && !peer.delayed {
            peer.delayed = true;
            self.delayed.push_back(from);
        }
        Ok(())
    }

    /// Looks at the inboxes in which something waits.
    pub(super) fn resume_all(&mut self) -> Result<()> {
        for _ in 0..self.delayed.len() {
            let Some(rank) = self.delayed.pop_front() else { break };
            self.peer(rank).delayed = false;
            self.resume(rank)?;
        }
        Ok(())
    }

    fn handle_in_turn(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        match record.kind {
            Kind::PutLong | Kind::LongFrame | Kind::PutBlockLong | Kind::AccumulateLong => self.begin_beside(from, record),
            _ if !self.peer(from).inbox.beside.is_empty() => Ok(Handled::Later),
            _ => self.handle(from, record),
        }
    }

    /// Begins to receive what a record announces.
    fn begin_beside(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        // Others wait for frames too.
        let most = if self.delayed.iter().any(|&rank| rank != from) { 1 } else { BESIDE };
        if self.peer(from).inbox.beside.len() >= most {
            return Ok(Handled::Later);
        }
        let (memory, len, number, to) = if record.kind == Kind::PutLong {
            let Some([offset, len, number]) = record.words() else { return Ok(Handled::Wrong) };
            let longest = self.limits.longest();
            let Some(memory) = self.segment.range(offset, len).filter(|_| len <= longest) else { return Ok(Handled::Wrong) };
            // What came before it and is not in the segment yet would be written over it.
            let range = offset..offset + len;
            let apart = |message: &Message| match &message.to {
                Target::Frame(_) | Target::Payload(..) => false,
                Target::Segment(other) => other.end <= range.start || range.end <= other.start,
            };
            if !self.peer(from).inbox.beside.iter().all(apart) {
                return Ok(Handled::Later);
            }
            (memory, len, number, Target::Segment(range))
        } else {
            let payload = payload_beside(record);
            let Some([len, number]) = payload.map(|(_, words)| words).or_else(|| record.words()) else {
                return Ok(Handled::Wrong);
            };
            if len > LONG_FRAME || self.limits.bulk.is_none() {
                return Ok(Handled::Wrong);
            }
            let Some(mut frame) = self.long_frames.take(Use::Inbox) else { return Ok(Handled::Later) };
            let (memory, len) = frame.buffer();
            let to = match payload {
                Some((kind, _)) => Target::Payload(frame, record.hold(kind)),
                None => Target::Frame(frame),
            };
            (memory, len, number, to)
        };
        let id = self.bulk.add(Then::Announced { from });
        self.peer(from).inbox.beside.push_back(Message { id, len: None, to });
        let tag = Tag { kind: BulkKind::Request, number: number as u64 };
        // SAFETY: the memory is a frame's on the heap, which the inbox keeps and lets nobody touch, or inside the segment, which stays
        // mapped while the endpoint lives; there a racing access of a transfer gives each byte old or new.
        unsafe { self.wire.receive_bulk(from, memory, len, tag, id) }?;
        Ok(Handled::Done)
    }

    /// Handles the messages beside the frames that have come, in their order.
    /// Tells whether frames were given back.
    fn take_in(&mut self, from: usize) -> Result<bool> {
        let mut gave = false;
        while let Some(front) = self.peer(from).inbox.beside.front() {
            let Some(len) = front.len else { break };
            let frame = match self.peer(from).inbox.beside.pop_front().map(|message| message.to) {
                Some(Target::Frame(frame)) => frame,
                Some(Target::Payload(frame, held)) => {
                    let handled = match frame.bytes().get(..len) {
                        Some(payload) => self.handle(from, &held.with(payload))?,
                        None => Handled::Wrong,
                    };
                    if handled != Handled::Done {
                        self.wrong(from, &format!("a long payload that cannot be: {held:?}"));
                    }
                    self.long_frames.give(frame, Use::Inbox);
                    gave = true;
                    continue;
                }
                Some(Target::Segment(_)) | None => continue,
            };
            let records = frame.read(len).map(|(.., records)| records);
            if records.is_none() {
                self.wrong(from, "a long request that ends too early");
            }
            for record in records.into_iter().flatten() {
                let handled = match record.kind {
                    Kind::PutBlock | Kind::Accumulate => self.handle(from, &record)?,
                    _ => Handled::Wrong,
                };
                if handled != Handled::Done {
                    self.wrong(from, &format!("a long request that cannot be: {:?}", record.kind));
                }
            }
            self.long_frames.give(frame, Use::Inbox);
            gave = true;
        }
        Ok(gave)
    }

    /// Begins to receive a long frame of answers.
    fn expect_answer(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        let Some([len, number]) = record.words().filter(|&[len, _]| len <= LONG_FRAME && self.limits.bulk.is_some()) else {
            return Ok(Handled::Wrong);
        };
        let mut frame = self.long_frames.take_for_answer();
        let memory = frame.buffer().0;
        let id = self.bulk.add(Then::Answered { from, frame });
        // SAFETY: the frame's memory is on the heap; the table keeps the frame and lets nobody touch it.
        unsafe { self.wire.receive_bulk(from, memory, len, Tag { kind: BulkKind::Reply, number: number as u64 }, id) }?;
        Ok(Handled::Done)
    }

    pub(super) fn wrong(&mut self, from: usize, what: &str) {
        self.ended.get_or_insert_with(|| (from, format!("sent {what}")));
    }
}

/// Of a record whose payload is a message beside the frames: what it is with its payload, and that one's length and number.
fn payload_beside(record: &Record<'_>) -> Option<(Kind, [usize; 2])> {
    match record.kind {
        Kind::PutBlockLong => record.words().map(|[_, _, _, len, number]| (Kind::PutBlock, [len, number])),
        Kind::AccumulateLong => record.words().map(|[_, _, _, _, _, _, len, number]| (Kind::Accumulate, [len, number])),
        _ => None,
    }
}
