//! How frames travel.

use std::fmt;

use super::adapter::{RmaAdapter, RmaDone};
use crate::comm::am::wire::{Class, Result};

/// Set in the ids of works that belong to a road.
pub(in crate::comm) const OF_ROAD: u64 = 1 << 63;

/// What carries frames over an adapter: each arrives once, and those from one rank in their order.
pub(in crate::comm) trait FrameRoad<A: RmaAdapter>: Send + fmt::Debug + 'static {
    /// Bytes of the longest frame. Constant.
    fn longest(&self) -> usize;

    /// Sends a copy of a frame. False if there is no room for it now. Requests leave some room to answers.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    fn send(&mut self, adapter: &mut A, to: usize, class: Class, frame: &[u8]) -> Result<bool>;

    /// Copies the next frame that has arrived. Returns its sender and its length.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    fn receive(&mut self, adapter: &mut A, frame: &mut [u8]) -> Result<Option<(usize, usize)>>;

    /// A work of the road, whose id has [`OF_ROAD`], has ended. Returns true if a frame of this rank is lost.
    fn ends(&mut self, done: &RmaDone) -> bool;

    /// Does again what the adapter was too full for. Called at each look. Returns true if there may be room for a frame now that found none before.
    ///
    /// # Errors
    /// [`Broken`](crate::comm::am::wire::Broken).
    fn tend(&mut self, adapter: &mut A) -> Result<bool>;

    /// Returns true if a frame has arrived that was not received.
    fn has_arrivals(&self) -> bool;

    /// Frames that may not have left.
    fn leaving(&self) -> usize;
}
