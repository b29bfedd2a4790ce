//! Programs whose ranks wait for each other, and some that only look so.

use std::time::Duration;

use global_arrays::{
    channel::{from, to, wait_any},
    prelude::*,
};

use crate::{
    programs::{CULPRIT, compute},
    runner,
};

pub(crate) const BODIES: &[(&str, crate::programs::Body)] = &[
    ("wait_in_different_groups", |job| {
        let pair = pair(job, [0, 1])?;
        if job.rank() == CULPRIT { pair.expect("a member").barrier() } else { job.barrier() }
    }),
    ("wait_in_different_transfers", |job| {
        let pair = pair(job, [0, 1])?;
        match pair {
            Some(pair) if job.rank() == CULPRIT => pair.broadcast(0, &mut [0_u8]),
            _ => GlobalArray::<f64, Ix1>::builder(job, [10]).create().map(|_| ()),
        }
    }),
    ("wait_in_a_ring_of_groups", |job| {
        let pairs = [pair(job, [0, 1])?, pair(job, [1, 2])?, pair(job, [2, 0])?];
        pairs[job.rank()].as_ref().expect("a member").sync()
    }),
    ("wait_in_creations_of_groups", |job| match job.rank() {
        0 => job.subgroup(&[0, 1]).map(drop),
        1 => job.subgroup(&[1, 0]).map(drop),
        _ => job.sync(),
    }),
    // Both parents have all ranks. The groups have the same ranks and are each the first of their parent, but not the same group.
    ("wait_in_groups_of_different_parents", |job| {
        let parents = [job.subgroup(&[0, 1, 2])?, job.subgroup(&[2, 1, 0])?];
        if job.rank() == 2 {
            return job.sync();
        }
        let make = |parent: &Group| {
            let of = |rank: usize| parent.ranks().position(|r| r == rank).expect("a member");
            parent.subgroup(&[of(0), of(1)])
        };
        let first = make(&parents[job.rank()])?;
        let second = make(&parents[1 - job.rank()])?;
        first.sync()?;
        second.sync()?;
        job.sync()
    }),
    ("wait_on_channels_in_a_ring", |job| {
        let (left, right) = ((job.rank() + job.size() - 1) % job.size(), (job.rank() + 1) % job.size());
        let ([mut out], [mut inlet]) = job.channels([to(right, 6, 1)], [from(left, 6)])?;
        inlet.wait()?;
        out.put(&[1.0])
    }),
    ("put_on_full_channels", |job| {
        let (left, right) = ((job.rank() + job.size() - 1) % job.size(), (job.rank() + 1) % job.size());
        let ([mut out], [mut inlet]) = job.channels([to(right, 8, 1)], [from(left, 8)])?;
        (0..3).try_for_each(|k| out.put(&[k]))?;
        inlet.wait().map(drop)
    }),
    // Whoever waits for any of several is in a deadlock when all ranks wait.
    ("wait_for_any_of_several_channels", |job| {
        let others = || (0..job.size()).filter(|&rank| rank != job.rank());
        let (mut out, mut inlets) = job.channels::<u8, _, _>(
            others().map(|rank| to(rank, 0, 0)).collect::<Vec<_>>(),
            others().map(|rank| from(rank, 0)).collect::<Vec<_>>(),
        )?;
        wait_any(&mut inlets)?;
        out[0].put(&[0; 0])
    }),
    ("returns_while_another_waits_on_a_channel", |job| {
        if job.rank() > CULPRIT {
            return job.channels::<u8, _, _>([], []).map(|([], [])| ());
        }
        let other = 1 - job.rank();
        let ([_out], [mut inlet]) = job.channels([to::<u8>(other, 3, 1)], [from(other, 3)])?;
        if job.rank() == 0 { inlet.wait().map(drop) } else { Ok(()) }
    }),
    ("returns_while_another_waits_for_a_signal", |job| {
        let signal = Signal::new(job)?;
        if job.rank() == 0 { signal.wait_at_least(0, 1) } else { Ok(()) }
    }),
    ("returns_while_others_wait_for_a_signal", |job| {
        let signal = Signal::new(job)?;
        if job.rank() == CULPRIT { Ok(()) } else { signal.wait_at_least(0, 1) }
    }),
    ("waits_for_a_lock_whose_holder_waits", |job| {
        let locks = Locks::with_count(job, 1)?;
        let held = if job.rank() == CULPRIT { Some(locks.lock(0)?) } else { None };
        job.barrier()?;
        if job.rank() == 0 {
            locks.lock(0)?.unlock()?;
        }
        job.barrier()?;
        held.map_or(Ok(()), |held| held.unlock())
    }),
    ("takes_locks_in_opposite_orders", |job| {
        let locks = Locks::with_count(job, 8)?;
        let Some(pair) = pair(job, [0, 1])? else { return job.sync() };
        let own = [3, 5][job.rank()];
        let held = locks.lock(own)?;
        pair.barrier()?;
        locks.lock(8 - own)?.unlock()?;
        held.unlock()
    }),
    ("takes_locks_of_two_sets_in_opposite_orders", |job| {
        let all = Locks::with_count(job, 2)?;
        let Some(pair) = pair(job, [0, 1])? else { return job.sync() };
        let two = Locks::with_count(&pair, 3)?;
        let order = if job.rank() == 0 { [(&all, 1), (&two, 2)] } else { [(&two, 2), (&all, 1)] };
        let held = order[0].0.lock(order[0].1)?;
        pair.barrier()?;
        order[1].0.lock(order[1].1)?.unlock()?;
        held.unlock()
    }),
    ("returns_with_a_lock_that_another_waits_for", |job| {
        let locks = Locks::with_count(job, 1)?;
        if job.rank() == CULPRIT {
            std::mem::forget(locks.lock(0)?);
        }
        job.barrier()?;
        if job.rank() == 0 { locks.lock(0)?.unlock() } else { Ok(()) }
    }),
    ("returns_with_a_lock_that_others_wait_for", |job| {
        let locks = Locks::with_count(job, 1)?;
        if job.rank() == CULPRIT {
            std::mem::forget(locks.lock(0)?);
        }
        job.barrier()?;
        if job.rank() == CULPRIT { Ok(()) } else { locks.lock(0)?.unlock() }
    }),
    ("takes_a_lock_twice", |job| {
        let locks = Locks::with_count(job, 1)?;
        if job.rank() == CULPRIT {
            let _held = locks.lock(0)?;
            locks.lock(0)?.unlock()?;
        }
        Ok(())
    }),
    // Nothing is published by a process with a thread that might raise the signal.
    ("returns_while_a_rank_with_threads_waits_for_a_signal", |job| {
        let signal = Signal::new(job)?;
        if job.rank() != 0 {
            return Ok(());
        }
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
        signal.wait_at_least(0, 1)
    }),
    // Not failures.
    ("another_thread_holds_the_lock", |job| {
        let locks = Locks::with_count(job, 1)?;
        if job.rank() != CULPRIT {
            return Ok(());
        }
        let held = locks.lock(0)?;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                compute(4.0);
                held.unlock()
            });
            locks.lock(0)?.unlock()?;
            other.join().expect("no panic")
        })
    }),
    ("computes_while_others_wait_in_groups", |job| {
        let pair = pair(job, [1, 2])?;
        let signal = Signal::new(job)?;
        match job.rank() {
            0 => signal.wait_at_least(0, 1)?,
            CULPRIT => {
                compute(3.0);
                signal.at(0, 0).notify()?;
                std::thread::sleep(Duration::from_secs(3));
            }
            _ => {}
        }
        if let Some(pair) = pair {
            pair.barrier()?;
        }
        job.barrier()
    }),
    ("a_second_thread_comes_late", |job| {
        let pair = pair(job, [0, 1])?;
        if job.rank() != CULPRIT {
            job.barrier()?;
            return pair.map_or(Ok(()), |pair| pair.barrier());
        }
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                compute(4.5);
                job.barrier()
            });
            pair.expect("a member").barrier()?;
            other.join().expect("no panic")
        })
    }),
    // Ranks 0 and 2 wait for rank 1, which computes for longer than any search for a deadlock takes, and then for each other.
    ("a_channel_of_a_slow_rank", |job| {
        let (left, right) = ((job.rank() + job.size() - 1) % job.size(), (job.rank() + 1) % job.size());
        let ([mut out], [mut inlet]) = job.channels([to(right, 6, 1)], [from(left, 6)])?;
        if job.rank() == CULPRIT {
            compute(if runner::long() { 31.0 } else { 12.0 });
            out.put(&[left])?;
        }
        let came = inlet.wait()?[0];
        if job.rank() != CULPRIT {
            out.put(&[came])?;
        }
        job.sync()
    }),
    // Rank 0 publishes that it waits for rank 1 and is stopped. Rank 1 comes, goes on, and waits for rank 0 elsewhere.
    ("a_stopped_rank_is_late", |job| {
        let pair = pair(job, [0, 1])?;
        let processes = job.all_gather(&[std::process::id()])?;
        let signal = |number: libc::c_int| {
            let process = libc::pid_t::try_from(processes[0]).expect("a process number");
            // SAFETY: a system call without pointers.
            assert_eq!(unsafe { libc::kill(process, number) }, 0);
        };
        match job.rank() {
            0 => pair.expect("a member").barrier()?,
            CULPRIT => {
                compute(2.0);
                signal(libc::SIGSTOP);
                pair.expect("a member").barrier()?;
            }
            _ => {
                compute(6.5);
                signal(libc::SIGCONT);
            }
        }
        job.barrier()
    }),
];

/// With a limit of one second. A job that a late rank ended is followed by one that goes on without the group of late members.
pub(crate) fn after_a_timeout() -> Result<(), Error> {
    let sleep = |seconds: f64| std::thread::sleep(Duration::from_secs_f64(seconds));
    let late = |job: &Job| {
        sleep(if job.rank() == CULPRIT { 1.5 } else { 0.0 });
        job.sync()
    };
    let error = global_arrays::run(late).expect_err("a timeout").to_string();
    assert!(error.contains("GA_TIMEOUT") && error.contains("missing: rank 1 in computation"), "{error}");

    global_arrays::run(|job: &Job| {
        let old = pair(job, [0, 1])?;
        let signal = Signal::new(job)?;
        job.barrier()?;
        match &old {
            Some(old) if job.rank() == 0 => {
                let waits = [signal.wait_at_least(0, 1), old.barrier()];
                assert!(waits.iter().all(|wait| matches!(wait, Err(Error::Timeout { .. }))), "{waits:?}");
                let again = old.barrier();
                assert!(matches!(again, Err(Error::GroupFailed { .. })), "{again:?}");
            }
            _ => sleep(2.2),
        }
        drop(old);
        job.barrier()?;
        if job.rank() == CULPRIT {
            signal.at(0, 0).notify()?;
        }
        if job.rank() == 0 {
            signal.wait_at_least(0, 1)?;
        }
        // In the memory of the old group, where rank 0 has come to a meeting and has sent a line.
        if let Some(new) = pair(job, [0, 1])? {
            for round in 0..3 {
                sleep(if job.rank() == CULPRIT { 0.2 } else { 0.0 });
                assert_eq!(new.all_gather(&[job.rank() + round])?, [round, 1 + round]);
            }
        }
        let a = GlobalArray::<u64, Ix1>::builder(job, [100]).fill(1).create()?;
        assert_eq!(a.get(..)?.sum(), 100);
        job.sync()
    })
}

fn pair(job: &Job, ranks: [usize; 2]) -> Result<Option<Group>, Error> {
    if ranks.contains(&job.rank()) { job.subgroup(&ranks).map(Some) } else { Ok(None) }
}
