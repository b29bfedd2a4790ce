//! The smallest and the largest element, and its place. The distribution does not matter.

use ndarray::{Dimension, IntoDimension};

use super::{Elements, Operand, operand::reversed};
use crate::{array::GlobalArray, calls::located, element::Element, error::Result};

/// Independent partial results, so that one comparison need not wait for the one before.
const LANES: usize = 8;

/// An element and its place in row-major order.
type Candidate<T> = Option<(T, u64)>;

/// # Reductions: the smallest and the largest
impl<T: Element + PartialOrd, D: Dimension> GlobalArray<T, D> {
    /// The smallest element and its index, a tuple for up to six axes; `None` for an array without elements. Collective; the same on
    /// every member.
    ///
    /// Of equal elements, it returns the first in row-major order. If any element is NaN, it returns the first NaN.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(3).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<i64, Ix2>::builder(job, [4, 5]).create()?;
    ///     a.map_indexed(|(i, j), _| (i as i64 - 2).pow(2) + (j as i64 - 3).pow(2))?;
    ///     assert_eq!(a.argmin()?, Some((0, (2, 3))));
    ///     assert_eq!(a.argmax()?, Some((13, (0, 0))));
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Select_elem` with `"min"`.
    #[doc(alias = "NGA_Select_elem")]
    #[doc(alias = "min_with_index")]
    #[track_caller]
    pub fn argmin(&self) -> Result<Option<(T, D::Pattern)>> {
        located(move || self.all().select("argmin", |x, y| x < y))
    }

    /// The largest element and its index; otherwise like [`argmin`](Self::argmin). Collective.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    ///
    /// # Source
    /// GA: `NGA_Select_elem` with `"max"`.
    #[doc(alias = "max_with_index")]
    #[track_caller]
    pub fn argmax(&self) -> Result<Option<(T, D::Pattern)>> {
        located(move || self.all().select("argmax", |x, y| x > y))
    }
}

impl<T: Element + PartialOrd, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    /// The element that goes before all others, and its index.
    pub(super) fn select(
        &self,
        operation: &'static str,
        better: impl Fn(T, T) -> bool + Copy,
    ) -> Result<Option<(T, D::Pattern)>> {
        let (array, shape) = (self.array, self.shape());
        let section = array.enter(operation, &[self.fingerprint()], Elements::Own)?;
        let (value, place) = self.select_own(&shape, better).unwrap_or((T::zeroed(), u64::MAX));
        section.leave(Ok(()))?;
        let (values, places) = (array.group.all_gather(&[value])?, array.group.all_gather(&[place])?);
        let found = values.into_iter().zip(places).filter(|&(_, place)| place != u64::MAX);
        let best = found.reduce(|best, found| if precedes(found, best, better) { found } else { best });
        Ok(best.map(|(value, place)| {
            let (mut index, mut rest) = (D::zeros(shape.ndim()), place as usize);
            for (i, &n) in index.slice_mut().iter_mut().zip(shape.slice()).rev() {
                (*i, rest) = (rest % n, rest / n);
            }
            (value, index.into_pattern())
        }))
    }

    /// Of what this rank owns, box by box: most boxes hold nothing better, and are seen through without their indices.
    fn select_own(&self, shape: &D, better: impl Fn(T, T) -> bool + Copy) -> Candidate<T> {
        let mut best: Candidate<T> = None;
        self.read_boxes(|own, view| {
            // In the order of the operand, which may not be that of its array.
            let (start, view) =
                if self.transposed { (reversed(&own.start), view.reversed_axes()) } else { (own.start.clone(), view) };
            let place = |within: &D| {
                let index = start.slice().iter().zip(within.slice()).map(|(start, at)| start + at);
                index.zip(shape.slice()).fold(0, |place, (i, n)| place * *n as u64 + i as u64)
            };
            let value = best_value(view.as_slice_memory_order().unwrap_or_default(), better);
            let corner = place(&D::zeros(own.count.ndim()));
            if best.is_none_or(|best| precedes((value, corner), best, better)) {
                let here = view
                    .indexed_iter()
                    .find(|&(_, &x)| !goes_before(value, x, better))
                    .map(|(within, _)| within.into_dimension());
                let found = here.map(|within| (value, place(&within)));
                best = match (best, found) {
                    (Some(best), Some(found)) if !precedes(found, best, better) => Some(best),
                    (best, found) => found.or(best),
                };
            }
        });
        best
    }
}

/// Whether `x` goes before `y`; neither goes before the other if they are equal.
#[inline]
fn goes_before<T: PartialOrd + Copy>(x: T, y: T, better: impl Fn(T, T) -> bool) -> bool {
    !is_nan(y) && (is_nan(x) || better(x, y))
}

#[inline]
fn is_nan<T: PartialOrd>(x: T) -> bool {
    x.partial_cmp(&x).is_none()
}

fn precedes<T: PartialOrd + Copy>(x: (T, u64), y: (T, u64), better: impl Fn(T, T) -> bool + Copy) -> bool {
    goes_before(x.0, y.0, better) || x.1 < y.1 && !goes_before(y.0, x.0, better)
}

/// One before which none goes; there is at least one.
fn best_value<T: Element + PartialOrd>(values: &[T], better: impl Fn(T, T) -> bool) -> T {
    let pick = |best: T, x: T| if better(x, best) || is_nan(x) { x } else { best };
    let mut lanes = [values.first().copied().unwrap_or(T::zeroed()); LANES];
    let (rows, rest) = values.as_chunks::<LANES>();
    for row in rows {
        lanes.iter_mut().zip(row).for_each(|(lane, &x)| *lane = pick(*lane, x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane = pick(*lane, x));
    lanes.into_iter().reduce(pick).unwrap_or(T::zeroed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_goes_before_all() {
        let less = |x: f64, y: f64| x < y;
        assert!(goes_before(f64::NAN, f64::NEG_INFINITY, less) && !goes_before(1.0, f64::NAN, less));
        assert!(!goes_before(f64::NAN, f64::NAN, less) && !goes_before(0.0, -0.0, less));
        for at in 0..30 {
            let mut values: Vec<f64> = (0..30).map(|k| f64::from(k * 7 % 30)).collect();
            assert_eq!(best_value(&values, less), 0.0);
            values[at] = f64::NAN;
            assert!(best_value(&values, less).is_nan());
        }
    }
}
