//! Matrices with more rows than columns: least squares and singular values.

use ndarray::{Ix2, s};

use super::{
    answer::Values,
    field::Field,
    leader::{Leader, by_columns, collect_finite},
};
use crate::{GlobalArray, GlobalArray2, Number, algebra::VectorOrMatrix, calls::located, error::Result};

/// Singular values and vectors: a = u · diag(values) · vt.
#[derive(Debug)]
pub struct Svd<T: Field> {
    /// The left singular vectors, as columns.
    pub u: GlobalArray2<T>,
    /// The singular values from the largest on, on all members.
    pub values: Vec<T::Real>,
    /// The conjugates of the right singular vectors, as rows.
    pub vt: GlobalArray2<T>,
}

/// # Least squares and singular values
impl<T: Field> GlobalArray<T, Ix2> {
    /// The x that minimizes ‖a x - b‖ (Euclidean), for a vector or each column of a matrix `b`; by QR. Collective. The matrix has at least as many
    /// rows as columns. If the columns depend on each other, rounding mostly hides that, and x is meaningless: see the singular values.
    ///
    /// # Errors
    /// [`Error::Matrix`](crate::Error::Matrix): a triangular factor with an exact zero on its diagonal, or an element that is not finite. More columns than rows; another number of rows, or
    /// another group. The rest is as for [`eigh`](Self::eigh).
    ///
    /// # Source
    /// LAPACK `dgels`.
    #[doc(alias = "lstsq")]
    #[track_caller]
    pub fn least_squares<D: VectorOrMatrix>(&self, b: &GlobalArray<T, D>) -> Result<GlobalArray<T, D>> {
        located(move || {
            // The matrix, by rows and by columns.
            let leader = Leader::of("least_squares", self, 2)?;
            let [rows, columns] = [self.shape()[0], self.shape()[1]];
            if rows < columns {
                return Err(leader
                    .call
                    .argument(format_args!("has {rows} rows and {columns} columns; it needs at least as many rows")));
            }
            leader.call.goes_with(rows, b)?;
            let leader = leader.with(2 * b.len() * size_of::<T>());
            let mut x = None;
            let _doing = leader.call.begin(&[b.id()])?;
            leader.run(
                || Ok((by_columns(collect_finite(self)?), by_columns(collect_finite(b)?))),
                |backend, (mut a, mut all)| {
                    if !a.is_empty() && !all.is_empty() {
                        backend.least_squares(&mut a, &mut all)?;
                    }
                    // The rest of each column is what is left of b. A copy, so that the columns follow each other.
                    x = Some(by_columns(all.slice_move(s![..columns, ..])));
                    Ok(())
                },
            )?;
            let mut shape = b.distribution().extents().clone();
            shape.slice_mut()[0] = columns;
            leader.spread(shape, x.as_ref(), "x")
        })
    }

    /// Singular values and vectors, as many as the shorter axis has elements. Collective.
    ///
    /// # Errors
    /// [`Error::Matrix`](crate::Error::Matrix): an element that is not finite, or an iteration that does not converge. The rest is as for [`eigh`](Self::eigh).
    ///
    /// # Source
    /// LAPACK `dgesdd`.
    #[track_caller]
    pub fn svd(&self) -> Result<Svd<T>> {
        located(move || {
            // The matrix by rows and by columns, both kinds of vectors, and a workspace of four times the matrix.
            let leader = Leader::of("svd", self, 8)?;
            let [rows, columns] = [self.shape()[0], self.shape()[1]];
            let few = rows.min(columns);
            let (mut values, mut vectors) = (Values::<T>::new(), (None, None));
            let _doing = leader.call.begin(&[])?;
            leader.run(
                || collect_finite(self).map(by_columns),
                |backend, a| {
                    if !a.is_empty() {
                        let ([u, vt], found) = backend.svd(a)?;
                        (values, vectors) = (found, (Some(u), Some(vt)));
                    }
                    Ok(())
                },
            )?;
            values.resize(few, <T::Real as Number>::ONE);
            self.group().broadcast(0, &mut values)?;
            let u = leader.spread(ndarray::Dim([rows, few]), vectors.0.as_ref(), &format!("U of {}", self.name()))?;
            let vt = leader.spread(ndarray::Dim([few, columns]), vectors.1.as_ref(), &format!("V of {}", self.name()))?;
            Ok(Svd { u, values, vt })
        })
    }
}
