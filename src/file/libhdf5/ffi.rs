//! Functions of libhdf5, with their types in C.
//!
//! Those that take only numbers, names and places for one number are safe to call: the library looks up each id, and refuses what it does not know.
//! All return a negative number if they failed, and methods make an error of it.
//!
//! # Source
//! HDF5 Reference Manual, 1.10. The functions are the same in 1.12, 1.14 and 2.0.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void},
    fmt, io,
    marker::PhantomData,
    mem::{self, ManuallyDrop},
    ptr,
};

use libloading::Library;

use crate::file::visit::Failure;

/// Names an object of the library, such as a file, a type or a list of properties.
pub(in crate::file) type Hid = i64;

/// An object of the library, closed when it goes out of scope.
#[derive(Debug)]
pub(in crate::file) struct Id<'h> {
    pub(in crate::file) hdf5: &'h Hdf5,
    pub(in crate::file) raw: Hid,
}

impl<'h> Id<'h> {
    pub(in crate::file) fn new(hdf5: &'h Hdf5, raw: Hid) -> Self {
        Id { hdf5, raw }
    }

    /// Closes a file, which writes what the library still has of it.
    pub(in crate::file) fn close_file(self) -> Result<(), Failure> {
        let (hdf5, raw) = (self.hdf5, self.raw);
        mem::forget(self);
        hdf5.H5Fclose(raw).map(drop)
    }
}

impl Drop for Id<'_> {
    fn drop(&mut self) {
        // The last use of an object of any kind closes it.
        let _ = self.hdf5.H5Idec_ref(self.raw);
    }
}

/// The properties and the data space that the library chooses.
pub(in crate::file) const DEFAULT: Hid = 0;
/// An address that nothing is at.
pub(in crate::file) const UNDEFINED: u64 = u64::MAX;
/// The first version that says where chunks are; ids have 64 bits since 1.10.
const OLDEST: [c_uint; 3] = [1, 10, 5];

/// A string of C that lives as long as it is passed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in crate::file) struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> From<&'a CStr> for Text<'a> {
    fn from(text: &'a CStr) -> Self {
        Text(text.as_ptr(), PhantomData)
    }
}

/// Gets the group, a name in it, what is known of it, and the value of the caller.
pub(in crate::file) type Visitor = unsafe extern "C" fn(Hid, *const c_char, *const c_void, *mut c_void) -> c_int;
/// Gets the first element, the filters that were left out, the address, the bytes, and the value of the caller.
pub(in crate::file) type ChunkVisitor = unsafe extern "C" fn(*const u64, c_uint, u64, u64, *mut c_void) -> c_int;
/// Gets the place in the stack, the error, and the value of the caller.
pub(in crate::file) type ErrorVisitor = unsafe extern "C" fn(c_uint, *const StackedError, *mut c_void) -> c_int;

/// `H5E_error2_t`.
#[repr(C)]
pub(in crate::file) struct StackedError {
    pub(in crate::file) class: Hid,
    pub(in crate::file) major: Hid,
    pub(in crate::file) minor: Hid,
    pub(in crate::file) line: c_uint,
    pub(in crate::file) function: *const c_char,
    pub(in crate::file) file: *const c_char,
    pub(in crate::file) description: *const c_char,
}

/// `hvl_t`: a sequence of its own length.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::file) struct Sequence {
    pub(in crate::file) len: usize,
    pub(in crate::file) first: *mut c_void,
}

macro_rules! functions {
    (
        ids { $($new:ident($($n:ident: $N:ty),*);)* }
        numbers { $($call:ident($($c:ident: $C:ty),*) -> $R:ty;)* }
        addresses { $($raw:ident($($r:ident: $A:ty),*);)* }
    ) => {
        #[allow(non_snake_case)]
        struct Functions {
            $($new: extern "C" fn($($N),*) -> Hid,)*
            $($call: extern "C" fn($($C),*) -> $R,)*
            $($raw: unsafe extern "C" fn($($A),*) -> c_int,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Self, String> {
                Ok(Functions {
                    $($new: symbol(library, stringify!($new))?,)*
                    $($call: symbol(library, stringify!($call))?,)*
                    $($raw: symbol(library, stringify!($raw))?,)*
                })
            }
        }

        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Hdf5 {
            $(pub(in crate::file) fn $new(&self, $($n: $N),*) -> Result<Id<'_>, Failure> {
                self.checked((self.functions.$new)($($n),*)).map(|raw| Id::new(self, raw))
            })*
            $(pub(in crate::file) fn $call(&self, $($c: $C),*) -> Result<$R, Failure> {
                self.checked((self.functions.$call)($($c),*))
            })*
            /// # Safety
            /// The addresses are valid for what the reference manual says of them.
            $(pub(in crate::file) unsafe fn $raw(&self, $($r: $A),*) -> Result<c_int, Failure> {
                // SAFETY: the caller's.
                self.checked(unsafe { (self.functions.$raw)($($r),*) })
            })*
        }
    };
}

functions! {
    ids {
        H5Fcreate(name: Text<'_>, flags: c_uint, create: Hid, access: Hid);
        H5Fopen(name: Text<'_>, flags: c_uint, access: Hid);
        H5Fget_create_plist(file: Hid);
        H5Pcreate(class: Hid);
        H5Gcreate2(at: Hid, name: Text<'_>, link: Hid, create: Hid, access: Hid);
        H5Oopen(at: Hid, name: Text<'_>, access: Hid);
        H5Dcreate2(at: Hid, name: Text<'_>, of: Hid, space: Hid, link: Hid, create: Hid, access: Hid);
        H5Dget_space(dataset: Hid);
        H5Dget_type(dataset: Hid);
        H5Dget_create_plist(dataset: Hid);
        H5Screate(class: c_int);
        H5Tcopy(of: Hid);
        H5Tcreate(class: c_int, size: usize);
        H5Tvlen_create(of: Hid);
        H5Tget_super(of: Hid);
        H5Tget_member_type(of: Hid, member: c_uint);
        H5Acreate2(at: Hid, name: Text<'_>, of: Hid, space: Hid, create: Hid, access: Hid);
        H5Aopen(at: Hid, name: Text<'_>, access: Hid);
        H5Aget_space(attribute: Hid);
        H5Aget_type(attribute: Hid);
    }
    numbers {
        H5open() -> c_int;
        H5Fclose(file: Hid) -> c_int;
        H5Idec_ref(id: Hid) -> c_int;
        H5Iget_type(id: Hid) -> c_int;
        H5Pset_layout(list: Hid, layout: c_int) -> c_int;
        H5Pget_layout(list: Hid) -> c_int;
        H5Pset_alloc_time(list: Hid, time: c_int) -> c_int;
        H5Pset_fill_time(list: Hid, time: c_int) -> c_int;
        H5Pset_alignment(list: Hid, threshold: u64, alignment: u64) -> c_int;
        H5Pset_link_creation_order(list: Hid, flags: c_uint) -> c_int;
        H5Pset_attr_creation_order(list: Hid, flags: c_uint) -> c_int;
        H5Pset_char_encoding(list: Hid, encoding: c_int) -> c_int;
        H5Pget_nfilters(list: Hid) -> c_int;
        H5Pget_external_count(list: Hid) -> c_int;
        H5Pget_userblock(list: Hid, bytes: &mut u64) -> c_int;
        H5Lexists(at: Hid, name: Text<'_>, access: Hid) -> c_int;
        H5Dget_num_chunks(dataset: Hid, space: Hid, count: &mut u64) -> c_int;
        H5Sget_simple_extent_ndims(space: Hid) -> c_int;
        H5Sget_simple_extent_type(space: Hid) -> c_int;
        H5Tinsert(compound: Hid, name: Text<'_>, offset: usize, of: Hid) -> c_int;
        H5Tset_size(of: Hid, size: usize) -> c_int;
        H5Tset_cset(of: Hid, set: c_int) -> c_int;
        H5Tset_tag(of: Hid, tag: Text<'_>) -> c_int;
        H5Tequal(one: Hid, other: Hid) -> c_int;
        H5Tget_class(of: Hid) -> c_int;
        H5Tget_sign(of: Hid) -> c_int;
        H5Tget_nmembers(of: Hid) -> c_int;
        H5Tis_variable_str(of: Hid) -> c_int;
        H5Aexists(at: Hid, name: Text<'_>) -> c_int;
    }
    addresses {
        H5Eset_auto2(stack: Hid, print: Option<ErrorVisitor>, value: *mut c_void);
        H5Pset_chunk(list: Hid, axes: c_int, extents: *const u64);
        H5Pget_chunk(list: Hid, axes: c_int, extents: *mut u64);
        H5Literate(group: Hid, index: c_int, order: c_int, at: *mut u64, visitor: Visitor, value: *mut c_void);
        H5Dset_extent(dataset: Hid, extents: *const u64);
        H5Dread(dataset: Hid, of: Hid, to: Hid, from: Hid, list: Hid, bytes: *mut c_void);
        H5Dwrite(dataset: Hid, of: Hid, from: Hid, to: Hid, list: Hid, bytes: *const c_void);
        H5Dget_chunk_info(dataset: Hid, space: Hid, number: u64, first: *mut u64, mask: *mut c_uint, address: *mut u64, bytes: *mut u64);
        H5Dget_chunk_info_by_coord(dataset: Hid, first: *const u64, mask: *mut c_uint, address: *mut u64, bytes: *mut u64);
        H5Dvlen_reclaim(of: Hid, space: Hid, list: Hid, bytes: *mut c_void);
        H5Sget_simple_extent_dims(space: Hid, extents: *mut u64, most: *mut u64);
        H5Sselect_hyperslab(space: Hid, op: c_int, start: *const u64, stride: *const u64, count: *const u64, block: *const u64);
        H5Aread(attribute: Hid, of: Hid, bytes: *mut c_void);
        H5Awrite(attribute: Hid, of: Hid, bytes: *const c_void);
        H5Aiterate2(at: Hid, index: c_int, order: c_int, from: *mut u64, visitor: Visitor, value: *mut c_void);
        H5Rcreate(reference: *mut c_void, at: Hid, name: *const c_char, kind: c_int, space: Hid);
        H5free_memory(memory: *mut c_void);
    }
}

/// What returns neither an id nor an `int`.
pub(in crate::file) struct Others {
    pub(in crate::file) offset: extern "C" fn(Hid) -> u64,
    pub(in crate::file) size: extern "C" fn(Hid) -> usize,
    pub(in crate::file) simple: unsafe extern "C" fn(c_int, *const u64, *const u64) -> Hid,
    pub(in crate::file) member: extern "C" fn(Hid, c_uint) -> *mut c_char,
    pub(in crate::file) name: unsafe extern "C" fn(Hid, *mut c_char, usize) -> isize,
    pub(in crate::file) dereference: unsafe extern "C" fn(Hid, Hid, c_int, *const c_void) -> Hid,
    /// Visits all chunks in one pass; since 1.14.4 with first elements of chunks.
    pub(in crate::file) chunks: Option<unsafe extern "C" fn(Hid, Hid, ChunkVisitor, *mut c_void) -> c_int>,
    /// Chooses if files are locked; since 1.10.7.
    pub(in crate::file) locking: Option<extern "C" fn(Hid, bool, bool) -> c_int>,
    pub(in crate::file) errors: unsafe extern "C" fn(Hid, c_int, ErrorVisitor, *mut c_void) -> c_int,
}

/// The library, for whoever has its turn. It is never unloaded.
pub(in crate::file) struct Hdf5 {
    functions: Functions,
    pub(in crate::file) others: Others,
    library: ManuallyDrop<Library>,
}

impl fmt::Debug for Hdf5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hdf5").field("library", &self.library).finish_non_exhaustive()
    }
}

impl Hdf5 {
    /// Loads the library from a path, or by a name that the system knows.
    pub(in crate::file) fn load(name: &OsStr) -> Result<Hdf5, String> {
        // SAFETY: a library that is known, or that the user says is HDF5, may start in any thread at any time. It is never unloaded.
        let library = unsafe { Library::new(name) }.map_err(|error| error.to_string())?;
        let version: extern "C" fn(&mut c_uint, &mut c_uint, &mut c_uint) -> c_int = symbol(&library, "H5get_libversion")?;
        let [mut major, mut minor, mut release] = [0; 3];
        if version(&mut major, &mut minor, &mut release) < 0 || [major, minor, release] < OLDEST {
            return Err(format!("its version is {major}.{minor}.{release}"));
        }
        let others = Others {
            offset: symbol(&library, "H5Dget_offset")?,
            size: symbol(&library, "H5Tget_size")?,
            simple: symbol(&library, "H5Screate_simple")?,
            member: symbol(&library, "H5Tget_member_name")?,
            name: symbol(&library, "H5Iget_name")?,
            dereference: symbol(&library, "H5Rdereference2")?,
            chunks: symbol(&library, "H5Dchunk_iter").ok().filter(|_| [major, minor, release] >= [1, 14, 4]),
            locking: symbol(&library, "H5Pset_file_locking").ok(),
            errors: symbol(&library, "H5Ewalk2")?,
        };
        let hdf5 = Hdf5 { functions: Functions::of(&library)?, others, library: ManuallyDrop::new(library) };
        hdf5.H5open().map_err(|_| "it does not start")?;
        Ok(hdf5)
    }

    /// Has errors not printed. A library with locks asks for that in each thread.
    pub(in crate::file) fn silence(&self) -> Result<(), Failure> {
        // SAFETY: nothing is called, so the value has no use.
        unsafe { self.H5Eset_auto2(DEFAULT, None, ptr::null_mut()) }.map(drop)
    }

    /// A variable that has an id since the library started, such as `H5T_IEEE_F64LE_g`.
    pub(in crate::file) fn global(&self, name: &str) -> Result<Hid, Failure> {
        let place: *const Hid = symbol(&self.library, name)
            .map_err(|what| Failure::System(io::Error::other(format!("the HDF5 library cannot be used: {what}"))))?;
        // SAFETY: the library has a variable of this type there, which nobody writes any more.
        Ok(unsafe { *place })
    }
}

/// The address of a function or variable that has the type `F` in C.
fn symbol<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
    let find = |name: String| {
        // SAFETY: HDF5's manual has this type for this name, and the library stays.
        unsafe { library.get::<F>(name.as_bytes()) }.map(|found| *found)
    };
    // 1.12 gave a number to `H5Literate`.
    find(format!("{name}\0")).or_else(|_| find(format!("{name}2\0"))).map_err(|_| format!("it has no {name}"))
}
