//! The virtual cluster: all ranks of a job in one process, in virtual time, on a model of a network.
//!
//! ```text
//! GA_NETWORK=simulated:gemini GA_RANKS=8192 my-program
//! ```
//!
//! Ranks run one at a time. No memory is mapped, so every operation is a message, and takes the time that the model says (`soft::model`).
//! Computation takes the time that the program says ([`Job::work`](crate::Job::work)). The same program with the same seed does the same at the
//! same times.
//!
//! | file | what it does |
//! |---|---|
//! | `machines`, `table` | the machines that have names; how one is read |
//! | `world` | all ranks in virtual time, as each sees it |
//! | `state` | what happens: turns, messages, faults |
//! | `flight` | one operation on its way |
//! | `idle` | what a rank does while it waits for a report |
//! | `watchdog` | says when no rank can run because one is blocked outside of the library |
//! | `port`, `conduit` | the network of a rank; the rank as the engine sees it |
//!
//! A deadlock is exact here: no message is on its way, and no rank can run. Ranks look up twice a second of virtual time, so its message
//! says the same as on real networks.

mod conduit;
mod flight;
mod idle;
mod port;
mod state;
mod table;
mod watchdog;
mod world;

use std::sync::Arc;

use self::{conduit::Simulated, port::Port, watchdog::Watchdog, world::World};
use super::{
    layers::{self, Layer},
    mutex::Mutex,
    node::{Fabric, Member, keeping},
    say::say,
    settings::{NO_DEVICES, Settings},
    soft::Ranks as Turns,
    start::{Body, Named, Ranks, contain},
};
use crate::error::Error;
pub(crate) use state::Report;
pub(super) use table::NAMES;

/// See the module's essay.
pub(super) const NETWORK: Named = Named {
    name: "simulated",
    devices: NO_DEVICES,
    ranks: Ranks::Simulated,
    run: |settings, body| {
        let report = run(settings, body)?;
        if settings.stats {
            let seconds = report.end.duration().as_secs_f64();
            say(format_args!(
                "simulated: {seconds:.9} s, {} messages, {} events, digest {:016x}",
                report.messages, report.events, report.digest
            ));
        }
        Ok(())
    },
};

/// Runs `body` on every rank and returns when all have ended.
pub(crate) fn run(settings: &Settings, body: &Body<'_>) -> Result<Report, Error> {
    let machine = table::machine(settings.machine.as_deref().unwrap_or_default(), settings)?;
    if settings.layers.contains(&Layer::Delayed) {
        return Err(Error::Launch("a simulated network has no layer +delayed: its model says when a put is visible".into()));
    }
    let nodes = settings.ranks.div_ceil(machine.ranks_per_node);
    let named = |what: &str, number: usize, count: usize| {
        Error::Launch(format!("GA_FAULTS names {what} {number}, but there are {count}, from 0 on"))
    };
    if let Some(&(rank, _)) = settings.faults.deaths.iter().find(|death| death.0 >= settings.ranks) {
        return Err(named("rank", rank, settings.ranks));
    }
    if let Some(&(node, ..)) = settings.faults.stalls.iter().find(|stall| stall.0 >= nodes) {
        return Err(named("node", node, nodes));
    }
    let fabric = Fabric::new(settings.ranks, settings.heap, false).map_err(|error| Error::system("reserving the heap", error))?;
    let fabric = Arc::new(fabric);
    fabric.keep_from_children().map_err(keeping)?;
    let turns = Turns::new(settings.form, settings.ranks);
    let world =
        Arc::new(World::new(fabric.clone(), turns, machine.clone(), settings.seed, settings.faults.clone(), settings.timeout));
    // The first to end the job is the culprit: others fail because they hear of it.
    let failed = Mutex::new(None);
    let fail = |rank: usize, cause: String| {
        fabric.end(Some(rank), &cause);
        failed.lock().get_or_insert((rank, cause));
        world.wake_all();
    };
    let main = |rank: usize| {
        let topology = settings.topology(rank).with_ranks_per_node(machine.ranks_per_node).with_hidden_memory();
        let ended = contain(|| {
            // Other threads of the process are not the ranks': they cannot act for one.
            let node = Member::new(fabric.clone(), topology, settings.cores, usize::MAX);
            let port: Arc<dyn super::Network> = Arc::new(Port::new(world.clone(), rank, &machine.adapter));
            let network = layers::stack(&settings.layers, rank, port);
            let conduit = Simulated::new(world.clone(), node, network, machine.processor, settings.computing);
            body(Arc::new(conduit), 1)
        });
        if let Err(words) = ended {
            fail(rank, words);
        }
        world.ended(rank);
    };
    let ran = std::thread::scope(|scope| {
        let _watchdog = Watchdog::start(scope, &world);
        world.ranks().run(settings.stack, !settings.pins.is_empty(), &main, &mut || world.next())
    });
    ran.map_err(|(rank, error)| Error::Launch(format!("simulated rank {rank} could not be started: {error}")))?;
    let first = failed.lock().take();
    match (fabric.failure(), first) {
        (Some((Some(rank), cause)), Some(_)) | (_, Some((rank, cause))) => Err(Error::RankFailed { rank, cause }),
        _ => {
            fabric.end(None, "it has ended");
            Ok(world.report())
        }
    }
}
