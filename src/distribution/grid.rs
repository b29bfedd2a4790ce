//! The choice of a process grid.

use std::cmp::{Ordering, Reverse};

use super::Order;

/// Axes that are cut at most. The number of candidate grids grows exponentially with it.
const CUT_AXES: usize = 6;

/// The grid for one block each.
///
/// Among all grids without an empty block, one for as many members as possible; among those, one with the least surface between
/// blocks, since that is what neighbours exchange; then the smallest blocks; then the longest contiguous runs of memory.
pub(super) fn for_blocks(extents: &[usize], members: usize, min_block: Option<&[usize]>, order: Order) -> Vec<usize> {
    let least = |axis: usize| min_block.map_or(1, |edges| edges[axis].clamp(1, extents[axis].max(1)));
    // ceil(n / g) >= c is g * (c - 1) < n.
    let most: Vec<usize> = (0..extents.len())
        .map(|axis| match (extents[axis], least(axis)) {
            (0 | 1, _) => 1,
            (n, 1) => n,
            (n, edge) => (n - 1) / (edge - 1),
        })
        .collect();
    let limits = widest(&most);
    let places = limits.iter().fold(1_usize, |places, &limit| places.saturating_mul(limit));
    let block = |axis: usize, processes: usize| extents[axis].div_ceil(processes).max(1);
    let no_empty_block = |grid: &[usize]| {
        (0..grid.len()).all(|axis| grid[axis] == 1 || extents[axis].div_ceil(block(axis, grid[axis])) == grid[axis])
    };
    let volume = extents.iter().fold(1_u128, |volume, &n| volume.saturating_mul(n.max(1) as u128));
    let cost = |grid: &[usize]| {
        // g - 1 cuts through the whole array across each axis.
        let cuts = |axis: usize| (grid[axis] as u128 - 1).saturating_mul(volume / extents[axis].max(1) as u128);
        let surface = (0..grid.len()).fold(0_u128, |surface, axis| surface.saturating_add(cuts(axis)));
        let load = (0..grid.len()).fold(1_u128, |load, axis| load.saturating_mul(block(axis, grid[axis]) as u128));
        (surface, load)
    };
    let prefer = |a: &[usize], b: &[usize]| match order {
        Order::RowMajor => b.cmp(a),
        Order::ColumnMajor => b.iter().rev().cmp(a.iter().rev()),
    };
    for used in (1..=members.min(places)).rev() {
        let best = best_factors(used, &limits, |grid| no_empty_block(grid).then(|| cost(grid)), prefer);
        if let Some(grid) = best {
            return grid;
        }
    }
    vec![1; extents.len()]
}

/// The grid for dealing blocks round, given their number on each axis. All members are in it.
///
/// Among all such grids, one that leaves as few members as possible without a block; among those the nearest to a square, with
/// ascending edges.
pub(super) fn for_dealing(blocks: &[usize], members: usize) -> Vec<usize> {
    let mut limits = widest(blocks);
    if limits.iter().all(|&limit| limit == 1) {
        // Even where a single block is all, the grid has a place for every member.
        limits.iter_mut().take(1).for_each(|limit| *limit = 2);
    }
    limits.iter_mut().filter(|limit| **limit > 1).for_each(|limit| *limit = members);
    let cost = |grid: &[usize]| {
        let owners = grid.iter().zip(blocks).fold(1_u128, |owners, (&g, &b)| owners.saturating_mul(g.min(b) as u128));
        (Reverse(owners), grid.iter().sum::<usize>())
    };
    best_factors(members, &limits, |grid| Some(cost(grid)), <[usize]>::cmp).unwrap_or_else(|| vec![1; blocks.len()])
}

/// The limits of the axes that can be cut most often, and 1 for the others.
fn widest(most: &[usize]) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..most.len()).collect();
    axes.sort_by_key(|&axis| Reverse(most[axis]));
    let mut limits = vec![1; most.len()];
    axes.into_iter().take(CUT_AXES).for_each(|axis| limits[axis] = most[axis].max(1));
    limits
}

/// The cheapest way to write `product` with a factor for each axis, of at most that axis's limit; `prefer` decides among equals.
fn best_factors<C: Ord>(
    product: usize,
    limits: &[usize],
    cost: impl Fn(&[usize]) -> Option<C>,
    prefer: impl Fn(&[usize], &[usize]) -> Ordering,
) -> Option<Vec<usize>> {
    let mut best: Option<(C, Vec<usize>)> = None;
    let mut visit = |grid: &[usize]| {
        let Some(cost) = cost(grid) else { return };
        let better =
            best.as_ref().is_none_or(|(least, chosen)| cost.cmp(least).then_with(|| prefer(grid, chosen)) == Ordering::Less);
        if better {
            best = Some((cost, grid.to_vec()));
        }
    };
    factors(product, &divisors(product), limits, &mut Vec::new(), &mut visit);
    best.map(|(_, grid)| grid)
}

fn factors(product: usize, divisors: &[usize], limits: &[usize], chosen: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
    let Some((&limit, others)) = limits.split_first() else {
        if product == 1 {
            visit(chosen);
        }
        return;
    };
    let places = others.iter().fold(1_usize, |places, &limit| places.saturating_mul(limit));
    for &factor in divisors.iter().take_while(|&&factor| factor <= limit) {
        // What is left must fit on the other axes.
        if product.is_multiple_of(factor) && product / factor <= places {
            chosen.push(factor);
            factors(product / factor, divisors, others, chosen, visit);
            chosen.pop();
        }
    }
}

/// Ascending.
fn divisors(number: usize) -> Vec<usize> {
    let small: Vec<usize> = (1..).take_while(|d| d * d <= number).filter(|&d| number.is_multiple_of(d)).collect();
    let large = small.iter().rev().filter(|&&d| d * d != number).map(|d| number / d);
    small.iter().copied().chain(large).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(extents: &[usize], members: usize) -> Vec<usize> {
        for_blocks(extents, members, None, Order::RowMajor)
    }

    #[test]
    fn squares_stay_squares() {
        assert_eq!(blocks(&[100, 100], 4), [2, 2]);
        assert_eq!(blocks(&[103, 103], 4), [2, 2]);
        assert_eq!(blocks(&[100, 100], 12), [4, 3]);
        assert_eq!(blocks(&[64, 64, 64], 8), [2, 2, 2]);
        assert_eq!(blocks(&[4000, 1000], 4), [4, 1]);
    }

    #[test]
    fn ties_keep_runs_long() {
        assert_eq!(blocks(&[100, 100], 2), [2, 1]);
        assert_eq!(for_blocks(&[100, 100], 2, None, Order::ColumnMajor), [1, 2]);
    }

    #[test]
    fn all_members_work_where_extents_allow() {
        assert_eq!(blocks(&[100, 100], 7), [7, 1]);
        assert_eq!(blocks(&[10], 6), [5]);
        assert_eq!(blocks(&[3], 8), [3]);
        assert_eq!(blocks(&[3, 3], 8), [3, 2]);
        assert_eq!(blocks(&[0, 5], 8), [1, 5]);
        assert_eq!(blocks(&[0], 8), [1]);
        assert_eq!(blocks(&[1, 1], 8), [1, 1]);
        assert_eq!(blocks(&[2; 9], 64), [2, 2, 2, 2, 2, 2, 1, 1, 1]);
    }

    #[test]
    fn a_minimum_block_is_kept() {
        let order = Order::RowMajor;
        assert_eq!(for_blocks(&[100, 100], 4, Some(&[1, 100]), order), [4, 1]);
        assert_eq!(for_blocks(&[100, 100], 4, Some(&[100, 0]), order), [1, 4]);
        assert_eq!(for_blocks(&[100, 100], 4, Some(&[100, 200]), order), [1, 1]);
        assert_eq!(for_blocks(&[100], 16, Some(&[30]), order), [3]);
        assert_eq!(for_blocks(&[100], 16, Some(&[50]), order), [2]);
        assert_eq!(for_blocks(&[100], 16, Some(&[51]), order), [1]);
    }

    #[test]
    fn dealing_uses_all_members_on_near_squares() {
        assert_eq!(for_dealing(&[50, 50], 6), [2, 3]);
        assert_eq!(for_dealing(&[50, 50], 16), [4, 4]);
        assert_eq!(for_dealing(&[50, 1], 4), [4, 1]);
        assert_eq!(for_dealing(&[50, 50], 7), [1, 7]);
        assert_eq!(for_dealing(&[1, 1], 4), [4, 1]);
        assert_eq!(for_dealing(&[0], 4), [4]);
        assert_eq!(for_dealing(&[50, 50, 50], 8), [2, 2, 2]);
    }
}
