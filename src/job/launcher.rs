//! Who started this process, if it was one of many: `mpirun`, `srun` or a kin of them.
//!
//! Such a launcher starts a program once for each rank and sets its number in the environment. The network between
//! ranks that were started like this is MPI's; a binary that has no MPI would be as many jobs of one rank, or, where each takes all
//! cores, as many whole jobs. So it is asked here, before anything starts, and a program that chose its network is not asked.
//!
//! | launcher | rank, number of ranks | beside |
//! |---|---|---|
//! | Open MPI's `mpirun` | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` | PMIx's |
//! | MPICH's Hydra (`mpirun`, `mpiexec`, Intel's too), `srun --mpi=pmi2`, PALS | `PMI_RANK`, `PMI_SIZE` | |
//! | `srun` | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` | `SLURM_STEP_ID`, an ordinary one |
//! | another one that speaks PMIx | `PMIX_RANK`; how many is not said | `PMIX_NAMESPACE` |
//!
//! They are asked in this order: Hydra and Open MPI start their agents by `srun` inside an allocation, and the variables of the
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
}

/// slurm.h: `SLURM_MAX_NORMAL_STEP_ID`; batch, external and interactive steps lie above.
const LAST_ORDINARY_STEP: u32 = 0xffff_fff0;

/// What the environment, as `variable` looks it up, says about who started this process.
pub(crate) fn started(variable: impl Fn(&str) -> Option<String>) -> Option<Started> {
    let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
    let ranked = |by: &'static str, rank: &str, size: &str| {
        let (rank, size) = (number(rank)?, number(size)?);
        (rank < size).then_some(Started { by, rank, size: Some(size) })
    };
    let slurm = || {
        let step: u32 = variable("SLURM_STEP_ID")?.trim().parse().ok()?;
        if step > LAST_ORDINARY_STEP { None } else { ranked("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS") }
    };
    let other = || {
        variable("PMIX_NAMESPACE")?;
        Some(Started { by: "a launcher that speaks PMIx", rank: number("PMIX_RANK")?, size: None })
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
        Some(format!(
            "this is {self}, but the MPI library of the program knows of {found}: the launcher belongs to another MPI than the library; \
             start the program by the launcher of the library that it was built with, or build it again with the other one (MPICC)"
        ))
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
