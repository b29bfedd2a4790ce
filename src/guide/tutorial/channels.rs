//! Channels: data for one other rank, again and again.
//!
//! A halo goes to the same neighbor in every step, a panel to the same row of ranks, a bucket of updates to the same owner. A *channel* is made
//! once for it. Its [`Outlet`](crate::channel::Outlet) sends, its [`Inlet`](crate::channel::Inlet) receives, and between them are *slots* in the
//! receiver's memory.
//!
//! ```
//! use global_arrays::{channel::{from, to}, prelude::*};
//! # fn main() -> Result<(), Error> {
//! # Launch::new().ranks(4).network("threads").run(|job| {
//! const EAST: u64 = 0;
//! const WEST: u64 = 1;
//! let (me, ranks, n) = (job.rank(), job.size(), 8);
//! let (left, right) = ((me + ranks - 1) % ranks, (me + 1) % ranks);
//! let ([mut east, mut west], [mut from_west, mut from_east]) =
//!     job.channels([to::<f64>(right, EAST, n), to(left, WEST, n)], [from(left, EAST), from(right, WEST)])?;
//!
//! let mut u = Array2::from_elem((n, n + 2), me as f64); // n columns, and one of each neighbor
//! for _step in 0..3 {
//!     east.put(u.column(n))?;
//!     west.put(u.column(1))?;
//!     // Work that needs no neighbor goes here: the columns travel meanwhile.
//!     u.column_mut(0).assign(&from_west.wait()?.view());
//!     u.column_mut(n + 1).assign(&from_east.wait()?.view());
//! }
//! assert_eq!((u[[0, 0]], u[[0, n + 1]]), (left as f64, right as f64));
//! # job.sync()
//! # })
//! # }
//! ```
//!
//! All members of the group create their channels together. Each says where its outlets lead, with a tag and the longest message, and where its
//! inlets come from. An end without a partner is an error that names it.
//!
//! | call | what it does | waits for |
//! |---|---|---|
//! | [`put(view)`](crate::channel::Outlet::put) | writes a message straight into the next slot; the view may be reused | a free slot, if all slots are unread |
//! | [`fill(len, write)`](crate::channel::Outlet::fill) | lets `write` write the message where it will be read | the same |
//! | [`wait()`](crate::channel::Inlet::wait) | the next message, as a slice of its slot | the message |
//! | dropping what `wait` returned | gives the slot back | nothing |
//! | [`try_put`](crate::channel::Outlet::try_put), [`is_ready`](crate::channel::Outlet::is_ready), [`try_wait`](crate::channel::Inlet::try_wait) | the same | nothing |
//! | [`wait_any(inlets)`](crate::channel::wait_any) | which of some inlets has a message | one of them |
//!
//! Messages of a channel arrive whole, once each, in order, with any length up to the longest. The receiver need not call anything for them to
//! arrive. A slot belongs to one rank at a time, which the types know: you cannot read a message after you gave it back, nor write one
//! that is being read.
//!
//! # How far ahead
//!
//! A channel has two slots, so a sender can be two messages ahead. [`Channels::new(job).slots(k)`](crate::channel::Channels::slots) makes it
//! `k`. If all ranks of a ring first send `k` messages and then receive, none waits; with one more, all wait for each other, and the error says
//! so: `rank 0 waits for a free slot of channel 8 to rank 1, ...`.
//!
//! # Many at once
//!
//! A multicast is a loop over outlets, and no copy of the data is kept. A reduction is a loop over inlets in the order of the ranks, so it has
//! the same bits each time, whoever comes first.
//!
//! # Coming from CkDirect
//!
//! | CkDirect | here |
//! |---|---|
//! | `CkDirect_createHandle` at the receiver | [`from`](crate::channel::from): the slots belong to the channel |
//! | `CkDirect_assocLocal` at the sender | [`to`](crate::channel::to), and any view at each `put`: one buffer can go to many |
//! | `CkDirect_put` | [`put`](crate::channel::Outlet::put) |
//! | the callback | [`wait`](crate::channel::Inlet::wait), or [`wait_any`](crate::channel::wait_any) |
//! | `CkDirect_ReadyMark` | dropping what `wait` returned |
//! | `CkDirect_ReadyPollQ` | which inlets `wait_any` gets |
//! | the out-of-band pattern in the last bytes | a word beside the data: any value and any length can be sent, also on networks that do not write in order |
//!
//! Next: [active messages and mailboxes](super::messages).
