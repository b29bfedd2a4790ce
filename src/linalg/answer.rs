//! What member 0 is asked for, and what it answers.

use crate::error::{Error, MatrixError};

/// Which eigenvalues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spectrum {
    /// All of them.
    All,
    /// This number of them, from the lowest one on.
    Lowest(usize),
    /// Those above the first number, and not above the second.
    Interval(f64, f64),
}

/// An eigenvalue or a singular value of each column.
pub(super) type Values<T> = Vec<<T as crate::Number>::Real>;

/// Why the leader has no result.
pub(super) enum Failure {
    /// With the name of an array, if it is not the one whose method was called.
    Matrix(MatrixError, Option<String>),
    Other(Error),
}

impl From<MatrixError> for Failure {
    fn from(error: MatrixError) -> Self {
        Failure::Matrix(error, None)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}
