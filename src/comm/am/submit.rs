//! Operations as callers give them, and as they are queued.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Am,
    endpoint::Endpoint,
    frame::{NO_ORIGIN, RecordKind},
    peer::{Block, BlockKind, Op},
    route::Route,
    runs::Runs,
    wire::{Result, Wire},
};
use crate::{
    comm::{Atomic, Issued, Local, Progress, Remote, RingPlace, SignalWord, Strided, Token},
    memory::ring::Letter,
};

/// A short read of an adapter takes no longer, as a rule.
const SOON: Duration = Duration::from_micros(5);

impl<W: Wire> Am<W> {
    fn submit(&self, rank: usize, op: Op) {
        let mut endpoint = self.endpoint();
        let route = endpoint.routes.find(rank);
        let submitted = endpoint.submit(route, op);
        drop(endpoint);
        self.report(submitted);
    }

    /// An operation that only reads the caller's memory. Complete if all of it was written into a frame, which the helper sends if nobody
    /// does before.
    fn submit_put(&self, to: usize, token: Token, submit: impl FnOnce(&mut Endpoint<W>, Route) -> Result<Issued>) -> Issued {
        let mut endpoint = self.endpoint();
        let route = endpoint.routes.find(to);
        let submitted = submit(&mut endpoint, route);
        // A completion that is there when this one is complete at once is of an earlier operation of the request.
        if matches!(submitted, Ok(Issued::Complete)) {
            return Issued::Complete;
        }
        let is_written = self.capabilities.progress == Progress::Thread && endpoint.take_completion(token);
        drop(endpoint);
        self.report(submitted.map(drop));
        if is_written { Issued::Complete } else { Issued::Pending }
    }

    /// # Safety
    /// As [`Network::put`](crate::comm::Network::put).
    pub(super) unsafe fn submit_contiguous(&self, to: Remote, local: Local, token: Token) -> Issued {
        self.submit_put(to.rank, token, |endpoint, route| {
            // SAFETY: the caller's promise.
            match unsafe { endpoint.put_at_once(route, to.offset, local) }? {
                true => Ok(Issued::Complete),
                false => endpoint.submit(route, self.put_op(to.offset, local, token, self.straight)).map(|()| Issued::Pending),
            }
        })
    }

    /// # Safety
    /// As [`Network::get`](crate::comm::Network::get).
    pub(super) unsafe fn ask_contiguous(&self, Remote { rank, offset }: Remote, local: Local, token: Token) {
        let Local { ptr, len } = local;
        if len >= self.contiguous {
            return self.submit(rank, Op::Long { put: false, offset, local: ptr, len, token });
        }
        let mut endpoint = self.endpoint();
        let route = endpoint.routes.find(rank);
        // SAFETY: the caller's promise.
        match unsafe { endpoint.get_at_once(route, offset, local, token) } {
            Ok(false) => {}
            begun => {
                drop(endpoint);
                self.report(begun.map(drop));
                return;
            }
        }
        let origin = endpoint.origins.data(token, ptr, Runs::one(len), len);
        let op = match len >= self.straight {
            true => Op::Block(Box::new(Self::one_run(offset, Local { ptr, len }, token, BlockKind::Get { origin }))),
            false => Op::Get { offset, len, at: 0, origin },
        };
        let submitted = endpoint.submit(route, op);
        drop(endpoint);
        self.report(submitted);
    }

    /// # Safety
    /// As [`Operation::PutSignal`](crate::comm::Operation::PutSignal).
    pub(super) unsafe fn put_signal(&self, to: Remote, local: Local, signal: SignalWord, token: Token) -> Issued {
        let (Remote { rank, offset }, Local { ptr, len }) = (to, local);
        if len <= self.longest_with_signal {
            return self.submit_put(rank, token, |endpoint, route| {
                endpoint.submit(route, Op::PutSignal { offset, local: ptr, len, signal, token })?;
                if !signal.patient || self.capabilities.progress != Progress::Thread {
                    endpoint.send_requests(route.to)?;
                }
                Ok(Issued::Pending)
            });
        }
        // The bytes complete the request; the signal behind them, whose token nobody waits for, is kept behind a long message too.
        let null = std::ptr::null_mut();
        // Bytes that the adapter takes from the caller's memory may be given up when their signal cannot be any more.
        let bytes = self.put_op(offset, local, token, if self.may_give_up { usize::MAX } else { self.straight });
        let mut endpoint = self.endpoint();
        let route = endpoint.routes.find(rank);
        let submitted = endpoint.submit(route, bytes).and_then(|()| {
            endpoint.submit(route, Op::PutSignal { offset: signal.offset, local: null, len: 0, signal, token: Token::NOBODY })
        });
        drop(endpoint);
        self.report(submitted);
        Issued::Pending
    }

    /// # Safety
    /// As [`Operation::PutBlock`](crate::comm::Operation::PutBlock) or [`Accumulate`](crate::comm::Operation::Accumulate).
    pub(super) unsafe fn put_block(&self, to: Remote, patch: Strided<'_>, what: BlockKind, token: Token) -> Issued {
        let block = self.block(patch, to.offset, token, what);
        self.submit_put(to.rank, token, |endpoint, route| endpoint.submit_block(route, block).map(|()| Issued::Pending))
    }

    /// # Safety
    /// As [`Operation::GetBlock`](crate::comm::Operation::GetBlock).
    pub(super) unsafe fn get_block(&self, from: Remote, patch: Strided<'_>, token: Token) {
        let mut endpoint = self.endpoint();
        let mut block = self.block(patch, from.offset, token, BlockKind::Put);
        block.what = BlockKind::Get { origin: endpoint.origins.data(token, patch.local, block.here, block.len) };
        let route = endpoint.routes.find(from.rank);
        let submitted = endpoint.submit(route, Op::Block(Box::new(block)));
        drop(endpoint);
        self.report(submitted);
    }

    /// # Safety
    /// As [`Operation::Atomic`](crate::comm::Operation::Atomic).
    pub(super) unsafe fn atomic(&self, Remote { rank, offset }: Remote, atomic: Atomic, token: Token) {
        let Atomic { op, width, operand, comparand } = atomic;
        let mut endpoint = self.endpoint();
        let (origin, route) = (endpoint.origins.value(token, true), endpoint.routes.find(rank));
        let op = if width > self.capabilities.native.coherent {
            Op::Change { offset, atomic, origin, asks: 0 }
        } else {
            let words = [offset as u64, operand, comparand, origin, width as u64];
            Op::Small { kind: RecordKind::Atomic, aux: op as u8, words }
        };
        let submitted = endpoint.submit(route, op);
        drop(endpoint);
        self.report(submitted);
    }

    /// It leaves with the next poll; at once, if no thread polls for the caller.
    pub(super) fn append(&self, RingPlace { at, slots }: RingPlace, letter: &Letter<'_>, token: Token) {
        let mut endpoint = self.endpoint();
        let route = endpoint.routes.find(at.rank);
        let origin = if token == Token::NOBODY { NO_ORIGIN } else { endpoint.origins.value(token, true) };
        let appended = endpoint.append(route, [at.offset as u64, slots as u64, origin], letter);
        let sent = match self.capabilities.progress {
            Progress::Thread => appended,
            _ => appended.and_then(|()| endpoint.send_requests(route.to)),
        };
        drop(endpoint);
        self.report(sent);
    }

    /// Polls for the only transfer of a request, a get, for as long as a short read of an adapter takes.
    pub(super) fn is_got(&self, token: Token) -> bool {
        let mut start = None;
        loop {
            // The thread in the endpoint takes it.
            let Some(mut endpoint) = self.try_endpoint() else { return false };
            let looked = endpoint.look_at_reads();
            let ended = matches!(looked, Ok(Some(()))) && endpoint.take_completion(token);
            drop(endpoint);
            if ended {
                return true;
            }
            match looked {
                Ok(Some(())) if start.get_or_insert_with(Instant::now).elapsed() < SOON => std::hint::spin_loop(),
                looked => {
                    self.report(looked.map(drop));
                    return false;
                }
            }
        }
    }

    /// Returns true if all that was put to a rank is visible.
    pub(super) fn is_flushed(&self, rank: usize) -> bool {
        // The thread in the endpoint has other things to do.
        let Some(mut endpoint) = self.try_endpoint() else { return false };
        let is_flushed = endpoint.is_flushed(rank);
        drop(endpoint);
        let known = matches!(is_flushed, Ok(true));
        self.report(is_flushed.map(drop));
        known
    }

    /// A put of contiguous bytes, which goes straight from `straight` bytes on.
    fn put_op(&self, offset: usize, local: Local, token: Token, straight: usize) -> Op {
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
    fn one_run(offset: usize, Local { ptr, len }: Local, token: Token, what: BlockKind) -> Block {
        let (there, here) = (Runs::one(len), Runs::one(len));
        Block { what, offset, there, here, local: ptr, len, at: 0, token, straight: Some(Arc::new(token)) }
    }

    /// The operation on a block.
    fn block(&self, patch: Strided<'_>, offset: usize, token: Token, what: BlockKind) -> Block {
        let Strided { loops, local } = patch;
        let (there, here) = Runs::both(loops).expect("a block of no more levels than the trait promises");
        let len = patch.bytes();
        let is_message = len > self.longest_packed && here.is_packed() && !self.may_give_up;
        let straight = (is_message || loops.run() >= self.straight).then(|| Arc::new(token));
        Block { what, offset, there, here, local, len, at: 0, token, straight }
    }
}
