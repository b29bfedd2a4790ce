//! The networks of EXTOLL: what their ranks drive.
//!
//! | network | ranks | devices |
//! |---|---|---|
//! | `extoll` | processes | the engines of their nodes, whose library is loaded |
//! | `extoll:soft` | threads | software engines on one fabric |
//! | `simulated:extoll` | ranks in virtual time | software engines on modelled cables |

use std::sync::Arc;

use super::{
    adapter::ExtollAdapter,
    library::{LoadedEngines, SHIM},
    packets::{DESIGN, PacketDesign, VeloPackets},
    soft::SoftEngines,
};
use crate::{
    comm::{
        node::Member,
        rma::{
            shim,
            wire::{RmaSettings, RmaWire},
        },
        soft::{
            Cables,
            fabric::{MovingFabric, MovingRules},
        },
        start::{
            Body, NO_DEVICE, Named, Ranks, Variant,
            devices::{self, Cluster},
            modelled::{Modelled, VirtualRank, Wiring},
            settings::Settings,
        },
    },
    error::Error,
};

/// The wire of software engines.
type EnginesWire = RmaWire<ExtollAdapter<SoftEngines>, VeloPackets>;

/// EXTOLL.
pub(in crate::comm) const NETWORK: Named = Named {
    name: "extoll",
    variants: &[
        Variant { devices: NO_DEVICE, ranks: Ranks::Processes(shim::processes::<ExtollAdapter<LoadedEngines>>), threads: 1 },
        Variant { devices: &["soft"], ranks: Ranks::Threads(run), threads: 1 },
    ],
    options: &[
        (SHIM.option, "the path of the library that was made from src/comm/extoll/shim.c"),
        (DESIGN, "first or second: a design of active messages in the paper, of the software engines"),
    ],
    modelled: Some(Modelled { join, in_order: true }),
};

fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let fabric = MovingFabric::new(MovingRules::InOrder, settings.seed);
    devices::run_threads(settings, body, |cluster, member| wire(&fabric, cluster, settings, None, member))
}

fn join(settings: &Settings, cables: Arc<dyn Cables>) -> Result<Wiring, Error> {
    let fabric = MovingFabric::on_cables(MovingRules::InOrder, settings.seed, cables.clone());
    Wiring::new(settings, cables, fabric.clone(), move |cluster, settings, member, time| {
        wire(&fabric, cluster, settings, Some(time), member)
    })
}

/// The wire of a rank.
fn wire(
    fabric: &Arc<MovingFabric>,
    cluster: &Cluster,
    settings: &Settings,
    time: Option<VirtualRank>,
    member: &Member,
) -> Result<EnginesWire, Error> {
    let fail = |why: String| Error::Launch(format!("GA_NETWORK=extoll: {why}"));
    let (rank, ranks) = (member.topology().rank(), member.topology().size());
    let adapter = ExtollAdapter::new(SoftEngines::open(fabric, rank)).map_err(fail)?;
    let design = settings.option(DESIGN).map_or(Ok(PacketDesign::default()), PacketDesign::parse).map_err(fail)?;
    let (packets, settings) =
        (VeloPackets::new(ranks).of_design(design), RmaSettings { time, ..RmaSettings::of(settings, member) });
    RmaWire::new(adapter, packets, cluster.directory.clone(), settings).map_err(fail)
}
