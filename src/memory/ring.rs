//! A ring of letters in a segment, with many writers and one reader.
//!
//! ```text
//!  | tail | head, held | slot 0: stamp, words | slot 1 | ...       each on lines of its own
//! ```
//!
//! Positions count slots and never come round. A letter takes the next slots, as many as it needs. A writer reserves them by one compare
//! and swap on `tail`, fills them, and stamps the first one with its lap. The reader waits on the stamp of the slot at its position, so it needs no other
//! bell. It frees slots by `head`, and writers look at that only when what they saw of it says that the ring is full: `head` and
//! `tail` stay with those who write them.
//!
//! The stamp of a slot that is not a letter's first is of an earlier lap or zero, never what the reader waits for. So nothing is reset.
//!
//! A processor that appends for a rank of another machine keeps the letter while the ring is full, and `held` counts such letters: the reader
//! knows that more is to come. Such a letter comes before those of writers that have to look at `head`. A reader that leaves closes the ring:
//! there is always room then, and it waits until no letter is held. What comes later goes into slots that nobody reads.
//!
//! A writer that dies between reservation and stamp blocks the ring, and ends the job anyhow.

use super::{
    atomics::{AtomicU64, Ordering, fence},
    word::WaitWord,
};

/// Words of a slot beside its stamp. Few in the models.
const WORDS: usize = if cfg!(loom) { 2 } else { 15 };
/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// The most words of a letter that are not payload: all are in the first slot, behind the length.
pub(crate) const MOST_WORDS: usize = WORDS - 1;

/// Where the parts of a ring are, from its beginning.
pub(crate) const TAIL: usize = 0;
pub(crate) const HEAD: usize = size_of::<End>();
pub(crate) const SLOTS: usize = 2 * size_of::<End>();
/// Bytes of a slot, and of its stamp, which comes first.
pub(crate) const SLOT: usize = size_of::<Slot>();
pub(crate) const STAMP: usize = size_of::<WaitWord>();

/// One end of a ring: the next position, and letters that wait before the tail for room.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(super) struct End {
    position: AtomicU64,
    held: AtomicU64,
}

/// The reader's position in a closed ring, in which there is always room.
const CLOSED: u64 = 1 << 63;

#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(super) struct Slot {
    stamp: WaitWord,
    words: [AtomicU64; WORDS],
}

/// A letter to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter<'a> {
    /// The sender.
    pub(crate) from: usize,
    /// At most [`MOST_WORDS`].
    pub(crate) words: &'a [u64],
    pub(crate) payload: &'a [u8],
}

impl<'a> Letter<'a> {
    /// Slots that it takes.
    pub(crate) fn slots(&self) -> usize {
        slots_of(self.len())
    }

    /// Words behind the first.
    fn len(&self) -> usize {
        self.words.len() + self.payload.len().div_ceil(WORD)
    }

    /// The word that comes first.
    fn head(&self) -> u64 {
        (self.from as u64) << 32 | self.len() as u64
    }

    /// Bytes of it when it is packed.
    pub(crate) fn packed(&self) -> usize {
        WORD * (1 + self.len())
    }

    /// Writes its words one after the other.
    pub(crate) fn pack(&self, to: &mut [u8]) {
        let (head, rest) = to.split_at_mut(WORD);
        let (words, rest) = rest.split_at_mut(size_of_val(self.words));
        let (payload, padding) = rest.split_at_mut(self.payload.len());
        head.copy_from_slice(&self.head().to_ne_bytes());
        words.copy_from_slice(bytemuck::cast_slice(self.words));
        payload.copy_from_slice(self.payload);
        padding.fill(0);
    }

    /// The letter that was packed.
    pub(crate) fn unpack(packed: &'a [u64]) -> Option<Self> {
        let (&head, rest) = packed.split_first()?;
        let (words, payload) = rest.split_at(rest.len().min(MOST_WORDS));
        let from = (head >> 32) as usize;
        (head as u32 as usize == rest.len()).then(|| Letter { from, words, payload: bytemuck::cast_slice(payload) })
    }

    /// Its slots, with stamps of zero.
    pub(crate) fn image(&self) -> Vec<[u64; 1 + WORDS]> {
        let mut packed = vec![0; 1 + self.len()];
        self.pack(bytemuck::cast_slice_mut(&mut packed));
        let fill = |words: &[u64]| std::array::from_fn(|k| k.checked_sub(1).and_then(|k| words.get(k).copied()).unwrap_or(0));
        packed.chunks(WORDS).map(fill).collect()
    }
}

/// Slots of a letter that has `len` words behind the first.
fn slots_of(len: usize) -> usize {
    (1 + len).div_ceil(WORDS)
}

/// The stamp of a letter that begins at a position: never zero.
pub(crate) fn stamp(position: u64, slots: usize) -> u32 {
    (position >> slots.trailing_zeros()) as u32 & u32::MAX >> 1 | 1 << 31
}

/// A word of up to eight bytes.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// The ring has no room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A ring that is mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring<'a> {
    tail: &'a AtomicU64,
    head: &'a End,
    slots: &'a [Slot],
}

impl<'a> Ring<'a> {
    /// Bytes of a ring that has `slots` slots.
    pub(crate) fn bytes(slots: usize) -> usize {
        slots.saturating_mul(SLOT).saturating_add(SLOTS)
    }

    /// # Panics
    /// If the number of slots is no power of two.
    pub(super) fn new(tail: &'a End, head: &'a End, slots: &'a [Slot]) -> Self {
        assert!(slots.len().is_power_of_two(), "{} slots", slots.len());
        Ring { tail: &tail.position, head, slots }
    }

    fn slot(&self, position: u64) -> &'a Slot {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Reserves slots; `seen` is what the writer has seen of `head`.
    #[inline]
    pub(crate) fn reserve(&self, seen: &mut u64, slots: usize) -> Result<u64, Full> {
        self.reserve_if(slots, |tail| self.has_room(seen, tail, slots))
    }

    /// The same for a processor that holds letters, or may.
    pub(crate) fn reserve_for_held(&self, slots: usize) -> Result<u64, Full> {
        self.reserve_if(slots, |tail| self.fits(self.head.position.load(Ordering::Acquire), tail, slots))
    }

    #[inline]
    fn reserve_if(&self, slots: usize, mut has_room: impl FnMut(u64) -> bool) -> Result<u64, Full> {
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            if !has_room(tail) {
                return Err(Full);
            }
            // What was read of the slots before they were freed was read before `head` was stored, which `seen` followed.
            match self.tail.compare_exchange_weak(tail, tail + slots as u64, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(tail),
                Err(now) => tail = now,
            }
        }
    }

    /// Returns true if slots from a position on are free.
    #[inline]
    pub(crate) fn has_room(&self, seen: &mut u64, tail: u64, slots: usize) -> bool {
        if !self.fits(*seen, tail, slots) {
            // Acquire pairs with the reader's Release in `free`.
            let head = self.head.position.load(Ordering::Acquire);
            // Or else a long letter might never find enough slots at once.
            if self.is_held() && head != CLOSED {
                return false;
            }
            *seen = head;
        }
        self.fits(*seen, tail, slots)
    }

    #[inline]
    fn fits(&self, head: u64, tail: u64, slots: usize) -> bool {
        tail + slots as u64 <= head + self.slots.len() as u64
    }

    /// Where the next letter would begin.
    pub(crate) fn tail(&self) -> u64 {
        self.tail.load(Ordering::Relaxed)
    }

    /// Returns true if nothing is behind a position, written or not, and no letter is held.
    pub(crate) fn is_clear(&self, position: u64) -> bool {
        // In this order: a letter that is held is in the ring before it is not held any more.
        self.head.held.load(Ordering::Acquire) == 0 && self.tail() == position
    }

    /// Reserves slots for a letter, or counts it as held.
    pub(crate) fn reserve_or_hold(&self, slots: usize) -> Result<u64, Full> {
        self.reserve_for_held(slots).or_else(|Full| {
            self.hold();
            // Pairs with that of `close`: either the reader sees that a letter is held, or this writer that there is room.
            fence(Ordering::SeqCst);
            self.reserve_for_held(slots).inspect(|_| self.is_held_no_more())
        })
    }

    /// Counts a letter as held.
    pub(crate) fn hold(&self) {
        self.head.held.fetch_add(1, Ordering::Relaxed);
    }

    /// A letter that was held is in the ring.
    pub(crate) fn is_held_no_more(&self) {
        self.head.held.fetch_sub(1, Ordering::Release);
    }

    /// Writes a letter into slots that were reserved, and wakes the reader.
    #[inline]
    pub(crate) fn write(&self, position: u64, letter: &Letter<'_>) {
        let first = self.slot(position);
        let (own, mut to) = first.words[1..].split_at(letter.words.len());
        first.words[0].store(letter.head(), Ordering::Relaxed);
        own.iter().zip(letter.words).for_each(|(to, &word)| to.store(word, Ordering::Relaxed));
        let (mut payload, mut next) = (letter.payload, position + 1);
        loop {
            let (piece, rest) = payload.split_at(payload.len().min(to.len() * WORD));
            let whole = piece.chunks_exact(WORD);
            if let Some(last) = to.get(piece.len() / WORD).filter(|_| !whole.remainder().is_empty()) {
                last.store(word_of(whole.remainder()), Ordering::Relaxed);
            }
            whole.zip(to).for_each(|(bytes, to)| to.store(word_of(bytes), Ordering::Relaxed));
            if rest.is_empty() {
                break;
            }
            (payload, to) = (rest, &self.slot(next).words);
            next += 1;
        }
        first.stamp.publish(stamp(position, self.slots.len()));
    }

    /// The word that a letter at a position stamps, and its stamp.
    pub(crate) fn stamp(&self, position: u64) -> (&'a WaitWord, u32) {
        (&self.slot(position).stamp, stamp(position, self.slots.len()))
    }

    /// Reads the letter at the reader's position, if there is one, and moves on: its words and payload, in words, and the sender.
    #[inline]
    pub(crate) fn read(&self, position: &mut u64, to: &mut Vec<u64>) -> Option<usize> {
        let (word, expected) = self.stamp(*position);
        if word.load() != expected {
            return None;
        }
        to.clear();
        let first = &self.slot(*position).words;
        let head = first[0].load(Ordering::Relaxed);
        // A damaged length must not lead outside; the letter is then wrong, and its reader says so.
        let len = (head as u32 as usize).min(self.slots.len() * WORDS - 1);
        to.extend(first[1..].iter().take(len).map(|word| word.load(Ordering::Relaxed)));
        for slot in 1..slots_of(len) {
            let words = &self.slot(*position + slot as u64).words;
            to.extend(words.iter().take(len - to.len()).map(|word| word.load(Ordering::Relaxed)));
        }
        *position += slots_of(len) as u64;
        Some((head >> 32) as usize)
    }

    /// Frees all slots before the reader's position.
    pub(crate) fn free(&self, position: u64) {
        self.head.position.store(position, Ordering::Release);
    }

    /// Closes the ring. Its memory may be used again when no letter [`is_held`](Self::is_held) and its writers have ended.
    pub(crate) fn close(&self) {
        self.free(CLOSED);
        fence(Ordering::SeqCst);
    }

    /// Returns true if a processor holds a letter for the ring.
    pub(crate) fn is_held(&self) -> bool {
        self.head.held.load(Ordering::Acquire) != 0
    }
}

#[cfg(test)]
mod testing {
    use super::*;

    /// Memory of a ring.
    #[derive(Debug)]
    pub(super) struct Memory {
        tail: End,
        head: End,
        slots: Vec<Slot>,
    }

    impl Memory {
        pub(super) fn new(slots: usize) -> Self {
            Memory { tail: End::default(), head: End::default(), slots: (0..slots).map(|_| Slot::default()).collect() }
        }

        pub(super) fn ring(&self) -> Ring<'_> {
            Ring::new(&self.tail, &self.head, &self.slots)
        }
    }

    pub(super) fn push(ring: Ring<'_>, seen: &mut u64, letter: &Letter<'_>) -> Result<(), Full> {
        let position = ring.reserve(seen, letter.slots())?;
        ring.write(position, letter);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{
        testing::{Memory, push},
        *,
    };

    #[test]
    fn letters_of_any_length_come_out_whole_and_in_order() {
        let memory = Memory::new(8);
        let (ring, mut seen, mut at, mut came) = (memory.ring(), 0, 0, Vec::new());
        for round in 0..200_usize {
            let words: Vec<u64> = (0..round as u64 % 15).collect();
            let payload: Vec<u8> = (0..round * 7 % 850).map(|k| (k * round) as u8).collect();
            let letter = Letter { from: round % 5, words: &words, payload: &payload };
            assert_eq!(push(ring, &mut seen, &letter), Ok(()), "round {round}, {} slots", letter.slots());
            assert_eq!(ring.read(&mut at, &mut came), Some(round % 5));
            assert_eq!(came[..words.len()], words);
            let bytes: Vec<u8> = came[words.len()..].iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(bytes[..payload.len()], payload);
            assert!(bytes.len() < payload.len() + WORD);
            assert_eq!(ring.read(&mut at, &mut came), None);
            ring.free(at);
        }
    }

    #[test]
    fn a_full_ring_says_so_until_its_reader_frees_slots() {
        let memory = Memory::new(4);
        let (ring, mut seen, mut at, mut came) = (memory.ring(), 0, 0, Vec::new());
        let letter = |number: u64| Letter { from: 0, words: &[1, 2, 3][..number as usize % 3], payload: &[] };
        for number in 0..4 {
            assert_eq!(push(ring, &mut seen, &letter(number)), Ok(()));
        }
        assert_eq!(push(ring, &mut seen, &letter(4)), Err(Full));
        assert_eq!(ring.read(&mut at, &mut came), Some(0));
        assert_eq!(push(ring, &mut seen, &letter(4)), Err(Full));
        ring.free(at);
        assert_eq!(push(ring, &mut seen, &letter(4)), Ok(()));
        let long = Letter { from: 0, words: &[], payload: &[0; 4 * 15 * 8] };
        assert_eq!(push(ring, &mut seen, &long), Err(Full));
    }

    #[test]
    fn a_ring_that_is_closed_has_room_for_what_is_held() {
        let memory = Memory::new(4);
        let (ring, mut seen) = (memory.ring(), 0);
        let letter = Letter { from: 0, words: &[1], payload: &[] };
        assert!((0..4).all(|_| push(ring, &mut seen, &letter) == Ok(())));
        assert_eq!(ring.reserve_or_hold(1), Err(Full));
        assert!(ring.is_held());
        // A letter that is held comes before others.
        ring.free(2);
        assert_eq!((push(ring, &mut seen, &letter), ring.reserve_for_held(3)), (Err(Full), Err(Full)));
        assert_eq!(ring.reserve_for_held(1), Ok(4));
        ring.write(4, &letter);
        // All was read, but more is to come.
        ring.free(5);
        assert!(!ring.is_clear(5));
        ring.close();
        for position in 5..40 {
            assert_eq!(ring.reserve_or_hold(1), Ok(position));
            ring.write(position, &letter);
        }
        ring.is_held_no_more();
        assert!(!ring.is_held() && ring.is_clear(40));
    }

    #[test]
    fn many_writers_lose_nothing() {
        let memory = Memory::new(16);
        std::thread::scope(|scope| {
            for writer in 0..3_usize {
                let memory = &memory;
                scope.spawn(move || {
                    let mut seen = 0;
                    for number in 0..2000_u64 {
                        let payload = vec![number as u8; (number as usize * 13 + writer) % 700];
                        let letter = Letter { from: writer, words: &[number], payload: &payload };
                        while push(memory.ring(), &mut seen, &letter).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let (ring, mut at, mut came, mut next) = (memory.ring(), 0, Vec::new(), [0_u64; 3]);
            while next.iter().sum::<u64>() < 6000 {
                let Some(from) = ring.read(&mut at, &mut came) else {
                    std::thread::yield_now();
                    continue;
                };
                ring.free(at);
                let (number, len) = (next[from], (next[from] as usize * 13 + from) % 700);
                assert_eq!(came[0], number);
                let bytes: Vec<u8> = came[1..].iter().flat_map(|word| word.to_ne_bytes()).collect();
                assert_eq!(bytes[..len], vec![number as u8; len]);
                next[from] += 1;
            }
        });
    }

    #[test]
    fn a_stamp_of_another_lap_is_not_taken_for_this_one() {
        for lap in 0..3_u64 {
            for other in 0..3 {
                assert_eq!(stamp(4 * lap + 1, 4) == stamp(4 * other + 1, 4), lap == other);
            }
        }
        assert_ne!(stamp(u64::from(u32::MAX) * 4, 4), 0);
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::{
        testing::{Memory, push},
        *,
    };
    use loom::{sync::Arc, thread};

    /// A letter of one slot, or of two.
    fn words(writer: usize, number: u64) -> (Vec<u64>, Vec<u8>) {
        (vec![number], if writer == 0 { Vec::new() } else { vec![number as u8; 2 * WORD] })
    }

    fn write(memory: &Memory, writer: usize, tries: u64) -> u64 {
        let (mut sent, mut seen) = (0, 0);
        for _ in 0..tries {
            let (words, payload) = words(writer, sent + 1);
            match push(memory.ring(), &mut seen, &Letter { from: writer, words: &words, payload: &payload }) {
                Ok(()) => sent += 1,
                Err(Full) => thread::yield_now(),
            }
        }
        sent
    }

    fn take(memory: &Memory, at: &mut u64, taken: &mut [u64]) -> bool {
        let mut came = Vec::new();
        let Some(from) = memory.ring().read(at, &mut came) else { return false };
        taken[from] += 1;
        let (words, payload) = words(from, taken[from]);
        assert_eq!(came[0], words[0]);
        let bytes: Vec<u8> = came[1..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(bytes, payload);
        memory.ring().free(*at);
        true
    }

    /// Each writer tries as often to send as `tries` says, the reader `takes` times to take. The rest is taken in the end.
    ///
    /// No thread tries without end, and the thread that made the ring does not read: see `node::inbox`.
    fn model(tries: &'static [u64], takes: usize) {
        loom::model(move || {
            let memory = Arc::new(Memory::new(4));
            let reader = {
                let memory = memory.clone();
                thread::spawn(move || {
                    let (mut at, mut taken) = (0, vec![0; tries.len()]);
                    for _ in 0..takes {
                        if !take(&memory, &mut at, &mut taken) {
                            thread::yield_now();
                        }
                    }
                    (at, taken)
                })
            };
            let others: Vec<_> = (1..tries.len())
                .map(|writer| {
                    let memory = memory.clone();
                    thread::spawn(move || write(&memory, writer, tries[writer]))
                })
                .collect();
            let mut sent = vec![write(&memory, 0, tries[0])];
            sent.extend(others.into_iter().map(|other| other.join().unwrap()));
            let (mut at, mut taken) = reader.join().unwrap();
            while take(&memory, &mut at, &mut taken) {}
            assert_eq!(taken, sent);
        });
    }

    #[test]
    fn one_writer_goes_round_the_ring() {
        model(&[5], 5);
    }

    #[test]
    fn letters_of_one_and_of_two_slots_share_the_ring() {
        model(&[1, 1], 2);
    }

    #[test]
    fn two_writers_go_round_the_ring() {
        model(&[2, 2], 2);
    }

    /// Either the reader that closes the ring sees that a letter is held, or the letter finds room.
    #[test]
    fn nothing_is_held_behind_the_back_of_a_reader_that_leaves() {
        loom::model(|| {
            let memory = Arc::new(Memory::new(4));
            assert_eq!(write(&memory, 0, 4), 4);
            let reader = {
                let memory = memory.clone();
                thread::spawn(move || {
                    memory.ring().close();
                    memory.ring().is_held()
                })
            };
            let is_held = memory.ring().reserve_or_hold(1).is_err();
            assert!(reader.join().unwrap() || !is_held);
        });
    }
}
