//! Programs under a launcher: one that offers no way to meet, one that is asked to end, and one that is killed.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::{
    checks::{LAUNCHER, SOON, gone, marked, run, says, says_once},
    runner::{self, Case, case},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = nothing_to_meet_by();
    if let Some(network) = runner::launched::network() {
        cases.push(case(format!("{network}::a_launcher_that_is_asked_to_end"), launcher_is_asked_to_end));
        cases.push(case(format!("{network}::a_launcher_that_is_killed"), launcher_is_killed));
    }
    cases
}

/// A binary without MPI under an `mpirun` or `srun` that offers it no way to meet the others; they are known by the environment.
fn nothing_to_meet_by() -> Vec<Case> {
    let one_of_four: [(&str, &[(&str, &str)]); 3] = [
        ("Open MPI's mpirun", &[("OMPI_COMM_WORLD_RANK", "RANK"), ("OMPI_COMM_WORLD_SIZE", "4")]),
        ("MPICH's mpirun", &[("PMI_RANK", "RANK"), ("PMI_SIZE", "4")]),
        ("srun", &[("SLURM_PROCID", "RANK"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_STEP_ID", "0")]),
    ];
    let start = |variables: &[(&'static str, &'static str)], rank: &'static str, more: &[(&'static str, &'static str)]| {
        let own = variables.iter().map(|&(name, value)| (name, if value == "RANK" { rank } else { value }));
        let all: Vec<_> = own.chain(more.iter().copied()).collect();
        run("says_its_size", &all, SOON)
    };
    let mut cases = Vec::new();
    for (by, variables) in one_of_four {
        cases.push(case(format!("nothing_to_meet_by_under_{}", by.replace([' ', '\''], "_")), move || {
            for rank in ["0", "3"] {
                let (status, text) = start(variables, rank, &[]);
                assert_eq!(status, Some(1), "{text}");
                says(&text, &["Error: cannot start a job", &format!("rank {rank} of 4"), by, "neither PMI nor PMIx"]);
                assert_eq!((text.contains("; start it by"), text.lines().count()), (rank == "0", 1), "{text}");
            }
            for chosen in [("GA_NETWORK", "threads"), ("GA_BOOTSTRAP", "fork")] {
                let (status, text) = start(variables, "3", &[chosen, ("GA_RANKS", "2")]);
                assert_eq!((status, text.trim()), (Some(0), "2 ranks"), "{chosen:?}");
            }
        }));
    }
    cases.push(case("a_batch_script_of_slurm_is_no_rank", move || {
        let script = [("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4"), ("SLURM_PROCID", "RANK")];
        let (status, text) = start(&script, "0", &[("GA_RANKS", "3")]);
        assert_eq!((status, text.trim()), (Some(0), "3 ranks"));
    }));
    cases
}

/// Ranks that compute under a launcher, once all are there.
fn ranks_that_compute(mark: &str, output: &fs::File) -> std::process::Child {
    let launcher = runner::launched::start(3, "prints_and_waits", &[("GA_TEST_MARK", mark)], output);
    let begin = Instant::now();
    while runner::text(output).lines().count() < 3 {
        assert!(begin.elapsed() < SOON + LAUNCHER, "the ranks never came: {}", runner::text(output));
        std::thread::sleep(Duration::from_millis(5));
    }
    launcher
}

/// A batch system ends a job so, at the end of its time: no rank is at fault.
fn launcher_is_asked_to_end() {
    let (mark, output) = (format!("{}-asked", std::process::id()), runner::scratch());
    let mut launcher = ranks_that_compute(&mark, &output);
    runner::launched::end(&mut launcher);
    gone(&mark);
    let text = runner::text(&output);
    says_once(&text);
    assert!(!text.contains("SIGKILL"), "{text}");
}

/// Nobody is left who would end the ranks, or who would remove the files of an MPI library.
fn launcher_is_killed() {
    let (mark, output) = (format!("{}-killed", std::process::id()), runner::scratch());
    let before = runner::leftovers::files();
    let mut launcher = ranks_that_compute(&mark, &output);
    launcher.kill().and_then(|()| launcher.wait()).expect("killing the launcher");
    let begin = Instant::now();
    while !marked(&mark).is_empty() && begin.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    gone(&mark);
    let left = runner::leftovers::remove_all_but(&before);
    let in_memory = left.iter().any(|path| path.starts_with("/dev/shm"));
    assert!(cfg!(feature = "mpi") || !in_memory, "the ranks left {left:?}");
}
