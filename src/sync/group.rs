//! Groups: ordered sets of ranks that share arrays and make collective calls.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
};

use super::{JobState, Kind, Op, Scratch, members::Members, nodes::Nodes, reclaim::LiveBlocks, whereabouts};
use crate::{
    calls::located,
    comm::{
        Conduit,
        engine::{Engine, Label, Road},
    },
    error::{Error, Result},
    memory::segments::{Bases, Evenly, Segments},
};

/// An ordered set of ranks: all ranks of a job, or some of them.
///
/// Members are numbered from 0 in the group's order. Arrays, counters and collectives belong to a group, and only its members take
/// part in them. There is no default group: you always pass the group explicitly.
#[doc(alias = "GA_Pgroup_destroy")]
#[derive(Clone, Debug)]
pub struct Group {
    pub(crate) inner: Arc<GroupInner>,
}

#[derive(Debug)]
pub(crate) struct GroupInner {
    pub(crate) job: Arc<JobState>,
    pub(crate) members: Members,
    is_world: bool,
    size: usize,
    me: usize,
    /// Tells groups apart; the same on all members.
    pub(crate) key: u64,
    /// What members publish of the group when they enter a collective.
    pub(super) code: u64,
    pub(crate) segments: Segments,
    /// The same for words that are changed atomically: none is mapped where some members could reach them by the processor and others
    /// only by a network whose atomic operations do not exclude the processor's.
    pub(crate) words: Segments,
    /// The same for words of four bytes.
    pub(crate) half_words: Segments,
    pub(crate) scratch: Scratch,
    pub(super) nodes: Nodes,
    /// A member that was late, or the next to be looked at.
    pub(super) suspect: AtomicUsize,
    /// Number of the last agreement.
    pub(crate) sequence: AtomicU32,
    /// How many groups were made of this one from each list of members.
    pub(super) lists: Mutex<HashMap<u64, u64>>,
    /// How many arrays the group has made.
    objects: AtomicU64,
    busy: AtomicBool,
    /// What this rank called since operations share a sync; 0 while they do not.
    pub(crate) deferred: AtomicU64,
    failed: OnceLock<String>,
    /// Of its arrays and words.
    blocks: Mutex<LiveBlocks>,
    /// Ranks of some node outnumber its cores: those of one node meet by a counter.
    pub(super) by_counter: bool,
    /// All members' memory is mapped.
    pub(crate) mapped: bool,
    /// It is not, and the network adds to memory that is not, by processors of its node: accumulates of elements that it knows then
    /// go by the processor to members that are mapped.
    pub(crate) owners_add: bool,
    /// All members' memory is mapped, and no operations are counted.
    pub(crate) direct: bool,
    /// Nothing is ever in flight: stores into mapped memory are ordered before an agreement's own release stores.
    quiet: bool,
}

/// The ranks of a group, in the group's order.
#[derive(Clone, Debug)]
pub struct Ranks<'a> {
    group: &'a GroupInner,
    next: usize,
}

impl Iterator for Ranks<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        (self.next < self.group.size).then(|| {
            self.next += 1;
            self.group.rank_of(self.next - 1)
        })
    }
}

impl GroupInner {
    #[inline]
    pub(crate) fn rank_of(&self, member: usize) -> usize {
        self.members.rank(member)
    }

    /// How a word of a member, of some bytes, is changed atomically; counts the operation.
    #[inline]
    pub(crate) fn road(&self, member: usize, bytes: usize) -> Road {
        if self.words.is_short(member) { Road::Processor } else { self.counted_road(member, bytes) }
    }

    #[cold]
    fn counted_road(&self, member: usize, bytes: usize) -> Road {
        self.count(Kind::Atomic, member, bytes);
        self.word_road(member)
    }

    /// The same; counts nothing.
    pub(crate) fn word_road(&self, member: usize) -> Road {
        if self.words.is_mapped(member) { Road::Processor } else { Road::Network }
    }

    /// Counts an operation on a member's memory, if the job counts.
    #[cold]
    pub(crate) fn count(&self, kind: Kind, member: usize, bytes: usize) {
        if let Some(counts) = &self.job.counts {
            counts.add(kind, self.rank_of(member), bytes as u64);
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn me(&self) -> usize {
        self.me
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.job.engine
    }

    /// A number for an array of this group, equal on all members.
    pub(crate) fn next_object(&self) -> u64 {
        self.objects.fetch_add(1, Ordering::Relaxed)
    }

    /// The blocks of its arrays and words.
    pub(crate) fn blocks(&self) -> MutexGuard<'_, LiveBlocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_world(&self) -> bool {
        self.is_world
    }
}

impl Group {
    pub(crate) fn world(job: Arc<JobState>, scratch: usize) -> Self {
        let ranks = Members::all(job.conduit().topology().size());
        Self::with(job, ranks, true, 0, scratch)
    }

    pub(super) fn new(job: Arc<JobState>, members: Members, key: u64, scratch: usize) -> Self {
        Self::with(job, members, false, key, scratch)
    }

    fn with(job: Arc<JobState>, members: Members, is_world: bool, key: u64, scratch: usize) -> Self {
        let conduit = job.conduit();
        let size = members.len();
        let me = members.member(conduit.rank()).expect("a member makes the group");
        let bases = bases(conduit, &members);
        let (mapped, counted) = (bases.are_all(), job.counts.is_some());
        let nodes = Nodes::new(conduit, &members, me, mapped);
        let segments_of = |bases| Segments::new(bases, conduit.segment_len(), conduit.over(), counted);
        let segments = segments_of(bases);
        let coherent = if mapped { 8 } else { conduit.capabilities().native.coherent };
        let words_of = |width| if width <= coherent { segments.clone() } else { segments_of(Bases::unmapped(size)) };
        let inner = GroupInner {
            scratch: Scratch::new(scratch, size),
            nodes,
            members,
            is_world,
            size,
            me,
            key,
            code: whereabouts::group_code(key, size),
            words: words_of(8),
            half_words: words_of(4),
            segments,
            suspect: AtomicUsize::new(0),
            sequence: AtomicU32::new(0),
            lists: Mutex::default(),
            objects: AtomicU64::new(1),
            busy: AtomicBool::new(false),
            deferred: AtomicU64::new(0),
            failed: OnceLock::new(),
            blocks: Mutex::default(),
            by_counter: conduit.capabilities().crowded,
            mapped,
            owners_add: !mapped && conduit.capabilities().native.accumulate,
            direct: mapped && !counted,
            quiet: mapped && !conduit.has_network(),
            job,
        };
        Group { inner: Arc::new(inner) }
    }

    /// Returns true if both are of the same ranks of one job, in the same order.
    pub(crate) fn is_like(&self, other: &Group) -> bool {
        let (own, other) = (&self.inner, &other.inner);
        Arc::ptr_eq(own, other) || Arc::ptr_eq(&own.job, &other.job) && own.members == other.members
    }

    /// Number of members.
    #[doc(alias("GA_Nnodes", "GA_Pgroup_nnodes", "GA_Get_pgroup_size"))]
    #[must_use]
    pub fn size(&self) -> usize {
        self.inner.size
    }

    /// The calling rank's number in this group. In the group of all ranks, which a [`Job`](crate::Job) is, it equals the rank.
    #[doc(alias = "GA_Pgroup_nodeid")]
    #[must_use]
    pub fn member(&self) -> usize {
        self.inner.me
    }

    /// The rank in the job of a member.
    ///
    /// # Panics
    /// If there is no such member.
    #[doc(alias = "GA_Pgroup_absolute_id")]
    #[must_use]
    #[track_caller]
    pub fn rank_of(&self, member: usize) -> usize {
        assert!(member < self.size(), "there is no member {member} in a group of {}", self.size());
        self.inner.rank_of(member)
    }

    /// The member that a rank of the job is, if it is one. Takes a search where the group was made from a list.
    ///
    /// # Source
    /// `MPI_Group_translate_ranks`.
    #[must_use]
    pub fn member_of(&self, rank: usize) -> Option<usize> {
        self.inner.members.member(rank)
    }

    /// The number of the node on which a member runs, the same in every group of the job.
    ///
    /// # Panics
    /// If there is no such member.
    ///
    /// # Source
    /// GA: `GA_Cluster_proc_nodeid`.
    #[doc(alias = "GA_Cluster_proc_nodeid")]
    #[must_use]
    #[track_caller]
    pub fn node_of(&self, member: usize) -> usize {
        self.inner.engine().conduit().topology().node(self.rank_of(member))
    }

    /// The number of nodes on which members run. Local; it looks at each member.
    ///
    /// # Source
    /// GA: `GA_Cluster_nnodes`.
    #[doc(alias = "GA_Cluster_nnodes")]
    #[must_use]
    pub fn nodes(&self) -> usize {
        let topology = self.inner.engine().conduit().topology();
        self.ranks().map(|rank| topology.node(rank)).collect::<HashSet<_>>().len()
    }

    /// The members' ranks in the job, in the group's order.
    #[doc(alias = "GA_List_nodeid")]
    #[must_use]
    pub fn ranks(&self) -> Ranks<'_> {
        Ranks { group: &self.inner, next: 0 }
    }

    /// Completes everything that this rank has in flight, at all targets, and waits for all members to do the same.
    ///
    /// Collective. When it returns, every put and accumulate that any member issued before is visible to all members.
    ///
    /// # Errors
    /// An operation that failed since the last fence; members in different collectives; the end of the job. If members
    /// disagree, all of them get the error.
    #[doc(alias("GA_Sync", "GA_Pgroup_sync"))]
    #[track_caller]
    pub fn sync(&self) -> Result<()> {
        located(move || self.settle(Op::Sync, 0))
    }

    /// A fence and an agreement. The failure of one member's operation is everyone's: the agreement carries it.
    #[inline]
    pub(crate) fn settle(&self, op: Op, fingerprint: u64) -> Result<()> {
        let fenced = self.fence_all(op);
        let verdict = self.agree_values(op, fingerprint, u64::from(fenced.is_err()), 0, 0)?;
        fenced?;
        if verdict.sum > 0 { Err(Self::failed_elsewhere(op, verdict.sum)) } else { Ok(()) }
    }

    /// What a member says when others had a transfer that failed.
    #[cold]
    pub(crate) fn failed_elsewhere(op: Op, members: u64) -> Error {
        let what = format!("a transfer of {members} other member(s) failed; their errors say which");
        Error::Mismatch { operation: op.name().into(), what }
    }

    /// Waits for all members; completes nothing. Collective.
    ///
    /// # Errors
    /// Members in different collectives; the end of the job.
    #[doc(alias = "ga_msg_sync")]
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        located(move || self.agree(Op::Barrier, 0))
    }

    /// Makes everything that this rank put or accumulated at a member visible there. One-sided.
    ///
    /// It sends nothing if completion implies visibility (ARMCI-Gemini, Theorem 1).
    ///
    /// # Errors
    /// A member that does not exist; an operation that failed since the last fence; the end of the job.
    #[track_caller]
    pub fn fence(&self, member: usize) -> Result<()> {
        located(move || {
            if member >= self.size() {
                return Err(Error::argument("fence", format_args!("member {member} of a group of {}", self.size())));
            }
            self.inner.engine().check("fence")?;
            self.inner.engine().fence(Some(self.inner.rank_of(member)), &Label::new("(all arrays)", "fence"))
        })
    }

    #[inline]
    pub(crate) fn fence_all(&self, op: Op) -> Result<()> {
        let engine = self.inner.engine();
        if self.inner.segments.over() {
            return Err(engine.over(op.name()));
        }
        if self.inner.quiet {
            return Ok(());
        }
        engine.fence(None, &Label::new("(all arrays)", op.name()))
    }

    /// This rank has carried out so many floating-point operations, with so many bytes from and to memory: over a simulated network they
    /// take time.
    #[inline]
    pub(crate) fn work(&self, flops: f64, bytes: f64) {
        self.inner.engine().conduit().compute(flops, bytes);
    }

    /// Nothing is computed, and large memory has no contents: virtual time alone.
    pub(crate) fn skips(&self) -> bool {
        self.inner.engine().conduit().skips()
    }

    /// Enters a collective; one thread of a rank at a time.
    #[inline]
    pub(super) fn enter(&self, op: Op) -> Result<Entered<'_>> {
        let inner = &*self.inner;
        if inner.segments.over() {
            return Err(inner.engine().over(op.name()));
        }
        // Acquire pairs with the Release of the thread that left.
        if inner.busy.swap(true, Ordering::Acquire) {
            return Err(Error::Busy { operation: op.name().into(), rank: inner.engine().rank() });
        }
        let entered = Entered(&inner.busy);
        if let Some(cause) = inner.failed.get() {
            return Err(Error::GroupFailed { operation: op.name().into(), cause: cause.clone() });
        }
        let sequence = inner.sequence.load(Ordering::Relaxed);
        whereabouts::publish(inner.engine().conduit(), op, inner.code, sequence);
        Ok(entered)
    }

    /// Remembers why the group can no longer be used, and passes the error on.
    pub(super) fn fail(&self, error: Error) -> Error {
        let _ = self.inner.failed.set(error.to_string());
        error
    }
}

/// Where the segments of members begin that this rank sees.
fn bases(conduit: &Conduit, members: &Members) -> Bases {
    let of_ranks = |ranks: Range<usize>| {
        let first = conduit.mapped_segment(ranks.start)?.as_ptr();
        Some(Evenly { from: ranks.start, count: ranks.len(), first, step: conduit.segment_len() })
    };
    match (conduit.topology().mapped_ranks(), members) {
        (Some(ranks), _) if ranks.is_empty() => Bases::unmapped(members.len()),
        (Some(ranks), Members::List(list)) => match of_ranks(ranks) {
            Some(evenly) => Bases::listed(list.clone(), evenly),
            None => Bases::unmapped(members.len()),
        },
        (Some(ranks), Members::Range { stride, .. }) => {
            let mapped = members.within(&ranks).unwrap_or(0..0);
            let first = if mapped.is_empty() { None } else { conduit.mapped_segment(members.rank(mapped.start)) };
            let Some(first) = first else { return Bases::unmapped(members.len()) };
            let step = (*stride as usize).wrapping_mul(conduit.segment_len());
            let evenly = Evenly { from: mapped.start, count: mapped.len(), first: first.as_ptr(), step };
            Bases::evenly(members.len(), evenly)
        }
        (None, _) => Bases::table((0..members.len()).map(|member| conduit.mapped_segment(members.rank(member)))),
    }
}

/// The right to be inside a collective; given back when dropped.
#[derive(Debug)]
pub(super) struct Entered<'a>(&'a AtomicBool);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl AsRef<Group> for Group {
    fn as_ref(&self) -> &Group {
        self
    }
}
