//! Ranks, hosts and `ga-run` itself that end before their time.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    BOTH, SOON, Started, Where, command,
    runner::{self, Case, case},
    script, spawn, start,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, name) in BOTH {
        let mut of = |case_name: &str, body: fn(Where)| cases.push(case(format!("{name}::{case_name}"), move || body(at)));
        of("a_rank_that_is_killed", a_rank_is_killed);
        of("a_rank_that_fails", a_rank_fails);
        of("a_rank_that_never_comes", a_rank_never_comes);
        of("a_status_is_handed_on", a_status_is_handed_on);
        of("ga_run_is_killed", ga_run_is_killed);
        of("an_agent_is_killed", an_agent_is_killed);
        of("ranks_that_take_a_signal", ranks_take_a_signal);
        of("ranks_that_ignore_a_signal", ranks_ignore_a_signal);
        of("a_job_that_is_interrupted", a_job_is_interrupted);
        of("a_job_that_is_stopped_goes_on", a_job_is_stopped);
        of("programs_that_cannot_be_run", programs_that_cannot_be_run);
        of("nobody_reads_the_secret", nobody_reads_the_secret);
    }
    cases.push(case("hosts_that_are_wrong", hosts_that_are_wrong));
    cases.push(case("nohup_is_kept", nohup_is_kept));
    cases
}

/// The processes of ranks that work.
fn working(job: &Started, ranks: usize) -> Vec<Pid> {
    let said = job.wait_for(" is process ", ranks);
    let of = |rank: usize| {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("rank {rank} is process ")));
        Pid::from_raw(line.and_then(|pid| pid.parse().ok()).expect("a number")).expect("a process")
    };
    (0..ranks).map(of).collect()
}

fn a_rank_is_killed(at: Where) {
    let job = start(at, 3, "works");
    kill_process(working(&job, 3)[1], Signal::KILL).expect("a rank");
    let ended = job.end();
    assert!(ended.status == Some(137) && ended.errors.contains("rank 1 was killed by SIGKILL"), "{ended:?}");
    assert!(ended.took < SOON / 2, "{ended:?}");
}

fn a_rank_fails(at: Where) {
    for (program, status, words) in
        [("panics", 1, "rank 1 panicked: the culprit's own words"), ("exits", 7, "rank 1 called exit(7)")]
    {
        let ended = start(at, 3, program).end();
        assert_eq!(ended.status, Some(status), "{ended:?}");
        // The library has said it.
        assert!(ended.errors.contains(words) && !ended.errors.contains("ga-run: "), "{ended:?}");
    }
}

fn a_rank_never_comes(at: Where) {
    let ended = start(at, 3, "one_never_comes").end();
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.errors.contains("rank 1 has ended and never came to the job"), "{ended:?}");
}

fn a_status_is_handed_on(at: Where) {
    let on_host = if at == Where::OnHosts { " on alpha" } else { "" };
    let sleeps = "[ $GA_RANK = 1 ] || exec sleep 60;";
    script(at, 3, &[], &format!("{sleeps} exit 3")).end().says(3, &format!("rank 1 ended with status 3{on_host}"));
    script(at, 3, &[], &format!("{sleeps} kill -SEGV $$")).end().says(139, &format!("rank 1 was ended by SIGSEGV{on_host}"));
}

/// Also what ranks have started goes.
fn ga_run_is_killed(at: Where) {
    let job = script(at, 2, &[], "sleep 60 & echo works; wait");
    job.wait_for("works", 2);
    kill_process(Pid::from_child(&job.child), Signal::KILL).expect("ga-run");
    assert_eq!(job.end().status, Some(137));
    let job = start(at, 2, "works");
    working(&job, 2);
    kill_process(Pid::from_child(&job.child), Signal::KILL).expect("ga-run");
    assert_eq!(job.end().status, Some(137));
}

/// On a host, it stands for the connection too.
fn an_agent_is_killed(at: Where) {
    let job = start(at, 3, "works");
    let rank = working(&job, 3)[2];
    let stat = fs::read_to_string(format!("/proc/{}/stat", rank.as_raw_nonzero())).expect("a process");
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
    kill_process(parent.and_then(Pid::from_raw).expect("a parent"), Signal::KILL).expect("an agent");
    let ended = job.end();
    let lost = if at == Where::OnHosts { "the connection to beta is lost: " } else { "the agent of this machine ended with " };
    assert!(ended.status == Some(1) && ended.errors.contains(lost), "{ended:?}");
}

/// The shell says on its standard error that `sleep` was ended.
const TRAPS: &str = "exec 2>/dev/null; trap 'echo bye; exit 0' INT TERM HUP QUIT USR1; echo works; while :; do sleep 0.05; done";

fn ranks_take_a_signal(at: Where) {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1] {
        let job = script(at, 2, &[], TRAPS);
        job.wait_for("works", 2);
        job.signal(signal);
        job.end().prints(&["bye", "bye", "works", "works"]);
    }
}

fn ranks_ignore_a_signal(at: Where) {
    let job = script(at, 2, &[], "trap '' INT TERM; echo works; while :; do sleep 0.05; done");
    job.wait_for("works", 2);
    job.signal(Signal::INT);
    let ended = job.end();
    ended.says(130, "the job was ended by SIGINT");
    assert!(ended.took > Duration::from_secs(2), "{ended:?}");
}

fn a_job_is_interrupted(at: Where) {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let job = start(at, 3, "works");
        working(&job, 3);
        job.signal(signal);
        let ended = job.end();
        assert!(ended.status == Some(status) && ended.errors.contains("ga-run: the job was ended by SIG"), "{ended:?}");
        assert!(ended.took < SOON / 2, "{ended:?}");
    }
}

fn a_job_is_stopped(at: Where) {
    let job = start(at, 2, "works");
    let ranks = working(&job, 2);
    let stat = |rank: &Pid| fs::read_to_string(format!("/proc/{}/stat", rank.as_raw_nonzero())).expect("a rank");
    for (signal, are_stopped) in [(Signal::TSTP, true), (Signal::CONT, false)] {
        job.signal(signal);
        let begin = Instant::now();
        while ranks.iter().any(|rank| stat(rank).contains(") T ") != are_stopped) {
            assert!(begin.elapsed() < SOON, "{signal:?} does not reach {:?}", ranks.iter().map(stat).collect::<Vec<_>>());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    job.signal(Signal::TERM);
    assert_eq!(job.end().status, Some(143));
}

fn programs_that_cannot_be_run(at: Where) {
    let host = if at == Where::OnHosts { "alpha: " } else { "" };
    let end = |program: &str| spawn(at, 1, &[], &[program], |command| command).end();
    end("./no-such-program").says(127, &format!("{host}./no-such-program cannot be run: No such file or directory (os error 2)"));
    end("/etc/passwd").says(126, &format!("{host}/etc/passwd cannot be run: Permission denied (os error 13)"));
}

/// Ranks have it in their environment, and no command line has it.
fn nobody_reads_the_secret(at: Where) {
    let job = script(at, 2, &[], "echo $GA_TOKEN; sleep 60");
    let said = loop {
        let said = job.wait_for("\n", 2);
        if said.lines().count() == 2 {
            break said;
        }
    };
    let secret = said.lines().next().expect("a secret");
    assert!(secret.len() == 64 && said.lines().all(|line| line == secret), "{said}");
    let all = fs::read_dir("/proc").expect("the processes").flatten().filter_map(|of| fs::read(of.path().join("cmdline")).ok());
    for line in all {
        assert!(!String::from_utf8_lossy(&line).contains(secret), "{:?}", String::from_utf8_lossy(&line));
    }
    job.signal(Signal::TERM);
    assert_eq!(job.end().status, Some(143));
}

/// The status and the words of `ga-run` with such a file of hosts and such a remote shell.
fn refusal(hosts: Option<&str>, more: &[&str]) -> (Option<i32>, String) {
    let begin = Instant::now();
    let (mut job, mark) = command(Where::Here, 2, &[&["--hosts", "/dev/fd/9"][..], more].concat(), &["true"]);
    if let Some(text) = hosts {
        crate::hosts(&mut job, text);
    }
    let ended = job.output().expect("ga-run");
    runner::leftovers::gone(&mark);
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn hosts_that_are_wrong() {
    let own = std::env::current_exe().expect("the path of this program");
    let shell = format!("{} {}", own.display(), crate::AS_SHELL);
    let ssh = ["--ssh", &*shell];
    for (hosts, more, words) in [
        (None, &[][..], "the file of hosts /dev/fd/9: No such file"),
        (Some("# none\n"), &[], "the file of hosts /dev/fd/9: it names no host"),
        (Some("alpha\n"), &[], "room for 1 ranks, not for 2"),
        (Some("alpha beta\n"), &[], "line 1: \"alpha beta\" is no host"),
        (Some("alpha\nnowhere\n"), &ssh, "no ranks could be started on nowhere: "),
        (Some("alpha\nnowhere\n"), &ssh, "Could not resolve hostname nowhere"),
        (Some("alpha:2\n"), &["--ssh", "/no/such/shell"], "no ranks could be started on alpha: /no/such/shell: No such file"),
        (Some("alpha:2\n"), &["--ssh", "true"], "no ranks could be started on alpha: `true alpha` ended with exit status: 0"),
    ] {
        let (status, said) = refusal(hosts, more);
        assert_eq!((status, said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.starts_with("ga-run: ") && said.contains(words), "{said}");
    }
    let none = Command::new(own).args([crate::AS_GA_RUN, "-n", "0", "true"]).output().expect("ga-run");
    assert!(none.status.code() == Some(2) && String::from_utf8_lossy(&none.stderr).contains("'0' for '--ranks <N>'"), "{none:?}");
}

/// What is ignored stays so, here and in ranks.
fn nohup_is_kept() {
    let own = std::env::current_exe().expect("the path of this program");
    let script =
        format!("trap '' HUP; exec {} {} -n 2 sh -c 'echo works; sleep 0.5; echo done'", own.display(), crate::AS_GA_RUN);
    let output = runner::scratch();
    let mut job = Command::new("sh").args(["-c", &script]).stdout(output.try_clone().expect("a handle")).spawn().expect("sh");
    while !runner::text(&output).contains("works") {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&job), Signal::HUP).expect("ga-run");
    assert!(job.wait().expect("its end").success());
    assert_eq!(runner::text(&output).matches("done").count(), 2);
}
