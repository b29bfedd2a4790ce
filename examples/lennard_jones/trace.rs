//! Tables of other runs: what LAMMPS prints of each step, alone or in a whole `log.lammps`.
//!
//! A table begins with a line of names, of which the first is `Step`. Read are the columns `Temp`, `PotEng` or `E_pair`, `KinEng`, `TotEng`
//! and `Press`, energies for each atom, as LAMMPS prints them in units `lj`; others are skipped. In a log, a table ends at `Loop time`.
//!
//! A printed number is as exact as its digits, of which the default format has eight: a run agrees if it differs by no more than half a unit of
//! the last one, and 1e-9 of the value.

use std::path::Path;

use crate::read::{Lines, Problem, Rejected, number, read};
use crate::thermo::Row;

/// Relative difference up to which runs of two programs are one trajectory: LAMMPS on one and on two ranks differs by 1e-13
/// after 100 steps, and prints twelve digits.
pub(crate) const SAME: f64 = 1e-9;

/// A quantity of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Temperature,
    PotentialEnergy,
    KineticEnergy,
    TotalEnergy,
    Pressure,
}

impl Quantity {
    /// What LAMMPS calls so.
    fn named(name: &str) -> Option<Self> {
        match name {
            "Temp" => Some(Quantity::Temperature),
            "PotEng" | "E_pair" => Some(Quantity::PotentialEnergy),
            "KinEng" => Some(Quantity::KineticEnergy),
            "TotEng" => Some(Quantity::TotalEnergy),
            "Press" => Some(Quantity::Pressure),
            _ => None,
        }
    }

    fn of(self, row: &Row) -> (&'static str, f64) {
        let atoms = row.atoms as f64;
        match self {
            Quantity::Temperature => ("temperature", row.temperature),
            Quantity::PotentialEnergy => ("potential energy", row.configurational_energy() / atoms),
            Quantity::KineticEnergy => ("kinetic energy", row.kinetic_energy / atoms),
            Quantity::TotalEnergy => ("total energy", row.total_energy / atoms),
            Quantity::Pressure => ("pressure", row.pressure),
        }
    }
}

/// A row of another program's table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Traced {
    pub(crate) step: u64,
    /// With half a unit of the last digit that its column has.
    values: Vec<(Quantity, f64, f64)>,
}

/// Reads a table or a log.
pub(crate) fn trace(file: &Path) -> Result<Vec<Traced>, Rejected> {
    read(file, table)
}

fn table(mut lines: Lines<'_>) -> Result<Vec<Traced>, Problem> {
    let mut rows = Vec::new();
    // Of the table that is being read.
    let mut columns: Option<Vec<Option<Quantity>>> = None;
    while let Some(line) = lines.next_line()? {
        let line = line.to_owned();
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.contains("----- Step ") || line.starts_with("---------------- Step") {
            return Err(lines.problem("a table of style multi: `thermo_style one` or `custom` is read"));
        }
        match (words.first(), &columns) {
            (Some(&"Step"), _) => {
                let found: Vec<Option<Quantity>> = words.iter().map(|name| Quantity::named(name)).collect();
                if found.iter().all(Option::is_none) {
                    return Err(lines.problem("no column of `Temp PotEng E_pair KinEng TotEng Press`"));
                }
                columns = Some(found);
            }
            (Some(&"Loop"), _) => columns = None,
            // Warnings stand between rows.
            (Some(word), Some(columns)) if number(word).is_some() => rows.push(row(&lines, columns, &words)?),
            _ => {}
        }
    }
    if rows.is_empty() {
        return Err((None, "there is no table of LAMMPS, with rows below `Step …`".into()));
    }
    Ok(rows.iter().map(|row| traced_of(row, &rows)).collect())
}

/// A row as it stands there.
struct Printed {
    step: u64,
    values: Vec<(Quantity, f64, Digits)>,
}

fn row(lines: &Lines<'_>, columns: &[Option<Quantity>], words: &[&str]) -> Result<Printed, Problem> {
    if words.len() != columns.len() {
        return Err(lines.problem(format!("{} numbers expected, not {}", columns.len(), words.len())));
    }
    // A row that no step of the run has would be compared with nothing.
    let step =
        words[0].parse().map_err(|_| lines.problem(format!("step {}: a whole number, 0 or more, is expected", words[0])))?;
    let mut values = Vec::new();
    for (quantity, word) in columns.iter().zip(words) {
        if let Some(quantity) = quantity {
            let value = number(word).ok_or_else(|| lines.problem(format!("{word} is no finite number")))?;
            values.push((*quantity, value, Digits::of(word)));
        }
    }
    Ok(Printed { step, values })
}

/// How many digits of a number are printed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Digits {
    /// From the first that is not 0.
    significant: i32,
    /// Behind the point.
    decimals: i32,
}

impl Digits {
    fn of(word: &str) -> Self {
        let (digits, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        let significant = digits.chars().filter(char::is_ascii_digit).skip_while(|digit| *digit == '0').count() as i32;
        Digits { significant, decimals: decimals - exponent.parse::<i32>().unwrap_or(0) }
    }
}

/// The row with what may be wrong in it by printing. LAMMPS leaves out zeros at the end, so the number of the column that has most
/// digits tells how many all have: as many significant ones or as many decimals, whichever is less exact.
fn traced_of(row: &Printed, rows: &[Printed]) -> Traced {
    let value = |&(quantity, value, _): &(Quantity, f64, Digits)| {
        let column = || rows.iter().flat_map(|row| &row.values).filter(|other| other.0 == quantity).map(|other| other.2);
        let significant = column().map(|digits| digits.significant).max().unwrap_or(0);
        let decimals = column().map(|digits| digits.decimals).max().unwrap_or(0);
        let first = if value == 0.0 { f64::NEG_INFINITY } else { value.abs().log10().floor() };
        let unit = 10_f64.powi(-decimals).max(10_f64.powf(first + 1.0 - f64::from(significant)));
        (quantity, value, 0.5 * unit)
    };
    Traced { step: row.step, values: row.values.iter().map(value).collect() }
}

/// Compares a row of the run with that of another program.
pub(crate) fn traced(row: &Row, other: &Traced) -> Result<(), String> {
    for &(quantity, value, half) in &other.values {
        let (name, own) = quantity.of(row);
        let same = (own - value).abs() <= half + SAME * value.abs();
        if !same {
            return Err(format!("step {}: {name} {own}, but {value} in the trace", row.step));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::lines;

    #[test]
    fn tables_are_read_and_compared() {
        let text =
            "Step Temp PotEng KinEng TotEng Press\n 0 1.500000000000 -6.00000000000 3.0 -3.00000000000 0.500000000000 \n\n";
        let rows = table(lines(text)).unwrap();
        let row = Row {
            atoms: 2,
            temperature: 1.5,
            potential_energy: -12.0,
            kinetic_energy: 6.0,
            total_energy: -6.0,
            pressure: 0.5,
            ..Row::default()
        };
        assert_eq!(traced(&row, &rows[0]), Ok(()));
        for wrong in [
            Row { pressure: 0.5 + 1e-9, ..row },
            Row { temperature: f64::NAN, ..row },
            Row { kinetic_energy: 6.2, ..row },
            Row { virial: 1.0, total_energy: -6.1, ..row },
        ] {
            assert!(traced(&wrong, &rows[0]).is_err());
        }
    }

    #[test]
    fn zeros_at_the_end_are_digits() {
        let of = |word| (Digits::of(word).significant, Digits::of(word).decimals);
        let digits = ["2.5", "-4.6134356", "3", "1.25e-05", "0.0012", "0"].map(of);
        assert_eq!(digits, [(2, 1), (8, 7), (1, 0), (3, 7), (2, 4), (0, 0)]);
        // As `%.8g` prints them.
        let rows = table(lines("Step Temp\n0 1.44\n1 1.0599206\n2 11.06588\n3 0\n")).unwrap();
        for (row, half) in rows.iter().zip([5e-8, 5e-8, 5e-7, 5e-8]) {
            approx::assert_relative_eq!(row.values[0].2, half, max_relative = 1e-9);
        }
        // As `%.4f` does.
        let rows = table(lines("Step Temp\n0 123.4567\n1 0.0012\n")).unwrap();
        rows.iter().for_each(|row| approx::assert_relative_eq!(row.values[0].2, 5e-5, max_relative = 1e-9));
    }

    #[test]
    fn a_log_is_read() {
        let text = "LAMMPS (23 Jun 2022)\nthermo_style custom step temp\nStep Temp Volume\n 10 1.5 7\nWARNING: odd (src/x.cpp:1)\n \
                    20 1.25 7\nLoop time of 0.1 on 1 procs\n30 1 2\nStep E_pair\n 20 -6.5\nTotal wall time: 0:00:00\n";
        let rows = table(lines(text)).unwrap();
        assert_eq!(rows.iter().map(|row| row.step).collect::<Vec<_>>(), [10, 20, 20]);
        assert_eq!(rows[1].values, [(Quantity::Temperature, 1.25, 0.005)]);
        assert_eq!(rows[2].values, [(Quantity::PotentialEnergy, -6.5, 0.05)]);
    }

    #[test]
    fn mistakes_are_told() {
        let problem = |text| table(lines(text)).unwrap_err().1;
        assert!(problem("Step Volume\n").contains("no column"));
        for step in ["0.5", "-3"] {
            assert!(table(lines(&format!("Step Temp\n{step} 1\n"))).unwrap_err().1.contains("a whole number"));
        }
        assert!(problem("Step Temp\n").contains("no table"));
        assert!(problem("what is this\n").contains("no table"));
        assert!(problem("Step Temp\n1 2 3\n").contains("2 numbers expected, not 3"));
        assert!(problem("Step Temp\n1 inf\n").contains("inf"));
        assert!(problem("------------ Step 0 ----- CPU = 0 (sec) ---\n").contains("style multi"));
    }
}
