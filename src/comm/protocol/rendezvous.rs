//! The target's side of a rendezvous: the requests of one peer in their order, and the messages that they announce.
//!
//! A record may announce a *message*: bytes that travel beside the frames. The record is done when its message is being received. What it
//! asked for happens when the bytes have come and all before it is done. Meanwhile only further announcements of this peer are handled, so
//! that its messages travel at the same time.
//!
//! ```text
//!  next is                           | when
//!  ----------------------------------+-------------------------------------------------------------------------
//!  the oldest message                | it has come
//!  a record                          | no message is under way
//!  an announcement, into a buffer    | fewer than BESIDE messages are under way; if other peers wait, none
//!  an announcement, into the segment | the same, and each of those goes to another range of the segment
//! ```
//!
//! The network writes messages into the segment in any order. Hence the last line: ranges that overlap would end with the bytes of either.
//! A buffer hides what comes until its turn. Its effect on the segment is unknown before, so a message into the segment does not pass it.
//!
//! What is not ready waits with everything behind it, within the peer's credit. So does a record whose answer finds no memory. All peers
//! share the memory for buffers: one that gave some back lets the others that wait go first.

use std::{collections::VecDeque, ops::Range};

/// The most messages of one peer that are received at a time.
const BESIDE: usize = 4;

/// What one peer asked for and is not done. `F` is a frame whose last records are not handled, `B` a buffer.
#[derive(Debug)]
pub(in crate::comm) struct Requests<F, B> {
    frames: VecDeque<F>,
    /// Messages announced, in the order of their records.
    messages: VecDeque<BulkMessage<B>>,
    /// The number of the first of them.
    oldest: u64,
    /// A buffer was given back, and then nothing else was done.
    gave: bool,
}

#[derive(Debug)]
struct BulkMessage<B> {
    len: usize,
    to: ReceivePlace<B>,
    has_come: bool,
}

/// Where a message is received.
#[derive(Debug)]
pub(in crate::comm) enum ReceivePlace<B> {
    /// In this range of the segment.
    Segment(Range<usize>),
    Buffer(B),
}

/// What is to be done next.
#[derive(Debug)]
pub(in crate::comm) enum Next<F, B> {
    /// Do what the announcement of this buffer asked for, with this number of bytes.
    Message(B, usize),
    /// Handle the records of this frame, one after the other. A frame with records left goes back by [`Requests::put_back`].
    Frame(F),
    /// Nothing now.
    Nothing,
}

impl<F, B> Default for Requests<F, B> {
    fn default() -> Self {
        Requests { frames: VecDeque::new(), messages: VecDeque::new(), oldest: 0, gave: false }
    }
}

impl<F, B> Requests<F, B> {
    /// Returns true if all is done.
    pub(in crate::comm) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.messages.is_empty()
    }

    /// A frame has come. Returns true if its turn is now, because nothing waits.
    pub(in crate::comm) fn arrived(&mut self, frame: F) -> bool {
        let turn = self.is_empty();
        self.frames.push_back(frame);
        turn
    }

    /// The next thing to do. The driver asks again until it is nothing or a frame goes back.
    pub(in crate::comm) fn next(&mut self, others_wait: bool) -> Next<F, B> {
        while self.messages.front().is_some_and(|message| message.has_come)
            && let Some(BulkMessage { len, to, .. }) = self.messages.pop_front()
        {
            self.oldest += 1;
            if let ReceivePlace::Buffer(buffer) = to {
                self.gave = true;
                return Next::Message(buffer, len);
            }
        }
        if std::mem::take(&mut self.gave) && others_wait {
            return Next::Nothing;
        }
        self.frames.pop_front().map_or(Next::Nothing, Next::Frame)
    }

    /// A record of the frame that was next cannot be done now.
    pub(in crate::comm) fn put_back(&mut self, frame: F) {
        self.frames.push_front(frame);
    }

    /// Returns true if a record that announces nothing may be handled.
    pub(in crate::comm) fn may_handle(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns true if a message may be received, into a range of the segment or into a buffer.
    pub(in crate::comm) fn may_receive(&self, range: Option<&Range<usize>>, others_wait: bool) -> bool {
        let most = if others_wait { 1 } else { BESIDE };
        self.messages.len() < most && range.is_none_or(|range| self.messages.iter().all(|message| message.is_apart(range)))
    }

    /// A message of `len` bytes is being received. Returns its number.
    pub(in crate::comm) fn receives(&mut self, len: usize, to: ReceivePlace<B>) -> u64 {
        self.messages.push_back(BulkMessage { len, to, has_come: false });
        self.oldest + self.messages.len() as u64 - 1
    }

    /// The message of this number has come. Returns none if it is not as long as was announced.
    #[must_use]
    pub(in crate::comm) fn has_come(&mut self, number: u64, len: usize) -> Option<()> {
        let at = usize::try_from(number.checked_sub(self.oldest)?).ok()?;
        let message = self.messages.get_mut(at).filter(|message| message.len == len)?;
        message.has_come = true;
        Some(())
    }
}

impl<B> BulkMessage<B> {
    /// Returns true if it is certain to leave a range of the segment alone.
    fn is_apart(&self, range: &Range<usize>) -> bool {
        match &self.to {
            ReceivePlace::Segment(own) => own.end <= range.start || range.end <= own.start,
            ReceivePlace::Buffer(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::protocol::simulation::{Channels, Random, SEEDS};

    /// Cells of the segment that one peer writes.
    const CELLS: usize = 12;

    /// Buffers for all peers.
    const BUFFERS: usize = 3;

    /// What a record of the simulation asks for: to write its number into a range.
    #[derive(Clone, Debug)]
    struct Op {
        kind: Kind,
        range: Range<usize>,
        done: bool,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        Record,
        IntoSegment,
        IntoBuffer,
    }

    /// A message under way: cells of the segment that it has not written.
    #[derive(Debug)]
    struct UnderWay {
        number: u64,
        op: usize,
        unwritten: Vec<usize>,
    }

    #[derive(Debug, Default)]
    struct Peer {
        ops: Vec<Op>,
        /// What the target keeps of it. A frame is a range of operations, a buffer belongs to one.
        requests: Requests<Range<usize>, usize>,
        under_way: Vec<UnderWay>,
        segment: [usize; CELLS],
    }

    struct World {
        peers: Vec<Peer>,
        frames: Channels<Range<usize>>,
        waiting: VecDeque<usize>,
        buffers: usize,
        most_under_way: usize,
    }

    impl World {
        fn new(random: &mut Random) -> Self {
            let mut frames = Channels::new(3);
            let peers = (0..3).map(|peer| {
                let ops: Vec<Op> = (0..random.below(24))
                    .map(|_| {
                        let kind = [Kind::Record, Kind::IntoSegment, Kind::IntoBuffer][random.below(3)];
                        let start = random.below(CELLS);
                        Op { kind, range: start..CELLS.min(start + 1 + random.below(4)), done: false }
                    })
                    .collect();
                let mut sent = 0;
                while sent < ops.len() {
                    let end = ops.len().min(sent + 1 + random.below(4));
                    frames.send(peer, sent..end);
                    sent = end;
                }
                Peer { ops, ..Peer::default() }
            });
            let peers = peers.collect();
            World { peers, frames, waiting: VecDeque::new(), buffers: BUFFERS, most_under_way: 0 }
        }

        fn others_wait(&self) -> bool {
            !self.waiting.is_empty()
        }

        /// Does what can be done for a peer that is not in the list of those that wait.
        fn resume(&mut self, peer: usize, random: &mut Random) {
            assert!(!self.waiting.contains(&peer), "its turn comes later");
            loop {
                let others_wait = self.others_wait();
                match self.peers[peer].requests.next(others_wait) {
                    Next::Message(op, len) => {
                        assert_eq!(len, self.peers[peer].ops[op].range.len());
                        self.buffers += 1;
                        self.write(peer, op);
                    }
                    Next::Frame(mut frame) => {
                        while !frame.is_empty() && self.try_record(peer, frame.start, random).is_some() {
                            frame.start += 1;
                        }
                        if !frame.is_empty() {
                            self.peers[peer].requests.put_back(frame);
                            break;
                        }
                    }
                    Next::Nothing => break,
                }
            }
            if !self.peers[peer].requests.is_empty() {
                self.waiting.push_back(peer);
            }
        }

        fn try_record(&mut self, peer: usize, op: usize, random: &mut Random) -> Option<()> {
            let others_wait = self.others_wait();
            let Peer { ops, requests, .. } = &mut self.peers[peer];
            let Op { kind, range, .. } = ops[op].clone();
            let (to, unwritten) = match kind {
                Kind::Record => {
                    // Sometimes there is no memory for its answer.
                    (requests.may_handle() && !random.one_in(8)).then_some(())?;
                    self.write(peer, op);
                    return Some(());
                }
                Kind::IntoSegment => {
                    requests.may_receive(Some(&range), others_wait).then_some(())?;
                    (ReceivePlace::Segment(range.clone()), range.clone().collect())
                }
                Kind::IntoBuffer => {
                    requests.may_receive(None, others_wait).then_some(())?;
                    self.buffers = self.buffers.checked_sub(1)?;
                    (ReceivePlace::Buffer(op), Vec::new())
                }
            };
            let number = requests.receives(range.len(), to);
            self.peers[peer].under_way.push(UnderWay { number, op, unwritten });
            let mut cells: Vec<usize> = self.peers[peer].under_way.iter().flat_map(|message| message.unwritten.clone()).collect();
            cells.sort_unstable();
            assert!(cells.is_sorted_by(|a, b| a < b), "two messages write one cell");
            let under_way = self.peers[peer].ops[..=op].iter().filter(|op| op.kind != Kind::Record && !op.done).count();
            assert!(!others_wait || under_way == 1, "{under_way} messages of one peer, while others wait");
            self.most_under_way = self.most_under_way.max(under_way);
            Some(())
        }

        /// A record is handled, or the buffer of one taken in.
        fn write(&mut self, peer: usize, op: usize) {
            let Peer { ops, segment, .. } = &mut self.peers[peer];
            assert!(ops[..op].iter().all(|before| before.done), "record {op} before one that was sent earlier: {ops:?}");
            let Op { range, done, .. } = &mut ops[op];
            assert!(!std::mem::replace(done, true), "record {op} twice");
            segment[range.clone()].fill(op + 1);
        }

        /// A message writes a cell into the segment, or has come.
        fn bytes_come(&mut self, peer: usize, random: &mut Random) -> Option<()> {
            let Peer { ops, requests, under_way, segment } = &mut self.peers[peer];
            let at = (!under_way.is_empty()).then(|| random.below(under_way.len()))?;
            let UnderWay { number, op, unwritten } = &mut under_way[at];
            if !unwritten.is_empty() {
                segment[unwritten.swap_remove(random.below(unwritten.len()))] = *op + 1;
                return Some(());
            }
            assert_eq!(requests.has_come(*number, ops[*op].range.len()), Some(()));
            ops[*op].done = ops[*op].kind == Kind::IntoSegment;
            under_way.swap_remove(at);
            Some(())
        }

        fn step(&mut self, random: &mut Random) {
            match random.below(8) {
                0..3 => {
                    if let Some((peer, frame)) = self.frames.receive(random)
                        && self.peers[peer].requests.arrived(frame)
                    {
                        self.resume(peer, random);
                    }
                }
                3..7 => {
                    let first = random.below(self.peers.len());
                    (0..self.peers.len()).find_map(|k| self.bytes_come((first + k) % self.peers.len(), random));
                }
                _ => {
                    for _ in 0..self.waiting.len() {
                        let Some(peer) = self.waiting.pop_front() else { break };
                        self.resume(peer, random);
                    }
                }
            }
        }

        fn is_done(&self) -> bool {
            self.peers.iter().all(|peer| peer.requests.is_empty() && peer.ops.iter().all(|op| op.done))
        }
    }

    #[test]
    fn records_do_what_they_would_do_one_after_the_other() {
        let mut most_under_way = 0;
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let mut world = World::new(&mut random);
            for step in 0.. {
                if world.is_done() {
                    break;
                }
                assert!(step < 10_000, "seed {seed}: a request is never handled");
                world.step(&mut random);
            }
            for peer in &world.peers {
                let mut expected = [0; CELLS];
                (1..).zip(&peer.ops).for_each(|(number, op)| expected[op.range.clone()].fill(number));
                assert_eq!(peer.segment, expected, "seed {seed}: {:?}", peer.ops);
            }
            assert_eq!(world.buffers, BUFFERS, "seed {seed}");
            most_under_way = most_under_way.max(world.most_under_way);
        }
        assert_eq!(most_under_way, BESIDE);
    }

    #[test]
    fn who_gives_a_buffer_back_lets_others_go_first() {
        let mut requests = Requests::default();
        assert!(requests.arrived("one") && !requests.arrived("two"));
        assert!(matches!(requests.next(true), Next::Frame("one")));
        let number = requests.receives(8, ReceivePlace::Buffer("buffer"));
        requests.put_back("rest of one");
        assert_eq!(requests.has_come(number, 8), Some(()));
        assert!(matches!(requests.next(true), Next::Message("buffer", 8)));
        assert!(matches!(requests.next(true), Next::Nothing));
        assert!(matches!(requests.next(true), Next::Frame("rest of one")));
    }

    #[test]
    fn a_message_of_another_length_is_found() {
        let mut requests = Requests::<(), ()>::default();
        let number = requests.receives(8, ReceivePlace::Segment(0..8));
        assert_eq!(requests.has_come(number, 7), None);
        assert_eq!(requests.has_come(number + 1, 8), None);
        assert_eq!(requests.has_come(number, 8), Some(()));
        assert!(matches!(requests.next(false), Next::Nothing));
        assert_eq!(requests.has_come(number, 8), None);
    }
}
