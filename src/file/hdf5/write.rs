//! New files.

use std::path::Path;

use super::{
    attributes::UTF8,
    read::{CHUNKED, CONTIGUOUS},
    scales::coordinate_bytes,
};
use crate::{
    file::{
        libhdf5::{DEFAULT, Hdf5, Id, text, turn},
        placed::{Place, Placed},
        variable::{Attribute, Attributes, Variable},
        visit::Failure,
    },
    memory::limits,
};

/// `H5P_CRT_ORDER_TRACKED` and `H5P_CRT_ORDER_INDEXED`.
const ORDERED: u32 = 3;

/// Makes a file of arrays whose elements lie one after the other, and returns where. The elements themselves are still to be written.
pub(in crate::file) fn create(path: &Path, variables: &[Variable], attributes: &Attributes) -> Result<Vec<Placed>, Failure> {
    let elements = variables.iter().fold(0, |sum: u64, variable| sum.saturating_add(variable.bytes().unwrap_or(u64::MAX)));
    check_file(elements, variables)?;
    let hdf5 = turn()?;
    let file = hdf5.new_file(path, attributes)?;
    let place = |variable: &Variable| {
        let shape: Vec<u64> = variable.shape.iter().map(|&extent| extent as u64).collect();
        let dataset = hdf5.new_array(&file, variable, &shape, &shape, None)?;
        let begin = hdf5.offset(&dataset).unwrap_or_default();
        if begin == 0 && variable.bytes() != Some(0) {
            return Err(Failure::Format(format!("has no place for {:?}", variable.name)));
        }
        Ok(variable.placed(Place::Contiguous { file: path.to_owned(), begin }))
    };
    let placed = variables.iter().map(place).collect::<Result<_, Failure>>()?;
    hdf5.put_scales(&file, variables, false)?;
    file.close_file()?;
    Ok(placed)
}

/// Returns an error if a file may not be as long as these bytes, the coordinates of arrays, and what is said of them.
pub(super) fn check_file(elements: u64, variables: &[Variable]) -> Result<(), Failure> {
    const SAID: u64 = 8 << 10;
    let said = SAID * (1 + variables.len() as u64);
    Ok(limits::check_file(elements.saturating_add(coordinate_bytes(variables)).saturating_add(said))?)
}

impl Variable {
    pub(super) fn placed(&self, place: Place) -> Placed {
        Placed { kind: self.kind, shape: self.shape.clone(), is_reversed: false, is_swapped: false, place }
    }
}

impl Hdf5 {
    /// Properties of a new object of a class, such as `GROUP`.
    pub(super) fn properties(&self, class: &str) -> Result<Id<'_>, Failure> {
        self.H5Pcreate(self.global(&format!("H5P_CLS_{class}_CREATE_ID_g"))?)
    }

    /// Properties of new names.
    pub(super) fn links(&self) -> Result<Id<'_>, Failure> {
        let links = self.properties("LINK")?;
        self.H5Pset_char_encoding(links.raw, UTF8)?;
        Ok(links)
    }

    pub(super) fn new_file(&self, path: &Path, attributes: &Attributes) -> Result<Id<'_>, Failure> {
        let properties = self.properties("FILE")?;
        self.H5Pset_link_creation_order(properties.raw, ORDERED)?;
        self.H5Pset_attr_creation_order(properties.raw, ORDERED)?;
        let file = self.create(path, &properties)?;
        self.put_attributes(&file, attributes)?;
        Ok(file)
    }

    /// Makes a data set that is allocated at once and not filled, the groups that it is in, and its attributes.
    pub(super) fn new_array(
        &self,
        file: &Id<'_>,
        variable: &Variable,
        shape: &[u64],
        most: &[u64],
        chunk: Option<&[u64]>,
    ) -> Result<Id<'_>, Failure> {
        const EARLY: i32 = 1;
        const NEVER: i32 = 1;
        let name = &variable.name;
        if name.split('/').any(|part| part.is_empty() || part == ".") {
            return Err(Failure::Format(format!(
                "cannot hold an array of the name {name:?}; use a name such as \"pressure\" or \"flow/pressure\""
            )));
        }
        for (end, _) in name.match_indices('/') {
            let group = text(&name[..end])?;
            if self.H5Lexists(file.raw, (&*group).into(), DEFAULT)? == 0 {
                let properties = self.properties("GROUP")?;
                self.H5Pset_link_creation_order(properties.raw, ORDERED)?;
                self.H5Gcreate2(file.raw, (&*group).into(), self.links()?.raw, properties.raw, DEFAULT)?;
            }
        }
        let properties = self.properties("DATASET")?;
        self.H5Pset_attr_creation_order(properties.raw, ORDERED)?;
        self.H5Pset_alloc_time(properties.raw, EARLY)?;
        self.H5Pset_fill_time(properties.raw, NEVER)?;
        self.H5Pset_layout(properties.raw, if chunk.is_some() { CHUNKED } else { CONTIGUOUS })?;
        chunk.map_or(Ok(()), |chunk| self.set_chunk(&properties, chunk))?;
        let (of, space) = (self.type_of(variable.kind)?, self.space(shape, most)?);
        let (name, links) = (text(name)?, self.links()?);
        let dataset = self.H5Dcreate2(file.raw, (&*name).into(), of.raw, space.raw, links.raw, properties.raw, DEFAULT)?;
        if let Some(units) = &variable.units {
            self.put_attribute(&dataset, "units", &Attribute::Text(units.clone()))?;
        }
        for (name, values) in [("spacing", &variable.spacing), ("origin", &variable.origin)] {
            if !values.is_empty() {
                self.put_attribute(&dataset, name, &Attribute::Reals(values.clone()))?;
            }
        }
        self.put_attributes(&dataset, &variable.attributes)?;
        Ok(dataset)
    }
}
