//! Active messages and mailboxes: work for whoever owns the data, and messages from anybody.
//!
//! A channel needs two partners who know each other, and a longest message. Where a rank cannot know who will send to it there are two
//! others. An *active message* names a handler, which runs at its target: the target's program need not wait for it, only call its endpoint from time to
//! time. A message of a *mailbox* has a tag, and waits until it is received.
//!
//! ```
//! use global_arrays::{active::{Handlers, Short}, prelude::*};
//! use std::collections::HashMap;
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! const COUNT: Short<u64> = Short::new("count");
//! const HOW_MANY: Short<u64, u64> = Short::new("how many");
//!
//! let owner = |word: u64| word as usize % job.size();
//! let mut words = Handlers::new(HashMap::<u64, u64>::new()) // the state of this rank
//!     .on(COUNT, |counts, _, word| *counts.entry(word).or_default() += 1)
//!     .on(HOW_MANY, |counts, _, word| counts.get(&word).copied().unwrap_or(0))
//!     .open(job)?;
//! for word in 0..100 {
//!     words.send(owner(word), COUNT, word)?; // returns at once
//! }
//! words.sync()?; // all that anybody sent has been handled
//! assert_eq!(words.call(owner(42), HOW_MANY, 42)?, 4);
//! let counts = words.close()?; // the state comes back
//! assert_eq!(counts.len(), 25);
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! Handlers have the state by `&mut` and may borrow anything that outlives the endpoint. A handler sends by its context, never by the endpoint, and what it sends
//! leaves when it has returned. Messages of one rank to another keep their order, also behind what it put there before: put a patch, then send a
//! message that says so.
//!
//! The rules of GASNet, and what became of each, are a table in [`active`](crate::active).
//!
//! # Who handles while I wait
//!
//! Handlers run only in calls of the endpoint: `send`, `call`, `poll`, `sync`, `close`, and the wait for a reply. A rank in a collective of the job, at
//! a lock or on a channel handles nothing. If another one waits for its handler meanwhile, and it for that rank, that is a deadlock, which
//! the error names with both lines:
//!
//! ```text
//! rank 0 would wait in call of "find" forever: rank 0 waits for the reply of rank 1 to "find" at dht.rs:31,
//! rank 1 waits for rank 0 in barrier of all ranks at dht.rs:40
//! ```
//!
//! So end a phase of messages by its `sync` before the ranks meet elsewhere. A rank that computes for long between two calls lets others wait: call
//! [`poll`](crate::active::ActiveMessages::poll) now and then.
//!
//! # Mailboxes
//!
//! ```
//! use global_arrays::{mailbox::Any, prelude::*};
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! const RESULT: u64 = 1;
//! let mut mail = job.mailbox::<f64>()?;
//! if job.rank() > 0 {
//!     mail.send(0, RESULT, &vec![1.0; 1000 * job.rank()])?; // any length
//! } else {
//!     for _ in 1..job.size() {
//!         let result = mail.receive(Any, RESULT)?; // whoever is first
//!         assert_eq!(result.data.len(), 1000 * result.from);
//!     }
//! }
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! # Which one
//!
//! | what you have | use |
//! |---|---|
//! | tasks that are numbers | a [`Counter`](crate::Counter): one atomic operation, and nobody serves it |
//! | data for the same partner again and again | a [channel](super::channels): no copy at the receiver, no call of it |
//! | a small change where the data are, whoever has it | an active message |
//! | results of whoever is first; messages whose length or sender is not known | a mailbox |
//! | sums into patches | [`accumulate`](crate::GlobalArray::accumulate) |
//!
//! Next: [ghost cells](super::ghosts).
