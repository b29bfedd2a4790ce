//! General square matrices.

use ndarray::Ix2;
use num_traits::{Float, Zero};

use super::{
    lapack::Field,
    leader::{Held, Leader, by_columns, collect_finite},
};
use crate::{GlobalArray, Number, algebra::VectorOrMatrix, calls::located, error::Result};

/// The factors of a matrix with its columns interchanged, a P = L U. Member 0 keeps them.
#[derive(Debug)]
pub struct Lu<T: Field> {
    /// L, and above its diagonal U without its ones.
    factors: Held<T>,
    /// Column i was interchanged with column `pivots[i] - 1`, one after the other; on member 0.
    pivots: Vec<i32>,
    /// The largest column sum of magnitudes of the matrix, on member 0.
    norm: T::Real,
}

/// # Linear systems
impl<T: Field> GlobalArray<T, Ix2> {
    /// The factors of a square matrix, with partial pivoting. Collective.
    ///
    /// # Errors
    /// [`Error::Matrix`](crate::Error::Matrix): an exact zero on the diagonal of U, or an element that is not finite. A matrix that is nearly singular is no error: see
    /// [`Lu::condition`]. The rest is as for [`eigh`](Self::eigh).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// # if std::env::var_os("GA_BLAS").is_none() { return Ok(()) } // without a LAPACK
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray2::<f64>::from_fn(job, [3, 3], |(i, j)| if i == j { 4.0 } else { 1.0 })?;
    ///     let b = GlobalArray1::<f64>::from_fn(job, [3], |_| 6.0)?;
    ///     let x = a.lu()?.solve(&b)?;
    ///     assert!(x.get(..)?.iter().all(|x| (x - 1.0).abs() < 1e-14));
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Lu_solve`, `GA_Solve`; LAPACK `dgetrf`.
    #[doc(alias("GA_Lu_solve", "GA_Solve", "ga_lu_solve_seq"))]
    #[track_caller]
    pub fn lu(&self) -> Result<Lu<T>> {
        located(move || {
            let leader = Leader::of("lu", self, 1)?;
            let order = leader.order(self.shape())?;
            let (mut factors, mut pivots, mut norm) = (None, Vec::new(), T::Real::zero());
            leader.run(
                &[],
                || collect_finite(self),
                |lapack, mut a| {
                    let mut sums = vec![T::Real::zero(); order];
                    a.rows().into_iter().for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.magnitude()));
                    norm = sums.into_iter().fold(T::Real::zero(), Float::max);
                    pivots = lapack.lu(&mut a)?;
                    factors = Some(a);
                    Ok(())
                },
            )?;
            Ok(Lu { factors: leader.hold(order, factors), pivots, norm })
        })
    }
}

impl<T: Field> Lu<T> {
    /// The solution of a x = b, for a vector or several right-hand sides as the columns of a matrix. Collective.
    ///
    /// # Errors
    /// Another number of rows, or another group; an element of `b` that is not finite; the end of the job.
    #[track_caller]
    pub fn solve<D: VectorOrMatrix>(&self, b: &GlobalArray<T, D>) -> Result<GlobalArray<T, D>> {
        located(move || {
            let leader = self.factors.leader("solve", 0).with(self.factors.order, b)?;
            let mut x = None;
            leader.run(
                &[b.id()],
                || collect_finite(b).map(by_columns),
                |lapack, mut all| {
                    lapack.solve_by_lu(self.factors.factors(), &self.pivots, &mut all)?;
                    x = Some(all);
                    Ok(())
                },
            )?;
            leader.spread(b.distribution().extents().clone(), x.as_ref(), "x")
        })
    }

    /// The determinant, which may overflow, as a number of magnitude 1 and the logarithm of the magnitude: `sign * ln.exp()`. Collective.
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn log_determinant(&self) -> Result<(T, T::Real)> {
        located(move || {
            let leader = self.factors.leader("log_determinant", 0);
            let (mut sign, mut ln) = ([T::ONE], [T::Real::zero()]);
            leader.run(
                &[],
                || Ok(()),
                |_, ()| {
                    for (i, x) in self.factors.factors().diag().iter().enumerate() {
                        let magnitude = x.magnitude();
                        ln[0] += magnitude.ln();
                        // A complex number in two steps: a division would square the magnitude.
                        let scale = T::of_real(magnitude.sqrt().recip());
                        let unit = if T::IS_REAL { *x / T::of_real(magnitude) } else { x.scaled(scale).scaled(scale) };
                        sign[0] = if self.pivots[i] as usize == i + 1 { sign[0] * unit } else { T::ZERO - sign[0] * unit };
                    }
                    Ok(())
                },
            )?;
            self.factors.group.broadcast(0, &mut sign)?;
            self.factors.group.broadcast(0, &mut ln)?;
            Ok((sign[0], ln[0]))
        })
    }

    /// The determinant. Collective. It overflows easily; see [`log_determinant`](Self::log_determinant).
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn determinant(&self) -> Result<T> {
        located(move || {
            let (sign, ln) = self.log_determinant()?;
            // Twice its root: what overflows does so in its parts.
            let root = T::of_real((ln / (T::Real::ONE + T::Real::ONE)).exp());
            Ok(sign.scaled(root).scaled(root))
        })
    }

    /// An estimate of the condition ‖a‖ ‖a⁻¹‖ by the norms of the largest column sum; infinite for a matrix that is singular to working precision. Collective.
    /// Relative errors of b and a reach the solution by up to this factor.
    ///
    /// # Errors
    /// The end of the job.
    ///
    /// # Source
    /// LAPACK `dgecon`.
    #[track_caller]
    pub fn condition(&self) -> Result<T::Real> {
        located(move || {
            let leader = self.factors.leader("condition", 0);
            let mut condition = [<T::Real as Number>::ONE];
            leader.run(
                &[],
                || Ok(()),
                |lapack, ()| {
                    if self.factors.order > 0 {
                        condition[0] = lapack.reciprocal_condition(self.factors.factors(), self.norm)?.recip();
                    }
                    Ok(())
                },
            )?;
            self.factors.group.broadcast(0, &mut condition)?;
            Ok(condition[0])
        })
    }
}
