//! Thread-locals of a program belong to one rank: each rank is a thread unless the environment says otherwise.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

static MADE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The initializer waits in the library for the other ranks, each of which is in its own.
    static LAZY: (usize, String) = {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        WAITS.with_borrow_mut(Option::take).into_iter().for_each(|wait| wait());
        (number, format!("value {number}, long enough for the heap"))
    };
    static WAITS: std::cell::RefCell<Option<Box<dyn Fn()>>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn an_initializer_may_call_the_library() {
    for ranks in [2, 300] {
        MADE.store(0, Ordering::Relaxed);
        let body = |job: &Job| {
            let a = GlobalArray::<f64, Ix1>::builder(job, [job.size()]).zeros().create()?;
            WAITS.set(Some(Box::new(move || a.group().sync().unwrap())));
            LAZY.with(|(number, text)| {
                let met = job.sync();
                assert_eq!(*text, format!("value {number}, long enough for the heap"));
                met
            })
        };
        Launch::simulated(Machine::new("gemini-ports")).ranks(ranks).heap(1 << 20).run(body).unwrap();
        assert_eq!(MADE.load(Ordering::Relaxed), ranks);
    }
}
