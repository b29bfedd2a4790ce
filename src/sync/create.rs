//! Groups of some members of a group, collective over these members only.
//!
//! Members do not know each other's segments yet, so they send messages along a binomial tree. They find the lowest of their marks, the
//! lower ends of their upper heaps. The group's scratch memory goes below it, unless a dropped group left some (`reclaim`).

use std::{collections::HashSet, ops::Range};

use super::{
    Group, Op, Scratch, fingerprint,
    members::Members,
    whereabouts::{self, group_code},
};
use crate::{
    calls::located,
    comm::{
        engine::{Waiter, chain::one_of},
        kit::tree::neighbors,
    },
    error::{Error, Result},
};

/// Instead of 1 for a member that could not commit memory: a transfer of it has failed.
const NOT_FENCED: u64 = 2;

struct Creating<'a> {
    parent: &'a Group,
    members: usize,
    /// Those who have not sent what is waited for.
    missing: &'a [usize],
    speaks: bool,
}

impl Waiter for Creating<'_> {
    fn operation(&self) -> String {
        format!("creation of a group of {} ranks", self.members)
    }
    fn missing(&self) -> String {
        whereabouts::places(self.parent.inner.engine().conduit(), self.missing.iter().copied())
    }
    fn hopeless(&self) -> Option<Error> {
        // Who is not in the new group may have ended.
        self.parent.without(self.missing.iter().copied(), || self.operation())
    }
    fn speaks(&self) -> bool {
        self.speaks
    }
    fn awaits(&self) -> Option<usize> {
        let conduit = self.parent.inner.engine().conduit();
        match self.missing {
            _ if !self.parent.inner.job.mail.is_clear(self.parent.inner.engine()) => None,
            [rank] => Some(*rank),
            several => one_of(conduit, several.iter().copied()).map(|(rank, _)| rank),
        }
    }
    fn place(&self, rank: usize) -> String {
        whereabouts::place(self.parent.inner.engine().conduit(), rank)
    }
}

impl Group {
    /// A new group of the members `list` of this group, in that order. Collective over exactly those members. A rank may call it for
    /// several lists, one after the other.
    ///
    /// # Errors
    /// A list that is empty, names a member twice, names one that does not exist, or omits the caller; too little memory; the end of
    /// the job.
    #[doc(alias("GA_Pgroup_create", "GA_Pgroup_self"))]
    #[doc(alias = "group")]
    #[track_caller]
    pub fn subgroup(&self, list: &[usize]) -> Result<Group> {
        located(move || {
            let inner = &*self.inner;
            let wrong = |what: String| Err(Error::Argument { operation: "subgroup".into(), what });
            if let Some(&stranger) = list.iter().find(|&&member| member >= self.size()) {
                return wrong(format!("{stranger} is not a member of a group of {}", self.size()));
            }
            // A bit for each member: every rank of a large job may be here at the same time.
            let mut named = vec![0_u64; self.size().div_ceil(64)];
            let mut is_twice = |member: usize| {
                let (word, bit) = (&mut named[member / 64], 1 << (member % 64));
                let before = *word;
                *word |= bit;
                before & bit != 0
            };
            if list.iter().any(|&member| is_twice(member)) {
                return wrong(format!("the list {list:?} names a member twice"));
            }
            if !list.contains(&self.member()) {
                return wrong(format!("member {} is not in the list {list:?} that it calls with", self.member()));
            }
            self.create(inner.members.some(list, |list| inner.job.conduit().one_copy(list)))
        })
    }

    /// A new group of every `stride`-th member of a range of this group: `range.start`, `range.start + stride` ... below `range.end`.
    /// Collective over exactly those members. It takes no list, neither to name the group nor inside it.
    ///
    /// # Errors
    /// A range that is empty or ends beyond the members; a stride of 0; a caller that is not among these members; too little memory; the
    /// end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(5).network("threads").run(|job| {
    ///     let odd = job.rank() % 2;
    ///     let half = job.subgroup_range(odd..job.size(), 2)?;
    ///     assert_eq!(half.ranks().collect::<Vec<_>>(), if odd == 1 { vec![1, 3] } else { vec![0, 2, 4] });
    ///     half.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// `MPI_Group_range_incl`.
    #[track_caller]
    pub fn subgroup_range(&self, range: Range<usize>, stride: usize) -> Result<Group> {
        located(move || {
            let inner = &*self.inner;
            let what = |why: &str| Error::Argument {
                operation: "subgroup_range".into(),
                what: format!("members {range:?} in steps of {stride}, of a group of {}: {why}", self.size()),
            };
            if range.is_empty() || range.end > self.size() {
                return Err(what(if range.is_empty() { "there are none" } else { "it ends beyond the group" }));
            }
            if stride == 0 {
                return Err(what("the step must not be 0"));
            }
            if !range.contains(&self.member()) || !(self.member() - range.start).is_multiple_of(stride) {
                return Err(what(&format!("member {}, which calls, is not among them", self.member())));
            }
            let len = range.len().div_ceil(stride);
            // With one member the step may be beyond the members.
            let stride = stride.min(self.size()) as isize;
            self.create(inner.members.every(range.start, stride, len, |list| inner.job.conduit().one_copy(list)))
        })
    }

    fn create(&self, ranks: Members) -> Result<Group> {
        let inner = &*self.inner;
        // The same members may make several groups: they count those of one parent alike, because they make them in the same
        // order. Those of different parents are different groups: the key holds the parent's.
        let members = ranks.fingerprint();
        inner.engine().check("group")?;
        let _creating = inner.job.creating("group")?;
        let count = self.count_of(members);
        let key = fingerprint(&[inner.key, members, count]);
        whereabouts::publish(inner.engine().conduit(), Op::Group, group_code(key, ranks.len()), count as u32);
        // Puts that this rank still has under way into arrays of a group that it dropped must not land in what takes their place.
        let fenced = self.fence_all(Op::Group);
        let offset = self.place_scratch(&ranks, key, fenced.is_ok())?;
        let bytes = Scratch::bytes(ranks.len());
        let committed = inner.job.commit_own(offset..offset + bytes);
        if committed.is_ok() {
            // A reused hole of the heap holds old words; agreements start from zero.
            let base = inner.job.conduit().segment();
            inner.segments.own_part::<u8>(base, offset, bytes).fill(0);
        }
        // From here on the scratch is given back when the group is dropped, a failure included.
        let group = Group::new(inner.job.clone(), ranks.clone(), key, offset);
        // Nobody may post before everybody has cleared, and the failure of one is that of all: one more round over messages.
        let failure = if fenced.is_err() { NOT_FENCED } else { u64::from(committed.is_err()) };
        let [failed, _] = self.meet_by_mail(&ranks, fingerprint(&[key, 1]), [failure, 0])?;
        fenced?;
        committed.map_err(|error| Error::system("committing memory for a group", error))?;
        if failed == NOT_FENCED {
            return Err(Self::failed_elsewhere(Op::Group, 1));
        }
        if failed > 0 {
            return Err(Error::system("committing memory for a group on another rank", std::io::ErrorKind::OutOfMemory));
        }
        Ok(group)
    }

    /// A new group of the members on the calling rank's node, in this group's order. Collective over exactly these members.
    ///
    /// # Errors
    /// Same as [`subgroup`](Self::subgroup).
    ///
    /// # Examples
    /// A sum that crosses the network once for each node:
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(6).ranks_per_node(2).network("threads").run(|job| {
    ///     let (node, leaders) = (job.node_group()?, job.leader_group()?);
    ///     let mut sum = [job.rank()];
    ///     node.all_reduce(&mut sum, ops::sum)?;
    ///     if let Some(leaders) = &leaders {
    ///         leaders.all_reduce(&mut sum, ops::sum)?;
    ///     }
    ///     node.broadcast(0, &mut sum)?;
    ///     assert_eq!((sum[0], node.size(), leaders.is_some()), (15, 2, job.rank() % 2 == 0));
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// `MPI_Comm_split_type` with `MPI_COMM_TYPE_SHARED`.
    #[doc(alias = "MPI_Comm_split_type")]
    #[track_caller]
    pub fn node_group(&self) -> Result<Group> {
        let own = self.node_of(self.member());
        self.subgroup(&(0..self.size()).filter(|&member| self.node_of(member) == own).collect::<Vec<_>>())
    }

    /// A new group of the first member on each node, in this group's order; `None` for all others. Collective over exactly these members.
    ///
    /// # Errors
    /// Same as [`subgroup`](Self::subgroup).
    #[track_caller]
    pub fn leader_group(&self) -> Result<Option<Group>> {
        let mut seen = HashSet::new();
        let leaders: Vec<usize> = (0..self.size()).filter(|&member| seen.insert(self.node_of(member))).collect();
        leaders.contains(&self.member()).then(|| self.subgroup(&leaders)).transpose()
    }

    /// A new group of the members that pass the same `color`, in this group's order. Collective over this group.
    ///
    /// # Errors
    /// Same as [`subgroup`](Self::subgroup).
    ///
    /// # Source
    /// GA: `GA_Pgroup_split_irreg`; `GA_Pgroup_split` into n groups of consecutive ranks is `color = rank * n / size`.
    #[doc(alias("GA_Pgroup_split", "GA_Pgroup_split_irreg", "GA_Pgroup_duplicate"))]
    #[track_caller]
    pub fn split(&self, color: usize) -> Result<Group> {
        located(move || self.split_ordered(color, 0))
    }

    /// A new group of the members that pass the same `color`, in the order of their `key`; members with equal keys keep this group's
    /// order. Collective over this group.
    ///
    /// You can split groups to any depth, and alternate between them, their parents and the world group.
    ///
    /// # Errors
    /// Same as [`subgroup`](Self::subgroup).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(6).network("threads").run(|job| {
    ///     let half = job.split_ordered(job.rank() / 3, -(job.rank() as isize))?;
    ///     assert_eq!(half.member(), 2 - job.rank() % 3);
    ///     let alone = half.split(half.member())?;
    ///     assert_eq!(alone.ranks().collect::<Vec<_>>(), [job.rank()]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// `MPI_Comm_split`.
    #[track_caller]
    pub fn split_ordered(&self, color: usize, key: isize) -> Result<Group> {
        located(move || {
            // Two's complement.
            let pairs = self.all_gather(&[color, key as usize])?;
            let (pairs, _) = pairs.as_chunks::<2>();
            let mut list: Vec<usize> = (0..self.size()).filter(|&member| pairs[member][0] == color).collect();
            list.sort_by_key(|&member| pairs[member][1] as isize);
            self.subgroup(&list)
        })
    }

    fn count_of(&self, list: u64) -> u64 {
        let mut counts = self.inner.lists.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = counts.entry(list).or_insert(0);
        *count += 1;
        *count
    }

    /// Where the group's scratch memory goes: into that of a group which all members dropped, if they all `may_reuse` it.
    fn place_scratch(&self, ranks: &Members, key: u64, may_reuse: bool) -> Result<usize> {
        let inner = &*self.inner;
        let bytes = Scratch::bytes(ranks.len());
        let heap = inner.job.heap();
        let free = heap.find_below(bytes, heap.mark()).is_ok();
        // A member without room says so by a mark of zero, and all fail alike.
        let mark = if free { heap.mark() as u64 } else { 0 };
        drop(heap);
        let still_used = if may_reuse { inner.job.with_groups_of(ranks, |groups| groups.still_used()) } else { u64::MAX };
        let [lowest, used] = self.meet_by_mail(ranks, key, [!mark, still_used])?;
        let freed = inner.job.with_groups_of(ranks, |groups| groups.agree(used));
        if let Some((&offset, others)) = freed.split_first() {
            // The first is that of a group of the same size.
            let mut heap = inner.job.heap();
            others.iter().for_each(|&block| heap.free(block));
            inner.job.with_groups_of(ranks, |groups| groups.add(offset));
            return Ok(offset);
        }
        let mark = !lowest as usize;
        let what = || format!("a group of {} ranks", ranks.len());
        let full = |available: usize| Error::HeapFull {
            operation: Op::Group.name().into(),
            what: what(),
            asked: bytes as u64,
            available: available as u64,
            heap: inner.job.conduit().segment_len() as u64,
        };
        let offset = inner.job.heap().find_below(bytes, mark).map_err(full)?;
        // New memory: nobody commits before everybody has looked, or those who come late would count it twice.
        let fits = inner.job.fits_alike(ranks, offset..offset + bytes, &what);
        let [refused, _] = self.meet_by_mail(ranks, fingerprint(&[key, 3]), [u64::from(fits.is_err()), 0])?;
        fits?;
        if refused > 0 {
            return Err(Error::system("memory for a group on another node", std::io::ErrorKind::OutOfMemory));
        }
        inner.job.heap().take_high(offset, bytes);
        inner.job.conduit().set_contents(offset..offset + bytes, true);
        inner.job.with_groups_of(ranks, |groups| groups.add(offset));
        Ok(offset)
    }

    /// The maximum of the first word and the union of the second over ranks that share no memory yet; also a barrier among them. Along a
    /// tree, up and down.
    fn meet_by_mail(&self, ranks: &Members, key: u64, words: [u64; 2]) -> Result<[u64; 2]> {
        let (engine, mail) = (self.inner.engine(), &self.inner.job.mail);
        let me = ranks.member(engine.rank()).unwrap_or(0);
        let (parent, children) = neighbors(me, ranks.len());
        let children: Vec<usize> = children.into_iter().map(|position| ranks.rank(position)).collect();
        let answer = fingerprint(&[key, 2]);
        let [mut most, mut union] = words;
        let mut missing = children.clone();
        while !missing.is_empty() {
            let waiter = Creating { parent: self, members: ranks.len(), missing: &missing, speaks: true };
            let (from, [theirs, used]) = mail.receive(engine, key, &waiter)?;
            missing.retain(|&rank| rank != from);
            most = most.max(theirs);
            union |= used;
        }
        if let Some(parent) = parent.map(|position| ranks.rank(position)) {
            // Whoever the parent waits for is named there.
            let waiter = Creating { parent: self, members: ranks.len(), missing: &[parent], speaks: false };
            mail.send(engine, parent, key, [most, union], &waiter)?;
            [most, union] = mail.receive(engine, answer, &waiter)?.1;
        }
        for rank in children {
            let waiter = Creating { parent: self, members: ranks.len(), missing: &[rank], speaks: true };
            mail.send(engine, rank, answer, [most, union], &waiter)?;
        }
        Ok([most, union])
    }
}

impl Drop for super::GroupInner {
    fn drop(&mut self) {
        // The world's scratch lives as long as the job.
        if !self.is_world() {
            let blocks = self.blocks().take_all();
            self.job.with_groups_of(&self.members, |groups| groups.drop_block(self.scratch.offset(), blocks));
        }
    }
}
