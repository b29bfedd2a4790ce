//! Global arrays: one dense array spread over the members of a group.
//!
//! | file | contents |
//! |---|---|
//! | `builder` | creation |
//! | `transfer`, `accumulate` | gets, puts and sums of patches |
//! | `element`, `lists`, `plan` | single elements; plans of lists that are read often |
//! | `nonblocking`, `scope` | transfers in flight |
//! | `remote` | transfers with members that are not mapped |
//! | `periodic` | patches that wrap around |
//! | `counted` | what statistics count |
//! | `epoch`, `owned`, `by_index` | race-free local access |
//! | `frozen` | arrays that nobody writes |
//! | `ghost` | updates of ghost cells |
//! | `algebra`, `matmul` | collective operations |
//! | `scalapack` | matrices for other libraries |
//!
//! The fast path: if a patch lies inside one block of an owner whose memory is mapped, an operation is a bounds check, owner arithmetic
//! and a copy, without lock, allocation or conduit. All other patches are cut into pieces first.

// The order of the methods in the documentation: that of the table at `GlobalArray`.
mod builder;

mod transfer;

mod accumulate;

mod periodic;

mod element;

mod lists;
mod plan;

mod nonblocking;
mod scope;

mod epoch;
mod owned;
#[cfg(feature = "rayon")]
mod par_blocks;

mod by_index;

mod frozen;

mod ghost;

mod algebra;
mod matmul;

mod scalapack;

mod counted;
mod remote;

use std::{fmt, panic::Location, sync::Arc};

use ndarray::{Dimension, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn};

pub(crate) use algebra::{Elements, Operand, reversed};
pub use algebra::{Halve, IntoOperand, IntoValues, PatchMut, PatchRef, Summary, Values, VectorOrMatrix};
pub use builder::Builder;
pub use by_index::Cells;
pub use element::FetchOp;
pub use epoch::{Claims, Ghosts, GhostsMut, Owned, OwnedMut, PartsOf, Reader};
pub use frozen::Frozen;
pub use ghost::GhostUpdate;
pub use matmul::Matmul;
#[cfg(feature = "blas")]
pub(crate) use matmul::blas;
pub(crate) use matmul::rectangles;
pub use nonblocking::{Get, Pending};
pub use owned::{GhostPart, GhostPartMut, OwnedPart, OwnedPartMut};
pub use periodic::{IndexRanges, Periodic};
pub use plan::GatherPlan;
pub use scalapack::BlockCyclic;
pub use scope::Scope;

use crate::{
    calls::located,
    comm::engine::{Engine, Label},
    distribution::{Block, Distribution},
    element::{Element, has_atomics},
    error::{Error, Result},
    index::PatchError,
    memory::{
        part::Part,
        segments::{Placement, Segments},
    },
    sync::{Group, Op},
};

/// A dense array spread over the members of a group. Any member can read, write and add to any patch of it at any time.
///
/// Each rank has one handle, which is not `Clone`; this makes epochs free of data races by type. The handle is `Send + Sync`, so
/// several threads of a rank may use it at once. Dropping it is local and does not free the memory at once: a later creation in the
/// same group frees it. The collective [`destroy`](Self::destroy) frees it immediately.
///
/// # Methods by purpose
///
/// | purpose | methods |
/// |---|---|
/// | create | [`builder`](Self::builder), [`duplicate`](Self::duplicate), [`from_file`](Self::from_file), [`destroy`](Self::destroy) |
/// | patches | [`get_into`](Self::get_into), [`get`](Self::get), [`put`](Self::put), [`accumulate`](Self::accumulate), [`put_signal`](Self::put_signal), [`periodic`](Self::periodic) |
/// | elements | [`load`](Self::load), [`store`](Self::store), [`fetch_add`](Self::fetch_add), [`fetch_op`](Self::fetch_op), [`swap`](Self::swap), [`compare_exchange`](Self::compare_exchange) |
/// | lists | [`gather`](Self::gather), [`scatter`](Self::scatter), [`scatter_accumulate`](Self::scatter_accumulate), [`scatter_op`](Self::scatter_op), [`gather_plan`](Self::gather_plan) |
/// | non-blocking | [`get_nb`](Self::get_nb), [`put_nb`](Self::put_nb), [`accumulate_nb`](Self::accumulate_nb), [`Group::scope`](crate::Group::scope), [`fence`](Self::fence) |
/// | epochs | [`owner_epoch`](Self::owner_epoch), [`read_epoch`](Self::read_epoch), [`owned`](Self::owned), [`owned_mut`](Self::owned_mut), [`Group::epoch`](crate::Group::epoch), [`access`](Self::access), [`freeze`](Self::freeze), [`freeze_on_nodes`](Self::freeze_on_nodes) |
/// | ghosts | [`ghosts`](Self::ghosts), [`ghosts_mut`](Self::ghosts_mut), [`update_ghosts`](Self::update_ghosts), [`update_ghosts_at`](Self::update_ghosts_at), [`update_ghosts_nb`](Self::update_ghosts_nb) |
/// | algebra; on patches with [`at`](Self::at), [`at_mut`](Self::at_mut), [`t`](Self::t), [`h`](Self::h) | [`fill`](Self::fill), [`zero`](Self::zero), [`map`](Self::map), [`map_indexed`](Self::map_indexed), [`scale`](Self::scale), [`add_constant`](Self::add_constant), [`assign`](Self::assign), [`assign_sum`](Self::assign_sum), [`assign_product`](Self::assign_product), [`assign_zip`](Self::assign_zip), [`scaled_add`](Self::scaled_add), [`matmul`](Self::matmul), [`symmetrize`](Self::symmetrize), [`antisymmetrize`](Self::antisymmetrize), [`diagonal`](Self::diagonal), [`set_diagonal`](Self::set_diagonal), [`add_diagonal`](Self::add_diagonal), [`shift_diagonal`](Self::shift_diagonal), [`scale_rows`](Self::scale_rows), [`scale_cols`](Self::scale_cols), [`copy_within`](Self::copy_within), [`assign_reshaped`](Self::assign_reshaped), [`axpby`](Self::axpby), [`zip_with`](Self::zip_with), [`zip_with2`](Self::zip_with2), [`assign_map`](Self::assign_map) |
/// | reductions | [`sum`](Self::sum), [`dot`](Self::dot), [`reduce`](Self::reduce), [`map_reduce`](Self::map_reduce), [`argmin`](Self::argmin), [`argmax`](Self::argmax), [`max_abs`](Self::max_abs), [`sum_axis`](Self::sum_axis), [`trace`](Self::trace), [`norm_frobenius`](Self::norm_frobenius), `norm_1` and `norm_infinity` of vectors and matrices |
/// | files and text | [`save`](Self::save), [`from_file`](Self::from_file), [`read`](Self::read), [`write_to`](Self::write_to) |
/// | queries | [`name`](Self::name), [`shape`](Self::shape), [`ndim`](Self::ndim), [`len`](Self::len), [`is_empty`](Self::is_empty), [`group`](Self::group), [`distribution`](Self::distribution), [`blocks`](Self::blocks), [`owner`](Self::owner), [`summary`](Self::summary), [`scalapack`](Self::scalapack) |
pub struct GlobalArray<T, D> {
    /// Bounds of every patch; all zero once the array is poisoned, so that the fast path needs no extra check.
    extents: D,
    distribution: Distribution<D>,
    /// Where each member's part begins in its segment, in bytes.
    offset: usize,
    /// The longest part, in every member's segment.
    placement: Placement<T>,
    /// How this rank's ghost cells are filled, if it has any.
    ghost_plan: Option<Box<ghost::Plan<D>>>,
    group: Group,
    id: u64,
    name: Arc<str>,
    poisoned: bool,
    /// The block was given back; dropping the handle says nothing more.
    destroyed: bool,
    /// It needs no contents where the job skips.
    hollow: bool,
}

/// A global array of one axis.
pub type GlobalArray1<T> = GlobalArray<T, Ix1>;
/// A global array of two axes, a matrix.
pub type GlobalArray2<T> = GlobalArray<T, Ix2>;
/// A global array of three axes.
pub type GlobalArray3<T> = GlobalArray<T, Ix3>;
/// A global array of four axes.
pub type GlobalArray4<T> = GlobalArray<T, Ix4>;
/// A global array of five axes.
pub type GlobalArray5<T> = GlobalArray<T, Ix5>;
/// A global array of six axes.
pub type GlobalArray6<T> = GlobalArray<T, Ix6>;
/// A global array whose number of axes is known only at run time.
pub type GlobalArrayD<T> = GlobalArray<T, IxDyn>;

/// # Queries, completion, end
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// The array's name, used in messages.
    #[doc(alias = "GA_Inquire_name")]
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Elements along each axis.
    #[doc(alias = "NGA_Inquire")]
    #[doc(alias = "extents")]
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.distribution.shape()
    }

    /// Number of axes.
    #[doc(alias("GA_Ndim", "GA_Get_dimension"))]
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether the array has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shape().contains(&0)
    }

    /// The group that the array belongs to.
    #[doc(alias = "GA_Get_pgroup")]
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Which member owns which elements.
    #[must_use]
    pub fn distribution(&self) -> &Distribution<D> {
        &self.distribution
    }

    /// The blocks that a member owns, in row-major order of their positions in its part. Works for every distribution. Local.
    #[doc(alias("NGA_Distribution", "GA_Total_blocks"))]
    pub fn blocks(&self, member: usize) -> impl Iterator<Item = Block<D>> + '_ {
        self.distribution.blocks(member)
    }

    /// The blocks that this member owns; see [`blocks`](Self::blocks). Local.
    pub fn own_blocks(&self) -> impl Iterator<Item = Block<D>> + '_ {
        self.blocks(self.group.member())
    }

    /// The member that owns an element. Local.
    ///
    /// # Errors
    /// An index outside the array.
    #[doc(alias = "NGA_Locate")]
    #[track_caller]
    pub fn owner(&self, index: impl ndarray::IntoDimension<Dim = D>) -> Result<usize> {
        located(move || {
            let index = index.into_dimension();
            self.check_index("owner", &index)?;
            Ok(self.distribution.locate(&index).member)
        })
    }

    /// Makes everything that this rank put into or added to this array visible at its owners. One-sided.
    ///
    /// # Errors
    /// An operation that failed since the last fence; the end of the job.
    #[doc(alias = "GA_Fence")]
    #[track_caller]
    pub fn fence(&self) -> Result<()> {
        located(move || {
            self.check_job("fence")?;
            self.engine().fence(None, &self.label("fence"))
        })
    }

    /// Frees the array on all members immediately. Collective.
    ///
    /// # Errors
    /// Members in different collectives; the end of the job.
    #[doc(alias = "GA_Destroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        located(|| {
            let _creating = self.group.inner.job.creating("destroy")?;
            self.group.settle(Op::Destroy, self.id)?;
            self.group.inner.job.free(&self.group, self.offset);
            self.destroyed = true;
            Ok(())
        })
    }

    /// A number that the members agree on.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.group.inner.engine()
    }

    pub(crate) fn label(&self, operation: &'static str) -> Label {
        Label::new(self.name.clone(), operation)
    }

    /// Of a request that outlives the call of the program at this place.
    pub(crate) fn label_at(&self, operation: &'static str, caller: &'static Location<'static>) -> Label {
        Label { caller: Some(caller), ..self.label(operation) }
    }

    /// A member's part, if its memory is mapped and the job does not count operations: the shortest path.
    #[inline(always)]
    pub(crate) fn part(&self, member: usize) -> Option<Part<'_, T>> {
        self.group.inner.segments.placed(member, &self.placement)
    }

    /// A member's part, if its memory is mapped; for operations that were counted.
    #[inline(always)]
    pub(crate) fn counted_part(&self, member: usize) -> Option<Part<'_, T>> {
        self.group.inner.segments.reached(member, &self.placement)
    }

    /// As [`part`](Self::part) for single elements that are loaded and stored by the processor.
    #[inline(always)]
    pub(crate) fn element_part(&self, member: usize) -> Option<Part<'_, T>> {
        self.element_segments().placed(member, &self.placement)
    }

    /// As [`counted_part`](Self::counted_part) for single elements.
    pub(crate) fn counted_element_part(&self, member: usize) -> Option<Part<'_, T>> {
        self.element_segments().reached(member, &self.placement)
    }

    /// Elements that have atomic operations go the way of words.
    #[inline(always)]
    fn element_segments(&self) -> &Segments {
        let inner = &self.group.inner;
        let words = if size_of::<T>() == 4 { &inner.half_words } else { &inner.words };
        if has_atomics::<T>() { words } else { &inner.segments }
    }

    /// A member's part in a group whose memory is all mapped; the operation was counted, if that is done.
    #[inline(always)]
    pub(crate) fn mapped_part(&self, member: usize) -> Part<'_, T> {
        self.counted_part(member).expect("all memory of the group is mapped")
    }

    /// This rank's own part in memory, ghost cells included.
    pub(crate) fn own_part(&self) -> Part<'_, T> {
        let inner = &self.group.inner;
        let len = self.distribution.part_len(inner.me());
        inner.segments.own_part(inner.engine().conduit().segment(), self.offset, len)
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn check_job(&self, operation: &'static str) -> Result<()> {
        if self.group.inner.segments.over() { Err(self.over(operation)) } else { Ok(()) }
    }

    #[cold]
    #[track_caller]
    fn over(&self, operation: &'static str) -> Error {
        self.engine().over(operation).called_at(Location::caller())
    }

    /// Bounds, element by element.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn check_index(&self, operation: &'static str, index: &D) -> Result<()> {
        let inside = index.ndim() == self.extents.ndim() && index.slice().iter().zip(self.extents.slice()).all(|(i, n)| i < n);
        // A copy goes to the cold function, so that the index itself can stay in registers.
        if inside { Ok(()) } else { Err(self.index_error(operation, index.clone())) }
    }

    #[cold]
    #[track_caller]
    fn index_error(&self, operation: &'static str, index: D) -> Error {
        if self.poisoned {
            return Error::Poisoned { array: self.name.to_string(), operation: operation.into() }.called_at(Location::caller());
        }
        Error::Index {
            array: self.name.to_string(),
            operation: operation.into(),
            index: index.slice().to_vec(),
            extents: self.shape().to_vec(),
        }
        .called_at(Location::caller())
    }

    #[cold]
    #[track_caller]
    pub(crate) fn patch_error(&self, operation: &'static str, source: PatchError) -> Error {
        if self.poisoned {
            return Error::Poisoned { array: self.name.to_string(), operation: operation.into() }.called_at(Location::caller());
        }
        Error::Patch { array: self.name.to_string(), operation: operation.into(), extents: self.shape().to_vec(), source }
            .called_at(Location::caller())
    }

    #[cold]
    #[track_caller]
    pub(crate) fn shape_error(&self, operation: &'static str, patch: &[usize], buffer: &[usize]) -> Error {
        Error::Shape { array: self.name.to_string(), operation: operation.into(), patch: patch.to_vec(), buffer: buffer.to_vec() }
            .called_at(Location::caller())
    }

    /// Fails when an epoch of the array did.
    pub(crate) fn check_sound(&self, operation: &'static str) -> Result<()> {
        if self.poisoned { Err(Error::Poisoned { array: self.name.to_string(), operation: operation.into() }) } else { Ok(()) }
    }

    /// Takes the array out of use: every patch of it is out of bounds from now on.
    pub(crate) fn poison(&mut self) {
        self.poisoned = true;
        self.extents.slice_mut().fill(0);
    }
}

impl<T, D> Drop for GlobalArray<T, D> {
    fn drop(&mut self) {
        if self.destroyed {
            return;
        }
        self.group.inner.blocks().drop_block(self.offset, Vec::new());
    }
}

impl<T, D: Dimension> fmt::Debug for GlobalArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GlobalArray")
            .field("name", &self.name)
            .field("element", &std::any::type_name::<T>())
            .field("extents", &self.distribution.shape())
            .field("members", &self.distribution.members())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Ix2, s};

    use super::*;
    use crate::Launch;

    /// An epoch that fails ends the job too, so only here is a poisoned array seen in one that goes on.
    #[test]
    fn nothing_of_a_poisoned_array_can_be_reached() {
        for network in ["threads", "threads:unmapped"] {
            let body = |job: &crate::Job| {
                let mut a = GlobalArray::<f64, Ix2>::builder(job, [4, 6]).zeros().create()?;
                a.poison();
                let (one, mut row) = ([0, 0], Array1::<f64>::zeros(6));
                let calls = [
                    a.load(one).err(),
                    a.store(one, 1.0).err(),
                    a.get(s![0, ..]).err(),
                    a.get(s![0..1, 0..1]).err(),
                    a.get_into(s![0, ..], &mut row).err(),
                    a.put(s![0, ..], &row).err(),
                    a.put(s![3, 5], &ndarray::arr0(1.0)).err(),
                    a.accumulate(s![.., 0..1], 1.0, &ndarray::Array2::ones([4, 1])).err(),
                    a.get_nb(s![1.., 1..]).err(),
                    a.put_nb(s![0, ..], row.clone()).err(),
                    a.accumulate_nb(s![0, ..], 1.0, row.clone()).err(),
                    a.gather(&[one], &mut [0.0]).err(),
                    a.scatter(&[one], &[1.0]).err(),
                    a.scatter_accumulate(&[one], 1.0, &[1.0]).err(),
                    a.owner(one).err(),
                ];
                for (k, error) in calls.into_iter().enumerate() {
                    assert!(matches!(error, Some(Error::Poisoned { .. })), "call {k}: {error:?}");
                }
                assert!(matches!(a.check_sound("epoch"), Err(Error::Poisoned { .. })));
                a.group().sync()
            };
            Launch::new().ranks(1).network(network).run(body).unwrap();
        }
    }
}
