//! Member 0 computes by all cores of its node, while the others sleep; what it finds, or what is wrong with the matrix, comes to all.

use std::io::{self, Read, Write};

use ndarray::{Array2, ArrayView, ArrayViewMut, Axis, Dimension, Ix2, ShapeBuilder, s};
use num_traits::{Float, Zero};

use super::lapack::{Failure, Field, Lapack};
use crate::{
    GlobalArray,
    comm::kit::cores,
    error::{Error, MatrixError, Result},
    memory::limits::available,
    portable::Portable,
    sync::{Group, Op, call::Doing, fingerprint, text_fingerprint},
};

/// Elements along an edge of a tile of which two fit the first cache.
const TILE: usize = 32;

/// A collective on the matrix of this name.
pub(super) struct Leader<'a> {
    group: &'a Group,
    operation: &'static str,
    name: &'a str,
    id: u64,
    /// What member 0 needs besides what it has.
    bytes: u64,
}

impl<'a> Leader<'a> {
    /// Member 0 needs `times` the memory of the matrix.
    pub(super) fn of<T: Field>(operation: &'static str, matrix: &'a GlobalArray<T, Ix2>, times: u64) -> Result<Self> {
        matrix.check_sound(operation)?;
        let bytes = times.saturating_mul((matrix.len() * size_of::<T>()) as u64);
        Ok(Leader { group: matrix.group(), operation, name: matrix.name(), id: matrix.id(), bytes })
    }

    /// Waits for all members and what they put; member 0 reads, then works. Members compare `call`.
    pub(super) fn run<M: Send, R: Portable + Send>(
        &self,
        call: &[u64],
        read: impl FnOnce() -> Result<M, Failure>,
        work: impl FnOnce(&Lapack, M) -> Result<R, Failure> + Send,
    ) -> Result<R> {
        let _doing = Doing::new(self.group, self.operation, (self.id, self.name));
        self.group.settle(Op::Algebra, fingerprint(&[&[text_fingerprint(self.operation), self.id], call].concat()))?;
        let cores = self.cores()?;
        let found = self.group.from_member(0, || match self.lead(&cores, read, work) {
            Ok(found) => Ok((Some(found), None)),
            Err(Failure::Matrix(error, name)) => Ok((None, Some((error, name)))),
            Err(Failure::Other(error)) => Err(error),
        });
        let found = found.map_err(|error| match error {
            Error::Mismatch { what, .. } => Error::Mismatch { operation: self.operation.into(), what },
            error => error,
        });
        match found? {
            (Some(found), _) => Ok(found),
            (None, Some((source, name))) => Err(Error::Matrix {
                array: name.unwrap_or_else(|| self.name.to_owned()),
                operation: self.operation.into(),
                source,
            }),
            (None, None) => Err(self.argument("found nothing")),
        }
    }

    fn lead<M: Send, R: Send>(
        &self,
        cores: &[usize],
        read: impl FnOnce() -> Result<M, Failure>,
        work: impl FnOnce(&Lapack, M) -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        let lapack = Lapack::load(self.operation)?;
        let left = available();
        if self.bytes > left.bytes {
            return Err(Failure::Other(Error::OutOfMemory {
                what: format!("{} of array \"{}\" on member 0", self.operation, self.name),
                asked: self.bytes,
                available: left.bytes,
                limit: left.limit.to_string(),
                machine: self.group.node_of(0),
                operation: self.operation.into(),
            }));
        }
        let matrices = read()?;
        lapack.on_cores(cores, |lapack| work(lapack, matrices))?
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
        elements: Option<&Array2<T>>,
        name: &str,
    ) -> Result<GlobalArray<T, D>> {
        let array = GlobalArray::builder(self.group, shape.clone()).name(name).create()?;
        let put = elements.filter(|elements| !elements.is_empty()).map_or(Ok(()), |elements| {
            // Row by row, or column by column.
            let shape = shape.set_f(!elements.is_standard_layout());
            let elements = elements.as_slice_memory_order().unwrap_or_default();
            array.put(.., ArrayView::from_shape(shape, elements).map_err(Error::other)?)?;
            self.group.fence_all(Op::Algebra)
        });
        array.settle(self.operation, array.id(), put)?;
        Ok(array)
    }

    pub(super) fn hold<T>(&self, order: usize, factors: Option<Array2<T>>) -> Held<T> {
        Held { group: self.group.clone(), name: self.name.to_owned(), id: self.id, order, factors }
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

    /// With another array, of which member 0 needs two copies; it must have as many rows, and be spread over the same group.
    pub(super) fn with<T: Field, D: Dimension>(mut self, rows: usize, other: &GlobalArray<T, D>) -> Result<Self> {
        let (name, shape) = (other.name(), other.shape());
        other.check_sound(self.operation)?;
        let what = if !self.group.is_like(other.group()) {
            format!("and array \"{name}\" are spread over different groups")
        } else if shape.first() != Some(&rows) {
            format!("goes with {rows} rows; array \"{name}\" has shape {shape:?}")
        } else {
            self.bytes += 2 * (other.len() * size_of::<T>()) as u64;
            return Ok(self);
        };
        Err(Error::Mismatch { operation: self.operation.into(), what: format!("array \"{}\" {what}", self.name) })
    }
}

impl Portable for MatrixError {
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let words: [usize; 3] = match *self {
            MatrixError::NotFinite { row, column } => [0, row, column],
            MatrixError::NotSymmetric { row, column } => [1, row, column],
            MatrixError::NotPositive { order } => [2, order, 0],
            MatrixError::Singular { at } => [3, at, 0],
            MatrixError::Dependent { at } => [4, at, 0],
            MatrixError::NotConverged { info } => [5, info, 0],
        };
        words.write(to)
    }

    fn read(from: &mut dyn Read) -> io::Result<Self> {
        Ok(match <[usize; 3]>::read(from)? {
            [0, row, column] => MatrixError::NotFinite { row, column },
            [1, row, column] => MatrixError::NotSymmetric { row, column },
            [2, order, _] => MatrixError::NotPositive { order },
            [3, at, _] => MatrixError::Singular { at },
            [4, at, _] => MatrixError::Dependent { at },
            [_, info, _] => MatrixError::NotConverged { info },
        })
    }
}

/// Factors of a matrix, which member 0 keeps.
#[derive(Debug)]
pub(super) struct Held<T> {
    pub(super) group: Group,
    name: String,
    id: u64,
    pub(super) order: usize,
    /// Row by row; none on other members.
    pub(super) factors: Option<Array2<T>>,
}

impl<T: Field> Held<T> {
    /// Member 0 needs `times` the memory of the factors besides them.
    pub(super) fn leader(&self, operation: &'static str, times: u64) -> Leader<'_> {
        let bytes = times * (self.order * self.order * size_of::<T>()) as u64;
        Leader { group: &self.group, operation, name: &self.name, id: self.id, bytes }
    }

    /// On member 0.
    pub(super) fn factors(&self) -> &Array2<T> {
        self.factors.as_ref().expect("member 0 works")
    }
}

/// All elements, as they lie in a new array: row by row.
pub(super) fn collect<T: Field, D: Dimension>(array: &GlobalArray<T, D>) -> Result<Array2<T>> {
    let shape = array.shape();
    let mut all = Array2::zeros((shape[0], shape.get(1).copied().unwrap_or(1)));
    if let Some(elements) = all.as_slice_mut() {
        let extents = array.distribution().extents().clone();
        array.get_into(.., ArrayViewMut::from_shape(extents, elements).map_err(Error::other)?)?;
    }
    Ok(all)
}

/// All elements, if they are finite.
pub(super) fn collect_finite<T: Field, D: Dimension>(array: &GlobalArray<T, D>) -> Result<Array2<T>, Failure> {
    let all = collect(array)?;
    // NaN and infinity are what zero times them does not make zero.
    let is_wrong = |x: &T| x.scaled(T::ZERO) != T::ZERO;
    match all.as_slice().unwrap_or_default().iter().position(is_wrong) {
        Some(at) => {
            let error = MatrixError::NotFinite { row: at / all.ncols(), column: at % all.ncols() };
            Err(Failure::Matrix(error, Some(array.name().to_owned())))
        }
        None => Ok(all),
    }
}

/// All elements of a symmetric or Hermitian matrix.
pub(super) fn collect_symmetric<T: Field>(array: &GlobalArray<T, Ix2>) -> Result<Array2<T>, Failure> {
    let all = collect_finite(array)?;
    let largest = all.iter().fold(T::Real::zero(), |largest, x| largest.max(x.magnitude()));
    let tolerance = largest * T::Real::epsilon().sqrt();
    for (i, rows) in all.axis_chunks_iter(Axis(0), TILE).enumerate() {
        for (j, lower) in rows.axis_chunks_iter(Axis(1), TILE).enumerate().take(i + 1) {
            // A copy of the tile above the diagonal, so that both are read along their rows.
            let upper = all.slice(s![j * TILE..j * TILE + lower.ncols(), i * TILE..i * TILE + lower.nrows()]).reversed_axes();
            let upper = upper.as_standard_layout();
            let is_wrong = |(x, y): (&T, &T)| (*x - y.conj()).magnitude() > tolerance;
            if lower.iter().zip(&upper).any(is_wrong) {
                let at = lower.iter().zip(&upper).position(is_wrong).unwrap_or_default();
                let (row, column) = (i * TILE + at / lower.ncols(), j * TILE + at % lower.ncols());
                return Err(MatrixError::NotSymmetric { row: row.max(column), column: row.min(column) }.into());
            }
        }
    }
    Ok(all)
}

pub(super) fn conjugate<T: Field>(matrix: &mut Array2<T>) {
    if !T::IS_REAL {
        matrix.mapv_inplace(T::conj);
    }
}

/// The same matrix column by column, as LAPACK wants it.
pub(super) fn by_columns<T: Field>(matrix: Array2<T>) -> Array2<T> {
    matrix.reversed_axes().as_standard_layout().into_owned().reversed_axes()
}
