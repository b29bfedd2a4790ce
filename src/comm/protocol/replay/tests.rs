//! Two ends that post to each other over connections that break.

use std::collections::VecDeque;

use super::*;
use crate::comm::protocol::simulation::{Random, SEEDS};

/// What is under way on a connection.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Item(ItemKind, u64, u64),
    Handled(u64),
    Told(u64, u64),
}

/// One end: a sender, and the memory that the other one changes.
struct End {
    replay: Replay<u64>,
    /// Its program: item `k` is the k-th that it posts.
    program: Vec<ItemKind>,
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

impl End {
    /// The peer says that it has handled the frames up to this number.
    fn heard_of(&mut self, number: u64) {
        self.replay.acknowledged(number, |_| {}).unwrap();
        if self.program[..self.next].iter().filter(|kind| **kind == ItemKind::Frame).count() as u64 == number {
            self.replay.all_are_handled();
        }
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut end = || {
            let kinds = [ItemKind::Frame, ItemKind::Frame, ItemKind::Write, ItemKind::Write, ItemKind::Read, ItemKind::Atomic];
            let program: Vec<ItemKind> = (0..random.below(16)).map(|_| kinds[random.below(6)]).collect();
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
                if kind == ItemKind::Frame {
                    target.landed.push_back((id, number));
                    return true;
                }
                // All frames before it were handled, and none behind it has come. A read that is repeated may see more.
                assert!(target.handled >= number, "{kind:?} {id} came before a frame");
                assert!(target.arrived == number || kind == ItemKind::Read, "{kind:?} {id} came after a frame");
                target.done[id as usize] += 1;
                if kind == ItemKind::Write {
                    target.word = 1000 * id;
                }
            }
            Sent::Handled(number) => self.ends[to].heard_of(number),
            Sent::Told(seen, handled) => {
                let end = &mut self.ends[to];
                let fates = end.replay.reopens(seen, |_| {}).unwrap();
                end.heard_of(handled);
                for (fate, number) in fates {
                    match fate {
                        ItemFate::Again(id) => {
                            self.repeated += 1;
                            end.channel.push_back(Sent::Item(end.program[id as usize], id, number));
                        }
                        ItemFate::Done(id) => end.ended[id as usize].0 += 1,
                        ItemFate::Unknown(id) => end.ended[id as usize].1 += 1,
                    }
                }
            }
        }
        true
    }

    /// The adapter reports that some items were carried out.
    fn complete(&mut self, at: usize) -> bool {
        let end = &mut self.ends[at];
        let count = self.random.below(end.executed.len() + 1);
        let Some(last) = end.executed.drain(..count).inspect(|&id| end.ended[id as usize].0 += 1).last() else {
            return false;
        };
        end.replay.completed(last, |_| {});
        true
    }

    /// The software looks at a frame that has come.
    fn take(&mut self, at: usize) -> bool {
        let end = &mut self.ends[at];
        let Some((id, number)) = end.landed.pop_front() else { return false };
        assert_eq!(end.replay.arrived(number), FrameArrival::Next);
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
                    ItemKind::Frame => assert_eq!(done, 1, "seed {seed}: frame {id}"),
                    ItemKind::Atomic => {
                        assert!(done <= 1 && completed + lost == 1 && done >= completed, "seed {seed}: atomic {id}")
                    }
                    ItemKind::Write | ItemKind::Read => assert!(done >= 1 && completed == 1 && lost == 0, "seed {seed}: {id}"),
                }
                unknown += lost;
                word = match kind {
                    ItemKind::Frame => word + id as u64,
                    ItemKind::Write => 1000 * id as u64,
                    ItemKind::Read | ItemKind::Atomic => word,
                };
            }
            assert_eq!(word, other.word, "seed {seed}");
        }
        repeated += world.repeated;
    }
    eprintln!("{repeated} done again, {unknown} unknown");
    assert!(repeated > SEEDS && u64::from(unknown) > SEEDS / 10);
}

/// An end with a connection, after these items.
fn posted(kinds: &[ItemKind]) -> Replay<u64> {
    let mut replay = Replay::new();
    assert_eq!(replay.reopens(0, |_| {}), Some(Vec::new()));
    (0..).zip(kinds).for_each(|(id, &kind)| drop(replay.posts(kind, id).to_string()));
    replay
}

#[test]
fn what_stood_before_a_frame_that_was_seen_is_not_written_again() {
    let kinds = [ItemKind::Write, ItemKind::Read, ItemKind::Atomic, ItemKind::Frame, ItemKind::Write, ItemKind::Frame];
    let all = posted(&kinds);
    let fates = |mut replay: Replay<u64>, seen| {
        replay.is_over();
        let fates = replay.reopens(seen, |_| {}).unwrap();
        fates.into_iter().map(|(fate, _)| fate).collect::<Vec<_>>()
    };
    use ItemFate::{Again, Done, Unknown};
    assert_eq!(fates(all.clone(), 0), [Again(0), Again(1), Unknown(2), Again(3), Again(4), Again(5)]);
    assert_eq!(fates(all.clone(), 1), [Done(0), Again(1), Unknown(2), Done(3), Again(4), Again(5)]);
    assert_eq!(fates(all.clone(), 2), [Done(0), Again(1), Unknown(2), Done(3), Done(4), Done(5)]);
    // Known from an acknowledgement, before the connection broke.
    let mut known = all.clone();
    known.acknowledged(1, |_| {}).unwrap();
    assert_eq!(fates(known.clone(), 1), [Done(0), Again(1), Unknown(2), Done(3), Again(4), Again(5)]);
    // Both known and completed: nothing is left of it, nor of what was before.
    known.completed(3, |_| {});
    assert_eq!(fates(known, 1), [Again(4), Again(5)]);
    let mut complete = all;
    complete.completed(2, |_| {});
    assert_eq!(fates(complete.clone(), 0), [Again(3), Again(4), Again(5)]);
    // A frame that the adapter has delivered may still be lost.
    complete.completed(5, |_| {});
    assert_eq!(fates(complete.clone(), 0), [Again(3), Again(5)]);
    assert_eq!(fates(complete.clone(), 2), []);
    // Posted again, it is no longer complete.
    complete.is_over();
    complete.reopens(0, |_| {}).unwrap();
    complete.acknowledged(2, |_| {}).unwrap();
    assert_eq!(fates(complete, 2), [Done(3), Done(5)]);
}

#[test]
fn a_number_that_cannot_be_is_refused() {
    let mut replay = posted(&[ItemKind::Frame, ItemKind::Frame, ItemKind::Frame]);
    assert_eq!((replay.acknowledged(4, |_| {}), replay.acknowledged(2, |_| {})), (None, Some(())));
    assert_eq!(replay.reopens(3, |_| {}), None, "it is open");
    replay.is_over();
    assert_eq!((replay.reopens(4, |_| {}), replay.reopens(1, |_| {})), (None, None));
    assert_eq!(replay.reopens(2, |_| {}), Some(vec![(ItemFate::Done(0), 1), (ItemFate::Done(1), 2), (ItemFate::Again(2), 3)]));
    let arrivals = [1, 1, 3, 2, 3, 0, u64::MAX].map(|number| replay.arrived(number));
    use FrameArrival::{Gap, Next, Seen};
    assert_eq!(arrivals, [Next, Seen, Gap, Next, Next, Seen, Gap]);
    assert_eq!(replay.seen(), 3);
}

#[test]
fn what_goes_past_the_frames_waits_until_they_are_handled() {
    let mut replay = posted(&[ItemKind::Frame]);
    let may = |replay: &Replay<u64>| {
        [ItemKind::Frame, ItemKind::Write, ItemKind::Read, ItemKind::Atomic].map(|kind| replay.may_post(kind))
    };
    assert_eq!(may(&replay), [true, false, false, false]);
    replay.completed(0, |_| {});
    assert_eq!(may(&replay), [true, false, false, false]);
    replay.is_over();
    assert_eq!(may(&replay), [false; 4]);
    // It was seen. That is not enough.
    assert_eq!(replay.reopens(1, |_| {}), Some(Vec::new()));
    assert_eq!(may(&replay), [true, false, false, false]);
    replay.acknowledged(1, |_| {}).unwrap();
    assert_eq!(may(&replay), [true, false, false, false]);
    replay.all_are_handled();
    assert_eq!(may(&replay), [true; 4]);
    replay.posts(ItemKind::Frame, 1);
    assert_eq!(may(&replay), [true, false, false, false]);
}
