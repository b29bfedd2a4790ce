//! Checkpoints: all that a run needs to go on, on any number of ranks, with the same bits.
//!
//! The particles are an array; the step and all that was seen so far are a text.

use std::path::Path;

use global_arrays::file::Checkpoint;
use global_arrays::prelude::*;
use program::checkpoints;
use serde::{Deserialize, Serialize};

use crate::case::{Case, share};
use crate::cli::Arguments;
use crate::comparison::Course;
use crate::observation::Observation;
use crate::output::gather;
use crate::particle::Moving;

const PARTICLES: &str = "particles";

/// The text of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// What flows, in all that tells it from another flow.
    flow: String,
    /// What [`Course::readings`] are of.
    instruments: Vec<String>,
    pub(crate) steps: usize,
    /// In seconds.
    pub(crate) time_step: f64,
    /// Steps in all that were planned.
    pub(crate) planned: usize,
    pub(crate) refilled: f64,
    pub(crate) history: Vec<Observation>,
    pub(crate) course: Course,
}

/// A flow in words.
pub(crate) fn flow<const D: usize>(case: &Case<D>) -> String {
    let Case { kind, fluid, counts, inside, gate, obstacles, .. } = case;
    format!("{kind:?} {counts:?} in {inside:?}, gate {gate:?}, obstacles {obstacles:?}, {fluid:?}")
}

/// Restores the checkpoint in a folder, and an equal share of its particles for this rank. It must be of this flow, in words, with this many
/// particles, and of these instruments. Collective.
///
/// # Errors
/// One line that names the folder: no checkpoint can be read there, or it is one of something else.
pub(crate) fn restore<const D: usize, P: Moving<D>>(
    job: &Job,
    folder: &Path,
    (flow, count): (String, u64),
    instruments: &[String],
) -> Result<(Saved, Vec<P>), Error> {
    let failed = |what: &str| Err(Error::other(format!("{}: {what}", folder.display())));
    let (saved, restored) = checkpoints::restore::<Saved>(job, folder)?;
    if saved.flow != flow {
        return failed("a checkpoint of another flow, geometry, spacing or number of particles");
    }
    if saved.instruments != instruments {
        return failed(&format!("a checkpoint of a run that measured {:?}, not {instruments:?}", saved.instruments));
    }
    let mut array = GlobalArray2::<f64>::builder(job, [count as usize, P::WORDS]).name("restored particles").create()?;
    restored.read(PARTICLES, array.at_mut(..))?;
    let share = share(count, job.rank(), job.size());
    let rows = array.get(s![share.start as usize..share.end as usize, ..])?;
    // No rank frees the array before all have read.
    job.barrier()?;
    Ok((saved, rows.rows().into_iter().map(|row| P::read(&row.to_vec())).collect()))
}

/// The state of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State<'a, P> {
    /// This rank's particles.
    pub(crate) own: &'a [P],
    pub(crate) steps: usize,
    /// In seconds; the shock tube's has no unit.
    pub(crate) time_step: f64,
    /// As [`Simulation::refilled`](crate::simulation::Simulation::refilled).
    pub(crate) refilled: f64,
}

/// Writes checkpoints to one folder, after every so many steps and at the end.
#[derive(Debug)]
pub(crate) struct Checkpoints<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) flow: String,
    pub(crate) instruments: Vec<String>,
    pub(crate) every: usize,
}

impl<'a> Checkpoints<'a> {
    /// Those of a flow, in words, that the command line asks for. Collective.
    ///
    /// # Errors
    /// A checkpoint of another program in the folder.
    pub(crate) fn new(
        job: &Job,
        arguments: &'a Arguments,
        flow: String,
        instruments: Vec<String>,
    ) -> Result<Option<Self>, Error> {
        let Some(folder) = arguments.checkpoint.as_deref() else { return Ok(None) };
        checkpoints::find::<Saved>(job, folder)?;
        let every = arguments.checkpoint_every.unwrap_or(usize::MAX);
        Ok(Some(Checkpoints { folder, flow, instruments, every }))
    }

    /// Writes a checkpoint if one is due. History and course are those of all ranks. Collective.
    ///
    /// # Errors
    /// One line that names the folder; the checkpoint before stays.
    pub(crate) fn write<const D: usize, P: Moving<D>>(
        &self,
        job: &Job,
        state: State<'_, P>,
        planned: usize,
        history: &[Observation],
        course: &Course,
    ) -> Result<(), Error> {
        let State { own, steps, time_step, refilled } = state;
        if steps == 0 || !(steps.is_multiple_of(self.every) || steps == planned) {
            return Ok(());
        }
        let particles = gather(job, own, P::WORDS, P::write)?;
        let text = (job.rank() == 0).then(|| Saved {
            flow: self.flow.clone(),
            instruments: self.instruments.clone(),
            steps,
            time_step,
            planned,
            refilled,
            history: history.to_vec(),
            course: course.clone(),
        });
        checkpoints::with_run(Checkpoint::new(self.folder).array(PARTICLES, &particles), text.as_ref())?.save()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Mutex;

    use clap::Parser;

    use super::*;
    use crate::case::{Column, Kind, Water};
    use crate::observation::{fingerprint, observe};
    use crate::particle::Particle;
    use crate::simulation::Simulation;

    /// Steps of a run, and the step of its checkpoint.
    const STEPS: usize = 130;
    const SAVED: usize = 65;

    fn case() -> Case<2> {
        let column = Column { gate: Some(2.0), ..Column::plain([0.5, 1.0], [2.0, 1.5]) };
        Case::column(Kind::DamBreak, 0.05, column, Water::default())
    }

    /// A folder of a test's own, removed when it is over.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new(name: &str) -> Self {
            let folder = Folder(std::env::temp_dir().join(format!("sph-{name}-{}", std::process::id())));
            fs::create_dir_all(&folder.0).unwrap();
            folder
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Runs to the end, with checkpoints or from one, and returns the fingerprint.
    fn run(ranks: usize, folder: Option<&Path>, resumed: bool) -> u64 {
        let (case, seen) = (case(), Mutex::new(0));
        let body = |job: &Job| {
            let mut simulation = match folder.filter(|_| resumed) {
                Some(folder) => {
                    let (saved, particles) = restore(job, folder, (flow(&case), case.particles()), &[])?;
                    Simulation::resume(job, &case, &saved, particles)?
                }
                None => Simulation::new(job, &case, case.fluid.time_step())?,
            };
            let new = |folder| Checkpoints { folder, flow: flow(&case), instruments: Vec::new(), every: SAVED };
            let checkpoints = folder.filter(|_| !resumed).map(new);
            while simulation.steps < STEPS {
                simulation.step()?;
                if let Some(checkpoints) = checkpoints.as_ref().filter(|_| simulation.steps <= SAVED) {
                    let seen = observe(job, &simulation)?;
                    let mut course = Course::default();
                    course.add(seen.time, seen.front, Vec::new());
                    checkpoints.write(job, simulation.state(), STEPS, &[seen], &course)?;
                }
            }
            *seen.lock().unwrap() = fingerprint(job, simulation.own())?;
            Ok::<(), Error>(())
        };
        Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        seen.into_inner().unwrap()
    }

    #[test]
    fn a_run_that_goes_on_has_the_same_bits_on_any_number_of_ranks() {
        let folder = Folder::new("checkpoint");
        let saved = folder.0.join("state");
        let whole = run(1, None, false);
        assert_eq!(run(2, Some(&saved), false), whole);
        // A second one in the same folder takes the place of the first.
        assert_eq!(run(3, Some(&saved), false), whole);
        assert_eq!(fs::read_dir(&saved).unwrap().count(), 1);
        for ranks in [1, 2, 4, 7] {
            assert_eq!(run(ranks, Some(&saved), true), whole, "{ranks} ranks");
        }
        let refused = |folder: &Path, case: &Case<2>, names: &[String]| {
            let of = || (flow(case), case.particles());
            let body = |job: &Job| restore::<2, Particle<2>>(job, folder, of(), names).map(drop);
            Launch::new().ranks(2).network("threads").run(body).unwrap_err().to_string()
        };
        let other = Case::taylor_green(0.05, 1.0, 100.0);
        assert!(refused(&saved, &other, &[]).contains("another flow"));
        assert!(refused(&saved, &case(), &["level_1".to_owned()]).contains("level_1"));
        assert!(refused(&folder.0.join("none"), &case(), &[]).contains("there is no checkpoint"));
        // One of another program is neither read nor replaced.
        let line = format!("sph --checkpoint {}", saved.display());
        let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
        let body = |job: &Job| {
            let u = GlobalArray1::<f64>::zeros(job, [5])?;
            Checkpoint::new(&saved).array("u", &u).value("run", &"name = 3".to_owned()).save()?;
            Checkpoints::new(job, &arguments, flow(&case()), Vec::new()).map(drop)
        };
        let error = Launch::new().ranks(2).network("threads").run(body).unwrap_err().to_string();
        assert!(error.contains("another program"), "{error}");
        assert!(refused(&saved, &case(), &[]).contains("another program"));
    }
}
