//! A line in a segment that one rank writes and another reads: a word to wait on and a few words beside it.

use super::{
    atomics::{AtomicU32, AtomicU64, Ordering},
    word::WaitWord,
};

/// Words that travel with a line.
pub(crate) const WORDS: usize = 5;

/// One writer at a time; the word is raised last. Zeros are the initial state.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Line {
    pub(crate) word: WaitWord,
    words: [AtomicU64; WORDS],
}

/// What goes over the wire in front of the word: the words as bytes.
pub(crate) const WORDS_OFFSET: usize = 8;

impl Line {
    /// The words; read them after the word was seen.
    pub(crate) fn read(&self) -> [u64; WORDS] {
        self.words.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// Writes the words, then raises the word and wakes who waits.
    #[inline]
    pub(crate) fn post(&self, words: [u64; WORDS], sequence: u32) {
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.word.store(sequence);
        self.word.wake();
    }
}

/// Where members meet when they outnumber the cores: each adds what it brings, the last one publishes the result. And where the
/// members of a node wait for what their leader brings back from the other nodes.
///
/// All combinations have zero as their neutral element, so that fresh memory is ready. Two of these serve alternating
/// agreements, and the one who takes what all brought clears it for the next but one.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Meeting {
    /// Raised when the result stands.
    pub(crate) phase: WaitWord,
    /// Raised when all have arrived, where somebody waits for that.
    pub(crate) full: WaitWord,
    arrived: AtomicU32,
    gathered: [AtomicU64; WORDS],
    result: [AtomicU64; WORDS],
}

/// How a word of a meeting is combined.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Combine {
    Max,
    Or,
    Sum,
}

impl Meeting {
    /// Adds a member's words; true for the last of `members`, who must then publish.
    pub(crate) fn arrive(&self, words: [u64; WORDS], how: [Combine; WORDS], members: usize) -> bool {
        for ((to, word), how) in self.gathered.iter().zip(words).zip(how) {
            match how {
                Combine::Max => to.fetch_max(word, Ordering::Relaxed),
                Combine::Or => to.fetch_or(word, Ordering::Relaxed),
                Combine::Sum => to.fetch_add(word, Ordering::Relaxed),
            };
        }
        // AcqRel: the last one sees what all others gathered and wrote before.
        self.arrived.fetch_add(1, Ordering::AcqRel) as usize + 1 == members
    }

    /// What all brought, after the last one arrived; clears it.
    pub(crate) fn take(&self) -> [u64; WORDS] {
        self.arrived.store(0, Ordering::Relaxed);
        self.gathered.each_ref().map(|word| word.swap(0, Ordering::Relaxed))
    }

    /// Publishes the result and wakes everyone at once.
    pub(crate) fn publish(&self, result: [u64; WORDS], sequence: u32) {
        for (to, word) in self.result.iter().zip(result) {
            to.store(word, Ordering::Relaxed);
        }
        self.phase.store(sequence);
        self.phase.wake();
    }

    /// The published words.
    pub(crate) fn result(&self) -> [u64; WORDS] {
        self.result.each_ref().map(|word| word.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const HOW: [Combine; WORDS] = [Combine::Max, Combine::Or, Combine::Sum, Combine::Max, Combine::Or];

    #[test]
    fn a_line_holds_what_was_posted() {
        let line = Line::default();
        assert_eq!((line.word.load(), line.read()), (0, [0; WORDS]));
        line.post([1, 2, 3, 4, u64::MAX], 9);
        assert_eq!((line.word.load(), line.read()), (9, [1, 2, 3, 4, u64::MAX]));
        let offset = std::mem::offset_of!(Line, words);
        assert_eq!((offset, size_of::<Line>()), (WORDS_OFFSET, align_of::<Line>()));
    }

    #[test]
    fn a_meeting_combines_and_is_ready_for_the_next_but_one() {
        let meeting = Meeting::default();
        for sequence in 1..4 {
            assert!(!meeting.arrive([5, 0b01, 5, 1, 0b100], HOW, 3));
            assert!(!meeting.arrive([9, 0b01, 7, 0, 0b010], HOW, 3));
            assert!(meeting.arrive([2, 0b10, u64::MAX, 0, 0], HOW, 3));
            let all = meeting.take();
            assert_eq!(all, [9, 0b11, 11, 1, 0b110]);
            meeting.publish(all, sequence);
            assert_eq!((meeting.phase.load(), meeting.full.load(), meeting.result()), (sequence, 0, all));
            assert_eq!(meeting.take(), [0; WORDS]);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use std::time::Duration;

    use super::*;
    use loom::{sync::Arc, thread};

    const HOW: [Combine; WORDS] = [Combine::Max, Combine::Or, Combine::Sum, Combine::Sum, Combine::Max];

    /// What members share: both sets of both kinds, and a word of each that is no part of the agreement.
    #[derive(Default)]
    struct Shared {
        lines: [[Line; 2]; 2],
        meetings: [Meeting; 2],
        beside: [AtomicU64; 3],
    }

    fn until(word: &WaitWord, sequence: u32) {
        while word.load() != sequence {
            word.sleep(0, Duration::ZERO);
        }
    }

    /// Different for every member and agreement.
    fn brings(me: usize, sequence: u32) -> [u64; WORDS] {
        let own = u64::from(sequence) << 8 | me as u64;
        [own, 1 << (8 * u64::from(sequence) + me as u64), own, 1, !own]
    }

    fn exchange(shared: &Shared, me: usize, last: u32) {
        for sequence in 1..=last {
            let set = sequence as usize % 2;
            shared.beside[me].store(u64::from(sequence), Ordering::Relaxed);
            shared.lines[1 - me][set].post(brings(me, sequence), sequence);
            let line = &shared.lines[me][set];
            until(&line.word, sequence);
            assert_eq!(line.read(), brings(1 - me, sequence));
            assert!(shared.beside[1 - me].load(Ordering::Relaxed) >= u64::from(sequence));
        }
    }

    fn meet(shared: &Shared, me: usize, members: usize, last: u32) {
        for sequence in 1..=last {
            let all = (0..members).map(|member| brings(member, sequence));
            let agreed = all.fold([0; WORDS], |a, b| [a[0].max(b[0]), a[1] | b[1], a[2] + b[2], a[3] + b[3], a[4].max(b[4])]);
            let meeting = &shared.meetings[sequence as usize % 2];
            shared.beside[me].store(u64::from(sequence), Ordering::Relaxed);
            if meeting.arrive(brings(me, sequence), HOW, members) {
                meeting.publish(meeting.take(), sequence);
            } else {
                if members > 2 {
                    // Two that wait in turns would keep the checker from the third: look once.
                    thread::yield_now();
                    if meeting.phase.load() != sequence {
                        return;
                    }
                }
                until(&meeting.phase, sequence);
            }
            assert_eq!(meeting.result(), agreed);
            for beside in &shared.beside[..members] {
                assert!(beside.load(Ordering::Relaxed) >= u64::from(sequence));
            }
        }
    }

    fn model(members: usize, body: fn(&Shared, usize)) {
        loom::model(move || {
            let shared = Arc::new(Shared::default());
            let others: Vec<_> = (1..members)
                .map(|me| {
                    let shared = shared.clone();
                    thread::spawn(move || body(&shared, me))
                })
                .collect();
            body(&shared, 0);
            others.into_iter().for_each(|other| other.join().unwrap());
        });
    }

    #[test]
    fn two_members_exchange_lines_of_alternating_sets() {
        model(2, |shared, me| exchange(shared, me, 3));
    }

    #[test]
    fn two_members_meet_in_alternating_sets() {
        model(2, |shared, me| meet(shared, me, 2, 3));
    }

    #[test]
    fn three_members_meet() {
        model(3, |shared, me| meet(shared, me, 3, 1));
    }
}
