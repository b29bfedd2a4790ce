//! Get and put of patches.
//!
//! `get_into` and `put` are always inlined up to their shortest path, the single element. A patch that is passed to a function is stored
//! word by word and loaded in pairs of words. Such a load waits until the store buffer is empty. Measured: 100 ns instead of 10.

use ndarray::{Array, ArrayView, ArrayViewMut, Dimension};

use super::GlobalArray;
use crate::{
    calls::{Here, located, record},
    distribution::Single,
    element::Element,
    error::Result,
    index::{IntoPatch, Patch, Selection},
    memory::buffer::{self, Source, Target},
    sync::{Kind, SignalTarget},
};

/// What errors call a put, with a signal or without.
const PUT: &str = "put";

/// # Patches
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Reads a patch into the caller's view, which may have any strides. One-sided; complete on return.
    ///
    /// The patch is written as in ndarray: `s![a..b, c..d]` with negative indices and steps, tuples or arrays of ranges, or `..` for
    /// the whole array. The view has the shape of the patch, without the axes that a single index removes.
    ///
    /// # Errors
    /// A patch outside the array; a view of the wrong shape; the end of the job. In these cases no data move.
    ///
    /// # Source
    /// GA: `NGA_Get`; the pipeline of contiguous chunks over a network: ARMCI-Gemini §III-B2.
    #[doc(alias = "NGA_Get")]
    #[inline(always)]
    #[track_caller]
    pub fn get_into<'v, P: IntoPatch<D>>(&self, patch: P, to: impl Into<ArrayViewMut<'v, T, P::Output>>) -> Result<()> {
        const OPERATION: &str = "get_into";
        self.check_job(OPERATION)?;
        let Selection { patch, kept } = match patch.into_patch(&self.extents) {
            Ok(selection) => selection,
            Err(error) => return Err(self.patch_error(OPERATION, error)),
        };
        let mut to = to.into();
        if patch.is_one()
            && (P::Output::NDIM.is_some() || kept.len() == to.ndim())
            && let Some(slot) = buffer::only_element_mut(&mut to)
        {
            // The shortest road: most small patches are single elements.
            let location = self.distribution.locate(patch.start());
            if let Some(part) = self.part(location.member) {
                *slot = part.load(location.offset);
                return Ok(());
            }
        }
        let Some(target) = Target::of(&mut to, &patch, &kept) else {
            return Err(self.shape_error(OPERATION, kept.shape::<P::Output, D>(&patch).slice(), to.shape()));
        };
        self.get_block(OPERATION, &patch, &target).here()
    }

    /// Reads a patch into a new array. One-sided; complete on return. [`get_into`](Self::get_into) avoids the allocation.
    ///
    /// # Errors
    /// Same as [`get_into`](Self::get_into).
    #[doc(alias = "NGA_Strided_get")]
    #[track_caller]
    pub fn get<P: IntoPatch<D>>(&self, patch: P) -> Result<Array<T, P::Output>> {
        const OPERATION: &str = "get";
        self.check_job(OPERATION)?;
        let Selection { patch, kept } = match patch.into_patch(&self.extents) {
            Ok(selection) => selection,
            Err(error) => return Err(self.patch_error(OPERATION, error)),
        };
        let mut array = Array::from_elem(kept.shape::<P::Output, D>(&patch), T::zeroed());
        let mut view = array.view_mut();
        let Some(target) = Target::of(&mut view, &patch, &kept) else {
            return Err(self.shape_error(OPERATION, patch.count().slice(), &[]));
        };
        self.get_block(OPERATION, &patch, &target).here()?;
        Ok(array)
    }

    /// Writes the caller's view, which may have any strides, into a patch. One-sided. On return the view may be reused; the data are
    /// visible at the owners after a [`fence`](Self::fence) or a sync.
    ///
    /// # Errors
    /// Same as [`get_into`](Self::get_into).
    ///
    /// # Source
    /// GA: `NGA_Put`; ARMCI-Gemini §III-B2.
    #[doc(alias("NGA_Put", "NGA_Strided_put"))]
    #[inline(always)]
    #[track_caller]
    pub fn put<'v, P: IntoPatch<D>>(&self, patch: P, from: impl Into<ArrayView<'v, T, P::Output>>) -> Result<()> {
        self.check_job(PUT)?;
        let Selection { patch, kept } = match patch.into_patch(&self.extents) {
            Ok(selection) => selection,
            Err(error) => return Err(self.patch_error(PUT, error)),
        };
        let from = from.into();
        if patch.is_one()
            && (P::Output::NDIM.is_some() || kept.len() == from.ndim())
            && let Some(&value) = buffer::only_element(&from)
        {
            let location = self.distribution.locate(patch.start());
            if let Some(part) = self.part(location.member) {
                part.store(location.offset, value);
                return Ok(());
            }
        }
        let Some(source) = Source::of(&from, &patch, &kept) else {
            return Err(self.shape_error(PUT, kept.shape::<P::Output, D>(&patch).slice(), from.shape()));
        };
        self.put_block(PUT, &patch, &source).here()
    }

    /// Writes a view into a patch and then raises a signal of a member, `signal.at(member, index)`. At that member the data are
    /// visible before the signal. So is everything that this rank put to the member before. One-sided; on return the view may be reused.
    ///
    /// The guarantee requires that the member owns the whole patch. Elements that other members own are still fenced before the
    /// signal. Data and signal are one message if the network has [signals](crate::network::Native::signals) and the patch is one run of
    /// the member's memory.
    ///
    /// # Errors
    /// Same as [`put`](Self::put); a member or signal that does not exist. In these cases no data move.
    ///
    /// # Source
    /// OpenSHMEM: `shmem_put_signal`; ARMCI: `ARMCI_Put_flag`.
    #[track_caller]
    pub fn put_signal<'v, P: IntoPatch<D>>(
        &self,
        patch: P,
        from: impl Into<ArrayView<'v, T, P::Output>>,
        signal: SignalTarget<'_>,
    ) -> Result<()> {
        located(move || {
            signal.check("put_signal")?;
            if self.group.inner.mapped {
                self.put(patch, from)?;
                return signal.notify();
            }
            let (patch, source) = self.resolve_put(patch, from)?;
            if let Some(put) = self.put_and_raise(&patch, &source, signal) {
                return put;
            }
            self.put_block(PUT, &patch, &source)?;
            // The signal itself waits for what its own rank gets.
            if !self.is_owned_by(signal, &patch) {
                self.fence()?;
            }
            signal.notify()
        })
    }

    /// The checks of [`put`](Self::put), for the roads over a network: the patch, and the view over its axes. Inlined for the sake of the
    /// other road, as the module's essay says.
    #[inline(always)]
    pub(super) fn resolve_put<'v, P: IntoPatch<D>>(
        &self,
        patch: P,
        from: impl Into<ArrayView<'v, T, P::Output>>,
    ) -> Result<(Patch<D>, Source<'v, T, D>)> {
        self.check_job(PUT)?;
        let Selection { patch, kept } = patch.into_patch(&self.extents).map_err(|error| self.patch_error(PUT, error))?;
        let from = from.into();
        match Source::of(&from, &patch, &kept) {
            Some(source) => Ok((patch, source)),
            None => Err(self.shape_error(PUT, kept.shape::<P::Output, D>(&patch).slice(), from.shape())),
        }
    }

    /// A patch that lies in one block needs no cutting.
    #[inline(never)]
    #[track_caller]
    pub(super) fn get_block(&self, operation: &'static str, patch: &Patch<D>, to: &Target<'_, T, D>) -> Result<()> {
        if patch.is_unit_step()
            && let Some(Single { location, strides }) = self.distribution.single(patch.start(), patch.count())
        {
            if let Some(part) = self.part(location.member) {
                part.read(location.offset, &strides, to);
                return Ok(());
            }
            if self.counted_part(location.member).is_none() {
                return self.get_single(operation, patch, to, location, &strides);
            }
        }
        self.get_pieces(operation, patch, to)
    }

    #[inline(never)]
    #[track_caller]
    pub(super) fn put_block(&self, operation: &'static str, patch: &Patch<D>, from: &Source<'_, T, D>) -> Result<()> {
        if patch.is_unit_step()
            && let Some(Single { location, strides }) = self.distribution.single(patch.start(), patch.count())
        {
            if let Some(part) = self.part(location.member) {
                part.write(location.offset, &strides, from);
                return Ok(());
            }
            if self.counted_part(location.member).is_none() {
                return self.put_single(operation, patch, from, location, &strides);
            }
        }
        self.put_pieces(operation, patch, from)
    }

    /// Cuts the patch by owners.
    #[inline(never)]
    #[track_caller]
    fn get_pieces(&self, operation: &'static str, patch: &Patch<D>, to: &Target<'_, T, D>) -> Result<()> {
        if self.group.inner.direct {
            self.get_mapped(patch, to);
            return Ok(());
        }
        let _recorded = record::call(operation);
        if self.group.inner.mapped {
            self.get_mapped(patch, to);
            self.count_patch(Kind::Get, patch);
            return Ok(());
        }
        let call = self.engine().begin(self.label(operation));
        let issued = self.issue_gets(&call, patch, to);
        self.engine().finish_call(call, issued)
    }

    #[inline(never)]
    #[track_caller]
    fn put_pieces(&self, operation: &'static str, patch: &Patch<D>, from: &Source<'_, T, D>) -> Result<()> {
        if self.group.inner.direct {
            self.put_mapped(patch, from);
            return Ok(());
        }
        let _recorded = record::call(operation);
        if self.group.inner.mapped {
            self.put_mapped(patch, from);
            self.count_patch(Kind::Put, patch);
            return Ok(());
        }
        let call = self.engine().begin(self.label(operation));
        let issued = self.issue_puts(&call, patch, from);
        self.engine().finish_call(call, issued)
    }

    /// The pieces of a patch whose owners are mapped.
    pub(super) fn get_mapped(&self, patch: &Patch<D>, to: &Target<'_, T, D>) {
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        for piece in self.distribution.pieces(patch) {
            if let Some(part) = self.counted_part(piece.member) {
                part.read(piece.offset, &piece.strides, &to.window(&piece.start, &piece.count));
            }
        }
    }

    pub(super) fn put_mapped(&self, patch: &Patch<D>, from: &Source<'_, T, D>) {
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        for piece in self.distribution.pieces(patch) {
            if let Some(part) = self.counted_part(piece.member) {
                part.write(piece.offset, &piece.strides, &from.window(&piece.start, &piece.count));
            }
        }
    }
}
