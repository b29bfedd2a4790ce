//! Patches of an array, and how to walk them in two memories at once.
//!
//! Pure integer arithmetic. This module does not know ranks, owners or data. It answers three questions.
//!
//! * *Which elements does the user mean?* [`IntoPatch`] resolves what a program writes (`s![..]`, ranges, a ready patch)
//!   against the extents of an array into a [`Selection`]: a [`Patch`] of the array, and those of its axes that the user's
//!   buffer has ([`KeptAxes`]; `s![3, ..]` removes axis 0). Every user error is a [`PatchError`]; nothing panics.
//! * *What is a patch?* On each axis, an arithmetic progression: first index, count, step. Steps may be negative, as in
//!   ndarray: `s![a..b;-1]` starts at `b - 1`. A patch does not belong to an array; only resolution ensures that it lies inside.
//! * *How do its data move?* [`Loops`] turns counts and the strides of two memories into the fewest contiguous runs.
//!
//! Arrays of up to six axes need no allocation, and resolution is inlined into its caller: with `s![i..i + 1, j..j + 1]` the
//! kinds of items and their steps are constants, so only the comparisons with the extents remain.
//!
//! Steps and strides are signed but are stored in a dimension value as `isize as usize`, which is ndarray's own convention.

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
