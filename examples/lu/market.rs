//! Systems in Matrix Market files, which the library reads (`sparse::read_matrix_market`): square matrices without symmetry or with one, and
//! right-hand sides. Entries given twice are added up, as is usual for assembled matrices.

use std::path::Path;

use global_arrays::{
    Error,
    sparse::{Triplets, read_matrix_market},
};

/// A square matrix as read: entries sorted by column, then row, each place once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sparse {
    /// Rows and columns.
    pub(crate) order: usize,
    /// (row, column, value), counted from 0.
    pub(crate) entries: Vec<(usize, usize, f64)>,
}

/// Reads a square real matrix.
///
/// # Errors
///
/// What is wrong with the file, and in which line.
pub(crate) fn read(file: &Path) -> Result<Sparse, String> {
    let Triplets { shape: [rows, columns], entries } = open(file)?;
    let wrong = |what: String| Err(format!("{}: {what}", file.display()));
    if rows != columns {
        return wrong(format!("{rows} rows and {columns} columns: LU needs a square matrix"));
    }
    if rows == 0 {
        return wrong("the matrix has no rows: there is nothing to factor".into());
    }
    Ok(Sparse { order: rows, entries })
}

/// Reads a column with a given number of rows.
///
/// # Errors
///
/// What is wrong with the file, and in which line.
pub(crate) fn read_column(file: &Path, rows: usize) -> Result<Vec<f64>, String> {
    let Triplets { shape, entries } = open(file)?;
    if shape != [rows, 1] {
        return Err(format!("{}: the right-hand side must be {rows} x 1, not {} x {}", file.display(), shape[0], shape[1]));
    }
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

/// A file's entries, sorted and added up as [`Sparse`] says.
fn open(file: &Path) -> Result<Triplets<f64>, String> {
    let mut read = read_matrix_market::<f64>(file).map_err(|error| match error {
        Error::Format { path, what, .. } => format!("{}: {what}", path.display()),
        other => other.to_string(),
    })?;
    read.entries.sort_by_key(|&(row, column, _)| (column, row));
    read.entries.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
    match read.entries.iter().find(|entry| !entry.2.is_finite()) {
        Some((row, column, value)) => {
            Err(format!("{}: entries for row {}, column {} add up to {value}", file.display(), row + 1, column + 1))
        }
        None => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = "%%MatrixMarket matrix coordinate real general\n";

    /// What becomes of a file with this text.
    fn with<R>(text: &str, read: impl FnOnce(&Path) -> R) -> R {
        let file = std::env::temp_dir().join(format!("lu-market-{}-{:?}.mtx", std::process::id(), std::thread::current().id()));
        std::fs::write(&file, text).unwrap();
        let outcome = read(&file);
        std::fs::remove_file(file).unwrap();
        outcome
    }

    #[test]
    fn entries_given_twice_are_added() {
        let sparse = with(&format!("{REAL}2 2 3\n2 1 1\n1 1 2\n2 1 0.5\n"), read).unwrap();
        assert_eq!(sparse, Sparse { order: 2, entries: vec![(0, 0, 2.0), (1, 0, 1.5)] });
        let problem = with(&format!("{REAL}1 1 2\n1 1 1e308\n1 1 1e308\n"), read).unwrap_err();
        assert!(problem.contains("row 1, column 1 add up to inf"), "{problem}");
    }

    #[test]
    fn what_cannot_be_factored_is_refused() {
        for (text, words) in
            [("3 2 1\n1 1 1\n", "3 rows and 2 columns"), ("0 0 0\n", "no rows"), ("2 2 2\n1 1 1\n", "mtx: line 4: the file ends")]
        {
            let problem = with(&format!("{REAL}{text}"), read).unwrap_err();
            assert!(problem.contains(words) && !problem.contains(".rs"), "{problem}");
        }
    }

    #[test]
    fn columns_are_read_as_they_are_written() {
        let values = [0.1 + 0.2, -5e-324, 1.7976931348623157e308];
        assert_eq!(with(&column(&values), |file| read_column(file, 3)), Ok(values.to_vec()));
        assert_eq!(with(&format!("{REAL}3 1 1\n2 1 7\n"), |file| read_column(file, 3)), Ok(vec![0.0, 7.0, 0.0]));
        let problem = with(&column(&values[..2]), |file| read_column(file, 3)).unwrap_err();
        assert!(problem.contains("must be 3 x 1, not 2 x 1"), "{problem}");
    }

    #[test]
    fn files_that_are_not_there_and_files_that_are() {
        let missing = read(Path::new("no/such.mtx")).unwrap_err();
        assert!(missing.starts_with("no/such.mtx: cannot be read: "), "{missing}");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        assert!(read(&data).unwrap_err().contains("cannot be read"));
        let west = read(&data.join("west0479.mtx")).unwrap();
        assert_eq!((west.order, west.entries.len()), (479, 1910));
        let west = read(&data.join("west0067.mtx")).unwrap();
        assert_eq!((west.order, west.entries.len(), west.entries[0]), (67, 294, (4, 0, -0.2788416)));
    }
}
