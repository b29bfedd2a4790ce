//! Progress: what `poll` reports enters the request table here, and mail is sent and received.
//!
//! One thread of a rank at a time polls and handles what came, so mail of one sender stays in order. That thread neither waits nor
//! sleeps. It takes the right to poll before the table's lock, never inside it. In virtual time other ranks run meanwhile, so a thread
//! that finds another one polling goes on.

use super::{
    Engine,
    lasting::{Lasting, Waiter},
    requests::Label,
};
use crate::{
    comm::{Event, Events, Issued, Mail, Operation, Token},
    error::Error,
};

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
                Event::Mail(from, Mail { key, words }) => table.mail.entry(key).or_default().push_back((from, words)),
            }
        }
    }

    /// Sends three words to the same key of another rank.
    pub(crate) fn mail(&self, rank: usize, key: u64, words: [u64; 3], label: &Label) -> Result<(), Error> {
        self.check(label.operation)?;
        self.wait_until(label, || {
            let operation = Operation::Mail { rank, mail: Mail { key, words } };
            // SAFETY: mail touches no memory of the caller.
            let issued = unsafe { self.conduit.issue(&operation, Token::NOBODY) };
            (issued != Issued::Full).then_some(())
        })
    }

    /// The sender of the next mail to a key, and its three words.
    pub(crate) fn receive_mail(&self, key: u64, waiter: &dyn Waiter) -> Result<(usize, [u64; 3]), Error> {
        self.wait_until(waiter, || {
            let mut table = self.lock();
            let queue = table.mail.get_mut(&key)?;
            let first = queue.pop_front();
            if queue.is_empty() {
                table.mail.remove(&key);
            }
            first
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
            mpsc,
        },
        time::Duration,
    };

    use super::*;
    use crate::comm::testing::{Call, Fake};

    fn mail(number: u64) -> Event {
        Event::Mail(1, Mail { key: 5, words: [number, 0, 0] })
    }

    #[test]
    fn mail_polled_by_two_threads_keeps_its_order() {
        let (polled, next) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (inside, entered) = mpsc::channel();
        let seen = polled.clone();
        // The thread that polls first takes the first letter. It then loses its core while the other thread polls, if that one
        // can.
        let engine = Fake::new(move |call| {
            let Call::Poll = call else { return None };
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number == 0 {
                inside.send(()).unwrap();
                for _ in 0..100 {
                    if seen.load(Ordering::SeqCst) > 0 {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Some(mail(number))
        })
        .engine(None);
        std::thread::scope(|scope| {
            let (engine, polled) = (&engine, &polled);
            scope.spawn(|| engine.progress());
            scope.spawn(move || {
                entered.recv().unwrap();
                engine.progress();
                polled.fetch_add(1, Ordering::SeqCst);
            });
        });
        let letters = &engine.lock().mail[&5];
        assert_eq!(letters.iter().map(|(_, words)| words[0]).collect::<Vec<_>>(), [0, 1]);
    }
}
