//! Networks that stand on another network. Some make it harsher, so that the suites find what a gentle network hides; others show what
//! it is asked for.
//!
//! They stack by name, from the network upward: `threads+hidden+delayed+scrambled`.
//!
//! | layer | effect |
//! |---|---|
//! | `hidden` | no rank sees any memory, not even its own: only the [`Topology`] changes |
//! | `scrambled` | nothing happens before a poll, then in any order; no optional operations |
//! | `delayed` | most puts are visible late |
//! | `traced` | prints what reaches its place in the stack |
//! | `counted` | counts what reaches its place |

mod counted;
mod delayed;
pub(crate) mod observed;
mod scrambled;
mod traced;

use std::sync::Arc;

use super::{Network, Topology};
use counted::Counted;
pub(crate) use delayed::Delayed;
use observed::Observed;
pub(crate) use scrambled::Scrambled;
use traced::Traced;

/// One layer of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Hidden,
    Scrambled,
    Delayed,
    Traced,
    Counted,
}

/// Why a device or layers are refused.
pub(crate) const WITHOUT_EFFECT: &str = "they stand between ranks that do not see each other's memory, and here all do; add +hidden, or \
                                         set GA_RANKS_PER_NODE";

/// The names of all layers.
pub(crate) const LAYERS: [(&str, Layer); 5] = [
    ("hidden", Layer::Hidden),
    ("scrambled", Layer::Scrambled),
    ("delayed", Layer::Delayed),
    ("traced", Layer::Traced),
    ("counted", Layer::Counted),
];

/// As harsh as a network may be: it reads the memory of a put when it is polled, in any order, and keeps most puts back.
pub(crate) const HARSH: [Layer; 2] = [Layer::Delayed, Layer::Scrambled];

/// The layers of a job that names these, whose network is as gentle as the machine's memory: the harshest, unless it names others than those
/// that show what happens.
pub(crate) fn harsh(named: &[Layer]) -> Vec<Layer> {
    let shows = |layer: &Layer| matches!(layer, Layer::Traced | Layer::Counted);
    let default = if named.iter().all(shows) { &HARSH[..] } else { &[] };
    [default, named].concat()
}

/// What a stack makes of the topology.
pub(crate) fn topology(layers: &[Layer], topology: Topology) -> Topology {
    if layers.contains(&Layer::Hidden) { topology.with_hidden_memory() } else { topology }
}

/// A stack of layers on the network of a rank. Each rank has an order of its own.
pub(crate) fn stack(layers: &[Layer], rank: usize, network: Arc<dyn Network>) -> Arc<dyn Network> {
    let seed = rank as u64;
    layers.iter().fold(network, |network, layer| match layer {
        Layer::Hidden => network,
        Layer::Scrambled => Arc::new(Scrambled::new(network, seed)),
        Layer::Delayed => Arc::new(Delayed::new(network, seed)),
        Layer::Traced => Arc::new(Observed::new(network, Traced::new(rank))),
        Layer::Counted => Arc::new(Observed::new(network, Counted::new(rank))),
    })
}

/// A step of a cheap generator; the upper half of the state is as good as random.
fn step(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_that_show_what_happens_do_not_change_it() {
        assert_eq!(harsh(&[]), HARSH);
        assert_eq!(harsh(&[Layer::Counted, Layer::Traced]), [Layer::Delayed, Layer::Scrambled, Layer::Counted, Layer::Traced]);
        assert_eq!(harsh(&[Layer::Hidden, Layer::Counted]), [Layer::Hidden, Layer::Counted]);
        assert_eq!(harsh(&[Layer::Scrambled]), [Layer::Scrambled]);
    }
}
