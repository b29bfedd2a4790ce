//! Puts and gets that the wire carries out in the peer's memory by itself, instead of records that the peer handles.
//!
//! Each byte may take either road, because both keep the order:
//!
//! * What goes past the peer's handlers waits until they have acknowledged every frame of requests. So it never overtakes a record.
//! * A record sent behind a write comes behind it, for the wire keeps the order. A read may see what comes behind it.
//!
//! A short operation that would have to wait, for the acknowledgement or for a region (`regions`), becomes a record. A long one waits,
//! because the peer's processor would need longer for its bytes. An atomic operation of an adapter waits for its region only, and never becomes a
//! record: no processor may touch its word. Answers need no such rule: they change only memory of a caller that waits for them.
//!
//! A flush of a peer that has acknowledged everything takes no message: it ends with the last transfer.

use std::sync::Arc;

use super::{
    Am,
    bulk::Then,
    endpoint::Endpoint,
    frame::{MOST_RANKS, Record, RecordKind},
    inbox::Handled,
    peer::{Block, BlockKind, Op, Peer},
    regions::Region,
    route::Route,
    runs::Runs,
    wire::{Broken, OneSided, OneSidedLimits, Piece, Result, Wire},
    write::Written,
};
use crate::comm::{Atomic, Event, Local, Token};

/// Pieces that are begun together.
const CHAIN: usize = 32;

/// Regions in a record: with its other words they fit into the shortest frame.
const TOLD: usize = 10;

/// An atomic operation asks for regions this often, at most: an answer may be older than a revocation.
const MOST_ASKS: u32 = 8;

/// Which way an operation can take now.
enum TransferWay {
    Transfer(Region),
    Record,
    /// It is longer than what it has to wait for.
    Later,
}

/// Where a byte of an operation is, at the peer and here, and the number of contiguous bytes from it on at both.
struct Stretch {
    offset: usize,
    here: *mut u8,
    rest: usize,
}

impl<W: Wire> Endpoint<W> {
    /// Begins as much of an operation as can be by transfers. Returns None if it is to be a record.
    pub(super) fn transfer(&mut self, route: Route, op: &mut Op) -> Result<Option<Written>> {
        let Some(limits) = self.limits.one_sided else { return Ok(None) };
        match op {
            Op::Put { offset, local, len, at, .. } => {
                let (offset, local, len) = (*offset, *local, *len);
                let place = |at| Stretch { offset: offset + at, here: local.wrapping_add(at), rest: len - at };
                self.transfer_bytes(route, limits, len, at, place, None)
            }
            Op::Get { offset, len, at, origin } if limits.reads => {
                let (offset, len) = (*offset, *len);
                let place = |at| Stretch { offset: offset + at, here: std::ptr::null_mut(), rest: len - at };
                self.transfer_bytes(route, limits, len, at, place, Some(*origin))
            }
            Op::Block(block) => self.transfer_block(route, limits, block),
            Op::Change { offset, atomic, origin, asks } => self.change(route, *offset, *atomic, *origin, asks).map(Some),
            _ => Ok(None),
        }
    }

    /// Has the adapter change a word. What this rank put there was flushed before, so it waits for no acknowledgement.
    fn change(
        &mut self,
        Route { to, number }: Route,
        offset: usize,
        atomic: Atomic,
        origin: u64,
        asks: &mut u32,
    ) -> Result<Written> {
        let region = if to == self.topology.rank() {
            self.reach.owned.of(number).and_then(|own| own.find(offset))
        } else {
            let known = self.peer(to).known(number);
            let (found, is_asked) = (known.find(offset), known.is_asked());
            if found.is_none() && !is_asked {
                if *asks >= MOST_ASKS {
                    return Err(Broken(format!(
                        "there is no open memory of rank {to} with the word at byte {offset}, which is to change"
                    )));
                }
                if self.request(Route { to, number }, RecordKind::Regions, &[])? {
                    *asks += 1;
                    self.peer(to).known(number).asks();
                }
            }
            found
        };
        let Some(region) = region else { return Ok(Written::Later) };
        let word = Piece { there: region.at(offset).0, key: region.key, here: std::ptr::null_mut(), len: size_of::<u64>() };
        // SAFETY: the caller's word is committed and aligned; the region stays open until its owner has heard that transfers have ended, and this
        // rank's own until they have.
        let begun = unsafe { one_sided(&mut self.wire)?.change(to, word, atomic, origin) }?;
        Ok(if begun { Written::All } else { Written::Later })
    }

    /// A short operation as a piece, if it is one transfer that may begin now. If not, it has to be an operation that waits.
    fn piece_at_once(&mut self, Route { to, number }: Route, offset: usize, local: Local) -> Option<Piece> {
        let (Local { ptr: here, len }, limits, peer) = (local, self.limits.one_sided?, self.peers.get_mut(to)?);
        if len > limits.copied || !peer.queue.is_empty() || !peer.has_acknowledged() || to == self.topology.rank() {
            return None;
        }
        let region = peer.known(number).find(offset)?;
        let (there, room) = region.at(offset);
        (len <= room).then_some(Piece { there, key: region.key, here, len })
    }

    /// A short put, if it is one transfer that can begin now: it is complete then.
    ///
    /// # Safety
    /// The bytes are readable.
    pub(super) unsafe fn put_at_once(&mut self, route: Route, offset: usize, local: Local) -> Result<bool> {
        let Some(piece) = self.piece_at_once(route, offset, local) else { return Ok(false) };
        // SAFETY: the caller's promise; the peer's region is open until it was told that its transfers have ended.
        if unsafe { one_sided(&mut self.wire)?.write(route.to, &[piece]) }? == 0 {
            return Ok(false);
        }
        if self.peers.get_mut(route.to).is_some_and(|peer| peer.submits(true, false)) {
            self.unsettled.push(route.to);
        }
        Ok(true)
    }

    /// Begins a short get, if it is one transfer that can begin now. Returns true if it has begun.
    ///
    /// # Safety
    /// The bytes are writable until the completion was polled.
    pub(super) unsafe fn get_at_once(&mut self, route: Route, offset: usize, local: Local, token: Token) -> Result<bool> {
        if !self.limits.one_sided.is_some_and(|limits| limits.reads) {
            return Ok(false);
        }
        let Some(piece) = self.piece_at_once(route, offset, local) else { return Ok(false) };
        let origin = self.origins.data(token, local.ptr, Runs::one(local.len), local.len);
        // SAFETY: the peer's region is open until it was told that its transfers have ended.
        if unsafe { one_sided(&mut self.wire)?.read(route.to, &[piece], origin, 0) }? == 0 {
            self.origins.never_asked(origin);
            return Ok(false);
        }
        Ok(true)
    }

    /// Looks whether reads have ended. None if no read is under way, or if something else has come, which needs a whole look.
    pub(super) fn look_at_reads(&mut self) -> Result<Option<()>> {
        let (origins, events) = (&mut self.origins, &mut self.events);
        let Some(wire) = self.wire.one_sided() else { return Ok(None) };
        if self.outbox.has_own() || !wire.look_for_read()? {
            return Ok(None);
        }
        wire.take_read(&mut |origin, at, bytes| events.extend(origins.data_came(origin, at, bytes)));
        Ok((!wire.has_arrivals()).then_some(()))
    }

    /// Returns true if something has come that was not looked at.
    pub(super) fn has_arrivals(&mut self) -> bool {
        self.outbox.has_own() || self.wire.one_sided().is_some_and(|wire| wire.has_arrivals())
    }

    /// Copies contiguous bytes, from byte `at` of `len` on.
    fn transfer_bytes(
        &mut self,
        route: Route,
        limits: OneSidedLimits,
        len: usize,
        at: &mut usize,
        place: impl Fn(usize) -> Stretch,
        origin: Option<u64>,
    ) -> Result<Option<Written>> {
        while *at < len {
            let region = match self.way(route, place(*at).offset, len >= limits.straight)? {
                TransferWay::Transfer(region) => region,
                TransferWay::Record => return Ok(None),
                TransferWay::Later => return Ok(Some(Written::Later)),
            };
            if !self.copy(route.to, limits, region, len, at, &place, origin)? {
                return Ok(Some(Written::Later));
            }
        }
        Ok(Some(Written::All))
    }

    /// The same of a block, whose runs go straight if they are long.
    fn transfer_block(&mut self, route: Route, limits: OneSidedLimits, block: &mut Block) -> Result<Option<Written>> {
        if !self.is_for_transfer(block) {
            return Ok(None);
        }
        let to = route.to;
        let origin = if let BlockKind::Get { origin } = block.what { Some(origin) } else { None };
        let (run, there, local) = (block.there.run(), block.there, block.local);
        let (here, first) = (block.here, block.offset);
        let place = |at: usize| {
            let (index, within) = (at / run, at % run);
            let offset = first.wrapping_add_signed(there.start(index)) + within;
            let here = local.wrapping_offset(here.start(index)).wrapping_add(within);
            Stretch { offset, here, rest: run - within }
        };
        while block.at < block.len {
            let Stretch { offset, here, rest } = place(block.at);
            let region = match self.way(route, offset, block.len >= limits.straight)? {
                TransferWay::Transfer(region) => region,
                TransferWay::Record => return Ok(None),
                TransferWay::Later => return Ok(Some(Written::Later)),
            };
            let (there, room) = region.at(offset);
            let part = rest.min(room).min(limits.longest);
            if let Some(whole) = block.straight.as_ref().filter(|_| part >= limits.straight)
                && self.go_straight(to, Piece { there, key: region.key, here, len: part }, whole.clone(), block.token, origin)?
            {
                block.at += part;
            } else if !self.copy(to, limits, region, block.len, &mut block.at, &place, origin)? {
                return Ok(Some(Written::Later));
            }
        }
        Ok(Some(Written::All))
    }

    /// Begins a chain of copied pieces in a region, from byte `at` of `len` on. Returns true if there was room for all of the
    /// chain.
    #[expect(clippy::too_many_arguments, reason = "one loop for bytes and for blocks, which name their places in different ways")]
    fn copy(
        &mut self,
        to: usize,
        limits: OneSidedLimits,
        region: Region,
        len: usize,
        at: &mut usize,
        place: &impl Fn(usize) -> Stretch,
        origin: Option<u64>,
    ) -> Result<bool> {
        let (first, mut next) = (*at, *at);
        let mut pieces = std::mem::take(&mut self.reach.chain);
        while next < len
            && pieces.len() < CHAIN
            && let Stretch { offset, here, rest } = place(next)
            && offset.wrapping_sub(region.offset) < region.len
        {
            let (there, room) = region.at(offset);
            let len = rest.min(limits.copied).min(room);
            pieces.push(Piece { there, key: region.key, here, len });
            next += len;
        }
        let wire = one_sided(&mut self.wire)?;
        // SAFETY: the caller's memory is readable until its completion is polled; the peer's region is open until it was told that its
        // transfers have ended.
        let begun = unsafe {
            match origin {
                None => wire.write(to, &pieces)?,
                Some(origin) => wire.read(to, &pieces, origin, first)?,
            }
        };
        *at += pieces[..begun].iter().map(|piece| piece.len).sum::<usize>();
        let are_all = begun == pieces.len();
        pieces.clear();
        self.reach.chain = pieces;
        Ok(are_all)
    }

    /// Returns true if the runs of a block may be pieces.
    pub(super) fn is_for_transfer(&self, block: &Block) -> bool {
        let Some(limits) = self.limits.one_sided.filter(|limits| block.there.run() >= limits.run) else { return false };
        match block.what {
            BlockKind::Put => true,
            BlockKind::Get { .. } => limits.reads,
            BlockKind::Accumulate { .. } => false,
        }
    }

    fn go_straight(&mut self, to: usize, piece: Piece, whole: Arc<Token>, token: Token, origin: Option<u64>) -> Result<bool> {
        let then = match origin {
            None => Then::WentStraight(whole),
            Some(origin) => Then::CameStraight { token, origin, len: piece.len },
        };
        let id = self.bulk.add(then);
        // SAFETY: the caller's memory may be used until the completion is polled, which is when the last piece has ended; pieces do not
        // overlap. As for `begin`.
        let begun = unsafe { one_sided(&mut self.wire)?.go_straight(to, origin.is_some(), piece, id) }?;
        if !begun {
            drop(self.bulk.remove(id));
        } else if let Some(origin) = origin {
            self.origins.begin_piece(origin);
        }
        Ok(begun)
    }

    /// The way for a byte of an operation, which is long or not.
    fn way(&mut self, route: Route, offset: usize, is_long: bool) -> Result<TransferWay> {
        let Route { to, number } = route;
        if to == self.topology.rank() {
            return Ok(TransferWay::Record);
        }
        let Some(peer) = self.peers.get_mut(to) else { return Ok(TransferWay::Record) };
        let otherwise = |waits: bool| if is_long && waits { TransferWay::Later } else { TransferWay::Record };
        let known = peer.known(number);
        let Some(region) = known.find(offset) else {
            if known.misses() && self.request(route, RecordKind::Regions, &[])? {
                self.peer(to).known(number).asks();
            }
            return Ok(otherwise(self.peer(to).known(number).is_asked()));
        };
        if !peer.has_acknowledged() {
            if is_long && !peer.acknowledges && self.makes_room(to, 1)? {
                let origin = self.origins.value(Token::ACKNOWLEDGED, false);
                self.peer(to).acknowledges = self.request(route, RecordKind::Flush, &[origin])?;
            }
            return Ok(otherwise(true));
        }
        Ok(if one_sided(&mut self.wire)?.may_transfer(to)? { TransferWay::Transfer(region) } else { otherwise(true) })
    }

    /// Sends the frame being filled if it lacks room for a record of `words` words. Returns true if there is room now.
    fn makes_room(&mut self, to: usize, words: usize) -> Result<bool> {
        let lacks = |peer: &Peer| peer.requests.as_ref().is_some_and(|frame| !frame.has_room(words, 0, 0));
        if self.peers.get(to).is_some_and(lacks) {
            self.send_requests(to)?;
        }
        Ok(self.peers.get(to).is_some_and(|peer| !lacks(peer)))
    }

    /// Writes a record before what is queued, if that has room now. If it has not, the peer owes acknowledgements, and gives them.
    fn request(&mut self, Route { to, number }: Route, kind: RecordKind, words: &[u64]) -> Result<bool> {
        if !self.makes_room(to, words.len())? {
            return Ok(false);
        }
        let Some(peer) = self.peers.get_mut(to) else { return Ok(false) };
        let frame = peer.requests.get_or_insert_with(|| self.wire.frame());
        frame.direct(number);
        frame.push(kind, 0, words, &[], 0);
        self.urgent = true;
        Ok(true)
    }

    /// A peer asks for the regions of a rank that this one answers for.
    pub(super) fn tell_regions(&mut self, to: usize, number: u16) -> Result<Handled> {
        let Some(own) = self.reach.owned.of(number) else { return Ok(Handled::Wrong) };
        let (version, regions) = own.tell(to);
        let words: Vec<u64> = regions.flat_map(Region::words).collect();
        let pieces = words.chunks(TOLD * Region::WORDS).map(<[u64]>::to_vec);
        let pieces: Vec<_> = if words.is_empty() { vec![Vec::new()] } else { pieces.collect() };
        for (k, piece) in pieces.into_iter().enumerate() {
            let head = [number.into(), version, (k * TOLD) as u64];
            self.answer(to, RecordKind::RegionsAre, &[&head[..], &piece].concat(), 0, |_| ())?;
        }
        Ok(Handled::Done)
    }

    /// An endpoint lists the regions of a rank.
    pub(super) fn know_regions(&mut self, from: usize, record: &Record<'_>) -> Option<()> {
        let ([number, version, first], regions) = record.words.split_first_chunk()?;
        let known = self.peer(from).known(number_of(*number)?);
        known.told(*version, usize::try_from(*first).ok()?, regions)
    }

    /// An endpoint has revoked the regions of a rank.
    pub(super) fn forget_regions(&mut self, from: usize, record: &Record<'_>) -> Option<()> {
        let [number, version] = record.words.first_chunk()?;
        let number = number_of(*number)?;
        let begun = self.wire.one_sided()?.transfers(from).begun;
        self.peer(from).known(number).revoked(*version, begun);
        self.reach.owing.push(Route { to: from, number });
        Some(())
    }

    /// A peer has answered a revocation.
    pub(super) fn revocation_answered(&mut self, record: &Record<'_>) -> Option<()> {
        let [number, _] = record.words.first_chunk()?;
        self.reach.owned.of(number_of(*number)?)?.answered()
    }

    /// Looks at what the wire has read, and at transfers that have ended.
    pub(super) fn look_at_transfers(&mut self) -> Result<()> {
        let (origins, events) = (&mut self.origins, &mut self.events);
        let Some(wire) = self.wire.one_sided() else { return Ok(()) };
        let found = wire.take_read(&mut |origin, at, bytes| events.extend(origins.data_came(origin, at, bytes)));
        self.found += u64::from(found);
        let peers = &mut self.peers;
        self.reach.flushing.retain(|&to| {
            let (Some(peer), ended) = (peers.get_mut(to), wire.transfers(to).ended) else { return false };
            while let Some(&(begun, token)) = peer.quiet_flushes.front()
                && begun <= ended
            {
                events.push(Event::RemoteDone(token));
                peer.quiet_flushes.pop_front();
            }
            !peer.quiet_flushes.is_empty()
        });
        if !self.reach.owing.is_empty() {
            let has_ended = |&mut Route { to, number }: &mut Route| {
                let owed = peers.get_mut(to).and_then(|peer| peer.known(number).owed);
                owed.is_none_or(|(_, begun)| begun <= wire.transfers(to).ended)
            };
            let free: Vec<Route> = self.reach.owing.extract_if(.., has_ended).collect();
            for Route { to, number } in free {
                if let Some((version, _)) = self.peer(to).known(number).owed.take() {
                    self.answer(to, RecordKind::Revoked, &[number.into(), version], 0, |_| ())?;
                }
            }
        }
        Ok(())
    }

    /// Returns true if all that was put to a rank is known to be visible.
    ///
    /// # Errors
    /// [`Broken`], which is not said again.
    pub(super) fn is_flushed(&mut self, rank: usize) -> Result<bool> {
        let to = self.routes.find(rank).to;
        let owes = |peer: &Peer| !peer.has_acknowledged() || !peer.queue.is_empty();
        Ok(!self.peers.get(to).is_none_or(owes) && one_sided(&mut self.wire)?.have_ended(to)?)
    }

    /// Reports the end of all that was put to a peer, if that takes no message. Returns false if it takes one.
    fn flush_quietly(&mut self, to: usize, token: Token) -> bool {
        let Some(peer) = self.peers.get_mut(to).filter(|_| self.limits.one_sided.is_some()) else { return false };
        if !peer.has_acknowledged() || !peer.queue.is_empty() {
            return false;
        }
        let transfers = self.wire.one_sided().map(|wire| wire.transfers(to)).unwrap_or_default();
        if transfers.begun == transfers.ended {
            self.events.push(Event::RemoteDone(token));
            return true;
        }
        if peer.quiet_flushes.is_empty() {
            self.reach.flushing.push(to);
        }
        peer.quiet_flushes.push_back((transfers.begun, token));
        true
    }
}

/// The number of a rank, as an endpoint may answer for it.
fn number_of(word: u64) -> Option<u16> {
    u16::try_from(word).ok().filter(|&number| usize::from(number) < MOST_RANKS)
}

pub(super) fn one_sided<W: Wire>(wire: &mut W) -> Result<&mut dyn OneSided> {
    wire.one_sided().ok_or_else(|| Broken("one-sided transfers over a wire that has none".into()))
}

impl<W: Wire> Am<W> {
    /// Reports the end of all that was put to the ranks that an endpoint answers for.
    pub(super) fn flush_by(&self, route: impl FnOnce(&mut Endpoint<W>) -> Route, token: Token) {
        let mut endpoint = self.endpoint();
        let route = route(&mut endpoint);
        if self.is_one_sided && endpoint.flush_quietly(route.to, token) {
            return;
        }
        let origin = endpoint.origins.value(token, false);
        let submitted = endpoint.submit(route, Op::Small { kind: RecordKind::Flush, aux: 0, words: [origin, 0, 0, 0, 0] });
        drop(endpoint);
        self.report(submitted);
    }
}
