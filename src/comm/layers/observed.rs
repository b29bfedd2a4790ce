//! A layer that passes every call on unchanged, and reports it to an [`Observer`].

use std::{fmt, sync::Arc};

use crate::comm::{Awaited, Capabilities, Event, Events, Issued, LeaveStep, Local, Network, Operation, Remote, Strided, Token};

/// An observer of a network. Called by any thread of the rank.
pub(crate) trait Observer: Send + Sync + fmt::Debug {
    /// The network below took an operation of this name on `bytes` bytes. The text has the rest, and is written out only if it is
    /// wanted.
    fn called(&self, name: &'static str, bytes: usize, text: fmt::Arguments<'_>);

    /// The network below reported an event.
    fn happened(&self, _event: &Event) {}

    /// The body of the rank ended.
    fn ended(&self) {}
}

/// A layer that reports every call to its observer.
#[derive(Debug)]
pub(crate) struct Observed<O> {
    below: Arc<dyn Network>,
    observer: O,
}

impl<O: Observer> Observed<O> {
    pub(crate) fn new(below: Arc<dyn Network>, observer: O) -> Self {
        Observed { below, observer }
    }

    /// Reports an operation that the network below took.
    fn took(&self, operation: &Operation<'_>, token: Token, issued: Issued) {
        let say = |name, text: fmt::Arguments<'_>| self.observer.called(name, operation.bytes(), text);
        let runs = |Strided { loops, .. }: &Strided<'_>| (loops.runs(), loops.run());
        match operation {
            Operation::PutSignal { to, local, signal } => {
                say("put_signal", format_args!("{to}, {} bytes, {token:?}, {signal:?}, {issued:?}", local.len));
            }
            Operation::PutBlock { to: place, block }
            | Operation::GetBlock { from: place, block }
            | Operation::Accumulate { to: place, block, .. } => {
                let name = match operation {
                    Operation::PutBlock { .. } => "put_block",
                    Operation::GetBlock { .. } => "get_block",
                    _ => "accumulate_block",
                };
                let (runs, run) = runs(block);
                say(name, format_args!("{place}, {runs} x {run} bytes, {token:?}, {issued:?}"));
            }
            Operation::Atomic { word, atomic } => {
                say("atomic", format_args!("{word}, {} bytes, {token:?}, {atomic:?}, {issued:?}", atomic.width));
            }
            Operation::Flush { rank } => say("flush", format_args!("rank {rank}, {token:?}, {issued:?}")),
            Operation::Append { ring, letter } => {
                say("append", format_args!("{}, {} bytes, {token:?}, {issued:?}", ring.at, letter.packed()));
            }
        }
    }
}

impl<O: Observer> Network for Observed<O> {
    fn capabilities(&self) -> &Capabilities {
        self.below.capabilities()
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.put(to, local, token) };
        self.observer.called("put", local.len, format_args!("{to}, {} bytes, {token:?}, {issued:?}", local.len));
        issued
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.get(from, local, token) };
        self.observer.called("get", local.len, format_args!("{from}, {} bytes, {token:?}, {issued:?}", local.len));
        issued
    }

    unsafe fn issue(&self, operation: &Operation<'_>, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.issue(operation, token) };
        self.took(operation, token, issued);
        issued
    }

    fn cancel(&self, token: Token) {
        self.below.cancel(token);
    }

    fn poll(&self, events: &mut Events) {
        let first = events.len();
        self.below.poll(events);
        events[first..].iter().for_each(|event| self.observer.happened(event));
    }

    fn attend(&self) -> bool {
        self.below.attend()
    }

    fn below(&self) -> Option<&dyn Network> {
        Some(&*self.below)
    }

    fn is_complete(&self, awaited: Awaited) -> bool {
        let is_complete = self.below.is_complete(awaited);
        match awaited {
            _ if !is_complete => {}
            Awaited::Get(token) => self.observer.happened(&Event::LocalDone(token)),
            Awaited::Puts(rank) => self.observer.called("flush", 0, format_args!("rank {rank}, {:?}", Issued::Complete)),
        }
        is_complete
    }

    fn leave(&self, step: LeaveStep<'_>) {
        self.below.leave(step);
        if let LeaveStep::BodyEnded = step {
            self.observer.ended();
        }
    }
}
