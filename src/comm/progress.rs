//! Progress: what `poll` reports reaches the request table here, and messages between engines are sent and handled.
//!
//! Handlers of messages touch memory and send one reply, nothing else. A reply that finds no room waits in a queue of its own and
//! is sent before anything new.

use super::{
    Event, Events, MessageClass, Token,
    engine::Engine,
    message::Message,
    node::apply_atomic,
    requests::{Label, Table},
    waiting::Waiter,
};
use crate::error::Error;

impl Engine {
    /// Polls once and handles what happened.
    pub(crate) fn progress(&self) {
        let mut events = Events::new();
        self.conduit.poll(&mut events);
        let mut table = self.lock();
        for event in events {
            match event {
                Event::LocalDone(token) => table.transfer_ended(token, None),
                Event::RemoteDone(token) => table.complete(token, |_| {}),
                Event::Value(token, value) => table.complete(token, |request| request.value = Some(value)),
                Event::Failed(token, cause) => table.transfer_ended(token, Some(cause.0)),
                Event::Message { from, bytes, len } => self.handle(&mut table, from, Message::decode(&bytes[..len])),
                // The conduit also says so through `over`, which every wait looks at.
                Event::PeerLost { rank, cause } => table.uncollected.push(Error::RankFailed { rank, cause: cause.0 }),
            }
        }
        while let Some((rank, reply)) = table.replies.pop_front() {
            let (bytes, len) = reply.encode();
            if self.conduit.send(rank, MessageClass::Reply, &bytes[..len]).is_err() {
                table.replies.push_front((rank, reply));
                break;
            }
        }
    }

    fn handle(&self, table: &mut Table, from: usize, message: Option<Message>) {
        match message {
            Some(Message::Atomic { token, op, width, offset, operand, comparand }) => {
                let inside = offset.checked_add(width).is_some_and(|end| end <= self.conduit.segment_len());
                if inside && offset % width == 0 {
                    // SAFETY: aligned and inside our own segment; the peer named a word of a committed block, and a hole of the
                    // segment would only be filled with a page.
                    let value =
                        unsafe { apply_atomic(self.conduit.segment().as_ptr().add(offset), op, width, operand, comparand) };
                    table.replies.push_back((from, Message::Value { token, value }));
                }
            }
            Some(Message::Value { token, value }) => table.complete(Token(token), |request| request.value = Some(value)),
            Some(Message::Mail { key, words }) => table.mail.entry(key).or_default().push_back((from, words)),
            None => {}
        }
    }

    pub(super) fn send(&self, rank: usize, class: MessageClass, message: &Message, label: &Label) -> Result<(), Error> {
        let (bytes, len) = message.encode();
        self.wait_until(label, || self.conduit.send(rank, class, &bytes[..len]).is_ok().then_some(()))
    }

    /// Sends three words to the same key of another rank.
    pub(crate) fn mail(&self, rank: usize, key: u64, words: [u64; 3], label: &Label) -> Result<(), Error> {
        self.send(rank, MessageClass::Request, &Message::Mail { key, words }, label)
    }

    /// The next three words that were sent to a key, and by whom.
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
