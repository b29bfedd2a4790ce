//! Symmetric and Hermitian positive definite matrices.

use std::ops::Range;

use ndarray::{Array2, ArrayViewMut2, Dim, Ix2, s};

use super::{
    blocks::{self, Blocking, Factors, Positive, Triangle},
    call::Call,
    field::Field,
    symmetry,
};
use crate::{
    GlobalArray, GlobalArray2,
    algebra::VectorOrMatrix,
    calls::located,
    error::{MatrixError, Result},
    sync::call::Doing,
};

/// The factor L of a matrix s = L Lᴴ, which can be used again and again. All members keep a part of it.
#[derive(Debug)]
pub struct Cholesky<T> {
    pub(super) factors: Factors<T>,
}

/// # Factors
impl<T: Field> GlobalArray<T, Ix2> {
    /// The Cholesky factor of a symmetric or Hermitian positive definite matrix, of which only the lower triangle is used. Collective.
    ///
    /// The members compute together, as for [`lu`](Self::lu). A difference between the triangles of more than √ε times the largest magnitude is an error.
    ///
    /// # Errors
    /// [`Error::Matrix`](crate::Error::Matrix): a matrix that is not positive definite, with the order of the first leading block that is not; not finite; not symmetric. The rest is
    /// as for [`lu`](Self::lu).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let s = GlobalArray2::<f64>::from_fn(job, [3, 3], |(i, j)| if i == j { 4.0 } else { 1.0 })?;
    ///     let factor = s.cholesky()?;
    ///     let x = factor.solve(&GlobalArray1::<f64>::from_fn(job, [3], |_| 6.0)?)?;
    ///     assert!(x.get(..)?.iter().all(|x| (x - 1.0).abs() < 1e-14));
    ///     assert_eq!(factor.l()?.load([0, 0])?, 2.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Llt_solve`; ScaLAPACK `pdpotrf`.
    #[doc(alias("GA_Llt_solve", "ga_llt_i"))]
    #[track_caller]
    pub fn cholesky(&self) -> Result<Cholesky<T>> {
        located(move || {
            let call = Call::of("cholesky", self)?;
            let blocking = Blocking::for_copy(self);
            let (place, _doing) = begin(&call, self, blocking)?;
            Cholesky::of(&call, place.order(), blocking, None, |part| blocks::copy(&call, self, &place, part, true))
        })
    }

    /// The same in place of the matrix, without a copy of it, if it is block-cyclic in square blocks over all members and in column-major order. Collective.
    /// Of another matrix a copy is factored.
    ///
    /// # Errors
    /// Those of [`cholesky`](Self::cholesky); the matrix is lost then.
    #[track_caller]
    pub fn into_cholesky(self) -> Result<Cholesky<T>> {
        located(move || {
            let (group, name) = (self.group().clone(), self.name().to_owned());
            let call = Call { group: &group, name: &name, ..Call::of("into_cholesky", &self)? };
            let in_place = Blocking::in_place(&self);
            let blocking = in_place.unwrap_or_else(|| Blocking::for_copy(&self));
            let (place, _doing) = begin(&call, &self, blocking)?;
            if in_place.is_some() {
                return Cholesky::of(&call, place.order(), blocking, Some(self), |_| Ok(()));
            }
            Cholesky::of(&call, place.order(), blocking, None, |part| blocks::copy(&call, &self, &place, part, true))
        })
    }
}

/// The agreement at the start, and what is wrong with the matrix.
fn begin<T: Field>(call: &Call<'_>, a: &GlobalArray2<T>, blocking: Blocking) -> Result<(blocks::Place, Doing)> {
    let order = call.order(a.shape())?;
    let doing = call.begin(&blocking.check(call, order)?)?;
    let place = blocks::Place::new(call.group, order, blocking);
    symmetry::check(call, a, &place).map(|()| (place, doing))
}

impl<T: Field> Cholesky<T> {
    fn of(
        call: &Call<'_>,
        order: usize,
        blocking: Blocking,
        given: Option<GlobalArray2<T>>,
        fill: impl FnOnce(ArrayViewMut2<'_, T>) -> Result<()>,
    ) -> Result<Self> {
        let factor = |place: &blocks::Place, part: ArrayViewMut2<'_, T>| {
            let found = Positive::new(call.group, *place)?.factor(part);
            found.map_err(|stop| stop.into_error(|at| call.wrong(MatrixError::NotPositive { order: at + 1 }, None)))
        };
        let (factors, (), ()) = Factors::new(call, order, blocking, given, |_, part| fill(part), factor)?;
        Ok(Cholesky { factors })
    }

    /// The lower triangular factor; zero above the diagonal. Collective.
    ///
    /// # Errors
    /// Too little memory; the end of the job.
    #[track_caller]
    pub fn l(&self) -> Result<GlobalArray2<T>> {
        located(move || {
            let call = self.factors.call("l");
            let _doing = call.begin(&[])?;
            call.spread(Dim([self.factors.order(); 2]), "L", |l| {
                self.factors.blocks().try_for_each(|([rows, columns], mut block)| {
                    if rows.end <= columns.start {
                        return l.put([rows, columns], &Array2::zeros(block.raw_dim()));
                    }
                    block
                        .indexed_iter_mut()
                        .filter(|((i, j), _)| rows.start + i < columns.start + j)
                        .for_each(|(_, x)| *x = T::ZERO);
                    l.put([rows, columns], &block)
                })
            })
        })
    }

    /// The solution of s x = b, for a vector or several right-hand sides as the columns of a matrix. Collective. How is as for [`Lu::solve`](super::Lu::solve).
    ///
    /// # Errors
    /// Another number of rows, or another group; an element of `b` that is not finite; the end of the job.
    #[track_caller]
    pub fn solve<D: VectorOrMatrix>(&self, b: &GlobalArray<T, D>) -> Result<GlobalArray<T, D>> {
        located(move || self.factors.solve_for("solve", b, TRIANGLES, &[]))
    }

    /// s⁻¹. Collective. [`solve`](Self::solve) is faster and more accurate where that is what the inverse is for.
    ///
    /// Each member computes some columns, and reads all of the factor.
    ///
    /// # Errors
    /// Too little memory; the end of the job.
    ///
    /// # Source
    /// GA: `GA_Spd_invert`.
    #[doc(alias = "GA_Spd_invert")]
    #[track_caller]
    pub fn inverse(&self) -> Result<GlobalArray2<T>> {
        located(move || {
            let call = self.factors.call("inverse");
            let _doing = call.begin(&[])?;
            let order = self.factors.order();
            call.spread(Dim([order; 2]), "inverse", |inverse| {
                self.factors.solve_shares(
                    order,
                    TRIANGLES,
                    &[],
                    |columns: Range<usize>, z| {
                        columns.enumerate().for_each(|(j, column)| z[[column, j]] = T::ONE);
                        Ok(())
                    },
                    |columns, z| inverse.put(s![.., columns], &z),
                )
            })
        })
    }
}

/// What s x = b is solved by.
const TRIANGLES: [Triangle; 2] = [Triangle::Lower, Triangle::LowerAdjoint];
