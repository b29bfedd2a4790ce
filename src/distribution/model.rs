//! Every distribution against a model that visits each element by itself, with the layouts' plainest formulas.

use std::collections::{HashMap, HashSet};

use ndarray::{Dim, Dimension, Ix1, Ix2, Ix3, Ix4, IxDyn};
use proptest::prelude::*;

use super::{Distribution, Location, Order, Single};
use crate::index::Patch;

/// For each index of one axis its coordinate, and its tile where tiles are stored by themselves.
type AxisModel = Vec<(usize, usize)>;

/// A layout as a random test draws it.
#[derive(Clone, Debug)]
struct Drawn {
    extents: Vec<usize>,
    members: usize,
    order: Order,
    kind: Kind,
    /// What decides which members of how many are owners; all if there is nothing.
    restricted: Option<Vec<usize>>,
    /// Per axis: position of the patch, its span and its step, as fractions and numbers.
    patch: Vec<(usize, usize, isize)>,
}

#[derive(Clone, Debug)]
enum Kind {
    Block(Option<Vec<usize>>),
    Grid(Vec<usize>),
    Cyclic { block: Vec<usize>, grid: Option<Vec<usize>> },
    Irregular(Vec<Vec<usize>>),
    Tiled { tile: Vec<usize>, grid: Option<Vec<usize>> },
    TiledIrregular { cuts: Vec<Vec<usize>>, grid: Option<Vec<usize>> },
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
        (list(1..widest), prop::option::of(list(1..4))).prop_map(|(tile, grid)| Kind::Tiled { tile, grid }),
        (list(1..4), prop::option::of(list(1..4))).prop_map(|(tile, grid)| Kind::Tiled { tile, grid }),
        (prop::collection::vec(prop::collection::vec(0..100_usize, 0..7), axes), prop::option::of(list(1..4)))
            .prop_map(|(cuts, grid)| Kind::TiledIrregular { cuts, grid }),
    ];
    let restricted = prop::option::of(prop::collection::vec(0..1000_usize, 0..30));
    let patch = prop::collection::vec((0..100_usize, 0..100_usize, -7..=7_isize), axes);
    let order = prop_oneof![Just(Order::RowMajor), Just(Order::ColumnMajor)];
    (prop::collection::vec(prop_oneof![1 => Just(0), 15 => 1..widest], axes), 1..14_usize, order, kind, restricted, patch)
        .prop_map(|(extents, members, order, kind, restricted, patch)| Drawn { extents, members, order, kind, restricted, patch })
}

fn dim<D: Dimension>(values: &[usize]) -> D {
    let mut dim = D::zeros(values.len());
    dim.slice_mut().copy_from_slice(values);
    dim
}

/// The distribution, what is known of each axis, and the member for each place in the grid.
fn build<D: Dimension>(drawn: &Drawn) -> (Distribution<D>, Vec<AxisModel>, Vec<usize>) {
    let (made, model) = build_plain::<D>(drawn);
    let Some(keys) = &drawn.restricted else {
        let members = (0..made.members()).collect();
        return (made, model, members);
    };
    // Some of the members of a larger group, shuffled by the keys, or neighbours.
    let places = made.members();
    let members = places + keys.len() % 5;
    let mut owners: Vec<usize> = (0..members).collect();
    if keys.len() % 3 == 0 {
        owners.rotate_left(keys.len() % members);
    } else {
        owners.sort_by_key(|&member| (keys.get(member).copied().unwrap_or(500), member));
    }
    owners.truncate(places + (members - places) / 2);
    (made.restricted(&owners, members).unwrap(), model, owners)
}

/// The grid and blocks of each axis by the formulas.
fn build_plain<D: Dimension>(drawn: &Drawn) -> (Distribution<D>, Vec<AxisModel>) {
    let extents: D = dim(&drawn.extents);
    let order = drawn.order;
    let axes = 0..drawn.extents.len();
    let dealt = |distribution: &Distribution<D>, block: &[usize]| -> Vec<AxisModel> {
        let axis = |axis: usize| (0..drawn.extents[axis]).map(move |i| i / block[axis]);
        axes.clone().map(|k| axis(k).map(|block| (block % distribution.grid()[k], 0)).collect()).collect()
    };
    let in_tiles = |made: &Distribution<D>, tile: &dyn Fn(usize, usize) -> usize| -> Vec<AxisModel> {
        let axis = |k: usize| (0..drawn.extents[k]).map(move |i| (tile(k, i) % made.grid()[k], tile(k, i))).collect();
        axes.clone().map(axis).collect()
    };
    let cut = |cuts: &[Vec<usize>]| -> Vec<Vec<usize>> {
        let axis = |(cuts, &n): (&Vec<usize>, &usize)| {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (n + 1)).chain([0]).collect();
            cuts.sort_unstable();
            cuts
        };
        cuts.iter().zip(&drawn.extents).map(axis).collect()
    };
    let enough = |grid: &Option<Vec<usize>>| {
        grid.as_ref().map_or(drawn.members, |grid| grid.iter().product::<usize>() + drawn.members - 1)
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
            let members = enough(grid);
            let made = Distribution::block_cyclic(&extents, block, members, grid.as_deref(), order).unwrap();
            if grid.is_none() {
                assert_eq!(made.grid().iter().product::<usize>(), members);
            }
            (made.clone(), dealt(&made, block))
        }
        Kind::Irregular(cuts) => {
            let cuts = cut(cuts);
            let members = cuts.iter().map(Vec::len).product::<usize>() + drawn.members - 1;
            let made = Distribution::irregular(&extents, &cuts, members, order).unwrap();
            let owner = |k: usize, i: usize| cuts[k].iter().rposition(|&cut| cut <= i).unwrap();
            (made, axes.map(|k| (0..drawn.extents[k]).map(|i| (owner(k, i), 0)).collect()).collect())
        }
        Kind::Tiled { tile, grid } => {
            let made = Distribution::tiled(&extents, tile, enough(grid), grid.as_deref(), order).unwrap();
            let model = in_tiles(&made, &|k, i| i / tile[k]);
            (made, model)
        }
        Kind::TiledIrregular { cuts, grid } => {
            let cuts = cut(cuts);
            let made = Distribution::tiled_irregular(&extents, &cuts, enough(grid), grid.as_deref(), order).unwrap();
            let model = in_tiles(&made, &|k, i| cuts[k].iter().rposition(|&cut| cut <= i).unwrap());
            (made, model)
        }
    }
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

/// Where each element lies: a member's elements sorted by tile and then by index, and counted.
fn naive<D: Dimension>(made: &Distribution<D>, model: &[AxisModel], owners: &[usize]) -> HashMap<Vec<usize>, Location> {
    let in_order = |mut numbers: Vec<usize>| {
        if made.order() == Order::ColumnMajor {
            numbers.reverse();
        }
        numbers
    };
    let mut parts: HashMap<usize, Vec<_>> = HashMap::new();
    for index in indices(made.shape()) {
        let places: Vec<_> = index.iter().zip(model).map(|(&i, axis)| axis[i]).collect();
        let place = places.iter().zip(made.grid()).fold(0, |member, (place, p)| member * p + place.0);
        let tile = places.iter().map(|place| place.1).collect();
        parts.entry(owners[place]).or_default().push((in_order(tile), in_order(index.clone()), index));
    }
    let mut locations = HashMap::new();
    for (member, mut elements) in parts {
        elements.sort();
        let counted = elements.into_iter().enumerate();
        locations.extend(counted.map(|(offset, (_, _, index))| (index, Location { member, offset })));
    }
    locations
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
    let (made, model, owners) = build::<D>(drawn);
    let model = naive(&made, &model, &owners);
    let extents = &drawn.extents;
    let total: usize = extents.iter().product();

    // Owner and offset, and that nobody else has the place.
    let mut places = HashSet::new();
    for index in indices(extents) {
        let location = made.locate(&dim(&index));
        assert_eq!(location, model[&index], "{index:?} of {made:?}");
        assert!(location.member < made.members() && location.offset < made.local_len(location.member));
        assert!(places.insert(location));
        assert_eq!(made.single(&dim(&index), &dim(&vec![1; index.len()])).map(|single| single.location), Some(location));
    }
    let lens: Vec<usize> = (0..made.members()).map(|member| made.local_len(member)).collect();
    assert_eq!(lens.iter().sum::<usize>(), total);
    assert_eq!(lens.iter().max().copied().unwrap_or(0), made.max_part_len(), "{made:?}");

    // Blocks name each place of each part once.
    for (member, &len) in lens.iter().enumerate() {
        let shape = made.local_shape(member);
        assert_eq!(shape.size(), if extents.is_empty() && len == 0 { 1 } else { len });
        assert!(len == 0 || owners.contains(&member));
        let mut seen = 0;
        for block in made.blocks(member) {
            if !made.is_tiled() {
                assert_eq!(block.strides, made.local_strides(member));
                let place = block.local_start.slice().iter().zip(block.strides.slice()).map(|(i, s)| i * s).sum::<usize>();
                assert_eq!(place, block.offset);
            }
            for within in indices(block.patch.count().slice()) {
                let index: Vec<_> = within.iter().zip(block.patch.start().slice()).map(|(i, s)| i + s).collect();
                let offset = block.offset + within.iter().zip(block.strides.slice()).map(|(i, s)| i * s).sum::<usize>();
                assert_eq!(made.locate(&dim(&index)), Location { member, offset });
                for (axis, &i) in index.iter().enumerate() {
                    assert_eq!(made.local_index(axis, i), block.local_start[axis] + within[axis]);
                }
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
            let start = patch.start();
            let holds = |block: &super::Block<D>| {
                (0..start.ndim())
                    .all(|k| (block.patch.start()[k]..block.patch.start()[k] + block.patch.count()[k]).contains(&start[k]))
            };
            let block = made.blocks(location.member).find(holds).expect("a block of the owner");
            assert_eq!(strides, block.strides, "{patch:?} of {made:?}");
        }
    }
    assert_eq!(made.fingerprint(), made.clone().fingerprint());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_axis(drawn in drawn(1, 50)) {
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

/// Queries about the members of a restricted array with irregular tiles, member by member: Global Arrays answers them wrongly (its
/// bug 300: `NGA_Distribution` and the block queries after `GA_Set_tiled_irreg_proc_grid` with `GA_Set_restricted`).
#[test]
fn restricted_irregular_tiles_know_their_owners() {
    let cuts = [vec![0, 1, 5, 6], vec![0, 4, 4, 7]];
    let made = Distribution::tiled_irregular(&Dim([8, 9]), &cuts, 4, Some(&[2, 2]), Order::RowMajor).unwrap();
    let made = made.restricted(&[5, 1, 4, 2], 7).unwrap();
    // Rows of tiles 0..1, 1..5, 5..6, 6..8 and columns 0..4, 4..4, 4..7, 7..9 go to the coordinates 0 and 1 in turn.
    let blocks = |member| {
        let block = |block: super::Block<_>| {
            let (start, count): (Ix2, Ix2) = (*block.patch.start(), *block.patch.count());
            (block.offset, start[0]..start[0] + count[0], start[1]..start[1] + count[1])
        };
        made.blocks(member).map(block).collect::<Vec<_>>()
    };
    assert_eq!(blocks(5), [(0, 0..1, 0..4), (4, 0..1, 4..7), (7, 5..6, 0..4), (11, 5..6, 4..7)]);
    assert_eq!(blocks(1), [(0, 0..1, 7..9), (2, 5..6, 7..9)]);
    assert_eq!(blocks(4), [(0, 1..5, 0..4), (16, 1..5, 4..7), (28, 6..8, 0..4), (36, 6..8, 4..7)]);
    assert_eq!(blocks(2), [(0, 1..5, 7..9), (8, 6..8, 7..9)]);
    assert!([0, 3, 6].into_iter().all(|member| blocks(member).is_empty() && made.local_len(member) == 0));
    assert_eq!(made.local_shape(4), Dim([6, 7]));
    assert_eq!(made.max_part_len(), 42);
}
