//! The process column as the team of a panel: one message for each column of the matrix, combined over all members.
//!
//! A collective of a group would check that its members make the same call; here they do by construction. So a member sends one put with a
//! signal in each of log2 p rounds, and nothing else: in round r to the member 2^r places back, what it has heard of the 2^r from itself on (a
//! dissemination: D. Hensgen, R. Finkel, U. Manber, *Two algorithms for barrier synchronization*, Int. J. Parallel Program. 17(1), 1988). If p is
//! no power of two some messages are combined twice, which does not matter.
//!
//! Each round has a channel of two slots, for calls of even and of odd number. Nobody waits for a free one: a call ends when something has come
//! of every member, and that was sent after the member had ended the call before.

use global_arrays::{
    channel::{Channels, Inlet, Outlet, from, to},
    prelude::*,
};

use crate::axis::Axis;
use crate::panel::{Team, combine, message_len};

/// See the module's essay.
pub(crate) struct Column {
    /// Members.
    size: usize,
    /// One for each round.
    outlets: Vec<Outlet<f64>>,
    inlets: Vec<Inlet<f64>>,
    skips: bool,
}

impl Column {
    /// Collective over the job. Ranks are numbered row by row of the grid.
    pub(crate) fn new(job: &Job, rows: Axis, columns: Axis) -> Result<Self, Error> {
        let (size, most) = (rows.processes, message_len(rows.block));
        let rank = |member: usize| member % size * columns.processes + columns.me;
        let rounds = || (0..).map(|round| (round, 1 << round)).take_while(|&(_, here)| here < size);
        let (outlets, inlets) = Channels::new(job).hollow().open(
            rounds().map(|(round, here)| to(rank(rows.me + size - here), round, most)).collect::<Vec<_>>(),
            rounds().map(|(round, here)| from(rank(rows.me + here), round)).collect::<Vec<_>>(),
        )?;
        Ok(Column { size, outlets, inlets, skips: job.simulation().skips() })
    }
}

impl Team for Column {
    type Error = Error;

    fn size(&self) -> usize {
        self.size
    }

    fn combine_all(&mut self, message: &mut [f64]) -> Result<(), Error> {
        for (outlet, inlet) in self.outlets.iter_mut().zip(&mut self.inlets) {
            outlet.put(&*message)?;
            let arrived = inlet.wait()?;
            if !self.skips {
                combine(message, &arrived);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any number of members, more often than there are slots, and lengths that change.
    #[test]
    fn all_have_the_best_candidate_and_the_row_that_makes_room() {
        for (rows, columns) in [(1, 2), (2, 1), (3, 2), (4, 1), (5, 1), (7, 1)] {
            let launch = Launch::new().network("threads:unmapped").ranks(rows * columns);
            launch
                .run(|job| {
                    let axis = |processes, me| Axis { extent: 100, block: 6, processes, me };
                    let (row, column) = (job.rank() / columns, job.rank() % columns);
                    let mut team = Column::new(job, axis(rows, row), axis(columns, column))?;
                    for call in 0..4 * rows {
                        let width = 1 + call % 6;
                        // Two have the best candidate; one of them has the smaller row.
                        let magnitude = |member: usize| if (member + call) % rows < 2 { 5.0 } else { 1.0 };
                        let own = |what: usize| vec![(1000 * what + 100 * row + call) as f64; width];
                        let head = vec![magnitude(row), row as f64, f64::from(u8::from(row == call % rows))];
                        let mut message = [head, own(1), own(2)].concat();
                        team.combine_all(&mut message)?;
                        let best = (0..rows).find(|&member| magnitude(member) == 5.0).unwrap();
                        let of = |what: usize, member: usize| vec![(1000 * what + 100 * member + call) as f64; width];
                        let expected = [vec![5.0, best as f64, 1.0], of(1, best), of(2, call % rows)].concat();
                        // A single member has its own, as it was.
                        assert!(rows == 1 || message == expected, "{rows} x {columns}, call {call}: {message:?}, {expected:?}");
                    }
                    job.sync()
                })
                .unwrap();
        }
    }
}
