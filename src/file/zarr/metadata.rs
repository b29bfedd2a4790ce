//! The metadata of an array: what its `zarr.json` says, and what this crate makes of it.
//!
//! ```text
//! shape               extents
//! data_type           "float64", "complex64", "r24" (bytes without meaning), ...
//! chunk_grid          regular: extents of a chunk
//! chunk_key_encoding  default: c/0/1; v2: 0.1
//! fill_value          what absent chunks hold
//! codecs              transpose, bytes, compression: or sharding_indexed, in which each chunk has these
//! attributes          units, spacing, origin and others
//! dimension_names     axes; null for one without a name
//! ```
//!
//! # Source
//! Zarr core specification 3.1.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::attributes;
use crate::file::{
    chunks::{Codec, Grid, Keys, LARGEST_DECODED, Shard, added},
    kind::Kind,
    placed::{Place, Placed},
    variable::{Attribute, Variable},
};

/// As in NumPy.
const MOST_AXES: usize = 64;
/// Bytes of an element without meaning.
const LARGEST_ELEMENT: u64 = 1 << 20;

/// The name of an element type.
pub(super) fn type_name(kind: Kind) -> String {
    match kind {
        Kind::Signed(bytes) => format!("int{}", 8 * bytes),
        Kind::Unsigned(bytes) => format!("uint{}", 8 * bytes),
        Kind::Float(bytes) => format!("float{}", 8 * bytes),
        Kind::Complex(bytes) => format!("complex{}", 8 * bytes),
        Kind::Opaque(bytes) => format!("r{}", 8 * bytes),
    }
}

/// The element type of an array, or why there is none.
pub(super) fn kind(json: &Map<String, Value>) -> Result<Kind, String> {
    let value = json.get("data_type").unwrap_or(&Value::Null);
    let (name, configuration) = named(value);
    let bits = |prefix: &str| name.strip_prefix(prefix).and_then(|bits| bits.parse::<u64>().ok()).filter(|bits| bits % 8 == 0);
    let opaque = |bytes: u64| (1..=LARGEST_ELEMENT).contains(&bytes).then_some(Kind::Opaque(bytes as usize));
    let numbers = [("int", 'i'), ("uint", 'u'), ("float", 'f'), ("complex", 'c')];
    let number = numbers.iter().find_map(|(prefix, letter)| Kind::named(&format!("{letter}{}", bits(prefix)? / 8)));
    let kind = match name {
        "bool" => Some(Kind::Unsigned(1)),
        "raw_bytes" => configuration["length_bytes"].as_u64().and_then(opaque),
        _ => number.map(|(kind, _)| kind).or_else(|| bits("r").and_then(|bits| opaque(bits / 8))),
    };
    kind.ok_or_else(|| format!("its element type {} is not supported", short(value)))
}

/// An array, from its metadata in the form of version 3. What keeps its elements from being read is said when they are.
pub(super) fn array(name: &str, folder: &Path, json: &Map<String, Value>, kind: Kind) -> Result<(Variable, Placed), String> {
    let mut shape = extents(json.get("shape")).ok_or("has no shape")?;
    let mut variable = Variable::new(name, kind, &shape);
    // An extent of 0 does not make others harmless.
    let bytes = shape.iter().try_fold(kind.size(), |product, &extent| product.checked_mul(extent.max(1)));
    if shape.len() > MOST_AXES || bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(format!("has a shape that is too large: {}", short(&json!(shape))));
    }
    if let Some(Value::Array(names)) = json.get("dimension_names")
        && names.len() == shape.len()
        && names.iter().any(|name| name.is_string())
    {
        variable.axes = names.iter().map(|name| name.as_str().unwrap_or_default().to_owned()).collect();
    }
    let spatial = shape.len() - usize::from(variable.axes.first().is_some_and(|axis| axis == "time"));
    for (name, value) in attributes::from_json(json) {
        let fits = |values: &[f64]| values.len() == shape.len() || values.len() == spatial;
        let value = match value {
            Attribute::Integers(values) if ["spacing", "origin"].contains(&name.as_str()) => {
                Attribute::Reals(values.iter().map(|&value| value as f64).collect())
            }
            value => value,
        };
        match (name.as_str(), value) {
            ("units", Attribute::Text(units)) => variable.units = Some(units),
            ("spacing", Attribute::Reals(values)) if fits(&values) => variable.spacing = values,
            ("origin", Attribute::Reals(values)) if fits(&values) => variable.origin = values,
            (_, value) => variable.attributes.push((name, value)),
        }
    }
    let grid = grid(json, folder, kind, &shape);
    let (grid, is_swapped) = grid.unwrap_or_else(|refusal| {
        let refusal = Some(format!("has an array that cannot be read: {refusal}"));
        (Grid { folder: folder.into(), refusal, ..Grid::default() }, false)
    });
    if grid.keys.is_reversed {
        shape.reverse();
    }
    let is_reversed = grid.keys.is_reversed;
    Ok((variable, Placed { kind, shape, is_reversed, is_swapped, place: Place::Zarr(grid) }))
}

/// Where the chunks are, and whether the first byte of a number is the most significant one.
fn grid(json: &Map<String, Value>, folder: &Path, kind: Kind, shape: &[usize]) -> Result<(Grid, bool), String> {
    let get = |name: &str| named(json.get(name).unwrap_or(&Value::Null));
    let (name, configuration) = get("chunk_grid");
    let chunk = match name {
        "regular" => chunk_shape(&configuration["chunk_shape"], kind, shape.len())?,
        _ => return Err(format!("its chunk grid {name:?} is not supported")),
    };
    let (name, configuration) = get("chunk_key_encoding");
    let (has_prefix, separator) = match name {
        "default" => (true, configuration["separator"].as_str().unwrap_or("/")),
        "v2" => (false, configuration["separator"].as_str().unwrap_or(".")),
        _ => return Err(format!("its chunk key encoding {name:?} is not supported")),
    };
    if !["/", "."].contains(&separator) {
        return Err(format!("its chunk keys are separated by {separator:?}; only / and . are known"));
    }
    if json.get("storage_transformers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return Err("its storage transformers are not supported".into());
    }
    let mut grid = Grid { folder: folder.into(), chunk, ..Grid::default() };
    let list = json.get("codecs").and_then(Value::as_array).ok_or("it has no codecs")?;
    let mut is_swapped = false;
    let (is_reversed, codecs) = match list.first().map(named) {
        Some(("sharding_indexed", shard)) if list.len() == 1 => {
            let inner = chunk_shape(&shard["chunk_shape"], kind, shape.len())?;
            let index = shard["index_codecs"].as_array().ok_or("its shards have no index codecs")?;
            let mut index_is_swapped = false;
            let (_, index_codecs) = chain(index, 1, Kind::Unsigned(8), &mut index_is_swapped)?;
            if index_is_swapped || added(&index_codecs).is_none() {
                return Err("the index codecs of its shards are not supported".into());
            }
            if grid.chunk.iter().zip(&inner).any(|(outer, inner)| outer % inner != 0) {
                return Err("its shards are not made of whole chunks".into());
            }
            let chunks: Vec<usize> = grid.chunk.iter().zip(&inner).map(|(outer, inner)| outer / inner).collect();
            if chunks.iter().product::<usize>() > LARGEST_DECODED / 16 {
                return Err("its shards have too many chunks".into());
            }
            let index_is_first = shard["index_location"] == "start";
            grid.shard = Some(Shard { chunks, index_is_first, index_codecs });
            grid.chunk = inner;
            chain(
                shard["codecs"].as_array().ok_or("the chunks of its shards have no codecs")?,
                shape.len(),
                kind,
                &mut is_swapped,
            )?
        }
        _ => chain(list, shape.len(), kind, &mut is_swapped)?,
    };
    if is_reversed && grid.shard.is_some() {
        return Err("its shards have transposed chunks, which are not supported".into());
    }
    let chunk_bytes = grid.chunk.iter().product::<usize>() * kind.size();
    if !codecs.is_empty() && chunk_bytes > LARGEST_DECODED {
        return Err(format!("its chunks have {chunk_bytes} bytes; encoded ones may have {LARGEST_DECODED}"));
    }
    if is_reversed {
        grid.chunk.reverse();
    }
    grid.keys = Keys { separator: separator.into(), has_prefix, is_reversed, step: None };
    grid.codecs = codecs;
    grid.fill = fill(json.get("fill_value").unwrap_or(&Value::Null), kind)?;
    if is_swapped {
        grid.fill.chunks_exact_mut(kind.number()).for_each(<[u8]>::reverse);
    }
    Ok((grid, is_swapped))
}

/// Extents of a chunk whose bytes can be counted.
fn chunk_shape(value: &Value, kind: Kind, axes: usize) -> Result<Vec<usize>, String> {
    let chunk = extents(Some(value)).filter(|chunk| chunk.len() == axes && !chunk.contains(&0));
    let bytes = |chunk: &Vec<usize>| chunk.iter().try_fold(kind.size(), |product, &extent| product.checked_mul(extent));
    let fits = |chunk: &Vec<usize>| bytes(chunk).is_some_and(|bytes| bytes <= isize::MAX as usize / 4);
    chunk.filter(fits).ok_or_else(|| format!("its chunks cannot have the shape {}", short(value)))
}

/// Codecs after the first ones, which say in what order axes and bytes are; and whether axes are reversed.
fn chain(list: &[Value], axes: usize, kind: Kind, is_swapped: &mut bool) -> Result<(bool, Vec<Codec>), String> {
    let (mut is_reversed, mut has_bytes, mut codecs) = (false, false, Vec::new());
    for value in list {
        let (name, configuration) = named(value);
        match name {
            "transpose" if !has_bytes => {
                let order = extents(Some(&configuration["order"])).unwrap_or_default();
                if order.iter().copied().eq((0..axes).rev()) && axes > 1 {
                    is_reversed = !is_reversed;
                } else if !order.iter().copied().eq(0..axes) {
                    return Err(format!("its axes are transposed to {}; only a reversal is supported", short(&json!(order))));
                }
            }
            "bytes" if !has_bytes => {
                has_bytes = true;
                *is_swapped = configuration["endian"] == "big" && kind.number() > 1;
            }
            _ if has_bytes => codecs.push(Codec::named(name, configuration).ok_or_else(|| unknown(name))?),
            _ => return Err(unknown(name)),
        }
    }
    if has_bytes { Ok((is_reversed, codecs)) } else { Err("its codecs do not make bytes of it".into()) }
}

fn unknown(codec: &str) -> String {
    format!("its codec {codec:?} is not supported; bytes, transpose, gzip, zlib, zstd, crc32c and sharding_indexed are")
}

/// The bytes of an element, little-endian.
fn fill(value: &Value, kind: Kind) -> Result<Vec<u8>, String> {
    let wrong = || format!("its fill value {} is not supported", short(value));
    let size = kind.size();
    if value.is_null() {
        return Ok(vec![0; size]);
    }
    let float = |value: &Value, size: usize| {
        let Some(number) = attributes::real(value) else {
            let bits = u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()?;
            return Some(bits.to_le_bytes()[..size].to_vec());
        };
        Some(if size == 4 { (number as f32).to_le_bytes().to_vec() } else { number.to_le_bytes().to_vec() })
    };
    let filled = match (kind, value) {
        (Kind::Signed(_) | Kind::Unsigned(_), _) => {
            let whole = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15).map(|number| number as i128);
            let exact = value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)).or(value.as_bool().map(i128::from));
            let least = if matches!(kind, Kind::Signed(_)) { -1_i128 << (8 * size - 1) } else { 0 };
            let range = least..least + (1_i128 << (8 * size));
            exact.or(whole).filter(|number| range.contains(number)).map(|number| number.to_le_bytes()[..size].to_vec())
        }
        (Kind::Float(_), _) => float(value, size),
        (Kind::Complex(_), Value::Array(parts)) if parts.len() == 2 => {
            let parts: Option<Vec<_>> = parts.iter().map(|part| float(part, size / 2)).collect();
            parts.map(|parts| parts.concat())
        }
        (Kind::Complex(_), _) => float(value, size / 2).map(|real| [real, vec![0; size / 2]].concat()),
        (Kind::Opaque(_), Value::Array(bytes)) if bytes.len() == size => {
            bytes.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect()
        }
        // Zeros in base 64.
        (Kind::Opaque(_), Value::String(text)) => text.chars().all(|c| "A=".contains(c)).then(|| vec![0; size]),
        _ => None,
    };
    filled.ok_or_else(wrong)
}

/// A name with a configuration, which may be absent.
fn named(value: &Value) -> (&str, &Value) {
    let name = value.as_str().or(value["name"].as_str()).unwrap_or_default();
    (name, &value["configuration"])
}

pub(super) fn extents(value: Option<&Value>) -> Option<Vec<usize>> {
    value?.as_array()?.iter().map(|extent| extent.as_u64().and_then(|extent| usize::try_from(extent).ok())).collect()
}

/// What stands in a message.
fn short(value: &Value) -> String {
    let text = value.to_string();
    text.char_indices().nth(80).map_or(text.clone(), |(end, _)| format!("{}...", &text[..end]))
}
