//! The lock that guards accumulates over the network into one rank's memory: one word, taken by compare-and-swap.
//!
//! If a failure leaves the word's state unknown, the job ends: the word could stop all later accumulates there, or admit two ranks at
//! once. After any other failure the lock is free.

use super::{Engine, Label, Road, Waiter};
use crate::{
    comm::{Atomic, AtomicOp, Remote},
    error::Result,
};

/// The word while nobody holds the lock; else it is the holder's rank plus one.
const FREE: u64 = 0;

struct LockWaiter<'a>(&'a Label, usize);

impl Waiter for LockWaiter<'_> {
    fn operation(&self) -> String {
        self.0.operation()
    }
    fn missing(&self) -> String {
        format!("the release of the accumulate lock of rank {}", self.1)
    }
}

/// A lock word of a rank, held until it is given back or dropped.
pub(super) struct RemoteLock<'a> {
    engine: &'a Engine,
    rank: usize,
    lock: usize,
    label: &'a Label,
    held: bool,
}

impl<'a> RemoteLock<'a> {
    pub(super) fn take(engine: &'a Engine, rank: usize, lock: usize, label: &'a Label) -> Result<Self> {
        let mut this = RemoteLock { engine, rank, lock, label, held: false };
        engine.take_turns(&LockWaiter(label, rank), || this.try_take().transpose())??;
        Ok(this)
    }

    fn try_take(&mut self) -> Result<Option<()>> {
        let what = || format!("could not learn whether it holds the accumulate lock of rank {}", self.rank);
        let old = self.change(FREE, self.holder(), &what)?;
        self.held = old == FREE;
        Ok(self.held.then_some(()))
    }

    /// Gives the lock back, whatever became of what was done under it.
    pub(super) fn give_back(mut self, done: Result<()>) -> Result<()> {
        done.and(self.release())
    }

    fn release(&mut self) -> Result<()> {
        self.held = false;
        let what = || format!("could not give back the accumulate lock of rank {}", self.rank);
        // The sums must stand before the next holder reads them.
        self.engine
            .flush(Some(self.rank), self.label)
            .inspect_err(|error| self.engine.conduit().end(&format!("{}: {error}", what())))?;
        let old = self.change(self.holder(), FREE, &what)?;
        if old != self.holder() {
            self.engine.conduit().end(&format!("{}: its word was {old}", what()));
        }
        Ok(())
    }

    fn holder(&self) -> u64 {
        self.engine.rank() as u64 + 1
    }

    /// Changes the lock word from one value to another, if it has that.
    fn change(&self, comparand: u64, operand: u64, what: &dyn Fn() -> String) -> Result<u64> {
        let lock = Remote { rank: self.rank, offset: self.lock };
        let atomic = Atomic { op: AtomicOp::CompareSwap, width: 8, operand, comparand };
        self.engine.atomic_on_lock(Road::Network, lock, atomic, self.label, what)
    }
}

impl Drop for RemoteLock<'_> {
    /// The arithmetic unwound.
    fn drop(&mut self) {
        if self.held {
            // The panic is what the caller hears of; a lock that is lost ends the job.
            let _ = self.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{Arc, Mutex},
    };

    use bytemuck::{Pod, Zeroable};
    use ndarray::{Ix1, aview1};

    use super::*;
    use crate::{
        comm::{
            Cause, Event, Token,
            engine::accumulate::accumulate_remote,
            testing::{Call, Fake},
        },
        element::{Additive, Number},
        error::Error,
        memory::buffer::Source,
    };

    /// A lock word at the other rank, and what the network does instead of its duty.
    fn engine(
        timeout: Option<f64>,
        fault: impl Fn(Call) -> Option<Option<Event>> + Send + Sync + 'static,
    ) -> (Engine, Announcement) {
        let word = Announcement::default();
        let there = word.clone();
        let fake = Fake::new(move |call| {
            if let Some(answer) = fault(call) {
                return answer;
            }
            match call {
                Call::Put(token) | Call::Get(token) => Some(Event::LocalDone(token)),
                Call::Flush(token) => Some(Event::RemoteDone(token)),
                Call::Atomic { operand, token, .. } => {
                    let mut word = there.lock().unwrap();
                    let old = *word;
                    if operand == FREE || old == FREE {
                        *word = operand;
                    }
                    Some(Event::Value(token, old))
                }
                Call::Poll | Call::PutSignal { .. } | Call::Append(..) => None,
            }
        });
        (fake.engine(timeout), word)
    }

    type Announcement = Arc<Mutex<u64>>;

    fn add<T: Additive>(engine: &Engine, value: T) -> Result<()> {
        let label = Label::new("a", "accumulate");
        let from = [value];
        accumulate_remote(engine, 1, 0, 64, &Ix1(1), T::Scale::ONE, &Source::whole(&aview1(&from)), &label)
    }

    /// How the job ended, if it did.
    fn end(engine: &Engine) -> Option<String> {
        engine.check("test").err().map(|_| engine.conduit().over_cause())
    }

    fn failed(token: Token) -> Option<Option<Event>> {
        Some(Some(Event::Failed(token, Cause("a cut cable".into()))))
    }

    #[test]
    fn a_lock_that_may_have_been_taken_ends_the_job() {
        let (silent, _) = engine(Some(0.02), |call| matches!(call, Call::Atomic { .. }).then_some(None));
        assert!(matches!(add(&silent, 1.0), Err(Error::Timeout { .. })));
        let (broken, _) = engine(None, |call| if let Call::Atomic { token, .. } = call { failed(token) } else { None });
        assert!(matches!(add(&broken, 1.0), Err(Error::Transfer { .. })));
        for engine in [silent, broken] {
            let said = end(&engine).expect("the end of the job");
            assert!(said.contains("whether it holds the accumulate lock of rank 1: "), "{said}");
        }
    }

    #[test]
    fn a_lock_that_cannot_be_given_back_ends_the_job() {
        let (kept, _) = engine(None, |call| match call {
            Call::Atomic { operand: FREE, token, .. } => failed(token),
            _ => None,
        });
        let (hidden, _) = engine(None, |call| if let Call::Flush(token) = call { failed(token) } else { None });
        for engine in [kept, hidden] {
            assert!(matches!(add(&engine, 1.0), Err(Error::Transfer { .. })));
            let said = end(&engine).expect("the end of the job");
            assert!(said.contains("could not give back the accumulate lock of rank 1: "), "{said}");
        }
    }

    #[test]
    fn a_transfer_that_fails_gives_the_lock_back() {
        let (no_put, word) = engine(None, |call| if let Call::Put(token) = call { failed(token) } else { None });
        assert!(matches!(add(&no_put, 1.0), Err(Error::Transfer { .. })));
        assert_eq!((*word.lock().unwrap(), end(&no_put)), (FREE, None));
        let (no_get, word) = engine(None, |call| if let Call::Get(token) = call { failed(token) } else { None });
        assert!(matches!(add(&no_get, 1.0), Err(Error::Transfer { .. })));
        assert_eq!((*word.lock().unwrap(), end(&no_get)), (FREE, None));
    }

    /// A number that nobody can add to.
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
    #[repr(transparent)]
    struct Alone(u64);

    impl Additive for Alone {
        type Scale = u64;
        const ZERO: Self = Alone(0);
        fn plus(self, _: Self) -> Self {
            std::panic::resume_unwind(Box::new("no sum"))
        }
        fn scaled(self, _: u64) -> Self {
            self
        }
    }

    #[test]
    fn arithmetic_that_unwinds_gives_the_lock_back() {
        let (engine, word) = engine(None, |_| None);
        assert!(catch_unwind(AssertUnwindSafe(|| add(&engine, Alone(7)))).is_err());
        assert_eq!((*word.lock().unwrap(), end(&engine)), (FREE, None));
        add(&engine, 1.0).unwrap();
    }
}
