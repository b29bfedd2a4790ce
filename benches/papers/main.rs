//! The communication benchmarks of ARMCI-Gemini (A. Vishnu, J. Daily, B. Palmer: *Designing Scalable PGAS Communication Subsystems on Cray
//! Gemini Interconnect*, HiPC 2012, section IV-B), as ordinary programs.
//!
//! `papers BENCHMARK` writes one line for each measurement: `benchmark,bytes,value`. Time is [`Group::now`], so over a simulated network it is
//! virtual. `cargo xtask papers` runs it over the model of that machine and puts the results beside the published ones.
//!
//! | benchmark | figures | bytes | value |
//! |---|---|---|---|
//! | `connect` | 12 of ARMCI-ODCM | of an operation | microseconds until a rank that was not reached before has answered |
//! | `get`, `put` | 7, 8, 10, 11; 5, 6, 11 of ARMCI-ODCM | of a transfer | microseconds of one |
//! | `accumulate` | 7 of ARMCI-ODCM | of a transfer | microseconds of one |
//! | `strided_get`, `strided_put` | 9, 12; 8, 9 of ARMCI-ODCM | of a chunk | microseconds of a patch of [`strided::PATCH`] bytes |
//! | `strided_accumulate` | 10 of ARMCI-ODCM | of a chunk | the same |
//! | `counter`, `saturated_counter` | 13 | ranks, instead of bytes | microseconds of an addition |
//! | `add_by_adapter`, `add_by_lock` | 14, 15 | of integers | microseconds until they are added |
//! | `shift`, `transpose` | 16, 17 | of a put | microseconds until all ranks have written to all |
//! | `channel`, `mailbox` | tables 1, 2 of CkDirect | of a message | microseconds there and back |
//! | `stencil_…`, `multicast_…` | 2, 3 of CkDirect | of a message | microseconds of a step |
//!
//! Transfers and accumulates, strided or not, take two ranks on two nodes; the others as many as there are.

mod connect;
mod contiguous;
mod counters;
mod messages;
mod patterns;
mod strided;

use global_arrays::prelude::*;
use messages::By;

type Benchmark = fn(&Job) -> Result<Vec<(usize, f64)>, Error>;

const BENCHMARKS: &[(&str, Benchmark)] = &[
    ("connect", connect::connect),
    ("get", contiguous::get),
    ("put", contiguous::put),
    ("accumulate", contiguous::accumulate),
    ("strided_get", strided::get),
    ("strided_put", strided::put),
    ("strided_accumulate", strided::accumulate),
    ("counter", counters::half_loaded),
    ("saturated_counter", counters::saturated),
    ("add_by_adapter", counters::by_adapter),
    ("add_by_lock", counters::by_lock),
    ("shift", patterns::shift),
    ("transpose", patterns::transpose),
    ("channel", |job| messages::ping_pong(job, By::Channels)),
    ("mailbox", |job| messages::ping_pong(job, By::Mailbox)),
    ("stencil_channel", |job| messages::stencil(job, By::Channels)),
    ("stencil_mailbox", |job| messages::stencil(job, By::Mailbox)),
    ("multicast_channel", |job| messages::multicast(job, By::Channels)),
    ("multicast_mailbox", |job| messages::multicast(job, By::Mailbox)),
];

fn main() -> Result<(), Error> {
    // Cargo adds flags of its own.
    let name = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let Some((name, benchmark)) = BENCHMARKS.iter().find(|(known, _)| name.as_deref() == Some(*known)) else {
        let names: Vec<&str> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
        eprintln!("papers: name one of {}", names.join(", "));
        return Ok(());
    };
    Launch::new().run(|job| {
        for (bytes, micros) in benchmark(job)? {
            println!("{name},{bytes},{micros:.4}");
        }
        Ok(())
    })
}

/// The mean time of `times` calls, in microseconds.
fn mean_micros(job: &Job, times: usize, mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let start = job.now();
    (0..times).try_for_each(|_| call())?;
    Ok(1e6 * (job.now() - start).as_secs_f64() / times as f64)
}
