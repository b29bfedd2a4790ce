//! A rank that waits sleeps in the network, and what comes to it ends the sleep.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::comm::{
    Conduit, Events, Local, Nap, Network, Operation, Remote, SignalOp, SignalWord, Slept, Token, Topology, WaitWord,
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

struct Rank {
    conduit: Conduit,
    am: Arc<Am<Links<SoftDevice>>>,
}

/// Two ranks, each on a machine of its own.
fn ranks() -> [Rank; 2] {
    let fabric = SoftFabric::new(Rules::default());
    let directory = Arc::new(Directory::shared(2).unwrap());
    [0, 1].map(|endpoint| {
        let settings = ConnectionSettings { endpoint, endpoints: 2, token: 7, way: SetupWay::Overlapped, budget: 2 };
        let wire = Links::new(fabric.open(DEPTHS).unwrap(), directory.clone(), settings).unwrap();
        let machine = Arc::new(node::Fabric::new(1, 16 << 20, false).unwrap());
        let member = Member::new(machine, Topology::of_machines(endpoint, &[0, 1]), 1, None);
        let am = Arc::new(Am::new(wire, &member, true, false, None));
        let conduit = Conduit::with_network(member, am.clone());
        conduit.commit(0..1 << 16).unwrap();
        Rank { conduit, am }
    })
}

/// Where the signals are.
const WORD: usize = 64;

/// Returns true if a rank finds a signal of this value.
fn finds(rank: &Rank, value: u32) -> bool {
    rank.am.poll(&mut Events::new());
    // SAFETY: committed, and aligned.
    unsafe { rank.conduit.segment().add(WORD).cast::<WaitWord>().as_ref() }.load() == value
}

fn send(from: &Rank, value: u32) {
    let signal = SignalWord { offset: WORD, op: SignalOp::Set, value, patient: false };
    let operation = Operation::PutSignal { to: Remote { rank: 0, offset: 0 }, local: Local::of(&[]), signal };
    // SAFETY: it puts no bytes, and the word is committed.
    let _ = unsafe { from.am.issue(&operation, Token::NOBODY) };
    from.am.poll(&mut Events::new());
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
    rank.am.nap(Nap { limit, if_owed: false, ready: &|| ready }) == Slept::Here
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
        two.am.poll(&mut Events::new());
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
        let sleeps = || (0..20_000).all(|_| one.am.since_looked() == Duration::ZERO);
        until("the rank does not sleep", sleeps);
        assert!(!one.am.sleep(SHORT) && !naps(one, SHORT, false), "two threads sleep there");
        send(two, 3);
        until("the rank still sleeps", || {
            two.am.poll(&mut Events::new());
            waits.is_finished()
        });
    });
    // From then on the time since the rank looked counts.
    until("the rank looks", || one.am.since_looked() > Duration::from_millis(1));
}

/// The helper that sleeps there first hears that its rank wants to, and does not come back at once.
#[test]
fn an_agent_leaves_its_place_to_its_rank() {
    let [one, _two] = &ranks();
    let no_others = Duration::from_millis(1);
    until("nobody has looked for a while", || one.am.since_looked() > no_others);
    std::thread::scope(|scope| {
        scope.spawn(|| until("the helper cannot sleep", || one.am.sleep(Duration::from_millis(500))));
        until("the helper does not hear of it", || {
            !naps(one, Duration::from_nanos(1), true) && one.am.since_looked() == Duration::ZERO
        });
    });
    until("the helper never comes back", || one.am.since_looked() > no_others);
    until("the place is free", || naps(one, Duration::from_nanos(1), true));
}
