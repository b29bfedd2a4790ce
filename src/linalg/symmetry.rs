//! The comparison of the two triangles of a matrix that is to be symmetric or Hermitian. Each member compares some blocks.

use std::cmp::Ordering;

use ndarray::ArrayViewMut2;
use num_traits::Float;

use super::{
    blocks::Place,
    call::Call,
    field::{Field, is_finite},
};
use crate::{
    GlobalArray2,
    error::{Error, MatrixError, Result},
    memory::vectorized::vectorized,
    sync::ops,
};

/// Finds the first element that is not finite, or else that differs from its counterpart by more than √ε times the largest size. Collective.
pub(super) fn check<T: Field>(call: &Call<'_>, a: &GlobalArray2<T>, place: &Place) -> Result<()> {
    if call.group.skips() {
        return Ok(());
    }
    let compare = |limit| a.settle(call.operation, a.id(), Triangles::compare(a, place, limit));
    let found = compare(T::Real::max_value())?;
    call.agree_on(found.wrong)?;
    let [largest, apart] = [found.largest, found.apart].map(|own| call.group.all_reduce_one(own, ops::max));
    let most = largest? * T::Real::epsilon().sqrt();
    if apart? > most { call.agree_on(compare(most)?.wrong) } else { Ok(()) }
}

/// What a member finds in its blocks below the diagonal, and in those above.
struct Triangles<R> {
    /// The largest size below, and of a difference.
    largest: R,
    apart: R,
    /// The first element that is not finite, or differs by more than a limit.
    wrong: Option<MatrixError>,
}

/// Rows of a tile: two of them, with as many columns as a block has, fit the second cache.
const TILE: usize = 256;

impl<R: Float> Triangles<R> {
    fn compare<T: Field<Real = R>>(a: &GlobalArray2<T>, place: &Place, limit: R) -> Result<Self> {
        let mut found = Triangles { largest: R::zero(), apart: R::zero(), wrong: None };
        let mut first = (usize::MAX, usize::MAX);
        let [mut below, mut above] = [vec![T::ZERO; TILE * place.rows.block], vec![T::ZERO; TILE * place.rows.block]];
        for (columns, _) in place.columns.blocks() {
            let tiles = place.rows.pieces().flat_map(|(rows, _)| {
                let start = rows.start.max(columns.start).min(rows.end);
                (start..rows.end).step_by(TILE).map(move |start| start..rows.end.min(start + TILE))
            });
            for rows in tiles {
                // Column by column below, row by row above: as they are compared.
                let shape = (columns.len(), rows.len());
                let tile = |memory| ArrayViewMut2::from_shape(shape, memory).map_err(Error::other);
                let len = shape.0 * shape.1;
                a.get_into([rows.clone(), columns.clone()], tile(&mut below[..len])?.reversed_axes())?;
                a.get_into([columns.clone(), rows.clone()], tile(&mut above[..len])?)?;
                let lines = below[..len].chunks_exact(rows.len()).zip(above[..len].chunks_exact(rows.len()));
                for (column, (below, above)) in columns.clone().zip(lines) {
                    let skipped = column.saturating_sub(rows.start).min(rows.len());
                    let (x, y) = (&below[skipped..], &above[skipped..]);
                    if !found.are_near(x, y, limit) {
                        let is_far = |(x, y): (&T, &T)| (*x - y.conj()).size().partial_cmp(&limit).is_none_or(Ordering::is_gt);
                        let at = x.iter().zip(y).position(is_far).unwrap_or_default();
                        let row = rows.start + skipped + at;
                        if (row, column) < first {
                            first = (row, column);
                            found.wrong = Some(match (is_finite(x[at]), is_finite(y[at])) {
                                (true, true) => MatrixError::NotSymmetric { row, column },
                                (true, false) => MatrixError::NotFinite { row: column, column: row },
                                _ => MatrixError::NotFinite { row, column },
                            });
                        }
                    }
                }
            }
        }
        Ok(found)
    }

    /// True if no difference exceeds the limit. Several sums of each kind, so that they are vectors.
    fn are_near<T: Field<Real = R>>(&mut self, x: &[T], y: &[T], limit: R) -> bool {
        const LANES: usize = 16;
        let (mut largest, mut apart, mut is_far) = ([R::zero(); LANES], [R::zero(); LANES], [false; LANES]);
        vectorized(
            #[inline(always)]
            || {
                for (x, y) in x.chunks(LANES).zip(y.chunks(LANES)) {
                    for (k, (x, y)) in x.iter().zip(y).enumerate() {
                        let (size, difference) = (x.size(), (*x - y.conj()).size());
                        largest[k] = if size > largest[k] { size } else { largest[k] };
                        apart[k] = if difference > apart[k] { difference } else { apart[k] };
                        // What is not a number is far.
                        is_far[k] |= difference.partial_cmp(&limit).is_none_or(Ordering::is_gt);
                    }
                }
            },
        );
        self.largest = largest.into_iter().fold(self.largest, R::max);
        self.apart = apart.into_iter().fold(self.apart, R::max);
        !is_far.contains(&true)
    }
}
