//! Krylov solvers for A·x = b over the ranks: conjugate gradients where A is symmetric, BiCGStab where it is not.
//!
//! Of all vectors only those that A is applied to need their neighbors' cells. Dot products are all-reduces, one for all that are
//! known at the same moment, and the residual's 1-norm travels with them. Every rank sees the same bits of every reduction, so
//! all take the same decisions.
//!
//! The matrix is preconditioned by an incomplete factorization M over all ranks ([`crate::incomplete`]) and a coarse level Q
//! ([`crate::coarse`]), whose sums travel with the dot products:
//!
//! * Conjugate gradients use M⁻¹ + Q, which keeps the symmetry. The borders of the preconditioned residual travel with the dot
//!   products, too.
//! * BiCGStab uses M⁻¹·(I − A·Q) + Q ("A-DEF1"), which takes fewer iterations than the sum. It needs the sums over the boxes of
//!   the vectors that it preconditions. They follow from those of the products with A by the recurrences of the vectors
//!   themselves; rounding errors there make the preconditioner worse, not the residual. BiCGStab begins without the coarse
//!   level, and turns to it after [`FEW`] iterations.
//!
//! # Source
//! M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Standards 49 (1952). H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992),
//! with the preconditioner on the right, so that the residual is the true one. J. M. Tang, R. Nabben, C. Vuik, Y. A. Erlangga,
//! *Comparison of two-level preconditioners derived from deflation, domain decomposition and multigrid methods*, J. Sci.
//! Comput. 39, 2009 (A-DEF1).

use global_arrays::prelude::*;

use crate::coarse::Coarse;
use crate::field::Team;
use crate::incomplete::Incomplete;
use crate::matrix::SevenPoint;

/// More iterations than this are a failure; the time step is cut then.
const MOST_ITERATIONS: usize = 2000;
/// Iterations of BiCGStab without the coarse level. In a short time step, news travels a few cells and a few iterations are
/// enough; the coarse level would cost more than it saves.
const FEW: usize = 6;

/// How a solve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Solved {
    pub(crate) iterations: usize,
    /// Whether the residual became small enough.
    pub(crate) converged: bool,
}

/// The solvers with their preconditioner and their memory.
#[derive(Debug)]
pub(crate) struct Krylov {
    incomplete: Incomplete,
    coarse: Coarse,
    work: [Vec<f64>; 7],
    /// What is summed over the ranks: numbers, and one for each box.
    sums: Vec<f64>,
}

impl Krylov {
    pub(crate) fn new(team: &Team<'_>) -> Krylov {
        let coarse = Coarse::new(team);
        let sums = vec![0.0; 3 + coarse.len()];
        Krylov { incomplete: Incomplete::new(team), coarse, work: std::array::from_fn(|_| team.zeros()), sums }
    }

    /// Solves A·x = b for symmetric positive definite A from x = 0, until the residual's 1-norm is at most `target`. `b` is lost.
    /// Collective.
    pub(crate) fn conjugate_gradients(
        &mut self,
        team: &mut Team<'_>,
        a: &SevenPoint,
        b: &mut [f64],
        x: &mut [f64],
        target: f64,
    ) -> Result<Solved, Error> {
        let layout = team.layout.clone();
        let Krylov { incomplete, coarse, work: [p, q, z, ..], sums } = self;
        // Two numbers here; BiCGStab has three.
        let sums = &mut sums[1..];
        let r = b;
        x.fill(0.0);
        p.fill(0.0);
        incomplete.factor(team, a)?;
        coarse.factor(team, a)?;
        let mut rz = f64::INFINITY;
        let mut pq = 1.0;
        for iterations in 0..=MOST_ITERATIONS {
            incomplete.solve(team, a, r, z)?;
            let (scalars, boxes) = sums.split_at_mut(2);
            scalars.copy_from_slice(&[layout.dot(r, z), layout.magnitude(r)]);
            coarse.restrict(r, boxes);
            // Two of the dot product, one of the norm, one of the boxes' sums.
            team.work(4.0, 4);
            // With z's border, that of p is known without another exchange.
            team.exchange_and_sum(z, sums)?;
            let (&[fine, norm], boxes) = sums.split_at(2) else { unreachable!() };
            if norm <= target {
                return Ok(Solved { iterations, converged: true });
            }
            // Not a number here, after a breakdown, ends it as well.
            if !(norm.is_finite() && pq > 0.0) {
                return Ok(Solved { iterations, converged: false });
            }
            let next = fine + coarse.solve(boxes);
            team.compute(coarse.flops());
            let beta = next / rz;
            rz = next;
            coarse.add(z, beta, p);
            a.multiply(&layout, p, q);
            // 3 and 3 numbers for p; 13 and 9 for the product; 2 and 2 for the dot product.
            team.work(18.0, 14);
            [pq] = team.sum([layout.dot(p, q)])?;
            let alpha = rz / pq;
            for row in layout.rows() {
                for n in row {
                    x[n] += alpha * p[n];
                    r[n] -= alpha * q[n];
                }
            }
            team.work(4.0, 6);
        }
        Ok(Solved { iterations: MOST_ITERATIONS, converged: false })
    }

    /// Solves A·x = b for any A from x = 0, until the residual's 1-norm is at most `target`. `b` is lost. Collective.
    pub(crate) fn bicgstab(
        &mut self,
        team: &mut Team<'_>,
        a: &SevenPoint,
        b: &mut [f64],
        x: &mut [f64],
        target: f64,
    ) -> Result<Solved, Error> {
        self.incomplete.factor(team, a)?;
        x.fill(0.0);
        let first = self.stabilized(team, a, b, x, target, FEW, false)?;
        if first.converged {
            return Ok(first);
        }
        let two_level = self.coarse.factor(team, a)?;
        let second = self.stabilized(team, a, b, x, target, MOST_ITERATIONS - FEW, two_level)?;
        Ok(Solved { iterations: first.iterations + second.iterations, ..second })
    }

    /// At most `most` iterations of BiCGStab, from x with the residual r; with the coarse level if `two_level`.
    #[expect(clippy::too_many_arguments, reason = "what a linear system and its solution are, and two limits")]
    fn stabilized(
        &mut self,
        team: &mut Team<'_>,
        a: &SevenPoint,
        r: &mut [f64],
        x: &mut [f64],
        target: f64,
        most: usize,
        two_level: bool,
    ) -> Result<Solved, Error> {
        let layout = team.layout.clone();
        let Krylov { incomplete, coarse, work: [shadow, p, v, s, t, y, z], sums } = self;
        let sums = &mut sums[..if two_level { 3 + coarse.len() } else { 3 }];
        shadow.copy_from_slice(r);
        p.copy_from_slice(r);
        let [mut rho, norm] = reduce(team, coarse, sums, [layout.dot(r, r), layout.magnitude(r)], r)?;
        if norm <= target {
            return Ok(Solved { iterations: 0, converged: true });
        }
        // Zᵀ·r, Zᵀ·p and Zᵀ·v; nothing without the coarse level.
        let (mut of_r, mut of_p, mut of_v) = (sums[3..].to_vec(), sums[3..].to_vec(), sums[3..].to_vec());
        for iterations in 1..=most {
            precondition(team, a, incomplete, coarse, &of_p, p, t, y)?;
            a.multiply(&layout, y, v);
            // The product, and a dot product.
            team.work(15.0, 11);
            let [shadow_v] = reduce(team, coarse, sums, [layout.dot(shadow, v)], v)?;
            of_v.copy_from_slice(&sums[3..]);
            let alpha = rho / shadow_v;
            for row in layout.rows() {
                for n in row {
                    s[n] = r[n] - alpha * v[n];
                }
            }
            of_r.iter_mut().zip(&of_v).for_each(|(r, v)| *r -= alpha * v);
            team.work(2.0, 3);
            precondition(team, a, incomplete, coarse, &of_r, s, t, z)?;
            a.multiply(&layout, z, t);
            // The product, two dot products, a norm.
            team.work(18.0, 13);
            let [ts, tt, half] = reduce(team, coarse, sums, [layout.dot(t, s), layout.dot(t, t), layout.magnitude(s)], t)?;
            // The half step may have been enough, and then t is zero.
            let omega = if half <= target { 0.0 } else { ts / tt };
            for row in layout.rows() {
                for n in row {
                    x[n] += alpha * y[n] + omega * z[n];
                    r[n] = s[n] - omega * t[n];
                }
            }
            of_r.iter_mut().zip(&sums[3..]).for_each(|(r, t)| *r -= omega * t);
            // Two vectors moved on, a dot product, a norm.
            team.work(9.0, 11);
            let [next, norm] = team.sum([layout.dot(shadow, r), layout.magnitude(r)])?;
            if norm <= target {
                return Ok(Solved { iterations, converged: true });
            }
            let beta = next / rho * (alpha / omega);
            if !(norm.is_finite() && beta.is_finite()) {
                return Ok(Solved { iterations, converged: false });
            }
            rho = next;
            for row in layout.rows() {
                for n in row {
                    p[n] = r[n] + beta * (p[n] - omega * v[n]);
                }
            }
            for ((p, r), v) in of_p.iter_mut().zip(&of_r).zip(&of_v) {
                *p = r + beta * (*p - omega * v);
            }
            team.work(4.0, 4);
        }
        Ok(Solved { iterations: most, converged: false })
    }
}

/// Sums `values` over the ranks and, where there is room for them behind the first three of `sums`, those of the boxes of `r`.
fn reduce<const N: usize>(
    team: &Team<'_>,
    coarse: &Coarse,
    sums: &mut [f64],
    values: [f64; N],
    r: &[f64],
) -> Result<[f64; N], Error> {
    let (scalars, boxes) = sums.split_at_mut(3);
    scalars.fill(0.0);
    scalars[..N].copy_from_slice(&values);
    if !boxes.is_empty() {
        coarse.restrict(r, boxes);
        team.work(1.0, 1);
    }
    team.sum_all(sums)?;
    Ok(std::array::from_fn(|k| sums[k]))
}

/// y ← M⁻¹·(I − A·Q)·r + Q·r with Q = Z·(Zᵀ·A·Z)⁻¹·Zᵀ, where `boxes` is Zᵀ·r; y ← M⁻¹·r if that is empty. In the border, too.
#[expect(clippy::too_many_arguments, reason = "the operators, a vector with its sums, a vector to work in, and the result")]
fn precondition(
    team: &mut Team<'_>,
    a: &SevenPoint,
    incomplete: &Incomplete,
    coarse: &mut Coarse,
    boxes: &[f64],
    r: &[f64],
    work: &mut [f64],
    y: &mut [f64],
) -> Result<(), Error> {
    if boxes.is_empty() {
        incomplete.solve(team, a, r, y)?;
        return team.exchange(y);
    }
    let layout = team.layout.clone();
    coarse.solve(boxes);
    team.compute(coarse.flops());
    coarse.spread(y);
    a.multiply(&layout, y, work);
    for row in layout.rows() {
        for n in row {
            work[n] = r[n] - work[n];
        }
    }
    // The boxes' values, the product, a difference, and the boxes' values once more.
    team.work(15.0, 14);
    incomplete.solve(team, a, work, y)?;
    team.exchange(y)?;
    coarse.lift(y);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    const EXTENTS: [usize; 3] = [4, 5, 6];

    /// Entry of a diagonally dominant matrix between two neighbors, without symmetry unless `symmetric`.
    fn entry(from: [usize; 3], to: [usize; 3], symmetric: bool) -> f64 {
        let code = |c: [usize; 3]| (c[0] * 30 + c[1] * 6 + c[2]) as f64;
        let (a, b) = (code(from), code(to));
        -1.0 - 0.4 * ((a + b).sin() + if symmetric { 0.0 } else { (a - b).sin() + 0.5 * a.cos() })
    }

    /// Largest error of the solution of A·x = b where x is known.
    fn error(job: &Job, symmetric: bool) -> Result<f64, Error> {
        let mut team = Team::new(job, EXTENTS)?;
        let layout = team.layout.clone();
        let a = SevenPoint::of(&layout, 0.1, |from, to| entry(from, to, symmetric));
        let (mut exact, mut b, mut x) = (team.zeros(), team.zeros(), team.zeros());
        layout.cells().for_each(|(cell, n)| exact[n] = (cell[0] as f64).sin() + (cell[1] * cell[2]) as f64);
        team.exchange(&mut exact)?;
        a.multiply(&layout, &exact, &mut b);
        let mut krylov = Krylov::new(&team);
        let solved = if symmetric {
            krylov.conjugate_gradients(&mut team, &a, &mut b, &mut x, 1e-9)?
        } else {
            krylov.bicgstab(&mut team, &a, &mut b, &mut x, 1e-9)?
        };
        assert!(solved.converged && solved.iterations < 40, "{solved:?}");
        team.largest(layout.cells().map(|(_, n)| (x[n] - exact[n]).abs()).fold(0.0, f64::max))
    }

    #[test]
    fn both_solvers_find_a_known_solution_on_any_number_of_ranks() {
        for ranks in [1, 2, 3, 4, 7] {
            for symmetric in [true, false] {
                let body = |job: &Job| {
                    let error = error(job, symmetric)?;
                    // The residual's 1-norm over the smallest row excess, 0.1.
                    assert!(error <= 1e-8, "{ranks} ranks, symmetric {symmetric}: {error:e}");
                    Ok::<(), Error>(())
                };
                Launch::new().ranks(ranks).network("threads").run(body).unwrap();
            }
        }
    }

    /// Iterations for equations whose couplings along axis 1, across which two ranks are cut, are `strong` times the others.
    fn iterations(ranks: usize, extents: [usize; 3], strong: f64, symmetric: bool) -> usize {
        let most = AtomicUsize::new(0);
        let body = |job: &Job| {
            let mut team = Team::new(job, extents)?;
            let layout = team.layout.clone();
            let a = SevenPoint::of(&layout, 1e-6, |from, to| if from[1] == to[1] { -1.0 } else { -strong });
            let (mut b, mut x) = (team.zeros(), team.zeros());
            layout.cells().for_each(|(cell, n)| b[n] = (0.3 * cell[1] as f64 + 0.1 * cell[2] as f64).sin());
            let mut krylov = Krylov::new(&team);
            let solved = if symmetric {
                krylov.conjugate_gradients(&mut team, &a, &mut b, &mut x, 1e-6)?
            } else {
                krylov.bicgstab(&mut team, &a, &mut b, &mut x, 1e-6)?
            };
            assert!(solved.converged, "{ranks} ranks: {solved:?}");
            most.fetch_max(solved.iterations, Relaxed);
            Ok::<(), Error>(())
        };
        Launch::new().ranks(ranks).network("threads").run(body).unwrap();
        most.into_inner()
    }

    /// Where sweeps meet, couplings across the cut are kept: block Jacobi takes several times the iterations here.
    #[test]
    fn a_cut_through_strong_couplings_costs_few_iterations() {
        for strong in [1.0, 1e3] {
            let alone = iterations(1, [1, 48, 48], strong, true);
            for ranks in [2, 4] {
                let together = iterations(ranks, [1, 48, 48], strong, true);
                assert!(4 * together <= 5 * alone + 8, "couplings {strong}: {alone} on one rank, {together} on {ranks}");
            }
        }
    }

    /// Without the coarse level BiCGStab takes more iterations where the grid has more cells.
    #[test]
    fn the_coarse_level_bounds_the_iterations_of_bicgstab() {
        for ranks in [1, 2, 4] {
            let fine = iterations(ranks, [1, 96, 96], 1.0, false);
            assert!(fine <= 34, "{ranks} ranks: {fine} iterations");
        }
    }

    /// In one dimension an elimination from both ends leaves nothing out.
    #[test]
    fn two_ranks_factor_a_line_exactly() {
        for ranks in [1, 2] {
            assert_eq!(iterations(ranks, [1, 300, 1], 1.0, false), 1, "{ranks} ranks");
        }
    }
}
