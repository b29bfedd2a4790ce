//! The calls of MPI that the conduit makes, with errors as values.
//!
//! Communicators of the conduit return errors instead of ending the process. Any thread may make a call if `start` got the level of thread
//! support for that; else the conduit's lock guards it.

use std::{
    ffi::{CStr, c_int, c_void},
    io,
    mem::MaybeUninit,
    time::{Duration, Instant},
};

use mpi::{
    ffi::{self, MPI_Comm, MPI_Request, MPI_Status},
    raw::FromRaw,
    topology::SimpleCommunicator,
};

/// What the library says of a call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {text}")]
pub(super) struct MpiError {
    call: &'static str,
    text: String,
}

pub(super) type Result<T> = std::result::Result<T, MpiError>;

fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(MpiError { call, text: error_text(code) }) }
}

#[cold]
fn error_text(code: c_int) -> String {
    let mut text = [0; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the buffer is as long as the standard's longest text, and one more.
    if unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut len) } != 0 {
        return format!("error {code}");
    }
    // SAFETY: the library ends the text by zero.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}

/// The number of threads that may call the library at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threads {
    /// Any number.
    Multiple,
    /// One after the other, or only the first.
    Fewer,
}

impl Threads {
    fn of(level: c_int) -> Self {
        // SAFETY: a constant of the library.
        if level == unsafe { ffi::RSMPI_THREAD_MULTIPLE } { Threads::Multiple } else { Threads::Fewer }
    }
}

/// Returns true if MPI was initialised and not yet finalised.
pub(super) fn is_running() -> bool {
    let (mut initialised, mut finalised) = (0, 0);
    // SAFETY: both may be called at any time.
    unsafe {
        ffi::MPI_Initialized(&raw mut initialised);
        ffi::MPI_Finalized(&raw mut finalised);
    }
    initialised != 0 && finalised == 0
}

/// Returns true if MPI was finalised: it cannot be initialised again.
pub(super) fn is_finalised() -> bool {
    let mut finalised = 0;
    // SAFETY: may be called at any time.
    unsafe { ffi::MPI_Finalized(&raw mut finalised) };
    finalised != 0
}

/// Initialises MPI, asking for calls from any thread.
pub(super) fn initialise() -> Result<()> {
    let mut provided = 0;
    // SAFETY: MPI was not initialised; null arguments are allowed since MPI-2.
    let code = unsafe {
        ffi::MPI_Init_thread(std::ptr::null_mut(), std::ptr::null_mut(), ffi::RSMPI_THREAD_MULTIPLE, &raw mut provided)
    };
    check("MPI_Init_thread", code)
}

pub(super) fn finalise() {
    // SAFETY: MPI runs, and nothing of the conduit is left.
    let _ = unsafe { ffi::MPI_Finalize() };
}

/// Lets the library go on with what is under way.
pub(super) fn progress() {
    let mut found = 0;
    // SAFETY: MPI runs; constants of the library, and nothing is received.
    let _ = unsafe {
        let (source, tag, comm) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG, ffi::RSMPI_COMM_WORLD);
        ffi::MPI_Iprobe(source, tag, comm, &raw mut found, ffi::RSMPI_STATUS_IGNORE)
    };
}

/// The level of thread support.
pub(super) fn threads() -> Result<Threads> {
    let mut level = 0;
    // SAFETY: MPI runs.
    check("MPI_Query_thread", unsafe { ffi::MPI_Query_thread(&raw mut level) })?;
    Ok(Threads::of(level))
}

/// The library's own words on what it is.
pub(super) fn library_version() -> String {
    let mut text = vec![0; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: may be called at any time; the buffer is as long as the standard's longest text, and one more.
    if unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &raw mut len) } != 0 {
        return "an MPI library that does not tell its version".into();
    }
    // SAFETY: the library ends the text by zero.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().trim().to_owned()
}

/// A communicator of the conduit's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comm(MPI_Comm);

// SAFETY: a handle; the library allows its use from any thread, or the conduit's lock makes the calls come one by one.
unsafe impl Send for Comm {}
// SAFETY: as above.
unsafe impl Sync for Comm {}

impl Comm {
    /// The communicator of all processes; borrowed, never freed or sent on.
    pub(super) fn world() -> MPI_Comm {
        // SAFETY: a constant of the library.
        unsafe { ffi::RSMPI_COMM_WORLD }
    }

    pub(super) fn size_of_world() -> Result<usize> {
        Self::of_world().size()
    }

    /// Its group, which the caller gives back.
    fn group(self) -> Result<ffi::MPI_Group> {
        let mut group = MaybeUninit::uninit();
        // SAFETY: MPI runs, and writes the group that the call makes.
        check("MPI_Comm_group", unsafe { ffi::MPI_Comm_group(self.0, group.as_mut_ptr()) })?;
        // SAFETY: filled by the call that succeeded.
        Ok(unsafe { group.assume_init() })
    }

    /// The communicator of all processes, to ask.
    pub(super) fn of_world() -> Self {
        Comm(Self::world())
    }

    /// A communicator of some of its ranks, which is the caller's. Collective over them; calls at one time differ in their keys.
    ///
    /// The processes meet by the communicator of all: Open MPI 4.1 meets by messages that receives of any tag take, as those of jobs do. So the
    /// group is one of that communicator too, without which MPICH 4.0 faults.
    pub(super) fn of_ranks(self, ranks: impl Iterator<Item = usize>, key: u64) -> Result<SimpleCommunicator> {
        /// Every library has tags up to this one.
        const LAST_TAG: u64 = 32_767;
        let ranks: Vec<c_int> = ranks.map(|rank| rank as c_int).collect();
        let (count, mut places) = (ranks.len() as c_int, vec![0; ranks.len()]);
        let [mut own, mut all] = [self.group()?, Self::of_world().group()?];
        // SAFETY: as many ranks as it is said, all of the first group, and room for as many.
        let code = unsafe { ffi::MPI_Group_translate_ranks(own, count, ranks.as_ptr(), all, places.as_mut_ptr()) };
        let (mut some, mut made) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let code = match code {
            // SAFETY: as many ranks as it is said, all of the group.
            0 => unsafe { ffi::MPI_Group_incl(all, count, places.as_ptr(), some.as_mut_ptr()) },
            code => code,
        };
        for group in [&mut own, &mut all] {
            // SAFETY: a group of this call's own.
            let _ = unsafe { ffi::MPI_Group_free(group) };
        }
        check("MPI_Group_incl", code)?;
        // SAFETY: filled by the call that succeeded.
        let mut some = unsafe { some.assume_init() };
        // SAFETY: all processes and a group of them, this one among them.
        let code = unsafe { ffi::MPI_Comm_create_group(Self::world(), some, (key % LAST_TAG) as c_int, made.as_mut_ptr()) };
        // SAFETY: the call's own group.
        let _ = unsafe { ffi::MPI_Group_free(&raw mut some) };
        check("MPI_Comm_create_group", code)?;
        // SAFETY: filled by the call that succeeded.
        let made = unsafe { made.assume_init() };
        // SAFETY: the communicator was made above. A program's own ends the program at an error, in contrast to the crate's.
        check("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(made, ffi::RSMPI_ERRORS_ARE_FATAL) })?;
        // SAFETY: a new communicator of one group, which the caller gives back.
        Ok(unsafe { SimpleCommunicator::from_raw(made) })
    }

    /// A copy of a caller's communicator, whose messages never meet the caller's. Collective.
    pub(super) fn copy_of(comm: MPI_Comm) -> Result<Self> {
        let (copy, request) = Self::begin_copy(comm)?;
        request.finish()?;
        // SAFETY: filled when the request is complete.
        Self::own(*unsafe { copy.assume_init() })
    }

    /// Copies as [`copy_of`](Self::copy_of) does. Calls `idle` meanwhile: its error ends the wait.
    pub(super) fn copy_of_while(comm: MPI_Comm, idle: &mut dyn FnMut() -> io::Result<()>) -> io::Result<Self> {
        let (copy, request) = Self::begin_copy(comm).map_err(io::Error::other)?;
        if let Err(error) = request.finish_or(idle) {
            // The library may write it yet.
            std::mem::forget(copy);
            return Err(error);
        }
        // SAFETY: filled when the request is complete.
        Self::own(*unsafe { copy.assume_init() }).map_err(io::Error::other)
    }

    /// The place of a copy, filled when the request is complete.
    fn begin_copy(comm: MPI_Comm) -> Result<(Box<MaybeUninit<MPI_Comm>>, MpiRequest)> {
        let mut copy = Box::new(MaybeUninit::uninit());
        let mut request = MaybeUninit::uninit();
        // SAFETY: MPI runs and the caller owns `comm`; the copy's place is on the heap, and lives until the request is complete.
        check("MPI_Comm_idup", unsafe { ffi::MPI_Comm_idup(comm, copy.as_mut_ptr(), request.as_mut_ptr()) })?;
        // SAFETY: filled by the call that succeeded.
        Ok((copy, MpiRequest(unsafe { request.assume_init() })))
    }

    fn own(copy: MPI_Comm) -> Result<Self> {
        // SAFETY: a communicator of our own.
        check("MPI_Comm_set_errhandler", unsafe { ffi::MPI_Comm_set_errhandler(copy, ffi::RSMPI_ERRORS_RETURN) })?;
        Ok(Comm(copy))
    }

    /// Ends all processes of the communicator, this one among them.
    pub(super) fn abort(self) {
        // SAFETY: a communicator of our own.
        let _ = unsafe { ffi::MPI_Abort(self.0, 1) };
    }

    /// Gives the communicator back. Collective.
    pub(super) fn free(mut self) {
        // SAFETY: our own, and nobody uses it any more.
        let _ = unsafe { ffi::MPI_Comm_free(&raw mut self.0) };
    }

    pub(super) fn rank(self) -> Result<usize> {
        let mut rank = 0;
        // SAFETY: a communicator of our own.
        check("MPI_Comm_rank", unsafe { ffi::MPI_Comm_rank(self.0, &raw mut rank) })?;
        Ok(rank as usize)
    }

    pub(super) fn size(self) -> Result<usize> {
        let mut size = 0;
        // SAFETY: a communicator of our own.
        check("MPI_Comm_size", unsafe { ffi::MPI_Comm_size(self.0, &raw mut size) })?;
        Ok(size as usize)
    }

    /// The greatest of each word over all ranks. Collective.
    pub(super) fn greatest<const N: usize>(self, mut words: [u64; N]) -> Result<[u64; N]> {
        let mut all = [0; N];
        let mut request = MaybeUninit::uninit();
        let (from, to): (*mut c_void, *mut c_void) = (words.as_mut_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: both buffers hold `N` words and live until the request is complete; constants of the library.
        let code = unsafe {
            let (word, op) = (ffi::RSMPI_UINT64_T, ffi::RSMPI_MAX);
            ffi::MPI_Iallreduce(from, to, N as c_int, word, op, self.0, request.as_mut_ptr())
        };
        check("MPI_Iallreduce", code)?;
        // SAFETY: filled by the call that succeeded.
        MpiRequest(unsafe { request.assume_init() }).finish()?;
        Ok(all)
    }

    /// Words of each rank, in their order. Collective.
    pub(super) fn all_gather<const N: usize>(self, words: [u64; N]) -> Result<Vec<[u64; N]>> {
        let mut all = vec![[0; N]; self.size()?];
        let mut request = MaybeUninit::uninit();
        // SAFETY: `N` words from here, and room for as many from each rank, until the request is complete.
        let code = unsafe {
            let (from, to): (*const c_void, *mut c_void) = ((&raw const words).cast(), all.as_mut_ptr().cast());
            let (word, count) = (ffi::RSMPI_UINT64_T, N as c_int);
            ffi::MPI_Iallgather(from.cast_mut(), count, word, to, count, word, self.0, request.as_mut_ptr())
        };
        check("MPI_Iallgather", code)?;
        // SAFETY: filled by the call that succeeded.
        MpiRequest(unsafe { request.assume_init() }).finish()?;
        Ok(all)
    }

    /// Bytes of each rank one behind the other, and where those of each end. Collective. An error of `idle`, which is called while others are
    /// waited for, ends the wait: the communicator is of no use then.
    pub(super) fn all_bytes(self, bytes: Vec<u8>, idle: &mut dyn FnMut() -> io::Result<()>) -> io::Result<(Vec<u8>, Vec<usize>)> {
        let failed = |error: MpiError| io::Error::other(error);
        let len = c_int::try_from(bytes.len()).map_err(io::Error::other)?;
        let ranks = self.size().map_err(failed)?;
        // What the library reads and writes until a request is complete.
        let mut kept = Box::new((bytes, len, vec![0; ranks], Vec::new(), Vec::new()));
        let (bytes, own, lens, starts, all) = &mut *kept;
        let mut request = MaybeUninit::uninit();
        // SAFETY: one number from here, and room for as many from each rank, until the request is complete.
        let code = unsafe {
            let (from, to) = ((&raw mut *own).cast(), lens.as_mut_ptr().cast());
            ffi::MPI_Iallgather(from, 1, ffi::RSMPI_INT32_T, to, 1, ffi::RSMPI_INT32_T, self.0, request.as_mut_ptr())
        };
        check("MPI_Iallgather", code).map_err(failed)?;
        // SAFETY: filled by the call that succeeded.
        let lens_came = MpiRequest(unsafe { request.assume_init() }).finish_or(idle);
        let ended = lens_came.and_then(|()| {
            let mut total: c_int = 0;
            for &len in lens.iter() {
                starts.push(total);
                total = total.checked_add(len).ok_or_else(|| io::Error::other("all words of the ranks have more than 2 GiB"))?;
            }
            all.resize(total as usize, 0);
            let mut request = MaybeUninit::uninit();
            // SAFETY: as many bytes as this rank has said, and room for those of each, until the request is complete.
            let code = unsafe {
                let (from, to, byte) = (bytes.as_mut_ptr().cast(), all.as_mut_ptr().cast(), ffi::RSMPI_UINT8_T);
                let (lens, starts) = (lens.as_ptr(), starts.as_ptr());
                ffi::MPI_Iallgatherv(from, *own, byte, to, lens, starts, byte, self.0, request.as_mut_ptr())
            };
            check("MPI_Iallgatherv", code).map_err(failed)?;
            // SAFETY: filled by the call that succeeded.
            MpiRequest(unsafe { request.assume_init() }).finish_or(idle)
        });
        if let Err(error) = ended {
            // The library may write to it yet.
            std::mem::forget(kept);
            return Err(error);
        }
        let (.., lens, starts, all) = *kept;
        Ok((all, starts.iter().zip(lens).map(|(start, len)| (start + len) as usize).collect()))
    }

    pub(super) fn begin_barrier(self) -> Result<MpiRequest> {
        let mut request = MaybeUninit::uninit();
        // SAFETY: a communicator of our own.
        check("MPI_Ibarrier", unsafe { ffi::MPI_Ibarrier(self.0, request.as_mut_ptr()) })?;
        // SAFETY: filled by the call that succeeded.
        Ok(MpiRequest(unsafe { request.assume_init() }))
    }

    /// Begins to send bytes.
    ///
    /// # Safety
    /// They stay as they are until the request is complete.
    pub(super) unsafe fn begin_send(self, bytes: *const u8, len: usize, to: usize, tag: i32) -> Result<MpiRequest> {
        let len = c_int::try_from(len).expect("messages are cut at a gigabyte");
        let mut request = MaybeUninit::uninit();
        // SAFETY: the caller's promise.
        let code = unsafe {
            ffi::MPI_Isend(bytes.cast_mut().cast(), len, ffi::RSMPI_UINT8_T, to as c_int, tag, self.0, request.as_mut_ptr())
        };
        check("MPI_Isend", code)?;
        // SAFETY: filled by the call that succeeded.
        Ok(MpiRequest(unsafe { request.assume_init() }))
    }

    /// Begins to receive bytes, from a rank or from any.
    ///
    /// # Safety
    /// The buffer is nobody else's until the request is complete.
    pub(super) unsafe fn begin_receive(self, bytes: *mut u8, len: usize, from: Option<usize>, tag: i32) -> Result<MpiRequest> {
        let len = c_int::try_from(len).expect("messages are cut at a gigabyte");
        let mut request = MaybeUninit::uninit();
        // SAFETY: a constant of the library.
        let from = from.map_or_else(|| unsafe { ffi::RSMPI_ANY_SOURCE }, |rank| rank as c_int);
        // SAFETY: the caller's promise.
        let code = unsafe { ffi::MPI_Irecv(bytes.cast(), len, ffi::RSMPI_UINT8_T, from, tag, self.0, request.as_mut_ptr()) };
        check("MPI_Irecv", code)?;
        // SAFETY: filled by the call that succeeded.
        Ok(MpiRequest(unsafe { request.assume_init() }))
    }
}

/// Something that was begun. It must be tested until it is complete, or cancelled.
#[derive(Debug)]
pub(super) struct MpiRequest(MPI_Request);

// SAFETY: as for `Comm`.
unsafe impl Send for MpiRequest {}

/// The sender and the length of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) from: usize,
    pub(super) len: usize,
}

impl MpiRequest {
    /// Makes progress. Returns true if the request is complete: it must not be tested again then.
    #[inline]
    pub(super) fn test(&mut self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: a request under way; its status is of no interest.
        check("MPI_Test", unsafe { ffi::MPI_Test(&raw mut self.0, &raw mut done, ffi::RSMPI_STATUS_IGNORE) })?;
        Ok(done != 0)
    }

    /// Tests a receive, as [`test`](Self::test) does. Returns none until it is complete.
    #[inline]
    pub(super) fn test_arrived(&mut self) -> Result<Option<Envelope>> {
        let (mut done, mut status) = (0, MaybeUninit::<MPI_Status>::uninit());
        // SAFETY: a request under way.
        check("MPI_Test", unsafe { ffi::MPI_Test(&raw mut self.0, &raw mut done, status.as_mut_ptr()) })?;
        if done == 0 {
            return Ok(None);
        }
        let mut len = 0;
        // SAFETY: filled by the call, since the request is complete.
        let from = unsafe {
            ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &raw mut len);
            (*status.as_ptr()).MPI_SOURCE
        };
        Ok(Some(Envelope { from: from as usize, len: len as usize }))
    }

    /// Waits, and lets others have the processor meanwhile: ranks may outnumber the cores, and libraries wait without a pause.
    pub(super) fn finish(mut self) -> Result<()> {
        while !self.test()? {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Waits as [`finish`](Self::finish) does. Calls `idle` between tests: its error ends the wait.
    fn finish_or(mut self, idle: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        /// MPI has no wait with an end: tests all the time for `KEEN`, and then once every `LOOK`.
        const KEEN: Duration = Duration::from_millis(2);
        const LOOK: Duration = Duration::from_micros(200);
        let start = Instant::now();
        while !self.test().map_err(io::Error::other)? {
            idle()?;
            if start.elapsed() < KEEN { std::thread::yield_now() } else { std::thread::sleep(LOOK) }
        }
        Ok(())
    }

    /// Tests a receive that was to be taken back. Returns none until it is complete, then true if it was taken back.
    pub(super) fn test_cancelled(&mut self) -> Result<Option<bool>> {
        let (mut done, mut cancelled, mut status) = (0, 0, MaybeUninit::<MPI_Status>::uninit());
        // SAFETY: a request under way.
        check("MPI_Test", unsafe { ffi::MPI_Test(&raw mut self.0, &raw mut done, status.as_mut_ptr()) })?;
        if done == 0 {
            return Ok(None);
        }
        // SAFETY: filled by the call, since the request is complete.
        check("MPI_Test_cancelled", unsafe { ffi::MPI_Test_cancelled(status.as_ptr(), &raw mut cancelled) })?;
        Ok(Some(cancelled != 0))
    }

    /// Asks to take a receive back. It completes, soon if nothing has begun to come.
    pub(super) fn cancel(&mut self) {
        // SAFETY: a request under way, or the null request.
        unsafe {
            if self.0 != ffi::RSMPI_REQUEST_NULL {
                ffi::MPI_Cancel(&raw mut self.0);
            }
        }
    }
}
