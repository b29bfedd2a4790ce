//! What [`run`](crate::run) returns: the value of rank 0's body.
//!
//! Forked ranks are other processes than the one that calls `run`. There rank 0 writes the value into a file of memory without a name,
//! which the caller makes before there are ranks, and reads when all have ended well. Elsewhere ranks run in a process that called `run`:
//! rank 0 keeps the bytes of the value, and where a launcher started the ranks, broadcasts them, because each is a caller.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Seek, Write},
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::Job;
use crate::{
    comm::start::{Variant, settings::Settings},
    error::{Error, Result},
    memory::{large_pages, limits::check_file},
    portable::{Portable, read_whole},
};

/// Where the value of a job goes that runs a body.
#[derive(Debug)]
pub(super) struct Outcome<R> {
    way: Way,
    value: PhantomData<fn() -> R>,
}

#[derive(Debug)]
enum Way {
    /// The value has no contents.
    None,
    /// From a forked rank to the process that forked it.
    File(File),
    /// In the memory of the process; each rank's if all are callers.
    Memory { bytes: Mutex<Vec<u8>>, all_call: bool },
}

impl<R: Portable> Outcome<R> {
    pub(super) fn new(variant: &Variant, settings: &Settings) -> Result<Self> {
        let large = || if settings.large_pages { large_pages::file() } else { None };
        let file = || large().map_or_else(|| memfd_create("global-arrays-value", MemfdFlags::CLOEXEC), Ok);
        let all_call = variant.is_launched(settings);
        let forked = !all_call && variant.meets_by_launcher();
        let way = if R::IS_EMPTY {
            Way::None
        } else if forked {
            Way::File(file().map_err(|error| failed(error.into()))?.into())
        } else {
            Way::Memory { bytes: Mutex::default(), all_call }
        };
        Ok(Outcome { way, value: PhantomData })
    }

    /// Keeps what the body of a rank returned. The job is over then, but for what a launcher's ranks do here together.
    pub(super) fn keep(&self, job: &Job, value: &R) -> Result<()> {
        let is_first = job.rank() == 0;
        match &self.way {
            Way::File(file) if is_first => {
                let mut writer = BufWriter::new(Checked { file, written: 0 });
                value.write(&mut writer).and_then(|()| writer.flush()).map_err(failed)
            }
            Way::Memory { bytes, all_call } if is_first || *all_call => {
                let mut kept = Vec::new();
                if is_first {
                    value.write(&mut kept).map_err(failed)?;
                }
                if *all_call {
                    job.broadcast_bytes(0, &mut kept)?;
                    job.sync()?;
                }
                *bytes.lock().unwrap_or_else(PoisonError::into_inner) = kept;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The value, once all ranks have ended well.
    pub(super) fn take(self) -> Result<R> {
        let value = match self.way {
            Way::None => read_whole(io::empty()),
            Way::File(mut file) => file.rewind().and_then(|()| read_whole(BufReader::new(file))),
            Way::Memory { bytes, .. } => read_whole(&bytes.into_inner().unwrap_or_else(PoisonError::into_inner)[..]),
        };
        value.map_err(failed)
    }
}

/// A file that tells of a limit of its length before the kernel ends the process for it.
struct Checked<'f> {
    file: &'f File,
    written: usize,
}

impl Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_file((self.written + bytes.len()) as u64)?;
        let written = self.file.write(bytes)?;
        self.written += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cold]
fn failed(error: io::Error) -> Error {
    Error::system("handing over what the body of rank 0 returned", error)
}
