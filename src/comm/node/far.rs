//! What a rank knows of a rank of another machine, and when it asks for more. How it asks and hears is said in `supervisor`.

use std::{collections::BTreeMap, time::Duration};

use crate::comm::PublishedWait;

/// An answer is asked for again after this long if the rank waits. If it does not, many may ask it while it computes: then ever more
/// seldom.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(3200)];

/// Older answers say nothing of where a rank is now.
pub(super) const OLD: Duration = Duration::from_secs(10);

/// Answers of so many ranks are kept however old they are.
const KEPT: usize = 64;

/// Of so many ranks a rank tells what it knows: the logarithm of any number of ranks, for the chains of collectives.
pub(crate) const TOLD: usize = 16;

/// How old the last news of a rank may be that is so many ranks down a chain: each passes them on when it looks next, and if nobody on the
/// way is lost or slow they are younger. A rank that does not wait is asked seldom, also by the rank that waits for it.
pub(super) const fn patience(hops: usize, waits: bool) -> Duration {
    let far = if hops < TOLD { hops } else { TOLD } as u64;
    Duration::from_millis(1000 + 400 * far + if waits { 0 } else { 3200 })
}

/// An unanswered question is repeated after this long.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(60);

/// What a rank shows: one of this machine; or one of another, by its own answer or by that of a rank that knows of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// It was so at this time or later: when it was looked at, or asked.
    pub(super) at: Duration,
    pub(super) place: [u64; 2],
    pub(super) wait: u64,
    pub(super) looks: u64,
    pub(super) ended: bool,
    /// All ranks of its machine have come to their end.
    pub(super) machine_ended: bool,
    pub(super) object: String,
    /// The text of the call that it is in, or was in last.
    pub(super) call: String,
}

#[derive(Debug)]
pub(super) struct Far {
    /// When it was asked last, if it has not answered.
    pub(super) asked: Option<Duration>,
    /// Between its answer and the next question.
    pub(super) pause: Duration,
    pub(super) seen: Option<Seen>,
    /// When another rank was last known to wait for its answer.
    pub(super) pending: Duration,
    /// Since when its answer is wanted, and when it was last.
    pub(super) wanted: Option<[Duration; 2]>,
}

impl Default for Far {
    fn default() -> Self {
        Far { asked: None, pause: PAUSES[0], seen: None, pending: Duration::ZERO, wanted: None }
    }
}

impl Far {
    /// Whether nobody is interested in it any more.
    fn is_forgotten(&self, now: Duration) -> bool {
        let seen = self.seen.as_ref().map_or(Duration::ZERO, |seen| seen.at);
        let last = seen.max(self.wanted.map_or(Duration::ZERO, |[_, last]| last));
        self.asked.is_none() && now.saturating_sub(last) >= OLD
    }

    /// Takes what is said of it, which may be older than what is known, for all that the times say.
    pub(super) fn hears(&mut self, news: Seen) {
        if PublishedWait::is_wait(news.wait) {
            self.pause = PAUSES[0];
        }
        let Some(known) = &mut self.seen else {
            self.seen = Some(news);
            return;
        };
        // What has ended stays so, and looks of a wait only grow.
        let (ended, machine_ended) = (known.ended | news.ended, known.machine_ended | news.machine_ended);
        let looks = if known.wait == news.wait { known.looks.max(news.looks) } else { news.looks };
        if news.at > known.at {
            *known = Seen { looks, ..news };
        }
        (known.ended, known.machine_ended) = (ended, machine_ended);
    }
}

/// What is known of a rank; forgets what nobody wants any more.
pub(super) fn entry(all: &mut BTreeMap<usize, Far>, rank: usize, now: Duration) -> &mut Far {
    if all.len() > KEPT && !all.contains_key(&rank) {
        all.retain(|_, far| !far.is_forgotten(now));
    }
    all.entry(rank).or_default()
}
