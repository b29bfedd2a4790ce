//! What a run tells: the comparison, the work, the water balance, and whether all of it passed.

use std::fmt;
use std::path::Path;

use global_arrays::prelude::*;
use program::whole_file;
use serde_json::{Map, Value, json};

use crate::cases::{Check, Verdict};
use crate::march::Marched;
use crate::newton::Work;

/// The outcome of a run.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// Of the case or the problem.
    pub(crate) name: String,
    pub(crate) cells: [usize; 3],
    pub(crate) ranks: usize,
    pub(crate) network: String,
    pub(crate) verdict: Verdict,
    pub(crate) marched: Marched,
    pub(crate) work: Work,
    /// Limit of [`Marched::balance`].
    pub(crate) tolerance: f64,
    /// Largest number of other ranks that a rank read cells of.
    pub(crate) peers: usize,
    /// Wall time of the march.
    pub(crate) seconds: f64,
}

impl Report {
    /// The verdict's checks and that of the water balance.
    fn checks(&self) -> impl Iterator<Item = Check> + '_ {
        let balance = Check {
            key: "mass_balance",
            what: "water balance of a step",
            error: self.marched.balance,
            // Rounding of the two sums.
            tolerance: self.tolerance + 1e-12,
            unit: "of what moved",
        };
        self.verdict.checks.iter().cloned().chain([balance])
    }

    /// True if every error is within its tolerance.
    pub(crate) fn passed(&self) -> bool {
        self.checks().all(|check| check.passed())
    }

    /// The first check that failed, in words.
    pub(crate) fn failure(&self) -> Option<String> {
        self.checks().find(|check| !check.passed()).map(|Check { what, error, tolerance, unit, .. }| {
            format!("{what}: the error {error:.3e} {unit} is above {tolerance:.3e}")
        })
    }

    /// One line for programs.
    pub(crate) fn json(&self) -> Value {
        let Report { name, cells, ranks, network, marched, work, .. } = self;
        let mut line = Map::new();
        line.insert("case".into(), json!(name));
        line.insert("cells".into(), json!(cells));
        line.insert("ranks".into(), json!(ranks));
        line.insert("network".into(), json!(network));
        for Check { key, error, tolerance, .. } in self.checks() {
            line.insert(key.into(), json!(error));
            line.insert(format!("{key}_tolerance"), json!(tolerance));
        }
        for (key, value) in &self.verdict.figures {
            line.insert((*key).into(), json!(value));
        }
        line.insert("mass_balance_total".into(), json!(marched.balance_total()));
        line.insert("steps".into(), json!(marched.steps));
        line.insert("refused_steps".into(), json!(marched.refused));
        line.insert("newton_iterations".into(), json!(work.newton_iterations));
        line.insert("damped_iterations".into(), json!(work.damped));
        line.insert("krylov_iterations".into(), json!(work.krylov_iterations));
        line.insert("peers".into(), json!(self.peers));
        line.insert("seconds".into(), json!(self.seconds));
        line.insert("passed".into(), json!(self.passed()));
        Value::Object(line)
    }

    /// Writes what was compared as CSV.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn write(&self, file: &Path) -> Result<(), Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.verdict.columns).map_err(Error::other)?;
        for row in &self.verdict.rows {
            writer.write_record(row.iter().map(f64::to_string)).map_err(Error::other)?;
        }
        let table = writer.into_inner().map_err(|error| Error::other(error.to_string()))?;
        whole_file::write(file, &table).map_err(Error::other)
    }
}

/// Lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { name, cells: [n, m, l], ranks, network, marched, work, peers, seconds, .. } = self;
        writeln!(f, "case       {name}, {n} x {m} x {l} cells")?;
        writeln!(f, "ranks      {ranks}, network {network}, cells read of at most {peers} others")?;
        writeln!(f, "time       {} steps, {} refused, {seconds:.2} s", marched.steps, marched.refused)?;
        writeln!(
            f,
            "Newton     {} iterations, {} of them damped; {} Krylov iterations",
            work.newton_iterations, work.damped, work.krylov_iterations
        )?;
        for check in self.checks() {
            let verdict = if check.passed() { "passed" } else { "FAILED" };
            let Check { what, error, tolerance, unit, .. } = check;
            writeln!(f, "{verdict}     {what}: error {error:.3e} {unit} (tolerance {tolerance:.3e})")?;
        }
        for (key, value) in &self.verdict.figures {
            writeln!(f, "           {} {value:.4e}", key.replace('_', " "))?;
        }
        write!(f, "           of all water moved {:.1e} is missing in the end", marched.balance_total())
    }
}
