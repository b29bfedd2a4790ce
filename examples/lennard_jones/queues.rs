//! Tasks that wait: a queue for each rank, with an atomic counter from which any rank may take.
//!
//! A queue lies in the memory of its rank: the tasks as words of a global array, the heaviest first, at the end of the rank's part; and a
//! counter, which says how many are taken. So no rank keeps a table of all tasks, or of what others have. A rank from elsewhere looks at the
//! counter, at the word that it points at, and takes. Of a queue that is longer than a part, the owner does the first tasks without the counter.
//!
//! A counter is never set back. When a queue is ready, its owner moves the counter on to the next [`ROUND`]; a queue whose counter has not come
//! there has nothing for others yet. The tasks of a round are written only when nobody takes from the round before any more: all ranks have
//! begun the next step.

use global_arrays::prelude::*;
use ndarray::ArrayView1;

use crate::plan::{Shares, Task};

/// Of a counter: more than the tasks of a queue and the ranks that may count in a step.
const ROUND: u64 = 1 << 32;

/// Most tasks of a rank that others can take, 32 KiB of words.
const LONGEST: usize = 4096;

/// In a word: so much is left when this task is next that another rank should make a list of its own for it.
const WORTH: u64 = 1 << 63;
const BLOCK_BITS: u32 = 31;

/// All queues, as one rank sees them.
#[derive(Debug)]
pub(crate) struct Queues {
    rank: usize,
    /// The counter of each rank's queue, at that rank.
    counters: GlobalArray<u64, Ix1>,
    words: GlobalArray<u64, Ix1>,
    /// Words of a rank.
    room: usize,
    /// Where all counters began in this step.
    round: u64,
    /// This rank's tasks.
    own: Vec<Task>,
    /// How many of those that are not for others are done.
    alone: usize,
}

impl Queues {
    /// Empty queues. Collective.
    pub(crate) fn new(job: &Job, shares: Shares) -> Result<Self, Error> {
        // A rank has half of the row of each of its blocks, or a share of one. Twice that, for what it takes from others.
        let rows = shares.blocks.div_ceil(shares.ranks);
        let sharers = (shares.ranks / shares.blocks).max(1);
        let room = (rows * (shares.blocks + 2)).div_ceil(sharers).min(LONGEST);
        let array = |name: &str, each: usize| {
            let all = GlobalArray::builder(job, [job.size() * each]).block_cyclic([each]);
            all.name(name).zeros().create()
        };
        Ok(Queues {
            rank: job.rank(),
            counters: array("tasks taken", 1)?,
            words: array("tasks", room)?,
            room,
            round: 0,
            own: Vec::new(),
            alone: 0,
        })
    }

    /// Puts tasks with their costs into the own queue in place of what is there. To others a task is worth while if `times` its cost is left.
    /// Returns whether there is any for others. One-sided; no rank may be taking tasks of the present round.
    pub(crate) fn fill(&mut self, job: &Job, mut tasks: Vec<(Task, u64)>, times: u64) -> Result<bool, Error> {
        tasks.sort_unstable_by_key(|&(task, cost)| (std::cmp::Reverse(cost), task));
        let mut left = 0;
        let mut words: Vec<u64> = Vec::with_capacity(tasks.len());
        for (Task { a, b }, cost) in tasks.iter().rev() {
            left += cost;
            let worth = if left >= times * cost { WORTH } else { 0 };
            words.push(worth | u64::from(*a) << BLOCK_BITS | u64::from(*b));
        }
        words.truncate(self.room);
        words.reverse();
        let end = (self.rank + 1) * self.room;
        self.words.put(end - words.len()..end, ArrayView1::from(&words))?;
        // Whoever sees the counter move on sees the words.
        job.fence(self.rank)?;
        self.own.clear();
        self.own.extend(tasks.into_iter().map(|(task, _)| task));
        Ok(words.iter().any(|word| word & WORTH != 0))
    }

    /// Lets ranks take the tasks of the own queue from the first on. One-sided, when no rank takes tasks of the round before.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        self.round += ROUND;
        self.alone = 0;
        let start = self.room - self.own.len().min(self.room);
        self.counters.swap([self.rank], self.round + start as u64)?;
        Ok(())
    }

    /// Takes the next task of the own queue.
    pub(crate) fn take_own(&mut self) -> Result<Option<Task>, Error> {
        if self.alone < self.own.len().saturating_sub(self.room) {
            self.alone += 1;
            return Ok(Some(self.own[self.alone - 1]));
        }
        let place = self.counters.fetch_add([self.rank], 1)? - self.round;
        Ok(self.own.get(self.own.len() + place as usize - self.room).copied().filter(|_| (place as usize) < self.room))
    }

    /// The task that is next in another rank's queue, and whether it is worth a list.
    pub(crate) fn next(&self, rank: usize) -> Result<Option<(Task, bool)>, Error> {
        let place = self.counters.load([rank])?.checked_sub(self.round);
        self.read(rank, place)
    }

    /// Takes the next task of another rank's queue.
    pub(crate) fn take(&self, rank: usize) -> Result<Option<Task>, Error> {
        let place = self.counters.fetch_add([rank], 1)?.checked_sub(self.round);
        Ok(self.read(rank, place)?.map(|(task, _)| task))
    }

    fn read(&self, rank: usize, place: Option<u64>) -> Result<Option<(Task, bool)>, Error> {
        let Some(place) = place.filter(|&place| place < self.room as u64) else { return Ok(None) };
        let word = self.words.load([rank * self.room + place as usize])?;
        let block = |word: u64| (word & ((1 << BLOCK_BITS) - 1)) as u32;
        Ok(Some((Task { a: block(word >> BLOCK_BITS), b: block(word) }, word & WORTH != 0)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Queues of no task, of some, and of more than others can see.
    #[test]
    fn each_task_is_taken_once() {
        for network in ["threads", "threads:unmapped"] {
            let taken = Mutex::new(Vec::new());
            let body = |job: &Job| {
                let mut queues = Queues::new(job, Shares { blocks: 4, ranks: 3 })?;
                for round in 0..3 {
                    let own = [0, 5, 2 * queues.room][job.rank()] as u32;
                    let tasks = (0..own).map(|k| (Task { a: job.rank() as u32 + 3 * round, b: k }, u64::from(k))).collect();
                    queues.fill(job, tasks, 1)?;
                    queues.open()?;
                    while let Some(task) = queues.take_own()? {
                        taken.lock().unwrap().push(task);
                    }
                    for other in (0..job.size()).filter(|&other| other != job.rank()) {
                        while let Some(task) = queues.take(other)? {
                            taken.lock().unwrap().push(task);
                        }
                    }
                    job.sync()?;
                }
                Ok::<(), Error>(())
            };
            Launch::new().ranks(3).network(network).run(body).unwrap();
            let mut taken = taken.into_inner().unwrap();
            let all = taken.len();
            taken.sort_unstable();
            taken.dedup();
            assert_eq!((all, taken.len()), (3 * (5 + 2 * 12), all), "{network}");
        }
    }

    #[test]
    fn what_is_next_is_told_with_its_worth() {
        let body = |job: &Job| {
            let mut queues = Queues::new(job, Shares { blocks: 9, ranks: 2 })?;
            let tasks = if job.rank() == 0 { vec![(Task { a: 1, b: 8 }, 3), (Task { a: 0, b: 2 }, 5)] } else { Vec::new() };
            assert!(!queues.fill(job, tasks, 2)?);
            if job.rank() == 1 {
                queues.open()?;
                assert_eq!(queues.next(0)?, None);
            }
            job.sync()?;
            if job.rank() == 0 {
                queues.open()?;
            }
            job.sync()?;
            assert_eq!((queues.next(0)?, queues.next(1)?), (Some((Task { a: 0, b: 2 }, false)), None));
            job.sync()?;
            if job.rank() == 1 {
                assert_eq!((queues.take(0)?, queues.take(0)?), (Some(Task { a: 0, b: 2 }), Some(Task { a: 1, b: 8 })));
                assert_eq!((queues.take(0)?, queues.take(1)?), (None, None));
            }
            job.sync()
        };
        Launch::new().ranks(2).network("threads").run(body).unwrap();
    }
}
