//! What the ground is made of: how much water it holds and how easily water moves in it, as functions of the pressure head.
//!
//! **Confined aquifer.** The pores stay full; water comes out of storage because it expands and the ground is compressed.
//! Content S_s·ψ, mobility 1.
//!
//! **Van Genuchten–Mualem.** With the suction x = α·|ψ| for ψ < 0, n = 1/(1 − m):
//!
//! ```text
//! S  = (1 + xⁿ)^(−m)                              effective saturation          (van Genuchten 1980, equation 3)
//! k_r = √S · [1 − (1 − S^(1/m))^m]²               relative permeability         (van Genuchten 1980, equation 8)
//! θ  = θ_r + (θ_s − θ_r)·S                        water content
//! ```
//!
//! and S = k_r = 1 for ψ ≥ 0, where θ grows by S_s·ψ if there is a specific storage. The bracket is 1 − (1 + x^(−n))^(−m),
//! which is computed by `expm1` and `ln_1p`: in dry ground it is a small difference of numbers near one. The slope of k_r
//! at ψ → 0⁻ is infinite for n < 2; Newton's method meets it damped.
//!
//! **Gardner.** k_r = S = exp(α·ψ) for ψ < 0 (Gardner 1958, with a water content that is linear in k_r). In k_r, Richards'
//! equation is linear then, so there are closed forms.

/// What a cell holds and lets pass at one head.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct State {
    /// Volume of water for each volume of ground, up to a constant.
    pub(crate) content: f64,
    /// Its derivative by the head [1/m].
    pub(crate) capacity: f64,
    /// Conductivity over that of the saturated ground.
    pub(crate) mobility: f64,
    /// Its derivative by the head [1/m].
    pub(crate) slope: f64,
}

/// A kind of ground.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Medium {
    /// Always saturated; specific storage S_s [1/m].
    Confined { specific_storage: f64 },
    /// Variably saturated.
    VanGenuchten {
        /// α [1/m].
        alpha: f64,
        /// m = 1 − 1/n.
        m: f64,
        /// θ_r.
        residual: f64,
        /// θ_s.
        saturated: f64,
        /// S_s where the ground is saturated [1/m].
        specific_storage: f64,
    },
    /// Variably saturated, k_r exponential.
    Gardner {
        /// α [1/m].
        alpha: f64,
        /// θ_r.
        residual: f64,
        /// θ_s.
        saturated: f64,
        /// S_s where the ground is saturated [1/m].
        specific_storage: f64,
    },
}

impl Medium {
    /// Operations of [`at`](Self::at), with six functions of twenty operations each where the ground is variably saturated.
    pub(crate) fn flops(&self) -> usize {
        match self {
            Medium::Confined { .. } => 1,
            Medium::VanGenuchten { .. } => 6 * 20 + 32,
            Medium::Gardner { .. } => 20 + 6,
        }
    }

    /// The numbers that describe it, after one for its kind.
    pub(crate) fn numbers(&self) -> [f64; 6] {
        match *self {
            Medium::Confined { specific_storage } => [0.0, specific_storage, 0.0, 0.0, 0.0, 0.0],
            Medium::VanGenuchten { alpha, m, residual, saturated, specific_storage } => {
                [1.0, alpha, m, residual, saturated, specific_storage]
            }
            Medium::Gardner { alpha, residual, saturated, specific_storage } => {
                [2.0, alpha, 0.0, residual, saturated, specific_storage]
            }
        }
    }

    /// The state at pressure head `head` [m].
    pub(crate) fn at(&self, head: f64) -> State {
        match *self {
            Medium::Confined { specific_storage } => {
                State { content: specific_storage * head, capacity: specific_storage, mobility: 1.0, slope: 0.0 }
            }
            Medium::VanGenuchten { saturated, specific_storage, .. } | Medium::Gardner { saturated, specific_storage, .. }
                if head >= 0.0 =>
            {
                let content = saturated + specific_storage * head;
                State { content, capacity: specific_storage, mobility: 1.0, slope: 0.0 }
            }
            Medium::Gardner { alpha, residual, saturated, .. } => {
                let mobility = (alpha * head).exp();
                let content = residual + (saturated - residual) * mobility;
                State { content, capacity: alpha * (saturated - residual) * mobility, mobility, slope: alpha * mobility }
            }
            Medium::VanGenuchten { alpha, m, residual, saturated, .. } => {
                let n = 1.0 / (1.0 - m);
                let suction = -alpha * head;
                let power = suction.powf(n);
                let saturation = (-m * power.ln_1p()).exp();
                // By the suction; both derivatives below become ones by the head at the end.
                let saturation_slope = -m * n * power / suction / (1.0 + power) * saturation;
                let bracket = -(-m * power.recip().ln_1p()).exp_m1();
                let bracket_slope = -m * n * (1.0 - bracket) / (suction * (1.0 + power));
                let root = saturation.sqrt();
                let mobility_slope = bracket * (0.5 / root * saturation_slope * bracket + 2.0 * root * bracket_slope);
                State {
                    content: residual + (saturated - residual) * saturation,
                    capacity: -alpha * (saturated - residual) * saturation_slope,
                    mobility: root * bracket * bracket,
                    slope: -alpha * mobility_slope,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAM: Medium = Medium::VanGenuchten { alpha: 4.0, m: 0.375, residual: 0.08, saturated: 0.43, specific_storage: 0.0 };
    const SAND: Medium =
        Medium::VanGenuchten { alpha: 15.0, m: 2.0 / 3.0, residual: 0.045, saturated: 0.43, specific_storage: 0.0 };

    /// Van Genuchten's formulae as he wrote them.
    fn as_published(alpha: f64, m: f64, head: f64) -> (f64, f64) {
        let s = (1.0 + (alpha * -head).powf(1.0 / (1.0 - m))).powf(-m);
        (s, s.sqrt() * (1.0 - (1.0 - s.powf(1.0 / m)).powf(m)).powi(2))
    }

    #[test]
    fn agrees_with_the_published_formulae() {
        for (medium, alpha, m, residual) in [(LOAM, 4.0, 0.375, 0.08), (SAND, 15.0, 2.0 / 3.0, 0.045)] {
            for head in [-0.001, -0.05, -0.3, -1.0] {
                let (s, k) = as_published(alpha, m, head);
                let state = medium.at(head);
                assert!((state.content - residual - (0.43 - residual) * s).abs() < 1e-14);
                assert!((state.mobility / k - 1.0).abs() < 1e-9, "{head}: {} {k}", state.mobility);
            }
        }
    }

    #[test]
    fn derivatives_are_those_of_the_functions() {
        let gardner = Medium::Gardner { alpha: 0.3, residual: 0.1, saturated: 0.4, specific_storage: 1e-3 };
        for medium in [LOAM, SAND, gardner, Medium::Confined { specific_storage: 1e-4 }] {
            for head in [-50.0, -2.0, -0.3, -0.01, 0.5] {
                let step = 1e-5 * f64::abs(head);
                let (below, here, above) = (medium.at(head - step), medium.at(head), medium.at(head + step));
                let close = |slope: f64, low: f64, high: f64| {
                    let difference = (high - low) / (2.0 * step);
                    (slope - difference).abs() <= 1e-6 * slope.abs() + 1e-11 / step
                };
                assert!(close(here.capacity, below.content, above.content), "{medium:?} at {head}");
                assert!(close(here.slope, below.mobility, above.mobility), "{medium:?} at {head}");
            }
        }
    }

    #[test]
    fn very_dry_and_saturated_ground_stay_finite() {
        for head in [-1e8, -1e3, -1e-300, 0.0, 10.0] {
            let State { content, capacity, mobility, slope } = SAND.at(head);
            assert!([content, capacity, mobility, slope].iter().all(|x| x.is_finite() && *x >= 0.0), "{head}");
        }
        assert!(SAND.at(-1e3).mobility > 0.0);
    }
}
