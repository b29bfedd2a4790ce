//! Frames too long to be sent eagerly: bulk messages, each announced by a record in an ordinary frame.
//!
//! Each use has a bound of its own ([`MOST`]), so none waits for another: a target receives what leaves, and waits only for what
//! was sent before it.

use super::frame::{Frame, Frames};

/// Bytes of a long frame. Each costs some 30 µs beside its bytes: 1 MiB in chunks takes 400 µs in frames of 128 KiB, 280 of 256 KiB,
/// 210 of 512 KiB (MPICH over TCP).
pub(super) const LONG_FRAME: usize = 512 << 10;

/// Long frames of one kind at a time.
const MOST: usize = 6;

/// Long frames kept for the next: memory from the system costs more than its use.
const KEPT: usize = 3 * MOST;

/// What a long frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameUse {
    /// Sent, with requests.
    Requests,
    /// Sent, with answers.
    Answers,
    /// To receive requests into.
    PeerRequests,
}

/// The long frames of a rank, bounded for each use.
#[derive(Debug)]
pub(super) struct LongFrames {
    used: [usize; 3],
    spare: Frames,
}

impl Default for LongFrames {
    fn default() -> Self {
        LongFrames { used: [0; 3], spare: Frames::new(LONG_FRAME, KEPT) }
    }
}

impl LongFrames {
    /// An empty frame, if there is one for that use.
    pub(super) fn take(&mut self, what: FrameUse) -> Option<Frame> {
        (self.used[what as usize] < MOST).then(|| {
            self.used[what as usize] += 1;
            self.spare.take()
        })
    }

    /// Gives a frame back that was taken.
    pub(super) fn give(&mut self, frame: Frame, what: FrameUse) {
        self.used[what as usize] -= 1;
        self.spare.give(frame);
    }

    /// A frame for an answer that this rank asked for, and so knows the bound of.
    pub(super) fn take_for_answer(&mut self) -> Frame {
        self.spare.take()
    }

    /// Gives it back.
    pub(super) fn give_answer(&mut self, frame: Frame) {
        self.spare.give(frame);
    }
}
