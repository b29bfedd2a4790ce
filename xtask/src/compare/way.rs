//! How each kind of program is started, and what is read of it.

use super::examples::Start;
use super::goals::{Group, ROWS, Section};
use super::hpcc;
use super::lammps::Run;
use super::mpi::{Library, Place};
use super::results::{Figure, parse_figures};
use super::settings::Settings;
use super::source::Source;
use super::start;
use crate::{cargo, child};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const RUN_LIMIT: Duration = Duration::from_secs(170);
/// Of a job that does nothing.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How a program is started and what it measures.
#[derive(Debug)]
pub enum Way {
    /// One process that starts what it needs; writes `out=FILE`.
    Alone(PathBuf),
    /// Ranks under a library's `mpirun`, once with each of the settings of the environment; writes `out=FILE`. The best of a row counts.
    Ranks { library: Library, program: PathBuf, settings: &'static [&'static [(&'static str, &'static str)]] },
    /// Under Open MPI on one rank and on two.
    OneAndTwo(PathBuf),
    /// Once for each grid and block; the best counts.
    ScaLapack(Library, PathBuf),
    /// Its result file, read for one figure.
    Hpcc(fn(&str) -> Result<Figure, String>),
    /// Scripts of ours, whose logs are read.
    Lammps { mpiexec: PathBuf, open_mpi: bool, lmp: PathBuf, runs: &'static [Run] },
    /// The interpreter for a script of ours, which writes `out=FILE`.
    PySph(PathBuf),
    /// The crate's example, which prints one line of JSON; alone or under a library's `mpirun`.
    Example { library: Option<Library>, program: PathBuf, starts: Vec<&'static Start> },
    /// Our program and one that begins and ends MPI, in turn.
    Start { library: Library, ours: PathBuf, theirs: PathBuf },
}

/// One program with the column that its figures go to.
#[derive(Debug)]
pub struct Program {
    pub source: Source,
    place: Place,
    groups: Vec<Group>,
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

impl Measured {
    fn extend(&mut self, more: Measured) {
        self.figures.extend(more.figures);
        self.complaints.extend(more.complaints);
    }

    /// Of figures of the same row the fastest.
    fn keep_the_best(&mut self, section: Section) {
        let mut best: Vec<Figure> = Vec::new();
        for figure in self.figures.drain(..) {
            let row = ROWS.iter().find(|row| row.section() == section && (row.op, row.shape) == (&figure.op, &figure.shape));
            let known = best.iter_mut().find(|known| (&known.op, &known.shape) == (&figure.op, &figure.shape));
            match (row, known) {
                (Some(row), Some(known)) if row.ratio(figure.value, known.value) > 1.0 => *known = figure,
                (_, Some(_)) => {}
                (_, None) => best.push(figure),
            }
        }
        self.figures = best;
    }

    fn add(&mut self, figure: Result<Figure, String>) {
        match figure {
            Ok(figure) => self.figures.push(figure),
            Err(complaint) => self.complaints.push(complaint),
        }
    }
}

impl Program {
    pub fn new(source: Source, place: Place, groups: &[Group], way: Way) -> Self {
        Self { source, place, groups: groups.to_vec(), way, given_up: Cell::new(false) }
    }

    pub fn measures(&self, section: Section) -> bool {
        self.place == section.place && self.groups.contains(&section.group) && !self.given_up.get()
    }

    /// Start it for one group of rows, or once for each of the group's rows that needs a start of its own.
    pub fn measure(&self, group: Group, settings: &Settings) -> Measured {
        let file = settings.scratch().join(format!("{}.csv", self.name()));
        let out = format!("out={}", file.display());
        match &self.way {
            Way::Alone(program) => {
                let mut command = Command::new(program);
                self.start(command.arg(out).arg(group.to_string()), &file, settings)
            }
            Way::Ranks { library, program, settings: choices } => {
                let mut measured = Measured::default();
                for choice in *choices {
                    let mut command = library.mpirun(ranks_of(group), self.place);
                    command.envs(choice.iter().copied());
                    measured.extend(self.ranks(command, program, group, &file, settings));
                }
                measured.keep_the_best(Section { place: self.place, group });
                measured
            }
            Way::OneAndTwo(program) => {
                let mut measured = Measured::default();
                for ranks in ["1", "2"] {
                    let mut command = Library::OpenMpi.mpirun(ranks, self.place);
                    measured.extend(self.start(command.arg(program).arg(&out).arg(group.to_string()), &file, settings));
                }
                measured
            }
            Way::ScaLapack(library, program) => self.best_grid(*library, program, &file, settings),
            Way::Hpcc(read) => self.hpcc(*read, settings),
            Way::Lammps { mpiexec, open_mpi, lmp, runs } => self.lammps(mpiexec, *open_mpi, lmp, runs, settings),
            Way::PySph(python) => {
                let mut command = Command::new(python);
                command.arg(peers().join("dam_break_pysph.py")).arg(out);
                command.arg(if settings.quick { "steps=15" } else { "steps=55" });
                // It keeps what it compiles in the home folder.
                self.start(command.env("HOME", settings.peers()), &file, settings)
            }
            Way::Example { library, program, starts } => {
                let mut measured = Measured::default();
                for start in starts.iter().filter(|start| start.group == group) {
                    let mut command = match library {
                        Some(library) => library.mpirun("2", self.place),
                        None if start.twice => copies(),
                        None => Command::new(program),
                    };
                    if library.is_some() || start.twice {
                        command.arg(program);
                    }
                    measured.extend(self.example(command, start, settings));
                }
                measured
            }
            Way::Start { library, ours, theirs } => self.start_of_a_job(*library, (ours, theirs), settings),
        }
    }

    /// The name of the program's file, which is also that of its result file.
    fn name(&self) -> String {
        let path = match &self.way {
            Way::Alone(path) | Way::OneAndTwo(path) | Way::ScaLapack(_, path) => path,
            Way::Ranks { program, .. } | Way::Example { program, .. } => program,
            Way::Start { ours, .. } => ours,
            Way::Hpcc(_) => Path::new("hpcc"),
            Way::Lammps { lmp, .. } => lmp,
            Way::PySph(_) => Path::new("pysph"),
        };
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn ranks(&self, mut command: Command, program: &Path, group: Group, file: &Path, settings: &Settings) -> Measured {
        command.arg(program).arg(format!("out={}", file.display()));
        match group {
            Group::Job => return self.life(command.arg("none"), settings),
            // A peer's program asks how many ranks it has.
            Group::Sync8 if self.source != Source::Us => command.arg("sync"),
            _ => command.arg(group.to_string()),
        };
        self.start(&mut command, file, settings)
    }

    /// A program that writes rows to `file`; rows of wrong results do not count.
    fn start(&self, command: &mut Command, file: &Path, settings: &Settings) -> Measured {
        let _ = fs::remove_file(file);
        let mut complaints = self.run(command, settings).1;
        let mut figures = parse_figures(&fs::read_to_string(file).unwrap_or_default());
        if complaints.iter().any(|complaint| complaint.contains(WRONG)) {
            figures.clear();
        } else if figures.is_empty() && complaints.is_empty() {
            let line: Vec<_> = command.get_args().skip(1).map(|word| word.to_string_lossy()).collect();
            complaints.push(format!("{}: no rows from {}", self.name(), line.join(" ")));
        }
        Measured { figures, complaints }
    }

    fn run(&self, command: &mut Command, settings: &Settings) -> (Option<child::Outcome>, Vec<String>) {
        self.run_within(RUN_LIMIT, command, settings)
    }

    fn run_within(&self, limit: Duration, command: &mut Command, settings: &Settings) -> (Option<child::Outcome>, Vec<String>) {
        let threads = self.source == Source::Us || matches!(self.way, Way::Alone(_) | Way::PySph(_));
        prepare(command, settings, if threads { "2" } else { "1" });
        let name = self.name();
        let outcome = match child::run(command, limit) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.given_up.set(true);
                return (None, vec![format!("{name} left out: {error:#}")]);
            }
        };
        let text = outcome.stdout.lines().chain(outcome.stderr.lines());
        let wrong = text.filter(|line| line.contains(WRONG));
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

    fn start_of_a_job(&self, library: Library, programs: (&Path, &Path), settings: &Settings) -> Measured {
        let mut complaints = Vec::new();
        let figure = start::figure(library, programs, settings.quick, |command| {
            let (outcome, more) = self.run_within(START_LIMIT, command, settings);
            complaints.extend(more);
            let time = outcome.filter(child::Outcome::success).map(|outcome| outcome.elapsed);
            time.ok_or_else(|| format!("{}: no time of its start under {}", self.name(), library.name()))
        });
        let mut measured = Measured { figures: Vec::new(), complaints };
        measured.add(figure);
        measured
    }

    fn best_grid(&self, library: Library, program: &Path, file: &Path, settings: &Settings) -> Measured {
        let mut best = Measured::default();
        // Over TCP two rows of processes are slower by far: pivots are looked for across them.
        let grids: &[_] = if self.place == Place::Here { &["1x2", "2x1"] } else { &["1x2"] };
        for (grid, block) in grids.iter().flat_map(|grid| [(grid, 64), (grid, 128)]) {
            let mut command = library.mpirun("2", self.place);
            command.arg(program).arg(format!("out={}", file.display())).arg(format!("grid={grid}")).arg(format!("block={block}"));
            best.extend(self.start(&mut command, file, settings));
        }
        best.keep_the_best(Section { place: self.place, group: Group::Lu });
        best
    }

    fn hpcc(&self, read: fn(&str) -> Result<Figure, String>, settings: &Settings) -> Measured {
        let folder = settings.scratch().join("hpcc");
        let output = folder.join("hpccoutf.txt");
        let _ = fs::remove_file(&output);
        if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join("hpccinf.txt"), hpcc::input())) {
            return Measured { figures: Vec::new(), complaints: vec![format!("{}: {error}", folder.display())] };
        }
        let mut command = Library::OpenMpi.mpirun("2", self.place);
        let complaints = self.run(command.arg("hpcc").current_dir(&folder), settings).1;
        let mut measured = Measured { figures: Vec::new(), complaints };
        measured.add(read(&fs::read_to_string(&output).unwrap_or_default()));
        measured
    }

    fn lammps(&self, mpiexec: &Path, debian: bool, lmp: &Path, runs: &[Run], settings: &Settings) -> Measured {
        let mut measured = Measured::default();
        for run in runs {
            let log = settings.scratch().join(format!("{}.log", run.script));
            let _ = fs::remove_file(&log);
            let mut command = if debian { Library::OpenMpi.mpirun(run.ranks, self.place) } else { Command::new(mpiexec) };
            if !debian {
                command.args(["-n", run.ranks]);
            }
            command.arg(lmp).args(["-suffix", "opt", "-screen", "none", "-log"]).arg(&log);
            command.args(["-var", "steps", run.steps[usize::from(settings.quick)], "-in"]).arg(peers().join(run.script));
            measured.complaints.extend(self.run(&mut command, settings).1);
            measured.add(run.figure(&fs::read_to_string(&log).unwrap_or_default()));
        }
        measured
    }

    fn example(&self, mut command: Command, start: &Start, settings: &Settings) -> Measured {
        let (outcome, complaints) = self.run(command.args(start.arguments(settings.quick)), settings);
        let mut measured = Measured { figures: Vec::new(), complaints };
        match outcome.map(|outcome| start.figures(&outcome)) {
            Some(Ok(figures)) => measured.figures = figures,
            Some(Err(complaint)) => measured.complaints.push(complaint),
            None => {}
        }
        measured
    }
}

/// What a program says of results that it finds wrong.
const WRONG: &str = "VERIFY-FAIL";

/// The program that follows, twice at once, each copy on one of the first two cores that we may use. Fails if either does.
fn copies() -> Command {
    let cores = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    let mut allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| cores.is_set(core));
    let (first, second) = (allowed.next().unwrap_or(0), allowed.next().unwrap_or(1));
    let script =
        format!("taskset -c {first} \"$@\" & other=$!; taskset -c {second} \"$@\"; status=$?; wait $other && exit $status");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "copies"]);
    command
}

fn ranks_of(group: Group) -> &'static str {
    if group == Group::Sync8 { "8" } else { "2" }
}

/// Sources and scripts of the peers.
fn peers() -> PathBuf {
    cargo::root().join("benches/peers")
}

/// An environment in which every program runs at its best: OpenBLAS free to pick its kernels and with as
/// many threads as there are cores left to it, Open MPI willing to run as root.
fn prepare(command: &mut Command, settings: &Settings, threads: &str) {
    command.env_remove("OPENBLAS_CORETYPE").env_remove("OPENBLAS_L2_SIZE");
    command.env("OPENBLAS_NUM_THREADS", threads).env("OMP_NUM_THREADS", threads);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if settings.quick {
        command.env("BENCH_TRIALS", "5").env("BENCH_TARGET_MS", "2").env("BENCH_BUDGET_S", "0.3");
    }
}
