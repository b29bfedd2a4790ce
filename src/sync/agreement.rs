//! The barrier that carries a few words.
//!
//! Recursive doubling among the largest power of two of the members: in round k, member i exchanges a line with member i xor 2^k
//! and both combine. Members beyond fold in before and are told after. Where members outnumber cores, a meeting in member 0's
//! memory with one wake-all takes its place: a barrier by rounds would need log p sleeps of everyone.
//!
//! The words: minimum and maximum of the fingerprints (by the maximum of the complement), a union, a sum and a maximum of what the
//! caller brings. For epochs the fingerprint is the call itself, not a hash of it.

use std::sync::atomic::Ordering;

use super::{
    Group, Op,
    scratch::{Place, await_word, post},
    whereabouts,
};
use crate::{
    comm::{
        engine::{Label, Waiter},
        lasting::one_of,
    },
    error::{Error, Result},
    memory::line::{Combine, WORDS},
};

const HOW: [Combine; WORDS] = [Combine::Max, Combine::Max, Combine::Or, Combine::Sum, Combine::Max];

/// What the members brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) sum: u64,
    pub(crate) union: u64,
    pub(crate) max: u64,
}

struct InCollective<'a> {
    group: &'a Group,
    op: Op,
    /// The rank whose line is waited for; none in a meeting, where all are.
    from: Option<usize>,
}

impl Waiter for InCollective<'_> {
    fn operation(&self) -> String {
        self.op.name().into()
    }

    fn missing(&self) -> String {
        self.group.missing(self.from)
    }

    fn awaits(&self) -> Option<usize> {
        // Who has entered comes to a meeting without waiting for anybody.
        self.from.or_else(|| one_of(self.group.inner.engine().conduit(), self.group.late()))
    }

    fn speaks(&self) -> bool {
        self.group.is_first_here()
    }

    fn place(&self, rank: usize) -> String {
        whereabouts::place(self.group.inner.engine().conduit(), rank)
    }

    fn hopeless(&self) -> Option<Error> {
        // In the world's group the end is an agreement like any other: a member that skipped this one is found by its fingerprint.
        if self.group.inner.is_world() { None } else { self.group.without_a_member(|| self.operation()) }
    }
}

impl Group {
    /// Waits for all members and makes sure that they are in the same call.
    #[inline]
    pub(crate) fn agree(&self, op: Op, fingerprint: u64) -> Result<()> {
        self.agree_values(op, fingerprint, 0, 0, 0).map(|_| ())
    }

    /// As [`agree`](Self::agree), with words that are combined on the way.
    pub(crate) fn agree_values(&self, op: Op, fingerprint: u64, sum: u64, union: u64, max: u64) -> Result<Agreed> {
        let _entered = self.enter(op)?;
        self.agree_entered(op, fingerprint, sum, union, max)
    }

    /// The same for who has entered already.
    pub(super) fn agree_entered(&self, op: Op, fingerprint: u64, sum: u64, union: u64, max: u64) -> Result<Agreed> {
        let exact = u64::from(op as u8) << 56 | fingerprint & (u64::MAX >> 8);
        let mine = [!exact, exact, union, sum, max];
        let inner = &*self.inner;
        let sequence = inner.sequence.load(Ordering::Relaxed).wrapping_add(1);
        inner.sequence.store(sequence, Ordering::Relaxed);
        let all = if inner.size() == 1 {
            mine
        } else if inner.by_counter {
            self.meet(op, mine, sequence).map_err(|error| self.fail(error))?
        } else {
            // A member that left early would be one agreement ahead of the others: the group is over for it.
            self.rounds(op, mine, sequence).map_err(|error| self.fail(error))?
        };
        if all[0] != mine[0] || all[1] != mine[1] {
            return Err(self.disagreement(op));
        }
        Ok(Agreed { union: all[2], sum: all[3], max: all[4] })
    }

    #[inline]
    fn rounds(&self, op: Op, mut words: [u64; WORDS], sequence: u32) -> Result<[u64; WORDS]> {
        let inner = &*self.inner;
        let (me, engine) = (inner.me(), inner.engine());
        let rounds = inner.scratch.rounds();
        let core = 1 << rounds;
        let extra = inner.size() - core;
        let (fold, out) = (rounds, rounds + 1);
        let label = || Label { array: "(none)".into(), operation: op.name() };
        let send = |member: usize, index: usize, words: [u64; WORDS]| {
            let to = Place { member, rank: inner.rank_of(member), offset: inner.scratch.line(sequence, index) };
            post(engine, &inner.segments, to, words, sequence, label)
        };
        let receive = |member: usize, index: usize| -> Result<[u64; WORDS]> {
            let waiter = InCollective { group: self, op, from: Some(inner.rank_of(member)) };
            let line = inner.segments.own_line(engine.conduit().segment(), inner.scratch.line(sequence, index));
            await_word(engine, &line.word, sequence, &waiter)?;
            Ok(line.read())
        };
        if me >= core {
            send(me - core, fold, words)?;
            return receive(me - core, out);
        }
        if me < extra {
            words = combine(words, receive(me + core, fold)?);
        }
        for round in 0..rounds {
            send(me ^ 1 << round, round, words)?;
            words = combine(words, receive(me ^ 1 << round, round)?);
        }
        if me < extra {
            send(me + core, out, words)?;
        }
        Ok(words)
    }

    fn meet(&self, op: Op, words: [u64; WORDS], sequence: u32) -> Result<[u64; WORDS]> {
        let inner = &*self.inner;
        let meeting =
            inner.segments.meeting(0, inner.scratch.meeting(sequence)).expect("met by counter only where all is mapped");
        if meeting.arrive(words, HOW, inner.size()) {
            meeting.publish(sequence);
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

fn combine(a: [u64; WORDS], b: [u64; WORDS]) -> [u64; WORDS] {
    std::array::from_fn(|k| match HOW[k] {
        Combine::Max => a[k].max(b[k]),
        Combine::Or => a[k] | b[k],
        Combine::Sum => a[k].wrapping_add(b[k]),
    })
}
