//! Files of elements and nothing else, in C order. Their length must be that of the array.

use std::{fs::File, path::Path};

use super::{
    contents::Contents,
    kind::Kind,
    placed::{Place, Placed},
    variable::Variable,
    visit::Failure,
};
use crate::memory::limits;

/// Makes a file, and returns where the elements go.
pub(super) fn create(path: &Path, variable: &Variable) -> Result<Placed, Failure> {
    let len = variable.bytes().unwrap_or(u64::MAX);
    limits::check_file(len)?;
    File::options().write(true).create_new(true).open(path)?.set_len(len)?;
    Ok(placed(path, variable.kind, &variable.shape))
}

/// What a file holds: bytes.
pub(super) fn open(path: &Path) -> Result<Contents, Failure> {
    let len = File::open(path)?.metadata()?.len() as usize;
    let kind = Kind::Opaque(1);
    Ok(Contents::of(Variable::new("", kind, &[len]), placed(path, kind, &[len])))
}

/// Bytes as elements of another type and shape.
pub(super) fn shaped(path: &Path, bytes: &Variable, kind: Kind, shape: &[usize]) -> Result<Placed, Failure> {
    let (present, needed) = (bytes.bytes(), Variable::new("", kind, shape).bytes());
    if present != needed {
        let (present, needed) = (present.unwrap_or(u64::MAX), needed.unwrap_or(u64::MAX));
        return Err(Failure::Format(format!("has {present} bytes; the shape {shape:?} of '{}' needs {needed}", kind.descr())));
    }
    Ok(placed(path, kind, shape))
}

fn placed(path: &Path, kind: Kind, shape: &[usize]) -> Placed {
    let place = Place::Contiguous { file: path.to_owned(), begin: 0 };
    Placed { kind, shape: shape.to_vec(), is_reversed: false, is_swapped: false, place }
}
