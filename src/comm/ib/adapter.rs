//! `ib`: ranks that are processes, each with a port of an adapter that libibverbs drives.
//!
//! They are forked, or a launcher has started them (`bootstrap`). A launcher's ranks may be on several machines. A device is
//! opened in the rank's own process, after the fork. Where all ranks share memory nothing is opened.
//!
//! The first of `GA_IB_DEVICE` is that of the first rank of a machine, the second that of the next, and so on in turns.

use std::sync::Arc;

use super::{
    cluster::{self, Cluster},
    device::Device as _,
    directory::{self, Directory},
    links::DEPTHS,
    verbs::{Choice, Opening, Unusable, Verbs},
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
        settings::{Device, Settings},
        shared_memory,
        start::{Body, Named, Ranks},
    },
    error::Error,
};

/// See the module's essay.
pub(in crate::comm) const NETWORK: Named = Named { name: "ib", devices: &[("", Device::Adapter)], ranks: Ranks::Processes, run };

/// Bytes of inline data that are asked for.
const INLINE: usize = 220;

fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    match settings.launched {
        Some(started) => run_launched(started, settings, body),
        None => run_forked(settings, body),
    }
}

fn run_forked(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let choices = choices(settings)?;
    cluster::check(settings)?;
    let cluster = Cluster::new(settings)?;
    if !settings.topology(0).is_all_mapped() {
        // What is missing is said before ranks start.
        choices.iter().try_for_each(Verbs::find).map_err(unusable)?;
    }
    shared_memory::run(settings, &|member| {
        one_machine::rank_over(
            settings,
            member,
            body,
            |member| {
                let topology = member.topology();
                let device = open(&choices, topology.local(topology.rank()))?;
                cluster.wire(settings, member, device)
            },
            one_machine::leave,
        )
    })
}

fn run_launched(started: Started, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let choices = choices(settings)?;
    let prepare = |connection: &mut Connection, place: &Place| prepare(&choices, settings, connection, place);
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

/// Opens the port of a rank. Every rank learns whether all could, and no rank starts if one could not. None where all share memory.
fn prepare(
    choices: &[Choice],
    settings: &Settings,
    connection: &mut Connection,
    place: &Place,
) -> Result<Option<(Cluster, Verbs)>, Error> {
    let topology = &place.topology;
    if topology.is_all_mapped() {
        return Ok(None);
    }
    let device = cluster::check_rank(settings, topology).and_then(|()| open(choices, topology.local(topology.rank())));
    let words = device.as_ref().map_or([0; directory::WORDS], |device| directory::to_words(&device.address()));
    let published = connection.publish(&words, device.is_err())?;
    let device = device?;
    if let Some(rank) = published.failed {
        return Err(Error::Launch(format!("rank {rank} has no adapter to use, and says why")));
    }
    let ask = move |rank| launched::ask(rank, &published.key)?.try_into().ok();
    Ok(Some((Cluster { directory: Arc::new(Directory::asked(ask)), token: place.token }, device)))
}

/// What the user has chosen: one port or several, or the best one.
fn choices(settings: &Settings) -> Result<Vec<Choice>, Error> {
    let gid = settings.gid.as_deref();
    match settings.adapter.as_deref() {
        None => Choice::parse(None, gid).map(|choice| vec![choice]),
        Some(names) => names.split(',').map(|name| Choice::parse(Some(name), gid)).collect(),
    }
    .map_err(unusable)
}

fn open(choices: &[Choice], local: usize) -> Result<Verbs, Error> {
    let [key] = cluster::random().map_err(|error| Error::system("drawing the key of a port", error))?;
    Verbs::open(&choices[local % choices.len()], &Opening { depths: DEPTHS, inline: INLINE, key: key as u32 }).map_err(unusable)
}

fn unusable(why: Unusable) -> Error {
    Error::Launch(why.to_string())
}
