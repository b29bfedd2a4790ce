//! Files that get one time step after the other.
//!
//! Each array has `time` as its first axis, and each step is one chunk of it, or several if it is very large. The truth is the length of the array
//! `time`: a step has ended when its time is there.

use std::{
    fs::{self, File},
    path::Path,
};

use super::{
    scales::{TIME, TIME_UNITS},
    write::check_file,
};
use crate::file::{
    kind::Kind,
    libhdf5::{Hdf5, Id, turn},
    placed::{Place, Placed},
    variable::{Attribute, Attributes, Variable},
    visit::Failure,
    whole::sync_folder,
};
use crate::file_names::directory;

/// `H5S_UNLIMITED`.
const UNLIMITED: u64 = u64::MAX;
/// Of a chunk; HDF5 allows 4 GiB.
const MOST_BYTES: usize = 1 << 30;
/// Times in a chunk of them.
const TIMES: u64 = 1024;
/// Steps of a file.
const MOST_STEPS: u64 = 1 << 24;

/// Begins a time step in a file, which is made if there is none, and returns where its elements are to be written. A step that did not end, and those
/// at this time or later, are no more.
pub(in crate::file) fn begin_step(
    path: &Path,
    time: f64,
    variables: &[Variable],
    attributes: &Attributes,
) -> Result<Vec<Placed>, Failure> {
    if time.is_nan() {
        return Err(Failure::Format("cannot have a step at the time NaN".into()));
    }
    let hdf5 = turn()?;
    let is_new = !path.try_exists()?;
    let before = if is_new { 0 } else { fs::metadata(path)?.len() };
    check_file(variables.iter().fold(before, |sum, variable| sum.saturating_add(step_bytes(variable))), variables)?;
    if is_new {
        hdf5.new_steps(path, variables, attributes).inspect_err(|_| drop(fs::remove_file(path)))?;
        sync_folder(directory(path))?;
    }
    let file = hdf5.open(path, true)?;
    let placed = hdf5.new_step(&file, path, time, variables)?;
    file.close_file()?;
    Ok(placed)
}

/// Ends the step that began last: its elements are on the disk.
pub(in crate::file) fn end_step(path: &Path, time: f64) -> Result<(), Failure> {
    let hdf5 = turn()?;
    let file = hdf5.open(path, true)?;
    let Some((dataset, count)) = hdf5.times(&file)? else { return Err(no_steps()) };
    hdf5.set_extents(&dataset, &[count + 1])?;
    hdf5.write(&dataset, &hdf5.type_of(Kind::Float(8))?, &[count], &[1], &time.to_le_bytes())?;
    drop(dataset);
    file.close_file()?;
    Ok(File::open(path)?.sync_all()?)
}

fn no_steps() -> Failure {
    Failure::Format("has no time steps; give it another name, or remove it".into())
}

/// Extents of the chunks of a step: the whole step, cut along its first axes if it is large.
fn chunk_of(shape: &[usize], size: usize) -> Vec<usize> {
    let mut chunk: Vec<usize> = shape.iter().map(|&extent| extent.max(1)).collect();
    for axis in 0..chunk.len() {
        let rest = chunk[axis + 1..].iter().fold(size, |bytes, &extent| bytes.saturating_mul(extent));
        chunk[axis] = chunk[axis].min((MOST_BYTES / rest).max(1));
    }
    chunk
}

/// Bytes of the chunks of a step, the last of which may reach beyond it.
fn step_bytes(variable: &Variable) -> u64 {
    let Variable { shape, kind, .. } = variable;
    let extents =
        shape.iter().zip(chunk_of(shape, kind.size())).map(|(extent, chunk)| extent.div_ceil(chunk) as u64 * chunk as u64);
    extents.fold(kind.size() as u64, u64::saturating_mul)
}

impl Hdf5 {
    fn new_steps(&self, path: &Path, variables: &[Variable], attributes: &Attributes) -> Result<(), Failure> {
        let (units, attributes): (Attributes, Attributes) = attributes.iter().cloned().partition(|(name, _)| name == TIME_UNITS);
        let file = self.new_file(path, &attributes)?;
        let mut times = Variable::new(TIME, Kind::Float(8), &[0]);
        if let Some((_, Attribute::Text(units))) = units.into_iter().next() {
            times.units = Some(units);
        }
        self.new_array(&file, &times, &[0], &[UNLIMITED], Some(&[TIMES]))?;
        for variable in variables {
            let with =
                |first, rest: &[usize]| -> Vec<u64> { [first].into_iter().chain(rest.iter().map(|&n| n as u64)).collect() };
            let chunk = with(1, &chunk_of(&variable.shape, variable.kind.size()));
            self.new_array(&file, variable, &with(0, &variable.shape), &with(UNLIMITED, &variable.shape), Some(&chunk))?;
        }
        self.put_scales(&file, variables, true)?;
        file.close_file()
    }

    /// The array of times, and how many there are, if the file has steps.
    pub(super) fn times(&self, file: &Id<'_>) -> Result<Option<(Id<'_>, u64)>, Failure> {
        let Some(dataset) = self.dataset(file, TIME)? else { return Ok(None) };
        let (extents, most) = self.extents(&self.H5Dget_space(dataset.raw)?)?;
        let known = self.known(&self.H5Dget_type(dataset.raw)?)?;
        let is_time =
            most == [UNLIMITED] && known.is_some_and(|known| known.kind == Kind::Float(8)) && self.is_scale(&dataset)?;
        Ok(is_time.then_some((dataset, extents.first().copied().unwrap_or_default())))
    }

    pub(super) fn time_values(&self, dataset: &Id<'_>, count: u64) -> Result<Vec<f64>, Failure> {
        if count > MOST_STEPS {
            return Err(Failure::Format(format!("has {count} time steps; at most {MOST_STEPS} are expected")));
        }
        let mut values = vec![0.0; count as usize];
        self.read(dataset, &self.type_of(Kind::Float(8))?, &[0], &[count], bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    fn new_step(&self, file: &Id<'_>, path: &Path, time: f64, variables: &[Variable]) -> Result<Vec<Placed>, Failure> {
        let Some((times, count)) = self.times(file)? else { return Err(no_steps()) };
        let values = self.time_values(&times, count)?;
        let kept = values.iter().position(|&earlier| earlier >= time).unwrap_or(values.len()) as u64;
        if kept < count {
            self.set_extents(&times, &[kept])?;
        }
        let is_left_out = |path: &String| !variables.iter().any(|variable| variable.name == *path);
        if let Some(other) = self.users(file, &times)?.into_iter().find(is_left_out) {
            return Err(Failure::Format(format!("has {other:?} in each step, which this step leaves out")));
        }
        variables.iter().map(|variable| self.new_chunks(file, path, kept, variable)).collect()
    }

    /// Where the elements of an array in a new step are.
    fn new_chunks(&self, file: &Id<'_>, path: &Path, step: u64, variable: &Variable) -> Result<Placed, Failure> {
        let Variable { name, kind, shape, .. } = variable;
        let Some(dataset) = self.dataset(file, name)? else {
            return Err(Failure::Format(format!("has no {name:?}, which this step has")));
        };
        let (mut extents, _) = self.extents(&self.H5Dget_space(dataset.raw)?)?;
        let known = self.known(&self.H5Dget_type(dataset.raw)?)?.filter(|known| known.is_swapped == Some(false));
        let found = known.map(|known| (known.kind, extents.iter().skip(1).map(|&n| n as usize).collect::<Vec<_>>()));
        if found.as_ref() != Some(&(*kind, shape.clone())) || extents.len() != shape.len() + 1 {
            let found = found.map_or("another type".into(), |(kind, shape)| format!("{} of shape {shape:?}", kind.descr()));
            return Err(Failure::Format(format!(
                "has {found} in each step as {name:?}, and this step {} of shape {shape:?}",
                kind.descr()
            )));
        }
        let chunk: Vec<usize> = self.chunk_extents(&dataset)?;
        let [1, chunk @ ..] = &chunk[..] else {
            return Err(Failure::Format(format!("has {name:?} without a chunk for each step, so it cannot get more steps")));
        };
        extents[0] = step + 1;
        self.set_extents(&dataset, &extents)?;
        if shape.contains(&0) {
            return Ok(variable.placed(Place::Contiguous { file: path.to_owned(), begin: 0 }));
        }
        let grid: Vec<usize> = shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
        let begin = |number: usize| {
            let mut rest = number;
            let mut first = vec![step; extents.len()];
            for axis in (0..grid.len()).rev() {
                first[axis + 1] = (rest % grid[axis] * chunk[axis]) as u64;
                rest /= grid[axis];
            }
            let at = self.chunk_at(&dataset, &first)?;
            at.ok_or_else(|| Failure::Format(format!("has no place for a new step of {name:?}: it is not allocated early")))
        };
        let begins = (0..grid.iter().product()).map(begin).collect::<Result<Vec<u64>, Failure>>()?;
        let file = path.to_owned();
        Ok(variable.placed(match begins[..] {
            [begin] => Place::Contiguous { file, begin },
            _ => Place::Chunks { file, chunk: chunk.to_vec(), begins },
        }))
    }
}
