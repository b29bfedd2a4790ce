//! What the device reports, handed to what it is about.

use super::{
    super::device::{Completion, Device, Done},
    BATCH, LENGTH, Links, Posted, ROUTE_HEADER, Sent,
};
use crate::comm::{
    am::wire::{Broken, Result},
    protocol::completions::Mark,
};

impl<D: Device> Links<D> {
    /// Handles up to [`BATCH`] completions, and then does what follows for connections. Returns true if there may be more.
    pub(super) fn take_completions(&mut self) -> Result<bool> {
        self.polled.clear();
        self.device.poll(&mut self.polled, BATCH)?;
        let count = self.polled.len();
        self.taken += count as u64;
        // Nothing that handles one takes others.
        for at in 0..count {
            self.completed(self.polled[at])?;
        }
        self.act()?;
        Ok(count == BATCH)
    }

    fn completed(&mut self, Completion { id, number, outcome }: Completion) -> Result<()> {
        match (Posted::of(id), outcome) {
            (Posted::Send(slot), outcome) => {
                let Sent { to, serial, .. } = self.sent[slot];
                self.is_posted(to, Some(slot), serial, outcome)
            }
            (Posted::Control(slot), outcome) => {
                let Some((to, serial)) = self.controlled[slot].take() else { return Ok(()) };
                self.is_posted(to, None, serial, outcome)
            }
            (Posted::Mark(to), outcome) => {
                let Some(Mark { last, number }) = self.peers.meet(to).completions.mark_ends() else { return Ok(()) };
                self.is_posted(to, Some(last), number, outcome)?;
                if outcome.is_ok() { self.mark(to) } else { Ok(()) }
            }
            (Posted::Receive(slot), Ok(Done::Received { len, .. })) => match self.owners.get(&number) {
                Some(&from) => self.received(from, slot, len),
                // The queue pair was given back; what it was comes again.
                None => Ok(self.post_receive(slot)?),
            },
            (Posted::Receive(slot), _) => Ok(self.post_receive(slot)?),
            (Posted::DatagramSend(slot), Ok(_)) => {
                self.free_datagrams.push(slot);
                while !self.free_datagrams.is_empty()
                    && let Some((to, bytes)) = self.late.pop_front()
                {
                    self.send_datagram(to, &bytes)?;
                }
                Ok(())
            }
            (Posted::DatagramReceive(slot), Ok(Done::Received { len, .. })) => {
                let mut bytes = [0; LENGTH];
                let is_whole = len == ROUTE_HEADER + LENGTH;
                if is_whole {
                    self.datagrams.read(slot, ROUTE_HEADER, &mut bytes);
                }
                self.post_datagram_receive(slot)?;
                let bytes = if is_whole { &bytes[..] } else { &[] };
                self.actions.extend(self.connections.on_datagram(self.device.now(), bytes));
                self.absences.hears(|peer| self.connections.has_answered(peer));
                Ok(())
            }
            (Posted::DatagramReceive(slot), Ok(_)) => Ok(self.post_datagram_receive(slot)?),
            (Posted::DatagramSend(_) | Posted::DatagramReceive(_), Err(failure)) => {
                Err(Broken(format!("the queue pair by which connections are made: {failure}")))
            }
        }
    }
}
