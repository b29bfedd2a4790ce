//! Frames that the wire had no room for.
//!
//! Those of one class to one rank stay in their order. Credit bounds the frames of requests, and what peers ask for bounds those of
//! answers.

use std::collections::{BTreeMap, VecDeque};

use super::{
    frame::Frame,
    wire::{Class, Result, Wire},
};

/// See the module's essay.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// No queue is empty.
    queues: BTreeMap<(usize, Class), VecDeque<Frame>>,
    len: usize,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Sends a sealed frame, now or when there is room.
    pub(super) fn send<W: Wire>(&mut self, wire: &mut W, to: usize, class: Class, frame: Frame) -> Result<()> {
        let waits = self.len > 0 && self.queues.contains_key(&(to, class));
        let refused = if waits { Some(frame) } else { wire.send(to, class, frame)? };
        if let Some(frame) = refused {
            self.queues.entry((to, class)).or_default().push_back(frame);
            self.len += 1;
        }
        Ok(())
    }

    /// Sends what there is room for now.
    pub(super) fn resume<W: Wire>(&mut self, wire: &mut W) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        let (mut sent, mut broken) = (0, Ok(()));
        self.queues.retain(|&(to, class), queue| {
            while let Some(frame) = queue.pop_front() {
                match wire.send(to, class, frame) {
                    Ok(None) => sent += 1,
                    Ok(Some(frame)) => {
                        queue.push_front(frame);
                        break;
                    }
                    Err(error) => {
                        sent += 1;
                        broken = Err(error);
                    }
                }
            }
            !queue.is_empty()
        });
        self.len -= sent;
        broken
    }
}
