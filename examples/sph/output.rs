//! Files that a run writes while it goes: frames of all particles, tables of what was measured.

use std::path::Path;

use global_arrays::file::FileWriter;
use global_arrays::prelude::*;
use program::frames::COLLECTION;
use program::records::Records;

use crate::case::{Case, GRAVITY};
use crate::particle::Moving;

/// An array with a row for each of all ranks' particles, in the order of their numbers; `write` appends a row. Collective.
pub(crate) fn gather<const D: usize, P: Moving<D>>(
    job: &Job,
    own: &[P],
    columns: usize,
    write: impl Fn(&P, &mut Vec<f64>),
) -> Result<GlobalArray2<f64>, Error> {
    let count = job.all_reduce_one(own.len(), ops::sum)?;
    let rows = GlobalArray::builder(job, [count, columns]).name("particles").zeros().create()?;
    let mut order: Vec<&P> = own.iter().collect();
    order.sort_unstable_by_key(|particle| particle.id());
    // A put for each run of numbers.
    for run in order.chunk_by(|a, b| a.id() + 1 == b.id()) {
        let (first, mut words) = (run[0].id() as usize, Vec::with_capacity(run.len() * columns));
        run.iter().for_each(|particle| write(particle, &mut words));
        let words = Array2::from_shape_vec((run.len(), columns), words).map_err(Error::other)?;
        rows.put(s![first..first + run.len(), ..], &words)?;
    }
    job.sync()?;
    Ok(rows)
}

/// Frames: `frames-0000.vtp` and `frames-0000.png`, and so on, with `frames.pvd`.
#[derive(Debug)]
pub(crate) struct Frames<'a, const S: usize> {
    folder: &'a Path,
    scalars: [&'static str; S],
    written: usize,
}

impl<'a, const S: usize> Frames<'a, S> {
    /// Frames in a folder, with scalars of these names; the first colors the particles.
    pub(crate) fn new(folder: &'a Path, scalars: [&'static str; S]) -> Self {
        Frames { folder, scalars, written: 0 }
    }

    /// Writes a frame, in order of the particles' numbers. `values` returns velocity and scalars; `picture` writes the `.png` from rows of position,
    /// velocity and scalars, on rank 0. Collective.
    pub(crate) fn write<const D: usize, P: Moving<D>>(
        &mut self,
        job: &Job,
        own: &[P],
        time: f64,
        values: impl Fn(&P) -> ([f64; D], [f64; S]),
        picture: impl FnOnce(&Path, &Array2<f64>) -> Result<(), String>,
    ) -> Result<(), Error> {
        let spatial = |vector: &[f64; D]| [0, 1, 2].map(|axis| vector.get(axis).copied().unwrap_or(0.0));
        let rows = gather(job, own, 6 + S, |particle, row| {
            let (velocity, scalars) = values(particle);
            row.extend(spatial(particle.position()).into_iter().chain(spatial(&velocity)).chain(scalars));
        })?;
        let numbers = GlobalArray1::from_fn(job, [rows.shape()[0]], |number| number as i64)?;
        let mut file = FileWriter::new(self.folder.join(COLLECTION)).at_time(time).array("points", rows.at(s![.., 0..3]));
        for (k, name) in self.scalars.iter().enumerate() {
            file = file.array(name, rows.at(s![.., 6 + k]));
        }
        file.array("velocity", rows.at(s![.., 3..6])).array("number", &numbers).save()?;
        if job.rank() == 0 {
            let name = format!("frames-{:04}.png", self.written);
            picture(&self.folder.join(name), &rows.get(..)?).map_err(Error::other)?;
        }
        self.written += 1;
        // No rank frees the array before rank 0 has read it.
        job.barrier()
    }
}

/// A table as CSV, a row at each time that is looked at. Each row goes to the file at once.
#[derive(Debug)]
pub(crate) struct Table(Records);

impl Table {
    /// Begins the file with the names of the columns.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) fn create(path: &Path, columns: &[String]) -> Result<Self, String> {
        let mut table = Table(Records::create(path)?);
        table.line(columns)?;
        Ok(table)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) fn row(&mut self, values: &[f64]) -> Result<(), String> {
        self.line(&values.iter().map(f64::to_string).collect::<Vec<_>>())
    }

    fn line(&mut self, words: &[String]) -> Result<(), String> {
        self.0.append((words.join(",") + "\n").as_bytes())
    }
}

/// Time and front in Martin & Moyce's units: T = t √(2g/a), Z = x/a.
pub(crate) fn reduced<const D: usize>(case: &Case<D>, time: f64, front: f64) -> (f64, f64) {
    let width = case.column_width();
    (time * (2.0 * GRAVITY / width).sqrt(), front / width)
}
