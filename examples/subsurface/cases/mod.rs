//! The cases: each is a [`Problem`], says how long to simulate and what to look at, and judges what came out.

pub(crate) mod heterogeneous;
pub(crate) mod infiltration;
pub(crate) mod theis;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use global_arrays::prelude::*;
use program::lines::{self, Lines};

use crate::march::{Marched, Schedule};
use crate::problem::Problem;

/// A problem with an outcome.
pub(crate) trait Case: Problem {
    /// What reports call it.
    fn name(&self) -> String;

    /// How to cut time.
    fn schedule(&self) -> Schedule;

    /// Times at which to write the whole field [s]; steps end at them.
    fn frames(&self) -> Vec<f64> {
        self.schedule().times
    }

    /// What each observed number is of; nothing if that is all cells.
    fn observed(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is of interest in the heads after a step; asked on one rank.
    ///
    /// # Errors
    /// What the reads of the array give.
    fn observe(&self, time: f64, heads: &GlobalArray<f64, Ix3>) -> Result<Vec<f64>, Error>;

    /// Compares the observations, with their times, with the reference.
    fn judge(&self, history: &[(f64, Vec<f64>)], marched: &Marched) -> Verdict;
}

/// One comparison: an error, and what it may be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Check {
    /// Key of the error in the JSON line.
    pub(crate) key: &'static str,
    /// In words.
    pub(crate) what: &'static str,
    pub(crate) error: f64,
    pub(crate) tolerance: f64,
    pub(crate) unit: &'static str,
}

impl Check {
    /// An error that is not a number has not passed.
    pub(crate) fn passed(&self) -> bool {
        self.error <= self.tolerance
    }
}

/// What the picture shows under one name.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Dots for the reference, a line for what was computed.
    pub(crate) dots: bool,
}

/// What a case says of its outcome.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// The first is the program's `max_error`.
    pub(crate) checks: Vec<Check>,
    /// Figures without a limit: keys and values.
    pub(crate) figures: Vec<(&'static str, f64)>,
    /// Rows for the output file, with the names of their columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<f64>>,
    /// The picture.
    pub(crate) title: String,
    pub(crate) axes: (&'static str, &'static str),
    pub(crate) curves: Vec<Curve>,
}

/// A file beside this program's source.
pub(crate) fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

/// The text of a reference file, in which each line has its number.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    let unread = |what: String| format!("cannot read the reference {}: {what}", file.display());
    let opened = File::open(file).map_err(|error| unread(error.to_string()))?;
    let mut lines = Lines::of(BufReader::new(opened));
    let (mut text, mut number) = (String::new(), 1);
    let problem = |(line, what): lines::Problem| unread(line.map_or(what.clone(), |line| format!("line {line}: {what}")));
    while lines.next_filled().map_err(problem)?.is_some() {
        text += &"\n".repeat((lines.number - number) as usize);
        text += lines.present();
        number = lines.number;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_other_programs_are_read() {
        let file = std::env::temp_dir().join(format!("subsurface-{}-latin.csv", std::process::id()));
        for (bytes, text) in [
            (&b"# M\xfcller\n"[..], "# Müller"),
            (b"# M\xc3\xbcller\n", "# Müller"),
            (b"\xef\xbb\xbfa,b\r\n\r\n\n1,2\r\n\x1a", "a,b\n\n\n1,2"),
            (b"\n1,2", "\n1,2"),
        ] {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(read(&file).as_deref(), Ok(text));
        }
        std::fs::write(&file, b"\xff\xfe1\0").unwrap();
        assert!(read(&file).unwrap_err().contains("latin.csv: line 1: text in UTF-16"));
        std::fs::remove_file(&file).unwrap();
        assert!(read(&file).unwrap_err().contains("latin.csv"));
    }

    #[test]
    fn an_error_that_is_not_finite_has_not_passed() {
        let check = |error| Check { key: "a", what: "a", error, tolerance: 1.0, unit: "m" };
        assert!(check(1.0).passed());
        assert!([1.5, f64::NAN, f64::INFINITY].into_iter().all(|error| !check(error).passed()));
    }
}
