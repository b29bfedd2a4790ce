//! The cores that a thread may run on, on machines of any size.
//!
//! The kernel refuses a mask shorter than its own, and 1024 bits, the length of `cpu_set_t`, are too few on large machines. So the mask
//! grows until the kernel takes it.

use std::{cell::Cell, io};

use rustix::process::Pid;

/// Words of the first mask, and of the longest one that is tried: 1024 and 1,048,576 cores.
const FIRST: usize = 16;
const LONGEST: usize = 1 << 14;

/// The cores that a process may use, ascending; those of the calling thread if it is none.
///
/// # Errors
/// The kernel's: no such process, or one that may not be looked at.
pub(crate) fn allowed(process: Option<Pid>) -> io::Result<Vec<usize>> {
    let process = Pid::as_raw(process);
    ask(|mask| {
        // SAFETY: the kernel writes at most as many bytes as it is given, and every bit pattern is a valid word.
        let answer = unsafe { libc::sched_getaffinity(process, size_of_val(mask), mask.as_mut_ptr().cast()) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    })
}

/// Confines the calling thread to these cores.
///
/// # Errors
/// The kernel's: none of the cores may be used.
pub(crate) fn confine(cores: &[usize]) -> io::Result<()> {
    let mut mask = vec![0_u64; cores.iter().max().map_or(0, |most| most / 64 + 1)];
    for core in cores {
        mask[core / 64] |= 1 << (core % 64);
    }
    // SAFETY: the kernel reads no more bytes than it is given.
    let answer = unsafe { libc::sched_setaffinity(0, size_of_val(&*mask), mask.as_ptr().cast()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

thread_local! {
    /// The thread is pinned, by a job that will give its cores back.
    static PINNED: Cell<bool> = const { Cell::new(false) };
}

/// A thread that is confined until this is dropped, in the same thread.
#[derive(Debug)]
pub(crate) struct PinnedThread {
    /// The cores that it had.
    before: Vec<usize>,
}

impl PinnedThread {
    /// Confines the calling thread to these cores. None if another job has pinned it, or the kernel refuses, which costs speed only.
    pub(crate) fn to(cores: &[usize]) -> Option<Self> {
        let before = allowed(None).ok().filter(|_| !PINNED.get())?;
        confine(cores).ok()?;
        PINNED.set(true);
        Some(PinnedThread { before })
    }
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        PINNED.set(false);
        let _ = confine(&self.before);
    }
}

/// The cores of a mask that the `kernel` fills, if it is not too short.
fn ask(kernel: impl Fn(&mut [u64]) -> io::Result<()>) -> io::Result<Vec<usize>> {
    let mut mask = vec![0; FIRST];
    while let Err(error) = kernel(&mut mask) {
        if error.raw_os_error() != Some(libc::EINVAL) || mask.len() == LONGEST {
            return Err(error);
        }
        mask = vec![0; 2 * mask.len()];
    }
    Ok((0..64 * mask.len()).filter(|core| mask[core / 64] >> (core % 64) & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_any_length_is_answered() {
        for words in [1, 16, 17, 32, 128, LONGEST] {
            let cores = [0, 64 * words / 2, 64 * words - 1];
            let kernel = |mask: &mut [u64]| {
                if mask.len() < words {
                    return Err(io::Error::from_raw_os_error(libc::EINVAL));
                }
                cores.iter().for_each(|core| mask[core / 64] |= 1 << (core % 64));
                Ok(())
            };
            assert_eq!(ask(kernel).unwrap(), cores, "{words} words");
        }
        for refusal in [libc::EINVAL, libc::ESRCH] {
            let refused = ask(|_| Err(io::Error::from_raw_os_error(refusal))).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(refusal));
        }
    }

    #[test]
    fn a_thread_is_confined_and_set_free() {
        let before = allowed(None).unwrap();
        confine(&before[before.len() - 1..]).unwrap();
        assert_eq!(allowed(None).unwrap(), before[before.len() - 1..]);
        confine(&before).unwrap();
        assert_eq!(allowed(None).unwrap(), before);
        assert_eq!(confine(&[]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
