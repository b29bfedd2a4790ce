//! Gather, scatter and scatter-accumulate: single elements by lists of subscripts.
//!
//! Where memory is mapped the list is walked once; accumulates hold the lock of every owner in the list meanwhile, taken in
//! ascending order, so that two lists never wait for each other in a circle. Over a network each element is one transfer, with a
//! window of them in flight, and members that are mapped all the same are loaded from and stored to meanwhile; an accumulate takes its terms owner by owner, under one turn at each lock.

use ndarray::{Dimension, IntoDimension};

use super::GlobalArray;
use crate::{
    comm::accumulate::{Term, accumulate_list},
    distribution::Location,
    element::{Accumulate, Element},
    error::{Error, Result},
    memory::stripes,
};

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Reads the elements named by `subscripts` into `to`, which is as long. One-sided; complete on return.
    ///
    /// # Errors
    /// A subscript outside the array, or lists of different lengths: nothing is guaranteed of `to` then. The end of the job.
    ///
    /// # Source
    /// GA: `NGA_Gather`.
    pub fn gather<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I], to: &mut [T]) -> Result<()> {
        const OPERATION: &str = "gather";
        self.check_lists(OPERATION, subscripts.len(), to.len())?;
        if !self.group.inner.mapped {
            return self.gather_remote(subscripts, to);
        }
        for (to, &subscript) in to.iter_mut().zip(subscripts) {
            let location = self.find(OPERATION, subscript)?;
            *to = self.mapped_part(location.member).load(location.offset);
        }
        Ok(())
    }

    /// Writes `from` to the elements named by `subscripts`. One-sided; of equal subscripts some value wins; visible at the owners
    /// after a fence or a sync.
    ///
    /// # Errors
    /// A subscript outside the array: elements before it are written. Lists of different lengths. The end of the job.
    ///
    /// # Source
    /// GA: `NGA_Scatter`.
    pub fn scatter<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I], from: &[T]) -> Result<()> {
        const OPERATION: &str = "scatter";
        self.check_lists(OPERATION, subscripts.len(), from.len())?;
        if !self.group.inner.mapped {
            return self.scatter_remote(subscripts, from);
        }
        for (&value, &subscript) in from.iter().zip(subscripts) {
            let location = self.find(OPERATION, subscript)?;
            self.mapped_part(location.member).store(location.offset, value);
        }
        Ok(())
    }

    #[inline(always)]
    fn find(&self, operation: &'static str, subscript: impl IntoDimension<Dim = D>) -> Result<Location> {
        let index = subscript.into_dimension();
        self.check_index(operation, &index)?;
        Ok(self.distribution.locate(&index))
    }

    fn check_lists(&self, operation: &'static str, subscripts: usize, values: usize) -> Result<()> {
        self.check_job(operation)?;
        if subscripts == values {
            return Ok(());
        }
        Err(Error::Argument { operation, what: format!("array \"{}\": {subscripts} subscripts but {values} values", self.name) })
    }

    fn gather_remote<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I], to: &mut [T]) -> Result<()> {
        let places = subscripts.iter().map(|&subscript| self.find("gather", subscript)).collect::<Result<Vec<_>>>()?;
        let elements = places.iter().zip(to).filter_map(|(place, to)| match self.part(place.member) {
            Some(part) => {
                *to = part.load(place.offset);
                None
            }
            None => Some((self.group.inner.rank_of(place.member), self.byte(place), to)),
        });
        self.engine().get_list(elements, &self.label("gather"))
    }

    fn scatter_remote<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I], from: &[T]) -> Result<()> {
        let places = subscripts.iter().map(|&subscript| self.find("scatter", subscript)).collect::<Result<Vec<_>>>()?;
        let elements = places.iter().zip(from).filter_map(|(place, from)| match self.part(place.member) {
            Some(part) => {
                part.store(place.offset, *from);
                None
            }
            None => Some((self.group.inner.rank_of(place.member), self.byte(place), from)),
        });
        self.engine().put_list(elements, &self.label("scatter"))
    }

    /// Where an element lies in its owner's segment.
    fn byte(&self, place: &Location) -> usize {
        self.offset + place.offset * size_of::<T>()
    }
}

impl<T: Accumulate, D: Dimension> GlobalArray<T, D> {
    /// Adds `alpha` times `from` to the elements named by `subscripts`. One-sided; each element atomically with respect to other
    /// accumulates; equal subscripts add up.
    ///
    /// # Errors
    /// A subscript outside the array, found before anything is added; lists of different lengths; the end of the job.
    ///
    /// # Source
    /// GA: `NGA_Scatter_acc`.
    pub fn scatter_accumulate<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I], alpha: T, from: &[T]) -> Result<()> {
        const OPERATION: &str = "scatter_accumulate";
        self.check_lists(OPERATION, subscripts.len(), from.len())?;
        if !self.group.inner.mapped {
            return self.scatter_accumulate_remote(subscripts, alpha, from);
        }
        // A bit for each owner in the list, 64 members to a word.
        let mut owners = vec![0_u64; self.group.size().div_ceil(64)];
        for &subscript in subscripts {
            let member = self.find(OPERATION, subscript)?.member;
            owners[member / 64] |= 1 << (member % 64);
        }
        let named = (0..self.group.size()).filter(|member| owners[member / 64] >> (member % 64) & 1 == 1);
        let _held = named.map(|member| self.lock_member(member, stripes::ALL)).collect::<Result<Vec<_>>>()?;
        for (&value, &subscript) in from.iter().zip(subscripts) {
            let location = self.distribution.locate(&subscript.into_dimension());
            self.mapped_part(location.member).add(location.offset, alpha, value);
        }
        Ok(())
    }

    fn scatter_accumulate_remote<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I], alpha: T, from: &[T]) -> Result<()> {
        const OPERATION: &str = "scatter_accumulate";
        let inner = &self.group.inner;
        let term = |(&subscript, &value): (&I, &T)| {
            let location = self.find(OPERATION, subscript)?;
            Ok(Term { rank: inner.rank_of(location.member), at: self.byte(&location), value })
        };
        let terms = subscripts.iter().zip(from).map(term).collect::<Result<Vec<_>>>()?;
        accumulate_list(self.engine(), inner.job.remote_lock(), alpha, terms, &self.label(OPERATION))
    }
}
