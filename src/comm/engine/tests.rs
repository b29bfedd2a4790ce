//! Flushes that threads share, and waits that end a process.

use std::sync::{
    Mutex,
    atomic::AtomicBool,
    mpsc::{Sender, channel},
};

use super::*;
use crate::comm::{
    Cause, Event,
    testing::{Call, Fake},
};

fn label() -> Label {
    Label::new("a", "put")
}

/// A network that keeps the answer to a flush until it is allowed.
fn slow(allowed: Arc<AtomicBool>, begun: Sender<()>) -> Fake {
    let waiting = Mutex::new(None);
    Fake::new(move |call| match call {
        Call::Put(token) => Some(Event::LocalDone(token)),
        Call::Flush(token) => {
            *waiting.lock().unwrap() = Some(token);
            begun.send(()).unwrap();
            None
        }
        Call::Poll if allowed.load(Ordering::SeqCst) => waiting.lock().unwrap().take().map(Event::RemoteDone),
        _ => None,
    })
}

/// A thread asks the network whether all is visible between the entry of another one's put in the table and its begin.
#[test]
fn a_put_that_had_not_begun_is_not_taken_for_visible() {
    let (visible, flushes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let (enters, entered) = channel();
    let (begins, begin) = channel::<()>();
    let (begin, counted) = (Mutex::new(begin), flushes.clone());
    let mut network = Fake::new(move |call| match call {
        Call::Put(token) => {
            enters.send(()).unwrap();
            begin.lock().unwrap().recv().unwrap();
            Some(Event::LocalDone(token))
        }
        Call::Flush(token) => {
            counted.fetch_add(1, Ordering::SeqCst);
            Some(Event::RemoteDone(token))
        }
        _ => None,
    });
    network.visible = Some(visible.clone());
    let engine = &network.engine(None);
    std::thread::scope(|scope| {
        let putting = scope.spawn(|| engine.put_slice(1, 0, &[1_u8; 2 * 4096], &label()).unwrap());
        entered.recv().unwrap();
        engine.flush(None, &label()).unwrap();
        visible.store(false, Ordering::SeqCst);
        begins.send(()).unwrap();
        putting.join().unwrap();
    });
    assert_eq!(flushes.load(Ordering::SeqCst), 0);
    engine.flush(None, &label()).unwrap();
    assert_eq!(flushes.load(Ordering::SeqCst), 1);
}

#[test]
fn a_flush_that_another_thread_began_is_waited_for() {
    let allowed = Arc::new(AtomicBool::new(false));
    let (begun, flushing) = channel();
    let engine = &slow(allowed.clone(), begun).engine(None);
    engine.put_slice(1, 0, &[1; 8], &label()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| engine.flush(None, &label()).unwrap());
        flushing.recv().unwrap();
        let second = scope.spawn(|| {
            engine.flush(Some(1), &label()).unwrap();
            allowed.load(Ordering::SeqCst)
        });
        // Longer than the second flush lasts if it does not wait; it cannot return in between if it does.
        std::thread::sleep(Duration::from_millis(50));
        allowed.store(true, Ordering::SeqCst);
        assert!(second.join().unwrap(), "the second flush returned before the put was visible");
    });
    // Nothing is left to be flushed: the network is not asked again.
    engine.flush(None, &label()).unwrap();
    assert!(flushing.try_recv().is_err());
}

/// A failed flush is an error in every call that waited for it, whichever thread began it.
#[test]
fn a_flush_that_failed_has_failed_for_both_threads() {
    let allowed = Arc::new(AtomicBool::new(false));
    let (begun, flushing) = channel();
    let (may_fail, waiting) = (allowed.clone(), Mutex::new(None));
    let network = Fake::new(move |call| match call {
        Call::Put(token) => Some(Event::LocalDone(token)),
        Call::Flush(token) => {
            *waiting.lock().unwrap() = Some(token);
            begun.send(()).unwrap();
            None
        }
        Call::Poll if may_fail.load(Ordering::SeqCst) => {
            waiting.lock().unwrap().take().map(|token| Event::Failed(token, Cause("the cable".into())))
        }
        _ => None,
    });
    let engine = &network.engine(None);
    engine.put_slice(1, 0, &[1; 8], &label()).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| engine.flush(None, &label()));
        flushing.recv().unwrap();
        let second = scope.spawn(|| engine.flush(Some(1), &label()));
        while engine.lock().flushes_joined() == 0 {
            std::thread::yield_now();
        }
        allowed.store(true, Ordering::SeqCst);
        for flushed in [first, second] {
            let error = flushed.join().unwrap().expect_err("a flush that failed");
            assert!(error.to_string().contains("the cable"), "{error}");
        }
    });
}

#[test]
fn a_call_that_gave_up_on_a_joined_flush_leaves_none_of_its_own() {
    let unanswered = AtomicBool::new(false);
    let network = Fake::new(move |call| match call {
        Call::Put(token) => Some(Event::LocalDone(token)),
        Call::Flush(token) if unanswered.swap(true, Ordering::SeqCst) => Some(Event::RemoteDone(token)),
        _ => None,
    });
    let engine = network.engine(Some(0.01));
    engine.put_slice(1, 0, &[1; 8], &label()).unwrap();
    engine.flush(Some(1), &label()).expect_err("a flush without an answer");
    engine.put_slice(2, 0, &[2; 8], &label()).unwrap();
    // Joins the flush of rank 1, and begins one of rank 2, which is answered.
    engine.flush(None, &label()).expect_err("a flush without an answer");
    assert_eq!(engine.requests_held(), 1, "only the flush of rank 1 is not answered");
}

#[test]
fn a_rank_that_must_be_aborted_says_why() {
    use std::os::unix::process::ExitStatusExt;

    const INSIDE: &str = "GA_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        let engine = Fake::new(|_| None).engine(Some(0.01));
        let ended = engine.put_slice(1, 0, &[1; 8], &label());
        unreachable!("the network still reads the slice: {ended:?}");
    }
    let mut own = std::process::Command::new(std::env::current_exe().expect("the path of this program"));
    let own = own.args(["--exact", "--nocapture", "comm::engine::tests::a_rank_that_must_be_aborted_says_why"]).env(INSIDE, "1");
    let output = own.output().expect("this program once more");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("rank 0 is aborted: put of array \"a\"") && said.contains("GA_TIMEOUT"), "{said}");
}

#[test]
fn a_put_during_a_flush_needs_another_one() {
    let allowed = Arc::new(AtomicBool::new(false));
    let (begun, flushing) = channel();
    let engine = &slow(allowed.clone(), begun).engine(None);
    engine.put_slice(1, 0, &[1; 8], &label()).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| engine.flush(None, &label()).unwrap());
        flushing.recv().unwrap();
        let call = engine.begin_unordered(label());
        // SAFETY: the network reads nothing.
        let issued = unsafe { engine.put(&call, 1, 0, [2; 8].as_ptr(), 8) };
        engine.finish_call(call, issued).unwrap();
        allowed.store(true, Ordering::SeqCst);
        first.join().unwrap();
    });
    engine.flush(Some(1), &label()).unwrap();
    flushing.try_recv().expect("the second put to be flushed");
}

#[test]
fn a_fence_waits_for_forgotten_transfers_and_then_flushes() {
    // The put ends at the tenth look, and a flush of what has not been put is a mistake.
    let (ended, held, looks) = (Arc::new(AtomicBool::new(false)), Mutex::new(None), AtomicU64::new(0));
    let put = ended.clone();
    let fake = Fake::new(move |call| match call {
        Call::Put(token) => {
            *held.lock().unwrap() = Some(token);
            None
        }
        Call::Poll if looks.fetch_add(1, Ordering::SeqCst) >= 10 => {
            let token = held.lock().unwrap().take();
            put.fetch_or(token.is_some(), Ordering::SeqCst);
            token.map(Event::LocalDone)
        }
        Call::Flush(token) => {
            assert!(put.load(Ordering::SeqCst), "flushed before the put has ended");
            Some(Event::RemoteDone(token))
        }
        _ => None,
    });
    let engine = fake.engine(Some(20.0));
    let call = engine.begin_unordered(label());
    // SAFETY: the network reads nothing.
    unsafe { engine.put(&call, 1, 0, [3; 8].as_ptr(), 8) }.unwrap();
    engine.fence(None, &label()).unwrap();
    assert!(ended.load(Ordering::SeqCst));
}
