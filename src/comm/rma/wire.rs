//! What active messages ask for: frames, and how the adapter is driven.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    adapter::{RmaAdapter, RmaDone, RmaLimits},
    order::PeerOrder,
    road::{FrameRoad, OF_ROAD},
    works::{SlotTransfer, WorkEnd, Works},
};
use crate::comm::{
    am::{
        frame::{Frame, Frames},
        wire::{Arrival, Broken, BulkId, Class, Ended, Limits, OneSided, OneSidedLimits, Result, Sleeper, Wire},
    },
    kit::peers::Peers,
    node::Member,
    start::{devices::directory::Directory, modelled::VirtualRank, settings::Settings},
};

/// Bytes of a copied piece.
const COPIED: usize = 8 << 10;

/// From this many bytes on a piece goes straight if that needs no registration, and if it needs one.
const STRAIGHT_FROM: usize = COPIED;
const REGISTERED_FROM: usize = 64 << 10;

/// Runs of a block are pieces from this many bytes on.
const RUN: usize = 512;

/// Bytes of the longest straight piece: some of these are under way at a time.
const LONGEST: usize = 1 << 20;

/// Frames kept for the next use.
const KEPT: usize = 64;

/// After a lookup of a peer failed, the next one waits this long.
const FIND_AGAIN: Duration = Duration::from_millis(100);

/// A failed work ends the job after this time, if nothing else does.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// The job of a wire, and its rank there.
#[derive(Clone, Debug, Default)]
pub(in crate::comm) struct RmaSettings {
    pub(in crate::comm) rank: usize,
    /// Transfers may be given up. Those that go straight cannot be, so none does.
    pub(in crate::comm) may_give_up: bool,
    /// A peer that does not answer for this long is lost.
    pub(in crate::comm) silence: Option<Duration>,
    /// The rank in virtual time, if time is that.
    pub(in crate::comm) time: Option<VirtualRank>,
}

impl RmaSettings {
    pub(in crate::comm) fn of(settings: &Settings, member: &Member) -> Self {
        RmaSettings { rank: member.topology().rank(), may_give_up: settings.may_give_up(), silence: settings.silence, time: None }
    }
}

/// The wire of a rank.
#[derive(Debug)]
pub(in crate::comm) struct RmaWire<A: RmaAdapter, R> {
    pub(super) adapter: A,
    pub(super) road: R,
    directory: Arc<Directory>,
    settings: RmaSettings,
    start: Instant,
    pub(super) peers: Peers<PeerOrder>,
    /// Behind the adapter, whose memory they are.
    pub(super) works: Works,
    /// Slots that hold what was read; reads that are not handed out; transfers that went straight and have ended.
    pub(super) read: VecDeque<usize>,
    pub(super) reading: usize,
    pub(super) ended: Vec<Ended>,
    /// Slots of atomic operations whose next step the adapter was too full for.
    pub(super) stepping: VecDeque<usize>,
    /// Peers with writes that no mark stands behind.
    pub(super) unmarked: VecDeque<usize>,
    /// What the adapter has reported; empty, kept for its memory.
    done: Vec<RmaDone>,
    frames: Frames,
    /// A peer that was not found, and when the next lookup of it may begin.
    find_at: Option<(usize, Duration)>,
    /// A write or a read has failed: marks tell nothing any more.
    is_broken: bool,
    /// When a failure ends the job, and what it says then.
    failed: Option<(Duration, String)>,
}

impl<A: RmaAdapter, R: FrameRoad<A>> RmaWire<A, R> {
    /// The wire over a port and a road, which publishes the port's address.
    ///
    /// # Errors
    /// What the adapter says.
    pub(in crate::comm) fn new(
        mut adapter: A,
        road: R,
        directory: Arc<Directory>,
        settings: RmaSettings,
    ) -> std::result::Result<Self, String> {
        let works = match Works::new(&mut adapter, COPIED) {
            Ok(works) => works,
            Err(why) => {
                // Before the memory of the road is freed.
                adapter.close();
                return Err(why);
            }
        };
        directory.publish(settings.rank, adapter.address());
        Ok(RmaWire {
            frames: Frames::new(road.longest(), KEPT),
            adapter,
            road,
            directory,
            settings,
            start: Instant::now(),
            peers: Peers::default(),
            works,
            read: VecDeque::new(),
            reading: 0,
            ended: Vec::new(),
            stepping: VecDeque::new(),
            unmarked: VecDeque::new(),
            done: Vec::new(),
            find_at: None,
            is_broken: false,
            failed: None,
        })
    }

    /// The time since some moment.
    fn now(&self) -> Duration {
        self.settings.time.as_ref().map_or_else(|| self.start.elapsed(), |time| time.cables.now(time.rank))
    }

    /// Returns true if a peer was entered. If not, it has not published its address yet.
    pub(super) fn meets(&mut self, peer: usize) -> Result<bool> {
        if self.peers.get(peer).is_some() {
            return Ok(true);
        }
        if self.find_at.is_some_and(|(missing, at)| missing == peer && self.now() < at) {
            return Ok(false);
        }
        let Some(address) = self.directory.find(peer) else {
            self.find_at = Some((peer, self.now() + FIND_AGAIN));
            return Ok(false);
        };
        self.adapter.meet(peer, &address)?;
        self.peers.meet(peer);
        Ok(true)
    }

    /// Asks for the end of the writes to a peer.
    pub(super) fn mark(&mut self, peer: usize) -> Result<()> {
        let order = self.peers.meet(peer);
        if order.wants_mark() && self.adapter.mark(peer, Works::mark_of(peer))? {
            order.begin_mark();
        }
        Ok(())
    }

    /// Asks for the end of all writes, and looks at the adapter.
    fn look(&mut self) -> Result<()> {
        for _ in 0..self.unmarked.len() {
            let Some(peer) = self.unmarked.pop_front() else { break };
            self.mark(peer)?;
            let order = self.peers.meet(peer);
            if order.wants_mark() {
                self.unmarked.push_back(peer);
            } else {
                order.is_listed = false;
            }
        }
        // What has ended makes room for frames.
        let any_ended = self.poll()?;
        let has_room = self.road.tend(&mut self.adapter)?;
        // If anything has changed, a frame that waited is tried again before the rank sleeps.
        let is_done = !any_ended && !has_room && !self.road.has_arrivals();
        self.settings.time.iter().filter(|_| is_done).for_each(|time| time.cables.has_polled(time.rank));
        Ok(())
    }

    /// Handles what the adapter reports. Returns true if that was anything.
    pub(super) fn poll(&mut self) -> Result<bool> {
        let mut done = std::mem::take(&mut self.done);
        let mut polled = self.adapter.poll(&mut done);
        let is_any = !done.is_empty();
        for one in done.drain(..) {
            polled = polled.and(self.ends(&one));
        }
        self.done = done;
        polled?;
        while let Some(&slot) = self.stepping.front()
            && self.step(slot)?
        {
            self.stepping.pop_front();
        }
        match &self.failed {
            Some((at, why)) if self.now() >= *at => Err(Broken(why.clone())),
            _ => Ok(is_any),
        }
    }

    fn ends(&mut self, done: &RmaDone) -> Result<()> {
        let (RmaDone::Ends { id, .. } | RmaDone::Fails { id: Some(id), .. }) = *done else {
            self.fails(done);
            return Ok(());
        };
        if id & OF_ROAD != 0 {
            if self.road.ends(done) {
                self.fails(done);
            }
            return Ok(());
        }
        if let RmaDone::Fails { .. } = done {
            // It never ends. The end of the job gives its memory back.
            self.fails(done);
            return Ok(());
        }
        let RmaLimits { marks, .. } = *self.adapter.limits();
        match self.works.ended(id) {
            None => {}
            Some(WorkEnd::Mark(_)) if self.is_broken => {}
            Some(WorkEnd::Mark(peer)) => {
                let order = self.peers.meet(peer);
                order.end_mark();
                if order.wants_mark() && !std::mem::replace(&mut order.is_listed, true) {
                    self.unmarked.push_back(peer);
                }
            }
            Some(WorkEnd::Slot(slot, SlotTransfer::Change { .. })) if !self.steps_on(slot) => {}
            Some(WorkEnd::Slot(slot, SlotTransfer::Read { .. } | SlotTransfer::Change { .. })) => self.read.push_back(slot),
            Some(WorkEnd::Slot(slot, SlotTransfer::Write { to, number })) => {
                self.works.release(slot);
                if !marks {
                    self.peers.meet(to).end(number);
                }
            }
            Some(WorkEnd::Slot(slot, SlotTransfer::Straight { with, number, reads, len, region, id })) => {
                self.works.release(slot);
                region.map_or(Ok(()), |region| self.adapter.deregister(region))?;
                if reads || !marks {
                    self.peers.meet(with).end(number);
                }
                self.ended.push(Ended { id, len });
            }
        }
        Ok(())
    }

    /// Notes a failure, which ends the job later.
    fn fails(&mut self, done: &RmaDone) {
        let RmaDone::Fails { id, peer, why } = done else { return };
        let is_frame = id.is_some_and(|id| id & OF_ROAD != 0);
        self.is_broken |= !is_frame;
        if is_frame && let Some(peer) = *peer {
            self.peers.meet(peer).is_lost = true;
        }
        let patience = self.settings.silence.filter(|_| is_frame).unwrap_or(GRACE);
        let at = self.now().saturating_add(patience);
        if self.failed.as_ref().is_some_and(|&(before, _)| before <= at) {
            return;
        }
        self.settings.time.iter().for_each(|time| time.cables.ring_at(time.rank, at));
        let whom = peer.map_or_else(|| "a rank".to_owned(), |peer| format!("rank {peer}"));
        self.failed = Some((at, format!("{whom} cannot be reached: {why}")));
    }
}

impl<A: RmaAdapter, R: FrameRoad<A>> Wire for RmaWire<A, R> {
    fn limits(&self) -> Limits {
        let RmaLimits { longest, local_regions, atomics, .. } = *self.adapter.limits();
        let straight = match self.settings.may_give_up {
            true => usize::MAX,
            false if local_regions => REGISTERED_FROM,
            false => STRAIGHT_FROM,
        };
        let (copied, longest) = (COPIED.min(longest), LONGEST.min(longest));
        let one_sided = Some(OneSidedLimits { copied, straight, longest, run: RUN, reads: true, atomics });
        Limits { frame: self.road.longest(), bulk: None, one_sided, by_agents: false }
    }

    fn frame(&mut self) -> Frame {
        self.frames.take()
    }

    fn keep(&mut self, frame: Frame) {
        self.frames.give(frame);
    }

    fn send(&mut self, to: usize, class: Class, frame: Frame) -> Result<Option<Frame>> {
        let is_ordered = class == Class::Reply || self.adapter.limits().frame_behind_write;
        let is_lost = |peer: &PeerOrder| class == Class::Request && peer.is_lost;
        let has_before = |peer: &PeerOrder| if is_ordered { class == Class::Request && peer.changes() } else { peer.alters() };
        let waits = self.peers.get(to).is_some_and(|peer| is_lost(peer) || has_before(peer));
        if !waits && self.meets(to)? && self.road.send(&mut self.adapter, to, class, frame.sealed())? {
            self.frames.give(frame);
            return Ok(None);
        }
        Ok(Some(frame))
    }

    fn leaving(&self) -> usize {
        self.road.leaving()
    }

    fn receive(&mut self) -> Result<Option<Arrival>> {
        if !self.road.has_arrivals() {
            self.look()?;
        }
        if !self.road.has_arrivals() {
            return Ok(None);
        }
        let mut frame = self.frames.take();
        match self.road.receive(&mut self.adapter, frame.bytes_mut())? {
            Some((from, len)) => {
                self.settings.time.iter().for_each(|time| time.cables.takes(time.rank, 1, len));
                Ok(Some(Arrival { from, frame, len }))
            }
            None => {
                self.frames.give(frame);
                Ok(None)
            }
        }
    }

    fn ended(&mut self, ended: &mut Vec<Ended>) -> Result<()> {
        ended.append(&mut self.ended);
        Ok(())
    }

    /// Where transfers may be given up none goes straight, so the job is over.
    fn cancel(&mut self, _: BulkId) {
        self.adapter.close();
        self.ended.extend(self.works.take_straight().map(|id| Ended { id, len: 0 }));
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn sleeper(&self) -> Option<Arc<dyn Sleeper>> {
        match &self.settings.time {
            Some(time) => Some(Arc::new(time.clone())),
            None => self.adapter.sleeper(),
        }
    }

    fn close(&mut self) {
        self.adapter.close();
    }
}

impl<A: RmaAdapter, R> Drop for RmaWire<A, R> {
    fn drop(&mut self) {
        self.adapter.close();
    }
}
