//! What moves, and what is reported of it.

use super::*;

#[test]
fn bytes_move_both_ways() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    say(&format!("{:?} and {:?}; {:?}", a.device.address(), b.device.address(), a.device.limits()));
    let (to_b, _) = connect(&a, &b, 16);
    for at in 0..4096 {
        a.set(8 * at, at as u64 + 1);
    }
    assert_eq!(a.done(to_b, Opcode::Write { to: b.target(65536) }, a.piece(0, 32768)), Ok(Done::Written));
    assert!((0..4096).all(|at| b.word(65536 + 8 * at) == at as u64 + 1));
    assert_eq!(a.done(to_b, Opcode::Read { from: b.target(65536) }, a.piece(32768, 32768)), Ok(Done::Read));
    assert!((0..4096).all(|at| a.word(32768 + 8 * at) == at as u64 + 1));
    assert_eq!(a.done(to_b, Opcode::Write { to: b.target(0) }, a.piece(0, 0)), Ok(Done::Written), "of nothing");
    if a.device.limits().inline >= 8 {
        a.set(0, 99);
        let inline = Work {
            id: 1,
            kind: Opcode::Write { to: b.target(8) },
            local: WorkPiece { key: 0, ..a.piece(0, 8) },
            signaled: true,
            inline: true,
            fence: false,
        };
        assert_eq!(a.post(to_b, &[inline]), Ok(1));
        a.set(0, 0);
        assert_eq!(a.completions(1)[0].outcome, Ok(Done::Written));
        assert_eq!(b.word(8), 99, "the data left with the post");
    }
    say("write and read of 32 KiB, write of nothing, inline write: ok");
}

#[test]
fn sends_find_receives_of_the_shared_queue() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let ((to_b, of_b), (second, _)) = (connect(&a, &b, 16), connect(&a, &b, 16));
    b.receive(Queue::Shared, 41, 0, 100);
    b.receive(Queue::Shared, 42, 4096, 100);
    a.set(0, 0xfeed);
    assert_eq!(a.done(to_b, Opcode::Send { immediate: Some(0x0102_0304) }, a.piece(0, 60)), Ok(Done::Sent));
    assert_eq!(a.done(second, Opcode::Send { immediate: None }, a.piece(0, 8)), Ok(Done::Sent));
    let found = b.completions(2);
    let received = |len, immediate| Ok(Done::Received { len, immediate, from: None });
    assert_eq!((found[0].id, found[0].number, found[0].outcome), (41, of_b.number, received(60, Some(0x0102_0304))));
    assert_eq!((found[1].id, found[1].outcome), (42, received(8, None)));
    assert_eq!((b.word(0), b.word(4096)), (0xfeed, 0xfeed));
    assert_eq!(a.done(to_b, Opcode::Send { immediate: None }, a.piece(0, 8)), Err(WorkFailure::ReceiveRetryExceeded));
    let (to_b, _) = connect(&a, &b, 16);
    b.receive(Queue::Shared, 43, 0, 16);
    let long = a.done(to_b, Opcode::Send { immediate: None }, a.piece(0, 64));
    let short = b.completions(1)[0];
    say(&format!("sends to two pairs with one receive queue: ok; a message of 64 to 16 bytes: {long:?}, {short:?}"));
    assert!(matches!(long, Err(WorkFailure::RemoteInvalid | WorkFailure::RemoteOperation)), "{long:?}");
    // Soft-RoCE does not say that it is the length.
    assert_eq!(short.id, 43);
    assert!(matches!(short.outcome, Err(WorkFailure::LocalLength | WorkFailure::Other(_))), "{short:?}");
}

#[test]
fn atomics_return_the_old_value() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, _) = connect(&a, &b, 64);
    b.set(64, 1000);
    let at = b.target(64);
    let local = a.piece(0, 8);
    let step = |kind, old, new| {
        assert_eq!(a.done(to_b, kind, local), Ok(Done::Swapped));
        assert_eq!((a.word(0), b.word(64)), (old, new), "{kind:?}");
    };
    step(Opcode::FetchAdd { at, operand: 5 }, 1000, 1005);
    step(Opcode::FetchAdd { at, operand: u64::MAX }, 1005, 1004);
    step(Opcode::CompareSwap { at, expected: 1004, value: 42 }, 1004, 42);
    step(Opcode::CompareSwap { at, expected: 1004, value: 43 }, 42, 42);
    // Two pairs of two devices add to one word at once.
    let (also_b, _) = connect(&b, &b, 64);
    let add = |id, local, signaled| Work {
        id,
        kind: Opcode::FetchAdd { at, operand: 1 },
        local,
        signaled,
        inline: false,
        fence: false,
    };
    for round in 0..50 {
        for (end, pair) in [(&a, to_b), (&b, also_b)] {
            let works: Vec<Work> = (0..10).map(|at| add(at, end.piece(128 + 8 * at as usize, 8), at == 9)).collect();
            assert_eq!(end.post(pair, &works), Ok(10), "round {round}");
        }
        for end in [&a, &b] {
            assert_eq!(end.completions(1)[0].outcome, Ok(Done::Swapped));
        }
    }
    assert_eq!(b.word(64), 42 + 1000);
    let odd = Work { kind: Opcode::FetchAdd { at: b.target(68), operand: 1 }, ..add(9, local, true) };
    let odd = a.post(to_b, &[add(8, local, true), odd]);
    let before = a.completions(1)[0].outcome;
    say(&format!("atomics: ok; 1000 additions of two pairs: {}; at an odd address: {odd:?}", b.word(64)));
    assert_eq!(before, Ok(Done::Swapped), "what was posted in front of it");
    match odd {
        // An adapter asks its peer.
        Ok(taken) => assert_eq!((taken, a.completions(1)[0].outcome), (2, Err(WorkFailure::RemoteInvalid))),
        Err(error) => assert!(matches!(error, DeviceError::Work { at: 1, id: 9, .. }), "{error}"),
    }
}

#[test]
fn datagrams_carry_the_senders_address() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (here, there) = (a.device.address(), b.device.address());
    assert_eq!(there.key, 0x1234, "without the highest bit");
    let handle = a.device.handle(&there).expect("a handle");
    b.receive(Queue::Datagram, 51, 0, ROUTE_HEADER + 1024);
    a.set(0, 0xabcd);
    let datagram = Datagram {
        id: 5,
        to: handle,
        number: there.number,
        key: there.key,
        local: a.piece(0, 200),
        signaled: true,
        inline: false,
    };
    // SAFETY: the end's memory.
    let post = |datagram: &Datagram| unsafe { a.device.post_datagram(datagram) };
    assert_eq!(post(&datagram), Ok(()));
    assert_eq!(a.completions(1)[0].outcome, Ok(Done::Sent));
    let found = b.completions(1)[0];
    assert_eq!((found.id, found.number), (51, there.number));
    let done = Done::Received { len: ROUTE_HEADER + 200, immediate: None, from: Some(here.number) };
    assert_eq!(found.outcome, Ok(done));
    assert_eq!(b.word(ROUTE_HEADER), 0xabcd);
    // SAFETY: inside the memory; nobody writes there any more.
    let header = unsafe { std::slice::from_raw_parts(b.start, ROUTE_HEADER) }.to_vec();
    let from = if here.gid[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] {
        assert_eq!(header[32..36], here.gid[12..], "the sender's IPv4 address");
        "IPv4"
    } else {
        assert_eq!(header[8..24], here.gid, "the sender's GID");
        "GID"
    };
    // Dropped: another key, no receive. The next one arrives.
    b.receive(Queue::Datagram, 52, 0, ROUTE_HEADER + 1024);
    for lost in [Datagram { key: 0x9999, id: 6, ..datagram }, Datagram { number: there.number ^ 0x7000, id: 7, ..datagram }] {
        assert_eq!(post(&lost), Ok(()));
        assert_eq!(a.completions(1)[0].outcome, Ok(Done::Sent));
    }
    assert_eq!(post(&Datagram { id: 8, ..datagram }), Ok(()));
    assert_eq!((a.completions(1)[0].id, b.completions(1)[0].id), (8, 52));
    let long = post(&Datagram { local: a.piece(0, a.device.limits().longest_datagram + 1), ..datagram });
    assert!(matches!(long, Err(DeviceError::Work { id: 5, .. })), "{long:?}");
    a.device.release(handle).expect("released");
    assert!(matches!(post(&datagram), Err(DeviceError::Unknown { what: "handle", .. })));
    say(&format!("datagram of 200 bytes behind a route header with the sender's {from}, wrong Q_Key and number dropped: ok"));
}

#[test]
fn chains_are_taken_as_far_as_there_is_room() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, _) = connect(&a, &b, 100);
    let write = |id: u64, signaled| Work {
        id,
        kind: Opcode::Write { to: b.target(8 * id as usize) },
        local: a.piece(8 * id as usize, 8),
        signaled,
        inline: false,
        fence: false,
    };
    (0..100).for_each(|at| a.set(8 * at, 500 + at as u64));
    let works: Vec<Work> = (0..100).map(|id| write(id, id == 99)).collect();
    assert_eq!(a.post(to_b, &works), Ok(100), "a chain longer than a piece of it");
    let found = a.completions(1);
    assert_eq!((found[0].id, found[0].outcome), (99, Ok(Done::Written)));
    assert!((0..100).all(|at| b.word(8 * at) == 500 + at as u64));
    assert_eq!(drain(&a), [], "only the last was signaled");
    // A work in the middle that is refused: those in front of it were taken.
    let too_long = Work { inline: true, local: a.piece(0, 60_000), ..write(7, true) };
    let refused = a.post(to_b, &[write(5, true), write(6, true), too_long, write(8, true)]);
    assert!(matches!(refused, Err(DeviceError::Work { at: 2, id: 7, .. })), "{refused:?}");
    assert_eq!(a.completions(2).iter().map(|found| found.id).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(drain(&a), []);
    // A pair whose peer does not answer keeps its works: its queue fills up.
    let alone = a.device.create(16).expect("a pair");
    let nobody = b.device.create(16).expect("a pair");
    ready(&a, alone, &b, nobody, Access::ALL);
    let mut taken = 0;
    let full = loop {
        let now = a.post(alone, &works[..10]).expect("posted");
        taken += now;
        if now < 10 || taken > 10_000 {
            break now;
        }
    };
    assert!((16..10_000).contains(&taken), "{taken}");
    let found = a.completions(taken);
    assert_eq!(found[0].outcome, Err(WorkFailure::RetryExceeded));
    assert!(found[1..].iter().all(|found| found.outcome == Err(WorkFailure::Flushed)));
    let ids: Vec<u64> = found.iter().map(|found| found.id).collect();
    assert_eq!(ids, (0..taken as u64).map(|at| at % 10).collect::<Vec<_>>(), "in order");
    assert_eq!(drain(&a), [], "no more were taken than was said");
    say(&format!(
        "chain of 100: ok; a send queue of 16 took {taken} (of the last 10: {full}), without a peer: 1 RetryExceeded, others Flushed"
    ));
}
