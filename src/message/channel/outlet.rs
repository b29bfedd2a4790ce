//! What a program does with the sender's end of a channel.

use ndarray::{ArrayView, Dimension};

use super::{Outlet, Waiting};
use crate::{
    calls::located,
    element::Element,
    error::{Error, Result},
};

impl<T: Element> Outlet<T> {
    /// The member that the channel leads to.
    #[must_use]
    pub fn member(&self) -> usize {
        self.end.other
    }

    /// The channel's tag.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.end.peer.tag
    }

    /// Sends the elements of a view of any shape and strides, in the order of their indices, as many as the channel takes, or none.
    /// Waits while all slots have messages that the receiver has not given back. One-sided otherwise; on return the view may be reused.
    ///
    /// The receiver also sees everything that this rank put at it before.
    ///
    /// # Errors
    /// More elements than the channel takes; a receiver that has ended; a deadlock; a put on this channel that failed; the end of the job.
    ///
    /// # Source
    /// CkDirect §2: `CkDirect_put`.
    #[inline]
    #[track_caller]
    pub fn put<'v, D: Dimension>(&mut self, from: impl Into<ArrayView<'v, T, D>>) -> Result<()> {
        located(move || {
            let from = from.into();
            self.wait_free("put", from.len())?;
            self.send(&from)
        })
    }

    /// As [`put`](Self::put), but returns false and sends nothing where that would wait. The credit of a free slot takes a moment to arrive.
    /// After a refusal, try again before you wait for anything that depends on the message.
    ///
    /// # Errors
    /// Same as [`put`](Self::put), but for those of the wait.
    #[track_caller]
    pub fn try_put<'v, D: Dimension>(&mut self, from: impl Into<ArrayView<'v, T, D>>) -> Result<bool> {
        located(move || {
            let from = from.into();
            self.check("try_put", from.len())?;
            if !self.look() {
                return Ok(false);
            }
            self.send(&from).map(|()| true)
        })
    }

    /// Sends `len` elements that `write` writes: where the receiver's memory is mapped, into the slot in which they will be read. Waits as
    /// [`put`](Self::put) does. What the slice holds at first is of no meaning. If `write` panics, nothing is sent.
    ///
    /// # Errors
    /// Same as [`put`](Self::put); then `write` was not called, or its message may not have arrived.
    #[track_caller]
    pub fn fill<R>(&mut self, len: usize, write: impl FnOnce(&mut [T]) -> R) -> Result<R> {
        located(move || {
            self.wait_free("fill", len)?;
            self.write(len, write)
        })
    }

    /// Returns true if [`put`](Self::put) and [`fill`](Self::fill) would not wait now.
    ///
    /// # Errors
    /// A put on this channel that failed; the end of the job.
    #[track_caller]
    pub fn is_ready(&mut self) -> Result<bool> {
        located(|| {
            self.check("is_ready", 0)?;
            Ok(self.look())
        })
    }

    #[inline]
    fn check(&self, operation: &'static str, len: usize) -> Result<()> {
        self.end.check(operation)?;
        if len <= self.end.most && self.is_sound() {
            return Ok(());
        }
        let (peer, most) = (self.end.peer, self.end.most);
        let why = match self.is_sound() {
            true => format!("{len} elements, and it takes up to {most}"),
            false => "a put on it failed and may still arrive, so it cannot be used any more".to_owned(),
        };
        Err(Error::argument(operation, format_args!("channel {} to rank {}: {why}", peer.tag, peer.rank)))
    }

    #[inline]
    fn wait_free(&mut self, operation: &'static str, len: usize) -> Result<()> {
        self.check(operation, len)?;
        if self.is_free() {
            return Ok(());
        }
        self.end.engine().wait_word(self.credit(), &Waiting::new(&self.end, true), |credit| self.suffices(credit))
    }

    /// Whether a slot is free, after a look at what has come.
    fn look(&mut self) -> bool {
        self.is_free() || {
            self.end.engine().progress();
            self.is_free()
        }
    }
}
