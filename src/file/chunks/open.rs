//! Chunks in files of their own.
//!
//! Chunks without compression are read and written where their elements lie, by any number of members at once. A compressed chunk is decoded as a
//! whole, and replaced as a whole when it is written: one member at a time may write it. Chunks of a shard share a file, and can only be read.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, ErrorKind, Write},
    num::NonZeroU64,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{Advice, fadvise},
    rand::{GetRandomFlags, getrandom},
};

use super::{
    codecs,
    grid::{Grid, Shard},
    recent::{Decoded, Recent},
};
use crate::{
    file::{
        runs::{for_each_chunk, for_each_run},
        visit::Failure,
        whole::sync_folder,
    },
    memory::limits,
};

/// A compressed chunk is decoded in memory: none may be larger.
pub(in crate::file) const LARGEST_DECODED: usize = 2 << 30;
/// Bytes of a run after which the kernel begins to write it to the disk.
const LONG_RUN: usize = 256 << 10;

impl Grid {
    /// Opens the chunks of an array of this shape.
    pub(in crate::file) fn open(&self, shape: &[usize], writes: bool) -> Result<OpenGrid, Failure> {
        let refusal = self
            .refusal
            .clone()
            .or_else(|| (writes && self.shard.is_some()).then(|| "holds shards, which can be read but not written".to_owned()));
        match refusal {
            Some(refusal) => Err(Failure::Format(format!("{refusal}: {}", self.folder.display()))),
            None => Ok(OpenGrid { grid: self.clone(), shape: shape.to_vec(), writes, recent: Mutex::default() }),
        }
    }

    /// Bytes of a decoded chunk.
    fn bytes(&self) -> usize {
        self.chunk.iter().product::<usize>() * self.fill.len()
    }
}

/// The chunks of an array, with those files open that were used last.
#[derive(Debug)]
pub(in crate::file) struct OpenGrid {
    grid: Grid,
    shape: Vec<usize>,
    writes: bool,
    recent: Mutex<Recent>,
}

/// The elements of a chunk.
enum Source {
    /// In no file.
    Absent,
    /// From this byte of a file on.
    File(Arc<File>, u64),
    Memory(Arc<Vec<u8>>),
}

impl OpenGrid {
    /// Reads a patch, with the bytes of numbers in the order of the file.
    pub(in crate::file) fn read(&self, start: &[usize], count: &[usize], bytes: &mut [u8]) -> Result<(), Failure> {
        let Grid { chunk, fill, .. } = &self.grid;
        let size = fill.len();
        for_each_chunk(&self.shape, chunk, start, count, |number, within, at, part| {
            let source = self.source(number)?;
            for_each_run([chunk, within], [count, at], part, |there, here, len| {
                let to = &mut bytes[here * size..(here + len) * size];
                match &source {
                    Source::Absent => to.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(fill)),
                    Source::Memory(from) => to.copy_from_slice(&from[there * size..(there + len) * size]),
                    Source::File(file, begin) => match file.read_exact_at(to, begin + (there * size) as u64) {
                        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                            return Err(self.damaged(number, "ends too early"));
                        }
                        read => read?,
                    },
                }
                Ok(())
            })
        })
    }

    /// Writes a patch.
    pub(in crate::file) fn write(&self, start: &[usize], count: &[usize], bytes: &[u8]) -> Result<(), Failure> {
        let Grid { chunk, fill, codecs, .. } = &self.grid;
        let size = fill.len();
        for_each_chunk(&self.shape, chunk, start, count, |number, within, at, part| {
            self.recent().written.insert(number);
            if codecs.is_empty() {
                let file = self.file_to_write(number)?;
                return for_each_run([chunk, within], [count, at], part, |there, here, len| {
                    let (at, run) = ((there * size) as u64, &bytes[here * size..(here + len) * size]);
                    file.write_all_at(run, at)?;
                    if run.len() >= LONG_RUN {
                        // The kernel begins to write, while this member goes on. A hint: what fails is as if nothing was told.
                        let _ = fadvise(&*file, at, NonZeroU64::new(run.len() as u64), Advice::DontNeed);
                    }
                    Ok(())
                });
            }
            if part == chunk && count == chunk {
                return self.replace(number, &codecs::encode(codecs, bytes)?);
            }
            let index = self.index(number);
            let is_whole = (0..part.len()).all(|k| part[k] == chunk[k].min(self.shape[k] - index[k] * chunk[k]));
            let mut whole = match if is_whole { Source::Absent } else { self.source(number)? } {
                Source::Memory(decoded) => Arc::unwrap_or_clone(decoded),
                _ => fill.repeat(self.grid.bytes() / size),
            };
            for_each_run([chunk, within], [count, at], part, |there, here, len| {
                whole[there * size..(there + len) * size].copy_from_slice(&bytes[here * size..(here + len) * size]);
                Ok::<(), Failure>(())
            })?;
            self.replace(number, &codecs::encode(codecs, &whole)?)
        })
    }

    /// Waits until what was written is on the disk.
    pub(in crate::file) fn sync(&self) -> Result<(), Failure> {
        let written = std::mem::take(&mut self.recent().written);
        let synced = self.sync_chunks(&written);
        if synced.is_err() {
            // None is forgotten.
            self.recent().written.extend(written);
        }
        synced
    }

    fn sync_chunks(&self, written: &BTreeSet<usize>) -> Result<(), Failure> {
        let mut folders = BTreeSet::new();
        for &number in written {
            let path = self.path(&self.index(number));
            File::open(&path)?.sync_data()?;
            folders
                .extend(path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.grid.folder)).map(Path::to_owned));
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    /// The elements of a chunk.
    fn source(&self, number: usize) -> Result<Source, Failure> {
        if let Some(decoded) = self.recent().decoded(Decoded::Chunk(number)) {
            return Ok(Source::Memory(decoded));
        }
        let Some((file, begin, len)) = self.encoded(number)? else { return Ok(Source::Absent) };
        let Grid { codecs, .. } = &self.grid;
        if codecs.is_empty() {
            return Ok(Source::File(file, begin));
        }
        let expected = self.grid.bytes();
        if len > codecs::longest_encoded(expected) as u64 {
            return Err(self.damaged(number, &format!("has {len} bytes for {expected} decoded ones")));
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, begin)?;
        let decoded = codecs::decode(codecs, bytes, expected).map_err(|what| self.damaged(number, &what))?;
        Ok(Source::Memory(self.keep(Decoded::Chunk(number), decoded)))
    }

    /// The file, the first byte and the length of a chunk; none if it is in no file.
    fn encoded(&self, number: usize) -> Result<Option<(Arc<File>, u64, u64)>, Failure> {
        let Some(shard) = &self.grid.shard else {
            let Some(file) = self.file(number, || self.path(&self.index(number)))? else { return Ok(None) };
            // The length matters only of what is read as a whole.
            let len = if self.grid.codecs.is_empty() { 0 } else { file.metadata()?.len() };
            return Ok(Some((file, 0, len)));
        };
        let (mut outer, mut inner, mut shard_index) = (0, 0, self.index(number));
        for (k, at) in shard_index.iter_mut().enumerate() {
            let chunks = shard.chunks[k];
            outer = outer * self.shape[k].div_ceil(self.grid.chunk[k]).div_ceil(chunks) + *at / chunks;
            inner = inner * chunks + *at % chunks;
            *at /= chunks;
        }
        let Some(file) = self.file(outer, || self.path(&shard_index))? else { return Ok(None) };
        let kept = self.recent().decoded(Decoded::Index(outer));
        let table = match kept {
            Some(table) => table,
            None => {
                let table = self.table(&file, shard).map_err(|failure| match failure {
                    Failure::Format(what) => self.damaged(number, &what),
                    system => system,
                })?;
                self.keep(Decoded::Index(outer), table)
            }
        };
        let entry = |k: usize| table[k * 8..k * 8 + 8].iter().rev().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
        let (begin, len) = (entry(2 * inner), entry(2 * inner + 1));
        if (begin, len) == (u64::MAX, u64::MAX) {
            return Ok(None);
        }
        let fits = begin.checked_add(len).is_some_and(|end| file.metadata().is_ok_and(|file| end <= file.len()));
        if !fits || self.grid.codecs.is_empty() && len != self.grid.bytes() as u64 {
            return Err(self.damaged(number, &format!("has {len} bytes from byte {begin} of its shard on")));
        }
        Ok(Some((file, begin, len)))
    }

    /// The table of a shard: first byte and length of each chunk.
    fn table(&self, file: &File, shard: &Shard) -> Result<Vec<u8>, Failure> {
        let all = file.metadata()?.len();
        let len = 16 * shard.chunks.iter().product::<usize>();
        let encoded = len + codecs::added(&shard.index_codecs).unwrap_or(0);
        if all < encoded as u64 {
            return Err(Failure::Format(format!("is in a shard of {all} bytes; its table alone has {encoded}")));
        }
        let mut bytes = vec![0; encoded];
        file.read_exact_at(&mut bytes, if shard.index_is_first { 0 } else { all - encoded as u64 })?;
        let decoded = codecs::decode(&shard.index_codecs, bytes, len);
        decoded.map_err(|what| Failure::Format(format!("is in a shard whose table {what}")))
    }

    /// An open file; none if it is not there.
    fn file(&self, number: usize, path: impl FnOnce() -> PathBuf) -> Result<Option<Arc<File>>, Failure> {
        if let Some(file) = self.recent().file(number) {
            return Ok(Some(file));
        }
        match File::options().read(true).write(self.writes).open(path()) {
            Ok(file) => Ok(Some(self.keep_file(number, file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The file of a chunk without compression, of its full length. Several members may be here at once.
    fn file_to_write(&self, number: usize) -> Result<Arc<File>, Failure> {
        if let Some(file) = self.recent().file(number) {
            return Ok(file);
        }
        let path = self.path(&self.index(number));
        let len = self.grid.bytes() as u64;
        limits::check_file(len)?;
        let is_zero = self.grid.fill.iter().all(|&byte| byte == 0);
        if !is_zero && !path.try_exists()? {
            self.make_filled(&path)?;
        }
        let file =
            self.in_folder(&path, || File::options().read(true).write(true).create(is_zero).truncate(false).open(&path))?;
        if file.metadata()?.len() != len {
            file.set_len(len)?;
        }
        Ok(self.keep_file(number, file))
    }

    /// Makes the file of a chunk without compression, full of what an absent chunk holds, unless another member was faster.
    fn make_filled(&self, path: &Path) -> Result<(), Failure> {
        const PIECE: usize = 1 << 20;
        let mut number = [0];
        getrandom(bytemuck::cast_slice_mut::<u64, u8>(&mut number), GetRandomFlags::empty()).map_err(io::Error::from)?;
        let temporary = path.with_extension(format!("{:x}.part", number[0]));
        let mut file = self.in_folder(&temporary, || File::create_new(&temporary))?;
        let piece = self.grid.fill.repeat((PIECE / self.grid.fill.len()).max(1));
        let mut write = || {
            let mut rest = self.grid.bytes();
            while rest > 0 {
                let len = rest.min(piece.len());
                file.write_all(&piece[..len])?;
                rest -= len;
            }
            match fs::hard_link(&temporary, path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        };
        let made = write();
        let _ = fs::remove_file(&temporary);
        Ok(made?)
    }

    /// Another file takes the place of a compressed chunk's.
    fn replace(&self, number: usize, encoded: &[u8]) -> Result<(), Failure> {
        limits::check_file(encoded.len() as u64)?;
        let path = self.path(&self.index(number));
        let temporary = self.grid.folder.join(self.grid.keys.key(&self.index(number)) + ".part");
        self.in_folder(&temporary, || fs::write(&temporary, encoded))?;
        Ok(fs::rename(&temporary, &path)?)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is kept that may be replaced, here or by others.
    fn keep(&self, what: Decoded, bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let bytes = Arc::new(bytes);
        if !self.writes {
            self.recent().keep_decoded(what, bytes.clone());
        }
        bytes
    }

    fn keep_file(&self, number: usize, file: File) -> Arc<File> {
        let file = Arc::new(file);
        if !self.writes || self.grid.codecs.is_empty() {
            self.recent().keep_file(number, file.clone());
        }
        file
    }

    /// The place of a chunk along each axis.
    fn index(&self, mut number: usize) -> Vec<usize> {
        let mut index = vec![0; self.shape.len()];
        for k in (0..index.len()).rev() {
            let chunks = self.shape[k].div_ceil(self.grid.chunk[k]);
            (index[k], number) = (number % chunks, number / chunks);
        }
        index
    }

    fn path(&self, index: &[usize]) -> PathBuf {
        self.grid.folder.join(self.grid.keys.key(index))
    }

    fn damaged(&self, number: usize, what: &str) -> Failure {
        let chunk = self.index(number);
        Failure::Format(format!("has a chunk {chunk:?} that {what}, in {}", self.grid.folder.display()))
    }

    /// Makes a file, and before it the folders between an array's folder and the file. The array's own is not made anew if it is gone.
    fn in_folder<R>(&self, path: &Path, make: impl Fn() -> io::Result<R>) -> io::Result<R> {
        match make() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let between: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| *folder != self.grid.folder).collect();
                let make_folder =
                    |folder: &&Path| fs::create_dir(folder).or_else(|error| if folder.is_dir() { Ok(()) } else { Err(error) });
                between.iter().rev().try_for_each(make_folder)?;
                make()
            }
            made => made,
        }
    }
}
