//! The process column as the team of a panel: one message for each column of the matrix, combined over all members.
//!
//! A collective of a group would check that its members make the same call; here they do by construction. So a member sends one put with a
//! signal in each of log2 p rounds, and nothing else: in round r to the member 2^r places back, what it has heard of the 2^r from itself on (a
//! dissemination: D. Hensgen, R. Finkel, U. Manber, *Two algorithms for barrier synchronization*, Int. J. Parallel Program. 17(1), 1988). If p is
//! no power of two some messages are combined twice, which does not matter.
//!
//! Each round has a channel of two slots, for calls of even and of odd number. Nobody waits for a free one: a call ends when something has come
//! of every member, and that was sent after the member had ended the call before.

use super::{
    panel::{Team, combine, message_len},
    place::Place,
};
use crate::{
    element::Element,
    error::{Error, Result},
    linalg::field::Field,
    message::channel::{Channels, Inlet, Outlet, from, to},
    sync::Group,
};

/// See the module's essay.
pub(super) struct Column<T: Element> {
    /// Members.
    size: usize,
    /// One for each round.
    outlets: Vec<Outlet<T>>,
    inlets: Vec<Inlet<T>>,
    skips: bool,
}

impl<T: Field> Column<T> {
    /// Collective over the group.
    pub(super) fn new(group: &Group, place: Place) -> Result<Self> {
        let (rows, most) = (place.rows, message_len(place.rows.block));
        let size = rows.processes;
        let member = |row: usize| place.member(row % size, place.columns.me);
        let rounds = || (0..).map(|round| (round, 1 << round)).take_while(|&(_, here)| here < size);
        let (outlets, inlets) = Channels::new(group).hollow().open(
            rounds().map(|(round, here)| to(member(rows.me + size - here), round, most)).collect::<Vec<_>>(),
            rounds().map(|(round, here)| from(member(rows.me + here), round)).collect::<Vec<_>>(),
        )?;
        Ok(Column { size, outlets, inlets, skips: group.skips() })
    }
}

impl<T: Field> Team<T> for Column<T> {
    type Error = Error;

    fn size(&self) -> usize {
        self.size
    }

    fn combine_all(&mut self, message: &mut [T]) -> Result<()> {
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
    use super::{
        super::{panel::head, place::Blocking},
        *,
    };
    use crate::prelude::*;

    /// Any number of members, more often than there are slots, and lengths that change.
    #[test]
    fn all_have_the_best_candidate_and_the_row_that_makes_room() {
        for (rows, columns) in [(1, 2), (2, 1), (3, 2), (4, 1), (5, 1), (7, 1)] {
            let launch = Launch::new().network("threads:unmapped").ranks(rows * columns);
            launch
                .run(|job| {
                    let mut team = Column::new(job, Place::new(job, 100, Blocking { edge: 6, grid: [rows, columns] }))?;
                    let row = job.rank() / columns;
                    for call in 0..4 * rows {
                        let width = 1 + call % 6;
                        // Two have the best candidate; one of them has the smaller row.
                        let magnitude = |member: usize| if (member + call) % rows < 2 { 5.0 } else { 1.0 };
                        let own = |what: usize| vec![(1000 * what + 100 * row + call) as f64; width];
                        let head = head(magnitude(row), row, row == call % rows);
                        let head = head.to_vec();
                        let mut message = [head, own(1), own(2)].concat();
                        team.combine_all(&mut message)?;
                        let best = (0..rows).find(|&member| magnitude(member) == 5.0).unwrap();
                        let of = |what: usize, member: usize| vec![(1000 * what + 100 * member + call) as f64; width];
                        let expected = [vec![5.0, 0.0, best as f64, 1.0], of(1, best), of(2, call % rows)].concat();
                        // A single member has its own, as it was.
                        assert!(rows == 1 || message == expected, "{rows} x {columns}, call {call}: {message:?}, {expected:?}");
                    }
                    job.sync()
                })
                .unwrap();
        }
    }
}
