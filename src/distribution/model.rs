//! Every distribution against a model that visits each element by itself.
//!
//! The model knows the layouts' formulas in their plainest form, one division at a time, and numbers the local indices of an
//! owner by counting.

use std::collections::{HashMap, HashSet};

use ndarray::{Dim, Dimension, Ix1, Ix2, Ix3, Ix4, IxDyn};
use proptest::prelude::*;

use super::{Distribution, Location, Order, Single};
use crate::index::Patch;

/// Coordinate and local index of each index of one axis.
type AxisModel = Vec<(usize, usize)>;

/// A layout as a random test draws it.
#[derive(Clone, Debug)]
struct Drawn {
    extents: Vec<usize>,
    members: usize,
    order: Order,
    kind: Kind,
    /// Per axis: position of the patch, its span and its step, as fractions and numbers.
    patch: Vec<(usize, usize, isize)>,
}

#[derive(Clone, Debug)]
enum Kind {
    Block(Option<Vec<usize>>),
    Grid(Vec<usize>),
    Cyclic { block: Vec<usize>, grid: Option<Vec<usize>> },
    Irregular(Vec<Vec<usize>>),
}

fn drawn(axes: usize, widest: usize) -> impl Strategy<Value = Drawn> {
    let list = |range: std::ops::Range<usize>| prop::collection::vec(range, axes);
    let kind = prop_oneof![
        Just(Kind::Block(None)),
        list(0..widest).prop_map(|least| Kind::Block(Some(least))),
        list(1..5).prop_map(Kind::Grid),
        list(1..widest).prop_map(|block| Kind::Cyclic { block, grid: None }),
        (list(1..4), list(1..4)).prop_map(|(block, grid)| Kind::Cyclic { block, grid: Some(grid) }),
        prop::collection::vec(prop::collection::vec(0..100_usize, 0..4), axes).prop_map(Kind::Irregular),
    ];
    let patch = prop::collection::vec((0..100_usize, 0..100_usize, -7..=7_isize), axes);
    let order = prop_oneof![Just(Order::RowMajor), Just(Order::ColumnMajor)];
    (prop::collection::vec(prop_oneof![1 => Just(0), 15 => 1..widest], axes), 1..14_usize, order, kind, patch)
        .prop_map(|(extents, members, order, kind, patch)| Drawn { extents, members, order, kind, patch })
}

fn dim<D: Dimension>(values: &[usize]) -> D {
    let mut dim = D::zeros(values.len());
    dim.slice_mut().copy_from_slice(values);
    dim
}

/// The distribution, and the grid and blocks of each axis by the formulas.
fn build<D: Dimension>(drawn: &Drawn) -> (Distribution<D>, Vec<AxisModel>) {
    let extents: D = dim(&drawn.extents);
    let order = drawn.order;
    let axes = 0..drawn.extents.len();
    let dealt = |distribution: &Distribution<D>, block: &[usize]| -> Vec<AxisModel> {
        let axis = |axis: usize| (0..drawn.extents[axis]).map(move |i| i / block[axis]);
        axes.clone().map(|k| number(axis(k).map(|block| block % distribution.grid()[k]))).collect()
    };
    match &drawn.kind {
        Kind::Block(least) => {
            let made = Distribution::block(&extents, drawn.members, least.as_deref(), order).unwrap();
            let block: Vec<_> = axes.clone().map(|k| drawn.extents[k].div_ceil(made.grid()[k]).max(1)).collect();
            for k in axes.clone() {
                let least = least.as_ref().map_or(1, |least| least[k]);
                assert!(made.grid()[k] == 1 || block[k] >= least, "{made:?} with blocks of at least {least}");
            }
            (made.clone(), dealt(&made, &block))
        }
        Kind::Grid(grid) => {
            let made = Distribution::block_with_grid(&extents, grid, order).unwrap();
            let block: Vec<_> = axes.clone().map(|k| drawn.extents[k].div_ceil(grid[k]).max(1)).collect();
            (made.clone(), dealt(&made, &block))
        }
        Kind::Cyclic { block, grid } => {
            let members = grid.as_ref().map_or(drawn.members, |grid| grid.iter().product::<usize>() + drawn.members - 1);
            let made = Distribution::block_cyclic(&extents, block, members, grid.as_deref(), order).unwrap();
            if grid.is_none() {
                assert_eq!(made.grid().iter().product::<usize>(), members);
            }
            (made.clone(), dealt(&made, block))
        }
        Kind::Irregular(cuts) => {
            let cuts: Vec<Vec<usize>> = cuts
                .iter()
                .zip(&drawn.extents)
                .map(|(cuts, &n)| {
                    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (n + 1)).chain([0]).collect();
                    cuts.sort_unstable();
                    cuts
                })
                .collect();
            let members = cuts.iter().map(Vec::len).product::<usize>() + drawn.members - 1;
            let made = Distribution::irregular(&extents, &cuts, members, order).unwrap();
            let owner = |k: usize, i: usize| cuts[k].iter().rposition(|&cut| cut <= i).unwrap();
            (made, axes.map(|k| number((0..drawn.extents[k]).map(|i| owner(k, i)))).collect())
        }
    }
}

/// Local indices by counting what each coordinate has so far.
fn number(coordinates: impl Iterator<Item = usize>) -> AxisModel {
    let mut counts = HashMap::new();
    coordinates
        .map(|coordinate| {
            let count: &mut usize = counts.entry(coordinate).or_default();
            *count += 1;
            (coordinate, *count - 1)
        })
        .collect()
}

/// All indices of a shape, row-major.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let len: usize = shape.iter().product();
    (0..len).map(move |mut flat| {
        let mut index = vec![0; shape.len()];
        for (slot, n) in index.iter_mut().zip(shape).rev() {
            (*slot, flat) = (flat % n, flat / n);
        }
        index
    })
}

fn naive<D: Dimension>(made: &Distribution<D>, model: &[AxisModel], index: &[usize]) -> Location {
    let places: Vec<_> = index.iter().zip(model).map(|(&i, axis)| axis[i]).collect();
    let shape: Vec<_> =
        places.iter().zip(model).map(|(place, axis)| axis.iter().filter(|other| other.0 == place.0).count()).collect();
    let member = places.iter().zip(made.grid()).fold(0, |member, (place, p)| member * p + place.0);
    let axes: Vec<usize> = match made.order() {
        Order::RowMajor => (0..index.len()).collect(),
        Order::ColumnMajor => (0..index.len()).rev().collect(),
    };
    Location { member, offset: axes.iter().fold(0, |offset, &k| offset * shape[k] + places[k].1) }
}

/// The patch that the drawn numbers mean on these extents.
fn patch<D: Dimension>(drawn: &Drawn) -> Patch<D> {
    let mut lists = [vec![], vec![], vec![]];
    for (&(position, span, step), &n) in drawn.patch.iter().zip(&drawn.extents) {
        let step = if step == 0 { 1 } else { step };
        let start = position % n.max(1);
        let reach =
            if step > 0 { n.saturating_sub(start).div_ceil(step.unsigned_abs()) } else { start / step.unsigned_abs() + 1 };
        let most = if n == 0 { 0 } else { reach };
        // Mostly long patches; empty ones now and then.
        let count = if span < 3 { 0 } else { most - span % (most / 2 + 1) };
        lists[0].push(start);
        lists[1].push(count);
        lists[2].push(step as usize);
    }
    Patch::new(dim(&lists[0]), dim(&lists[1]), dim(&lists[2]))
}

fn check<D: Dimension>(drawn: &Drawn) {
    let (made, model) = build::<D>(drawn);
    let extents = &drawn.extents;
    let total: usize = extents.iter().product();

    // Owner and offset, and that nobody else has the place.
    let mut places = HashSet::new();
    for index in indices(extents) {
        let location = made.locate(&dim(&index));
        assert_eq!(location, naive(&made, &model, &index), "{index:?} of {made:?}");
        assert!(location.member < made.members() && location.offset < made.local_len(location.member));
        assert!(places.insert(location));
        assert_eq!(made.single(&dim(&index), &dim(&vec![1; index.len()])).map(|single| single.location), Some(location));
    }
    let lens: Vec<usize> = (0..made.members()).map(|member| made.local_len(member)).collect();
    assert_eq!(lens.iter().sum::<usize>(), total);
    assert_eq!(lens.iter().max().copied().unwrap_or(0), made.max_part_len(), "{made:?}");

    // Blocks name each place of each part once.
    for (member, &len) in lens.iter().enumerate() {
        let (shape, strides) = (made.local_shape(member), made.local_strides(member));
        assert_eq!(shape.size(), if extents.is_empty() && len == 0 { 1 } else { len });
        let mut seen = 0;
        for block in made.blocks(member) {
            assert_eq!(block.local_start.slice().iter().zip(strides.slice()).map(|(i, s)| i * s).sum::<usize>(), block.offset);
            for within in indices(block.region.count().slice()) {
                let index: Vec<_> = within.iter().zip(block.region.start().slice()).map(|(i, s)| i + s).collect();
                let offset = block.offset + within.iter().zip(strides.slice()).map(|(i, s)| i * s).sum::<usize>();
                assert_eq!(made.locate(&dim(&index)), Location { member, offset });
                seen += 1;
            }
        }
        assert_eq!(seen, len);
    }

    // Pieces cover the patch once, each element at its place.
    let patch = patch::<D>(drawn);
    let mut covered = HashSet::new();
    let mut pieces = 0;
    for piece in made.pieces(&patch) {
        pieces += 1;
        for within in indices(piece.count.slice()) {
            let position: Vec<_> = within.iter().zip(piece.start.slice()).map(|(i, s)| i + s).collect();
            let index: Vec<_> = (0..position.len())
                .map(|k| patch.start().slice()[k].wrapping_add_signed(position[k] as isize * patch.step(k)))
                .collect();
            let moved: isize = within.iter().zip(piece.strides.slice()).map(|(&i, &s)| i as isize * s as isize).sum();
            let offset = piece.offset.wrapping_add_signed(moved);
            assert_eq!(made.locate(&dim(&index)), Location { member: piece.member, offset }, "{index:?} {piece:?} {made:?}");
            assert!(covered.insert(position));
        }
    }
    assert_eq!(covered.len(), patch.len(), "{patch:?} of {made:?}");

    // One owner for the whole patch of neighbours exactly where one piece is enough.
    if patch.is_unit_step() {
        let single = made.single(patch.start(), patch.count());
        assert_eq!(single.is_some(), pieces == 1, "{patch:?} of {made:?}");
        if let Some(Single { location, strides }) = single {
            assert_eq!(location, made.locate(patch.start()));
            assert_eq!(strides, made.local_strides(location.member), "{patch:?} of {made:?}");
        }
    }
    assert_eq!(made.fingerprint(), made.clone().fingerprint());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_axis(drawn in drawn(1, 40)) {
        check::<Ix1>(&drawn);
        check::<IxDyn>(&drawn);
    }

    #[test]
    fn two_axes(drawn in drawn(2, 20)) {
        check::<Ix2>(&drawn);
    }

    #[test]
    fn three_axes(drawn in drawn(3, 9)) {
        check::<Ix3>(&drawn);
    }

    #[test]
    fn four_axes(drawn in drawn(4, 6)) {
        check::<Ix4>(&drawn);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn seven_axes(drawn in drawn(7, 4)) {
        check::<IxDyn>(&drawn);
    }
}

/// ScaLAPACK's `INDXG2P` and `INDXG2L`, which count from one, with the first block at process 0.
#[test]
fn block_cyclic_is_scalapacks() {
    let indxg2p = |ig: usize, nb: usize, p: usize| ((ig - 1) / nb) % p;
    let indxg2l = |ig: usize, nb: usize, p: usize| nb * ((ig - 1) / (nb * p)) + (ig - 1) % nb + 1;
    let (m, n, mb, nb, rows, columns) = (37, 53, 4, 5, 2, 3);
    for order in [Order::RowMajor, Order::ColumnMajor] {
        let made = Distribution::block_cyclic(&Dim([m, n]), &[mb, nb], 6, Some(&[rows, columns]), order).unwrap();
        assert_eq!(made.block_shape(), Some(&[mb, nb][..]));
        for i in 1..=m {
            for j in 1..=n {
                let location = made.locate(&Dim([i - 1, j - 1]));
                let member = indxg2p(i, mb, rows) * columns + indxg2p(j, nb, columns);
                let shape = made.local_shape(member);
                let (row, column) = (indxg2l(i, mb, rows) - 1, indxg2l(j, nb, columns) - 1);
                let offset = match order {
                    Order::RowMajor => row * shape[1] + column,
                    Order::ColumnMajor => column * shape[0] + row,
                };
                assert_eq!(location, Location { member, offset });
            }
        }
    }
}

#[test]
fn one_process_on_an_axis_makes_one_piece() {
    let made = Distribution::block_cyclic(&Dim([40, 40]), &[4, 4], 3, Some(&[1, 3]), Order::RowMajor).unwrap();
    let rows = Patch::block(Dim([1, 0]), Dim([37, 4]));
    assert_eq!(made.pieces(&rows).count(), 1);
    assert_eq!(
        made.single(rows.start(), rows.count()).map(|single| single.location),
        made.pieces(&rows).next().map(|p| Location { member: p.member, offset: p.offset })
    );
    assert_eq!(made.blocks(0).count(), 4);
    // Every twelfth column is the same process's.
    let far = Patch::new(Dim([0, 39]), Dim([40, 4]), Dim([1, -12_isize as usize]));
    assert_eq!(made.pieces(&far).count(), 1);
}
