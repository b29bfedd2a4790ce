//! The peers that an endpoint does not reach, since when and why, and which of them are lost.
//!
//! A peer is away when its connection broke, when it was not found, or when it does not answer a request for a connection. It is
//! lost after the time of silence, or ten times that if it does not answer a request. A pause between two looks at the device
//! counts as [`PAUSE`] at most, because a process without processor time cannot reconnect.

use std::time::Duration;

/// The most that a pause between looks counts.
const PAUSE: Duration = Duration::from_millis(50);

/// A peer that is only asked has this many times as long: it may still start, or make queue pairs for many others first.
const ASKED: u32 = 10;

/// The peers that an endpoint does not reach.
#[derive(Debug, Default)]
pub(in crate::comm) struct Absences {
    away: Vec<Absence>,
    /// The last look, and the sum of all pauses that count.
    last: Duration,
    looked: Duration,
    silence: Option<Duration>,
}

/// A peer that is away.
#[derive(Debug)]
pub(in crate::comm) struct Absence {
    pub(in crate::comm) peer: usize,
    pub(in crate::comm) why: String,
    /// In the time of looks.
    since: Duration,
    /// Nothing broke, but it does not answer.
    is_asked: bool,
}

impl Absences {
    /// Sets the time after which a peer that is away is lost. Without one, none ever is.
    pub(in crate::comm) fn loses_after(&mut self, silence: Option<Duration>) {
        self.silence = silence;
    }

    /// A peer is away, from now on or already.
    pub(in crate::comm) fn begins(&mut self, peer: usize, why: String) {
        self.add(peer, false, || why);
    }

    /// A peer was asked, and has not answered yet.
    pub(in crate::comm) fn asks(&mut self, peer: usize, why: impl FnOnce() -> String) {
        self.add(peer, true, why);
    }

    fn add(&mut self, peer: usize, is_asked: bool, why: impl FnOnce() -> String) {
        if !self.away.iter().any(|absence| absence.peer == peer) {
            self.away.push(Absence { peer, why: why(), since: self.looked, is_asked });
        }
    }

    /// An answer has come: peers that were only asked and have answered are not away.
    pub(in crate::comm) fn hears(&mut self, has_answered: impl Fn(usize) -> bool) {
        self.away.retain(|absence| !absence.is_asked || !has_answered(absence.peer));
    }

    /// A peer is not away, or not any more.
    pub(in crate::comm) fn ends(&mut self, peer: usize) {
        self.away.retain(|absence| absence.peer != peer);
    }

    /// The endpoint looks, unless it did so in the time `between` two looks. Returns true if it looks.
    pub(in crate::comm) fn looks(&mut self, now: Duration, between: Duration) -> bool {
        let pause = now.saturating_sub(self.last);
        let looks = pause >= between;
        if looks {
            self.last = now;
            self.looked += pause.min(PAUSE);
        }
        looks
    }

    /// A peer that is lost, and the time that it may be away.
    pub(in crate::comm) fn lost(&self) -> Option<(&Absence, Duration)> {
        let silence = self.silence?;
        let limit = |absence: &Absence| if absence.is_asked { silence.saturating_mul(ASKED) } else { silence };
        let lost = self.away.iter().find(|absence| self.looked >= absence.since.saturating_add(limit(absence)));
        lost.map(|absence| (absence, limit(absence)))
    }

    #[cfg(test)]
    pub(in crate::comm) fn is_any(&self) -> bool {
        !self.away.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BETWEEN: Duration = Duration::from_millis(5);
    const SILENCE: Duration = Duration::from_millis(200);

    fn absences() -> Absences {
        let mut absences = Absences::default();
        absences.loses_after(Some(SILENCE));
        absences
    }

    fn lost(absences: &Absences) -> Option<(usize, &str)> {
        absences.lost().map(|(absence, _)| (absence.peer, &*absence.why))
    }

    #[test]
    fn who_stays_away_is_lost_for_the_first_reason() {
        let mut absences = absences();
        assert!(absences.looks(Duration::from_millis(10), BETWEEN));
        absences.begins(3, "it broke".into());
        absences.begins(3, "it was not found".into());
        absences.begins(1, "it broke later".into());
        for at in (20..210).step_by(10) {
            assert!(absences.looks(Duration::from_millis(at), BETWEEN));
            assert_eq!(lost(&absences), None, "after {at} ms");
        }
        absences.looks(Duration::from_millis(210), BETWEEN);
        assert_eq!(lost(&absences), Some((3, "it broke")));
        absences.ends(3);
        absences.ends(7);
        assert_eq!(lost(&absences), Some((1, "it broke later")));
        absences.ends(1);
        assert_eq!((lost(&absences), absences.is_any()), (None, false));
    }

    #[test]
    fn who_comes_back_begins_anew() {
        let mut absences = absences();
        absences.begins(3, String::new());
        (1..=15).for_each(|step| assert!(absences.looks(step * 10 * Duration::from_millis(1), BETWEEN)));
        absences.ends(3);
        absences.begins(3, String::new());
        (16..=34).for_each(|step| assert!(absences.looks(step * 10 * Duration::from_millis(1), BETWEEN)));
        assert_eq!(lost(&absences), None);
        absences.looks(Duration::from_millis(350), BETWEEN);
        assert_eq!(lost(&absences), Some((3, "")));
    }

    #[test]
    fn who_is_asked_is_away_until_something_comes() {
        let mut absences = absences();
        absences.begins(2, "it broke".into());
        (1..=3).for_each(|peer| absences.asks(peer, || format!("{peer} does not answer")));
        absences.hears(|peer| peer != 3);
        (1..=20).for_each(|step| assert!(absences.looks(step * 10 * Duration::from_millis(1), BETWEEN)));
        assert_eq!(lost(&absences), Some((2, "it broke")), "what has broken stays so when something comes");
        absences.ends(2);
        (21..=199).for_each(|step| assert!(absences.looks(step * 10 * Duration::from_millis(1), BETWEEN)));
        assert_eq!(lost(&absences), None, "it has longer");
        absences.looks(Duration::from_secs(2), BETWEEN);
        assert_eq!(lost(&absences), Some((3, "3 does not answer")));
        absences.hears(|_| true);
        assert_eq!((lost(&absences), absences.is_any()), (None, false));
    }

    #[test]
    fn a_long_pause_of_the_endpoint_is_no_long_absence() {
        let mut absences = absences();
        absences.begins(3, String::new());
        (1..=3).for_each(|hour| assert!(absences.looks(hour * Duration::from_secs(3600), BETWEEN)));
        assert_eq!(lost(&absences), None);
        assert!(absences.looks(Duration::from_secs(4 * 3600), BETWEEN));
        assert_eq!(lost(&absences), Some((3, "")));
    }

    #[test]
    fn looks_in_a_row_are_one() {
        let mut absences = absences();
        let looks = [5, 6, 9, 10, 14, 15].map(|at| absences.looks(Duration::from_millis(at), BETWEEN));
        assert_eq!(looks, [true, false, false, true, false, true]);
        assert_eq!(absences.looked, Duration::from_millis(15));
    }

    #[test]
    fn without_a_limit_nobody_is_lost() {
        let mut absences = Absences::default();
        absences.begins(3, String::new());
        (1..1000).for_each(|second| assert!(absences.looks(Duration::from_secs(second), BETWEEN)));
        assert_eq!(lost(&absences), None);
    }
}
