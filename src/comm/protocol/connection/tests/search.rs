//! All states of one pair, breadth first: both ends, their queue pairs, and the datagrams under way.
//!
//! A datagram may come at any time, twice or never; the number under way is bounded. Only a timeout lets deadlines pass, and it lets all
//! pass. Either end may give its queue pair back whenever the budget could want it. Errors, failing steps and evictions happen in the first
//! epochs only, so that the search ends.
//!
//! In each state both ends agree if both are ready, and some way leads to a connection. For each end that wants one, some way does so
//! without loss, error or another wish.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use super::super::{
    Action, ConnectionSettings, Connections, PairAddress, PairEvent, PairStep, SetupWay,
    datagram::{NEVER, PairDatagram, PairStage},
    pair::PairEnd,
};
use super::{is_long, world::TOKEN};

#[derive(Clone)]
struct State {
    ends: [Connections; 2],
    under_way: BTreeSet<PairDatagram>,
    most: usize,
    now: Duration,
}

/// A change that may happen. `true` if it helps: no loss, no error, no new wish.
type Change = (bool, Box<dyn FnOnce(&mut State)>);

impl State {
    fn new(way: SetupWay, most: usize) -> Self {
        let end = |endpoint| ConnectionSettings { endpoint, endpoints: 2, token: TOKEN, way, budget: 1 };
        State { ends: [0, 1].map(|at| Connections::new(end(at))), under_way: BTreeSet::new(), most, now: Duration::ZERO }
    }

    fn event(&mut self, at: usize, peer: usize, event: PairEvent) {
        let actions = self.ends[at].on_event(self.now, peer, event);
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            if let Action::Send { bytes, .. } = action {
                let datagram = PairDatagram::decode(&bytes, TOKEN).unwrap();
                // Numbers serve the timers only.
                let datagram = PairDatagram { number: 1, answers: 0, ..datagram };
                if self.under_way.len() < self.most {
                    self.under_way.insert(datagram);
                }
            }
        }
    }

    fn step_ends(&mut self, at: usize, peer: usize, epoch: u32) {
        let step = self.ends[at].pairs[&peer].held.as_ref().and_then(|held| held.step);
        let address = PairAddress { queue_pair: at as u32, sequence: epoch };
        match step {
            Some(PairStep::Prepare) => self.event(at, peer, PairEvent::Prepared { epoch, address }),
            Some(PairStep::Connect) => self.event(at, peer, PairEvent::Connected { epoch }),
            Some(PairStep::Release) => self.event(at, peer, PairEvent::Released { epoch }),
            None => {}
        }
    }

    fn deliver(&mut self, datagram: &PairDatagram) {
        let to = datagram.to as usize;
        let actions = self.ends[to].on_datagram(self.now, &datagram.encode(TOKEN));
        self.act(actions);
    }

    /// Datagrams that will do the same become equal: all of an earlier epoch, and those that say nothing new.
    fn merge(&mut self) {
        let merged = std::mem::take(&mut self.under_way).into_iter().map(|datagram| {
            let fresh =
                PairDatagram { stage: PairStage::Idle, address: PairAddress::default(), wish: NEVER, asks: false, ..datagram };
            match self.ends[datagram.to as usize].pairs.get(&(datagram.from as usize)) {
                Some(pair) if datagram.epoch < pair.epoch => PairDatagram { epoch: 0, ..fresh },
                Some(pair) if datagram.epoch == pair.epoch && !datagram.asks => {
                    let is_known = datagram.stage <= pair.theirs && pair.heard <= datagram.wish;
                    if is_known { fresh } else { datagram }
                }
                _ => datagram,
            }
        });
        self.under_way = merged.collect();
    }

    fn epoch(&self, at: usize) -> u32 {
        self.ends[at].pairs.get(&(1 - at)).map_or(0, |pair| pair.epoch)
    }

    fn is_connected(&self) -> bool {
        self.ends[0].is_ready(1) && self.ends[1].is_ready(0)
    }

    fn is_wanted(&self, at: usize) -> bool {
        self.ends[at].pairs.get(&(1 - at)).is_some_and(|pair| pair.wish != NEVER)
    }

    fn changes(&self, errors_before: u32) -> Vec<Change> {
        let mut changes: Vec<Change> = Vec::new();
        for datagram in self.under_way.clone() {
            changes.push((
                true,
                Box::new(move |state| {
                    state.under_way.remove(&datagram);
                    state.deliver(&datagram);
                }),
            ));
            changes.push((
                false,
                Box::new(move |state| {
                    state.under_way.remove(&datagram);
                }),
            ));
            changes.push((false, Box::new(move |state| state.deliver(&datagram))));
        }
        let is_early = self.epoch(0) < errors_before && self.epoch(1) < errors_before;
        for at in 0..2 {
            let peer = 1 - at;
            changes.push((false, Box::new(move |state| state.event(at, peer, PairEvent::Wanted))));
            if self.ends[at].next_timeout().is_some() {
                changes.push((
                    true,
                    Box::new(move |state| {
                        state.now += Duration::from_secs(10);
                        let actions = state.ends[at].on_timeout(state.now);
                        state.act(actions);
                    }),
                ));
            }
            let Some(pair) = self.ends[at].pairs.get(&peer) else { continue };
            if let Some(held) = &pair.held
                && held.step.is_some()
            {
                let epoch = held.epoch;
                changes.push((true, Box::new(move |state| state.step_ends(at, peer, epoch))));
                if is_early {
                    changes.push((false, Box::new(move |state| state.event(at, peer, PairEvent::Failed { epoch }))));
                }
            }
            let epoch = pair.epoch;
            if pair.mine >= PairStage::Initialized && is_early {
                changes.push((false, Box::new(move |state| state.event(at, peer, PairEvent::Broken { epoch }))));
            }
            if pair.may_post() && !pair.busy {
                changes.push((false, Box::new(move |state| state.event(at, peer, PairEvent::Used))));
            }
            if pair.busy {
                changes.push((true, Box::new(move |state| state.event(at, peer, PairEvent::Acknowledged))));
            }
            let may_be_closed = pair.may_leave(self.now) || pair.held.is_some() && pair.since.is_none() && pair.is_alone();
            if may_be_closed && !pair.gives_back() && is_early {
                changes.push((
                    false,
                    Box::new(move |state| {
                        let mut actions = Vec::new();
                        state.ends[at].change(state.now, peer, &mut actions, PairEnd::make_room);
                        state.ends[at].share(state.now, &mut actions);
                        state.act(actions);
                    }),
                ));
            }
            // The peer may post as soon as it is ready.
            if self.ends[peer].pairs.get(&at).is_some_and(|other| other.may_post() && other.epoch == epoch) {
                changes.push((false, Box::new(move |state| state.event(at, peer, PairEvent::Data { epoch }))));
            }
        }
        changes
    }

    /// All that decides about what follows.
    fn key(&self) -> u128 {
        let end = |at: usize| {
            let pair = self.ends[at].pairs.get(&(1 - at))?;
            let held = pair.held.as_ref().map(|held| (held.epoch == pair.epoch, held.step));
            let wishes = (pair.wish != NEVER, pair.heard != NEVER);
            let times = (pair.since.is_some(), pair.may_leave(self.now), pair.claims(self.now), pair.leaving, pair.busy);
            Some((pair.epoch, pair.mine, pair.theirs, pair.remote.is_some(), held, wishes, times))
        };
        let ends = [end(0), end(1)];
        let (mut low, mut high) = (DefaultHasher::new(), DefaultHasher::new());
        high.write_u8(1);
        for hasher in [&mut low, &mut high] {
            ends.hash(hasher);
            for &PairDatagram { from, epoch, stage, wish, asks, .. } in &self.under_way {
                (from, epoch, stage, wish != NEVER, asks).hash(hasher);
            }
        }
        u128::from(low.finish()) << 64 | u128::from(high.finish())
    }

    fn check(&self) {
        for (at, end) in self.ends.iter().enumerate() {
            assert!(end.holding.len() <= 1, "{at} holds {:?}", end.holding);
        }
        let [Some(a), Some(b)] = [0, 1].map(|at| self.ends[at].pairs.get(&(1 - at))) else { return };
        if a.since.is_some() && b.since.is_some() {
            let address = |pair: &PairEnd| pair.held.as_ref().map(|held| held.address);
            assert_eq!((a.epoch, a.remote, address(a)), (b.epoch, address(b), b.remote));
        }
    }
}

/// Marks all from which a marked one is reached.
fn spread(marked: &mut [bool], edges: &[(u32, u32, bool)], which: impl Fn(bool) -> bool) {
    let mut from: Vec<Vec<u32>> = vec![Vec::new(); marked.len()];
    for &(before, after, _) in edges.iter().filter(|edge| which(edge.2)) {
        from[after as usize].push(before);
    }
    let mut open: Vec<usize> = (0..marked.len()).filter(|&state| marked[state]).collect();
    while let Some(state) = open.pop() {
        for &before in &from[state] {
            if !std::mem::replace(&mut marked[before as usize], true) {
                open.push(before as usize);
            }
        }
    }
}

/// The number of states.
fn search(way: SetupWay, most: usize, errors_before: u32) -> usize {
    let start = State::new(way, most);
    let mut numbers = HashMap::from([(start.key(), 0_u32)]);
    // Of each state: both ends are ready, an end is ready, an end wants to be.
    let (mut connected, mut ready, mut wanted) = (vec![false], [vec![false], vec![false]], [vec![false], vec![false]]);
    let mut edges = Vec::new();
    let mut level = vec![(0_u32, start)];
    while !level.is_empty() {
        for (before, state) in std::mem::take(&mut level) {
            for (helps, change) in state.changes(errors_before) {
                let mut next = state.clone();
                change(&mut next);
                next.merge();
                let count = u32::try_from(numbers.len()).unwrap();
                let after = *numbers.entry(next.key()).or_insert(count);
                edges.push((before, after, helps));
                if after == count {
                    next.check();
                    connected.push(next.is_connected());
                    for at in 0..2 {
                        ready[at].push(next.ends[at].is_ready(1 - at));
                        wanted[at].push(next.is_wanted(at));
                    }
                    level.push((after, next));
                }
            }
        }
    }
    let mut reach = connected.clone();
    spread(&mut reach, &edges, |_| true);
    assert!(reach.iter().all(|&reach| reach), "a state from which the pair is never connected");
    // An end that waits needs no new wish, no error and no loss.
    for (mut reach, wanted) in ready.into_iter().zip(wanted) {
        spread(&mut reach, &edges, |helps| helps);
        let stuck = wanted.iter().zip(reach).filter(|&(&wanted, reach)| wanted && !reach).count();
        assert_eq!(stuck, 0, "states in which the pair is wanted and stuck");
    }
    eprintln!(
        "{way:?}, at most {most} datagrams, errors before epoch {errors_before}: {} states, {} of them connected, {} changes",
        reach.len(),
        connected.iter().filter(|&&is| is).count(),
        edges.len()
    );
    reach.len()
}

/// With at most `most` datagrams under way, and errors before this epoch.
fn search_both(most: usize, errors_before: u32, at_least: usize) {
    for way in [SetupWay::Overlapped, SetupWay::Serial] {
        let states = search(way, most, errors_before);
        assert!(states > at_least, "{states}");
    }
}

#[test]
fn every_state_of_a_pair_with_errors_leads_to_a_connection() {
    search_both(1, 1, 6000);
    if is_long() {
        search_both(4, 1, 200_000);
        search_both(2, 2, 100_000);
    }
}

#[test]
fn every_state_of_a_pair_without_errors_leads_to_a_connection() {
    search_both(if is_long() { 4 } else { 2 }, 0, 2000);
}
