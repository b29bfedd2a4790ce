//! What tests of the machines share: numbers from a seed, and channels that keep only their own order.

use std::collections::VecDeque;

pub(super) use crate::comm::kit::random::Random;

/// Seeds of a test, each a schedule.
pub(super) const SEEDS: u64 = 10_000;

impl Random {
    /// Returns true once in `times` calls, on average.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// The first thing that is possible, looked for from a random one on.
    pub(super) fn pick<T>(&mut self, of: usize, mut possible: impl FnMut(usize) -> Option<T>) -> Option<T> {
        let first = self.below(of);
        (0..of).find_map(|k| possible((first + k) % of))
    }
}

/// Messages under way. Those of one channel arrive in the order of their sending, after any time.
#[derive(Debug)]
pub(super) struct Channels<T>(Vec<VecDeque<T>>);

impl<T> Channels<T> {
    pub(super) fn new(channels: usize) -> Self {
        Channels((0..channels).map(|_| VecDeque::new()).collect())
    }

    pub(super) fn len(&self, channel: usize) -> usize {
        self.0[channel].len()
    }

    pub(super) fn send(&mut self, channel: usize, message: T) {
        self.0[channel].push_back(message);
    }

    /// A message that arrives, and its channel.
    pub(super) fn receive(&mut self, random: &mut Random) -> Option<(usize, T)> {
        random.pick(self.0.len(), |channel| Some((channel, self.0[channel].pop_front()?)))
    }
}
