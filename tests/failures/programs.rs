//! Programs that go wrong, on the network and ranks that the environment says.

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    time::{Duration, Instant},
};

use global_arrays::{channel, prelude::*};

use crate::{
    messages,
    runner::{Case, program},
    saving, waits,
};

/// Ranks 0 and 2 of three do nothing wrong, but for `killed_while_saving`.
pub(crate) const CULPRIT: usize = 1;

pub(crate) type Body = fn(&Job) -> Result<(), Error>;

const BODIES: &[(&str, Body)] = &[
    ("killed_in_sync", |job| {
        if job.rank() == CULPRIT {
            kill_soon();
        }
        // Rank 2 comes late, so that the others wait.
        std::thread::sleep(Duration::from_millis(if job.rank() == 2 { 600 } else { 0 }));
        job.sync()
    }),
    ("killed_in_lock", |job| {
        let locks = Locks::with_count(job, 1)?;
        let held = if job.rank() == 0 { Some(locks.lock(0)?) } else { None };
        job.barrier()?;
        if job.rank() == CULPRIT {
            kill_soon();
        }
        let waited = locks.lock(0).map(|_| ());
        drop(held);
        waited
    }),
    ("killed_holding_a_lock", |job| {
        let locks = Locks::with_count(job, 1)?;
        let _held = if job.rank() == CULPRIT { Some(locks.lock(0)?) } else { None };
        job.barrier()?;
        if job.rank() == CULPRIT {
            kill_soon();
            compute(10.0);
        }
        locks.lock(0).map(|_| ())
    }),
    ("killed_in_signal", |job| {
        let signal = Signal::new(job)?;
        if job.rank() == CULPRIT {
            kill_soon();
        }
        signal.wait_at_least(0, 1)
    }),
    ("killed_in_wait_on_a_channel", |job| {
        let other = |by| (job.rank() + by) % job.size();
        let ([_out], [mut inlet]) =
            job.channels([channel::to::<u8>(other(1), 0, 1)], [channel::from(other(job.size() - 1), 0)])?;
        if job.rank() == CULPRIT {
            kill_soon();
        }
        inlet.wait().map(drop)
    }),
    ("killed_computing", |job| {
        if job.rank() == CULPRIT {
            kill_soon();
            compute(10.0);
        }
        job.sync()
    }),
    // Of lengths that go straight from and into the memory of the callers, where the network can do that.
    ("killed_while_others_transfer", |job| {
        const EACH: usize = 1 << 17;
        let a = GlobalArray::<f64, Ix1>::builder(job, [job.size() * EACH]).zeros().create()?;
        if job.rank() == CULPRIT {
            kill_soon();
            compute(10.0);
        }
        let there = CULPRIT * EACH..(CULPRIT + 1) * EACH;
        let mut values = Array1::ones(EACH);
        loop {
            if job.rank() == 0 {
                a.put(there.clone(), &values)?;
                a.fence()?;
            } else {
                a.get_into(there.clone(), &mut values)?;
            }
        }
    }),
    ("killed_while_all_compute", |job| {
        if job.rank() == CULPRIT {
            kill_soon();
        }
        compute(30.0);
        job.sync()
    }),
    // Until somebody ends it, in everything that a job does.
    ("works_for_ever", |job| {
        let (rank, ranks) = (job.rank(), job.size());
        println!("rank {rank} is process {}", std::process::id());
        let next = (rank + 1) % ranks;
        const EACH: usize = 20_000;
        let a = GlobalArray::<f64, Ix1>::builder(job, [ranks * EACH]).zeros().create()?;
        let (locks, signal) = (Locks::new(job)?, Signal::new(job)?);
        println!("rank {rank} works");
        for round in 1.. {
            let there = next * EACH..(next + 1) * EACH;
            a.put_signal(there.start..there.start + 10, &Array1::ones(10), signal.at(next, 0))?;
            a.accumulate(there.clone(), 1.0, &Array1::ones(EACH))?;
            signal.wait_at_least(0, round)?;
            locks.lock(0)?.unlock()?;
            a.get(there)?;
            job.sync()?;
            if round % 8 == 0 {
                job.split(usize::from(rank % 2 == 0))?.barrier()?;
                compute(0.05);
            }
        }
        Ok(())
    }),
    ("killed_while_saving", saving::killed_while_saving),
    ("ended_by_sigterm", |job| {
        if job.rank() == CULPRIT {
            end_soon(libc::SIGTERM);
            compute(10.0);
        }
        job.sync()
    }),
    ("panics", |job| {
        assert!(job.rank() != CULPRIT, "the culprit's own words");
        job.sync()
    }),
    ("panics_late", |job| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [100]).zeros().create()?;
        job.sync()?;
        assert!(job.rank() != CULPRIT, "the culprit's own words");
        loop {
            a.accumulate(.., 1.0, &Array1::ones(100))?;
        }
    }),
    ("returns_an_error", |job| {
        if job.rank() == CULPRIT {
            return Err(Error::other("the culprit's own words"));
        }
        job.sync()
    }),
    ("returns_while_others_sync", |job| if job.rank() == CULPRIT { Ok(()) } else { job.sync() }),
    ("returns_while_others_meet_in_a_group", |job| {
        let pair = job.rank().min(1) == job.rank();
        let group = job.split(usize::from(pair))?;
        if job.rank() == CULPRIT { Ok(()) } else { group.barrier() }
    }),
    ("returns_while_others_make_a_group", |job| if job.rank() == 0 { job.subgroup(&[0, 1]).map(drop) } else { Ok(()) }),
    ("exits", |job| {
        if job.rank() == CULPRIT {
            std::process::exit(3);
        }
        job.sync()
    }),
    ("exits_after_traffic", |job| {
        let (rank, size) = (job.rank(), job.size());
        let a = GlobalArray::<u64, Ix1>::builder(job, [size]).zeros().create()?;
        a.put(s![(rank + 1) % size..=(rank + 1) % size], &Array1::from_elem(1, 1))?;
        job.sync()?;
        if rank == CULPRIT {
            std::process::exit(3);
        }
        job.sync()
    }),
    ("exits_as_if_well", |job| {
        if job.rank() == CULPRIT {
            std::process::exit(0);
        }
        job.sync()
    }),
    ("different_collectives", |job| if job.rank() == CULPRIT { job.barrier() } else { job.broadcast(0, &mut [0_u8]) }),
    ("different_lengths", |job| job.all_reduce(&mut vec![0.0; 4 + job.rank() / 2], ops::sum)),
    ("different_roots", |job| job.broadcast(job.rank() / 2, &mut [0_u8])),
    ("different_types", |job| {
        if job.rank() == CULPRIT { job.all_gather(&[0_u64]).map(|_| ()) } else { job.all_gather(&[0_i64]).map(|_| ()) }
    }),
    ("different_shapes", |job| GlobalArray::<f64, Ix1>::builder(job, [10 + job.rank()]).create().map(|_| ())),
    ("different_epochs", |job| {
        let mut a = GlobalArray::<f64, Ix1>::builder(job, [10]).create()?;
        if job.rank() == CULPRIT { a.owner_epoch(|_| ()) } else { a.read_epoch(|_, _| ()) }
    }),
    ("epochs_of_different_arrays", |job| {
        let mut a = GlobalArray::<f64, Ix1>::builder(job, [10]).create()?;
        let mut b = a.duplicate("b")?;
        if job.rank() == CULPRIT { a.owner_epoch(|_| ()) } else { b.owner_epoch(|_| ()) }
    }),
    ("failed_group_is_used_again", |job| {
        let first = if job.rank() == CULPRIT { job.barrier() } else { job.sync() };
        assert!(matches!(first, Err(Error::Disagreement { .. })), "{first:?}");
        let again = job.barrier().expect_err("the group failed");
        assert!(matches!(again, Error::GroupFailed { .. } | Error::JobEnded { .. }), "{again}");
        Err(again)
    }),
    ("epoch_unwinds", |job| {
        let mut a = GlobalArray::<f64, Ix1>::builder(job, [10]).name("unwound").zeros().create()?;
        let caught =
            catch_unwind(AssertUnwindSafe(|| a.owner_epoch(|_| assert!(job.rank() != CULPRIT, "the culprit's own words"))));
        if job.rank() == CULPRIT {
            assert!(caught.is_err());
            let load = a.load([0]).expect_err("a poisoned array");
            assert!(matches!(load, Error::Poisoned { .. } | Error::JobEnded { .. }), "{load}");
            assert!(a.owner_epoch(|_| ()).is_err() && a.get(..).is_err());
            compute(0.2);
        } else {
            assert!(caught.expect("no panic here").is_err());
        }
        job.sync()
    }),
    // The rank catches what ended its epoch and never calls a collective again.
    ("epoch_unwinds_and_the_rank_goes_on", |job| {
        let mut a = GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create()?;
        let b = GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create()?;
        let caught =
            catch_unwind(AssertUnwindSafe(|| a.owner_epoch(|_| assert!(job.rank() != CULPRIT, "the culprit's own words"))));
        match caught {
            Ok(others) => others,
            Err(_) => go_on(&b),
        }
    }),
    ("epochs_differ_and_the_ranks_go_on", |job| {
        let mut a = GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create()?;
        let b = GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create()?;
        let differs = if job.rank() == CULPRIT { a.owner_epoch(|_| ()) } else { a.read_epoch(|_, _| ()) };
        assert!(differs.is_err());
        go_on(&b)
    }),
    ("timeout", |job| {
        if job.rank() == CULPRIT {
            compute(3.0);
        }
        let timeout = job.sync();
        assert!(job.rank() == CULPRIT || matches!(timeout, Err(Error::Timeout { .. })), "{timeout:?}");
        timeout
    }),
    // Not a failure.
    ("computes_long", |job| {
        if job.rank() == CULPRIT {
            compute(2.0);
        }
        job.sync()
    }),
    ("computes_very_long", |job| {
        if job.rank() == CULPRIT {
            compute(11.0);
        }
        job.sync()
    }),
    ("computes_very_long_after_a_fill", |job| {
        let mut heat = GlobalArray::<f64, Ix1>::builder(job, [12]).name("H").create()?;
        heat.fill(1.0)?;
        compute(if job.rank() == CULPRIT { 11.0 } else { 0.0 });
        heat.fill(2.0)
    }),
    ("does_nothing", |job| job.sync()),
    ("holds_a_lock_of_its_own_in_a_call", |job| {
        static LOCK: Mutex<()> = Mutex::new(());
        if job.rank() == 0 {
            let _held = LOCK.lock().expect("nobody panicked");
            return job.sync();
        }
        // The wait has a limit, because no other rank can run meanwhile.
        let end = Instant::now() + Duration::from_secs(11);
        while LOCK.try_lock().is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(100));
        }
        job.sync()
    }),
    ("says_its_size", |job| {
        if job.rank() == 0 {
            println!("{} ranks", job.size());
        }
        job.sync()
    }),
    ("has_no_name_anywhere", |job| {
        let maps = std::fs::read_to_string("/proc/self/maps").map_err(Error::other)?;
        assert!(!maps.contains("/dev/shm/"), "{maps}");
        job.sync()
    }),
    ("prints_and_waits", |job| {
        println!("rank {} is there", job.rank());
        compute(60.0);
        job.sync()
    }),
    ("prints_lines", |job| {
        for k in 0..200 {
            print!("<rank {} ", job.rank());
            println!("line {k}>");
        }
        job.sync()
    }),
    // In 64 MiB. What rank 2 has committed counts although it is no member.
    ("asks_for_too_much_in_a_group", |job| {
        const MIB: usize = 1 << 17;
        let world = GlobalArray::<u64, Ix1>::builder(job, [30 * MIB]).fill(1).create()?;
        if job.rank() != 2 {
            let pair = job.subgroup(&[0, 1])?;
            let array = |len: usize| GlobalArray::<u64, Ix1>::builder(&pair, [len]).name("shared by two").fill(2).create();
            let before = (job.memory().asked, job.memory().committed);
            for _ in 0..2 {
                let refusal = array(36 * MIB).expect_err("beyond the limit");
                assert!(matches!(refusal, Error::OutOfMemory { asked: 37_748_736, .. }), "{refusal}");
                assert_eq!((job.memory().asked, job.memory().committed), before);
                if job.rank() == 0 {
                    println!("{refusal}");
                }
            }
            assert_eq!(array(MIB)?.get(..)?.sum(), 2 * MIB as u64);
        }
        assert_eq!(world.get(..)?.sum(), 30 * MIB as u64);
        world.destroy()?;
        job.trim()?;
        job.barrier()?;
        if job.rank() != 2 {
            let pair = job.subgroup(&[0, 1])?;
            GlobalArray::<u64, Ix1>::builder(&pair, [36 * MIB]).create()?.destroy()?;
        }
        job.sync()
    }),
    // In 64 MiB. No room for the memory by which members of a group speak to each other.
    ("asks_for_a_group_too_much", |job| {
        job.barrier()?;
        let rest = job.all_reduce_one(job.memory().available, ops::min)? as usize - (300 << 10);
        let world = GlobalArray::<u8, Ix1>::builder(job, [rest]).create()?;
        if job.rank() != 2 {
            let refusal = job.subgroup(&[0, 1]).map(|_| ()).expect_err("beyond the limit");
            assert!(matches!(refusal, Error::OutOfMemory { .. }), "{refusal}");
            if job.rank() == 0 {
                println!("{refusal}");
            }
        }
        world.destroy()?;
        job.trim()?;
        job.barrier()?;
        if job.rank() != 2 {
            job.subgroup(&[0, 1])?.sync()?;
        }
        job.sync()
    }),
    ("asks_for_too_much", |job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [1000]).fill(1).create()?;
        let refusal = GlobalArray::<u64, Ix1>::builder(job, [1 << 26]).name("vast").create().expect_err("beyond the limit");
        assert!(matches!(refusal, Error::OutOfMemory { .. }), "{refusal}");
        if job.rank() == 0 {
            println!("{refusal}");
        }
        assert_eq!(a.get(..)?.sum(), 1000);
        job.sync()
    }),
];

pub(crate) fn all() -> Vec<Case> {
    let mut programs: Vec<Case> = BODIES
        .iter()
        .chain(messages::BODIES)
        .chain(waits::BODIES)
        .map(|&(name, body)| program(name, move || end(job(body))))
        .collect();
    programs.push(program("two_threads_in_a_collective", two_threads));
    programs.push(program("goes_on_after_a_timeout", || end(waits::after_a_timeout())));
    programs.push(program("two_threads_create", two_threads_create));
    programs.push(program("keeps_an_array", beyond));
    programs.push(program("run_with_threads", || {
        let _idle = [(); 2].map(|()| std::thread::spawn(|| std::thread::sleep(Duration::from_secs(5))));
        end(global_arrays::run(|job: &Job| job.sync()));
    }));
    programs.push(program("few_open_files", few_files));
    programs
}

/// Uses an array until the job is over.
fn go_on(b: &GlobalArray<f64, Ix1>) -> Result<(), Error> {
    loop {
        b.accumulate(.., 1.0, &Array1::ones(10))?;
    }
}

/// Runs a body, or calls it with a job that is a value: the same happens.
pub(crate) fn job(body: Body) -> Result<(), Error> {
    if env::var_os(STARTS).is_none() {
        return global_arrays::run(body);
    }
    let job = Launch::new().start()?;
    body(&job).and_then(|()| job.finish())
}

/// The variable by which programs start their jobs as values.
pub(crate) const STARTS: &str = "GA_TEST_STARTS";

/// What `fn main() -> Result` does.
pub(crate) fn end(result: Result<(), Error>) {
    if let Err(error) = result {
        eprintln!("Error: {error}");
        std::process::exit(1);
    }
}

pub(crate) fn compute(seconds: f64) {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        std::hint::black_box((0..1000).sum::<u64>());
    }
}

/// This process dies in 0.2 s by SIGKILL, wherever it is then.
pub(crate) fn kill_soon() {
    end_soon(libc::SIGKILL);
}

fn end_soon(signal: libc::c_int) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        send_own(signal);
    });
}

pub(crate) fn send_own(signal: libc::c_int) {
    let own = libc::pid_t::try_from(std::process::id()).expect("a process number");
    // SAFETY: a system call without pointers.
    unsafe { libc::kill(own, signal) };
}

/// The start fails wherever the files run out, and leaves no child to this process, which lives on.
fn few_files() {
    use rustix::process::{Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};
    let maximum = getrlimit(Resource::Nofile).maximum;
    for files in 6..18 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum }).expect("a lower limit");
        let result: Result<(), Error> = Launch::new().ranks(6).run(|_| {
            std::thread::sleep(Duration::from_secs(20));
            Ok(())
        });
        let refusal = result.expect_err("too few files").to_string();
        assert!(refusal.contains("of 6 could not be started") && refusal.contains("ulimit -n"), "{refusal}");
        assert_eq!(waitpid(None, WaitOptions::NOHANG).err(), Some(rustix::io::Errno::CHILD), "a child, {files} files");
    }
}

/// The second thread gets an error, the first one goes on.
fn two_threads() {
    end(global_arrays::run(|job: &Job| {
        if job.rank() == CULPRIT {
            let begun = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                let first = scope.spawn(|| {
                    begun.wait();
                    job.sync()
                });
                begun.wait();
                std::thread::sleep(Duration::from_millis(200));
                let second = job.barrier().expect_err("two at once");
                assert!(matches!(second, Error::Busy { rank: CULPRIT, .. }), "{second}");
                first.join().expect("the first thread")
            })?;
        } else {
            std::thread::sleep(Duration::from_millis(600));
            job.sync()?;
        }
        job.sync()
    }));
}

/// The second thread gets an error, and this rank's count of groups and blocks is still that of the others.
fn two_threads_create() {
    end(global_arrays::run(|job: &Job| {
        let all: Vec<usize> = (0..job.size()).collect();
        let other = job.subgroup(&all)?;
        let array = |group: &Group| GlobalArray::<u64, Ix1>::builder(group, [300]).fill(7).create();
        let first = if job.rank() == CULPRIT {
            std::thread::scope(|scope| {
                let first = scope.spawn(|| job.subgroup(&all));
                std::thread::sleep(Duration::from_millis(200));
                for second in [job.subgroup(&all).err(), array(&other).err(), array(job).err()] {
                    assert!(matches!(second, Some(Error::Busy { rank: CULPRIT, .. })), "{second:?}");
                }
                first.join().expect("the first thread")
            })?
        } else {
            std::thread::sleep(Duration::from_millis(600));
            job.subgroup(&all)?
        };
        for group in [&first, &job.subgroup(&all)?, &other, job] {
            assert_eq!(array(group)?.get(..)?.sum(), 2100);
            group.sync()?;
        }
        Ok::<(), Error>(())
    }));
}

fn beyond() {
    let kept = Mutex::new(Vec::new());
    end(Launch::new().network("threads").ranks(2).run(|job| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [10]).name("kept").fill(1.0).create()?;
        job.sync()?;
        let all = (a, Counter::new(job)?, job.subgroup(&[job.rank()])?);
        kept.lock().expect("no panic").push(all);
        Ok::<(), Error>(())
    }));
    for (mut a, counter, group) in kept.into_inner().expect("no panic") {
        for error in
            [a.load([3]).err(), a.store([3], 0.0).err(), a.get(..).err(), a.owner_epoch(|_| ()).err(), group.sync().err()]
        {
            let error = error.expect("the job is over");
            assert!(error.to_string().contains("over"), "{error}");
        }
        assert!(counter.fetch_add(1).is_err());
        // SAFETY: nobody uses the part.
        assert!(unsafe { a.access() }.is_err());
        a.destroy().expect_err("the job is over");
    }
}
