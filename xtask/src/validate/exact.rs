//! What LogGP says where messages meet in no way that it does not describe: the truth that both simulators must reproduce.
//!
//! A message takes the overhead, the latencies of its way, its bytes, and an answer's way back. Where several share a link, the last one
//! is there when all their bytes have passed, in turns or at a part of the bandwidth each. Of an all-to-all, the adapter sends one
//! message after the other, each as long as its bytes or the overhead.

use super::cases::Case;
use super::machine::{LEAF, Machine, Network, UPLINKS};

/// Seconds of a case, if they are known.
pub fn seconds(machine: &Machine, network: Network, ranks: usize, case: Case) -> Option<f64> {
    let way = |latencies: f64| machine.overhead + latencies * machine.latency;
    match (case, network) {
        (Case::Shift { bytes, .. }, Network::Crossbar) => {
            Some(way(2.0) + bytes as f64 / machine.bandwidth + machine.answer(network))
        }
        // From each lower switch, `crossing` nodes send to one other at the most. Neighbors in number take uplinks in turn.
        (Case::Shift { distance, bytes }, Network::FatTree) => {
            let crossing = distance.min(LEAF);
            let share = crossing.div_ceil(UPLINKS);
            Some(way(4.0) + (share * bytes) as f64 / machine.bandwidth + machine.answer(network))
        }
        (Case::AllToAll { bytes }, Network::Crossbar) => {
            let (messages, each) = ((ranks - 1) as f64, bytes as f64 / machine.bandwidth);
            let last = if each > machine.overhead { messages * each } else { (messages - 1.0) * machine.overhead + each };
            Some(way(2.0) + last + machine.answer(network))
        }
        (Case::AllToAll { .. }, Network::FatTree) | (_, Network::Torus) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::MACHINE;
    use super::*;

    #[test]
    fn patterns_take_what_their_messages_take() {
        let micros = |network, case| 1e6 * seconds(&MACHINE, network, 64, case).unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} is not {b}");
        near(micros(Network::Crossbar, Case::Shift { distance: 3, bytes: 1000 }), 0.5 + 1.0 + 0.08 + 1.0);
        // One of the 16 nodes of a switch sends to another.
        near(micros(Network::FatTree, Case::Shift { distance: 1, bytes: 1000 }), 0.5 + 2.0 + 0.08 + 2.0);
        near(micros(Network::FatTree, Case::Shift { distance: 40, bytes: 1000 }), 0.5 + 2.0 + 0.16 + 2.0);
        near(micros(Network::Crossbar, Case::AllToAll { bytes: 1000 }), 63.0 * 0.5 + 1.0 + 0.08 + 1.0);
        near(micros(Network::Crossbar, Case::AllToAll { bytes: 10_000 }), 0.5 + 1.0 + 63.0 * 0.8 + 1.0);
    }
}
