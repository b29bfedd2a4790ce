//! A wait that lasts: it ends when the job is over, when the user's limit is reached, or when it can never end well; it says
//! once who is missing.
//!
//! # Ranks that wait for each other
//!
//! A rank whose wait has lasted publishes the *one* rank that has to act before the wait can end, counts its looks there, and
//! follows what others publish. If that leads back to itself, the ranks on the way wait for each other in a cycle. It is a
//! deadlock, and never a slow machine, when
//!
//! * no wait of the cycle has changed since it was first seen whole: each was published all the time, because a wait that ends
//!   takes its publication back first, and the next one has another number;
//! * every rank of the cycle has looked twice since. The second look began after all waits of the cycle had been published, and
//!   what a rank does for another it does before it waits itself. So whatever is waited for would have been found, and nobody in
//!   the cycle can do it any more. A rank that was stopped, or gets no core, does not look.
//!
//! The condition to wait on is one rank's act: a rank that waits for several publishes one of them, rather one that leads back
//! to itself; who waits for a lock publishes its holder. Who waits for a signal, which any rank may raise, publishes itself, as does
//! who waits for a lock of its own rank; these are in a deadlock only if all ranks of the job wait, by the same two conditions. A
//! rank that computes or waits for a transfer publishes nothing. Neither does a rank with threads that its conduit does not know:
//! one of them may make the call that is missing.
//!
//! # Ranks that have ended
//!
//! What only ranks that have ended could do is never done, whatever threads there are: a collective without a member, a lock whose
//! holder has ended, a signal when all others have. A wait for it is *hopeless*.

use std::time::Duration;

use super::{Conduit, PublishedWait, say::say};
use crate::error::Error;

/// How long to let others go before looking again at what changes without a word to this rank, a lock that is released for
/// instance. Longer than a slab of an accumulate stays under its lock (256 KiB: 2 µs in caches, 13 µs from memory, `accumulate` in
/// benches/compare), so that a look seldom meets the same holder. Who sleeps meanwhile is back after some 100 µs: the kernel adds
/// the slack of its timers, 50 µs, and what it takes to wake.
pub(super) const TURN: Duration = Duration::from_micros(20);

/// A waiter says who is missing after this long, once.
const SAY_AFTER: Duration = Duration::from_secs(10);

/// A wait ends when it has looked hopeless for this long without a break: whatever was on the way has arrived by then.
const DOUBT_FOR: Duration = Duration::from_secs(2);

/// A wait that lasts longer is published. Most never are: publishing counts the threads of the process.
const PUBLISH_AFTER: Duration = Duration::from_millis(500);

/// How often a published wait is looked after. Thousands of ranks may do so on a few cores.
const LOOK_EVERY: Duration = Duration::from_millis(400);

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
    /// Whether any rank may end the wait.
    fn awaits_anybody(&self) -> bool {
        false
    }
    /// Whether this rank is the one to say who is missing, where many wait for the same.
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
    conduit: &'c dyn Conduit,
    timeout: Option<Duration>,
    /// When the first look was in vain.
    start: Option<Duration>,
    said: bool,
    /// Since when it has looked hopeless.
    doubt: Option<Duration>,
    published: bool,
    /// When cycles were last looked for.
    looked: Duration,
    /// The cycle that this rank is in, and when it was first seen.
    cycle: Option<(Duration, Vec<(usize, PublishedWait)>)>,
}

impl<'c> Lasting<'c> {
    pub(super) fn new(conduit: &'c dyn Conduit, timeout: Option<Duration>) -> Self {
        let (start, doubt, cycle) = (None, None, None);
        Lasting { conduit, timeout, start, said: false, doubt, published: false, looked: Duration::ZERO, cycle }
    }

    /// To be called after each look in vain; fails when the wait must end.
    pub(super) fn look(&mut self, waiter: &dyn Waiter) -> Result<(), Error> {
        let conduit = self.conduit;
        if conduit.over().load(std::sync::atomic::Ordering::Relaxed) != 0 {
            return Err(Error::JobEnded { operation: "waiting".into(), cause: conduit.over_cause() });
        }
        let now = conduit.now();
        let waited = now.saturating_sub(*self.start.get_or_insert(now));
        if let Some(timeout) = self.timeout
            && waited >= timeout
        {
            let (rank, operation, missing) = (conduit.rank(), waiter.operation(), waiter.missing());
            return Err(Error::Timeout { rank, operation: operation.into(), seconds: waited.as_secs_f64(), missing });
        }
        // What completes this wait may still be on its way from ranks that have gone on: only a lasting doubt counts.
        match waiter.hopeless() {
            Some(error) if now.saturating_sub(*self.doubt.get_or_insert(now)) >= DOUBT_FOR => return Err(error),
            Some(_) => {}
            None => self.doubt = None,
        }
        if waited >= PUBLISH_AFTER && now.saturating_sub(self.looked) >= LOOK_EVERY {
            self.looked = now;
            self.look_for_cycle(waiter, now)?;
        }
        if waited >= SAY_AFTER && !self.said {
            self.said = true;
            if waiter.speaks() {
                say_who_is_missing(conduit.rank(), waiter);
            }
        }
        Ok(())
    }

    fn look_for_cycle(&mut self, waiter: &dyn Waiter, now: Duration) -> Result<(), Error> {
        let awaited = if waiter.awaits_anybody() { Some(self.conduit.rank()) } else { waiter.awaits() };
        if self.published || awaited.is_some() {
            self.published = awaited.is_some();
            self.conduit.publish_wait(awaited, &waiter.object());
        }
        let Some(cycle) = cycle(self.conduit).or_else(|| everybody(self.conduit)) else {
            self.cycle = None;
            return Ok(());
        };
        let same = |(a, b): (&(usize, PublishedWait), &(usize, PublishedWait))| a.0 == b.0 && a.1.number == b.1.number;
        match &self.cycle {
            Some((since, first)) if first.len() == cycle.len() && first.iter().zip(&cycle).all(same) => {
                let looked = first.iter().zip(&cycle).all(|(then, now)| now.1.looks.wrapping_sub(then.1.looks) >= 2);
                if looked && now.saturating_sub(*since) >= DOUBT_FOR {
                    let say = |&(rank, wait): &(usize, PublishedWait)| match self.conduit.published_object(rank) {
                        object if object.is_empty() => {
                            format!("rank {rank} waits for rank {} in {}", wait.awaited, waiter.place(rank))
                        }
                        object => format!("rank {rank} waits for {object}"),
                    };
                    let waits = cycle.iter().map(say).collect::<Vec<_>>().join(", ");
                    let cause = format!(
                        "{waits}; all ranks must take locks, and call the collectives of several groups, in the same order"
                    );
                    return Err(Error::Deadlock { rank: self.conduit.rank(), operation: waiter.operation().into(), cause });
                }
            }
            _ => self.cycle = Some((now, cycle)),
        }
        Ok(())
    }
}

impl Drop for Lasting<'_> {
    fn drop(&mut self) {
        if self.published {
            self.conduit.publish_wait(None, "");
        }
    }
}

/// The published waits from this rank back to itself, each of them still there when all had been seen.
fn cycle(conduit: &dyn Conduit) -> Option<Vec<(usize, PublishedWait)>> {
    let (mut rank, mut waits) = (conduit.rank(), Vec::new());
    // Longer than all ranks is a cycle without this one.
    while waits.len() < conduit.size() {
        let wait = conduit.published_wait(rank).filter(|wait| wait.awaited != rank)?;
        waits.push((rank, wait));
        rank = wait.awaited;
        if rank == conduit.rank() {
            // The looks count from here on: all waits are published now.
            let again = |(rank, first): (usize, PublishedWait)| {
                conduit.published_wait(rank).filter(|wait| wait.number == first.number).map(|wait| (rank, wait))
            };
            return waits.into_iter().map(again).collect();
        }
    }
    None
}

/// The published waits of all ranks, if all wait.
fn everybody(conduit: &dyn Conduit) -> Option<Vec<(usize, PublishedWait)>> {
    // Mostly some compute: one look says so, however many there are.
    if conduit.published_waits() < conduit.size() {
        return None;
    }
    let all = || (0..conduit.size()).map(|rank| Some((rank, conduit.published_wait(rank)?))).collect::<Option<Vec<_>>>();
    // The looks count from when all had been seen.
    let first = all()?;
    all().filter(|again| again.iter().zip(&first).all(|(now, then)| now.1.number == then.1.number))
}

/// Which of several awaited ranks to publish: one whose own wait leads to this rank, or one that waits at all, or the first.
pub(crate) fn one_of(conduit: &dyn Conduit, awaited: impl Iterator<Item = usize>) -> Option<usize> {
    let mut visited = vec![false; conduit.size()];
    let (mut any, mut first) = (None, None);
    for rank in awaited {
        any = any.or(Some(rank));
        let mut at = rank;
        while !std::mem::replace(&mut visited[at], true) {
            let Some(wait) = conduit.published_wait(at) else { break };
            first = first.or((at == rank).then_some(rank));
            if wait.awaited == conduit.rank() {
                return Some(rank);
            }
            at = wait.awaited;
        }
    }
    first.or(any)
}

#[cold]
fn say_who_is_missing(rank: usize, waiter: &dyn Waiter) {
    let (seconds, operation, missing) = (SAY_AFTER.as_secs(), waiter.operation(), waiter.missing());
    say(format_args!("rank {rank} has waited {seconds} s in {operation}; missing: {missing}"));
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::comm::{Topology, testing::Fake};

    /// Rank 0 of some, its wait, and what the others publish.
    struct Ranks {
        fake: Fake,
        clock: Arc<Mutex<Duration>>,
        waits: Arc<Mutex<Vec<Option<PublishedWait>>>>,
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
            let mut fake = Fake::new(|_| None);
            let (clock, waits) = (Arc::new(Mutex::new(Duration::ZERO)), Arc::new(Mutex::new(vec![None])));
            let wait = |&awaited: &Option<usize>| awaited.map(|awaited| PublishedWait { awaited, number: 1, looks: 1 });
            waits.lock().unwrap().extend(awaited.iter().map(wait));
            (fake.clock, fake.waits) = (Some(clock.clone()), waits.clone());
            fake.topology = Topology::one_machine(0, 1 + awaited.len()).with_ranks_per_node(1);
            Ranks { fake, clock, waits }
        }

        /// Rank 0 looks ten times a second for so long, and `others` change what they publish after each of its looks.
        fn wait(
            &self,
            awaited: Option<usize>,
            seconds: u64,
            others: impl Fn(usize, &mut [Option<PublishedWait>]),
        ) -> Option<String> {
            let mut lasting = Lasting::new(&self.fake, None);
            (0..10 * seconds as usize).find_map(|turn| {
                let error = lasting.look(&For(awaited)).err().map(|error| error.to_string());
                *self.clock.lock().unwrap() += Duration::from_millis(100);
                others(turn, &mut self.waits.lock().unwrap()[1..]);
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
        assert!(ranks.waits.lock().unwrap()[0].is_none(), "a wait that ended is taken back");
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
        // Each second rank 2 waits anew for rank 0: there is a cycle at every look, and never the same.
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
            others[1] = Some(PublishedWait { awaited: 0, number: 1, looks: turn as u64 }).filter(|_| turn % 15 > 3);
        };
        assert_eq!(ranks.wait(Some(1), 9, gone), None);
    }

    #[test]
    fn a_cycle_is_doubted_for_a_while() {
        let ranks = Ranks::new(&[Some(0)]);
        assert_eq!(ranks.wait(Some(1), 2, look), None);
        assert!(ranks.wait(Some(1), 4, look).is_some());
    }

    #[test]
    fn who_waits_for_anybody_is_lost_when_all_wait() {
        let all = Ranks::new(&[Some(1), Some(0)]);
        let said = all.wait(None, 9, look).expect("a deadlock");
        let waits = ["rank 0 waits for", "rank 1 waits for", "rank 2 waits for rank 0"];
        assert!(waits.iter().all(|wait| said.contains(wait)), "{said}");
        assert_eq!(Ranks::new(&[Some(1), None]).wait(None, 9, look), None);
    }

    #[test]
    fn of_several_the_one_that_leads_back_is_awaited() {
        let choose = |waits: &[Option<usize>], several: &[usize]| one_of(&Ranks::new(waits).fake, several.iter().copied());
        // By way of rank 4.
        assert_eq!(choose(&[None, Some(1), Some(4), Some(0)], &[1, 2, 3]), Some(3));
        // None does: one that waits, or the first.
        assert_eq!(choose(&[None, Some(1), None, None], &[1, 2, 3]), Some(2));
        assert_eq!(choose(&[None; 4], &[3, 1]), Some(3));
        assert_eq!(choose(&[Some(2), Some(1), None, None], &[1, 2]), Some(1));
        assert_eq!(choose(&[None], &[]), None);
    }
}
