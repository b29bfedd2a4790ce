//! What members agree on when epochs begin and end: their claims, as one number that nothing else has.

use std::sync::Arc;

use super::sealed::{Claimed, Each, Kind};
use crate::{
    error::Result,
    sync::{EXACT_BITS, Group, Op},
};

/// Bits for how many claims a number holds.
const COUNT_BITS: u32 = 3;
/// Bits for the kind of each.
const KIND_BITS: u32 = 2;
/// Claims that a number can hold.
const MOST: usize = (1 << COUNT_BITS) - 1;

/// All claims of an epoch, where one agreement can compare them.
pub(super) struct Together {
    group: Group,
    first: Kind,
    exact: u128,
}

impl Together {
    /// None if they do not fit in one number, or are on arrays of several groups.
    pub(super) fn of(claims: &mut impl Each) -> Option<Self> {
        let (mut group, mut same, mut count, mut list) = (None, true, 0, [0; MOST]);
        let counted = claims.each(&mut |claim| {
            let (group, _) = group.get_or_insert_with(|| (claim.group().clone(), claim.kind()));
            same &= Arc::ptr_eq(&group.inner, &claim.group().inner);
            if let Some(place) = list.get_mut(count) {
                *place = number(claim);
            }
            count += 1;
            Ok(())
        });
        let (group, first) = group.filter(|_| counted.is_ok() && same)?;
        Some(Together { group, first, exact: exact(list.get(..count)?)? })
    }
}

/// Completes what this rank issued and waits until all members are in the same epochs: once, or claim by claim.
pub(super) fn agree(claims: &mut impl Each, together: &Option<Together>, op: impl Fn(Kind) -> Op) -> Result<()> {
    match together {
        Some(all) => agree_on(&all.group, op(all.first), all.exact),
        None => claims.each(&mut |claim| agree_alone(claim, op(claim.kind()))),
    }
}

/// The same of one claim.
pub(in crate::array) fn agree_alone(claim: &dyn Claimed, op: Op) -> Result<()> {
    agree_on(claim.group(), op, exact(&[number(claim)]).expect("room for one claim"))
}

fn agree_on(group: &Group, op: Op, exact: u128) -> Result<()> {
    group.fence_all(op)?;
    group.agree_exactly(op, exact)
}

/// Kind and array of a claim.
fn number(claim: &dyn Claimed) -> u128 {
    u128::from(claim.id()) << KIND_BITS | claim.kind() as u128
}

/// The numbers of at most [`MOST`] claims, and how many these are, in equal shares of the bits.
fn exact(claims: &[u128]) -> Option<u128> {
    let count = claims.len() as u32;
    let share = (EXACT_BITS - COUNT_BITS).checked_div(count)?;
    let fit = claims.iter().all(|number| number >> share == 0);
    fit.then(|| claims.iter().rev().fold(0, |all, number| all << share | number) << COUNT_BITS | u128::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_equal_claims() {
        let numbers = [0, 1, 2, 7, 8, (1 << 12) - 1];
        let mut all = vec![];
        for a in numbers {
            all.extend([vec![a], vec![a; 7]]);
            for b in numbers {
                all.extend([vec![a, b], vec![a, b, a, b], vec![a, a, a, b]]);
            }
        }
        all.sort();
        all.dedup();
        let mut exact: Vec<u128> = all.iter().map(|claims| exact(claims).unwrap()).collect();
        assert!(exact.iter().all(|number| number >> EXACT_BITS == 0));
        exact.sort();
        exact.dedup();
        assert_eq!(exact.len(), all.len());
    }

    #[test]
    fn claims_fit_or_are_refused() {
        // Any array alone, and kinds behind its number.
        assert!(exact(&[u128::from(u64::MAX) << KIND_BITS | 3]).is_some());
        assert!(exact(&[(1 << 12) - 1; 7]).is_some() && exact(&[1, 1 << 12, 1, 1, 1, 1, 1]).is_none());
        assert!(exact(&[]).is_none());
    }
}
