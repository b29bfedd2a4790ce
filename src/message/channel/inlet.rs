//! The receiver's end of a channel.

use std::{borrow::BorrowMut, ops::Deref};

use ndarray::ArrayView1;

use super::{Waiting, slot::Receiving};
use crate::{
    calls::located,
    comm::engine::Waiter,
    element::Element,
    error::{Error, Result},
};

/// The receiver's end of a channel; see [`Group::channels`](crate::Group::channels).
#[derive(Debug)]
pub struct Inlet<T> {
    receiving: Receiving<T>,
}

/// A message, as a slice of the slot in which it arrived. Dropping it gives the slot back to the sender.
#[derive(Debug)]
pub struct Arrived<'a, T: Element> {
    receiving: &'a mut Receiving<T>,
}

impl<T: Element> Inlet<T> {
    pub(super) fn new(receiving: Receiving<T>) -> Self {
        Inlet { receiving }
    }

    /// The member that the channel comes from.
    #[must_use]
    pub fn member(&self) -> usize {
        self.receiving.end.other
    }

    /// The channel's tag.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.receiving.end.tag
    }

    /// The length of the longest message, in elements, as the sender gave it.
    #[must_use]
    pub fn most(&self) -> usize {
        self.receiving.end.most
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
    /// CkDirect §3: the callback, and `CkDirect_ready` when the answer is dropped.
    #[inline]
    #[track_caller]
    pub fn wait(&mut self) -> Result<Arrived<'_, T>> {
        located(move || {
            self.receiving.end.engine().check("wait")?;
            if !self.receiving.arrived()? {
                let receiving = &self.receiving;
                let waiting = Waiting::from(&receiving.end);
                receiving.end.engine().wait_word(receiving.word(), &waiting, |word| receiving.tells(word))?;
                self.receiving.arrived()?;
            }
            Ok(Arrived { receiving: &mut self.receiving })
        })
    }

    /// The next message, if it has arrived; as [`wait`](Self::wait).
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn try_wait(&mut self) -> Result<Option<Arrived<'_, T>>> {
        located(move || {
            self.receiving.end.engine().check("try_wait")?;
            if !self.receiving.arrived()? {
                self.receiving.end.engine().progress();
                if !self.receiving.arrived()? {
                    return Ok(None);
                }
            }
            Ok(Some(Arrived { receiving: &mut self.receiving }))
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
/// `MPI_Waitany`; CkDirect §3: which callback is called.
#[track_caller]
pub fn wait_any<T: Element, I: BorrowMut<Inlet<T>>>(inlets: &mut [I]) -> Result<usize> {
    located(move || {
        // What this rank still has from guards that were forgotten is no news.
        inlets.iter_mut().try_for_each(|inlet| inlet.borrow_mut().receiving.give_back())?;
        let all: Vec<&Receiving<T>> = inlets.iter().map(|inlet| &inlet.borrow().receiving).collect();
        let Some(first) = all.first() else { return Err(Error::argument("wait_any", "no inlets")) };
        let engine = first.end.engine();
        engine.check("wait_any")?;
        let waiting = AnyOf(all.iter().map(|receiving| Waiting::from(&receiving.end)).collect());
        engine.wait_any_word(&waiting, || all.iter().position(|receiving| receiving.tells(receiving.word().load())))
    })
}

/// The wait for one of several channels.
struct AnyOf<'a>(Vec<Waiting<'a>>);

impl Waiter for AnyOf<'_> {
    fn operation(&self) -> String {
        self.0.iter().map(Waiting::name).collect::<Vec<_>>().join(" or ")
    }
    fn missing(&self) -> String {
        "a message of one of them".into()
    }
    fn object(&self) -> String {
        self.operation()
    }
    fn awaits(&self) -> Option<usize> {
        let first = self.0[0].awaits();
        first.filter(|_| self.0.iter().all(|waiting| waiting.awaits() == first))
    }
    fn awaits_anybody(&self) -> bool {
        self.awaits().is_none()
    }
    fn hopeless(&self) -> Option<Error> {
        let mut all = self.0.iter().map(Waiting::hopeless);
        let first = all.next().flatten()?;
        all.all(|other| other.is_some()).then_some(first)
    }
    fn place(&self, rank: usize) -> String {
        self.0[0].place(rank)
    }
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
        self.receiving.slice()
    }
}

impl<T: Element> Drop for Arrived<'_, T> {
    fn drop(&mut self) {
        // A credit that failed is told by the next fence; a job that is over needs none.
        let _ = self.receiving.give_back();
    }
}
