//! Requests of others, in the order that `protocol::rendezvous` gives. Frames of answers never wait.

use super::{
    bulk::Then,
    endpoint::{End, Endpoint},
    frame::{Frame, Record, RecordKind},
    long_frames::{FrameUse, LONG_FRAME},
    peer::{ReceivedFrame, Waiting},
    wire::{BulkKind, Result, Tag, Wire},
};
use crate::comm::protocol::rendezvous::{Next, ReceivePlace};

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

impl<W: Wire> Endpoint<W> {
    /// A frame has come. The frame stays with the inbox, or is kept for another use.
    pub(super) fn arrived(&mut self, from: usize, frame: Frame, len: usize) -> Result<()> {
        let Some((acknowledged, is_request, records)) = frame.read(len) else {
            self.wrong(from, "a frame that ends too early");
            return Ok(());
        };
        let peer = self.peer(from);
        peer.heard = true;
        if peer.credit.acknowledged(acknowledged).is_none() {
            self.wrong(from, &format!("an acknowledgement of {acknowledged} frames, more than there were"));
        }
        if is_request {
            let left = records.left();
            let turn = self.peer(from).inbox.arrived(Waiting { frame, left });
            return if turn { self.resume(from) } else { Ok(()) };
        }
        for record in records {
            let handled = match record.kind {
                RecordKind::LongFrame => self.expect_answer(from, &record)?,
                _ => self.handle(from, &record)?,
            };
            if handled != Handled::Done {
                self.wrong(from, &format!("an answer that cannot be: {:?}", record.kind));
            }
        }
        self.wire.keep(frame);
        Ok(())
    }

    /// Handles what can be handled of the requests of a rank that is not in the list of those that wait.
    fn resume(&mut self, from: usize) -> Result<()> {
        loop {
            let others_wait = self.others_wait();
            match self.peer(from).inbox.next(others_wait) {
                Next::Message(buffer, len) => self.take_in(from, buffer, len)?,
                Next::Frame(frame) => {
                    if let Some(rest) = self.handle_frame(from, frame)? {
                        self.peer(from).inbox.put_back(rest);
                        break;
                    }
                }
                Next::Nothing => break,
            }
        }
        if !self.peer(from).inbox.is_empty() {
            self.delayed.push_back(from);
        }
        Ok(())
    }

    /// Looks at the inboxes in which something waits.
    pub(super) fn resume_all(&mut self) -> Result<()> {
        for _ in 0..self.delayed.len() {
            let Some(rank) = self.delayed.pop_front() else { break };
            self.resume(rank)?;
        }
        Ok(())
    }

    /// Returns true if other ranks wait than the one whose requests are handled, which is not in the list meanwhile.
    fn others_wait(&self) -> bool {
        !self.delayed.is_empty()
    }

    /// Handles the records of a frame, up to one that waits. Returns what is left.
    fn handle_frame(&mut self, from: usize, mut waiting: Waiting) -> Result<Option<Waiting>> {
        let mut records = waiting.frame.rest(waiting.left);
        while let Some(record) = records.next() {
            match self.handle_in_turn(from, &record)? {
                Handled::Done => {}
                Handled::Later => return Ok(Some(waiting)),
                // A rank of this program sends no such record. The job ends, because its sender may wait for an answer.
                Handled::Wrong => self.wrong(from, &format!("a request that cannot be: {:?}", record.kind)),
            }
            self.found += 1;
            waiting.left = records.left();
        }
        self.wire.keep(waiting.frame);
        self.peer(from).credit.handled();
        Ok(None)
    }

    fn handle_in_turn(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        match record.kind {
            RecordKind::PutLong => self.receive_into_segment(from, record),
            RecordKind::LongFrame | RecordKind::PutBlockLong | RecordKind::AccumulateLong => {
                self.receive_into_buffer(from, record)
            }
            _ if self.peer(from).inbox.may_handle() => self.handle(from, record),
            _ => Ok(Handled::Later),
        }
    }

    fn receive_into_segment(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        let Some([offset, len, number]) = record.words() else { return Ok(Handled::Wrong) };
        let longest = self.limits.longest();
        let segment = self.segments.of(record.number).filter(|_| len <= longest);
        let Some(memory) = segment.and_then(|segment| segment.range(offset, len)) else { return Ok(Handled::Wrong) };
        let range = offset..offset + len;
        let others_wait = self.others_wait();
        if !self.peer(from).inbox.may_receive(Some(&range), others_wait) {
            return Ok(Handled::Later);
        }
        self.receive(from, memory, len, number, ReceivePlace::Segment(range))
    }

    fn receive_into_buffer(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        let payload = payload_beside(record);
        let Some([len, number]) = payload.map(|(_, words)| words).or_else(|| record.words()) else {
            return Ok(Handled::Wrong);
        };
        if len > LONG_FRAME || self.limits.bulk.is_none() {
            return Ok(Handled::Wrong);
        }
        let others_wait = self.others_wait();
        if !self.peer(from).inbox.may_receive(None, others_wait) {
            return Ok(Handled::Later);
        }
        let Some(mut frame) = self.bulk.frames.take(FrameUse::PeerRequests) else { return Ok(Handled::Later) };
        let memory = frame.buffer().0;
        let payload_of = payload.map(|(kind, _)| record.hold(kind));
        self.receive(from, memory, len, number, ReceivePlace::Buffer(ReceivedFrame { frame, payload_of }))
    }

    /// Begins to receive what a record announces, into memory that the inbox knows from now on.
    fn receive(
        &mut self,
        from: usize,
        memory: *mut u8,
        len: usize,
        number: usize,
        to: ReceivePlace<ReceivedFrame>,
    ) -> Result<Handled> {
        let message = self.peer(from).inbox.receives(len, to);
        let id = self.bulk.add(Then::Announced { from, message });
        let tag = Tag { kind: BulkKind::Request, number: number as u64 };
        // SAFETY: the `len` bytes are a frame's on the heap, which the inbox keeps and lets nobody touch, or lie inside the
        // segment, which stays mapped while the endpoint lives; there a racing access of a transfer gives each byte old or new.
        unsafe { self.wire.receive_bulk(from, memory, len, tag, id) }?;
        Ok(Handled::Done)
    }

    /// A message that an announcement of a rank belongs to has come.
    pub(super) fn message_came(&mut self, from: usize, message: u64, len: usize) {
        if self.peer(from).inbox.has_come(message, len).is_none() {
            self.wrong(from, &format!("a message of {len} bytes, not as many as announced"));
        }
    }

    /// Handles what has come into a long frame, and gives the frame back.
    fn take_in(&mut self, from: usize, buffer: ReceivedFrame, len: usize) -> Result<()> {
        let ReceivedFrame { frame, payload_of } = buffer;
        match payload_of {
            Some(held) => {
                if self.handle(from, &held.with(&frame.bytes()[..len]))? != Handled::Done {
                    self.wrong(from, &format!("a long payload that cannot be: {held:?}"));
                }
            }
            None => {
                let records = frame.read(len).map(|(.., records)| records);
                if records.is_none() {
                    self.wrong(from, "a long request that ends too early");
                }
                for record in records.into_iter().flatten() {
                    let handled = match record.kind {
                        RecordKind::PutBlock | RecordKind::Accumulate => self.handle(from, &record)?,
                        _ => Handled::Wrong,
                    };
                    if handled != Handled::Done {
                        self.wrong(from, &format!("a long request that cannot be: {:?}", record.kind));
                    }
                }
            }
        }
        self.bulk.frames.give(frame, FrameUse::PeerRequests);
        Ok(())
    }

    /// Begins to receive a long frame of answers.
    fn expect_answer(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        let Some([len, number]) = record.words().filter(|&[len, _]| len <= LONG_FRAME && self.limits.bulk.is_some()) else {
            return Ok(Handled::Wrong);
        };
        let mut frame = self.bulk.frames.take_for_answer();
        let memory = frame.buffer().0;
        let id = self.bulk.add(Then::Answered { from, frame });
        // SAFETY: the frame's memory is on the heap; the table keeps the frame and lets nobody touch it.
        unsafe { self.wire.receive_bulk(from, memory, len, Tag { kind: BulkKind::Reply, number: number as u64 }, id) }?;
        Ok(Handled::Done)
    }

    pub(super) fn wrong(&mut self, from: usize, what: &str) {
        self.ended.get_or_insert_with(|| End { culprit: from, lost: false, cause: format!("sent {what}") });
    }
}

/// Of a record whose payload is a message beside the frames: what it is with its payload, and that one's length and number.
fn payload_beside(record: &Record<'_>) -> Option<(RecordKind, [usize; 2])> {
    match record.kind {
        RecordKind::PutBlockLong => record.words().map(|[_, _, _, len, number]| (RecordKind::PutBlock, [len, number])),
        RecordKind::AccumulateLong => {
            record.words().map(|[_, _, _, _, _, _, len, number]| (RecordKind::Accumulate, [len, number]))
        }
        _ => None,
    }
}
