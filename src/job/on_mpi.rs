//! Jobs on communicators of MPI, and communicators of groups.

use super::{
    Job, Launch,
    entry::{Entry, Extent},
    outcome::Outcome,
};
use crate::{
    calls::located,
    comm::mpi,
    error::{Error, Result},
    portable::Portable,
    sync::{Group, Op, fingerprint},
};

impl Launch {
    /// Runs a job on all processes of a communicator, with `body` on each, and returns when all ranks have ended. Collective over the
    /// communicator. The job's messages use a duplicate of the communicator, so the program may use the original, and the rest of MPI,
    /// at any time. Disjoint sets of processes may run different jobs, or none.
    ///
    /// The job uses MPI whatever [`network`](Self::network) says. If [`ranks`](Self::ranks) was set, it must be the
    /// communicator's size. The calling thread calls `body` once, so `body` may capture values that are not `Send`, such as Open MPI's
    /// communicators.
    ///
    /// # Errors
    /// The job cannot be started, or a rank failed; the error then has the rank and the cause. The other ranks have then left the job,
    /// or leave it at their next call. MPI stays usable.
    ///
    /// # Examples
    /// ```no_run
    /// use global_arrays::prelude::*;
    /// use mpi::traits::{Communicator, CommunicatorCollectives};
    ///
    /// fn main() -> Result<(), Error> {
    ///     let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Multiple).expect("the first use of MPI");
    ///     let world = universe.world();
    ///     let half = world.split_by_color(mpi::topology::Color::with_value(world.rank() % 2)).expect("a colour");
    ///     Launch::new().run_on(&half, |job| {
    ///         let a = GlobalArray::<f64, Ix1>::builder(job, [1000]).zeros().create()?;
    ///         world.barrier();
    ///         a.store([job.rank()], 1.0)?;
    ///         job.sync()
    ///     })
    /// }
    /// ```
    #[doc(alias = "GA_Initialize_comm")]
    pub fn run_on<C, R: Portable, E>(&self, comm: &C, body: impl FnOnce(&Job) -> Result<R, E>) -> Result<R, E>
    where
        C: ::mpi::raw::AsRaw<Raw = ::mpi::ffi::MPI_Comm>,
        E: From<Error> + std::fmt::Display,
    {
        let start = Launch { network: Some("mpi".into()), ..self.clone() }.resolve()?;
        let entry = Entry::new(start.extent())?;
        let outcome = Outcome::new(start.variant, &start.settings)?;
        let rank_main = |conduit, cores| start.rank(&entry, conduit, cores, body, &outcome);
        mpi::begin_on(comm.as_raw(), &start.settings, true)?.run(rank_main)?;
        Ok(outcome.take()?)
    }

    /// As [`start`](Self::start), on a communicator of MPI. Collective over it; see [`run_on`](Self::run_on).
    ///
    /// # Errors
    /// As [`run_on`](Self::run_on).
    #[track_caller]
    pub fn start_on<C>(&self, comm: &C) -> Result<Job>
    where
        C: ::mpi::raw::AsRaw<Raw = ::mpi::ffi::MPI_Comm>,
    {
        located(|| {
            let start = Launch { network: Some("mpi".into()), ..self.clone() }.resolve()?;
            start.begin(Extent::Process, |settings| mpi::begin_on(comm.as_raw(), settings, true))
        })
    }
}

impl Group {
    /// A communicator of MPI whose processes are the members, in this group's order: for libraries that take one, such as PETSc or ScaLAPACK.
    /// Collective over the members. Each call makes one, which the program drops before MPI is finalised.
    ///
    /// # Errors
    /// Ranks that are not the processes of MPI, as those that a job forks; members in another collective; a refusal of MPI.
    ///
    /// # Source
    /// GA: `GA_MPI_Comm_pgroup`. MPI: `MPI_Comm_create_group`.
    #[doc(alias("GA_MPI_Comm", "GA_MPI_Comm_pgroup", "GA_MPI_Comm_pgroup_default"))]
    #[track_caller]
    pub fn mpi_comm(&self) -> Result<::mpi::topology::SimpleCommunicator> {
        located(|| {
            let all_can = |can: bool| {
                let verdict = self.agree_values(Op::Group, fingerprint(&[self.inner.key]), u64::from(!can), 0, 0)?;
                Ok(verdict.sum == 0)
            };
            mpi::communicator(self.inner.engine().conduit(), self.ranks(), self.inner.key, all_can)
        })
    }
}
