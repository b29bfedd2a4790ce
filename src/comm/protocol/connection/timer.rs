//! The time for which an end waits for an answer before it sends again.
//!
//! Jacobson's estimate (RFC 6298): the smoothed round trip and four times its deviation. An answer names its datagram, and only the first
//! of a wait is measured, so no answer counts for another request (Karn). Resends double the time.

use std::time::Duration;

/// Bounds of the time until a datagram is sent again.
const SHORTEST: Duration = Duration::from_millis(1);
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// The time as long as nothing was measured: to make a queue pair takes 0.4 ms in ARMCI-ODCM §III-B2 and up to 8 ms on soft-RoCE.
const FIRST: Duration = Duration::from_millis(16);

/// The estimate of the round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    smooth: Option<Duration>,
    deviation: Duration,
}

impl Estimate {
    /// An answer took this time.
    pub(super) fn measured(&mut self, sample: Duration) {
        let sample = sample.min(LONGEST);
        let smooth = self.smooth.unwrap_or(sample);
        self.deviation = match self.smooth {
            Some(_) => (3 * self.deviation + smooth.abs_diff(sample)) / 4,
            None => sample / 2,
        };
        self.smooth = Some((7 * smooth + sample) / 8);
    }

    /// The time to wait for the first answer.
    pub(super) fn patience(&self) -> Duration {
        self.smooth.map_or(FIRST, |smooth| (smooth + 4 * self.deviation).clamp(SHORTEST, LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_round_trip_between_its_bounds() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.patience(), FIRST);
        let mut after = |millis: f64, times: usize| {
            (0..times).for_each(|_| estimate.measured(Duration::from_secs_f64(millis / 1e3)));
            estimate.patience().as_secs_f64() * 1e3
        };
        assert!((after(8.0, 1) - 24.0).abs() < 1e-6, "three times the first one");
        assert!((8.0..9.0).contains(&after(8.0, 60)), "no more than the round trip where it is steady");
        assert!(after(40.0, 1) > 40.0, "a late one is noticed at once");
        assert!(after(0.01, 100) == 1.0 && after(1e6, 100) == 1000.0, "bounds");
    }
}
