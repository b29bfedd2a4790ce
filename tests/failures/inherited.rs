//! What a process has from whoever started it: children that leave no status.

use global_arrays::prelude::*;

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

const PROGRAMS: &[(&str, fn())] = &[("ends_without_statuses", no_statuses)];

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
