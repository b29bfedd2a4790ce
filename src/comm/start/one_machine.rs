//! The conduits of jobs of one machine: what joins ranks that do not see each other's memory.
//!
//! The device `mapping`, which is the default, uses [`Loopback`]. The device `packets` uses active messages over [`Packets`].

use std::sync::Arc;

use super::{
    Body,
    settings::{Device, Settings},
};
use crate::{
    comm::{
        Conduit,
        am::{Am, packets::Packets, wire::Wire},
        layers,
        node::{Member, agent::Agent, loopback::Loopback},
    },
    error::Error,
};

/// A rank's conduit, and the agent that answers others while the rank computes. The agent ends with the rank, even if the conduit
/// is still held.
type Joint = (Arc<Conduit>, Option<Agent>);

/// Runs a body as one rank of a job of one machine, until no other rank needs it.
pub(super) fn rank(settings: &Settings, member: Member, body: &Body<'_>) -> Result<(), String> {
    let (conduit, agent) = joint(settings, member).map_err(|error| error.to_string())?;
    run(conduit, agent, settings, body, leave)
}

/// As [`rank`], with the caller's own wire for active messages between the nodes, and the caller's own end: [`leave`], or one
/// that waits for the ranks of other machines too.
pub(super) fn rank_over<W: Wire + 'static>(
    settings: &Settings,
    member: Member,
    body: &Body<'_>,
    wire: impl FnOnce(&Member) -> Result<W, Error>,
    end: impl FnOnce(&Conduit, Result<(), String>) -> Result<(), String>,
) -> Result<(), String> {
    let joint = match member.topology().is_all_mapped() {
        true => Ok((Arc::new(Conduit::mapped(member)), None)),
        false => wire(&member).and_then(|wire| over(wire, settings, member)),
    };
    let (conduit, agent) = joint.map_err(|error| error.to_string())?;
    run(conduit, agent, settings, body, end)
}

fn run(
    conduit: Arc<Conduit>,
    agent: Option<Agent>,
    settings: &Settings,
    body: &Body<'_>,
    end: impl FnOnce(&Conduit, Result<(), String>) -> Result<(), String>,
) -> Result<(), String> {
    let outcome = end(&conduit, body(conduit.clone(), settings.cores));
    // Before the network: layers hold memory that it may still read.
    drop(agent);
    outcome
}

/// The end of a rank of a job of one machine.
pub(super) fn leave(conduit: &Conduit, outcome: Result<(), String>) -> Result<(), String> {
    outcome?;
    conduit.drain();
    conduit.leave();
    Ok(())
}

/// Active messages over a wire, with a thread that makes progress.
fn over<W: Wire + 'static>(wire: W, settings: &Settings, member: Member) -> Result<Joint, Error> {
    let (fabric, topology) = (member.fabric().clone(), member.topology().clone());
    let am = Arc::new(Am::new(wire, &member, true, settings.may_give_up(), settings.silence));
    let agent = Agent::answering(&topology, &fabric, am.clone())
        .map_err(|error| Error::system("starting the thread that makes progress", error))?;
    Ok((Arc::new(Conduit::with_network(member, layers::stack(&settings.layers, topology.rank(), am))), Some(agent)))
}

/// The conduit of a rank: the machine itself, or if some memory is not mapped, the machine and a stack of layers on the device's network;
/// over the mapping, the harshest if none is chosen.
fn joint(settings: &Settings, member: Member) -> Result<Joint, Error> {
    if member.topology().is_all_mapped() {
        return Ok((Arc::new(Conduit::mapped(member)), None));
    }
    let (fabric, topology) = (member.fabric().clone(), member.topology().clone());
    match settings.device {
        Device::Mapping => {
            let layers = layers::harsh(&settings.layers);
            let network = layers::stack(&layers, topology.rank(), Arc::new(Loopback::new(fabric, topology)));
            Ok((Arc::new(Conduit::with_network(member, network)), None))
        }
        Device::Packets => over(Packets::new(fabric, topology), settings, member),
        Device::Soft | Device::Sockets | Device::Adapter => unreachable!("a network with a device of its own makes its conduits"),
    }
}
