//! What ranks of different nodes write to each other: *records*, gathered into *frames*.
//!
//! A frame is one message, counted in words of eight bytes.
//!
//! ```text
//!  frame   | words used, frames acknowledged | flags | record | record | ...
//!  record  | kind, words, levels, aux, payload bytes, number | words ... | levels: count, stride ... | payload, padded |
//! ```
//!
//! The *number* says which rank a request is for, among those that its receiver answers for. A record that does not fit its frame ends the
//! reading: nothing that arrives is trusted.

use std::mem::size_of;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// Words in front of the records.
const HEAD: usize = 2;
/// Bits of the payload's length in the head of a record, behind four bytes; those of the number follow.
const PAYLOAD_BITS: u32 = 20;
/// The most ranks that an endpoint answers for.
pub(in crate::comm) const MOST_RANKS: usize = 1 << (u32::BITS - PAYLOAD_BITS);

/// Flag: the frame counts against the sender's credit and is to be acknowledged.
const CREDIT: u64 = 1;

/// The origin of a letter that needs no answer.
pub(in crate::comm) const NO_ORIGIN: u64 = u64::MAX;

/// Most levels around a run that a record can carry.
pub(in crate::comm) const MOST_LEVELS: usize = crate::comm::BLOCK_LEVELS;

/// What a record asks for or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::comm) enum RecordKind {
    /// offset; payload: write it there.
    Put = 1,
    /// offset, run, first run; levels; payload: write whole runs from the first one on.
    PutBlock = 2,
    /// offset, length, origin: answer by `Data`.
    Get = 3,
    /// offset, run, first run, runs, origin; levels: answer by `Data`.
    GetBlock = 4,
    /// origin, byte of what was asked for; payload.
    Data = 5,
    /// offset, run, first run, lock, alpha (two words); aux is the type of number; levels; payload: add it.
    Accumulate = 6,
    /// offset, operand, comparand, origin, width; aux is the operation: answer by `Value`.
    Atomic = 7,
    /// origin, value.
    Value = 8,
    /// offset, length, number: the bytes come in a message of their own.
    PutLong = 9,
    /// offset, length, number: send the bytes in a message of their own.
    GetLong = 10,
    /// length, number: the records that belong here come in a message of their own.
    LongFrame = 11,
    /// origin: answer by `Value` when everything before was done.
    Flush = 12,
    /// offset, slots, origin or [`NO_ORIGIN`]; aux: 1 if more of the letter follows; payload: append it to the ring.
    Append = 13,
    /// rank; payload says why the job ended.
    End = 14,
    /// offset, offset of a word of four bytes, value; aux: 1 to add it, 0 to set it; payload: write it, then change the word, and
    /// wake the thread that waits for it.
    PutSignal = 15,
    /// offset, run, first byte, length, number; levels: as `PutBlock`, its payload comes in a message of its own.
    PutBlockLong = 16,
    /// offset, run, first byte, lock, alpha (two words), length, number; aux; levels: as `Accumulate`, likewise.
    AccumulateLong = 17,
    /// offset, run, first byte, length, number; levels: send the packed bytes in a message of their own.
    GetBlockLong = 18,
    /// what, words: a note between supervisors; payload: its text.
    Note = 19,
    /// Nothing: answer by `RegionsAre`.
    Regions = 20,
    /// The number of the rank whose regions they are, among those that the sender answers for; version, number of regions told
    /// before; of each region: offset, length, address, key.
    RegionsAre = 21,
    /// number, version: forget the regions told before, and answer by `Revoked` when nothing uses them.
    Revoke = 22,
    /// number, version.
    Revoked = 23,
}

impl RecordKind {
    pub(in crate::comm) const ALL: [RecordKind; 23] = [
        RecordKind::Put,
        RecordKind::PutBlock,
        RecordKind::Get,
        RecordKind::GetBlock,
        RecordKind::Data,
        RecordKind::Accumulate,
        RecordKind::Atomic,
        RecordKind::Value,
        RecordKind::PutLong,
        RecordKind::GetLong,
        RecordKind::LongFrame,
        RecordKind::Flush,
        RecordKind::Append,
        RecordKind::End,
        RecordKind::PutSignal,
        RecordKind::PutBlockLong,
        RecordKind::AccumulateLong,
        RecordKind::GetBlockLong,
        RecordKind::Note,
        RecordKind::Regions,
        RecordKind::RegionsAre,
        RecordKind::Revoke,
        RecordKind::Revoked,
    ];

    fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// Memory of a frame, to be filled with records or with what arrived.
#[derive(Debug)]
pub(in crate::comm) struct Frame {
    words: Box<[u64]>,
    used: usize,
    /// Of the records that are pushed.
    number: u16,
}

impl Frame {
    /// An empty frame of at most `bytes` bytes.
    pub(in crate::comm) fn new(bytes: usize) -> Self {
        Frame { words: vec![0; bytes / WORD].into_boxed_slice(), used: HEAD, number: 0 }
    }

    /// Bytes of payload that fit into an empty frame of `bytes` bytes, behind a record's `words` words and `levels` levels.
    pub(in crate::comm) fn room_when_empty(bytes: usize, words: usize, levels: usize) -> usize {
        (bytes / WORD - HEAD - 1 - words - 2 * levels) * WORD
    }

    pub(in crate::comm) fn clear(&mut self) {
        (self.used, self.number) = (HEAD, 0);
    }

    /// Sets the rank that the records are for that are pushed from now on.
    pub(in crate::comm) fn direct(&mut self, number: u16) {
        debug_assert!(usize::from(number) < MOST_RANKS, "rank {number} of an endpoint");
        self.number = number;
    }

    pub(in crate::comm) fn is_empty(&self) -> bool {
        self.used == HEAD
    }

    /// Returns true if a record fits.
    pub(in crate::comm) fn has_room(&self, words: usize, levels: usize, payload: usize) -> bool {
        1 + words + 2 * levels + payload.div_ceil(WORD) <= self.words.len() - self.used
    }

    /// Bytes of payload that still fit behind a record's words and levels.
    pub(in crate::comm) fn room(&self, words: usize, levels: usize) -> usize {
        (self.words.len() - self.used).saturating_sub(1 + words + 2 * levels) * WORD
    }

    /// Appends a record and gives the place of its payload. The caller looked that it fits.
    pub(in crate::comm) fn push(
        &mut self,
        kind: RecordKind,
        aux: u8,
        words: &[u64],
        levels: &[(usize, isize)],
        payload: usize,
    ) -> &mut [u8] {
        let start = self.used;
        let body = start + 1 + words.len() + 2 * levels.len();
        let end = body + payload.div_ceil(WORD);
        let head = [kind as u8, words.len() as u8, levels.len() as u8, aux];
        let behind = (payload as u64) | u64::from(self.number) << PAYLOAD_BITS;
        self.words[start] = u64::from(u32::from_le_bytes(head)) | behind << u32::BITS;
        self.words[start + 1..start + 1 + words.len()].copy_from_slice(words);
        for (to, &(count, stride)) in self.words[start + 1 + words.len()..body].chunks_exact_mut(2).zip(levels) {
            (to[0], to[1]) = (count as u64, stride as u64);
        }
        self.used = end;
        &mut bytemuck::cast_slice_mut(&mut self.words[body..end])[..payload]
    }

    /// Writes the frame's own words. It may be sealed again.
    pub(in crate::comm) fn seal(&mut self, acknowledged: u32, credit: bool) {
        self.words[0] = self.used as u64 | u64::from(acknowledged) << 32;
        self.words[1] = if credit { CREDIT } else { 0 };
    }

    /// What is to be sent of a sealed frame.
    pub(in crate::comm) fn sealed(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words[..self.used])
    }

    /// Where a message may be received.
    pub(in crate::comm) fn buffer(&mut self) -> (*mut u8, usize) {
        (self.words.as_mut_ptr().cast(), self.words.len() * WORD)
    }

    /// The memory as bytes, for a message without records.
    pub(in crate::comm) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }

    /// The same, to be read.
    pub(in crate::comm) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    /// What arrived in `len` bytes: the number of frames it acknowledges, true if it takes credit, its records.
    pub(in crate::comm) fn read(&self, len: usize) -> Option<(u32, bool, Records<'_>)> {
        let used = (self.words[0] & u64::from(u32::MAX)) as usize;
        let whole = used >= HEAD && used * WORD == len && used <= self.words.len();
        whole.then(|| ((self.words[0] >> 32) as u32, self.words[1] & CREDIT != 0, Records { words: &self.words[HEAD..used] }))
    }
}

impl Frame {
    /// The last records of a frame that arrived, as many words.
    pub(in crate::comm) fn rest(&self, left: usize) -> Records<'_> {
        let used = (self.words[0] & u64::from(u32::MAX)) as usize;
        let end = used.min(self.words.len());
        Records { words: &self.words[end.saturating_sub(left)..end] }
    }
}

/// Frames of one length that are kept for the next use.
#[derive(Debug)]
pub(in crate::comm) struct Frames {
    bytes: usize,
    most: usize,
    spare: Vec<Frame>,
}

impl Frames {
    /// Frames of `bytes` bytes; at most `most` are kept.
    pub(in crate::comm) fn new(bytes: usize, most: usize) -> Self {
        Frames { bytes, most, spare: Vec::new() }
    }

    /// An empty frame.
    pub(in crate::comm) fn take(&mut self) -> Frame {
        self.spare.pop().unwrap_or_else(|| Frame::new(self.bytes))
    }

    /// Gives one back.
    pub(in crate::comm) fn give(&mut self, mut frame: Frame) {
        if self.spare.len() < self.most {
            frame.clear();
            self.spare.push(frame);
        }
    }
}

/// The records of a frame.
#[derive(Debug)]
pub(in crate::comm) struct Records<'f> {
    words: &'f [u64],
}

impl Records<'_> {
    /// Words of those not yet read.
    pub(in crate::comm) fn left(&self) -> usize {
        self.words.len()
    }
}

/// A record that arrived.
#[derive(Debug)]
pub(in crate::comm) struct Record<'f> {
    pub(in crate::comm) kind: RecordKind,
    /// Whom it is for, among the ranks that its receiver answers for.
    pub(in crate::comm) number: u16,
    pub(in crate::comm) aux: u8,
    pub(in crate::comm) words: &'f [u64],
    levels: &'f [u64],
    pub(in crate::comm) payload: &'f [u8],
}

/// A record whose payload has not come.
#[derive(Debug)]
pub(in crate::comm) struct HeldRecord {
    kind: RecordKind,
    number: u16,
    aux: u8,
    words: Box<[u64]>,
    levels: Box<[u64]>,
}

impl HeldRecord {
    /// The record with its payload.
    pub(in crate::comm) fn with<'r>(&'r self, payload: &'r [u8]) -> Record<'r> {
        Record { kind: self.kind, number: self.number, aux: self.aux, words: &self.words, levels: &self.levels, payload }
    }
}

impl Record<'_> {
    /// Keeps it as a record of another kind, without its payload.
    pub(in crate::comm) fn hold(&self, kind: RecordKind) -> HeldRecord {
        HeldRecord { kind, number: self.number, aux: self.aux, words: self.words.into(), levels: self.levels.into() }
    }

    /// The first `N` words, if there are that many.
    pub(in crate::comm) fn words<const N: usize>(&self) -> Option<[usize; N]> {
        let words = self.words.first_chunk::<N>()?;
        Some(words.map(|word| word as usize))
    }

    /// Count and stride of each level.
    pub(in crate::comm) fn levels(&self) -> impl Iterator<Item = (usize, isize)> {
        self.levels.chunks_exact(2).map(|level| (level[0] as usize, level[1] as isize))
    }
}

impl<'f> Iterator for Records<'f> {
    type Item = Record<'f>;

    fn next(&mut self) -> Option<Record<'f>> {
        let (&head, rest) = self.words.split_first()?;
        let [kind, words, levels, aux] = (head as u32).to_le_bytes();
        let behind = (head >> u32::BITS) as u32;
        let (payload, number) = ((behind & ((1 << PAYLOAD_BITS) - 1)) as usize, (behind >> PAYLOAD_BITS) as u16);
        let (words, rest) = rest.split_at_checked(words.into())?;
        let (levels, rest) = rest.split_at_checked(2 * usize::from(levels))?;
        let (body, rest) = rest.split_at_checked(payload.div_ceil(WORD))?;
        self.words = rest;
        Some(Record { kind: RecordKind::of(kind)?, number, aux, words, levels, payload: &bytemuck::cast_slice(body)[..payload] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_as_they_went_in() {
        let mut frame = Frame::new(8000);
        frame.push(RecordKind::Put, 0, &[40], &[], 3).copy_from_slice(b"abc");
        frame.direct(4095);
        frame.push(RecordKind::PutBlock, 7, &[8, 16, 0], &[(3, -24), (2, 5)], 8).fill(9);
        frame.direct(1);
        frame.push(RecordKind::Flush, 0, &[6], &[], 0);
        frame.seal(5, true);
        let len = frame.sealed().len();
        let (acknowledged, credit, records) = frame.read(len).unwrap();
        assert_eq!((acknowledged, credit), (5, true));
        let records: Vec<_> = records.collect();
        assert_eq!(records.len(), 3);
        assert_eq!((records[0].kind, records[0].words::<1>(), records[0].payload), (RecordKind::Put, Some([40]), &b"abc"[..]));
        assert_eq!(records.iter().map(|record| record.number).collect::<Vec<_>>(), [0, 4095, 1]);
        assert_eq!(records[1].levels().collect::<Vec<_>>(), [(3, -24), (2, 5)]);
        assert_eq!((records[1].aux, records[1].payload), (7, &[9; 8][..]));
        assert_eq!((records[2].kind, records[2].words::<2>()), (RecordKind::Flush, None));
    }

    #[test]
    fn what_does_not_fit_ends_the_reading() {
        let mut frame = Frame::new(800);
        frame.push(RecordKind::Put, 0, &[40], &[], 100);
        frame.seal(0, false);
        let len = frame.sealed().len();
        assert!(frame.read(len - 8).is_none());
        frame.words[HEAD] |= 1 << 42;
        assert_eq!(frame.read(len).unwrap().2.count(), 0);
        frame.words[HEAD] = 99;
        assert_eq!(frame.read(len).unwrap().2.count(), 0);
    }

    #[test]
    fn room_is_what_a_record_may_take() {
        let mut frame = Frame::new(400);
        assert_eq!(frame.room(3, 1), Frame::room_when_empty(400, 3, 1));
        let room = frame.room(1, 0);
        frame.push(RecordKind::Put, 0, &[0], &[], room);
        assert_eq!(frame.room(0, 0), 0);
    }
}
