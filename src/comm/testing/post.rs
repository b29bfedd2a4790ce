//! A post between the ranks of a network for tests: strided blocks, and accumulates that their owners do.
//!
//! Nothing happens before a rank polls, and then in a scrambled order. The sender's poll moves blocks and posts what is to be added;
//! its memory is free at once. The owner's poll adds, and a flush waits for that.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    comm::{
        Event, Events, Remote, Scale, Token, Topology,
        engine::addition::{NodeSegment, add},
        node::Fabric,
    },
    index::Loops,
};

/// What all ranks of a job share.
#[derive(Debug)]
pub(crate) struct Post {
    boxes: Vec<Mutex<Vec<Parcel>>>,
    /// Accumulates that their owners have not done, by sender and owner.
    under_way: Vec<AtomicUsize>,
    /// Blocks moved and accumulates done.
    pub(crate) moved: AtomicUsize,
    pub(crate) added: AtomicUsize,
}

impl Post {
    pub(crate) fn new(ranks: usize) -> Arc<Self> {
        Arc::new(Post {
            boxes: (0..ranks).map(|_| Mutex::default()).collect(),
            under_way: (0..ranks * ranks).map(|_| AtomicUsize::new(0)).collect(),
            moved: AtomicUsize::new(0),
            added: AtomicUsize::new(0),
        })
    }

    fn between(&self, sender: usize, owner: usize) -> &AtomicUsize {
        &self.under_way[sender * self.boxes.len() + owner]
    }
}

/// An accumulate on its way.
#[derive(Debug)]
struct Parcel {
    sender: usize,
    scale: Scale,
    lock: usize,
    offsets: Vec<usize>,
    run: usize,
    packed: Vec<u8>,
}

/// A block that was asked for.
#[derive(Debug)]
pub(in crate::comm) struct Block {
    pub(super) act: Act,
    pub(super) place: Remote,
    pub(super) loops: Loops,
    pub(super) local: *mut u8,
    pub(super) token: Token,
}

// SAFETY: the caller of the block promises that its memory may be used until completion, by any thread that polls.
unsafe impl Send for Block {}

#[derive(Clone, Copy, Debug)]
pub(in crate::comm) enum Act {
    Put,
    Get,
    Add { scale: Scale, lock: usize },
}

/// One rank's side of the post.
#[derive(Debug)]
pub(in crate::comm) struct Desk {
    post: Arc<Post>,
    fabric: Arc<Fabric>,
    topology: Topology,
    waiting: Mutex<Vec<Block>>,
    flushes: Mutex<Vec<(usize, Token)>>,
    scramble: AtomicUsize,
}

impl Desk {
    pub(in crate::comm) fn new(post: Arc<Post>, fabric: Arc<Fabric>, topology: Topology) -> Self {
        Desk { post, fabric, topology, waiting: Mutex::default(), flushes: Mutex::default(), scramble: AtomicUsize::new(0) }
    }

    pub(in crate::comm) fn take(&self, block: Block) {
        self.waiting.lock().unwrap().push(block);
    }

    pub(in crate::comm) fn flush(&self, rank: usize, token: Token) {
        self.flushes.lock().unwrap().push((rank, token));
    }

    pub(in crate::comm) fn is_idle(&self) -> bool {
        self.waiting.lock().unwrap().is_empty()
    }

    /// Moves and posts what was asked for and adds what came; returns the flushes that are done but for the puts.
    pub(in crate::comm) fn poll(&self, events: &mut Events) -> Vec<(usize, Token)> {
        let me = self.topology.rank();
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        self.scrambled(waiting, |block| {
            self.move_block(&block);
            events.push(Event::LocalDone(block.token));
        });
        let parcels = std::mem::take(&mut *self.post.boxes[me].lock().unwrap());
        self.scrambled(parcels, |Parcel { sender, scale, lock, offsets, run, packed }| {
            let segment = NodeSegment { base: self.fabric.segment(me), len: self.fabric.segment_len() };
            // SAFETY: our own segment; the sender's array is committed there, and `lock` is the accumulate lock.
            let added = unsafe { add(segment, lock, &scale, offsets.into_iter(), run, packed.as_ptr(), self.fabric.over()) };
            if added.is_ok() {
                self.post.added.fetch_add(1, Ordering::Relaxed);
                self.post.between(sender, me).fetch_sub(1, Ordering::Release);
            }
        });
        let done = |&mut (rank, _): &mut (usize, Token)| self.post.between(me, rank).load(Ordering::Acquire) == 0;
        self.flushes.lock().unwrap().extract_if(.., done).collect()
    }

    fn scrambled<W>(&self, mut work: Vec<W>, mut act: impl FnMut(W)) {
        while !work.is_empty() {
            let at = self.scramble.fetch_add(0x9e37_79b9, Ordering::Relaxed) >> 7;
            act(work.swap_remove(at % work.len()));
        }
    }

    fn move_block(&self, block: &Block) {
        let &Block { act, place: Remote { rank, offset }, ref loops, local, .. } = block;
        let (base, run) = (self.fabric.segment(rank).as_ptr(), loops.run());
        let (mut offsets, mut packed) = (Vec::new(), Vec::new());
        loops.for_each_run(|there, here| {
            let (at, here) = (offset.wrapping_add_signed(there), local.wrapping_offset(here));
            let there = base.wrapping_add(at);
            match act {
                // SAFETY: the caller vouches for both runs, and other ranks touch them by the kernels and atomics only.
                Act::Put => unsafe { crate::memory::kernels::copy(there, here, run) },
                // SAFETY: as above.
                Act::Get => unsafe { crate::memory::kernels::copy(here, there, run) },
                Act::Add { .. } => {
                    offsets.push(at);
                    // SAFETY: the caller vouches for the local run, which nobody writes meanwhile.
                    packed.extend_from_slice(unsafe { std::slice::from_raw_parts(here, run) });
                }
            }
        });
        if let Act::Add { scale, lock } = act {
            let sender = self.topology.rank();
            self.post.between(sender, rank).fetch_add(1, Ordering::Relaxed);
            self.post.boxes[rank].lock().unwrap().push(Parcel { sender, scale, lock, offsets, run, packed });
        } else {
            self.post.moved.fetch_add(1, Ordering::Relaxed);
        }
    }
}
