//! What a file holds, and elements that only the library can read.

use std::{collections::BTreeSet, fs, path::Path};

use super::scales::{TIME, TIME_UNITS};
use crate::file::{
    contents::Contents,
    libhdf5::{DEFAULT, Hdf5, Id, MOST_AXES, text, turn},
    placed::{Place, Placed},
    variable::{Attribute, Variable},
    visit::Failure,
};

/// Groups in groups.
const DEEPEST: usize = 64;
/// `H5I_type_t`.
const GROUP: i32 = 2;
const DATASET: i32 = 5;
/// `H5D_layout_t`.
pub(super) const CONTIGUOUS: i32 = 1;
pub(super) const CHUNKED: i32 = 2;
/// Bytes that are read by the library at once.
const SMALL_PART: usize = 1 << 20;
const LARGEST_PART: usize = 256 << 20;

/// What a file holds: all data sets of types that are known, in all groups.
pub(in crate::file) fn open(path: &Path) -> Result<Contents, Failure> {
    let bytes = fs::metadata(path)?.len();
    let hdf5 = turn()?;
    let file = hdf5.open(path, false)?;
    let mut contents = Contents { attributes: hdf5.get_attributes(&file)?, ..Contents::default() };
    if let Some((dataset, count)) = hdf5.times(&file)? {
        contents.times = Some(hdf5.time_values(&dataset, count)?);
        if let Some(units) = hdf5.get_attribute(&dataset, "units")? {
            contents.attributes.push((TIME_UNITS.into(), units));
        }
    }
    let block = hdf5.user_block(&file)?;
    let mut search = Search { hdf5: &hdf5, file: &file, path, bytes, block, seen: BTreeSet::new(), contents };
    search.group(&file, "", 0)?;
    Ok(search.contents)
}

/// A visit of all groups.
struct Search<'s> {
    hdf5: &'s Hdf5,
    file: &'s Id<'s>,
    path: &'s Path,
    /// Of the file.
    bytes: u64,
    /// Bytes before what HDF5 knows.
    block: u64,
    /// References to the objects that were met. Objects can have several names, and groups can be in each other.
    seen: BTreeSet<u64>,
    contents: Contents,
}

impl Search<'_> {
    fn group(&mut self, group: &Id<'_>, path: &str, depth: usize) -> Result<(), Failure> {
        if depth > DEEPEST {
            return Err(Failure::Format(format!("has more than {DEEPEST} groups inside each other")));
        }
        for name in self.hdf5.names(group, false)? {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            if !self.seen.insert(self.hdf5.reference(group, &name)?) {
                continue;
            }
            let object = match self.hdf5.at(group, &name) {
                // What only later versions of the library know is left out.
                Err(Failure::Format(what)) if what.contains("bad version number") => continue,
                object => object?,
            };
            match self.hdf5.H5Iget_type(object.raw)? {
                GROUP => self.group(&object, &path, depth + 1)?,
                DATASET => self.dataset(&object, &path)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn dataset(&mut self, dataset: &Id<'_>, name: &str) -> Result<(), Failure> {
        const NO_ELEMENTS: i32 = 2;
        let hdf5 = self.hdf5;
        let is_time = name == TIME && self.contents.times.is_some();
        let Some(known) = hdf5.known(&hdf5.H5Dget_type(dataset.raw)?)? else { return Ok(()) };
        if is_time || hdf5.is_without_values(dataset)? {
            return Ok(());
        }
        let wrong = |what: &str| Failure::Format(format!("has an array {name:?} {what}"));
        let space = hdf5.H5Dget_space(dataset.raw)?;
        let mut extents = hdf5.extents(&space)?.0;
        if hdf5.H5Sget_simple_extent_type(space.raw)? == NO_ELEMENTS {
            extents = vec![0];
        }
        let shape: Option<Vec<usize>> = extents.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let shape = shape.filter(|shape| shape.len() <= MOST_AXES).ok_or_else(|| wrong("that is too large"))?;
        let mut variable = Variable::new(name, known.kind, &shape);
        let bytes = variable.bytes().filter(|&bytes| bytes <= isize::MAX as u64).ok_or_else(|| wrong("that is too large"))?;

        let scales = hdf5.scales_of(self.file, dataset, name, shape.len())?;
        let steps = self.contents.times.as_ref().filter(|_| scales.first().is_some_and(|scale| scale == TIME)).map(Vec::len);
        variable.axes = scales.iter().map(|scale| scale.rsplit('/').next().unwrap_or_default().to_owned()).collect();
        let space_axes = shape.len() - usize::from(steps.is_some());
        for (name, value) in hdf5.get_attributes(dataset)? {
            match value {
                Attribute::Text(units) if name == "units" => variable.units = Some(units),
                Attribute::Reals(values) if name == "spacing" && values.len() == space_axes => variable.spacing = values,
                Attribute::Reals(values) if name == "origin" && values.len() == space_axes => variable.origin = values,
                value => variable.attributes.push((name, value)),
            }
        }
        let mut place = match known.is_swapped {
            _ if bytes == 0 => Some(Place::Contiguous { file: self.path.to_owned(), begin: 0 }),
            Some(_) => self.place(dataset, &shape, known.kind.size(), bytes).map_err(|what| match what {
                Failure::Format(what) => wrong(&what),
                other => other,
            })?,
            None => None,
        };
        if let Some(steps) = steps {
            if shape[0] < steps {
                return Err(wrong(&format!("of {} steps, and {steps} times", shape[0])));
            }
            variable.shape[0] = steps;
            if let Some(Place::Chunks { chunk, begins, .. }) = &mut place {
                let later: usize = shape.iter().zip(&*chunk).skip(1).map(|(extent, chunk)| extent.div_ceil(*chunk)).product();
                begins.truncate(steps.div_ceil(chunk[0]) * later);
            }
        }
        let place = match place {
            Some(place) => place,
            None => {
                let chunk = hdf5.parts(dataset, &variable.shape, known.kind.size())?;
                Place::Library { file: self.path.to_owned(), dataset: name.to_owned(), chunk }
            }
        };
        let is_swapped = known.is_swapped == Some(true) && !matches!(place, Place::Library { .. });
        let placed = Placed { is_swapped, ..variable.placed(place) };
        self.contents.arrays.push((variable, placed));
        Ok(())
    }

    /// Where the elements are, if they are in the file as they are.
    fn place(&self, dataset: &Id<'_>, shape: &[usize], size: usize, bytes: u64) -> Result<Option<Place>, Failure> {
        let hdf5 = self.hdf5;
        let ends = |begin: u64, bytes: u64| {
            let end = begin.checked_add(bytes).filter(|&end| end <= self.bytes);
            end.map(drop).ok_or_else(|| Failure::Format(format!("that reaches beyond the end of the file, byte {}", self.bytes)))
        };
        let list = hdf5.H5Dget_create_plist(dataset.raw)?;
        if hdf5.H5Pget_layout(list.raw)? == CONTIGUOUS {
            let Some(begin) = hdf5.offset(dataset).filter(|_| hdf5.H5Pget_external_count(list.raw).is_ok_and(|count| count == 0))
            else {
                return Ok(None);
            };
            ends(begin, bytes)?;
            return Ok(Some(Place::Contiguous { file: self.path.to_owned(), begin }));
        }
        // Libraries disagree on the addresses of chunks behind a user block.
        let chunk = hdf5.chunk_extents(dataset)?;
        if chunk.is_empty() || chunk.len() != shape.len() || chunk.contains(&0) || self.block > 0 {
            return Ok(None);
        }
        let chunk_bytes = chunk.iter().try_fold(size as u64, |bytes, &extent| bytes.checked_mul(extent as u64));
        let grid: Vec<usize> = shape.iter().zip(&chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
        let total = grid.iter().try_fold(1_u64, |total, &extent| total.checked_mul(extent as u64));
        let (Some(chunk_bytes), Some(total)) = (chunk_bytes, total) else { return Ok(None) };
        let space = hdf5.H5Dget_space(dataset.raw)?;
        let mut count = 0;
        if total.checked_mul(chunk_bytes).is_none_or(|bytes| bytes > self.bytes) {
            return Ok(None);
        }
        hdf5.H5Dget_num_chunks(dataset.raw, space.raw, &mut count)?;
        // Chunks that are not in the file are of the value to fill with.
        if count != total {
            return Ok(None);
        }
        let Some(chunks) = hdf5.chunks(dataset, &space, total)? else { return Ok(None) };
        let mut begins = vec![u64::MAX; total as usize];
        for (first, begin) in chunks {
            let index = |(k, &first): (usize, &u64)| Some(first as usize / chunk[k]).filter(|&index| index < grid[k]);
            let number = first.iter().enumerate().try_fold(0, |number, at| Some(number * grid[at.0] + index(at)?));
            if let Some(number) = number {
                begins[number] = begin;
            }
        }
        begins.iter().try_for_each(|&begin| ends(begin, chunk_bytes))?;
        Ok(Some(Place::Chunks { file: self.path.to_owned(), chunk, begins }))
    }
}

impl Hdf5 {
    fn user_block(&self, file: &Id<'_>) -> Result<u64, Failure> {
        let mut bytes = 0;
        self.H5Pget_userblock(self.H5Fget_create_plist(file.raw)?.raw, &mut bytes)?;
        Ok(bytes)
    }

    /// The data set with this path, if it is one.
    pub(super) fn dataset(&self, file: &Id<'_>, path: &str) -> Result<Option<Id<'_>>, Failure> {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for end in ends {
            if self.H5Lexists(file.raw, (&*text(&path[..end])?).into(), DEFAULT)? == 0 {
                return Ok(None);
            }
        }
        let object = self.at(file, path)?;
        Ok((self.H5Iget_type(object.raw)? == DATASET).then_some(object))
    }

    /// Extents of the parts that the library is best asked for: a chunk, because it decodes a chunk as a whole each time, or several small ones. None
    /// if it has no chunks or they are very large.
    fn parts(&self, dataset: &Id<'_>, shape: &[usize], size: usize) -> Result<Option<Vec<usize>>, Failure> {
        let list = self.H5Dget_create_plist(dataset.raw)?;
        if shape.contains(&0) || self.H5Pget_layout(list.raw)? != CHUNKED {
            return Ok(None);
        }
        let mut part: Vec<usize> = self.chunk(&list)?.iter().map(|&extent| extent as usize).collect();
        // A chunk may be longer than its array.
        part.iter_mut().zip(shape).for_each(|(part, extent)| *part = (*part).min(*extent));
        let bytes = part.iter().try_fold(size, |bytes, &extent| bytes.checked_mul(extent));
        let Some(mut bytes) = bytes.filter(|bytes| part.len() == shape.len() && (1..=LARGEST_PART).contains(bytes)) else {
            return Ok(None);
        };
        for (extent, part) in shape.iter().zip(&mut part).rev() {
            let chunks = (SMALL_PART / bytes).clamp(1, extent.div_ceil(*part));
            (*part, bytes) = (*part * chunks, bytes * chunks);
        }
        Ok(Some(part))
    }

    /// Extents of the chunks of a data set; none if it has no chunks, or they are compressed.
    pub(super) fn chunk_extents(&self, dataset: &Id<'_>) -> Result<Vec<usize>, Failure> {
        let list = self.H5Dget_create_plist(dataset.raw)?;
        if self.H5Pget_layout(list.raw)? != CHUNKED || self.H5Pget_nfilters(list.raw)? > 0 {
            return Ok(Vec::new());
        }
        Ok(self.chunk(&list)?.iter().map(|&extent| extent as usize).collect())
    }
}
