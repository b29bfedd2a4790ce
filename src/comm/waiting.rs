//! Waiting: look, poll, look, let the conduit wait, and so on; every wait ends when the job is over.

use std::{sync::atomic::Ordering, time::Duration};

use super::{WaitWord, engine::Engine, requests::Label};
use crate::error::Error;

/// A waiter says who is missing after this long, once.
const SAY_AFTER: Duration = Duration::from_secs(10);

/// A wait ends when it has looked hopeless for this long without a break: whatever was on the way has arrived by then.
const DOUBT_FOR: Duration = Duration::from_secs(2);

/// What a waiter tells of itself and of those it waits for.
pub(crate) trait Waiter {
    fn operation(&self) -> String;
    fn missing(&self) -> String;
    /// Why what is waited for can never come, if that is known.
    fn hopeless(&self) -> Option<String> {
        None
    }
}

impl Waiter for Label {
    fn operation(&self) -> String {
        format!("{} of array \"{}\"", self.operation, self.array)
    }
    fn missing(&self) -> String {
        "the completion of a transfer".into()
    }
}

impl Engine {
    /// Waits until `ready` has something, making progress.
    pub(crate) fn wait_until<R>(&self, waiter: &dyn Waiter, ready: impl FnMut() -> Option<R>) -> Result<R, Error> {
        self.look_every(Duration::from_millis(50), waiter, ready)
    }

    /// The same for what comes without a word to this rank, a lock that is released for instance: looks after every `pause`.
    pub(crate) fn look_every<R>(
        &self,
        pause: Duration,
        waiter: &dyn Waiter,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R, Error> {
        let mut since = None;
        loop {
            if let Some(result) = ready() {
                return Ok(result);
            }
            self.progress();
            if let Some(result) = ready() {
                return Ok(result);
            }
            self.patience(waiter, &mut since)?;
            self.conduit.wait(pause);
        }
    }

    /// Waits until a word of this rank's own or mapped memory has a value that `ready` accepts.
    #[inline]
    pub(crate) fn wait_word(&self, word: &WaitWord, waiter: &dyn Waiter, ready: impl Fn(u32) -> bool) -> Result<(), Error> {
        let seen = word.load();
        if ready(seen) {
            return Ok(());
        }
        self.conduit.wait_on(word, seen, Duration::from_millis(50));
        if ready(word.load()) {
            return Ok(());
        }
        self.wait_word_longer(word, waiter, &ready)
    }

    #[cold]
    fn wait_word_longer(&self, word: &WaitWord, waiter: &dyn Waiter, ready: &dyn Fn(u32) -> bool) -> Result<(), Error> {
        let mut since = None;
        loop {
            self.progress();
            let seen = word.load();
            if ready(seen) {
                return Ok(());
            }
            self.patience(waiter, &mut since)?;
            self.conduit.wait_on(word, seen, Duration::from_millis(50));
        }
    }

    /// Ends a wait that must end; says once who is missing.
    fn patience(&self, waiter: &dyn Waiter, since: &mut Option<(Duration, bool, Option<Duration>)>) -> Result<(), Error> {
        if self.conduit.over().load(Ordering::Relaxed) != 0 {
            return Err(Error::JobEnded { operation: "waiting", cause: self.conduit.over_cause() });
        }
        let now = self.conduit.now();
        let (start, said, doubt) = since.get_or_insert((now, false, None));
        let waited = now.saturating_sub(*start);
        if let Some(timeout) = self.timeout
            && waited >= timeout
        {
            let (rank, operation, missing) = (self.rank(), waiter.operation(), waiter.missing());
            return Err(Error::Timeout { rank, operation, seconds: waited.as_secs_f64(), missing });
        }
        // What completes this wait may still be on its way from ranks that have gone on: only a lasting doubt counts.
        match waiter.hopeless() {
            Some(seen) if now.saturating_sub(*doubt.get_or_insert(now)) >= DOUBT_FOR => {
                return Err(Error::Disagreement { rank: self.rank(), operation: waiter.operation(), seen });
            }
            Some(_) => {}
            None => *doubt = None,
        }
        if waited >= SAY_AFTER && !*said {
            *said = true;
            use std::io::Write;
            let line = format!(
                "global-arrays: rank {} has waited {} s in {}; missing: {}\n",
                self.rank(),
                SAY_AFTER.as_secs(),
                waiter.operation(),
                waiter.missing()
            );
            // Words for people: that nobody can read them must not end the wait.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        Ok(())
    }
}
