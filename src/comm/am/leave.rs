//! How a rank comes to its end.

use std::sync::atomic::Ordering;

use super::{
    Am,
    endpoint::Endpoint,
    route::Route,
    wire::{Result, Wire},
};
use crate::comm::{Event, Token};

impl<W: Wire> Am<W> {
    /// Answers others until something is `ready`, which is asked of the wire while nobody else is in it. False if the job failed meanwhile.
    #[cfg(feature = "mpi")]
    pub(in crate::comm) fn serve_while_waiting(&self, mut ready: impl FnMut() -> Result<bool>) -> bool {
        self.drive(|_| ready())
    }

    pub(super) fn drive(&self, mut ready: impl FnMut(&mut Endpoint<W>) -> Result<bool>) -> bool {
        // Ranks of this node that have come to their end say so too: that is no failure.
        while !self.fabric.is_inherited() && !matches!(self.fabric.failure(), Some((Some(_), _))) {
            let mut endpoint = self.endpoint();
            self.look(&mut endpoint, true, false);
            // Another thread of the program may still wait for the others.
            endpoint.events.retain(|event| !matches!(event, Event::RemoteDone(Token::NOBODY) | Event::LocalDone(Token::NOBODY)));
            match ready(&mut endpoint) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => {
                    self.report(Err(error));
                    return false;
                }
            }
            drop(endpoint);
            if !self.pass() {
                break;
            }
        }
        false
    }

    /// Sees everything that this rank sent handled, and sends nothing more by itself. False if the job failed meanwhile.
    pub(in crate::comm) fn settle(&self) -> bool {
        // What it asked before is answered before the last flush is, and nothing is asked behind that.
        self.leaves.store(true, Ordering::Relaxed);
        let unquiet = self.endpoint().unquiet();
        unquiet.into_iter().for_each(|to| self.flush_by(|_| Route::endpoint(to), Token::NOBODY));
        self.drive(|endpoint| {
            let is_quiet = endpoint.is_quiet();
            if !is_quiet {
                // Another thread of the program may send what it began before the end of the body.
                endpoint.settle()?;
            }
            Ok(is_quiet)
        })
    }

    /// Nothing is left to be handled for others.
    pub(in crate::comm) fn set_closed(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Gives the wire up. Its memory stays where the network may still use it.
    pub(in crate::comm) fn close(&self) {
        self.set_closed();
        self.endpoint().close();
    }
}
