//! Channels: messages that arrive in a slot of the receiver, which one word announces.
//!
//! A channel leads from one rank to another, its *ends* are an [`Outlet`] and an [`Inlet`], and it has *slots* in the receiver's memory, two by
//! default. [`Outlet::put`] writes a message straight into the next slot, and then the slot's word. [`Inlet::wait`] gives the message as a slice
//! of the slot. When that is dropped the sender may use the slot again. [`Group::channels`] creates them.
//!
//! A message takes one operation of the network, without a handshake or a matching receive. The receiver takes no part in it: it may
//! compute, or wait for something else. In exchange both sides agree at creation on who sends to whom, and on the longest message.
//!
//! # Source
//! E. Bohm, S. Chakravorty, P. Jetley, A. Bhatele, L. Kalé, *CkDirect: Unsynchronized One-Sided Communication in a Message-Driven Paradigm*,
//! ICPPW 2009. Its sentinel in the data is a word beside them here, and [the guide](crate::guide::tutorial) has its calls beside ours.

mod connect;
mod inlet;
mod outlet;
mod slot;

use crate::{
    comm::engine::Waiter,
    element::Element,
    error::{Error, Result},
    sync::Group,
};

pub use self::{
    connect::{Connected, Ends, InletEnd, OutletEnd, from, to},
    inlet::{Arrived, wait_any},
    slot::{Inlet, Outlet},
};

/// Options of channels; see [`Group::channels`].
#[derive(Clone, Debug)]
#[must_use = "channels are created by `open`"]
pub struct Channels<'g> {
    group: &'g Group,
    slots: u32,
    hollow: bool,
}

impl<'g> Channels<'g> {
    /// Channels of two slots.
    pub fn new(group: &'g impl AsRef<Group>) -> Self {
        Channels { group: group.as_ref(), slots: 2, hollow: false }
    }

    /// The number of messages that a sender can be ahead of the receiver, on all members: slots of each channel.
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// The program does not need the contents of messages where
    /// [`simulation::Simulation::skips`](crate::simulation::Simulation::skips) says so, on all members: messages then take their time, bring
    /// their length and use no memory, but what they hold is meaningless. Elsewhere this changes nothing.
    pub fn hollow(mut self) -> Self {
        self.hollow = true;
        self
    }

    /// Creates the channels; see [`Group::channels`]. Collective.
    ///
    /// # Errors
    /// Same as there; no slots; members with different options.
    #[track_caller]
    pub fn open<T: Element, O: Ends<OutletEnd<T>>, I: Ends<InletEnd<T>>>(
        self,
        outlets: O,
        inlets: I,
    ) -> Result<Connected<T, O, I>> {
        crate::calls::located(move || connect::connect(&self, outlets, inlets))
    }
}

impl Group {
    /// Creates channels from and to this member: an [`Outlet`] for each [`to`](crate::channel::to), an [`Inlet`] for each
    /// [`from`](crate::channel::from), as arrays if arrays are given, else as a `Vec`. Collective; a member without ends gives empty lists.
    ///
    /// Each outlet has an inlet with the same tag at the other member. Two members can have any number of channels with different tags, and
    /// a member one with itself. Ranks are numbered in this group.
    ///
    /// # Errors
    /// Ends without a partner, which the error lists on all members; two ends with the same member and tag; a member that does not exist;
    /// members that disagree on the type; too little memory; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::{channel::{from, to}, prelude::*};
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(3).network("threads").run(|job| {
    ///     let (left, right) = ((job.rank() + 2) % 3, (job.rank() + 1) % 3);
    ///     let ([mut out], [mut inn]) = job.channels([to::<f64>(right, 0, 10)], [from(left, 0)])?;
    ///     for round in 0..5 {
    ///         out.put(&vec![job.rank() as f64; round])?; // up to 10 elements
    ///         assert_eq!(*inn.wait()?, vec![left as f64; round]);
    ///     }
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// CkDirect §2: `CkDirect_createHandle`, `CkDirect_assocLocal`; MPI: `MPI_Send_init`, `MPI_Recv_init`.
    #[track_caller]
    pub fn channels<T: Element, O: Ends<OutletEnd<T>>, I: Ends<InletEnd<T>>>(
        &self,
        outlets: O,
        inlets: I,
    ) -> Result<Connected<T, O, I>> {
        Channels::new(self).open(outlets, inlets)
    }
}

/// The rank at the other end of a channel, and the tag.
#[derive(Clone, Copy, Debug)]
struct Peer {
    rank: usize,
    tag: u64,
}

/// A wait for a free slot of a channel, or for a message of one of some channels.
struct Waiting<'a> {
    group: &'a Group,
    sends: bool,
    /// It waits for mail, in the creation of the channel.
    creates: bool,
    peers: &'a [Peer],
}

impl<'a> Waiting<'a> {
    fn new<T: Element>(end: &'a slot::End<T>, sends: bool) -> Self {
        Waiting { group: end.group(), sends, creates: false, peers: std::slice::from_ref(&end.peer) }
    }
}

impl Waiter for Waiting<'_> {
    fn operation(&self) -> String {
        let direction = if self.sends { "to" } else { "from" };
        let name = |peer: &Peer| format!("channel {} {direction} rank {}", peer.tag, peer.rank);
        self.peers.iter().map(name).collect::<Vec<_>>().join(" or ")
    }
    fn missing(&self) -> String {
        if self.sends { "a slot that was given back".into() } else { "the next message".into() }
    }
    fn object(&self) -> String {
        format!("{} of {}", if self.sends { "a free slot" } else { "a message" }, self.operation())
    }
    fn awaits(&self) -> Option<usize> {
        let (rank, inner) = (self.peers[0].rank, &self.group.inner);
        let may_have_come = self.creates && !inner.job.mail.is_clear(inner.engine());
        self.peers.iter().all(|peer| peer.rank == rank && !may_have_come).then_some(rank)
    }
    fn awaits_anybody(&self) -> bool {
        !self.creates && self.awaits().is_none()
    }
    fn hopeless(&self) -> Option<Error> {
        let rank = self.peers[0].rank;
        self.peers.iter().all(|peer| self.group.has_ended(peer.rank)).then(|| Error::Deadlock {
            rank: self.group.inner.engine().rank(),
            operation: self.operation().into(),
            cause: format!("rank {rank} has ended"),
        })
    }
    fn place(&self, rank: usize) -> String {
        self.group.place(rank)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{
        Launch,
        comm::{
            kit::mutex::count,
            testing::watched::{Asked, Lists, Watched},
        },
    };

    /// Between two ranks that wait for each other.
    #[test]
    fn a_message_takes_no_lock_and_no_memory_where_ranks_are_mapped() {
        let cost = Mutex::default();
        Launch::new()
            .network("threads")
            .ranks(2)
            .run(|job| {
                let other = 1 - job.rank();
                let ([mut out], [mut inlet]) = job.channels([to::<u64>(other, 0, 100)], [from(other, 0)])?;
                let mut exchange = |times: usize| {
                    (0..times).try_for_each(|k| {
                        out.put(&[7; 100][..k % 100])?;
                        out.fill(k % 100, |slot| slot.fill(8))?;
                        assert_eq!(*inlet.wait()?, [7; 100][..k % 100]);
                        inlet.wait().map(drop)
                    })
                };
                exchange(1)?;
                // A wait of more than 50 ms polls, and so takes a lock: another program may have had the processors. Then once more.
                let mut least = (u64::MAX, 0);
                for _ in 0..5 {
                    let before = count::so_far();
                    exchange(200)?;
                    let after = count::so_far();
                    least = (least.0.min(after.0 - before.0), least.1 + after.1 - before.1);
                }
                if job.rank() == 0 {
                    *cost.lock().unwrap() = Some(least);
                }
                job.sync()
            })
            .unwrap();
        assert_eq!(cost.into_inner().unwrap(), Some((0, 0)), "locks and allocations");
    }

    /// Over a network with signals. A view of any strides is packed.
    #[test]
    fn a_message_is_one_operation_and_so_is_a_credit() {
        let (lists, seen) = (Lists::new(2), Mutex::default());
        let body = |job: &crate::Job| {
            let ([mut out], [mut inlet]) = job.channels([to::<u16>(1 - job.rank(), 0, 9)], [from(1 - job.rank(), 0)])?;
            job.sync()?;
            lists.take(job.rank());
            let view = ndarray::Array2::<u16>::zeros((3, 3));
            out.put(view.t())?;
            out.fill(2, |_| {})?;
            job.barrier()?;
            inlet.wait()?;
            if job.rank() == 0 {
                *seen.lock().unwrap() = lists.take(0);
            }
            job.sync()
        };
        let limit = |_: &mut crate::comm::Capabilities| {};
        let conduit = |member| Watched::conduit(member, lists.clone(), limit);
        Launch::new().ranks(2).timeout(30.0).run_over(conduit, body).unwrap();
        let signals = seen.into_inner().unwrap();
        let signals: Vec<_> = signals.into_iter().filter(|asked| matches!(asked, Asked::Signal(_))).collect();
        // The barrier's lines among them.
        assert!(signals.starts_with(&[Asked::Signal(18), Asked::Signal(4)]), "{signals:?}");
        assert!(signals.ends_with(&[Asked::Signal(0)]), "{signals:?}");
    }
}
