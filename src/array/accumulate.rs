//! `a[patch] += alpha * buffer`, atomic for each element against all other accumulates.
//!
//! They exclude each other, because an array has one rule from its creation, by its group's placement and its elements' type:
//!
//! | memory of the members | which processor adds |
//! |---|---|
//! | all mapped | the caller's, under the owner's striped lock |
//! | some not mapped; the network accumulates and knows the type | mapped members: the same; others: one of the owner's node, same lock |
//! | some not mapped, otherwise | the caller's, even for the owner, under a lock by network (`comm::engine::accumulate`) |

use ndarray::{ArrayView, Dimension};

use super::GlobalArray;
use crate::{
    calls::{Here, record},
    comm::{
        Scale,
        engine::{
            Call,
            accumulate::{accumulate_at_owner, accumulate_remote},
            stripe_lock::lock_stripes,
        },
    },
    distribution::Single,
    element::Additive,
    error::Result,
    index::{IntoPatch, Patch, Selection},
    memory::{buffer::Source, stripes},
    sync::Kind,
};

/// A piece longer than this is added slab by slab, so that others get their turn at the lock.
const SLAB: usize = 4 * stripes::STRIPE;

/// # Patches: accumulate
impl<T: Additive, D: Dimension> GlobalArray<T, D> {
    /// Adds `alpha` times the caller's view to a patch. One-sided; atomic for each element with respect to other accumulates. On
    /// return the view may be reused; the sums are visible at the owners after a fence or a sync.
    ///
    /// # Errors
    /// A patch outside the array; a view of the wrong shape; the end of the job.
    ///
    /// # Source
    /// GA: `NGA_Acc`; ARMCI-Gemini §III-B3.
    #[doc(alias("NGA_Acc", "NGA_Strided_acc"))]
    #[inline(always)]
    #[track_caller]
    pub fn accumulate<'v, P: IntoPatch<D>>(
        &self,
        patch: P,
        alpha: T::Scale,
        from: impl Into<ArrayView<'v, T, P::Output>>,
    ) -> Result<()> {
        const OPERATION: &str = "accumulate";
        self.check_job(OPERATION)?;
        let Selection { patch, kept } = match patch.into_patch(&self.extents) {
            Ok(selection) => selection,
            Err(error) => return Err(self.patch_error(OPERATION, error)),
        };
        let from = from.into();
        let Some(source) = Source::of(&from, &patch, &kept) else {
            return Err(self.shape_error(OPERATION, kept.shape::<P::Output, D>(&patch).slice(), from.shape()));
        };
        self.accumulate_block(OPERATION, &patch, alpha, &source).here()
    }

    /// A patch that lies in one block of a mapped owner needs no cutting.
    #[inline(never)]
    #[track_caller]
    fn accumulate_block(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        alpha: T::Scale,
        from: &Source<'_, T, D>,
    ) -> Result<()> {
        if !self.group.inner.direct {
            return self.accumulate_elsewhere(operation, patch, alpha, from);
        }
        if patch.is_unit_step()
            && let Some(Single { location, strides }) = self.distribution.single(patch.start(), patch.count())
        {
            return self.accumulate_piece(location.member, location.offset, &strides, alpha, from);
        }
        self.accumulate_mapped(patch, alpha, from)
    }

    #[inline(never)]
    fn accumulate_mapped(&self, patch: &Patch<D>, alpha: T::Scale, from: &Source<'_, T, D>) -> Result<()> {
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        for piece in self.distribution.pieces(patch) {
            let window = from.window(&piece.start, &piece.count);
            self.accumulate_piece(piece.member, piece.offset, &piece.strides, alpha, &window)?;
        }
        Ok(())
    }

    /// If the job counts operations, or over the network.
    #[cold]
    #[track_caller]
    fn accumulate_elsewhere(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        alpha: T::Scale,
        from: &Source<'_, T, D>,
    ) -> Result<()> {
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        let _recorded = record::call(operation);
        if self.group.inner.mapped {
            self.count_patch(Kind::Accumulate, patch);
            return self.accumulate_mapped(patch, alpha, from);
        }
        if let Some(scale) = self.owners_scale(alpha) {
            return self.accumulate_at_owners(operation, patch, alpha, &scale, from);
        }
        self.count_patch(Kind::Accumulate, patch);
        for piece in self.distribution.pieces(patch) {
            let window = from.window(&piece.start, &piece.count);
            let rank = self.group.inner.rank_of(piece.member);
            let at = self.offset + piece.offset * size_of::<T>();
            let lock = self.group.inner.job.remote_lock();
            accumulate_remote(self.engine(), rank, lock, at, &piece.strides, alpha, &window, &self.label(operation))?;
        }
        Ok(())
    }

    /// What unmapped owners multiply by, if they add: the second line of the module's table.
    #[inline]
    pub(super) fn owners_scale(&self, alpha: T::Scale) -> Option<Scale> {
        if self.group.inner.owners_add { Scale::of::<T>(alpha) } else { None }
    }

    fn accumulate_at_owners(
        &self,
        operation: &'static str,
        patch: &Patch<D>,
        alpha: T::Scale,
        scale: &Scale,
        from: &Source<'_, T, D>,
    ) -> Result<()> {
        if patch.is_unit_step()
            && let Some(Single { location, strides }) = self.distribution.single(patch.start(), patch.count())
            && self.group.inner.segments.is_mapped(location.member)
        {
            // No request for what needs no network.
            self.count_patch(Kind::Accumulate, patch);
            return self.accumulate_piece(location.member, location.offset, &strides, alpha, from);
        }
        let call = self.engine().begin(self.label(operation));
        let issued = self.issue_accumulates(&call, patch, alpha, scale, from);
        self.engine().finish_call(call, issued)
    }

    /// Adds to a call what unmapped owners add, then adds at the others, so that the network works meanwhile. The caller
    /// completes the call before the buffer's life ends.
    pub(super) fn issue_accumulates(
        &self,
        call: &Call,
        patch: &Patch<D>,
        alpha: T::Scale,
        scale: &Scale,
        from: &Source<'_, T, D>,
    ) -> Result<()> {
        // The patch is checked before its owners are counted.
        assert!(patch.lies_inside(&self.extents), "a patch outside the array");
        self.count_patch(Kind::Accumulate, patch);
        let inner = &self.group.inner;
        for mapped in [false, true] {
            for piece in self.distribution.pieces(patch).filter(|piece| inner.segments.is_mapped(piece.member) == mapped) {
                let window = from.window(&piece.start, &piece.count);
                if mapped {
                    self.accumulate_piece(piece.member, piece.offset, &piece.strides, alpha, &window)?;
                    continue;
                }
                let (rank, at) = (inner.rank_of(piece.member), self.offset + piece.offset * size_of::<T>());
                let lock = inner.job.accumulate_lock;
                accumulate_at_owner(self.engine(), call, rank, lock, at, &piece.strides, scale, &window)?;
            }
        }
        Ok(())
    }

    /// One owner's block, slab by slab along the first axis.
    #[inline]
    fn accumulate_piece(&self, member: usize, at: usize, strides: &D, alpha: T::Scale, from: &Source<'_, T, D>) -> Result<()> {
        let part = self.mapped_part(member);
        let total = from.len() * size_of::<T>();
        let rows = from.counts().slice().first().copied().unwrap_or(1);
        if total <= SLAB || rows <= 1 {
            let _held = self.lock_range(member, at, strides, from.counts())?;
            part.accumulate(at, strides, alpha, from);
            return Ok(());
        }
        let step = (SLAB / (total / rows).max(1)).max(1);
        let mut start = D::zeros(from.counts().ndim());
        let mut counts = from.counts().clone();
        for row in (0..rows).step_by(step) {
            start[0] = row;
            counts[0] = step.min(rows - row);
            let at = at.wrapping_add_signed(row as isize * strides[0] as isize);
            let _held = self.lock_range(member, at, strides, &counts)?;
            part.accumulate(at, strides, alpha, &from.window(&start, &counts));
        }
        Ok(())
    }

    /// Locks the stripes that a block of an owner's part touches.
    #[inline]
    fn lock_range(&self, member: usize, at: usize, strides: &D, counts: &D) -> Result<stripes::Held<'_>> {
        let (mut low, mut high) = (at as isize, at as isize);
        for (&count, &stride) in counts.slice().iter().zip(strides.slice()) {
            let reach = (count.max(1) as isize - 1) * stride as isize;
            if reach < 0 { low += reach } else { high += reach }
        }
        let byte = |element: isize| self.offset + element as usize * size_of::<T>();
        self.lock_member(member, stripes::mask(byte(low)..=byte(high) + size_of::<T>().max(1) - 1), false)
    }

    /// Locks stripes of a member; the caller is `holding` stripes of others or not.
    #[inline]
    pub(super) fn lock_member(&self, member: usize, mask: u64, holding: bool) -> Result<stripes::Held<'_>> {
        let inner = &self.group.inner;
        let lock = inner.segments.stripes(member, inner.job.accumulate_lock).expect("a mapped member");
        match lock.try_lock(mask) {
            Some(held) => Ok(held),
            None => lock_stripes(self.engine(), &lock, mask, holding, &self.label("accumulate")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use bytemuck::{Pod, Zeroable};
    use ndarray::{Array1, Array2, Ix1, Ix2, s};

    use super::*;
    use crate::{Error, Launch, distribution::Order};

    /// Elements of several stripes, and of more than one slab.
    const ROWS: usize = 700;
    const COLUMNS: usize = 300;

    /// Its own place in memory, in elements from the first of the part. A sum asks whether the stripe of that place is held.
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
    #[repr(transparent)]
    struct Place(u64);

    type Ask = Box<dyn Fn(u64)>;

    thread_local! {
        static ASK: RefCell<Option<Ask>> = const { RefCell::new(None) };
        static SUMS: Cell<usize> = const { Cell::new(0) };
    }

    impl Additive for Place {
        type Scale = u64;
        const ZERO: Self = Place(0);
        fn plus(self, _: Self) -> Self {
            SUMS.set(SUMS.get() + 1);
            ASK.with_borrow(|ask| ask.as_ref().expect("the question of the test")(self.0));
            self
        }
        fn scaled(self, _: u64) -> Self {
            self
        }
    }

    #[test]
    fn each_element_is_added_under_its_own_stripe() {
        let body = |job: &crate::Job| {
            // So that stripes are not counted from the part's first byte.
            let _before = GlobalArray::<u8, Ix1>::builder(job, [40_000]).create()?;
            for order in [Order::RowMajor, Order::ColumnMajor] {
                let mut a = GlobalArray::<Place, Ix2>::builder(job, [ROWS, COLUMNS]).order(order).create()?;
                a.owner_epoch(|mut part| part.iter_mut().zip(0..).for_each(|(place, k)| *place = Place(k)))?;
                let inner = a.group.inner.clone();
                let first = a.offset;
                ASK.set(Some(Box::new(move |place| {
                    let stripes = inner.segments.stripes(0, inner.job.accumulate_lock).expect("a mapped member");
                    let byte = first + place as usize * size_of::<Place>();
                    assert!(
                        stripes.try_lock(stripes::mask(byte..=byte)).is_none(),
                        "place {place} is added to without its stripe"
                    );
                })));
                let add = |patch: (std::ops::Range<usize>, std::ops::Range<usize>)| {
                    SUMS.set(0);
                    let ones = Array2::from_elem([patch.0.len(), patch.1.len()], Place::ZERO);
                    a.accumulate(patch, 1, &ones)?;
                    assert_eq!(SUMS.get(), ones.len());
                    Ok::<(), Error>(())
                };
                add((0..ROWS, 0..COLUMNS))?;
                add((0..ROWS, 7..8))?;
                add((690..691, 0..COLUMNS))?;
                add((3..650, 250..300))?;
                add((20..24, 0..COLUMNS))?;
                a.accumulate(s![3..650;-3, 1..;2], 1, &Array2::from_elem([216, 150], Place::ZERO))?;
                SUMS.set(0);
                let list: Vec<[usize; 2]> = (0..ROWS).map(|row| [row, row * 7 % COLUMNS]).collect();
                a.scatter_accumulate(&list, 1, &[Place::ZERO; ROWS])?;
                assert_eq!(SUMS.get(), ROWS);
                a.accumulate_nb(s![.., 3], 1, Array1::from_elem(ROWS, Place::ZERO))?.wait()?;
            }
            ASK.set(None);
            job.sync()
        };
        Launch::new().ranks(1).network("threads").run(body).unwrap();
    }
}
