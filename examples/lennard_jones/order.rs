//! The order in which atoms are kept: neighbours in the order are neighbours in space.
//!
//! The box is halved across its longest edge so that each half has its share of the atoms, the halves are halved again, and so
//! on down to clusters of eight. Each block, each group of eight clusters and each cluster is then a compact box of its own.
//! Cuts fall between whole blocks as long as there are several, then between whole groups, then between clusters.
//!
//! Every rank makes the same cuts, but follows them down only to the atoms that it will own: above, work is shared by none; the
//! levels below, most of the work, are.
//!
//! # Source
//! J. L. Bentley, *Multidimensional binary search trees used for associative searching*, Communications of the ACM 18 (1975).

use std::ops::Range;

use crate::cluster::WIDTH;

/// An atom to be ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// Inside the box.
    pub(crate) at: [f64; 3],
    /// Its place so far.
    pub(crate) place: u32,
}

/// Orders `points`, all atoms of a box with edges `lengths` and a corner at 0, in blocks of `block` atoms. Only those that come
/// to lie in `wanted` are surely at their places afterwards.
pub(crate) fn order(points: &mut [Point], lengths: [f64; 3], block: usize, wanted: &Range<usize>) {
    let units = [block, WIDTH * WIDTH, WIDTH];
    halve(points, 0, ([0.0; 3], lengths), &units, wanted);
}

fn halve(points: &mut [Point], start: usize, (low, high): ([f64; 3], [f64; 3]), mut units: &[usize], wanted: &Range<usize>) {
    while let Some((unit, smaller)) = units.split_first()
        && points.len() <= *unit
    {
        units = smaller;
    }
    let Some(unit) = units.first() else { return };
    if start >= wanted.end || start + points.len() <= wanted.start {
        return;
    }
    let left = points.len().div_ceil(*unit).div_ceil(2) * unit;
    let axis = (1..3).fold(0, |longest, d| if high[d] - low[d] > high[longest] - low[longest] { d } else { longest });
    // Ties are told apart by the place, so that the order depends on nothing else.
    let key = |a: &Point, b: &Point| a.at[axis].total_cmp(&b.at[axis]).then(a.place.cmp(&b.place));
    let (_, middle, _) = points.select_nth_unstable_by(left, key);
    let cut = middle.at[axis];
    let (mut middle_low, mut middle_high) = (low, high);
    middle_high[axis] = cut;
    middle_low[axis] = cut;
    let (first, second) = points.split_at_mut(left);
    halve(first, start, (low, middle_high), units, wanted);
    halve(second, start + left, (middle_low, high), units, wanted);
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    fn random(atoms: usize) -> Vec<Point> {
        let mut random = Pcg64::seed_from_u64(5);
        (0..atoms as u32).map(|place| Point { at: std::array::from_fn(|_| random.random_range(0.0..7.0)), place }).collect()
    }

    #[test]
    fn each_rank_finds_its_part_of_the_one_order() {
        for atoms in [1, 7, 8, 9, 64, 200, 999] {
            let mut whole = random(atoms);
            order(&mut whole, [7.0; 3], 128, &(0..atoms));
            let mut places: Vec<u32> = whole.iter().map(|point| point.place).collect();
            for cut in [0, atoms / 3, atoms] {
                for wanted in [0..cut, cut..atoms] {
                    let mut part = random(atoms);
                    order(&mut part, [7.0; 3], 128, &wanted);
                    let sorted = |points: &[Point]| {
                        let mut places: Vec<u32> = points.iter().map(|point| point.place).collect();
                        places.sort_unstable();
                        places
                    };
                    for cluster in (wanted.start.div_ceil(8) * 8..wanted.end).step_by(8).take_while(|c| c + 8 <= wanted.end) {
                        assert_eq!(sorted(&part[cluster..cluster + 8]), sorted(&whole[cluster..cluster + 8]));
                    }
                }
            }
            places.sort_unstable();
            assert!(places.into_iter().eq(0..atoms as u32));
        }
    }

    #[test]
    fn clusters_are_compact() {
        let mut points = random(4096);
        order(&mut points, [7.0; 3], 512, &(0..4096));
        // Eight of 4096 atoms fill a cube of 7/8; a random eight would span the box.
        let edge = |cluster: &[Point], d: usize| {
            let (low, high) = cluster.iter().fold((9.0, -9.0), |(l, h): (f64, f64), p| (l.min(p.at[d]), h.max(p.at[d])));
            high - low
        };
        assert!(points.chunks(8).all(|cluster| (0..3).all(|d| edge(cluster, d) < 1.75)));
    }
}
