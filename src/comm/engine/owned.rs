//! Transfers whose memory belongs to the request: no caller has to outlive them.
//!
//! An array's elements stay where they are on the heap while their vector moves into the request table. The table frees it, or gives it
//! to the handle's ticket, only when nothing is outstanding.

use ndarray::{Array, Dimension};

use super::{Call, Engine, Label, Ticket};
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
    issue: impl FnOnce(&Call, &Target<'_, T, D>) -> Result<()>,
) -> Result<Ticket> {
    let mut view = to.view_mut();
    let target = Target::of(&mut view, patch, kept).expect("an array in the patch's shape");
    // SAFETY: the elements do not move with their vector; the request owns that until its transfers are complete, and `issue`,
    // which knows no lifetime, cannot keep the buffer.
    let target = unsafe { target.unbound() };
    let (elements, _) = to.into_raw_vec_and_offset();
    let (issuing, ticket) = engine.begin_owning(label, Box::new(elements), true);
    // What was issued before a failure goes on without a handle.
    issue(issuing.call(), &target)?;
    Ok(ticket)
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
    issue: impl FnOnce(&Call, &Source<'_, T, D>) -> Result<()>,
) -> Result<Ticket> {
    let source = Source::of(&from.view(), patch, kept).expect("an array in the patch's shape");
    // SAFETY: as in `get_owned`.
    let source = unsafe { source.unbound() };
    let (elements, _) = from.into_raw_vec_and_offset();
    let (issuing, ticket) = engine.begin_owning(label, Box::new(elements), false);
    issue(issuing.call(), &source)?;
    Ok(ticket)
}

#[cfg(test)]
mod tests {
    use std::{
        panic::Location,
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, Ordering},
        },
    };

    use super::*;
    use crate::{
        calls::Here,
        comm::{
            Cause, Event,
            testing::{Call as Asked, Fake},
        },
    };

    /// A network whose puts all fail.
    fn broken() -> Fake {
        Fake::new(|call| match call {
            Asked::Put(token) => Some(Event::Failed(token, Cause("a cut cable".into()))),
            Asked::Flush(token) => Some(Event::RemoteDone(token)),
            _ => None,
        })
    }

    fn label() -> Label {
        Label { caller: Some(Location::caller()), ..Label::new("a", "put_nb") }
    }

    /// A put of which the network makes what it likes, and the witness of its buffer's life.
    fn issue(engine: &Engine) -> (Ticket, Arc<[u8; 8]>) {
        let witness = Arc::new([1; 8]);
        let (issuing, ticket) = engine.begin_owning(label(), Box::new(witness.clone()), false);
        // SAFETY: the network reads nothing.
        unsafe { engine.put(issuing.call(), 1, 0, witness.as_ptr(), 8) }.unwrap();
        (ticket, witness)
    }

    fn told(engine: &Engine) -> bool {
        match engine.fence(None, &label()).here() {
            Ok(()) => false,
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("put_nb") && said.contains("\"a\"") && said.contains("cut cable"), "{said}");
                let (issued, reported) = said.split_once(", issued at ").unwrap().1.split_once(", reported at ").unwrap();
                assert!(issued != reported && [issued, reported].iter().all(|place| place.starts_with(file!())), "{said}");
                true
            }
        }
    }

    #[test]
    fn an_uncollected_failure_is_told_by_the_next_fence_and_by_no_other() {
        let engine = broken().engine(None);
        let (dropped, _) = issue(&engine);
        drop(dropped);
        assert!(told(&engine));
        assert!(!told(&engine));

        let (kept, _) = issue(&engine);
        assert!(told(&engine));
        assert!(!told(&engine));
        // A later wait on the handle reports the failure too. The fence after it does not.
        assert!(engine.collect::<()>(kept).is_err());
        assert!(!told(&engine));

        let (waited, _) = issue(&engine);
        assert!(engine.collect::<()>(waited).is_err());
        assert!(!told(&engine));

        // Those that nobody asks for come one by one.
        let forgotten = [issue(&engine).0, issue(&engine).0];
        forgotten.into_iter().for_each(std::mem::forget);
        assert!(told(&engine) && told(&engine) && !told(&engine));
        assert_eq!(engine.requests_held(), 0);
    }

    #[test]
    fn a_buffer_lives_until_its_transfers_are_complete() {
        let held = Arc::new(AtomicBool::new(true));
        let token = Mutex::new(None);
        let released = held.clone();
        let engine = Fake::new(move |call| {
            let mut token = token.lock().unwrap();
            match call {
                Asked::Put(of) => *token = Some(of),
                Asked::Poll if !released.load(Ordering::Relaxed) => return token.take().map(Event::LocalDone),
                _ => {}
            }
            None
        })
        .engine(None);
        let (ticket, witness) = issue(&engine);
        let request = ticket.request;
        std::mem::forget(ticket);
        assert!(!engine.test(request));
        assert_eq!((Arc::strong_count(&witness), engine.requests_held()), (2, 1));
        held.store(false, Ordering::Relaxed);
        assert!(engine.test(request));
        assert_eq!((Arc::strong_count(&witness), engine.requests_held()), (1, 0));
    }

    #[test]
    fn what_is_under_way_at_the_end_of_the_engine_keeps_its_buffer() {
        let engine = Fake::new(|_| None).engine(None);
        let (dropped, lost) = issue(&engine);
        drop(dropped);
        let complete = Arc::new([1; 8]);
        drop(engine.begin_owning(label(), Box::new(complete.clone()), true));
        drop(engine);
        assert_eq!(Arc::strong_count(&lost), 2, "the network may still read the buffer");
        assert_eq!(Arc::strong_count(&complete), 1);
    }

    #[test]
    fn what_a_get_brought_waits_for_its_handle_and_not_in_the_table() {
        let engine = broken().engine(None);
        let (issuing, ticket) = engine.begin_owning(label(), Box::new(vec![5_u8]), true);
        let request = ticket.request();
        assert!(!engine.test(request));
        assert_eq!(engine.requests_held(), 1);
        drop(issuing);
        assert!(engine.test(request));
        assert_eq!(engine.requests_held(), 0);
        assert_eq!(engine.collect::<Vec<u8>>(ticket).unwrap(), Some(vec![5]));
    }
}
