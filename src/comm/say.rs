//! Lines for people.

use std::{
    fmt,
    io::{self, Write},
};

/// Prints one line of stderr by one write, so that lines of ranks do not mix. If it cannot be written, as to a launcher that is gone,
/// nobody else can be told.
pub(crate) fn say(line: impl fmt::Display) {
    let _ = io::stderr().write_all(format!("global-arrays: {line}\n").as_bytes());
}
