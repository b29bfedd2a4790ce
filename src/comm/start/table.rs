//! The networks that jobs name, in one table.
//!
//! A name is `network[:device][+layer...]`; devices are those of jobs of one machine. `network:unmapped` is
//! `network+hidden+delayed+scrambled`.

use std::collections::BTreeSet;

#[cfg(test)]
use super::{Body, settings::Settings};
use super::{MAPPING, Named, Variant, bootstrap::key_values::Meet, modelled::Modelled, shared_memory, threads};
#[cfg(feature = "mpi")]
use crate::comm::mpi;
use crate::comm::{
    extoll, gemini, ib,
    layers::{HARSH, LAYERS, Layer},
    ofi, simulated,
};
#[cfg(test)]
use crate::error::Error;

/// All that the binary has.
const NETWORKS: &[Named] = &[
    shared_memory::NETWORK,
    threads::NETWORK,
    simulated::NETWORK,
    ib::NETWORK,
    ofi::NETWORK,
    gemini::NETWORK,
    extoll::NETWORK,
    #[cfg(feature = "mpi")]
    mpi::NETWORK,
];

/// The network of a name, whose own code runs in virtual time.
///
/// # Errors
/// There is none; the message lists those that there are.
pub(in crate::comm) fn modelled(name: &str) -> Result<&'static Modelled, String> {
    let modelled = || NETWORKS.iter().filter_map(|network| Some((network.name, network.modelled.as_ref()?)));
    let found = modelled().find(|&(other, _)| other == name);
    found.map(|(_, modelled)| modelled).ok_or_else(|| {
        let names: Vec<String> = modelled().map(|(name, _)| format!("\"{name}\"")).collect();
        format!("the network \"{name}\" has no code for virtual time; choose {}", names.join(", "))
    })
}

/// The options of all networks, with what each may be.
pub(crate) fn options() -> impl Iterator<Item = (&'static str, &'static str)> {
    NETWORKS.iter().flat_map(|network| network.options).copied()
}

/// The name of the network that is a model of a machine.
pub(crate) fn simulated(machine: &str) -> String {
    format!("{}:{machine}", simulated::NETWORK.name)
}

/// Runs a simulated job, and says what happened.
///
/// # Errors
/// As a job.
#[cfg(test)]
pub(crate) fn simulate(settings: &Settings, body: &Body<'_>) -> Result<simulated::Report, Error> {
    simulated::run(settings, body)
}

/// How ranks of other networks meet in a binary with MPI.
pub(crate) const MEET: Option<Meet> = {
    #[cfg(feature = "mpi")]
    {
        Some(mpi::meet)
    }
    #[cfg(not(feature = "mpi"))]
    {
        None
    }
};

/// The networks behind a feature of the same name that the binary does not have.
const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "mpi"))]
    "mpi",
];

/// The device name that stands for layers.
const UNMAPPED: &str = "unmapped";

/// The meaning of a name.
#[derive(Debug)]
pub(crate) struct Choice {
    pub network: &'static Named,
    pub variant: &'static Variant,
    /// What is named behind a network that [understands any name](Named::takes_any_device).
    pub device: Option<String>,
    pub layers: Vec<Layer>,
}

impl Choice {
    /// The network alone, without a device or layers that the name asks for.
    pub(crate) fn is_plain(&self) -> bool {
        self.variant.devices == MAPPING && self.device.is_none() && self.layers.is_empty()
    }
}

/// The network of a name, its device, and the layers on it.
///
/// # Errors
/// No such network; the message lists the names.
pub(crate) fn choose(name: &str) -> Result<Choice, String> {
    parse(name).ok_or_else(|| refusal(name))
}

fn parse(name: &str) -> Option<Choice> {
    let mut words = name.split('+');
    let base = words.next()?;
    let mut layers: Vec<Layer> = Vec::new();
    let (base, device) = base.split_once(':').map_or((base, None), |(base, device)| (base, Some(device)));
    let network = NETWORKS.iter().find(|network| network.name == base)?;
    let named = device.filter(|&device| network.takes_any_device() && device != UNMAPPED).map(str::to_owned);
    let mut device = device.filter(|_| named.is_none()).unwrap_or_default();
    if device == UNMAPPED {
        layers.push(Layer::Hidden);
        layers.extend(HARSH);
        device = "";
    }
    let variant = network.variants.iter().find(|variant| variant.devices.contains(&device))?;
    for word in words {
        let layer = LAYERS.iter().find(|&&(name, _)| name == word)?.1;
        if layers.contains(&layer) {
            return None;
        }
        layers.push(layer);
    }
    Some(Choice { network, variant, device: named, layers })
}

fn refusal(name: &str) -> String {
    let networks: Vec<String> = NETWORKS
        .iter()
        .map(|network| match network.is_a_model() {
            true => format!("{}:MACHINE (of {}, or a file)", network.name, simulated::names()),
            false if network.takes_any_device() => format!("{0} or {0}:PROVIDER", network.name),
            false => network.name.to_owned(),
        })
        .collect();
    let left_out: String = LEFT_OUT.iter().map(|name| format!(" (or {name}, built with `--features {name}`)")).collect();
    let devices: BTreeSet<String> = [UNMAPPED]
        .into_iter()
        .chain(NETWORKS.iter().flat_map(|network| network.variants).flat_map(|variant| variant.devices).copied())
        .filter(|name| !name.is_empty() && *name != "*")
        .map(|name| format!(":{name}"))
        .collect();
    let layers = LAYERS.map(|(name, _)| format!("+{name}"));
    format!(
        "there is no network \"{name}\" in this binary; choose {}{left_out} by GA_NETWORK, for tests with a device ({}) or layers ({})",
        networks.join(", "),
        devices.into_iter().collect::<Vec<_>>().join(", "),
        layers.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::start::Ranks;

    #[test]
    fn layers_stack_by_name() {
        let layers = |name: &str| parse(name).map(|choice| choice.layers);
        assert_eq!(layers("threads"), Some(vec![]));
        assert_eq!(layers("threads+hidden+scrambled"), Some(vec![Layer::Hidden, Layer::Scrambled]));
        assert_eq!(layers("threads+delayed+hidden"), Some(vec![Layer::Delayed, Layer::Hidden]));
        assert_eq!(layers("threads+hidden+traced+counted"), Some(vec![Layer::Hidden, Layer::Traced, Layer::Counted]));
        assert_eq!(layers("shared_memory:unmapped"), layers("shared_memory+hidden+delayed+scrambled"));
        let Choice { network, variant, layers: stack, .. } = parse("threads:packets+hidden").unwrap();
        assert!(matches!(variant.ranks, Ranks::Threads(_)));
        assert_eq!((network.name, variant.devices, &stack[..]), ("threads", &["packets"][..], &[Layer::Hidden][..]));
        for name in
            ["", "+hidden", "threads+", "threads+lost", "threads+hidden+hidden", "threads:unmapped+delayed", "threads:tcp"]
        {
            assert_eq!(layers(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_that_is_none_is_answered_by_those_that_are() {
        let said = choose("carrier pigeons").unwrap_err();
        for word in [
            "\"carrier pigeons\"",
            "shared_memory, threads",
            "mpi",
            ":unmapped",
            ":packets",
            "ofi or ofi:PROVIDER, gemini, extoll",
            ":relaxed",
            "+hidden",
            "+scrambled",
            "+delayed",
            "+traced",
            "+counted",
        ] {
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(said.contains("--features mpi"), !cfg!(feature = "mpi"), "{said}");
    }
}
