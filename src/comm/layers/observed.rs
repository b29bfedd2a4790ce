//! A layer that passes every call on unchanged, and reports it to an [`Observer`].

use std::{fmt, sync::Arc};

use crate::{
    comm::{
        Atomic, Capabilities, Event, Events, Full, Issued, Local, Mail, Network, Operations, Remote, Scale, SignalWord, Token,
    },
    index::Loops,
};

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

    /// Reports an operation on one run of bytes.
    fn run(&self, name: &'static str, place: Remote, bytes: usize, token: Token, rest: impl fmt::Debug) {
        self.observer.called(name, bytes, format_args!("{place}, {bytes} bytes, {token:?}, {rest:?}"));
    }

    /// Reports an operation on a block.
    fn block(&self, name: &'static str, place: Remote, loops: &Loops, token: Token, issued: Issued) {
        let (runs, run) = (loops.runs(), loops.run());
        self.observer.called(name, runs * run, format_args!("{place}, {runs} x {run} bytes, {token:?}, {issued:?}"));
    }
}

impl<O: Observer> Operations for Observed<O> {
    fn capabilities(&self) -> &Capabilities {
        self.below.capabilities()
    }

    unsafe fn put(&self, to: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.put(to, local, token) };
        self.run("put", to, local.len, token, issued);
        issued
    }

    unsafe fn get(&self, from: Remote, local: Local, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.get(from, local, token) };
        self.run("get", from, local.len, token, issued);
        issued
    }

    fn flush(&self, rank: usize, token: Token) {
        self.below.flush(rank, token);
        self.observer.called("flush", 0, format_args!("rank {rank}, {token:?}, {:?}", Issued::Pending));
    }

    fn is_flushed(&self, rank: usize) -> bool {
        let is_flushed = self.below.is_flushed(rank);
        if is_flushed {
            self.observer.called("flush", 0, format_args!("rank {rank}, {:?}", Issued::Complete));
        }
        is_flushed
    }

    fn ends_soon(&self, token: Token) -> bool {
        let ended = self.below.ends_soon(token);
        if ended {
            self.observer.happened(&Event::LocalDone(token));
        }
        ended
    }

    fn cancel(&self, token: Token) {
        self.below.cancel(token);
    }

    unsafe fn atomic(&self, word: Remote, atomic: Atomic, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.below.atomic(word, atomic, token) };
        self.run("atomic", word, atomic.width, token, format_args!("{atomic:?}, {:?}", Issued::Pending));
    }

    fn mail(&self, rank: usize, mail: Mail) -> Result<(), Full> {
        let sent = self.below.mail(rank, mail);
        if sent.is_ok() {
            self.observer.called("mail", 0, format_args!("rank {rank}, {mail:?}"));
        }
        sent
    }

    fn poll(&self, events: &mut Events) {
        let first = events.len();
        self.below.poll(events);
        events[first..].iter().for_each(|event| self.observer.happened(event));
    }

    unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.put_signal(to, local, signal, token) };
        self.run("put_signal", to, local.len, token, format_args!("{signal:?}, {issued:?}"));
        issued
    }

    unsafe fn put_block(&self, to: Remote, loops: &Loops, local: *const u8, token: Token) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.put_block(to, loops, local, token) };
        self.block("put_block", to, loops, token, issued);
        issued
    }

    unsafe fn get_block(&self, from: Remote, loops: &Loops, local: *mut u8, token: Token) {
        // SAFETY: the caller's promise.
        unsafe { self.below.get_block(from, loops, local, token) };
        self.block("get_block", from, loops, token, Issued::Pending);
    }

    unsafe fn accumulate_block(
        &self,
        to: Remote,
        loops: &Loops,
        local: *const u8,
        scale: &Scale,
        lock: usize,
        token: Token,
    ) -> Issued {
        // SAFETY: the caller's promise.
        let issued = unsafe { self.below.accumulate_block(to, loops, local, scale, lock, token) };
        self.block("accumulate_block", to, loops, token, issued);
        issued
    }
}

impl<O: Observer> Network for Observed<O> {
    fn below(&self) -> Option<&dyn Network> {
        Some(&*self.below)
    }

    fn body_ended(&self) {
        self.below.body_ended();
        self.observer.ended();
    }

    fn attend(&self) -> bool {
        self.below.attend()
    }
}
