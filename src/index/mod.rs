//! Patches of an array, and how to walk them in two memories at once. Pure integer arithmetic.
//!
//! * [`IntoPatch`] resolves what a program writes (`s![..]`, ranges, a ready patch) against the extents of an array into a [`Selection`]:
//!   a [`Patch`], and those of its axes that the user's buffer has ([`KeptAxes`]; `s![3, ..]` removes axis 0). Every user error is a
//!   [`PatchError`]; nothing panics.
//! * A patch is an arithmetic progression on each axis. Steps may be negative, as in ndarray: `s![a..b;-1]` starts at `b - 1`. Only
//!   resolution ensures that a patch lies inside an array.
//! * [`Loops`] turns counts and the strides of two memories into the fewest contiguous runs.
//!
//! Arrays of up to six axes need no allocation. Resolution is inlined into its caller: with `s![i..i + 1, j..j + 1]` only the comparisons
//! with the extents remain. Steps and strides are signed, stored in a dimension value as `isize as usize`, as in ndarray.

mod error;
mod into_patch;
mod loops;
mod patch;
mod ranges;
mod slice;

pub use error::PatchError;
pub use into_patch::{IntoPatch, KeptAxes, Selection};
pub use loops::{Level, Loops};
pub use patch::Patch;
pub use ranges::AxisRange;
