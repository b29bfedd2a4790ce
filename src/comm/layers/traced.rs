//! Prints a line to stderr for each operation of a rank and for each event.
//!
//! ```text
//! global-arrays: rank 0, 5120 µs: put rank 1 at 65536, 64 bytes, Token(3#17), Complete
//! global-arrays: rank 0, 5131 µs: put_block rank 1 at 65536, 4 x 16 bytes, Token(3#17), Pending
//! global-arrays: rank 0, 5160 µs: LocalDone(Token(3#17))
//! ```
//!
//! The time counts from the start of the layer. A line is written when the call returns, so an event that another thread polls may come
//! before it. An operation that is complete on return passes its token on to the next. Transfers that are given up, and refused mail,
//! have no line.

use std::{fmt, time::Instant};

use super::observed::Observer;
use crate::comm::{Event, kit::say::say};

/// An observer that prints each operation and event.
#[derive(Debug)]
pub(super) struct Traced {
    rank: usize,
    start: Instant,
}

impl Traced {
    pub(super) fn new(rank: usize) -> Self {
        Traced { rank, start: Instant::now() }
    }

    fn line(&self, what: impl fmt::Display) {
        say(format_args!("rank {}, {} µs: {what}", self.rank, self.start.elapsed().as_micros()));
    }
}

impl Observer for Traced {
    fn called(&self, name: &'static str, _bytes: usize, text: fmt::Arguments<'_>) {
        self.line(format_args!("{name} {text}"));
    }

    fn happened(&self, event: &Event) {
        self.line(format_args!("{event:?}"));
    }
}
