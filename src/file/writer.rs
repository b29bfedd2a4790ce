//! Files of one array or several, made by all members of a group.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use ndarray::Dimension;

use super::{
    erased::{Erased, Given, Local, Source, given, usable},
    format::{Format, Plan},
    kind::FileElement,
    placed::Placed,
    road::{Progress, Report, Share, write_all},
    variable::{Attribute, Attributes, Compression, Variable},
    visit::{Failure, Visit},
    vtk::{self, Grid},
    whole::{Names, Unfinished},
    xdmf,
};
use crate::{
    algebra::IntoOperand,
    array::{GlobalArray, PatchRef},
    calls::located,
    error::Result,
    sync::{Op, fingerprint, text_fingerprint},
};

const OPERATION: &str = "save";

/// Writes arrays and patches to a file, with names of axes, units and attributes. The end of the file's name chooses the format; the
/// [guide](crate::guide::files) has a table of them.
///
/// [`axes`](Self::axes), [`units`](Self::units), [`spacing`](Self::spacing), [`origin`](Self::origin) and [`attribute`](Self::attribute)
/// describe the array that was named last. Attributes before the first array are of the file.
///
/// # Examples
/// ```
/// use global_arrays::{file::{FileReader, FileWriter}, prelude::*};
/// # fn main() -> Result<(), Error> {
/// # let folder = std::env::temp_dir().join(format!("ga-doc-writer-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).map_err(Error::other)?;
/// # let path = folder.join("frame.vti");
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let temperature = GlobalArray2::<f64>::from_fn(job, [40, 60], |(i, j)| (i + j) as f64)?;
///     let speed = GlobalArray2::<f32>::zeros(job, [40, 60])?;
///     FileWriter::new(&path)
///         .attribute("time", 0.25)
///         .array("temperature", &temperature)
///         .units("K")
///         .spacing(&[0.1, 0.1])
///         .array("speed", &speed)
///         .save()?;
///
///     let file = FileReader::open(job, &path)?;
///     let mut row = GlobalArray1::<f64>::zeros(job, [60])?;
///     file.read_section("temperature", s![0, 3, ..], row.at_mut(..))?;
///     assert_eq!(row.load([5])?, 8.0);
///     job.sync()
/// })
/// # ?; std::fs::remove_dir_all(&folder).map_err(Error::other)
/// # }
/// ```
#[must_use = "nothing is written until `save`"]
pub struct FileWriter<'a> {
    path: PathBuf,
    arrays: Given<'a>,
    attributes: Attributes,
    time: Option<f64>,
    tiles: Option<Vec<usize>>,
    compression: Option<Compression>,
    report: Option<Report<'a>>,
}

impl<'a> FileWriter<'a> {
    /// A file under this name. No call but [`save`](Self::save) touches it.
    pub fn new(path: impl AsRef<Path>) -> Self {
        FileWriter {
            path: path.as_ref().to_owned(),
            arrays: Vec::new(),
            attributes: Vec::new(),
            time: None,
            tiles: None,
            compression: None,
            report: None,
        }
    }

    /// Adds an array or a patch, under a name. A name with slashes, such as `flow/pressure`, is in groups.
    #[track_caller]
    pub fn array<T, D, O>(mut self, name: &str, array: O) -> Self
    where
        T: FileElement,
        D: Dimension + 'a,
        O: IntoOperand<T, D> + 'a,
        O::Axes: 'a,
    {
        self.arrays.push(given(OPERATION, name, array));
        self
    }

    /// Adds the coordinates along an axis, the same on all members. In a file of VTK, if the axis has one coordinate more than the arrays have
    /// elements, the arrays are cell data.
    pub fn coordinate(mut self, axis: &str, values: &[f64]) -> Self {
        let values = Local(values.to_vec());
        let mut variable = Variable::new(axis, values.kind(), &values.shape());
        variable.axes = vec![axis.to_owned()];
        self.arrays.push((variable, Ok(Box::new(values))));
        self
    }

    /// Names the axes of the array that was added last.
    pub fn axes<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().map(str::to_owned).collect();
        self.described(|variable| variable.axes = names)
    }

    /// The unit of the array that was added last.
    pub fn units(self, units: &str) -> Self {
        self.described(|variable| variable.units = Some(units.to_owned()))
    }

    /// The distance of neighbors along each axis of the array that was added last.
    pub fn spacing(self, spacing: &[f64]) -> Self {
        self.described(|variable| variable.spacing = spacing.to_vec())
    }

    /// The place of the first element along each axis of the array that was added last.
    pub fn origin(self, origin: &[f64]) -> Self {
        self.described(|variable| variable.origin = origin.to_vec())
    }

    /// Adds an attribute to the array that was added last, or to the file before any is.
    pub fn attribute(mut self, name: &str, value: impl Into<Attribute>) -> Self {
        let attributes = self.arrays.last_mut().map_or(&mut self.attributes, |(variable, _)| &mut variable.attributes);
        attributes.push((name.to_owned(), value.into()));
        self
    }

    /// Appends a time step to the file (`.pvd`, `.h5`, `.zarr`) instead of replacing it. Steps of the file at this time and later are dropped
    /// first, so that a resumed run writes its own.
    pub fn at_time(mut self, time: f64) -> Self {
        self.time = Some(time);
        self
    }

    /// The shape of the chunks of a Zarr store; otherwise one is chosen for each array.
    pub fn chunks(mut self, shape: &[usize]) -> Self {
        self.tiles = Some(shape.to_vec());
        self
    }

    /// Compresses the chunks of a Zarr store.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Calls `report` after each piece that this member has written, for a bar.
    pub fn progress(mut self, report: impl FnMut(Progress) + 'a) -> Self {
        self.report = Some(Box::new(report));
        self
    }

    /// Writes the file. Collective over the group of the arrays.
    ///
    /// An existing file is replaced only when the new one is completely on disk. If the call fails, the old file is unchanged and no
    /// temporary file remains. (Exception: if only the final sync of the directory fails, the new file is in place and the call
    /// fails.) If a rank dies during the call, those that are left remove the temporary file. After the end of all ranks, or a crash of the
    /// machine, either the old or the new file exists, and possibly an unfinished one (`.name.….part`). A symbolic link stays one: the file behind
    /// it is replaced, or is new. A new file keeps the mode of the one that it replaces.
    ///
    /// The text of `.pvd` and `.xdmf` is written after the files that it names, and a failure may leave new ones of these. A time step of a `.h5` file
    /// or a Zarr store counts only when its time is entered, which comes last; a rank that is killed while the HDF5 library changes a file may leave
    /// a file that cannot be read any more.
    ///
    /// # Errors
    /// A file that may not be written; a path that exists and is not a regular file (a directory, a device, a pipe), or is a descriptor
    /// (`/dev/stdout`); a file beyond the limit of files (`ulimit -f`); what the format does not hold; a system error on any member, reported on
    /// all; members that name different files or arrays; the end of the job.
    #[track_caller]
    pub fn save(self) -> Result<()> {
        located(move || {
            let FileWriter { path, arrays, attributes, time, tiles, compression, report } = self;
            let (group, mut variables, sources) = usable(OPERATION, &path, arrays)?;
            let visit = Visit { group: &group, operation: OPERATION, path: &path };
            variables.iter().try_for_each(|variable| check(&visit, variable))?;
            let mut parts: Vec<u64> = sources.iter().map(|source| source.fingerprint()).collect();
            parts.extend(variables.iter().map(|variable| text_fingerprint(&variable.name)));
            parts.extend([time.map_or(0, f64::to_bits), u64::from(time.is_some()), text_fingerprint(&path.to_string_lossy())]);
            group.settle(Op::File, fingerprint(&parts))?;
            if matches!(Format::of(&path), Ok(Format::Zarr)) {
                // xarray refuses a store where an axis has no name.
                for variable in variables.iter_mut().filter(|variable| variable.axes.is_empty()) {
                    let name = variable.name.rsplit('/').next().unwrap_or_default();
                    variable.axes = (0..variable.shape.len()).map(|axis| format!("{name}_{axis}")).collect();
                }
            }
            let blocks: Vec<Vec<usize>> =
                variables.iter().zip(&sources).map(|(variable, source)| block(variable, &**source)).collect();
            let (tiles, attributes) = (tiles.as_deref(), &attributes);
            let plan = Plan { variables: &variables, attributes, blocks: &blocks, tiles, compression };
            Writing { visit, sources, report }.write(&plan, time)
        })
    }

    fn described(mut self, f: impl FnOnce(&mut Variable)) -> Self {
        if let Some((variable, _)) = self.arrays.last_mut() {
            f(variable);
        }
        self
    }
}

/// A block of an array, so that each member writes chunks of its own elements; all of it if blocks are small.
fn block(variable: &Variable, source: &dyn Erased) -> Vec<usize> {
    const SMALL: usize = 256 << 10;
    let is_large = |block: &Vec<usize>| block.iter().product::<usize>() * variable.kind.size() >= SMALL;
    source.block().filter(is_large).unwrap_or_else(|| variable.shape.clone())
}

/// Descriptions have an entry for each axis, or none.
fn check(visit: &Visit<'_>, variable: &Variable) -> Result<()> {
    let axes = variable.shape.len();
    let given =
        [("names of axes", variable.axes.len()), ("spacings", variable.spacing.len()), ("origins", variable.origin.len())];
    match given.into_iter().find(|(_, given)| ![0, axes].contains(given)) {
        Some((what, given)) => Err(visit.format(format!("\"{}\" has {axes} axes, and {given} {what} were given", variable.name))),
        None => Ok(()),
    }
}

impl fmt::Debug for FileWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: Vec<&Variable> = self.arrays.iter().map(|(variable, _)| variable).collect();
        f.debug_struct("FileWriter").field("path", &self.path).field("arrays", &variables).finish_non_exhaustive()
    }
}

/// A call of `save`.
struct Writing<'a, 'v> {
    visit: Visit<'v>,
    sources: Vec<Source<'a>>,
    report: Option<Report<'a>>,
}

impl Writing<'_, '_> {
    fn write(mut self, plan: &Plan<'_>, time: Option<f64>) -> Result<()> {
        let path = self.visit.path;
        let format = self.visit.agreed(Format::of(path))?;
        if time.is_some_and(f64::is_nan) {
            return Err(self.visit.format("holds steps at times that are numbers".into()));
        }
        if format != Format::Zarr && (plan.compression.is_some() || plan.tiles.is_some()) {
            return Err(self.visit.format("has no chunks and no compression; .zarr has".into()));
        }
        match (format, time) {
            (Format::Collection, Some(time)) => self.collection(plan, time),
            (Format::Hdf5 | Format::Zarr, Some(time)) => self.step(format, plan, time),
            (_, Some(_)) => Err(self.visit.format("holds no time steps; .pvd, .h5 and .zarr do".into())),
            (Format::Collection, None) => {
                Err(self.visit.format("is a collection of time steps: give the time (`at_time`)".into()))
            }
            (Format::Xdmf, None) => self.xdmf(plan),
            (format, None) => self.file(format, path, plan, 0..plan.variables.len()).map(|_| ()),
        }
    }

    /// Writes some arrays to one file, which is there completely or not at all; returns where they are.
    fn file(&mut self, format: Format, path: &Path, plan: &Plan<'_>, arrays: std::ops::Range<usize>) -> Result<Vec<Placed>> {
        let names = self.visit.first(|| Names::of(path, format.is_folder()))?;
        let unfinished = Unfinished::new(&names.temporary);
        let plan = Plan { variables: &plan.variables[arrays.clone()], ..*plan };
        let placed = self.visit.first(|| format.create(&names.temporary, &plan))?;
        self.elements(&placed, arrays)?;
        let is_first = self.visit.group.member() == 0;
        self.visit.agree(if is_first { names.rename() } else { Ok(()) })?;
        unfinished.keep();
        Ok(placed)
    }

    /// Moves the elements of some arrays.
    fn elements(&mut self, placed: &[Placed], arrays: std::ops::Range<usize>) -> Result<()> {
        let group = self.visit.group;
        let shares = self.sources[arrays].iter().zip(placed).map(|(source, placed)| Share::of(group, &**source, placed));
        let shares = shares.collect::<Result<Vec<_>>>()?;
        let mut progress = Progress { done: 0, total: shares.iter().map(Share::bytes).sum() };
        let written = write_all(&shares, |_, bytes| {
            progress.done += bytes.len() as u64;
            if let Some(report) = &mut self.report {
                report(progress);
            }
        });
        self.visit.agree(written)
    }

    /// Adds a step to a file of steps.
    fn step(&mut self, format: Format, plan: &Plan<'_>, time: f64) -> Result<()> {
        let path = self.visit.path;
        let placed = self.visit.first(|| format.begin_step(path, time, plan))?;
        self.elements(&placed, 0..plan.variables.len())?;
        let is_first = self.visit.group.member() == 0;
        self.visit.agree(if is_first { format.end_step(path, time) } else { Ok(()) })
    }

    /// Adds a file of VTK to a collection.
    fn collection(&mut self, plan: &Plan<'_>, time: f64) -> Result<()> {
        let path = self.visit.path;
        let grid = Grid::of(plan.variables);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = self.visit.first(|| match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(vtk::collection_text(&[])),
            text => Ok(text?),
        })?;
        let mut steps = self.visit.agreed(vtk::collection(&text))?;
        steps.retain(|(earlier, _)| *earlier < time);
        // A user may have taken steps out of the text.
        let name = |number: usize| PathBuf::from(format!("{stem}-{number:04}.{}", grid.ending()));
        let is_free = |name: &PathBuf| steps.iter().all(|(_, of)| of != name);
        let name = (steps.len()..).map(name).find(is_free).unwrap_or_default();
        self.file(Format::Vtk(grid), &path.with_file_name(&name), plan, 0..plan.variables.len())?;
        steps.push((time, name));
        self.text(|| Ok(vtk::collection_text(&steps)))
    }

    /// Writes a `.npy` file for each array, then the text that names them.
    fn xdmf(&mut self, plan: &Plan<'_>) -> Result<()> {
        let path = self.visit.path;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let data = |variable: &Variable| match plan.variables {
            [_] => path.with_file_name(format!("{stem}.npy")),
            _ => path.with_file_name(format!("{stem}.{}.npy", variable.name.replace('/', "."))),
        };
        let files: BTreeSet<PathBuf> = plan.variables.iter().map(data).collect();
        if files.len() < plan.variables.len() {
            return Err(self.visit.format("cannot hold two arrays of one name".into()));
        }
        self.visit.agreed(xdmf::check(plan.variables))?;
        let mut arrays = Vec::new();
        for (k, variable) in plan.variables.iter().enumerate() {
            let file = data(variable);
            let mut placed = self.file(Format::Npy, &file, plan, k..k + 1)?.remove(0);
            placed.moved(&file);
            arrays.push((variable, placed));
        }
        self.text(|| Ok(xdmf::text(&arrays, plan.attributes)))
    }

    /// Member 0 writes a text, which is there completely or not at all.
    fn text(&self, text: impl FnOnce() -> Result<String, Failure>) -> Result<()> {
        let write = || {
            let names = Names::of(self.visit.path, false)?;
            let unfinished = Unfinished::new(&names.temporary);
            std::fs::write(&names.temporary, text()?)?;
            names.rename()?;
            unfinished.keep();
            Ok(())
        };
        self.visit.agree(if self.visit.group.member() == 0 { write() } else { Ok(()) })
    }
}

/// # Files
impl<T: FileElement, D: Dimension> GlobalArray<T, D> {
    /// Writes the array to a file, in the format of the name's ending: `.npy`, `.h5`, `.zarr`, `.vti`, `.xdmf` or `.raw`. In a file of several
    /// arrays it has its own name. Collective. [`FileWriter`] also writes axes, units, attributes and several arrays.
    ///
    /// # Errors
    /// Those of [`FileWriter::save`], which also says what a failure leaves.
    #[doc(alias("save_npy", "DRA_Write", "NDRA_Write"))]
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        located(|| FileWriter::new(path).array(self.name(), self).save())
    }
}

/// # Files
impl<T: FileElement, D: Dimension, S: Dimension> PatchRef<'_, T, D, S> {
    /// Writes the patch to a file of its own; see [`GlobalArray::save`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; those of [`FileWriter::save`].
    #[doc(alias("DRA_Write_section", "NDRA_Write_section"))]
    #[track_caller]
    pub fn save(self, path: impl AsRef<Path>) -> Result<()> {
        located(|| {
            let name = self.array_name().to_owned();
            FileWriter::new(path).array(&name, self).save()
        })
    }
}
