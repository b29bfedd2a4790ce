//! What a rank does for others when their records arrive.
//!
//! Handlers never wait for another node. So two ranks that handle each other's records always come to an end.

use std::{borrow::Cow, ops::Range};

use super::{
    bulk::Then,
    endpoint::{End, Endpoint},
    frame::{Frame, NO_ORIGIN, Record, RecordKind},
    inbox::Handled,
    long_frames::{FrameUse, LONG_FRAME},
    memory::{Segment, pack, unpack},
    runs::Runs,
    wire::{BulkKind, Result, Tag, Wire},
};
use crate::{
    comm::{
        AtomicOp, Event, Scale, Token,
        engine::addition,
        node::{Note, What},
    },
    memory::{numeric::Numeric, ring::SLOT, word::WaitWord},
};

/// Answers that have not left, before bytes that others ask for wait.
const CROWD: usize = 1024;

impl<W: Wire> Endpoint<W> {
    /// Does what a record asks for.
    pub(super) fn handle(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        match record.kind {
            RecordKind::Put => {
                let Some([offset]) = record.words() else { return Ok(Handled::Wrong) };
                let runs = Runs::one(record.payload.len());
                Ok(self.write(record.number, offset, &runs, 0, record.payload).into())
            }
            RecordKind::PutBlock => {
                let Some(([offset, _, at], runs)) = block(record) else { return Ok(Handled::Wrong) };
                Ok(self.write(record.number, offset, &runs, at, record.payload).into())
            }
            RecordKind::PutSignal => Ok(self.put_signal(record).into()),
            RecordKind::Get => {
                let Some([offset, len, at, origin]) = record.words() else { return Ok(Handled::Wrong) };
                self.read(from, record.number, offset, &Runs::one(len), 0..len, [origin, at])
            }
            RecordKind::GetBlock => {
                let Some(([offset, _, at, len, origin], runs)) = block(record) else { return Ok(Handled::Wrong) };
                self.read(from, record.number, offset, &runs, at..at.saturating_add(len), [origin, at])
            }
            RecordKind::Data => {
                let Some([origin, at]) = record.words() else { return Ok(Handled::Wrong) };
                self.data_came(from, origin, at, record.payload);
                Ok(Handled::Done)
            }
            RecordKind::Accumulate => Ok(self.accumulate(record).into()),
            RecordKind::Atomic => {
                let Some(&[offset, operand, comparand, origin, width]) = record.words.first_chunk::<5>() else {
                    return Ok(Handled::Wrong);
                };
                let Some(op) = AtomicOp::of_code(record.aux) else { return Ok(Handled::Wrong) };
                let segment = self.segments.of(record.number);
                let apply = |segment: Segment| segment.apply(offset as usize, op, width as usize, operand, comparand);
                let Some(value) = segment.and_then(apply) else { return Ok(Handled::Wrong) };
                self.answer(from, RecordKind::Value, &[origin, value], 0, |_| ()).map(|()| Handled::Done)
            }
            RecordKind::Value => {
                let Some([origin, value]) = record.words.first_chunk::<2>() else { return Ok(Handled::Wrong) };
                let event = self.origins.value_came(*origin, *value);
                if matches!(event, Some(Event::RemoteDone(Token::ACKNOWLEDGED))) {
                    self.peer(from).acknowledges = false;
                    return Ok(Handled::Done);
                }
                if matches!(event, Some(Event::RemoteDone(_))) {
                    self.flushed(from);
                }
                self.events.extend(event.filter(|event| !matches!(event, Event::RemoteDone(Token::SETTLED))));
                Ok(Handled::Done)
            }
            RecordKind::GetLong => self.get_long(from, record),
            RecordKind::GetBlockLong => self.get_block_long(from, record),
            // Their turn is the inbox's.
            RecordKind::PutLong | RecordKind::LongFrame | RecordKind::PutBlockLong | RecordKind::AccumulateLong => {
                Ok(Handled::Wrong)
            }
            RecordKind::Flush => {
                let Some([origin]) = record.words.first_chunk::<1>() else { return Ok(Handled::Wrong) };
                // Release pairs with the acquire of a thread that learns of it: everything before was stored by this thread.
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                self.answer(from, RecordKind::Value, &[*origin, 0], 0, |_| ()).map(|()| Handled::Done)
            }
            RecordKind::Append => self.take_letter(from, record),
            RecordKind::Regions => self.tell_regions(from, record.number),
            RecordKind::RegionsAre => Ok(self.know_regions(from, record).into()),
            RecordKind::Revoke => Ok(self.forget_regions(from, record).into()),
            RecordKind::Revoked => Ok(self.revocation_answered(record).into()),
            RecordKind::Note => {
                let Some(note) = record.words.first_chunk().and_then(|words| Note::of_record(*words, record.payload)) else {
                    return Ok(Handled::Wrong);
                };
                let answers = match note.what {
                    // A rank that answers only when its program calls may be silent for long.
                    What::Beat => self.answers_always.then(|| Note::bare(What::Alive)).into_iter().collect(),
                    What::Alive => {
                        self.beats.answers(self.topology.machine(from));
                        Vec::new()
                    }
                    _ => match self.segments.local(record.number) {
                        Some(local) => {
                            let (answers, question) = self.supervisor.hear(from, local, note);
                            self.questions.extend(question);
                            answers
                        }
                        None => return Ok(Handled::Wrong),
                    },
                };
                for answer in answers {
                    let (words, text) = answer.record();
                    self.answer(from, RecordKind::Note, &words, text.len(), |to| to.copy_from_slice(text))?;
                }
                Ok(Handled::Done)
            }
            RecordKind::End => {
                let words = record.words().filter(|[culprit, _]| *culprit < self.topology.size());
                let Some([culprit, lost]) = words else { return Ok(Handled::Wrong) };
                let cause = || String::from_utf8_lossy(record.payload).into_owned();
                self.ended.get_or_insert_with(|| End { culprit, lost: lost != 0, cause: cause() });
                Ok(Handled::Done)
            }
        }
    }

    /// Where the runs begin, if they lie in the segment of a rank that this one answers for, and the packed bytes named are a part of them.
    fn part(&self, number: u16, offset: usize, runs: &Runs, at: usize, len: usize) -> Option<*mut u8> {
        let (base, all) = (self.segments.of(number)?.runs(offset, runs)?, runs.bytes()?);
        (at <= all && len <= all - at && runs.is_part(at, len)).then_some(base)
    }

    fn write(&mut self, number: u16, offset: usize, runs: &Runs, at: usize, bytes: &[u8]) -> Option<()> {
        let base = self.part(number, offset, runs, at, bytes.len())?;
        // SAFETY: the runs lie inside the segment, which everybody accesses by kernels and atomics.
        unsafe { unpack(base, runs, at, bytes) };
        Some(())
    }

    fn read(
        &mut self,
        from: usize,
        number: u16,
        offset: usize,
        runs: &Runs,
        part: Range<usize>,
        head: [usize; 2],
    ) -> Result<Handled> {
        let (at, len) = (part.start, part.len());
        let most = Frame::room_when_empty(LONG_FRAME, 2, 0);
        let Some(base) = self.part(number, offset, runs, at, len).filter(|_| len <= most) else { return Ok(Handled::Wrong) };
        let words = head.map(|word| word as u64);
        // SAFETY: as in `write`.
        let fill = |bytes: &mut [u8]| unsafe { pack(base, runs, at, bytes) };
        if self.limits.is_long(len) {
            if self.limits.bulk.is_none() {
                return Ok(Handled::Wrong);
            }
            let answered = self.answer_beside(from, RecordKind::Data, &words, len, fill)?;
            return Ok(if answered.is_some() { Handled::Done } else { Handled::Later });
        }
        if self.crowd() >= CROWD {
            return Ok(Handled::Later);
        }
        self.answer(from, RecordKind::Data, &words, len, fill).map(|()| Handled::Done)
    }

    /// Appends a letter to a ring of a rank that this one answers for; while that is full, it is held here.
    fn take_letter(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        let Some([offset, slots, _]) = record.words() else { return Ok(Handled::Wrong) };
        let Ok(part) = bytemuck::try_cast_slice(record.payload) else { return Ok(Handled::Wrong) };
        let (origin, whole) = (record.words[2], record.aux == 0);
        let letter = &mut self.peer(from).letter;
        if size_of::<u64>() * (letter.len() + part.len()) > slots.saturating_mul(SLOT) {
            return Ok(Handled::Wrong);
        }
        let letter = if whole && letter.is_empty() {
            Cow::Borrowed(part)
        } else {
            letter.extend_from_slice(part);
            if !whole {
                return Ok(Handled::Done);
            }
            Cow::Owned(std::mem::take(letter))
        };
        let Some(local) = self.segments.local(record.number) else { return Ok(Handled::Wrong) };
        self.signaled = true;
        match self.held.append(self.segments.fabric(), (local, offset, slots), &letter, (from, origin)) {
            None => Ok(Handled::Wrong),
            Some(true) => self.tell_appended([(from, origin)]).map(|()| Handled::Done),
            Some(false) => Ok(Handled::Done),
        }
    }

    /// Appends letters that are held.
    pub(super) fn deliver_held(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let (mut appended, before) = (Vec::new(), self.held.len());
        self.held.deliver(self.segments.fabric(), |sender| appended.push(sender));
        self.found += (before - self.held.len()) as u64;
        self.tell_appended(appended)
    }

    /// Answers the senders of letters that want to know that those are in their rings.
    fn tell_appended(&mut self, senders: impl IntoIterator<Item = (usize, u64)>) -> Result<()> {
        let mut wants = senders.into_iter().filter(|&(_, origin)| origin != NO_ORIGIN);
        wants.try_for_each(|(from, origin)| self.answer(from, RecordKind::Value, &[origin, 0], 0, |_| ()))
    }

    /// An answer in a long frame.
    pub(super) fn long_answer(&mut self, from: usize, frame: &Frame, len: usize) -> Result<()> {
        let Some((.., records)) = frame.read(len) else {
            self.wrong(from, "a long answer that ends too early");
            return Ok(());
        };
        for record in records.filter(|record| record.kind == RecordKind::Data) {
            self.handle(from, &record)?;
        }
        Ok(())
    }

    fn put_signal(&mut self, record: &Record<'_>) -> Option<()> {
        let &[offset, word, value] = record.words.first_chunk::<3>()?;
        let segment = self.segments.of(record.number)?;
        let at = segment.range(word as usize, size_of::<WaitWord>()).filter(|at| at.cast::<WaitWord>().is_aligned())?;
        if !record.payload.is_empty() {
            self.write(record.number, offset as usize, &Runs::one(record.payload.len()), 0, record.payload)?;
        }
        // SAFETY: aligned and inside the segment; an atomic word, for which every bit pattern is valid.
        let word = unsafe { &*at.cast::<WaitWord>() };
        match record.aux {
            0 => word.store(value as u32),
            _ => {
                word.add(value as u32);
            }
        }
        word.wake();
        self.signaled = true;
        Some(())
    }

    /// Adds under the lock that processors of this node take.
    fn accumulate(&mut self, record: &Record<'_>) -> Option<()> {
        let ([offset, run, at, lock], runs) = block(record)?;
        let mut alpha = [0; 16];
        alpha.copy_from_slice(bytemuck::cast_slice(record.words.get(4..6)?));
        let scale = Scale { kind: Numeric::from_code(record.aux)?, alpha };
        let segment = self.segments.of(record.number)?;
        let (base, len) = (segment.base(), segment.len());
        let all = runs.bytes()?;
        (runs.lie_inside(offset, len) && at <= all && record.payload.len() <= all - at).then_some(())?;
        let segment = addition::NodeSegment { base, len };
        let bytes = record.payload.len();
        let add = |at: isize, levels: &[(usize, isize)], run: usize, packed: usize| {
            let offset = offset.wrapping_add_signed(at);
            let packed = record.payload.as_ptr().wrapping_add(packed);
            // SAFETY: the segment stays mapped while the conduit lives; `lock` is the offset that all ranks gave their accumulate
            // lock, the payload is as long as the runs.
            unsafe { addition::add_block(segment, lock, &scale, offset, levels, run, packed, self.over.get()) }
        };
        let mut added = Ok(());
        if at.is_multiple_of(run) && bytes.is_multiple_of(run) {
            runs.boxes(at / run, bytes / run, |part| {
                let (levels, depth) = part.levels(run);
                let levels = levels.map(|(count, stride, _)| (count, stride));
                added = added.and_then(|()| add(part.at, &levels[..depth], run, part.packed));
            });
        } else {
            (at % run + bytes <= run).then_some(())?;
            added = add(runs.start(at / run) + (at % run) as isize, &[], bytes, 0);
        }
        // After the end of the job nobody asks for the sum.
        (added != Err(addition::AdditionRefused::Malformed)).then_some(())
    }

    /// Packs what was asked for, and sends it without records.
    fn get_block_long(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        let Some(([offset, _, at, len, number], runs)) = block(record) else { return Ok(Handled::Wrong) };
        let base = self.part(record.number, offset, &runs, at, len).filter(|_| len <= LONG_FRAME);
        let Some(base) = base else { return Ok(Handled::Wrong) };
        let Some(mut frame) = self.bulk.frames.take(FrameUse::Answers) else { return Ok(Handled::Later) };
        // SAFETY: as in `write`.
        unsafe { pack(base, &runs, at, &mut frame.bytes_mut()[..len]) };
        self.send_from_frame(frame, len, from, FrameUse::Answers, Tag { kind: BulkKind::Get, number: number as u64 })?;
        Ok(Handled::Done)
    }

    fn get_long(&mut self, from: usize, record: &Record<'_>) -> Result<Handled> {
        let Some([offset, len, number]) = record.words() else { return Ok(Handled::Wrong) };
        let longest = self.limits.longest();
        let segment = self.segments.of(record.number).filter(|_| len <= longest);
        let Some(memory) = segment.and_then(|segment| segment.range(offset, len)) else { return Ok(Handled::Wrong) };
        let id = self.bulk.add(Then::Served);
        // SAFETY: inside the segment, which stays mapped while the endpoint lives; a racing access of a transfer gives each byte old
        // or new.
        unsafe { self.wire.send_bulk(from, memory, len, Tag { kind: BulkKind::Get, number: number as u64 }, id) }?;
        Ok(Handled::Done)
    }
}

/// The first words and the runs of a record whose second word is the length of a run.
fn block<const N: usize>(record: &Record<'_>) -> Option<([usize; N], Runs)> {
    let words: [usize; N] = record.words()?;
    let runs = Runs::of_record(words[1], record.levels())?;
    Some((words, runs))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{
        comm::{
            Atomic, Conduit, Network, Operation, Remote, RingPlace,
            testing::apart::{Machines, Slow},
        },
        memory::{self, ring::Letter},
    };

    /// The agent holds letters for a full ring, keeps their order, and answers all that their sender asks: only what wants to know that a letter is
    /// in the ring waits.
    #[test]
    fn letters_for_a_rank_that_is_away_hold_up_nothing() {
        const MANY: u64 = 100;
        let machines = Machines::new(&[0, 1, 1], Slow::Nothing).by_agents();
        let [(_own, writer), (_other, agent), (away, network)] = [0, 1, 2].map(|rank| machines.network(rank));
        let away = Conduit::with_network(away, network);
        away.commit(0..1 << 16).unwrap();
        let (flushed, value, appended) = (Token(7), Token(8), Token(9));
        let ring = RingPlace { at: Remote { rank: 2, offset: 8192 }, slots: 64 };
        // SAFETY: the segment lives as long as the conduit.
        let segment = unsafe { memory::segments::Segment::new(away.segment(), away.segment_len()) };
        let near = segment.ring(ring.at.offset, ring.slots);
        let mut events = Vec::new();
        for number in 0..MANY {
            // Some are longer than a frame.
            let payload = vec![number as u8; if number % 10 == 3 { 6000 } else { 0 }];
            let letter = Letter { from: 0, words: &[number], payload: &payload };
            let token = if number == MANY - 1 { appended } else { Token::NOBODY };
            // SAFETY: the ring is committed.
            let _ = unsafe { writer.issue(&Operation::Append { ring, letter }, token) };
        }
        // SAFETY: a flush touches no memory of the caller.
        let _ = unsafe { writer.issue(&Operation::Flush { rank: 2 }, flushed) };
        let until = |what: &dyn Fn(&Event) -> bool, limit: Duration, events: &mut Vec<Event>| {
            let start = Instant::now();
            while !events.iter().any(what) && start.elapsed() < limit {
                agent.attend();
                writer.poll(events);
            }
            events.iter().any(what)
        };
        let is_flushed = |event: &Event| matches!(event, Event::RemoteDone(token) if *token == flushed);
        let is_appended = |event: &Event| matches!(event, Event::Value(token, _) if *token == appended);
        assert!(until(&is_flushed, Duration::from_secs(20), &mut events), "the flush is not answered");
        assert!(!events.iter().any(is_appended), "the ring has no room for the last letter");
        assert!(near.is_held());
        let (mut at, mut came) = (0, Vec::new());
        for number in 0..MANY {
            while near.read(&mut at, &mut came).is_none() {
                until(&|_| false, Duration::from_micros(100), &mut events);
            }
            near.free(at);
            let words = if number % 10 == 3 { 1 + 6000 / 8 } else { 1 };
            assert_eq!((came[0], came.len()), (number, words));
            assert!(came[1..].iter().all(|&word| word as u8 == number as u8));
        }
        assert!(near.is_clear(at));
        assert!(until(&is_appended, Duration::from_secs(20), &mut events), "the last letter is not reported");
        // The word is in the memory of the rank, not of its agent.
        let add = Atomic { op: AtomicOp::Add, width: 8, operand: 3, comparand: 0 };
        // SAFETY: the word is committed and aligned.
        let _ = unsafe { writer.issue(&Operation::Atomic { word: Remote { rank: 2, offset: 4096 }, atomic: add }, value) };
        assert!(until(&|event| matches!(event, Event::Value(token, 0) if *token == value), Duration::from_secs(20), &mut events));
        // SAFETY: as above.
        assert_eq!(unsafe { away.segment().add(4096).cast::<u64>().read() }, 3);
    }
}
