//! The discrete equations of one time step, and their exact Jacobian.
//!
//! ```text
//! F_n(ψ) = V_n·(θ(ψ_n) − θ_n^old)/Δt − Σ over faces: Q_f(ψ) − W_n = 0
//! Q_f    = T_f·k_r(ψ_up)·Φ,   Φ = (ψ + z) across the face,   T_f = A / (d_1/K_1 + d_2/K_2)
//! ```
//!
//! Finite volumes, backward Euler. Q_f is what flows in through a face, from the cell with the higher total head: the relative
//! permeability is that of the side where the water comes from (upstream weighting, as STOMP and Amanzi do: monotone, and first
//! order in the spacing) or the mean of both sides ([`FacePermeability`]), the saturated conductivities are combined as
//! resistances in series. The water content itself is differenced in time, not capacity times head, so that water is
//! conserved whatever the step (Celia, Bouloutas & Zarba 1990).
//!
//! What leaves a cell through a face enters its neighbor with the same bits, also between ranks: both sides compute the face from
//! the same heads. [`Sums::storage_gain`] and [`Sums::inflow`] are added up without the faces inside, so that they check it.

use crate::field::Layout;
use crate::forcing::{Edge, EdgeKind, Forcing};
use crate::matrix::SevenPoint;
use crate::medium::{Medium, State};
use crate::problem::{FacePermeability, Problem};

/// This rank's share of what is summed over the grid; flows in m³/s.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    /// Σ |F|: what the equations of the cells fail by.
    pub(crate) residual: f64,
    /// Rate at which the water in storage grows.
    pub(crate) storage_gain: f64,
    /// What flows in over the edges and from wells, less what flows out.
    pub(crate) inflow: f64,
    /// Σ of all magnitudes of water moved into or out of storage, over the edges, by wells.
    pub(crate) throughput: f64,
    /// Σ of the magnitudes of the terms that the equations of the cells add up: it bounds their rounding errors.
    pub(crate) terms: f64,
}

/// A step in which a pressure head is higher than this has failed [m]. No ground comes near it. In closed ground that is full and
/// has no specific storage, heads would rise without bound.
const HIGHEST: f64 = 1e6;

/// Rounding errors of Σ |F|, for each unit of [`Sums::terms`]: a cell adds some ten terms, each a product of rounded numbers.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

impl Sums {
    pub(crate) fn to_array(self) -> [f64; 5] {
        [self.residual, self.storage_gain, self.inflow, self.throughput, self.terms]
    }

    /// What errors are compared with: the water that moved. Where hardly any did, `tolerance` of it is less than the rounding
    /// errors, and then it is what makes them `tolerance`.
    pub(crate) fn scale(&self, tolerance: f64) -> f64 {
        self.throughput.max(ROUNDING * self.terms / tolerance)
    }

    /// Whether the equations hold within `tolerance` of their scale. Where that has overflowed, ∞ ≤ ∞ says nothing: they do not.
    pub(crate) fn hold(&self, tolerance: f64) -> bool {
        self.to_array().iter().all(|sum| sum.is_finite()) && self.residual <= tolerance * self.scale(tolerance)
    }

    /// Error of the water balance, as a fraction of the scale. The sum that it comes from has rounding errors of its own.
    pub(crate) fn balance(&self, tolerance: f64) -> f64 {
        let scale = self.throughput.max(2.0 * ROUNDING * self.terms / tolerance);
        (self.storage_gain - self.inflow).abs() / scale.max(f64::MIN_POSITIVE)
    }

    pub(crate) fn from_array([residual, storage_gain, inflow, throughput, terms]: [f64; 5]) -> Sums {
        Sums { residual, storage_gain, inflow, throughput, terms }
    }
}

/// The equations of this rank's cells. Vectors are bordered arrays.
#[derive(Debug)]
pub(crate) struct System {
    layout: Layout,
    media: Vec<Medium>,
    volumes: Vec<f64>,
    forcing: Forcing,
    /// `conductances[a][n]`: T_f of the face between cell n and the one behind it along axis a; zero where there is none.
    conductances: [Vec<f64>; 3],
    /// Height of cell n + stride over cell n across axis 0, zero without weight.
    rises: Vec<f64>,
    face_permeability: FacePermeability,
    states: Vec<State>,
    flops_of_media: f64,
    /// Magnitudes of the terms of each cell's equation.
    terms: Vec<f64>,
    /// θ at the beginning of the step.
    before: Vec<f64>,
}

impl System {
    pub(crate) fn new(problem: &dyn Problem, layout: &Layout) -> System {
        let grid = problem.grid();
        let field = || vec![0.0; layout.len()];
        // No cell: what is never seen. Any medium would do.
        let mut media = vec![Medium::Confined { specific_storage: 0.0 }; layout.len()];
        let (mut volumes, mut rises) = (field(), field());
        let mut conductances = [field(), field(), field()];
        // Resistance of the half cell from its middle to a face across `axis`, for each unit of area.
        let half = |axis: usize, cell: [usize; 3]| 0.5 * grid.axes[axis].width(cell[axis]) / problem.conductivity(axis, cell);
        let weight = f64::from(u8::from(problem.weight()));
        for (cell, n) in layout.cells() {
            media[n] = problem.medium(cell);
            volumes[n] = grid.volume(cell);
            for axis in 0..3 {
                let stride = layout.strides[axis];
                let area = grid.area(axis, cell);
                for upper in [false, true] {
                    let at_edge = cell[axis] == if upper { layout.extents[axis] - 1 } else { 0 };
                    if at_edge {
                        continue;
                    }
                    let mut neighbor = cell;
                    neighbor[axis] = if upper { cell[axis] + 1 } else { cell[axis] - 1 };
                    let (first, m) = if upper { (n, n + stride) } else { (n - stride, n - stride) };
                    // The lower cell's resistance first on both sides of a cut, for the same bits.
                    let (low, high) = if upper { (cell, neighbor) } else { (neighbor, cell) };
                    conductances[axis][first] = area / (half(axis, low) + half(axis, high));
                    media[m] = problem.medium(neighbor);
                    if axis == 0 {
                        let (low, high) = (cell[0].min(neighbor[0]), cell[0].max(neighbor[0]));
                        rises[first] = weight * (grid.axes[0].centre(high) - grid.axes[0].centre(low));
                    }
                }
            }
        }
        let states = vec![State::default(); layout.len()];
        let flops: usize = layout.cells().map(|(_, n)| media[n].flops()).sum();
        let flops_of_media = flops as f64 / layout.cells().count().max(1) as f64;
        let (layout, before, terms) = (layout.clone(), field(), field());
        let forcing = Forcing::new(problem, &layout, 0.0);
        let face_permeability = problem.face_permeability();
        System { layout, media, volumes, forcing, conductances, rises, face_permeability, states, flops_of_media, terms, before }
    }

    /// From now on steps begin at `time` or later, until the next change.
    pub(crate) fn force(&mut self, problem: &dyn Problem, time: f64) {
        self.forcing = Forcing::new(problem, &self.layout, time);
    }

    /// Operations for the state of a cell, on average.
    pub(crate) fn flops_of_media(&self) -> f64 {
        self.flops_of_media
    }

    /// Remembers the water content at `head` as that of the beginning of a step.
    pub(crate) fn begin(&mut self, head: &[f64]) {
        for row in self.layout.rows() {
            for n in row {
                self.before[n] = self.media[n].at(head[n]).content;
            }
        }
    }

    /// F at `head`, whose border is filled, for a step of `dt` seconds; and what it sums to on this rank.
    pub(crate) fn residual(&mut self, head: &[f64], dt: f64, residual: &mut [f64]) -> Sums {
        let mut sums = Sums::default();
        self.states.iter_mut().zip(&self.media).zip(head).for_each(|((state, medium), &head)| *state = medium.at(head));
        residual.fill(0.0);
        let mut terms = std::mem::take(&mut self.terms);
        terms.fill(0.0);
        for row in self.layout.rows() {
            for n in row {
                let gain = self.volumes[n] * (self.states[n].content - self.before[n]) / dt;
                residual[n] = gain - self.forcing.sources[n];
                let stored = self.states[n].content.abs() + self.before[n].abs();
                terms[n] = self.volumes[n] * stored / dt + self.forcing.sources[n].abs();
                sums.storage_gain += gain;
                sums.inflow += self.forcing.sources[n];
                sums.throughput += gain.abs() + self.forcing.sources[n].abs();
            }
        }
        self.each_face(|axis, n, m| {
            let (flow, by_n, by_m) = self.flow(axis, n, m, head);
            residual[n] -= flow;
            residual[m] += flow;
            let rise = if axis == 0 { self.rises[n] } else { 0.0 };
            // The slopes say what a rounded head does to the flow, by way of the potential and of the permeability.
            let term = by_n.abs().max(by_m.abs()) * (head[n].abs() + head[m].abs() + rise);
            terms[n] += term;
            terms[m] += term;
        });
        for &Edge { n, kind } in &self.forcing.edges {
            let (flow, slope) = self.edge_flow(n, kind, head);
            residual[n] -= flow;
            sums.inflow += flow;
            sums.throughput += flow.abs();
            terms[n] += flow.abs() + slope.abs() * (head[n].abs() + kind.magnitude());
        }
        let too_high = self.layout.rows().any(|row| head[row].iter().any(|&head| head > HIGHEST));
        sums.residual = if too_high { f64::INFINITY } else { self.layout.magnitude(residual) };
        sums.terms = self.layout.magnitude(&terms);
        self.terms = terms;
        sums
    }

    /// ∂F/∂ψ at the head of the last [`residual`](Self::residual).
    pub(crate) fn jacobian(&self, head: &[f64], dt: f64, jacobian: &mut SevenPoint) {
        jacobian.clear();
        for row in self.layout.rows() {
            for n in row {
                jacobian.diagonal[n] = self.volumes[n] * self.states[n].capacity / dt;
            }
        }
        self.each_face(|axis, n, m| {
            let (_, by_n, by_m) = self.flow(axis, n, m, head);
            jacobian.diagonal[n] -= by_n;
            jacobian.upper[axis][n] = -by_m;
            jacobian.lower[axis][m] = by_n;
            jacobian.diagonal[m] += by_m;
        });
        for &Edge { n, kind } in &self.forcing.edges {
            jacobian.diagonal[n] -= self.edge_flow(n, kind, head).1;
        }
    }

    /// Calls `f` with axis and both cells of every face inside the grid that a cell of the block has, once each. Of what it
    /// adds to border cells, the couplings with cells of the block alone are of use.
    fn each_face(&self, mut f: impl FnMut(usize, usize, usize)) {
        for axis in 0..3 {
            let stride = self.layout.strides[axis];
            let conductances = &self.conductances[axis];
            let (mut i, mut j) = (0, 0);
            for row in self.layout.rows() {
                // The face before the first cells of the block is this rank's too.
                let first = match axis {
                    0 => i == 0,
                    1 => j == 0,
                    _ => true,
                };
                let before = if axis == 2 { row.start - 1..row.start } else { row.start - stride..row.end - stride };
                if first {
                    before.filter(|&n| conductances[n] > 0.0).for_each(|n| f(axis, n, n + stride));
                }
                row.filter(|&n| conductances[n] > 0.0).for_each(|n| f(axis, n, n + stride));
                j += 1;
                if j == self.layout.count[1] {
                    (i, j) = (i + 1, 0);
                }
            }
        }
    }

    /// What flows from cell m into cell n, and its derivatives by the heads of n and m.
    fn flow(&self, axis: usize, n: usize, m: usize, head: &[f64]) -> (f64, f64, f64) {
        let conductance = self.conductances[axis][n];
        let rise = if axis == 0 { self.rises[n] } else { 0.0 };
        let potential = head[m] - head[n] + rise;
        if self.face_permeability == FacePermeability::Mean {
            let [here, there] = [self.states[n], self.states[m]];
            let mobility = 0.5 * (here.mobility + there.mobility);
            let [by_n, by_m] = [0.5 * here.slope * potential - mobility, 0.5 * there.slope * potential + mobility];
            return (conductance * mobility * potential, conductance * by_n, conductance * by_m);
        }
        if potential > 0.0 {
            let State { mobility, slope, .. } = self.states[m];
            (conductance * mobility * potential, -conductance * mobility, conductance * (mobility + slope * potential))
        } else {
            let State { mobility, slope, .. } = self.states[n];
            (conductance * mobility * potential, conductance * (slope * potential - mobility), conductance * mobility)
        }
    }

    /// What flows into cell n over an edge, and its derivative by the head of n.
    fn edge_flow(&self, n: usize, kind: EdgeKind, head: &[f64]) -> (f64, f64) {
        let (outside, conductance, potential) = match kind {
            EdgeKind::Inflow(flow) => return (flow, 0.0),
            EdgeKind::Head { head: outside, conductance, rise } => (outside, conductance, outside - head[n] + rise),
            EdgeKind::Leaky { head: outside, half, layer, area, rise, is_dry } => {
                let potential = outside - head[n] + rise;
                if is_dry && potential > 0.0 {
                    return (0.0, 0.0);
                }
                let (mobility, slope) = self.edge_mobility(n, outside, potential);
                // A/(half/k_r + layer), and its derivative by k_r.
                let resistance = half + layer * mobility;
                let (conductance, by_mobility) = (area * mobility / resistance, area * half / (resistance * resistance));
                return (conductance * potential, by_mobility * slope * potential - conductance);
            }
        };
        let (mobility, slope) = self.edge_mobility(n, outside, potential);
        (conductance * mobility * potential, conductance * (slope * potential - mobility))
    }

    /// Relative permeability between the edge and cell n, from the head outside or that of n, and its derivative by the latter.
    fn edge_mobility(&self, n: usize, outside: f64, potential: f64) -> (f64, f64) {
        let State { mobility, slope, .. } = self.states[n];
        match self.face_permeability {
            FacePermeability::Mean => (0.5 * (mobility + self.media[n].at(outside).mobility), 0.5 * slope),
            FacePermeability::Upstream if potential > 0.0 => (self.media[n].at(outside).mobility, 0.0),
            FacePermeability::Upstream => (mobility, slope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Axis, Grid};
    use crate::problem::Boundary;

    /// A small box with everything in it: two kinds of ground, wet and dry cells, a well, rain, a water table.
    struct Small(Grid, FacePermeability);

    impl Problem for Small {
        fn grid(&self) -> &Grid {
            &self.0
        }

        fn medium(&self, cell: [usize; 3]) -> Medium {
            let (alpha, m) = if cell[0] < 2 { (2.0, 0.6) } else { (1.0, 0.4) };
            Medium::VanGenuchten { alpha, m, residual: 0.05, saturated: 0.4, specific_storage: 0.0 }
        }

        fn conductivity(&self, axis: usize, cell: [usize; 3]) -> f64 {
            (1 + axis) as f64 * 1e-4 / (1 + cell[0] + cell[2]) as f64
        }

        fn boundary(&self, axis: usize, upper: bool, _cell: [usize; 3], _time: f64) -> Boundary {
            match (axis, upper) {
                (0, false) => Boundary::Head(0.1),
                (0, true) => Boundary::Inflow(1e-6),
                (1, true) => Boundary::Head(-0.7),
                (2, false) => Boundary::Leaky { head: 0.2, conductance: 1e-6 },
                _ => Boundary::Closed,
            }
        }

        fn source(&self, cell: [usize; 3], _time: f64) -> f64 {
            if cell == [1, 1, 1] { -1e-6 } else { 0.0 }
        }

        fn initial_head(&self, _cell: [usize; 3]) -> f64 {
            -1.0
        }

        fn weight(&self) -> bool {
            true
        }

        fn face_permeability(&self) -> FacePermeability {
            self.1
        }

        fn linear(&self) -> bool {
            false
        }
    }

    fn small(face_permeability: FacePermeability) -> (Small, Layout) {
        let grid = Grid { axes: [Axis::uniform(4, 2.0), Axis::graded(3, 1.0, 0.5), Axis::uniform(2, 1.5)] };
        let layout = Layout::new(grid.extents(), [0; 3], grid.extents());
        (Small(grid, face_permeability), layout)
    }

    fn heads(layout: &Layout) -> Vec<f64> {
        let mut head = vec![0.0; layout.len()];
        layout.cells().for_each(|(cell, n)| head[n] = -0.6 + 0.5 * ((7 * cell[0] + 3 * cell[1] + 5 * cell[2]) as f64).sin());
        head
    }

    #[test]
    fn sums_that_have_overflowed_hold_nothing() {
        let sums = |residual, throughput| Sums { residual, storage_gain: 1.0, inflow: 1.0, throughput, terms: 0.0 };
        assert!(sums(1e-9, 1.0).hold(1e-8) && sums(0.0, 0.0).hold(1e-8));
        assert!(!sums(1e-7, 1.0).hold(1e-8) && !sums(f64::NAN, 1.0).hold(1e-8));
        assert!(!sums(1.0, f64::INFINITY).hold(1e-8) && !sums(f64::INFINITY, f64::INFINITY).hold(1e-8));
        assert!(!Sums { inflow: f64::NAN, ..sums(0.0, 1.0) }.hold(1e-8));
    }

    /// Where nothing moves, rounding errors are allowed; where water moves, `tolerance` of it as before.
    #[test]
    fn sums_at_rest_hold_within_rounding_errors() {
        let rest = Sums { residual: 1e-15, storage_gain: 1e-15, inflow: 0.0, throughput: 1e-15, terms: 1.0 };
        assert!(rest.hold(1e-8) && rest.balance(1e-8) <= 1e-8);
        assert!(!Sums { residual: 1e-13, ..rest }.hold(1e-8));
        assert_eq!(Sums { throughput: 1.0, ..rest }.scale(1e-8), 1.0);
        assert_eq!(Sums::default().balance(1e-8), 0.0);
    }

    #[test]
    fn the_jacobian_is_the_derivative_of_the_residual() {
        [FacePermeability::Upstream, FacePermeability::Mean].into_iter().for_each(compare_jacobian_with_differences);
    }

    fn compare_jacobian_with_differences(face_permeability: FacePermeability) {
        let (problem, layout) = small(face_permeability);
        let mut system = System::new(&problem, &layout);
        let head = heads(&layout);
        let dt = 500.0;
        system.begin(&vec![-1.0; layout.len()]);
        let mut residual = vec![0.0; layout.len()];
        system.residual(&head, dt, &mut residual);
        let mut jacobian = SevenPoint::zeros(&layout);
        system.jacobian(&head, dt, &mut jacobian);
        let scale = jacobian.diagonal.iter().fold(0.0, |a: f64, d| a.max(d.abs()));
        for (_, m) in layout.cells() {
            let step = 1e-6;
            let mut at = |by: f64| {
                let mut moved = head.clone();
                moved[m] += by;
                let mut residual = vec![0.0; layout.len()];
                system.residual(&moved, dt, &mut residual);
                residual
            };
            let (below, above) = (at(-step), at(step));
            let mut unit = vec![0.0; layout.len()];
            unit[m] = 1.0;
            let mut column = vec![0.0; layout.len()];
            jacobian.multiply(&layout, &unit, &mut column);
            for (_, n) in layout.cells() {
                let difference = (above[n] - below[n]) / (2.0 * step);
                assert!((column[n] - difference).abs() < 1e-7 * scale, "{n} by {m}: {} {difference}", column[n]);
            }
        }
    }

    /// Faces inside the grid move water and make none.
    #[test]
    fn residuals_add_up_to_the_water_balance() {
        let (problem, layout) = small(FacePermeability::Upstream);
        let mut system = System::new(&problem, &layout);
        system.begin(&vec![-1.0; layout.len()]);
        let mut residual = vec![0.0; layout.len()];
        let sums = system.residual(&heads(&layout), 500.0, &mut residual);
        let total: f64 = layout.rows().flatten().map(|n| residual[n]).sum();
        assert!((total - (sums.storage_gain - sums.inflow)).abs() < 1e-14 * sums.residual.max(1.0));
        assert!(sums.residual > 1e-6 && sums.throughput >= sums.inflow.abs() + sums.storage_gain.abs());
    }

    /// Each rank computes the rows of its own cells, and they are the whole's.
    #[test]
    fn parts_have_the_rows_of_the_whole() {
        let (problem, layout) = small(FacePermeability::Upstream);
        let head = heads(&layout);
        let mut whole = vec![0.0; layout.len()];
        let mut system = System::new(&problem, &layout);
        system.begin(&vec![-1.0; layout.len()]);
        system.residual(&head, 500.0, &mut whole);
        for (start, count) in [([0, 0, 0], [2, 3, 1]), ([2, 0, 0], [2, 3, 1]), ([0, 0, 1], [4, 1, 1]), ([1, 1, 0], [2, 1, 2])] {
            let part = Layout::new(layout.extents, start, count);
            let mut local = vec![0.0; part.len()];
            // Block and border: the border is one place before the block, and may lie outside the grid.
            for i in 0..count[0] + 2 {
                for j in 0..count[1] + 2 {
                    for k in 0..count[2] + 2 {
                        let cell = [start[0] + i, start[1] + j, start[2] + k];
                        if (0..3).all(|axis| (1..=layout.extents[axis]).contains(&cell[axis])) {
                            let from = layout.place(cell.map(|c| c - 1));
                            local[i * part.strides[0] + j * part.strides[1] + k] = head[from];
                        }
                    }
                }
            }
            let mut system = System::new(&problem, &part);
            system.begin(&vec![-1.0; part.len()]);
            let mut residual = vec![0.0; part.len()];
            system.residual(&local, 500.0, &mut residual);
            for (cell, n) in part.cells() {
                assert!((residual[n] - whole[layout.place(cell)]).abs() < 1e-18, "{cell:?}");
            }
        }
    }
}
