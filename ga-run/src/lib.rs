//! Starts the ranks of a program on this machine and, by ssh, on others.
//!
//! | file | contents |
//! |---|---|
//! | `job` | the loop of `ga-run`: what happens in a job, and how it ends |
//! | `remote`, `hosts` | the agent of a host, as `ga-run` sees it; which host has which ranks |
//! | `agent` | the agent: it starts the ranks of one host, and lives no longer than its standard input |
//! | `wire` | what both write to each other |
//! | `printer`, `signals` | a thread that writes for a slow reader; signals in a loop |
//!
//! Ranks meet in the library's own meeting (`global_arrays::launcher`), for which `ga-run` has a thread: it knows which ranks have come and
//! left, and listens before they start. Their secret goes to agents by standard input and to ranks by the environment.
#![deny(unsafe_code)]

mod agent;
mod hosts;
mod job;
mod printer;
mod remote;
mod signals;
mod wire;

use std::{env, ffi::OsString, fs, path::PathBuf, process::ExitCode};

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The only argument of an agent.
const AGENT: &str = "--agent";

/// Most ranks of a job.
const MOST: i64 = 8192;

/// Starts the ranks of a program that uses global-arrays, on this machine or on many
///
/// Signals reach all ranks, standard input reaches rank 0. If a rank fails, the others have two seconds to end; the status is that of the
/// first one that failed. Ranks on other hosts get the working folder, the variables that begin with GA_, and those that -x names.
#[derive(Debug, Parser)]
#[command(name = "ga-run", version)]
struct Arguments {
    /// Number of ranks
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=MOST))]
    ranks: i64,
    /// File with a host in each line, as node07, node07 slots=4 or node07:4; consecutive ranks go to one host
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Begin each line that a rank prints with its number
    #[arg(long)]
    tag: bool,
    /// Remote shell, with its options; it must not ask for anything
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "ssh -o BatchMode=yes -o ConnectTimeout=4 -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
    )]
    ssh: String,
    /// Name or address by which other hosts reach this one; by default the name of this host
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// Give ranks this variable too; may be repeated
    #[arg(short = 'x', value_name = "NAME")]
    variables: Vec<OsString>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// All of `ga-run`, whose name is the first argument.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let files = raise_limit_of_files();
    if arguments.len() == 2 && arguments[1] == AGENT {
        return if agent::main(files).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    wanted(Arguments::parse_from(arguments)).and_then(job::run).unwrap_or_else(|why| {
        eprintln!("ga-run: {why}");
        ExitCode::FAILURE
    })
}

fn wanted(arguments: Arguments) -> Result<job::Wanted, String> {
    let Arguments { ranks, hosts, tag, ssh, address, variables, program } = arguments;
    let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let hosts = match hosts {
        None => hosts::here(ranks as usize),
        Some(path) => fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| hosts::deal(&text, ranks as usize, &hosts::own_names(&node)))
            .map_err(|why| format!("the file of hosts {}: {why}", path.display()))?,
    };
    // The secret of the job is new, and each rank has a number of its own.
    let is_own = |name: &OsString| ["GA_TOKEN", "GA_TOKEN_FILE", "GA_RANK"].iter().any(|own| name == own);
    let passed = |name: &OsString| (wire::is_ours(name) && !is_own(name)) || variables.contains(name);
    Ok(job::Wanted {
        hosts,
        program,
        folder: env::current_dir().map_err(|error| format!("the working folder: {error}"))?.into(),
        variables: env::vars_os().filter(|(name, _)| passed(name)).collect(),
        address: address.unwrap_or(node),
        shell: ssh.split_whitespace().map(str::to_owned).collect(),
        tag,
    })
}

/// A rank takes a connection here, and three descriptors of its agent. Returns the limit that there was, which ranks get.
fn raise_limit_of_files() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    // Failing that, a job with many ranks says what it lacks.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before });
    before
}
