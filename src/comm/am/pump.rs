//! What leaves: queued operations become records and messages beside the frames, and frames are sent.

use std::sync::Arc;

use super::{
    ffi::Result,
    frame::Kind,
    long_frames::Use,
    longs::{Beside, Get, tag},
    mail::Mail,
    net::Net,
    peer::{ACKNOWLEDGE, ASKED, Block, BlockKind, Op, Peer, Road},
    write::{Asking, Of, Piece, Written, announce, is_long, write},
};
use crate::comm::Event;

/// Long answers on their way here, from all peers together, and still more are asked for.
pub(in crate::comm) const LONG_ANSWERS: usize = 12;

impl Net {
    /// An operation for a peer; it leaves at the next poll.
    pub(in crate::comm) fn submit(&mut self, to: usize, op: Op) -> Result<()> {
        self.peer(to).queue.push_back(op);
        self.pump(to)
    }

    /// Writes queued operations into frames, as far as there is room and credit.
    fn pump(&mut self, to: usize) -> Result<()> {
        while let Some(peer) = self.peers.get_mut(&to)
            && let Some(mut op) = peer.queue.pop_front()
        {
            if let Some((origin, unasked)) = op.unasked()
                && !self.origins.wants(origin)
            {
                self.origins.never_come(origin, unasked);
                continue;
            }
            if op.is_get() && (peer.asked >= ASKED || self.long_asked >= LONG_ANSWERS) {
                peer.queue.push_front(op);
                break;
            }
            self.urgent |= !op.is_patient();
            let written = match (op.road(), &mut op) {
                (Road::Straight, Op::Block(block)) => self.write_straight(to, block)?,
                (Road::LongFrame, op) => self.write_beside(to, op)?,
                (_, op) => {
                    let frame = peer.requests.get_or_insert_with(|| self.mail.frame());
                    write(op, frame, Asking { bytes: &mut peer.asked, long: &mut self.long_asked })
                }
            };
            let Some(peer) = self.peers.get_mut(&to) else { break };
            match written {
                Written::All => match op {
                    Op::Put { token, .. } => self.events.push(Event::LocalDone(token)),
                    Op::PutSignal { token, .. } => peer.signals.push(token),
                    Op::Block(block) if !matches!(block.what, BlockKind::Get { .. }) => {
                        // While pieces leave, the last one tells.
                        let token = block.straight.map_or(Some(block.token), Arc::into_inner);
                        self.events.extend(token.map(Event::LocalDone));
                    }
                    Op::Long { put, offset, local, len, token } => {
                        let number = self.long_frames.next_number();
                        let kind = if put { Kind::PutLong } else { Kind::GetLong };
                        let frame = peer.requests.get_or_insert_with(|| self.mail.frame());
                        frame.push(kind, 0, &[offset as u64, len as u64, number], &[], 0);
                        if put && peer.has_credit() {
                            // Bytes that come before their announcement are copied once more.
                            send_requests(peer, &mut self.mail, &mut self.events, to)?;
                        }
                        // SAFETY: the caller's memory may be used until the completion is polled.
                        let request = unsafe {
                            match put {
                                true => self.mail.comm.begin_send(local, len, to, tag(number, Beside::Request))?,
                                false => self.mail.comm.begin_receive(local, len, Some(to), tag(number, Beside::Get))?,
                            }
                        };
                        match put {
                            true => self.longs.put(request, token),
                            false => self.longs.get(request, Get { token, piece_of: None, from: to, number, len }),
                        }
                    }
                    _ => {}
                },
                Written::Beside => {
                    // The target begins to receive, and this frame to leave, while the next one is written: at the next poll.
                    peer.queue.push_front(op);
                    self.urgent = true;
                    if peer.has_credit() {
                        send_requests(peer, &mut self.mail, &mut self.events, to)?;
                    }
                    break;
                }
                Written::Some | Written::NoRoom => {
                    peer.queue.push_front(op);
                    if !peer.has_credit() {
                        break;
                    }
                    send_requests(peer, &mut self.mail, &mut self.events, to)?;
                }
                Written::Later => {
                    peer.queue.push_front(op);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes bytes of an operation into a long frame, and its announcement into the frame.
    fn write_beside(&mut self, to: usize, op: &mut Op) -> Result<Written> {
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(Written::Later) };
        let frame = peer.requests.get_or_insert_with(|| self.mail.frame());
        if !frame.has_room(2, 0, 0) {
            return Ok(Written::NoRoom);
        }
        let Some(mut long) = self.long_frames.take(Use::Requests) else { return Ok(Written::Later) };
        // Nothing that asks goes there.
        let written = write(op, &mut long, Asking { bytes: &mut 0, long: &mut 0 });
        let announcement = self.long_frames.send(self.mail.comm, long, to, Use::Requests)?;
        frame.push(Kind::LongFrame, 0, &announcement, &[], 0);
        Ok(if matches!(written, Written::All) { Written::All } else { Written::Beside })
    }

    /// Sends bytes of a block from where they lie in the caller's memory, or lets them be received there.
    fn write_straight(&mut self, to: usize, block: &mut Block) -> Result<Written> {
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(Written::Later) };
        if !matches!(block.what, BlockKind::Get { .. }) {
            if block.at == 0 && peer.busy > 0 {
                peer.busy -= 1;
                block.straight = None;
                return Ok(Written::Some);
            }
            if !self.longs.has_room() {
                return Ok(Written::Later);
            }
        }
        let frame = peer.requests.get_or_insert_with(|| self.mail.frame());
        let (comm, number) = (self.mail.comm, self.long_frames.next_number());
        let Some(Piece { local, len, of }) = announce(block, frame, number) else { return Ok(Written::NoRoom) };
        match of {
            Of::Put(whole) => {
                self.urgent = true;
                if peer.has_credit() {
                    send_requests(peer, &mut self.mail, &mut self.events, to)?;
                }
                // SAFETY: the caller's memory may be used until the completion is polled, which is when the last piece has left.
                let request = unsafe { comm.begin_send(local, len, to, tag(number, Beside::Request)) }?;
                self.longs.put_piece(request, whole, to);
            }
            Of::Get { token, origin } => {
                // SAFETY: as above; pieces do not overlap.
                let request = unsafe { comm.begin_receive(local, len, Some(to), tag(number, Beside::Get)) }?;
                self.origins.begin_piece(origin);
                peer.asked += len;
                self.long_asked += usize::from(is_long(len));
                self.longs.get(request, Get { token, piece_of: Some(origin), from: to, number, len });
            }
        }
        Ok(if block.at == block.len { Written::All } else { Written::Some })
    }

    /// Sends what is there as answers for a peer.
    pub(in crate::comm) fn send_answers(&mut self, to: usize) -> Result<()> {
        self.peers.get_mut(&to).map_or(Ok(()), |peer| send_answers(peer, &mut self.mail, to))
    }

    /// Sends what is there for whom there is something.
    pub(in crate::comm) fn send(&mut self) -> Result<()> {
        for _ in 0..self.busy.len() {
            let Some(rank) = self.busy.pop_front() else { break };
            self.pump(rank)?;
            let Some(peer) = self.peers.get_mut(&rank) else { continue };
            if peer.requests.as_ref().is_some_and(|frame| !frame.is_empty()) && peer.has_credit() {
                send_requests(peer, &mut self.mail, &mut self.events, rank)?;
            }
            if peer.owed >= ACKNOWLEDGE {
                peer.answers.get_or_insert_with(|| self.mail.frame());
            }
            send_answers(peer, &mut self.mail, rank)?;
            let waits = !peer.queue.is_empty() || peer.requests.as_ref().is_some_and(|frame| !frame.is_empty());
            peer.listed = waits;
            if waits {
                self.busy.push_back(rank);
            }
        }
        Ok(())
    }

    /// Appends an answer for a peer.
    pub(in crate::comm) fn answer(
        &mut self,
        to: usize,
        kind: Kind,
        words: &[u64],
        payload: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        self.peer(to);
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(()) };
        if peer.answers.as_ref().is_some_and(|frame| !frame.has_room(words.len(), 0, payload)) {
            send_answers(peer, &mut self.mail, to)?;
        }
        let frame = peer.answers.get_or_insert_with(|| self.mail.frame());
        fill(frame.push(kind, 0, words, &[], payload));
        Ok(())
    }

    /// Sends an answer of so many bytes in a long frame. None if there is no such frame now.
    pub(in crate::comm) fn answer_beside(
        &mut self,
        to: usize,
        kind: Kind,
        words: &[u64],
        payload: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Option<()>> {
        let Some(mut frame) = self.long_frames.take(Use::Answers) else { return Ok(None) };
        fill(frame.push(kind, 0, words, &[], payload));
        let announcement = self.long_frames.send(self.mail.comm, frame, to, Use::Answers)?;
        self.answer(to, Kind::LongFrame, &announcement, 0, |_| ())?;
        // Who asked begins to receive while the next answer is written.
        self.send_answers(to).map(Some)
    }
}

fn send_requests(peer: &mut Peer, mail: &mut Mail, events: &mut Vec<Event>, to: usize) -> Result<()> {
    events.extend(peer.signals.drain(..).map(Event::LocalDone));
    if let Some(frame) = peer.requests.take_if(|frame| !frame.is_empty()) {
        peer.unacknowledged += 1;
        mail.send(frame, to, std::mem::take(&mut peer.owed), true)?;
    }
    Ok(())
}

fn send_answers(peer: &mut Peer, mail: &mut Mail, to: usize) -> Result<()> {
    if let Some(frame) = peer.answers.take_if(|frame| !frame.is_empty() || peer.owed >= ACKNOWLEDGE) {
        mail.send(frame, to, std::mem::take(&mut peer.owed), false)?;
    }
    Ok(())
}
