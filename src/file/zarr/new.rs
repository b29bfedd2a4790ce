//! New stores.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use serde_json::{Map, Value, json};

use super::{attributes, format, metadata, nodes};
use crate::{
    file::{
        chunks::{Codec, Grid},
        kind::Kind,
        placed::{Opened, Place, Placed},
        variable::{Attribute, Attributes, Compression, MOST_COORDINATES, Variable},
        visit::Failure,
        whole::sync_folder,
    },
    file_names::directory,
};

/// An array that is to be made.
pub(super) struct New {
    variable: Variable,
    chunk: Vec<usize>,
    codecs: Vec<Codec>,
}

impl New {
    pub(super) fn of(variable: Variable, chunk: &[usize], compression: Option<Compression>) -> New {
        // Zarr has no chunks of no elements.
        let chunk = chunk.iter().map(|&extent| extent.max(1)).collect();
        New { variable, chunk, codecs: compression.map(Codec::from).into_iter().collect() }
    }
}

/// Makes a store, with coordinates and groups. Its own metadata is the last that is written.
pub(super) fn build(path: &Path, attributes: &Attributes, mut new: Vec<New>) -> Result<Vec<Placed>, Failure> {
    if ["zarr.json", ".zgroup", ".zarray"].iter().any(|file| path.join(file).exists()) {
        return Err(io::Error::from(ErrorKind::AlreadyExists).into());
    }
    let variables = new.len();
    let coordinates = coordinates(&new)?;
    new.extend(coordinates.iter().map(|(coordinates, _)| New::of(coordinates.clone(), &coordinates.shape, None)));
    let mut root = group_json(attributes);
    let (mut nodes, mut placed) = (BTreeMap::new(), Vec::new());
    for New { variable, chunk, codecs } in &new {
        let name = &variable.name;
        check_name(name)?;
        let json = array_json(variable, chunk, codecs);
        let folder = if name.is_empty() { path.to_owned() } else { path.join(name) };
        let (_, array) = metadata::array(name, &folder, &json, variable.kind).map_err(format)?;
        if let Place::Zarr(Grid { refusal: Some(refusal), .. }) = &array.place {
            return Err(format(refusal.clone()));
        }
        placed.push(array);
        if nodes.insert(name.clone(), json).is_some() {
            return Err(format(format!("cannot hold two arrays with the name {name:?}")));
        }
    }
    for New { variable, .. } in &new {
        for (end, _) in variable.name.match_indices('/') {
            let group = nodes.entry(variable.name[..end].into()).or_insert_with(|| group_json(&Attributes::new()));
            if group.get("node_type").is_some_and(|kind| kind == "array") {
                return Err(format(format!("cannot hold the array {:?} inside of an array", variable.name)));
            }
        }
    }
    if let Some(mut array) = nodes.remove("") {
        if !nodes.is_empty() {
            return Err(format("cannot hold other arrays beside one without a name"));
        }
        if let (Some(Value::Object(attributes)), Some(Value::Object(others))) =
            (array.get_mut("attributes"), root.get("attributes"))
        {
            attributes.extend(others.clone());
        }
        root = array;
    }
    // Not the folders above it: one that has vanished is an error.
    fs::create_dir(path).or_else(|error| if path.is_dir() { Ok(()) } else { Err(error) })?;
    for (name, json) in &nodes {
        nodes::new_node(&path.join(name), json)?;
    }
    let mut written = Vec::new();
    for ((variable, [origin, spacing]), placed) in coordinates.iter().zip(&placed[variables..]) {
        let opened = placed.open(true)?;
        let values: Vec<f64> = (0..variable.shape[0]).map(|i| origin + i as f64 * spacing).collect();
        opened.write(&[0], &[values.len()], bytemuck::cast_slice(&values))?;
        written.push(opened);
    }
    // All together: the system brings to the disk at once what was made until the first of these calls.
    written.iter().try_for_each(Opened::sync)?;
    nodes.keys().try_for_each(|name| nodes::sync_node(&path.join(name)))?;
    nodes::write_root(path, root, &nodes)?;
    sync_folder(directory(path))?;
    placed.truncate(variables);
    Ok(placed)
}

/// Arrays of coordinates along the axes that have names, each with its first value and the distance of values. Arrays of a group share their axes.
fn coordinates(new: &[New]) -> Result<Vec<(Variable, [f64; 2])>, Failure> {
    let mut axes: BTreeMap<String, (usize, Option<[f64; 2]>)> = BTreeMap::new();
    for New { variable, .. } in new {
        let Variable { name, shape, axes: names, spacing, origin, .. } = variable;
        let group = name.rfind('/').map_or("", |end| &name[..=end]);
        let spatial = spacing.len().max(origin.len());
        for (k, (axis, &extent)) in names.iter().zip(shape).enumerate().filter(|(_, (axis, _))| !axis.is_empty()) {
            // Steps are no axis of what is spaced.
            let values =
                (k + spatial).checked_sub(names.len()).and_then(|k| variable.line(k)).filter(|_| extent <= MOST_COORDINATES);
            let known = axes.entry(format!("{group}{axis}")).or_insert((extent, values));
            if known.0 != extent {
                return Err(format(format!("cannot hold the axis {group}{axis} with {} and with {extent} elements", known.0)));
            }
            if let (Some(one), Some(other)) = (known.1, values)
                && one != other
            {
                return Err(format(format!("cannot hold the axis {group}{axis} with two origins or spacings")));
            }
            known.1 = known.1.or(values);
        }
    }
    let is_given = |name: &String| new.iter().any(|new| new.variable.name == *name || new.variable.name.is_empty());
    let made = axes.into_iter().filter(|(name, _)| !is_given(name)).filter_map(|(name, (extent, values))| {
        let mut variable = Variable::new(name.clone(), Kind::Float(8), &[extent]);
        variable.axes = vec![name.rsplit('/').next().unwrap_or_default().into()];
        Some((variable, values?))
    });
    Ok(made.collect())
}

/// Returns an error if a name is not one of a node.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_wrong =
        |part: &str| part.is_empty() || part.starts_with("__") || [".", "..", "zarr.json"].contains(&part) || part.contains('\0');
    if !name.is_empty() && name.split('/').any(is_wrong) {
        return Err(format(format!("cannot hold an array with the name {name:?}")));
    }
    Ok(())
}

/// The metadata of a new array.
fn array_json(variable: &Variable, chunk: &[usize], codecs: &[Codec]) -> Map<String, Value> {
    let zero = match variable.kind {
        Kind::Complex(_) => json!([0.0, 0.0]),
        Kind::Float(_) => json!(0.0),
        // In base 64.
        Kind::Opaque(bytes) => json!("A".repeat((bytes * 8).div_ceil(6)) + &"=".repeat((3 - bytes % 3) % 3)),
        _ => json!(0),
    };
    // The standard's name, `r24`, is unknown to zarr-python 3, which then opens no array of the group.
    let data_type = match variable.kind {
        Kind::Opaque(bytes) => json!({"name": "raw_bytes", "configuration": {"length_bytes": bytes}}),
        kind => json!(metadata::type_name(kind)),
    };
    let mut attributes = attributes::to_json(&variable.attributes);
    attributes.extend(variable.units.iter().map(|units| ("units".to_owned(), json!(units))));
    for (name, values) in [("spacing", &variable.spacing), ("origin", &variable.origin)] {
        if !values.is_empty() {
            attributes.insert(name.into(), attributes::value_json(&Attribute::Reals(values.clone())));
        }
    }
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let mut json = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": variable.shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": zero,
        "codecs": std::iter::once(bytes).chain(codecs.iter().map(|codec| codec.json())).collect::<Vec<_>>(),
        "attributes": attributes,
    });
    if !variable.axes.is_empty() {
        let names = variable.axes.iter().map(|axis| (!axis.is_empty()).then_some(axis));
        json["dimension_names"] = names.collect::<Vec<_>>().into_iter().map(|name| json!(name)).collect();
    }
    object(json)
}

/// The metadata of a new group.
fn group_json(attributes: &Attributes) -> Map<String, Value> {
    object(json!({"zarr_format": 3, "node_type": "group", "attributes": attributes::to_json(attributes)}))
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(object) = value { object } else { Map::new() }
}
