//! Frames on a connection, and on the next one if that breaks: `protocol::replay`, done with slots.

use super::{
    super::device::{Device, DeviceError, Opcode, Work, WorkFailure, WorkOutcome, WorkPiece},
    Arrived, Links, Posted, Sent,
    one_sided::SlotWork,
};
use crate::comm::{
    am::wire::{Broken, Result},
    protocol::{
        absence::Absence,
        connection::PairEvent,
        replay::{
            self, ItemFate, ItemKind,
            header::{HEADER, Header, HeaderKind},
            report::When,
        },
    },
};

impl<D: Device> Links<D> {
    /// Sends a frame to a peer that is [ready](Self::is_ready). False if there is no room.
    pub(super) fn send_frame(&mut self, to: usize, bytes: &[u8]) -> Result<bool> {
        let Some(slot) = self.free_sends.pop() else { return Ok(false) };
        let peer = self.peers.meet(to);
        let header = Header { what: HeaderKind::Frame(peer.replay.posts(ItemKind::Frame, slot)), seen: peer.replay.seen() };
        peer.report.leaves(header.seen);
        self.sends.write(slot, 0, &header.encode());
        self.sends.write(slot, HEADER, bytes);
        self.sent[slot] = Sent { to, serial: 0, len: HEADER + bytes.len(), what: SlotWork::Frame };
        self.post(to, &[Posted::Send(slot)])?;
        self.act()?;
        Ok(true)
    }

    /// The work of a slot. Of a chain only the last one is signaled: its completion is that of all.
    fn work(&self, what: Posted, signaled: bool) -> Work {
        let send = Opcode::Send { immediate: None };
        let (kind, local) = match what {
            Posted::Send(slot) => {
                let Sent { len, what, .. } = self.sent[slot];
                let copy = || self.sends.piece(slot, len);
                match what {
                    SlotWork::Frame => (send, copy()),
                    SlotWork::Write { to } => (Opcode::Write { to }, copy()),
                    SlotWork::Read { from, .. } => (Opcode::Read { from }, copy()),
                    SlotWork::Straight { kind, lent, .. } => (kind, lent),
                }
            }
            Posted::Control(slot) => (send, self.controls.piece(slot, HEADER)),
            // To the target of the last write. It moves nothing.
            Posted::Mark(to) => match self.peers.get(to).and_then(|peer| Some(self.sent[peer.completions.last()?].what)) {
                Some(SlotWork::Write { to }) => (Opcode::Write { to }, WorkPiece::NONE),
                _ => unreachable!("a mark stands behind a write that has not ended"),
            },
            _ => unreachable!("receives and datagrams are not posted to a peer"),
        };
        let inline = !matches!(kind, Opcode::Read { .. }) && local.len <= self.device.limits().inline;
        Work { id: what.id(), kind, local, signaled, inline, fence: false }
    }

    /// Asks for the end of the silent writes to a peer. Those behind a mark that is under way have the next one.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn mark(&mut self, to: usize) -> Result<()> {
        if self.peers.meet(to).completions.wants_mark() { self.post(to, &[Posted::Mark(to)]) } else { Ok(()) }
    }

    /// Asks for the end of all silent writes, before others are looked at.
    ///
    /// # Errors
    /// [`Broken`].
    pub(super) fn mark_all(&mut self) -> Result<()> {
        while let Some(to) = self.silent.pop() {
            self.peers.meet(to).is_listed = false;
            self.mark(to)?;
        }
        Ok(())
    }

    /// Posts what stands in some slots, in one chain, on the queue pair of a peer. A pair that cannot take it is broken.
    ///
    /// # Errors
    /// The device refuses a work itself, or does not work any more.
    pub(super) fn post(&mut self, to: usize, what: &[Posted]) -> Result<()> {
        let peer = self.peers.meet(to);
        let Some((pair, ..)) = peer.pair else { return Ok(()) };
        let taken = if let [what] = what {
            let signaled = !peer.is_silent(to, *what, &self.sent, &mut self.silent);
            // SAFETY: a slot is touched by nobody before its completion was polled, and lives as long as the device; memory that was lent is as
            // its lender promises.
            unsafe { self.device.post(pair, &[self.work(*what, signaled)]) }
        } else {
            peer.completions.asks();
            let mut works = std::mem::take(&mut self.chain);
            works.extend(what.iter().enumerate().map(|(at, one)| self.work(*one, at + 1 == what.len())));
            // SAFETY: as above.
            let taken = unsafe { self.device.post(pair, &works) };
            works.clear();
            self.chain = works;
            taken
        };
        let (taken, why) = match taken {
            Ok(taken) if taken < what.len() => (taken, Some("its send queue is full".to_owned())),
            Ok(taken) => (taken, None),
            Err(error @ (DeviceError::State { .. } | DeviceError::Unknown { .. })) => (0, Some(error.to_string())),
            Err(error) => return Err(Broken(format!("sending to rank {to}: {error}"))),
        };
        let peer = self.peers.meet(to);
        let was_idle = !peer.completions.is_open() && taken > 0 && self.is_short;
        for what in &what[..taken] {
            let len = match *what {
                Posted::Send(slot) => {
                    self.sent[slot].serial = peer.completions.posts();
                    self.sent[slot].len
                }
                Posted::Control(slot) => {
                    self.controlled[slot] = Some((to, peer.completions.posts()));
                    HEADER
                }
                Posted::Mark(_) => {
                    peer.completions.marks();
                    0
                }
                _ => 0,
            };
            self.bytes += len as u64;
        }
        if was_idle {
            self.tell(to, PairEvent::Used);
        }
        let Some(why) = why else { return Ok(()) };
        for what in &what[taken..] {
            if let Posted::Control(slot) = *what {
                self.controlled[slot] = None;
            }
        }
        self.breaks(to, why);
        Ok(())
    }

    /// Tells peers what they are to be told, as far as there is room.
    pub(super) fn send_due(&mut self) -> Result<()> {
        while !self.due.is_empty()
            && let Some(slot) = self.controlled.iter().position(Option::is_none)
            && let Some(to) = self.due.pop_front()
        {
            let peer = self.peers.meet(to);
            let seen = peer.replay.seen();
            let says = if peer.pair.is_some() { peer.report.says(seen, self.connections.is_ready(to)) } else { None };
            let Some(what) = says else { continue };
            self.controls.write(slot, 0, &Header { what, seen }.encode());
            self.controlled[slot] = Some((to, 0));
            self.post(to, &[Posted::Control(slot)])?;
            self.reopen(to)?;
        }
        Ok(())
    }

    /// The peer has told on a new connection which frame it saw last: those behind it are posted again.
    pub(super) fn reopen(&mut self, from: usize) -> Result<()> {
        // If it is held, the next connection has another turn.
        if !self.connections.is_ready(from) {
            return Ok(());
        }
        let peer = self.peers.meet(from);
        let Some(seen) = peer.report.take_heard() else { return Ok(()) };
        self.absences.ends(from);
        let gone = &mut self.gone;
        let fates = peer.replay.reopens(seen, |slot| gone.push(slot)).ok_or_else(|| contradicts(from))?;
        let mut is_behind = false;
        for (fate, _) in fates {
            match fate {
                ItemFate::Again(slot) => {
                    is_behind = true;
                    self.replayed += 1;
                    self.post(from, &[Posted::Send(slot)])?;
                }
                ItemFate::Done(slot) | ItemFate::Unknown(slot) => {
                    // A write, and a read before it is done again.
                    let overtakes = is_behind && !matches!(self.sent[slot].what, SlotWork::Frame);
                    self.peers.meet(from).overtook += u64::from(overtakes);
                    self.gone.push(slot);
                }
            }
        }
        self.let_go()
    }

    /// A queue pair does nothing any more.
    pub(super) fn breaks(&mut self, to: usize, why: String) {
        self.absences.begins(to, why);
        let peer = self.peers.meet(to);
        peer.replay.is_over();
        if let Some((_, epoch, _)) = peer.pair {
            self.tell(to, PairEvent::Broken { epoch });
        }
    }

    /// # Errors
    /// A peer has been away for too long.
    pub(super) fn look_for_lost(&self) -> Result<()> {
        let Some((Absence { peer, why, .. }, limit)) = self.absences.lost() else { return Ok(()) };
        let seconds = limit.as_secs_f64();
        Err(Broken(format!("rank {peer} cannot be reached: {why}, for {seconds} s (GA_SILENCE)")))
    }

    /// The adapter has done, or has not done, a work that was posted to a peer, and all before it. `slot` is their last slot.
    pub(super) fn is_posted(&mut self, to: usize, slot: Option<usize>, serial: u64, outcome: WorkOutcome) -> Result<()> {
        if let (Some(slot), Ok(_)) = (slot, outcome) {
            let gone = &mut self.gone;
            self.peers.meet(to).replay.completed(slot, |slot| gone.push(slot));
            self.let_go()?;
        }
        let completions = &mut self.peers.meet(to).completions;
        completions.completes(serial);
        let is_idle = !completions.is_open();
        // It would be refused again.
        if let Err(failure @ (WorkFailure::RemoteAccess | WorkFailure::RemoteInvalid)) = outcome {
            return Err(Broken(format!("rank {to} refuses a transfer: {failure}")));
        }
        if let Err(failure) = outcome {
            self.breaks(to, failure.to_string());
        }
        // Nobody else asks for it.
        if is_idle && (self.is_short || !self.connections.is_ready(to)) {
            self.tell(to, PairEvent::Acknowledged);
        }
        Ok(())
    }

    /// A message has come into a slot.
    pub(super) fn received(&mut self, from: usize, slot: usize, len: usize) -> Result<()> {
        let Some(len) = len.checked_sub(HEADER) else {
            return Err(Broken(format!("rank {from} has sent a message of {len} bytes")));
        };
        let mut header = [0; HEADER];
        self.receives.read(slot, 0, &mut header);
        let Header { what, seen } = Header::decode(header);
        if let Some((_, epoch, _)) = self.peers.get(from).and_then(|peer| peer.pair)
            && !self.connections.is_ready(from)
        {
            self.tell(from, PairEvent::Data { epoch });
        }
        let now = self.device.now();
        let peer = self.peers.meet(from);
        let arrival = match what {
            HeaderKind::Frame(number) => Some(peer.replay.arrived(number)),
            HeaderKind::Seen => None,
            HeaderKind::Opens => {
                peer.report.hears(seen);
                self.post_receive(slot)?;
                return self.reopen(from);
            }
        };
        let gone = &mut self.gone;
        peer.replay.acknowledged(seen, |slot| gone.push(slot)).ok_or_else(|| contradicts(from))?;
        self.let_go()?;
        match arrival {
            Some(replay::FrameArrival::Next) => self.arrivals.push_back(Arrived { from, slot, len }),
            Some(replay::FrameArrival::Gap) => return Err(Broken(format!("a frame of rank {from} is missing"))),
            Some(replay::FrameArrival::Seen) | None => return Ok(self.post_receive(slot)?),
        }
        let peer = self.peers.meet(from);
        let when = peer.report.arrives(peer.replay.seen(), now);
        self.unsaid.extend((when == When::Later).then_some(from));
        self.due.extend((when == When::Now).then_some(from));
        if when == When::Now { self.send_due() } else { Ok(()) }
    }
}

/// A peer has seen frames that were not sent, or has forgotten some that it had seen.
fn contradicts(peer: usize) -> Broken {
    Broken(format!("rank {peer} contradicts itself about the frames that it has seen"))
}
