//! What must hold for a run to pass: what every run must conserve, and what the user brings from outside.

use std::path::Path;

use serde_json::Value;

use crate::cli::Expectation;
use crate::dump;
use crate::read::{Lines, Problem, Rejected, read};
use crate::simulation::Measured;
use crate::thermo::Row;

/// Relative difference up to which runs of two programs are one trajectory: LAMMPS on one and on two ranks differs by 1e-13
/// after 100 steps, and prints twelve digits.
pub(crate) const SAME: f64 = 1e-9;

/// The momentum that `measured` has more than at the start, against what rounding may do.
///
/// Every pair force is added to both atoms with opposite signs, so only the rounding of sums changes the total: a random walk of
/// one step for each atom and time step. A hundred times its length is never reached by it.
pub(crate) fn momentum(first: &Measured, measured: &Measured, atoms: usize, steps: i64) -> Result<(), String> {
    let change = (0..3).map(|d| (measured.momentum[d] - first.momentum[d]).powi(2)).sum::<f64>().sqrt();
    let speed = (2.0 * first.kinetic_energy.max(measured.kinetic_energy) / atoms as f64).sqrt().max(1.0);
    let limit = 100.0 * f64::EPSILON * speed * (atoms as f64 * (steps + 1) as f64).sqrt();
    if change <= limit {
        return Ok(());
    }
    Err(format!("the momentum has changed by {change:.3e}; rounding allows {limit:.1e}"))
}

/// A run whose total energy has changed by a tenth of the energies at its start follows no potential any more.
pub(crate) fn sane(first: &Row, row: &Row) -> Result<(), String> {
    let change = (row.total_energy - first.total_energy).abs();
    if change <= 0.1 * (first.potential_energy.abs() + first.kinetic_energy) {
        return Ok(());
    }
    let (before, after) = (first.total_energy, row.total_energy);
    Err(format!("the total energy has gone from {before:.6e} to {after:.6e} at step {}: the time step is too long", row.step))
}

/// A row of another program's table: step, temperature, and for each atom potential, kinetic and total energy; pressure.
pub(crate) type Traced = [f64; 6];

/// Reads tables of LAMMPS: a line of names, then rows; each run of a log begins with its names again.
pub(crate) fn trace(file: &Path) -> Result<Vec<Traced>, Rejected> {
    read(file, table)
}

fn table(mut lines: Lines<'_>) -> Result<Vec<Traced>, Problem> {
    const NAMES: [&str; 6] = ["Step", "Temp", "PotEng", "KinEng", "TotEng", "Press"];
    if !lines.expect("a line of names")?.split_whitespace().eq(NAMES) {
        return Err(lines.problem(format!("`{}` expected", NAMES.join(" "))));
    }
    let mut rows = Vec::new();
    while let Some(line) = lines.next()? {
        if line.is_empty() || line.split_whitespace().eq(NAMES) {
            continue;
        }
        let row: Option<Vec<f64>> = line.split_whitespace().map(crate::read::number).collect();
        let row: Option<Traced> = row.and_then(|row| row.try_into().ok());
        let row = row.ok_or_else(|| lines.problem("six finite numbers expected"))?;
        // A row that no step of the run has would be compared with nothing.
        if row[0] < 0.0 || row[0].fract() != 0.0 {
            return Err(lines.problem(format!("{} is the number of no step", row[0])));
        }
        rows.push(row);
    }
    if rows.is_empty() { Err((None, "there are no rows".into())) } else { Ok(rows) }
}

/// Compares a row of the run with that of another program.
pub(crate) fn traced(row: &Row, other: &Traced) -> Result<(), String> {
    let atoms = row.atoms as f64;
    let own = [
        ("temperature", row.temperature),
        ("potential energy", row.configurational_energy() / atoms),
        ("kinetic energy", row.kinetic_energy / atoms),
        ("total energy", row.total_energy / atoms),
        ("pressure", row.pressure),
    ];
    for ((name, own), other) in own.into_iter().zip(&other[1..]) {
        let same = (own - other).abs() <= SAME * other.abs();
        if !same {
            return Err(format!("step {}: {name} {own}, but {other} in the trace", row.step));
        }
    }
    Ok(())
}

/// Reads another program's forces, by number of atom.
pub(crate) fn forces(file: &Path) -> Result<Vec<[f64; 3]>, Rejected> {
    read(file, dump::forces)
}

/// Compares forces with those of another program.
pub(crate) fn same_forces(own: &[[f64; 3]], other: &[[f64; 3]]) -> Result<(), String> {
    if own.len() != other.len() {
        return Err(format!("{} atoms, but forces of {}", own.len(), other.len()));
    }
    for (atom, (own, other)) in own.iter().zip(other).enumerate() {
        let scale = other.iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
        if !(0..3).all(|d| (own[d] - other[d]).abs() <= SAME * scale) {
            return Err(format!("the force on atom {} is {own:?}, but {other:?} in the file", atom + 1));
        }
    }
    Ok(())
}

/// Compares a key of the report with what is expected.
pub(crate) fn expected(report: &Value, expectation: &Expectation) -> Result<(), String> {
    let Expectation { key, value, tolerance } = expectation;
    let found = report.get(key).and_then(Value::as_f64).ok_or_else(|| format!("the report has no number `{key}`"))?;
    if (found - value).abs() <= *tolerance {
        return Ok(());
    }
    Err(format!("{key} is {found}; {value} within {tolerance:e} was expected"))
}

/// Every number of the report must be finite; the others have no form in JSON and become null.
pub(crate) fn finite(report: &Value) -> Result<(), String> {
    match report.as_object().into_iter().flatten().find(|(_, value)| value.is_null()) {
        Some((key, _)) => Err(format!("{key} is not a finite number")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::read::tests::lines;

    #[test]
    fn tables_are_read_and_compared() {
        let rows = table(lines("Step Temp PotEng KinEng TotEng Press\n 0 1.5 -6 3 -3 0.5 \n\n")).unwrap();
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
            Row { virial: 1.0, total_energy: -6.1, ..row },
        ] {
            assert!(traced(&wrong, &rows[0]).is_err());
        }
        assert!(table(lines("Step Temp\n")).is_err());
        for step in ["0.5", "-3"] {
            let text = format!("Step Temp PotEng KinEng TotEng Press\n{step} 1 1 1 1 1\n");
            assert!(table(lines(&text)).unwrap_err().1.contains("no step"));
        }
        assert!(table(lines("Step Temp PotEng KinEng TotEng Press\n")).unwrap_err().1.contains("no rows"));
        assert!(table(lines("Step Temp PotEng KinEng TotEng Press\n1 2 3\n")).unwrap_err().1.contains("six"));
    }

    #[test]
    fn what_is_not_a_number_fails() {
        let still = Measured { kinetic_energy: 1.0, ..Measured::default() };
        assert!(momentum(&still, &Measured { momentum: [f64::NAN, 0.0, 0.0], ..still }, 10, 1).is_err());
        assert!(momentum(&still, &Measured { momentum: [1e-12, 0.0, 0.0], ..still }, 10, 1).is_err());
        assert!(momentum(&still, &Measured { momentum: [1e-14, 0.0, 0.0], ..still }, 10, 1).is_ok());
        assert!(same_forces(&[[0.0, f64::NAN, 0.0]], &[[0.0; 3]]).is_err());
        assert!(same_forces(&[[0.0, 1e-10, 0.0]], &[[0.0; 3]]).is_ok());
        assert!(same_forces(&[[0.0, 1e-8, 0.0]], &[[0.0; 3]]).is_err());
    }

    #[test]
    fn a_report_has_finite_numbers_only() {
        assert_eq!(finite(&json!({"a": 2.0, "b": "text", "c": [1, 2], "d": true})), Ok(()));
        for value in [f64::NAN, f64::INFINITY] {
            assert!(finite(&json!({"a": 2.0, "energy_drift": value})).unwrap_err().contains("energy_drift"));
        }
    }

    #[test]
    fn expectations() {
        let expect = |text: &str| expected(&json!({"a": 2.0, "b": null}), &text.parse().unwrap());
        assert_eq!(expect("a=2.1:0.1"), Ok(()));
        assert!(expect("a=2.1:0.01").unwrap_err().contains("a is 2"));
        assert!(expect("b=2.1:0.01").unwrap_err().contains("no number"));
        assert!(expect("c=2.1:0.01").unwrap_err().contains("no number"));
    }
}
