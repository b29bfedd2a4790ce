//! Who owns which part of space.
//!
//! Space is cut along x into columns of equal work, and each column along y into boxes of equal work: as many
//! columns as the most nearly square grid has, one box for each column where the number of ranks is 2, 3 or any prime. Outer
//! boxes reach to infinity, or to the edge of the period. In one dimension each column is one box.
//!
//! Every 50 steps the cuts are placed anew ([`Domain::recut`]), so that ranks stay equally busy while the fluid moves. They are placed by
//! histograms of the work. That along x is summed over all ranks. Those along y, one for each column, would be too much for that: together they
//! are longer than what a rank has. So they are a global array, whose row of a column belongs to the ranks of that column. Each rank adds
//! only where it has particles, reads the row of its own column, and tells all where its box begins.

use global_arrays::prelude::*;
use ndarray::ArrayView1;

use crate::particle::Moving;

/// The part of space of one rank: from `low` up to but without `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Region<const D: usize> {
    pub(crate) low: [f64; D],
    pub(crate) high: [f64; D],
}

impl<const D: usize> Region<D> {
    /// Whether a point is inside the region made wider by `margin` on all sides.
    #[inline(always)]
    pub(crate) fn holds(&self, point: &[f64; D], margin: f64) -> bool {
        (0..D).all(|axis| self.low[axis] - margin <= point[axis] && point[axis] < self.high[axis] + margin)
    }

    /// The region made wider by `margin` on all sides.
    pub(crate) fn wider(&self, margin: f64) -> Self {
        Region { low: self.low.map(|low| low - margin), high: self.high.map(|high| high + margin) }
    }

    /// Replaces the numbers by those of the particles that are not in the region.
    pub(crate) fn numbers_outside(&self, particles: &[impl Moving<D>], numbers: &mut Vec<u32>) {
        numbers.clear();
        let outside = particles.iter().enumerate().filter(|(_, particle)| !self.holds(particle.position(), 0.0));
        numbers.extend(outside.map(|(k, _)| k as u32));
    }

    /// All of space.
    pub(crate) fn everywhere() -> Self {
        Region { low: [f64::NEG_INFINITY; D], high: [f64::INFINITY; D] }
    }

    /// Whether the two regions, the other shifted, come as close as `margin`.
    fn near(&self, other: &Region<D>, shift: &[f64; D], margin: f64) -> bool {
        (0..D).all(|axis| self.near_along(axis, other, shift, margin))
    }

    /// The same along one axis.
    fn near_along(&self, axis: usize, other: &Region<D>, shift: &[f64; D], margin: f64) -> bool {
        self.low[axis] - margin <= other.high[axis] + shift[axis] && other.low[axis] + shift[axis] < self.high[axis] + margin
    }
}

/// Where a neighbor, or a periodic image of it, begins to need what is here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<const D: usize> {
    pub(crate) rank: usize,
    pub(crate) region: Region<D>,
    /// Added to a position here, gives the position there.
    pub(crate) shift: [f64; D],
}

/// Length of the period along each axis that has one.
pub(crate) type Period<const D: usize> = [Option<f64>; D];

/// All regions: column by column, from below. One number for each rank; with thousands of ranks even that is much, so it is kept only while the
/// particles are dealt.
#[derive(Debug, Clone)]
pub(crate) struct Domain<const D: usize> {
    /// Where the columns begin, and the end of the last.
    x: Vec<f64>,
    /// Where the box of each rank begins.
    y: Vec<f64>,
    /// Boxes of a column.
    rows: usize,
    period: Period<D>,
}

/// What a particle costs. One of a wall costs as much as one of fluid: less is summed for it, but its pairs are computed twice.
const WORK: u64 = 1;
const WORK_BESIDE_WALL: u64 = 2;

/// Bins of the histogram that places cuts.
const BINS: usize = 2048;

impl<const D: usize> Domain<D> {
    /// Places the cuts so that all ranks have equal work with the `particles` that they now hold among them. Collective.
    ///
    /// `beside_wall` tells of a position whether a wall is near: it brings as many wall particles as there are of fluid before it.
    pub(crate) fn recut(
        job: &Job,
        period: Period<D>,
        particles: &[impl Moving<D>],
        beside_wall: impl Fn(&[f64; D]) -> bool,
    ) -> Result<Self, Error> {
        let work = |position: &[f64; D]| if beside_wall(position) { WORK_BESIDE_WALL } else { WORK };
        let (columns, rows) = grid::<D>(job.size());
        let mut ends = [f64::INFINITY; 4];
        for particle in particles {
            let (x, y) = (particle.position()[0], up_of(particle.position()));
            let ends_here = [x, -x, y, -y];
            ends.iter_mut().zip(ends_here).for_each(|(end, here)| *end = end.min(here));
        }
        job.all_reduce(&mut ends, ops::min)?;
        let (across, up) = (Axis::new(ends[0], -ends[1]), Axis::new(ends[2], -ends[3]));

        let mut counts = vec![0_u64; BINS];
        particles.iter().for_each(|particle| counts[across.bin(particle.position()[0])] += work(particle.position()));
        job.all_reduce(&mut counts, ops::sum)?;
        let x = outer(across.cuts(&counts, columns), period[0]);

        let y = match rows {
            1 => f64::NEG_INFINITY,
            _ => {
                let counts = column_counts(job, (columns, rows), particles, |particle| {
                    let position = particle.position();
                    let column = x[1..columns].partition_point(|cut| *cut <= position[0]);
                    (column, up.bin(position[1]), work(position))
                })?;
                up.cuts(&counts, rows)[job.rank() % rows]
            }
        };
        let mut y = job.all_gather(&[y])?;
        y.iter_mut().step_by(rows).for_each(|low| *low = beginning(period.get(1).copied().flatten()));
        Ok(Domain { x, y, rows, period })
    }

    /// Numbers that a rank looks at to place the cuts: two histograms.
    pub(crate) const LOOKED_AT: usize = 2 * BINS;

    /// The part of a rank.
    pub(crate) fn region(&self, rank: usize) -> Region<D> {
        let (column, row) = (rank / self.rows, rank % self.rows);
        let mut region = Region::everywhere();
        (region.low[0], region.high[0]) = (self.x[column], self.x[column + 1]);
        if D > 1 {
            region.low[1] = self.y[rank];
            region.high[1] = if row + 1 < self.rows { self.y[rank + 1] } else { end(self.period[1]) };
        }
        region
    }

    /// The rank in whose region a position is; none for what is no position.
    pub(crate) fn owner(&self, position: &[f64; D]) -> Option<usize> {
        let column = last(self.columns(), |column| self.x[column] <= position[0]);
        let row = last(self.rows, |row| self.y[column * self.rows + row] <= up_of(position));
        let rank = column * self.rows + row;
        self.region(rank).holds(position, 0.0).then_some(rank)
    }

    fn columns(&self) -> usize {
        self.y.len() / self.rows
    }

    /// The regions and images of regions that come as close as `margin` to the region of `rank`, without that region itself. The
    /// relation is symmetric: each rank of them finds `rank` too.
    pub(crate) fn reach(&self, rank: usize, margin: f64) -> Vec<Reach<D>> {
        let mut shifts = vec![[0.0; D]];
        for axis in 0..D {
            if let Some(length) = self.period[axis] {
                let so_far = shifts.clone();
                for image in [-length, length] {
                    shifts.extend(so_far.iter().map(|shift| {
                        let mut shift = *shift;
                        shift[axis] = image;
                        shift
                    }));
                }
            }
        }
        let (mine, mut reach) = (self.region(rank), Vec::new());
        for column in 0..self.columns() {
            let first = column * self.rows;
            let shifts = shifts.iter().filter(|shift| self.region(first).near_along(0, &mine, shift, margin));
            let shifts: Vec<_> = shifts.collect();
            if shifts.is_empty() {
                continue;
            }
            for other in first..first + self.rows {
                let region = self.region(other);
                for &&shift in &shifts {
                    let itself = other == rank && shift.iter().all(|&s| s == 0.0);
                    if !itself && region.near(&mine, &shift, margin) {
                        reach.push(Reach { rank: other, region, shift });
                    }
                }
            }
        }
        reach
    }
}

/// The histogram along y of this rank's column: of all particles in it, whoever has them. `place` tells of a particle its column, its bin and
/// its work. Collective.
fn column_counts<const D: usize, P: Moving<D>>(
    job: &Job,
    (columns, rows): (usize, usize),
    particles: &[P],
    place: impl Fn(&P) -> (usize, usize, u64),
) -> Result<Vec<u64>, Error> {
    let all =
        GlobalArray::<u64, Ix2>::builder(job, [columns, BINS]).grid([columns, rows]).name("work in columns").zeros().create()?;
    // Of each column only the stretch of bins where there are particles: of none, an empty one.
    let (first, none) = (BINS, 0);
    let mut stretches = vec![first..none; columns];
    for particle in particles {
        let (column, bin, _) = place(particle);
        let stretch = &mut stretches[column];
        *stretch = stretch.start.min(bin)..stretch.end.max(bin + 1);
    }
    let mut counts: Vec<Vec<u64>> = stretches.iter().map(|stretch| vec![0; stretch.len()]).collect();
    for particle in particles {
        let (column, bin, work) = place(particle);
        counts[column][bin - stretches[column].start] += work;
    }
    // Each begins with another column, those of its own place first, so that not all meet at one.
    let me = job.rank() / rows;
    for column in (me..columns).chain(0..me).filter(|&column| !counts[column].is_empty()) {
        all.accumulate(s![column, stretches[column].clone()], 1, ArrayView1::from(&counts[column]))?;
    }
    job.sync()?;
    Ok(all.get(s![me, ..])?.to_vec())
}

/// y, or zero in one dimension.
#[inline(always)]
fn up_of<const D: usize>(position: &[f64; D]) -> f64 {
    position.get(1).copied().unwrap_or(0.0)
}

/// Where outer boxes begin and end.
fn beginning(period: Option<f64>) -> f64 {
    period.map_or(f64::NEG_INFINITY, |_| 0.0)
}

fn end(period: Option<f64>) -> f64 {
    period.unwrap_or(f64::INFINITY)
}

/// The position inside the period.
#[inline(always)]
pub(crate) fn wrap<const D: usize>(period: &Period<D>, position: &mut [f64; D]) {
    for (x, period) in position.iter_mut().zip(period) {
        let Some(length) = *period else { continue };
        if *x < 0.0 {
            // What rounds up to the end of the period belongs to its beginning.
            *x = if *x + length < length { *x + length } else { 0.0 };
        } else if *x >= length {
            *x -= length;
        }
    }
}

/// The last of `count` for which `is_before` holds, which holds up to some one; the first if for none.
fn last(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.saturating_sub(1)
}

/// Columns and rows of boxes.
fn grid<const D: usize>(ranks: usize) -> (usize, usize) {
    if D < 2 {
        return (ranks, 1);
    }
    let rows = (1..=ranks).take_while(|rows| rows * rows <= ranks).filter(|rows| ranks.is_multiple_of(*rows)).last().unwrap_or(1);
    (ranks / rows, rows)
}

/// Replaces the ends of cuts by what lies beyond them.
fn outer(mut cuts: Vec<f64>, period: Option<f64>) -> Vec<f64> {
    let last = cuts.len() - 1;
    (cuts[0], cuts[last]) = (beginning(period), end(period));
    cuts
}

/// A stretch in bins.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f64,
    bin: f64,
}

impl Axis {
    fn new(low: f64, high: f64) -> Self {
        if low < high { Axis { low, bin: (high - low) / BINS as f64 } } else { Axis { low: 0.0, bin: 1.0 } }
    }

    fn bin(&self, at: f64) -> usize {
        (((at - self.low) / self.bin) as usize).min(BINS - 1)
    }

    /// Ends of `parts` parts with equal counts; inside a bin, particles are taken to lie evenly.
    fn cuts(&self, counts: &[u64], parts: usize) -> Vec<f64> {
        let total: u64 = counts.iter().sum();
        let mut cuts = vec![self.low];
        let (mut bin, mut before) = (0, 0);
        for part in 1..parts {
            let wanted = total as f64 * part as f64 / parts as f64;
            while bin + 1 < BINS && (before + counts[bin]) as f64 <= wanted {
                before += counts[bin];
                bin += 1;
            }
            let inside = if counts[bin] > 0 { (wanted - before as f64) / counts[bin] as f64 } else { 0.0 };
            cuts.push(self.low + (bin as f64 + inside.clamp(0.0, 1.0)) * self.bin);
        }
        cuts.push(self.low + BINS as f64 * self.bin);
        cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::particle::Particle;

    #[test]
    fn grids() {
        assert_eq!([1, 2, 3, 4, 6, 7, 8, 12].map(grid::<2>), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (7, 1), (4, 2), (4, 3)]);
        assert_eq!([1, 4, 7].map(grid::<1>), [(1, 1), (4, 1), (7, 1)]);
    }

    #[test]
    fn cuts_halve_the_counts() {
        let axis = Axis::new(0.0, BINS as f64);
        let mut counts = vec![0; BINS];
        (counts[10], counts[20]) = (30, 10);
        let cuts = axis.cuts(&counts, 2);
        approx::assert_relative_eq!(cuts[1], 10.0 + 20.0 / 30.0);
        // Ranks that get nothing: cuts still ascend.
        assert!(axis.cuts(&vec![0; BINS], 7).is_sorted());
    }

    #[test]
    fn boxes_hold_equal_work_wherever_the_particles_are() {
        // Twelve ranks: four columns of three. The particles of the unit square are dealt in rows, so no rank has what it will own.
        let regions = Launch::new().ranks(12).network("threads").run(|job| {
            let particle = |id: usize| Particle {
                position: [(id % 24) as f64 + 0.5, (id / 24) as f64 + 0.5].map(|x| x / 24.0),
                velocity: [0.0; 2],
                density: 1.0,
                acceleration: [0.0; 2],
                rate: 0.0,
                carried: [0.0; 2],
                id: id as u32,
            };
            let particles: Vec<Particle<2>> = (48 * job.rank()..48 * (job.rank() + 1)).map(particle).collect();
            let domain = Domain::recut(job, [None, Some(1.0)], &particles, |_| false)?;
            let all: Vec<Particle<2>> = (0..24 * 24).map(particle).collect();
            for rank in 0..12 {
                let region = domain.region(rank);
                let held: Vec<_> = all.iter().filter(|particle| region.holds(&particle.position, 0.0)).collect();
                assert_eq!(held.len(), 48, "{region:?}");
                assert!(held.iter().all(|particle| domain.owner(&particle.position) == Some(rank)));
            }
            Ok::<_, Error>(())
        });
        regions.unwrap();
    }

    #[test]
    fn reach_is_symmetric_and_sees_images() {
        let period = [Some(10.0), None];
        let domain = Domain { x: vec![0.0, 1.0, 9.0, 10.0], y: vec![f64::NEG_INFINITY; 3], rows: 1, period };
        let seen = |rank| domain.reach(rank, 0.5).iter().map(|reach| (reach.rank, reach.shift[0])).collect::<Vec<_>>();
        assert_eq!(seen(0), [(1, 0.0), (2, 10.0)]);
        assert_eq!(seen(1), [(0, 0.0), (2, 0.0)]);
        assert_eq!(seen(2), [(0, -10.0), (1, 0.0)]);
        assert_eq!([0.0, 0.5, 1.0, 9.5].map(|x| domain.owner(&[x, 7.0])), [Some(0), Some(0), Some(1), Some(2)]);
        assert_eq!([-1.0, 10.0, f64::NAN].map(|x| domain.owner(&[x, 7.0])), [None; 3]);
        let mut at = [-1e-30, 3.0];
        wrap(&period, &mut at);
        assert_eq!(at, [0.0, 3.0]);
    }
}
