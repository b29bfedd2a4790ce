//! Frames too long for the ring: messages of their own, each announced by a record in an ordinary frame.
//!
//! A library sends a long message without a copy and straight into the memory that waits for it. The memory of long frames is bounded,
//! whatever the number of ranks: at most [`MOST`] of requests leave at a time, as many of answers, and as many of others'
//! requests come. Answers on their way here are bounded by who asks. Each has its own bound, so none waits for another: what leaves
//! is taken in by its target, which waits only for what was sent before.

use std::collections::VecDeque;

use super::{
    ffi::{Comm, Request, Result},
    frame::Frame,
    longs::{Beside, tag},
};

/// Bytes of a long frame. Each costs some 30 µs beside its bytes: 1 MiB in chunks takes 400 µs in frames of 128 KiB, 280 of 256 KiB,
/// 210 of 512 KiB (MPICH over TCP).
pub(in crate::comm) const LONG_FRAME: usize = 512 << 10;

/// Long frames of one kind at a time.
const MOST: usize = 6;

/// Long frames kept for the next: memory from the system costs more than its use.
const KEPT: usize = 3 * MOST;

/// What a long frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Use {
    /// Sent, with requests.
    Requests,
    /// Sent, with answers.
    Answers,
    /// To receive requests into.
    Inbox,
}

/// See the module's essay.
#[derive(Debug, Default)]
pub(in crate::comm) struct LongFrames {
    leaving: VecDeque<(Frame, Request, Use)>,
    /// Answers on their way here. Who asks bounds them.
    coming: VecDeque<(usize, Frame, Request)>,
    used: [usize; 3],
    spare: Vec<Frame>,
    number: u64,
}

impl LongFrames {
    /// An empty frame, if there is one for that use.
    pub(in crate::comm) fn take(&mut self, what: Use) -> Option<Frame> {
        (self.used[what as usize] < MOST).then(|| {
            self.used[what as usize] += 1;
            self.frame()
        })
    }

    fn frame(&mut self) -> Frame {
        self.spare.pop().unwrap_or_else(|| Frame::new(LONG_FRAME))
    }

    fn keep(&mut self, mut frame: Frame) {
        if self.spare.len() < KEPT {
            frame.clear();
            self.spare.push(frame);
        }
    }

    /// Gives a frame back that was taken.
    pub(in crate::comm) fn give(&mut self, frame: Frame, what: Use) {
        self.used[what as usize] -= 1;
        self.keep(frame);
    }

    /// The number of the next message beside the frames.
    pub(in crate::comm) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Sends a frame that was taken. The words of its announcement.
    pub(in crate::comm) fn send(&mut self, comm: Comm, mut frame: Frame, to: usize, what: Use) -> Result<[u64; 2]> {
        let number = self.next_number();
        let kind = if what == Use::Answers { Beside::Answer } else { Beside::Request };
        let (bytes, len) = frame.seal(0, false);
        // SAFETY: the frame's memory is on the heap and stays as it is while the frame is in `leaving`.
        let request = unsafe { comm.begin_send(bytes, len, to, tag(number, kind)) }?;
        self.leaving.push_back((frame, request, what));
        Ok([len as u64, number])
    }

    /// Sends the first bytes of a frame that was taken, without records, as an answer to who waits for them.
    pub(in crate::comm) fn send_bytes(&mut self, comm: Comm, frame: Frame, len: usize, to: usize, number: u64) -> Result<()> {
        let bytes = frame.bytes()[..len].as_ptr();
        // SAFETY: as in `send`.
        let request = unsafe { comm.begin_send(bytes, len, to, tag(number, Beside::Get)) }?;
        self.leaving.push_back((frame, request, Use::Answers));
        Ok(())
    }

    /// Begins to receive what was announced, into a frame that was taken or is for answers.
    pub(in crate::comm) fn receive(comm: Comm, frame: &mut Frame, from: usize, number: u64, kind: Beside) -> Result<Request> {
        let (bytes, len) = frame.buffer();
        // SAFETY: the frame's memory is on the heap; the caller keeps the frame beside the request and lets nobody touch it.
        unsafe { comm.begin_receive(bytes, len, Some(from), tag(number, kind)) }
    }

    /// An announced answer.
    pub(in crate::comm) fn expect(&mut self, comm: Comm, from: usize, number: u64) -> Result<()> {
        let mut frame = self.frame();
        let request = LongFrames::receive(comm, &mut frame, from, number, Beside::Answer)?;
        self.coming.push_back((from, frame, request));
        Ok(())
    }

    /// An answer that has come: from whom, the frame, its length. To be given back by [`LongFrames::read`].
    pub(in crate::comm) fn came(&mut self) -> Result<Option<(usize, Frame, usize)>> {
        const LOOKS: usize = 4;
        for _ in 0..self.coming.len().min(LOOKS) {
            let Some((from, frame, mut request)) = self.coming.pop_front() else { break };
            match request.test_arrived() {
                Ok(Some(arrived)) => return Ok(Some((from, frame, arrived.len))),
                other => {
                    // The library may still use the memory.
                    self.coming.push_back((from, frame, request));
                    other?;
                }
            }
        }
        Ok(None)
    }

    /// Gives the frame of an answer back.
    pub(in crate::comm) fn read(&mut self, frame: Frame) {
        self.keep(frame);
    }

    /// Takes frames back that have left; how many.
    pub(in crate::comm) fn reap(&mut self) -> Result<u64> {
        let mut left = 0;
        /// Looks at most, each of which is a call: one slow target does not keep the frames of the others.
        const LOOKS: usize = 4;
        for _ in 0..self.leaving.len().min(LOOKS) {
            let Some((frame, mut request, what)) = self.leaving.pop_front() else { break };
            match request.test() {
                Ok(true) => {
                    self.give(frame, what);
                    left += 1;
                }
                Ok(false) => self.leaving.push_back((frame, request, what)),
                Err(error) => {
                    self.leaving.push_back((frame, request, what));
                    return Err(error);
                }
            }
        }
        Ok(left)
    }

    pub(in crate::comm) fn is_sending(&self) -> bool {
        !self.leaving.is_empty()
    }

    pub(in crate::comm) fn is_quiet(&self) -> bool {
        self.leaving.is_empty() && self.coming.is_empty()
    }
}
