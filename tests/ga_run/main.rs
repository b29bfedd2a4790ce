//! `ga-run`, on this machine and by a remote shell: ranks meet, and what must not happen ends the job within seconds, with a name, and
//! leaves nothing behind.
//!
//! This program is `ga-run` where its first argument says so, and also the remote shell: there is no sshd here. That shell runs the command
//! of a host in a process without the environment of the caller, behind a greeting that no agent has written.

mod failures;
mod programs;
#[path = "../runner/mod.rs"]
mod runner;
mod streams;
mod well;

use std::{
    env,
    fs::File,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

/// What a job that fails takes at most.
const SOON: Duration = Duration::from_secs(5);

/// The first argument of a program that is `ga-run`, and of one that is a remote shell.
const AS_GA_RUN: &str = "ga-run";
const AS_SHELL: &str = "remote-shell";

fn main() -> ExitCode {
    let first = env::args().nth(1).unwrap_or_default();
    match &*first {
        AS_GA_RUN => return ga_run::main(env::args_os().skip(1)),
        "--agent" => return ga_run::main(env::args_os()),
        AS_SHELL => return remote_shell(),
        _ => {}
    }
    let mut cases = programs::all();
    cases.extend(well::cases());
    cases.extend(failures::cases());
    cases.extend(streams::cases());
    runner::main_together(cases, 5)
}

/// `remote-shell HOST COMMAND …`
fn remote_shell() -> ExitCode {
    let words: Vec<String> = env::args().skip(2).collect();
    if words[0] == "nowhere" {
        eprintln!("ssh: Could not resolve hostname nowhere: Name or service not known");
        return ExitCode::from(255);
    }
    println!("Welcome to {}", words[0]);
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", "/usr/bin:/bin").env("GA_STALE", "1").current_dir("/");
    shell.env(MARK, env::var(MARK).expect("the mark of a case"));
    let error = shell.arg("-c").arg(words[1..].join(" ")).exec();
    eprintln!("sh: {error}");
    ExitCode::FAILURE
}

/// Names the processes of a case.
const MARK: &str = "GA_TEST_MARK";

/// Where ranks are: here, or on two hosts by the remote shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Here,
    OnHosts,
}

const BOTH: [(Where, &str); 2] = [(Where::Here, "here"), (Where::OnHosts, "on_hosts")];

/// A `ga-run` that runs.
struct Started {
    child: Child,
    output: File,
    errors: File,
    mark: String,
    begin: Instant,
    before: std::collections::BTreeSet<std::path::PathBuf>,
}

/// How it ended.
#[derive(Debug)]
struct Ended {
    /// As a shell has it.
    status: Option<i32>,
    output: String,
    errors: String,
    took: Duration,
}

/// The command of `ga-run` for a number of ranks, with the mark of its processes.
fn command(at: Where, ranks: usize, options: &[&str], program: &[&str]) -> (Command, String) {
    let own = env::current_exe().expect("the path of this program");
    let own = own.to_str().expect("a path that is text");
    let mut command = Command::new(own);
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("GA_")) {
        command.env_remove(name);
    }
    let mark = format!("{}-{}", std::process::id(), ranks);
    command.args([AS_GA_RUN, "-n", &ranks.to_string()]).args(options).env(MARK, &mark).stdin(Stdio::null());
    if at == Where::OnHosts {
        command.args(["--ssh", &format!("{own} {AS_SHELL}"), "--address", "127.0.0.1"]);
        command.args(["--hosts", "/dev/fd/9"]);
        hosts(&mut command, &format!("# two hosts\nalpha:{} # the first\n\nbeta slots={ranks}\n", ranks.div_ceil(2)));
    }
    // A group of its own, as a shell makes one: a terminal sends its signals there.
    command.arg("--").args(program).process_group(0);
    (command, mark)
}

/// Gives a text to the command as descriptor 9.
fn hosts(command: &mut Command, text: &str) {
    let mut file = runner::scratch();
    std::io::Write::write_all(&mut file, text.as_bytes()).expect("a file of hosts");
    // SAFETY: `dup2` makes a system call, and neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || match libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&file), 9) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        })
    };
}

/// Starts a program of this suite on a number of ranks.
fn start(at: Where, ranks: usize, name: &str) -> Started {
    started(at, ranks, &[], name, &[])
}

/// The same with options and variables.
fn started(at: Where, ranks: usize, options: &[&str], name: &str, variables: &[(&str, &str)]) -> Started {
    let own = env::current_exe().expect("the path of this program");
    let variables = [variables, &[(runner::CASE, name)]].concat();
    spawn(at, ranks, options, &[own.to_str().expect("text")], |command| command.envs(variables))
}

/// Starts any program.
fn spawn(
    at: Where,
    ranks: usize,
    options: &[&str],
    program: &[&str],
    prepare: impl FnOnce(&mut Command) -> &mut Command,
) -> Started {
    let (output, errors) = (runner::scratch(), runner::scratch());
    let (mut command, mark) = command(at, ranks, options, program);
    let end = |file: &File| file.try_clone().expect("a second handle of the file");
    command.stdout(end(&output)).stderr(end(&errors));
    prepare(&mut command);
    let before = runner::leftovers::files();
    let child = command.spawn().expect("starting ga-run");
    Started { child, output, errors, mark, begin: Instant::now(), before }
}

/// Runs a script of a shell.
fn script(at: Where, ranks: usize, options: &[&str], script: &str) -> Started {
    spawn(at, ranks, options, &["sh", "-c", script], |command| command)
}

impl Started {
    /// Sends a signal to all processes of its group, as a terminal does.
    fn signal(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).expect("a signal for ga-run");
    }

    /// Waits until a text has been printed so often.
    fn wait_for(&self, text: &str, times: usize) -> String {
        while runner::text(&self.output).matches(text).count() < times {
            assert!(self.begin.elapsed() < 2 * SOON, "{}{}", runner::text(&self.output), runner::text(&self.errors));
            std::thread::sleep(Duration::from_millis(5));
        }
        runner::text(&self.output)
    }

    /// Its end within [`SOON`] from now on. Nothing is left: no process, no file.
    fn end(mut self) -> Ended {
        let begin = Instant::now();
        let status = runner::finish(&mut self.child, SOON);
        let took = begin.elapsed();
        runner::leftovers::gone(&self.mark);
        runner::leftovers::none_but(&self.before);
        let status = status.and_then(|status| status.code().or(status.signal().map(|signal| 128 + signal)));
        Ended { status, output: runner::text(&self.output), errors: runner::text(&self.errors), took }
    }
}

impl Ended {
    /// It has ended so, and its only line of standard error is this.
    fn says(&self, status: i32, line: &str) {
        assert_eq!((self.status, &*self.errors), (Some(status), &*format!("ga-run: {line}\n")), "{self:?}");
    }

    /// It has ended well, and has this to say, in any order of lines.
    fn prints(&self, lines: &[&str]) {
        let mut said: Vec<&str> = self.output.lines().collect();
        said.sort_unstable();
        assert_eq!((self.status, &*self.errors), (Some(0), ""), "{self:?}");
        assert_eq!(said, lines);
    }
}
