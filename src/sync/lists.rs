//! Collectives on lists of any lengths, and on values of one member.
//!
//! Each member offers its elements as one stream, piece by piece in its own box, and the others fetch from each piece what is theirs. All
//! pass through as many pieces as the longest stream has.

use super::{Group, Op, ops};
use crate::{
    calls::located,
    element::Element,
    error::{Error, Result},
    portable::{Portable, read_whole},
};

impl Group {
    /// As [`all_to_all`](Self::all_to_all), with lists of any lengths: list k of `lists` goes to member k, and list k of the result comes
    /// from member k. Collective.
    ///
    /// # Errors
    /// A number of lists that is not that of the members; members that disagree on the type; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(3).network("threads").run(|job| {
    ///     let me = job.rank();
    ///     let lists: Vec<Vec<usize>> = (0..job.size()).map(|to| vec![me; to]).collect();
    ///     let arrived = job.all_to_all_v(&lists)?;
    ///     assert_eq!(arrived, [vec![0; me], vec![1; me], vec![2; me]]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// `MPI_Alltoallv`, without its lists of counts and displacements.
    #[track_caller]
    pub fn all_to_all_v<T: Element>(&self, lists: &[impl AsRef<[T]>]) -> Result<Vec<Vec<T>>> {
        located(move || {
            let mut arrived = Vec::new();
            self.all_to_all_v_into(lists, &mut arrived)?;
            Ok(arrived)
        })
    }

    /// As [`all_to_all_v`](Self::all_to_all_v), into lists that are kept from call to call: where a list has room for what arrives, no
    /// memory is asked for. Collective.
    ///
    /// # Errors
    /// Same as that method.
    #[track_caller]
    pub fn all_to_all_v_into<T: Element>(&self, lists: &[impl AsRef<[T]>], arrived: &mut Vec<Vec<T>>) -> Result<()> {
        located(move || {
            let (size, me) = (self.size(), self.member());
            if lists.len() != size {
                let what = format_args!("{} lists for a group of {size} members", lists.len());
                return Err(Error::argument("all_to_all_v", what));
            }
            // The next member's list comes first, so that not all read from one member at a time.
            let (mut len, mut stream, mut places) = (0, Vec::with_capacity(size), vec![[0; 2]; size]);
            for to in (me + 1..size).chain(0..me) {
                let list = lists[to].as_ref();
                places[to] = [len, len + list.len()];
                stream.push((len, list));
                len += list.len();
            }
            let places = self.all_to_all(&places)?;
            self.streams(Op::AllToAll, &stream, &places, arrived)?;
            arrived[me].clear();
            arrived[me].extend_from_slice(lists[me].as_ref());
            Ok(())
        })
    }

    /// Collects slices of any lengths from all members on every member, in the group's order. Collective.
    ///
    /// # Errors
    /// Members that disagree on the type; the end of the job.
    ///
    /// # Source
    /// `MPI_Allgatherv`.
    #[track_caller]
    pub fn all_gather_v<T: Element>(&self, data: &[T]) -> Result<Vec<Vec<T>>> {
        located(move || {
            let lengths = self.all_gather(&[data.len()])?;
            let (wanted, mut lists) = (lengths.into_iter().map(|len| [0, len]).collect::<Vec<_>>(), Vec::new());
            self.streams(Op::AllGather, &[(0, data)], &wanted, &mut lists)?;
            Ok(lists)
        })
    }

    /// Collects slices of any lengths from all members at `root`, in the group's order. The other members get `None`. Collective.
    ///
    /// # Errors
    /// Members that disagree on root or type; a root that is not a member; the end of the job.
    ///
    /// # Source
    /// `MPI_Gatherv`.
    #[track_caller]
    pub fn gather_v<T: Element>(&self, root: usize, data: &[T]) -> Result<Option<Vec<Vec<T>>>> {
        located(move || {
            let lengths = self.gather(root, &[data.len()])?;
            let is_root = lengths.is_some();
            let wanted = lengths.unwrap_or_default().into_iter().map(|len| [0, len]).collect::<Vec<_>>();
            let mut lists = Vec::new();
            self.streams(Op::Gather, &[(0, data)], &wanted, &mut lists)?;
            Ok(is_root.then_some(lists))
        })
    }

    /// The values of the members before this one combined in their order, `neutral` at the first: with lengths and [`ops::sum`], where
    /// this member's elements begin. Collective.
    ///
    /// # Errors
    /// Members that disagree on the type; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(4).network("threads").run(|job| {
    ///     let mine = 10 * job.rank();
    ///     assert_eq!(job.exclusive_scan(mine, 0, ops::sum)?, [0, 0, 10, 30][job.rank()]);
    ///     job.sync()
    /// })
    /// # }
    /// ```
    ///
    /// # Source
    /// `MPI_Exscan`.
    #[track_caller]
    pub fn exclusive_scan<T: Element>(&self, value: T, neutral: T, op: impl Fn(T, T) -> T) -> Result<T> {
        located(move || Ok(self.all_gather(&[value])?.into_iter().take(self.member()).fold(neutral, op)))
    }

    /// Runs `f` on one member, and brings its value or its failure to all. Collective.
    ///
    /// # Errors
    /// The error of `f`, in its own type on that member, as text on the others; a member that does not exist; the end of the job.
    ///
    /// # Examples
    /// ```
    /// use global_arrays::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// Launch::new().ranks(3).network("threads").run(|job| {
    ///     let numbers: Vec<f64> = job.from_member(0, || Ok::<_, Error>("1 2 3".split(' ').flat_map(str::parse).collect()))?;
    ///     assert_eq!(numbers, [1.0, 2.0, 3.0]);
    ///     let failed = job.from_member(1, || "x".parse::<i32>().map_err(Error::other));
    ///     assert!(failed.is_err()); // on every member
    ///     job.sync()
    /// })
    /// # }
    /// ```
    #[doc(alias = "from_rank")]
    #[track_caller]
    pub fn from_member<R: Portable, E>(&self, member: usize, f: impl FnOnce() -> Result<R, E>) -> Result<R, E>
    where
        E: From<Error> + std::fmt::Display,
    {
        const OPERATION: &str = "from_member";
        let (mut bytes, mut mine) = (Vec::new(), None);
        if self.member() == member {
            // A byte says whether a value follows, or why there is none.
            bytes.push(1);
            let value = f().and_then(|value| match value.write(&mut bytes) {
                Ok(()) => Ok(value),
                Err(error) => Err(Error::system(OPERATION, error).into()),
            });
            if let Err(error) = &value {
                bytes = [&[0], error.to_string().as_bytes()].concat();
            }
            mine = Some(value);
        }
        located(|| {
            self.check_root(OPERATION, member)?;
            self.broadcast_bytes(member, &mut bytes)
        })?;
        mine.unwrap_or_else(|| {
            let theirs = located(|| match bytes.split_first() {
                Some((1, value)) => read_whole(value).map_err(|error| Error::system(OPERATION, error)),
                failed => {
                    let why = String::from_utf8_lossy(failed.map_or(&[], |(_, why)| why));
                    Err(Error::Mismatch { operation: OPERATION.into(), what: format!("it failed on member {member}: {why}") })
                }
            });
            Ok(theirs?)
        })
    }

    /// Brings bytes of one member to all, however many they are.
    pub(crate) fn broadcast_bytes(&self, root: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let mut len = [bytes.len()];
        self.broadcast(root, &mut len)?;
        bytes.resize(len[0], 0);
        self.broadcast(root, bytes)
    }

    /// Of the streams that members offer, each made of slices with their places, the elements from one place to another of each that
    /// are wanted here, or none.
    fn streams<T: Element>(
        &self,
        op: Op,
        stream: &[(usize, &[T])],
        wanted: &[[usize; 2]],
        lists: &mut Vec<Vec<T>>,
    ) -> Result<()> {
        let len = stream.last().map_or(0, |(start, slice)| start + slice.len());
        let longest = self.all_reduce_one(len, ops::max)?;
        lists.resize_with(wanted.len(), Vec::new);
        for (list, [start, end]) in lists.iter_mut().zip(wanted) {
            // Fresh memory is zero without a pass over it.
            if list.capacity() < end - start {
                *list = bytemuck::zeroed_vec(end - start);
            } else {
                list.resize(end - start, T::zeroed());
            }
        }
        self.chunked::<T>(op, 0, longest, |post, range| {
            // What of a slice falls in the range: where in its box, and where in the slice.
            let both = |start: usize, end: usize| {
                let (from, to) = (range.start.max(start), range.end.min(end));
                (from < to).then(|| ((from - range.start) * size_of::<T>(), from - start..to - start))
            };
            for &(start, slice) in stream {
                if let Some((at, part)) = both(start, start + slice.len()) {
                    post.offer(at, bytemuck::cast_slice(&slice[part]));
                }
            }
            post.again()?;
            let parts = wanted.iter().zip(&mut *lists).enumerate().filter_map(|(member, (&[start, end], list))| {
                let (at, part) = both(start, end)?;
                Some((member, at, bytemuck::cast_slice_mut(&mut list[part])))
            });
            post.fetch(parts)
        })
    }
}
