//! Tests of whole jobs.

mod apart;
mod islands;
mod simulated;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ndarray::Ix1;

use super::*;
use crate::{Counter, GlobalArray};

#[test]
fn a_machine_split_into_nodes_stays_one_machine() {
    let whole = std::sync::OnceLock::new();
    let threads = |job: &Job| {
        whole.get_or_init(|| job.threads());
        job.sync()
    };
    Launch::new().ranks(5).network("threads").run(threads).unwrap();
    let body = |job: &Job| {
        let conduit = job.inner.conduit();
        assert_eq!(job.node(), job.rank() / 2);
        assert_eq!([0, 1, 2].map(|node| job.node_ranks(node)), [vec![0, 1], vec![2, 3], vec![4]]);
        for rank in 0..5 {
            assert_eq!(conduit.mapped_segment(rank).is_some(), rank / 2 == job.node(), "{rank} from {}", job.rank());
            assert_eq!(conduit.topology().machine(rank), 0);
        }
        assert_eq!(Some(&job.threads()), whole.get());
        job.sync()
    };
    Launch::new().ranks(5).network("threads").ranks_per_node(2).run(body).unwrap();
}

/// The value of rank 0 and no other, whatever its length, and where ranks are coroutines too.
#[test]
fn a_job_returns_what_rank_0_returns() {
    let body = |job: &Job| {
        let len = if job.rank() == 0 { 300_000 } else { 3 };
        job.sync()?;
        Ok::<_, Error>((job.rank(), vec![0.5; len], Some(String::from("words"))))
    };
    for (network, coroutines) in [("threads", false), ("threads:unmapped", false), ("simulated:loopback", true)] {
        let value = Launch::new().ranks(3).network(network).coroutines(coroutines).run(body).unwrap();
        assert_eq!(value, (0, vec![0.5; 300_000], Some("words".into())), "{network}");
    }
}

#[test]
fn a_value_that_cannot_be_written_is_the_failure_of_rank_0() {
    struct Refuses;
    impl Portable for Refuses {
        fn write(&self, _: &mut dyn std::io::Write) -> std::io::Result<()> {
            Err(std::io::Error::other("no words"))
        }
        fn read(_: &mut dyn std::io::Read) -> std::io::Result<Self> {
            Ok(Refuses)
        }
    }
    let ended = Launch::new().ranks(2).network("threads").run(|job| job.sync().map(|()| Refuses));
    let error = ended.err().expect("a failure").to_string();
    assert!(error.starts_with("rank 0 ") && error.contains("what the body of rank 0 returned: no words"), "{error}");
}

/// Errors of any type, also of one that is bound to its thread.
#[test]
fn the_body_may_fail_in_its_own_way() {
    let ended = Launch::new().ranks(2).network("threads").run(|job| -> Result<(), Box<dyn std::error::Error>> {
        let number: usize = if job.rank() == 1 { "x".parse()? } else { 7 };
        job.broadcast(0, &mut [number])?;
        Ok(())
    });
    let error = ended.expect_err("a failure");
    assert!(matches!(error.downcast_ref(), Some(Error::RankFailed { rank: 1, .. })), "{error}");
    assert!(error.to_string().contains("invalid digit"), "{error}");
}

/// A rank gives memory back while its own counter, which lies in the same region, is changed by another of its threads.
#[test]
fn memory_is_given_back_beside_a_counter_of_the_adapter() {
    for network in ["gemini:soft+hidden", "gemini:relaxed+hidden"] {
        for _ in 0..6 {
            let body = |job: &Job| -> Result<(), Error> {
                drop(GlobalArray::<u64, Ix1>::builder(job, [1 << 21]).zeros().create()?);
                job.sync()?;
                let _filler = GlobalArray::<u64, Ix1>::builder(job, [1 << 20]).zeros().create()?;
                let (counter, done, added) = (Counter::with_owner(job, 0)?, AtomicBool::new(false), AtomicUsize::new(0));
                job.sync()?;
                if job.rank() == 0 {
                    std::thread::scope(|scope| {
                        let adds = scope.spawn(|| {
                            while !done.load(Ordering::Relaxed) {
                                counter.fetch_add(1)?;
                                added.fetch_add(1, Ordering::Relaxed);
                            }
                            Ok::<(), Error>(())
                        });
                        while added.load(Ordering::Relaxed) < 10 {
                            std::thread::yield_now();
                        }
                        let trimmed = job.trim();
                        done.store(true, Ordering::Relaxed);
                        trimmed.and(adds.join().unwrap())
                    })?;
                    assert_eq!(counter.get()?, added.into_inner());
                }
                job.sync()
            };
            Launch::new().network(network).ranks(2).heap(1 << 26).run(body).unwrap_or_else(|error| panic!("{network}: {error}"));
        }
    }
}
