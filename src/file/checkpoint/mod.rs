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

mod manifest;
mod restored;

use std::{
    fmt,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crc32fast::hash;
use ndarray::Dimension;
use toml::Value;

use self::manifest::{Checks, FOLDER, Manifest, TEXT, VALUES, checked_text, damaged, grain, head, numbers};
pub use self::restored::Restored;
use super::{
    erased::{Given, Source, given, usable},
    kind::FileElement,
    npy,
    placed::{Place, Placed},
    road::{Progress, Report, Share, write_all},
    variable::Variable,
    visit::{Failure, Visit},
    whole::{self, Unfinished, remove_unfinished, sync_folder},
};
use crate::{
    algebra::IntoOperand,
    calls::located,
    error::Result,
    file_names::directory,
    portable::Portable,
    sync::{Group, Op, fingerprint, text_fingerprint},
};

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
    arrays: Given<'a>,
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
        self.arrays.push(given("save", name, array));
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
            let (group, variables, sources) = usable("save", &folder, arrays)?;
            let visit = Visit { group: &group, operation: "save", path: &folder };
            let mut parts: Vec<u64> = sources.iter().map(|source| source.fingerprint()).collect();
            parts.extend(variables.iter().map(|variable| text_fingerprint(&variable.name)));
            parts.extend(values.iter().map(|(name, _)| text_fingerprint(name)));
            parts.push(text_fingerprint(&folder.to_string_lossy()));
            group.settle(Op::File, fingerprint(&parts))?;
            Saving { visit, variables, sources, values, kept, report }.save()
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
        let arrays: Vec<&str> = self.arrays.iter().map(|(variable, _)| variable.name()).collect();
        f.debug_struct("Checkpoint").field("folder", &self.folder).field("arrays", &arrays).finish_non_exhaustive()
    }
}

/// A call of `save`.
struct Saving<'a, 'v> {
    visit: Visit<'v>,
    variables: Vec<Variable>,
    sources: Vec<Source<'a>>,
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
        let names = || self.variables.iter().map(|variable| &variable.name).chain(self.values.iter().map(|(name, _)| name));
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
        let create = |variable: &Variable| npy::create(&unfinished.join(format!("{}.npy", variable.name)), variable);
        let placed: Result<Vec<Placed>, Failure> = self.variables.iter().map(create).collect();
        let placed = placed.inspect_err(|_| remove_unfinished(&unfinished))?;
        Ok((number, unfinished, placed))
    }

    /// Writes the elements; the checksums of each array, on member 0.
    fn elements(&mut self, placed: &[Placed]) -> Result<Vec<Vec<u32>>> {
        let group = self.visit.group;
        let shares =
            self.sources.iter().zip(placed).map(|(source, placed)| Share::in_order(group, &**source, placed, grain(placed)));
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
        for ((variable, placed), checks) in self.variables.iter().zip(placed).zip(checks) {
            let Place::Contiguous { file, begin } = &placed.place else { continue };
            let head = head(file, *begin)?;
            let checks: Vec<String> = [head].iter().chain(checks).map(u32::to_string).collect();
            text += &format!("[[array]]\nname = {}\nchecks = [{}]\n", Value::from(variable.name.as_str()), checks.join(", "));
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
