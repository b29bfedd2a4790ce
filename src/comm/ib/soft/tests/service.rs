//! What the connected service does when the peer is not ready or not there, and how pairs and devices end.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::comm::ib::device::{DeviceError, DeviceEvent};

#[test]
fn a_send_that_meets_no_receive_is_tried_again_and_fails_at_last() {
    let ([one, two], [pair, other]) = two_ends(1, 4096);
    let send = |id| one.work(id, Opcode::Send { immediate: None }, 0, 8);
    one.post(pair, &[send(1), send(2)]);
    assert_eq!(one.outcomes(2), [(1, Err(WorkFailure::ReceiveRetryExceeded)), (2, Err(WorkFailure::Flushed))]);
    // The peer does not notice.
    assert_eq!((two.device.event(), two.poll()), (None, vec![]));
    two.receive(1, 0, 8);
    assert_eq!(two.poll(), []);

    for end in [(&one, pair), (&two, other)] {
        end.0.device.modify(end.1, To::Reset).unwrap();
    }
    let patient = Manner { receive_retries: 7, ..MANNER };
    connect_side(&one, pair, &two, other, patient);
    connect_side(&two, other, &one, pair, patient);
    one.post(pair, &[send(3), send(4), send(5)]);
    assert_eq!(one.outcomes(1), [(3, Ok(Done::Sent))]);
    // It waits for long, and goes on when its time has come, whichever end polls.
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(one.poll(), []);
    assert_eq!(two.completions(1)[0].id, 1);
    two.receive(2, 0, 8);
    two.receive(3, 0, 8);
    assert_eq!(two.completions(2).len(), 2);
    assert_eq!(one.outcomes(2), [(4, Ok(Done::Sent)), (5, Ok(Done::Sent))]);
}

#[test]
fn a_receive_that_is_too_short_or_not_open_fails_at_both_sides() {
    let cases = [
        (7, false, WorkFailure::RemoteInvalid, WorkFailure::LocalLength),
        (8, true, WorkFailure::RemoteOperation, WorkFailure::LocalProtection),
    ];
    for (len, constant, here, there) in cases {
        for ([one, two], [pair, other]) in both(1, 4096) {
            two.memory.write(0, &pattern(1, 64));
            // SAFETY: as in `BareEnd::with`.
            let region = unsafe { two.device.register(two.memory.start(), 64, Access::NONE) }.unwrap();
            let key = if constant { region.local } else { two.region.local };
            // SAFETY: the memory lives as long as the device.
            unsafe { two.device.post_receive(Queue::Shared, 9, WorkPiece { key, ..two.piece(0, len) }) }.unwrap();
            one.post(pair, &[one.work(1, Opcode::Send { immediate: None }, 0, 8)]);
            assert_eq!((one.outcomes(1), two.outcomes(1)), (vec![(1, Err(here))], vec![(9, Err(there))]));
            two.post(other, &[two.work(2, Opcode::Write { to: one.target(0) }, 0, 8)]);
            assert_eq!(two.outcomes(1), [(2, Err(WorkFailure::Flushed))]);
            assert_eq!(two.memory.read(0, 64), pattern(1, 64));
        }
    }
}

/// A write that nobody answers changes nothing.
fn is_not_answered(one: &BareEnd, pair: Pair, two: &BareEnd) {
    two.memory.write(0, &pattern(1, 64));
    one.post(
        pair,
        &[one.work(1, Opcode::Write { to: two.target(0) }, 0, 8), one.work(2, Opcode::Read { from: two.target(0) }, 0, 8)],
    );
    assert_eq!(one.poll(), [], "retries take time");
    assert_eq!(one.outcomes(2), [(1, Err(WorkFailure::RetryExceeded)), (2, Err(WorkFailure::Flushed))]);
    assert_eq!(two.memory.read(0, 64), pattern(1, 64));
    assert_eq!((two.device.event(), two.poll()), (None, vec![]));
}

#[test]
fn nobody_answers_who_is_not_there_or_not_ready() {
    for (hub, state) in hubs(1).iter().flat_map(|hub| (0..4).map(move |state| (hub, state))) {
        let [one, two] = [(); 2].map(|()| hub.end(64));
        let [pair, other] = [&one, &two].map(|end| end.device.create(4).unwrap());
        connect_side(&one, pair, &two, other, MANNER);
        let address = one.device.address();
        match state {
            0 => two.device.destroy(other).unwrap(),
            1 => {}
            2 => two.device.modify(other, To::Init { access: Access::ALL }).unwrap(),
            _ => {
                connect_side(&two, other, &one, pair, MANNER);
                two.device.modify(other, To::Error).unwrap();
            }
        }
        is_not_answered(&one, pair, &two);
        let _ = address;
    }
    for ([one, two], [pair, _]) in both(1, 64) {
        let target = two.target(0);
        drop(two);
        one.post(pair, &[one.work(1, Opcode::Write { to: target }, 0, 8)]);
        assert_eq!(one.outcomes(1), [(1, Err(WorkFailure::RetryExceeded))]);
    }
}

#[test]
fn a_pair_answers_only_the_pair_that_it_was_connected_to() {
    hubs(1).iter().for_each(a_pair_answers_only_its_peer_over);
}

fn a_pair_answers_only_its_peer_over(hub: &Hub) {
    // Ready to receive is enough to answer.
    let [one, two] = [(); 2].map(|()| hub.end(64));
    let [pair, other] = [&one, &two].map(|end| end.device.create(4).unwrap());
    connect_side(&one, pair, &two, other, MANNER);
    let address = one.device.address();
    let [init, receive, _] = steps(other, &address, pair, MANNER);
    two.device.modify(other, init).unwrap();
    two.device.modify(other, receive).unwrap();
    one.post(pair, &[one.work(1, Opcode::Write { to: two.target(0) }, 0, 8)]);
    assert_eq!(one.outcomes(1), [(1, Ok(Done::Written))]);

    // It is reset, and connected to another number, device or from another packet on.
    let third = hub.end(64);
    let same = third.device.create(4).unwrap();
    assert_eq!(same.number, pair.number);
    let strange = Pair { number: pair.number + 1, ..pair };
    for (peer, number, first_packet) in [
        (one.device.address(), strange.number, first_packet(pair)),
        (third.device.address(), pair.number, first_packet(pair)),
        (one.device.address(), pair.number, first_packet(pair) - 1),
    ] {
        for (end, pair, to) in [(&one, pair, other), (&two, other, pair)] {
            end.device.modify(pair, To::Reset).unwrap();
            if end.device.address() == one.device.address() {
                connect_side(&one, pair, &two, to, MANNER);
            }
        }
        two.device.modify(other, init).unwrap();
        let receive = To::ReadyToReceive { peer: &peer, number, first_packet, answer_depth: 1, receive_timer: 1 };
        two.device.modify(other, receive).unwrap();
        is_not_answered(&one, pair, &two);
    }
}

#[test]
fn a_reset_pair_does_not_take_the_old_traffic_of_its_new_life() {
    for ([one, two], [pair, other]) in both(1, 4096) {
        one.post(pair, &[one.work(1, Opcode::Write { to: two.target(0) }, 0, 3000)]);
        assert_eq!(one.outcomes(1), [(1, Ok(Done::Written))]);
        // A message was sent: only a peer that counts from there on is answered.
        two.device.modify(other, To::Reset).unwrap();
        connect_side(&two, other, &one, pair, MANNER);
        is_not_answered(&one, pair, &two);
        // Both sides anew.
        for (own, pair, peer, other) in [(&one, pair, &two, other), (&two, other, &one, pair)] {
            own.device.modify(pair, To::Reset).unwrap();
            connect_side(own, pair, peer, other, MANNER);
        }
        one.post(pair, &[one.work(3, Opcode::Write { to: two.target(0) }, 0, 3000)]);
        assert_eq!(one.outcomes(1), [(3, Ok(Done::Written))]);
    }
}

#[test]
fn a_pair_in_error_flushes_in_order_and_a_reset_drops() {
    let ([one, two], [pair, other]) = two_ends(1, 4096);
    let patient = Manner { receive_retries: 7, ..MANNER };
    one.device.modify(pair, To::Reset).unwrap();
    connect_side(&one, pair, &two, other, patient);
    two.device.modify(other, To::Reset).unwrap();
    connect_side(&two, other, &one, pair, patient);
    let works = [0, 1, 2, 3].map(|id| Work { signaled: id == 2, ..one.work(id, Opcode::Send { immediate: None }, 0, 8) });
    two.receive(0, 0, 8);
    one.post(pair, &works);
    assert_eq!(one.poll(), []);
    one.device.modify(pair, To::Error).unwrap();
    // The first is done, unsignaled.
    assert_eq!(one.outcomes(3), [1, 2, 3].map(|id| (id, Err(WorkFailure::Flushed))));

    one.device.modify(pair, To::Reset).unwrap();
    connect_side(&one, pair, &two, other, patient);
    two.device.modify(other, To::Reset).unwrap();
    connect_side(&two, other, &one, pair, patient);
    // All slots are free, and works that a reset drops are not reported.
    for _ in 0..3 {
        one.post(pair, &[0; 16].map(|id| one.work(id, Opcode::Send { immediate: None }, 0, 8)));
        one.device.modify(pair, To::Reset).unwrap();
        assert_eq!(one.poll(), []);
        connect_side(&one, pair, &two, other, patient);
    }
    assert_eq!(two.completions(1)[0].id, 0);
}

#[test]
fn reports_of_an_old_life_free_no_slot_of_the_new_one() {
    let ([one, two], [pair, other]) = two_ends(1, 4096);
    let works = [0; 16].map(|id| one.work(id, Opcode::Write { to: two.target(0) }, 0, 8));
    one.post(pair, &works);
    for (own, pair, peer, other) in [(&one, pair, &two, other), (&two, other, &one, pair)] {
        own.device.modify(pair, To::Reset).unwrap();
        connect_side(own, pair, peer, other, MANNER);
    }
    one.post(pair, &works.map(|work| Work { signaled: false, ..work }));
    assert_eq!(one.completions(16).len(), 16);
    assert_eq!(one.try_post(pair, &works), Ok(0));
}

#[test]
fn too_many_completions_are_fatal() {
    let fabric = fabric(1);
    let one = BareEnd::with(fabric.open(Depths { completions: 4, ..DEPTHS }).unwrap(), 64);
    let two = BareEnd::new(&fabric, 64);
    let [pair, other] = connect(&one, &two, MANNER);
    let works = [0, 1, 2, 3, 4].map(|id| one.work(id, Opcode::Write { to: two.target(0) }, 0, 8));
    for _ in 0..3 {
        one.post(pair, &works[..4]);
        assert_eq!(one.completions(4).len(), 4);
    }
    assert_eq!(one.device.event(), None);
    one.post(pair, &works);
    // Nothing comes any more, and only an event says why.
    assert_eq!(one.poll(), []);
    assert_eq!(one.device.wait(LONG), Ok(true));
    assert_eq!(one.device.event(), Some(DeviceEvent::Fatal));
    let fatal = DeviceError::Fatal { why: "more completions came than its queue holds" };
    assert_eq!(one.device.poll(&mut Vec::new(), 1), Err(fatal.clone()));
    assert_eq!(one.try_post(pair, &works[..1]), Err(fatal.clone()));
    assert_eq!(one.device.create(1), Err(fatal.clone()));
    assert_eq!(one.device.arm(Wakes::All), Err(fatal));
    one.memory.write(0, &pattern(1, 64));
    two.post(other, &[two.work(9, Opcode::Write { to: one.target(0) }, 0, 8)]);
    assert_eq!(two.outcomes(1), [(9, Err(WorkFailure::RetryExceeded))]);
    assert_eq!(one.memory.read(0, 64), pattern(1, 64));
}

/// Long enough that a thread which stops something finds a transfer under way.
const LONG_WRITE: usize = 4 << 20;

/// A word of each page.
fn sample(memory: &Memory) -> Vec<u64> {
    (0..LONG_WRITE).step_by(4096).map(|at| memory.word(at).load(Ordering::Relaxed)).collect()
}

/// Runs `stop` while another thread writes to the memory of `two`, now one value and now another; after it, that does not change.
fn nothing_moves_after(stop: impl FnOnce(&BareEnd, Pair, BareEnd, Pair) -> (Option<SoftDevice>, Memory)) {
    let fabric = fabric(1);
    let (one, two) = (BareEnd::new(&fabric, 2 * LONG_WRITE), BareEnd::new(&fabric, LONG_WRITE));
    let [pair, other] = connect(&one, &two, MANNER);
    one.memory.write(0, &[1; LONG_WRITE]);
    let (started, target) = (AtomicBool::new(false), two.target(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                let work = one.work(round as u64, Opcode::Write { to: target }, round % 2 * LONG_WRITE, LONG_WRITE);
                if one.try_post(pair, &[work]).is_err() || one.poll().iter().any(|completion| completion.outcome.is_err()) {
                    break;
                }
                started.store(true, Ordering::Release);
            }
        });
        while !started.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let (device, memory) = stop(&one, pair, two, other);
        let after = sample(&memory);
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(sample(&memory), after);
        }
        // The works that are left fail now.
        drop(device);
    });
}

/// What keeps the device, and what keeps the memory.
fn apart(end: BareEnd) -> (Option<SoftDevice>, Memory) {
    let BareEnd { device, memory, .. } = end;
    (Some(device), memory)
}

#[test]
fn memory_is_left_alone_when_a_call_says_so() {
    for _ in 0..10 {
        nothing_moves_after(|_, _, two, _| {
            two.device.deregister(two.region).unwrap();
            apart(two)
        });
        nothing_moves_after(|_, _, two, other| {
            two.device.modify(other, To::Reset).unwrap();
            apart(two)
        });
        nothing_moves_after(|_, _, two, other| {
            two.device.destroy(other).unwrap();
            apart(two)
        });
        nothing_moves_after(|one, pair, two, _| {
            one.device.modify(pair, To::Reset).unwrap();
            apart(two)
        });
        nothing_moves_after(|_, _, two, _| (None, apart(two).1));
    }
}

#[test]
fn threads_of_a_rank_share_a_pair() {
    const WRITES: usize = 2000;
    for ([one, two], [pair, _]) in both(1, 2 * 8 * WRITES) {
        let reported = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (one, two, reported) = (&one, &two, &reported);
                scope.spawn(move || {
                    for k in (thread * WRITES..).take(WRITES) {
                        one.memory.word(8 * k).store(k as u64 + 1, Ordering::Relaxed);
                        let work = one.work(k as u64, Opcode::Write { to: two.target(8 * k) }, 8 * k, 8);
                        while one.try_post(pair, &[work]) == Ok(0) {
                            reported.fetch_add(one.poll().len() as u64, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert!(one.completions(2 * WRITES - reported.into_inner() as usize).iter().all(|completion| completion.outcome.is_ok()));
        (0..2 * WRITES).for_each(|k| assert_eq!(load(&two, 8 * k), k as u64 + 1));
    }
}

#[test]
fn registered_memory_is_bounded() {
    let fabric = SoftFabric::new(Rules { pinned: 4096, ..Rules::default() });
    let end = BareEnd::new(&fabric, 4096);
    let more = Memory::new(8);
    // SAFETY: the memory is freed after the device is closed.
    let error = unsafe { end.device.register(more.start(), 8, Access::NONE) }.unwrap_err();
    assert!(matches!(error, DeviceError::Memory { asked: 8, .. }));
    end.device.deregister(end.region).unwrap();
    // SAFETY: as above.
    let region = unsafe { end.device.register(more.start(), 8, Access::NONE) }.unwrap();
    end.device.deregister(region).unwrap();
}
