//! What a rank does with each kind of message.

use std::{collections::VecDeque, fmt};

use super::{
    ActiveMessages, Argument, Medium, Short,
    kind::Named,
    outgoing::{Head, Leaving, Outgoing, Words, payload},
};
use crate::{
    calls::located,
    element::Element,
    error::{Error, Result},
    memory::ring::SLOT,
    message::rings::{Rings, SLOTS},
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// Fewest slots: the longest message fits twice. Without slices, a few messages of one slot.
const FEWEST: [usize; 2] = [16, 256];

/// What a handler knows of its message, and how it sends.
pub struct Context<'a> {
    pub(super) from: usize,
    pub(super) members: usize,
    pub(super) outgoing: &'a mut Outgoing,
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
        self.outgoing.enqueue(Leaving { to, words: head.with(arguments), payload: payload.into() });
        Ok(())
    }
}

/// A handler without its types: gets words and bytes, writes its result behind others. False if they are no message of its kind.
pub(super) type Run<'env, S> = Box<dyn FnMut(&mut S, &mut Context<'_>, &[u64], &[u8], &mut Words) -> bool + 'env>;

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
    has_slices: bool,
}

impl<S> fmt::Debug for Handlers<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

impl<'env, S> Handlers<'env, S> {
    /// No handlers yet; `state` is what they will have by `&mut`.
    pub fn new(state: S) -> Self {
        Handlers { state, kinds: Vec::new(), run: Vec::new(), slots: SLOTS, has_slices: false }
    }

    /// Bytes of the ring in which messages of all members wait for this one: the next power of two, the same on all members. The default is 64
    /// KiB, the least 2 KiB, or 32 KiB with messages that carry slices.
    #[must_use]
    pub fn room(mut self, bytes: usize) -> Self {
        self.slots = (bytes / SLOT).clamp(1, usize::MAX >> 8).next_power_of_two();
        self
    }

    /// What is done with messages of a kind, whose name shows in statistics and traces as a phase. What the handler returns is the answer to a [`call`](ActiveMessages::call).
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
                answer.push(&handler(state, context, arguments));
                true
            }),
        )
    }

    /// The same for messages that carry a slice.
    #[must_use]
    pub fn on_slice<A: Argument, T: Element, R: Argument>(
        mut self,
        kind: Medium<A, T, R>,
        mut handler: impl FnMut(&mut S, &mut Context<'_>, A, &[T]) -> R + 'env,
    ) -> Self {
        self.has_slices = true;
        self.register(
            kind.named(),
            Box::new(move |state, context, words, bytes, answer| {
                let (Some(arguments), Ok(slice)) = (arguments::<A>(words), bytemuck::try_cast_slice(bytes)) else { return false };
                answer.push(&handler(state, context, arguments, slice));
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
    /// Two kinds of one name; members with different kinds or another room; too little memory; the end of the job.
    #[track_caller]
    pub fn open(self, group: impl AsRef<Group>) -> Result<ActiveMessages<'env, S>> {
        located(move || {
            let group = group.as_ref();
            let texts = self.kinds.iter().flat_map(|kind| [text_fingerprint(kind.name), text_fingerprint(kind.text)]);
            let kinds = fingerprint(&texts.collect::<Vec<_>>());
            let name = |k: usize| self.kinds[k].name;
            let twice = (0..self.kinds.len()).find(|&k| (0..k).any(|other| name(other) == name(k))).map(name);
            let slots = self.slots.max(FEWEST[usize::from(self.has_slices)]);
            let rings = Rings::open(group, Op::ActiveMessages, "send", slots, 0, kinds)?;
            if let Some(name) = twice {
                return Err(Error::argument("open", format_args!("two handlers for messages \"{name}\"")));
            }
            let outgoing = Outgoing { kinds: self.kinds, queue: VecDeque::new(), counts: [0; 2] };
            Ok(ActiveMessages::new(self.state, self.run, outgoing, rings))
        })
    }
}

/// Arguments that take all of some words.
pub(super) fn arguments<A: Argument>(words: &[u64]) -> Option<A> {
    if words.len() == A::WORDS { A::read(words) } else { None }
}
