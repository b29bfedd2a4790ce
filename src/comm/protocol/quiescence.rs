//! When nobody has a message on the way any more: counts go up a tree of members in waves, until two waves agree.
//!
//! A member joins a wave when it has nothing to do and all its children have: it adds what it and they have sent and handled, and passes the sums to its parent. The root
//! compares: all is quiet if as many messages had been handled in the wave before as have been sent in this one. For between the two
//! every member was at one moment past its first count and before its second, and up to there as many were handled as were sent from there
//! back: none was on the way, and nobody had anything to do. If not, the verdict sends all into another wave.
//!
//! A wave is 2 (P − 1) letters. If nothing was sent since the last verdict, one wave is enough: the wave before it was that one's last.
//!
//! # Source
//! F. Mattern, *Algorithms for distributed termination detection*, Distributed Computing 2 (1987), §5: the four counter method.

/// One member's part.
#[derive(Clone, Debug)]
pub(crate) struct Quiescence {
    me: usize,
    members: usize,
    /// Children that have reported in this wave, by their bits, and the sums of what they have sent and handled.
    reported: u64,
    sums: [u64; 2],
    /// What was handled in the wave before; at the root.
    handled: u64,
}

/// What a member does that has nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// It waits for a child.
    Awaits(usize),
    /// It reports the sums to its parent, and waits for the verdict.
    Reports(usize, [u64; 2]),
    /// The root's verdict: all is quiet, or there is another wave.
    Verdict(bool),
}

impl Quiescence {
    pub(crate) fn new(me: usize, members: usize) -> Self {
        Quiescence { me, members, reported: 0, sums: [0; 2], handled: 0 }
    }

    /// The children in a binomial tree whose root is member 0.
    pub(crate) fn children(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, members) = (self.me, self.members);
        (0..usize::BITS.min(me.trailing_zeros())).map(move |bit| me + (1 << bit)).take_while(move |&child| child < members)
    }

    fn parent(&self) -> Option<usize> {
        (self.me > 0).then(|| self.me & (self.me - 1))
    }

    /// A child has reported. False for who is none, or has reported in this wave.
    pub(crate) fn report(&mut self, child: usize, sums: [u64; 2]) -> bool {
        let Some(bit) = self.children().position(|known| known == child).filter(|bit| self.reported >> bit & 1 == 0) else {
            return false;
        };
        self.reported |= 1 << bit;
        self.sums = std::array::from_fn(|k| self.sums[k].wrapping_add(sums[k]));
        true
    }

    /// This member has nothing to do; `own` is what it has sent and handled in all.
    pub(crate) fn join(&mut self, own: [u64; 2]) -> Joined {
        if let Some((_, child)) = self.children().enumerate().find(|(bit, _)| self.reported >> bit & 1 == 0) {
            return Joined::Awaits(child);
        }
        let sums: [u64; 2] = std::array::from_fn(|k| self.sums[k].wrapping_add(own[k]));
        (self.reported, self.sums) = (0, [0; 2]);
        if let Some(parent) = self.parent() {
            return Joined::Reports(parent, sums);
        }
        let [sent, handled] = sums;
        let before = std::mem::replace(&mut self.handled, handled);
        Joined::Verdict(before == sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::protocol::simulation::{Channels, Random, SEEDS};

    enum Sent {
        /// Its handler sends up to two more, of one less each.
        Message(usize),
        Report([u64; 2]),
        Verdict(bool),
    }

    struct Member {
        tree: Quiescence,
        counts: [u64; 2],
        reported: bool,
        quiet: bool,
    }

    struct World {
        members: Vec<Member>,
        sent: Channels<Sent>,
        /// Messages that were not handled yet.
        open: usize,
    }

    impl World {
        fn send(&mut self, from: usize, to: usize, sent: Sent) {
            if let Sent::Message(_) = sent {
                self.members[from].counts[0] += 1;
                self.open += 1;
            }
            self.sent.send(from * self.members.len() + to, sent);
        }

        fn verdict(&mut self, at: usize, quiet: bool) {
            assert!(!quiet || self.open == 0, "quiet with {} messages open", self.open);
            (self.members[at].reported, self.members[at].quiet) = (false, quiet);
            for child in self.members[at].tree.children() {
                self.send(at, child, Sent::Verdict(quiet));
            }
        }

        fn handle(&mut self, random: &mut Random, (from, at): (usize, usize), sent: Sent) {
            match sent {
                Sent::Message(more) => {
                    self.open -= 1;
                    self.members[at].counts[1] += 1;
                    for _ in 0..more.min(2) {
                        let to = random.below(self.members.len());
                        self.send(at, to, Sent::Message(more - 1));
                    }
                }
                Sent::Report(sums) => assert!(self.members[at].tree.report(from, sums)),
                Sent::Verdict(quiet) => self.verdict(at, quiet),
            }
        }

        /// A member that has nothing to do joins.
        fn join(&mut self, at: usize) {
            let Member { tree, counts, reported, quiet } = &mut self.members[at];
            if *reported || *quiet {
                return;
            }
            match tree.join(*counts) {
                Joined::Awaits(_) => {}
                Joined::Reports(parent, sums) => {
                    *reported = true;
                    self.send(at, parent, Sent::Report(sums));
                }
                Joined::Verdict(quiet) => self.verdict(at, quiet),
            }
        }
    }

    #[test]
    fn quiet_is_neither_too_early_nor_never() {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let size = 1 + random.below(9);
            let new = |me| Member { tree: Quiescence::new(me, size), counts: [0; 2], reported: false, quiet: false };
            let members = (0..size).map(new).collect();
            let mut world = World { members, sent: Channels::new(size * size), open: 0 };
            // A second round finds trees that have been used.
            for _ in 0..2 {
                world.members.iter_mut().for_each(|member| member.quiet = false);
                for at in 0..size {
                    for _ in 0..random.below(4) {
                        let (to, more) = (random.below(size), random.below(4));
                        world.send(at, to, Sent::Message(more));
                    }
                }
                let mut turns = 0;
                while !world.members.iter().all(|member| member.quiet) {
                    turns += 1;
                    assert!(turns < 100_000, "seed {seed}: never quiet");
                    if random.one_in(2) {
                        world.join(random.below(size));
                    } else if let Some((channel, sent)) = world.sent.receive(&mut random) {
                        world.handle(&mut random, (channel / size, channel % size), sent);
                    }
                }
            }
        }
    }

    #[test]
    fn where_nothing_was_sent_a_wave_is_enough() {
        for members in 1..20 {
            let mut all: Vec<_> = (0..members).map(|me| Quiescence::new(me, members)).collect();
            for me in (1..members).rev() {
                let Joined::Reports(parent, sums) = all[me].join([0; 2]) else { panic!("{me} of {members}") };
                assert!(all[parent].report(me, sums) && !all[me].report(parent, sums));
            }
            assert_eq!(all[0].join([0; 2]), Joined::Verdict(true));
        }
    }
}
