//! How a job is started: ranks, network, heap.

use std::{path::PathBuf, sync::Arc};

use super::{
    Job,
    entry::{Entry, Extent},
    machine::Machine,
    options::{Bootstrap, Connect},
    outcome::Outcome,
    report::Wanted,
};
#[cfg(test)]
pub(crate) use crate::comm::simulated::Report;
#[cfg(test)]
use crate::comm::start::threads;
use crate::{
    comm::{
        Conduit,
        start::{Ranks, Variant, settings::Settings, table},
    },
    error::Error,
    portable::Portable,
};

/// How to start a job. Values that the program does not set come from the environment, or else from the machine.
///
/// | method | variable | default |
/// |---|---|---|
/// | [`ranks`](Self::ranks) | `GA_RANKS` | one per core that this process may use; under `mpirun` and `srun`, set by the launcher |
/// | [`network`](Self::network) | `GA_NETWORK` | `mpi` under `mpirun` and `srun` if the binary has the feature, else `shared_memory` |
/// | [`bootstrap`](Self::bootstrap) | `GA_BOOTSTRAP` | ranks of `shared_memory` and `ib` are the processes that `mpirun` or `srun` started, or those of `GA_ROOT`; else this process forks them |
/// | [`ranks_per_node`](Self::ranks_per_node) | `GA_RANKS_PER_NODE` | a node is a machine |
/// | [`heap`](Self::heap) | `GA_HEAP` | the memory of the node, for each rank; this is address space, not pages |
/// | [`memory`](Self::memory) | `GA_MEMORY` | no limit beyond those of the kernel and cgroups; bytes that all ranks of a machine may commit together |
/// | [`pin`](Self::pin) | `GA_PIN` | ranks are pinned when each has a core |
/// | [`large_pages`](Self::large_pages) | `GA_LARGE_PAGES` | 2 MiB pages where the system allows an ordinary user to have them |
/// | [`stats`](Self::stats), [`stats_file`](Self::stats_file) | `GA_STATS` | 0; 1 counts operations and prints tables at the end; or a file for them |
/// | [`trace`](Self::trace) | `GA_TRACE` | no trace; a file for a timeline of all ranks |
/// | [`timeout`](Self::timeout) | `GA_TIMEOUT` | waits never time out; value in seconds |
/// | [`silence`](Self::silence) | `GA_SILENCE` | 3.5; seconds after which a machine that does not answer, or over `ib` a broken connection, ends the job |
/// | [`connect`](Self::connect) | `GA_CONNECT` | `overlapped`; when and how ranks connect, over `ib` |
/// | [`connections`](Self::connections) | `GA_CONNECTIONS` | no limit; connections that a rank may have at a time, over `ib` |
/// | [`simulated`](Self::simulated) | `GA_COMPUTING`, `GA_SEED`, `GA_FAULTS`, `GA_STACK`, `GA_COROUTINES` | see [`Machine`]; over a simulated network |
///
/// Sizes take the suffixes `K`, `M`, `G`, `T` (powers of 1024). Switches are 0 or 1. An invalid value, in a variable or
/// from a method, is an [`Error::Launch`] of [`run`](Self::run); an empty variable counts as unset.
///
/// Networks: `shared_memory` (ranks are processes), `threads` (ranks are threads of this process), and, to test programs against
/// a network without mapped memory, `shared_memory:unmapped` and `threads:unmapped`. With the feature `mpi`, `mpi`: ranks are
/// processes that an MPI launcher started. Over `mpi` the values must be equal on all ranks.
///
/// `simulated:gemini`, `simulated:infiniband`, `simulated:extoll`, `simulated:bluegene` and `simulated:loopback` run the program in virtual time on a model of such a
/// machine, and `simulated:FILE` on a model of your own. `simulated:ib` runs the protocols of `ib` themselves in virtual time. [`Launch::simulated`]
/// takes the [`Machine`] with what only such jobs may choose.
///
/// `ib` drives an adapter for InfiniBand or RoCE by libibverbs, which is loaded when the job starts. Ranks are processes, forked or started by a
/// launcher. It has run on soft-RoCE, and on no adapter yet. `GA_IB_DEVICE` names the ports that the ranks of a machine take in turns, as
/// `mlx5_0:1`, and `GA_IB_GID` the entry of a port's GID table. Without them they are found, and so is the partition (`GA_IB_PKEY`). `GA_IB_SL` and
/// `GA_IB_TC` set the service level and the traffic class of packets.
///
/// `ib:soft` runs the same protocols on a software device, for tests. Ranks are threads of this process, and those of different nodes
/// ([`ranks_per_node`](Self::ranks_per_node)) reach each other by queue pairs that connect on demand. With `ib:sockets` they are processes of one
/// machine, forked or started by a launcher, whose devices reach each other by sockets.
///
/// `ofi` drives an adapter by libfabric, which is loaded when the job starts: the first provider of a list that will do, and `ofi:PROVIDER` the one
/// that it names, such as `ofi:cxi` or `ofi:tcp;ofi_rxm`. Ranks are processes, forked or started by a launcher. `GA_OFI_DOMAIN` names the domains that
/// the ranks of a machine take in turns. It has run on providers of sockets and of shared memory, and on no adapter yet.
///
/// `gemini` and `extoll` drive their adapters by libraries that `GA_DMAPP` and `GA_EXTOLL` name, which users compile on their machine: the README has
/// the commands. Ranks are processes that a launcher has started. Neither has run on an adapter.
///
/// For tests, a name takes layers, such as `threads+hidden+scrambled`. With `hidden` no memory is mapped. Between ranks that do not see
/// each other's memory, `delayed` makes puts visible late, and `scrambled` completes operations out of order. `:unmapped` stands for
/// `+hidden+delayed+scrambled`. `threads:packets+hidden` runs the active messages that also `mpi` runs, inside one machine. `counted` prints
/// how many operations each rank asked the network for, and `traced` prints each of them.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Launch {
    pub(super) ranks: Option<usize>,
    pub(super) network: Option<String>,
    pub(super) machine: Option<Machine>,
    pub(super) bootstrap: Option<Bootstrap>,
    pub(super) ranks_per_node: Option<usize>,
    pub(super) heap: Option<usize>,
    pub(super) memory: Option<u64>,
    pub(super) pin: Option<bool>,
    pub(super) large_pages: Option<bool>,
    pub(super) stats: Option<bool>,
    pub(super) stats_file: Option<PathBuf>,
    pub(super) trace: Option<PathBuf>,
    pub(super) timeout: Option<f64>,
    pub(super) silence: Option<f64>,
    pub(super) connect: Option<Connect>,
    pub(super) connections: Option<usize>,
    pub(super) coroutines: Option<bool>,
}

impl Launch {
    /// All values come from the environment or the machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// A job in virtual time on a modelled machine; see [its page](crate::guide::virtual_cluster). The network is `simulated:` and the
    /// machine's name. All other values come from the environment or the machine on which the job runs.
    pub fn simulated(machine: Machine) -> Self {
        Self { network: Some(table::simulated(&machine.model)), machine: Some(machine), ..Self::default() }
    }

    /// Number of ranks, from 1 to 8192, and to 65,536 of a simulated network.
    pub fn ranks(mut self, ranks: usize) -> Self {
        self.ranks = Some(ranks);
        self
    }

    /// The network by name. It takes precedence over the choice under `mpirun` and `srun`.
    pub fn network(mut self, name: impl Into<String>) -> Self {
        self.network = Some(name.into());
        self
    }

    /// How the ranks of `shared_memory` and `ib` start and meet.
    ///
    /// Without a choice, they are the processes of the launcher that started this one, and are forked if there is none, or if it started one
    /// process and more ranks are asked for. Those of `shared_memory` must be on one machine; in a binary with the feature `mpi` they are
    /// forked without a choice.
    pub fn bootstrap(mut self, bootstrap: Bootstrap) -> Self {
        self.bootstrap = Some(bootstrap);
        self
    }

    /// Splits the ranks into nodes of this many consecutive ranks, at least 1. Ranks share memory only inside a node and use the network
    /// between nodes. So you can test the path between machines on one machine. The last node may be smaller.
    ///
    /// On one machine the path between nodes is that of `:unmapped`. The nodes still share the machine's resources: memory limits and
    /// [`Job::threads`] apply to the whole machine.
    pub fn ranks_per_node(mut self, ranks: usize) -> Self {
        self.ranks_per_node = Some(ranks);
        self
    }

    /// Address space of each rank's heap in bytes, more than 0. A heap that cannot be mapped is halved until it can.
    pub fn heap(mut self, bytes: usize) -> Self {
        self.heap = Some(bytes);
        self
    }

    /// Bytes that the ranks of a machine may commit together, more than 0.
    #[doc(alias("GA_Initialize_ltd", "GA_Set_memory_limit"))]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Whether to pin ranks to cores. Simulated ranks that are threads are pinned to one core together, with the threads that they start.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = Some(pin);
        self
    }

    /// Whether to use 2 MiB pages if possible. Each rank takes at least one. If these first pages would exceed a 64th of the free
    /// memory, the job uses ordinary pages.
    pub fn large_pages(mut self, large: bool) -> Self {
        self.large_pages = Some(large);
        self
    }

    /// Whether to count how much data each rank moves to which others, and its connections, for [`Job::stats`], and to print a table to stderr
    /// when the job ends successfully.
    ///
    /// Counting costs about 50 ns per element operation and 200 ns per small patch. When it is off, it costs nothing.
    pub fn stats(mut self, stats: bool) -> Self {
        self.stats = Some(stats);
        self
    }

    /// Counts as [`stats`](Self::stats) does, and writes the figures into a file when the job ends successfully: as JSON if its name ends
    /// in `.json`, as a picture of how many bytes each rank moved to which others if it ends in `.svg`.
    pub fn stats_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.stats_file = Some(path.into());
        self
    }

    /// Writes a timeline of all ranks into a file when the job ends successfully: calls with their waits, and the computing that
    /// [`Simulation::work`](crate::simulation::Simulation::work) declares. Its name ends in `.json`; <https://ui.perfetto.dev> shows it.
    ///
    /// All ranks together keep the first million slices of time, at some 150 bytes each, and as much again while they are written; a line says
    /// how many are missing. Elements of mapped memory have no slices, but take the longer path that `stats` takes, some 50 ns more each.
    pub fn trace(mut self, path: impl Into<PathBuf>) -> Self {
        self.trace = Some(path.into());
        self
    }

    /// Seconds after which a wait returns an error: from 0.001 to 10⁹.
    pub fn timeout(mut self, seconds: f64) -> Self {
        self.timeout = Some(seconds);
        self
    }

    /// Seconds after which the job ends because another machine does not answer: it is down, or cut off from the network. From 1 to 10⁹, or 0
    /// for never. Ranks that compute answer all the same. Choose more where the network fails for seconds now and then, and 0 before you stop
    /// all ranks of a machine in a debugger. Over `ib`, the job also ends if the
    /// connection to a rank of another node broke and does not come back for so long. Otherwise without effect on one machine, and where MPI
    /// does not provide `MPI_THREAD_MULTIPLE`.
    pub fn silence(mut self, seconds: f64) -> Self {
        self.silence = Some(seconds);
        self
    }

    /// Whether simulated ranks are coroutines. No program may choose that: see `comm::soft::ranks`.
    #[cfg(test)]
    pub(super) fn coroutines(mut self, coroutines: bool) -> Self {
        self.coroutines = Some(coroutines);
        self
    }

    /// When and how ranks of different nodes connect, over a network that makes connections (`ib`).
    ///
    /// [`Stats::connections`](crate::Stats::connections) counts the connections.
    pub fn connect(mut self, connect: Connect) -> Self {
        self.connect = Some(connect);
        self
    }

    /// Connections that a rank may have at a time, at least 1, over a network that connects on demand (`ib`). A rank that needs another one
    /// closes the one that it has not used for the longest time. A connection stays for 10 ms at least. So fewer take less memory in the adapter, and
    /// more time.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = Some(connections);
        self
    }

    /// Starts the ranks, runs `body` on each, and returns when all have ended. See [`run`](crate::run).
    ///
    /// # Errors
    /// The job cannot be started, for instance because the caller is a rank of a running job; or a rank failed. The error then has the
    /// first such rank and the cause.
    pub fn run<R: Portable, E>(&self, body: impl Fn(&Job) -> Result<R, E> + Sync) -> Result<R, E>
    where
        E: From<Error> + std::fmt::Display,
    {
        let start = self.resolve()?;
        let entry = Entry::new(start.extent())?;
        let outcome = Outcome::new(start.variant, &start.settings)?;
        start.variant.run(&start.settings, &|conduit, cores| start.rank(&entry, conduit, cores, &body, &outcome))?;
        Ok(outcome.take()?)
    }

    /// Runs ranks that are threads over whatever a test makes of their conduits.
    #[cfg(test)]
    pub(crate) fn run_over(
        &self,
        join: impl Fn(crate::comm::node::Member) -> Arc<Conduit> + Sync,
        body: impl Fn(&Job) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let start = self.resolve()?;
        let entry = Entry::new(Extent::Threads)?;
        let outcome = Outcome::new(start.variant, &start.settings)?;
        threads::run(&start.settings, &|member| start.rank(&entry, join(member), start.settings.cores, &body, &outcome))
    }

    /// Runs a simulated job, and says what happened.
    #[cfg(test)]
    pub(crate) fn simulate(&self, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> Result<Report, Error> {
        let start = self.resolve()?;
        let entry = Entry::new(Extent::Threads)?;
        let outcome = Outcome::new(start.variant, &start.settings)?;
        table::simulate(&start.settings, &|conduit, cores| start.rank(&entry, conduit, cores, &body, &outcome))
    }

    /// Runs one rank that a test has made, as it says, in a thread that is its own.
    #[cfg(test)]
    pub(crate) fn run_as(&self, conduit: Arc<Conduit>, body: impl FnOnce(&Job) -> Result<(), Error>) -> Result<(), String> {
        let start = self.resolve().map_err(|error| error.to_string())?;
        let entry = Entry::new(Extent::Threads).map_err(|error| error.to_string())?;
        let outcome = Outcome::new(start.variant, &start.settings).map_err(|error| error.to_string())?;
        start.rank(&entry, conduit, 1, body, &outcome)
    }
}

/// A [`Launch`] with every question answered.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(super) variant: &'static Variant,
    /// Its name, with its layers.
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) memory: Option<u64>,
    pub(super) wanted: Wanted,
}

impl Start {
    /// What the job takes of the process that starts it.
    pub(super) fn extent(&self) -> Extent {
        if matches!(self.variant.ranks, Ranks::Threads(_) | Ranks::Simulated(_)) { Extent::Threads } else { Extent::Process }
    }

    /// One rank of the job, on a machine whose ranks share so many cores: the body, and its orderly end.
    pub(super) fn rank<R: Portable, E: std::fmt::Display>(
        &self,
        entry: &Entry,
        conduit: Arc<Conduit>,
        cores: usize,
        body: impl FnOnce(&Job) -> Result<R, E>,
        outcome: &Outcome<R>,
    ) -> Result<(), String> {
        let _rank = entry.rank();
        let job = Job::new(conduit, self, cores).map_err(|error| error.to_string())?;
        let value = body(&job).map_err(|error| error.to_string())?;
        job.close().and_then(|()| outcome.keep(&job, &value)).map_err(|error| error.to_string())
    }
}
