//! Files that all members of a group read.

use std::{
    cell::RefCell,
    fmt,
    path::{Path, PathBuf},
};

use ndarray::{Dimension, IxDyn};

use super::{
    contents::Contents,
    erased::{Erased, check_in},
    format::Format,
    kind::{FileElement, Kind},
    placed::Placed,
    raw,
    road::{Progress, Report, Share, Window},
    variable::{Attribute, Variable},
    visit::{Failure, Visit},
};
use crate::{
    algebra::PatchMut,
    array::GlobalArray,
    calls::located,
    error::Result,
    index::{IntoPatch, Selection},
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// A file of arrays that is open for reading, by all members of a group. The file is read by name again in each call.
///
/// [`FileWriter`](super::FileWriter) has an example.
pub struct FileReader<'a> {
    group: Group,
    path: PathBuf,
    format: Format,
    contents: Contents,
    report: RefCell<Option<Report<'a>>>,
}

impl<'a> FileReader<'a> {
    /// Opens a file, in the format of its name's ending. Member 0 reads what it says of its arrays. Collective.
    ///
    /// # Errors
    /// A file that is not there or may not be read; one that is not of the format, or is truncated; members that name different files; the end
    /// of the job.
    #[track_caller]
    pub fn open(group: &(impl AsRef<Group> + ?Sized), path: impl AsRef<Path>) -> Result<Self> {
        located(|| Self::open_for("open", group.as_ref(), path.as_ref()))
    }

    pub(super) fn open_for(operation: &'static str, group: &Group, path: &Path) -> Result<Self> {
        let visit = Visit { group, operation, path };
        group.settle(Op::File, text_fingerprint(&path.to_string_lossy()))?;
        let format = visit.agreed(Format::of(path))?;
        let contents = visit.first(|| {
            // A pipe may have no writer.
            let found = std::fs::metadata(path)?;
            let (is_right, needed) =
                if format.is_folder() { (found.is_dir(), "folder") } else { (found.is_file(), "regular file") };
            if !is_right {
                return Err(Failure::Format(format!("is no {needed}")));
            }
            format.open(path)
        })?;
        Ok(FileReader { group: group.clone(), path: path.to_owned(), format, contents, report: RefCell::new(None) })
    }

    /// Calls `report` after each piece that this member has read, for a bar.
    #[must_use]
    pub fn progress(self, report: impl FnMut(Progress) + 'a) -> Self {
        FileReader { report: RefCell::new(Some(Box::new(report))), ..self }
    }

    /// The arrays of the file.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.contents.arrays.iter().map(|(variable, _)| variable)
    }

    /// The array of this name.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables().find(|variable| variable.name == name)
    }

    /// Attributes of the file.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.contents.attributes.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The times of a file with steps: the first axis of arrays that change with time.
    #[must_use]
    pub fn times(&self) -> Option<&[f64]> {
        self.contents.times.as_deref()
    }

    /// Creates an array, in blocks, with the shape and elements of one of the file. Collective. For another distribution, create the array
    /// and call [`read`](Self::read).
    ///
    /// # Errors
    /// A name that the file does not have; another element type or number of axes; too little memory; a system error on any member, reported on all;
    /// the end of the job.
    #[track_caller]
    pub fn load<T: FileElement, D: Dimension>(&self, name: &str) -> Result<GlobalArray<T, D>> {
        located(|| self.load_for("load", name))
    }

    fn load_for<T: FileElement, D: Dimension>(&self, operation: &'static str, name: &str) -> Result<GlobalArray<T, D>> {
        let visit = self.visit(operation);
        let (variable, _) = self.find(&visit, name)?;
        let axes = variable.shape.len();
        let expected = D::NDIM.unwrap_or(axes);
        let Some(shape) = without_ones(&variable.shape, expected) else {
            return Err(visit.format(format!("has shape {:?}, {axes} axes; the array has {expected}", variable.shape)));
        };
        let mut extents = D::zeros(expected);
        extents.slice_mut().copy_from_slice(shape);
        let file_name = || self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let array_name = if variable.name.is_empty() { file_name() } else { variable.name.clone() };
        let mut array = GlobalArray::builder(&self.group, extents).name(array_name).create()?;
        self.read_for(operation, name, None, &array.at_mut(..))?;
        Ok(array)
    }

    /// Fills an array or a patch with the elements of one of the file, of the same shape; first axes of one element may be missing. Collective.
    ///
    /// # Errors
    /// A name that the file does not have; another element type or shape; a patch outside its array; a system error on any member, reported on all;
    /// the end of the job. If reading fails, the contents are unspecified.
    #[track_caller]
    pub fn read<T: FileElement, D: Dimension, S: Dimension>(&self, name: &str, target: PatchMut<'_, T, D, S>) -> Result<()> {
        located(|| self.read_for("read", name, None, &target))
    }

    /// The same with a section of the array in the file, without steps: `file.read_section("u", s![3, .., 10..20], a.at_mut(..))`. Collective.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); a section outside the array in the file, or with steps.
    #[doc(alias("DRA_Read_section", "NDRA_Read_section"))]
    #[track_caller]
    pub fn read_section<T: FileElement, D: Dimension, S: Dimension>(
        &self,
        name: &str,
        section: impl IntoPatch<IxDyn>,
        target: PatchMut<'_, T, D, S>,
    ) -> Result<()> {
        located(|| {
            let visit = self.visit("read_section");
            let (variable, _) = self.find(&visit, name)?;
            let selection = section.into_patch(&IxDyn(&variable.shape));
            let selection =
                selection.map_err(|error| visit.format(format!("has \"{name}\" of shape {:?}: {error}", variable.shape)))?;
            if !selection.patch.is_unit_step() || self.format == Format::Raw {
                return Err(visit.format("has no such section: sections have no steps, and a raw file has no shape".into()));
            }
            self.read_for("read_section", name, Some(&selection), &target)
        })
    }

    fn read_for<T: FileElement, D: Dimension, S: Dimension>(
        &self,
        operation: &'static str,
        name: &str,
        section: Option<&Selection<IxDyn>>,
        target: &PatchMut<'_, T, D, S>,
    ) -> Result<()> {
        let visit = self.visit(operation);
        let target = target.resolve(operation)?;
        check_in(operation, &target, &self.group)?;
        let mut parts = vec![text_fingerprint(operation), text_fingerprint(name), target.fingerprint()];
        if let Some(Selection { patch, .. }) = section {
            parts.extend([patch.start(), patch.count()].into_iter().flat_map(|axes| axes.slice()).map(|&axis| axis as u64));
        }
        self.group.settle(Op::File, fingerprint(&parts))?;
        let (variable, placed) = self.find(&visit, name)?;
        let expected = Erased::shape(&target);
        let placed = self.checked(&visit, variable, placed, Kind::of::<T>(), &expected)?;
        let mut window = Window::of(&placed, section);
        if section.is_none() && !placed.is_reversed && without_ones(&window.shape, expected.len()).is_some() {
            window.drop_first(window.shape.len() - expected.len());
        }
        let found = super::erased::axes_of(&window.shape, placed.is_reversed);
        if found != expected {
            return Err(visit.format(format!("has shape {found:?}; array \"{}\" has shape {expected:?}", Erased::name(&target))));
        }
        let share = if window.shape == placed.shape {
            Share::of(&self.group, &target, &placed)?
        } else {
            Share::of_window(&self.group, &target, &placed, window)?
        };
        let mut progress = Progress { done: 0, total: share.bytes() };
        let moved = share.read(|bytes| {
            progress.done += bytes.len() as u64;
            if let Some(report) = &mut *self.report.borrow_mut() {
                report(progress);
            }
        });
        visit.agree(moved)?;
        self.group.sync()
    }

    /// Where an array is, if its elements are of this type. Those of a raw file are what the program says.
    pub(super) fn checked(
        &self,
        visit: &Visit<'_>,
        variable: &Variable,
        placed: &Placed,
        kind: Kind,
        shape: &[usize],
    ) -> Result<Placed> {
        match self.format {
            Format::Raw => visit.agreed(raw::shaped(&self.path, variable, kind, shape)),
            _ if variable.kind == kind => Ok(placed.clone()),
            _ => Err(visit.format(format!("has elements of type '{}'; '{}' is expected", variable.descr(), kind.descr()))),
        }
    }

    /// The array of this name; without one the only array that has values.
    pub(super) fn find(&self, visit: &Visit<'_>, name: &str) -> Result<&(Variable, Placed)> {
        let arrays = &self.contents.arrays;
        if let Some(found) = arrays.iter().find(|(variable, _)| variable.name == name) {
            return Ok(found);
        }
        let mut values = arrays.iter().filter(|(variable, _)| !variable.is_coordinate());
        match (values.next(), values.next()) {
            // A file of one array may not name it.
            (Some(only), None) if name.is_empty() || only.0.name.is_empty() => Ok(only),
            _ => {
                let names: Vec<String> = self.variables().map(|variable| format!("\"{}\"", variable.name)).collect();
                let asked = if name.is_empty() { "several arrays, or none".to_owned() } else { format!("no array \"{name}\"") };
                Err(visit.format(format!("has {asked}; it has {}", names.join(", "))))
            }
        }
    }

    fn visit(&self, operation: &'static str) -> Visit<'_> {
        Visit { group: &self.group, operation, path: &self.path }
    }
}

/// A shape as one of fewer axes, if the first ones have one element: VTK has three axes always.
fn without_ones(shape: &[usize], axes: usize) -> Option<&[usize]> {
    let (ones, rest) = shape.split_at(shape.len().checked_sub(axes)?);
    ones.iter().all(|extent| *extent == 1).then_some(rest)
}

impl fmt::Debug for FileReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader").field("path", &self.path).field("contents", &self.contents).finish_non_exhaustive()
    }
}

/// # Files
impl<T: FileElement, D: Dimension> GlobalArray<T, D> {
    /// Creates an array over a group's members, in blocks, with the shape and elements of the array of a file; its format is that of the name's
    /// ending. Collective. For another distribution, create the array and call [`read`](Self::read).
    ///
    /// # Errors
    /// A system error on any member, reported on all; a file with another element type or number of axes, or with several arrays; a file that is
    /// truncated or not of its format; too little memory; members that name different files; the end of the job.
    #[doc(alias = "load_npy")]
    #[track_caller]
    pub fn from_file(group: &(impl AsRef<Group> + ?Sized), path: impl AsRef<Path>) -> Result<Self> {
        located(|| FileReader::open_for("from_file", group.as_ref(), path.as_ref())?.load_for("from_file", ""))
    }

    /// Fills the array with the elements of a file of the same shape; its format is that of the name's ending. Collective.
    ///
    /// # Errors
    /// Those of [`from_file`](Self::from_file); a file of another shape. If reading fails, the contents are unspecified.
    #[doc(alias("read_npy", "DRA_Read", "NDRA_Read"))]
    #[track_caller]
    pub fn read(&mut self, path: impl AsRef<Path>) -> Result<()> {
        located(|| self.at_mut(..).read(path))
    }
}

/// # Files
impl<T: FileElement, D: Dimension, S: Dimension> PatchMut<'_, T, D, S> {
    /// Fills the patch with the elements of a file of its shape; see [`GlobalArray::read`]. Collective.
    ///
    /// # Errors
    /// A patch outside the array; those of [`GlobalArray::read`].
    #[track_caller]
    pub fn read(&mut self, path: impl AsRef<Path>) -> Result<()> {
        located(|| {
            let group = self.group().clone();
            FileReader::open_for("read", &group, path.as_ref())?.read_for("read", "", None, self)
        })
    }
}
