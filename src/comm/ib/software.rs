//! Software devices, joined as adapters are: by active messages over queue pairs that connect on demand. It is how the protocols run where no
//! adapter is. Ranks of a node share memory, as on any network (`GA_RANKS_PER_NODE`).
//!
//! | network | ranks |
//! |---|---|
//! | `ib:soft` | threads; all devices are on one fabric |
//! | `ib:sockets` | processes of one machine, forked or a launcher's; the devices reach each other by sockets |

use super::{
    cluster::Port,
    links::DEPTHS,
    soft::{Fabric, Rules, SoftDevice},
};
use crate::{
    comm::{
        devices::{self, Devices},
        random,
        settings::{Device, Settings},
        start::{Body, Named, Ranks},
    },
    error::Error,
};

/// See the module's essay.
pub(in crate::comm) const THREADS: Named =
    Named { name: "ib", devices: &[("soft", Device::Soft)], ranks: Ranks::Threads, run: run_threads };

/// See the module's essay.
pub(in crate::comm) const PROCESSES: Named =
    Named { name: "ib", devices: &[("sockets", Device::Sockets)], ranks: Ranks::Processes, run: run_processes };

fn run_threads(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    devices::run_threads(&Software::Threads(Fabric::new(rules(settings))), settings, body)
}

fn run_processes(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    devices::run_processes(&Software::Processes(rules(settings)), settings, body)
}

/// Devices that are on one fabric, or reach each other by sockets.
enum Software {
    Threads(Fabric),
    Processes(Rules),
}

impl Devices for Software {
    type Device = Port<SoftDevice>;

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, _: usize) -> Result<Port<SoftDevice>, Error> {
        match self {
            Software::Threads(fabric) => fabric.open(DEPTHS),
            Software::Processes(rules) => {
                let numbers = random::secret().map_err(|error| Error::system("drawing the numbers of a device", error))?;
                Fabric::open_far(numbers, *rules, DEPTHS)
            }
        }
        .map(Port)
        .map_err(fail)
    }
}

pub(super) fn rules(settings: &Settings) -> Rules {
    Rules { seed: settings.seed, ..Rules::default() }
}

pub(super) fn fail(error: impl std::fmt::Display) -> Error {
    Error::Launch(format!("the software device of InfiniBand: {error}"))
}
