//! The two syncs of an operation, and operations that share one.

use std::sync::atomic::Ordering;

use ndarray::Dimension;

use crate::{
    array::GlobalArray,
    calls::located,
    element::Element,
    error::{Error, Result},
    sync::{Group, Op, both_ways, call::Doing, fingerprint, text_fingerprint},
};

/// Which elements an operation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Elements {
    /// Each member only its own.
    Own,
    All,
}

/// An operation between its two syncs, or without them if it needs none inside [`Group::unsynced`].
#[must_use]
pub(crate) struct Section<'a, T, D> {
    array: &'a GlobalArray<T, D>,
    operation: &'static str,
    synced: bool,
}

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// The sync at the beginning. `with` are the arguments that members must share.
    pub(crate) fn enter(&self, operation: &'static str, with: &[u64], uses: Elements) -> Result<Section<'_, T, D>> {
        self.check_sound(operation)?;
        let call = fingerprint(&[text_fingerprint(operation), self.id, fingerprint(with)]);
        let synced = uses == Elements::All || !self.group.defers(call);
        if synced {
            let fenced = self.group.fence_all(Op::Algebra);
            self.settle(operation, call, fenced)?;
        } else {
            self.check_job(operation)?;
        }
        Ok(Section { array: self, operation, synced })
    }

    /// A sync that carries a failure of any member to all.
    pub(crate) fn settle<R>(&self, operation: &'static str, call: u64, mine: Result<R>) -> Result<R> {
        let _doing = Doing::new(&self.group, operation, (self.id, &self.name));
        let verdict = self.group.agree_values(Op::Algebra, call, u64::from(mine.is_err()), 0, 0)?;
        let value = mine?;
        if verdict.sum > 0 {
            let what = format!("it failed on {} other member(s) of array \"{}\"; their errors say why", verdict.sum, self.name);
            return Err(Error::Mismatch { operation: operation.into(), what });
        }
        Ok(value)
    }
}

impl<T: Element, D: Dimension> Section<'_, T, D> {
    /// The sync at the end.
    pub(crate) fn leave<R>(self, result: Result<R>) -> Result<R> {
        if self.synced { self.array.settle(self.operation, self.array.id, result) } else { result }
    }
}

impl Group {
    /// Runs `body`, in which operations on whole arrays and patches share one sync: that at the end. Collective.
    ///
    /// In `body` an operation does not sync if each member needs only its own elements: elementwise operations and reductions of one
    /// array, or of whole arrays of one distribution without ghost cells, over this group; rows, columns and diagonals with lists of
    /// values. Operations that use elements of other members sync as elsewhere. Reductions wait for the members' values only.
    ///
    /// There is no sync at the start either: what an operation in `body` changes, no member may still read, and what it uses, no member
    /// may still write. [`sync`](Self::sync) before, if members have accessed the arrays since the last sync; operations on arrays end
    /// with one. In `body`, do not get what another member changes there. An array that [`from_fn`](GlobalArray::from_fn) makes in `body`
    /// is complete at its end.
    ///
    /// One thread of a rank at a time. Inside another `unsynced` only the outer one ends with a sync, and shares errors.
    ///
    /// # Errors
    /// Members with different operations in `body`, found at the end, and an error of `body`, on the other members: both are an
    /// [`Error::Mismatch`], or members that disagree if some come to an operation that syncs. A transfer that failed; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut x = GlobalArray1::<f64>::from_fn(job, [8], |i| i as f64)?;
    ///     let mut v = GlobalArray1::<f64>::zeros(job, [8])?;
    ///     let norm = job.unsynced(|| {
    ///         v.scaled_add(-0.5, &x)?;
    ///         x.scaled_add(0.1, &v)?;
    ///         x.max_abs()
    ///     })?;
    ///     assert!((norm - 6.65).abs() < 1e-12);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Mask_sync`, for which the caller must know which operations need no sync.
    #[doc(alias = "GA_Mask_sync")]
    #[track_caller]
    pub fn unsynced<R, E: From<Error>>(&self, body: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        const OPERATION: &str = "unsynced";
        let calls = &self.inner.deferred;
        if calls.load(Ordering::Relaxed) != 0 {
            return body();
        }
        calls.store(1, Ordering::Relaxed);
        let open = Deferring(self);
        let result = body();
        // Compared only if none failed: a member that fails calls less.
        let both = both_ways(calls.load(Ordering::Relaxed) as u32);
        drop(open);
        let ended = located(|| {
            let fenced = self.fence_all(Op::Algebra);
            let failed = u64::from(fenced.is_err() || result.is_err());
            let verdict = self.agree_values(Op::Algebra, text_fingerprint(OPERATION), failed, both, 0);
            fenced?;
            let verdict = verdict?;
            let what = match verdict.sum {
                0 if verdict.union == both => return Ok(()),
                0 => "the members called different operations, or on other arrays or patches, since it began".to_owned(),
                failed => format!("it failed on {failed} member(s); their errors say why"),
            };
            Err(Error::Mismatch { operation: OPERATION.into(), what })
        });
        let value = result?;
        Ok(ended.map(|()| value)?)
    }

    /// Inside [`unsynced`](Self::unsynced), notes a call; else answers no.
    fn defers(&self, call: u64) -> bool {
        let calls = &self.inner.deferred;
        let before = calls.load(Ordering::Relaxed);
        if before != 0 {
            calls.store(fingerprint(&[before, call]) | 1, Ordering::Relaxed);
        }
        before != 0
    }
}

/// The group syncs again when this is dropped.
struct Deferring<'a>(&'a Group);

impl Drop for Deferring<'_> {
    fn drop(&mut self) {
        self.0.inner.deferred.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    /// Agreements of this group until now.
    fn agreements(group: &Group) -> u32 {
        group.inner.sequence.load(Ordering::Relaxed)
    }

    #[test]
    fn operations_share_one_sync_where_they_can() -> Result<()> {
        Launch::new().ranks(3).network("threads").run(|job| {
            let mut a = GlobalArray2::<f64>::from_fn(job, [6, 6], |(i, j)| (6 * i + j) as f64)?;
            let mut b = GlobalArray2::<f64>::zeros(job, [6, 6])?;
            let before = agreements(job);
            job.unsynced(|| {
                b.fill(1.0)?;
                b.scale(2.0)?;
                b.scaled_add(1.0, &a)?;
                a.axpby(0.5, &b, 1.0)?;
                a.zip_with(&b, |a, b| a + b)?;
                b.map(|x| x + 1.0)?;
                b.assign(&a)?;
                a.at_mut(s![1, ..]).fill(0.0)?;
                a.at_mut(s![.., 2]).scale(3.0)?;
                a.shift_diagonal(1.0)
            })?;
            assert_eq!(agreements(job) - before, 1);
            let before = agreements(job);
            job.unsynced(|| {
                b.scale(2.0)?;
                // Elements of other members: with two syncs.
                a.assign(b.t())?;
                a.scale(0.5)
            })?;
            assert_eq!(agreements(job) - before, 3);
            let transposed = job.unsynced(|| job.unsynced(|| a.at(s![0, ..]).sum()))?;
            assert_eq!(transposed, (0..6).map(|i| b.load([i, 0])).sum::<Result<f64>>()? / 2.0);
            job.sync()
        })
    }

    #[test]
    fn other_operations_and_failures_are_everyones() -> Result<()> {
        Launch::new().ranks(2).network("threads").run(|job| {
            let mut a = GlobalArray1::<f64>::zeros(job, [6])?;
            let failed = job.unsynced(|| {
                a.fill(1.0)?;
                if job.rank() == 1 {
                    return Err(Error::argument("step", "no"));
                }
                a.scale(2.0)
            });
            match job.rank() {
                0 => assert!(matches!(failed, Err(Error::Mismatch { .. })), "{failed:?}"),
                _ => assert!(failed.is_err_and(|error| error.to_string().contains("step"))),
            }
            a.fill(2.0)?;
            assert_eq!(a.sum()?, 12.0);
            job.sync()
        })?;
        let differ = Launch::new().ranks(2).network("threads").run(|job| {
            let mut a = GlobalArray1::<f64>::zeros(job, [6])?;
            job.unsynced(|| if job.rank() == 1 { a.fill(1.0) } else { a.scale(1.0) })
        });
        assert!(differ.is_err_and(|error| error.to_string().contains("called different operations")));
        Ok(())
    }
}
