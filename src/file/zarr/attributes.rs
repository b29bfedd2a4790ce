//! Attributes as JSON.

use serde_json::{Map, Value, json};

use crate::file::variable::{Attribute, Attributes};

/// What JSON has no numbers for.
const NOT_FINITE: [(&str, f64); 3] = [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

pub(super) fn to_json(attributes: &Attributes) -> Map<String, Value> {
    attributes.iter().map(|(name, value)| (name.clone(), value_json(value))).collect()
}

pub(super) fn value_json(value: &Attribute) -> Value {
    match value {
        Attribute::Text(text) => json!(text),
        Attribute::Integer(value) => json!(value),
        Attribute::Real(value) => real_json(*value),
        Attribute::Integers(values) => json!(values),
        Attribute::Reals(values) => values.iter().map(|value| real_json(*value)).collect(),
    }
}

fn real_json(value: f64) -> Value {
    if value.is_nan() {
        return json!("NaN");
    }
    NOT_FINITE.iter().find(|(_, other)| value == *other).map_or_else(|| json!(value), |(name, _)| json!(name))
}

/// The attributes of a group or an array. Values that [`Attribute`] cannot hold are left out.
pub(super) fn from_json(node: &Map<String, Value>) -> Attributes {
    let Some(Value::Object(attributes)) = node.get("attributes") else { return Attributes::new() };
    attributes.iter().filter_map(|(name, value)| Some((name.clone(), attribute(value)?))).collect()
}

fn attribute(value: &Value) -> Option<Attribute> {
    Some(match value {
        Value::String(text) => Attribute::Text(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Attribute::Integer(integer),
            None => Attribute::Real(number.as_f64()?),
        },
        Value::Array(values) => match values.iter().map(Value::as_i64).collect() {
            Some(integers) => Attribute::Integers(integers),
            None => Attribute::Reals(values.iter().map(real).collect::<Option<_>>()?),
        },
        _ => return None,
    })
}

/// A number, also one that JSON has none for.
pub(super) fn real(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(text) => NOT_FINITE.iter().find(|(name, _)| *name == text).map(|(_, value)| *value),
        None => value.as_f64(),
    }
}
