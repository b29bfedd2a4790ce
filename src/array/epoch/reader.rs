//! Reads of all members' parts.

use std::fmt;

use ndarray::{Array, ArrayViewMut, Dimension, IntoDimension};

use super::GlobalArray;
use crate::{array::GatherPlan, calls::located, element::Element, error::Result, index::IntoPatch};

/// The one-sided reads of an array that no rank can write: in a read epoch, or [frozen](crate::Frozen).
#[repr(transparent)]
pub struct Reader<T, D>(pub(super) GlobalArray<T, D>);

impl<T, D> fmt::Debug for Reader<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl<T: Element, D: Dimension> Reader<T, D> {
    /// See [`GlobalArray::get_into`].
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn get_into<'v, P: IntoPatch<D>>(&self, patch: P, to: impl Into<ArrayViewMut<'v, T, P::Output>>) -> Result<()> {
        located(move || self.0.get_into(patch, to))
    }

    /// See [`GlobalArray::get`].
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn get<P: IntoPatch<D>>(&self, patch: P) -> Result<Array<T, P::Output>> {
        located(move || self.0.get(patch))
    }

    /// See [`GlobalArray::load`].
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn load(&self, index: impl IntoDimension<Dim = D>) -> Result<T> {
        located(move || self.0.load(index))
    }

    /// See [`GlobalArray::gather`].
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn gather<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I], to: &mut [T]) -> Result<()> {
        located(move || self.0.gather(subscripts, to))
    }

    /// See [`GatherPlan::fetch`].
    ///
    /// # Errors
    /// The same errors as that method.
    #[track_caller]
    pub fn fetch(&self, plan: &GatherPlan<D>, to: &mut [T]) -> Result<()> {
        located(move || plan.fetch(&self.0, to))
    }
}
