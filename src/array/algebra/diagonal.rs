//! Diagonals, rows and columns of a matrix. Every member passes the whole list and uses the values for its own elements. A diagonal ends
//! with the shorter axis.

use ndarray::{Array1, Ix2};

use super::Elements;
use crate::{
    array::GlobalArray,
    calls::located,
    element::{Element, Number},
    error::Result,
    memory::part::Part,
    sync::ops,
};

/// # Diagonals of matrices
impl<T: Element> GlobalArray<T, Ix2> {
    /// The elements `(i, i)`, on every member. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Get_diag`.
    #[doc(alias = "GA_Get_diag")]
    #[track_caller]
    pub fn diagonal(&self) -> Result<Array1<T>> {
        located(move || {
            const OPERATION: &str = "diagonal";
            let section = self.enter(OPERATION, &[], Elements::All)?;
            let subscripts: Vec<[usize; 2]> = (0..self.diagonal_len()).map(|i| [i, i]).collect();
            let mut values = vec![T::zeroed(); subscripts.len()];
            let gathered = self.gather(&subscripts, &mut values);
            section.leave(gathered)?;
            Ok(values.into())
        })
    }

    /// Sets the elements `(i, i)`. Collective.
    ///
    /// # Errors
    /// A list that is not as long as the diagonal; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Set_diagonal`.
    #[doc(alias("GA_Set_diagonal", "GA_Zero_diagonal"))]
    #[track_caller]
    pub fn set_diagonal(&mut self, values: &[T]) -> Result<()> {
        located(move || {
            self.check_list("set_diagonal", self.diagonal_len(), values)?;
            self.on_diagonal("set_diagonal", |part, at, i| part.store(at, values[i]))
        })
    }

    fn diagonal_len(&self) -> usize {
        self.shape()[0].min(self.shape()[1])
    }

    fn check_list(&self, operation: &'static str, len: usize, values: &[T]) -> Result<()> {
        if values.len() == len { Ok(()) } else { Err(self.shape_error(operation, &[len], &[values.len()])) }
    }

    /// Calls `f` with this rank's part, the place in it and the number of each diagonal element that it owns.
    fn on_diagonal(&self, operation: &'static str, mut f: impl FnMut(&Part<'_, T>, usize, usize)) -> Result<()> {
        let section = self.enter(operation, &[], Elements::Own)?;
        let part = self.own_part();
        for own in self.all().own_pieces() {
            let start = own.start[0].max(own.start[1]);
            let end = (own.start[0] + own.count[0]).min(own.start[1] + own.count[1]);
            for i in start..end {
                f(&part, own.offset + (i - own.start[0]) * own.strides[0] + (i - own.start[1]) * own.strides[1], i);
            }
        }
        section.leave(Ok(()))
    }
}

/// # Diagonals, rows and columns of matrices
impl<T: Number> GlobalArray<T, Ix2> {
    /// Adds to the elements `(i, i)`. Collective.
    ///
    /// # Errors
    /// A list that is not as long as the diagonal; the errors of [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<f64, Ix2>::builder(job, [3, 4]).zeros().create()?;
    ///     a.add_diagonal(&[1.0, 2.0, 3.0])?;
    ///     a.shift_diagonal(0.5)?;
    ///     assert_eq!(a.diagonal()?.to_vec(), [1.5, 2.5, 3.5]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Add_diagonal`.
    #[doc(alias = "GA_Add_diagonal")]
    #[track_caller]
    pub fn add_diagonal(&mut self, values: &[T]) -> Result<()> {
        located(move || {
            self.check_list("add_diagonal", self.diagonal_len(), values)?;
            self.on_diagonal("add_diagonal", |part, at, i| part.store(at, part.load(at).plus(values[i])))
        })
    }

    /// Σ aᵢᵢ. Collective; the result is bitwise equal on all members.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// `ga_trace_diag` of NWChem.
    #[track_caller]
    pub fn trace(&self) -> Result<T> {
        located(move || {
            let mut sum = T::ZERO;
            self.on_diagonal("trace", |part, at, _| sum = sum.plus(part.load(at)))?;
            self.group.all_reduce_one(sum, ops::sum)
        })
    }

    /// Adds one number to all elements `(i, i)`. Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Shift_diagonal`.
    #[doc(alias = "GA_Shift_diagonal")]
    #[track_caller]
    pub fn shift_diagonal(&mut self, constant: T) -> Result<()> {
        located(move || self.on_diagonal("shift_diagonal", |part, at, _| part.store(at, part.load(at).plus(constant))))
    }

    /// Multiplies row `i` by `factors[i]`. Collective.
    ///
    /// # Errors
    /// A list whose length is not the number of rows; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Scale_rows`.
    #[doc(alias = "GA_Scale_rows")]
    #[track_caller]
    pub fn scale_rows(&mut self, factors: &[T]) -> Result<()> {
        located(move || self.scale_along("scale_rows", 0, factors))
    }

    /// Multiplies column `j` by `factors[j]`. Collective.
    ///
    /// # Errors
    /// A list whose length is not the number of columns; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Scale_cols`.
    #[doc(alias = "GA_Scale_cols")]
    #[track_caller]
    pub fn scale_cols(&mut self, factors: &[T]) -> Result<()> {
        located(move || self.scale_along("scale_cols", 1, factors))
    }

    fn scale_along(&self, operation: &'static str, axis: usize, factors: &[T]) -> Result<()> {
        self.check_list(operation, self.shape()[axis], factors)?;
        let section = self.enter(operation, &[], Elements::Own)?;
        self.all().update_boxes(|own, mut values| {
            let factors = &factors[own.start[axis]..own.start[axis] + own.count[axis]];
            for (mut lane, &factor) in values.axis_iter_mut(ndarray::Axis(axis)).zip(factors) {
                lane.map_inplace(|x| *x = x.scaled(factor));
            }
        });
        section.leave(Ok(()))
    }
}
