//! The networks of EXTOLL: what their ranks drive. `extoll:soft` has threads, with software engines of one fabric.

use std::sync::Arc;

use super::{
    adapter::ExtollAdapter,
    packets::VeloPackets,
    soft::{SoftEngines, SoftNodes},
};
use crate::{
    comm::{
        node::Member,
        rma::wire::{RmaSettings, RmaWire},
        start::{
            Body, Named, Ranks, Variant,
            devices::{self, Cluster, Devices, Opened, directory::Words},
            settings::Settings,
        },
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
    devices::run_threads(&SoftExtoll(SoftNodes::new(settings.seed)), settings, body)
}

/// Engines of one fabric.
struct SoftExtoll(Arc<SoftNodes>);

impl Devices for SoftExtoll {
    type Device = OpenedEngines;

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, local: usize) -> Result<OpenedEngines, Error> {
        // The ranks of a job of threads are on one machine.
        Ok(OpenedEngines(SoftEngines::open(&self.0, local)))
    }
}

/// Engines that a rank has opened.
struct OpenedEngines(SoftEngines);

impl Opened for OpenedEngines {
    type Wire = RmaWire<ExtollAdapter<SoftEngines>, VeloPackets>;

    /// Threads find each other without a launcher.
    fn address(&self) -> Words {
        Words::default()
    }

    fn wire(self, cluster: &Cluster, settings: &Settings, member: &Member) -> Result<Self::Wire, Error> {
        let fail = |why: String| Error::Launch(format!("GA_NETWORK=extoll: {why}"));
        let (rank, ranks) = (member.topology().rank(), member.topology().size());
        let adapter = ExtollAdapter::new(self.0).map_err(fail)?;
        let settings = RmaSettings { rank, may_give_up: settings.may_give_up(), silence: settings.silence };
        RmaWire::new(adapter, VeloPackets::new(ranks), cluster.directory.clone(), settings).map_err(fail)
    }
}
