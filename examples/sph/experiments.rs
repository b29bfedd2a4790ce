//! The dam breaks that were measured, and which of them a case repeats.
//!
//! Two dam breaks of one shape are one flow in lengths of the column and times of its fall, so an experiment is one of all columns and
//! tanks of its shape. What was measured is kept as a table of such times and values for each quantity.

use crate::case::{Case, GRAVITY, Kind};
use crate::instruments::{Instruments, Probe};

/// A table of times and values.
pub(crate) type Curve = Vec<(f64, f64)>;

/// What held a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Gate {
    /// Nothing that is modeled: the column is released at once.
    None,
    /// A gate that rose at this speed, in m/s.
    Rises(f64),
    /// A gate of unpublished speed: runs with any speed repeat the experiment. This speed, in m/s, is the default.
    Assumed(f64),
}

impl Gate {
    /// In m/s, if there is a gate.
    pub(crate) fn speed(self) -> Option<f64> {
        match self {
            Gate::None => None,
            Gate::Rises(speed) | Gate::Assumed(speed) => Some(speed),
        }
    }
}

/// An experiment, in meters and seconds.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// Authors and year.
    pub(crate) name: &'static str,
    /// Width and height of the column.
    pub(crate) column: [f64; 2],
    /// Length of the tank.
    pub(crate) tank: f64,
    /// Depth of the tank, if it is known.
    pub(crate) depth: Option<f64>,
    /// Whether longer tanks show the same: nothing was measured after the front came to the end.
    pub(crate) open: bool,
    pub(crate) gate: Gate,
    /// How long it was recorded.
    pub(crate) end: f64,
    /// x of the gauges.
    pub(crate) gauges: &'static [f64],
    /// Height above the bed and diameter of the probes on the far wall.
    pub(crate) probes: &'static [(f64, f64)],
    pub(crate) records: &'static [Record],
    /// When the front reached the far wall, in √(H/g).
    pub(crate) at_wall: Option<f64>,
    /// Why it is shown and not judged.
    pub(crate) doubt: Option<&'static str>,
}

/// What a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// x of the front, over the column's width.
    Front,
    /// Height of the water at a gauge of the experiment, over the column's.
    Level(usize),
    /// Pressure at a probe of the experiment, over ρgH.
    Pressure(usize),
}

/// What the times of a record are given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// √(a/2g), a the column's width.
    HalfWidth,
    /// √(a/g).
    Width,
    /// √(H/g), H the column's height.
    Height,
}

/// A measured quantity.
#[derive(Debug)]
pub(crate) struct Record {
    /// What tells it from other records of the same quantity.
    pub(crate) note: &'static str,
    pub(crate) quantity: Quantity,
    pub(crate) unit: Unit,
    text: &'static str,
    /// Up to when it is judged, in its unit.
    pub(crate) until: f64,
    /// Its share in the mean pressure of all probes.
    pub(crate) weight: f64,
}

const fn record(note: &'static str, quantity: Quantity, unit: Unit, text: &'static str) -> Record {
    Record { note, quantity, unit, text, until: f64::INFINITY, weight: 1.0 }
}

/// A level of Lobovský et al., until the wave from the wall is back at the gauge, in the experiment or in runs, whichever is earlier.
const fn level(gauge: usize, text: &'static str, until: f64) -> Record {
    Record { until, ..record("", Quantity::Level(gauge), Unit::Height, text) }
}

/// A pressure of Lobovský et al. with the part of the wall that it stands for, out of that between the lowest and the highest probe.
const fn pressure(probe: usize, text: &'static str, weight: f64) -> Record {
    Record { weight, ..record("", Quantity::Pressure(probe), Unit::Height, text) }
}

/// The experiments that there are tables of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Name {
    /// Martin & Moyce 1952: a column twice as high as wide on a long bed; front and height
    MartinMoyce,
    /// Martin & Moyce 1952: a square column; front
    MartinMoyceSquare,
    /// Koshizuka & Oka 1996: a column twice as high as wide in a short tank; front
    KoshizukaOka,
    /// Lobovský et al. 2014: a column twice as wide as high behind a gate; levels and pressures
    Lobovsky,
    /// Buchner 2002: a column twice as wide as high; pressure
    Buchner,
}

impl Name {
    const ALL: [Name; 5] = [Name::MartinMoyce, Name::MartinMoyceSquare, Name::KoshizukaOka, Name::Lobovsky, Name::Buchner];

    pub(crate) fn experiment(self) -> &'static Experiment {
        match self {
            Name::MartinMoyce => &MARTIN_MOYCE,
            Name::MartinMoyceSquare => &MARTIN_MOYCE_SQUARE,
            Name::KoshizukaOka => &KOSHIZUKA_OKA,
            Name::Lobovsky => &LOBOVSKY,
            Name::Buchner => &BUCHNER,
        }
    }
}

static MARTIN_MOYCE: Experiment = Experiment {
    name: "Martin & Moyce 1952, n² = 2",
    column: [0.05715, 0.1143],
    tank: 8.0 * 0.05715,
    depth: None,
    open: true,
    gate: Gate::None,
    end: 0.41,
    gauges: &[0.0],
    probes: &[],
    records: &[
        record("a = 2¼ in", Quantity::Front, Unit::HalfWidth, include_str!("data/martin_moyce_front.csv")),
        record("a = 1⅛ in", Quantity::Front, Unit::HalfWidth, include_str!("data/martin_moyce_small_front.csv")),
        record("", Quantity::Level(0), Unit::Width, include_str!("data/martin_moyce_height.csv")),
    ],
    at_wall: None,
    doubt: None,
};

static MARTIN_MOYCE_SQUARE: Experiment = Experiment {
    name: "Martin & Moyce 1952, n² = 1",
    column: [0.05715, 0.05715],
    tank: 8.0 * 0.05715,
    depth: None,
    open: true,
    gate: Gate::None,
    end: 0.17,
    gauges: &[],
    probes: &[],
    records: &[record("", Quantity::Front, Unit::Width, include_str!("data/martin_moyce_square_front.csv"))],
    at_wall: None,
    doubt: None,
};

static KOSHIZUKA_OKA: Experiment = Experiment {
    name: "Koshizuka & Oka 1996",
    column: [0.146, 0.292],
    tank: 0.584,
    depth: None,
    open: false,
    // As fast as that of Lobovský et al. in units of √(gH): 3.46 √(292/300).
    gate: Gate::Assumed(3.41),
    end: 0.3,
    gauges: &[],
    probes: &[],
    records: &[record("", Quantity::Front, Unit::HalfWidth, include_str!("data/koshizuka_oka.csv"))],
    at_wall: None,
    doubt: None,
};

static LOBOVSKY: Experiment = Experiment {
    name: "Lobovský et al. 2014, H = 300 mm",
    column: [0.6, 0.3],
    tank: 1.61,
    depth: Some(0.15),
    open: false,
    gate: Gate::Rises(3.46),
    end: 1.96,
    gauges: &[0.3, 0.865, 1.114, 1.3625],
    probes: &[(0.003, 0.0042), (0.03, 0.0042), (0.08, 0.0042)],
    records: &[
        level(0, include_str!("data/lobovsky_h1.csv"), 8.0),
        level(1, include_str!("data/lobovsky_h2.csv"), 6.7),
        level(2, include_str!("data/lobovsky_h3.csv"), 6.4),
        level(3, include_str!("data/lobovsky_h4.csv"), 5.6),
        pressure(0, include_str!("data/lobovsky_p3mm.csv"), 13.5 / 77.0),
        pressure(1, include_str!("data/lobovsky_p30mm.csv"), 38.5 / 77.0),
        pressure(2, include_str!("data/lobovsky_p80mm.csv"), 25.0 / 77.0),
    ],
    at_wall: Some(2.57),
    doubt: None,
};

const BUCHNER_P1: &str = include_str!("data/buchner_p1.csv");

static BUCHNER: Experiment = Experiment {
    name: "Buchner 2002",
    column: [1.2, 0.6],
    tank: 3.22,
    depth: None,
    open: false,
    gate: Gate::None,
    end: 1.8,
    gauges: &[],
    // The transducer covers 115 to 205 mm. At its lower edge others compare.
    probes: &[(0.16, 0.09), (0.115, 0.0)],
    records: &[pressure(0, BUCHNER_P1, 0.0), pressure(1, BUCHNER_P1, 0.0)],
    at_wall: None,
    doubt: Some("authors do not agree where on its transducer the pressure was measured"),
};

impl Experiment {
    /// The experiment that a case repeats, if there is one: of its shape, with its gate, and with friction, damping and sound as by default.
    pub(crate) fn of<const D: usize>(case: &Case<D>) -> Option<&'static Experiment> {
        let dam = case.kind == Kind::DamBreak && case.is_plain_water() && case.obstacles.is_empty();
        Name::ALL.into_iter().map(Name::experiment).find(|experiment| dam && experiment.is(case))
    }

    /// Whether a case has its shape, but for one particle, or a twentieth if that is less.
    fn is<const D: usize>(&self, case: &Case<D>) -> bool {
        let scale = case.column_height() / self.column[1];
        let spacing = case.fluid.spacing;
        let close = |length: f64, expected: f64| (length - scale * expected).abs() <= spacing.min(0.05 * scale * expected);
        let tank = case.length(0);
        // Speeds go with the root of lengths.
        let gate = match (case.gate, self.gate) {
            (Some(speed), Gate::Rises(expected)) => (speed - scale.sqrt() * expected).abs() <= 0.01 * speed,
            (Some(_), Gate::Assumed(_)) | (None, Gate::None) => true,
            _ => false,
        };
        let wide = close(case.column_width(), self.column[0]);
        gate && wide && (close(tank, self.tank) || self.open && tank >= scale * self.tank)
    }

    /// Its instruments, in a case of its shape.
    pub(crate) fn instruments<const D: usize>(&self, case: &Case<D>) -> Instruments<D> {
        let scale = case.column_height() / self.column[1];
        let probe = |&(height, diameter): &(f64, f64)| {
            // In space in the middle of the wall.
            let mut center = std::array::from_fn(|axis| 0.5 * case.length(axis));
            (center[0], center[1]) = (case.length(0), scale * height);
            Probe { center, diameter: scale * diameter }
        };
        Instruments { gauges: self.gauges.iter().map(|x| scale * x).collect(), probes: self.probes.iter().map(probe).collect() }
    }
}

impl Record {
    /// What was measured, in the record's units.
    pub(crate) fn curve(&self) -> Curve {
        rows(self.text, 2).iter().map(|row| (row[0], row[1])).collect()
    }
}

impl Unit {
    /// Seconds of one.
    pub(crate) fn seconds<const D: usize>(self, case: &Case<D>) -> f64 {
        match self {
            Unit::HalfWidth => (0.5 * case.column_width() / GRAVITY).sqrt(),
            Unit::Width => (case.column_width() / GRAVITY).sqrt(),
            Unit::Height => (case.column_height() / GRAVITY).sqrt(),
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Unit::HalfWidth => "t √(2g/a)",
            Unit::Width => "t √(g/a)",
            Unit::Height => "t √(g/H)",
        }
    }
}

/// The numbers of a table that is part of the program; lines that are none are its head.
pub(crate) fn rows(text: &str, columns: usize) -> Vec<Vec<f64>> {
    let numbers = |line: &str| line.split(',').map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>();
    text.lines().filter_map(numbers).filter(|row| row.len() == columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Column, Water};

    #[test]
    fn tables_are_whole() {
        for name in Name::ALL {
            for record in name.experiment().records {
                let curve = record.curve();
                let lines = record.text.lines().filter(|line| line.starts_with(|c: char| c == '-' || c.is_ascii_digit()));
                assert_eq!(curve.len(), lines.count(), "{name:?} {:?}", record.quantity);
                assert!(curve.is_sorted_by(|a, b| a.0 < b.0), "{name:?} {:?}", record.quantity);
            }
        }
    }

    #[test]
    fn experiments_are_known_by_their_shape() {
        let case = |scale: f64, column: [f64; 2], tank: f64, gate: Option<f64>, water: Water| {
            let extent = column.map(|length| scale * length);
            let tank = [scale * tank, 3.0 * extent[1]];
            let column = Column { extent, tank, gate, obstacles: Vec::new() };
            Case::column(Kind::DamBreak, extent[1] / 40.0, column, water)
        };
        let found = |case: &Case<2>| Experiment::of(case).map(|experiment| experiment.name);
        for name in Name::ALL {
            let &Experiment { column, tank, gate, .. } = name.experiment();
            for scale in [1.0_f64, 7.0] {
                let gate = gate.speed().map(|speed| scale.sqrt() * speed);
                assert_eq!(found(&case(scale, column, tank, gate, Water::default())), Some(name.experiment().name));
                let sticky = Water { friction: None, ..Water::default() };
                assert_eq!(found(&case(scale, column, tank, gate, sticky)), None);
            }
        }
        let plain = Water::default;
        assert_eq!(found(&case(1.0, [0.6, 0.3], 1.61, Some(1.0), plain())), None, "the gate is too slow");
        assert_eq!(found(&case(1.0, [0.6, 0.3], 1.61, None, plain())), Some("Buchner 2002"), "one shape, but for the gate");
        assert_eq!(found(&case(1.0, [0.6, 0.3], 1.9, None, plain())), None, "the tank is too long");
        assert_eq!(found(&case(1.0, [0.146, 0.292], 0.584, Some(1.0), plain())), Some("Koshizuka & Oka 1996"), "any gate");
        assert_eq!(found(&case(1.0, [0.146, 0.292], 0.584, None, plain())), None, "a gate is missing");
        assert_eq!(found(&case(1.0, [1.0, 2.0], 20.0, None, plain())), Some("Martin & Moyce 1952, n² = 2"));
        assert_eq!(found(&case(1.0, [1.0, 2.0], 6.0, None, plain())), None, "the tank is too short");
        assert_eq!(found(&case(1.0, [1.0, 1.5], 20.0, None, plain())), None);
    }
}
