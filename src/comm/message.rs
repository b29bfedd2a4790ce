//! The words that the engines of two ranks send each other: a fixed layout of little-endian 64-bit words.
//!
//! What arrives is never trusted: an unknown kind or a wrong length decodes to `None` and is dropped.

use super::{AtomicOp, MAX_MESSAGE};

/// A message between engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Apply an atomic operation to your segment and answer with the old value.
    Atomic { token: u64, op: AtomicOp, width: usize, offset: usize, operand: u64, comparand: u64 },
    /// The old value.
    Value { token: u64, value: u64 },
    /// Words for a collective that has no memory of its own yet: the creation of a group.
    Mail { key: u64, words: [u64; 3] },
}

const ATOMIC: u64 = 1;
const VALUE: u64 = 2;
const MAIL: u64 = 3;

impl Message {
    pub(crate) fn encode(&self) -> ([u8; MAX_MESSAGE], usize) {
        let words: [u64; 7] = match *self {
            Message::Atomic { token, op, width, offset, operand, comparand } => {
                [ATOMIC, token, op as u64, width as u64, offset as u64, operand, comparand]
            }
            Message::Value { token, value } => [VALUE, token, value, 0, 0, 0, 0],
            Message::Mail { key, words } => [MAIL, key, words[0], words[1], words[2], 0, 0],
        };
        let mut bytes = [0; MAX_MESSAGE];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        (bytes, 8 * words.len())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut next = || words.next();
        match next()? {
            ATOMIC => Some(Message::Atomic {
                token: next()?,
                op: AtomicOp::of_code(u8::try_from(next()?).ok()?)?,
                width: next().filter(|&width| width == 4 || width == 8)? as usize,
                offset: usize::try_from(next()?).ok()?,
                operand: next()?,
                comparand: next()?,
            }),
            VALUE => Some(Message::Value { token: next()?, value: next()? }),
            MAIL => Some(Message::Mail { key: next()?, words: [next()?, next()?, next()?] }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_the_wire() {
        let all = [
            Message::Atomic { token: 1, op: AtomicOp::CompareSwap, width: 8, offset: 1 << 40, operand: u64::MAX, comparand: 3 },
            Message::Value { token: 9, value: 7 },
            Message::Mail { key: 5, words: [1, 2, 3] },
        ];
        for message in all {
            let (bytes, len) = message.encode();
            assert_eq!(Message::decode(&bytes[..len]), Some(message));
        }
    }

    #[test]
    fn nonsense_is_dropped() {
        assert_eq!(Message::decode(&[]), None);
        assert_eq!(Message::decode(&[9; 56]), None);
        let (mut bytes, len) =
            Message::Atomic { token: 1, op: AtomicOp::Add, width: 8, offset: 0, operand: 0, comparand: 0 }.encode();
        bytes[24] = 3;
        assert_eq!(Message::decode(&bytes[..len]), None);
        assert_eq!(Message::decode(&bytes[..16]), None);
    }
}
