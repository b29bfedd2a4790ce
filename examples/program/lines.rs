//! The lines of a text that a user gives, numbered for errors.
//!
//! Texts come from many programs and times. A byte-order mark at the start is skipped. A line that is not UTF-8 is taken for Latin-1, in which
//! older files have names in their titles and comments. Ctrl-Z, which ends the files of DOS, is not a part of the text. Nothing in a text can panic, and
//! the memory for a line is at most a few times its limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The line where the problem is, if it has one, and the problem.
pub type Problem = (Option<u64>, String);

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {problem}", file.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
pub struct Rejected {
    file: PathBuf,
    line: Option<u64>,
    problem: String,
}

/// Reads a file by `parse`.
///
/// # Errors
/// The file cannot be read; those of `parse`.
pub fn read<T>(file: &Path, parse: impl FnOnce(BufReader<File>) -> Result<T, Problem>) -> Result<T, Rejected> {
    let open = || {
        let opened = File::open(file)?;
        if opened.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(BufReader::new(opened)) }
    };
    let read = open().map_err(unreadable).and_then(parse);
    read.map_err(|(line, problem)| Rejected { file: file.to_owned(), line, problem })
}

/// The problem of a file that the system does not read.
pub fn unreadable(error: io::Error) -> Problem {
    (None, format!("cannot be read: {error}"))
}

/// A line longer than this is no line of a text. The longest tells of 32 kinds of atoms what holds between each two.
const LINE_LIMIT: u64 = 1 << 16;

/// What editors of Windows write before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What programs of DOS write behind the last line.
const CTRL_Z: u8 = 26;

/// The lines of a text, numbered from 1.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    /// Of the line that was read last.
    pub number: u64,
    /// Whether that line is the next one, too.
    pub is_put_back: bool,
    bytes: Vec<u8>,
    line: String,
}

impl<R: BufRead> Lines<R> {
    /// The lines of an input, none read yet.
    pub fn of(input: R) -> Self {
        Lines { input, number: 0, is_put_back: false, bytes: Vec::new(), line: String::new() }
    }

    /// The next line, without blanks around it, if there is one.
    ///
    /// # Errors
    /// The line and what is wrong: it cannot be read, is too long or no text.
    pub fn next_line(&mut self) -> Result<Option<&str>, Problem> {
        if std::mem::take(&mut self.is_put_back) {
            return Ok(Some(self.present()));
        }
        self.bytes.clear();
        self.line.clear();
        self.number += 1;
        let read = self.input.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut self.bytes);
        let read = read.map_err(|e| self.problem(format!("cannot be read: {e}")))?;
        if read as u64 == LINE_LIMIT {
            return Err(self.problem(format!("longer than {LINE_LIMIT} characters: is this a text?")));
        }
        if self.number == 1 && [b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| self.bytes.starts_with(*mark)) {
            return Err(self.problem("text in UTF-16: save the file as UTF-8"));
        }
        if !self.bytes.ends_with(b"\n") {
            let text = self.bytes.iter().rposition(|&byte| byte != CTRL_Z).map_or(0, |last| last + 1);
            self.bytes.truncate(text);
        }
        // Those that no text has, but every compressed file in its first bytes.
        if self.bytes.iter().any(|byte| matches!(byte, 0..=6 | 14..=26 | 28..=31)) {
            return Err(self.problem("not text: is this a compressed or binary file? Give the unpacked text"));
        }
        let mark = if self.number == 1 { BYTE_ORDER_MARK } else { &[] };
        let bytes = self.bytes.strip_prefix(mark).unwrap_or(&self.bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => self.line.push_str(text),
            // The characters of Latin-1 are the first 256 of Unicode.
            Err(_) => self.line.extend(bytes.iter().map(|&byte| char::from(byte))),
        }
        Ok((!self.bytes.is_empty()).then(|| self.present()))
    }

    /// The next line that is not blank, if there is one.
    ///
    /// # Errors
    /// As [`next_line`](Self::next_line).
    pub fn next_filled(&mut self) -> Result<Option<&str>, Problem> {
        while self.next_line()?.is_some() {
            if !self.present().is_empty() {
                return Ok(Some(self.present()));
            }
        }
        Ok(None)
    }

    /// The next line, which must be there.
    ///
    /// # Errors
    /// As [`next_line`](Self::next_line); no line is left.
    pub fn expect(&mut self, what: &str) -> Result<&str, Problem> {
        if self.next_line()?.is_none() {
            return Err(self.problem(format!("the file ends where {what} should stand")));
        }
        Ok(self.present())
    }

    /// The next line as exactly as many numbers.
    ///
    /// # Errors
    /// As [`next_line`](Self::next_line); not `N` finite numbers.
    pub fn numbers<const N: usize>(&mut self, what: &str) -> Result<[f64; N], Problem> {
        let line = self.expect(what)?;
        let numbers: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        let found: Option<[f64; N]> = numbers.and_then(|numbers| numbers.try_into().ok());
        found.ok_or_else(|| self.problem(format!("{what} expected: {N} finite numbers")))
    }

    /// The line that was read last, without blanks around it.
    pub fn present(&self) -> &str {
        self.line.trim()
    }

    /// A problem in the present line.
    pub fn problem(&self, what: impl Into<String>) -> Problem {
        (Some(self.number), what.into())
    }
}

/// A finite number.
pub fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_characters_of_other_times_are_read() {
        let mut lines = Lines::of(&b"\xef\xbb\xbf one\r\n\n \t\nM\xfcller \xc4\nM\xc3\xbcller\n\xef\xbb\xbf"[..]);
        assert_eq!(lines.next_line(), Ok(Some("one")));
        assert_eq!(lines.next_filled(), Ok(Some("Müller Ä")));
        assert_eq!(lines.problem("here"), (Some(4), "here".to_owned()));
        lines.is_put_back = true;
        assert_eq!(lines.next_line(), Ok(Some("Müller Ä")));
        assert_eq!((lines.number, lines.next_line()), (4, Ok(Some("Müller"))));
        assert_eq!(lines.next_line(), Ok(Some("\u{feff}")));
        assert_eq!(lines.next_line(), Ok(None));
        assert_eq!(lines.next_filled(), Ok(None));
    }

    #[test]
    fn the_end_of_a_dos_file_is_no_text() {
        for text in [&b"one\r\ntwo\r\n\x1a"[..], b"one\r\ntwo\x1a\x1a\x1a", b"one\r\ntwo\r\n"] {
            let mut lines = Lines::of(text);
            assert_eq!(lines.next_line(), Ok(Some("one")));
            assert_eq!(lines.next_line(), Ok(Some("two")));
            assert_eq!(lines.next_line(), Ok(None));
        }
        assert!(Lines::of(&b"one\x1atwo\n"[..]).next_line().unwrap_err().1.contains("not text"));
        assert_eq!(Lines::of(&b"\x1a"[..]).next_line(), Ok(None));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for text in [&b"\xff\xfeo\0n\0e\0\n\0"[..], b"\xfe\xff\0o\0n\0e\0\n"] {
            assert!(Lines::of(text).next_line().map(|_| ()).unwrap_err().1.contains("UTF-16"));
        }
        for text in [&b"\x1f\x8b\x08\x08"[..], b"PK\x03\x04", b"one\0two", &[b'x'; 100_000]] {
            let (line, problem) = Lines::of(text).next_line().map(|_| ()).unwrap_err();
            assert!(line == Some(1) && problem.contains("text"), "{problem}");
        }
        assert!(Lines::of(&b"\t\x1b[0m\x0c\x0b\n"[..]).next_line().is_ok());
    }
}
