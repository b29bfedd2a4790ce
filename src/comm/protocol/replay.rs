//! What is posted again after the connection of a pair broke, so that each frame has its effect once and in order.
//!
//! One end of a pair posts *items* on a connection that keeps their order. When it breaks, what was posted last may have happened at the
//! target or not. Doing all of it again would be wrong: a frame that adds would add twice, and a write repeated would erase a sum that
//! a frame behind it made. So the frames are numbered, in each direction of the pair and over all its connections. The first thing on a
//! new connection is the number of the last frame that each end has seen. What was posted before that frame did happen.
//!
//! ```text
//!  posted, not known to be done  | up to the last frame seen  | behind it
//!  ------------------------------+----------------------------+--------------------------------------
//!  frame                         | done                       | again, with its old number
//!  write                         | done                       | again: nothing behind it has happened
//!  read                          | again: its bytes were lost | again
//!  atomic of the adapter         | its outcome is unknown     | its outcome is unknown
//! ```
//!
//! A frame is kept until the peer says that it has handled it, or has seen it on a new connection; the acknowledgement of the adapter is
//! not enough, for a frame that came can still be lost with the queue pair of its target. So what goes past the frames (writes, reads,
//! atomics) waits until every frame before it was handled: the target may handle a frame long after it came, and a frame that is
//! posted again comes after what was completed behind it. Frames wait for nothing, so a write and the frame that tells of it are
//! posted together.
//!
//! ```text
//!  event                         | this end
//!  ------------------------------+------------------------------------------------------------------
//!  an item is posted             | keeps it
//!  an item is completed          | forgets all up to it, but frames that the peer is not known to have seen
//!  a frame has come              | handles it if it is the next one
//!  the peer handled up to n      | forgets the completed frames up to n; writes before them have happened
//!  the connection is over        | posts nothing
//!  a new one is ready            | tells the numbers of the last frames that it has seen and handled, and nothing else
//!  the peer's numbers have come  | forgets the frames that were seen; posts the rest again, in its order
//! ```

/// What an item does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::comm) enum Kind {
    /// Has effects when the target handles it.
    Frame,
    Write,
    Read,
    /// An atomic operation by the adapter.
    Atomic,
}

/// What becomes of an item whose connection broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Fate<H> {
    /// It is to be posted again, a frame with its old number.
    Again(H),
    /// It has happened.
    Done(H),
    /// Nobody knows whether it has happened.
    Unknown(H),
}

/// What a frame that has come is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum Arrival {
    /// To be handled.
    Next,
    /// It was seen before.
    Seen,
    /// One before it is missing: the peer does not keep the protocol.
    Gap,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Posted<H> {
    handle: H,
    kind: Kind,
    /// Of a frame.
    number: u64,
    /// The target has seen this frame, or one behind it.
    happened: bool,
    /// The adapter is done with it.
    completed: bool,
}

/// One end of a pair. `H` is what the driver knows an item by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::comm) struct Replay<H> {
    /// Oldest first.
    posted: Vec<Posted<H>>,
    /// Frames numbered, and those of them that the peer has seen and handled.
    numbered: u64,
    known: u64,
    handled: u64,
    /// The last frame of the peer that has come.
    seen: u64,
    /// The peer has told on this connection what it has seen.
    is_open: bool,
}

impl<H: Copy + PartialEq> Replay<H> {
    /// An end with no connection.
    pub(in crate::comm) fn new() -> Self {
        Replay { posted: Vec::new(), numbered: 0, known: 0, handled: 0, seen: 0, is_open: false }
    }

    /// Whether an item may be posted now.
    pub(in crate::comm) fn may_post(&self, kind: Kind) -> bool {
        self.is_open && (kind == Kind::Frame || self.handled == self.numbered)
    }

    /// Whether all that was posted is known to be done. If not, a connection that is over is to be replaced.
    pub(in crate::comm) fn is_done(&self) -> bool {
        self.posted.is_empty()
    }

    /// An item is posted. The number of a frame.
    pub(in crate::comm) fn posts(&mut self, kind: Kind, handle: H) -> u64 {
        self.numbered += u64::from(kind == Kind::Frame);
        self.posted.push(Posted { handle, kind, number: self.numbered, happened: false, completed: false });
        self.numbered
    }

    /// The adapter has completed an item, and so all before it.
    pub(in crate::comm) fn completed(&mut self, handle: H) {
        let end = self.posted.iter().position(|item| item.handle == handle).map_or(0, |at| at + 1);
        self.posted[..end].iter_mut().for_each(|item| item.completed = true);
        self.forget();
    }

    /// The peer has handled the frames up to this number. None if they were not all sent.
    #[must_use]
    pub(in crate::comm) fn acknowledged(&mut self, number: u64) -> Option<()> {
        self.have_been_seen(number)?;
        self.handled = self.handled.max(number);
        Some(())
    }

    /// A frame has come.
    #[must_use]
    pub(in crate::comm) fn arrived(&mut self, number: u64) -> Arrival {
        match number.checked_sub(self.seen) {
            Some(1) => {
                self.seen = number;
                Arrival::Next
            }
            Some(0) | None => Arrival::Seen,
            Some(_) => Arrival::Gap,
        }
    }

    /// The connection is over; nothing comes from it any more.
    pub(in crate::comm) fn is_over(&mut self) {
        self.is_open = false;
    }

    /// A new connection is ready. What to tell the peer first.
    pub(in crate::comm) fn seen(&self) -> u64 {
        self.seen
    }

    /// The peer has told on a new connection which frame it saw last. What becomes of all that was open, in its order, with the numbers
    /// of frames. None if the peer cannot have seen that.
    pub(in crate::comm) fn reopens(&mut self, number: u64) -> Option<Vec<(Fate<H>, u64)>> {
        if self.is_open || number < self.known {
            return None;
        }
        self.have_been_seen(number)?;
        self.is_open = true;
        let mut fates = Vec::with_capacity(self.posted.len());
        self.posted.retain_mut(|item| {
            item.completed = false;
            let fate = match item.kind {
                Kind::Atomic => Fate::Unknown(item.handle),
                Kind::Frame | Kind::Write if item.happened => Fate::Done(item.handle),
                Kind::Frame | Kind::Write | Kind::Read => Fate::Again(item.handle),
            };
            fates.push((fate, item.number));
            matches!(fate, Fate::Again(_))
        });
        Some(fates)
    }

    /// The peer has seen the frames up to this number, so it has what was posted before them.
    fn have_been_seen(&mut self, number: u64) -> Option<()> {
        if number > self.numbered {
            return None;
        }
        self.known = self.known.max(number);
        // The number of what is no frame is that of the frame before it.
        let has_come = |item: &Posted<H>| item.number < number || item.kind == Kind::Frame && item.number == number;
        self.posted.iter_mut().for_each(|item| item.happened |= has_come(item));
        self.forget();
        Some(())
    }

    /// Forgets what is done and of no more use to the adapter.
    fn forget(&mut self) {
        self.posted.retain(|item| !(item.completed && (item.happened || item.kind != Kind::Frame)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::comm::protocol::simulation::{Random, SEEDS};

    /// What is under way on a connection.
    #[derive(Clone, Copy, Debug)]
    enum Sent {
        Item(Kind, u64, u64),
        Handled(u64),
        Told(u64, u64),
    }

    /// One end: a sender, and the memory that the other one changes.
    struct End {
        replay: Replay<u64>,
        /// Its program: item `k` is the k-th that it posts.
        program: Vec<Kind>,
        next: usize,
        /// Posted and not executed, and executed and not known to be, on this connection.
        channel: VecDeque<Sent>,
        executed: VecDeque<u64>,
        /// How each item ended: times completed, times unknown.
        ended: Vec<(u32, u32)>,
        /// Frames that the adapter has taken, and those that the software has and did not handle yet.
        landed: VecDeque<(u64, u64)>,
        inbox: VecDeque<(u64, u64)>,
        /// What happened here: how often each item of the peer was done, the last number handled, a word.
        done: Vec<u32>,
        arrived: u64,
        handled: u64,
        word: u64,
    }

    struct World {
        ends: [End; 2],
        is_up: bool,
        random: Random,
        breaks: usize,
        repeated: u64,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let mut random = Random::new(seed);
            let mut end = || {
                let kinds = [Kind::Frame, Kind::Frame, Kind::Write, Kind::Write, Kind::Read, Kind::Atomic];
                let program: Vec<Kind> = (0..random.below(16)).map(|_| kinds[random.below(6)]).collect();
                End {
                    replay: Replay::new(),
                    ended: vec![(0, 0); program.len()],
                    program,
                    next: 0,
                    channel: VecDeque::new(),
                    executed: VecDeque::new(),
                    landed: VecDeque::new(),
                    inbox: VecDeque::new(),
                    done: vec![0; 16],
                    arrived: 0,
                    handled: 0,
                    word: 0,
                }
            };
            let ends = [end(), end()];
            let breaks = random.below(5);
            World { ends, is_up: false, random, breaks, repeated: 0 }
        }

        fn connect(&mut self) {
            self.is_up = true;
            for end in &mut self.ends {
                end.channel.push_back(Sent::Told(end.replay.seen(), end.handled));
            }
        }

        fn disconnect(&mut self) {
            self.is_up = false;
            let takes = self.random.one_in(2);
            for at in 0..2 {
                while takes && self.take(at) {}
                let end = &mut self.ends[at];
                end.replay.is_over();
                (end.channel, end.executed, end.landed) = Default::default();
            }
        }

        fn post(&mut self, at: usize) -> bool {
            let end = &mut self.ends[at];
            let Some(&kind) = end.program.get(end.next).filter(|kind| end.replay.may_post(**kind)) else { return false };
            let id = end.next as u64;
            let number = end.replay.posts(kind, id);
            end.channel.push_back(Sent::Item(kind, id, number));
            end.next += 1;
            true
        }

        /// The adapters carry out the oldest item of an end.
        fn execute(&mut self, at: usize) -> bool {
            let Some(sent) = self.ends[at].channel.pop_front() else { return false };
            let [from, to] = if at == 0 { [0, 1] } else { [1, 0] };
            match sent {
                Sent::Item(kind, id, number) => {
                    self.ends[from].executed.push_back(id);
                    let target = &mut self.ends[to];
                    if kind == Kind::Frame {
                        target.landed.push_back((id, number));
                        return true;
                    }
                    // All frames before it were handled, and none behind it has come. A read that is repeated may see more.
                    assert!(target.handled >= number, "{kind:?} {id} came before a frame");
                    assert!(target.arrived == number || kind == Kind::Read, "{kind:?} {id} came after a frame");
                    target.done[id as usize] += 1;
                    if kind == Kind::Write {
                        target.word = 1000 * id;
                    }
                }
                Sent::Handled(number) => self.ends[to].replay.acknowledged(number).unwrap(),
                Sent::Told(seen, handled) => {
                    let end = &mut self.ends[to];
                    let fates = end.replay.reopens(seen).unwrap();
                    end.replay.acknowledged(handled).unwrap();
                    for (fate, number) in fates {
                        match fate {
                            Fate::Again(id) => {
                                self.repeated += 1;
                                end.channel.push_back(Sent::Item(end.program[id as usize], id, number));
                            }
                            Fate::Done(id) => end.ended[id as usize].0 += 1,
                            Fate::Unknown(id) => end.ended[id as usize].1 += 1,
                        }
                    }
                }
            }
            true
        }

        /// The adapter tells that some were carried out.
        fn complete(&mut self, at: usize) -> bool {
            let end = &mut self.ends[at];
            let count = self.random.below(end.executed.len() + 1);
            let Some(last) = end.executed.drain(..count).inspect(|&id| end.ended[id as usize].0 += 1).last() else {
                return false;
            };
            end.replay.completed(last);
            true
        }

        /// The software looks at a frame that has come.
        fn take(&mut self, at: usize) -> bool {
            let end = &mut self.ends[at];
            let Some((id, number)) = end.landed.pop_front() else { return false };
            assert_eq!(end.replay.arrived(number), Arrival::Next);
            end.arrived = number;
            end.inbox.push_back((id, number));
            true
        }

        fn handle(&mut self, at: usize) -> bool {
            let end = &mut self.ends[at];
            let Some((id, number)) = end.inbox.pop_front() else { return false };
            assert_eq!(number, end.handled + 1);
            end.handled = number;
            end.done[id as usize] += 1;
            end.word += id;
            if self.is_up {
                end.channel.push_back(Sent::Handled(number));
            }
            true
        }

        fn step(&mut self) -> bool {
            if !self.is_up {
                let at = self.random.below(3);
                if at == 2 || !self.handle(at) {
                    self.connect();
                }
                return true;
            }
            if self.breaks > 0 && self.random.one_in(12) {
                self.breaks -= 1;
                self.disconnect();
                return true;
            }
            let first = self.random.below(10);
            (first..first + 10).any(|what| {
                let at = what % 2;
                match what % 10 / 2 {
                    0 => self.post(at),
                    1 => self.execute(at),
                    2 => self.complete(at),
                    3 => self.take(at),
                    _ => self.handle(at),
                }
            })
        }
    }

    #[test]
    fn frames_have_their_effect_once_and_in_order_and_no_write_passes_them() {
        let (mut repeated, mut unknown) = (0, 0);
        for seed in 0..SEEDS {
            let mut world = World::new(seed);
            let mut idle = 0;
            while idle < 50 {
                // Nothing is found to complete when none is drawn.
                idle = if world.step() { 0 } else { idle + 1 };
            }
            for (end, other) in [(&world.ends[0], &world.ends[1]), (&world.ends[1], &world.ends[0])] {
                assert_eq!(end.next, end.program.len(), "seed {seed}: hung");
                assert!(end.replay.is_done(), "seed {seed}: {:?}", end.replay);
                let mut word = 0;
                for (id, &kind) in end.program.iter().enumerate() {
                    let (done, (completed, lost)) = (other.done[id], end.ended[id]);
                    match kind {
                        Kind::Frame => assert_eq!(done, 1, "seed {seed}: frame {id}"),
                        Kind::Atomic => {
                            assert!(done <= 1 && completed + lost == 1 && done >= completed, "seed {seed}: atomic {id}")
                        }
                        Kind::Write | Kind::Read => assert!(done >= 1 && completed == 1 && lost == 0, "seed {seed}: {id}"),
                    }
                    unknown += lost;
                    word = match kind {
                        Kind::Frame => word + id as u64,
                        Kind::Write => 1000 * id as u64,
                        Kind::Read | Kind::Atomic => word,
                    };
                }
                assert_eq!(word, other.word, "seed {seed}");
            }
            repeated += world.repeated;
        }
        println!("{repeated} done again, {unknown} unknown");
        assert!(repeated > SEEDS && u64::from(unknown) > SEEDS / 10);
    }

    /// An end with a connection, after these items.
    fn posted(kinds: &[Kind]) -> Replay<u64> {
        let mut replay = Replay::new();
        assert_eq!(replay.reopens(0), Some(Vec::new()));
        (0..).zip(kinds).for_each(|(id, &kind)| drop(replay.posts(kind, id).to_string()));
        replay
    }

    #[test]
    fn what_stood_before_a_frame_that_was_seen_is_not_written_again() {
        let kinds = [Kind::Write, Kind::Read, Kind::Atomic, Kind::Frame, Kind::Write, Kind::Frame];
        let all = posted(&kinds);
        let fates = |mut replay: Replay<u64>, seen| {
            replay.is_over();
            let fates = replay.reopens(seen).unwrap();
            fates.into_iter().map(|(fate, _)| fate).collect::<Vec<_>>()
        };
        use Fate::{Again, Done, Unknown};
        assert_eq!(fates(all.clone(), 0), [Again(0), Again(1), Unknown(2), Again(3), Again(4), Again(5)]);
        assert_eq!(fates(all.clone(), 1), [Done(0), Again(1), Unknown(2), Done(3), Again(4), Again(5)]);
        assert_eq!(fates(all.clone(), 2), [Done(0), Again(1), Unknown(2), Done(3), Done(4), Done(5)]);
        // Known from an acknowledgement, before the connection broke.
        let mut known = all.clone();
        known.acknowledged(1).unwrap();
        assert_eq!(fates(known.clone(), 1), [Done(0), Again(1), Unknown(2), Done(3), Again(4), Again(5)]);
        // Both known and completed: nothing is left of it, nor of what was before.
        known.completed(3);
        assert_eq!(fates(known, 1), [Again(4), Again(5)]);
        let mut complete = all;
        complete.completed(2);
        assert_eq!(fates(complete.clone(), 0), [Again(3), Again(4), Again(5)]);
        // A frame that the adapter has delivered may still be lost.
        complete.completed(5);
        assert_eq!(fates(complete.clone(), 0), [Again(3), Again(5)]);
        assert_eq!(fates(complete.clone(), 2), []);
        // Posted again, it is no longer complete.
        complete.is_over();
        complete.reopens(0).unwrap();
        complete.acknowledged(2).unwrap();
        assert_eq!(fates(complete, 2), [Done(3), Done(5)]);
    }

    #[test]
    fn a_number_that_cannot_be_is_refused() {
        let mut replay = posted(&[Kind::Frame, Kind::Frame, Kind::Frame]);
        assert_eq!((replay.acknowledged(4), replay.acknowledged(2)), (None, Some(())));
        assert_eq!(replay.reopens(3), None, "it is open");
        replay.is_over();
        assert_eq!((replay.reopens(4), replay.reopens(1)), (None, None));
        assert_eq!(replay.reopens(2), Some(vec![(Fate::Done(0), 1), (Fate::Done(1), 2), (Fate::Again(2), 3)]));
        let arrivals = [1, 1, 3, 2, 3, 0, u64::MAX].map(|number| replay.arrived(number));
        use Arrival::{Gap, Next, Seen};
        assert_eq!(arrivals, [Next, Seen, Gap, Next, Next, Seen, Gap]);
        assert_eq!(replay.seen(), 3);
    }

    #[test]
    fn what_goes_past_the_frames_waits_until_they_are_handled() {
        let mut replay = posted(&[Kind::Frame]);
        let may = |replay: &Replay<u64>| [Kind::Frame, Kind::Write, Kind::Read, Kind::Atomic].map(|kind| replay.may_post(kind));
        assert_eq!(may(&replay), [true, false, false, false]);
        replay.completed(0);
        assert_eq!(may(&replay), [true, false, false, false]);
        replay.is_over();
        assert_eq!(may(&replay), [false; 4]);
        // It was seen. That is not enough.
        assert_eq!(replay.reopens(1), Some(Vec::new()));
        assert_eq!(may(&replay), [true, false, false, false]);
        replay.acknowledged(1).unwrap();
        assert_eq!(may(&replay), [true; 4]);
    }
}
