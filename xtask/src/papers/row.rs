//! A row of the table: what was published, what we have, and how the two compare.

use std::fmt;
use std::fmt::Write as _;

/// Where a statement stands: a paper, and a figure or a table of it. As people write it: `18`, `mvich-2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    paper: Paper,
    number: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Its figures.
    Gemini,
    /// Its tables.
    Mvich,
    /// Its tables, in Arabic numerals.
    Odcm,
    OdcmFigures,
    /// Its tables.
    CkDirect,
    CkDirectFigures,
    /// Its figures.
    Extoll,
}

impl From<u32> for Place {
    fn from(number: u32) -> Self {
        Paper::Gemini.at(number)
    }
}

impl Paper {
    pub const fn at(self, number: u32) -> Place {
        Place { paper: self, number }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.paper {
            Paper::Gemini => write!(f, "{}", self.number),
            Paper::Mvich => write!(f, "mvich-{}", self.number),
            Paper::Odcm => write!(f, "odcm-{}", self.number),
            Paper::OdcmFigures => write!(f, "odcm-fig-{}", self.number),
            Paper::CkDirect => write!(f, "ckdirect-{}", self.number),
            Paper::CkDirectFigures => write!(f, "ckdirect-fig-{}", self.number),
            Paper::Extoll => write!(f, "extoll-{}", self.number),
        }
    }
}

/// How a row and the model belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter of the model was fitted to it.
    Fitted,
    /// The model must predict it.
    Predicted,
    /// The paper does not give the pattern, which was chosen to give its number; the protocol must connect as the pattern asks.
    Replayed,
    /// One of our programs ran where the paper had its own.
    Counted,
}

/// What came of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    Fails,
    /// It fails, for a reason that is known.
    Explained(&'static str),
    /// It is not judged, for this reason.
    Shown(&'static str),
}

#[derive(Clone, Debug)]
pub struct Row {
    pub place: Place,
    pub what: String,
    pub kind: Kind,
    pub published: String,
    pub ours: String,
    pub tolerance: String,
    pub verdict: Verdict,
}

impl Row {
    /// A published number, which ours must equal but for a fraction of it.
    pub fn near(place: impl Into<Place>, what: &str, kind: Kind, unit: &str, published: f64, ours: f64, tolerance: f64) -> Row {
        let holds = (ours - published).abs() <= tolerance * published;
        Row {
            place: place.into(),
            what: what.to_owned(),
            kind,
            published: format!("{published} {unit}").trim_end().to_owned(),
            ours: format!("{ours:.3} {unit}").trim_end().to_owned(),
            tolerance: format!("± {:.0} %", 100.0 * tolerance),
            verdict: if holds { Verdict::Holds } else { Verdict::Fails },
        }
    }

    /// A published trend, which ours must show.
    pub fn trend(place: impl Into<Place>, what: &str, published: &str, ours: String, tolerance: &str, holds: bool) -> Row {
        Row {
            place: place.into(),
            what: what.to_owned(),
            kind: Kind::Predicted,
            published: published.to_owned(),
            ours,
            tolerance: tolerance.to_owned(),
            verdict: if holds { Verdict::Holds } else { Verdict::Fails },
        }
    }

    /// The same row, to which a parameter was fitted.
    pub fn fitted(self) -> Row {
        Row { kind: Kind::Fitted, ..self }
    }

    /// The same row, which is not judged for this reason.
    pub fn shown(self, reason: &'static str) -> Row {
        Row { verdict: Verdict::Shown(reason), tolerance: String::new(), ..self }
    }

    /// The same row, which may fail for this reason.
    pub fn unless(self, reason: &'static str) -> Row {
        let verdict = if self.verdict == Verdict::Fails { Verdict::Explained(reason) } else { self.verdict };
        Row { verdict, ..self }
    }
}

/// A Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from("| figure | what | | published | ours | tolerance | verdict |\n|--:|---|---|---|---|---|---|\n");
    for Row { place, what, kind, published, ours, tolerance, verdict } in rows {
        let kind = match kind {
            Kind::Fitted => "F",
            Kind::Predicted => "P",
            Kind::Replayed => "R",
            Kind::Counted => "C",
        };
        let _ = writeln!(text, "| {place} | {what} | {kind} | {published} | {ours} | {tolerance} | {verdict} |");
    }
    text
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds => write!(f, "holds"),
            Verdict::Fails => write!(f, "FAILS"),
            Verdict::Explained(reason) => write!(f, "fails: {reason}"),
            Verdict::Shown(reason) => write!(f, "shown: {reason}"),
        }
    }
}

/// Rows by what came of them; those that are explained are predicted ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub fitted: usize,
    pub predicted: usize,
    pub replayed: usize,
    pub counted: usize,
    /// Of those that are counted.
    pub shown: usize,
    pub failed: usize,
    pub explained: usize,
}

/// A fitted row that fails is a failure too: the fit is not what it claims to be.
pub fn count(rows: &[Row]) -> Count {
    let mut count = Count::default();
    for row in rows {
        count.failed += usize::from(row.verdict == Verdict::Fails);
        match row.kind {
            Kind::Fitted => count.fitted += 1,
            Kind::Replayed => count.replayed += 1,
            Kind::Counted => {
                count.counted += 1;
                count.shown += usize::from(matches!(row.verdict, Verdict::Shown(_)));
            }
            Kind::Predicted => {
                count.predicted += 1;
                count.explained += usize::from(matches!(row.verdict, Verdict::Explained(_)));
            }
        }
    }
    count
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { fitted, predicted, replayed, counted, shown, failed, explained } = self;
        write!(
            f,
            "{predicted} predicted rows, {explained} of them explained; {fitted} fitted; {replayed} replayed; \
             {counted} counted, {shown} of them not judged; {failed} failed"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_judged_and_counted() {
        let near = |ours| Row::near(7, "latency", Kind::Predicted, "us", 1.0, ours, 0.1);
        assert_eq!(
            (near(1.05).verdict, near(0.8).verdict, near(f64::NAN).verdict),
            (Verdict::Holds, Verdict::Fails, Verdict::Fails)
        );
        assert_eq!(near(1.05).unless("why").verdict, Verdict::Holds);
        let by_program = |ours| Row { kind: Kind::Counted, ..near(ours) };
        let rows = [
            near(1.0),
            near(2.0),
            near(2.0).unless("why"),
            near(1.0).fitted(),
            by_program(1.0),
            by_program(2.0),
            by_program(2.0).shown("why"),
        ];
        let counted = Count { fitted: 1, predicted: 3, replayed: 0, counted: 3, shown: 1, failed: 2, explained: 1 };
        assert_eq!(count(&rows), counted);
        let text = table(&rows);
        assert_eq!(text.lines().count(), 2 + rows.len());
        assert!(text.contains("| 7 | latency | P | 1 us | 2.000 us | ± 10 % | FAILS |"), "{text}");
        assert!(text.contains("| C | 1 us | 2.000 us |  | shown: why |"), "{text}");
    }
}
