//! Time steps.

use std::{fs, io::ErrorKind, path::Path};

use serde_json::{Map, Value, json};

use super::{
    TIME, arrays, format, has_steps,
    new::{self, New},
    nodes::{self, Node},
    times,
};
use crate::file::{
    kind::Kind,
    placed::{Place, Placed},
    variable::{Attributes, Compression, Variable},
    visit::Failure,
};

/// Times of a chunk: a step rewrites one.
pub(super) const TIMES: usize = 1024;

/// Makes room for a time step, in a new store if there is none, and returns where its elements go. Steps at this time or later are dropped.
pub(in crate::file) fn begin_step(
    path: &Path,
    time: f64,
    variables: &[Variable],
    attributes: &Attributes,
    chunks: &[Vec<usize>],
    compression: Option<Compression>,
) -> Result<Vec<Placed>, Failure> {
    if time.is_nan() {
        return Err(format("cannot hold a step at a time that is no number"));
    }
    if let Some(variable) = variables.iter().find(|variable| variable.name.is_empty() || variable.name == TIME) {
        return Err(format(format!("cannot hold time steps of an array with the name {:?}", variable.name)));
    }
    if !path.join("zarr.json").exists() {
        let mut times = Variable::new(TIME, Kind::Float(8), &[0]);
        times.axes = vec![TIME.into()];
        let arrays = variables.iter().zip(chunks);
        let mut new: Vec<New> =
            arrays.map(|(variable, chunk)| New::of(of_steps(variable), &[&[1], &chunk[..]].concat(), compression)).collect();
        new.push(New::of(times, &[TIMES], None));
        new::build(path, attributes, new)?;
    }
    let mut nodes = nodes::walk(path)?;
    let arrays = arrays(&nodes)?;
    let step = step_at(&arrays, time)?;
    let mut placed = Vec::new();
    for variable in variables {
        placed.push(place_of_step(&arrays, variable, step)?);
    }
    let given = |name: &str| name == TIME || variables.iter().any(|variable| variable.name == name);
    if let Some((missing, _)) = arrays.iter().find(|(variable, _)| has_steps(variable) && !given(&variable.name)) {
        return Err(format(format!("has time steps of {:?}, of which none is given now", missing.name)));
    }
    // First the times: they say what steps there are.
    nodes.sort_by_key(|node| node.name != TIME);
    resize(path, &mut nodes, &arrays, step)?;
    for node in nodes.iter().filter(|node| node.name != TIME && given(&node.name)) {
        remove_steps(&node.folder.join("c"), step)?;
    }
    Ok(placed)
}

/// Enters a time step whose chunks are on the disk.
pub(in crate::file) fn end_step(path: &Path, time: f64) -> Result<(), Failure> {
    let mut nodes = nodes::walk(path)?;
    let arrays = arrays(&nodes)?;
    let step = step_at(&arrays, time)?;
    let times = arrays.into_iter().find(|(variable, _)| variable.name == TIME);
    if let Some((_, mut times)) = times {
        // Not yet inside of the shape that is on the disk.
        times.shape = vec![step + 1];
        let times = times.open(true)?;
        times.write(&[step], &[1], &time.to_le_bytes())?;
        times.sync()?;
    }
    // Last the times: they say what steps there are.
    nodes.sort_by_key(|node| node.name == TIME);
    let arrays = super::arrays(&nodes)?;
    resize(path, &mut nodes, &arrays, step + 1)
}

/// The number of a step, after all that are earlier.
fn step_at(arrays: &[(Variable, Placed)], time: f64) -> Result<usize, Failure> {
    let times = times(arrays)?.ok_or_else(|| format("has no time steps: no array `time` of float64"))?;
    Ok(times.iter().position(|&there| there >= time).unwrap_or(times.len()))
}

/// The array of all steps, of which there are none yet.
fn of_steps(variable: &Variable) -> Variable {
    let mut variable = variable.clone();
    variable.axes.resize(variable.shape.len(), String::new());
    variable.axes.insert(0, TIME.into());
    variable.shape.insert(0, 0);
    variable
}

/// Where the elements of a step go.
fn place_of_step(arrays: &[(Variable, Placed)], variable: &Variable, step: usize) -> Result<Placed, Failure> {
    let Variable { name, kind, shape, .. } = variable;
    let found = arrays.iter().find(|(there, _)| there.name == *name && has_steps(there));
    let (there, placed) = found.ok_or_else(|| format(format!("has no time steps of {name:?}")))?;
    if there.kind != *kind || there.shape[1..] != *shape {
        let (old, new) = (there.kind.descr(), kind.descr());
        let what =
            format!("has steps of {name:?} with type {old} and shape {:?}; this one has {new} and {shape:?}", &there.shape[1..]);
        return Err(format(what));
    }
    let mut placed = placed.clone();
    if let Place::Zarr(grid) = &mut placed.place {
        let is_ours =
            grid.chunk.first() == Some(&1) && grid.keys.has_prefix && grid.keys.separator == "/" && grid.shard.is_none();
        if let Some(refusal) = &grid.refusal {
            return Err(format(refusal.clone()));
        }
        if !is_ours || placed.is_reversed || placed.is_swapped {
            return Err(format(format!("has steps of {name:?} in another layout than they are written in here")));
        }
        grid.chunk.remove(0);
        grid.keys.step = Some(step);
    }
    placed.shape.remove(0);
    Ok(placed)
}

/// Enters the number of steps in the metadata, in the order of the nodes.
fn resize(path: &Path, nodes: &mut [Node], arrays: &[(Variable, Placed)], steps: usize) -> Result<(), Failure> {
    let mut is_changed = false;
    for node in nodes.iter_mut() {
        let changes = arrays.iter().any(|(variable, _)| variable.name == node.name && has_steps(variable));
        if let Some(Value::Array(shape)) = node.json.get_mut("shape").filter(|shape| changes && shape[0] != steps) {
            shape[0] = json!(steps);
            nodes::write_node(&node.folder, &node.json)?;
            is_changed = true;
        }
    }
    if is_changed {
        let (root, others): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(|node| node.name.is_empty());
        let others = others.into_iter().map(|node| (node.name.clone(), node.json.clone())).collect();
        let root: Map<String, Value> = root.first().map(|root| root.json.clone()).unwrap_or_default();
        nodes::write_root(path, root, &others)?;
    }
    Ok(())
}

/// Removes the chunks of steps from this one on, which may be those of a step that was not finished.
fn remove_steps(chunks: &Path, step: usize) -> Result<(), Failure> {
    let entries = match fs::read_dir(chunks) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().and_then(|name| name.split('.').next()?.parse().ok()).is_some_and(|there: usize| there >= step) {
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
    }
    Ok(())
}
