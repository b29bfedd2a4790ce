//! How adapters of different processes reach each other: a socket of each, under an abstract name, which leaves no file.
//!
//! The name ends with the number of the adapter, which is random. The system loses no packet, keeps their order, and names each sender. A socket
//! holds few packets that nobody has taken (`net.unix.max_dgram_qlen`). Without room a packet waits in the sender's process. A packet for a
//! socket that is gone is dropped.
//!
//! A thread takes care of the adapter, because an adapter works while its processor computes.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size},
};

use crate::comm::node::helper::ask_for_short_turns;

/// The numbers of sockets have this bit, those of adapters in one process have not.
const FAR: u64 = 1 << 63;

/// Bytes that may lie at others and were not taken.
const SEND_BUFFER: usize = 4 << 20;

/// The interval at which the thread looks after works that no peer has answered.
const SLICE: Duration = Duration::from_millis(10);

/// Returns true if an adapter is in another process, or reached as if it were.
pub(in crate::comm) fn is_far(number: u64) -> bool {
    number & FAR != 0
}

/// The socket of a process.
#[derive(Debug)]
pub(in crate::comm) struct Socket {
    socket: Arc<UnixDatagram>,
    /// What its name begins with, and those of all that it reaches.
    prefix: &'static str,
    number: u64,
    /// Packets that found no room yet, each with its receiver.
    late: VecDeque<(u64, Vec<u8>)>,
    received: Vec<u8>,
    /// A packet could not be sent, and never will be.
    failed: bool,
}

impl Socket {
    /// A socket for packets of at most `longest` bytes.
    ///
    /// # Errors
    /// The system refuses one.
    pub(in crate::comm) fn new(prefix: &'static str, number: u64, longest: usize) -> io::Result<Self> {
        let number = FAR | number;
        let socket = UnixDatagram::bind_addr(&name(prefix, number)?)?;
        socket.set_nonblocking(true)?;
        // What lies at a process that does not look counts as the sender's. The system grants less if it allows less.
        set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
        let received = vec![0; longest + 1];
        Ok(Socket { socket: Arc::new(socket), prefix, number, late: VecDeque::new(), received, failed: false })
    }

    /// The bytes that may lie at others; a packet counts for up to twice its length.
    ///
    /// # Errors
    /// Those of the system.
    pub(in crate::comm) fn send_buffer(&self) -> io::Result<usize> {
        Ok(socket_send_buffer_size(&self.socket)?)
    }

    pub(in crate::comm) fn number(&self) -> u64 {
        self.number
    }

    /// Sends a packet, at once or when there is room.
    pub(in crate::comm) fn send(&mut self, to: u64, packet: Vec<u8>) {
        // One that is sent again waits once.
        if !self.try_send(to, &packet) && !self.late.iter().any(|(other, late)| (*other, late) == (to, &packet)) {
            self.late.push_back((to, packet));
        }
    }

    /// False if there is no room.
    fn try_send(&mut self, to: u64, packet: &[u8]) -> bool {
        match name(self.prefix, to).and_then(|name| self.socket.send_to_addr(packet, &name)) {
            Ok(_) => true,
            Err(error) if is_gone(&error) => true,
            Err(error) if has_no_room(&error) => false,
            Err(_) => {
                self.failed = true;
                true
            }
        }
    }

    /// Returns true if a packet could not be sent since the last call, for another reason than no room or no receiver.
    pub(in crate::comm) fn has_failed(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }

    /// Sends what found no room before. The order may change, which no sender notices that has one packet under way.
    pub(in crate::comm) fn send_late(&mut self) {
        for _ in 0..self.late.len() {
            let Some((to, packet)) = self.late.pop_front() else { return };
            self.send(to, packet);
        }
    }

    #[cfg(all(test, not(loom)))]
    pub(in crate::comm) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// The next packet, and the number of its sender.
    pub(in crate::comm) fn receive(&mut self) -> Option<(u64, Vec<u8>)> {
        let (len, from) = self.socket.recv_from(&mut self.received).ok()?;
        Some((number(self.prefix, &from).unwrap_or(0), self.received[..len].to_vec()))
    }
}

fn name(prefix: &str, number: u64) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{prefix}{number:016x}"))
}

fn number(prefix: &str, name: &SocketAddr) -> Option<u64> {
    let digits = name.as_abstract_name()?.strip_prefix(prefix.as_bytes())?;
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    // Another name for the same number would be another socket.
    (is_far(number) && digits == format!("{number:016x}").as_bytes()).then_some(number)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::NotFound)
}

fn has_no_room(error: &io::Error) -> bool {
    let is_short = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM));
    is_short || matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The thread that looks after an adapter.
#[derive(Debug)]
pub(in crate::comm) struct Looker {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// That it runs in.
    process: u32,
}

impl Looker {
    /// A thread that calls `look` when a packet has come, and often enough for works that no peer has answered.
    ///
    /// # Errors
    /// Those of the system.
    pub(in crate::comm) fn start(socket: &Socket, look: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (stop, socket) = (Arc::new(AtomicBool::new(false)), socket.socket.clone());
        let thread = std::thread::Builder::new().name("adapter".into()).stack_size(256 << 10);
        let stopped = stop.clone();
        let thread = thread.spawn(move || {
            ask_for_short_turns();
            let slice = Timespec { tv_sec: 0, tv_nsec: SLICE.as_nanos() as i64 };
            while !stopped.load(Ordering::Relaxed) {
                // One that is interrupted looks earlier.
                let _ = poll(&mut [PollFd::new(&*socket, PollFlags::IN)], Some(&slice));
                look();
            }
        })?;
        Ok(Looker { thread: Some(thread), stop, process: std::process::id() })
    }

    /// Returns true if this process is a child of the one that opened the adapter. A child does not have the thread, and another
    /// thread of its parent may have held the lock when it was forked. So a child leaves the adapter as it is.
    pub(in crate::comm) fn is_of_a_parent(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.is_of_a_parent() {
            return std::mem::forget(thread);
        }
        self.stop.store(true, Ordering::Relaxed);
        // One that has panicked has said so.
        let _ = thread.join();
    }
}
