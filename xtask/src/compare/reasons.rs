//! Why a row misses its goal: one line for each reason in `docs/performance/reasons.txt`, kept by hand.
//!
//! A line is `machine | rows | shapes | reason`. A machine is the name of its file of figures. Rows are named as in the first two columns
//! of the figures (`strided/put_strided`, `between_openmpi/remote/put`), shapes are separated by commas. `*` at the end of any of the three
//! stands for anything. The first line that fits counts.

use super::goals::Row;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

#[derive(Debug, Default)]
pub struct Reasons(Vec<Reason>);

#[derive(Clone, Debug)]
struct Reason {
    machine: String,
    rows: String,
    shapes: Vec<String>,
    text: String,
}

impl Reasons {
    /// Reads the file; one that does not exist gives no reasons.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not a file of reasons", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut reasons = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let &[machine, rows, shapes, text] = fields.as_slice() else {
                bail!("{line:?} is not `machine | rows | shapes | reason`");
            };
            let shapes = shapes.split(',').map(|shape| shape.trim().to_owned()).collect();
            reasons.push(Reason { machine: machine.to_owned(), rows: rows.to_owned(), shapes, text: text.to_owned() });
        }
        Ok(Self(reasons))
    }

    /// Those that hold for a machine.
    pub fn on(&self, machine: &str) -> Self {
        Self(self.0.iter().filter(|reason| matches(&reason.machine, machine)).cloned().collect())
    }

    pub fn of(&self, row: &Row) -> Option<&str> {
        let name = format!("{}/{}", row.section(), row.op);
        let fits = |reason: &&Reason| matches(&reason.rows, &name) && reason.shapes.iter().any(|shape| matches(shape, row.shape));
        self.0.iter().find(fits).map(|reason| reason.text.as_str())
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::super::goals::ROWS;
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() -> Result<()> {
        let reasons = Reasons::parse("# comment\n\nzen* | contiguous/get | 4KiB, 64KiB | a\n* | contiguous/* | * | b\n")?;
        let of = |op: &str, shape: &str| {
            let row = ROWS.iter().find(|row| (row.op, row.shape) == (op, shape)).expect("a row of the table");
            ["zen5", "other"].map(|machine| reasons.on(machine).of(row).map(str::to_owned))
        };
        let both = |a: &str, b: &str| [Some(a.to_owned()), Some(b.to_owned())];
        assert_eq!(of("get", "64KiB"), both("a", "b"));
        assert_eq!(of("get", "16KiB"), both("b", "b"));
        assert_eq!(of("put", "4KiB"), both("b", "b"));
        assert_eq!(of("sync", "2 ranks"), [None, None]);
        assert!(Reasons::parse("* | contiguous/get | 4KiB").is_err());
        Ok(())
    }
}
