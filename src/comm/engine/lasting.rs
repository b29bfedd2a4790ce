//! A wait that lasts ends when the job is over, at the user's limit, or when it can never end well. It says once which ranks are
//! missing.
//!
//! # Ranks that wait for each other
//!
//! A rank whose wait has lasted publishes the *one* rank that has to act before the wait can end, and counts its looks. Published waits
//! that lead back to a rank form a cycle. The cycle is a deadlock, never a slow machine or network, if
//!
//! * all its waits were published at one moment: each was seen before that moment, and again, with the same number, not before it. A
//!   wait that ends takes its publication back, and the next one has another number;
//! * every rank of the cycle has looked twice since, so its second look began after that moment. What the others did for it was handled
//!   before they published their waits (`node::supervisor`). So the look would have found what the rank waits for, and no rank of the
//!   cycle can do it any more. A stopped rank does not look.
//!
//! For a rank of another machine, "seen not before a moment" means asked for not before it.
//!
//! A rank that waits for several publishes one, preferably one that leads back to itself. For a lock it publishes the holder, which is
//! itself if another of its threads holds it. For a signal, which any rank may raise, it also publishes itself. Waits that name the
//! waiting rank are in a deadlock only if all ranks of the job wait, by the same two conditions (`protocol::waves`). A rank that
//! computes or waits for a transfer publishes nothing. Neither does one with threads that its conduit does not know: one may make the
//! missing call.
//!
//! # Ranks that have ended
//!
//! A wait is *hopeless*, whatever threads there are, if only ended ranks could end it: a collective without a member, a lock of an
//! ended holder, a signal when all others have ended.

use std::time::Duration;

use super::chain::cycle;
use crate::{
    calls::calling,
    comm::{Conduit, PublishedWait, kit::say::say},
    error::Error,
};

/// How long to let others go before looking again at what changes without a word to this rank, a lock that is released for
/// instance. Longer than a slab of an accumulate stays under its lock (256 KiB: 2 µs in caches, 13 µs from memory, `accumulate`
/// in benches/compare), so that a look seldom meets the same holder. A thread that sleeps meanwhile is back after some 100 µs:
/// the kernel adds the slack of its timers, 50 µs, and what it takes to wake.
pub(super) const TURN: Duration = Duration::from_micros(20);

/// A wait that lasts looks less often: it is late by this part of it at most, and never looks less often than that.
const PART: u32 = 64;
const LONGEST_TURN: Duration = Duration::from_millis(10);

/// A waiter says once which ranks are missing, after this long.
const SAY_AFTER: Duration = Duration::from_secs(10);

/// A wait ends when it has looked hopeless for this long without a break: whatever was on the way has arrived by then.
const DOUBT_FOR: Duration = Duration::from_secs(2);

/// A wait that lasts longer is published. Most never are: publishing counts the threads of the process.
const PUBLISH_AFTER: Duration = Duration::from_millis(500);

/// How often a wait is published, with one look more. Thousands of ranks may do so on a few cores.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// How often a deadlock is looked for: answers of other machines come meanwhile.
const SEARCH_EVERY: Duration = Duration::from_millis(100);

/// What a waiter says about itself and about the ranks that it waits for.
pub(crate) trait Waiter {
    fn operation(&self) -> String;
    fn missing(&self) -> String;
    /// The error if what is waited for can never come, because ranks have ended.
    fn hopeless(&self) -> Option<Error> {
        None
    }
    /// A rank without whose act the wait cannot end, if there is one and it cannot have acted already without this being seen. It
    /// may be this rank, of which another thread has to act.
    fn awaits(&self) -> Option<usize> {
        None
    }
    /// What it waits for, where that is a lock or a signal: a name that other ranks can show. Empty in a collective.
    fn object(&self) -> String {
        String::new()
    }
    /// Returns true if any rank may end the wait.
    fn awaits_anybody(&self) -> bool {
        false
    }
    /// Returns true if a rank comes to this wait when it has done all that others wait for. Then the others wait in vain.
    fn is_last(&self) -> bool {
        false
    }
    /// Returns true if this rank is the one to say which ranks are missing, where many wait for the same thing.
    fn speaks(&self) -> bool {
        true
    }
    /// What a rank is in, by what it published.
    fn place(&self, rank: usize) -> String {
        format!("a wait of rank {rank}")
    }
}

/// One wait, from its first look in vain.
#[derive(Debug)]
pub(super) struct Lasting<'c> {
    conduit: &'c Conduit,
    timeout: Option<Duration>,
    /// When the first look was in vain, and the last.
    start: Option<Duration>,
    looked_at: Duration,
    said: bool,
    /// Since when it has looked hopeless.
    doubt: Option<Duration>,
    published: bool,
    /// When the wait was last published, and when a deadlock was last looked for.
    looked: Duration,
    searched: Duration,
    /// The cycle that this rank is in.
    cycle: Option<Cycle>,
}

impl<'c> Lasting<'c> {
    pub(super) fn new(conduit: &'c Conduit, timeout: Option<Duration>) -> Self {
        let (start, doubt, cycle) = (None, None, None);
        Lasting {
            conduit,
            timeout,
            start,
            looked_at: Duration::ZERO,
            said: false,
            doubt,
            published: false,
            looked: Duration::ZERO,
            searched: Duration::ZERO,
            cycle,
        }
    }

    /// How long to let others go before the next look at what changes without a word.
    pub(super) fn turn(&self) -> Duration {
        let waited = self.start.map_or(Duration::ZERO, |start| self.looked_at.saturating_sub(start));
        (waited / PART).clamp(TURN, LONGEST_TURN)
    }

    /// When the first look was in vain, and how long after that looks need do nothing.
    pub(super) fn looks(&mut self) -> (&mut Option<Duration>, Duration) {
        (&mut self.start, self.timeout.map_or(PUBLISH_AFTER, |timeout| timeout.min(PUBLISH_AFTER)))
    }

    /// To be called after each look in vain; fails when the wait must end.
    pub(super) fn look(&mut self, waiter: &dyn Waiter) -> Result<(), Error> {
        let conduit = self.conduit;
        if conduit.over().load(std::sync::atomic::Ordering::Relaxed) != 0 {
            return Err(Error::JobEnded { operation: "waiting".into(), cause: conduit.over_cause() });
        }
        let now = conduit.now();
        self.looked_at = now;
        let waited = now.saturating_sub(*self.start.get_or_insert(now));
        if let Some(timeout) = self.timeout
            && waited >= timeout
        {
            let (rank, operation, missing) = (conduit.rank(), waiter.operation(), waiter.missing());
            return Err(Error::Timeout { rank, operation: operation.into(), seconds: waited.as_secs_f64(), missing });
        }
        if waited >= PUBLISH_AFTER && now.saturating_sub(self.looked) >= LOOK_EVERY {
            self.looked = now;
            self.publish(waiter);
        }
        if waited >= PUBLISH_AFTER && now.saturating_sub(self.searched) >= SEARCH_EVERY {
            self.searched = now;
            // Only a lasting doubt counts: a rank that has just ended may have ended the job, and that word is on its way.
            match waiter.hopeless() {
                Some(error) if now.saturating_sub(*self.doubt.get_or_insert(now)) >= DOUBT_FOR => return Err(error),
                Some(_) => {}
                None => self.doubt = None,
            }
            self.look_for_deadlock(waiter)?;
        }
        if waited >= SAY_AFTER && !self.said {
            self.said = true;
            if waiter.speaks() {
                say_who_is_missing(conduit.rank(), waiter);
            }
        }
        Ok(())
    }

    /// Publishes the wait, as one that has looked once more. A wait for no rank is none: its thread may hold stripes, and others
    /// wait for it.
    fn publish(&mut self, waiter: &dyn Waiter) {
        let own = self.conduit.rank();
        let awaited = if waiter.awaits_anybody() { Some(own) } else { waiter.awaits() };
        if awaited.is_none() && !self.published && !waiter.is_last() {
            return;
        }
        let mut object = if awaited.is_some() { waiter.object() } else { String::new() };
        if let (Some(awaited), true) = (awaited, object.is_empty()) {
            object = format!("rank {awaited} in {}", waiter.place(own));
        }
        self.conduit.supervision().publish_wait(awaited, &object);
        self.published = awaited.is_some();
    }

    fn look_for_deadlock(&mut self, waiter: &dyn Waiter) -> Result<(), Error> {
        if !self.published {
            self.cycle = None;
            return Ok(());
        }
        let waits = match cycle(self.conduit).filter(|_| !waiter.is_last()) {
            Some(waits) => {
                // All of them were seen before this moment.
                let now = self.conduit.now();
                let proven = self.cycle.as_mut().is_some_and(|known| known.is_proven_by(&waits, now));
                if self.cycle.as_ref().is_none_or(|known| !known.is_of(&waits)) {
                    self.cycle = Some(Cycle { since: now, waits: waits.clone(), looks: None });
                }
                let say = |&(rank, wait): &(usize, PublishedWait)| match self.conduit.supervision().published_object(rank) {
                    object if object.is_empty() => format!("rank {rank} waits for rank {}", wait.awaited),
                    object => format!("rank {rank} waits for {object}"),
                };
                proven.then(|| waits.iter().map(say).collect::<Vec<_>>().join(", "))
            }
            None => {
                self.cycle = None;
                // That others have ended says more, and is about to be said.
                self.conduit.supervision().look_at_all().filter(|_| self.doubt.is_none())
            }
        };
        let Some(waits) = waits else { return Ok(()) };
        let cause = format!(
            "{waits}; all ranks must take locks, and call the collectives of several groups, in the same order, put on channels before they wait on them, and wait in calls that handle messages while others need their handlers"
        );
        Err(Error::Deadlock { rank: self.conduit.rank(), operation: waiter.operation().into(), cause })
    }
}

/// Waits that lead back to this rank.
#[derive(Debug)]
struct Cycle {
    /// When it was first seen whole: each wait had been there at some moment until then.
    since: Duration,
    waits: Vec<(usize, PublishedWait)>,
    /// How often each rank had looked when all were seen again: all waits were there at `since`.
    looks: Option<Vec<u64>>,
}

impl Cycle {
    /// Returns true if `waits` are the waits of this cycle.
    fn is_of(&self, waits: &[(usize, PublishedWait)]) -> bool {
        self.waits.len() == waits.len() && self.waits.iter().zip(waits).all(|(a, b)| (a.0, a.1.number) == (b.0, b.1.number))
    }

    /// Returns true if `waits`, as seen now, show that this is a deadlock.
    fn is_proven_by(&mut self, waits: &[(usize, PublishedWait)], now: Duration) -> bool {
        if !self.is_of(waits) || waits.iter().any(|(_, wait)| wait.at < self.since) {
            return false;
        }
        let looks = waits.iter().map(|(_, wait)| wait.looks);
        match &self.looks {
            None => {
                self.looks = Some(looks.collect());
                false
            }
            Some(first) => {
                looks.zip(first).all(|(now, first)| now.saturating_sub(*first) >= 2)
                    && now.saturating_sub(self.since) >= DOUBT_FOR
            }
        }
    }
}

impl Drop for Lasting<'_> {
    fn drop(&mut self) {
        if self.published {
            self.conduit.supervision().publish_wait(None, "");
        }
    }
}

#[cold]
fn say_who_is_missing(rank: usize, waiter: &dyn Waiter) {
    let (seconds, operation, missing) = (SAY_AFTER.as_secs(), waiter.operation(), waiter.missing());
    let line = calling().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
    say(format_args!("rank {rank} has waited {seconds} s in {operation}{line}; missing: {missing}"));
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::comm::{
        Topology,
        engine::chain::one_of,
        node::{Fabric, Member},
        testing::clock::Clock,
    };

    /// Rank 0 of some, and what the others publish.
    struct Ranks {
        conduit: Conduit,
        fabric: Arc<Fabric>,
        clock: Arc<Clock>,
        others: Mutex<Vec<Option<PublishedWait>>>,
    }

    /// A wait for an act of one rank, of any if there is none.
    struct For(Option<usize>);

    impl Waiter for For {
        fn operation(&self) -> String {
            "the wait".into()
        }
        fn missing(&self) -> String {
            "somebody".into()
        }
        fn awaits(&self) -> Option<usize> {
            self.0
        }
        fn awaits_anybody(&self) -> bool {
            self.0.is_none()
        }
    }

    impl Ranks {
        /// `awaited` by ranks 1 and on.
        fn new(awaited: &[Option<usize>]) -> Self {
            let wait = |&awaited: &Option<usize>| {
                awaited.map(|awaited| PublishedWait { awaited, number: 1, looks: 1, at: Duration::ZERO })
            };
            let ranks = 1 + awaited.len();
            let fabric = Arc::new(Fabric::new(ranks, 1 << 20, false).expect("memory for some ranks"));
            let (member, clock) = (Member::new(fabric.clone(), Topology::one_machine(0, ranks), 1, None), Arc::default());
            let conduit = Conduit::mapped(member).in_virtual_time(Arc::clone(&clock) as _);
            let ranks = Ranks { conduit, fabric, clock, others: Mutex::new(awaited.iter().map(wait).collect()) };
            ranks.publish();
            ranks
        }

        fn publish(&self) {
            self.others.lock().unwrap().iter().enumerate().for_each(|(k, wait)| self.fabric.show_wait(1 + k, *wait));
        }

        /// Rank 0 looks ten times a second for this many `seconds`, and `others` change what they publish after each of its
        /// looks.
        fn wait(
            &self,
            awaited: Option<usize>,
            seconds: u64,
            others: impl Fn(usize, &mut [Option<PublishedWait>]),
        ) -> Option<String> {
            let mut lasting = Lasting::new(&self.conduit, None);
            (0..10 * seconds as usize).find_map(|turn| {
                let error = lasting.look(&For(awaited)).err().map(|error| error.to_string());
                self.clock.add(Duration::from_millis(100));
                others(turn, &mut self.others.lock().unwrap());
                self.publish();
                error
            })
        }
    }

    /// Everybody looks again.
    fn look(_: usize, others: &mut [Option<PublishedWait>]) {
        others.iter_mut().flatten().for_each(|wait| wait.looks += 1);
    }

    #[test]
    fn a_cycle_is_named_rank_by_rank() {
        // Rank 3 waits for the cycle and is not of it.
        let ranks = Ranks::new(&[Some(2), Some(0), Some(1)]);
        let said = ranks.wait(Some(1), 9, look).expect("a deadlock");
        let waits = ["rank 0 waits for rank 1", "rank 1 waits for rank 2", "rank 2 waits for rank 0"];
        assert!(waits.iter().all(|wait| said.contains(wait)) && !said.contains("rank 3"), "{said}");
    }

    #[test]
    fn who_waits_for_a_cycle_of_others_is_not_in_it() {
        let ranks = Ranks::new(&[Some(2), Some(1), None]);
        assert_eq!(ranks.wait(Some(1), 9, look), None);
    }

    #[test]
    fn a_chain_that_ends_is_no_cycle() {
        let ranks = Ranks::new(&[Some(2), Some(3), None]);
        assert_eq!(ranks.wait(Some(1), 9, look), None);
        assert!(ranks.conduit.supervision().published_wait(0, 0).is_none(), "a wait that ended is taken back");
    }

    #[test]
    fn a_rank_that_does_not_look_again_may_be_slow() {
        // Rank 2 was stopped right after it had published, and then after one look more.
        for looks in [0, 1] {
            let ranks = Ranks::new(&[Some(2), Some(0)]);
            let stopped = |turn: usize, others: &mut [Option<PublishedWait>]| {
                look(turn, &mut others[..1]);
                if turn == 20 {
                    others[1].as_mut().unwrap().looks += looks;
                }
            };
            assert_eq!(ranks.wait(Some(1), 9, stopped), None, "{looks} looks");
        }
        let ranks = Ranks::new(&[Some(2), Some(0)]);
        let late = |turn: usize, others: &mut [Option<PublishedWait>]| {
            look(turn, &mut others[..1]);
            if [20, 40].contains(&turn) {
                others[1].as_mut().unwrap().looks += 1;
            }
        };
        assert!(ranks.wait(Some(1), 9, late).is_some());
    }

    #[test]
    fn a_cycle_of_waits_that_change_is_none() {
        // Each second rank 2 waits anew for rank 0: there is a cycle at every look, but a new one each second.
        let ranks = Ranks::new(&[Some(2), Some(0)]);
        let busy = |turn: usize, others: &mut [Option<PublishedWait>]| {
            look(turn, others);
            if turn.is_multiple_of(10) {
                others[1].as_mut().unwrap().number += 1;
            }
        };
        assert_eq!(ranks.wait(Some(1), 9, busy), None);
        // Or it goes on now and then.
        let ranks = Ranks::new(&[Some(2), Some(0)]);
        let gone = |turn: usize, others: &mut [Option<PublishedWait>]| {
            look(turn, others);
            others[1] =
                Some(PublishedWait { awaited: 0, number: 1, looks: turn as u64, at: Duration::ZERO }).filter(|_| turn % 15 > 3);
        };
        assert_eq!(ranks.wait(Some(1), 9, gone), None);
    }

    #[test]
    fn what_was_seen_before_the_cycle_was_whole_proves_nothing() {
        // An answer of rank 1 is on its way, and it is always the same one; or a newer one comes.
        for newer in [false, true] {
            let seen = |looks, at| vec![(0, PublishedWait { awaited: 1, number: 1, looks, at })];
            let since = Duration::from_millis(500);
            let mut cycle = Cycle { since, waits: seen(1, since), looks: None };
            let is_proven = |turn: u64| {
                let (now, old) = (since + Duration::from_millis(100 * turn), Duration::from_millis(10));
                cycle.is_proven_by(&seen(turn, if newer && turn > 30 { now } else { old }), now)
            };
            assert_eq!((0..90).any(is_proven), newer);
        }
    }

    #[test]
    fn a_cycle_is_doubted_for_a_while() {
        let ranks = Ranks::new(&[Some(0)]);
        assert_eq!(ranks.wait(Some(1), 2, look), None);
        assert!(ranks.wait(Some(1), 4, look).is_some());
    }

    #[test]
    fn of_several_the_one_that_leads_back_is_awaited() {
        let choose = |waits: &[Option<usize>], several: &[usize]| one_of(&Ranks::new(waits).conduit, several.iter().copied());
        // By way of rank 4.
        assert_eq!(choose(&[None, Some(1), Some(4), Some(0)], &[1, 2, 3]), Some((3, true)));
        // None does: one that waits, or the first.
        assert_eq!(choose(&[None, Some(1), None, None], &[1, 2, 3]), Some((2, false)));
        assert_eq!(choose(&[None; 4], &[3, 1]), Some((3, false)));
        assert_eq!(choose(&[Some(2), Some(1), None, None], &[1, 2]), Some((1, false)));
        assert_eq!(choose(&[None], &[]), None);
    }
}
