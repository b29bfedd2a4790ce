//! Each element by itself: fill, scale, map, αx + βy, products.

use ndarray::{Dimension, IntoDimension};

use super::{buffer_elements, check_shapes, patch_fingerprint};
use crate::{
    array::GlobalArray,
    element::{Accumulate, Element},
    error::Result,
    index::{IntoPatch, Patch},
};

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Sets all elements. Collective; complete everywhere on return.
    ///
    /// # Errors
    /// Members in different collectives; a transfer that failed before; the end of the job. All operations of the algebra fail so.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<f64, Ix2>::builder(job, [4, 6]).create()?;
    ///     a.fill(2.0)?;
    ///     a.scale_patch(s![1, ..], 3.0)?;
    ///     assert_eq!(a.sum()?, 18.0 * 2.0 + 6.0 * 6.0);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Fill`.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.enter("fill", &[])?;
        let part = self.own_part();
        self.own_stretches(|run| part.slice(run).fill(value));
        self.leave("fill", Ok(()))
    }

    /// Sets the elements of a patch. Collective.
    ///
    /// # Errors
    /// A patch outside the array; as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `NGA_Fill_patch`.
    pub fn fill_patch(&mut self, patch: impl IntoPatch<D>, value: T) -> Result<()> {
        const OPERATION: &str = "fill_patch";
        let patch = self.resolve(OPERATION, patch)?;
        self.enter(OPERATION, &[patch_fingerprint(&patch)])?;
        let part = self.own_part();
        self.own_runs(&patch, |run| part.slice(run).fill(value));
        self.leave(OPERATION, Ok(()))
    }

    /// Replaces each element `x` by `f(x)`. Collective; each member calls `f` for what it owns, in no promised order.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Abs_value`, `GA_Recip`, `GA_Add_constant` and their like are closures here.
    pub fn map(&mut self, mut f: impl FnMut(T) -> T) -> Result<()> {
        self.enter("map", &[])?;
        self.map_own(|values| values.iter_mut().for_each(|x| *x = f(*x)));
        self.leave("map", Ok(()))
    }

    /// Replaces each element `x` by `f(index, x)`, with the index as ndarray's `indexed_iter` gives it: a tuple up to six axes.
    /// Collective; each member calls `f` for what it owns, in no promised order.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
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
    pub fn map_indexed(&mut self, mut f: impl FnMut(D::Pattern, T) -> T) -> Result<()> {
        self.enter("map_indexed", &[])?;
        self.update_boxes(&self.whole(), |own, mut values| {
            for (position, x) in values.indexed_iter_mut() {
                let mut index = position.into_dimension();
                index.slice_mut().iter_mut().zip(own.start.slice()).for_each(|(index, start)| *index += start);
                *x = f(index.into_pattern(), *x);
            }
        });
        self.leave("map_indexed", Ok(()))
    }

    /// Sets each element to `f(x, y)` of the elements of `a` and `b` at its index. Collective. All three have the same extents, and
    /// any distributions; alike they need no communication.
    ///
    /// # Errors
    /// Different extents or groups; as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Elem_multiply`, `GA_Elem_divide`, `GA_Elem_maximum`, `GA_Elem_minimum` are closures here.
    #[doc(alias = "zip_from")]
    #[doc(alias = "zip_mut_with")]
    pub fn assign_zip<A: Element, B: Element>(
        &mut self,
        a: &GlobalArray<A, D>,
        b: &GlobalArray<B, D>,
        mut f: impl FnMut(A, B) -> T,
    ) -> Result<()> {
        self.check_like("assign_zip", a)?;
        self.check_like("assign_zip", b)?;
        let whole = self.whole();
        self.zip("assign_zip", (&whole, &whole, &whole), a, b, |out, xs, ys| {
            out.iter_mut().zip(xs).zip(ys).for_each(|((out, &x), &y)| *out = f(x, y));
        })
    }

    /// Checks, syncs, and `f` on stretches of the three patches.
    fn zip<A: Element, B: Element>(
        &self,
        operation: &'static str,
        (patch, a_patch, b_patch): (&Patch<D>, &Patch<D>, &Patch<D>),
        a: &GlobalArray<A, D>,
        b: &GlobalArray<B, D>,
        mut f: impl FnMut(&mut [T], &[A], &[B]),
    ) -> Result<()> {
        self.check_members(operation, a)?;
        self.check_members(operation, b)?;
        check_shapes(operation, (&self.name, patch.count().slice()), (&a.name, a_patch))?;
        check_shapes(operation, (&self.name, patch.count().slice()), (&b.name, b_patch))?;
        let prints = [patch, a_patch, b_patch].map(patch_fingerprint);
        self.enter(operation, &[a.id, b.id, prints[0], prints[1], prints[2]])?;
        let mut out = Vec::new();
        let zipped = self.own_pairs(patch, (a, a_patch), (b, b_patch), |xs, ys, write| {
            out.resize(xs.len(), T::zeroed());
            f(&mut out, xs, ys);
            write(&out);
        });
        self.leave(operation, zipped)
    }

    /// Changes this rank's part through a private buffer.
    fn map_own(&self, mut f: impl FnMut(&mut [T])) {
        let part = self.own_part();
        let most = buffer_elements::<T>();
        let mut buffer = vec![T::zeroed(); most.min(part.len())];
        self.own_stretches(|run| {
            for at in run.clone().step_by(most) {
                let values = &mut buffer[..most.min(run.end - at)];
                part.read_slice(at, values);
                f(values);
                part.write_slice(at, values);
            }
        });
    }
}

impl<T: Accumulate, D: Dimension> GlobalArray<T, D> {
    /// Sets all elements to zero. Collective.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Zero`.
    pub fn zero(&mut self) -> Result<()> {
        self.fill(T::ZERO)
    }

    /// Multiplies all elements by `alpha`. Collective.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Scale`.
    pub fn scale(&mut self, alpha: T) -> Result<()> {
        self.enter("scale", &[])?;
        let part = self.own_part();
        self.own_stretches(|run| part.slice(run).scale(alpha));
        self.leave("scale", Ok(()))
    }

    /// Multiplies the elements of a patch by `alpha`. Collective.
    ///
    /// # Errors
    /// A patch outside the array; as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `NGA_Scale_patch`.
    pub fn scale_patch(&mut self, patch: impl IntoPatch<D>, alpha: T) -> Result<()> {
        const OPERATION: &str = "scale_patch";
        let patch = self.resolve(OPERATION, patch)?;
        self.enter(OPERATION, &[patch_fingerprint(&patch)])?;
        let part = self.own_part();
        self.own_runs(&patch, |run| part.slice(run).scale(alpha));
        self.leave(OPERATION, Ok(()))
    }

    /// Adds `constant` to all elements. Collective.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Add_constant`.
    pub fn add_constant(&mut self, constant: T) -> Result<()> {
        self.enter("add_constant", &[])?;
        self.map_own(|values| values.iter_mut().for_each(|x| *x = x.plus(constant)));
        self.leave("add_constant", Ok(()))
    }

    /// `self = alpha x + beta y`. Collective. All three have the same extents; distributed alike they need no communication.
    ///
    /// # Errors
    /// Different extents or groups; as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Add`.
    #[doc(alias = "add_from")]
    #[doc(alias = "GA_Add")]
    pub fn assign_sum(&mut self, alpha: T, x: &Self, beta: T, y: &Self) -> Result<()> {
        const OPERATION: &str = "assign_sum";
        self.check_like(OPERATION, x)?;
        self.check_like(OPERATION, y)?;
        if !(self.is_aligned(x) && self.is_aligned(y)) {
            let whole = self.whole();
            return self.zip(OPERATION, (&whole, &whole, &whole), x, y, sum_of(alpha, beta));
        }
        self.enter(OPERATION, &[x.id, y.id])?;
        self.own_part().axpby(alpha, &x.own_part(), beta, &y.own_part());
        self.leave(OPERATION, Ok(()))
    }

    /// `self[patch] = alpha x[x_patch] + beta y[y_patch]`, for patches of one shape. Collective.
    ///
    /// # Errors
    /// A patch outside its array; different shapes or groups; as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `NGA_Add_patch`.
    pub fn add_patch(
        &mut self,
        patch: impl IntoPatch<D>,
        (alpha, x, x_patch): (T, &Self, impl IntoPatch<D>),
        (beta, y, y_patch): (T, &Self, impl IntoPatch<D>),
    ) -> Result<()> {
        const OPERATION: &str = "add_patch";
        let patch = self.resolve(OPERATION, patch)?;
        let (x_patch, y_patch) = (x.resolve(OPERATION, x_patch)?, y.resolve(OPERATION, y_patch)?);
        self.zip(OPERATION, (&patch, &x_patch, &y_patch), x, y, sum_of(alpha, beta))
    }

    /// `self += alpha x`. Collective. Same extents; distributed alike they need no communication.
    ///
    /// # Errors
    /// Different extents or groups; as [`fill`](Self::fill).
    ///
    /// # Source
    /// BLAS `axpy`; GA: `GA_Add` with the result as an operand.
    #[doc(alias = "axpy")]
    #[doc(alias = "GA_Add")]
    pub fn scaled_add(&mut self, alpha: T, x: &Self) -> Result<()> {
        const OPERATION: &str = "scaled_add";
        self.check_like(OPERATION, x)?;
        if !self.is_aligned(x) {
            let whole = self.whole();
            // Each member reads of this array what it owns itself, before it writes it.
            return self.zip(OPERATION, (&whole, &whole, &whole), x, self, sum_of(alpha, T::ONE));
        }
        self.enter(OPERATION, &[x.id])?;
        let own = self.own_part();
        own.axpby(alpha, &x.own_part(), T::ONE, &own);
        self.leave(OPERATION, Ok(()))
    }

    /// Sets each element to the product of the elements of `a` and `b` at its index. Collective.
    ///
    /// # Errors
    /// As [`assign_zip`](Self::assign_zip).
    ///
    /// # Source
    /// GA: `GA_Elem_multiply`.
    #[doc(alias = "elem_multiply_from")]
    #[doc(alias = "GA_Elem_multiply")]
    pub fn assign_product(&mut self, a: &Self, b: &Self) -> Result<()> {
        self.assign_zip(a, b, T::times)
    }
}

/// `out = alpha x + beta y` on stretches.
fn sum_of<T: Accumulate>(alpha: T, beta: T) -> impl Fn(&mut [T], &[T], &[T]) {
    move |out, xs, ys| {
        out.iter_mut().zip(xs).zip(ys).for_each(|((out, &x), &y)| *out = alpha.times(x).plus(beta.times(y)));
    }
}
