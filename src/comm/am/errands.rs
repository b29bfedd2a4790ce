//! Memory that an endpoint opens and shuts for the ranks that it answers for.
//!
//! Peers reach a rank's memory through the adapter of its endpoint. So a rank that commits or gives back memory brings an *errand*
//! to its agent (`node::errands`) and waits. The agent looks for errands whenever it looks at the network, also for itself.

use std::{
    io::{self, ErrorKind},
    ops::Range,
};

use super::{
    Am,
    endpoint::Endpoint,
    frame::RecordKind,
    one_sided::one_sided,
    peer::Op,
    regions::{OpeningRange, Region, Shutting},
    route::Route,
    wire::{Result, Transfers, Wire},
};
use crate::comm::node::Errand;

/// So much is made known to the adapter before others are answered again: it takes some milliseconds.
const AT_ONCE: usize = 64 << 20;

impl<W: Wire> Am<W> {
    /// Opens a range of this rank's segment to its peers.
    ///
    /// # Errors
    /// The network cannot have it. [`Interrupted`](ErrorKind::Interrupted): the job is over, and whether the range is open is not known.
    pub(super) fn open(&self, range: Range<usize>) -> io::Result<()> {
        self.run_errand(Errand::Open(range))
    }

    /// Shuts a range of this rank's segment: returns when no peer reads or writes it any more.
    ///
    /// # Errors
    /// The job is over.
    pub(super) fn shut(&self, range: Range<usize>) -> io::Result<()> {
        self.run_errand(Errand::Shut(range))
    }

    fn run_errand(&self, errand: Errand) -> io::Result<()> {
        const OVER: &str = "the job is over, and others may still use the memory";
        // A wire that is closed reads and writes nothing.
        if !self.is_one_sided || self.is_closed() {
            return Ok(());
        }
        let _one_at_a_time = self.errand.lock();
        let [own, agent] = [self.rank(), self.endpoint().routes.agent()].map(|rank| self.topology.local(rank));
        self.fabric.bring(own, agent, &errand);
        let mut outcome = None;
        self.drive(|_| {
            outcome = self.fabric.outcome(own);
            Ok(outcome.is_some())
        });
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => Err(io::Error::new(ErrorKind::OutOfMemory, why)),
            None => Err(io::Error::new(ErrorKind::Interrupted, OVER)),
        }
    }
}

impl<W: Wire> Endpoint<W> {
    /// Does what ranks of the node have brought, as far as it takes no long time, and ends what can be ended.
    pub(super) fn look_at_errands(&mut self) -> Result<()> {
        let brought = self.segments.fabric().brought(self.topology.local(self.topology.rank()));
        if brought != self.reach.owned.seen {
            self.reach.owned.seen = brought;
            self.take_errands()?;
        }
        if let Some(OpeningRange { number, range, whole }) = self.reach.owned.opening.pop_front() {
            self.found += 1;
            let piece = range.start..range.end.min(range.start + AT_ONCE);
            let rest = OpeningRange { number, range: piece.end..range.end, whole };
            match self.open(number, piece) {
                Ok(()) if rest.range.is_empty() => self.finish(number, Ok(())),
                Ok(()) => self.reach.owned.opening.push_front(rest),
                // What is open of it is shut again.
                Err(why) => self.revoke(number, rest.whole, Err(why))?,
            }
        }
        if self.reach.owned.shutting.is_empty() {
            return Ok(());
        }
        let mut waiting = std::mem::take(&mut self.reach.owned.shutting);
        let ended = self.own_transfers().ended;
        let is_free = |&mut Shutting { number, begun, .. }: &mut Shutting| {
            begun <= ended && self.reach.owned.of(number).is_none_or(|own| own.is_revoked())
        };
        let free: Vec<Shutting> = waiting.extract_if(.., is_free).collect();
        self.reach.owned.shutting = waiting;
        for Shutting { number, range, taken, mut outcome, .. } in free {
            for (region, opened) in taken {
                one_sided(&mut self.wire).and_then(|wire| wire.shut(opened))?;
                let end = region.offset + region.len;
                for left in [region.offset..range.start.min(end), range.end.max(region.offset)..end] {
                    if !left.is_empty() {
                        outcome = outcome.and(self.open(number, left));
                    }
                }
            }
            self.finish(number, outcome);
        }
        Ok(())
    }

    /// Atomic operations of the adapter on words of this rank are transfers with itself.
    fn own_transfers(&mut self) -> Transfers {
        let rank = self.topology.rank();
        self.wire.one_sided().map(|wire| wire.transfers(rank)).unwrap_or_default()
    }

    fn take_errands(&mut self) -> Result<()> {
        for number in 0..self.routes.answers_for {
            let number = number as u16;
            let is_at_it = self.reach.owned.opening.iter().any(|opening| opening.number == number)
                || self.reach.owned.shutting.iter().any(|shutting| shutting.number == number);
            let local = self.segments.local(number).filter(|_| !is_at_it);
            match local.and_then(|local| self.segments.fabric().errand(local)) {
                Some(Errand::Open(range)) => {
                    self.reach.owned.opening.push_back(OpeningRange { number, range: range.clone(), whole: range });
                }
                Some(Errand::Shut(range)) => self.revoke(number, range, Ok(()))?,
                None => {}
            }
        }
        Ok(())
    }

    fn finish(&self, number: u16, outcome: std::result::Result<(), String>) {
        if let Some(local) = self.segments.local(number) {
            self.segments.fabric().finish(local, outcome);
        }
    }

    fn open(&mut self, number: u16, range: Range<usize>) -> std::result::Result<(), String> {
        let segment = self.segments.of(number);
        let Some(start) = segment.and_then(|segment| segment.range(range.start, range.len())) else {
            return Err("memory outside the segment".into());
        };
        let wire = one_sided(&mut self.wire).map_err(|error| error.to_string())?;
        // SAFETY: committed, and of a segment of this node, which stays mapped while the endpoint lives; it is shut before it is given back. All
        // access it by kernels and atomics.
        let opened = unsafe { wire.open(start, range.len()) }?;
        let region = Region { offset: range.start, len: range.len(), address: opened.address, key: opened.key };
        self.reach.owned.of(number).into_iter().for_each(|own| own.add(region, opened));
        Ok(())
    }

    /// Tells the peers that know the regions of a rank not to use them any more, to shut a range with an outcome.
    fn revoke(&mut self, number: u16, range: Range<usize>, outcome: std::result::Result<(), String>) -> Result<()> {
        let Some(own) = self.reach.owned.of(number) else { return Ok(()) };
        let taken = own.take(&range);
        let (version, told) = if taken.is_empty() { (0, Vec::new()) } else { own.revoke() };
        let begun = self.own_transfers().begun;
        self.reach.owned.shutting.push(Shutting { number, range, taken, begun, outcome });
        for to in told {
            let words = [number.into(), version, 0, 0, 0];
            self.submit(Route::endpoint(to), Op::Small { kind: RecordKind::Revoke, aux: 0, words })?;
        }
        Ok(())
    }
}
