//! What a run tells, and whether it passed.

use std::fmt;

use serde_json::json;

use crate::case::{Case, Kind};
use crate::comparison::{Course, Finding, Verdict, compare};
use crate::experiments::{Experiment, Gate};
use crate::observation::{Observation, greater};
use crate::output::reduced;

/// Largest error of the pressure at rest over that at the bottom.
const REST_PRESSURE: f64 = 0.03;
/// Highest speed at rest over that of free fall from the surface.
const REST_SPEED: f64 = 0.01;
/// Largest error of the vortices' speed over the first one.
const VORTICES: f64 = 0.03;
/// Largest L2 norm of the error of the vortices' velocity over that of the first one.
const VELOCITY: f64 = 0.03;
/// Largest mean pressure of the vortices over ρU². The exact one is zero.
const MEAN_PRESSURE: f64 = 0.05;
/// Largest error of the speed between plates over the highest steady one, with 40 particles from plate to plate. With fewer it
/// may grow with the square of the spacing, as the error of the kernel's sums does, up to [`PLATES_COARSE`].
const PLATES: f64 = 0.005;
const PLATES_COARSE: f64 = 0.02;
/// Momentum that is not balanced where nothing acts from outside, over the sum of magnitudes.
const ROUNDING: f64 = 1e-11;

/// Growth of the energy of a column over that at first. In a run it falls, but walls that take their pressure from the fluid do a
/// little work on a column when it is released: 6·10⁻⁵ of water at rest in a plane, 10⁻⁴ with 2,000 particles in space.
const ENERGY: [f64; 2] = [1e-4, 5e-4];

/// The outcome of a run.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) kind: Kind,
    pub(crate) dimensions: usize,
    pub(crate) particles: u64,
    pub(crate) walls: usize,
    pub(crate) ranks: usize,
    pub(crate) network: String,
    pub(crate) steps: usize,
    pub(crate) time_step: f64,
    /// Seconds in the steps: without frames and what was looked at.
    pub(crate) seconds: f64,
    /// Of these, of the rank that spent most: in exchanges, and in computing.
    pub(crate) exchange_seconds: f64,
    pub(crate) computing_seconds: f64,
    pub(crate) fingerprint: u64,
    /// Where fluid fills all, the sum of the magnitudes by which its volume was put right, over that of the domain.
    pub(crate) refilled: f64,
    /// The flow from start to end.
    pub(crate) history: Vec<Observation>,
    /// The experiment that was repeated, and what was found.
    pub(crate) experiment: Option<&'static Experiment>,
    pub(crate) verdict: Verdict,
    /// T and Z of the front at the end, if the dam broke.
    pub(crate) front: (f64, f64),
    /// x of the far wall.
    pub(crate) far_wall: f64,
    pub(crate) spacing: f64,
    /// Particles from the bottom to the top of the fluid.
    pub(crate) high: usize,
    pub(crate) fall: f64,
}

impl Report {
    /// Compares what was seen with the experiment that the case repeats, if there is one.
    pub(crate) fn new<const D: usize>(case: &Case<D>, history: Vec<Observation>, course: &Course) -> Self {
        let experiment = Experiment::of(case);
        Report {
            kind: case.kind,
            dimensions: D,
            particles: case.particles(),
            walls: case.walls.len(),
            ranks: 0,
            network: String::new(),
            steps: 0,
            time_step: 0.0,
            seconds: 0.0,
            exchange_seconds: 0.0,
            computing_seconds: 0.0,
            fingerprint: 0,
            refilled: 0.0,
            experiment,
            verdict: experiment.map_or_else(Verdict::default, |experiment| compare(case, experiment, course)),
            front: history.last().map_or((0.0, 0.0), |seen| reduced(case, seen.time, seen.front)),
            history,
            far_wall: case.length(0),
            spacing: case.fluid.spacing,
            high: case.counts[1],
            fall: (2.0 * crate::case::GRAVITY * case.column_height()).sqrt(),
        }
    }

    fn end(&self) -> &Observation {
        self.history.last().expect("a run is looked at when it begins")
    }

    /// The largest error after the start.
    fn error(&self) -> f64 {
        self.largest(|seen| seen.error)
    }

    /// The largest of a quantity at all times.
    fn largest(&self, of: impl Fn(&Observation) -> f64) -> f64 {
        self.history.iter().map(of).fold(0.0, greater)
    }

    fn column(&self) -> bool {
        matches!(self.kind, Kind::DamBreak | Kind::Hydrostatic)
    }

    /// The largest growth of the energy above what it was at an earlier time, over that at first.
    fn energy_growth(&self) -> f64 {
        let all = || self.history.iter().map(|seen| seen.energy.iter().sum::<f64>());
        let first = all().next().unwrap_or(0.0);
        let mut least = first;
        let mut growth = 0.0;
        for energy in all() {
            growth = greater(growth, energy - least);
            least = least.min(energy);
        }
        growth / first
    }

    /// What [`energy_growth`](Self::energy_growth) may be. Where a front meets a wall, the energy of a particle that is thrown back is for a
    /// moment that of the wall, which is in no sum: that of one that fell from the column's height. The column's is half of all of its particles'.
    fn most_growth(&self) -> f64 {
        let thrown = if self.kind == Kind::DamBreak { 2.0 / self.particles as f64 } else { 0.0 };
        ENERGY[self.dimensions - 2] + thrown
    }

    /// When the front was first seen at the far wall, in seconds.
    fn arrival(&self) -> Option<f64> {
        self.history.iter().find(|seen| seen.front >= self.far_wall - self.spacing).map(|seen| seen.time)
    }

    pub(crate) fn particle_steps_per_second(&self) -> f64 {
        self.particles as f64 * self.steps as f64 / self.seconds
    }

    /// What does not hold, in words; empty if the run passed.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        let mut limit = |what: &str, value: f64, most: f64| {
            if value > most || value.is_nan() {
                failures.push(format!("{what} is {value:.3e}, above {most}"));
            }
        };
        match self.kind {
            Kind::DamBreak => {
                for Finding { what, deviation, limit, .. } in self.verdict.findings.iter().filter(|finding| finding.failed()) {
                    let limit = limit.unwrap_or_default();
                    failures.push(format!("{what}: {:.1} % is more than {:.0} %", 100.0 * deviation, 100.0 * limit));
                }
            }
            Kind::Hydrostatic => {
                limit("the error of the pressure", self.error(), REST_PRESSURE);
                limit("the speed at rest", self.largest(|seen| seen.fastest) / self.fall, REST_SPEED);
            }
            Kind::TaylorGreen => {
                limit("the error of the decay", self.error(), VORTICES);
                limit("the error of the velocity", self.largest(|seen| seen.velocity_error), VELOCITY);
                limit("the mean pressure", self.largest(|seen| seen.mean_pressure.abs()), MEAN_PRESSURE);
                limit("the unbalanced momentum", self.largest(|seen| seen.unbalanced), ROUNDING);
            }
            Kind::Poiseuille => {
                let coarse = (40.0 / self.high as f64).powi(2).max(1.0);
                limit("the error of the speed", self.error(), (PLATES * coarse).min(PLATES_COARSE));
            }
        }
        if self.column() {
            let growth = self.energy_growth();
            if growth > self.most_growth() || growth.is_nan() {
                failures.push(format!("the energy grows by {growth:.3e} of that at first"));
            }
        }
        if self.history.iter().any(|seen| seen.particles != self.particles) {
            failures.push(format!("mass is not conserved: {} of {} particles are left", self.end().particles, self.particles));
        }
        if self.history.iter().any(|seen| seen.numbers != self.history[0].numbers) {
            failures.push("mass is not conserved: particles were lost and others doubled".into());
        }
        failures
    }

    /// Whether the run passed, or nothing if there is no reference to compare it with.
    fn passed(&self) -> Option<bool> {
        let sound = self.failures().is_empty();
        if sound && self.kind == Kind::DamBreak && !self.verdict.whole { None } else { Some(sound) }
    }

    /// One line for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let end = self.end();
        let mut json = json!({
            "case": self.name(),
            "dimensions": self.dimensions,
            "particles": self.particles,
            "wall_particles": self.walls,
            "ranks": self.ranks,
            "network": self.network,
            "steps": self.steps,
            "time_step": self.time_step,
            "end_time": end.time,
            "seconds": self.seconds,
            "exchange_seconds": self.exchange_seconds,
            "computing_seconds": self.computing_seconds,
            "particle_steps_per_second": self.particle_steps_per_second(),
            "fastest": end.fastest,
            "fingerprint": format!("{:016x}", self.fingerprint),
            "passed": self.passed(),
        });
        if self.kind == Kind::DamBreak {
            json["front"] = self.front.1.into();
            json["arrival"] = self.arrival().into();
            json["experiment"] = self.experiment.map(|experiment| experiment.name).into();
            json["gate_assumed"] = self.experiment.map(|experiment| matches!(experiment.gate, Gate::Assumed(_))).into();
            let finding = |Finding { what, deviation, limit, shift, .. }: &Finding| json!({ "what": what, "deviation": deviation, "limit": limit, "shift": shift });
            json["findings"] = self.verdict.findings.iter().map(finding).collect();
        } else {
            json["error"] = self.error().into();
        }
        if self.column() {
            let [kinetic, potential, compression] = end.energy;
            json["energy"] = json!({ "kinetic": kinetic, "potential": potential, "compression": compression });
            json["energy_first"] = self.history[0].energy.iter().sum::<f64>().into();
            json["energy_growth"] = self.energy_growth().into();
        }
        if self.kind == Kind::TaylorGreen {
            json["unbalanced_momentum"] = self.largest(|seen| seen.unbalanced).into();
            json["velocity_error"] = self.largest(|seen| seen.velocity_error).into();
            json["velocity_error_now"] = self.largest(|seen| seen.velocity_error_now).into();
            json["mean_pressure"] = self.largest(|seen| seen.mean_pressure.abs()).into();
            json["volume_correction"] = self.refilled.into();
        }
        json
    }

    /// What was found of a dam break, for people.
    fn write_dam(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, front) = self.front;
        writeln!(f, "front      Z = {front:.3} at T = {time:.3}")?;
        if let Some(arrival) = self.arrival() {
            let apart = self.history.get(1).map_or(0.0, |second| second.time);
            writeln!(f, "           at the far wall {arrival:.3} s after the start, seen each {apart:.4} s")?;
        }
        let Some(experiment) = self.experiment else {
            return writeln!(f, "experiment none of this shape, gate, friction, viscosity and speed of sound");
        };
        writeln!(f, "experiment {}", experiment.name)?;
        if let Gate::Assumed(_) = experiment.gate {
            writeln!(f, "           the speed of its gate is assumed: it is not published")?;
        }
        if let Some(doubt) = experiment.doubt {
            writeln!(f, "           shown, not judged: {doubt}")?;
        }
        if experiment.doubt.is_none() && !self.verdict.whole {
            writeln!(f, "           not judged yet: the run ends before most of what was measured")?;
        }
        for finding in &self.verdict.findings {
            match finding.signed {
                true => write!(f, "           {:+6.1} %", 100.0 * finding.deviation)?,
                false => write!(f, "           {:6.1} %", 100.0 * finding.deviation)?,
            }
            match finding.limit {
                Some(limit) => write!(f, " of {:2.0} %", 100.0 * limit)?,
                None => write!(f, "        ")?,
            }
            write!(f, "  {}", finding.what)?;
            if let Some(shift) = finding.shift {
                write!(f, " (after a shift in time by {shift:+.2})")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::DamBreak => "dam_break",
            Kind::Hydrostatic => "hydrostatic",
            Kind::TaylorGreen => "taylor_green",
            Kind::Poiseuille => "poiseuille",
        }
    }
}

/// Lines for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.end();
        writeln!(
            f,
            "case       {} in {} dimensions, {} particles, {} of walls",
            self.name(),
            self.dimensions,
            self.particles,
            self.walls
        )?;
        writeln!(f, "ranks      {}, network {}", self.ranks, self.network)?;
        writeln!(f, "time       {:.6} s in {} steps of {:.3e} s", end.time, self.steps, self.time_step)?;
        let speed = self.particle_steps_per_second() / 1e6;
        writeln!(f, "speed      {:.3} s, {speed:.2} million particle-steps/s", self.seconds)?;
        match self.kind {
            Kind::DamBreak => self.write_dam(f)?,
            Kind::Hydrostatic => {
                writeln!(f, "pressure   error {:.2e} of that at the bottom, speed {:.2e} m/s", self.error(), end.fastest)?
            }
            Kind::TaylorGreen => {
                writeln!(f, "decay      error {:.2e} of the first speed", self.error())?;
                writeln!(f, "velocity   error {:.2e} of the first one", self.largest(|seen| seen.velocity_error))?;
                writeln!(f, "pressure   mean {:.2e} of ρU²", self.largest(|seen| seen.mean_pressure.abs()))?;
                writeln!(f, "momentum   {:.1e} unbalanced", self.largest(|seen| seen.unbalanced))?;
            }
            Kind::Poiseuille => writeln!(f, "speed      error {:.2e} of the highest", self.error())?,
        }
        if self.column() {
            let [kinetic, potential, compression] = end.energy;
            writeln!(f, "energy     {kinetic:.4e} kinetic, {potential:.4e} potential, {compression:.4e} of compression")?;
            writeln!(f, "           grew by at most {:.1e} of that at first", self.energy_growth())?;
        }
        match self.passed() {
            Some(true) => write!(f, "passed"),
            Some(false) => write!(f, "FAILED: {}", self.failures().join("; ")),
            None => write!(f, "neither passed nor failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Column, Water};

    fn report(extent: [f64; 2], tank: f64, energies: &[f64]) -> Report {
        let column = Column { extent, tank: [tank, 3.0], gate: None, obstacles: Vec::new() };
        let case = Case::column(Kind::DamBreak, 0.1, column, Water::default());
        let history = energies.iter().map(|&energy| Observation {
            time: 0.0,
            particles: case.particles(),
            numbers: 1,
            front: case.column_width(),
            fastest: 0.0,
            square_speed: 0.0,
            unbalanced: 0.0,
            error: 0.0,
            velocity_error: 0.0,
            velocity_error_now: 0.0,
            energy: [0.0, energy, 0.0],
            mean_pressure: 0.0,
        });
        Report::new(&case, history.collect(), &Course::default())
    }

    #[test]
    fn only_what_was_measured_is_judged() {
        // Nothing to compare yet, but all that there is holds.
        let early = report([1.0, 2.0], 8.0, &[1.0, 0.9]);
        assert!(early.passed().is_none() && early.experiment.is_some());
        assert!(early.to_string().contains("not judged yet"), "{early}");
        let other = report([2.0, 1.0], 8.0, &[1.0, 0.9]);
        assert!(other.passed().is_none() && other.experiment.is_none());
        assert!(other.to_string().contains("none of this shape") && other.to_string().ends_with("neither passed nor failed"));
        assert_eq!(other.json()["passed"], serde_json::Value::Null);
    }

    #[test]
    fn findings_decide() {
        let mut report = report([1.0, 2.0], 8.0, &[1.0, 0.9]);
        let finding = |deviation, limit| {
            let (what, shift) = ("front".into(), Some(0.2));
            Finding { what, deviation, signed: true, limit, shift, record: None }
        };
        report.verdict.findings = vec![finding(0.9, None), finding(-0.059, Some(0.06))];
        assert_eq!(report.passed(), None);
        report.verdict.whole = true;
        assert_eq!(report.passed(), Some(true));
        report.verdict.findings.push(finding(-0.061, Some(0.06)));
        assert_eq!((report.passed(), report.failures()), (Some(false), vec!["front: -6.1 % is more than 6 %".to_owned()]));
        report.verdict = Verdict { findings: vec![finding(f64::NAN, Some(0.06))], whole: false };
        assert_eq!(report.passed(), Some(false));
    }

    #[test]
    fn energy_that_grows_fails() {
        // Against the least before, not against the first.
        let growing = report([2.0, 1.0], 8.0, &[1.0, 0.8, 0.82]);
        assert_eq!(growing.passed(), Some(false));
        approx::assert_relative_eq!(growing.energy_growth(), 0.02, max_relative = 1e-12);
        // Two hundred particles: one is thrown back.
        assert_eq!(report([2.0, 1.0], 8.0, &[1.0, 0.8, 0.81]).passed(), None);
        assert_eq!(report([2.0, 1.0], 8.0, &[1.0, f64::NAN]).passed(), Some(false));
    }
}
