//! What a job says about itself at its end, if it went well: rank 0 prints and writes.
//!
//! | file | contents |
//! |---|---|
//! | `stats` | what a rank moved to which others; [`Job::stats`] |
//! | `table`, `times` | the printed tables |
//! | `matrix` | the same in a file |
//! | `trace` | a timeline of all ranks in a file |
//! | `collect` | lines of all ranks, brought to rank 0 |

mod collect;
mod matrix;
mod stats;
mod table;
mod times;
mod trace;

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};
pub use stats::Stats;

use super::Job;
use crate::{
    calls::record,
    comm::{
        Conduit,
        kit::say::{say, write_all},
    },
    error::{Error, Result},
    file_names::{behind_links, is_descriptor},
    memory::limits,
};

/// What a job is asked to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Tables on stderr.
    pub(super) tables: bool,
    /// The same in a file, whose name ends in `.json` or `.svg`.
    pub(super) file: Option<PathBuf>,
    /// A timeline.
    pub(super) trace: Option<PathBuf>,
}

/// All ranks together keep about so many slices of time for a trace, in some 150 MB.
const MOST_SLICES: usize = 1_000_000;
/// And each at least so many.
const LEAST_SLICES: usize = 200;

impl Wanted {
    /// Whether there is anything to tell.
    pub(super) fn any(&self) -> bool {
        *self != Wanted::default()
    }

    /// The calling thread is a rank, and records from now on, if it is to tell anything.
    pub(super) fn start(&self, conduit: &std::sync::Arc<Conduit>) {
        if self.any() {
            let most = if self.trace.is_some() { (MOST_SLICES / conduit.topology().size()).max(LEAST_SLICES) } else { 0 };
            let conduit = conduit.clone();
            let job = identity(&conduit);
            if !record::start(job, Box::new(move || conduit.stamp().1), most) {
                say("another job of this thread is being recorded, so the calls of this one have no times (GA_STATS, GA_TRACE)");
            }
        }
    }

    /// Tells it. Collective.
    ///
    /// # Errors
    /// A file that cannot be written; the end of the job.
    pub(super) fn tell(&self, job: &Job) -> Result<()> {
        let record = record::stop(identity(job.inner.conduit())).unwrap_or_default();
        let Some(stats) = job.stats() else { return Ok(()) };
        let rows = table::gather(job, &stats)?;
        let times = times::gather(job, &record)?;
        if self.tables
            && let (Some(rows), Some(times)) = (&rows, &times)
        {
            // Nobody reads it if it cannot be written.
            let _ = write_all(std::io::stderr(), format!("{}\n{}", rows.text(), times.text()).as_bytes());
        }
        // Rank 0 writes, so what it is asked for counts: a launcher may hand variables on to some ranks only.
        let mut files = [self.file.is_some(), self.trace.is_some()].map(u8::from);
        job.broadcast(0, &mut files)?;
        if files[0] > 0 {
            matrix::write(job, self.file.as_deref(), &stats, rows.as_ref().zip(times.as_ref()))?;
        }
        if files[1] > 0 {
            trace::write(job, self.trace.as_deref(), &record)?;
        }
        Ok(())
    }
}

/// A number of a rank of a job in this process.
pub(super) fn identity(conduit: &Conduit) -> usize {
    std::ptr::from_ref(conduit).addr()
}

/// A file of a report whose name ends as it should, in a folder that is there; as a path that stays the same in another folder.
pub(super) fn file(variable: &str, text: &str, endings: &[&str], allowed: &str) -> Result<PathBuf> {
    let refuse = |why: &str| Error::Launch(format!("{variable}={text:?} is not {allowed}{why}"));
    let path = std::path::absolute(text).map_err(|error| refuse(&format!(": {error}")))?;
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !endings.contains(&ending) {
        return Err(refuse(""));
    }
    let target = behind_links(&path).map_err(|error| refuse(&format!(": {error}")))?;
    if is_descriptor(&target) {
        return Err(refuse(": it leads to a descriptor, which may have other contents; choose another path"));
    }
    match target.parent() {
        Some(folder) if !folder.is_dir() => Err(refuse(&format!(": there is no folder {}", folder.display()))),
        Some(folder) if access(folder, Access::WRITE_OK).is_err() => {
            Err(refuse(&format!(": the folder {} cannot be written to", folder.display())))
        }
        _ => Ok(path),
    }
}

/// An error of a file.
fn cannot_write(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::File { operation: operation.into(), path: path.to_owned(), source }
}

/// Writes a file whole.
fn write_whole(operation: &'static str, path: &Path, text: &str) -> Result<()> {
    check_length(path, text.len() as u64).and_then(|()| fs::write(path, text)).map_err(cannot_write(operation, path))
}

/// Whether a file may get so long. Pipes and devices have no length.
fn check_length(path: &Path, bytes: u64) -> std::io::Result<()> {
    if path.is_file() || !path.exists() { limits::check_file(bytes) } else { Ok(()) }
}

/// The beginning of a text, of so many bytes at most.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// A text in JSON: at most six bytes for each.
fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => json.extend(['\\', sign]),
            sign if sign < ' ' => json += &format!("\\u{:04x}", sign as u32),
            sign => json.push(sign),
        }
    }
    json + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_bare_quotes() {
        assert_eq!(quoted("get of \"a\\b\"\n"), r#""get of \"a\\b\"\u000a""#);
    }

    #[test]
    fn files_that_could_not_be_written_are_refused_at_the_start() {
        let of = |text: &str| file("GA_TRACE", text, &["json"], "a file that ends in .json");
        let refusal = |text: &str| of(text).unwrap_err().to_string();
        assert!(refusal("run.txt").ends_with("GA_TRACE=\"run.txt\" is not a file that ends in .json"));
        assert!(refusal("/no/such/folder/run.json").contains("there is no folder /no/such/folder"));
        assert!(of("run.json").unwrap().is_absolute());
        let folder = std::env::temp_dir().join(format!("global-arrays-report-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, target, why) in [
            ("out.json", "/dev/stdout", "leads to a descriptor"),
            ("far.json", "/no/such/folder/a.json", "no folder /no/such/folder"),
            ("round.json", "round.json", "Too many levels"),
        ] {
            std::os::unix::fs::symlink(target, folder.join(name)).unwrap();
            let refused = refusal(folder.join(name).to_str().unwrap());
            assert!(refused.contains(why), "{refused}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
