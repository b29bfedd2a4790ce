//! Machines for ranks that a launcher started on one: a rank that gives its host another name is taken for one of another machine, and
//! shares no memory with those whose host has a different name. The name is that of the process alone (a UTS namespace); that takes root.

use std::{
    env,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// So many ranks are to be on each machine.
pub(crate) const VARIABLE: &str = "GA_TEST_MACHINES";

/// The name of the host before it was changed; from then on the process has one of its own.
static OWN: OnceLock<Vec<u8>> = OnceLock::new();

/// Ranks of each machine; 0 if all are on one.
static EACH: AtomicUsize = AtomicUsize::new(0);

/// How many machines so many ranks are on.
pub(crate) fn of(ranks: usize) -> usize {
    ranks.checked_div(EACH.load(Ordering::Relaxed)).map_or(1, |machines| machines.max(1))
}

/// Puts this rank on a machine of `ranks` ranks, or back on the one that it was started on.
pub(super) fn enter(ranks: Option<usize>) {
    EACH.store(ranks.unwrap_or(0), Ordering::Relaxed);
    let Some(ranks) = ranks else {
        return OWN.get().into_iter().for_each(|name| rename(name));
    };
    OWN.get_or_init(|| {
        let name = rustix::system::uname().nodename().to_bytes().to_vec();
        // SAFETY: takes no pointers.
        if unsafe { libc::unshare(libc::CLONE_NEWUTS) } != 0 {
            super::skip("a host name of its own needs root");
        }
        name
    });
    let rank =
        ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"].iter().find_map(|name| env::var(name).ok()?.parse::<usize>().ok());
    let rank = rank.expect("a launcher says which rank this is");
    rename(format!("machine-{}", rank / ranks).as_bytes());
}

/// The same by the variable.
pub(super) fn enter_by_variable() {
    if let Ok(ranks) = env::var(VARIABLE) {
        enter(Some(ranks.parse().expect("a number of ranks")));
    }
}

fn rename(name: &[u8]) {
    // SAFETY: reads so many bytes.
    assert_eq!(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }, 0, "naming the host");
}
