//! Factors that the members of a group keep, and solves by them.
//!
//! # Few right-hand sides
//! All members have a partial z: the sum over all is meant. At first it is b on member 0 and zeros elsewhere. Interchanges are linear, so each member carries
//! them out on its own z. Forward, for each panel: sum z over the block, of which the owner solves the diagonal block and tells all; the members of
//! its process column subtract what their rows below give. Backward the same with U, above. By an adjoint factor all have all of z, and sum what their parts of
//! the block's columns give.
//!
//! # Many
//! Each member solves for some of them alone, and fetches the panels one after the other: no member waits for another.

use std::ops::Range;

use ndarray::{Array2, ArrayView, ArrayView2, ArrayViewMut, ArrayViewMut2, Dimension, Ix2, ShapeBuilder, s};

use super::{
    axis::Axis,
    place::{Blocking, Place},
    solve::{interchange, subtract_adjoint, subtract_product},
    triangle::{adjoint, solve_lower, solve_upper},
};
use crate::{
    Frozen, GlobalArray, GlobalArray2,
    algebra::VectorOrMatrix,
    distribution::Order,
    error::{Error, MatrixError, Result},
    index::Patch,
    linalg::{
        call::Call,
        field::{Field, is_finite},
    },
    sync::{Group, ops},
};

/// Right-hand sides of each member from which on it fetches the factors.
const MANY: usize = 16;

/// Right-hand sides that a member solves for at once.
const AT_ONCE: usize = 256;

/// The factors of a matrix in the blocks of [`Place`], column by column, and a few rows more.
#[derive(Debug)]
pub(in crate::linalg) struct Factors<T> {
    parts: Frozen<T, Ix2>,
    place: Place,
    name: String,
    id: u64,
}

/// Which triangle of the factors, and what of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linalg) enum Triangle {
    /// Of LU: unit lower, and its adjoint.
    UnitLower,
    UnitLowerAdjoint,
    /// Of LU, and its adjoint.
    Upper,
    UpperAdjoint,
    /// Of Cholesky, and its adjoint.
    Lower,
    LowerAdjoint,
}

impl Triangle {
    /// From the first panel to the last.
    fn goes_forward(self) -> bool {
        matches!(self, Triangle::UnitLower | Triangle::Lower | Triangle::UpperAdjoint)
    }

    fn is_adjoint(self) -> bool {
        matches!(self, Triangle::UnitLowerAdjoint | Triangle::UpperAdjoint | Triangle::LowerAdjoint)
    }

    /// The rows of a panel outside its diagonal block.
    fn rest(self, panel: &Range<usize>, order: usize) -> Range<usize> {
        if matches!(self, Triangle::Upper | Triangle::UpperAdjoint) { 0..panel.start } else { panel.end..order }
    }

    /// z ← block⁻¹·z.
    fn solve<T: Field>(self, block: ArrayView2<'_, T>, z: ArrayViewMut2<'_, T>) {
        match self {
            Triangle::UnitLower => solve_lower(block, z, true),
            Triangle::Lower => solve_lower(block, z, false),
            Triangle::Upper => solve_upper(block, z, false),
            Triangle::UnitLowerAdjoint => solve_upper(adjoint(block).view(), z, true),
            Triangle::LowerAdjoint => solve_upper(adjoint(block).view(), z, false),
            Triangle::UpperAdjoint => solve_lower(adjoint(block).view(), z, false),
        }
    }
}

impl<T: Field> Factors<T> {
    /// `fill` brings the matrix into this member's part, unless that is `given`, and `factor` overwrites it. Both get what the matrix has there, without
    /// more rows. Collective.
    pub(in crate::linalg) fn new<F, R>(
        call: &Call<'_>,
        order: usize,
        blocking: Blocking,
        given: Option<GlobalArray2<T>>,
        fill: impl FnOnce(&Place, ArrayViewMut2<'_, T>) -> Result<F>,
        factor: impl FnOnce(&Place, ArrayViewMut2<'_, T>) -> Result<R>,
    ) -> Result<(Self, F, R)> {
        let place = Place::new(call.group, order, blocking);
        let rows = place.rows.local_extent();
        let create = || {
            GlobalArray2::builder(call.group, [padded::<T>(place.rows), order])
                .block_cyclic([place.rows.block; 2])
                .grid(blocking.grid)
                .order(Order::ColumnMajor)
                .name(format!("factors of {}", call.name))
                .hollow()
                .create()
        };
        let mut parts = given.map_or_else(create, Ok)?;
        let (filled, factored) = parts.owner_epoch(|mut part| {
            let mut part = part.view_mut();
            let filled = fill(&place, part.slice_mut(s![..rows, ..]))?;
            factor(&place, part.slice_mut(s![..rows, ..])).map(|factored| (filled, factored))
        })??;
        let id = parts.id();
        Ok((Factors { parts: parts.freeze()?, place, name: call.name.to_owned(), id }, filled, factored))
    }

    pub(in crate::linalg) fn order(&self) -> usize {
        self.place.order()
    }

    pub(in crate::linalg) fn group(&self) -> &Group {
        self.parts.group()
    }

    pub(in crate::linalg) fn call(&self, operation: &'static str) -> Call<'_> {
        Call { group: self.group(), operation, name: &self.name, id: self.id }
    }

    /// Own diagonal elements, with their row.
    pub(in crate::linalg) fn diagonal(&self) -> impl Iterator<Item = (usize, T)> + '_ {
        let Place { rows, columns } = self.place;
        let own = (0..self.order()).filter(move |&i| rows.mine(i) && columns.mine(i));
        let part = self.parts.own();
        let part = part.view();
        let own: Vec<_> = own.map(|i| (i, part[[rows.first_local(i), columns.first_local(i)]])).collect();
        own.into_iter()
    }

    /// Rows and columns of the own blocks, with what stands there.
    pub(in crate::linalg) fn blocks(&self) -> impl Iterator<Item = ([Range<usize>; 2], Array2<T>)> + '_ {
        let Place { rows, columns } = self.place;
        columns.blocks().flat_map(move |(own_columns, at)| {
            rows.pieces().map(move |(own_rows, down)| {
                let part = self.parts.own();
                let block = part.view().slice(s![down..down + own_rows.len(), at..at + own_columns.len()]).to_owned();
                ([own_rows, own_columns.clone()], block)
            })
        })
    }

    /// All of it. Local.
    #[cfg(any(feature = "blas", feature = "faer"))]
    pub(in crate::linalg) fn collect(&self) -> Result<Array2<T>> {
        self.parts.get(s![..self.order(), ..])
    }

    /// Solves with each of some triangles in turn, for the columns of z. All members have the same z, and the same solution. Collective.
    pub(in crate::linalg) fn solve(&self, z: &mut Array2<T>, triangles: [Triangle; 2], pivots: &[usize]) -> Result<()> {
        triangles.into_iter().try_for_each(|triangle| self.solve_together(z, triangle, pivots))
    }

    /// The solution of a system with right-hand sides `b`, which must be finite. Collective.
    pub(in crate::linalg) fn solve_for<D: VectorOrMatrix>(
        &self,
        operation: &'static str,
        b: &GlobalArray<T, D>,
        triangles: [Triangle; 2],
        pivots: &[usize],
    ) -> Result<GlobalArray<T, D>> {
        let call = self.call(operation);
        call.goes_with(self.order(), b)?;
        let _doing = call.begin(&[b.id()])?;
        let right = b.shape().get(1).copied().unwrap_or(1);
        let mut wrong = None;
        let mut read = |columns: Range<usize>, z: &mut Array2<T>| {
            let shape = patch_of(b, columns.clone()).count().clone();
            if let Some(elements) = z.as_slice_memory_order_mut() {
                b.get_into(
                    patch_of(b, columns.clone()),
                    ArrayViewMut::from_shape(shape.set_f(true), elements).map_err(Error::other)?,
                )?;
            }
            let first = |((i, j), x): ((usize, usize), &T)| if is_finite(*x) { None } else { Some((i, columns.start + j)) };
            let first = z.indexed_iter().filter_map(first).min();
            wrong = wrong.take().or(first.map(|(row, column)| MatrixError::NotFinite { row, column }));
            Ok(())
        };
        let x = call.spread(b.distribution().extents().clone(), "x", |x| {
            let write = |columns: Range<usize>, z: Array2<T>| {
                let patch = patch_of(x, columns);
                let shape = patch.count().clone().set_f(true);
                let elements = z.as_slice_memory_order().unwrap_or_default();
                x.put(patch, ArrayView::from_shape(shape, elements).map_err(Error::other)?)
            };
            if right >= MANY * self.group().size() {
                return self.solve_shares(right, triangles, pivots, read, write);
            }
            for first in (0..right).step_by(AT_ONCE) {
                let columns = first..right.min(first + AT_ONCE);
                let mut z = Array2::zeros((self.order(), columns.len()).f());
                x.settle(operation, x.id(), read(columns.clone(), &mut z))?;
                self.solve(&mut z, triangles, pivots)?;
                x.settle(operation, x.id(), if self.group().member() == 0 { write(columns, z) } else { Ok(()) })?;
            }
            Ok(())
        })?;
        Call { name: b.name(), ..call }.agree_on(wrong).map(|()| x)
    }

    /// Solves for a number of right-hand sides, each member for its share: `read` fills the columns of a share, `write` gets their solutions. Local.
    pub(in crate::linalg) fn solve_shares(
        &self,
        right: usize,
        triangles: [Triangle; 2],
        pivots: &[usize],
        mut read: impl FnMut(Range<usize>, &mut Array2<T>) -> Result<()>,
        mut write: impl FnMut(Range<usize>, Array2<T>) -> Result<()>,
    ) -> Result<()> {
        let (member, members) = (self.group().member(), self.group().size());
        let share = right * member / members..right * (member + 1) / members;
        for first in share.clone().step_by(AT_ONCE) {
            let columns = first..share.end.min(first + AT_ONCE);
            let mut z = Array2::zeros((self.order(), columns.len()).f());
            read(columns.clone(), &mut z)?;
            triangles.into_iter().try_for_each(|triangle| self.solve_alone(&mut z, triangle, pivots))?;
            write(columns, z)?;
        }
        Ok(())
    }

    fn panels(&self, triangle: Triangle) -> impl Iterator<Item = Range<usize>> {
        let mut panels: Vec<_> = self.place.panels().collect();
        if !triangle.goes_forward() {
            panels.reverse();
        }
        panels.into_iter()
    }

    fn solve_alone(&self, z: &mut Array2<T>, triangle: Triangle, pivots: &[usize]) -> Result<()> {
        let mut memory = Vec::new();
        for panel in self.panels(triangle) {
            let rest = triangle.rest(&panel, self.order());
            let (first, end) = (panel.start.min(rest.start), panel.end.max(rest.end));
            memory.resize((end - first) * panel.len(), T::ZERO);
            let mut block = ArrayViewMut2::from_shape((end - first, panel.len()).f(), &mut memory[..]).map_err(Error::other)?;
            self.parts.get_into(s![first..end, panel.clone()], block.view_mut())?;
            let diagonal = block.slice(s![panel.start - first..panel.end - first, ..]);
            let outside = block.slice(s![rest.start - first..rest.end - first, ..]);
            self.work(block.len(), z.ncols());
            if triangle == Triangle::UnitLower {
                interchange(&mut z.view_mut(), panel.start, &pivots[panel.clone()], false);
            }
            let (mut own, others) = z.multi_slice_mut((s![panel.clone(), ..], s![rest, ..]));
            if triangle.is_adjoint() {
                subtract_adjoint(own.view_mut(), outside, others.view());
                triangle.solve(diagonal, own);
            } else {
                triangle.solve(diagonal, own.view_mut());
                subtract_product(others, outside, own.view());
            }
            if triangle == Triangle::UnitLowerAdjoint {
                interchange(&mut z.view_mut(), panel.start, &pivots[panel], true);
            }
        }
        Ok(())
    }

    fn solve_together(&self, z: &mut Array2<T>, triangle: Triangle, pivots: &[usize]) -> Result<()> {
        let Place { rows, columns } = self.place;
        let is_first = self.group().member() == 0;
        let part = self.parts.own();
        let part = part.view();
        // What is meant is the sum of these.
        let mut partial = if is_first { z.clone() } else { Array2::zeros(z.raw_dim().f()) };
        for panel in self.panels(triangle) {
            let rest = triangle.rest(&panel, self.order());
            let own_rows = rows.first_local(rest.start)..rows.first_local(rest.end);
            let at = columns.first_local(panel.start);
            let is_mine = columns.mine(panel.start);
            let outside = if is_mine { part.slice(s![own_rows.clone(), at..at + panel.len()]) } else { part.slice(s![..0, ..0]) };
            self.work(outside.len(), z.ncols());
            if triangle == Triangle::UnitLower {
                interchange(&mut partial.view_mut(), panel.start, &pivots[panel.clone()], false);
            }
            if triangle.is_adjoint() && is_mine {
                let others = own(z, rows, own_rows.clone());
                subtract_adjoint(partial.slice_mut(s![panel.clone(), ..]), outside, others.view());
            }
            let solved = self.block(&panel, partial.slice(s![panel.clone(), ..]), triangle)?;
            if !triangle.is_adjoint() && is_mine {
                let mut others = own(&partial, rows, own_rows.clone());
                subtract_product(others.view_mut(), outside, solved.view());
                own_rows.zip(others.rows()).for_each(|(row, values)| partial.row_mut(rows.global(row)).assign(&values));
            }
            z.slice_mut(s![panel.clone(), ..]).assign(&solved);
            if triangle == Triangle::UnitLowerAdjoint {
                // All have all of z here; the partial sums of rows above are those of member 0.
                interchange(&mut z.view_mut(), panel.start, &pivots[panel], true);
            }
        }
        Ok(())
    }

    /// Sums one block of z, lets the owner of the diagonal block solve it, and tells all.
    fn block(&self, panel: &Range<usize>, z: ArrayView2<'_, T>, triangle: Triangle) -> Result<Array2<T>> {
        let Place { rows, columns } = self.place;
        let mut sum = Array2::zeros(z.raw_dim().f());
        sum.assign(&z);
        let elements = |sum: &mut Array2<T>, act: &dyn Fn(&mut [T]) -> Result<()>| match sum.as_slice_memory_order_mut() {
            Some(elements) => act(elements),
            None => Ok(()),
        };
        elements(&mut sum, &|elements| self.group().all_reduce(elements, ops::sum))?;
        let owner = self.place.member(rows.owner(panel.start), columns.owner(panel.start));
        if self.group().member() == owner {
            let (row, column) = (rows.first_local(panel.start), columns.first_local(panel.start));
            let part = self.parts.own();
            let diagonal = part.view().slice_move(s![row..row + panel.len(), column..column + panel.len()]);
            self.work(panel.len() * panel.len(), z.ncols());
            triangle.solve(diagonal, sum.view_mut());
        }
        elements(&mut sum, &|elements| self.group().broadcast(owner, elements))?;
        Ok(sum)
    }

    fn work(&self, elements: usize, right: usize) {
        self.group().work(T::FLOPS * (elements * right) as f64, (elements * size_of::<T>()) as f64);
    }
}

/// Some columns of a matrix, or a vector.
fn patch_of<T: Field, D: Dimension>(array: &GlobalArray<T, D>, columns: Range<usize>) -> Patch<D> {
    let (mut start, mut count) = (D::zeros(array.shape().len()), array.distribution().extents().clone());
    if array.shape().len() > 1 {
        (start.slice_mut()[1], count.slice_mut()[1]) = (columns.start, columns.len());
    }
    Patch::block(start, count)
}

/// Copies own rows of z.
fn own<T: Field>(z: &Array2<T>, axis: Axis, local: Range<usize>) -> Array2<T> {
    let mut own = Array2::zeros((local.len(), z.ncols()).f());
    own.rows_mut().into_iter().zip(local).for_each(|(mut to, row)| to.assign(&z.row(axis.global(row))));
    own
}

/// Copies a matrix into the blocks of its factors: all of it, or the lower triangle. Collective.
///
/// # Errors
/// A transfer that failed, on any member.
pub(in crate::linalg) fn copy<T: Field>(
    call: &Call<'_>,
    a: &GlobalArray2<T>,
    place: &Place,
    mut part: ArrayViewMut2<'_, T>,
    is_lower: bool,
) -> Result<()> {
    let mut blocks = place.columns.blocks().flat_map(|columns| place.rows.pieces().map(move |rows| (columns.clone(), rows)));
    let copied = blocks.try_for_each(|((columns, at), (rows, down))| {
        let above = if is_lower { columns.start.clamp(rows.start, rows.end) - rows.start } else { 0 };
        let to = part.slice_mut(s![down + above..down + rows.len(), at..at + columns.len()]);
        if to.is_empty() { Ok(()) } else { a.get_into([rows.start + above..rows.end, columns], to) }
    });
    a.settle(call.operation, a.id(), copied)
}

/// The first element of those that are here which is not finite.
pub(in crate::linalg) fn not_finite<T: Field>(place: &Place, part: ArrayView2<'_, T>) -> Option<MatrixError> {
    let Place { rows, columns } = place;
    let first = part.columns().into_iter().enumerate().filter_map(|(j, column)| {
        let i = column.iter().position(|x| !is_finite(*x))?;
        Some((rows.global(i), columns.global(j)))
    });
    first.min().map(|(row, column)| MatrixError::NotFinite { row, column })
}

/// Rows of the array: a few more than the matrix has where a member's part would otherwise have columns of whole pages, whose
/// elements of one row fall into the same few sets of every cache. They are never touched. None where blocks are whole pages: the parts
/// of all members but one are then too, however many rows are added.
fn padded<T>(rows: Axis) -> usize {
    let (page, line) = (4096 / size_of::<T>(), 64 / size_of::<T>());
    let whole = |extent: usize| {
        (0..rows.processes).any(|me| {
            let local = Axis { extent, me, ..rows }.local_extent();
            local > 0 && local.is_multiple_of(page)
        })
    };
    // After a round of blocks over all processes, everything repeats.
    let round = (rows.block * rows.processes).max(page) / line;
    (0..=round).map(|lines| rows.extent + lines * line).find(|&extent| !whole(extent)).unwrap_or(rows.extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_whole_pages_are_not_padded() {
        let rows = |extent, block, processes| Axis { extent, block, processes, me: 0 };
        assert_eq!(padded::<f64>(rows(4096, 1024, 2)), 4096);
        assert_eq!(padded::<f64>(rows(1024, 1024, 1)), 1032);
        assert_eq!(padded::<f64>(rows(1000, 192, 2)), 1000);
    }
}
