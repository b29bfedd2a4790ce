//! Active messages: a message names a handler, which runs where it arrives.
//!
//! [`Handlers`] binds the state of a rank to what happens with each [kind](Short) of message; [`open`](Handlers::open) makes an
//! [`ActiveMessages`] of it. Handlers run inside the calls of that value, in the thread that makes them, and nowhere else. So they have the state by `&mut`, without a
//! lock; they may borrow what outlives it, use arrays, and send by their [`Context`].
//!
//! | rule of GASNet | here |
//! |---|---|
//! | a handler must not block, or use its network but for one reply | gone: it may use arrays and locks; by its context it sends any number of messages, which leave when it has returned |
//! | a handler may run at any time, in any thread that polls | gone: only in calls of its own [`ActiveMessages`] |
//! | no-interrupt sections, handler-safe locks | types: the state is borrowed by a call, or by the program, never by both |
//! | handlers are registered by numbers of a table | types: a kind is a constant with the types of its arguments and its result |
//! | requests of one rank to another may overtake each other | stronger: they keep their order, also behind its puts |
//! | the largest medium differs from network to network | stronger: 8 KiB on every one |
//! | a long message brings its data to memory of the target | a put, and a message behind it |
//!
//! Handlers run in calls only. So a rank must not wait for something else, a collective of the job for instance, while another one waits for its
//! handlers: that is an error, which names both lines.
//!
//! # What does not compile
//!
//! The state cannot be held across a call, in which handlers have it:
//! ```compile_fail,E0499
//! # use global_arrays::{active::{ActiveMessages, Short}, Error};
//! # const ADD: Short<u64> = Short::new("add");
//! # fn f(messages: &mut ActiveMessages<'_, u64>) -> Result<(), Error> {
//! let sum = messages.state();
//! messages.send(1, ADD, 5)?;
//! *sum += 1;
//! # Ok(())
//! # }
//! ```
//! What a handler borrows cannot end before the endpoint:
//! ```compile_fail,E0597
//! # use global_arrays::{active::{Handlers, Short}, Error, Job};
//! # const ADD: Short<u64> = Short::new("add");
//! # fn f(job: &Job) -> Result<(), Error> {
//! let messages = {
//!     let mut sums = [0; 4];
//!     Handlers::new(&mut sums).on(ADD, |sums, _, value| sums[0] += value).open(job)?
//! };
//! messages.close()?;
//! # Ok(())
//! # }
//! ```
//! A handler sends by its context. The endpoint, which runs it, is not there when it is made:
//! ```compile_fail,E0425
//! # use global_arrays::{active::{Handlers, Short}, Error, Job};
//! # const ADD: Short<u64> = Short::new("add");
//! # fn f(job: &Job) -> Result<(), Error> {
//! let mut messages = Handlers::new(0).on(ADD, |_, _, value| _ = messages.send(1, ADD, value)).open(job)?;
//! # messages.sync()
//! # }
//! ```
//! A handler returns what its kind says:
//! ```compile_fail,E0308
//! # use global_arrays::{active::{Handlers, Short}};
//! const FIND: Short<u64, Option<f64>> = Short::new("find");
//! let handlers = Handlers::new(0).on(FIND, |_, _, key| key + 1);
//! ```
//!
//! # Source
//! GASNet's core API, as EXTOLL's conduit implements it: EXTOLL §III-B. Order and polling: ARMCI-Gemini §III.

mod argument;
mod endpoint;
mod handlers;
mod kind;
mod outgoing;

use crate::memory::ring::MOST_WORDS;

pub use self::{
    argument::Argument,
    endpoint::{ActiveMessages, Reply},
    handlers::{Context, Handlers},
    kind::{Medium, Short},
};

/// The most words of arguments: a letter's first word is its head.
const MOST: usize = MOST_WORDS - 1;
