//! What the machine of connections decides, done with a device.

use super::{
    super::device::{self, Address as PortAddress, Datagram, Device, DeviceError, Handle, To},
    ANSWERS_FOR_EVER, CONTROLS, FAILURES, FIND_AGAIN, Links, Posted, RECEIVE_TIMER, RETRIES, SENDS, STRAIGHT_SLOTS, TIMEOUT,
};
use crate::comm::{
    am::wire::{Broken, Result},
    protocol::connection::{Action, LENGTH, PairAddress, PairEvent},
};

impl<D: Device> Links<D> {
    /// Does what the machine of connections has said, in its order, and what follows from that.
    ///
    /// A step may find out more, which is said to the machine too. What it says to that comes behind what it has said before. So a step is never
    /// interrupted by another one, and none finds a connection of another epoch than the machine meant.
    pub(super) fn act(&mut self) -> Result<()> {
        if self.actions.is_empty() || std::mem::replace(&mut self.acts, true) {
            return Ok(());
        }
        let mut acted = Ok(());
        while let (Ok(()), Some(action)) = (&acted, self.actions.pop_front()) {
            acted = self.carry_out(action);
        }
        self.acts = false;
        acted
    }

    fn carry_out(&mut self, action: Action) -> Result<()> {
        let (peer, event) = match action {
            Action::Send { peer, bytes } => return self.send_datagram(peer, &bytes),
            Action::Prepare { peer, epoch } => {
                let prepared = self.prepare(peer, epoch).map(|address| PairEvent::Prepared { epoch, address });
                (peer, self.or_failed(peer, epoch, prepared)?)
            }
            Action::Connect { peer, epoch, remote } => {
                let connected = self.connect(peer, remote).map(|()| PairEvent::Connected { epoch });
                (peer, self.or_failed(peer, epoch, connected)?)
            }
            Action::Release { peer, epoch } => {
                let released = self.release(peer)?.map(|()| PairEvent::Released { epoch });
                let released = self.or_failed(peer, epoch, released)?;
                self.tell(peer, released);
                // What came for it while it was closed asks again; and what it may not have seen goes there once more.
                let closed = self.peers.meet(peer);
                closed.replay.is_over();
                closed.wanted = !closed.replay.is_done();
                if !closed.wanted {
                    self.absences.ends(peer);
                    return Ok(());
                }
                (peer, PairEvent::Wanted)
            }
            Action::Ready { peer, .. } => {
                let ready = self.peers.meet(peer);
                (ready.wanted, ready.failures) = (false, 0);
                ready.report.begins();
                self.due.push_back(peer);
                return self.send_due();
            }
            Action::Hold { peer, .. } if self.peers.meet(peer).completions.is_open() => return Ok(()),
            Action::Hold { peer, .. } => (peer, PairEvent::Acknowledged),
        };
        self.tell(peer, event);
        Ok(())
    }

    /// The event that answers a step. A failed step is tried again, up to [`FAILURES`] times in a row.
    fn or_failed(&mut self, peer: usize, epoch: u32, step: device::Result<PairEvent>) -> Result<PairEvent> {
        let failures = &mut self.peers.meet(peer).failures;
        match step {
            Ok(event) => Ok(event),
            Err(error) if *failures == FAILURES => Err(Broken(format!("connecting to rank {peer}: {error}"))),
            Err(_) => {
                *failures += 1;
                Ok(PairEvent::Failed { epoch })
            }
        }
    }

    fn address_of(&self, peer: usize) -> Option<PortAddress> {
        PortAddress::of_words(self.directory.find(peer)?)
    }

    /// A handle of a peer, once it is found. Over Ethernet the peer's adapter is asked for its address, which takes a second if it does not
    /// answer: then this endpoint does other things for a while, and the peer is away like one whose connection broke.
    fn find(&mut self, to: usize) -> Result<Option<Handle>> {
        let (Some(address), now) = (self.address_of(to), self.device.now()) else { return Ok(None) };
        if now < self.find_at {
            return Ok(None);
        }
        match self.device.handle(&address) {
            Ok(handle) => {
                self.peers.meet(to).handle = Some(handle);
                self.absences.ends(to);
                Ok(Some(handle))
            }
            Err(error) if error.is_no_answer() => {
                self.find_at = self.device.now() + FIND_AGAIN;
                self.absences.begins(to, error.to_string());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A queue pair in INIT, for a peer. If a step fails there is none.
    fn prepare(&mut self, peer: usize, epoch: u32) -> device::Result<PairAddress> {
        let pair = match self.spare.pop() {
            Some(pair) => pair,
            None => self.device.create(SENDS + STRAIGHT_SLOTS + CONTROLS + 1)?,
        };
        if let Err(error) =
            self.device.modify(pair, To::Init { access: device::Access::REMOTE_WRITE | device::Access::REMOTE_READ })
        {
            self.device.destroy(pair)?;
            return Err(error);
        }
        let sequence = self.random.below(device::NUMBERS as usize) as u32;
        self.peers.meet(peer).pair = Some((pair, epoch, sequence));
        self.owners.insert(pair.number, peer);
        Ok(PairAddress { queue_pair: pair.number, sequence })
    }

    fn connect(&mut self, peer: usize, remote: PairAddress) -> device::Result<()> {
        const NOT_MET: DeviceError = DeviceError::Invalid("a peer without an address or a queue pair");
        let (pair, _, first_packet) = self.peers.get(peer).and_then(|peer| peer.pair).ok_or(NOT_MET)?;
        let address = self.address_of(peer).ok_or(NOT_MET)?;
        let device::DeviceLimits { read_depth, answer_depth, .. } = *self.device.limits();
        let (number, first) = (remote.queue_pair, remote.sequence);
        let receive =
            To::ReadyToReceive { peer: &address, number, first_packet: first, answer_depth, receive_timer: RECEIVE_TIMER };
        self.device.modify(pair, receive)?;
        let read_depth = read_depth.min(address.answers);
        let send =
            To::ReadyToSend { first_packet, read_depth, timeout: TIMEOUT, retries: RETRIES, receive_retries: ANSWERS_FOR_EVER };
        self.device.modify(pair, send)
    }

    /// The queue pair of a peer is spare. If it cannot be reset there is none.
    fn release(&mut self, from: usize) -> Result<device::Result<()>> {
        let peer = self.peers.meet(from);
        let Some((pair, ..)) = peer.pair.take() else {
            peer.report.is_over();
            return Ok(Ok(()));
        };
        // It is given back with the others if anything fails here.
        self.spare.push(pair);
        // In the error state nothing arrives any more, and what did is taken out: a reset may drop it, and its receive with it.
        let failed = self.device.modify(pair, To::Error);
        while self.take_completions()? {}
        let reset = failed.and_then(|()| self.device.modify(pair, To::Reset));
        if reset.is_err() {
            // A pair that lives on might touch slots which others use by then.
            self.device.destroy(pair)?;
            self.spare.pop();
        }
        // Nothing is done for this life of the pair any more. What was done is reported before a slot or the pair is used again: later it would be
        // taken for the end of another work, or the word of another peer. What is not reported by now never will be.
        while self.take_completions()? {}
        self.owners.remove(&pair.number);
        // So is what the peer has said when it opened this connection: it is not said of the next one.
        let peer = self.peers.meet(from);
        peer.report.is_over();
        peer.completions.is_over();
        self.controlled.iter_mut().for_each(|sent| *sent = sent.filter(|(to, _)| *to != from));
        Ok(reset)
    }

    /// Sends a datagram, if that can be done now.
    pub(super) fn send_datagram(&mut self, to: usize, bytes: &[u8; LENGTH]) -> Result<()> {
        let Some(address) = self.address_of(to) else { return Ok(()) };
        let known = self.peers.meet(to).handle;
        let Some(handle) = known.map_or_else(|| self.find(to), |handle| Ok(Some(handle)))? else { return Ok(()) };
        let Some(slot) = self.free_datagrams.pop() else {
            self.late.retain(|&(peer, _)| peer != to);
            self.late.push_back((to, *bytes));
            return Ok(());
        };
        self.datagrams.write(slot, 0, bytes);
        let datagram = Datagram {
            id: Posted::DatagramSend(slot).id(),
            to: handle,
            number: address.number,
            key: address.key,
            local: self.datagrams.piece(slot, bytes.len()),
            signaled: true,
            inline: bytes.len() <= self.device.limits().inline,
        };
        // SAFETY: the slot is touched by nobody before its completion was polled, and lives as long as the device.
        match unsafe { self.device.post_datagram(&datagram) } {
            // Where queue pairs are short, a live peer may be silent until it has one for this connection.
            Ok(()) if self.is_short || self.connections.has_answered(to) => {}
            Ok(()) => self.absences.asks(to, || format!("it does not answer datagrams to {address:?}")),
            Err(DeviceError::Full { .. }) => self.free_datagrams.push(slot),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
