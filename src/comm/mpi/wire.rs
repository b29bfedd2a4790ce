//! Frames and bulk messages over MPI.
//!
//! A ring of receives takes frames from anybody. Looks follow the order of posting, which for each sender is the order of sending. A used
//! receive is posted again when nobody waits for what it brought.

use std::collections::VecDeque;

use super::ffi::{Comm, MpiError, MpiRequest};
use crate::comm::am::{
    frame::{Frame, Frames},
    wire::{Arrival, Broken, BulkId, BulkLimits, Class, Ended, Limits, Result, Tag, Wire},
};

/// Bytes of a frame. Just below what UCX, and so most libraries, sends in one piece over TCP; measured with MPICH 4.0 over UCX
/// 1.13: 8,000 bytes 0.8 GB/s, 8,300 bytes 0.1.
///
/// Bulk messages pay from these lengths on: a frame takes some 10 µs and 1 µs for each KiB, a long frame 50 µs up to 128 KiB, and 64
/// KiB of contiguous bytes take some 60 µs either way (MPICH over TCP). The longest is what every library counts in an `int`.
const LIMITS: Limits = Limits {
    frame: 8_000,
    bulk: Some(BulkLimits { contiguous: 64 << 10, packed: 48 << 10, longest: 1 << 30 }),
    one_sided: None,
    by_agents: false,
};

/// Frames that can arrive before anybody looks.
const RING: usize = 32;

/// Frames kept for the next.
const KEPT: usize = 256;

/// Frames are sent under this tag.
const FRAMES: i32 = 0;

/// Looks at most at frames that leave, and at bulk messages, in one poll: each is a call. A target that takes none keeps those of others
/// for a few looks only.
const LOOKS_AT_FRAMES: usize = 4;
const LOOKS_AT_BULK: usize = 16;

/// A wire of active messages over MPI.
#[derive(Debug)]
pub(super) struct MpiWire {
    comm: Comm,
    leaving: VecDeque<(Frame, MpiRequest)>,
    coming: VecDeque<(Frame, MpiRequest)>,
    bulk: VecDeque<Bulk>,
    spare: Frames,
    closed: bool,
}

/// A bulk message under way.
#[derive(Debug)]
struct Bulk {
    request: MpiRequest,
    what: BulkTransfer,
}

#[derive(Debug)]
enum BulkTransfer {
    Sent(BulkId),
    Received {
        id: BulkId,
        from: usize,
        len: usize,
        tag: i32,
        cancelled: bool,
    },
    /// Nobody wants it any more.
    Discarded(#[allow(dead_code, reason = "MPI writes there")] Box<[u8]>),
}

/// Below the least upper bound of tags that a library may have, 32,767.
fn number(Tag { kind, number }: Tag) -> i32 {
    2 + (number % 8_000) as i32 * 4 + kind as i32
}

impl From<MpiError> for Broken {
    fn from(error: MpiError) -> Self {
        Broken(error.to_string())
    }
}

impl MpiWire {
    pub(super) fn new(comm: Comm) -> Result<Self> {
        let mut wire = MpiWire {
            comm,
            leaving: VecDeque::new(),
            coming: VecDeque::with_capacity(RING),
            bulk: VecDeque::new(),
            spare: Frames::new(LIMITS.frame, KEPT),
            closed: false,
        };
        wire.post_receives()?;
        Ok(wire)
    }

    /// Posts what receives are missing.
    fn post_receives(&mut self) -> Result<()> {
        while self.coming.len() < RING {
            let mut frame = self.spare.take();
            let (bytes, len) = frame.buffer();
            // SAFETY: the frame's memory is on the heap and nobody's while the request is beside it.
            let request = unsafe { self.comm.begin_receive(bytes, len, None, FRAMES) }?;
            self.coming.push_back((frame, request));
        }
        Ok(())
    }

    /// Takes frames back that have left.
    fn reap(&mut self) -> Result<()> {
        let mut looks = LOOKS_AT_FRAMES.min(self.leaving.len());
        while let Some((frame, mut request)) = self.leaving.pop_front() {
            match request.test() {
                Ok(true) => self.spare.give(frame),
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

    /// Looks at a bulk message. What is to be waited for in its place, if anything.
    fn look(&self, bulk: &mut Bulk, ended: &mut Vec<Ended>) -> Result<Look> {
        match bulk.what {
            BulkTransfer::Sent(id) => {
                let done = bulk.request.test()?;
                ended.extend(done.then_some(Ended { id, len: 0 }));
                Ok(if done { Look::Ended } else { Look::Open })
            }
            BulkTransfer::Received { id, cancelled: false, .. } => {
                let arrived = bulk.request.test_arrived()?;
                ended.extend(arrived.map(|arrived| Ended { id, len: arrived.len }));
                Ok(if arrived.is_some() { Look::Ended } else { Look::Open })
            }
            BulkTransfer::Received { id, from, len, tag, cancelled: true } => {
                let Some(cancelled) = bulk.request.test_cancelled()? else { return Ok(Look::Open) };
                ended.push(Ended { id, len: 0 });
                if !cancelled {
                    return Ok(Look::Ended);
                }
                // The target still sends it, and it must not be taken for another message.
                let mut bytes = vec![0; len].into_boxed_slice();
                // SAFETY: memory of the message's own, kept beside the request.
                let request = unsafe { self.comm.begin_receive(bytes.as_mut_ptr(), len, Some(from), tag)? };
                Ok(Look::Another(Bulk { request, what: BulkTransfer::Discarded(bytes) }))
            }
            BulkTransfer::Discarded(_) => Ok(if bulk.request.test()? { Look::Ended } else { Look::Open }),
        }
    }
}

/// What a look found.
enum Look {
    Open,
    Ended,
    /// Something else is to be waited for.
    Another(Bulk),
}

impl Wire for MpiWire {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn frame(&mut self) -> Frame {
        self.spare.take()
    }

    fn keep(&mut self, frame: Frame) {
        self.spare.give(frame);
    }

    /// The library takes every message.
    fn send(&mut self, to: usize, _class: Class, frame: Frame) -> Result<Option<Frame>> {
        let bytes = frame.sealed();
        // SAFETY: the frame's memory is on the heap and stays as it is while the frame is in `leaving`.
        let request = unsafe { self.comm.begin_send(bytes.as_ptr(), bytes.len(), to, FRAMES) }?;
        self.leaving.push_back((frame, request));
        Ok(None)
    }

    fn leaving(&self) -> usize {
        self.leaving.len()
    }

    fn receive(&mut self) -> Result<Option<Arrival>> {
        // What arrives while there are few receives is copied once more by the library.
        if self.coming.len() < RING / 2 {
            self.post_receives()?;
        }
        if let Some((_, request)) = self.coming.front_mut()
            && let Some(arrived) = request.test_arrived()?
        {
            let first = self.coming.pop_front();
            return Ok(first.map(|(frame, _)| Arrival { from: arrived.from, frame, len: arrived.len }));
        }
        self.post_receives()?;
        Ok(None)
    }

    unsafe fn send_bulk(&mut self, to: usize, bytes: *const u8, len: usize, tag: Tag, id: BulkId) -> Result<()> {
        // SAFETY: the caller's promise.
        let request = unsafe { self.comm.begin_send(bytes, len, to, number(tag)) }?;
        self.bulk.push_back(Bulk { request, what: BulkTransfer::Sent(id) });
        Ok(())
    }

    unsafe fn receive_bulk(&mut self, from: usize, bytes: *mut u8, len: usize, tag: Tag, id: BulkId) -> Result<()> {
        let tag = number(tag);
        // SAFETY: the caller's promise.
        let request = unsafe { self.comm.begin_receive(bytes, len, Some(from), tag) }?;
        self.bulk.push_back(Bulk { request, what: BulkTransfer::Received { id, from, len, tag, cancelled: false } });
        Ok(())
    }

    fn cancel(&mut self, wanted: BulkId) {
        for bulk in &mut self.bulk {
            if let BulkTransfer::Received { id, cancelled, .. } = &mut bulk.what
                && *id == wanted
                && !*cancelled
            {
                *cancelled = true;
                bulk.request.cancel();
            }
        }
    }

    fn ended(&mut self, ended: &mut Vec<Ended>) -> Result<()> {
        for _ in 0..self.bulk.len().min(LOOKS_AT_BULK) {
            let Some(mut bulk) = self.bulk.pop_front() else { break };
            match self.look(&mut bulk, ended) {
                Ok(Look::Open) => self.bulk.push_back(bulk),
                Ok(Look::Ended) => {}
                Ok(Look::Another(bulk)) => self.bulk.push_back(bulk),
                Err(error) => {
                    // The library may still use the memory.
                    self.bulk.push_back(bulk);
                    return Err(error);
                }
            }
        }
        self.reap()
    }

    fn close(&mut self) {
        /// A receive that has begun ends when its sender goes on, or not.
        const LOOKS: usize = 100;
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        for (frame, mut request) in self.coming.drain(..) {
            request.cancel();
            if !(0..LOOKS).any(|_| request.test().unwrap_or(false)) {
                std::mem::forget(frame);
            }
        }
        std::mem::forget(std::mem::take(&mut self.leaving));
        std::mem::forget(std::mem::take(&mut self.bulk));
    }
}

impl Drop for MpiWire {
    fn drop(&mut self) {
        self.close();
    }
}
