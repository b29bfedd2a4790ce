//! Ranks that are processes of one machine, which a launcher started: `mpirun` or `srun`, without MPI.
//!
//! They have no parent of ours. So each watches its neighbors and the launcher ([`Agent`]), and waits at its end for all others. The
//! launcher forwards what ranks print, and ends all after a failure.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    comm::{
        kit::cores,
        node::{Fabric, Held, Member, agent::Agent, keeping},
        start::{
            Body,
            bootstrap::{
                Bootstrap,
                launched::{self, Connection, Running},
                place::Place,
            },
            contain,
            launcher::Started,
            one_machine,
            settings::Settings,
        },
    },
    error::Error,
};

/// The longest that a rank that hears of a failure lets the failed rank speak first.
const GRACE: Duration = Duration::from_secs(2);

/// The time between two looks whether all have come to their end: at first, and after a while.
const LOOKS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(10)];

/// Runs a body as the rank that this process is.
pub(super) fn run(started: Started, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    run_over(started, settings, false, |_, _| Ok(()), |(), settings, member| one_machine::rank(settings, member, body))
}

/// As [`run`], where a network joins machines, if it `has_network`. The network's needs are prepared while the ranks meet: if
/// that fails on one rank, it must on all.
pub(in crate::comm) fn run_over<P>(
    started: Started,
    settings: &Settings,
    has_network: bool,
    prepare: impl FnOnce(&mut Connection, &Place) -> Result<P, Error>,
    as_rank: impl FnOnce(P, &Settings, Member) -> Result<(), String>,
) -> Result<(), Error> {
    let mut connection = Connection::new(started, settings)?;
    let met = meet(&mut connection, settings, has_network).and_then(|place| Ok((prepare(&mut connection, &place)?, place)));
    let (prepared, place) = match met {
        Ok(met) => met,
        Err(error) => {
            connection.give_up(&error);
            return Err(error);
        }
    };
    let threads = connection.threads();
    let fabric = place.fabric.clone();
    let running = connection.begin(&fabric);
    let (rank, member) = Rank::start(place, settings, threads).inspect_err(|error| {
        fabric.end(Some(started.rank()), &format!("could not be started: {error}"));
    })?;
    let settings = Settings { cores: rank.cores, ..settings.clone() };
    let outcome = contain(|| as_rank(prepared, &settings, member));
    rank.end(outcome, running)
}

/// A rank of a job, from its start to its end.
struct Rank {
    fabric: Arc<Fabric>,
    rank: usize,
    /// Its number among those of its machine.
    local: usize,
    /// Shows the neighbors that this process lives.
    held: Option<Held>,
    agent: Option<Agent>,
    /// Cores that the ranks share.
    cores: usize,
    /// The cores that the calling thread had before it was pinned.
    before: Option<Vec<usize>>,
}

/// Finds the rank's place; all ranks succeed, or all fail alike.
fn meet(connection: &mut Connection, settings: &Settings, has_network: bool) -> Result<Place, Error> {
    settings.check_ranks(connection.size())?;
    Place::find(connection, settings, has_network)
}

impl Rank {
    fn start(place: Place, settings: &Settings, threads: usize) -> Result<(Self, Member), Error> {
        let Place { topology, fabric, cores, crowded, unbound, .. } = place;
        fabric.keep_from_children().map_err(keeping)?;
        let (rank, together) = (topology.rank(), fabric.ranks());
        let local = topology.local(rank);
        // A launcher that bound its processes knew what it did.
        let before = if unbound { cores::allowed(None).ok() } else { None };
        if before.is_some() {
            settings.pin_among(local, together);
        }
        let of_device = if topology.is_all_mapped() { 0 } else { settings.device.threads() };
        let known = 1 + threads + Agent::threads(together) + of_device;
        let patient = if crowded { 0 } else { together };
        let member = Member::new(fabric.clone(), topology.clone(), patient, Some(known));
        let held = fabric.hold(local).map_err(|e| Error::system("making the lock of a rank", e))?;
        let agent = Agent::watching(&topology, &fabric, None, Some(launched::gone));
        let agent = agent.map_err(|e| Error::system("starting the thread that sees the end of other ranks", e))?;
        Ok((Rank { fabric, rank, local, held: Some(held), agent: Some(agent), cores, before }, member))
    }

    /// The end of the rank, with the words of its failure if it failed.
    fn end(self, outcome: Result<(), String>, running: Running) -> Result<(), Error> {
        if self.fabric.is_inherited() {
            // A child that was forked by the rank's process came out of the body. Locks and threads are the parent's.
            let cause = self.fabric.cause();
            std::mem::forget(self);
            return Err(Error::JobEnded { operation: "run".into(), cause });
        }
        match outcome {
            Ok(()) => {
                self.fabric.set_finished(self.local);
                if self.await_others() {
                    running.ends_well();
                    return Ok(());
                }
            }
            Err(words) => {
                self.fabric.set_last_words(self.local, &words);
                self.fabric.end(Some(self.rank), &words);
            }
        }
        let (rank, cause) = match self.fabric.failure() {
            Some((Some(rank), cause)) => (rank, cause),
            Some((None, cause)) => return Err(Error::JobEnded { operation: "run".into(), cause }),
            None => (self.rank, "failed without a word".into()),
        };
        // The rank that failed is to have the last word, before a launcher ends it for the others' sake.
        let start = Instant::now();
        while rank != self.rank && start.elapsed() < GRACE && !launched::is_gone() {
            std::thread::sleep(LOOKS[1]);
        }
        Err(Error::RankFailed { rank, cause })
    }

    /// Waits until all ranks have come to their end. Returns false if the job failed before.
    fn await_others(&self) -> bool {
        let start = Instant::now();
        for rank in 0..self.fabric.ranks() {
            while !self.fabric.finished(rank) {
                // One that has seen the end of all ends the job, so they are looked at once more.
                if self.fabric.failure().is_some() && !self.fabric.finished(rank) {
                    return false;
                }
                let [first, later] = LOOKS;
                std::thread::sleep(if start.elapsed() < later { first } else { later });
            }
        }
        true
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = cores::confine(&before);
        }
        // A neighbor's thread ends by that, as this rank's by the next one's.
        drop(self.held.take());
        drop(self.agent.take());
        // Arrays that outlive the job hear of its end.
        self.fabric.end_of(self.local);
    }
}
