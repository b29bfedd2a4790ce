//! How a matrix is cut into blocks, and a member's place in the grid to which they are dealt.

use super::axis::Axis;
use crate::{
    GlobalArray2,
    distribution::Order,
    error::Result,
    linalg::{call::Call, field::Field},
    sync::Group,
};

/// How a matrix is cut for its factors: square blocks, dealt round to a grid of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Rows and columns of a block. Large blocks are fast on few members; small ones share the work among many.
    pub edge: usize,
    /// Rows and columns of the grid. Members are numbered row by row of it.
    pub grid: [usize; 2],
}

impl Blocking {
    /// A good choice for a matrix of this order on a number of members: a grid as square as that number allows, with no more rows than columns, and blocks of
    /// order / members, rounded up to a multiple of 32, from 32 to 192.
    ///
    /// Few process rows make the search for pivots cheap. A large block leaves members idle: most wait for its panel.
    #[must_use]
    pub fn new(order: usize, members: usize) -> Self {
        let rows = (1..=members).take_while(|rows| rows * rows <= members).filter(|rows| members.is_multiple_of(*rows)).last();
        let rows = rows.unwrap_or(1);
        Blocking { edge: (order / members.max(1)).clamp(32, 192).next_multiple_of(32), grid: [rows, members / rows] }
    }

    /// That of a matrix which can be factored in place: block-cyclic in square blocks over all members in their order, and column by column.
    pub(in crate::linalg) fn in_place<T: Field>(matrix: &GlobalArray2<T>) -> Option<Self> {
        Self::of(matrix).filter(|_| matrix.distribution().order() == Order::ColumnMajor)
    }

    /// That for a copy: the grid of the matrix and its blocks, if they are of a good size.
    pub(in crate::linalg) fn for_copy<T: Field>(matrix: &GlobalArray2<T>) -> Self {
        let new = Self::new(matrix.shape()[0], matrix.group().size());
        Self::of(matrix).map_or(new, |of| Blocking { edge: if (32..=256).contains(&of.edge) { of.edge } else { new.edge }, ..of })
    }

    fn of<T: Field>(matrix: &GlobalArray2<T>) -> Option<Self> {
        let distribution = matrix.distribution();
        if distribution.kind() != "block-cyclic" || distribution.owners().is_some() {
            return None;
        }
        match (distribution.block_shape(), distribution.grid()) {
            (Some(&[edge, other]), &[rows, columns]) if edge == other && rows * columns == matrix.group().size() => {
                Some(Blocking { edge, grid: [rows, columns] })
            }
            _ => None,
        }
    }

    /// What members compare.
    ///
    /// # Errors
    /// The grid is not that of the group; no blocks; an order above 2³¹·√2.
    pub(in crate::linalg) fn check(self, call: &Call<'_>, order: usize) -> Result<[u64; 4]> {
        let Blocking { edge, grid: [rows, columns] } = self;
        if edge == 0 || rows.checked_mul(columns) != Some(call.group.size()) {
            let what = format_args!(
                "needs blocks of at least 1 and a grid with {} places, not {edge} and {rows} x {columns}",
                call.group.size()
            );
            return Err(call.argument(what));
        }
        if order.checked_mul(order).is_none_or(|elements| elements > isize::MAX as usize) {
            return Err(call.argument(format_args!("has order {order}: more elements than can be counted")));
        }
        Ok([order, edge, rows, columns].map(|x| x as u64))
    }
}

/// A member's place in the grid, and what it owns of a square matrix.
#[derive(Clone, Copy, Debug)]
pub(in crate::linalg) struct Place {
    pub(in crate::linalg) rows: Axis,
    pub(in crate::linalg) columns: Axis,
}

impl Place {
    /// Of this member.
    pub(in crate::linalg) fn new(group: &Group, order: usize, blocking: Blocking) -> Self {
        let Blocking { edge, grid: [rows, columns] } = blocking;
        // A larger block would have the same elements.
        let block = edge.min(order.max(1));
        let axis = |processes, me| Axis { extent: order, block, processes, me };
        Place { rows: axis(rows, group.member() / columns), columns: axis(columns, group.member() % columns) }
    }

    pub(in crate::linalg) fn order(&self) -> usize {
        self.rows.extent
    }

    /// The member at some place.
    pub(in crate::linalg) fn member(&self, row: usize, column: usize) -> usize {
        row * self.columns.processes + column
    }

    /// The ends of the panels, each with its start.
    pub(in crate::linalg) fn panels(&self) -> impl DoubleEndedIterator<Item = std::ops::Range<usize>> + use<> {
        let (order, block) = (self.order(), self.rows.block);
        (0..order.div_ceil(block)).map(move |panel| panel * block..(panel * block + block).min(order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_for_any_number_of_members() {
        let grid = |members| Blocking::new(1000, members).grid;
        assert_eq!([1, 2, 3, 4, 6, 7, 8, 12].map(grid), [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3], [1, 7], [2, 4], [3, 4]]);
        assert_eq!([0, 100, 1000, 10000].map(|order| Blocking::new(order, 10).edge), [32, 32, 128, 192]);
    }
}
