//! The call of the program that a thread is in: its line, and its array. Collectives publish it, so that a rank that waits can name it.

use std::panic::Location;

use super::Group;
use crate::{
    calls::{calling, doing, replace_doing},
    comm::Conduit,
};

/// The thread is in an operation on an array until this is dropped.
#[derive(Debug)]
pub(crate) struct Doing(u64);

impl Doing {
    /// `array` is its number and its name.
    #[inline]
    pub(crate) fn new(group: &Group, operation: &'static str, (number, name): (u64, &str)) -> Self {
        let text = || format!("{operation} of \"{name}\"{}", line());
        let about = (operation.as_ptr().addr() as u64).rotate_left(40) ^ number;
        Doing(replace_doing(group.inner.engine().conduit().supervision().name_call(key(about), &text)))
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        replace_doing(self.0);
    }
}

/// What to publish for the call that the thread is in.
#[inline]
pub(super) fn published(conduit: &Conduit) -> u64 {
    match doing() {
        0 => conduit.supervision().name_call(key(0), &line),
        published => published,
    }
}

/// The operation on an array that the thread is in, for people.
pub(super) fn operation(conduit: &Conduit) -> Option<String> {
    let doing = Some(doing()).filter(|&doing| doing != 0)?;
    Some(split(&conduit.supervision().call(conduit.rank(), doing)).0.to_owned()).filter(|operation| !operation.is_empty())
}

/// The text of a call: the operation on an array, if it is one, and the line behind it.
pub(super) fn split(text: &str) -> (&str, &str) {
    text.rfind(" at ").map_or((text, ""), |at| text.split_at(at))
}

/// A number that tells calls apart, most of the time.
fn key(about: u64) -> u64 {
    let line = calling().map_or(0, |at| std::ptr::from_ref::<Location<'_>>(at).addr());
    // Fibonacci hashing: addresses differ in few bits.
    (line as u64 ^ about).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Where the program made the call, for people, to stand behind what it called.
fn line() -> String {
    calling().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()))
}
