//! Element types of data sets.

use std::ffi::{CStr, c_int};

use super::ffi::{Hdf5, Id};
use crate::file::{kind::Kind, visit::Failure};

/// `H5T_class_t`.
pub(in crate::file) const INTEGER: c_int = 0;
pub(in crate::file) const FLOAT: c_int = 1;
pub(in crate::file) const STRING: c_int = 3;
const OPAQUE: c_int = 5;
pub(in crate::file) const COMPOUND: c_int = 6;
pub(in crate::file) const ENUM: c_int = 8;
/// Since 2.0.
const COMPLEX: c_int = 11;

/// What the parts of complex numbers are called; h5py writes the first pair.
const PARTS: [[&CStr; 2]; 3] = [[c"r", c"i"], [c"real", c"imag"], [c"re", c"im"]];

/// A type of a file that has a kind.
#[derive(Debug)]
pub(in crate::file) struct Known<'h> {
    pub(in crate::file) kind: Kind,
    /// If the first byte of a number is the most significant one; `None` if the bytes are not those of the kind.
    pub(in crate::file) is_swapped: Option<bool>,
    /// The kind's own type, to which the library converts.
    pub(in crate::file) memory: Id<'h>,
}

impl Hdf5 {
    /// A copy of one of the library's types.
    pub(in crate::file) fn standard(&self, name: &str) -> Result<Id<'_>, Failure> {
        self.H5Tcopy(self.global(&format!("H5T_{name}_g"))?)
    }

    /// The type of a kind in files that this crate writes.
    pub(in crate::file) fn type_of(&self, kind: Kind) -> Result<Id<'_>, Failure> {
        self.ordered(kind, "LE", PARTS[0])
    }

    fn ordered(&self, kind: Kind, order: &str, parts: [&CStr; 2]) -> Result<Id<'_>, Failure> {
        let bits = 8 * kind.number();
        match kind {
            Kind::Signed(_) => self.standard(&format!("STD_I{bits}{order}")),
            Kind::Unsigned(_) => self.standard(&format!("STD_U{bits}{order}")),
            Kind::Float(_) => self.standard(&format!("IEEE_F{bits}{order}")),
            Kind::Complex(bytes) => {
                let (whole, part) = (self.H5Tcreate(COMPOUND, bytes)?, self.standard(&format!("IEEE_F{bits}{order}"))?);
                self.H5Tinsert(whole.raw, parts[0].into(), 0, part.raw)?;
                self.H5Tinsert(whole.raw, parts[1].into(), bytes / 2, part.raw)?;
                Ok(whole)
            }
            Kind::Opaque(bytes) => {
                let whole = self.H5Tcreate(OPAQUE, bytes)?;
                self.H5Tset_tag(whole.raw, c"".into())?;
                Ok(whole)
            }
        }
    }

    /// The kind of a type, if it has one. Booleans and other names for numbers are their numbers.
    pub(in crate::file) fn known(&self, of: &Id<'_>) -> Result<Option<Known<'_>>, Failure> {
        let (class, size) = (self.H5Tget_class(of.raw)?, self.size(of));
        let mut parts = PARTS[0];
        let kind = match (class, size) {
            // The type of Python's booleans.
            (ENUM, 1) if self.member(of, 0).is_ok_and(|name| &*name == c"FALSE") => Kind::Unsigned(1),
            (ENUM, _) => return self.known(&self.H5Tget_super(of.raw)?),
            (INTEGER, 1 | 2 | 4 | 8) if self.H5Tget_sign(of.raw)? == 0 => Kind::Unsigned(size),
            (INTEGER, 1 | 2 | 4 | 8) => Kind::Signed(size),
            // Two bytes are no kind, but four have their values.
            (FLOAT, 2 | 4) => Kind::Float(4),
            (FLOAT, 8) => Kind::Float(8),
            (COMPLEX, 8 | 16) => {
                let part = self.known(&self.H5Tget_super(of.raw)?)?;
                let memory = self.standard(&format!("COMPLEX_IEEE_F{}LE", 4 * size))?;
                return Ok(part.map(|part| Known { kind: Kind::Complex(size), is_swapped: part.is_swapped, memory }));
            }
            (COMPOUND, 8 | 16) if self.H5Tget_nmembers(of.raw)? == 2 => {
                let names = [self.member(of, 0)?, self.member(of, 1)?];
                let Some(&found) = PARTS.iter().find(|parts| parts[0] == &*names[0] && parts[1] == &*names[1]) else {
                    return Ok(None);
                };
                for member in 0..2 {
                    let member = self.H5Tget_member_type(of.raw, member)?;
                    if self.H5Tget_class(member.raw)? != FLOAT || 2 * self.size(&member) != size {
                        return Ok(None);
                    }
                }
                parts = found;
                Kind::Complex(size)
            }
            (OPAQUE, 1..) => {
                return Ok(Some(Known { kind: Kind::Opaque(size), is_swapped: Some(false), memory: self.H5Tcopy(of.raw)? }));
            }
            _ => return Ok(None),
        };
        let memory = self.ordered(kind, "LE", parts)?;
        let is_swapped = if class == ENUM || self.H5Tequal(of.raw, memory.raw)? > 0 {
            Some(false)
        } else {
            (self.H5Tequal(of.raw, self.ordered(kind, "BE", parts)?.raw)? > 0).then_some(true)
        };
        Ok(Some(Known { kind, is_swapped, memory }))
    }
}
