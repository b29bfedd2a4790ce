//! What the command lines of the programs share: `--ranks`, `--network`, `--stats`, `--json`, a bar on the terminal, and one line for an
//! error or an interruption.

use std::env;
use std::ffi::c_int;
use std::fmt::Display;
use std::fs;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use global_arrays::prelude::*;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

/// How to start the job and how to report.
#[derive(Debug, Clone, Args)]
pub struct Start {
    /// Ranks to start; by default one for each core
    #[arg(long, value_parser = positive)]
    pub ranks: Option<usize>,
    /// Network between them, by name
    #[arg(long)]
    pub network: Option<String>,
    /// Count who moves what to whom, and print it as a table at the end
    #[arg(long)]
    pub stats: bool,
    /// Print one line of JSON instead of a report
    #[arg(long)]
    pub json: bool,
}

impl Start {
    /// What was asked for; the rest comes from the environment, else from the machine.
    pub fn launch(&self) -> Launch {
        let mut launch = Launch::new();
        if let Some(ranks) = self.ranks {
            launch = launch.ranks(ranks);
        }
        if let Some(network) = &self.network {
            launch = launch.network(network);
        }
        if self.stats {
            launch = launch.stats(true);
        }
        launch
    }

    /// Refuses a flag that needs numbers where none are computed.
    ///
    /// # Errors
    /// One line that names the flag.
    pub fn needs_computing(&self, job: &Job, flag: &str, is_given: bool) -> Result<(), String> {
        if is_given && job.simulation().skips() {
            return Err(format!("{flag} cannot be used with GA_COMPUTING=skip: nothing is computed"));
        }
        Ok(())
    }

    /// Rank 0 prints the report: lines for people, or one of JSON.
    ///
    /// # Errors
    /// Its output cannot be written.
    pub fn report(&self, job: &Job, people: impl Display, json: &serde_json::Value) -> Result<(), Error> {
        if job.rank() != 0 {
            return Ok(());
        }
        let mut out = std::io::stdout();
        if self.json { writeln!(out, "{json}") } else { writeln!(out, "{people}") }.map_err(Error::other)
    }
}

/// A whole number of at least 1.
///
/// # Errors
/// What is wrong with the text.
pub fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".into()),
        Ok(number) => Ok(number),
        Err(_) => Err("not a whole number of at least 1".into()),
    }
}

/// A bar on rank 0's terminal, if it has one; `unit` is what is counted, in the plural.
pub fn progress_bar(job: &Job, length: usize, unit: &str) -> ProgressBar {
    let shown = job.rank() == 0 && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {unit}, {{eta}} left"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(length as u64), target).with_style(style)
}

/// All of `main`: runs the program, and prints one line if it fails or is interrupted.
pub fn main<E: Display>(program: &str, run: impl FnOnce() -> Result<(), E>) -> ExitCode {
    writes_wait(rustix::stdio::stdout());
    writes_wait(rustix::stdio::stderr());
    say_if_interrupted(program);
    // A write beyond the limit of files (ulimit -f) is then an error that names the file. Without the handler it ends the program.
    let _ = flag::register(SIGXFSZ, Arc::default());
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{program}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// From now on a write waits for a reader that is late. Another program with the same pipe or terminal may have asked for an error in its place
/// (`O_NONBLOCK`), which the print macros take for a failure.
pub(crate) fn writes_wait(out: impl AsFd) {
    if let Ok(flags) = fcntl_getfl(&out)
        && flags.contains(OFlags::NONBLOCK)
    {
        // Failing that, a late reader is an error.
        let _ = fcntl_setfl(&out, flags - OFlags::NONBLOCK);
    }
}

/// Prints a line at SIGINT and at SIGTERM, then lets the signal end this process; a shell whose program SIGINT has ended ends its loop or its script
/// too. Ctrl-C reaches all ranks of one machine. The process that has started them prints the line; of ranks that a launcher has started, rank 0, if
/// the launcher hands the signal on. Open MPI's launcher sends SIGTERM at Ctrl-C and when another rank has failed, a batch system when time is up.
fn say_if_interrupted(program: &str) {
    if rank_by_launcher().is_some_and(|rank| rank != "0") {
        return;
    }
    let is_said = Arc::new(AtomicBool::new(false));
    for (signal, how) in [(SIGINT, "interrupted"), (SIGTERM, "ended by SIGTERM")] {
        if !is_ignored(signal) {
            say_at(signal, &format!("{program}: {how} before its end"), is_said.clone());
        }
    }
}

fn say_at(signal: c_int, what: &str, is_said: Arc<AtomicBool>) {
    // The terminal has shown `^C`, and perhaps a bar.
    let begin = if std::io::stderr().is_terminal() { "\n" } else { "" };
    let line = format!("{begin}{what}\n");
    let own = process::id();
    let end = move || {
        // Ranks have this handler from the process that has forked them.
        if process::id() == own && !is_said.swap(true, Ordering::Relaxed) {
            let out = rustix::stdio::stderr();
            // A pipe that nobody reads must not keep this process alive.
            let may_write = poll(&mut [PollFd::from_borrowed_fd(out, PollFlags::OUT)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            if may_write.is_ok_and(|ready| ready > 0) {
                let _ = rustix::io::write(out, line.as_bytes());
            }
        }
        let _ = low_level::emulate_default_handler(signal);
    };
    // SAFETY: a signal may come at any point. `end` makes system calls on memory that nobody else changes, and `emulate_default_handler` may be
    // called there.
    let registered = unsafe { low_level::register(signal, end) };
    // Without it the program ends too, and prints nothing.
    drop(registered);
}

/// Whether a signal is to end nothing, as SIGINT for a program in the background of a script.
fn is_ignored(signal: c_int) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|signals| signals >> (signal - 1) & 1 == 1)
}

/// The rank that a launcher has given to this process. A launcher may have started its agents by `srun`, whose variables reach the ranks, so its own
/// come first.
fn rank_by_launcher() -> Option<String> {
    ["GA_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "PMIX_RANK"].iter().find_map(|name| env::var(name).ok())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// Runs this test again as a program whose files may have no bytes.
    #[test]
    fn a_write_beyond_the_limit_of_files_is_an_error() {
        const AGAIN: &str = "COMMAND_LINE_TEST_WRITES";
        if let Some(path) = env::var_os(AGAIN) {
            main("writer", || fs::write(path, "text"));
            return;
        }
        let path = env::temp_dir().join(format!("program-{}", process::id()));
        let (_, module) = module_path!().split_once("::").unwrap();
        let script =
            format!("ulimit -f 0; exec \"$0\" --exact --nocapture {module}::a_write_beyond_the_limit_of_files_is_an_error");
        let own = env::current_exe().unwrap();
        let again = process::Command::new("sh").args(["-c", &script]).arg(own).env(AGAIN, &path).output().unwrap();
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(again.status.success() && said.contains("writer: File too large"), "{}: {said}", again.status);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn writes_to_a_pipe_that_is_full_wait() {
        let (mut reader, mut writer) =
            pipe_with(PipeFlags::NONBLOCK).map(|(reader, writer)| (File::from(reader), File::from(writer))).unwrap();
        let mut bytes = 0;
        while let Ok(count) = writer.write(&[0; 4096]) {
            bytes += count;
        }
        [&reader, &writer].into_iter().for_each(writes_wait);
        assert!(!fcntl_getfl(&writer).unwrap().contains(OFlags::NONBLOCK));
        std::thread::scope(|scope| {
            let end = scope.spawn(move || reader.read_exact(&mut vec![0; bytes + 4096]));
            writer.write_all(&[0; 4096]).unwrap();
            end.join().unwrap().unwrap();
        });
    }
}
