//! Which launcher started this process, if any: `mpirun`, `srun` or a similar one.
//!
//! Such a launcher starts a program once for each rank and sets its rank number in the environment. These ranks must use MPI. A binary
//! without MPI would instead run one job per process: as many jobs of one rank or, where each takes all cores, as many whole
//! jobs. So this module checks before anything starts, unless the program chose its network.
//!
//! | launcher | rank, number of ranks | other variables |
//! |---|---|---|
//! | Open MPI's `mpirun` | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` | PMIx's |
//! | MPICH's Hydra (`mpirun`, `mpiexec`, Intel's too), `srun --mpi=pmi2`, PALS | `PMI_RANK`, `PMI_SIZE` | |
//! | `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | `SLURM_STEP_ID`, an ordinary one |
//! | another launcher with PMIx | `PMIX_RANK`; the number is not set | `PMIX_NAMESPACE` |
//!
//! They are checked in this order: Hydra and Open MPI start their agents by `srun` inside an allocation, and the variables of the
//! agent reach the ranks. A batch script has Slurm's rank 0 and number of tasks without being a task: only a step's number of tasks
//! counts, and neither the batch step nor the one of an interactive shell (`salloc`) is an ordinary step.

use std::fmt;

/// One of several processes that a launcher started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// The launcher, for messages.
    by: &'static str,
    rank: usize,
    /// `None` where the launcher does not say it by the environment.
    size: Option<usize>,
    /// It is a task of Slurm's, started by `srun` itself or by an agent that `srun` started.
    #[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "read where there is MPI"))]
    in_slurm: bool,
    /// The launcher speaks PMIx.
    #[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "read where there is MPI"))]
    pmix: bool,
}

/// slurm.h: `SLURM_MAX_NORMAL_STEP_ID`; batch, external and interactive steps lie above.
const LAST_ORDINARY_STEP: u32 = 0xffff_fff0;

/// What to do where `srun` does not speak the library's protocol.
#[cfg(feature = "mpi")]
const SRUN: &str = "start the program by `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH), of which `srun --mpi=list` names \
                    those that this Slurm has";

/// What the environment, as `variable` looks it up, says about who started this process.
pub(crate) fn started(variable: impl Fn(&str) -> Option<String>) -> Option<Started> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    let step = variable("SLURM_STEP_ID").and_then(|step| step.trim().parse::<u32>().ok());
    let in_slurm = step.is_some_and(|step| step <= LAST_ORDINARY_STEP);
    let pmix = variable("PMIX_NAMESPACE").is_some();
    let ranked = |by: &'static str, rank: &str, size: &str| {
        let (rank, size) = (number(rank)?, number(size)?);
        (rank < size).then_some(Started { by, rank, size: Some(size), in_slurm, pmix })
    };
    let slurm = || if in_slurm { ranked("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS") } else { None };
    let other = || {
        let by = "a launcher that speaks PMIx";
        if pmix { Some(Started { by, rank: number("PMIX_RANK")?, size: None, in_slurm, pmix }) } else { None }
    };
    ranked("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
        .or_else(|| ranked("MPICH's mpirun or another that speaks PMI", "PMI_RANK", "PMI_SIZE"))
        .or_else(slurm)
        .or_else(other)
}

impl Started {
    /// Whether there are others, as far as is known.
    pub(crate) fn has_others(&self) -> bool {
        self.size != Some(1)
    }

    /// What is wrong if MPI knows of another number of ranks than the launcher started: each of its processes is then a rank 0 of 1.
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

    /// What rank 0 says before Open MPI starts without PMIx under `srun`. It was seldom built for anything else, and then ends the
    /// process with the advice to build it anew.
    #[cfg(feature = "mpi")]
    pub(crate) fn hint_for_open_mpi(&self) -> Option<String> {
        let wanted = self.in_slurm && !self.pmix && self.rank == 0;
        wanted.then(|| format!("srun started this program without PMIx; if Open MPI does not start, {SRUN}"))
    }

    /// Why a binary without MPI does not start here. Rank 0 says what to do; the others only why, as one of them may end first and take
    /// rank 0 with it.
    pub(crate) fn refusal(&self) -> String {
        let advice = if self.rank == 0 {
            "; build it with `--features mpi`, against the same MPI as the launcher, or choose another network for each of the \
             processes alone (GA_NETWORK=shared_memory)"
        } else {
            ""
        };
        format!("this is {self}, but the binary has no MPI and each would be a job of its own{advice}")
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
        write!(f, " that {} started", self.by)
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
            assert!(text.contains(&format!("rank {rank} of 4 that MPICH's mpirun")) && text.contains("has no MPI"), "{text}");
            assert_eq!(text.contains("--features mpi"), rank == "0", "{text}");
        }
        let alone = under(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]).expect("a launcher");
        assert!(!alone.has_others());
        assert!(under(&[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "7")]).expect("a launcher").has_others());
    }
}
