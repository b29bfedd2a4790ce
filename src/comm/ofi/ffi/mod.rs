//! What is used of libfabric, under the names of `rdma/fabric.h`.
//!
//! The library is loaded at run time, so programs build and start without it and without its header. Its few functions have versions, and
//! what a function returns is laid out as of its version: a program that asks for the versions of libfabric 1.9 runs with all later ones.
//! All else is called through tables of the objects. A table begins with its size, because later libraries add to its end.
//!
//! Lists of attributes are made by the library, never here: they too grow at their ends.
//!
//! # Source
//! libfabric, `include/rdma`.
#![allow(non_camel_case_types, reason = "the names of the header")]

mod constants;
#[cfg(all(test, not(loom)))]
mod layout;
mod structures;

use std::ffi::{CStr, c_char, c_int, c_void};

pub(super) use constants::*;
pub(super) use structures::*;

/// Declares the table of functions, with their versions.
macro_rules! functions {
    ($($name:ident($($type:ty),*) $(-> $result:ty)?, $version:literal;)*) => {
        /// The functions of the library.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Names, types of the arguments and types of the results.
            #[cfg(all(test, not(loom)))]
            pub(super) const DECLARED: &[(&str, &[&str], &str)] =
                &[$((stringify!($name), &[$(stringify!($type)),*], stringify!($($result)?))),*];

            /// Loads the library, which stays: its providers may have threads.
            ///
            /// # Errors
            /// What is missing, for people.
            pub(super) fn load() -> Result<Self, String> {
                let library = with_own_signals(|| {
                    // SAFETY: a text that ends by zero. The library may be loaded by any thread at any time.
                    unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
                });
                if library.is_null() {
                    return Err(format!("cannot load {}: {}; install libfabric (Debian: apt-get install libfabric1)", LIBRARY.to_string_lossy(), error()));
                }
                let find = |name: &CStr, version: &CStr| -> Result<*mut c_void, String> {
                    // SAFETY: a loaded library, and texts that end by zero.
                    let found = unsafe { libc::dlvsym(library, name.as_ptr(), version.as_ptr()) };
                    if found.is_null() {
                        return Err(format!("{} is older than 1.9: {}", LIBRARY.to_string_lossy(), error()));
                    }
                    Ok(found)
                };
                Ok(Functions {
                    $($name: {
                        let found = find(
                            const { with_zero(concat!(stringify!($name), "\0")) },
                            const { with_zero(concat!($version, "\0")) },
                        )?;
                        // SAFETY: the function has this type in this version.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(found) }
                    },)*
                })
            }
        }
    };
}

functions! {
    fi_getinfo(u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int, "FABRIC_1.3";
    fi_freeinfo(*mut fi_info), "FABRIC_1.3";
    fi_dupinfo(*const fi_info) -> *mut fi_info, "FABRIC_1.3";
    fi_fabric(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int, "FABRIC_1.1";
    fi_strerror(c_int) -> *const c_char, "FABRIC_1.0";
}

const LIBRARY: &CStr = c"libfabric.so.1";

/// The version of the interface that is asked for: 1.9.
pub(super) const API: u32 = 1 << 16 | 9;

const fn with_zero(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a text that ends by zero"),
    }
}

/// Loads something, and undoes what it does to the signals of the process: libpsm2, which Debian's libfabric needs, takes them when it is loaded, and a
/// rank that is ended would call `exit` and print addresses.
pub(super) fn with_own_signals<T>(load: impl FnOnce() -> T) -> T {
    const SIGNALS: [c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGABRT, libc::SIGINT, libc::SIGTERM];
    // SAFETY: zeros are a valid action, which the call fills in.
    let before = SIGNALS.map(|signal| unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0).then_some(action)
    });
    let loaded = load();
    for (signal, action) in SIGNALS.into_iter().zip(before) {
        // SAFETY: an action that the process had for the signal.
        action.iter().for_each(|action| unsafe {
            libc::sigaction(signal, action, std::ptr::null_mut());
        });
    }
    loaded
}

/// Why the last call of the loader failed.
fn error() -> String {
    // SAFETY: no arguments; the text lasts until the next call of this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason is known".to_owned();
    }
    // SAFETY: a text that ends by zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The entry of an object's table, unless the library's table ends before it. Unsafe: it must be a table of the library, whose object is open.
macro_rules! entry {
    ($table:expr, $type:ident . $entry:ident) => {{
        let table: *const $type = $table;
        if (*table).size > std::mem::offset_of!($type, $entry) { (*table).$entry } else { None }
    }};
}
pub(super) use entry;
