//! Zarr stores: a folder with groups and arrays, whose chunks are files.
//!
//! ```text
//! x.zarr/zarr.json                  attributes, and the metadata of all below once more
//! x.zarr/flow/zarr.json             a group
//! x.zarr/flow/pressure/zarr.json    shape, type, chunks, codecs, units, ...
//! x.zarr/flow/pressure/c/0/1        a chunk
//! x.zarr/flow/x/...                 the coordinates along an axis
//! x.zarr/time/...                   the time of each step
//! ```
//!
//! Version 3 is written; versions 2 and 3 are read. All calls here are those of one member; the elements are read and written by all, through
//! [`Placed`].
//!
//! A time step is there when its time is: its chunks are written first, then the shapes of the arrays grow, then that of `time`. What is
//! longer than `time` is from a step that was not finished.
//!
//! # Source
//! Zarr core specification 3.1; Zarr storage specification 2; coordinates as in the CF conventions and xarray.

mod attributes;
mod metadata;
mod new;
mod nodes;
mod steps;
#[cfg(test)]
mod tests;

use std::path::Path;

pub(super) use self::steps::{begin_step, end_step};
use self::{new::New, nodes::Node};
use super::{
    contents::Contents,
    kind::Kind,
    placed::Placed,
    variable::{Attributes, Compression, Variable},
    visit::Failure,
};

/// The array and the axis of time steps.
const TIME: &str = "time";
/// Steps of a store.
const MOST_STEPS: usize = 1 << 24;

/// Makes a folder with a group and arrays, and returns where their elements go.
pub(super) fn create(
    path: &Path,
    variables: &[Variable],
    attributes: &Attributes,
    chunks: &[Vec<usize>],
    compression: Option<Compression>,
) -> Result<Vec<Placed>, Failure> {
    let arrays = variables.iter().zip(chunks);
    new::build(path, attributes, arrays.map(|(variable, chunk)| New::of(variable.clone(), chunk, compression)).collect())
}

/// What a store holds.
pub(super) fn open(path: &Path) -> Result<Contents, Failure> {
    let nodes = nodes::walk(path)?;
    let mut arrays = arrays(&nodes)?;
    let times = times(&arrays)?;
    if let Some(times) = &times {
        arrays.retain(|(variable, _)| variable.name != TIME);
        for (variable, placed) in arrays.iter_mut().filter(|(variable, _)| has_steps(variable)) {
            if variable.shape[0] < times.len() {
                let (name, steps) = (&variable.name, variable.shape[0]);
                return Err(format(format!("has {} times, but {steps} steps of {name}", times.len())));
            }
            let axis = if placed.is_reversed { placed.shape.len() - 1 } else { 0 };
            (variable.shape[0], placed.shape[axis]) = (times.len(), times.len());
        }
    }
    let attributes = nodes.first().filter(|root| !root.is_array()).map(|root| attributes::from_json(&root.json));
    Ok(Contents { arrays, attributes: attributes.unwrap_or_default(), times })
}

/// The arrays of a store that have an element type of this crate.
fn arrays(nodes: &[Node]) -> Result<Vec<(Variable, Placed)>, Failure> {
    let (mut arrays, mut unknown) = (Vec::new(), None);
    for node in nodes.iter().filter(|node| node.is_array()) {
        let refused = |what: String| format(format!("has an array {:?} that cannot be read: {what}", node.name));
        match metadata::kind(&node.json) {
            Ok(kind) => arrays.push(metadata::array(&node.name, &node.folder, &node.json, kind).map_err(refused)?),
            Err(what) => unknown = unknown.or(Some(refused(what))),
        }
    }
    match unknown {
        Some(unknown) if arrays.is_empty() => Err(unknown),
        _ => Ok(arrays),
    }
}

/// The times of steps; none if the store has no steps.
fn times(arrays: &[(Variable, Placed)]) -> Result<Option<Vec<f64>>, Failure> {
    let is_time = |variable: &Variable| variable.name == TIME && variable.kind == Kind::Float(8) && variable.shape.len() == 1;
    let Some((variable, placed)) = arrays.iter().find(|(variable, _)| is_time(variable) && has_steps(variable)) else {
        return Ok(None);
    };
    let steps = variable.shape[0];
    if steps > MOST_STEPS {
        return Err(format(format!("has {steps} time steps; at most {MOST_STEPS} are expected")));
    }
    let mut times = vec![0.0; steps];
    placed.open(false)?.read(&[0], &[steps], bytemuck::cast_slice_mut(&mut times))?;
    Ok(Some(times))
}

fn has_steps(variable: &Variable) -> bool {
    variable.axes.first().is_some_and(|axis| axis == TIME)
}

fn format(what: impl Into<String>) -> Failure {
    Failure::Format(what.into())
}
