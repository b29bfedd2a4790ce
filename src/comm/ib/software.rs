//! `ib:soft`: ranks that are threads, each with a software device, all on one fabric.
//!
//! What joins them is what joins ranks over an adapter: active messages over queue pairs that connect on demand. It is how the protocols
//! run where no adapter is. Ranks of a node share memory, as on any network (`GA_RANKS_PER_NODE`).

use std::{array, sync::Arc};

use rustix::rand::{GetRandomFlags, getrandom};

use super::{
    links::{DEPTHS, Directory},
    soft::{Fabric, Rules},
    wire::VerbsWire,
};
use crate::{
    comm::{
        Conduit, Connect, Topology,
        node::Member,
        one_machine,
        protocol::connection::{self, Way},
        settings::{Device, Settings},
        start::{Body, Named, Ranks},
        threads,
    },
    error::Error,
};

/// See the module's essay.
pub(in crate::comm) const NETWORK: Named = Named { name: "ib", devices: &[("soft", Device::Soft)], ranks: Ranks::Threads, run };

/// What the ranks of a job have in common.
struct Cluster {
    fabric: Fabric,
    directory: Arc<Directory>,
    token: u128,
}

fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    if let (Connect::Static, Some(budget)) = (settings.connect, settings.connections) {
        // Nodes are of consecutive ranks, and only the last one may be smaller.
        let needs = [0, settings.ranks - 1].map(|rank| partners(&settings.topology(rank)).count()).into_iter().max().unwrap_or(0);
        if needs > budget {
            return Err(Error::Launch(format!(
                "GA_CONNECT=static connects a rank with all {needs} ranks of other nodes, but GA_CONNECTIONS={budget} allows fewer; leave \
                 one of them out"
            )));
        }
    }
    let cluster = Cluster {
        fabric: Fabric::new(Rules { seed: settings.seed, ..Rules::default() }),
        directory: Arc::new(Directory::new(settings.ranks)),
        token: token().map_err(|error| Error::system("drawing the token of the job", error))?,
    };
    threads::run(settings, &|member| one_machine::rank_over(settings, member, body, |member| cluster.wire(settings, member)))
}

impl Cluster {
    /// What a rank sends to other nodes by.
    fn wire(&self, settings: &Settings, member: &Member) -> Result<VerbsWire<impl super::device::Device + use<>>, Error> {
        let fail = |error: super::device::DeviceError| Error::Launch(format!("the software device of InfiniBand: {error}"));
        let topology = member.topology();
        let device = self.fabric.open(DEPTHS).map_err(fail)?;
        let way = if settings.connect == Connect::Serial { Way::Serial } else { Way::Overlapped };
        let (endpoint, endpoints, token) = (topology.rank(), settings.ranks, self.token);
        let budget = settings.connections.unwrap_or(settings.ranks);
        let endpoint = connection::Settings { endpoint, endpoints, token, way, budget };
        let mut wire = VerbsWire::new(device, self.directory.clone(), endpoint).map_err(fail)?;
        if settings.connect == Connect::Static {
            wire.connect(partners(topology)).map_err(|error| Error::Launch(format!("connecting to all ranks: {error}")))?;
        }
        Ok(wire)
    }
}

/// The ranks that a rank may need connections with.
fn partners(topology: &Topology) -> impl Iterator<Item = usize> {
    (0..topology.size()).filter(|&rank| rank != topology.rank() && !topology.is_mapped(rank))
}

fn token() -> rustix::io::Result<u128> {
    let mut bytes = [0; size_of::<u128>()];
    // So few bytes come at once, once the system has any.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u128::from_le_bytes(array::from_fn(|k| bytes[k])))
}
