//! The networks of queue pairs: which devices their ranks drive.
//!
//! | network | ranks | devices |
//! |---|---|---|
//! | `ib` | processes, forked or a launcher's | ports of adapters |
//! | `ib:soft` | threads | software devices on one fabric |
//! | `ib:sockets` | processes of one machine, forked or a launcher's | software devices with sockets |
//! | `simulated:ib` | ranks in virtual time | software devices on modelled cables |

use std::{fmt::Display, sync::Arc};

use super::{
    cluster::OpenedDevice,
    links::DEPTHS,
    soft::{Rules, SoftDevice, SoftFabric},
    verbs::{Opening, PortChoice, Unusable, Verbs},
};
use crate::{
    comm::{
        kit::random,
        soft::Cables,
        start::{
            Body, NO_DEVICE, Named, Processes, Ranks, Variant,
            devices::{self, Devices, Opened},
            modelled::{Modelled, Wiring},
            settings::Settings,
        },
    },
    error::Error,
};

/// InfiniBand.
pub(in crate::comm) const NETWORK: Named = Named {
    name: "ib",
    variants: &[
        Variant { devices: NO_DEVICE, ranks: Ranks::Processes(adapters), threads: 1 },
        Variant { devices: &["soft"], ranks: Ranks::Threads(run_threads), threads: 1 },
        // One of the threads is the adapter.
        Variant { devices: &["sockets"], ranks: Ranks::Processes(|settings| Ok(Box::new(Sockets(rules(settings))))), threads: 2 },
    ],
    options: &[
        (PORTS, "names of adapters, or of their ports"),
        (GID, "the number of an entry of a port's table of GIDs"),
        (PARTITION, "a partition key, as 0x8001"),
        (LEVEL, "a service level, 0 to 15"),
        (CLASS, "a traffic class, 0 to 255"),
    ],
    modelled: Some(Modelled { join, in_order: true }),
};

/// The ports that the ranks of a machine take in turns.
const PORTS: &str = "GA_IB_DEVICE";
/// The address of a port, and the partition of its network.
const GID: &str = "GA_IB_GID";
const PARTITION: &str = "GA_IB_PKEY";
/// The service level and the traffic class of packets in switches and routers.
const LEVEL: &str = "GA_IB_SL";
const CLASS: &str = "GA_IB_TC";

/// Bytes of inline data that an adapter is asked for.
const INLINE: usize = 220;

fn adapters(settings: &Settings) -> Result<Box<dyn Processes>, Error> {
    let path = [PARTITION, LEVEL, CLASS].map(|name| settings.option(name));
    let choice = |name| PortChoice::parse(name, settings.option(GID))?.along(path);
    let chosen = match settings.option(PORTS) {
        None => choice(None).map(|choice| vec![choice]),
        Some(names) => names.split(',').map(|name| choice(Some(name))).collect(),
    };
    Ok(Box::new(Ports(chosen.map_err(unusable)?)))
}

fn run_threads(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let fabric = SoftFabric::new(rules(settings));
    devices::run_threads(settings, body, |cluster, member| {
        OpenedDevice(fabric.open(DEPTHS).map_err(fail)?).wire(cluster, settings, member)
    })
}

fn join(settings: &Settings, cables: Arc<dyn Cables>) -> Result<Wiring, Error> {
    let fabric = SoftFabric::on_cables(rules(settings), cables.clone());
    Wiring::new(settings, cables, fabric.adapters(), move |cluster, settings, member, _| {
        let device = fabric.open_of(Some(member.topology().rank()), DEPTHS).map_err(fail)?;
        OpenedDevice(device).wire(cluster, settings, member)
    })
}

/// What the user has chosen: one port or several, or the best one.
struct Ports(Vec<PortChoice>);

impl Devices for Ports {
    type Device = OpenedDevice<Verbs>;

    fn check(&self) -> Result<(), Error> {
        self.0.iter().try_for_each(Verbs::find).map_err(unusable)
    }

    fn open(&self, local: usize) -> Result<OpenedDevice<Verbs>, Error> {
        let [key] = random::secret().map_err(|error| Error::system("drawing the key of a port", error))?;
        let opening = Opening { depths: DEPTHS, inline: INLINE, key: key as u32 };
        Verbs::open(&self.0[local % self.0.len()], &opening).map(OpenedDevice).map_err(unusable)
    }
}

/// Devices that reach each other by sockets.
struct Sockets(Rules);

impl Devices for Sockets {
    type Device = OpenedDevice<SoftDevice>;

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, _: usize) -> Result<OpenedDevice<SoftDevice>, Error> {
        let numbers = random::secret().map_err(|error| Error::system("drawing the numbers of a device", error))?;
        SoftFabric::open_far(numbers, self.0, DEPTHS).map(OpenedDevice).map_err(fail)
    }
}

fn unusable(why: Unusable) -> Error {
    Error::Launch(why.to_string())
}

fn rules(settings: &Settings) -> Rules {
    Rules { seed: settings.seed, ..Rules::default() }
}

fn fail(error: impl Display) -> Error {
    Error::Launch(format!("the software device of InfiniBand: {error}"))
}
