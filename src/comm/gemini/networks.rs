//! The networks of Gemini: what their ranks drive.
//!
//! | network | ranks | devices |
//! |---|---|---|
//! | `gemini:soft` | threads | software devices on one fabric, with strict ordering |
//! | `gemini:relaxed` | threads | the same, whose writes land later |

use std::sync::Arc;

use super::{adapter::GeminiAdapter, mailboxes::Mailboxes, soft::SoftDmapp};
use crate::{
    comm::{
        node::Member,
        rma::wire::{RmaSettings, RmaWire},
        soft::fabric::{MovingFabric, MovingRules},
        start::{
            Body, Named, Ranks, Variant,
            devices::{self, Cluster, Devices, Opened, directory::Words},
            settings::Settings,
        },
    },
    error::Error,
};

/// Gemini.
pub(in crate::comm) const NETWORK: Named = Named {
    name: "gemini",
    variants: &[
        Variant { devices: &["soft"], ranks: Ranks::Threads, threads: 1, run: run_strict },
        Variant { devices: &["relaxed"], ranks: Ranks::Threads, threads: 1, run: run_relaxed },
    ],
    options: &[],
    modelled: None,
};

fn run_strict(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    devices::run_threads(&SoftGemini(MovingFabric::new(MovingRules::Strict, settings.seed)), settings, body)
}

fn run_relaxed(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    devices::run_threads(&SoftGemini(MovingFabric::new(MovingRules::Relaxed, settings.seed)), settings, body)
}

/// Devices on one fabric.
struct SoftGemini(Arc<MovingFabric>);

impl Devices for SoftGemini {
    type Device = OpenedDmapp;

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, local: usize) -> Result<OpenedDmapp, Error> {
        // The ranks of a job of threads are on one machine.
        Ok(OpenedDmapp(SoftDmapp::open(&self.0, local)))
    }
}

/// A device that its rank has opened.
struct OpenedDmapp(SoftDmapp);

impl Opened for OpenedDmapp {
    type Wire = RmaWire<GeminiAdapter<SoftDmapp>, Mailboxes>;

    /// Threads find each other without a launcher.
    fn address(&self) -> Words {
        Words::default()
    }

    fn wire(self, cluster: &Cluster, settings: &Settings, member: &Member) -> Result<Self::Wire, Error> {
        let fail = |why: String| Error::Launch(format!("GA_NETWORK=gemini: {why}"));
        let (rank, ranks) = (member.topology().rank(), member.topology().size());
        let mut adapter = GeminiAdapter::new(self.0, ranks);
        let mailboxes = Mailboxes::new(&mut adapter, rank, ranks).map_err(fail)?;
        let settings = RmaSettings { rank, may_give_up: settings.may_give_up(), silence: settings.silence };
        RmaWire::new(adapter, mailboxes, cluster.directory.clone(), settings).map_err(fail)
    }
}
