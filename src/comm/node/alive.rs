//! Watches a rank's process, and sees its end in the first moment.
//!
//! A launcher sees that a process has closed its files, and kills the other ranks within a millisecond. A process descriptor
//! becomes readable only after that. But when a thread begins to end, the kernel first passes on the robust locks that it holds
//! (`pthread_mutexattr_setrobust`). So each rank holds two locks, and a neighbor on each side waits for one: where every core
//! computes, one neighbor may get a core too late. From then on `/proc` shows how the process ended, until its launcher has seen
//! its end.

use std::{
    cell::UnsafeCell,
    fs, io,
    mem::MaybeUninit,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use super::{Fabric, ended_by};

/// The lock is not there yet.
const NONE: u32 = 0;
/// The rank holds it.
const HELD: u32 = 1;
/// The rank gave it back.
const LEFT: u32 = 2;
/// The kernel gave it on.
const DIED: u32 = 3;

/// The side of a rank on which its neighbour waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before = 0,
    After = 1,
}

/// A rank's lock for one side, in memory that the ranks of its machine share; zeros until its rank makes it.
#[repr(C)]
pub(super) struct Alive {
    state: AtomicU32,
    lock: UnsafeCell<MaybeUninit<libc::pthread_mutex_t>>,
}

/// What is known of a rank's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It has not said that it lives.
    Unknown,
    Lives,
    /// Its job came to its end.
    Left,
    Died,
}

/// The calling thread's promise that it lives; given back when dropped, by the same thread.
#[derive(Debug)]
pub(crate) struct Held {
    fabric: Arc<Fabric>,
    rank: usize,
    /// Only the thread that took a lock may give it back.
    _not_send: std::marker::PhantomData<std::sync::MutexGuard<'static, ()>>,
}

fn checked(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

impl Alive {
    fn lock(&self) -> *mut libc::pthread_mutex_t {
        self.lock.get().cast()
    }

    /// Its rank calls this, once.
    fn make_and_hold(&self) -> io::Result<()> {
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: memory for attributes.
        checked(unsafe { libc::pthread_mutexattr_init(attributes) })?;
        // SAFETY: initialised attributes; nobody else looks at the lock before the state says that it is there.
        let made = unsafe {
            checked(libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED))
                .and_then(|()| checked(libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST)))
                .and_then(|()| checked(libc::pthread_mutex_init(self.lock(), attributes)))
        };
        // SAFETY: initialised above.
        let _ = unsafe { libc::pthread_mutexattr_destroy(attributes) };
        made?;
        // SAFETY: an initialised lock that nobody holds.
        checked(unsafe { libc::pthread_mutex_lock(self.lock()) })?;
        // Release pairs with the acquire in `wait`: the lock is made, and held.
        self.state.store(HELD, Ordering::Release);
        Ok(())
    }

    fn give_back(&self) {
        self.state.store(LEFT, Ordering::Release);
        // SAFETY: held by this thread since `make_and_hold`.
        let _ = unsafe { libc::pthread_mutex_unlock(self.lock()) };
    }

    /// Waits until the rank no longer holds its lock, for `limit` at most.
    fn wait(&self, limit: Duration) -> Fate {
        match self.state.load(Ordering::Acquire) {
            NONE => return Fate::Unknown,
            LEFT => return Fate::Left,
            DIED => return Fate::Died,
            _ => {}
        }
        let until = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + limit;
        let until = libc::timespec { tv_sec: until.as_secs() as libc::time_t, tv_nsec: until.subsec_nanos().into() };
        // SAFETY: the state said that the lock is made.
        match unsafe { libc::pthread_mutex_timedlock(self.lock(), &raw const until) } {
            0 => {
                // SAFETY: held by this thread now.
                let _ = unsafe { libc::pthread_mutex_unlock(self.lock()) };
                if self.state.load(Ordering::Acquire) == DIED { Fate::Died } else { Fate::Left }
            }
            libc::EOWNERDEAD => {
                self.state.store(DIED, Ordering::Release);
                // SAFETY: held by this thread now, which is to say that what it guards (nothing) is in order.
                let _ = unsafe { (libc::pthread_mutex_consistent(self.lock()), libc::pthread_mutex_unlock(self.lock())) };
                Fate::Died
            }
            _ => Fate::Lives,
        }
    }
}

impl Fabric {
    /// Shows the neighbors of a rank that the process of this thread, which is the rank, lives. Call it once for each rank.
    pub(crate) fn hold(self: &Arc<Self>, rank: usize) -> io::Result<Held> {
        // Relaxed: the release of each lock's state comes behind it.
        self.control(rank).process.store(std::process::id(), Ordering::Relaxed);
        for side in &self.control(rank).alive {
            side.make_and_hold()?;
        }
        Ok(Held { fabric: self.clone(), rank, _not_send: std::marker::PhantomData })
    }

    /// Waits at most `limit` for the end of a rank's process or job. One neighbor of each side may wait.
    pub(crate) fn await_end(&self, rank: usize, side: Side, limit: Duration) -> Fate {
        self.control(rank).alive[side as usize].wait(limit)
    }

    /// How the process of a dead rank ended, in words to stand behind "rank 1".
    pub(crate) fn how_it_died(&self, rank: usize) -> String {
        /// A process that ends begins to do so in all its threads within this.
        const TOGETHER: Duration = Duration::from_millis(20);
        let path = format!("/proc/{}/stat", self.control(rank).process.load(Ordering::Relaxed));
        let stat = || fs::read_to_string(&path).ok();
        let mut found = stat();
        if found.as_deref().is_some_and(goes_on) {
            std::thread::sleep(TOGETHER);
            found = stat();
        }
        match found.as_deref().and_then(status).map(|status| (status.signal(), status.code())) {
            Some((Some(signal), _)) => ended_by(signal),
            Some((None, Some(code))) => format!("called exit({code}) inside the job"),
            _ if found.as_deref().is_some_and(goes_on) => "ended the thread that started its job, and not the job".into(),
            _ => "ended before the job did: by a signal, or it called exit".into(),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.fabric.control(self.rank).alive.iter().for_each(Alive::give_back);
    }
}

/// Returns true if a process is not ending, by its `/proc/<pid>/stat` (field 9, and include/linux/sched.h).
fn goes_on(stat: &str) -> bool {
    const BEHIND_NAME: usize = 9 - 3;
    const PF_EXITING: u32 = 4;
    let flags = || stat.rsplit_once(')')?.1.split_whitespace().nth(BEHIND_NAME)?.parse::<u32>().ok();
    flags().is_some_and(|flags| flags & PF_EXITING == 0)
}

/// The status with which a process ended, from its `/proc/<pid>/stat` (proc(5), field 52). None if it is 0. It is 0 after
/// `exit(0)`, and for a process that this one may not look at.
fn status(stat: &str) -> Option<ExitStatus> {
    const BEHIND_NAME: usize = 52 - 3;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let raw: i32 = fields.split_whitespace().nth(BEHIND_NAME)?.parse().ok()?;
    (raw != 0).then(|| ExitStatus::from_raw(raw))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_holds_lives_and_who_gives_back_has_left() {
        let fabric = Arc::new(Fabric::new(2, 1 << 20, false).unwrap());
        assert_eq!(fabric.await_end(1, Side::Before, LIMIT), Fate::Unknown);
        let held = fabric.hold(1).unwrap();
        let other = fabric.clone();
        let short = std::thread::spawn(move || other.await_end(1, Side::Before, LIMIT)).join().unwrap();
        assert_eq!(short, Fate::Lives);
        let other = fabric.clone();
        let long = std::thread::spawn(move || other.await_end(1, Side::Before, LONG));
        drop(held);
        assert_eq!(long.join().unwrap(), Fate::Left);
        assert_eq!(fabric.await_end(1, Side::Before, LONG), Fate::Left);
    }

    #[test]
    fn who_ends_with_it_has_died() {
        let fabric = Arc::new(Fabric::new(2, 1 << 20, false).unwrap());
        let other = fabric.clone();
        // A thread that ends is to the kernel what a process is that ends.
        std::thread::spawn(move || std::mem::forget(other.hold(0).unwrap())).join().unwrap();
        assert_eq!(fabric.await_end(0, Side::After, LONG), Fate::Died);
        assert_eq!(fabric.await_end(0, Side::Before, LONG), Fate::Died);
        assert_eq!(fabric.await_end(0, Side::After, LONG), Fate::Died);
    }

    #[test]
    fn a_dead_process_says_how_it_ended() {
        let ended = |script: &str| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            // It is there until it was waited for.
            let stat = loop {
                let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
                if stat.contains(") Z ") {
                    assert!(!goes_on(&stat));
                    break stat;
                }
                std::thread::yield_now();
            };
            child.wait().unwrap();
            status(&stat).map(|status| (status.signal(), status.code()))
        };
        assert_eq!(ended("kill -TERM $$"), Some((Some(libc::SIGTERM), None)));
        assert_eq!(ended("kill -KILL $$"), Some((Some(libc::SIGKILL), None)));
        assert_eq!(ended("exit 3"), Some((None, Some(3))));
        assert_eq!(ended("exit 0"), None);
        assert_eq!(status("7 (a) b) S 1 2 3"), None);
        assert!(goes_on(&fs::read_to_string("/proc/self/stat").unwrap()) && !goes_on("7 (a) b) S 1 2 3"));
    }
}
