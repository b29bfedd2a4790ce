//! DMAPP without an adapter, over the ranks of one process. It refuses what DMAPP refuses.

use std::sync::Arc;

use super::dmapp::{Dmapp, DmappRefusal, DmappSegment, Element, Granted, RemoteElements, SyncId};
use crate::comm::{
    Atomic, AtomicOp,
    soft::fabric::{Move, Moved, MovingFabric, MovingPort},
};

/// Works that may be under way: those of DMAPP's default.
const OUTSTANDING: usize = 512;

/// The adapter of a rank.
#[derive(Debug)]
pub(super) struct SoftDmapp {
    port: MovingPort,
}

impl SoftDmapp {
    pub(super) fn open(fabric: &Arc<MovingFabric>, rank: usize) -> Self {
        SoftDmapp { port: fabric.open(rank) }
    }

    /// # Safety
    /// As the calls of [`Dmapp`] say.
    unsafe fn begin(&mut self, what: Move, here: *const u8, there: RemoteElements) -> Result<SyncId, DmappRefusal> {
        let RemoteElements { pe, segment, address, count, element } = there;
        if self.port.under_way() >= OUTSTANDING {
            return Err(DmappRefusal::NoSpace);
        }
        if count == 0 || segment.0[1] != !segment.0[0] {
            return Err(DmappRefusal::Why(format!("DMAPP_RC_INVALID_PARAM: {count} elements, handle {:x?}", segment.0)));
        }
        if !(address as usize | here.addr()).is_multiple_of(element.bytes()) {
            let why = format!("DMAPP_RC_ALIGNMENT: {element:?} at {address:#x} of rank {pe}, and at {here:?}");
            return Err(DmappRefusal::Why(why));
        }
        // SAFETY: the caller's promise.
        Ok(SyncId(unsafe { self.port.begin(what, pe, Some(segment.0[0]), address, count * element.bytes()) }))
    }
}

impl Dmapp for SoftDmapp {
    fn granted(&self) -> Granted {
        Granted { outstanding: OUTSTANDING, strict: self.port.is_strict() }
    }

    unsafe fn register(&mut self, start: *mut u8, len: usize) -> Result<DmappSegment, String> {
        // SAFETY: the caller's promise.
        let key = unsafe { self.port.register(start, len, true) };
        // All of a handle has to arrive.
        Ok(DmappSegment([key, !key]))
    }

    fn unregister(&mut self, segment: DmappSegment) {
        self.port.unregister(segment.0[0]);
    }

    unsafe fn put(&mut self, to: RemoteElements, from: *const u8) -> Result<SyncId, DmappRefusal> {
        // SAFETY: the caller's promise.
        unsafe { self.begin(Move::Write(from), from, to) }
    }

    unsafe fn get(&mut self, from: RemoteElements, to: *mut u8) -> Result<SyncId, DmappRefusal> {
        // SAFETY: the caller's promise.
        unsafe { self.begin(Move::Read(to), to, from) }
    }

    unsafe fn change(&mut self, word: RemoteElements, atomic: Atomic, old: *mut u8) -> Result<SyncId, DmappRefusal> {
        use AtomicOp::{Add, And, CompareSwap, Load, Or, Xor};
        if !matches!(atomic.op, Load | Add | And | Or | Xor | CompareSwap) || atomic.width != size_of::<u64>() {
            return Err(DmappRefusal::Why(format!("DMAPP_RC_NOT_SUPPORTED: {atomic:?}")));
        }
        let word = RemoteElements { count: 1, element: Element::Word8, ..word };
        // SAFETY: the caller's promise.
        unsafe { self.begin(Move::Change(atomic, old), old, word) }
    }

    fn test(&mut self, SyncId(work): SyncId) -> Result<bool, String> {
        match self.port.test(work) {
            Moved::NotYet => Ok(false),
            Moved::Well => Ok(true),
            Moved::Failed(why) => Err(why),
        }
    }

    fn go_on(&mut self) {
        self.port.land_one();
    }

    fn finalize(&mut self) {
        self.port.close();
    }
}
