//! Cray Gemini by DMAPP (ARMCI-Gemini: Vishnu, Daily, Palmer, HiPC 2012).
//!
//! | file | contents |
//! |---|---|
//! | `networks` | what a job can name |
//! | `dmapp` | the calls of DMAPP that are used |
//! | `adapter` | DMAPP as an adapter |
//! | `mailboxes` | frames in mailboxes, which are made at first contact |
//! | `soft` | DMAPP without an adapter, over the ranks of one process |
//! | `library` | DMAPP itself, by `shim.c` |
//!
//! `shim.c` is compiled by users on their machine: the header of DMAPP alone tells the values of its enumerations, and nothing of it is copied here.
//!
//! # Visible writes
//!
//! With strict ordering a write that has ended is visible, and a fence sends nothing. Otherwise a read of eight bytes behind the writes that have
//! ended tells for all of them: one for each peer that was written.
//!
//! # Atomic operations
//!
//! Words of 8 bytes belong to the adapter, also for their owner: it adds, combines bits, compares and swaps. What else there is, swaps and minima, is a
//! comparison with what was seen until nobody has come between. Processors and adapter do not exclude each other (§III-B3), so words of 4 bytes,
//! signals and rings of letters are the processors' alone.
//!
//! # What ran
//!
//! All of it over the software device, whose works overtake each other wherever the manual (S-2446) allows that, and in virtual time on a model of the
//! adapter. Nothing over DMAPP: no such machine runs any more, and no simulator of it exists. `shim.c` was compiled with a header of ours alone, and
//! called with a stub of DMAPP that records its calls (`tests/runner/stubs`): that shows the order of arguments, their units, and that values come from
//! the header.
//!
//! # Known limits
//!
//! * A segment of DMAPP is more than its handle of 128 bits, but a peer gets the handle only. `shim.c` takes the rest from a segment of its own rank, and
//!   as place and length those of each call. No free text says whether DMAPP looks at them.
//! * Atomic operations on words of 4 bytes are messages.
//! * Short accumulates take the lock, as long ones do: additions by the adapter would not exclude a rank that holds it (§III-B3 adds up to 512
//!   bytes that way).
//! * Owners set the words of a new counter or array by the processor, a sync before the adapter changes them. An adapter that kept a word beyond its
//!   operation would not see that. The software device holds a word for the time of an operation, and catches a processor that writes it then.
//! * Letters are messages: by atomic operations each would take three round trips.
//! * Bytes at the edges of a transfer that are no words of 4, 8 or 16 bytes go as single bytes, which DMAPP moves slowly.
//! * A rank looks at one word for each peer that it has met, and meets one peer at a time, in about four round trips.

mod adapter;
mod dmapp;
mod library;
#[cfg(all(test, not(loom)))]
mod library_tests;
mod mailboxes;
mod networks;
#[cfg(feature = "_bench")]
mod pair;
mod soft;
#[cfg(all(test, not(loom)))]
mod tests;

pub(super) use self::networks::NETWORK;
