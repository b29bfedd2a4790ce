//! Checkpoints: all that a run needs to go on, on any number of ranks, with the same bits.
//!
//! The text has the step and all that was seen so far; the particles are in an array beside it, which all ranks write together.

use std::path::Path;

use global_arrays::prelude::*;
use program::checkpoints::{self, Files};
use serde::{Deserialize, Serialize};

use crate::case::{Case, share};
use crate::comparison::Course;
use crate::observation::Observation;
use crate::output::Gathered;
use crate::particle::Moving;

/// The text of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// What flows, in all that tells it from another flow.
    flow: String,
    /// What [`Course::readings`] are of.
    instruments: Vec<String>,
    /// Name of the file of particles, beside this one.
    particles: String,
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

impl Saved {
    /// Reads the text of a checkpoint of a flow, in words, that is measured by these instruments.
    ///
    /// # Errors
    /// One line that names the file: it cannot be read, it is no checkpoint, or it is one of something else.
    pub(crate) fn read(file: &Path, flow: &str, instruments: &[String]) -> Result<Saved, String> {
        let failed = |what: &str| format!("{}: {what}", file.display());
        let saved: Saved = checkpoints::read(file)?;
        if saved.flow != flow {
            return Err(failed("a checkpoint of another flow, geometry, spacing or number of particles"));
        }
        if saved.instruments != instruments {
            return Err(failed(&format!("a checkpoint of a run that measured {:?}, not {instruments:?}", saved.instruments)));
        }
        let looks = saved.history.len();
        let Course { times, front, readings } = &saved.course;
        let same = [times.len(), front.len(), readings.len()] == [looks; 3];
        let full = readings.iter().all(|row| row.len() == instruments.len());
        if !(same && full && saved.time_step > 0.0 && saved.time_step.is_finite()) {
            return Err(failed("no checkpoint: its parts do not fit together"));
        }
        Ok(saved)
    }

    /// The particles that this rank shall begin with: an equal share of `count`. `file` is that of the text. Collective.
    ///
    /// # Errors
    /// A file of particles that cannot be read or is of another shape.
    pub(crate) fn particles<const D: usize, P: Moving<D>>(&self, job: &Job, count: u64, file: &Path) -> Result<Vec<P>, Error> {
        let mut gathered = Gathered::<D, P>::new(job, count, "restored particles")?;
        gathered.array.read(Files::new(file, Vec::new())?.beside(&self.particles))?;
        let share = share(count, job.rank(), job.size());
        let rows = gathered.array.get(s![share.start as usize..share.end as usize, ..])?;
        // Nobody frees the array before all have read.
        job.barrier()?;
        Ok(rows.rows().into_iter().map(|row| P::read(&row.to_vec())).collect())
    }
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

/// Writes checkpoints under one name.
#[derive(Debug)]
pub(crate) struct Checkpoints<const D: usize, P> {
    files: Files,
    flow: String,
    instruments: Vec<String>,
    every: usize,
    gathered: Gathered<D, P>,
}

impl<const D: usize, P: Moving<D>> Checkpoints<D, P> {
    /// Checkpoints of a flow, in words, of so many particles: after every so many steps and at the end. Collective.
    pub(crate) fn new(
        job: &Job,
        file: &Path,
        every: Option<usize>,
        (flow, particles): (String, u64),
        instruments: Vec<String>,
    ) -> Result<Self, Error> {
        // All ranks look before any writes.
        let there = checkpoints::read(file).map_or_else(|_| Vec::new(), |saved: Saved| vec![saved.particles]);
        let files = Files::new(file, there)?;
        let gathered = Gathered::new(job, particles, "checkpoint")?;
        job.barrier()?;
        Ok(Checkpoints { files, flow, instruments, every: every.unwrap_or(usize::MAX), gathered })
    }

    /// Writes a checkpoint if one is due. History and course are those of all ranks. Collective.
    ///
    /// # Errors
    /// One line that names the file; the checkpoint before stays.
    pub(crate) fn write(
        &mut self,
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
        self.gathered.fill(job, own)?;
        let particles = self.files.name(steps, ".npy");
        self.gathered.array.save(self.files.beside(&particles))?;
        let text = (job.rank() == 0).then(|| Saved {
            flow: self.flow.clone(),
            instruments: self.instruments.clone(),
            particles: particles.clone(),
            steps,
            time_step,
            planned,
            refilled,
            history: history.to_vec(),
            course: course.clone(),
        });
        self.files.replace(vec![particles], text.as_ref())?;
        // Nobody fills the array again before all have written it.
        job.barrier()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::Mutex;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;
    use crate::case::{Column, Kind, Water};
    use crate::observation::{fingerprint, observe};
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
    fn run(ranks: usize, file: Option<&Path>, resumed: bool) -> u64 {
        let (case, seen) = (case(), Mutex::new(0));
        let body = |job: &Job| {
            let dt = case.fluid.time_step();
            let mut simulation = match file.filter(|_| resumed) {
                Some(file) => {
                    let saved = Saved::read(file, &flow(&case), &[]).map_err(Error::other)?;
                    let particles = saved.particles(job, case.particles(), file)?;
                    Simulation::resume(job, &case, &saved, particles)?
                }
                None => Simulation::new(job, &case, dt)?,
            };
            let mut checkpoints = match file.filter(|_| !resumed) {
                Some(file) => Some(Checkpoints::new(job, file, Some(SAVED), (flow(&case), case.particles()), Vec::new())?),
                None => None,
            };
            while simulation.steps < STEPS {
                simulation.step()?;
                if let Some(checkpoints) = checkpoints.as_mut().filter(|_| simulation.steps <= SAVED) {
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
        let file = folder.0.join("state");
        let whole = run(1, None, false);
        assert_eq!(run(2, Some(&file), false), whole);
        // A second one under the same name takes the place of the first.
        assert_eq!(run(3, Some(&file), false), whole);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2, "the text and its particles");
        for ranks in [1, 2, 4, 7] {
            assert_eq!(run(ranks, Some(&file), true), whole, "{ranks} ranks");
        }
        // Behind a link both parts stand in one folder, and both names lead to them.
        let far = folder.0.join("far");
        fs::create_dir_all(&far).unwrap();
        let [link, target] = [folder.0.join("link"), far.join("there")];
        symlink("far/there", &link).unwrap();
        assert_eq!(run(2, Some(&link), false), whole);
        assert!(link.is_symlink() && fs::read_dir(&far).unwrap().count() == 2);
        for name in [&link, &target] {
            assert_eq!(run(2, Some(name), true), whole, "{}", name.display());
        }
        // A pipe that nobody writes, and what has no end.
        let pipe = folder.0.join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        for name in [&pipe, Path::new("/dev/zero"), Path::new("/dev/stdin")] {
            assert!(checkpoints::check::<Saved>(name).unwrap_err().contains("no checkpoint"));
            assert!(Saved::read(name, "", &[]).unwrap_err().contains("no regular file"));
        }
        let refused = |file: &Path, case: &Case<2>, names: &[String]| Saved::read(file, &flow(case), names).unwrap_err();
        let other = Case::taylor_green(0.05, 1.0, 100.0);
        assert!(refused(&file, &other, &[]).contains("another flow"));
        assert!(refused(&file, &case(), &["level_1".to_owned()]).contains("level_1"));
        assert!(refused(&folder.0.join("none"), &case(), &[]).contains("cannot read"));
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(checkpoints::check::<Saved>(&file), Ok(()));
        fs::write(&file, &text[..text.len() / 2]).unwrap();
        assert!(checkpoints::check::<Saved>(&file).unwrap_err().contains("no checkpoint"));
        assert!(refused(&file, &case(), &[]).contains("no checkpoint"));
    }
}
