//! A bounded queue with many writers and one reader, in shared memory.
//!
//! It is Vyukov's ring, with laps counted from zero so that zeroed memory is an empty ring. Slot `k` in lap `l` is free while its
//! `turn` is `2l`, full at `2l + 1`. A writer takes a ticket by compare-and-swap on `tail`, fills the slot and raises `turn`. The
//! reader empties it and raises `turn` to the next lap's.
//!
//! A writer that dies between ticket and slot blocks the ring, and ends the job anyhow.

use super::PACKET;
use crate::memory::atomics::{AtomicU32, AtomicU64, Ordering};

/// Slots of a ring: messages from all other ranks that can wait at one before they must poll. Few in the models.
const SLOTS: u64 = if cfg!(loom) { 2 } else { 32 };

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Words of a slot; the models send two.
const SLOT_WORDS: usize = if cfg!(loom) { 2 } else { PACKET / WORD };

#[repr(C, align(128))]
pub(super) struct Inbox {
    tail: AtomicU64,
    head: Head,
    slots: [Slot; SLOTS as usize],
}

/// Written by the reader only, so in lines of its own: writers that take tickets would have to fetch it back each time.
#[repr(C, align(128))]
struct Head(AtomicU64);

#[repr(C, align(128))]
struct Slot {
    turn: AtomicU64,
    from: AtomicU32,
    len: AtomicU32,
    words: [AtomicU64; SLOT_WORDS],
}

/// The inbox has no room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Inbox {
    /// Appends a message.
    pub(super) fn push(&self, from: usize, message: &[u8]) -> Result<(), Full> {
        assert!(message.len() <= PACKET, "a message of {} bytes; at most {PACKET} fit", message.len());
        let mut ticket = self.tail.load(Ordering::Relaxed);
        let slot = loop {
            let slot = &self.slots[(ticket % SLOTS) as usize];
            let free = 2 * (ticket / SLOTS);
            // Acquire pairs with the reader's Release: its reads of the old message are over.
            let turn = slot.turn.load(Ordering::Acquire);
            if turn == free {
                match self.tail.compare_exchange_weak(ticket, ticket + 1, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => break slot,
                    Err(now) => ticket = now,
                }
            } else {
                let now = self.tail.load(Ordering::Relaxed);
                if now == ticket {
                    return Err(Full);
                }
                ticket = now;
            }
        };
        slot.from.store(from as u32, Ordering::Relaxed);
        slot.len.store(message.len() as u32, Ordering::Relaxed);
        for (to, bytes) in slot.words.iter().zip(message.chunks(WORD)) {
            let mut word = [0; WORD];
            word[..bytes.len()].copy_from_slice(bytes);
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        // Release pairs with the reader's Acquire.
        slot.turn.store(2 * (ticket / SLOTS) + 1, Ordering::Release);
        Ok(())
    }

    /// Takes the oldest message. One reader at a time: the caller holds the rank's polling lock.
    pub(super) fn pop(&self) -> Option<(usize, [u8; PACKET], usize)> {
        let head = self.head.0.load(Ordering::Relaxed);
        let slot = &self.slots[(head % SLOTS) as usize];
        if slot.turn.load(Ordering::Acquire) != 2 * (head / SLOTS) + 1 {
            return None;
        }
        let mut bytes = [0; PACKET];
        let len = (slot.len.load(Ordering::Relaxed) as usize).min(PACKET);
        for (to, word) in bytes.chunks_exact_mut(WORD).zip(&slot.words[..len.div_ceil(WORD).min(SLOT_WORDS)]) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        let from = slot.from.load(Ordering::Relaxed) as usize;
        slot.turn.store(2 * (head / SLOTS) + 2, Ordering::Release);
        self.head.0.store(head + 1, Ordering::Relaxed);
        Some((from, bytes, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Box<Inbox> {
        let zeros = vec![[0_u128; 8]; size_of::<Inbox>() / 128];
        assert_eq!(zeros.as_ptr() as usize % 16, 0);
        let slot = || Slot {
            turn: AtomicU64::new(0),
            from: AtomicU32::new(0),
            len: AtomicU32::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        Box::new(Inbox { tail: AtomicU64::new(0), head: Head(AtomicU64::new(0)), slots: std::array::from_fn(|_| slot()) })
    }

    #[test]
    fn messages_come_out_in_order_and_a_full_ring_says_so() {
        let inbox = empty();
        for lap in 0..3_u8 {
            for k in 0..SLOTS as u8 {
                inbox.push(7, &[lap, k]).unwrap();
            }
            assert_eq!(inbox.push(7, &[0]), Err(Full));
            for k in 0..SLOTS as u8 {
                let (from, bytes, len) = inbox.pop().unwrap();
                assert_eq!((from, &bytes[..len]), (7, &[lap, k][..]));
            }
            assert!(inbox.pop().is_none());
        }
    }

    #[test]
    fn many_writers_lose_nothing() {
        let inbox = empty();
        std::thread::scope(|scope| {
            for writer in 0..3_usize {
                let inbox = &inbox;
                scope.spawn(move || {
                    for k in 0..2000_u32 {
                        while inbox.push(writer, &k.to_le_bytes()).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0_u32; 3];
            while next.iter().sum::<u32>() < 6000 {
                let Some((from, bytes, len)) = inbox.pop() else {
                    std::thread::yield_now();
                    continue;
                };
                assert_eq!(bytes[..len], next[from].to_le_bytes());
                next[from] += 1;
            }
        });
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::{sync::Arc, thread};

    fn empty() -> Inbox {
        let slot = || Slot {
            turn: AtomicU64::new(0),
            from: AtomicU32::new(0),
            len: AtomicU32::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        Inbox { tail: AtomicU64::new(0), head: Head(AtomicU64::new(0)), slots: std::array::from_fn(|_| slot()) }
    }

    /// Two words.
    fn message(writer: usize, number: u8) -> [u8; 2 * WORD] {
        let mut bytes = [number; 2 * WORD];
        bytes[..WORD].fill(0x10 * (writer as u8 + 1));
        bytes
    }

    /// Checks a message that was taken: whole, and the next of its writer.
    fn check(taken: &mut [u8], (from, bytes, len): (usize, [u8; PACKET], usize)) {
        taken[from] += 1;
        assert_eq!(bytes[..len], message(from, taken[from]));
    }

    fn write(inbox: &Inbox, writer: usize, tries: u8) -> u8 {
        let mut sent = 0;
        for _ in 0..tries {
            match inbox.push(writer, &message(writer, sent + 1)) {
                Ok(()) => sent += 1,
                Err(Full) => thread::yield_now(),
            }
        }
        sent
    }

    fn read(inbox: &Inbox, writers: usize, takes: usize) -> Vec<u8> {
        let mut taken = vec![0; writers];
        for _ in 0..takes {
            match inbox.pop() {
                Some(message) => check(&mut taken, message),
                None => thread::yield_now(),
            }
        }
        taken
    }

    /// Each writer tries as often to send as `tries` says, the reader tries `takes` times to take. The rest is taken in the end.
    ///
    /// No thread tries without end: two threads that wait in turns would keep the checker from the one they wait for. The thread
    /// that made the ring is not the reader: once it has yielded, the checker no longer shows it the zeros that it wrote.
    fn model(tries: &'static [u8], takes: usize) {
        loom::model(move || {
            let inbox = Arc::new(empty());
            let spawn = |body: Box<dyn FnOnce(&Inbox) -> Vec<u8>>| {
                let inbox = inbox.clone();
                thread::spawn(move || body(&inbox))
            };
            let reader = spawn(Box::new(move |inbox| read(inbox, tries.len(), takes)));
            let others: Vec<_> =
                (1..tries.len()).map(|k| spawn(Box::new(move |inbox| vec![write(inbox, k, tries[k])]))).collect();
            let mut sent = vec![write(&inbox, 0, tries[0])];
            sent.extend(others.into_iter().flat_map(|other| other.join().unwrap()));
            let mut taken = reader.join().unwrap();
            while let Some(message) = inbox.pop() {
                check(&mut taken, message);
            }
            assert_eq!(taken, sent);
        });
    }

    #[test]
    fn one_writer_goes_round_the_ring() {
        model(&[5], 5);
    }

    #[test]
    fn two_writers_share_the_ring() {
        model(&[1, 1], 2);
    }

    #[test]
    fn two_writers_go_round_the_ring() {
        model(&[2, 2], 2);
    }
}
