//! Safe calls that move elements of data sets and values of attributes.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char, c_int},
    ptr, slice,
};

use super::{
    ffi::{DEFAULT, Hdf5, Id, Sequence},
    library::text,
};
use crate::file::visit::Failure;

/// `H5R_OBJECT`.
const OBJECT: c_int = 0;
/// Of an attribute; larger ones are not read.
const MOST_BYTES: usize = 1 << 24;

impl Hdf5 {
    /// Reads elements of a data set, as elements of a type without addresses. `bytes` has room for exactly these.
    pub(in crate::file) fn read(
        &self,
        dataset: &Id<'_>,
        of: &Id<'_>,
        start: &[u64],
        count: &[u64],
        bytes: &mut [u8],
    ) -> Result<(), Failure> {
        let (here, there) = self.selected(dataset, of, start, count, bytes.len())?;
        // SAFETY: the bytes are as many as the elements have.
        unsafe { self.H5Dread(dataset.raw, of.raw, here.raw, there.raw, DEFAULT, bytes.as_mut_ptr().cast()) }.map(drop)
    }

    /// Writes elements of a data set, from elements of a type without addresses.
    pub(in crate::file) fn write(
        &self,
        dataset: &Id<'_>,
        of: &Id<'_>,
        start: &[u64],
        count: &[u64],
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let (here, there) = self.selected(dataset, of, start, count, bytes.len())?;
        // SAFETY: the bytes are as many as the elements have.
        unsafe { self.H5Dwrite(dataset.raw, of.raw, here.raw, there.raw, DEFAULT, bytes.as_ptr().cast()) }.map(drop)
    }

    /// Data spaces of a patch, in memory and in the file.
    fn selected(
        &self,
        dataset: &Id<'_>,
        of: &Id<'_>,
        start: &[u64],
        count: &[u64],
        len: usize,
    ) -> Result<(Id<'_>, Id<'_>), Failure> {
        let here = self.space(count, count)?;
        assert_eq!(self.bytes(&here, of)?, Some(len), "bytes of the elements");
        let there = self.H5Dget_space(dataset.raw)?;
        if self.extents(&there)?.0.len() != count.len() {
            return Err(Failure::Format("has changed while it is read".into()));
        }
        if !count.is_empty() {
            const SET: c_int = 0;
            // SAFETY: there is a start and a count for each axis; steps and blocks are one element.
            unsafe { self.H5Sselect_hyperslab(there.raw, SET, start.as_ptr(), ptr::null(), count.as_ptr(), ptr::null()) }?;
        }
        Ok((here, there))
    }

    /// Bytes of the elements of a space, if they can be counted.
    pub(in crate::file) fn bytes(&self, space: &Id<'_>, of: &Id<'_>) -> Result<Option<usize>, Failure> {
        let multiply = |bytes: usize, &extent: &u64| bytes.checked_mul(usize::try_from(extent).ok()?);
        Ok(self.extents(space)?.0.iter().try_fold(self.size(of), multiply))
    }

    /// Adds an attribute, of elements of a type without addresses.
    pub(in crate::file) fn put(&self, at: &Id<'_>, name: &str, of: &Id<'_>, space: &Id<'_>, bytes: &[u8]) -> Result<(), Failure> {
        assert_eq!(self.bytes(space, of)?, Some(bytes.len()), "bytes of the elements");
        let attribute = self.H5Acreate2(at.raw, (&*text(name)?).into(), of.raw, space.raw, DEFAULT, DEFAULT)?;
        // SAFETY: the bytes are as many as the elements have.
        unsafe { self.H5Awrite(attribute.raw, of.raw, bytes.as_ptr().cast()) }.map(drop)
    }

    /// The value of an attribute, as elements of a type without addresses, unless it is very large.
    pub(in crate::file) fn get(&self, attribute: &Id<'_>, of: &Id<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let bytes = self.bytes(&self.H5Aget_space(attribute.raw)?, of)?;
        let Some(mut bytes) = bytes.filter(|&bytes| bytes <= MOST_BYTES).map(|bytes| vec![0; bytes]) else { return Ok(None) };
        // SAFETY: the bytes are as many as the elements have.
        unsafe { self.H5Aread(attribute.raw, of.raw, bytes.as_mut_ptr().cast()) }?;
        Ok(Some(bytes))
    }

    /// Adds a text of any length. `of` is a string type without a length.
    pub(in crate::file) fn put_text(&self, at: &Id<'_>, name: &str, of: &Id<'_>, value: &str) -> Result<(), Failure> {
        let (attribute, value) = (self.attribute(at, name, of, &[])?, text(value)?);
        // SAFETY: the element is the address of a string.
        unsafe { self.H5Awrite(attribute.raw, of.raw, ptr::from_ref(&value.as_ptr()).cast()) }.map(drop)
    }

    fn attribute(&self, at: &Id<'_>, name: &str, of: &Id<'_>, shape: &[u64]) -> Result<Id<'_>, Failure> {
        self.H5Acreate2(at.raw, (&*text(name)?).into(), of.raw, self.space(shape, shape)?.raw, DEFAULT, DEFAULT)
    }

    /// The text of an attribute that has one element, a string without a length, of this type and space.
    pub(in crate::file) fn get_text(&self, attribute: &Id<'_>, of: &Id<'_>, space: &Id<'_>) -> Result<String, Failure> {
        let mut first: *mut c_char = ptr::null_mut();
        // SAFETY: the element is the address of a string.
        unsafe { self.H5Aread(attribute.raw, of.raw, ptr::from_mut(&mut first).cast()) }?;
        if first.is_null() {
            return Ok(String::new());
        }
        // SAFETY: the library has put a string there.
        let copy = unsafe { CStr::from_ptr(first) }.to_string_lossy().into_owned();
        // SAFETY: nothing refers to the string any more.
        unsafe { self.H5Dvlen_reclaim(of.raw, space.raw, DEFAULT, ptr::from_mut(&mut first).cast()) }?;
        Ok(copy)
    }

    /// Adds an attribute of lists of references to objects. `of` is the type of such lists.
    pub(in crate::file) fn put_lists(&self, at: &Id<'_>, name: &str, of: &Id<'_>, lists: &[Vec<u64>]) -> Result<(), Failure> {
        let sequence = |list: &Vec<u64>| Sequence { len: list.len(), first: list.as_ptr().cast_mut().cast() };
        let sequences: Vec<Sequence> = lists.iter().map(sequence).collect();
        let attribute = self.attribute(at, name, of, &[lists.len() as u64])?;
        // SAFETY: the elements are sequences, whose addresses have their lengths.
        unsafe { self.H5Awrite(attribute.raw, of.raw, sequences.as_ptr().cast()) }.map(drop)
    }

    /// The value of an attribute of `count` lists of references. Its type is `of`, that of such lists.
    pub(in crate::file) fn get_lists(&self, attribute: &Id<'_>, of: &Id<'_>, count: usize) -> Result<Vec<Vec<u64>>, Failure> {
        let space = self.H5Aget_space(attribute.raw)?;
        if self.extents(&space)?.0 != [count as u64] {
            return Err(Failure::Format("has a list of scales that is not as long as its array has axes".into()));
        }
        let mut sequences = vec![Sequence { len: 0, first: ptr::null_mut() }; count];
        // SAFETY: there is room for that many sequences.
        unsafe { self.H5Aread(attribute.raw, of.raw, sequences.as_mut_ptr().cast()) }?;
        let list = |sequence: &Sequence| {
            if sequence.len == 0 || sequence.first.is_null() {
                return Vec::new();
            }
            // SAFETY: the library has put that many references there, as one block of its own.
            unsafe { slice::from_raw_parts(sequence.first.cast::<u64>(), sequence.len) }.to_vec()
        };
        let lists = sequences.iter().map(list).collect();
        // SAFETY: nothing refers to the sequences any more.
        unsafe { self.H5Dvlen_reclaim(of.raw, space.raw, DEFAULT, sequences.as_mut_ptr().cast()) }?;
        Ok(lists)
    }

    /// A reference to an object: its address in the file.
    pub(in crate::file) fn reference(&self, at: &Id<'_>, name: &str) -> Result<u64, Failure> {
        const NO_SPACE: i64 = -1;
        let (mut reference, name) = (0_u64, text(name)?);
        // SAFETY: a reference to an object has 8 bytes, and the name is a string.
        unsafe { self.H5Rcreate(ptr::from_mut(&mut reference).cast(), at.raw, name.as_ptr(), OBJECT, NO_SPACE) }?;
        Ok(reference)
    }

    /// The object that a reference is to, and its path from the first group.
    pub(in crate::file) fn referred(&self, file: &Id<'_>, reference: u64) -> Result<(Id<'_>, String), Failure> {
        // SAFETY: a reference to an object has 8 bytes.
        let raw = unsafe { (self.others.dereference)(file.raw, DEFAULT, OBJECT, ptr::from_ref(&reference).cast()) };
        let object = self.checked(raw).map(|raw| Id::new(self, raw))?;
        let mut name = [0_u8; 1024];
        // SAFETY: there is room for that many bytes.
        let len = unsafe { (self.others.name)(object.raw, name.as_mut_ptr().cast(), name.len()) };
        let len = self.checked(len as i64)?.clamp(0, name.len() as i64 - 1) as usize;
        Ok((object, String::from_utf8_lossy(&name[..len]).trim_start_matches('/').to_owned()))
    }
}
