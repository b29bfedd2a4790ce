//! How jobs in virtual time end badly: deadlocks, panics, threads that are no ranks, faults.

use super::*;

/// A network whose operations are a model, and one whose own code runs.
const NETWORKS: [&str; 2] = ["simulated:infiniband", "simulated:ib"];

/// What a job that fails says, each rank on a node of its own.
fn said(network: &str, ranks: usize, coroutines: bool, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> String {
    let launch = Launch::new().network(network).ranks(ranks).ranks_per_node(1).heap(1 << 24).coroutines(coroutines);
    launch.simulate(body).expect_err("a job that fails").to_string()
}

/// Both networks, over both forms of ranks.
fn all() -> impl Iterator<Item = (&'static str, bool)> {
    NETWORKS.into_iter().flat_map(|network| [(network, false), (network, true)])
}

#[test]
fn deadlocks_name_who_waits_for_what() {
    for (network, coroutines) in all() {
        let text = said(network, 3, coroutines, |job| {
            let locks = Locks::with_count(job, 2)?;
            let own = if job.rank() < 2 { Some(locks.lock(job.rank())?) } else { None };
            job.barrier()?;
            let other = if job.rank() < 2 { Some(locks.lock(1 - job.rank())?) } else { None };
            drop((own, other));
            job.sync()
        });
        for word in ["rank 0 waits for", "rank 1 waits for", "lock"] {
            assert!(text.contains(word), "{text}");
        }
        let text = said(network, 3, coroutines, |job| {
            let signal = Signal::new(job)?;
            if job.rank() == 1 {
                signal.wait_at_least(0, 1)?;
            }
            job.sync()
        });
        assert!(
            text.contains("rank 1") && text.contains("signal") && text.contains("src/job/tests/simulated/ends.rs:"),
            "{text}"
        );
    }
}

/// A rank that waits for a lock polls it. So there are always events, although all ranks wait.
#[test]
fn deadlocks_of_one_lock_are_found() {
    for network in NETWORKS {
        let twice = said(network, 2, true, |job| {
            let locks = Locks::new(job)?;
            if job.rank() == 0 {
                let _held = locks.lock(0)?;
                drop(locks.lock(0)?);
            }
            job.sync()
        });
        assert!(twice.contains("rank 0") && twice.contains("lock 0"), "{twice}");
        let mixed = said(network, 2, true, |job| {
            let (locks, signal) = (Locks::new(job)?, Signal::new(job)?);
            let held = if job.rank() == 0 { Some(locks.lock(0)?) } else { None };
            job.barrier()?;
            if job.rank() == 0 {
                signal.wait_at_least(0, 1)?;
            } else {
                drop(locks.lock(0)?);
                signal.at(0, 0).notify()?;
            }
            drop(held);
            job.sync()
        });
        assert!(mixed.contains("rank 0") && mixed.contains("signal") && mixed.contains("rank 1"), "{mixed}");
    }
}

/// What is on its way for seconds is no deadlock, and neither is a rank that has ended before its last words arrive.
#[test]
fn what_takes_long_is_no_deadlock() {
    let machine = MachineFile::but("long", &[("bandwidth_gb_per_s = 1.0", "bandwidth_gb_per_s = 0.001")]);
    let bytes = 64 << 10;
    // Each takes 66 ms; the words of the barrier queue behind them.
    let launch = machine.launch(2).coroutines(true);
    let body = |job: &Job| {
        let a = GlobalArray::<u8, Ix1>::builder(job, [2 * bytes]).create()?;
        let signal = Signal::new(job)?;
        let other = 1 - job.rank();
        for _ in 0..60 {
            drop(a.put_nb(s![other * bytes..(other + 1) * bytes], ndarray::Array1::zeros(bytes))?);
        }
        job.barrier()?;
        if job.rank() == 1 {
            job.simulation().work(Work::flops(20e9));
            signal.at(0, 0).notify()?;
            return Ok(());
        }
        signal.wait_at_least(0, 1)
    };
    launch.simulate(body).unwrap();
}

#[test]
fn a_rank_that_panics_lets_nobody_run_before_it_has_unwound() {
    struct Calls<'j>(&'j Job, &'j Mutex<Vec<String>>);
    impl Drop for Calls<'_> {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0.sync().unwrap_err().to_string());
        }
    }
    for (network, coroutines) in all() {
        let calls = Mutex::default();
        let text = said(network, 4, coroutines, |job| {
            job.sync()?;
            if job.rank() == 2 {
                let _calls = Calls(job, &calls);
                panic!("on purpose");
            }
            job.sync()
        });
        assert!(text.contains("rank 2 panicked: on purpose"), "{text}");
        let calls = calls.into_inner().unwrap();
        assert!(calls.len() == 1 && calls[0].contains("this rank panics"), "{calls:?}");
    }
}

#[test]
fn a_thread_of_the_program_has_no_place_in_virtual_time() {
    for (network, coroutines) in all() {
        let told: Mutex<Vec<String>> = Mutex::default();
        let body = |job: &Job| {
            let a = GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create()?;
            job.sync()?;
            let before = job.now();
            let calls = || {
                let said = |outcome: Result<(), Error>| outcome.unwrap_err().to_string();
                job.simulation().work(Work::flops(1e12));
                let all = [
                    said(a.load([9]).map(|_| ())),
                    said(a.store([9], 1.0)),
                    said(a.put(s![8..10], &ndarray::array![1.0, 2.0])),
                    said(a.get(s![8..10]).map(|_| ())),
                    said(a.accumulate(s![8..10], 1.0, &ndarray::array![1.0, 2.0])),
                ];
                all.to_vec()
            };
            let all = std::thread::scope(|scope| scope.spawn(calls).join().unwrap());
            told.lock().unwrap().extend(all);
            assert!(micros(job.now() - before) < 1000.0);
            a.store([job.rank()], 1.0)?;
            job.sync()?;
            assert_eq!(a.get(..)?.sum(), 2.0);
            job.sync()
        };
        let launch = Launch::new().network(network).ranks(2).ranks_per_node(1).heap(1 << 24).coroutines(coroutines);
        let outcome = launch.simulate(body);
        let told = told.into_inner().unwrap();
        assert!(told.iter().all(|text| text.contains("from its own thread only")), "{told:?}");
        outcome.unwrap();
    }
}

/// A rank dies at its time, and the others hear of it; an adapter that stalls is late by what is left of that; late messages change times, not
/// results.
#[test]
fn faults_happen_when_they_are_said() {
    let machine = MachineFile::new("faults");
    let counts = |job: &Job| {
        let counter = Counter::new(job)?;
        (0..100).try_for_each(|_| counter.fetch_add(1).map(|_| ()))?;
        job.sync()?;
        assert_eq!(counter.get()?, 100 * job.size());
        job.sync()
    };
    let died = over(machine.model().faults("die:1@0.002"), 3).run(counts).unwrap_err();
    assert_eq!(died.to_string(), "rank 1 died after 0.002 s, as GA_FAULTS says");
    for (faults, words) in [("die:3@1", "names rank 3, but there are 3"), ("stall:7@1+1", "names node 7, but there are 3")] {
        let refused = over(machine.model().faults(faults), 3).run(counts).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    let ping = |faults: &str| {
        let model = if faults.is_empty() { machine.model() } else { machine.model().faults(faults) };
        measured(&over(model, 2), |job| {
            let a = GlobalArray::<u8, Ix1>::builder(job, [2]).zeros().create()?;
            begin(job);
            if job.rank() == 1 {
                return Ok(None);
            }
            a.store([1], 1)?;
            a.fence()?;
            Ok(Some(job.now() - BEGIN))
        })
    };
    let begin = BEGIN.as_secs_f64();
    let (late, usual) = (ping(&format!("stall:1@{begin}+0.001")), ping(""));
    // What arrives at a stalled adapter waits for it; the last byte and the way back come after.
    assert!((late - (1000.0 + usual - MESSAGE)).abs() < 1.0, "{late} and {usual}");
    let end = |launch: &Launch| launch.simulate(counts).unwrap().digest;
    let delayed = |seed: u64| end(&over(machine.model().faults("delay:0.5*100").seed(seed), 3));
    assert_eq!(delayed(1), delayed(1));
    assert!(delayed(1) != delayed(2) && delayed(1) != end(&over(machine.model().seed(1), 3)));
}

#[test]
fn virtual_time_has_an_end() {
    for network in NETWORKS {
        let text = said(network, 2, true, |job| {
            job.simulation().work(Work::flops(1e300));
            job.sync()
        });
        assert!(text.contains("beyond the end of virtual time"), "{text}");
    }
}
