//! Virtual time.

use std::{
    ops::{Add, AddAssign},
    time::Duration,
};

/// Picoseconds since the job began, or a span of them: enough for 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::comm) struct Picos(pub u64);

impl Picos {
    pub(in crate::comm) const ZERO: Picos = Picos(0);

    /// The time nearest to `seconds` seconds; zero for a negative number.
    pub(in crate::comm) fn of_seconds(seconds: f64) -> Self {
        // Conversion saturates.
        Picos((seconds * 1e12).round() as u64)
    }

    pub(in crate::comm) fn of_micros(micros: f64) -> Self {
        Picos::of_seconds(micros * 1e-6)
    }

    pub(in crate::comm) fn of_duration(duration: Duration) -> Self {
        Picos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000))
    }

    /// Rounded down to nanoseconds.
    pub(in crate::comm) fn duration(self) -> Duration {
        Duration::from_nanos(self.0 / 1000)
    }

    /// The time of `bytes` bytes, at `picos_per_byte` for each.
    pub(in crate::comm) fn of_bytes(bytes: usize, picos_per_byte: f64) -> Self {
        Picos((bytes as f64 * picos_per_byte).round() as u64)
    }
}

impl Add for Picos {
    type Output = Picos;

    fn add(self, other: Picos) -> Picos {
        Picos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Picos {
    fn add_assign(&mut self, other: Picos) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_to_picoseconds() {
        assert_eq!(Picos::of_micros(1.3), Picos(1_300_000));
        assert_eq!(Picos::of_seconds(-1.0), Picos::ZERO);
        assert_eq!(Picos::of_bytes(4096, 151.5), Picos(620_544));
        assert_eq!(Picos(1_999).duration(), Duration::from_nanos(1));
        assert_eq!(Picos::of_duration(Duration::from_micros(2)), Picos(2_000_000));
        assert_eq!(Picos::of_duration(Duration::MAX) + Picos(1), Picos(u64::MAX));
    }
}
