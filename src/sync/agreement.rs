//! The agreement: a barrier that carries a few words. Every collective starts with one.
//!
//! The *exchanging* members use recursive doubling: in round k, number i exchanges a line with number i xor 2^k, and both combine their
//! words. Members beyond the largest power of two fold in before and receive the result after.
//!
//! If all members are on one node, or each is on a separate node, all exchange. Otherwise the leaders of the nodes do, so only they send
//! messages between nodes. Each leader first gathers the words of its node along a binomial tree. At the end it publishes the result and
//! wakes its node with one call.
//!
//! If ranks outnumber cores, a counter in the leader's memory (a *meeting*) replaces the tree, and on a single node the rounds too: these
//! would make every rank sleep log p times.
//!
//! The words are the minimum and the maximum of the fingerprints of the call (operation, array, shape, type, root), and a union, a sum
//! and a maximum of the caller's values. If fingerprints differ, the call fails on all members. An agreement that fails ends its group.

use std::sync::atomic::Ordering;

use super::{
    Group, Op, call,
    members::Part,
    scratch::{Place, await_word, post, rounds},
    whereabouts,
};
use crate::{
    comm::engine::{Label, Waiter},
    error::{Error, Result},
    memory::line::{Combine, WORDS},
};

const HOW: [Combine; WORDS] = [Combine::Max, Combine::Max, Combine::Or, Combine::Sum, Combine::Max];

/// Bits of a fingerprint beside the operation.
const OP_SHIFT: u32 = 56;
/// Bits of an exact one.
pub(crate) const EXACT_BITS: u32 = OP_SHIFT + 32;

/// The combined words of all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) sum: u64,
    pub(crate) union: u64,
    pub(crate) max: u64,
}

struct InCollective<'a> {
    group: &'a Group,
    op: Op,
    /// The rank whose line is waited for; none in a meeting, where all of the node are.
    from: Option<usize>,
}

impl Waiter for InCollective<'_> {
    fn operation(&self) -> String {
        call::operation(self.group.inner.engine().conduit()).unwrap_or_else(|| self.op.name().into())
    }

    fn missing(&self) -> String {
        self.group.missing(self.from)
    }

    fn awaits(&self) -> Option<usize> {
        // Who has entered comes to a meeting without waiting for anybody.
        self.from.or_else(|| self.group.one_late())
    }

    fn is_last(&self) -> bool {
        self.op == Op::End
    }

    fn speaks(&self) -> bool {
        self.group.is_first_here()
    }

    fn place(&self, rank: usize) -> String {
        whereabouts::place(self.group.inner.engine().conduit(), rank)
    }

    fn hopeless(&self) -> Option<Error> {
        // In the world's group the end is an agreement like any other: a member that skipped this one is found by its fingerprint.
        if self.group.inner.is_world() {
            return None;
        }
        // A member that was there may have ended. One that is waited for was not, since all that it sent was handled.
        let conduit = self.group.inner.engine().conduit();
        let late = self.group.late().filter(|&rank| self.from.is_none() && conduit.mapped_segment(rank).is_some());
        self.group.without(self.from.into_iter().chain(late), || self.operation())
    }
}

impl Group {
    /// Waits for all members and checks that they are in the same call.
    #[inline]
    pub(crate) fn agree(&self, op: Op, fingerprint: u64) -> Result<()> {
        self.agree_values(op, fingerprint, 0, 0, 0).map(|_| ())
    }

    /// As [`agree`](Self::agree), where no two calls may have the same fingerprint: it has [`EXACT_BITS`] bits.
    pub(crate) fn agree_exactly(&self, op: Op, fingerprint: u128) -> Result<()> {
        let both = both_ways((fingerprint >> OP_SHIFT) as u32);
        let _entered = self.enter(op)?;
        let agreed = self.agree_entered(op, fingerprint as u64, 0, both, 0)?;
        if agreed.union == both { Ok(()) } else { Err(self.disagreement(op)) }
    }

    /// As [`agree`](Self::agree), with words that are combined on the way.
    pub(crate) fn agree_values(&self, op: Op, fingerprint: u64, sum: u64, union: u64, max: u64) -> Result<Agreed> {
        let _entered = self.enter(op)?;
        self.agree_entered(op, fingerprint, sum, union, max)
    }

    /// The same for a member that has entered already.
    pub(super) fn agree_entered(&self, op: Op, fingerprint: u64, sum: u64, union: u64, max: u64) -> Result<Agreed> {
        let exact = u64::from(op as u8) << OP_SHIFT | fingerprint & (u64::MAX >> (64 - OP_SHIFT));
        let mine = [!exact, exact, union, sum, max];
        let inner = &*self.inner;
        let sequence = inner.sequence.load(Ordering::Relaxed).wrapping_add(1);
        inner.sequence.store(sequence, Ordering::Relaxed);
        let all = if inner.size() == 1 {
            Ok(mine)
        } else if let Some(here) = inner.nodes.led() {
            self.by_leader(here, op, mine, sequence)
        } else if inner.by_counter && inner.mapped {
            self.meet(op, mine, sequence)
        } else {
            self.rounds(op, mine, sequence)
        };
        // A member that left early would be one agreement ahead of the others: the group is over for it.
        let all = all.map_err(|error| self.fail(error))?;
        if all[0] != mine[0] || all[1] != mine[1] {
            return Err(self.disagreement(op));
        }
        Ok(Agreed { union: all[2], sum: all[3], max: all[4] })
    }

    /// Sends a line to a member.
    #[inline]
    fn send_line(&self, op: Op, member: usize, index: usize, words: [u64; WORDS], sequence: u32) -> Result<()> {
        let inner = &*self.inner;
        let to = Place { member, rank: inner.rank_of(member), offset: inner.scratch.line(sequence, index) };
        let label = || Label::new("(none)", op.name());
        post(inner.engine(), &inner.segments, to, words, sequence, label)
    }

    /// Waits for the line that a member sends.
    #[inline]
    fn receive_line(&self, op: Op, member: usize, index: usize, sequence: u32) -> Result<[u64; WORDS]> {
        let inner = &*self.inner;
        let waiter = InCollective { group: self, op, from: Some(inner.rank_of(member)) };
        let line = inner.segments.own_line(inner.engine().conduit().segment(), inner.scratch.line(sequence, index));
        await_word(inner.engine(), &line.word, sequence, &waiter)?;
        Ok(line.read())
    }

    /// Recursive doubling among those who exchange.
    #[inline]
    fn rounds(&self, op: Op, mut words: [u64; WORDS], sequence: u32) -> Result<[u64; WORDS]> {
        let nodes = &self.inner.nodes;
        let me = nodes.exchanger;
        let rounds = rounds(nodes.exchangers);
        let core = 1 << rounds;
        let extra = nodes.exchangers - core;
        let (fold, out) = (rounds, rounds + 1);
        if me >= core {
            self.send_line(op, nodes.partner(rounds), fold, words, sequence)?;
            return self.receive_line(op, nodes.partner(rounds), out, sequence);
        }
        if me < extra {
            words = combine(words, self.receive_line(op, nodes.partner(rounds), fold, sequence)?);
        }
        for round in 0..rounds {
            self.send_line(op, nodes.partner(round), round, words, sequence)?;
            words = combine(words, self.receive_line(op, nodes.partner(round), round, sequence)?);
        }
        if me < extra {
            self.send_line(op, nodes.partner(rounds), out, words, sequence)?;
        }
        Ok(words)
    }

    /// The leader of the members `here` of a node exchanges for them.
    fn by_leader(&self, here: &Part, op: Op, words: [u64; WORDS], sequence: u32) -> Result<[u64; WORDS]> {
        let inner = &*self.inner;
        let offset = inner.scratch.meeting(sequence);
        let meeting = inner.segments.meeting(here.member(0), offset).expect("the members of a node are mapped");
        let gathered = if inner.by_counter {
            if meeting.arrive(words, HOW, here.len()) {
                meeting.full.store(sequence);
                meeting.full.wake();
            }
            if inner.nodes.position == 0 {
                await_word(inner.engine(), &meeting.full, sequence, &InCollective { group: self, op, from: None })?;
                Some(meeting.take())
            } else {
                None
            }
        } else {
            self.gather_here(here, op, words, sequence)?
        };
        if let Some(words) = gathered {
            let all = self.rounds(op, words, sequence)?;
            meeting.publish(all, sequence);
            return Ok(all);
        }
        let leader = inner.rank_of(here.member(0));
        await_word(inner.engine(), &meeting.phase, sequence, &InCollective { group: self, op, from: Some(leader) })?;
        Ok(meeting.result())
    }

    /// What all members of a node bring, at its leader; the others get nothing. A binomial tree.
    fn gather_here(&self, here: &Part, op: Op, mut words: [u64; WORDS], sequence: u32) -> Result<Option<[u64; WORDS]>> {
        let me = self.inner.nodes.position;
        for level in (0..).take_while(|level| 1 << level < here.len()) {
            let (bit, index) = (1 << level, self.inner.scratch.level(level));
            if me & bit != 0 {
                self.send_line(op, here.member(me - bit), index, words, sequence)?;
                return Ok(None);
            }
            if me + bit < here.len() {
                words = combine(words, self.receive_line(op, here.member(me + bit), index, sequence)?);
            }
        }
        Ok(Some(words))
    }

    fn meet(&self, op: Op, words: [u64; WORDS], sequence: u32) -> Result<[u64; WORDS]> {
        let inner = &*self.inner;
        let meeting =
            inner.segments.meeting(0, inner.scratch.meeting(sequence)).expect("met by counter only where all is mapped");
        if meeting.arrive(words, HOW, inner.size()) {
            meeting.publish(meeting.take(), sequence);
        } else {
            await_word(inner.engine(), &meeting.phase, sequence, &InCollective { group: self, op, from: None })?;
        }
        Ok(meeting.result())
    }

    #[cold]
    fn disagreement(&self, op: Op) -> Error {
        let rank = self.inner.engine().rank();
        self.fail(Error::Disagreement { rank, operation: op.name().into(), seen: self.whereabouts() })
    }
}

/// Bits and their complement, for the union of all members: if a bit differs, the union has it in both halves, and every member sees that.
pub(crate) fn both_ways(bits: u32) -> u64 {
    u64::from(bits) | u64::from(!bits) << 32
}

fn combine(a: [u64; WORDS], b: [u64; WORDS]) -> [u64; WORDS] {
    std::array::from_fn(|k| match HOW[k] {
        Combine::Max => a[k].max(b[k]),
        Combine::Or => a[k] | b[k],
        Combine::Sum => a[k].wrapping_add(b[k]),
    })
}
