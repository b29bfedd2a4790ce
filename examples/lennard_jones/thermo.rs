//! Thermodynamic quantities of one step, and rows of them as CSV.
//!
//! In reduced units, Boltzmann's constant 1, for N atoms in volume V:
//!
//! T = 2 K / (3 N − 3), K = Σ m v²/2, because the momentum of all atoms is fixed;  P = (2 K + W) / (3 V) + P_tail;  E = U + U_tail + K
//!
//! with K the kinetic energy, U the potential energy of the pairs within the cut-off, W = Σ_{i<j} r·F their virial.

use global_arrays::Error;
use serde_json::{Map, Value, json};

use crate::potential::Potential;
use crate::simulation::Measured;

/// One row; sums over all atoms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) step: u64,
    pub(crate) time: f64,
    pub(crate) atoms: usize,
    pub(crate) temperature: f64,
    pub(crate) potential_energy: f64,
    pub(crate) tail_energy: f64,
    pub(crate) kinetic_energy: f64,
    pub(crate) total_energy: f64,
    /// The total energy less what a thermostat has added.
    pub(crate) conserved_energy: f64,
    pub(crate) virial: f64,
    pub(crate) pressure: f64,
    pub(crate) momentum: [f64; 3],
}

impl Row {
    /// The row of what was measured at a step, with so many atoms of each kind; `heat` is what a thermostat has added so far.
    pub(crate) fn new(
        (step, time): (u64, f64),
        measured: &Measured,
        heat: f64,
        counts: &[usize],
        volume: f64,
        potential: &Potential,
    ) -> Self {
        let atoms = counts.iter().sum::<usize>();
        let Measured { potential_energy, virial, kinetic_energy, momentum } = *measured;
        let (tail_energy, tail_pressure) = potential.tail(counts, volume);
        // A single atom has momentum only, and it was made zero.
        let freedoms = (3 * atoms - 3).max(1) as f64;
        let total_energy = potential_energy + tail_energy + kinetic_energy;
        Row {
            step,
            time,
            atoms,
            temperature: 2.0 * kinetic_energy / freedoms,
            potential_energy,
            tail_energy,
            kinetic_energy,
            total_energy,
            conserved_energy: total_energy - heat,
            virial,
            pressure: (2.0 * kinetic_energy + virial) / (3.0 * volume) + tail_pressure,
            momentum,
        }
    }

    /// The quantities that are sums over atoms, with their names.
    fn sums(&self) -> [(&'static str, f64); 6] {
        [
            ("potential_energy", self.potential_energy),
            ("tail_energy", self.tail_energy),
            ("kinetic_energy", self.kinetic_energy),
            ("total_energy", self.total_energy),
            ("conserved_energy", self.conserved_energy),
            ("virial", self.virial),
        ]
    }

    /// Potential energy with the tail.
    pub(crate) fn configurational_energy(&self) -> f64 {
        self.potential_energy + self.tail_energy
    }

    /// Puts the quantities under their names: totals, and for each atom.
    pub(crate) fn report(&self, json: &mut Map<String, Value>) {
        json.insert("temperature".into(), json!(self.temperature));
        json.insert("pressure".into(), json!(self.pressure));
        for (name, sum) in self.sums() {
            json.insert(name.into(), json!(sum));
            json.insert(format!("{name}_per_atom"), json!(sum / self.atoms as f64));
        }
    }

    /// The names of a row's columns.
    pub(crate) fn header(&self) -> Result<Vec<u8>, Error> {
        let sums = self.sums().map(|(name, _)| format!("{name}_per_atom"));
        let names = ["step", "time", "temperature", "pressure"].map(str::to_owned);
        line(names.into_iter().chain(sums).chain(["momentum_x", "momentum_y", "momentum_z"].map(str::to_owned)))
    }

    /// The row as a line of CSV.
    pub(crate) fn line(&self) -> Result<Vec<u8>, Error> {
        let sums = self.sums().map(|(_, sum)| sum / self.atoms as f64);
        let numbers = [self.time, self.temperature, self.pressure].into_iter().chain(sums).chain(self.momentum);
        line(std::iter::once(self.step.to_string()).chain(numbers.map(|x| format!("{x:?}"))))
    }
}

/// A line of CSV.
pub(crate) fn line(words: impl Iterator<Item = String>) -> Result<Vec<u8>, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(words.collect::<Vec<_>>()).map_err(Error::other)?;
    writer.into_inner().map_err(|e| Error::other(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::potential::Ending;

    #[test]
    fn definitions_by_hand() {
        let measured = Measured { potential_energy: -8.0, virial: -3.0, kinetic_energy: 6.0, momentum: [0.0; 3] };
        let row = Row::new((2, 1.0), &measured, 0.5, &[3], 10.0, &Potential::new(Ending::Truncated, 1, |_, _| (1.0, 1.0, 2.5)));
        assert_eq!((row.time, row.temperature, row.total_energy, row.pressure), (1.0, 2.0, -2.0, 0.3));
        assert_eq!(row.conserved_energy, -2.5);
        let header = String::from_utf8(row.header().unwrap()).unwrap();
        let line = String::from_utf8(row.line().unwrap()).unwrap();
        assert_eq!(header.split(',').count(), line.split(',').count());
        assert!(line.starts_with("2,1.0,2.0,0.3,"));
    }
}
