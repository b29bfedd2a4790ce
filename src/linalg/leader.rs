//! Member 0 computes by all cores of its node, while the others sleep; what it finds, or what is wrong with the matrix, comes to all.

use std::io::{self, Read, Write};

use ndarray::{Array2, ArrayView, ArrayViewMut, Dimension, Ix2, ShapeBuilder};

use super::{
    answer::Failure,
    backend::Backend,
    call::Call,
    field::{Field, is_finite},
};
use crate::{
    GlobalArray,
    comm::kit::cores,
    error::{Error, MatrixError, Result},
    memory::limits::available,
    portable::Portable,
};

/// A collective in which member 0 computes.
pub(super) struct Leader<'a> {
    pub(super) call: Call<'a>,
    /// What member 0 needs besides what it has.
    bytes: u64,
}

impl<'a> Leader<'a> {
    /// Member 0 needs `times` the memory of the matrix.
    pub(super) fn of<T: Field>(operation: &'static str, matrix: &'a GlobalArray<T, Ix2>, times: u64) -> Result<Self> {
        let bytes = times.saturating_mul((matrix.len() * size_of::<T>()) as u64);
        Ok(Leader { call: Call::of(operation, matrix)?, bytes })
    }

    /// With as much more.
    pub(super) fn with(self, bytes: usize) -> Self {
        Leader { bytes: self.bytes.saturating_add(bytes as u64), ..self }
    }

    /// Member 0 reads, then works. Collective, after the agreement at the start.
    pub(super) fn run<M: Send, R: Portable + Send>(
        &self,
        read: impl FnOnce() -> Result<M, Failure>,
        work: impl FnOnce(&Backend, M) -> Result<R, Failure> + Send,
    ) -> Result<R> {
        let Call { group, operation, .. } = self.call;
        let cores = self.cores()?;
        let found = group.from_member(0, || match self.lead(&cores, read, work) {
            Ok(found) => Ok((Some(found), None)),
            Err(Failure::Matrix(error, name)) => Ok((None, Some((error, name)))),
            Err(Failure::Other(error)) => Err(error),
        });
        let found = found.map_err(|error| match error {
            Error::Mismatch { what, .. } => Error::Mismatch { operation: operation.into(), what },
            error => error,
        });
        match found? {
            (Some(found), _) => Ok(found),
            (None, Some((source, name))) => Err(self.call.wrong(source, name.as_deref())),
            (None, None) => Err(self.call.argument("found nothing")),
        }
    }

    fn lead<M: Send, R: Send>(
        &self,
        cores: &[usize],
        read: impl FnOnce() -> Result<M, Failure>,
        work: impl FnOnce(&Backend, M) -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        let backend = Backend::load(self.call.operation)?;
        #[cfg(feature = "faer")]
        if matches!(backend, Backend::Faer) {
            self.call.group.inner.job.say_once("no LAPACK in use: faer computes eigenvalues, singular values and least squares");
        }
        let (bytes, left) = (self.bytes.saturating_mul(backend.appetite()), available());
        if bytes > left.bytes {
            return Err(Failure::Other(Error::OutOfMemory {
                what: format!("{} of array \"{}\" on member 0", self.call.operation, self.call.name),
                asked: bytes,
                available: left.bytes,
                limit: left.limit.to_string(),
                machine: self.call.group.node_of(0),
                operation: self.call.operation.into(),
            }));
        }
        let matrices = read()?;
        backend.on_cores(cores, |backend| work(backend, matrices))?
    }

    /// The cores of the members on the node of member 0, there.
    fn cores(&self) -> Result<Vec<usize>> {
        let group = self.call.group;
        let is_near = group.node_of(group.member()) == group.node_of(0);
        let own = if is_near { cores::allowed(None).unwrap_or_default() } else { Vec::new() };
        let mut all = group.gather_v(0, &own)?.unwrap_or_default().concat();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// A new array, with the elements that member 0 has, row by row or column by column.
    pub(super) fn spread<T: Field, D: Dimension>(
        &self,
        shape: D,
        elements: Option<&Array2<T>>,
        name: &str,
    ) -> Result<GlobalArray<T, D>> {
        self.call.spread(shape.clone(), name, |array| match elements.filter(|elements| !elements.is_empty()) {
            Some(elements) => {
                let shape = shape.set_f(!elements.is_standard_layout());
                let elements = elements.as_slice_memory_order().unwrap_or_default();
                array.put(.., ArrayView::from_shape(shape, elements).map_err(Error::other)?)
            }
            None => Ok(()),
        })
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
    match all.as_slice().unwrap_or_default().iter().position(|x| !is_finite(*x)) {
        Some(at) => {
            let error = MatrixError::NotFinite { row: at / all.ncols(), column: at % all.ncols() };
            Err(Failure::Matrix(error, Some(array.name().to_owned())))
        }
        None => Ok(all),
    }
}

/// The same matrix column by column, as LAPACK wants it.
pub(super) fn by_columns<T: Field>(matrix: Array2<T>) -> Array2<T> {
    matrix.reversed_axes().as_standard_layout().into_owned().reversed_axes()
}
