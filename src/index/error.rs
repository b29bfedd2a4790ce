//! Errors of patches.

use thiserror::Error;

/// Why a patch does not fit an array.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchError {
    /// Indices outside the array. `start` and `end` are as the user wrote them, so negative ones count from the end.
    #[error("axis {axis}: {start}..{end} is outside an extent of {extent}")]
    OutOfBounds {
        /// The axis of the array.
        axis: usize,
        /// First index requested.
        start: isize,
        /// One past the last index requested.
        end: isize,
        /// The extent of the array on this axis.
        extent: usize,
    },
    /// A step of zero.
    #[error("axis {axis}: a step must not be zero")]
    ZeroStep {
        /// The axis of the array.
        axis: usize,
    },
    /// The patch has more or fewer axes than the array.
    #[error("the patch names {given} axes, the array has {expected}")]
    AxisCount {
        /// Axes in the patch.
        given: usize,
        /// Axes in the array.
        expected: usize,
    },
    /// `NewAxis` in a slice: a patch cannot have axes that the array does not have.
    #[error("item {position} of the slice is NewAxis, which a patch cannot have")]
    NewAxis {
        /// Which item of the slice.
        position: usize,
    },
    /// More axes than a patch can name.
    #[error("a patch of {given} axes, at most {most} are possible")]
    TooManyAxes {
        /// Axes in the array.
        given: usize,
        /// The limit.
        most: usize,
    },
}

/// For error texts: an index beyond `isize` is far outside of any array, so the limit says as much as the number.
#[inline]
pub(super) fn signed(index: usize) -> isize {
    isize::try_from(index).unwrap_or(isize::MAX)
}
