//! Jobs that end well.

use crate::{
    BOTH, Where,
    runner::{self, Case, case},
    script, spawn, started,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, name) in BOTH {
        cases.push(case(format!("{name}::ranks_meet_for_job_after_job"), move || ranks_meet(at)));
        cases.push(case(format!("{name}::programs_without_a_job"), move || programs_without_a_job(at)));
        cases.push(case(format!("{name}::what_ranks_get"), move || what_ranks_get(at)));
    }
    cases.push(case("on_hosts::ranks_of_two_machines_meet", ranks_of_two_machines_meet));
    cases.push(case("here::ranks_are_those_of_the_last_launcher", ranks_are_those_of_the_last_launcher));
    cases
}

fn ranks_meet(at: Where) {
    for ranks in [1, 2, 3] {
        let lines = (0..3 * ranks).map(|k| format!("[{0}] rank {0} of {ranks} reads {1}", k / 3, ranks * (ranks + 1) / 2));
        let lines: Vec<String> = lines.collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        started(at, ranks, &["--tag"], "three_jobs", &[("GA_NETWORK", "shared_memory")]).end().prints(&lines);
    }
}

fn programs_without_a_job(at: Where) {
    script(at, 3, &[], "echo $GA_RANK of $GA_RANKS").end().prints(&["0 of 3", "1 of 3", "2 of 3"]);
}

/// The folder, `GA_` variables as they are here and others by name.
fn what_ranks_get(at: Where) {
    let print = "pwd; echo $GA_HEAP $OTHER ${GA_STALE-none} ${GA_TOKEN_FILE-none}";
    let here = std::fs::canonicalize("src").or_else(|_| std::fs::canonicalize(".")).expect("a folder");
    let ended = spawn(at, 1, &["-x", "OTHER"], &["sh", "-c", print], |command| {
        command.envs([("GA_HEAP", "1 G"), ("OTHER", "it's"), ("GA_TOKEN_FILE", "/none")]).current_dir(&here)
    });
    assert_eq!(ended.end().output, format!("{}\n1 G it's none none\n", here.display()));
}

/// They share no memory: each gives its host a name of its own.
fn ranks_of_two_machines_meet() {
    let variables = [("GA_NETWORK", "ib:sockets"), ("GA_TEST_MACHINES", "2")];
    let ended = started(Where::OnHosts, 4, &[], "three_jobs", &variables).end();
    if ended.output.contains("cannot be run: ") {
        runner::skip("a host name of its own needs root");
    }
    let lines: Vec<String> = (0..12).map(|k| format!("rank {} of 4 reads 10", k / 3)).collect();
    ended.prints(&lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// As in an allocation where `srun`, Hydra and Open MPI's launcher have started processes.
fn ranks_are_those_of_the_last_launcher() {
    let others = [
        ("PMI_RANK", "5"),
        ("PMI_SIZE", "9"),
        ("PMI_FD", "0"),
        ("PMIX_RANK", "5"),
        ("PMIX_NAMESPACE", "x"),
        ("OMPI_COMM_WORLD_RANK", "5"),
        ("OMPI_COMM_WORLD_SIZE", "9"),
        ("SLURM_PROCID", "5"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_TASKS", "9"),
    ];
    let lines = ["rank 0 of 1 reads 1"; 3];
    started(Where::Here, 1, &[], "three_jobs", &others).end().prints(&lines);
    let print = "env | grep -E '^(PMI|OMPI|SLURM_(PROC|STEP))' || echo none";
    spawn(Where::Here, 1, &[], &["sh", "-c", print], |command| command.envs(others)).end().prints(&["none"]);
}
