//! Where ranks are: what each rank publishes when it enters a collective, and what others read.
//!
//! These two words have no memory ordering: they only help to report missing ranks, and to choose which rank to wait for first.
//!
//! ```text
//!  | group: 40 bits | its members: 16 bits | operation: 8 bits |      | which call: 32 bits | number of the agreement before: 32 bits |
//! ```

use std::{sync::atomic::Ordering, time::Duration};

use super::{Group, Op, call};
use crate::{
    comm::{
        Conduit,
        engine::chain::{end_of_chain, one_of},
        node::CALL_SHIFT,
    },
    error::Error,
};

/// Between looks for answers.
const PAUSE: Duration = Duration::from_millis(1);

const OPERATION_BITS: u32 = 8;
const GROUP_SHIFT: u32 = 24;

/// What members publish of a group: a part of its key, and its number of members. The world's key is zero.
pub(super) fn group_code(key: u64, members: usize) -> u64 {
    key << GROUP_SHIFT | (members as u64 & 0xffff) << OPERATION_BITS
}

/// Publishes what this rank enters: an operation of a group, and the agreement before it.
#[inline]
pub(super) fn publish(conduit: &Conduit, op: Op, group: u64, sequence: u32) {
    conduit.supervision().publish([op as u64 | group, u64::from(sequence) | call::published(conduit) << CALL_SHIFT]);
}

/// What a rank is in, or was in last, for people.
pub(super) fn place(conduit: &Conduit, rank: usize) -> String {
    let Some([code, detail]) = conduit.supervision().last_seen(rank) else { return "an unknown place".into() };
    let (op, members) = (Op::from_code(code), code >> OPERATION_BITS & 0xffff);
    // An operation on an array, if it is one, and the line of the call.
    let call = conduit.supervision().call(rank, detail >> CALL_SHIFT);
    let (operation, line) = call::split(&call);
    match op {
        Op::Start | Op::End => op.name().into(),
        _ if !operation.is_empty() => format!("{operation}{line}"),
        Op::Group => format!("{} of {members} ranks{line}", op.name()),
        _ if code >> GROUP_SHIFT == 0 => format!("{} of all ranks{line}", op.name()),
        _ => format!("{} of a group of {members}{line}", op.name()),
    }
}

/// Where each of some ranks was last seen, for people.
pub(super) fn places(conduit: &Conduit, ranks: impl Iterator<Item = usize>) -> String {
    let mut seen: Vec<(String, Vec<usize>)> = Vec::new();
    for rank in ranks {
        let place = place(conduit, rank);
        match seen.iter_mut().find(|(known, _)| *known == place) {
            Some((_, ranks)) => ranks.push(rank),
            None => seen.push((place, vec![rank])),
        }
    }
    let say = |(place, ranks): (String, Vec<usize>)| match &ranks[..] {
        [rank] => format!("rank {rank} in {place}"),
        [first, second] => format!("ranks {first} and {second} in {place}"),
        ranks => format!("{} ranks ({}, {} ... {}) in {place}", ranks.len(), ranks[0], ranks[1], ranks[ranks.len() - 1]),
    };
    seen.into_iter().map(say).collect::<Vec<_>>().join(", ")
}

impl Group {
    /// What a rank is in, or was in last, for people.
    pub(crate) fn place(&self, rank: usize) -> String {
        place(self.inner.engine().conduit(), rank)
    }

    /// Why a collective can never end well, if one of some ranks has come to its end, all of whose acts are waited for.
    pub(super) fn without(&self, mut ranks: impl Iterator<Item = usize>, operation: impl FnOnce() -> String) -> Option<Error> {
        if !self.inner.engine().conduit().supervision().knows_ends() {
            return None;
        }
        let ended = ranks.find(|&rank| self.has_ended(rank))?;
        let (rank, operation, seen) = (self.inner.engine().rank(), operation(), format!("rank {ended} has ended"));
        Some(Error::Disagreement { rank, operation: operation.into(), seen })
    }

    /// There were other ranks in the job, and all of them have come to their end.
    pub(crate) fn is_left_alone(&self) -> bool {
        let conduit = self.inner.engine().conduit();
        conduit.topology().size() > 1 && conduit.supervision().have_others_ended()
    }

    /// Whether a rank waits for the orderly end of the job.
    pub(crate) fn has_ended(&self, rank: usize) -> bool {
        self.inner.engine().conduit().supervision().has_ended(rank)
    }

    /// Where members were last seen, for people: those of this machine, and some of others, which are asked.
    pub(super) fn whereabouts(&self) -> String {
        /// Members of other machines that are asked, and for how long.
        const ASKED: usize = 8;
        const LIMIT: Duration = Duration::from_secs(1);
        let (engine, conduit) = (self.inner.engine(), self.inner.engine().conduit());
        let is_near = |rank: &usize| conduit.topology().is_near(*rank);
        let asked: Vec<usize> = self.ranks().filter(|rank| !is_near(rank)).take(ASKED).collect();
        let begin = conduit.now();
        let supervision = conduit.supervision();
        // The look at a wait asks.
        let is_silent = |&&rank: &&usize| (supervision.published_wait(rank, 0), supervision.last_seen(rank)).1.is_none();
        while asked.iter().filter(is_silent).count() > 0 && conduit.now() - begin < LIMIT {
            engine.progress();
            conduit.pause(PAUSE);
        }
        let more = self.ranks().filter(|rank| !is_near(rank)).count() - asked.len();
        let seen = places(conduit, self.ranks().filter(|rank| is_near(rank) || asked.contains(rank)));
        if more > 0 { format!("{seen}, {more} more on other machines") } else { seen }
    }

    /// Whether a rank has entered the collective that this rank is in. None of a rank of another machine that was not asked.
    fn is_here(&self) -> impl Fn(usize) -> Option<bool> {
        let (conduit, group) = (self.inner.engine().conduit(), self.inner.code >> OPERATION_BITS);
        let entered = move |[code, sequence]: [u64; 2]| (code >> OPERATION_BITS == group).then_some(sequence as u32);
        let own = conduit.supervision().last_seen(conduit.rank()).and_then(entered);
        // Sequences wrap: "as far as this rank" means less than half the circle ahead.
        move |rank: usize| {
            let theirs = entered(conduit.supervision().last_seen(rank)?);
            Some(theirs.zip(own).is_some_and(|(theirs, own)| theirs.wrapping_sub(own) as i32 >= 0))
        }
    }

    /// The members that are known not to have entered the collective that this rank is in.
    pub(super) fn late(&self) -> impl Iterator<Item = usize> {
        let (own, is_here) = (self.inner.engine().rank(), self.is_here());
        self.ranks().filter(move |&rank| rank != own && is_here(rank) == Some(false))
    }

    /// A late member to wait for, of those that are mapped: rather one that waits for this rank in turn, or one that waits at all.
    pub(super) fn one_late(&self) -> Option<usize> {
        /// Of a larger group so many members are looked at each time, round and round.
        const LOOKED_AT: usize = 1024;
        let (inner, conduit) = (&*self.inner, self.inner.engine().conduit());
        let is_here = self.is_here();
        let is_late =
            |rank: &usize| *rank != conduit.rank() && conduit.mapped_segment(*rank).is_some() && is_here(*rank) == Some(false);
        let start = if inner.size() <= LOOKED_AT { 0 } else { inner.suspect.load(Ordering::Relaxed) };
        let members = || (start..start + LOOKED_AT.min(inner.size())).map(|at| at % inner.size());
        let found = one_of(conduit, members().map(|member| inner.rank_of(member)).filter(is_late));
        // One that leads back stays the first, so that it is found again.
        let leads_back = found.filter(|(_, leads_back)| *leads_back);
        let next = leads_back.and_then(|(rank, _)| members().find(|&member| inner.rank_of(member) == rank));
        inner.suspect.store(next.unwrap_or((start + LOOKED_AT) % inner.size()), Ordering::Relaxed);
        found.map(|(rank, _)| rank)
    }

    /// Whether no member before this one is known to be in the collective.
    pub(super) fn is_first_here(&self) -> bool {
        let is_here = self.is_here();
        self.ranks().take(self.inner.me()).all(|rank| is_here(rank) != Some(true))
    }

    /// A message: which members are late and where they were last seen; and of a rank of another machine that is awaited, the one that it
    /// waits for in the end.
    pub(super) fn missing(&self, awaited: Option<usize>) -> String {
        let conduit = self.inner.engine().conduit();
        let mut late: Vec<usize> = self.late().collect();
        match awaited {
            Some(rank) if !conduit.topology().is_near(rank) => {
                let last = end_of_chain(conduit, rank);
                if !late.contains(&last) {
                    late.push(last);
                }
            }
            Some(rank) if late.is_empty() => late.push(rank),
            _ => {}
        }
        places(conduit, late.into_iter())
    }
}
