//! The active messages as a network.

use std::{io, ops::Range};

use super::{Am, peer::BlockKind, wire::Wire};
use crate::comm::{
    Announcement, Awaited, Capabilities, Connections, Events, Issued, LeaveStep, Local, Nap, Network, Operation, Progress,
    Remote, Slept, Token,
};

impl<W: Wire> Network for Am<W> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.submit_contiguous(to, local, token) }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.ask_contiguous(from, local, token) };
        Issued::Pending
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe {
            match *operation {
                Operation::PutSignal { to, local, signal } => return self.put_signal(to, local, signal, token),
                Operation::PutBlock { to, block } => return self.put_block(to, block, BlockKind::Put, token),
                Operation::GetBlock { from, block } => self.get_block(from, block, token),
                Operation::Accumulate { to, block, scale, lock } => {
                    let what = BlockKind::Accumulate { lock, numbers: scale.kind as u8, alpha: bytemuck::cast(scale.alpha) };
                    return self.put_block(to, block, what, token);
                }
                Operation::Atomic { word, atomic } => self.atomic(word, atomic, token),
                Operation::Flush { rank } => self.flush_by(|endpoint| endpoint.routes.find(rank), token),
                Operation::Append { ring, letter } => self.append(ring, &letter, token),
            }
        }
        Issued::Pending
    }

    fn cancel(&self, token: Token) {
        let cancelled = self.endpoint().cancel(token);
        self.report(cancelled);
    }

    fn poll(&self, events: &mut Events) {
        // The thread in the endpoint may wait for a lock that the caller holds, and handles what there is.
        if let Some(mut endpoint) = self.try_endpoint() {
            // A caller that has what it waits for need not wait for the network, if a thread sends what it leaves.
            let has_all = !endpoint.events.is_empty() && !endpoint.has_arrivals();
            let hurry = !has_all || self.capabilities.progress != Progress::Thread;
            self.look(&mut endpoint, hurry, false);
            events.append(&mut endpoint.events);
        }
    }

    fn attend(&self) -> bool {
        let Some(mut endpoint) = self.try_endpoint() else {
            std::thread::yield_now();
            return false;
        };
        self.look(&mut endpoint, true, false);
        endpoint.has_more || !endpoint.events.is_empty()
    }

    fn is_complete(&self, awaited: Awaited) -> bool {
        if !self.is_one_sided || self.is_closed() || self.fabric.is_inherited() {
            return false;
        }
        match awaited {
            Awaited::Get(token) => self.is_got(token),
            Awaited::Puts(rank) => self.is_flushed(rank),
        }
    }

    fn connections(&self) -> Option<Connections> {
        if self.connects { self.endpoint().wire.connections() } else { None }
    }

    fn opens(&self, range: Range<usize>) -> io::Result<()> {
        self.open(range)
    }

    fn shuts(&self, range: Range<usize>) -> io::Result<()> {
        self.shut(range)
    }

    fn nap(&self, Nap { limit, if_owed, ready }: Nap<'_>) -> Slept {
        let may_sleep = !limit.is_zero() && !self.is_closed() && !self.fabric.is_inherited();
        let is_owed = || self.try_endpoint().is_some_and(|endpoint| endpoint.expects());
        if may_sleep && (!if_owed || is_owed()) && self.sleep_in_network(limit, ready) {
            return Slept::Here;
        }
        let is_armed = self.try_endpoint().is_some_and(|mut endpoint| endpoint.wire.arm());
        if is_armed { Slept::Bell } else { Slept::Not }
    }

    fn is_behind(&self) -> bool {
        !self.is_closed() && self.try_endpoint().is_some_and(|mut endpoint| endpoint.is_behind())
    }

    fn settled(&self) -> Option<bool> {
        self.is_settled()
    }

    fn tell(&self, word: Announcement<'_>) {
        match word {
            Announcement::Note(rank, note) => self.queue_note(rank, note),
            Announcement::End { culprit, cause } => self.tell_end(culprit, cause),
        }
    }

    fn leave(&self, step: LeaveStep<'_>) {
        match step {
            LeaveStep::BodyEnded => {}
            LeaveStep::Drain => {
                self.settle();
            }
            LeaveStep::Serve(ready) => {
                if self.drive(|_| Ok(ready())) {
                    self.close();
                }
            }
        }
    }
}
