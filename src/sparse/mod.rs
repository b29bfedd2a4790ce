//! Sparse matrices: rows in blocks over the members of a group.
//!
//! | file | contents |
//! |---|---|
//! | `mod` | the matrix, made of triplets that any member gives |
//! | `product` | products with vectors, and what is kept of a vector's distribution |
//! | `market` | matrices in Matrix Market files |
//!
//! A row belongs to the member that owns its element in a vector of the default distribution. Columns are indices of the whole matrix,
//! ascending in each row.

mod market;
mod product;

use std::{
    fmt,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex},
};

use ndarray::Ix1;

pub use market::{MarketNumber, Triplets, read_matrix_market};
use product::Split;

use crate::{
    calls::located,
    distribution::{Distribution, Order},
    element::Number,
    error::{Error, Result},
    sync::{Group, ops},
};

/// A sparse matrix, spread over the members of a group by blocks of rows: as a vector of as many elements in the default distribution.
///
/// Each row has its entries in the order of their columns (CSR); an entry may be zero. Nothing changes the matrix after its creation, and
/// products take `&self`. The first product with vectors of a distribution keeps a copy of the entries, sorted for it.
///
/// # Examples
/// ```
/// use global_arrays::prelude::*;
/// # fn main() -> Result<(), Error> {
/// Launch::new().ranks(2).network("threads").run(|job| {
///     // Each rank gives what it likes: here every second row of the second difference.
///     let row = |i: usize| [(i, i, 2.0), (i, (i + 1) % 6, -1.0), (i, (i + 5) % 6, -1.0)];
///     let a = SparseMatrix::from_triplets(job, [6, 6], (job.rank()..6).step_by(job.size()).flat_map(row))?;
///     let x = GlobalArray1::<f64>::from_fn(job, [6], |i| if i == 2 { 1.0 } else { 0.0 })?;
///     let mut y = GlobalArray1::<f64>::zeros(job, [6])?;
///     a.matvec(&x, &mut y)?;
///     assert_eq!(y.get(..)?.to_vec(), [0.0, -1.0, 2.0, -1.0, 0.0, 0.0]);
///     assert_eq!(a.nnz(), 18);
///     job.sync()
/// })
/// # }
/// ```
///
/// # How fast
/// Two ranks on two cores of a Zen 4, the time of a loop in C over MPI (Open MPI, MPICH) divided by that of [`matvec`](Self::matvec): 1.31 and 1.20 for five points
/// on 1000² cells, 0.96 and 0.91 for ten random entries in each of 10⁶ rows. There the pass over entries of other members' columns takes the difference: the
/// loop in C has all columns of a row in one pass.
///
/// # Source
/// PETSc: `MATMPIAIJ`.
pub struct SparseMatrix<T> {
    group: Group,
    shape: [usize; 2],
    nnz: usize,
    /// Those of this member.
    rows: Range<usize>,
    /// Where the entries of each own row begin, and the end of the last.
    starts: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<T>,
    /// For each distribution of vectors that was met.
    splits: Mutex<Vec<Arc<Split<T>>>>,
}

impl<T: Number> SparseMatrix<T> {
    /// A matrix of `[rows, columns]` from entries `(row, column, value)`. Any member may give any entries; those of one place are added, in
    /// the order of the members that gave them. Collective.
    ///
    /// # Errors
    /// An entry outside the matrix, members that give different shapes: the same error on all members. The end of the job.
    #[track_caller]
    pub fn from_triplets(
        group: &(impl AsRef<Group> + ?Sized),
        shape: [usize; 2],
        triplets: impl IntoIterator<Item = (usize, usize, T)>,
    ) -> Result<Self> {
        const OPERATION: &str = "from_triplets";
        let group = group.as_ref();
        let placed = Distribution::block(&Ix1(shape[0]), group.size(), None, Order::RowMajor);
        // The program's iterator runs outside of the call that errors name.
        let mut lists: Vec<(Vec<[usize; 2]>, Vec<T>)> = vec![Default::default(); group.size()];
        let mut dealt = Ok(());
        if let Ok(placed) = &placed {
            for (k, (row, column, value)) in triplets.into_iter().enumerate() {
                if row >= shape[0] || column >= shape[1] {
                    let ([rows, columns], member) = (shape, group.member());
                    dealt = Err(format!(
                        "triplet {k} of member {member}, row {row}, column {column}, lies outside the matrix of {rows} x {columns}: indices count from 0"
                    ));
                    break;
                }
                let (places, values) = &mut lists[placed.locate(&Ix1(row)).member];
                places.push([row, column]);
                values.push(value);
            }
        }
        located(move || {
            let [rows, columns] = shape;
            let smallest = |a: [usize; 4], b: [usize; 4]| std::array::from_fn(|k| a[k].min(b[k]));
            let [least_rows, least_columns, most_rows, most_columns] =
                group.all_reduce_one([rows, columns, !rows, !columns], smallest)?;
            if [least_rows, least_columns] != [!most_rows, !most_columns] {
                let what = format!(
                    "members give different shapes, from {least_rows} x {least_columns} to {} x {}",
                    !most_rows, !most_columns
                );
                return Err(Error::Mismatch { operation: OPERATION.into(), what });
            }
            let array = || format!("sparse matrix of {rows} x {columns}");
            let placed = placed.map_err(|source| Error::Distribution { array: array(), source, operation: OPERATION.into() })?;
            agree(group, dealt, |what| Error::argument(OPERATION, what))?;
            let (places, values): (Vec<_>, Vec<_>) = lists.into_iter().unzip();
            let places = group.all_to_all_v(&places)?;
            let values = group.all_to_all_v(&values)?;
            let mut entries: Vec<([usize; 2], T)> = places.into_iter().flatten().zip(values.into_iter().flatten()).collect();
            // A stable sort: the order of the members is kept.
            entries.sort_by_key(|&(place, _)| place);
            entries.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                if is_same {
                    kept.1 = kept.1.plus(next.1);
                }
                is_same
            });
            let rows = placed.blocks(group.member()).next().map_or(0..0, |block| block.patch.range(0));
            let starts = (rows.start..=rows.end).map(|row| entries.partition_point(|&([of, _], _)| of < row)).collect();
            let nnz = group.all_reduce_one(entries.len(), ops::sum)?;
            let (columns, values) = entries.into_iter().map(|([_, column], value)| (column, value)).unzip();
            Ok(SparseMatrix { group: group.clone(), shape, nnz, rows, starts, columns, values, splits: Mutex::default() })
        })
    }

    /// Reads a matrix from a [Matrix Market](https://math.nist.gov/MatrixMarket/formats.html) file, as [`read_matrix_market`] does.
    /// Member 0 reads the file. Collective.
    ///
    /// # Errors
    /// A file that is not there or wrong, with its line: the same error on all members. The end of the job.
    #[track_caller]
    pub fn from_matrix_market(group: &(impl AsRef<Group> + ?Sized), path: impl AsRef<Path>) -> Result<Self>
    where
        T: MarketNumber,
    {
        located(move || {
            let (group, path) = (group.as_ref(), path.as_ref());
            let read = if group.member() == 0 { market::read(path) } else { Ok(Triplets { shape: [0; 2], entries: Vec::new() }) };
            let Triplets { shape, entries } = agree(group, read, |what| market::format_error(path, what))?;
            let mut shape = [shape];
            group.broadcast(0, &mut shape)?;
            Self::from_triplets(group, shape[0], entries)
        })
    }

    /// Numbers of rows and columns.
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Number of entries, of all members.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.nnz
    }

    /// The group whose members share the matrix.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// This member's rows, empty ones too: the index of the row, the columns of its entries, their values. Local.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (usize, &[usize], &[T])> {
        self.starts.windows(2).enumerate().map(|(k, ends)| {
            let entries = ends[0]..ends[1];
            (self.rows.start + k, &self.columns[entries.clone()], &self.values[entries])
        })
    }
}

impl<T> fmt::Debug for SparseMatrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([rows, columns], nnz) = (self.shape, self.nnz);
        write!(f, "SparseMatrix({rows} x {columns}, {nnz} entries, rows {:?} here)", self.rows)
    }
}

/// This member's value, or on all members the error of the first that failed.
fn agree<R>(group: &Group, mine: Result<R, String>, error: impl FnOnce(String) -> Error) -> Result<R> {
    let failed = group.all_reduce_one(if mine.is_err() { group.member() } else { usize::MAX }, ops::min)?;
    match mine {
        Ok(value) if failed == usize::MAX => Ok(value),
        mine => {
            let mut what = mine.err().unwrap_or_default().into_bytes();
            group.broadcast_bytes(failed, &mut what)?;
            Err(error(String::from_utf8_lossy(&what).into_owned()))
        }
    }
}
