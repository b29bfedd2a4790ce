//! Ranks that are threads of one process: for tests, debuggers and sanitizers, and where forking is not allowed.
//!
//! They share the fabric of `shared_memory`, and what the program captured. After a failure, a rank that computes without calling the
//! library ends only at its next call.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{
    Body, MAPPING, Named, PACKETS, Ranks, Variant, caught, life,
    one_machine::{self, Joins, mapping, packets},
    settings::Settings,
};
use crate::{
    comm::node::{Member, keeping},
    error::Error,
};

/// Ranks that are threads of one process.
pub(super) const NETWORK: Named = Named {
    name: "threads",
    variants: &[
        Variant { devices: MAPPING, ranks: Ranks::Threads(|settings, body| run_joined(settings, body, mapping)), threads: 0 },
        Variant { devices: PACKETS, ranks: Ranks::Threads(|settings, body| run_joined(settings, body, packets)), threads: 1 },
    ],
    options: &[],
    modelled: None,
};

fn run_joined(settings: &Settings, body: &Body<'_>, joins: Joins) -> Result<(), Error> {
    run(settings, &|member| one_machine::join(settings, member, joins)?.run(settings, body))
}

/// Runs `body` on every rank and returns when all have ended.
pub(crate) fn run(settings: &Settings, body: &(dyn Fn(Member) -> Result<(), String> + Sync)) -> Result<(), Error> {
    let fabric = life::fabric(settings)?;
    fabric.keep_from_children().map_err(keeping)?;
    // Not whether all have finished: a rank may fail behind that, on its way out.
    let failed = AtomicBool::new(false);
    let conclude = |rank: usize, outcome| {
        if !life::conclude(&fabric, rank, rank, outcome) {
            failed.store(true, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for rank in 0..settings.ranks {
            let (fabric, conclude) = (&fabric, &conclude);
            let main = move || {
                settings.pin(rank);
                // The ranks' threads, their helper threads, and the one that waits below for their end.
                let threads = settings.ranks * (1 + settings.threads_of_a_rank()) + 1;
                let member = Member::new(fabric.clone(), settings.topology(rank), settings.cores, Some(threads));
                conclude(rank, caught(|| body(member)));
            };
            let mut builder = std::thread::Builder::new().name(format!("rank {rank}"));
            if settings.ranks > MANY {
                builder = builder.stack_size(SMALL_STACK);
            }
            if let Err(error) = builder.spawn_scoped(scope, main) {
                conclude(rank, Err(format!("could not be started: {error}")));
                break;
            }
        }
    });
    // The first to end the job is the culprit: others fail because they hear of it.
    let outcome = match fabric.failure() {
        Some((Some(rank), cause)) if failed.into_inner() => Err(Error::RankFailed { rank, cause }),
        _ => Ok(()),
    };
    fabric.end_here();
    outcome
}

/// More ranks than this get small stacks.
const MANY: usize = 64;
/// Bytes.
const SMALL_STACK: usize = 512 << 10;
