//! What ranks print and read.

use std::{
    fs,
    io::{Read, Write},
    process::Stdio,
    time::Duration,
};

use rustix::process::Signal;

use crate::{
    BOTH, Where,
    runner::{Case, case},
    script, spawn,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, name) in BOTH {
        let mut of = |case_name: &str, body: fn(Where)| cases.push(case(format!("{name}::{case_name}"), move || body(at)));
        of("lines_stay_whole", lines_stay_whole);
        of("long_lines_and_parts", long_lines_and_parts);
        of("input_reaches_rank_0_only", input_reaches_rank_0_only);
        of("an_input_that_has_ended_takes_no_time", input_has_ended);
        of("a_reader_that_is_gone", a_reader_is_gone);
        of("a_reader_that_is_late", a_reader_is_late);
        of("signals_where_nobody_reads", signals_where_nobody_reads);
        of("deaths_where_nobody_reads", deaths_where_nobody_reads);
    }
    cases
}

fn lines_stay_whole(at: Where) {
    let each = "k=0; while [ $k -lt 300 ]; do printf '<line '; echo \"$k of $GA_RANK>\"; echo \"{$k of $GA_RANK}\" >&2; k=$((k+1)); done";
    let ended = script(at, 3, &[], each).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for (text, [begin, end]) in [(&ended.output, ["<line ", ">"]), (&ended.errors, ["{", "}"])] {
        for rank in 0..3 {
            let own: Vec<&str> = text.lines().filter(|line| line.contains(&format!(" of {rank}{end}"))).collect();
            let expected: Vec<String> = (0..300).map(|k| format!("{begin}{k} of {rank}{end}")).collect();
            assert_eq!(own, expected);
        }
        assert_eq!(text.lines().count(), 900);
    }
}

fn long_lines_and_parts(at: Where) {
    const LONG: &str = "head -c 200000 /dev/zero | tr '\\0' x";
    let ended = script(at, 1, &[], &format!("{LONG}; echo; {LONG}")).end();
    assert_eq!((ended.output.len(), ended.output.lines().count(), ended.status), (400_001, 2, Some(0)));
    script(at, 2, &["--tag"], "echo; printf end").end().prints(&["[0] ", "[0] end", "[1] ", "[1] end"]);
}

/// Of the processor, which ranks want.
fn input_has_ended(at: Where) {
    let mut job = spawn(at, 2, &[], &["sleep", "1.2"], |command| command.stdin(Stdio::piped()));
    drop(job.child.stdin.take());
    std::thread::sleep(Duration::from_millis(900));
    let stat = fs::read_to_string(format!("/proc/{}/stat", job.child.id())).expect("a process");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks: Vec<u64> = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse().expect("a number")).collect();
    assert!(ticks.iter().sum::<u64>() < 20, "{ticks:?} hundredths of a second of 90");
    assert_eq!(job.end().status, Some(0));
}

fn input_reaches_rank_0_only(at: Where) {
    let mut job = spawn(at, 2, &["--tag"], &["sh", "-c", "wc -c"], |command| command.stdin(Stdio::piped()));
    job.child.stdin.take().expect("its input").write_all(&[b'x'; 1 << 20]).expect("a reader");
    job.end().prints(&["[0] 1048576", "[1] 0"]);
    // A rank that does not read is no reason to wait.
    let mut job = spawn(at, 2, &[], &["sh", "-c", "exit 0"], |command| command.stdin(Stdio::piped()));
    let input = job.child.stdin.take();
    job.end().prints(&[]);
    drop(input);
}

/// As under `| head`: the job goes on.
fn a_reader_is_gone(at: Where) {
    let mut job = spawn(at, 2, &[], &["sh", "-c", "seq 100000; echo $GA_RANK >&2"], |command| command.stdout(Stdio::piped()));
    job.child.stdout.take().expect("its output").read_exact(&mut [0; 10]).expect("some of it");
    let ended = job.end();
    assert!(ended.status == Some(0) && ["0\n1\n", "1\n0\n"].contains(&&*ended.errors), "{ended:?}");
}

/// It gets all of it, and little is kept meanwhile.
fn a_reader_is_late(at: Where) {
    let mut job = spawn(at, 2, &[], &["sh", "-c", "seq 1000000"], |command| command.stdout(Stdio::piped()));
    std::thread::sleep(Duration::from_millis(700));
    let status = fs::read_to_string(format!("/proc/{}/status", job.child.id())).expect("ga-run");
    let kib: usize = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
        .expect("its memory");
    assert!(kib < 40 << 10, "{kib} KiB");
    let mut text = String::new();
    job.child.stdout.take().expect("its output").read_to_string(&mut text).expect("all of it");
    assert_eq!((job.end().status, text.lines().count()), (Some(0), 2_000_000));
}

fn signals_where_nobody_reads(at: Where) {
    let job = spawn(at, 2, &[], &["sh", "-c", "exec yes"], |command| command.stdout(Stdio::piped()));
    std::thread::sleep(Duration::from_millis(500));
    job.signal(Signal::TERM);
    job.end().says(143, "the job was ended by SIGTERM (kill, its launcher, or a batch system)");
}

/// Nor what it has to say of it.
fn deaths_where_nobody_reads(at: Where) {
    let prints = "[ $GA_RANK = 0 ] && (yes >&2 & exec yes); sleep 0.5; kill -KILL $$";
    let job = spawn(at, 2, &[], &["sh", "-c", prints], |command| command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let ended = job.end();
    assert_eq!(ended.status, Some(137), "{ended:?}");
}
