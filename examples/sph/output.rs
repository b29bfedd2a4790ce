//! Files that a run writes while it goes: frames of all particles, tables of what was measured.

use std::marker::PhantomData;
use std::path::Path;

use global_arrays::prelude::*;
use program::records::Records;
use program::whole_file;

use crate::case::{Case, GRAVITY};
use crate::particle::Moving;
use crate::vtk;

/// All particles, gathered in one array.
#[derive(Debug)]
pub(crate) struct Gathered<const D: usize, P> {
    /// A row for each particle, in no order.
    pub(crate) array: GlobalArray<f64, Ix2>,
    /// How many rows are filled: each rank reserves its own by read-and-increment.
    taken: Counter,
    of: PhantomData<P>,
}

impl<const D: usize, P: Moving<D>> Gathered<D, P> {
    /// Room for so many particles. Collective.
    pub(crate) fn new(job: &Job, particles: u64, name: &str) -> Result<Self, Error> {
        let array = GlobalArray::builder(job, [particles as usize, P::WORDS]).name(name).create()?;
        Ok(Gathered { array, taken: Counter::new(job)?, of: PhantomData })
    }

    /// Puts all ranks' particles into the array; when it returns, they are there. Collective.
    pub(crate) fn fill(&self, job: &Job, own: &[P]) -> Result<(), Error> {
        self.taken.reset(0)?;
        let first = self.taken.fetch_add(own.len())?;
        let mut words = Vec::with_capacity(own.len() * P::WORDS);
        own.iter().for_each(|particle| particle.write(&mut words));
        let rows = Array2::from_shape_vec((own.len(), P::WORDS), words).map_err(Error::other)?;
        self.array.put(s![first..first + own.len(), ..], &rows)?;
        job.sync()
    }

    /// All particles that were put there, in order of their numbers.
    pub(crate) fn read(&self) -> Result<Vec<P>, Error> {
        let all = self.array.get(..)?;
        let mut particles: Vec<P> = all.rows().into_iter().filter_map(|row| row.to_slice().map(P::read)).collect();
        particles.sort_unstable_by_key(P::id);
        Ok(particles)
    }
}

/// Frames: `frame_0000.vtp` and `frame_0000.png`, and so on, with `frames.pvd`. Rank 0 writes.
#[derive(Debug)]
pub(crate) struct Frames<'a, const D: usize, P> {
    folder: &'a Path,
    gathered: Gathered<D, P>,
    written: Vec<(f64, String)>,
}

/// What can be told of a folder for frames before a run.
///
/// # Errors
/// There is no such folder; it has frames of an earlier run, which the new ones would stand between.
pub(crate) fn check(folder: &Path) -> Result<(), String> {
    let entries = folder.read_dir().map_err(|_| format!("there is no folder {}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    match names.filter(|name| name.starts_with("frame_") || name == "frames.pvd").min() {
        None => Ok(()),
        Some(name) => {
            Err(format!("the folder {} has {name} of an earlier run: remove its frames or name another folder", folder.display()))
        }
    }
}

impl<'a, const D: usize, P: Moving<D>> Frames<'a, D, P> {
    /// Frames of so many particles. Collective.
    pub(crate) fn new(job: &Job, folder: &'a Path, particles: u64) -> Result<Self, Error> {
        Ok(Frames { folder, gathered: Gathered::new(job, particles, "frame")?, written: Vec::new() })
    }

    /// Writes a frame, in order of the particles' numbers: `vtk` returns the contents of the `.vtp` file, `picture` writes the `.png`.
    /// Collective.
    pub(crate) fn write(
        &mut self,
        job: &Job,
        own: &[P],
        time: f64,
        vtk: impl Fn(&[P]) -> Vec<u8>,
        picture: impl Fn(&Path, &[P]) -> Result<(), String>,
    ) -> Result<(), Error> {
        self.gathered.fill(job, own)?;
        if job.rank() == 0 {
            let particles = self.gathered.read()?;
            let name = format!("frame_{:04}", self.written.len());
            whole_file::write(&self.folder.join(format!("{name}.vtp")), &vtk(&particles)).map_err(Error::other)?;
            picture(&self.folder.join(format!("{name}.png")), &particles).map_err(Error::other)?;
            self.written.push((time, format!("{name}.vtp")));
            let collection = vtk::collection(&self.written);
            whole_file::write(&self.folder.join("frames.pvd"), collection.as_bytes()).map_err(Error::other)?;
        }
        // Nobody puts the next frame before this one was read.
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
