//! Eigenvalues, factors and solutions of linear systems.
//!
//! | call | returns |
//! |---|---|
//! | `a.lu()`, `a.into_lu()`, `Lu::from_fn` | an `Lu`: `solve`, `refine`, `condition`, `determinant`, `log_determinant` |
//! | `s.cholesky()`, `s.into_cholesky()` | a `Cholesky`: `solve`, `inverse`, `l`, and `eigh(&h)` for h x = λ s x |
//! | `h.eigh()`, `h.eigh_of(Spectrum::Lowest(k))` | eigenvalues and eigenvectors of a symmetric or Hermitian matrix |
//! | `a.least_squares(&b)` | the x that minimizes ‖a x - b‖, by QR |
//! | `a.svd()` | singular values and vectors |
//!
//! All are collective over the group of the matrix. Elements are `f32`, `f64` and their complex numbers; matrices have any distribution. Results
//! that are arrays have the default distribution.
//!
//! # Factors
//! LU and Cholesky are distributed: the members of the group have square blocks of the matrix ([`Blocking`]), and factor and solve together, on any number of nodes.
//! A member needs memory for a copy of its part of the matrix, unless that is factored in place, and for what it exchanges: two panels, and of its columns 4 log₂ P
//! times the edge of a block, where the grid has P rows. Where it has several cores and the feature `rayon`, it uses them all. The next panel is
//! factored and sent while the rest of the matrix is updated; panels go round the rings of the grid, rows along its columns in log₂ P rounds.
//!
//! # Eigenvalues, least squares, singular values
//! These need the feature `blas` and a LAPACK on the machine: that in Intel MKL, FlexiBLAS or
//! OpenBLAS, the library that `matmul` uses (`GA_BLAS`). With the feature `faer`, the crate of this name computes them where no LAPACK is found, or `GA_BLAS` is `none`, or the
//! feature `blas` is absent; if member 0 is rank 0, it prints a line that says so, once in a job.
//!
//! Member 0 collects the matrix and computes by as many threads as the members on its node have cores, while
//! these sleep. So the matrix, with what is needed besides (for `eigh` twice the matrix, with faer five times), must fit the memory of one node. A process in which LAPACK had threads
//! finds no deadlocks any more, as one with other threads of its own; those of faer end with the call. faer computes all eigenvalues also where a part is asked for. Over a simulated
//! network both take no virtual time.
//!
//! # How fast
//! Two ranks on two cores of a Zen 4, in several runs, the time of ScaLAPACK on the same cores divided by ours:
//!
//! | call | order 2000 | order 4096 |
//! |---|--:|--:|
//! | `into_lu`, of `pdgetrf` | 1.12 to 1.21 | 1.20 to 1.27 |
//! | `into_cholesky`, of `pdpotrf` | 0.91 to 0.97 | 1.04 to 1.16 |
//! | `solve` for 64 right-hand sides, of `pdgetrs` | 1.25 to 1.35 | 1.07 to 1.16 |
//! | `eigh`, of the best of `pdsyevd`, `pdsyevr` and ELPA's two stages | 0.89 to 1.05 | 0.97 to 1.08 |
//!
//! Both used Debian 12's OpenBLAS 0.3.21. Of a Cholesky factorization a sixth goes into products of single blocks, which are packed for little work, and a
//! twentieth into the comparison of the two triangles. NumPy, which brings OpenBLAS 0.3.31, finds eigenvalues in 0.7 to 0.8 of our time; faer takes about 1.3 of
//! that of NumPy. The lowest tenth of the vectors takes two thirds of the time of all with LAPACK: the reduction to a tridiagonal matrix is most of both. There
//! is no such reduction over several nodes here: [`scalapack`](crate::GlobalArray::scalapack) gives a matrix to ELPA.
//!
//! # Errors
//! A matrix that has no such factors is [`Error::Matrix`](crate::Error::Matrix) on all members, with a [`MatrixError`] that says where.
//!
//! # Source
//! A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary: *HPL, a portable implementation of the High-Performance Linpack benchmark*, netlib.org/benchmark/hpl.
//! F. G. Gustavson: *Recursion leads to automatic variable blocking for dense linear-algebra algorithms*, IBM J. Res. Dev. 41(6), 1997, for a panel.
//! L. S. Blackford et al.: *ScaLAPACK Users' Guide*, SIAM 1997, for the blocks.

mod accuracy;
mod blocks;
mod call;
mod cholesky;
mod field;
mod lu;
mod symmetry;

// What needs a LAPACK or faer.
#[cfg(any(feature = "blas", feature = "faer"))]
mod answer;
#[cfg(any(feature = "blas", feature = "faer"))]
mod backend;
#[cfg(any(feature = "blas", feature = "faer"))]
mod eigen;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "blas")]
mod lapack;
#[cfg(any(feature = "blas", feature = "faer"))]
mod leader;
#[cfg(any(feature = "blas", feature = "faer"))]
mod rectangular;

pub use self::{
    accuracy::Refined,
    blocks::{Blocking, Phases},
    cholesky::Cholesky,
    field::Field,
    lu::Lu,
};
#[cfg(any(feature = "blas", feature = "faer"))]
pub use self::{answer::Spectrum, eigen::Eigen, rectangular::Svd};
pub use crate::error::MatrixError;
