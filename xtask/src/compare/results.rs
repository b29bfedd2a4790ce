//! Figures by row and program, their medians and ratios, and the file that keeps them.
//!
//! The file is CSV below lines of comment: the first says which machine it was, the others are notes of whoever measured. A cell has
//! the values of all rounds. Where a figure is missing that a goal needs, what the file says of the goal is kept.

use super::goals::{Goal, ROWS, Row, Section, sections};
use super::source::Source;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One measured value of a row.
#[derive(Clone, Debug)]
pub struct Figure {
    pub op: String,
    pub shape: String,
    pub value: f64,
}

/// All values measured on one machine, one for each round.
#[derive(Debug, Default)]
pub struct Results {
    /// The machine.
    pub title: String,
    /// Sentences on how it was measured.
    pub notes: Vec<String>,
    rows: BTreeMap<Key, Measured>,
}

/// A row by section, operation and shape.
type Key = (Section, String, String);

#[derive(Debug, Default)]
struct Measured {
    values: BTreeMap<Source, Vec<f64>>,
    date: String,
    /// Goals, and whether they were reached when the row was measured, as the file has them.
    recorded: Option<(String, String)>,
}

/// A row whose peers vary by more than this factor between rounds says little.
const NOISE: f64 = 4.0 / 3.0;

impl Results {
    pub fn of(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    pub fn add(&mut self, section: Section, source: Source, figure: Figure) {
        let row = self.rows.entry((section, figure.op, figure.shape)).or_default();
        row.values.entry(source).or_default().push(figure.value);
    }

    /// Says when all rows were measured.
    pub fn set_date(&mut self, date: &str) {
        self.rows.values_mut().for_each(|row| date.clone_into(&mut row.date));
    }

    /// Takes the rows of a newer run in place of its own.
    pub fn replace(&mut self, newer: Results) {
        self.title = newer.title;
        self.rows.extend(newer.rows);
    }

    /// When the rows were measured.
    pub fn dates(&self) -> String {
        let mut dates: Vec<&str> = self.rows.values().map(|row| row.date.as_str()).filter(|date| !date.is_empty()).collect();
        dates.sort_unstable();
        match (dates.first(), dates.last()) {
            (Some(first), Some(last)) if first != last => format!("from {first} to {last}"),
            (Some(first), _) => format!("on {first}"),
            _ => "on an unknown date".to_owned(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows that anyone has a figure for, in the order of the table.
    pub fn rows(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(|row| self.rows.contains_key(&key(row)))
    }

    /// Median over the rounds.
    pub fn figure(&self, row: &Row, source: Source) -> Option<f64> {
        let mut values = self.rows.get(&key(row))?.values.get(&source)?.clone();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        Some(if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) })
    }

    /// The fastest of the peers.
    pub fn best_peer(&self, row: &Row) -> Option<(Source, f64)> {
        let peers = Source::ALL.into_iter().filter(|source| source.is_peer());
        let figures = peers.filter_map(|source| Some((source, self.figure(row, source)?)));
        figures.max_by(|(_, a), (_, b)| row.ratio(*a, *b).total_cmp(&1.0))
    }

    /// Our speed over another's.
    pub fn over(&self, row: &Row, source: Source) -> Option<f64> {
        Some(row.ratio(self.figure(row, Source::Us)?, self.figure(row, source)?))
    }

    /// Our speed over the limit's.
    pub fn over_limit(&self, row: &Row) -> Option<f64> {
        self.over(row, Source::Limit)
    }

    /// Our speed over the best peer's.
    pub fn over_peer(&self, row: &Row) -> Option<f64> {
        Some(row.ratio(self.figure(row, Source::Us)?, self.best_peer(row)?.1))
    }

    /// A program's speed over its own in the row of another shape.
    fn gain(&self, row: &Row, shape: &str, source: Source) -> Option<f64> {
        Some(row.ratio(self.figure(row, source)?, self.figure(row.sibling(shape)?, source)?))
    }

    /// For each goal whether it is reached; `None` when a figure that it needs is missing and the file says nothing either.
    pub fn verdicts(&self, row: &Row) -> Vec<Option<bool>> {
        let recorded = self.rows.get(&key(row)).and_then(|row| row.recorded.as_ref());
        let recorded: Vec<&str> = match recorded {
            Some((goals, reached)) if *goals == goals_text(row) => reached.split("; ").collect(),
            _ => Vec::new(),
        };
        let kept = |k: usize| match recorded.get(k) {
            Some(&"yes") => Some(true),
            Some(&"no") => Some(false),
            _ => None,
        };
        row.goals.iter().enumerate().map(|(k, goal)| self.reached(row, goal).or_else(|| kept(k))).collect()
    }

    /// Whether the programs that we are compared with differ more between rounds than a verdict can bear.
    pub fn is_noise(&self, row: &Row) -> bool {
        let Some(measured) = self.rows.get(&key(row)) else { return false };
        let others = measured.values.iter().filter(|(source, _)| **source != Source::Us);
        others.into_iter().any(|(_, values)| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            values.iter().any(|&value| value > NOISE * least)
        })
    }

    fn reached(&self, row: &Row, goal: &Goal) -> Option<bool> {
        let us = self.figure(row, Source::Us)?;
        Some(match *goal {
            Goal::AtMost(most) => us <= most,
            Goal::BeyondSync(most) => {
                let sync = ROWS.iter().find(|sync| (sync.place, sync.op, sync.shape) == (row.place, "sync", "2 ranks"))?;
                us - self.figure(sync, Source::Us)? <= most
            }
            Goal::Limit(least) => self.over_limit(row)? >= least,
            Goal::LimitTime(most) => self.over_limit(row)? >= 1.0 / most,
            Goal::BestPeer(least) => self.over_peer(row)? >= least,
            Goal::Peer(source, least) => self.over(row, source)? >= least,
            Goal::PeerTime(source, most) => self.over(row, source)? >= 1.0 / most,
            Goal::Over(shape, least) => self.gain(row, shape, Source::Us)? >= least,
            Goal::OverAsLimit(shape, least) => {
                self.gain(row, shape, Source::Us)? >= least * self.gain(row, shape, Source::Limit)?
            }
        })
    }

    /// One line for each row: what it is, every program's values, our ratios, the goals, the date.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = format!("# {}\n", self.title);
        self.notes.iter().for_each(|note| text.push_str(&format!("# {note}\n")));
        text.push_str("group,op,shape,unit");
        for source in Source::ALL {
            let _ = write!(text, ",{}", source.title());
        }
        text.push_str(",us/limit,us/best peer,goal,reached,date\n");
        let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
        for row in self.rows() {
            let _ = write!(text, "{},{},{},{}", row.section(), row.op, row.shape, row.unit);
            let measured = &self.rows[&key(row)];
            for source in Source::ALL {
                let values = measured.values.get(&source).into_iter().flatten();
                let values: Vec<String> = values.map(f64::to_string).collect();
                let _ = write!(text, ",{}", values.join(";"));
            }
            let marks: Vec<&str> = self.verdicts(row).into_iter().map(verdict).collect();
            let (limit, peer) = (number(self.over_limit(row)), number(self.over_peer(row)));
            let _ = writeln!(text, ",{limit},{peer},{},{},{}", goals_text(row), marks.join("; "), measured.date);
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The figures of a file that `write` made.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not a file of figures", path.display()))
    }

    /// Columns are found by their titles: a file of an earlier run may lack some, and may have sections that are no more.
    fn parse(text: &str) -> Result<Self> {
        let mut comments = text.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned);
        let mut results = Self { title: comments.next().unwrap_or_default(), notes: comments.collect(), ..Self::default() };
        let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect::<Vec<_>>());
        let titles = lines.next().unwrap_or_default();
        let source = |title: &&str| Source::ALL.into_iter().find(|source| source.title() == *title);
        let sections = sections();
        for fields in lines {
            if fields.len() != titles.len() || fields.len() < 3 {
                bail!("a line with {} fields below {} titles", fields.len(), titles.len());
            }
            let Some(section) = sections.iter().find(|section| section.to_string() == fields[0]) else { continue };
            let cell = |title: &str| titles.iter().position(|t| *t == title).map(|column| fields[column].to_owned());
            for (title, field) in titles.iter().zip(&fields) {
                let Some(source) = source(title) else { continue };
                for value in field.split(';').filter_map(|value| value.parse().ok()) {
                    results.add(*section, source, Figure { op: fields[1].to_owned(), shape: fields[2].to_owned(), value });
                }
            }
            let row = results.rows.entry((*section, fields[1].to_owned(), fields[2].to_owned())).or_default();
            row.date = cell("date").unwrap_or_default();
            row.recorded = cell("goal").zip(cell("reached"));
        }
        Ok(results)
    }
}

/// Every goal of a row, as the file has them.
fn goals_text(row: &Row) -> String {
    // A comma ends a cell.
    row.goals.iter().map(|goal| goal.text(row).replace(',', "")).collect::<Vec<_>>().join("; ")
}

fn key(row: &Row) -> (Section, String, String) {
    (row.section(), row.op.to_owned(), row.shape.to_owned())
}

pub fn verdict(reached: Option<bool>) -> &'static str {
    match reached {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

/// The lines of a program's result file: `op,shape,value,unit,best,trials,iters`.
pub fn parse_figures(text: &str) -> Vec<Figure> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let value = fields.get(2)?.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)?;
        Some(Figure { op: fields[0].to_owned(), shape: fields[1].to_owned(), value })
    };
    text.lines().skip(1).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(source: Source, results: &mut Results, op: &str, shape: &str, values: &[f64]) {
        for &value in values {
            results.add(row(op, shape).section(), source, Figure { op: op.to_owned(), shape: shape.to_owned(), value });
        }
    }

    fn row(op: &str, shape: &str) -> &'static Row {
        ROWS.iter().find(|row| (row.op, row.shape) == (op, shape)).expect("a row of the table")
    }

    #[test]
    fn times_and_rates_give_ratios_of_speed() {
        let mut results = Results::default();
        with(Source::Us, &mut results, "sync", "2 ranks", &[0.2, 0.1, 9.0]);
        with(Source::Mpich, &mut results, "sync", "2 ranks", &[2.0]);
        with(Source::OpenMpi, &mut results, "sync", "2 ranks", &[1.0]);
        with(Source::Us, &mut results, "put", "16MiB", &[30.0, 20.0]);
        with(Source::Limit, &mut results, "put", "16MiB", &[20.0]);
        assert_eq!(results.best_peer(row("sync", "2 ranks")), Some((Source::OpenMpi, 1.0)));
        assert_eq!(results.over_peer(row("sync", "2 ranks")), Some(5.0));
        assert_eq!(results.over_limit(row("put", "16MiB")), Some(1.25));
        assert_eq!(results.reached(row("sync", "2 ranks"), &Goal::AtMost(0.1)), Some(false));
        assert_eq!(results.reached(row("put", "16MiB"), &Goal::Limit(1.2)), Some(true));
        assert_eq!(results.reached(row("put", "16MiB"), &Goal::BestPeer(1.0)), None);
    }

    #[test]
    fn scaling_is_measured_against_the_row_of_one_rank() {
        let mut results = Results::default();
        for (shape, us, limit) in [("256^3 1 rank", 1000.0, 2000.0), ("256^3 2 ranks", 1700.0, 3500.0)] {
            with(Source::Us, &mut results, "stencil", shape, &[us]);
            with(Source::Limit, &mut results, "stencil", shape, &[limit]);
        }
        let two = row("stencil", "256^3 2 ranks");
        assert_eq!(results.reached(two, &Goal::Over("256^3 1 rank", 1.7)), Some(true));
        assert_eq!(results.reached(two, &Goal::Over("256^3 1 rank", 1.71)), Some(false));
        assert_eq!(results.reached(two, &Goal::OverAsLimit("256^3 1 rank", 0.97)), Some(true));
        assert_eq!(results.reached(two, &Goal::OverAsLimit("256^3 1 rank", 0.98)), Some(false));
    }

    #[test]
    fn figures_are_read_by_title() -> Result<()> {
        let results = Results::parse("group,op,shape,unit,us,HPCC,limit\nstencil,stencil,256^3 1 rank,Mcell/s,5.0,,7.0\n")?;
        let row = row("stencil", "256^3 1 rank");
        assert_eq!((results.figure(row, Source::Us), results.figure(row, Source::Limit)), (Some(5.0), Some(7.0)));
        assert_eq!(results.figure(row, Source::Hpcc), None);
        assert!(Results::parse("group,op,shape,us\nstencil,stencil,a, b,1\n").is_err());
        Ok(())
    }

    #[test]
    fn the_values_of_all_rounds_are_kept_and_tell_noise() -> Result<()> {
        let text = "# a machine\n# a note\ngroup,op,shape,us,limit,Open MPI,date\n\
                    sync,sync,2 ranks,1;3,1,2;2.6,2026-11-21\nsync8,sync,8 ranks,1;3,1,2;2.7,2026-11-22\n";
        let results = Results::parse(text)?;
        assert_eq!((results.title.as_str(), results.notes.len()), ("a machine", 1));
        assert_eq!(results.dates(), "from 2026-11-21 to 2026-11-22");
        assert_eq!(results.figure(row("sync", "2 ranks"), Source::Us), Some(2.0));
        assert!(!results.is_noise(row("sync", "2 ranks")), "only we vary by more than a third");
        assert!(results.is_noise(row("sync", "8 ranks")));
        Ok(())
    }

    #[test]
    fn a_verdict_is_kept_while_its_goal_is_the_same() -> Result<()> {
        let goal = goals_text(row("put_nb", "64x8B"));
        let with = |goal: &str| Results::parse(&format!("group,op,shape,us,goal,reached\ninflight,put_nb,64x8B,1,{goal},no\n"));
        assert_eq!(with(&goal)?.verdicts(row("put_nb", "64x8B")), [Some(false)]);
        assert_eq!(with("≥ 9 × Open MPI")?.verdicts(row("put_nb", "64x8B")), [None]);
        Ok(())
    }

    #[test]
    fn a_newer_run_replaces_its_rows_only() -> Result<()> {
        let mut old = Results::parse("# old\ngroup,op,shape,us,date\nsync,sync,2 ranks,1,a\nsync8,sync,8 ranks,1,a\n")?;
        let mut new = Results::of("new".to_owned());
        with(Source::Us, &mut new, "sync", "2 ranks", &[5.0]);
        new.set_date("b");
        old.replace(new);
        assert_eq!(old.figure(row("sync", "2 ranks"), Source::Us), Some(5.0));
        assert_eq!(old.figure(row("sync", "8 ranks"), Source::Us), Some(1.0));
        assert_eq!((old.title.as_str(), old.dates().as_str()), ("new", "from a to b"));
        Ok(())
    }
}
