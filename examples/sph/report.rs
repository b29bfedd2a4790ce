//! What a run tells, and whether it passed.

use std::fmt;

use serde_json::json;

use crate::case::{Case, Kind};
use crate::experiments::{self, Comparison, Curve};
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
    /// The flow from start to end.
    pub(crate) history: Vec<Observation>,
    /// T and Z, if the dam broke.
    pub(crate) front: Curve,
    /// Z where the tank ends.
    pub(crate) tank: f64,
    /// Particles from the bottom to the top of the fluid.
    pub(crate) high: usize,
    pub(crate) fall: f64,
}

impl Report {
    /// Collects the front from what was observed.
    pub(crate) fn new<const D: usize>(case: &Case<D>, history: Vec<Observation>) -> Self {
        let front = history.iter().map(|seen| reduced(case, seen.time, seen.front)).collect();
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
            history,
            front,
            // A few spacings early: what meets the wall is no front any more.
            tank: (case.inside[0] as f64 - 5.0) * case.fluid.spacing / case.column_width(),
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

    fn comparison(&self) -> Comparison {
        experiments::compare(&self.front, self.tank)
    }

    /// The largest of a quantity at all times.
    fn largest(&self, of: impl Fn(&Observation) -> f64) -> f64 {
        self.history.iter().map(of).fold(0.0, greater)
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
                let Comparison { ahead, behind, inside, .. } = self.comparison();
                if !inside {
                    failures
                        .push(format!("the front leaves the experiments' envelope: ahead by {ahead:.3}, behind by {behind:.3}"));
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
        if self.history.iter().any(|seen| seen.particles != self.particles) {
            failures.push(format!("mass is not conserved: {} of {} particles are left", self.end().particles, self.particles));
        }
        if self.history.iter().any(|seen| seen.numbers != self.history[0].numbers) {
            failures.push("mass is not conserved: particles were lost and others doubled".into());
        }
        failures
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
            "passed": self.failures().is_empty(),
        });
        if self.kind == Kind::DamBreak {
            let Comparison { points, ahead, behind, .. } = self.comparison();
            json["front"] = self.front.last().map(|point| point.1).into();
            json["front_points"] = points.into();
            if points > 0 {
                (json["front_ahead"], json["front_behind"]) = (ahead.into(), behind.into());
            }
        } else {
            json["error"] = self.error().into();
        }
        if self.kind == Kind::TaylorGreen {
            json["unbalanced_momentum"] = self.largest(|seen| seen.unbalanced).into();
            json["velocity_error"] = self.largest(|seen| seen.velocity_error).into();
            json["velocity_error_now"] = self.largest(|seen| seen.velocity_error_now).into();
            json["mean_pressure"] = self.largest(|seen| seen.mean_pressure.abs()).into();
        }
        json
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
            Kind::DamBreak => {
                let Comparison { points, ahead, behind, .. } = self.comparison();
                let (time, front) = self.front.last().copied().unwrap_or_default();
                writeln!(f, "front      Z = {front:.3} at T = {time:.3}")?;
                if points < 2 {
                    writeln!(f, "           not compared: the run ends before the first measured time after its start")?;
                } else {
                    let (ahead, behind) = (100.0 * ahead, 100.0 * behind);
                    writeln!(
                        f,
                        "           at {points} measured times: up to {ahead:.1} % ahead, {behind:.1} % behind the experiments"
                    )?;
                }
            }
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
        let failures = self.failures();
        write!(f, "{}", if failures.is_empty() { "passed".to_owned() } else { format!("FAILED: {}", failures.join("; ")) })
    }
}
