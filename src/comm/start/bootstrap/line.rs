//! The descriptor by which a process talks to its launcher: questions and answers. A launcher or another rank that does not come cannot
//! hold up a caller forever.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    mem::ManuallyDrop,
    os::fd::{FromRawFd, RawFd},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{FdFlags, fcntl_setfd},
};

use crate::comm::kit::mutex::Mutex;

/// The time between two looks at whatever else the caller waits for.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Longest line that is believed. Those of the protocol are shorter, whatever the launcher: values have at most 512 bytes.
const LONGEST_LINE: usize = 4096;

/// A descriptor of the launcher's, which lasts as long as this process: nothing here closes it.
#[derive(Debug)]
pub(crate) struct Line {
    file: ManuallyDrop<File>,
    /// A farewell that a question has read in place of its answer. `last_words` takes it.
    farewell: Mutex<Option<(usize, String)>>,
}

impl Line {
    /// # Safety
    /// The descriptor is open for the life of the process, and nobody else reads or writes it during the calls made here.
    pub(crate) unsafe fn new(descriptor: RawFd) -> Self {
        // SAFETY: the caller's promise.
        Line { file: ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }), farewell: Mutex::default() }
    }

    /// Keeps the descriptor from programs that this process starts.
    pub(super) fn keep(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&*self.file, FdFlags::CLOEXEC)?)
    }

    /// Returns true if the other side is gone, or will send nothing more.
    pub(super) fn is_gone(&self) -> bool {
        let mut looked = [PollFd::new(&*self.file, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut looked, Some(&now)).is_ok_and(|found| found > 0)
    }

    /// The farewell of the other side, which is gone, if it has sent one. Returns it once.
    pub(super) fn last_words(&self) -> Option<(usize, String)> {
        let gone = || Err(ErrorKind::UnexpectedEof.into());
        let lines = std::iter::from_fn(|| self.read_line(gone).ok());
        let last = lines.last().and_then(|line| of_farewell(&line));
        self.farewell.lock().take().or(last)
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        (&*self.file).write_all(bytes)
    }

    /// Fills a buffer. While nothing comes it calls `idle`, which may end the wait by an error.
    pub(super) fn read(&self, buffer: &mut [u8], mut idle: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match poll(&mut [PollFd::new(&*self.file, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => idle()?,
                Ok(_) => match (&*self.file).read(&mut buffer[filled..]) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(more) => filled += more,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A line without its end. Byte by byte: what comes behind it is not for this caller.
    pub(super) fn read_line(&self, mut idle: impl FnMut() -> io::Result<()>) -> io::Result<String> {
        let mut line = String::new();
        while line.len() < LONGEST_LINE {
            let mut byte = [0];
            self.read(&mut byte, &mut idle)?;
            match byte {
                [b'\n'] => return Ok(line),
                [byte] => line.push(byte.into()),
            }
        }
        Err(io::Error::new(ErrorKind::InvalidData, "a line that does not end"))
    }

    /// Sends a line and waits for the answer, which must begin with the expected word.
    pub(crate) fn ask(&self, line: &str, expected: &str, idle: impl FnMut() -> io::Result<()>) -> io::Result<String> {
        self.write(line.as_bytes())?;
        let answer = self.read_line(idle)?;
        if answer.split_whitespace().next() == Some(expected) {
            return Ok(answer);
        }
        if let Some((rank, why)) = of_farewell(&answer) {
            let error = io::Error::other(format!("rank {rank} {why}"));
            *self.farewell.lock() = Some((rank, why));
            return Err(error);
        }
        Err(io::Error::new(ErrorKind::InvalidData, format!("{answer:?} instead of {expected}")))
    }
}

/// The line that our own launcher sends when a rank's end ends the job. Other launchers send nothing like it.
pub(super) fn farewell(rank: usize, why: &str) -> String {
    format!("{FAREWELL}{rank} {why}")
}

const FAREWELL: &str = "cmd=abort rank=";

fn of_farewell(line: &str) -> Option<(usize, String)> {
    let (rank, why) = line.strip_prefix(FAREWELL)?.split_once(' ')?;
    Some((rank.parse().ok()?, why.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsRawFd, unix::net::UnixStream};

    use super::*;

    #[test]
    fn a_line_ends_where_it_ends() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // SAFETY: this test's own, open until its end.
        let line = unsafe { Line::new(ours.as_raw_fd()) };
        theirs.write_all(b"cmd=barrier_out\ncmd=next").unwrap();
        assert_eq!(line.read_line(|| Ok(())).unwrap(), "cmd=barrier_out");
        let mut rest = [0; 8];
        line.read(&mut rest, || Ok(())).unwrap();
        assert_eq!(&rest, b"cmd=next");
        theirs.write_all(&[b'x'; 5000]).unwrap();
        assert_eq!(line.read_line(|| Ok(())).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_launcher_that_is_gone_is_seen_and_one_that_is_silent_is_not() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        // SAFETY: this test's own, open until its end.
        let line = unsafe { Line::new(ours.as_raw_fd()) };
        assert!(!line.is_gone());
        let impatient = || Err(ErrorKind::TimedOut.into());
        assert_eq!(line.read(&mut [0], impatient).unwrap_err().kind(), ErrorKind::TimedOut);
        drop(theirs);
        assert!(line.is_gone());
        assert_eq!(line.read(&mut [0], || Ok(())).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(line.last_words(), None);
    }

    #[test]
    fn the_last_words_of_a_launcher_are_a_rank_and_its_end() {
        let words = Some((7, "has gone".to_owned()));
        for (said, expected) in [
            (farewell(7, "has gone") + "\n", words.clone()),
            (format!("cmd=barrier_out\n{}\n", farewell(7, "has gone")), words),
            (farewell(7, "cut off"), None),
            ("cmd=abort rank=x has gone\ncmd=abort\n".into(), None),
            (String::new(), None),
        ] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            // SAFETY: this test's own, open until its end.
            let line = unsafe { Line::new(ours.as_raw_fd()) };
            theirs.write_all(said.as_bytes()).unwrap();
            drop(theirs);
            assert_eq!(line.last_words(), expected, "{said:?}");
        }
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // SAFETY: this test's own, open until its end.
        let line = unsafe { Line::new(ours.as_raw_fd()) };
        theirs.write_all((farewell(7, "has gone") + "\n").as_bytes()).unwrap();
        let asked = line.ask("cmd=barrier_in\n", "cmd=barrier_out", || Ok(())).unwrap_err();
        assert_eq!(asked.to_string(), "rank 7 has gone");
        // The question has read it, and it is still told, once.
        drop(theirs);
        let words = || line.last_words().map(|(rank, _)| rank);
        assert_eq!([words(), words()], [Some(7), None]);
    }
}
