//! Adapters that are modelled by code of their own (`soft::cables`), as the world joins them; and the agents of ranks that compute.
//!
//! What comes *rings* the rank that it is for. A rank that sleeps looks at once. If it computes its agent looks, after the time that it takes to
//! wake up. The agent is a processor of its own, with a clock of its own: what it takes, and what it sends, is not the rank's time.
//!
//! A rank and its agent share what the network keeps, and neither may act on what the other does later. So a rank enters its network only when
//! all has happened that happens before, and each waits until the other has left it.
//!
//! The agent of a rank is no thread. It acts between two events, on the stack of whoever handles these. No rank is inside its network then: ranks
//! let others run in waits only, and there outside of their networks.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    flight::Flight,
    idle::LOOK,
    state::{Happens, Phase, State},
    world::World,
};
use crate::comm::{
    Network,
    soft::{Adapters, Cables, Picos, Step, Wish},
};

/// Pauses of a rank that lets others run, the first one and the longest.
const PAUSES: [Picos; 2] = [Picos(1_000_000), Picos(10_000_000_000)];

impl State {
    /// Tells adapters something, and does what they wish.
    pub(super) fn tell_adapters(&mut self, tell: impl FnOnce(&dyn Adapters, Duration, &mut Vec<Wish>)) {
        let Some(adapters) = self.adapters.clone() else { return };
        let mut wishes = std::mem::take(&mut self.wishes);
        tell(&*adapters, self.now.duration(), &mut wishes);
        for wish in wishes.drain(..) {
            self.grant(wish, None);
        }
        self.wishes = wishes;
    }

    /// Does what adapters wish. Messages are handed over by a rank or its agent at a time, or else by the adapter itself, now.
    fn grant(&mut self, wish: Wish, handed: Option<Picos>) {
        match wish {
            Wish::Sends { from, to, bytes, number } => {
                let id = self.flights.add(Flight::wire(from, to, bytes, number, false));
                self.events.add(handed.unwrap_or(self.now).max(self.now), from as usize, Happens::Leaves(id));
            }
            Wish::Returns { from, to, bytes, number } => {
                let id = self.flights.add(Flight::wire(from, to, bytes, number, true));
                let read = self.now + self.model.machine().adapter.read;
                self.events.add(read, from as usize, Happens::Leaves(id));
            }
            Wish::Reminds { rank, at, number } => {
                self.events.add(Picos::of_duration(at).max(self.now), rank as usize, Happens::Time(number));
            }
            Wish::Rings { rank } => self.ring(rank as usize),
            Wish::Touches { rank } => self.touched(rank as usize),
        }
    }

    /// Something has come for a rank.
    pub(super) fn ring(&mut self, rank: usize) {
        let rung = &mut self.ranks[rank];
        rung.wired.rung = true;
        match rung.phase {
            Phase::Sleeps(_) => self.wake(rank),
            Phase::Runs if !rung.wired.called => {
                rung.wired.called = true;
                let wakes = self.model.machine().agent.map_or(Picos::ZERO, |agent| agent.wake_up);
                let wired = &self.ranks[rank].wired;
                let at = (self.now + wakes).max(wired.agent).max(wired.left);
                self.events.add(at, rank, Happens::Serves(rank as u32));
            }
            _ => {}
        }
    }

    /// Whether the agent of a rank has something to do, now that it is awake.
    pub(super) fn is_served(&mut self, rank: usize) -> bool {
        let now = self.now;
        let served = &mut self.ranks[rank];
        if served.wired.left > now {
            self.events.add(self.ranks[rank].wired.left, rank, Happens::Serves(rank as u32));
            return false;
        }
        served.wired.called = false;
        // A rank that goes on now looks itself.
        matches!(served.phase, Phase::Runs) && served.clock > now && served.wired.rung
    }

    /// The clock of a rank, or of its agent if that is at work.
    fn clock(&mut self, rank: usize) -> &mut Picos {
        let is_served = self.serving == Some(rank);
        let rank = &mut self.ranks[rank];
        if is_served { &mut rank.wired.agent } else { &mut rank.clock }
    }

    /// A rank, or its agent, is in its network for so long.
    fn works(&mut self, rank: usize, time: Picos) -> Picos {
        let clock = self.clock(rank);
        *clock += time;
        let until = *clock;
        if self.serving != Some(rank) {
            self.ranks[rank].wired.left = until;
        }
        until
    }
}

impl World {
    /// Joins the adapters of all ranks.
    pub(super) fn join(&self, adapters: Arc<dyn Adapters>) {
        self.state().adapters = Some(adapters);
    }

    /// Takes them away again.
    pub(super) fn part(&self) {
        let adapters = self.state().adapters.take();
        drop(adapters);
    }

    /// The network that the agent of a rank looks at; none when the rank has ended.
    pub(super) fn set_service(&self, rank: usize, network: Option<Arc<dyn Network>>) {
        self.services.lock()[rank] = network;
    }

    /// A rank whose network is code of its own enters it.
    pub(super) fn enter(&self, rank: usize) {
        let mut state = self.state();
        let entering = &mut state.ranks[rank];
        entering.clock = entering.clock.max(entering.wired.agent);
        drop(state);
        drop(self.catch_up(rank));
    }

    /// A rank looks at its network.
    pub(super) fn hush(&self, rank: usize) {
        let mut state = self.state();
        let wired = &mut state.ranks[rank].wired;
        (wired.rung, wired.slice) = (false, Picos::ZERO);
    }

    /// A rank, or the agent that it is, has looked at its network: if anything came, it may be for another rank of the node.
    pub(super) fn has_looked(&self, rank: usize) {
        let mut state = self.state();
        if !std::mem::take(&mut state.ranks[rank].wired.took) {
            return;
        }
        let per_node = state.model.machine().ranks_per_node;
        let first = rank - rank % per_node;
        for near in first..(first + per_node).min(self.fabric().ranks()) {
            if self.fabric().has_mail(near) {
                state.ring(near);
            } else {
                state.touched(near);
            }
        }
    }

    /// The agent of a rank looks at its network.
    pub(super) fn serve(&self, rank: usize) {
        let Some(network) = self.services.lock()[rank].clone() else { return };
        let mut state = self.state();
        let before = state.serving.replace(rank);
        let now = state.now;
        let wired = &mut state.ranks[rank].wired;
        wired.rung = false;
        wired.agent = wired.agent.max(now);
        let begin = wired.agent;
        drop(state);
        network.attend();
        self.has_looked(rank);
        let mut state = self.state();
        state.serving = before;
        // What it has found may be the first of more.
        if state.ranks[rank].wired.agent > begin {
            state.ring(rank);
        }
    }
}

impl Cables for World {
    fn now(&self, rank: usize) -> Duration {
        let mut state = self.state();
        let now = state.now;
        (*state.clock(rank)).max(now).duration()
    }

    fn ask(&self, rank: usize, wishes: &[Wish]) {
        let mut state = self.state();
        let overhead = state.model.machine().adapter.overhead;
        let sends = wishes.iter().any(|wish| matches!(wish, Wish::Sends { .. }));
        let handed = state.works(rank, if sends { overhead } else { Picos::ZERO });
        wishes.iter().for_each(|&wish| state.grant(wish, Some(handed)));
    }

    fn takes(&self, rank: usize, messages: usize) {
        let mut state = self.state();
        let time = Picos(state.model.machine().adapter.overhead.0 * messages as u64);
        state.works(rank, time);
        state.ranks[rank].wired.took = true;
    }

    fn steps(&self, rank: usize, step: Step) {
        let mut state = self.state();
        let time = state.model.machine().agent.map_or(Picos::ZERO, |agent| match step {
            Step::Prepares => agent.prepare,
            // To receive, and to send.
            Step::Connects => Picos(agent.connect.0 / 2),
        });
        state.works(rank, time);
    }

    fn ring_at(&self, rank: usize, at: Duration) {
        let mut state = self.state();
        let at = Picos::of_duration(at).max(state.now);
        let reminded = &mut state.ranks[rank].wired.reminded;
        if reminded.is_none_or(|asked| asked > at) {
            *reminded = Some(at);
            state.events.add(at, rank, Happens::Rings(rank as u32));
        }
    }

    fn pass(&self, rank: usize) -> bool {
        if self.is_still(rank) {
            return self.over().load(Ordering::Relaxed) == 0;
        }
        let agent = rank - rank % self.state().model.machine().ranks_per_node;
        if agent != rank {
            // It may have brought something to its agent, which looks whenever it can.
            self.serve(agent);
        }
        let mut state = self.catch_up(rank);
        state.ranks[rank].clock += LOOK;
        if std::mem::take(&mut state.ranks[rank].wired.rung) || self.is_still(rank) {
            return self.over().load(Ordering::Relaxed) == 0;
        }
        let [first, longest] = PAUSES;
        let paused = &mut state.ranks[rank];
        paused.wired.slice = Picos((2 * paused.wired.slice.0).clamp(first.0, longest.0));
        let at = paused.clock + paused.wired.slice;
        paused.phase = Phase::Sleeps(None);
        state.events.add(at, rank, Happens::Rings(rank as u32));
        self.end_turn(state, rank);
        self.over().load(Ordering::Relaxed) == 0
    }
}
