//! Ranks that are processes, each with a device of its own, whatever drives that.
//!
//! They are forked, or a launcher has started them (`bootstrap`). A launcher's ranks may be on several machines. A device is
//! opened in the rank's own process, after the fork. Where all ranks share memory nothing is opened.

use std::sync::Arc;

use super::{
    cluster::{self, Cluster},
    device::Device,
    directory::{self, Directory},
};
use crate::{
    comm::{
        Conduit,
        bootstrap::{
            launched::{self, Connection},
            place::Place,
        },
        launcher::Started,
        one_machine,
        settings::Settings,
        shared_memory,
        start::Body,
    },
    error::Error,
};

/// Where the devices of ranks come from.
pub(super) trait Devices: Sync {
    type Device: Device;

    /// Refuses what no rank could open, before ranks start.
    ///
    /// # Errors
    /// What is missing.
    fn check(&self) -> Result<(), Error>;

    /// Opens that of a rank with this number on its machine, in the rank's process.
    ///
    /// # Errors
    /// What is missing.
    fn open(&self, local: usize) -> Result<Self::Device, Error>;
}

/// Runs a body on all ranks of this process's job, or as the one that a launcher made this process.
pub(super) fn run(devices: &impl Devices, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    match settings.launched {
        Some(started) => run_launched(devices, started, settings, body),
        None => run_forked(devices, settings, body),
    }
}

fn run_forked(devices: &impl Devices, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    cluster::check(settings)?;
    let cluster = Cluster::new(settings)?;
    if !settings.topology(0).is_all_mapped() {
        devices.check()?;
    }
    shared_memory::run(settings, &|member| {
        one_machine::rank_over(
            settings,
            member,
            body,
            |member| {
                let topology = member.topology();
                cluster.wire(settings, member, devices.open(topology.local(topology.rank()))?)
            },
            one_machine::leave,
        )
    })
}

fn run_launched(devices: &impl Devices, started: Started, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let prepare = |connection: &mut Connection, place: &Place| prepare(devices, settings, connection, place);
    shared_memory::run_launched(started, settings, true, prepare, |prepared, settings, member| {
        let Some((cluster, device)) = prepared else { return one_machine::rank(settings, member, body) };
        let fabric = member.fabric().clone();
        one_machine::rank_over(
            settings,
            member,
            body,
            |member| cluster.wire(settings, member, device),
            |conduit, outcome| {
                if let Err(words) = outcome {
                    // The launcher ends ranks without a word; those of other machines learn the cause by this.
                    conduit.end(&words);
                    return Err(words);
                }
                conduit.drain();
                launched::await_all(|| matches!(fabric.failure(), Some((Some(_), _)))).map_err(|error| error.to_string())?;
                conduit.leave();
                Ok(())
            },
        )
    })
}

/// Opens the device of a rank. Every rank learns whether all could, and no rank starts if one could not. None where all share memory.
fn prepare<S: Devices>(
    devices: &S,
    settings: &Settings,
    connection: &mut Connection,
    place: &Place,
) -> Result<Option<(Cluster, S::Device)>, Error> {
    let topology = &place.topology;
    if topology.is_all_mapped() {
        return Ok(None);
    }
    let device = cluster::check_rank(settings, topology).and_then(|()| devices.open(topology.local(topology.rank())));
    let words = device.as_ref().map_or([0; directory::WORDS], |device| directory::to_words(&device.address()));
    let published = connection.publish(&words, device.is_err())?;
    let device = device?;
    if let Some(rank) = published.failed {
        return Err(Error::Launch(format!("rank {rank} has no device to use, and says why")));
    }
    let ask = move |rank| launched::ask(rank, &published.key)?.try_into().ok();
    Ok(Some((Cluster { directory: Arc::new(Directory::asked(ask)), token: place.token }, device)))
}
