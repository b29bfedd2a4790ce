//! What is seen of a run while it goes: the flow at its looks, what the instruments read, and the tables of both.

use std::path::PathBuf;

use global_arrays::prelude::*;

use crate::case::Case;
use crate::checkpoint::Saved;
use crate::cli::Arguments;
use crate::comparison::Course;
use crate::experiments::Experiment;
use crate::instruments::Instruments;
use crate::observation::{self, Observation};
use crate::output::{Table, reduced};
use crate::simulation::Simulation;

/// How often a run is looked at, beside its frames: impacts are short, so more often where pressures are measured.
const LOOKS: usize = 200;
const MANY_LOOKS: usize = 1000;

/// The instruments of the experiment that the case repeats, and those that were asked for.
pub(crate) fn instruments<const D: usize>(arguments: &Arguments, case: &Case<D>) -> Result<Vec<Instruments<D>>, String> {
    let known = Experiment::of(case).map(|experiment| experiment.instruments(case));
    Ok(known.into_iter().chain([arguments.instruments(case)?]).collect())
}

pub(crate) fn names<const D: usize>(instruments: &[Instruments<D>]) -> Vec<String> {
    instruments.iter().flat_map(Instruments::names).collect()
}

/// What was seen of a run at its looks, and the files for it.
#[derive(Debug)]
pub(crate) struct Log<const D: usize> {
    instruments: Vec<Instruments<D>>,
    pub(crate) history: Vec<Observation>,
    pub(crate) course: Course,
    front: Option<Table>,
    records: Option<Table>,
}

impl<const D: usize> Log<D> {
    /// Begins the files, with the rows of a run that goes on.
    pub(crate) fn create(job: &Job, arguments: &Arguments, case: &Case<D>, saved: Option<&Saved>) -> Result<Self, Error> {
        let instruments = instruments(arguments, case).map_err(Error::other)?;
        let table = |file: &Option<PathBuf>, columns: &[String]| match file {
            Some(file) if job.rank() == 0 => Table::create(file, columns).map(Some).map_err(Error::other),
            _ => Ok(None),
        };
        let mut columns = ["time", "front", "kinetic", "potential", "compression"].map(String::from).to_vec();
        columns.extend(names(&instruments));
        let front = table(&arguments.front, &["T", "Z"].map(String::from))?;
        let records = table(&arguments.records, &columns)?;
        let mut log = Log { instruments, history: Vec::new(), course: Course::default(), front, records };
        for (seen, read) in saved.iter().flat_map(|saved| saved.history.iter().zip(&saved.course.readings)) {
            log.add(case, *seen, read.clone())?;
        }
        Ok(log)
    }

    /// How often a run is looked at.
    pub(crate) fn looks(&self) -> usize {
        if self.instruments.iter().all(|some| some.probes.is_empty()) { LOOKS } else { MANY_LOOKS }
    }

    /// Looks at the run. Collective.
    pub(crate) fn look(&mut self, job: &Job, simulation: &Simulation<'_, D>) -> Result<(), Error> {
        let seen = observation::observe(job, simulation)?;
        let mut read = Vec::new();
        for instruments in &self.instruments {
            read.extend(instruments.read(job, simulation.case, simulation.own())?);
        }
        self.add(simulation.case, seen, read)
    }

    /// Adds what was seen, a row of each file.
    fn add(&mut self, case: &Case<D>, seen: Observation, read: Vec<f64>) -> Result<(), Error> {
        if let Some(front) = &mut self.front {
            let (time, place) = reduced(case, seen.time, seen.front);
            front.row(&[time, place]).map_err(Error::other)?;
        }
        if let Some(records) = &mut self.records {
            let row: Vec<f64> = [seen.time, seen.front].into_iter().chain(seen.energy).chain(read.iter().copied()).collect();
            records.row(&row).map_err(Error::other)?;
        }
        self.course.add(seen.time, seen.front, read);
        self.history.push(seen);
        Ok(())
    }
}
