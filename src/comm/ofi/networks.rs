//! The network of libfabric: which providers its ranks use.
//!
//! | network | provider |
//! |---|---|
//! | `ofi` | the first of [`PREFERRED`] that will do |
//! | `ofi:PROVIDER` | that one |

use std::env;

use super::{
    adapter::{OfiAdapter, Visible},
    ffi::{FI_CONTEXT, FI_CONTEXT2, FI_ORDER_SAS},
    library::Offer,
    messages::{MESSAGE, Messages},
    port::{OfiPort, Unopened},
};
use crate::{
    comm::{
        node::Member,
        rma::{
            adapter::RmaAdapter,
            wire::{RmaSettings, RmaWire},
        },
        start::{
            ANY_DEVICE, Named, Processes, Ranks, Variant,
            devices::{Cluster, Devices, Opened, directory::Words},
            settings::Settings,
        },
    },
    error::Error,
};

/// Networks that libfabric has providers for.
pub(in crate::comm) const NETWORK: Named = Named {
    name: "ofi",
    variants: &[Variant { devices: ANY_DEVICE, ranks: Ranks::Processes(processes), threads: 1 }],
    options: &[(DOMAINS, "names of domains of the provider (`fi_info`), such as cxi0,cxi1")],
    modelled: None,
};

/// The domains that the ranks of a machine take in turns.
const DOMAINS: &str = "GA_OFI_DOMAIN";

/// Providers of networks, the fastest first, and those of sockets at the end.
const PREFERRED: [&str; 10] = ["cxi", "efa", "opx", "psm3", "psm2", "verbs;ofi_rxm", "tcp;ofi_rxm", "tcp", "net", "sockets"];

/// What libfabric reads at its first call, by providers that need it: a program with threads cannot set it any more. Caches of registered memory must
/// not outlive what arrays give back, and with cxi memory that was shut must be out of reach at once.
const ENVIRONMENT: [(&str, &[&str]); 3] = [
    ("cxi", &["FI_MR_CACHE_MONITOR=disabled", "FI_CXI_MR_MATCH_EVENTS=1", "FI_CXI_OPTIMIZED_MRS=0"]),
    ("efa", &["FI_MR_CACHE_MONITOR=disabled"]),
    ("verbs;ofi_rxm", &["FI_MR_CACHE_MONITOR=disabled"]),
];

/// # Errors
/// What has to be exported.
pub(super) fn check_environment(provider: &str) -> Result<(), String> {
    let needs = ENVIRONMENT.iter().find(|(of, _)| *of == provider).map_or(&[][..], |(_, needs)| needs);
    let is_set = |need: &&&str| need.split_once('=').is_some_and(|(name, value)| env::var(name).as_deref() == Ok(value));
    if needs.iter().all(|need| is_set(&need)) {
        return Ok(());
    }
    Err(format!("provider \"{provider}\" would use memory that arrays have given back; export {}", needs.join(" ")))
}

/// Whether an offer will do.
///
/// # Errors
/// What it lacks.
pub(super) fn suits(provider: &str, offer: &Offer) -> Result<(), String> {
    if !offer.keeps(FI_ORDER_SAS) {
        return Err("its messages keep no order".to_owned());
    }
    if offer.mode & !(FI_CONTEXT | FI_CONTEXT2) != 0 || offer.prefix > 0 || offer.longest < MESSAGE {
        return Err(format!("it asks for more than contexts, or takes no messages of {MESSAGE} bytes"));
    }
    Visible::of(provider, offer).map(drop)
}

fn processes(settings: &Settings) -> Result<Box<dyn Processes>, Error> {
    let providers = match settings.device.as_deref() {
        Some(provider) => vec![provider.to_owned()],
        None => PREFERRED.map(str::to_owned).to_vec(),
    };
    let domains = settings.option(DOMAINS).map(|names| names.split(',').map(str::to_owned).collect());
    Ok(Box::new(Fabrics { providers, domains: domains.unwrap_or_default() }))
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
            match OfiPort::open(provider, domain, suits) {
                Ok(port) => {
                    check_environment(&port.provider()).map_err(fail)?;
                    return OfiAdapter::new(port).map(OpenedPort).map_err(fail);
                }
                Err(Unopened::Lacks(why)) => refused.push(format!("{provider}: {why}")),
                // Others would not do in its place: it is what the ranks of other machines take.
                Err(Unopened::Fails(why)) => return Err(fail(format!("provider \"{provider}\": {why}"))),
            }
        }
        let refused = refused.join("; ");
        Err(fail(format!("libfabric offers no reliable endpoint that will do (`fi_info` lists its offers): {refused}")))
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
        RmaWire::new(adapter, messages, cluster.directory.clone(), RmaSettings::of(settings, member)).map_err(fail)
    }
}
