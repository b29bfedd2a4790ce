//! The folders of a store, and their metadata.
//!
//! Version 3 has a `zarr.json` in the folder of each group and array; version 2 has `.zgroup` or `.zarray`, and `.zattrs`. What is read of version 2
//! is brought into the form of version 3 here.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::metadata;
use crate::file::{kind::Kind, visit::Failure, whole::sync_folder};

/// Bytes of a file with metadata.
const LONGEST: u64 = 64 << 20;
/// Folders inside each other. Symbolic links are followed, so that a store can have a circle of them.
const DEEPEST: usize = 32;
const MOST_NODES: usize = 100_000;

/// A group or an array.
#[derive(Debug)]
pub(super) struct Node {
    /// With the groups that it is in; empty for the store itself.
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) json: Map<String, Value>,
}

impl Node {
    pub(super) fn is_array(&self) -> bool {
        self.json.get("node_type").is_some_and(|kind| kind == "array")
    }
}

/// All nodes of a store; it is the first.
pub(super) fn walk(path: &Path) -> Result<Vec<Node>, Failure> {
    if !fs::metadata(path)?.is_dir() {
        return Err(Failure::Format("is not a folder, as a Zarr store is".into()));
    }
    let mut nodes = Vec::new();
    visit(path.to_owned(), String::new(), 0, &mut nodes)?;
    if nodes.is_empty() {
        return Err(Failure::Format("is not a Zarr store: it has neither zarr.json nor .zgroup nor .zarray".into()));
    }
    Ok(nodes)
}

fn visit(folder: PathBuf, name: String, depth: usize, nodes: &mut Vec<Node>) -> Result<(), Failure> {
    let Some(json) = read_node(&folder)? else { return Ok(()) };
    if depth > DEEPEST || nodes.len() >= MOST_NODES {
        return Err(Failure::Format(format!("has more than {DEEPEST} groups inside each other, or {MOST_NODES} in all")));
    }
    let mut inside = Vec::new();
    let node = Node { name: name.clone(), folder, json };
    if !node.is_array() {
        for entry in fs::read_dir(&node.folder)? {
            // A folder with a name that is no text cannot be asked for.
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && entry.path().is_dir()
            {
                inside.push((entry.path(), name));
            }
        }
    }
    nodes.push(node);
    inside.sort();
    for (folder, last) in inside {
        let name = if name.is_empty() { last } else { format!("{name}/{last}") };
        visit(folder, name, depth + 1, nodes)?;
    }
    Ok(())
}

/// The metadata of a folder; none if it is no node.
fn read_node(folder: &Path) -> Result<Option<Map<String, Value>>, Failure> {
    if let Some(json) = read_json(&folder.join("zarr.json"))? {
        if !["array", "group"].iter().any(|kind| json.get("node_type").is_some_and(|found| found == kind)) {
            return Err(Failure::Format(format!("has neither a group nor an array in {}", folder.display())));
        }
        return Ok(Some(json));
    }
    let attributes = || Ok::<_, Failure>(read_json(&folder.join(".zattrs"))?.unwrap_or_default());
    if let Some(json) = read_json(&folder.join(".zarray"))? {
        return Ok(Some(array_of_version_2(&json, attributes()?)));
    }
    let Some(_) = read_json(&folder.join(".zgroup"))? else { return Ok(None) };
    Ok(Some(Map::from_iter([("node_type".into(), json!("group")), ("attributes".into(), attributes()?.into())])))
}

/// In the form of version 3.
fn array_of_version_2(json: &Map<String, Value>, mut attributes: Map<String, Value>) -> Map<String, Value> {
    let get = |name: &str| json.get(name).cloned().unwrap_or_default();
    let dtype = get("dtype");
    let (data_type, endian) = match dtype.as_str().and_then(Kind::named) {
        Some((kind, is_swapped)) => (json!(metadata::type_name(kind)), if is_swapped { "big" } else { "little" }),
        None => (dtype, "little"),
    };
    let axes = json.get("shape").and_then(Value::as_array).map_or(0, Vec::len);
    let codec = |value: Value| json!({"name": value["id"], "configuration": value});
    let mut codecs: Vec<Value> = get("filters").as_array().cloned().unwrap_or_default().into_iter().map(codec).collect();
    if get("order") == "F" {
        codecs.push(json!({"name": "transpose", "configuration": {"order": (0..axes).rev().collect::<Vec<_>>()}}));
    }
    codecs.push(json!({"name": "bytes", "configuration": {"endian": endian}}));
    codecs.extend(Some(get("compressor")).filter(|value| !value.is_null()).map(codec));
    let separator = json.get("dimension_separator").cloned().unwrap_or_else(|| json!("."));
    let names = attributes.remove("_ARRAY_DIMENSIONS").unwrap_or_default();
    Map::from_iter([
        ("node_type".into(), json!("array")),
        ("shape".into(), get("shape")),
        ("data_type".into(), data_type),
        ("chunk_grid".into(), json!({"name": "regular", "configuration": {"chunk_shape": get("chunks")}})),
        ("chunk_key_encoding".into(), json!({"name": "v2", "configuration": {"separator": separator}})),
        ("fill_value".into(), get("fill_value")),
        ("codecs".into(), codecs.into()),
        ("attributes".into(), attributes.into()),
        ("dimension_names".into(), names),
    ])
}

fn read_json(file: &Path) -> Result<Option<Map<String, Value>>, Failure> {
    let refused = |what: String| Failure::Format(format!("has metadata that cannot be read: {what} in {}", file.display()));
    let open = match File::open(file) {
        Ok(open) => open,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    open.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(refused(format!("more than {LONGEST} bytes")));
    }
    match serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))? {
        Value::Object(json) => Ok(Some(json)),
        _ => Err(refused("no object".into())),
    }
}

/// Makes a folder with the metadata of a new node, which is not on the disk before [`sync_node`].
pub(super) fn new_node(folder: &Path, json: &Map<String, Value>) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join("zarr.json"), serde_json::to_vec_pretty(json).map_err(std::io::Error::from)?)?)
}

pub(super) fn sync_node(folder: &Path) -> Result<(), Failure> {
    File::open(folder.join("zarr.json"))?.sync_all()?;
    sync_folder(folder)
}

/// Replaces the metadata of one node, on the disk.
pub(super) fn write_node(folder: &Path, json: &Map<String, Value>) -> Result<(), Failure> {
    let temporary = folder.join("zarr.part");
    fs::write(&temporary, serde_json::to_vec_pretty(json).map_err(std::io::Error::from)?)?;
    File::open(&temporary)?.sync_all()?;
    fs::rename(&temporary, folder.join("zarr.json"))?;
    sync_folder(folder)
}

/// Writes the metadata of the store, in which that of all nodes is repeated: so readers open one file, not many.
pub(super) fn write_root(
    path: &Path,
    mut root: Map<String, Value>,
    nodes: &BTreeMap<String, Map<String, Value>>,
) -> Result<(), Failure> {
    if root.get("node_type").is_some_and(|kind| kind == "group") {
        root.insert("consolidated_metadata".into(), json!({"kind": "inline", "must_understand": false, "metadata": nodes}));
    }
    write_node(path, &root)
}
