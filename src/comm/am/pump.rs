//! What leaves: queued operations become records and bulk messages, and frames are sent.

use std::{sync::Arc, time::Instant};

use super::{
    bulk::{Get, Then},
    endpoint::Endpoint,
    frame::RecordKind,
    long_frames::FrameUse,
    outbox::Outbox,
    peer::{ASKED, Block, BlockKind, Op, PayloadRoad, Peer},
    route::Route,
    wire::{BulkKind, Class, Result, Tag, Wire},
    write::{Asking, BlockPiece, LONG_ANSWERS, Of, Written, announce, write, write_block},
};
use crate::{
    comm::{Event, Local, Token},
    memory::ring::Letter,
};

impl<W: Wire> Endpoint<W> {
    /// An operation for a peer; it leaves at the next poll.
    pub(super) fn submit(&mut self, Route { to, number }: Route, op: Op) -> Result<()> {
        let is_flush = matches!(op, Op::Small { kind: RecordKind::Flush, .. });
        let peer = self.peer(to);
        let newly = peer.submits(op.is_unanswered(), is_flush);
        // Most never see the queue.
        let mut first = Some((number, op));
        if !peer.queue.is_empty() {
            peer.queue.extend(first.take());
        }
        if newly {
            self.unsettled.push(to);
        }
        self.pump(to, first)
    }

    /// A put or an accumulate of a block: what of it has room in the frame being filled is written at once, if nothing waits before it.
    pub(super) fn submit_block(&mut self, route: Route, mut block: Block) -> Result<()> {
        let to = route.to;
        let packed = self.limits.packed();
        let is_record = !self.is_for_transfer(&block);
        let peer = self.peer(to);
        if is_record && peer.queue.is_empty() && block.len <= packed {
            if peer.submits(true, false) {
                self.unsettled.push(to);
            }
            // Its peer is listed, so that a poll sends the frame.
            let Some(peer) = self.peers.get_mut(to) else { return Ok(()) };
            let frame = peer.requests.get_or_insert_with(|| self.wire.frame());
            frame.direct(route.number);
            // Nothing is asked for.
            if matches!(write_block(&mut block, frame, Asking { bytes: &mut 0, long: &mut 0, limits: self.limits }), Written::All)
            {
                self.events.push(Event::LocalDone(block.token));
                return Ok(());
            }
        }
        self.submit(route, Op::Block(Box::new(block)))
    }

    /// A letter: written at once, if nothing waits before it and it has room.
    pub(super) fn append(&mut self, route: Route, place: [u64; 3], letter: &Letter<'_>) -> Result<()> {
        let to = route.to;
        self.peer(to);
        if let Some(peer) = self.peers.get_mut(to).filter(|peer| peer.queue.is_empty()) {
            let frame = peer.requests.get_or_insert_with(|| self.wire.frame());
            if frame.has_room(place.len(), 0, letter.packed()) {
                frame.direct(route.number);
                letter.pack(frame.push(RecordKind::Append, 0, &place, &[], letter.packed()));
                self.urgent = true;
                if peer.submits(true, false) {
                    self.unsettled.push(to);
                }
                return Ok(());
            }
        }
        let mut packed = vec![0; letter.packed() / size_of::<u64>()].into_boxed_slice();
        letter.pack(bytemuck::cast_slice_mut(&mut packed));
        self.submit(route, Op::Append { place, packed, at: 0 })
    }

    /// If the last thing that happened is a completion of this token, takes it back: the caller reports it.
    pub(super) fn take_completion(&mut self, token: Token) -> bool {
        self.events.pop_if(|event| matches!(event, Event::LocalDone(done) if *done == token)).is_some()
    }

    /// Writes operations into frames, as far as there is room and credit: those that are queued, or `first` where none is.
    fn pump(&mut self, to: usize, mut first: Option<(u16, Op)>) -> Result<()> {
        while let Some(peer) = self.peers.get_mut(to)
            && let Some((number, mut op)) = first.take().or_else(|| peer.queue.pop_front())
        {
            if let Some((origin, unasked)) = op.unasked()
                && !self.origins.wants(origin)
            {
                self.origins.never_come(origin, unasked);
                continue;
            }
            if op.is_get() && (peer.asked >= ASKED || self.bulk.asked >= LONG_ANSWERS) {
                peer.queue.push_front((number, op));
                break;
            }
            self.urgent |= !op.is_patient();
            let route = Route { to, number };
            let road = match self.transfer(route, &mut op)? {
                Some(written) => Err(written),
                None => Ok(op.road(self.limits.packed())),
            };
            let written = match (road, &mut op) {
                (Err(written), _) => written,
                (Ok(PayloadRoad::Straight), Op::Block(block)) => self.write_straight(route, block)?,
                (Ok(PayloadRoad::LongFrame), op) => self.write_beside(route, op)?,
                (_, op) => {
                    let Some(peer) = self.peers.get_mut(to) else { break };
                    let frame = peer.requests.get_or_insert_with(|| self.wire.frame());
                    frame.direct(number);
                    write(op, frame, Asking { bytes: &mut peer.asked, long: &mut self.bulk.asked, limits: self.limits })
                }
            };
            let Some(peer) = self.peers.get_mut(to) else { break };
            match written {
                Written::All => match op {
                    Op::Put { token, .. } => self.events.push(Event::LocalDone(token)),
                    Op::PutSignal { token, signal, .. } if signal.patient => self.events.push(Event::LocalDone(token)),
                    Op::PutSignal { token, .. } => peer.signals.push(token),
                    Op::Block(block) if !matches!(block.what, BlockKind::Get { .. }) => {
                        // While pieces leave, the last one reports the end.
                        let token = block.straight.map_or(Some(block.token), Arc::into_inner);
                        self.events.extend(token.map(Event::LocalDone));
                    }
                    Op::Long { put, offset, local, len, token } => {
                        self.start_long(route, put, Local { ptr: local, len }, offset, token)?
                    }
                    _ => {}
                },
                Written::Beside => {
                    // The target begins to receive, and this frame to leave, while the next one is written: at the next poll.
                    peer.queue.push_front((number, op));
                    self.urgent = true;
                    if peer.credit.may_send() {
                        send_requests(peer, &mut self.wire, &mut self.outbox, &mut self.events, to)?;
                    }
                    break;
                }
                Written::Some | Written::NoRoom => {
                    peer.queue.push_front((number, op));
                    if !peer.credit.may_send() {
                        break;
                    }
                    send_requests(peer, &mut self.wire, &mut self.outbox, &mut self.events, to)?;
                }
                Written::Later => {
                    peer.queue.push_front((number, op));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Starts a long contiguous put or get, whose announcement has room in the frame.
    fn start_long(&mut self, route: Route, put: bool, local: Local, offset: usize, token: Token) -> Result<()> {
        let (to, Local { ptr: local, len }) = (route.to, local);
        let number = self.bulk.next_number();
        let Some(peer) = self.peers.get_mut(to) else { return Ok(()) };
        let kind = if put { RecordKind::PutLong } else { RecordKind::GetLong };
        let frame = peer.requests.get_or_insert_with(|| self.wire.frame());
        frame.direct(route.number);
        frame.push(kind, 0, &[offset as u64, len as u64, number], &[], 0);
        if put {
            if peer.credit.may_send() {
                // Bytes that come before their announcement are copied once more.
                send_requests(peer, &mut self.wire, &mut self.outbox, &mut self.events, to)?;
            }
            let id = self.bulk.add(Then::Sent(token));
            // SAFETY: the caller's memory may be read until the completion is polled.
            unsafe { self.wire.send_bulk(to, local, len, Tag { kind: BulkKind::Request, number }, id) }
        } else {
            let id = self.bulk.add(Then::Filled(Get { token, piece_of: None, from: to, len }));
            // SAFETY: the caller's memory may be written until the completion is polled.
            unsafe { self.wire.receive_bulk(to, local, len, Tag { kind: BulkKind::Get, number }, id) }
        }
    }

    /// Writes bytes of an operation into a long frame, and its announcement into the frame.
    fn write_beside(&mut self, Route { to, number }: Route, op: &mut Op) -> Result<Written> {
        let Some(peer) = self.peers.get_mut(to) else { return Ok(Written::Later) };
        let frame = peer.requests.get_or_insert_with(|| self.wire.frame());
        if !frame.has_room(2, 0, 0) {
            return Ok(Written::NoRoom);
        }
        let Some(mut long) = self.bulk.frames.take(FrameUse::Requests) else { return Ok(Written::Later) };
        long.direct(number);
        // Nothing that asks goes there.
        let written = write(op, &mut long, Asking { bytes: &mut 0, long: &mut 0, limits: self.limits });
        let announcement = self.send_long_frame(long, to, FrameUse::Requests)?;
        if let Some(frame) = self.peers.get_mut(to).and_then(|peer| peer.requests.as_mut()) {
            frame.push(RecordKind::LongFrame, 0, &announcement, &[], 0);
        }
        Ok(if matches!(written, Written::All) { Written::All } else { Written::Beside })
    }

    /// Sends bytes of a block from where they lie in the caller's memory, or lets them be received there.
    fn write_straight(&mut self, route: Route, block: &mut Block) -> Result<Written> {
        let to = route.to;
        let Some(peer) = self.peers.get_mut(to) else { return Ok(Written::Later) };
        if !matches!(block.what, BlockKind::Get { .. }) {
            if block.at == 0 && peer.busy > 0 {
                peer.busy -= 1;
                block.straight = None;
                return Ok(Written::Some);
            }
            if !self.bulk.has_room_for_a_piece() {
                return Ok(Written::Later);
            }
        }
        let number = self.bulk.next_number();
        let frame = peer.requests.get_or_insert_with(|| self.wire.frame());
        frame.direct(route.number);
        let Some(BlockPiece { local, len, of }) = announce(block, frame, number) else { return Ok(Written::NoRoom) };
        match of {
            Of::Put(whole) => {
                self.urgent = true;
                if peer.credit.may_send() {
                    send_requests(peer, &mut self.wire, &mut self.outbox, &mut self.events, to)?;
                }
                let id = self.bulk.add(Then::PieceSent { whole, to, begun: Instant::now() });
                // SAFETY: the caller's memory may be used until the completion is polled, which is when the last piece has left.
                unsafe { self.wire.send_bulk(to, local, len, Tag { kind: BulkKind::Request, number }, id) }?;
            }
            Of::Get { token, origin } => {
                self.origins.begin_piece(origin);
                peer.asked += len;
                self.bulk.asked += usize::from(self.limits.is_long(len));
                let id = self.bulk.add(Then::Filled(Get { token, piece_of: Some(origin), from: to, len }));
                // SAFETY: as above; pieces do not overlap.
                unsafe { self.wire.receive_bulk(to, local, len, Tag { kind: BulkKind::Get, number }, id) }?;
            }
        }
        Ok(if block.at == block.len { Written::All } else { Written::Some })
    }

    /// Sends what is there as requests for a peer, as far as it has credit.
    pub(super) fn send_requests(&mut self, to: usize) -> Result<()> {
        match self.peers.get_mut(to) {
            Some(peer) if peer.credit.may_send() => send_requests(peer, &mut self.wire, &mut self.outbox, &mut self.events, to),
            _ => Ok(()),
        }
    }

    /// Sends what is there as answers for a peer.
    pub(super) fn send_answers(&mut self, to: usize) -> Result<()> {
        self.peers.get_mut(to).map_or(Ok(()), |peer| send_answers(peer, &mut self.wire, &mut self.outbox, to))
    }

    /// Sends what is there, to the peers that something is for.
    pub(super) fn send(&mut self) -> Result<()> {
        self.outbox.resume(&mut self.wire)?;
        for _ in 0..self.busy.len() {
            let Some(rank) = self.busy.pop_front() else { break };
            self.pump(rank, None)?;
            let Some(peer) = self.peers.get_mut(rank) else { continue };
            if peer.requests.as_ref().is_some_and(|frame| !frame.is_empty()) && peer.credit.may_send() {
                send_requests(peer, &mut self.wire, &mut self.outbox, &mut self.events, rank)?;
            }
            if peer.credit.must_acknowledge() {
                peer.answers.get_or_insert_with(|| self.wire.frame());
            }
            send_answers(peer, &mut self.wire, &mut self.outbox, rank)?;
            let waits = !peer.queue.is_empty() || peer.requests.as_ref().is_some_and(|frame| !frame.is_empty());
            peer.listed = waits;
            if waits {
                self.busy.push_back(rank);
            }
        }
        Ok(())
    }

    /// Appends an answer for a peer.
    pub(super) fn answer(
        &mut self,
        to: usize,
        kind: RecordKind,
        words: &[u64],
        payload: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        self.peer(to);
        let Some(peer) = self.peers.get_mut(to) else { return Ok(()) };
        if peer.answers.as_ref().is_some_and(|frame| !frame.has_room(words.len(), 0, payload)) {
            send_answers(peer, &mut self.wire, &mut self.outbox, to)?;
        }
        let frame = peer.answers.get_or_insert_with(|| self.wire.frame());
        fill(frame.push(kind, 0, words, &[], payload));
        Ok(())
    }

    /// Sends an answer of `payload` bytes in a long frame. Returns None if there is no such frame now.
    pub(super) fn answer_beside(
        &mut self,
        to: usize,
        kind: RecordKind,
        words: &[u64],
        payload: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Option<()>> {
        let Some(mut frame) = self.bulk.frames.take(FrameUse::Answers) else { return Ok(None) };
        fill(frame.push(kind, 0, words, &[], payload));
        let announcement = self.send_long_frame(frame, to, FrameUse::Answers)?;
        self.answer(to, RecordKind::LongFrame, &announcement, 0, |_| ())?;
        // The rank that asked begins to receive while the next answer is written.
        self.send_answers(to).map(Some)
    }
}

fn send_requests<W: Wire>(peer: &mut Peer, wire: &mut W, outbox: &mut Outbox, events: &mut Vec<Event>, to: usize) -> Result<()> {
    events.extend(peer.signals.drain(..).map(Event::LocalDone));
    let Some(mut frame) = peer.requests.take_if(|frame| !frame.is_empty()) else { return Ok(()) };
    frame.seal(peer.credit.requests_leave(), true);
    outbox.send(wire, to, Class::Request, frame)
}

fn send_answers<W: Wire>(peer: &mut Peer, wire: &mut W, outbox: &mut Outbox, to: usize) -> Result<()> {
    let Some(mut frame) = peer.answers.take_if(|frame| !frame.is_empty() || peer.credit.must_acknowledge()) else {
        return Ok(());
    };
    frame.seal(peer.credit.answers_leave(), false);
    outbox.send(wire, to, Class::Reply, frame)
}
