//! Jobs in virtual time: what they do is the same again, takes what the model says, and ends as on real networks.

use std::{fs, path::PathBuf, sync::Mutex, time::Duration};

use super::launch::Report;
use crate::{FetchOp, Work, prelude::*};

/// A machine in a file, of which a test knows every number.
struct Machine(PathBuf);

impl Machine {
    /// One rank on each node, an adapter of 1 GB/s, no links to share.
    fn new(test: &str) -> Self {
        Machine::but(test, &[])
    }

    /// The same with other lines.
    fn but(test: &str, lines: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("global-arrays-{test}-{}.toml", std::process::id()));
        let mut text = String::from(
            "
            [processor]
            gigaflops = 1
            memory_gb_per_s = 1
            [node]
            ranks = 1
            latency_us = 1
            bandwidth_gb_per_s = 1
            [adapter]
            overhead_us = 2
            gap_us = 3
            bandwidth_gb_per_s = 1.0
            latency_us = 20
            read_us = 0
            copied_bytes = 1000000
            window = 1000
            ordered = true
            signals = true
            [network]
            topology = \"crossbar\"
            switch_us = 1
            link_gb_per_s = 1",
        );
        for (line, other) in lines {
            assert!(text.contains(line), "{line}");
            text = text.replacen(line, other, 1);
        }
        fs::write(&path, text).unwrap();
        Machine(path)
    }

    fn launch(&self, ranks: usize) -> Launch {
        Launch::new().network(format!("simulated:{}", self.0.display())).ranks(ranks).heap(1 << 24)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Overhead, latency and a switch of the machine, in microseconds.
const MESSAGE: f64 = 2.0 + 20.0 + 1.0;

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[track_caller]
fn assert_close(measured: f64, expected: f64) {
    assert!((measured - expected).abs() <= 0.01 * expected, "{measured} where {expected} was expected");
}

/// What some rank measured.
fn measured(launch: &Launch, body: impl Fn(&Job) -> Result<Option<Duration>, Error> + Sync) -> f64 {
    let last = Mutex::new(Duration::ZERO);
    let all = |job: &Job| {
        job.sync()?;
        if let Some(time) = body(job)? {
            let mut last = last.lock().unwrap();
            *last = time.max(*last);
        }
        job.sync()
    };
    launch.simulate(all).unwrap();
    micros(last.into_inner().unwrap())
}

/// All kinds of messages, in an order that depends on which rank is first: gets, puts, accumulates, counters, locks, signals, groups.
fn busy(sums: &Mutex<Vec<f64>>) -> impl Fn(&Job) -> Result<(), Error> + Sync {
    move |job| {
        let (me, size) = (job.rank(), job.size());
        let mut a = GlobalArray::<f64, Ix2>::builder(job, [40, 30]).fill(1.0).create()?;
        let (tasks, locks, signal) = (Counter::new(job)?, Locks::with_count(job, 2)?, Signal::new(job)?);
        while let Some(task) = tasks.next_below(40)? {
            let row = task as usize;
            let part = a.get(s![row..row + 1, ..])?;
            job.work(Work::flops(1e4 * (row % 7) as f64));
            a.accumulate(s![row..row + 1, 3..9], 1.0, part.slice(s![.., 3..9]))?;
            let _held = locks.lock(row % 2)?;
            a.put(s![row..row + 1, 0..1], part.slice(s![.., 0..1]))?;
        }
        signal.at((me + 1) % size, 0).notify()?;
        signal.wait_at_least(0, 1)?;
        let half = job.split(me as u64 % 2)?;
        let sums_of_half = half.all_reduce_one(me as f64, ops::sum)?;
        job.sync()?;
        let sum = a.sum()? + sums_of_half;
        a.fill(0.0)?;
        if me == 0 {
            sums.lock().unwrap().push(sum);
        }
        job.sync()
    }
}

fn run_busy(network: &str, seed: u64, coroutines: bool) -> (Report, f64) {
    let sums = Mutex::default();
    let launch = Launch::new().network(network).ranks(6).ranks_per_node(2).heap(1 << 24).seed(seed).coroutines(coroutines);
    let report = launch.simulate(busy(&sums)).unwrap();
    (report, sums.into_inner().unwrap()[0])
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for network in ["simulated:gemini", "simulated:infiniband", "simulated:extoll", "simulated:bluegene"] {
        let (first, sum) = run_busy(network, 0, true);
        assert!(first.digest != 0);
        // Threads are slow.
        for run in 0..if network.ends_with("gemini") { 20 } else { 3 } {
            assert_eq!(run_busy(network, 0, run % 3 > 0).0, first, "run {run} over {network}");
        }
        // Another order, the same results.
        let mut digests: Vec<u64> = (0..5)
            .map(|seed| run_busy(network, seed, true))
            .map(|(report, other)| {
                assert_eq!(other, sum, "{network}");
                report.digest
            })
            .collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 5, "{network}");
    }
}

#[test]
fn a_ping_pong_takes_its_overhead_latency_and_bytes() {
    let machine = Machine::new("ping-pong");
    for bytes in [8_usize, 1000, 100_000] {
        let time = measured(&machine.launch(2), |job| {
            let a = GlobalArray::<u8, Ix1>::builder(job, [2 * bytes]).zeros().create()?;
            let signal = Signal::new(job)?;
            let (other, data) = (1 - job.rank(), vec![1; bytes]);
            let patch = s![other * bytes..(other + 1) * bytes];
            job.sync()?;
            let begin = job.now();
            for round in 1..=10 {
                if job.rank() == 0 {
                    a.put_signal(patch, ndarray::aview1(&data), signal.at(other, 0))?;
                }
                signal.wait_at_least(0, round)?;
                if job.rank() == 1 {
                    a.put_signal(patch, ndarray::aview1(&data), signal.at(other, 0))?;
                }
            }
            Ok((job.rank() == 0).then(|| (job.now() - begin) / 20))
        });
        assert_close(time, MESSAGE + bytes as f64 / 1000.0);
    }
}

/// All ranks begin at this time.
const BEGIN: Duration = Duration::from_secs(1);

fn begin(job: &Job) {
    let left = BEGIN - job.now();
    // The machine's ranks do one operation in a nanosecond.
    job.work(Work::flops(left.as_nanos() as f64));
    assert_close(micros(job.now()), micros(BEGIN));
}

#[test]
fn an_incast_takes_turns_at_the_receiver() {
    let machine = Machine::new("incast");
    // The gap of 3 µs is the longer one, and then the bytes.
    for bytes in [8_usize, 50_000] {
        let senders = 15;
        let time = measured(&machine.launch(senders + 1), |job| {
            let a = GlobalArray::<u8, Ix1>::builder(job, [(senders + 1) * bytes]).zeros().create()?;
            let (signal, data) = (Signal::new(job)?, vec![1; bytes]);
            begin(job);
            if job.rank() > 0 {
                a.put_signal(s![..bytes], ndarray::aview1(&data), signal.at(0, 0))?;
                return Ok(None);
            }
            signal.wait_at_least(0, senders as u32)?;
            Ok(Some(job.now() - BEGIN))
        });
        let bytes = bytes as f64 / 1000.0;
        assert_close(time, MESSAGE + (senders - 1) as f64 * bytes.max(3.0) + bytes);
    }
}

#[test]
fn a_barrier_takes_a_message_for_each_round() {
    let machine = Machine::new("barrier");
    for rounds in [1_u32, 3, 6] {
        let time = measured(&machine.launch(1 << rounds), |job| {
            begin(job);
            job.barrier()?;
            Ok(Some(job.now() - BEGIN))
        });
        assert_close(time, f64::from(rounds) * MESSAGE);
    }
}

/// An agreement, and a binomial tree.
#[test]
fn a_broadcast_takes_a_message_for_each_level() {
    let machine = Machine::new("broadcast");
    for rounds in [1_u32, 3, 6] {
        let bytes = 2000;
        let time = measured(&machine.launch(1 << rounds), |job| {
            let mut data = vec![1_u8; bytes];
            begin(job);
            job.broadcast(0, &mut data)?;
            Ok(Some(job.now() - BEGIN))
        });
        assert_close(time, f64::from(rounds) * (MESSAGE + MESSAGE + bytes as f64 / 1000.0));
    }
}

#[test]
fn work_takes_the_longer_of_its_times() {
    let machine = Machine::new("work");
    let time = measured(&machine.launch(1), |job| {
        let begin = job.now();
        job.work(Work::flops(2000.0) + Work::bytes(5000.0));
        job.work(Work::flops(4000.0) + Work::bytes(1000.0));
        Ok(Some(job.now() - begin))
    });
    assert_close(time, 9.0);
}

#[test]
fn computing_takes_what_is_said_or_measured_or_nothing() {
    let machine = Machine::new("computing");
    let spent = |computing: &str| {
        measured(&machine.launch(1).computing(computing), |job| {
            let begin = job.now();
            job.work(Work::flops(5e6));
            std::hint::black_box((0..3_000_000_u64).map(|k| std::hint::black_box(k) % 7).sum::<u64>());
            Ok(Some(job.now() - begin))
        })
    };
    assert_close(spent("declared"), 5000.0);
    assert!(spent("zero") < 0.1);
    let (once, much) = (spent("measured"), spent("measured:1000"));
    // Runs differ, but not by that much.
    assert!(once > 100.0 && much > 20.0 * once, "{once} and {much}");
    for name in ["guessed", "measured:", "measured:-1", "measured:nan"] {
        let text = machine.launch(1).computing(name).simulate(|_| Ok(())).unwrap_err().to_string();
        assert!(text.contains("GA_COMPUTING"), "{text}");
    }
}

/// What a job that fails says.
fn said(ranks: usize, coroutines: bool, body: impl Fn(&Job) -> Result<(), Error> + Sync) -> String {
    let launch = Launch::new().network("simulated:infiniband").ranks(ranks).heap(1 << 24).coroutines(coroutines);
    launch.simulate(body).expect_err("a job that fails").to_string()
}

#[test]
fn deadlocks_name_who_waits_for_what() {
    for coroutines in [false, true] {
        let text = said(3, coroutines, |job| {
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
        let text = said(3, coroutines, |job| {
            let signal = Signal::new(job)?;
            if job.rank() == 1 {
                signal.wait_at_least(0, 1)?;
            }
            job.sync()
        });
        assert!(text.contains("rank 1") && text.contains("signal") && text.contains("src/job/simulated.rs:"), "{text}");
    }
}

/// A rank that waits for a lock polls it. So there are always events, although all ranks wait.
#[test]
fn deadlocks_of_one_lock_are_found() {
    let twice = said(2, true, |job| {
        let locks = Locks::new(job)?;
        if job.rank() == 0 {
            let _held = locks.lock(0)?;
            drop(locks.lock(0)?);
        }
        job.sync()
    });
    assert!(twice.contains("rank 0") && twice.contains("lock 0"), "{twice}");
    let mixed = said(2, true, |job| {
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

/// A window that has room for all that is on its way hides every latency but the last.
#[test]
fn a_window_is_full_only_while_it_is() {
    let lines = [("gap_us = 3", "gap_us = 1"), ("copied_bytes = 1000000", "copied_bytes = 0"), ("window = 1000", "window = 30")];
    let machine = Machine::but("window", &lines);
    let (puts, data) = (300, [1; 8]);
    let time = measured(&machine.launch(2), |job| {
        let a = GlobalArray::<u8, Ix1>::builder(job, [2 * data.len()]).zeros().create()?;
        begin(job);
        if job.rank() == 1 {
            return Ok(None);
        }
        job.scope(|scope| (0..puts).try_for_each(|_| scope.put(&a, s![data.len()..], ndarray::aview1(&data))))?;
        Ok(Some(job.now() - BEGIN))
    });
    // An overhead for each, and for the last one also the way there and back.
    assert_close(time, f64::from(puts) * 2.0 + 2.0 * 21.0);
}

/// What is on its way for seconds is no deadlock, and neither is a rank that has ended before its last words arrive.
#[test]
fn what_takes_long_is_no_deadlock() {
    let machine = Machine::but("long", &[("bandwidth_gb_per_s = 1.0", "bandwidth_gb_per_s = 0.001")]);
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
            job.work(Work::flops(20e9));
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
    for coroutines in [false, true] {
        let calls = Mutex::default();
        let text = said(4, coroutines, |job| {
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
    for coroutines in [false, true] {
        let told: Mutex<Vec<String>> = Mutex::default();
        let body = |job: &Job| {
            let a = GlobalArray::<f64, Ix1>::builder(job, [10]).zeros().create()?;
            job.sync()?;
            let before = job.now();
            let calls = || {
                let said = |outcome: Result<(), Error>| outcome.unwrap_err().to_string();
                job.work(Work::flops(1e12));
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
        let launch = Launch::new().network("simulated:infiniband").ranks(2).heap(1 << 24).coroutines(coroutines);
        let outcome = launch.simulate(body);
        let told = told.into_inner().unwrap();
        assert!(told.iter().all(|text| text.contains("from its own thread only")), "{told:?}");
        outcome.unwrap();
    }
}

#[test]
fn virtual_time_has_an_end() {
    let text = said(2, true, |job| {
        job.work(Work::flops(1e300));
        job.sync()
    });
    assert!(text.contains("beyond the end of virtual time"), "{text}");
}

#[test]
fn the_clock_goes_on_while_a_rank_reads_it() {
    let body = |job: &Job| {
        let end = job.now() + Duration::from_micros(5);
        while job.now() < end {}
        job.sync()
    };
    Launch::new().network("simulated:gemini").ranks(2).simulate(body).unwrap();
}

#[test]
fn what_cannot_be_simulated_says_why() {
    for (network, words) in [
        ("simulated", "name a machine (infiniband, gemini, extoll, bluegene) or a file"),
        ("simulated:nowhere", "no such file"),
        ("simulated:gemini+delayed", "no layer +delayed"),
    ] {
        let text = Launch::new().network(network).ranks(1).simulate(|_| Ok(())).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
    let text = Launch::new().network("simulated:gemini").ranks(65_537).simulate(|_| Ok(())).unwrap_err().to_string();
    assert!(text.contains("from 1 to 65536"), "{text}");
}

#[test]
fn layers_show_what_a_simulated_network_is_asked_for() {
    for network in ["simulated:gemini+counted", "simulated:infiniband+scrambled"] {
        let sums = Mutex::default();
        Launch::new().network(network).ranks(3).heap(1 << 24).simulate(busy(&sums)).unwrap();
        assert!(sums.into_inner().unwrap()[0] > 1200.0);
    }
}

/// An array without contents takes the time of one with, and no memory; what lies there later has contents.
#[test]
fn hollow_arrays_take_time_but_no_memory() {
    let machine = Machine::new("hollow");
    let n = 1_000_000_usize;
    let time = |computing: &str, hollow: bool| {
        let launch = machine.launch(2).heap(1 << 30).computing(computing);
        let taken = Mutex::new((Duration::ZERO, 0));
        let body = |job: &Job| {
            let builder = GlobalArray::<u8, Ix1>::builder(job, [2 * n]).fill(7);
            let mut a = if hollow { builder.hollow().create()? } else { builder.create()? };
            job.sync()?;
            let committed = job.memory().committed;
            let begin = job.now();
            if job.rank() == 0 {
                let data = ndarray::Array1::from_elem(n, 1);
                a.put(s![n..], &data)?;
                let back = a.get(s![n..])?;
                assert_eq!(back == data, !(hollow && job.skips()));
                *taken.lock().unwrap() = (job.now() - begin, committed);
            }
            job.sync()?;
            a.owner_epoch(|part| assert!(part.iter().all(|&value| (hollow && job.skips()) == (value == 0))))?;
            a.destroy()?;
            // What a group needs for itself has contents, also where an array had none.
            let pair = job.subgroup(&[0, 1])?;
            GlobalArray::<u64, Ix1>::builder(&pair, [100_000]).hollow().create()?.destroy()?;
            let other = job.subgroup(&[1, 0])?;
            assert_eq!(other.all_reduce_one(1 + job.rank() as u64, ops::sum)?, 3);
            // At the same place.
            let b = GlobalArray::<u8, Ix1>::builder(job, [2 * n]).fill(3).create()?;
            b.put(s![n * (1 - job.rank())..n * (2 - job.rank())], &ndarray::Array1::from_elem(n, 5))?;
            job.sync()?;
            assert!(b.get(..)?.iter().all(|&value| value == 5));
            job.sync()
        };
        launch.run(body).unwrap();
        taken.into_inner().unwrap()
    };
    let (full, hollow) = (time("declared", true), time("skip", true));
    assert_eq!(full.0, hollow.0);
    assert!(full.1 >= n as u64 && hollow.1 < n as u64, "{full:?}, {hollow:?}");
    assert_eq!(time("skip", false).1, full.1);
}

/// A rank dies at its time, and the others hear of it; an adapter that stalls is late by what is left of that; late messages change times, not
/// results.
#[test]
fn faults_happen_when_they_are_said() {
    let machine = Machine::new("faults");
    let counts = |job: &Job| {
        let counter = Counter::new(job)?;
        (0..100).try_for_each(|_| counter.fetch_add(1).map(|_| ()))?;
        job.sync()?;
        assert_eq!(counter.get()?, 100 * job.size() as u64);
        job.sync()
    };
    let died = machine.launch(3).faults("die:1@0.002").run(counts).unwrap_err();
    assert_eq!(died.to_string(), "rank 1 died after 0.002 s, as GA_FAULTS says");
    for (faults, words) in [("die:3@1", "names rank 3, but there are 3"), ("stall:7@1+1", "names node 7, but there are 3")] {
        let refused = machine.launch(3).faults(faults).run(counts).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
    let ping = |faults: &str| {
        let launch = machine.launch(2);
        let launch = if faults.is_empty() { launch } else { launch.faults(faults) };
        measured(&launch, |job| {
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
    let delayed = |seed: u64| end(&machine.launch(3).faults("delay:0.5*100").seed(seed));
    assert_eq!(delayed(1), delayed(1));
    assert!(delayed(1) != delayed(2) && delayed(1) != end(&machine.launch(3).seed(1)));
}

/// Small jobs in which one message must not overtake another, in as many orders as the network allows: data before its signal, puts before
/// the counter that says so, what a lock guards before the lock, a put before what its rank does there next.
#[test]
fn any_order_gives_the_same_results() {
    const RANKS: usize = 3;
    let body = |job: &Job| {
        let (me, next) = (job.rank(), (job.rank() + 1) % RANKS);
        let a = GlobalArray::<u64, Ix2>::builder(job, [RANKS, 16]).grid([RANKS, 1]).zeros().create()?;
        let own = GlobalArray::<u64, Ix2>::builder(job, [RANKS, 16]).grid([RANKS, 1]).zeros().create()?;
        let (there, free, told) = (Signal::new(job)?, Signal::new(job)?, Counter::new(job)?);
        let (locks, guarded) = (Locks::with_count(job, 1)?, GlobalArray::<u64, Ix1>::builder(job, [2]).zeros().create()?);
        for round in 1..=3_u32 {
            let words = ndarray::Array1::from_elem(16, u64::from(round));
            a.put_signal(s![next, ..], &words, there.at(next, 0))?;
            there.wait_at_least(0, round)?;
            assert_eq!(a.get(s![me, ..])?, words, "a signal before its data");
            free.at((me + RANKS - 1) % RANKS, 0).notify()?;
            free.wait_at_least(0, round)?;
            // A rank's own operations on one place, which it owns or not.
            let mine = ndarray::Array1::from_elem(16, u64::from(round) << 8 | me as u64);
            own.put(s![next, ..], &mine)?;
            assert_eq!(own.fetch_op([next, 15], FetchOp::Add, 1)?, mine[15], "an atomic operation before a put");
            own.put(s![next, ..], &(&mine + 1))?;
            assert_eq!(own.get(s![next, ..])?, mine + 1, "a get before a put");
            let _held = locks.lock(0)?;
            let pair = guarded.get(..)?;
            assert_eq!(pair[0], pair[1], "a lock before what it guards");
            guarded.put(.., &(pair + 1))?;
        }
        job.sync()?;
        a.put(s![next, ..], &ndarray::Array1::from_elem(16, 7))?;
        a.fence()?;
        told.fetch_add(1)?;
        while told.get()? < RANKS as u64 {}
        assert!(a.get(s![me, ..])?.iter().all(|&word| word == 7), "a counter before what was fenced");
        assert_eq!(guarded.get(..)?.to_vec(), [3 * RANKS as u64; 2]);
        job.sync()
    };
    let seeds = if std::env::var("GA_TEST_LONG").is_ok_and(|value| value == "1") { 100_000 } else { 300 };
    for seed in 0..seeds {
        let machine = ["gemini", "extoll", "infiniband", "bluegene"][seed as usize % 4];
        let launch = Launch::new().network(format!("simulated:{machine}")).ranks(RANKS).heap(1 << 22).seed(seed);
        let run = launch.ranks_per_node(1 + seed as usize % 2).coroutines(true).run(body);
        run.unwrap_or_else(|error| panic!("GA_SEED={seed} on {machine}: {error}"));
    }
}
