//! Progress: what `poll` reports enters the request table here.
//!
//! One thread of a rank at a time polls and handles what came. That thread neither waits nor
//! sleeps. It takes the right to poll before the table's lock, never inside it. In virtual time other ranks run meanwhile, so a thread
//! that finds another one polling goes on.

use super::{Engine, lasting::Lasting};
use crate::comm::{Event, Events};

impl Engine {
    /// Polls once and handles what happened.
    pub(crate) fn progress(&self) {
        if self.is_inherited() {
            return;
        }
        self.progress_by(|events| self.conduit.poll(events));
    }

    /// The same for a wait that only a report can end.
    pub(super) fn progress_patiently(&self, lasting: &mut Lasting<'_>) {
        if !self.is_inherited() {
            let (first, most) = lasting.looks();
            self.progress_by(|events| self.conduit.poll_patiently(events, first, most));
        }
    }

    fn progress_by(&self, poll: impl FnOnce(&mut Events)) {
        let _polling = match self.capabilities.threads {
            true => self.polling.lock(),
            false => match self.polling.try_lock() {
                Some(polling) => polling,
                None => return,
            },
        };
        let mut events = Events::new();
        poll(&mut events);
        let mut table = self.lock();
        for event in events {
            match event {
                Event::LocalDone(token) => table.transfer_ended(token, None),
                Event::RemoteDone(token) => table.complete(token, |_| {}),
                Event::Value(token, value) => table.complete(token, |request| request.value = Some(value)),
                Event::Failed(token, cause) => table.transfer_ended(token, Some(cause.0)),
            }
        }
    }
}
