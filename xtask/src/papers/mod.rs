//! The figures of published papers beside what the models of the virtual cluster give.
//!
//! A row is a published statement, a value or a trend. Each is run by ordinary programs of this workspace over a modelled machine. A row is
//! of one of two kinds: a parameter of the machine was *fitted* to it (F), so it checks nothing but the fit; or the model must *predict*
//! it (P), and nothing may be tuned to it. A predicted row that misses fails the command, unless a reason is recorded beside it; at most
//! one predicted row in [`FEW`] may rest on a reason.
//!
//! | file | what it knows |
//! |---|---|
//! | `row` | a row, its verdict, and the table |
//! | `machine` | the machine with its links, and without |
//! | `program` | programs: how they are built and run, and what they print |
//! | `transfers` | figures 7 to 12: one transfer at a time, and strided ones |
//! | `patterns` | figures 16 and 17: shift and transpose |
//! | `applications` | figures 18 to 20: LU, Lennard-Jones, SPH |
//!
//! All are of A. Vishnu, J. Daily, B. Palmer: *Designing Scalable PGAS Communication Subsystems on Cray Gemini Interconnect*, HiPC 2012. Its curves
//! have no tables, so rows are what the text says of them.

mod applications;
mod machine;
mod patterns;
mod program;
mod row;
mod transfers;

use anyhow::{Result, bail};
use program::Programs;
use row::Row;
use std::time::Instant;

/// Of so many predicted rows, one may rest on a reason.
const FEW: usize = 5;

#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only these figures
    #[arg(long, num_args = 1.., value_name = "FIGURE")]
    only: Vec<u32>,
}

type Figures = fn(&Programs) -> Result<Vec<Row>>;

/// Groups of figures that share their runs.
const GROUPS: &[(&[u32], Figures)] = &[
    (&[7, 8], transfers::get),
    (&[10, 11], transfers::put),
    (&[9], transfers::strided_get),
    (&[12], transfers::strided_put),
    (&[16], patterns::shift),
    (&[17], patterns::transpose),
    (&[18], applications::lu),
    (&[19], applications::lennard_jones),
    (&[20], applications::sph),
];

/// `Ok(true)` if no predicted row failed, and few rest on a reason.
pub fn run(options: &Options) -> Result<bool> {
    let known: Vec<u32> = GROUPS.iter().flat_map(|(figures, _)| figures.iter().copied()).collect();
    if let Some(figure) = options.only.iter().find(|figure| !known.contains(figure)) {
        bail!("there is no figure {figure} here, but {known:?}");
    }
    let programs = Programs::build()?;
    let mut rows = Vec::new();
    for (figures, measure) in GROUPS {
        if options.only.is_empty() || options.only.iter().any(|figure| figures.contains(figure)) {
            let start = Instant::now();
            rows.extend(measure(&programs)?);
            eprintln!("figures {figures:?}: {:.0} s", start.elapsed().as_secs_f64());
        }
    }
    print!("{}", row::table(&rows));
    let count = row::count(&rows);
    println!("\n{count}");
    Ok(count.failed == 0 && FEW * count.explained <= count.predicted)
}
