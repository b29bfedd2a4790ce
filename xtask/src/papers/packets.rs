//! The EXTOLL conduit: its two designs of active messages, by RandomAccess over messages (figure 12 has the second one).
//!
//! The second design made RandomAccess "up to 53 %" faster. How the first one divided a message is not in the paper: ours sends the header alone. So
//! the row is shown, and not judged.

use super::program::{Job, Programs, number};
use super::row::{Paper, Row};
use anyhow::Result;

/// Ranks of 16 on a node, as the paper's nodes have cores.
const RANKS: [usize; 2] = [64, 256];

pub fn designs(programs: &Programs) -> Result<Vec<Row>> {
    let mut shown = Vec::new();
    for ranks in RANKS {
        let rate = |design| -> Result<f64> {
            let variables = &[("GA_EXTOLL_PACKETS", design)];
            let job = Job { network: "simulated:extoll", ranks, ranks_per_node: Some(16), skips: false, variables };
            number(&programs.application("random_access", &["--log2-size", "14", "--way", "messages"], job)?, "gups")
        };
        let gain = 100.0 * (rate("second")? / rate("first")? - 1.0);
        shown.push(format!("{} nodes: +{gain:.0} %", ranks / 16));
    }
    let what = "RandomAccess by messages, second design over the first";
    let row = Row::trend(Paper::Extoll.at(12), what, "up to +53 %", shown.join(", "), "", true);
    Ok(vec![row.shown("how the first design divided a message is not in the paper")])
}
