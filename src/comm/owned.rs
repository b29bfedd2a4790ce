//! Transfers whose memory belongs to the request: nobody has to outlive them.
//!
//! An array's elements are on the heap and stay where they are while the vector that owns them moves into the request table. There
//! it is freed, or given back to the handle, only when nothing is outstanding.

use ndarray::{Array, Dimension};

use super::engine::{Engine, Issuing, Label, RequestId};
use crate::{
    element::Element,
    error::Result,
    index::{KeptAxes, Patch},
    memory::buffer::{Source, Target},
};

/// Begins a request that owns `to`, and lets `issue` add gets into it. [`Engine::collect`] gives the elements back as a `Vec<T>`.
///
/// # Panics
/// If the array has not the shape of the selection.
pub(crate) fn get_owned<T: Element, Out: Dimension, D: Dimension>(
    engine: &Engine,
    label: Label,
    mut to: Array<T, Out>,
    patch: &Patch<D>,
    kept: &KeptAxes,
    issue: impl FnOnce(RequestId, &Target<'_, T, D>) -> Result<()>,
) -> Result<RequestId> {
    let mut view = to.view_mut();
    let target = Target::of(&mut view, patch, kept).expect("an array in the patch's shape");
    // SAFETY: the elements do not move with their vector; the request owns that until its transfers are complete, and `issue`,
    // which knows no lifetime, cannot keep the buffer.
    let target = unsafe { target.unbound() };
    let (elements, _) = to.into_raw_vec_and_offset();
    let issuing = engine.begin_owning(label, Box::new(elements), true);
    let issued = issue(issuing.request(), &target);
    begun(engine, issuing, issued)
}

/// Begins a request that owns `from`, and lets `issue` add puts out of it.
///
/// # Panics
/// If the array has not the shape of the selection.
pub(crate) fn put_owned<T: Element, Out: Dimension, D: Dimension>(
    engine: &Engine,
    label: Label,
    from: Array<T, Out>,
    patch: &Patch<D>,
    kept: &KeptAxes,
    issue: impl FnOnce(RequestId, &Source<'_, T, D>) -> Result<()>,
) -> Result<RequestId> {
    let source = Source::of(&from.view(), patch, kept).expect("an array in the patch's shape");
    // SAFETY: as in `get_owned`.
    let source = unsafe { source.unbound() };
    let (elements, _) = from.into_raw_vec_and_offset();
    let issuing = engine.begin_owning(label, Box::new(elements), false);
    let issued = issue(issuing.request(), &source);
    begun(engine, issuing, issued)
}

/// Ends the issuing; what was issued before a failure is let go.
fn begun(engine: &Engine, issuing: Issuing<'_>, issued: Result<()>) -> Result<RequestId> {
    let request = issuing.request();
    drop(issuing);
    if issued.is_err() {
        engine.detach(request);
    }
    issued.map(|()| request)
}
