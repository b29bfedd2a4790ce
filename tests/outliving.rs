//! A job ends its threads, closes its descriptors and gives its memory back, whoever still holds a handle; the handle finds it over.

#[path = "runner/meeting.rs"]
mod meeting;

use std::{
    env, fs, mem, panic,
    sync::{Arc, Mutex, RwLock, mpsc},
    thread,
};

use global_arrays::prelude::*;

/// Threads and descriptors of this process, and mappings of the memory file of a job.
fn held() -> [usize; 3] {
    let entries = |folder: &str| fs::read_dir(folder).expect("a folder of /proc").count();
    let maps = fs::read_to_string("/proc/self/maps").expect("the mappings of this process");
    [entries("/proc/self/task"), entries("/proc/self/fd"), maps.matches("global-arrays").count()]
}

/// The same, once threads that were joined are gone from the kernel's list too.
fn settled(most: [usize; 3]) -> [usize; 3] {
    for _ in 0..500 {
        if held().iter().zip(most).all(|(&now, most)| now <= most) {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(10));
    }
    held()
}

/// How a job ends, and what of it is still there then.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Good,
    Failed,
    Panicked,
    /// A transfer that nobody waits for, forgotten.
    ForgottenTransfer,
    /// An array that the program keeps.
    KeptArray,
    /// An array of a job that ended well.
    KeptAfterGood,
    /// A thread of the program uses the array until it gets an error.
    InUse,
    /// A thread of the program holds its part as a slice.
    InEpoch,
}

const ENDINGS: [Ending; 8] = [
    Ending::Good,
    Ending::Failed,
    Ending::Panicked,
    Ending::ForgottenTransfer,
    Ending::KeptArray,
    Ending::KeptAfterGood,
    Ending::InUse,
    Ending::InEpoch,
];

/// The job, and the arrays that outlive it.
fn job(network: &str, ending: Ending, large_pages: bool) -> Vec<GlobalArray2<f64>> {
    let kept = Mutex::new(Vec::new());
    let threads = Mutex::new(Vec::new());
    let end = Arc::new(RwLock::new(()));
    let runs = end.write().expect("no panic");
    let body = |job: &Job| {
        let a = GlobalArray2::<f64>::builder(job, [30, 30]).zeros().create()?;
        let half = job.subgroup_range(job.rank() % 2..job.size(), 2)?;
        let _b = GlobalArray1::<f64>::builder(&half, [1000]).zeros().create()?;
        job.sync()?;
        let transfer = a.get_nb(s![0..20, 0..20])?;
        let fails = || if job.rank() == 0 { Err(Error::other("on purpose")) } else { job.sync() };
        match ending {
            Ending::Good => transfer.wait().map(|_| ())?,
            Ending::Failed => fails()?,
            Ending::Panicked => assert!(job.rank() != 1, "on purpose"),
            Ending::ForgottenTransfer => {
                mem::forget(transfer);
                fails()?;
            }
            Ending::KeptArray => {
                kept.lock().expect("no panic").push(a);
                fails()?;
            }
            Ending::KeptAfterGood => {
                transfer.wait()?;
                kept.lock().expect("no panic").push(a);
            }
            Ending::InUse => {
                drop(transfer);
                let all = Array2::ones((30, 30));
                let uses = move || while a.put(.., &all).and_then(|()| a.store([1, 1], a.load([29, 29])?)).is_ok() {};
                threads.lock().expect("no panic").push(thread::spawn(uses));
            }
            Ending::InEpoch => {
                drop(transfer);
                let (mut a, end, (inside, entered)) = (a, end.clone(), mpsc::channel());
                let holds = move || {
                    let epoch = a.owner_epoch(|mut part| {
                        part.fill(7.0);
                        inside.send(()).expect("a body that waits");
                        drop(end.read());
                        assert!(part.iter().all(|&element| element == 7.0), "memory of a slice was given back");
                    });
                    assert!(epoch.is_err());
                };
                threads.lock().expect("no panic").push(thread::spawn(holds));
                entered.recv().expect("a thread inside an epoch");
            }
        }
        job.sync()
    };
    let run = || Launch::new().ranks(3).network(network).ranks_per_node(1).heap(1 << 30).large_pages(large_pages).run(body);
    let outcome = panic::catch_unwind(panic::AssertUnwindSafe(run)).unwrap_or_else(|_| Err(Error::other("panicked")));
    drop(runs);
    let ends_well = [Ending::Good, Ending::KeptAfterGood, Ending::InUse, Ending::InEpoch].contains(&ending);
    assert!(outcome.is_ok() == ends_well, "{network}, {ending:?}: {outcome:?}");
    for thread in threads.into_inner().expect("no panic") {
        thread.join().expect("an error, no panic");
    }
    kept.into_inner().expect("no panic")
}

/// Every call of an array of a job that is over.
fn refuses(a: &mut GlobalArray2<f64>) {
    let one = Array2::ones((1, 1));
    assert!(
        a.get(s![..3, ..]).is_err() && a.put(s![2..3, 2..3], &one).is_err() && a.accumulate(s![2..3, 2..3], 1.0, &one).is_err()
    );
    assert!(a.load([0, 0]).is_err() && a.store([29, 29], 1.0).is_err() && a.get_nb(..).is_err());
    assert!(a.fence().is_err() && a.group().sync().is_err() && a.fill(1.0).is_err() && a.sum().is_err());
    let error = a.owner_epoch(|_| ()).expect_err("the job is over");
    assert!(!error.to_string().is_empty());
}

/// A rank of a job that is a value ends it in one of the ways.
fn end(job: Job, way: usize) -> Option<GlobalArray2<f64>> {
    let mut a = GlobalArray2::<f64>::builder(&job, [30, 30]).zeros().create().expect("an array");
    // A rank that leaves ends a sync for those that have not come out of it.
    let _ = job.sync();
    let kept = match way % 5 {
        0 => job.finish().map(|()| None),
        1 => {
            drop(job);
            Ok(Some(a))
        }
        2 => {
            let panics = || {
                let _job = job;
                panic!("on purpose")
            };
            panic::catch_unwind(panic::AssertUnwindSafe(panics)).expect_err("a panic");
            Ok(None)
        }
        3 => a.owner_epoch(|_| drop(job)).map(|()| None).or(Ok(None)),
        _ => job.finish().map(|()| Some(a)),
    };
    kept.expect("a good end")
}

fn nothing_outlives_a_job_that_is_a_value() {
    let jobs = if env::var_os("GA_TEST_LONG").is_some() { 2000 } else { 25 };
    panic::set_hook(Box::new(|_| {}));
    let before = held();
    let mut kept = Vec::new();
    for k in 0..jobs {
        let network = ["shared_memory", "threads:unmapped", "ib"][k % 3];
        kept.extend(end(Launch::new().network(network).heap(1 << 24).start().expect("a job alone"), k));
        let network = ["shared_memory", "shared_memory:packets+hidden", "ib:sockets+hidden"][k % 3];
        let rank = |meeting| {
            thread::spawn(move || {
                let job = Launch::new().network(network).heap(1 << 24).start_with(meeting).expect("a job of threads");
                end(job, k)
            })
        };
        let ranks: Vec<_> = meeting::MeetingThread::all(3).into_iter().map(rank).collect();
        let outlive: Vec<_> = ranks.into_iter().filter_map(|rank| rank.join().expect("a rank")).collect();
        // A handle keeps the device open.
        kept.extend(outlive.into_iter().filter(|_| !network.starts_with("ib")));
    }
    kept.iter_mut().take(3).for_each(refuses);
    let [threads, descriptors, _] = settled([before[0], before[1], usize::MAX]);
    assert!(threads <= before[0] && descriptors <= before[1], "{before:?}, then {:?}", held());
    drop(kept);
    let mappings = settled(before)[2];
    assert!(mappings <= before[2], "{mappings} mappings of jobs, {} before", before[2]);
}

/// One test: it counts what the process holds.
#[test]
fn nothing_outlives_a_job_but_its_handles() {
    nothing_outlives_a_job_that_is_a_value();
    // Two thousand in a row over each network.
    let repeats = if env::var_os("GA_TEST_LONG").is_some() { 2000_usize.div_ceil(ENDINGS.len()) } else { 5 };
    // Threads of ranks have said what they panic with.
    panic::set_hook(Box::new(|_| {}));
    let before = held();
    let mut mappings = before[2];
    let networks =
        ["threads", "threads:unmapped", "threads+hidden+scrambled+delayed", "threads:packets+hidden", "ib:soft+hidden"];
    for network in networks.into_iter().chain(["simulated:gemini", "simulated:ib"]) {
        for ending in ENDINGS {
            // Ranks of simulated networks are the only threads that may call.
            if [Ending::InUse, Ending::InEpoch].contains(&ending) && network.starts_with("simulated") {
                continue;
            }
            let mut kept = Vec::new();
            for k in 0..repeats {
                // Files with large pages have no name by which `held` would find them.
                kept.extend(job(network, ending, k % 2 == 1));
            }
            kept.iter_mut().take(3).for_each(refuses);
            // Addresses that a handle may lead to stay; the file and its pages do not.
            let [threads, descriptors, _] = settled([before[0], before[1], usize::MAX]);
            assert!(threads <= before[0] && descriptors <= before[1], "{network}, {ending:?}: {before:?}, then {:?}", held());
            drop(kept);
            if ending == Ending::ForgottenTransfer {
                // Nobody drops their handles.
                mappings = held()[2];
            }
            let now = settled([before[0], before[1], mappings])[2];
            assert!(now <= mappings, "{network}, {ending:?}: {now} mappings of jobs, {mappings} before");
        }
    }
}
