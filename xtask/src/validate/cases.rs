//! Which patterns run on how many ranks.
//!
//! A case is bounded by what it costs the simulators: 1024 ranks have a million messages in an all-to-all, for which SMPI takes minutes.
//! An all-to-all of 256 ranks on a torus, all of whose flows share links with all others, takes it longer than that.

use super::machine::{LEAF, Network};
use std::fmt;

pub const RANKS: [usize; 3] = [64, 256, 1024];

/// A distance on the torus over links of all three directions.
pub const ACROSS: usize = 31;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A pattern with blocks of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Each rank puts a block to the rank at a distance.
    Shift { distance: usize, bytes: usize },
    /// Each rank puts a block to each other rank, the next one first.
    AllToAll { bytes: usize },
}

/// As both programs read it and print it.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Case::Shift { distance, bytes } => write!(f, "shift:{distance}:{bytes}"),
            Case::AllToAll { bytes } => write!(f, "all_to_all:{bytes}"),
        }
    }
}

/// All cases, which `benches/patterns` runs with less than 2 GiB.
pub fn of(network: Network, ranks: usize) -> Vec<Case> {
    let distances: &[usize] = match network {
        // No two messages meet, however far they go.
        Network::Crossbar => &[1, 32],
        // Most to the same switch; all to the next one; as many to one as to another.
        Network::FatTree => &[1, LEAF, 2 * LEAF + LEAF / 2],
        // Over one link, over two of a ring, over several rings.
        Network::Torus if ranks == RANKS[0] => &[1, 2, ACROSS],
        Network::Torus => return Vec::new(),
    };
    let sizes: &[usize] = match network {
        // Its ways differ in length, and the bytes are to count.
        Network::Torus => &[64 * KIB, MIB],
        _ if ranks <= 256 => &[KIB, 64 * KIB, MIB],
        _ => &[KIB, 64 * KIB],
    };
    let shifts = distances.iter().flat_map(|&distance| sizes.iter().map(move |&bytes| Case::Shift { distance, bytes }));
    let blocks: &[usize] = if ranks <= 256 { &[KIB, 64 * KIB] } else { &[KIB] };
    shifts.chain(blocks.iter().map(|&bytes| Case::AllToAll { bytes })).collect()
}
