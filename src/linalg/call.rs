//! A collective on a matrix: what its members agree on, and its errors.

use ndarray::Dimension;

use super::field::Field;
use crate::{
    GlobalArray,
    error::{Error, MatrixError, Result},
    sync::{Group, Op, call::Doing, fingerprint, text_fingerprint},
};

/// A collective on the matrix of this name.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) group: &'a Group,
    pub(super) operation: &'static str,
    pub(super) name: &'a str,
    pub(super) id: u64,
}

impl<'a> Call<'a> {
    pub(super) fn of<T: Field, D: Dimension>(operation: &'static str, matrix: &'a GlobalArray<T, D>) -> Result<Self> {
        matrix.check_sound(operation)?;
        Ok(Call { group: matrix.group(), operation, name: matrix.name(), id: matrix.id() })
    }

    /// Waits for all members and what they put. They compare `words`.
    pub(super) fn begin(&self, words: &[u64]) -> Result<Doing> {
        let doing = Doing::new(self.group, self.operation, (self.id, self.name));
        self.group.settle(Op::Algebra, fingerprint(&[&[text_fingerprint(self.operation), self.id], words].concat()))?;
        Ok(doing)
    }

    pub(super) fn argument(&self, what: impl std::fmt::Display) -> Error {
        Error::argument(self.operation, format_args!("array \"{}\" {what}", self.name))
    }

    /// The matrix, or another array, is wrong.
    pub(super) fn wrong(&self, source: MatrixError, name: Option<&str>) -> Error {
        Error::Matrix { array: name.unwrap_or(self.name).to_owned(), operation: self.operation.into(), source }
    }

    /// The order of a square matrix.
    pub(super) fn order(&self, shape: &[usize]) -> Result<usize> {
        match shape {
            [rows, columns] if rows == columns => Ok(*rows),
            _ => Err(self.argument(format_args!("has shape {shape:?}; it must be square"))),
        }
    }

    /// Another array must have as many rows, and be spread over the same group.
    pub(super) fn goes_with<T: Field, D: Dimension>(&self, rows: usize, other: &GlobalArray<T, D>) -> Result<()> {
        let (name, shape) = (other.name(), other.shape());
        other.check_sound(self.operation)?;
        let what = if !self.group.is_like(other.group()) {
            format!("and array \"{name}\" are spread over different groups")
        } else if shape.first() != Some(&rows) {
            format!("goes with {rows} rows; array \"{name}\" has shape {shape:?}")
        } else {
            return Ok(());
        };
        Err(Error::Mismatch { operation: self.operation.into(), what: format!("array \"{}\" {what}", self.name) })
    }

    /// A new array, with the elements that some members put.
    pub(super) fn spread<T: Field, D: Dimension>(
        &self,
        shape: D,
        name: &str,
        put: impl FnOnce(&GlobalArray<T, D>) -> Result<()>,
    ) -> Result<GlobalArray<T, D>> {
        let array = GlobalArray::builder(self.group, shape).name(name).create()?;
        let put = put(&array).and_then(|()| self.group.fence_all(Op::Algebra));
        array.settle(self.operation, array.id(), put)?;
        Ok(array)
    }

    /// What is wrong with the matrix on any member, as an error on all: the first kind of them, and the first element. Collective.
    pub(super) fn agree_on(&self, own: Option<MatrixError>) -> Result<()> {
        let words = match own {
            Some(MatrixError::NotFinite { row, column }) => [0, row, column],
            Some(MatrixError::NotSymmetric { row, column }) => [1, row, column],
            _ => [usize::MAX; 3],
        };
        match self.group.all_reduce_one(words, |a, b| a.min(b))? {
            [0, row, column] => Err(self.wrong(MatrixError::NotFinite { row, column }, None)),
            [1, row, column] => Err(self.wrong(MatrixError::NotSymmetric { row, column }, None)),
            _ => Ok(()),
        }
    }
}
