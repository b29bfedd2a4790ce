//! The programs that are measured: how each is built, started and read.

use super::goals::Group;
use super::hpl;
use super::results::{Figure, Source, parse_figures};
use crate::packages::Need;
use crate::{cargo, child};
use anyhow::Result;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const RUN_LIMIT: Duration = Duration::from_secs(170);
const BUILD_LIMIT: Duration = Duration::from_secs(120);

/// Debian's packages behind the peers.
pub const NEEDS: &[Need] = &[
    Need { package: "gcc", why: "compiles the peer programs" },
    Need { package: "make", why: "builds the peer programs" },
    Need { package: "gfortran", why: "links ScaLAPACK and Global Arrays" },
    Need { package: "libopenblas-dev", why: "dgemm and dgetrf, the limit of matmul and lu" },
    Need { package: "openmpi-bin", why: "starts the Open MPI programs" },
    Need { package: "libopenmpi-dev", why: "MPI-3 one-sided calls of Open MPI" },
    Need { package: "mpich", why: "starts the MPICH program" },
    Need { package: "libmpich-dev", why: "MPI-3 one-sided calls of MPICH" },
    Need { package: "libglobalarrays-dev", why: "Global Arrays" },
    Need { package: "libarmci-mpi-dev", why: "what Debian's Global Arrays communicate through" },
    Need { package: "libscalapack-openmpi-dev", why: "pdgetrf" },
    Need { package: "hpcc", why: "HPL" },
];

/// What holds for the whole run.
#[derive(Debug)]
pub struct Settings {
    target: PathBuf,
    quick: bool,
}

impl Settings {
    pub fn new(quick: bool) -> Result<Self> {
        Ok(Self { target: cargo::target()?, quick })
    }

    fn peers(&self) -> PathBuf {
        self.target.join("peers")
    }

    fn scratch(&self) -> PathBuf {
        self.target.join("compare")
    }
}

/// How a program is started and what it measures.
#[derive(Debug)]
enum Way {
    /// One process that starts what it needs; writes `out=FILE`.
    Alone(PathBuf),
    /// Ranks under an `mpirun`; writes `out=FILE`.
    Mpi {
        mpirun: &'static str,
        options: &'static [&'static str],
        program: PathBuf,
    },
    /// The same, once for each grid and block; the best counts.
    ScaLapack(PathBuf),
    Hpl,
    /// The crate's example, which prints one line of JSON.
    Example(PathBuf),
}

/// One program with the column that its figures go to.
#[derive(Debug)]
pub struct Program {
    pub source: Source,
    groups: &'static [Group],
    way: Way,
    /// Set after a failure that no later round can cure.
    given_up: Cell<bool>,
}

/// Figures of one start, and what went wrong in it.
#[derive(Debug, Default)]
pub struct Measured {
    pub figures: Vec<Figure>,
    pub complaints: Vec<String>,
}

const OPENMPI: &[&str] = &["--oversubscribe", "--bind-to", "none"];

use Group::{Contiguous, Counter, Create, Element, Inflight, Job, Lu, Matmul, Random, Strided, Sync, Sync8, Transpose, Whole};
const PATCHES: &[Group] = &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Create, Job];
const ARRAYS: &[Group] =
    &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Whole, Transpose, Matmul, Lu, Create, Job];
const LIMIT: &[Group] = &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Whole, Transpose, Job];
const OURS: &[Group] =
    &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Whole, Transpose, Matmul, Create, Job];

/// Everything that could be built; says what could not.
pub fn all(settings: &Settings) -> Vec<Program> {
    let mut programs = Vec::new();
    let mut add = |source, groups, way| programs.push(Program { source, groups, way, given_up: Cell::new(false) });
    if let Some(path) = ours("bench", "compare") {
        add(Source::Us, OURS, Way::Alone(path));
    }
    if let Some(path) = ours("example", "lu") {
        add(Source::Us, &[Lu], Way::Example(path));
    }
    if let Some(path) = peer(settings, "limit") {
        add(Source::Limit, LIMIT, Way::Alone(path));
    }
    if let Some(path) = peer(settings, "openblas") {
        add(Source::Limit, &[Matmul, Lu], Way::Alone(path));
    }
    if let Some(program) = peer(settings, "rma.openmpi") {
        add(Source::OpenMpi, PATCHES, Way::Mpi { mpirun: "mpirun.openmpi", options: OPENMPI, program });
    }
    if let Some(program) = peer(settings, "rma.mpich") {
        add(Source::Mpich, PATCHES, Way::Mpi { mpirun: "mpirun.mpich", options: &[], program });
    }
    if let Some(program) = peer(settings, "ga.openmpi") {
        add(Source::GlobalArrays, ARRAYS, Way::Mpi { mpirun: "mpirun.openmpi", options: OPENMPI, program });
    }
    if let Some(program) = peer(settings, "scalapack.openmpi") {
        add(Source::ScaLapack, &[Lu], Way::ScaLapack(program));
    }
    if Path::new("/usr/bin/hpcc").exists() {
        add(Source::Hpl, &[Lu], Way::Hpl);
    } else {
        eprintln!("left out: HPL, there is no hpcc");
    }
    programs
}

/// A program of the crate, built as a user's release build would be.
fn ours(kind: &str, name: &str) -> Option<PathBuf> {
    let known = cargo::targets(kind).is_ok_and(|names| names.iter().any(|known| known == name));
    if !known {
        eprintln!("left out: our own {kind} {name}, which does not exist");
        return None;
    }
    let built = match kind {
        "bench" => cargo::build(&["bench", "--no-run", "--bench", name]),
        _ => cargo::build(&["build", "--release", "--example", name]),
    };
    match built {
        Ok(programs) => programs.into_iter().find(|program| program.name == name).map(|program| program.path),
        Err(error) => {
            eprintln!("left out: our own {kind} {name}: {error:#}");
            None
        }
    }
}

fn peer(settings: &Settings, name: &str) -> Option<PathBuf> {
    let mut make = Command::new("make");
    make.arg("-C").arg(cargo::root().join("benches/peers")).arg("-s");
    make.arg(format!("OUT={}", settings.peers().display())).arg(name);
    match child::run(&mut make, BUILD_LIMIT) {
        Ok(outcome) if outcome.success() => Some(settings.peers().join(name)),
        Ok(outcome) => {
            eprintln!("left out: {name} does not build:\n{}", outcome.tail(3));
            None
        }
        Err(error) => {
            eprintln!("left out: {name}: {error:#}");
            None
        }
    }
}

impl Program {
    pub fn measures(&self, group: Group) -> bool {
        self.groups.contains(&group) && !self.given_up.get()
    }

    /// Start it once for one group of rows.
    pub fn measure(&self, group: Group, settings: &Settings) -> Measured {
        let file = settings.scratch().join(format!("{}.csv", self.name()));
        match &self.way {
            Way::Alone(program) => {
                let mut command = Command::new(program);
                command.arg(format!("out={}", file.display())).arg(group.to_string());
                self.start(command, &file, settings)
            }
            Way::Mpi { mpirun, options, program } => {
                let mut command = Command::new(mpirun);
                command.args(["-n", if group == Sync8 { "8" } else { "2" }]).args(*options).arg(program);
                command.arg(format!("out={}", file.display()));
                match group {
                    Job => return self.life(command.arg("none"), settings),
                    Sync8 => command.arg("sync"),
                    _ => command.arg(group.to_string()),
                };
                self.start(command, &file, settings)
            }
            Way::ScaLapack(program) => self.best_grid(program, &file, settings),
            Way::Hpl => self.hpl(settings),
            Way::Example(program) => self.example(program, settings),
        }
    }

    /// The name of the program's file, which is also that of its result file.
    fn name(&self) -> String {
        let path = match &self.way {
            Way::Alone(path) | Way::ScaLapack(path) | Way::Example(path) | Way::Mpi { program: path, .. } => path,
            Way::Hpl => Path::new("hpcc"),
        };
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn start(&self, mut command: Command, file: &Path, settings: &Settings) -> Measured {
        let _ = fs::remove_file(file);
        let complaints = self.run(&mut command, settings).1;
        Measured { figures: parse_figures(&fs::read_to_string(file).unwrap_or_default()), complaints }
    }

    fn run(&self, command: &mut Command, settings: &Settings) -> (Option<child::Outcome>, Vec<String>) {
        prepare(command, settings, self.source == Source::Us || matches!(self.way, Way::Alone(_)));
        let name = self.name();
        let outcome = match child::run(command, RUN_LIMIT) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.given_up.set(true);
                return (None, vec![format!("{name} left out: {error:#}")]);
            }
        };
        let text = outcome.stdout.lines().chain(outcome.stderr.lines());
        let wrong = text.filter(|line| line.contains("VERIFY-FAIL"));
        let mut complaints: Vec<String> = wrong.map(|line| format!("{name}: {line}")).collect();
        if !outcome.success() {
            complaints.push(format!("{name}: {}\n{}", outcome.end, outcome.tail(5)));
        }
        for process in &outcome.left_behind {
            complaints.push(format!("{name} left a process behind: {process}"));
        }
        (Some(outcome), complaints)
    }

    /// Start and end of a job, as long as the launcher takes.
    fn life(&self, command: &mut Command, settings: &Settings) -> Measured {
        let (outcome, complaints) = self.run(command, settings);
        let figure = |outcome: child::Outcome| Figure {
            op: "job".to_owned(),
            shape: "2 ranks".to_owned(),
            value: outcome.elapsed.as_secs_f64() * 1e3,
        };
        Measured { figures: outcome.filter(child::Outcome::success).map(figure).into_iter().collect(), complaints }
    }

    fn best_grid(&self, program: &Path, file: &Path, settings: &Settings) -> Measured {
        let mut best = Measured::default();
        for (grid, block) in [("1x2", 64), ("1x2", 128), ("2x1", 64), ("2x1", 128)] {
            let mut command = Command::new("mpirun.openmpi");
            command.args(["-n", "2"]).args(OPENMPI).arg(program);
            command.arg(format!("out={}", file.display())).arg(format!("grid={grid}")).arg(format!("block={block}"));
            let next = self.start(command, file, settings);
            best.complaints.extend(next.complaints);
            best.figures.extend(next.figures);
        }
        best.figures.sort_by(|a, b| b.value.total_cmp(&a.value));
        best.figures.truncate(1);
        best
    }

    fn hpl(&self, settings: &Settings) -> Measured {
        let folder = settings.scratch().join("hpcc");
        let output = folder.join("hpccoutf.txt");
        let _ = fs::remove_file(&output);
        if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join("hpccinf.txt"), hpl::input())) {
            return Measured { figures: Vec::new(), complaints: vec![format!("{}: {error}", folder.display())] };
        }
        let mut command = Command::new("mpirun.openmpi");
        command.args(["-n", "2"]).args(OPENMPI).arg("hpcc").current_dir(&folder);
        let mut complaints = self.run(&mut command, settings).1;
        match hpl::parse(&fs::read_to_string(&output).unwrap_or_default()) {
            Ok(figure) => Measured { figures: vec![figure], complaints },
            Err(complaint) => {
                complaints.push(complaint);
                Measured { figures: Vec::new(), complaints }
            }
        }
    }

    /// `lu` prints one JSON object with its rates and whether the residual passed.
    fn example(&self, program: &Path, settings: &Settings) -> Measured {
        let mut command = Command::new(program);
        command.args(["--ranks", "2", "--n", "4096", "--json"]);
        let (outcome, mut complaints) = self.run(&mut command, settings);
        let text = outcome.map(|outcome| outcome.stdout).unwrap_or_default();
        let report = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).next_back();
        let passed = report.filter(|report| report["passed"] == true);
        let figure = |(op, name): (&str, &str)| {
            let value = passed.as_ref()?[name].as_f64()?;
            Some(Figure { op: op.to_owned(), shape: "4096".to_owned(), value })
        };
        let figures: Vec<_> = [("lu_factor", "factor_gflops"), ("lu", "gflops")].into_iter().filter_map(figure).collect();
        if figures.is_empty() {
            complaints.push("lu: no JSON line with a passed residual and a rate".to_owned());
        }
        Measured { figures, complaints }
    }
}

/// An environment in which every program runs at its best: OpenBLAS free to pick its kernels and with as
/// many threads as there are cores left to it, Open MPI willing to run as root.
fn prepare(command: &mut Command, settings: &Settings, alone: bool) {
    let threads = if alone { "2" } else { "1" };
    command.env_remove("OPENBLAS_CORETYPE").env_remove("OPENBLAS_L2_SIZE");
    command.env("OPENBLAS_NUM_THREADS", threads).env("OMP_NUM_THREADS", threads);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if settings.quick {
        command.env("BENCH_TRIALS", "5").env("BENCH_TARGET_MS", "2").env("BENCH_BUDGET_S", "0.3");
    }
}
