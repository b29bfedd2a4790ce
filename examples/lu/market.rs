//! Reading a Matrix Market file (R. F. Boisvert, R. Pozo, K. A. Remington, *The Matrix Market exchange formats: initial
//! design*, NISTIR 5935, 1996).
//!
//! Accepted: `matrix`, `coordinate` or `array`, `real`, `integer` or `unsigned-integer`, `general`, `symmetric` or `skew-symmetric`, square.
//! Entries given twice are added up, as is usual for assembled matrices. Everything else is one error that names the file,
//! the line and what to do; nothing in a file can panic, and the size that a header claims reserves no memory.
//!
//! Why a reader of our own, of one concept and no dependency: with the crates there are, a user who has a bad file is not
//! helped, which is what half of this module is for. `sprs` 0.11 answers "Bad matrix market file." to most mistakes, reads
//! past surplus entries, knows no `array` format and panics on an index out of range. `nalgebra-sparse` 0.12 is right in
//! what it accepts, but has no line in its errors for wrong counts, indices and pattern files, keeps the whole file as a
//! parse tree, and brings 46 crates and 20 seconds of building, two thirds of what this whole crate takes.

use std::io::BufRead;
use std::path::Path;

use program::lines::{self, Lines, Problem, Rejected};

/// A square matrix as read: entries sorted by column, then row, each place once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sparse {
    /// Rows and columns.
    pub(crate) order: usize,
    /// (row, column, value), counted from 0.
    pub(crate) entries: Vec<(usize, usize, f64)>,
}

/// Reads a column of so many rows.
///
/// # Errors
///
/// [`Rejected`], for every file that is not one.
pub(crate) fn read_column(file: &Path, rows: usize) -> Result<Vec<f64>, Rejected> {
    let entries = open(file, Shape::Column(rows))?.entries;
    let mut column = vec![0.0; rows];
    entries.into_iter().for_each(|(row, _, value)| column[row] = value);
    Ok(column)
}

/// The file of a column, each number with as many digits as tell it from all others.
pub(crate) fn column(values: &[f64]) -> String {
    let mut text = format!("%%MatrixMarket matrix array real general\n{} 1\n", values.len());
    values.iter().for_each(|value| text += &format!("{value:e}\n"));
    text
}

/// What a file has to hold.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Square,
    /// Of so many rows.
    Column(usize),
}

/// Reads a square real matrix.
///
/// # Errors
///
/// [`Rejected`], for every file that is not one.
pub(crate) fn read(file: &Path) -> Result<Sparse, Rejected> {
    let Entries { rows, entries, .. } = open(file, Shape::Square)?;
    Ok(Sparse { order: rows, entries })
}

/// A matrix of any shape, sorted and added up as [`Sparse`] is.
struct Entries {
    rows: usize,
    columns: usize,
    entries: Vec<(usize, usize, f64)>,
}

fn open(file: &Path, shape: Shape) -> Result<Entries, Rejected> {
    lines::read(file, |opened| parse(opened, shape))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Coordinate,
    Array,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Real,
    Integer,
    /// What SciPy writes of unsigned numbers.
    Unsigned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

#[derive(Debug, Clone, Copy)]
struct Header {
    format: Format,
    field: Field,
    symmetry: Symmetry,
}

fn parse(input: impl BufRead, shape: Shape) -> Result<Entries, Problem> {
    let mut lines = Lines::of(input);
    let banner = lines.next_line()?.ok_or((None, "the file is empty".to_owned()))?;
    let header = header(banner).map_err(|problem| (Some(1), problem))?;
    let (rows, columns, count) = size(&mut lines, header, shape)?;
    let mut matrix = Entries { rows, columns, entries: Vec::new() };
    match header.format {
        Format::Coordinate => coordinates(&mut lines, header, count, &mut matrix)?,
        Format::Array => array(&mut lines, header, count, &mut matrix)?,
    }
    if let Some(line) = lines.next_filled()? {
        let problem =
            format!("`{}` after the last of {count} entries: the size line is wrong, or two files were joined", clip(line));
        return Err(lines.problem(problem));
    }
    add_up(&mut matrix.entries);
    if let Some((row, column, value)) = matrix.entries.iter().find(|e| !e.2.is_finite()) {
        return Err((None, format!("entries for row {}, column {} add up to {value}", row + 1, column + 1)));
    }
    Ok(matrix)
}

fn header(line: &str) -> Result<Header, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [first, object, format, field, symmetry] = words[..] else {
        return Err(if words.first() == Some(&"%%matrixmarket") {
            format!("`{}`: five words are expected, as in `%%MatrixMarket matrix coordinate real general`", clip(line))
        } else {
            "not a Matrix Market file: such a file starts with `%%MatrixMarket matrix coordinate real general`".into()
        });
    };
    if first != "%%matrixmarket" {
        return Err("not a Matrix Market file: such a file starts with `%%MatrixMarket matrix coordinate real general`".into());
    }
    if object != "matrix" {
        return Err(format!("the file holds a `{object}`; only a `matrix` can be read"));
    }
    let format = match format {
        "coordinate" => Format::Coordinate,
        "array" => Format::Array,
        other => return Err(format!("unknown format `{other}`: `coordinate` or `array` is expected")),
    };
    let field = match field {
        "real" => Field::Real,
        "integer" => Field::Integer,
        "unsigned-integer" => Field::Unsigned,
        "pattern" => return Err("a pattern file tells where entries are but not their values: give a `real` one".into()),
        "complex" => return Err("complex matrices are not supported: give a `real` one".into()),
        other => return Err(format!("unknown field `{other}`: `real`, `integer` or `unsigned-integer` is expected")),
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        "hermitian" => return Err("a hermitian matrix is complex, which is not supported: give a `symmetric` one".into()),
        other => return Err(format!("unknown symmetry `{other}`: `general`, `symmetric` or `skew-symmetric` is expected")),
    };
    Ok(Header { format, field, symmetry })
}

/// Rows, columns, and the number of entries that follow.
fn size<R: BufRead>(lines: &mut Lines<R>, header: Header, shape: Shape) -> Result<(usize, usize, usize), Problem> {
    let mut line = lines.next_filled()?;
    while line.is_some_and(|line| line.starts_with('%')) {
        line = lines.next_filled()?;
    }
    let line = line.map(str::to_owned);
    let here = Some(lines.number);
    let line = line.ok_or((here, "the file ends before the line with the size: is it complete?".to_owned()))?;
    let numbers: Option<Vec<usize>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    let (rows, columns, count) = match (header.format, numbers.as_deref()) {
        (Format::Coordinate, Some(&[rows, columns, count])) => (rows, columns, Some(count)),
        (Format::Array, Some(&[rows, columns])) => (rows, columns, None),
        (Format::Coordinate, _) => {
            return Err((here, format!("`{}`: rows, columns and number of entries are expected", clip(&line))));
        }
        (Format::Array, _) => return Err((here, format!("`{}`: rows and columns are expected", clip(&line)))),
    };
    if let Shape::Column(wanted) = shape {
        if (rows, columns) != (wanted, 1) {
            return Err((here, format!("the right-hand side must be {wanted} x 1, not {rows} x {columns}")));
        }
        if header.symmetry != Symmetry::General {
            return Err((Some(1), "a right-hand side is `general`: it has no symmetry".into()));
        }
        return Ok((rows, columns, count.unwrap_or(rows)));
    }
    if rows != columns {
        return Err((here, format!("{rows} rows and {columns} columns: LU needs a square matrix")));
    }
    if rows == 0 {
        return Err((here, "the matrix has no rows: there is nothing to factor".into()));
    }
    let square = rows.checked_mul(rows);
    let square = square.ok_or((here, format!("a matrix of {rows} rows has more entries than this machine can count")))?;
    let stored = match header.symmetry {
        Symmetry::General => square,
        Symmetry::Symmetric => square - (square - rows) / 2,
        Symmetry::Skew => (square - rows) / 2,
    };
    Ok((rows, columns, count.unwrap_or(stored)))
}

fn coordinates<R: BufRead>(lines: &mut Lines<R>, header: Header, count: usize, matrix: &mut Entries) -> Result<(), Problem> {
    for done in 0..count {
        let line = entry_line(lines, done, count)?.to_owned();
        let entry = || {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [row, column, value] = words[..] else {
                return Err(format!("`{}`: row, column and value are expected", clip(&line)));
            };
            let (row, column) = (index(row, "row", matrix.rows)?, index(column, "column", matrix.columns)?);
            let value = number(value, header.field)?;
            if header.symmetry != Symmetry::General && row < column {
                return Err(format!(
                    "row {}, column {} lies above the diagonal: a symmetric file stores the rest only",
                    row + 1,
                    column + 1
                ));
            }
            if header.symmetry == Symmetry::Skew && row == column {
                return Err(format!("row {0}, column {0} lies on the diagonal, which a skew-symmetric file leaves out", row + 1));
            }
            Ok((row, column, value))
        };
        let entry = entry().map_err(|problem| lines.problem(problem))?;
        push(matrix, header.symmetry, entry);
    }
    Ok(())
}

/// Column by column; symmetric ones from the diagonal down, skew-symmetric ones from below it.
fn array<R: BufRead>(lines: &mut Lines<R>, header: Header, count: usize, matrix: &mut Entries) -> Result<(), Problem> {
    let mut done = 0;
    for column in 0..matrix.columns {
        let first = match header.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric => column,
            Symmetry::Skew => column + 1,
        };
        for row in first..matrix.rows {
            let value = number(entry_line(lines, done, count)?, header.field);
            push(matrix, header.symmetry, (row, column, value.map_err(|problem| lines.problem(problem))?));
            done += 1;
        }
    }
    Ok(())
}

fn entry_line<R: BufRead>(lines: &mut Lines<R>, done: usize, count: usize) -> Result<&str, Problem> {
    if lines.next_filled()?.is_none() {
        return Err(lines.problem(format!("the file ends after {done} of {count} entries: is it complete?")));
    }
    Ok(lines.present())
}

fn push(matrix: &mut Entries, symmetry: Symmetry, (row, column, value): (usize, usize, f64)) {
    matrix.entries.push((row, column, value));
    if row != column {
        match symmetry {
            Symmetry::General => {}
            Symmetry::Symmetric => matrix.entries.push((column, row, value)),
            Symmetry::Skew => matrix.entries.push((column, row, -value)),
        }
    }
}

fn index(word: &str, what: &str, order: usize) -> Result<usize, String> {
    match word.parse::<usize>() {
        Ok(0) => Err(format!("{what} 0: rows and columns are counted from 1")),
        Ok(found) if found <= order => Ok(found - 1),
        Ok(found) => Err(format!("{what} {found} of a matrix with {order}")),
        Err(_) => Err(format!("`{}` is not a {what} number", clip(word))),
    }
}

fn number(word: &str, field: Field) -> Result<f64, String> {
    let integer = |least: i128, range: &str| match word.parse::<i128>() {
        Ok(value) if (least..1 << 64).contains(&value) => Ok(value as f64),
        _ => Err(format!("`{}` is not an integer from {range} to 2⁶⁴ − 1", clip(word))),
    };
    match field {
        Field::Real => {}
        Field::Integer => return integer(-1 << 63, "−2⁶³"),
        Field::Unsigned => return integer(0, "0"),
    }
    // Fortran writes the exponent of a double-precision number with a D.
    let value: f64 = word.replace(['d', 'D'], "e").parse().map_err(|_| format!("`{}` is not a number", clip(word)))?;
    if value.is_finite() { Ok(value) } else { Err(format!("`{}` is not a finite number", clip(word))) }
}

/// Sorts and adds up entries for the same place.
fn add_up(entries: &mut Vec<(usize, usize, f64)>) {
    entries.sort_by_key(|&(row, column, _)| (column, row));
    entries.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
}

/// Enough of a line to recognise it.
fn clip(line: &str) -> String {
    let mut short: String = line.chars().take(40).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = "%%MatrixMarket matrix coordinate real general\n";

    fn problem(text: impl AsRef<[u8]>) -> String {
        let (line, problem) = parse(text.as_ref(), Shape::Square).map(drop).expect_err("must be refused");
        format!("{}: {problem}", line.map_or("-".into(), |l| l.to_string()))
    }

    #[test]
    fn every_accepted_kind() {
        let parsed = |text: &str| parse(text.as_bytes(), Shape::Square).unwrap().entries;
        let text = "%%matrixmarket MATRIX coordinate Real general\r\n% note\n\n2 2 3\n1 1 1.5\n2 1 -.5e1\n\n2 2 +3.\n\n";
        assert_eq!(parsed(text), [(0, 0, 1.5), (1, 0, -5.0), (1, 1, 3.0)]);
        assert_eq!(
            parsed("%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n2 1 7\n2 2 -1"),
            [(1, 0, 7.0), (0, 1, 7.0), (1, 1, -1.0)]
        );
        assert_eq!(parsed("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 7\n"), [(1, 0, 7.0), (0, 1, -7.0)]);
        assert_eq!(
            parsed("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n"),
            [(0, 0, 1.0), (1, 0, 2.0), (0, 1, 3.0), (1, 1, 4.0)]
        );
        assert_eq!(
            parsed("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n"),
            [(0, 0, 1.0), (1, 0, 2.0), (0, 1, 2.0), (1, 1, 3.0)]
        );
        assert_eq!(
            parsed("%%MatrixMarket matrix coordinate unsigned-integer general\n2 2 2\n1 1 18446744073709551615\n2 2 0\n"),
            [(0, 0, 18446744073709551615.0), (1, 1, 0.0)]
        );
        assert_eq!(
            parsed("%%MatrixMarket matrix array integer general\n2 2\n18446744073709551615\n0\n0\n-9223372036854775808\n"),
            [(0, 0, 18446744073709551615.0), (1, 0, 0.0), (0, 1, 0.0), (1, 1, -9223372036854775808.0)]
        );
        assert_eq!(parsed("%%MatrixMarket matrix array integer skew-symmetric\n2 2\n4\n"), [(1, 0, 4.0), (0, 1, -4.0)]);
    }

    #[test]
    fn marks_of_editors_and_names_in_latin_1_are_read() {
        let text = [b"\xef\xbb\xbf".as_slice(), REAL.as_bytes(), b"% M\xfcller\n1 1 1\n1 1 2\n"].concat();
        assert_eq!(parse(&text[..], Shape::Square).unwrap().entries, [(0, 0, 2.0)]);
    }

    #[test]
    fn entries_given_twice_are_added() {
        assert_eq!(
            parse(format!("{REAL}2 2 3\n2 1 1\n1 1 2\n2 1 0.5\n").as_bytes(), Shape::Square).unwrap().entries,
            [(0, 0, 2.0), (1, 0, 1.5)]
        );
        assert!(problem(format!("{REAL}1 1 2\n1 1 1e308\n1 1 1e308\n")).contains("row 1, column 1 add up to inf"));
    }

    #[test]
    fn every_refusal_names_line_and_cause() {
        let entries = |text: &str| problem(format!("{REAL}{text}"));
        for (found, line, words) in [
            (problem(""), "-", "empty"),
            (problem("hello\n"), "1", "not a Matrix Market file"),
            (problem("%%MatrixMarket matrix coordinate real\n"), "1", "five words"),
            (problem(b"\x1f\x8b\x08".as_slice()), "1", "not text"),
            (problem([b'x'; 100_000]), "1", "longer than"),
            (problem("%%MatrixMarket vector coordinate real general\n"), "1", "`vector`"),
            (problem("%%MatrixMarket matrix list real general\n"), "1", "`list`"),
            (problem("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n"), "1", "pattern"),
            (problem("%%MatrixMarket matrix coordinate complex general\n"), "1", "complex"),
            (problem("%%MatrixMarket matrix coordinate real hermitian\n"), "1", "hermitian"),
            (problem("%%MatrixMarket matrix coordinate real triangular\n"), "1", "`triangular`"),
            (entries("% only\n"), "3", "ends before the line with the size"),
            (entries("2 2\n"), "2", "rows, columns and number of entries"),
            (entries("2 -2 1\n"), "2", "rows, columns and number of entries"),
            (entries("3 2 1\n"), "2", "3 rows and 2 columns"),
            (entries("0 0 0\n"), "2", "no rows"),
            (entries("2 2 2\n1 1 1.0\n"), "4", "after 1 of 2 entries"),
            (entries("2 2 1\n1 1\n"), "3", "row, column and value"),
            (entries("2 2 1\n1 1 1 1\n"), "3", "row, column and value"),
            (entries("2 2 1\n1 1 2.x\n"), "3", "`2.x` is not a number"),
            (entries("2 2 1\n1 1 nan\n"), "3", "not a finite number"),
            (entries("2 2 1\n1 1 1e999\n"), "3", "not a finite number"),
            (entries("2 2 1\n0 1 1\n"), "3", "counted from 1"),
            (entries("2 2 1\n1 3 1\n"), "3", "column 3 of a matrix with 2"),
            (entries("2 2 1\n-1 1 1\n"), "3", "`-1` is not a row number"),
            (entries("2 2 1\n1 1 1\n1 2 5\n"), "4", "after the last of 1 entries"),
            (entries("2 2 99999999999999999999 \n"), "2", "number of entries are expected"),
            (entries("18446744073709551615 18446744073709551615 1\n"), "2", "more entries than"),
            (entries("4 4 18446744073709551615\n1 1 1\n"), "4", "after 1 of 18446744073709551615"),
            (problem("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n"), "3", "not an integer"),
            (problem("%%MatrixMarket matrix array integer general\n1 1\n18446744073709551616\n"), "3", "from −2⁶³ to 2⁶⁴ − 1"),
            (problem("%%MatrixMarket matrix array integer general\n1 1\n-9223372036854775809\n"), "3", "from −2⁶³ to 2⁶⁴ − 1"),
            (problem("%%MatrixMarket matrix array unsigned-integer general\n1 1\n-1\n"), "3", "from 0 to 2⁶⁴ − 1"),
            (problem("%%MatrixMarket matrix array double general\n1 1\n1\n"), "1", "unknown field `double`"),
            (problem("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n"), "3", "above the diagonal"),
            (problem("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n"), "3", "on the diagonal"),
            (
                problem("%%MatrixMarket matrix array real symmetric\n18446744073709551615 18446744073709551615\n1\n"),
                "2",
                "more entries than",
            ),
            (problem("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n"), "6", "after 3 of 4 entries"),
            (problem("%%MatrixMarket matrix array real general\n2 2 4\n"), "2", "rows and columns are expected"),
        ] {
            assert!(found.starts_with(&format!("{line}: ")) && found.contains(words), "expected {line}, {words}; found {found}");
        }
    }

    #[test]
    fn columns_are_read_as_they_are_written() {
        let read = |text: &str| parse(text.as_bytes(), Shape::Column(3)).map(|read| read.entries);
        let values = [0.1 + 0.2, -5e-324, 1.7976931348623157e308];
        let expected: Vec<_> = values.into_iter().enumerate().map(|(row, value)| (row, 0, value)).collect();
        assert_eq!(read(&column(&values)), Ok(expected));
        assert_eq!(read(&format!("{REAL}3 1 1\n2 1 7\n")), Ok(vec![(1, 0, 7.0)]));
        for (text, line, words) in [
            (format!("{REAL}2 1 1\n2 1 7\n"), 2, "must be 3 x 1, not 2 x 1"),
            (format!("{REAL}3 3 1\n2 1 7\n"), 2, "must be 3 x 1, not 3 x 3"),
            (format!("{REAL}3 1 1\n2 2 7\n"), 3, "column 2 of a matrix with 1"),
            ("%%MatrixMarket matrix array real symmetric\n3 1\n1\n2\n3\n".to_owned(), 1, "`general`"),
            ("%%MatrixMarket matrix array real general\n3 1\n1\n2\n".to_owned(), 5, "after 2 of 3 entries"),
        ] {
            let (at, problem) = read(&text).unwrap_err();
            assert!(at == Some(line) && problem.contains(words), "{at:?}: {problem}");
        }
    }

    #[test]
    fn exponents_of_fortran_are_read() {
        for (word, value) in [("1D0", 1.0), ("-2.5d-3", -2.5e-3), ("1.0D+02", 100.0), (".5D1", 5.0), ("3E2", 300.0)] {
            assert_eq!(number(word, Field::Real), Ok(value), "{word}");
        }
        for word in ["D0", "1D", "1D0D0", "1D1.5", "d", "1DD0", "1eD0"] {
            assert!(number(word, Field::Real).unwrap_err().contains("is not a number"), "{word}");
        }
        assert!(number("1D999", Field::Real).unwrap_err().contains("finite"));
        assert!(number("1D0", Field::Integer).unwrap_err().contains("not an integer"));
    }

    #[test]
    fn files_that_are_not_there_and_files_that_are() {
        let missing = read(Path::new("no/such.mtx")).unwrap_err().to_string();
        assert!(missing.starts_with("no/such.mtx: cannot be read: "), "{missing}");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        assert!(read(&data).unwrap_err().to_string().contains("cannot be read"));
        let west = read(&data.join("west0479.mtx")).unwrap();
        assert_eq!((west.order, west.entries.len()), (479, 1910));
        let west = read(&data.join("west0067.mtx")).unwrap();
        assert_eq!((west.order, west.entries.len(), west.entries[0]), (67, 294, (4, 0, -0.2788416)));
    }
}
