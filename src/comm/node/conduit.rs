//! What the engine drives (`comm`). Only the conduit chooses between the member and the network.

mod waiting;

use std::{
    io,
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering, fence},
    },
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use super::{
    Fabric,
    member::Member,
    supervision::{Shown, Supervision},
};
use crate::comm::{
    Announcement, Awaited, Capabilities, Connections, Events, Issued, LeaveStep, Local, Network, Operation, Remote, Token,
    Topology, VirtualTime,
};

/// One rank's way to all others.
#[derive(Debug)]
pub(crate) struct Conduit {
    member: Member,
    capabilities: Capabilities,
    /// None where all memory is mapped.
    network: Option<Arc<dyn Network>>,
    /// None in real time.
    time: Option<Arc<dyn VirtualTime>>,
    /// No other rank maps this rank's memory: what it waits for comes over the network, or from its own threads.
    is_alone: bool,
    shown: Shown,
}

/// A call that takes time, where time is virtual.
pub(super) struct Inside<'t>(Option<&'t dyn VirtualTime>);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(time) = self.0 {
            time.leave();
        }
    }
}

impl Conduit {
    /// A rank all of whose job's memory is mapped.
    pub(crate) fn mapped(member: Member) -> Self {
        let capabilities = member.capabilities().clone();
        Conduit { member, capabilities, network: None, time: None, is_alone: false, shown: Shown::default() }
    }

    /// A rank with a network. The member's topology says which memory is mapped.
    pub(crate) fn with_network(member: Member, network: Arc<dyn Network>) -> Self {
        let of_node = member.capabilities();
        let capabilities = Capabilities { granule: of_node.granule, crowded: of_node.crowded, ..network.capabilities().clone() };
        let is_alone = member.topology().is_hidden() || member.topology().ranks_here() == 1;
        Conduit { network: Some(network), capabilities, is_alone, ..Conduit::mapped(member) }
    }

    /// This rank in virtual time, which its network makes.
    pub(crate) fn in_virtual_time(mut self, time: Arc<dyn VirtualTime>) -> Self {
        if let Some(network) = &self.network {
            self.capabilities.crowded = network.capabilities().crowded;
        }
        Conduit { time: Some(time), ..self }
    }

    pub(super) fn network(&self) -> Option<&dyn Network> {
        self.network.as_deref()
    }

    /// Returns true if some rank's memory is not mapped. If not, nothing is ever in flight.
    pub(crate) fn has_network(&self) -> bool {
        self.network.is_some()
    }

    /// Where the ranks of the job are. Constant.
    #[inline]
    pub(crate) fn topology(&self) -> &Topology {
        self.member.topology()
    }

    /// The calling rank, `0..size`.
    #[inline]
    pub(crate) fn rank(&self) -> usize {
        self.topology().rank()
    }

    /// What the engine may ask for. Constant.
    #[inline]
    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// What ranks publish about themselves and find out about others.
    pub(crate) fn supervision(&self) -> Supervision<'_> {
        Supervision::new(self, &self.member, &self.shown)
    }

    /// The call takes time, where that is virtual, until the answer is dropped.
    #[inline]
    pub(super) fn inside(&self) -> Inside<'_> {
        let time = self.time.as_deref();
        if let Some(time) = time {
            time.enter();
        }
        Inside(time)
    }

    /// Returns true if this process was forked by the rank: nothing that a network shares with the parent may be touched.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        self.member.fabric().is_inherited()
    }
}

/// Operations.
impl Conduit {
    /// Returns true if this processor carries out an operation. Where processors and adapter do not exclude each other, the adapter
    /// changes all words that others may change too.
    #[inline]
    fn is_for_processor(&self, operation: &Operation<'_>) -> bool {
        match *operation {
            Operation::Atomic { word: Remote { rank, .. }, atomic } => self.is_coherent(rank, atomic.width),
            Operation::PutSignal { to: Remote { rank, .. }, .. } => self.is_coherent(rank, size_of::<u64>()),
            Operation::Flush { rank } => {
                // Of a mapped rank too: pairs with the acquire of a thread that learns of it.
                fence(Ordering::SeqCst);
                self.is_coherent(rank, size_of::<u64>())
            }
            // Callers reach memory that they see by themselves.
            Operation::PutBlock { .. } | Operation::GetBlock { .. } | Operation::Accumulate { .. } | Operation::Append { .. } => {
                false
            }
        }
    }

    #[inline]
    fn is_mapped(&self, rank: usize) -> bool {
        self.topology().is_mapped(rank)
    }

    #[inline]
    fn is_coherent(&self, rank: usize, width: usize) -> bool {
        self.is_mapped(rank) && width <= self.capabilities.native.coherent
    }

    /// Starts a put, as [`Network::put`].
    ///
    /// # Safety
    /// As [`Operation`] says.
    #[inline]
    pub(crate) unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        let _inside = self.inside();
        match &self.network {
            // SAFETY: the caller's promise.
            Some(network) if !self.is_mapped(to.rank) => unsafe { network.put(to, local, token) },
            // SAFETY: as above.
            _ => unsafe { self.member.put(to, local) },
        }
    }

    /// Starts a get, as [`Network::get`].
    ///
    /// # Safety
    /// As [`Operation`] says.
    #[inline]
    pub(crate) unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        let _inside = self.inside();
        match &self.network {
            // SAFETY: the caller's promise.
            Some(network) if !self.is_mapped(from.rank) => unsafe { network.get(from, local, token) },
            // SAFETY: as above.
            _ => unsafe { self.member.get(from, local) },
        }
    }

    /// Starts an operation, as [`Network::issue`].
    ///
    /// # Safety
    /// As [`Operation`] says.
    #[inline]
    pub(crate) unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        let _inside = self.inside();
        match &self.network {
            // SAFETY: the caller's promise.
            Some(network) if !self.is_for_processor(operation) => unsafe { network.issue(operation, token) },
            // SAFETY: as above.
            _ => unsafe { self.member.issue(operation, token) },
        }
    }

    /// Gives up the transfers of a request, as [`Network::cancel`].
    pub(crate) fn cancel(&self, token: Token) {
        if let Some(network) = &self.network {
            network.cancel(token);
        }
    }

    /// Returns true if what is awaited is complete, as [`Network::is_complete`].
    pub(crate) fn is_complete(&self, awaited: Awaited) -> bool {
        if let Awaited::Puts(rank) = awaited {
            fence(Ordering::SeqCst);
            if self.is_coherent(rank, size_of::<u64>()) {
                return true;
            }
        }
        self.network.as_ref().is_some_and(|network| network.is_complete(awaited))
    }

    /// Makes progress and appends what happened. Never blocks.
    pub(crate) fn poll(&self, events: &mut Events) {
        let _inside = self.inside();
        if let Some(network) = &self.network {
            network.poll(events);
        }
        if self.time.is_none() {
            self.member.poll(events);
        }
    }

    /// Polls for a wait that only a report can end. If nothing came, virtual time may go on to a later look, as the wait would do
    /// next. It sets `first` to the time of the first look that found nothing, and returns after a report, at the end of the job, or from the
    /// first look on that is at least `most` later.
    pub(crate) fn poll_patiently(&self, events: &mut Events, first: &mut Option<Duration>, most: Duration) {
        match &self.time {
            Some(time) => {
                let _inside = self.inside();
                time.poll(events, first, most);
            }
            None => self.poll(events),
        }
    }
}

/// Memory.
impl Conduit {
    /// First byte of the caller's own segment.
    #[inline]
    pub(crate) fn segment(&self) -> NonNull<u8> {
        self.member.segment()
    }

    /// Bytes reserved for each segment; the same on every rank. Only committed ranges may be touched.
    #[inline]
    pub(crate) fn segment_len(&self) -> usize {
        self.member.fabric().segment_len()
    }

    /// First byte of a rank's segment where loads and stores reach it, the caller's own included. The arrays then load and store by
    /// themselves. Either each rank can map the ranks of its node and no others, or no rank can map any, itself included. So
    /// mapping is symmetric: if one member can map the whole group, every member can, and the group does not use the network. Over
    /// other groups atomic operations, by the rule of [`Native::coherent`](crate::comm::Native::coherent), and accumulates that the
    /// network does not do itself ([`Native::accumulate`](crate::comm::Native::accumulate)) are issued for every
    /// member, the caller itself included. Segments of consecutive ranks that are mapped lie `segment_len` bytes apart.
    #[inline]
    pub(crate) fn mapped_segment(&self, rank: usize) -> Option<NonNull<u8>> {
        self.is_mapped(rank).then(|| self.member.mapped(rank))
    }

    /// A list of ranks, of which the ranks of a process keep one copy together.
    pub(crate) fn one_copy(&self, list: &[usize]) -> Arc<[usize]> {
        self.member.fabric().one_copy(list)
    }

    /// Makes a range of the caller's segment usable by everyone: pages, registration. Contents that it had stay.
    ///
    /// # Errors
    /// An error of the system or of the network.
    pub(crate) fn commit(&self, range: Range<usize>) -> io::Result<()> {
        let _inside = self.inside();
        self.member.commit(range.clone())?;
        let Some(network) = &self.network else { return Ok(()) };
        if let Err(error) = network.opens(range.clone()) {
            // After the end of the job an adapter may have it, so it stays.
            if error.kind() != io::ErrorKind::Interrupted {
                self.member.release(range)?;
            }
            return Err(error);
        }
        Ok(())
    }

    /// Gives a committed range back.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn release(&self, range: Range<usize>) -> io::Result<()> {
        let _inside = self.inside();
        if let Some(network) = &self.network {
            network.shuts(range.clone())?;
        }
        self.member.release(range)
    }

    /// Bytes that all ranks of the caller's machine have committed and not released.
    pub(crate) fn committed(&self) -> u64 {
        self.member.fabric().committed().load(Ordering::Relaxed)
    }

    /// No object of this rank is left whose memory is in a segment; the rank may still hold transfers. Called once.
    pub(crate) fn let_go(&self) {
        self.member.fabric().let_go();
    }

    /// Says whether what the caller has created at a range of its own and of others' segments has contents. If it has none, and the conduit
    /// [`skips`](Self::skips), the caller's puts and gets there take their time but move nothing.
    pub(crate) fn set_contents(&self, range: Range<usize>, has: bool) {
        if let Some(time) = &self.time {
            time.set_contents(range, has);
        }
    }

    /// The connections of this rank, if the network has any.
    pub(crate) fn connections(&self) -> Option<Connections> {
        // Those of a forked child are its parent's.
        self.network.as_ref().filter(|_| !self.is_inherited()).and_then(|network| network.connections())
    }
}

/// Time.
impl Conduit {
    /// Time since the conduit started.
    pub(crate) fn now(&self) -> Duration {
        let Some(time) = &self.time else { return self.member.now() };
        let _inside = self.inside();
        time.read();
        time.now()
    }

    /// The time, without moving it.
    pub(super) fn time_of_looks(&self) -> Duration {
        self.time.as_ref().map_or_else(|| self.member.now(), |time| time.now())
    }

    /// A clock that the caller reads without moving it, and its number: ranks whose numbers are equal read the same clock.
    pub(crate) fn stamp(&self) -> (usize, Duration) {
        if let Some(time) = &self.time {
            return (0, time.now());
        }
        let time = clock_gettime(ClockId::Monotonic);
        (self.topology().machine(self.rank()), Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    /// The rank has carried out `flops` floating-point operations, with `bytes` bytes from and to memory. Where time is virtual,
    /// it passes.
    pub(crate) fn compute(&self, flops: f64, bytes: f64) {
        if let Some(time) = &self.time {
            time.compute(flops, bytes);
        }
    }

    /// Returns true if time is virtual: only the rank's own thread has a place in it.
    pub(crate) fn has_virtual_time(&self) -> bool {
        self.time.is_some()
    }

    /// Returns true if programs are to leave out what they compute, and arrays may go without contents.
    pub(crate) fn skips(&self) -> bool {
        self.time.as_ref().is_some_and(|time| time.skips())
    }
}

/// The end.
impl Conduit {
    /// The memory that the ranks of the machine share.
    pub(crate) fn fabric(&self) -> &Arc<Fabric> {
        self.member.fabric()
    }

    /// Non-zero once the job is over for this rank, because it ended or was ended. Read on every operation.
    #[inline]
    pub(crate) fn over(&self) -> &AtomicU32 {
        let over = self.member.fabric().over();
        match &self.time {
            Some(time) => time.over(over),
            None => over,
        }
    }

    /// Why the job is over, for people.
    pub(crate) fn over_cause(&self) -> String {
        match &self.time {
            Some(time) if self.member.fabric().over().load(Ordering::Relaxed) == 0 => time.over_cause(),
            _ => self.member.fabric().cause(),
        }
    }

    /// Ends the job for all ranks because of what this one did, `cause` without its number. The first cause stays, and other machines are told
    /// that one: this rank may only have heard of it.
    pub(crate) fn end(&self, cause: &str) {
        let fabric = self.member.fabric();
        fabric.end(Some(self.rank()), cause);
        if let Some(time) = &self.time {
            time.wake_all();
        }
        match fabric.failure() {
            Some((Some(culprit), cause)) => self.tell(Announcement::End { culprit, cause: &cause }),
            _ => self.tell(Announcement::End { culprit: self.rank(), cause }),
        }
    }

    /// Passes a word on to other machines, if there are any.
    pub(super) fn tell(&self, word: Announcement<'_>) {
        if let Some(network) = &self.network {
            network.tell(word);
        }
    }

    /// The body of this rank ended, well or not. Called once; what outlives the body may still call.
    pub(crate) fn body_ended(&self) {
        self.leave_network(LeaveStep::BodyEnded);
    }

    /// The body of this rank returned well: returns when all that the rank sent was handled, or the job is over. It sends nothing more by
    /// itself.
    pub(crate) fn drain(&self) {
        let _inside = self.inside();
        self.leave_network(LeaveStep::Drain);
    }

    /// Behind [`drain`](Self::drain): returns when no other rank of the machine needs this one. Collective.
    pub(crate) fn leave(&self) {
        if self.network.is_none() || self.is_inherited() {
            return;
        }
        let _inside = self.inside();
        let fabric = self.member.fabric();
        let have_all_finished = || (0..fabric.ranks()).all(|rank| fabric.finished(rank));
        fabric.set_finished(self.member.own());
        if let Some(time) = self.time.as_ref().filter(|_| have_all_finished()) {
            time.wake_all();
        }
        self.leave_network(LeaveStep::Serve(&have_all_finished));
    }

    fn leave_network(&self, step: LeaveStep<'_>) {
        if let Some(network) = self.network.as_ref().filter(|_| !self.is_inherited()) {
            network.leave(step);
        }
    }
}
