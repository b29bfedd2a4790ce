//! The virtual cluster: all ranks of a job in one process, in virtual time, on a model of a network.
//!
//! ```text
//! GA_COROUTINES=1 GA_NETWORK=simulated:gemini GA_RANKS=8192 my-program
//! ```
//!
//! No memory is mapped: every operation is a message, and takes the time that the model says (`soft::model`). Computation takes the
//! time that the program says ([`Simulation::work`](crate::simulation::Simulation::work)). Runs with the same seed take the same steps at the same times.
//!
//! | file | contents |
//! |---|---|
//! | `machines`, `table` | machines with names; how one is read |
//! | `world` | all ranks, as each sees it |
//! | `state` | turns, messages, faults |
//! | `flight` | one operation |
//! | `idle` | a rank that waits for a report |
//! | `watchdog` | a rank blocked outside of the library |
//! | `port`, `clock` | a rank's network and time |
//! | `split`, `wired` | a network's own code between nodes; its adapters and agents |
//!
//! A deadlock is exact here: no message is on its way, and no rank can run. Ranks look up twice a second of virtual time, so the
//! message is the same as on real networks.

mod clock;
mod flight;
mod idle;
mod port;
mod split;
mod state;
mod table;
mod watchdog;
mod wired;
mod world;

use std::sync::Arc;

use self::{clock::Clock, port::Port, split::Split, watchdog::Watchdog, world::World};
use super::{
    Conduit, Network,
    kit::{mutex::Mutex, say::say},
    layers::{self, Layer},
    node::{Member, keeping},
    soft::{Form, Picos, RankTurns},
    start::{
        self, Body, NO_DEVICE, Named, Ranks, Variant, contain, life,
        settings::{Computing, Settings},
    },
};
use crate::error::Error;
pub(crate) use state::Report;
pub(super) use table::names;

/// The virtual cluster as jobs see it.
pub(super) const NETWORK: Named = Named {
    name: "simulated",
    variants: &[Variant { devices: NO_DEVICE, ranks: Ranks::Simulated(run_and_say), threads: 0 }],
    options: &[],
    modelled: None,
};

/// Runs a job. Prints what happened if the settings ask for statistics.
fn run_and_say(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let report = run(settings, body)?;
    if settings.stats {
        let seconds = report.end.duration().as_secs_f64();
        say(format_args!(
            "simulated: {seconds:.9} s, {} messages, {} events, digest {:016x}",
            report.messages, report.events, report.digest
        ));
    }
    Ok(())
}

/// Runs `body` on every rank and returns when all have ended. Where the machine's nodes have agents, code of a network joins them.
pub(super) fn run(settings: &Settings, body: &Body<'_>) -> Result<Report, Error> {
    let machine = table::machine(settings.device.as_deref().unwrap_or_default(), settings)?;
    if settings.layers.contains(&Layer::Delayed) {
        return Err(Error::Launch("a simulated network has no layer +delayed: its model says when a put is visible".into()));
    }
    let nodes = settings.ranks.div_ceil(machine.ranks_per_node);
    let settings = &Settings { ranks_per_node: Some(machine.ranks_per_node), large_pages: false, ..settings.clone() };
    if machine.agent.is_some() && settings.computing == Computing::Skip {
        let name = settings.device.as_deref().unwrap_or_default();
        return Err(Error::Launch(format!(
            "the machine of \"simulated:{name}\" has the code of a network, which moves all bytes, so no array can go without contents \
             (GA_COMPUTING=skip); take one without [agents], as gemini-ports"
        )));
    }
    let named = |what: &str, number: usize, count: usize| {
        Error::Launch(format!("GA_FAULTS names {what} {number}, but there are {count}, from 0 on"))
    };
    if let Some(&(rank, _)) = settings.faults.deaths.iter().find(|death| death.0 >= settings.ranks) {
        return Err(named("rank", rank, settings.ranks));
    }
    if let Some(&(node, ..)) = settings.faults.stalls.iter().find(|stall| stall.0 >= nodes) {
        return Err(named("node", node, nodes));
    }
    let fabric = life::fabric(settings)?;
    fabric.keep_from_children().map_err(keeping)?;
    let turns = RankTurns::new(settings.form, settings.ranks);
    let world =
        Arc::new(World::new(fabric.clone(), turns, machine.clone(), settings.seed, settings.faults.clone(), settings.timeout));
    // The first to end the job is the culprit: others fail because they hear of it.
    let failed = Mutex::new(None);
    let fail = |rank: usize, cause: String| {
        fabric.end(Some(rank), &cause);
        failed.lock().get_or_insert((rank, cause));
        world.wake_all();
    };
    let wiring = match &machine.agent {
        Some(agent) if nodes > 1 => {
            let modelled = start::table::modelled(&agent.code).map_err(Error::Launch)?;
            Some((modelled.join)(settings, world.clone())?)
        }
        _ => None,
    };
    wiring.iter().for_each(|wiring| world.join(wiring.adapters.clone()));
    let main = |rank: usize| {
        let mapped = settings.topology(rank);
        let topology = mapped.clone().with_hidden_memory();
        let ended = contain(|| {
            // Other threads of the process are not the ranks': they cannot act for one.
            let node = Member::new(fabric.clone(), topology, settings.cores, None);
            let port = Port::new(world.clone(), rank, &machine.adapter);
            let network: Arc<dyn Network> = match &wiring {
                None => Arc::new(port),
                Some(wiring) => {
                    let member = Member::new(fabric.clone(), mapped, settings.cores, None);
                    let far = (wiring.network)(settings, &member).map_err(|error| error.to_string())?;
                    world.set_service(rank, Some(far.clone()));
                    // All have their adapters before anybody asks for a peer.
                    world.pause(rank, Picos(1));
                    Arc::new(Split::new(world.clone(), rank, machine.ranks_per_node, port, far))
                }
            };
            let network = layers::stack(&settings.layers, rank, network);
            let (is_wired, processor) = (wiring.is_some(), machine.processor);
            let clock = Clock::new(world.clone(), fabric.clone(), rank, network.clone(), is_wired, processor, settings.computing);
            let conduit = Arc::new(Conduit::with_network(node, network).in_virtual_time(Arc::new(clock)));
            body(conduit.clone(), 1)?;
            if wiring.is_some() {
                conduit.drain();
                if fabric.failure().is_none() {
                    conduit.leave();
                }
                if let Some((Some(rank), cause)) = fabric.failure() {
                    return Err(format!("has returned, but rank {rank} {cause}"));
                }
            }
            Ok(())
        });
        world.set_service(rank, None);
        if let Err(words) = ended {
            fail(rank, words);
        }
        world.ended(rank);
    };
    let ran = std::thread::scope(|scope| {
        let _watchdog = Watchdog::start(scope, &world);
        world.ranks().run(settings.stack, !settings.pins.is_empty(), &main, &mut || world.next())
    });
    // Each holds the other.
    world.part();
    let first = failed.lock().take();
    let outcome = match (ran, fabric.failure(), first) {
        (Err((rank, error)), ..) => {
            let remedy = match settings.form {
                Form::Threads => "; with GA_COROUTINES=1 ranks need no threads",
                Form::Coroutines => "",
            };
            Err(Error::Launch(format!("simulated rank {rank} could not be started: {error}{remedy}")))
        }
        (_, Some((Some(rank), cause)), Some(_)) | (.., Some((rank, cause))) => Err(Error::RankFailed { rank, cause }),
        _ => Ok(world.report()),
    };
    drop((wiring, world));
    fabric.end_here();
    outcome
}
