//! `cargo xtask scale`: how a program scales on a modelled machine, as a table, CSV and a picture.
//!
//! The program runs once for each number of ranks, over a simulated network, with the same arguments. Its time is the virtual time of the
//! phases that it names (`Job::phase`), or of all if it names none. A program that computes without saying so (`Job::work`) seems to take no
//! time for that.

mod chart;
mod measure;
mod output;

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo;
use measure::{Row, Run};

#[derive(Args)]
pub struct Options {
    /// A program of this workspace
    #[arg(long, value_name = "NAME", required_unless_present = "program")]
    example: Option<String>,
    /// Another program that uses the crate
    #[arg(long, value_name = "FILE", conflicts_with = "example")]
    program: Option<PathBuf>,
    /// The modelled machine: gemini, infiniband, extoll, bluegene, or a TOML file
    #[arg(long, value_name = "MACHINE")]
    network: String,
    /// Numbers of ranks: 64..8192 doubles from the first to the last; or 64,96,128
    #[arg(long, value_name = "RANKS")]
    ranks: Counts,
    /// Measure this phase of the program only
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// Where to write; `.csv` and `.svg` are added [default: target/scale/NAME-MACHINE]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Longest real time of a run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    limit: u64,
    /// Arguments of the program
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Numbers of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counts(Vec<usize>);

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const MOST: usize = 65_536;
        let count = |word: &str| match word.trim().parse() {
            Ok(count) if (1..=MOST).contains(&count) => Ok(count),
            _ => Err(format!("{word:?} is not a number of ranks from 1 to {MOST}")),
        };
        let counts = match text.split_once("..") {
            Some((first, last)) => {
                let last = count(last.strip_prefix('=').unwrap_or(last))?;
                std::iter::successors(Some(count(first)?), |ranks| Some(2 * ranks)).take_while(|&ranks| ranks <= last).collect()
            }
            None => text.split(',').map(count).collect::<Result<Vec<_>, _>>()?,
        };
        match counts.is_sorted_by(|a, b| a < b) && !counts.is_empty() {
            true => Ok(Counts(counts)),
            false => Err(format!("{text}: the numbers of ranks must grow")),
        }
    }
}

pub fn run(options: &Options) -> Result<bool> {
    let (name, program) = program(options)?;
    let machine = PathBuf::from(&options.network);
    let machine_name = machine.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let out = match &options.out {
        Some(out) => out.clone(),
        None => cargo::target()?.join("scale").join(format!("{name}-{machine_name}")),
    };
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let run = Run {
        program: &program,
        arguments: &options.arguments,
        network: &options.network,
        phase: options.phase.as_deref(),
        figures: &out.with_extension("json"),
        limit: Duration::from_secs(options.limit),
    };
    let (csv, svg) = (out.with_extension("csv"), out.with_extension("svg"));
    let title = format!("{name} {} on {machine_name}", options.arguments.join(" "));
    let mut rows: Vec<Row> = Vec::new();
    println!("{}", output::HEAD);
    for &ranks in &options.ranks.0 {
        rows.push(run.measure(ranks)?);
        println!("{}", output::line(&rows, rows.len() - 1));
        // After each: what was measured stays, whatever comes then.
        output::write(&csv, &rows)?;
        chart::draw(&svg, &title, &rows)?;
    }
    println!("{}\n{}", csv.display(), svg.display());
    Ok(true)
}

/// The program and its name.
fn program(options: &Options) -> Result<(String, PathBuf)> {
    let Some(example) = &options.example else {
        let path = options.program.clone().unwrap_or_default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return Ok((name, path.canonicalize().with_context(|| format!("no program {}", path.display()))?));
    };
    let examples = cargo::examples()?;
    let Some((_, package)) = examples.iter().find(|(name, _)| name == example) else {
        let mut names: Vec<&str> = examples.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        bail!("there is no example {example}, only: {}", names.join(", "));
    };
    let built = cargo::build(&["build", "--release", "--package", package, "--bins", "--examples"])?;
    let built = built.into_iter().find(|program| &program.name == example).context("cargo built no such program")?;
    Ok((example.clone(), built.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ranks_double_or_are_listed() {
        assert_eq!("64..600".parse(), Ok(Counts(vec![64, 128, 256, 512])));
        assert_eq!("64..=128".parse(), Ok(Counts(vec![64, 128])));
        assert_eq!("3,5".parse(), Ok(Counts(vec![3, 5])));
        for wrong in ["", "0..8", "8..4", "5,3", "x", "1..1000000"] {
            assert!(wrong.parse::<Counts>().is_err(), "{wrong}");
        }
    }
}
