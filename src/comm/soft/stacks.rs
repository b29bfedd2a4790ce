//! Stacks of coroutines: one mapping, with an untouchable page below each.
//!
//! To the kernel, a page with other rights is a mapping of its own, one of at most `vm.max_map_count`. Since Linux 6.13 a page can be
//! guarded without that. Valgrind, unless stacks are registered, takes a switch between two nearby ones for growth.

use std::{ffi::c_int, io, num::NonZeroUsize, ptr::NonNull};

use corosensei::stack::{Stack, StackPointer};

const PAGE: usize = 4096;

/// `MADV_GUARD_INSTALL` of Linux 6.13.
const GUARD_INSTALL: c_int = 102;

/// Mappings that are left for all else.
const OTHERS: usize = 1000;

/// Stacks of coroutines, with guards.
#[derive(Debug)]
pub(super) struct Stacks {
    base: NonNull<u8>,
    /// Bytes of each, with its guard.
    each: usize,
    count: usize,
}

impl Stacks {
    /// Maps `count` stacks of at least `size` bytes.
    pub(super) fn new(count: usize, size: usize) -> io::Result<Self> {
        let each = size.next_multiple_of(PAGE) + PAGE;
        let len = each.checked_mul(count).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: a new mapping, wherever there is room.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let stacks = Stacks { base, each, count };
        // A large page would be the memory of several stacks at the first touch. A refusal costs memory only.
        // SAFETY: the mapping was made just now; nothing lies there.
        unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_NOHUGEPAGE) };
        let guards = (0..count).map(|place| stacks.lowest(place));
        for guard in guards {
            // SAFETY: a page of the mapping; nothing lies there.
            if unsafe { libc::madvise(guard.as_ptr().cast(), PAGE, GUARD_INSTALL) } != 0 {
                return stacks.protect();
            }
        }
        Ok(stacks)
    }

    /// Guards by other rights.
    fn protect(self) -> io::Result<Self> {
        let room = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse::<usize>().ok());
        if room.is_some_and(|room| 2 * self.count + OTHERS > room) {
            return Err(io::Error::other(format!(
                "{} stacks with guards need {} mappings, and the kernel allows {} (sysctl vm.max_map_count); Linux 6.13 needs none for them",
                self.count,
                2 * self.count,
                room.unwrap_or(0)
            )));
        }
        for place in 0..self.count {
            // SAFETY: a page of the mapping; nothing lies there.
            if unsafe { libc::mprotect(self.lowest(place).as_ptr().cast(), PAGE, libc::PROT_NONE) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(self)
    }

    /// The lowest byte of a stack, of its guard.
    fn lowest(&self, place: usize) -> NonNull<u8> {
        assert!(place < self.count, "stack {place} of {}", self.count);
        // SAFETY: inside the mapping, as was just checked.
        unsafe { self.base.add(place * self.each) }
    }

    /// One of the stacks. Each is for one coroutine at a time, and not for longer than this lives.
    pub(super) fn stack(&self, place: usize) -> StackSlot {
        let limit = self.lowest(place).addr();
        let base = limit.saturating_add(self.each);
        StackSlot { limit, base, told: valgrind::request([valgrind::STACK_REGISTER, limit.get(), base.get() - 1]) }
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and every coroutine that ran on it has ended.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.count * self.each) };
    }
}

/// What a program says to valgrind: instructions that do nothing anywhere else.
mod valgrind {
    pub(super) const STACK_REGISTER: usize = 0x1501;
    pub(super) const STACK_DEREGISTER: usize = 0x1502;

    /// The answer to a request with two arguments; zero where valgrind does not run.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) fn request([request, first, second]: [usize; 3]) -> usize {
        let asked = [request, first, second, 0, 0, 0];
        let mut answer = 0_usize;
        // SAFETY: by all four the register is rotated by 128 bits, and is as it was; the exchange changes nothing. Valgrind reads the six words.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") &raw const asked, inout("rdx") answer, options(nostack, readonly)
            );
        }
        answer
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub(super) fn request(_: [usize; 3]) -> usize {
        0
    }
}

/// A stack.
#[derive(Debug)]
pub(super) struct StackSlot {
    limit: NonZeroUsize,
    base: NonZeroUsize,
    /// What valgrind knows it by.
    told: usize,
}

impl Drop for StackSlot {
    fn drop(&mut self) {
        valgrind::request([valgrind::STACK_DEREGISTER, self.told, 0]);
    }
}

// SAFETY: `Stacks` has a guard below each stack, and at least a page above that.
unsafe impl Stack for StackSlot {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_lie_apart() {
        for stacks in [Stacks::new(3, 10_000).unwrap(), Stacks::new(3, 10_000).unwrap().protect().unwrap()] {
            let [first, second] = [0, 1].map(|place| stacks.stack(place));
            assert_eq!(first.base, second.limit);
            assert_eq!((first.base.get() - first.limit.get(), first.base.get() % PAGE), (3 * PAGE + PAGE, 0));
            // The highest byte and the lowest one above the guard.
            for byte in [stacks.each - 1, PAGE] {
                // SAFETY: inside the first stack.
                unsafe { stacks.base.add(byte).write_volatile(1) };
            }
        }
    }

    #[test]
    fn too_many_guards_name_the_limit() {
        let stacks = Stacks::new(1 << 20, PAGE).unwrap();
        let said = stacks.protect().unwrap_err().to_string();
        assert!(said.contains("1048576 stacks") && said.contains("vm.max_map_count"), "{said}");
    }
}
