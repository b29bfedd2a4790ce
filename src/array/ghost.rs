//! Updates of ghost cells. [`distribution::halo`](crate::distribution) has their arithmetic, `array::epoch` the proof of their safety.
//!
//! # The update
//!
//! An update is two agreements with copies in between. Each member fills its own halo, corners included, by one-sided gets from blocks.
//! So there are no phases by axis, and nothing depends on the progress of a neighbor. The first agreement completes earlier writes; after
//! the second, elements may be written again. Updates never fill cells beyond an open boundary; programs use them for boundary values.
//!
//! If the group's memory is mapped, the copies are planned when the array is created ([`PlannedCopy`]): an update allocates nothing and
//! computes no owner. Over a network all boxes are got at once, directly into the halo. Only a non-blocking update ([`GhostUpdate`]) uses
//! memory of its own, because the program may drop it.
//!
//! # Source
//! J. Nieplocha et al., *Advances, applications and performance of the Global Arrays shared memory programming toolkit*, Int. J. High
//! Perform. Comput. Appl. 20 (2006), §3.6. There an update shifts faces axis by axis, so a halo may not be wider than a block.

use std::fmt;

use ndarray::Dimension;

use super::{Get, GlobalArray};
use crate::{
    calls::located,
    distribution::{Distribution, GhostBox, Side},
    element::Element,
    error::{Error, Result},
    memory::{buffer::Source, planned::PlannedCopy},
    sync::{Group, Kind, Op, call::Doing},
};

/// How this rank's halo is filled.
#[derive(Debug)]
pub(super) struct Plan<D> {
    boxes: Vec<GhostBox<D>>,
    /// The boxes cut by owners, in a group whose memory is all mapped: which box, whose, and how.
    copies: Vec<(usize, usize, PlannedCopy)>,
}

impl<D: Dimension> Plan<D> {
    /// `None` for an array without ghost cells.
    pub(super) fn new<T: Element>(distribution: &Distribution<D>, group: &Group) -> Option<Box<Self>> {
        distribution.ghosts()?;
        let me = group.member();
        let boxes = distribution.ghost_boxes(me);
        let mut copies = Vec::new();
        if group.inner.mapped
            && let Some(block) = distribution.blocks(me).next()
        {
            let (strides, widths) = (distribution.local_strides(me), distribution.ghost_widths());
            for (k, ghosts) in boxes.iter().enumerate() {
                for piece in distribution.pieces(&ghosts.patch) {
                    let each = |value: &dyn Fn(usize) -> usize| {
                        let mut index = piece.start.clone();
                        (0..index.ndim()).for_each(|axis| index[axis] = value(axis));
                        index
                    };
                    let to = each(&|axis| ghosts.local[axis] + piece.start[axis]);
                    let copy = if piece.member == me {
                        // Where the first element of the piece lies in this rank's own part.
                        let first = |axis: usize| ghosts.patch.start()[axis] + piece.start[axis] - block.patch.start()[axis];
                        let from = each(&|axis| first(axis) + widths[axis]);
                        PlannedCopy::within::<T, D>(&strides, &to, &from, &piece.count)
                    } else {
                        let at = (0..to.ndim()).map(|axis| to[axis] * strides[axis]).sum();
                        PlannedCopy::between::<T, D>((at, &strides), (piece.offset, &piece.strides), &piece.count)
                    };
                    copies.push((k, piece.member, copy));
                }
            }
        }
        Some(Box::new(Plan { boxes, copies }))
    }
}

/// Whether a box lies on the side that is filled.
fn wanted<D>(ghosts: &GhostBox<D>, only: Option<(usize, Side)>) -> bool {
    only.is_none_or(|(axis, side)| ghosts.sides[axis] == Some(side))
}

/// An update in flight, started by [`GlobalArray::update_ghosts_nb`].
///
/// Dropping it abandons the gets: ghost cells that have not arrived keep their values.
#[must_use = "the ghost cells are filled by `wait`"]
pub struct GhostUpdate<'a, T, D> {
    array: &'a GlobalArray<T, D>,
    /// What has not come yet, and where in this rank's part it goes.
    gets: Vec<(usize, Get<T, D>)>,
}

impl<T, D> fmt::Debug for GhostUpdate<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GhostUpdate({} boxes of \"{}\" under way)", self.gets.len(), self.array.name)
    }
}

impl<T: Element, D: Dimension> GhostUpdate<'_, T, D> {
    /// Waits until this rank's ghost cells are filled. Not collective: other members may still read this rank's elements until the
    /// next sync or epoch.
    ///
    /// # Errors
    /// A transfer that failed; the end of the job.
    #[track_caller]
    pub fn wait(self) -> Result<()> {
        located(move || {
            self.array.check_job("update_ghosts_nb")?;
            let part = self.array.own_part();
            for (at, get) in self.gets {
                // Only of a part with ghost cells, which is one dense array.
                let strides = self.array.distribution.local_strides(self.array.group.member());
                let values = get.wait()?;
                part.write(at, &strides, &Source::whole(&values.view()));
            }
            Ok(())
        })
    }

    /// Whether [`wait`](Self::wait) would return at once; makes progress.
    ///
    /// # Errors
    /// The end of the job.
    #[track_caller]
    pub fn test(&self) -> Result<bool> {
        located(move || self.gets.iter().try_fold(true, |all, (_, get)| Ok(get.test()? && all)))
    }
}

/// # Ghost cells
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Fills all ghost cells with the elements that they copy. Collective: starts and ends with a sync. Elements may be written
    /// as soon as it returns.
    ///
    /// You do not need this call before an epoch of [`ghosts`](Self::ghosts), which updates the ghost cells when it starts.
    ///
    /// # Errors
    /// Members in different collectives; a transfer that failed; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut ring = GlobalArray::<i64, Ix1>::builder(job, [10]).ghosts([2]).create()?;
    ///     ring.map_indexed(|i, _| i as i64)?;
    ///     ring.update_ghosts()?;
    ///     let seen = job.epoch(ring.ghosts_mut(), |part| part.view().to_vec())?;
    ///     assert_eq!(seen, [[8, 9, 0, 1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 7, 8, 9, 0, 1]][job.rank()]);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `GA_Update_ghosts`, where all boundaries are periodic.
    #[doc(alias("GA_Update_ghosts", "ga_update5_ghosts"))]
    #[track_caller]
    pub fn update_ghosts(&mut self) -> Result<()> {
        located(move || self.update("update_ghosts", 0, None))
    }

    /// Fills the ghost cells on one side of each block, including corners if the array has them. Collective, like
    /// [`update_ghosts`](Self::update_ghosts).
    ///
    /// # Errors
    /// An axis that does not exist; the errors of [`update_ghosts`](Self::update_ghosts).
    ///
    /// # Source
    /// GA: `NGA_Update_ghost_dir`.
    #[doc(alias = "NGA_Update_ghost_dir")]
    #[track_caller]
    pub fn update_ghosts_at(&mut self, axis: usize, side: Side) -> Result<()> {
        located(move || {
            const OPERATION: &str = "update_ghosts_at";
            let axes = self.shape().len();
            if axis >= axes {
                return Err(Error::argument(OPERATION, format_args!("axis {axis} of array \"{}\", which has {axes}", self.name)));
            }
            self.update(OPERATION, 1 + 2 * axis as u64 + u64::from(side == Side::High), Some((axis, side)))
        })
    }

    /// Starts filling all ghost cells. Collective: starts with a sync, like [`update_ghosts`](Self::update_ghosts).
    /// [`GhostUpdate::wait`] completes it on this rank.
    ///
    /// Until the next sync or epoch, other members may still read the elements near the edges of this rank's block; they may or may
    /// not see what you write there in the meantime. If memory is mapped, this rank's update is complete when the call returns.
    ///
    /// # Errors
    /// Same as [`update_ghosts`](Self::update_ghosts).
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads:unmapped").run(|job| {
    ///     let mut a = GlobalArray::<f64, Ix2>::builder(job, [8, 8]).ghosts([1, 1]).fill(2.0).create()?;
    ///     let update = a.update_ghosts_nb()?;
    ///     // ... compute on something else ...
    ///     update.wait()?;
    ///     assert!(job.epoch(a.ghosts_mut(), |part| part.view().iter().all(|&x| x == 2.0))?);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Update_ghosts_nb`.
    #[doc(alias = "NGA_Update_ghosts_nb")]
    #[track_caller]
    pub fn update_ghosts_nb(&mut self) -> Result<GhostUpdate<'_, T, D>> {
        located(move || {
            const OPERATION: &str = "update_ghosts_nb";
            self.check_sound(OPERATION)?;
            let _doing = Doing::new(&self.group, OPERATION, (self.id, &self.name));
            self.group.settle(Op::Ghosts, self.id << 8 | 0xff)?;
            self.begin_update(None)
        })
    }

    /// `call` distinguishes the calls on one array.
    fn update(&mut self, operation: &'static str, call: u64, only: Option<(usize, Side)>) -> Result<()> {
        self.check_sound(operation)?;
        let _doing = Doing::new(&self.group, operation, (self.id, &self.name));
        let call = self.id << 8 | call;
        self.group.settle(Op::Ghosts, call)?;
        let filled = self.fill_ghosts(only);
        let verdict = self.group.agree_values(Op::Ghosts, call, u64::from(filled.is_err()), 0, 0)?;
        filled?;
        if verdict.sum > 0 { Err(Group::failed_elsewhere(Op::Ghosts, verdict.sum)) } else { Ok(()) }
    }

    /// Fills this rank's ghost cells, or those on one side. Nobody writes the elements meanwhile.
    #[inline]
    pub(super) fn fill_ghosts(&self, only: Option<(usize, Side)>) -> Result<()> {
        match &self.ghost_plan {
            Some(plan) if !self.group.inner.mapped => self.get_ghosts(plan, only),
            _ => self.begin_update(only).map(drop),
        }
    }

    /// Gets all boxes of the halo to where they belong, in one call: nobody can drop it on the way, so they need no memory of their own, which
    /// would be as much as the halo, and no copy.
    fn get_ghosts(&self, plan: &Plan<D>, only: Option<(usize, Side)>) -> Result<()> {
        const OPERATION: &str = "update_ghosts";
        self.check_job(OPERATION)?;
        let (part, strides) = (self.own_part(), self.distribution.local_strides(self.group.member()));
        let call = self.engine().begin(self.label(OPERATION));
        let issued = plan.boxes.iter().filter(|ghosts| wanted(ghosts, only)).try_for_each(|ghosts| {
            let at = (0..strides.ndim()).map(|axis| ghosts.local[axis] * strides[axis]).sum();
            self.issue_gets(&call, &ghosts.patch, &part.target(at, &strides, ghosts.patch.count()))
        });
        self.engine().finish_call(call, issued)
    }

    #[inline]
    fn begin_update(&self, only: Option<(usize, Side)>) -> Result<GhostUpdate<'_, T, D>> {
        let mut update = GhostUpdate { array: self, gets: Vec::new() };
        let Some(plan) = &self.ghost_plan else { return Ok(update) };
        if self.group.inner.mapped {
            if !self.group.inner.direct {
                plan.boxes
                    .iter()
                    .filter(|ghosts| wanted(ghosts, only))
                    .for_each(|ghosts| self.count_patch(Kind::Get, &ghosts.patch));
            }
            let own = self.mapped_part(self.group.member());
            for (k, member, copy) in &plan.copies {
                if wanted(&plan.boxes[*k], only) {
                    copy.run(&own, &self.mapped_part(*member));
                }
            }
            return Ok(update);
        }
        let strides = self.distribution.local_strides(self.group.member());
        for ghosts in plan.boxes.iter().filter(|ghosts| wanted(ghosts, only)) {
            let at = (0..strides.ndim()).map(|axis| ghosts.local[axis] * strides[axis]).sum();
            update.gets.push((at, self.begin_get(&ghosts.patch, None)?));
        }
        Ok(update)
    }
}
