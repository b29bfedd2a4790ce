//! What a rank knows of a rank of another machine, and when it asks for more.

use std::{collections::BTreeMap, time::Duration};

use crate::comm::PublishedWait;

/// The time after which a rank that waits is asked again. Many ranks may ask one that does not wait while it computes; they ask
/// it ever more seldom.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(3200)];

/// The age at which an answer says nothing of where a rank is now.
pub(super) const OLD: Duration = Duration::from_secs(10);

/// Up to this many ranks, answers are kept however old they are.
const KEPT: usize = 64;

/// An answer describes at most this many ranks along a chain of waits: the logarithm of any number of ranks, for the chains of
/// collectives.
pub(crate) const TOLD: usize = 16;

/// The age that the last news of a rank may have, `hops` ranks down a chain. Each rank passes news on at its next look, so they
/// are younger if no rank on the way is lost or slow. A rank that does not wait is asked seldom, also by the rank that waits for
/// it.
pub(super) const fn patience(hops: usize, waits: bool) -> Duration {
    let far = if hops < TOLD { hops } else { TOLD } as u64;
    Duration::from_millis(1000 + 400 * far + if waits { 0 } else { 3200 })
}

/// An unanswered question is repeated after this long.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(60);

/// What a rank shows. One of this machine was looked at; one of another answered itself, or a rank that knows of it did.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// It was so at this time or later: the time of the look, or of the question.
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
    /// The time at which it was last asked, if it has not answered.
    pub(super) asked: Option<Duration>,
    /// The time between its answer and the next question.
    pub(super) pause: Duration,
    pub(super) seen: Option<Seen>,
    /// The time when another rank was last known to wait for its answer.
    pub(super) pending: Duration,
    /// The first and the last time at which its answer was wanted.
    pub(super) wanted: Option<[Duration; 2]>,
}

impl Default for Far {
    fn default() -> Self {
        Far { asked: None, pause: PAUSES[0], seen: None, pending: Duration::ZERO, wanted: None }
    }
}

impl Far {
    /// Returns true if no rank is interested in it any more.
    fn is_forgotten(&self, now: Duration) -> bool {
        let seen = self.seen.as_ref().map_or(Duration::ZERO, |seen| seen.at);
        let last = seen.max(self.wanted.map_or(Duration::ZERO, |[_, last]| last));
        self.asked.is_none() && now.saturating_sub(last) >= OLD
    }

    /// Takes news of it. By their times, they may be older than what is known.
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

/// What is known of a rank. Forgets ranks that no rank is interested in.
pub(super) fn entry(all: &mut BTreeMap<usize, Far>, rank: usize, now: Duration) -> &mut Far {
    if all.len() > KEPT && !all.contains_key(&rank) {
        all.retain(|_, far| !far.is_forgotten(now));
    }
    all.entry(rank).or_default()
}
