//! The chart: for each row our speed over the limit's and over the best peer's, on a logarithmic axis. Rows that have neither,
//! those inside a node under `mpirun`, stand in the table alone.

use super::goals::{Goal, Row};
use super::mpi::Place;
use super::results::Results;
use super::table::number;
use std::fmt::Write as _;

const WIDTH: i32 = 1040;
/// Left end of the axis.
const LABELS: i32 = 320;
/// Columns of figures, right of the axis.
const LIMIT_COLUMN: i32 = WIDTH - 90;
const PEER_COLUMN: i32 = WIDTH - 16;
const RIGHT: i32 = LIMIT_COLUMN - 50;
const TOP: i32 = 70;
const BOTTOM: i32 = 30;
const LINE: i32 = 18;
const BETWEEN_GROUPS: i32 = 10;
/// Ratios outside are drawn at the edge; their figures stand in the columns.
const LOWEST: f64 = 0.05;
const HIGHEST: f64 = 1200.0;

const INK: &str = "#282c34";
const FAINT: &str = "#e1e4e8";
const LIMIT: &str = "#1f69b2";
const PEER: &str = "#de7a19";

/// The whole picture.
pub fn svg(results: &Results) -> String {
    let has_ratio = |row: &&Row| results.over_limit(row).is_some() || results.over_peer(row).is_some();
    let rows: Vec<&Row> = results.rows().filter(|row| !matches!(row.place, Place::Inside(_))).filter(has_ratio).collect();
    let breaks = rows.windows(2).filter(|pair| pair[0].section() != pair[1].section()).count() as i32;
    let height = TOP + LINE * rows.len() as i32 + BETWEEN_GROUPS * breaks + BOTTOM;
    let mut svg = Svg(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\" \
         fill=\"{INK}\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    ));
    svg.heading();
    svg.axis(height - BOTTOM);
    let mut y = TOP + LINE / 2;
    for (k, row) in rows.iter().enumerate() {
        if k > 0 && rows[k - 1].section() != row.section() {
            y += BETWEEN_GROUPS;
        }
        svg.row(results, row, y);
        y += LINE;
    }
    svg.0.push_str("</svg>\n");
    svg.0
}

/// Where a ratio stands on the axis.
fn across(ratio: f64) -> i32 {
    let part = (ratio.clamp(LOWEST, HIGHEST) / LOWEST).log10() / (HIGHEST / LOWEST).log10();
    LABELS + (f64::from(RIGHT - LABELS) * part).round() as i32
}

struct Svg(String);

impl Svg {
    fn text(&mut self, text: &str, (x, y): (i32, i32), anchor: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(self.0, "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>", y + 5);
    }

    fn line(&mut self, from: (i32, i32), to: (i32, i32), color: &str, width: i32) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{color}\" stroke-width=\"{width}\"/>"
        );
    }

    fn dot(&mut self, (x, y): (i32, i32)) {
        let _ = writeln!(self.0, "<circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"{LIMIT}\"/>");
    }

    fn diamond(&mut self, (x, y): (i32, i32)) {
        let _ = writeln!(self.0, "<path d=\"M{} {y}l5 -5l5 5l-5 5z\" fill=\"{PEER}\"/>", x - 5);
    }

    fn heading(&mut self) {
        self.text("Speed of global-arrays over that of others: right of 1 it is faster", (16, 16), "start");
        self.dot((22, 40));
        self.text("plain C or OpenBLAS (the limit)", (34, 40), "start");
        self.diamond((262, 40));
        self.text("best peer", (274, 40), "start");
        self.line((370, 33), (370, 47), LIMIT, 2);
        self.text("goal against the limit", (380, 40), "start");
        self.text("limit", (LIMIT_COLUMN, TOP - 12), "end");
        self.text("best peer", (PEER_COLUMN, TOP - 12), "end");
    }

    fn axis(&mut self, bottom: i32) {
        for ratio in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0] {
            let x = across(ratio);
            self.line((x, TOP - 4), (x, bottom), if ratio == 1.0 { INK } else { FAINT }, 1);
            self.text(&ratio.to_string(), (x, TOP - 12), "middle");
            self.text(&ratio.to_string(), (x, bottom + 12), "middle");
        }
    }

    fn row(&mut self, results: &Results, row: &Row, y: i32) {
        self.text(row.op, (16, y), "start");
        let shape = match row.place {
            Place::Here | Place::Inside(_) => row.shape.to_owned(),
            Place::Between(library) => format!("{}, {}", row.shape, library.source().title()),
        };
        self.text(&shape, (LABELS - 12, y), "end");
        self.line((LABELS, y), (RIGHT, y), FAINT, 1);
        for goal in row.goals {
            let least = match *goal {
                Goal::Limit(least) => least,
                Goal::LimitTime(most) => 1.0 / most,
                _ => continue,
            };
            self.line((across(least), y - 7), (across(least), y + 7), LIMIT, 2);
        }
        if let Some(ratio) = results.over_peer(row) {
            self.diamond((across(ratio), y));
            self.text(&number(ratio), (PEER_COLUMN, y), "end");
        }
        if let Some(ratio) = results.over_limit(row) {
            self.dot((across(ratio), y));
            self.text(&number(ratio), (LIMIT_COLUMN, y), "end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_stand_in_their_order() {
        let places: Vec<i32> = [0.001, 0.1, 1.0, 10.0, 9999.0].into_iter().map(across).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!((places[0], places[4]), (LABELS, RIGHT));
    }
}
