//! The networks of Gemini: what their ranks drive.
//!
//! | network | ranks | devices |
//! |---|---|---|
//! | `gemini` | processes | DMAPP, which is loaded |
//! | `gemini:soft` | threads | software devices on one fabric, with strict ordering |
//! | `gemini:relaxed` | threads | the same, whose writes land later |
//! | `simulated:gemini` | ranks in virtual time | software devices on modelled cables, with strict ordering |

use std::sync::Arc;

use super::{
    adapter::GeminiAdapter,
    library::{LoadedDmapp, SHIM},
    mailboxes::Mailboxes,
    soft::SoftDmapp,
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
            modelled::{Modelled, Wiring},
            settings::Settings,
        },
    },
    error::Error,
};

/// The wire of a software device.
type DmappWire = RmaWire<GeminiAdapter<SoftDmapp>, Mailboxes>;

/// Gemini.
pub(in crate::comm) const NETWORK: Named = Named {
    name: "gemini",
    variants: &[
        Variant { devices: NO_DEVICE, ranks: Ranks::Processes(shim::processes::<GeminiAdapter<LoadedDmapp>>), threads: 1 },
        Variant { devices: &["soft"], ranks: Ranks::Threads(run_strict), threads: 1 },
        Variant { devices: &["relaxed"], ranks: Ranks::Threads(run_relaxed), threads: 1 },
    ],
    options: &[(SHIM.option, "the path of the library that was made from src/comm/gemini/shim.c")],
    modelled: Some(Modelled { join, in_order: false }),
};

fn run_strict(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    run(MovingRules::Strict, settings, body)
}

fn run_relaxed(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    run(MovingRules::Relaxed, settings, body)
}

fn run(rules: MovingRules, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let fabric = MovingFabric::new(rules, settings.seed);
    devices::run_threads(settings, body, |cluster, member| wire(&fabric, cluster, RmaSettings::of(settings, member), member))
}

fn join(settings: &Settings, cables: Arc<dyn Cables>) -> Result<Wiring, Error> {
    let fabric = MovingFabric::on_cables(MovingRules::Strict, settings.seed, cables.clone());
    Wiring::new(settings, cables, fabric.clone(), move |cluster, settings, member, time| {
        wire(&fabric, cluster, RmaSettings { time: Some(time), ..RmaSettings::of(settings, member) }, member)
    })
}

/// The wire of a rank.
fn wire(fabric: &Arc<MovingFabric>, cluster: &Cluster, settings: RmaSettings, member: &Member) -> Result<DmappWire, Error> {
    let fail = |why: String| Error::Launch(format!("GA_NETWORK=gemini: {why}"));
    let (rank, ranks) = (member.topology().rank(), member.topology().size());
    let mut adapter = GeminiAdapter::new(SoftDmapp::open(fabric, rank), ranks);
    let mailboxes = Mailboxes::new(&mut adapter, rank, ranks).map_err(fail)?;
    RmaWire::new(adapter, mailboxes, cluster.directory.clone(), settings).map_err(fail)
}
