//! Frames that the wire had no room for.
//!
//! Those of one class to one rank stay in their order. Credit bounds the frames of requests, the bound of answers that have not left those
//! of answers.

use std::collections::VecDeque;

use super::{
    frame::Frame,
    wire::{Class, Result, Wire},
};

/// See the module's essay.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    frames: VecDeque<(usize, Class, Frame)>,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Sends a sealed frame, now or when there is room.
    pub(super) fn send<W: Wire>(&mut self, wire: &mut W, to: usize, class: Class, frame: Frame) -> Result<()> {
        let waits = self.frames.iter().any(|&(rank, of, _)| (rank, of) == (to, class));
        let refused = if waits { Some(frame) } else { wire.send(to, class, frame)? };
        self.frames.extend(refused.map(|frame| (to, class, frame)));
        Ok(())
    }

    /// Sends what there is room for now.
    pub(super) fn resume<W: Wire>(&mut self, wire: &mut W) -> Result<()> {
        let mut full: Vec<(usize, Class)> = Vec::new();
        for _ in 0..self.frames.len() {
            let Some((to, class, frame)) = self.frames.pop_front() else { break };
            let refused = if full.contains(&(to, class)) { Some(frame) } else { wire.send(to, class, frame)? };
            if let Some(frame) = refused {
                full.push((to, class));
                self.frames.push_back((to, class, frame));
            }
        }
        Ok(())
    }
}
