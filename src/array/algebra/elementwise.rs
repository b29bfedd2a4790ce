//! Elementwise operations.

use ndarray::{Dimension, IntoDimension};

use super::{Operand, PatchRef, buffer_elements, patch_fingerprint};
use crate::{
    array::GlobalArray,
    calls::located,
    element::{Additive, Element, Number},
    error::Result,
    index::Patch,
};

/// # Algebra, element by element
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Sets all elements. Collective; complete everywhere on return.
    ///
    /// # Errors
    /// Members in different collectives; an earlier transfer that failed; the end of the job. All algebra operations have these
    /// errors.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<f64, Ix2>::builder(job, [4, 6]).create()?;
    ///     a.fill(2.0)?;
    ///     a.at_mut(s![1, ..]).scale(3.0)?;
    ///     assert_eq!(a.sum()?, 18.0 * 2.0 + 6.0 * 6.0);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Fill`.
    #[track_caller]
    pub fn fill(&mut self, value: T) -> Result<()> {
        located(move || self.fill_on(&self.whole(), value))
    }

    pub(super) fn fill_on(&self, patch: &Patch<D>, value: T) -> Result<()> {
        const OPERATION: &str = "fill";
        self.enter(OPERATION, &[patch_fingerprint(patch)])?;
        let part = self.own_part();
        self.own_runs(patch, 1, |run| part.slice(run).fill(value));
        self.leave(OPERATION, Ok(()))
    }

    /// Replaces each element `x` by `f(x)`. Collective; each member calls `f` for the elements that it owns, in unspecified order.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Abs_value`, `GA_Recip`, `GA_Add_constant` and similar calls are closures here.
    #[doc(alias = "mapv_inplace")]
    #[track_caller]
    pub fn map(&mut self, f: impl FnMut(T) -> T) -> Result<()> {
        located(move || self.map_on("map", &self.whole(), f))
    }

    /// Changes what this rank owns of a patch through a private buffer.
    pub(super) fn map_on(&self, operation: &'static str, patch: &Patch<D>, mut f: impl FnMut(T) -> T) -> Result<()> {
        self.enter(operation, &[patch_fingerprint(patch)])?;
        if self.is_whole(patch) {
            let part = self.own_part();
            let most = buffer_elements::<T>();
            let mut buffer = vec![T::zeroed(); most.min(part.len())];
            self.own_runs(patch, 2, |run| {
                for at in run.clone().step_by(most) {
                    let values = &mut buffer[..most.min(run.end - at)];
                    part.read_slice(at, values);
                    values.iter_mut().for_each(|x| *x = f(*x));
                    part.write_slice(at, values);
                }
            });
        } else {
            self.update_boxes(patch, |_, mut values| values.iter_mut().for_each(|x| *x = f(*x)));
        }
        self.leave(operation, Ok(()))
    }

    /// Replaces each element `x` by `f(index, x)`, with the index as in ndarray's `indexed_iter`: a tuple for up to six axes.
    /// Collective; each member calls `f` for the elements that it owns, in unspecified order.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut hilbert = GlobalArray::<f64, Ix2>::builder(job, [3, 3]).create()?;
    ///     hilbert.map_indexed(|(i, j), _| 1.0 / (i + j + 1) as f64)?;
    ///     assert_eq!(hilbert.load([1, 2])?, 0.25);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn map_indexed(&mut self, mut f: impl FnMut(D::Pattern, T) -> T) -> Result<()> {
        located(move || {
            self.enter("map_indexed", &[])?;
            self.update_boxes(&self.whole(), |own, mut values| {
                for (position, x) in values.indexed_iter_mut() {
                    let mut index = position.into_dimension();
                    index.slice_mut().iter_mut().zip(own.start.slice()).for_each(|(index, start)| *index += start);
                    *x = f(index.into_pattern(), *x);
                }
            });
            self.leave("map_indexed", Ok(()))
        })
    }

    /// Sets each element to `f(x, y)`, where `x` and `y` are the elements of `a` and `b` at the same position. Collective. `a` and `b`
    /// are arrays, patches or transposed arrays with the shape of `self` and any distribution; whole arrays with the same distribution
    /// need no communication.
    ///
    /// # Errors
    /// Different shapes or groups; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Elem_multiply`, `GA_Elem_divide`, `GA_Elem_maximum`, `GA_Elem_minimum` are closures here.
    #[doc(alias = "zip_from")]
    #[doc(alias = "zip_mut_with")]
    #[track_caller]
    pub fn assign_zip<'a, A: Element, B: Element>(
        &mut self,
        a: impl Into<PatchRef<'a, A, D>>,
        b: impl Into<PatchRef<'a, B, D>>,
        f: impl FnMut(A, B) -> T,
    ) -> Result<()>
    where
        D: 'a,
    {
        located(move || self.assign_zip_on("assign_zip", &self.whole(), a.into(), b.into(), f))
    }

    pub(super) fn assign_zip_on<A: Element, B: Element>(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        a: PatchRef<'_, A, D>,
        b: PatchRef<'_, B, D>,
        mut f: impl FnMut(A, B) -> T,
    ) -> Result<()> {
        let (a, b) = (a.resolve(operation)?, b.resolve(operation)?);
        self.zip(operation, patch, &a, &b, |out, xs, ys| {
            out.iter_mut().zip(xs).zip(ys).for_each(|((out, &x), &y)| *out = f(x, y));
        })
    }

    /// Checks, syncs, and `f` on stretches of the patch and the two operands.
    fn zip<A: Element, B: Element>(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        a: &Operand<'_, A, D>,
        b: &Operand<'_, B, D>,
        mut f: impl FnMut(&mut [T], &[A], &[B]),
    ) -> Result<()> {
        self.check_operand(operation, patch, a)?;
        self.check_operand(operation, patch, b)?;
        self.enter(operation, &[patch_fingerprint(patch), a.fingerprint(), b.fingerprint()])?;
        let mut out = Vec::new();
        let zipped = self.own_pairs(patch, a, b, true, |xs, ys, write| {
            out.resize(xs.len(), T::zeroed());
            f(&mut out, xs, ys);
            write(&out);
        });
        self.leave(operation, zipped)
    }
}

/// # Algebra, sums and products
impl<T: Additive, D: Dimension> GlobalArray<T, D> {
    /// Sets all elements to zero. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Zero`.
    #[track_caller]
    pub fn zero(&mut self) -> Result<()> {
        located(move || self.fill(T::ZERO))
    }

    /// Multiplies all elements by `alpha`. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Scale`.
    #[track_caller]
    pub fn scale(&mut self, alpha: T::Scale) -> Result<()> {
        located(move || self.scale_on(&self.whole(), alpha))
    }

    pub(super) fn scale_on(&self, patch: &Patch<D>, alpha: T::Scale) -> Result<()> {
        const OPERATION: &str = "scale";
        self.enter(OPERATION, &[patch_fingerprint(patch)])?;
        let part = self.own_part();
        self.own_runs(patch, 2, |run| part.slice(run).scale(alpha));
        self.leave(OPERATION, Ok(()))
    }

    /// Adds `constant` to all elements. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Add_constant`.
    #[track_caller]
    pub fn add_constant(&mut self, constant: T) -> Result<()> {
        located(move || self.map_on("add_constant", &self.whole(), |x| x.plus(constant)))
    }

    /// `self = alpha x + beta y`. Collective. `x` and `y` are arrays, patches or transposed arrays with the shape of `self`; whole
    /// arrays with the same distribution need no communication.
    ///
    /// # Errors
    /// Different shapes or groups; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Add`.
    #[doc(alias = "add_from")]
    #[doc(alias = "GA_Add")]
    #[track_caller]
    pub fn assign_sum<'a>(
        &mut self,
        alpha: T::Scale,
        x: impl Into<PatchRef<'a, T, D>>,
        beta: T::Scale,
        y: impl Into<PatchRef<'a, T, D>>,
    ) -> Result<()>
    where
        D: 'a,
    {
        located(move || self.assign_sum_on(&self.whole(), (alpha, x.into()), (beta, y.into())))
    }

    pub(super) fn assign_sum_on(
        &self,
        patch: &Patch<D>,
        (alpha, x): (T::Scale, PatchRef<'_, T, D>),
        (beta, y): (T::Scale, PatchRef<'_, T, D>),
    ) -> Result<()> {
        const OPERATION: &str = "assign_sum";
        let (x, y) = (x.resolve(OPERATION)?, y.resolve(OPERATION)?);
        if !(self.matches(patch, &x) && self.matches(patch, &y)) {
            return self.zip(OPERATION, patch, &x, &y, sum_of(alpha, beta));
        }
        self.check_operand(OPERATION, patch, &x)?;
        self.check_operand(OPERATION, patch, &y)?;
        self.enter(OPERATION, &[patch_fingerprint(patch), x.fingerprint(), y.fingerprint()])?;
        let own = self.own_part();
        own.axpby(alpha, &x.array.own_part(), beta, &y.array.own_part());
        self.streamed::<T>(3 * own.len());
        self.leave(OPERATION, Ok(()))
    }

    /// `self += alpha x`. Collective. `x` is an array, a patch or a transposed array with the shape of `self`; a whole array with the
    /// same distribution needs no communication.
    ///
    /// # Errors
    /// Different shapes or groups; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// BLAS `axpy`; GA: `GA_Add` with the result as an operand.
    #[doc(alias = "axpy")]
    #[doc(alias = "GA_Add")]
    #[track_caller]
    pub fn scaled_add<'a>(&mut self, alpha: T::Scale, x: impl Into<PatchRef<'a, T, D>>) -> Result<()>
    where
        D: 'a,
    {
        located(move || self.axpby_on("scaled_add", &self.whole(), alpha, x.into(), T::Scale::ONE))
    }

    /// `self = alpha x + beta self`, in one pass. Collective. `x` is as for [`scaled_add`](Self::scaled_add).
    ///
    /// # Errors
    /// Same as that method.
    ///
    /// # Examples
    /// A density is damped:
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut density = GlobalArray2::<f64>::builder(job, [4, 4]).fill(1.0).create()?;
    ///     let new = GlobalArray2::<f64>::builder(job, [4, 4]).fill(3.0).create()?;
    ///     density.axpby(0.25, &new, 0.75)?;
    ///     assert_eq!(density.load([3, 3])?, 1.5);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// The BLAS extension `axpby`; GA: `GA_Add` with the result as an operand.
    #[doc(alias = "GA_Add")]
    #[track_caller]
    pub fn axpby<'a>(&mut self, alpha: T::Scale, x: impl Into<PatchRef<'a, T, D>>, beta: T::Scale) -> Result<()>
    where
        D: 'a,
    {
        located(move || self.axpby_on("axpby", &self.whole(), alpha, x.into(), beta))
    }

    pub(super) fn axpby_on(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        alpha: T::Scale,
        x: PatchRef<'_, T, D>,
        beta: T::Scale,
    ) -> Result<()> {
        let x = x.resolve(operation)?;
        if !self.matches(patch, &x) {
            // Each member reads of this array what it owns itself, before it writes it.
            let own = Operand { array: self, patch: patch.clone(), transposed: false };
            return self.zip(operation, patch, &x, &own, sum_of(alpha, beta));
        }
        self.check_operand(operation, patch, &x)?;
        self.enter(operation, &[patch_fingerprint(patch), x.fingerprint(), patch_fingerprint(patch)])?;
        let own = self.own_part();
        own.axpby(alpha, &x.array.own_part(), beta, &own);
        self.streamed::<T>(3 * own.len());
        self.leave(operation, Ok(()))
    }
}

/// # Algebra, products
impl<T: Number, D: Dimension> GlobalArray<T, D> {
    /// Sets each element to the product of the elements of `a` and `b` at the same position. Collective.
    ///
    /// # Errors
    /// Same as [`assign_zip`](Self::assign_zip).
    ///
    /// # Source
    /// GA: `GA_Elem_multiply`.
    #[doc(alias = "elem_multiply_from")]
    #[doc(alias = "GA_Elem_multiply")]
    #[track_caller]
    pub fn assign_product<'a>(&mut self, a: impl Into<PatchRef<'a, T, D>>, b: impl Into<PatchRef<'a, T, D>>) -> Result<()>
    where
        D: 'a,
    {
        located(move || self.assign_zip_on("assign_product", &self.whole(), a.into(), b.into(), T::scaled))
    }
}

/// `out = alpha x + beta y` on stretches.
fn sum_of<T: Additive>(alpha: T::Scale, beta: T::Scale) -> impl Fn(&mut [T], &[T], &[T]) {
    move |out, xs, ys| {
        out.iter_mut().zip(xs).zip(ys).for_each(|((out, &x), &y)| *out = x.scaled(alpha).plus(y.scaled(beta)));
    }
}
