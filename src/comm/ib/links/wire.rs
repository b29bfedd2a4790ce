//! Frames over reliable queue pairs, which connect on demand.
//!
//! A frame is copied into a registered slot, sent, and copied out of a slot of the target's shared receive queue. A frame for a rank that
//! is not connected yet goes back to the active messages, which keep its order and try again (MVICH, section 3.4).

use std::sync::Arc;

use super::{Arrived, Links, SENDS};
use crate::comm::{
    am::{
        frame::Frame,
        wire::{Arrival, BulkId, Class, Ended, Limits, OneSided, OneSidedLimits, Result, Sleeper, Wire},
    },
    ib::device::{self, Device},
    protocol::{connection::Statistics, replay::header::HEADER},
    waist::connections,
};

/// Bytes of a frame: with its header, a packet of the longest that ports have.
pub(super) const FRAME: usize = 4096 - HEADER;

/// Bytes of a copied piece of a transfer: what a slot takes.
const COPIED: usize = HEADER + FRAME;

/// From this many bytes on a piece goes straight: registering memory for it costs as much as copying it.
const STRAIGHT_FROM: usize = 64 << 10;

/// The longest piece: at most this much of what was nearly done is done again after a connection breaks.
const LONGEST: usize = 1 << 20;

/// Runs of a block are pieces from this many bytes on.
const RUN: usize = 512;

/// Slots that requests leave to answers.
pub(super) const FOR_ANSWERS: usize = 16;

impl<D: Device> Wire for Links<D> {
    fn limits(&self) -> Limits {
        let device::DeviceLimits { longest_message, reads, .. } = *self.device.limits();
        let longest = longest_message.min(LONGEST);
        let one_sided = OneSidedLimits { copied: COPIED, straight: STRAIGHT_FROM, longest, run: RUN, reads, atomics: false };
        Limits { frame: FRAME, bulk: None, one_sided: Some(one_sided), by_agents: true }
    }

    fn frame(&mut self) -> Frame {
        self.frames.take()
    }

    fn keep(&mut self, frame: Frame) {
        self.frames.give(frame);
    }

    fn send(&mut self, to: usize, class: Class, frame: Frame) -> Result<Option<Frame>> {
        let reserve = if class == Class::Request { FOR_ANSWERS } else { 0 };
        if self.is_ready(to)? && self.room() > reserve && self.send_frame(to, frame.sealed())? {
            self.frames.give(frame);
            return Ok(None);
        }
        Ok(Some(frame))
    }

    /// Frames are copied, but they are lost with the queue pair as long as they are not acknowledged.
    fn leaving(&self) -> usize {
        SENDS - self.room()
    }

    fn receive(&mut self) -> Result<Option<Arrival>> {
        while self.arrivals.is_empty() && self.look()? {}
        let Some(Arrived { from, slot, len }) = self.arrivals.pop_front() else { return Ok(None) };
        let mut frame = self.frames.take();
        self.receives.read(slot, HEADER, &mut frame.bytes_mut()[..len]);
        self.post_receive(slot)?;
        Ok(Some(Arrival { from, frame, len }))
    }

    fn ended(&mut self, ended: &mut Vec<Ended>) -> Result<()> {
        ended.append(&mut self.ended);
        Ok(())
    }

    fn cancel(&mut self, id: BulkId) {
        self.give_up(id);
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        Some(self)
    }

    fn sleeper(&self) -> Option<Arc<dyn Sleeper>> {
        Some(self.device.clone())
    }

    fn connections(&self) -> Option<connections::Connections> {
        let Statistics { opened, reopened, closed, resends, refused } = self.connections.statistics();
        let (live, bytes) = (opened - closed, self.bytes);
        Some(connections::Connections { opened, reopened, closed, live, bytes, resends, refused })
    }

    fn close(&mut self) {
        self.give_back();
    }
}

impl<D: Device> Drop for Links<D> {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::comm::{
        am::{
            frame::RecordKind,
            wire::{Piece, Transfers},
        },
        ib::{
            device::{Target, Wakes},
            links::{DEPTHS, Sent, one_sided::SlotWork},
            soft::{Rules, SoftFabric},
            tests::faulty::{Faulty, Rates},
        },
        kit::random::Random,
        protocol::{
            connection::{ConnectionSettings, SetupWay},
            replay,
        },
        start::devices::directory::Directory,
    };

    const ENDPOINTS: usize = 4;

    fn wires(budget: usize, rates: Rates, seed: u64) -> Vec<Links<impl Device>> {
        let fabric = SoftFabric::new(Rules { seed, ..Rules::default() });
        let directory = Arc::new(Directory::shared(ENDPOINTS).unwrap());
        let wire = |endpoint| {
            let device = Faulty::new(fabric.open(DEPTHS).unwrap(), rates, seed + endpoint as u64);
            let way = if seed.is_multiple_of(3) { SetupWay::Serial } else { SetupWay::Overlapped };
            let settings = ConnectionSettings { endpoint, endpoints: ENDPOINTS, token: u128::from(seed), way, budget };
            Links::new(device, directory.clone(), settings).unwrap()
        };
        (0..ENDPOINTS).map(wire).collect()
    }

    /// A frame whose only record has a length and a content of its number.
    fn frame(wire: &mut Links<impl Device>, number: usize) -> Frame {
        let mut frame = wire.frame();
        frame.push(RecordKind::Put, 0, &[0], &[], 8 * (1 + 97 * number % 500)).fill(number as u8);
        frame.seal(0, true);
        frame
    }

    fn number_of(Arrival { frame, len, .. }: &Arrival) -> usize {
        let (.., mut records) = frame.read(*len).unwrap();
        let payload = records.next().unwrap().payload;
        let number = usize::from(payload[0]);
        assert_eq!(payload, vec![number as u8; 8 * (1 + 97 * number % 500)]);
        number
    }

    /// All send to all others, with fewer connections than peers, over a device that loses datagrams, refuses steps and breaks queue pairs.
    #[test]
    fn frames_arrive_once_and_in_order() {
        const FRAMES: usize = 24;
        const AHEAD: usize = 8;
        let mut replayed = 0;
        for seed in 0..12 {
            let break_pair = if seed < 6 { 0 } else { 20 };
            let rates = Rates {
                lose: 200,
                duplicate: 100,
                reorder: 100,
                fail_step: 50,
                no_handle: 300,
                blind: 300,
                break_pair,
                ..Rates::default()
            };
            let budget = 1 + seed as usize % ENDPOINTS;
            let mut wires = wires(budget, rates, seed);
            let mut random = Random::new(seed);
            let none = std::array::from_fn(|at| std::array::from_fn(|to| if at == to { FRAMES } else { 0 }));
            let (mut sent, mut received): ([[usize; ENDPOINTS]; ENDPOINTS], _) = (none, none);
            let start = Instant::now();
            while received != [[FRAMES; ENDPOINTS]; ENDPOINTS] {
                assert!(start.elapsed() < Duration::from_secs(100), "seed {seed}: {sent:?} sent, {received:?} received");
                let at = random.below(ENDPOINTS);
                let wire = &mut wires[at];
                let to = random.below(ENDPOINTS);
                // To each as many as to the others, so that connections are needed again.
                let fewest = received[at].into_iter().min().unwrap_or(0);
                if sent[at][to] < FRAMES.min(fewest + AHEAD) {
                    let next = frame(wire, sent[at][to]);
                    match wire.send(to, Class::Request, next).unwrap() {
                        None => sent[at][to] += 1,
                        Some(frame) => wire.keep(frame),
                    }
                }
                while let Some(arrival) = wire.receive().unwrap() {
                    assert_eq!(number_of(&arrival), received[arrival.from][at], "seed {seed}: from {} to {at}", arrival.from);
                    received[arrival.from][at] += 1;
                    wire.keep(arrival.frame);
                }
            }
            for wire in &wires {
                replayed += wire.replayed;
                let pairs = wire.partners().len();
                assert!(pairs <= budget, "seed {seed}: {pairs} queue pairs of {budget}");
                let reopened = wire.connections.statistics().reopened;
                let is_sure = break_pair == 0;
                let expected = budget < ENDPOINTS - 1;
                assert!(!is_sure || (reopened > 0) == expected, "seed {seed}: {reopened} of {budget} connections reopened");
            }
        }
        assert!(replayed > 0, "no frame had to be posted again");
    }

    /// Slots are left to answers when requests have taken theirs, and a queue pair that is gone is an error with words.
    #[test]
    fn requests_leave_room_for_answers_and_a_lost_peer_is_named() {
        const SILENCE: Duration = Duration::from_secs(2);
        fn goes_on<D: Device>(wire: &mut Links<D>) -> Result<()> {
            let next = frame(wire, 2);
            wire.send(1, Class::Reply, next).and_then(|_| wire.receive()).map(drop)
        }
        let mut wires = wires(ENDPOINTS, Rates::default(), 1);
        wires[0].loses_after(Some(SILENCE));
        let start = Instant::now();
        loop {
            let next = frame(&mut wires[0], 0);
            let back = wires[0].send(1, Class::Request, next).unwrap();
            if back.is_some() && wires[0].room() == FOR_ANSWERS {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "requests take all slots");
            if wires[0].room() == SENDS {
                // Not connected yet.
                wires.iter_mut().for_each(|wire| assert!(wire.receive().unwrap().is_none()));
            }
        }
        let answer = frame(&mut wires[0], 1);
        assert!(wires[0].send(1, Class::Reply, answer).unwrap().is_none());
        drop(wires.remove(1));
        while !wires[0].absences.is_any() {
            goes_on(&mut wires[0]).unwrap();
        }
        // A rank that does not look for a while misses no peer.
        std::thread::sleep(SILENCE);
        let begin = Instant::now();
        while begin.elapsed() < SILENCE / 4 {
            goes_on(&mut wires[0]).unwrap();
        }
        let error = loop {
            if let Err(error) = goes_on(&mut wires[0]) {
                break error.to_string();
            }
            assert!(start.elapsed() < Duration::from_secs(60), "a peer that is gone");
        };
        assert!(error.starts_with("rank 1 cannot be reached: "), "{error}");
    }

    /// Wires: the second has answered the first, but their connection is not ready.
    fn answered_once<D: Device>(new: impl Fn(u64) -> Vec<Links<D>>) -> Vec<Links<D>> {
        let try_to = |seed| {
            let mut wires = new(seed);
            let next = frame(&mut wires[0], 0);
            assert!(wires[0].send(1, Class::Request, next).unwrap().is_some());
            assert!(wires[1].receive().unwrap().is_none());
            let (start, mut has_answered) = (Instant::now(), false);
            while start.elapsed() < Duration::from_millis(5) {
                assert!(wires[0].receive().unwrap().is_none());
                has_answered |= wires[0].connections.has_answered(1);
            }
            (has_answered && !wires[0].connections.is_ready(1)).then_some(wires)
        };
        (1..1000).find_map(try_to).expect("half of the datagrams are lost")
    }

    /// A device reports no error for a datagram that nobody receives.
    #[test]
    fn a_peer_that_does_not_answer_is_named() {
        const SILENCE: Duration = Duration::from_millis(200);
        let silent = |budget| wires(budget, Rates::default(), 1);
        let answered = answered_once(|seed| wires(ENDPOINTS, Rates { lose: 50, ..Rates::default() }, seed));
        for (budget, mut wires) in [(ENDPOINTS, silent(ENDPOINTS)), (1, silent(1)), (ENDPOINTS, answered)] {
            wires[0].loses_after(Some(SILENCE));
            let start = Instant::now();
            // The peer exists, but does not look at its device.
            let error = loop {
                let next = frame(&mut wires[0], 0);
                let sent = wires[0].send(1, Class::Request, next);
                match sent.and_then(|_| wires[0].receive()) {
                    Ok(_) if start.elapsed() < 12 * SILENCE || budget == ENDPOINTS => {}
                    outcome => break outcome.err().map(|error| error.to_string()),
                }
                assert!(start.elapsed() < Duration::from_secs(60), "a peer that does not answer");
            };
            // Where queue pairs are short, silence is no sign of death.
            assert_eq!(error.is_some(), budget == ENDPOINTS, "{error:?}");
            let is_named = |error: &str| error.starts_with("rank 1 cannot be reached: it does not answer");
            assert!(error.as_deref().is_none_or(is_named), "{error:?}");
        }
    }

    /// Sends a frame when that can be done, and receives all of that rank until it is there.
    fn exchange(wires: &mut [Links<impl Device>], from: usize, to: usize, number: usize) {
        let start = Instant::now();
        let mut next = Some(frame(&mut wires[from], number));
        loop {
            next = next.and_then(|frame| wires[from].send(to, Class::Request, frame).unwrap());
            for wire in wires.iter_mut() {
                if let Some(arrival) = wire.receive().unwrap() {
                    assert_eq!((number_of(&arrival), arrival.from), (number, from));
                    return wire.keep(arrival.frame);
                }
            }
            assert!(start.elapsed() < Duration::from_secs(60), "frame {number} does not come");
        }
    }

    /// A message without a frame is sent while writes are silent. Its completion must not count as the end of those writes.
    #[test]
    fn a_message_without_a_frame_does_not_hide_the_end_of_writes() {
        // Dropped behind the wires.
        let (mut words, value) = (vec![0_u64; 8], [5_u64; 8]);
        let mut wires = wires(ENDPOINTS, Rates::default(), 7);
        exchange(&mut wires, 0, 1, 1);
        exchange(&mut wires, 1, 0, 2);
        // SAFETY: the words outlive the wires.
        let key = unsafe { wires[1].open(words.as_mut_ptr().cast(), 64) }.unwrap().key;
        let there = words.as_ptr().expose_provenance() as u64;
        let piece = |word: usize| Piece { there: there + 8 * word as u64, key, here: value.as_ptr().cast_mut().cast(), len: 8 };
        for number in 0..20 {
            let next = frame(&mut wires[1], number);
            assert!(wires[1].send(0, Class::Request, next).unwrap().is_none());
        }
        for word in 0..3 {
            // SAFETY: both are there.
            assert_eq!(unsafe { wires[0].write(1, &[piece(word)]) }.unwrap(), 1);
        }
        let works = wires[0].bytes;
        wires[0].take_completions().unwrap();
        assert!(wires[0].bytes > works, "nothing was told");
        assert!(wires[0].transfers(1).ended < 3, "the last ones are silent");
        assert!((0..3).any(|_| wires[0].have_ended(1).unwrap()), "{:?}", wires[0].transfers(1));
        drop(wires);
        assert_eq!(words[..4], [5, 5, 5, 0]);
    }

    /// The end of a write that has happened is kept back while a read before it is done again.
    #[test]
    fn transfers_end_in_their_order_over_a_connection_that_broke() {
        // Dropped behind the wires.
        let mut words = vec![7_u64; 8];
        let mut wires = wires(ENDPOINTS, Rates::default(), 9);
        exchange(&mut wires, 0, 1, 1);
        exchange(&mut wires, 1, 0, 2);
        // SAFETY: the words outlive the wires.
        let key = unsafe { wires[1].open(words.as_mut_ptr().cast(), 64) }.unwrap().key;
        let place = Target { start: words.as_ptr().expose_provenance() as u64, key: key.short() };
        let wire = &mut wires[0];
        while wire.receive().unwrap().is_some() {}
        // As if they had been posted before the connection broke; the peer has seen the frame, and so has the write happened.
        let kinds = [SlotWork::Read { from: place, origin: 3, at: 0 }, SlotWork::Write { to: place }, SlotWork::Frame];
        let slots: Vec<usize> = kinds.iter().map(|_| wire.free_sends.pop().unwrap()).collect();
        let peer = wire.peers.meet(1);
        let mut seen = 0;
        for (&slot, what) in slots.iter().zip(kinds) {
            let kind = match what {
                SlotWork::Read { .. } => replay::ItemKind::Read,
                SlotWork::Frame => replay::ItemKind::Frame,
                _ => replay::ItemKind::Write,
            };
            seen = peer.replay.posts(kind, slot);
            wire.sent[slot] = Sent { to: 1, serial: 0, len: 8, what };
        }
        (peer.transfers.begun, wire.reading) = (peer.transfers.begun + 2, 1);
        let before = peer.transfers.ended;
        peer.replay.is_over();
        peer.report.hears(seen);
        wire.reopen(1).unwrap();
        assert_eq!(wire.transfers(1), Transfers { begun: before + 2, ended: before });
        let mut read = 0;
        while !wire.take_read(&mut |origin, at, bytes| assert_eq!((origin, at, bytes), (3, 0, &7_u64.to_ne_bytes()[..]))) {
            wire.look_for_read().unwrap();
            read += 1;
            assert!(read < 1000, "nothing is read");
        }
        assert_eq!(wire.transfers(1), Transfers { begun: before + 2, ended: before + 2 });
    }

    /// What a peer has said when it opened a connection, and what is found when that is given back, is not said of the next connection.
    #[test]
    fn the_first_message_of_a_connection_that_broke_is_not_that_of_the_next() {
        let mut wires = wires(ENDPOINTS, Rates::default(), 8);
        assert!(!wires[0].is_ready(1).unwrap());
        let start = Instant::now();
        loop {
            wires[1].look().unwrap();
            // It opens a connection as soon as that is ready.
            if wires[1].connections.is_ready(0) {
                break;
            }
            wires[0].look().unwrap();
            assert!(start.elapsed() < Duration::from_secs(60), "no connection");
        }
        wires[0].breaks(1, "on purpose".into());
        (1..5).for_each(|number| exchange(&mut wires, 0, 1, number));
        (5..9).for_each(|number| exchange(&mut wires, 1, 0, number));
    }

    /// An adapter that is never found is an error in words.
    #[test]
    fn a_peer_that_cannot_be_found_is_named() {
        let mut wires = wires(ENDPOINTS, Rates { no_handle: 1000, ..Rates::default() }, 5);
        wires[0].loses_after(Some(Duration::from_secs(1)));
        let start = Instant::now();
        let error = loop {
            let next = frame(&mut wires[0], 0);
            if let Err(error) = wires[0].send(1, Class::Request, next).and_then(|_| wires[0].receive()) {
                break error.to_string();
            }
            assert!(start.elapsed() < Duration::from_secs(60), "a peer that is not found");
        };
        let (begin, end) = ("rank 1 cannot be reached: ", "timed out (os error 110), for 1 s (GA_SILENCE)");
        assert!(error.starts_with(begin) && error.ends_with(end), "{error}");
    }

    /// A thread that sleeps is woken by what arrives, and not before.
    #[test]
    fn what_arrives_ends_a_sleep() {
        const LIMIT: Duration = Duration::from_secs(60);
        let mut wires = wires(ENDPOINTS, Rates::default(), 4);
        let start = Instant::now();
        let mut to_come = 1;
        let mut next = Some(frame(&mut wires[0], 0));
        while to_come > 0 {
            assert!(start.elapsed() < LIMIT, "no connection");
            next = next.and_then(|frame| wires[0].send(1, Class::Request, frame).unwrap());
            for wire in &mut wires {
                to_come -= usize::from(wire.receive().unwrap().is_some());
            }
        }
        let sleeper = wires[1].sleeper().unwrap();
        let mut late = || {
            // What was left from the connection.
            assert!(sleeper.arm(Wakes::Arrivals));
            while wires[1].receive().unwrap().is_some() {}
            let start = Instant::now();
            sleeper.sleep(Duration::from_millis(5));
            start.elapsed() >= Duration::from_millis(5)
        };
        assert!((0..100).any(|_| late()), "sleeps end by themselves");
        assert!(sleeper.arm(Wakes::Arrivals) && wires[1].receive().unwrap().is_none());
        let start = Instant::now();
        let asleep = std::thread::spawn(move || sleeper.sleep(LIMIT));
        let next = frame(&mut wires[0], 1);
        assert!(wires[0].send(1, Class::Request, next).unwrap().is_none());
        asleep.join().unwrap();
        assert!(start.elapsed() < LIMIT && wires[1].receive().unwrap().is_some());
    }

    /// A device that does not take a work is no peer that is away.
    #[test]
    fn a_work_that_the_device_refuses_is_an_error_with_its_words() {
        let mut wires = wires(ENDPOINTS, Rates { refuse_post: 1000, ..Rates::default() }, 3);
        let start = Instant::now();
        let error = loop {
            let next = frame(&mut wires[0], 0);
            let sent = wires[0].send(1, Class::Request, next);
            let outcomes = wires.iter_mut().map(|wire| wire.receive().map(drop));
            if let Some(error) = [sent.map(drop)].into_iter().chain(outcomes).find_map(Result::err) {
                break error.to_string();
            }
            assert!(start.elapsed() < Duration::from_secs(60), "works that are refused");
        };
        assert!(error.starts_with("sending to rank ") && error.contains("as the faults of this device want it"), "{error}");
    }
}
