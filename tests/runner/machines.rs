//! Machines for ranks that a launcher started on one: a rank that gives its host another name is taken for one of another machine, and
//! shares no memory with those whose host has a different name. The name is that of the process alone (a UTS namespace); that takes root.

use std::{
    env,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// So many consecutive ranks are to be on each machine; or, with [`IN_TURN`] before the number, each rank on another of so many machines, in turn.
pub(crate) const VARIABLE: &str = "GA_TEST_MACHINES";

/// As in `in_turn_2`.
const IN_TURN: &str = "in_turn_";

/// The name of the host before it was changed; from then on the process has one of its own.
static OWN: OnceLock<Vec<u8>> = OnceLock::new();

/// Ranks of each machine; 0 if all are on one.
static EACH: AtomicUsize = AtomicUsize::new(0);
/// How many machines have a rank in turn; 0 if they have consecutive ones.
static MACHINES: AtomicUsize = AtomicUsize::new(0);

/// How many machines so many ranks are on.
pub(crate) fn of(ranks: usize) -> usize {
    match MACHINES.load(Ordering::Relaxed) {
        0 => Some(EACH.load(Ordering::Relaxed)).filter(|&each| each > 0).map_or(1, |each| ranks.div_ceil(each)),
        machines => machines.min(ranks),
    }
}

/// Puts this rank on the machine that the value of the variable says, or back on the one that it was started on.
pub(super) fn enter(how: Option<&str>) {
    let number = |how: &str| how.parse::<usize>().expect("a number of ranks or machines");
    let machines = how.and_then(|how| how.strip_prefix(IN_TURN)).map_or(0, number);
    let each = how.filter(|_| machines == 0).map_or(0, number);
    EACH.store(each, Ordering::Relaxed);
    MACHINES.store(machines, Ordering::Relaxed);
    if how.is_none() {
        return OWN.get().into_iter().for_each(|name| rename(name));
    }
    OWN.get_or_init(|| {
        let name = rustix::system::uname().nodename().to_bytes().to_vec();
        // SAFETY: takes no pointers.
        if unsafe { libc::unshare(libc::CLONE_NEWUTS) } != 0 {
            super::skip("a host name of its own needs root");
        }
        name
    });
    let rank = ["GA_RANK", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"]
        .iter()
        .find_map(|name| env::var(name).ok()?.parse::<usize>().ok());
    let rank = rank.expect("a launcher says which rank this is");
    let machine = if machines > 0 { rank % machines } else { rank / each };
    rename(format!("machine-{machine}").as_bytes());
}

/// The same by the variable.
pub(super) fn enter_by_variable() {
    if let Ok(how) = env::var(VARIABLE) {
        enter(Some(&how));
    }
}

fn rename(name: &[u8]) {
    // SAFETY: reads so many bytes.
    assert_eq!(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }, 0, "naming the host");
}
