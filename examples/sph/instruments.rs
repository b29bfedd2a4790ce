//! What an experiment measures: water levels along upright wires, and pressures at points of a wall.
//!
//! A gauge at x tells how high water stands there: up to where, for the last time from below, half of a layer as high as a spacing is
//! filled. Layers are two spacings wide to each side, where a hat function weighs what is in them, and end at the walls. So single
//! particles that fly above the water do not count. Over an obstacle a layer counts as if all of it were free.
//!
//! A probe is a disc on a wall across the flow, and tells the mean over it of the pressure that a particle of a wall at this place would
//! have (see [`crate::walls`]): Σ (p_f + ρ_f g·(r − r_f)) W / Σ W over the fluid f around, at least zero.
//!
//! All sums are of integers, so they do not depend on the number of ranks.

use global_arrays::prelude::*;

use crate::case::Case;
use crate::particle::Particle;

/// A disc on a wall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Probe<const D: usize> {
    /// The middle of the disc, in meters.
    pub(crate) center: [f64; D],
    /// In meters.
    pub(crate) diameter: f64,
}

/// All instruments of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Instruments<const D: usize> {
    /// x of each gauge, in meters.
    pub(crate) gauges: Vec<f64>,
    pub(crate) probes: Vec<Probe<D>>,
}

/// One, in the integers that are summed.
const UNIT: f64 = (1_u64 << 36) as f64;

/// Points along the upright diameter of a probe.
const POINTS: usize = 9;

impl<const D: usize> Probe<D> {
    /// Points on the upright diameter, with the share of the disc that each stands for.
    fn points(&self) -> impl Iterator<Item = ([f64; D], f64)> {
        let height = |k: usize| (2 * k + 1) as f64 / POINTS as f64 - 1.0;
        let chord = move |k: usize| (1.0 - height(k).powi(2)).sqrt();
        let all: f64 = (0..POINTS).map(chord).sum();
        let (center, diameter) = (self.center, self.diameter);
        (0..POINTS).map(move |k| {
            let mut point = center;
            point[1] += 0.5 * diameter * height(k);
            (point, chord(k) / all)
        })
    }
}

impl<const D: usize> Instruments<D> {
    /// What each is called in a table: what it reads and where, in meters.
    pub(crate) fn names(&self) -> Vec<String> {
        let place = |point: &[f64]| point.iter().map(|x| format!("{}", (1e6 * x).round() / 1e6)).collect::<Vec<_>>().join("_");
        let levels = self.gauges.iter().map(|&gauge| format!("level_{}", place(&[gauge])));
        levels.chain(self.probes.iter().map(|probe| format!("pressure_{}", place(&probe.center)))).collect()
    }

    /// Levels in meters, then pressures in pascals. Collective.
    pub(crate) fn read(&self, job: &Job, case: &Case<D>, own: &[Particle<D>]) -> Result<Vec<f64>, Error> {
        let points: Vec<_> = self.probes.iter().flat_map(Probe::points).collect();
        let bins = case.inside[1];
        let mut sums = vec![0_i64; bins * self.gauges.len() + 2 * points.len()];
        let (columns, pressures) = sums.split_at_mut(bins * self.gauges.len());
        for particle in own {
            for (column, gauge) in columns.chunks_exact_mut(bins).zip(&self.gauges) {
                let share = hat(case, particle.position[0] - gauge);
                if share > 0.0 {
                    fill(column, particle.position[1] / case.fluid.spacing, share);
                }
            }
            for (sum, (point, _)) in pressures.chunks_exact_mut(2).zip(&points) {
                let [weight, pressure] = seen(case, particle, point);
                sum[0] += (weight * UNIT) as i64;
                sum[1] += (pressure * UNIT) as i64;
            }
        }
        job.all_reduce(&mut sums, |a: i64, b| a.wrapping_add(b))?;
        let (columns, pressures) = sums.split_at(bins * self.gauges.len());
        let spacing = case.fluid.spacing;
        // A bin is full with so many particles.
        let full = |gauge| area(case, gauge) / spacing.powi(D as i32 - 1);
        let levels = columns.chunks_exact(bins).zip(&self.gauges).map(|(column, &gauge)| spacing * level(column, full(gauge)));
        let pressure = |sum: &[i64]| if sum[0] > 0 { (sum[1] as f64 / sum[0] as f64).max(0.0) * scale(case) } else { 0.0 };
        let at_points: Vec<f64> = pressures.chunks_exact(2).zip(&points).map(|(sum, (_, share))| share * pressure(sum)).collect();
        Ok(levels.chain(at_points.chunks_exact(POINTS).map(|disc| disc.iter().sum())).collect())
    }
}

/// Half the width of a gauge, in spacings.
const GAUGE: f64 = 2.0;

/// The hat function of a gauge: one in the middle.
fn hat<const D: usize>(case: &Case<D>, distance: f64) -> f64 {
    (1.0 - distance.abs() / (GAUGE * case.fluid.spacing)).max(0.0)
}

/// Adds a particle at `y` spacings above the bed to the two bins that it is between.
fn fill(column: &mut [i64], y: f64, share: f64) {
    let above = (y - 0.5).clamp(0.0, (column.len() - 1) as f64);
    let (bin, part) = (above as usize, above.fract());
    column[bin] += (share * (1.0 - part) * UNIT) as i64;
    if let Some(next) = column.get_mut(bin + 1) {
        *next += (share * part * UNIT) as i64;
    }
}

/// How high water stands, in bins: up to where for the last time a bin is half full.
fn level(column: &[i64], full: f64) -> f64 {
    let filled = |bin: usize| column.get(bin).map_or(0.0, |&sum| sum as f64 / UNIT / full);
    match column.iter().rposition(|&sum| sum as f64 / UNIT >= 0.5 * full) {
        // Linear between the middles of this bin and the next.
        Some(bin) => bin as f64 + 0.5 + (filled(bin) - 0.5) / (filled(bin) - filled(bin + 1)),
        // Less than a bin: what there is.
        None => filled(0).min(0.5),
    }
}

/// The bed that a gauge stands on: in a plane a length, else an area.
fn area<const D: usize>(case: &Case<D>, gauge: f64) -> f64 {
    let reach = GAUGE * case.fluid.spacing;
    // What of a side of the hat is inside, over half its width.
    let side = |room: f64| 1.0 - (1.0 - room / reach).clamp(0.0, 1.0).powi(2);
    let length = 0.5 * reach * (side(gauge) + side(case.length(0) - gauge));
    length * (2..D).map(|axis| case.length(axis)).product::<f64>()
}

/// What pressures are relative to in sums.
fn scale<const D: usize>(case: &Case<D>) -> f64 {
    case.fluid.density * case.fluid.sound * case.fluid.sound
}

/// The weight of a particle at a point, up to a factor, and the weight times the pressure there.
fn seen<const D: usize>(case: &Case<D>, particle: &Particle<D>, point: &[f64; D]) -> [f64; 2] {
    let fluid = &case.fluid;
    let apart: [f64; D] = std::array::from_fn(|axis| point[axis] - particle.position[axis]);
    let square: f64 = apart.iter().map(|x| x * x).sum();
    let w = 1.0 - 0.5 * square.sqrt() / fluid.smoothing();
    if w <= 0.0 {
        return [0.0; 2];
    }
    let weight = w.powi(4) * (5.0 - 4.0 * w);
    let head: f64 = (0..D).map(|axis| particle.density * fluid.gravity[axis] * apart[axis]).sum();
    [weight, weight * (fluid.pressure(particle.density) + head) / scale(case)]
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::case::{Column, Kind, Water};
    use crate::simulation::Simulation;

    /// What instruments read in a column at rest on some ranks.
    fn read<const D: usize>(extent: [f64; D], tank: [f64; D], instruments: &Instruments<D>, ranks: usize) -> Vec<f64> {
        let column = Column { extent, tank, gate: None, obstacles: Vec::new() };
        let case = Case::column(Kind::DamBreak, 0.05, column, Water::default());
        let seen = Mutex::new(Vec::new());
        let body = |job: &Job| {
            let simulation = Simulation::new(job, &case, 1e-4)?;
            let read = instruments.read(job, &case, simulation.own())?;
            if job.rank() == 0 {
                *seen.lock().unwrap() = read;
            }
            Ok::<(), Error>(())
        };
        Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        seen.into_inner().unwrap()
    }

    #[test]
    fn water_at_rest() {
        let probe = |y: f64, diameter: f64| Probe { center: [0.0, y], diameter };
        let probes = vec![probe(0.2, 0.0), probe(0.5, 0.1), probe(1.5, 0.0)];
        let instruments = Instruments { gauges: vec![0.0, 0.33, 0.5, 0.9], probes };
        let seen = read([0.6, 1.0], [1.0, 2.0], &instruments, 1);
        // Beside the column's edge there is half of what there is in it.
        for (level, expected) in seen[..4].iter().zip([1.0, 1.0, 1.0, 0.0]) {
            approx::assert_abs_diff_eq!(*level, expected, epsilon = 1e-3);
        }
        for (pressure, depth) in seen[4..].iter().zip([0.8, 0.5, 0.0]) {
            approx::assert_relative_eq!(*pressure, 1000.0 * 9.81 * depth, max_relative = 2e-3);
        }
        for ranks in [2, 3, 7] {
            assert!(read([0.6, 1.0], [1.0, 2.0], &instruments, ranks) == seen, "{ranks} ranks");
        }
        assert_eq!(instruments.names()[1], "level_0.33");
        assert_eq!(instruments.names()[5], "pressure_0_0.5");
    }

    #[test]
    fn water_at_rest_in_space() {
        let instruments = Instruments { gauges: vec![0.3], probes: vec![Probe { center: [0.0, 0.25, 0.2], diameter: 0.05 }] };
        let seen = read([0.6, 0.5, 0.4], [1.0, 1.0, 0.4], &instruments, 2);
        approx::assert_abs_diff_eq!(seen[0], 0.5, epsilon = 1e-3);
        approx::assert_relative_eq!(seen[1], 1000.0 * 9.81 * 0.25, max_relative = 5e-3);
    }
}
