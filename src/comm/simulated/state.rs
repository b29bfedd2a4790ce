//! What happens in virtual time: ranks get their turns, messages leave, arrive, are answered.
//!
//! One queue holds all events in the order of their times. A put writes all its bytes when the last one has arrived. A short contiguous
//! get reads its bytes when its request arrives, others when the answer is back.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::flight::{Flight, FlightKind};
use crate::comm::{
    Cause, Event, Events as Reports, Token, WaitWord,
    kit::{peers::Peers, slab::Slab},
    node::{Fabric, HeldLetters},
    soft::{Adapters, Events, Faults, Machine, Model, NextLeg as Leg, Picos, Wish},
};

/// The job ends after this many ticks without a message.
const DEAD: u32 = 120;

/// Counts and a digest of what has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The time of the last event.
    pub(super) end: Picos,
    pub(super) messages: u64,
    pub(super) events: u64,
    /// Of all events, in their order.
    pub(crate) digest: u64,
}

/// The state of a simulated job: its events, ranks and operations.
#[derive(Debug)]
pub(super) struct WorldState {
    pub(super) fabric: Arc<Fabric>,
    /// The interval of looks in vain.
    tick: Picos,
    /// The part of messages that leave late, and the longest delay.
    pub(super) delay: Option<(f64, Picos)>,
    /// Other faults that are still to come.
    pub(super) faults: usize,
    pub(super) now: Picos,
    pub(super) events: Events<Happens>,
    pub(super) model: Model,
    pub(super) ranks: Vec<RankState>,
    pub(super) flights: Slab<Flight>,
    /// Letters that have arrived, for rings that are full: the sender, the owner of the ring.
    pub(super) held: HeldLetters<(usize, usize, Token)>,
    /// The rank whose turn is next, if a rank has found that out.
    pub(super) next: Option<usize>,
    /// Ranks whose bodies have not ended.
    pub(super) alive: usize,
    /// The number of ticks in which nothing has happened, and of messages until then.
    pub(super) idle: (u32, u64),
    pub(super) report: Report,
    /// Adapters at the ends of the cables; an empty list of wishes, kept for its memory; the rank whose agent is at work.
    pub(super) adapters: Option<Arc<dyn Adapters>>,
    pub(super) wishes: Vec<Wish>,
    pub(super) serving: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Happens {
    /// A rank gets its turn.
    Turn(u32),
    /// A message is handed to its adapter.
    Leaves(u64),
    /// It begins to leave, or its head is at a link or at its target.
    Travels(u64),
    /// It reaches its target.
    Arrives(u64),
    /// It is answered.
    Done(u64),
    Tick,
    /// A rank dies.
    Dies(u32),
    /// The adapter of a node stalls until then.
    Stalls(u32, Picos),
    /// A rank is rung.
    Rings(u32),
    /// The agent of a rank looks, if the rank computes.
    Serves(u32),
    /// A time that adapters have asked for.
    Time(u64),
}

/// What is to be done outside of the queue of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextTask {
    /// A rank has its turn.
    Turn(usize),
    /// The agent of a rank looks at its network.
    Serve(usize),
}

/// What is kept of a rank whose adapter is modelled by code of its own.
#[derive(Debug, Default)]
pub(super) struct Wired {
    /// Something has come since its adapter was empty; a look could do more; its agent has found something that the rank has to take.
    pub(super) rung: bool,
    pub(super) behind: bool,
    pub(super) told: bool,
    /// It waits inside its network.
    pub(super) passes: bool,
    /// When its agent looks next; and until when it is busy.
    pub(super) called: Option<Picos>,
    pub(super) agent: Picos,
    /// When the rank itself was in its network last.
    pub(super) left: Picos,
    /// When it is rung next, of the times that it has asked for.
    pub(super) reminded: Option<Picos>,
    /// How long its last pause was, and its agent's last sleep with something left to do.
    pub(super) slice: Picos,
    pub(super) nap: Picos,
}

#[derive(Debug, Default)]
pub(super) struct RankState {
    pub(super) clock: Picos,
    /// When it has copied the answers to its gets from its node that have arrived.
    copied: Picos,
    pub(super) phase: Phase,
    /// The wait that goes on without it.
    pub(super) idle: Option<IdleWait>,
    /// To be polled.
    pub(super) reports: Reports,
    /// By target: what it has put there that was not answered.
    pub(super) puts: Peers<Unanswered>,
    /// Operations in flight, and of these what use memory of its own.
    pub(super) flying: usize,
    pub(super) lent: usize,
    /// Where its segment, and those of the other members of what lies there, have no contents: by the first byte, the end.
    pub(super) hollow: BTreeMap<usize, usize>,
    pub(super) wired: Wired,
}

impl RankState {
    /// Until when it computes, as far as is known.
    fn computes(&self) -> Picos {
        if let Phase::Runs = self.phase { self.clock } else { Picos::ZERO }
    }

    /// Returns true if a byte of its segment, or of one that it may access there, has no contents.
    pub(super) fn is_hollow(&self, offset: usize) -> bool {
        self.hollow.range(..=offset).next_back().is_some_and(|(_, &end)| offset < end)
    }
}

#[derive(Debug, Default)]
pub(super) enum Phase {
    /// It has its turn, or waits for it.
    #[default]
    Runs,
    /// It waits for a report, or for a word to differ from a value.
    Sleeps(Option<(Word, u32)>),
    Ended,
}

/// A wait for a report that goes on without its rank (`idle`).
#[derive(Debug)]
pub(super) struct IdleWait {
    pub(super) next: Step,
    /// When the rank first looked at the clock.
    pub(super) first: Option<Duration>,
    /// The time after that when it has to look itself.
    pub(super) most: Duration,
}

/// What the rank does next. Each begins when all has happened that happens before.
#[derive(Debug)]
pub(super) enum Step {
    /// It begins to poll.
    Begins,
    /// It has found nothing, or something.
    Polls,
    /// It sleeps, unless it has a report.
    Sleeps,
}

/// A word that a rank sleeps on, which it has borrowed for that long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word(pub(super) *const WaitWord);

// SAFETY: words are shared among threads; this one lives as long as its rank sleeps.
unsafe impl Send for Word {}

#[derive(Debug, Default)]
pub(super) struct Unanswered {
    pub(super) puts: usize,
    pub(super) flushes: Vec<Token>,
}

impl WorldState {
    /// The beginning: all ranks are to get their first turn.
    pub(super) fn new(fabric: Arc<Fabric>, machine: Machine, seed: u64, faults: Faults, tick: Picos) -> Self {
        let count = fabric.ranks();
        let mut events = Events::new(seed);
        (0..count).for_each(|rank| events.add(Picos::ZERO, rank, Happens::Turn(rank as u32)));
        events.add(tick, count, Happens::Tick);
        let Faults { deaths, stalls, delay } = faults;
        for &(rank, at) in &deaths {
            events.add(at, count, Happens::Dies(rank as u32));
        }
        for &(node, at, until) in &stalls {
            events.add(at, count, Happens::Stalls(node as u32, until));
        }
        WorldState {
            fabric,
            tick,
            delay,
            faults: deaths.len() + stalls.len(),
            now: Picos::ZERO,
            events,
            model: Model::new(machine, count),
            ranks: (0..count).map(|_| RankState::default()).collect(),
            flights: Slab::default(),
            held: HeldLetters::default(),
            next: None,
            alive: count,
            idle: (0, 0),
            report: Report::default(),
            adapters: None,
            wishes: Vec::new(),
            serving: None,
        }
    }

    /// Lets things happen until something is to be done outside. None when all ranks have ended.
    pub(super) fn advance(&mut self) -> Option<NextTask> {
        while self.alive > 0 {
            let (at, event) = self.events.take()?;
            let next = self.happens(at, event);
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Handles an event. Returns what is to be done because of it.
    pub(super) fn happens(&mut self, at: Picos, event: Happens) -> Option<NextTask> {
        self.now = at;
        self.report.end = at;
        self.report.events += 1;
        self.digest(at, event);
        match event {
            Happens::Turn(rank) => {
                let rank = rank as usize;
                let runs = &mut self.ranks[rank];
                runs.clock = runs.clock.max(at).max(self.model.attends(rank));
                if runs.clock == at {
                    return self.has_idled(rank).then_some(NextTask::Turn(rank));
                }
                // Its processor has moved messages meanwhile.
                let clock = runs.clock;
                self.events.add(clock, rank, event);
            }
            Happens::Leaves(id) => self.leaves(id),
            Happens::Travels(id) => self.travels(id),
            Happens::Arrives(id) => self.arrives(id),
            Happens::Done(id) => self.done(id),
            Happens::Tick => self.tick(),
            Happens::Dies(rank) => {
                self.faults -= 1;
                let seconds = at.duration().as_secs_f64();
                self.fabric.end(Some(rank as usize), &format!("died after {seconds} s, as GA_FAULTS says"));
                (0..self.ranks.len()).for_each(|rank| self.wake(rank));
            }
            Happens::Stalls(node, until) => {
                self.faults -= 1;
                self.model.stall(node as usize, until);
            }
            Happens::Rings(rank) => {
                let wired = &mut self.ranks[rank as usize].wired;
                wired.reminded.take_if(|&mut asked| asked <= at);
                self.ring(rank as usize);
            }
            Happens::Serves(rank) => return self.is_served(rank as usize).then_some(NextTask::Serve(rank as usize)),
            Happens::Time(number) => self.tell_adapters(|adapters, now, wishes| adapters.is_time(now, number, wishes)),
        }
        None
    }

    fn digest(&mut self, at: Picos, event: Happens) {
        let (code, what) = match event {
            Happens::Turn(rank) => (1, u64::from(rank)),
            Happens::Leaves(id) => (2, id),
            Happens::Travels(id) => (3, id),
            Happens::Arrives(id) => (4, id),
            Happens::Done(id) => (5, id),
            Happens::Tick => (6, 0),
            Happens::Dies(rank) => (7, u64::from(rank)),
            Happens::Stalls(node, _) => (8, u64::from(node)),
            Happens::Rings(rank) => (9, u64::from(rank)),
            Happens::Serves(rank) => (10, u64::from(rank)),
            Happens::Time(number) => (11, number),
        };
        let message = if code == 2 { self.flights.get(what).map_or([0; 4], Flight::words) } else { [0; 4] };
        // FNV-1a, a word at a time.
        for word in [at.0, code, what].into_iter().chain(message) {
            self.report.digest = (self.report.digest ^ word).wrapping_mul(0x100_0000_01B3).rotate_left(23);
        }
    }

    /// A rank gets a turn if it sleeps.
    pub(super) fn wake(&mut self, rank: usize) {
        let sleeper = &mut self.ranks[rank];
        if let Phase::Sleeps(_) = sleeper.phase {
            sleeper.phase = Phase::Runs;
            let at = self.now.max(sleeper.clock);
            self.events.add(at, rank, Happens::Turn(rank as u32));
        }
    }

    /// Returns true if no event is due before a rank that has its turn goes on, at its time. If not, it gets a turn behind them.
    pub(super) fn is_next(&mut self, rank: usize) -> bool {
        let clock = self.ranks[rank].clock;
        if self.events.next_at().is_some_and(|at| at <= clock) {
            self.events.add(clock, rank, Happens::Turn(rank as u32));
            return false;
        }
        self.now = self.now.max(clock);
        true
    }

    /// Something has happened to the memory of a rank.
    pub(super) fn touched(&mut self, rank: usize) {
        let wakes = match self.ranks[rank].phase {
            // SAFETY: the rank lends the word for as long as it sleeps.
            Phase::Sleeps(Some((word, seen))) => unsafe { &*word.0 }.load() != seen,
            Phase::Sleeps(None) => true,
            _ => false,
        };
        if wakes {
            self.wake(rank);
        }
    }

    fn tell(&mut self, rank: usize, report: Event) {
        if let Phase::Ended = self.ranks[rank].phase {
            return;
        }
        self.ranks[rank].reports.push(report);
        self.wake(rank);
    }

    fn leaves(&mut self, id: u64) {
        let Some(flight) = self.flights.get(id) else { return };
        let ((from, to, bytes), source) = (flight.message.leg(), flight.message.issuer());
        let handed = self.now + self.delay(id, from, to);
        let answers = flight.message.is_back;
        if answers {
            self.takes(from, self.model.moves(from, to, bytes, false));
        }
        match self.model.begins(handed, from, to, bytes, answers) {
            begin if begin > self.now => self.events.add(begin, source, Happens::Travels(id)),
            _ => self.travels(id),
        }
    }

    /// The delay with which a message leaves, because of a fault.
    fn delay(&self, id: u64, from: usize, to: usize) -> Picos {
        // Ranks of a node have no adapter between them that would keep the order.
        let Some((part, most)) = self.delay.filter(|_| !self.model.is_near(from, to)) else { return Picos::ZERO };
        // Half of the bits choose the message, the others by how much it is late.
        let drawn = self.events.draw_any(id);
        let is_late = ((drawn >> 32) as f64) < part * f64::from(u32::MAX);
        if is_late { Picos((most.0 as f64 * (drawn as u32 as f64 / f64::from(u32::MAX))) as u64) } else { Picos::ZERO }
    }

    fn travels(&mut self, id: u64) {
        let Some(flight) = self.flights.get_mut(id) else { return };
        let message = &mut flight.message;
        let ((from, to, bytes), issuer, is_back) = (message.leg(), message.issuer(), message.is_back);
        let computes = self.ranks[to].computes();
        let times = match self.model.travels(self.now, from, to, bytes, computes, &mut message.way) {
            Leg::Ends(times) => times,
            Leg::Head(at) => return self.events.add(at, issuer, Happens::Travels(id)),
        };
        self.report.messages += 1;
        let late = late(&self.model, &self.events, id, from, to);
        message.answered = times.answered + late;
        let (mut at, mut next) = (times.arrived + late, Happens::Arrives(id));
        if is_back {
            let copies = self.model.copies(from, to, bytes);
            if copies > Picos::ZERO {
                // One after the other, however many it has asked for: it is one processor that copies.
                at = at.max(self.ranks[to].copied) + copies;
                self.ranks[to].copied = at;
            }
            next = Happens::Done(id);
        }
        self.events.add(at, issuer, next);
        self.takes(to, self.model.moves(from, to, bytes, true));
    }

    /// The processor of a rank moves a message for `time`, and computes on after that.
    fn takes(&mut self, rank: usize, time: Picos) {
        if self.ranks[rank].computes() >= self.now {
            self.ranks[rank].clock += time;
        }
    }

    fn arrives(&mut self, id: u64) {
        let Some(flight) = self.flights.get_mut(id) else { return };
        let (from, to) = (flight.message.issuer(), flight.message.target());
        match flight.kind {
            FlightKind::Put(signal) => {
                flight.write(&self.fabric, signal);
                self.events.add(flight.message.answered, from, Happens::Done(id));
                self.touched(to);
            }
            FlightKind::Get | FlightKind::Atomic(_) => {
                let is_get = matches!(flight.kind, FlightKind::Get);
                flight.apply(&self.fabric);
                // What it brings back leaves now, or when it is read.
                if is_get && !self.model.is_near(from, to) {
                    let read = self.now + self.model.machine().adapter.read;
                    self.events.add(read, to, Happens::Leaves(id));
                } else {
                    self.leaves(id);
                }
                if !is_get {
                    self.touched(to);
                }
            }
            FlightKind::Wire(number, returns) => {
                self.tell_adapters(|adapters, now, wishes| adapters.arrived(now, number, wishes));
                if returns {
                    self.flights.remove(id);
                } else if let Some(flight) = self.flights.get(id) {
                    self.events.add(flight.message.answered, from, Happens::Done(id));
                }
            }
            FlightKind::Append(slots) => {
                let (offset, packed, token) = (flight.offset(), flight.take_letter(), flight.token);
                self.events.add(flight.message.answered, from, Happens::Done(id));
                match self.held.append(&self.fabric, (to, offset, slots), &packed, (from, to, token)) {
                    Some(true) => {}
                    // It is reported when it is in the ring.
                    Some(false) => flight.token = Token::NOBODY,
                    None => _ = self.fabric.end(Some(from), "sent a letter that cannot be"),
                }
                self.touched(to);
            }
        }
    }

    /// Appends letters that are held, if there is room now.
    pub(super) fn deliver_held(&mut self) {
        if !self.held.is_empty() {
            let mut appended = Vec::new();
            self.held.deliver(&self.fabric, |sender| appended.push(sender));
            for (from, to, token) in appended {
                if token != Token::NOBODY {
                    self.tell(from, Event::Value(token, 0));
                }
                self.touched(to);
            }
        }
    }

    fn done(&mut self, id: u64) {
        let Some(flight) = self.flights.remove(id) else { return };
        if let FlightKind::Wire(number, _) = flight.kind {
            return self.tell_adapters(|adapters, now, wishes| adapters.answered(now, number, wishes));
        }
        let issuer = &mut self.ranks[flight.message.issuer()];
        issuer.flying -= 1;
        issuer.lent -= usize::from(flight.is_lent());
        if flight.kind.is_put() {
            let unanswered = self.ranks[flight.message.issuer()].puts.meet(flight.message.target());
            unanswered.puts -= 1;
            if unanswered.puts == 0 {
                let flushes = std::mem::take(&mut unanswered.flushes);
                flushes.into_iter().for_each(|token| self.tell(flight.message.issuer(), Event::RemoteDone(token)));
            }
        }
        if let Some(report) = flight.done(&self.fabric) {
            self.tell(flight.message.issuer(), report);
        }
    }

    /// Gives up the transfers of one request of a rank, or of all, that use its memory, and reports them as failed.
    pub(super) fn give_up(&mut self, rank: usize, token: Option<Token>) {
        if self.ranks[rank].lent == 0 {
            return;
        }
        let mut failed = Vec::new();
        for (_, flight) in self.flights.iter_mut() {
            if flight.message.issuer() == rank && token.is_none_or(|token| flight.token == token) {
                failed.extend(flight.give_up());
            }
        }
        self.ranks[rank].lent -= failed.len();
        for token in failed {
            self.tell(rank, Event::Failed(token, Cause("it was given up".into())));
        }
    }

    fn tick(&mut self) {
        let messages = self.report.messages;
        // Pauses and reminders are events too, and bring nothing on by themselves.
        let nobody_runs = self.ranks.iter().all(|rank| !matches!(rank.phase, Phase::Runs));
        let nothing_comes = self.events.len() == self.faults || nobody_runs && self.flights.is_empty();
        let idles = nothing_comes && self.idle.1 == messages;
        self.idle = (if idles { self.idle.0 + 1 } else { 0 }, messages);
        if self.idle.0 > DEAD {
            self.fabric.end(None, "no message is on its way, and no rank can run");
        }
        (0..self.ranks.len()).for_each(|rank| self.wake(rank));
        self.events.add(self.now + self.tick, self.ranks.len(), Happens::Tick);
    }
}

/// The delay of a message beyond the model's: where the network keeps no order, a seed has another.
fn late(model: &Model, events: &Events<Happens>, id: u64, from: usize, to: usize) -> Picos {
    let adapter = &model.machine().adapter;
    if adapter.ordered || model.copies(from, to, 1) > Picos::ZERO {
        return Picos::ZERO;
    }
    Picos(events.draw(id) % (2 * adapter.latency.0 + 1))
}
