//! Ranks in virtual time: the protocols as they are, over software devices whose works travel by cables that are a model.

use std::sync::Arc;

use super::{
    cluster::Port,
    links::DEPTHS,
    soft::Fabric,
    software::{fail, rules},
};
use crate::{
    comm::{
        Conduit, Network,
        am::Am,
        devices::{self, Cluster, Opened},
        modelled::Wiring,
        node::Member,
        random::Random,
        settings::Settings,
        soft::{Adapters, Cables},
    },
    error::Error,
};

/// What the ranks of a job have in common.
struct Virtual {
    cluster: Cluster,
    fabric: Fabric,
}

/// Joins the ranks of a job by cables.
///
/// # Errors
/// What the system says.
pub(in crate::comm) fn modelled(settings: &Settings, cables: Arc<dyn Cables>) -> Result<Box<dyn Wiring>, Error> {
    devices::check_connections(settings)?;
    // The same seed gives the same run. No stranger is in this process.
    let token = Random::new(settings.seed).below(usize::MAX) as u128;
    let cluster = Cluster::new(settings, token)?;
    Ok(Box::new(Virtual { cluster, fabric: Fabric::on_cables(rules(settings), cables) }))
}

impl Wiring for Virtual {
    fn adapters(&self) -> Arc<dyn Adapters> {
        self.fabric.adapters()
    }

    fn network(&self, settings: &Settings, member: &Member) -> Result<Arc<dyn Network>, Error> {
        let device = self.fabric.open_of(Some(member.topology().rank()), DEPTHS).map_err(fail)?;
        let wire = Port(device).wire(&self.cluster, settings, member)?;
        // Machines of one process are not lost.
        Ok(Arc::new(Am::new(wire, member, true, settings.may_give_up(), None)))
    }
}
