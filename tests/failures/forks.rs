//! Ranks that fork, and what their children must not do: share the parent's memory, act for it, or end its job.
//!
//! Each program ends well, and each of its children as the program says.

use std::{
    io::{Read, Write},
    os::unix::process::CommandExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
    time::Duration,
};

use global_arrays::{Bootstrap, prelude::*};
use rustix::process::{Pid, Signal as Kill, WaitOptions, WaitStatus, kill_process, waitpid};

use crate::{
    checks::{self, BOTH},
    programs::{self, Body, CULPRIT},
    runner::{Case, case, program},
};

type Numbers = GlobalArray<u64, Ix1>;

const LEN: usize = 30;

/// The memory file of a job.
const MEMORY: &str = "/memfd:global-arrays (deleted)";

/// Their ranks hold an array of ones.
const BODIES: &[(&str, Body)] = &[
    ("a_child_has_no_job", |job| {
        let mut a = ones(job)?;
        let mut padded = GlobalArray::<u64, Ix1>::builder(job, [LEN]).ghosts([1]).fill(1).create()?;
        let (locks, counter, signal) = (Locks::with_count(job, 2)?, Counter::new(job)?, Signal::new(job)?);
        job.sync()?;
        let update = padded.update_ghosts_nb()?;
        let held = if job.rank() == CULPRIT { Some(locks.lock(0)?) } else { None };
        if job.rank() == CULPRIT {
            let (get, put) = (a.get_nb(..)?, a.put_nb(.., Array1::ones(LEN))?);
            match fork() {
                None => in_child(|| {
                    every_call_fails(job, &mut a);
                    let _ = job.stats();
                    for error in [
                        update.wait().err(),
                        counter.fetch_add(1).err(),
                        counter.get().err(),
                        counter.reset(3).err(),
                        locks.try_lock(1).err(),
                        locks.lock(1).err(),
                        signal.at(0, 0).notify().err(),
                        signal.count(0).err(),
                        signal.wait_at_least(0, 1).err(),
                    ] {
                        is_over(error);
                    }
                    let _ = (get.test(), put.test(), get.wait(), put.wait());
                    drop((held, a));
                }),
                Some(child) => assert_eq!(end_of(child).exit_status(), Some(0)),
            }
            get.wait()?;
            put.wait()?;
        }
        update.wait()?;
        job.sync()?;
        if job.rank() != CULPRIT {
            assert!(locks.try_lock(0)?.is_none(), "the child gave back the lock of its parent");
        }
        assert_eq!((a.get(..)?.sum(), counter.get()?, signal.count(0)?), (LEN as u64, 0, 0));
        job.barrier()?;
        drop(held);
        job.sync()
    }),
    ("a_child_unwinds_out_of_an_epoch", |job| {
        let mut a = ones(job)?;
        let mut child = None;
        let epoch = catch_unwind(AssertUnwindSafe(|| {
            a.owner_epoch(|mut part| {
                part.fill(2);
                if job.rank() == CULPRIT {
                    child = fork();
                    assert!(child.is_some(), "the child's own panic");
                }
            })
        }));
        if job.rank() == CULPRIT && child.is_none() {
            in_child(|| assert!(epoch.is_err()));
        }
        epoch.expect("no panic here")?;
        child.into_iter().for_each(|child| assert_eq!(end_of(child).exit_status(), Some(0)));
        assert_eq!(a.get(..)?.sum(), 2 * LEN as u64);
        job.sync()
    }),
    ("a_child_writes_its_parents_slice", |job| {
        let mut a = ones(job)?;
        a.owner_epoch(|mut part| {
            if job.rank() == CULPRIT {
                match fork() {
                    None => in_child(|| {
                        // What the parent's memory must not be replaced by.
                        (0..64).for_each(|_| std::mem::forget(vec![0_u8; 8 << 20]));
                        part.fill(7);
                    }),
                    Some(child) => assert!(has_faulted(end_of(child))),
                }
            }
        })?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    // Not by libc, so that no handler of ours runs.
    ("a_bare_child_writes_its_parents_array", |job| {
        let mut a = ones(job)?;
        a.owner_epoch(|mut part| {
            if job.rank() == CULPRIT {
                // SAFETY: a child of this process, which writes its memory and exits.
                match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
                    0 => in_child(|| part.fill(7)),
                    child => {
                        let child = Pid::from_raw(child as i32).expect("a child");
                        assert!(has_faulted(end_of(child)));
                    }
                }
            }
        })?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    ("a_child_leaves_a_scope", |job| {
        let a = ones(job)?;
        job.sync()?;
        let (mut buffer, mut child) = (Array1::zeros(LEN), None);
        let scope = job.scope(|scope| {
            scope.get_into(&a, .., &mut buffer)?;
            if job.rank() == CULPRIT {
                child = fork();
                return child.map(|_| ()).ok_or_else(|| Error::other("the child's own words"));
            }
            Ok(())
        });
        if job.rank() == CULPRIT && child.is_none() {
            in_child(|| assert!(scope.is_err()));
        }
        scope?;
        child.into_iter().for_each(|child| assert_eq!(end_of(child).exit_status(), Some(0)));
        assert_eq!(buffer.sum(), LEN as u64);
        job.sync()
    }),
    ("a_child_in_a_handler_of_the_program", |job| {
        static ARRAY: AtomicPtr<Numbers> = AtomicPtr::new(std::ptr::null_mut());
        static REFUSED: AtomicBool = AtomicBool::new(false);
        unsafe extern "C" fn handler() {
            // SAFETY: null, or an array that lives while the program forks.
            if let Some(a) = unsafe { ARRAY.load(Ordering::Relaxed).as_ref() } {
                REFUSED.store(a.store([0], 9).is_err() && a.load([0]).is_err(), Ordering::Relaxed);
            }
        }
        let a = Box::new(ones(job)?);
        if job.rank() == CULPRIT {
            ARRAY.store((&raw const *a).cast_mut(), Ordering::Relaxed);
            // SAFETY: the handler touches atomics and what the crate must refuse.
            assert_eq!(unsafe { libc::pthread_atfork(None, None, Some(handler)) }, 0);
            match fork() {
                None => in_child(|| assert!(REFUSED.load(Ordering::Relaxed))),
                Some(child) => assert_eq!(end_of(child).exit_status(), Some(0)),
            }
            ARRAY.store(std::ptr::null_mut(), Ordering::Relaxed);
        }
        job.sync()?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    ("a_child_ends_anyhow", |job| {
        let a = ones(job)?;
        job.sync()?;
        if job.rank() == CULPRIT {
            for (end, status) in [(0, Some(0)), (3, Some(3)), (-1, None)] {
                match fork() {
                    None if end < 0 => std::process::abort(),
                    None => std::process::exit(end),
                    Some(child) => assert_eq!(end_of(child).exit_status(), status),
                }
            }
        }
        job.sync()?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    ("a_child_returns_well", |job| {
        let a = ones(job)?;
        job.sync()?;
        if job.rank() == CULPRIT {
            let Some(child) = fork() else { return Ok(()) };
            assert!(end_of(child).exited());
        }
        job.sync()?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    ("a_child_returns_an_error", |job| {
        let a = ones(job)?;
        job.sync()?;
        if job.rank() == CULPRIT {
            let Some(child) = fork() else { return Err(Error::other("the child's own words")) };
            assert!(end_of(child).exited());
        }
        job.sync()?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    ("a_child_starts_a_job_of_its_own", |job| {
        let a = ones(job)?;
        job.sync()?;
        if job.rank() == CULPRIT {
            match fork() {
                None => in_child(|| {
                    let own = Launch::new().network("shared_memory").ranks(2).run(|own| {
                        is_over(a.load([0]).err());
                        assert_eq!(ones(own)?.get(..)?.sum(), LEN as u64);
                        own.sync()
                    });
                    own.unwrap_or_else(|error| panic!("{error}"));
                    let launched = ["PMI_RANK", "OMPI_COMM_WORLD_RANK"].iter().any(|name| std::env::var_os(name).is_some());
                    if launched {
                        // The connections are the parent's.
                        for launch in
                            [Launch::new().network("mpi"), Launch::new().network("shared_memory").bootstrap(Bootstrap::Pmi)]
                        {
                            let refused = launch.run(|own| own.sync()).expect_err("a job on the parent's connections");
                            assert!(matches!(refused, Error::Launch(_)), "{refused}");
                        }
                    }
                }),
                Some(child) => assert_eq!(end_of(child).exit_status(), Some(0)),
            }
        }
        job.sync()?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    ("a_child_keeps_nothing", |job| {
        let a = ones(job)?;
        job.sync()?;
        if job.rank() == CULPRIT {
            assert_eq!(memory_files("self"), 1, "the memory file of a job has another name");
            let (mut hear, mut say) = std::io::pipe().map_err(Error::other)?;
            match fork() {
                None => in_child(|| {
                    say.write_all(b"!").expect("a pipe");
                    std::thread::sleep(Duration::from_secs(60));
                }),
                Some(child) => {
                    // It has come out of the fork, with all handlers.
                    hear.read_exact(&mut [0]).map_err(Error::other)?;
                    let own = child.as_raw_nonzero().to_string();
                    let maps = std::fs::read_to_string(format!("/proc/{own}/maps")).map_err(Error::other)?;
                    let kept = memory_files(&own);
                    kill_process(child, Kill::KILL).map_err(Error::other)?;
                    end_of(child);
                    assert!(kept == 0 && !maps.contains(MEMORY), "{kept}\n{maps}");
                }
            }
        }
        job.sync()?;
        assert_eq!(a.get(..)?.sum(), LEN as u64);
        job.sync()
    }),
    ("a_rank_runs_commands", |job| {
        let mut a = ones(job)?;
        a.owner_epoch(|mut part| {
            let shell = || {
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $((6 * 7))"]);
                shell
            };
            let said = |mut shell: Command| shell.output().expect("a shell").stdout;
            assert_eq!(said(shell()), b"42\n");
            let mut elsewhere = shell();
            elsewhere.current_dir("/");
            assert_eq!(said(elsewhere), b"42\n");
            let mut prepared = shell();
            // SAFETY: nothing is done between fork and exec.
            unsafe { prepared.pre_exec(|| Ok(())) };
            assert_eq!(said(prepared), b"42\n");
            part.fill(2);
        })?;
        assert_eq!(a.get(..)?.sum(), 2 * LEN as u64);
        job.sync()
    }),
];

fn ones(job: &Job) -> Result<Numbers, Error> {
    GlobalArray::builder(job, [LEN]).fill(1).create()
}

fn is_over(error: Option<Error>) {
    let error = error.expect("the job is the parent's");
    assert!(matches!(error, Error::JobEnded { .. }) && error.to_string().contains("was forked by a rank"), "{error}");
}

/// What a child finds of its parent's job and array.
fn every_call_fails(job: &Job, a: &mut Numbers) {
    let (all, mut some) = (Array1::ones(LEN), [0; 2]);
    for error in [
        a.load([0]).err(),
        a.store([0], 9).err(),
        a.get(..).err(),
        a.get(s![3..9;2]).err(),
        a.put(.., &all).err(),
        a.accumulate(.., 1, &all).err(),
        a.fetch_add([0], 1).err(),
        a.gather(&[[0], [LEN - 1]], &mut some).err(),
        a.scatter(&[[0], [LEN - 1]], &some).err(),
        a.scatter_accumulate(&[[0], [LEN - 1]], 1, &some).err(),
        a.get_nb(..).err(),
        a.put_nb(.., all.clone()).err(),
        a.accumulate_nb(.., 1, all.clone()).err(),
        job.scope(|scope| scope.put(a, .., &all)).err(),
        a.fence().err(),
        job.fence(0).err(),
        a.fill(3).err(),
        a.sum().err(),
        a.duplicate("b").err(),
        job.sync().err(),
        job.barrier().err(),
        job.all_reduce_one(1, ops::sum).err(),
        job.broadcast(0, &mut [0_u8]).err(),
        job.subgroup(&[job.rank()]).err(),
        job.split(0).err(),
        ones(job).err(),
        // SAFETY: this process has one thread, and the part is used by nobody.
        unsafe { a.access() }.err(),
        a.read_epoch(|_, _| ()).err(),
    ] {
        is_over(error);
    }
    a.owner_epoch(|_| ()).expect_err("the job is the parent's");
    // What is not an operation of the job is as it was, or nothing.
    assert_eq!((job.size(), a.shape()), (3, &[LEN][..]));
    let _ = (job.memory(), job.stats(), job.trim());
}

/// Splits this process, as a library would; nothing for the child.
pub(crate) fn fork() -> Option<Pid> {
    // SAFETY: the child of a process with threads calls what the crate must refuse, and the allocator, which libc makes ready for it.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        child => Pid::from_raw(child),
    }
}

/// The rest of a child's life; its status is 0 if nothing panics.
pub(crate) fn in_child(body: impl FnOnce()) -> ! {
    let status = catch_unwind(AssertUnwindSafe(body)).is_err();
    // SAFETY: ends the process.
    unsafe { libc::_exit(i32::from(status)) }
}

pub(crate) fn end_of(child: Pid) -> WaitStatus {
    waitpid(Some(child), WaitOptions::empty()).expect("a child").expect("its end").1
}

/// By the signal, or by what ThreadSanitizer makes of it.
fn has_faulted(end: WaitStatus) -> bool {
    end.terminating_signal() == Some(libc::SIGSEGV) || end.exit_status() == Some(66)
}

/// How many descriptors of jobs' memory a process has; by the name under which the kernel shows it, without large pages.
fn memory_files(process: &str) -> usize {
    let folder = Path::new("/proc").join(process).join("fd");
    let links = std::fs::read_dir(folder).expect("a process").filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link == Path::new(MEMORY)).count()
}

pub(crate) fn programs() -> Vec<Case> {
    BODIES.iter().map(|&(name, body)| program(name, move || programs::end(programs::job(body)))).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let launched: &[&str] = match crate::runner::launched::network() {
        Some("mpi") => &["mpi", "mpi:nodes_of_2"],
        Some(_) => &["launched"],
        None => &[],
    };
    for &(name, _) in BODIES {
        for &network in BOTH.iter().chain(launched) {
            cases.push(case(format!("{network}::{name}"), move || {
                // Small enough for a child to fill what is left free in its place.
                let variables = [("GA_NETWORK", network), ("GA_RANKS", "3"), ("GA_HEAP", "16M"), ("GA_LARGE_PAGES", "0")];
                let (status, text) = checks::run(name, &variables, Duration::from_secs(20));
                assert_eq!(status, Some(0), "{text}");
            }));
        }
    }
    cases
}
