//! DMAPP by `shim.c`, which is loaded at run time.

use std::ffi::c_int;

use rustc_hash::FxHashMap;

use super::{
    adapter::{GeminiAdapter, LEAST_OUTSTANDING},
    dmapp::{Dmapp, DmappRefusal, DmappSegment, Granted, RemoteElements, SyncId},
    mailboxes::Mailboxes,
};
use crate::comm::{
    Atomic, AtomicOp,
    rma::shim::{ByShim, Shim, shim},
};

/// Where the shim is.
pub(super) const SHIM: Shim = Shim {
    network: "gemini",
    option: "GA_DMAPP",
    command: "cc -shared -fPIC -O2 -o libga_dmapp.so src/comm/gemini/shim.c -ldmapp",
};

/// Calls under way that are asked for: those of the widest window of the adapter. DMAPP grants what it has.
const OUTSTANDING: u64 = 1280;

/// What the shim keeps here of a segment.
type OwnSegment = [u64; 8];

/// The numbers of atomic operations.
const ADD: c_int = 0;
const AND: c_int = 1;
const OR: c_int = 2;
const XOR: c_int = 3;
const COMPARE_SWAP: c_int = 4;

shim! {
    DmappShim, ga_dmapp_why {
        ga_dmapp_open(works: u64, got: *mut [u64; 4]);
        ga_dmapp_register(start: *mut u8, len: u64, segment: *mut OwnSegment, handle: *mut [u64; 2]);
        ga_dmapp_unregister(segment: *mut OwnSegment);
        ga_dmapp_put(pe: c_int, handle: *const [u64; 2], there: u64, here: *const u8, count: u64, width: u64, work: *mut u64);
        ga_dmapp_get(pe: c_int, handle: *const [u64; 2], there: u64, here: *mut u8, count: u64, width: u64, work: *mut u64);
        ga_dmapp_atomic(kind: c_int, pe: c_int, handle: *const [u64; 2], there: u64, old: *mut u8, operand: u64, swap: u64, work: *mut u64);
        ga_dmapp_test(work: u64);
        ga_dmapp_close();
    }
}

/// The DMAPP of the process.
#[derive(Debug)]
pub(super) struct LoadedDmapp {
    shim: DmappShim,
    /// The number of this process in its job, and how many there are.
    pub(super) pe: usize,
    pub(super) pes: usize,
    granted: Granted,
    /// By their handles, and how often each was registered: DMAPP may give one for two ranges on one page (ComEx, `reg_cache.c`).
    segments: FxHashMap<[u64; 2], (OwnSegment, usize)>,
}

impl LoadedDmapp {
    /// Opens DMAPP by the shim at a path. Once in a process.
    ///
    /// # Errors
    /// What is missing, or what DMAPP says.
    pub(super) fn open(path: &str) -> Result<Self, String> {
        let (shim, mut got) = (DmappShim::load(&SHIM, path)?, [0; 4]);
        // SAFETY: a place for the numbers.
        unsafe { shim.ga_dmapp_open(OUTSTANDING, &raw mut got) }.map_err(|why| format!("DMAPP cannot be opened: {why}"))?;
        let [pe, pes, outstanding, strict] = got.map(|number| number as usize);
        if outstanding < LEAST_OUTSTANDING {
            return Err(format!(
                "DMAPP grants {outstanding} works under way (max_outstanding_nb), and at least {LEAST_OUTSTANDING} are needed"
            ));
        }
        let granted = Granted { outstanding, strict: strict != 0 };
        Ok(LoadedDmapp { shim, pe, pes, granted, segments: FxHashMap::default() })
    }
}

fn begun(is_begun: Result<bool, String>, work: u64) -> Result<SyncId, DmappRefusal> {
    let is_begun = is_begun.map_err(DmappRefusal::Why)?;
    is_begun.then_some(SyncId(work)).ok_or(DmappRefusal::NoSpace)
}

impl Dmapp for LoadedDmapp {
    fn granted(&self) -> Granted {
        self.granted
    }

    unsafe fn register(&mut self, start: *mut u8, len: usize) -> Result<DmappSegment, String> {
        let (mut segment, mut handle) = (OwnSegment::default(), [0; 2]);
        // SAFETY: the caller's promise, and places for what comes back.
        let is_done = unsafe { self.shim.ga_dmapp_register(start, len as u64, &raw mut segment, &raw mut handle) }?;
        let segment = is_done.then_some(segment).ok_or("DMAPP has no room to register memory")?;
        self.segments.entry(handle).or_insert((segment, 0)).1 += 1;
        Ok(DmappSegment(handle))
    }

    fn unregister(&mut self, DmappSegment(handle): DmappSegment) {
        let Some((segment, users)) = self.segments.get_mut(&handle) else { return };
        *users -= 1;
        if *users == 0 {
            // SAFETY: a segment of the shim, which nobody names any more. Nothing can be done if it is refused.
            let _ = unsafe { self.shim.ga_dmapp_unregister(segment) };
            self.segments.remove(&handle);
        }
    }

    unsafe fn put(&mut self, to: RemoteElements, from: *const u8) -> Result<SyncId, DmappRefusal> {
        let RemoteElements { pe, segment, address, count, element } = to;
        let (pe, count, width, mut work) = (pe as c_int, count as u64, element.bytes() as u64, 0);
        // SAFETY: the caller's promise.
        begun(unsafe { self.shim.ga_dmapp_put(pe, &segment.0, address, from, count, width, &raw mut work) }, work)
    }

    unsafe fn get(&mut self, from: RemoteElements, to: *mut u8) -> Result<SyncId, DmappRefusal> {
        let RemoteElements { pe, segment, address, count, element } = from;
        let (pe, count, width, mut work) = (pe as c_int, count as u64, element.bytes() as u64, 0);
        // SAFETY: the caller's promise.
        begun(unsafe { self.shim.ga_dmapp_get(pe, &segment.0, address, to, count, width, &raw mut work) }, work)
    }

    unsafe fn change(&mut self, word: RemoteElements, atomic: Atomic, old: *mut u8) -> Result<SyncId, DmappRefusal> {
        let (RemoteElements { pe, segment, address, .. }, Atomic { op, operand, comparand, .. }) = (word, atomic);
        let (kind, operand, swap) = match op {
            AtomicOp::Load => (ADD, 0, 0),
            AtomicOp::Add => (ADD, operand, 0),
            AtomicOp::And => (AND, operand, 0),
            AtomicOp::Or => (OR, operand, 0),
            AtomicOp::Xor => (XOR, operand, 0),
            AtomicOp::CompareSwap => (COMPARE_SWAP, comparand, operand),
            _ => return Err(DmappRefusal::Why(format!("DMAPP has no {op:?}"))),
        };
        let mut work = 0;
        // SAFETY: the caller's promise.
        let is_begun =
            unsafe { self.shim.ga_dmapp_atomic(kind, pe as c_int, &segment.0, address, old, operand, swap, &raw mut work) };
        begun(is_begun, work)
    }

    fn test(&mut self, SyncId(work): SyncId) -> Result<bool, String> {
        // SAFETY: a work that was begun, and has not ended yet.
        unsafe { self.shim.ga_dmapp_test(work) }
    }

    fn finalize(&mut self) {
        // SAFETY: nothing is called behind it. Nothing can be done if it is refused.
        let _ = unsafe { self.shim.ga_dmapp_close() };
    }
}

impl ByShim for GeminiAdapter<LoadedDmapp> {
    type Road = Mailboxes;

    const SHIM: Shim = SHIM;

    fn open(path: &str) -> Result<(Self, Mailboxes), String> {
        let dmapp = LoadedDmapp::open(path)?;
        let (pe, pes) = (dmapp.pe, dmapp.pes);
        let mut adapter = GeminiAdapter::new(dmapp, pes);
        Mailboxes::new(&mut adapter, pe, pes).map(|mailboxes| (adapter, mailboxes))
    }

    fn join(&mut self, _: &mut Mailboxes, rank: usize, ranks: usize) -> Result<(), String> {
        let &LoadedDmapp { pe, pes, .. } = self.dmapp();
        if (pe, pes) == (rank, ranks) {
            return Ok(());
        }
        Err(format!(
            "this process is PE {pe} of {pes} to DMAPP, and rank {rank} of {ranks}; start one process for each rank (aprun, srun)"
        ))
    }
}
