//! Errors of distributions.

use thiserror::Error;

/// Why an array cannot be distributed as requested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// A group without members.
    #[error("an array needs at least one member")]
    NoMembers,
    /// More axes than a patch can name.
    #[error("{axes} axes were asked for; at most {most} are possible")]
    TooManyAxes {
        /// Axes requested.
        axes: usize,
        /// The limit.
        most: usize,
    },
    /// More elements than can be counted.
    #[error("extents {extents:?} have more than {} elements", isize::MAX)]
    TooLarge {
        /// Extents requested.
        extents: Vec<usize>,
    },
    /// A list with one entry for each axis has another length.
    #[error("{what} for {given} axes, the array has {expected}")]
    AxisCount {
        /// Which list.
        what: &'static str,
        /// Its length.
        given: usize,
        /// Axes of the array.
        expected: usize,
    },
    /// A block edge of zero.
    #[error("axis {axis}: a block edge must not be zero")]
    ZeroBlock {
        /// The axis.
        axis: usize,
    },
    /// No process on an axis.
    #[error("axis {axis}: a process grid must not be zero")]
    ZeroGrid {
        /// The axis.
        axis: usize,
    },
    /// A grid, or a list of blocks, that needs more members than there are.
    #[error("a grid of {grid:?} needs more than {members} members")]
    GridTooLarge {
        /// Coordinates on each axis.
        grid: Vec<usize>,
        /// Members of the group.
        members: usize,
    },
    /// A restriction to a member that does not exist.
    #[error("owner {owner} is not a member of a group of {members}")]
    NoSuchOwner {
        /// The number that was given.
        owner: usize,
        /// Members of the group.
        members: usize,
    },
    /// A restriction whose list names a member twice.
    #[error("the list of owners names member {owner} twice")]
    OwnerTwice {
        /// The member.
        owner: usize,
    },
    /// Ghost cells in a block-cyclic or tiled array.
    #[error("ghost cells need one block for each member: block-cyclic and tiled arrays have several")]
    GhostsOfManyBlocks,
    /// Boundaries or corners of ghost cells for an array that has none.
    #[error("boundaries and corners are those of ghost cells: give their widths too")]
    NoGhosts,
    /// Ghost cells for an array that is already restricted.
    #[error("ghost cells come before the restriction to some members: restrict the distribution that has them")]
    GhostsOfRestricted,
    /// The list of cuts of an axis does not begin with 0.
    #[error("axis {axis}: the first cut must be 0")]
    FirstCut {
        /// The axis.
        axis: usize,
    },
    /// A cut that is less than the one before it, or beyond the extent.
    #[error("axis {axis}: cut {position} is {cut}, after {previous} in an extent of {extent}")]
    Cut {
        /// The axis.
        axis: usize,
        /// Which cut, from 0.
        position: usize,
        /// Its value.
        cut: usize,
        /// The one before.
        previous: usize,
        /// The extent of the axis.
        extent: usize,
    },
}
