//! What is refused, what fails, and which threads wake.

use super::*;

#[test]
fn wrong_keys_fail_and_the_pair_comes_back() {
    let Some((a, b)) = ends(Access::LOCAL_WRITE | Access::REMOTE_READ) else { return };
    let (to_b, of_b) = connect(&a, &b, 16);
    let mut seen = Vec::new();
    let wrong_key = Target { key: b.region.remote ^ 0x5a_5a00, ..b.target(0) };
    let beyond = b.target(MEMORY - 4);
    for (what, kind, local) in [
        ("wrong key", Opcode::Read { from: wrong_key }, a.piece(0, 8)),
        ("beyond the end", Opcode::Read { from: beyond }, a.piece(0, 8)),
        ("no right to write", Opcode::Write { to: b.target(0) }, a.piece(0, 8)),
        ("no right to add", Opcode::FetchAdd { at: b.target(0), operand: 1 }, a.piece(0, 8)),
        ("wrong local key", Opcode::Read { from: b.target(0) }, WorkPiece { key: 0x77_7777, ..a.piece(0, 8) }),
    ] {
        let outcome = a.done(to_b, kind, local);
        let remote = what != "wrong local key";
        assert_eq!(outcome, Err(if remote { WorkFailure::RemoteAccess } else { WorkFailure::LocalProtection }), "{what}");
        let flushed = a.done(to_b, Opcode::Read { from: b.target(0) }, a.piece(0, 8));
        assert_eq!(flushed, Err(WorkFailure::Flushed), "{what}");
        let events: Vec<DeviceEvent> = std::iter::from_fn(|| b.device.event()).collect();
        assert!(events.iter().all(|&event| event == DeviceEvent::PairFailed(of_b.number)), "{events:?}");
        seen.push(format!("{what}: {outcome:?}, then {flushed:?}, peer's events {events:?}"));
        for (end, pair) in [(&a, to_b), (&b, of_b)] {
            end.device.modify(pair, To::Reset).expect("reset");
        }
        let _ = (a.device.event(), drain(&a), drain(&b));
        ready(&a, to_b, &b, of_b, Access::ALL);
        ready(&b, of_b, &a, to_b, Access::ALL);
        assert_eq!(a.done(to_b, Opcode::Read { from: b.target(0) }, a.piece(0, 8)), Ok(Done::Read), "behind {what}");
    }
    assert_eq!((0..MEMORY / 8).filter(|at| b.word(8 * at) != 0).count(), 0, "nothing was written");
    say(&format!("{}; each pair worked again after a reset", seen.join("; ")));
}

#[test]
fn a_pair_may_allow_less_than_its_memory() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, of_b) = (a.device.create(4).expect("a pair"), b.device.create(4).expect("a pair"));
    ready(&a, to_b, &b, of_b, Access::ALL);
    ready(&b, of_b, &a, to_b, Access::REMOTE_READ);
    b.set(0, 9);
    assert_eq!(a.done(to_b, Opcode::Read { from: b.target(0) }, a.piece(0, 8)), Ok(Done::Read));
    assert_eq!(a.word(0), 9);
    let write = a.done(to_b, Opcode::Write { to: b.target(8) }, a.piece(0, 8));
    assert!(matches!(write, Err(WorkFailure::RemoteAccess | WorkFailure::RemoteInvalid)), "{write:?}");
    assert_eq!(b.word(8), 0);
    // The other side, to which nothing was said.
    let back = b.done(of_b, Opcode::Read { from: a.target(0) }, b.piece(0, 8));
    say(&format!("a write to a pair that allows reads: {write:?}; a read back by the other side: {back:?}"));
}

#[test]
fn states_are_kept() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let pair = a.device.create(4).expect("a pair");
    let write = Work {
        id: 1,
        kind: Opcode::Write { to: b.target(0) },
        local: a.piece(0, 8),
        signaled: false,
        inline: false,
        fence: false,
    };
    let state = |result, expected| assert!(matches!(result, Err(DeviceError::State { state, .. }) if state == expected));
    state(a.post(pair, &[write]).map(drop), State::Reset);
    let send = To::ReadyToSend { first_packet: 0, read_depth: 1, timeout: 14, retries: 6, receive_retries: 1 };
    state(a.device.modify(pair, send), State::Reset);
    a.device.modify(pair, To::Init { access: Access::ALL }).expect("init");
    state(a.device.modify(pair, To::Init { access: Access::ALL }), State::Init);
    state(a.post(pair, &[write]).map(drop), State::Init);
    // From any state, a new pair's as well, to the error state, where works are flushed though nobody asked for their completion.
    a.device.modify(pair, To::Reset).expect("reset");
    a.device.modify(pair, To::Error).expect("error");
    assert_eq!(a.post(pair, &[write, write]), Ok(2));
    assert!(a.completions(2).iter().all(|found| found.outcome == Err(WorkFailure::Flushed)));
    a.device.modify(pair, To::Reset).expect("reset");
    a.device.destroy(pair).expect("destroyed");
    let unknown = |result| assert!(matches!(result, Err(DeviceError::Unknown { what: "queue pair", .. })));
    unknown(a.device.destroy(pair));
    unknown(a.device.modify(pair, To::Reset));
    unknown(a.post(pair, &[write]).map(drop));
    assert!(matches!(a.device.create(1 << 40), Err(DeviceError::Limit { .. })));
    let pairs: HashSet<u64> = (0..20).map(|_| a.device.create(4).expect("a pair").id).collect();
    assert_eq!(pairs.len(), 20);
    // SAFETY: refused.
    let contradiction = unsafe { a.device.register(a.start, 8, Access::REMOTE_WRITE) };
    assert!(matches!(contradiction, Err(DeviceError::Invalid(_))));
    say("states, unknown pairs and limits: ok");
}

#[test]
fn waits_end_by_completions_events_and_limits() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let (to_b, of_b) = connect(&a, &b, 16);
    let short = Duration::from_millis(20);
    a.device.arm(Wakes::All).expect("armed");
    assert_eq!(a.device.wait(short), Ok(false), "nothing comes");
    let write = |signaled| Work {
        id: 1,
        kind: Opcode::Write { to: b.target(0) },
        local: a.piece(0, 8),
        signaled,
        inline: false,
        fence: false,
    };
    // A completion from before the second call of `arm` wakes nobody.
    assert_eq!(a.post(to_b, &[write(true)]), Ok(1));
    assert_eq!(a.device.wait(WAIT), Ok(true));
    assert_eq!(a.device.wait(short), Ok(false), "not armed again");
    assert_eq!(drain(&a).len(), 1);
    a.device.arm(Wakes::All).expect("armed");
    assert_eq!(a.post(to_b, &[write(true)]), Ok(1));
    while drain(&a).is_empty() {
        thread::yield_now();
    }
    a.device.arm(Wakes::All).expect("armed");
    assert_eq!(a.device.wait(short), Ok(false), "what came before counts for nothing");
    // What that call asked for still holds, until something comes.
    assert_eq!(a.post(to_b, &[write(true)]), Ok(1));
    assert_eq!((a.device.wait(WAIT), drain(&a).len()), (Ok(true), 1));
    // What this side sends is no arrival here, and one there.
    a.device.arm(Wakes::Arrivals).expect("armed");
    b.device.arm(Wakes::Arrivals).expect("armed");
    b.receive(Queue::Shared, 5, 0, 64);
    assert_eq!(a.post(to_b, &[write(true), Work { kind: Opcode::Send { immediate: None }, ..write(true) }]), Ok(2));
    assert_eq!((b.device.wait(WAIT), a.device.wait(short)), (Ok(true), Ok(false)));
    assert_eq!((a.completions(2).len(), b.completions(1).len()), (2, 1));
    // One thread sleeps, and another one's post wakes it.
    a.device.arm(Wakes::All).expect("armed");
    let woken = thread::scope(|scope| {
        let sleeper = scope.spawn(|| a.device.wait(Duration::from_secs(30)));
        thread::sleep(short);
        assert_eq!(a.post(to_b, &[write(true)]), Ok(1));
        sleeper.join().expect("no panic")
    });
    assert_eq!((woken, drain(&a).len()), (Ok(true), 1));
    // The peer's pair fails: no completion says so there, as nothing was posted.
    let wrong = Work { kind: Opcode::Write { to: Target { key: 1, ..b.target(0) } }, ..write(true) };
    b.device.arm(Wakes::All).expect("armed");
    assert_eq!(a.post(to_b, &[wrong]), Ok(1));
    assert_eq!(a.completions(1)[0].outcome, Err(WorkFailure::RemoteAccess));
    let woken = b.device.wait(Duration::from_millis(200)).expect("waited");
    let event = b.device.event();
    assert_eq!(woken, event.is_some());
    assert!(event.is_none_or(|event| event == DeviceEvent::PairFailed(of_b.number)));
    say(&format!("waits: ok; the peer of a pair with a wrong key got the event {event:?}"));
}

#[test]
fn too_many_completions_are_fatal() {
    let Some((a, b)) = ends(Access::ALL) else { return };
    let mut pairs = Vec::new();
    let room = a.device.limits().completions;
    let nobody = b.device.create(4).expect("a pair");
    // Pairs in the error state flush what they get, and nobody polls.
    for _ in 0..=room / 64 {
        let pair = a.device.create(64).expect("a pair");
        ready(&a, pair, &b, nobody, Access::ALL);
        a.device.modify(pair, To::Error).expect("error");
        pairs.push(pair);
    }
    let write = Work {
        id: 1,
        kind: Opcode::Write { to: b.target(0) },
        local: a.piece(0, 8),
        signaled: true,
        inline: false,
        fence: false,
    };
    let taken: usize = pairs.iter().map(|&pair| a.post(pair, &[write; 64]).expect("posted")).sum();
    assert!(taken > room, "{taken} of {room}");
    assert_eq!(a.device.wait(WAIT), Ok(true));
    assert_eq!(a.device.event(), Some(DeviceEvent::Fatal));
    let failed = |result: Refusable<()>| assert!(matches!(result, Err(DeviceError::Fatal { .. })), "{result:?}");
    failed(a.device.poll(&mut Vec::new(), 1));
    failed(a.device.arm(Wakes::All));
    failed(a.post(pairs[0], &[write]).map(drop));
    say(&format!("{taken} completions in a queue of {room}: Fatal"));
}

#[test]
fn choices_that_lead_nowhere_are_explained() {
    let open = |device, gid| Verbs::open(&PortChoice::parse(device, gid).expect("a choice"), &OPENING).map(drop);
    let Some((a, _)) = ends(Access::ALL) else { return };
    let VerbsPort { device, number, gid, .. } = &a.device.port;
    let port = format!("{device}:{number}");
    let index = gid.index.to_string();
    assert_eq!(open(Some(&port), Some(&index)), Ok(()));
    let lines: Vec<String> =
        [(Some("nobody0".to_owned()), None), (Some(format!("{device}:99")), None), (Some(port.clone()), Some("200"))]
            .iter()
            .map(|(device, gid)| open(device.as_deref(), *gid).expect_err("leads nowhere").to_string())
            .collect();
    for (line, said) in lines.iter().zip(["no such adapter; there is ", "has the ports 1 to ", "is empty; there is "]) {
        assert!(line.starts_with("GA_IB_") && line.contains(said) && !line.contains('\n'), "{line}");
    }
    say(&lines.join("\n"));
}

/// In a process whose memory may be pinned up to a limit.
#[test]
fn memory_beyond_the_limit_is_refused_with_a_reason() {
    let Some((a, _)) = ends(Access::ALL) else { return };
    let Some(limit) = getrlimit(Resource::Memlock).current.filter(|&limit| limit < 1 << 26) else {
        return say("skipped: libibverbs: pinned memory: ulimit -l allows more than is tried");
    };
    let layout = Layout::from_size_align(2 * limit as usize, 4096).expect("a layout");
    // SAFETY: a size that is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    // SAFETY: given back after it was deregistered.
    match unsafe { a.device.register(start, layout.size(), Access::ALL) } {
        Ok(region) => {
            a.device.deregister(region).expect("deregistered");
            say("skipped: libibverbs: pinned memory: this user may pin beyond the limit");
        }
        Err(error) => {
            assert!(matches!(error, DeviceError::Memory { asked, .. } if asked == layout.size()), "{error}");
            assert!(error.to_string().contains("ulimit -l"), "{error}");
            say(&error.to_string());
        }
    }
    // SAFETY: allocated so; nobody uses it.
    unsafe { dealloc(start, layout) };
}
