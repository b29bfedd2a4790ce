//! What computes on member 0: the LAPACK of the machine, or else the crate faer. Each is a feature, and a machine need not have a LAPACK.

use ndarray::{Array2, s};

#[cfg(feature = "faer")]
use super::faer;
#[cfg(feature = "blas")]
use super::lapack::Lapack;
use super::{
    answer::{Failure, Spectrum, Values},
    field::{Field, real_of},
};
#[cfg(not(feature = "faer"))]
use crate::error::Error;
use crate::error::Result;

/// What the machine and the features of the crate offer.
pub(super) enum Backend {
    #[cfg(feature = "blas")]
    Lapack(Lapack),
    #[cfg(feature = "faer")]
    Faer,
}

impl Backend {
    /// LAPACK if there is one, else faer.
    pub(super) fn load(operation: &'static str) -> Result<Self> {
        #[cfg(feature = "blas")]
        if let Some(lapack) = Lapack::find(operation)? {
            return Ok(Backend::Lapack(lapack));
        }
        Self::without_lapack(operation)
    }

    #[cfg(feature = "faer")]
    fn without_lapack(_operation: &'static str) -> Result<Self> {
        Ok(Backend::Faer)
    }

    #[cfg(not(feature = "faer"))]
    fn without_lapack(operation: &'static str) -> Result<Self> {
        let what = "needs a LAPACK, and no Intel MKL, FlexiBLAS or OpenBLAS is used: none is found (Debian: apt-get install libopenblas0-pthread), or \
                    GA_BLAS is \"none\"; set GA_BLAS to the path of one, or build with the feature \"faer\", which needs none";
        Err(Error::argument(operation, what))
    }

    /// How much more memory it needs than LAPACK.
    pub(super) fn appetite(&self) -> u64 {
        match self {
            #[cfg(feature = "blas")]
            Backend::Lapack(_) => 1,
            #[cfg(feature = "faer")]
            Backend::Faer => 2,
        }
    }

    /// Calls `work` in another thread, where routines use these cores.
    pub(super) fn on_cores<R: Send>(&self, cores: &[usize], work: impl FnOnce(&Self) -> R + Send) -> Result<R> {
        match self {
            #[cfg(feature = "blas")]
            Backend::Lapack(lapack) => lapack.on_cores(cores, || work(self)),
            #[cfg(feature = "faer")]
            Backend::Faer => faer::on_cores(cores, || work(self)),
        }
    }

    /// Eigenvalues and eigenvectors, as columns, of h x = λ l lᴴ x, or of h x = λ x.
    pub(super) fn eigh<T: Field>(
        &self,
        h: Array2<T>,
        l: Option<&Array2<T>>,
        spectrum: Spectrum,
    ) -> Result<(Values<T>, Array2<T>), Failure> {
        let is_nothing = match spectrum {
            // Equal in single precision.
            Spectrum::Interval(low, high) => real_of::<T>(low) >= real_of::<T>(high),
            _ => spectrum == Spectrum::Lowest(0),
        };
        if is_nothing || h.is_empty() {
            return Ok((Vec::new(), h.slice_move(s![.., ..0])));
        }
        match self {
            #[cfg(feature = "blas")]
            Backend::Lapack(lapack) => lapack.eigh(h, l, spectrum),
            #[cfg(feature = "faer")]
            Backend::Faer => (T::BY_FAER.eigh)(h, l, spectrum),
        }
    }

    /// Overwrites the first rows of `b` with the x that minimizes ‖a x - b‖, for a matrix with at least as many rows as columns; both column by column.
    pub(super) fn least_squares<T: Field>(&self, a: &mut Array2<T>, b: &mut Array2<T>) -> Result<(), Failure> {
        match self {
            #[cfg(feature = "blas")]
            Backend::Lapack(lapack) => lapack.least_squares(a, b),
            #[cfg(feature = "faer")]
            Backend::Faer => (T::BY_FAER.least_squares)(a, b),
        }
    }

    /// Of a matrix column by column: U and Vᴴ, with as many columns and rows as there are singular values, and these from the largest on.
    pub(super) fn svd<T: Field>(&self, a: Array2<T>) -> Result<([Array2<T>; 2], Values<T>), Failure> {
        match self {
            #[cfg(feature = "blas")]
            Backend::Lapack(lapack) => lapack.svd(a),
            #[cfg(feature = "faer")]
            Backend::Faer => (T::BY_FAER.svd)(a),
        }
    }
}
