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
            let (mut planned, mut listed) =
                (laid_out::<f64>(job, len, kind).create()?, laid_out::<f64>(job, len, kind).create()?);
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

/// A number that is small and whole in each part, so that sums do not depend on their order.
trait Whole: Number {
    fn whole(k: i32) -> Self;
}
impl Whole for f32 {
    fn whole(k: i32) -> Self {
        k as f32
    }
}
impl Whole for f64 {
    fn whole(k: i32) -> Self {
        f64::from(k)
    }
}
impl Whole for Complex32 {
    fn whole(k: i32) -> Self {
        Complex::new(k as f32, (3 - k) as f32)
    }
}
impl Whole for Complex64 {
    fn whole(k: i32) -> Self {
        Complex::new(f64::from(k), f64::from(3 - k))
    }
}

/// Triplets with places that occur twice, and rows without any, equal on all members.
fn some_triplets<T: Whole>(seed: u64, [rows, columns]: [usize; 2]) -> Vec<(usize, usize, T)> {
    let mut random = Pcg64::seed_from_u64(seed);
    let count = if rows * columns == 0 { 0 } else { 3 * rows };
    let mut triplets: Vec<_> = (0..count)
        .map(|_| {
            let row = random.random_range(0..rows);
            (if row % 4 == 2 { 0 } else { row }, random.random_range(0..columns), T::whole(random.random_range(-5..6)))
        })
        .collect();
    triplets.extend_from_within(..count / 3);
    triplets
}

fn dense<T: Number>(shape: [usize; 2], triplets: &[(usize, usize, T)]) -> Array2<T> {
    let mut dense = Array2::from_elem(shape, T::ZERO);
    triplets.iter().for_each(|&(row, column, value)| dense[[row, column]] = dense[[row, column]].plus(value));
    dense
}

fn products<T: Whole>(job: &Job, seed: u64, shape: [usize; 2]) -> Outcome {
    let [rows, columns] = shape;
    let triplets = some_triplets::<T>(seed, shape);
    let dense = dense(shape, &triplets);
    // Each member gives some, wherever their rows are.
    let mine = triplets.iter().copied().skip(job.rank()).step_by(job.size());
    let a = SparseMatrix::from_triplets(job, shape, mine)?;
    let mut places: Vec<_> = triplets.iter().map(|&(row, column, _)| [row, column]).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!((a.shape(), a.nnz()), (shape, places.len()));
    let vector = |len: usize| Array1::from_shape_fn(len, |k| T::whole((k % 7) as i32 - 2));
    let (right, left) = (vector(columns), vector(rows));
    let from = |len: usize, kind: usize, of: &Array1<T>| {
        let mut x = laid_out::<T>(job, len, kind).create()?;
        x.map_indexed(|k, _| of[k])?;
        Ok::<_, Error>(x)
    };
    for (kind, other) in (0..LAYOUTS).flat_map(|kind| [0, 1, 3].map(|other| (kind, other))) {
        if (kind == 3 || other == 3) && rows.min(columns) < 10 * job.size() {
            continue; // Ghost cells take room.
        }
        let x = from(columns, kind, &right)?;
        // Old contents are not read.
        let mut y = laid_out::<T>(job, rows, other).fill(T::whole(0) / T::whole(0)).create()?;
        for _ in 0..2 {
            a.matvec(&x, &mut y)?;
            assert_eq!(y.get(..)?, dense.dot(&right), "{kind} to {other}");
            job.sync()?;
        }
        let x = from(rows, kind, &left)?;
        let mut y = laid_out::<T>(job, columns, other).fill(T::whole(0) / T::whole(0)).create()?;
        for _ in 0..2 {
            a.matvec_transposed(&x, &mut y)?;
            assert_eq!(y.get(..)?, dense.t().dot(&left), "{kind} to {other}, transposed");
            job.sync()?;
        }
    }
    // Each row is that of the owner of a vector's element, once.
    let owned = GlobalArray1::<T>::zeros(job, [rows])?;
    let mut found = Array2::from_elem(shape, T::ZERO);
    for (row, columns, values) in a.rows() {
        assert_eq!(owned.owner([row])?, job.rank());
        assert!(columns.is_sorted_by(|a, b| a < b));
        columns.iter().zip(values).for_each(|(&column, &value)| found[[row, column]] = value);
    }
    let mut found = found.into_raw_vec_and_offset().0;
    job.all_reduce(&mut found, ops::sum)?;
    assert_eq!(Array2::from_shape_vec(shape, found).map_err(Error::other)?, dense);
    job.sync()
}

#[test]
fn products_are_those_of_the_dense_matrix() {
    everywhere(|job| {
        for (seed, shape) in [[1, 1], [2, 7], [7, 2], [60, 90], [0, 4], [4, 0], [0, 0]].into_iter().enumerate() {
            products::<f64>(job, seed as u64, shape)?;
        }
        products::<f32>(job, 11, [40, 40])?;
        products::<Complex32>(job, 12, [40, 31])?;
        products::<Complex64>(job, 13, [31, 40])
    });
}

#[test]
fn not_a_number_stays_where_the_matrix_has_no_entry() {
    everywhere(|job| {
        let a = SparseMatrix::from_triplets(job, [4, 4], [(0, 1, 1.0), (3, 2, f64::NAN)])?;
        let x = GlobalArray1::<f64>::from_fn(job, [4], |i| if i == 3 { f64::NAN } else { 1.0 })?;
        let mut y = GlobalArray1::<f64>::zeros(job, [4])?;
        a.matvec(&x, &mut y)?;
        let (y, ranks) = (y.get(..)?.to_vec(), job.size() as f64);
        assert_eq!(y[..3], [ranks, 0.0, 0.0]);
        assert!(y[3].is_nan());
        job.sync()
    });
}

#[test]
fn what_is_wrong_is_the_same_error_on_all_members() {
    everywhere(|job| {
        let last = job.size() - 1;
        let outside = if job.rank() == last { vec![(0, 0, 1.0), (3, 5, 1.0)] } else { vec![(0, 0, 1.0)] };
        let told = message(SparseMatrix::from_triplets(job, [4, 5], outside));
        let expected = format!("triplet 1 of member {last}, row 3, column 5, lies outside the matrix of 4 x 5");
        assert!(told.contains(&expected), "{told}");
        if job.size() > 1 {
            let told = message(SparseMatrix::<f64>::from_triplets(job, [4, 5 + usize::from(job.rank() == last)], []));
            assert!(told.contains("different shapes, from 4 x 5 to 4 x 6"), "{told}");
        }
        let a = SparseMatrix::from_triplets(job, [4, 5], [(0, 0, 1.0)])?;
        let (four, mut five) = (GlobalArray1::<f64>::zeros(job, [4])?, GlobalArray1::<f64>::zeros(job, [5])?);
        let told = message(a.matvec(&four, &mut five));
        assert!(told.contains("A x of 4 x 5 takes x of 5 and gives y of 4 elements"), "{told}");
        assert!(a.matvec_transposed(&four, &mut five).is_ok());
        let told = message(SparseMatrix::<f64>::from_matrix_market(job, "no/such.mtx"));
        assert!(told.contains("no/such.mtx: cannot be read"), "{told}");
        job.sync()
    });
}

#[test]
fn a_matrix_comes_from_a_file() {
    let path = std::env::temp_dir().join(format!("global-arrays-sparse-{}.mtx", std::process::id()));
    std::fs::write(&path, "%%MatrixMarket matrix coordinate complex hermitian\n4 4 3\n2 1 1 2\n4 1 0 -1\n3 3 5 0\n").unwrap();
    everywhere(|job| {
        let a = SparseMatrix::<Complex64>::from_matrix_market(job, &path)?;
        assert_eq!((a.shape(), a.nnz()), ([4, 4], 5));
        let x = GlobalArray1::from_fn(job, [4], |i| if i == 0 { Complex::ONE } else { Complex::ZERO })?;
        let mut y = GlobalArray1::<Complex64>::zeros(job, [4])?;
        a.matvec(&x, &mut y)?;
        let expected = [(0.0, 0.0), (1.0, 2.0), (0.0, 0.0), (0.0, -1.0)].map(|(re, im)| Complex::new(re, im));
        assert_eq!(y.get(..)?.to_vec(), expected);
        a.matvec_transposed(&x, &mut y)?;
        assert_eq!(y.get(..)?.to_vec(), expected.map(|z| z.conj()));
        let told = message(SparseMatrix::<f64>::from_matrix_market(job, &path));
        assert!(told.contains("line 1: the numbers are complex"), "{told}");
        job.sync()
    });
    std::fs::remove_file(path).unwrap();
}
