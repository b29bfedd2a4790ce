//! The call of the program that a thread is in: its line, and which array it is about. Collectives publish it, so that a rank that waits
//! can name what a late rank was in.

use std::{cell::RefCell, panic::Location, sync::Arc};

use crate::error::calling;

/// An operation and the array that it is about.
#[derive(Clone, Debug)]
struct About {
    operation: &'static str,
    array: Arc<str>,
}

thread_local! {
    /// What the thread does, in an array's collective. A thread is in one call at a time, of one job.
    static ABOUT: RefCell<Option<About>> = const { RefCell::new(None) };
}

/// The thread is in an operation on an array until this is dropped.
#[derive(Debug)]
pub(crate) struct Doing(Option<About>);

impl Doing {
    pub(crate) fn new(operation: &'static str, array: &Arc<str>) -> Self {
        Doing(ABOUT.replace(Some(About { operation, array: array.clone() })))
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        ABOUT.set(self.0.take());
    }
}

/// A number that tells calls apart, most of the time.
pub(super) fn key() -> u64 {
    let line = calling().map_or(0, |at| std::ptr::from_ref::<Location<'_>>(at).addr());
    let about = ABOUT.with_borrow(|about| {
        about.as_ref().map_or(0, |about| about.array.as_ptr().addr() ^ about.operation.as_ptr().addr().rotate_left(21))
    });
    // Fibonacci hashing: addresses differ in few bits.
    (line as u64).rotate_left(32).wrapping_add(about as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The operation on an array that the thread is in, for people; empty if it is in none.
pub(super) fn operation() -> Option<String> {
    ABOUT.with_borrow(|about| about.as_ref().map(|about| format!("{} of \"{}\"", about.operation, about.array)))
}

/// Where the program made the call, for people, to stand behind what it called.
pub(super) fn line() -> String {
    calling().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()))
}
