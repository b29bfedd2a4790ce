//! Plans of gathers against the arrays' own lists, and sparse matrices against dense ones of ndarray.

use global_arrays::{Builder, prelude::*};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

type Outcome = Result<(), Error>;

/// Runs a test body on every network with several numbers of ranks.
fn everywhere(body: impl Fn(&Job) -> Outcome + Sync) {
    for network in ["threads", "threads:unmapped", "threads:packets+hidden", "simulated:infiniband"] {
        for ranks in [1, 2, 3, 5] {
            Launch::new()
                .ranks(ranks)
                .ranks_per_node(2)
                .network(network)
                .run(&body)
                .unwrap_or_else(|error| panic!("{network} with {ranks} ranks: {error}"));
        }
    }
}

const LAYOUTS: usize = 4;

/// Distribution number `kind` of a vector.
fn laid_out<'g, T: Number>(job: &'g Job, len: usize, kind: usize) -> Builder<'g, T, Ix1> {
    let builder = GlobalArray::<T, Ix1>::builder(job, [len]);
    match kind {
        0 => builder,
        1 => builder.block_cyclic([3]),
        2 => builder.irregular(vec![(0..job.size()).map(|k| (k * k).min(len)).collect::<Vec<_>>()]),
        3 => builder.ghosts([2]),
        _ => unreachable!("{LAYOUTS} layouts"),
    }
}

/// Runs, neighbors with gaps, and places that occur again and again.
fn some_list(random: &mut Pcg64, len: usize) -> Vec<usize> {
    let mut list: Vec<usize> = (0..len).step_by(2).chain(len / 3..len / 2).collect();
    list.extend((0..len).map(|_| random.random_range(0..len)));
    list.extend([len - 1; 3]);
    list
}

#[test]
fn a_plan_reads_what_gather_reads_whatever_was_written_since() {
    everywhere(|job| {
        let mut random = Pcg64::seed_from_u64(job.rank() as u64);
        for (kind, len) in (0..LAYOUTS).flat_map(|kind| [1, 7, 2000].map(|len| (kind, len))) {
            let mut x = laid_out::<f64>(job, len, kind).create()?;
            let y = laid_out::<u8>(job, len, kind).fill(7).create()?;
            x.map_indexed(|i, _| i as f64)?;
            let list = some_list(&mut random, len);
            let plan = x.gather_plan(&list)?;
            let (mut planned, mut gathered) = (vec![-1.0; list.len()], vec![-2.0; list.len()]);
            for _ in 0..2 {
                plan.fetch(&x, &mut planned)?;
                x.gather(&list, &mut gathered)?;
                assert_eq!(planned, gathered);
                x.scale(2.0)?;
            }
            x.read_epoch(|_, x| x.fetch(&plan, &mut planned))??;
            let expected: Vec<f64> = list.iter().map(|&i| 4.0 * i as f64).collect();
            assert_eq!(planned, expected);
            let mut bytes = vec![0_u8; list.len()];
            plan.fetch(&y, &mut bytes)?;
            assert!(bytes.iter().all(|&byte| byte == 7));
            job.sync()?;
        }
        Ok(())
    });
}

#[test]
fn a_rank_reads_what_it_has_put_itself() {
    everywhere(|job| {
        let x = GlobalArray2::<f64>::zeros(job, [job.size(), 50])?;
        let mine: Vec<[usize; 2]> = (0..50).map(|k| [job.rank(), k]).collect();
        let (plan, mut values) = (x.gather_plan(&mine)?, vec![0.0; 50]);
        for step in 0..20 {
            let new = Array1::from_elem(50, f64::from(step));
            x.put(s![job.rank(), ..], &new)?;
            plan.fetch(&x, &mut values)?;
            assert_eq!(values, new.to_vec());
        }
        job.sync()
    });
}

#[test]
fn a_plan_adds_what_scatter_accumulate_adds_and_touches_nothing_else() {
    everywhere(|job| {
        let mut random = Pcg64::seed_from_u64(10 + job.rank() as u64);
        for (kind, len) in (0..LAYOUTS).flat_map(|kind| [7, 2000].map(|len| (kind, len))) {
            let list = some_list(&mut random, len);
            let list: Vec<usize> = list.into_iter().filter(|i| i % 5 != 4).collect();
            let (mut planned, mut listed) = (laid_out::<f64>(job, len, kind).create()?, laid_out::<f64>(job, len, kind).create()?);
            // What is never added to keeps its bits, and it is not a number.
            planned.map_indexed(|i, _| if i % 5 == 4 { f64::NAN } else { i as f64 })?;
            listed.assign(&planned)?;
            let values: Vec<f64> = (0..list.len()).map(|k| (k % 9) as f64 + 1.0).collect();
            let plan = planned.gather_plan(&list)?;
            plan.add(&planned, &values)?;
            plan.add(&planned, &values)?;
            listed.scatter_accumulate(&list, 2.0, &values)?;
            job.sync()?;
            let bits = |of: &GlobalArray1<f64>| Ok::<_, Error>(of.get(..)?.mapv(f64::to_bits));
            assert_eq!(bits(&planned)?, bits(&listed)?);
            job.sync()?;
        }
        // Types that processors of owners do not know.
        let wide = GlobalArray1::<u128>::zeros(job, [9])?;
        wide.gather_plan(&[8, 1, 8])?.add(&wide, &[1 << 100, 2, 3])?;
        job.sync()?;
        let ranks = job.size() as u128;
        assert_eq!((wide.load([8])?, wide.load([1])?), (((1 << 100) + 3) * ranks, 2 * ranks));
        job.sync()
    });
}

/// The message of an error, without the line of the program.
fn message<R>(outcome: Result<R, Error>) -> String {
    outcome.err().map(|error| error.to_string()).unwrap_or_else(|| "no error".into())
}

#[test]
fn a_plan_refuses_what_it_was_not_made_of() {
    everywhere(|job| {
        let (x, other) = (GlobalArray1::<f64>::zeros(job, [10])?, laid_out::<f64>(job, 10, 3).zeros().create()?);
        assert!(message(x.gather_plan(&[3, 10])).contains("[10]"));
        let plan = x.gather_plan(&[3, 9])?;
        let told = message(plan.fetch(&other, &mut [0.0; 2]));
        assert!(told.contains("another distribution") && told.contains("make a plan of"), "{told}");
        let told = message(plan.add(&x, &[1.0; 3]));
        assert!(told.contains("a plan of 2 elements but 3 values"), "{told}");
        let told = message(plan.fetch(&x, &mut [0.0]));
        assert!(told.contains("a plan of 2 elements but 1 values"), "{told}");
        let alone = job.split(job.rank())?;
        let small = GlobalArray1::<f64>::zeros(&alone, [10])?;
        if job.size() > 1 {
            assert!(message(plan.fetch(&small, &mut [0.0; 2])).contains("other ranks"));
        }
        job.sync()?;
        assert_eq!(x.sum()?, 0.0);
        job.sync()
    });
}
