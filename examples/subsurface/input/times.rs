//! The times of a problem file.

use super::file::TimeTable;
use super::source::{Number, Source};
use crate::cli::Arguments;
use crate::march::Schedule;

/// First step where none is asked for, as a part of the whole time.
const FIRST_PART: f64 = 1e-5;

/// How to cut time, and when to write frames. The command line overrides the file.
///
/// # Errors
/// A number that is not above 0; a time of output beyond the end; a first step out of bounds.
pub(crate) fn schedule(
    source: &Source,
    table: &TimeTable,
    changes: &[f64],
    arguments: &Arguments,
) -> Result<(Schedule, Vec<f64>), String> {
    let positive = |key, number: &Option<Number>| number.as_ref().map(|number| source.positive(key, number)).transpose();
    let given = source.positive("end", &table.end)?;
    let end = arguments.end_time.unwrap_or(given);
    let mut outputs = Vec::new();
    for time in &table.outputs {
        let needed = format!("a time above 0 and at most end = {given} is needed");
        outputs.push(source.check("outputs", time, &needed, |time| time > 0.0 && time <= given)?);
    }
    let until = |times: &[f64]| {
        let mut times: Vec<f64> = times.iter().copied().filter(|time| *time > 0.0 && *time < end).chain([end]).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        times
    };
    let longest_step = positive("longest_step", &table.longest_step)?.unwrap_or(f64::INFINITY);
    let shortest_step = arguments.shortest_step.or(positive("shortest_step", &table.shortest_step)?);
    let default = || (FIRST_PART * end).max(shortest_step.unwrap_or(0.0)).min(longest_step);
    let first_step = arguments.first_step.or(positive("first_step", &table.first_step)?).unwrap_or_else(default).min(end);
    let shortest_step = shortest_step.unwrap_or(arguments.shortest_step().min(1e-3 * first_step));
    if !(shortest_step <= first_step && first_step <= longest_step) {
        let steps = format!("shortest_step = {shortest_step}, first_step = {first_step}, longest_step = {longest_step}");
        return Err(source.whole(format!("time: {steps}: the first step has to be from the shortest to the longest")));
    }
    let schedule = Schedule {
        first_step,
        shortest_step,
        longest_step,
        accuracy: arguments.accuracy.or(positive("accuracy", &table.accuracy)?),
        times: until(&[&outputs, changes].concat()),
    };
    Ok((schedule, until(&outputs)))
}
