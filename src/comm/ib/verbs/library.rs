//! The library, and its objects as values that are destroyed once.

use std::{
    ffi::{CStr, c_int},
    fs, io,
    ptr::{self, NonNull},
};

use libloading::Library;

use super::{
    super::{
        device::{DeviceError, Result},
        ffi::{Functions, IBV_FORK_UNNEEDED, ibv_context, ibv_device},
    },
    Unusable,
};

/// The library by its name, which has stood since 2006.
const LIBRARY: &str = "libibverbs.so.1";

/// Where the kernel lists adapters.
pub(super) const SYSFS: &str = "/sys/class/infiniband";

/// Loads the library, which stays: its drivers may have threads.
pub(super) fn load() -> std::result::Result<Functions, Unusable> {
    let missing = |error: libloading::Error| Unusable::Library { library: LIBRARY, cause: error.to_string() };
    // SAFETY: libibverbs may be loaded by any thread at any time.
    let library = Box::leak(Box::new(unsafe { Library::new(LIBRARY) }.map_err(missing)?));
    // SAFETY: it is libibverbs, and is never unloaded.
    unsafe { Functions::find(library) }.map_err(missing)
}

/// Lets this process start others while memory is registered. Before the first registration.
pub(super) fn prepare_for_fork(functions: &Functions) -> Result<()> {
    // SAFETY: no arguments.
    if functions.ibv_is_fork_initialized.is_some_and(|ask| unsafe { ask() } == IBV_FORK_UNNEEDED) {
        return Ok(());
    }
    // SAFETY: no arguments; may be called more than once.
    match check("ibv_fork_init", unsafe { (functions.ibv_fork_init)() }) {
        // Another library in this process, as MPI, registered memory before. Then the code that forks answers for it.
        Err(DeviceError::System { code: libc::EINVAL, .. }) => Ok(()),
        outcome => outcome,
    }
}

/// An error number of a call as an error. Drivers give it with either sign.
pub(super) fn refused(call: &'static str, code: c_int) -> DeviceError {
    DeviceError::System { call, code: code.abs() }
}

pub(super) fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(refused(call, code)) }
}

/// Why the last call of this thread that returned a null pointer, or -1, did so.
pub(super) fn last_error(call: &'static str) -> DeviceError {
    refused(call, io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// An object of the library.
#[derive(Debug)]
pub(super) struct Object<T> {
    object: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
}

// SAFETY: the library's functions may be called from any thread with any object.
unsafe impl<T> Send for Object<T> {}
// SAFETY: as above; what is read of an object directly does not change while it lives.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    /// What a call has made, or why it made nothing.
    ///
    /// # Safety
    /// The pointer comes from the last call of this thread, is null or belongs to nobody else, and `destroy` is the call's
    /// counterpart. What the object stands on is destroyed after it.
    pub(super) unsafe fn made(
        call: &'static str,
        object: *mut T,
        destroy: unsafe extern "C" fn(*mut T) -> c_int,
    ) -> Result<Self> {
        let object = NonNull::new(object).ok_or_else(|| last_error(call))?;
        Ok(Object { object, destroy })
    }

    pub(super) fn pointer(&self) -> *mut T {
        self.object.as_ptr()
    }

    /// Destroys the object, or returns the library's error. The library is not asked twice.
    pub(super) fn destroy(self, call: &'static str) -> Result<()> {
        let (pointer, destroy) = (self.pointer(), self.destroy);
        std::mem::forget(self);
        // SAFETY: the object is this value's own, and the value is gone.
        check(call, unsafe { destroy(pointer) })
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: the object is this value's own. That it cannot be destroyed matters to nobody any more.
        let _ = unsafe { (self.destroy)(self.pointer()) };
    }
}

/// The adapters that the library knows, each as a name and how it is opened.
#[derive(Debug)]
pub(super) struct AdapterList {
    functions: Functions,
    /// An array that ends by a null pointer.
    list: NonNull<*mut ibv_device>,
    count: usize,
}

impl AdapterList {
    pub(super) fn list(functions: &Functions) -> std::result::Result<Self, Unusable> {
        let mut count = 0;
        // SAFETY: the count is written during the call.
        let list = unsafe { (functions.ibv_get_device_list)(&raw mut count) };
        let adapters = NonNull::new(list).map(|list| AdapterList { functions: *functions, list, count: count as usize });
        // Without the kernel's part the list is null, or empty.
        adapters.filter(|adapters| adapters.count > 0).ok_or_else(|| {
            let entries = fs::read_dir(SYSFS).into_iter().flatten().flatten();
            let kernel: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            if kernel.is_empty() { Unusable::NoDevice { sysfs: SYSFS } } else { Unusable::NoDriver { sysfs: SYSFS, kernel } }
        })
    }

    fn device(&self, at: usize) -> *mut ibv_device {
        assert!(at < self.count);
        // SAFETY: within the array, which nobody changes.
        unsafe { *self.list.as_ptr().add(at) }
    }

    /// All names, in the library's order.
    pub(super) fn names(&self) -> Vec<String> {
        let name = |at| {
            // SAFETY: a device of the list.
            let name = unsafe { (self.functions.ibv_get_device_name)(self.device(at)) };
            // SAFETY: the name is part of the device, and ends by zero.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        (0..self.count).map(name).collect()
    }

    /// Opens one by its place among the names. It does not need the list any more.
    pub(super) fn open(&self, at: usize) -> Result<Object<ibv_context>> {
        // SAFETY: a device of the list.
        let context = unsafe { (self.functions.ibv_open_device)(self.device(at)) };
        // SAFETY: the new context's own counterpart; it stands on nothing.
        unsafe { Object::made("ibv_open_device", context, self.functions.ibv_close_device) }
    }
}

impl Drop for AdapterList {
    fn drop(&mut self) {
        // SAFETY: the list of this value; what was opened keeps what it needs.
        unsafe { (self.functions.ibv_free_device_list)(self.list.as_ptr()) };
    }
}

/// A value of C whose bytes are all zero, as its users expect of what they do not set.
///
/// # Safety
/// Zero is a value of each field: numbers, pointers, arrays.
pub(super) unsafe fn zeroed<T>() -> T {
    // SAFETY: the caller's promise.
    unsafe { std::mem::zeroed() }
}

/// No further argument.
pub(super) fn nothing<T>() -> *mut T {
    ptr::null_mut()
}
