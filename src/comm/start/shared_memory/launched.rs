//! Ranks that are processes of one machine, which a launcher started: `mpirun` or `srun`, without MPI.
//!
//! They have no parent of ours. So each watches its neighbors and the launcher ([`Helper`]), and waits at its end for all others. The
//! launcher forwards what ranks print, and ends all after a failure.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    comm::{
        node::{Fabric, Member, helper::Helper},
        start::{
            bootstrap::{
                Bootstrap,
                launched::{Connection, Launcher, Running},
                place::Place,
            },
            caught,
            life::{Ending, GRACE, LocalRank, Rank},
            one_machine::JoinedRank,
            settings::Settings,
        },
    },
    error::Error,
};

/// The time between two looks whether all have come to their end: at first, and after a while.
const LOOKS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(10)];

/// Makes this process a rank, joined to the others by `join`. Where a network joins machines, if it `has_network`, what that needs is
/// prepared while the ranks meet: if that fails on one rank, it must on all.
pub(in crate::comm) fn begin<P>(
    launcher: Arc<Launcher>,
    settings: &Settings,
    has_network: bool,
    prepare: impl FnOnce(&mut Connection, &Place) -> Result<P, Error>,
    join: impl FnOnce(P, &Settings, Member) -> Result<JoinedRank, String>,
) -> Result<LocalRank, Error> {
    let mut connection = launcher.connect(settings)?;
    let met = meet(&mut connection, settings, has_network).and_then(|place| Ok((prepare(&mut connection, &place)?, place)));
    let (prepared, place) = match met {
        Ok(met) => met,
        Err(error) => {
            launcher.give_up(connection, &error);
            return Err(error);
        }
    };
    let (fabric, topology) = (place.fabric.clone(), place.topology.clone());
    let of_device = if topology.is_all_mapped() { 0 } else { settings.threads };
    let threads = connection.threads() + Helper::threads(fabric.ranks()) + of_device;
    let running = launcher.begin(connection, &fabric);
    let started = Rank::start(place, settings, threads).and_then(|(mut rank, member)| {
        rank.watch(&topology, None, Some(Box::new(move || launcher.gone())))?;
        Ok((rank, member))
    });
    let (rank, member) = started.inspect_err(|error| {
        fabric.end(Some(topology.rank()), &format!("could not be started: {error}"));
    })?;
    let settings = Settings { cores: rank.cores, ..settings.clone() };
    match join(prepared, &settings, member) {
        Ok(joined) => Ok(LocalRank::new(joined.conduit.clone(), rank.cores, move |outcome, grace| {
            let outcome = caught(|| joined.leave(outcome));
            rank.end(outcome, grace, running)
        })),
        Err(words) => Err(rank.end(Err(words), GRACE, running).expect_err("it failed")),
    }
}

/// Finds the rank's place; all ranks succeed, or all fail alike.
fn meet(connection: &mut Connection, settings: &Settings, has_network: bool) -> Result<Place, Error> {
    settings.check_ranks(connection.size())?;
    Place::find(connection, settings, has_network)
}

impl Ending for Running {
    fn await_all(&self, fabric: &Fabric) -> bool {
        let start = Instant::now();
        for rank in 0..fabric.ranks() {
            while !fabric.finished(rank) {
                // One that has seen the end of all ends the job, so they are looked at once more.
                if fabric.failure().is_some() && !fabric.finished(rank) {
                    return false;
                }
                let [first, later] = LOOKS;
                std::thread::sleep(if start.elapsed() < later { first } else { later });
            }
        }
        self.ends_well();
        true
    }

    /// Nobody ends a rank before its time where no launcher is.
    fn is_deserted(&self) -> bool {
        self.has_no_launcher() || self.is_gone()
    }
}
