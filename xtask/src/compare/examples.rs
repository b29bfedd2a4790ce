//! The crate's own programs: how each is started, and which keys of its JSON line make rows.

use super::goals::Group::{self, LennardJones, Lu, Matmul3d, PairCalculator, RandomAccess, Sph, Stencil, Subsurface};
use super::results::Figure;
use crate::child::Outcome;
use serde_json::Value;

/// One start of a program.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub group: Group,
    pub program: &'static str,
    /// Each to be split at blanks; `--json` goes without saying.
    arguments: &'static [&'static str],
    /// What makes it as long as it is: a flag, its value, its value with `--quick`.
    length: Option<[&'static str; 3]>,
    readings: &'static [Reading],
    /// Two copies at once, each on a core of its own; a figure is the sum of both.
    pub twice: bool,
}

/// One row.
#[derive(Clone, Copy, Debug)]
struct Reading {
    op: &'static str,
    shape: &'static str,
    /// Of a number in the JSON line.
    key: &'static str,
    /// What turns it into the row's unit.
    factor: f64,
}

const fn reading(op: &'static str, shape: &'static str, key: &'static str, factor: f64) -> Reading {
    Reading { op, shape, key, factor }
}

const MELT: &str = "--fcc 20 --density 0.8442 --cutoff 2.5 --potential truncated --dt 0.005 --temperature 1.44";
const MELT_LENGTH: Option<[&str; 3]> = Some(["--steps", "300", "100"]);
/// 224 × 448 particles of water, as the peers have, and about as many steps.
const DAM_BREAK: &str = "--case dam_break --column-width 1 --column-height 2 --tank-length 4 --spacing 0.004464285714285714";
const DAM_BREAK_LENGTH: Option<[&str; 3]> = Some(["--end-time", "0.004", "0.0012"]);

const fn melt(ranks: &'static [&'static str], readings: &'static [Reading]) -> Start {
    Start { group: LennardJones, program: "lennard_jones", arguments: ranks, length: MELT_LENGTH, readings, twice: false }
}

const fn dam_break(ranks: &'static [&'static str], readings: &'static [Reading]) -> Start {
    Start { group: Sph, program: "sph", arguments: ranks, length: DAM_BREAK_LENGTH, readings, twice: false }
}

const fn stencil(ranks: &'static [&'static str], readings: &'static [Reading]) -> Start {
    Start {
        group: Stencil,
        program: "stencil",
        arguments: ranks,
        length: Some(["--sweeps", "100", "30"]),
        readings,
        twice: false,
    }
}

const fn start(group: Group, program: &'static str, arguments: &'static [&'static str], readings: &'static [Reading]) -> Start {
    Start { group, program, arguments, length: None, readings, twice: false }
}

const fn twice(start: Start) -> Start {
    Start { twice: true, ..start }
}

pub static STARTS: &[Start] = &[
    start(
        Lu,
        "lu",
        &["--ranks 2 --n 4096"],
        &[reading("lu_factor", "4096", "factor_gflops", 1.0), reading("lu", "4096", "gflops", 1.0)],
    ),
    melt(&[MELT, "--ranks 1"], &[reading("lennard_jones", "32000 1 rank", "steps_per_second", 1.0)]),
    melt(&[MELT, "--ranks 2"], &[reading("lennard_jones", "32000 2 ranks", "steps_per_second", 1.0)]),
    twice(melt(&[MELT, "--ranks 1"], &[reading("lennard_jones", "32000 two copies", "steps_per_second", 1.0)])),
    melt(&[MELT, "--ranks 2 --slow 1"], &[reading("lennard_jones", "32000 one slow", "steps_per_second", 1.0)]),
    dam_break(&[DAM_BREAK, "--ranks 1"], &[reading("sph", "1e5 1 rank", "particle_steps_per_second", 1e-6)]),
    dam_break(&[DAM_BREAK, "--ranks 2"], &[reading("sph", "1e5 2 ranks", "particle_steps_per_second", 1e-6)]),
    twice(dam_break(&[DAM_BREAK, "--ranks 1"], &[reading("sph", "1e5 two copies", "particle_steps_per_second", 1e-6)])),
    start(RandomAccess, "random_access", &["--ranks 2 --log2-size 24"], &[reading("random_access", "2^24", "gups", 1.0)]),
    stencil(&["--ranks 1 --n 256"], &[reading("stencil", "256^3 1 rank", "mcells_per_second", 1.0)]),
    stencil(&["--ranks 2 --n 256"], &[reading("stencil", "256^3 2 ranks", "mcells_per_second", 1.0)]),
    start(Matmul3d, "matmul", &["--ranks 2 --n 2048"], &[reading("matmul_3d", "2048", "gflops", 1.0)]),
    start(Subsurface, "subsurface", &["--ranks 1 --case theis"], &[reading("subsurface", "theis 1 rank", "seconds", 1.0)]),
    start(Subsurface, "subsurface", &["--ranks 2 --case theis"], &[reading("subsurface", "theis", "seconds", 1.0)]),
    start(Subsurface, "subsurface", &["--ranks 2 --case infiltration"], &[reading("subsurface", "infiltration", "seconds", 1.0)]),
    start(
        PairCalculator,
        "pair_calculator",
        &["--ranks 2 --states 128 --planes 16 --iterations 10"],
        &[reading("pair_calculator", "128 x 16", "seconds_per_iteration", 1e3)],
    ),
];

impl Start {
    pub fn arguments(&self, quick: bool) -> impl Iterator<Item = &'static str> {
        let length = self.length.map(|[flag, full, short]| [flag, if quick { short } else { full }]);
        let all = self.arguments.iter().flat_map(|words| words.split(' '));
        all.chain(length.into_iter().flatten()).chain(["--json"])
    }

    /// The rows of a run that ended well and found its own results right.
    pub fn figures(&self, outcome: &Outcome) -> Result<Vec<Figure>, String> {
        let wrong = |why: &str| Err(format!("{}: {why}", self.program));
        let lines = outcome.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let reports: Vec<Value> = lines.filter(Value::is_object).collect();
        // A program that prints more than one says the last word last.
        let copies = if self.twice { 2 } else { 1 };
        let Some(first) = reports.len().checked_sub(copies) else { return wrong("no line of JSON") };
        let reports = &reports[first..];
        if !outcome.success() || reports.iter().any(|report| report["passed"] == false) {
            return wrong("its own check failed");
        }
        // RandomAccess may by its rules be wrong in 1 % of the words; to be compared it must be right.
        if reports.iter().any(|report| report["errors"].as_f64().is_some_and(|errors| errors > 0.0)) {
            return wrong("words are wrong");
        }
        let mut figures = Vec::new();
        for Reading { op, shape, key, factor } in self.readings {
            let sound = |value: &f64| value.is_finite() && *value > 0.0;
            let values = reports.iter().map(|report| report[*key].as_f64().map(|value| value * factor).filter(sound));
            let Some(value) = values.sum::<Option<f64>>() else {
                return wrong(&format!("no {key} in its JSON"));
            };
            figures.push(Figure { op: (*op).to_owned(), shape: (*shape).to_owned(), value });
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::End;
    use crate::compare::goals::ROWS;
    use std::time::Duration;

    #[test]
    fn every_reading_has_a_row_of_its_group() {
        for start in STARTS {
            for Reading { op, shape, .. } in start.readings {
                assert!(ROWS.iter().any(|row| (row.group, row.op, row.shape) == (start.group, *op, *shape)), "{op} {shape}");
            }
        }
    }

    /// The figure of a start whose program printed `line` and ended with `code`.
    fn figure(start: &Start, code: i32, line: &str) -> Result<f64, String> {
        let (stdout, elapsed) = (format!("text\n{line}\n"), Duration::from_secs(1));
        let outcome = Outcome { end: End::Exit(code), stdout, stderr: String::new(), elapsed, left_behind: Vec::new() };
        start.figures(&outcome).map(|figures| figures[0].value)
    }

    #[test]
    fn only_sound_runs_count() {
        let start = STARTS.iter().find(|start| start.program == "random_access").expect("a program");
        let figures = |code, line: &str| figure(start, code, line);
        assert_eq!(figures(0, r#"{"gups": 0.2, "errors": 0}"#), Ok(0.2));
        assert!(figures(1, r#"{"gups": 0.2, "errors": 0}"#).is_err());
        assert!(figures(0, r#"{"gups": 0.2, "errors": 3}"#).is_err());
        assert!(figures(0, r#"{"gups": 0.2, "passed": false}"#).is_err());
        assert!(figures(0, r#"{"gups": null}"#).is_err());
        assert!(figures(0, "").is_err());
    }

    #[test]
    fn copies_are_added_up_if_both_are_there() {
        let start = STARTS.iter().find(|start| start.twice && start.program == "sph").expect("a program");
        let line = r#"{"passed": true, "particle_steps_per_second": 2e6}"#;
        assert_eq!(figure(start, 0, &format!("{line}\n{line}")), Ok(4.0));
        assert!(figure(start, 0, line).is_err());
        assert!(figure(start, 0, &format!("{line}\n{}", line.replace("true", "false"))).is_err());
    }

    #[test]
    fn arguments_end_with_the_length() {
        let start = STARTS.iter().find(|start| start.program == "stencil").expect("a program");
        let line = |quick| start.arguments(quick).collect::<Vec<_>>().join(" ");
        assert_eq!(line(false), "--ranks 1 --n 256 --sweeps 100 --json");
        assert_eq!(line(true), "--ranks 1 --n 256 --sweeps 30 --json");
    }
}
