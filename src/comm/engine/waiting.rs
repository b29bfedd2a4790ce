//! Waiting: look, poll, look, let the conduit wait, and so on.

use std::time::Duration;

use super::{
    Engine,
    lasting::{Lasting, TURN, Waiter},
    requests::Label,
};
use crate::{
    calls::record,
    comm::{Conduit, WaitWord},
    error::Error,
};

/// Looks at several words before the first turn: about as long as a rank looks at one before it sleeps.
const LOOKS: u32 = 2_000;

impl Waiter for Label {
    fn operation(&self) -> String {
        // A name in parentheses is none.
        if self.array.starts_with('(') {
            self.operation.into()
        } else {
            format!("{} of array \"{}\"", self.operation, self.array)
        }
    }
    fn missing(&self) -> String {
        "the completion of a transfer".into()
    }
}

/// The turns of a wait that looks by itself.
pub(super) struct Turns<'e> {
    engine: &'e Engine,
    waiter: &'e dyn Waiter,
    lasting: Lasting<'e>,
    recorded: Option<record::Waiting>,
}

impl Turns<'_> {
    /// To be called after a look in vain: lets others go, makes progress only if the caller may `poll`, and fails when the wait
    /// must end.
    pub(super) fn pause(&mut self, poll: bool) -> Result<(), Error> {
        self.recorded.get_or_insert_with(|| record::waiting(|| self.waiter.operation()));
        if poll {
            self.engine.progress();
        } else {
            // A conduit may handle what arrives while it waits, and the handler want what the caller holds.
            std::thread::yield_now();
        }
        self.lasting.look(self.waiter)?;
        if poll {
            self.engine.conduit.pause(TURN);
        }
        Ok(())
    }
}

impl Engine {
    /// For a wait of several turns, see [`Turns::pause`].
    pub(super) fn turns<'e>(&'e self, waiter: &'e dyn Waiter) -> Turns<'e> {
        Turns { engine: self, waiter, lasting: Lasting::new(&self.conduit, self.timeout), recorded: None }
    }

    /// Waits until `ready` has something, making progress. It changes by what `poll` reports, or by what another thread of this rank does.
    pub(crate) fn wait_until<R>(&self, waiter: &dyn Waiter, ready: impl FnMut() -> Option<R>) -> Result<R, Error> {
        self.look_every(Engine::progress_patiently, |conduit, _| conduit.wait(Duration::from_millis(50)), waiter, ready)
    }

    /// The same for what comes without a word to this rank: looks after every turn.
    pub(crate) fn take_turns<R>(&self, waiter: &dyn Waiter, ready: impl FnMut() -> Option<R>) -> Result<R, Error> {
        self.look_every(|engine, _| engine.progress(), |conduit, lasting| conduit.pause(lasting.turn()), waiter, ready)
    }

    fn look_every<R>(
        &self,
        progress: impl Fn(&Engine, &mut Lasting<'_>),
        pause: impl Fn(&Conduit, &Lasting<'_>),
        waiter: &dyn Waiter,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R, Error> {
        let mut lasting = Lasting::new(&self.conduit, self.timeout);
        let mut recorded = None;
        loop {
            if let Some(result) = ready() {
                return Ok(result);
            }
            recorded.get_or_insert_with(|| record::waiting(|| waiter.operation()));
            progress(self, &mut lasting);
            if let Some(result) = ready() {
                return Ok(result);
            }
            lasting.look(waiter)?;
            pause(&self.conduit, &lasting);
        }
    }

    /// Waits until a word of this rank's own or mapped memory has a value that `ready` accepts.
    #[inline]
    pub(crate) fn wait_word(&self, word: &WaitWord, waiter: &dyn Waiter, ready: impl Fn(u32) -> bool) -> Result<(), Error> {
        let seen = word.load();
        if ready(seen) {
            return Ok(());
        }
        let _recorded = record::waiting(|| waiter.operation());
        self.conduit.wait_on(word, seen, Duration::from_millis(50));
        if ready(word.load()) {
            return Ok(());
        }
        self.wait_word_longer(word, waiter, &ready)
    }

    /// Waits until `ready` has something, which words of this rank's own memory change. It looks often at first, because no one word
    /// can be slept on, and then after every turn.
    pub(crate) fn wait_any_word<R>(&self, waiter: &dyn Waiter, ready: impl Fn() -> Option<R>) -> Result<R, Error> {
        // Where ranks share cores, the rank that changes a word may need this one's.
        for _ in 0..if self.capabilities.crowded { 1 } else { LOOKS } {
            if let Some(result) = ready() {
                return Ok(result);
            }
            std::hint::spin_loop();
        }
        self.take_turns(waiter, ready)
    }

    #[cold]
    fn wait_word_longer(&self, word: &WaitWord, waiter: &dyn Waiter, ready: &dyn Fn(u32) -> bool) -> Result<(), Error> {
        let mut lasting = Lasting::new(&self.conduit, self.timeout);
        loop {
            self.progress();
            let seen = word.load();
            if ready(seen) {
                return Ok(());
            }
            lasting.look(waiter)?;
            self.conduit.wait_on(word, seen, Duration::from_millis(50));
        }
    }
}
