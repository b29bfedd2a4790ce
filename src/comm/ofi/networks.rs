//! The network of libfabric: which providers its ranks use.
//!
//! | network | provider |
//! |---|---|
//! | `ofi` | the first of [`PREFERRED`] that will do |
//! | `ofi:PROVIDER` | that one |

use super::{
    adapter::{OfiAdapter, Visible},
    messages::Messages,
    port::{Offer, OfiPort},
};
use crate::{
    comm::{
        node::Member,
        rma::{
            adapter::RmaAdapter,
            wire::{RmaSettings, RmaWire},
        },
        start::{
            ANY_DEVICE, Body, Named, Ranks, Variant,
            devices::{self, Cluster, Devices, Opened, directory::Words},
            settings::Settings,
        },
    },
    error::Error,
};

/// Networks that libfabric has providers for.
pub(in crate::comm) const NETWORK: Named = Named {
    name: "ofi",
    variants: &[Variant { devices: ANY_DEVICE, ranks: Ranks::Processes, threads: 1, run }],
    options: &[(DOMAINS, "names of domains of the provider (`fi_info`), such as cxi0,cxi1")],
    modelled: None,
};

/// The domains that the ranks of a machine take in turns.
const DOMAINS: &str = "GA_OFI_DOMAIN";

/// Providers of networks, the fastest first, and those of sockets at the end.
const PREFERRED: [&str; 10] = ["cxi", "efa", "opx", "psm3", "psm2", "verbs;ofi_rxm", "tcp;ofi_rxm", "tcp", "net", "sockets"];

fn run(settings: &Settings, body: &Body<'_>) -> Result<(), Error> {
    let providers = match settings.device.as_deref() {
        Some(provider) => vec![provider.to_owned()],
        None => PREFERRED.map(str::to_owned).to_vec(),
    };
    let domains = settings.option(DOMAINS).map(|names| names.split(',').map(str::to_owned).collect());
    devices::run_processes(&Fabrics { providers, domains: domains.unwrap_or_default() }, settings, body)
}

/// What the user has chosen.
struct Fabrics {
    providers: Vec<String>,
    domains: Vec<String>,
}

fn fail(why: impl std::fmt::Display) -> Error {
    Error::Launch(format!("GA_NETWORK=ofi: {why}"))
}

impl Devices for Fabrics {
    type Device = OpenedPort;

    /// Whether a provider will do is found when a rank opens it: libfabric is not used before ranks are forked.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    fn open(&self, local: usize) -> Result<OpenedPort, Error> {
        let domain = if self.domains.is_empty() { None } else { Some(&*self.domains[local % self.domains.len()]) };
        let mut refused = Vec::new();
        for provider in &self.providers {
            let suits = |name: &str, offer: &Offer| Visible::of(name, offer).map(drop);
            let opened = OfiPort::open(provider, domain, suits).and_then(OfiAdapter::new);
            match opened {
                Ok(adapter) => return Ok(OpenedPort(adapter)),
                Err(why) => refused.push(why),
            }
        }
        Err(fail(refused.join("; ")))
    }
}

/// A port that its rank has opened.
struct OpenedPort(OfiAdapter);

impl Opened for OpenedPort {
    type Wire = RmaWire<OfiAdapter, Messages>;

    fn address(&self) -> Words {
        self.0.address()
    }

    fn wire(self, cluster: &Cluster, settings: &Settings, member: &Member) -> Result<Self::Wire, Error> {
        let OpenedPort(mut adapter) = self;
        let (rank, ranks) = (member.topology().rank(), member.topology().size());
        let messages = Messages::new(&mut adapter, rank, ranks, cluster.token).map_err(fail)?;
        let settings = RmaSettings { rank, may_give_up: settings.may_give_up(), silence: settings.silence };
        RmaWire::new(adapter, messages, cluster.directory.clone(), settings).map_err(fail)
    }
}
