//! Two endpoints of one process, over the providers that Debian's libfabric has.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    adapter::OfiAdapter,
    messages::Messages,
    networks::{check_environment, suits},
    port::{OfiPort, Unopened},
};
use crate::comm::{
    am::{
        frame::RecordKind,
        wire::{Broken, Class, Key, Opened, Piece, Wire},
    },
    rma::wire::{RmaSettings, RmaWire},
    start::devices::directory::Directory,
    testing::header::skipped,
};

const PROVIDERS: [&str; 4] = ["tcp;ofi_rxm", "net", "sockets", "shm"];
const LIMIT: Duration = Duration::from_secs(20);

type OfiWire = RmaWire<OfiAdapter, Messages>;

fn open(provider: &str) -> Result<OfiAdapter, String> {
    match OfiPort::open(provider, None, suits) {
        Ok(port) => OfiAdapter::new(port),
        Err(Unopened::Lacks(why) | Unopened::Fails(why)) => Err(why),
    }
}

/// The wires of two ranks. None if the provider is not there.
fn wires(provider: &str) -> Option<[OfiWire; 2]> {
    let directory = Arc::new(Directory::shared(2).unwrap());
    let wire = |rank| {
        let mut adapter = open(provider)?;
        let messages = Messages::new(&mut adapter, rank, 2, 7)?;
        let settings = RmaSettings { rank, silence: Some(Duration::from_secs(1)), ..RmaSettings::default() };
        RmaWire::new(adapter, messages, directory.clone(), settings)
    };
    match (wire(0), wire(1)) {
        (Ok(first), Ok(second)) => Some([first, second]),
        (Err(why), _) | (_, Err(why)) => {
            skipped(&format!("libfabric over {provider}"), &why);
            None
        }
    }
}

fn until(wires: &mut [OfiWire; 2], mut is_over: impl FnMut(&mut [OfiWire; 2]) -> bool) {
    let start = Instant::now();
    while !is_over(wires) {
        assert!(start.elapsed() < LIMIT, "nothing comes");
        assert!(wires.iter_mut().all(|wire| wire.receive().unwrap().is_none()), "a frame that nobody has sent");
    }
}

/// Writes words into memory of the second rank, from the first.
fn write(wires: &mut [OfiWire; 2], there: u64, key: Key, words: &[u64]) {
    let piece = Piece { there, key, here: words.as_ptr().cast_mut().cast(), len: 8 * words.len() };
    // SAFETY: the words are copied; the tests say what is open.
    until(wires, |wires| unsafe { wires[0].one_sided().unwrap().write(1, &[piece]) }.unwrap() == 1);
}

/// The error by which the first rank learns of what failed.
fn error(wires: &mut [OfiWire; 2]) -> String {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < LIMIT, "no error comes");
        let _ = wires[1].receive();
        let _ = wires[0].one_sided().unwrap().have_ended(1);
        if let Err(Broken(why)) = wires[0].receive() {
            return why;
        }
    }
}

#[test]
fn writes_reads_and_frames_go_between_two_endpoints() {
    for provider in PROVIDERS {
        let mut memory = vec![0_u64; 1024];
        let Some(mut wires) = wires(provider) else { continue };
        // SAFETY: dropped behind the wires' last use of it.
        let Opened { address, key, .. } =
            unsafe { wires[1].one_sided().unwrap().open(memory.as_mut_ptr().cast(), 8 * 1024) }.unwrap();
        let words: Vec<u64> = (1..=1000).collect();
        write(&mut wires, address, key, &words);
        write(&mut wires, address + 8, key, &[77]);
        until(&mut wires, |wires| wires[0].one_sided().unwrap().have_ended(1).unwrap());
        // SAFETY: nobody writes it now.
        let now: Vec<u64> = (0..1000).map(|word| unsafe { memory.as_ptr().add(word).read_volatile() }).collect();
        assert!(now[1] == 77 && now[0] == 1 && now[2..] == words[2..], "{provider}: {:?}", &now[..4]);
        let piece = Piece { there: address + 8, key, here: std::ptr::null_mut(), len: 16 };
        // SAFETY: open memory.
        until(&mut wires, |wires| unsafe { wires[0].one_sided().unwrap().read(1, &[piece], 5, 0) }.unwrap() == 1);
        let mut read = Vec::new();
        until(&mut wires, |wires| {
            wires[0].one_sided().unwrap().take_read(&mut |origin, at, bytes| read.extend([(origin, at, bytes.to_vec())]));
            !read.is_empty()
        });
        assert_eq!(read, [(5, 0, [77_u64, 3].iter().flat_map(|word| word.to_ne_bytes()).collect())], "{provider}");
        for payload in [8, 4000, 8000] {
            let mut frame = wires[0].frame();
            frame.push(RecordKind::Put, 0, &[0], &[], payload).fill(9);
            frame.seal(0, true);
            let mut next = Some(frame);
            let start = Instant::now();
            let arrival = loop {
                assert!(start.elapsed() < LIMIT, "{provider}: a frame of {payload} bytes does not come");
                next = next.and_then(|frame| wires[0].send(1, Class::Request, frame).unwrap());
                assert!(wires[0].receive().unwrap().is_none());
                if let Some(arrival) = wires[1].receive().unwrap() {
                    break arrival;
                }
            };
            let (.., mut records) = arrival.frame.read(arrival.len).unwrap();
            assert!(arrival.from == 0 && records.next().unwrap().payload == vec![9; payload], "{provider}: {payload} bytes");
        }
    }
}

/// A wrong key, a range that is too long, and memory that was shut are errors with the rank's number, and change nothing. Inside a machine `shm`
/// writes by the kernel and checks no key.
#[test]
fn memory_that_is_not_open_is_not_written() {
    for provider in PROVIDERS.into_iter().filter(|&provider| provider != "shm") {
        for fault in ["key", "range", "shut"] {
            let mut memory = vec![0_u64; 1024];
            let Some(mut wires) = wires(provider) else { continue };
            // SAFETY: dropped behind the wires' last use of it.
            let opened = unsafe { wires[1].one_sided().unwrap().open(memory.as_mut_ptr().cast(), 8 * 512) }.unwrap();
            let Opened { address, key, .. } = opened;
            write(&mut wires, address, key, &[1]);
            until(&mut wires, |wires| wires[0].one_sided().unwrap().have_ended(1).unwrap());
            let (there, key) = match fault {
                "key" => (address, Key([key.0[0] ^ 0x5555, 0])),
                "range" => (address + 8 * 510, key),
                _ => (address, key),
            };
            if fault == "shut" {
                wires[1].one_sided().unwrap().shut(opened).unwrap();
            }
            write(&mut wires, there, key, &[2; 16]);
            let why = error(&mut wires);
            assert!(
                why.contains("rank 1 cannot be reached: ") || why.starts_with("a rank cannot be reached: "),
                "{provider}: {why}"
            );
            // SAFETY: nobody writes it now.
            let now: Vec<u64> = (0..1024).map(|word| unsafe { memory.as_ptr().add(word).read_volatile() }).collect();
            assert!(now[0] == 1 && now[1..].iter().all(|&word| word == 0), "{provider}: {fault} was written");
        }
    }
}

#[test]
fn what_is_missing_is_said_in_one_sentence() {
    if let Err(why) = open("tcp;ofi_rxm") {
        return skipped("what libfabric says", &why);
    }
    let refused = |provider, domain| match OfiPort::open(provider, domain, |_, _| Err("it is slow".to_owned())) {
        Err(Unopened::Lacks(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("pigeons", None), "fi_getinfo: No data available");
    assert_eq!(refused("tcp;ofi_rxm", Some("moon0")), "it has no domain moon0");
    assert_eq!(refused("sockets", None), "it is slow");
    let why = check_environment("efa").unwrap_err();
    assert!(why.ends_with("export FI_MR_CACHE_MONITOR=disabled"), "{why}");
    assert_eq!(check_environment("sockets"), Ok(()));
}
