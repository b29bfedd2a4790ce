//! What the faulty device does, and does not do.

use super::*;
use crate::comm::ib::{
    device::{Datagram, DeviceError, ROUTE_HEADER},
    tests::faulty::{Faulty, Rates},
};

const COUNT: usize = 2000;

fn ends(rates: Rates) -> [BareEnd<Faulty<SoftDevice>>; 2] {
    let fabric = fabric(1);
    [1, 2].map(|seed| BareEnd::with(Faulty::new(fabric.open(DEPTHS).unwrap(), rates, seed), 1024))
}

/// The numbers of the datagrams that arrive of `COUNT`, in the order of their reports.
fn arrive(rates: Rates) -> Vec<u64> {
    let [one, two] = ends(rates);
    let address = two.device.address();
    let to = one.device.handle(&address).unwrap();
    let post = |id: u64, slot: usize| {
        // SAFETY: the memory lives as long as the device.
        unsafe { two.device.post_receive(Queue::Datagram, id, two.piece(48 * slot, 48)) }.unwrap();
    };
    (0..16).for_each(|slot| post(slot as u64, slot));
    let mut numbers = Vec::new();
    for k in 0..COUNT as u64 {
        one.memory.word(0).store(k, Ordering::Relaxed);
        let local = one.piece(0, 8);
        let sent = Datagram { id: k, to, number: address.number, key: address.key, local, signaled: true, inline: true };
        // SAFETY: as above.
        unsafe { one.device.post_datagram(&sent) }.unwrap();
        assert_eq!(one.outcomes(1), [(k, Ok(Done::Sent))], "each is reported once");
        // Two rounds, so that several arrive in one poll.
        if k % 2 == 1 || k + 1 == COUNT as u64 {
            for completion in two.poll() {
                let Ok(Done::Received { from: Some(_), .. }) = completion.outcome else { panic!("{completion:?}") };
                numbers.push(load_at(&two, 48 * completion.id as usize + ROUTE_HEADER));
                post(completion.id, completion.id as usize);
            }
        }
    }
    numbers.extend(two.poll().iter().map(|completion| load_at(&two, 48 * completion.id as usize + ROUTE_HEADER)));
    numbers
}

fn load_at<D>(end: &BareEnd<D>, at: usize) -> u64 {
    end.memory.word(at).load(Ordering::Relaxed)
}

/// Asserts that `count` is about `of`.
fn about(count: usize, of: usize) {
    assert!((of * 8 / 10..of * 12 / 10).contains(&count), "{count}, not about {of}");
}

#[test]
fn without_faults_all_is_as_before() {
    assert!(arrive(Rates::default()).into_iter().eq(0..COUNT as u64));
}

#[test]
fn datagrams_are_lost_doubled_and_late_as_often_as_was_asked() {
    let lost = arrive(Rates { lose: 200, ..Rates::default() });
    assert!(lost.is_sorted());
    about(COUNT - lost.len(), COUNT / 5);

    let mut doubled = arrive(Rates { duplicate: 300, ..Rates::default() });
    assert!(doubled.is_sorted());
    about(doubled.len() - COUNT, COUNT * 3 / 10);
    doubled.dedup();
    assert_eq!(doubled.len(), COUNT);

    let mut late = arrive(Rates { reorder: 300, ..Rates::default() });
    let before = late.windows(2).filter(|two| two[0] > two[1]).count();
    assert!(before > COUNT / 10, "{before} came before an earlier one");
    late.sort_unstable();
    assert!(late.into_iter().eq(0..COUNT as u64));
}

#[test]
fn a_late_datagram_ends_a_wait() {
    let [one, two] = ends(Rates { reorder: 1000, ..Rates::default() });
    let address = two.device.address();
    // SAFETY: the memory lives as long as the device.
    unsafe { two.device.post_receive(Queue::Datagram, 1, two.piece(0, 64)) }.unwrap();
    let to = one.device.handle(&address).unwrap();
    let local = one.piece(0, 8);
    let sent = Datagram { id: 1, to, number: address.number, key: address.key, local, signaled: false, inline: true };
    // SAFETY: as above.
    unsafe { one.device.post_datagram(&sent) }.unwrap();
    assert_eq!(two.poll(), []);
    assert_eq!(two.device.wait(LONG), Ok(true));
    assert_eq!(two.completions(1)[0].id, 1);
    assert_eq!(two.device.wait(Duration::ZERO), Ok(false));
}

#[test]
fn steps_fail_and_pairs_break_as_often_as_was_asked() {
    let [one, two] = ends(Rates { fail_step: 100, break_pair: 250, ..Rates::default() });
    let pair = one.device.create(16).unwrap();
    let other = two.device.create(16).unwrap();
    let (mut steps_made, mut refused, mut broken) = (0, 0, 0);
    for round in 0..COUNT {
        for (own, pair, peer, other) in [(&one, pair, &two, other), (&two, other, &one, pair)] {
            own.device.modify(pair, To::Reset).unwrap();
            for step in steps(pair, &peer.device.address(), other, MANNER) {
                // A step that was refused was not made, and can be tried again.
                while let Err(error) = own.device.modify(pair, step) {
                    assert!(matches!(error, DeviceError::Invalid(_)), "{error}");
                    refused += 1;
                }
                steps_made += 1;
            }
        }
        // Works that were posted are done before the pair breaks: it is found out by the next one.
        let work = one.work(round as u64, Opcode::Write { to: two.target(8) }, 0, 8);
        one.post(pair, &[work]);
        one.post(pair, &[work]);
        let outcomes = one.outcomes(2);
        assert_eq!(outcomes[0].1, Ok(Done::Written));
        broken += usize::from(outcomes[1].1 == Err(WorkFailure::Flushed));
    }
    about(refused, (steps_made + refused) / 10);
    about(broken, COUNT / 4);
}
