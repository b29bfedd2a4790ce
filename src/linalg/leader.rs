//! Member 0 computes by all cores of its node, while the others sleep; what it finds, or what is wrong with the matrix, comes to all.

use ndarray::{Array2, ArrayView, ArrayViewMut, Dimension, Ix2, ShapeBuilder};

use super::lapack::{Failure, Field, Lapack};
use crate::{
    GlobalArray,
    comm::kit::cores,
    error::{Error, MatrixError, Result},
    portable::Portable,
    sync::{Group, Op, call::Doing, fingerprint, text_fingerprint},
};

/// A collective on the matrix of this name.
pub(super) struct Leader<'a> {
    group: &'a Group,
    operation: &'static str,
    name: &'a str,
    id: u64,
}

impl<'a> Leader<'a> {
    pub(super) fn of<T: Field, D: Dimension>(operation: &'static str, matrix: &'a GlobalArray<T, D>) -> Result<Self> {
        matrix.check_sound(operation)?;
        Ok(Leader { group: matrix.group(), operation, name: matrix.name(), id: matrix.id() })
    }

    /// Waits for all members and what they put; member 0 works. Members compare `call`.
    pub(super) fn run<R: Portable + Send>(
        &self,
        call: &[u64],
        work: impl FnOnce(&Lapack) -> Result<R, Failure> + Send,
    ) -> Result<R> {
        let _doing = Doing::new(self.group, self.operation, (self.id, self.name));
        self.group.settle(Op::Algebra, fingerprint(&[&[text_fingerprint(self.operation), self.id], call].concat()))?;
        let cores = self.cores()?;
        let found = self.group.from_member(0, || match Lapack::load(self.operation)?.on_cores(&cores, work)? {
            Ok(found) => Ok((Some(found), None)),
            Err(Failure::Matrix(error)) => Ok((None, Some(error))),
            Err(Failure::Other(error)) => Err(error),
        })?;
        match found {
            (Some(found), _) => Ok(found),
            (None, error) => Err(Error::Matrix {
                array: self.name.to_owned(),
                operation: self.operation.into(),
                source: error.unwrap_or(MatrixError::NotConverged { info: 0 }),
            }),
        }
    }

    /// The cores of the members on the node of member 0, there.
    fn cores(&self) -> Result<Vec<usize>> {
        let is_near = self.group.node_of(self.group.member()) == self.group.node_of(0);
        let own = if is_near { cores::allowed(None).unwrap_or_default() } else { Vec::new() };
        let mut all = self.group.gather_v(0, &own)?.unwrap_or_default().concat();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// A new array, with the elements that member 0 has.
    pub(super) fn spread<T: Field, D: Dimension>(
        &self,
        shape: D,
        elements: Option<Array2<T>>,
        name: &str,
    ) -> Result<GlobalArray<T, D>> {
        let array = GlobalArray::builder(self.group, shape.clone()).name(name).create()?;
        if let Some(elements) = elements.filter(|elements| !elements.is_empty()) {
            let elements = elements.as_slice_memory_order().unwrap_or_default();
            array.put(.., ArrayView::from_shape(shape.f(), elements).map_err(Error::other)?)?;
        }
        self.group.settle(Op::Algebra, array.id())?;
        Ok(array)
    }

    pub(super) fn argument(&self, what: impl std::fmt::Display) -> Error {
        Error::argument(self.operation, format_args!("array \"{}\" {what}", self.name))
    }

    /// The order of a square matrix.
    pub(super) fn order(&self, shape: &[usize]) -> Result<usize> {
        match shape {
            [rows, columns] if rows == columns => Ok(*rows),
            _ => Err(self.argument(format_args!("has shape {shape:?}; it must be square"))),
        }
    }

    /// An error unless another array has as many rows, and is spread over the same group.
    pub(super) fn check_rows<T: Field, D: Dimension>(&self, rows: usize, other: &GlobalArray<T, D>) -> Result<()> {
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
}

/// All elements, column by column; a vector is one column.
pub(super) fn collect<T: Field, D: Dimension>(array: &GlobalArray<T, D>) -> Result<Array2<T>> {
    let shape = array.shape();
    let [rows, columns] = [shape[0], shape.get(1).copied().unwrap_or(1)];
    let mut all = Array2::zeros((rows, columns).f());
    if let Some(elements) = all.as_slice_memory_order_mut() {
        let extents = array.distribution().extents().clone();
        array.get_into(.., ArrayViewMut::from_shape(extents.f(), elements).map_err(Error::other)?)?;
    }
    Ok(all)
}

/// All elements, if they are finite.
pub(super) fn collect_finite<T: Field, D: Dimension>(array: &GlobalArray<T, D>) -> Result<Array2<T>, Failure> {
    let all = collect(array)?;
    // NaN and infinity are what zero times them does not make zero.
    let is_wrong = |x: &T| x.scaled(T::ZERO) != T::ZERO;
    match all.as_slice_memory_order().unwrap_or_default().iter().position(is_wrong) {
        Some(at) => Err(MatrixError::NotFinite { row: at % all.nrows(), column: at / all.nrows() }.into()),
        None => Ok(all),
    }
}

/// All elements of a symmetric or Hermitian matrix.
pub(super) fn collect_symmetric<T: Field>(array: &GlobalArray<T, Ix2>) -> Result<Array2<T>, Failure> {
    let all = collect_finite(array)?;
    let zero = <T::Real as num_traits::Zero>::zero();
    let largest = all.iter().fold(zero, |largest, x| num_traits::Float::max(largest, x.magnitude()));
    let tolerance = largest * num_traits::Float::sqrt(<T::Real as num_traits::Float>::epsilon());
    // Square tiles, so that both triangles are read along their columns.
    const TILE: usize = 64;
    let n = all.nrows();
    for first_column in (0..n).step_by(TILE) {
        for first_row in (first_column..n).step_by(TILE) {
            for column in first_column..n.min(first_column + TILE) {
                for row in first_row.max(column)..n.min(first_row + TILE) {
                    if (all[[row, column]] - all[[column, row]].conj()).magnitude() > tolerance {
                        return Err(MatrixError::NotSymmetric { row, column }.into());
                    }
                }
            }
        }
    }
    Ok(all)
}
