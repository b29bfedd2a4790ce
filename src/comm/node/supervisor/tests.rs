//! Supervisors that exchange notes by hand.

use super::*;
use std::sync::atomic::Ordering;

/// A supervisor for each rank, on a machine of its own.
struct Ranks(Vec<Supervisor>);

impl Ranks {
    fn new(awaited: &[Option<usize>]) -> Self {
        let names: Vec<usize> = (0..awaited.len()).collect();
        let supervisor = |(rank, awaited): (usize, &Option<usize>)| {
            let fabric = Arc::new(Fabric::new(1, 1 << 20, false).expect("memory"));
            let control = fabric.control(0);
            control.wait.store(PublishedWait::word_after(0, *awaited), Ordering::Relaxed);
            control.object.set(&format!("what {rank} waits for"));
            Supervisor::new(fabric, Topology::of_machines(rank, &names), Instant::now())
        };
        Ranks(awaited.iter().enumerate().map(supervisor).collect())
    }

    /// Time goes by, and all ranks look once more.
    fn pass(&mut self, time: Duration) {
        for supervisor in &mut self.0 {
            supervisor.start -= time;
            supervisor.fabric.control(0).looks.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A rank follows the chain of waits; questions are answered at once. Returns the ranks that it asked and the waits that it
    /// found.
    fn follow(&self, from: usize) -> (Vec<usize>, Vec<PublishedWait>) {
        self.follow_but(from, |_| false)
    }

    /// As `follow`, but `silent` ranks do not answer.
    fn follow_but(&self, from: usize, silent: impl Fn(usize) -> bool) -> (Vec<usize>, Vec<PublishedWait>) {
        let (mut asked, mut found) = (Vec::new(), Vec::new());
        let mut rank = self.0[from].awaited();
        for hops in 0.. {
            let Some(next) = rank.filter(|&rank| rank != from) else { break };
            let (wait, question) = self.0[from].published_wait(next, hops % (TOLD + 1));
            if let Some(question) = question {
                asked.push(next);
                if silent(next) {
                    continue;
                }
                self.0[next].hear(from, 0, question).0.into_iter().for_each(|note| {
                    let (words, text) = note.record();
                    let note = Note::of_record(words, text).expect("a note");
                    assert!(self.0[from].hear(next, 0, note).0.is_empty());
                });
            }
            rank = wait.map(|wait| wait.awaited);
            found.extend(wait);
        }
        (asked, found)
    }
}

impl Supervisor {
    fn awaited(&self) -> Option<usize> {
        let seen = self.near(0);
        PublishedWait::of_words(seen.wait, seen.looks, self.topology.size(), seen.at).map(|wait| wait.awaited)
    }
}

const STEP: Duration = Duration::from_millis(100);

#[test]
fn only_who_waits_for_a_rank_asks_it_and_all_hear_of_it() {
    let last = 9;
    let awaited: Vec<Option<usize>> = (0..=last).map(|rank| (rank < last).then_some(rank + 1)).collect();
    let mut ranks = Ranks::new(&awaited);
    // A job is some seconds old when its ranks wait for the first time.
    ranks.pass(Duration::from_secs(5));
    for step in 0..300 {
        ranks.pass(STEP);
        for rank in 0..last {
            let (asked, found) = ranks.follow(rank);
            assert!(asked.iter().all(|&asked| asked == rank + 1), "at step {step} rank {rank} asks {asked:?}");
            assert!(step < 30 || found.len() == last - 1 - rank, "at step {step} rank {rank} finds {found:?}");
        }
    }
    let first = &ranks.0[0];
    assert_eq!(first.published_object(last - 1), format!("what {} waits for", last - 1));
    assert!(first.last_seen(last).is_some());
}

/// Of two ranks on a machine, the first one answers for both.
#[test]
fn who_answers_for_a_rank_asks_whom_that_rank_waits_for() {
    let agent = |rank: usize, awaited: Option<usize>| {
        let fabric = Arc::new(Fabric::new(2, 1 << 20, false).expect("memory"));
        fabric.control(1).wait.store(PublishedWait::word_after(0, awaited), Ordering::Relaxed);
        Supervisor::new(fabric, Topology::of_machines(rank, &[0, 0, 1, 1, 2, 2]), Instant::now())
    };
    let mut agents = [agent(0, None), agent(2, Some(5)), agent(4, Some(0))];
    let pass = |agents: &mut [Supervisor; 3]| agents.iter_mut().for_each(|agent| agent.start -= Duration::from_secs(1));
    pass(&mut agents);
    let [first, second, third] = &agents;
    let question = first.published_wait(3, 0).1.expect("a question about rank 3");
    let (answers, further) = second.hear(0, 1, question);
    answers.into_iter().for_each(|note| drop(first.hear(2, 0, note)));
    assert_eq!(first.published_wait(3, 0).0.map(|wait| wait.awaited), Some(5));
    // Rank 3 is not asked what it knows, and nobody else asks rank 5 meanwhile.
    let (rank, question) = further.expect("a question about rank 5");
    assert_eq!((rank, first.published_wait(5, 1)), (5, (None, None)));
    third.hear(2, 1, question).0.into_iter().for_each(|note| drop(second.hear(4, 0, note)));
    pass(&mut agents);
    let [first, second, _] = &agents;
    let question = first.published_wait(3, 0).1.expect("another question about rank 3");
    second.hear(0, 1, question).0.into_iter().for_each(|note| drop(first.hear(2, 0, note)));
    let (wait, question) = first.published_wait(5, 1);
    assert_eq!((wait.map(|wait| wait.awaited), question), (Some(0), None));
}

#[test]
fn what_is_told_was_so_at_the_time_that_is_said_or_later() {
    let mut ranks = Ranks::new(&[Some(1), Some(2), Some(0)]);
    for step in 0..100 {
        // Each pass is a look of each rank, so looks are the time.
        ranks.pass(STEP);
        for rank in [0, 2, 1] {
            for (hops, wait) in ranks.follow(rank).1.into_iter().enumerate() {
                let said = wait.at.as_millis() as u64 / STEP.as_millis() as u64;
                assert!(said <= wait.looks, "at step {step}, {hops} behind {rank}: {said}, looked {}", wait.looks);
                assert!(step < 20 || wait.looks + 10 > step, "at step {step}, {hops} behind {rank}: {}", wait.looks);
            }
        }
    }
}

#[test]
fn an_answer_that_was_overtaken_is_an_answer() {
    let mut ranks = Ranks::new(&[Some(1), Some(2), None]);
    ranks.pass(STEP);
    let question = ranks.0[0].published_wait(2, 0).1.expect("a question");
    ranks.pass(STEP);
    // Rank 1 is answered sooner, and tells.
    ranks.follow(1);
    ranks.follow(0);
    let told = ranks.0[0].far.lock()[&2].seen.clone().expect("news");
    ranks.0[2].fabric.control(0).ended.store(1, Ordering::Relaxed);
    ranks.0[2].fabric.header().ended.store(1, Ordering::Relaxed);
    for note in ranks.0[2].hear(0, 0, question).0 {
        ranks.0[0].hear(2, 0, note);
    }
    let far = &ranks.0[0].far.lock()[&2];
    let seen = far.seen.as_ref().expect("news");
    assert_eq!((far.asked, seen.at, seen.ended, seen.machine_ended), (None, told.at, true, true));
}

#[test]
fn looks_of_a_wait_do_not_go_back() {
    let mut far = Far::default();
    let seen = |at, wait, looks| Seen { at: Duration::from_secs(at), wait, looks, ..Seen::default() };
    for (news, looks) in [(seen(1, 5, 7), 7), (seen(2, 5, 6), 7), (seen(1, 5, 9), 7), (seen(3, 5, 8), 8), (seen(4, 6, 1), 1)] {
        far.hears(news);
        assert_eq!(far.seen.as_ref().map(|seen| seen.looks), Some(looks));
    }
}

#[test]
fn a_rank_that_does_not_answer_is_asked_by_who_waits_for_it() {
    let last = 5;
    let awaited: Vec<Option<usize>> = (0..=last).map(|rank| (rank < last).then_some(rank + 1)).collect();
    let mut ranks = Ranks::new(&awaited);
    ranks.pass(Duration::from_secs(5));
    for _ in 0..200 {
        ranks.pass(STEP);
        for rank in 0..last {
            let silent = |asked: usize| asked == last;
            let asked = ranks.follow_but(rank, silent).0;
            assert!(asked.iter().all(|&asked| asked == rank + 1), "rank {rank} asks {asked:?}");
        }
    }
}

#[test]
fn a_long_ring_is_seen_whole_soon() {
    const RANKS: usize = 40;
    let awaited: Vec<Option<usize>> = (0..RANKS).map(|rank| Some((rank + 1) % RANKS)).collect();
    let mut ranks = Ranks::new(&awaited);
    let mut whole = None;
    for step in 0..100 {
        ranks.pass(STEP);
        // In the direction in which news travel slowest.
        for rank in 0..RANKS {
            let found = ranks.follow(rank).1;
            if rank == 0 && found.len() == RANKS - 1 {
                whole = whole.or(Some(step));
            }
        }
    }
    assert!(whole.is_some_and(|step| step <= 60), "{whole:?}");
}

#[test]
fn a_rank_that_nobody_tells_of_is_asked() {
    let mut ranks = Ranks::new(&[Some(1), Some(2), None]);
    ranks.pass(STEP);
    // Rank 1 does not look, so it knows nothing of rank 2.
    ranks.follow(0);
    let mut asked = Vec::new();
    for _ in 0..20 {
        ranks.pass(STEP);
        asked.extend(ranks.follow(0).0);
    }
    assert!(asked.contains(&2) && asked.contains(&1), "{asked:?}");
}
