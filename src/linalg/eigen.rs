//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.

use std::cmp::Ordering;

use ndarray::{Dim, Ix2};

use super::{
    lapack::{Field, Spectrum, Values},
    leader::{Held, Leader, collect_symmetric, conjugate},
};
use crate::{GlobalArray, GlobalArray2, Number, calls::located, error::Result};

/// Eigenvalues and eigenvectors.
#[derive(Debug)]
pub struct Eigen<T: Field> {
    /// The eigenvalues in ascending order, on all members.
    pub values: Vec<T::Real>,
    /// The eigenvectors: column j is that of `values[j]`. Orthonormal; of a generalized problem with s, vᴴ s v = 1.
    pub vectors: GlobalArray2<T>,
}

/// # Eigenvalues
impl<T: Field> GlobalArray<T, Ix2> {
    /// All eigenvalues and eigenvectors of a symmetric matrix, or a Hermitian one if it is complex. Collective.
    ///
    /// Only the lower triangle is used. A difference between the triangles of more than √ε times the largest magnitude is an error.
    /// For h x = λ s x see [`Cholesky::eigh`](super::Cholesky::eigh).
    ///
    /// # Errors
    /// [`Error::Matrix`](crate::Error::Matrix): an element that is not finite, a matrix that is not symmetric, an iteration that does not converge. A matrix that is not
    /// square; no LAPACK; too little memory; members with different calls; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// # if std::env::var_os("GA_BLAS").is_none() { return Ok(()) } // without a LAPACK
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let h = GlobalArray2::<f64>::from_fn(job, [2, 2], |(i, j)| if i == j { 2.0 } else { 1.0 })?;
    ///     let found = h.eigh()?;
    ///     assert!((found.values[0] - 1.0).abs() < 1e-14 && (found.values[1] - 3.0).abs() < 1e-14);
    ///     assert_eq!(found.vectors.shape(), [2, 2]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Diag_std`; LAPACK `dsyevd`, `zheevd`.
    #[doc(alias("GA_Diag_std", "GA_Diag_std_seq", "ga_pdsyev", "ga_pzheevd"))]
    #[track_caller]
    pub fn eigh(&self) -> Result<Eigen<T>> {
        located(move || eigh("eigh", self, Spectrum::All, None))
    }

    /// Some eigenvalues and their eigenvectors: the lowest ones, or those in an interval. Collective. A part takes less time than all.
    ///
    /// # Errors
    /// Those of [`eigh`](Self::eigh); an interval whose end is not above its start.
    ///
    /// # Source
    /// LAPACK `dsyevr`, `zheevr`; ScaLAPACK `pdsyevx`.
    #[track_caller]
    pub fn eigh_of(&self, spectrum: Spectrum) -> Result<Eigen<T>> {
        located(move || eigh("eigh_of", self, spectrum, None))
    }
}

/// Of h x = λ l lᴴ x, if there is a factor.
pub(super) fn eigh<T: Field>(
    operation: &'static str,
    h: &GlobalArray2<T>,
    spectrum: Spectrum,
    factor: Option<&Held<T>>,
) -> Result<Eigen<T>> {
    // The matrix, and a workspace of twice its size.
    let leader = Leader::of(operation, h, 3)?;
    let order = leader.order(h.shape())?;
    factor.map_or(Ok(()), |l| l.leader(operation, 0).with(l.order, h).map(drop))?;
    let call = match spectrum {
        Spectrum::All => [0; 3],
        Spectrum::Lowest(count) => [1, count as u64, 0],
        Spectrum::Interval(low, high) => [2, low.to_bits(), high.to_bits()],
    };
    let (mut values, mut vectors) = (Values::<T>::new(), None);
    let found = leader.run(
        &call,
        || match spectrum {
            Spectrum::Interval(low, high) if low.partial_cmp(&high) != Some(Ordering::Less) => {
                Err(leader.argument(format_args!("and an interval from {low} to {high}; its end must be above its start")).into())
            }
            _ => collect_symmetric(h),
        },
        |lapack, mut a| {
            let l = factor.map(Held::factors);
            if let Some(l) = l {
                lapack.reduce_by_cholesky(&mut a, l)?;
            }
            let (found, mut columns) = lapack.eigh(a, spectrum)?;
            if let Some(l) = l {
                lapack.solve_upper(l, &mut columns)?;
            }
            conjugate(&mut columns);
            (values, vectors) = (found, Some(columns));
            Ok(values.len())
        },
    )?;
    values.resize(found, <T::Real as Number>::ONE);
    h.group().broadcast(0, &mut values)?;
    let vectors = leader.spread(Dim([order, found]), vectors.as_ref(), &format!("eigenvectors of {}", h.name()))?;
    Ok(Eigen { values, vectors })
}
