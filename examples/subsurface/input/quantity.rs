//! Values that a user may give as a number, as a formula of the place, or as a schedule in time.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use toml::Spanned;

use super::formula::{Constants, Formula, is_free};
use super::source::Source;

/// A value as it stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Quantity {
    Number(f64),
    Formula(String),
    /// Times [s], each with the value from then on.
    Schedule(Vec<[f64; 2]>),
}

struct QuantityVisitor;

impl<'de> Visitor<'de> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a formula in quotes, or a list of pairs [time, value]")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Quantity, E> {
        Ok(Quantity::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Quantity, E> {
        Ok(Quantity::Formula(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Quantity, A::Error> {
        let mut schedule = Vec::new();
        while let Some(pair) = pairs.next_element::<[f64; 2]>()? {
            schedule.push(pair);
        }
        Ok(Quantity::Schedule(schedule))
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

/// One number for all axes, or one for each: x, y, z.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OneOrThree(pub(crate) [f64; 3]);

struct OneOrThreeVisitor;

impl<'de> Visitor<'de> for OneOrThreeVisitor {
    type Value = OneOrThree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or three for x, y and z")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<OneOrThree, E> {
        Ok(OneOrThree([value as f64; 3]))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<OneOrThree, E> {
        Ok(OneOrThree([value; 3]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<OneOrThree, A::Error> {
        let mut values = [0.0; 3];
        for (place, value) in values.iter_mut().enumerate() {
            *value = numbers.next_element()?.ok_or_else(|| A::Error::invalid_length(place, &self))?;
        }
        match numbers.next_element::<f64>()? {
            Some(_) => Err(A::Error::invalid_length(4, &self)),
            None => Ok(OneOrThree(values)),
        }
    }
}

impl<'de> Deserialize<'de> for OneOrThree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrThreeVisitor)
    }
}

/// A checked value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Number(f64),
    Formula(Box<Formula>),
    Schedule(Vec<[f64; 2]>),
}

/// Which forms a key takes beside a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forms {
    Formula,
    Schedule,
    Both,
}

impl Value {
    /// # Errors
    /// A number that is not finite, a formula that is none, a schedule whose times do not begin with 0 and ascend.
    pub(crate) fn new(
        source: &Source,
        key: &str,
        quantity: &Spanned<Quantity>,
        forms: Forms,
        constants: &Constants,
    ) -> Result<Value, String> {
        let failed = |what: String| source.at(quantity.span(), format!("{key}: {what}"));
        match quantity.get_ref() {
            Quantity::Number(number) if number.is_finite() => Ok(Value::Number(*number)),
            Quantity::Number(number) => Err(failed(format!("{number} is not finite"))),
            Quantity::Formula(_) if forms == Forms::Schedule => {
                Err(failed("a number or a list of pairs [time, value] is needed, no formula".into()))
            }
            Quantity::Schedule(_) if forms == Forms::Formula => {
                Err(failed("a number or a formula is needed, no schedule".into()))
            }
            Quantity::Formula(text) => {
                Formula::new(text, constants).map(|formula| Value::Formula(Box::new(formula))).map_err(failed)
            }
            Quantity::Schedule(pairs) => {
                let ascends = pairs.windows(2).all(|pair| pair[0][0] < pair[1][0]);
                let begins = pairs.first().is_some_and(|[time, _]| *time == 0.0);
                if begins && ascends && pairs.iter().flatten().all(|number| number.is_finite()) {
                    Ok(Value::Schedule(pairs.clone()))
                } else {
                    Err(failed("the times of a schedule begin with 0 and ascend, and all numbers are finite".into()))
                }
            }
        }
    }

    /// The value at a place, in a step that begins at `time`.
    pub(crate) fn at(&self, place: [f64; 3], time: f64) -> f64 {
        match self {
            Value::Number(number) => *number,
            Value::Formula(formula) => formula.at(place),
            Value::Schedule(pairs) => pairs.iter().rev().find(|pair| pair[0] <= time).map_or(0.0, |pair| pair[1]),
        }
    }

    /// When it changes [s].
    pub(crate) fn changes(&self) -> impl Iterator<Item = f64> + '_ {
        let pairs = if let Value::Schedule(pairs) = self { pairs.as_slice() } else { &[] };
        pairs.iter().map(|pair| pair[0])
    }
}

/// The constants of a file.
///
/// # Errors
/// A name that means something else in a formula, or is no name; a number that is not finite.
pub(crate) fn constants(source: &Source, table: &BTreeMap<Spanned<String>, Spanned<f64>>) -> Result<Constants, String> {
    let mut constants = Constants::new();
    for (name, number) in table {
        if !is_free(name.get_ref()) {
            return Err(refused(source, name.span(), name.get_ref()));
        }
        constants.insert(name.get_ref().clone(), source.finite(name.get_ref(), number)?);
    }
    Ok(constants)
}

fn refused(source: &Source, span: Range<usize>, name: &str) -> String {
    source.at(span, format!("a constant cannot have the name {name}: formulas use it, or it is no name"))
}
