//! Programs in a virtual machine that has two devices of soft-RoCE: real verbs without an adapter.
//!
//! The processor is emulated, so it runs anywhere, without the right to virtualize and without root. A boot takes some seconds, on a busy machine
//! up to a minute, and the machine's clock may run away: limits are counts, or time of this machine. One processor is best: with
//! two, sleeping ranks wake much later. Nothing that is measured there says anything about an adapter.

mod image;

use super::counts::Report;
use super::{Tier, mpi, suites};
use crate::cargo;
use crate::child::{self, End, Outcome};
use crate::packages::{self, Need};
use anyhow::{Context, Result};
use image::{Image, Obstacle};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const NEEDS: &[Need] = &[
    Need { package: "qemu-system-x86", why: "runs programs over InfiniBand's verbs in a virtual machine" },
    Need { package: "busybox-static", why: "tools of the virtual machine" },
    Need { package: "iproute2", why: "makes the virtual machine's devices" },
    Need { package: "ibverbs-providers", why: "drives the virtual machine's devices" },
    Need { package: "libibverbs-dev", why: "has the header that declarations are compared with" },
    Need { package: "kmod", why: "orders the modules of the virtual machine's kernel" },
    Need { package: "cpio", why: "packs the virtual machine's files" },
    Need { package: "xz-utils", why: "unpacks the virtual machine's kernel" },
];

/// For the whole machine in the standard tier.
const LIMIT: Duration = Duration::from_secs(900);

const MEMORY: &str = "768M";

/// What tests of the device print where there is none, or where they cannot be told from others: here nothing is missing.
const NO_DEVICE: &str = "skipped: libibverbs: ";

/// One command of the machine's shell.
#[derive(Clone, Copy, Debug)]
struct Task {
    name: &'static str,
    command: &'static str,
}

/// Cases of the conformance suite, those that are short where ranks take turns on one slow processor.
const CASES: &str = "accumulates_of_all many_accumulates counters signals_of_patches fences";

/// The programs are `unit`, the unit tests, `conformance` and `lu`; `mpiexec`, and `lu_mpi`, which has the feature `mpi`, are there if this
/// machine has MPICH.
const TASKS: [Task; 13] = [
    Task {
        name: "virtual machine: device of libibverbs",
        command: "./unit comm::ib::verbs::tests --test-threads=1 --skip memory_beyond_the_limit",
    },
    Task {
        name: "virtual machine: a user who may pin 2 MiB",
        command: "ulimit -l 2048 && su user -c './unit memory_beyond_the_limit --test-threads=1'",
    },
    Task {
        name: "virtual machine: operations over queue pairs that are made to fail",
        command: "./unit over_pairs_of_libibverbs_that_fail --test-threads=1",
    },
    Task { name: "virtual machine: conformance", command: "JOBS ./conformance CASES" },
    Task {
        name: "virtual machine: conformance, nodes of 2 with their agents",
        command: "export GA_IB_DEVICE=rxe0,rxe1 GA_TEST_NETWORKS=ib:nodes_of_2; ./conformance accumulates_of_all counters signals_of_patches",
    },
    Task {
        name: "virtual machine: sums while 5 % of the packets are lost",
        command: "tc qdisc add dev left root netem loss 5% && tc qdisc add dev right root netem loss 5%; JOBS ./conformance \
                  many_accumulates; end=$?; tc qdisc del dev left root; tc qdisc del dev right root; exit $end",
    },
    Task {
        // Again and again nothing passes for a second, which is longer than an adapter tries. It fails if no pair did in three turns. On a slow
        // machine a cut takes seconds, and so does what follows.
        name: "virtual machine: sums while the cable is cut again and again",
        command: "failed() { cat /sys/class/infiniband/rxe?/ports/1/hw_counters/retry_exceeded_err | tr '\\n' ' '; }; before=$(failed); \
                  (while sleep 1; do tc qdisc add dev left root netem loss 100%; sleep 1; tc qdisc del dev left root; sleep 1; done) & \
                  cuts=$!; end=0; for turn in 1 2 3; do JOBS FEW GA_TEST_SILENCE=60 ./conformance many_accumulates || end=1; \
                  [ \"$(failed)\" = \"$before\" ] || break; done; kill $cuts; tc qdisc del dev left root 2>/dev/null; \
                  echo \"pairs that failed: $before before, $(failed) after\"; [ \"$(failed)\" != \"$before\" ] || end=1; exit $end",
    },
    Task {
        name: "virtual machine: LU of 2 ranks, and of 3, then of 2 nodes, that a launcher starts",
        command: "export GA_NETWORK=ib+hidden GA_IB_DEVICE=rxe0,rxe1; GA_RANKS=2 ./lu --n 96 --block 16 && \
                  if [ -x ./mpiexec ]; then ./mpiexec -launcher fork -n 3 ./lu --n 96 --block 16 && \
                  GA_NETWORK=ib GA_RANKS_PER_NODE=2 ./mpiexec -launcher fork -n 4 ./lu --n 96 --block 16; fi",
    },
    Task {
        name: "virtual machine: LU of 2 nodes whose ranks meet by MPI",
        command: "export GA_NETWORK=ib GA_IB_DEVICE=rxe0,rxe1; if [ -x ./lu_mpi ]; then \
                  GA_RANKS_PER_NODE=2 ./mpiexec -launcher fork -n 4 ./lu_mpi --n 96 --block 16; fi",
    },
    Task {
        name: "virtual machine: LU of 2 machines that a launcher starts",
        command: "export GA_NETWORK=ib GA_IB_DEVICE=rxe0,rxe1; if [ -x ./mpiexec ]; then \
                  ./mpiexec -launcher fork -n 2 unshare -u sh -c 'hostname a; exec ./lu --n 96 --block 16' : \
                  -n 2 unshare -u sh -c 'hostname b; exec ./lu --n 96 --block 16'; fi",
    },
    Task {
        // More than those of which each reads the words of all.
        name: "virtual machine: LU of 10 ranks of 2 machines, as the launcher says",
        command: "export GA_NETWORK=ib GA_IB_DEVICE=rxe0,rxe1; if [ -x ./mpiexec ]; then \
                  ./mpiexec -launcher fork -hosts a:5,b:5 -n 10 ./lu --n 32 --block 16; fi",
    },
    Task {
        // First it runs to its end. Then rank 2, the agent of the second machine, is killed, and those of both machines have to name it.
        name: "virtual machine: LU of 2 machines that meet at one of them, and a killed agent there",
        command: "export GA_NETWORK=ib GA_IB_DEVICE=rxe0,rxe1 GA_RANKS=4 GA_ROOT=127.0.0.1:29400 GA_TOKEN=a_secret_of_the_tests; \
                  start() { export N=$1; for rank in 0:a 1:a 2:b 3:b; do GA_RANK=${rank%:*} HOST=${rank#*:} \
                  unshare -u sh -c 'hostname $HOST; exec ./lu --n $N --block 16' > out${rank%:*} 2>&1 & done; }; \
                  end=0; start 96; wait; cat out?; grep -q passed out0 || end=1; start 1500; sleep 8; \
                  for process in $(ps | grep '[.]/lu --n' | sed 's/^ *//' | cut -d' ' -f1); do \
                  tr '\\0' '\\n' < /proc/$process/environ | grep -q '^GA_RANK=2$' && kill -9 $process; done; \
                  wait; cat out?; grep -q 'rank 2 has closed its connection' out0 || end=1; \
                  grep -q 'rank 2 was killed by SIGKILL' out3 || end=1; ls /dev/shm | grep . && end=1; exit $end",
    },
    Task {
        // The process that starts the ranks comes first in the list. Rank 2 is the agent of its node.
        name: "virtual machine: a killed agent, and a killed rank, are named, and nothing is left",
        command: "export GA_NETWORK=ib GA_IB_DEVICE=rxe0,rxe1 GA_RANKS_PER_NODE=2 GA_RANKS=4; end=0; for victim in 2 3; do \
                  ./lu --n 1500 --block 16 > out 2>&1 & job=$!; sleep 4; \
                  kill -9 $(ps | grep '[.]/lu --n' | sed -n \"$((victim + 2))p\" | sed 's/^ *//' | cut -d' ' -f1); \
                  wait $job && end=1; tail -1 out; grep -q \"rank $victim was killed by SIGKILL\" out || end=1; \
                  ls /dev/shm | grep . && end=1; ps | grep '[.]/lu --n' && end=1; done; exit $end",
    },
];

/// What `JOBS` stands for in a command.
const JOBS: &str = "GA_IB_DEVICE=rxe0,rxe1 GA_TEST_NETWORKS=ib+hidden";

/// The same for `FEW` in the standard tier. In the long tier all numbers of ranks have their turn.
const FEW: &str = "GA_TEST_RANKS=2,4";

/// MPICH's launcher and what it starts on each machine.
const LAUNCHER: [(&str, &str); 2] = [("mpiexec.hydra", "mpiexec"), ("hydra_pmi_proxy", "hydra_pmi_proxy")];

/// Runs all tasks in one machine; one skipped report where there can be none.
pub fn run(tier: Tier, install: bool) -> Vec<Report> {
    let one = |report: Report| vec![report.said()];
    if !cfg!(target_arch = "x86_64") {
        return one(Report::skipped("virtual machine: all", "is made for x86_64 only"));
    }
    packages::ensure(NEEDS, install);
    if let Some(need) = NEEDS.iter().find(|need| !packages::installed(need.package)) {
        return one(Report::skipped("virtual machine: all", &format!("no package {}", need.package)));
    }
    let failed = |error: anyhow::Error| Report::single("virtual machine: all", Err(format!("{error:#}")));
    let image = match cargo::target().map_err(Obstacle::Broken).and_then(|target| Image::get(&target.join("vm"))) {
        Ok(image) => image,
        Err(Obstacle::OutOfReach(error)) => {
            return one(Report::skipped("virtual machine: all", &format!("no kernel for it: {error:#}")));
        }
        Err(Obstacle::Broken(error)) => return one(failed(error)),
    };
    match build(tier).and_then(|programs| boot(&image, &programs, &TASKS, tier)) {
        Ok(outcome) => judge(&outcome),
        Err(error) => one(failed(error)),
    }
}

/// The programs, by their names in the machine. All but one are without the feature `mpi`, so a launcher is ours to speak with.
fn build(tier: Tier) -> Result<Vec<(&'static str, PathBuf)>> {
    let mut programs = Vec::new();
    let launcher = LAUNCHER.map(|(program, name)| (name, Path::new("/usr/bin").join(program)));
    if launcher.iter().all(|(_, path)| path.exists()) {
        programs.extend(launcher);
        let of_mpich = mpi::programs_of_mpich(tier).transpose()?.into_iter().flatten();
        programs.extend(of_mpich.filter(|program| program.is_example() && program.name == "lu").map(|lu| ("lu_mpi", lu.path)));
    }
    // Last, so that `lu` is the one without MPI. What these commands build is there.
    let suites = suites::build(tier)?;
    let suite = |kind: &str, name: &str| suites.iter().find(|suite| suite.test && suite.kind == kind && suite.name == name);
    let unit = suite("lib", "global_arrays").context("no unit tests were built")?.path.clone();
    let conformance = suite("test", "conformance").context("no conformance suite was built")?.path.clone();
    let examples = cargo::build(cargo::EXAMPLES)?;
    let lu = examples.into_iter().find(|program| program.is_example() && program.name == "lu").context("no lu was built")?;
    programs.extend([("unit", unit), ("conformance", conformance), ("lu", lu.path)]);
    Ok(programs)
}

/// Boots the machine, which ends when the tasks have. Its output is that of the tasks, between lines that begin with `@`.
fn boot(image: &Image, programs: &[(&str, PathBuf)], tasks: &[Task], tier: Tier) -> Result<Outcome> {
    let folder = std::env::temp_dir().join(format!("global-arrays-vm-{}", std::process::id()));
    let outcome = pack(image, programs, tasks, tier, &folder).and_then(|()| {
        let console = folder.join("console");
        let mut outcome = child::run(&mut machine(image, &folder, &console), if tier.long { tier.limit } else { LIMIT })?;
        // What the kernel said, for a machine that fails.
        outcome.stderr += &String::from_utf8_lossy(&fs::read(&console).unwrap_or_default());
        Ok(outcome)
    });
    let _ = fs::remove_dir_all(&folder);
    outcome
}

/// Makes the archive of all files that the machine has at its start.
fn pack(image: &Image, programs: &[(&str, PathBuf)], tasks: &[Task], tier: Tier, folder: &Path) -> Result<()> {
    let work = folder.join("own/tasks");
    fs::create_dir_all(&work).context("making a folder for the virtual machine")?;
    programs.iter().try_for_each(|(name, path)| copy_small(path, &work.join(name)))?;
    image::with_libraries(programs.iter().map(|(_, path)| path.as_path()), &folder.join("own"))?;
    let run: String = tasks
        .iter()
        .enumerate()
        .map(|(at, task)| {
            format!(
                "echo '@begin {at}'\n({}) 2>&1\necho\necho \"@end {at} $?\"\n",
                task.command.replace("JOBS", JOBS).replace("FEW", if tier.long { "" } else { FEW }).replace("CASES", CASES)
            )
        })
        .collect();
    fs::write(work.join("run"), run)?;
    let own = folder.join("own.cpio");
    image::archive(&folder.join("own"), &own)?;
    let files = [fs::read(&image.files)?, fs::read(&own)?].concat();
    fs::write(folder.join("files.cpio"), files).context("writing the virtual machine's files")
}

/// Copies a program, if possible without what debuggers read: that is most of it, and the machine's memory has to hold it twice.
fn copy_small(program: &Path, to: &Path) -> Result<()> {
    let stripped = child::run(Command::new("strip").args(["--strip-debug", "-o"]).arg(to).arg(program), LIMIT);
    if !stripped.is_ok_and(|outcome| outcome.success()) {
        fs::copy(program, to).context("copying the unit tests")?;
    }
    Ok(())
}

fn machine(image: &Image, folder: &Path, console: &Path) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none", "-nic", "none"]);
    command.args(["-machine", "pc", "-accel", "tcg", "-cpu", "max,la57=off", "-smp", "1", "-m", MEMORY]);
    command.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(folder.join("files.cpio"));
    command
        .arg("-append")
        .arg("console=ttyS0 loglevel=4 panic=-1 reboot=t mitigations=off random.trust_cpu=on no_timer_check tsc=reliable");
    command.arg("-serial").arg(format!("file:{}", console.display()));
    command.args(["-chardev", "stdio,id=tasks,signal=off", "-serial", "chardev:tasks"]);
    command
}

/// One report for each task.
fn judge(outcome: &Outcome) -> Vec<Report> {
    let mut reports = Vec::new();
    for (at, task) in TASKS.iter().enumerate() {
        let report = match said(&outcome.stdout, at) {
            Some((end, stdout)) => of_task(task, end, stdout),
            None => Report::single(task.name, Err(trouble(outcome))),
        };
        reports.push(report.said());
    }
    if let Some(first) = reports.first_mut() {
        first.seconds = outcome.elapsed.as_secs_f64();
    }
    reports
}

/// Exit status and output of a task that has ended.
fn said(output: &str, task: usize) -> Option<(i32, String)> {
    let (_, rest) = output.split_once(&format!("@begin {task}\n"))?;
    let (said, rest) = rest.split_once(&format!("\n@end {task} "))?;
    Some((rest.lines().next()?.parse().ok()?, said.to_owned()))
}

fn of_task(task: &Task, end: i32, stdout: String) -> Report {
    let skipped = stdout.lines().find(|line| line.starts_with(NO_DEVICE)).map(str::to_owned);
    let ended = Outcome { end: End::Exit(end), stdout, stderr: String::new(), elapsed: Duration::ZERO, left_behind: Vec::new() };
    let mut report = Report::of(task.name, &ended).not_empty();
    if let Some(line) = skipped.filter(|_| report.failure.is_none()) {
        report.counts.failed += 1;
        report.failure = Some(format!("must not be skipped in a machine that has all: {line}"));
    }
    report
}

/// Why a task has not ended.
fn trouble(outcome: &Outcome) -> String {
    let why = outcome.stdout.lines().find_map(|line| line.strip_prefix("@machine "));
    format!("the machine: {}; {}\n{}", why.unwrap_or("said nothing"), outcome.end, outcome.tail(30))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "@begin 0\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\n\n\
                          @end 0 0\n@begin 1\nskipped: libibverbs: no device\n1 passed, 0 failed\n\n@end 1 0\n@begin 2\nhangs";

    #[test]
    fn what_a_task_said_is_found() {
        assert_eq!(said(OUTPUT, 0).map(|(end, text)| (end, text.lines().count())), Some((0, 3)));
        assert!(said(OUTPUT, 1).is_some());
        assert_eq!(said(OUTPUT, 2), None);
        assert_eq!(said(OUTPUT, 3), None);
    }

    #[test]
    fn a_task_without_a_device_fails() {
        let report = |at| said(OUTPUT, at).map(|(end, text)| of_task(&TASKS[0], end, text)).expect("has ended");
        assert_eq!((report(0).counts.passed, report(0).counts.failed), (1, 0));
        assert_eq!(report(1).counts.failed, 1);
        assert!(of_task(&TASKS[0], 1, String::new()).failure.is_some());
    }
}
