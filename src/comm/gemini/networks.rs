//! The networks of Gemini: what their ranks drive.
//!
//! | network | ranks | devices |
//! |---|---|---|
//! | `gemini:soft` | threads | software devices on one fabric, with strict ordering |
//! | `gemini:relaxed` | threads | the same, whose writes land later |

use super::{adapter::GeminiAdapter, mailboxes::Mailboxes, soft::SoftDmapp};
use crate::{
    comm::{
        rma::wire::{RmaSettings, RmaWire},
        soft::fabric::{MovingFabric, MovingRules},
        start::{Body, Named, Ranks, Variant, devices, settings::Settings},
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
    run(MovingRules::Strict, settings, body)
}

fn run_relaxed(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    run(MovingRules::Relaxed, settings, body)
}

fn run(rules: MovingRules, settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let fabric = MovingFabric::new(rules, settings.seed);
    devices::run_threads(settings, body, |cluster, member| {
        let fail = |why: String| Error::Launch(format!("GA_NETWORK=gemini: {why}"));
        let (rank, ranks) = (member.topology().rank(), member.topology().size());
        let mut adapter = GeminiAdapter::new(SoftDmapp::open(&fabric, rank), ranks);
        let mailboxes = Mailboxes::new(&mut adapter, rank, ranks).map_err(fail)?;
        RmaWire::new(adapter, mailboxes, cluster.directory.clone(), RmaSettings::of(settings, member)).map_err(fail)
    })
}
