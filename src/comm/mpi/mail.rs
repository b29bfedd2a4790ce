//! Ordinary frames on their way: those that leave, and the receives that wait for what others send.
//!
//! Receives come from anybody. They are looked at in the order in which they were posted, which for each sender is the order of
//! sending. One that was used is posted anew when nobody waits for what it brought.

use std::collections::VecDeque;

use super::ffi::{Arrived, Comm, Request, Result};
use crate::comm::am::frame::Frame;

/// Bytes of a frame. Just below what UCX, and so most libraries, sends in one piece over TCP; measured with MPICH 4.0 over UCX
/// 1.13: 8,000 bytes 0.8 GB/s, 8,300 bytes 0.1.
pub(in crate::comm) const FRAME: usize = 8_000;

/// Frames that can arrive before anybody looks.
const RING: usize = 32;

/// Frames kept for the next.
const KEPT: usize = 256;

/// Frames are sent under this tag.
const FRAMES: i32 = 0;

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm) struct Mail {
    pub(in crate::comm) comm: Comm,
    leaving: VecDeque<(Frame, Request)>,
    coming: VecDeque<(Frame, Request)>,
    spare: Vec<Frame>,
    closed: bool,
}

impl Mail {
    pub(in crate::comm) fn new(comm: Comm) -> Result<Self> {
        let mut mail =
            Mail { comm, leaving: VecDeque::new(), coming: VecDeque::with_capacity(RING), spare: Vec::new(), closed: false };
        mail.receive()?;
        Ok(mail)
    }

    /// An empty frame.
    pub(in crate::comm) fn frame(&mut self) -> Frame {
        self.spare.pop().unwrap_or_else(|| Frame::new(FRAME))
    }

    /// Sends a frame.
    pub(in crate::comm) fn send(&mut self, mut frame: Frame, to: usize, acknowledged: u32, credit: bool) -> Result<()> {
        let (bytes, len) = frame.seal(acknowledged, credit);
        // SAFETY: the frame's memory is on the heap and stays as it is while the frame is in `leaving`.
        let request = unsafe { self.comm.begin_send(bytes, len, to, FRAMES) }?;
        self.leaving.push_back((frame, request));
        Ok(())
    }

    /// Frames that have not left.
    pub(in crate::comm) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Takes frames back that have left. A target that takes none keeps those of others for a few looks only.
    pub(in crate::comm) fn reap(&mut self) -> Result<()> {
        const LOOKS: usize = 4;
        let mut looks = LOOKS.min(self.leaving.len());
        while let Some((frame, mut request)) = self.leaving.pop_front() {
            match request.test() {
                Ok(true) => self.keep(frame),
                other => {
                    self.leaving.push_back((frame, request));
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

    /// Posts what receives are missing.
    pub(in crate::comm) fn receive(&mut self) -> Result<()> {
        while self.coming.len() < RING {
            let mut frame = self.frame();
            let (bytes, len) = frame.buffer();
            // SAFETY: the frame's memory is on the heap and nobody's while the request is beside it.
            let request = unsafe { self.comm.begin_receive(bytes, len, None, FRAMES) }?;
            self.coming.push_back((frame, request));
        }
        Ok(())
    }

    /// Posts them if half are missing: what comes while there is none is copied once more by the library.
    pub(in crate::comm) fn receive_if_few(&mut self) -> Result<()> {
        if self.coming.len() < RING / 2 { self.receive() } else { Ok(()) }
    }

    /// The next frame that has come.
    pub(in crate::comm) fn came(&mut self) -> Result<Option<(Frame, Arrived)>> {
        if self.coming.is_empty() {
            self.receive()?;
        }
        let Some((_, request)) = self.coming.front_mut() else { return Ok(None) };
        let Some(arrived) = request.test_arrived()? else { return Ok(None) };
        Ok(self.coming.pop_front().map(|(frame, _)| (frame, arrived)))
    }

    /// Gives a frame back.
    pub(in crate::comm) fn keep(&mut self, mut frame: Frame) {
        if self.spare.len() < KEPT {
            frame.clear();
            self.spare.push(frame);
        }
    }

    pub(in crate::comm) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes the receives back. Nothing is asked of MPI any more, so what it may still use is given back to nobody.
    pub(in crate::comm) fn close(&mut self) {
        /// A receive that has begun ends when its sender goes on, or not.
        const LOOKS: usize = 100;
        self.closed = true;
        for (frame, mut request) in self.coming.drain(..) {
            request.cancel();
            if !(0..LOOKS).any(|_| request.test().unwrap_or(false)) {
                std::mem::forget(frame);
            }
        }
        std::mem::forget(std::mem::take(&mut self.leaving));
    }
}
