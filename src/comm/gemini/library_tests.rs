//! What the shim asks of DMAPP: by a stub of it that records its calls, with a header whose values nobody can guess.

use super::{
    adapter::GeminiAdapter,
    dmapp::{Dmapp, DmappRefusal, DmappSegment, Element, Granted, RemoteElements, SyncId},
    library::{LoadedDmapp, SHIM},
};
use crate::comm::{
    Atomic, AtomicOp,
    rma::adapter::{RmaAccess, RmaAdapter, RmaDone, RmaWork},
    testing::stubbed::Stubbed,
};

fn stubbed(test: &str) -> Option<Stubbed> {
    Stubbed::new(&SHIM, "dmapp_stub.c", test)
}

/// DMAPP, open, and its stub without the calls for that. `memory` is registered.
fn opened(test: &str, memory: &mut [u64]) -> Option<(Stubbed, LoadedDmapp, DmappSegment)> {
    let stub = stubbed(test)?;
    let mut dmapp = LoadedDmapp::open(stub.path()).unwrap();
    // SAFETY: only the stub uses it, in calls of this thread.
    let segment = unsafe { dmapp.register(memory.as_mut_ptr().cast(), size_of_val(memory)) }.unwrap();
    stub.calls();
    Some((stub, dmapp, segment))
}

fn elements(memory: &mut [u64], count: usize, element: Element) -> RemoteElements {
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    RemoteElements { pe: 5, segment: DmappSegment([0x77, 0x88]), address, count, element }
}

/// What an element is to DMAPP.
const WIDTHS: [(Element, usize, &str); 4] = [
    (Element::Byte, 1, "DMAPP_BYTE"),
    (Element::Word4, 4, "DMAPP_DW"),
    (Element::Word8, 8, "DMAPP_QW"),
    (Element::Word16, 16, "DMAPP_DQW"),
];

#[test]
fn strict_ordering_is_asked_for_and_what_is_granted_counts() {
    let asked =
        "requested {max_outstanding_nb 1280, PI_ordering DMAPP_PI_ORDERING_STRICT, offload_threshold 4096, max_concurrency 1}";
    for (told, call, strict, ends) in [
        ("", "dmapp_init_ext", true, vec!["dmapp_finalize"]),
        ("relaxed", "dmapp_init_ext", false, vec!["dmapp_finalize"]),
        ("open", "dmapp_set_rma_attrs_ext", true, vec![]),
    ] {
        // Another library has opened it with its own number.
        let (wanted, grants) = if told == "open" { ("512", 512) } else { ("1280", 1024) };
        let asked = asked.replace("1280", wanted);
        let Some(stub) = stubbed(&format!("opens-{told}")) else { return };
        stub.tell(told);
        let mut dmapp = LoadedDmapp::open(stub.path()).unwrap();
        assert_eq!(stub.calls(), [format!("{call} {asked}")]);
        let Granted { outstanding, strict: is_strict } = dmapp.granted();
        assert_eq!((dmapp.pe, dmapp.pes, outstanding, is_strict), (3, 7, grants, strict), "{told}");
        dmapp.finalize();
        assert_eq!(stub.calls(), ends, "{told}");
    }
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let Some(stub) = stubbed("missing") else { return };
    stub.tell("DMAPP_RC_RESOURCE_ERROR");
    assert_eq!(LoadedDmapp::open(stub.path()).unwrap_err(), "DMAPP cannot be opened: DMAPP_RC_RESOURCE_ERROR");
    for (path, why) in [("/no/such/shim.so", "No such file"), ("libc.so.6", "ga_dmapp_why")] {
        let said = LoadedDmapp::open(path).unwrap_err();
        for word in [&*format!("GA_DMAPP={path}: "), why, SHIM.command] {
            assert!(said.contains(word), "{said}");
        }
    }
}

#[test]
fn the_readme_has_the_command() {
    assert!(include_str!("../../../README.md").contains(SHIM.command));
}

/// `dmapp_put_nb(target, segment, pe, source, nelems, type, &syncid)`.
#[test]
fn a_put_names_the_remote_side_first_and_counts_elements() {
    let (mut far, near) = ([0_u64; 8], [7_u64; 8]);
    let Some((stub, mut dmapp, _)) = opened("put", &mut far) else { return };
    for (number, (element, bytes, name)) in (1..).zip(WIDTHS) {
        let to = elements(&mut far, 3, element);
        // SAFETY: memory of this test, which the stub writes during the call.
        let work = unsafe { dmapp.put(to, near.as_ptr().cast()) };
        assert_eq!(work, Ok(SyncId(0xabc0_0000_0000 + number)));
        let (len, far, near) = (3 * bytes, far.as_ptr(), near.as_ptr());
        let segment = format!("{{addr {far:?}, len {len}, handle 77 88, flags 5a}}");
        let call = format!("dmapp_put_nb target {far:?}, seg {segment}, pe 5, source {near:?}, nelems 3, type {name}");
        assert_eq!(stub.calls(), [call]);
    }
    assert_eq!(far, [7, 7, 7, 7, 7, 7, 0, 0]);
}

/// `dmapp_get_nb(target, source, segment, pe, nelems, type, &syncid)`.
#[test]
fn a_get_names_the_remote_side_second_and_counts_elements() {
    let (mut far, mut near) = ([7_u64; 8], [0_u64; 8]);
    let Some((stub, mut dmapp, _)) = opened("get", &mut far) else { return };
    for (number, (element, bytes, name)) in (1..).zip(WIDTHS) {
        let from = elements(&mut far, 3, element);
        // SAFETY: as above.
        let work = unsafe { dmapp.get(from, near.as_mut_ptr().cast()) };
        assert_eq!(work, Ok(SyncId(0xabc0_0000_0000 + number)));
        let (len, far, near) = (3 * bytes, far.as_ptr(), near.as_ptr());
        let segment = format!("{{addr {far:?}, len {len}, handle 77 88, flags 5a}}");
        let call = format!("dmapp_get_nb target {near:?}, source {far:?}, seg {segment}, pe 5, nelems 3, type {name}");
        assert_eq!(stub.calls(), [call]);
    }
    assert_eq!(near, [7, 7, 7, 7, 7, 7, 0, 0]);
}

/// `dmapp_af…_qw_nb(result, address, segment, pe, operand, &syncid)`, and `dmapp_acswap_qw_nb` with two operands.
#[test]
fn atomic_operations_have_their_operands_in_order() {
    let mut far = [0_u64; 2];
    let Some((stub, mut dmapp, _)) = opened("atomic", &mut far) else { return };
    for (op, name, operands, after) in [
        (AtomicOp::Load, "dmapp_afadd_qw_nb", "operand 0", 12),
        (AtomicOp::Add, "dmapp_afadd_qw_nb", "operand 10", 22),
        (AtomicOp::And, "dmapp_afand_qw_nb", "operand 10", 8),
        (AtomicOp::Or, "dmapp_afor_qw_nb", "operand 10", 14),
        (AtomicOp::Xor, "dmapp_afxor_qw_nb", "operand 10", 6),
        (AtomicOp::CompareSwap, "dmapp_acswap_qw_nb", "comparand 12, swap 10", 10),
    ] {
        far[0] = 12;
        let (word, mut old) = (elements(&mut far, 9, Element::Byte), 0_u64);
        let atomic = Atomic { op, width: 8, operand: 10, comparand: 12 };
        // SAFETY: memory of this test.
        assert!(unsafe { dmapp.change(word, atomic, (&raw mut old).cast()) }.is_ok());
        let (to, address) = (&raw const old, far.as_ptr());
        let segment = format!("{{addr {address:?}, len 8, handle 77 88, flags 5a}}");
        assert_eq!(stub.calls(), [format!("{name} target {to:?}, source {address:?}, seg {segment}, pe 5, {operands}")]);
        assert_eq!((old, far[0]), (12, after), "{name}");
    }
    let (word, atomic) =
        (elements(&mut far, 1, Element::Word8), Atomic { op: AtomicOp::Swap, width: 8, operand: 1, comparand: 0 });
    // SAFETY: as above.
    let refused = unsafe { dmapp.change(word, atomic, far.as_mut_ptr().cast()) };
    assert!(matches!(refused, Err(DmappRefusal::Why(why)) if why.contains("Swap")));
}

/// A segment goes back as it came. One that DMAPP gave twice goes back once, behind the last use.
#[test]
fn memory_is_registered_and_given_back() {
    let (mut memory, mut first) = ([0_u64; 64], [0_u64; 2]);
    let Some((stub, mut dmapp, a)) = opened("register", &mut first) else { return };
    let (start, len) = (memory.as_mut_ptr(), size_of_val(&memory));
    assert_eq!(a, DmappSegment([0xa1, 0xb1]));
    // SAFETY: nobody uses the memory.
    let b = unsafe { dmapp.register(start.cast(), len) }.unwrap();
    assert_eq!((b, stub.calls()), (DmappSegment([0xa2, 0xb2]), vec![format!("dmapp_mem_register addr {start:?}, length 512")]));
    stub.tell("the same segment");
    // SAFETY: as above.
    assert_eq!(unsafe { dmapp.register(start.cast(), 8) }, Ok(b));
    stub.calls();
    dmapp.unregister(b);
    assert!(stub.calls().is_empty());
    dmapp.unregister(b);
    let seg = format!("{{addr {start:?}, len 512, handle a2 b2, flags 5a}}");
    assert_eq!(stub.calls(), [format!("dmapp_mem_unregister seg {seg}")]);
    stub.tell("DMAPP_RC_INVALID_PARAM");
    // SAFETY: as above.
    assert_eq!(unsafe { dmapp.register(start.cast(), 8) }, Err("DMAPP_RC_INVALID_PARAM".to_owned()));
    stub.tell("DMAPP_RC_NO_SPACE");
    // SAFETY: as above.
    assert!(unsafe { dmapp.register(start.cast(), 8) }.unwrap_err().contains("no room"));
}

#[test]
fn answers_mean_what_they_mean() {
    let (mut far, near) = ([0_u64; 2], [0_u64; 2]);
    let Some((stub, mut dmapp, _)) = opened("answers", &mut far) else { return };
    let to = elements(&mut far, 1, Element::Word8);
    // SAFETY: memory of this test.
    let put = |dmapp: &mut LoadedDmapp| unsafe { dmapp.put(to, near.as_ptr().cast()) };
    stub.tell("DMAPP_RC_NO_SPACE");
    assert_eq!(put(&mut dmapp), Err(DmappRefusal::NoSpace));
    stub.tell("DMAPP_RC_ALIGNMENT_ERROR");
    assert_eq!(put(&mut dmapp), Err(DmappRefusal::Why("DMAPP_RC_ALIGNMENT_ERROR".to_owned())));
    let work = put(&mut dmapp).unwrap();
    stub.calls();
    stub.tell("not ended");
    assert_eq!(dmapp.test(work), Ok(false));
    assert_eq!(dmapp.test(work), Ok(true));
    assert_eq!(stub.calls(), ["dmapp_syncid_test syncid 0xabc000000001"; 2]);
    stub.tell("DMAPP_RC_TRANSACTION_ERROR");
    assert_eq!(dmapp.test(work), Err("DMAPP_RC_TRANSACTION_ERROR".to_owned()));
}

/// The adapter writes, reads and adds by the shim, to the process itself.
#[test]
fn an_adapter_works_by_the_shim() {
    let Some(stub) = stubbed("adapter") else { return };
    stub.tell("relaxed");
    let mut adapter = GeminiAdapter::new(LoadedDmapp::open(stub.path()).unwrap(), 7);
    let (mut far, near, mut back, mut old) = ([0_u64; 32], [9_u64; 32], [0_u64; 32], 0_u64);
    // SAFETY: only the stub uses it, in calls of this thread.
    let region = unsafe { adapter.register(far.as_mut_ptr().cast(), 256, RmaAccess::Remote) }.unwrap();
    let [a, b] = region.key.0;
    adapter.meet(3, &[region.address, a, b, 0, 0, 0, 0, 0]).unwrap();
    let work = |here: *mut u8, id| RmaWork {
        here: here.wrapping_add(3),
        len: 101,
        local: None,
        there: region.address + 3,
        key: region.key,
        inline: false,
        id,
    };
    // SAFETY: memory of this test, as above.
    unsafe {
        assert!(adapter.write(3, &work(near.as_ptr().cast_mut().cast(), 1)).unwrap());
        assert!(adapter.read(3, &work(back.as_mut_ptr().cast(), 2)).unwrap());
        let word = RmaWork { here: (&raw mut old).cast(), len: 8, there: region.address + 8, ..work(std::ptr::null_mut(), 3) };
        assert!(adapter.change(3, &word, Atomic { op: AtomicOp::Add, width: 8, operand: 5, comparand: 0 }).unwrap());
    }
    assert!(adapter.mark(3, 4).unwrap());
    let mut done = Vec::new();
    for _ in 0..3 {
        adapter.poll(&mut done).unwrap();
    }
    let mut ids: Vec<u64> =
        done.iter().map(|done| if let RmaDone::Ends { id, .. } = done { *id } else { panic!("{done:?}") }).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4]);
    let bytes = |words: [u64; 32]| words.into_iter().flat_map(u64::to_ne_bytes).collect::<Vec<u8>>();
    assert!(
        bytes(back)[3..104] == bytes(near)[3..104]
            && bytes(back)[..3] == [0; 3]
            && bytes(back)[104..].iter().all(|&byte| byte == 0)
    );
    assert_eq!((old, far[1]), (9, 14));
    adapter.deregister(region.id).unwrap();
    adapter.close();
    assert_eq!(stub.calls().last().unwrap(), "dmapp_finalize");
}
