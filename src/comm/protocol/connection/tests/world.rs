//! Endpoints with their drivers, adapters and a network, in virtual time (microseconds).
//!
//! They send frames to each other through `replay`. An adapter delivers the works of a queue pair in order to its peer; if the peer is not
//! connected to it, the sender's queue pair breaks.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::super::{Action, ConnectionSettings, Connections, LENGTH, PairAddress, PairEvent, SetupWay, pair::RESIDENCE};
use crate::comm::protocol::{
    replay::{FrameArrival, ItemFate, ItemKind, Replay},
    simulation::Random,
};

/// What goes wrong, and how long things take.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    pub(super) endpoints: usize,
    pub(super) budget: usize,
    pub(super) way: SetupWay,
    /// In a hundred datagrams.
    pub(super) lost: usize,
    pub(super) doubled: usize,
    /// In a hundred steps.
    pub(super) failing: usize,
    /// Of a datagram or message: at least, and at most more.
    pub(super) delay: (u64, usize),
    /// Of the steps to make, connect and reset a queue pair: at least, and at most more.
    pub(super) steps: ([u64; 3], usize),
}

pub(super) const TOKEN: u128 = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;

/// A queue pair as its adapter sees it.
#[derive(Debug)]
struct QueuePair {
    address: PairAddress,
    epoch: u32,
    remote: Option<PairAddress>,
    is_broken: bool,
    /// Nothing may arrive before this, for order.
    latest: u64,
}

/// What a driver keeps for a peer.
#[derive(Debug)]
pub(super) struct Link {
    queue_pair: Option<QueuePair>,
    /// The time since when it may post, and the epoch.
    pub(super) ready: Option<(u64, u32)>,
    holds: bool,
    under_way: usize,
    replay: Replay<u64>,
    /// Frames that wait, by their place in the order of all to this peer.
    waiting: VecDeque<u64>,
    wanted: u64,
    /// Frames of the peer that were handled: all from zero on.
    pub(super) handled: u64,
}

impl Link {
    fn new() -> Self {
        Link {
            queue_pair: None,
            ready: None,
            holds: false,
            under_way: 0,
            replay: Replay::new(),
            waiting: VecDeque::new(),
            wanted: 0,
            handled: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Seen(u64),
    Frame { number: u64, id: u64 },
    Handled(u64),
}

#[derive(Debug)]
enum What {
    Datagram { to: usize, bytes: [u8; LENGTH] },
    Step { at: usize, peer: usize, step: usize, epoch: u32, remote: PairAddress },
    Message { from: usize, to: usize, epoch: u32, source: PairAddress, target: PairAddress, body: Body },
    Completion { at: usize, peer: usize, epoch: u32, frame: Option<u64> },
    Break { at: usize, peer: usize, epoch: Option<u32> },
    Want { at: usize, peer: usize },
    Timeout { at: usize },
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) machine: Connections,
    links: BTreeMap<usize, Link>,
    /// Queue pairs held, and in RESET.
    held: usize,
    reset: Vec<u32>,
    timer: Option<u64>,
}

pub(super) struct World {
    pub(super) conditions: Conditions,
    pub(super) nodes: Vec<Node>,
    pub(super) now: u64,
    pub(super) random: Random,
    events: BTreeMap<(u64, u64), What>,
    pub(super) events_done: u64,
    numbered: u64,
    queue_pairs: u32,
    /// Frames that were wanted and are not handled.
    pub(super) missing: usize,
    /// Datagrams that were sent, and some of them to be sent again much later.
    pub(super) datagrams: usize,
    pub(super) kept: VecDeque<(usize, [u8; LENGTH])>,
}

impl World {
    pub(super) fn new(conditions: Conditions, random: Random) -> Self {
        let Conditions { endpoints, budget, way, .. } = conditions;
        let node = |endpoint| Node {
            machine: Connections::new(ConnectionSettings { endpoint, endpoints, token: TOKEN, way, budget }),
            links: BTreeMap::new(),
            held: 0,
            reset: Vec::new(),
            timer: None,
        };
        World {
            nodes: (0..endpoints).map(node).collect(),
            conditions,
            now: 0,
            random,
            events: BTreeMap::new(),
            events_done: 0,
            numbered: 0,
            queue_pairs: 0,
            missing: 0,
            datagrams: 0,
            kept: VecDeque::new(),
        }
    }

    fn after(&mut self, delay: u64, what: What) {
        self.numbered += 1;
        self.events.insert((self.now + delay, self.numbered), what);
    }

    pub(super) fn want(&mut self, delay: u64, at: usize, peer: usize) {
        self.missing += 1;
        self.after(delay, What::Want { at, peer });
    }

    /// A queue pair breaks, if there is one then.
    pub(super) fn break_later(&mut self, delay: u64, at: usize, peer: usize) {
        self.after(delay, What::Break { at, peer, epoch: None });
    }

    pub(super) fn inject(&mut self, to: usize, bytes: &[u8]) {
        let now = Duration::from_micros(self.now);
        let actions = self.nodes[to].machine.on_datagram(now, bytes);
        self.act(to, actions);
    }

    fn delay(&mut self) -> u64 {
        let (least, more) = self.conditions.delay;
        // Some are very late.
        let more = if more > 0 && self.random.one_in(50) { 100 * more } else { more };
        least + self.random.below(more + 1) as u64
    }

    /// One event, if there is one.
    pub(super) fn step(&mut self) -> bool {
        let Some(((at, _), what)) = self.events.pop_first() else { return false };
        self.now = at;
        self.events_done += 1;
        match what {
            What::Datagram { to, bytes } => self.inject(to, &bytes),
            What::Step { at, peer, step, epoch, remote } => self.end_step(at, peer, step, epoch, remote),
            What::Message { from, to, epoch, source, target, body } => self.arrive(from, to, epoch, source, target, body),
            What::Completion { at, peer, epoch, frame } => self.complete(at, peer, epoch, frame),
            What::Break { at, peer, epoch } => self.break_now(at, peer, epoch),
            What::Want { at, peer } => {
                let link = self.link(at, peer);
                link.waiting.push_back(link.wanted);
                link.wanted += 1;
                self.post(at, peer);
            }
            What::Timeout { at } if self.nodes[at].timer == Some(self.now) => {
                self.nodes[at].timer = None;
                let now = Duration::from_micros(self.now);
                let actions = self.nodes[at].machine.on_timeout(now);
                assert!(self.nodes[at].machine.next_timeout().is_none_or(|next| next > now), "a deadline that does not pass");
                self.act(at, actions);
            }
            What::Timeout { .. } => {}
        }
        true
    }

    pub(super) fn link(&mut self, at: usize, peer: usize) -> &mut Link {
        self.nodes[at].links.entry(peer).or_insert_with(Link::new)
    }

    fn event(&mut self, at: usize, peer: usize, event: PairEvent) {
        let actions = self.nodes[at].machine.on_event(Duration::from_micros(self.now), peer, event);
        self.act(at, actions);
    }

    fn act(&mut self, at: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { peer, bytes } => self.send(peer, bytes),
                Action::Prepare { peer, epoch } => {
                    let node = &mut self.nodes[at];
                    node.held += 1;
                    assert!(node.held <= self.conditions.budget, "{} queue pairs at {at}", node.held);
                    assert!(self.link(at, peer).queue_pair.is_none());
                    self.begin_step(at, peer, 0, epoch, PairAddress::default());
                }
                Action::Connect { peer, epoch, remote } => self.begin_step(at, peer, 1, epoch, remote),
                Action::Release { peer, epoch } => {
                    let link = self.link(at, peer);
                    (link.ready, link.holds, link.under_way) = (None, false, 0);
                    link.replay.is_over();
                    self.begin_step(at, peer, 2, epoch, PairAddress::default());
                }
                Action::Ready { peer, epoch } => self.ready(at, peer, epoch),
                Action::Hold { peer, epoch } => {
                    let now = self.now;
                    let link = self.link(at, peer);
                    let (since, ready) = link.ready.expect("it was ready");
                    assert!(ready == epoch && now >= since + RESIDENCE.as_micros() as u64, "closed after {} us", now - since);
                    link.holds = true;
                }
            }
        }
        let next = self.nodes[at].machine.next_timeout().map(|next| next.as_nanos().div_ceil(1000) as u64);
        if let Some(next) = next
            && self.nodes[at].timer.is_none_or(|timer| timer > next)
        {
            let next = next.max(self.now);
            self.nodes[at].timer = Some(next);
            self.after(next - self.now, What::Timeout { at });
        }
    }

    fn send(&mut self, to: usize, bytes: [u8; LENGTH]) {
        self.datagrams += 1;
        if self.kept.len() < 16 && self.random.one_in(4) {
            self.kept.push_back((to, bytes));
        }
        for copy in 0..2 {
            let (lost, doubled) = (self.conditions.lost, self.conditions.doubled);
            if self.random.below(100) >= lost && (copy == 0 || self.random.below(100) < doubled) {
                let delay = self.delay();
                self.after(delay, What::Datagram { to, bytes });
            }
        }
    }

    fn begin_step(&mut self, at: usize, peer: usize, step: usize, epoch: u32, remote: PairAddress) {
        let (times, more) = self.conditions.steps;
        let time = times[step] + self.random.below(more + 1) as u64;
        self.after(time, What::Step { at, peer, step, epoch, remote });
    }

    fn end_step(&mut self, at: usize, peer: usize, step: usize, epoch: u32, remote: PairAddress) {
        let fails = self.random.below(100) < self.conditions.failing;
        let (created, sequence) = (self.queue_pairs + 1, self.random.below(1 << 24) as u32);
        let event = match (step, fails) {
            (0, false) => {
                let queue_pair = self.nodes[at].reset.pop().unwrap_or(created);
                self.queue_pairs = self.queue_pairs.max(queue_pair);
                let address = PairAddress { queue_pair, sequence };
                let made = QueuePair { address, epoch, remote: None, is_broken: false, latest: 0 };
                self.link(at, peer).queue_pair = Some(made);
                PairEvent::Prepared { epoch, address }
            }
            (1, false) => {
                self.link(at, peer).queue_pair.as_mut().unwrap().remote = Some(remote);
                PairEvent::Connected { epoch }
            }
            (step, _) => {
                if step != 1 {
                    let queue_pair = self.link(at, peer).queue_pair.take();
                    self.nodes[at].held -= 1;
                    self.nodes[at].reset.extend(queue_pair.filter(|_| !fails).map(|made| made.address.queue_pair));
                }
                if fails { PairEvent::Failed { epoch } } else { PairEvent::Released { epoch } }
            }
        };
        self.event(at, peer, event);
        self.post(at, peer);
    }

    fn ready(&mut self, at: usize, peer: usize, epoch: u32) {
        let now = self.now;
        let theirs = self.link(peer, at);
        let other = theirs.queue_pair.as_ref().map(|made| (made.epoch, made.address, made.remote));
        let (their_epoch, is_broken) = (theirs.ready, theirs.queue_pair.as_ref().is_none_or(|made| made.is_broken));
        let link = self.link(at, peer);
        link.ready = Some((now, epoch));
        let mine = link.queue_pair.as_ref().expect("a ready pair has a queue pair");
        assert_eq!(mine.epoch, epoch);
        if let (Some((_, ready)), Some((made, address, remote))) = (their_epoch, other)
            && !is_broken
        {
            assert!(ready == epoch && made == epoch, "{at} and {peer}: epochs {epoch}, {ready}, {made}");
            assert_eq!((mine.remote, Some(mine.address)), (Some(address), remote), "{at} and {peer}");
        }
        let seen = link.replay.seen();
        self.transmit(at, peer, Body::Seen(seen));
        self.event(at, peer, PairEvent::Used);
    }

    /// Something is posted on a ready pair.
    fn transmit(&mut self, at: usize, peer: usize, body: Body) {
        let arrives = self.now + self.delay();
        let now = self.now;
        let link = self.link(at, peer);
        let made = link.queue_pair.as_mut().unwrap();
        link.under_way += 1;
        if let (Some(target), false) = (made.remote, made.is_broken) {
            made.latest = made.latest.max(arrives);
            let (delay, epoch, source) = (made.latest - now, made.epoch, made.address);
            self.after(delay, What::Message { from: at, to: peer, epoch, source, target, body });
        }
    }

    /// Posts what waits, if it may, and asks for a connection else.
    fn post(&mut self, at: usize, peer: usize) {
        let link = self.link(at, peer);
        if link.waiting.is_empty() && (link.ready.is_some() || link.replay.is_done()) {
            return;
        }
        if link.ready.is_none() || link.holds {
            return self.event(at, peer, PairEvent::Wanted);
        }
        while self.link(at, peer).replay.may_post(ItemKind::Frame)
            && let Some(id) = self.link(at, peer).waiting.pop_front()
        {
            let number = self.link(at, peer).replay.posts(ItemKind::Frame, id);
            self.transmit(at, peer, Body::Frame { number, id });
            self.event(at, peer, PairEvent::Used);
        }
    }

    fn arrive(&mut self, from: usize, to: usize, epoch: u32, source: PairAddress, target: PairAddress, body: Body) {
        let link = self.link(to, from);
        let here = link.queue_pair.as_ref().filter(|made| (made.address, made.remote) == (target, Some(source)));
        let Some(here) = here.filter(|made| !made.is_broken) else {
            // Nobody acknowledges it.
            return self.after(2000, What::Break { at: from, peer: to, epoch: Some(epoch) });
        };
        let here = here.epoch;
        assert_eq!(here, epoch, "data of another epoch");
        let frame = if let Body::Frame { id, .. } = body { Some(id) } else { None };
        let delay = self.delay();
        self.after(delay, What::Completion { at: from, peer: to, epoch, frame });
        self.event(to, from, PairEvent::Data { epoch: here });
        let link = self.link(to, from);
        match body {
            // Its own end is over already.
            Body::Seen(_) | Body::Handled(_) if link.ready.is_none() => {}
            Body::Seen(number) => {
                for (fate, number) in link.replay.reopens(number, |_| {}).expect("a number that can be") {
                    let ItemFate::Again(id) = fate else { continue };
                    if !self.link(to, from).holds {
                        self.transmit(to, from, Body::Frame { number, id });
                        self.event(to, from, PairEvent::Used);
                    }
                }
                if self.link(to, from).holds {
                    self.link(to, from).replay.is_over();
                }
                self.post(to, from);
            }
            Body::Frame { number, id } => {
                assert_eq!(link.replay.arrived(number), FrameArrival::Next, "{from} to {to}");
                assert_eq!(id, link.handled, "{from} to {to}: a frame out of order");
                link.handled += 1;
                let may_answer = link.ready.is_some() && !link.holds;
                self.missing -= 1;
                if may_answer {
                    self.transmit(to, from, Body::Handled(number));
                    self.event(to, from, PairEvent::Used);
                }
            }
            Body::Handled(number) => link.replay.acknowledged(number, |_| {}).expect("a number that can be"),
        }
    }

    fn complete(&mut self, at: usize, peer: usize, epoch: u32, frame: Option<u64>) {
        let link = self.link(at, peer);
        let is_ready = link.ready.is_some_and(|(_, ready)| ready == epoch);
        if is_ready && link.queue_pair.as_ref().is_some_and(|made| !made.is_broken) {
            frame.into_iter().for_each(|id| link.replay.completed(id, |_| {}));
            link.under_way -= 1;
            if link.under_way == 0 {
                self.event(at, peer, PairEvent::Acknowledged);
            }
        }
    }

    fn break_now(&mut self, at: usize, peer: usize, epoch: Option<u32>) {
        if let Some(made) = &mut self.link(at, peer).queue_pair
            && epoch.is_none_or(|epoch| epoch == made.epoch)
            && !std::mem::replace(&mut made.is_broken, true)
        {
            let epoch = made.epoch;
            self.event(at, peer, PairEvent::Broken { epoch });
            self.post(at, peer);
        }
    }
}
