//! Local access, free of data races by type.
//!
//! Inside an owner epoch this rank sees its part as `&mut [T]`, inside a read epoch as `&[T]`. This is sound because
//!
//! 1. each rank has one handle, which is not `Clone`. An epoch holds it `&mut`, so no thread of this rank issues anything on the array
//!    meanwhile (in a read epoch: nothing but gets);
//! 2. the start and the end are agreements. They match exactly on the kinds of the epochs, their arrays (the fingerprint is the list of
//!    claims itself, not a hash; where that has no room, each claim agrees for itself) and the place in the group's sequence. So while
//!    this rank is inside, all members are in the same epochs of the same arrays, and hold their handles `&mut` too;
//! 3. the start first completes everything that this rank issued on the array, then agrees. When it returns, nothing that any rank issued
//!    is still in flight;
//! 4. if the start or the end fails, or the closure unwinds, the handle is poisoned before `&mut` is given back: every patch of it is out
//!    of bounds from then on. The job ends too, so no rank waits for an end that never comes.
//!
//! A *ghost epoch* ([`GlobalArray::ghosts`]) is a read epoch whose start also fills this rank's halo. It needs no further agreement,
//! because
//!
//! 5. it reads elements. No rank writes them during the epoch, and earlier writes are complete (1 to 3). It returns when its own gets are
//!    complete;
//! 6. it writes ghost cells of this rank's own part, before the part becomes a slice. No patch names a ghost cell, and only the rank
//!    itself fills its halo, under the handle that the epoch holds `&mut`. If another member already reads its slice, the gets only read
//!    elements of that slice, which nobody writes.
//!
//! [`GlobalArray::ghosts_mut`] is an owner epoch: no member fills a halo or reads another's elements. A non-blocking update whose handle
//! was forgotten owns its buffers and never writes the halo.
//!
//! 7. a job may end while a thread of the program is inside an epoch. The memory stays until the array's handle is gone, which the epoch
//!    holds (`crate::memory::mapping`). The end of the epoch is an error then.
//!
//! 8. threads of this rank may have a part together, but only what safe code divides: views of `ndarray` that are split, of one exclusive
//!    borrow (`super::par_blocks`, and `super::matmul`, whose threads take one rectangle of C each). An epoch ends when the closure has
//!    returned, and a parallel loop in it returns when its threads have.
//!
//! # Frozen arrays
//!
//! [`GlobalArray::freeze`] begins a read epoch that is a value. It takes the handle, so there is none to write with on any member once
//! all have agreed (1 to 3). A [`Frozen`](crate::Frozen) that is forgotten or dropped takes the handle along, and the memory stays while
//! any member's handle is there. `thaw` consumes it, so no slice of this rank is left, and it returns when all members have called it.
//!
//! # When a job is a value
//!
//! [`Launch::start`](crate::Launch::start) gives out a job that no closure encloses. It owns no memory: points 1 to 7 speak of handles, and
//! those are the same. So
//!
//! * *a job that is dropped*, by an error, a panic, in an epoch, or as a thread-local of a thread that ends, is over for all ranks (7);
//! * *a job that is forgotten or leaked* goes on. Its rank is one that never calls, as in an endless computation, until its thread ends;
//! * *another thread* never owns it, because it is not `Send`, and has handles as any thread of the rank;
//! * *two threads* cannot finish it, since `finish` takes it, and a group's epoch borrows it;
//! * *handles that outlive it* find it over, as those that outlive a body do;
//! * *two jobs of a process* have two mappings, and arrays of both in one epoch or operation are refused ([`Group::is_like`]).
//!
//! # When a process is copied
//!
//! A copy of a process has copies of handles and slices. Yet two processes never hold the same part:
//!
//! * *A rank that calls [`run`](crate::run)* gets an error on every thread of its process (`crate::job::entry`). So does one whose job is a value
//!   and calls for one that forks.
//! * *`fork`.* The child has no memory of the job, and its copied slices fault (`crate::memory::children`). In place of the control pages
//!   it has private ones, in which the job is over. So every call fails, and no rank sees what a child writes by unwinding, by `Drop` or
//!   by leaving the body.
//! * *Handlers of `pthread_atfork`.* In the parent they are code of the rank. In the child they run in the order of their registration:
//!   after ours, the previous point applies; before ours, the mapping is absent and they fault.
//! * *`clone` as a bare system call, `_Fork`.* Nothing takes the place of the absent mapping: a handle faults as long as the child maps
//!   nothing there. Only `unsafe` code creates such a process, and it must not let the child use its handles.
//! * *`clone` with `CLONE_VM`, `vfork`, `posix_spawn`.* No memory is copied: there is one handle, and one more thread.
//! * *A job that is over* whose arrays a program still holds: a child gets the control pages, which say so, and no segments. A copied
//!   slice faults as long as the child maps nothing in its place.
//! * *`exec`* keeps no memory and closes the memory file. `unshare` and `setns` copy no memory.
//! * *Checkpoints.* A restored process maps a restored copy of the memory file. It shares nothing with ranks that continued.
//! * *Kernel interfaces* (`/proc/PID/mem`, `/proc/PID/fd`, `ptrace`) bypass the types of every program.
//!
//! The first process of a job over `shared_memory` maps the memory too, but never has a handle, and forks the ranks before they have one.
//! The library watches the ranks' own processes, not their children.
//!
//! # Why closures
//!
//! A guard could be forgotten. The array would be open again while another rank is still inside. [`GlobalArray::access`] returns the part
//! without an epoch; its caller must ensure what points 1 to 3 prove here.
#![allow(unsafe_code)]

use std::{fmt, ptr};

use ndarray::Dimension;

pub(super) use self::claims::agree_alone;
use self::claims::{Together, agree};
pub use self::reader::Reader;
use super::{Frozen, GhostPart, GhostPartMut, GlobalArray, OwnedPart, OwnedPartMut};
use crate::{
    calls::{located, record::program},
    element::Element,
    error::{Error, Result},
    sync::{Group, Op},
};

mod claims;
mod reader;
#[cfg(test)]
mod tests;

/// What [`Group::epoch`] takes: one claim ([`GlobalArray::owned`], [`owned_mut`](GlobalArray::owned_mut),
/// [`ghosts`](GlobalArray::ghosts) or [`ghosts_mut`](GlobalArray::ghosts_mut)) or a tuple of up to six.
///
/// Sealed.
pub trait Claims: sealed::Each + for<'p> sealed::Parts<'p> {}

impl<C: sealed::Each + for<'p> sealed::Parts<'p>> Claims for C {}

/// The parts of claims `C` for the lifetime `'p` of an epoch: [`OwnedPart`], [`OwnedPartMut`], [`GhostPart`], [`GhostPartMut`], or a
/// tuple of them.
pub type PartsOf<'p, C> = <C as sealed::Parts<'p>>::Parts;

mod sealed {
    use crate::{
        error::Result,
        sync::{Group, Op},
    };

    /// What all members must be in.
    #[derive(Clone, Copy, Debug)]
    pub enum Kind {
        Read,
        Owner,
        Ghosts,
    }

    impl Kind {
        pub(super) fn begin(self) -> Op {
            match self {
                Kind::Read => Op::ReadEpoch,
                Kind::Owner => Op::OwnerEpoch,
                Kind::Ghosts => Op::GhostEpoch,
            }
        }
    }

    /// What an epoch needs of a claim, whatever its type.
    pub trait Claimed: std::fmt::Debug {
        fn kind(&self) -> Kind;
        fn group(&self) -> &Group;
        fn id(&self) -> u64;
        fn ready(&self) -> Result<()>;
        /// What is done when the epoch has begun, before the part is given out.
        fn begun(&self) -> Result<()>;
        fn poison(&mut self);
    }

    /// `Implied` is never named: it tells the compiler that claims outlive the epoch.
    pub trait Parts<'p, Implied = &'p Self> {
        type Parts;
        /// # Safety
        /// The epochs of all claims have begun on all members, and end after `'p`.
        unsafe fn parts(&'p mut self) -> Self::Parts;
    }

    pub trait Each {
        fn each(&mut self, f: &mut dyn FnMut(&mut dyn Claimed) -> Result<()>) -> Result<()>;
    }

    impl<C: Claimed> Each for C {
        fn each(&mut self, f: &mut dyn FnMut(&mut dyn Claimed) -> Result<()>) -> Result<()> {
            f(self)
        }
    }
}

/// A claim to read this rank's part; see [`Group::epoch`].
pub struct Owned<'a, T, D>(pub(super) &'a mut GlobalArray<T, D>);

/// A claim to read and write this rank's part; see [`Group::epoch`].
pub struct OwnedMut<'a, T, D>(&'a mut GlobalArray<T, D>);

/// A claim to read this rank's part and its ghost cells, which the epoch fills; see [`GlobalArray::ghosts`].
pub struct Ghosts<'a, T, D>(&'a mut GlobalArray<T, D>);

/// A claim to read and write this rank's part and its ghost cells; see [`GlobalArray::ghosts_mut`].
pub struct GhostsMut<'a, T, D>(&'a mut GlobalArray<T, D>);

macro_rules! claim {
    ($claim:ident, $part:ident, $kind:ident, $slice:ident, $begun:expr) => {
        impl<T, D> fmt::Debug for $claim<'_, T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($claim), self.0.name)
            }
        }

        impl<T: Element, D: Dimension> sealed::Claimed for $claim<'_, T, D> {
            fn kind(&self) -> sealed::Kind {
                sealed::Kind::$kind
            }
            fn group(&self) -> &Group {
                &self.0.group
            }
            fn id(&self) -> u64 {
                self.0.id
            }
            fn ready(&self) -> Result<()> {
                self.0.check_sound("epoch")
            }
            fn begun(&self) -> Result<()> {
                $begun(&*self.0)
            }
            fn poison(&mut self) {
                self.0.poison();
            }
        }

        impl<'p, T: Element, D: Dimension> sealed::Parts<'p> for $claim<'_, T, D> {
            type Parts = $part<'p, T, D>;

            unsafe fn parts(&'p mut self) -> $part<'p, T, D> {
                let array = &*self.0;
                // SAFETY: the module's essay: the epoch has begun, so until it ends nobody but this borrow reaches the part (in a
                // read epoch: nobody writes it), and the borrow ends before the epoch does.
                $part::new(unsafe { array.own_part().$slice() }, &array.distribution, array.group.member())
            }
        }
    };
}
claim!(Owned, OwnedPart, Read, shared, |_| Ok(()));
claim!(OwnedMut, OwnedPartMut, Owner, exclusive, |_| Ok(()));
claim!(Ghosts, GhostPart, Ghosts, shared, |array: &GlobalArray<T, D>| array.fill_ghosts(None));
claim!(GhostsMut, GhostPartMut, Owner, exclusive, |_| Ok(()));

macro_rules! claims {
    ($($c:ident $k:tt),*) => {
        impl<$($c: sealed::Each),*> sealed::Each for ($($c,)*) {
            fn each(&mut self, f: &mut dyn FnMut(&mut dyn sealed::Claimed) -> Result<()>) -> Result<()> {
                $(self.$k.each(f)?;)*
                Ok(())
            }
        }
        impl<'p, $($c: sealed::Parts<'p>),*> sealed::Parts<'p> for ($($c,)*) {
            type Parts = ($($c::Parts,)*);

            unsafe fn parts(&'p mut self) -> Self::Parts {
                // SAFETY: passed on to each.
                unsafe { ($(self.$k.parts(),)*) }
            }
        }
    };
}
claims!(A 0);
claims!(A 0, B 1);
claims!(A 0, B 1, C 2);
claims!(A 0, B 1, C 2, E 3);
claims!(A 0, B 1, C 2, E 3, F 4);
claims!(A 0, B 1, C 2, E 3, F 4, G 5);

/// Poisons every array of an epoch and ends the job, unless the epoch ended well.
struct Inside<'c, C: sealed::Each> {
    claims: &'c mut C,
    /// What members agree on at both ends.
    together: Option<Together>,
    ended: bool,
    /// What began or ended badly; nothing if the body unwound.
    failure: Option<String>,
}

impl<C: sealed::Each> Drop for Inside<'_, C> {
    fn drop(&mut self) {
        if !self.ended {
            let cause = match &self.failure {
                Some(error) => format!("left an epoch by an error: {error}"),
                None => "left an epoch by a panic".into(),
            };
            let _ = self.claims.each(&mut |claim| {
                claim.poison();
                claim.group().inner.engine().conduit().end(&cause);
                Ok(())
            });
        }
    }
}

impl<'c, C: sealed::Each> Inside<'c, C> {
    fn begin(claims: &'c mut C) -> Result<Self> {
        let together = Together::of(claims);
        let mut inside = Inside { claims, together, ended: false, failure: None };
        let claims = &mut *inside.claims;
        let ready = claims.each(&mut |claim| claim.ready());
        let agreed = ready.and_then(|()| agree(claims, &inside.together, sealed::Kind::begin));
        let begun = agreed.and_then(|()| claims.each(&mut |claim| claim.begun()));
        inside.failure = begun.as_ref().err().map(ToString::to_string);
        begun.map(|()| inside)
    }

    fn end(mut self) -> Result<()> {
        let ended = agree(self.claims, &self.together, |_| Op::EndEpoch);
        self.failure = ended.as_ref().err().map(ToString::to_string);
        self.ended = ended.is_ok();
        ended
    }
}

impl<T, D> Reader<T, D> {
    pub(super) fn of(array: &GlobalArray<T, D>) -> &Self {
        // SAFETY: a transparent struct of the array.
        unsafe { &*ptr::from_ref(array).cast() }
    }
}

impl<T: Element, D: Dimension> Frozen<T, D> {
    /// This rank's part. Local.
    #[must_use]
    pub fn own(&self) -> OwnedPart<'_, T, D> {
        let array = self.array();
        // SAFETY: the module's essay: no member has a handle that writes until all have called `thaw`, for which this borrow ends.
        OwnedPart::new(unsafe { array.own_part().shared() }, &array.distribution, array.group.member())
    }
}

/// An epoch of a group takes arrays over its members.
fn check_group(claim: &dyn sealed::Claimed, group: &Group) -> Result<()> {
    if group.is_like(claim.group()) {
        return Ok(());
    }
    let (size, others) = (group.size(), claim.group().size());
    let what = format_args!(
        "{claim:?}, whose array is spread over {others} ranks, in an epoch of a group of {size}: they must be the same ranks of one job in the same order"
    );
    Err(Error::argument("epoch", what))
}

/// # Epochs
/// # Unchecked local access
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Claims this rank's part for reading in [`Group::epoch`].
    pub fn owned(&mut self) -> Owned<'_, T, D> {
        Owned(self)
    }

    /// Claims this rank's part for reading and writing in [`Group::epoch`].
    pub fn owned_mut(&mut self) -> OwnedMut<'_, T, D> {
        OwnedMut(self)
    }

    /// Claims this rank's part and its ghost cells for reading in [`Group::epoch`]. The epoch updates the ghost cells when it starts,
    /// like [`update_ghosts`](Self::update_ghosts) but without an additional sync. During the epoch no rank can write the array.
    ///
    /// # Source
    /// GA: `GA_Update_ghosts` and `NGA_Access_ghosts`; `NGA_Get_ghost_block` is a copy of a part of the view.
    #[doc(alias("NGA_Access_ghosts", "NGA_Release_ghosts", "NGA_Get_ghost_block"))]
    pub fn ghosts(&mut self) -> Ghosts<'_, T, D> {
        Ghosts(self)
    }

    /// Claims this rank's part and its ghost cells for reading and writing in [`Group::epoch`]. The epoch does not update the ghost cells.
    /// What you write into a ghost cell stays there until an update fills it; beyond an open boundary, until you write it again.
    ///
    /// # Source
    /// GA: `NGA_Access_ghosts`, `NGA_Release_update_ghosts`.
    #[doc(alias = "NGA_Release_update_ghosts")]
    pub fn ghosts_mut(&mut self) -> GhostsMut<'_, T, D> {
        GhostsMut(self)
    }

    /// Runs `body` with this rank's part as plain writable memory. Collective: starts and ends with a sync of all members. In
    /// between, no rank can access any part but its own.
    ///
    /// # Errors
    /// Members in different collectives; a transfer that failed; the end of the job. An error poisons the array.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut a = GlobalArray::<f64, Ix1>::builder(job, [10]).create()?;
    ///     a.owner_epoch(|mut part| part.fill(1.0))?;
    ///     assert_eq!(a.get(..)?.sum(), 10.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Access` and `NGA_Release_update`, without their races.
    #[doc(alias("NGA_Access", "NGA_Release_update"))]
    #[track_caller]
    pub fn owner_epoch<R>(&mut self, body: impl FnOnce(OwnedPartMut<'_, T, D>) -> R) -> Result<R> {
        located(move || {
            let mut claim = OwnedMut(self);
            let inside = Inside::begin(&mut claim)?;
            let array = &*inside.claims.0;
            // SAFETY: the module's essay: the epoch has begun, and `body` cannot keep the part beyond its call.
            let part = OwnedPartMut::new(unsafe { array.own_part().exclusive() }, &array.distribution, array.group.member());
            let result = program(|| body(part));
            inside.end()?;
            Ok(result)
        })
    }

    /// Runs `body` with this rank's part as plain readable memory and a [`Reader`] for the whole array. Collective: starts and ends
    /// with a sync of all members. In between, no rank can write the array.
    ///
    /// # Errors
    /// Same as [`owner_epoch`](Self::owner_epoch).
    #[doc(alias = "NGA_Release")]
    #[track_caller]
    pub fn read_epoch<R>(&mut self, body: impl FnOnce(OwnedPart<'_, T, D>, &Reader<T, D>) -> R) -> Result<R> {
        located(move || {
            let mut claim = Owned(self);
            let inside = Inside::begin(&mut claim)?;
            let array = &*inside.claims.0;
            // SAFETY: the epoch has begun: until it ends nobody writes the part. The reader only gets.
            let part = OwnedPart::new(unsafe { array.own_part().shared() }, &array.distribution, array.group.member());
            let result = program(|| body(part, Reader::of(array)));
            inside.end()?;
            Ok(result)
        })
    }
}

impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// This rank's part as plain writable memory, without an epoch: nothing is checked, completed or agreed. Local.
    ///
    /// Use it if your own protocol, such as signals or locks, excludes other ranks, and the two syncs of an
    /// [`owner_epoch`](Self::owner_epoch) cost too much. What you write becomes visible as a store does: after a sync, a signal or
    /// the release of a lock.
    ///
    /// # Safety
    /// From the call until the last use of the returned value:
    /// * no operation on the array, by any rank or thread including this one, reads or writes an element of this part: no get, put,
    ///   accumulate, atomic operation, list or operation on the whole array. No earlier operation on the part is still in flight;
    /// * everything that was written to the part before is visible to this rank, by a sync, a signal or a lock;
    /// * this rank holds no other value that `access` to this array returned.
    ///
    /// The job may end meanwhile: the memory lives as long as the array.
    ///
    /// # Errors
    /// A poisoned array; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let a = GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create()?;
    ///     job.sync()?;
    ///     // SAFETY: between the two syncs each rank touches its own part only, through this one value.
    ///     unsafe { a.access()? }.fill(1.0);
    ///     job.sync()?;
    ///     assert_eq!(a.get(..)?.sum(), 10.0);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// GA: `NGA_Access`, equally unchecked.
    #[track_caller]
    pub unsafe fn access(&self) -> Result<OwnedPartMut<'_, T, D>> {
        located(move || {
            self.check_sound("access")?;
            self.check_job("access")?;
            // SAFETY: the caller's promise.
            Ok(OwnedPartMut::new(unsafe { self.own_part().exclusive() }, &self.distribution, self.group.member()))
        })
    }
}

impl Group {
    /// Runs `body` with this rank's parts of several arrays, all over the members of this group. Collective; starts and ends with a sync.
    /// The members agree once at each end, however many arrays there are.
    ///
    /// # Errors
    /// An array over other ranks; the errors of [`GlobalArray::owner_epoch`].
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut x = GlobalArray::<f64, Ix1>::builder(job, [8]).fill(1.0).create()?;
    ///     let mut v = GlobalArray::<f64, Ix1>::builder(job, [8]).fill(0.5).create()?;
    ///     job.epoch((x.owned_mut(), v.owned()), |(mut x, v)| {
    ///         x.iter_mut().zip(v.iter()).for_each(|(x, v)| *x += 0.1 * v);
    ///     })?;
    ///     assert_eq!(x.load([3])?, 1.05);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn epoch<C: Claims, R>(&self, mut claims: C, body: impl for<'p> FnOnce(PartsOf<'p, C>) -> R) -> Result<R> {
        located(move || {
            claims.each(&mut |claim| check_group(claim, self))?;
            let inside = Inside::begin(&mut claims)?;
            // SAFETY: all epochs have begun, and `body` cannot keep the parts beyond its call.
            let parts = unsafe { inside.claims.parts() };
            let result = program(|| body(parts));
            inside.end()?;
            Ok(result)
        })
    }
}
