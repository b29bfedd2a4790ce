//! Whether the machines that a rank has to do with still answer.
//!
//! A rank watches a few machines, those that it met first, by two ranks of each at most. At every *beat* it asks those that it has not
//! heard of since the last one. A machine that has not said a word for so many beats is lost. Anything that arrives from it is a word.
//!
//! Only a machine that has answered a question once is watched: one whose ranks have nobody to answer while they compute never does.
//! Whoever was stopped itself has heard nobody, and begins to count anew.

/// Machines that a rank watches. An agreement makes each machine meet others, so every machine is watched by several.
const MACHINES: usize = 4;

/// Ranks of a machine that are asked: if one of them is stopped, by a debugger for instance, the other answers.
const RANKS: usize = 2;

#[derive(Debug)]
struct Machine {
    machine: usize,
    ranks: Vec<usize>,
    /// It has answered once.
    answers: bool,
    /// Beats since it was heard.
    silent: u32,
}

/// See the module's essay.
#[derive(Debug)]
pub(in crate::comm) struct Beats {
    watched: Vec<Machine>,
    limit: u32,
}

/// What a beat asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::comm) struct Beat {
    /// Ask these ranks.
    pub(in crate::comm) ask: Vec<usize>,
    /// The machine of this rank is lost.
    pub(in crate::comm) lost: Option<usize>,
}

impl Beats {
    /// A machine is lost after so many silent beats.
    pub(in crate::comm) fn new(limit: u32) -> Self {
        Beats { watched: Vec::new(), limit }
    }

    /// Something was exchanged with a rank of another machine for the first time.
    pub(in crate::comm) fn meets(&mut self, rank: usize, machine: usize) {
        let (known, watched) = (self.watched.len(), self.watched.iter_mut().find(|watched| watched.machine == machine));
        match watched {
            Some(watched) if watched.ranks.len() < RANKS => watched.ranks.push(rank),
            None if known < MACHINES => {
                self.watched.push(Machine { machine, ranks: vec![rank], answers: false, silent: 0 });
            }
            _ => {}
        }
    }

    /// A rank of a machine has answered a question.
    pub(in crate::comm) fn answers(&mut self, machine: usize) {
        self.watched.iter_mut().filter(|watched| watched.machine == machine).for_each(|watched| watched.answers = true);
    }

    /// One more beat; `heard` says whether a rank was heard since the last one. If this rank was `stopped` meanwhile, it could hear nobody.
    pub(in crate::comm) fn beat(&mut self, stopped: bool, mut heard: impl FnMut(usize) -> bool) -> Beat {
        let mut beat = Beat::default();
        for machine in &mut self.watched {
            // Each is asked, so that each says whether it was heard from here on.
            let words = machine.ranks.iter().filter(|&&rank| heard(rank)).count();
            machine.silent = if words > 0 || stopped { 0 } else { machine.silent + 1 };
            if machine.silent > 0 || !machine.answers {
                beat.ask.extend(&machine.ranks);
            }
            if machine.answers && machine.silent >= self.limit {
                beat.lost = machine.ranks.first().copied();
            }
        }
        beat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u32 = 8;

    /// Beats until a machine is lost, of so many.
    fn lost_after(beats: &mut Beats, most: u32, heard: impl Fn(u32, usize) -> bool) -> Option<(u32, usize)> {
        (1..=most).find_map(|beat| Some((beat, beats.beat(false, |rank| heard(beat, rank)).lost?)))
    }

    fn watching(ranks: &[(usize, usize)]) -> Beats {
        let mut beats = Beats::new(LIMIT);
        ranks.iter().for_each(|&(rank, machine)| beats.meets(rank, machine));
        ranks.iter().for_each(|&(_, machine)| beats.answers(machine));
        beats
    }

    #[test]
    fn who_says_nothing_for_long_is_lost() {
        assert_eq!(lost_after(&mut watching(&[(5, 1), (9, 2)]), 100, |_, rank| rank == 9), Some((LIMIT, 5)));
        // A word in time, every time.
        assert_eq!(lost_after(&mut watching(&[(5, 1)]), 100, |beat, _| beat % LIMIT == 0), None);
        assert_eq!(lost_after(&mut watching(&[(5, 1)]), 100, |beat, _| beat == 20), Some((LIMIT, 5)));
    }

    #[test]
    fn a_machine_is_there_if_one_of_its_ranks_is() {
        assert_eq!(lost_after(&mut watching(&[(5, 1), (6, 1)]), 100, |_, rank| rank == 6), None);
    }

    #[test]
    fn who_never_answers_is_not_watched() {
        let mut beats = Beats::new(LIMIT);
        beats.meets(5, 1);
        assert_eq!(lost_after(&mut beats, 100, |_, _| false), None);
        assert_eq!(beats.beat(false, |_| true).ask, [5], "it is asked again");
    }

    #[test]
    fn who_was_stopped_begins_anew() {
        let mut beats = watching(&[(5, 1)]);
        for _ in 0..100 {
            assert_eq!(lost_after(&mut beats, LIMIT - 1, |_, _| false), None);
            assert_eq!(beats.beat(true, |_| false).lost, None);
        }
    }

    #[test]
    fn few_are_asked_and_only_if_they_are_silent() {
        let ranks: Vec<(usize, usize)> = (0..300).map(|rank| (rank, rank / 3)).collect();
        let mut beats = watching(&ranks);
        assert_eq!(beats.beat(false, |_| true), Beat::default());
        assert_eq!(beats.beat(false, |rank| rank != 3 && rank != 4).ask, [3, 4]);
        assert_eq!(beats.beat(false, |_| false).ask.len(), MACHINES * RANKS);
    }
}
