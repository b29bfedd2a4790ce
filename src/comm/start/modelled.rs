//! Networks whose own code runs in virtual time, over modelled cables.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    devices::{self, Cluster},
    settings::Settings,
};
use crate::{
    comm::{
        Network,
        am::{
            Am,
            wire::{Sleeper, Wakes, Wire},
        },
        kit::random::Random,
        node::Member,
        soft::{Adapters, Cables},
    },
    error::Error,
};

/// How the code of a network joins the ranks of a job in virtual time.
#[derive(Debug)]
pub(in crate::comm) struct Modelled {
    pub(in crate::comm) join: fn(&Settings, Arc<dyn Cables>) -> Result<Wiring, Error>,
    /// The network needs adapters that keep the order of what they send to a peer.
    pub(in crate::comm) in_order: bool,
}

/// The virtual time of a rank. No thread sleeps there, and ranks let each other run.
#[derive(Clone, Debug)]
pub(in crate::comm) struct VirtualRank {
    pub(in crate::comm) cables: Arc<dyn Cables>,
    pub(in crate::comm) rank: usize,
}

impl Sleeper for VirtualRank {
    fn arm(&self, _: Wakes) -> bool {
        false
    }

    /// Never called: it is never armed.
    fn sleep(&self, _: Duration) {}

    fn pass(&self) -> bool {
        self.cables.pass(self.rank)
    }
}

/// Makes the network of a rank that has its turn, for ranks of other nodes.
type MakeNetwork = Box<dyn Fn(&Settings, &Member) -> Result<Arc<dyn Network>, Error> + Sync>;

/// What joins the ranks of a job.
pub(in crate::comm) struct Wiring {
    /// The adapters to which the cables report arrivals.
    pub(in crate::comm) adapters: Arc<dyn Adapters>,
    pub(in crate::comm) network: MakeNetwork,
}

impl fmt::Debug for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiring").field("adapters", &self.adapters).finish_non_exhaustive()
    }
}

impl Wiring {
    /// Joins ranks by wires that `make` makes.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::comm) fn new<W: Wire + 'static>(
        settings: &Settings,
        cables: Arc<dyn Cables>,
        adapters: Arc<dyn Adapters>,
        make: impl Fn(&Cluster, &Settings, &Member, VirtualRank) -> Result<W, Error> + Sync + 'static,
    ) -> Result<Self, Error> {
        devices::check_connections(settings)?;
        // The same seed gives the same run. No stranger is in this process.
        let token = Random::new(settings.seed).below(usize::MAX) as u128;
        let cluster = Cluster::new(settings, token)?;
        let network = move |settings: &Settings, member: &Member| {
            let time = VirtualRank { cables: cables.clone(), rank: member.topology().rank() };
            let wire = devices::wire(member, |member| make(&cluster, settings, member, time))?;
            // Machines of one process are not lost.
            let network: Arc<dyn Network> = Arc::new(Am::new(wire, member, true, settings.may_give_up(), None));
            Ok(network)
        };
        Ok(Wiring { adapters, network: Box::new(network) })
    }
}
