//! Lines for people.

use std::{
    fmt,
    io::{self, ErrorKind, Write},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::AsFd,
};

/// Prints one line of stderr by one write, so that lines of ranks do not mix. If it cannot be written, as to a launcher that is
/// gone, nobody else can be reached.
pub(crate) fn say(line: impl fmt::Display) {
    let _ = write_all(io::stderr(), format!("global-arrays: {line}\n").as_bytes());
}

/// Writes all of it, and what was buffered. Waits for a reader that is late also where writes do not wait (`O_NONBLOCK`): another
/// process that shares the pipe or the terminal with this one may have asked for that.
///
/// # Errors
/// What the system says.
pub(crate) fn write_all(mut to: impl Write + AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match when_there_is_room(&mut to, |to| to.write(bytes))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    when_there_is_room(&mut to, Write::flush)
}

/// Writes again each time there is room. A write that finds none has taken nothing.
fn when_there_is_room<W: AsFd, T>(to: &mut W, mut write: impl FnMut(&mut W) -> io::Result<T>) -> io::Result<T> {
    loop {
        match write(to) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => match poll(&mut [PollFd::new(&*to, PollFlags::OUT)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            ended => return ended,
        }
    }
}

/// The words of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with a value that is no text".into())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{LineWriter, Read},
    };

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn a_reader_that_is_late_gets_all_of_it() {
        // More than a pipe holds; the writer buffers as standard output does.
        let text: String = (0..40_000).map(|line| format!("line {line}\n")).collect();
        let (read_end, write_end) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let (mut reader, mut writer) = (File::from(read_end), File::from(write_end));
        while writer.write(&[b'.'; 4096]).is_ok() {}
        assert_eq!(writer.write(b".").unwrap_err().kind(), ErrorKind::WouldBlock, "the pipe is full");
        rustix::fs::fcntl_setfl(&reader, rustix::fs::OFlags::empty()).unwrap();
        let read = std::thread::scope(|scope| {
            let late = scope.spawn(|| {
                let mut read = String::new();
                reader.read_to_string(&mut read).unwrap();
                read
            });
            write_all(Buffered(LineWriter::new(writer)), text.as_bytes()).unwrap();
            late.join().unwrap()
        });
        assert_eq!(read.trim_start_matches('.'), text);
    }

    struct Buffered(LineWriter<File>);

    impl AsFd for Buffered {
        fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
            self.0.get_ref().as_fd()
        }
    }

    impl Write for Buffered {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }
}
