//! All ranks of a job in virtual time, as each of them sees it: what it issues, polls and waits for.
//!
//! A rank's clock runs ahead of the events (`state`) while it computes or issues operations. Before it polls or waits, all events up to
//! its time are handled. So it has seen all that arrived by then, and its operations leave in the order of time.

use std::{
    ops::Range,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::{
    flight::Flight,
    idle::LOOK,
    state::{Happens, IdleWait, NextTask, Phase, Report, Word, WorldState},
};
use crate::{
    calls::elsewhere,
    comm::{
        Cause, Event, Events as Reports, Network, Token, WaitWord,
        kit::mutex::Mutex,
        node::Fabric,
        soft::{Faults, Machine, Picos, RankTurns},
    },
};

/// A waiting rank wakes up at this interval, to find out whether it waits in vain.
const TICK: Picos = Picos(500_000_000_000);

/// The ranks of a job and what happens to them in virtual time.
#[derive(Debug)]
pub(super) struct World {
    fabric: Arc<Fabric>,
    ranks: RankTurns,
    state: Mutex<WorldState>,
    /// The networks that the agents of ranks look at.
    pub(super) services: Mutex<Vec<Option<Arc<dyn Network>>>>,
}

/// Virtual time ends here, after 100 days: long before it could overflow.
const END_OF_TIME: Picos = Picos(100 * 86_400 * 1_000_000_000_000);

/// The reason for refusing a call.
pub(super) fn why_not_here() -> &'static str {
    if std::thread::panicking() {
        "this rank panics"
    } else {
        "a simulated rank calls from its own thread only: one that the program has started has no place in virtual time"
    }
}

/// Moves reports to a caller that polls. Their memory goes too: the allocator's next is in a cache, that of a rank is not.
fn take(reports: &mut Reports, to: &mut Reports) {
    if to.is_empty() { *to = std::mem::take(reports) } else { to.append(reports) }
}

impl World {
    pub(super) fn new(
        fabric: Arc<Fabric>,
        ranks: RankTurns,
        machine: Machine,
        seed: u64,
        faults: Faults,
        timeout: Option<f64>,
    ) -> Self {
        let tick = timeout.map_or(TICK, |seconds| TICK.min(Picos::of_seconds(seconds)));
        let state = WorldState::new(fabric.clone(), machine, seed, faults, tick);
        let services = (0..fabric.ranks()).map(|_| None).collect();
        World { fabric, ranks, state: Mutex::new(state), services: Mutex::new(services) }
    }

    pub(super) fn ranks(&self) -> &RankTurns {
        &self.ranks
    }

    pub(super) fn report(&self) -> Report {
        self.state.lock().report
    }

    /// The rank whose turn is next; none when all have ended.
    pub(super) fn next(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let known = state.next.take();
        known.or_else(|| self.advance(state).1)
    }

    /// Lets things happen until a rank has its turn. None when all have ended.
    fn advance<'w>(&'w self, mut state: MutexGuard<'w, WorldState>) -> (MutexGuard<'w, WorldState>, Option<usize>) {
        loop {
            match state.advance() {
                Some(NextTask::Serve(rank)) => {
                    drop(state);
                    self.serve(rank);
                    state = self.state.lock();
                }
                Some(NextTask::Turn(rank)) => return (state, Some(rank)),
                None => return (state, None),
            }
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock()
    }

    pub(super) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub(super) fn over(&self) -> &AtomicU32 {
        self.fabric.over()
    }

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

    /// Sets whether a range of a rank's segment has contents.
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

    pub(super) fn issue(&self, rank: usize, mut flight: Flight) {
        let mut state = self.state.lock();
        // This rank's own record counts: the target may not have created the array yet.
        flight.hollow = state.ranks[rank].is_hollow(flight.offset());
        let (to, machine) = (flight.message.target(), state.model.machine());
        // No adapter is asked for a rank's own memory.
        let overhead = if to == rank { LOOK } else { machine.adapter.overhead };
        let copies = if flight.kind.is_put() { state.model.copies(rank, to, flight.len()) } else { Picos::ZERO };
        let moves = state.model.moves(rank, to, flight.message.bytes, false);
        let issuer = &mut state.ranks[rank];
        let at = issuer.clock + overhead + copies;
        issuer.clock = at + moves;
        issuer.flying += 1;
        if flight.kind.is_put() {
            issuer.puts.meet(flight.message.target()).puts += 1;
        }
        issuer.lent += usize::from(flight.is_lent());
        let id = state.flights.add(flight);
        if state.events.next_at().is_none_or(|next| next > at) {
            // Nothing comes before it: no other rank runs until then.
            let _ = state.happens(at, Happens::Leaves(id));
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

    /// Returns true if all operations of a rank were handled, and it has taken all reports. Lets no other rank run: a rank asks
    /// while it takes a wait back.
    pub(super) fn is_settled(&self, rank: usize) -> bool {
        let state = self.state.lock();
        let rank = &state.ranks[rank];
        rank.flying == 0 && rank.reports.is_empty()
    }

    /// Returns true if the adapter takes one more operation of a rank without a wait.
    pub(super) fn has_room(&self, rank: usize) -> bool {
        let state = self.state.lock();
        state.ranks[rank].flying < state.model.machine().adapter.window
    }

    /// Refuses an operation of a caller that has no place in virtual time: it is reported as failed.
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
        state.deliver_held();
        let polls = &mut state.ranks[rank];
        if polls.reports.is_empty() && is_here {
            polls.clock += LOOK;
        }
        take(&mut polls.reports, reports);
    }

    /// As [`poll`](Self::poll), but if there is nothing, goes on with the wait that the rank is in.
    pub(super) fn poll_patiently(&self, rank: usize, reports: &mut Reports, first: &mut Option<Duration>, most: Duration) {
        if self.is_still(rank) {
            return self.poll(rank, reports);
        }
        let mut state = self.state.lock();
        state.ranks[rank].idle = Some(IdleWait::new(*first, most));
        if !state.has_idled(rank) {
            self.end_turn(state, rank);
            state = self.state.lock();
        }
        state.deliver_held();
        let polls = &mut state.ranks[rank];
        *first = polls.idle.take().and_then(|idle| idle.first);
        take(&mut polls.reports, reports);
    }

    /// Returns when a rank has something to poll, or the word has changed, or after a tick.
    pub(super) fn sleep(&self, rank: usize, word: Option<(&WaitWord, u32)>) {
        let mut state = self.catch_up(rank);
        state.deliver_held();
        let changed = word.is_some_and(|(word, seen)| word.load() != seen);
        let asleep = &state.ranks[rank];
        if changed || !asleep.reports.is_empty() || asleep.wired.rung || asleep.wired.told || self.is_still(rank) {
            return;
        }
        state.ranks[rank].phase = Phase::Sleeps(word.map(|(word, seen)| (Word(word), seen)));
        self.end_turn(state, rank);
    }

    pub(super) fn pause(&self, rank: usize, time: Picos) {
        if !self.is_still(rank) {
            self.spend(rank, time);
            drop(self.catch_up(rank));
        }
    }

    /// Returns true if the caller is `rank`, has its turn, and does not unwind.
    pub(super) fn is_here(&self, rank: usize) -> bool {
        self.ranks.is_turn_of(rank) && !std::thread::panicking()
    }

    /// Returns true if a rank may not let others run: the job is over, it does not have the turn, or it unwinds. A rank that ran
    /// meanwhile would be taken to unwind too.
    pub(super) fn is_still(&self, rank: usize) -> bool {
        !self.is_here(rank) || self.fabric.over().load(Ordering::Relaxed) != 0
    }

    /// Lets happen what happens up to the time of a rank that has its turn.
    pub(super) fn catch_up(&self, rank: usize) -> MutexGuard<'_, WorldState> {
        let mut state = self.state.lock();
        if self.is_still(rank) {
            return state;
        }
        if state.is_next(rank) {
            return state;
        }
        self.end_turn(state, rank);
        self.state.lock()
    }

    /// Lets others run until a turn of this rank.
    pub(super) fn end_turn(&self, state: MutexGuard<'_, WorldState>, rank: usize) {
        let (state, next) = self.advance(state);
        if next != Some(rank) {
            drop(state);
            elsewhere(|| self.ranks.suspend(rank, next, |next| self.state.lock().next = Some(next)));
        }
    }

    /// Wakes all ranks: they are to see that the job is over.
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
