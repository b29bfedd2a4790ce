//! What a rank knows of the ranks of other machines, and what it tells them of its own.
//!
//! Supervisors exchange *notes*, which active messages carry. A note changes no memory of the program.
//!
//! | note | what it says |
//! |---|---|
//! | `Ask` | tell me of yourself, or of a rank that you answer for |
//! | `Tell` | the answer: place, published wait, count of looks |
//! | `Told` | then the same of the ranks along its chain of waits |
//! | `Wave`, `AllWait` | do all ranks wait, and the answer (`protocol::waves`) |
//! | `Beat`, `Alive` | are you there, and the answer (`protocol::beats`); an `Am` keeps them to itself |
//!
//! # What an answer proves
//!
//! A rank publishes a wait only when all that it has put, signaled or mailed was *handled*
//! ([`Network::settled`](crate::comm::Network::settled)). It sends nothing more before it takes the publication back, but for tries to
//! take the lock that it waits for. So what it has done for others has arrived.
//!
//! An answer carries the time of its question, by the clock of the rank that asked. What it says was true then or later. Its news of
//! other ranks is older, by an age that it names. That is all that `lasting` needs, however late notes arrive.
//!
//! # What is asked
//!
//! A rank whose wait has lasted asks the rank that it waits for. That rank asks the next, and passes on what it learns, or that it has
//! heard nothing yet. So if all ranks wait for one in the end, only the ranks that wait for it directly, and their machines, ask it. A
//! rank farther down the chain is asked directly if its news is late ([`patience`]), and every [`TOLD`] ranks. News of a rank comes in
//! any order. Its times, which are never too late, order it.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    Fabric,
    far::{FORGOTTEN, Far, OLD, PAUSES, Seen, TOLD, entry, patience},
};
use crate::comm::{
    PublishedWait, Topology,
    kit::mutex::Mutex,
    protocol::waves::{Stage, WaveStep, Waves},
    waist::note::{Note, UNKNOWN, What, cut, parts, texts},
};

/// What is published for a call stands in the upper half of the second word of a place.
pub(crate) const CALL_SHIFT: u32 = 32;

/// What a rank knows of those of other machines.
#[derive(Debug)]
pub(crate) struct Supervisor {
    fabric: Arc<Fabric>,
    topology: Topology,
    start: Instant,
    far: Mutex<BTreeMap<usize, Far>>,
    /// The number of machines, from the first on, whose ranks are all known to have come to their end.
    ended_machines: Mutex<usize>,
    waves: Mutex<Waves>,
}

impl Supervisor {
    pub(crate) fn new(fabric: Arc<Fabric>, topology: Topology, start: Instant) -> Self {
        let waves = Mutex::new(Waves::new(topology.machine(topology.rank()), topology.machines()));
        Supervisor { fabric, topology, start, far: Mutex::default(), ended_machines: Mutex::default(), waves }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The place in which a rank of another machine was last seen, if that is not long ago.
    pub(crate) fn last_seen(&self, rank: usize) -> Option<[u64; 2]> {
        let now = self.now();
        let far = self.far.lock();
        let seen = far.get(&rank)?.seen.as_ref()?;
        (now.saturating_sub(seen.at) < OLD).then_some(seen.place)
    }

    /// The call that a rank of another machine is in, or was in last, by its last answer.
    pub(crate) fn call(&self, rank: usize) -> String {
        let far = self.far.lock();
        far.get(&rank).and_then(|far| far.seen.as_ref()).map(|seen| seen.call.clone()).unwrap_or_default()
    }

    /// What a rank of another machine waits for, by its last answer.
    pub(crate) fn published_object(&self, rank: usize) -> String {
        let far = self.far.lock();
        far.get(&rank).and_then(|far| far.seen.as_ref()).map(|seen| seen.object.clone()).unwrap_or_default()
    }

    /// Returns true if a rank of another machine has come to its end, by its last answer.
    pub(crate) fn has_ended(&self, rank: usize) -> bool {
        self.far.lock().get(&rank).and_then(|far| far.seen.as_ref()).is_some_and(|seen| seen.ended)
    }

    /// Returns true if any rank of another machine is known to have come to its end.
    pub(crate) fn knows_ends(&self) -> bool {
        self.far.lock().values().any(|far| far.seen.as_ref().is_some_and(|seen| seen.ended))
    }

    /// The wait that a rank of another machine has published, by its last answer or the last news of it; and a question to send
    /// it, if one is due. The rank is `hops` ranks down a chain of waits, behind the last rank that is asked anyway.
    pub(crate) fn published_wait(&self, rank: usize, hops: usize) -> (Option<PublishedWait>, Option<Note>) {
        let (seen, question) = self.ask(rank, hops);
        let wait = seen.and_then(|seen| PublishedWait::of_words(seen.wait, seen.looks, self.topology.size(), seen.at));
        (wait, question)
    }

    /// Returns true if all ranks of other machines are known to have come to their end; else also a question to a rank, if one is
    /// due. First ranks of machines are asked one after the other, so that one that has not ended costs one question.
    pub(crate) fn have_others_ended(&self) -> (bool, Option<(usize, Note)>) {
        let own = self.topology.machine(self.topology.rank());
        let mut ended = self.ended_machines.lock();
        while *ended < self.topology.machines() {
            let first = self.topology.first_of_machine(*ended);
            if *ended != own {
                let has_ended =
                    self.far.lock().get(&first).and_then(|far| far.seen.as_ref()).is_some_and(|seen| seen.machine_ended);
                if !has_ended {
                    return (false, self.ask(first, 0).1.map(|question| (first, question)));
                }
            }
            *ended += 1;
        }
        (true, None)
    }

    /// The last answer of a rank of another machine, and a question to send it, if one is due.
    fn ask(&self, rank: usize, hops: usize) -> (Option<Seen>, Option<Note>) {
        let now = self.now();
        let mut all = self.far.lock();
        let far = entry(&mut all, rank, now);
        // If it was not wanted lately, this is another wait.
        let since = far.wanted.filter(|[_, last]| now.saturating_sub(*last) < OLD).map_or(now, |[since, _]| since);
        far.wanted = Some([since, now]);
        let is_due = if hops == 0 {
            far.seen.as_ref().is_none_or(|seen| now.saturating_sub(seen.at) >= far.pause)
        } else {
            let waits = far.seen.as_ref().is_none_or(|seen| PublishedWait::is_wait(seen.wait));
            let news = far.seen.as_ref().map_or(since, |seen| seen.at.max(since)).max(far.pending);
            now.saturating_sub(news) >= patience(hops, waits)
        };
        // Questions are not lost. Should one be, because a job was about to end, there is another one.
        let question = (is_due && far.asked.is_none_or(|asked| now.saturating_sub(asked) >= FORGOTTEN)).then(|| {
            far.asked = Some(now);
            Note::new(What::Ask, &[now.as_nanos() as u64], String::new())
        });
        (far.seen.clone(), question)
    }

    /// Takes a note for the rank with number `local` on this machine. Returns the answers, and a question to a rank, so that the
    /// next answer tells more.
    pub(crate) fn hear(&self, from: usize, local: usize, note: Note) -> (Vec<Note>, Option<(usize, Note)>) {
        match note.what {
            What::Ask => {
                let (asked, rank) = (note.words[0], self.topology.nth_of_machine(local));
                let (told, question) = self.told(rank, from, asked);
                (std::iter::once(self.tell(rank, asked)).chain(told).collect(), question)
            }
            _ => {
                self.learn(from, note);
                (Vec::new(), None)
            }
        }
    }

    /// The answer of a rank of this machine to a question of the time `asked`.
    fn tell(&self, rank: usize, asked: u64) -> Note {
        let Seen { place: [place, detail], wait, looks, ended, object, call, .. } = self.near(self.topology.local(rank));
        let machine_ended = self.fabric.ends() == self.fabric.ranks();
        let ends = u64::from(ended) | u64::from(machine_ended) << 1;
        let words = [asked, place, detail, wait, looks, ends, rank as u64];
        Note::new(What::Tell, &words, texts(&call, &object))
    }

    /// What a rank of this machine shows.
    fn near(&self, local: usize) -> Seen {
        let at = self.now();
        let place = self.fabric.place(local);
        let (wait, looks) = self.fabric.wait_words(local);
        let (ended, call) = (self.fabric.has_ended(local), self.fabric.call(local, place[1] >> CALL_SHIFT));
        Seen { at, place, wait, looks, ended, machine_ended: false, object: self.fabric.object(local), call }
    }

    /// What this rank knows of the ranks that a rank of this machine waits for, along the chain, but for the rank `to` that asks.
    /// Where this rank answers for another, it asks the rank that the other waits for: the other keeps to itself what it hears.
    fn told(&self, first: usize, to: usize, asked: u64) -> (Vec<Note>, Option<(usize, Note)>) {
        let mut question = None;
        let mut rank = first;
        let mut seen = self.near(self.topology.local(rank));
        let mut notes = Vec::new();
        for _ in 0..2 * TOLD {
            let wait = PublishedWait::of_words(seen.wait, seen.looks, self.topology.size(), seen.at);
            let Some(PublishedWait { awaited, .. }) = wait.filter(|wait| wait.awaited != rank && wait.awaited != to) else {
                break;
            };
            if awaited == first || notes.len() == TOLD {
                break;
            }
            // What is known of it, and the latest time at which a rank waited for news of it.
            let now = self.now();
            let (next, pending) = if self.topology.is_near(awaited) {
                (Some(self.near(self.topology.local(awaited))), Duration::ZERO)
            } else {
                if rank == first && first != self.topology.rank() {
                    question = self.ask(awaited, 0).1.map(|note| (awaited, note));
                }
                let all = self.far.lock();
                let pending = |far: &Far| if far.asked.is_some() { now } else { far.pending };
                all.get(&awaited).map_or_else(Default::default, |far| (far.seen.clone(), pending(far)))
            };
            let Some(next) = next.filter(|next| now.saturating_sub(next.at) < OLD) else {
                let age = now.saturating_sub(pending);
                if pending > Duration::ZERO && age < OLD {
                    notes.push(Note::new(
                        What::Told,
                        &[asked, awaited as u64, (age.as_nanos() as u64) << 1, UNKNOWN],
                        String::new(),
                    ));
                }
                break;
            };
            (rank, seen) = (awaited, next);
            // The rank that asks sees the ranks of its own machine.
            if self.topology.machine(rank) != self.topology.machine(to) {
                let age = self.now().saturating_sub(seen.at).as_nanos() as u64;
                let [place, detail] = seen.place;
                let words = [asked, rank as u64, age << 1 | u64::from(seen.ended), seen.wait, seen.looks, place, detail];
                notes.push(Note::new(What::Told, &words, texts(&seen.call, &seen.object)));
            }
        }
        (notes, question)
    }

    /// Takes an answer, or a wave that this rank is to answer later.
    fn learn(&self, from: usize, note: Note) {
        let [first, second, third, wait, looks, sixth, seventh] = note.words;
        match note.what {
            What::Told => {
                let ([rank, told, place, detail], now) = ([second, third, sixth, seventh], self.now());
                let rank = rank as usize;
                if rank >= self.topology.size() || self.topology.is_near(rank) {
                    return;
                }
                let at = Duration::from_nanos(first).min(now).saturating_sub(Duration::from_nanos(told >> 1));
                let mut all = self.far.lock();
                let far = entry(&mut all, rank, now);
                if wait == UNKNOWN {
                    far.pending = far.pending.max(at);
                    return;
                }
                let [call, object] = parts(&note.text);
                let (place, ended) = ([place, detail], told & 1 != 0);
                far.hears(Seen { at, place, wait, looks, ended, machine_ended: false, object, call });
            }
            What::Tell => {
                let mut all = self.far.lock();
                let now = self.now();
                let Some(far) = all.get_mut(&(seventh as usize)) else { return };
                // The first word is the time at which it was asked for.
                let at = Duration::from_nanos(first).min(now);
                far.asked = None;
                far.pause = (2 * far.pause).min(PAUSES[1]);
                let [ended, machine_ended] = [sixth & 1, sixth >> 1].map(|word| word != 0);
                let [call, object] = parts(&note.text);
                far.hears(Seen { at, place: [second, third], wait, looks, ended, machine_ended, object, call });
            }
            What::Wave => self.waves.lock().asked(first),
            What::AllWait => {
                if let Some(stage) = Stage::of(second) {
                    self.waves.lock().heard(self.topology.machine(from), first, stage, note.text);
                }
            }
            What::Ask | What::Beat | What::Alive => {}
        }
    }

    /// Takes part in finding out whether all ranks of the job wait for good. The first rank of each machine does while it waits,
    /// at times `now` of its clock. Returns the notes to send, and at the first machine what all wait for, if they do for good.
    pub(crate) fn look_at_all(&self, now: Duration) -> (Vec<(usize, Note)>, Option<String>) {
        let ranks = self.fabric.ranks();
        if self.topology.local(self.topology.rank()) != 0 {
            return (Vec::new(), None);
        }
        // Under the lock, so that no wave comes between it and what is seen.
        let look = || {
            let all_wait = self.fabric.waits() == ranks;
            let near = all_wait.then(|| (0..ranks).map(|local| self.fabric.wait_words(local)).collect::<Vec<_>>());
            // A rank may have taken its wait back since they were counted.
            near.filter(|near| near.iter().all(|(wait, _)| PublishedWait::is_wait(*wait)))
        };
        let say = || self.what_they_wait_for();
        let WaveStep { wave, answer, found } = self.waves.lock().step(now, look, say);
        let mut notes = Vec::new();
        if let Some((number, children)) = wave {
            let note = Note::new(What::Wave, &[number], String::new());
            notes.extend(children.into_iter().map(|machine| (self.topology.first_of_machine(machine), note.clone())));
        }
        if let Some((parent, number, stage, text)) = answer {
            let note = Note::new(What::AllWait, &[number, stage as u64], cut(text));
            notes.push((self.topology.first_of_machine(parent), note));
        }
        (notes, found)
    }

    /// What the ranks of this machine wait for, in words for people.
    fn what_they_wait_for(&self) -> String {
        /// The most ranks of a machine that are named.
        const NAMED: usize = 4;
        let ranks = self.topology.machine_ranks();
        let say = |(local, rank): (usize, &usize)| format!("rank {rank} waits for {}", self.fabric.object(local));
        let mut said: Vec<String> = ranks.iter().enumerate().take(NAMED).map(say).collect();
        if ranks.len() > NAMED {
            said.push(format!("{} more of their machine wait too", ranks.len() - NAMED));
        }
        said.join(", ")
    }
}
