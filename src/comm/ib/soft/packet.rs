//! What devices of different processes send each other. Numbers travel as they are in memory, because both sides are one machine
//! and one program.

use std::time::Duration;

use bytemuck::{Pod, Zeroable};

use crate::comm::ib::device::{NUMBERS, Opcode, Target, WorkFailure};

/// A packet, but for the data behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// The sender's pair, and the one that it is for.
    pub(super) from: u32,
    pub(super) to: u32,
    /// The number of the work in its connection; an answer has that of what it answers.
    pub(super) number: u32,
    pub(super) content: Content,
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A work of `len` bytes. Those of a send and of a write are behind it.
    Work { kind: Opcode, len: usize },
    /// It was carried out. Behind it is what was read, or the old value of an atomic.
    Done,
    /// There was no receive; when to come again.
    NotReady(Duration),
    /// It was refused, and the pair there fails too.
    Refused(WorkFailure),
    /// A datagram with this Q_Key; its data are behind it.
    Datagram { key: u32 },
}

/// Bytes in front of the data.
pub(super) const HEADER: usize = size_of::<PacketHeader>();

#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct PacketHeader {
    what: u32,
    from: u32,
    to: u32,
    number: u32,
    /// Of the memory at the target; the Q_Key of a datagram; an immediate value.
    key: u32,
    failure: u32,
    start: u64,
    len: u64,
    operands: [u64; 2],
}

const SEND: u32 = 1;
const SEND_IMMEDIATE: u32 = 2;
const WRITE: u32 = 3;
const READ: u32 = 4;
const FETCH_ADD: u32 = 5;
const COMPARE_SWAP: u32 = 6;
const DONE: u32 = 7;
const NOT_READY: u32 = 8;
const REFUSED: u32 = 9;
const DATAGRAM: u32 = 10;

/// What a target may say of a work that it refuses.
const FAILURES: [WorkFailure; 3] = [WorkFailure::RemoteInvalid, WorkFailure::RemoteAccess, WorkFailure::RemoteOperation];

impl Packet {
    /// The packet with room for `room` bytes of data behind it.
    pub(super) fn encode(&self, room: usize) -> Vec<u8> {
        let Packet { from, to, number, content } = *self;
        let header = PacketHeader { from, to, number, ..PacketHeader::default() };
        let at = |what, Target { start, key }, operands| PacketHeader { what, start, key, operands, ..header };
        let header = match content {
            Content::Work { kind, len } => {
                let header = match kind {
                    Opcode::Send { immediate: None } => PacketHeader { what: SEND, ..header },
                    Opcode::Send { immediate: Some(key) } => PacketHeader { what: SEND_IMMEDIATE, key, ..header },
                    Opcode::Write { to } => at(WRITE, to, [0; 2]),
                    Opcode::Read { from } => at(READ, from, [0; 2]),
                    Opcode::FetchAdd { at: target, operand } => at(FETCH_ADD, target, [operand, 0]),
                    Opcode::CompareSwap { at: target, expected, value } => at(COMPARE_SWAP, target, [expected, value]),
                };
                PacketHeader { len: len as u64, ..header }
            }
            Content::Done => PacketHeader { what: DONE, ..header },
            Content::NotReady(timer) => PacketHeader { what: NOT_READY, len: timer.as_nanos() as u64, ..header },
            Content::Refused(failure) => {
                let failure = FAILURES.iter().position(|&other| other == failure).unwrap_or_default() as u32;
                PacketHeader { what: REFUSED, failure, ..header }
            }
            Content::Datagram { key } => PacketHeader { what: DATAGRAM, key, ..header },
        };
        let mut bytes = vec![0; HEADER + room];
        bytes[..HEADER].copy_from_slice(bytemuck::bytes_of(&header));
        bytes
    }

    /// A packet that was received, and its data. None if it is none of ours, or has other data than it says.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Packet, &[u8])> {
        let (header, data) = bytes.split_at_checked(HEADER)?;
        let PacketHeader { what, from, to, number, key, failure, start, len, operands } = bytemuck::pod_read_unaligned(header);
        let target = Target { start, key };
        let work = |kind| Some(Content::Work { kind, len: usize::try_from(len).ok()? });
        let content = match what {
            SEND => work(Opcode::Send { immediate: None }),
            SEND_IMMEDIATE => work(Opcode::Send { immediate: Some(key) }),
            WRITE => work(Opcode::Write { to: target }),
            READ => work(Opcode::Read { from: target }),
            FETCH_ADD => work(Opcode::FetchAdd { at: target, operand: operands[0] }),
            COMPARE_SWAP => work(Opcode::CompareSwap { at: target, expected: operands[0], value: operands[1] }),
            DONE => Some(Content::Done),
            NOT_READY => Some(Content::NotReady(Duration::from_nanos(len))),
            REFUSED => FAILURES.get(failure as usize).map(|&failure| Content::Refused(failure)),
            DATAGRAM => Some(Content::Datagram { key }),
            _ => None,
        }?;
        let fits = match content {
            Content::Work { kind: Opcode::Send { .. } | Opcode::Write { .. }, len } => data.len() == len,
            Content::Work { kind: Opcode::FetchAdd { .. } | Opcode::CompareSwap { .. }, len } => {
                len == size_of::<u64>() && data.is_empty()
            }
            Content::Work { .. } | Content::NotReady(_) | Content::Refused(_) => data.is_empty(),
            Content::Done | Content::Datagram { .. } => true,
        };
        (fits && number < NUMBERS).then_some((Packet { from, to, number, content }, data))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const TARGET: Target = Target { start: u64::MAX - 5, key: 77 };

    fn contents() -> Vec<(Content, usize)> {
        let kinds = [
            (Opcode::Send { immediate: None }, 5, 5),
            (Opcode::Send { immediate: Some(9) }, 0, 0),
            (Opcode::Write { to: TARGET }, 300, 300),
            (Opcode::Read { from: TARGET }, 1 << 20, 0),
            (Opcode::FetchAdd { at: TARGET, operand: 3 }, 8, 0),
            (Opcode::CompareSwap { at: TARGET, expected: 1, value: 2 }, 8, 0),
        ];
        let works = kinds.map(|(kind, len, data)| (Content::Work { kind, len }, data));
        let refused = FAILURES.map(|failure| (Content::Refused(failure), 0));
        let rest = [
            (Content::Done, 12),
            (Content::NotReady(Duration::from_micros(10)), 0),
            (Content::Datagram { key: 0x8000_0001 }, 40),
        ];
        works.into_iter().chain(refused).chain(rest).collect()
    }

    #[test]
    fn packets_travel_as_bytes() {
        for (content, data) in contents() {
            let packet = Packet { from: 16, to: NUMBERS - 1, number: 5, content };
            let mut bytes = packet.encode(data);
            bytes[HEADER..].fill(3);
            assert_eq!(Packet::decode(&bytes), Some((packet, &vec![3; data][..])));
        }
    }

    #[test]
    fn what_is_no_packet_is_none() {
        assert_eq!(Packet::decode(&[0; HEADER]), None);
        assert_eq!(Packet::decode(&[0xFF; HEADER + 10]), None);
        for (content, data) in contents() {
            let bytes = Packet { from: 16, to: 17, number: 5, content }.encode(data);
            assert_eq!(Packet::decode(&bytes[..HEADER - 1]), None);
            let longer = Packet::decode(&[&bytes[..], &[0]].concat()).is_some();
            assert_eq!(longer, matches!(content, Content::Done | Content::Datagram { .. }), "{content:?}");
            let far = Packet { from: 16, to: 17, number: NUMBERS, content }.encode(data);
            assert_eq!(Packet::decode(&far), None);
        }
    }
}
