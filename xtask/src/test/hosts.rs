//! Ranks on separate hosts: two network namespaces of this machine joined by a pair of virtual Ethernet devices.
//!
//! Each host has a name, an address, processes, System V memory and a `/dev/shm` of its own, so that nothing but the wire joins them. The
//! launcher runs on the first one and reaches the second by an agent in place of `rsh`, a script that enters the namespaces. The
//! device counts the bytes that crossed. Needs root.

use super::counts::Report;
use super::kills;
use super::mpi::{self, Library};
use super::{Tier, environment};
use crate::cargo::{self, Program};
use crate::child::{self, Outcome};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Stands before the process that made a namespace.
const PREFIX: &str = "global-arrays-";
const ADDRESSES: [&str; 2] = ["10.200.77.1", "10.200.77.2"];
const DEVICE: &str = "wire";
/// A program takes some seconds; a launcher that hangs is no reason to wait an hour.
const PROGRAM: Duration = Duration::from_secs(180);
/// A command that makes or removes something.
const LIMIT: Duration = Duration::from_secs(10);
/// Until a new device carries: the kernel looks once a second.
const CARRIER: Duration = Duration::from_secs(5);
/// Bytes that `put_get` sends each way at least: with four ranks rank 1 puts a quarter of its matrix to rank 2, rank 3 to rank 0.
const PUT: u64 = 20_000;

/// Ranks on each host.
const RANKS: usize = 2;

/// Programs, how often each is started, their arguments, what they must say (LAST and ALL being ranks), the least that must cross
/// the wire each way. A library that does not always end is found by several starts.
const PROGRAMS: [(&str, usize, &[&str], &str, u64); 3] = [
    ("hello", 10, &[], "rank LAST of ALL on node 1, over mpi", 0),
    ("put_get", 1, &[], "ALL ranks wrote", PUT),
    ("lu", 20, &["--n", "512", "--block", "64", "--json"], "\"passed\":true", 100_000),
];

/// Two hosts; one skipped report if there can be none.
fn hosts(library: &Library) -> Result<Hosts, Vec<Report>> {
    let skipped = |why: &str| vec![Report::skipped(&format!("{}: two hosts", library.name), why).said()];
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/sbin/ip").exists() && !Path::new("/sbin/ip").exists() {
        return Err(skipped("needs root and ip (iproute2)"));
    }
    Hosts::new().map_err(|error| skipped(&format!("no network namespaces: {error:#}")))
}

/// Kills ranks, hosts and cables of a job that works on both.
pub fn kills(library: &Library, programs: &[Program], tier: Tier) -> Result<Vec<Report>> {
    let suite = programs.iter().find(|program| program.kind == "test" && program.name == "failures");
    let suite = suite.context("no suite failures")?;
    match hosts(library) {
        Ok(hosts) => kills::run(library, suite, &hosts, tier),
        Err(reports) => Ok(reports),
    }
}

/// Runs the programs on two hosts.
pub fn run(library: &Library, programs: &[&Program], tier: Tier) -> Result<Vec<Report>> {
    let hosts = match hosts(library) {
        Ok(hosts) => hosts,
        Err(reports) => return Ok(reports),
    };
    let mut reports = Vec::new();
    for (name, start, arguments, says, least) in all_starts() {
        let Some(program) = programs.iter().find(|program| program.name == name) else { continue };
        let before = hosts.carried()?;
        let outcome = child::run(&mut hosts.command(library, &program.path, arguments, tier), tier.limit.min(PROGRAM))?;
        let after = hosts.carried()?;
        let carried = [after[0] - before[0], after[1] - before[1]];
        let name = format!("{}: two hosts, {name}, start {start}", library.name);
        let verdict = judge(&outcome, says, 2 * RANKS, least, carried);
        reports.push(Report::single(&name, verdict).lasting(outcome.elapsed).said());
    }
    Ok(reports)
}

/// Each start of each program.
fn all_starts() -> impl Iterator<Item = (&'static str, usize, &'static [&'static str], &'static str, u64)> {
    let starts = |(name, count, arguments, says, least)| (1..=count).map(move |start| (name, start, arguments, says, least));
    PROGRAMS.into_iter().flat_map(starts)
}

fn judge(outcome: &Outcome, says: &str, ranks: usize, least: u64, carried: [u64; 2]) -> Result<(), String> {
    let says = says.replace("LAST", &(ranks - 1).to_string()).replace("ALL", &ranks.to_string());
    let said = format!("{}\n{}", outcome.stdout, outcome.stderr).replace("\": ", "\":");
    if !outcome.success() {
        return Err(format!("{}\n{}", outcome.end, outcome.tail(30)));
    }
    if !outcome.left_behind.is_empty() {
        return Err(format!("left behind: {}", outcome.left_behind.join("; ")));
    }
    for words in [says, format!("communication of {ranks} ranks on 2 nodes")] {
        if !said.contains(&words) {
            return Err(format!("does not say {words:?}\n{}", outcome.tail(30)));
        }
    }
    if carried.iter().any(|&bytes| bytes < least) {
        return Err(format!("{carried:?} bytes crossed the wire there and back, less than {least}"));
    }
    Ok(())
}

/// Two hosts; gone when dropped.
pub struct Hosts {
    names: [String; 2],
    agent: PathBuf,
}

impl Hosts {
    fn new() -> Result<Self> {
        remove_abandoned();
        let names = ["a", "b"].map(|which| format!("{PREFIX}{}-{which}", std::process::id()));
        let agent = cargo::target()?.join(format!("{PREFIX}{}-agent", std::process::id()));
        // From here on dropping it removes what was made.
        let hosts = Hosts { names, agent };
        let [a, b] = &hosts.names;
        ip(&["netns", "add", a])?;
        ip(&["netns", "add", b])?;
        ip(&["link", "add", DEVICE, "netns", a, "type", "veth", "peer", "name", DEVICE, "netns", b])?;
        for (name, address) in hosts.names.iter().zip(ADDRESSES) {
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", DEVICE])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "link", "set", DEVICE, "up"])?;
        }
        hosts.wait_for_carrier()?;
        fs::write(&hosts.agent, hosts.script()).context("writing the agent")?;
        fs::set_permissions(&hosts.agent, fs::Permissions::from_mode(0o755)).context("making the agent a program")?;
        Ok(hosts)
    }

    fn wait_for_carrier(&self) -> Result<()> {
        for name in &self.names {
            let begin = Instant::now();
            while statistic(name, "operstate")? != "up" {
                if begin.elapsed() > CARRIER {
                    bail!("the device of {name} does not carry");
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// `agent [options] ADDRESS COMMAND...`
    fn script(&self) -> String {
        let [a, b] = &self.names;
        let enter = "exec ip netns exec $host unshare --uts --ipc --mount --pid --fork --kill-child --mount-proc";
        format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\ncase $1 in\n{}) host={a};;\n{}) host={b};;\n\
             *) echo \"no host $1\" >&2; exit 1;;\nesac\nshift\n{enter} sh -c \"{OWN}; $*\"\n",
            ADDRESSES[0], ADDRESSES[1]
        )
    }

    /// A program on both hosts, started from the first.
    pub fn command(&self, library: &Library, program: &Path, arguments: &[&str], tier: Tier) -> Command {
        let mut command = Command::new(&self.agent);
        let hosts = ADDRESSES.map(|address| format!("{address}:{RANKS}")).join(",");
        let mut words = vec![library.launcher.to_owned(), library.hosts.to_owned(), hosts];
        words.extend(["-n".to_owned(), (2 * RANKS).to_string()]);
        words.extend(library.export.into_iter().flat_map(|flag| [flag.to_owned(), "GA_STATS".to_owned()]));
        words.push(program.display().to_string());
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        command.arg(ADDRESSES[0]).args(words).current_dir(cargo::root());
        environment(&mut command, tier);
        mpi::variables(&mut command);
        command.env("GA_STATS", "1");
        command.env("OMPI_MCA_plm_rsh_agent", &self.agent);
        command.env("HYDRA_LAUNCHER", "rsh").env("HYDRA_LAUNCHER_EXEC", &self.agent);
        command
    }

    /// How many ranks there are on both.
    pub fn ranks(&self) -> usize {
        2 * RANKS
    }

    /// The file that stands for a host's network.
    pub fn namespace(&self, host: usize) -> PathBuf {
        Path::new("/run/netns").join(&self.names[host])
    }

    /// Cuts the cable between them.
    pub fn cut(&self) -> Result<()> {
        self.cable("down")
    }

    /// Mends it.
    pub fn mend(&self) -> Result<()> {
        self.cable("up")?;
        self.wait_for_carrier()
    }

    /// Beside a program that runs, which would be taken down by the end of another one of ours.
    fn cable(&self, state: &str) -> Result<()> {
        let status = Command::new("ip").args(["-n", &self.names[1], "link", "set", DEVICE, state]).status()?;
        if status.success() { Ok(()) } else { bail!("ip link set {DEVICE} {state}: {status}") }
    }

    /// Bytes that the first host has sent and received until now.
    fn carried(&self) -> Result<[u64; 2]> {
        let count = |what: &str| Ok::<u64, anyhow::Error>(statistic(&self.names[0], &format!("statistics/{what}"))?.parse()?);
        Ok([count("tx_bytes")?, count("rx_bytes")?])
    }
}

/// A host's own name and memory, inside its namespaces.
const OWN: &str = "hostname $host; mount -t tmpfs tmpfs /dev/shm";

impl Drop for Hosts {
    fn drop(&mut self) {
        // The devices go with them. Those that were never made are not there to be removed.
        self.names.iter().for_each(|name| drop(ip(&["netns", "delete", name])));
        let _ = fs::remove_file(&self.agent);
        // Open MPI's launcher has a folder named by its host, and leaves it there if it is killed.
        let entries = std::env::temp_dir().read_dir().into_iter().flatten().flatten();
        let named = |entry: &fs::DirEntry| {
            let file = entry.file_name();
            self.names.iter().any(|name| file.to_string_lossy().starts_with(&format!("ompi.{name}.")))
        };
        entries.filter(named).for_each(|entry| drop(fs::remove_dir_all(entry.path())));
    }
}

/// Those of a run that was killed.
fn remove_abandoned() {
    for name in ip(&["netns", "list"]).unwrap_or_default().lines().filter_map(|line| line.split(' ').next()) {
        let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// A file of the device's folder, on a host.
fn statistic(host: &str, file: &str) -> Result<String> {
    Ok(ip(&["netns", "exec", host, "cat", &format!("/sys/class/net/{DEVICE}/{file}")])?.trim().to_owned())
}

fn ip(arguments: &[&str]) -> Result<String> {
    let outcome = child::run(Command::new("ip").args(arguments), LIMIT)?;
    Ok(outcome.succeeded(format_args!("ip {}", arguments.join(" ")))?.stdout)
}
