//! All ranks of a job, their messages, and virtual time.
//!
//! Events happen in the order of their times: a rank gets its turn, a message leaves, arrives, is answered. One rank runs at a time. It has a
//! clock of its own, which runs ahead of the events while the rank computes or issues operations. When it polls or waits, all events up to
//! its own time are handled first. So a rank that looks has seen all that arrived by then, and its operations leave in the order of time.
//!
//! An operation changes memory at one moment: the bytes of a put are written when the last one has arrived. A short get reads its bytes when
//! its request arrives, a long one when the answer is back.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, MutexGuard, atomic::Ordering},
};

use super::flight::{Flight, Kind};
use crate::{
    calls::elsewhere,
    comm::{
        Cause, Event, Events as Reports, Token, WaitWord,
        mutex::Mutex,
        node::Fabric,
        peers::Peers,
        slab::Slab,
        soft::{Events, Faults, Machine, Model, Next, Picos, Ranks},
    },
};

/// A waiting rank wakes up at this interval, to find out whether it waits in vain.
const TICK: Picos = Picos(500_000_000_000);

/// The time of a poll that finds nothing. Without it, a rank that polls in a loop would stop time.
const LOOK: Picos = Picos(50_000);

/// The job ends after this many ticks without a message.
const DEAD: u32 = 120;

/// See the module's essay.
#[derive(Debug)]
pub(super) struct World {
    fabric: Arc<Fabric>,
    ranks: Ranks,
    state: Mutex<State>,
    tick: Picos,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// When the last event was.
    pub(super) end: Picos,
    pub(super) messages: u64,
    pub(super) events: u64,
    /// Of all events, in their order.
    pub(crate) digest: u64,
}

#[derive(Debug)]
struct State {
    /// The part of messages that leave late, and by how much at most.
    delay: Option<(f64, Picos)>,
    /// Other faults that are still to come.
    faults: usize,
    now: Picos,
    events: Events<Happens>,
    model: Model,
    ranks: Vec<Rank>,
    flights: Slab<Flight>,
    /// Whose turn is next, if a rank has found that out.
    next: Option<usize>,
    /// Ranks whose bodies have not ended.
    alive: usize,
    /// For how many ticks nothing has happened, and the messages until then.
    idle: (u32, u64),
    report: Report,
}

#[derive(Clone, Copy, Debug)]
enum Happens {
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
}

#[derive(Debug, Default)]
struct Rank {
    clock: Picos,
    phase: Phase,
    /// To be polled.
    reports: Reports,
    /// By target: what it has put there that was not answered.
    puts: Peers<Unanswered>,
    /// Operations in flight, and of these what use memory of its own.
    flying: usize,
    lent: usize,
    /// Where its segment, and those of the other members of what lies there, have no contents: by the first byte, the end.
    hollow: BTreeMap<usize, usize>,
}

impl Rank {
    /// Whether a byte has no contents, of its segment or of one that it may access there.
    fn is_hollow(&self, offset: usize) -> bool {
        self.hollow.range(..=offset).next_back().is_some_and(|(_, &end)| offset < end)
    }
}

#[derive(Debug, Default)]
enum Phase {
    /// It has its turn, or waits for it.
    #[default]
    Runs,
    /// It waits for a report, or for a word to differ from a value.
    Sleeps(Option<(Word, u32)>),
    Ended,
}

/// A word that a rank sleeps on, which it has borrowed for that long.
#[derive(Clone, Copy, Debug)]
struct Word(*const WaitWord);

// SAFETY: words are shared among threads; this one lives as long as its rank sleeps.
unsafe impl Send for Word {}

#[derive(Debug, Default)]
struct Unanswered {
    puts: usize,
    flushes: Vec<Token>,
}

/// Virtual time ends here, after 100 days: long before it could overflow.
const END_OF_TIME: Picos = Picos(100 * 86_400 * 1_000_000_000_000);

/// Why a call is refused.
pub(super) fn why_not_here() -> &'static str {
    if std::thread::panicking() {
        "this rank panics"
    } else {
        "a simulated rank calls from its own thread only: one that the program has started has no place in virtual time"
    }
}

impl World {
    pub(super) fn new(
        fabric: Arc<Fabric>,
        ranks: Ranks,
        machine: Machine,
        seed: u64,
        faults: Faults,
        timeout: Option<f64>,
    ) -> Self {
        let count = fabric.ranks();
        let mut events = Events::new(seed);
        (0..count).for_each(|rank| events.add(Picos::ZERO, rank, Happens::Turn(rank as u32)));
        let tick = timeout.map_or(TICK, |seconds| TICK.min(Picos::of_seconds(seconds)));
        events.add(tick, count, Happens::Tick);
        let Faults { deaths, stalls, delay } = faults;
        for &(rank, at) in &deaths {
            events.add(at, count, Happens::Dies(rank as u32));
        }
        for &(node, at, until) in &stalls {
            events.add(at, count, Happens::Stalls(node as u32, until));
        }
        let state = State {
            delay,
            faults: deaths.len() + stalls.len(),
            now: Picos::ZERO,
            events,
            model: Model::new(machine, count),
            ranks: (0..count).map(|_| Rank::default()).collect(),
            flights: Slab::default(),
            next: None,
            alive: count,
            idle: (0, 0),
            report: Report::default(),
        };
        World { fabric, ranks, state: Mutex::new(state), tick }
    }

    pub(super) fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    pub(super) fn report(&self) -> Report {
        self.state.lock().report
    }

    /// Whose turn is next; none when all have ended.
    pub(super) fn next(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let known = state.next.take();
        known.or_else(|| state.advance(self))
    }

    /// The time of a rank.
    pub(super) fn now(&self, rank: usize) -> Picos {
        self.state.lock().ranks[rank].clock
    }

    /// A rank is busy for some time. The job ends if that is beyond the end of time.
    pub(super) fn spend(&self, rank: usize, time: Picos) {
        let mut state = self.state.lock();
        let clock = state.ranks[rank].clock + time;
        if clock < END_OF_TIME {
            state.ranks[rank].clock = clock;
        } else {
            self.fabric.end(Some(rank), "computes beyond the end of virtual time, 100 days");
        }
    }

    /// Says whether a range of a rank's segment has contents.
    pub(super) fn set_contents(&self, rank: usize, range: Range<usize>, has: bool) {
        let hollow = &mut self.state.lock().ranks[rank].hollow;
        // What overlaps loses that part.
        while let Some((&begin, &end)) = hollow.range(..range.end).next_back().filter(|&(_, &end)| end > range.start) {
            hollow.remove(&begin);
            let (before, after) = (begin..range.start, range.end..end);
            hollow.extend([before, after].into_iter().filter(|part| part.start < part.end).map(|part| (part.start, part.end)));
        }
        if !has && range.start < range.end {
            hollow.insert(range.start, range.end);
        }
    }

    /// Issues an operation.
    pub(super) fn issue(&self, rank: usize, mut flight: Flight) {
        let mut state = self.state.lock();
        // What this rank has created, not the other: that one may not have come so far.
        flight.hollow = state.ranks[rank].is_hollow(flight.offset());
        let overhead = state.model.machine().adapter.overhead;
        let copies = if flight.kind.is_put() { state.model.copies(rank, flight.to, flight.len()) } else { Picos::ZERO };
        let issuer = &mut state.ranks[rank];
        issuer.clock = issuer.clock + overhead + copies;
        issuer.flying += 1;
        let at = issuer.clock;
        if flight.kind.is_put() {
            issuer.puts.meet(flight.to).puts += 1;
        }
        issuer.lent += usize::from(flight.is_lent());
        let id = state.flights.add(flight);
        if state.events.next_at().is_none_or(|next| next > at) {
            // Nothing comes before it: no other rank runs until then.
            let _ = state.happens(at, Happens::Leaves(id), self);
        } else {
            state.events.add(at, rank, Happens::Leaves(id));
        }
    }

    /// Asks for a report when all that a rank has put to another was answered.
    pub(super) fn flush(&self, by: usize, of: usize, token: Token) {
        let mut state = self.state.lock();
        let flushes = &mut state.ranks[by];
        match flushes.puts.get_mut(of).filter(|unanswered| unanswered.puts > 0) {
            Some(unanswered) => unanswered.flushes.push(token),
            None => flushes.reports.push(Event::RemoteDone(token)),
        }
    }

    /// Whether all was handled that a rank has issued, and it knows what others sent. Lets nobody run: a rank asks while it takes a wait back.
    pub(super) fn is_settled(&self, rank: usize) -> bool {
        let state = self.state.lock();
        let rank = &state.ranks[rank];
        rank.flying == 0 && rank.reports.is_empty()
    }

    /// Whether the adapter takes one more operation of a rank without a wait.
    pub(super) fn has_room(&self, rank: usize) -> bool {
        let state = self.state.lock();
        state.ranks[rank].flying < state.model.machine().adapter.window
    }

    /// An operation that was refused is reported as failed.
    pub(super) fn refuse(&self, rank: usize, token: Token) {
        self.state.lock().ranks[rank].reports.push(Event::Failed(token, Cause(why_not_here().into())));
    }

    /// Gives up what a request has in flight of its caller's memory: nothing touches that any more.
    pub(super) fn cancel(&self, rank: usize, token: Token) {
        self.state.lock().give_up(rank, Some(token));
    }

    /// The body of a rank has ended, and with it the memory of its requests.
    pub(super) fn let_go(&self, rank: usize) {
        self.state.lock().give_up(rank, None);
    }

    /// What a rank has to poll, when all has happened that happens before its time.
    pub(super) fn poll(&self, rank: usize, reports: &mut Reports) {
        let is_here = self.is_here(rank);
        let mut state = self.catch_up(rank);
        let polls = &mut state.ranks[rank];
        if polls.reports.is_empty() && is_here {
            polls.clock += LOOK;
        }
        reports.append(&mut polls.reports);
    }

    /// Returns when a rank has something to poll, or the word has changed, or after a tick.
    pub(super) fn sleep(&self, rank: usize, word: Option<(&WaitWord, u32)>) {
        let mut state = self.catch_up(rank);
        let changed = word.is_some_and(|(word, seen)| word.load() != seen);
        if changed || !state.ranks[rank].reports.is_empty() || self.is_still(rank) {
            return;
        }
        state.ranks[rank].phase = Phase::Sleeps(word.map(|(word, seen)| (Word(word), seen)));
        self.end_turn(state, rank);
    }

    /// Returns after so much time.
    pub(super) fn pause(&self, rank: usize, time: Picos) {
        if !self.is_still(rank) {
            self.spend(rank, time);
            drop(self.catch_up(rank));
        }
    }

    /// Whether the caller is a rank that has its turn, and does not unwind.
    pub(super) fn is_here(&self, rank: usize) -> bool {
        self.ranks.is_turn_of(rank) && !std::thread::panicking()
    }

    /// Whether a rank may not let others run: the job is over, or the rank unwinds, and another that ran meanwhile would be taken to unwind
    /// too.
    fn is_still(&self, rank: usize) -> bool {
        !self.is_here(rank) || self.fabric.over().load(Ordering::Relaxed) != 0
    }

    /// Lets happen what happens up to the time of a rank that has its turn.
    fn catch_up(&self, rank: usize) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        if self.is_still(rank) {
            return state;
        }
        let clock = state.ranks[rank].clock;
        if state.events.next_at().is_some_and(|at| at <= clock) {
            state.events.add(clock, rank, Happens::Turn(rank as u32));
            self.end_turn(state, rank);
            return self.state.lock();
        }
        state.now = state.now.max(clock);
        state
    }

    /// Lets others run until a turn of this rank.
    fn end_turn(&self, mut state: MutexGuard<'_, State>, rank: usize) {
        let next = state.advance(self);
        if next != Some(rank) {
            drop(state);
            elsewhere(|| self.ranks.suspend(rank, next, |next| self.state.lock().next = Some(next)));
        }
    }

    /// Everyone is to see that the job is over.
    pub(super) fn wake_all(&self) {
        let mut state = self.state.lock();
        (0..self.fabric.ranks()).for_each(|rank| state.wake(rank));
    }

    /// The last turn of a rank.
    pub(super) fn ended(&self, rank: usize) {
        let mut state = self.state.lock();
        state.give_up(rank, None);
        state.ranks[rank].phase = Phase::Ended;
        state.alive -= 1;
    }
}

impl State {
    /// Lets things happen until a rank gets its turn: that one. None when all have ended.
    fn advance(&mut self, world: &World) -> Option<usize> {
        while self.alive > 0 {
            let (at, event) = self.events.take()?;
            if let Some(rank) = self.happens(at, event, world) {
                return Some(rank);
            }
        }
        None
    }

    /// An event; the rank that gets its turn by it.
    fn happens(&mut self, at: Picos, event: Happens, world: &World) -> Option<usize> {
        self.now = at;
        self.report.end = at;
        self.report.events += 1;
        self.digest(at, event);
        match event {
            Happens::Turn(rank) => {
                let rank = rank as usize;
                let runs = &mut self.ranks[rank];
                runs.clock = runs.clock.max(at);
                return Some(rank);
            }
            Happens::Leaves(id) => self.leaves(id),
            Happens::Travels(id) => self.travels(id),
            Happens::Arrives(id) => self.arrives(id, &world.fabric),
            Happens::Done(id) => self.done(id, &world.fabric),
            Happens::Tick => self.tick(world),
            Happens::Dies(rank) => {
                self.faults -= 1;
                let seconds = at.duration().as_secs_f64();
                world.fabric.end(Some(rank as usize), &format!("died after {seconds} s, as GA_FAULTS says"));
                (0..self.ranks.len()).for_each(|rank| self.wake(rank));
            }
            Happens::Stalls(node, until) => {
                self.faults -= 1;
                self.model.stall(node as usize, until);
            }
        }
        None
    }

    /// Adds an event to the digest of all.
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
        };
        let message = self.flights.get(what).filter(|_| code == 2).map_or([0; 4], Flight::words);
        // FNV-1a, a word at a time.
        for word in [at.0, code, what].into_iter().chain(message) {
            self.report.digest = (self.report.digest ^ word).wrapping_mul(0x100_0000_01B3).rotate_left(23);
        }
    }

    /// A rank gets a turn if it sleeps.
    fn wake(&mut self, rank: usize) {
        let sleeper = &mut self.ranks[rank];
        if let Phase::Sleeps(_) = sleeper.phase {
            sleeper.phase = Phase::Runs;
            let at = self.now.max(sleeper.clock);
            self.events.add(at, rank, Happens::Turn(rank as u32));
        }
    }

    /// Something has happened to the memory of a rank.
    fn touched(&mut self, rank: usize) {
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
        let ((from, to, bytes), source) = (flight.leg(), flight.from);
        let handed = self.now + self.delay(id, from, to);
        match self.model.begins(handed, from, to, bytes) {
            begin if begin > self.now => self.events.add(begin, source, Happens::Travels(id)),
            _ => self.travels(id),
        }
    }

    /// How late a message leaves, because of a fault.
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
        let (from, to, bytes) = flight.leg();
        let times = match self.model.travels(self.now, from, to, bytes, &mut flight.way) {
            Next::Ends(times) => times,
            Next::Head(at) => return self.events.add(at, flight.from, Happens::Travels(id)),
        };
        self.report.messages += 1;
        let is_back = flight.is_back();
        let copies = if is_back { self.model.copies(from, to, bytes) } else { Picos::ZERO };
        let late = self.late(id, from, to);
        let flight = self.flights.get_mut(id).expect("it was there");
        flight.answered = times.answered + late;
        let next = if is_back { Happens::Done(id) } else { Happens::Arrives(id) };
        self.events.add(times.arrived + copies + late, flight.from, next);
    }

    /// How much later than in the model a message arrives: where the network keeps no order, a seed has another.
    fn late(&self, id: u64, from: usize, to: usize) -> Picos {
        let adapter = &self.model.machine().adapter;
        let is_mail = self.flights.get(id).is_some_and(|flight| matches!(flight.kind, Kind::Mail(_)));
        if adapter.ordered || is_mail || self.model.copies(from, to, 1) > Picos::ZERO {
            return Picos::ZERO;
        }
        Picos(self.events.draw(id) % (2 * adapter.latency.0 + 1))
    }

    fn arrives(&mut self, id: u64, fabric: &Fabric) {
        let Some(flight) = self.flights.get_mut(id) else { return };
        let (from, to) = (flight.from, flight.to);
        match flight.kind {
            Kind::Put(signal) => {
                flight.write(fabric, signal);
                self.events.add(flight.answered, from, Happens::Done(id));
                self.touched(to);
            }
            Kind::Get | Kind::Atomic(_) => {
                flight.apply(fabric);
                // What it brings back leaves now, or when it is read.
                if matches!(flight.kind, Kind::Get) && !self.model.is_near(from, to) {
                    let read = self.now + self.model.machine().adapter.read;
                    self.events.add(read, to, Happens::Leaves(id));
                } else {
                    self.leaves(id);
                }
                self.touched(to);
            }
            Kind::Mail(mail) => {
                self.flights.remove(id);
                self.ranks[from].flying -= 1;
                self.tell(to, Event::Mail(from, mail));
            }
        }
    }

    fn done(&mut self, id: u64, fabric: &Fabric) {
        let Some(flight) = self.flights.remove(id) else { return };
        let issuer = &mut self.ranks[flight.from];
        issuer.flying -= 1;
        issuer.lent -= usize::from(flight.is_lent());
        if flight.kind.is_put() {
            let unanswered = self.ranks[flight.from].puts.meet(flight.to);
            unanswered.puts -= 1;
            if unanswered.puts == 0 {
                let flushes = std::mem::take(&mut unanswered.flushes);
                flushes.into_iter().for_each(|token| self.tell(flight.from, Event::RemoteDone(token)));
            }
        }
        if let Some(report) = flight.done(fabric) {
            self.tell(flight.from, report);
        }
    }

    /// Nothing touches local memory of a rank any more, of one request or of all, and what would have is reported as failed.
    fn give_up(&mut self, rank: usize, token: Option<Token>) {
        if self.ranks[rank].lent == 0 {
            return;
        }
        let mut failed = Vec::new();
        for (_, flight) in self.flights.iter_mut() {
            if flight.from == rank && token.is_none_or(|token| flight.token == token) {
                failed.extend(flight.give_up());
            }
        }
        self.ranks[rank].lent -= failed.len();
        for token in failed {
            self.tell(rank, Event::Failed(token, Cause("it was given up".into())));
        }
    }

    fn tick(&mut self, world: &World) {
        let messages = self.report.messages;
        let idles = self.events.len() == self.faults && self.idle.1 == messages;
        self.idle = (if idles { self.idle.0 + 1 } else { 0 }, messages);
        if self.idle.0 > DEAD {
            world.fabric.end(None, "no message is on its way, and no rank can run");
        }
        (0..self.ranks.len()).for_each(|rank| self.wake(rank));
        self.events.add(self.now + world.tick, self.ranks.len(), Happens::Tick);
    }
}
