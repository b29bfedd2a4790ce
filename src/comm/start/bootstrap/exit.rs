//! Calls at the end of a process.

use std::ffi::{c_int, c_void};

use crate::comm::{kit::say::say, node::Fabric};

/// Calls a function with the status of the process when it exits.
pub(crate) fn at_exit(call: extern "C" fn(c_int)) {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn on_exit(call: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        }
        extern "C" fn with_status(status: c_int, call: *mut c_void) {
            // SAFETY: the function that was given below.
            let call: extern "C" fn(c_int) = unsafe { std::mem::transmute(call) };
            call(status);
        }
        // SAFETY: the argument is a function, which lives as long as the program.
        unsafe { on_exit(with_status, call as *mut c_void) };
    }
    #[cfg(not(target_env = "gnu"))]
    {
        // Other C libraries do not pass the status.
        static CALLS: std::sync::Mutex<Vec<extern "C" fn(c_int)>> = std::sync::Mutex::new(Vec::new());
        extern "C" fn without_status() {
            let call = CALLS.lock().ok().and_then(|mut calls| calls.pop());
            call.into_iter().for_each(|call| call(0));
        }
        if let Ok(mut calls) = CALLS.lock() {
            calls.push(call);
            // SAFETY: the function takes and returns nothing.
            unsafe { libc::atexit(without_status) };
        }
    }
}

/// Ends a job whose rank's process calls `exit` inside its body. Returns the cause, unless the job has failed already.
pub(crate) fn end_job(fabric: &Fabric, rank: usize, status: c_int) -> Option<String> {
    let cause = format!("called exit({status}) before the job did end");
    fabric.end(Some(rank), &cause).then(|| {
        say(format_args!("rank {rank} {cause}"));
        cause
    })
}

/// Ends a process that calls `exit` inside a job. Not all launchers take another end for a failure. The memory that other threads still use
/// goes with the process.
pub(crate) fn end_process(status: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(if status == 0 { 1 } else { status }) }
}
