//! The figures of published papers beside what the models of the virtual cluster give.
//!
//! A row is a published statement, a value or a trend. It is of one of four kinds:
//!
//! * *Fitted* (F): a parameter of the machine was fitted to it, so it checks nothing but the fit.
//! * *Predicted* (P): the model must predict it, and nothing may be tuned to it.
//! * *Replayed* (R): the number of connections of a pattern that the paper names but does not give.
//! * *Counted* (C): the number of connections that one of our programs needs. The paper had its own program.
//!
//! Replayed rows run over software devices. All others are run by ordinary programs of this workspace over a modelled machine.
//!
//! A row that misses fails the command, unless a reason is recorded beside it. At most one predicted row in [`FEW`] may rest on a reason.
//! Counted rows of programs that the paper does not give are shown, and not judged.
//!
//! | file | what it knows |
//! |---|---|
//! | `row` | a row, its verdict, and the table |
//! | `machine` | the machine with its links, and without |
//! | `program` | programs: how they are built and run, and what they print |
//! | `transfers` | figures 7 to 12: one transfer at a time, and strided ones |
//! | `counters` | figures 13 to 15: a counter, and integers that are added |
//! | `patterns` | figures 16 and 17: shift and transpose |
//! | `applications` | figures 18 to 20: LU, Lennard-Jones, SPH |
//! | `armci` | figures of ARMCI-ODCM: transfers and connections between two nodes of its machine |
//! | `channels` | CkDirect: channels beside mailboxes |
//! | `connections` | table 2 of MVICH, tables I to IV of ARMCI-ODCM: connections that patterns take |
//! | `packets` | the EXTOLL conduit: its two designs of active messages |
//! | `reached` | tables I to IV of ARMCI-ODCM: connections that our programs take |
//!
//! Rows `mvich-…` are of J. Wu and others: *Impact of On-Demand Connection Management in MPI over VIA*, CLUSTER 2002; `odcm-…` are of A. Vishnu,
//! M. Krishnan: *Efficient On-Demand Connection Management Mechanisms with PGAS Models over InfiniBand*, CCGrid 2010; `ckdirect-…` are of E. Bohm
//! and others: *CkDirect: Unsynchronized One-Sided Communication in a Message-Driven Paradigm*, 2009. `extoll-…` are of S. Kujat
//! and others: *The New EXTOLL Conduit for the GASNet Networking Layer*, 2012. All others are of A. Vishnu, J. Daily,
//! B. Palmer: *Designing Scalable PGAS Communication Subsystems on Cray Gemini Interconnect*, HiPC 2012. Its curves have no tables, so rows are
//! what the text says of them.

mod applications;
mod armci;
mod channels;
mod connections;
mod counters;
mod machine;
mod packets;
mod patterns;
mod program;
mod reached;
mod row;
mod transfers;

use anyhow::{Result, bail};
use program::Programs;
use row::{Paper, Place, Row};
use std::time::Instant;

/// Of so many predicted rows, one may rest on a reason.
const FEW: usize = 5;

#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only these figures or tables, as the first column of the table names them
    #[arg(long, num_args = 1.., value_name = "FIGURE")]
    only: Vec<String>,
}

type Figures = fn(&Programs) -> Result<Vec<Row>>;

/// Groups of figures that share their runs.
const GROUPS: &[(&[Place], Figures)] = &[
    (&[Paper::Gemini.at(7), Paper::Gemini.at(8)], transfers::get),
    (&[Paper::Gemini.at(10), Paper::Gemini.at(11)], transfers::put),
    (&[Paper::Gemini.at(9)], transfers::strided_get),
    (&[Paper::Gemini.at(12)], transfers::strided_put),
    (&[Paper::Gemini.at(13)], counters::counter),
    (&[Paper::Gemini.at(14)], counters::crossover),
    (&[Paper::Gemini.at(16)], patterns::shift),
    (&[Paper::Gemini.at(17)], patterns::transpose),
    (&[Paper::Gemini.at(18)], applications::lu),
    (&[Paper::Gemini.at(19)], applications::lennard_jones),
    (&[Paper::Gemini.at(20)], applications::sph),
    (&[Paper::OdcmFigures.at(5)], armci::get),
    (&[Paper::OdcmFigures.at(6), Paper::OdcmFigures.at(11)], armci::put),
    (&[Paper::OdcmFigures.at(7)], armci::accumulate),
    (&[Paper::OdcmFigures.at(8), Paper::OdcmFigures.at(9), Paper::OdcmFigures.at(10)], armci::strided),
    (&[Paper::OdcmFigures.at(12)], armci::connect),
    (&[Paper::Mvich.at(2)], connections::patterns),
    (&[Paper::Odcm.at(1), Paper::Odcm.at(2), Paper::Odcm.at(3), Paper::Odcm.at(4)], connections::agents),
    (&[Paper::Odcm.at(1), Paper::Odcm.at(2)], reached::benchmarks),
    (&[Paper::Odcm.at(3), Paper::Odcm.at(4)], reached::subsurface),
    (&[Paper::Extoll.at(12)], packets::designs),
    (&[Paper::CkDirect.at(1)], channels::table_1),
    (&[Paper::CkDirect.at(2)], channels::table_2),
    (&[Paper::CkDirectFigures.at(2)], channels::stencil),
    (&[Paper::CkDirectFigures.at(3)], channels::multicast),
];

/// `Ok(true)` if no row failed, and few predicted ones rest on a reason.
pub fn run(options: &Options) -> Result<bool> {
    let mut known: Vec<String> = Vec::new();
    for name in GROUPS.iter().flat_map(|(places, _)| places.iter().map(Place::to_string)) {
        // Two groups may have rows of one table.
        if !known.contains(&name) {
            known.push(name);
        }
    }
    if let Some(figure) = options.only.iter().find(|figure| !known.contains(figure)) {
        bail!("there is no figure {figure} here, but {}", known.join(", "));
    }
    let programs = Programs::build()?;
    let mut rows = Vec::new();
    for (places, measure) in GROUPS {
        let names: Vec<String> = places.iter().map(Place::to_string).collect();
        if options.only.is_empty() || options.only.iter().any(|figure| names.contains(figure)) {
            let start = Instant::now();
            rows.extend(measure(&programs)?);
            eprintln!("{}: {:.0} s", names.join(", "), start.elapsed().as_secs_f64());
        }
    }
    print!("{}", row::table(&rows));
    let count = row::count(&rows);
    println!("\n{count}");
    Ok(count.failed == 0 && FEW * count.explained <= count.predicted)
}
