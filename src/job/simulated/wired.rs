//! The code of a network in virtual time (`simulated:ib`): what it takes, and who does it.

use super::*;

/// The machine's: overhead, latency, a switch, in microseconds; and what the agent of a rank that computes needs to wake up.
const OVERHEAD: f64 = 0.3;
const WAY: f64 = 1.58 + 0.14;
const WAKE_UP: f64 = 5.0;

fn launch(ranks: usize) -> Launch {
    Launch::new().network("simulated:ib").ranks(ranks).ranks_per_node(1).heap(1 << 24).stats(true)
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
            job.work(Work::flops(8.8e9));
            return Ok(None);
        }
        job.work(Work::flops(8.8e6));
        // An adapter passes the peer's processor when that has acknowledged what was sent to it.
        a.put(s![1024..1025], &ndarray::Array1::from_elem(1, 7))?;
        a.fence()?;
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
}

/// A connection with a rank that computes: one end after the other, or the steps of both ends at once. ARMCI-ODCM gives their times (section
/// III-B2), and measured 820 us and 500 us between two processes (section IV-B, figure 12), a ratio of 0.61.
#[test]
fn steps_of_both_ends_overlap() {
    const FAR: usize = 3;
    let connects = |way: &str| {
        measured(&launch(4).connect(way), |job| {
            let a = GlobalArray::<u64, Ix1>::builder(job, [4]).zeros().create()?;
            // Agreements of four connect 0 with 1 and 2.
            job.sync()?;
            if job.rank() != 0 {
                job.work(Work::flops(8.8e9));
                return Ok(None);
            }
            job.work(Work::flops(8.8e6));
            let begin = job.now();
            a.fetch_add([FAR], 1)?;
            Ok(Some(job.now() - begin))
        })
    };
    let (overlapped, serial) = (connects("overlapped"), connects("serial"));
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
