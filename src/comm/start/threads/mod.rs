//! Ranks that are threads of one process: for tests, debuggers and sanitizers, and where forking is not allowed.
//!
//! They share the fabric of `shared_memory`, and what the program captured. After a failure, a rank that computes without calling the
//! library ends only at its next call.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    Named, Ranks, contain, one_machine,
    settings::{DEVICES, Settings},
};
use crate::{
    comm::node::{Fabric, Member, keeping},
    error::Error,
};

/// Ranks that are threads of one process.
pub(super) const NETWORK: Named = Named {
    name: "threads",
    devices: DEVICES,
    ranks: Ranks::Threads,
    run: |settings, body| run(settings, &|member| one_machine::rank(settings, member, body)),
};

/// Runs `body` on every rank and returns when all have ended.
pub(crate) fn run(settings: &Settings, body: &(dyn Fn(Member) -> Result<(), String> + Sync)) -> Result<(), Error> {
    let fabric = Arc::new(
        Fabric::new(settings.ranks, settings.heap, settings.large_pages).map_err(|e| Error::system("reserving the heap", e))?,
    );
    fabric.keep_from_children().map_err(keeping)?;
    // The first to end the job is the culprit: others fail because they hear of it.
    let failed = AtomicBool::new(false);
    let fail = |rank: usize, cause: String| {
        fabric.end(Some(rank), &cause);
        failed.store(true, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for rank in 0..settings.ranks {
            let (fabric, fail) = (&fabric, &fail);
            let main = move || {
                settings.pin(rank);
                // The ranks' threads, their helper threads, and the one that waits below for their end.
                let threads = settings.ranks * (1 + settings.threads_of_a_rank()) + 1;
                let member = Member::new(fabric.clone(), settings.topology(rank), settings.cores, Some(threads));
                if let Err(words) = contain(|| body(member)) {
                    fail(rank, words);
                }
            };
            let mut builder = std::thread::Builder::new().name(format!("rank {rank}"));
            if settings.ranks > MANY {
                builder = builder.stack_size(SMALL_STACK);
            }
            if let Err(error) = builder.spawn_scoped(scope, main) {
                fail(rank, format!("could not be started: {error}"));
                break;
            }
        }
    });
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
