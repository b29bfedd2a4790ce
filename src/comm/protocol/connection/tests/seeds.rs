//! Endpoints that want to reach each other under everything that can go wrong, each schedule from a seed.

use super::super::SetupWay;
use super::{
    is_long,
    world::{Conditions, World},
};
use crate::comm::protocol::simulation::{Random, SEEDS};

/// As long as nothing hangs, all is done by then: microseconds, and events.
const LIMIT: u64 = 1_000_000_000;
const EVENTS: u64 = 2_000_000;

fn conditions(random: &mut Random, seed: u64) -> Conditions {
    let (endpoints, budget) = match seed {
        seed if seed % 2500 == 7 => (64, 2),
        seed if seed % 50 == 3 => (4 + random.below(5), 1 + random.below(3)),
        _ => (2 + random.below(3), 1 + random.below(3)),
    };
    Conditions {
        endpoints,
        budget,
        way: [SetupWay::Overlapped, SetupWay::Serial][random.below(2)],
        lost: [0, 0, 5, 20, 50][random.below(5)],
        doubled: [0, 10, 50][random.below(3)],
        failing: [0, 0, 10, 30][random.below(4)],
        delay: (2, [0, 10, 2000][random.below(3)]),
        steps: ([[1, 1, 1], [367, 105, 50], [8000, 2000, 100]][random.below(3)], [0, 500][random.below(2)]),
    }
}

/// What the runs did, to see that they did something.
#[derive(Debug, Default)]
struct Seen {
    opened: u64,
    reopened: u64,
    resends: u64,
    late: u64,
    forged: u64,
    longest: u64,
}

fn run(seed: u64, seen: &mut Seen) {
    let mut random = Random::new(seed);
    let conditions = conditions(&mut random, seed);
    let endpoints = conditions.endpoints;
    let other = |random: &mut Random, at: usize| (at + 1 + random.below(endpoints - 1)) % endpoints;
    let mut world = World::new(conditions.clone(), Random::new(!seed));
    // All at once, or one after the other.
    let spread = [1, 1000, 100_000][random.below(3)];
    let wants = if endpoints == 64 { 3 * endpoints } else { 1 + random.below(3 * endpoints) };
    for _ in 0..wants {
        let at = random.below(endpoints);
        let peer = other(&mut random, at);
        world.want(random.below(spread) as u64, at, peer);
    }
    for _ in 0..random.below(4) {
        let at = random.below(endpoints);
        let peer = other(&mut random, at);
        world.break_later(random.below(2 * spread + 20_000) as u64, at, peer);
    }
    let mut forged = vec![0; endpoints];
    while world.missing > 0 {
        assert!(world.events_done < EVENTS, "livelock: {} frames are missing", world.missing);
        assert!(world.step(), "nothing will happen any more, and {} frames are missing", world.missing);
        assert!(world.now < LIMIT, "hung: {} frames are missing", world.missing);
        if random.one_in(40)
            && let Some((to, bytes)) = world.kept.pop_front()
        {
            seen.late += 1;
            world.inject(to, &bytes);
            if random.one_in(2) {
                // One bit of the token is wrong, or the length is.
                let mut bytes = bytes.to_vec();
                bytes[random.below(16)] ^= 1 << random.below(8);
                bytes.truncate(bytes.len() - random.below(2));
                forged[to] += 1;
                world.inject(to, &bytes);
            }
        }
    }
    seen.longest = seen.longest.max(world.now);
    while world.step() {
        assert!(world.events_done < 2 * EVENTS, "it never comes to rest");
        assert!(world.now < 2 * LIMIT, "it never comes to rest");
    }
    let mut live = vec![Vec::new(); endpoints];
    for (at, node) in world.nodes.iter().enumerate() {
        live[at] = (0..endpoints).filter(|&peer| node.machine.is_ready(peer)).collect();
        let statistics = node.machine.statistics();
        assert_eq!(statistics.opened - statistics.closed, live[at].len() as u64, "{at}");
        assert!(statistics.reopened <= statistics.opened, "{at}");
        assert_eq!(statistics.refused, forged[at], "{at}");
        assert_eq!(node.machine.next_timeout(), None, "{at}");
        seen.opened += statistics.opened;
        seen.reopened += statistics.reopened;
        seen.resends += statistics.resends;
        seen.forged += statistics.refused;
    }
    for at in 0..endpoints {
        for &peer in live[at].iter().filter(|_| conditions.lost == 0) {
            assert!(live[peer].contains(&at), "{peer} does not know of {at}");
        }
    }
}

#[test]
fn all_that_is_wanted_comes_once_in_order_and_within_the_budget() {
    let mut seen = Seen::default();
    for seed in 0..if is_long() { 100 * SEEDS } else { SEEDS } {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &mut seen)));
        assert!(run.is_ok(), "seed {seed}");
    }
    eprintln!("{seen:?}");
    assert!(seen.reopened > SEEDS / 2 && seen.opened > 3 * SEEDS && seen.resends > SEEDS && seen.late > SEEDS);
    assert!(seen.forged > SEEDS / 10);
}
