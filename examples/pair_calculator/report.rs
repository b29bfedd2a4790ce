//! What a run tells: the time of an iteration, the deviation from orthonormality by iteration, and whether it passed.

use std::fmt;
use std::path::Path;

use program::plot::{Series, draw};
use serde_json::json;

use crate::pairs::Shape;

/// A relative error above this has failed; rounding leaves some 10⁻¹⁵.
pub(crate) const THRESHOLD: f64 = 1e-12;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) shape: Shape,
    pub(crate) ranks: usize,
    pub(crate) network: String,
    /// Of an iteration.
    pub(crate) seconds: f64,
    /// The largest element of S − 1 before each iteration and at the end.
    pub(crate) deviations: Vec<f64>,
    /// Relative to the largest coefficient.
    pub(crate) max_error: f64,
    /// Distinct peers and nodes that a rank reached at most, if that was counted.
    pub(crate) reached: Option<[u64; 2]>,
}

impl Report {
    /// An error that is not a number has not.
    pub(crate) fn passed(&self) -> bool {
        self.max_error <= THRESHOLD
    }

    fn last_deviation(&self) -> f64 {
        self.deviations.last().copied().unwrap_or(f64::NAN)
    }

    /// One line for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "states": self.shape.states,
            "planes": self.shape.planes,
            "points": self.shape.points,
            "grain": self.shape.grain,
            "iterations": self.deviations.len() - 1,
            "ranks": self.ranks,
            "network": self.network,
            "seconds_per_iteration": self.seconds,
            "overlap_deviation": self.last_deviation(),
            "max_error": self.max_error,
            "distinct_peers": self.reached.map(|[peers, _]| peers),
            "distinct_nodes": self.reached.map(|[_, nodes]| nodes),
            "passed": self.passed(),
        })
    }

    /// The deviation by iteration.
    pub(crate) fn draw(&self, file: &Path) -> Result<(), String> {
        let points = self.deviations.iter().enumerate().filter(|&(_, &e)| e > 0.0);
        let points: Vec<(f64, f64)> = points.map(|(k, e)| (k as f64, e.log10())).collect();
        let series = [Series { name: "largest element of S - 1", points, dots: true }];
        let title = format!("{} states made orthonormal", self.shape.states);
        draw(file, &title, ("iteration", "log10 of the deviation"), &series)
    }
}

/// Lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { shape: Shape { states, planes, points, grain, .. }, ranks, network, .. } = self;
        writeln!(f, "states     {states} in blocks of {grain}, {planes} planes of {points} points")?;
        writeln!(f, "ranks      {ranks}, network {network}")?;
        writeln!(f, "iteration  {:.3} ms", self.seconds * 1e3)?;
        for (k, deviation) in self.deviations.iter().enumerate() {
            writeln!(f, "  S - 1 after {k:3}  {deviation:.3e}")?;
        }
        if let Some([peers, nodes]) = self.reached {
            writeln!(f, "reached    at most {peers} other ranks on {nodes} nodes by one rank")?;
        }
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        write!(f, "error      {:.3e}  {verdict} (threshold {THRESHOLD:.0e})", self.max_error)
    }
}
