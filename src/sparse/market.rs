//! Matrix Market files (R. F. Boisvert, R. Pozo, K. A. Remington, *The Matrix Market exchange formats: initial design*, NISTIR 5935, 1996).
//!
//! What is wrong with a file is one message with the line and what to do. Nothing in a file can panic, and the size that a header claims
//! reserves no memory.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use num_complex::Complex;

use crate::{
    calls::located,
    element::Number,
    error::{Error, Result},
};

/// A line longer than this is no line of such a file.
const LINE_LIMIT: u64 = 1 << 16;
/// Binary files have these bytes, texts do not.
const BINARY: [std::ops::RangeInclusive<u8>; 2] = [0..=6, 28..=31];
const BANNER: &str = "such a file starts with `%%MatrixMarket matrix coordinate real general`";

/// A number that Matrix Market files hold: `f32`, `f64` and the complex numbers of both.
pub trait MarketNumber: Number + sealed::Sealed {
    /// Whether there is an imaginary part.
    const IS_COMPLEX: bool;
    /// From the parts in a file; a real number leaves out the second one.
    fn from_parts(real: f64, imaginary: f64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($t:ty, $complex:literal, $from:expr);* $(;)?) => {$(
        impl sealed::Sealed for $t {}
        impl MarketNumber for $t {
            const IS_COMPLEX: bool = $complex;
            fn from_parts(real: f64, imaginary: f64) -> Self {
                let from: fn(f64, f64) -> Self = $from;
                from(real, imaginary)
            }
        }
    )*};
}
numbers!(f32, false, |x, _| x as f32; f64, false, |x, _| x;
    Complex<f32>, true, |x, y| Complex::new(x as f32, y as f32); Complex<f64>, true, Complex::new);

/// A matrix as it stands in a file, of one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Triplets<T> {
    /// Numbers of rows and columns.
    pub shape: [usize; 2],
    /// Row, column and value, counted from 0, in the order of the file. A symmetric file gives both of each pair; a place may occur twice,
    /// and its values are meant to be added.
    pub entries: Vec<(usize, usize, T)>,
}

/// Reads a Matrix Market file: `coordinate` or `array`; `real`, `integer`, `unsigned-integer`, `pattern`, whose entries are one, or
/// `complex` if `T` is; `general`, `symmetric`, `skew-symmetric` or `hermitian`. Local: a program that is not parallel may call it too.
///
/// # Errors
/// [`Error::Format`] with the line and what is wrong: a file that cannot be read or is no such file, an index outside the matrix, a number
/// that is not finite, missing or surplus entries.
#[track_caller]
pub fn read_matrix_market<T: MarketNumber>(path: impl AsRef<Path>) -> Result<Triplets<T>> {
    located(move || read(path.as_ref()).map_err(|what| format_error(path.as_ref(), what)))
}

pub(super) fn format_error(path: &Path, what: String) -> Error {
    Error::Format { path: path.to_owned(), what, operation: "read_matrix_market".into() }
}

/// As [`read_matrix_market`]; the error is text.
pub(super) fn read<T: MarketNumber>(path: &Path) -> Result<Triplets<T>, String> {
    let file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    parse(BufReader::new(file))
}

fn parse<T: MarketNumber>(input: impl BufRead) -> Result<Triplets<T>, String> {
    let mut lines = Lines { input, number: 0, line: String::new() };
    let parsed = lines.next().and_then(|found| if found { matrix(&mut lines) } else { Err("the file is empty".into()) });
    parsed.map_err(|problem| format!("line {}: {problem}", lines.number))
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Real,
    Integer,
    /// What SciPy writes of unsigned numbers.
    Unsigned,
    Complex,
    Pattern,
}

#[derive(Clone, Copy, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
    Hermitian,
}

struct Header {
    is_array: bool,
    field: Field,
    symmetry: Symmetry,
}

/// From the first line on.
fn matrix<T: MarketNumber>(lines: &mut Lines<impl BufRead>) -> Result<Triplets<T>, String> {
    let header = header::<T>(&lines.line)?;
    while {
        lines.filled("the line with the size")?;
        lines.line.starts_with('%')
    } {}
    let sizes: Option<Vec<usize>> = lines.line.split_whitespace().map(|word| word.parse().ok()).collect();
    let (rows, columns, count) = match (header.is_array, sizes.as_deref()) {
        (false, Some(&[rows, columns, count])) => (rows, columns, Some(count)),
        (true, Some(&[rows, columns])) => (rows, columns, None),
        (false, _) => return Err(format!("`{}`: rows, columns and number of entries are expected", lines.clip())),
        (true, _) => return Err(format!("`{}`: rows and columns are expected", lines.clip())),
    };
    if header.symmetry != Symmetry::General && rows != columns {
        return Err(format!("{rows} rows and {columns} columns: only a square matrix has a symmetry"));
    }
    let mut triplets = Triplets { shape: [rows, columns], entries: Vec::new() };
    if let Some(count) = count {
        for done in 0..count {
            lines.filled(&format!("entry {} of {count}", done + 1))?;
            let mut words = lines.line.split_whitespace();
            let place = (words.next(), words.next());
            let (Some(row), Some(column)) = place else {
                return Err(format!("`{}`: row, column and value are expected", lines.clip()));
            };
            let (row, column) = (index(row, "row", rows)?, index(column, "column", columns)?);
            if header.symmetry != Symmetry::General && row < column {
                let (row, column) = (row + 1, column + 1);
                return Err(format!("row {row}, column {column} lies above the diagonal: a symmetric file stores the rest only"));
            }
            if header.symmetry == Symmetry::Skew && row == column {
                return Err(format!("row {0}, column {0} lies on the diagonal, which a skew-symmetric file leaves out", row + 1));
            }
            let value = value(words, header.field).map_err(|problem| format!("`{}`: {problem}", lines.clip()))?;
            triplets.push(header.symmetry, row, column, value)?;
        }
    } else {
        // Column by column; symmetric ones from the diagonal down, skew-symmetric ones from below it.
        for column in 0..if rows == 0 { 0 } else { columns } {
            let first = match header.symmetry {
                Symmetry::General => 0,
                Symmetry::Skew => column + 1,
                _ => column,
            };
            for row in first..rows {
                lines.filled(&format!("the entry of row {}, column {}", row + 1, column + 1))?;
                let words = lines.line.split_whitespace();
                let value = value(words, header.field).map_err(|problem| format!("`{}`: {problem}", lines.clip()))?;
                triplets.push(header.symmetry, row, column, value)?;
            }
        }
    }
    while lines.next()? {
        if !lines.line.is_empty() {
            return Err(format!("`{}` after the last entry: the size line is wrong, or two files were joined", lines.clip()));
        }
    }
    Ok(triplets)
}

fn header<T: MarketNumber>(line: &str) -> Result<Header, String> {
    let line = line.to_lowercase();
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.first() != Some(&"%%matrixmarket") {
        return Err(format!("not a Matrix Market file: {BANNER}"));
    }
    let [_, object, format, field, symmetry] = words[..] else { return Err(format!("five words are expected: {BANNER}")) };
    if object != "matrix" {
        return Err(format!("the file holds a `{object}`; only a `matrix` can be read"));
    }
    let is_array = match format {
        "coordinate" => false,
        "array" => true,
        other => return Err(format!("unknown format `{other}`: `coordinate` or `array` is expected")),
    };
    let field = match field {
        "real" | "double" => Field::Real,
        "integer" => Field::Integer,
        "unsigned-integer" => Field::Unsigned,
        "complex" if T::IS_COMPLEX => Field::Complex,
        "complex" => return Err("the numbers are complex: read it as `Complex<f32>` or `Complex<f64>`".into()),
        "pattern" if is_array => return Err("a pattern file has the format `coordinate`: an `array` has every entry".into()),
        "pattern" => Field::Pattern,
        other => {
            return Err(format!(
                "unknown field `{other}`: `real`, `integer`, `unsigned-integer`, `complex` or `pattern` is expected"
            ));
        }
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        "hermitian" => Symmetry::Hermitian,
        other => {
            return Err(format!(
                "unknown symmetry `{other}`: `general`, `symmetric`, `skew-symmetric` or `hermitian` is expected"
            ));
        }
    };
    Ok(Header { is_array, field, symmetry })
}

impl<T: MarketNumber> Triplets<T> {
    fn push(&mut self, symmetry: Symmetry, row: usize, column: usize, value: T) -> Result<(), String> {
        if symmetry == Symmetry::Hermitian && row == column && value.conj() != value {
            return Err(format!("row {0}, column {0}: the diagonal of a Hermitian matrix is real", row + 1));
        }
        self.entries.push((row, column, value));
        let mirrored = match symmetry {
            Symmetry::General => return Ok(()),
            Symmetry::Symmetric => value,
            Symmetry::Skew => T::ZERO - value,
            Symmetry::Hermitian => value.conj(),
        };
        if row != column {
            self.entries.push((column, row, mirrored));
        }
        Ok(())
    }
}

fn index(word: &str, what: &str, limit: usize) -> Result<usize, String> {
    match word.parse::<usize>() {
        Ok(0) => Err(format!("{what} 0: rows and columns are counted from 1")),
        Ok(found) if found <= limit => Ok(found - 1),
        Ok(found) => Err(format!("{what} {found} of a matrix with {limit}")),
        Err(_) => Err(format!("`{}` is not a {what} number", clip(word))),
    }
}

/// The rest of a line.
fn value<'a, T: MarketNumber>(mut words: impl Iterator<Item = &'a str>, field: Field) -> Result<T, String> {
    let mut next = |what: &str| number(words.next().ok_or_else(|| format!("{what} is missing"))?, field);
    let (real, imaginary) = match field {
        Field::Pattern => (1.0, 0.0),
        Field::Complex => (next("the real part")?, next("the imaginary part")?),
        _ => (next("the value")?, 0.0),
    };
    match words.next() {
        None => {
            let value = T::from_parts(real, imaginary);
            // Single precision has less of them.
            if value.scaled(T::ZERO) == T::ZERO { Ok(value) } else { Err("too large for the type of the elements".into()) }
        }
        Some(word) => Err(format!("`{}` is too much", clip(word))),
    }
}

fn number(word: &str, field: Field) -> Result<f64, String> {
    let least: i128 = match field {
        Field::Integer => -1 << 63,
        Field::Unsigned => 0,
        _ => {
            // Fortran writes the exponent of a double-precision number with a D.
            let value = word.replace(['d', 'D'], "e").parse().map_err(|_| format!("`{}` is not a number", clip(word)))?;
            return if f64::is_finite(value) { Ok(value) } else { Err(format!("`{}` is not a finite number", clip(word))) };
        }
    };
    match word.parse::<i128>() {
        Ok(value) if (least..1 << 64).contains(&value) => Ok(value as f64),
        _ => Err(format!("`{}` is not an integer from {least} to 2⁶⁴ − 1", clip(word))),
    }
}

/// Enough of a line to recognize it.
fn clip(line: &str) -> String {
    let short: String = line.chars().take(40).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

/// The lines of a file, numbered from 1, without blanks around them.
struct Lines<R> {
    input: R,
    number: u64,
    line: String,
}

impl<R: BufRead> Lines<R> {
    /// Goes to the next line; `false` at the end of the file.
    fn next(&mut self) -> Result<bool, String> {
        let mut bytes = Vec::new();
        self.number += 1;
        let read = self.input.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| format!("cannot be read: {error}"))?;
        if read as u64 == LINE_LIMIT {
            return Err(format!("longer than {LINE_LIMIT} characters: is this a text?"));
        }
        // Ctrl-Z ends the files of DOS.
        if bytes.iter().any(|byte| BINARY.iter().any(|range| range.contains(byte))) {
            return Err("not text: is this a compressed or binary file? Give the unpacked text".into());
        }
        // Older files have names in Latin-1 in their comments.
        let text = String::from_utf8_lossy(&bytes);
        self.line.clear();
        self.line.push_str(text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\u{1a}'));
        Ok(read > 0)
    }

    /// Goes to the next line that is not blank.
    fn filled(&mut self, what: &str) -> Result<(), String> {
        while self.next()? {
            if !self.line.is_empty() {
                return Ok(());
            }
        }
        Err(format!("the file ends before {what}: is it complete?"))
    }

    fn clip(&self) -> String {
        clip(&self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = "%%MatrixMarket matrix coordinate real general\n";

    fn entries<T: MarketNumber>(text: &str) -> Vec<(usize, usize, T)> {
        parse(text.as_bytes()).unwrap_or_else(|problem| panic!("{problem} in {text}")).entries
    }

    #[test]
    fn every_kind_is_read() {
        let text =
            "\u{feff}%%matrixmarket MATRIX coordinate Real general\r\n% note\n\n2 3 3\n1 1 1.5\n2 1 -.5D1\n\n2 3 +3.\n\x1a";
        let read: Triplets<f64> = parse(text.as_bytes()).unwrap();
        assert_eq!(read, Triplets { shape: [2, 3], entries: vec![(0, 0, 1.5), (1, 0, -5.0), (1, 2, 3.0)] });
        let of = |kind: &str, rest: &str| format!("%%MatrixMarket matrix {kind}\n{rest}");
        assert_eq!(
            entries::<f32>(&of("coordinate integer symmetric", "2 2 2\n2 1 7\n2 2 -1")),
            [(1, 0, 7.0), (0, 1, 7.0), (1, 1, -1.0)]
        );
        assert_eq!(entries::<f64>(&of("coordinate real skew-symmetric", "2 2 1\n2 1 7")), [(1, 0, 7.0), (0, 1, -7.0)]);
        assert_eq!(entries::<f64>(&of("coordinate pattern symmetric", "2 2 1\n2 1")), [(1, 0, 1.0), (0, 1, 1.0)]);
        let i = Complex::<f64>::i();
        assert_eq!(
            entries(&of("coordinate complex hermitian", "2 2 2\n2 1 3 4\n2 2 5 0")),
            [(1, 0, 4.0 * i + 3.0), (0, 1, -4.0 * i + 3.0), (1, 1, 0.0 * i + 5.0)]
        );
        assert_eq!(entries(&of("array complex general", "1 2\n1 2\n3 4")), [(0, 0, 2.0 * i + 1.0), (0, 1, 4.0 * i + 3.0)]);
        assert_eq!(entries(&of("coordinate real general", "1 1 1\n1 1 2.5")), [(0, 0, Complex::<f32>::new(2.5, 0.0))]);
        let array = entries::<f64>(&of("array real general", "2 2\n1\n2\n3\n4"));
        assert_eq!(array, [(0, 0, 1.0), (1, 0, 2.0), (0, 1, 3.0), (1, 1, 4.0)]);
        let array = entries::<f64>(&of("array real symmetric", "2 2\n1\n2\n3"));
        assert_eq!(array, [(0, 0, 1.0), (1, 0, 2.0), (0, 1, 2.0), (1, 1, 3.0)]);
        assert_eq!(entries::<f64>(&of("array integer skew-symmetric", "2 2\n4")), [(1, 0, 4.0), (0, 1, -4.0)]);
        assert_eq!(entries::<f64>(&of("array unsigned-integer general", "1 1\n18446744073709551615")), [(0, 0, 2f64.powi(64))]);
        assert_eq!(entries::<f64>(&of("coordinate real general", "0 5 0")), []);
    }

    #[test]
    fn every_refusal_names_line_and_cause() {
        let of = |kind: &str| format!("%%MatrixMarket matrix {kind}\n");
        let real = |rest: &str| format!("{REAL}{rest}");
        for (text, line, words) in [
            (String::new(), 1, "empty"),
            ("hello\n".into(), 1, "not a Matrix Market file"),
            ("%%MatrixMarket matrix coordinate real\n".into(), 1, "five words"),
            ("\u{1f}x\u{8}".into(), 1, "not text"),
            ("x".repeat(100_000), 1, "longer than"),
            ("%%MatrixMarket vector coordinate real general\n".into(), 1, "`vector`"),
            (of("list real general"), 1, "`list`"),
            (of("coordinate real triangular"), 1, "`triangular`"),
            (of("coordinate float general"), 1, "`float`"),
            (of("coordinate complex general"), 1, "read it as `Complex<f32>`"),
            (of("array pattern general"), 1, "`coordinate`"),
            (real("% only\n"), 3, "ends before the line with the size"),
            (real("2 2\n"), 2, "rows, columns and number of entries"),
            (real("2 -2 1\n"), 2, "rows, columns and number of entries"),
            (of("array real general") + "2 2 4\n", 2, "rows and columns are expected"),
            (of("coordinate real symmetric") + "3 2 1\n", 2, "3 rows and 2 columns"),
            (real("2 2 2\n1 1 1.0\n"), 4, "before entry 2 of 2"),
            (real("4 4 18446744073709551615\n1 1 1\n"), 4, "before entry 2 of"),
            (of("array real general") + "2 2\n1\n2\n3\n", 6, "before the entry of row 2, column 2"),
            (real("2 2 1\n1\n"), 3, "row, column and value"),
            (real("2 2 1\n1 1\n"), 3, "the value is missing"),
            (real("2 2 1\n1 1 1 1\n"), 3, "too much"),
            (real("2 2 1\n1 1 2.x\n"), 3, "`2.x` is not a number"),
            (real("2 2 1\n1 1 nan\n"), 3, "not a finite number"),
            (real("2 2 1\n1 1 1e999\n"), 3, "not a finite number"),
            (real("2 2 1\n0 1 1\n"), 3, "counted from 1"),
            (real("2 2 1\n1 3 1\n"), 3, "column 3 of a matrix with 2"),
            (real("2 2 1\n-1 1 1\n"), 3, "`-1` is not a row number"),
            (real("2 2 1\n1 1 1\n1 2 5\n"), 4, "after the last entry"),
            (of("coordinate integer general") + "1 1 1\n1 1 1.5\n", 3, "not an integer from -9223372036854775808"),
            (of("coordinate unsigned-integer general") + "1 1 1\n1 1 -1\n", 3, "not an integer from 0"),
            (of("coordinate real symmetric") + "2 2 1\n1 2 1\n", 3, "above the diagonal"),
            (of("coordinate real skew-symmetric") + "2 2 1\n1 1 1\n", 3, "on the diagonal"),
        ] {
            let found = parse::<f64>(text.as_bytes()).expect_err("must be refused");
            assert!(
                found.starts_with(&format!("line {line}: ")) && found.contains(words),
                "expected {line}, {words}; found {found}"
            );
        }
    }

    #[test]
    fn what_the_type_of_the_elements_cannot_hold_is_refused() {
        let found = parse::<f32>(format!("{REAL}1 1 1\n1 1 1e39\n").as_bytes()).expect_err("beyond single precision");
        assert!(found.contains("too large for the type"), "{found}");
        let hermitian = "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 2 3\n";
        let found = parse::<Complex<f64>>(hermitian.as_bytes()).expect_err("a diagonal that is not real");
        assert!(found.starts_with("line 3: row 1, column 1") && found.contains("real"), "{found}");
    }
}
