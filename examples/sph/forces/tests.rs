use pulp::bytemuck;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::case::{Case, Column, Kind, Water};
use crate::cells::Places;
use crate::tank::Wall;

/// A column in disorder, and a snapshot of it.
struct Disorder<const D: usize> {
    fluid: Fluid<D>,
    walls: Vec<Wall<D>>,
    /// Own ones first.
    particles: Vec<Particle<D>>,
    cells: Cells<D>,
}

impl<const D: usize> Disorder<D> {
    /// Takes a snapshot in which these particles are own ones.
    fn take(&mut self, is_own: impl Fn(&Particle<D>) -> bool) {
        self.particles.sort_by_key(|particle| !is_own(particle));
        let own = self.particles.iter().filter(|particle| is_own(particle)).count();
        let mut places = Places::new(&self.fluid);
        places.note_rest(&self.particles, 0, &[]);
        let _ = self.cells.build(&self.fluid, &self.particles, own, &places, &self.walls, 0.0);
        let _ = crate::walls::pass(&self.fluid, &mut self.cells, &mut Vec::new());
    }
}

fn disorder<const D: usize>(spacing: f64, extent: [f64; D], is_own: impl Fn(&Particle<D>) -> bool) -> Disorder<D> {
    let case = Case::column(Kind::DamBreak, spacing, Column::plain(extent, extent), Water::default());
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    let mut particles: Vec<_> = (0..case.particles()).map(|id| case.particle(id)).collect();
    for particle in &mut particles {
        for axis in 0..D {
            particle.position[axis] += spacing * random.random_range(-0.4..0.4);
            particle.velocity[axis] = random.random_range(-1.0..1.0);
        }
        particle.density *= random.random_range(0.99..1.02);
    }
    // Two that coincide.
    particles[17].position = particles[16].position;
    let mut disorder = Disorder { fluid: case.fluid, walls: case.walls, particles, cells: Cells::new() };
    disorder.take(is_own);
    disorder
}

/// What a pass finds, with the numbers of the particles, in their order.
fn found<const D: usize>(of: &Disorder<D>) -> Vec<(u32, [u64; D], u64)> {
    let mut found = Vec::new();
    let _ = pass(&of.fluid, &of.cells, |k, found_of, lane| {
        let derivatives = found_of.of(lane);
        found.push((of.particles[k].id, derivatives.acceleration.map(f64::to_bits), derivatives.rate.to_bits()));
    });
    found.sort();
    assert!(found.windows(2).all(|two| two[0].0 != two[1].0), "a particle twice");
    found
}

fn minus<const D: usize>(a: [f64; D], b: [f64; D]) -> [f64; D] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn dot<const D: usize>(a: [f64; D], b: [f64; D]) -> f64 {
    (0..D).map(|axis| a[axis] * b[axis]).sum()
}

/// |r| and 1/|r|, as near as pairs have them.
fn length<const D: usize>(fluid: &Fluid<D>, r: [f64; D]) -> [f64; 2] {
    let square = dot(r, r) / fluid.unit().powi(2);
    if square == 0.0 {
        return [0.0, f64::INFINITY];
    }
    let [inverse, ..] = store(pulp::Scalar512b, crate::pair::inverse_root(pulp::Scalar512b, bytemuck::cast([square; WIDEST])));
    [2.0 * fluid.support() * square * inverse, inverse / fluid.support()]
}

/// The laws as the module tells them, pair by pair.
fn direct<const D: usize>(fluid: &Fluid<D>, cells: &Cells<D>, i: &Source<D>) -> ([f64; D], f64) {
    let (h, c) = (fluid.smoothing(), fluid.sound);
    let Viscosity::Artificial(alpha) = fluid.viscosity else { unreachable!() };
    let (mut acceleration, mut rate) = (fluid.gravity, 0.0);
    let all = cells.fluid.sources.iter().map(|source| (source, None));
    for (j, held) in all.chain(cells.walls.sources.iter().zip(cells.held.iter().map(Some))) {
        let r = minus(i.position, j.position).map(|x| x * fluid.unit());
        let v = minus(i.velocity, j.velocity).map(|v| v / fluid.velocity_scale());
        let [distance, inverse] = length(fluid, r);
        let slope = wendland::gradient_factor::<D>(h) * (1.0 - 0.5 * distance / h).max(0.0).powi(3);
        let hydrostatic = fluid.density * dot(fluid.gravity, r) / (c * c);
        let diffusion = if held.is_none() { i.density - j.density - hydrostatic } else { 0.0 };
        rate -= fluid.mass() * slope * (dot(v, r) + fluid.spreading() * diffusion / fluid.density);
        if distance == 0.0 {
            continue;
        }
        let damped: [f64; D] = std::array::from_fn(|axis| if held.is_none_or(|held| held[axis]) { v[axis] } else { 0.0 });
        let past = minus(v, damped);
        let stress = i.pressure + j.pressure - alpha * h * c / fluid.density * dot(damped, r).min(0.0) * inverse * inverse;
        let skin = fluid.mass() * slope * distance * skin::<D>(fluid) * dot(past, past).sqrt();
        for axis in 0..D {
            acceleration[axis] += fluid.mass() * slope * stress * r[axis] - skin * past[axis];
        }
    }
    (acceleration, rate)
}

/// p = Σ (p_f + ρ_f g·(r − r_f)) W / Σ W, at least zero.
fn walls_take_their_pressure<const D: usize>(fluid: &Fluid<D>, cells: &Cells<D>) {
    let mut pushed = 0;
    for wall in &cells.walls.sources {
        let (mut sum, mut weight) = (0.0, 0.0);
        for source in &cells.fluid.sources {
            let r = minus(wall.position, source.position).map(|x| x * fluid.unit());
            let w = (1.0 - 0.5 * length(fluid, r)[0] / fluid.smoothing()).max(0.0);
            let share = w.powi(4) * (5.0 - 4.0 * w);
            weight += share;
            sum += share * (source.pressure * source.density.powi(2) + source.density * dot(fluid.gravity, r));
        }
        let pressure = if weight > 0.0 { (sum / weight).max(0.0) } else { 0.0 };
        pushed += usize::from(pressure > 0.0);
        let scale = fluid.density * fluid.sound * fluid.sound;
        approx::assert_abs_diff_eq!(wall.pressure * wall.density.powi(2), pressure, epsilon = 1e-9 * scale);
    }
    assert!(pushed > 0);
}

fn all_pairs_count<const D: usize>(spacing: f64, extent: [f64; D]) {
    for is_own in [|particle: &Particle<D>| !particle.id.is_multiple_of(3), |particle: &Particle<D>| particle.position[0] < 0.5] {
        let of = disorder(spacing, extent, is_own);
        let (fluid, cells) = (&of.fluid, &of.cells);
        walls_take_their_pressure(fluid, cells);
        let mut seen = 0;
        let mut each = |k: usize, found: &Found<D>, lane: usize| {
            let found = found.of(lane);
            seen += 1;
            let particle = &of.particles[k];
            let is_it = |source: &&Source<D>| source.velocity == particle.velocity.map(|v| fluid.velocity_scale() * v);
            let (acceleration, rate) = direct(fluid, cells, cells.fluid.sources.iter().find(is_it).unwrap());
            let scale = fluid.sound * fluid.sound / fluid.smoothing();
            let error = minus(found.acceleration, acceleration);
            assert!(dot(error, error).sqrt() < 1e-10 * scale, "particle {k}: {:?}, not {acceleration:?}", found.acceleration);
            let scale = fluid.density * fluid.sound / fluid.smoothing();
            assert!((found.rate - rate).abs() < 1e-10 * scale, "particle {k}: {}, not {rate}", found.rate);
        };
        let Viscosity::Artificial(alpha) = fluid.viscosity else { unreachable!() };
        // With lanes that are turned, and with some that are not.
        let _ = Pass { fluid, alpha, cells, each: &mut each }.with_simd(pulp::Scalar512b);
        let _ = Pass { fluid, alpha, cells, each: &mut each }.with_simd(pulp::Scalar256b);
        assert_eq!(seen, 2 * of.particles.iter().filter(|particle| is_own(particle)).count());
    }
}

#[test]
fn all_pairs_count_in_a_plane() {
    all_pairs_count(0.05, [0.8, 1.1]);
}

#[test]
fn all_pairs_count_in_space() {
    all_pairs_count(0.1, [1.3, 0.7, 0.9]);
}

#[test]
fn particles_are_put_in_the_order_of_their_cells() {
    let mut of = disorder(0.0625, [1.0, 1.5], |particle| particle.position[0] < 0.7);
    let own = of.particles.iter().filter(|particle| particle.position[0] < 0.7).count();
    let in_order: Vec<u32> =
        (0..of.cells.fluid.sources.len()).filter_map(|entry| of.cells.own(entry)).map(|own| of.particles[own].id).collect();
    let ghosts = of.particles[own..].to_vec();
    of.cells.arrange(&mut of.particles[..own]);
    assert_eq!(of.particles[..own].iter().map(|particle| particle.id).collect::<Vec<_>>(), in_order);
    assert_eq!(of.particles[own..], ghosts);
    assert!(!in_order.is_sorted());
}

/// Bits do not depend on where groups begin.
#[test]
fn sums_have_no_order() {
    let mut all = disorder(0.0625, [1.0, 1.5], |_| true);
    let whole = found(&all);
    // As if the others were on another rank: ghosts come from twice as far as the kernel reaches.
    let farthest = 0.5 - 2.0 * all.fluid.support();
    all.particles.retain(|particle| particle.position[0] > farthest);
    all.take(|particle| particle.position[0] > 0.5);
    let part = found(&all);
    assert!(!part.is_empty() && part.len() < whole.len());
    assert!(part.iter().all(|particle| whole.binary_search(particle).is_ok()));
}

/// What passes with vectors of several widths find, which has to have the same bits.
macro_rules! of_any_width {
    ($pass:ident, $viscosity:ident, $fluid:expr, $cells:expr, $particles:expr) => {
        let with = |width: u8| {
            let mut found = Vec::new();
            let each = |k: usize, of: &Found<2>, lane: usize| {
                let of = of.of(lane);
                let bits = [of.acceleration, of.shift].map(|vector| vector.map(f64::to_bits));
                found.push((k, bits, of.rate.to_bits(), of.carried.map(f32::to_bits)));
            };
            let pass = $pass { fluid: $fluid, $viscosity, cells: $cells, each };
            let _ = match width {
                2 => pass.with_simd(pulp::Scalar128b),
                4 => pass.with_simd(pulp::Scalar256b),
                8 => pass.with_simd(pulp::Scalar512b),
                _ => dispatch(pass),
            };
            found.sort();
            assert_eq!(found.len(), $particles);
            found
        };
        let two = with(2);
        assert!([4, 8, 0].into_iter().all(|width| with(width) == two));
    };
}

#[test]
fn the_width_of_vectors_does_not_matter() {
    let of = disorder(0.05, [0.8, 1.1], |_| true);
    let Viscosity::Artificial(alpha) = of.fluid.viscosity else { unreachable!() };
    of_any_width!(Pass, alpha, &of.fluid, &of.cells, of.particles.len());
}

#[test]
fn nor_does_it_where_fluid_fills_all() {
    use crate::filled::Pass;
    let case = Case::taylor_green(0.05, 1.0, 100.0);
    let Viscosity::Laminar(viscosity) = case.fluid.viscosity else { unreachable!() };
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    let mut particles: Vec<_> = (0..case.particles()).map(|id| case.particle(id)).collect();
    for particle in &mut particles {
        particle.position = particle.position.map(|x| x + 0.05 * random.random_range(-0.4..0.4));
        particle.carried = [0, 1].map(|_| random.random_range(-1.0..1.0));
        particle.density *= random.random_range(0.99..1.02);
    }
    let mut cells = Cells::new();
    let mut places = Places::new(&case.fluid);
    places.note_rest(&particles, 0, &[]);
    let _ = cells.build(&case.fluid, &particles, particles.len(), &places, &[], 0.0);
    of_any_width!(Pass, viscosity, &case.fluid, &cells, particles.len());
}

/// Pushes are multiples of one number, and those of all pairs add up to nothing.
#[test]
fn pairs_get_opposite_forces() {
    let mut of = disorder(0.05, [0.8, 1.1], |_| true);
    of.fluid.gravity = [0.0; 2];
    of.walls.clear();
    of.take(|_| true);
    let Viscosity::Artificial(alpha) = of.fluid.viscosity else { unreachable!() };
    let factor = 8.0 * of.fluid.mass() * of.fluid.unit() * wendland::gradient_factor::<2>(of.fluid.smoothing());
    let begin = Beginning::new(&of.fluid, alpha).push;
    let distance = begin.next_up() - begin;
    let mut sum = [0_i64; 2];
    let _ = pass(&of.fluid, &of.cells, |_, found, lane| {
        for (sum, a) in sum.iter_mut().zip(found.of(lane).acceleration) {
            let multiple = a / (factor * distance);
            assert!(multiple.abs() < 2f64.powi(50) && (multiple - multiple.round()).abs() < 0.2, "{multiple}");
            *sum += multiple.round() as i64;
        }
    });
    assert_eq!(sum, [0, 0]);
}
