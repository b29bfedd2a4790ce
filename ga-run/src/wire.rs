//! What `ga-run` and an agent write to each other, over the pipes of the agent or of its remote shell.
//!
//! A frame is a byte that says what it is, a number, a length (both four bytes, little-endian) and bytes.
//!
//! ```text
//!  to an agent       Start     the plan of its ranks
//!                    Signal    a number, for its ranks and their children
//!                    Input     bytes for the standard input of rank 0; none: there are no more
//!                    Credit    more bytes of what ranks print may be sent: their number
//!  from an agent     Output    of a rank: whole lines, the end of its output, or a part of a long line
//!                    Errors    the same, of its standard error
//!                    Exit      of a rank: its status
//!                    Killed    of a rank: the signal
//!                    Refused   why the ranks could not be started, and the status for that
//!                    Wants     rank 0 can take more input
//! ```
//!
//! Credit leaves room for the rest: where nobody reads what ranks print, their ends are still heard of.

use std::{
    ffi::{OsStr, OsString},
    io::{self, ErrorKind, Read, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

/// The first line of an agent. What a login script of its host printed stands before it.
pub(crate) const HELLO: &[u8] = b"ga-run agent 1\n";

/// Bytes of what ranks print that an agent may send before `ga-run` has written them.
pub(crate) const WINDOW: usize = 256 << 10;

/// More than any frame has.
const LONGEST: usize = 64 << 20;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Start,
    Signal,
    Input,
    Credit,
    Output,
    Errors,
    Exit,
    Killed,
    Refused,
    Wants,
}

impl Kind {
    const ALL: [Kind; 10] = {
        use Kind::*;
        [Start, Signal, Input, Credit, Output, Errors, Exit, Killed, Refused, Wants]
    };
}

/// A frame that has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Writes a frame.
pub(crate) fn send(mut to: impl Write, kind: Kind, number: u32, bytes: &[u8]) -> io::Result<()> {
    let head = [&[kind as u8][..], &number.to_le_bytes(), &(bytes.len() as u32).to_le_bytes()].concat();
    to.write_all(&[&head, bytes].concat())?;
    to.flush()
}

/// Takes frames out of what has been read.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    begun: Vec<u8>,
}

impl Frames {
    /// Reads once, which does not wait if there is something. Returns false at the end.
    pub(crate) fn read(&mut self, mut from: impl Read) -> io::Result<bool> {
        let mut buffer = [0; 1 << 16];
        match from.read(&mut buffer) {
            Ok(count) => {
                self.begun.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns true once the agent has greeted; what stands before that is dropped.
    pub(crate) fn greeted(&mut self) -> bool {
        let found = self.begun.windows(HELLO.len()).position(|bytes| bytes == HELLO);
        let strange = found.map_or(self.begun.len().saturating_sub(HELLO.len()), |at| at + HELLO.len());
        self.begun.drain(..strange);
        found.is_some()
    }

    /// The next frame that is whole.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame>> {
        let Some((head, rest)) = self.begun.split_first_chunk::<9>() else { return Ok(None) };
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (number, length) = (number(1), number(5) as usize);
        let kind = Kind::ALL.get(usize::from(head[0])).filter(|_| length <= LONGEST).ok_or(ErrorKind::InvalidData)?;
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let frame = Frame { kind: *kind, number, bytes: bytes.to_vec() };
        self.begun.drain(..9 + length);
        Ok(Some(frame))
    }
}

/// What an agent starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) folder: OsString,
    /// Ranks of this host.
    pub(crate) ranks: Vec<usize>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// The program and its arguments.
    pub(crate) program: Vec<OsString>,
}

impl Plan {
    /// Words with a zero behind each, which none of them has.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let ranks: Vec<String> = self.ranks.iter().map(usize::to_string).collect();
        let (ranks, variables) = (OsString::from(ranks.join(" ")), OsString::from(self.variables.len().to_string()));
        let pairs = self.variables.iter().flat_map(|(name, value)| [name, value]);
        let words = [&self.folder, &ranks, &variables].into_iter().chain(pairs).chain(&self.program);
        words.flat_map(|word| [word.as_bytes(), &[0]].concat()).collect()
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Plan> {
        let mut words = bytes.strip_suffix(&[0])?.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec()));
        let folder = words.next()?;
        let ranks = words.next()?.to_str()?.split(' ').map(|rank| rank.parse().ok()).collect::<Option<_>>()?;
        let count: usize = words.next()?.to_str()?.parse().ok()?;
        let variables = (0..count).map(|_| Some((words.next()?, words.next()?))).collect::<Option<_>>()?;
        let program: Vec<OsString> = words.collect();
        (!program.is_empty()).then_some(Plan { folder, ranks, variables, program })
    }
}

/// Returns true for variables that all ranks have as `ga-run` has them.
pub(crate) fn is_ours(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"GA_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_whole_and_behind_the_greeting() {
        let mut bytes = b"Last login: today\n".to_vec();
        bytes.extend_from_slice(HELLO);
        send(&mut bytes, Kind::Exit, 7, &3_i32.to_le_bytes()).unwrap();
        send(&mut bytes, Kind::Wants, 0, b"").unwrap();
        let (mut frames, mut greeted, mut found) = (Frames::default(), false, Vec::new());
        for byte in bytes {
            assert!(frames.read(&[byte][..]).unwrap());
            greeted = greeted || frames.greeted();
            if greeted {
                found.extend(frames.next().unwrap());
            }
        }
        let exit = Frame { kind: Kind::Exit, number: 7, bytes: vec![3, 0, 0, 0] };
        assert_eq!(found, [exit, Frame { kind: Kind::Wants, number: 0, bytes: Vec::new() }]);
        frames.read(&[0xff; 9][..]).unwrap();
        assert!(frames.next().is_err() && !frames.read(&[][..]).unwrap());
    }

    #[test]
    fn plans_keep_every_byte() {
        let odd = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let plan = Plan {
            folder: odd(b"/a b\xff"),
            ranks: vec![3, 4, 9],
            variables: vec![("GA_HEAP".into(), "8G".into()), ("EMPTY".into(), "".into())],
            program: vec!["prog".into(), "".into(), odd(b"\n'\"$\xfe")],
        };
        assert_eq!(Plan::of_bytes(&plan.to_bytes()), Some(plan));
        for wrong in [&b""[..], b"/\0", b"/\x000\x001\0", b"/\x000\x000\0"] {
            assert_eq!(Plan::of_bytes(wrong), None);
        }
    }
}
