//! What is special between processes: packets that find no room, and packets of strangers.

use std::os::{linux::net::SocketAddrExt, unix::net};

use super::{
    super::{
        NAME,
        packet::{Content, HEADER, Packet},
    },
    *,
};
use crate::comm::soft::fabric::Socket;

#[test]
fn packets_that_find_no_room_come_later() {
    let [mut one, mut two] = [(); 2].map(|()| Socket::new(NAME, getrandom(), HEADER + 8).unwrap());
    let packet = |k: u32| Packet { from: k, to: 0, number: 0, content: Content::Done }.encode(0);
    (0..1000).for_each(|k| one.send(two.number(), packet(k)));
    let mut came = Vec::new();
    while came.len() < 1000 {
        let (from, bytes) = two.receive().expect("one more has come");
        assert_eq!(from, one.number());
        came.push(Packet::decode(&bytes).unwrap().0.from);
        one.send_late();
    }
    assert_eq!(came, (0..1000).collect::<Vec<_>>());
    assert_eq!(two.receive(), None);
    // Nobody is there, and nobody waits.
    let gone = two.number();
    drop(two);
    one.send(gone, packet(0));
    assert!(!one.has_late());
}

/// A write of 8 bytes to `two`, as the pair of `one` would send it.
fn write(one: Pair, two: &BareEnd, other: Pair, number: u32) -> Vec<u8> {
    let content = Content::Work { kind: Opcode::Write { to: two.target(0) }, len: 8 };
    let mut bytes = Packet { from: one.number, to: other.number, number, content }.encode(8);
    let len = bytes.len();
    bytes[len - 8..].fill(0xFF);
    bytes
}

#[test]
fn only_the_peer_and_only_once_writes() {
    let [_, hub] = hubs(1);
    let ([one, two], [pair, other]) = hub.two_ends(64);
    let address = net::SocketAddr::from_abstract_name(format!("global-arrays-ib-{:016x}", two.device.number)).unwrap();
    let first = first_packet(pair);

    // Strangers with the right numbers and the right key.
    let nameless = net::UnixDatagram::unbound().unwrap();
    let name = net::SocketAddr::from_abstract_name(format!("stranger-{}", one.device.number)).unwrap();
    let named = net::UnixDatagram::bind_addr(&name).unwrap();
    // As the peer is named, but for a zero.
    let name = net::SocketAddr::from_abstract_name(format!("global-arrays-ib-0{:016x}", one.device.number)).unwrap();
    let alike = net::UnixDatagram::bind_addr(&name).unwrap();
    for stranger in [&nameless, &named, &alike] {
        stranger.send_to_addr(&write(pair, &two, other, first), &address).unwrap();
        stranger.send_to_addr(b"no packet", &address).unwrap();
    }
    let mut third = Socket::new(NAME, getrandom(), HEADER + 64).unwrap();
    third.send(two.device.number, write(pair, &two, other, first));
    one.post(pair, &[one.work(1, Opcode::Read { from: two.target(0) }, 0, 8)]);
    assert_eq!((one.outcomes(1), load(&one, 0)), (vec![(1, Ok(Done::Read))], 0));

    // The peer itself, by packets that were there before.
    for number in [first, first.wrapping_sub(1) % crate::comm::ib::device::NUMBERS] {
        let mut state = one.device.shared.state.lock();
        state.socket.as_mut().unwrap().send(two.device.number, write(pair, &two, other, number));
        drop(state);
    }
    one.post(pair, &[one.work(2, Opcode::Read { from: two.target(0) }, 0, 8)]);
    assert_eq!((one.outcomes(1), load(&one, 0)), (vec![(2, Ok(Done::Read))], 0));
    assert_eq!((two.device.event(), two.poll()), (None, vec![]));
}

/// A work may be sent again before the answer to the first one has come, and each is answered by what was so then.
#[test]
fn an_answer_counts_whenever_it_comes() {
    let [_, hub] = hubs(1);
    let ([one, two], [pair, other]) = hub.two_ends(64);
    let patient = Manner { receive_retries: 7, ..MANNER };
    for (own, pair, peer, other) in [(&one, pair, &two, other), (&two, other, &one, pair)] {
        own.device.modify(pair, To::Reset).unwrap();
        connect_side(own, pair, peer, other, patient);
    }
    for round in 0..40 {
        one.post(pair, &[one.work(round, Opcode::Send { immediate: None }, 0, 8)]);
        for k in 0..20 {
            // Late ones, as if the work had been sent twice.
            let number = (first_packet(pair) + round as u32) % crate::comm::ib::device::NUMBERS;
            let late =
                Packet { from: other.number, to: pair.number, number, content: Content::NotReady(Duration::from_micros(10)) };
            two.device.shared.state.lock().socket.as_mut().unwrap().send(one.device.number, late.encode(0));
            if k == 10 {
                two.receive(round, 8, 8);
            }
        }
        assert_eq!(one.outcomes(1), [(round, Ok(Done::Sent))]);
        assert_eq!(two.completions(1)[0].id, round);
    }
}

#[test]
fn a_stranger_does_not_answer_for_the_peer() {
    let [_, hub] = hubs(1);
    let ([one, two], [pair, other]) = hub.two_ends(64);
    one.memory.write(0, &pattern(1, 64));
    // No receive is posted, so the work waits, and could be answered by others.
    let patient = Manner { receive_retries: 7, ..MANNER };
    for (own, pair, peer, other) in [(&one, pair, &two, other), (&two, other, &one, pair)] {
        own.device.modify(pair, To::Reset).unwrap();
        connect_side(own, pair, peer, other, patient);
    }
    one.post(pair, &[one.work(1, Opcode::Send { immediate: None }, 0, 8)]);
    let mut third = Socket::new(NAME, getrandom(), HEADER + 64).unwrap();
    for number in 0..3 {
        let number = (first_packet(pair) + number) % crate::comm::ib::device::NUMBERS;
        let answer = Packet { from: other.number, to: pair.number, number, content: Content::Done };
        third.send(one.device.number, answer.encode(0));
    }
    // They are in the queue of its socket, or were taken.
    assert_eq!(one.poll(), []);
    two.receive(5, 8, 8);
    assert_eq!(one.outcomes(1), [(1, Ok(Done::Sent))]);
    assert_eq!(two.completions(1)[0].id, 5);
}
