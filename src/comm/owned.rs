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

#[cfg(test)]
mod tests {
    use std::{
        io,
        ops::Range,
        ptr::NonNull,
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, AtomicU32, Ordering},
        },
        time::Duration,
    };

    use super::*;
    use crate::comm::{Capabilities, Cause, Conduit, Event, Events, Full, Local, MessageClass, PublishedWait, Token, WaitWord};

    /// A network whose puts all fail, as soon as it is allowed to do anything.
    #[derive(Debug, Default)]
    struct Broken {
        capabilities: Capabilities,
        queue: Mutex<Vec<Event>>,
        held: AtomicBool,
        over: AtomicU32,
    }

    impl Conduit for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn rank(&self) -> usize {
            0
        }
        fn size(&self) -> usize {
            2
        }
        fn node(&self, rank: usize) -> usize {
            rank
        }
        fn capabilities(&self) -> &Capabilities {
            &self.capabilities
        }
        fn segment(&self) -> NonNull<u8> {
            NonNull::dangling()
        }
        fn segment_len(&self) -> usize {
            0
        }
        fn mapped(&self, _: usize) -> Option<NonNull<u8>> {
            None
        }
        fn commit(&self, _: Range<usize>) -> io::Result<()> {
            Ok(())
        }
        fn release(&self, _: Range<usize>) -> io::Result<()> {
            Ok(())
        }
        fn committed(&self) -> u64 {
            0
        }
        unsafe fn put(&self, _: usize, _: usize, _: Local, token: Token) {
            self.queue.lock().unwrap().push(Event::Failed(token, Cause("a cut cable".into())));
        }
        unsafe fn get(&self, _: usize, _: usize, _: Local, token: Token) {
            self.queue.lock().unwrap().push(Event::LocalDone(token));
        }
        fn flush(&self, _: usize, token: Token) {
            self.queue.lock().unwrap().push(Event::RemoteDone(token));
        }
        fn send(&self, _: usize, _: MessageClass, _: &[u8]) -> Result<(), Full> {
            Ok(())
        }
        fn poll(&self, events: &mut Events) {
            if !self.held.load(Ordering::Relaxed) {
                events.append(&mut self.queue.lock().unwrap());
            }
        }
        fn now(&self) -> Duration {
            Duration::ZERO
        }
        fn wait(&self, _: Duration) {}
        fn wait_on(&self, _: &WaitWord, _: u32, _: Duration) {}
        fn wake(&self, _: &WaitWord) {}
        fn over(&self) -> &AtomicU32 {
            &self.over
        }
        fn over_cause(&self) -> String {
            "nothing".into()
        }
        fn end(&self, _: &str) {}
        fn last_seen(&self, _: usize) -> Option<[u64; 2]> {
            None
        }
        fn publish(&self, _: [u64; 2]) {}
        fn publish_wait(&self, _: Option<usize>) {}
        fn published_wait(&self, _: usize) -> Option<PublishedWait> {
            None
        }
    }

    fn label() -> Label {
        Label { array: "a".into(), operation: "put_nb" }
    }

    /// A put that will fail, and the witness of its buffer's life.
    fn issue(engine: &Engine) -> (RequestId, Arc<[u8; 8]>) {
        let witness = Arc::new([1; 8]);
        let issuing = engine.begin_owning(label(), Box::new(witness.clone()), false);
        // SAFETY: the network reads nothing.
        unsafe { engine.put(issuing.request(), 1, 0, witness.as_ptr(), 8) }.unwrap();
        (issuing.request(), witness)
    }

    fn told(engine: &Engine) -> bool {
        match engine.fence(None, &label()) {
            Ok(()) => false,
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("put_nb") && said.contains("\"a\"") && said.contains("cut cable"), "{said}");
                true
            }
        }
    }

    #[test]
    fn an_uncollected_failure_is_told_by_the_next_fence_and_by_no_other() {
        let engine = Engine::new(Arc::new(Broken::default()), None);
        let (dropped, _) = issue(&engine);
        engine.detach(dropped);
        assert!(told(&engine));
        assert!(!told(&engine));

        let (forgotten, _) = issue(&engine);
        assert!(told(&engine));
        assert!(!told(&engine));
        // A late handle hears of it too, but not the fence after it.
        assert!(engine.wait(forgotten).is_err());
        assert!(!told(&engine));

        let (waited, _) = issue(&engine);
        assert!(engine.wait(waited).is_err());
        assert!(!told(&engine));
    }

    #[test]
    fn a_buffer_lives_until_its_transfers_are_complete() {
        let conduit = Arc::new(Broken::default());
        let engine = Engine::new(conduit.clone(), None);
        conduit.held.store(true, Ordering::Relaxed);
        // The handle is forgotten.
        let (request, witness) = issue(&engine);
        assert!(!engine.test(request));
        assert_eq!(Arc::strong_count(&witness), 2);
        conduit.held.store(false, Ordering::Relaxed);
        assert!(engine.test(request));
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn what_a_get_brought_waits_for_its_handle() {
        let engine = Engine::new(Arc::new(Broken::default()), None);
        let issuing = engine.begin_owning(label(), Box::new(vec![5_u8]), true);
        let request = issuing.request();
        assert!(!engine.test(request));
        drop(issuing);
        assert!(engine.test(request));
        assert_eq!(engine.collect::<Vec<u8>>(request).unwrap(), Some(vec![5]));
        assert_eq!(engine.collect::<Vec<u8>>(request).unwrap(), None);
    }
}
