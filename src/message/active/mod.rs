//! Active messages: a message names a handler, which runs where it arrives.
//!
//! [`Handlers`] binds the state of a rank to what happens with each [kind](Short) of message; [`open`](Handlers::open) makes an
//! [`ActiveMessages`] of it. Handlers run inside the calls of that value, in the thread that makes them, and nowhere else. So they have the state by `&mut`, without a
//! lock; they may borrow what outlives it, use arrays, and send by their [`Context`].
//!
//! | rule of GASNet | here |
//! |---|---|
//! | a handler must not block, or use its network but for one reply | gone: it may use arrays and locks; by its context it sends any number of messages, which leave when it has returned |
//! | a handler may run at any time, in any thread that polls | gone: only in calls of its own [`ActiveMessages`] |
//! | no-interrupt sections, handler-safe locks | types: the state is borrowed by a call, or by the program, never by both |
//! | handlers are registered by numbers of a table | types: a kind is a constant with the types of its arguments and its result |
//! | requests of one rank to another may overtake each other | stronger: they keep their order, also behind its puts |
//! | the largest medium differs from network to network | stronger: 8 KiB on every one |
//! | a long message brings its data to memory of the target | a put, and a message behind it |
//!
//! Handlers run in calls only. So a rank must not wait for something else, a collective of the job for instance, while another one waits for its
//! handlers: that is an error, which names both lines.
//!
//! # Source
//! GASNet's core API, as EXTOLL's conduit implements it: EXTOLL §III-B. Order and polling: ARMCI-Gemini §III.

mod argument;
mod kind;

use std::{
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use self::kind::Named;
pub use self::{
    argument::Argument,
    kind::{Medium, Short},
};
use super::rings::{MOST_BYTES, Numbered, Rings, SLOTS};
use crate::{
    calls::{located, record},
    comm::{Joined, Quiescence, kit::say::panic_text},
    element::Element,
    error::{Error, Result},
    memory::ring::{MOST_WORDS, SLOT},
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// The most words of arguments: a letter's first word is its head.
const MOST: usize = MOST_WORDS - 1;
/// Fewest slots: the longest message fits twice.
const FEWEST: usize = 256;

/// Numbers of letters that are no messages of the program.
const REPLY: u16 = u16::MAX;
const REPORT: u16 = u16::MAX - 1;
const VERDICT: u16 = u16::MAX - 2;

/// A letter's first word: the kind's number, bytes of payload, the number of the call that it is, or 0.
#[derive(Clone, Copy, Debug)]
struct Head {
    kind: u16,
    bytes: u16,
    call: u32,
}

impl Head {
    fn word(self) -> u64 {
        u64::from(self.kind) << 48 | u64::from(self.bytes) << 32 | u64::from(self.call)
    }

    fn of(word: u64) -> Self {
        Head { kind: (word >> 48) as u16, bytes: (word >> 32) as u16, call: word as u32 }
    }
}

/// A letter that has not left.
struct Leaving {
    to: usize,
    words: [u64; MOST_WORDS],
    len: usize,
    payload: Box<[u8]>,
}

impl Leaving {
    fn new<A: Argument>(to: usize, head: Head, arguments: &A, payload: &[u8]) -> Self {
        let (mut words, len) = ([0; MOST_WORDS], 1 + A::WORDS);
        words[0] = head.word();
        arguments.write(&mut words[1..len]);
        Leaving { to, words, len, payload: payload.into() }
    }

    fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

/// What goes on outside of handlers and is not the state.
struct Outgoing {
    kinds: Vec<Named>,
    queue: VecDeque<Leaving>,
    /// Messages of the program, and replies: sent, and handled.
    counts: [u64; 2],
}

impl Outgoing {
    fn number(&self, operation: &'static str, kind: Named) -> Result<u16> {
        let number = self.kinds.iter().position(|known| *known == kind);
        let unknown = || Error::argument(operation, format_args!("no handler for messages \"{}\" of {}", kind.name, kind.text));
        number.map(|number| number as u16).ok_or_else(unknown)
    }

    fn enqueue(&mut self, leaving: Leaving) {
        self.counts[0] += 1;
        self.queue.push_back(leaving);
    }
}

/// The bytes of a payload, if it is not too long.
fn payload<'s, T: Element>(operation: &'static str, slice: &'s [T]) -> Result<&'s [u8]> {
    let bytes = bytemuck::cast_slice(slice);
    if bytes.len() <= MOST_BYTES {
        return Ok(bytes);
    }
    Err(Error::argument(operation, format_args!("{} bytes of payload; a message carries up to {MOST_BYTES}", bytes.len())))
}

/// What a handler knows of its message, and how it sends.
pub struct Context<'a> {
    from: usize,
    members: usize,
    outgoing: &'a mut Outgoing,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context(a message of member {})", self.from)
    }
}

impl Context<'_> {
    /// The member that sent the message.
    #[must_use]
    pub fn from(&self) -> usize {
        self.from
    }

    /// Sends a message when the handler has returned. Never waits.
    ///
    /// # Errors
    /// A member that does not exist; a kind without a handler.
    pub fn send<A: Argument, R: Argument>(&mut self, to: usize, kind: Short<A, R>, arguments: A) -> Result<()> {
        self.enqueue(to, kind.named(), &arguments, &[])
    }

    /// The same with a slice of up to 8 KiB.
    ///
    /// # Errors
    /// Same as [`send`](Self::send); a longer slice.
    pub fn send_slice<A: Argument, T: Element, R: Argument>(
        &mut self,
        to: usize,
        kind: Medium<A, T, R>,
        arguments: A,
        slice: &[T],
    ) -> Result<()> {
        self.enqueue(to, kind.named(), &arguments, payload("send_slice", slice)?)
    }

    fn enqueue<A: Argument>(&mut self, to: usize, kind: Named, arguments: &A, payload: &[u8]) -> Result<()> {
        if to >= self.members {
            return Err(Error::argument("send", format_args!("member {to} of a group of {}", self.members)));
        }
        let head = Head { kind: self.outgoing.number("send", kind)?, bytes: payload.len() as u16, call: 0 };
        self.outgoing.enqueue(Leaving::new(to, head, arguments, payload));
        Ok(())
    }
}

/// A handler without its types: gets words and bytes, writes its result. False if they are no message of its kind.
type Run<'env, S> = Box<dyn FnMut(&mut S, &mut Context<'_>, &[u64], &[u8], &mut Answer) -> bool + 'env>;

/// What a handler returned.
struct Answer {
    words: [u64; MOST],
    len: usize,
}

/// The state of a rank, and what it does with each kind of message. Members register the same kinds in the same order.
///
/// # Examples
/// ```
/// use std::collections::HashMap;
/// use global_arrays::{active::{Handlers, Short}, prelude::*};
/// const INSERT: Short<(u64, f64)> = Short::new("insert");
/// const FIND: Short<u64, Option<f64>> = Short::new("find");
/// # fn main() -> Result<(), Error> {
/// Launch::new().ranks(2).network("threads").run(|job| {
///     let mut map = Handlers::new(HashMap::new())
///         .on(INSERT, |map, _, (key, value)| _ = map.insert(key, value))
///         .on(FIND, |map, _, key| map.get(&key).copied())
///         .open(job)?;
///     let owner = |key: u64| key as usize % 2;
///     for key in 0..10 {
///         map.send(owner(key), INSERT, (key, job.rank() as f64))?; // one way
///     }
///     map.sync()?; // all that anybody sent is handled everywhere
///     assert!(map.call(owner(3), FIND, 3)?.is_some()); // there and back
///     assert_eq!(map.call(owner(10), FIND, 10)?, None);
///     assert_eq!(map.close()?.len(), 5); // the state of this rank
///     Ok::<_, Error>(())
/// })
/// # }
/// ```
pub struct Handlers<'env, S> {
    state: S,
    kinds: Vec<Named>,
    run: Vec<Run<'env, S>>,
    slots: usize,
}

impl<S> fmt::Debug for Handlers<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

impl<'env, S> Handlers<'env, S> {
    /// No handlers yet; `state` is what they will have by `&mut`.
    pub fn new(state: S) -> Self {
        Handlers { state, kinds: Vec::new(), run: Vec::new(), slots: SLOTS }
    }

    /// Bytes of the ring in which messages of all members wait for this one, the same on all members; 64 KiB if nothing is said. The next power of two from
    /// 32 KiB on.
    #[must_use]
    pub fn room(mut self, bytes: usize) -> Self {
        self.slots = (bytes / SLOT).clamp(FEWEST, usize::MAX >> 8).next_power_of_two();
        self
    }

    /// What is done with messages of a kind. What the handler returns is the answer to a [`call`](ActiveMessages::call).
    #[must_use]
    pub fn on<A: Argument, R: Argument>(
        self,
        kind: Short<A, R>,
        mut handler: impl FnMut(&mut S, &mut Context<'_>, A) -> R + 'env,
    ) -> Self {
        self.register(
            kind.named(),
            Box::new(move |state, context, words, bytes, answer| {
                let Some(arguments) = arguments::<A>(words).filter(|_| bytes.is_empty()) else { return false };
                answer.set(&handler(state, context, arguments));
                true
            }),
        )
    }

    /// The same for messages that carry a slice.
    #[must_use]
    pub fn on_slice<A: Argument, T: Element, R: Argument>(
        self,
        kind: Medium<A, T, R>,
        mut handler: impl FnMut(&mut S, &mut Context<'_>, A, &[T]) -> R + 'env,
    ) -> Self {
        self.register(
            kind.named(),
            Box::new(move |state, context, words, bytes, answer| {
                let (Some(arguments), Ok(slice)) = (arguments::<A>(words), bytemuck::try_cast_slice(bytes)) else { return false };
                answer.set(&handler(state, context, arguments, slice));
                true
            }),
        )
    }

    fn register(mut self, kind: Named, run: Run<'env, S>) -> Self {
        self.kinds.push(kind);
        self.run.push(run);
        self
    }

    /// Makes the endpoint of this member. Collective.
    ///
    /// # Errors
    /// Two kinds of one name and the same types; members with different kinds or another room; too little memory; the end of the job.
    #[track_caller]
    pub fn open(self, group: impl AsRef<Group>) -> Result<ActiveMessages<'env, S>> {
        located(move || {
            let group = group.as_ref();
            let texts = self.kinds.iter().flat_map(|kind| [text_fingerprint(kind.name), text_fingerprint(kind.text)]);
            let kinds = fingerprint(&texts.collect::<Vec<_>>());
            let twice = (1..self.kinds.len()).find(|&k| self.kinds[..k].contains(&self.kinds[k]));
            let rings = Rings::open(group, Op::ActiveMessages, "send", self.slots, kinds)?;
            if let Some(twice) = twice {
                let name = self.kinds[twice].name;
                return Err(Error::argument("open", format_args!("two handlers for messages \"{name}\"")));
            }
            Ok(ActiveMessages {
                state: self.state,
                run: self.run,
                outgoing: Outgoing { kinds: self.kinds, queue: VecDeque::new(), counts: [0; 2] },
                quiescence: Quiescence::new(group.member(), group.size()),
                verdict: None,
                calls: 0,
                answers: Numbered::default(),
                rings,
            })
        })
    }
}

/// Arguments that take all of some words.
fn arguments<A: Argument>(words: &[u64]) -> Option<A> {
    if words.len() == A::WORDS { A::read(words) } else { None }
}

impl Answer {
    fn set<R: Argument>(&mut self, result: &R) {
        self.len = R::WORDS;
        result.write(&mut self.words[..R::WORDS]);
    }
}

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
    answers: Numbered<Answer>,
    rings: Rings,
}

impl<S: fmt::Debug> fmt::Debug for ActiveMessages<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveMessages").field("state", &self.state).finish_non_exhaustive()
    }
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

impl<S> ActiveMessages<'_, S> {
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
        located(move || self.post("send", to, kind.named(), &arguments, &[], false).map(|_| ()))
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
            self.post("send_slice", to, kind.named(), &arguments, bytes, false).map(|_| ())
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
            self.rings.check("poll", 0)?;
            self.rings.progress();
            while self.serve()? {}
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
        let call = self.post(operation, to, kind, arguments, bytes, true)?;
        Ok(Reply { call, endpoint: self.rings.place(), from: to, kind: kind.name, result: PhantomData })
    }

    /// Sends a message behind what waits to leave. Returns the number of the call.
    fn post<A: Argument>(
        &mut self,
        operation: &'static str,
        to: usize,
        kind: Named,
        arguments: &A,
        bytes: &[u8],
        called: bool,
    ) -> Result<u32> {
        self.rings.check(operation, to)?;
        let kind = self.outgoing.number(operation, kind)?;
        if called {
            // 0 is none.
            self.calls = self.calls.checked_add(1).unwrap_or(1);
        }
        let call = if called { self.calls } else { 0 };
        let head = Head { kind, bytes: bytes.len() as u16, call };
        let leaving = Leaving::new(to, head, arguments, &[]);
        if self.outgoing.queue.is_empty() && self.rings.send(to, leaving.words(), bytes)? {
            self.outgoing.counts[0] += 1;
            return Ok(call);
        }
        self.outgoing.enqueue(Leaving { payload: bytes.into(), ..leaving });
        self.drain()?;
        Ok(call)
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
            if !self.rings.send(first.to, first.words(), &first.payload)? {
                return Ok(false);
            }
            self.outgoing.queue.pop_front();
        }
        Ok(true)
    }

    fn wait_for_room(&mut self) -> Result<()> {
        let Some(first) = self.outgoing.queue.front() else { return Ok(()) };
        self.rings.wait_for_room(first.to, first.words(), &first.payload)
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
            self.rings.check("call", 0)?;
            if let Some(answer) = self.answers.remove(&(reply.call as usize)) {
                break answer;
            }
            if self.serve()? {
                continue;
            }
            if !self.outgoing.queue.is_empty() {
                self.drain()?;
                continue;
            }
            let operation = || format!("call of \"{}\"", reply.kind);
            self.wait(reply.from, &operation, &|rank| format!("the reply of rank {rank} to \"{}\"", reply.kind))?;
        };
        self.drain()?;
        arguments(&answer.words[..answer.len]).ok_or_else(|| self.wrong(reply.from, reply.kind))
    }

    fn become_quiet(&mut self) -> Result<()> {
        loop {
            self.rings.check("sync", 0)?;
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
                            self.rings.check("sync", 0)?;
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
        self.outgoing.queue.push_back(Leaving::new(to, Head { kind, bytes: 0, call: 0 }, &words, &[]));
    }

    fn wrong(&self, from: usize, kind: &str) -> Error {
        let cause = format!("got a message \"{kind}\" of member {from} whose words are no value of its types");
        self.rings.engine().conduit().end(&cause);
        self.rings.engine().over("active messages")
    }

    /// Takes a letter, if one is here, and does what it says.
    fn serve(&mut self) -> Result<bool> {
        let Some(from) = self.rings.take() else { return Ok(false) };
        let members = self.group().size();
        let Self { state, run, outgoing, quiescence, verdict, answers, rings, .. } = self;
        let Some((&head, words)) = rings.words().split_first().filter(|_| from < members) else {
            return Err(self.wrong(from, ""));
        };
        let Head { kind, bytes, call } = Head::of(head);
        let Some(len) = words.len().checked_sub(usize::from(bytes).div_ceil(size_of::<u64>())) else {
            return Err(self.wrong(from, ""));
        };
        let (words, payload) = words.split_at(len);
        let right = match (kind, words) {
            (REPLY, _) => {
                outgoing.counts[1] += 1;
                let mut answer = Answer { words: [0; MOST], len: words.len() };
                let fits = words.len() <= MOST;
                if fits {
                    answer.words[..words.len()].copy_from_slice(words);
                    answers.insert(call as usize, answer);
                }
                fits
            }
            (REPORT, &[sent, handled]) => quiescence.report(from, [sent, handled]),
            (VERDICT, &[quiet, _]) => verdict.replace(quiet != 0).is_none(),
            (number, _) => match run.get_mut(usize::from(number)) {
                None => false,
                Some(run) => {
                    outgoing.counts[1] += 1;
                    let name = outgoing.kinds[usize::from(number)].name;
                    let mut answer = Answer { words: [0; MOST], len: 0 };
                    let payload = &bytemuck::cast_slice(payload)[..usize::from(bytes)];
                    let mut context = Context { from, members, outgoing };
                    let ran = catch_unwind(AssertUnwindSafe(|| {
                        record::program(|| run(state, &mut context, words, payload, &mut answer))
                    }));
                    let right = ran.unwrap_or_else(|panic| {
                        let rank = rings.group().inner.rank_of(from);
                        let text = panic_text(&*panic);
                        rings
                            .engine()
                            .conduit()
                            .end(&format!("panicked in handler \"{name}\" of a message of rank {rank}: {text}"));
                        resume_unwind(panic)
                    });
                    if right && call != 0 {
                        let mut leaving = Leaving::new(from, Head { kind: REPLY, bytes: 0, call }, &(), &[]);
                        leaving.len = 1 + answer.len;
                        leaving.words[1..leaving.len].copy_from_slice(&answer.words[..answer.len]);
                        if outgoing.queue.is_empty() && rings.send(from, leaving.words(), &[])? {
                            outgoing.counts[0] += 1;
                        } else {
                            outgoing.enqueue(leaving);
                        }
                    }
                    right
                }
            },
        };
        if !right {
            let name = self.outgoing.kinds.get(usize::from(kind)).map_or("", |kind| kind.name);
            return Err(self.wrong(from, name));
        }
        if !self.outgoing.queue.is_empty() {
            self.leave()?;
        }
        Ok(true)
    }
}
