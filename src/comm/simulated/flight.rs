//! One operation on its way.

use std::ptr::NonNull;

use crate::{
    comm::{
        Atomic, Event, Local, Remote, RingPlace, Scale, SignalWord, Strided, Token,
        engine::addition::{self, NodeSegment},
        node::Fabric,
        soft::{Picos, Way},
    },
    index::Loops,
    memory::ring::Letter,
};

/// One operation on its way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) message: Message,
    pub(super) kind: FlightKind,
    pub(super) token: Token,
    offset: usize,
    memory: Memory,
    /// It moves nothing, because its target has no contents.
    pub(super) hollow: bool,
    /// The old value of an atomic operation.
    value: u64,
    /// The bytes of a short get.
    bytes: Option<Box<[u8]>>,
}

/// Its message that is under way. Most events need no more of an operation: it begins a line of the cache, and fills it.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Message {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: usize,
    pub(super) way: Way,
    /// When its sender knows that it has arrived.
    pub(super) answered: Picos,
    /// The operation has reached its target, and this is what it brings back.
    pub(super) is_back: bool,
}

const _: () = assert!(size_of::<Message>() == 64);

impl Message {
    pub(super) fn issuer(&self) -> usize {
        (if self.is_back { self.to } else { self.from }) as usize
    }

    pub(super) fn target(&self) -> usize {
        (if self.is_back { self.from } else { self.to }) as usize
    }

    /// The sender, the receiver and the number of bytes.
    pub(super) fn leg(&self) -> (usize, usize, usize) {
        (self.from as usize, self.to as usize, self.bytes)
    }
}

/// A contiguous get of at most this many bytes reads them when it reaches its target; other gets read when they are back.
const SHORT: usize = 16 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) enum FlightKind {
    /// With a signal behind it, or without.
    Put(Option<SignalWord>),
    Get,
    Atomic(Atomic),
    /// A letter for a ring of that many slots.
    Append(usize),
    /// A message between adapters (`soft::cables`): its number there, and true if it needs no answer.
    Wire(u64, bool),
}

impl FlightKind {
    /// Returns true if a flush waits for it.
    pub(super) fn is_put(&self) -> bool {
        matches!(self, FlightKind::Put(_) | FlightKind::Append(_))
    }
}

/// The memory of the rank that issued it.
#[derive(Debug)]
enum Memory {
    /// A copy, made by the call.
    Copied(Box<[u8]>),
    /// Its own, until the operation is done.
    Lent(Local),
    /// A strided block of its own, from the base, until then.
    LentBlock(*mut u8, Box<Loops>),
    /// What is to be added, packed.
    Sum(Box<Sum>),
    /// A packed letter.
    Letter(Box<[u64]>),
    /// It was given up.
    Gone(usize),
}

/// An accumulate of a strided block.
#[derive(Debug)]
struct Sum {
    loops: Loops,
    packed: Box<[u8]>,
    scale: Scale,
    lock: usize,
}

impl Memory {
    fn len(&self) -> usize {
        match self {
            Memory::Copied(bytes) => bytes.len(),
            Memory::Lent(local) => local.len,
            Memory::LentBlock(_, loops) => loops.runs() * loops.run(),
            Memory::Sum(sum) => sum.packed.len(),
            Memory::Letter(packed) => size_of_val(&**packed),
            Memory::Gone(len) => *len,
        }
    }
}

// SAFETY: the issuer promises that the memory of a transfer is valid until that is done or given up, wherever that happens.
unsafe impl Send for Memory {}

impl Flight {
    fn new(kind: FlightKind, from: usize, to: Remote, memory: Memory, token: Token) -> Self {
        // A request is a message without bytes.
        let bytes =
            if matches!(kind, FlightKind::Put(_) | FlightKind::Append(_) | FlightKind::Wire(..)) { memory.len() } else { 0 };
        let message =
            Message { from: from as u32, to: to.rank as u32, bytes, way: Way::default(), answered: Picos::ZERO, is_back: false };
        Flight { message, kind, token, offset: to.offset, memory, hollow: false, value: 0, bytes: None }
    }

    /// A put whose bytes are copied now. Its completion is reported, unless the token is [`Token::NOBODY`].
    ///
    /// # Safety
    /// `local` is readable.
    pub(super) unsafe fn copied(from: usize, to: Remote, local: Local, signal: Option<SignalWord>, token: Token) -> Self {
        let mut bytes = vec![0; local.len].into_boxed_slice();
        if local.len > 0 {
            // SAFETY: the caller's promise; the copy is new.
            unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(local.ptr, local.len) };
        }
        Flight::new(FlightKind::Put(signal), from, to, Memory::Copied(bytes), token)
    }

    /// A put or a get of memory that stays valid until it is done or given up.
    ///
    /// # Safety
    /// As [`Operation`](crate::comm::Operation) says.
    pub(super) unsafe fn lent(kind: FlightKind, from: usize, to: Remote, local: Local, token: Token) -> Self {
        Flight::new(kind, from, to, Memory::Lent(local), token)
    }

    /// A put or a get of a strided block, as [`lent`](Self::lent).
    ///
    /// # Safety
    /// As [`Operation`](crate::comm::Operation) says.
    pub(super) unsafe fn block(
        kind: FlightKind,
        from: usize,
        to: Remote,
        Strided { loops, local }: Strided<'_>,
        token: Token,
    ) -> Self {
        Flight::new(kind, from, to, Memory::LentBlock(local, Box::new(loops.clone())), token)
    }

    /// An accumulate of a strided block, whose terms are copied now.
    ///
    /// # Safety
    /// As [`Operation`](crate::comm::Operation) says.
    pub(super) unsafe fn sum(from: usize, to: Remote, block: Strided<'_>, scale: &Scale, lock: usize, token: Token) -> Self {
        let Strided { loops, local } = block;
        let (run, mut at) = (loops.run(), 0);
        let mut packed = vec![0; block.bytes()].into_boxed_slice();
        loops.for_each_run(|_, own| {
            // SAFETY: the caller's promise; the copy is new, and as long as all runs.
            unsafe { packed[at..at + run].as_mut_ptr().copy_from_nonoverlapping(local.wrapping_offset(own), run) };
            at += run;
        });
        let sum = Sum { loops: loops.clone(), packed, scale: *scale, lock };
        Flight::new(FlightKind::Put(None), from, to, Memory::Sum(Box::new(sum)), token)
    }

    /// An atomic operation.
    ///
    /// # Safety
    /// As [`Operation`](crate::comm::Operation) says.
    pub(super) unsafe fn atomic(from: usize, word: Remote, atomic: Atomic, token: Token) -> Self {
        Flight::new(FlightKind::Atomic(atomic), from, word, Memory::Gone(atomic.width), token)
    }

    /// A letter, which is copied now.
    pub(super) fn letter(from: usize, RingPlace { at, slots }: RingPlace, letter: &Letter<'_>, token: Token) -> Self {
        let mut packed = vec![0; letter.packed() / size_of::<u64>()].into_boxed_slice();
        letter.pack(bytemuck::cast_slice_mut(&mut packed));
        Flight::new(FlightKind::Append(slots), from, at, Memory::Letter(packed), token)
    }

    pub(super) fn wire(from: u32, to: u32, bytes: usize, number: u64, returns: bool) -> Self {
        let to = Remote { rank: to as usize, offset: 0 };
        Flight::new(FlightKind::Wire(number, returns), from as usize, to, Memory::Gone(bytes), Token::NOBODY)
    }

    pub(super) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Takes the letter out.
    pub(super) fn take_letter(&mut self) -> Box<[u64]> {
        match std::mem::replace(&mut self.memory, Memory::Gone(0)) {
            Memory::Letter(packed) => packed,
            _ => Box::default(),
        }
    }

    /// Returns true if it uses memory of its rank.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.memory, Memory::Lent(_) | Memory::LentBlock(..))
    }

    /// What tells it from others.
    pub(super) fn words(&self) -> [u64; 4] {
        let kind = match self.kind {
            FlightKind::Put(None) => 1,
            FlightKind::Put(Some(_)) => 2,
            FlightKind::Get => 3,
            FlightKind::Atomic(_) => 4,
            FlightKind::Append(_) => 5,
            FlightKind::Wire(..) => 6,
        };
        [kind, (self.message.issuer() as u64) << 32 | self.message.target() as u64, self.offset as u64, self.len() as u64]
    }

    /// The first byte of the target's segment that it touches.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// A put reaches its target.
    pub(super) fn write(&self, fabric: &Fabric, signal: Option<SignalWord>) {
        let local = match &self.memory {
            Memory::Sum(_) if self.hollow => return,
            Memory::Sum(sum) => {
                let segment = NodeSegment { base: fabric.segment(self.message.target()), len: fabric.segment_len() };
                let mut at = 0;
                return sum.loops.for_each_run(|remote, _| {
                    let (run, offset) = (sum.loops.run(), self.offset.wrapping_add_signed(remote));
                    let packed = sum.packed[at..at + run].as_ptr();
                    at += run;
                    // SAFETY: the issuer promised the target. After the end of the job no rank asks for the sum.
                    let _ =
                        unsafe { addition::add_block(segment, sum.lock, &sum.scale, offset, &[], run, packed, fabric.over()) };
                });
            }
            Memory::Copied(_) | Memory::Lent(_) if self.hollow => Local { ptr: NonNull::dangling().as_ptr(), len: 0 },
            Memory::Copied(bytes) => Local { ptr: bytes.as_ptr().cast_mut(), len: bytes.len() },
            Memory::Lent(local) => *local,
            Memory::LentBlock(..) if self.hollow => return,
            Memory::LentBlock(local, loops) => {
                // SAFETY: the issuer promised the target; its own memory is readable until it is given up.
                return unsafe { fabric.copy_block(true, self.message.target(), self.offset, Strided { loops, local: *local }) };
            }
            Memory::Letter(_) | Memory::Gone(_) => return,
        };
        // SAFETY: the issuer promised the target; its own memory is readable until it is given up.
        unsafe {
            match signal {
                Some(signal) => fabric.write_signal(self.message.target(), self.offset, local, signal),
                None => fabric.write(self.message.target(), self.offset, local),
            }
        }
    }

    /// An operation that brings something back reaches its target.
    pub(super) fn apply(&mut self, fabric: &Fabric) {
        let Message { from, to, answered, .. } = self.message;
        self.message = Message { from: to, to: from, bytes: self.len(), way: Way::default(), answered, is_back: true };
        match (self.kind, &self.memory) {
            // SAFETY: the issuer promised so.
            (FlightKind::Atomic(atomic), _) => self.value = unsafe { fabric.apply(self.message.target(), self.offset, atomic) },
            (FlightKind::Get, Memory::Lent(local)) if local.len <= SHORT && !self.hollow => {
                let mut bytes = vec![0; local.len].into_boxed_slice();
                let copy = Local { ptr: bytes.as_mut_ptr(), len: bytes.len() };
                // SAFETY: the issuer promised the source; the copy is new.
                unsafe { fabric.read(self.message.target(), self.offset, copy) };
                self.bytes = Some(bytes);
            }
            _ => {}
        }
    }

    /// Completes it. Returns what to report.
    pub(super) fn done(&self, fabric: &Fabric) -> Option<Event> {
        match (&self.memory, self.kind) {
            (_, FlightKind::Atomic(_)) => Some(Event::Value(self.token, self.value)),
            (_, FlightKind::Append(_)) => (self.token != Token::NOBODY).then_some(Event::Value(self.token, 0)),
            (Memory::Lent(local), FlightKind::Get) if !self.hollow => {
                // SAFETY: the issuer promised the source; its own memory is writable until it is given up. The copy is as long.
                unsafe {
                    match &self.bytes {
                        Some(bytes) => local.ptr.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()),
                        None => fabric.read(self.message.target(), self.offset, *local),
                    }
                }
                Some(Event::LocalDone(self.token))
            }
            (Memory::LentBlock(local, loops), FlightKind::Get) if !self.hollow => {
                // SAFETY: the issuer promised the source; its own memory is writable until it is given up.
                unsafe { fabric.copy_block(false, self.message.target(), self.offset, Strided { loops, local: *local }) };
                Some(Event::LocalDone(self.token))
            }
            (Memory::Lent(_) | Memory::LentBlock(..), _) => Some(Event::LocalDone(self.token)),
            (Memory::Copied(_) | Memory::Sum(_), _) if self.token != Token::NOBODY => Some(Event::LocalDone(self.token)),
            _ => None,
        }
    }

    /// Gives up the memory of its rank. Returns its token, if it used such memory.
    pub(super) fn give_up(&mut self) -> Option<Token> {
        if !self.is_lent() {
            return None;
        }
        self.memory = Memory::Gone(self.len());
        Some(self.token)
    }
}
