//! What a run writes: rows and frames while it goes on, tables and pictures of what it has seen at its end.

use std::path::{Path, PathBuf};

use global_arrays::prelude::*;
use program::plot::{self, Series};
use program::records::Records;
use program::whole_file;

use crate::radial::{Radial, Shell};
use crate::run::Task;
use crate::simulation::Simulation;
use crate::start::Start;
use crate::thermo::{Row, line};
use crate::xyz;

/// Mean squares of the ways that atoms have come up to a time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ways {
    pub(crate) time: f64,
    pub(crate) all: f64,
    pub(crate) of_kinds: Vec<f64>,
}

/// The observers of one rank. Rank 0 has the files.
#[derive(Debug)]
pub(crate) struct Observers<'t> {
    task: &'t Task,
    counts: Vec<usize>,
    writer: bool,
    thermo: Option<Records>,
    trajectory: Option<Records>,
    radial: Option<Radial>,
    ways: Vec<Ways>,
}

impl<'t> Observers<'t> {
    pub(crate) fn create(job: &Job, task: &'t Task) -> Result<Self, Error> {
        let writer = job.rank() == 0;
        let open =
            |name: &Option<PathBuf>| name.as_deref().filter(|_| writer).map(Records::create).transpose().map_err(Error::other);
        let arguments = &task.arguments;
        Ok(Observers {
            task,
            counts: task.start.counts(),
            writer,
            thermo: open(&arguments.thermo)?,
            trajectory: open(&arguments.trajectory)?,
            radial: (!arguments.rdf.is_empty()).then(|| Radial::new(task.range, task.start.kinds.len())),
            ways: Vec::new(),
        })
    }

    /// Writes what belongs to a row. Collective.
    pub(crate) fn observe(&mut self, row: &Row, simulation: &mut Simulation<'_>) -> Result<(), Error> {
        if let Some(radial) = &mut self.radial {
            simulation.sample(radial)?;
        }
        let Task { start, arguments, .. } = self.task;
        if !arguments.msd.is_empty() {
            let sums = simulation.squared_ways()?;
            let mean = |sum: f64, count: usize| if count > 0 { sum / count as f64 } else { 0.0 };
            let of_kinds = sums.iter().zip(&self.counts).map(|(sum, count)| mean(*sum, *count)).collect();
            self.ways.push(Ways { time: row.time, all: mean(sums.iter().sum(), row.atoms), of_kinds });
        }
        if !self.writer {
            return Ok(());
        }
        if let Some(file) = &mut self.thermo {
            if row.step == start.step {
                file.append(&row.header()?).map_err(Error::other)?;
            }
            file.append(&row.line()?).map_err(Error::other)?;
        }
        if self.trajectory.is_none() && arguments.restart.is_none() {
            return Ok(());
        }
        let snapshot = simulation.snapshot()?;
        let (positions, velocities, ways) = (snapshot.positions, snapshot.velocities, snapshot.ways);
        let (step, time, heat) = (row.step, Some(row.time), row.total_energy - row.conserved_energy);
        let (kind_of, kinds, coefficients) = (start.kind_of.clone(), start.kinds.clone(), start.coefficients.clone());
        let (origin, lengths) = (start.origin, start.lengths);
        let frame = Start { origin, lengths, positions, velocities, ways, kind_of, kinds, coefficients, step, time, heat };
        let frame = xyz::frame(&frame);
        if let Some(file) = &mut self.trajectory {
            file.append(frame.as_bytes()).map_err(Error::other)?;
        }
        arguments.restart.as_deref().map_or(Ok(()), |file| whole_file::write(file, frame.as_bytes())).map_err(Error::other)
    }

    /// Writes tables and pictures, and returns the ways. Collective.
    pub(crate) fn finish(mut self, job: &Job) -> Result<Vec<Ways>, Error> {
        let Task { arguments, start, .. } = self.task;
        let names: Vec<&str> = start.kinds.iter().map(|kind| &kind.name[..]).collect();
        let several = names.len() > 1;
        if let Some(radial) = self.radial.take() {
            let shells = radial.table(job, &self.counts, start.lengths.iter().product())?;
            let pairs = (0..names.len()).flat_map(|a| (a..names.len()).map(move |b| (a, b)));
            let columns = pairs.filter(|_| several).map(|(a, b)| format!("{}-{}", names[a], names[b]));
            let row = |shell: &Shell| row_of(shell.distance, shell.all, &shell.of_kinds, several);
            let table = Table { title: "Radial distribution function", axes: ("r", "g"), columns: columns.collect() };
            self.write(&table, &arguments.rdf, shells.iter().map(row).collect())?;
        }
        let row = |ways: &Ways| row_of(ways.time, ways.all, &ways.of_kinds, several);
        let columns = names.iter().filter(|_| several).map(|name| (*name).to_owned()).collect();
        let table = Table { title: "Mean square displacement", axes: ("time", "msd"), columns };
        self.write(&table, &arguments.msd, self.ways.iter().map(row).collect())?;
        Ok(self.ways)
    }

    fn write(&self, table: &Table, files: &[PathBuf], rows: Vec<Vec<f64>>) -> Result<(), Error> {
        for file in files.iter().filter(|_| self.writer) {
            table.write(file, &rows)?;
        }
        Ok(())
    }
}

/// A place on the axis, the value of all, and those of kinds if there are several.
fn row_of(at: f64, all: f64, of_kinds: &[f64], several: bool) -> Vec<f64> {
    [at, all].into_iter().chain(of_kinds.iter().copied().filter(|_| several)).collect()
}

/// Whether a table or a picture may have this name.
pub(crate) fn check(file: &Path) -> Result<(), String> {
    if file.extension().is_some_and(|ending| ending == "csv") {
        return Ok(());
    }
    plot::check(file).map_err(|error| format!("{error}; a table ends in .csv"))
}

/// What is written as a table or drawn, by the name of the file.
struct Table {
    title: &'static str,
    axes: (&'static str, &'static str),
    /// Of what there is besides all.
    columns: Vec<String>,
}

impl Table {
    fn write(&self, file: &Path, rows: &[Vec<f64>]) -> Result<(), Error> {
        let (x, y) = self.axes;
        if file.extension().is_some_and(|ending| ending == "csv") {
            let of_columns = self.columns.iter().map(|column| format!("{y}_{column}"));
            let mut text = line([x.to_owned(), y.to_owned()].into_iter().chain(of_columns))?;
            for row in rows {
                text.extend(line(row.iter().map(|number| format!("{number:?}")))?);
            }
            return whole_file::write(file, &text).map_err(Error::other);
        }
        let names = std::iter::once("all").chain(self.columns.iter().map(|column| &column[..]));
        let series: Vec<Series<'_>> = names
            .enumerate()
            .map(|(at, name)| Series { name, points: rows.iter().map(|row| (row[0], row[at + 1])).collect(), dots: false })
            .collect();
        plot::draw(file, self.title, self.axes, &series).map_err(Error::other)
    }
}

/// D of all atoms: a sixth of the slope of their mean square displacement over the second half of the time, by least squares.
///
/// # Source
/// A. Einstein, Annalen der Physik 17 (1905).
pub(crate) fn diffusion(ways: &[Ways]) -> Option<f64> {
    let half = &ways[ways.len() / 2..];
    if half.len() < 2 {
        return None;
    }
    let mean = |of: fn(&Ways) -> f64| half.iter().map(of).sum::<f64>() / half.len() as f64;
    let (time, way) = (mean(|ways| ways.time), mean(|ways| ways.all));
    let (above, below) = half.iter().fold((0.0, 0.0), |(above, below), ways| {
        (above + (ways.time - time) * (ways.all - way), below + (ways.time - time).powi(2))
    });
    Some(above / below / 6.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffusion_is_a_sixth_of_the_slope() {
        let way =
            |time: f64| Ways { time, all: if time < 5.0 { time * time } else { 25.0 + 12.0 * (time - 5.0) }, of_kinds: vec![] };
        let ways: Vec<Ways> = (0..11).map(|time| way(f64::from(time))).collect();
        approx::assert_relative_eq!(diffusion(&ways).unwrap(), 2.0, max_relative = 1e-12);
        assert_eq!((diffusion(&ways[..1]), diffusion(&[])), (None, None));
    }

    #[test]
    fn names_of_tables() {
        assert_eq!((check("a.csv".as_ref()), check("a.svg".as_ref())), (Ok(()), Ok(())));
        assert!(check("a.txt".as_ref()).unwrap_err().contains("a table ends in .csv"));
    }
}
