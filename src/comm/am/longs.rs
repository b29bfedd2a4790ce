//! Messages beside the frames from or into the memory that they are for: long contiguous puts and gets, and pieces of blocks whose
//! bytes lie packed in the caller's memory, at the side that asks for them; long gets at the other.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    ffi::{Comm, Request, Result},
    origins::given_up,
};
use crate::comm::{Event, Token};

/// Looks at most in one poll: each is a call.
const LOOKS: usize = 8;

/// What a message beside the frames is: each kind has tags of its own, so that they never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Beside {
    /// From who asks: a long put, or a long frame of requests.
    Request = 0,
    /// To who asks: a long get.
    Get = 1,
    /// To who asks: a long frame of answers.
    Answer = 2,
}

/// Below the least upper bound of tags that a library may have, 32,767.
pub(in crate::comm) fn tag(number: u64, what: Beside) -> i32 {
    2 + (number % 8_000) as i32 * 4 + what as i32
}

#[derive(Debug)]
struct Long {
    request: Request,
    then: Then,
}

/// What the completion means.
#[derive(Debug)]
enum Then {
    /// The caller's memory is free.
    Sent(Token),
    /// A piece of it is, that such a peer was to take at such a time.
    PieceSent(Arc<Token>, usize, Instant),
    /// The caller's memory is filled.
    Filled(Get),
    /// The same, but the caller wants its memory back.
    GivenUp(Get),
    /// The peer has what it asked for, and will see for itself.
    Nothing,
    /// What nobody wants any more has come.
    Thrown(#[allow(dead_code, reason = "MPI writes there")] Box<[u8]>),
}

/// A long get.
#[derive(Clone, Copy, Debug)]
pub(in crate::comm) struct Get {
    pub(in crate::comm) token: Token,
    /// It is a piece of what this origin waits for.
    pub(in crate::comm) piece_of: Option<u64>,
    pub(in crate::comm) from: usize,
    pub(in crate::comm) number: u64,
    pub(in crate::comm) len: usize,
}

/// Pieces of blocks that leave at a time.
const PIECES: usize = 6;

/// A piece that took longer waited for a peer that did not look: over TCP on one machine half a MiB takes 60 to 200 µs.
const PROMPT: Duration = Duration::from_micros(500);

/// Those under way.
#[derive(Debug, Default)]
pub(in crate::comm) struct Longs {
    all: VecDeque<Long>,
    leaving_pieces: usize,
    /// Pieces that came, or were given up: their origins do not know yet.
    pub(in crate::comm) ended: Vec<Get>,
    /// Peers that did not take a piece promptly.
    pub(in crate::comm) late: Vec<usize>,
}

impl Longs {
    pub(in crate::comm) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether another piece of a block may leave.
    pub(in crate::comm) fn has_room(&self) -> bool {
        self.leaving_pieces < PIECES
    }

    /// A piece that leaves the caller's memory.
    pub(in crate::comm) fn put_piece(&mut self, request: Request, of: Arc<Token>, to: usize) {
        self.leaving_pieces += 1;
        self.all.push_back(Long { request, then: Then::PieceSent(of, to, Instant::now()) });
    }

    /// A put whose bytes leave the caller's memory.
    pub(in crate::comm) fn put(&mut self, request: Request, token: Token) {
        self.all.push_back(Long { request, then: Then::Sent(token) });
    }

    /// A get that fills the caller's memory.
    pub(in crate::comm) fn get(&mut self, request: Request, get: Get) {
        self.all.push_back(Long { request, then: Then::Filled(get) });
    }

    /// What a peer asked for leaves the segment.
    pub(in crate::comm) fn serve(&mut self, request: Request) {
        self.all.push_back(Long { request, then: Then::Nothing });
    }

    /// Looks at some, in turn; how many are complete.
    pub(in crate::comm) fn look(&mut self, comm: Comm, events: &mut Vec<Event>) -> Result<u64> {
        let mut found = 0;
        for _ in 0..self.all.len().min(LOOKS) {
            let Some(mut long) = self.all.pop_front() else { break };
            match long.look(comm, events) {
                Ok(Look::Open) => self.all.push_back(long),
                Ok(end) => {
                    found += 1;
                    if let Then::Filled(get) | Then::GivenUp(get) = long.then
                        && get.piece_of.is_some()
                    {
                        self.ended.push(get);
                    }
                    match (end, long.then) {
                        (Look::Another(rest), _) => self.all.push_back(rest),
                        (_, Then::PieceSent(token, to, begun)) => {
                            self.leaving_pieces -= 1;
                            if begun.elapsed() > PROMPT {
                                self.late.push(to);
                            }
                            events.extend(Arc::into_inner(token).map(Event::LocalDone));
                        }
                        _ => {}
                    }
                }
                Err(error) => {
                    // The library may still use the memory.
                    self.all.push_back(long);
                    return Err(error);
                }
            }
        }
        Ok(found)
    }

    /// Asks for the memory of a request's gets back; each ends as failed when MPI is done with it.
    pub(in crate::comm) fn cancel(&mut self, token: Token) {
        for long in &mut self.all {
            if let Then::Filled(get) = long.then
                && get.token == token
            {
                long.request.cancel();
                long.then = Then::GivenUp(get);
            }
        }
    }
}

/// What a look found.
enum Look {
    Open,
    Complete,
    /// Something else is to be waited for.
    Another(Long),
}

impl Long {
    fn look(&mut self, comm: Comm, events: &mut Vec<Event>) -> Result<Look> {
        if let Then::GivenUp(Get { token, piece_of, from, number, len }) = self.then {
            let Some(cancelled) = self.request.test_cancelled()? else { return Ok(Look::Open) };
            let end = if cancelled {
                // The target sends it all the same, and it must not be taken for another one.
                let mut bytes = vec![0; len].into_boxed_slice();
                // SAFETY: memory of the message's own, kept beside the request.
                let request = unsafe { comm.begin_receive(bytes.as_mut_ptr(), len, Some(from), tag(number, Beside::Get))? };
                Look::Another(Long { request, then: Then::Thrown(bytes) })
            } else {
                Look::Complete
            };
            if piece_of.is_none() {
                events.push(given_up(token));
            }
            return Ok(end);
        }
        if !self.request.test()? {
            return Ok(Look::Open);
        }
        if let Then::Sent(token) | Then::Filled(Get { token, piece_of: None, .. }) = self.then {
            events.push(Event::LocalDone(token));
        }
        Ok(Look::Complete)
    }
}
