//! Messages beside the frames from or into the memory that they are for: long contiguous puts and gets, at the side that asks for them,
//! and long gets at the other.

use std::collections::VecDeque;

use super::{
    ffi::{Comm, Request, Result},
    origins::given_up,
};
use crate::comm::{Event, Token};

/// Looks at most in one poll: each is a call.
const LOOKS: usize = 8;

/// What a message beside the frames is: each kind has tags of its own, so that they never meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// From who asks: a long put, or a long frame of requests.
    Request = 0,
    /// To who asks: a long get.
    Get = 1,
    /// To who asks: a long frame of answers.
    Answer = 2,
}

/// Below the least upper bound of tags that a library may have, 32,767.
pub(super) fn tag(number: u64, what: Beside) -> i32 {
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
pub(super) struct Get {
    pub(super) token: Token,
    pub(super) from: usize,
    pub(super) number: u64,
    pub(super) len: usize,
}

/// Those under way.
#[derive(Debug, Default)]
pub(super) struct Longs(VecDeque<Long>);

impl Longs {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A put whose bytes leave the caller's memory.
    pub(super) fn put(&mut self, request: Request, token: Token) {
        self.0.push_back(Long { request, then: Then::Sent(token) });
    }

    /// A get that fills the caller's memory.
    pub(super) fn get(&mut self, request: Request, get: Get) {
        self.0.push_back(Long { request, then: Then::Filled(get) });
    }

    /// What a peer asked for leaves the segment.
    pub(super) fn serve(&mut self, request: Request) {
        self.0.push_back(Long { request, then: Then::Nothing });
    }

    /// Looks at some, in turn; how many are complete.
    pub(super) fn look(&mut self, comm: Comm, events: &mut Vec<Event>) -> Result<u64> {
        let mut found = 0;
        for _ in 0..self.0.len().min(LOOKS) {
            let Some(mut long) = self.0.pop_front() else { break };
            match long.look(comm, events) {
                Ok(Look::Open) => self.0.push_back(long),
                Ok(Look::Complete) => found += 1,
                Ok(Look::Another(rest)) => self.0.push_back(rest),
                Err(error) => {
                    // The library may still use the memory.
                    self.0.push_back(long);
                    return Err(error);
                }
            }
        }
        Ok(found)
    }

    /// Asks for the memory of a request's gets back; each ends as failed when MPI is done with it.
    pub(super) fn cancel(&mut self, token: Token) {
        for long in &mut self.0 {
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
        if let Then::GivenUp(Get { token, from, number, len }) = self.then {
            let Some(cancelled) = self.request.test_cancelled()? else { return Ok(Look::Open) };
            events.push(given_up(token));
            if !cancelled {
                return Ok(Look::Complete);
            }
            // The target sends it all the same, and it must not be taken for another one.
            let mut bytes = vec![0; len].into_boxed_slice();
            // SAFETY: memory of the message's own, kept beside the request.
            let request = unsafe { comm.begin_receive(bytes.as_mut_ptr(), len, Some(from), tag(number, Beside::Get))? };
            return Ok(Look::Another(Long { request, then: Then::Thrown(bytes) }));
        }
        if !self.request.test()? {
            return Ok(Look::Open);
        }
        if let Then::Sent(token) | Then::Filled(Get { token, .. }) = self.then {
            events.push(Event::LocalDone(token));
        }
        Ok(Look::Complete)
    }
}
