//! Threads of a process that are ranks and meet by themselves.

use std::sync::{Arc, Barrier, Mutex};

use global_arrays::{Error, Meeting};

/// One of the threads of a process that meet.
pub(crate) struct MeetingThread {
    rank: usize,
    barrier: Arc<Barrier>,
    bytes: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl MeetingThread {
    /// Of each rank.
    pub(crate) fn all(ranks: usize) -> Vec<Self> {
        let (barrier, bytes) = (Arc::new(Barrier::new(ranks)), Arc::new(Mutex::new(vec![Vec::new(); ranks])));
        (0..ranks).map(|rank| MeetingThread { rank, barrier: barrier.clone(), bytes: bytes.clone() }).collect()
    }
}

impl Meeting for MeetingThread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.bytes.lock().expect("the bytes").len()
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.bytes.lock().expect("the bytes")[self.rank] = bytes.to_vec();
        self.barrier.wait();
        let all = self.bytes.lock().expect("the bytes").clone();
        self.barrier.wait();
        Ok(all)
    }
}
