//! The machine of the comparison: one table of parameters, of which both simulators' descriptions are made.
//!
//! SimGrid describes a cluster by one bandwidth and one latency for all its links, those between nodes and switches included. So the
//! adapter has the bandwidth of a link, and its own latency is that of a switch: a message through one switch takes two latencies on both
//! sides, and a message through three takes four.
//!
//! Nodes of SimGrid's torus have no adapters. So ours have none to speak of there: ten times the bandwidth of a link, and no latency. What is
//! left is the switch of the sender, whose latency counts at the end of SimGrid's side.

use std::path::Path;

/// See the module's essay.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Of the processor for each message. The gap of the adapter is as long: SMPI has no other.
    pub overhead: f64,
    /// Of an adapter and of each link, in seconds.
    pub latency: f64,
    /// Of an adapter and of each link, in bytes for each second.
    pub bandwidth: f64,
    /// Messages that a rank has in flight.
    pub window: usize,
}

pub const MACHINE: Machine = Machine { overhead: 0.5e-6, latency: 0.5e-6, bandwidth: 12.5e9, window: 16 };

/// How nodes are joined. There is one rank on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    Crossbar,
    /// 16 nodes on each lower switch, with 8 links up.
    FatTree,
    /// Room for 75 nodes. No side is even: which way is the shorter one is then no question.
    Torus,
}

pub const LEAF: usize = 16;
pub const UPLINKS: usize = 8;
const SIDES: [usize; 3] = [5, 5, 3];
/// An adapter of the torus, beside a link.
const FASTER: f64 = 10.0;

impl Network {
    pub const ALL: [Network; 3] = [Network::Crossbar, Network::FatTree, Network::Torus];

    pub fn name(self) -> &'static str {
        match self {
            Network::Crossbar => "crossbar",
            Network::FatTree => "fat_tree",
            Network::Torus => "torus",
        }
    }

    /// Latencies on the longest way.
    fn farthest(self) -> f64 {
        match self {
            Network::Crossbar => 2.0,
            Network::FatTree => 4.0,
            // Half way round each ring, and the switch of the sender.
            Network::Torus => SIDES.into_iter().map(|side| side / 2).sum::<usize>() as f64 + 1.0,
        }
    }

    /// What SimGrid's way lacks.
    fn missing(self) -> f64 {
        if self == Network::Torus { 1.0 } else { 0.0 }
    }

    /// How many nodes SimGrid's cluster has.
    pub fn nodes(self, ranks: usize) -> usize {
        if self == Network::Torus { SIDES.into_iter().product() } else { ranks }
    }

    /// More fields of `[network]`.
    fn fields(self) -> String {
        match self {
            Network::Crossbar => String::new(),
            Network::FatTree => format!("nodes_per_switch = {LEAF}\nuplinks = {UPLINKS}\n"),
            Network::Torus => format!("nodes_per_switch = 1\nsides = {SIDES:?}\n"),
        }
    }

    /// More attributes of SimGrid's cluster. Its fat trees choose the upper switch as ours do: by the number of the target.
    fn attributes(self, ranks: usize) -> String {
        match self {
            Network::Crossbar => String::new(),
            Network::FatTree => {
                let leaves = ranks.div_ceil(LEAF);
                format!(" topology=\"FAT_TREE\" topo_parameters=\"2;{LEAF},{leaves};1,{UPLINKS};1,1\"")
            }
            Network::Torus => {
                let [x, y, z] = SIDES;
                format!(" topology=\"TORUS\" topo_parameters=\"{x},{y},{z}\"")
            }
        }
    }
}

impl Machine {
    /// The file that `GA_NETWORK=simulated:FILE` names. A processor does one operation in a nanosecond, as `benches/patterns` expects.
    pub fn toml(&self, network: Network) -> String {
        let (overhead, latency) = (1e6 * self.overhead, 1e6 * self.latency);
        let (gigabytes, window) = (1e-9 * self.bandwidth, self.window);
        let (adapter, own) = if network == Network::Torus { (FASTER * gigabytes, 0.0) } else { (gigabytes, latency) };
        format!(
            "[processor]\ngigaflops = 1\nmemory_gb_per_s = 1\n\n\
             [node]\nranks = 1\nlatency_us = 0\nbandwidth_gb_per_s = {gigabytes}\n\n\
             [adapter]\noverhead_us = {overhead}\ngap_us = {overhead}\nbandwidth_gb_per_s = {adapter}\nlatency_us = {own}\nread_us = 0\n\
             copied_bytes = 0\nwindow = {window}\nordered = true\nsignals = true\n\n\
             [network]\ntopology = \"{}\"\n{}switch_us = {latency}\nlink_gb_per_s = {gigabytes}\n",
            network.name(),
            network.fields(),
        )
    }

    /// SimGrid's platform. `SPLITDUPLEX`: what goes and what comes do not share a link.
    pub fn platform(&self, network: Network, ranks: usize) -> String {
        format!(
            "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n\
             <cluster id=\"cluster\" prefix=\"node-\" suffix=\"\" radical=\"0-{}\" speed=\"1Gf\" bw=\"{}Bps\" lat=\"{}s\" \
             sharing_policy=\"SPLITDUPLEX\"{}/>\n</platform>\n",
            network.nodes(ranks) - 1,
            self.bandwidth,
            self.latency,
            network.attributes(ranks),
        )
    }

    /// SimGrid's file of hosts: rank by rank.
    pub fn hosts(ranks: usize) -> String {
        (0..ranks).map(|rank| format!("node-{rank}\n")).collect()
    }

    /// SMPI as a model without anything fitted: of each message the sender's overhead, then its route. The processor's own time does not
    /// count, and a send begins its message at once.
    pub fn smpi(&self) -> Vec<String> {
        let settings = [
            "smpi/simulate-computation:no",
            "smpi/bw-factor:0:1",
            "smpi/lat-factor:0:1",
            "network/weight-S:0",
            "network/crosstraffic:0",
            "network/TCP-gamma:0",
            "smpi/os:0:0:0",
            "smpi/or:0:0:0",
            "smpi/async-small-thresh:0",
            "smpi/send-is-detached-thresh:0",
            "smpi/wtime:0",
            "smpi/init:0",
        ];
        let overhead = format!("smpi/ois:0:{:e}:0", self.overhead);
        settings.into_iter().chain([overhead.as_str()]).map(|setting| format!("--cfg={setting}")).collect()
    }

    /// From the arrival of SimGrid's last message to the end of the case: an answer's way over the longest route, and what its own lacks.
    pub fn answer(&self, network: Network) -> f64 {
        (network.farthest() + network.missing()) * self.latency
    }
}

/// Where a description of a machine is written.
pub fn file(folder: &Path, network: Network, ranks: usize, ending: &str) -> std::path::PathBuf {
    folder.join(format!("{}-{ranks}.{ending}", network.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_descriptions_say_the_same() {
        let machine = Machine { overhead: 0.25e-6, latency: 0.75e-6, bandwidth: 3e9, window: 5 };
        let toml = machine.toml(Network::FatTree);
        for line in ["overhead_us = 0.25", "gap_us = 0.25", "latency_us = 0.75", "switch_us = 0.75", "window = 5", "uplinks = 8"]
        {
            assert!(toml.lines().any(|known| known == line), "{line}: {toml}");
        }
        assert_eq!(toml.matches("gb_per_s = 3\n").count(), 3);
        let platform = machine.platform(Network::FatTree, 64);
        for part in ["radical=\"0-63\"", "bw=\"3000000000Bps\"", "lat=\"0.00000075s\"", "\"2;16,4;1,8;1,1\""] {
            assert!(platform.contains(part), "{part}: {platform}");
        }
        assert!(machine.smpi().contains(&"--cfg=smpi/ois:0:2.5e-7:0".to_owned()));
    }
}
