//! Names of axes: each is a data set of its own, a *scale*, in the group of the arrays that have the axis.
//!
//! An array has references to the scales of its axes, and a scale to its arrays. netCDF reads scales as dimensions, and xarray as coordinates.
//!
//! # Source
//! HDF5 Dimension Scale Specification; NetCDF User's Guide, file format specifications, "NetCDF-4 Format".

use std::collections::BTreeMap;

use crate::file::{
    kind::Kind,
    libhdf5::{COMPOUND, DEFAULT, Hdf5, Id, text},
    variable::{Attribute, MOST_COORDINATES, Variable},
    visit::Failure,
};

/// The axis of time steps, in the first group.
pub(super) const TIME: &str = "time";
/// The attribute of a file that is the unit of its times.
pub(super) const TIME_UNITS: &str = "time_units";
const SCALE: &str = "DIMENSION_SCALE";
/// What netCDF calls a scale that has an extent and no values.
const NO_VALUES: &str = "This is a netCDF dimension but not a netCDF variable.";

/// A scale of a file that is made.
#[derive(Debug)]
struct Scale {
    path: String,
    extent: usize,
    /// First coordinate and distance. Unknown if the scale is an array of the user.
    coordinates: Option<[f64; 2]>,
    reference: u64,
    /// References to the arrays that have it, and which of their axes it is.
    users: Vec<(u64, u32)>,
}

/// `group/axis`, the scale of a named axis of an array.
fn path_of(variable: &Variable, axis: &str) -> String {
    variable.name.rsplit_once('/').map_or(axis.to_owned(), |(group, _)| format!("{group}/{axis}"))
}

/// Bytes of the coordinates of arrays.
pub(super) fn coordinate_bytes(variables: &[Variable]) -> u64 {
    let mut extents = BTreeMap::new();
    for variable in variables {
        extents.extend(variable.axes.iter().zip(&variable.shape).map(|(axis, &extent)| (path_of(variable, axis), extent)));
    }
    extents.values().filter(|&&extent| extent <= MOST_COORDINATES).map(|&extent| 8 * extent as u64).sum()
}

impl Hdf5 {
    /// Names the axes of arrays that are in a file, with time as the axis before theirs if they have steps.
    pub(super) fn put_scales(&self, file: &Id<'_>, variables: &[Variable], has_steps: bool) -> Result<(), Failure> {
        let mut scales: Vec<Scale> = Vec::new();
        if has_steps {
            scales.push(Scale {
                path: TIME.into(),
                extent: 0,
                coordinates: None,
                reference: self.reference(file, TIME)?,
                users: Vec::new(),
            });
        }
        for variable in variables {
            let me = self.reference(file, &variable.name)?;
            let mut lists = Vec::new();
            if has_steps {
                scales[0].users.push((me, 0));
                lists.push(vec![scales[0].reference]);
            }
            for (axis, name) in variable.axes.iter().enumerate() {
                if name.is_empty() {
                    lists.push(Vec::new());
                    continue;
                }
                let number = self.scale(file, &mut scales, variables, has_steps, variable, axis)?;
                if scales[number].path != variable.name {
                    scales[number].users.push((me, lists.len() as u32));
                    lists.push(vec![scales[number].reference]);
                }
            }
            lists.resize(if lists.is_empty() { 0 } else { variable.shape.len() + usize::from(has_steps) }, Vec::new());
            if lists.iter().any(|list| !list.is_empty()) {
                let of = self.H5Tvlen_create(self.standard("STD_REF_OBJ")?.raw)?;
                self.put_lists(&self.at(file, &variable.name)?, "DIMENSION_LIST", &of, &lists)?;
            }
        }
        scales.iter().try_for_each(|scale| self.put_users(file, scale))
    }

    /// The number of the scale of an axis, which is made if it is not there.
    fn scale(
        &self,
        file: &Id<'_>,
        scales: &mut Vec<Scale>,
        variables: &[Variable],
        has_steps: bool,
        variable: &Variable,
        axis: usize,
    ) -> Result<usize, Failure> {
        let (name, extent) = (&variable.axes[axis], variable.shape[axis]);
        let path = path_of(variable, name);
        let refuse =
            |other: &str| Err(Failure::Format(format!("cannot hold the axis {path:?} of {extent} elements and {other}")));
        let coordinates = variable.line(axis);
        if let Some(number) = scales.iter().position(|scale| scale.path == path) {
            let found = &scales[number];
            if found.extent != extent || (has_steps && number == 0) {
                return refuse(&format!("another of {} elements; give one of them another name", found.extent));
            }
            if coordinates.is_some() && found.coordinates.is_some() && coordinates != found.coordinates {
                return refuse("another with other coordinates; give one of them another name");
            }
            return Ok(number);
        }
        let own = variables.iter().find(|own| own.name == path);
        match own {
            Some(own) if has_steps || own.shape != [extent] || own.axes.iter().any(|axis| path_of(own, axis) != path) => {
                return refuse("an array of the same name that is not its coordinates");
            }
            Some(_) => {}
            None => self.put_coordinates(file, &path, extent, coordinates)?,
        }
        let reference = self.reference(file, &path)?;
        scales.push(Scale { path, extent, coordinates: coordinates.filter(|_| own.is_none()), reference, users: Vec::new() });
        Ok(scales.len() - 1)
    }

    fn put_coordinates(&self, file: &Id<'_>, path: &str, extent: usize, coordinates: Option<[f64; 2]>) -> Result<(), Failure> {
        let space = self.space(&[extent as u64], &[extent as u64])?;
        let coordinates = coordinates.filter(|_| extent <= MOST_COORDINATES);
        // Without values it takes no place in the file.
        let of = if coordinates.is_some() { self.type_of(Kind::Float(8))? } else { self.standard("IEEE_F32BE")? };
        let dataset =
            self.H5Dcreate2(file.raw, (&*text(path)?).into(), of.raw, space.raw, self.links()?.raw, DEFAULT, DEFAULT)?;
        match coordinates {
            Some([origin, spacing]) => {
                let values: Vec<f64> = (0..extent).map(|i| origin + i as f64 * spacing).collect();
                self.write(&dataset, &of, &[0], &[extent as u64], bytemuck::cast_slice(&values))
            }
            None => self.put_label(&dataset, "NAME", &format!("{NO_VALUES}{extent:10}")),
        }
    }

    /// Makes a data set a scale of its arrays.
    fn put_users(&self, file: &Id<'_>, scale: &Scale) -> Result<(), Failure> {
        let dataset = self.at(file, &scale.path)?;
        self.put_label(&dataset, "CLASS", SCALE)?;
        if self.H5Aexists(dataset.raw, c"NAME".into())? == 0 {
            self.put_label(&dataset, "NAME", scale.path.rsplit('/').next().unwrap_or_default())?;
        }
        if scale.users.is_empty() {
            return Ok(());
        }
        let bytes: Vec<u8> =
            scale.users.iter().flat_map(|&(user, axis)| [user, u64::from(axis)]).flat_map(u64::to_le_bytes).collect();
        let space = [scale.users.len() as u64];
        self.put(&dataset, "REFERENCE_LIST", &self.user()?, &self.space(&space, &space)?, &bytes)
    }

    /// The type of a reference to an array and the number of its axis.
    fn user(&self) -> Result<Id<'_>, Failure> {
        let user = self.H5Tcreate(COMPOUND, 16)?;
        self.H5Tinsert(user.raw, c"dataset".into(), 0, self.standard("STD_REF_OBJ")?.raw)?;
        self.H5Tinsert(user.raw, c"dimension".into(), 8, self.standard("STD_U32LE")?.raw)?;
        Ok(user)
    }

    /// Paths of the arrays that have a scale.
    pub(super) fn users(&self, file: &Id<'_>, scale: &Id<'_>) -> Result<Vec<String>, Failure> {
        let name = c"REFERENCE_LIST".into();
        if self.H5Aexists(scale.raw, name)? == 0 {
            return Ok(Vec::new());
        }
        let bytes = self.get(&self.H5Aopen(scale.raw, name, DEFAULT)?, &self.user()?)?.unwrap_or_default();
        bytes.as_chunks().0.chunks(2).map(|user| Ok(self.referred(file, u64::from_le_bytes(user[0]))?.1)).collect()
    }

    pub(super) fn is_scale(&self, dataset: &Id<'_>) -> Result<bool, Failure> {
        Ok(self.get_attribute(dataset, "CLASS")? == Some(Attribute::Text(SCALE.into())))
    }

    /// Returns true if a scale is nothing but an extent.
    pub(super) fn is_without_values(&self, dataset: &Id<'_>) -> Result<bool, Failure> {
        let name = self.get_attribute(dataset, "NAME")?;
        Ok(matches!(name, Some(Attribute::Text(name)) if name.starts_with(NO_VALUES)))
    }

    /// Paths of the scales of a data set's axes, empty for an axis without. None if no axis has one.
    pub(super) fn scales_of(&self, file: &Id<'_>, dataset: &Id<'_>, path: &str, axes: usize) -> Result<Vec<String>, Failure> {
        let name = c"DIMENSION_LIST".into();
        if self.H5Aexists(dataset.raw, name)? == 0 {
            let is_own = axes == 1 && self.is_scale(dataset)?;
            return Ok(if is_own { vec![path.to_owned()] } else { Vec::new() });
        }
        let attribute = self.H5Aopen(dataset.raw, name, DEFAULT)?;
        let (of, found) = (self.H5Tvlen_create(self.standard("STD_REF_OBJ")?.raw)?, self.H5Aget_type(attribute.raw)?);
        if self.H5Tequal(of.raw, found.raw)? == 0 {
            return Ok(Vec::new());
        }
        // A scale that was removed is no scale.
        let path = |list: &Vec<u64>| {
            list.first().and_then(|&scale| self.referred(file, scale).ok()).map_or(String::new(), |(_, path)| path)
        };
        let paths: Vec<String> = self.get_lists(&attribute, &of, axes)?.iter().map(path).collect();
        Ok(if paths.iter().all(String::is_empty) { Vec::new() } else { paths })
    }
}
