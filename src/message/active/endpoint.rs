//! The endpoint of a member.

use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use rustc_hash::FxHashMap;

use super::{
    Argument, Medium, Short,
    handlers::{Context, Run, arguments},
    kind::Named,
    outgoing::{Head, Leaving, Outgoing, REPLY, REPORT, VERDICT, Words, payload},
};
use crate::{
    calls::{located, record},
    comm::{Joined, Quiescence, kit::say::panic_text},
    element::Element,
    error::{Error, Result},
    memory::ring::MOST_WORDS,
    message::rings::Rings,
    sync::Group,
};

/// The endpoint of a member: sends messages, and handles those that come, in its calls.
///
/// While a member's ring is full, who sends to it waits, and handles what comes meanwhile. So members that send to each other never hang.
pub struct ActiveMessages<'env, S> {
    state: S,
    run: Vec<Run<'env, S>>,
    outgoing: Outgoing,
    quiescence: Quiescence,
    /// Of a wave of `sync`, until it is looked at.
    verdict: Option<bool>,
    /// The number of the last call, and the answers that nobody has taken.
    calls: u32,
    answers: FxHashMap<u32, Words>,
    rings: Rings,
}

impl<S: fmt::Debug> fmt::Debug for ActiveMessages<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveMessages").field("state", &self.state).finish_non_exhaustive()
    }
}

/// What was taken from the ring.
enum Taken {
    Nothing,
    /// The answer to the call of this number.
    Answer(u32),
    /// Something that is done with.
    Handled,
}

/// The answer to a call that was begun by [`ActiveMessages::call_nb`]. One that nobody waits for is kept until the endpoint ends.
#[derive(Debug)]
#[must_use = "the answer comes by `wait`"]
pub struct Reply<R> {
    call: u32,
    /// The place of its endpoint.
    endpoint: usize,
    from: usize,
    kind: &'static str,
    result: PhantomData<fn() -> R>,
}

impl<R: Argument> Reply<R> {
    /// Waits for the answer, and handles messages meanwhile.
    ///
    /// # Errors
    /// Same as [`ActiveMessages::call`]; another endpoint.
    #[track_caller]
    pub fn wait<S>(self, messages: &mut ActiveMessages<'_, S>) -> Result<R> {
        located(move || messages.answer(&self))
    }
}

impl<'env, S> ActiveMessages<'env, S> {
    pub(super) fn new(state: S, run: Vec<Run<'env, S>>, outgoing: Outgoing, rings: Rings) -> Self {
        let quiescence = Quiescence::new(rings.group().member(), rings.group().size());
        ActiveMessages { state, run, outgoing, quiescence, verdict: None, calls: 0, answers: FxHashMap::default(), rings }
    }

    /// The state. While it is borrowed no handler runs.
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// The group of the members.
    #[must_use]
    pub fn group(&self) -> &Group {
        self.rings.group()
    }

    /// Sends a message, one way. One-sided; waits only while the member's ring is full.
    ///
    /// # Errors
    /// A member that does not exist; a kind without a handler; a member that has ended with a full ring; a deadlock; the end of the job.
    ///
    /// # Source
    /// GASNet: `gasnet_AMRequestShort`.
    #[track_caller]
    pub fn send<A: Argument, R: Argument>(&mut self, to: usize, kind: Short<A, R>, arguments: A) -> Result<()> {
        located(move || self.post("send", to, kind.named(), 0, &arguments, &[]))
    }

    /// The same with a slice of up to 8 KiB.
    ///
    /// # Errors
    /// Same as [`send`](Self::send); a longer slice.
    ///
    /// # Source
    /// GASNet: `gasnet_AMRequestMedium`.
    #[track_caller]
    pub fn send_slice<A: Argument, T: Element, R: Argument>(
        &mut self,
        to: usize,
        kind: Medium<A, T, R>,
        arguments: A,
        slice: &[T],
    ) -> Result<()> {
        located(move || {
            let bytes = payload("send_slice", slice)?;
            self.post("send_slice", to, kind.named(), 0, &arguments, bytes)
        })
    }

    /// Sends a message and waits for what its handler returns. Handles messages meanwhile.
    ///
    /// # Errors
    /// Same as [`send`](Self::send); a member that has ended; a member that waits for this one and handles nothing.
    #[track_caller]
    pub fn call<A: Argument, R: Argument>(&mut self, to: usize, kind: Short<A, R>, arguments: A) -> Result<R> {
        located(move || {
            let reply = self.begin("call", to, kind.named(), &arguments, &[])?;
            self.answer(&reply)
        })
    }

    /// The same with a slice of up to 8 KiB.
    ///
    /// # Errors
    /// Same as [`call`](Self::call); a longer slice.
    #[track_caller]
    pub fn call_slice<A: Argument, T: Element, R: Argument>(
        &mut self,
        to: usize,
        kind: Medium<A, T, R>,
        arguments: A,
        slice: &[T],
    ) -> Result<R> {
        located(move || {
            let bytes = payload("call_slice", slice)?;
            let reply = self.begin("call_slice", to, kind.named(), &arguments, bytes)?;
            self.answer(&reply)
        })
    }

    /// Begins a [`call`](Self::call): the answer comes later.
    ///
    /// # Errors
    /// Same as [`send`](Self::send).
    #[track_caller]
    pub fn call_nb<A: Argument, R: Argument>(&mut self, to: usize, kind: Short<A, R>, arguments: A) -> Result<Reply<R>> {
        located(move || self.begin("call_nb", to, kind.named(), &arguments, &[]))
    }

    /// The same with a slice of up to 8 KiB.
    ///
    /// # Errors
    /// Same as [`send`](Self::send); a longer slice.
    #[track_caller]
    pub fn call_slice_nb<A: Argument, T: Element, R: Argument>(
        &mut self,
        to: usize,
        kind: Medium<A, T, R>,
        arguments: A,
        slice: &[T],
    ) -> Result<Reply<R>> {
        located(move || self.begin("call_slice_nb", to, kind.named(), &arguments, payload("call_slice_nb", slice)?))
    }

    /// Handles the messages that are here. Waits only while what handlers sent has no room where it goes.
    ///
    /// # Errors
    /// The end of the job.
    ///
    /// # Source
    /// GASNet: `gasnet_AMPoll`.
    #[track_caller]
    pub fn poll(&mut self) -> Result<()> {
        located(|| {
            self.rings.check_job("poll")?;
            self.rings.progress();
            // Others may send without end.
            for _ in 0..self.rings.slots() {
                if !self.serve()? {
                    break;
                }
            }
            self.drain()
        })
    }

    /// Returns when all that any member sent is handled, also what handlers sent. Handles messages meanwhile. Collective.
    ///
    /// # Errors
    /// A member that waits for something else; the end of the job.
    ///
    /// # Source
    /// The four counter method: see F. Mattern, *Algorithms for distributed termination detection*, 1987.
    #[track_caller]
    pub fn sync(&mut self) -> Result<()> {
        located(|| self.become_quiet())
    }

    /// [`sync`](Self::sync), and the end of the endpoint: the state comes back. Collective.
    ///
    /// # Errors
    /// Same as [`sync`](Self::sync).
    #[track_caller]
    pub fn close(mut self) -> Result<S> {
        located(move || {
            self.become_quiet()?;
            Ok(self.state)
        })
    }

    fn begin<A: Argument, R: Argument>(
        &mut self,
        operation: &'static str,
        to: usize,
        kind: Named,
        arguments: &A,
        bytes: &[u8],
    ) -> Result<Reply<R>> {
        // 0 is none.
        self.calls = self.calls.checked_add(1).unwrap_or(1);
        self.post(operation, to, kind, self.calls, arguments, bytes)?;
        Ok(Reply { call: self.calls, endpoint: self.rings.place(), from: to, kind: kind.name, result: PhantomData })
    }

    /// Sends a message behind what waits to leave.
    fn post<A: Argument>(
        &mut self,
        operation: &'static str,
        to: usize,
        kind: Named,
        call: u32,
        arguments: &A,
        bytes: &[u8],
    ) -> Result<()> {
        self.rings.check(operation, to)?;
        let head = Head { kind: self.outgoing.number(operation, kind)?, bytes: bytes.len() as u16, call };
        let words = head.with(arguments);
        if self.outgoing.queue.is_empty() && self.rings.send(to, &words, bytes)? {
            self.outgoing.counts[0] += 1;
            return Ok(());
        }
        self.outgoing.enqueue(Leaving { to, words, payload: bytes.into() });
        self.drain()
    }

    /// Sends all that waits to leave. Handles messages while there is no room.
    fn drain(&mut self) -> Result<()> {
        while !self.leave()? {
            if !self.serve()? {
                self.wait_for_room()?;
            }
        }
        self.rings.free();
        Ok(())
    }

    /// Sends what waits to leave, as far as there is room; true if nothing is left.
    fn leave(&mut self) -> Result<bool> {
        while let Some(first) = self.outgoing.queue.front() {
            if !self.rings.send(first.to, &first.words, &first.payload)? {
                return Ok(false);
            }
            self.outgoing.queue.pop_front();
        }
        Ok(true)
    }

    fn wait_for_room(&mut self) -> Result<()> {
        let Some(first) = self.outgoing.queue.front() else { return Ok(()) };
        self.rings.wait_for_room(first.to, &first.words, &first.payload)
    }

    /// Waits for a letter; nothing waits to leave.
    fn wait(&mut self, awaits: usize, operation: &dyn Fn() -> String, object: &dyn Fn(usize) -> String) -> Result<()> {
        self.rings.wait(Some(awaits), operation, &|rank| object(rank.unwrap_or_default()))
    }

    fn answer<R: Argument>(&mut self, reply: &Reply<R>) -> Result<R> {
        if reply.endpoint != self.rings.place() {
            return Err(Error::argument("wait", format_args!("the reply to \"{}\" belongs to another endpoint", reply.kind)));
        }
        let answer = loop {
            self.rings.check_job("call")?;
            if !self.answers.is_empty()
                && let Some(answer) = self.answers.remove(&reply.call)
            {
                break arguments(&answer);
            }
            match self.take()? {
                // The usual way: it is read where it lies.
                Taken::Answer(call) if call == reply.call => break arguments(&self.rings.words()[1..]),
                Taken::Answer(call) => {
                    self.keep(call);
                    continue;
                }
                Taken::Handled => continue,
                Taken::Nothing => {}
            }
            if !self.outgoing.queue.is_empty() {
                self.drain()?;
                continue;
            }
            let operation = || format!("call of \"{}\"", reply.kind);
            self.wait(reply.from, &operation, &|rank| format!("the reply of rank {rank} to \"{}\"", reply.kind))?;
        };
        self.drain()?;
        answer.ok_or_else(|| self.wrong(reply.from, reply.kind))
    }

    fn become_quiet(&mut self) -> Result<()> {
        loop {
            self.rings.check_job("sync")?;
            if self.serve()? {
                continue;
            }
            if !self.outgoing.queue.is_empty() {
                self.drain()?;
                continue;
            }
            let operation = || "sync of active messages".to_owned();
            let verdict = match self.quiescence.join(self.outgoing.counts) {
                Joined::Awaits(child) => {
                    self.wait(child, &operation, &|rank| format!("the report of rank {rank} for sync of active messages"))?;
                    continue;
                }
                Joined::Verdict(quiet) => quiet,
                Joined::Reports(parent, sums) => {
                    self.control(parent, REPORT, sums);
                    loop {
                        self.drain()?;
                        if let Some(verdict) = self.verdict.take() {
                            break verdict;
                        }
                        if !self.serve()? {
                            self.rings.check_job("sync")?;
                            self.wait(parent, &operation, &|rank| {
                                format!("the verdict of rank {rank} for sync of active messages")
                            })?;
                        }
                    }
                }
            };
            for child in self.quiescence.children() {
                self.control(child, VERDICT, [u64::from(verdict), 0]);
            }
            self.drain()?;
            if verdict {
                return Ok(());
            }
        }
    }

    fn control(&mut self, to: usize, kind: u16, words: [u64; 2]) {
        let words = Head { kind, bytes: 0, call: 0 }.with(&words);
        self.outgoing.queue.push_back(Leaving { to, words, payload: Box::default() });
    }

    /// Ends the job: what came is no message, or no value of the types of its kind.
    fn wrong(&self, from: usize, what: &str) -> Error {
        let cause = format!("got words of member {from} that are no message \"{what}\"");
        self.rings.engine().conduit().end(&cause);
        self.rings.engine().over("active messages")
    }

    /// Takes a letter, if one is here, and does what it says.
    fn serve(&mut self) -> Result<bool> {
        match self.take()? {
            Taken::Nothing => return Ok(false),
            Taken::Answer(call) => self.keep(call),
            Taken::Handled => {}
        }
        Ok(true)
    }

    /// Keeps the answer that was taken last for whoever waits for it.
    fn keep(&mut self, call: u32) {
        self.answers.extend(Words::of(&self.rings.words()[1..]).map(|answer| (call, answer)));
    }

    /// The same, except that an answer is left where it lies.
    fn take(&mut self) -> Result<Taken> {
        let Some(from) = self.rings.take() else { return Ok(Taken::Nothing) };
        let Self { outgoing, quiescence, verdict, rings, .. } = self;
        let letter = rings.words().split_first().filter(|_| from < rings.group().size());
        let Some((head, words)) = letter.map(|(&head, words)| (Head::of(head), words)) else { return Err(self.wrong(from, "")) };
        let right = match (head.kind, words) {
            (REPLY, words) if words.len() <= MOST_WORDS => {
                outgoing.counts[1] += 1;
                return Ok(Taken::Answer(head.call));
            }
            (REPORT, &[sent, handled]) => quiescence.report(from, [sent, handled]),
            (VERDICT, &[quiet, _]) => verdict.replace(quiet != 0).is_none(),
            _ => return self.handle(from, head).map(|()| Taken::Handled),
        };
        if right { Ok(Taken::Handled) } else { Err(self.wrong(from, "")) }
    }

    /// Runs the handler of the message that was taken last.
    fn handle(&mut self, from: usize, head: Head) -> Result<()> {
        let (Head { kind, bytes, call }, bytes_of) = (head, bytemuck::cast_slice::<u64, u8>);
        let Self { state, run, outgoing, rings, .. } = self;
        let Some(run) = run.get_mut(usize::from(kind)) else { return Err(self.wrong(from, "")) };
        let (name, members) = (outgoing.kinds[usize::from(kind)].name, rings.group().size());
        let words = &rings.words()[1..];
        let parts = words.len().checked_sub(usize::from(bytes).div_ceil(size_of::<u64>())).map(|len| words.split_at(len));
        let Some((words, payload)) = parts else { return Err(self.wrong(from, name)) };
        outgoing.counts[1] += 1;
        let mut answer = Head { kind: REPLY, bytes: 0, call }.with(&());
        let mut context = Context { from, members, outgoing };
        let payload = &bytes_of(payload)[..usize::from(bytes)];
        let ran =
            catch_unwind(AssertUnwindSafe(|| record::handler(name, || run(state, &mut context, words, payload, &mut answer))));
        let right = ran.unwrap_or_else(|panic| {
            let (rank, text) = (rings.group().inner.rank_of(from), panic_text(&*panic));
            let cause = format!("panicked in handler \"{name}\" of a message of rank {rank}: {text}");
            rings.engine().conduit().end(&cause);
            resume_unwind(panic)
        });
        if !right {
            return Err(self.wrong(from, name));
        }
        match (call, outgoing.queue.is_empty()) {
            (0, true) => return Ok(()),
            (0, false) => {}
            (_, true) if rings.send(from, &answer, &[])? => {
                outgoing.counts[0] += 1;
                return Ok(());
            }
            _ => outgoing.enqueue(Leaving { to: from, words: answer, payload: Box::default() }),
        }
        self.leave().map(drop)
    }
}
