//! What a network needs to start the ranks of a job.

use std::time::Duration;

use super::{bootstrap::key_values::Meet, launcher::Started};
use crate::{
    comm::{
        Connect, Topology,
        kit::cores,
        layers::{self, Layer},
        soft::{Faults, Form},
    },
    error::Error,
};

/// The time that computing takes over a simulated network, for [`Machine::computing`](crate::simulation::Machine::computing).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Computing {
    /// `declared`, the default: what the program says by [`Simulation::work`](crate::simulation::Simulation::work), at the speed of the
    /// modelled processor.
    #[default]
    Declared,
    /// `measured`, or `measured:2.5`: what each rank takes here between its calls, times this factor, which is above 0 and below 10⁶. Not
    /// the same in each run.
    Measured(f64),
    /// `zero`: no time. What remains is communication.
    Zero,
    /// `skip`: what the program says, but it computes nothing, and [hollow](crate::Builder::hollow) arrays have no contents; see
    /// [`Simulation::skips`](crate::simulation::Simulation::skips).
    Skip,
}

/// The settings of a job.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Ranks that a network of one machine starts.
    pub ranks: usize,
    /// The number of ranks, if the program set it: a launcher must have started as many.
    pub wanted: Option<usize>,
    /// The launcher that started this process.
    #[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "compared with what MPI says"))]
    pub started: Option<Started>,
    /// The launcher by which the ranks of a network of one machine meet; without one they are forked, or threads.
    pub launched: Option<Started>,
    /// The way to meet where the MPI library of the program speaks with the launcher.
    pub meet: Option<Meet>,
    /// The threads of the network in each rank's process.
    pub threads: usize,
    /// Connections that a rank may have at a time, where a network has connections.
    pub connections: Option<usize>,
    /// When and how it makes them.
    pub connect: Connect,
    /// The options of networks that are set, by the names of their variables.
    pub options: Vec<(&'static str, String)>,
    /// The layers on the network, from below.
    pub layers: Vec<Layer>,
    /// What the network's name names behind a colon, where the network understands that: the machine that a simulated one is a model of,
    /// by name or by file, or a provider of libfabric.
    pub device: Option<String>,
    /// The form of simulated ranks, and the bytes of each rank's stack.
    pub form: Form,
    pub stack: usize,
    /// The seed of the order of events at one time in a simulated network.
    pub seed: u64,
    pub computing: Computing,
    /// The faults of a simulated network.
    pub faults: Faults,
    /// This many consecutive ranks are a node. A network that has nodes of its own splits them by it.
    pub ranks_per_node: Option<usize>,
    /// Bytes of each segment, at most.
    pub heap: usize,
    pub large_pages: bool,
    /// The job counts operations. Networks do not, but ranks that were told different things wait for each other in vain.
    pub stats: bool,
    /// The longest that waits may last, in seconds. With a limit, transfers that use memory of a caller may be given up.
    pub timeout: Option<f64>,
    /// A machine that does not answer for this long is lost, and with it the job.
    pub silence: Option<Duration>,
    /// Cores that the ranks share.
    pub cores: usize,
    /// The cores for ranks to be pinned to; none if they are not.
    pub pins: Vec<usize>,
}

impl Settings {
    /// Refuses another number of ranks than the program set, where a launcher started them.
    pub(in crate::comm) fn check_ranks(&self, started: usize) -> Result<(), Error> {
        match self.wanted {
            Some(wanted) if wanted != started => Err(Error::Launch(format!(
                "{wanted} ranks were asked for, but {}",
                match self.launched.is_some_and(|by| by.protocol().is_none()) {
                    true => format!("the program's meeting has {started}"),
                    false => format!("the launcher started {started}; the number of ranks is the launcher's (mpirun -n)"),
                }
            ))),
            _ => Ok(()),
        }
    }

    /// An option of a network, by the name of its variable.
    pub(in crate::comm) fn option(&self, variable: &str) -> Option<&str> {
        self.options.iter().find(|(name, _)| *name == variable).map(|(_, text)| &**text)
    }

    /// Returns true if transfers may be given up.
    pub(in crate::comm) fn may_give_up(&self) -> bool {
        self.timeout.is_some()
    }

    /// Pins the calling thread, if ranks are pinned. A refusal costs speed only.
    pub(super) fn pin(&self, rank: usize) {
        let _ = self.own_cores(rank, self.ranks).map(cores::confine);
    }

    /// The cores to which one of `ranks` ranks of a machine is to be pinned, if it is.
    pub(crate) fn own_cores(&self, rank: usize, ranks: usize) -> Option<&[usize]> {
        // Ranks share the cores evenly: rank r owns those from r·c/n to (r+1)·c/n.
        let count = self.pins.len();
        (ranks <= count).then(|| &self.pins[rank * count / ranks..(rank + 1) * count / ranks])
    }

    /// The topology of a job of one machine, as one of its ranks sees it.
    pub(in crate::comm) fn topology(&self, rank: usize) -> Topology {
        self.place(Topology::one_machine(rank, self.ranks))
    }

    /// A topology with the settings applied.
    pub(super) fn place(&self, topology: Topology) -> Topology {
        let topology = match self.ranks_per_node {
            None => topology,
            Some(most) => topology.with_ranks_per_node(most),
        };
        layers::topology(&self.layers, topology)
    }

    /// The threads that the crate makes in the process of each rank of a job of one machine.
    pub(super) fn threads_of_a_rank(&self) -> usize {
        if self.topology(0).is_all_mapped() { 0 } else { self.threads }
    }
}
