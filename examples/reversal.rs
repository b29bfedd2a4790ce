//! Reverses a vector: every rank reads what belongs into its block, back to front, wherever it lies.

use global_arrays::prelude::*;

const N: usize = 1_000_003;

fn main() -> Result<(), Error> {
    run(|job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, N).name("a").create()?;
        let b = a.duplicate("b")?;
        if job.rank() == 0 {
            a.put(.., &Array1::from_iter(0..N as u64))?;
        }
        job.sync()?;
        for block in b.blocks(job.rank()) {
            let (start, count) = (block.patch.start()[0], block.patch.count()[0]);
            b.put(&block.patch, &a.get(s![N - start - count..N - start;-1])?)?;
        }
        job.sync()?;
        if b.get(..)? != a.get(s![..;-1])? || b.load(0)? != N as u64 - 1 {
            return Err(Error::other("the vector is not reversed"));
        }
        if job.rank() == 0 {
            println!("{N} elements reversed by {} ranks", job.size());
        }
        Ok(())
    })
}
