//! Products of a matrix and a vector.
//!
//! Each member multiplies what it owns of the matrix, straight from its memory, since each element is needed once. It has a private copy of
//! `x`, and of the product, to which the members' shares are added in their order. So equal
//! calls give equal bits, but another distribution may round differently; a member needs room for both vectors.
//!
//! Two ranks on two Zen 3 cores reach 0.7 to 0.9 of OpenBLAS's `dgemv` on two threads (8192²). Rows in groups of four, and factors in pieces
//! that fit the first cache, were no faster.

use ndarray::{Dimension, Ix1, Ix2};

use super::{Elements, IntoOperand, Operand, PatchMut};
use crate::{
    array::GlobalArray,
    calls::located,
    element::Number,
    error::{Error, Result},
    sync::ops,
};

const OPERATION: &str = "matvec";

/// # Products of a matrix and a vector
impl<T: Number> GlobalArray<T, Ix1> {
    /// `self = alpha a x + beta self`, of a matrix `a` and a vector `x`. Collective. `a` and `x` are arrays, patches or transposed
    /// arrays of any distribution; if `beta` is zero, the old contents are not read. Integers wrap.
    ///
    /// # Errors
    /// Shapes that do not match; arrays over other ranks; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray2::<f64>::from_fn(job, [3, 2], |(i, j)| (10 * i + j) as f64)?;
    ///     let x = GlobalArray1::<f64>::from_fn(job, [2], |i| 1.0 + i as f64)?;
    ///     let mut y = GlobalArray1::<f64>::zeros(job, [3])?;
    ///     y.matvec(1.0, &a, &x, 0.0)?;
    ///     assert_eq!(y.get(..)?.to_vec(), [2.0, 32.0, 62.0]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// BLAS `gemv`. GA has no call for it: programs use `GA_Dgemm` with a matrix of one column.
    #[doc(alias = "gemv")]
    #[track_caller]
    pub fn matvec(&mut self, alpha: T, a: impl IntoOperand<T, Ix2>, x: impl IntoOperand<T, Ix1>, beta: T) -> Result<()> {
        located(move || {
            let (a, x) = (a.into_operand().resolve(OPERATION)?, x.into_operand().resolve(OPERATION)?);
            self.all().matvec(alpha, &a, &x, beta)
        })
    }
}

impl<T: Number, S: Dimension> PatchMut<'_, T, Ix1, S> {
    /// `patch = alpha a x + beta patch`; see [`GlobalArray::matvec`]. Collective.
    ///
    /// # Errors
    /// A patch outside its array; the errors of that method.
    #[track_caller]
    pub fn matvec(&mut self, alpha: T, a: impl IntoOperand<T, Ix2>, x: impl IntoOperand<T, Ix1>, beta: T) -> Result<()> {
        located(move || {
            let (a, x) = (a.into_operand().resolve(OPERATION)?, x.into_operand().resolve(OPERATION)?);
            self.resolve(OPERATION)?.matvec(alpha, &a, &x, beta)
        })
    }
}

impl<T: Number, S: Dimension> Operand<'_, T, Ix1, S> {
    fn matvec<R: Dimension, Q: Dimension>(
        &self,
        alpha: T,
        a: &Operand<'_, T, Ix2, R>,
        x: &Operand<'_, T, Ix1, Q>,
        beta: T,
    ) -> Result<()> {
        let array = self.array;
        array.check_members(OPERATION, a.array)?;
        array.check_members(OPERATION, x.array)?;
        let ([rows, columns], y_len, x_len) = ([a.shape()[0], a.shape()[1]], self.shape()[0], x.shape()[0]);
        if [rows, columns] != [y_len, x_len] {
            let (y, a, x) = (&array.name, &a.array.name, &x.array.name);
            let what = format!(
                "{y_len} elements of \"{y}\" cannot be the product of {rows} x {columns} of \"{a}\" and {x_len} of \"{x}\""
            );
            return Err(Error::Mismatch { operation: OPERATION.into(), what });
        }
        let section = array.enter(OPERATION, &[self.fingerprint(), a.fingerprint(), x.fingerprint()], Elements::All)?;
        let mut product = vec![T::ZERO; rows];
        let multiplied = a.multiply_own(x, &mut product);
        section.leave(multiplied)?;
        array.group.all_reduce(&mut product, ops::sum)?;
        self.update_boxes(|own, mut values| {
            let product = &product[own.start[0]..own.start[0] + own.count[0]];
            let old = |value: T| if beta == T::ZERO { T::ZERO } else { value.scaled(beta) };
            values.iter_mut().zip(product).for_each(|(value, sum)| *value = sum.scaled(alpha).plus(old(*value)));
        });
        array.settle(OPERATION, array.id, Ok(()))
    }
}

impl<T: Number, S: Dimension> Operand<'_, T, Ix2, S> {
    /// Adds to `product` what this rank's elements contribute.
    fn multiply_own<Q: Dimension>(&self, x: &Operand<'_, T, Ix1, Q>, product: &mut [T]) -> Result<()> {
        let mut factors = ndarray::Array1::from_elem(x.shape(), T::ZERO);
        if self.own_pieces().next().is_some() {
            x.read(&Ix1(0), &x.shape(), factors.view_mut())?;
        }
        // Conjugates of a matrix: āx is the conjugate of a x̄.
        let conjugate = self.conjugate.unwrap_or(|x| x);
        factors.mapv_inplace(conjugate);
        let factors = factors.as_slice().unwrap_or_default();
        // Of the matrix as it lies, the axis along which is summed.
        let (out, along) = if self.transposed { (1, 0) } else { (0, 1) };
        let (part, mut elements) = (self.array.own_part(), 0);
        for own in self.own_pieces() {
            let sums = &mut product[own.start[out]..][..own.count[out]];
            let factors = &factors[own.start[along]..][..own.count[along]];
            let at = |out_index: usize, index: usize| {
                // Two's complement: strides are signed.
                own.offset
                    .wrapping_add(out_index.wrapping_mul(own.strides[out]))
                    .wrapping_add(index.wrapping_mul(own.strides[along]))
            };
            if own.strides[along] == 1 || factors.len() == 1 {
                sums.iter_mut().enumerate().for_each(|(k, sum)| *sum = sum.plus(part.dot_with(at(k, 0), factors)));
            } else if own.strides[out] == 1 {
                factors.iter().enumerate().for_each(|(k, &factor)| part.add_scaled_to(at(0, k), factor, sums));
            } else {
                for (k, sum) in sums.iter_mut().enumerate() {
                    let terms = factors.iter().enumerate().map(|(index, &factor)| part.load(at(k, index)).scaled(factor));
                    *sum = terms.fold(*sum, T::plus);
                }
            }
            elements += own.count.size();
        }
        product.iter_mut().for_each(|sum| *sum = conjugate(*sum));
        self.array.streamed::<T>(elements);
        Ok(())
    }
}
