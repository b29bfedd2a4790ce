//! The conduits of jobs of one machine: what joins ranks that do not see each other's memory.
//!
//! | device | network |
//! |---|---|
//! | `mapping`, if none is named | [`Loopback`]: operations reach the shared mapping at once |
//! | `packets` | active messages over [`Packets`] |

use std::sync::Arc;

use super::{
    Conduit, Network,
    agent::Agent,
    am::Am,
    joined::Joined,
    layers::{self, Layer},
    loopback::Loopback,
    node::Member,
    packets::Packets,
    settings::{Device, Settings},
    start::Body,
};
use crate::error::Error;

/// Runs a body as one rank of a job of one machine, until no other rank needs it.
pub(super) fn rank(settings: &Settings, member: Member, body: &Body<'_>) -> Result<(), String> {
    let conduit = conduit(settings, member).map_err(|error| error.to_string())?;
    body(conduit.clone(), settings.cores)?;
    conduit.leave();
    Ok(())
}

/// The conduit of a rank: the machine itself, or if some memory is not mapped, the machine and a stack of layers on the device's network;
/// over the mapping, the harshest if none is chosen.
fn conduit(settings: &Settings, member: Member) -> Result<Arc<dyn Conduit>, Error> {
    if member.topology().is_all_mapped() {
        return Ok(Arc::new(member));
    }
    let (fabric, topology) = (member.fabric().clone(), member.topology().clone());
    let rank = topology.rank();
    let stack = |layers: &[Layer], network: Arc<dyn Network>| layers::stack(layers, rank, network);
    let layers = &settings.layers[..];
    Ok(match settings.device {
        Device::Mapping => {
            let loopback = Arc::new(Loopback::new(fabric, topology));
            Arc::new(Joined::new(member, stack(&layers::harsh(layers), loopback)))
        }
        Device::Packets => {
            let am = Arc::new(Am::new(
                Packets::new(fabric.clone(), topology.clone()),
                &member,
                true,
                settings.may_give_up(),
                settings.silence,
            ));
            let agent = Agent::answering(&topology, &fabric, am.clone())
                .map_err(|error| Error::system("starting the thread that makes progress", error))?;
            Arc::new(Joined::new(member, stack(layers, am)).with_agent(agent))
        }
    })
}
