//! What must hold for a run to pass: what every run must conserve, and what the user brings from outside.

use std::path::Path;

use serde_json::Value;

use crate::cli::Expectation;
use crate::dump;
use crate::read::{Rejected, read};
use crate::simulation::Measured;
use crate::thermo::Row;
use crate::trace::SAME;

/// The momentum that `measured` has more than at the start, against what rounding may do.
///
/// Every pair force is added to both atoms with opposite signs, so only the rounding of sums changes the total: a random walk of
/// one step for each atom and time step. A hundred times its length is never reached by it.
pub(crate) fn momentum(
    (first, measured): (&Measured, &Measured),
    (atoms, heaviest): (usize, f64),
    steps: u64,
) -> Result<(), String> {
    let change = (0..3).map(|d| (measured.momentum[d] - first.momentum[d]).powi(2)).sum::<f64>().sqrt();
    // Of one atom; a force of 1 in a time of 1 makes 1.
    let usual = (2.0 * heaviest * first.kinetic_energy.max(measured.kinetic_energy) / atoms as f64).sqrt().max(1.0);
    let limit = 100.0 * f64::EPSILON * usual * (atoms as f64 * (steps + 1) as f64).sqrt();
    if change <= limit {
        return Ok(());
    }
    Err(format!("the momentum has changed by {change:.3e}; rounding allows {limit:.1e}"))
}

/// A run whose total energy has changed by a tenth of the energies at its start follows no potential any more.
pub(crate) fn sane(first: &Row, row: &Row) -> Result<(), String> {
    let change = (row.conserved_energy - first.conserved_energy).abs();
    if change <= 0.1 * (first.potential_energy.abs() + first.kinetic_energy) {
        return Ok(());
    }
    let (before, after) = (first.conserved_energy, row.conserved_energy);
    Err(format!(
        "the energy that is conserved has gone from {before:.6e} to {after:.6e} at step {}: the time step is too long",
        row.step
    ))
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

    #[test]
    fn what_is_not_a_number_fails() {
        let still = Measured { kinetic_energy: 1.0, ..Measured::default() };
        assert!(momentum((&still, &Measured { momentum: [f64::NAN, 0.0, 0.0], ..still }), (10, 1.0), 1).is_err());
        assert!(momentum((&still, &Measured { momentum: [1e-12, 0.0, 0.0], ..still }), (10, 1.0), 1).is_err());
        assert!(momentum((&still, &Measured { momentum: [1e-14, 0.0, 0.0], ..still }), (10, 1.0), 1).is_ok());
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
