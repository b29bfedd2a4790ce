//! The Markdown table.

use super::goals::Row;
use super::results::{Results, Source};
use std::fmt::Write as _;

pub fn markdown(results: &Results) -> String {
    let mut text = String::from(
        "Ratios are of speeds: above 1 we are faster. The limit is plain C between two processes, OpenBLAS on two threads for matmul and lu, a copy of as many cells for stencil.\n\n\
         | op | shape | unit | us | limit | best peer | us / limit | us / best peer | goal | |\n\
         |---|---|---|--:|--:|--:|--:|--:|---|---|\n",
    );
    let (mut reached, mut asked) = (0, 0);
    for row in results.rows() {
        let (goals, mark) = goals(results, row);
        for goal in row.goals {
            asked += usize::from(results.reached(row, goal).is_some());
            reached += usize::from(results.reached(row, goal) == Some(true));
        }
        let peer = results.best_peer(row);
        let peer = peer.map_or(String::from("–"), |(source, value)| format!("{} ({})", number(value), source.title()));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {peer} | {} | {} | {goals} | {mark} |",
            row.op,
            row.shape,
            row.unit.replace("us", "µs"),
            optional(results.figure(row, Source::Us)),
            optional(results.figure(row, Source::Limit)),
            optional(results.over_limit(row)),
            optional(results.over_peer(row)),
        );
    }
    let _ = writeln!(text, "\n{reached} of {asked} goals reached");
    text
}

fn goals(results: &Results, row: &Row) -> (String, String) {
    let text: Vec<String> = row.goals.iter().map(|goal| goal.text(row)).collect();
    let marks: Vec<&str> = row.goals.iter().map(|goal| mark(results.reached(row, goal))).collect();
    (text.join(", "), marks.join(" "))
}

fn mark(reached: Option<bool>) -> &'static str {
    match reached {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "?",
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or(String::from("–"), number)
}

/// Three digits that count.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}
