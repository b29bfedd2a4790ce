//! Datagrams; and waiting for completions instead of polling.

use std::sync::Barrier;

use super::*;
use crate::comm::ib::device::{Datagram, DeviceError, Handle, ROUTE_HEADER};

fn receive_datagram(end: &BareEnd, id: u64, at: usize, len: usize) {
    // SAFETY: the memory lives as long as the device.
    unsafe { end.device.post_receive(Queue::Datagram, id, end.piece(at, len)) }.unwrap();
}

/// A datagram from `one` to `two`.
fn datagram(one: &BareEnd, to: Handle, two: &BareEnd, len: usize) -> Datagram {
    let address = two.device.address();
    Datagram { id: 5, to, number: address.number, key: address.key, local: one.piece(0, len), signaled: true, inline: false }
}

fn post(end: &BareEnd, datagram: &Datagram) -> Result<()> {
    // SAFETY: the memory lives as long as the device.
    unsafe { end.device.post_datagram(datagram) }
}

#[test]
fn a_datagram_arrives_behind_a_route_header() {
    for ([one, two], _) in both(1, 4096) {
        let to = one.device.handle(&two.device.address()).unwrap();
        for (len, inline) in [(1024, false), (0, false), (33, true), (220, true)] {
            one.memory.write(0, &pattern(len as u8, 1024));
            receive_datagram(&two, 8, 100, ROUTE_HEADER + len);
            let sent = Datagram { inline, local: one.piece(0, len), ..datagram(&one, to, &two, len) };
            post(&one, &sent).unwrap();
            assert_eq!(one.outcomes(1), [(5, Ok(Done::Sent))]);
            let completions = two.completions(1);
            let from = Some(one.device.address().number);
            assert_eq!(completions[0].outcome, Ok(Done::Received { len: ROUTE_HEADER + len, immediate: None, from }));
            assert_eq!((completions[0].id, completions[0].number), (8, two.device.address().number));
            let header = two.memory.read(100, ROUTE_HEADER);
            assert_eq!(header[8..24], one.device.address().gid);
            assert_eq!(header[24..], two.device.address().gid);
            assert_eq!(two.memory.read(100 + ROUTE_HEADER, len), pattern(len as u8, 1024)[..len]);
        }
    }
}

#[test]
fn what_nobody_takes_is_dropped_in_silence() {
    let ([one, two], _) = two_ends(1, 4096);
    let to = one.device.handle(&two.device.address()).unwrap();
    let good = datagram(&one, to, &two, 100);
    let sent = |datagram| {
        post(&one, &datagram).unwrap();
        assert_eq!(one.outcomes(1), [(5, Ok(Done::Sent))]);
        two.poll().len()
    };
    assert_eq!(sent(good), 0, "no receive is posted");
    receive_datagram(&two, 8, 0, 140);
    assert_eq!(sent(Datagram { key: good.key + 1, ..good }), 0);
    assert_eq!(sent(Datagram { number: good.number + 1, ..good }), 0);
    assert_eq!(two.memory.read(0, 4096), vec![0; 4096]);
    assert_eq!(sent(good), 1);
    receive_datagram(&two, 8, 0, 139);
    assert_eq!(sent(good), 0, "the receive is a byte too short");
    assert_eq!(sent(Datagram { local: one.piece(0, 99), ..good }), 1);
    let gone = {
        let third = BareEnd::new(&SoftFabric(one.device.shared.clone()), 64);
        one.device.handle(&third.device.address()).unwrap()
    };
    receive_datagram(&two, 8, 0, 140);
    assert_eq!(sent(Datagram { to: gone, ..good }), 0);
}

#[test]
fn a_datagram_is_refused_if_it_does_not_fit() {
    let ([one, two], _) = two_ends(1, 4096);
    let to = one.device.handle(&two.device.address()).unwrap();
    let refused = |datagram: Datagram| post(&one, &datagram).unwrap_err().to_string();
    let good = datagram(&one, to, &two, 1025);
    let text = "work request 0x5, number 0 of its chain: a datagram of 1025 bytes; at most 1024 are allowed";
    assert_eq!(refused(good), text);
    assert!(refused(Datagram { inline: true, local: one.piece(0, 221), ..good }).contains("at most 220"));
    assert!(refused(Datagram { local: one.piece(4000, 97), ..good }).contains("its key does not cover its memory"));
    let good = Datagram { local: one.piece(0, 8), ..good };
    one.device.release(to).unwrap();
    assert_eq!(post(&one, &good), Err(DeviceError::Unknown { what: "handle", id: to.id }));
    assert!(one.device.release(to).is_err());

    let good = Datagram { to: one.device.handle(&two.device.address()).unwrap(), signaled: false, ..good };
    (0..16).for_each(|_| post(&one, &good).unwrap());
    assert_eq!(post(&one, &good), Err(DeviceError::Full { queue: "the send queue of datagrams", depth: 16 }));
}

#[test]
fn slots_of_datagrams_are_free_after_a_signaled_one() {
    let ([one, two], _) = two_ends(1, 4096);
    let to = one.device.handle(&two.device.address()).unwrap();
    let good = datagram(&one, to, &two, 8);
    for _ in 0..3 {
        for k in 0..16 {
            post(&one, &Datagram { signaled: k == 14, ..good }).unwrap();
        }
        assert!(post(&one, &good).is_err());
        assert_eq!(one.completions(1).len(), 1);
        // Those up to the signaled one.
        for _ in 0..14 {
            post(&one, &Datagram { signaled: false, ..good }).unwrap();
        }
        post(&one, &good).unwrap();
        assert_eq!(one.completions(1).len(), 1);
    }
}

#[test]
fn only_a_completion_after_arming_ends_a_wait() {
    let ([one, two], [pair, _]) = two_ends(1, 4096);
    let short = Duration::from_millis(2);
    let write = |id| one.post(pair, &[one.work(id, Opcode::Write { to: two.target(0) }, 0, 8)]);
    write(0);
    assert_eq!(one.device.wait(short), Ok(false), "it was not armed");
    one.device.arm(Wakes::All).unwrap();
    assert_eq!(one.device.wait(short), Ok(false), "nothing came since");
    write(1);
    assert_eq!(one.device.wait(LONG), Ok(true));
    assert_eq!(one.device.wait(short), Ok(false), "a wait consumes what ended it");
    write(2);
    assert_eq!(one.device.wait(short), Ok(false), "it was armed for one completion");
    one.device.arm(Wakes::All).unwrap();
    write(3);
    write(4);
    assert_eq!(one.completions(5).len(), 5);
    assert_eq!(one.device.wait(LONG), Ok(true), "polled or not");
    assert_eq!(two.device.wait(Duration::ZERO), Ok(false));
}

#[test]
fn only_what_arrives_ends_a_wait_for_arrivals() {
    let ([one, two], [to_two, to_one]) = two_ends(1, 4096);
    one.receive(0, 0, 8);
    two.receive(0, 0, 8);
    two.receive(1, 0, 8);
    one.device.arm(Wakes::Arrivals).unwrap();
    one.post(to_two, &[one.work(1, Opcode::Send { immediate: None }, 0, 8)]);
    one.post(to_two, &[one.work(2, Opcode::Read { from: two.target(0) }, 0, 8)]);
    assert_eq!(one.device.wait(Duration::from_millis(2)), Ok(false), "the end of what it sent is no arrival");
    two.post(to_one, &[two.work(1, Opcode::Write { to: one.target(0) }, 0, 8)]);
    assert_eq!(one.device.wait(Duration::from_millis(2)), Ok(false), "a write arrives without a word");
    two.post(to_one, &[two.work(2, Opcode::Send { immediate: None }, 0, 8)]);
    assert_eq!(one.device.wait(LONG), Ok(true));
    // A call that asks for more holds, in whatever order two threads ask.
    for (id, (first, second)) in (3..).zip([(Wakes::Arrivals, Wakes::All), (Wakes::All, Wakes::Arrivals)]) {
        two.receive(id, 0, 8);
        one.device.arm(first).unwrap();
        one.device.arm(second).unwrap();
        one.post(to_two, &[one.work(id, Opcode::Send { immediate: None }, 0, 8)]);
        assert_eq!(one.device.wait(LONG), Ok(true));
    }
}

/// As a program waits: it arms, looks once more, then sleeps.
fn next(end: &BareEnd) -> Completion {
    let mut completions = Vec::new();
    loop {
        end.device.poll(&mut completions, 1).unwrap();
        if let Some(completion) = completions.pop() {
            return completion;
        }
        end.device.arm(Wakes::All).unwrap();
        end.device.poll(&mut completions, 1).unwrap();
        match completions.pop() {
            Some(completion) => return completion,
            None => assert_eq!(end.device.wait(LONG), Ok(true), "nothing has come"),
        }
    }
}

#[test]
fn two_threads_play_ping_pong_and_sleep_meanwhile() {
    both(1, 4096).into_iter().for_each(|(ends, pairs)| ping_pong(&ends, pairs));
}

fn ping_pong(ends: &[BareEnd; 2], pairs: [Pair; 2]) {
    let started = Barrier::new(2);
    std::thread::scope(|scope| {
        for me in 0..2 {
            let (end, pair, started) = (&ends[me], pairs[me], &started);
            scope.spawn(move || {
                end.receive(0, 8, 8);
                started.wait();
                for round in 0..1000_u64 {
                    if round % 2 == me as u64 {
                        end.memory.word(0).store(round, Ordering::Relaxed);
                        end.post(pair, &[end.work(1, Opcode::Send { immediate: None }, 0, 8)]);
                        assert_eq!(next(end).outcome, Ok(Done::Sent));
                    } else {
                        assert_eq!(next(end).outcome, Ok(Done::Received { len: 8, immediate: None, from: None }));
                        assert_eq!(load(end, 8), round);
                        end.receive(0, 8, 8);
                    }
                }
            });
        }
    });
}

#[test]
fn a_sleeper_retries_what_is_to_be_retried() {
    for ([one, two], [pair, _]) in both(1, 4096) {
        one.device.arm(Wakes::All).unwrap();
        one.post(pair, &[one.work(1, Opcode::Send { immediate: None }, 0, 8)]);
        // Nobody polls: its retries pass while it sleeps.
        assert_eq!(one.device.wait(LONG), Ok(true));
        assert_eq!(one.outcomes(1), [(1, Err(WorkFailure::ReceiveRetryExceeded))]);
        drop(two);
    }
}
