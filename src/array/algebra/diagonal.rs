//! Diagonals, rows and columns of a matrix. A diagonal ends with the shorter axis.

use std::ops::Range;

use ndarray::{Array1, Ix1, Ix2};

use super::{Elements, IntoValues, buffer_elements};
use crate::{
    array::GlobalArray,
    calls::located,
    distribution::Piece,
    element::{Element, Number},
    error::{Error, Result},
    memory::part::Part,
    sync::ops,
};

/// # Diagonals of matrices
impl<T: Element> GlobalArray<T, Ix2> {
    /// The elements `(i, i)`, on every member; of a large matrix, prefer [`assign_diagonal`](GlobalArray::assign_diagonal). Collective.
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
    /// Values that are not as many as the diagonal has; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Set_diagonal`.
    #[doc(alias("GA_Set_diagonal", "GA_Zero_diagonal"))]
    #[track_caller]
    pub fn set_diagonal(&mut self, values: impl IntoValues<T>) -> Result<()> {
        located(move || self.with_diagonal("set_diagonal", values, |part, at, value| part.store(at, value)))
    }

    fn diagonal_len(&self) -> usize {
        self.shape()[0].min(self.shape()[1])
    }

    /// Calls `f` with this rank's part, the place in it and the number of each diagonal element that it owns.
    fn on_diagonal(&self, operation: &'static str, mut f: impl FnMut(&Part<'_, T>, usize, usize)) -> Result<()> {
        let section = self.enter(operation, &[], Elements::Own)?;
        self.own_diagonal(|part, at, i| f(part, at, i));
        section.leave(Ok(()))
    }

    /// The same, with the value of each.
    fn with_diagonal(
        &mut self,
        operation: &'static str,
        values: impl IntoValues<T>,
        mut f: impl FnMut(&Part<'_, T>, usize, T),
    ) -> Result<()> {
        let values = values.into_values().check(operation, self, self.diagonal_len())?;
        let (call, uses) = values.call();
        let section = self.enter(operation, &[call], uses)?;
        let range = range_of(self.all().own_pieces().map(|own| diagonal_of(&own)));
        let done = values.fetch(range.clone()).map(|values| {
            self.own_diagonal(|part, at, i| f(part, at, values[i - range.start]));
        });
        section.leave(done)
    }

    fn own_diagonal(&self, mut f: impl FnMut(&Part<'_, T>, usize, usize)) {
        let part = self.own_part();
        for own in self.all().own_pieces() {
            for i in diagonal_of(&own) {
                f(&part, own.offset + (i - own.start[0]) * own.strides[0] + (i - own.start[1]) * own.strides[1], i);
            }
        }
    }
}

/// The numbers of the diagonal elements in a piece.
fn diagonal_of(own: &Piece<Ix2>) -> Range<usize> {
    let start = own.start[0].max(own.start[1]);
    let end = (own.start[0] + own.count[0]).min(own.start[1] + own.count[1]);
    start..end.max(start)
}

/// From the first to the last number in any of the ranges.
fn range_of(ranges: impl Iterator<Item = Range<usize>>) -> Range<usize> {
    let ranges = ranges.filter(|range| !range.is_empty());
    ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end)).unwrap_or_default()
}

impl<T: Element> GlobalArray<T, Ix1> {
    /// Copies the elements `(i, i)` of a matrix. Collective; any distributions.
    ///
    /// # Errors
    /// A length that is not that of the diagonal; other groups; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Get_diag`.
    #[track_caller]
    pub fn assign_diagonal(&mut self, matrix: &GlobalArray<T, Ix2>) -> Result<()> {
        located(move || {
            const OPERATION: &str = "assign_diagonal";
            self.check_members(OPERATION, matrix)?;
            if self.len() != matrix.diagonal_len() {
                let (name, len, of) = (&self.name, self.len(), &matrix.name);
                let what = format!("\"{name}\" has {len} elements, the diagonal of \"{of}\" has {}", matrix.diagonal_len());
                return Err(Error::Mismatch { operation: OPERATION.into(), what });
            }
            let section = self.enter(OPERATION, &[matrix.id], Elements::All)?;
            let own = self.all();
            let copied = own.own_boxes(own.edges(buffer_elements::<T>()), |part| {
                let first = part.start[0];
                let subscripts: Vec<[usize; 2]> = (first..first + part.count[0]).map(|i| [i, i]).collect();
                let mut values = Array1::from_elem(part.count, T::zeroed());
                matrix.gather(&subscripts, values.as_slice_mut().unwrap_or_default())?;
                own.write_box(part, &values.view());
                Ok(())
            });
            section.leave(copied.map(drop))
        })
    }
}

/// # Diagonals, rows and columns of matrices
impl<T: Number> GlobalArray<T, Ix2> {
    /// Adds to the elements `(i, i)`. Collective.
    ///
    /// # Errors
    /// Values that are not as many as the diagonal has; the errors of [`fill`](Self::fill).
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
    ///     let x = GlobalArray1::<f64>::from_fn(job, [3], |i| -(i as f64))?;
    ///     a.add_diagonal(&x)?;
    ///     assert_eq!(a.diagonal()?.to_vec(), [1.5, 1.5, 1.5]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Add_diagonal`.
    #[doc(alias = "GA_Add_diagonal")]
    #[track_caller]
    pub fn add_diagonal(&mut self, values: impl IntoValues<T>) -> Result<()> {
        located(move || self.with_diagonal("add_diagonal", values, |part, at, value| part.store(at, part.load(at).plus(value))))
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
    /// Factors that are not as many as there are rows; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Scale_rows`.
    #[doc(alias = "GA_Scale_rows")]
    #[track_caller]
    pub fn scale_rows(&mut self, factors: impl IntoValues<T>) -> Result<()> {
        located(move || self.scale_along("scale_rows", 0, factors))
    }

    /// Multiplies column `j` by `factors[j]`. Collective.
    ///
    /// # Errors
    /// Factors that are not as many as there are columns; the errors of [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `GA_Scale_cols`.
    #[doc(alias = "GA_Scale_cols")]
    #[track_caller]
    pub fn scale_cols(&mut self, factors: impl IntoValues<T>) -> Result<()> {
        located(move || self.scale_along("scale_cols", 1, factors))
    }

    fn scale_along(&mut self, operation: &'static str, axis: usize, factors: impl IntoValues<T>) -> Result<()> {
        let factors = factors.into_values().check(operation, self, self.shape()[axis])?;
        let (call, uses) = factors.call();
        let section = self.enter(operation, &[call], uses)?;
        let along = |own: &Piece<Ix2>| own.start[axis]..own.start[axis] + own.count[axis];
        let range = range_of(self.all().own_pieces().map(|own| along(&own)));
        let scaled = factors.fetch(range.clone()).map(|factors| {
            self.all().update_boxes(|own, mut values| {
                let factors = &factors[own.start[axis] - range.start..][..own.count[axis]];
                for (mut lane, &factor) in values.axis_iter_mut(ndarray::Axis(axis)).zip(factors) {
                    lane.map_inplace(|x| *x = x.scaled(factor));
                }
            });
        });
        section.leave(scaled)
    }
}
