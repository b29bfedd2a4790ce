//! What a rank does for others when their records arrive.
//!
//! Handlers never wait for another node. So two ranks that handle each other's records always come to an end.

use std::ops::Range;

use super::{
    bulk::Then,
    endpoint::{End, Endpoint},
    frame::{Frame, Record, RecordKind},
    inbox::Handled,
    long_frames::{FrameUse, LONG_FRAME},
    memory::{Segment, pack, unpack},
    runs::Runs,
    wire::{BulkKind, Result, Tag, Wire},
};
use crate::{
    comm::{
        AtomicOp, Event, Mail, Scale, Token,
        engine::addition,
        node::{Note, What},
    },
    memory::{numeric::Numeric, word::WaitWord},
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
                // What its sender wrote to others is not with them yet.
                if self.held.iter().any(|&(_, of, _)| of == from) {
                    return Ok(Handled::Later);
                }
                // Release pairs with the acquire of a thread that learns of it: everything before was stored by this thread.
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                self.answer(from, RecordKind::Value, &[*origin, 0], 0, |_| ()).map(|()| Handled::Done)
            }
            RecordKind::Mail => {
                let Some(&[key, a, b, c]) = record.words.first_chunk::<4>() else { return Ok(Handled::Wrong) };
                Ok(self.deliver(from, record.number, Mail { key, words: [a, b, c] }))
            }
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

    /// Mail for a rank that this one answers for. While the inbox of that rank is full it is held here.
    fn deliver(&mut self, from: usize, number: u16, mail: Mail) -> Handled {
        match self.segments.local(number) {
            None => Handled::Wrong,
            Some(_) if number == 0 => {
                self.events.push(Event::Mail(from, mail));
                Handled::Done
            }
            Some(_) => {
                self.held.push_back((number, from, mail));
                self.deliver_held();
                Handled::Done
            }
        }
    }

    /// Delivers mail that is held, in its order for each rank.
    pub(super) fn deliver_held(&mut self) {
        let mut full = Vec::new();
        let (segments, before) = (&self.segments, self.held.len());
        self.held.retain(|&(number, from, mail)| {
            let Some(local) = segments.local(number).filter(|_| !full.contains(&number)) else { return true };
            let is_full = segments.fabric().mail(local, from, mail).is_err();
            if is_full {
                full.push(number);
            }
            is_full
        });
        self.found += (before - self.held.len()) as u64;
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
    use crate::comm::{
        Atomic, Conduit, Issued, Network, Operation, Remote,
        testing::apart::{Machines, Slow},
    };

    /// The agent holds the mail, keeps its order, and answers all that its sender asks but flushes.
    #[test]
    fn mail_for_a_rank_that_is_away_holds_up_its_flush_only() {
        const MANY: u64 = 100;
        let machines = Machines::new(&[0, 1, 1], Slow::Nothing).by_agents();
        let [(_own, writer), (_other, agent), (away, network)] = [0, 1, 2].map(|rank| machines.network(rank));
        let away = Conduit::with_network(away, network);
        away.commit(0..1 << 16).unwrap();
        let (flushed, value) = (Token(7), Token(8));
        let mut events = Vec::new();
        for key in 0..MANY {
            let start = Instant::now();
            let mail = Operation::Mail { rank: 2, mail: Mail { key, words: [key; 3] } };
            // SAFETY: mail touches no memory of the caller.
            while unsafe { writer.issue(&mail, Token::NOBODY) } == Issued::Full {
                assert!(start.elapsed() < Duration::from_secs(20), "letter {key} is refused");
                agent.attend();
                writer.poll(&mut events);
            }
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
        assert!(!until(&is_flushed, Duration::from_millis(200), &mut events), "the flush was answered too early");
        let mut came = Vec::new();
        while came.len() < MANY as usize {
            until(&|_| false, Duration::from_millis(1), &mut events);
            let before = came.len();
            away.poll(&mut came);
            assert!(came.len() <= before + 64, "{} letters at once", came.len() - before);
        }
        let keys: Vec<u64> =
            came.iter().filter_map(|event| if let Event::Mail(0, mail) = event { Some(mail.key) } else { None }).collect();
        assert_eq!(keys, (0..MANY).collect::<Vec<_>>());
        assert!(until(&is_flushed, Duration::from_secs(20), &mut events), "the flush is not answered");
        // The word is in the memory of the rank, not of its agent.
        let add = Atomic { op: AtomicOp::Add, width: 8, operand: 3, comparand: 0 };
        // SAFETY: the word is committed and aligned.
        let _ = unsafe { writer.issue(&Operation::Atomic { word: Remote { rank: 2, offset: 4096 }, atomic: add }, value) };
        assert!(until(&|event| matches!(event, Event::Value(token, 0) if *token == value), Duration::from_secs(20), &mut events));
        // SAFETY: as above.
        assert_eq!(unsafe { away.segment().add(4096).cast::<u64>().read() }, 3);
    }
}
