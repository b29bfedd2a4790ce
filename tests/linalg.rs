//! Eigenvalues, factors and solutions against their definitions, by the LAPACK of the machine.

use global_arrays::{
    linalg::{Field, MatrixError, Spectrum},
    prelude::*,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Runs a body on one to three ranks, with memory that is mapped and with memory that is not, if the machine has a LAPACK.
fn everywhere(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for network in ["threads", "threads:unmapped", "simulated:gemini"] {
        for ranks in 1..=3 {
            let run = Launch::new().ranks(ranks).network(network).run(|job| {
                let one = GlobalArray2::<f64>::builder(job, [1, 1]).fill(1.0).create()?;
                match one.lu() {
                    Err(error) if error.to_string().contains("needs a LAPACK") && std::env::var_os("GA_BLAS").is_none() => {
                        eprintln!("skipped: {error}");
                        Ok(())
                    }
                    _ => body(job),
                }
            });
            run.unwrap_or_else(|error| panic!("{ranks} ranks over {network}: {error}"));
        }
    }
}

/// An element that tests make and measure.
trait Sample: Field {
    const EPSILON: f64;
    fn of(re: f64, im: f64) -> Self;
    fn wide(real: Self::Real) -> f64;
}

macro_rules! samples {
    ($($t:ty, $real:ty, $of:expr;)*) => {$(
        impl Sample for $t {
            const EPSILON: f64 = <$real>::EPSILON as f64;

            fn of(re: f64, im: f64) -> Self {
                $of(re as $real, im as $real)
            }

            fn wide(real: $real) -> f64 {
                real.into()
            }
        }
    )*};
}
samples!(f32, f32, |re, _| re; f64, f64, |re, _| re; Complex32, f32, Complex::new; Complex64, f64, Complex::new;);

/// The same matrix on all ranks.
fn random<T: Sample>(rows: usize, columns: usize, seed: u64) -> Array2<T> {
    let mut random = Pcg64::seed_from_u64(seed);
    Array2::from_shape_simple_fn((rows, columns), || T::of(random.random_range(-1.0..1.0), random.random_range(-1.0..1.0)))
}

fn adjoint<T: Sample>(a: &Array2<T>) -> Array2<T> {
    a.t().mapv(T::conj)
}

fn hermitian<T: Sample>(order: usize, seed: u64) -> Array2<T> {
    let a = random::<T>(order, order, seed);
    &a + &adjoint(&a)
}

fn positive<T: Sample>(order: usize, seed: u64) -> Array2<T> {
    let a = random::<T>(order, order, seed);
    a.dot(&adjoint(&a)) + Array2::<T>::eye(order)
}

/// An array of blocks, and the same block-cyclic.
fn spread<T: Sample>(job: &Job, a: &Array2<T>) -> Result<[GlobalArray2<T>; 2], Error> {
    let shape = [a.nrows(), a.ncols()];
    let arrays = [
        GlobalArray2::builder(job, shape).zeros().name("a").create()?,
        GlobalArray2::builder(job, shape).block_cyclic([3, 2]).zeros().name("a").create()?,
    ];
    for array in &arrays {
        if job.rank() == job.size() - 1 {
            array.put(.., a)?;
        }
    }
    job.sync()?;
    Ok(arrays)
}

fn largest<T: Sample>(a: &Array2<T>) -> f64 {
    a.iter().fold(0.0, |most, x| T::wide(x.magnitude()).max(most))
}

/// The largest difference between matrices that should be equal, in units of rounding.
fn apart<T: Sample>(a: &Array2<T>, b: &Array2<T>) -> f64 {
    let scale = largest(a).max(largest(b)).max(f64::MIN_POSITIVE);
    let order = a.nrows().max(a.ncols()).max(1) as f64;
    let most = (a - b).iter().fold(0.0, |most: f64, x| {
        let difference = T::wide(x.magnitude());
        if difference.is_nan() { f64::INFINITY } else { difference.max(most) }
    });
    most / scale / T::EPSILON / order
}

/// h v = s v λ and vᴴ s v = 1, in units of rounding.
fn check_eigen<T: Sample>(h: &Array2<T>, s: &Array2<T>, values: &[T::Real], vectors: &Array2<T>) {
    let lambda = Array2::from_diag(&values.iter().map(|&x| T::of_real(x)).collect::<Array1<T>>());
    let scale = largest(h).max(f64::MIN_POSITIVE);
    let order = h.nrows() as f64;
    let residual = largest(&(h.dot(vectors) - s.dot(vectors).dot(&lambda))) / scale / T::EPSILON / order;
    assert!(residual < 50.0, "a residual of {residual} n ε");
    let metric = apart(&adjoint(vectors).dot(s).dot(vectors), &Array2::eye(values.len()));
    assert!(metric < 50.0, "not orthonormal by {metric} n ε");
    assert!(values.windows(2).all(|pair| T::wide(pair[0]) <= T::wide(pair[1])));
}

fn of_type<T: Sample>() {
    everywhere(|job| {
        for order in [1, 2, 7, 40] {
            let (h, s) = (hermitian::<T>(order, 1), positive::<T>(order, 2));
            let unit = Array2::eye(order);
            for (a, metric) in spread(job, &h)?.into_iter().zip(spread(job, &s)?) {
                let all = a.eigh()?;
                check_eigen(&h, &unit, &all.values, &all.vectors.get(..)?);
                assert_eq!(all.values.len(), order);
                let close =
                    |x: T::Real, y: T::Real| (T::wide(x) - T::wide(y)).abs() < 100.0 * T::EPSILON * order as f64 * largest(&h);
                let lowest = a.eigh_of(Spectrum::Lowest(order.div_ceil(3)))?;
                check_eigen(&h, &unit, &lowest.values, &lowest.vectors.get(..)?);
                assert_eq!(lowest.vectors.shape(), [order, order.div_ceil(3)]);
                assert!(lowest.values.iter().zip(&all.values).all(|(x, y)| close(*x, *y)));
                // Between eigenvalues, so that rounding does not count.
                let middle = |k: usize| f64::midpoint(T::wide(all.values[k - 1]), T::wide(all.values[k]));
                if order > 2 {
                    let inner = a.eigh_of(Spectrum::Interval(middle(1), middle(order - 1)))?;
                    check_eigen(&h, &unit, &inner.values, &inner.vectors.get(..)?);
                    assert_eq!(inner.values.len(), order - 2);
                    assert!(inner.values.iter().zip(&all.values[1..]).all(|(x, y)| close(*x, *y)));
                }
                let factor = metric.cholesky()?;
                let l = factor.l()?.get(..)?;
                assert!(apart(&l.dot(&adjoint(&l)), &s) < 10.0);
                assert!(l.indexed_iter().all(|((i, j), x)| i >= j || *x == T::ZERO));
                let general = factor.eigh(&a)?;
                check_eigen(&h, &s, &general.values, &general.vectors.get(..)?);
                let part = factor.eigh_of(&a, Spectrum::Lowest(order.div_ceil(2)))?;
                check_eigen(&h, &s, &part.values, &part.vectors.get(..)?);
                assert!(part.values.iter().zip(&general.values).all(|(x, y)| close(*x, *y)));
                let condition = largest(&factor.inverse()?.get(..)?) * largest(&s) * order as f64;
                assert!(apart(&s.dot(&factor.inverse()?.get(..)?), &unit) < 10.0 * condition);
                let b = random::<T>(order, 3, 3);
                let x = factor.solve(&spread(job, &b)?[1])?;
                assert!(apart(&s.dot(&x.get(..)?), &b) < 10.0 * condition);
            }
        }
        Ok(())
    });
    everywhere(|job| {
        for order in [1, 2, 9, 33] {
            let a = random::<T>(order, order, 4) + Array2::<T>::eye(order);
            for array in spread(job, &a)? {
                let lu = array.lu()?;
                let condition = T::wide(lu.condition()?);
                assert!((1.0..1e5).contains(&condition), "{condition}");
                let b = random::<T>(order, 2, 5);
                let x = lu.solve(&spread(job, &b)?[0])?.get(..)?;
                assert!(apart(&a.dot(&x), &b) < 10.0 * condition);
                // One right-hand side is a vector.
                let vector = GlobalArray1::<T>::from_fn(job, [order], |i| b[[i, 1]])?;
                let alone = lu.solve(&vector)?.get(..)?.insert_axis(ndarray::Axis(1));
                assert!(apart(&alone, &x.slice(s![.., 1..]).to_owned()) < 10.0 * condition);
            }
        }
        // By cofactors.
        let a = random::<T>(3, 3, 6);
        let minor = |i: usize, j: usize| a[[1, i]] * a[[2, j]] - a[[1, j]] * a[[2, i]];
        let expected = a[[0, 0]] * minor(1, 2) - a[[0, 1]] * minor(0, 2) + a[[0, 2]] * minor(0, 1);
        let found = spread(job, &a)?[1].lu()?.determinant()?;
        assert!(T::wide((found - expected).magnitude()) < 100.0 * T::EPSILON, "{found:?}, {expected:?}");
        for (rows, columns) in [(1, 1), (7, 3), (20, 20), (3, 7)] {
            let a = random::<T>(rows, columns, 7);
            for array in spread(job, &a)? {
                let svd = array.svd()?;
                let values = Array2::from_diag(&svd.values.iter().map(|&x| T::of_real(x)).collect::<Array1<T>>());
                let (u, vt) = (svd.u.get(..)?, svd.vt.get(..)?);
                assert!(apart(&u.dot(&values).dot(&vt), &a) < 10.0);
                assert!(apart(&adjoint(&u).dot(&u), &Array2::eye(rows.min(columns))) < 10.0);
                if rows >= columns {
                    let b = random::<T>(rows, 2, 8);
                    let x = array.least_squares(&spread(job, &b)?[1])?.get(..)?;
                    // What is left is orthogonal to the columns.
                    let left = adjoint(&a).dot(&(a.dot(&x) - &b));
                    let condition = T::wide(svd.values[0]) / T::wide(svd.values[columns - 1]);
                    assert!(largest(&left) < 100.0 * T::EPSILON * rows as f64 * condition * largest(&b));
                }
            }
        }
        job.sync()
    });
}

#[test]
fn in_single_precision() {
    of_type::<f32>();
}

#[test]
fn in_double_precision() {
    of_type::<f64>();
}

#[test]
fn of_complex_numbers() {
    of_type::<Complex64>();
}

#[test]
fn of_complex_numbers_in_single_precision() {
    of_type::<Complex32>();
}

/// Graded, clustered, nearly singular, tiny and huge matrices: the residual is that of a good method.
#[test]
fn hard_matrices_have_small_residuals() {
    everywhere(|job| {
        let order = 60;
        let q = hermitian::<f64>(order, 9);
        let cases: [(&str, Array2<f64>); 8] = [
            ("zero", Array2::zeros((order, order))),
            ("graded", Array2::from_shape_fn((order, order), |(i, j)| q[[i, j]] * 10f64.powi(-((i + j) as i32) / 6))),
            ("clustered", Array2::eye(order) + &q * 1e-13),
            ("huge", &q * 1e300),
            ("tiny", &q * 1e-300),
            ("denormal", &q * 1e-310),
            ("Hilbert", Array2::from_shape_fn((order, order), |(i, j)| 1.0 / (i + j + 1) as f64)),
            // Wilkinson's W+: pairs of eigenvalues that are equal to the last bits.
            (
                "Wilkinson",
                Array2::from_shape_fn((order + 1, order + 1), |(i, j)| match i.abs_diff(j) {
                    0 => i.abs_diff(order / 2) as f64,
                    1 => 1.0,
                    _ => 0.0,
                }),
            ),
        ];
        for (name, h) in cases {
            let [a, _] = spread(job, &h)?;
            // By a power of two, so that nothing overflows or vanishes in the check.
            let scale = if largest(&h) > 0.0 { 2f64.powi(-(largest(&h).log2() as i32).clamp(-1000, 1000)) } else { 1.0 };
            for spectrum in [Spectrum::All, Spectrum::Lowest(7)] {
                let found = a.eigh_of(spectrum)?;
                let values: Vec<f64> = found.values.iter().map(|x| x * scale).collect();
                let (h, v) = (&h * scale, found.vectors.get(..)?);
                let metric = apart(&v.t().dot(&v), &Array2::eye(values.len()));
                let lambda = Array2::from_diag(&Array1::from(values));
                let residual = largest(&(h.dot(&v) - v.dot(&lambda))) / largest(&h).max(1e-300) / f64::EPSILON / order as f64;
                // A denormal number has fewer bits.
                let most = if name == "denormal" { 1e4 } else { 50.0 };
                assert!(residual < most && metric < 50.0, "{name}, {spectrum:?}: {residual}, {metric}");
            }
        }
        job.sync()
    });
}

#[test]
fn what_is_wrong_with_a_matrix_is_said_on_all() {
    everywhere(|job| {
        let fault = |found: Result<(), Error>| match found {
            Err(Error::Matrix { source, array, .. }) => {
                assert_eq!(array, "a");
                source
            }
            other => panic!("{other:?}"),
        };
        let made = |f: &dyn Fn(usize, usize) -> f64| -> Result<GlobalArray2<f64>, Error> {
            let a = GlobalArray2::builder(job, [5, 5]).block_cyclic([2, 2]).zeros().name("a").create()?;
            if job.rank() == 0 {
                a.put(.., &Array2::from_shape_fn((5, 5), |(i, j)| f(i, j)))?;
            }
            job.sync()?;
            Ok(a)
        };
        let nan = made(&|i, j| if (i, j) == (3, 1) { f64::NAN } else { 1.0 })?;
        assert_eq!(fault(nan.eigh().map(drop)), MatrixError::NotFinite { row: 3, column: 1 });
        assert_eq!(fault(nan.lu().map(drop)), MatrixError::NotFinite { row: 3, column: 1 });
        assert_eq!(fault(nan.svd().map(drop)), MatrixError::NotFinite { row: 3, column: 1 });
        let askew = made(&|i, j| if (i, j) == (1, 4) { 2.0 } else { 1.0 })?;
        assert_eq!(fault(askew.eigh().map(drop)), MatrixError::NotSymmetric { row: 4, column: 1 });
        assert_eq!(fault(askew.cholesky().map(drop)), MatrixError::NotSymmetric { row: 4, column: 1 });
        let indefinite = made(&|i, j| if i == j { 3.0 - i as f64 } else { 0.0 })?;
        assert_eq!(fault(indefinite.cholesky().map(drop)), MatrixError::NotPositive { order: 4 });
        let singular = made(&|i, j| if i == j && i != 2 { 1.0 } else { 0.0 })?;
        assert_eq!(fault(singular.lu().map(drop)), MatrixError::Singular { at: 2 });
        let b = GlobalArray1::<f64>::from_fn(job, [5], |_| 1.0)?;
        assert_eq!(fault(singular.least_squares(&b).map(drop)), MatrixError::Dependent { at: 2 });
        let unit = made(&|i, j| if i == j { 1.0 } else { 0.0 })?;
        let wrong = GlobalArray1::<f64>::builder(job, [5]).fill(f64::INFINITY).name("wrong").create()?;
        let said = unit.lu()?.solve(&wrong).expect_err("an infinite right-hand side").to_string();
        assert!(["solve", "wrong", "not finite"].iter().all(|word| said.contains(word)), "{said}");
        // The group works on, and refuses what does not fit.
        let says = |found: Result<(), Error>, words: &[&str]| {
            let said = found.expect_err("a refusal").to_string();
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        };
        let wide = GlobalArray2::<f64>::builder(job, [2, 3]).zeros().name("wide").create()?;
        says(wide.eigh().map(drop), &["eigh", "wide", "[2, 3]", "square", "linalg.rs"]);
        says(wide.least_squares(&b).map(drop), &["least_squares", "wide", "2 rows and 3 columns"]);
        let short = GlobalArray1::<f64>::zeros(job, [4])?;
        says(unit.lu()?.solve(&short).map(drop), &["solve", "5 rows", "[4]"]);
        says(unit.eigh_of(Spectrum::Interval(2.0, 1.0)).map(drop), &["eigh_of", "from 2 to 1"]);
        assert_eq!(unit.eigh_of(Spectrum::Interval(2.0, 3.0))?.vectors.shape(), [5, 0]);
        assert_eq!(unit.eigh_of(Spectrum::Lowest(0))?.values.len(), 0);
        assert_eq!(unit.eigh_of(Spectrum::Lowest(99))?.values.len(), 5);
        let nothing = GlobalArray2::<f64>::zeros(job, [0, 0])?;
        assert!(nothing.eigh()?.values.is_empty() && nothing.cholesky()?.l()?.is_empty() && nothing.svd()?.values.is_empty());
        assert_eq!(nothing.lu()?.determinant()?, 1.0);
        job.sync()
    });
}

/// Neither the square of a magnitude nor what is left of it is a finite number here.
#[test]
fn a_complex_determinant_of_any_size_is_right() {
    everywhere(|job| {
        for size in [1e-24_f32, 1e20, 1e38] {
            let a = GlobalArray2::<Complex32>::builder(job, [1, 1]).fill(Complex::new(0.0, size)).create()?;
            let lu = a.lu()?;
            let (sign, ln) = lu.log_determinant()?;
            assert!((sign - Complex::I).norm() < 1e-6 && (ln - size.ln()).abs() < 1e-4, "{size}: {sign}, {ln}");
            let found = lu.determinant()?;
            assert!(((found / Complex::I).re / size - 1.0).abs() < 1e-4, "{size}: {found}");
        }
        job.sync()
    });
}

/// Two of three ranks, in another order than that of their numbers.
#[test]
fn any_group_has_solvers_of_its_own() {
    for network in ["threads", "threads:unmapped"] {
        let run = Launch::new().ranks(3).network(network).run(|job| {
            let group = job.split_ordered(usize::from(job.rank() == 1), -(job.rank() as isize))?;
            let order = 5 + group.size();
            let h = hermitian::<f64>(order, 10);
            let a = GlobalArray2::from_fn(&group, [order, order], |(i, j)| h[[i, j]])?;
            let found = a.eigh()?;
            check_eigen(&h, &Array2::eye(order), &found.values, &found.vectors.get(..)?);
            job.sync()
        });
        match run {
            Err(error) if error.to_string().contains("needs a LAPACK") && std::env::var_os("GA_BLAS").is_none() => {}
            run => run.unwrap_or_else(|error| panic!("{network}: {error}")),
        }
    }
}

/// An interval whose ends are equal in single precision has no eigenvalues.
#[test]
fn an_interval_that_rounds_to_nothing_is_empty() {
    everywhere(|job| {
        let a = GlobalArray2::<f32>::from_fn(job, [3, 3], |(i, j)| f32::from(u8::from(i == j)))?;
        assert!(a.eigh_of(Spectrum::Interval(1.0, 1.0 + 1e-10))?.values.is_empty());
        job.sync()
    });
}

/// The logarithm does not overflow where the determinant does.
#[test]
fn a_large_determinant_has_a_logarithm() {
    everywhere(|job| {
        let a = GlobalArray2::<f64>::from_fn(job, [200, 200], |(i, j)| match (i, j) {
            _ if i + j != 199 => 0.0,
            _ => 1e10,
        })?;
        let (sign, ln) = a.lu()?.log_determinant()?;
        // The permutation that reverses 200 rows is even.
        assert!(sign == 1.0 && (ln - 200.0 * 1e10f64.ln()).abs() < 1e-9, "{sign} {ln}");
        assert_eq!(a.lu()?.determinant()?, f64::INFINITY);
        job.sync()
    });
}
