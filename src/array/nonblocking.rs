//! Transfers that continue while the rank computes. Each owns its buffer.
//!
//! The request table owns the buffer of a transfer in flight; after completion the handle owns it. So you may drop or forget a handle at
//! any time. The next fence reports a failure that no `wait` has reported. If the group's memory is mapped, the operation is complete
//! when it is issued, without an entry in the table.

use std::{fmt, panic::Location, sync::Arc};

use ndarray::{Array, Dimension};

use super::GlobalArray;
use crate::{
    calls::located,
    comm::engine::{
        Engine, Label, Ticket,
        owned::{get_owned, put_owned},
    },
    element::{Additive, Element},
    error::Result,
    index::{IntoPatch, Selection},
};

/// A request in flight. Dropping it detaches the request.
struct Key {
    engine: Arc<Engine>,
    ticket: Ticket,
}

impl Key {
    fn test(&self) -> Result<bool> {
        if self.engine.test(self.ticket.request()) {
            return Ok(true);
        }
        self.engine.check("test").map(|()| false)
    }
}

/// A get in flight; [`wait`](Self::wait) returns the array.
#[must_use = "the elements are in what `wait` returns"]
pub struct Get<T, Out>(State<T, Out>);

enum State<T, Out> {
    Done(Array<T, Out>),
    UnderWay { key: Key, shape: Out },
}

impl<T: Element, Out: Dimension> Get<T, Out> {
    /// Waits until the elements have arrived, and returns them.
    ///
    /// # Errors
    /// The transfer failed; the end of the job.
    #[doc(alias = "NGA_NbWait")]
    #[allow(clippy::missing_panics_doc, reason = "the request keeps the elements for the one handle")]
    #[track_caller]
    pub fn wait(self) -> Result<Array<T, Out>> {
        located(move || match self.0 {
            State::Done(array) => Ok(array),
            State::UnderWay { key, shape } => {
                let elements: Option<Vec<T>> = key.engine.collect(key.ticket)?;
                let elements = elements.expect("only the handle takes the elements of a get");
                Ok(Array::from_shape_vec(shape, elements).expect("as many elements as the patch has"))
            }
        })
    }

    /// Whether [`wait`](Self::wait) would return at once; makes progress.
    ///
    /// # Errors
    /// The end of the job.
    #[doc(alias = "NGA_NbTest")]
    #[track_caller]
    pub fn test(&self) -> Result<bool> {
        located(move || match &self.0 {
            State::Done(_) => Ok(true),
            State::UnderWay { key, .. } => key.test(),
        })
    }
}

impl<T, Out> fmt::Debug for Get<T, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self.0, State::Done(_)) { "Get(done)" } else { "Get(under way)" })
    }
}

/// A put or accumulate in flight, with the array that it reads.
#[must_use = "`wait` says whether it failed; else the next fence does"]
pub struct Pending(Option<Key>);

impl Pending {
    /// Waits for local completion and frees the buffer. The data are visible at the owners after a fence or a sync.
    ///
    /// # Errors
    /// The transfer failed; the end of the job.
    #[track_caller]
    pub fn wait(self) -> Result<()> {
        located(move || match self.0 {
            None => Ok(()),
            Some(key) => key.engine.collect::<()>(key.ticket).map(|_| ()),
        })
    }

    /// Whether [`wait`](Self::wait) would return at once; makes progress.
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn test(&self) -> Result<bool> {
        located(move || self.0.as_ref().map_or(Ok(true), Key::test))
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_none() { "Pending(done)" } else { "Pending(under way)" })
    }
}

/// # Non-blocking patches
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Starts reading a patch into a new array. One-sided; complete when [`wait`](Get::wait) returns.
    ///
    /// # Errors
    /// A patch outside the array; the end of the job.
    ///
    /// # Examples
    /// ```
    /// # use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads:unmapped").run(|job| {
    ///     let a = GlobalArray::<f64, Ix2>::builder(job, [8, 8]).fill(2.0).create()?;
    ///     let next = a.get_nb(s![4..8, ..])?;
    ///     // ... compute ...
    ///     assert_eq!(next.wait()?.sum(), 64.0);
    ///     Ok::<(), Error>(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_NbGet`, `NGA_NbWait`, `NGA_NbTest`.
    #[doc(alias = "NGA_NbGet")]
    #[track_caller]
    pub fn get_nb<P: IntoPatch<D>>(&self, patch: P) -> Result<Get<T, P::Output>> {
        let caller = Location::caller();
        located(move || self.begin_get(patch, Some(caller)))
    }

    /// [`get_nb`](Self::get_nb), for a call of the program at this place, if it may end before the transfer does.
    pub(super) fn begin_get<P: IntoPatch<D>>(
        &self,
        patch: P,
        caller: Option<&'static Location<'static>>,
    ) -> Result<Get<T, P::Output>> {
        const OPERATION: &str = "get_nb";
        if self.group.inner.mapped {
            return self.get(patch).map(|array| Get(State::Done(array)));
        }
        self.check_job(OPERATION)?;
        let Selection { patch, kept } = patch.into_patch(&self.extents).map_err(|error| self.patch_error(OPERATION, error))?;
        let shape = kept.shape::<P::Output, D>(&patch);
        let array = Array::from_elem(shape.clone(), T::zeroed());
        let label = Label { caller, ..self.label(OPERATION) };
        let ticket = get_owned(self.engine(), label, array, &patch, &kept, |request, to| self.issue_gets(request, &patch, to))?;
        Ok(Get(State::UnderWay { key: self.key(ticket), shape }))
    }

    /// Starts writing an array, which may have any strides, into a patch. One-sided; visible at the owners after a
    /// [`fence`](Self::fence) or a sync.
    ///
    /// # Errors
    /// A patch outside the array; an array of the wrong shape; the end of the job.
    ///
    /// # Source
    /// GA: `NGA_NbPut`.
    #[doc(alias = "NGA_NbPut")]
    #[track_caller]
    pub fn put_nb<P: IntoPatch<D>>(&self, patch: P, from: Array<T, P::Output>) -> Result<Pending> {
        let caller = Location::caller();
        located(move || {
            const OPERATION: &str = "put_nb";
            if self.group.inner.mapped {
                return self.put(patch, &from).map(|()| Pending(None));
            }
            self.check_job(OPERATION)?;
            let Selection { patch, kept } =
                patch.into_patch(&self.extents).map_err(|error| self.patch_error(OPERATION, error))?;
            let shape = kept.shape::<P::Output, D>(&patch);
            if shape != from.raw_dim() {
                return Err(self.shape_error(OPERATION, shape.slice(), from.shape()));
            }
            let ticket = put_owned(self.engine(), self.label_at(OPERATION, caller), from, &patch, &kept, |request, from| {
                self.issue_puts(request, &patch, from)
            })?;
            Ok(Pending(Some(self.key(ticket))))
        })
    }

    fn key(&self, ticket: Ticket) -> Key {
        Key { engine: self.group.inner.job.engine.clone(), ticket }
    }
}

/// # Non-blocking accumulates
impl<T: Additive, D: Dimension> GlobalArray<T, D> {
    /// Starts adding `alpha` times an array to a patch. One-sided; atomic for each element with respect to other accumulates; visible
    /// at the owners after a [`fence`](Self::fence) or a sync.
    ///
    /// If the owners add (the network has [`Native::accumulate`](crate::network::Native::accumulate), and
    /// the element is a number of 4 or 8 bytes, or complex), the operation continues while the rank computes. Otherwise it is
    /// complete when this call returns, because it adds under a lock that is not held across calls.
    ///
    /// # Errors
    /// Same as [`put_nb`](Self::put_nb); a transfer that failed.
    ///
    /// # Source
    /// GA: `NGA_NbAcc`.
    #[doc(alias = "NGA_NbAcc")]
    #[track_caller]
    pub fn accumulate_nb<P: IntoPatch<D>>(&self, patch: P, alpha: T::Scale, from: Array<T, P::Output>) -> Result<Pending> {
        let caller = Location::caller();
        located(move || {
            const OPERATION: &str = "accumulate_nb";
            let Some(scale) = self.owners_scale(alpha) else {
                return self.accumulate(patch, alpha, &from).map(|()| Pending(None));
            };
            self.check_job(OPERATION)?;
            let Selection { patch, kept } =
                patch.into_patch(&self.extents).map_err(|error| self.patch_error(OPERATION, error))?;
            let shape = kept.shape::<P::Output, D>(&patch);
            if shape != from.raw_dim() {
                return Err(self.shape_error(OPERATION, shape.slice(), from.shape()));
            }
            let ticket = put_owned(self.engine(), self.label_at(OPERATION, caller), from, &patch, &kept, |request, from| {
                self.issue_accumulates(request, &patch, alpha, &scale, from)
            })?;
            Ok(Pending(Some(self.key(ticket))))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::mem::forget;

    use ndarray::s;

    use crate::prelude::*;

    #[test]
    fn forgotten_handles_leave_nothing_in_the_table() {
        const HANDLES: usize = 100_000;
        let body = |job: &Job| {
            let a = GlobalArray::<u32, Ix1>::builder(job, [64]).fill(7).create()?;
            if job.rank() == 0 {
                let held = || a.engine().requests_held();
                for turn in 0..HANDLES {
                    // In the other rank's half.
                    let at = 32 + turn % 32;
                    match turn % 2 {
                        0 => forget(a.get_nb(s![at..at + 1])?),
                        _ => forget(a.put_nb(s![at..at + 1], Array1::from_elem(1, 7))?),
                    }
                    // The network takes a bounded number of transfers at once.
                    assert!(held() < 1000, "{} requests after {turn} handles", held());
                }
                let last = a.get_nb(s![40..42])?;
                a.fence()?;
                assert_eq!(held(), 0);
                assert_eq!(last.wait()?, Array1::from_elem(2, 7));
            }
            job.sync()
        };
        Launch::new().ranks(2).network("threads:unmapped").run(body).unwrap();
    }
}
