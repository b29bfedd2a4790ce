//! One element: load, store, atomics.

use ndarray::{Dimension, IntoDimension};

use super::GlobalArray;
use crate::{
    calls::{Here, record},
    comm::{Atomic, AtomicOp, Remote, engine::Road},
    distribution::Location,
    element::{AtomicInteger, Element, has_atomics},
    error::Result,
    sync::Kind,
};

/// What [`GlobalArray::fetch_op`] does to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FetchOp {
    /// Addition; wraps.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
}

impl FetchOp {
    /// The operation on words that stand for such integers.
    #[inline(always)]
    pub(super) fn on<T: AtomicInteger>(self) -> AtomicOp {
        // The integers are signed if minus one is below zero.
        let signed = T::from_bits(u64::MAX) < T::ZERO;
        match (self, signed) {
            (FetchOp::Add, _) => AtomicOp::Add,
            (FetchOp::And, _) => AtomicOp::And,
            (FetchOp::Or, _) => AtomicOp::Or,
            (FetchOp::Xor, _) => AtomicOp::Xor,
            (FetchOp::Min, true) => AtomicOp::MinSigned,
            (FetchOp::Max, true) => AtomicOp::MaxSigned,
            (FetchOp::Min, false) => AtomicOp::MinUnsigned,
            (FetchOp::Max, false) => AtomicOp::MaxUnsigned,
        }
    }
}

/// # Single elements
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Reads one element. One-sided; elements up to 8 bytes do not tear.
    ///
    /// # Errors
    /// An index outside the array; the end of the job.
    #[inline(always)]
    #[track_caller]
    pub fn load(&self, index: impl IntoDimension<Dim = D>) -> Result<T> {
        self.check_job("load")?;
        let index = index.into_dimension();
        self.check_index("load", &index)?;
        let location = self.distribution.locate(&index);
        match self.element_part(location.member) {
            Some(part) => Ok(part.load(location.offset)),
            None => self.load_remote(location.member, location.offset).here(),
        }
    }

    /// Writes one element. One-sided; elements up to 8 bytes do not tear. Visible at the owner after a fence or a sync. Until then it may
    /// take effect at any time, also after atomic operations of other ranks that were called later.
    ///
    /// # Errors
    /// An index outside the array; the end of the job.
    #[inline(always)]
    #[track_caller]
    pub fn store(&self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
        self.check_job("store")?;
        let index = index.into_dimension();
        self.check_index("store", &index)?;
        let location = self.distribution.locate(&index);
        match self.element_part(location.member) {
            Some(part) => {
                part.store(location.offset, value);
                Ok(())
            }
            None => self.store_remote(location.member, location.offset, value).here(),
        }
    }

    #[cold]
    #[track_caller]
    fn load_remote(&self, member: usize, offset: usize) -> Result<T> {
        self.group.inner.count(Kind::Get, member, size_of::<T>());
        if let Some(part) = self.counted_element_part(member) {
            return Ok(part.load(offset));
        }
        let _recorded = record::call("load");
        let mut value = T::zeroed();
        let at = self.offset + offset * size_of::<T>();
        let (rank, bytes) = (self.group.inner.rank_of(member), bytemuck::bytes_of_mut(&mut value));
        self.engine().get_slices(std::iter::once((rank, at, bytes)), &self.label("load"))?;
        Ok(value)
    }

    #[cold]
    #[track_caller]
    fn store_remote(&self, member: usize, offset: usize, value: T) -> Result<()> {
        self.group.inner.count(Kind::Put, member, size_of::<T>());
        if let Some(part) = self.counted_element_part(member) {
            part.store(offset, value);
            return Ok(());
        }
        let _recorded = record::call("store");
        let at = self.offset + offset * size_of::<T>();
        let (rank, bytes, label) = (self.group.inner.rank_of(member), bytemuck::bytes_of(&value), self.label("store"));
        if has_atomics::<T>() && size_of::<T>() > self.engine().conduit().capabilities().native.coherent {
            // An adapter may write what it read before a put came: only its own operations exclude each other.
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let operand = u64::from_le_bytes(word);
            let atomic = Atomic { op: AtomicOp::Swap, width: bytes.len(), operand, comparand: 0 };
            return self.engine().atomic(Road::Network, Remote { rank, offset: at }, atomic, &label).map(|_| ());
        }
        self.engine().put_slice(rank, at, bytes, &label)
    }
}

/// # Atomic operations on single elements
impl<T: AtomicInteger, D: Dimension> GlobalArray<T, D> {
    /// Adds `increment` to an element and returns the old value. One-sided, atomic, wrapping.
    ///
    /// It is atomic with respect to other atomics, loads and stores. Accumulates need a sync in between.
    ///
    /// # Errors
    /// An index outside the array; the end of the job.
    ///
    /// # Source
    /// GA: `NGA_Read_inc`, here with the element's full width.
    #[doc(alias = "NGA_Read_inc")]
    #[doc(alias = "read_increment")]
    #[track_caller]
    pub fn fetch_add(&self, index: impl IntoDimension<Dim = D>, increment: T) -> Result<T> {
        self.atomic("fetch_add", index, AtomicOp::Add, increment, T::ZERO)
    }

    /// Applies an operation to an element and returns the old value. One-sided, atomic.
    ///
    /// # Errors
    /// Same as [`fetch_add`](Self::fetch_add).
    #[track_caller]
    pub fn fetch_op(&self, index: impl IntoDimension<Dim = D>, op: FetchOp, operand: T) -> Result<T> {
        self.atomic("fetch_op", index, op.on::<T>(), operand, T::ZERO)
    }

    /// Replaces an element and returns the old value. One-sided, atomic.
    ///
    /// # Errors
    /// Same as [`fetch_add`](Self::fetch_add).
    #[track_caller]
    pub fn swap(&self, index: impl IntoDimension<Dim = D>, value: T) -> Result<T> {
        self.atomic("swap", index, AtomicOp::Swap, value, T::ZERO)
    }

    /// Replaces an element by `new` if it equals `current`. One-sided, atomic.
    ///
    /// The inner result follows [`std::sync::atomic`]: `Ok` with the old value, which equals `current`, if the element was replaced;
    /// otherwise `Err` with the value found.
    ///
    /// # Errors
    /// Same as [`fetch_add`](Self::fetch_add).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let first = GlobalArray::<i64, Ix1>::builder(job, [1]).fill(-1).create()?;
    ///     // One rank enters its number; the other learns whose it is.
    ///     let me = job.rank() as i64;
    ///     let winner = match first.compare_exchange([0], -1, me)? {
    ///         Ok(_) => me,
    ///         Err(other) => other,
    ///     };
    ///     job.sync()?;
    ///     assert_eq!(first.load([0])?, winner);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[doc(alias = "compare_swap")]
    #[track_caller]
    pub fn compare_exchange(&self, index: impl IntoDimension<Dim = D>, current: T, new: T) -> Result<Result<T, T>> {
        let found = self.atomic("compare_exchange", index, AtomicOp::CompareSwap, new, current)?;
        Ok(if found == current { Ok(found) } else { Err(found) })
    }

    #[inline]
    #[track_caller]
    fn atomic(
        &self,
        name: &'static str,
        index: impl IntoDimension<Dim = D>,
        op: AtomicOp,
        operand: T,
        comparand: T,
    ) -> Result<T> {
        self.check_job(name)?;
        let index = index.into_dimension();
        self.check_index(name, &index)?;
        let location = self.distribution.locate(&index);
        match self.element_part(location.member) {
            Some(part) => Ok(part.slot(location.offset).apply(op, operand, comparand)),
            None => self.atomic_elsewhere(name, location, op, operand, comparand).here(),
        }
    }

    /// If the job counts operations, or over the network.
    #[cold]
    #[track_caller]
    fn atomic_elsewhere(&self, name: &'static str, location: Location, op: AtomicOp, operand: T, comparand: T) -> Result<T> {
        self.group.inner.count(Kind::Atomic, location.member, size_of::<T>());
        if let Some(part) = self.counted_element_part(location.member) {
            return Ok(part.slot(location.offset).apply(op, operand, comparand));
        }
        let _recorded = record::call(name);
        let offset = self.offset + location.offset * size_of::<T>();
        let word = Remote { rank: self.group.inner.rank_of(location.member), offset };
        let atomic = Atomic { op, width: size_of::<T>(), operand: operand.to_bits(), comparand: comparand.to_bits() };
        self.engine().atomic(Road::Network, word, atomic, &self.label(name)).map(T::from_bits)
    }
}
