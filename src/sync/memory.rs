//! Memory for the objects of a group: a block at the same offset of every member's segment, checked and committed together.
//!
//! If the largest request of any rank fits for every rank, the check is done. Otherwise each rank says how much it needs, one rank of
//! each machine says what is left there, and every rank reaches the same verdict. Memory is committed only if all of it fits. Nodes into
//! which one machine was split are checked together.

use std::ops::Range;

use super::{
    Group, JobState, Op,
    members::{Members, Part},
};
use crate::{
    error::{Error, Result},
    memory::limits::{self, Available, Limit},
};

impl JobState {
    /// Commits `len` bytes at `offset` of this rank's segment after all ranks of the group agreed that it fits. Collective.
    fn commit(&self, group: &Group, offset: usize, len: usize, what: &dyn Fn() -> String) -> Result<()> {
        let range = offset..offset + len;
        let need = self.lacks(range.clone());
        self.fits(group, len as u64, need as u64, what)?;
        let done = self.commit_own(range);
        // One rank's refusal is everyone's.
        let verdict = group.agree_values(Op::Commit, 0, u64::from(done.is_err()), 0, 0)?;
        match done {
            Err(error) => Err(Error::system("committing memory for an array", error)),
            Ok(()) if verdict.sum > 0 => {
                Err(Error::system("committing memory for an array on another rank", std::io::ErrorKind::OutOfMemory))
            }
            Ok(()) => Ok(()),
        }
    }

    fn fits(&self, group: &Group, asked: u64, need: u64, what: &dyn Fn() -> String) -> Result<()> {
        let conduit = self.conduit();
        let machine = conduit.topology().machine(conduit.rank());
        // Where as much as the neediest asks for fits for each, as mostly, nobody need know what the others ask for: ranks are not
        // connected with all others for it, nor hold a word of each.
        let most = group.agree_values(Op::Commit, 1, 0, 0, need)?.max;
        let here = self.near(&group.inner.members);
        let surely = most == 0 || most.checked_mul(here.len() as u64).is_some_and(|all| all <= self.left().bytes);
        if group.agree_values(Op::Commit, 2, u64::from(!surely), 0, 0)?.sum == 0 {
            return Ok(());
        }
        let first_here = here.member(0) == group.member();
        let left = if first_here { self.left() } else { Available { bytes: u64::MAX, limit: Limit::MemAvailable } };
        let mine: [u64; 5] = [machine as u64, asked, need, left.bytes, left.limit as u64];
        let all = group.all_gather(&[mine])?;
        let mut machines: Vec<u64> = all.iter().map(|words| words[0]).collect();
        machines.sort_unstable();
        machines.dedup();
        for machine in machines {
            let here = || all.iter().filter(|words| words[0] == machine);
            let sum = |word: usize| here().map(|words| words[word]).sum();
            let free = here().min_by_key(|words| words[3]).expect("a machine has a member");
            let left = Available { bytes: free[3], limit: Limit::from_code(free[4]) };
            refuse(machine as usize, sum(1), sum(2), left, what)?;
        }
        Ok(())
    }

    /// The members on this rank's machine.
    fn near(&self, members: &Members) -> Part {
        let topology = self.conduit().topology();
        members.part(topology.near_ranks(), |rank| topology.is_near(rank))
    }

    /// What the ranks of this machine can still commit together. Ranks that take no part in a creation count too.
    pub(crate) fn left(&self) -> Available {
        let least = limits::available();
        let own = self.memory_limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.conduit().committed()));
        if own < least.bytes { Available { bytes: own, limit: Limit::Variable } } else { least }
    }

    /// Whether `len` bytes at `offset` of the segments of some ranks can be committed, if all of this machine lack as much as this one:
    /// for ranks that share no memory yet by which they could tell each other.
    pub(super) fn fits_alike(&self, ranks: &Members, range: Range<usize>, what: &dyn Fn() -> String) -> Result<()> {
        let conduit = self.conduit();
        let machine = conduit.topology().machine(conduit.rank());
        let here = self.near(ranks).len();
        let need = self.lacks(range.clone());
        if need == 0 {
            return Ok(());
        }
        refuse(machine, (here * range.len()) as u64, (here * need) as u64, self.left(), what)
    }

    /// Commits what has no pages yet.
    pub(super) fn commit_own(&self, range: Range<usize>) -> std::io::Result<()> {
        // Not in the head of the loop: the lock would be held through it.
        let missing = self.heap().uncommitted(range);
        for range in missing {
            self.conduit().commit(range.clone())?;
            self.heap().set_committed(range);
        }
        Ok(())
    }
}

/// An error if `need` bytes without pages, of `asked` in all, are more than what is left.
fn refuse(machine: usize, asked: u64, need: u64, left: Available, what: &dyn Fn() -> String) -> Result<()> {
    if need <= left.bytes {
        return Ok(());
    }
    // Of what is asked for, a part may have pages already; the pieces that pages come in may be more than it.
    let available = (left.bytes + asked).saturating_sub(need);
    Err(Error::OutOfMemory { what: what(), asked, available, limit: left.limit.to_string(), machine, operation: "create".into() })
}

/// For "no room": every segment begins with a block of the world's.
const NOWHERE: usize = 0;

/// Added to the bytes needed for a member whose fence failed, or instead of them for one without room; beyond any memory, and 4096 of them still fit.
const FAILURE: u64 = 1 << 50;

impl JobState {
    /// Takes a block in the segments of all members, frees what all have dropped, commits this member's `own` bytes of `most`.
    /// Collective. Where nothing needs pages this is one agreement, or two in a group of some ranks. Returns the offset and a number, both equal on all members.
    pub(crate) fn allocate(
        &self,
        group: &Group,
        most: usize,
        own: usize,
        op: Op,
        fingerprint: u64,
        what: &dyn Fn() -> String,
    ) -> Result<(usize, u64)> {
        let _creating = self.creating(op.name())?;
        // What this rank still puts into a dropped array must not land in its successor.
        let fenced = group.fence_all(op);
        let world = group.inner.is_world();
        // The world's block ends at the lowest mark of all ranks at most. A group's goes where all members have room.
        let bound = || {
            let heap = self.heap();
            if world { heap.mark() } else { heap.find_high(most, usize::MAX).unwrap_or(NOWHERE) }
        };
        // Where it would go if nobody dropped anything: right unless the agreement frees or the heaps differ.
        let own_bound = bound();
        let guess = if world { self.heap().find_low(most, own_bound).ok() } else { None };
        let need = guess.map_or(0, |offset| self.lacks(offset..offset + own));
        let used = group.inner.blocks().still_used();
        let failure = if fenced.is_err() { FAILURE } else { 0 };
        let mut agreed = group.agree_values(op, fingerprint, need as u64 + failure, used, !(own_bound as u64))?;
        fenced?;
        if agreed.sum >= FAILURE {
            return Err(Group::failed_elsewhere(op, agreed.sum / FAILURE));
        }
        let freed = group.inner.blocks().agree(agreed.union);
        freed.iter().for_each(|&offset| self.heap().free(offset));
        if !world && !freed.is_empty() {
            // What was freed may be where it fits: agree again.
            agreed.max = group.agree_values(op, fingerprint, 0, 0, !(bound() as u64))?.max;
        }
        let full = |available: usize| Error::HeapFull {
            operation: op.name().into(),
            what: what(),
            asked: most as u64,
            available: available as u64,
            heap: self.conduit().segment_len() as u64,
        };
        let bound = !agreed.max as usize;
        let (offset, certain) = if world {
            let offset = self.heap().find_low(most, bound).map_err(full)?;
            // The guess of every member stands if nothing was freed.
            (offset, freed.is_empty() && agreed.sum == 0 && guess == Some(offset))
        } else {
            self.agree_high(group, [most, own], bound, op, fingerprint)?.map_err(full)?
        };
        {
            let mut heap = self.heap();
            if world { heap.take_low(offset, most) } else { heap.take_high(offset, most) }
        }
        if !certain && let Err(error) = self.commit(group, offset, own, what) {
            self.heap().free(offset);
            return Err(error);
        }
        self.conduit().set_contents(offset..offset + most, true);
        group.inner.blocks().add(offset);
        Ok((offset, group.inner.next_object()))
    }

    /// Bytes of a range, widened to whole pieces, that have no pages.
    fn lacks(&self, range: Range<usize>) -> usize {
        self.heap().uncommitted(range).iter().map(|range| range.len()).sum()
    }

    /// The highest offset from `bound` down where all members have room, and whether none of them lacks pages there; or how much room
    /// there is below all of them. `bound` is the least of what the members found for themselves. Collective: one agreement where
    /// their heaps are alike.
    fn agree_high(
        &self,
        group: &Group,
        [most, own]: [usize; 2],
        mut bound: usize,
        op: Op,
        fingerprint: u64,
    ) -> Result<std::result::Result<(usize, bool), usize>> {
        while bound != NOWHERE {
            let found = self.heap().find_high(most, bound).unwrap_or(NOWHERE);
            let need = if found == bound { self.lacks(found..found + own) as u64 } else { FAILURE };
            let all = group.agree_values(op, fingerprint, need, 0, !(found as u64))?;
            if all.sum < FAILURE {
                return Ok(Ok((bound, all.sum == 0)));
            }
            // Lower than before, because somebody has no room there.
            bound = !all.max as usize;
        }
        let mark = self.heap().mark();
        let lowest = !group.agree_values(op, fingerprint, 0, 0, !(mark as u64))?.max as usize;
        Ok(Err(lowest.saturating_sub(self.heap().low_end())))
    }

    /// Frees a block on all members. Collective, after an agreement.
    pub(crate) fn free(&self, group: &Group, offset: usize) {
        group.inner.blocks().remove(offset);
        self.heap().free(offset);
    }
}
