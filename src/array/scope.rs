//! Transfers that continue while the rank computes, with borrowed buffers.
//!
//! The buffers outlive the scope by type, as with `std::thread::scope`. The scope ends when all its transfers have completed, even if the
//! closure fails or unwinds. If completion is impossible while a device may still access a buffer, the process ends: nothing else keeps
//! the borrow sound.

use std::{
    cell::{Cell, RefCell},
    fmt,
    marker::PhantomData,
    panic::Location,
    sync::Arc,
};

use ndarray::{ArrayView, ArrayViewMut, Dimension, IntoDimension};

use super::GlobalArray;
use crate::{
    calls::{Here, located},
    comm::engine::{Call, Engine, RequestId, Serial},
    element::{Additive, Element},
    error::Result,
    index::{IntoPatch, Selection},
    memory::buffer::{Source, Target},
    sync::{Group, SignalTarget},
};

/// Issues transfers that are complete when the scope ends; see [`Group::scope`].
pub struct Scope<'env> {
    requests: RefCell<Vec<(Arc<Engine>, RequestId)>>,
    /// The place of all its transfers in the order of calls: they keep none among themselves.
    place: Cell<Option<Serial>>,
    /// What is raised when all transfers are complete.
    signals: RefCell<Vec<SignalTarget<'env>>>,
    /// Something was put with a signal to others than the signal's member.
    others: Cell<bool>,
    /// Invariant: were a scope of a long life also one of a short life, a buffer of the closure itself could be lent to it.
    env: PhantomData<&'env mut &'env ()>,
}

impl Group {
    /// Runs `body` with a scope for transfers that borrow their buffers. On return all of them are complete, as after blocking calls.
    /// Transfers in a scope are unordered.
    ///
    /// # Errors
    /// The error of `body`, or else the first transfer that failed.
    ///
    /// # Examples
    /// ```
    /// # use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads:unmapped").run(|job| {
    ///     let a = GlobalArray::<f64, Ix2>::builder(job, [8, 8]).fill(2.0).create()?;
    ///     let mut halo = Array2::zeros((10, 8));
    ///     let (mut above, mut below) = (Array1::zeros(8), Array1::zeros(8));
    ///     job.scope(|s| {
    ///         s.get_into(&a, s![0, ..], &mut above)?;
    ///         s.get_into(&a, s![7, ..], &mut below)?;
    ///         s.get_into(&a, .., halo.slice_mut(s![1..9, ..]))
    ///     })?;
    ///     assert_eq!(halo.sum() + above.sum() + below.sum(), 160.0);
    ///     Ok::<(), Error>(())
    /// })
    /// # }
    /// ```
    ///
    /// A buffer that does not outlive the scope does not compile:
    /// ```compile_fail,E0597
    /// # use global_arrays::prelude::*;
    /// # fn f(job: &Job, a: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
    /// job.scope(|s| {
    ///     let mut short = Array1::zeros(8);
    ///     s.get_into(a, .., &mut short)
    /// })
    /// # }
    /// ```
    ///
    /// nor does the use of a buffer while a transfer may access it:
    /// ```compile_fail,E0502
    /// # use global_arrays::prelude::*;
    /// # fn f(job: &Job, a: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
    /// let mut buffer = Array1::zeros(8);
    /// job.scope(|s| {
    ///     s.get_into(a, .., &mut buffer)?;
    ///     assert_eq!(buffer[0], 0.0);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn scope<'env, R>(&self, body: impl FnOnce(&Scope<'env>) -> Result<R>) -> Result<R> {
        let scope = Scope {
            requests: RefCell::default(),
            place: Cell::default(),
            signals: RefCell::default(),
            others: Cell::default(),
            env: PhantomData,
        };
        let value = body(&scope);
        let completed = located(|| scope.complete());
        let value = value?;
        completed.and_then(|()| scope.raise()).here().map(|()| value)
    }
}

// The roads over a network are not functions of their own: patch and view would be copied on the way, half as long as a mapped put.
impl<'env> Scope<'env> {
    /// [`GlobalArray::get_into`], complete at the end of the scope. Until then the view stays borrowed.
    ///
    /// # Errors
    /// The same errors as that method.
    #[inline]
    #[track_caller]
    pub fn get_into<T: Element, D: Dimension, P: IntoPatch<D>>(
        &self,
        array: &GlobalArray<T, D>,
        patch: P,
        to: impl Into<ArrayViewMut<'env, T, P::Output>>,
    ) -> Result<()> {
        let caller = Location::caller();
        located(move || {
            const OPERATION: &str = "get_into";
            if array.group.inner.mapped {
                return array.get_into(patch, to);
            }
            array.check_job(OPERATION)?;
            let Selection { patch, kept } =
                patch.into_patch(&array.extents).map_err(|error| array.patch_error(OPERATION, error))?;
            let mut to = to.into();
            let Some(target) = Target::of(&mut to, &patch, &kept) else {
                return Err(array.shape_error(OPERATION, kept.shape::<P::Output, D>(&patch).slice(), to.shape()));
            };
            array.issue_gets(&self.begin(array, OPERATION, caller), &patch, &target)
        })
    }

    /// [`GlobalArray::put`], complete at the end of the scope. Until then the view stays borrowed.
    ///
    /// # Errors
    /// The same errors as that method.
    #[inline]
    #[track_caller]
    pub fn put<T: Element, D: Dimension, P: IntoPatch<D>>(
        &self,
        array: &GlobalArray<T, D>,
        patch: P,
        from: impl Into<ArrayView<'env, T, P::Output>>,
    ) -> Result<()> {
        let caller = Location::caller();
        located(move || {
            if array.group.inner.mapped {
                return array.put(patch, from);
            }
            let (patch, source) = array.resolve_put(patch, from)?;
            array.issue_puts(&self.begin(array, "put", caller), &patch, &source)
        })
    }

    /// [`GlobalArray::accumulate`], complete at the end of the scope, or on return by the rule of [`GlobalArray::accumulate_nb`].
    ///
    /// # Errors
    /// Same as there. The end of the scope reports failures of transfers that are still in flight.
    #[track_caller]
    pub fn accumulate<T: Additive, D: Dimension, P: IntoPatch<D>>(
        &self,
        array: &GlobalArray<T, D>,
        patch: P,
        alpha: T::Scale,
        from: impl Into<ArrayView<'env, T, P::Output>>,
    ) -> Result<()> {
        let caller = Location::caller();
        located(move || {
            const OPERATION: &str = "accumulate";
            let Some(scale) = array.owners_scale(alpha) else {
                return array.accumulate(patch, alpha, from);
            };
            array.check_job(OPERATION)?;
            let Selection { patch, kept } =
                patch.into_patch(&array.extents).map_err(|error| array.patch_error(OPERATION, error))?;
            let from = from.into();
            let Some(source) = Source::of(&from, &patch, &kept) else {
                return Err(array.shape_error(OPERATION, kept.shape::<P::Output, D>(&patch).slice(), from.shape()));
            };
            array.issue_accumulates(&self.begin(array, OPERATION, caller), &patch, alpha, &scale, &source)
        })
    }

    /// [`put`](Self::put), and a signal that is raised when the scope ends, after all its transfers. At the signal's member the data
    /// are visible before the signal. A scope that fails raises no signal.
    ///
    /// # Errors
    /// Same as [`GlobalArray::put_signal`].
    #[track_caller]
    pub fn put_signal<T: Element, D: Dimension, P: IntoPatch<D>>(
        &self,
        array: &GlobalArray<T, D>,
        patch: P,
        from: impl Into<ArrayView<'env, T, P::Output>>,
        signal: SignalTarget<'env>,
    ) -> Result<()> {
        let caller = Location::caller();
        located(move || {
            signal.check("put_signal")?;
            if array.group.inner.mapped {
                array.put(patch, from)?;
            } else {
                let (patch, source) = array.resolve_put(patch, from)?;
                array.issue_puts(&self.begin(array, "put_signal", caller), &patch, &source)?;
                self.others.set(self.others.get() || !array.is_owned_by(signal, &patch));
            }
            self.signals.borrow_mut().push(signal);
            Ok(())
        })
    }

    /// [`GlobalArray::load`], complete on return.
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn load<T: Element, D: Dimension>(&self, array: &GlobalArray<T, D>, index: impl IntoDimension<Dim = D>) -> Result<T> {
        located(move || array.load(index))
    }

    /// [`GlobalArray::gather`], complete on return.
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn gather<T: Element, D: Dimension, I: IntoDimension<Dim = D> + Copy>(
        &self,
        array: &GlobalArray<T, D>,
        subscripts: &[I],
        to: &mut [T],
    ) -> Result<()> {
        located(move || array.gather(subscripts, to))
    }

    /// Raises the signals, after a fence if something was put to others than their members.
    fn raise(&self) -> Result<()> {
        let signals = self.signals.take();
        if let Some(first) = signals.first().filter(|_| self.others.get()) {
            first.fence()?;
        }
        signals.into_iter().try_for_each(SignalTarget::notify)
    }

    /// A request that the end of the scope waits for, whatever becomes of its issuing.
    fn begin<T: Element, D: Dimension>(
        &self,
        array: &GlobalArray<T, D>,
        operation: &'static str,
        caller: &'static Location<'static>,
    ) -> Call {
        let engine = &array.group.inner.job.engine;
        let mut requests = self.requests.borrow_mut();
        requests.reserve(1);
        // Another job has an order of its own.
        let place = self.place.get().filter(|_| requests.last().is_some_and(|(last, _)| Arc::ptr_eq(last, engine)));
        let place = place.unwrap_or_else(|| engine.serial());
        self.place.set(Some(place));
        let (request, call) = engine.enter_as(place, array.label_at(operation, caller));
        requests.push((engine.clone(), request));
        call
    }

    /// Waits for everything; the first failure.
    fn complete(&self) -> Result<()> {
        let mut result = Ok(());
        for (engine, request) in self.requests.borrow().iter() {
            result = result.and(engine.finish_borrowed(*request, Ok(())));
        }
        self.requests.borrow_mut().clear();
        result
    }
}

impl Drop for Scope<'_> {
    /// The closure unwound: its buffers are about to end.
    fn drop(&mut self) {
        // The panic is what the job ends with.
        let _ = self.complete();
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("requests", &self.requests.borrow().len()).finish()
    }
}
