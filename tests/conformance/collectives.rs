//! Broadcast, reduce, gather, all-to-all, with odd lengths, none, and beyond a chunk.

use global_arrays::prelude::*;

use crate::elements::Particle;

const LENGTHS: [usize; 6] = [0, 1, 3, 257, 8192, 100_000];

pub(crate) fn broadcast(job: &Job) -> Result<(), Error> {
    for len in LENGTHS {
        for root in 0..job.size() {
            let of = |k: usize| (k + 10 * root) as f64;
            let mut data: Vec<f64> = (0..len).map(|k| if job.rank() == root { of(k) } else { -1.0 }).collect();
            job.broadcast(root, &mut data)?;
            assert!(data.iter().enumerate().all(|(k, &x)| x == of(k)), "{len} elements from {root}");
        }
    }
    assert!(job.broadcast(job.size(), &mut [0_u8]).is_err());
    job.sync()
}

pub(crate) fn reduce(job: &Job) -> Result<(), Error> {
    let ranks = job.size();
    let sum = |k: usize| (ranks * k + ranks * (ranks - 1) / 2) as f64;
    for len in LENGTHS {
        let mine: Vec<f64> = (0..len).map(|k| (k + job.rank()) as f64).collect();
        let root = len % ranks;
        let mut data = mine.clone();
        job.reduce(root, &mut data, ops::sum)?;
        if job.rank() == root {
            assert!(data.iter().enumerate().all(|(k, &x)| x == sum(k)), "reduce of {len} at {root}");
        }
        let mut data = mine.clone();
        job.all_reduce(&mut data, ops::sum)?;
        assert!(data.iter().enumerate().all(|(k, &x)| x == sum(k)), "all-reduce of {len}");
    }
    let mine = [job.rank() as i64, -(job.rank() as i64)];
    let with = |op: fn(i64, i64) -> i64| {
        let mut data = mine;
        job.all_reduce(&mut data, op).map(|()| data)
    };
    let last = ranks as i64 - 1;
    assert_eq!(with(ops::min)?, [0, -last]);
    assert_eq!(with(ops::max)?, [last, 0]);
    assert_eq!(with(ops::abs_max)?.map(i64::abs), [last, last]);
    assert_eq!(with(ops::product)?, [0, 0]);
    // The same bits on every member, whatever the order of rounding.
    let total = job.all_reduce_one(0.1 + job.rank() as f64 / 3.0, ops::sum)?;
    assert!(job.all_gather(&[total.to_bits()])?.iter().all(|&bits| bits == total.to_bits()));
    job.sync()
}

pub(crate) fn gather(job: &Job) -> Result<(), Error> {
    for len in LENGTHS {
        let mine: Vec<u32> = (0..len).map(|k| (k * 10 + job.rank()) as u32).collect();
        let right = |all: &[u32]| {
            all.len() == len * job.size() && all.iter().enumerate().all(|(at, &x)| x as usize == at % len * 10 + at / len)
        };
        assert!(right(&job.all_gather(&mine)?), "all-gather of {len}");
        let root = (len + 1) % job.size();
        match job.gather(root, &mine)? {
            Some(all) => assert!(job.rank() == root && right(&all), "gather of {len} at {root}"),
            None => assert_ne!(job.rank(), root),
        }
    }
    job.sync()
}

pub(crate) fn all_to_all(job: &Job) -> Result<(), Error> {
    let ranks = job.size();
    for block in [0, 1, 5, 1000, 20_000] {
        let to = |from: usize, to: usize, k: usize| (from * 100 + to + k * 10_000) as u64;
        let data: Vec<u64> = (0..ranks * block).map(|at| to(job.rank(), at / block, at % block)).collect();
        let got = job.all_to_all(&data)?;
        assert_eq!(got.len(), data.len());
        assert!(got.iter().enumerate().all(|(at, &x)| x == to(at / block, job.rank(), at % block)), "blocks of {block}");
    }
    assert!(ranks == 1 || job.all_to_all(&vec![0_u8; ranks + 1]).is_err());
    job.sync()
}

/// Lists of lengths that differ, none, beyond a chunk, and from one member alone; in a group in another order too.
pub(crate) fn lists(job: &Job) -> Result<(), Error> {
    let backward: Vec<usize> = (0..job.size()).rev().collect();
    for group in [job.split(0)?, job.subgroup(&backward)?] {
        let (me, size) = (group.member(), group.size());
        for scale in [0, 1, 7, 3000] {
            let list = |from: usize, to: usize| -> Vec<u32> {
                let len = if scale == 7 && from > 0 { 0 } else { (3 * from + 5 * to) % 7 * scale };
                (0..len).map(|k| (k * 100 + 10 * from + to) as u32).collect()
            };
            let lists: Vec<Vec<u32>> = (0..size).map(|to| list(me, to)).collect();
            let arrived = group.all_to_all_v(&lists)?;
            // Into lists that hold something.
            let mut kept = vec![vec![7; 3]; 2];
            group.all_to_all_v_into(&lists, &mut kept)?;
            assert_eq!(kept, arrived);
            assert!((0..size).all(|from| arrived[from] == list(from, me)), "all-to-all in steps of {scale}");
            let all: Vec<Vec<u32>> = (0..size).map(|from| list(from, 2)).collect();
            assert_eq!(group.all_gather_v(&all[me])?, all);
            assert_eq!(group.gather_v(size - 1, &all[me])?, (me == size - 1).then_some(all));
        }
        let triples = vec![[me as u16; 3]; 30_000 * (me % 2)];
        assert_eq!(group.all_gather_v(&triples)?.concat().len(), 30_000 * (size / 2));
        assert_eq!(group.exclusive_scan(me + 1, 0, ops::sum)?, me * (me + 1) / 2);
        assert!(group.all_to_all_v(&vec![[0_u8]; size + 1]).is_err() && group.gather_v(size, &[0_u8]).is_err());
    }
    job.sync()
}

/// A value, or the failure, of one member is everyone's.
pub(crate) fn from_member(job: &Job) -> Result<(), Error> {
    for member in [0, job.size() - 1] {
        let value = || (vec![member as f64; 40_000], Some(format!("from {member}")), member);
        let called = std::cell::Cell::new(false);
        let make = || {
            called.set(true);
            Ok::<_, Error>(value())
        };
        assert_eq!(job.from_member(member, make)?, value());
        assert_eq!(called.get(), job.rank() == member);
        let failed: Result<(), Error> = job.from_member(member, || Err(Error::other("no such thing")));
        assert!(failed.expect_err("its failure").to_string().contains("no such thing"));
    }
    assert!(job.from_member(job.size(), || Ok::<_, Error>(1)).is_err());
    job.sync()
}

pub(crate) fn structs(job: &Job) -> Result<(), Error> {
    let particle = |rank: usize| Particle { place: [rank as f64; 3], charge: 0.5, kind: rank as u32 };
    let all = job.all_gather(&[particle(job.rank())])?;
    assert!(all.iter().enumerate().all(|(rank, &p)| p == particle(rank)));
    let heaviest = job.all_reduce_one(particle(job.rank()), |a, b| if b.kind > a.kind { b } else { a })?;
    assert_eq!(heaviest, particle(job.size() - 1));
    let mut triples = vec![[job.rank() as u8, 2, 3]; 50_001];
    job.broadcast(job.size() - 1, &mut triples)?;
    assert!(triples.iter().all(|&t| t == [job.size() as u8 - 1, 2, 3]));
    job.sync()
}

/// More members than each is connected with, blocks that fit a box once, and that do not, and groups in another order.
pub(crate) fn all_gather_of_many(job: &Job) -> Result<(), Error> {
    let backward: Vec<usize> = (0..job.size()).rev().collect();
    for group in [job.split(0)?, job.subgroup(&backward)?, job.subgroup_range(0..job.size(), 1)?] {
        for len in [0, 1, 3, 250, 5000] {
            let of = |member: usize, k: usize| (member * 10_000 + k) as u32;
            let mine: Vec<u32> = (0..len).map(|k| of(group.member(), k)).collect();
            let all = group.all_gather(&mine)?;
            let expected = (0..group.size()).flat_map(|member| (0..len).map(move |k| of(member, k)));
            assert!(all.iter().copied().eq(expected), "all-gather of {len} among {}", group.size());
        }
    }
    job.sync()
}
