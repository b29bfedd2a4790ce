//! A rank that waits sleeps in the network, and what comes to it ends the sleep.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::comm::{
    Event, Events, Issued, Mail, Nap, Network, Operation, Slept, Token, Topology,
    am::Am,
    ib::{
        links::{DEPTHS, Links},
        soft::{Rules, SoftDevice, SoftFabric},
    },
    node::{self, Member, helper::Answers},
    protocol::connection::{ConnectionSettings, SetupWay},
    start::devices::directory::Directory,
};

/// No sleep lasts this long, unless nothing ends it.
const LONG: Duration = Duration::from_secs(60);

/// A sleep that should not begin.
const SHORT: Duration = Duration::from_millis(1);

type Rank = Am<Links<SoftDevice>>;

/// Two ranks, each on a machine of its own.
fn ranks() -> [Rank; 2] {
    let fabric = SoftFabric::new(Rules::default());
    let directory = Arc::new(Directory::shared(2).unwrap());
    [0, 1].map(|endpoint| {
        let settings = ConnectionSettings { endpoint, endpoints: 2, token: 7, way: SetupWay::Overlapped, budget: 2 };
        let wire = Links::new(fabric.open(DEPTHS).unwrap(), directory.clone(), settings).unwrap();
        let machine = Arc::new(node::Fabric::new(1, 16 << 20, false).unwrap());
        let member = Member::new(machine, Topology::of_machines(endpoint, &[0, 1]), 1, None);
        Am::new(wire, &member, true, false, None)
    })
}

/// Returns true if a rank finds mail with a key.
fn finds(rank: &Rank, key: u64) -> bool {
    let mut events = Events::new();
    rank.poll(&mut events);
    events.iter().any(|event| matches!(event, Event::Mail(1, mail) if mail.key == key))
}

fn send(from: &Rank, key: u64) {
    let mail = Operation::Mail { rank: 0, mail: Mail { key, words: [0; 3] } };
    // SAFETY: mail touches no memory of the caller.
    assert_ne!(unsafe { from.issue(&mail, Token::NOBODY) }, Issued::Full);
    from.poll(&mut Events::new());
}

/// Looks until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "{what}");
    }
}

/// Returns true if the rank slept in the network, or saw there that it must not.
fn naps(rank: &Rank, limit: Duration, ready: bool) -> bool {
    rank.nap(Nap { limit, if_owed: false, ready: &|| ready }) == Slept::Here
}

/// Sleeps in the network, and returns before the limit.
fn sleep_well(rank: &Rank) {
    let start = Instant::now();
    assert!(naps(rank, LONG, false), "the network lets nobody sleep");
    assert!(start.elapsed() < LONG, "nothing has ended the sleep");
}

#[test]
fn what_comes_ends_a_sleep_in_the_network() {
    let [one, two] = &ranks();
    send(two, 1);
    until("no connection", || {
        two.poll(&mut Events::new());
        finds(one, 1)
    });
    // What has come already is not slept through, nor what another thread has brought.
    send(two, 2);
    sleep_well(one);
    assert!(finds(one, 2));
    let start = Instant::now();
    assert!(naps(one, LONG, true) && start.elapsed() < LONG);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            while !finds(one, 3) {
                sleep_well(one);
            }
        });
        // Not as it may seem for a moment, while the rank looks.
        let sleeps = || (0..20_000).all(|_| one.since_looked() == Duration::ZERO);
        until("the rank does not sleep", sleeps);
        assert!(!one.sleep(SHORT) && !naps(one, SHORT, false), "two threads sleep there");
        send(two, 3);
        until("the rank still sleeps", || {
            two.poll(&mut Events::new());
            waits.is_finished()
        });
    });
    // From then on the time since the rank looked counts.
    until("the rank looks", || one.since_looked() > Duration::from_millis(1));
}

/// The helper that sleeps there first hears that its rank wants to, and does not come back at once.
#[test]
fn an_agent_leaves_its_place_to_its_rank() {
    let [one, _two] = &ranks();
    let no_others = Duration::from_millis(1);
    until("nobody has looked for a while", || one.since_looked() > no_others);
    std::thread::scope(|scope| {
        scope.spawn(|| until("the helper cannot sleep", || one.sleep(Duration::from_millis(500))));
        until("the helper does not hear of it", || {
            !naps(one, Duration::from_nanos(1), true) && one.since_looked() == Duration::ZERO
        });
    });
    until("the helper never comes back", || one.since_looked() > no_others);
    until("the place is free", || naps(one, Duration::from_nanos(1), true));
}
