//! What a run tells: the last row, averages, drift, speed, who did what, and whether it passed.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::observers::{Ways, diffusion};
use crate::thermo::Row;

/// Averages over the rows of a run, and how the total energy drifts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Averages {
    rows: Vec<Row>,
}

impl Averages {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn mean(&self, of: impl Fn(&Row) -> f64) -> f64 {
        self.rows.iter().map(of).sum::<f64>() / self.rows.len() as f64
    }

    /// The standard error of the mean of a correlated series, by blocking: the series is averaged in blocks of 1, 2, 4 … rows, down to 32
    /// blocks, and the greatest of their standard errors counts. Nothing for fewer than 32 rows.
    ///
    /// # Source
    /// H. Flyvbjerg, H. G. Petersen, J. Chem. Phys. 91 (1989) 461.
    fn error(&self, of: impl Fn(&Row) -> f64) -> Option<f64> {
        let mut blocks: Vec<f64> = self.rows.iter().map(of).collect();
        let mut greatest = None;
        while blocks.len() >= 32 {
            let count = blocks.len() as f64;
            let mean = blocks.iter().sum::<f64>() / count;
            let variance = blocks.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let error = (variance / (count - 1.0)).sqrt();
            greatest = Some(greatest.map_or(error, |greatest: f64| greatest.max(error)));
            blocks = blocks.chunks_exact(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
        }
        greatest
    }

    /// The change of the conserved energy over the run as a fraction of it, by a straight line through all rows. 0 for one row, and for
    /// an energy that does not change, be it that of a lone atom at rest, which has none.
    pub(crate) fn drift(&self) -> f64 {
        let (time, energy) = (self.mean(|row| row.time), self.mean(|row| row.conserved_energy));
        let (above, below) = self.rows.iter().fold((0.0, 0.0), |(above, below), row| {
            let t = row.time - time;
            (above + t * (row.conserved_energy - energy), below + t * t)
        });
        let span = self.rows.last().map_or(0.0, |row| row.time) - self.rows.first().map_or(0.0, |row| row.time);
        let change = if below > 0.0 { above / below * span } else { 0.0 };
        if change == 0.0 { 0.0 } else { change / energy.abs() }
    }
}

/// The outcome of a run.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) start: String,
    pub(crate) network: String,
    pub(crate) ranks: usize,
    pub(crate) steps: usize,
    pub(crate) seconds: f64,
    /// Of the rank that spent most, in tasks and in bringing forces back.
    pub(crate) computing_seconds: f64,
    pub(crate) accumulate_seconds: f64,
    pub(crate) last: Row,
    pub(crate) averages: Averages,
    /// If they were asked for.
    pub(crate) ways: Vec<Ways>,
    pub(crate) tasks_by_rank: Vec<u64>,
    pub(crate) lists_by_rank: Vec<u64>,
    /// The first check that failed.
    pub(crate) failure: Option<String>,
}

impl Report {
    pub(crate) fn steps_per_second(&self) -> f64 {
        if self.steps > 0 { self.steps as f64 / self.seconds } else { 0.0 }
    }

    /// One line for programs.
    pub(crate) fn json(&self) -> Value {
        let mut json = Map::new();
        json.insert("atoms".into(), json!(self.last.atoms));
        json.insert("steps".into(), json!(self.steps));
        self.last.report(&mut json);
        let atoms = self.last.atoms as f64;
        let averages = [
            ("average_temperature", self.averages.mean(|row| row.temperature)),
            ("average_pressure", self.averages.mean(|row| row.pressure)),
            ("average_configurational_energy_per_atom", self.averages.mean(|row| row.configurational_energy() / atoms)),
            ("energy_drift", self.averages.drift()),
            ("momentum", self.last.momentum.iter().map(|p| p * p).sum::<f64>().sqrt()),
            ("seconds", self.seconds),
            ("steps_per_second", self.steps_per_second()),
        ];
        json.extend(averages.map(|(name, value)| (name.to_owned(), json!(value))));
        let errors = [
            ("average_temperature_error", self.averages.error(|row| row.temperature)),
            ("average_pressure_error", self.averages.error(|row| row.pressure)),
            (
                "average_configurational_energy_per_atom_error",
                self.averages.error(|row| row.configurational_energy() / row.atoms as f64),
            ),
            ("mean_square_displacement", self.ways.last().map(|ways| ways.all)),
            ("diffusion", diffusion(&self.ways)),
        ];
        json.extend(errors.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
        json.insert("start".into(), json!(self.start));
        json.insert("ranks".into(), json!(self.ranks));
        json.insert("network".into(), json!(self.network));
        json.insert("computing_seconds".into(), json!(self.computing_seconds));
        json.insert("accumulate_seconds".into(), json!(self.accumulate_seconds));
        json.insert("tasks_by_rank".into(), json!(self.tasks_by_rank));
        json.insert("lists_by_rank".into(), json!(self.lists_by_rank));
        json.insert("passed".into(), json!(self.failure.is_none()));
        Value::Object(json)
    }
}

/// Lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { start, network, ranks, steps, last, .. } = self;
        let atoms = last.atoms as f64;
        writeln!(f, "start        {start}, {} atoms", last.atoms)?;
        writeln!(f, "ranks        {ranks}, network {network}, tasks {:?}, lists {:?}", self.tasks_by_rank, self.lists_by_rank)?;
        writeln!(f, "steps        {steps} in {:.3} s, {:.1} steps/s", self.seconds, self.steps_per_second())?;
        for (name, value) in [
            ("temperature", last.temperature),
            ("pressure", last.pressure),
            ("potential", last.potential_energy / atoms),
            ("tail", last.tail_energy / atoms),
            ("kinetic", last.kinetic_energy / atoms),
            ("total", last.total_energy / atoms),
            ("virial", last.virial / atoms),
        ] {
            let each = if matches!(name, "temperature" | "pressure") { "" } else { "  for each atom" };
            writeln!(f, "{name:12} {value:.10}{each}")?;
        }
        writeln!(f, "drift        {:.2e} of the energy that is conserved", self.averages.drift())?;
        if let Some(error) = self.averages.error(|row| row.temperature) {
            writeln!(f, "averages     temperature {:.6} ± {error:.6}", self.averages.mean(|row| row.temperature))?;
        }
        if let (Some(last), Some(diffusion)) = (self.ways.last(), diffusion(&self.ways)) {
            writeln!(f, "displacement {:.6} mean square, diffusion {diffusion:.6}", last.all)?;
        }
        match &self.failure {
            None => write!(f, "passed"),
            Some(failure) => write!(f, "FAILED: {failure}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energies_that_are_zero_or_no_number() {
        let drift = |energies: [f64; 3]| {
            let mut averages = Averages::default();
            let rows = energies.into_iter().enumerate();
            rows.for_each(|(k, conserved_energy)| averages.add(Row { time: k as f64, conserved_energy, ..Row::default() }));
            averages.drift()
        };
        assert_eq!((drift([0.0; 3]), drift([-4.5; 3])), (0.0, 0.0));
        assert!(!drift([-1.0, 0.0, 1.0]).is_finite() && !drift([1.0, f64::NAN, 1.0]).is_finite());
    }

    #[test]
    fn errors_of_values_that_follow_each_other() {
        let error = |values: &mut dyn Iterator<Item = f64>| {
            let mut averages = Averages::default();
            values.for_each(|temperature| averages.add(Row { temperature, ..Row::default() }));
            averages.error(|row| row.temperature)
        };
        let signs = |k: u32| if k.count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        // A thousand values without order: 1/√1023.
        approx::assert_relative_eq!(error(&mut (0..1024).map(signs)).unwrap(), 1.0 / 1023_f64.sqrt(), max_relative = 1e-12);
        // Each of them sixteen times: no better known.
        let slow = error(&mut (0..16 * 1024).map(|k| signs(k / 16))).unwrap();
        approx::assert_relative_eq!(slow, 1.0 / 1023_f64.sqrt(), max_relative = 1e-12);
        assert_eq!(error(&mut (0..31).map(signs)), None);
    }

    #[test]
    fn drift_of_a_straight_line() {
        let mut averages = Averages::default();
        let row = |time: f64, conserved_energy| Row { time, conserved_energy, ..Row::default() };
        averages.add(row(0.0, -10.0));
        assert_eq!(averages.drift(), 0.0);
        averages.add(row(1.0, -9.0));
        averages.add(row(2.0, -8.0));
        assert!((averages.drift() - 2.0 / 9.0).abs() < 1e-15);
    }
}
