//! What a rank knows of the ranks of other machines, and what it tells them of its own.
//!
//! The ranks of a machine see each other's control pages (`node`). Between machines supervisors exchange *notes*. The active messages
//! carry them like other requests, and their answers; a note changes no memory of the program.
//!
//! | note | what it says |
//! |---|---|
//! | `Ask` | tell me of yourself |
//! | `Tell` | the answer: where the rank is, what wait it has published, how often it looked |
//! | `Wave` | tell me when all ranks of your machine, and of those below it, wait (`protocol::waves`) |
//! | `AllWait` | the answer, once they do |
//! | `Beat`, `Alive` | are you there, and the answer (`protocol::beats`); an `Am` keeps them to itself |
//!
//! # What an answer proves
//!
//! A rank publishes a wait only when all that it has put, signaled or mailed to whomever was *handled*
//! ([`Network::settled`](crate::comm::Network::settled)). It sends nothing more before it takes the publication back, but for tries to take the
//! lock that it waits for. So a published wait says: what this rank has done for others has arrived. An answer carries the moment at
//! which it was asked for, by the clock of who asked. Whatever the answer says was true at that moment or later. That is all that
//! `lasting` needs to tell a deadlock from a slow network, however late notes arrive.
//!
//! # What is asked
//!
//! A rank asks only the rank that it waits for, the rank that this one waits for, and so on, and only once its wait has lasted: each that
//! waits some times a second, one that does not wait ever more seldom. It keeps one answer for each rank that it ever asked.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::Fabric;
use crate::comm::{
    PublishedWait, Topology,
    mutex::Mutex,
    protocol::waves::{Stage, Step, Waves},
};

/// An answer is asked for again after this long if the rank waits. If it does not, many may ask it while it computes: then ever more
/// seldom.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(3200)];

/// Older answers say nothing of where a rank is now.
const OLD: Duration = Duration::from_secs(6);

/// An unanswered question is repeated after this long.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What supervisors say to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub what: What,
    pub words: [u64; WORDS],
    pub text: String,
}

/// Words of a note.
const WORDS: usize = 7;

/// The longest text of a note, in bytes; it fits any frame.
const LONGEST_TEXT: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum What {
    /// The time when it was asked, by the clock of the rank that asks.
    Ask = 1,
    /// That time, place (two words), wait, looks, whether the rank has come to its end, whether all of its machine have; text: what it
    /// waits for.
    Tell = 2,
    /// Number of the wave.
    Wave = 3,
    /// Number of the wave, stage; text: each rank and what it waits for.
    AllWait = 4,
    /// Are you there?
    Beat = 5,
    /// The answer.
    Alive = 6,
}

impl What {
    fn of(code: u64) -> Option<Self> {
        [What::Ask, What::Tell, What::Wave, What::AllWait, What::Beat, What::Alive].into_iter().find(|what| *what as u64 == code)
    }
}

impl Note {
    /// As words and text of a record.
    pub(crate) fn record(&self) -> ([u64; 1 + WORDS], &[u8]) {
        let words = std::array::from_fn(|k| if k == 0 { self.what as u64 } else { self.words[k - 1] });
        (words, self.text.as_bytes())
    }

    /// From words and text of a record.
    pub(crate) fn of_record([what, words @ ..]: [u64; 1 + WORDS], text: &[u8]) -> Option<Self> {
        let what = What::of(what)?;
        Some(Note { what, words, text: String::from_utf8_lossy(text).into_owned() })
    }

    /// A note that says nothing more.
    pub(crate) fn bare(what: What) -> Self {
        Note::new(what, &[], String::new())
    }

    fn new(what: What, words: &[u64], text: String) -> Self {
        let mut all = [0; WORDS];
        all[..words.len()].copy_from_slice(words);
        Note { what, words: all, text }
    }
}

/// What a rank of another machine said of itself.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// When it was asked.
    at: Duration,
    place: [u64; 2],
    wait: u64,
    looks: u64,
    ended: bool,
    /// All ranks of its machine have come to their end.
    machine_ended: bool,
    object: String,
    /// The text of the call that it is in, or was in last.
    call: String,
}

/// Stands between the texts of an answer.
const BETWEEN: char = '\u{1f}';

/// What is published for a call stands in the upper half of the second word of a place.
pub(crate) const CALL_SHIFT: u32 = 32;

#[derive(Debug)]
struct Far {
    /// When it was asked last, if it has not answered.
    asked: Option<Duration>,
    /// Between its answer and the next question.
    pause: Duration,
    seen: Option<Seen>,
}

impl Default for Far {
    fn default() -> Self {
        Far { asked: None, pause: PAUSES[0], seen: None }
    }
}

/// See the module's essay.
#[derive(Debug)]
pub(crate) struct Supervisor {
    fabric: Arc<Fabric>,
    topology: Topology,
    start: Instant,
    far: Mutex<BTreeMap<usize, Far>>,
    /// All ranks of so many machines, from the first on, are known to have come to their end.
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

    /// What a rank of another machine was last seen in, if that is not long ago.
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

    /// Whether a rank of another machine has come to its end, by its last answer.
    pub(crate) fn has_ended(&self, rank: usize) -> bool {
        self.far.lock().get(&rank).and_then(|far| far.seen.as_ref()).is_some_and(|seen| seen.ended)
    }

    /// Whether any rank of another machine is known to have come to its end.
    pub(crate) fn knows_ends(&self) -> bool {
        self.far.lock().values().any(|far| far.seen.as_ref().is_some_and(|seen| seen.ended))
    }

    /// The wait that a rank of another machine has published, by its last answer; and what to send it for another one.
    pub(crate) fn published_wait(&self, rank: usize) -> (Option<PublishedWait>, Option<Note>) {
        let (seen, question) = self.ask(rank);
        let wait = seen.and_then(|seen| PublishedWait::of_words(seen.wait, seen.looks, self.topology.size(), seen.at));
        (wait, question)
    }

    /// Whether all ranks of other machines are known to have come to their end; and whom to ask what, if that is not known. The first
    /// ranks of machines are asked one after the other, so that one that has not ended costs one question.
    pub(crate) fn have_others_ended(&self) -> (bool, Option<(usize, Note)>) {
        let own = self.topology.machine(self.topology.rank());
        let mut ended = self.ended_machines.lock();
        while *ended < self.topology.machines() {
            let first = self.topology.first_of_machine(*ended);
            if *ended != own {
                let has_ended =
                    self.far.lock().get(&first).and_then(|far| far.seen.as_ref()).is_some_and(|seen| seen.machine_ended);
                if !has_ended {
                    return (false, self.ask(first).1.map(|question| (first, question)));
                }
            }
            *ended += 1;
        }
        (true, None)
    }

    /// What a rank of another machine answered last, and what to send it for another answer.
    fn ask(&self, rank: usize) -> (Option<Seen>, Option<Note>) {
        let now = self.now();
        let mut all = self.far.lock();
        let far = all.entry(rank).or_default();
        let is_due = far.seen.as_ref().is_none_or(|seen| now.saturating_sub(seen.at) >= far.pause);
        // Questions are not lost. Should one be, because a job was about to end, there is another one.
        let question = (is_due && far.asked.is_none_or(|asked| now.saturating_sub(asked) >= FORGOTTEN)).then(|| {
            far.asked = Some(now);
            Note::new(What::Ask, &[now.as_nanos() as u64], String::new())
        });
        (far.seen.clone(), question)
    }

    /// A note has come. What to answer, if anything.
    pub(crate) fn hear(&self, from: usize, note: Note) -> Option<Note> {
        let [first, second, third, wait, looks, ended, machine_ended] = note.words;
        match note.what {
            What::Ask => {
                let own = self.topology.local(self.topology.rank());
                let [place, detail] = self.fabric.place(own);
                // The looks are read behind the wait, as `node` has them read.
                let (wait, looks) = self.fabric.wait_words(own);
                let ended = [self.fabric.has_ended(own), self.fabric.ends() == self.fabric.ranks()].map(u64::from);
                let words = [first, place, detail, wait, looks, ended[0], ended[1]];
                let texts = [self.fabric.call(own, detail >> CALL_SHIFT), self.fabric.object(own)];
                Some(Note::new(What::Tell, &words, cut(texts.join(&BETWEEN.to_string()))))
            }
            What::Tell => {
                let mut all = self.far.lock();
                let now = self.now();
                let far = all.get_mut(&from)?;
                // The first word is the time at which it was asked for.
                let at = Duration::from_nanos(first).min(now);
                if far.seen.as_ref().is_some_and(|seen| seen.at > at) {
                    return None;
                }
                far.asked = None;
                let [least, most] = PAUSES;
                far.pause = if PublishedWait::is_wait(wait) { least } else { (2 * far.pause).min(most) };
                let [ended, machine_ended] = [ended, machine_ended].map(|word| word != 0);
                let (call, object) = note.text.split_once(BETWEEN).unwrap_or_default();
                let (call, object) = (call.to_owned(), object.to_owned());
                far.seen = Some(Seen { at, place: [second, third], wait, looks, ended, machine_ended, object, call });
                None
            }
            What::Wave => {
                self.waves.lock().asked(first);
                None
            }
            What::Beat | What::Alive => None,
            What::AllWait => {
                let machine = self.topology.machine(from);
                self.waves.lock().heard(machine, first, Stage::of(second)?, note.text);
                None
            }
        }
    }

    /// Takes part in finding out whether all ranks of the job wait for good: the first rank of each machine does, while it waits. The notes to
    /// send, and at the first machine, if they do, what they wait for.
    pub(crate) fn look_at_all(&self) -> (Vec<(usize, Note)>, Option<String>) {
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
        let Step { wave, answer, found } = self.waves.lock().step(self.now(), look, say);
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

    /// What the ranks of this machine wait for, for people.
    fn what_they_wait_for(&self) -> String {
        /// More of a machine are not named.
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

/// As much of a text as a note carries.
fn cut(mut text: String) -> String {
    let end = (0..=LONGEST_TEXT.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.truncate(end);
    text
}
