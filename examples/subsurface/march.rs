//! The march through time, with steps as long as the solution allows.
//!
//! * A step that Newton's method does not solve is tried again with a quarter of its length; below the shortest length the march
//!   ends with an error.
//! * Where an accuracy is asked for, the step follows backward Euler's error. With u the extrapolation from the two heads
//!   before, the error of a step is max|ψ − u|·Δt/(Δt + Δt_before), to leading order ½·Δt²·|ψ''|. Steps are tried again above
//!   twice the accuracy, and the next is scaled by the root of what is left (E. Hairer, S. Nørsett, G. Wanner, *Solving Ordinary
//!   Differential Equations I*, II.4).
//! * A step grows to at most twice the one before, and not at all if Newton's method was slow.
//! * Steps end exactly at the times that a case asks for.

use global_arrays::prelude::*;
use serde::{Deserialize, Serialize};

use crate::field::Team;
use crate::newton::{Newton, Work};
use crate::problem::Problem;

/// A step that took more Newton iterations than this is not followed by a longer one.
const SLOW: usize = 8;
const CUT: f64 = 0.25;
const GROWTH: f64 = 2.0;
/// Aims below the accuracy, so that few steps are refused.
const SAFETY: f64 = 0.9;

/// How time is cut.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// Length of the first step [s].
    pub(crate) first_step: f64,
    /// Shorter steps are a failure [s].
    pub(crate) shortest_step: f64,
    /// Longer steps are not taken [s].
    pub(crate) longest_step: f64,
    /// Largest error of a step [m], if it is to follow the transient; else only Newton's method bounds it.
    pub(crate) accuracy: Option<f64>,
    /// Ascending times at which a step ends [s]; the last is the end.
    pub(crate) times: Vec<f64>,
}

/// What the march did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marched {
    pub(crate) steps: usize,
    pub(crate) refused: usize,
    /// Largest error of the water balance in a step, as a fraction of the water moved in it.
    pub(crate) balance: f64,
    /// Error of the water balance of the whole run [m³].
    pub(crate) balance_volume: f64,
    /// What flowed in over the edges and from wells, less what flowed out [m³].
    pub(crate) inflow_volume: f64,
    /// All water that came and went over the edges, from wells and out of storage [m³].
    pub(crate) moved: f64,
}

impl Marched {
    /// Error of the water balance of the whole run, as a fraction of all water that moved; zero where none did.
    pub(crate) fn balance_total(&self) -> f64 {
        self.balance_volume.abs() / self.moved.max(f64::MIN_POSITIVE)
    }
}

/// Where a march stands: all that the next step depends on.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) time: f64,
    /// Pressure head of this rank's cells, as a bordered array [m].
    pub(crate) head: Vec<f64>,
    /// The head before the last step, and the length of that step [s]; nothing before the first.
    pub(crate) earlier: Option<(Vec<f64>, f64)>,
    /// Length that is planned for the next step [s].
    pub(crate) next_step: f64,
    pub(crate) marched: Marched,
}

impl Progress {
    /// Time zero of a problem.
    ///
    /// # Errors
    /// A cell whose initial head is no number.
    pub(crate) fn start(team: &Team<'_>, problem: &dyn Problem, schedule: &Schedule) -> Result<Progress, Error> {
        let mut head = team.zeros();
        for (cell, n) in team.layout.cells() {
            head[n] = problem.initial_head(cell);
            if !head[n].is_finite() {
                return Err(Error::other(format!(
                    "the initial pressure head of cell {cell:?} (up, across, across) is {}",
                    head[n]
                )));
            }
        }
        let marched = Marched::default();
        Ok(Progress { time: 0.0, head, earlier: None, next_step: schedule.first_step.min(schedule.longest_step), marched })
    }
}

/// What is called after every step that was kept, with the work so far and the head of all cells.
pub(crate) type Seen<'a> = dyn FnMut(&Progress, Work, &GlobalArray<f64, Ix3>) -> Result<(), Error> + 'a;

/// Marches from where `progress` stands to the end. Collective.
///
/// # Errors
/// A time step below the shortest; what `seen` returns; what the array's operations give.
pub(crate) fn march(
    team: &mut Team<'_>,
    newton: &mut Newton,
    problem: &dyn Problem,
    schedule: &Schedule,
    progress: &mut Progress,
    seen: &mut Seen<'_>,
) -> Result<(), Error> {
    for &until in &schedule.times {
        if progress.time > 0.0 && progress.time < until {
            newton.system.force(problem, progress.time);
        }
        while progress.time < until {
            if take_step(team, newton, schedule, progress, until)? {
                seen(progress, newton.work, team.publish(&progress.head)?)?;
            }
        }
    }
    Ok(())
}

/// Tries a step that ends at `until` or before; false if it has to be tried again shorter. Collective.
fn take_step(
    team: &mut Team<'_>,
    newton: &mut Newton,
    schedule: &Schedule,
    progress: &mut Progress,
    until: f64,
) -> Result<bool, Error> {
    let Progress { time, head, earlier, next_step, marched } = progress;
    let left = until - *time;
    // Two like steps rather than a whole and a sliver.
    let dt = if *next_step >= left { left } else { next_step.min(0.5 * left) };
    if dt < left && *time + dt == *time {
        return Err(Error::other(format!("a time step of {dt:e} s is too short to be seen at t = {time:e} s")));
    }
    let before = head.clone();
    let Some((sums, iterations)) = newton.step(team, head, dt)? else {
        marched.refused += 1;
        *next_step = CUT * dt;
        if *next_step < schedule.shortest_step {
            return Err(Error::other(format!(
                "the time step fell below {:e} s at t = {time:e} s: Newton's method did not converge with a step of {dt:e} s. \
                 (It cannot where closed ground fills with water, where a well takes more than flows to it, or where a pressure head \
                 is above 1e6 m.)",
                schedule.shortest_step
            )));
        }
        return Ok(false);
    };
    let mut factor = GROWTH;
    if let (Some(accuracy), Some((earlier, dt_before))) = (schedule.accuracy, &*earlier) {
        let layout = &team.layout;
        let change = |n: usize| head[n] - before[n] - (before[n] - earlier[n]) * (dt / dt_before);
        let mine = layout.rows().flatten().map(|n| change(n).abs()).fold(0.0, f64::max);
        team.work(6.0, 3);
        let error = team.largest(mine)? * dt / (dt + dt_before);
        factor = (SAFETY * (accuracy / error).sqrt()).clamp(CUT, GROWTH);
        if error > 2.0 * accuracy && CUT * dt >= schedule.shortest_step {
            marched.refused += 1;
            *next_step = factor * dt;
            *head = before;
            return Ok(false);
        }
    }
    if iterations > SLOW {
        factor = factor.min(1.0);
    }
    // A step shortened to end at a time says nothing against the length that was planned.
    *next_step = if dt < *next_step && factor >= 1.0 { next_step.max(factor * dt) } else { factor * dt };
    *next_step = next_step.min(schedule.longest_step);
    *time = if dt == left { until } else { *time + dt };
    let error = sums.storage_gain - sums.inflow;
    marched.steps += 1;
    marched.balance = ops::max_nan(marched.balance, sums.balance(newton.tolerance));
    marched.balance_volume += error * dt;
    marched.inflow_volume += sums.inflow * dt;
    marched.moved += sums.throughput * dt;
    *earlier = Some((before, dt));
    Ok(true)
}
