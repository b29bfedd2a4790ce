//! What a rank makes of its device.

use super::{
    device::{Device, DeviceError},
    links::Links,
};
use crate::{
    comm::{
        Connect,
        node::Member,
        protocol::connection::{self, SetupWay},
        start::{
            devices::{Cluster, Opened, directory::Words, partners},
            settings::Settings,
        },
    },
    error::Error,
};

/// A device of verbs, as a device that its rank has opened.
pub(super) struct OpenedDevice<D>(pub(super) D);

impl<D: Device> Opened for OpenedDevice<D> {
    type Wire = Links<D>;

    fn address(&self) -> Words {
        self.0.address().to_words()
    }

    fn wire(self, cluster: &Cluster, settings: &Settings, member: &Member) -> Result<Links<D>, Error> {
        let fail = |error: DeviceError| Error::Launch(format!("InfiniBand: {error}"));
        let topology = member.topology();
        let way = if settings.connect == Connect::Serial { SetupWay::Serial } else { SetupWay::Overlapped };
        let (endpoint, endpoints, token) = (topology.rank(), topology.size(), cluster.token);
        let budget = settings.connections.unwrap_or(endpoints);
        let endpoint = connection::ConnectionSettings { endpoint, endpoints, token, way, budget };
        let mut wire = Links::new(self.0, cluster.directory.clone(), endpoint).map_err(fail)?;
        wire.loses_after(settings.silence);
        if settings.connect == Connect::Static {
            wire.connect_with(partners(topology)).map_err(|error| Error::Launch(format!("connecting to all ranks: {error}")))?;
        }
        Ok(wire)
    }
}
