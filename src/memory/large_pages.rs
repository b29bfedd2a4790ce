//! A memory file with large pages, without privileges.
//!
//! Random accesses to much memory spend their time on page-table walks, which pages of 2 MiB make rare. Files of `memfd_create`
//! (`shmem_enabled`) and hugetlbfs need an administrator for them. But every user may mount a tmpfs with `huge=always` in a user
//! namespace.
//!
//! So a child makes the namespaces, mounts a tmpfs nowhere, opens a file without a name in it, passes it back over a socket and ends. The
//! file keeps the file system. Where any of this is forbidden (containers, hardened kernels), pages are small.

use std::{
    env,
    ffi::{CStr, c_int, c_void},
    fs,
    io::{IoSlice, IoSliceMut},
    mem::{self, MaybeUninit},
    time::Duration,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Mode, OFlags, open, openat},
    io::write,
    mm::{Advice, madvise},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
        sockopt::{Timeout, set_socket_timeout},
    },
    param::page_size,
    process::{Pid, WaitOptions, getgid, getuid, waitpid},
    thread::{UnshareFlags, unshare_unsafe},
};

/// Bytes of a large page. Systems whose large pages are larger do not use them here: each rank takes at least one.
pub(crate) const LARGE: usize = 2 << 20;

/// How long to look for what the child sent; it has ended by then.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of the child's stack.
const STACK: usize = 64 << 10;

/// A file without a name whose pages are large where the kernel finds any; `None` if it may not be had.
pub(crate) fn file() -> Option<OwnedFd> {
    // Sanitizers cannot follow a child that shares their memory.
    if cfg!(any(miri, global_arrays_portable)) || is_under_valgrind() {
        return None;
    }
    let size = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok()?;
    if size.trim().parse() != Ok(LARGE) {
        return None;
    }
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()?;
    set_socket_timeout(&ours, Timeout::Recv, Some(PATIENCE)).ok()?;
    // The same user and group inside and outside.
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let (user, group) = (format!("{user} {user} 1"), format!("{group} {group} 1"));
    let giving = Giving { socket: theirs, user, group };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: zeros are a set of signals; both calls change this thread's mask and nothing else, and get sets that live.
    let mask = unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    // SAFETY: this thread sleeps until the child has ended, so what it lends lives, its stack included. The child only makes
    // system calls on memory of its own, whatever locks other threads hold, and no handler of a signal runs in it.
    let child = unsafe { libc::clone(child, stack.as_mut_ptr_range().end.cast(), flags, (&raw const giving).cast_mut().cast()) };
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut()) };
    drop(giving);
    let child = (child != -1).then(|| Pid::from_raw(child)).flatten()?;
    let file = take(&ours);
    // It has ended. Whoever reaps all children may have reaped it already.
    while matches!(waitpid(Some(child), WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
    file
}

/// Asks for large pages in memory that is about to be written for the first time. A hint.
pub(crate) fn wish<T>(memory: &mut [T]) {
    let bytes = size_of_val(memory);
    if bytes >= LARGE {
        let start = memory.as_mut_ptr().cast::<u8>();
        let start = start.wrapping_add(start.align_offset(page_size()));
        // SAFETY: whole pages of memory that is borrowed; the advice changes no contents.
        let _ = unsafe { madvise(start.cast(), bytes - page_size(), Advice::LinuxHugepage) };
    }
}

/// Whether this process runs under valgrind, which makes a copy of a process that is to share its parent's memory.
pub(super) fn is_under_valgrind() -> bool {
    // What valgrind loads into each program.
    env::var_os("LD_PRELOAD").is_some_and(|names| names.as_encoded_bytes().windows(9).any(|name| name == b"vgpreload"))
}

/// What the child needs, all made before it is.
struct Giving {
    socket: OwnedFd,
    user: String,
    group: String,
}

/// A child in this process's memory: a copy would cost the tables of all its pages, and afterwards a fault for each that is
/// written (measured, 2 GiB: 0.1 s and 0.5 s).
extern "C" fn child(giving: *mut c_void) -> c_int {
    // SAFETY: `file` lends it until the child has ended.
    let giving = unsafe { &*giving.cast::<Giving>() };
    c_int::from(give(&giving.socket, giving.user.as_bytes(), giving.group.as_bytes()).is_err())
}

/// In the child: system calls only, no allocation.
fn give(socket: &OwnedFd, user: &[u8], group: &[u8]) -> rustix::io::Result<()> {
    // SAFETY: file descriptors stay shared with nobody; only the name spaces of this short-lived process change.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)? };
    // A file system has owners, and they must exist in the new name space: the same as outside.
    set(c"/proc/self/setgroups", b"deny")?;
    set(c"/proc/self/uid_map", user)?;
    set(c"/proc/self/gid_map", group)?;
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"huge", c"always")?;
    // Beyond all memory `fallocate` is an error and not a case for the kernel's killer.
    fsconfig_set_string(&context, c"size", c"100%")?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = openat(&mount, c".", flags, Mode::RUSR | Mode::WUSR)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[IoSlice::new(b"f")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn set(path: &CStr, value: &[u8]) -> rustix::io::Result<()> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(&file, value).map(|_| ())
}

fn take(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, fallocate, fstat, ftruncate};

    /// Where the machine has such files, a committed page of them is a large one.
    #[test]
    fn a_byte_takes_a_large_page() {
        // Where they are forbidden there is nothing to test.
        let Some(file) = file() else { return };
        ftruncate(&file, 64 * LARGE as u64).unwrap();
        fallocate(&file, FallocateFlags::empty(), 3 * LARGE as u64, 1).unwrap();
        let blocks = fstat(&file).unwrap().st_blocks as usize * 512;
        assert!(blocks == LARGE || blocks == 4096, "{blocks} bytes: one page, small only if memory is fragmented");
    }
}
