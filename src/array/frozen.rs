//! Arrays that nobody writes.

use std::{
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::{Mutex, PoisonError},
};

use ndarray::{ArcArray, Dimension, IxDyn};

use super::{
    GlobalArray, PatchRef, Reader,
    epoch::{Owned, agree_alone},
};
use crate::{
    calls::located,
    distribution::Distribution,
    element::{Element, Number},
    error::Result,
    index::IntoPatch,
    sync::{Group, Op},
};

/// A global array that no rank writes, made by [`GlobalArray::freeze`] or [`GlobalArray::freeze_on_nodes`].
///
/// It is `Sync`, and everything takes `&self`: a struct may hold it, and any thread may read. It reads like a [`Reader`] (`get`,
/// `get_into`, `load`, `gather`), shows this rank's part as a slice ([`own`](Self::own)), and is an operand of the algebra: `&a`,
/// [`a.at(..)`](Self::at), [`a.t()`](Self::t).
///
/// # Examples
/// ```
/// use global_arrays::prelude::*;
/// # fn main() -> Result<(), Error> {
/// Launch::new().ranks(3).network("threads").run(|job| {
///     let table = GlobalArray2::<f64>::from_fn(job, [100, 4], |(i, j)| (i * j) as f64)?.freeze()?;
///     assert_eq!(table.load([99, 3])?, 297.0);
///     let own: f64 = table.own().iter().sum();
///     assert_eq!(job.all_reduce_one(own, ops::sum)?, table.at(s![.., ..]).sum()?);
///     let mut table = table.thaw()?;
///     table.zero()
/// })
/// # }
/// ```
///
/// # Source
/// GA: the property `"read_only"` and mirrored arrays. They copy each read, and nothing stops a write.
pub struct Frozen<T, D> {
    array: GlobalArray<T, D>,
    /// All of it once more, spread over the members on this node.
    here: Option<GlobalArray<T, D>>,
    cached: Mutex<HashMap<Vec<usize>, ArcArray<T, IxDyn>>>,
}

/// # Frozen arrays
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Makes the array one that no rank can write. Collective: starts with a sync.
    ///
    /// # Errors
    /// Members in different collectives; a transfer that failed; the end of the job. An error ends the job, as in an
    /// [epoch](Self::read_epoch).
    #[doc(alias("read_only", "GA_Set_property"))]
    #[track_caller]
    pub fn freeze(mut self) -> Result<Frozen<T, D>> {
        located(move || {
            self.turn("freeze", Op::Freeze)?;
            Ok(Frozen { array: self, here: None, cached: Mutex::default() })
        })
    }

    /// Like [`freeze`](Self::freeze), and copies the array to each node, spread over the memory of the node's ranks: then
    /// every read is one of the node's memory. On a single node there is nothing to copy. Collective.
    ///
    /// The algebra works on the array itself, each member on what it owns.
    ///
    /// # Errors
    /// Too little memory for the copy; a get that failed; the errors of [`freeze`](Self::freeze).
    ///
    /// # Source
    /// GA: mirrored arrays (`GA_Pgroup_get_mirror`), which may be written and then have to be merged.
    #[doc(alias("mirrored", "GA_Pgroup_get_mirror"))]
    #[track_caller]
    pub fn freeze_on_nodes(self) -> Result<Frozen<T, D>> {
        located(move || {
            let mut frozen = self.freeze()?;
            let (array, group) = (&frozen.array, &frozen.array.group);
            if group.nodes() > 1 {
                let node = group.split(group.node_of(group.member()))?;
                let builder = GlobalArray::builder(&node, array.extents.clone()).order(array.distribution.order());
                let builder = if array.hollow { builder.hollow() } else { builder };
                let copied = builder.name(format!("{} on a node", array.name)).create().and_then(|mut here| {
                    here.owner_epoch(|mut part| {
                        part.blocks().try_for_each(|block| array.get_into(block.patch.clone(), part.block_mut(&block)))
                    })??;
                    Ok(here)
                });
                // A node may have too little memory where others have enough.
                frozen.here = Some(array.settle("freeze_on_nodes", array.id, copied)?);
            }
            Ok(frozen)
        })
    }

    /// The agreement at either end of the time in which no member has a handle that writes.
    fn turn(&mut self, operation: &'static str, op: Op) -> Result<()> {
        let agreed = self.check_sound(operation).and_then(|()| agree_alone(&Owned(self), op));
        if let Err(error) = &agreed {
            self.engine().conduit().end(&format!("{operation} of \"{}\" failed: {error}", self.name));
        }
        agreed
    }
}

impl<T: Element, D: Dimension> Frozen<T, D> {
    /// A patch that is kept: later calls with the same patch share its memory, until the array is thawed or dropped. There is no limit to
    /// how much is kept.
    ///
    /// # Errors
    /// Same as [`GlobalArray::get`].
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray2::<f64>::from_fn(job, [6, 6], |(i, _)| i as f64)?.freeze()?;
    ///     let (row, again) = (a.cached(s![4, ..])?, a.cached(s![4, ..])?);
    ///     assert_eq!((row.sum(), row.as_ptr()), (24.0, again.as_ptr()));
    ///     Ok(())
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn cached<P: IntoPatch<D>>(&self, patch: P) -> Result<ArcArray<T, P::Output>> {
        located(move || {
            let selection = patch.into_patch(&self.array.extents).map_err(|error| self.array.patch_error("cached", error))?;
            let patch = &selection.patch;
            let steps = (0..patch.ndim()).map(|axis| patch.step(axis) as usize);
            let key = patch.start().slice().iter().chain(patch.count().slice()).copied().chain(steps).collect::<Vec<_>>();
            let lock = || self.cached.lock().unwrap_or_else(PoisonError::into_inner);
            let known = lock().get(&key).cloned();
            let shared = match known {
                Some(shared) => shared,
                None => {
                    let got = self.get(patch.clone())?.into_dyn().into_shared();
                    lock().entry(key).or_insert(got).clone()
                }
            };
            let shape = selection.kept.shape::<P::Output, D>(&selection.patch);
            let (asked, got) = (shape.slice().to_vec(), shared.shape().to_vec());
            shared.into_shape_with_order(shape).map_err(|_| self.array.shape_error("cached", &asked, &got))
        })
    }

    /// A patch as an operand of a whole-array operation; see [`GlobalArray::at`].
    pub fn at<P: IntoPatch<D>>(&self, patch: P) -> PatchRef<'_, T, P::Output, D> {
        self.array.at(patch)
    }

    /// The array with its axes reversed, as an operand; see [`GlobalArray::t`].
    pub fn t(&self) -> PatchRef<'_, T, D> {
        self.array.t()
    }

    /// The conjugate transpose, as an operand; see [`GlobalArray::h`].
    pub fn h(&self) -> PatchRef<'_, T, D>
    where
        T: Number,
    {
        self.array.h()
    }

    /// Elements along each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// Which member owns which elements.
    #[must_use]
    pub fn distribution(&self) -> &Distribution<D> {
        self.array.distribution()
    }

    /// The group whose members share the array.
    #[must_use]
    pub fn group(&self) -> &Group {
        self.array.group()
    }

    /// The array, which can be written again. Collective: returns when all members have called it. Copies on nodes are dropped.
    ///
    /// # Errors
    /// Same as [`GlobalArray::freeze`].
    #[doc(alias = "GA_Unset_property")]
    #[track_caller]
    pub fn thaw(self) -> Result<GlobalArray<T, D>> {
        located(move || {
            let mut array = self.array;
            array.turn("thaw", Op::Thaw)?;
            Ok(array)
        })
    }

    pub(super) fn array(&self) -> &GlobalArray<T, D> {
        &self.array
    }
}

impl<T, D> Deref for Frozen<T, D> {
    type Target = Reader<T, D>;

    fn deref(&self) -> &Reader<T, D> {
        Reader::of(self.here.as_ref().unwrap_or(&self.array))
    }
}

impl<T, D> fmt::Debug for Frozen<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frozen({}, {})", self.array.name, if self.here.is_some() { "on each node" } else { "spread" })
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    /// Frozen arrays everywhere, then thawed and written again.
    fn read(job: &Job, order: Order, by_threads: bool) -> Result<(), Error> {
        for on_nodes in [false, true] {
            let mut a = GlobalArray2::<i64>::builder(job, [7, 5]).order(order).create()?;
            a.map_indexed(|(i, j), _| (10 * i + j) as i64)?;
            let a = if on_nodes { a.freeze_on_nodes()? } else { a.freeze()? };
            let model = Array2::from_shape_fn([7, 5], |(i, j)| (10 * i + j) as i64);
            std::thread::scope(|threads| {
                let reader = || {
                    assert_eq!(a.get(s![1..;2, ..]).unwrap(), model.slice(s![1..;2, ..]));
                    assert_eq!(a.load([6, 4]).unwrap(), 64);
                    let mut listed = [0; 2];
                    a.gather(&[[0, 1], [6, 0]], &mut listed).unwrap();
                    assert_eq!(listed, [1, 60]);
                };
                if by_threads {
                    threads.spawn(reader);
                }
                reader();
            });
            for block in a.own().blocks() {
                assert_eq!(a.own().block(&block), a.get(block.patch.clone())?);
            }
            for _ in 0..2 {
                assert_eq!(a.cached(s![.., ..])?, model);
                assert_eq!(a.cached(s![4, 1..])?, model.slice(s![4, 1..]));
                assert_eq!(a.cached(s![4..5, 1..])?, model.slice(s![4..5, 1..]));
            }
            assert!(a.cached(s![8, ..]).is_err());
            let mut b = GlobalArray2::<i64>::zeros(job, [5, 7])?;
            b.assign(a.t())?;
            b.zip_with(a.at(s![.., ..]).t(), |b, a| b - a)?;
            assert_eq!((b.max_abs()?, a.at(s![.., 0]).sum()?), (0.0, 210));
            let mut a = a.thaw()?;
            a.scaled_add(1, b.t())?;
            a.at_mut(s![0, ..]).fill(7)?;
            assert_eq!(a.sum()?, model.sum() - 10 + 35);
        }
        job.sync()
    }

    #[test]
    fn frozen_arrays_are_read_everywhere_and_thaw() -> Result<(), Error> {
        for network in ["threads", "threads:unmapped", "simulated:infiniband"] {
            for ranks in [1, 2, 5] {
                for order in [Order::RowMajor, Order::ColumnMajor] {
                    Launch::new()
                        .ranks(ranks)
                        .ranks_per_node(2)
                        .network(network)
                        .run(|job| read(job, order, !network.starts_with("simulated")))?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_member_that_does_not_thaw_or_freeze_is_told() {
        for thaws in [false, true] {
            let ended = Launch::new().ranks(2).network("threads").run(|job| {
                let a = GlobalArray1::<f64>::zeros(job, [10])?;
                if !thaws && job.rank() == 1 {
                    return job.sync();
                }
                let a = a.freeze()?;
                if job.rank() == 1 { job.sync() } else { a.thaw().map(drop) }
            });
            let told = ended.unwrap_err().to_string();
            assert!(told.contains("do not agree") && told.contains(if thaws { "thaw" } else { "freeze" }), "{told}");
        }
    }
}
