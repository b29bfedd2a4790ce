//! Copies. From a mapped owner each block common to both distributions is copied from part to part. Otherwise boxes go through a private
//! buffer.

use ndarray::{Array, Dimension};

use super::{Elements, IntoOperand, Operand};
use crate::{
    array::GlobalArray,
    calls::located,
    distribution::Piece,
    element::Element,
    error::{Error, Result},
    index::IntoPatch,
};

/// Bytes that travel at once where the source is not mapped: long enough that the network, not its latency, sets the pace.
pub(super) const TRANSFER: usize = 1 << 20;

pub(super) const ASSIGN: &str = "assign";

/// # Algebra, copies and transposes
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Copies an array, a patch ([`at`](Self::at)) or a transposed array ([`t`](Self::t)) with the shape of `self` and any
    /// distribution. Collective; an array with the same distribution needs no communication.
    ///
    /// # Errors
    /// Different shapes or groups; a patch outside its array; the errors of [`fill`](Self::fill).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<i64, Ix2>::builder(job, [2, 5]).create()?;
    ///     a.map_indexed(|(i, j), _| (10 * i + j) as i64)?;
    ///     let mut t = GlobalArray::<i64, Ix2>::builder(job, [5, 2]).create()?;
    ///     t.assign(a.t())?;
    ///     assert_eq!(t.load([4, 1])?, 14);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Copy`, `GA_Transpose`.
    #[doc(alias = "GA_Copy")]
    #[doc(alias = "copy_from")]
    #[track_caller]
    pub fn assign(&mut self, source: impl IntoOperand<T, D>) -> Result<()> {
        located(move || self.all().assign(&source.into_operand().resolve(ASSIGN)?))
    }

    /// Copies a patch to another one of the same array, which has the same shape and no element in common with it. Collective.
    ///
    /// # Errors
    /// Patches that overlap, unless they are equal; different shapes; the errors of [`assign`](Self::assign).
    ///
    /// # Source
    /// GA: `NGA_Copy_patch` with one array; the standard library's `copy_within`.
    #[track_caller]
    pub fn copy_within<P: IntoPatch<D>>(&mut self, from: P, to: impl IntoPatch<D, Output = P::Output>) -> Result<()> {
        located(move || {
            const OPERATION: &str = "copy_within";
            let (source, target) = (self.at(from).resolve(OPERATION)?, self.at(to).resolve(OPERATION)?);
            let (from, to) = (&source.selection.patch, &target.selection.patch);
            if from == to {
                return self.enter(OPERATION, &[source.fingerprint()], Elements::Own)?.leave(Ok(()));
            }
            if from.overlaps(to) {
                let what = format_args!("{source} and {target} overlap: copy by way of another array");
                return Err(Error::argument(OPERATION, what));
            }
            target.assign(&source)
        })
    }

    /// A patch on one member; the others get `None`. Collective: it sees what any member wrote before, and on return all may write.
    ///
    /// # Errors
    /// A member that does not exist; a patch outside the array; the errors of [`fill`](Self::fill).
    #[track_caller]
    pub fn get_on<P: IntoPatch<D>>(&self, member: usize, patch: P) -> Result<Option<Array<T, P::Output>>> {
        located(move || {
            const OPERATION: &str = "get_on";
            let operand = self.at(patch).resolve(OPERATION)?;
            if member >= self.group.size() {
                return Err(Error::argument(OPERATION, format_args!("member {member} of a group of {}", self.group.size())));
            }
            let section = self.enter(OPERATION, &[operand.fingerprint(), member as u64], Elements::All)?;
            let got = (self.group.member() == member).then(|| {
                let shape = operand.shape();
                let mut array = Array::from_elem(shape.clone(), T::zeroed());
                operand.read(&P::Output::zeros(shape.ndim()), &shape, array.view_mut()).map(|()| array)
            });
            section.leave(got.transpose())
        })
    }
}

impl<T: Element, D: Dimension, S: Dimension> Operand<'_, T, D, S> {
    pub(super) fn assign<R: Dimension>(&self, source: &Operand<'_, T, D, R>) -> Result<()> {
        self.check_operand(ASSIGN, source)?;
        let section = self.array.enter(ASSIGN, &[self.fingerprint(), source.fingerprint()], self.uses(source))?;
        let copied = if self.matches(source) {
            self.share_each_run(2, self.array.thread_share(), |run| {
                let [own, from] = [self.array.own_part(), source.array.own_part()].map(|part| part.slice(run.clone()));
                own.copy_from(&from);
            });
            Ok(())
        } else if source.transposed {
            self.fetch_transposed(source)
        } else {
            self.fetch(source)
        };
        section.leave(copied)
    }

    /// Writes what this rank owns, from an operand of the same shape.
    fn fetch<R: Dimension>(&self, source: &Operand<'_, T, D, R>) -> Result<()> {
        if !source.is_copied_by_blocks_to(self.array) {
            return self.fetch_boxes(source);
        }
        let own_part = self.array.own_part();
        for own in self.own_pieces() {
            source.pieces_as_it_lies(&own.start, &own.count, |from| {
                let part = source.array.part(from.member).expect("a mapped group");
                let at = position(&own, &from.start);
                own_part.copy_block((at, &own.strides), &part, (from.offset, &from.strides), &from.count);
            });
        }
        Ok(())
    }

    /// Whether its owners' memory is mapped, is that of another array, and holds what operations see.
    pub(super) fn is_copied_by_blocks_to<R>(&self, array: &GlobalArray<T, R>) -> bool {
        self.array.group.inner.direct && self.conjugate.is_none() && !std::ptr::addr_eq(self.array, array)
    }

    fn fetch_boxes<R: Dimension>(&self, source: &Operand<'_, T, D, R>) -> Result<()> {
        let most = TRANSFER / size_of::<T>().max(1);
        let mut buffer = vec![T::zeroed(); most.max(1).min(self.selection.patch.len())];
        let elements = self.own_boxes(self.edges(most), |own| {
            source.read(&own.start, &own.count, self.box_view(&own.count, &mut buffer))?;
            self.write_box(own, &self.box_view(&own.count, &mut buffer).view());
            Ok(())
        })?;
        // What has arrived is read once more.
        self.array.streamed::<T>(2 * elements);
        Ok(())
    }
}

/// Where position `start` of a piece lies in its owner's part.
pub(super) fn position<D: Dimension>(piece: &Piece<D>, start: &D) -> usize {
    // Two's complement: strides are signed.
    (0..start.ndim()).fold(piece.offset, |at, axis| at.wrapping_add(start[axis].wrapping_mul(piece.strides[axis])))
}
