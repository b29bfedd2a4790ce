//! Safe calls of the functions that get the addresses of several numbers.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    io, ptr, slice,
};

use super::{
    ffi::{DEFAULT, Hdf5, Hid, Id, StackedError, UNDEFINED},
    library::text,
};
use crate::file::visit::Failure;

/// Axes that a data set can have.
pub(in crate::file) const MOST_AXES: usize = 32;
/// Chunks that are asked for one at a time, by a library that has no other way: it looks for each from the first one on.
const MOST_CHUNKS: u64 = 4096;

impl Hdf5 {
    /// The object with this path.
    pub(in crate::file) fn at(&self, file: &Id<'_>, path: &str) -> Result<Id<'_>, Failure> {
        self.H5Oopen(file.raw, (&*text(path)?).into(), DEFAULT)
    }

    /// What a function returned, or why it failed.
    pub(in crate::file) fn checked<N: Copy + Into<i64>>(&self, returned: N) -> Result<N, Failure> {
        if returned.into() < 0 { Err(self.failure()) } else { Ok(returned) }
    }

    /// The reasons in the library's stack of errors, from the call to its cause.
    fn failure(&self) -> Failure {
        unsafe extern "C" fn collect(_: c_uint, error: *const StackedError, reasons: *mut c_void) -> c_int {
            // SAFETY: the library passes an error that is valid during the call.
            let description = unsafe { (*error).description };
            if !description.is_null() {
                // SAFETY: it is a string, valid as the error is.
                let reason = unsafe { CStr::from_ptr(description) }.to_string_lossy().into_owned();
                // SAFETY: the vector of the caller, which only this function uses meanwhile.
                unsafe { &mut *reasons.cast::<Vec<String>>() }.push(reason.replace('\n', " "));
            }
            0
        }
        let mut reasons: Vec<String> = Vec::new();
        const FROM_THE_CALL: c_int = 1;
        // SAFETY: the visitor gets the vector that it expects.
        let _ = unsafe { (self.others.errors)(DEFAULT, FROM_THE_CALL, collect, ptr::from_mut(&mut reasons).cast()) };
        let number = |reason: &String| reason.split("errno = ").nth(1)?.split(',').next()?.trim().parse().ok();
        if let Some(number) = reasons.iter().find_map(number).filter(|&number: &i32| number > 0) {
            return Failure::System(io::Error::from_raw_os_error(number));
        }
        if reasons.iter().any(|reason| reason.contains("file signature not found")) {
            return Failure::Format("is not an HDF5 file".into());
        }
        reasons.dedup();
        let cause = if reasons.is_empty() { "no reason is given".into() } else { reasons.join(": ") };
        Failure::Format(format!("is refused by HDF5: {cause}"))
    }

    /// Names of what a group links to in its file, or of the attributes of an object, in the order in which they were made if the file has that.
    /// Names that are not UTF-8 are left out.
    pub(in crate::file) fn names(&self, of: &Id<'_>, attributes: bool) -> Result<Vec<String>, Failure> {
        const BY_NAME: c_int = 0;
        const BY_CREATION: c_int = 1;
        let by = |index| {
            let mut names: Vec<CString> = Vec::new();
            let value = ptr::from_mut(&mut names).cast();
            let visited = if attributes {
                // SAFETY: the visitor gets the vector that it expects; the iteration begins at the start.
                unsafe { self.H5Aiterate2(of.raw, index, 0, ptr::null_mut(), push_name, value) }
            } else {
                // SAFETY: as above.
                unsafe { self.H5Literate(of.raw, index, 0, ptr::null_mut(), push_hard_link, value) }
            };
            visited.map(|_| names.into_iter().filter_map(|name| name.into_string().ok()).collect())
        };
        by(BY_CREATION).or_else(|_| by(BY_NAME))
    }

    /// A data space; of one element if it has no axes.
    pub(in crate::file) fn space(&self, shape: &[u64], most: &[u64]) -> Result<Id<'_>, Failure> {
        assert_eq!(shape.len(), most.len(), "an axis has an extent and a largest extent");
        if shape.is_empty() {
            const SCALAR: c_int = 0;
            return self.H5Screate(SCALAR);
        }
        if shape.len() > MOST_AXES {
            return Err(Failure::Format(format!("cannot hold an array of {} axes: HDF5 has at most {MOST_AXES}", shape.len())));
        }
        // SAFETY: both have an extent for each axis.
        let made = unsafe { (self.others.simple)(shape.len() as c_int, shape.as_ptr(), most.as_ptr()) };
        self.checked(made).map(|raw| Id::new(self, raw))
    }

    /// The extents of a data space, and the largest ones that it can get.
    pub(in crate::file) fn extents(&self, space: &Id<'_>) -> Result<(Vec<u64>, Vec<u64>), Failure> {
        let axes = self.H5Sget_simple_extent_ndims(space.raw)? as usize;
        let (mut shape, mut most) = (vec![0; axes], vec![0; axes]);
        // SAFETY: both have room for each axis.
        unsafe { self.H5Sget_simple_extent_dims(space.raw, shape.as_mut_ptr(), most.as_mut_ptr()) }?;
        Ok((shape, most))
    }

    /// Changes the extents of a data set.
    pub(in crate::file) fn set_extents(&self, dataset: &Id<'_>, shape: &[u64]) -> Result<(), Failure> {
        let axes = self.extents(&self.H5Dget_space(dataset.raw)?)?.0.len();
        assert_eq!(axes, shape.len(), "an extent for each axis");
        // SAFETY: there is an extent for each axis.
        unsafe { self.H5Dset_extent(dataset.raw, shape.as_ptr()) }.map(drop)
    }

    pub(in crate::file) fn set_chunk(&self, list: &Id<'_>, chunk: &[u64]) -> Result<(), Failure> {
        // SAFETY: there is an extent for each of these axes.
        unsafe { self.H5Pset_chunk(list.raw, chunk.len() as c_int, chunk.as_ptr()) }.map(drop)
    }

    pub(in crate::file) fn chunk(&self, list: &Id<'_>) -> Result<Vec<u64>, Failure> {
        let mut chunk = [0; MOST_AXES + 1];
        // SAFETY: there is room for these axes.
        let axes = unsafe { self.H5Pget_chunk(list.raw, chunk.len() as c_int, chunk.as_mut_ptr()) }?;
        Ok(chunk[..(axes as usize).min(chunk.len())].to_vec())
    }

    /// The address of a contiguous data set, if it has one.
    pub(in crate::file) fn offset(&self, dataset: &Id<'_>) -> Option<u64> {
        Some((self.others.offset)(dataset.raw)).filter(|&offset| offset != UNDEFINED)
    }

    /// The address of the chunk with this first element, if it has one.
    pub(in crate::file) fn chunk_at(&self, dataset: &Id<'_>, first: &[u64]) -> Result<Option<u64>, Failure> {
        let (mut mask, mut address, mut bytes) = (0, UNDEFINED, 0);
        // SAFETY: `first` has a place for each axis of the data set, which the caller made; the others are places for one number.
        unsafe { self.H5Dget_chunk_info_by_coord(dataset.raw, first.as_ptr(), &mut mask, &mut address, &mut bytes) }?;
        Ok(Some(address).filter(|&address| address != UNDEFINED))
    }

    /// First elements and addresses of all chunks, unless finding them takes too long.
    pub(in crate::file) fn chunks(&self, dataset: &Id<'_>, space: &Id<'_>, count: u64) -> Result<Option<Vec<Chunk>>, Failure> {
        let axes = self.extents(space)?.0.len();
        let mut chunks: Chunks = (axes, Vec::new());
        if let Some(visit) = self.others.chunks {
            // SAFETY: the visitor gets the number of axes and the vector that it expects.
            self.checked(unsafe { visit(dataset.raw, DEFAULT, push_chunk, ptr::from_mut(&mut chunks).cast()) })?;
            return Ok(Some(chunks.1));
        }
        if count > MOST_CHUNKS {
            return Ok(None);
        }
        for number in 0..count {
            let (mut first, mut mask, mut address, mut bytes) = ([0; MOST_AXES + 1], 0, UNDEFINED, 0);
            let place = first.as_mut_ptr();
            // SAFETY: there is room for the most axes that a data set can have; the others are places for one number.
            unsafe { self.H5Dget_chunk_info(dataset.raw, space.raw, number, place, &mut mask, &mut address, &mut bytes) }?;
            chunks.1.push((first[..axes].to_vec(), address));
        }
        Ok(Some(chunks.1))
    }

    pub(in crate::file) fn size(&self, of: &Id<'_>) -> usize {
        (self.others.size)(of.raw)
    }

    /// The name of a member of a compound type.
    pub(in crate::file) fn member(&self, of: &Id<'_>, number: c_uint) -> Result<CString, Failure> {
        let name = (self.others.member)(of.raw, number);
        if name.is_null() {
            return Err(self.failure());
        }
        // SAFETY: it is a string.
        let copy = unsafe { CStr::from_ptr(name) }.to_owned();
        // SAFETY: the library allocated it, and nothing refers to it.
        unsafe { self.H5free_memory(name.cast()) }?;
        Ok(copy)
    }
}

/// The first element of a chunk, and its address.
pub(in crate::file) type Chunk = (Vec<u64>, u64);

/// The number of axes, and the chunks that were visited.
type Chunks = (usize, Vec<Chunk>);

unsafe extern "C" fn push_name(_: Hid, name: *const c_char, _: *const c_void, names: *mut c_void) -> c_int {
    // SAFETY: the library passes a string.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    // SAFETY: the vector of the caller, which only this function uses meanwhile.
    unsafe { &mut *names.cast::<Vec<CString>>() }.push(name);
    0
}

unsafe extern "C" fn push_hard_link(group: Hid, name: *const c_char, about: *const c_void, names: *mut c_void) -> c_int {
    const HARD: c_int = 0;
    // SAFETY: what the library says of a link begins with its kind.
    if unsafe { *about.cast::<c_int>() } == HARD {
        // SAFETY: the same arguments.
        return unsafe { push_name(group, name, about, names) };
    }
    0
}

unsafe extern "C" fn push_chunk(first: *const u64, _: c_uint, address: u64, _: u64, chunks: *mut c_void) -> c_int {
    // SAFETY: the number and the vector of the caller, which only this function uses meanwhile.
    let (axes, chunks) = unsafe { &mut *chunks.cast::<Chunks>() };
    // SAFETY: the library passes a place for each axis.
    chunks.push((unsafe { slice::from_raw_parts(first, *axes) }.to_vec(), address));
    0
}
