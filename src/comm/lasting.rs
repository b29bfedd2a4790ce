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

use super::{Conduit, PublishedWait};
use crate::error::Error;

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
                say(conduit.rank(), waiter);
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
fn say(rank: usize, waiter: &dyn Waiter) {
    use std::io::Write;
    let (seconds, operation, missing) = (SAY_AFTER.as_secs(), waiter.operation(), waiter.missing());
    let line = format!("global-arrays: rank {rank} has waited {seconds} s in {operation}; missing: {missing}\n");
    // Words for people: that nobody can read them must not end the wait.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
