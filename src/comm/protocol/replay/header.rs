//! What stands before each message on a connection. Numbers are little-endian.
//!
//! ```text
//!  byte 0 .. 8    the number of the frame that follows, or that none does: what this message tells
//!       8 .. 16   the number of the last frame of the receiver that the sender has seen
//! ```

/// Bytes.
pub(in crate::comm) const HEADER: usize = 16;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) struct Header {
    pub(in crate::comm) what: HeaderKind,
    pub(in crate::comm) seen: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum HeaderKind {
    /// A frame, the first of a pair has number 1.
    Frame(u64),
    /// No more than what was seen.
    Seen,
    /// What was seen, on a new connection: it is the first message there.
    Opens,
}

const SEEN: u64 = 0;
const OPENS: u64 = u64::MAX;

impl Header {
    pub(in crate::comm) fn encode(self) -> [u8; HEADER] {
        let what = match self.what {
            HeaderKind::Frame(number) => number,
            HeaderKind::Seen => SEEN,
            HeaderKind::Opens => OPENS,
        };
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&what.to_le_bytes());
        bytes[8..].copy_from_slice(&self.seen.to_le_bytes());
        bytes
    }

    pub(in crate::comm) fn decode(bytes: [u8; HEADER]) -> Self {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]));
        let what = match word(0) {
            SEEN => HeaderKind::Seen,
            OPENS => HeaderKind::Opens,
            number => HeaderKind::Frame(number),
        };
        Header { what, seen: word(8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_written() {
        for what in [HeaderKind::Frame(1), HeaderKind::Frame(OPENS - 1), HeaderKind::Seen, HeaderKind::Opens] {
            let header = Header { what, seen: 0x0102_0304_0506_0708 };
            assert_eq!(Header::decode(header.encode()), header);
        }
        assert_eq!(Header { what: HeaderKind::Frame(2), seen: 258 }.encode()[..10], [2, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
    }
}
