//! How long a rank waits, and where it sleeps.

use super::*;
use crate::comm::{
    kit::mutex::Mutex,
    node::{Fabric, loopback::Loopback},
};

#[test]
fn no_wait_hides_for_long_what_another_thread_has_taken() {
    for crowded in [false, true] {
        assert!(longest(Duration::from_secs(3600), crowded) <= Duration::from_micros(500));
        assert_eq!(longest(Duration::ZERO, crowded), Duration::ZERO);
    }
}

/// A network that only records how long a rank sleeps in it.
#[derive(Debug)]
struct Bed {
    below: Loopback,
    expects: bool,
    dozes: Mutex<Vec<Duration>>,
}

impl Operations for Bed {
    fn capabilities(&self) -> &Capabilities {
        self.below.capabilities()
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.below.put(to, local, token) }
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        unsafe { self.below.get(from, local, token) }
    }

    fn cancel(&self, token: Token) {
        self.below.cancel(token);
    }

    fn flush(&self, rank: usize, token: Token) {
        self.below.flush(rank, token);
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.below.atomic(word, atomic, token) }
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        self.below.mail(rank, mail)
    }

    fn poll(&self, events: &mut Events) {
        self.below.poll(events);
    }
}

impl Network for Bed {
    fn attend(&self) -> bool {
        false
    }

    fn expects(&self) -> bool {
        self.expects
    }

    fn doze(&self, limit: Duration, ready: &dyn Fn() -> bool) -> bool {
        if !ready() {
            self.dozes.lock().push(limit);
            std::thread::sleep(limit);
        }
        true
    }
}

/// The longest sleep in the network of a rank whose node has `ranks_per_node` ranks, while it waits for whatever comes, and for a
/// word. Waits go on until it has slept for the expected times: this thread may have to wait for a core.
fn dozes(ranks_per_node: usize, crowded: bool, expects: bool, least: [Duration; 2]) -> [Duration; 2] {
    let fabric = Arc::new(Fabric::new(2, 1 << 20, false).unwrap());
    let member = Member::new(fabric.clone(), Topology::one_machine(0, 2), 2, usize::MAX).split(ranks_per_node, crowded);
    let below = Loopback::new(fabric, member.topology().clone());
    let joined = Joined::new(member, Arc::new(Bed { below, expects, dozes: Mutex::default() }));
    let longest = |wait: &dyn Fn(), least: Duration| {
        let (start, mut most) = (joined.now(), Duration::ZERO);
        for round in 0.. {
            wait();
            most = joined.network.dozes.lock().drain(..).fold(most, Duration::max);
            if round >= 10 && most >= least || joined.now() - start > Duration::from_secs(20) {
                break;
            }
        }
        most
    };
    let of_wait = longest(&|| joined.wait(Duration::from_secs(1)), least[0]);
    [of_wait, longest(&|| joined.wait_on(&WaitWord::default(), 0, Duration::from_millis(5)), least[1])]
}

#[test]
fn crowded_ranks_sleep_in_the_network_as_long_as_nothing_else_may_wake_them() {
    const NEVER: Duration = Duration::ZERO;
    for expects in [false, true] {
        let [of_wait, of_word] = dozes(1, true, expects, [2 * SLICE, DOZE]);
        assert!(of_wait >= 2 * SLICE && of_wait <= DOZE && of_word == DOZE, "alone: {of_wait:?}, {of_word:?}");
        let with_neighbor = [if expects { SLICE } else { NEVER }, NEVER];
        assert_eq!(dozes(2, true, expects, with_neighbor), with_neighbor, "with a neighbor");
        for ranks_per_node in [1, 2] {
            assert_eq!(dozes(ranks_per_node, false, expects, [NEVER; 2]), [NEVER; 2], "where each has a core");
        }
    }
}
