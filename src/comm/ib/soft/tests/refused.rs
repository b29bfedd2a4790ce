//! What is refused, and what that leaves behind.

use super::*;
use crate::comm::ib::device::{DeviceError, DeviceEvent, State};

/// A work that fails takes its pair and that of its peer to the error state, and changes nothing. `peer`: that one fails.
fn fails(work: impl Fn(&BareEnd, &BareEnd) -> Work, manner: Manner, failure: WorkFailure, peer: bool) {
    hubs(3).into_iter().for_each(|hub| fails_over(&hub, &work, manner, failure, peer));
}

fn fails_over(hub: &Hub, work: impl Fn(&BareEnd, &BareEnd) -> Work, manner: Manner, failure: WorkFailure, peer: bool) {
    let [one, two] = [(); 2].map(|()| hub.end(4096));
    let [pair, other] = connect(&one, &two, manner);
    for end in [&one, &two] {
        end.memory.write(0, &pattern(1, 4096));
    }
    let [behind, silent] = [(101, true), (102, false)].map(|(id, signaled)| {
        let work = one.work(id, Opcode::Send { immediate: None }, 0, 8);
        Work { signaled, ..work }
    });
    let wrong = work(&one, &two);
    one.post(pair, &[wrong, behind, silent]);
    let flushed = |id| (id, Err(WorkFailure::Flushed));
    assert_eq!(one.outcomes(3), [(wrong.id, Err(failure)), flushed(101), flushed(102)]);
    assert_eq!(one.memory.read(0, 4096), pattern(1, 4096), "{failure} changed the memory of who posted");
    assert_eq!(two.memory.read(0, 4096), pattern(1, 4096), "{failure} changed the memory of the peer");
    let events = (one.device.event(), two.device.event());
    assert!(events == (None, None) || peer && events == (None, Some(DeviceEvent::PairFailed(other.number))), "{events:?}");

    one.post(pair, &[one.work(103, Opcode::Write { to: two.target(0) }, 0, 8)]);
    assert_eq!(one.outcomes(1), [flushed(103)]);
    let back = two.work(104, Opcode::Write { to: one.target(0) }, 0, 8);
    two.post(other, &[back]);
    let expected = if peer { WorkFailure::Flushed } else { WorkFailure::RetryExceeded };
    assert_eq!(two.outcomes(1), [(104, Err(expected))]);
    assert_eq!(one.memory.read(0, 4096), pattern(1, 4096));
}

#[test]
fn memory_outside_of_a_region_is_not_accessed() {
    let kinds = [|to| Opcode::Write { to }, |from| Opcode::Read { from }];
    for kind in kinds {
        for (at, len) in [(4090, 7), (4096, 1), (0, 4097 - 8)] {
            let work = |one: &BareEnd, two: &BareEnd| {
                let mut to = two.target(at);
                if at == 0 {
                    to.start -= 1;
                }
                one.work(7, kind(to), 0, len)
            };
            fails(work, MANNER, WorkFailure::RemoteAccess, true);
        }
    }
    fails(|one, two| one.work(7, add(two.target(4096), 1), 0, 8), MANNER, WorkFailure::RemoteAccess, true);
}

#[test]
fn a_wrong_key_opens_nothing() {
    let wrong = [
        |one: &BareEnd, _: &BareEnd| one.region.remote,
        |_: &BareEnd, two: &BareEnd| two.region.local,
        |_: &BareEnd, two: &BareEnd| two.region.remote + 2,
        |_: &BareEnd, _: &BareEnd| 0,
    ];
    for key in wrong {
        let target = |one: &BareEnd, two: &BareEnd| Target { key: key(one, two), ..two.target(0) };
        fails(|one, two| one.work(7, Opcode::Write { to: target(one, two) }, 0, 8), MANNER, WorkFailure::RemoteAccess, true);
        fails(|one, two| one.work(7, Opcode::Read { from: target(one, two) }, 0, 8), MANNER, WorkFailure::RemoteAccess, true);
        fails(|one, two| one.work(7, add(target(one, two), 1), 0, 8), MANNER, WorkFailure::RemoteAccess, true);
    }
}

#[test]
fn a_region_allows_what_it_was_registered_for() {
    let kinds = [
        (Access::REMOTE_WRITE, (|to| Opcode::Write { to }) as fn(Target) -> Opcode),
        (Access::REMOTE_READ, |from| Opcode::Read { from }),
        (Access::REMOTE_ATOMIC, |at| add(at, 1)),
    ];
    for (k, (needed, kind)) in kinds.into_iter().enumerate() {
        let others =
            kinds.iter().filter(|(access, _)| *access != needed).fold(Access::LOCAL_WRITE, |all, (access, _)| all | *access);
        // The pair does not allow it.
        fails(
            |one, two| one.work(7, kind(two.target(0)), 8, 8),
            Manner { access: others, ..MANNER },
            WorkFailure::RemoteInvalid,
            true,
        );
        // The memory does not, or does.
        for (access, outcome) in [(others, Err(WorkFailure::RemoteAccess)), (others | needed, Ok(()))] {
            for ([one, two], [pair, _]) in both(1, 4096) {
                two.memory.word(0).store(5, Ordering::Relaxed);
                // SAFETY: as in `BareEnd::with`.
                let region = unsafe { two.device.register(two.memory.start(), 64, access) }.unwrap();
                one.post(pair, &[one.work(7, kind(Target { key: region.remote, ..two.target(0) }), 8, 8)]);
                assert_eq!(one.completions(1)[0].outcome.map(drop), outcome, "kind {k} with {access:?}");
                assert_eq!(load(&two, 0) == 5, outcome.is_err() || needed == Access::REMOTE_READ);
            }
        }
    }
}

#[test]
fn a_local_key_covers_the_memory_and_allows_what_is_written() {
    for piece in [|one: &BareEnd| one.piece(4090, 7), |one: &BareEnd| WorkPiece { key: one.region.remote, ..one.piece(0, 8) }] {
        let work =
            |one: &BareEnd, two: &BareEnd| Work { local: piece(one), ..one.work(7, Opcode::Write { to: two.target(0) }, 0, 8) };
        fails(work, MANNER, WorkFailure::LocalProtection, false);
    }
    let constant = |one: &BareEnd| {
        // SAFETY: as in `BareEnd::with`.
        let region = unsafe { one.device.register(one.memory.start(), 64, Access::NONE) }.unwrap();
        WorkPiece { key: region.local, ..one.piece(0, 8) }
    };
    let read =
        |one: &BareEnd, two: &BareEnd| Work { local: constant(one), ..one.work(7, Opcode::Read { from: two.target(64) }, 0, 8) };
    fails(read, MANNER, WorkFailure::LocalProtection, false);
    let ([one, two], [pair, _]) = two_ends(1, 4096);
    one.post(pair, &[Work { local: constant(&one), ..one.work(7, Opcode::Write { to: two.target(64) }, 0, 8) }]);
    assert_eq!(one.outcomes(1), [(7, Ok(Done::Written))]);
}

#[test]
fn what_is_not_registered_any_more_is_not_accessed() {
    for local in [false, true] {
        for ([one, two], [pair, _]) in both(1, 4096) {
            let end = if local { &one } else { &two };
            end.device.deregister(end.region).unwrap();
            assert!(end.device.deregister(end.region).is_err());
            one.post(pair, &[one.work(7, Opcode::Write { to: two.target(0) }, 0, 8)]);
            let failure = if local { WorkFailure::LocalProtection } else { WorkFailure::RemoteAccess };
            assert_eq!(one.outcomes(1), [(7, Err(failure))]);
        }
    }
}

#[test]
fn a_peer_that_fails_may_hear_of_it_or_not() {
    let hears = |seed| {
        let ([one, two], [pair, other]) = two_ends(seed, 4096);
        one.post(pair, &[one.work(7, Opcode::Write { to: two.target(4096) }, 0, 8)]);
        assert_eq!(one.outcomes(1), [(7, Err(WorkFailure::RemoteAccess))]);
        let event = two.device.event();
        assert!(event.is_none_or(|event| event == DeviceEvent::PairFailed(other.number)));
        assert_eq!(two.device.wait(Duration::ZERO), Ok(false), "an event is reported once");
        event.is_some()
    };
    assert!((10..90).contains(&(0..100).filter(|&seed| hears(seed)).count()));
}

#[test]
fn an_atomic_needs_an_aligned_word() {
    for at in [1, 4, 12] {
        fails(|one, two| one.work(7, add(two.target(at), 1), 0, 8), MANNER, WorkFailure::RemoteInvalid, true);
    }
}

#[test]
fn a_device_refuses_what_does_not_fit_and_takes_what_was_in_front() {
    let fabric = limited(|limits| limits.longest_message = 1000);
    let [one, two] = [(); 2].map(|()| BareEnd::new(&fabric, 4096));
    let [pair, _] = connect(&one, &two, MANNER);
    let write = |id, len| one.work(id, Opcode::Write { to: two.target(0) }, 0, len);
    let inline = |work| Work { inline: true, ..work };
    let read = one.work(4, Opcode::Read { from: two.target(0) }, 0, 8);
    for (wrong, why) in [
        (inline(write(4, 221)), "221 bytes inline; at most 220 are allowed"),
        (inline(read), "only a send or a write can be inline"),
        (write(4, 1001), "1001 bytes; at most 1000 are allowed"),
        (one.work(4, add(two.target(0), 1), 0, 4), "4 bytes for the old value of an atomic, which has 8"),
    ] {
        let refused = one.try_post(pair, &[inline(write(3, 220)), wrong, write(5, 8)]).unwrap_err();
        assert_eq!(refused.to_string(), format!("work request 0x4, number 1 of its chain: {why}"));
        assert_eq!(one.outcomes(1), [(3, Ok(Done::Written))]);
    }
    one.post(pair, &[write(6, 1000)]);
    assert_eq!(one.outcomes(1), [(6, Ok(Done::Written))]);
}

#[test]
fn a_pair_sends_and_steps_only_in_its_states() {
    let fabric = fabric(1);
    let [one, two] = [(); 2].map(|()| BareEnd::new(&fabric, 64));
    let [pair, other] = [&one, &two].map(|end| end.device.create(4).unwrap());
    let work = one.work(1, Opcode::Write { to: two.target(0) }, 0, 8);
    let address = two.device.address();
    let steps = steps(pair, &address, other, MANNER);
    for (k, state) in [State::Reset, State::Init, State::ReadyToReceive].into_iter().enumerate() {
        let asked = "a post";
        assert_eq!(one.try_post(pair, &[work]), Err(DeviceError::State { number: pair.number, state, asked }));
        for step in steps.iter().enumerate().filter(|(at, _)| *at != k).map(|(_, step)| *step) {
            assert_eq!(one.device.modify(pair, step), Err(DeviceError::State { number: pair.number, state, asked: step.name() }));
        }
        one.device.modify(pair, steps[k]).unwrap();
    }
    assert!(steps.iter().all(|step| one.device.modify(pair, *step).is_err()));
    connect_side(&two, other, &one, pair, MANNER);
    one.post(pair, &[work]);
    assert_eq!(one.outcomes(1), [(1, Ok(Done::Written))]);
    one.device.modify(pair, To::Error).unwrap();
    assert!(steps.iter().all(|step| one.device.modify(pair, *step).is_err()));
    one.device.modify(pair, To::Reset).unwrap();
    assert!(one.try_post(pair, &[work]).is_err());
    one.device.modify(pair, steps[0]).unwrap();
    let text = one.device.modify(pair, steps[2]).unwrap_err().to_string();
    assert_eq!(text, "queue pair 0x11 is in the state Init, which does not allow the step to ReadyToSend");
}

#[test]
fn a_step_beyond_the_limits_is_refused() {
    let fabric = fabric(1);
    let end = BareEnd::new(&fabric, 64);
    let pair = end.device.create(4).unwrap();
    end.device.modify(pair, To::Init { access: Access::ALL }).unwrap();
    let peer = &end.device.address();
    let receive = |number, first_packet, answer_depth, receive_timer| {
        end.device.modify(pair, To::ReadyToReceive { peer, number, first_packet, answer_depth, receive_timer })
    };
    assert!(receive(1 << 24, 0, 1, 1).is_err());
    assert!(receive(1, 1 << 24, 1, 1).is_err());
    let error = receive(1, 0, 17, 1).unwrap_err();
    assert_eq!(error, DeviceError::Limit { what: "answers at once", asked: 17, limit: 16 });
    assert!(receive(1, 0, 1, 32).is_err());
    receive((1 << 24) - 1, (1 << 24) - 1, 16, 31).unwrap();
    let send = |first_packet, read_depth, timeout, retries, receive_retries| {
        end.device.modify(pair, To::ReadyToSend { first_packet, read_depth, timeout, retries, receive_retries })
    };
    assert!(send(1 << 24, 1, 1, 1, 1).is_err());
    assert!(send(0, 17, 1, 1, 1).is_err());
    assert!(send(0, 1, 32, 1, 1).is_err());
    assert!(send(0, 1, 1, 8, 1).is_err());
    assert!(send(0, 1, 1, 1, 8).is_err());
    send(0, 16, 31, 7, 7).unwrap();
}

#[test]
fn a_device_has_so_much_and_no_more() {
    let fabric = limited(|limits| (limits.pairs, limits.send_depth, limits.completions) = (2, 16, 1024));
    assert!(fabric.open(Depths { completions: 1025, ..DEPTHS }).is_err());
    assert!(fabric.open(Depths { datagram_sends: 17, ..DEPTHS }).is_err());
    let depths = Depths { shared_receives: 2, datagram_receives: 1, ..DEPTHS };
    let end = BareEnd::with(fabric.open(depths).unwrap(), 64);
    assert_eq!(end.device.create(17), Err(DeviceError::Limit { what: "works of a send queue", asked: 17, limit: 16 }));
    let first = end.device.create(16).unwrap();
    end.device.create(16).unwrap();
    assert_eq!(end.device.create(1), Err(DeviceError::Limit { what: "queue pairs", asked: 3, limit: 2 }));
    end.device.destroy(first).unwrap();
    end.device.create(1).unwrap();
    for (queue, depth) in [(Queue::Shared, 2), (Queue::Datagram, 1)] {
        // SAFETY: the memory lives as long as the device.
        let post = || unsafe { end.device.post_receive(queue, 1, end.piece(0, 64)) };
        (0..depth).for_each(|_| post().unwrap());
        assert!(matches!(post(), Err(DeviceError::Full { depth: at, .. }) if at == depth));
    }
}
