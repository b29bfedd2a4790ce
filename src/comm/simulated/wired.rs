//! How the world joins adapters that have code of their own (`soft::cables`), and how agents answer for ranks that compute.
//!
//! What comes *rings* its rank. A sleeping rank looks at once. For a rank that computes its agent looks, after the time of a wake-up.
//! The agent is a processor with its own clock: what it does takes no time of the rank.
//!
//! A rank and its agent share the network's state, and neither may act on what the other does later. So a rank enters its network only
//! when all earlier events have happened, and each waits until the other has left.
//!
//! The agent is no thread. It acts between two events, on the stack of the thread or coroutine that handles them. So no rank may be
//! suspended while it holds its endpoint. Ranks let others run when they enter their networks, when they wait, and in `pass`, which is
//! called without the endpoint.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    flight::Flight,
    idle::LOOK,
    state::{Happens, Phase, WorldState},
    world::World,
};
use crate::comm::{
    Network,
    soft::{Adapters, Cables, Picos, SetupStep, Wish},
};

/// Pauses of a rank that lets others run, the first one and the longest.
const PAUSES: [Picos; 2] = [Picos(1_000_000), Picos(10_000_000_000)];

/// Sleeps of an agent that has left something to be done.
const NAPS: [Picos; 2] = [Picos(1_000_000), Picos(500_000_000)];

impl WorldState {
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
            Wish::Touches { rank } => self.words_changed(rank as usize),
        }
    }

    /// Wakes the ranks that sleep on a word that has changed, among those that an agent answers for.
    fn words_changed(&mut self, agent: usize) {
        let per_node = self.model.machine().ranks_per_node;
        for near in agent..(agent + per_node - agent % per_node).min(self.ranks.len()) {
            if let Phase::Sleeps(Some(_)) = self.ranks[near].phase {
                self.touched(near);
            }
        }
    }

    /// Rings a rank: something has arrived for it.
    pub(super) fn ring(&mut self, rank: usize) {
        let rung = &mut self.ranks[rank];
        rung.wired.rung = true;
        rung.wired.nap = Picos::ZERO;
        if let Phase::Sleeps(_) = rung.phase {
            self.wake(rank);
        } else {
            let wakes = self.model.machine().agent.as_ref().map_or(Picos::ZERO, |agent| agent.wake_up);
            self.call_agent(rank, wakes);
        }
    }

    /// The agent of a rank that does not sleep looks after a while.
    fn call_agent(&mut self, rank: usize, after: Picos) {
        let called = &mut self.ranks[rank];
        let at = (self.now + after).max(called.wired.agent).max(called.wired.left);
        if matches!(called.phase, Phase::Runs) && called.wired.called.is_none_or(|looks| looks > at) {
            called.wired.called = Some(at);
            self.events.add(at, rank, Happens::Serves(rank as u32));
        }
    }

    /// Calls the agent where nothing has arrived, but something is left to do: less often the longer that lasts.
    fn call_agent_again(&mut self, rank: usize) {
        let [first, longest] = NAPS;
        let nap = &mut self.ranks[rank].wired.nap;
        *nap = Picos((2 * nap.0).clamp(first.0, longest.0));
        let after = *nap;
        self.ranks[rank].wired.behind = true;
        self.call_agent(rank, after);
    }

    /// Returns true if the agent of a rank has something to do, now that it is awake.
    pub(super) fn is_served(&mut self, rank: usize) -> bool {
        let now = self.now;
        let served = &mut self.ranks[rank];
        if served.wired.called.take_if(|at| *at <= now).is_none() {
            return false;
        }
        let left = served.wired.left;
        if left > now {
            served.wired.called = Some(left);
            self.events.add(left, rank, Happens::Serves(rank as u32));
            return false;
        }
        // A rank that goes on now says what is left when it leaves.
        let wants = served.wired.rung || served.wired.behind;
        matches!(served.phase, Phase::Runs) && served.clock > now && wants
    }

    /// The clock of a rank, or of its agent if that is at work.
    fn clock(&mut self, rank: usize) -> &mut Picos {
        let is_served = self.serving == Some(rank);
        let rank = &mut self.ranks[rank];
        if is_served { &mut rank.wired.agent } else { &mut rank.clock }
    }

    /// A rank, or its agent, is in its network for `time`. Returns when that ends.
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
    pub(super) fn join(&self, adapters: Arc<dyn Adapters>) {
        self.state().adapters = Some(adapters);
    }

    /// Takes the adapters away again.
    pub(super) fn part(&self) {
        let adapters = self.state().adapters.take();
        drop(adapters);
    }

    /// The network that the agent of a rank looks at; none when the rank has ended.
    pub(super) fn set_service(&self, rank: usize, network: Option<Arc<dyn Network>>) {
        self.services.lock()[rank] = network;
    }

    /// A rank whose network is code of its own enters it: when all has happened that happens before, and its agent has left.
    pub(super) fn enter(&self, rank: usize) {
        loop {
            let mut state = self.catch_up(rank);
            let entering = &mut state.ranks[rank];
            (entering.wired.behind, entering.wired.slice) = (false, Picos::ZERO);
            if entering.wired.agent <= entering.clock || self.is_still(rank) {
                return;
            }
            entering.clock = entering.wired.agent;
        }
    }

    /// It leaves its network. What it leaves to be done, its agent does if it computes.
    pub(super) fn leave(&self, rank: usize, is_behind: bool) {
        let mut state = self.state();
        if is_behind {
            state.call_agent_again(rank);
        } else if state.ranks[rank].wired.rung {
            state.ring(rank);
        }
    }

    /// It has taken what its network had for it.
    pub(super) fn has_taken(&self, rank: usize) {
        self.state().ranks[rank].wired.told = false;
    }

    /// Returns true if nothing happens before a rank goes on, and its agent is not at work.
    pub(super) fn is_current(&self, rank: usize) -> bool {
        let state = self.state();
        let clock = state.ranks[rank].clock;
        state.ranks[rank].wired.agent <= clock && state.events.next_at().is_none_or(|at| at >= clock)
    }

    /// The agent of a rank's node may have something to do for it.
    pub(super) fn ring_agent(&self, rank: usize) {
        let mut state = self.state();
        let agent = rank - rank % state.model.machine().ranks_per_node;
        if agent != rank {
            state.ring(agent);
        }
    }

    /// The agent of a node has looked at its network, or the rank that it is a part of has: what came may be for other ranks of the node.
    pub(super) fn has_looked(&self, rank: usize) {
        let mut state = self.state();
        let per_node = state.model.machine().ranks_per_node;
        if !rank.is_multiple_of(per_node) {
            return;
        }
        for near in rank + 1..(rank + per_node).min(self.fabric().ranks()) {
            if state.ranks[near].wired.passes {
                state.ring(near);
            }
        }
        state.words_changed(rank);
    }

    /// The agent of a rank looks at its network.
    pub(super) fn serve(&self, rank: usize) {
        /// The agent's most looks before it sleeps again.
        const LOOKS: usize = 8;
        let Some(network) = self.services.lock()[rank].clone() else { return };
        let mut state = self.state();
        let before = state.serving.replace(rank);
        let now = state.now;
        let wired = &mut state.ranks[rank].wired;
        wired.behind = false;
        wired.agent = wired.agent.max(now);
        drop(state);
        let (mut is_behind, mut told) = (true, false);
        for _ in 0..LOOKS {
            told = network.attend();
            is_behind = network.is_behind();
            if !is_behind {
                break;
            }
        }
        self.has_looked(rank);
        let mut state = self.state();
        state.serving = before;
        state.ranks[rank].wired.told = told;
        if state.ranks[rank].wired.rung {
            state.ring(rank);
        } else if is_behind {
            state.call_agent_again(rank);
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

    fn has_polled(&self, rank: usize) {
        self.state().ranks[rank].wired.rung = false;
    }

    fn takes(&self, rank: usize, messages: usize, bytes: usize) {
        let mut state = self.state();
        let machine = state.model.machine();
        let handled = machine.agent.as_ref().map_or(Picos::ZERO, |agent| Picos::of_bytes(bytes, agent.handle_per_byte));
        let time = Picos(machine.adapter.overhead.0 * messages as u64) + handled;
        state.works(rank, time);
    }

    fn steps(&self, rank: usize, step: SetupStep) {
        let mut state = self.state();
        let time = state.model.machine().agent.as_ref().map_or(Picos::ZERO, |agent| match step {
            SetupStep::Prepares => agent.prepare,
            // To receive, and to send.
            SetupStep::Connects => Picos(agent.connect.0 / 2),
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
        let is_over = || self.over().load(Ordering::Relaxed) != 0 || !self.is_here(rank);
        if is_over() {
            return false;
        }
        self.has_looked(rank);
        // It may have brought something to the agent of its node.
        self.ring_agent(rank);
        let mut state = self.catch_up(rank);
        state.ranks[rank].clock += LOOK;
        if std::mem::take(&mut state.ranks[rank].wired.rung) || is_over() {
            return !is_over();
        }
        let [first, longest] = PAUSES;
        let paused = &mut state.ranks[rank];
        paused.wired.passes = true;
        paused.wired.slice = Picos((2 * paused.wired.slice.0).clamp(first.0, longest.0));
        let at = paused.clock + paused.wired.slice;
        paused.phase = Phase::Sleeps(None);
        state.events.add(at, rank, Happens::Rings(rank as u32));
        self.end_turn(state, rank);
        self.state().ranks[rank].wired.passes = false;
        !is_over()
    }
}
