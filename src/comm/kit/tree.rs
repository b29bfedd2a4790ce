//! The binomial tree over numbers from 0, whose root is 0.

/// The parent and the children of a member of a tree of `members`. No member has more than log2 of `members`, rounded up.
pub(crate) fn neighbors(member: usize, members: usize) -> (Option<usize>, Vec<usize>) {
    let parent = (member > 0).then(|| member & (member - 1));
    let steps = (0..usize::BITS).map(|bit| 1 << bit).take_while(|step| member & step == 0 && member + step < members);
    (parent, steps.map(|step| member + step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_are_in_the_tree_once() {
        for members in [1, 2, 3, 7, 8, 4097] {
            let mut found = vec![0];
            for member in 0..members {
                let (parent, children) = neighbors(member, members);
                assert_eq!(parent.is_none(), member == 0);
                assert!(children.len() <= members.next_power_of_two().ilog2() as usize);
                assert!(children.iter().all(|&child| neighbors(child, members).0 == Some(member)));
                found.extend(children);
            }
            found.sort_unstable();
            assert_eq!(found, (0..members).collect::<Vec<_>>());
        }
    }
}
