//! The calls of VELO and RMA that are used.

use std::fmt;

use crate::comm::rma::adapter::RmaAccess;

/// Bytes of a packet of VELO that takes one slot of a mailbox.
pub(super) const PACKET: usize = 56;

/// Bytes of the longest command of RMA.
pub(super) const LONGEST_COMMAND: usize = 8 << 20;

/// A command of which a notification tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotedCommand {
    /// The oldest put to a peer that has not left (notification of the requester).
    Put { to: usize },
    /// The get whose last byte is in front of this network address here: a long one comes in packets, and the last one tells (of the completer).
    Get { end: u64 },
}

/// An entry of the queue of notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notification {
    pub(super) of: NotedCommand,
    /// Why the command was refused, if it was.
    pub(super) refused: Option<String>,
}

/// The bytes of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandBytes {
    /// Network addresses here and at the peer.
    pub(super) here: u64,
    pub(super) there: u64,
    pub(super) len: usize,
}

/// The engines of a node, driven by one thread at a time. No call blocks. Peers are ranks.
pub(super) trait Engines: Send + fmt::Debug + 'static {
    /// The node and the process there (`rma2_get_nodeid`, `rma2_get_vpid`).
    fn address(&self) -> u64;

    /// `rma2_connect`, `velo2_connect`: before anything goes to a peer. Nothing travels.
    fn meet(&mut self, peer: usize, address: u64) -> Result<(), String>;

    /// `rma2_register`, `rma2_get_nla`: returns the handle of memory, and its network address.
    ///
    /// # Safety
    /// The memory stays mapped until it is unregistered, and nobody holds Rust references to it.
    unsafe fn register(&mut self, start: *mut u8, len: usize, access: RmaAccess) -> Result<(u64, u64), String>;

    /// `rma2_unregister`. Nobody uses the memory any more on return.
    fn unregister(&mut self, region: u64);

    /// `rma2_post_put_bt`, with a notification of the requester.
    ///
    /// # Safety
    /// The bytes here stay as they are until that has come.
    unsafe fn put(&mut self, to: usize, bytes: CommandBytes) -> Result<(), String>;

    /// `rma2_post_get_bt`, with a notification of the completer.
    ///
    /// # Safety
    /// The bytes here may be written, and nobody touches them, until that has come.
    unsafe fn get(&mut self, from: usize, bytes: CommandBytes) -> Result<(), String>;

    /// `rma2_noti_probe`, `rma2_noti_free`: takes the next notification.
    ///
    /// # Errors
    /// The queue has overflown.
    fn notification(&mut self) -> Result<Option<Notification>, String>;

    /// `velo2_send`: sends a packet of at most [`PACKET`] bytes. False if the peer has no room (`VELO2_RET_TRY_AGAIN`).
    fn send(&mut self, to: usize, packet: &[u8]) -> Result<bool, String>;

    /// `velo2_recv`: takes the next packet. Returns its sender and its length.
    fn receive(&mut self, packet: &mut [u8; PACKET]) -> Option<(usize, usize)>;

    /// Goes on, in software that has no thread of its own.
    fn go_on(&mut self) {}

    /// `rma2_close`, `velo2_close`. Nothing moves on return.
    fn close(&mut self);
}
