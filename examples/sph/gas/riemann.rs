//! The exact solution of the Riemann problem of an ideal gas: two uniform states, separated at x = 0 at t = 0.
//!
//! Between a wave to the left and one to the right, each a shock or a rarefaction, pressure and velocity are uniform. The pressure there is
//! the root of f_L(p) + f_R(p) + u_R − u_L, found by Newton's method. The right side is solved as the mirror image of a left one.
//!
//! # Source
//! E. F. Toro, *Riemann Solvers and Numerical Methods for Fluid Dynamics*, chapter 4.

/// A state of a gas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct State {
    pub(crate) density: f64,
    pub(crate) velocity: f64,
    pub(crate) pressure: f64,
}

impl State {
    /// Speed of sound, √(γp/ρ).
    pub(crate) fn sound(&self, gamma: f64) -> f64 {
        (gamma * self.pressure / self.density).sqrt()
    }

    /// The same gas, mirrored in x = 0.
    fn mirrored(self) -> State {
        State { velocity: -self.velocity, ..self }
    }
}

/// The solution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Riemann {
    gamma: f64,
    left: State,
    right: State,
    /// p and u between the outer waves: Toro's p* and u*.
    pressure: f64,
    velocity: f64,
}

/// The change of velocity across a wave into the gas `ahead`, behind which the pressure is `p`, and its derivative by `p`.
fn change(gamma: f64, ahead: &State, p: f64) -> (f64, f64) {
    let sound = ahead.sound(gamma);
    if p > ahead.pressure {
        let a = 2.0 / ((gamma + 1.0) * ahead.density);
        let sum = p + (gamma - 1.0) / (gamma + 1.0) * ahead.pressure;
        let root = (a / sum).sqrt();
        ((p - ahead.pressure) * root, root * (1.0 - 0.5 * (p - ahead.pressure) / sum))
    } else {
        let power = 0.5 * (gamma - 1.0) / gamma;
        let ratio = p / ahead.pressure;
        let change = 2.0 * sound / (gamma - 1.0) * (ratio.powf(power) - 1.0);
        (change, ratio.powf(power - 1.0) / (ahead.density * sound))
    }
}

impl Riemann {
    /// Solves the problem. There must be no vacuum in the solution.
    pub(crate) fn new(gamma: f64, left: State, right: State) -> Self {
        let (sound_left, sound_right) = (left.sound(gamma), right.sound(gamma));
        let parting = right.velocity - left.velocity;
        assert!(2.0 * (sound_left + sound_right) > (gamma - 1.0) * parting, "a vacuum between {left:?} and {right:?}");
        // As if both waves were rarefactions: exact if they are. f is concave, so after a step Newton's method approaches from below.
        let power = 0.5 * (gamma - 1.0) / gamma;
        let sounds = sound_left + sound_right - 0.5 * (gamma - 1.0) * parting;
        let scale = sound_left / left.pressure.powf(power) + sound_right / right.pressure.powf(power);
        let mut pressure = (sounds / scale).powf(1.0 / power);
        let mut done = false;
        for _ in 0..100 {
            let (of_left, slope_left) = change(gamma, &left, pressure);
            let (of_right, slope_right) = change(gamma, &right, pressure);
            let next = (pressure - (of_left + of_right + parting) / (slope_left + slope_right)).max(1e-3 * pressure);
            done = (next - pressure).abs() <= 1e-14 * pressure;
            pressure = next;
            if done {
                break;
            }
        }
        assert!(done, "no pressure between {left:?} and {right:?}");
        let (of_left, of_right) = (change(gamma, &left, pressure).0, change(gamma, &right, pressure).0);
        let velocity = 0.5 * (left.velocity + right.velocity + of_right - of_left);
        Riemann { gamma, left, right, pressure, velocity }
    }

    /// The state where x/t is `speed`.
    pub(crate) fn at(&self, speed: f64) -> State {
        if speed < self.velocity {
            self.behind(&self.left, self.velocity, speed)
        } else {
            self.behind(&self.right.mirrored(), -self.velocity, -speed).mirrored()
        }
    }

    /// The state left of the contact, which moves at `contact`, where x/t is `speed`; `ahead` is the undisturbed gas on the left.
    fn behind(&self, ahead: &State, contact: f64, speed: f64) -> State {
        let (gamma, sound, ratio) = (self.gamma, ahead.sound(self.gamma), self.pressure / ahead.pressure);
        let g = (gamma - 1.0) / (gamma + 1.0);
        let star = |density| State { density, velocity: contact, pressure: self.pressure };
        if speed < self.front(ahead) {
            return *ahead;
        }
        if ratio > 1.0 {
            return star(ahead.density * (ratio + g) / (g * ratio + 1.0));
        }
        let star = star(ahead.density * ratio.powf(1.0 / gamma));
        if speed > contact - star.sound(gamma) {
            return star;
        }
        let inside = 2.0 / (gamma + 1.0) + g / sound * (ahead.velocity - speed);
        State {
            density: ahead.density * inside.powf(2.0 / (gamma - 1.0)),
            velocity: 2.0 / (gamma + 1.0) * (sound + 0.5 * (gamma - 1.0) * ahead.velocity + speed),
            pressure: ahead.pressure * inside.powf(2.0 * gamma / (gamma - 1.0)),
        }
    }

    /// The velocity of the wave into the gas `ahead`, which is left of it: of the shock, or of the head of the rarefaction.
    fn front(&self, ahead: &State) -> f64 {
        let ratio = (self.pressure / ahead.pressure).max(1.0);
        let strength = (self.gamma + 1.0) / (2.0 * self.gamma) * ratio + (self.gamma - 1.0) / (2.0 * self.gamma);
        ahead.velocity - ahead.sound(self.gamma) * strength.sqrt()
    }

    /// The velocities of the fronts of both outer waves, to the left and to the right.
    pub(crate) fn fronts(&self) -> [f64; 2] {
        [self.front(&self.left), -self.front(&self.right.mirrored())]
    }

    /// The velocity of the contact discontinuity.
    pub(crate) fn contact(&self) -> f64 {
        self.velocity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAMMA: f64 = 1.4;

    fn state(density: f64, velocity: f64, pressure: f64) -> State {
        State { density, velocity, pressure }
    }

    /// The tests of Toro's Table 4.1: left, right, and p*, u*, ρ*L, ρ*R of his Table 4.2 and 4.3.
    fn problems() -> [(State, State, [f64; 4]); 5] {
        [
            (state(1.0, 0.0, 1.0), state(0.125, 0.0, 0.1), [0.30313, 0.92745, 0.42632, 0.26557]),
            (state(1.0, -2.0, 0.4), state(1.0, 2.0, 0.4), [0.00189, 0.0, 0.02185, 0.02185]),
            (state(1.0, 0.0, 1000.0), state(1.0, 0.0, 0.01), [460.894, 19.5975, 0.57506, 5.99924]),
            (state(1.0, 0.0, 0.01), state(1.0, 0.0, 100.0), [46.0950, -6.19633, 5.99242, 0.57511]),
            (state(5.99924, 19.5975, 460.894), state(5.99242, -6.19633, 46.0950), [1691.64, 8.68975, 14.2823, 31.0426]),
        ]
    }

    #[test]
    fn waves_are_those_of_the_tables() {
        for (left, right, [pressure, velocity, of_left, of_right]) in problems() {
            let exact = Riemann::new(GAMMA, left, right);
            let near = 1e-9 * (1.0 + exact.contact().abs());
            let (behind_left, behind_right) = (exact.at(exact.contact() - near), exact.at(exact.contact() + near));
            approx::assert_relative_eq!(behind_left.pressure, pressure, max_relative = 1e-5, epsilon = 5e-6);
            approx::assert_relative_eq!(behind_left.velocity, velocity, max_relative = 1e-5, epsilon = 5e-6);
            approx::assert_relative_eq!(behind_left.density, of_left, max_relative = 1e-5, epsilon = 1e-4 * of_left);
            approx::assert_relative_eq!(behind_right.density, of_right, max_relative = 1e-5, epsilon = 1e-4 * of_right);
        }
    }

    /// Mass, momentum and energy, and what of each flows through a place that moves at `speed`.
    fn fluxes(state: State, speed: f64) -> [f64; 3] {
        let State { density, velocity, pressure } = state;
        let energy = pressure / (GAMMA - 1.0) + 0.5 * density * velocity * velocity;
        let through = velocity - speed;
        [density * through, density * velocity * through + pressure, energy * through + pressure * velocity]
    }

    #[test]
    fn shocks_conserve_mass_momentum_and_energy() {
        for (left, right, _) in problems() {
            let exact = Riemann::new(GAMMA, left, right);
            for front in exact.fronts() {
                let near = 1e-9 * (1.0 + front.abs());
                let (before, after) = (fluxes(exact.at(front - near), front), fluxes(exact.at(front + near), front));
                for k in 0..3 {
                    approx::assert_relative_eq!(before[k], after[k], max_relative = 1e-6, epsilon = 1e-6);
                }
            }
        }
    }

    #[test]
    fn the_whole_solution_conserves_mass_momentum_and_energy() {
        for (left, right, _) in problems() {
            let exact = Riemann::new(GAMMA, left, right);
            let widest = exact.fronts().map(f64::abs).into_iter().fold(0.0, f64::max) * 1.1;
            let count = 200_000;
            let width = 2.0 * widest / f64::from(count);
            let mut sums = [0.0; 3];
            for k in 0..count {
                let State { density, velocity, pressure } = exact.at((f64::from(k) + 0.5) * width - widest);
                let energy = pressure / (GAMMA - 1.0) + 0.5 * density * velocity * velocity;
                for (sum, value) in sums.iter_mut().zip([density, density * velocity, energy]) {
                    *sum += value * width;
                }
            }
            let (into, out) = (fluxes(left, -widest), fluxes(right, widest));
            for k in 0..3 {
                // What was there, and what came in at the ends that move outwards, at t = 1.
                let scale = 1e-4 * (into[k].abs() + out[k].abs());
                approx::assert_abs_diff_eq!(sums[k], into[k] - out[k], epsilon = scale);
            }
        }
    }
}
