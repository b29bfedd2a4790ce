//! A thread that writes to standard output or to standard error, where a reader may be late for as long as it likes.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use rustix::event::{PollFd, PollFlags, poll};

/// A thread, and what it has to write.
#[derive(Debug)]
pub(crate) struct Printer {
    shared: Arc<Shared>,
}

/// An agent, and the bytes that it may send once a text is written.
pub(crate) type Credit = (usize, usize);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    comes: Condvar,
    /// Readable when something has been written.
    written: OwnedFd,
}

#[derive(Debug, Default)]
struct Queue {
    /// Texts, and for which credit of which agent.
    waiting: VecDeque<(Credit, Vec<u8>)>,
    busy: bool,
    /// For what has been written.
    done: Vec<Credit>,
    /// The reader is gone, or the disk is full: nothing more is written.
    broken: Option<io::Error>,
}

impl Printer {
    /// Writes to `to`; `written` becomes readable each time.
    pub(crate) fn start(to: impl AsFd + Write + Send + 'static, written: OwnedFd) -> io::Result<Printer> {
        let shared = Arc::new(Shared { queue: Mutex::default(), comes: Condvar::new(), written });
        let thread = thread::Builder::new().name("printer".into());
        thread.spawn({
            let shared = shared.clone();
            move || shared.serve(to)
        })?;
        Ok(Printer { shared })
    }

    /// Has a text written.
    pub(crate) fn print(&self, credit: Credit, text: Vec<u8>) {
        self.shared.queue().waiting.push_back((credit, text));
        self.shared.comes.notify_one();
    }

    /// The credit for what has been written since the last call.
    pub(crate) fn take_done(&self) -> Vec<Credit> {
        std::mem::take(&mut self.shared.queue().done)
    }

    /// Returns true if there is nothing to write.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.shared.queue();
        queue.waiting.is_empty() && !queue.busy
    }

    /// Why something is lost. A reader that is gone, as `head` is, wants no more.
    pub(crate) fn lost(&self) -> Option<String> {
        let queue = self.shared.queue();
        queue.broken.as_ref().filter(|error| error.kind() != ErrorKind::BrokenPipe).map(io::Error::to_string)
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut to: impl AsFd + Write) {
        let mut queue = self.queue();
        loop {
            let Some((credit, text)) = queue.waiting.pop_front() else {
                queue = self.comes.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.busy = true;
            let is_broken = queue.broken.is_some();
            drop(queue);
            let written = if is_broken { Ok(()) } else { write_all(&mut to, &text) };
            queue = self.queue();
            queue.busy = false;
            queue.done.push(credit);
            if let Err(error) = written {
                queue.broken = Some(error);
            }
            // A count that is full is readable.
            let _ = rustix::io::write(&self.written, &1_u64.to_ne_bytes());
        }
    }
}

/// Writes all of it, also where another program has asked for writes that do not wait.
fn write_all(mut to: impl AsFd + Write, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        match to.write(text) {
            Ok(count) => text = &text[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(&to, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
