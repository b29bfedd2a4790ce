//! What a file says of its arrays: names, axes, units, attributes.

use std::io::{self, Read, Write};

use super::kind::Kind;
use crate::portable::{Portable, portable};

/// Coordinates of a longer axis are not written.
pub(super) const MOST_COORDINATES: usize = 1 << 24;

/// The value of an attribute of a file or of an array in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Real numbers.
    Reals(Vec<f64>),
}

macro_rules! attributes {
    ($($from:ty, $variant:ident, $convert:expr);* $(;)?) => {$(
        impl From<$from> for Attribute {
            fn from(value: $from) -> Self {
                Attribute::$variant($convert(value))
            }
        }
    )*};
}
attributes!(&str, Text, str::to_owned; String, Text, |text| text; i64, Integer, |value| value; i32, Integer, i64::from; u32, Integer, i64::from;
    f64, Real, |value| value; f32, Real, f64::from; Vec<i64>, Integers, |values| values; &[i64], Integers, <[i64]>::to_vec;
    Vec<f64>, Reals, |values| values; &[f64], Reals, <[f64]>::to_vec);

/// How chunks of a Zarr store are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Zstandard, at a level.
    Zstd(i32),
    /// gzip, at a level from 0 to 9.
    Gzip(u32),
}

/// Names and values, in the order of the file.
pub(super) type Attributes = Vec<(String, Attribute)>;

/// What a file says of one array.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) shape: Vec<usize>,
    /// Names of all axes, or none.
    pub(super) axes: Vec<String>,
    pub(super) units: Option<String>,
    /// Of each axis, or none.
    pub(super) spacing: Vec<f64>,
    pub(super) origin: Vec<f64>,
    pub(super) attributes: Attributes,
}

impl Variable {
    pub(super) fn new(name: impl Into<String>, kind: Kind, shape: &[usize]) -> Self {
        Variable {
            name: name.into(),
            kind,
            shape: shape.to_vec(),
            axes: Vec::new(),
            units: None,
            spacing: Vec::new(),
            origin: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// The name in the file, with the groups that it is in: `flow/pressure`. Empty if the file holds one array without a name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// NumPy's name of the element type, such as `<f8`.
    #[must_use]
    pub fn descr(&self) -> String {
        self.kind.descr()
    }

    /// Elements along each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Names of the axes; empty if the file has none.
    #[must_use]
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// The unit of the elements.
    #[must_use]
    pub fn units(&self) -> Option<&str> {
        self.units.as_deref()
    }

    /// The distance of neighbors along each axis; empty if the file has none.
    #[must_use]
    pub fn spacing(&self) -> &[f64] {
        &self.spacing
    }

    /// The place of the first element along each axis; empty if the file has none.
    #[must_use]
    pub fn origin(&self) -> &[f64] {
        &self.origin
    }

    /// Origin and spacing along an axis, if the file has one of them.
    pub(super) fn line(&self, axis: usize) -> Option<[f64; 2]> {
        let [origin, spacing] = [&self.origin, &self.spacing].map(|all| all.get(axis).copied());
        origin.or(spacing).map(|_| [origin.unwrap_or(0.0), spacing.unwrap_or(1.0)])
    }

    /// Other attributes, in the order of the file.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.attributes.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns true for the coordinates along an axis, which has the name of the array.
    #[must_use]
    pub fn is_coordinate(&self) -> bool {
        self.shape.len() == 1 && self.axes == [self.name.as_str()]
    }

    /// Bytes of the elements, if arrays of such extents can be.
    pub(super) fn bytes(&self) -> Option<u64> {
        let size = self.kind.size() as u64;
        let most = self.shape.iter().try_fold(size, |product, &extent| product.checked_mul(extent.max(1) as u64))?;
        let is_empty = self.shape.contains(&0);
        (most <= isize::MAX as u64).then_some(if is_empty { 0 } else { most })
    }
}

impl Portable for Attribute {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Attribute::Text(text) => (0_u8, text.clone()).write(to),
            Attribute::Integer(value) => (1_u8, *value).write(to),
            Attribute::Real(value) => (2_u8, *value).write(to),
            Attribute::Integers(values) => (3_u8, values.clone()).write(to),
            Attribute::Reals(values) => (4_u8, values.clone()).write(to),
        }
    }

    fn read(from: &mut dyn Read) -> io::Result<Self> {
        Ok(match u8::read(from)? {
            0 => Attribute::Text(String::read(from)?),
            1 => Attribute::Integer(i64::read(from)?),
            2 => Attribute::Real(f64::read(from)?),
            3 => Attribute::Integers(Vec::read(from)?),
            _ => Attribute::Reals(Vec::read(from)?),
        })
    }
}

portable!(Variable { name, kind, shape, axes, units, spacing, origin, attributes });
