//! Updates sorted by owner and sent as messages, whose handler applies them to the part that it borrows.
//!
//! A rank generates [`ROUND`] updates, calls each owner with those that are its, and goes on. Before the next round but one it waits for the
//! answers: so it holds back no more than three rounds, the 1024 updates that the rules allow. No rank waits for another to generate.

use std::collections::VecDeque;

use global_arrays::{
    active::{Handlers, Medium},
    epoch::OwnedPartMut,
    prelude::*,
};

use crate::{
    buckets::{ROUND, apply, fill},
    stream,
    table::Table,
};

/// Updates for their owner.
const UPDATES: Medium<(), u64> = Medium::new("updates");

/// Generates this rank's share of the updates and applies to `part`, which is this rank's, what all ranks generate for it. Collective.
pub(crate) fn run(job: &Job, table: Table, part: OwnedPartMut<'_, u64, Ix1>, progress: impl Fn(u64)) -> Result<(), Error> {
    let (me, share) = (job.rank(), table.share(job.rank()));
    let mut messages =
        Handlers::new(part).on_slice(UPDATES, move |part, _, (), updates| apply(part, table, me, updates)).open(job)?;
    let mut buckets = vec![Vec::with_capacity(ROUND); job.size()];
    let (mut a, mut left) = (stream::at(share.start), share.end - share.start);
    let mut rounds = VecDeque::new();
    while left > 0 {
        let count = left.min(ROUND as u64);
        left -= count;
        a = fill(&mut buckets, table, a, count as usize);
        let mut replies = Vec::with_capacity(job.size());
        for owner in (1..job.size()).map(|step| (me + step) % job.size()) {
            replies.push(messages.call_slice_nb(owner, UPDATES, (), &buckets[owner])?);
        }
        apply(messages.state(), table, me, &buckets[me]);
        progress(count);
        rounds.push_back(replies);
        if rounds.len() > 1
            && let Some(replies) = rounds.pop_front()
        {
            replies.into_iter().try_for_each(|reply| reply.wait(&mut messages))?;
        }
    }
    // Handled everywhere: the answers are too.
    messages.close().map(drop)
}
