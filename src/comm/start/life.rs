//! The life of a rank, from its start to its end, on any network.
//!
//! A rank that a launcher started is a [`Rank`] until it ends: it holds the lock that shows its neighbors that its process lives, it is
//! pinned, and its helper watches others. How it waits for the other ranks at the end, and how they learn of a failure, is its network's
//! [`Ending`]. Ranks that this process starts use only the first and the last step: [`fabric`] and [`conclude`].

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{bootstrap::place::Place, contain, settings::Settings};
use crate::{
    comm::{
        Conduit, Topology,
        kit::cores::PinnedThread,
        node::{
            Fabric, Held, Member,
            helper::{Answers, Gone, Helper},
            keeping,
        },
    },
    error::Error,
};

/// The longest that a rank that hears of a failure lets the failed rank speak first, before a launcher ends it for the others' sake.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The time between two looks whether the failed rank can still speak.
const LOOK: Duration = Duration::from_millis(10);

/// What differs between networks at the end of a rank. It is dropped after the rank.
pub(in crate::comm) trait Ending: Sized {
    /// Waits until all ranks have come to their end. Returns false if the job failed before.
    fn await_all(&self, fabric: &Fabric) -> bool;

    /// Tells the ranks of other machines that this rank failed. Not called if the job failed because of no rank.
    fn tell_failure(&self, _rank: usize, _cause: &str) {}

    /// Returns true if nobody is left whose words would be lost.
    fn is_deserted(&self) -> bool {
        false
    }

    /// Lets go of a rank after a failure.
    fn give_up(self, rank: Rank) {
        drop(rank);
    }
}

/// Ends a rank, with the outcome of its body. After a failure it may wait that long for the words of the rank that failed first.
type EndRank = Box<dyn FnOnce(Result<(), String>, Duration) -> Result<(), Error> + Sync>;

/// The rank that this process, or a thread of it, is, whatever the network: joined to the others, and not ended.
pub(crate) struct LocalRank {
    pub(crate) conduit: Arc<Conduit>,
    /// Cores that the ranks of its machine share.
    pub(crate) cores: usize,
    end: EndRank,
}

impl LocalRank {
    pub(in crate::comm) fn new(
        conduit: Arc<Conduit>,
        cores: usize,
        end: impl FnOnce(Result<(), String>, Duration) -> Result<(), Error> + Sync + 'static,
    ) -> Self {
        LocalRank { conduit, cores, end: Box::new(end) }
    }

    /// Runs a body as the rank, and ends the rank.
    ///
    /// # Errors
    /// The job failed.
    pub(crate) fn run(self, body: impl FnOnce(Arc<Conduit>, usize) -> Result<(), String>) -> Result<(), Error> {
        let outcome = contain(|| body(self.conduit.clone(), self.cores));
        self.end(outcome)
    }

    /// The end of the rank, with the words of its failure if it failed.
    ///
    /// # Errors
    /// The job failed.
    pub(crate) fn end(self, outcome: Result<(), String>) -> Result<(), Error> {
        (self.end)(outcome, GRACE)
    }

    /// The end of a rank that waits for no other rank, and ends the job.
    pub(crate) fn desert(self, words: String) {
        let _ = (self.end)(Err(words), Duration::ZERO);
    }
}

impl fmt::Debug for LocalRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalRank").field("conduit", &self.conduit).field("cores", &self.cores).finish_non_exhaustive()
    }
}

/// A rank that a launcher started, from its start to its end.
#[derive(Debug)]
pub(in crate::comm) struct Rank {
    fabric: Arc<Fabric>,
    rank: usize,
    /// Its number among those of its machine.
    local: usize,
    /// Shows the neighbors that this process lives.
    held: Option<Held>,
    helper: Option<Helper>,
    /// Cores that the ranks of its machine share.
    pub(in crate::comm) cores: usize,
    /// The calling thread has cores of its own.
    pinned: Option<PinnedThread>,
}

impl Rank {
    /// Takes a place. The process has this many threads beside the program's that never act for the rank.
    ///
    /// # Errors
    /// An error of the system.
    pub(in crate::comm) fn start(place: Place, settings: &Settings, threads: usize) -> Result<(Self, Member), Error> {
        let Place { topology, fabric, cores, crowded, unbound, .. } = place;
        fabric.keep_from_children().map_err(keeping)?;
        let (rank, together) = (topology.rank(), fabric.ranks());
        let local = topology.local(rank);
        let held = fabric.hold(local).map_err(|e| Error::system("making the lock of a rank", e))?;
        // A launcher that bound its processes knew what it did.
        let pinned = settings.own_cores(local, together).filter(|_| unbound).and_then(PinnedThread::to);
        let member = Member::new(fabric.clone(), topology, if crowded { 0 } else { together }, Some(1 + threads));
        Ok((Rank { fabric, rank, local, held: Some(held), helper: None, cores, pinned }, member))
    }

    /// Starts the helper: it sees the ends of neighbors and of the launcher, and answers others if there is something to answer with.
    ///
    /// # Errors
    /// An error of the system.
    pub(in crate::comm) fn watch(
        &mut self,
        topology: &Topology,
        answers: Option<Arc<dyn Answers>>,
        gone: Option<Gone>,
    ) -> Result<(), Error> {
        let helper = Helper::watching(topology, &self.fabric, answers, gone)
            .map_err(|error| Error::system("starting the thread that watches other ranks", error))
            // The drop of this rank ends the job too, but names no cause.
            .inspect_err(|error| {
                self.fabric.end(Some(self.rank), &format!("could not be started: {error}"));
            })?;
        self.helper = Some(helper);
        Ok(())
    }

    /// The end of the rank, with the words of its failure if it failed.
    ///
    /// # Errors
    /// The job failed.
    pub(in crate::comm) fn end(self, outcome: Result<(), String>, grace: Duration, ending: impl Ending) -> Result<(), Error> {
        // The rank is dropped first, also by a panic.
        let (ending, rank) = (ending, self);
        if rank.fabric.is_inherited() {
            // A child that was forked by the rank's process came out of the body. Locks, threads and the network are the parent's.
            let cause = rank.fabric.cause();
            std::mem::forget((rank, ending));
            return Err(Error::JobEnded { operation: "run".into(), cause });
        }
        if conclude(&rank.fabric, rank.rank, rank.local, outcome) && ending.await_all(&rank.fabric) {
            drop(rank);
            return Ok(());
        }
        let failure = rank.failure();
        if let Error::RankFailed { rank: culprit, cause } = &failure {
            if *culprit == rank.rank {
                ending.tell_failure(*culprit, cause);
            } else {
                let start = Instant::now();
                while start.elapsed() < grace && !ending.is_deserted() {
                    std::thread::sleep(LOOK);
                }
            }
        }
        ending.give_up(rank);
        Err(failure)
    }

    fn failure(&self) -> Error {
        match self.fabric.failure() {
            Some((Some(rank), cause)) => Error::RankFailed { rank, cause },
            Some((None, cause)) => Error::JobEnded { operation: "run".into(), cause },
            None => Error::RankFailed { rank: self.rank, cause: "failed without a word".into() },
        }
    }

    /// Leaves all as it is until the process ends, but the cores and, unless it still `answers`, the helper.
    #[cfg(feature = "mpi")]
    pub(in crate::comm) fn abandon(mut self, answers: bool) {
        drop(self.pinned.take());
        if !answers {
            drop(self.helper.take());
        }
        std::mem::forget(self);
    }
}

impl Drop for Rank {
    /// After the end, or a start that did not come about.
    fn drop(&mut self) {
        drop(self.pinned.take());
        // A neighbor's thread ends by that, as this rank's by the next one's.
        drop(self.held.take());
        drop(self.helper.take());
        // Arrays that outlive the job hear of its end.
        self.fabric.end_of(self.local);
    }
}

/// Memory for ranks that this process starts.
///
/// # Errors
/// It cannot be had.
pub(in crate::comm) fn fabric(settings: &Settings) -> Result<Arc<Fabric>, Error> {
    let fabric = Fabric::new(settings.ranks, settings.heap, settings.large_pages);
    fabric.map(Arc::new).map_err(|error| Error::system("reserving the heap", error))
}

/// Notes how the body of a rank ended. A failure ends the job. Returns true if there was none.
pub(in crate::comm) fn conclude(fabric: &Fabric, rank: usize, local: usize, outcome: Result<(), String>) -> bool {
    match outcome {
        Ok(()) => fabric.set_finished(local),
        Err(words) => {
            fabric.set_last_words(local, &words);
            fabric.end(Some(rank), &words);
            return false;
        }
    }
    true
}
