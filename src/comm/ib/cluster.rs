//! What the ranks of a job over queue pairs have in common, whatever their devices.

use std::sync::Arc;

use rustix::rand::{GetRandomFlags, getrandom};

use super::{
    device::{Device, DeviceError},
    directory::Directory,
    wire::VerbsWire,
};
use crate::{
    comm::{
        Conduit, Connect, Topology,
        am::route,
        node::Member,
        protocol::connection::{self, Way},
        settings::Settings,
    },
    error::Error,
};

/// See the module's essay.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) directory: Arc<Directory>,
    pub(super) token: u128,
}

impl Cluster {
    /// Of ranks that this process starts.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let [a, b] = random().map_err(|error| Error::system("drawing the token of the job", error))?;
        let directory = Directory::shared(settings.ranks).map_err(|error| Error::system("the table of addresses", error))?;
        Ok(Cluster { directory: Arc::new(directory), token: u128::from(a) << 64 | u128::from(b) })
    }

    /// What a rank sends to other nodes by.
    ///
    /// # Errors
    /// What the device says.
    pub(super) fn wire<D: Device>(&self, settings: &Settings, member: &Member, device: D) -> Result<VerbsWire<D>, Error> {
        let fail = |error: DeviceError| Error::Launch(format!("InfiniBand: {error}"));
        let topology = member.topology();
        route::fits(topology).map_err(|most| {
            Error::Launch(format!(
                "InfiniBand: this node has {} ranks, and its first rank answers for at most {most}; cut it into smaller \
                                   nodes (GA_RANKS_PER_NODE)",
                topology.ranks_here()
            ))
        })?;
        let way = if settings.connect == Connect::Serial { Way::Serial } else { Way::Overlapped };
        let (endpoint, endpoints, token) = (topology.rank(), topology.size(), self.token);
        let budget = settings.connections.unwrap_or(endpoints);
        let endpoint = connection::Settings { endpoint, endpoints, token, way, budget };
        let mut wire = VerbsWire::new(device, self.directory.clone(), endpoint).map_err(fail)?;
        wire.loses_after(settings.silence);
        if settings.connect == Connect::Static {
            wire.connect(partners(topology)).map_err(|error| Error::Launch(format!("connecting to all ranks: {error}")))?;
        }
        Ok(wire)
    }
}

/// Refuses connections that are all to be there, and must not be, where this process starts the ranks.
///
/// # Errors
/// [`Error::Launch`].
pub(super) fn check(settings: &Settings) -> Result<(), Error> {
    // Nodes are of consecutive ranks, and only the last one may be smaller.
    [0, settings.ranks - 1].into_iter().try_for_each(|rank| check_rank(settings, &settings.topology(rank)))
}

/// The same for one rank.
///
/// # Errors
/// [`Error::Launch`].
pub(super) fn check_rank(settings: &Settings, topology: &Topology) -> Result<(), Error> {
    let (Connect::Static, Some(budget)) = (settings.connect, settings.connections) else { return Ok(()) };
    let (rank, needs) = (topology.rank(), partners(topology).count());
    if needs <= budget {
        return Ok(());
    }
    Err(Error::Launch(format!(
        "GA_CONNECT=static connects rank {rank} with {needs} ranks of other nodes, but GA_CONNECTIONS={budget} allows fewer; leave one of \
         them out"
    )))
}

/// The ranks that a rank may need connections with: the agents of other nodes, and if it is one itself, all ranks of other nodes.
fn partners(topology: &Topology) -> impl Iterator<Item = usize> {
    let ranks = if topology.is_agent(topology.rank()) { (0..topology.size()).collect() } else { topology.leaders() };
    ranks.into_iter().filter(|&rank| rank != topology.rank() && !topology.is_mapped(rank))
}

/// Random words.
pub(super) fn random<const N: usize>() -> rustix::io::Result<[u64; N]> {
    let mut words = [0; N];
    // So few bytes come at once, once the system has any.
    getrandom(bytemuck::cast_slice_mut::<u64, u8>(&mut words[..]), GetRandomFlags::empty())?;
    Ok(words)
}
