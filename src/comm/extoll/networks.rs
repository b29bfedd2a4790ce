//! The networks of EXTOLL: what their ranks drive. `extoll:soft` has threads, with software engines of one fabric.

use super::{
    adapter::ExtollAdapter,
    packets::VeloPackets,
    soft::{SoftEngines, SoftNodes},
};
use crate::{
    comm::{
        rma::wire::{RmaSettings, RmaWire},
        start::{Body, Named, Ranks, Variant, devices, settings::Settings},
    },
    error::Error,
};

/// EXTOLL.
pub(in crate::comm) const NETWORK: Named = Named {
    name: "extoll",
    variants: &[Variant { devices: &["soft"], ranks: Ranks::Threads, threads: 1, run }],
    options: &[],
    modelled: None,
};

fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let nodes = SoftNodes::new(settings.seed);
    devices::run_threads(settings, body, |cluster, member| {
        let fail = |why: String| Error::Launch(format!("GA_NETWORK=extoll: {why}"));
        let (rank, ranks) = (member.topology().rank(), member.topology().size());
        let adapter = ExtollAdapter::new(SoftEngines::open(&nodes, rank)).map_err(fail)?;
        let packets = VeloPackets::new(ranks);
        RmaWire::new(adapter, packets, cluster.directory.clone(), RmaSettings::of(settings, member)).map_err(fail)
    })
}
