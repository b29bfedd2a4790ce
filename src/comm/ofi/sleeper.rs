//! Sleeps until the completion queue has something.

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::port::QueueWait;
use crate::comm::{
    am::wire::{Sleeper, Wakes},
    kit::mutex::Mutex,
};

/// Waits for the descriptor of a queue.
#[derive(Debug)]
pub(super) struct OfiSleeper {
    /// Its own copy, so that no other file takes its number while a thread sleeps.
    descriptor: OwnedFd,
    /// None once the queue is closed.
    queue: Mutex<Option<QueueWait>>,
    /// The queue was empty when a thread prepared for its sleep.
    is_empty: AtomicBool,
    /// This side has begun transfers since a thread that waits for others wanted to sleep.
    transfers: AtomicBool,
}

impl OfiSleeper {
    pub(super) fn new(descriptor: OwnedFd, queue: QueueWait) -> Self {
        OfiSleeper {
            descriptor,
            queue: Mutex::new(Some(queue)),
            is_empty: AtomicBool::new(false),
            transfers: AtomicBool::new(false),
        }
    }

    /// This side begins transfers, for whose end it looks by itself.
    pub(super) fn transfers(&self) {
        self.transfers.store(true, Ordering::Relaxed);
    }

    /// The queue is closed behind this.
    pub(super) fn forget(&self) {
        *self.queue.lock() = None;
    }
}

impl Sleeper for OfiSleeper {
    /// The descriptor does not tell arrivals from what this side has done: a thread that waits for arrivals only would wake at each transfer
    /// of a thread that looks by itself.
    fn arm(&self, wakes: Wakes) -> bool {
        if self.transfers.swap(false, Ordering::Relaxed) && wakes == Wakes::Arrivals {
            return false;
        }
        let queue = self.queue.lock();
        let Some(queue) = &*queue else { return false };
        self.is_empty.store(queue.may_wait(), Ordering::Relaxed);
        true
    }

    fn sleep(&self, limit: Duration) {
        if self.is_empty.load(Ordering::Relaxed) {
            let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
            // A signal ends it early.
            let _ = poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], Some(&limit));
        }
    }

    fn pass(&self) -> bool {
        std::thread::yield_now();
        true
    }
}
