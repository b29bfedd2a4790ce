//! What a rank does for others when their records arrive.
//!
//! The handlers copy, add and apply, and append one answer. They never wait for another node, so two ranks that handle each
//! other's records always come to an end.

use super::{
    ffi::Result,
    frame::{Frame, Kind, Record},
    memory::{pack, unpack},
    net::{Net, Then, tag},
    runs::Runs,
};
use crate::{
    comm::{AtomicOp, Event, MAX_MESSAGE, Numeric, Scale, addition},
    memory::word::WaitWord,
};

impl Net {
    /// Does what a frame asks for.
    pub(super) fn handle(&mut self, from: usize, frame: &Frame, len: usize) -> Result<()> {
        let Some((acknowledged, credit, records)) = frame.read(len) else { return Ok(()) };
        for record in records {
            if self.handle_record(from, &record)?.is_none() {
                // Nobody who runs this program sends such a thing; who waits for an answer must not wait for ever.
                self.ended.get_or_insert_with(|| (from, format!("sent a request that cannot be: {:?}", record.kind)));
            }
        }
        self.account(from, acknowledged, credit);
        Ok(())
    }

    /// Answers none if the record cannot be right.
    fn handle_record(&mut self, from: usize, record: &Record<'_>) -> Result<Option<()>> {
        match record.kind {
            Kind::Put => {
                let Some([offset]) = record.words() else { return Ok(None) };
                let runs = Runs::one(record.payload.len());
                Ok(self.write(offset, &runs, 0, record.payload))
            }
            Kind::PutBlock => {
                let Some(([offset, _, at], runs)) = block(record) else { return Ok(None) };
                Ok(self.write(offset, &runs, at, record.payload))
            }
            Kind::PutSignal => Ok(self.put_signal(record)),
            Kind::Get => {
                let Some([offset, len, at, origin]) = record.words() else { return Ok(None) };
                self.read(from, offset, &Runs::one(len), 0, len, [origin, at])
            }
            Kind::GetBlock => {
                let Some(([offset, _, at, len, origin], runs)) = block(record) else { return Ok(None) };
                self.read(from, offset, &runs, at, len, [origin, at])
            }
            Kind::Data => {
                let Some([origin, at]) = record.words() else { return Ok(None) };
                self.data_came(from, origin, at, record.payload);
                Ok(Some(()))
            }
            Kind::Accumulate => Ok(self.accumulate(record)),
            Kind::Atomic => {
                let Some(&[offset, operand, comparand, origin, width]) = record.words.first_chunk::<5>() else { return Ok(None) };
                let Some(op) = AtomicOp::of_code(record.aux) else { return Ok(None) };
                let Some(value) = self.segment.apply(offset as usize, op, width as usize, operand, comparand) else {
                    return Ok(None);
                };
                self.answer(from, Kind::Value, &[origin, value], 0, |_| ()).map(Some)
            }
            Kind::Value => {
                let Some([origin, value]) = record.words.first_chunk::<2>() else { return Ok(None) };
                self.value_came(*origin as usize, *value);
                Ok(Some(()))
            }
            Kind::PutLong | Kind::GetLong => self.long(from, record),
            Kind::LongDone => {
                self.long_done(from);
                Ok(Some(()))
            }
            Kind::Flush => {
                let Some([origin]) = record.words.first_chunk::<1>() else { return Ok(None) };
                // Release pairs with the acquire of whoever is told: everything before was stored by this thread.
                std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                self.answer(from, Kind::Value, &[*origin, 0], 0, |_| ()).map(Some)
            }
            Kind::Message => {
                let len = record.payload.len().min(MAX_MESSAGE);
                let mut bytes = [0; MAX_MESSAGE];
                bytes[..len].copy_from_slice(&record.payload[..len]);
                self.events.push(Event::Message { from, bytes, len });
                Ok(Some(()))
            }
            Kind::End => {
                let Some([culprit]) = record.words() else { return Ok(None) };
                self.ended.get_or_insert_with(|| (culprit, String::from_utf8_lossy(record.payload).into_owned()));
                Ok(Some(()))
            }
        }
    }

    fn write(&mut self, offset: usize, runs: &Runs, at: usize, bytes: &[u8]) -> Option<()> {
        let base = self.segment.runs(offset, runs)?;
        let all = runs.bytes()?;
        (at <= all && bytes.len() <= all - at).then_some(())?;
        // SAFETY: the runs lie inside the segment, which everybody accesses by kernels and atomics.
        unsafe { unpack(base, runs, at, bytes) };
        Some(())
    }

    fn read(&mut self, from: usize, offset: usize, runs: &Runs, at: usize, len: usize, head: [usize; 2]) -> Result<Option<()>> {
        let (Some(base), Some(all)) = (self.segment.runs(offset, runs), runs.bytes()) else { return Ok(None) };
        if at > all || len > all - at || len > Frame::room_when_empty(super::net::FRAME, 2, 0) {
            return Ok(None);
        }
        self.answer(from, Kind::Data, &head.map(|word| word as u64), len, |bytes| {
            // SAFETY: as in `write`.
            unsafe { pack(base, runs, at, bytes) }
        })
        .map(Some)
    }

    fn put_signal(&mut self, record: &Record<'_>) -> Option<()> {
        let &[offset, word, value] = record.words.first_chunk::<3>()?;
        let at = self.segment.range(word as usize, size_of::<WaitWord>()).filter(|at| at.cast::<WaitWord>().is_aligned())?;
        if !record.payload.is_empty() {
            self.write(offset as usize, &Runs::one(record.payload.len()), 0, record.payload)?;
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
        Some(())
    }

    /// Adds under the lock that processors of this node take.
    fn accumulate(&mut self, record: &Record<'_>) -> Option<()> {
        let ([offset, run, at, lock], runs) = block(record)?;
        let mut alpha = [0; 16];
        alpha.copy_from_slice(bytemuck::cast_slice(record.words.get(4..6)?));
        let scale = Scale { kind: Numeric::from_code(record.aux)?, alpha };
        let (base, len) = (self.segment.base(), self.segment.len());
        let all = runs.bytes()?;
        (runs.lie_inside(offset, len) && at <= all && record.payload.len() <= all - at).then_some(())?;
        let add = |first: usize, count: usize, within: usize, run: usize| {
            let offsets = (first..first + count).map(|index| offset.wrapping_add_signed(runs.start(index)) + within);
            let segment = addition::Segment { base, len };
            // SAFETY: the segment stays mapped while the conduit lives; `lock` is the offset that all ranks gave their accumulate
            // lock, the payload is as long as the runs.
            unsafe { addition::add(segment, lock, &scale, offsets, run, record.payload.as_ptr(), self.over.get()) }
        };
        let bytes = record.payload.len();
        let added = if at.is_multiple_of(run) && bytes.is_multiple_of(run) {
            add(at / run, bytes / run, 0, run)
        } else {
            (at % run + bytes <= run).then_some(())?;
            add(at / run, 1, at % run, bytes)
        };
        // After the end of the job nobody asks for the sum.
        (added != Err(addition::Refused::Malformed)).then_some(())
    }

    fn long(&mut self, from: usize, record: &Record<'_>) -> Result<Option<()>> {
        let Some([offset, len, number]) = record.words() else { return Ok(None) };
        let Some(memory) = self.segment.range(offset, len) else { return Ok(None) };
        let (put, number) = (record.kind == Kind::PutLong, number as u64);
        // SAFETY: inside the segment, which stays mapped while the conduit lives; a racing access of a transfer gives each byte old
        // or new.
        let request = unsafe {
            match put {
                true => self.comm().begin_receive(memory, len, Some(from), tag(number, put))?,
                false => self.comm().begin_send(memory, len, from, tag(number, put))?,
            }
        };
        self.begin_long(request, if put { Then::Tell { peer: from, number } } else { Then::Nothing });
        Ok(Some(()))
    }
}

/// The first words and the runs of a record whose second word is the length of a run.
fn block<const N: usize>(record: &Record<'_>) -> Option<([usize; N], Runs)> {
    let words: [usize; N] = record.words()?;
    let runs = Runs::of_record(words[1], record.levels())?;
    Some((words, runs))
}
