//! What the shim asks of RMA and VELO: by a stub of them that records its calls, with headers whose values nobody can guess.

use super::{
    adapter::ExtollAdapter,
    engines::{CommandBytes, Engines, NotedCommand, Notification, PACKET},
    library::{LoadedEngines, SHIM},
};
use crate::comm::{
    kit::slots::Slots,
    rma::adapter::{RmaAccess, RmaAdapter, RmaDone, RmaWork},
    testing::stubbed::Stubbed,
};

/// The stub's node, the process there to RMA, and to VELO.
const ADDRESS: u64 = 0x0004_0102_0009_0102;

/// Of the first and the second memory that the stub registers.
const FIRST: u64 = 1 << 32;
const SECOND: u64 = 2 << 32;

fn stubbed(test: &str) -> Option<Stubbed> {
    Stubbed::new(&SHIM, "extoll_stub.c", test)
}

/// Engines of rank 2, which has met itself, and their stub without the calls for that.
fn opened(test: &str) -> Option<(Stubbed, LoadedEngines)> {
    let stub = stubbed(test)?;
    let mut engines = LoadedEngines::open(stub.path()).unwrap();
    engines.set_rank(2);
    engines.meet(2, ADDRESS).unwrap();
    stub.calls();
    Some((stub, engines))
}

#[test]
fn both_engines_are_opened_connected_and_closed() {
    let Some(stub) = stubbed("opens") else { return };
    let mut engines = LoadedEngines::open(stub.path()).unwrap();
    assert_eq!(engines.address(), ADDRESS);
    engines.meet(5, 0x0007_0304_0006_0203).unwrap();
    engines.close();
    let calls = [
        "rma2_open",
        "velo2_open",
        "rma2_connect port, node 203, vpid 6, default",
        "velo2_connect port, node 304, vpid 7",
        "rma2_close port",
        "velo2_close port",
    ];
    assert_eq!(stub.calls(), calls);
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let Some(stub) = stubbed("missing") else { return };
    for (told, why, calls) in [
        ("RMA2_ERR_NO_MEM", "rma2_open: no memory", &["rma2_open"][..]),
        ("VELO2_RET_INV_MSG", "velo2_open: error 1", &["rma2_open", "velo2_open", "rma2_close port"]),
    ] {
        stub.tell(told);
        assert_eq!(LoadedEngines::open(stub.path()).unwrap_err(), why);
        assert_eq!(stub.calls(), calls);
    }
    let mut engines = LoadedEngines::open(stub.path()).unwrap();
    for (told, why) in [("RMA2_ERR_INV_HANDLE", "rma2_connect: invalid handle"), ("VELO2_RET_INV_MSG", "velo2_connect: error 1")]
    {
        stub.tell(told);
        assert_eq!(engines.meet(5, ADDRESS).unwrap_err(), why);
    }
    assert_eq!(engines.send(5, &[1]).unwrap_err(), "a rank that was not met");
    let said = LoadedEngines::open("/no/such/shim.so").unwrap_err();
    assert!(said.starts_with("GA_EXTOLL=/no/such/shim.so: ") && said.ends_with(SHIM.command), "{said}");
}

#[test]
fn the_readme_has_the_command() {
    assert!(include_str!("../../../README.md").contains(SHIM.command));
}

/// EXTOLL registers whole pages, and none twice.
#[test]
fn pages_are_registered_once_and_as_long_as_a_range_is_on_them() {
    let Some((stub, mut engines)) = opened("pages") else { return };
    let memory = Slots::new(4, 4096);
    let start = memory.memory().0;
    // SAFETY: nobody uses the memory.
    let register =
        |engines: &mut LoadedEngines, at: usize, len| unsafe { engines.register(start.wrapping_add(at), len, RmaAccess::Local) };
    let (outer, address) = register(&mut engines, 4096 + 40, 5000).unwrap();
    assert_eq!(address, FIRST + 40);
    let second = start.wrapping_add(4096);
    assert_eq!(stub.calls(), [format!("rma2_register port, address {second:?}, size 8192")]);
    // The same pages, or some of them.
    let (inner, address) = register(&mut engines, 2 * 4096 + 8, 16).unwrap();
    assert_eq!(address, FIRST + 4096 + 8);
    for (at, len) in [(0, 4097), (4095, 2), (0, 4 * 4096), (3 * 4096 - 1, 2)] {
        assert!(register(&mut engines, at, len).unwrap_err().contains("takes none twice"), "{at} {len}");
    }
    // Peers may not share what is not for them.
    // SAFETY: as above.
    let refused = unsafe { engines.register(start.wrapping_add(4096), 8, RmaAccess::Remote) };
    assert!(refused.unwrap_err().contains("takes none twice"));
    assert!(stub.calls().is_empty());
    // Those beside them.
    let (before, address) = register(&mut engines, 4095, 1).unwrap();
    assert_eq!((address, stub.calls()), (SECOND + 4095, vec![format!("rma2_register port, address {start:?}, size 4096")]));
    engines.unregister(outer);
    engines.unregister(before);
    assert_eq!(stub.calls(), [format!("rma2_unregister port, address {start:?}")]);
    // The outer range may be mapped to other pages now.
    assert!(register(&mut engines, 4096, 8).is_err() && register(&mut engines, 2 * 4096 + 8, 16).is_err());
    engines.unregister(inner);
    engines.unregister(inner);
    assert_eq!(stub.calls(), [format!("rma2_unregister port, address {second:?}")]);
    stub.tell("RMA2_ERR_NO_MEM");
    assert_eq!(register(&mut engines, 0, 1).unwrap_err(), "rma2_register: no memory");
    assert!(register(&mut engines, 0, 4 * 4096).is_ok());
}

/// `rma2_post_…_bt_direct(port, handle, local, size, remote, notification, modifier)`, for both directions.
#[test]
fn commands_name_the_bytes_here_first_and_the_notification_that_tells() {
    let Some((stub, mut engines)) = opened("commands") else { return };
    let memory = Slots::new(2, 4096);
    // SAFETY: only the stub uses it, in calls of this thread.
    unsafe { engines.register(memory.memory().0, 8192, RmaAccess::Remote) }.unwrap();
    stub.calls();
    let bytes = |len| CommandBytes { here: FIRST + 16, there: FIRST + 4096, len };
    for (reads, len, call, notification, of) in [
        (false, 2000, "put", "requester", NotedCommand::Put { to: 2 }),
        (true, 8, "get", "completer", NotedCommand::Get { end: FIRST + 24 }),
        // It comes in five packets.
        (true, 2000, "get", "completer", NotedCommand::Get { end: FIRST + 2016 }),
    ] {
        assert_eq!(engines.notification(), Ok(None));
        // SAFETY: as above.
        unsafe { if reads { engines.get(2, bytes(len)) } else { engines.put(2, bytes(len)) } }.unwrap();
        assert_eq!(engines.notification(), Ok(Some(Notification { of, refused: None })));
        let post = format!(
            "rma2_post_{call}_bt_direct port, handle of 102, local 100000010, size {len}, remote 100001000, {notification}, default"
        );
        assert_eq!(stub.calls(), [post, "rma2_noti_free the first".to_owned()]);
    }
    assert_eq!(engines.notification(), Ok(None));
    stub.tell("RMA2_ERR_INV_HANDLE");
    // SAFETY: as above.
    assert_eq!(unsafe { engines.put(2, bytes(8)) }.unwrap_err(), "rma2_post_put_bt_direct: invalid handle");
    stub.tell("error");
    // SAFETY: as above.
    unsafe { engines.get(2, bytes(8)) }.unwrap();
    let refused = Some("RMA reports the error 0x5".to_owned());
    assert_eq!(engines.notification(), Ok(Some(Notification { of: NotedCommand::Get { end: FIRST + 24 }, refused })));
    stub.tell("RMA2_ERR_ERROR");
    assert_eq!(engines.notification().unwrap_err(), "rma2_noti_probe: an error");
}

/// A packet tells its sender, after a first one that tells which rank that is, and its exact length.
#[test]
fn packets_tell_their_sender_and_their_length() {
    let Some((stub, mut engines)) = opened("packets") else { return };
    let mut packet = [0; PACKET];
    assert_eq!((engines.receive(&mut packet), engines.notification()), (None, Ok(None)));
    // There is no room, neither for the greeting nor for what is behind it.
    stub.tell("VELO2_RET_TRY_AGAIN");
    assert_eq!(engines.send(2, &[7; 11]), Ok(false));
    let greeting = "velo2_send connection with 102, len 8, tag 255, flags 0";
    assert_eq!(stub.calls(), [greeting]);
    assert_eq!(engines.send(2, &[7; 11]), Ok(true));
    assert_eq!(stub.calls(), [greeting, "velo2_send connection with 102, len 11, tag 11, flags 0"]);
    stub.tell("VELO2_RET_TRY_AGAIN");
    assert_eq!(engines.send(2, &[8; PACKET]), Ok(false));
    assert_eq!(engines.send(2, &[8; PACKET]), Ok(true));
    assert_eq!(stub.calls(), ["velo2_send connection with 102, len 56, tag 56, flags 0"; 2]);
    assert_eq!(engines.receive(&mut packet), Some((2, 11)));
    assert_eq!(packet[..11], [7; 11]);
    assert_eq!(engines.receive(&mut packet), Some((2, PACKET)));
    assert_eq!((packet, engines.receive(&mut packet)), ([8; PACKET], None));
    stub.tell("VELO2_RET_INV_MSG");
    assert_eq!(engines.send(2, &[1]).unwrap_err(), "velo2_send: error 1");
    stub.tell("VELO2_RET_INV_MSG");
    assert_eq!(engines.receive(&mut packet), None);
    assert_eq!(engines.notification().unwrap_err(), "velo2_probe_recv: error 1");
}

/// A rank hears who a sender is from the sender alone: it may not have met it.
#[test]
fn a_greeting_names_a_rank_that_was_not_met() {
    let Some((stub, mut engines)) = opened("greeting") else { return };
    // The stub's packets come back, as those of another process that is rank 9 would.
    engines.set_rank(9);
    engines.meet(4, 0x0008_0102_0009_0102).unwrap();
    assert_eq!(engines.send(4, &[1; 5]), Ok(true));
    let mut packet = [0; PACKET];
    assert_eq!(engines.receive(&mut packet), Some((9, 5)));
    drop(stub);
}

/// The adapter writes, waits until that is visible, and reads by the shim, from and to the process itself.
#[test]
fn an_adapter_works_by_the_shim() {
    let Some(stub) = stubbed("adapter") else { return };
    let mut adapter = ExtollAdapter::new(LoadedEngines::open(stub.path()).unwrap()).unwrap();
    let (far, mut near) = (Slots::new(1, 4096), Slots::new(2, 4096));
    near.write(0, 0, &[9; 4096]);
    let own = adapter.address();
    adapter.meet(2, &own).unwrap();
    // SAFETY: only the stub uses it, in calls of this thread.
    let mut register =
        |slots: &Slots| unsafe { adapter.register(slots.memory().0, slots.memory().1, RmaAccess::Remote) }.unwrap();
    let (there, here) = (register(&far), register(&near));
    let work = |slot, id| {
        let (start, there) = (near.at(slot, 4096).wrapping_add(3), there.address + 7);
        RmaWork { here: start, len: 1001, local: Some(here.id), there, key: here.key, inline: false, id }
    };
    // SAFETY: memory of this test, as above.
    unsafe {
        assert!(adapter.write(2, &work(0, 1)).unwrap());
        assert!(adapter.read(2, &work(1, 2)).unwrap());
    }
    assert!(adapter.mark(2, 3).unwrap());
    let mut done = Vec::new();
    adapter.poll(&mut done).unwrap();
    let ids: Vec<u64> =
        done.iter().map(|done| if let RmaDone::Ends { id, .. } = done { *id } else { panic!("{done:?}") }).collect();
    assert_eq!(ids, [1, 2, 3]);
    near.look(1, 0, 4096, |bytes| {
        assert!(
            bytes[..3] == [0; 3] && bytes[3..1004].iter().all(|&byte| byte == 9) && bytes[1004..].iter().all(|&byte| byte == 0)
        );
    });
    adapter.close();
    assert_eq!(stub.calls().last().unwrap(), "velo2_close port");
}
