//! Laplace's equation on the unit square by Jacobi's method: u = xy on the boundary, so u = xy inside.
//!
//! Every rank reads its block with a border one wide out of its neighbours' blocks, and writes the new block into the other of
//! two arrays.

use global_arrays::prelude::*;

/// Points along each side, boundary included.
const N: usize = 50;
const TOLERANCE: f64 = 1e-9;

fn exact(i: usize, j: usize) -> f64 {
    (i * j) as f64 / ((N - 1) * (N - 1)) as f64
}

fn main() -> Result<(), Error> {
    run(|job| {
        let mut u = GlobalArray::<f64, Ix2>::builder(job, [N, N]).name("u").zeros().create()?;
        let mut new = u.duplicate("new")?;
        if job.rank() == 0 {
            let edge = |i| i == 0 || i == N - 1;
            let start = Array2::from_shape_fn((N, N), |(i, j)| if edge(i) || edge(j) { exact(i, j) } else { 0.0 });
            u.put(.., &start)?;
            new.put(.., &start)?;
        }
        job.sync()?;

        // The points of my block that are not on the boundary, and the same with their neighbours.
        let mine = u.blocks(job.rank()).next().map(|block| {
            let (start, count) = (*block.patch.start(), *block.patch.count());
            let inside = |k: usize| start[k].max(1)..(start[k] + count[k]).min(N - 1).max(start[k].max(1));
            (inside(0), inside(1))
        });
        let (rows, columns) = mine.unwrap_or((1..1, 1..1));
        let (n, m) = (rows.len(), columns.len());
        let mut halo = Array2::zeros((n + 2, m + 2));

        let mut sweeps = 0;
        loop {
            u.get_into(s![rows.start - 1..rows.end + 1, columns.start - 1..columns.end + 1], &mut halo)?;
            let (north, south) = (halo.slice(s![..n, 1..=m]), halo.slice(s![2.., 1..=m]));
            let (west, east) = (halo.slice(s![1..=n, ..m]), halo.slice(s![1..=n, 2..]));
            let next = (&north + &south + west + east) / 4.0;
            let change = (&next - &halo.slice(s![1..=n, 1..=m])).mapv(f64::abs).fold(0.0, |a: f64, &b| a.max(b));
            new.put(s![rows.clone(), columns.clone()], &next)?;
            job.sync()?;
            std::mem::swap(&mut u, &mut new);
            sweeps += 1;
            if job.all_reduce_one(change, ops::max)? < TOLERANCE {
                break;
            }
        }

        let larger = |a: f64, b: f64| if a.is_nan() || b <= a { a } else { b };
        let error = u.get(..)?.indexed_iter().map(|((i, j), &x)| (x - exact(i, j)).abs()).fold(0.0, larger);
        if job.rank() == 0 {
            println!("{sweeps} sweeps, largest error {error:.1e}");
        }
        // What is left of the slowest mode: the change of a sweep over 1 − cos(π / (N − 1)).
        let bound = TOLERANCE / (1.0 - (std::f64::consts::PI / (N - 1) as f64).cos());
        if error < bound { Ok(()) } else { Err(Error::other(format!("the error {error:e} is above {bound:e}"))) }
    })
}
