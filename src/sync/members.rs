//! The ranks of a group, in its order.
//!
//! A group of equally spaced ranks is three numbers, whatever its size. Any other is a list, of which a process keeps one copy for all
//! its ranks ([`Conduit::one_copy`](crate::comm::Conduit::one_copy)).

use std::{ops::Range, sync::Arc};

use super::fingerprint;

/// The ranks of a group's members. Equal groups are equal values, whichever way they were named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Members {
    /// Member `m` is rank `first + m * stride`. The stride is not 0, and 1 where there is one member.
    Range { first: usize, stride: isize, len: usize },
    /// Ranks that are not equally spaced.
    List(Arc<[usize]>),
}

impl Members {
    /// All ranks of a job.
    pub(crate) fn all(ranks: usize) -> Self {
        Members::Range { first: 0, stride: 1, len: ranks }
    }

    /// Those of a list of these members, without duplicates; `copy` keeps a list if it has to be kept.
    pub(crate) fn some(&self, list: &[usize], copy: impl FnOnce(&[usize]) -> Arc<[usize]>) -> Self {
        match (self, Self::of_list(list, |_| [].into())) {
            (_, Members::Range { first, stride, len }) => self.every(first, stride, len, copy),
            (Members::Range { first: 0, stride: 1, .. }, _) => Members::List(copy(list)),
            _ => Self::of_list(&list.iter().map(|&member| self.rank(member)).collect::<Vec<_>>(), copy),
        }
    }

    /// The ranks of a list; `copy` keeps it if it has to be kept.
    fn of_list(list: &[usize], copy: impl FnOnce(&[usize]) -> Arc<[usize]>) -> Self {
        let (first, len) = (list.first().copied().unwrap_or(0), list.len());
        let stride = if let [first, second, ..] = list { second.wrapping_sub(*first) as isize } else { 1 };
        let range = Members::Range { first, stride, len };
        if list.iter().enumerate().all(|(member, &rank)| range.rank(member) == rank) { range } else { Members::List(copy(list)) }
    }

    /// The members `first`, `first + stride` ... of these, `len` in all, which are some.
    pub(crate) fn every(&self, first: usize, stride: isize, len: usize, copy: impl FnOnce(&[usize]) -> Arc<[usize]>) -> Self {
        let stride = if len > 1 { stride } else { 1 };
        let chosen = Members::Range { first, stride, len };
        match self {
            Members::Range { stride: own, .. } => {
                Members::Range { first: self.rank(first), stride: if len > 1 { stride * own } else { 1 }, len }
            }
            Members::List(list) => {
                let ranks: Vec<usize> = (0..len).map(|member| list[chosen.rank(member)]).collect();
                Members::of_list(&ranks, copy)
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Members::Range { len, .. } => *len,
            Members::List(list) => list.len(),
        }
    }

    /// The rank of a member.
    #[inline]
    pub(crate) fn rank(&self, member: usize) -> usize {
        match self {
            Members::Range { first, stride, .. } => first.wrapping_add(member.wrapping_mul(*stride as usize)),
            Members::List(list) => list[member],
        }
    }

    /// The member that a rank is.
    pub(crate) fn member(&self, rank: usize) -> Option<usize> {
        match self {
            Members::Range { first, stride, len } => {
                let far = rank.wrapping_sub(*first) as isize;
                let member = usize::try_from(far / stride).ok()?;
                (far % stride == 0 && member < *len).then_some(member)
            }
            Members::List(list) => list.iter().position(|&other| other == rank),
        }
    }

    /// A number for these members in this order, equal on all of them.
    pub(crate) fn fingerprint(&self) -> u64 {
        match self {
            Members::Range { first, stride, len } => fingerprint(&[*len as u64, *first as u64, *stride as u64]),
            Members::List(list) => {
                let words: Vec<u64> = std::iter::once(list.len() as u64).chain(list.iter().map(|&rank| rank as u64)).collect();
                fingerprint(&words)
            }
        }
    }

    /// The members whose ranks lie in a range; none if these members are a list.
    pub(crate) fn within(&self, ranks: &Range<usize>) -> Option<Range<usize>> {
        let &Members::Range { stride, len, .. } = self else { return None };
        // Ranks ascend or descend.
        let first = |is_behind: &dyn Fn(usize) -> bool| first_of(len, |member| is_behind(self.rank(member)));
        Some(if stride > 0 {
            first(&|rank| rank >= ranks.start)..first(&|rank| rank >= ranks.end)
        } else {
            first(&|rank| rank < ranks.end)..first(&|rank| rank < ranks.start)
        })
    }

    /// The members whose ranks are in a place. If that has consecutive ranks, these are `ranks`.
    pub(crate) fn part(&self, ranks: Option<Range<usize>>, is_there: impl Fn(usize) -> bool) -> Part {
        if let Some(interval) = ranks.and_then(|ranks| self.within(&ranks)) {
            return Part::Interval(interval);
        }
        Part::List((0..self.len()).filter(|&member| is_there(self.rank(member))).collect())
    }
}

/// The smallest of `len` numbers that something holds for, if it holds for all behind that one too; `len` if there is none.
pub(super) fn first_of(len: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Some members of a group, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Interval(Range<usize>),
    List(Box<[usize]>),
}

impl Part {
    pub(crate) fn len(&self) -> usize {
        match self {
            Part::Interval(members) => members.len(),
            Part::List(members) => members.len(),
        }
    }

    /// The member at a place.
    pub(crate) fn member(&self, place: usize) -> usize {
        match self {
            Part::Interval(members) => members.start + place,
            Part::List(members) => members[place],
        }
    }

    /// The place of a member.
    pub(crate) fn place(&self, member: usize) -> Option<usize> {
        match self {
            Part::Interval(members) => members.contains(&member).then(|| member - members.start),
            Part::List(members) => members.binary_search(&member).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[usize]) -> Members {
        let members = Members::of_list(list, |list| list.into());
        assert_eq!((0..members.len()).map(|member| members.rank(member)).collect::<Vec<_>>(), list);
        for rank in 0..40 {
            assert_eq!(members.member(rank), list.iter().position(|&other| other == rank), "{rank} of {list:?}");
        }
        members
    }

    #[test]
    fn equally_spaced_ranks_are_no_list() {
        for list in [&[7][..], &[0, 1, 2], &[4, 7, 10, 13], &[9, 6, 3, 0], &[5, 3]] {
            assert!(matches!(of(list), Members::Range { .. }), "{list:?}");
        }
        for list in [&[0, 1, 3][..], &[4, 2, 3], &[0, 2, 4, 5]] {
            assert!(matches!(of(list), Members::List(_)), "{list:?}");
        }
    }

    #[test]
    fn a_group_is_the_same_whichever_way_it_is_named() {
        let copy = |_: &[usize]| -> Arc<[usize]> { unreachable!("a range is not copied") };
        assert_eq!(of(&[4, 7, 10]).every(2, -2, 2, copy), of(&[10, 4]));
        assert_eq!(of(&[4, 7, 10]).every(1, 5, 1, copy), of(&[7]));
        assert_eq!(Members::all(9).every(8, -4, 3, copy), of(&[8, 4, 0]));
        assert_eq!(of(&[5, 1, 2, 9]).every(1, 2, 2, copy), of(&[1, 9]));
        assert_eq!(of(&[5, 1, 2, 9]).some(&[2, 0, 3], |list| list.into()), of(&[2, 5, 9]));
        assert_eq!(of(&[4, 7, 10]).some(&[2, 1], copy), of(&[10, 7]));
        assert_eq!(of(&[4, 7, 10]).some(&[2, 0, 1], |list| list.into()), of(&[10, 4, 7]));
        assert_eq!(Members::all(4).some(&[2, 0, 1], |list| list.into()), of(&[2, 0, 1]));
        assert_eq!(of(&[5, 1, 2, 9]).every(0, 1, 3, |list| list.into()), of(&[5, 1, 2]));
        assert_ne!(of(&[1, 2]).fingerprint(), of(&[2, 1]).fingerprint());
    }

    #[test]
    fn members_of_a_place_are_found_without_looking_at_all() {
        for list in [&[7][..], &[0, 1, 2, 3, 4, 5], &[4, 7, 10, 13], &[9, 6, 3, 0], &[0, 1, 3, 8]] {
            let members = of(list);
            for (start, end) in [(0, 0), (0, 40), (3, 5), (4, 8), (8, 20), (20, 30)] {
                let is_there = |rank: usize| (start..end).contains(&rank);
                let (found, expected) = (members.part(Some(start..end), is_there), members.part(None, is_there));
                assert_eq!(found.len(), expected.len(), "{list:?} in {start}..{end}");
                for place in 0..found.len() {
                    assert_eq!(found.member(place), expected.member(place));
                    assert_eq!(found.place(found.member(place)), Some(place));
                }
                let outside = (0..list.len()).filter(|&member| !is_there(list[member]));
                outside.for_each(|member| assert_eq!((found.place(member), expected.place(member)), (None, None)));
            }
        }
    }
}
