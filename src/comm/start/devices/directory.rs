//! Where the endpoints of a job are reached.
//!
//! Each endpoint publishes its address once, when its device is open. Forked ranks and threads do so in shared memory. A launcher's
//! ranks publish through the launcher, and ask for a peer's address at the first contact.

use std::{
    fmt, io,
    ptr::NonNull,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use rustc_hash::FxHashMap;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The address of an endpoint, in the words of its network.
pub(in crate::comm) type Words = [u64; 8];

/// The addresses of a job's endpoints.
pub(in crate::comm) enum Directory {
    Shared(Shared),
    Asked { ask: Ask, known: Mutex<FxHashMap<usize, Words>> },
}

/// Asks for the address that an endpoint has published. None if it cannot be had.
type Ask = Box<dyn Fn(usize) -> Option<Words> + Send + Sync>;

impl Directory {
    /// A directory for endpoints of this process, and of those that it will fork.
    ///
    /// # Errors
    /// There is no memory.
    pub(in crate::comm) fn shared(endpoints: usize) -> io::Result<Self> {
        Shared::new(endpoints).map(Directory::Shared)
    }

    /// A directory for endpoints that have published their addresses elsewhere.
    pub(in crate::comm) fn asked(ask: impl Fn(usize) -> Option<Words> + Send + Sync + 'static) -> Self {
        Directory::Asked { ask: Box::new(ask), known: Mutex::default() }
    }

    /// Publishes an address, once: the wire of a rank does when it can be reached. Does nothing where the launcher has published it.
    pub(in crate::comm) fn publish(&self, endpoint: usize, address: Words) {
        if let Directory::Shared(shared) = self {
            shared.publish(endpoint, address);
        }
    }

    /// The address of an endpoint that has published it.
    pub(in crate::comm) fn find(&self, endpoint: usize) -> Option<Words> {
        match self {
            Directory::Shared(shared) => shared.find(endpoint),
            Directory::Asked { ask, known } => {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(address) = known.get(&endpoint) {
                    return Some(*address);
                }
                let address = ask(endpoint)?;
                known.insert(endpoint, address);
                Some(address)
            }
        }
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Directory::Shared(_) => "Directory(shared)",
            Directory::Asked { .. } => "Directory(asked)",
        })
    }
}

/// The address that one endpoint has published.
struct Entry {
    is_there: AtomicU32,
    words: [AtomicU64; size_of::<Words>() / size_of::<u64>()],
}

/// A table in memory that children inherit.
pub(in crate::comm) struct Shared {
    entries: NonNull<Entry>,
    count: usize,
}

// SAFETY: the memory belongs to the value, and its entries are atomics.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(count: usize) -> io::Result<Self> {
        let len = (count * size_of::<Entry>()).max(1);
        // SAFETY: new memory, which the kernel fills with zeros.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) }?;
        let entries = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Shared { entries, count })
    }

    fn entries(&self) -> &[Entry] {
        // SAFETY: `count` entries lie in the mapping; zeros are valid atomics.
        unsafe { std::slice::from_raw_parts(self.entries.as_ptr(), self.count) }
    }

    fn publish(&self, endpoint: usize, words: Words) {
        let entry = &self.entries()[endpoint];
        debug_assert_eq!(entry.is_there.load(Ordering::Relaxed), 0, "endpoint {endpoint} is opened twice");
        entry.words.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        entry.is_there.store(1, Ordering::Release);
    }

    fn find(&self, endpoint: usize) -> Option<Words> {
        let entry = self.entries().get(endpoint)?;
        (entry.is_there.load(Ordering::Acquire) != 0).then(|| std::array::from_fn(|k| entry.words[k].load(Ordering::Relaxed)))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let len = (self.count * size_of::<Entry>()).max(1);
        // SAFETY: mapped with this length, and nobody has a reference any more.
        let _ = unsafe { munmap(self.entries.as_ptr().cast(), len) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    fn address(number: u64) -> Words {
        [number, 2, 3, 4, 5, 6, 7, u64::MAX]
    }

    #[test]
    fn what_is_published_is_found() {
        let directory = Directory::shared(3).unwrap();
        directory.publish(1, address(7));
        assert_eq!([0, 1, 2, 3].map(|endpoint| directory.find(endpoint)), [None, Some(address(7)), None, None]);
    }

    #[test]
    fn an_address_is_asked_for_once() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let directory = Directory::asked(move |endpoint| {
            counted.fetch_add(1, Ordering::Relaxed);
            (endpoint < 5).then(|| address(endpoint as u64))
        });
        assert_eq!([4, 4, 4].map(|endpoint| directory.find(endpoint)), [Some(address(4)); 3]);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        // One that could not be had may be there later.
        assert_eq!([5, 5].map(|endpoint| directory.find(endpoint)), [None; 2]);
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }
}
