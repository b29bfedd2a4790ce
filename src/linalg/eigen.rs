//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.

use std::cmp::Ordering;

use ndarray::{Dim, Ix2};

use super::{
    answer::{Spectrum, Values},
    blocks::{Blocking, Factors, Place},
    cholesky::Cholesky,
    field::Field,
    leader::{Leader, collect},
    symmetry,
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
    /// square; no LAPACK, without the feature `faer`; too little memory; members with different calls; the end of the job.
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

    /// Some eigenvalues and their eigenvectors: the lowest ones, or those in an interval. Collective. A part takes less time than all with LAPACK, and as much with faer.
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

impl<T: Field> Cholesky<T> {
    /// All eigenvalues and eigenvectors of h x = λ s x, for a symmetric or Hermitian h. Collective. The vectors are orthonormal by s: xᴴ s x = 1.
    ///
    /// # Errors
    /// Those of [`GlobalArray::eigh`]; another order, or another group.
    ///
    /// # Source
    /// GA: `GA_Diag`, and `GA_Diag_reuse` for the same factor again; LAPACK `dsygst`.
    #[doc(alias("GA_Diag", "GA_Diag_reuse", "GA_Diag_seq"))]
    #[track_caller]
    pub fn eigh(&self, h: &GlobalArray2<T>) -> Result<Eigen<T>> {
        located(move || eigh("eigh", h, Spectrum::All, Some(&self.factors)))
    }

    /// Some of them; see [`GlobalArray::eigh_of`]. Collective.
    ///
    /// # Errors
    /// Those of [`eigh`](Self::eigh) and of that method.
    #[track_caller]
    pub fn eigh_of(&self, h: &GlobalArray2<T>, spectrum: Spectrum) -> Result<Eigen<T>> {
        located(move || eigh("eigh_of", h, spectrum, Some(&self.factors)))
    }
}

/// Of h x = λ l lᴴ x, if there is a factor.
pub(super) fn eigh<T: Field>(
    operation: &'static str,
    h: &GlobalArray2<T>,
    spectrum: Spectrum,
    factor: Option<&Factors<T>>,
) -> Result<Eigen<T>> {
    // The matrix, a workspace of twice its size, and the factor.
    let leader = Leader::of(operation, h, if factor.is_some() { 4 } else { 3 })?;
    let order = leader.call.order(h.shape())?;
    factor.map_or(Ok(()), |l| l.call(operation).goes_with(l.order(), h))?;
    let call = match spectrum {
        Spectrum::All => [0; 3],
        Spectrum::Lowest(count) => [1, count as u64, 0],
        Spectrum::Interval(low, high) => [2, low.to_bits(), high.to_bits()],
    };
    let _doing = leader.call.begin(&call)?;
    if let Spectrum::Interval(low, high) = spectrum
        && low.partial_cmp(&high) != Some(Ordering::Less)
    {
        return Err(leader.call.argument(format_args!("and an interval from {low} to {high}; its end must be above its start")));
    }
    symmetry::check(&leader.call, h, &Place::new(h.group(), order, Blocking::for_copy(h)))?;
    let (mut values, mut vectors) = (Values::<T>::new(), None);
    let found = leader.run(
        || Ok((collect(h)?, factor.map(Factors::collect).transpose()?)),
        |backend, (h, l)| {
            let (found, columns) = backend.eigh(h, l.as_ref(), spectrum)?;
            (values, vectors) = (found, Some(columns));
            Ok(values.len())
        },
    )?;
    values.resize(found, <T::Real as Number>::ONE);
    h.group().broadcast(0, &mut values)?;
    let vectors = leader.spread(Dim([order, found]), vectors.as_ref(), &format!("eigenvectors of {}", h.name()))?;
    Ok(Eigen { values, vectors })
}
