//! What is kept of a particle, and the fluid that the particles make.
//!
//! `D` is 2 or 3. All particles have the same mass; in two dimensions it is mass for each unit of depth.

/// A particle of any kind in `D` dimensions that ranks can exchange and files keep.
pub(crate) trait Moving<const D: usize>: Copy {
    /// Words of a particle in a message.
    const WORDS: usize;

    /// 0, 1, 2, …: the same particle has the same number on any number of ranks.
    fn id(&self) -> u32;

    fn position(&self) -> &[f64; D];

    fn position_mut(&mut self) -> &mut [f64; D];

    /// Appends the particle to a message.
    fn write(&self, message: &mut Vec<f64>);

    /// Reads what [`write`](Self::write) wrote.
    fn read(words: &[f64]) -> Self;
}

/// One particle of fluid, as its owner keeps it.
///
/// Velocity and density are those that the next force pass shall see; the accelerations of the last pass go with them, because
/// the integrator extrapolates (see [`crate::integrator`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Particle<const D: usize> {
    pub(crate) position: [f64; D],
    pub(crate) velocity: [f64; D],
    pub(crate) density: f64,
    /// dv/dt of the last force pass.
    pub(crate) acceleration: [f64; D],
    /// dρ/dt of the last force pass.
    pub(crate) rate: f64,
    /// What the last shift asks of the velocity, (δu·∇)v; zero under a free surface (see [`crate::filled`]). Fluid fills all in planes
    /// only. Half the precision is enough for a small correction, and keeps particles short: in a dam break memory counts.
    pub(crate) carried: [f32; 2],
    /// 0, 1, 2, …: the same particle has the same number on any number of ranks.
    pub(crate) id: u32,
}

impl<const D: usize> Particle<D> {
    /// Puts it at a face across an axis, without the velocity against `outwards`, the direction that the face looks in.
    #[inline(always)]
    pub(crate) fn stop(&mut self, axis: usize, face: f64, outwards: f64) {
        self.position[axis] = face;
        self.velocity[axis] = outwards * (outwards * self.velocity[axis]).max(0.0);
        self.acceleration[axis] = 0.0;
    }
}

impl<const D: usize> Moving<D> for Particle<D> {
    const WORDS: usize = 3 * D + 4;

    #[inline(always)]
    fn id(&self) -> u32 {
        self.id
    }

    #[inline(always)]
    fn position(&self) -> &[f64; D] {
        &self.position
    }

    #[inline(always)]
    fn position_mut(&mut self) -> &mut [f64; D] {
        &mut self.position
    }

    /// The two halves of `carried` share a number.
    fn write(&self, message: &mut Vec<f64>) {
        message.extend_from_slice(&self.position);
        message.extend_from_slice(&self.velocity);
        message.extend_from_slice(&[self.density, f64::from(self.id)]);
        message.extend_from_slice(&self.acceleration);
        message.push(self.rate);
        let [x, y] = self.carried.map(|half| u64::from(half.to_bits()));
        message.push(f64::from_bits(x << 32 | y));
    }

    fn read(words: &[f64]) -> Self {
        let halves = words[3 * D + 3].to_bits();
        let vector = |first: usize| std::array::from_fn(|axis| words[first + axis]);
        Particle {
            position: vector(0),
            velocity: vector(D),
            density: words[2 * D],
            id: words[2 * D + 1] as u32,
            acceleration: vector(2 * D + 2),
            rate: words[3 * D + 2],
            carried: [halves >> 32, halves].map(|half| f32::from_bits(half as u32)),
        }
    }
}

/// How neighbors resist each other's motion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Viscosity {
    /// Monaghan's artificial viscosity with this α: acts on particles that approach each other.
    Artificial(f64),
    /// Morris, Fox & Zhu (1997): laminar, of this kinematic viscosity.
    Laminar(f64),
}

/// The fluid and how it is discretised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fluid<const D: usize> {
    /// Distance of neighbors in the first lattice.
    pub(crate) spacing: f64,
    /// Smoothing length h over spacing.
    pub(crate) smoothing: f64,
    /// Density at rest ρ₀.
    pub(crate) density: f64,
    /// Speed of sound c at rest.
    pub(crate) sound: f64,
    pub(crate) viscosity: Viscosity,
    /// δ of the density diffusion (Molteni & Colagrossi 2009).
    pub(crate) diffusion: f64,
    /// Force on each unit of mass.
    pub(crate) gravity: [f64; D],
    /// There is air above: walls cannot pull. Else all is full of fluid, and sticks to walls exactly.
    pub(crate) free_surface: bool,
    /// The skin friction coefficient of walls that water slips past.
    pub(crate) friction: f64,
}

/// The exponent γ of Tait's equation for water.
const GAMMA: i32 = 7;

impl<const D: usize> Fluid<D> {
    /// h. The kernel reaches 2h.
    pub(crate) fn smoothing(&self) -> f64 {
        self.smoothing * self.spacing
    }

    /// 2√2 h, the unit of lengths in pairs (see [`crate::pair`]).
    pub(crate) fn unit(&self) -> f64 {
        8.0_f64.sqrt() * self.smoothing()
    }

    /// (α/√2) c/ρ₀ under a free surface, else 1: velocities in pairs are multiplied by it, so that Π is −min(v·r, 0)/q² there. Without viscosity α is
    /// so little that Π is lost in rounding.
    pub(crate) fn velocity_scale(&self) -> f64 {
        match self.viscosity {
            Viscosity::Artificial(alpha) => alpha.max(1e-20) * std::f64::consts::FRAC_1_SQRT_2 * self.sound / self.density,
            Viscosity::Laminar(_) => 1.0,
        }
    }

    /// Distance beyond which particles do not know of each other.
    pub(crate) fn support(&self) -> f64 {
        2.0 * self.smoothing()
    }

    /// 2δhc, what the density diffusion is multiplied by.
    pub(crate) fn spreading(&self) -> f64 {
        2.0 * self.diffusion * self.smoothing() * self.sound
    }

    /// m.
    pub(crate) fn mass(&self) -> f64 {
        self.density * self.spacing.powi(D as i32)
    }

    /// Tait's equation: p = ρ₀c²/γ ((ρ/ρ₀)^γ − 1).
    #[inline(always)]
    pub(crate) fn pressure(&self, density: f64) -> f64 {
        // Where many are asked for, the division is done once.
        self.stiffness() * ((density * (1.0 / self.density)).powi(GAMMA) - 1.0)
    }

    /// The density that has a pressure.
    pub(crate) fn density_at(&self, pressure: f64) -> f64 {
        self.density * (pressure / self.stiffness() + 1.0).max(0.0).powf(1.0 / f64::from(GAMMA))
    }

    /// Energy of compression of each unit of mass: ∫ p/ρ² dρ from the density at rest.
    pub(crate) fn compression(&self, density: f64) -> f64 {
        let gamma = f64::from(GAMMA);
        let x = density / self.density;
        self.stiffness() / self.density * ((x.powi(GAMMA - 1) - 1.0) / (gamma - 1.0) + 1.0 / x - 1.0)
    }

    fn stiffness(&self) -> f64 {
        self.density * self.sound * self.sound / f64::from(GAMMA)
    }

    /// The longest time step that is stable: sound crosses a quarter of h, viscosity and body force have their own.
    ///
    /// # Source
    /// Morris, Fox & Zhu (1997), eqs. 24 to 26.
    pub(crate) fn time_step(&self) -> f64 {
        let h = self.smoothing();
        let force = self.gravity.iter().map(|g| g * g).sum::<f64>().sqrt();
        let sound = 0.25 * h / (1.1 * self.sound);
        let body = 0.25 * (h / force).sqrt();
        let viscous = match self.viscosity {
            // As if all pairs felt it.
            Viscosity::Artificial(alpha) => 0.25 * (D as f64 + 2.0) * h / (alpha * self.sound),
            Viscosity::Laminar(nu) => 0.125 * h * h / nu,
        };
        sound.min(body).min(viscous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_particles() {
        let particle = Particle {
            position: [1.0, 2.0, 3.0],
            velocity: [4.0, 5.0, 6.0],
            density: 7.0,
            acceleration: [8.0, 9.0, 10.0],
            rate: 11.0,
            carried: [12.0, 13.0],
            id: 15,
        };
        let mut message = vec![0.0];
        particle.write(&mut message);
        assert_eq!(message.len(), 1 + Particle::<3>::WORDS);
        assert_eq!(Particle::read(&message[1..]), particle);
    }

    #[test]
    fn tait_both_ways() {
        let fluid = Fluid {
            spacing: 0.1,
            smoothing: 1.5,
            density: 1000.0,
            sound: 20.0,
            viscosity: Viscosity::Artificial(0.1),
            diffusion: 0.1,
            gravity: [0.0, -9.81],
            free_surface: true,
            friction: 0.0,
        };
        assert_eq!(fluid.pressure(1000.0), 0.0);
        approx::assert_relative_eq!(fluid.density_at(fluid.pressure(1012.0)), 1012.0, max_relative = 1e-12);
        assert_eq!(fluid.compression(1000.0), 0.0);
        let work = (fluid.compression(1012.001) - fluid.compression(1011.999)) / 0.002;
        approx::assert_relative_eq!(work, fluid.pressure(1012.0) / 1012.0_f64.powi(2), max_relative = 1e-6);
        // The slope at rest is c².
        approx::assert_relative_eq!(fluid.pressure(1000.001) / 0.001, 400.0, max_relative = 1e-4);
    }
}
