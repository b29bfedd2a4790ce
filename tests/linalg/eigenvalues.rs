//! Eigenvalues, least squares and singular values.

use global_arrays::linalg::Spectrum;

use super::*;

/// The same if the machine has a LAPACK.
fn with_lapack(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    everywhere(|job| {
        let one = GlobalArray2::<f64>::builder(job, [1, 1]).fill(1.0).create()?;
        match one.eigh() {
            Err(error) if error.to_string().contains("needs a LAPACK") && std::env::var_os("GA_BLAS").is_none() => {
                eprintln!("skipped: {error}");
                Ok(())
            }
            _ => body(job),
        }
    });
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

fn eigenvalues<T: Sample>() {
    with_lapack(|job| {
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
                let general = factor.eigh(&a)?;
                check_eigen(&h, &s, &general.values, &general.vectors.get(..)?);
                let part = factor.eigh_of(&a, Spectrum::Lowest(order.div_ceil(2)))?;
                check_eigen(&h, &s, &part.values, &part.vectors.get(..)?);
                assert!(part.values.iter().zip(&general.values).all(|(x, y)| close(*x, *y)));
            }
        }
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
    eigenvalues::<f32>();
}

#[test]
fn in_double_precision() {
    eigenvalues::<f64>();
}

#[test]
fn of_complex_numbers() {
    eigenvalues::<Complex64>();
}

#[test]
fn of_complex_numbers_in_single_precision() {
    eigenvalues::<Complex32>();
}

/// The residual is that of a good method.
#[test]
fn hard_matrices_have_small_residuals() {
    with_lapack(|job| {
        let order = 60;
        for (name, h) in hard(order).into_iter().filter(|(name, _)| *name != "growth") {
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
    with_lapack(|job| {
        let nan = small(job, with_nan)?;
        assert_eq!(fault(nan.eigh().map(drop)), MatrixError::NotFinite { row: 3, column: 1 });
        assert_eq!(fault(nan.svd().map(drop)), MatrixError::NotFinite { row: 3, column: 1 });
        assert_eq!(fault(small(job, askew)?.eigh().map(drop)), MatrixError::NotSymmetric { row: 4, column: 1 });
        let b = GlobalArray1::<f64>::from_fn(job, [5], |_| 1.0)?;
        assert_eq!(fault(small(job, singular)?.least_squares(&b).map(drop)), MatrixError::Dependent { at: 2 });
        let wide = GlobalArray2::<f64>::builder(job, [2, 3]).zeros().name("wide").create()?;
        says(wide.eigh().map(drop), &["eigh", "wide", "[2, 3]", "square", "eigenvalues.rs"]);
        says(wide.least_squares(&b).map(drop), &["least_squares", "wide", "2 rows and 3 columns"]);
        let one = small(job, unit)?;
        says(one.eigh_of(Spectrum::Interval(2.0, 1.0)).map(drop), &["eigh_of", "from 2 to 1"]);
        assert_eq!(one.eigh_of(Spectrum::Interval(2.0, 3.0))?.vectors.shape(), [5, 0]);
        assert_eq!(one.eigh_of(Spectrum::Lowest(0))?.values.len(), 0);
        assert_eq!(one.eigh_of(Spectrum::Lowest(99))?.values.len(), 5);
        let nothing = GlobalArray2::<f64>::zeros(job, [0, 0])?;
        assert!(nothing.eigh()?.values.is_empty() && nothing.svd()?.values.is_empty());
        job.sync()
    });
}

/// An interval whose ends are equal in single precision has no eigenvalues.
#[test]
fn an_interval_that_rounds_to_nothing_is_empty() {
    with_lapack(|job| {
        let a = GlobalArray2::<f32>::from_fn(job, [3, 3], |(i, j)| f32::from(u8::from(i == j)))?;
        assert!(a.eigh_of(Spectrum::Interval(1.0, 1.0 + 1e-10))?.values.is_empty());
        job.sync()
    });
}

/// Two of three ranks, in another order than that of their numbers.
#[test]
fn any_group_has_solvers_of_its_own() {
    with_lapack(|job| {
        let group = job.split_ordered(usize::from(job.rank() == 1), -(job.rank() as isize))?;
        let order = 5 + group.size();
        let h = hermitian::<f64>(order, 10);
        let found = GlobalArray2::from_fn(&group, [order, order], |(i, j)| h[[i, j]])?.eigh()?;
        check_eigen(&h, &Array2::eye(order), &found.values, &found.vectors.get(..)?);
        job.sync()
    });
}
