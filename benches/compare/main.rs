//! Our own rows of the comparison: the same operations, shapes and rules as the C programs in `benches/peers`.
//!
//! `compare out=FILE.csv GROUP...` runs with two ranks over shared memory, or over MPI when `mpirun` starts it, and writes one line
//! for each row: `op,shape,value,unit,best,trials,iters`, where value is the median over the trials. `cargo xtask compare` runs it
//! in turn with the peers and makes the table.

mod measure;
mod message;
mod patch;
mod remote;
mod sync;
mod whole;

use global_arrays::prelude::*;

use measure::Bench;

const MIB: usize = 1 << 20;

type Group = (&'static str, usize, fn(&Bench<'_>) -> Result<(), Error>);

/// Name, ranks, rows.
const GROUPS: &[Group] = &[
    ("element", 2, patch::elements),
    ("contiguous", 2, patch::contiguous),
    ("strided", 2, patch::strided),
    ("random", 2, patch::lists),
    ("inflight", 2, patch::in_flight),
    ("counter", 2, sync::counter),
    ("message", 2, message::message),
    ("active", 2, message::active),
    ("sync", 2, sync::sync),
    ("sync8", 8, sync::sync),
    ("whole", 2, whole::whole),
    ("transpose", 2, whole::transpose),
    ("matmul", 2, whole::matmul),
    ("ghosts", 2, whole::ghosts),
    ("create", 2, sync::create),
    ("remote", 2, remote::remote),
    // What a job costs that does nothing.
    ("start", 4, |_| Ok(())),
];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let out = arguments.iter().find_map(|a| a.strip_prefix("out=")).map(str::to_owned);
    let report = measure::Report::open(out.as_deref())?;
    let wanted = |name: &str| {
        let mut named = arguments.iter().filter(|a| !a.contains('=') && !a.starts_with('-')).peekable();
        named.peek().is_none() || named.any(|a| a == name)
    };
    for &(name, ranks, rows) in GROUPS {
        if wanted(name) {
            Launch::new().ranks(ranks).run(|job| rows(&Bench::new(job, &report)))?;
        }
    }
    if wanted("job") {
        sync::job(&report)?;
    }
    Ok(())
}
