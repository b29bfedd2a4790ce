//! The final states computed another way: by matrices of states × states, from the formula of the first ones.
//!
//! ψ_k = Y_k·ψ_0 with Y_0 = 1 and Y_(k+1) = ½·(3 − Y_k·S_0·Y_k)·Y_k. All Y_k are polynomials of S_0, so they are Hermitian and commute
//! with it. Every rank computes S_0 of some planes, all know their sum, and each compares what it owns. The products are ndarray's.

use global_arrays::prelude::*;
use num_complex::Complex;

use crate::calculator::Calculators;
use crate::pairs::Shape;

type Matrix = Array2<Complex<f64>>;

/// The largest difference between the states and those that they should be, relative to the largest coefficient of the latter.
/// Collective.
pub(crate) fn compare(job: &Job, shape: Shape, iterations: usize, calculators: &mut Calculators<'_>) -> Result<f64, Error> {
    let mut overlap = Matrix::zeros((shape.states, shape.states));
    for plane in (job.rank()..shape.planes).step_by(job.size()) {
        let first = first_states(shape, plane);
        overlap = overlap + first.dot(&adjoint(&first));
    }
    job.all_reduce(overlap.as_slice_mut().expect("a matrix of its own"), ops::sum)?;
    let transform = transform(&overlap, iterations);
    let [difference, largest] = calculators.states().owner_epoch(|mut part| {
        let (mut difference, mut largest) = (0.0, 0.0);
        for block in part.blocks() {
            let (start, count) = (*block.patch.start(), *block.patch.count());
            let rows = transform.slice(s![start[1]..start[1] + count[1], ..]);
            for (k, found) in part.block_mut(&block).outer_iter().enumerate() {
                let expected = rows.dot(&first_states(shape, start[0] + k));
                let expected = expected.slice(s![.., start[2]..start[2] + count[2]]);
                difference = found.iter().zip(expected).fold(difference, |most, (a, b)| ops::max_nan(most, (a - b).norm()));
                largest = expected.iter().fold(largest, |most, x| ops::max_nan(most, x.norm()));
            }
        }
        [difference, largest]
    })?;
    let mut both = [difference, largest];
    job.all_reduce(&mut both, ops::max_nan)?;
    Ok(both[0] / both[1])
}

/// Y_k.
fn transform(overlap: &Matrix, iterations: usize) -> Matrix {
    let mut y = Matrix::eye(overlap.nrows());
    for _ in 0..iterations {
        let step = Matrix::eye(y.nrows()) * Complex::from(1.5) - y.dot(overlap).dot(&y) * Complex::from(0.5);
        y = step.dot(&y);
    }
    y
}

/// All first states in a plane.
fn first_states(shape: Shape, plane: usize) -> Matrix {
    Matrix::from_shape_fn((shape.states, shape.points), |(state, point)| shape.first(state, plane, point))
}

fn adjoint(matrix: &Matrix) -> Matrix {
    matrix.t().mapv(|x| x.conj())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_of_a_diagonal_overlap_by_hand() {
        // y = 1, then (3 - 2)/2 = 1/2, then (3 - 2/4)/2 · 1/2 = 5/8; for 1 it stays.
        let overlap = Matrix::from_diag(&ndarray::arr1(&[Complex::from(2.0), Complex::from(1.0)]));
        for (iterations, y) in [(0, 1.0), (1, 0.5), (2, 0.625)] {
            let expected = Matrix::from_diag(&ndarray::arr1(&[Complex::from(y), Complex::from(1.0)]));
            assert_eq!(transform(&overlap, iterations), expected);
        }
    }

    #[test]
    fn many_iterations_lead_to_loewdin() {
        let shape = Shape { states: 6, planes: 1, points: 60, grain: 4, seed: 3 };
        let first = first_states(shape, 0);
        let y = transform(&first.dot(&adjoint(&first)), 30);
        let last = y.dot(&first);
        let overlap = last.dot(&adjoint(&last));
        let identity = Matrix::eye(6);
        assert!(overlap.iter().zip(&identity).all(|(a, b)| (a - b).norm() < 1e-14), "{overlap}");
    }
}
