//! Elementwise operations.

use ndarray::Dimension;

use super::{Elements, IntoOperand, Operand, PatchRef, buffer_elements, walk::index_of};
use crate::{
    array::GlobalArray,
    calls::located,
    element::{Additive, Element, Number},
    error::Result,
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
    #[doc(alias = "GA_Fill")]
    #[track_caller]
    pub fn fill(&mut self, value: T) -> Result<()> {
        located(move || self.all().fill(value))
    }

    /// Replaces each element `x` by `f(x)`. Collective; each member calls `f` for the elements that it owns, in unspecified order.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Abs_value`, `GA_Recip`, `GA_Add_constant` and similar calls are closures here.
    #[doc(alias("GA_Abs_value", "GA_Recip", "GA_Randomize"))]
    #[doc(alias = "mapv_inplace")]
    #[track_caller]
    pub fn map(&mut self, f: impl FnMut(T) -> T) -> Result<()> {
        located(move || self.all().map("map", f))
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
    pub fn map_indexed(&mut self, f: impl FnMut(D::Pattern, T) -> T) -> Result<()> {
        located(move || self.all().map_indexed(f))
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
    #[doc(alias("GA_Elem_divide", "GA_Elem_maximum", "GA_Elem_minimum"))]
    #[doc(alias = "zip_from")]
    #[doc(alias = "zip_mut_with")]
    #[track_caller]
    pub fn assign_zip<A: Element, B: Element>(
        &mut self,
        a: impl IntoOperand<A, D>,
        b: impl IntoOperand<B, D>,
        f: impl FnMut(A, B) -> T,
    ) -> Result<()> {
        located(move || self.all().assign_zip("assign_zip", a.into_operand(), b.into_operand(), f))
    }

    /// Sets each element to `f(x)`, where `x` is the element of `a` at the same position. Collective. Also converts types:
    /// `b.assign_map(&a, |x| x as f32)`. `a` is as for [`assign_zip`](Self::assign_zip).
    ///
    /// # Errors
    /// Same as that method.
    #[track_caller]
    pub fn assign_map<A: Element>(&mut self, a: impl IntoOperand<A, D>, f: impl FnMut(A) -> T) -> Result<()> {
        located(move || self.all().assign_map(a.into_operand(), f))
    }

    /// Replaces each element `x` by `f(x, y)`, where `y` is the element of `a` at the same position. Collective, in place and in one
    /// pass. `a` is as for [`assign_zip`](Self::assign_zip).
    ///
    /// Closures work on private copies that fit the first cache, because other ranks might write meanwhile: on memory-bound arrays about
    /// 0.7 of the speed of a loop in place. [`axpby`](Self::axpby) has no such copies, and neither has an [epoch](Self::owner_epoch).
    ///
    /// # Errors
    /// Same as that method.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut x = GlobalArray1::<f64>::builder(job, [10]).fill(6.0).create()?;
    ///     let mass = GlobalArray1::<u32>::builder(job, [10]).fill(4).create()?;
    ///     x.zip_with(&mass, |x, m| x / f64::from(m))?;
    ///     x.at_mut(s![0]).zip_with(mass.at(s![9]), |x, m| x + f64::from(m))?;
    ///     assert_eq!((x.load([0])?, x.load([9])?), (5.5, 1.5));
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Elem_multiply` and its like with the result as an operand.
    #[track_caller]
    pub fn zip_with<A: Element>(&mut self, a: impl IntoOperand<A, D>, f: impl FnMut(T, A) -> T) -> Result<()> {
        located(move || self.all().zip_with(a.into_operand(), f))
    }

    /// Replaces each element `x` by `f(x, y, z)`, where `y` and `z` are the elements of `a` and `b` at the same position; otherwise like
    /// [`zip_with`](Self::zip_with). Collective.
    ///
    /// # Errors
    /// Same as that method.
    #[doc(alias = "GA_Median")]
    #[track_caller]
    pub fn zip_with2<A: Element, B: Element>(
        &mut self,
        a: impl IntoOperand<A, D>,
        b: impl IntoOperand<B, D>,
        f: impl FnMut(T, A, B) -> T,
    ) -> Result<()> {
        located(move || self.all().zip_with2(a.into_operand(), b.into_operand(), f))
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    pub(super) fn fill(&self, value: T) -> Result<()> {
        const OPERATION: &str = "fill";
        let section = self.array.enter(OPERATION, &[self.fingerprint()], Elements::Own)?;
        self.share_each_run(1, self.array.thread_share(), |run| self.array.own_part().slice(run).fill(value));
        section.leave(Ok(()))
    }

    /// Changes what this rank owns through a private buffer.
    pub(super) fn map(&self, operation: &'static str, mut f: impl FnMut(T) -> T) -> Result<()> {
        let section = self.array.enter(operation, &[self.fingerprint()], Elements::Own)?;
        if self.is_whole() {
            let part = self.array.own_part();
            let most = buffer_elements::<T>();
            let mut buffer = vec![T::zeroed(); most.min(part.len())];
            self.own_runs(2, |run| {
                for at in run.clone().step_by(most) {
                    let values = &mut buffer[..most.min(run.end - at)];
                    part.read_slice(at, values);
                    values.iter_mut().for_each(|x| *x = f(*x));
                    part.write_slice(at, values);
                }
            });
        } else {
            self.update_boxes(|_, mut values| values.iter_mut().for_each(|x| *x = f(*x)));
        }
        section.leave(Ok(()))
    }

    pub(super) fn map_indexed(&self, mut f: impl FnMut(D::Pattern, T) -> T) -> Result<()> {
        const OPERATION: &str = "map_indexed";
        let section = self.array.enter(OPERATION, &[self.fingerprint()], Elements::Own)?;
        self.update_boxes(|own, mut values| {
            values.indexed_iter_mut().for_each(|(position, x)| *x = f(index_of(own, position), *x));
        });
        section.leave(Ok(()))
    }

    pub(super) fn assign_zip<A: Element, B: Element, R: Dimension, Q: Dimension>(
        &self,
        operation: &'static str,
        a: PatchRef<'_, A, D, R>,
        b: PatchRef<'_, B, D, Q>,
        mut f: impl FnMut(A, B) -> T,
    ) -> Result<()> {
        let (a, b) = (a.resolve(operation)?, b.resolve(operation)?);
        self.zip(operation, &a, Some(&b), false, |out, xs, ys| {
            out.iter_mut().zip(xs).zip(ys).for_each(|((out, &x), &y)| *out = f(x, y));
        })
    }

    pub(super) fn assign_map<A: Element, R: Dimension>(&self, a: PatchRef<'_, A, D, R>, mut f: impl FnMut(A) -> T) -> Result<()> {
        const OPERATION: &str = "assign_map";
        let a = a.resolve(OPERATION)?;
        self.zip(OPERATION, &a, none::<A, D>(), false, |out, xs, _| out.iter_mut().zip(xs).for_each(|(out, &x)| *out = f(x)))
    }

    pub(super) fn zip_with<A: Element, R: Dimension>(
        &self,
        a: PatchRef<'_, A, D, R>,
        mut f: impl FnMut(T, A) -> T,
    ) -> Result<()> {
        const OPERATION: &str = "zip_with";
        let a = a.resolve(OPERATION)?;
        self.zip(OPERATION, &a, none::<T, D>(), true, |out, xs, _| out.iter_mut().zip(xs).for_each(|(out, &x)| *out = f(*out, x)))
    }

    pub(super) fn zip_with2<A: Element, B: Element, R: Dimension, Q: Dimension>(
        &self,
        a: PatchRef<'_, A, D, R>,
        b: PatchRef<'_, B, D, Q>,
        mut f: impl FnMut(T, A, B) -> T,
    ) -> Result<()> {
        const OPERATION: &str = "zip_with2";
        let (a, b) = (a.resolve(OPERATION)?, b.resolve(OPERATION)?);
        self.zip(OPERATION, &a, Some(&b), true, |out, xs, ys| {
            out.iter_mut().zip(xs).zip(ys).for_each(|((out, &x), &y)| *out = f(*out, x, y));
        })
    }

    /// Checks, syncs, and `f` on stretches of this operand, whose elements it gets if it `reads` them, and of one or two others.
    fn zip<A: Element, B: Element, R: Dimension, Q: Dimension>(
        &self,
        operation: &'static str,
        a: &Operand<'_, A, D, R>,
        b: Option<&Operand<'_, B, D, Q>>,
        reads: bool,
        mut f: impl FnMut(&mut [T], &[A], &[B]),
    ) -> Result<()> {
        self.check_operand(operation, a)?;
        b.map_or(Ok(()), |b| self.check_operand(operation, b))?;
        let second = b.map_or(0, Operand::fingerprint);
        let uses = b.map_or(Elements::Own, |b| self.uses(b)).max(self.uses(a));
        let section = self.array.enter(operation, &[self.fingerprint(), a.fingerprint(), second], uses)?;
        let mut out = Vec::new();
        let zipped = self.own_stretches(a, b, 1 + usize::from(reads), |own, xs, ys| {
            out.resize(xs.len(), T::zeroed());
            if reads {
                own.read(&mut out);
            }
            f(&mut out, xs, ys);
            own.write(&mut out);
        });
        section.leave(zipped)
    }
}

/// No second operand.
fn none<'a, T, D>() -> Option<&'a Operand<'a, T, D>> {
    None
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
    #[doc(alias = "GA_Zero")]
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
    #[doc(alias = "GA_Scale")]
    #[track_caller]
    pub fn scale(&mut self, alpha: T::Scale) -> Result<()> {
        located(move || self.all().scale(alpha))
    }

    /// Adds `constant` to all elements. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Add_constant`.
    #[doc(alias = "GA_Add_constant")]
    #[track_caller]
    pub fn add_constant(&mut self, constant: T) -> Result<()> {
        located(move || self.all().map("add_constant", |x| x.plus(constant)))
    }

    /// `self = alpha x + beta y`. Collective. `x` and `y` are arrays, patches or transposed arrays with the shape of `self`; whole
    /// arrays with the same distribution need no communication.
    ///
    /// # Errors
    /// Different shapes or groups; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Add`.
    #[doc(alias = "GA_Add")]
    #[doc(alias = "add_from")]
    #[track_caller]
    pub fn assign_sum(
        &mut self,
        alpha: T::Scale,
        x: impl IntoOperand<T, D>,
        beta: T::Scale,
        y: impl IntoOperand<T, D>,
    ) -> Result<()> {
        located(move || self.all().assign_sum((alpha, x.into_operand()), (beta, y.into_operand())))
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
    #[track_caller]
    pub fn scaled_add(&mut self, alpha: T::Scale, x: impl IntoOperand<T, D>) -> Result<()> {
        located(move || self.all().axpby("scaled_add", alpha, x.into_operand(), T::Scale::ONE))
    }

    /// `self = alpha x + beta self`, in one pass. Collective. `x` is as for [`scaled_add`](Self::scaled_add). If `beta` is zero, the old
    /// contents are not read.
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
    #[track_caller]
    pub fn axpby(&mut self, alpha: T::Scale, x: impl IntoOperand<T, D>, beta: T::Scale) -> Result<()> {
        located(move || self.all().axpby("axpby", alpha, x.into_operand(), beta))
    }
}

impl<T: Additive, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    pub(super) fn scale(&self, alpha: T::Scale) -> Result<()> {
        const OPERATION: &str = "scale";
        let section = self.array.enter(OPERATION, &[self.fingerprint()], Elements::Own)?;
        self.share_each_run(2, self.array.thread_share(), |run| self.array.own_part().slice(run).scale(alpha));
        section.leave(Ok(()))
    }

    pub(super) fn assign_sum<R: Dimension, Q: Dimension>(
        &self,
        (alpha, x): (T::Scale, PatchRef<'_, T, D, R>),
        (beta, y): (T::Scale, PatchRef<'_, T, D, Q>),
    ) -> Result<()> {
        const OPERATION: &str = "assign_sum";
        let (x, y) = (x.resolve(OPERATION)?, y.resolve(OPERATION)?);
        if !(self.matches(&x) && self.matches(&y)) {
            return self.zip(OPERATION, &x, Some(&y), false, |out, xs, ys| {
                out.iter_mut().zip(xs).zip(ys).for_each(|((out, x), y)| *out = x.scaled(alpha).plus(y.scaled(beta)));
            });
        }
        self.check_operand(OPERATION, &x)?;
        self.check_operand(OPERATION, &y)?;
        let section = self.array.enter(OPERATION, &[self.fingerprint(), x.fingerprint(), y.fingerprint()], Elements::Own)?;
        self.share_each_run(3, self.array.thread_share(), |run| {
            let [own, x, y] = [self.array.own_part(), x.array.own_part(), y.array.own_part()].map(|part| part.slice(run.clone()));
            own.axpby(alpha, &x, beta, &y);
        });
        section.leave(Ok(()))
    }

    pub(super) fn axpby<R: Dimension>(
        &self,
        operation: &'static str,
        alpha: T::Scale,
        x: PatchRef<'_, T, D, R>,
        beta: T::Scale,
    ) -> Result<()> {
        let x = x.resolve(operation)?;
        if beta == T::Scale::ZERO {
            return self.zip(operation, &x, none::<T, D>(), false, |out, xs, _| {
                out.iter_mut().zip(xs).for_each(|(out, x)| *out = x.scaled(alpha));
            });
        }
        if !self.matches(&x) {
            return self.zip(operation, &x, none::<T, D>(), true, |out, xs, _| {
                out.iter_mut().zip(xs).for_each(|(out, x)| *out = x.scaled(alpha).plus(out.scaled(beta)));
            });
        }
        self.check_operand(operation, &x)?;
        // As `zip` does: members may have other factors.
        let section = self.array.enter(operation, &[self.fingerprint(), x.fingerprint(), 0], Elements::Own)?;
        self.share_each_run(3, self.array.thread_share(), |run| {
            let [own, x] = [self.array.own_part(), x.array.own_part()].map(|part| part.slice(run.clone()));
            own.axpby(alpha, &x, beta, &own);
        });
        section.leave(Ok(()))
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
    #[doc(alias = "GA_Elem_multiply")]
    #[doc(alias = "elem_multiply_from")]
    #[track_caller]
    pub fn assign_product(&mut self, a: impl IntoOperand<T, D>, b: impl IntoOperand<T, D>) -> Result<()> {
        located(move || self.all().assign_zip("assign_product", a.into_operand(), b.into_operand(), T::scaled))
    }
}
