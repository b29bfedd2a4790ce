//! Jobs that are values: how they start, where, and what ends them.
//!
//! Their ranks exist already: alone, started by a script that names rank 0, by a launcher, or threads that meet by themselves.

use std::{
    mem::forget,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use global_arrays::{Launch, Meeting, prelude::*};

use crate::{
    checks::{LAUNCHER, SOON, run_on, says},
    forks::{end_of, fork, in_child},
    programs::{self, CULPRIT},
    root::{self, SECRET},
    runner::{self, Case, case, meeting::MeetingThread, program},
};

type Numbers = GlobalArray<u64, Ix1>;
type Program = (&'static str, fn() -> Result<(), Error>);

fn start() -> Result<Job, Error> {
    Launch::new().start()
}

fn ones(job: &Job) -> Result<Numbers, Error> {
    Numbers::builder(job, [100]).fill(1).create()
}

/// They end well, alone and with others.
const GOOD: &[Program] = &[
    ("start_and_finish", || {
        let job = start()?;
        assert_eq!(job.all_gather(&[job.rank()])?.len(), job.size());
        assert_eq!(ones(&job)?.sum()?, 100);
        println!("rank {} of {}, over {}", job.rank(), job.size(), job.network());
        job.finish()
    }),
    ("start_in_a_row", || {
        for count in 1..20 {
            let job = start()?;
            let a = ones(&job)?;
            let mut frozen = a.freeze()?;
            assert_eq!(frozen.get(..)?.sum(), 100);
            if count % 2 == 0 {
                frozen = frozen.thaw()?.freeze()?;
            }
            job.finish()?;
            drop(frozen);
        }
        Ok(())
    }),
    ("start_behind_run", || {
        for _ in 0..2 {
            let launch = if runs_alone() { Launch::new().ranks(2) } else { Launch::new() };
            let ranks = launch.run(|job: &Job| Ok::<_, Error>(job.size()))?;
            let job = start()?;
            assert_eq!(job.size(), if runs_alone() { 1 } else { ranks });
            job.finish()?;
        }
        Ok(())
    }),
    ("arrays_outlive_a_start", || {
        let job = start()?;
        let mut a = ones(&job)?;
        let b = ones(&job)?.freeze()?;
        let counter = Counter::new(&job)?;
        job.sync()?;
        job.finish()?;
        let over = |error: Option<Error>| assert!(error.expect("the job is over").to_string().contains("over"));
        over(a.get(..).err());
        over(a.owner_epoch(|_| ()).err());
        over(b.get(..).err());
        over(counter.fetch_add(1).err());
        // The memory stays while the handle does.
        assert!(b.own().iter().all(|&one| one == 1));
        Ok(())
    }),
    ("a_job_that_starts_within", || {
        let (job, again) = (start()?, start());
        match (runs_alone(), again) {
            // Jobs of one rank alone are each other's strangers.
            (true, Ok(other)) => {
                let (mut a, mut b) = (ones(&job)?, ones(&other)?);
                assert_eq!(a.sum()? + b.sum()?, 200);
                says(&a.assign(&b).expect_err("two jobs").to_string(), &["of one job"]);
                let epoch = job.epoch((a.owned_mut(), b.owned_mut()), |_| ());
                says(&epoch.expect_err("two jobs").to_string(), &["of one job"]);
                other.finish()?;
            }
            (false, Err(error)) => says(&error.to_string(), &["this process is a rank of a running job"]),
            (alone, other) => panic!("{alone}: {other:?}"),
        }
        let run = Launch::new().network("shared_memory").ranks(2).run(|job: &Job| job.sync());
        says(&run.expect_err("a rank starts none").to_string(), &["this process is a rank of a running job"]);
        job.sync()?;
        job.finish()
    }),
    ("a_child_of_a_start", || {
        let job = start()?;
        let mut a = ones(&job)?;
        for finishes in [true, false] {
            match fork() {
                None => in_child(|| {
                    assert!(a.get(..).is_err() && a.owner_epoch(|_| ()).is_err() && job.sync().is_err());
                    // It owns copies of both.
                    // SAFETY: the child ends before its originals are used or dropped.
                    let (job, a) = unsafe { (std::ptr::read(&raw const job), std::ptr::read(&raw const a)) };
                    if finishes {
                        assert!(job.finish().is_err());
                    } else {
                        drop(job);
                    }
                    drop(a);
                }),
                Some(child) => assert_eq!(end_of(child).exit_status(), Some(0)),
            }
        }
        a.owner_epoch(|mut part| part.fill(2))?;
        assert_eq!(a.sum()?, 200);
        job.finish()
    }),
    ("threads_of_a_start", || {
        let job = start()?;
        let a = ones(&job)?;
        std::thread::scope(|scope| {
            let job = &job;
            let one = scope.spawn(move || Counter::new(job)?.fetch_add(1));
            one.join().expect("a thread")?;
            let (a, rank) = (&a, job.rank() as u64);
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(move || a.accumulate(.., 1, &Array1::from_elem(100, rank)))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a thread"))
        })?;
        job.sync()?;
        let ranks: usize = (0..job.size()).sum();
        assert_eq!(a.sum()?, 100 * (1 + 4 * ranks as u64));
        job.finish()
    }),
];

/// The culprit, or the only rank, leaves the job, which the others need; and the words that they hear.
const LEAVING: &[(Program, &[&str])] = &[
    (("drops_a_start", || leave(true, drop)), DROPPED),
    (("drops_a_start_in_an_epoch", drop_in_an_epoch), DROPPED),
    (("panics_in_a_start", || leave(true, |_job| panic!("the culprit's own words"))), &["panicked without finish", "starts.rs"]),
    (("forgets_a_start", || leave(false, forget)), &["exit(3)"]),
    (("leaks_a_start", || leave(false, |job| _ = Box::leak(Box::new(job)).rank())), &["exit(3)"]),
    (("ends_the_thread_of_a_start", end_the_thread), &["ended the thread that started its job"]),
    (("keeps_a_start_in_a_thread_local", || keep_in_a_thread_local(Launch::new())), DROPPED),
    (("keeps_a_start_with_statistics", || keep_in_a_thread_local(Launch::new().stats(true))), DROPPED),
];

const DROPPED: &[&str] = &["dropped the job without finish", "starts.rs"];

fn runs_alone() -> bool {
    std::env::var_os("GA_TEST_ALONE").is_some()
}

fn is_culprit(job: &Job) -> bool {
    job.rank() == CULPRIT.min(job.size() - 1)
}

/// A rank that still starts hears of the first connection that closes, and the culprit keeps its own for a while.
fn all_have_started(job: &Job) -> Result<(), Error> {
    job.barrier()
}

/// The end of the culprit's process, which has left its job for a while.
fn end_later(status: i32) -> ! {
    std::thread::sleep(Duration::from_millis(500));
    std::process::exit(status)
}

/// The culprit does something with its job, which is over then or not, and the others wait for it.
fn leave(is_over: bool, how: impl FnOnce(Job)) -> Result<(), Error> {
    let job = start()?;
    let a = ones(&job)?;
    if !is_culprit(&job) {
        return job.sync().and_then(|()| job.finish());
    }
    let begin = Instant::now();
    let left = catch_unwind(AssertUnwindSafe(|| how(job)));
    let took = begin.elapsed();
    if took > Duration::from_secs(1) || a.get(..).is_err() != is_over {
        eprintln!("it took {took:?}, and then {:?}", a.get(..));
        std::process::exit(99);
    }
    std::process::exit(if left.is_ok() { 3 } else { 101 })
}

fn drop_in_an_epoch() -> Result<(), Error> {
    let job = start()?;
    let mut a = ones(&job)?;
    let mut kept = Some(job);
    let ended = a.owner_epoch(|mut part| {
        if kept.as_ref().is_some_and(is_culprit) {
            drop(kept.take());
        }
        part.fill(3);
        assert!(part.iter().all(|&three| three == 3));
    });
    let error = ended.expect_err("a rank has left");
    match kept {
        Some(job) => job.finish(),
        None => {
            assert!(a.get(..).is_err());
            eprintln!("{error}");
            end_later(3)
        }
    }
}

fn end_the_thread() -> Result<(), Error> {
    let left = std::thread::spawn(|| -> Result<bool, Error> {
        let job = start()?;
        all_have_started(&job)?;
        if is_culprit(&job) {
            forget(job);
            return Ok(true);
        }
        job.sync().and_then(|()| job.finish()).map(|()| false)
    });
    if left.join().expect("a thread")? { end_later(3) } else { Ok(()) }
}

fn keep_in_a_thread_local(launch: Launch) -> Result<(), Error> {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<Job>> = const { std::cell::RefCell::new(None) };
    }
    let left = std::thread::spawn(move || -> Result<bool, Error> {
        // It is dropped behind what the library keeps for the thread.
        KEPT.set(None);
        let job = launch.start()?;
        all_have_started(&job)?;
        if is_culprit(&job) {
            KEPT.set(Some(job));
            return Ok(true);
        }
        job.sync().and_then(|()| job.finish()).map(|()| false)
    });
    if left.join().expect("a thread")? { end_later(3) } else { Ok(()) }
}

/// Threads start a job on a network, use it, and end it as each says.
fn threads_meet(
    network: &'static str,
    nodes_of: usize,
    ranks: usize,
    end: fn(Job) -> Result<(), Error>,
) -> Vec<Result<(), Error>> {
    let threads = MeetingThread::all(ranks).into_iter().map(|meeting| {
        std::thread::spawn(move || {
            let job = Launch::new().network(network).ranks_per_node(nodes_of).heap(16 << 20).start_with(meeting)?;
            let mut a = ones(&job)?;
            a.accumulate(.., 1, &Array1::ones(100))?;
            job.sync()?;
            assert_eq!(a.sum()?, 100 * (1 + job.size() as u64));
            let counter = Counter::new(&job)?;
            counter.fetch_add(1)?;
            job.sync()?;
            assert_eq!(counter.get()?, job.size());
            a.owner_epoch(|mut part| part.fill(0))?;
            end(job)
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
}

fn meetings_of_threads() {
    for (network, nodes_of) in [("shared_memory", 100), ("shared_memory:packets", 1), ("shared_memory", 2), ("ib:sockets", 1)] {
        for ranks in [1, 2, 3, 10] {
            for ended in threads_meet(network, nodes_of, ranks, Job::finish) {
                ended.unwrap_or_else(|error| panic!("{network}, {nodes_of}, {ranks} ranks: {error}"));
            }
        }
    }
    // Nothing of a job that failed is in the way of the next.
    for (network, nodes_of) in [("shared_memory", 100), ("ib:sockets", 1), ("shared_memory", 1)] {
        let begin = Instant::now();
        let ended = threads_meet(network, nodes_of, 3, |job| match job.rank() {
            CULPRIT => {
                drop(job);
                Ok(())
            }
            _ => job.sync().and_then(|()| job.finish()),
        });
        let errors: Vec<String> = ended.into_iter().filter_map(|ended| Some(ended.err()?.to_string())).collect();
        assert_eq!(errors.len(), 2);
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        errors.iter().for_each(|error| says(error, DROPPED));
    }
}

/// Threads that start two jobs have their cores back behind both, in whatever order these end.
fn cores_are_given_back() {
    let rank = |first| {
        let cores = || rustix::thread::sched_getaffinity(None).expect("the cores of this thread");
        let before = cores();
        let first = Launch::new().start_with(first).expect("a job");
        // Of one rank, to which all cores that the thread now has are its own.
        let second = Launch::new().start_with(MeetingThread::all(1).remove(0)).expect("another job");
        first.finish().and_then(|()| second.finish()).expect("good ends");
        assert!(cores() == before);
    };
    let [own, others] = MeetingThread::all(2).try_into().unwrap_or_else(|_| panic!("two ranks"));
    let other = std::thread::spawn(move || rank(others));
    // The cores of the first thread are those of the process to a launcher.
    rank(own);
    other.join().expect("a thread");
}

fn meetings_that_are_wrong() {
    type Gathers = fn(&[u8]) -> Result<Vec<Vec<u8>>, Error>;
    struct Wrong(usize, usize, Gathers);
    impl Meeting for Wrong {
        fn rank(&self) -> usize {
            self.0
        }
        fn size(&self) -> usize {
            self.1
        }
        fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
            (self.2)(bytes)
        }
    }
    let refused = |launch: Launch, meeting| launch.start_with(meeting).expect_err("a wrong meeting").to_string();
    let own: Gathers = |bytes| Ok(vec![bytes.to_vec()]);
    says(&refused(Launch::new(), Wrong(1, 1, own)), &["has 1 ranks and says that this is rank 1"]);
    says(&refused(Launch::new(), Wrong(0, 0, own)), &["has 0 ranks"]);
    says(&refused(Launch::new(), Wrong(0, 2, own)), &["the bytes of 1 ranks, and there are 2"]);
    says(&refused(Launch::new(), Wrong(0, 2, |_| Err(Error::other("the cable is cut")))), &["the cable is cut"]);
    says(&refused(Launch::new(), Wrong(0, 2, |_| Ok(vec![vec![255]; 2]))), &["meeting the other ranks"]);
    says(&refused(Launch::new(), Wrong(0, 1, |_| Ok(vec![b"ga-0 x;".to_vec()]))), &["meeting the other ranks"]);
    says(&refused(Launch::new().ranks(3), Wrong(0, 1, own)), &["3 ranks were asked for", "1"]);
    for network in ["threads", "simulated:gemini"] {
        says(&refused(Launch::new().network(network), Wrong(0, 1, own)), &["do not meet by the program"]);
    }
    let job = Launch::new().start_with(Wrong(0, 1, own)).expect("a job of one");
    job.finish().expect("a good end");
}

fn what_start_cannot_do_is_said() {
    let refused = |launch: Launch| launch.start().expect_err("no such start").to_string();
    let words: [(Launch, &[&str]); 5] = [
        (Launch::new().ranks(4), &["start makes no ranks, and 4 were asked for", "ga-run -n 4", "run"]),
        (Launch::new().network("threads").ranks(2), &["2 were asked for"]),
        (Launch::new().network("simulated:gemini"), &["virtual time", "run"]),
        (Launch::new().network("ib:soft+hidden"), &["leave out +hidden"]),
        (Launch::new().network("carrier pigeons"), &["carrier pigeons"]),
    ];
    for (launch, words) in words {
        says(&refused(launch), words);
    }
    for network in ["threads", "shared_memory", "shared_memory+hidden", "threads:unmapped", "ib", "ofi"] {
        let job = Launch::new().network(network).start().unwrap_or_else(|error| panic!("{network}: {error}"));
        assert_eq!(ones(&job).and_then(|a| a.sum()).expect("a sum"), 100);
        job.finish().expect("a good end");
    }
    // As cargo's harness runs tests: in threads at once.
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(|| {
                for _ in 0..10 {
                    let job = start().expect("a job");
                    assert_eq!(ones(&job).and_then(|a| a.sum()).expect("a sum"), 100);
                    job.finish().expect("a good end");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
}

/// What was missing is set, as in a notebook.
fn try_again() -> Result<(), Error> {
    let refused = start().expect_err("there is no secret").to_string();
    says(&refused, &["GA_TOKEN"]);
    // SAFETY: this process has one thread.
    unsafe { std::env::set_var(SECRET.0, SECRET.1) };
    start()?.finish()
}

fn tried_again() {
    let ended = root::run_over("tries_again", "shared_memory", &[]);
    assert!(ended.iter().all(|(status, _)| *status == Some(0)), "{ended:#?}");
}

/// Over networks whose ranks are no processes.
fn parted() {
    for (status, text) in root::run_over("start_and_finish", "threads", &[SECRET]) {
        assert_eq!(status, Some(1), "{text}");
        says(&text, &["of 3 that a script", "ranks of \"threads\"", "choose another network"]);
    }
}

pub(crate) fn programs() -> Vec<Case> {
    let all = GOOD.iter().chain(LEAVING.iter().map(|(leaving, _)| leaving));
    let all = all.chain([&("tries_again", try_again as fn() -> _)]);
    all.map(|&(name, main)| program(name, move || programs::end(main()))).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        case("starts::threads_meet_by_themselves", meetings_of_threads),
        case("starts::a_wrong_meeting_is_refused", meetings_that_are_wrong),
        case("starts::cores_are_given_back", cores_are_given_back),
        case("starts::a_start_may_be_tried_again", tried_again),
        case("starts::ranks_of_a_launcher_are_not_parted", parted),
        case("starts::what_start_cannot_do_is_said", what_start_cannot_do_is_said),
    ];
    for &(name, _) in GOOD {
        cases.push(case(format!("starts::alone::{name}"), move || {
            let (status, text) = run_on(None, name, &[("GA_TEST_ALONE", "1")], SOON);
            assert_eq!(status, Some(0), "{text}");
        }));
        for network in ["shared_memory", "shared_memory:packets+hidden", "ib:sockets+hidden"] {
            cases.push(case(format!("starts::root::{network}::{name}"), move || {
                let ended = root::run_over(name, network, &[SECRET]);
                assert!(ended.iter().all(|(status, _)| *status == Some(0)), "{ended:#?}");
            }));
        }
        if let Some(network) = runner::launched::network() {
            cases.push(case(format!("starts::{network}::{name}"), move || {
                let (status, text) = run_on(Some(3), name, &[], SOON + LAUNCHER);
                assert_eq!(status, Some(0), "{text}");
            }));
        }
    }
    for &((name, _), words) in LEAVING {
        cases.push(case(format!("starts::alone::{name}"), move || {
            let (status, text) = run_on(None, name, &[("GA_TEST_ALONE", "1")], SOON);
            assert_eq!(status, Some(if name.contains("panics") { 101 } else { 3 }), "{text}");
        }));
        for network in ["shared_memory", "ib:sockets+hidden"] {
            cases.push(case(format!("starts::root::{network}::{name}"), move || {
                let begin = Instant::now();
                let ended = root::run_over(name, network, &[SECRET]);
                assert!(begin.elapsed() < SOON, "{:?}: {ended:#?}", begin.elapsed());
                for (rank, (status, text)) in ended.iter().enumerate().filter(|(rank, _)| *rank != CULPRIT) {
                    assert_eq!(*status, Some(1), "{rank}: {ended:#?}");
                    says(text, words);
                    says(text, &["rank 1"]);
                }
            }));
        }
        if let Some(network) = runner::launched::network() {
            cases.push(case(format!("starts::{network}::{name}"), move || {
                let (status, text) = run_on(Some(3), name, &[], SOON + LAUNCHER);
                assert_ne!(status, Some(0), "{text}");
                says(&text, words);
            }));
        }
    }
    cases
}
