//! Operations as records: as much of each as a frame has room for.

use std::sync::Arc;

use bytemuck::cast_slice;

use super::{
    frame::{Frame, RecordKind},
    long_frames::LONG_FRAME,
    memory::pack,
    peer::{ASKED, Block, BlockKind, Op},
    runs::Runs,
    wire::Limits,
};
use crate::comm::{SignalOp, Token};

/// Long answers on their way here, from all peers together, and still more are asked for.
pub(super) const LONG_ANSWERS: usize = 12;

/// How much of an operation found room in a frame.
pub(super) enum Written {
    All,
    Some,
    NoRoom,
    /// Some, into a long frame; more may follow.
    Beside,
    /// The rest can be written when something has come, or left.
    Later,
}

/// What was asked for and has not come: bytes of the peer, long answers of all.
pub(super) struct Asking<'a> {
    pub(super) bytes: &'a mut usize,
    pub(super) long: &'a mut usize,
    pub(super) limits: Limits,
}

impl Asking<'_> {
    fn enough(&self) -> bool {
        *self.bytes >= ASKED || *self.long >= LONG_ANSWERS
    }

    fn add(&mut self, bytes: usize) {
        *self.bytes += bytes;
        *self.long += usize::from(self.limits.is_long(bytes));
    }
}

/// Writes what fits of an operation into a frame.
pub(super) fn write(op: &mut Op, frame: &mut Frame, mut asking: Asking<'_>) -> Written {
    match op {
        Op::Small { kind, aux, words, .. } => {
            if !frame.has_room(words.len(), 0, 0) {
                return Written::NoRoom;
            }
            frame.push(*kind, *aux, words, &[], 0);
            Written::All
        }
        Op::Note(note) => {
            let (words, text) = note.record();
            if !frame.has_room(words.len(), 0, text.len()) {
                return Written::NoRoom;
            }
            frame.push(RecordKind::Note, 0, &words, &[], text.len()).copy_from_slice(text);
            Written::All
        }
        Op::Change { .. } => Written::Later,
        Op::Long { .. } if !frame.has_room(3, 0, 0) => Written::NoRoom,
        Op::Long { .. } => Written::All,
        Op::Put { offset, local, len, at, .. } => {
            let room = frame.room(1, 0);
            if room == 0 || room < MINIMUM.min(*len - *at) {
                return Written::NoRoom;
            }
            let part = room.min(*len - *at);
            let to = frame.push(RecordKind::Put, 0, &[(*offset + *at) as u64], &[], part);
            // SAFETY: the caller's memory is readable until its completion is polled.
            unsafe { pack(local.wrapping_add(*at), &Runs::one(part), 0, to) };
            *at += part;
            if at == len { Written::All } else { Written::Some }
        }
        Op::PutSignal { offset, local, len, signal, .. } => {
            // A record's words and its payload, or not even its words.
            if !frame.has_room(3, 0, *len) {
                return Written::NoRoom;
            }
            let words = [*offset as u64, signal.offset as u64, u64::from(signal.value)];
            let to = frame.push(RecordKind::PutSignal, u8::from(signal.op == SignalOp::Add), &words, &[], *len);
            if *len > 0 {
                // SAFETY: as above.
                unsafe { pack(*local, &Runs::one(*len), 0, to) };
            }
            Written::All
        }
        Op::Append { place, packed, at } => {
            let (rest, room) = (&packed[*at..], frame.room(place.len(), 0) / size_of::<u64>());
            // Short ones are not cut.
            if room < rest.len().min(MINIMUM / size_of::<u64>()) {
                return Written::NoRoom;
            }
            let part = &rest[..rest.len().min(room)];
            let follows = part.len() < rest.len();
            frame.push(RecordKind::Append, u8::from(follows), place, &[], size_of_val(part)).copy_from_slice(cast_slice(part));
            *at += part.len();
            if follows { Written::Some } else { Written::All }
        }
        Op::Get { offset, len, at, origin, .. } => {
            while *at < *len {
                if asking.enough() {
                    return Written::Later;
                }
                if !frame.has_room(4, 0, 0) {
                    return Written::NoRoom;
                }
                let part = (*len - *at).min(asking.limits.most_asked(*len - *at));
                frame.push(RecordKind::Get, 0, &[(*offset + *at) as u64, part as u64, *at as u64, *origin], &[], 0);
                asking.add(part);
                *at += part;
            }
            Written::All
        }
        Op::Block(block) => write_block(block, frame, asking),
    }
}

/// Bytes for which a put does not begin in a frame that is nearly full.
const MINIMUM: usize = 256;

/// The same of a block.
pub(super) fn write_block(block: &mut Block, frame: &mut Frame, mut asking: Asking<'_>) -> Written {
    let (levels, there) = (block.there.levels(), &block.there);
    let run = there.run() as u64;
    while block.at < block.len {
        let (at, rest) = (block.at, block.len - block.at);
        match block.what {
            BlockKind::Get { origin } => {
                if asking.enough() {
                    return Written::Later;
                }
                if !frame.has_room(5, levels.len(), 0) {
                    return Written::NoRoom;
                }
                let Some(part) = there.piece(at, rest, asking.limits.most_asked(rest), 1) else { return Written::NoRoom };
                let words = [block.offset as u64, run, at as u64, part as u64, origin];
                frame.push(RecordKind::GetBlock, 0, &words, levels, 0);
                asking.add(part);
                block.at += part;
            }
            BlockKind::Put => {
                let Some(part) = there.piece(at, rest, frame.room(3, levels.len()), 1) else { return Written::NoRoom };
                let to = frame.push(RecordKind::PutBlock, 0, &[block.offset as u64, run, at as u64], levels, part);
                // SAFETY: the caller's memory is readable until its completion is polled.
                unsafe { pack(block.local, &block.here, at, to) };
                block.at += part;
            }
            BlockKind::Accumulate { lock, numbers, alpha } => {
                let Some(part) = there.piece(at, rest, frame.room(6, levels.len()), NUMBER) else { return Written::NoRoom };
                let words = [block.offset as u64, run, at as u64, lock as u64, alpha[0], alpha[1]];
                let to = frame.push(RecordKind::Accumulate, numbers, &words, levels, part);
                // SAFETY: as above.
                unsafe { pack(block.local, &block.here, at, to) };
                block.at += part;
            }
        }
    }
    Written::All
}

/// A piece of a block whose bytes lie packed in the caller's memory.
pub(super) struct BlockPiece {
    pub(super) local: *mut u8,
    pub(super) len: usize,
    pub(super) of: Of,
}

/// What the piece belongs to.
pub(super) enum Of {
    Put(Arc<Token>),
    Get { token: Token, origin: u64 },
}

/// Announces the next piece of such a block by a record. None if that has no room.
pub(super) fn announce(block: &mut Block, frame: &mut Frame, number: u64) -> Option<BlockPiece> {
    let (levels, run) = (block.there.levels(), block.there.run() as u64);
    if !frame.has_room(8, levels.len(), 0) {
        return None;
    }
    let (at, token) = (block.at, block.token);
    let len = block.there.piece(at, block.len - at, even_part(block.there.run(), at), NUMBER)?;
    let [offset, from, bytes] = [block.offset, at, len].map(|word| word as u64);
    let of = match block.what {
        BlockKind::Get { origin } => {
            frame.push(RecordKind::GetBlockLong, 0, &[offset, run, from, bytes, number], levels, 0);
            Of::Get { token, origin }
        }
        BlockKind::Put => {
            frame.push(RecordKind::PutBlockLong, 0, &[offset, run, from, bytes, number], levels, 0);
            Of::Put(block.straight.clone()?)
        }
        BlockKind::Accumulate { lock, numbers, alpha } => {
            let words = [offset, run, from, lock as u64, alpha[0], alpha[1], bytes, number];
            frame.push(RecordKind::AccumulateLong, numbers, &words, levels, 0);
            Of::Put(block.straight.clone()?)
        }
    };
    block.at += len;
    Some(BlockPiece { local: block.local.wrapping_add(at), len, of })
}

/// Bytes of a piece that begins at packed byte `at`: as many as a long frame takes, or, of runs longer than that, a part that leaves
/// the others as long.
fn even_part(run: usize, at: usize) -> usize {
    if run <= LONG_FRAME {
        return LONG_FRAME;
    }
    let rest = run - at % run;
    rest.div_ceil(rest.div_ceil(LONG_FRAME)).next_multiple_of(NUMBER).min(LONG_FRAME)
}

/// Bytes of the longest number that is added: a piece of a run holds whole ones.
const NUMBER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_cut_evenly() {
        assert_eq!(even_part(4096, 8192), LONG_FRAME);
        for (run, parts) in [(LONG_FRAME + 1024, 2), (1 << 20, 2), ((1 << 20) + 16, 3), (5 * LONG_FRAME, 5)] {
            let (mut at, mut least, mut count) = (0, usize::MAX, 0);
            while at < run {
                let part = even_part(run, at).min(run - at);
                (at, least, count) = (at + part, least.min(part), count + 1);
            }
            assert_eq!((at, count), (run, parts));
            assert!(least >= run / parts - NUMBER * parts);
        }
    }
}
