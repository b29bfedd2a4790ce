//! How long a rank waits, and where it sleeps.

use std::sync::Arc;

use super::*;
use crate::comm::{
    Capabilities, Events, Issued, Local, Operation, Remote, Token, Topology,
    kit::mutex::Mutex,
    node::{Fabric, Member, loopback::Loopback},
};

/// It would wait for an hour.
#[test]
fn no_wait_hides_for_long_what_another_thread_has_taken() {
    for crowded in [false, true] {
        for ranks_per_node in [1, 2] {
            bed(ranks_per_node, crowded, false).0.wait(Duration::from_secs(3600));
        }
    }
}

/// A network that only records how long a rank sleeps in it.
#[derive(Debug)]
struct Bed {
    below: Loopback,
    expects: bool,
    dozes: Mutex<Vec<Duration>>,
}

impl Network for Bed {
    fn capabilities(&self) -> &Capabilities {
        self.below.capabilities()
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the promises are the same.
        unsafe { self.below.put(to, local, token) }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the promises are the same.
        unsafe { self.below.get(from, local, token) }
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.below.issue(operation, token) }
    }

    fn cancel(&self, token: Token) {
        self.below.cancel(token);
    }

    fn poll(&self, events: &mut Events) {
        self.below.poll(events);
    }

    fn attend(&self) -> bool {
        false
    }

    fn nap(&self, Nap { limit, if_owed, ready }: Nap<'_>) -> Slept {
        if limit.is_zero() || if_owed && !self.expects {
            return Slept::Not;
        }
        if !ready() {
            self.dozes.lock().push(limit);
            std::thread::sleep(limit);
        }
        Slept::Here
    }
}

/// A rank whose node has `ranks_per_node` ranks, and its network.
fn bed(ranks_per_node: usize, crowded: bool, expects: bool) -> (Conduit, Arc<Bed>) {
    let fabric = Arc::new(Fabric::new(2, 1 << 20, false).unwrap());
    let member = Member::new(fabric.clone(), Topology::one_machine(0, 2), 2, None).split(ranks_per_node, crowded);
    let below = Loopback::new(fabric, member.topology().clone());
    let network = Arc::new(Bed { below, expects, dozes: Mutex::default() });
    (Conduit::with_network(member, network.clone()), network)
}

/// The longest sleep in the network of a rank whose node has `ranks_per_node` ranks, while it waits for whatever comes, and for a
/// word. Waits go on until it has slept for the expected times: this thread may have to wait for a core.
fn dozes(ranks_per_node: usize, crowded: bool, expects: bool, least: [Duration; 2]) -> [Duration; 2] {
    let (conduit, network) = bed(ranks_per_node, crowded, expects);
    let longest = |wait: &dyn Fn(), least: Duration| {
        let (start, mut most) = (conduit.now(), Duration::ZERO);
        for round in 0.. {
            wait();
            most = network.dozes.lock().drain(..).fold(most, Duration::max);
            if round >= 10 && most >= least || conduit.now() - start > Duration::from_secs(20) {
                break;
            }
        }
        most
    };
    let of_wait = longest(&|| conduit.wait(Duration::from_secs(1)), least[0]);
    [of_wait, longest(&|| conduit.wait_on(&WaitWord::default(), 0, Duration::from_millis(5)), least[1])]
}

#[test]
fn crowded_ranks_sleep_in_the_network_as_long_as_nothing_else_may_wake_them() {
    const NEVER: Duration = Duration::ZERO;
    for expects in [false, true] {
        let [of_wait, of_word] = dozes(1, true, expects, [2 * SLICE, NAP]);
        assert!(of_wait >= 2 * SLICE && of_wait <= NAP && of_word == NAP, "alone: {of_wait:?}, {of_word:?}");
        let with_neighbor = [if expects { SLICE } else { NEVER }, NEVER];
        assert_eq!(dozes(2, true, expects, with_neighbor), with_neighbor, "with a neighbor");
        for ranks_per_node in [1, 2] {
            assert_eq!(dozes(ranks_per_node, false, expects, [NEVER; 2]), [NEVER; 2], "where each has a core");
        }
    }
}
