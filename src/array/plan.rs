//! Plans of gathers: lists of elements whose owners are found once.
//!
//! A plan keeps where elements lie in their owners' parts, neighbors in runs. Reading and adding then take no arithmetic of owners, and the
//! plan serves all arrays of one distribution, whatever is written meanwhile: it borrows none of them.
//!
//! | owner | `fetch` | `add` |
//! |---|---|---|
//! | mapped | reads its memory | adds under its lock, a batch at a time |
//! | this rank, not mapped | reads its memory, behind its own puts to itself | as the others |
//! | others | one get for each span: runs that lie close together, with what lies between | what `scatter_accumulate` does, a run at a time |

use std::{collections::BTreeMap, fmt, iter, mem, ops::Range};

use ndarray::{ArrayView1, Dimension, IntoDimension, Ix1};

use super::{GlobalArray, lists::BATCH};
use crate::{
    calls::located,
    comm::engine::accumulate::{Term, accumulate_at_owner, accumulate_list},
    distribution::{Distribution, Location},
    element::{Additive, Element, Number},
    error::{Error, Result},
    memory::{buffer::Source, part::Part, stripes},
    sync::{Group, Kind},
};

/// Bytes between two runs up to which they are read as one: what passes in the time that a further transfer takes of the sender, a tenth
/// of a microsecond at 10 GB/s.
const GAP: usize = 1024;

/// A list of elements whose owners are known, made by [`GlobalArray::gather_plan`].
///
/// A random list is fetched 19 to 81 times as fast as [`gather`](GlobalArray::gather) does it over a network, and 1.9 to 3.4 times where memory is mapped: there
/// an element takes 1.4 ns, most of it a miss of the cache, and 5 ns with its owner's arithmetic.
///
/// It belongs to a distribution, not to one array: [`fetch`](Self::fetch) and [`add`](Self::add) take any array of the same distribution
/// over the same ranks. So it outlives epochs and everything else that is done to an array.
pub struct GatherPlan<D> {
    group: Group,
    distribution: Distribution<D>,
    len: usize,
    shares: Vec<Share>,
}

/// The elements of one member, in 2³² elements of its part.
struct Share {
    member: usize,
    /// Where these begin in the part.
    base: usize,
    elements: usize,
    /// In the order of the list; of a member that is not mapped in that of its part.
    runs: Vec<Run>,
    /// What is got of the part of another member that is not mapped.
    spans: Vec<Range<usize>>,
}

/// Elements that lie side by side in the part from `base + at` on, and in the list from `to` on; [`BATCH`] of them at most. Runs are as
/// small as can be: reading them is half of the work where most are single elements.
#[derive(Clone, Copy)]
struct Run {
    at: u32,
    to: u32,
    len: u32,
}

/// Elements of a run up to which a loop is faster than the call of a kernel.
const SHORT: usize = 8;

/// # Lists of elements
impl<T: Element, D: Dimension> GlobalArray<T, D> {
    /// Finds the owners of the elements at `subscripts`, for a list that is read or added to many times. A subscript may occur more than
    /// once. Local. See [`GatherPlan`].
    ///
    /// # Errors
    /// A subscript outside the array; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(2).network("threads").run(|job| {
    ///     let mut x = GlobalArray1::<f64>::from_fn(job, [10], |i| i as f64)?;
    ///     let plan = x.gather_plan(&[7, 0, 7])?;
    ///     let mut values = [0.0; 3];
    ///     for step in 1..4 {
    ///         plan.fetch(&x, &mut values)?;
    ///         assert_eq!(values, [7.0, 0.0, 7.0].map(|value| value * f64::powi(2.0, step - 1)));
    ///         x.scale(2.0)?;
    ///     }
    ///     x.zero()?;
    ///     plan.add(&x, &[1.0, 2.0, 3.0])?;
    ///     job.sync()?;
    ///     assert_eq!((x.load([7])?, x.load([0])?), (8.0, 4.0)); // of both ranks
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// PETSc: `VecScatterCreate`. GA has no such call: `NGA_Gather` locates all elements each time.
    #[track_caller]
    pub fn gather_plan<I: IntoDimension<Dim = D> + Copy>(&self, subscripts: &[I]) -> Result<GatherPlan<D>> {
        located(move || {
            const OPERATION: &str = "gather_plan";
            self.check_job(OPERATION)?;
            if subscripts.len() > u32::MAX as usize {
                let what = format_args!("{} subscripts, more than 2³²: make several plans", subscripts.len());
                return Err(Error::argument(OPERATION, what));
            }
            let mut owners = BTreeMap::<(usize, usize), Vec<Run>>::new();
            for (to, &subscript) in (0_u32..).zip(subscripts) {
                let Location { member, offset } = self.find(OPERATION, subscript)?;
                let (window, at) = (offset >> u32::BITS, offset as u32);
                let runs = owners.entry((member, window)).or_default();
                match runs.last_mut() {
                    Some(run) if run.at.checked_add(run.len) == Some(at) && to - run.to == run.len && run.len() < BATCH => {
                        run.len += 1
                    }
                    _ => runs.push(Run { at, to, len: 1 }),
                }
            }
            let share = |((member, window), runs)| self.share(member, window << u32::BITS, runs);
            let shares = owners.into_iter().map(share).collect();
            Ok(GatherPlan { group: self.group.clone(), distribution: self.distribution.clone(), len: subscripts.len(), shares })
        })
    }

    fn share(&self, member: usize, base: usize, mut runs: Vec<Run>) -> Share {
        let inner = &self.group.inner;
        let elements = runs.iter().map(Run::len).sum();
        let mut spans: Vec<Range<usize>> = Vec::new();
        if !inner.segments.is_mapped(member) {
            runs.sort_by_key(|run| run.at);
            let gap = GAP / size_of::<T>().max(1);
            for run in runs.iter().filter(|_| member != inner.me()) {
                let run = base + run.at()..base + run.at() + run.len();
                match spans.last_mut() {
                    Some(span) if run.start <= span.end + gap => span.end = span.end.max(run.end),
                    _ => spans.push(run),
                }
            }
        }
        runs.shrink_to_fit();
        Share { member, base, elements, runs, spans }
    }
}

impl<D: Dimension> GatherPlan<D> {
    /// Number of elements of the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the elements into `to`, in the order of the list. One-sided; complete on return; sees what [`GlobalArray::gather`] would.
    ///
    /// # Errors
    /// An array of another distribution or over other ranks; a list of another length; the end of the job.
    #[track_caller]
    pub fn fetch<T: Element>(&self, array: &GlobalArray<T, D>, to: &mut [T]) -> Result<()> {
        located(move || {
            const OPERATION: &str = "fetch";
            self.check(OPERATION, array, to.len())?;
            self.count(Kind::Get, array);
            let (inner, me) = (&array.group.inner, array.group.member());
            if !inner.segments.is_mapped(me) && self.shares.iter().any(|share| share.member == me) {
                // What this rank has put to itself over the network.
                array.engine().fence(Some(inner.rank_of(me)), &array.label(OPERATION))?;
            }
            let is_far = |share: &&Share| !share.spans.is_empty();
            let mut near = || {
                for share in self.shares.iter().filter(|share| !is_far(share)) {
                    let part = if share.member == me { array.own_part() } else { array.mapped_part(share.member) };
                    share.read(&part, to);
                }
            };
            if !self.shares.iter().any(|share| is_far(&share)) {
                near();
                return Ok(());
            }
            let far = || self.shares.iter().filter(is_far);
            let mut buffers: Vec<Vec<T>> = far().map(|share| bytemuck::zeroed_vec(share.got())).collect();
            let gets = far().zip(&mut buffers).flat_map(|(share, buffer)| {
                let mut rest = buffer.as_mut_slice();
                let rank = inner.rank_of(share.member);
                share.spans.iter().map(move |span| {
                    let (to, behind) = mem::take(&mut rest).split_at_mut(span.len());
                    rest = behind;
                    (rank, array.offset + span.start * size_of::<T>(), to)
                })
            });
            // The network works while this rank reads what is near.
            let meanwhile = iter::once_with(near).filter_map(|()| None);
            array.engine().get_list(gets.chain(meanwhile), &array.label(OPERATION))?;
            far().zip(&buffers).for_each(|(share, buffer)| share.spread(buffer, to));
            Ok(())
        })
    }

    /// Adds `from` to the elements, in the order of the list; terms of one element add up. One-sided; atomic for each element with respect
    /// to other accumulates; visible after a fence or a sync.
    ///
    /// # Errors
    /// An array of another distribution or over other ranks, and a list of another length: nothing is added then. The end of the job.
    #[track_caller]
    pub fn add<T: Additive>(&self, array: &GlobalArray<T, D>, from: &[T]) -> Result<()> {
        located(move || {
            const OPERATION: &str = "add";
            self.check(OPERATION, array, from.len())?;
            self.count(Kind::Accumulate, array);
            let (inner, engine) = (&array.group.inner, array.engine());
            let byte = |at: usize| array.offset + at * size_of::<T>();
            let near = |share: &&Share| inner.segments.is_mapped(share.member);
            if inner.mapped {
                return self.shares.iter().try_for_each(|share| share.add(array, from));
            }
            let Some(scale) = array.owners_scale(T::Scale::ONE) else {
                let terms = self.shares.iter().flat_map(|share| {
                    let rank = inner.rank_of(share.member);
                    let elements = share.runs.iter().flat_map(|run| (0..run.len()).map(|k| (share.at(run) + k, run.to() + k)));
                    elements.map(move |(at, to)| Term { rank, at: byte(at), value: from[to] })
                });
                let lock = inner.job.remote_lock();
                return accumulate_list(engine, lock, T::Scale::ONE, terms.collect(), &array.label(OPERATION));
            };
            let call = engine.begin(array.label(OPERATION));
            let mut far = self.shares.iter().filter(|share| !near(share));
            let issued = far.try_for_each(|share| {
                share.runs.iter().try_for_each(|run| {
                    let (rank, at, terms) = (inner.rank_of(share.member), byte(share.at(run)), run.of(from));
                    accumulate_at_owner(engine, &call, rank, inner.job.accumulate_lock, at, &Ix1(1), &scale, &terms)
                })
            });
            let added = issued.and_then(|()| self.shares.iter().filter(near).try_for_each(|share| share.add(array, from)));
            engine.finish_call(call, added)
        })
    }

    pub(crate) fn is_for<T: Element>(&self, array: &GlobalArray<T, D>) -> bool {
        self.distribution == array.distribution && self.group.is_like(&array.group)
    }

    fn check<T: Element>(&self, operation: &'static str, array: &GlobalArray<T, D>, values: usize) -> Result<()> {
        array.check_sound(operation)?;
        array.check_job(operation)?;
        let what = if !self.is_for(array) {
            format!(
                "array \"{}\" has another distribution, or is spread over other ranks, than the array that the plan was made of: make a plan of \"{0}\"",
                array.name
            )
        } else if self.len != values {
            format!("array \"{}\": a plan of {} elements but {values} values", array.name, self.len)
        } else {
            return Ok(());
        };
        Err(Error::Argument { operation: operation.into(), what })
    }

    fn count<T: Element>(&self, kind: Kind, array: &GlobalArray<T, D>) {
        let inner = &array.group.inner;
        if !inner.direct {
            self.shares.iter().for_each(|share| inner.count(kind, share.member, share.elements * size_of::<T>()));
        }
    }
}

impl Share {
    /// How many elements are got.
    fn got(&self) -> usize {
        self.spans.iter().map(Range::len).sum()
    }

    /// Where a run lies in the part.
    fn at(&self, run: &Run) -> usize {
        self.base + run.at()
    }

    fn read<T: Element>(&self, part: &Part<'_, T>, to: &mut [T]) {
        for run in &self.runs {
            let (at, to) = (self.at(run), &mut to[run.to()..][..run.len()]);
            if to.len() <= SHORT {
                to.iter_mut().enumerate().for_each(|(k, to)| *to = part.load(at + k));
            } else {
                part.read_slice(at, to);
            }
        }
    }

    /// Brings what was got to its places in the list.
    fn spread<T: Element>(&self, got: &[T], to: &mut [T]) {
        let mut runs = self.runs.as_slice();
        let mut begin = 0;
        for span in &self.spans {
            let (inside, behind) = runs.split_at(runs.partition_point(|run| self.at(run) < span.end));
            for run in inside {
                to[run.to()..][..run.len()].copy_from_slice(&got[begin + self.at(run) - span.start..][..run.len()]);
            }
            (runs, begin) = (behind, begin + span.len());
        }
    }

    /// Adds to the part of a mapped member, and gives others their turn at the lock between batches.
    fn add<T: Additive, D: Dimension>(&self, array: &GlobalArray<T, D>, from: &[T]) -> Result<()> {
        let (part, mut elements) = (array.mapped_part(self.member), 0);
        let mut batches = self.runs.chunk_by(|run, next| {
            elements += run.len();
            let has_room = elements + next.len() <= BATCH;
            elements *= usize::from(has_room);
            has_room
        });
        batches.try_for_each(|runs| {
            let _held = array.lock_member(self.member, stripes::ALL, false)?;
            runs.iter().for_each(|run| part.accumulate(self.at(run), &Ix1(1), T::Scale::ONE, &run.of(from)));
            Ok(())
        })
    }
}

impl Run {
    fn at(&self) -> usize {
        self.at as usize
    }

    fn to(&self) -> usize {
        self.to as usize
    }

    fn len(&self) -> usize {
        self.len as usize
    }

    /// Its values of a list.
    fn of<'a, T>(&self, from: &'a [T]) -> Source<'a, T, Ix1> {
        Source::whole(&ArrayView1::from(&from[self.to()..][..self.len()]))
    }
}

impl<D: Dimension> fmt::Debug for GatherPlan<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, owners) = (self.len, self.shares.len());
        write!(f, "GatherPlan({len} elements of {owners} members, of {:?})", self.distribution.shape())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crate::{
        comm::{
            Capabilities,
            testing::watched::{
                Asked::{self, Get},
                Lists, Watched,
            },
        },
        prelude::*,
    };

    /// What the network of rank 0 is asked for by a fetch of elements of a vector, of which each of two ranks owns 1000.
    fn asked_by(list: &[usize]) -> Vec<Asked> {
        let (lists, seen) = (Lists::new(2), Mutex::default());
        let body = |job: &Job| {
            let x = GlobalArray1::<f64>::from_fn(job, [2000], |i| i as f64)?;
            if job.rank() == 0 {
                let (plan, mut values) = (x.gather_plan(list)?, vec![0.0; list.len()]);
                lists.take(0);
                plan.fetch(&x, &mut values)?;
                *seen.lock().unwrap() = lists.take(0);
                assert!(list.iter().zip(&values).all(|(&i, &value)| value == i as f64));
            }
            job.sync()
        };
        let conduit = |member| Watched::conduit(member, lists.clone(), |_: &mut Capabilities| ());
        Launch::new().ranks(2).timeout(30.0).run_over(conduit, body).unwrap();
        seen.into_inner().unwrap()
    }

    #[test]
    fn what_lies_close_together_is_one_get_and_own_elements_take_none() {
        assert_eq!(asked_by(&[999, 0, 5]), []);
        assert_eq!(asked_by(&[1000, 7, 1001, 1100, 1000]), [Get]);
        assert_eq!(asked_by(&[1999, 1000, 0]), [Get; 2]);
        let neighbors: Vec<usize> = (900..1900).rev().collect();
        assert_eq!(asked_by(&neighbors), [Get]);
    }
}
