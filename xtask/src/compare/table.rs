//! The Markdown tables of one machine.

use super::goals::Row;
use super::mpi::{Library, Place};
use super::reasons::Reasons;
use super::results::Results;
use super::source::Source;
use std::fmt::Write as _;

pub fn markdown(results: &Results, reasons: &Reasons) -> String {
    let mut text = String::new();
    table(&mut text, results, reasons, Place::Here, "");
    for library in Library::ALL {
        let title = library.source().title();
        table(&mut text, results, reasons, Place::Between(library), &format!("### Between nodes over {title}\n\n"));
        table(&mut text, results, reasons, Place::Inside(library), &format!("### Inside a node under {title}\n\n"));
    }
    let verdicts: Vec<bool> = results.rows().flat_map(|row| results.verdicts(row)).flatten().collect();
    let reached = verdicts.iter().filter(|reached| **reached).count();
    let _ = writeln!(text, "\n{reached} of {} goals reached.", verdicts.len());
    text
}

/// The rows that miss a goal and have no reason; noise is one.
pub fn unexplained(results: &Results, reasons: &Reasons) -> Vec<String> {
    let missed = results.rows().filter(|row| results.verdicts(row).contains(&Some(false)));
    let unexplained = missed.filter(|row| !results.is_noise(row) && reasons.of(row).is_none());
    unexplained.map(|row| format!("{}/{} {}", row.section(), row.op, row.shape)).collect()
}

fn table(text: &mut String, results: &Results, reasons: &Reasons, place: Place, heading: &str) {
    let rows: Vec<&Row> = match place {
        Place::Inside(_) => worst_of_each(results, place),
        _ => results.rows().filter(|row| row.place == place).collect(),
    };
    if rows.is_empty() {
        return;
    }
    let second = if matches!(place, Place::Inside(_)) { "shared memory" } else { "limit" };
    let _ = write!(
        text,
        "\n{heading}| op | shape | unit | us | {second} | best peer | us / {second} | us / best peer | goal | | why not |\n\
         |---|---|---|--:|--:|--:|--:|--:|---|---|---|\n"
    );
    for row in rows {
        let verdicts = results.verdicts(row);
        let mut marks: Vec<&str> = verdicts.iter().copied().map(mark).collect();
        if results.is_noise(row) {
            marks.push("~");
        }
        let goals: Vec<String> = row.goals.iter().map(|goal| goal.text(row)).collect();
        let reason = if verdicts.contains(&Some(false)) { reasons.of(row).unwrap_or_default() } else { "" };
        let peer = results.best_peer(row);
        let peer = peer.map_or(String::from("–"), |(source, value)| format!("{} ({})", number(value), source.title()));
        let (beside, over) = match place {
            Place::Inside(_) => (results.figure(row, Source::SharedMemory), results.over(row, Source::SharedMemory)),
            _ => (results.figure(row, Source::Limit), results.over(row, Source::Limit)),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {peer} | {} | {} | {} | {} | {reason} |",
            row.op,
            row.shape,
            row.unit.replace("us", "µs"),
            optional(results.figure(row, Source::Us)),
            optional(beside),
            optional(over),
            optional(results.over_peer(row)),
            goals.join(", "),
            marks.join(" "),
        );
    }
}

/// Of each operation the row of the smallest ratio to our conduit of one node; one without a ratio comes first of all.
fn worst_of_each(results: &Results, place: Place) -> Vec<&'static Row> {
    let ratio = |row: &Row| results.over(row, Source::SharedMemory).unwrap_or(0.0);
    let mut worst: Vec<&'static Row> = Vec::new();
    for row in results.rows().filter(|row| row.place == place) {
        match worst.iter_mut().find(|known| known.op == row.op && known.group == row.group) {
            Some(known) if ratio(row) < ratio(known) => *known = row,
            Some(_) => {}
            None => worst.push(row),
        }
    }
    worst
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
