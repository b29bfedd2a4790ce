//! Ranks that run one at a time, each until it suspends itself.
//!
//! A rank is a thread that waits for its turn ([`Form::Threads`]) or, if the environment says so, a stack in one thread for
//! thousands of ranks ([`Form::Coroutines`]).
//!
//! # What coroutines share
//!
//! A rank suspends itself inside calls of the library, and another one goes on in the same thread. Safe code may rely on this never
//! happening:
//!
//! | open while a rank is in a call | with coroutines |
//! |---|---|
//! | the initializer of a `thread_local!` | **undefined** |
//! | a reference into a thread-local | sound, if no initializer of it calls the library: the value lives as long as the thread |
//! | a borrow of a `RefCell`, an initializer of a `OnceCell` or `LazyCell` in one | sound: another rank panics, as these look first |
//! | a lock of a `Mutex` or `RwLock`, a `Once` or `OnceLock` | sound: another rank blocks the thread, and the watchdog says so |
//! | `unsafe` code of another crate that runs a closure of the rank | unknown: it may rely on having the thread for itself |
//! | `catch_unwind`, `thread::scope` | sound: what they need lies on the rank's stack, and unwinding does not leave it |
//!
//! The initializer: a second rank runs it too and takes a reference to its value; then the first one ends, its value replaces the
//! other, and the reference dangles. So only the environment chooses coroutines, for a program that its user knows; no safe call does.
//!
//! While a rank unwinds, no other gets a turn, because the count of panics is the thread's.

use std::{
    cell::Cell,
    io,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
    time::Duration,
};

use corosensei::{Coroutine, Yielder};
use rustix::thread::sched_getcpu;

use super::stacks::{StackSlot, Stacks};
use crate::comm::{WaitWord, kit::cores};

/// The form of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Threads,
    Coroutines,
}

/// Ranks that run one at a time.
#[derive(Debug)]
pub(in crate::comm) struct RankTurns {
    switch: Switch,
    /// The rank whose turn it is, and the mark of its thread. Between turns, neither.
    current: AtomicUsize,
    thread: AtomicUsize,
}

/// The way in which a turn is handed on.
#[derive(Debug)]
enum Switch {
    /// Counts the turns of each rank, and those that came back.
    Batons { turns: Box<[WaitWord]>, back: WaitWord },
    /// The place of each rank.
    Yielders(Box<[Suspended]>),
}

/// The place where a coroutine leaves how it is suspended.
type Suspended = AtomicPtr<Yielder<(), ()>>;

const NOBODY: usize = usize::MAX;

/// The longest that a sleeper waits before it looks, should a wake-up be lost.
const LOOK: Duration = Duration::from_millis(100);

/// What a rank does in all its turns.
type Main<'m> = dyn Fn(usize) + Sync + 'm;

/// A number of the calling thread, which no other thread has that lives.
fn mark() -> usize {
    thread_local! {
        static MARK: Cell<u8> = const { Cell::new(0) };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// Waits until a word differs.
fn await_change(word: &WaitWord, seen: u32) {
    while word.load() == seen {
        word.sleep(seen, LOOK);
    }
}

/// A rank gives its turn back when it ends, however it does.
struct GivesBack<'r>(&'r RankTurns, &'r WaitWord);

impl Drop for GivesBack<'_> {
    fn drop(&mut self) {
        self.0.give_back(self.1);
    }
}

/// Ends the process if it is dropped.
struct AbortsOnPanic;

impl Drop for AbortsOnPanic {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl RankTurns {
    pub(in crate::comm) fn new(form: Form, ranks: usize) -> Self {
        let switch = match form {
            Form::Threads => {
                Switch::Batons { turns: (0..ranks).map(|_| WaitWord::default()).collect(), back: WaitWord::default() }
            }
            Form::Coroutines => Switch::Yielders((0..ranks).map(|_| AtomicPtr::default()).collect()),
        };
        RankTurns { switch, current: AtomicUsize::new(NOBODY), thread: AtomicUsize::new(0) }
    }

    /// Returns true if the caller is this rank, and has its turn.
    pub(in crate::comm) fn is_turn_of(&self, rank: usize) -> bool {
        self.current.load(Ordering::Acquire) == rank && self.thread.load(Ordering::Relaxed) == mark()
    }

    /// The rank that has its turn.
    pub(in crate::comm) fn current(&self) -> Option<usize> {
        Some(self.current.load(Ordering::Relaxed)).filter(|&rank| rank != NOBODY)
    }

    /// Gives a turn to each rank that `next` names, until it names none. `main` is what a rank does, on at least `stack` bytes of
    /// stack. Threads that are to be `pinned` run on one core: no two run at a time, and a turn is handed on there ten times as
    /// fast.
    ///
    /// # Errors
    /// A rank could not be made: the rank, and why. Nothing has run.
    ///
    /// # Panics
    /// If `next` names none before all ranks that it named have ended.
    pub(in crate::comm) fn run(
        &self,
        stack: usize,
        pinned: bool,
        main: &Main<'_>,
        next: &mut dyn FnMut() -> Option<usize>,
    ) -> Result<(), (usize, io::Error)> {
        match &self.switch {
            Switch::Batons { turns, back } => self.run_threads(turns, back, stack, pinned, main, next),
            Switch::Yielders(yielders) => self.run_coroutines(yielders, stack, main, next),
        }
    }

    fn begin(&self, rank: usize) {
        self.thread.store(mark(), Ordering::Relaxed);
        self.current.store(rank, Ordering::Release);
    }

    fn run_threads(
        &self,
        turns: &[WaitWord],
        back: &WaitWord,
        stack: usize,
        pinned: bool,
        main: &Main<'_>,
        next: &mut dyn FnMut() -> Option<usize>,
    ) -> Result<(), (usize, io::Error)> {
        /// A rank that is never to run has this turn.
        const NEVER: u32 = u32::MAX;
        let core = sched_getcpu();
        std::thread::scope(|scope| {
            for (rank, turn) in turns.iter().enumerate() {
                let rank_main = move || {
                    if pinned {
                        // A refusal costs speed only.
                        let _ = cores::confine(&[core]);
                    }
                    await_change(turn, 0);
                    if turn.load() != NEVER {
                        self.begin(rank);
                        let _back = GivesBack(self, back);
                        main(rank);
                    }
                };
                let builder = std::thread::Builder::new().name(format!("rank {rank}")).stack_size(stack);
                if let Err(error) = builder.spawn_scoped(scope, rank_main) {
                    for turn in &turns[..rank] {
                        turn.store(NEVER);
                        turn.wake();
                    }
                    return Err((rank, error));
                }
            }
            // If this thread panicked, the ranks would wait for their next turn forever.
            let bomb = AbortsOnPanic;
            while let Some(rank) = next() {
                let seen = back.load();
                turns[rank].add(1);
                turns[rank].wake();
                await_change(back, seen);
            }
            std::mem::forget(bomb);
            Ok(())
        })
    }

    fn end_turn(&self) {
        self.thread.store(0, Ordering::Relaxed);
        self.current.store(NOBODY, Ordering::Release);
    }

    fn give_back(&self, back: &WaitWord) {
        self.end_turn();
        back.add(1);
        back.wake();
    }

    fn run_coroutines(
        &self,
        yielders: &[Suspended],
        stack: usize,
        main: &Main<'_>,
        next: &mut dyn FnMut() -> Option<usize>,
    ) -> Result<(), (usize, io::Error)> {
        let stacks = Stacks::new(yielders.len(), stack).map_err(|error| (0, error))?;
        // SAFETY: only coroutines have it, and they have ended, or are unwound, before this function returns.
        let main: &'static Main<'static> = unsafe { std::mem::transmute::<&Main<'_>, &'static Main<'static>>(main) };
        // SAFETY: as above; the table is a part of `self`.
        let yielders: &'static [Suspended] = unsafe { std::mem::transmute::<&[Suspended], &'static [Suspended]>(yielders) };
        // Dropped before the stacks.
        let mut coroutines: Vec<Option<Coroutine<(), (), (), StackSlot>>> = Vec::new();
        coroutines.resize_with(yielders.len(), || None);
        while let Some(rank) = next() {
            let coroutine = coroutines[rank].get_or_insert_with(|| {
                Coroutine::with_stack(stacks.stack(rank), move |own, ()| {
                    yielders[rank].store(std::ptr::from_ref(own).cast_mut(), Ordering::Relaxed);
                    main(rank);
                })
            });
            self.begin(rank);
            let ended = coroutine.resume(()).as_return().is_some();
            self.current.store(NOBODY, Ordering::Relaxed);
            if ended {
                coroutines[rank] = None;
            }
        }
        assert!(coroutines.iter().all(Option::is_none), "ranks that have not ended");
        Ok(())
    }

    /// Ends the turn of the calling rank, and returns at its next. `next` is the rank whose turn is next, if that is known. If
    /// `keep` keeps it, what [`run`](Self::run) asks must name it.
    pub(in crate::comm) fn suspend(&self, rank: usize, next: Option<usize>, keep: impl FnOnce(usize)) {
        debug_assert!(self.is_turn_of(rank), "rank {rank} has no turn");
        match &self.switch {
            Switch::Batons { turns, back } => {
                let turn = &turns[rank];
                let seen = turn.load();
                match next {
                    // From thread to thread.
                    Some(next) => {
                        self.end_turn();
                        turns[next].add(1);
                        turns[next].wake();
                    }
                    None => self.give_back(back),
                }
                await_change(turn, seen);
                self.begin(rank);
            }
            Switch::Yielders(yielders) => {
                if let Some(next) = next {
                    keep(next);
                }
                // SAFETY: the coroutine of the rank wrote it when it began; it is that which calls, so it lives.
                let yielder = unsafe { &*yielders[rank].load(Ordering::Relaxed) };
                yielder.suspend(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Three ranks that say where they are, in the order 2, 0, 1, 2, 0, 1 ...
    fn said(form: Form) -> Vec<(usize, u32)> {
        let (ranks, said) = (RankTurns::new(form, 3), Mutex::new(Vec::new()));
        let main = |rank: usize| {
            for turn in 0..4 {
                assert!(ranks.is_turn_of(rank) && !ranks.is_turn_of((rank + 1) % 3));
                said.lock().unwrap().push((rank, turn));
                if turn < 3 {
                    ranks.suspend(rank, None, |_| {});
                }
            }
        };
        let mut turns = [2, 0, 1].into_iter().cycle().take(12);
        ranks.run(64 << 10, true, &main, &mut || turns.next()).unwrap();
        assert!(!ranks.is_turn_of(1));
        said.into_inner().unwrap()
    }

    #[test]
    fn ranks_run_in_the_order_that_is_said() {
        let expected: Vec<(usize, u32)> = (0..4).flat_map(|turn| [2, 0, 1].map(|rank| (rank, turn))).collect();
        assert_eq!(said(Form::Threads), expected);
        assert_eq!(said(Form::Coroutines), expected);
    }

    #[test]
    fn a_thread_that_is_no_rank_has_no_turn() {
        for form in [Form::Threads, Form::Coroutines] {
            let ranks = RankTurns::new(form, 1);
            let main = |rank: usize| {
                assert!(ranks.is_turn_of(rank));
                std::thread::scope(|scope| assert!(!scope.spawn(|| ranks.is_turn_of(rank)).join().unwrap()));
            };
            let mut left = Some(0);
            ranks.run(64 << 10, true, &main, &mut || left.take()).unwrap();
        }
    }

    #[test]
    fn a_rank_may_panic_and_be_caught() {
        for form in [Form::Threads, Form::Coroutines] {
            let ranks = RankTurns::new(form, 1);
            let caught = Mutex::new(false);
            let main = |_| *caught.lock().unwrap() = std::panic::catch_unwind(|| panic!("on purpose")).is_err();
            let mut left = Some(0);
            ranks.run(128 << 10, true, &main, &mut || left.take()).unwrap();
            assert!(*caught.lock().unwrap());
        }
    }
}
