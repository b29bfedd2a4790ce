//! Arrays in `.npy` files, for NumPy and other readers.
//!
//! Each member reads and writes the elements that it owns, in contiguous runs of the file. A file is written under a temporary name
//! beside its target: each member syncs what it wrote, then the file is synced, then renamed, then its directory is synced. So a crash
//! leaves the old file or the new one.
//!
//! One member may see a file that another does not. So every step ends in an agreement, and one member's failure is the error of all.

use std::{
    ffi::OsString,
    fs::{self, File, Permissions},
    io,
    os::unix::{ffi::OsStringExt, fs::FileExt},
    path::{Path, PathBuf},
};

use ndarray::{Array, Dimension, ShapeBuilder};
use rustix::rand::{GetRandomFlags, getrandom};

use super::{
    GlobalArray,
    npy::{Header, NpyElement},
};
use crate::{
    calls::located,
    error::{Error, Result},
    file_names::{behind_links, directory, is_descriptor},
    index::Patch,
    memory::limits,
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// Bytes that a member holds besides its part while it reads or writes.
const STAGE: usize = 4 << 20;

/// What can happen to one member.
#[derive(Debug)]
enum Failure {
    /// The system refused.
    System(io::Error),
    /// The file is not what it should be.
    Format(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::System(error)
    }
}

/// One collective on one file.
struct Visit<'a> {
    group: &'a Group,
    operation: &'static str,
    path: &'a Path,
}

impl<T: NpyElement, D: Dimension> GlobalArray<T, D> {
    /// Writes the array to a `.npy` file, in C order. Collective; each member writes what it owns.
    ///
    /// An existing file is replaced only when the new one is completely on disk. If the call fails, the old file is unchanged and no
    /// temporary file remains. (Exception: if only the final sync of the directory fails, the new file is in place and the call
    /// fails.) If a rank dies during the call, those that are left remove the temporary file. After the end of all ranks, or a crash of the
    /// machine, either the old or the new file exists, and possibly an unfinished one (`.name.….part`). A symbolic link stays one: the file behind
    /// it is replaced, or is new. A new file keeps the mode of the one that it replaces.
    ///
    /// # Errors
    /// A file that may not be written; a path that exists and is not a regular file (a directory, a device, a pipe), or is a descriptor
    /// (`/dev/stdout`); a file beyond the limit of files (`ulimit -f`); a system error on any member, reported on all; members that name
    /// different files; the end of the job.
    #[track_caller]
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        located(move || {
            let visit = Visit { group: &self.group, operation: "save_npy", path: path.as_ref() };
            self.check_sound(visit.operation)?;
            self.group.sync()?;
            let header = Header { descr: T::DESCR.into(), fortran_order: false, shape: self.shape().to_vec() }.encode();
            let is_first = self.group.member() == 0;
            let named = if is_first { Names::of(visit.path) } else { Ok(Names::default()) };
            let (mut names, named) = named.map_or_else(|failure| (Names::default(), Err(failure)), |names| (names, Ok(())));
            // All know the name before there is a file.
            names.temporary = OsString::from_vec(visit.spread(0, names.temporary.into_os_string().into_vec())?).into();
            visit.agree(named)?;
            let saved = self.save_as(&visit, &names, &header);
            // Member 0 removes it itself, unless it has died.
            if !is_first && matches!(saved, Err(Error::JobEnded { .. })) {
                let _ = fs::remove_file(&names.temporary);
            }
            saved
        })
    }

    /// Writes the file under a temporary name, then gives it its own.
    fn save_as(&self, visit: &Visit<'_>, names: &Names, header: &[u8]) -> Result<()> {
        let mut file = None;
        let created = match self.group.member() {
            0 => self.create_file(&names.temporary, header).map(|created| file = Some(created)),
            _ => Ok(()),
        };
        visit.agree(created)?;
        visit.agree(self.write_own(&names.temporary, header.len()))?;
        visit.agree(file.map_or(Ok(()), |file| file.rename(names)))
    }

    /// Creates an array over a group's members, in blocks, with the shape and elements of a `.npy` file. Collective; each member
    /// reads what it owns. For another distribution, create the array and call [`read_npy`](Self::read_npy).
    ///
    /// # Errors
    /// A system error on any member, reported on all; a file with another element type or number of axes; a file that is truncated or
    /// is not a `.npy` file; too little memory; members that name different files; the end of the job.
    #[track_caller]
    pub fn load_npy(group: &(impl AsRef<Group> + ?Sized), path: impl AsRef<Path>) -> Result<Self> {
        located(move || {
            let group = group.as_ref();
            let visit = Visit { group, operation: "load_npy", path: path.as_ref() };
            let (header, begin) = visit.header::<T>()?;
            let axes = header.shape.len();
            if D::NDIM.is_some_and(|expected| expected != axes) {
                let expected = D::NDIM.unwrap_or(axes);
                return Err(visit.format(format!("has shape {:?}, {axes} axes; the array has {expected}", header.shape)));
            }
            let mut extents = D::zeros(axes);
            extents.slice_mut().copy_from_slice(&header.shape);
            let name = visit.path.file_name().map_or("".into(), |name| name.to_string_lossy());
            let array = Self::builder(group, extents).name(name).create()?;
            visit.agree(array.read_own(visit.path, begin, header.fortran_order))?;
            group.sync()?;
            Ok(array)
        })
    }

    /// Fills the array with the elements of a `.npy` file of the same shape. Collective; each member reads what it owns.
    ///
    /// # Errors
    /// Same as [`load_npy`](Self::load_npy); a file of another shape. If reading fails, the contents are unspecified.
    #[track_caller]
    pub fn read_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        located(move || {
            let visit = Visit { group: &self.group, operation: "read_npy", path: path.as_ref() };
            self.check_sound(visit.operation)?;
            self.group.sync()?;
            let (header, begin) = visit.header::<T>()?;
            if header.shape != self.shape() {
                let (found, expected) = (&header.shape, self.shape());
                return Err(visit.format(format!("has shape {found:?}; array \"{}\" has shape {expected:?}", self.name())));
            }
            visit.agree(self.read_own(visit.path, begin, header.fortran_order))?;
            self.group.sync()
        })
    }

    /// The file beside the target, with its header and its length.
    fn create_file(&self, path: &Path, header: &[u8]) -> Result<Temporary, Failure> {
        let len = header.len() as u64 + self.len() as u64 * size_of::<T>() as u64;
        limits::check_file(len)?;
        let file = File::options().write(true).create_new(true).open(path)?;
        let file = Temporary { file, path: path.to_owned(), renamed: false };
        file.file.write_all_at(header, 0)?;
        file.file.set_len(len)?;
        Ok(file)
    }

    fn write_own(&self, path: &Path, begin: usize) -> Result<(), Failure> {
        let file = File::options().write(true).open(path)?;
        // The limit of this member may be another than that of the one that made the file.
        limits::check_file(file.metadata()?.len())?;
        self.own_stages(false, |patch| {
            let stage = self.get(patch).map_err(other)?;
            let mut bytes: &[u8] = bytemuck::cast_slice(stage.as_slice().expect("a new array in C order"));
            for_each_run(self.shape(), patch, false, |at, len| {
                let (run, rest) = bytes.split_at(len * size_of::<T>());
                bytes = rest;
                file.write_all_at(run, (begin + at * size_of::<T>()) as u64)
            })?;
            Ok(())
        })?;
        // Member 0 cannot do that for members of other nodes.
        Ok(file.sync_data()?)
    }

    fn read_own(&self, path: &Path, begin: usize, fortran_order: bool) -> Result<(), Failure> {
        let file = File::open(path)?;
        self.own_stages(fortran_order, |patch| {
            let mut elements = vec![T::zeroed(); patch.len()];
            let mut bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut elements);
            for_each_run(self.shape(), patch, fortran_order, |at, len| {
                let (run, rest) = std::mem::take(&mut bytes).split_at_mut(len * size_of::<T>());
                bytes = rest;
                file.read_exact_at(run, (begin + at * size_of::<T>()) as u64)
            })?;
            let stage =
                Array::from_shape_vec(patch.count().clone().set_f(fortran_order), elements).expect("a patch in file order");
            self.put(patch, &stage).map_err(other)
        })
    }

    /// Calls `f` for patches that cover what this member owns, none larger than a stage; cut where the file's runs stay long.
    fn own_stages(&self, fortran_order: bool, mut f: impl FnMut(&Patch<D>) -> Result<(), Failure>) -> Result<(), Failure> {
        for block in self.blocks(self.group.member()) {
            let mut patches = vec![block.patch];
            while let Some(patch) = patches.pop() {
                let count = patch.count().slice();
                let mut axes = 0..count.len();
                let axis = if fortran_order { axes.rfind(|&k| count[k] > 1) } else { axes.find(|&k| count[k] > 1) };
                match axis.filter(|_| patch.len() * size_of::<T>() > STAGE) {
                    None => f(&patch)?,
                    Some(axis) => {
                        let (mut start, mut low, mut high) =
                            (patch.start().clone(), patch.count().clone(), patch.count().clone());
                        low[axis] /= 2;
                        high[axis] -= low[axis];
                        patches.push(Patch::block(start.clone(), low.clone()));
                        start[axis] += low[axis];
                        patches.push(Patch::block(start, high));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Visit<'_> {
    /// The header of the file, as member 0 sees it, and where the elements begin.
    fn header<T: NpyElement>(&self) -> Result<(Header, usize)> {
        let mut bytes = Vec::new();
        let read = if self.group.member() == 0 { read_header::<T>(self.path).map(|read| bytes = read) } else { Ok(()) };
        self.agree(read)?;
        let bytes = self.spread(0, bytes)?;
        let header = Header::decode(&bytes).map_err(|what| self.format(what))?;
        Ok((header, bytes.len()))
    }

    /// Waits for all members; the failure of the first that has one is the error of all.
    fn agree(&self, mine: Result<(), Failure>) -> Result<()> {
        let (size, me) = (self.group.size(), self.group.member());
        let call = fingerprint(&[text_fingerprint(self.operation), text_fingerprint(&self.path.to_string_lossy())]);
        let first = if mine.is_err() { size - me } else { 0 };
        let first = self.group.agree_values(Op::File, call, 0, 0, first as u64)?.max as usize;
        if first == 0 {
            return Ok(());
        }
        let text = match &mine {
            Ok(()) => String::new(),
            Err(Failure::System(error)) => format!("s{error}"),
            Err(Failure::Format(what)) => format!("f{what}"),
        };
        let text = String::from_utf8_lossy(&self.spread(size - first, text.into_bytes())?).into_owned();
        match (mine, text.strip_prefix('s')) {
            // Whose failure it is keeps the system's own error.
            (Err(Failure::System(source)), Some(_)) if me == size - first => Err(self.system(source)),
            (_, Some(text)) => Err(self.system(io::Error::other(text.to_owned()))),
            (_, None) => Err(self.format(text.strip_prefix('f').unwrap_or(&text).to_owned())),
        }
    }

    /// The bytes that one member has, on all.
    fn spread(&self, from: usize, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        let mut len = [bytes.len() as u64];
        self.group.broadcast(from, &mut len)?;
        bytes.resize(len[0] as usize, 0);
        self.group.broadcast(from, &mut bytes)?;
        Ok(bytes)
    }

    fn system(&self, source: io::Error) -> Error {
        Error::File { operation: self.operation.into(), path: self.path.to_owned(), source }
    }

    fn format(&self, what: String) -> Error {
        Error::Format { path: self.path.to_owned(), what, operation: self.operation.into() }
    }
}

/// The bytes of a header whose file has the right elements and all of them.
fn read_header<T: NpyElement>(path: &Path) -> Result<Vec<u8>, Failure> {
    let file = File::open(path)?;
    let present = file.metadata()?.len();
    let mut bytes = vec![0; present.min(12) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    let len = Header::len(&bytes).map_err(Failure::Format)?;
    bytes.resize((len as u64).min(present) as usize, 0);
    file.read_exact_at(&mut bytes, 0)?;
    let header = Header::decode(&bytes).map_err(Failure::Format)?;
    if !header.holds(T::DESCR) || cfg!(target_endian = "big") {
        return Err(Failure::Format(format!("has elements of type '{}'; '{}' is expected", header.descr, T::DESCR)));
    }
    let needed = header.shape.iter().try_fold(size_of::<T>(), |product, &n| product.checked_mul(n));
    match needed.map(|needed| needed as u64) {
        Some(needed) if needed <= present - len as u64 => Ok(bytes),
        needed => Err(Failure::Format(format!(
            "has {} bytes of elements; its shape {:?} of '{}' needs {}",
            present - len as u64,
            header.shape,
            header.descr,
            needed.map_or("more than 2^64".into(), |needed| needed.to_string())
        ))),
    }
}

/// Calls `f` with first element and length of each run of a patch in a file of this shape, in the file's order.
fn for_each_run<D: Dimension>(
    shape: &[usize],
    patch: &Patch<D>,
    fortran_order: bool,
    mut f: impl FnMut(usize, usize) -> io::Result<()>,
) -> io::Result<()> {
    if patch.is_empty() {
        return Ok(());
    }
    let in_file_order =
        |axes: &[usize]| -> Vec<usize> { if fortran_order { axes.iter().rev().copied().collect() } else { axes.to_vec() } };
    let (shape, start, count) =
        (in_file_order(shape), in_file_order(patch.start().slice()), in_file_order(patch.count().slice()));
    // The last axes, as far as they are whole, and the one before them make a run.
    let mut outer = shape.len();
    while outer > 0 {
        outer -= 1;
        if count[outer] != shape[outer] {
            break;
        }
    }
    let len: usize = count[outer..].iter().product();
    let mut index = start.clone();
    loop {
        f(index.iter().zip(&shape).fold(0, |at, (i, n)| at * n + i), len)?;
        let Some(axis) = (0..outer).rev().find(|&axis| index[axis] + 1 < start[axis] + count[axis]) else { return Ok(()) };
        index[axis] += 1;
        index[axis + 1..outer].copy_from_slice(&start[axis + 1..outer]);
    }
}

/// A file that is removed unless it takes its target's name.
#[derive(Debug)]
struct Temporary {
    file: File,
    path: PathBuf,
    renamed: bool,
}

/// What a file is called while it is written, and then.
#[derive(Debug, Default)]
struct Names {
    temporary: PathBuf,
    target: PathBuf,
    /// Of a file that is replaced.
    mode: Option<Permissions>,
}

impl Names {
    /// What is no regular file is not to be replaced by one.
    fn of(path: &Path) -> Result<Names, Failure> {
        let target = behind_links(path)?;
        if is_descriptor(&target) || fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
            let what = "each member writes at its own position, which needs a regular file; choose another path";
            return Err(Failure::System(io::Error::other(what)));
        }
        // An error if the file may not be written: its folder would let another take its place.
        let mode = match File::options().write(true).open(&target).and_then(|there| there.metadata()) {
            Ok(there) => Some(there.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let mut number = [0];
        getrandom(bytemuck::cast_slice_mut::<u64, u8>(&mut number), GetRandomFlags::empty()).map_err(io::Error::from)?;
        // Short, whatever the name is: file systems allow 255 bytes.
        let start: String = target.file_name().unwrap_or_default().to_string_lossy().chars().take(20).collect();
        let temporary = target.with_file_name(format!(".{start}.{:x}.part", number[0]));
        Ok(Names { temporary, target, mode })
    }
}

impl Temporary {
    /// Everything is on the disk before the name is, and the name is there afterwards.
    fn rename(mut self, names: &Names) -> Result<(), Failure> {
        names.mode.as_ref().map_or(Ok(()), |mode| self.file.set_permissions(mode.clone()))?;
        self.file.sync_all()?;
        fs::rename(&self.path, &names.target)?;
        self.renamed = true;
        match File::open(directory(&names.target))?.sync_all() {
            // A file system that cannot do that to a directory.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => Ok(synced?),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // It has failed already, with a better reason.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn other(error: Error) -> Failure {
    Failure::System(io::Error::other(error))
}
