//! Operations on another rank's mapped memory, as a network would do them: checked against the segment, done on return.

use std::sync::atomic::{Ordering, fence};

use super::{Fabric, PACKET, Use, inbox::Full};
use crate::{
    comm::{Atomic, Event, Issued, Local, Operation, SignalOp, SignalWord, Strided, Token, Topology, WaitWord},
    memory::{atomic_op::apply_atomic, kernels},
};

impl Fabric {
    /// Carries out an operation on a rank whose memory is here, at once. Returns what the next poll is to report, too.
    ///
    /// # Safety
    /// As [`Operation`] says.
    #[inline]
    pub(super) unsafe fn carry_out(
        &self,
        topology: &Topology,
        operation: &Operation<'_>,
        token: Token,
    ) -> (Issued, Option<Event>) {
        let local = |rank| topology.local(rank);
        // SAFETY: the caller's promise.
        unsafe {
            match *operation {
                Operation::PutSignal { to, local: from, signal } => self.write_signal(local(to.rank), to.offset, from, signal),
                Operation::PutBlock { to, block } => self.copy_block(true, local(to.rank), to.offset, block),
                Operation::GetBlock { from, block } => self.copy_block(false, local(from.rank), from.offset, block),
                Operation::Atomic { word, atomic } => {
                    let old = self.apply(local(word.rank), word.offset, atomic);
                    return (Issued::Pending, Some(Event::Value(token, old)));
                }
                Operation::Flush { .. } => {
                    fence(Ordering::SeqCst);
                    return (Issued::Pending, Some(Event::RemoteDone(token)));
                }
                Operation::Append { .. } | Operation::Accumulate { .. } => unreachable!("what is not announced is never issued"),
            }
        }
        (Issued::Complete, None)
    }

    /// First byte of a range of the segment of the rank with this number on the machine.
    ///
    /// # Panics
    /// If the range does not lie inside.
    fn address(&self, rank: usize, offset: usize, len: usize) -> *mut u8 {
        let limit = self.segment_len();
        assert!(offset <= limit && len <= limit - offset, "{len} bytes at {offset} of a segment of {limit} bytes");
        // SAFETY: the range was just checked against the segment.
        unsafe { self.segment(rank).as_ptr().add(offset) }
    }

    /// Writes to a rank's segment.
    ///
    /// # Safety
    /// As [`Operation`] says, for the time of the call.
    pub(crate) unsafe fn write(&self, rank: usize, offset: usize, local: Local) {
        let to = self.address(rank, offset, local.len);
        // SAFETY: `address` checked the target; the caller promises `local`. A segment and private memory are apart. It may be a
        // `WaitWord`, which is written in one piece.
        unsafe { kernels::write(to, local.ptr, local.len) };
    }

    /// Reads from a rank's segment.
    ///
    /// # Safety
    /// As [`Operation`] says, for the time of the call.
    pub(crate) unsafe fn read(&self, rank: usize, offset: usize, local: Local) {
        let from = self.address(rank, offset, local.len);
        // SAFETY: as in `write`, the other way round.
        unsafe { kernels::read(local.ptr, from, local.len) };
    }

    /// Writes the runs of a block to a rank's segment if `put`, else reads them.
    ///
    /// # Safety
    /// As [`Operation`] says of blocks, for the time of the call.
    pub(crate) unsafe fn copy_block(&self, put: bool, rank: usize, offset: usize, Strided { loops, local }: Strided<'_>) {
        loops.for_each_run(|there, here| {
            let there = self.address(rank, offset.wrapping_add_signed(there), loops.run());
            let here = local.wrapping_offset(here);
            // SAFETY: `address` checked the run of the segment; the caller promises the other one.
            unsafe { if put { kernels::copy(there, here, loops.run()) } else { kernels::copy(here, there, loops.run()) } }
        });
    }

    /// Writes to a rank's segment, then changes a word there and wakes the rank that waits on it.
    ///
    /// # Safety
    /// As [`Operation`] says, for the time of the call.
    pub(crate) unsafe fn write_signal(&self, rank: usize, offset: usize, local: Local, signal: SignalWord) {
        let to = self.address(rank, offset, local.len);
        // SAFETY: `address` checked the target; the caller promises `local`. A segment and private memory are apart.
        unsafe { kernels::copy(to, local.ptr, local.len) };
        let word = self.address(rank, signal.offset, size_of::<WaitWord>()).cast::<WaitWord>();
        assert!(word.is_aligned(), "a signal at byte {}", signal.offset);
        // SAFETY: checked just now; it holds atomics only, for which any bits are valid, and the segment lives as long as self.
        let word = unsafe { &*word };
        match signal.op {
            SignalOp::Set => word.store(signal.value),
            SignalOp::Add => {
                word.add(signal.value);
            }
        }
        word.wake();
    }

    /// Applies an atomic operation to a word of a rank's segment, and returns the old value.
    ///
    /// # Safety
    /// As [`Operation`] says.
    pub(crate) unsafe fn apply(&self, rank: usize, offset: usize, atomic: Atomic) -> u64 {
        let Atomic { op, width, operand, comparand } = atomic;
        let word = self.address(rank, offset, width);
        // SAFETY: `address` checked the range, the caller promises alignment, committed memory and a width of 4 or 8.
        unsafe { apply_atomic(word, op, width, operand, comparand) }
    }

    /// Puts a packet into a ring of the rank with number `to` on the machine, and wakes it.
    ///
    /// # Errors
    /// [`Full`]: the ring has no room.
    pub(crate) fn post(&self, to: usize, from: usize, what: Use, packet: &[u8]) -> Result<(), Full> {
        self.ring(to, what).push(from, packet)?;
        let bell = &self.control(to).bell;
        bell.add(1);
        bell.wake();
        Ok(())
    }

    /// The next packet of a rank's ring: the sender, the bytes, and the number of bytes that count. One reader at a time.
    pub(crate) fn take(&self, rank: usize, what: Use) -> Option<(usize, [u8; PACKET], usize)> {
        self.ring(rank, what).pop()
    }
}
