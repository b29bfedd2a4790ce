//! The virtual cluster beside another simulator: SimGrid, on machines of the same parameters.
//!
//! Both run the same patterns: our program `benches/patterns` over `simulated:FILE`, and `benches/simgrid/patterns.c` over SMPI, SimGrid's
//! MPI. SMPI's factors, which were fitted to one cluster, are off. What is left is a fluid model: all messages on a link share its
//! bandwidth, while ours take turns. A row must agree within 10 %, or have an explanation here.
//!
//! | file | what it knows |
//! |---|---|
//! | `machine` | the parameters, and both descriptions that are made of them |
//! | `cases` | which patterns run on how many ranks |
//! | `exact` | what LogGP says where no two messages meet |
//! | `ours`, `simgrid` | how each side is built and run |
//! | `table` | the ratios, the verdicts, what explains a difference |

mod cases;
mod exact;
mod machine;
mod ours;
mod simgrid;
mod table;

use crate::cargo;
use anyhow::Result;
use machine::{MACHINE, Network};
use std::time::{Duration, Instant};
use table::Row;

#[derive(clap::Args, Debug)]
pub struct Options {
    /// At most 256 ranks: a minute instead of some ten
    #[arg(long)]
    quick: bool,
}

/// One run of either side.
const RUN_LIMIT: Duration = Duration::from_secs(1800);

/// `Ok(true)` when every row agrees or has an explanation, and when there is no SimGrid.
pub fn run(options: &Options) -> Result<bool> {
    if !simgrid::is_installed() {
        eprintln!("skipped: there is no SimGrid (apt-get install {})", simgrid::PACKAGE);
        return Ok(true);
    }
    let folder = cargo::folder("validate")?;
    let ours = ours::build()?;
    let theirs = simgrid::build(&folder)?;
    let most = if options.quick { 256 } else { usize::MAX };
    println!("{}", table::HEADING);
    let (start, mut rows) = (Instant::now(), Vec::new());
    for network in Network::ALL {
        for ranks in cases::RANKS.into_iter().filter(|&ranks| ranks <= most) {
            let cases = cases::of(network, ranks);
            if cases.is_empty() {
                continue;
            }
            let our_times = ours::times(&ours, &folder, network, ranks, &cases)?;
            let their_times = simgrid::times(&theirs, &folder, network, ranks, &cases)?;
            for ((case, ours), theirs) in cases.into_iter().zip(our_times).zip(their_times) {
                let exact = exact::seconds(&MACHINE, network, ranks, case);
                let row = Row { network, ranks, case, ours, theirs, exact };
                println!("{}", row.line());
                rows.push(row);
            }
        }
    }
    let off: Vec<&Row> = rows.iter().filter(|row| !row.agrees() && row.explanation().is_none()).collect();
    for explanation in table::explanations(&rows) {
        println!("{explanation}");
    }
    println!("{} rows, {} off without an explanation, {:.0} s", rows.len(), off.len(), start.elapsed().as_secs_f64());
    Ok(off.is_empty())
}
