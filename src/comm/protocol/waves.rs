//! Finds out whether all ranks of the job wait for good: one machine's part.
//!
//! The machines form a binomial tree. Only the first rank of each machine takes part, while it waits itself. The root begins a *wave* when
//! all ranks of its machine wait. The wave goes down the tree. Each machine answers once all of its own ranks wait and all machines below
//! have answered.
//!
//! An answer tells what became of the waits since the answer before ([`Stage`]). The root believes in a deadlock after three waves:
//!
//! 1. All waits are published.
//! 2. They are the same as then. So at the end of the first wave all ranks waited. All that they had sent to each other had been handled,
//!    because a wait is not published before.
//! 3. They are the same, and every rank has looked twice since the second wave. The second look began after that moment and found nothing.
//!    Nothing comes any more.

use std::{collections::BTreeMap, time::Duration};

/// The least time between the starts of two waves. A rank that waits looks twice meanwhile, and the third wave is no earlier than
/// [`DOUBT_FOR`].
const PACE: Duration = Duration::from_millis(1050);

/// The least time for which all ranks have waited when the root believes it.
const DOUBT_FOR: Duration = Duration::from_secs(2);

/// What became of the waits of a machine, and of those below it, since the last wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::comm) enum Stage {
    /// All wait.
    Waiting = 0,
    /// All are in the same waits.
    Same = 1,
    /// The same, and all have looked twice.
    Looked = 2,
}

impl Stage {
    pub(in crate::comm) fn of(code: u64) -> Option<Self> {
        [Stage::Waiting, Stage::Same, Stage::Looked].into_iter().find(|stage| *stage as u64 == code)
    }
}

/// What a machine has to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::comm) struct WaveStep {
    /// Pass a wave on to these machines.
    pub(in crate::comm) wave: Option<(u64, Vec<usize>)>,
    /// Answer a machine: the wave's number, what became of the waits, each rank and what it waits for.
    pub(in crate::comm) answer: Option<(usize, u64, Stage, String)>,
    /// At the root: all wait for good, and this is what for.
    pub(in crate::comm) found: Option<String>,
}

/// One machine's part in the waves.
#[derive(Debug)]
pub(in crate::comm) struct Waves {
    parent: Option<usize>,
    children: Vec<usize>,
    /// The number of the last wave that came, was passed on, was answered.
    came: u64,
    passed: u64,
    answered: u64,
    /// What machines below have answered.
    heard: BTreeMap<usize, (u64, Stage, String)>,
    /// The waits at the last answer, with their looks.
    last: Vec<(u64, u64)>,
    /// At the root: the start of the last wave, and the time since when the waits are the same.
    began: Option<Duration>,
    since: Option<Duration>,
    /// At the root: the last wave found the same waits as the one before.
    confirmed: bool,
}

impl Waves {
    pub(in crate::comm) fn new(machine: usize, machines: usize) -> Self {
        let (parent, children) = crate::comm::kit::tree::neighbors(machine, machines);
        Waves {
            parent,
            children,
            came: 0,
            passed: 0,
            answered: 0,
            heard: BTreeMap::new(),
            last: Vec::new(),
            began: None,
            since: None,
            confirmed: false,
        }
    }

    /// A wave has come from the parent.
    pub(in crate::comm) fn asked(&mut self, number: u64) {
        // They come one after the other.
        if number == self.came + 1 {
            self.came = number;
        }
    }

    /// A machine below has answered.
    pub(in crate::comm) fn heard(&mut self, machine: usize, number: u64, stage: Stage, text: String) {
        if self.children.contains(&machine) {
            self.heard.insert(machine, (number, stage, text));
        }
    }

    /// The next thing to do. `look` gives the waits of all ranks of this machine and their numbers of looks, if all wait. What it
    /// sees must be so after the call began.
    pub(in crate::comm) fn step(
        &mut self,
        now: Duration,
        look: impl FnOnce() -> Option<Vec<(u64, u64)>>,
        say: impl FnOnce() -> String,
    ) -> WaveStep {
        let mut step = WaveStep::default();
        let near = look();
        let rested = || self.began.is_none_or(|began| now.saturating_sub(began) >= PACE);
        if self.parent.is_none() && self.came == self.answered && near.is_some() && rested() {
            self.came += 1;
            self.began = Some(now);
        }
        if self.passed < self.came {
            self.passed = self.came;
            step.wave = (!self.children.is_empty()).then(|| (self.came, self.children.clone()));
        }
        let (Some(near), true) = (near, self.answered < self.came) else { return step };
        let mut stage = become_of(&self.last, &near);
        for child in &self.children {
            match self.heard.get(child) {
                Some(&(number, theirs, _)) if number == self.came => stage = stage.min(theirs),
                _ => return step,
            }
        }
        self.last = near;
        self.answered = self.came;
        let texts = || std::iter::once(say()).chain(self.heard.values().map(|(.., text)| text.clone()));
        let say = || texts().collect::<Vec<_>>().join(", ");
        match self.parent {
            Some(parent) => {
                step.answer = Some((parent, self.came, stage, if stage == Stage::Looked { say() } else { String::new() }))
            }
            None => {
                let since = *self.since.get_or_insert(now);
                let lasted = now.saturating_sub(since) >= DOUBT_FOR;
                if self.confirmed && stage == Stage::Looked && lasted {
                    step.found = Some(say());
                } else if stage == Stage::Waiting {
                    self.since = Some(now);
                }
                self.confirmed = stage >= Stage::Same;
            }
        }
        step
    }
}

/// What became of some waits.
fn become_of(last: &[(u64, u64)], now: &[(u64, u64)]) -> Stage {
    let pairs = || last.iter().zip(now);
    if last.len() != now.len() || pairs().any(|(last, now)| last.0 != now.0) {
        return Stage::Waiting;
    }
    if pairs().all(|(last, now)| now.1.wrapping_sub(last.1) >= 2) { Stage::Looked } else { Stage::Same }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::simulation::{Random, SEEDS};
    use super::*;

    /// A rank that computes, or waits for any message.
    #[derive(Debug, Default)]
    struct Rank {
        /// It computes until then.
        until: u64,
        /// Messages that have come and were not found, and those sent that have not.
        came: u32,
        unhandled: u32,
        /// Numbers its waits; odd while it waits and says so.
        number: u64,
        looks: u64,
    }

    /// What travels, when it comes.
    #[derive(Debug)]
    enum Sent {
        Message { from: usize, to: usize },
        Wave { to: usize, number: u64 },
        Answer { from: usize, to: usize, number: u64, stage: Stage, text: String },
    }

    /// Ranks on machines in turns. Time is in tenths of a second.
    struct World {
        ranks: Vec<Rank>,
        machines: Vec<Waves>,
        network: VecDeque<(u64, Sent)>,
        now: u64,
        /// Messages that ranks still send.
        left: usize,
        random: Random,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let mut random = Random::new(seed);
            let machines = 1 + random.below(5);
            let ranks = machines * (1 + random.below(2));
            let left = random.below(12);
            World {
                ranks: (0..ranks).map(|_| Rank::default()).collect(),
                machines: (0..machines).map(|machine| Waves::new(machine, machines)).collect(),
                network: VecDeque::new(),
                now: 0,
                left,
                random,
            }
        }

        /// Sends something that may be very late.
        fn send(&mut self, sent: Sent) {
            let slowest = [1, 3, 300][self.random.below(3)];
            self.network.push_back((self.now + 1 + self.random.below(slowest) as u64, sent));
        }

        fn is_stuck(&self) -> bool {
            let waits = |rank: &Rank| rank.until <= self.now && rank.came == 0;
            self.ranks.iter().all(waits) && !self.network.iter().any(|(_, sent)| matches!(sent, Sent::Message { .. }))
        }

        fn deliver(&mut self) {
            let (due, rest) = std::mem::take(&mut self.network).into_iter().partition(|(due, _)| *due <= self.now);
            let _: &VecDeque<_> = &due;
            self.network = rest;
            for (_, sent) in due {
                match sent {
                    Sent::Message { from, to } => {
                        self.ranks[to].came += 1;
                        self.ranks[from].unhandled -= 1;
                    }
                    Sent::Wave { to, number } => self.machines[to].asked(number),
                    Sent::Answer { from, to, number, stage, text } => self.machines[to].heard(from, number, stage, text),
                }
            }
        }

        /// A rank that does not compute looks.
        fn look(&mut self, at: usize) {
            let others = self.ranks.len() - 1;
            let rank = &mut self.ranks[at];
            if rank.until > self.now {
                return;
            }
            if rank.came > 0 {
                // Its wait is over. It computes, and then sends.
                rank.came -= 1;
                rank.number += rank.number % 2;
                rank.until = self.now + 1 + self.random.below(40) as u64;
                for _ in 0..self.random.below(3).min(self.left).min(others) {
                    self.left -= 1;
                    let to = (at + 1 + self.random.below(others)) % self.ranks.len();
                    self.ranks[at].unhandled += 1;
                    self.send(Sent::Message { from: at, to });
                }
            } else if rank.unhandled == 0 {
                rank.number |= 1;
                rank.looks += 1;
            }
        }

        /// What the first machine found.
        fn step(&mut self) -> Option<String> {
            self.now += 1;
            self.deliver();
            for rank in 0..self.ranks.len() {
                // Ranks look at their own times.
                if self.random.one_in(4) {
                    self.look(rank);
                }
            }
            let machines = self.machines.len();
            for machine in 0..machines {
                let near = || self.ranks.iter().skip(machine).step_by(machines);
                // Its first rank looks.
                if self.ranks[machine].until > self.now {
                    continue;
                }
                let all = near().all(|rank| rank.number % 2 == 1);
                let waits = all.then(|| near().map(|rank| (rank.number, rank.looks)).collect());
                let now = Duration::from_millis(100 * self.now);
                let WaveStep { wave, answer, found } =
                    self.machines[machine].step(now, || waits, || format!("machine {machine}"));
                for (number, to) in wave.into_iter().flat_map(|(number, to)| to.into_iter().map(move |to| (number, to))) {
                    self.send(Sent::Wave { to, number });
                }
                if let Some((to, number, stage, text)) = answer {
                    self.send(Sent::Answer { from: machine, to, number, stage, text });
                }
                if found.is_some() {
                    return found;
                }
            }
            None
        }
    }

    #[test]
    fn all_wait_for_good_is_found_if_it_is_so_and_never_else() {
        for seed in 0..SEEDS / 10 {
            let mut world = World::new(seed);
            // The first messages: some ranks have something to do.
            for _ in 0..2 {
                let to = world.random.below(world.ranks.len());
                world.ranks[to].came += 1;
            }
            let said = (0..20_000).find_map(|_| world.step()).unwrap_or_else(|| panic!("seed {seed}: not found"));
            assert!(world.is_stuck(), "seed {seed}: found at {} while some can go on: {:?}", world.now, world.ranks);
            assert!((0..world.machines.len()).all(|machine| said.contains(&format!("machine {machine}"))), "seed {seed}: {said}");
        }
    }

    #[test]
    fn a_wave_rests_while_some_compute() {
        let mut root = Waves::new(0, 2);
        let say = || String::from("root");
        let at = Duration::from_secs;
        assert_eq!(root.step(at(0), || None, say), WaveStep::default());
        let wave = WaveStep { wave: Some((1, vec![1])), ..WaveStep::default() };
        assert_eq!(root.step(at(1), || Some(vec![(1, 1)]), say), wave);
        for second in 2..100 {
            assert_eq!(root.step(at(second), || Some(vec![(1, second)]), say), WaveStep::default());
        }
    }
}
