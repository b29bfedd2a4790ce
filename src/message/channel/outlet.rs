//! The sender's end of a channel.

use ndarray::{ArrayView, Dimension};

use super::{Waiting, slot::Sending};
use crate::{
    calls::located,
    element::Element,
    error::{Error, Result},
};

/// The sender's end of a channel; see [`Group::channels`](crate::Group::channels).
#[derive(Debug)]
pub struct Outlet<T> {
    sending: Sending<T>,
}

impl<T: Element> Outlet<T> {
    pub(super) fn new(sending: Sending<T>) -> Self {
        Outlet { sending }
    }

    /// The member that the channel leads to.
    #[must_use]
    pub fn member(&self) -> usize {
        self.sending.end.other
    }

    /// The channel's tag.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.sending.end.tag
    }

    /// The length of the longest message, in elements.
    #[must_use]
    pub fn most(&self) -> usize {
        self.sending.end.most
    }

    /// Sends the elements of a view of any shape and strides, in the order of their indices, up to [`most`](Self::most) of them, or none.
    /// Waits while all slots have messages that the receiver has not given back. One-sided otherwise; on return the view may be reused.
    ///
    /// The receiver also sees everything that this rank put at it before.
    ///
    /// # Errors
    /// More elements than `most`; a receiver that has ended; a deadlock; a put on this channel that failed; the end of the job.
    ///
    /// # Source
    /// CkDirect §3: `CkDirect_put`.
    #[inline]
    #[track_caller]
    pub fn put<'v, D: Dimension>(&mut self, from: impl Into<ArrayView<'v, T, D>>) -> Result<()> {
        located(move || {
            let from = from.into();
            self.wait_free("put", from.len())?;
            self.sending.put(&from)
        })
    }

    /// As [`put`](Self::put), but returns false and sends nothing where that would wait.
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
            self.sending.put(&from).map(|()| true)
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
            self.sending.fill(len, write)
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

    fn check(&self, operation: &'static str, len: usize) -> Result<()> {
        let end = &self.sending.end;
        end.engine().check(operation)?;
        if len > end.most {
            let (channel, most) = (Waiting::to(end).name(), end.most);
            return Err(Error::argument(operation, format_args!("{len} elements on {channel}, which takes up to {most}")));
        }
        self.sending.check()
    }

    fn wait_free(&mut self, operation: &'static str, len: usize) -> Result<()> {
        self.check(operation, len)?;
        if self.sending.is_free() {
            return Ok(());
        }
        let sending = &self.sending;
        let engine = sending.end.engine();
        engine.wait_word(sending.credit(), &Waiting::to(&sending.end), |credit| sending.suffices(credit))
    }

    /// Whether a slot is free, after a look at what has come.
    fn look(&mut self) -> bool {
        self.sending.is_free() || {
            self.sending.end.engine().progress();
            self.sending.is_free()
        }
    }
}
