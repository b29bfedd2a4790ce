//! C = A·B in tasks: a shared counter deals out blocks of the product, the blocks of A and B for the next task are on their way
//! while this one is computed. A task is one block of the inner sum, so several ranks add to one block of C.

use global_arrays::prelude::*;

const N: usize = 300;
const BLOCK: usize = 64;

fn main() -> Result<(), Error> {
    run(|job| {
        let new = |name| GlobalArray::<f64, Ix2>::builder(job, [N, N]).name(name).zeros().create();
        let (a, b, c) = (new("A")?, new("B")?, new("C")?);
        if job.rank() == 0 {
            a.put(.., &Array2::from_shape_fn((N, N), |(i, j)| (i + 2 * j) as f64 / N as f64))?;
            b.put(.., &Array2::from_shape_fn((N, N), |(i, j)| if i <= j { 1.0 } else { -1.0 }))?;
        }
        let tasks = Counter::new(job)?;
        job.sync()?;

        let blocks = N.div_ceil(BLOCK);
        let range = |block: usize| block * BLOCK..N.min((block + 1) * BLOCK);
        let begin = || -> Result<_, Error> {
            let Some(task) = tasks.next_below(blocks.pow(3))? else { return Ok(None) };
            let (i, j, k) = (range(task / blocks / blocks), range(task / blocks % blocks), range(task % blocks));
            Ok(Some((a.get_nb(s![i.clone(), k.clone()])?, b.get_nb(s![k, j.clone()])?, i, j)))
        };
        let mut next = begin()?;
        let mut done = 0;
        while let Some((a, b, i, j)) = next {
            next = begin()?;
            c.accumulate(s![i, j], 1.0, &a.wait()?.dot(&b.wait()?))?;
            done += 1;
        }
        job.sync()?;

        // Σₖ (i + 2k)·b(k, j) with b = 1 for the first j + 1 values of k and −1 for the others.
        let sum = |i: usize, n: usize| (n * i + n * n - n) as f64 / N as f64;
        let exact = |i, j| 2.0 * sum(i, j + 1) - sum(i, N);
        let larger = |a: f64, b: f64| if a.is_nan() || b <= a { a } else { b };
        let worst = c.get(..)?.indexed_iter().map(|((i, j), &x)| (x - exact(i, j)).abs()).fold(0.0, larger);
        println!("rank {} did {done} of {} tasks; largest error {worst:.1e}", job.rank(), blocks.pow(3));
        if worst < 1e-10 * N as f64 { Ok(()) } else { Err(Error::other("the product is wrong")) }
    })
}
