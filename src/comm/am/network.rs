//! The active messages as a network: how a rank waits on them, and ends.

use std::{io, ops::Range, time::Duration};

use super::{Am, wire::Wire};
use crate::comm::{Connections, Network, node::Note};

impl<W: Wire> Network for Am<W> {
    fn opens(&self, range: Range<usize>) -> io::Result<()> {
        self.open(range)
    }

    fn shuts(&self, range: Range<usize>) -> io::Result<()> {
        self.shut(range)
    }

    fn attend(&self) -> bool {
        let Some(mut endpoint) = self.try_endpoint() else {
            std::thread::yield_now();
            return false;
        };
        self.look(&mut endpoint, true, false);
        endpoint.has_more || !endpoint.events.is_empty()
    }

    fn connections(&self) -> Option<Connections> {
        if self.connects { self.endpoint().wire.connections() } else { None }
    }

    fn arm(&self) -> bool {
        self.try_endpoint().is_some_and(|mut endpoint| endpoint.wire.arm())
    }

    fn expects(&self) -> bool {
        self.try_endpoint().is_some_and(|endpoint| endpoint.expects())
    }

    fn doze(&self, limit: Duration, ready: &dyn Fn() -> bool) -> bool {
        !self.is_closed() && !self.fabric.is_inherited() && self.sleep_in_network(limit, ready)
    }

    fn is_behind(&self) -> bool {
        !self.is_closed() && self.try_endpoint().is_some_and(|mut endpoint| endpoint.is_behind())
    }

    fn settled(&self) -> Option<bool> {
        self.is_settled()
    }

    fn send_note(&self, rank: usize, note: Note) {
        self.queue_note(rank, note);
    }

    fn announce_end(&self, culprit: usize, cause: &str) {
        self.tell_end(culprit, cause);
    }

    fn drain(&self) {
        self.settle();
    }

    fn serve_until(&self, ready: &dyn Fn() -> bool) {
        if self.drive(|_| Ok(ready())) {
            self.close();
        }
    }
}
