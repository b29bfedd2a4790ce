//! RandomAccess of the HPC Challenge: how many times a second a word anywhere in a large table can be changed.
//!
//! The rules (HPC Challenge, <https://hpcchallenge.org/>): a table T of 2ᵐ words of 64 bits, T[k] = k at first; 4 · 2ᵐ updates, of
//! which the n-th is T[aₙ mod 2ᵐ] ^= aₙ with the numbers of [`stream`]; each rank generates an equal share of them and may hold back
//! at most 1024; afterwards the stream is run again and at most one word in a hundred may be wrong. Here none may.
//!
//! Four ways to do it:
//!
//! * `lists`: one-sided; a list of 1024 atomic exclusive-ors at a time by `scatter_op`, which keeps many of them under way. No
//!   rank waits for another.
//! * `buckets`: updates go in buckets to the owner of their words, who applies them; see [`buckets`]. It needs no atomic operation:
//!   the fastest on a quiet machine, and where the network has none. Coalescing by owner is what ARMCI-ODCM §IV-C does
//!   with 1024 updates (there by accumulate).
//! * `messages`: the same buckets as active messages; see [`messages`]. No rank waits for another to generate.
//! * `elements`: one-sided; one fetch-xor for each update.
//!
//! The stream runs again without any communication: each rank walks all of it, by the recurrence and not by the jumps that the
//! ranks began with, and applies what falls into its own part.

mod buckets;
mod messages;
mod stream;
mod table;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use global_arrays::{FetchOp, prelude::*};
use program::{command_line, file_names};
use serde_json::json;

use crate::buckets::Exchange;
use crate::table::Table;

/// Updates that a rank may hold back.
const LOOK_AHEAD: usize = 1024;

/// Changes random words of a large distributed table and counts how many a second.
#[derive(Debug, Clone, Parser)]
#[command(name = "random_access")]
struct Arguments {
    #[command(flatten)]
    start: command_line::Start,
    /// The table has two to this power words of 8 bytes; the rules ask for half of the memory
    #[arg(long, value_name = "M", default_value_t = 22, value_parser = clap::value_parser!(u32).range(1..=48))]
    log2_size: u32,
    /// How updates reach their words
    #[arg(long, value_enum, default_value = "lists")]
    way: Way,
    /// Write the table to a file for NumPy
    #[arg(long, value_name = "FILE.npy")]
    save: Option<PathBuf>,
}

/// How updates reach their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// In buckets to the owner of the words, who applies them
    Buckets,
    /// The same as messages
    Messages,
    /// By lists of atomic operations
    Lists,
    /// By one atomic operation each
    Elements,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    command_line::main("random_access", || run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    if let Some(file) = &arguments.save {
        global_arrays::file::check_name(file).map_err(|error| error.to_string())?;
    }
    file_names::check(&[("--save", arguments.save.as_deref())], &[])?;
    arguments.start.launch().run(|job| rank_main(job, arguments)).map_err(|error: Error| error.to_string())
}

/// What each rank does.
fn rank_main(job: &Job, arguments: &Arguments) -> Result<(), Error> {
    let table = Table { log2_size: arguments.log2_size, ranks: job.size() };
    let mut words = table.create(job)?;
    let bar = command_line::progress_bar(job, table.share(0).count(), "updates of this rank");
    let progress = |updates: u64| bar.inc(updates);
    let before = job.stats();
    let way = arguments.way;
    let start;
    match way {
        Way::Buckets => {
            let mut exchange = Exchange::new(job, table)?;
            job.sync()?;
            start = job.now();
            job.phase("updates", || words.owner_epoch(|part| exchange.run(part, progress)))??;
        }
        Way::Messages => {
            job.sync()?;
            start = job.now();
            job.phase("updates", || words.owner_epoch(|part| messages::run(job, table, part, progress)))??;
        }
        Way::Lists => {
            job.sync()?;
            start = job.now();
            let mut subscripts = Vec::with_capacity(LOOK_AHEAD);
            job.phase("updates", || {
                in_batches(table, job.rank(), |updates| {
                    subscripts.clear();
                    subscripts.extend(updates.iter().map(|&a| table.index(a)));
                    progress(updates.len() as u64);
                    words.scatter_op(&subscripts, FetchOp::Xor, updates)
                })
            })?;
        }
        Way::Elements => {
            job.sync()?;
            start = job.now();
            job.phase("updates", || {
                in_batches(table, job.rank(), |updates| {
                    progress(updates.len() as u64);
                    updates.iter().try_for_each(|&a| words.fetch_op([table.index(a)], FetchOp::Xor, a).map(|_| ()))
                })
            })?;
        }
    }
    job.sync()?;
    let seconds = job.all_reduce_one((job.now() - start).as_secs_f64(), ops::max)?;
    bar.finish_and_clear();
    let reached = match (job.stats(), before) {
        (Some(now), Some(before)) => {
            let phase = now.since(&before);
            let mut most = [phase.distinct_peers() as u64, phase.distinct_nodes() as u64];
            job.all_reduce(&mut most, ops::max)?;
            Some(most)
        }
        _ => None,
    };
    // The check runs the stream again on this table.
    if let Some(file) = &arguments.save {
        words.save(file)?;
    }
    let errors = table.errors(job, &mut words)?;
    let report = Report { table, way, network: job.network().to_owned(), seconds, errors, reached };
    arguments.start.report(job, &report, &report.json())?;
    if errors == 0 { Ok(()) } else { Err(Error::other(format!("{errors} words of {} are wrong", table.words()))) }
}

/// Generates a rank's share of the updates, at most as many at a time as it may hold back.
fn in_batches(table: Table, rank: usize, mut apply: impl FnMut(&[u64]) -> Result<(), Error>) -> Result<(), Error> {
    let share = table.share(rank);
    let (mut a, mut left) = (stream::at(share.start), share.end - share.start);
    let mut updates = [0; LOOK_AHEAD];
    while left > 0 {
        let count = left.min(LOOK_AHEAD as u64) as usize;
        for update in &mut updates[..count] {
            a = stream::next(a);
            *update = a;
        }
        apply(&updates[..count])?;
        left -= count as u64;
    }
    Ok(())
}

/// What a run tells.
#[derive(Debug)]
struct Report {
    table: Table,
    way: Way,
    network: String,
    seconds: f64,
    errors: u64,
    /// Distinct peers and nodes that a rank reached at most, if that was counted.
    reached: Option<[u64; 2]>,
}

impl Report {
    /// 10⁹ updates a second.
    fn gups(&self) -> f64 {
        self.table.updates() as f64 / self.seconds * 1e-9
    }

    fn way(&self) -> String {
        self.way.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "log2_size": self.table.log2_size,
            "ranks": self.table.ranks,
            "network": self.network,
            "way": self.way(),
            "updates": self.table.updates(),
            "seconds": self.seconds,
            "gups": self.gups(),
            "errors": self.errors,
            "distinct_peers": self.reached.map(|[peers, _]| peers),
            "distinct_nodes": self.reached.map(|[_, nodes]| nodes),
            "passed": self.errors == 0,
        })
    }
}

/// Lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { table, network, seconds, errors, .. } = self;
        writeln!(f, "table      2^{} words on {} ranks, network {network}", table.log2_size, table.ranks)?;
        writeln!(f, "updates    {} by {}, in {seconds:.3} s", table.updates(), self.way())?;
        writeln!(f, "rate       {:.4} GUPS", self.gups())?;
        if let Some([peers, nodes]) = self.reached {
            writeln!(f, "reached    at most {peers} other ranks on {nodes} nodes by one rank")?;
        }
        write!(f, "errors     {errors}  {}", if *errors == 0 { "passed" } else { "FAILED" })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn batches_are_the_share_and_no_longer_than_the_look_ahead() {
        let table = Table { log2_size: 9, ranks: 3 };
        let mut all = Vec::new();
        for rank in 0..3 {
            in_batches(table, rank, |updates| {
                assert!(updates.len() <= LOOK_AHEAD);
                all.extend_from_slice(updates);
                Ok(())
            })
            .unwrap();
        }
        assert!(all.iter().copied().eq((1..=table.updates()).map(stream::at)));
    }
}
