//! Jobs of several machines, whose cables are late: what is late is no deadlock, and a deadlock is found.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use ndarray::{Array1, Array2, Ix1, Ix2, s};

use crate::{
    Counter, Error, GlobalArray, Locks, Signal,
    comm::testing::apart::{Machines, Slow},
    job::{Job, Launch},
    ops,
};

/// A deadlock, or a machine that is gone, is found before this. Alone it takes 3 to 8 s; 18.5 s were seen on a busy machine.
const FOUND: Duration = Duration::from_secs(30);

/// Runs a body on ranks of several machines; what became of each.
fn run(names: &[usize], slow: Slow, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> Vec<Result<(), String>> {
    run_on(&Machines::new(names, slow), body)
}

/// The same where the first rank of a machine answers for all of it.
fn run_by_agents(names: &[usize], slow: Slow, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> Vec<Result<(), String>> {
    run_on(&Machines::new(names, slow).by_agents(), body)
}

fn run_on(machines: &Machines, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> Vec<Result<(), String>> {
    let launch = Launch::new().ranks(machines.ranks()).network("threads").pin(false);
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..machines.ranks())
            .map(|rank| {
                let (launch, body) = (&launch, &body);
                scope.spawn(move || {
                    let (conduit, leave) = machines.conduit(rank);
                    let done = launch.run_as(conduit.clone(), body);
                    match &done {
                        Ok(()) => leave(),
                        // As every conduit does: who only heard of the end has nothing to say.
                        Err(words) if conduit.over().load(Ordering::Relaxed) == 0 => conduit.end(words),
                        Err(_) => {}
                    }
                    done
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    })
}

/// Each rank waits for what others send in every way there is.
fn send_in_every_way(job: &Job) -> Result<(), Error> {
    let (rank, ranks) = (job.rank(), job.size());
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    const EACH: usize = 2048;
    let a = GlobalArray::<f64, Ix1>::builder(job, [ranks * EACH]).zeros().create()?;
    let m = GlobalArray::<f64, Ix2>::builder(job, [32 * ranks, 96]).zeros().create()?;
    let signal = Signal::new(job)?;
    let (counter, locks) = (Counter::new(job)?, Locks::new(job)?);
    // Data and their signal, short and long.
    a.put_signal(s![next * EACH..next * EACH + 8], &Array1::from_elem(8, 1.0), signal.at(next, 0))?;
    signal.wait_at_least(0, 1)?;
    a.put(s![next * EACH..(next + 1) * EACH], &Array1::from_elem(EACH, 2.0))?;
    signal.at(next, 0).notify()?;
    signal.wait_at_least(0, 2)?;
    assert_eq!(a.get(s![rank * EACH..(rank + 1) * EACH])?.sum(), 2.0 * EACH as f64);
    // Blocks and sums, short and long; reads of a neighbor's.
    m.accumulate(s![.., 1..3], 1.0, &Array2::ones([32 * ranks, 2]))?;
    m.accumulate(s![.., 8..88], 1.0, &Array2::ones([32 * ranks, 80]))?;
    m.put(s![32 * next..32 * next + 32, 90..92], &Array2::from_elem([32, 2], 3.0))?;
    m.put(s![32 * next..32 * next + 32, 4..6], &Array2::from_elem([32, 2], 3.0))?;
    job.sync()?;
    assert_eq!(m.get(s![32 * before..32 * before + 32, 8..88])?.sum(), (32 * 80 * ranks) as f64);
    assert_eq!(m.get(s![32 * before..32 * before + 32, 90..92])?.sum(), 192.0);
    assert_eq!(a.get(s![before * EACH..(before + 1) * EACH])?.sum(), 2.0 * EACH as f64);
    // A word that all change, a group made by mail, a reduction.
    counter.fetch_add(1)?;
    locks.lock(0)?.unlock()?;
    let pair = job.split(usize::from(rank.is_multiple_of(2)))?;
    pair.sync()?;
    let mut sum = [rank as u64; 3];
    job.all_reduce(&mut sum, ops::sum)?;
    assert_eq!(sum, [(ranks * (ranks - 1) / 2) as u64; 3]);
    job.sync()
}

/// Ranks wait for each other by a signal, in collectives, for a lock, and when they make a group.
fn wait_in_every_way(job: &Job) -> Result<(), Error> {
    let next = (job.rank() + 1) % job.size();
    let (signal, locks) = (Signal::new(job)?, Locks::new(job)?);
    signal.at(next, 0).notify()?;
    signal.wait_at_least(0, 1)?;
    locks.lock(0)?.unlock()?;
    job.split(0)?.barrier()
}

/// Things of some kinds are late, a few kinds at once.
fn late(names: &'static [usize], delay: Duration, kinds: impl Fn(&str) -> bool, body: fn(&Job) -> Result<(), Error>) {
    let all: Vec<_> = Slow::all(delay).into_iter().filter(|(name, _)| kinds(name)).collect();
    for some in all.chunks(7) {
        std::thread::scope(|scope| {
            for (name, slow) in some {
                scope.spawn(move || {
                    let done = run(names, *slow, body);
                    assert!(done.iter().all(Result::is_ok), "{name} late by {delay:?}: {done:?}");
                });
                scope.spawn(move || {
                    let done = if has_agents(names) { run_by_agents(names, *slow, body) } else { Vec::new() };
                    assert!(done.iter().all(Result::is_ok), "by agents, {name} late by {delay:?}: {done:?}");
                });
            }
        });
    }
}

#[test]
fn ranks_of_several_machines_send_in_every_way() {
    for names in [&[0, 1][..], &[0, 0, 1], &[0, 1, 0, 1], &[0, 0, 1, 2, 2]] {
        let done = run(names, Slow::Nothing, send_in_every_way);
        assert!(done.iter().all(Result::is_ok), "{names:?}: {done:?}");
        let done = run_by_agents(names, Slow::Nothing, send_in_every_way);
        assert!(done.iter().all(Result::is_ok), "{names:?}, by agents: {done:?}");
    }
}

/// Longer than a wait takes to be published, and to be believed in; half a minute in the long tier.
#[test]
fn what_comes_late_is_no_deadlock() {
    if std::env::var("GA_TEST_LONG").is_ok_and(|value| value == "1") {
        late(&[0, 1, 1], Duration::from_secs(30), |_| true, wait_in_every_way);
        late(&[0, 1, 1], Duration::from_secs(6), |_| true, send_in_every_way);
    } else {
        let used = ["Atomic", "Value", "Flush", "Append", "PutSignal", "Note"];
        std::thread::scope(|scope| {
            for names in [&[0, 1][..], &[0, 1, 1]] {
                scope.spawn(move || late(names, Duration::from_millis(3500), |kind| used.contains(&kind), wait_in_every_way));
            }
        });
    }
}

/// Rank 3 has all that it waits for in the barrier, and ends, long before rank 0 hears of rank 2.
#[test]
fn a_member_that_has_ended_is_not_missed_by_who_waits_for_another() {
    for per_node in [1, usize::MAX] {
        let slow = Slow::Way(2, 0, Duration::from_secs(4));
        let done = run_on(&Machines::new(&[0, 0, 1, 1], slow).nodes_of(per_node), |job| job.subgroup(&[0, 1, 2, 3])?.barrier());
        assert!(done.iter().all(Result::is_ok), "{done:?}");
    }
}

#[test]
fn a_machine_that_is_cut_off_ends_the_job() {
    for names in [[0, 0, 1, 2], [0, 1, 0, 1]] {
        let machines = || Machines::new(&names, Slow::Cut(Duration::from_secs(1))).silence(Duration::from_secs(2));
        ends_when_a_machine_is_cut_off(&machines());
        ends_when_a_machine_is_cut_off(&machines().by_agents());
    }
}

fn ends_when_a_machine_is_cut_off(machines: &Machines) {
    let start = Instant::now();
    let done = run_on(machines, |job| {
        loop {
            job.sync()?;
        }
    });
    let took = start.elapsed();
    let lost =
        |done: &Result<(), String>| done.as_ref().is_err_and(|said| said.contains("and its machine have not answered for 2 s"));
    assert!(done.iter().all(lost), "{done:?}");
    assert!(took > Duration::from_millis(2900) && took < FOUND, "{took:?}");
}

/// Who computes for longer than that answers all the same.
#[test]
fn a_rank_that_computes_is_there() {
    let alone = Machines::new(&[0, 1], Slow::Nothing);
    for machines in [alone, Machines::new(&[0, 1, 0, 1], Slow::Nothing).by_agents()] {
        let done = run_on(&machines.silence(Duration::from_secs(1)), |job| {
            job.sync()?;
            if job.rank() % 2 == 1 {
                std::thread::sleep(Duration::from_secs(4));
            }
            job.sync()
        });
        assert!(done.iter().all(Result::is_ok), "{done:?}");
    }
}

/// What a rank says that finds out: more than those say that hear of it.
fn deadlock(names: &[usize], slow: Slow, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> Said {
    let mut said = vec![said_of_a_deadlock(|| run(names, slow, &body))];
    if has_agents(names) {
        said.push(said_of_a_deadlock(|| run_by_agents(names, slow, &body)));
    }
    Said(said)
}

/// Whether a rank answers for another one.
fn has_agents(names: &[usize]) -> bool {
    names.iter().enumerate().any(|(rank, name)| names[..rank].contains(name))
}

/// What was said of the same deadlock, once for each kind of endpoints.
#[derive(Debug)]
struct Said(Vec<String>);

impl Said {
    fn contains(&self, words: &str) -> bool {
        self.0.iter().all(|said| said.contains(words))
    }
}

fn said_of_a_deadlock(run: impl FnOnce() -> Vec<Result<(), String>>) -> String {
    let start = Instant::now();
    let done = run();
    let took = start.elapsed();
    let said = done
        .iter()
        .filter_map(|done| done.as_ref().err())
        .filter(|said| said.contains(" forever: "))
        .max_by_key(|said| said.len());
    let said = said.unwrap_or_else(|| panic!("no deadlock: {done:?}"));
    assert!(done.iter().all(Result::is_err), "{done:?}");
    assert!(took < FOUND, "found after {took:?}: {said}");
    said.clone()
}

fn pair(job: &Job, ranks: [usize; 2]) -> Result<Option<crate::Group>, Error> {
    if ranks.contains(&job.rank()) { job.subgroup(&ranks).map(Some) } else { Ok(None) }
}

#[test]
fn locks_in_opposite_orders_are_a_deadlock_between_machines() {
    let said = deadlock(&[0, 1, 1], Slow::Nothing, |job| {
        let locks = Locks::with_count(job, 8)?;
        let Some(pair) = pair(job, [0, 2])? else { return job.sync() };
        let own = [3, 5][pair.member()];
        let held = locks.lock(own)?;
        pair.barrier()?;
        locks.lock(8 - own)?.unlock()?;
        held.unlock()
    });
    for words in
        ["rank 0 waits for lock 5 of 8 (made at src/job/tests/apart.rs:", "which rank 2 holds", "rank 2 waits for lock 3 of 8"]
    {
        assert!(said.contains(words), "{said:?}");
    }
}

/// Each rank hears of those behind the next one from that one.
#[test]
fn a_long_ring_of_locks_is_a_deadlock_between_machines() {
    let said = deadlock(&[0, 1, 2, 3, 4, 5, 6, 7], Slow::Nothing, |job| {
        let locks = Locks::with_count(job, job.size())?;
        let held = locks.lock(job.rank())?;
        job.barrier()?;
        locks.lock((job.rank() + 1) % job.size())?.unlock()?;
        held.unlock()
    });
    for rank in 0..8 {
        let words = format!("rank {rank} waits for lock {} of 8 (made at src/job/tests/apart.rs:", (rank + 1) % 8);
        assert!(said.contains(&words), "{said:?}");
    }
}

#[test]
fn collectives_of_different_groups_are_a_deadlock_between_machines() {
    let said = deadlock(&[0, 1, 2], Slow::Nothing, |job| {
        let pairs = [pair(job, [0, 1])?, pair(job, [1, 2])?, pair(job, [2, 0])?];
        pairs[job.rank()].as_ref().expect("a member").sync()
    });
    for words in ["rank 0 waits for rank 1 in sync of a group of 2", "rank 1 waits for rank 2", "rank 2 waits for rank 0"] {
        assert!(said.contains(words), "{said:?}");
    }
}

#[test]
fn signals_that_nobody_raises_are_a_deadlock_between_machines() {
    for names in [&[0, 1][..], &[0, 0, 1, 2, 2, 3]] {
        let said = deadlock(names, Slow::Nothing, |job| {
            let signal = Signal::new(job)?;
            signal.wait_at_least(0, 1)
        });
        let last = format!("rank {} waits for signal 0 to reach 1", names.len() - 1);
        assert!(said.contains("rank 0 waits for signal 0 to reach 1") && said.contains(&last), "{said:?}");
    }
}

/// One waits for a signal, one for a lock, one in a collective.
#[test]
fn a_mixture_of_waits_is_a_deadlock_between_machines() {
    let said = deadlock(&[0, 1, 1, 2], Slow::Nothing, |job| {
        let (signal, locks) = (Signal::new(job)?, Locks::new(job)?);
        let held = if job.rank() == 3 { Some(locks.lock(0)?) } else { None };
        job.barrier()?;
        match job.rank() {
            0 => signal.wait_at_least(0, 1)?,
            1 => locks.lock(0)?.unlock()?,
            _ => {}
        }
        job.barrier()?;
        held.map_or(Ok(()), |held| held.unlock())
    });
    for words in ["rank 0 waits for signal 0 to reach 1", "rank 1 waits for lock 0 of 1", "rank 2 waits for rank", "of all ranks"]
    {
        assert!(said.contains(words), "{said:?}");
    }
}

/// A rank that has ended raises nothing any more.
#[test]
fn who_waits_for_ranks_that_have_ended_hears_of_it_between_machines() {
    let said = deadlock(&[0, 1, 1], Slow::Nothing, |job| {
        let signal = Signal::new(job)?;
        if job.rank() == 0 { signal.wait_at_least(0, 1) } else { Ok(()) }
    });
    assert!(said.contains("signal 0"), "{said:?}");
}
