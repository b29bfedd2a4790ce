//! Ranks in virtual time: the protocols as they are, over software devices whose works travel by cables that are a model.

use std::sync::Arc;

use super::{
    cluster::{self, Cluster},
    directory::Directory,
    links::DEPTHS,
    soft::Fabric,
    software::{fail, rules},
};
use crate::{
    comm::{
        Conduit, Network,
        am::Am,
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
    cluster::check(settings)?;
    let directory = Directory::shared(settings.ranks).map_err(|error| Error::system("the table of addresses", error))?;
    // The same seed gives the same run. No stranger is in this process.
    let token = Random::new(settings.seed).below(usize::MAX) as u128;
    let cluster = Cluster { directory: Arc::new(directory), token };
    Ok(Box::new(Virtual { cluster, fabric: Fabric::on_cables(rules(settings), cables) }))
}

impl Wiring for Virtual {
    fn adapters(&self) -> Arc<dyn Adapters> {
        self.fabric.adapters()
    }

    fn network(&self, settings: &Settings, member: &Member) -> Result<Arc<dyn Network>, Error> {
        let device = self.fabric.open_of(Some(member.topology().rank()), DEPTHS).map_err(fail)?;
        let wire = self.cluster.wire(settings, member, device)?;
        // Machines of one process are not lost.
        Ok(Arc::new(Am::new(wire, member, true, settings.may_give_up(), None)))
    }
}
