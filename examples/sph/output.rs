//! Files that a run writes while it goes: frames of all particles, tables of what was measured.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use global_arrays::prelude::*;

use crate::case::{Case, GRAVITY};
use crate::particle::Particle;
use crate::{picture, vtk, whole_file};

/// All particles, met in one array.
#[derive(Debug)]
pub(crate) struct Gathered<const D: usize> {
    /// A row for each particle, in no order.
    pub(crate) array: GlobalArray<f64, Ix2>,
    /// How many rows are filled: each rank reserves its own by read-and-increment.
    taken: Counter,
}

impl<const D: usize> Gathered<D> {
    /// Collective.
    pub(crate) fn new(job: &Job, case: &Case<D>, name: &str) -> Result<Self, Error> {
        let rows = case.particles() as usize;
        let array = GlobalArray::builder(job, [rows, Particle::<D>::WORDS]).name(name).create()?;
        Ok(Gathered { array, taken: Counter::new(job)? })
    }

    /// Puts all ranks' particles into the array; when it returns, they are there. Collective.
    pub(crate) fn fill(&self, job: &Job, own: &[Particle<D>]) -> Result<(), Error> {
        self.taken.reset(0)?;
        let first = self.taken.fetch_add(own.len() as u64)? as usize;
        let mut words = Vec::with_capacity(own.len() * Particle::<D>::WORDS);
        own.iter().for_each(|particle| particle.write(&mut words));
        let rows = Array2::from_shape_vec((own.len(), Particle::<D>::WORDS), words).map_err(Error::other)?;
        self.array.put(s![first..first + own.len(), ..], &rows)?;
        job.sync()
    }
}

/// Frames: `frame_0000.vtp` and `frame_0000.png`, and so on, with `frames.pvd`. Rank 0 writes.
#[derive(Debug)]
pub(crate) struct Frames<'a, const D: usize> {
    folder: &'a Path,
    gathered: Gathered<D>,
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

impl<'a, const D: usize> Frames<'a, D> {
    /// Collective.
    pub(crate) fn new(job: &Job, folder: &'a Path, case: &Case<D>) -> Result<Self, Error> {
        Ok(Frames { folder, gathered: Gathered::new(job, case, "frame")?, written: Vec::new() })
    }

    /// Writes a frame, in order of the particles' numbers. Collective.
    pub(crate) fn write(&mut self, job: &Job, case: &Case<D>, own: &[Particle<D>], time: f64) -> Result<(), Error> {
        self.gathered.fill(job, own)?;
        if job.rank() == 0 {
            let all = self.gathered.array.get(..)?;
            let mut particles: Vec<Particle<D>> =
                all.rows().into_iter().filter_map(|row| row.to_slice().map(Particle::read)).collect();
            particles.sort_unstable_by_key(|particle| particle.id);
            self.write_files(case, &particles, time).map_err(Error::other)?;
        }
        // Nobody puts the next frame before this one was read.
        job.barrier()
    }

    fn write_files(&mut self, case: &Case<D>, particles: &[Particle<D>], time: f64) -> Result<(), String> {
        let name = format!("frame_{:04}", self.written.len());
        whole_file::write(&self.folder.join(format!("{name}.vtp")), &vtk::frame(&case.fluid, particles))?;
        whole_file::write(&self.folder.join(format!("{name}.png")), &picture::draw(case, particles, time)?)?;
        self.written.push((time, format!("{name}.vtp")));
        whole_file::write(&self.folder.join("frames.pvd"), vtk::collection(&self.written).as_bytes())
    }
}

/// A table as CSV, a row at each time that is looked at. Each row goes to the file at once.
#[derive(Debug)]
pub(crate) struct Table {
    file: File,
    path: PathBuf,
}

impl Table {
    /// Begins the file with the names of the columns.
    ///
    /// # Errors
    /// One line that names the file.
    pub(crate) fn create(path: &Path, columns: &[String]) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let mut table = Table { file, path: path.to_owned() };
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
        let line = words.join(",") + "\n";
        self.file.write_all(line.as_bytes()).map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// Time and front in Martin & Moyce's units: T = t √(2g/a), Z = x/a.
pub(crate) fn reduced<const D: usize>(case: &Case<D>, time: f64, front: f64) -> (f64, f64) {
    let width = case.column_width();
    (time * (2.0 * GRAVITY / width).sqrt(), front / width)
}
