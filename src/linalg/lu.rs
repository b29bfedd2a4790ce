//! General square matrices.

use ndarray::{Array2, ArrayViewMut2, Ix2};
use num_traits::{Float, One, Zero};

use super::{
    accuracy::{self, Reals, Refined, System},
    blocks::{self, Blocking, Factors, Phases, Pivoted, Triangle},
    call::Call,
    field::{Field, is_finite},
};
use crate::{
    GlobalArray, GlobalArray1, GlobalArray2,
    algebra::VectorOrMatrix,
    calls::located,
    error::{Error, MatrixError, Result},
    memory::vectorized::vectorized,
    sync::{Group, ops},
};

/// The factors of a matrix with its rows interchanged, P a = L U. All members keep a part of them.
#[derive(Debug)]
pub struct Lu<T: Field> {
    factors: Factors<T>,
    /// Row i was interchanged with row `pivots[i]`, one after the other.
    pivots: Vec<usize>,
    /// The largest column sum of magnitudes of the matrix.
    norm: T::Real,
    phases: Phases,
}

/// # Linear systems
impl<T: Field> GlobalArray<T, Ix2> {
    /// The factors of a square matrix, with partial pivoting. Collective.
    ///
    /// The members compute together, each on its blocks of a copy of the matrix. A block-cyclic matrix in square blocks over all members keeps its grid, and
    /// blocks of 32 to 256 rows; another one gets those of [`Blocking::new`].
    ///
    /// # Errors
    /// [`Error::Matrix`]: a column without a pivot other than zero, or an element that is not finite. A matrix that is nearly singular is no
    /// error: see [`Lu::condition`]. A matrix that is not square; too little memory; members with different calls; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
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
    /// GA: `GA_Lu_solve`, `GA_Solve`; ScaLAPACK `pdgetrf`; the algorithm: HPL.
    #[doc(alias("GA_Lu_solve", "GA_Solve", "ga_lu_solve_seq"))]
    #[track_caller]
    pub fn lu(&self) -> Result<Lu<T>> {
        located(move || {
            let call = Call::of("lu", self)?;
            let (order, blocking) = (call.order(self.shape())?, Blocking::for_copy(self));
            Lu::of(&call, order, blocking, None, |place, part| blocks::copy(&call, self, place, part, false))
        })
    }

    /// The same in place of the matrix, without a copy of it, if it is block-cyclic in square blocks over all members and in column-major order. Collective.
    /// Of another matrix a copy is factored.
    ///
    /// # Errors
    /// Those of [`lu`](Self::lu); the matrix is lost then.
    #[track_caller]
    pub fn into_lu(self) -> Result<Lu<T>> {
        located(move || {
            let (group, name) = (self.group().clone(), self.name().to_owned());
            let call = Call { group: &group, name: &name, ..Call::of("into_lu", &self)? };
            let order = call.order(self.shape())?;
            match Blocking::in_place(&self) {
                Some(blocking) => Lu::of(&call, order, blocking, Some(self), |_, _| Ok(())),
                None => {
                    let blocking = Blocking::for_copy(&self);
                    Lu::of(&call, order, blocking, None, |place, part| blocks::copy(&call, &self, place, part, false))
                }
            }
        })
    }
}

impl<T: Field> Lu<T> {
    /// The factors of a square matrix of this order whose elements `f` gives, without a second copy of it. Collective.
    ///
    /// `f` gets row and column, for the elements of the calling member, column by column.
    ///
    /// # Errors
    /// Those of [`GlobalArray::lu`]; a blocking whose grid has not as many places as the group has members.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::{linalg::{Blocking, Lu}, prelude::*};
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let element = |(i, j): (usize, usize)| if i == j { 2.0 } else { 1.0 / (1.0 + i.abs_diff(j) as f64) };
    ///     let lu = Lu::from_fn(job, 100, Blocking { edge: 16, grid: [2, 1] }, element)?;
    ///     let b = GlobalArray1::from_fn(job, [100], |i| element((i, 7)))?;
    ///     let x = lu.solve(&b)?;
    ///     assert!((x.load(7)? - 1.0).abs() < 1e-12 && lu.condition()? < 1e3);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn from_fn(
        group: &impl AsRef<Group>,
        order: usize,
        blocking: Blocking,
        mut f: impl FnMut((usize, usize)) -> T,
    ) -> Result<Self> {
        located(move || {
            let call = Call { group: group.as_ref(), operation: "Lu::from_fn", name: "matrix", id: 0 };
            Lu::of(&call, order, blocking, None, |place, mut part| {
                if !call.group.skips() {
                    for (j, mut column) in part.columns_mut().into_iter().enumerate() {
                        column.indexed_iter_mut().for_each(|(i, to)| *to = f((place.rows.global(i), place.columns.global(j))));
                    }
                }
                Ok(())
            })
        })
    }

    fn of(
        call: &Call<'_>,
        order: usize,
        blocking: Blocking,
        given: Option<GlobalArray2<T>>,
        fill: impl FnOnce(&blocks::Place, ArrayViewMut2<'_, T>) -> Result<()>,
    ) -> Result<Self> {
        let _doing = call.begin(&blocking.check(call, order)?)?;
        let group = call.group;
        let fill = |place: &blocks::Place, mut part: ArrayViewMut2<'_, T>| {
            fill(place, part.view_mut())?;
            if group.skips() {
                return Ok(T::Real::one());
            }
            let mut sums = vec![T::Real::zero(); order];
            for (j, column) in part.columns().into_iter().enumerate() {
                sums[place.columns.global(j)] = sum_of_magnitudes(column.to_slice().expect("contiguous columns"));
            }
            // A sum that is not finite may be one of finite elements.
            let is_finite = sums.iter().all(|sum| sum.is_finite());
            call.agree_on(if is_finite { None } else { blocks::not_finite(place, part.view()) })?;
            group.all_reduce(&mut sums, ops::sum)?;
            Ok(sums.into_iter().fold(T::Real::zero(), Float::max))
        };
        let factor = |place: &blocks::Place, part: ArrayViewMut2<'_, T>| {
            let mut pivoted = Pivoted::new(group, *place)?;
            let found = pivoted.factor(part);
            let pivots = found.map_err(|stop| stop.into_error(|at| call.wrong(MatrixError::Singular { at }, None)))?;
            Ok((pivots, pivoted.phases()))
        };
        let (factors, norm, (pivots, phases)) = Factors::new(call, order, blocking, given, fill, factor)?;
        Ok(Lu { factors, pivots, norm, phases })
    }

    /// The solution of a x = b, for a vector or several right-hand sides as the columns of a matrix. Collective.
    ///
    /// Few right-hand sides are solved for by all members together. With 16 or more for each member, each solves for some of them alone, and reads
    /// all factors.
    ///
    /// # Errors
    /// Another number of rows, or another group; an element of `b` that is not finite; the end of the job.
    #[track_caller]
    pub fn solve<D: VectorOrMatrix>(&self, b: &GlobalArray<T, D>) -> Result<GlobalArray<T, D>> {
        located(move || self.factors.solve_for("solve", b, [Triangle::UnitLower, Triangle::Upper], &self.pivots))
    }

    /// Makes a solution of a x = b more accurate, with the matrix itself. Collective.
    ///
    /// The residual is solved for and added, until the componentwise backward error is rounding, is not halved, or five times.
    ///
    /// # Errors
    /// Those of [`solve`](Self::solve); a matrix or a solution of another shape or group.
    ///
    /// # Source
    /// LAPACK `dgerfs`; W. Oettli, W. Prager, Numer. Math. 6, 1964.
    #[track_caller]
    pub fn refine(&self, a: &GlobalArray2<T>, b: &GlobalArray1<T>, x: &mut GlobalArray1<T>) -> Result<Refined> {
        located(move || {
            let call = self.factors.call("refine");
            call.goes_with(self.factors.order(), a)?;
            call.goes_with(self.factors.order(), b)?;
            call.goes_with(self.factors.order(), x)?;
            call.order(a.shape())?;
            let _doing = call.begin(&[a.id(), b.id(), x.id()])?;
            let (b, mut refined) = (b.get(..)?.to_vec(), x.get(..)?.to_vec());
            let done = accuracy::refine(&Held { lu: self, a: Some(a) }, &b, &mut refined)?;
            x.owner_epoch(|mut part| {
                part.blocks().for_each(|block| {
                    let range = block.patch.range(0);
                    part.block_mut(&block).iter_mut().zip(&refined[range]).for_each(|(to, &x)| *to = x);
                })
            })?;
            Ok(done)
        })
    }

    /// An estimate of the condition number κ₁ = ‖a‖₁·‖a⁻¹‖₁: how much larger than those of a and b the relative errors of x may be. But for rounding it is
    /// never above κ₁, and seldom below a third of it. Infinite where a solution is. Collective.
    ///
    /// # Errors
    /// The end of the job.
    ///
    /// # Source
    /// LAPACK `dgecon`; N. J. Higham, ACM Trans. Math. Softw. 14, 1988.
    #[track_caller]
    pub fn condition(&self) -> Result<T::Real> {
        located(move || {
            let call = self.factors.call("condition");
            let _doing = call.begin(&[])?;
            match self.factors.order() {
                0 => Ok(T::Real::one()),
                order => Ok(self.norm * accuracy::norm_of_inverse(&Held { lu: self, a: None }, order)?),
            }
        })
    }

    /// The natural logarithm of the determinant's magnitude, and the determinant divided by its magnitude: its sign, if it is real. Collective.
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn log_determinant(&self) -> Result<(T, T::Real)> {
        located(move || {
            let _doing = self.factors.call("log_determinant").begin(&[])?;
            let (mut sign, mut ln) = (T::ONE, T::Real::zero());
            for (i, x) in self.factors.diagonal() {
                let magnitude = x.magnitude();
                ln += magnitude.ln();
                let unit = x.quotient(T::of_real(magnitude));
                sign = if self.pivots[i] == i { sign * unit } else { T::ZERO - sign * unit };
            }
            let sign = self.factors.group().all_reduce_one(sign, ops::product)?;
            Ok((sign, self.factors.group().all_reduce_one(ln, ops::sum)?))
        })
    }

    /// The determinant. Collective. It overflows easily; see [`log_determinant`](Self::log_determinant).
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn determinant(&self) -> Result<T> {
        located(move || {
            let _doing = self.factors.call("determinant").begin(&[])?;
            let factor = |(i, x): (usize, T)| if self.pivots[i] == i { x } else { T::ZERO - x };
            let product = self.factors.diagonal().map(factor).fold(T::ONE, |product, x| product * x);
            let product = self.factors.group().all_reduce_one(product, ops::product)?;
            if is_finite(product) && product.size() >= T::Real::min_positive_value() {
                return Ok(product);
            }
            let (sign, ln) = self.log_determinant()?;
            // Twice its root: what overflows does so in its parts.
            let root = T::of_real((ln / (T::Real::one() + T::Real::one())).exp());
            Ok(sign.scaled(root).scaled(root))
        })
    }

    /// Where the time of the factorization went, on this member. Local.
    #[must_use]
    pub fn phases(&self) -> Phases {
        self.phases
    }
}

/// Several sums, so that they are vectors.
fn sum_of_magnitudes<T: Field>(column: &[T]) -> T::Real {
    let mut sums = [T::Real::zero(); 16];
    vectorized(
        #[inline(always)]
        || column.chunks(16).for_each(|chunk| sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x.magnitude())),
    );
    sums.into_iter().fold(T::Real::zero(), |sum, x| sum + x)
}

/// Factors, and the matrix where its products are needed.
struct Held<'a, T: Field> {
    lu: &'a Lu<T>,
    a: Option<&'a GlobalArray2<T>>,
}

impl<T: Field> Held<'_, T> {
    fn solve_with(&self, b: &[T], triangles: [Triangle; 2]) -> Result<Vec<T>> {
        let mut z = Array2::from_shape_vec((b.len(), 1), b.to_vec()).map_err(Error::other)?;
        self.lu.factors.solve(&mut z, triangles, &self.lu.pivots)?;
        Ok(z.into_raw_vec_and_offset().0)
    }
}

impl<T: Field> System<T> for Held<'_, T> {
    type Error = Error;

    fn solve(&self, b: &[T]) -> Result<Vec<T>> {
        self.solve_with(b, [Triangle::UnitLower, Triangle::Upper])
    }

    fn solve_adjoint(&self, b: &[T]) -> Result<Vec<T>> {
        self.solve_with(b, [Triangle::UpperAdjoint, Triangle::UnitLowerAdjoint])
    }

    fn product_and_scale(&self, x: &[T]) -> Result<(Vec<T>, Reals<T>)> {
        let (group, a) = (self.lu.factors.group(), self.a.expect("a refinement has the matrix"));
        let (mut product, mut scale) = (vec![T::ZERO; x.len()], vec![T::Real::zero(); x.len()]);
        let share = |member: usize| x.len() * member / group.size();
        let (first, end) = (share(group.member()), share(group.member() + 1));
        let multiplied = (first..end).step_by(ROWS).try_for_each(|first| {
            let rows = a.get([first..end.min(first + ROWS), 0..x.len()])?;
            group.work(T::FLOPS * 2.0 * rows.len() as f64, 0.0);
            for (i, row) in rows.rows().into_iter().enumerate() {
                for (&a, &x) in row.iter().zip(x) {
                    product[first + i] += a * x;
                    scale[first + i] += (a * x).magnitude();
                }
            }
            Ok(())
        });
        a.settle("refine", a.id(), multiplied)?;
        group.all_reduce(&mut product, ops::sum)?;
        group.all_reduce(&mut scale, ops::sum)?;
        Ok((product, scale))
    }
}

/// Rows of the matrix that a member reads at once for a product.
const ROWS: usize = 64;
