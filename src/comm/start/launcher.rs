//! Finds the launcher that started this process, if any.
//!
//! A launcher starts a program once for each rank and sets its rank number in the environment. The processes are ranks of one job,
//! which meet by MPI or by the launcher's protocol (`bootstrap`). If it speaks none, each would be a job of its own: that is refused,
//! unless the program asked for it.
//!
//! | launcher | rank, number of ranks |
//! |---|---|
//! | `ga-run`; ssh, PBS, a script | `GA_ROOT`, `GA_RANK`, `GA_RANKS` |
//! | Open MPI's `mpirun` | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` |
//! | MPICH's Hydra (`mpirun`, `mpiexec`, Intel's too), `srun --mpi=pmi2`, PALS | `PMI_RANK`, `PMI_SIZE` |
//! | `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` |
//! | another launcher with PMIx | `PMIX_RANK`; no number |
//!
//! They are checked in this order: Hydra and Open MPI may start their agents by `srun`, whose variables reach the ranks. A batch script
//! has Slurm's rank 0 and number of tasks without being a task. So only a step's number counts, and neither the batch step nor an
//! interactive shell's step (`salloc`) is an ordinary step.

use std::{
    env, fmt, fs,
    os::{fd::RawFd, unix::fs::PermissionsExt},
    sync::atomic::{AtomicU32, Ordering},
};

/// One of several processes that a launcher started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// The launcher, for messages.
    by: &'static str,
    rank: usize,
    /// `None` where the environment does not give it.
    size: Option<usize>,
    /// It is a task of Slurm's, started by `srun` itself or by an agent that `srun` started.
    in_slurm: bool,
    /// The way to speak to the launcher.
    protocol: Option<Protocol>,
}

/// How a process speaks to its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// PMI-1 or PMI-2, over a descriptor.
    Pmi { descriptor: RawFd },
    /// By the launcher's library.
    Pmix,
    /// By `ga-run`, or by rank 0 in the place of a launcher.
    Root,
    /// By the MPI library of the program: two must not speak with one launcher.
    Mpi,
}

/// The variable that `ga-run` sets: it listens at the place that `GA_ROOT` names, in place of rank 0.
pub(crate) const LISTENS: &str = "GA_LAUNCHER";

/// Stands behind a rank in place of a launcher.
const MEETING: &str = " of the program's meeting";

/// slurm.h: `SLURM_MAX_NORMAL_STEP_ID`; batch, external and interactive steps lie above.
const LAST_ORDINARY_STEP: u32 = 0xffff_fff0;

/// The advice where `srun` does not speak the library's protocol.
#[cfg(feature = "mpi")]
const SRUN: &str = "start the program by `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH), of which `srun --mpi=list` names \
                    those that this Slurm has";

/// How a launcher started this process, if one did. A forked child has the same environment and is not the launcher's, so only
/// the first process that asks gets an answer.
pub(crate) fn of_this_process() -> Option<Started> {
    /// A fact about the process.
    static FIRST: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id();
    let first = FIRST.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != own) { None } else { started(|name| env::var(name).ok()) }
}

/// How a launcher started this process, by the environment, in which `variable` looks names up.
fn started(variable: impl Fn(&str) -> Option<String>) -> Option<Started> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    let step = variable("SLURM_STEP_ID").and_then(|step| step.trim().parse::<u32>().ok());
    let in_slurm = step.is_some_and(|step| step <= LAST_ORDINARY_STEP);
    let pmi = variable("PMI_FD").and_then(|descriptor| descriptor.trim().parse::<RawFd>().ok());
    let pmi = pmi.filter(|&descriptor| descriptor >= 0).map(|descriptor| Protocol::Pmi { descriptor });
    let pmix = variable("PMIX_NAMESPACE").map(|_| Protocol::Pmix);
    let ranked = |by: &'static str, rank: &str, size: &str, protocol| {
        let (rank, size) = (number(rank)?, number(size)?);
        (rank < size).then_some(Started { by, rank, size: Some(size), in_slurm, protocol })
    };
    let slurm = || if in_slurm { ranked("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", pmi.or(pmix)) } else { None };
    let other = || {
        let by = "a launcher that speaks PMIx";
        pmix.and_then(|_| Some(Started { by, rank: number("PMIX_RANK")?, size: None, in_slurm, protocol: pmix }))
    };
    let own = || {
        variable("GA_ROOT")?;
        let by = if variable(LISTENS).is_some() { "ga-run" } else { "a script (GA_ROOT, GA_RANK, GA_RANKS)" };
        ranked(by, "GA_RANK", "GA_RANKS", Some(Protocol::Root))
    };
    own()
        .or_else(|| ranked("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", pmix))
        .or_else(|| ranked("MPICH's mpirun or another that speaks PMI", "PMI_RANK", "PMI_SIZE", pmi))
        .or_else(slurm)
        .or_else(other)
}

/// Returns true if the user says where rank 0 is, but not well which rank this process is.
pub(crate) fn is_half_said() -> bool {
    let by_root = |started: Started| started.protocol == Some(Protocol::Root);
    root().is_some() && !started(|name| env::var(name).ok()).is_some_and(by_root)
}

/// Returns true if the launcher of this process listens where its ranks meet.
pub(crate) fn listens() -> bool {
    env::var_os(LISTENS).is_some()
}

/// The place of rank 0, as the user gives it: a host and a port.
pub(crate) fn root() -> Option<String> {
    env::var("GA_ROOT").ok()
}

/// The secret that ranks prove to know where no launcher vouches for them.
///
/// # Errors
/// There is none, or others may read it; with advice.
pub(crate) fn secret() -> Result<Vec<u8>, String> {
    /// Shorter ones can be guessed.
    const SHORTEST: usize = 16;
    let (name, secret) = match (env::var("GA_TOKEN"), env::var("GA_TOKEN_FILE")) {
        (Ok(secret), _) => ("GA_TOKEN".to_owned(), secret.into_bytes()),
        (_, Ok(path)) => {
            (format!("GA_TOKEN_FILE={path}"), secret_in(&path).map_err(|why| format!("GA_TOKEN_FILE={path}: {why}"))?)
        }
        _ => {
            return Err(
                "ranks that meet at GA_ROOT prove that they know a secret, and none is set; set GA_TOKEN on all of them, or \
                        GA_TOKEN_FILE to a file that only you may read: (umask 077; openssl rand -hex 32 > token)"
                    .into(),
            );
        }
    };
    let secret = secret.trim_ascii().to_vec();
    if secret.len() < SHORTEST { Err(format!("{name}: a secret has at least {SHORTEST} bytes")) } else { Ok(secret) }
}

fn secret_in(path: &str) -> Result<Vec<u8>, String> {
    let mode = fs::metadata(path).map_err(|error| error.to_string())?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(format!("others may read or change it (mode {:03o}); chmod 600 it", mode & 0o777));
    }
    fs::read(path).map_err(|error| error.to_string())
}

/// The job's name, from a launcher that speaks PMI-2.
pub(crate) fn job() -> String {
    env::var("PMI_JOBID").unwrap_or_default()
}

impl Started {
    /// One of the ranks of a meeting of the program's own.
    ///
    /// # Errors
    /// It is none of those.
    pub(crate) fn by_meeting(rank: usize, size: usize) -> Result<Self, String> {
        if rank >= size {
            return Err(format!("the program's meeting has {size} ranks and says that this is rank {rank}"));
        }
        Ok(Started { by: MEETING, rank, size: Some(size), in_slurm: false, protocol: None })
    }

    /// A process of a launcher that speaks PMI over a descriptor.
    #[cfg(test)]
    pub(crate) fn by_pmi(rank: usize, size: usize, descriptor: RawFd) -> Self {
        let protocol = Some(Protocol::Pmi { descriptor });
        Started { by: "a test", rank, size: Some(size), in_slurm: false, protocol }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks, if the environment gives it.
    pub(crate) fn size(&self) -> Option<usize> {
        self.size
    }

    /// The same process in a program whose MPI library speaks with the launcher. One that a script started keeps its protocol.
    pub(crate) fn with_mpi(self) -> Self {
        let protocol = self.protocol.filter(|&protocol| protocol == Protocol::Root).unwrap_or(Protocol::Mpi);
        Started { protocol: Some(protocol), ..self }
    }

    /// The way to speak to the launcher, if there is one.
    pub(crate) fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// Returns true if `srun` started it, by itself or by an agent.
    pub(crate) fn in_slurm(&self) -> bool {
        self.in_slurm
    }

    /// Returns true if there may be other ranks, as far as is known.
    pub(crate) fn has_others(&self) -> bool {
        self.size != Some(1)
    }

    /// The error if MPI knows of another number of ranks than the launcher started: each of its processes is then a rank 0 of 1.
    #[cfg(feature = "mpi")]
    pub(crate) fn differs(&self, found: usize) -> Option<String> {
        if self.size.is_none_or(|size| size == found) {
            return None;
        }
        let advice = if self.in_slurm {
            format!("srun and the library do not speak the same protocol; {SRUN}, or by the library's own mpirun")
        } else {
            "the launcher belongs to another MPI than the library; start the program by the launcher of the library that it was built \
             with, or build it again with the other one (MPICC)"
                .into()
        };
        Some(format!("this is {self}, but the MPI library of the program knows of {found}: {advice}"))
    }

    /// What rank 0 prints before Open MPI starts without PMIx under `srun`. Open MPI was seldom built for anything else, and then
    /// ends the process with the advice to build it anew.
    #[cfg(feature = "mpi")]
    pub(crate) fn hint_for_open_mpi(&self) -> Option<String> {
        let wanted = self.in_slurm && self.protocol != Some(Protocol::Pmix) && self.rank == 0;
        wanted.then(|| format!("srun started this program without PMIx; if Open MPI does not start, {SRUN}"))
    }

    /// The error of a binary without MPI whose launcher cannot be spoken to. Rank 0 advises. The others only give the cause, as
    /// one of them may end first and take rank 0 with it.
    pub(crate) fn refusal(&self) -> String {
        let advice = match (self.rank, self.in_slurm) {
            (0, true) => {
                "; start it by `srun --mpi=pmi2`, or choose a job of its own for each process, whose ranks it forks (GA_BOOTSTRAP=fork)"
            }
            (0, false) => {
                "; start it by ga-run or MPICH's mpirun, build it with `--features mpi` against the launcher's MPI, or choose a job of its own for \
                 each process, whose ranks it forks (GA_BOOTSTRAP=fork)"
            }
            _ => "",
        };
        format!("this is {self}, which offers neither PMI nor PMIx, so the ranks cannot meet{advice}")
    }
}

/// `rank 1 of 4 that Open MPI's mpirun started`
impl fmt::Display for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of ", self.rank)?;
        match self.size {
            Some(size) => write!(f, "{size}")?,
            None => write!(f, "those")?,
        }
        if self.by == MEETING { f.write_str(MEETING) } else { write!(f, " that {} started", self.by) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(variables: &[(&str, &str)]) -> Option<Started> {
        started(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    /// The launcher's first word, rank and size.
    fn seen(variables: &[(&str, &str)]) -> Option<(&'static str, usize, Option<usize>)> {
        under(variables).map(|started| (started.by.split(' ').next().unwrap_or_default(), started.rank, started.size))
    }

    const SLURM: [(&str, &str); 3] = [("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "5"), ("SLURM_STEP_ID", "0")];

    #[test]
    fn each_launcher_is_known() {
        assert_eq!(under(&[]), None);
        let open_mpi =
            [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "3"), ("PMIX_NAMESPACE", "7")];
        assert_eq!(seen(&open_mpi), Some(("Open", 3, Some(4))));
        assert_eq!(seen(&[("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_FD", "6")]), Some(("MPICH's", 0, Some(2))));
        assert_eq!(seen(&SLURM), Some(("srun", 2, Some(5))));
        assert_eq!(seen(&[("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "7")]), Some(("a", 1, None)));
    }

    #[test]
    fn how_a_launcher_is_spoken_to() {
        let protocol = |variables: &[(&str, &str)]| under(variables).and_then(|started| started.protocol());
        let hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_FD", "6")];
        assert_eq!(protocol(&hydra), Some(Protocol::Pmi { descriptor: 6 }));
        assert_eq!(protocol(&hydra[..2]), None);
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_NAMESPACE", "7")];
        // A descriptor of the agent's, which srun started.
        assert_eq!(protocol(&[&open_mpi[..], &hydra[2..]].concat()), Some(Protocol::Pmix));
        assert_eq!(protocol(&[&SLURM[..], &hydra[2..]].concat()), Some(Protocol::Pmi { descriptor: 6 }));
        assert_eq!(protocol(&SLURM), None);
    }

    #[test]
    fn a_script_says_so_and_comes_before_launchers() {
        let own = [("GA_ROOT", "node07:29400"), ("GA_RANK", "1"), ("GA_RANKS", "3")];
        let hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_FD", "6")];
        let started = under(&[&hydra[..], &own].concat()).expect("a rank");
        assert_eq!((started.rank(), started.size(), started.protocol()), (1, Some(3), Some(Protocol::Root)));
        let by = |started: Started| started.to_string();
        assert_eq!(by(started), "rank 1 of 3 that a script (GA_ROOT, GA_RANK, GA_RANKS) started");
        assert_eq!(
            under(&[&own[..], &[(LISTENS, "ga-run")]].concat()).map(by).as_deref(),
            Some("rank 1 of 3 that ga-run started")
        );
        assert_eq!(under(&own[1..]), None);
        assert_eq!(under(&[own[0], ("GA_RANK", "3"), own[2]]), None);
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("global-arrays-secret-{}", std::process::id()));
        fs::write(&path, "0123456789abcdef0123\n").expect("a file");
        let name = path.to_str().expect("a name");
        let read = |mode| {
            fs::set_permissions(name, fs::Permissions::from_mode(mode)).expect("the mode of a file");
            secret_in(name)
        };
        let (open, own) = (read(0o640), read(0o600));
        fs::remove_file(name).expect("no file any more");
        assert!(open.is_err_and(|why| why.contains("mode 640") && why.contains("chmod 600")));
        assert_eq!(own.as_deref(), Ok(&b"0123456789abcdef0123\n"[..]));
        assert!(secret_in(name).is_err());
    }

    #[test]
    fn an_agent_that_srun_started_is_not_the_launcher() {
        let inside = |own: [(&'static str, &'static str); 2]| seen(&[&SLURM[..], &own[..]].concat());
        assert_eq!(inside([("PMI_RANK", "7"), ("PMI_SIZE", "8")]), Some(("MPICH's", 7, Some(8))));
        assert_eq!(inside([("OMPI_COMM_WORLD_RANK", "6"), ("OMPI_COMM_WORLD_SIZE", "9")]), Some(("Open", 6, Some(9))));
        assert_eq!(inside([("PMIX_RANK", "2"), ("PMIX_NAMESPACE", "slurm.1.0")]), Some(("srun", 2, Some(5))));
    }

    #[test]
    fn a_batch_script_is_no_task() {
        let batch = [("SLURM_JOB_ID", "12"), ("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")];
        assert_eq!(under(&batch), None);
        for special in ["4294967290", "4294967291", "4294967292"] {
            let step = [("SLURM_STEP_ID", special), ("SLURM_STEP_NUM_TASKS", "1")];
            assert_eq!(under(&[&batch[..], &step[..]].concat()), None);
        }
    }

    #[cfg(feature = "mpi")]
    #[test]
    fn srun_is_told_which_protocol_to_speak() {
        let pmi2 = [&SLURM[..], &[("PMI_RANK", "2"), ("PMI_SIZE", "5")]].concat();
        for variables in [&SLURM[..], &pmi2] {
            let started = under(variables).expect("a task");
            assert_eq!(started.differs(5), None);
            let text = started.differs(1).expect("each is alone");
            for words in ["rank 2 of 5", "--mpi=pmi2", "--mpi=pmix", "srun --mpi=list"] {
                assert!(text.contains(words), "{words} is not in {text}");
            }
        }
        let hydra = under(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]).expect("a rank").differs(1).expect("each is alone");
        assert!(!hydra.contains("srun") && hydra.contains("MPICC"), "{hydra}");
    }

    #[cfg(feature = "mpi")]
    #[test]
    fn open_mpi_is_warned_of_an_srun_without_pmix() {
        let first = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "5"), ("SLURM_STEP_ID", "0")];
        let hint = |more: &[(&str, &str)]| under(&[&first[..], more].concat()).and_then(|started| started.hint_for_open_mpi());
        assert!(hint(&[]).is_some_and(|text| text.contains("srun --mpi=pmix")));
        assert!(hint(&[("PMI_RANK", "0"), ("PMI_SIZE", "5")]).is_some());
        assert_eq!(hint(&[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "slurm.1.0")]), None);
        assert_eq!(under(&SLURM).and_then(|started| started.hint_for_open_mpi()), None, "one rank says it");
    }

    #[test]
    fn what_makes_no_sense_is_not_believed() {
        assert_eq!(under(&[("PMI_RANK", "2"), ("PMI_SIZE", "2")]), None);
        assert_eq!(under(&[("PMI_RANK", "-1"), ("PMI_SIZE", "2")]), None);
        assert_eq!(under(&[("OMPI_COMM_WORLD_SIZE", "2")]), None);
        assert_eq!(under(&[("PMIX_RANK", "0")]), None);
    }

    #[test]
    fn rank_0_says_what_to_do_and_all_say_why() {
        let refusal = |rank| under(&[("PMI_RANK", rank), ("PMI_SIZE", "4")]).expect("a launcher").refusal();
        for rank in ["0", "3"] {
            let text = refusal(rank);
            assert!(
                text.contains(&format!("rank {rank} of 4 that MPICH's mpirun")) && text.contains("neither PMI nor PMIx"),
                "{text}"
            );
            assert_eq!(text.contains("--features mpi"), rank == "0", "{text}");
        }
        assert!(under(&SLURM).is_some_and(|started| !started.refusal().contains("srun --mpi")), "rank 2 says only why");
        let alone = under(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]).expect("a launcher");
        assert!(!alone.has_others());
        assert!(under(&[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "7")]).expect("a launcher").has_others());
    }
}
