//! `ib`: ranks that are processes, each with a port of an adapter that libibverbs drives.
//!
//! The first of `GA_IB_DEVICE` is that of the first rank of a machine, the second that of the next, and so on in turns.

use super::{
    cluster::Port,
    links::DEPTHS,
    verbs::{Choice, Opening, Unusable, Verbs},
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
pub(in crate::comm) const NETWORK: Named = Named { name: "ib", devices: &[("", Device::Adapter)], ranks: Ranks::Processes, run };

/// Bytes of inline data that are asked for.
const INLINE: usize = 220;

fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    devices::run_processes(&Adapters::chosen(settings)?, settings, body)
}

/// What the user has chosen: one port or several, or the best one.
struct Adapters(Vec<Choice>);

impl Adapters {
    fn chosen(settings: &Settings) -> Result<Self, Error> {
        let gid = settings.gid.as_deref();
        match settings.adapter.as_deref() {
            None => Choice::parse(None, gid).map(|choice| vec![choice]),
            Some(names) => names.split(',').map(|name| Choice::parse(Some(name), gid)).collect(),
        }
        .map(Adapters)
        .map_err(unusable)
    }
}

impl Devices for Adapters {
    type Device = Port<Verbs>;

    fn check(&self) -> Result<(), Error> {
        self.0.iter().try_for_each(Verbs::find).map_err(unusable)
    }

    fn open(&self, local: usize) -> Result<Port<Verbs>, Error> {
        let [key] = random::secret().map_err(|error| Error::system("drawing the key of a port", error))?;
        let opening = Opening { depths: DEPTHS, inline: INLINE, key: key as u32 };
        Verbs::open(&self.0[local % self.0.len()], &opening).map(Port).map_err(unusable)
    }
}

fn unusable(why: Unusable) -> Error {
    Error::Launch(why.to_string())
}
