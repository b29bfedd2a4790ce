//! LU and Cholesky factors, and what is solved by them.

use global_arrays::linalg::{Blocking, Lu};

use super::*;

/// Factors of a Hermitian matrix that is positive definite, and of a general one, on each grid of the members.
fn factors<T: Sample>() {
    everywhere(|job| {
        for order in [1, 2, 9, 40] {
            let (s, unit) = (positive::<T>(order, 2), Array2::eye(order));
            let general = random::<T>(order, order, 4) + Array2::<T>::eye(order);
            let b = random::<T>(order, 2, 5);
            for metric in spread(job, &s)? {
                let factor = metric.cholesky()?;
                let l = factor.l()?.get(..)?;
                assert!(apart(&l.dot(&adjoint(&l)), &s) < 10.0);
                assert!(l.indexed_iter().all(|((i, j), x)| i >= j || *x == T::ZERO));
                let inverse = factor.inverse()?.get(..)?;
                let condition = largest(&inverse) * largest(&s) * order as f64;
                assert!(apart(&s.dot(&inverse), &unit) < 10.0 * condition);
                let x = factor.solve(&spread(job, &b)?[1])?;
                assert!(apart(&s.dot(&x.get(..)?), &b) < 10.0 * condition);
            }
            for array in spread(job, &general)? {
                let lu = array.lu()?;
                let condition = T::wide(lu.condition()?);
                assert!((1.0..1e5).contains(&condition), "{condition}");
                let x = lu.solve(&spread(job, &b)?[0])?.get(..)?;
                assert!(apart(&general.dot(&x), &b) < 10.0 * condition);
                // One right-hand side is a vector.
                let vector = GlobalArray1::<T>::from_fn(job, [order], |i| b[[i, 1]])?;
                let alone = lu.solve(&vector)?.get(..)?.insert_axis(ndarray::Axis(1));
                assert!(apart(&alone, &x.slice(s![.., 1..]).to_owned()) < 10.0 * condition);
                // Each member solves for many of its own.
                let many = random::<T>(order, 16 * job.size() + 1, 6);
                let x = lu.solve(&spread(job, &many)?[0])?.get(..)?;
                assert!(apart(&general.dot(&x), &many) < 10.0 * condition);
            }
        }
        // By cofactors.
        let a = random::<T>(3, 3, 6);
        let minor = |i: usize, j: usize| a[[1, i]] * a[[2, j]] - a[[1, j]] * a[[2, i]];
        let expected = a[[0, 0]] * minor(1, 2) - a[[0, 1]] * minor(0, 2) + a[[0, 2]] * minor(0, 1);
        let found = spread(job, &a)?[1].lu()?.determinant()?;
        assert!(T::wide((found - expected).magnitude()) < 100.0 * T::EPSILON, "{found:?}, {expected:?}");
        job.sync()
    });
    for grid in [[1, 2], [2, 1], [2, 2], [2, 3], [5, 1]] {
        let run = Launch::new().ranks(grid[0] * grid[1]).network("threads:unmapped").run(|job| {
            let (order, edge) = (37, 5);
            let (s, general) = (positive::<T>(order, 7), random::<T>(order, order, 8));
            let b = random::<T>(order, 3, 9);
            let right = GlobalArray2::from_fn(job, [order, 3], |(i, j)| b[[i, j]])?;
            let lu = Lu::from_fn(job, order, Blocking { edge, grid }, |(i, j)| general[[i, j]])?;
            let condition = T::wide(lu.condition()?);
            assert!(apart(&general.dot(&lu.solve(&right)?.get(..)?), &b) < 10.0 * condition, "{grid:?}");
            // The estimate of the condition is made by solutions with the adjoint.
            let alone = GlobalArray2::from_fn(job, [order; 2], |(i, j)| general[[i, j]])?.lu()?.condition()?;
            assert!((T::wide(alone) / condition - 1.0).abs() < 1e-3 * condition.log10(), "{grid:?}: {condition}");
            let alone = GlobalArray2::from_fn(job, [order; 2], |(i, j)| general[[i, j]])?.lu()?;
            let ratio = lu.determinant()? / alone.determinant()?;
            assert!(T::wide((ratio - T::ONE).magnitude()) < 1e3 * T::EPSILON * condition, "{grid:?}: {ratio:?}");
            let made = |a: &Array2<T>, own: Order| -> Result<GlobalArray2<T>, Error> {
                let mut made = GlobalArray2::builder(job, [order; 2]).block_cyclic([edge; 2]).grid(grid).order(own).create()?;
                made.map_indexed(|(i, j), _| a[[i, j]])?;
                Ok(made)
            };
            let factor = made(&s, Order::ColumnMajor)?.into_cholesky()?;
            let l = factor.l()?.get(..)?;
            assert!(apart(&l.dot(&adjoint(&l)), &s) < 10.0, "{grid:?}");
            let condition = largest(&factor.inverse()?.get(..)?) * largest(&s) * order as f64;
            assert!(apart(&s.dot(&factor.solve(&right)?.get(..)?), &b) < 10.0 * condition, "{grid:?}");
            // A copy has larger blocks.
            let again = made(&s, Order::RowMajor)?.into_cholesky()?.l()?.get(..)?;
            assert!(apart(&again, &l) < 100.0 * condition, "{grid:?}");
            let condition = T::wide(lu.condition()?);
            for lu in [made(&general, Order::ColumnMajor)?.into_lu()?, made(&general, Order::RowMajor)?.into_lu()?] {
                assert!(apart(&general.dot(&lu.solve(&right)?.get(..)?), &b) < 10.0 * condition, "{grid:?}");
            }
            // What has no factor is found in each block, on all members.
            for at in [0, 3, 18, order - 1] {
                let mut indefinite = s.clone();
                indefinite[[at, at]] = T::ZERO - s[[at, at]];
                match made(&indefinite, Order::ColumnMajor)?.into_cholesky() {
                    Err(Error::Matrix { source: MatrixError::NotPositive { order }, .. }) => {
                        assert_eq!(order, at + 1, "{grid:?}")
                    }
                    other => panic!("{grid:?}, {at}: {other:?}"),
                }
            }
            job.sync()
        });
        run.unwrap_or_else(|error| panic!("{grid:?}: {error}"));
    }
}

#[test]
fn in_single_precision() {
    factors::<f32>();
}

#[test]
fn in_double_precision() {
    factors::<f64>();
}

#[test]
fn of_complex_numbers() {
    factors::<Complex64>();
}

#[test]
fn of_complex_numbers_in_single_precision() {
    factors::<Complex32>();
}

/// The normwise backward error of a solution by LU is rounding, whatever the condition; a refinement makes it so where elements grow.
#[test]
fn hard_systems_have_small_backward_errors() {
    everywhere(|job| {
        for (name, a) in hard(60).into_iter().skip(1) {
            let order = a.nrows();
            // By powers of two, so that nothing overflows or vanishes in the check.
            let scale = 2f64.powi(-(largest(&a).log2() as i32).clamp(-1000, 1000));
            let [matrix, _] = spread(job, &a)?;
            let exact = random::<f64>(order, 1, 12);
            let right = (&a * scale).dot(&exact) / scale;
            let b = GlobalArray1::from_fn(job, [order], |i| right[[i, 0]])?;
            let lu = matrix.lu()?;
            let mut x = lu.solve(&b)?;
            if name == "growth" {
                lu.refine(&matrix, &b, &mut x)?;
            }
            let x = x.get(..)?.insert_axis(ndarray::Axis(1));
            let a = &a * scale;
            let error =
                largest(&(a.dot(&x) - &right * scale)) / (largest(&a) * largest(&x) + largest(&right) * scale) / f64::EPSILON;
            // A denormal number has fewer bits.
            let most = if name == "denormal" { 1e4 } else { 10.0 };
            assert!(error < most, "{name}: {error} ε");
        }
        job.sync()
    });
}

#[test]
fn what_is_wrong_with_a_matrix_is_said_on_all() {
    everywhere(|job| {
        let nan = small(job, with_nan)?;
        assert_eq!(fault(nan.lu().map(drop)), MatrixError::NotFinite { row: 3, column: 1 });
        assert_eq!(fault(nan.cholesky().map(drop)), MatrixError::NotFinite { row: 3, column: 1 });
        assert_eq!(fault(small(job, askew)?.cholesky().map(drop)), MatrixError::NotSymmetric { row: 4, column: 1 });
        let above = small(job, |i, j| if (i, j) == (1, 4) { f64::NAN } else { 1.0 })?;
        assert_eq!(fault(above.cholesky().map(drop)), MatrixError::NotFinite { row: 1, column: 4 });
        let indefinite = small(job, |i, j| (3.0 - i as f64) * unit(i, j))?;
        assert_eq!(fault(indefinite.cholesky().map(drop)), MatrixError::NotPositive { order: 4 });
        assert_eq!(fault(small(job, singular)?.lu().map(drop)), MatrixError::Singular { at: 2 });
        let one = small(job, unit)?;
        let wrong = GlobalArray1::<f64>::builder(job, [5]).fill(f64::INFINITY).name("wrong").create()?;
        says(one.lu()?.solve(&wrong).map(drop), &["solve", "wrong", "not finite"]);
        // The group works on, and refuses what does not fit.
        let wide = GlobalArray2::<f64>::builder(job, [2, 3]).zeros().name("wide").create()?;
        says(wide.lu().map(drop), &["lu", "wide", "[2, 3]", "square", "factors.rs"]);
        let short = GlobalArray1::<f64>::zeros(job, [4])?;
        says(one.lu()?.solve(&short).map(drop), &["solve", "5 rows", "[4]"]);
        let blocking = Blocking { edge: 2, grid: [1, 7] };
        says(Lu::from_fn(job, 5, blocking, |(i, j)| unit(i, j)).map(drop), &["from_fn", "grid with", "1 x 7"]);
        for (order, words) in [
            (1 << 30, ["factors of matrix", "asks for"]),
            (3 << 30, ["from_fn", "order 3221225472"]),
            (usize::MAX, ["from_fn", "counted"]),
        ] {
            let blocking = Blocking { edge: order, ..Blocking::new(order, job.size()) };
            says(Lu::from_fn(job, order, blocking, |(i, j)| unit(i, j)).map(drop), &words);
        }
        let nothing = GlobalArray2::<f64>::zeros(job, [0, 0])?;
        assert!(nothing.cholesky()?.l()?.is_empty());
        assert_eq!((nothing.lu()?.determinant()?, nothing.lu()?.condition()?), (1.0, 1.0));
        let none = GlobalArray2::<f64>::zeros(job, [5, 0])?;
        assert!(one.lu()?.solve(&none)?.is_empty() && one.cholesky()?.solve(&none)?.is_empty());
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
            let order = 50 + group.size();
            let a = random::<f64>(order, order, 10);
            let lu = GlobalArray2::from_fn(&group, [order, order], |(i, j)| a[[i, j]])?.lu()?;
            let x = lu.solve(&GlobalArray1::from_fn(&group, [order], |i| a[[i, 3]])?)?.get(..)?;
            assert!(x.iter().enumerate().all(|(i, x)| (x - f64::from(u8::from(i == 3))).abs() < 1e-9));
            job.sync()
        });
        run.unwrap_or_else(|error| panic!("{network}: {error}"));
    }
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

/// A solution that is off by a millionth.
#[test]
fn refinement_brings_a_solution_back() {
    everywhere(|job| {
        let order = 40;
        let a = random::<f64>(order, order, 11);
        let matrix = GlobalArray2::from_fn(job, [order, order], |(i, j)| a[[i, j]])?;
        let b = GlobalArray1::from_fn(job, [order], |i| a[[i, 0]] + 2.0 * a[[i, 1]])?;
        let lu = matrix.lu()?;
        let mut x = lu.solve(&b)?;
        x.map(|x| x * (1.0 + 1e-6))?;
        let refined = lu.refine(&matrix, &b, &mut x)?;
        assert!(refined.steps > 0 && refined.before > 1e-10 && refined.after < 1e-15, "{refined:?}");
        assert!(x.get(..)?.iter().zip([1.0, 2.0]).all(|(x, exact)| (x - exact).abs() < 1e-12));
        let short = GlobalArray2::<f64>::zeros(job, [order, 1])?;
        says(lu.refine(&short, &b, &mut x).map(drop), &["refine", "[40, 1]"]);
        job.sync()
    });
}

/// Parts that are not those of the factors: of other blocks, of some members, in another order of the members.
#[test]
fn matrices_of_any_parts_are_given_away() {
    type Of<'g> = global_arrays::Builder<'g, f64, Ix2>;
    type Case = (&'static str, fn(Of<'_>) -> Of<'_>);
    let cases: [Case; 5] = [
        ("of oblong blocks", |of| of.block_cyclic([3, 2])),
        ("of one row of two members", |of| of.block_cyclic([4, 4]).grid([1, 2])),
        ("of members from the last to the first", |of| of.block_cyclic([4, 4]).restrict([2, 1, 0])),
        ("in one block", |of| of.block_cyclic([100_000; 2])),
        ("in equal parts", |of| of),
    ];
    let order = 20;
    let (a, s) = (random::<f64>(order, order, 13), positive::<f64>(order, 14));
    for (name, case) in cases {
        let run = Launch::new().ranks(3).network("threads").run(|job| {
            let made = |a: &Array2<f64>| -> Result<GlobalArray2<f64>, Error> {
                let mut made = case(GlobalArray2::builder(job, [order; 2]).order(Order::ColumnMajor)).create()?;
                made.map_indexed(|(i, j), _| a[[i, j]])?;
                Ok(made)
            };
            let b = GlobalArray1::from_fn(job, [order], |i| a[[i, 3]])?;
            let x = made(&a)?.into_lu()?.solve(&b)?.get(..)?;
            assert!(x.iter().enumerate().all(|(i, x)| (x - unit(i, 3)).abs() < 1e-10), "{x}");
            let l = made(&s)?.into_cholesky()?.l()?.get(..)?;
            assert!(apart(&l.dot(&l.t()), &s) < 10.0);
            job.sync()
        });
        run.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// A member solves for its share in several parts; what is wrong with the first of them is not forgotten.
#[test]
fn each_right_hand_side_is_looked_at() {
    everywhere(|job| {
        let (order, right) = (5, 300 * job.size());
        let lu = small(job, |i, j| unit(i, j) + 0.1)?.lu()?;
        let ones = GlobalArray2::<f64>::builder(job, [order, right]).fill(1.5).create()?;
        assert!(lu.solve(&ones)?.get(..)?.iter().all(|x| (x - 1.0).abs() < 1e-14));
        if job.rank() == 0 {
            ones.store([3, 1], f64::NAN)?;
        }
        job.sync()?;
        says(lu.solve(&ones).map(drop), &["[3, 1] is not finite"]);
        job.sync()
    });
}
