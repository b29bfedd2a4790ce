//! A run beside the experiment that it repeats.
//!
//! * Fronts: the root mean square of Z/Z_measured − 1. When the columns began to move is not known, so the run's clock is moved until both
//!   fronts agree where Z = [`MEETING`]. The report shows the shift.
//! * Levels: the root mean square of (h − h_measured)/H, and when the water came to gauges on the dry bed.
//! * Pressures: the mean from the impact on, until record or run ends.

use crate::case::{Case, GRAVITY};
use crate::experiments::{Curve, Experiment, Quantity, Record};

/// Where fronts meet that have no common beginning.
const MEETING: f64 = 1.44;

/// Largest root mean square of fronts and levels, and largest error of an arrival.
const NEAR: f64 = 0.06;

/// Largest error of a mean pressure.
const LOADS: f64 = 0.15;

/// Water is there when it is as high as this, over the column's height.
const WET: f64 = 0.02;

/// Water has hit a probe when the pressure is above this, over ρgH.
const HIT: f64 = 0.2;

/// What was found of one quantity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    /// In words.
    pub(crate) what: String,
    /// A root mean square, or a relative deviation with its sign.
    pub(crate) deviation: f64,
    /// Whether the sign means something.
    pub(crate) signed: bool,
    /// What its magnitude should not exceed; none if it is not judged.
    pub(crate) limit: Option<f64>,
    /// By what times of the run were moved, in the record's unit.
    pub(crate) shift: Option<f64>,
    /// The note of the record that it is of, of fronts.
    pub(crate) record: Option<&'static str>,
}

impl Finding {
    fn new(what: String, deviation: f64, limit: Option<f64>) -> Self {
        Finding { what, deviation, signed: false, limit, shift: None, record: None }
    }

    /// Whether it is judged and too far.
    pub(crate) fn failed(&self) -> bool {
        // What is no number fails.
        self.limit.is_some_and(|limit| self.deviation.is_nan() || self.deviation.abs() > limit)
    }
}

/// What a run saw: at each time the front, and what each instrument read.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Course {
    /// In seconds.
    pub(crate) times: Vec<f64>,
    /// In meters.
    pub(crate) front: Vec<f64>,
    /// For each time, levels in meters, then pressures in pascals; those of the experiment before others.
    pub(crate) readings: Vec<Vec<f64>>,
}

impl Course {
    /// Adds what was seen at a time.
    pub(crate) fn add(&mut self, time: f64, front: f64, readings: Vec<f64>) {
        self.times.push(time);
        self.front.push(front);
        self.readings.push(readings);
    }

    /// What a record is of, as the run saw it, in the record's units.
    pub(crate) fn curve<const D: usize>(&self, case: &Case<D>, experiment: &Experiment, record: &Record) -> Curve {
        let (width, height) = (case.column_width(), case.column_height());
        let value = |k: usize| match record.quantity {
            Quantity::Front => self.front[k] / width,
            Quantity::Level(gauge) => self.readings[k][gauge] / height,
            Quantity::Pressure(probe) => {
                self.readings[k][experiment.gauges.len() + probe] / (case.fluid.density * GRAVITY * height)
            }
        };
        let seconds = record.unit.seconds(case);
        let curve = (0..self.times.len()).map(|k| (self.times[k] / seconds, value(k)));
        // A few spacings early: what meets the wall is no front any more.
        let end = case.length(0) - 5.0 * case.fluid.spacing;
        let running = |k: &usize| record.quantity != Quantity::Front || self.front[*k] < end || !self.front[*k].is_finite();
        let last = (0..self.times.len()).take_while(running).count();
        curve.take(last).collect()
    }
}

/// What was found, and whether the run went far enough for a verdict.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    pub(crate) findings: Vec<Finding>,
    /// Whether each record that is judged was compared at most of its times.
    pub(crate) whole: bool,
}

/// Compares a run with the experiment that it repeats, as far as it went.
pub(crate) fn compare<const D: usize>(case: &Case<D>, experiment: &Experiment, course: &Course) -> Verdict {
    let judged = |limit: f64| experiment.doubt.is_none().then_some(limit);
    let mut verdict = Verdict { findings: Vec::new(), whole: experiment.doubt.is_none() };
    if let Some(expected) = experiment.at_wall {
        let unit = (case.column_height() / GRAVITY).sqrt();
        let there = |&front: &f64| !front.is_finite() || front >= case.length(0) - case.fluid.spacing;
        let arrival = course.front.iter().position(there).map(|k| course.times[k] / unit);
        let end = course.times.last().map_or(0.0, |end| end / unit);
        verdict.findings.extend(arrived("front at the far wall", arrival, expected, end, judged(NEAR)));
    }
    let (mut computed_load, mut measured_load) = (0.0, 0.0);
    let scale = case.column_height() / experiment.column[1];
    for record in experiment.records {
        let (computed, measured) = (course.curve(case, experiment, record), record.curve());
        match record.quantity {
            Quantity::Front => verdict.front(record, &computed, &measured, judged(NEAR)),
            Quantity::Level(gauge) => {
                let place = format!("at {:.3} m", scale * experiment.gauges[gauge]);
                verdict.level(&place, record, &computed, &measured, judged(NEAR));
            }
            Quantity::Pressure(probe) => {
                let place = format!("at {:.3} m", scale * experiment.probes[probe].0);
                if let Some([there, expected]) = verdict.pressure(&place, &computed, &measured) {
                    computed_load += record.weight * there;
                    measured_load += record.weight * expected;
                }
            }
        }
    }
    if measured_load > 0.0 {
        let what = "mean pressure between the lowest and the highest probe";
        let deviation = computed_load / measured_load - 1.0;
        verdict.findings.push(Finding { signed: true, ..Finding::new(what.into(), deviation, judged(LOADS)) });
    }
    verdict
}

/// Out of the times of a record, how many a run must have been compared at for a verdict.
const MOST: f64 = 0.8;

/// Largest shift in time of a front that has no common beginning with the measured one, in the record's unit. A column falls by a tenth in
/// that time.
const LATEST: f64 = 0.5;

impl Verdict {
    /// The root mean square of a front's error.
    fn front(&mut self, record: &Record, computed: &Curve, measured: &Curve, limit: Option<f64>) {
        let (Some(expected), Some(met)) = (first_above(measured, MEETING), first_above(computed, MEETING)) else {
            self.whole = false;
            return;
        };
        let shift = expected - met;
        // Where they meet they agree.
        let others = measured.iter().filter(|point| (point.0 - expected).abs() > 1e-3);
        let errors: Vec<f64> = others.filter_map(|&(time, z)| Some(value_at(computed, time - shift)? / z - 1.0)).collect();
        self.whole &= errors.len() as f64 >= MOST * (measured.len() - 1) as f64;
        let what = if record.note.is_empty() { "front".to_owned() } else { format!("front, {}", record.note) };
        if errors.len() > 1 {
            let deviation = if shift.abs() > LATEST { f64::INFINITY } else { root_mean_square(&errors) };
            let found = Finding::new(what, deviation, limit);
            self.findings.push(Finding { shift: Some(shift), record: Some(record.note), ..found });
        }
    }

    /// The root mean square of a level's error, as long as it is judged and in all; when the water came.
    fn level(&mut self, place: &str, record: &Record, computed: &Curve, measured: &Curve, limit: Option<f64>) {
        let errors = |until: f64| -> Vec<f64> {
            let before = measured.iter().filter(|point| point.0 <= until);
            before.filter_map(|&(time, h)| Some(value_at(computed, time)? - h)).collect()
        };
        let early = errors(record.until);
        let all_early = measured.iter().filter(|point| point.0 <= record.until).count();
        self.whole &= early.len() as f64 >= MOST * all_early as f64;
        if early.len() > 1 {
            self.findings.push(Finding::new(format!("level {place}"), root_mean_square(&early), limit));
        }
        let all = errors(f64::INFINITY);
        if all.len() > early.len() {
            let what = format!("level {place}, after the wave is back too");
            self.findings.push(Finding::new(what, root_mean_square(&all), None));
        }
        if let (true, Some(expected)) = (measured[0].1 < WET, first_above(measured, WET)) {
            let end = computed.last().map_or(0.0, |point| point.0);
            self.findings.extend(arrived(&format!("water {place}"), first_above(computed, WET), expected, end, limit));
        }
    }

    /// The means of a pressure, computed and measured, after the impact. Single probes are not judged.
    fn pressure(&mut self, place: &str, computed: &Curve, measured: &Curve) -> Option<[f64; 2]> {
        let expected = first_above(measured, HIT)?;
        let end = computed.last()?.0.min(measured.last()?.0);
        // As long as it takes to come from the column: before, an impact is not over.
        if end < 1.5 * expected {
            self.whole = false;
            return None;
        }
        let hit = first_above(computed, HIT);
        self.findings.extend(arrived(&format!("impact {place}"), hit, expected, end, None));
        let start = hit.unwrap_or(expected).max(expected).min(end);
        // A probe that nothing hits has no pressure.
        let means = [hit.map_or(Some(0.0), |_| mean(computed, start, end))?, mean(measured, start, end)?];
        let deviation = means[0] / means[1] - 1.0;
        self.findings.push(Finding { signed: true, ..Finding::new(format!("mean pressure {place}"), deviation, None) });
        Some(means)
    }
}

/// How late something was, up to the end of a run. What did not come in time for its limit will not.
fn arrived(what: &str, time: Option<f64>, expected: f64, end: f64, limit: Option<f64>) -> Option<Finding> {
    match time {
        Some(time) => Some(Finding { signed: true, ..Finding::new(what.into(), time / expected - 1.0, limit) }),
        None if end > expected * (1.0 + NEAR) => {
            Some(Finding { signed: true, ..Finding::new(what.into(), f64::INFINITY, limit) })
        }
        None => None,
    }
}

fn root_mean_square(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

/// When a curve first reaches a value, linear between its points.
fn first_above(curve: &Curve, value: f64) -> Option<f64> {
    let after = curve.iter().position(|point| point.1 >= value)?;
    let (t1, y1) = curve[after];
    let Some(&(t0, y0)) = after.checked_sub(1).and_then(|before| curve.get(before)) else { return Some(t1) };
    Some(t0 + (t1 - t0) * (value - y0) / (y1 - y0))
}

/// The value at a time inside the curve, linear between its points.
fn value_at(curve: &Curve, time: f64) -> Option<f64> {
    let after = curve.partition_point(|point| point.0 < time);
    let &(t1, z1) = curve.get(after)?;
    if t1 == time {
        return Some(z1);
    }
    let &(t0, z0) = curve.get(after.checked_sub(1)?)?;
    Some(z0 + (z1 - z0) * (time - t0) / (t1 - t0))
}

/// The mean of a curve between two times inside it, linear between its points.
fn mean(curve: &Curve, start: f64, end: f64) -> Option<f64> {
    let inner = curve.iter().copied().filter(|point| start < point.0 && point.0 < end);
    let points: Curve =
        [(start, value_at(curve, start)?)].into_iter().chain(inner).chain([(end, value_at(curve, end)?)]).collect();
    let area: f64 = points.windows(2).map(|pair| 0.5 * (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1)).sum();
    Some(area / (end - start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Column, Kind, Water};
    use crate::experiments::Name;

    /// A run that saw what was measured, times something, with another clock.
    fn course(name: Name, by: impl Fn(f64) -> f64, late: f64) -> (Case<2>, Course) {
        let experiment = name.experiment();
        let column = Column {
            extent: experiment.column,
            tank: [experiment.tank, 3.0 * experiment.column[1]],
            gate: experiment.gate.speed(),
            obstacles: Vec::new(),
        };
        let case = Case::column(Kind::DamBreak, experiment.column[1] / 40.0, column, Water::default());
        let times: Vec<f64> = (0..4000).map(|k| experiment.end * f64::from(k) / 4000.0).collect();
        let mut course = Course { readings: vec![Vec::new(); times.len()], ..Course::default() };
        let of = |quantity: Quantity, time: f64, scale: f64| {
            let record = experiment.records.iter().find(|record| record.quantity == quantity).unwrap();
            let (curve, at) = (record.curve(), (time + late) / record.unit.seconds(&case));
            let known = value_at(&curve, at.clamp(curve[0].0, curve[curve.len() - 1].0)).unwrap();
            scale * by(at) * known
        };
        let (width, height) = (case.column_width(), case.column_height());
        for (time, readings) in times.iter().zip(&mut course.readings) {
            let has_front = experiment.records.iter().any(|record| record.quantity == Quantity::Front);
            // Where no front was measured, one that reaches the wall when it was seen there.
            let arrival = experiment.at_wall.map_or(f64::INFINITY, |at| at * (height / GRAVITY).sqrt());
            let there = if by(1.0) > 0.0 && *time + late >= arrival { case.length(0) } else { 0.0 };
            course.front.push(if has_front { of(Quantity::Front, *time, width) } else { there });
            readings.extend((0..experiment.gauges.len()).map(|gauge| of(Quantity::Level(gauge), *time, height)));
            let pressure = case.fluid.density * GRAVITY * height;
            readings.extend((0..experiment.probes.len()).map(|probe| of(Quantity::Pressure(probe), *time, pressure)));
        }
        course.times = times;
        (case, course)
    }

    fn findings(name: Name, by: impl Fn(f64) -> f64, late: f64) -> Vec<Finding> {
        let (case, course) = course(name, by, late);
        compare(&case, name.experiment(), &course).findings
    }

    fn failed(findings: &[Finding]) -> Vec<&str> {
        findings.iter().filter(|finding| finding.failed()).map(|finding| finding.what.as_str()).collect()
    }

    #[test]
    fn experiments_agree_with_themselves() {
        for name in [Name::MartinMoyce, Name::MartinMoyceSquare, Name::KoshizukaOka, Name::Lobovsky] {
            let found = findings(name, |_| 1.0, 0.0);
            // The record of the smaller column is another one.
            let own: Vec<_> = found.into_iter().filter(|finding| !finding.what.contains('⅛')).collect();
            assert!(own.iter().any(|finding| finding.limit.is_some()) && failed(&own).is_empty(), "{name:?} {own:?}");
            assert!(own.iter().all(|finding| finding.deviation.abs() < 1e-2), "{name:?} {own:?}");
        }
    }

    #[test]
    fn clocks_of_fronts_do_not_matter() {
        let found = findings(Name::MartinMoyceSquare, |_| 1.0, 0.01);
        approx::assert_relative_eq!(found[0].shift.unwrap(), 0.01 * (9.81_f64 / 0.05715).sqrt(), max_relative = 1e-2);
        assert!(found[0].deviation < 1e-3 && !found[0].failed());
    }

    #[test]
    fn what_is_off_fails() {
        assert_eq!(failed(&findings(Name::MartinMoyceSquare, |t| 1.0 + 0.15 * t, 0.0)), ["front"]);
        let load = "mean pressure between the lowest and the highest probe";
        assert!(failed(&findings(Name::Lobovsky, |_| 1.2, 0.0)).contains(&load));
        assert!(failed(&findings(Name::Lobovsky, |_| 0.8, 0.0)).contains(&load));
        // A clock that is off by more than a column needs to fall.
        assert_eq!(failed(&findings(Name::MartinMoyceSquare, |_| 1.0, 0.05)), ["front"]);
        // Water that never comes.
        let dry = findings(Name::Lobovsky, |_| 0.0, 0.0);
        for what in ["water at 0.865 m", "front at the far wall", load] {
            assert!(failed(&dry).contains(&what), "{what} {dry:?}");
        }
        let late = findings(Name::Lobovsky, |_| 1.0, -0.03);
        assert!(failed(&late).contains(&"water at 0.865 m"), "{late:?}");
        let high = findings(Name::Lobovsky, |_| 1.3, 0.0);
        assert!(failed(&high).contains(&"level at 0.300 m"), "{high:?}");
        assert!(failed(&high).contains(&"mean pressure between the lowest and the highest probe"), "{high:?}");
        for nowhere in [f64::NAN, f64::INFINITY] {
            assert_eq!(failed(&findings(Name::MartinMoyceSquare, |t| if t > 1.5 { nowhere } else { 1.0 }, 0.0)), ["front"]);
        }
    }

    #[test]
    fn short_runs_have_no_verdict() {
        let (case, whole) = course(Name::Lobovsky, |_| 1.0, 0.0);
        assert!(compare(&case, Name::Lobovsky.experiment(), &whole).whole);
        let mut short = whole;
        for length in [3000, 400] {
            short.times.truncate(length);
            short.front.truncate(length);
            short.readings.truncate(length);
            let verdict = compare(&case, Name::Lobovsky.experiment(), &short);
            assert_eq!(verdict.whole, length == 3000);
            assert!(!verdict.findings.is_empty() && failed(&verdict.findings).is_empty(), "{verdict:?}");
        }
    }

    #[test]
    fn doubtful_experiments_are_not_judged() {
        let (case, course) = course(Name::Lobovsky, |_| 1.3, 0.0);
        let judged = compare(&case, Name::Lobovsky.experiment(), &course);
        assert!(judged.whole && !failed(&judged.findings).is_empty(), "{judged:?}");
        let doubtful = Experiment { doubt: Some("nobody believes it"), ..*Name::Lobovsky.experiment() };
        let shown = compare(&case, &doubtful, &course);
        assert!(!shown.whole && failed(&shown.findings).is_empty(), "{shown:?}");
        assert_eq!(shown.findings.len(), judged.findings.len());
    }
}
