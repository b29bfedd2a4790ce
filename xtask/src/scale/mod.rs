//! `cargo xtask scale`: how a program scales on a modelled machine, as a table, CSV and a picture.
//!
//! The program runs once for each number of ranks, over a simulated network, with the same arguments. Its time is the virtual time of the
//! phases that it names (`Job::phase`), or of all if it names none. A program that computes without saying so (`Job::work`) seems to take no
//! time for that.
//!
//! The table says in each row what was run. So `--resume` can add numbers of ranks to a table: it measures only those that the table lacks.

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
    /// The modelled machine: gemini, infiniband, extoll, bluegene, loopback, or a TOML file
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
    /// Keep the rows that the CSV file already has; the program and the model must be the same as then
    #[arg(long)]
    resume: bool,
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
    let what = what(&name, options, &machine_name, std::env::vars());
    let mut rows: Vec<Row> = if options.resume { output::read(&csv, &what)? } else { Vec::new() };
    println!("{}", output::HEAD);
    (0..rows.len()).for_each(|at| println!("{}", output::line(&rows, at)));
    if !rows.is_empty() {
        chart::draw(&svg, &what, &rows)?;
    }
    for &ranks in &options.ranks.0 {
        let Err(at) = rows.binary_search_by_key(&ranks, |row| row.ranks) else { continue };
        rows.insert(at, run.measure(ranks)?);
        println!("{}", output::line(&rows, at));
        // After each: what was measured stays, whatever comes then.
        output::write(&csv, &what, &rows)?;
        chart::draw(&svg, &what, &rows)?;
    }
    println!("{}\n{}", csv.display(), svg.display());
    Ok(true)
}

/// What a row measures, but for the number of ranks: the variables that virtual time may depend on, the program, and the machine.
fn what(name: &str, options: &Options, machine: &str, variables: impl Iterator<Item = (String, String)>) -> String {
    /// Set for each run, or without an influence on virtual time.
    const OTHERS: [&str; 5] = ["GA_NETWORK", "GA_RANKS", "GA_STATS", "GA_COROUTINES", "GA_STACK"];
    let mut words: Vec<String> = variables
        .filter(|(name, _)| name.starts_with("GA_") && !OTHERS.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.sort_unstable();
    words.push(name.to_owned());
    words.extend_from_slice(&options.arguments);
    words.extend(["on".to_owned(), machine.to_owned()]);
    words.extend(options.phase.iter().map(|phase| format!("(phase {phase})")));
    words.join(" ")
}

/// The program and its name.
fn program(options: &Options) -> Result<(String, PathBuf)> {
    let Some(example) = &options.example else {
        let path = options.program.clone().unwrap_or_default();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return Ok((name, path.canonicalize().with_context(|| format!("no program {}", path.display()))?));
    };
    let examples = cargo::examples()?;
    let Some((_, kind)) = examples.iter().find(|(name, _)| name == example) else {
        let mut names: Vec<&str> = examples.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        bail!("there is no example {example}, only: {}", names.join(", "));
    };
    let built = cargo::build(&[cargo::RELEASE, &[&format!("--{kind}"), example]].concat())?;
    Ok((example.clone(), cargo::path(&built, example)?))
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

    #[test]
    fn a_row_names_what_it_depends_on() {
        let options = Options {
            example: None,
            program: None,
            network: "gemini".into(),
            ranks: Counts(vec![1]),
            phase: Some("factor".into()),
            out: None,
            resume: false,
            limit: 1,
            arguments: vec!["--n".into(), "8".into()],
        };
        let variables = [("PATH", "/bin"), ("GA_STATS", "1"), ("GA_SEED", "3"), ("GA_COMPUTING", "skip")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let what = what("lu", &options, "gemini", variables.into_iter());
        assert_eq!(what, "GA_COMPUTING=skip GA_SEED=3 lu --n 8 on gemini (phase factor)");
    }
}
