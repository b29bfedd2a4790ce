//! What [`run`](crate::run) returns: the value of rank 0's body.
//!
//! Rank 0 writes the value into a file of memory without a name, which the process that calls `run` makes before there are ranks. The
//! caller reads it when all ranks have ended well. Where the ranks themselves call `run`, because a launcher started them, each has such a
//! file, and rank 0 broadcasts. A value without contents takes no file and no message.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    marker::PhantomData,
    process,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::{Job, entry::Extent};
use crate::{
    comm::start::settings::Settings,
    error::{Error, Result},
    memory::{large_pages, limits::check_file},
    portable::Portable,
};

/// Where the value of a job goes that runs a body.
#[derive(Debug)]
pub(super) struct Outcome<R> {
    /// None for a value without contents.
    file: Option<File>,
    /// The process that called `run`, if ranks are processes.
    caller: Option<u32>,
    value: PhantomData<fn() -> R>,
}

impl<R: Portable> Outcome<R> {
    pub(super) fn new(extent: Extent, settings: &Settings) -> Result<Self> {
        let large = || if settings.large_pages { large_pages::file() } else { None };
        let new = || large().map_or_else(|| memfd_create("global-arrays-value", MemfdFlags::CLOEXEC), Ok);
        let file = if R::IS_EMPTY { None } else { Some(File::from(new().map_err(|error| failed(error.into()))?)) };
        let caller = (extent == Extent::Process).then(process::id);
        Ok(Outcome { file, caller, value: PhantomData })
    }

    /// Keeps what the body of a rank returned. The job is over then, but for what a launcher's ranks do here together.
    pub(super) fn keep(&self, job: &Job, value: &R) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if job.rank() == 0 {
            let mut writer = BufWriter::new(Checked { file, written: 0 });
            value.write(&mut writer).and_then(|()| writer.flush()).map_err(failed)?;
        }
        // Otherwise this rank is not the caller.
        if self.caller == Some(process::id()) { self.spread(job, file) } else { Ok(()) }
    }

    /// From rank 0's file to the others'.
    fn spread(&self, job: &Job, file: &File) -> Result<()> {
        const STEP: usize = 1 << 20;
        let mut file = file;
        let is_first = job.rank() == 0;
        let mut len = [if is_first { file.stream_position().map_err(failed)? as usize } else { 0 }];
        job.broadcast(0, &mut len)?;
        file.rewind().map_err(failed)?;
        let mut buffer = vec![0_u8; STEP.min(len[0])];
        for at in (0..len[0]).step_by(STEP) {
            let bytes = &mut buffer[..STEP.min(len[0] - at)];
            if is_first {
                file.read_exact(bytes).map_err(failed)?;
            }
            job.broadcast(0, bytes)?;
            if !is_first {
                Checked { file, written: at }.write_all(bytes).map_err(failed)?;
            }
        }
        job.sync()
    }

    /// The value, once all ranks have ended well.
    pub(super) fn take(self) -> Result<R> {
        let Some(mut file) = self.file else { return R::read(&mut io::empty()).map_err(failed) };
        file.rewind().and_then(|()| R::read(&mut BufReader::new(file))).map_err(failed)
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
