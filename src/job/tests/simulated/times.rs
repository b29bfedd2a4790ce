//! What operations and computing take in virtual time, in closed forms.

use super::*;
use crate::channel::{Channels, from, to};

#[test]
fn a_ping_pong_takes_its_overhead_latency_and_bytes() {
    let machine = MachineFile::new("ping-pong");
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

#[test]
fn an_incast_takes_turns_at_the_receiver() {
    let machine = MachineFile::new("incast");
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
            signal.wait_at_least(0, senders)?;
            Ok(Some(job.now() - BEGIN))
        });
        let bytes = bytes as f64 / 1000.0;
        assert_close(time, MESSAGE + (senders - 1) as f64 * bytes.max(3.0) + bytes);
    }
}

#[test]
fn a_barrier_takes_a_message_for_each_round() {
    let machine = MachineFile::new("barrier");
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
    let machine = MachineFile::new("broadcast");
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
    let machine = MachineFile::new("work");
    let time = measured(&machine.launch(1), |job| {
        let begin = job.now();
        job.simulation().work(Work::flops(2000.0) + Work::bytes(5000.0));
        job.simulation().work(Work::flops(4000.0) + Work::bytes(1000.0));
        Ok(Some(job.now() - begin))
    });
    assert_close(time, 9.0);
}

#[test]
fn computing_takes_what_is_said_or_measured_or_nothing() {
    let machine = MachineFile::new("computing");
    let spent = |computing| {
        measured(&over(machine.model().computing(computing), 1), |job| {
            let begin = job.now();
            job.simulation().work(Work::flops(5e6));
            std::hint::black_box((0..3_000_000_u64).map(|k| std::hint::black_box(k) % 7).sum::<u64>());
            Ok(Some(job.now() - begin))
        })
    };
    assert_close(spent(Computing::Declared), 5000.0);
    assert!(spent(Computing::Zero) < 0.1);
    let (once, much) = (spent(Computing::Measured(1.0)), spent(Computing::Measured(1000.0)));
    // Runs differ, but not by that much.
    assert!(once > 100.0 && much > 20.0 * once, "{once} and {much}");
    for factor in [0.0, -1.0, 1e6, f64::NAN] {
        let launch = over(machine.model().computing(Computing::Measured(factor)), 1);
        let text = launch.simulate(|_| Ok(())).unwrap_err().to_string();
        assert!(text.contains("GA_COMPUTING"), "{text}");
    }
}

/// A window that has room for all that is on its way hides every latency but the last.
#[test]
fn a_window_is_full_only_while_it_is() {
    let lines = [("gap_us = 3", "gap_us = 1"), ("copied_bytes = 1000000", "copied_bytes = 0"), ("window = 1000", "window = 30")];
    let machine = MachineFile::but("window", &lines);
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

/// Where a network keeps no order, transfers of a scope wait for what this rank put before, but not for each other.
#[test]
fn transfers_of_a_scope_are_ordered_as_one() {
    let lines = [("gap_us = 3", "gap_us = 1"), ("ordered = true", "ordered = false")];
    let machine = MachineFile::but("scope", &lines);
    let (puts, data) = (50, [1; 8]);
    let time = |waits_before: bool| {
        measured(&machine.launch(2), |job| {
            let a = GlobalArray::<u8, Ix1>::builder(job, [2 * data.len()]).zeros().create()?;
            begin(job);
            if job.rank() == 1 {
                return Ok(None);
            }
            let put = || a.put(s![data.len()..], ndarray::aview1(&data));
            if waits_before {
                put()?;
            }
            job.scope(|scope| (0..puts).try_for_each(|_| scope.put(&a, s![data.len()..], ndarray::aview1(&data))))?;
            // Behind the scope.
            put()?;
            Ok(Some(job.now() - BEGIN))
        })
    };
    let there_and_back = 2.0 * 21.0;
    let scope_and_put = f64::from(puts) * 2.0 + there_and_back + 2.0;
    assert_close(time(false), scope_and_put);
    assert_close(time(true), 2.0 + there_and_back + scope_and_put);
}

/// A machine whose processors move the messages.
fn driven(test: &str) -> MachineFile {
    let driven = "[adapter.processor]\nreceive_overhead_us = 50\nprogress_delay_us = 30\n[network]";
    MachineFile::but(test, &[("gap_us = 3", "gap_us = 0"), ("[network]", driven)])
}

/// There and back: each time an overhead or none, the way, the processor that receives.
const DRIVEN_GET: f64 = 2.0 + 2.0 * (21.0 + 50.0);

#[test]
fn a_processor_that_moves_messages_computes_less() {
    const GETS: u32 = 5;
    let machine = driven("driven");
    let time = |of: usize| {
        measured(&machine.launch(2), |job| {
            let a = GlobalArray::<u8, Ix1>::builder(job, [2]).zeros().create()?;
            begin(job);
            if job.rank() == 1 {
                // A millisecond.
                job.simulation().work(Work::flops(1e6));
                // The next call that may wait knows what came meanwhile.
                a.get(s![1..2])?;
            } else {
                (0..GETS).try_for_each(|_| a.get(s![1..2]).map(|_| ()))?;
            }
            Ok((job.rank() == of).then(|| job.now() - BEGIN))
        })
    };
    assert_close(time(0), f64::from(GETS) * (DRIVEN_GET + 30.0));
    // And the word that rank 0 is at the end.
    assert_close(time(1), 1000.0 + f64::from(GETS + 1) * 50.0);
}

/// The data too.
#[test]
fn a_processor_carries_out_a_strided_block_as_one_message() {
    let machine = driven("blocks");
    let time = measured(&machine.launch(2), |job| {
        let a = GlobalArray::<u8, Ix2>::builder(job, [20, 10]).grid([2, 1]).fill(1).create()?;
        begin(job);
        if job.rank() == 1 {
            return Ok(None);
        }
        let block = Array2::from_shape_fn([7, 3], |(row, column)| (10 * row + column) as u8);
        a.put(s![12..19, 4..7], &block)?;
        a.fence()?;
        let start = job.now();
        let read = a.get(s![11..20, 3..8])?;
        let taken = job.now() - start;
        assert_eq!(read.slice(s![1..8, 1..4]), block);
        let around = read.iter().map(|&byte| usize::from(byte)).sum::<usize>()
            - block.iter().map(|&byte| usize::from(byte)).sum::<usize>();
        assert_eq!(around, 9 * 5 - 7 * 3);
        Ok(Some(taken))
    });
    assert_close(time, DRIVEN_GET);
}

#[test]
fn the_clock_goes_on_while_a_rank_reads_it() {
    let body = |job: &Job| {
        let end = job.now() + Duration::from_micros(5);
        while job.now() < end {}
        job.sync()
    };
    Launch::simulated(Machine::new("gemini-ports")).ranks(2).simulate(body).unwrap();
}

/// An array without contents takes the time of one with, and no memory; what lies there later has contents.
#[test]
fn hollow_arrays_take_time_but_no_memory() {
    let machine = MachineFile::new("hollow");
    let n = 1_000_000_usize;
    let time = |computing, hollow: bool| {
        let launch = over(machine.model().computing(computing), 2).heap(1 << 30);
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
                assert_eq!(back == data, !(hollow && job.simulation().skips()));
                *taken.lock().unwrap() = (job.now() - begin, committed);
            }
            job.sync()?;
            a.owner_epoch(|part| assert!(part.iter().all(|&value| (hollow && job.simulation().skips()) == (value == 0))))?;
            a.destroy()?;
            // What a group needs for itself has contents, also where an array had none.
            let pair = job.subgroup(&[0, 1])?;
            GlobalArray::<u64, Ix1>::builder(&pair, [100_000]).hollow().create()?.destroy()?;
            let other = job.subgroup(&[1, 0])?;
            assert_eq!(other.all_reduce_one(1 + job.rank() as u64, ops::sum)?, 3);
            has_contents(job, n)
        };
        launch.run(body).unwrap();
        taken.into_inner().unwrap()
    };
    takes_time_but_no_memory(n, time);
}

/// An array at the place of what had no contents.
fn has_contents(job: &Job, n: usize) -> Result<(), Error> {
    let (a, other) = (GlobalArray::<u8, Ix1>::builder(job, [2 * n]).fill(3).create()?, 1 - job.rank());
    a.put(s![n * other..n * (1 + other)], &ndarray::Array1::from_elem(n, 5))?;
    job.sync()?;
    assert!(a.get(..)?.iter().all(|&value| value == 5));
    job.sync()
}

/// The time and the memory of what is hollow or not.
fn takes_time_but_no_memory(n: usize, time: impl Fn(Computing, bool) -> (Duration, u64)) {
    let (full, hollow) = (time(Computing::Declared, true), time(Computing::Skip, true));
    assert_eq!(full.0, hollow.0);
    assert!(full.1 >= n as u64 && hollow.1 < n as u64, "{full:?}, {hollow:?}");
    assert_eq!(time(Computing::Skip, false).1, full.1);
}

/// Messages of hollow channels take the time of others and bring their lengths, and no memory is used for them.
#[test]
fn hollow_channels_take_time_but_no_memory() {
    let machine = MachineFile::new("hollow_channels");
    let n = 1_000_000_usize;
    let time = |computing, hollow: bool| {
        let launch = over(machine.model().computing(computing), 2).heap(1 << 30);
        let taken = Mutex::new((Duration::ZERO, 0));
        let body = |job: &Job| {
            let channels = if hollow { Channels::new(job).hollow() } else { Channels::new(job) };
            let other = 1 - job.rank();
            let ([mut out], [mut inlet]) = channels.open([to::<u8>(other, 0, n)], [from(other, 0)])?;
            job.sync()?;
            let committed = job.memory().committed;
            let begin = job.now();
            for round in 0..40 {
                let len = n / 40 * round;
                out.fill(len, |slot| {
                    if !job.simulation().skips() {
                        slot.fill(3)
                    }
                })?;
                let arrived = inlet.wait()?;
                assert_eq!(arrived.len(), len);
                assert!(arrived.iter().take(10).all(|&value| (value == 3) != job.simulation().skips()));
            }
            if job.rank() == 0 {
                *taken.lock().unwrap() = (job.now() - begin, committed);
            }
            drop((out, inlet));
            has_contents(job, n)
        };
        launch.run(body).unwrap();
        taken.into_inner().unwrap()
    };
    takes_time_but_no_memory(n, time);
}

/// So do algebra and updates of ghost cells.
#[test]
fn what_computes_on_hollow_arrays_leaves_them_alone() {
    let machine = MachineFile::new("untouched");
    let n = 10_000_usize;
    let time = |computing| {
        let taken = Mutex::new(Duration::ZERO);
        let body = |job: &Job| {
            let mut a = GlobalArray::<u8, Ix1>::builder(job, [2 * n]).ghosts([n / 2]).hollow().create()?;
            let mut b = GlobalArray::<u8, Ix1>::builder(job, [2 * n]).hollow().create()?;
            job.sync()?;
            let begin = job.now();
            b.fill(7)?;
            b.scale(3)?;
            a.fill(21)?;
            a.update_ghosts()?;
            *taken.lock().unwrap() = job.now() - begin;
            let expected = if job.simulation().skips() { 0 } else { 21 };
            b.owner_epoch(|part| assert!(part.iter().all(|&value| value == expected)))?;
            job.epoch(a.ghosts_mut(), |part| {
                assert_eq!(part.view().len(), 2 * n);
                assert!(part.view().iter().all(|&value| value == expected));
            })
        };
        over(machine.model().computing(computing), 2).run(body).unwrap();
        taken.into_inner().unwrap()
    };
    assert_eq!(time(Computing::Declared), time(Computing::Skip));
}

/// Several gets inside a node take as long as one of all that they bring, or a little longer.
#[test]
fn a_rank_copies_from_its_node_one_after_the_other() {
    let n = 1 << 20;
    let time = |pieces: usize| {
        let taken = Mutex::new(Duration::ZERO);
        let body = |job: &Job| {
            let a = GlobalArray::<f64, Ix1>::builder(job, [2 * n]).zeros().create()?;
            job.sync()?;
            if job.rank() == 0 {
                let mut to = vec![0.0; n];
                let begin = job.now();
                job.scope(|scope| {
                    let mut at = n;
                    for part in to.chunks_mut(n / pieces) {
                        let end = at + part.len();
                        scope.get_into(&a, s![at..end], ndarray::ArrayViewMut1::from(part))?;
                        at = end;
                    }
                    Ok::<(), Error>(())
                })?;
                *taken.lock().unwrap() = job.now() - begin;
            }
            job.sync()
        };
        Launch::simulated(Machine::new("infiniband")).ranks(2).run(body).unwrap();
        taken.into_inner().unwrap()
    };
    let (one, sixteen) = (time(1), time(16));
    // 8 MiB at 8 GB/s.
    assert!(
        one >= Duration::from_millis(1) && sixteen >= one && sixteen < one + Duration::from_micros(10),
        "{one:?}, {sixteen:?}"
    );
}
