//! Connections on demand: the reliable queue pairs of one endpoint, which are made when they are needed and given back.
//!
//! A *pair* is two endpoints with at most one connection, which serves both directions. Each end holds at most one queue pair for it. The
//! driver carries out *steps* and says how they ended. Datagrams, which may be lost, doubled or late, tell each end where the other stands.
//! Each connection is an *epoch* of its pair. An epoch that is over at one end is over for good: the other end follows when it hears of the
//! next one.
//!
//! # The stages of an epoch
//!
//! Either end may begin, or both: there is no tie to break.
//!
//! ```text
//!             it wants a connection, or the peer does,                         the peer's address is
//!             and the budget has room: step Prepare           Prepare is done  known: step Connect
//!  .------.                                        .--------.                .-------------.
//!  | Idle | -------------------------------------> | Asking | -------------> | Initialized | --------------.
//!  '------'   queue pair: create, or one in RESET  '--------'  it is in INIT '-------------'               |
//!     ^                                                                                    Connect is done:|
//!     | next epoch; step Release: the queue pair goes to RESET                                  RTR -> RTS |
//!     |                                                                                                    v
//!     |  both are Closing  .---------.  residence is past, and this end makes room or the  .-----------------.
//!     +<------------------ | Closing | <-------------------------------------------------- |    Connected    |
//!     |                    '---------'  peer is Closing: hold, until all is acknowledged   | ready when the  |
//!     |                                                                                    | peer is as well |
//!     |  from any stage: a step failed, the queue pair broke, the peer is in a             '-----------------'
//!     '- later epoch, an older pair needs the queue pair (only while the peer holds none)
//! ```
//!
//! A datagram says epoch, stage, address. An end keeps the highest stage that it heard of in its epoch, so order and doubles do not matter.
//! A datagram of an earlier epoch changes nothing. Data on the connection count as Connected.
//!
//! | sent | when | again until |
//! |---|---|---|
//! | Idle | an epoch is over at this end | never: a peer that still stands in it asks, or meets the error of its queue pair |
//! | Asking | Prepare begins, in the overlapped way, and the peer has not begun | the peer is Asking |
//! | Initialized | Prepare is done | the peer is Initialized |
//! | Connected | Connect is done | the peer is Connected |
//! | Closing | all that was posted is acknowledged | the peer is Closing, or in the next epoch |
//! | its stage | the peer repeats its stage and is not ahead, or is in an earlier epoch | |
//!
//! In the *overlapped* way Asking makes the peer begin at once (ARMCI-ODCM Fig. 4), in the *serial* way Initialized does (Fig. 3). In the
//! static way the driver wants all connections at the start. Operations before `Ready` and after `Hold` wait in their order (MVICH §3.4).
//!
//! # The budget
//!
//! An endpoint never holds more queue pairs than its budget. Wishes that lack one wait in one queue, this end's own and those of peers. A
//! wish has a time of the job's logical clock (Lamport), which its datagrams carry and which orders the queue. A peer keeps
//! asking; nothing is refused.
//!
//! When the budget is full, the endpoint closes the least recently used pair that has passed its residence, an idle one first. If there is
//! none, only pairs count whose peer holds no queue pair for them yet, as far as is known. The youngest of them, if younger than the wish
//! that waits, gives its own back and queues again with its old wish. So endpoints cannot wait for each other forever: the oldest wish of
//! the job is first in the queues of both its endpoints, takes the queue pairs of all that merely wait, and waits only for steps,
//! datagrams, acknowledgements and a residence. Then another wish is the oldest. Residence bounds how often pairs change.
//!
//! # What the driver owes
//!
//! * A released queue pair is in RESET, what it completed was handled, and nothing of it comes any more.
//! * An address names one queue pair with one sequence number in one epoch, and each preparation draws a new sequence number.
//! * `Acknowledged` only when nothing posted is open, also not a read.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub(in crate::comm) use datagram::{LENGTH, PairAddress};
use datagram::{NEVER, PairDatagram};
use pair::{Claim, PairEnd, RESIDENCE, Turn};
use timer::Estimate;

mod datagram;
mod pair;
#[cfg(test)]
mod tests;
mod timer;

/// Says whether the peer begins when this end begins, or when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum SetupWay {
    Overlapped,
    Serial,
}

/// What the driver does with a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::comm) enum PairStep {
    /// Create it, or take one in RESET; to INIT.
    Prepare,
    /// To RTR and RTS.
    Connect,
    /// To RESET.
    Release,
}

/// What happened at the driver. Events of steps and of queue pairs name the epoch of the queue pair.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) enum PairEvent {
    /// There is something to post, and the pair is not ready.
    Wanted,
    Prepared {
        epoch: u32,
        address: PairAddress,
    },
    Connected {
        epoch: u32,
    },
    Released {
        epoch: u32,
    },
    /// The step under way failed. After Prepare and Release there is no queue pair any more.
    Failed {
        epoch: u32,
    },
    /// The queue pair is in ERROR.
    Broken {
        epoch: u32,
    },
    /// Something came on the queue pair.
    Data {
        epoch: u32,
    },
    /// Something was posted; at least when nothing was under way before.
    Used,
    /// All that was posted is acknowledged.
    Acknowledged,
}

/// What the driver has to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Action {
    /// A datagram for a peer.
    Send {
        peer: usize,
        bytes: [u8; LENGTH],
    },
    /// The steps, each answered by its event or by `Failed`.
    Prepare {
        peer: usize,
        epoch: u32,
    },
    Connect {
        peer: usize,
        epoch: u32,
        remote: PairAddress,
    },
    Release {
        peer: usize,
        epoch: u32,
    },
    /// The pair may be posted to.
    Ready {
        peer: usize,
        epoch: u32,
    },
    /// Nothing more may be posted. `Acknowledged` is awaited if something is under way.
    Hold {
        peer: usize,
        epoch: u32,
    },
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::comm) struct Statistics {
    /// Connections that became ready, and those of them that replaced an earlier one.
    pub(in crate::comm) opened: u64,
    pub(in crate::comm) reopened: u64,
    pub(in crate::comm) closed: u64,
    pub(in crate::comm) resends: u64,
    /// Datagrams that are none of this job, or not for this endpoint.
    pub(in crate::comm) refused: u64,
}

/// What an endpoint is.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) struct ConnectionSettings {
    pub(in crate::comm) endpoint: usize,
    pub(in crate::comm) endpoints: usize,
    /// The job's secret.
    pub(in crate::comm) token: u128,
    pub(in crate::comm) way: SetupWay,
    /// Queue pairs that may be held, at least one.
    pub(in crate::comm) budget: usize,
}

/// The connections of an endpoint.
#[derive(Clone, Debug)]
pub(in crate::comm) struct Connections {
    settings: ConnectionSettings,
    /// The peers that were met.
    pairs: BTreeMap<usize, PairEnd>,
    /// Pairs that lack a queue pair, pairs that have one, and the time to look at each.
    claims: BTreeSet<Claim>,
    holding: BTreeSet<usize>,
    deadlines: BTreeSet<(Duration, usize)>,
    /// The latest wish that was made or heard of.
    clock: u64,
    estimate: Estimate,
    statistics: Statistics,
}

impl Connections {
    pub(in crate::comm) fn new(settings: ConnectionSettings) -> Self {
        Connections {
            settings: ConnectionSettings { budget: settings.budget.max(1), ..settings },
            pairs: BTreeMap::new(),
            claims: BTreeSet::new(),
            holding: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            clock: 0,
            estimate: Estimate::default(),
            statistics: Statistics::default(),
        }
    }

    /// Something happened with a peer.
    #[must_use]
    pub(in crate::comm) fn on_event(&mut self, now: Duration, peer: usize, event: PairEvent) -> Vec<Action> {
        let mut actions = Vec::new();
        self.change(now, peer, &mut actions, |pair, turn| pair.on_event(turn, event));
        self.share(now, &mut actions);
        actions
    }

    /// A datagram has come, from any sender.
    #[must_use]
    pub(in crate::comm) fn on_datagram(&mut self, now: Duration, bytes: &[u8]) -> Vec<Action> {
        let mut actions = Vec::new();
        let ConnectionSettings { endpoint, endpoints, token, .. } = self.settings;
        let is_for_us = |datagram: &PairDatagram| datagram.to as usize == endpoint && datagram.from as usize != endpoint;
        let datagram = PairDatagram::decode(bytes, token).filter(is_for_us).filter(|sent| (sent.from as usize) < endpoints);
        let Some(datagram) = datagram else {
            self.statistics.refused += 1;
            return actions;
        };
        let peer = datagram.from as usize;
        if datagram.wish != NEVER {
            self.clock = self.clock.max(datagram.wish);
        }
        self.change(now, peer, &mut actions, |pair, turn| pair.on_datagram(turn, &datagram));
        self.share(now, &mut actions);
        // An answer after a time in the queue says nothing of the round trip.
        self.pairs.entry(peer).and_modify(|pair| pair.asked *= u32::from(pair.held.is_some()));
        actions
    }

    /// The time of [`Connections::next_timeout`] has come.
    #[must_use]
    pub(in crate::comm) fn on_timeout(&mut self, now: Duration) -> Vec<Action> {
        let mut actions = Vec::new();
        let due: Vec<usize> = self.deadlines.iter().take_while(|(at, _)| *at <= now).map(|&(_, peer)| peer).collect();
        for peer in due {
            self.change(now, peer, &mut actions, PairEnd::on_timeout);
        }
        self.share(now, &mut actions);
        actions
    }

    /// The time to call [`Connections::on_timeout`].
    pub(in crate::comm) fn next_timeout(&self) -> Option<Duration> {
        let is_short = self.claims.len() > self.given_back();
        let residents = || self.holding.iter().filter_map(|peer| self.pairs.get(peer)).filter(|pair| pair.may_post());
        let leave = if is_short { residents().filter_map(|pair| pair.since).min().map(|since| since + RESIDENCE) } else { None };
        self.deadlines.first().map(|&(at, _)| at).into_iter().chain(leave).min()
    }

    /// Returns true if this peer may be posted to.
    pub(in crate::comm) fn is_ready(&self, peer: usize) -> bool {
        self.pairs.get(&peer).is_some_and(PairEnd::may_post)
    }

    /// Returns true if a datagram of this peer has come since it was last asked again.
    pub(in crate::comm) fn has_answered(&self, peer: usize) -> bool {
        self.pairs.get(&peer).is_some_and(|pair| pair.has_answered)
    }

    pub(in crate::comm) fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Changes a pair, and does what follows from it.
    fn change(&mut self, now: Duration, peer: usize, actions: &mut Vec<Action>, act: impl FnOnce(&mut PairEnd, &mut Turn<'_>)) {
        let endpoint = self.settings.endpoint;
        let pair = self.pairs.entry(peer).or_default();
        let (estimate, statistics) = (&mut self.estimate, &mut self.statistics);
        let before = actions.len();
        let mut turn = Turn { now, peer, wish: self.clock.saturating_add(1), estimate, statistics, actions };
        act(pair, &mut turn);
        pair.advance(&mut turn);
        if let Some(datagram) = pair.take_datagram(&turn, endpoint) {
            // Before the steps, so that the peer does its own meanwhile.
            actions.insert(before, Action::Send { peer, bytes: datagram.encode(self.settings.token) });
        }
        if pair.wish != NEVER {
            self.clock = self.clock.max(pair.wish);
        }
        let claim = (pair.oldest_wish(), peer.min(endpoint), peer.max(endpoint));
        let (old_claim, claim) = (pair.claim, pair.claims(now).then_some(claim));
        let (old_deadline, deadline) = (pair.deadline, pair.next_timeout(now));
        (pair.claim, pair.deadline) = (claim, deadline);
        if old_claim != claim {
            if let Some(old) = old_claim {
                self.claims.remove(&old);
            }
            self.claims.extend(claim);
        }
        if old_deadline != deadline {
            if let Some(at) = old_deadline {
                self.deadlines.remove(&(at, peer));
            }
            self.deadlines.extend(deadline.map(|at| (at, peer)));
        }
        if pair.held.is_some() {
            self.holding.insert(peer);
        } else {
            self.holding.remove(&peer);
        }
    }

    /// Gives out what the budget has, and makes room for the wishes that wait.
    fn share(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let ConnectionSettings { endpoint, way, budget, .. } = self.settings;
        while self.holding.len() < budget
            && let Some(&(_, low, high)) = self.claims.first()
        {
            self.change(now, if low == endpoint { high } else { low }, actions, |pair, turn| pair.begin(turn, way));
        }
        let waiting: Vec<Claim> = self.claims.iter().skip(self.given_back()).copied().collect();
        for claim in waiting {
            let Some(victim) = self.victim(now, claim) else { return };
            self.change(now, victim, actions, PairEnd::make_room);
        }
    }

    /// The number of queue pairs that will be free.
    fn given_back(&self) -> usize {
        if self.claims.is_empty() { 0 } else { self.holders().filter(|(_, pair)| pair.gives_back()).count() }
    }

    fn holders(&self) -> impl Iterator<Item = (usize, &PairEnd)> {
        self.holding.iter().filter_map(|&peer| Some((peer, self.pairs.get(&peer)?)))
    }

    /// The peer whose queue pair a claim gets.
    fn victim(&self, now: Duration, claim: Claim) -> Option<usize> {
        let resident = self.holders().filter(|(_, pair)| pair.may_leave(now));
        let resident = resident.min_by_key(|&(peer, pair)| (pair.busy, pair.used, peer)).map(|(peer, _)| peer);
        let endpoint = self.settings.endpoint;
        let place = |peer: usize, pair: &PairEnd| (pair.oldest_wish(), peer.min(endpoint), peer.max(endpoint));
        let alone = self.holders().filter(|(_, pair)| !pair.gives_back() && pair.since.is_none() && pair.is_alone());
        let youngest = alone.map(|(peer, pair)| (place(peer, pair), peer)).max().filter(|&(place, _)| place > claim);
        resident.or(youngest.map(|(_, peer)| peer))
    }
}
