//! Symmetric and Hermitian positive definite matrices.

use ndarray::{Dim, Ix2, s};

use super::{
    eigen::{Eigen, eigh},
    lapack::{Field, Spectrum},
    leader::{Held, Leader, by_columns, collect_finite, collect_symmetric, conjugate},
};
use crate::{GlobalArray, GlobalArray2, algebra::VectorOrMatrix, calls::located, error::Result};

/// The factor L of a matrix s = L Lᴴ, which can be used again and again. Member 0 keeps it.
#[derive(Debug)]
pub struct Cholesky<T> {
    l: Held<T>,
}

/// # Factors
impl<T: Field> GlobalArray<T, Ix2> {
    /// The Cholesky factor of a symmetric or Hermitian positive definite matrix, of which only the lower triangle is used. Collective.
    ///
    /// # Errors
    /// [`Error::Matrix`](crate::Error::Matrix): a matrix that is not positive definite, with the order of the first leading block that is not; not finite; not symmetric. The rest is
    /// as for [`eigh`](Self::eigh).
    ///
    /// # Source
    /// GA: `GA_Llt_solve`; LAPACK `dpotrf`.
    #[doc(alias("GA_Llt_solve", "ga_llt_i"))]
    #[track_caller]
    pub fn cholesky(&self) -> Result<Cholesky<T>> {
        located(move || {
            let leader = Leader::of("cholesky", self, 1)?;
            let order = leader.order(self.shape())?;
            let mut l = None;
            leader.run(
                &[],
                || collect_symmetric(self),
                |lapack, mut a| {
                    lapack.cholesky(&mut a)?;
                    a.rows_mut().into_iter().enumerate().for_each(|(i, mut row)| row.slice_mut(s![i + 1..]).fill(T::ZERO));
                    l = Some(a);
                    Ok(())
                },
            )?;
            Ok(Cholesky { l: leader.hold(order, l) })
        })
    }
}

impl<T: Field> Cholesky<T> {
    /// The lower triangular factor; zero above the diagonal. Collective.
    ///
    /// # Errors
    /// Too little memory; the end of the job.
    #[track_caller]
    pub fn l(&self) -> Result<GlobalArray2<T>> {
        located(move || self.l.leader("l", 0).spread(Dim([self.l.order; 2]), self.l.factors.as_ref(), "L"))
    }

    /// The solution of s x = b, for a vector or several right-hand sides as the columns of a matrix. Collective.
    ///
    /// # Errors
    /// Another number of rows, or another group; an element of `b` that is not finite; the end of the job.
    #[track_caller]
    pub fn solve<D: VectorOrMatrix>(&self, b: &GlobalArray<T, D>) -> Result<GlobalArray<T, D>> {
        located(move || {
            let leader = self.l.leader("solve", 0).with(self.l.order, b)?;
            let mut x = None;
            leader.run(
                &[b.id()],
                || collect_finite(b).map(by_columns),
                |lapack, mut all| {
                    conjugate(&mut all);
                    lapack.solve_by_cholesky(self.l.factors(), &mut all)?;
                    conjugate(&mut all);
                    x = Some(all);
                    Ok(())
                },
            )?;
            leader.spread(b.distribution().extents().clone(), x.as_ref(), "x")
        })
    }

    /// s⁻¹. Collective. [`solve`](Self::solve) is faster and more accurate where that is what the inverse is for.
    ///
    /// # Errors
    /// The end of the job.
    ///
    /// # Source
    /// GA: `GA_Spd_invert`; LAPACK `dpotri`.
    #[doc(alias = "GA_Spd_invert")]
    #[track_caller]
    pub fn inverse(&self) -> Result<GlobalArray2<T>> {
        located(move || {
            let leader = self.l.leader("inverse", 1);
            let mut inverse = None;
            leader.run(
                &[],
                || Ok(self.l.factors().clone()),
                |lapack, mut all| {
                    lapack.inverse_by_cholesky(&mut all)?;
                    for column in 1..all.ncols() {
                        (0..column).for_each(|row| all[[row, column]] = all[[column, row]].conj());
                    }
                    inverse = Some(all);
                    Ok(())
                },
            )?;
            leader.spread(Dim([self.l.order; 2]), inverse.as_ref(), "inverse")
        })
    }

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
        located(move || eigh("eigh", h, Spectrum::All, Some(&self.l)))
    }

    /// Some of them; see [`GlobalArray::eigh_of`]. Collective.
    ///
    /// # Errors
    /// Those of [`eigh`](Self::eigh) and of that method.
    #[track_caller]
    pub fn eigh_of(&self, h: &GlobalArray2<T>, spectrum: Spectrum) -> Result<Eigen<T>> {
        located(move || eigh("eigh_of", h, spectrum, Some(&self.l)))
    }
}
