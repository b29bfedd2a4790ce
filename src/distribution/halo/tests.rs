//! Padded parts and halos against their definition, cell by cell.

use std::collections::HashMap;

use ndarray::{Dim, Ix1, Ix2, Ix3, IxDyn};
use proptest::prelude::*;

use super::*;
use crate::distribution::{DistributionError, Location, Order};

#[derive(Clone, Debug)]
struct Drawn {
    extents: Vec<usize>,
    cuts: Option<Vec<Vec<usize>>>,
    members: usize,
    order: Order,
    widths: Vec<usize>,
    boundaries: Vec<Boundary>,
    corners: bool,
    patch: Vec<(usize, usize, isize)>,
}

fn drawn(axes: usize, widest: usize) -> impl Strategy<Value = Drawn> {
    let list = |range: std::ops::Range<usize>| prop::collection::vec(range, axes);
    let boundary = prop_oneof![Just(Boundary::Periodic), Just(Boundary::Open)];
    let order = prop_oneof![Just(Order::RowMajor), Just(Order::ColumnMajor)];
    let cuts = prop::option::of(prop::collection::vec(prop::collection::vec(0..100_usize, 0..3), axes));
    let patch = prop::collection::vec((0..100_usize, 0..100_usize, -3..=3_isize), axes);
    let shape = (list(0..widest), cuts, 1..8_usize, order);
    let ghosts = (list(0..4), prop::collection::vec(boundary, axes), any::<bool>());
    (shape, ghosts, patch).prop_map(|((extents, cuts, members, order), (widths, boundaries, corners), patch)| Drawn {
        extents,
        cuts,
        members,
        order,
        widths,
        boundaries,
        corners,
        patch,
    })
}

fn dim<D: Dimension>(values: impl IntoIterator<Item = usize>) -> D {
    let values: Vec<usize> = values.into_iter().collect();
    let mut dim = D::zeros(values.len());
    dim.slice_mut().copy_from_slice(&values);
    dim
}

/// The distribution without ghost cells and with them.
fn build<D: Dimension>(drawn: &Drawn) -> (Distribution<D>, Distribution<D>) {
    let extents: D = dim(drawn.extents.clone());
    let plain = match &drawn.cuts {
        None => Distribution::block(&extents, drawn.members, None, drawn.order),
        Some(cuts) => {
            let cuts: Vec<Vec<usize>> = cuts
                .iter()
                .zip(&drawn.extents)
                .map(|(cuts, &n)| {
                    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (n + 1)).chain([0]).collect();
                    cuts.sort_unstable();
                    cuts
                })
                .collect();
            Distribution::irregular(&extents, &cuts, cuts.iter().map(Vec::len).product::<usize>().max(drawn.members), drawn.order)
        }
    }
    .unwrap();
    let ghosts = Ghosts { widths: dim(drawn.widths.clone()), boundaries: drawn.boundaries.clone(), corners: drawn.corners };
    (plain.clone(), plain.with_ghosts(ghosts).unwrap())
}

fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &n in shape {
        all = all.into_iter().flat_map(|index| (0..n).map(move |i| [&index[..], &[i]].concat())).collect();
    }
    all
}

fn dot(index: &[usize], strides: &[usize]) -> usize {
    index.iter().zip(strides).map(|(i, s)| i.wrapping_mul(*s)).fold(0, usize::wrapping_add)
}

/// A padded part is the plain one in the middle of a larger array.
fn check_places<D: Dimension>(drawn: &Drawn) {
    let (plain, padded) = build::<D>(drawn);
    let widths = &drawn.widths;
    for member in 0..plain.members() {
        let (shape, whole) = (plain.local_shape(member), padded.part_shape(member));
        assert_eq!(padded.local_shape(member), shape);
        assert_eq!((padded.local_len(member), padded.part_len(member)), (plain.local_len(member), whole.size()));
        assert!(padded.part_len(member) <= padded.max_part_len());
        let margins = whole.slice().iter().zip(shape.slice()).zip(widths);
        assert!(margins.map(|((whole, n), w)| (*whole, if *n == 0 { 0 } else { n + 2 * w })).all(|(a, b)| a == b));
    }
    for index in indices(&drawn.extents) {
        let (from, to) = (plain.locate(&dim(index.clone())), padded.locate(&dim(index.clone())));
        assert_eq!(from.member, to.member);
        let strides = padded.local_strides(to.member);
        let start = plain.blocks(from.member).next().unwrap().patch.start().clone();
        let local: Vec<usize> = (0..index.len()).map(|k| index[k] - start[k] + widths[k]).collect();
        assert_eq!(to.offset, dot(&local, strides.slice()), "{index:?} of {padded:?}");
        let single = padded.single(&dim(index.clone()), &dim(vec![1; index.len()])).unwrap();
        assert_eq!((single.location, single.strides), (to, strides));
    }
    for member in 0..padded.members() {
        let (blocks, expected): (Vec<_>, Vec<_>) = (padded.blocks(member).collect(), plain.blocks(member).collect());
        assert_eq!(blocks.len(), expected.len());
        for (block, expected) in blocks.iter().zip(&expected) {
            assert_eq!((&block.patch, &block.local_start), (&expected.patch, &expected.local_start));
            assert_eq!(block.offset, padded.locate(block.patch.start()).offset);
        }
    }
    let patch = patch_of::<D>(drawn);
    let mut covered = 0;
    for piece in padded.pieces(&patch) {
        for within in indices(piece.count.slice()) {
            let index = (0..within.len()).map(|k| {
                let position = within[k] + piece.start[k];
                patch.start()[k].wrapping_add_signed(position as isize * patch.step(k))
            });
            let offset = piece.offset.wrapping_add(dot(&within, piece.strides.slice()));
            assert_eq!(padded.locate(&dim(index)), Location { member: piece.member, offset });
            covered += 1;
        }
    }
    assert_eq!(covered, patch.len());
}

fn patch_of<D: Dimension>(drawn: &Drawn) -> Patch<D> {
    let axis = |(&n, &(first, count, step)): (&usize, &(usize, usize, isize))| {
        let step = if step == 0 { 1 } else { step };
        let first = first % n.max(1);
        let room = if step > 0 { n.saturating_sub(first).div_ceil(step.unsigned_abs()) } else { first / step.unsigned_abs() + 1 };
        (first, if n == 0 { 0 } else { count % (room + 1) }, step as usize)
    };
    let axes: Vec<_> = drawn.extents.iter().zip(&drawn.patch).map(axis).collect();
    let of = |value: fn(&(usize, usize, usize)) -> usize| dim(axes.iter().map(value));
    Patch::new(of(|a| a.0), of(|a| a.1), of(|a| a.2))
}

/// Each ghost cell, one by one: the element that its index stands for, if any.
fn check_boxes<D: Dimension>(drawn: &Drawn) {
    let (_, padded) = build::<D>(drawn);
    for member in 0..padded.members() {
        let mut filled: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
        for ghosts in padded.ghost_boxes(member) {
            for within in indices(ghosts.patch.count().slice()) {
                let add = |to: &D| within.iter().zip(to.slice()).map(|(a, b)| a + b).collect::<Vec<_>>();
                let index = add(ghosts.patch.start());
                let cell = add(&ghosts.local);
                let shape = padded.local_shape(member);
                for (axis, side) in ghosts.sides.iter().enumerate() {
                    let width = drawn.widths[axis];
                    let beyond = match cell[axis] {
                        low if low < width => Some(Side::Low),
                        inside if inside < width + shape[axis] => None,
                        _ => Some(Side::High),
                    };
                    assert_eq!(*side, beyond);
                }
                assert!(filled.insert(cell, index).is_none(), "a cell filled twice");
            }
        }
        let Some(block) = padded.blocks(member).next() else {
            assert!(filled.is_empty());
            continue;
        };
        for cell in indices(padded.part_shape(member).slice()) {
            let (mut beyond, mut nobody) = (0, false);
            let index: Vec<usize> = (0..cell.len())
                .map(|axis| {
                    let (n, start, count) =
                        (drawn.extents[axis] as i64, block.patch.start()[axis] as i64, block.patch.count()[axis] as i64);
                    let index = start + cell[axis] as i64 - drawn.widths[axis] as i64;
                    beyond += usize::from(index < start || index >= start + count);
                    nobody |= drawn.boundaries[axis] == Boundary::Open && !(0..n).contains(&index);
                    index.rem_euclid(n) as usize
                })
                .collect();
            let expected = beyond == 1 || beyond > 1 && drawn.corners;
            let expected = (expected && !nobody).then_some(index);
            assert_eq!(filled.get(&cell), expected.as_ref(), "{cell:?} of member {member} of {padded:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn one_axis(drawn in drawn(1, 12)) {
        check_places::<Ix1>(&drawn);
        check_places::<IxDyn>(&drawn);
        check_boxes::<Ix1>(&drawn);
    }

    #[test]
    fn two_axes(drawn in drawn(2, 8)) {
        check_places::<Ix2>(&drawn);
        check_boxes::<Ix2>(&drawn);
    }

    #[test]
    fn three_axes(drawn in drawn(3, 5)) {
        check_places::<Ix3>(&drawn);
        check_boxes::<IxDyn>(&drawn);
    }
}

#[test]
fn what_cannot_be_padded_is_said() {
    let ghosts =
        |widths: [usize; 2], axes: usize| Ghosts { widths: Dim(widths), boundaries: vec![Boundary::Open; axes], corners: true };
    let plain = Distribution::block(&Dim([8, 8]), 4, None, Order::RowMajor).unwrap();
    assert_eq!(plain.clone().with_ghosts(ghosts([0, 0], 2)).unwrap(), plain);
    assert!(matches!(plain.clone().with_ghosts(ghosts([1, 1], 1)), Err(DistributionError::AxisCount { given: 1, .. })));
    assert!(matches!(plain.clone().with_ghosts(ghosts([usize::MAX / 4, 9], 2)), Err(DistributionError::TooLarge { .. })));
    let cyclic = Distribution::block_cyclic(&Dim([8, 8]), &[2, 2], 4, None, Order::RowMajor).unwrap();
    assert_eq!(cyclic.with_ghosts(ghosts([1, 1], 2)), Err(DistributionError::GhostsOfManyBlocks));
    let one = plain.clone().with_ghosts(ghosts([1, 1], 2)).unwrap();
    let all = [plain, one.clone(), one.clone().with_ghosts(ghosts([2, 1], 2)).unwrap()];
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate() {
            assert_eq!(a.fingerprint() == b.fingerprint(), i == j);
        }
    }
    let corners = Ghosts { corners: false, ..ghosts([1, 1], 2) };
    assert_ne!(one.clone().with_ghosts(corners).unwrap().fingerprint(), one.fingerprint());
}
