//! What a process has from whoever started it: children that leave no status, a limit of the length of files.

use std::{os::unix::fs::symlink, path::Path};

use global_arrays::prelude::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    checks::{SOON, run, says},
    programs::send_own,
    runner::{Case, case, program},
};

/// The end of each rank is seen, and what `SIGCHLD` does is the same afterwards, and in the ranks.
fn no_statuses() {
    extern "C" fn take(_: libc::c_int) {
        // SAFETY: a system call on no memory, which may be made in a handler.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
    }
    let take = take as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for (handler, flags) in [(libc::SIG_IGN, 0), (libc::SIG_DFL, libc::SA_NOCLDWAIT), (take, 0), (take, libc::SA_NOCLDWAIT)] {
        choose(handler, flags);
        let is_as_chosen = || (chosen().sa_sigaction, chosen().sa_flags & libc::SA_NOCLDWAIT) == (handler, flags);
        let launch = || Launch::new().network("shared_memory").ranks(2);
        let body = |job: &Job| {
            assert!(is_as_chosen());
            job.sync()
        };
        launch().run(body).expect("a healthy job");
        assert!(is_as_chosen());
        let killed = |job: &Job| {
            if job.rank() == 1 {
                send_own(libc::SIGKILL);
            }
            job.sync()
        };
        let words = launch().run(killed).expect_err("a rank is killed").to_string();
        says(&words, &["rank 1", "SIGKILL"]);
        assert!(is_as_chosen());
    }
}

fn choose(handler: libc::sighandler_t, flags: libc::c_int) {
    let action = libc::sigaction { sa_sigaction: handler, sa_flags: flags, ..chosen() };
    // SAFETY: a whole `sigaction`, whose handler is none or may run at any point.
    assert_eq!(unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut()) }, 0);
}

fn chosen() -> libc::sigaction {
    // SAFETY: zeros are a `sigaction`.
    let mut action = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing but the value.
    assert_eq!(unsafe { libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action) }, 0);
    action
}

/// Each file that would be too long is an error that names the limit, on every network.
fn short_files() {
    const ADVICE: &str = "ulimit -f unlimited";
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = |current| setrlimit(Resource::Fsize, Rlimit { current, maximum }).expect("a lower limit");
    for (network, bytes) in [("shared_memory", 0), ("shared_memory", 4096), ("threads", 0), ("threads:unmapped", 1 << 20)] {
        limit(Some(bytes));
        let refused: Result<(), Error> = Launch::new().network(network).ranks(2).run(|job| job.sync());
        // What this process prints may go to a file.
        limit(maximum);
        says(&refused.expect_err("too short files").to_string(), &[ADVICE, &format!("may have {bytes} bytes")]);
    }
    let path = std::env::temp_dir().join(format!("short-{}.npy", std::process::id()));
    let save = |job: &Job| {
        let short = GlobalArray::<f64, Ix1>::builder(job, [100]).fill(1.0).create()?;
        let long = GlobalArray::<f64, Ix1>::builder(job, [1000]).fill(2.0).create()?;
        limit(Some(4096));
        short.save(&path)?;
        says(&long.save(&path).expect_err("a file beyond the limit").to_string(), &["save", ADVICE, "8128 bytes"]);
        assert_eq!(GlobalArray::<f64, Ix1>::from_file(job, &path)?.get(..)?.sum(), 100.0);
        job.sync()
    };
    for network in ["shared_memory", "threads"] {
        limit(maximum);
        let saved = Launch::new().network(network).ranks(2).run(save);
        limit(maximum);
        saved.expect("an error of one call");
    }
    std::fs::remove_file(&path).expect("the short file");
    let [trace, device] = ["json", "device.json"].map(|ending| Path::new(&path).with_extension(ending));
    let traced = |file: &Path, bytes| {
        let outcome = Launch::new().network("threads").ranks(2).trace(file).run(|job| {
            (0..100).try_for_each(|_| job.sync())?;
            limit(Some(bytes));
            job.sync()
        });
        limit(maximum);
        outcome
    };
    says(&traced(&trace, 4096).expect_err("a trace beyond the limit").to_string(), &[ADVICE]);
    std::fs::write(&trace, "an earlier one").expect("a short file");
    says(&traced(&trace, 0).expect_err("a trace beyond the limit").to_string(), &[ADVICE]);
    assert_eq!(std::fs::read(&trace).expect("the file"), b"an earlier one");
    // A device has no length.
    symlink("/dev/null", &device).expect("a link");
    traced(&device, 0).expect("no limit");
    let _ = [trace, device].map(std::fs::remove_file);
}

const PROGRAMS: &[(&str, fn())] = &[("ends_without_statuses", no_statuses), ("short_files", short_files)];

pub(crate) fn programs() -> Vec<Case> {
    PROGRAMS.iter().map(|&(name, body)| program(name, body)).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let one = |&(name, _): &(&'static str, fn())| {
        case(format!("inherited::{name}"), move || {
            let (status, text) = run(name, &[], 2 * SOON);
            assert_eq!(status, Some(0), "{text}");
        })
    };
    PROGRAMS.iter().map(one).collect()
}
