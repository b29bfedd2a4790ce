//! The picture of what is checked.

use std::path::Path;

use program::plot::{self, Series};

use crate::case::{self, Case, Kind};
use crate::closed_forms::{plates_speed, vortex_decay};
use crate::comparison::Course;
use crate::experiments::{Curve, Experiment, Quantity};
use crate::observation::Observation;
use crate::output::reduced;
use crate::report::Report;

/// Draws what was computed as lines and what it should be as dots.
///
/// # Errors
/// One line that names the file.
pub(crate) fn draw<const D: usize>(file: &Path, report: &Report, case: &Case<D>, course: &Course) -> Result<(), String> {
    let over_time = |value: &dyn Fn(&Observation) -> f64| report.history.iter().map(|seen| (seen.time, value(seen))).collect();
    let line = |name, points| Series { name, points, dots: false };
    let dots = |name, points| Series { name, points, dots: true };
    let (title, axes, series) = match case.kind {
        Kind::DamBreak => return dam(file, report, case, course),
        Kind::TaylorGreen => {
            let exact = over_time(&|seen| vortex_decay(case.laminar(), case.column_width(), seen.time));
            let computed = over_time(&|seen| (2.0 * seen.square_speed).sqrt());
            ("Decay of the vortices", ("t / s", "speed / m/s"), vec![dots("exact", exact), line("SPH", computed)])
        }
        Kind::Hydrostatic => {
            let error = line("largest", over_time(&|seen| seen.error));
            ("Column at rest", ("t / s", "relative error of the pressure"), vec![error])
        }
        Kind::Poiseuille => {
            let gap = case.column_height();
            let speed = |time| plates_speed(case::PLATES_FORCE, case::PLATES_VISCOSITY, gap, 0.5 * gap, time);
            let exact = dots("exact", over_time(&|seen| speed(seen.time)));
            let computed = line("SPH", over_time(&|seen| seen.fastest));
            ("Speed between the plates", ("t / s", "highest speed / m/s"), vec![exact, computed])
        }
    };
    plot::draw(file, title, axes, &series)
}

/// The fronts; where none was measured, the levels; where there are none, the pressures.
fn dam<const D: usize>(file: &Path, report: &Report, case: &Case<D>, course: &Course) -> Result<(), String> {
    let Some(experiment) = report.experiment else {
        let front: Curve = course.times.iter().zip(&course.front).map(|(&time, &front)| reduced(case, time, front)).collect();
        let series = [Series { name: "SPH", points: front, dots: false }];
        return plot::draw(file, "Front of the dam break", ("t √(2g/a)", "Z = x/a"), &series);
    };
    let order = |quantity| match quantity {
        Quantity::Front => 0,
        Quantity::Level(_) => 1,
        Quantity::Pressure(_) => 2,
    };
    let first = experiment.records.iter().map(|record| order(record.quantity)).min().unwrap_or(0);
    let records: Vec<_> = experiment.records.iter().filter(|record| order(record.quantity) == first).collect();
    let unit = records.first().map_or("t", |record| record.unit.symbol());
    let (title, value) = [("Front", "Z = x/a"), ("Water level", "h/H"), ("Pressure", "p/(ρgH)")][first];
    let mut curves: Vec<(String, Curve, bool)> = Vec::new();
    for record in &records {
        // A run whose clock was moved is drawn with its own; the measured points move.
        let shift =
            report.verdict.findings.iter().find(|finding| finding.record == Some(record.note)).and_then(|finding| finding.shift);
        let measured = record.curve().into_iter().map(|(time, value)| (time - shift.unwrap_or(0.0), value)).collect();
        curves.push((name(case, experiment, record.quantity, record.note), measured, true));
        if first > 0 || curves.len() == 1 {
            let own = if first == 0 { "SPH".to_owned() } else { name(case, experiment, record.quantity, "") };
            curves.push((own, course.curve(case, experiment, record), false));
        }
    }
    let series: Vec<_> = curves.iter().map(|(name, points, dots)| Series { name, points: points.clone(), dots: *dots }).collect();
    let title = format!("{title}: dots {}, lines SPH", experiment.name);
    plot::draw(file, &title, (unit, value), &series)
}

fn name<const D: usize>(case: &Case<D>, experiment: &Experiment, quantity: Quantity, note: &str) -> String {
    let scale = case.column_height() / experiment.column[1];
    match quantity {
        Quantity::Front if note.is_empty() => "measured".to_owned(),
        Quantity::Front => note.to_owned(),
        Quantity::Level(gauge) => format!("x = {:.3} m", scale * experiment.gauges[gauge]),
        Quantity::Pressure(probe) => format!("y = {:.3} m", scale * experiment.probes[probe].0),
    }
}
