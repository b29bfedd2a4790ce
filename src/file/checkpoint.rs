//! Checkpoints: what a run needs to go on, on any number of ranks.
//!
//! ```text
//!  folder/checkpoint-7/checkpoint     a text: names, lengths and checksums of what follows, and of itself in the last line
//!                      u.npy, v.npy   an array each
//!                      values         all other values, one after the other
//! ```
//!
//! The folder of a checkpoint is made under another name and renamed when all of it is on the disk, so it is whole or not there. Each file has a
//! CRC-32 for every [`PIECE`] bytes of elements, so that any number of members can write and check them.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crc32fast::{Hasher, hash};
use ndarray::Dimension;
use toml::{Table, Value};

use super::{
    erased::Erased,
    kind::{FileElement, Kind},
    npy,
    placed::{Place, Placed},
    road::{Progress, Report, Share, write_all},
    variable::Variable,
    visit::{Failure, Visit},
    whole::{self, Unfinished, remove_unfinished, sync_folder},
};
use crate::{
    algebra::{IntoOperand, PatchMut},
    calls::located,
    error::{Error, Result},
    file_names::directory,
    portable::{Portable, read_whole},
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// Bytes of elements with one checksum.
const PIECE: usize = 4 << 20;
/// Names in the folder of a checkpoint, and of it.
const TEXT: &str = "checkpoint";
const VALUES: &str = "values";
const FOLDER: &str = "checkpoint-";

/// An array or a patch that is saved.
type Source<'a> = Box<dyn Erased + 'a>;

/// Saves the state of a run: arrays, and values that all ranks have.
///
/// # Examples
/// ```
/// use global_arrays::{file::Checkpoint, prelude::*};
/// # fn main() -> Result<(), Error> {
/// # let folder = std::env::temp_dir().join(format!("ga-doc-checkpoint-{}", std::process::id()));
/// for ranks in [2, 3] {
///     Launch::new().ranks(ranks).network("threads").run(|job| {
///         let mut u = GlobalArray2::<f64>::zeros(job, [20, 30])?;
///         let mut step = 0;
///         if let Some(saved) = Checkpoint::restore(job, &folder)? {
///             saved.read("u", u.at_mut(..))?;
///             step = saved.value("step")?;
///         }
///         for _ in 0..10 {
///             u.add_constant(0.5)?;
///             step += 1;
///         }
///         assert_eq!(u.load([7, 7])?, 0.5 * step as f64);
///         Checkpoint::new(&folder).array("u", &u).value("step", &step).save()
///     })?;
/// }
/// # std::fs::remove_dir_all(&folder).map_err(Error::other)
/// # }
/// ```
#[must_use = "nothing is written until `save`"]
pub struct Checkpoint<'a> {
    folder: PathBuf,
    arrays: Vec<(String, Kind, Result<Source<'a>>)>,
    values: Vec<(String, io::Result<Vec<u8>>)>,
    kept: usize,
    report: Option<Report<'a>>,
}

impl<'a> Checkpoint<'a> {
    /// Checkpoints in this folder, of one job at a time. It is made if it is not there.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Checkpoint { folder: folder.as_ref().to_owned(), arrays: Vec::new(), values: Vec::new(), kept: 1, report: None }
    }

    /// Adds an array or a patch, under a name.
    #[track_caller]
    pub fn array<T, D, O>(mut self, name: &str, array: O) -> Self
    where
        T: FileElement,
        D: Dimension + 'a,
        O: IntoOperand<T, D> + 'a,
        O::Axes: 'a,
    {
        let operand = located(|| array.into_operand::<'a>().resolve("save"));
        self.arrays.push((name.to_owned(), Kind::of::<T>(), operand.map(|operand| Box::new(operand) as Box<dyn Erased>)));
        self
    }

    /// Adds a value; that of the group's first member is saved.
    pub fn value(mut self, name: &str, value: &impl Portable) -> Self {
        let mut bytes = Vec::new();
        let written = value.write(&mut bytes);
        self.values.push((name.to_owned(), written.map(|()| bytes)));
        self
    }

    /// How many checkpoints stay in the folder, this one included; otherwise one.
    pub fn keep(mut self, count: usize) -> Self {
        self.kept = count.max(1);
        self
    }

    /// Calls `report` after each piece that this member has written, for a bar.
    pub fn progress(mut self, report: impl FnMut(Progress) + 'a) -> Self {
        self.report = Some(Box::new(report));
        self
    }

    /// Writes a checkpoint, then removes older ones. Collective over the group of the arrays.
    ///
    /// The checkpoints before stay until this one is whole and on the disk. A job that is killed leaves at most an unfinished folder
    /// (`.checkpoint-7.part`), which the next save removes.
    ///
    /// # Errors
    /// A folder that cannot be made or written; two things of one name; no array; a system error on any member, reported on all; members that name
    /// different folders or arrays; the end of the job. The checkpoints before stay.
    #[track_caller]
    pub fn save(self) -> Result<()> {
        located(move || {
            let Checkpoint { folder, arrays, values, kept, report } = self;
            let mut sources = Vec::new();
            for (name, kind, source) in arrays {
                sources.push((name, kind, source?));
            }
            let Some(group) = sources.iter().find_map(|(_, _, source)| source.group()).cloned() else {
                return Err(Error::other(format!("save {}: a checkpoint needs an array", folder.display())));
            };
            let visit = Visit { group: &group, operation: "save", path: &folder };
            let mut parts: Vec<u64> =
                sources.iter().flat_map(|(name, _, of)| [text_fingerprint(name), of.fingerprint()]).collect();
            parts.extend(values.iter().map(|(name, _)| text_fingerprint(name)));
            parts.push(text_fingerprint(&folder.to_string_lossy()));
            for (_, _, source) in &sources {
                source.check("save")?;
                if source.group().is_some_and(|other| !other.is_like(&group)) {
                    let what = format!("array \"{}\" is of another group than the arrays before it", source.name());
                    return Err(Error::Mismatch { operation: "save".into(), what });
                }
            }
            group.settle(Op::File, fingerprint(&parts))?;
            Saving { visit, sources, values, kept, report }.save()
        })
    }

    /// The newest checkpoint in a folder; `None` if there is no folder or no checkpoint in it. Collective.
    ///
    /// # Errors
    /// A checkpoint that is not as it was saved, by name; a system error; members that name different folders; the end of the job.
    #[track_caller]
    pub fn restore(group: &(impl AsRef<Group> + ?Sized), folder: impl AsRef<Path>) -> Result<Option<Restored>> {
        located(|| {
            let (group, path) = (group.as_ref(), folder.as_ref());
            group.settle(Op::File, text_fingerprint(&path.to_string_lossy()))?;
            let visit = Visit { group, operation: "restore", path };
            let found = visit.first(|| {
                let Some(newest) = numbers(path)?.into_iter().max() else { return Ok(None) };
                let folder = path.join(format!("{FOLDER}{newest}"));
                let text = checked_text(&folder)?;
                let values = fs::read(folder.join(VALUES))?;
                Manifest::parse(&text)?.check_values(&values).map_err(|what| damaged(&folder.join(VALUES), &what))?;
                Ok(Some((newest, text, values)))
            })?;
            let Some((number, text, values)) = found else { return Ok(None) };
            let folder = path.join(format!("{FOLDER}{number}"));
            let manifest = visit.agreed(Manifest::parse(&text))?;
            Ok(Some(Restored { group: group.clone(), folder, manifest, values }))
        })
    }
}

impl fmt::Debug for Checkpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrays: Vec<&str> = self.arrays.iter().map(|(name, ..)| name.as_str()).collect();
        f.debug_struct("Checkpoint").field("folder", &self.folder).field("arrays", &arrays).finish_non_exhaustive()
    }
}

/// A call of `save`.
struct Saving<'a, 'v> {
    visit: Visit<'v>,
    sources: Vec<(String, Kind, Source<'a>)>,
    values: Vec<(String, io::Result<Vec<u8>>)>,
    kept: usize,
    report: Option<Report<'a>>,
}

impl Saving<'_, '_> {
    fn save(mut self) -> Result<()> {
        let group = self.visit.group;
        let (number, folder, placed) = self.visit.first(|| self.begin())?;
        let unfinished = Unfinished::new(&folder);
        let checks = self.elements(&placed)?;
        let written = if group.member() == 0 { self.finish(number, &folder, &placed, &checks) } else { Ok(()) };
        self.visit.agree(written)?;
        unfinished.keep();
        Ok(())
    }

    /// Member 0 makes the folder, with a file for each array; the number of the checkpoint, the folder, and where elements go.
    fn begin(&self) -> Result<(u64, PathBuf, Vec<Placed>), Failure> {
        let names = || self.sources.iter().map(|(name, ..)| name).chain(self.values.iter().map(|(name, _)| name));
        if let Some((_, twice)) = names().enumerate().find(|(k, name)| names().take(*k).any(|other| other == *name)) {
            return Err(Failure::Format(format!("cannot hold \"{twice}\" twice")));
        }
        if let Some(name) = names().find(|name| name.is_empty() || name.contains(['/', '\0', '\n']) || name.starts_with('.')) {
            return Err(Failure::Format(format!("cannot hold {name:?}: names are those of files")));
        }
        let folder = self.visit.path;
        let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        fs::create_dir_all(folder)?;
        missing.into_iter().try_for_each(|folder| sync_folder(directory(folder)))?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_unfinished =
                name.to_str().is_some_and(|name| name.starts_with(&format!(".{FOLDER}")) && name.ends_with(".part"));
            if is_unfinished && entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let number = numbers(folder)?.into_iter().max().unwrap_or(0).saturating_add(1);
        let unfinished = whole::unfinished(folder, &format!("{FOLDER}{number}"))?;
        fs::create_dir(&unfinished)?;
        let create = |(name, kind, source): &(String, Kind, Source<'_>)| {
            npy::create(&unfinished.join(format!("{name}.npy")), &Variable::new("", *kind, &source.shape()))
        };
        let placed: Result<Vec<Placed>, Failure> = self.sources.iter().map(create).collect();
        let placed = placed.inspect_err(|_| remove_unfinished(&unfinished))?;
        Ok((number, unfinished, placed))
    }

    /// Writes the elements; the checksums of each array, on member 0.
    fn elements(&mut self, placed: &[Placed]) -> Result<Vec<Vec<u32>>> {
        let group = self.visit.group;
        let shares = self
            .sources
            .iter()
            .zip(placed)
            .map(|((_, _, source), placed)| Share::in_order(group, &**source, placed, grain(placed)));
        let shares: Vec<Share<'_>> = shares.collect();
        let mut progress = Progress { done: 0, total: shares.iter().map(Share::bytes).sum() };
        let mut checks: Vec<Checks> = placed.iter().map(Checks::new).collect();
        let written = write_all(&shares, |number, bytes| {
            checks[number].add(bytes);
            progress.done += bytes.len() as u64;
            if let Some(report) = &mut self.report {
                report(progress);
            }
        });
        self.visit.agree(written)?;
        checks.into_iter().map(|checks| Ok(group.gather_v(0, &checks.end())?.unwrap_or_default().concat())).collect()
    }

    /// Member 0 writes what remains, gives the folder its name, and removes older ones.
    fn finish(&self, number: u64, unfinished: &Path, placed: &[Placed], checks: &[Vec<u32>]) -> Result<(), Failure> {
        let mut text = String::from("version = 1\n");
        for (((name, ..), placed), checks) in self.sources.iter().zip(placed).zip(checks) {
            let Place::Contiguous { file, begin } = &placed.place else { continue };
            let head = head(file, *begin)?;
            let checks: Vec<String> = [head].iter().chain(checks).map(u32::to_string).collect();
            text += &format!("[[array]]\nname = {}\nchecks = [{}]\n", Value::from(name.as_str()), checks.join(", "));
        }
        let mut values = Vec::new();
        for (name, bytes) in &self.values {
            let bytes =
                bytes.as_ref().map_err(|error| io::Error::other(format!("the value \"{name}\" cannot be written: {error}")))?;
            text +=
                &format!("[[value]]\nname = {}\nbytes = {}\ncheck = {}\n", Value::from(name.as_str()), bytes.len(), hash(bytes));
            values.extend(bytes);
        }
        text += &format!("[end]\ncheck = {}\n", hash(text.as_bytes()));
        for (name, bytes) in [(VALUES, &values[..]), (TEXT, text.as_bytes())] {
            let mut file = File::create_new(unfinished.join(name))?;
            file.write_all(bytes)?;
            file.sync_all()?;
        }
        for placed in placed {
            let Place::Contiguous { file, .. } = &placed.place else { continue };
            File::open(file)?.sync_all()?;
        }
        sync_folder(unfinished)?;
        fs::rename(unfinished, self.visit.path.join(format!("{FOLDER}{number}")))?;
        sync_folder(self.visit.path)?;
        let mut older = numbers(self.visit.path)?;
        older.sort_unstable();
        for older in &older[..older.len().saturating_sub(self.kept)] {
            // First under a name of what is unfinished: nothing that is half removed counts.
            let gone = whole::unfinished(self.visit.path, &format!("{FOLDER}{older}"))?;
            fs::rename(self.visit.path.join(format!("{FOLDER}{older}")), &gone)?;
            remove_unfinished(&gone);
        }
        Ok(())
    }
}

/// A checkpoint that a run goes on from.
#[derive(Debug)]
pub struct Restored {
    group: Group,
    folder: PathBuf,
    manifest: Manifest,
    values: Vec<u8>,
}

impl Restored {
    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Names of its arrays.
    pub fn arrays(&self) -> impl Iterator<Item = &str> {
        self.manifest.arrays.iter().map(|(name, _)| name.as_str())
    }

    /// Fills an array or a patch of any distribution with a saved array of its shape, and checks every byte of it. Collective.
    ///
    /// # Errors
    /// A name that the checkpoint does not have; another element type or shape; bytes that are not as they were saved, named; a system error on any
    /// member, reported on all; the end of the job. If reading fails, the contents are unspecified.
    #[track_caller]
    pub fn read<T: FileElement, D: Dimension, S: Dimension>(&self, name: &str, target: PatchMut<'_, T, D, S>) -> Result<()> {
        located(|| {
            const OPERATION: &str = "restore";
            let file = self.folder.join(format!("{name}.npy"));
            let visit = Visit { group: &self.group, operation: OPERATION, path: &file };
            let target = target.resolve(OPERATION)?;
            target.check(OPERATION)?;
            if target.group().is_some_and(|group| !group.is_like(&self.group)) {
                let what = format!("array \"{}\" is of another group than the checkpoint", Erased::name(&target));
                return Err(Error::Mismatch { operation: OPERATION.into(), what });
            }
            self.group.settle(Op::File, fingerprint(&[text_fingerprint(name), target.fingerprint()]))?;
            let checks = visit.agreed(find(&self.manifest.arrays, name, "array"))?;
            let (variable, placed) = visit.first(|| {
                let contents = npy::open(&file)?;
                let (variable, placed) = contents.arrays.into_iter().next().ok_or_else(|| Failure::Format("is empty".into()))?;
                let Place::Contiguous { begin, .. } = &placed.place else { return Err(Failure::Format("is no array".into())) };
                if checks.first() != Some(&head(&file, *begin)?) {
                    return Err(Failure::Format("has a header that is not as it was saved".into()));
                }
                Ok((variable, placed))
            })?;
            let (kind, shape) = (Kind::of::<T>(), Erased::shape(&target));
            if variable.kind != kind || variable.shape != shape {
                let (found, expected) = (variable.descr(), kind.descr());
                let what = format!("has '{found}' of shape {:?}; '{expected}' of shape {shape:?} is expected", variable.shape);
                return Err(visit.format(what));
            }
            let share = Share::in_order(&self.group, &target, &placed, grain(&placed));
            let mut found = Checks::new(&placed);
            let moved = share.read(|bytes| found.add(bytes));
            let first = share.first() / grain(&placed);
            let wrong = found.end().into_iter().zip(first..).find(|(check, piece)| checks.get(piece + 1) != Some(check));
            let checked = moved.and_then(|()| match wrong {
                None => Ok(()),
                Some((_, piece)) => {
                    let bytes = grain(&placed) * placed.kind.size();
                    let (from, to) = (piece * bytes, ((piece + 1) * bytes).min(placed.bytes(&placed.shape)));
                    Err(Failure::Format(format!(
                        "is not as it was saved: the checksum of bytes {from} to {to} of its elements is another one; remove the folder to restore the checkpoint before it, if there is one"
                    )))
                }
            });
            visit.agree(checked)?;
            self.group.sync()
        })
    }

    /// A saved value. Local.
    ///
    /// # Errors
    /// A name that the checkpoint does not have; a value of another type, where that can be seen.
    #[track_caller]
    pub fn value<R: Portable>(&self, name: &str) -> Result<R> {
        located(|| {
            let visit = Visit { group: &self.group, operation: "restore", path: &self.folder };
            let [begin, end, _] = *visit.agreed(find(&self.manifest.values, name, "value"))?;
            let read = read_whole(&self.values[begin as usize..end as usize]);
            read.map_err(|error| visit.format(format!("has the value \"{name}\" as another type: {error}")))
        })
    }
}

/// What the text of a checkpoint says.
#[derive(Debug, Default)]
struct Manifest {
    /// Checksums of the header and of each piece.
    arrays: Vec<(String, Vec<u32>)>,
    /// From which byte to which, and the checksum.
    values: Vec<(String, [u64; 3])>,
}

impl Manifest {
    fn parse(text: &str) -> Result<Manifest, Failure> {
        let table: Table = text.parse().map_err(|_| Failure::Format("is no checkpoint".into()))?;
        Self::of(&table).ok_or_else(|| Failure::Format("is no checkpoint of this version".into()))
    }

    fn of(table: &Table) -> Option<Manifest> {
        let entries = |key: &str| table.get(key).map_or(Some(&[][..]), |entries| entries.as_array().map(Vec::as_slice));
        let number = |value: &Value| value.as_integer().and_then(|value| u64::try_from(value).ok());
        let name = |entry: &Value| Some(entry.get("name")?.as_str()?.to_owned());
        let mut manifest = Manifest::default();
        for entry in entries("array")? {
            let checks = entry.get("checks")?.as_array()?.iter().map(|check| u32::try_from(number(check)?).ok());
            manifest.arrays.push((name(entry)?, checks.collect::<Option<_>>()?));
        }
        let mut end = 0_u64;
        for entry in entries("value")? {
            let begin = end;
            end = end.checked_add(number(entry.get("bytes")?)?)?;
            manifest.values.push((name(entry)?, [begin, end, number(entry.get("check")?)?]));
        }
        (table.get("version")?.as_integer() == Some(1)).then_some(manifest)
    }

    fn check_values(&self, values: &[u8]) -> Result<(), String> {
        let len = self.values.last().map_or(0, |(_, [_, end, _])| *end);
        if len != values.len() as u64 {
            return Err(format!("has {} bytes, not {len}", values.len()));
        }
        let wrong = |[begin, end, check]: [u64; 3]| u64::from(hash(&values[begin as usize..end as usize])) != check;
        match self.values.iter().find(|(_, value)| wrong(*value)) {
            Some((name, _)) => Err(format!("does not have the value \"{name}\" as it was saved")),
            None => Ok(()),
        }
    }
}

/// Checksums of the pieces of a stream of bytes.
struct Checks {
    piece: usize,
    current: Hasher,
    len: usize,
    done: Vec<u32>,
}

impl Checks {
    fn new(placed: &Placed) -> Checks {
        Checks { piece: grain(placed) * placed.kind.size(), current: Hasher::new(), len: 0, done: Vec::new() }
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (some, rest) = bytes.split_at(bytes.len().min(self.piece - self.len));
            self.current.update(some);
            self.len += some.len();
            bytes = rest;
            if self.len == self.piece {
                self.done.push(std::mem::take(&mut self.current).finalize());
                self.len = 0;
            }
        }
    }

    fn end(mut self) -> Vec<u32> {
        if self.len > 0 {
            self.done.push(self.current.finalize());
        }
        self.done
    }
}

/// Elements of a piece.
fn grain(placed: &Placed) -> usize {
    (PIECE / placed.kind.size().max(1)).max(1)
}

/// The checksum of what stands before the elements of a file.
fn head(file: &Path, begin: u64) -> io::Result<u32> {
    let mut bytes = vec![0; begin as usize];
    io::Read::read_exact(&mut File::open(file)?, &mut bytes)?;
    Ok(hash(&bytes))
}

/// Numbers of the checkpoints in a folder, if there is one.
fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    // As this module writes them.
    let own = |name: &str| name.strip_prefix(FOLDER)?.parse().ok().filter(|number: &u64| format!("{FOLDER}{number}") == name);
    let number = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_str().and_then(own));
    entries.map(number).filter_map(io::Result::transpose).collect()
}

/// The text of a checkpoint, which is as it was saved.
fn checked_text(folder: &Path) -> Result<String, Failure> {
    let file = folder.join(TEXT);
    let text = fs::read(&file).map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
    let text = String::from_utf8(text).map_err(|_| damaged(&file, "is no text"))?;
    let end = text.rfind("[end]\ncheck = ").ok_or_else(|| damaged(&file, "has no end"))?;
    if text[end..] != format!("[end]\ncheck = {}\n", hash(&text.as_bytes()[..end])) {
        return Err(damaged(&file, "is not as it was saved"));
    }
    Ok(text)
}

fn damaged(file: &Path, what: &str) -> Failure {
    Failure::Format(format!(
        "has {}, which {what}; remove its folder to restore the checkpoint before it, if there is one",
        file.display()
    ))
}

fn find<'m, R>(entries: &'m [(String, R)], name: &str, what: &str) -> Result<&'m R, Failure> {
    let names = || entries.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let found = entries.iter().find(|(entry, _)| entry == name).map(|(_, found)| found);
    found.ok_or_else(|| Failure::Format(format!("has no {what} \"{name}\"; it has {}", names())))
}
