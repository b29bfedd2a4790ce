//! The Markdown table.

use super::goals::Row;
use super::mpi::{Library, Place, network};
use super::results::{Results, Source};
use std::fmt::Write as _;

pub fn markdown(results: &Results) -> String {
    let mut text = String::from(
        "Ratios are of speeds: above 1 we are faster. The limit is plain C between two processes, OpenBLAS on two threads for matmul and lu, a copy of as many cells for stencil.\n",
    );
    table(&mut text, results, Place::Here, "");
    for library in Library::ALL {
        let (between, inside) = (Place::Between(library), Place::Inside(library));
        let title = library.source().title();
        table(&mut text, results, between, &format!("Between nodes over {title}, two ranks, {}:\n\n", network()));
        table(
            &mut text,
            results,
            inside,
            &format!("Inside a node under {title}, of each operation the shape that comes off worst:\n\n"),
        );
    }
    let (mut reached, mut asked) = (0, 0);
    for row in results.rows() {
        for goal in row.goals {
            asked += usize::from(results.reached(row, goal).is_some());
            reached += usize::from(results.reached(row, goal) == Some(true));
        }
    }
    let _ = writeln!(text, "\n{reached} of {asked} goals reached");
    text
}

fn table(text: &mut String, results: &Results, place: Place, heading: &str) {
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
        "\n{heading}| op | shape | unit | us | {second} | best peer | us / {second} | us / best peer | goal | |\n\
         |---|---|---|--:|--:|--:|--:|--:|---|---|\n"
    );
    for row in rows {
        let (goals, mark) = goals(results, row);
        let peer = results.best_peer(row);
        let peer = peer.map_or(String::from("–"), |(source, value)| format!("{} ({})", number(value), source.title()));
        let (beside, over) = match place {
            Place::Inside(_) => (results.figure(row, Source::SharedMemory), results.over(row, Source::SharedMemory)),
            _ => (results.figure(row, Source::Limit), results.over(row, Source::Limit)),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {peer} | {} | {} | {goals} | {mark} |",
            row.op,
            row.shape,
            row.unit.replace("us", "µs"),
            optional(results.figure(row, Source::Us)),
            optional(beside),
            optional(over),
            optional(results.over_peer(row)),
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
