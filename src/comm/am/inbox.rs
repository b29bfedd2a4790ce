//! Requests of others that cannot be handled yet, in their order.
//!
//! Records of one rank are handled one after the other. One whose bytes travel beside the frames is done when they have come, and one
//! that would need more memory for its answer than there is waits: then all that the same rank sent behind it waits here too, but
//! for further announcements, whose messages are received meanwhile. Credit bounds how much that can be. Frames of answers
//! never wait.

use std::{collections::VecDeque, ops::Range};

use super::{
    LONGEST,
    ffi::{Request, Result},
    frame::{Frame, Held, Kind, Record},
    long_frames::{LONG_FRAME, LongFrames, Use},
    longs::{Beside, tag},
    net::Net,
};

/// Messages beside the frames that are received from one rank at a time.
const BESIDE: usize = 4;

/// What one other rank asks for.
#[derive(Debug, Default)]
pub(in crate::comm) struct Inbox {
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
    request: Request,
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
pub(in crate::comm) enum Handled {
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
    pub(in crate::comm) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.beside.is_empty()
    }
}

impl Net {
    /// A frame has come. The frame stays with the inbox, or is kept for another use.
    pub(in crate::comm) fn arrived(&mut self, from: usize, frame: Frame, len: usize) -> Result<()> {
        let Some((acknowledged, is_request, records)) = frame.read(len) else {
            self.wrong(from, "a frame that ends too early");
            return Ok(());
        };
        self.acknowledged(from, acknowledged);
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
        self.keep(frame);
        Ok(())
    }

    /// Handles what can be handled of a rank's requests.
    pub(in crate::comm) fn resume(&mut self, from: usize) -> Result<()> {
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
            self.keep(waiting.frame);
            self.peer(from).owed += 1;
        }
        let peer = self.peer(from);
        if !peer.inbox.is_empty() && !peer.delayed {
            peer.delayed = true;
            self.delayed.push_back(from);
        }
        Ok(())
    }

    /// Looks at the inboxes in which something waits.
    pub(in crate::comm) fn resume_all(&mut self) -> Result<()> {
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
        let beside = if let Some((kind, [len, number])) = payload_beside(record) {
            if len > LONG_FRAME {
                return Ok(Handled::Wrong);
            }
            let comm = self.comm();
            let Some(mut frame) = self.long_frames.take(Use::Inbox) else { return Ok(Handled::Later) };
            let request = LongFrames::receive(comm, &mut frame, from, number as u64, Beside::Request)?;
            Message { request, to: Target::Payload(frame, record.hold(kind)) }
        } else if record.kind == Kind::PutLong {
            let Some([offset, len, number]) = record.words() else { return Ok(Handled::Wrong) };
            let Some(memory) = self.segment.range(offset, len).filter(|_| len <= LONGEST) else { return Ok(Handled::Wrong) };
            // What came before it and is not in the segment yet would be written over it.
            let range = offset..offset + len;
            let apart = |message: &Message| match &message.to {
                Target::Frame(_) | Target::Payload(..) => false,
                Target::Segment(other) => other.end <= range.start || range.end <= other.start,
            };
            if !self.peer(from).inbox.beside.iter().all(apart) {
                return Ok(Handled::Later);
            }
            // SAFETY: inside the segment, which stays mapped while the conduit lives; a racing access of a transfer gives each byte
            // old or new.
            let request = unsafe { self.comm().begin_receive(memory, len, Some(from), tag(number as u64, Beside::Request)) }?;
            Message { request, to: Target::Segment(range) }
        } else {
            let Some([len, number]) = record.words() else { return Ok(Handled::Wrong) };
            if len > LONG_FRAME {
                return Ok(Handled::Wrong);
            }
            let comm = self.comm();
            let Some(mut frame) = self.long_frames.take(Use::Inbox) else { return Ok(Handled::Later) };
            let request = LongFrames::receive(comm, &mut frame, from, number as u64, Beside::Request)?;
            Message { request, to: Target::Frame(frame) }
        };
        self.peer(from).inbox.beside.push_back(beside);
        Ok(Handled::Done)
    }

    /// Handles the messages beside the frames that have come, in their order.
    /// Tells whether frames were given back.
    fn take_in(&mut self, from: usize) -> Result<bool> {
        let mut gave = false;
        while let Some(front) = self.peer(from).inbox.beside.front_mut() {
            let Some(arrived) = front.request.test_arrived()? else { break };
            self.found += 1;
            let frame = match self.peer(from).inbox.beside.pop_front().map(|message| message.to) {
                Some(Target::Frame(frame)) => frame,
                Some(Target::Payload(frame, held)) => {
                    let handled = match frame.bytes().get(..arrived.len) {
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
            let records = frame.read(arrived.len).map(|(.., records)| records);
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

    fn expect_answer(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        match record.words() {
            Some([len, number]) if len <= LONG_FRAME => {
                let comm = self.comm();
                self.long_frames.expect(comm, from, number as u64)?;
                Ok(Handled::Done)
            }
            _ => Ok(Handled::Wrong),
        }
    }

    pub(in crate::comm) fn wrong(&mut self, from: usize, what: &str) {
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
