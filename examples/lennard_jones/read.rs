//! Files with atoms: NIST's sample configurations, LAMMPS dumps, extended XYZ; and the two tables that runs are compared with.
//!
//! Each format has a file of its own. Here is what they share: the lines of a file, compressed by gzip or not, and an error that
//! names the file and the line. Nothing in a file can panic, and the number of atoms that it claims reserves no memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::simulation::fold;
use crate::start::Start;
use crate::{dump, nist, xyz};

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {problem}", file.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
pub(crate) struct Rejected {
    file: PathBuf,
    line: Option<u64>,
    problem: String,
}

/// The line where the problem is, if it has one, and the problem.
pub(crate) type Problem = (Option<u64>, String);

/// A line longer than this is no line of these formats.
const LINE_LIMIT: u64 = 4096;

/// The lines of a file, numbered from 1.
pub(crate) struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    number: u64,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// Of a text, or of what decompresses to one.
    pub(crate) fn new(mut input: impl BufRead + 'a) -> io::Result<Self> {
        let packed = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let input: Box<dyn BufRead> = if packed { Box::new(BufReader::new(MultiGzDecoder::new(input))) } else { Box::new(input) };
        Ok(Lines { input, number: 0, line: Vec::new() })
    }

    /// The next line, without blanks around it, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, Problem> {
        self.line.clear();
        self.number += 1;
        let read = self.input.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut self.line);
        let read = read.map_err(|e| self.problem(format!("cannot be read: {e}")))?;
        if read as u64 == LINE_LIMIT {
            return Err(self.problem(format!("longer than {LINE_LIMIT} characters: not a file of atoms")));
        }
        if read == 0 {
            return Ok(None);
        }
        std::str::from_utf8(&self.line).map(|line| Some(line.trim())).map_err(|_| self.problem("not text"))
    }

    /// The next line, which must be there.
    pub(crate) fn expect(&mut self, what: &str) -> Result<&str, Problem> {
        if self.next()?.is_none() {
            return Err(self.problem(format!("the file ends where {what} should stand")));
        }
        // The line is taken anew: a conditional return of a borrow is refused by today's borrow checker.
        Ok(std::str::from_utf8(&self.line).unwrap_or_default().trim())
    }

    /// The next line as exactly as many numbers.
    pub(crate) fn numbers<const N: usize>(&mut self, what: &str) -> Result<[f64; N], Problem> {
        let line = self.expect(what)?;
        let numbers: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        let found: Option<[f64; N]> = numbers.and_then(|numbers| numbers.try_into().ok());
        found.ok_or_else(|| self.problem(format!("{what} expected: {N} finite numbers")))
    }

    /// A problem in the present line.
    pub(crate) fn problem(&self, what: impl Into<String>) -> Problem {
        (Some(self.number), what.into())
    }
}

/// What a file says of the kind of its atoms. There is one potential for all pairs, and the unit of mass is that of an atom.
#[derive(Debug, Default)]
pub(crate) struct Kind {
    /// What the first atom has, by the name of the column.
    first: HashMap<String, String>,
}

impl Kind {
    /// Checks what column `name` says of an atom.
    ///
    /// # Errors
    /// Another type or element than before; a mass other than 1.
    pub(crate) fn check(&mut self, name: &str, word: &str) -> Result<(), String> {
        match name {
            "type" | "element" | "species" | "Z" => match self.first.get(name) {
                Some(first) if first == word => Ok(()),
                Some(first) => Err(format!("`{name}` {word} after {first}: all atoms must be of one kind")),
                None => {
                    self.first.insert(name.to_owned(), word.to_owned());
                    Ok(())
                }
            },
            "mass" | "masses" if number(word) != Some(1.0) => {
                Err(format!("`{name}` {word}: all atoms must have mass 1, the unit of mass"))
            }
            _ => Ok(()),
        }
    }
}

/// A finite number.
pub(crate) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}

/// Reads a file by one of the formats.
pub(crate) fn read<T>(file: &Path, parse: impl FnOnce(Lines<'_>) -> Result<T, Problem>) -> Result<T, Rejected> {
    let rejected = |(line, problem)| Rejected { file: file.to_owned(), line, problem };
    let unreadable = |e: io::Error| rejected((None, format!("cannot be read: {e}")));
    let opened = File::open(file).map_err(unreadable)?;
    if opened.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    parse(Lines::new(BufReader::new(opened)).map_err(unreadable)?).map_err(rejected)
}

/// A NIST sample configuration.
///
/// # Errors
/// [`Rejected`], for every file that is not one; so for the others.
pub(crate) fn configuration(file: &Path) -> Result<Start, Rejected> {
    read(file, |lines| nist::parse(lines).and_then(whole))
}

/// The last frame of a LAMMPS dump or an extended XYZ file, whichever it is.
pub(crate) fn start(file: &Path) -> Result<Start, Rejected> {
    read(file, |mut lines| {
        let first = lines.next()?.unwrap_or_default().to_owned();
        let start = if first.starts_with("ITEM:") { dump::parse(lines, &first)? } else { xyz::parse(lines, &first)? };
        whole(start)
    })
}

/// What holds for every start: a box, atoms, all of them inside. Those outside are moved to their images in the periodic box.
fn whole(mut start: Start) -> Result<Start, Problem> {
    /// Farther out, in edges of the box, a coordinate has fewer than nine digits left for a place in it.
    const FARTHEST: f64 = 1e6;
    if start.positions.is_empty() {
        return Err((None, "there are no atoms".into()));
    }
    if start.positions.len() > u32::MAX as usize / 2 {
        return Err((None, format!("{} atoms are too many", start.positions.len())));
    }
    if let Some(d) = (0..3).find(|&d| start.lengths[d].is_nan() || start.lengths[d] <= 0.0) {
        return Err((None, format!("the box has edge {} along axis {d}", start.lengths[d])));
    }
    let lengths = start.lengths;
    let near = |at: &[f64; 3]| (0..3).all(|d| at[d].abs() <= FARTHEST * lengths[d]);
    if let Some(atom) = start.positions.iter().position(|at| !near(at)) {
        let at: [f64; 3] = std::array::from_fn(|d| start.positions[atom][d] + start.origin[d]);
        return Err((None, format!("atom {} at {at:?} is more than {FARTHEST:e} boxes away from the box", atom + 1)));
    }
    start.positions.iter_mut().for_each(|at| *at = fold(*at, lengths));
    Ok(start)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    /// What a file with this text would give.
    pub(crate) fn lines(text: &str) -> Lines<'_> {
        Lines::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn packed_files_are_unpacked() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(b"one\ntwo 2\n").unwrap();
        let packed = packer.finish().unwrap();
        let mut lines = Lines::new(&packed[..]).unwrap();
        assert_eq!(lines.next().unwrap(), Some("one"));
        assert_eq!(lines.next().unwrap(), Some("two 2"));
        assert_eq!(lines.next().unwrap(), None);
        // Cut short, it is an error and not the end.
        let mut lines = Lines::new(&packed[..packed.len() - 6]).unwrap();
        assert!((0..4).any(|_| lines.next().is_err()));
    }

    #[test]
    fn atoms_outside_are_wrapped() {
        let start = |x: f64| Start { origin: [-1.0; 3], lengths: [2.0; 3], positions: vec![[x, 1.0, 0.0]], velocities: vec![] };
        for (x, image) in [(0.1, 0.1), (2.0, 0.0), (2.25, 0.25), (-0.5, 1.5), (-200.5, 1.5), (1e6 + 0.5, 0.5), (-1e-17, 0.0)] {
            assert_eq!(whole(start(x)).unwrap().positions, [[image, 1.0, 0.0]], "{x}");
        }
        for far in [3e6, -1e300, f64::INFINITY, f64::NAN] {
            assert!(whole(start(far)).unwrap_err().1.contains("atom 1 at ["), "{far}");
        }
        assert!(whole(Start { positions: vec![], ..start(0.0) }).unwrap_err().1.contains("no atoms"));
        assert!(whole(Start { lengths: [2.0, 0.0, 2.0], ..start(0.0) }).unwrap_err().1.contains("edge 0 along axis 1"));
    }

    #[test]
    fn atoms_of_more_than_one_kind_are_refused() {
        let mut kind = Kind::default();
        assert!(kind.check("type", "1").is_ok() && kind.check("element", "Ar").is_ok() && kind.check("mass", "1.0").is_ok());
        assert!(kind.check("type", "1").is_ok() && kind.check("mass", "1").is_ok());
        assert!(kind.check("type", "2").unwrap_err().contains("`type` 2 after 1"));
        assert!(kind.check("element", "Kr").unwrap_err().contains("`element` Kr after Ar"));
        assert!(kind.check("mass", "39.948").unwrap_err().contains("`mass` 39.948"));
        assert!(kind.check("mass", "heavy").unwrap_err().contains("`mass` heavy"));
        assert!(kind.check("charge", "2").is_ok() && kind.check("charge", "3").is_ok());
    }
}
