//! The program's calls: the line that each thread is in, and what it spends its time on (`record`).

pub(crate) mod record;

use std::{cell::Cell, panic::Location};

use self::record::InCall;
use crate::error::Result;

/// Says on a failure which line of the program made the call: the caller of the public function that is `#[track_caller]`.
///
/// Public functions call each other; the outermost, which is the program's own call, speaks last and is what stays.
pub(crate) trait Here {
    #[track_caller]
    fn here(self) -> Self;
}

impl<R> Here for Result<R> {
    #[inline(always)]
    fn here(self) -> Self {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(error.called_at(Location::caller())),
        }
    }
}

thread_local! {
    /// The line of the program whose call the thread is in.
    static CALLING: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
    /// What is published for the array's collective that the thread is in; 0 if it is in none. A thread is in one call at a time, of one job.
    static DOING: Cell<u64> = const { Cell::new(0) };
}

/// Runs the body of a public function; see [`Here`].
#[inline(always)]
#[track_caller]
pub(crate) fn located<R, F: FnOnce() -> Result<R>>(body: F) -> Result<R> {
    let _calling = Calling::new(Location::caller(), std::any::type_name::<F>());
    body().here()
}

/// The line of the program whose call this thread is in: of the outermost function that is [`located`].
pub(crate) fn calling() -> Option<&'static Location<'static>> {
    CALLING.get()
}

/// Another rank may run in this thread meanwhile, whose calls are its own.
pub(crate) fn elsewhere(run: impl FnOnce()) {
    let (line, doing, recorder) = (CALLING.take(), DOING.take(), record::set_aside());
    run();
    CALLING.set(line);
    DOING.set(doing);
    record::give_back(recorder);
}

/// What is published for the collective that the thread is in; 0 if it is in none.
pub(crate) fn doing() -> u64 {
    DOING.get()
}

/// The thread is in another collective; the one that it was in.
pub(crate) fn replace_doing(published: u64) -> u64 {
    DOING.replace(published)
}

/// The thread is in a call until this is dropped.
struct Calling {
    outer: Option<&'static Location<'static>>,
    _recorded: InCall,
}

impl Calling {
    #[inline(always)]
    fn new(line: &'static Location<'static>, name: &'static str) -> Self {
        let recorded = InCall::new(name, line);
        let outer = CALLING.get();
        CALLING.set(outer.or(Some(line)));
        Calling { outer, _recorded: recorded }
    }
}

impl Drop for Calling {
    #[inline(always)]
    fn drop(&mut self) {
        CALLING.set(self.outer);
    }
}
