//! The bytes that each rank moved to and from each other, in a file: as JSON for programs, or as a picture.
//!
//! ```json
//! {"ranks":8,"nodes":2,"phases":[{"name":"","seconds":0.03,"computing":0.02,"calls":[{"name":"get","calls":64,"seconds":0.01,...}]}],
//!  "bytes":[[0,1,4096],...],"connections":[[3,0,0,3,81920,0,0],...]}
//! ```
//!
//! Seconds are means of all ranks. The phase without a name is the time outside of phases. `bytes` has a triple for each pair of ranks
//! that moved any: the rank that called, the owner, bytes. `connections` is there if the network makes connections. It has seven numbers
//! for each rank: opened, opened again, closed, live, bytes by them, datagrams sent again, refused.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use super::{collect::collect, stats::Stats, table::Rows, times::Times, write_whole};
use crate::{comm::Connections, error::Result, job::Job, sync::Traffic};

/// Rows and columns of a picture, at most; more ranks share them.
const MOST_CELLS: usize = 256;
/// Pixels of a picture's side, and around it.
const SIDE: f64 = 640.0;
const MARGIN: f64 = 60.0;

/// Bytes by the rank that called, and the rank whose memory it was.
type Bytes = BTreeMap<(usize, usize), u64>;

/// Writes a job's statistics into a file, by its ending. Collective.
///
/// # Errors
/// The file cannot be written; the end of the job.
pub(super) fn write(job: &Job, path: Option<&Path>, stats: &Stats, tables: Option<(&Rows, &Times)>) -> Result<()> {
    let lines: String = stats.peers().fold(String::new(), |mut lines, (rank, traffic)| {
        let _ = writeln!(lines, "{rank} {}", Traffic::total(traffic).bytes);
        lines
    });
    let mut bytes = Bytes::new();
    collect(job, &lines, |from, text| {
        for line in text.lines() {
            if let Some((to, moved)) = line.split_once(' ')
                && let (Ok(to), Ok(moved)) = (to.parse(), moved.parse())
            {
                bytes.insert((from, to), moved);
            }
        }
        Ok(())
    })?;
    // Rank 0 has both.
    let (Some((rows, times)), Some(path)) = (tables, path) else { return Ok(()) };
    let text = if path.extension().is_some_and(|ending| ending == "svg") {
        picture(job.size(), &bytes)
    } else {
        let topology = job.inner.conduit().topology();
        let nodes = (0..job.size()).map(|rank| topology.node(rank)).max().map_or(0, |last| last + 1);
        json(job.size(), nodes, times, &bytes, rows.connections())
    };
    write_whole("writing the statistics", path, &text)
}

fn json(ranks: usize, nodes: usize, times: &Times, bytes: &Bytes, connections: &[Connections]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|((from, to), moved)| format!("[{from},{to},{moved}]")).collect();
    let of_ranks: Vec<String> = connections.iter().map(|rank| format!("{:?}", rank.to_words()).replace(' ', "")).collect();
    let connections = if of_ranks.is_empty() { String::new() } else { format!(",\"connections\":[{}]", of_ranks.join(",")) };
    format!("{{\"ranks\":{ranks},\"nodes\":{nodes},{},\"bytes\":[{}]{connections}}}\n", times.json(), pairs.join(","))
}

/// A square of cells, the darker the more bytes, on a logarithmic scale.
fn picture(ranks: usize, bytes: &Bytes) -> String {
    let share = ranks.div_ceil(MOST_CELLS);
    let cells = ranks.div_ceil(share);
    let mut sums = BTreeMap::<(usize, usize), u64>::new();
    bytes.iter().for_each(|((from, to), moved)| *sums.entry((from / share, to / share)).or_default() += moved);
    let (least, most) = (sums.values().min().copied().unwrap_or(1), sums.values().max().copied().unwrap_or(1));
    let depth = |moved: u64| {
        let range = (most.max(1) as f64).ln() - (least.max(1) as f64).ln();
        if range > 0.0 { ((moved.max(1) as f64).ln() - (least.max(1) as f64).ln()) / range } else { 1.0 }
    };
    // From light blue to dark.
    let colour = |depth: f64| {
        let part = |light: f64, dark: f64| (light + (dark - light) * depth).round() as u8;
        format!("#{:02x}{:02x}{:02x}", part(222.0, 8.0), part(235.0, 48.0), part(247.0, 107.0))
    };
    let side = SIDE / cells as f64;
    let (width, height) = (SIDE + 2.0 * MARGIN + 120.0, SIDE + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\" \
         fill=\"#282c34\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{}\" y=\"24\" font-size=\"16\" text-anchor=\"middle\">bytes that each of {ranks} ranks moves from and to others</text>\n\
         <rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#888\"/>\n",
        MARGIN + SIDE / 2.0
    );
    for (&(from, to), &moved) in &sums {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{side:.2}\" height=\"{side:.2}\" fill=\"{}\"><title>{} to {}: {moved} bytes</title></rect>",
            MARGIN + side * to as f64,
            MARGIN + side * from as f64,
            colour(depth(moved)),
            name(from, share, ranks),
            name(to, share, ranks)
        );
    }
    // The first and the last rank on each axis, then the scale.
    let (middle, end) = (MARGIN + SIDE / 2.0, MARGIN + SIDE);
    let last = ranks.saturating_sub(1);
    let _ = write!(
        svg,
        "<text x=\"{MARGIN}\" y=\"{y}\">0</text><text x=\"{end}\" y=\"{y}\" text-anchor=\"end\">{last}</text>\n\
         <text x=\"{middle}\" y=\"{y}\" text-anchor=\"middle\">rank whose memory it is</text>\n\
         <text x=\"{x}\" y=\"{}\" text-anchor=\"end\">0</text><text x=\"{x}\" y=\"{end}\" text-anchor=\"end\">{last}</text>\n\
         <text transform=\"translate({x} {middle}) rotate(-90)\" text-anchor=\"middle\">rank that calls</text>\n",
        MARGIN + 10.0,
        y = MARGIN - 8.0,
        x = MARGIN - 8.0,
    );
    if !sums.is_empty() {
        const STEPS: u32 = 5;
        for step in 0..=STEPS {
            let depth = f64::from(step) / f64::from(STEPS);
            let moved = (least.max(1) as f64).powf(1.0 - depth) * (most.max(1) as f64).powf(depth);
            let y = end - 24.0 * f64::from(step + 1);
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{y}\" width=\"18\" height=\"18\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                end + 16.0,
                colour(depth),
                end + 40.0,
                y + 14.0,
                super::table::bytes(moved.round() as u64)
            );
        }
    }
    svg + "</svg>\n"
}

fn name(cell: usize, share: usize, ranks: usize) -> String {
    match (cell * share, ((cell + 1) * share).min(ranks) - 1) {
        (first, last) if first == last => format!("rank {first}"),
        (first, last) => format!("ranks {first} to {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_cell_for_each_pair_that_moved_bytes() {
        let bytes = Bytes::from([((0, 1), 8), ((1, 0), 1 << 20), ((3, 2), 8)]);
        let svg = picture(4, &bytes);
        assert!(svg.contains("<title>rank 1 to rank 0: 1048576 bytes</title>") && svg.contains("fill=\"#08306b\""), "{svg}");
        assert_eq!(svg.matches("<title>").count(), 3);
        let svg = picture(1000, &bytes);
        assert!(svg.contains("<title>ranks 0 to 3 to ranks 0 to 3: 1048592 bytes</title>"), "{svg}");
        assert!(picture(1, &Bytes::new()).ends_with("</svg>\n"));
    }
}
