//! LAMMPS: which scripts run on how many ranks, and what its log says: how long the steps took, and quantities by which a broken
//! run is known.

use super::results::Figure;

/// Total energy for each atom of the melt at step 0, published with LAMMPS's benchmarks to seven decimals.
const MELT_ENERGY: f64 = -4.613_435_6;
const MELT_ROUNDING: f64 = 1e-7;
/// The energy moves by 0.009 while the lattice melts, because atoms cross the cut-off where the potential jumps; then no more.
const MELT_DRIFT: f64 = 0.02;
/// Particles of water in the dam break.
const WATER: f64 = 100_352.0;
/// Densities of nearly incompressible water, kg/m³.
const DENSITIES: std::ops::RangeInclusive<f64> = 990.0..=1010.0;
/// Kinetic energy over the potential energy lost: what is missing is sound and viscosity.
const KEPT: std::ops::RangeInclusive<f64> = 0.9..=1.02;

/// One start.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// In the folder of the peers.
    pub script: &'static str,
    pub ranks: &'static str,
    /// Time steps, and with `--quick`.
    pub steps: [&'static str; 2],
    op: &'static str,
    shape: &'static str,
    rate: fn(&Log) -> Result<f64, String>,
}

/// Steps a second of 32,000 Lennard-Jones atoms.
pub static MELT: &[Run] = &[
    Run { script: "melt.lammps", ranks: "1", steps: ["300", "100"], op: "lennard_jones", shape: "32000 1 rank", rate: melt },
    Run { script: "melt.lammps", ranks: "2", steps: ["300", "100"], op: "lennard_jones", shape: "32000 2 ranks", rate: melt },
];

/// Millions of steps of particles a second in a dam break; the walls' particles do not count.
pub static DAM_BREAK: &[Run] = &[
    Run { script: "dam_break.lammps", ranks: "1", steps: ["200", "60"], op: "sph", shape: "1e5 1 rank", rate: dam_break },
    Run { script: "dam_break.lammps", ranks: "2", steps: ["200", "60"], op: "sph", shape: "1e5 2 ranks", rate: dam_break },
];

impl Run {
    /// The figure of a log that shows a sound run.
    pub fn figure(&self, log: &str) -> Result<Figure, String> {
        let wrong = |why: String| format!("LAMMPS, {} on {} ranks: {why}", self.script, self.ranks);
        let log = Log::read(log).ok_or_else(|| wrong("its log ends before the steps do".to_owned()))?;
        let value = (self.rate)(&log).map_err(wrong)?;
        Ok(Figure { op: self.op.to_owned(), shape: self.shape.to_owned(), value })
    }
}

/// The parts of a log that are read.
#[derive(Debug)]
struct Log {
    /// Rows of thermodynamic quantities, in the order of the script's `thermo_style`.
    rows: Vec<Vec<f64>>,
    seconds: f64,
    steps: f64,
}

impl Log {
    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip_while(|line| line.split_ascii_whitespace().next() != Some("Step"));
        let columns = lines.next()?.split_ascii_whitespace().count();
        let mut rows = Vec::new();
        for line in lines {
            if let Some(rest) = line.strip_prefix("Loop time of ") {
                let words: Vec<&str> = rest.split_ascii_whitespace().collect();
                let after = |word: &str| words.iter().position(|w| *w == word).and_then(|at| words.get(at + 1)?.parse().ok());
                let (seconds, steps): (f64, f64) = (words.first()?.parse().ok()?, after("for")?);
                return (rows.len() > 1 && seconds > 0.0).then_some(Log { rows, seconds, steps });
            }
            // Warnings may stand between the rows.
            let row: Option<Vec<f64>> = line.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
            rows.extend(row.filter(|row| row.len() == columns));
        }
        None
    }

    fn ends(&self) -> (&[f64], &[f64]) {
        (&self.rows[0], &self.rows[self.rows.len() - 1])
    }
}

/// step temp pe etotal press
fn melt(log: &Log) -> Result<f64, String> {
    let ([_, _, _, first, _], [_, _, _, last, _]) = log.ends() else { return Err("not the columns of the script".to_owned()) };
    let sound = (first - MELT_ENERGY).abs() <= MELT_ROUNDING && (last - first).abs() <= MELT_DRIFT;
    if !sound {
        return Err(format!("total energy {first} at first instead of {MELT_ENERGY}, {last} at last"));
    }
    Ok(log.steps / log.seconds)
}

/// step water kinetic potential least-density most-density
fn dam_break(log: &Log) -> Result<f64, String> {
    let ([_, water, kinetic, potential, ..], [_, _, moving, left, least, most]) = log.ends() else {
        return Err("not the columns of the script".to_owned());
    };
    let kept = (moving - kinetic) / (potential - left);
    if *water != WATER || !DENSITIES.contains(least) || !DENSITIES.contains(most) || !KEPT.contains(&kept) {
        return Err(format!("{water} particles, densities {least} to {most}, {kept} of the lost potential energy is kinetic"));
    }
    Ok(water * log.steps / log.seconds * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MELTED: &str = "\
Step Temp PotEng TotEng Press
       0 1.44 -6.77336805 -4.61343555 -5.01970726
WARNING: something
     100 0.757459983 -5.75849978 -4.62234531 0.207299964
Loop time of 2.5 on 1 procs for 300 steps with 32000 atoms
";
    const BROKEN: &str = "\
   Step     v_water      c_kinetic      f_gravity       c_least         c_most
         0     100352  0 19620 1000 1000
        60     100352  0.116453734 19619.8821 999.982536 1000.17673
Loop time of 0.5 on 2 procs for 60 steps with 108434 atoms
";

    #[test]
    fn rates_are_read_and_energies_minded() {
        let value = |run: &Run, log: &str| run.figure(log).map(|figure| figure.value);
        assert_eq!(value(&MELT[0], MELTED), Ok(120.0));
        assert_eq!(value(&DAM_BREAK[1], BROKEN), Ok(100_352.0 * 60.0 / 0.5 * 1e-6));
        assert!(value(&MELT[0], &MELTED.replace("-4.61343555", "-4.61343655")).is_err());
        assert!(value(&MELT[0], &MELTED.replace("-4.62234531", "nan")).is_err());
        assert!(value(&MELT[0], &MELTED.replace("Loop", "Poor")).is_err());
        assert!(value(&MELT[0], BROKEN).is_err());
        assert!(value(&DAM_BREAK[1], &BROKEN.replace("999.982536", "556.7")).is_err());
        assert!(value(&DAM_BREAK[1], &BROKEN.replace("0.116453734", "0.3")).is_err());
        assert!(value(&DAM_BREAK[1], "").is_err());
    }
}
