//! Arrays of which only some members of the group own parts.
//!
//! The arithmetic uses positions in the list of *owners* as member numbers. The last step maps a position to a member; a query about a
//! member first finds its position. A list of consecutive members needs no table.
//!
//! # Source
//! Global Arrays: `GA_Set_restricted`, `GA_Set_restricted_range`.

/// The members that may own something, in the order of their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// Neighbours, ascending.
    Range {
        first: usize,
        len: usize,
    },
    List(Vec<usize>),
}

impl Owners {
    #[inline]
    pub(super) fn member(&self, place: usize) -> usize {
        match self {
            Owners::Range { first, .. } => first + place,
            Owners::List(list) => list[place],
        }
    }

    pub(super) fn place_of(&self, member: usize) -> Option<usize> {
        match self {
            Owners::Range { first, len } => member.checked_sub(*first).filter(|place| place < len),
            Owners::List(list) => list.iter().position(|&owner| owner == member),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Owners::Range { len, .. } => *len,
            Owners::List(list) => list.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|place| self.member(place))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Dim;

    use crate::distribution::{Distribution, DistributionError, Order};

    #[test]
    fn owners_take_the_places_of_members() {
        let plain = Distribution::block(&Dim([12]), 3, None, Order::RowMajor).unwrap();
        let list = plain.clone().restricted(&[4, 0, 2], 6).unwrap();
        assert_eq!([0, 4, 8].map(|i| list.locate(&Dim([i])).member), [4, 0, 2]);
        assert_eq!((0..6).map(|member| list.local_len(member)).collect::<Vec<_>>(), [4, 0, 4, 0, 4, 0]);
        let twice = list.clone().restricted(&[6, 5, 4, 3, 2, 1], 7).unwrap();
        assert_eq!([0, 4, 8].map(|i| twice.locate(&Dim([i])).member), [2, 6, 4]);
        let range = plain.clone().restricted(&[3, 4, 5], 6).unwrap();
        assert_eq!(range.owners().map(Iterator::collect), Some(vec![3, 4, 5]));
        let first = plain.clone().restricted(&[0, 1, 2], 6).unwrap();
        assert!(first.owners().is_none() && first.members() == 6 && first.local_len(5) == 0);
        let prints = [&plain, &list, &twice, &range, &first].map(Distribution::fingerprint);
        assert!((0..5).all(|i| (0..i).all(|j| prints[i] != prints[j])));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let plain = Distribution::block(&Dim([12]), 3, None, Order::RowMajor).unwrap();
        let made = |owners: &[usize]| plain.clone().restricted(owners, 4);
        assert_eq!(made(&[0, 1, 4]), Err(DistributionError::NoSuchOwner { owner: 4, members: 4 }));
        assert_eq!(made(&[2, 0, 2]), Err(DistributionError::OwnerTwice { owner: 2 }));
        assert_eq!(made(&[0, 1]), Err(DistributionError::GridTooLarge { grid: vec![3], members: 2 }));
    }
}
