//! What one array keeps of its chunks: those that were used last.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::File,
    sync::Arc,
};

/// Files that one array keeps open.
const OPEN_FILES: usize = 64;
/// Bytes of decoded chunks that one array keeps.
const KEPT: usize = 64 << 20;
/// A kept chunk counts as this many bytes at least, so that few are kept.
const LEAST_KEPT: usize = 1 << 20;

#[derive(Debug, Default)]
pub(in crate::file) struct Recent {
    /// By their numbers.
    files: VecDeque<(usize, Arc<File>)>,
    /// Chunks by their numbers, and tables of shards.
    decoded: VecDeque<(Decoded, Arc<Vec<u8>>)>,
    /// Numbers of the chunks that are to be synced.
    pub(in crate::file) written: BTreeSet<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::file) enum Decoded {
    Chunk(usize),
    Index(usize),
}

impl Recent {
    pub(in crate::file) fn file(&mut self, number: usize) -> Option<Arc<File>> {
        recent(&mut self.files, &number)
    }

    pub(in crate::file) fn keep_file(&mut self, number: usize, file: Arc<File>) {
        self.files.push_front((number, file));
        self.files.truncate(OPEN_FILES);
    }

    pub(in crate::file) fn decoded(&mut self, what: Decoded) -> Option<Arc<Vec<u8>>> {
        recent(&mut self.decoded, &what)
    }

    /// The last one is kept whatever its length is.
    pub(in crate::file) fn keep_decoded(&mut self, what: Decoded, bytes: Arc<Vec<u8>>) {
        self.decoded.push_front((what, bytes));
        let mut sum = 0;
        let fit = self.decoded.iter().take_while(|(_, kept)| {
            sum += kept.len().max(LEAST_KEPT);
            sum <= KEPT
        });
        let fit = fit.count();
        self.decoded.truncate(fit.max(1));
    }
}

/// The value of a key, which becomes the first.
fn recent<K: PartialEq, V: Clone>(kept: &mut VecDeque<(K, V)>, key: &K) -> Option<V> {
    let at = kept.iter().position(|(there, _)| there == key)?;
    let found = kept.remove(at)?;
    let value = found.1.clone();
    kept.push_front(found);
    Some(value)
}
