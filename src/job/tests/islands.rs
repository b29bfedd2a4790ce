//! Jobs in which some ranks share memory and others do not: where several paths are possible, all use the same.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use bytemuck::{Pod, Zeroable};
use ndarray::{Array1, Array2, Ix1, Ix2, Zip, s};
use num_complex::Complex;

use crate::{
    Additive, AtomicInteger, Counter, Error, GlobalArray, Group, Locks, Number, Signal,
    comm::testing::{
        islands::{Adapter, Islands},
        post::Post,
    },
    distribution::Order,
    job::{Job, Launch},
    ops,
};

/// How long the ranks work at once: a processor's operations fall into the middle of many of the adapter's.
const TOGETHER: Duration = Duration::from_millis(100);

const RANKS: usize = 4;

/// Four ranks on two islands.
fn on_islands(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    on_coherent_islands(0, body);
}

/// The same; words of up to `coherent` bytes may be changed by processors and adapters.
fn on_coherent_islands(coherent: usize, body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    let launch = Launch::new().ranks(RANKS).timeout(30.0);
    let adapter = Adapter { signals: false, coherent, ordered: false, island: 2, crowded: true };
    launch.run_over(|member| Islands::conduit(member, adapter), body).unwrap();
}

/// Some ranks over every adapter, on islands of two, and on those of three that meet without a counter.
fn on_adapters(ranks: usize, body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for (signals, ordered) in [(false, false), (false, true), (true, false), (true, true)] {
        for (island, crowded) in [(2, true), (3, false)] {
            let adapter = Adapter { signals, coherent: 0, ordered, island, crowded };
            let launch = Launch::new().ranks(ranks).timeout(30.0);
            launch.run_over(|member| Islands::conduit(member, adapter), &body).unwrap();
        }
    }
}

/// Members of any order on any islands come to the same words, again and again.
#[test]
fn agreements_cross_islands() {
    for ranks in [1, 2, 3, 4, 5, 7] {
        on_adapters(ranks, |job| {
            // A leader in the middle, nodes torn apart in the order, nodes of one member.
            let scattered = job.split_ordered(0, (job.rank() * 3 % 7) as isize)?;
            let odd = job.split(usize::from(job.rank() % 3 == 0))?;
            let groups: [&Group; 3] = [job, &scattered, &odd];
            for round in 0..40_u64 {
                for group in groups {
                    let mine = 1 << group.member();
                    let agreed = group.agree_values(crate::sync::Op::Barrier, 0, mine, mine, mine + round)?;
                    let all = (1 << group.size()) - 1;
                    assert_eq!((agreed.sum, agreed.union, agreed.max), (all, all, (1 << (group.size() - 1)) + round));
                }
            }
            job.sync()
        });
    }
}

/// After a barrier a rank sees what every member had stored before it, on its island and, after a fence, elsewhere.
#[test]
fn barriers_wait_for_everybody() {
    on_adapters(7, |job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [7]).zeros().create()?;
        let order = job.split_ordered(0, -(job.rank() as isize))?;
        for round in 1..20 {
            if round as usize % 7 == job.rank() {
                std::thread::sleep(Duration::from_millis(1));
            }
            a.store([job.rank()], round)?;
            if round % 2 == 0 {
                job.sync()?
            } else {
                order.sync()?
            };
            assert_eq!(a.get(..)?.to_vec(), [round; 7]);
            job.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn collectives_cross_islands() {
    for ranks in [2, 3, 5, 7] {
        on_adapters(ranks, |job| {
            let scattered = job.split_ordered(0, (job.rank() * 3 % 7) as isize)?;
            for group in [job as &Group, &scattered] {
                for root in 0..group.size() {
                    let mut data = [0; 1000];
                    if group.member() == root {
                        data = std::array::from_fn(|k| (k * ranks + root) as u64);
                    }
                    group.broadcast(root, &mut data)?;
                    assert!(data.iter().enumerate().all(|(k, &x)| x == (k * ranks + root) as u64), "root {root}");
                    let mut sums = [group.member() as u64 + root as u64; 100];
                    group.all_reduce(&mut sums, ops::sum)?;
                    assert_eq!(sums, [((ranks - 1) * ranks / 2 + ranks * root) as u64; 100]);
                }
                let all = group.all_gather(&[group.member(); 10])?;
                assert!(all.iter().enumerate().all(|(k, &member)| member == k / 10));
            }
            job.sync()
        });
    }
}

#[test]
fn data_come_before_their_signal() {
    on_adapters(4, |job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [4 * 512]).zeros().create()?;
        let signals = Signal::with_count(job, 2)?;
        let (next, before) = ((job.rank() + 1) % 4, (job.rank() + 3) % 4);
        for round in 1..=50_u64 {
            a.put_signal(s![512 * next..512 * (next + 1)], &Array1::from_elem(512, round), signals.at(next, 0))?;
            signals.wait_at_least(0, round as usize)?;
            let here = a.get(s![512 * job.rank()..512 * (job.rank() + 1)])?;
            assert!(here.iter().all(|&x| x == round), "{here}");
            // What came has been read.
            signals.at(before, 1).notify()?;
            signals.wait_at_least(1, round as usize)?;
        }
        // All raise the same one.
        job.sync()?;
        (0..25).try_for_each(|_| (0..4).try_for_each(|rank| signals.at(rank, 1).notify()))?;
        signals.wait_at_least(1, 150)?;
        job.sync()?;
        assert_eq!(signals.count(1)?, 150);
        Ok(())
    });
}

/// A signal comes behind what its rank put before, also where nobody waits for the puts and signals overtake them.
#[test]
fn forgotten_puts_come_before_a_signal() {
    on_adapters(4, |job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [4 * 64]).zeros().create()?;
        let signal = Signal::new(job)?;
        let next = (job.rank() + 1) % 4;
        for round in 1..=10_u64 {
            for at in (64 * next..64 * (next + 1)).step_by(8) {
                std::mem::forget(a.put_nb(at..at + 8, Array1::from_elem(8, round))?);
            }
            signal.at(next, 0).notify()?;
            signal.wait_at_least(0, round as usize)?;
            let here = a.get(64 * job.rank()..64 * (job.rank() + 1))?;
            assert!(here.iter().all(|&x| x == round), "round {round}: {here}");
            job.barrier()?;
        }
        job.sync()
    });
}

/// The same with a post.
fn with_post(body: impl Fn(&Job, &Post) -> Result<(), Error> + Sync) {
    let (launch, post) = (Launch::new().ranks(RANKS).timeout(30.0), Post::new(RANKS));
    launch.run_over(|member| Islands::with_post(member, post.clone()), |job| body(job, &post)).unwrap();
}

/// Repeats a step on all ranks for some time; returns how often all of them together did it.
fn together(job: &Job, mut step: impl FnMut(usize) -> Result<(), Error>) -> Result<usize, Error> {
    job.sync()?;
    let (start, mut times) = (Instant::now(), 0);
    while start.elapsed() < TOGETHER {
        step(times)?;
        times += 1;
    }
    job.sync()?;
    job.all_reduce_one(times as u64, ops::sum).map(|times| times as usize)
}

#[test]
fn counters_lose_nothing() {
    on_islands(|job| {
        let counter = Counter::new(job)?;
        let times = together(job, |_| counter.fetch_add(1).map(|_| ()))?;
        assert_eq!(counter.get()?, times);
        job.sync()
    });
}

#[test]
fn elements_lose_nothing() {
    for coherent in [0, 4] {
        on_coherent_islands(coherent, elements_of::<i32>);
        on_coherent_islands(coherent, elements_of::<i64>);
    }
}

fn elements_of<T: AtomicInteger>(job: &Job) -> Result<(), Error> {
    let number = |k: usize| T::from_bits(k as u64);
    let a = GlobalArray::<T, Ix1>::builder(job, [8]).zeros().create()?;
    let times = together(job, |_| a.fetch_add([1], number(1)).map(|_| ()))?;
    assert_eq!(a.load([1])?, number(times));
    together(job, |k| {
        if job.rank() > 0 {
            return a.fetch_add([0], number(0)).map(|_| ());
        }
        a.store([0], number(k))?;
        assert_eq!(a.load([0])?, number(k), "a store that an atomic operation undid");
        Ok(())
    })?;
    job.sync()
}

#[test]
fn locks_exclude() {
    on_islands(|job| {
        let locks = Locks::with_count(job, 1)?;
        let a = GlobalArray::<f64, Ix1>::builder(job, [4]).zeros().create()?;
        let times = together(job, |_| {
            let guard = locks.lock(0)?;
            a.store([3], a.load([3])? + 1.0)?;
            guard.unlock()
        })?;
        assert_eq!(a.load([3])?, times as f64);
        job.sync()
    });
}

/// A number that takes its time to be added: who adds beside the lock is seen.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
struct Slow(i64);

impl Additive for Slow {
    type Scale = i64;
    const ZERO: Self = Slow(0);
    fn plus(self, other: Self) -> Self {
        std::thread::sleep(Duration::from_micros(20));
        Slow(self.0 + other.0)
    }
    fn scaled(self, by: i64) -> Self {
        Slow(self.0 * by)
    }
}

#[test]
fn accumulates_of_the_world_and_of_an_island_do_not_meet() {
    on_islands(accumulates_that_must_not_meet);
    with_post(|job, post| {
        accumulates_that_must_not_meet(job)?;
        assert!(post.added.load(Ordering::Relaxed) > 0);
        Ok(())
    });
}

fn accumulates_that_must_not_meet(job: &Job) -> Result<(), Error> {
    let island = job.split(job.rank() / 2)?;
    let wide = GlobalArray::<i64, Ix1>::builder(job, [8]).zeros().create()?;
    let near = GlobalArray::<Slow, Ix1>::builder(&island, [4]).zeros().create()?;
    let (ones, slow) = (Array1::ones(8), Array1::from_elem(4, Slow(1)));
    let mut mine = 0;
    let times = together(job, |_| {
        wide.accumulate(.., 1, &ones)?;
        wide.scatter_accumulate(&[7, 0, 7], 1, &[1, 1, 1])?;
        mine += 20;
        (0..20).try_for_each(|_| near.accumulate(.., 1, &slow))
    })?;
    let all = times as i64;
    assert_eq!(wide.get(..)?.to_vec(), [2 * all, all, all, all, all, all, all, 3 * all]);
    let pair = island.all_reduce_one(mine, ops::sum)?;
    assert!(near.get(..)?.iter().all(|&sum| sum == Slow(pair)));
    job.sync()
}

#[test]
fn a_rank_reads_what_it_scattered() {
    on_islands(|job| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [32]).zeros().create()?;
        let mine: Vec<usize> = (0..32).filter(|k| k % job.size() == job.rank()).collect();
        let values: Vec<f64> = mine.iter().map(|&k| k as f64 + 1.0).collect();
        a.scatter(&mine, &values)?;
        let mut got = vec![0.0; mine.len()];
        a.gather(&mine, &mut got)?;
        assert_eq!(got, values);
        for (&k, &value) in mine.iter().zip(&values) {
            assert_eq!(a.load([k])?, value);
        }
        job.sync()
    });
}

/// The others of an island add to rank 0 by the processor while ranks 2 and 3 send accumulates there, some thousands each.
/// `near` is what ranks 0 and 1 do until those have ended; it returns how often it added.
fn beside_messages(
    job: &Job,
    post: &Post,
    senders: &AtomicUsize,
    near: impl Fn(&GlobalArray<f64, Ix1>) -> Result<usize, Error>,
) -> Result<(), Error> {
    const PART: usize = 32;
    const MESSAGES: usize = 3000;
    let a = GlobalArray::<f64, Ix1>::builder(job, [RANKS * PART]).zeros().create()?;
    assert_eq!(a.owner([PART - 1])?, 0);
    let mut times = 0;
    if job.rank() < 2 {
        while senders.load(Ordering::Acquire) < 2 {
            times += near(&a)?;
        }
    } else {
        for _ in 0..MESSAGES {
            times += 1;
            let _on_its_way = a.accumulate_nb(0..PART, 1.0, Array1::ones(PART))?;
        }
        a.fence()?;
        senders.fetch_add(1, Ordering::Release);
    }
    job.sync()?;
    let times = job.all_reduce_one(times as u64, ops::sum)?;
    assert_eq!(a.get(0..PART)?, Array1::from_elem(PART, times as f64));
    assert_eq!(post.added.load(Ordering::Relaxed), 2 * MESSAGES);
    job.sync()
}

#[test]
fn processors_and_owners_lose_nothing() {
    let senders = AtomicUsize::new(0);
    with_post(|job, post| {
        let (list, ones) = (Vec::from_iter(0..32), [1.0; 32]);
        beside_messages(job, post, &senders, |a| {
            if job.rank() == 0 {
                // By the network: rank 0 polls, and adds what arrived.
                return a.load([a.len() - 1]).map(|_| 0);
            }
            for _ in 0..20 {
                a.accumulate(0..32, 1.0, &ones)?;
                a.scatter_accumulate(&list, 1.0, &ones)?;
                job.scope(|scope| scope.accumulate(a, 0..32, 1.0, &ones))?;
            }
            Ok(60)
        })
    });
}

#[test]
fn who_holds_a_lock_of_its_node_handles_no_messages() {
    let senders = AtomicUsize::new(0);
    with_post(|job, post| {
        let island = job.split(job.rank() / 2)?;
        // Rank 0 wants both locks of the island, and rank 1 has the second of them most of the time.
        let pair = GlobalArray::<f64, Ix1>::builder(&island, [2 << 14]).zeros().create()?;
        let ones = Array1::ones(1 << 14);
        beside_messages(job, post, &senders, |a| {
            if job.rank() == 1 {
                return pair.accumulate(1 << 14..2 << 14, 1.0, &ones).map(|()| 0);
            }
            pair.scatter_accumulate(&[0, pair.len() - 1], 1.0, &[1.0; 2])?;
            a.load([a.len() - 1]).map(|_| 0)
        })
    });
}

#[test]
fn accumulates_over_all_ranks_add_up() {
    const LEN: usize = 4 * 300;
    with_post(|job, _| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [LEN]).zeros().create()?;
        let ones = Array1::ones(LEN);
        let mut pending = Vec::new();
        let times = together(job, |k| {
            a.accumulate(.., 0.5, &ones)?;
            a.scatter_accumulate(&[0, LEN - 1, LEN / 2, 0], 1.0, &[1.0; 4])?;
            pending.push(a.accumulate_nb(LEN / 4 - 1..LEN / 4 + 1, 2.0, Array1::ones(2))?);
            job.scope(|scope| scope.accumulate(&a, LEN / 2 - 1..LEN / 2 + 1, 1.0, ones.slice(s![..2])))?;
            match k % 3 {
                0 => pending.drain(..).try_for_each(|handle| handle.wait()),
                1 => {
                    pending.clear();
                    a.fence()
                }
                _ => Ok(()),
            }
        })?;
        let mut expected = Array1::from_elem(LEN, 0.5);
        for (index, more) in [(0, 2.0), (LEN - 1, 1.0), (LEN / 2, 2.0), (LEN / 2 - 1, 1.0), (LEN / 4 - 1, 2.0), (LEN / 4, 2.0)] {
            expected[index] += more;
        }
        assert_eq!(a.get(..)?, expected * times as f64);
        job.sync()
    });
}

#[test]
fn elements_of_a_program_s_own_are_added_under_the_network_s_lock() {
    with_post(|job, post| {
        let a = GlobalArray::<Slow, Ix1>::builder(job, [8]).zeros().create()?;
        let ones = Array1::from_elem(8, Slow(1));
        let times = together(job, |_| {
            a.accumulate(.., 1, &ones)?;
            a.accumulate_nb(.., 1, ones.clone())?.wait()?;
            a.scatter_accumulate(&[7, 0], 1, &[Slow(1); 2])
        })? as i64;
        let sums = a.get(..)?.mapv(|sum| sum.0).to_vec();
        assert_eq!(sums, [3, 2, 2, 2, 2, 2, 2, 3].map(|each| each * times));
        assert_eq!(post.added.load(Ordering::Relaxed), 0);
        job.sync()
    });
}

/// Strided patches of all kinds against an ndarray, by each rank in turn.
fn blocks_as_in_an_array<T: Number>(job: &Job, number: impl Fn(usize) -> T) -> Result<(), Error> {
    const SHAPE: [usize; 2] = [13, 18];
    let a = GlobalArray::<T, Ix2>::builder(job, SHAPE).create()?;
    let tiled = GlobalArray::<T, Ix2>::builder(job, SHAPE).tiled([3, 4]).create()?;
    let some = GlobalArray::<T, Ix2>::builder(job, SHAPE).restrict([3, 0]).order(Order::ColumnMajor).create()?;
    let mut model = Array2::from_elem(SHAPE, T::ZERO);
    for mut array in [a, tiled, some] {
        model.fill(T::ZERO);
        array.fill(T::ZERO)?;
        for turn in 0..24 {
            let (first, step) = (turn % 5, [1, 2, 3, -1, -2][turn % 5]);
            let patch = s![first..; step, 1..17; [3, -1, 1, 2][turn % 4]];
            let shape = model.slice(patch).raw_dim();
            let values = Array2::from_shape_fn((shape[1], shape[0]), |(i, j)| number(turn + 7 * i + 3 * j));
            let alpha = number(turn + 1);
            if turn % job.size() == job.rank() {
                if turn % 3 == 0 {
                    array.put(patch, values.t())?;
                } else {
                    array.accumulate(patch, alpha, values.t())?;
                }
                let mut seen = Array2::from_elem((shape[1], shape[0]), T::ZERO);
                array.get_into(patch, seen.view_mut().reversed_axes())?;
                let mut expected = model.slice(patch).to_owned();
                Zip::from(&mut expected).and(values.t()).for_each(|to, &value| {
                    *to = if turn % 3 == 0 { value } else { to.plus(value.scaled(alpha)) };
                });
                assert_eq!(seen.t(), expected, "turn {turn}");
            }
            Zip::from(model.slice_mut(patch)).and(values.t()).for_each(|to, &value| {
                *to = if turn % 3 == 0 { value } else { to.plus(value.scaled(alpha)) };
            });
            job.sync()?;
            assert_eq!(array.get(..)?, model, "turn {turn}");
            job.sync()?;
        }
    }
    Ok(())
}

#[test]
fn blocks_move_and_add_what_an_array_would() {
    with_post(|job, post| {
        blocks_as_in_an_array(job, |k| k as f64 / 7.0)?;
        blocks_as_in_an_array(job, |k| (k as i16).wrapping_mul(999))?;
        blocks_as_in_an_array(job, |k| Complex::new(k as f32 / 3.0, 1.0))?;
        blocks_as_in_an_array(job, |k| k as u128)?;
        assert!(post.moved.load(Ordering::Relaxed) > 100 && post.added.load(Ordering::Relaxed) > 100);
        job.sync()
    });
}
