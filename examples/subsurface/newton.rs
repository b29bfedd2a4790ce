//! One time step: Newton's method, damped.
//!
//! **When it has converged.** What the cells' equations fail by, Σ|F|, is at most `tolerance` times all water that the step moves
//! (into and out of storage, over the edges, by wells). So the tolerance bounds the relative error of the water balance in every
//! step. Where the ground is at rest and no water moves, Σ|F| is at most the rounding errors of its terms.
//!
//! **Damping.** A Newton step is halved until Σ|F| falls (Armijo's rule with the usual 10⁻⁴). If [`HALVINGS`] are not enough, the
//! whole step is taken all the same, [`MOST_RISES`] times at most: F has kinks where a cell leaves saturation and where the
//! upstream side of a face changes. There the linear equations may belong to the wrong side of the kink, and no fraction of the step
//! makes Σ|F| fall; the next step starts on the right side. (So does the watchdog technique: R. M. Chamberlain, M. J. D. Powell,
//! C. Lemarechal, H. C. Pedersen, Math. Programming Study 16, 1982. It returns to the best point if that does not pay; here the
//! time step is repeated.) A shorter time step would not help: saturated ground without a specific storage has no storage at
//! all. If that is not enough, or [`MOST_ITERATIONS`] or the Krylov solver fail, the time step has
//! failed and is tried again shorter.
//!
//! **How exactly the linear equations are solved.** To a fixed fraction of Σ|F| where they are nonlinear, so that each iteration
//! gains four digits at most; where they are linear, to what ends the step: one iteration does it.

use global_arrays::prelude::*;
use serde::{Deserialize, Serialize};

use crate::field::Team;
use crate::krylov::Krylov;
use crate::matrix::SevenPoint;
use crate::problem::Problem;
use crate::system::{Sums, System};

const MOST_ITERATIONS: usize = 20;
const HALVINGS: usize = 10;
/// Newton steps of a time step after which Σ|F| may be larger than before.
const MOST_RISES: usize = 4;
/// Armijo's c₁.
const DECREASE: f64 = 1e-4;
/// Fraction of Σ|F| to which the linear equations of a nonlinear step are solved.
const FORCING: f64 = 1e-4;
/// Of the tolerance: what the linear equations of a linear step leave.
const MARGIN: f64 = 0.1;

/// A medium, a head, and the four numbers of a state.
const NUMBERS_OF_MEDIUM: usize = 10;

/// What the solver did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Work {
    pub(crate) newton_iterations: usize,
    pub(crate) krylov_iterations: usize,
    /// Newton steps that were shortened.
    pub(crate) damped: usize,
}

/// The solver of time steps, with its memory.
#[derive(Debug)]
pub(crate) struct Newton {
    pub(crate) system: System,
    pub(crate) work: Work,
    linear: bool,
    pub(crate) tolerance: f64,
    jacobian: SevenPoint,
    krylov: Krylov,
    residual: Vec<f64>,
    correction: Vec<f64>,
    trial: Vec<f64>,
}

impl Newton {
    pub(crate) fn new(team: &Team<'_>, problem: &dyn Problem, tolerance: f64) -> Newton {
        Newton {
            system: System::new(problem, &team.layout),
            work: Work::default(),
            linear: problem.linear(),
            tolerance,
            jacobian: SevenPoint::zeros(&team.layout),
            krylov: Krylov::new(team),
            residual: team.zeros(),
            correction: team.zeros(),
            trial: team.zeros(),
        }
    }

    /// Takes `head` over a step of `dt` seconds. Returns the sums over the grid and the number of iterations; nothing if it did
    /// not converge, and then `head` is what it was. Collective.
    pub(crate) fn step(&mut self, team: &mut Team<'_>, head: &mut Vec<f64>, dt: f64) -> Result<Option<(Sums, usize)>, Error> {
        let old = head.clone();
        self.system.begin(head);
        team.work(self.system.flops_of_media(), NUMBERS_OF_MEDIUM);
        team.exchange(head)?;
        let mut sums = self.evaluate(team, head, dt)?;
        let mut rises = 0;
        for iterations in 0..=MOST_ITERATIONS {
            if sums.hold(self.tolerance) {
                return Ok(Some((sums, iterations)));
            }
            if iterations == MOST_ITERATIONS || !sums.residual.is_finite() {
                break;
            }
            self.work.newton_iterations += 1;
            let Some(next) = self.iterate(team, head, dt, sums, &mut rises)? else { break };
            sums = next;
        }
        *head = old;
        Ok(None)
    }

    /// One damped Newton iteration; nothing if it does not reduce Σ|F| and that has risen often enough.
    fn iterate(
        &mut self,
        team: &mut Team<'_>,
        head: &mut Vec<f64>,
        dt: f64,
        sums: Sums,
        rises: &mut usize,
    ) -> Result<Option<Sums>, Error> {
        let enough = MARGIN * self.tolerance * sums.scale(self.tolerance);
        self.system.jacobian(head, dt, &mut self.jacobian);
        // For each of three faces a flow with its slopes, added to four entries. Seven bands are set to zero, then changed.
        team.work(2.0 + 3.0 * 12.0, 20);
        let (krylov, a, b, x) = (&mut self.krylov, &self.jacobian, &mut self.residual, &mut self.correction);
        let solved = if self.linear {
            krylov.conjugate_gradients(team, a, b, x, enough)?
        } else {
            krylov.bicgstab(team, a, b, x, enough.max(FORCING * sums.residual))?
        };
        self.work.krylov_iterations += solved.iterations;
        if !solved.converged {
            return Ok(None);
        }
        let (mut fraction, mut whole) = (1.0, None);
        for halvings in 0..=HALVINGS {
            let next = self.evaluate_at(team, head, fraction, dt)?;
            let ended = next.hold(self.tolerance);
            if ended || next.residual <= (1.0 - DECREASE * fraction) * sums.residual {
                self.work.damped += usize::from(halvings > 0);
                std::mem::swap(head, &mut self.trial);
                return Ok(Some(next));
            }
            whole.get_or_insert(next);
            fraction *= 0.5;
        }
        if *rises == MOST_RISES || !whole.is_some_and(|whole| whole.residual.is_finite()) {
            return Ok(None);
        }
        *rises += 1;
        // Once more, for the trial and its F.
        let next = self.evaluate_at(team, head, 1.0, dt)?;
        std::mem::swap(head, &mut self.trial);
        Ok(Some(next))
    }

    /// F at `head` less a fraction of the correction, which becomes the trial.
    fn evaluate_at(&mut self, team: &mut Team<'_>, head: &[f64], fraction: f64, dt: f64) -> Result<Sums, Error> {
        let mut trial = std::mem::take(&mut self.trial);
        for row in team.layout.rows() {
            for n in row {
                trial[n] = head[n] - fraction * self.correction[n];
            }
        }
        team.work(2.0, 3);
        team.exchange(&mut trial)?;
        let sums = self.evaluate(team, &trial, dt);
        self.trial = trial;
        sums
    }

    /// F at `head`, and its sums over the grid.
    fn evaluate(&mut self, team: &Team<'_>, head: &[f64], dt: f64) -> Result<Sums, Error> {
        let mine = self.system.residual(head, dt, &mut self.residual);
        // Beside the media: 15 for the storage, 15 for each of three faces, one for each norm. A residual and its terms, each
        // written three times, volumes, contents, sources, four numbers of faces.
        team.work(self.system.flops_of_media() + 62.0, NUMBERS_OF_MEDIUM + 14);
        Ok(Sums::from_array(team.sum(mine.to_array())?))
    }
}
