//! Eigenvalues, factors and solutions of linear systems.
//!
//! | call | returns |
//! |---|---|
//! | `h.eigh()`, `h.eigh_of(Spectrum::Lowest(k))` | eigenvalues and eigenvectors of a symmetric or Hermitian matrix |
//! | `s.cholesky()` | a `Cholesky`: `solve`, `inverse`, `l`, and `eigh(&h)` for h x = λ s x |
//! | `a.lu()` | an `Lu`: `solve`, `determinant`, `condition` |
//! | `a.least_squares(&b)` | the x that minimizes ‖a x - b‖, by QR |
//! | `a.svd()` | singular values and vectors |
//!
//! All are collective over the group of the matrix, and need the feature `blas` and a LAPACK on the machine: that in Intel MKL, FlexiBLAS or
//! OpenBLAS, the library that `matmul` uses (`GA_BLAS`). Elements are `f32`, `f64` and their complex numbers; matrices have any distribution. Results
//! that are arrays have the default distribution. Over a simulated network LAPACK takes no virtual time.
//!
//! # How
//! Member 0 collects the matrix and calls LAPACK by as many threads as the members on its node have cores, while these sleep. So the matrix, with
//! what LAPACK needs besides (for `eigh` twice the matrix), must fit the memory of one node. Factors stay with member 0. A process in which LAPACK had threads finds no deadlocks
//! any more, as one with other threads of its own.
//!
//! # How fast
//! Two ranks on two cores of a Zen 4, with Debian 12's OpenBLAS 0.3.21, order 2000: `eigh` takes 0.95 of the time of the best of ScaLAPACK's `pdsyevd`, `pdsyevr` and ELPA's two
//! stages, and 1.2 of that of NumPy, which brings OpenBLAS 0.3.31; LU that of `pdgetrf`; 64 right-hand sides 0.7 of that of `pdgetrs`; Cholesky 1.45 of that of
//! `pdpotrf`, two thirds of it in LAPACK itself. The lowest tenth of the vectors takes two thirds of the time of all: the reduction to a tridiagonal matrix is most of both.
//!
//! # Errors
//! A matrix that has no such factors is [`Error::Matrix`](crate::Error::Matrix) on all members, with a [`MatrixError`] that says where.
//! Others, such as too little memory, are themselves on member 0, and `Error::Mismatch` with their text on the others.

// The public surface, which needs the feature, and the way to LAPACK.
#[cfg(feature = "blas")]
mod cholesky;
#[cfg(feature = "blas")]
mod eigen;
#[cfg(feature = "blas")]
mod lapack;
#[cfg(feature = "blas")]
mod leader;
#[cfg(feature = "blas")]
mod lu;
#[cfg(feature = "blas")]
mod rectangular;

#[cfg(feature = "blas")]
pub use self::{
    cholesky::Cholesky,
    eigen::Eigen,
    lapack::{Field, Spectrum},
    lu::Lu,
    rectangular::Svd,
};
pub use crate::error::MatrixError;
