//! The segments of a group's members: where offsets become addresses, after a check of bounds and alignment.
//!
//! All access to a segment begins here: [`Part`]s of arrays, [`Line`]s and [`Meeting`]s of agreements, words. All segments of a job are
//! equally long, so a [`Placement`], a range that was checked once, is good for every member that is mapped.

use std::{
    marker::PhantomData,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use super::{
    atomics,
    line::{Line, Meeting},
    part::Part,
    ring::{self, Ring},
    stripes::Stripes,
    word::WaitWord,
};
use crate::element::Element;

/// Where the segments of a group's members begin: three numbers where the members are equally spaced ranks.
#[derive(Clone, Debug)]
pub(crate) struct Bases {
    /// Of the mapped members, by their numbers in the group.
    evenly: Evenly,
    /// Of those that `evenly` has not.
    others: Others,
    members: usize,
}

/// Segments at equal distances: number `from + k` begins `k * step` bytes behind the first one, and there are `count`.
#[derive(Clone, Debug)]
pub(crate) struct Evenly {
    pub(crate) from: usize,
    pub(crate) count: usize,
    pub(crate) first: *mut u8,
    /// May be a negative number, in two's complement.
    pub(crate) step: usize,
}

#[derive(Clone, Debug)]
enum Others {
    /// Not mapped.
    Unmapped,
    /// By their ranks.
    Listed(Arc<[usize]>, Evenly),
    /// Null where a member's memory is not mapped.
    Table(Arc<[*mut u8]>),
}

impl Evenly {
    const NONE: Self = Evenly { from: 0, count: 0, first: std::ptr::null_mut(), step: 0 };

    #[inline(always)]
    fn get(&self, number: usize) -> Option<*mut u8> {
        let at = number.wrapping_sub(self.from);
        (at < self.count).then(|| self.first.wrapping_add(at.wrapping_mul(self.step)))
    }
}

impl Bases {
    /// Of members none of whom is mapped.
    pub(crate) fn unmapped(members: usize) -> Self {
        Self::evenly(members, Evenly::NONE)
    }

    /// By the numbers of the members; no others are mapped.
    pub(crate) fn evenly(members: usize, evenly: Evenly) -> Self {
        Bases { evenly, others: Others::Unmapped, members }
    }

    /// By the ranks of the members; no others are mapped.
    pub(crate) fn listed(ranks: Arc<[usize]>, evenly: Evenly) -> Self {
        Bases { evenly: Evenly::NONE, members: ranks.len(), others: Others::Listed(ranks, evenly) }
    }

    /// Of each member, if it is mapped.
    pub(crate) fn table(bases: impl IntoIterator<Item = Option<NonNull<u8>>>) -> Self {
        let table: Arc<[_]> = bases.into_iter().map(|base| base.map_or(std::ptr::null_mut(), NonNull::as_ptr)).collect();
        Bases { evenly: Evenly::NONE, members: table.len(), others: Others::Table(table) }
    }

    /// Whether all members are mapped.
    pub(crate) fn are_all(&self) -> bool {
        self.evenly.count == self.members || (0..self.members).all(|member| !self.at(member).is_null())
    }

    /// Null where a member is not mapped.
    #[inline(always)]
    fn at(&self, member: usize) -> *mut u8 {
        self.evenly.get(member).unwrap_or_else(|| self.other(member))
    }

    #[inline]
    fn other(&self, member: usize) -> *mut u8 {
        match &self.others {
            Others::Unmapped if member < self.members => std::ptr::null_mut(),
            Others::Unmapped => no_member(member, self.members),
            Others::Listed(ranks, evenly) => evenly.get(ranks[member]).unwrap_or(std::ptr::null_mut()),
            Others::Table(table) => table[member],
        }
    }
}

#[cold]
#[track_caller]
fn no_member(member: usize, members: usize) -> ! {
    panic!("member {member} of a group of {members}")
}

/// The segment of one member, found once. As for [`Segments`], whoever holds it keeps the mapping alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: as for `Segments`.
unsafe impl Send for Segment {}
// SAFETY: as for `Segments`.
unsafe impl Sync for Segment {}

impl Segment {
    /// `len` elements at a byte offset.
    #[inline(always)]
    pub(crate) fn part<T: Element>(&self, offset: usize, len: usize) -> Part<'_, T> {
        check::<T>(offset, len, self.len);
        // SAFETY: the range was checked against the segment that begins at `base`, at a page, and is mapped as long as self is held.
        unsafe { Part::new(self.base.as_ptr().wrapping_add(offset).cast(), len) }
    }

    /// A segment that is mapped, but not found by a group.
    ///
    /// # Safety
    /// It stays mapped as long as the answer is used.
    pub(crate) unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Segment { base, len }
    }

    /// A ring of letters.
    #[inline]
    pub(crate) fn ring(&self, offset: usize, slots: usize) -> Ring<'_> {
        self.find_ring(offset, slots).unwrap_or_else(|| outside(slots, offset, self.len))
    }

    /// The same, of which a peer says that it is there.
    #[inline]
    pub(crate) fn find_ring(&self, offset: usize, slots: usize) -> Option<Ring<'_>> {
        let at = |place: usize| self.base.as_ptr().wrapping_add(offset + place);
        let first = offset.checked_add(ring::SLOTS)?;
        let is_inside = is_inside::<ring::End>(offset, 2, self.len) && is_inside::<ring::Slot>(first, slots, self.len);
        // SAFETY: atomics, for which every bit pattern is valid, inside a segment that lives as long as self.
        (is_inside && slots.is_power_of_two()).then(|| unsafe {
            let (tail, head) = (&*at(ring::TAIL).cast(), &*at(ring::HEAD).cast());
            Ring::new(tail, head, std::slice::from_raw_parts(at(ring::SLOTS).cast(), slots))
        })
    }

    /// A word to wait on.
    #[inline(always)]
    pub(crate) fn word(&self, offset: usize) -> &WaitWord {
        check::<WaitWord>(offset, 1, self.len);
        // SAFETY: atomics, for which every bit pattern is valid, inside a segment that lives as long as self.
        unsafe { &*self.base.as_ptr().wrapping_add(offset).cast() }
    }
}

/// The mapped segments of a group's members.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    bases: Bases,
    /// The same for the shortest roads. None while operations are counted: what the shortest roads find there already sends
    /// them to those that count, so that counting costs nothing where it is off.
    short: Bases,
    len: usize,
    /// The job's flag, beside the bases because every operation looks at both.
    over: *const AtomicU32,
}

// SAFETY: the pointers lead to shared memory that is only accessed through `Part`, lines and words, all made for races.
unsafe impl Send for Segments {}
// SAFETY: as above.
unsafe impl Sync for Segments {}

impl Segments {
    /// Segments of `len` bytes each, whose operations are `counted` or not. Whoever holds the value keeps the mapping alive, by
    /// holding the conduit.
    pub(crate) fn new(bases: Bases, len: usize, over: &AtomicU32, counted: bool) -> Self {
        let short = if counted { Bases::unmapped(bases.members) } else { bases.clone() };
        Segments { bases, short, len, over }
    }

    /// Whether the job is over.
    #[inline]
    pub(crate) fn over(&self) -> bool {
        // SAFETY: the flag lives as long as the conduit, which the holder keeps alive.
        unsafe { &*self.over }.load(Ordering::Relaxed) != 0
    }

    /// Whether a member is mapped.
    #[inline]
    pub(crate) fn is_mapped(&self, member: usize) -> bool {
        !self.bases.at(member).is_null()
    }

    /// Whether the shortest road leads to a member: it is mapped and nothing is counted.
    #[inline]
    pub(crate) fn is_short(&self, member: usize) -> bool {
        !self.short.at(member).is_null()
    }

    /// The segment of a member, if it is mapped.
    pub(crate) fn of(&self, member: usize) -> Option<Segment> {
        NonNull::new(self.bases.at(member)).map(|base| Segment { base, len: self.len })
    }

    /// The caller's own segment, which begins at `base`, mapped for others or not.
    pub(crate) fn own(&self, base: NonNull<u8>) -> Segment {
        Segment { base, len: self.len }
    }

    /// `len` elements at a byte offset of a member's segment, if it is mapped.
    #[inline(always)]
    pub(crate) fn part<T: Element>(&self, member: usize, offset: usize, len: usize) -> Option<Part<'_, T>> {
        let base = self.bases.at(member);
        (!base.is_null()).then(|| self.elements(base, offset, len))
    }

    /// As [`part`](Self::part), for a range that was checked once, if the shortest road leads there.
    #[inline(always)]
    pub(crate) fn placed<T: Element>(&self, member: usize, placement: &Placement<T>) -> Option<Part<'_, T>> {
        self.placed_at(self.short.at(member), placement)
    }

    /// As [`part`](Self::part), for a range that was checked once, whatever is counted.
    #[inline(always)]
    pub(crate) fn reached<T: Element>(&self, member: usize, placement: &Placement<T>) -> Option<Part<'_, T>> {
        self.placed_at(self.bases.at(member), placement)
    }

    #[inline(always)]
    fn placed_at<T: Element>(&self, base: *mut u8, placement: &Placement<T>) -> Option<Part<'_, T>> {
        debug_assert!(placement.segment <= self.len, "a placement in another job's segments");
        // SAFETY: `placement` checked the range against a segment of this job, and all segments of a job are equally long and begin
        // at a page; this one is mapped as long as self is held.
        (!base.is_null()).then(|| unsafe { Part::new(base.wrapping_add(placement.offset).cast(), placement.len) })
    }

    /// Checks a range of every member's segment once.
    pub(crate) fn placement<T: Element>(&self, offset: usize, len: usize) -> Placement<T> {
        check::<T>(offset, len, self.len);
        Placement { offset, len, segment: self.len, element: PhantomData }
    }

    /// A line of a member, if it is mapped.
    #[inline]
    pub(crate) fn line(&self, member: usize, offset: usize) -> Option<&Line> {
        let base = self.bases.at(member);
        // SAFETY: atomics, for which every bit pattern is valid, inside a segment that lives as long as self.
        (!base.is_null()).then(|| unsafe { &*self.object::<Line>(base, offset) })
    }

    /// A meeting of a member, if it is mapped.
    pub(crate) fn meeting(&self, member: usize, offset: usize) -> Option<&Meeting> {
        let base = self.bases.at(member);
        // SAFETY: as in `line`.
        (!base.is_null()).then(|| unsafe { &*self.object::<Meeting>(base, offset) })
    }

    /// A word to wait on, of a member, if the shortest road leads there.
    #[inline]
    pub(crate) fn short_word(&self, member: usize, offset: usize) -> Option<&WaitWord> {
        self.word_at(self.short.at(member), offset)
    }

    /// A word to wait on, of a member, if it is mapped.
    pub(crate) fn word(&self, member: usize, offset: usize) -> Option<&WaitWord> {
        self.word_at(self.bases.at(member), offset)
    }

    #[inline]
    fn word_at(&self, base: *mut u8, offset: usize) -> Option<&WaitWord> {
        // SAFETY: as in `line`.
        (!base.is_null()).then(|| unsafe { &*self.object::<WaitWord>(base, offset) })
    }

    /// The accumulate lock of a member, if it is mapped.
    #[inline]
    pub(crate) fn stripes(&self, member: usize, offset: usize) -> Option<Stripes<'_>> {
        let base = self.bases.at(member);
        // SAFETY: as in `line`.
        (!base.is_null()).then(|| Stripes::new(unsafe { &*self.object::<atomics::AtomicU64>(base, offset) }))
    }

    /// A line of the caller's own segment, which begins at `base`, mapped for others or not.
    #[inline]
    pub(crate) fn own_line(&self, base: NonNull<u8>, offset: usize) -> &Line {
        // SAFETY: as in `line`; the conduit that the holder keeps alive vouches for its own segment.
        unsafe { &*self.object::<Line>(base.as_ptr(), offset) }
    }

    /// A word of the caller's own segment.
    #[inline]
    pub(crate) fn own_word(&self, base: NonNull<u8>, offset: usize) -> &WaitWord {
        // SAFETY: as in `own_line`.
        unsafe { &*self.object::<WaitWord>(base.as_ptr(), offset) }
    }

    /// Elements of the caller's own segment.
    #[inline]
    pub(crate) fn own_part<T: Element>(&self, base: NonNull<u8>, offset: usize, len: usize) -> Part<'_, T> {
        self.elements(base.as_ptr(), offset, len)
    }

    #[inline(always)]
    fn elements<T: Element>(&self, base: *mut u8, offset: usize, len: usize) -> Part<'_, T> {
        check::<T>(offset, len, self.len);
        // SAFETY: the range was checked against the segment that begins at `base`, at a page, and is mapped as long as self is held.
        unsafe { Part::new(base.wrapping_add(offset).cast(), len) }
    }

    #[inline]
    fn object<O>(&self, base: *mut u8, offset: usize) -> *mut O {
        check::<O>(offset, 1, self.len);
        base.wrapping_add(offset).cast()
    }
}

/// That `len` values at a byte offset lie inside a segment and are aligned.
#[inline(always)]
fn check<O>(offset: usize, len: usize, segment: usize) {
    if !is_inside::<O>(offset, len, segment) {
        outside(len, offset, segment);
    }
}

#[inline(always)]
fn is_inside<O>(offset: usize, len: usize, segment: usize) -> bool {
    let bytes = len.checked_mul(size_of::<O>());
    let inside = offset <= segment && bytes.is_some_and(|bytes| bytes <= segment - offset);
    inside && offset.is_multiple_of(align_of::<O>())
}

/// A range of elements at the same place of every member's segment, known to lie inside and to be aligned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement<T> {
    offset: usize,
    len: usize,
    segment: usize,
    element: PhantomData<T>,
}

#[cold]
#[track_caller]
fn outside(len: usize, offset: usize, segment: usize) -> ! {
    panic!("{len} elements at byte {offset} of a segment of {segment} bytes")
}
