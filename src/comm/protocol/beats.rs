//! Finds out whether the machines that a rank has to do with still answer.
//!
//! A rank watches the machines that it met first, and those that it asked last because it waits for a rank of theirs. At every *beat* it
//! asks those that were silent since the last one. A machine is lost when none of its ranks was heard for the time of silence, if it has
//! answered before: ranks without an agent do not answer while they compute. A beat counts for twice its usual time at most, because a rank
//! that was stopped itself has heard nobody.

use std::time::Duration;

/// Machines that are watched because they were met first, and because they were asked last.
const FIRST: usize = 4;
const ASKED: usize = 2;

/// Ranks of a machine that are asked.
const RANKS: usize = 2;

/// The most time that a beat counts for.
const LONGEST: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct BeatingMachine {
    machine: usize,
    ranks: Vec<usize>,
    /// It has answered once.
    answers: bool,
    heard: bool,
    /// The time for which it was not heard.
    silent: Duration,
    doubted: bool,
}

/// The machines that a rank watches.
#[derive(Debug)]
pub(in crate::comm) struct Beats {
    first: Vec<BeatingMachine>,
    /// The machine that was asked last is at the end.
    asked: Vec<BeatingMachine>,
    silence: Option<Duration>,
}

/// What a beat asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::comm) struct Beat {
    /// Ask these ranks.
    pub(in crate::comm) ask: Vec<usize>,
    /// Ask others of the machines of these ranks too.
    pub(in crate::comm) doubted: Vec<usize>,
    /// The machine of this rank is lost.
    pub(in crate::comm) lost: Option<usize>,
}

impl Beats {
    /// A machine that is silent for `silence` is lost; without that limit none ever is.
    pub(in crate::comm) fn new(silence: Option<Duration>) -> Self {
        Beats { first: Vec::new(), asked: Vec::new(), silence }
    }

    fn find(&mut self, machine: usize) -> Option<&mut BeatingMachine> {
        self.first.iter_mut().chain(&mut self.asked).find(|watched| watched.machine == machine)
    }

    fn watch(rank: usize, machine: usize) -> BeatingMachine {
        BeatingMachine { machine, ranks: vec![rank], answers: false, heard: true, silent: Duration::ZERO, doubted: false }
    }

    /// Something was exchanged with a rank of another machine for the first time.
    pub(in crate::comm) fn meets(&mut self, rank: usize, machine: usize) {
        let has_room = self.first.len() < FIRST;
        match self.find(machine) {
            Some(watched) if watched.ranks.len() < RANKS => watched.ranks.push(rank),
            None if has_room => self.first.push(Self::watch(rank, machine)),
            _ => {}
        }
    }

    /// A rank of another machine is asked, because this one waits for it.
    pub(in crate::comm) fn asks(&mut self, rank: usize, machine: usize) {
        if self.find(machine).is_none() {
            if self.asked.len() == ASKED {
                self.asked.remove(0);
            }
            self.asked.push(Self::watch(rank, machine));
        }
    }

    /// Something came from a machine since the last beat.
    pub(in crate::comm) fn hears(&mut self, machine: usize) {
        self.find(machine).into_iter().for_each(|watched| watched.heard = true);
    }

    /// A rank of a machine has answered a question.
    pub(in crate::comm) fn answers(&mut self, machine: usize) {
        self.find(machine).into_iter().for_each(|watched| watched.answers = true);
    }

    /// One more beat, `elapsed` after the last one.
    pub(in crate::comm) fn beat(&mut self, elapsed: Duration) -> Beat {
        let mut beat = Beat::default();
        let Some(silence) = self.silence else { return beat };
        for watched in self.first.iter_mut().chain(&mut self.asked) {
            if std::mem::take(&mut watched.heard) {
                (watched.silent, watched.doubted) = (Duration::ZERO, false);
            } else {
                watched.silent += elapsed.min(LONGEST);
            }
            if !watched.silent.is_zero() || !watched.answers {
                beat.ask.extend(&watched.ranks);
            }
            if watched.silent >= silence / 2 && !std::mem::replace(&mut watched.doubted, true) {
                beat.doubted.extend(watched.ranks.first());
            }
            if watched.answers && watched.silent >= silence {
                beat.lost = watched.ranks.first().copied();
            }
        }
        beat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Duration = Duration::from_millis(250);
    const SILENCE: Duration = Duration::from_secs(2);
    const LIMIT: u32 = 8;

    /// Beats until a machine is lost, `most` times at most. `heard` says of which machines something came.
    fn lost_after(beats: &mut Beats, most: u32, heard: impl Fn(u32, usize) -> bool) -> Option<(u32, usize)> {
        beats.beat(BEAT);
        (1..=most).find_map(|beat| {
            (0..100).filter(|&machine| heard(beat, machine)).for_each(|machine| beats.hears(machine));
            Some((beat, beats.beat(BEAT).lost?))
        })
    }

    fn watching(ranks: &[(usize, usize)]) -> Beats {
        let mut beats = Beats::new(Some(SILENCE));
        ranks.iter().for_each(|&(rank, machine)| beats.meets(rank, machine));
        ranks.iter().for_each(|&(_, machine)| beats.answers(machine));
        beats
    }

    #[test]
    fn who_says_nothing_for_long_is_lost() {
        assert_eq!(lost_after(&mut watching(&[(5, 1), (9, 2)]), 100, |_, machine| machine == 2), Some((LIMIT, 5)));
        // A word in time, every time.
        assert_eq!(lost_after(&mut watching(&[(5, 1)]), 100, |beat, _| beat % LIMIT == 0), None);
        let mut unlimited = Beats::new(None);
        unlimited.meets(5, 1);
        unlimited.answers(1);
        assert_eq!(lost_after(&mut unlimited, 1000, |_, _| false), None);
    }

    #[test]
    fn who_never_answers_is_not_watched() {
        let mut beats = Beats::new(Some(SILENCE));
        beats.meets(5, 1);
        assert_eq!(lost_after(&mut beats, 100, |_, _| false), None);
        beats.hears(1);
        assert_eq!(beats.beat(BEAT).ask, [5], "it is asked again");
    }

    #[test]
    fn who_was_stopped_has_heard_nobody() {
        let mut beats = watching(&[(5, 1)]);
        beats.beat(BEAT);
        assert_eq!((0..3).find_map(|_| beats.beat(Duration::from_secs(3600)).lost), None);
        assert_eq!(beats.beat(Duration::from_secs(3600)).lost, Some(5));
    }

    #[test]
    fn others_of_a_machine_are_asked_before_it_is_lost() {
        let mut beats = watching(&[(5, 1)]);
        let doubted: Vec<_> = (0..=LIMIT).map(|_| beats.beat(BEAT).doubted.len()).collect();
        assert_eq!((doubted.iter().sum::<usize>(), doubted[LIMIT as usize / 2]), (1, 1));
    }

    #[test]
    fn few_are_watched_and_the_last_that_was_asked() {
        let ranks: Vec<(usize, usize)> = (0..300).map(|rank| (rank, rank / 3)).collect();
        let mut beats = watching(&ranks);
        assert_eq!(beats.beat(BEAT), Beat::default());
        (0..300).for_each(|rank| beats.asks(rank, rank / 3));
        beats.beat(BEAT);
        assert_eq!(beats.beat(BEAT).ask.len(), FIRST * RANKS + ASKED);
        beats.answers(99);
        let others = |_, machine| machine != 99;
        assert_eq!(lost_after(&mut beats, 100, others).map(|(_, rank)| rank), Some(297));
    }
}
