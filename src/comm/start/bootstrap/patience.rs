//! How long a rank waits for its launcher and for the other ranks.

use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

use super::key_values::Refused;
use crate::comm::{kit::say::say, start::launcher::Started};

/// The time after which a rank that waits for the others prints so, once.
const SAY_AFTER: Duration = Duration::from_secs(10);

/// A wait for the launcher and, at a fence, for the other ranks.
pub(super) struct LauncherWait<'c> {
    who: String,
    limit: Option<f64>,
    start: Instant,
    said: &'c mut bool,
}

impl<'c> LauncherWait<'c> {
    pub(super) fn new(started: &Started, limit: Option<f64>, said: &'c mut bool) -> Self {
        LauncherWait { who: started.to_string(), limit, start: Instant::now(), said }
    }

    /// To be called while nothing comes. Returns an error when the limit is over.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let waited = self.start.elapsed();
        if let Some(limit) = self.limit.filter(|&limit| waited.as_secs_f64() >= limit) {
            return Err(io::Error::new(ErrorKind::TimedOut, Refused::Late(limit)));
        }
        if waited >= SAY_AFTER && !std::mem::replace(self.said, true) {
            let (who, seconds) = (&self.who, SAY_AFTER.as_secs());
            say(format_args!(
                "{who} has waited {seconds} s for others to start; each process of the launcher must call `run` or `start`"
            ));
        }
        Ok(())
    }
}
