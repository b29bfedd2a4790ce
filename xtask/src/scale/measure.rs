//! One run of the program: how long it took, and on what.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::child;

/// What all runs have in common.
pub struct Run<'a> {
    pub program: &'a Path,
    pub arguments: &'a [String],
    pub network: &'a str,
    pub phase: Option<&'a str>,
    /// Where the program writes its figures for us.
    pub figures: &'a Path,
    pub limit: Duration,
}

/// What one took, in virtual seconds: the mean of all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub ranks: usize,
    pub nodes: usize,
    pub seconds: f64,
    pub computing: f64,
    /// By the name of the call.
    pub calls: BTreeMap<String, f64>,
    /// Real seconds of the run.
    pub real: f64,
}

impl Run<'_> {
    pub fn measure(&self, ranks: usize) -> Result<Row> {
        let mut command = Command::new(self.program);
        let _ = fs::remove_file(self.figures);
        command
            .args(self.arguments)
            .env("GA_NETWORK", format!("simulated:{}", self.network))
            .env("GA_RANKS", ranks.to_string())
            .env("GA_STATS", self.figures);
        if std::env::var_os("GA_COROUTINES").is_none() {
            // Threads take ten times as long, and the same virtual time.
            command.env("GA_COROUTINES", "1");
        }
        let outcome = child::run(&mut command, self.limit)?.succeeded(format_args!("{ranks} ranks"))?;
        let figures = fs::read_to_string(self.figures).ok();
        let figures =
            figures.with_context(|| format!("{ranks} ranks: the program has run no job of this crate, or an older one"))?;
        let _ = fs::remove_file(self.figures);
        let figures: Value = serde_json::from_str(&figures).context("the figures are no JSON")?;
        let row = row(&figures, self.phase).with_context(|| format!("{ranks} ranks"))?;
        Ok(Row { real: outcome.elapsed.as_secs_f64(), ..row })
    }
}

/// From the figures of a run: of one phase, or of all that have names, or of all.
fn row(figures: &Value, phase: Option<&str>) -> Result<Row> {
    let number = |value: &Value| value.as_u64().map_or(0, |number| number as usize);
    let mut row = Row { ranks: number(&figures["ranks"]), nodes: number(&figures["nodes"]), ..Row::default() };
    let phases = figures["phases"].as_array().context("no phases")?;
    let name = |phase: &Value| phase["name"].as_str().unwrap_or_default().to_owned();
    let has_names = phases.iter().any(|phase| !name(phase).is_empty());
    let counts = |of: &&Value| match phase {
        Some(phase) => name(of) == phase,
        None => !has_names || !name(of).is_empty(),
    };
    let counted: Vec<&Value> = phases.iter().filter(counts).collect();
    if counted.is_empty() {
        let names: Vec<String> = phases.iter().map(name).filter(|name| !name.is_empty()).collect();
        bail!("the program has no phase {}, only: {}", phase.unwrap_or_default(), names.join(", "));
    }
    let seconds = |value: &Value| value.as_f64().unwrap_or_default();
    for phase in counted {
        row.seconds += seconds(&phase["seconds"]);
        row.computing += seconds(&phase["computing"]);
        for call in phase["calls"].as_array().into_iter().flatten() {
            *row.calls.entry(name(call)).or_default() += seconds(&call["seconds"]);
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_phases_count_or_all() {
        let phase = |name: &str, seconds: f64| {
            serde_json::json!({"name": name, "seconds": seconds, "computing": seconds / 2.0,
                "calls": [{"name": "get", "seconds": seconds / 2.0}]})
        };
        let figures = serde_json::json!({"ranks": 4, "nodes": 2, "phases": [phase("", 8.0), phase("a", 2.0), phase("b", 1.0)]});
        let of = |phase| row(&figures, phase).map(|row| (row.seconds, row.computing, row.calls["get"]));
        assert_eq!(of(None).unwrap(), (3.0, 1.5, 1.5));
        assert_eq!(of(Some("b")).unwrap(), (1.0, 0.5, 0.5));
        assert!(of(Some("c")).unwrap_err().to_string().contains("no phase c, only: a, b"));
        let figures = serde_json::json!({"ranks": 4, "nodes": 2, "phases": [phase("", 8.0)]});
        assert_eq!(row(&figures, None).unwrap().seconds, 8.0);
    }
}
