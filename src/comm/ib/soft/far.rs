//! Works between devices of different processes, by packets: as `traffic`, but each end sees its own side alone, under the lock of its
//! process.
//!
//! A pair has one work under way, and sends it again after a timeout, or after an answer that there was no receive. A work that comes again
//! after it was carried out is out of turn, and is not answered: the first answer is on its way, and counts whenever it comes.

use std::time::Duration;

use super::{
    packet::{Content, HEADER, Packet},
    pair::{PairId, after, is_answered},
    port::{DATAGRAM, datagram_key, deliver, pin},
    traffic::{FabricState, Trouble, changed, reach, try_again},
};
use crate::{
    comm::{
        ib::device::{Access, Done, Opcode, State as PairState, WorkFailure},
        soft::fabric::{is_far, landing},
    },
    memory::kernels,
};

/// Packets that are taken before other things have their turn.
const AT_ONCE: usize = 64;

impl FabricState {
    /// Takes the packets that have come, and sends what found no room before.
    pub(super) fn exchange(&mut self, now: Duration) {
        if let Some(socket) = &mut self.socket {
            socket.send_late();
        }
        for _ in 0..AT_ONCE {
            let Some((from, bytes)) = self.socket.as_mut().and_then(|socket| socket.receive()) else { break };
            self.take(from, &bytes, now);
        }
        if self.socket.as_mut().is_some_and(|socket| socket.has_failed())
            && let Some(port) = self.ports.get_mut(self.own)
        {
            port.die("its socket cannot send");
        }
    }

    /// Sends a packet to a device of another process, with `len` bytes behind it.
    ///
    /// # Safety
    /// They are mapped, and accessed by kernels and atomics only.
    pub(super) unsafe fn send(&mut self, to: u64, packet: Packet, data: *const u8, len: usize) {
        let mut bytes = packet.encode(len);
        // SAFETY: the caller's promise; the packet is private, and has room for them.
        unsafe { kernels::copy(bytes[HEADER..].as_mut_ptr(), data, len) };
        if let Some(socket) = &mut self.socket {
            socket.send(to, bytes);
        }
    }

    fn take(&mut self, from: u64, bytes: &[u8], now: Duration) {
        let Some((packet, data)) = Packet::decode(bytes).filter(|_| is_far(from)) else { return };
        let (peer, own) = (PairId { port: from, number: packet.from }, PairId { port: self.own, number: packet.to });
        match packet.content {
            Content::Work { kind, len } => {
                if let Some(answer) = self.serve(peer, own, packet.number, kind, len, data)
                    && let Some(socket) = &mut self.socket
                {
                    socket.send(from, answer);
                }
            }
            Content::Datagram { key } => {
                let number = self.socket.as_ref().map_or(0, |socket| socket.number());
                if let Ok(port) = self.port(own.port)
                    && (packet.to, key) == (DATAGRAM, datagram_key(number))
                {
                    // SAFETY: the data are a slice, and no receive's memory.
                    unsafe { deliver(port, from, number, data.as_ptr(), data.len()) };
                }
            }
            answer => self.answered(peer, own, packet.number, answer, data, now),
        }
    }

    /// Sends the next work of a pair to its peer, or again if its answer did not come in time.
    pub(super) fn ask(&mut self, from: PairId, to: PairId, now: Duration) -> Result<(), Trouble> {
        if self.socket.is_none() {
            return Err(Trouble::Unanswered);
        }
        let port = self.ports.get_mut(from.port).ok_or(Trouble::Unanswered)?;
        let pair = port.numbered(from.number).ok_or(Trouble::Unanswered)?;
        let path = pair.path;
        if pair.awaits && !try_again(&mut pair.unanswered, path.retries) {
            return Err(Trouble::Local(WorkFailure::RetryExceeded));
        }
        let Some(at) = pair.to_start() else { return Ok(()) };
        (pair.asked, pair.awaits) = (Some(path.next), true);
        pair.due = now.saturating_add(path.timeout);
        let entry = &pair.works[at];
        let (kind, local) = (entry.work.kind, entry.work.local);
        let inline = entry.inline.as_ref().map(|copy| copy.start());
        let needs = if is_answered(kind) { Access::LOCAL_WRITE } else { Access::NONE };
        let pinned = pin(&port.keys, local, needs).map(|memory| memory.start());
        let start = inline.or(pinned).ok_or(Trouble::Local(WorkFailure::LocalProtection))?;
        let content = Content::Work { kind, len: local.len };
        let packet = Packet { from: from.number, to: to.number, number: path.next, content };
        let carried = if is_answered(kind) { 0 } else { local.len };
        // SAFETY: the memory is registered, or a copy of inline data, and this lock keeps both. The caller that registered it
        // promised that there are no references to it.
        unsafe { self.send(to.port, packet, start, carried) };
        Ok(())
    }

    /// Carries out a work of another process. Returns the answer: none if it is not for this pair, or out of turn.
    fn serve(&mut self, from: PairId, by: PairId, number: u32, kind: Opcode, len: usize, data: &[u8]) -> Option<Vec<u8>> {
        let random = self.random.below(usize::MAX);
        let port = self.ports.get_mut(by.port).filter(|port| len <= port.limits.longest_message)?;
        let target = port.numbered(by.number).filter(|target| target.answers(from))?;
        let path = target.path;
        if number != path.expected {
            return None;
        }
        let answer = |content| Packet { from: by.number, to: from.number, number, content };
        let (there, receive) = match reach(port, by, &path, kind, len) {
            Ok(reached) => reached,
            Err(Trouble::NotReady(timer)) => return Some(answer(Content::NotReady(timer)).encode(0)),
            Err(Trouble::Refused { here, receive, .. }) => {
                self.refused(by, receive);
                return Some(answer(Content::Refused(here)).encode(0));
            }
            Err(Trouble::Unanswered | Trouble::Local(_)) => return None,
        };
        let start = there.start();
        let mut bytes = answer(Content::Done).encode(if is_answered(kind) { len } else { 0 });
        let back = bytes[HEADER..].as_mut_ptr();
        match kind {
            // SAFETY: `len` bytes came. The memory is registered for that access, which this lock keeps. The caller that
            // registered it promised that there are no references to it.
            Opcode::Send { .. } | Opcode::Write { .. } => unsafe { landing::land(start, data.as_ptr(), len, random) },
            // SAFETY: as above; the answer has room for `len` bytes.
            Opcode::Read { .. } => unsafe { landing::land(back, start, len, random) },
            // SAFETY: as above; the alignment was checked, and the length when the packet was decoded.
            kind => unsafe { landing::atomic(&port.adapter, start.cast(), back, |old| changed(kind, old)) },
        }
        if let Some(target) = port.numbered(by.number) {
            target.path.expected = after(number);
        }
        if let (Some(id), Opcode::Send { immediate }) = (receive, kind) {
            port.received(id, by.number, Ok(Done::Received { len, immediate, from: None }));
        }
        Some(bytes)
    }

    /// The answer to the work of a pair that is under way; another one comes too late.
    fn answered(&mut self, peer: PairId, own: PairId, number: u32, answer: Content, data: &[u8], now: Duration) {
        let random = self.random.below(usize::MAX);
        let Some(port) = self.ports.get_mut(own.port) else { return };
        let awaits = |pair: &&mut super::pair::SoftPair| {
            pair.state == PairState::ReadyToSend && pair.path.peer == Some(peer) && pair.asked == Some(number)
        };
        let Some(pair) = port.numbered(own.number).filter(awaits) else { return };
        let Some(at) = pair.to_start() else { return };
        let work = pair.works[at].work;
        let brought = if is_answered(work.kind) { work.local.len } else { 0 };
        if answer == Content::Done && data.len() != brought {
            return;
        }
        if matches!(answer, Content::NotReady(_)) {
            // The work is sent again, and was sent before: an answer to any of them counts. Another such answer does not.
            if std::mem::take(&mut pair.awaits) {
                pair.unanswered = 0;
            } else {
                return;
            }
        } else {
            (pair.asked, pair.awaits, pair.due) = (None, false, Duration::ZERO);
        }
        let trouble = match answer {
            Content::NotReady(timer) => Trouble::NotReady(timer),
            Content::Refused(failure) => Trouble::Local(failure),
            _ if !is_answered(work.kind) => return self.carried(own, at),
            _ => match pin(&port.keys, work.local, Access::LOCAL_WRITE) {
                Some(here) => {
                    // SAFETY: the memory is registered for that, and this lock keeps it; `brought` bytes came.
                    unsafe { landing::land(here.start(), data.as_ptr(), brought, random) };
                    return self.carried(own, at);
                }
                None => Trouble::Local(WorkFailure::LocalProtection),
            },
        };
        self.handle(own, trouble, now);
    }

    /// The work of a pair that was under way is done.
    fn carried(&mut self, place: PairId, at: usize) {
        let Some(port) = self.ports.get_mut(place.port) else { return };
        if let Some(pair) = port.numbered(place.number) {
            pair.start();
            pair.finish(at);
        }
        port.retire(place.number, None);
    }
}
