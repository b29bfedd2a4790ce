//! The crate beside what a user would take instead, measured in one run.
//!
//! Every round runs, for each group of rows, each program once; the order rotates from round to round. A
//! figure is the median over the rounds of each program's own medians. What cannot be had is left out with a message.
//!
//! | file | what it knows |
//! |---|---|
//! | `goals` | every row: its name, its unit, what we want to reach |
//! | `mpi` | how the ranks are placed, and the options of each MPI library for it |
//! | `source` | whose figures there are: ours, the limit's, the peers' |
//! | `settings` | what the user chose, and where the files are |
//! | `start` | what a job costs to start beyond MPI |
//! | `programs` | what programs there are, how each is built or found |
//! | `way` | how each kind of program is started |
//! | `examples` | our own programs: their arguments, and what of their JSON makes rows |
//! | `hpcc`, `lammps` | inputs, outputs and checks of HPC Challenge and LAMMPS |
//! | `python` | the peers that Python's package index carries |
//! | `only` | what a run measures when it is not to measure all |
//! | `results` | figures, medians, ratios, the CSV file |
//! | `machine` | the processor that was measured |
//! | `reasons` | why rows miss their goals |
//! | `table`, `chart`, `page` | the Markdown tables, the chart, `docs/performance.md` |

mod chart;
mod examples;
mod goals;
mod hpcc;
mod lammps;
mod machine;
mod mpi;
mod only;
mod page;
mod programs;
mod python;
mod reasons;
mod results;
mod settings;
mod source;
mod start;
mod table;
mod way;

pub use mpi::{Library, Place};

use crate::cargo;
use crate::packages;
use crate::quiet::Patience;
use anyhow::{Context, Result};
use goals::{ROWS, Section};
use machine::Machine;
use only::Only;
use reasons::Reasons;
use results::Results;
use settings::Settings;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};
use way::Program;

#[derive(clap::Args, Debug)]
pub struct Options {
    /// One round of short trials: a first look, not figures to quote
    #[arg(long)]
    quick: bool,
    /// Only these groups of rows, or `mpi`: what the MPI conduit does beside its peers
    #[arg(long, num_args = 1.., value_name = "GROUP")]
    only: Vec<Only>,
    /// Rounds, in each of which every program runs once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    /// Do not install packages of Debian or Python, leave out what is missing
    #[arg(long)]
    no_install: bool,
    /// Leave docs/performance.md and its figures as they are
    #[arg(long)]
    keep_docs: bool,
    /// Measure nothing: draw docs/performance.md and its charts from the figures in docs/performance
    #[arg(long, conflicts_with_all = ["quick", "only", "rounds", "keep_docs"])]
    redraw: bool,
}

/// `Ok(true)` when something was measured; goals that are not reached are shown, not an error.
pub fn run(options: &Options) -> Result<bool> {
    let root = cargo::root();
    if options.redraw {
        complain(page::write(&root)?);
        return Ok(true);
    }
    let machine = Machine::this();
    let mut results = Results::of(machine.title());
    // Before: peers write their logs into it.
    let folder = cargo::folder("compare")?;
    measure(options, &mut results)?;
    results.set_date(&machine::today());
    let csv = folder.join("compare.csv");
    results.write(&csv)?;
    let chart = folder.join("compare.svg");
    fs::write(&chart, chart::svg(&results)).with_context(|| format!("cannot write {}", chart.display()))?;
    println!("{}, {}", results.title, results.dates());
    print!("{}", table::markdown(&results, &Reasons::default()));
    eprintln!("\nwritten: {}, compare.svg beside it", csv.display());
    let measured = !results.is_empty();
    // A first look is nothing to quote.
    if measured && !options.quick && !options.keep_docs {
        let figures = page::figures(&root, &machine.file_name());
        let mut all = if figures.exists() { Results::read(&figures)? } else { Results::default() };
        all.replace(results);
        all.write(&figures)?;
        complain(page::write(&root)?);
        eprintln!("written: {}, docs/performance.md", figures.display());
    }
    Ok(measured)
}

fn complain(unexplained: Vec<String>) {
    for row in unexplained {
        eprintln!("note: no reason in docs/performance/reasons.txt why {row} misses its goal");
    }
}

/// Of one build, and how much longer the first one takes. Measured on two Zen 3 cores: the first without MPI 4 min 49 s, all three 11 min.
const BUILD_MINUTES: usize = 3;
const MORE_AT_FIRST: usize = 2;
/// And with `--quick`: most rows have five columns, each of which has at most a second, or 0.3 (`BENCH_BUDGET_S`).
const ROWS_A_MINUTE: [usize; 2] = [12, 40];

fn measure(options: &Options, results: &mut Results) -> Result<()> {
    let start = Instant::now();
    packages::ensure(programs::NEEDS, !options.no_install);
    let settings = Settings::new(options.quick, !options.no_install)?;
    let sections: Vec<Section> = goals::sections().into_iter().filter(|section| only::wanted(&options.only, *section)).collect();
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { 3 });
    let builds = programs::builds(&sections);
    let (count, rows) = (builds.len(), rounds as usize * ROWS.iter().filter(|row| sections.contains(&row.section())).count());
    let (set_up, measuring) = (MORE_AT_FIRST + BUILD_MINUTES * count, rows.div_ceil(ROWS_A_MINUTE[usize::from(options.quick)]));
    eprintln!(
        "builds: {count}, about {set_up} min on two cores if none is there; rows in all rounds: {rows}, about {measuring} min"
    );
    let programs = programs::all(&settings, &sections, &builds)?;
    let mut patience = Patience::new(Duration::from_secs(if options.quick { 30 } else { 180 }));
    let mut complaints = BTreeSet::new();
    for round in 0..rounds as usize {
        for &section in &sections {
            eprintln!("round {} of {rounds}, {section} ({:.0} s)", round + 1, start.elapsed().as_secs_f64());
            let turn: Vec<&Program> = programs.iter().filter(|program| program.measures(section)).collect();
            for step in 0..turn.len() {
                let program = turn[(round + step) % turn.len()];
                patience.wait();
                let measured = program.measure(section.group, &settings);
                complaints.extend(measured.complaints);
                for figure in measured.figures {
                    results.add(section, program.source, figure);
                }
            }
        }
    }
    for complaint in &complaints {
        eprintln!("note: {complaint}");
    }
    if patience.disturbed > 0 {
        eprintln!("note: {} measurements began while something else was running", patience.disturbed);
    }
    eprintln!("measured in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
