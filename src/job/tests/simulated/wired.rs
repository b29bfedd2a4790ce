//! The code of a network in virtual time (`simulated:ib`): its time, and whether a rank or its agent acts.

use super::*;

/// The machine's: overhead, latency, a switch, in microseconds; and what the agent of a rank that computes needs to wake up.
const OVERHEAD: f64 = 0.3;
const WAY: f64 = 1.58 + 0.14;
const WAKE_UP: f64 = 5.0;
/// Bytes in a microsecond, of a message on its way and of an agent that works on it.
const WIRE: f64 = 1473.0;
const ADDED: f64 = 1530.0;

fn launch(ranks: usize) -> Launch {
    launch_of(Machine::new("ib"), ranks)
}

fn launch_of(machine: Machine, ranks: usize) -> Launch {
    over(machine, ranks).ranks_per_node(1).stats(true)
}

/// What rank 0 needs for something, while rank 1 computes for a second.
fn takes(launch: &Launch, act: impl Fn(&Job, &GlobalArray<u64, Ix1>) -> Result<(), Error> + Sync) -> f64 {
    measured(launch, |job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [2 * 1024]).zeros().create()?;
        // The connection stands, and keys are known.
        let first = 1024 * (1 - job.rank());
        a.put(s![first..first + 1024], &ndarray::Array1::from_elem(1024, 1))?;
        a.fence()?;
        job.sync()?;
        let begin = job.now();
        if job.rank() == 1 {
            job.simulation().work(Work::flops(8.8e9));
            return Ok(None);
        }
        job.simulation().work(Work::flops(8.8e6));
        // An adapter passes the peer's processor when that has acknowledged what was sent to it.
        a.put(s![1024..1025], &ndarray::Array1::from_elem(1, 7))?;
        a.fence()?;
        // So long that the agent sleeps.
        job.simulation().work(Work::flops(8.8e6));
        let before = job.now();
        act(job, &a)?;
        assert!(job.now() - begin < Duration::from_millis(10), "it waited for a rank that computes");
        Ok(Some(job.now() - before))
    })
}

/// An adapter writes and reads without its processors, and no other thread wakes up. What needs a processor waits for the agent.
#[test]
fn puts_and_gets_pass_the_processor_and_atomics_wake_the_agent() {
    let put = takes(&launch(2), |_, a| {
        a.put(s![1024..1025], &ndarray::Array1::from_elem(1, 7))?;
        a.fence()
    });
    assert!((put - (OVERHEAD + 2.0 * WAY)).abs() < 0.5, "a put of 8 bytes takes {put} us");
    let get = takes(&launch(2), |_, a| a.get(s![1024..1032]).map(|_| ()));
    assert!((OVERHEAD + 2.0 * WAY..put + 1.5).contains(&get), "a get of 64 bytes takes {get} us");
    let atomic = takes(&launch(2), |_, a| a.fetch_add([1024], 1).map(|_| ()));
    let least = 2.0 * (OVERHEAD + WAY) + WAKE_UP;
    assert!((least..least + 3.0).contains(&atomic), "a fetch-add takes {atomic} us");
    let sum = takes(&launch(2), |_, a| {
        a.accumulate(s![1024..], 1, &ndarray::Array1::from_elem(1024, 1))?;
        a.fence()
    });
    // The first of two messages is on its way, the agent wakes up and adds what both bring, and answers.
    let least = least + 4096.0 / WIRE + 8192.0 / ADDED;
    assert!((least..least + 3.0).contains(&sum), "an accumulate of 8 KiB takes {sum} us");
}

/// A connection with a rank that computes: one end after the other, or the steps of both ends at once. ARMCI-ODCM gives their times (section
/// III-B2), and measured 820 us and 500 us between two processes (section IV-B, figure 12), a ratio of 0.61.
#[test]
fn steps_of_both_ends_overlap() {
    const FAR: usize = 3;
    let connects = |way| {
        measured(&launch(4).connect(way), |job| {
            let a = GlobalArray::<u64, Ix1>::builder(job, [4]).zeros().create()?;
            // Agreements of four connect 0 with 1 and 2.
            job.sync()?;
            if job.rank() != 0 {
                job.simulation().work(Work::flops(8.8e9));
                return Ok(None);
            }
            job.simulation().work(Work::flops(8.8e6));
            let begin = job.now();
            a.fetch_add([FAR], 1)?;
            Ok(Some(job.now() - begin))
        })
    };
    let (overlapped, serial) = (connects(Connect::Overlapped), connects(Connect::Serial));
    assert!((0.95..1.1).contains(&(serial / 820.0)), "{serial} us one after the other");
    assert!((0.95..1.1).contains(&(overlapped / 500.0)), "{overlapped} us at once");
    assert!(overlapped <= 0.61 * serial, "{overlapped} us of {serial} us");
}

/// A job opens connections as it needs them, and one of few closes some.
#[test]
fn connections_are_made_on_demand_and_bounded() {
    const RANKS: usize = 8;
    let counts = |launch: Launch| {
        let all: Mutex<Vec<(u64, u64)>> = Mutex::default();
        let body = |job: &Job| {
            let a = GlobalArray::<u64, Ix1>::builder(job, [RANKS]).zeros().create()?;
            for step in 1..RANKS {
                a.fetch_add([(job.rank() + step) % RANKS], 1)?;
            }
            job.sync()?;
            assert_eq!(a.get(..)?.sum(), (RANKS * (RANKS - 1)) as u64);
            let counts = job.stats().and_then(|stats| stats.connections()).expect("a network that connects");
            job.sync()?;
            all.lock().unwrap().push((counts.opened, counts.live));
            Ok(())
        };
        launch.simulate(body).unwrap();
        all.into_inner().unwrap()
    };
    for (opened, live) in counts(launch(RANKS)) {
        assert_eq!((opened, live), (RANKS as u64 - 1, RANKS as u64 - 1));
    }
    for (opened, live) in counts(launch(RANKS).connections(2)) {
        assert!(opened >= RANKS as u64 - 1 && live <= 2, "{opened} opened, {live} at the end");
    }
    // Two on each node: all need the agents of the other nodes, and agents are needed by all.
    let mut by_agents = counts(launch(RANKS).ranks_per_node(2));
    by_agents.sort_unstable();
    assert_eq!(by_agents, [[(3, 3); 4], [(6, 6); 4]].concat());
}

/// How long after the beginning of a second of computing rank 0 got what it waits for.
fn waits(ranks: usize, seed: u64, before: impl Fn(&Job, &Shared) -> Result<(), Error> + Sync, wait: Act) -> f64 {
    let launch = launch_of(Machine::new("ib").seed(seed), ranks);
    measured(&launch, |job| {
        let shared = Shared { a: GlobalArray::builder(job, [ranks]).zeros().create()?, signal: Signal::new(job)? };
        // All are connected, and have acknowledged what was sent.
        (1..ranks).try_for_each(|step| shared.a.fetch_add([(job.rank() + step) % ranks], 1).map(|_| ()))?;
        shared.a.fence()?;
        job.sync()?;
        let begin = job.now();
        before(job, &shared)?;
        if job.rank() > 0 {
            job.simulation().work(Work::flops(8.8e9));
            return Ok(None);
        }
        wait(job, &shared)?;
        Ok(Some(job.now() - begin))
    })
}

struct Shared {
    a: GlobalArray<u64, Ix1>,
    signal: Signal,
}

type Act = fn(&Job, &Shared) -> Result<(), Error>;

/// Whatever a rank leaves when it begins to compute, its agent does: records that wait for company are sent, and messages are handled that came
/// together with what the rank itself has waited for.
#[test]
fn agents_do_what_their_ranks_leave() {
    // A message goes one way in 2 us, and an agent that sleeps wakes up in 5. What is left is sent, or handled, without that.
    const ONE_WAY: f64 = 6.0;
    const TWO_WAYS: f64 = 16.0;
    // A millisecond of computing, two ways, and the bytes of some messages.
    const BUSY: f64 = 1011.0;
    for seed in 0..20 {
        let sum = |job: &Job, shared: &Shared| match job.rank() {
            1 => shared.a.accumulate(s![0..1], 100, &ndarray::array![1]),
            _ => Ok(()),
        };
        let taken = waits(2, seed, sum, |_, shared| {
            while shared.a.get(s![0..1])?[0] < 100 {}
            Ok(())
        });
        assert!(taken < ONE_WAY, "seed {seed}: a sum came after {taken} us");
        // Both are waited for by rank 1, which computes behind that.
        let together = |job: &Job, shared: &Shared| match job.rank() {
            0 => shared.signal.at(1, 0).notify(),
            1 => shared.signal.wait_at_least(0, 1),
            _ => shared.a.fetch_add([1], 1).map(|_| ()),
        };
        let taken = waits(3, seed, together, |_, shared| shared.a.fetch_add([1], 1).map(|_| ()));
        assert!(taken < TWO_WAYS, "seed {seed}: a fetch-add came back after {taken} us");
        // Of two puts in a row the second has no completion; the fence asks for one.
        let puts = |job: &Job, shared: &Shared| {
            if job.rank() == 1 {
                shared.a.put(s![2..3], &ndarray::array![1])?;
                shared.a.put(s![2..3], &ndarray::array![2])?;
                job.simulation().work(Work::flops(8.8e6));
                shared.a.fence()?;
            }
            Ok(())
        };
        let taken = waits(3, seed, puts, |job, shared| {
            job.simulation().work(Work::flops(8.8e6));
            shared.a.fetch_add([1], 1).map(|_| ())
        });
        assert!(taken < BUSY, "seed {seed}: a fetch-add came back after {taken} us");
    }
}
