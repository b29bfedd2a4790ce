//! Kills at random moments: a job works on two hosts (`hosts`), and a rank, a thread of a rank or a host is ended, or the cable between
//! them cut. All ranks that are left have to be gone soon, and to say who is missing.
//!
//! A host that is killed closes its connections, which the launcher sees; it ends the others within a second, and none of them has a
//! chance to say a word. So a name is asked for only where the launcher leaves the time: after the kill of a rank, whose neighbor
//! prints it first, and after a cut, which no launcher notices. Nobody closes a connection then, as when a machine loses its power.

use super::counts::Report;
use super::hosts::Hosts;
use super::mpi::Library;
use super::{Tier, environment};
use crate::cargo::Program;
use crate::child;
use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// All others have to be gone after this long.
const SOON: Duration = Duration::from_secs(5);
/// A start, the work before the kill, the end, with much to spare.
const LIMIT: Duration = Duration::from_secs(40);
/// From the first sight of all ranks until they work, and how much later the kill comes at most.
const WORKS: Duration = Duration::from_millis(1500);
const MOMENTS: u64 = 2500;

#[derive(Clone, Copy, Debug)]
enum What {
    Rank,
    Thread,
    Host,
    Cable,
}

/// How often each is killed, in the standard and in the long tier.
const TIMES: [u64; 2] = [1, 25];
/// The standard tier cannot check a percentage. If the launcher may lose the words, the same kill is done up to this often until they come.
const TRIES: u64 = 4;

/// Who is killed, and what is said of it in how many of a hundred kills.
type Kill = (What, &'static str, Option<(&'static str, u64)>);
const KILLS: [Kill; 4] = [
    // Launchers lose, now and then, what a process writes right before they kill it.
    (What::Rank, "a rank", Some((" was killed by SIGKILL", 70))),
    (What::Thread, "a thread of a rank", Some((" was killed by SIGKILL", 70))),
    (What::Host, "a host", None),
    (What::Cable, "the cable", Some((" and its machine have not answered for 3.5 s", 100))),
];

/// Kills on two hosts, by the suite that has the program.
pub fn run(library: &Library, suite: &Program, hosts: &Hosts, tier: Tier) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for (what, name, says) in KILLS {
        let begin = Instant::now();
        let (mut slowest, mut named, mut times, mut failure, mut last) = (Duration::ZERO, 0, 0, None, String::new());
        let may_be_lost = says.is_some_and(|(_, hundredths)| hundredths < 100);
        let tries = if may_be_lost && !tier.long { TRIES } else { TIMES[usize::from(tier.long)] };
        for time in 0..tries {
            let killed = kill(library, suite, hosts, tier, what, if tier.long { time } else { 0 })?;
            slowest = slowest.max(killed.gone);
            let is_named = says.is_some_and(|(words, _)| killed.said.contains(words));
            named += u64::from(is_named);
            times = time + 1;
            if killed.gone > SOON {
                failure =
                    Some(format!("after kill {time} ranks were there for {:.1} s\n{}", killed.gone.as_secs_f64(), killed.said));
            }
            if failure.is_some() || !tier.long && is_named {
                break;
            }
            if !is_named {
                last = killed.said;
            }
        }
        let enough = |hundredths| if tier.long { 100 * named >= hundredths * times } else { named > 0 };
        if let Some((words, hundredths)) = says.filter(|(_, hundredths)| !enough(*hundredths)) {
            let least = if tier.long { format!("at least {hundredths} %") } else { "at least one".to_string() };
            failure.get_or_insert(format!("{named} of {times} say {words:?}; {least} should. The last said:\n{last}"));
        }
        let named = says.map_or(String::new(), |_| format!(", named {named} times"));
        let slowest = format!("gone after {:.1} s at most{named}", slowest.as_secs_f64());
        let name = format!("{}: two hosts, killed {name} {times} times: {slowest}", library.name);
        reports.push(Report::single(&name, failure.map_or(Ok(()), Err)).lasting(begin.elapsed()).said());
    }
    Ok(reports)
}

/// What came of a kill.
struct Killed {
    /// How long the last rank was still there.
    gone: Duration,
    said: String,
}

fn kill(library: &Library, suite: &Program, hosts: &Hosts, tier: Tier, what: What, time: u64) -> Result<Killed> {
    let mut command = hosts.command(library, &suite.path, &[], tier);
    environment(&mut command, tier);
    command.env("GA_TEST_CASE", "works_for_ever").env("GA_NETWORK", "mpi");
    // Moments of no pattern: steps of the golden ratio.
    let moment = WORKS + Duration::from_millis(time.wrapping_mul(0x9E37_79B9_7F4A_7C15) % MOMENTS);
    let (outcome, gone) = thread::scope(|scope| {
        let killer = scope.spawn(|| end_one(hosts, suite, what, time, moment));
        let outcome = child::run(&mut command, LIMIT);
        (outcome, killer.join().unwrap_or(LIMIT))
    });
    let outcome = outcome?;
    if matches!(what, What::Cable) {
        hosts.mend()?;
    }
    Ok(Killed { gone, said: format!("{}\n{}", outcome.stdout, outcome.stderr) })
}

/// Ends somebody at the moment, and tells how long the others were there.
fn end_one(hosts: &Hosts, suite: &Program, what: What, time: u64, moment: Duration) -> Duration {
    let begin = Instant::now();
    let ranks =
        || processes().into_iter().filter(|process| fs::read_link(process.join("exe")).is_ok_and(|exe| exe == suite.path));
    while ranks().count() < hosts.ranks() {
        if begin.elapsed() > LIMIT / 2 {
            return LIMIT;
        }
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(moment);
    let all: Vec<PathBuf> = ranks().collect();
    let one = &all[time as usize % all.len()];
    match what {
        What::Rank => end(one),
        What::Thread => {
            let threads = fs::read_dir(one.join("task")).into_iter().flatten().flatten();
            threads.last().into_iter().for_each(|thread| end(&thread.path()));
        }
        What::Host => on_host(hosts, 1).iter().for_each(|process| end(process)),
        What::Cable => drop(hosts.cut()),
    }
    let begin = Instant::now();
    while ranks().next().is_some() && begin.elapsed() < 2 * SOON {
        thread::sleep(Duration::from_millis(5));
    }
    let gone = begin.elapsed();
    // The launcher may still have something to print. It might wait for the other host without an end, so it is ended too.
    thread::sleep(Duration::from_millis(200));
    (0..2).flat_map(|host| on_host(hosts, host)).for_each(|process| end(&process));
    gone
}

/// All processes of a host.
fn on_host(hosts: &Hosts, host: usize) -> Vec<PathBuf> {
    let Ok(namespace) = fs::metadata(hosts.namespace(host)) else { return Vec::new() };
    let is_there = |process: &PathBuf| fs::metadata(process.join("ns/net")).is_ok_and(|own| own.ino() == namespace.ino());
    processes().into_iter().filter(is_there).collect()
}

fn processes() -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|c| c.is_ascii_digit()))
        .map(|entry| entry.path())
        .collect()
}

fn end(process: &Path) {
    let number = process.file_name().and_then(|name| name.to_str()?.parse().ok());
    // It may have ended meanwhile.
    if let Some(pid) = number.and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
