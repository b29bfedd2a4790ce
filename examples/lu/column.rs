//! The process column as the team of a panel: an all-gather of short messages, once for each column of the matrix.
//!
//! The collective of a group checks that its members make the same call; here they do by construction. So a member sends one put with a signal in
//! each of log2 p rounds, and nothing else (J. Bruck and others, *Efficient algorithms for all-to-all communications in multiport
//! message-passing systems*, IEEE Trans. Parallel Distrib. Syst. 8(11), 1997).
//!
//! Each rank has two slots, for calls of even and of odd number. Nobody has to say that one is free: a call ends when something has come of
//! every member, and that was sent after the member had ended the call before.

use global_arrays::prelude::*;
use ndarray::{ArrayView1, ArrayViewMut1};

use crate::axis::Axis;
use crate::panel::{Team, message_len};

/// See the module's essay.
pub(crate) struct Column {
    /// Members, and which is this one.
    size: usize,
    me: usize,
    /// The rank of member 0, and how far the next ones are.
    first: usize,
    step: usize,
    slots: Option<GlobalArray<f64, Ix2>>,
    /// Words of a slot.
    slot: usize,
    /// One for each round.
    there: Signal,
    calls: u32,
    /// Messages, from this member's on.
    rotated: Vec<f64>,
    skips: bool,
}

impl Column {
    /// Collective over the job. Ranks are numbered row by row of the grid.
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let (size, ranks) = (rows.processes, job.size());
        let slot = size * message_len(rows.block);
        let slots = (size > 1)
            .then(|| GlobalArray::builder(job, [ranks, 2 * slot]).grid([ranks, 1]).name("pivots").hollow().create())
            .transpose()?;
        let there = Signal::with_count(job, size.next_power_of_two().ilog2().max(1) as usize)?;
        let (me, first, step) = (rows.me, columns.me, columns.processes);
        let rotated = if size > 1 { vec![0.0; slot] } else { Vec::new() };
        Ok(Column { size, me, first, step, slots, slot, there, calls: 0, rotated, skips: job.skips() })
    }

    fn rank(&self, member: usize) -> usize {
        self.first + member * self.step
    }
}

impl Team for Column {
    type Error = Error;

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), Error> {
        let len = mine.len();
        let Some(slots) = &self.slots else {
            all.copy_from_slice(mine);
            return Ok(());
        };
        let start = self.calls as usize % 2 * self.slot;
        self.calls += 1;
        self.rotated[..len].copy_from_slice(mine);
        // After each round twice as many messages are here: those of the next members, round about.
        let rounds = (0..).map(|round| (round, 1 << round)).take_while(|&(_, here)| here < self.size);
        for (round, here) in rounds {
            let count = usize::min(here, self.size - here);
            let words = start + here * len..start + (here + count) * len;
            let [to, own] = [self.me + self.size - here, self.me].map(|member| self.rank(member % self.size));
            let (old, new) = self.rotated.split_at_mut(here * len);
            let target = self.there.at(to, round);
            slots.put_signal(s![to, words.clone()], ArrayView1::from(&old[..count * len]), target)?;
            self.there.wait_at_least(round, self.calls)?;
            slots.get_into(s![own, words], ArrayViewMut1::from(&mut new[..count * len]))?;
        }
        if !self.skips {
            let (before, behind) = all.split_at_mut(self.me * len);
            behind.copy_from_slice(&self.rotated[..behind.len()]);
            before.copy_from_slice(&self.rotated[behind.len()..][..before.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of any number of members, more often than there are slots, and of lengths that change.
    #[test]
    fn all_get_the_messages_of_all_in_their_order() {
        for (rows, columns) in [(1, 2), (2, 1), (3, 2), (4, 1), (5, 1), (7, 1)] {
            let launch = Launch::new().network("threads:unmapped").ranks(rows * columns);
            launch
                .run(|job| {
                    let axis = |processes, me| Axis { extent: 100, block: 6, processes, me };
                    let (row, column) = (job.rank() / columns, job.rank() % columns);
                    let mut team = Column::new(job, axis(rows, row), axis(columns, column))?;
                    for call in 0..9 {
                        let len = 1 + (5 * call) % message_len(6);
                        let message = |member: usize| (0..len).map(move |k| (1000 * member + 100 * call + k) as f64);
                        let mut all = vec![0.0; rows * len];
                        team.all_gather(&message(row).collect::<Vec<_>>(), &mut all)?;
                        assert_eq!(all, (0..rows).flat_map(message).collect::<Vec<_>>(), "{rows} x {columns}, call {call}");
                    }
                    job.sync()
                })
                .unwrap();
        }
    }
}
