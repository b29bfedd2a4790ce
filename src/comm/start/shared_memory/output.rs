//! What ranks print, forwarded by the parent in whole lines.
//!
//! Rank 0 keeps standard error if that is a terminal: progress bars are drawn there.

use std::io::{self, IsTerminal};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{OFlags, fcntl_setfl},
    io::read,
    pipe::{PipeFlags, pipe_with},
    stdio::{dup2_stderr, dup2_stdout},
};

use crate::comm::kit::say::write_all;

/// A line longer than this is passed on in pieces.
const LONGEST_LINE: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
enum Stream {
    Output,
    Error,
}

/// The child's ends.
#[derive(Debug)]
pub(super) struct Pipes(Vec<(Stream, OwnedFd)>);

impl Pipes {
    /// In the child: print into the pipes from now on.
    pub(super) fn take_over(&self) {
        for (stream, end) in &self.0 {
            // Failing that, the rank prints to where the parent does; nothing is lost but the order.
            let _ = match stream {
                Stream::Output => dup2_stdout(end),
                Stream::Error => dup2_stderr(end),
            };
        }
    }
}

/// The parent's end of one pipe.
#[derive(Debug)]
pub(super) struct Forwarder {
    stream: Stream,
    end: Option<OwnedFd>,
    line: Vec<u8>,
    /// Why some of it could not be written.
    lost: Option<io::Error>,
}

/// Makes the pipes of a rank.
pub(super) fn pipes(rank: usize) -> io::Result<(Pipes, Vec<Forwarder>)> {
    let mut ends = Vec::new();
    let mut forwarders = Vec::new();
    for stream in [Stream::Output, Stream::Error] {
        if matches!(stream, Stream::Error) && rank == 0 && io::stderr().is_terminal() {
            continue;
        }
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        ends.push((stream, write_end));
        forwarders.push(Forwarder { stream, end: Some(read_end), line: Vec::new(), lost: None });
    }
    Ok((Pipes(ends), forwarders))
}

impl Forwarder {
    pub(super) fn set_nonblocking(&mut self) {
        if let Some(end) = &self.end {
            // On failure `forward` would block on an idle rank: rather lose its words than the supervision.
            if fcntl_setfl(end, OFlags::NONBLOCK).is_err() {
                self.end = None;
            }
        }
    }

    /// The pipe to watch, while something may come.
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.end.as_ref().map(AsFd::as_fd)
    }

    /// Passes on the complete lines that are there.
    pub(super) fn forward(&mut self) {
        let mut buffer = [0_u8; 1 << 14];
        while let Some(end) = &self.end {
            match read(end, &mut buffer) {
                Ok(0) => self.end = None,
                Ok(count) => {
                    self.line.extend_from_slice(&buffer[..count]);
                    let whole = self.line.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
                    let whole = if whole == 0 && self.line.len() > LONGEST_LINE { self.line.len() } else { whole };
                    self.write(whole);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => self.end = None,
            }
        }
    }

    /// After the rank's end: the rest, and no more, even if a grandchild holds the pipe open.
    pub(super) fn finish(&mut self) {
        self.forward();
        let rest = self.line.len();
        self.write(rest);
        self.end = None;
    }

    fn write(&mut self, count: usize) {
        let text: Vec<u8> = self.line.drain(..count).collect();
        let written = match self.stream {
            Stream::Output => write_all(io::stdout().lock(), &text),
            Stream::Error => write_all(io::stderr().lock(), &text),
        };
        // The job goes on. A reader that is gone, as `head` is, wants no more of it; anything else is a loss.
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.get_or_insert(error);
        }
    }

    /// The error by which some of the rank's output was lost.
    pub(super) fn lost(&mut self) -> Option<io::Error> {
        self.lost.take()
    }
}
