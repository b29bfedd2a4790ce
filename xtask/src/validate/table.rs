//! One line for each case on each machine, and what explains a difference.

use super::cases::{ACROSS, Case};
use super::machine::Network;

/// Both sides of a case.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub network: Network,
    pub ranks: usize,
    pub case: Case,
    /// In seconds.
    pub ours: f64,
    pub theirs: f64,
    /// What LogGP says, if that is known.
    pub exact: Option<f64>,
}

/// How far two times may be apart.
const MOST: f64 = 0.1;

/// Why a row differs by more: the rows, and the physics.
struct Explanation {
    fits: fn(&Row) -> bool,
    text: &'static str,
}

const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        fits: |row| {
            row.network == Network::Torus && matches!(row.case, Case::Shift { distance: ACROSS, .. }) && row.ours > row.theirs
        },
        text: "torus, shift over all directions: two messages share each link of two directions. Flows have half of all their links at once: \
               about twice the time of the bytes. Whole messages wait for one turn in each direction: three times. Packets are between.",
    },
    // By hand: with a window of 64, that is without one, 256 us and 253 us at 64 KiB; with 4, 380 and 475.
    Explanation {
        fits: |row| row.network == Network::Torus && matches!(row.case, Case::AllToAll { .. }) && row.ours < row.theirs,
        text: "torus, all-to-all: flows of one rank share its links and end late, all at about one time, so its window is full for longer. \
               Messages that take turns end one by one. Without the window both take the same.",
    },
];

pub const HEADING: &str = "network   ranks  pattern                     ours, us    SimGrid, us    LogGP, us  ours / SimGrid";

impl Row {
    /// Within the limit of the other simulator, and both of the exact time.
    pub fn agrees(&self) -> bool {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() <= MOST;
        near(self.ours, self.theirs) && self.exact.is_none_or(|exact| near(self.ours, exact) && near(self.theirs, exact))
    }

    pub fn explanation(&self) -> Option<&'static str> {
        EXPLANATIONS.iter().find(|explanation| (explanation.fits)(self)).map(|explanation| explanation.text)
    }

    pub fn line(&self) -> String {
        let exact = self.exact.map_or("-".to_owned(), |exact| format!("{:.3}", 1e6 * exact));
        let mark = match (self.agrees(), self.explanation()) {
            (true, _) => "",
            (false, Some(_)) => "  explained",
            (false, None) => "  OFF",
        };
        format!(
            "{:<9} {:>5}  {:<22} {:>13.3} {:>14.3} {:>12} {:>15.3}{mark}",
            self.network.name(),
            self.ranks,
            self.case.to_string(),
            1e6 * self.ours,
            1e6 * self.theirs,
            exact,
            self.ours / self.theirs,
        )
    }
}

/// Those of rows that differ, each once.
pub fn explanations(rows: &[Row]) -> Vec<&'static str> {
    let mut texts: Vec<&str> = rows.iter().filter(|row| !row.agrees()).filter_map(Row::explanation).collect();
    texts.dedup();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_must_be_near_the_other_and_the_truth() {
        let row = |ours, theirs, exact| Row {
            network: Network::Crossbar,
            ranks: 64,
            case: Case::AllToAll { bytes: 8 },
            ours,
            theirs,
            exact,
        };
        assert!(row(1.0, 1.09, None).agrees() && row(1.09, 1.0, Some(1.0)).agrees());
        assert!(!row(1.0, 1.2, None).agrees() && !row(1.2, 1.0, None).agrees());
        assert!(!row(1.0, 1.0, Some(1.2)).agrees());
        assert!(row(1.0, 1.2, None).line().ends_with("OFF") && !row(1.0, 1.0, None).line().contains("OFF"));
    }
}
