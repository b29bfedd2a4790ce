//! Software devices, joined as adapters are: by active messages over queue pairs that connect on demand. It is how the protocols run where no
//! adapter is. Ranks of a node share memory, as on any network (`GA_RANKS_PER_NODE`).
//!
//! | network | ranks |
//! |---|---|
//! | `ib:soft` | threads; all devices are on one fabric |
//! | `ib:sockets` | processes of one machine, forked or a launcher's; the devices reach each other by sockets |

use super::{
    cluster::{self, Cluster},
    links::DEPTHS,
    processes::{self, Devices},
    soft::{Fabric, Rules, SoftDevice},
};
use crate::{
    comm::{
        one_machine,
        settings::{Device, Settings},
        start::{Body, Named, Ranks},
        threads,
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
    cluster::check(settings)?;
    let cluster = Cluster::new(settings)?;
    let fabric = Fabric::new(rules(settings));
    threads::run(settings, &|member| {
        one_machine::rank_over(
            settings,
            member,
            body,
            |member| cluster.wire(settings, member, fabric.open(DEPTHS).map_err(fail)?),
            one_machine::leave,
        )
    })
}

fn run_processes(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    processes::run(&Sockets(rules(settings)), settings, body)
}

/// Devices that reach each other by sockets.
struct Sockets(Rules);

impl Devices for Sockets {
    type Device = SoftDevice;

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, _: usize) -> Result<SoftDevice, Error> {
        let numbers = cluster::random().map_err(|error| Error::system("drawing the numbers of a device", error))?;
        Fabric::open_far(numbers, self.0, DEPTHS).map_err(fail)
    }
}

pub(super) fn rules(settings: &Settings) -> Rules {
    Rules { seed: settings.seed, ..Rules::default() }
}

pub(super) fn fail(error: impl std::fmt::Display) -> Error {
    Error::Launch(format!("the software device of InfiniBand: {error}"))
}
