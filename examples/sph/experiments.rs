//! The fronts that were measured, and whether a computed one is among them.
//!
//! Both experiments let a column of water twice as high as wide collapse: Martin & Moyce (1952), a = 2¼ in, and Koshizuka & Oka
//! (1996), a = 14.6 cm. In T = t √(2g/a) and Z = x/a they tell of one flow. They differ from each other by up to 15 %, since the gate takes its time
//! and the front is thin; computed fronts run ahead of both, as in the published SPH codes.

use crate::observation::greater;

/// A table of T and Z.
pub(crate) type Curve = Vec<(f64, f64)>;

/// What a measured point may be off by.
const SCATTER: f64 = 0.05;

/// What a computed front may be ahead by once it runs.
const AHEAD: f64 = 0.15;

/// T from which the front runs: before, the column has hardly spread.
const RUNNING: f64 = 1.0;

/// Martin & Moyce (1952), fig. 3, n² = 2, a = 1.125 in.
pub(crate) fn martin_moyce() -> Curve {
    curve(include_str!("data/martin_moyce.csv"))
}

/// Koshizuka & Oka (1996).
pub(crate) fn koshizuka_oka() -> Curve {
    curve(include_str!("data/koshizuka_oka.csv"))
}

/// How a computed front compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Comparison {
    /// Measured times that the run has reached.
    pub(crate) points: usize,
    /// The largest excess over the fastest experiment, relative; below zero if always behind it.
    pub(crate) ahead: f64,
    /// The largest lag behind the slowest.
    pub(crate) behind: f64,
    /// Whether all are inside the envelope.
    pub(crate) inside: bool,
}

/// Compares a front at all times at which one was measured, up to Z = `end`, where the tank ends.
pub(crate) fn compare(front: &Curve, end: f64) -> Comparison {
    let measured = [martin_moyce(), koshizuka_oka()];
    let mut result = Comparison { points: 0, ahead: f64::NEG_INFINITY, behind: f64::NEG_INFINITY, inside: true };
    for &(time, _) in measured.iter().flatten() {
        let there = measured.iter().filter_map(|curve| at(curve, time));
        let (low, high) = there.fold((f64::INFINITY, 0.0_f64), |(low, high), z| (low.min(z), high.max(z)));
        // A front that is nowhere, or infinitely far, is compared and fails.
        let Some(z) = at(front, time).filter(|&z| !(z.is_finite() && z >= end)) else { continue };
        let (ahead, behind) = (z / high - 1.0, 1.0 - z / low);
        result.points += 1;
        result.ahead = greater(result.ahead, ahead);
        result.behind = greater(result.behind, behind);
        result.inside &= behind <= SCATTER && ahead <= if time < RUNNING { SCATTER } else { AHEAD };
    }
    result
}

/// The value at a time inside the curve, linear between its points.
fn at(curve: &Curve, time: f64) -> Option<f64> {
    let after = curve.partition_point(|point| point.0 < time);
    let &(t1, z1) = curve.get(after)?;
    if t1 == time {
        return Some(z1);
    }
    let &(t0, z0) = curve.get(after.checked_sub(1)?)?;
    Some(z0 + (z1 - z0) * (time - t0) / (t1 - t0))
}

fn curve(text: &str) -> Curve {
    rows(text, 2).iter().map(|row| (row[0], row[1])).collect()
}

/// The numbers of a table that is part of the program; lines that are none are its head.
pub(crate) fn rows(text: &str, columns: usize) -> Vec<Vec<f64>> {
    let numbers = |line: &str| line.split(',').map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>();
    text.lines().filter_map(numbers).filter(|row| row.len() == columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One experiment until the other sets in, times something.
    fn scaled(by: impl Fn(f64) -> f64) -> Curve {
        let early = koshizuka_oka().into_iter().take_while(|point| point.0 < 0.8);
        early.chain(martin_moyce()).map(|(t, z)| (t, z * by(t))).collect()
    }

    #[test]
    fn tables_are_whole() {
        assert_eq!((martin_moyce().len(), koshizuka_oka().len()), (10, 9));
        assert_eq!(koshizuka_oka()[0], (0.0, 1.0));
    }

    #[test]
    fn experiments_are_inside_their_own_envelope() {
        let whole = compare(&martin_moyce(), 9.0);
        // Where the other experiment does not reach the first and the last points are compared as well.
        assert!(whole.points >= 15 && whole.ahead <= 0.0);
        assert_eq!(compare(&koshizuka_oka(), 9.0).behind, 0.0);
    }

    #[test]
    fn fronts_outside_fail() {
        assert!(compare(&scaled(|_| 1.0), 9.0).inside);
        assert!(!compare(&scaled(|t| if t > 4.0 { 1.25 } else { 1.0 }), 9.0).inside, "too fast in the end");
        assert!(!compare(&scaled(|t| if t < 0.8 { 1.15 } else { 1.0 }), 9.0).inside, "too fast in the beginning");
        assert!(!compare(&scaled(|_| 0.8), 9.0).inside, "too slow");
        assert!(compare(&scaled(|t| if t > 4.0 { 1.25 } else { 1.0 }), 4.0).inside, "beyond the end of the tank");
        for nowhere in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!compare(&scaled(|t| if t > 2.0 { nowhere } else { 1.0 }), 9.0).inside, "{nowhere}");
        }
        assert!(compare(&scaled(|t| if t > 2.0 && t < 2.5 { f64::NAN } else { 1.0 }), 9.0).ahead.is_nan());
    }
}
