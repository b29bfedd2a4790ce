//! The elements that matrices are factored of.

use num_complex::Complex;
use num_traits::{Float, NumCast, ToPrimitive};

#[cfg(feature = "faer")]
use super::faer::Routines;
use crate::algebra::Matmul;

/// An element of a matrix that has factors: `f32`, `f64` and their complex numbers.
pub trait Field: Matmul + sealed::Sealed {
    /// The first letter of the routines of LAPACK for it.
    #[doc(hidden)]
    const LETTER: char;

    /// What faer does for it.
    #[cfg(feature = "faer")]
    #[doc(hidden)]
    const BY_FAER: Routines<Self>;

    /// A real number.
    #[doc(hidden)]
    fn of_real(value: Self::Real) -> Self;

    /// The real part.
    #[doc(hidden)]
    fn real(self) -> Self::Real;

    /// The sum of the magnitudes of the real and the imaginary part: cheaper than the magnitude, and as good for a choice.
    #[doc(hidden)]
    fn size(self) -> Self::Real;

    /// The quotient, without an overflow on the way.
    #[doc(hidden)]
    fn quotient(self, by: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! fields {
    ($($real:ty, $letter:literal, $complex_letter:literal;)*) => {$(
        impl sealed::Sealed for $real {}
        impl Field for $real {
            const LETTER: char = $letter;
            #[cfg(feature = "faer")]
            const BY_FAER: Routines<Self> = Routines::ALL;

            fn of_real(value: Self) -> Self {
                value
            }

            #[inline(always)]
            fn real(self) -> Self {
                self
            }

            #[inline(always)]
            fn size(self) -> Self {
                self.abs()
            }

            #[inline(always)]
            fn quotient(self, by: Self) -> Self {
                self / by
            }
        }
        impl sealed::Sealed for Complex<$real> {}
        impl Field for Complex<$real> {
            const LETTER: char = $complex_letter;
            #[cfg(feature = "faer")]
            const BY_FAER: Routines<Self> = Routines::ALL;

            fn of_real(value: $real) -> Self {
                value.into()
            }

            #[inline(always)]
            fn real(self) -> $real {
                self.re
            }

            #[inline(always)]
            fn size(self) -> $real {
                self.re.abs() + self.im.abs()
            }

            #[inline(always)]
            fn quotient(self, by: Self) -> Self {
                let scale = by.re.abs().max(by.im.abs());
                (self / scale) / (by / scale)
            }
        }
    )*};
}
fields!(f32, 's', 'c'; f64, 'd', 'z';);

/// The closest real number of an element's precision.
pub(super) fn real_of<T: Field>(value: f64) -> T::Real {
    <T::Real as NumCast>::from(value).unwrap_or(T::Real::infinity())
}

/// False for infinity and NaN: zero times them is not zero.
pub(super) fn is_finite<T: Field>(x: T) -> bool {
    x.scaled(T::ZERO) == T::ZERO
}

/// A real number as one of double precision.
pub(super) fn wide<T: Field>(value: T::Real) -> f64 {
    value.to_f64().unwrap_or(f64::NAN)
}
