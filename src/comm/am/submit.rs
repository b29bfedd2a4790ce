//! Operations as callers give them, and as they are queued.

use std::sync::Arc;

use super::{
    Am,
    endpoint::Endpoint,
    frame::Kind,
    peer::{Block, BlockKind, Op},
    route::Route,
    runs::Runs,
    wire::{Result, Wire},
};
use crate::{
    comm::{Issued, Local, Progress, Token},
    index::Loops,
};

impl<W: Wire> Am<W> {
    pub(super) fn submit(&self, rank: usize, op: Op) {
        let mut endpoint = self.endpoint();
        let route = endpoint.routes.find(rank);
        let submitted = endpoint.submit(route, op);
        drop(endpoint);
        self.report(submitted);
    }

    /// An operation that only reads the caller's memory. Complete if all of it was written into a frame, which the agent sends if nobody
    /// does before.
    pub(super) fn submit_put(
        &self,
        to: usize,
        token: Token,
        submit: impl FnOnce(&mut Endpoint<W>, Route) -> Result<()>,
    ) -> Issued {
        let mut endpoint = self.endpoint();
        let route = endpoint.routes.find(to);
        let submitted = submit(&mut endpoint, route);
        let complete = self.capabilities.progress == Progress::Thread && endpoint.take_completion(token);
        drop(endpoint);
        self.report(submitted);
        if complete { Issued::Complete } else { Issued::Pending }
    }

    /// A value that a request waits for, of an atomic operation or, not `wanted`, of a flush.
    pub(super) fn ask(&self, rank: usize, kind: Kind, aux: u8, words: impl FnOnce(u64) -> [u64; 5], token: Token, wanted: bool) {
        let mut endpoint = self.endpoint();
        let (origin, route) = (endpoint.origins.value(token, wanted), endpoint.routes.find(rank));
        let submitted = endpoint.submit(route, Op::Small { kind, aux, words: words(origin) });
        drop(endpoint);
        self.report(submitted);
    }

    /// A put of contiguous bytes, which goes straight from `straight` bytes on.
    pub(super) fn put_op(&self, offset: usize, local: Local, token: Token, straight: usize) -> Op {
        let Local { ptr, len } = local;
        if len >= self.contiguous {
            Op::Long { put: true, offset, local: ptr, len, token }
        } else if len >= straight {
            Op::Block(Box::new(Self::one_run(offset, local, token, BlockKind::Put)))
        } else {
            Op::Put { offset, local: ptr, len, at: 0, token }
        }
    }

    /// Contiguous bytes that go straight.
    pub(super) fn one_run(offset: usize, Local { ptr, len }: Local, token: Token, what: BlockKind) -> Block {
        let (there, here) = (Runs::one(len), Runs::one(len));
        Block { what, offset, there, here, local: ptr, len, at: 0, token, straight: Some(Arc::new(token)) }
    }

    /// The operation on a block.
    pub(super) fn block(&self, loops: &Loops, offset: usize, local: *mut u8, token: Token, what: BlockKind) -> Block {
        let (there, here) = Runs::both(loops).expect("a block of no more levels than the trait promises");
        let len = loops.runs() * loops.run();
        let is_message = len > self.longest_packed && here.is_packed() && !self.may_give_up;
        let straight = (is_message || loops.run() >= self.straight).then(|| Arc::new(token));
        Block { what, offset, there, here, local, len, at: 0, token, straight }
    }
}
