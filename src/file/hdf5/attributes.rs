//! Attributes of files, groups and data sets.

use crate::file::{
    libhdf5::{DEFAULT, ENUM, FLOAT, Hdf5, INTEGER, Id, STRING, text},
    variable::{Attribute, Attributes},
    visit::Failure,
};

/// What only the libraries for HDF5 and netCDF use.
const HIDDEN: [&str; 9] = [
    "CLASS",
    "NAME",
    "REFERENCE_LIST",
    "DIMENSION_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_nc3_strict",
];
/// `H5T_VARIABLE`: strings of any length.
const ANY_LENGTH: usize = usize::MAX;
pub(super) const UTF8: i32 = 1;

impl Hdf5 {
    pub(super) fn put_attributes(&self, at: &Id<'_>, attributes: &Attributes) -> Result<(), Failure> {
        attributes.iter().try_for_each(|(name, value)| self.put_attribute(at, name, value))
    }

    pub(super) fn put_attribute(&self, at: &Id<'_>, name: &str, value: &Attribute) -> Result<(), Failure> {
        let numbers =
            |of: &str, shape: &[u64], bytes: &[u8]| self.put(at, name, &self.standard(of)?, &self.space(shape, shape)?, bytes);
        match value {
            Attribute::Text(value) => {
                let of = self.standard("C_S1")?;
                self.H5Tset_size(of.raw, ANY_LENGTH)?;
                self.H5Tset_cset(of.raw, UTF8)?;
                self.put_text(at, name, &of, value)
            }
            Attribute::Integer(value) => numbers("STD_I64LE", &[], &value.to_le_bytes()),
            Attribute::Real(value) => numbers("IEEE_F64LE", &[], &value.to_le_bytes()),
            Attribute::Integers(values) => numbers("STD_I64LE", &[values.len() as u64], bytemuck::cast_slice(values)),
            Attribute::Reals(values) => numbers("IEEE_F64LE", &[values.len() as u64], bytemuck::cast_slice(values)),
        }
    }

    /// A text of exactly its length, as the specification of scales asks for.
    pub(super) fn put_label(&self, at: &Id<'_>, name: &str, value: &str) -> Result<(), Failure> {
        let (of, value) = (self.standard("C_S1")?, text(value)?);
        self.H5Tset_size(of.raw, value.as_bytes_with_nul().len())?;
        self.put(at, name, &of, &self.space(&[], &[])?, value.as_bytes_with_nul())
    }

    /// All attributes of types that are known, but for those of libraries.
    pub(super) fn get_attributes(&self, at: &Id<'_>) -> Result<Attributes, Failure> {
        let mut attributes = Vec::new();
        for name in self.names(at, true)? {
            if !HIDDEN.contains(&name.as_str())
                && let Some(value) = self.get_attribute(at, &name)?
            {
                attributes.push((name, value));
            }
        }
        Ok(attributes)
    }

    /// An attribute, if it is there and has a type that is known.
    pub(super) fn get_attribute(&self, at: &Id<'_>, name: &str) -> Result<Option<Attribute>, Failure> {
        const NO_ELEMENTS: i32 = 2;
        let name = text(name)?;
        if self.H5Aexists(at.raw, (&*name).into())? == 0 {
            return Ok(None);
        }
        let attribute = self.H5Aopen(at.raw, (&*name).into(), DEFAULT)?;
        let (of, space) = (self.H5Aget_type(attribute.raw)?, self.H5Aget_space(attribute.raw)?);
        let shape = self.extents(&space)?.0;
        if self.H5Sget_simple_extent_type(space.raw)? == NO_ELEMENTS {
            return Ok(None);
        }
        let class = self.H5Tget_class(of.raw)?;
        let memory = match class {
            STRING if shape.iter().any(|&extent| extent != 1) => return Ok(None),
            STRING if self.H5Tis_variable_str(of.raw)? > 0 => {
                return self.get_text(&attribute, &of, &space).map(|text| Some(Attribute::Text(text)));
            }
            STRING => of,
            INTEGER | ENUM => self.standard("STD_I64LE")?,
            FLOAT => self.standard("IEEE_F64LE")?,
            _ => return Ok(None),
        };
        let Some(bytes) = self.get(&attribute, &memory)? else { return Ok(None) };
        let eights = || bytes.as_chunks().0.iter();
        Ok(match (class, shape.len()) {
            (STRING, _) => {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                Some(Attribute::Text(String::from_utf8_lossy(&bytes[..end]).into_owned()))
            }
            (FLOAT, 0) => eights().next().map(|&bytes| Attribute::Real(f64::from_le_bytes(bytes))),
            (FLOAT, 1) => Some(Attribute::Reals(eights().map(|&bytes| f64::from_le_bytes(bytes)).collect())),
            (_, 0) => eights().next().map(|&bytes| Attribute::Integer(i64::from_le_bytes(bytes))),
            (_, 1) => Some(Attribute::Integers(eights().map(|&bytes| i64::from_le_bytes(bytes)).collect())),
            _ => None,
        })
    }
}
