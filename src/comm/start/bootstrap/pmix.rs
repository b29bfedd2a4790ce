//! PMIx, which Open MPI's launcher and others speak: by the launcher's library, loaded when a job starts.
//!
//! The protocol behind the library is not fixed, so there is no way without it. Since version 2 its calls are the same, and so are
//! the parts of its types that are used here.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    io,
    ptr::{null, null_mut},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use libloading::Library;
use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with},
    process::{Pid, getppid},
};

use super::key_values::{Idle, KeyValues, Refused, Result};
use crate::comm::kit::process;

/// The library by its name, which has stood for versions 2 to 5.
const LIBRARY: &str = "libpmix.so.2";

const SUCCESS: c_int = 0;
const STRING: u16 = 3;
const UINT32: u16 = 14;
const LOST_CONNECTION: c_int = -61;
/// Words for the processes of all machines.
const GLOBAL: u8 = 3;
/// The rank for words about the job.
const WILDCARD: u32 = u32::MAX - 1;
const JOB_SIZE: &CStr = c"pmix.job.size";
const NODE: &CStr = c"pmix.nodeid";

/// Longest value. The library has no limit of its own; what it sends on in one piece is longer.
const LONGEST: usize = 4096;

/// The time between two looks at whatever else the caller waits for.
const LOOK: Duration = Duration::from_millis(1);

#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    name: [c_char; 256],
    rank: u32,
}

/// The beginning of the library's type, all that is read of a value.
#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    kind: u16,
    data: *mut c_void,
}

/// A value for the library, not shorter than its type.
#[repr(C)]
struct Own {
    value: Value,
    rest: [u64; 6],
}

type Init = unsafe extern "C" fn(*mut Process, *const c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Own) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type WhenDone = extern "C" fn(c_int, *mut c_void);
type FenceNb = unsafe extern "C" fn(*const Process, usize, *const c_void, usize, WhenDone, *mut c_void) -> c_int;
type GetFunction = unsafe extern "C" fn(*const Process, *const c_char, *const c_void, usize, *mut *mut Value) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *const Process, usize) -> c_int;
type WhenHandled = unsafe extern "C" fn(c_int, *const c_void, usize, *const c_void, *mut c_void, *mut c_void);
type Happened = unsafe extern "C" fn(
    usize,
    c_int,
    *const Process,
    *const c_void,
    usize,
    *const c_void,
    usize,
    Option<WhenHandled>,
    *mut c_void,
);
type OnEvent = unsafe extern "C" fn(*mut c_int, usize, *const c_void, usize, Happened, *const c_void, *mut c_void) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// A process that has said to its launcher by PMIx that it is there.
pub(super) struct Pmix {
    own: Process,
    put: Put,
    commit: Commit,
    fence: FenceNb,
    get: GetFunction,
    abort: Abort,
    finalize: Finalize,
    error_string: ErrorString,
    /// The launcher's process on this machine, or what it started this one by.
    parent: Option<Pid>,
    /// The library's threads.
    threads: usize,
    /// Held as long as the process lives: a program that it starts has the same name for the launcher, and must not speak in it.
    _name: OwnedFd,
    /// Its threads run until the process ends, so it is never unloaded.
    _library: &'static Library,
}

/// The library's thread reports a fence here.
#[derive(Default)]
struct Fenced {
    status: Mutex<Option<c_int>>,
    told: Condvar,
}

impl Pmix {
    pub(super) fn start() -> Result<Self> {
        let missing = |error: libloading::Error| {
            Refused::System(io::Error::other(format!(
                "the launcher speaks PMIx, whose library is missing ({error}); install it (Debian: libpmix2), or start the program by \
                 MPICH's mpirun or srun --mpi=pmi2"
            )))
        };
        // SAFETY: the library's own start, in a process that the launcher meant for it.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(LIBRARY) }.map_err(missing)?));
        /// A call of the library, whose type the caller says.
        macro_rules! call {
            ($name:literal) => {
                // SAFETY: the type is that of the library's documentation.
                *unsafe { library.get($name) }.map_err(missing)?
            };
        }
        let init: Init = call!(b"PMIx_Init\0");
        let on_event: OnEvent = call!(b"PMIx_Register_event_handler\0");
        let mut pmix = Pmix {
            own: Process { name: [0; 256], rank: 0 },
            threads: 0,
            _name: claim()?,
            put: call!(b"PMIx_Put\0"),
            commit: call!(b"PMIx_Commit\0"),
            fence: call!(b"PMIx_Fence_nb\0"),
            get: call!(b"PMIx_Get\0"),
            abort: call!(b"PMIx_Abort\0"),
            finalize: call!(b"PMIx_Finalize\0"),
            error_string: call!(b"PMIx_Error_string\0"),
            parent: getppid(),
            _library: library,
        };
        let before = process::threads().unwrap_or(0);
        // SAFETY: fills the process; there are no further arguments.
        let status = unsafe { init(&raw mut pmix.own, null(), 0) };
        pmix.check("PMIx_Init", status)?;
        pmix.threads = process::threads().unwrap_or(0).saturating_sub(before);
        let mut lost = LOST_CONNECTION;
        // SAFETY: the code is read during the call, which returns when the handler is there; no caller is to be told.
        unsafe { on_event(&raw mut lost, 1, null(), 0, is_lost, null(), null_mut()) };
        Ok(pmix)
    }

    fn check(&self, call: &str, status: c_int) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: a text of the library's that lasts.
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) };
        Err(Refused::Said(format!("{call}: {}", text.to_string_lossy())))
    }

    /// What is known under a key of a process, while the answer is there.
    fn value<T>(&self, rank: u32, key: &CStr, kind: u16, read: impl FnOnce(*const Value) -> T) -> Result<T> {
        let (process, mut found) = (Process { rank, ..self.own }, null_mut());
        // SAFETY: the process and the key live during the call, which makes a value.
        let status = unsafe { (self.get)(&raw const process, key.as_ptr(), null(), 0, &raw mut found) };
        self.check("PMIx_Get", status)?;
        if found.is_null() {
            return Err(Refused::Said(format!("PMIx_Get: nothing for {key:?}")));
        }
        // SAFETY: made by the call that succeeded; the library's type begins so.
        let known = unsafe { (*found).kind };
        let value = (known == kind).then(|| read(found));
        // SAFETY: the value, and the text in it, were made by `malloc` for this caller.
        unsafe {
            if known == STRING {
                libc::free((*found).data);
            }
            libc::free(found.cast());
        }
        value.ok_or_else(|| Refused::Said(format!("PMIx_Get: {key:?} is of another type")))
    }
}

/// The library's thread has seen the end of the launcher. A fact about the process, as its library is.
static LOST: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn is_lost(
    _: usize,
    _: c_int,
    _: *const Process,
    _: *const c_void,
    _: usize,
    _: *const c_void,
    _: usize,
    handled: Option<WhenHandled>,
    for_library: *mut c_void,
) {
    LOST.store(true, Ordering::Relaxed);
    if let Some(handled) = handled {
        // SAFETY: the library asks for this call, with what it gave.
        unsafe { handled(SUCCESS, null(), 0, null(), null_mut(), for_library) };
    }
}

/// Takes the name that the launcher gave this process: a socket without a file, which ends with the process.
fn claim() -> Result<OwnedFd> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let name = format!("global-arrays {} {}", variable("PMIX_NAMESPACE"), variable("PMIX_RANK"));
    // Addresses have 108 bytes. The end tells most: the rank.
    let name = &name.as_bytes()[name.len().saturating_sub(100)..];
    let claimed = || {
        let address = SocketAddrUnix::new_abstract_name(name)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &address)?;
        Ok(socket)
    };
    claimed().map_err(|error: Errno| match error {
        Errno::ADDRINUSE => Refused::System(io::Error::other(
            "another process has this rank: a program that a rank started is no rank; start its job by a fork (GA_BOOTSTRAP=fork)",
        )),
        error => Refused::System(error.into()),
    })
}

fn key_of(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Refused::Said(format!("no text for C: {text:?}")))
}

extern "C" fn fenced(status: c_int, waits: *mut c_void) {
    // SAFETY: the count of the caller that gave it, taken here once.
    let waits = unsafe { Arc::from_raw(waits.cast::<Fenced>().cast_const()) };
    *waits.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    waits.told.notify_all();
}

impl KeyValues for Pmix {
    fn size(&self) -> Option<usize> {
        // SAFETY: a value of this type has the number in place of the pointer.
        let read = |value: *const Value| unsafe { (&raw const (*value).data).cast::<u32>().read() } as usize;
        self.value(WILDCARD, JOB_SIZE, UINT32, read).ok()
    }

    /// The library has the nodes in this process, or in memory that the processes of a machine share.
    fn nodes(&mut self, ranks: usize, _idle: Idle<'_>) -> Result<Option<Vec<u32>>> {
        // SAFETY: as in `size`.
        let read = |value: *const Value| unsafe { (&raw const (*value).data).cast::<u32>().read() };
        Ok((0..ranks as u32).map(|rank| self.value(rank, NODE, UINT32, read).ok()).collect())
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn put(&mut self, key: &str, value: &str, _idle: Idle<'_>) -> Result<()> {
        let (key, text) = (key_of(key)?, key_of(value)?);
        let value = Value { kind: STRING, data: text.as_ptr().cast_mut().cast() };
        let mut value = Own { value, rest: [0; 6] };
        // SAFETY: key and value live during the call, which copies them.
        let status = unsafe { (self.put)(GLOBAL, key.as_ptr(), &raw mut value) };
        self.check("PMIx_Put", status)
    }

    fn fence(&mut self, idle: Idle<'_>) -> Result<()> {
        // SAFETY: no arguments.
        let status = unsafe { (self.commit)() };
        self.check("PMIx_Commit", status)?;
        let waits = Arc::new(Fenced::default());
        let told = Arc::into_raw(waits.clone()).cast_mut().cast();
        // SAFETY: no process stands for all; the library keeps `told` until it calls back, once.
        let status = unsafe { (self.fence)(null(), 0, null(), 0, fenced, told) };
        if status != SUCCESS {
            // SAFETY: it will not call back.
            drop(unsafe { Arc::from_raw(told.cast::<Fenced>().cast_const()) });
        }
        self.check("PMIx_Fence", status)?;
        let mut status = waits.status.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(status) = *status {
                return self.check("PMIx_Fence", status);
            }
            if self.is_gone() {
                return Err(Refused::Gone);
            }
            idle()?;
            status = waits.told.wait_timeout(status, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn get(&mut self, from: usize, key: &str, _idle: Idle<'_>) -> Result<String> {
        let read = |value: *const Value| {
            // SAFETY: a value of this type points to a text.
            unsafe { CStr::from_ptr((*value).data.cast()) }.to_string_lossy().into_owned()
        };
        self.value(from as u32, &key_of(key)?, STRING, read)
    }

    fn finish(&mut self, _idle: Idle<'_>) -> Result<()> {
        // SAFETY: no arguments; nothing of the library is used behind it.
        let status = unsafe { (self.finalize)(null(), 0) };
        self.check("PMIx_Finalize", status)
    }

    fn abort(&mut self, _why: &str) {
        // SAFETY: a text that lives during the call; no processes stand for all.
        let _ = unsafe { (self.abort)(1, c"the ranks could not meet".as_ptr(), null(), 0) };
    }

    fn is_gone(&self) -> bool {
        LOST.load(Ordering::Relaxed) || getppid() != self.parent
    }
}
