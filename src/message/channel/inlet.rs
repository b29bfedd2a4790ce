//! What a program does with the receiver's end of a channel.

use std::{
    borrow::{Borrow, BorrowMut},
    ops::Deref,
};

use ndarray::ArrayView1;

use super::{Inlet, Waiting};
use crate::{
    calls::located,
    element::Element,
    error::{Error, Result},
};

/// A message, as a slice of the slot in which it arrived. Dropping it gives the slot back to the sender.
#[derive(Debug)]
pub struct Arrived<'a, T: Element>(&'a mut Inlet<T>);

impl<T: Element> Inlet<T> {
    /// The member that the channel comes from.
    #[must_use]
    pub fn member(&self) -> usize {
        self.end.other
    }

    /// The channel's tag.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.end.peer.tag
    }

    /// Waits for the next message. Messages come whole, once each, in the order in which they were put; everything that the sender put at
    /// this rank before is visible too. The slot stays this rank's until the answer is dropped.
    ///
    /// # Errors
    /// A sender that has ended; a deadlock; the end of the job.
    ///
    /// # Examples
    /// Two messages of one channel cannot be held at once:
    /// ```compile_fail,E0499
    /// # use global_arrays::{channel::Inlet, Error};
    /// # fn f(inlet: &mut Inlet<f64>) -> Result<(), Error> {
    /// let first = inlet.wait()?;
    /// let second = inlet.wait()?;
    /// # drop(first);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Source
    /// CkDirect §2: the callback, and `CkDirect_ready` when the answer is dropped.
    #[inline]
    #[track_caller]
    pub fn wait(&mut self) -> Result<Arrived<'_, T>> {
        located(move || {
            self.end.check("wait")?;
            if !self.take()? {
                let waiting = Waiting::new(&self.end, false);
                self.end.engine().wait_word(self.word(), &waiting, |word| self.tells(word))?;
                self.take()?;
            }
            Ok(Arrived(self))
        })
    }

    /// The next message, if it has arrived; as [`wait`](Self::wait).
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn try_wait(&mut self) -> Result<Option<Arrived<'_, T>>> {
        located(move || {
            self.end.check("try_wait")?;
            if !self.take()? {
                self.end.engine().progress();
                if !self.take()? {
                    return Ok(None);
                }
            }
            Ok(Some(Arrived(self)))
        })
    }
}

/// Waits until one of some inlets has a message, and returns its number; if several have one, the lowest. [`wait`](Inlet::wait) on it does
/// not wait then.
///
/// # Errors
/// No inlets; all their senders have ended; a deadlock; the end of the job.
///
/// # Examples
/// ```
/// use global_arrays::{channel, channel::{from, to}, prelude::*};
/// # fn main() -> Result<(), Error> {
/// Launch::new().ranks(3).network("threads").run(|job| {
///     if job.rank() > 0 {
///         let ([mut up], []) = job.channels([to(0, 0, 1)], [])?;
///         return up.put(&[job.rank()]);
///     }
///     let ([], mut inlets) = job.channels::<usize, _, _>([], vec![from(1, 0), from(2, 0)])?;
///     let mut sum = 0;
///     for _ in 0..2 {
///         let first = channel::wait_any(&mut inlets)?;
///         sum += inlets.remove(first).wait()?[0];
///     }
///     assert_eq!(sum, 3);
///     Ok(())
/// })
/// # }
/// ```
///
/// # Source
/// `MPI_Waitany`; CkDirect §2: which callback is called.
#[track_caller]
pub fn wait_any<T: Element, I: BorrowMut<Inlet<T>>>(inlets: &mut [I]) -> Result<usize> {
    located(move || {
        // What this rank still has from guards that were forgotten is no news.
        inlets.iter_mut().try_for_each(|inlet| inlet.borrow_mut().give_back())?;
        let all: Vec<&Inlet<T>> = inlets.iter().map(Borrow::borrow).collect();
        let Some(first) = all.first() else { return Err(Error::argument("wait_any", "no inlets")) };
        first.end.check("wait_any")?;
        let peers: Vec<_> = all.iter().map(|inlet| inlet.end.peer).collect();
        let waiting = Waiting { group: first.end.group(), sends: false, creates: false, peers: &peers };
        first.end.engine().wait_any_word(&waiting, || all.iter().position(|inlet| inlet.tells(inlet.word().load())))
    })
}

impl<T: Element> Arrived<'_, T> {
    /// The elements as a view of one axis.
    #[must_use]
    pub fn view(&self) -> ArrayView1<'_, T> {
        ArrayView1::from(&**self)
    }
}

impl<T: Element> Deref for Arrived<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.0.slice()
    }
}

impl<T: Element> Drop for Arrived<'_, T> {
    fn drop(&mut self) {
        // The next fence reports a credit that failed. A job that is over needs none.
        let _ = self.0.give_back();
    }
}
