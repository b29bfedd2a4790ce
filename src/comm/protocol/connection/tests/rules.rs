//! Single rules, with steps and datagrams that take no time.

use std::{collections::VecDeque, time::Duration};

use super::super::{
    Action, ConnectionSettings, Connections, LENGTH, PairAddress, PairEvent, SetupWay, Statistics,
    datagram::{NEVER, PairDatagram, PairStage},
    pair::RESIDENCE,
};
use super::world::TOKEN;
use crate::comm::protocol::simulation::Random;

struct Net {
    ends: Vec<Connections>,
    now: Duration,
    /// What came out of each event, but datagrams.
    log: Vec<(usize, Action)>,
    /// While this is set, datagrams are lost.
    cut: bool,
    sent: Vec<(Duration, PairDatagram)>,
}

impl Net {
    fn new(endpoints: usize, budget: usize) -> Self {
        let end = |endpoint| {
            Connections::new(ConnectionSettings { endpoint, endpoints, token: TOKEN, way: SetupWay::Overlapped, budget })
        };
        Net { ends: (0..endpoints).map(end).collect(), now: Duration::ZERO, log: Vec::new(), cut: false, sent: Vec::new() }
    }

    fn event(&mut self, at: usize, peer: usize, event: PairEvent) {
        let actions = self.ends[at].on_event(self.now, peer, event);
        self.act(at, actions);
    }

    fn inject(&mut self, to: usize, bytes: &[u8]) {
        let actions = self.ends[to].on_datagram(self.now, bytes);
        self.act(to, actions);
    }

    fn act(&mut self, at: usize, actions: Vec<Action>) {
        let mut open: VecDeque<(usize, Action)> = actions.into_iter().map(|action| (at, action)).collect();
        while let Some((at, action)) = open.pop_front() {
            let now = self.now;
            let (of, more) = match action {
                Action::Send { peer, bytes } => {
                    self.sent.push((now, PairDatagram::decode(&bytes, TOKEN).unwrap()));
                    if self.cut {
                        continue;
                    }
                    (peer, self.ends[peer].on_datagram(now, &bytes))
                }
                Action::Prepare { peer, epoch } => {
                    let address = PairAddress { queue_pair: at as u32, sequence: epoch };
                    (at, self.ends[at].on_event(now, peer, PairEvent::Prepared { epoch, address }))
                }
                Action::Connect { peer, epoch, .. } => (at, self.ends[at].on_event(now, peer, PairEvent::Connected { epoch })),
                Action::Release { peer, epoch } => (at, self.ends[at].on_event(now, peer, PairEvent::Released { epoch })),
                Action::Ready { .. } | Action::Hold { .. } => (at, Vec::new()),
            };
            if !matches!(action, Action::Send { .. }) {
                self.log.push((at, action));
            }
            open.extend(more.into_iter().map(|action| (of, action)));
        }
    }

    /// Time passes, and every deadline is met.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((next, at)) = (0..self.ends.len()).filter_map(|at| Some((self.ends[at].next_timeout()?, at))).min()
            && next <= end
        {
            self.now = self.now.max(next);
            let actions = self.ends[at].on_timeout(self.now);
            self.act(at, actions);
        }
        self.now = end;
    }

    fn live(&self, at: usize) -> Vec<usize> {
        (0..self.ends.len()).filter(|&peer| self.ends[at].is_ready(peer)).collect()
    }

    fn statistics(&self, at: usize) -> Statistics {
        self.ends[at].statistics()
    }
}

const MILLI: Duration = Duration::from_millis(1);

fn datagram(epoch: u32, stage: PairStage) -> PairDatagram {
    let address = PairAddress { queue_pair: 77, sequence: 88 };
    PairDatagram { from: 1, to: 0, epoch, stage, address, wish: NEVER, number: 9, answers: 0, asks: true }
}

#[test]
fn a_datagram_is_read_as_it_was_written() {
    let mut random = Random::new(3);
    let mut word = || random.below(1 << 32) as u32;
    for stage in [PairStage::Idle, PairStage::Asking, PairStage::Initialized, PairStage::Connected, PairStage::Closing] {
        let address = PairAddress { queue_pair: word(), sequence: word() };
        let wish = u64::from(word()) << 20 | u64::from(word());
        let asks = word() % 2 == 0;
        let one =
            PairDatagram { from: word(), to: word(), epoch: word(), stage, address, wish, number: word(), answers: word(), asks };
        assert_eq!(PairDatagram::decode(&one.encode(TOKEN), TOKEN), Some(one));
        assert_eq!(PairDatagram::decode(&one.encode(TOKEN), TOKEN ^ 1 << 127), None);
    }
}

#[test]
fn what_is_no_datagram_for_this_endpoint_is_refused_and_counted() {
    let mut net = Net::new(3, 2);
    let good = datagram(0, PairStage::Asking);
    let mut bad: Vec<Vec<u8>> = (0..LENGTH).map(|length| good.encode(TOKEN)[..length].to_vec()).collect();
    bad.push([&good.encode(TOKEN)[..], &[0]].concat());
    bad.extend((0..24).map(|at| {
        let mut bytes = good.encode(TOKEN);
        bytes[at] ^= 0x40;
        bytes.to_vec()
    }));
    let others = [
        PairDatagram { from: 0, ..good },
        PairDatagram { from: 3, ..good },
        PairDatagram { to: 2, ..good },
        PairDatagram { wish: NEVER - 1, ..good },
    ];
    bad.extend(others.iter().map(|other| other.encode(TOKEN).to_vec()));
    let mut random = Random::new(5);
    bad.extend((0..1000).map(|_| (0..random.below(100)).map(|_| random.below(256) as u8).collect()));
    for bytes in &bad {
        net.inject(0, bytes);
    }
    assert_eq!(net.statistics(0).refused, bad.len() as u64);
    assert!(net.ends[0].pairs.is_empty() && net.sent.is_empty() && net.log.is_empty());
    // The right token with any numbers is refused or handled, and never panics.
    for _ in 0..20_000 {
        let mut bytes = good.encode(TOKEN);
        for _ in 0..1 + random.below(6) {
            bytes[16 + random.below(LENGTH - 16)] = [0, 1, 255, random.below(256) as u8][random.below(4)];
        }
        net.inject(0, &bytes);
        assert!(net.ends[0].holding.len() <= 2 && net.ends[0].pairs.len() <= 2);
    }
}

#[test]
fn a_datagram_of_an_earlier_epoch_changes_nothing() {
    let mut net = Net::new(2, 1);
    net.event(0, 1, PairEvent::Wanted);
    net.event(0, 1, PairEvent::Broken { epoch: 0 });
    assert_eq!((net.live(0), net.live(1), net.ends[0].pairs[&1].epoch), (vec![1], vec![0], 1));
    let state = |net: &Net| {
        let pair = &net.ends[0].pairs[&1];
        (pair.epoch, pair.mine, pair.theirs, pair.remote, pair.wish, pair.heard, pair.since, net.ends[0].next_timeout())
    };
    let before = state(&net);
    for stage in [PairStage::Idle, PairStage::Asking, PairStage::Initialized, PairStage::Connected, PairStage::Closing] {
        net.cut = true;
        net.sent.clear();
        net.inject(0, &datagram(0, stage).encode(TOKEN));
        // Its sender hears where the pair is, if it is real.
        assert_eq!((state(&net), net.sent.len(), net.sent[0].1.epoch), (before, 1, 1));
    }
    for event in [
        PairEvent::Broken { epoch: 0 },
        PairEvent::Data { epoch: 0 },
        PairEvent::Failed { epoch: 0 },
        PairEvent::Connected { epoch: 0 },
        PairEvent::Released { epoch: 1 },
        PairEvent::Prepared { epoch: 1, address: PairAddress::default() },
    ] {
        net.event(0, 1, event);
        assert_eq!(state(&net), before, "{event:?}");
    }
    assert_eq!(net.statistics(0), Statistics { opened: 2, reopened: 1, closed: 1, resends: 0, refused: 0 });
}

#[test]
fn another_address_in_the_same_epoch_is_not_taken() {
    let mut net = Net::new(2, 1);
    net.event(0, 1, PairEvent::Wanted);
    let remote = net.ends[0].pairs[&1].remote;
    net.inject(0, &datagram(0, PairStage::Initialized).encode(TOKEN));
    assert_eq!((net.ends[0].pairs[&1].remote, net.live(0)), (remote, vec![1]));
    // Nor is an earlier stage: this end still knows that the peer is connected.
    net.inject(0, &datagram(0, PairStage::Asking).encode(TOKEN));
    assert_eq!((net.ends[0].pairs[&1].theirs, net.ends[0].next_timeout()), (PairStage::Connected, None));
}

#[test]
fn the_peer_hears_before_a_step_begins() {
    let mut net = Net::new(2, 1);
    let end = &mut net.ends[0];
    let actions = end.on_event(Duration::ZERO, 1, PairEvent::Wanted);
    assert!(matches!(actions[..], [Action::Send { peer: 1, .. }, Action::Prepare { peer: 1, epoch: 0 }]), "{actions:?}");
    let _ = end.on_datagram(Duration::ZERO, &datagram(0, PairStage::Initialized).encode(TOKEN));
    let actions = end.on_event(Duration::ZERO, 1, PairEvent::Prepared { epoch: 0, address: PairAddress::default() });
    let remote = PairAddress { queue_pair: 77, sequence: 88 };
    assert_eq!(actions[1..], [Action::Connect { peer: 1, epoch: 0, remote }]);
    assert!(matches!(actions[0], Action::Send { peer: 1, .. }));
}

#[test]
fn resends_double_up_to_a_second_and_never_end() {
    let mut net = Net::new(3, 2);
    net.cut = true;
    net.event(0, 1, PairEvent::Wanted);
    net.pass(Duration::from_secs(60));
    let asked: Vec<Duration> =
        net.sent.iter().filter(|(_, sent)| sent.stage == PairStage::Initialized).map(|&(at, _)| at).collect();
    let gaps: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..8], [16, 32, 64, 128, 256, 512, 1000, 1000].map(|millis| millis * MILLI));
    assert_eq!((gaps.len(), gaps[8..].iter().max()), (64, Some(&(1000 * MILLI))));
    assert!(net.sent[2..].iter().all(|(_, sent)| sent.asks) && !net.sent[1].1.asks);
    assert_eq!(net.statistics(0).resends, 64);
    net.cut = false;
    net.pass(Duration::from_secs(1));
    assert_eq!((net.live(0), net.live(1)), (vec![1], vec![0]));
    // What was sent again is not measured.
    assert_eq!(net.ends[0].estimate.patience(), 16 * MILLI);
    // What was not is: it came at once, so the next resend is after the shortest time.
    net.event(0, 2, PairEvent::Wanted);
    assert_eq!(net.ends[0].estimate.patience(), MILLI);
}

#[test]
fn data_tell_as_much_as_the_last_datagram() {
    let mut net = Net::new(2, 1);
    net.event(0, 1, PairEvent::Wanted);
    let mut late = net.ends[0].clone();
    // This end has heard no more than the address.
    let mut other = Net::new(2, 1);
    other.cut = true;
    other.event(0, 1, PairEvent::Data { epoch: 0 });
    assert!(other.live(0).is_empty());
    other.event(0, 1, PairEvent::Wanted);
    other.event(0, 1, PairEvent::Data { epoch: 0 });
    assert_eq!(other.ends[0].pairs[&1].theirs, PairStage::Idle, "no data before there is an address");
    other.inject(0, &datagram(0, PairStage::Initialized).encode(TOKEN));
    other.event(0, 1, PairEvent::Data { epoch: 1 });
    assert!(other.live(0).is_empty() && other.ends[0].next_timeout().is_some());
    other.event(0, 1, PairEvent::Data { epoch: 0 });
    assert_eq!((other.live(0), other.ends[0].next_timeout()), (vec![1], None));
    assert!(late.on_event(Duration::ZERO, 1, PairEvent::Data { epoch: 0 }).is_empty());
}

#[test]
fn the_least_recently_used_idle_pair_goes_after_its_residence() {
    let mut net = Net::new(6, 3);
    for peer in [1, 2, 3] {
        net.event(0, peer, PairEvent::Wanted);
        net.pass(MILLI);
    }
    // The oldest is in use, the second was used last.
    net.event(0, 1, PairEvent::Used);
    net.pass(MILLI);
    net.event(0, 2, PairEvent::Used);
    net.event(0, 2, PairEvent::Acknowledged);
    net.event(0, 4, PairEvent::Wanted);
    assert_eq!(net.live(0), [1, 2, 3], "nothing is past its residence");
    net.pass(RESIDENCE - 5 * MILLI);
    assert_eq!((net.live(0), net.now), (vec![1, 2, 3], RESIDENCE - MILLI));
    // The residence of 1 is over first: it is held, and goes when it is acknowledged.
    net.pass(MILLI);
    assert_eq!((net.live(0), net.live(4)), (vec![2, 3], vec![]));
    assert!(net.log.contains(&(0, Action::Hold { peer: 1, epoch: 0 })));
    net.event(0, 1, PairEvent::Acknowledged);
    assert_eq!((net.live(0), net.live(1), net.live(4)), (vec![2, 3, 4], vec![], vec![0]));
    // Now 2 and 3 are both past it, and 3 was used before 2.
    net.pass(RESIDENCE / 2);
    net.event(0, 5, PairEvent::Wanted);
    assert_eq!(net.live(0), [2, 4, 5]);
    // A busy one stays if there is an idle one.
    net.pass(2 * RESIDENCE);
    for busy in [2, 4] {
        net.event(0, busy, PairEvent::Used);
    }
    net.event(0, 5, PairEvent::Used);
    net.event(0, 5, PairEvent::Acknowledged);
    net.event(0, 1, PairEvent::Wanted);
    assert_eq!(net.live(0), [1, 2, 4]);
    let Statistics { opened, reopened, closed, .. } = net.statistics(0);
    assert_eq!((opened, reopened, closed), (6, 1, 3));
}

#[test]
fn both_sides_must_have_drained() {
    let mut net = Net::new(3, 1);
    net.event(0, 1, PairEvent::Wanted);
    net.event(1, 0, PairEvent::Used);
    net.pass(RESIDENCE);
    net.event(0, 2, PairEvent::Wanted);
    assert_eq!((net.live(0), net.live(1), net.live(2)), (vec![], vec![], vec![]));
    assert!(net.log.contains(&(1, Action::Hold { peer: 0, epoch: 0 })));
    assert!(!net.log.iter().any(|(_, action)| matches!(action, Action::Release { .. })), "the peer still has work under way");
    net.ends[1].clock = 5;
    net.event(1, 0, PairEvent::Wanted);
    net.event(1, 0, PairEvent::Acknowledged);
    assert_eq!((net.live(0), net.live(2)), (vec![2], vec![0]));
    // What came after the hold waits for the next connection.
    net.pass(2 * RESIDENCE);
    assert_eq!((net.live(0), net.live(1), net.live(2)), (vec![1], vec![0], vec![]));
}

#[test]
fn askers_are_served_in_the_order_of_their_wishes() {
    let mut net = Net::new(6, 1);
    for asker in [3, 1, 5, 2, 4] {
        // Each hears of the wish before, so that they are ordered.
        let clock = net.ends.iter().map(|end| end.clock).max().unwrap();
        net.ends[asker].clock = clock;
        net.event(asker, 0, PairEvent::Wanted);
        net.pass(MILLI);
    }
    net.pass(Duration::from_secs(3));
    let served = net.log.iter().filter(|(at, action)| *at == 0 && matches!(action, Action::Ready { .. }));
    let served: Vec<Action> = served.map(|(_, action)| *action).collect();
    assert_eq!(served, [3, 1, 5, 2, 4].map(|peer| Action::Ready { peer, epoch: 0 }));
}

#[test]
fn endpoints_in_a_circle_do_not_wait_for_each_other_for_ever() {
    for endpoints in 3..8 {
        let mut net = Net::new(endpoints, 1);
        net.cut = true;
        for at in 0..endpoints {
            net.event(at, (at + 1) % endpoints, PairEvent::Wanted);
        }
        assert!(net.ends.iter().all(|end| end.holding.len() == 1 && end.claims.is_empty()));
        net.cut = false;
        net.pass(Duration::from_secs(20));
        let opened: Vec<u64> = (0..endpoints).map(|at| net.statistics(at).opened).collect();
        assert!(opened.iter().all(|&opened| opened == 2), "{opened:?}");
    }
}

#[test]
fn a_step_that_fails_is_tried_again_after_a_pause_that_doubles() {
    let mut end =
        Connections::new(ConnectionSettings { endpoint: 0, endpoints: 2, token: TOKEN, way: SetupWay::Serial, budget: 1 });
    let mut now = Duration::ZERO;
    let mut pauses = Vec::new();
    let mut actions = end.on_event(now, 1, PairEvent::Wanted);
    for epoch in 0..12 {
        assert_eq!(actions, [Action::Prepare { peer: 1, epoch }]);
        assert_eq!(end.holding.len(), 1);
        let after = end.on_event(now, 1, PairEvent::Failed { epoch });
        assert!(after.iter().all(|action| matches!(action, Action::Send { .. })) && end.holding.is_empty());
        let next = end.next_timeout().unwrap();
        pauses.push((next - now).as_millis());
        now = next;
        actions = end.on_timeout(now);
    }
    assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000, 1000]);
    // After it was ready, it is as if nothing had failed.
    let _ = end.on_event(now, 1, PairEvent::Prepared { epoch: 12, address: PairAddress::default() });
    let _ = end.on_datagram(now, &datagram(12, PairStage::Connected).encode(TOKEN));
    let _ = end.on_event(now, 1, PairEvent::Connected { epoch: 12 });
    assert!(end.is_ready(1));
    let _ = end.on_event(now, 1, PairEvent::Broken { epoch: 12 });
    let actions = end.on_event(now, 1, PairEvent::Released { epoch: 12 });
    assert_eq!(actions[0], Action::Prepare { peer: 1, epoch: 13 });
    let _ = end.on_event(now, 1, PairEvent::Failed { epoch: 13 });
    assert_eq!(end.next_timeout(), Some(now + 2 * MILLI));
}

#[test]
fn an_answer_after_a_time_in_the_queue_is_not_measured() {
    let mut net = Net::new(3, 1);
    net.event(0, 2, PairEvent::Wanted);
    assert_eq!(net.ends[2].estimate.patience(), 16 * MILLI);
    net.event(1, 0, PairEvent::Wanted);
    assert_eq!(net.ends[1].estimate.patience(), 16 * MILLI);
    net.pass(RESIDENCE);
    assert_eq!((net.live(1), net.ends[1].estimate.patience()), (vec![0], 16 * MILLI));
}

#[test]
fn a_wish_is_younger_than_what_was_heard_of() {
    let mut net = Net::new(4, 4);
    net.event(0, 1, PairEvent::Wanted);
    net.event(0, 2, PairEvent::Wanted);
    assert_eq!((net.ends[0].clock, net.ends[1].clock, net.ends[2].clock), (2, 1, 2));
    net.event(2, 3, PairEvent::Wanted);
    assert_eq!(net.ends[3].clock, 3);
}

#[test]
fn a_pair_that_broke_in_use_is_idle_when_it_is_ready_again() {
    let mut net = Net::new(3, 1);
    net.event(0, 1, PairEvent::Wanted);
    net.event(0, 1, PairEvent::Used);
    net.event(0, 1, PairEvent::Broken { epoch: 0 });
    net.pass(RESIDENCE);
    net.event(0, 2, PairEvent::Wanted);
    assert_eq!(net.live(0), [2]);
}
